//! The folder for the files of live runs, writable by its user only: below `$XDG_RUNTIME_DIR`, `/run/user/UID`, or
//! `/tmp`. The folder that [`RUNS_DIR`](crate::root::RUNS_DIR) names replaces all of them.
//!
//! A file here lists stopped processes. A user who could write to it could make others continue or kill foreign
//! processes. So a folder is used only if it belongs to its user and no other user can access it. Links are not
//! followed.

use crate::in_dir;
use crate::root::{RUNS_DIR, Root};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::fs::{chmodat, fstat, mkdirat, mkfifoat, openat, renameat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder that only one user can access.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    fd: OwnedFd,
    /// The name by which it was opened.
    path: PathBuf,
    /// Its device and inode: it may have several names.
    id: (u64, u64),
    /// Its owner.
    pub owner: u32,
}

impl AsFd for PrivateFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Why there is no folder for the files of the caller's runs, or no such file in it.
#[derive(Debug, thiserror::Error)]
pub enum NoFolder {
    /// Something else is in its place, or other users can access it.
    #[error("{} {why}", path.display())]
    Taken {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An error of the system.
    #[error("{}: {source}", path.display())]
    System {
        /// The folder, or the file in it.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// There is no place for it.
    #[error("there is no place for it")]
    Missing,
}

/// Why the caller's runs have no folder for their files; `None` if they have one. It is created if needed.
pub fn folder_problem(root: &Root) -> Option<NoFolder> {
    PrivateFolder::own(root).err()
}

fn system(dir: &Path, error: rustix::io::Errno) -> NoFolder {
    NoFolder::System {
        path: dir.to_owned(),
        source: error.into(),
    }
}

/// Rejects the folder unless `is_good`.
fn check(dir: &Path, is_good: bool, why: impl FnOnce() -> String) -> Result<(), NoFolder> {
    if is_good {
        return Ok(());
    }
    let (path, why) = (dir.to_owned(), why());
    Err(NoFolder::Taken { path, why })
}

const NAME: &str = "cosched";
/// Prefix of the name of a folder in /tmp; the user's number follows.
const TEMPORARY: &str = "cosched-";
/// Maximum number of entries read in a folder: root reads all users' folders, which they can fill.
const MOST_ENTRIES: usize = 100_000;

/// Maximum length of a file that is read at once.
const MOST_BYTES: u64 = 64 << 20;

impl PrivateFolder {
    /// The caller's own folder, in the first usable place; it is created if needed.
    ///
    /// # Errors
    /// Why the last place is unusable.
    pub(crate) fn own(root: &Root) -> Result<PrivateFolder, NoFolder> {
        let user = geteuid().as_raw();
        let mut problem = NoFolder::Missing;
        for place in places(root, user) {
            if place.is_usable(user) {
                match PrivateFolder::make(&place.dir, user) {
                    Ok(folder) => return Ok(folder),
                    Err(why) => problem = why,
                }
            }
        }
        if let Some(path) = root.runs_dir().filter(|dir| !dir.is_dir()) {
            let (path, why) = (
                path.to_owned(),
                format!("is no folder, and {RUNS_DIR} names it"),
            );
            return Err(NoFolder::Taken { path, why });
        }
        Err(problem)
    }

    /// Opens a folder, and makes it if it is missing.
    fn make(dir: &Path, user: u32) -> Result<PrivateFolder, NoFolder> {
        match mkdirat(CWD, dir, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => PrivateFolder::open(dir, user),
            // It may be there all the same, as on a file system that can only be read.
            Err(error) => PrivateFolder::open(dir, user).map_err(|_| system(dir, error)),
        }
    }

    /// Another handle to the same folder.
    pub(crate) fn again(&self) -> Option<PrivateFolder> {
        let fd = self.fd.try_clone().ok()?;
        Some(PrivateFolder {
            fd,
            path: self.path.clone(),
            ..*self
        })
    }

    /// All folders that the caller may act upon: its own, and for root those of all users.
    pub(crate) fn all(root: &Root) -> Vec<PrivateFolder> {
        let user = geteuid().as_raw();
        let mut dirs: Vec<(PathBuf, u32)> = places(root, user)
            .into_iter()
            .map(|place| (place.dir, user))
            .collect();
        if user == 0 {
            dirs.extend(folders_of_users(root));
        }
        let mut all = dirs
            .iter()
            .filter_map(|(dir, user)| PrivateFolder::open(dir, *user).ok())
            .collect();
        PrivateFolder::each_once(&mut all);
        all
    }

    /// Removes duplicates; the first one stays.
    pub(crate) fn each_once(folders: &mut Vec<PrivateFolder>) {
        let mut seen = HashSet::new();
        folders.retain(|folder| seen.insert(folder.id));
    }

    fn open(dir: &Path, user: u32) -> Result<PrivateFolder, NoFolder> {
        // Opening another user's folder may fail. Its owner is a better reason.
        let there =
            statat(CWD, dir, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| system(dir, error))?;
        let is_folder = FileType::from_raw_mode(there.st_mode) == FileType::Directory;
        check(dir, is_folder, || "is no folder".to_owned())?;
        check_owner(dir, there.st_uid, user)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = openat(CWD, dir, flags, Mode::empty()).map_err(|error| system(dir, error))?;
        let stat = fstat(&fd).map_err(|error| system(dir, error))?;
        check_owner(dir, stat.st_uid, user)?;
        check(dir, stat.st_mode & 0o077 == 0, || {
            format!("is open to others (mode {:o})", stat.st_mode & 0o7777)
        })?;
        Ok(PrivateFolder {
            fd,
            path: dir.to_owned(),
            id: (stat.st_dev, stat.st_ino),
            owner: user,
        })
    }

    /// Creates a file for reading and writing, and replaces one of that name.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn create(&self, name: &str) -> Result<File, NoFolder> {
        self.remove(name);
        in_dir::create_new(&self.fd, name).map_err(|error| self.problem(name, error.into()))
    }

    /// Creates and opens a named pipe, and replaces one of that name. It is open for writing too, so that its reader sees
    /// no end of file. Reading and writing never block.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn create_pipe(&self, name: &str) -> Result<File, NoFolder> {
        self.remove(name);
        self.create_new_pipe(name)
            .map_err(|error| self.problem(name, error.into()))
    }

