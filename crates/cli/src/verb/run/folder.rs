//! The log folder of a run. What is in it belongs to one run: what an earlier one left there is put aside, a run that still
//! goes on there is not disturbed, and files that are not ours are not touched.

use crate::danger::{MOST_LINKS, danger};
use crate::exit::usage;
use crate::input::told;
use crate::whole_file::write_whole_in;
use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::fs::{fchmod, flock, fstat, mkdirat, openat, readlinkat, renameat, statat, unlinkat};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Holds the names of the run's files and folders, a line each. A run that goes on has it locked.
const MANIFEST: &str = ".cosched-run";

/// Whoever may read a file may lock it, and would keep runs out of the folder.
const MANIFEST_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Folders for what earlier runs left: this and a number.
pub(super) const EARLIER: &str = "earlier-";

/// What a run writes into its log folder beside the jobs' output.
pub(super) const OWN: [&str; 7] = [
    "series.jsonl",
    "run.json",
    "run.json.new",
    "solo",
    "solo.json",
    "solo.series.jsonl",
    "solo-profiles.json",
];

/// The log folder of a run that goes on. The lock ends when it is dropped.
pub(crate) struct Folder {
    dir: OwnedFd,
    /// Folders that were made for it, the deepest first.
    made: Vec<PathBuf>,
    /// Where what an earlier run left was put, if it left anything.
    pub(crate) aside: Option<PathBuf>,
    _manifest: File,
}

impl Folder {
    /// Makes the folder if it is not there, puts aside what an earlier run left in it, and claims `names`, the files and
    /// folders that this run will make. With `shared`, others may write to the folder and to those above it.
    ///
    /// # Errors
    /// The folder can't be written, others may write to it, another run uses it, or a file that is not ours has one of
    /// the names. Nothing is changed then.
    pub(crate) fn claim(path: &Path, names: &[String], shared: bool) -> anyhow::Result<Folder> {
        Folder::claim_with_mode(path, names, shared, 0o755)
    }

    /// As [`Folder::claim`]; nobody else may read what is in the folder.
    ///
    /// # Errors
    /// As [`Folder::claim`].
    pub(crate) fn claim_privately(
        path: &Path,
        names: &[String],
        shared: bool,
    ) -> anyhow::Result<Folder> {
        Folder::claim_with_mode(path, names, shared, 0o700)
    }

    fn claim_with_mode(
        path: &Path,
        names: &[String],
        shared: bool,
        mode: u32,
    ) -> anyhow::Result<Folder> {
        let fail =
            |why: String| usage(format!("--logs {}: {why}; nothing was started", told(path)));
        let system = |error: std::io::Error| {
            fail(format!(
                "{error}; choose another folder, as in --logs /tmp/run1"
            ))
        };
        let errno = |error: rustix::io::Errno| system(error.into());
        // Others must not be able to put links where this run will write.
        let check = || match danger(path).map_err(system)? {
            Some(why) if !shared => Err(fail(format!(
                "{why}, so that somebody else could change what is written; choose a folder of your own, as in --logs \
                 ~/run1 or --logs /tmp/run1, or allow it with --shared-logs"
            ))),
            _ => Ok(()),
        };
        // Nothing is made in a place of somebody else's choice.
        check()?;
        let made: Vec<PathBuf> = path
            .ancestors()
            .take_while(|folder| !folder.exists())
            .map(Path::to_owned)
            .collect();
        // Whatever the mask for new files says.
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(path)
            .map_err(system)?;
        let claimed = (|| {
            check()?;
            let dir = open_folder(CWD, path.as_os_str(), OFlags::empty()).map_err(errno)?;
            let mut manifest =
                open_manifest(&dir, OFlags::RDWR | OFlags::CREATE).map_err(system)?;
            if flock(&manifest, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(fail(
                    "another run is using it; choose another folder, as in --logs /tmp/run2"
                        .to_owned(),
                ));
            }
            let mut old = String::new();
            manifest.read_to_string(&mut old).map_err(system)?;
            let old: HashSet<&str> = old.lines().filter(|name| is_plain(name)).collect();
            let taken: Vec<&str> = names
                .iter()
                .map(String::as_str)
                .filter(|name| !old.contains(name) && is_there(&dir, name))
                .take(3)
                .collect();
            if !taken.is_empty() {
                let taken = taken.join(", ");
                return Err(fail(format!(
                    "there is {taken} already, which no run of cosched made; choose another folder"
                )));
            }
            let aside = put_aside(&dir, &old)
                .map_err(errno)?
                .map(|name| path.join(name));
            let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
            let written = manifest.set_len(0).and_then(|()| manifest.rewind());
            written
                .and_then(|()| manifest.write_all(text.as_bytes()))
                .map_err(system)?;
            Ok((dir, manifest, aside))
        })();
        match claimed {
            Ok((dir, manifest, aside)) => Ok(Folder {
                dir,
                made,
                aside,
                _manifest: manifest,
            }),
            Err(error) => {
                remove_made(&made);
                Err(error)
            }
        }
    }

