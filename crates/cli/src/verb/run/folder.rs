//! The log folder of a run. What is in it belongs to one run: what an earlier one left there is put aside, a run that still
//! goes on there is not disturbed, and files that are not ours are not touched.

use crate::exit::usage;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Holds the names of the run's files and folders, a line each. A run that goes on has it locked.
const MANIFEST: &str = ".cosched-run";

/// Folders for what earlier runs left: this and a number.
const EARLIER: &str = "earlier-";

/// The log folder of a run that goes on. The lock ends when it is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// Folders that were made for it, the deepest first.
    made: Vec<PathBuf>,
    /// Where what an earlier run left was put, if it left anything.
    pub(crate) aside: Option<PathBuf>,
    _manifest: File,
}

impl Folder {
    /// Makes the folder if it is not there, puts aside what an earlier run left in it, and claims `names`, the files and
    /// folders that this run will make. With `shared`, others may write to the folder.
    ///
    /// # Errors
    /// The folder can't be written, others may write to it, another run uses it, or a file that is not ours has one of
    /// the names. Nothing is changed then.
    pub(crate) fn claim(path: &Path, names: &[String], shared: bool) -> anyhow::Result<Folder> {
        let fail = |why: String| usage(format!("--logs {}: {why}; nothing was started", path.display()));
        let system = |error: std::io::Error| fail(format!("{error}; choose another folder, as in --logs /tmp/run1"));
        let made: Vec<PathBuf> = path.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        // Others must not be able to put links where this run will write, whatever the mask for new files says.
        DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(system)?;
        let claimed = (|| {
            if !shared && let Some(why) = danger(path).map_err(system)? {
                return Err(fail(format!("{why}; choose a folder of your own, or allow it with --shared-logs")));
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).custom_flags(no_follow());
            let mut manifest = options.open(path.join(MANIFEST)).map_err(system)?;
            if flock(&manifest, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(fail("another run is using it; choose another folder, as in --logs /tmp/run2".to_owned()));
            }
            let mut old = String::new();
            manifest.read_to_string(&mut old).map_err(system)?;
            let old: HashSet<&str> = old.lines().filter(|name| is_plain(name)).collect();
            let taken: Vec<&str> = names
                .iter()
                .map(String::as_str)
                .filter(|name| !old.contains(name) && path.join(name).symlink_metadata().is_ok())
                .take(3)
                .collect();
            if !taken.is_empty() {
                let taken = taken.join(", ");
                return Err(fail(format!(
                    "there is {taken} already, which no run of cosched made; choose another folder"
                )));
            }
            let aside = put_aside(path, &old).map_err(system)?;
            let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
            let written = manifest.set_len(0).and_then(|()| manifest.rewind());
            written.and_then(|()| manifest.write_all(text.as_bytes())).map_err(system)?;
            Ok((manifest, aside))
        })();
        match claimed {
            Ok((manifest, aside)) => Ok(Folder { path: path.to_owned(), made, aside, _manifest: manifest }),
            Err(error) => {
                remove_empty(&made);
                Err(error)
            }
        }
    }

    /// Makes a file of the run, which must not be there yet.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn create(&self, name: &str) -> std::io::Result<File> {
        OpenOptions::new().write(true).create_new(true).custom_flags(no_follow()).open(self.path.join(name))
    }

    /// Gives the folder back: nothing was started. Removes what was made.
    pub(crate) fn abandon(self, names: &[&str]) {
        names.iter().for_each(|name| drop(std::fs::remove_file(self.path.join(name))));
        if !self.made.is_empty() {
            let _ = std::fs::remove_file(self.path.join(MANIFEST));
        }
        remove_empty(&self.made);
    }
}

/// Keeps runs from claiming a folder until it is dropped; `None` if a run uses it, or there is no such folder.
pub(crate) fn lock(path: &Path) -> Option<File> {
    let manifest = OpenOptions::new().read(true).custom_flags(no_follow()).open(path.join(MANIFEST)).ok()?;
    flock(&manifest, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(manifest)
}

/// Removes what runs wrote into a folder that no run uses, and the folder, unless something else is in it.
pub(crate) fn remove(path: &Path, mut lock: File) {
    let mut names = String::new();
    if lock.read_to_string(&mut names).is_err() {
        return;
    }
    let earlier = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix(EARLIER)?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
    };
    let asides = std::fs::read_dir(path).into_iter().flatten().filter_map(|entry| earlier(entry.ok()?));
    let asides: Vec<String> = asides.collect();
    for name in names.lines().filter(|name| is_plain(name)).chain(asides.iter().map(String::as_str)) {
        let at = path.join(name);
        // A link is removed, not followed.
        match at.symlink_metadata() {
            Ok(meta) if meta.is_dir() => drop(std::fs::remove_dir_all(&at)),
            Ok(_) => drop(std::fs::remove_file(&at)),
            Err(_) => {}
        }
    }
    let only_ours = std::fs::read_dir(path)
        .is_ok_and(|mut left| left.all(|entry| entry.is_ok_and(|entry| entry.file_name() == MANIFEST)));
    if only_ours {
        let _ = std::fs::remove_file(path.join(MANIFEST));
        let _ = std::fs::remove_dir(path);
    }
}

