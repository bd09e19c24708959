//! Removes log folders: those of old runs (`--keep-logs`), and the run's own (`--no-logs`). Only what runs of cosched made
//! goes; a folder in which somebody keeps other files stays, and so does that of a run that goes on.

use super::folder::{self, Folder};
use cosched_linux::orphans::orphans as orphans_of_all;
use cosched_linux::root::Root;
use cosched_report::SeriesReader;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Removes the log folders of the caller's oldest runs in `base`, so that `keep` are left. Folders of other users, and those
/// that others may write to, neither go nor count. Nothing goes where `base` is a link of another user. A killed run whose
/// jobs go on keeps its folder: they write to it.
pub(crate) fn prune(base: &Path, keep: usize) {
    let orphans = OnceCell::new();
    let alive = |run: &str| {
        let runs = || {
            orphans_of_all(&Root::default())
                .into_iter()
                .map(|orphan| orphan.run)
                .collect::<BTreeSet<_>>()
        };
        orphans.get_or_init(runs).contains(run)
    };
    prune_but(base, keep, &alive);
}

/// As [`prune`]; `alive` says whether jobs of a run that was killed go on.
fn prune_but(base: &Path, keep: usize, alive: &dyn Fn(&str) -> bool) {
    let Some(base) = folder::open_through_own_links(base) else {
        return;
    };
    let mut runs: Vec<OsString> = folder::entries(&base);
    runs.retain(|name| name.to_str().is_some_and(is_stamp) && folder::is_own(&base, name));
    // The names begin with the time.
    runs.sort();
    let old = runs.len().saturating_sub(keep);
    for name in &runs[..old] {
        let Some(unused) = folder::lock_own(&base, name) else {
            continue;
        };
        if !runs_of(&base, name).iter().any(|run| alive(run)) && unused.clear() {
            let _ = unlinkat(&base, name, AtFlags::REMOVEDIR);
        }
    }
}

/// The runs whose series are in a log folder, and in the folders in it to which earlier series were moved.
fn runs_of(base: &OwnedFd, name: &OsStr) -> Vec<String> {
    let Ok(folder) = folder::open_folder(base, name, OFlags::NOFOLLOW) else {
        return Vec::new();
    };
    let earlier = folder::entries(&folder)
        .into_iter()
        .filter(|name| name.as_bytes().starts_with(folder::EARLIER.as_bytes()));
    let earlier: Vec<OwnedFd> = earlier
        .filter_map(|name| folder::open_folder(&folder, &name, OFlags::NOFOLLOW).ok())
        .collect();
    std::iter::once(&folder)
        .chain(&earlier)
        .filter_map(run_of)
        .collect()
}

/// The run whose series is in a folder.
fn run_of(folder: &OwnedFd) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, "series.jsonl", flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    SeriesReader::new(BufReader::new(file), "series.jsonl")
        .ok()?
        .header()
        .run_id
        .clone()
}

/// Whether a folder's name is one that runs get by default: `20260131-235959-4711`.
fn is_stamp(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    matches!(parts[..], [day, time, pid] if digits(day, 8) && digits(time, 6) && digits(pid, pid.len()) && !pid.is_empty())
}

/// The log folder of a run that keeps none. Dropping it removes all that the run wrote.
pub(crate) struct Passing {
    /// Dropped first of all, so that the folder is not in use any more.
    folder: Option<Folder>,
    path: PathBuf,
    keeps: bool,
}

impl Passing {
    /// The folder at `path`, which is removed in the end unless `keeps`.
    pub(crate) fn new(folder: Folder, path: &Path, keeps: bool) -> Passing {
        Passing {
            folder: Some(folder),
            path: path.to_owned(),
            keeps,
        }
    }

    /// The folder has what is nowhere else, and stays.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.folder = None;
        if !self.keeps && folder::lock(&self.path).is_some_and(folder::Unused::clear) {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_report::{RunInfo, SeriesHeader};
    use std::cell::RefCell;
    use std::sync::Arc;

    fn run(base: &Path, name: &str) -> Folder {
        let names = ["a.out".to_owned(), "solo".to_owned()];
        let folder = Folder::claim(&base.join(name), &names, false).unwrap();
        std::fs::write(base.join(name).join("a.out"), "x").unwrap();
        std::fs::create_dir(base.join(name).join("solo")).unwrap();
        std::fs::write(base.join(name).join("solo/b.out"), "x").unwrap();
        folder
    }

    #[test]
    fn the_oldest_runs_go_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let names = [
            "20260101-000000-1",
            "20260102-000000-9",
            "20260103-000000-2",
            "20260104-000000-3",
        ];
        let live = run(base, names[1]);
        for name in [names[0], names[2], names[3], "20260101-000000-x", "mine"] {
            drop(run(base, name));
        }
        // Put aside by a second run in the same folder, which goes as well.
        drop(run(base, names[0]));
        std::fs::write(base.join(names[2]).join("notes"), "mine").unwrap();
        std::fs::create_dir(base.join("20250101-000000-1")).unwrap();
        prune(base, 1);
        let left = |name: &str| base.join(name).exists();
        assert!(!left(names[0]), "the oldest");
        assert!(
            left(names[1]) && base.join(names[1]).join("a.out").exists(),
            "it goes on"
        );
        assert!(
            !base.join(names[2]).join("a.out").exists()
                && base.join(names[2]).join("notes").exists()
        );
        assert!(
            left(names[3])
                && left("20260101-000000-x")
                && left("mine")
                && left("20250101-000000-1")
        );
        drop(live);
        prune(base, 0);
        assert!(!left(names[1]) && !left(names[3]) && left("mine"));
    }