    /// Makes a file of the run, which must not be there yet.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn create(&self, name: &str) -> std::io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.dir, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Gives the folder back: nothing was started. Removes what was made.
    pub(crate) fn abandon(self, names: &[&str]) {
        for name in names {
            let _ = unlinkat(&self.dir, *name, AtFlags::empty());
        }
        remove_made(&self.made);
    }
}

/// A log folder that no run uses, and that none can claim until this is dropped.
pub(crate) struct Unused {
    dir: OwnedFd,
    manifest: File,
}

/// Keeps runs from claiming a folder until it is dropped; `None` if a run uses it, or there is no such folder.
pub(crate) fn lock(path: &Path) -> Option<Unused> {
    Unused::take(open_folder(CWD, path.as_os_str(), OFlags::empty()).ok()?)
}

/// As [`lock`], if the folder and the list in it are the caller's alone, and nobody else can put another in its place.
///
/// # Errors
/// A run uses the folder.
pub(crate) fn lock_safe(path: &Path) -> Result<Option<Unused>, InUse> {
    let is_safe = || danger(path).is_ok_and(|why| why.is_none());
    let open = || {
        open_folder(CWD, path.as_os_str(), OFlags::empty())
            .ok()
            .filter(is_private)
    };
    let Some(dir) = is_safe().then(open).flatten() else {
        return Ok(None);
    };
    let unused = Unused::take(dir).ok_or(InUse)?;
    Ok(is_private(&unused.manifest).then_some(unused))
}

/// A run uses the folder.
pub(crate) struct InUse;

impl Unused {
    /// Writes a file whole into a folder below it, or into itself if the path is empty. No link is followed.
    ///
    /// # Errors
    /// An error of the system, or the folder below is not the caller's alone.
    pub(crate) fn write(&self, below: &Path, name: &str, content: &[u8]) -> std::io::Result<()> {
        if below.as_os_str().is_empty() {
            return write_whole_in(&self.dir, Path::new(name), content);
        }
        let dir = open_folder(&self.dir, below.as_os_str(), OFlags::NOFOLLOW)?;
        if !is_private(&dir) {
            return Err(rustix::io::Errno::PERM.into());
        }
        write_whole_in(dir, Path::new(name), content)
    }

    fn take(dir: OwnedFd) -> Option<Unused> {
        let manifest = open_manifest(&dir, OFlags::RDONLY).ok()?;
        flock(&manifest, FlockOperation::NonBlockingLockExclusive)
            .is_ok()
            .then_some(Unused { dir, manifest })
    }

    /// Removes what runs wrote into it. Returns whether nothing else was in it, so that it is empty now. It is reached by
    /// its descriptor alone: its name may belong to something else by now.
    pub(crate) fn clear(mut self) -> bool {
        let mut names = String::new();
        if self.manifest.read_to_string(&mut names).is_err() {
            return false;
        }
        for name in names.lines().filter(|name| is_plain(name)) {
            remove_tree(&self.dir, OsStr::new(name));
        }
        let earlier = |name: &OsStr| {
            let number = name.to_str().and_then(|name| name.strip_prefix(EARLIER));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        entries(&self.dir)
            .iter()
            .filter(|name| earlier(name))
            .for_each(|name| remove_tree(&self.dir, name));
        let only_ours = entries(&self.dir).iter().all(|name| name == MANIFEST);
        only_ours && unlinkat(&self.dir, MANIFEST, AtFlags::empty()).is_ok()
    }
}

/// Locks the log folder of this name in a folder, if the folder and the list in it are the caller's alone.
pub(crate) fn lock_own(parent: impl AsFd, name: &OsStr) -> Option<Unused> {
    let dir = open_folder(parent, name, OFlags::NOFOLLOW)
        .ok()
        .filter(is_private)?;
    Unused::take(dir).filter(|unused| is_private(&unused.manifest))
}

/// Whether a folder of this name in a folder belongs to the caller, and nobody else may write to it.
pub(crate) fn is_own(parent: impl AsFd, name: &OsStr) -> bool {
    open_folder(parent, name, OFlags::NOFOLLOW).is_ok_and(|dir| is_private(&dir))
}

fn is_private(file: &impl AsFd) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fstat(file).is_ok_and(|stat| stat.st_uid == user && stat.st_mode & 0o022 == 0)
}

