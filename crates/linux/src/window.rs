//! The socket at which a run can be looked at, in the user's runtime folder, and the runs that go on.
//!
//! The socket is named by the identity of its run, `window-PID-START-NAMESPACE`. Nobody but the owner of the folder can
//! reach it, and root. What a killed run leaves is removed by whoever finds it.

use crate::process;
use crate::root::Root;
use crate::run_id::{Fate, RunId};
use crate::runtime::{Folder, NoFolder};
use rustix::fs::{AtFlags, Mode, chmodat};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// The beginning of the names of the sockets.
const PREFIX: &str = "window-";
/// The beginnings of the names of all files of runs that go on.
const PREFIXES: [&str; 3] = [PREFIX, "run-", "cpus-"];

/// The place of a run's socket. It is removed when this is dropped.
#[derive(Debug)]
pub struct WindowPlace {
    folder: Folder,
    name: String,
}

impl WindowPlace {
    /// Makes the socket of the run that this process leads.
    ///
    /// # Errors
    /// There is no folder for it, or it can't be made in it.
    pub fn make(root: &Root) -> Result<(WindowPlace, UnixListener), NoFolder> {
        let folder = Folder::own(root)?;
        let name = format!("{PREFIX}{}", RunId::own(root).ok_or(NoFolder::Missing)?);
        folder.remove(&name);
        let listener = listen(&folder, &name).map_err(|error| folder.problem(&name, error))?;
        Ok((WindowPlace { folder, name }, listener))
    }
}