    fn create_new_pipe(&self, name: &str) -> rustix::io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        mkfifoat(&self.fd, name, mode)?;
        // Whatever the umask.
        chmodat(&self.fd, name, mode, AtFlags::empty())?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.fd, name, flags, Mode::empty())?))
    }

    /// The path of a file in it.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// An error with a file in it.
    pub(crate) fn problem(&self, name: &str, source: std::io::Error) -> NoFolder {
        NoFolder::System {
            path: self.path_of(name),
            source,
        }
    }

    /// Opens a file of the folder's owner for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Option<File> {
        let (file, owner) = in_dir::open_file(&self.fd, name)?;
        (owner == self.owner).then_some(file)
    }

    /// Writes a file as a whole: a reader sees the old or the new content. `next` is its name meanwhile.
    ///
    /// # Errors
    /// An error of the system. The old content stays.
    pub(crate) fn replace(&self, next: &str, name: &str, content: &[u8]) -> Result<(), NoFolder> {
        let mut file = self.create(next)?;
        file.write_all(content)
            .map_err(|error| self.problem(next, error))?;
        renameat(&self.fd, next, &self.fd, name).map_err(|error| self.problem(name, error.into()))
    }

    /// Reads a file of the folder's owner, and its age in seconds.
    ///
    /// # Errors
    /// An error of the system; `NotFound` if there is no such file.
    pub(crate) fn read(&self, name: &str) -> std::io::Result<(Vec<u8>, f64)> {
        let file = self.open_file(name.as_ref()).ok_or(ErrorKind::NotFound)?;
        let age = SystemTime::now().duration_since(file.metadata()?.modified()?);
        let mut content = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut content)?;
        Ok((content, age.unwrap_or_default().as_secs_f64()))
    }

    pub(crate) fn as_raw_fd(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.fd)
    }

    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) {
        in_dir::remove(&self.fd, name);
    }

    /// The names in it with this prefix, sorted.
    pub(crate) fn names(&self, prefix: &str) -> Vec<OsString> {
        in_dir::names(&self.fd, prefix, MOST_ENTRIES)
    }
}

fn check_owner(dir: &Path, owner: u32, user: u32) -> Result<(), NoFolder> {
    check(dir, owner == user, || format!("belongs to user {owner}"))
}

struct Place {
    /// A folder that must be private too.
    parent: Option<PathBuf>,
    dir: PathBuf,
}

impl Place {
    /// Whether no other user can replace files in its parent.
    fn is_usable(&self, user: u32) -> bool {
        self.parent
            .as_deref()
            .is_none_or(|parent| is_private(parent, user))
    }

    fn below(parent: PathBuf) -> Place {
        Place {
            dir: parent.join(NAME),
            parent: Some(parent),
        }
    }
}

fn places(root: &Root, user: u32) -> Vec<Place> {
    let common = Place {
        parent: None,
        dir: root.common_folder().join(format!("{TEMPORARY}{user}")),
    };
    if root.runs_dir().is_some() {
        return vec![common];
    }
    let named = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute() && *root == Root::default());
    let mut places: Vec<Place> = named.map(Place::below).into_iter().collect();
    places.push(Place::below(root.path(&format!("/run/user/{user}"))));
    places.push(common);
    places
}

