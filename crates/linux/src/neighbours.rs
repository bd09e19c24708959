//! Runs on one machine know of each other: each publishes the CPUs that it uses in a file, and holds a lock on that file as
//! long as it lives. Whoever can lock the file knows that its run is dead, however it died, and in whichever namespace. The
//! guardian and the jobs do not hold the lock: they close the descriptor.
//!
//! The files of a user are seen by that user and by root. Those of root are in a folder that all can read, so that
//! everybody knows of them. Runs of two ordinary users do not know of each other: a folder in which each can write would
//! let each keep the other off all CPUs.

use crate::process::{self, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::run_id::{Fate, Fates, RunId};
use crate::runtime::Folder;
use crate::sys::RawPid;
use cosched_core::CpuSet;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// The beginning of the names of the files.
const PREFIX: &str = "cpus-";
const FIRST_LINE: &str = "cosched cpus 1";
/// Longer files are none of ours.
const MOST_BYTES: u64 = 64 << 10;
/// Longest wait for runs that choose their CPUs at the same moment. They hold the lock for less than a millisecond;
/// whoever holds it for longer must not keep a run from starting.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// Another run that goes on, and is none of those that this one is a job of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its process, as it is numbered in its own PID namespace.
    pub pid: i32,
    /// The CPUs that it uses.
    pub cpus: CpuSet,
}

/// How a run chooses its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Those that nobody else uses, if there are any; else all.
    Free,
    /// All that it was given.
    All,
}

/// The CPUs that a run uses, as others see it. They are given back when this is dropped, or when the process ends.
#[derive(Debug)]
pub struct Seat {
    folder: Folder,
    name: String,
    /// Its lock tells that the run goes on.
    _file: File,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.folder.remove(&self.name);
    }
}

/// What came of a choice.
#[derive(Debug)]
pub struct Chosen {
    /// The CPUs to use; none only if none were given.
    pub cpus: CpuSet,
    /// The other runs that use any of the CPUs that were given.
    pub others: Vec<Neighbour>,
    /// `None` where it was not asked for, and where there is no place for it: others do not know of this run then.
    pub seat: Option<Seat>,
}

/// Chooses CPUs from `given`, beside the runs that go on. With `publish` others know of it from now on. Of two runs that
/// choose at the same moment the second sees the first.
pub fn choose_cpus(root: &Root, given: &CpuSet, share: Share, publish: bool) -> Chosen {
    let outer = std::env::var(RUN_VARIABLE)
        .ok()
        .and_then(|token| RunId::parse(&token));
    let choice = Choice {
        root,
        family: ancestors(root),
        outer,
    };
    choice.choose(given, share, publish.then(|| RunId::own(root)).flatten())
}

struct Choice<'a> {
    root: &'a Root,
    /// The processes above this one, and this one, with their start times.
    family: Vec<(RawPid, u64)>,
    /// The run that this process is a job of.
    outer: Option<RunId>,
}

impl Choice<'_> {
    fn choose(&self, given: &CpuSet, share: Share, publish_as: Option<RunId>) -> Chosen {
        let folders = folders(self.root);
        // Held until the choice is published.
        let _locks = lock_all(&folders);
        let mut others: Vec<Neighbour> = {
            let fates = Fates::new(self.root);
            folders
                .iter()
                .flat_map(|folder| self.neighbours(folder, &fates))
                .collect()
        };
        others.retain(|other| !other.cpus.intersection(given).is_empty());
        let mut cpus = given.clone();
        others.iter().for_each(|other| cpus.remove_all(&other.cpus));
        if share == Share::All || cpus.is_empty() {
            cpus = given.clone();
        }
        let seat = publish_as.and_then(|run| Seat::take(self.root, &run, &cpus));
        Chosen { cpus, others, seat }
    }

    /// The runs that have a file in a folder. The files of dead runs are removed.
    fn neighbours(&self, folder: &Folder, fates: &Fates<'_>) -> Vec<Neighbour> {
        let mut found = Vec::new();
        for name in folder.names(PREFIX) {
            let Some((run, cpus)) = live(folder, &name, fates) else {
                continue;
            };
            // Whoever writes such a file can name any process. That of another user is no run of theirs.
            let users = process::users(self.root, run.pid);
            let is_theirs = folder.is_public()
                || folder.is_own()
                || users.is_empty()
                || users.contains(&folder.owner());
            let is_above = Some(run) == self.outer || self.family.contains(&(run.pid, run.start));
            if is_theirs && !is_above {
                found.push(Neighbour { pid: run.pid, cpus });
            }
        }
        found
    }
}

