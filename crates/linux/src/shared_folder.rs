//! The folder in which each run publishes its CPUs for the runs of all users: `/tmp/cosched-cpus`, or `cosched-cpus` in
//! the folder of [`RUNS_DIR`](crate::root::RUNS_DIR).
//!
//! The first run creates it. All users may create files in it, and remove only their own (mode 1777). A file counts as
//! its owner's. The folder is not used if it is a link or has another mode.

use crate::in_dir;
use crate::root::Root;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::fs::{
    chmodat, fchmod, flock, fstat, mkdirat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

const NAME: &str = "cosched-cpus";
/// Sticky, and open to all.
const MODE: u32 = 0o1777;
/// Prefix of a file that is being written.
const NEXT: &str = "next-";
/// Maximum number of files that are looked at: any user can fill the folder.
const MOST_FILES: usize = 1024;

/// The folder.
#[derive(Debug)]
pub(crate) struct SharedFolder {
    fd: OwnedFd,
}

impl SharedFolder {
    /// Opens the folder, and creates it if there is none. `None` if it cannot be trusted.
    pub(crate) fn open(root: &Root) -> Option<SharedFolder> {
        let dir = root.common_folder().join(NAME);
        let mut fd = open_dir(&dir);
        if matches!(fd, Err(Errno::NOENT)) {
            make(&dir);
            fd = open_dir(&dir);
        }
        let fd = fd.ok()?;
        let mode = fstat(&fd).ok()?.st_mode & 0o7777;
        (mode == MODE).then_some(SharedFolder { fd })
    }

    /// Publishes a file that everyone can read. It counts while the returned file is open, which holds a lock on it.
    pub(crate) fn publish(&self, name: &str, text: &str) -> Option<File> {
        let next = format!("{NEXT}{name}");
        self.remove(&next);
        let mut file = in_dir::create_new(&self.fd, &next).ok()?;
        // Others cannot open it yet, so nobody else holds the lock.
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        file.write_all(text.as_bytes()).ok()?;
        fchmod(&file, Mode::from_raw_mode(0o644)).ok()?;
        renameat(&self.fd, &next, &self.fd, name).ok()?;
        Some(file)
    }

    /// Opens a file, and returns its owner.
    pub(crate) fn open_file(&self, name: &OsStr) -> Option<(File, u32)> {
        in_dir::open_file(&self.fd, name)
    }

    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) {
        in_dir::remove(&self.fd, name);
    }

    /// The names in it with this prefix, sorted.
    pub(crate) fn names(&self, prefix: &str) -> Vec<OsString> {
        in_dir::names(&self.fd, prefix, MOST_FILES)
    }
}

fn open_dir(dir: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(CWD, dir, flags, Mode::empty())
}

/// Creates the folder, unless another run is faster. It gets its name last, because others cannot open it before it has
/// its mode.
fn make(dir: &Path) {
    let next = dir.with_extension(std::process::id().to_string());
    if mkdirat(CWD, &next, Mode::RWXU).is_err() {
        return;
    }
    let named = chmodat(CWD, &next, Mode::from_raw_mode(MODE), AtFlags::empty())
        .and_then(|()| renameat_with(CWD, &next, CWD, dir, RenameFlags::NOREPLACE));
    if named.is_err() {
        let _ = unlinkat(CWD, &next, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tests::tree;
    use rustix::process::geteuid;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn only_a_sticky_folder_is_trusted() {
        let (dir, root, _) = tree();
        let path = dir.path().join("tmp").join(NAME);
        assert!(SharedFolder::open(&root).is_some(), "it is created");
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), MODE);
        assert!(SharedFolder::open(&root).is_some(), "it is there");
        make(&path);
        let folders = path.parent().unwrap().read_dir().unwrap();
        assert_eq!(folders.count(), 1, "a second one is not left over");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            SharedFolder::open(&root).is_none(),
            "others could remove files"
        );
        std::fs::rename(&path, dir.path().join("tmp/elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(SharedFolder::open(&root).is_none(), "a link");
    }

    #[test]
    fn at_no_time_is_a_new_folder_closed_to_others() {
        let (dir, root, _) = tree();
        let path = dir.path().join("tmp").join(NAME);
        for _ in 0..50 {
            let watched = path.clone();
            let first_mode = std::thread::spawn(move || {
                loop {
                    if let Ok(folder) = watched.metadata() {
                        return folder.permissions().mode() & 0o7777;
                    }
                }
            });
            drop(SharedFolder::open(&root).unwrap());
            assert_eq!(first_mode.join().unwrap(), MODE);
            std::fs::remove_dir(&path).unwrap();
        }
    }

    #[test]
    fn files_are_published_whole_and_links_are_not_read() {
        let (dir, root, _) = tree();
        let shared_folder = SharedFolder::open(&root).unwrap();
        let held = shared_folder.publish("cpus-1", "0-3\n").unwrap();
        assert_eq!(shared_folder.names("cpus-"), ["cpus-1"]);
        let (file, owner) = shared_folder.open_file(OsStr::new("cpus-1")).unwrap();
        assert_eq!(owner, geteuid().as_raw());
        assert!(flock(&file, FlockOperation::NonBlockingLockShared).is_err());
        drop(held);
        assert!(flock(&file, FlockOperation::NonBlockingLockShared).is_ok());
        let path = dir.path().join("tmp").join(NAME);
        symlink("cpus-1", path.join("cpus-2")).unwrap();
        assert!(shared_folder.open_file(OsStr::new("cpus-2")).is_none());
        std::fs::hard_link(path.join("cpus-1"), path.join("cpus-3")).unwrap();
        assert!(shared_folder.open_file(OsStr::new("cpus-3")).is_none());
    }
}
