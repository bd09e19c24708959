//! Removes log folders: those of old runs (`--keep-logs`), and the run's own (`--no-logs`). Only files that runs of cosched
//! made are removed, and never those of a run that goes on.

use super::folder::{self, EARLIER, Folder};
use crate::whole_file::open_regular;
use cosched_linux::orphans::orphans;
use cosched_linux::root::Root;
use cosched_report::SeriesReader;
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Removes the caller's oldest log folders in `base`, so that `keep` are left.
///
/// Jobs of a killed run may still write to its folder. Then it stays.
pub(crate) fn prune(base: &Path, keep: usize) {
    let alive = LazyCell::new(runs_with_orphans);
    prune_unless(base, keep, |run| alive.contains(run));
}

fn runs_with_orphans() -> BTreeSet<String> {
    let orphans = orphans(&Root::default());
    orphans.into_iter().map(|orphan| orphan.run).collect()
}

/// Does the work of [`prune`]; `is_alive` tells whether jobs of a run go on.
fn prune_unless(base: &Path, keep: usize, is_alive: impl Fn(&str) -> bool) {
    let mut runs = folder::entries(base);
    runs.retain(|name| {
        let folder = base.join(name).symlink_metadata();
        is_stamp(name) && folder.is_ok_and(|folder| folder::is_own(&folder))
    });
    // The names begin with the time.
    runs.sort();
    let old = runs.len().saturating_sub(keep);
    for name in &runs[..old] {
        let path = base.join(name);
        let Ok(unused) = folder::lock(&path) else {
            continue;
        };
        if !runs_in(&path).iter().any(|run| is_alive(run)) {
            let _ = unused.remove();
        }
    }
}

/// The runs that have a series in a log folder, those put aside included.
fn runs_in(folder: &Path) -> Vec<String> {
    let names = folder::entries(folder);
    let earlier = names.iter().filter(|name| name.starts_with(EARLIER));
    std::iter::once(folder.to_owned())
        .chain(earlier.map(|name| folder.join(name)))
        .filter_map(|folder| run_of(&folder))
        .collect()
}

/// The run whose series is in a folder.
fn run_of(folder: &Path) -> Option<String> {
    let file = open_regular(&folder.join("series.jsonl"))?;
    let series = SeriesReader::new(BufReader::new(file), "series.jsonl").ok()?;
    series.header().run_id.clone()
}

/// Whether a folder has a name that runs choose: `20260131-235959-4711`.
fn is_stamp(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let is_digits = parts
        .iter()
        .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(parts[..], [day, time, pid] if is_digits && day.len() == 8 && time.len() == 6 && !pid.is_empty())
}

/// The log folder of a run, which is removed in the end with `--no-logs`.
pub(crate) struct Passing {
    /// Dropped first, to unlock the folder.
    folder: Option<Folder>,
    path: PathBuf,
    keeps: bool,
}

impl Passing {
    /// Takes the folder at `path`, to be removed when dropped unless `keeps`.
    pub(crate) fn new(folder: Folder, path: &Path, keeps: bool) -> Passing {
        Passing {
            folder: Some(folder),
            path: path.to_owned(),
            keeps,
        }
    }

    /// Keeps the folder: it holds output that is nowhere else.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.folder = None;
        if !self.keeps
            && let Ok(unused) = folder::lock(&self.path)
        {
            let _ = unused.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Readers;
    use cosched_report::{RunInfo, SeriesHeader};
    use std::cell::RefCell;
    use std::sync::Arc;

    fn run(base: &Path, name: &str) -> Folder {
        let names = ["a.out".to_owned(), "solo".to_owned()];
        let folder = Folder::claim(&base.join(name), &names, Readers::Everybody).unwrap();
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
        prune_unless(base, 0, |run| {
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
            earlier: Vec::new(),
            energy_source: cosched_report::EnergySource::Absent,
            warnings: Vec::new(),
        };
        SeriesHeader::new(&info, [])
    }

    #[test]
    fn folders_of_other_users_stay() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let theirs = base.join("20260101-000000-1");
        drop(run(base, "20260101-000000-1"));
        if let Err(error) = std::os::unix::fs::chown(&theirs, Some(2_000_001), None) {
            return eprintln!("skipped, because only root may give files away: {error}");
        }
        prune(base, 0);
        assert!(theirs.join("a.out").exists());
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