/// The run that a file is of, and its CPUs. `None` if it is dead, or can't be told; the file of a dead one is removed.
fn live(folder: &Folder, name: &OsStr, fates: &Fates<'_>) -> Option<(RunId, CpuSet)> {
    let file = folder.open_file(name)?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        folder.remove(name);
        return None;
    }
    let (run, cpus) = read(&file, name)?;
    // Whoever may read a file can lock it. So a lock does not bring a run back to life that is seen to be dead.
    if fates.of(&run) == Fate::Dead {
        folder.remove(name);
        return None;
    }
    Some((run, cpus))
}

/// Removes the files of dead runs, as far as they are covered and the caller may.
pub(crate) fn forget_dead(root: &Root, covers: impl Fn(&RunId) -> bool) {
    let fates = Fates::new(root);
    for folder in Folder::public(root).into_iter().chain(Folder::all(root)) {
        for name in folder.names(PREFIX) {
            let run = name
                .to_str()
                .and_then(|name| RunId::parse(name.strip_prefix(PREFIX)?));
            if run.is_some_and(|run| covers(&run)) {
                live(&folder, &name, &fates);
            }
        }
    }
}

impl Seat {
    fn take(root: &Root, run: &RunId, cpus: &CpuSet) -> Option<Seat> {
        let folder = Folder::public(root)
            .filter(Folder::is_own)
            .or_else(|| Folder::own(root).ok())?;
        let name = format!("{PREFIX}{run}");
        // Under another name first: a file that nobody has locked counts as that of a dead run.
        let draft = format!("new-{name}");
        let mut file = folder.create(&draft).ok()?;
        let text = format!("{FIRST_LINE}\nrun {run}\ncpus {cpus}\n");
        let is_done = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && file.write_all(text.as_bytes()).is_ok()
            && folder.rename(&draft, &name);
        if !is_done {
            folder.remove(&draft);
        }
        is_done.then_some(Seat {
            folder,
            name,
            _file: file,
        })
    }
}

/// The folders with files of runs, in an order that is the same for all, each once.
fn folders(root: &Root) -> Vec<Folder> {
    let mut all: Vec<Folder> = Folder::public(root).into_iter().collect();
    // The own one is made if needed, so that there is something to lock.
    let _ = Folder::own(root);
    all.extend(Folder::all(root));
    Folder::each_once(&mut all);
    all
}

/// Locks folders; those that somebody else holds for long stay unlocked.
fn lock_all(folders: &[Folder]) -> Vec<Lock<'_>> {
    let end = Instant::now() + PATIENCE;
    folders
        .iter()
        .filter_map(|folder| lock_until(folder, end))
        .collect()
}

fn lock_until(folder: &Folder, end: Instant) -> Option<Lock<'_>> {
    loop {
        if flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Some(Lock(folder));
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

struct Lock<'a>(&'a Folder);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

fn read(file: &File, name: &OsStr) -> Option<(RunId, CpuSet)> {
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let run = RunId::parse(lines.next()?.strip_prefix("run ")?)?;
    let cpus: CpuSet = lines.next()?.strip_prefix("cpus ")?.parse().ok()?;
    (name.to_str()? == format!("{PREFIX}{run}")).then_some((run, cpus))
}