/// Removes folders that were made, the deepest first, as far as they are empty.
fn remove_empty(made: &[PathBuf]) {
    if let Some(deepest) = made.first() {
        let _ = std::fs::remove_file(deepest.join(MANIFEST));
    }
    made.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
}

fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// A name in a manifest must not lead out of the folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

/// Why somebody else could put links or files into a folder; `None` if nobody can.
fn danger(path: &Path) -> std::io::Result<Option<String>> {
    let own = rustix::process::geteuid().as_raw();
    let meta = path.metadata()?;
    if meta.uid() != own && meta.uid() != 0 {
        return Ok(Some(format!("it belongs to another user (number {})", meta.uid())));
    }
    if meta.mode() & 0o022 != 0 {
        return Ok(Some(format!("others may write to it (mode {:o})", meta.mode() & 0o7777)));
    }
    let link = path.symlink_metadata()?;
    if link.is_symlink() && link.uid() != own && link.uid() != 0 {
        return Ok(Some("it is a link that another user made".to_owned()));
    }
    Ok(None)
}

/// Moves what an earlier run left into a folder of its own; `None` if it left nothing.
fn put_aside(path: &Path, names: &HashSet<&str>) -> std::io::Result<Option<PathBuf>> {
    let left: Vec<&&str> = names.iter().filter(|name| path.join(name).symlink_metadata().is_ok()).collect();
    if left.is_empty() {
        return Ok(None);
    }
    let mut number = 1;
    let aside = loop {
        let aside = path.join(format!("{EARLIER}{number}"));
        match DirBuilder::new().mode(0o755).create(&aside) {
            Ok(()) => break aside,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    left.into_iter().try_for_each(|name| std::fs::rename(path.join(name), aside.join(name)))?;
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
        Folder::claim(path, &names(wanted), false).err().unwrap().to_string()
    }

    #[test]
    fn what_an_earlier_run_left_is_put_aside_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        for round in 1..=3 {
            let folder = Folder::claim(&logs, &names(&["x.out", "solo"]), false).unwrap();
            folder.create("x.out").unwrap().write_all(round.to_string().as_bytes()).unwrap();
            std::fs::create_dir(logs.join("solo")).unwrap();
            assert!(folder.create("x.out").is_err(), "it is there");
            std::fs::write(logs.join("mine"), "mine").unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap();
        assert_eq!([read("earlier-1/x.out"), read("earlier-2/x.out"), read("x.out")], ["1", "2", "3"]);
        assert!(logs.join("earlier-2/solo").is_dir());
        assert_eq!(read("mine"), "mine");
    }

    #[test]
    fn files_of_others_and_runs_that_go_on_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.out"), "theirs").unwrap();
        let told = why(dir.path(), &["x.out", "y.out"]);
        assert!(told.contains("there is x.out already") && told.contains("nothing was started"), "{told}");
        symlink("/nowhere", dir.path().join("y.out")).unwrap();
        assert!(why(dir.path(), &["y.out"]).contains("there is y.out already"), "also a link that leads nowhere");
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
        assert!(told.contains("others may write to it (mode 1777)") && told.contains("--shared-logs"), "{told}");
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
    fn a_list_that_leads_elsewhere_moves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        std::fs::write(dir.path().join("precious"), "kept").unwrap();
        std::fs::write(logs.join(MANIFEST), "../precious\n..\n\n").unwrap();
        Folder::claim(&logs, &names(&["x.out"]), false).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("precious")).unwrap(), "kept");
    }

    #[test]
    fn a_claim_that_fails_leaves_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        Folder::claim(&logs, &names(&["x.out"]), false).unwrap().abandon(&["x.out"]);
        assert!(!dir.path().join("a").exists());
    }
}