/// Opens a folder.
///
/// # Errors
/// An error of the system.
pub(crate) fn open_folder(
    parent: impl AsFd,
    name: &OsStr,
    more: OFlags,
) -> rustix::io::Result<OwnedFd> {
    openat(
        parent,
        name,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | more,
        Mode::empty(),
    )
}

/// Opens a folder by its name. If that is a link, the caller or root must have made it: whoever else did chose the folder.
pub(crate) fn open_through_own_links(path: &Path) -> Option<OwnedFd> {
    let mut at = path.to_owned();
    for _ in 0..=MOST_LINKS {
        if let Ok(dir) = open_folder(CWD, at.as_os_str(), OFlags::NOFOLLOW) {
            return Some(dir);
        }
        // By its descriptor: another link can have its name by now.
        let link = openat(
            CWD,
            &at,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()?;
        let made_by = fstat(&link).ok()?.st_uid;
        if made_by != 0 && made_by != rustix::process::geteuid().as_raw() {
            return None;
        }
        let target = readlinkat(&link, "", Vec::new()).ok()?;
        at.pop();
        at.push(OsStr::from_bytes(target.to_bytes()));
    }
    None
}

fn open_manifest(dir: &OwnedFd, how: OFlags) -> std::io::Result<File> {
    // Without waiting: it might be a pipe.
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(dir, MANIFEST, flags, MANIFEST_MODE)?;
    let stat = fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(std::io::Error::other(format!(
            "{MANIFEST} in it is not a regular file"
        )));
    }
    // Older ones could be read by all.
    if stat.st_mode & 0o077 != 0 && stat.st_uid == rustix::process::geteuid().as_raw() {
        let _ = fchmod(&fd, MANIFEST_MODE);
    }
    Ok(fd.into())
}