/// This process and those that it descends from.
fn ancestors(root: &Root) -> Vec<(RawPid, u64)> {
    let mut all: Vec<(RawPid, u64)> = Vec::new();
    let mut next = std::process::id() as RawPid;
    while let Some(process) = Process::read(root, next).filter(|_| next > 0) {
        if all.iter().any(|(pid, _)| *pid == process.pid) {
            break;
        }
        all.push((process.pid, process.start));
        next = process.parent;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    fn run(text: &str) -> RunId {
        RunId::parse(text).unwrap()
    }

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn stranger(root: &Root) -> Choice<'_> {
        Choice {
            root,
            family: Vec::new(),
            outer: None,
        }
    }

    #[test]
    fn cpus_are_shared_out_until_there_are_none() {
        let (_dir, root) = tree();
        let first = stranger(&root).choose(&set("0-1"), Share::Free, Some(run("10-1-5")));
        assert_eq!(
            (first.cpus.to_string(), first.others.len()),
            ("0-1".to_owned(), 0)
        );
        let second = stranger(&root).choose(&set("0-3"), Share::Free, Some(run("11-1-5")));
        assert_eq!(
            (second.cpus.to_string(), second.others[0].pid),
            ("2-3".to_owned(), 10)
        );
        let third = stranger(&root).choose(&set("0-3"), Share::Free, Some(run("12-1-5")));
        assert_eq!(third.cpus, set("0-3"), "they collide");
        assert_eq!(
            third
                .others
                .iter()
                .map(|other| other.pid)
                .collect::<Vec<_>>(),
            [10, 11]
        );
        drop((first, third));
        let fourth = stranger(&root).choose(&set("0-3"), Share::Free, None);
        assert_eq!(fourth.cpus, set("0-1"), "what ended gave its CPUs back");
        assert!(fourth.seat.is_none());
        let stubborn = stranger(&root).choose(&set("2-3"), Share::All, None);
        assert_eq!((stubborn.cpus, stubborn.others.len()), (set("2-3"), 1));
        let elsewhere = stranger(&root).choose(&set("0-1"), Share::All, None);
        assert!(
            elsewhere.others.is_empty(),
            "only those that are in the way"
        );
    }

    #[test]
    fn files_of_dead_runs_are_removed_and_nonsense_is_ignored() {
        let (dir, root) = tree();
        let seat = stranger(&root)
            .choose(&set("0-3"), Share::Free, Some(run("10-1-5")))
            .seat
            .unwrap();
        let own = dir.path().join(format!(
            "tmp/cosched-{}",
            rustix::process::geteuid().as_raw()
        ));
        let own = if own.join("cpus-10-1-5").exists() {
            own
        } else {
            dir.path().join("run/cosched")
        };
        let dead = own.join("cpus-9-1-5");
        std::fs::copy(own.join("cpus-10-1-5"), &dead).unwrap();
        for (name, text) in [
            ("cpus-11-1-5", "cosched cpus 1\nrun 12-1-5\ncpus 0\n"),
            ("cpus-x", ""),
            ("run-1-1-1", ""),
        ] {
            std::fs::write(own.join(name), text).unwrap();
        }
        let held = File::open(own.join("cpus-11-1-5")).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let chosen = stranger(&root).choose(&set("0-3"), Share::Free, None);
        assert_eq!(
            chosen.others,
            [Neighbour {
                pid: 10,
                cpus: set("0-3")
            }]
        );
        assert!(!dead.exists() && own.join("run-1-1-1").exists());
        drop(seat);
        assert!(
            !own.join("cpus-10-1-5").exists(),
            "a run that ends in good order leaves nothing"
        );
    }

    #[test]
    fn a_lock_by_somebody_else_does_not_bring_a_run_back_to_life() {
        let (dir, root) = tree();
        link_namespace(dir.path(), "self", 5);
        write_stat(dir.path(), 1, 'S', 0);
        write_stat(dir.path(), 10, 'S', 1);
        let seats: Vec<Chosen> = ["10-1-5", "11-1-5", "12-1-6"]
            .into_iter()
            .map(|text| stranger(&root).choose(&set("0-3"), Share::All, Some(run(text))))
            .collect();
        let others = stranger(&root)
            .choose(&set("0-3"), Share::Free, None)
            .others;
        let pids: Vec<i32> = others.iter().map(|other| other.pid).collect();
        assert_eq!(pids, [10, 12], "what lives, and what can't be seen");
        drop(seats);
    }

    /// Whoever writes a file can name any process.
    #[test]
    fn a_user_can_not_take_cpus_in_the_name_of_others() {
        let (dir, root) = tree();
        link_namespace(dir.path(), "self", 5);
        write_stat(dir.path(), 1, 'S', 0);
        let (user, folder) = (2_000_001, dir.path().join("tmp/cosched-2000001"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut held = Vec::new();
        for (pid, owner) in [(10, user), (11, 0)] {
            write_stat(dir.path(), pid, 'S', 1);
            let status = format!("Uid:\t{owner}\t{owner}\t{owner}\t{owner}\n");
            std::fs::write(dir.path().join(format!("proc/{pid}/status")), status).unwrap();
            let file = folder.join(format!("cpus-{pid}-1-5"));
            std::fs::write(
                &file,
                format!("cosched cpus 1\nrun {pid}-1-5\ncpus {}\n", pid - 10),
            )
            .unwrap();
            held.push(File::open(&file).unwrap());
            if let Err(error) = chown(&file, Some(user), None) {
                return eprintln!("skipped, because only root may give files away: {error}");
            }
        }
        chown(&folder, Some(user), None).unwrap();
        held.iter()
            .for_each(|file| flock(file, FlockOperation::LockExclusive).unwrap());
        let chosen = stranger(&root).choose(&set("0-3"), Share::Free, None);
        assert_eq!(
            chosen.others,
            [Neighbour {
                pid: 10,
                cpus: set("0")
            }],
            "process 11 is somebody else's"
        );
    }

    #[test]
    fn files_of_dead_runs_are_forgotten_as_far_as_they_are_covered() {
        let (dir, root) = tree();
        link_namespace(dir.path(), "self", 5);
        write_stat(dir.path(), 1, 'S', 0);
        write_stat(dir.path(), 10, 'S', 1);
        let folder = Folder::public(&root)
            .filter(Folder::is_own)
            .or_else(|| Folder::own(&root).ok())
            .unwrap();
        let seat = stranger(&root)
            .choose(&set("0-3"), Share::All, Some(run("10-1-5")))
            .seat
            .unwrap();
        for name in ["cpus-11-1-5", "cpus-12-1-5", "cpus-x"] {
            folder.create(name).unwrap();
        }
        forget_dead(&root, |dead| *dead == run("11-1-5"));
        assert_eq!(
            folder.names(PREFIX),
            ["cpus-10-1-5", "cpus-12-1-5", "cpus-x"]
        );
        forget_dead(&root, |_| true);
        assert_eq!(
            folder.names(PREFIX),
            ["cpus-10-1-5", "cpus-x"],
            "one lives, and one is nobody's"
        );
        drop(seat);
    }

    #[test]
    fn a_run_among_the_jobs_does_not_collide_with_those_around_it() {
        let (_dir, root) = tree();
        let _outer = stranger(&root).choose(&set("0-3"), Share::Free, Some(run("10-1-5")));
        let _inner = stranger(&root).choose(&set("0-3"), Share::Free, Some(run("20-7-5")));
        let choice = Choice {
            root: &root,
            family: vec![(30, 9), (20, 7)],
            outer: Some(run("10-1-5")),
        };
        assert!(
            choice
                .choose(&set("0-3"), Share::Free, None)
                .others
                .is_empty()
        );
        // Another process may have had the number before.
        let choice = Choice {
            root: &root,
            family: vec![(20, 8)],
            outer: None,
        };
        assert_eq!(
            choice.choose(&set("0-3"), Share::Free, None).others.len(),
            2
        );
        assert!(ancestors(&Root::default()).len() > 1);
    }

    #[test]
    fn of_runs_that_start_at_once_only_one_believes_that_it_is_alone() {
        let (_dir, root) = tree();
        let chosen: Vec<Chosen> = std::thread::scope(|scope| {
            let start = |number: u32| {
                let root = &root;
                scope.spawn(move || {
                    stranger(root).choose(
                        &set("0-7"),
                        Share::Free,
                        Some(run(&format!("{number}-1-5"))),
                    )
                })
            };
            let all: Vec<_> = (1..=8).map(start).collect();
            all.into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut seen: Vec<usize> = chosen.iter().map(|chosen| chosen.others.len()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_lock_that_somebody_keeps_delays_nobody_for_long() {
        let (_dir, root) = tree();
        let folder = Folder::own(&root).unwrap();
        flock(&folder, FlockOperation::LockExclusive).unwrap();
        assert_eq!(
            stranger(&root)
                .choose(&set("0"), Share::Free, Some(run("10-1-5")))
                .cpus,
            set("0")
        );
    }
}