    /// They would lose what they write from then on, and whoever resumes would not know them.
    #[test]
    fn a_killed_run_whose_jobs_go_on_keeps_its_folder() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let names = [
            "20260101-000000-1",
            "20260102-000000-2",
            "20260103-000000-3",
        ];
        for (name, series) in names.iter().zip(["", "earlier-1", "earlier-1"]) {
            drop(run(base, name));
            let folder = base.join(name).join(series);
            std::fs::create_dir_all(&folder).unwrap();
            let header = SeriesHeader {
                run_id: Some(format!("run-of-{name}")),
                ..header()
            };
            std::fs::write(
                folder.join("series.jsonl"),
                serde_json::to_string(&header).unwrap() + "\n",
            )
            .unwrap();
        }
        let asked = RefCell::new(Vec::new());
        prune_but(base, 0, &|run| {
            asked.borrow_mut().push(run.to_owned());
            !run.ends_with("-3")
        });
        let left = |name: &str| base.join(name).join("a.out").exists();
        assert_eq!(names.map(left), [true, true, false], "{:?}", asked.borrow());
        assert_eq!(asked.borrow().len(), 3);
    }

    fn header() -> SeriesHeader {
        let machine = Arc::new(cosched_core::Machine::uniform("m", 1, 1));
        let info = RunInfo {
            run_id: None,
            setting: cosched_report::RunSetting::default(),
            policy: "fifo".to_owned(),
            backend: cosched_report::BackendKind::Host,
            machine,
            seed: 1,
            quantum: cosched_core::Nanos::from_ms(200),
            started_at: None,
            jobs: Vec::new(),
            capabilities: cosched_core::Capabilities::default(),
            counters: None,
            freezing: None,
            cpu_share: cosched_core::Reading::Absent(cosched_core::Absence::NotTold),
            machine_use: cosched_core::Reading::Absent(cosched_core::Absence::NotTold),
            throttling: cosched_core::Reading::Absent(cosched_core::Absence::NotTold),
            earlier: Vec::new(),
            energy_source: cosched_report::EnergySource::Absent,
            warnings: Vec::new(),
        };
        SeriesHeader::new(&info, [])
    }

    #[test]
    fn folders_that_others_could_have_filled_neither_go_nor_count() {
        use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let names = [
            "20260101-000000-1",
            "20260102-000000-2",
            "20260103-000000-3",
        ];
        for name in names {
            drop(run(base, name));
        }
        std::fs::set_permissions(base.join(names[0]), std::fs::Permissions::from_mode(0o777))
            .unwrap();
        symlink(base.join(names[1]), base.join("20260104-000000-4")).unwrap();
        prune(base, 2);
        assert!(
            names
                .iter()
                .all(|name| base.join(name).join("a.out").exists())
        );
        prune(base, 1);
        assert!(base.join(names[0]).join("a.out").exists() && !base.join(names[1]).exists());
        if let Err(error) = chown(base.join(names[2]), Some(2_000_001), None) {
            return eprintln!("skipped, because only root may give files away: {error}");
        }
        prune(base, 0);
        assert!(base.join(names[2]).join("a.out").exists());
        chown(base.join(names[2]), Some(0), None).unwrap();
        chown(
            base.join(names[2]).join(".cosched-run"),
            Some(2_000_001),
            None,
        )
        .unwrap();
        prune(base, 0);
        assert!(
            base.join(names[2]).join("a.out").exists(),
            "the list of its files is somebody else's"
        );
    }

    #[test]
    fn a_link_of_another_user_leads_to_no_old_logs() {
        use std::os::unix::fs::{lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (own, link) = (dir.path().join("own"), dir.path().join("cosched-logs"));
        let name = "20260101-000000-1";
        drop(run(&own, name));
        symlink("loop", dir.path().join("loop")).unwrap();
        prune(&dir.path().join("loop"), 0);
        // Through a second link, which counts from where it is.
        symlink("own", dir.path().join("second")).unwrap();
        symlink(dir.path().join("second"), &link).unwrap();
        let is_root = lchown(dir.path().join("second"), Some(2_000_001), None).is_ok();
        if is_root {
            prune(&link, 0);
            assert!(own.join(name).exists(), "somebody else chose the folder");
            lchown(dir.path().join("second"), Some(0), None).unwrap();
        }
        prune(&link, 0);
        assert!(!own.join(name).exists(), "the caller chose it");
        if !is_root {
            eprintln!("skipped in part, because only root may give links away");
        }
    }

    #[test]
    fn a_run_that_keeps_no_logs_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        for keeps in [false, true] {
            drop(Passing::new(
                run(base.path(), "logs"),
                &base.path().join("logs"),
                keeps,
            ));
            assert_eq!(base.path().join("logs").exists(), keeps);
        }
    }
}