/// The places where users may have folders, with the users.
fn folders_of_users(root: &Root) -> Vec<(PathBuf, u32)> {
    let mut dirs = Vec::new();
    if root.runs_dir().is_none() {
        add_folders_of_users(&root.path("/run/user"), "", NAME, &mut dirs);
    }
    add_folders_of_users(&root.common_folder(), TEMPORARY, "", &mut dirs);
    dirs
}

/// Adds `PARENT/PREFIXuser/NAME` for each number of a user.
fn add_folders_of_users(parent: &Path, prefix: &str, name: &str, dirs: &mut Vec<(PathBuf, u32)>) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let entry_name = entry.file_name();
        let user = entry_name
            .to_str()
            .and_then(|text| text.strip_prefix(prefix));
        if let Some(user) = user.and_then(|user| user.parse().ok()) {
            dirs.push((entry.path().join(name), user));
        }
    }
}

/// Whether a folder belongs to the user, and no other user may write to it.
fn is_private(dir: &Path, user: u32) -> bool {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let Ok(fd) = openat(CWD, dir, flags, Mode::empty()) else {
        return false;
    };
    fstat(&fd).is_ok_and(|stat| stat.st_uid == user && stat.st_mode & 0o022 == 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A small tree, and the place of the caller's folder in it.
    pub(crate) fn tree() -> (tempfile::TempDir, Root, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let root = Root::new(dir.path());
        let own = dir
            .path()
            .join(format!("tmp/cosched-{}", geteuid().as_raw()));
        (dir, root, own)
    }

    #[test]
    fn a_folder_is_made_for_the_user_alone() {
        let (dir, root, own) = tree();
        let folder = PrivateFolder::own(&root).unwrap();
        assert_eq!(
            std::fs::metadata(&own).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(folder.create("run-1").is_ok());
        assert_eq!(folder.names("run-"), ["run-1"]);
        assert!(folder.open_file(OsStr::new("run-1")).is_some());
        assert_eq!(PrivateFolder::all(&root).len(), 1);
        // If systemd provides a folder for the user, that is used.
        let usual = dir.path().join(format!("run/user/{}", geteuid().as_raw()));
        std::fs::create_dir_all(&usual).unwrap();
        std::fs::set_permissions(&usual, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(PrivateFolder::own(&root).unwrap().names("run-").is_empty());
        assert!(usual.join("cosched").is_dir());
    }

    #[test]
    fn a_folder_with_several_names_is_one() {
        let (dir, root, own) = tree();
        let user = geteuid().as_raw();
        let usual = dir.path().join(format!("run/user/{user}"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::create_dir_all(usual.parent().unwrap()).unwrap();
        // A link above the folder is followed.
        std::os::unix::fs::symlink(dir.path().join("tmp"), &usual).unwrap();
        std::fs::rename(&own, dir.path().join("tmp/cosched")).unwrap();
        let open = |path: PathBuf| PrivateFolder::open(&path, user).unwrap();
        let mut all = vec![
            open(usual.join("cosched")),
            open(dir.path().join("tmp/cosched")),
        ];
        PrivateFolder::each_once(&mut all);
        assert_eq!(all.len(), 1);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(PrivateFolder::all(&root).len(), 2, "these are two");
    }

    #[test]
    fn what_others_could_write_to_is_not_trusted() {
        let (dir, root, own) = tree();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
        assert!(
            matches!(PrivateFolder::own(&root), Err(NoFolder::Taken { .. })),
            "a link"
        );
        std::fs::remove_file(&own).unwrap();
        std::fs::create_dir(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            matches!(PrivateFolder::own(&root), Err(NoFolder::Taken { .. })),
            "open to all"
        );
        assert!(PrivateFolder::all(&root).is_empty());
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = PrivateFolder::own(&root).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", own.join("run-2")).unwrap();
        assert!(
            folder.open_file(OsStr::new("run-2")).is_none(),
            "a link in it"
        );
        assert!(
            folder.create("run-2").is_ok(),
            "the link is replaced, and not followed"
        );
        assert!(
            !std::fs::symlink_metadata(own.join("run-2"))
                .unwrap()
                .is_symlink()
        );
    }

    #[test]
    fn what_is_in_the_place_of_the_folder_is_told() {
        let (_dir, root, own) = tree();
        std::fs::write(&own, "").unwrap();
        assert_eq!(
            folder_problem(&root).unwrap().to_string(),
            format!("{} is no folder", own.display())
        );
        std::fs::remove_file(&own).unwrap();
        drop(PrivateFolder::own(&root).unwrap());
        assert!(folder_problem(&root).is_none());
        if std::os::unix::fs::chown(&own, Some(12345), None).is_err() {
            return eprintln!("skipped, because only root may give folders away");
        }
        let told = format!("{} belongs to user 12345", own.display());
        assert_eq!(folder_problem(&root).unwrap().to_string(), told);
        assert_eq!(PrivateFolder::own(&root).unwrap_err().to_string(), told);
    }
}