/// The names in a folder.
pub(crate) fn entries(dir: impl AsFd) -> Vec<std::ffi::OsString> {
    let all = Dir::read_from(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let names = all.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}

/// Removes a file, a link, or a folder with all that is in it. No link is followed.
fn remove_tree(parent: &OwnedFd, name: &OsStr) {
    if unlinkat(parent, name, AtFlags::empty()).is_ok() {
        return;
    }
    let Ok(dir) = open_folder(parent, name, OFlags::NOFOLLOW) else {
        return;
    };
    entries(&dir)
        .iter()
        .for_each(|name| remove_tree(&dir, name));
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Removes folders that were made and not used, the deepest first, as far as they are empty.
fn remove_made(made: &[PathBuf]) {
    if let Some(deepest) = made.first() {
        let _ = std::fs::remove_file(deepest.join(MANIFEST));
    }
    made.iter()
        .for_each(|folder| drop(std::fs::remove_dir(folder)));
}

/// A name in a manifest must not lead out of the folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

fn is_there(dir: &OwnedFd, name: &str) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Moves what an earlier run left into a folder of its own, and returns its name; `None` if it left nothing.
fn put_aside(dir: &OwnedFd, names: &HashSet<&str>) -> rustix::io::Result<Option<String>> {
    let left: Vec<&&str> = names.iter().filter(|name| is_there(dir, name)).collect();
    if left.is_empty() {
        return Ok(None);
    }
    let mut number = 1;
    let aside = loop {
        let aside = format!("{EARLIER}{number}");
        match mkdirat(dir, &aside, Mode::from_raw_mode(0o755)) {
            Ok(()) => break aside,
            Err(rustix::io::Errno::EXIST) => number += 1,
            Err(error) => return Err(error),
        }
    };
    let into = open_folder(dir, OsStr::new(&aside), OFlags::NOFOLLOW)?;
    left.into_iter()
        .try_for_each(|name| renameat(dir, *name, &into, *name))?;
    Ok(Some(aside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn why(path: &Path, wanted: &[&str]) -> String {
        Folder::claim(path, &names(wanted), false)
            .err()
            .unwrap()
            .to_string()
    }

    #[test]
    fn what_an_earlier_run_left_is_put_aside_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        for round in 1..=3 {
            let folder = Folder::claim(&logs, &names(&["x.out", "solo"]), false).unwrap();
            folder
                .create("x.out")
                .unwrap()
                .write_all(round.to_string().as_bytes())
                .unwrap();
            std::fs::create_dir(logs.join("solo")).unwrap();
            assert!(folder.create("x.out").is_err(), "it is there");
            std::fs::write(logs.join("mine"), "mine").unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap();
        assert_eq!(
            [
                read("earlier-1/x.out"),
                read("earlier-2/x.out"),
                read("x.out")
            ],
            ["1", "2", "3"]
        );
        assert!(logs.join("earlier-2/solo").is_dir());
        assert_eq!(read("mine"), "mine");
    }

    #[test]
    fn files_of_others_and_runs_that_go_on_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.out"), "theirs").unwrap();
        let told = why(dir.path(), &["x.out", "y.out"]);
        assert!(
            told.contains("there is x.out already") && told.contains("nothing was started"),
            "{told}"
        );
        symlink("/nowhere", dir.path().join("y.out")).unwrap();
        assert!(
            why(dir.path(), &["y.out"]).contains("there is y.out already"),
            "also a link that leads nowhere"
        );
        let folder = Folder::claim(dir.path(), &names(&["z.out"]), false).unwrap();
        assert!(why(dir.path(), &["w.out"]).contains("another run is using it"));
        drop(folder);
        assert!(Folder::claim(dir.path(), &names(&["w.out"]), false).is_ok());
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_unless_asked() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let told = why(dir.path(), &["x.out"]);
        assert!(
            told.contains("others may write to it (mode 1777)") && told.contains("--shared-logs"),
            "{told}"
        );
        assert!(Folder::claim(dir.path(), &names(&["x.out"]), true).is_ok());
        // A link in place of the list of files is not followed.
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "kept").unwrap();
        symlink(&target, dir.path().join(MANIFEST)).unwrap();
        assert!(Folder::claim(dir.path(), &names(&["x.out"]), false).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
    }

    #[test]
    fn nothing_is_made_below_a_folder_that_others_may_write() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let told = why(&open.join("a/b"), &["x.out"]);
        assert!(
            told.contains("others may write to the folder")
                && told.contains("/open on the way to it"),
            "{told}"
        );
        assert!(!open.join("a").exists());
        assert!(
            Folder::claim(&open.join("a/b"), &names(&["x.out"]), true).is_ok(),
            "the user may allow it"
        );
    }

    #[test]
    fn a_pipe_in_place_of_the_list_of_files_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(
            CWD,
            dir.path().join(MANIFEST),
            FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        assert!(lock(dir.path()).is_none());
        let told = why(dir.path(), &["x.out"]);
        assert!(
            told.contains(".cosched-run in it is not a regular file"),
            "{told}"
        );
    }

    #[test]
    fn nobody_else_may_lock_the_list_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let mode = || {
            dir.path()
                .join(MANIFEST)
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        drop(Folder::claim(dir.path(), &names(&["x.out"]), false).unwrap());
        assert_eq!(mode(), 0o600);
        for look in [
            |path: &Path| drop(lock(path)),
            |path: &Path| drop(Folder::claim(path, &[], false).unwrap()),
        ] {
            std::fs::set_permissions(
                dir.path().join(MANIFEST),
                std::fs::Permissions::from_mode(0o644),
            )
            .unwrap();
            look(dir.path());
            assert_eq!(mode(), 0o600, "one of an older run");
        }
    }

    #[test]
    fn what_takes_the_name_of_a_folder_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, other) = (dir.path().join("logs"), dir.path().join("other"));
        drop(Folder::claim(&logs, &names(&["x.out", "solo"]), false).unwrap());
        for folder in [&logs, &other] {
            std::fs::create_dir_all(folder.join("solo/deep")).unwrap();
            std::fs::write(folder.join("x.out"), "x").unwrap();
            std::fs::write(folder.join("solo/deep/y.out"), "y").unwrap();
        }
        let unused = lock(&logs).unwrap();
        // A link on the way to be removed is none to follow either.
        symlink(&other, logs.join("solo/deep/link")).unwrap();
        std::fs::rename(&logs, dir.path().join("moved")).unwrap();
        symlink(&other, &logs).unwrap();
        assert!(unused.clear());
        assert_eq!(
            entries(
                open_folder(CWD, dir.path().join("moved").as_os_str(), OFlags::empty()).unwrap()
            )
            .len(),
            0
        );
        assert!(other.join("x.out").exists() && other.join("solo/deep/y.out").exists());
    }

    #[test]
    fn a_list_that_leads_elsewhere_moves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        std::fs::write(dir.path().join("precious"), "kept").unwrap();
        std::fs::write(logs.join(MANIFEST), "../precious\n..\n\n").unwrap();
        Folder::claim(&logs, &names(&["x.out"]), false).unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("precious")).unwrap(),
            "kept"
        );
    }

    #[test]
    fn a_claim_that_fails_leaves_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        Folder::claim(&logs, &names(&["x.out"]), false)
            .unwrap()
            .abandon(&["x.out"]);
        assert!(!dir.path().join("a").exists());
    }
}