fn listen(folder: &Folder, name: &str) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path_in(folder, name))?;
    // Nobody else can enter the folder; whatever the mask for new files says.
    chmodat(folder, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Drop for WindowPlace {
    fn drop(&mut self) {
        self.folder.remove(&self.name);
    }
}

/// A path of an entry that is short enough for a socket, and leads to this folder whatever its name becomes.
fn path_in(folder: &Folder, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

/// Whether whoever is at the other end may look at a run of this process: its own user, and root.
pub fn may_look(peer: &impl AsFd) -> bool {
    socket_peercred(peer).is_ok_and(|peer| [0, geteuid().as_raw()].contains(&peer.uid.as_raw()))
}

/// A run that goes on, or of which it can't be told here.
#[derive(Debug)]
pub struct LiveRun {
    /// Its identity, as in `COSCHED_RUN` of its jobs.
    pub run: String,
    /// Its process, as it is numbered in its own PID namespace.
    pub pid: i32,
    /// The user whose run it is.
    pub owner: u32,
    /// It certainly goes on; else it can't be seen from here.
    pub is_seen: bool,
    /// Its folder, if it has a socket in it.
    window: Option<Folder>,
}

impl LiveRun {
    /// Whether it can be looked at: it has a socket that the caller can reach.
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Connects to it.
    ///
    /// # Errors
    /// An error of the system; `NotFound` where the run has no socket.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let folder = self.window.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let stream = UnixStream::connect(path_in(folder, &format!("{PREFIX}{}", self.run)))?;
        // The folder is its owner's alone, so this can only be somebody whom the owner lets in.
        let peer = socket_peercred(&stream)?.uid.as_raw();
        if [0, self.owner].contains(&peer) {
            Ok(stream)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

/// The runs that go on and that the caller knows of, by their identities: its own, root's, and for root those of all
/// users. Sockets of dead runs are removed.
pub fn live_runs(root: &Root) -> Vec<LiveRun> {
    let mut runs: BTreeMap<String, LiveRun> = BTreeMap::new();
    for folder in Folder::all(root).into_iter().chain(Folder::public(root)) {
        let owner = folder.owner;
        for prefix in PREFIXES {
            for name in folder.names(prefix) {
                let Some(run) = RunId::in_name(&name, prefix) else {
                    continue;
                };
                let fate = run.fate(root);
                if fate == Fate::Dead {
                    if prefix == PREFIX {
                        folder.remove(&name);
                    }
                    continue;
                }
                // Whoever writes such a file can name any process.
                let users = process::users(root, run.pid);
                if run.is_here(root) && !users.is_empty() && !users.contains(&owner) {
                    continue;
                }
                let entry = runs.entry(run.to_string()).or_insert_with(|| LiveRun {
                    run: run.to_string(),
                    pid: run.pid,
                    owner,
                    is_seen: fate == Fate::Alive,
                    window: None,
                });
                if prefix == PREFIX && entry.window.is_none() {
                    entry.window = folder.again();
                    entry.owner = owner;
                }
            }
        }
    }
    runs.into_values().collect()
}

/// Removes the sockets of dead runs, as far as the caller may.
pub(crate) fn forget_dead(root: &Root) {
    for folder in Folder::all(root) {
        for name in folder.names(PREFIX) {
            if RunId::in_name(&name, PREFIX).is_some_and(|run| run.fate(root) == Fate::Dead) {
                folder.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn tree() -> (tempfile::TempDir, Root, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let root = Root::new(dir.path());
        link_namespace(dir.path(), 5);
        write_stat(dir.path(), 1, 'S', 0);
        drop(Folder::own(&root).unwrap());
        let own = dir
            .path()
            .join(format!("tmp/cosched-{}", geteuid().as_raw()));
        (dir, root, own)
    }

    fn listen(own: &std::path::Path, run: &str) -> UnixListener {
        UnixListener::bind(own.join(format!("window-{run}"))).unwrap()
    }

    #[test]
    fn a_run_with_a_window_is_found_and_answers() {
        let (dir, root, own) = tree();
        write_stat(dir.path(), 10, 'S', 1);
        write_stat(dir.path(), 11, 'S', 1);
        let listener = listen(&own, "10-1-5");
        std::fs::write(own.join("run-11-1-5"), "").unwrap();
        let runs = live_runs(&root);
        let told: Vec<(&str, bool)> = runs
            .iter()
            .map(|run| (run.run.as_str(), run.has_window()))
            .collect();
        assert_eq!(
            told,
            [("10-1-5", true), ("11-1-5", false)],
            "one of an older version has no window"
        );
        let mut stream = runs[0].connect().unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        assert!(may_look(&peer));
        stream.write_all(b"x").unwrap();
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        assert_eq!(
            runs[1].connect().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn sockets_of_dead_runs_are_removed() {
        let (dir, root, own) = tree();
        write_stat(dir.path(), 10, 'S', 1);
        let _held = ["9-1-5", "10-1-5", "8-1-5", "7-1-6"].map(|run| listen(&own, run));
        forget_dead(&root);
        let names = || {
            let mut names: Vec<String> = std::fs::read_dir(&own)
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["window-10-1-5", "window-7-1-6"]);
        let runs: Vec<(String, bool)> = live_runs(&root)
            .into_iter()
            .map(|run| (run.run, run.is_seen))
            .collect();
        assert_eq!(
            runs,
            [("10-1-5".to_owned(), true), ("7-1-6".to_owned(), false)]
        );
        assert_eq!(
            names(),
            ["window-10-1-5", "window-7-1-6"],
            "what can't be seen stays"
        );
    }

    #[test]
    fn the_socket_is_the_owners_alone_and_goes_with_its_place() {
        let root = Root::default();
        let Ok((place, _listener)) = WindowPlace::make(&root) else {
            return eprintln!("skipped, because there is no folder for the files of runs");
        };
        let path = path_in(&place.folder, &place.name);
        let mode = std::fs::symlink_metadata(&path)
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            std::fs::symlink_metadata(&path).unwrap().uid(),
            geteuid().as_raw()
        );
        let (folder, name) = (place.folder.again().unwrap(), place.name.clone());
        drop(place);
        assert!(!path_in(&folder, &name).exists());
    }

    #[test]
    fn without_a_folder_there_is_an_error() {
        let (_dir, root, own) = tree();
        std::fs::remove_dir(&own).unwrap();
        std::fs::write(&own, "").unwrap();
        assert!(matches!(
            WindowPlace::make(&root),
            Err(NoFolder::Taken { .. })
        ));
    }
}
