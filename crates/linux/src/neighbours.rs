//! Runs on one machine find each other: each run writes its CPUs into a file, and locks that file while it lives. A
//! file without a lock belongs to a dead run. This works across PID namespaces. The guardian and the jobs do not hold
//! the lock: they close the descriptor.
//!
//! A user's files are visible to that user and to root. Root's files are in a folder that everyone can read. Runs of
//! two ordinary users do not see each other: a folder writable by both would let each keep the other off all CPUs.

use crate::process::Process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::Folder;
use crate::sys::RawPid;
use cosched_core::{CpuId, CpuSet};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// Prefix of the file names.
const PREFIX: &str = "cpus-";
/// Longer files are not cosched's.
const MOST_BYTES: u64 = 64 << 10;
/// Longest wait for the lock of another run that chooses its CPUs. Choosing takes less than a millisecond; a process
/// that holds the lock for longer must not block a run's start.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// Another live run, except the runs that this run is a job of.
#[derive(Debug, PartialEq)]
pub struct Neighbour {
    /// Its process number in its own PID namespace.
    pub pid: i32,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// How a run chooses its CPUs.
#[derive(Clone, Debug, PartialEq)]
pub enum Share {
    /// CPUs without another run, if there are any; otherwise all.
    Free,
    /// Some of these: at most so many, in this order of preference.
    SomeFree(usize, Vec<CpuId>),
    /// All given CPUs.
    All,
}

/// A run's published CPUs. They are released when this is dropped, or when the process ends.
#[derive(Debug)]
pub struct Seat {
    folder: Folder,
    name: String,
    /// Its lock shows that the run is alive.
    _file: File,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.folder.remove(&self.name);
    }
}

/// The result of a choice.
#[derive(Debug)]
pub struct Chosen {
    /// The CPUs to use; empty only if none were given.
    pub cpus: CpuSet,
    /// The other runs on any of the given CPUs.
    pub others: Vec<Neighbour>,
    /// `None` if it was not requested, or if there is no place for it: others then do not see this run.
    pub seat: Option<Seat>,
}

/// Chooses CPUs from `given`, beside the live runs. With `publish` others see the choice from now on. If two runs
/// choose at the same moment, the second sees the first.
pub fn choose_cpus(root: &Root, given: &CpuSet, share: Share, publish: bool) -> Chosen {
    let publish_as = publish.then(|| RunId::own(root)).flatten();
    choose(root, &ancestors(root), given, share, publish_as)
}

/// Like [`choose_cpus`]. `family` are this process and its ancestors, with their start times.
fn choose(
    root: &Root,
    family: &[(RawPid, u64)],
    given: &CpuSet,
    share: Share,
    publish_as: Option<RunId>,
) -> Chosen {
    // The own folder is created if needed, so that there is something to lock.
    let _ = Folder::own(root);
    let folders = folders(root);
    // Held until the choice is published.
    let _locks = lock_all(&folders);
    let mut others = Vec::new();
    let mut cpus = given.clone();
    for (run, its_cpus) in live_runs(&folders) {
        let is_in_the_way = !its_cpus.intersection(given).is_empty();
        if is_in_the_way && !family.contains(&(run.pid, run.start)) {
            cpus.remove_all(&its_cpus);
            others.push(Neighbour {
                pid: run.pid,
                cpus: its_cpus,
            });
        }
    }
    if share == Share::All || cpus.is_empty() {
        cpus = given.clone();
    }
    if let Share::SomeFree(most, mut preferred) = share {
        preferred.retain(|&cpu| cpus.contains(cpu));
        cpus = preferred.into_iter().take(most).collect();
    }
    let seat = publish_as.and_then(|run| Seat::take(root, &run, &cpus));
    Chosen { cpus, others, seat }
}

/// The runs with a file in these folders. Removes the files of dead runs.
fn live_runs(folders: &[Folder]) -> Vec<(RunId, CpuSet)> {
    let mut found = Vec::new();
    for folder in folders {
        let names = folder.names(PREFIX).into_iter();
        found.extend(names.filter_map(|name| live(folder, &name)));
    }
    found
}

/// The run of a file, and its CPUs. `None` if the run is dead or the file is invalid. Removes the file of a dead run.
fn live(folder: &Folder, name: &OsStr) -> Option<(RunId, CpuSet)> {
    let run = RunId::in_name(name, PREFIX)?;
    let file = folder.open_file(name)?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        folder.remove(name);
        return None;
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some((run, text.trim_end().parse().ok()?))
}

/// Removes the files of dead runs, as far as permitted.
pub(crate) fn forget_dead(root: &Root) {
    let folders = folders(root);
    // A run that is choosing has an unlocked file for a moment.
    let _locks = lock_all(&folders);
    live_runs(&folders);
}

impl Seat {
    fn take(root: &Root, run: &RunId, cpus: &CpuSet) -> Option<Seat> {
        let folder = Folder::public(root)
            .filter(Folder::is_own)
            .or_else(|| Folder::own(root).ok())?;
        let name = format!("{PREFIX}{run}");
        let mut file = folder.create(&name).ok()?;
        let is_done = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && file.write_all(format!("{cpus}\n").as_bytes()).is_ok();
        let seat = Seat {
            folder,
            name,
            _file: file,
        };
        is_done.then_some(seat)
    }
}

/// The folders with files of runs, each once, in the same order for all runs.
fn folders(root: &Root) -> Vec<Folder> {
    let mut all: Vec<Folder> = Folder::public(root).into_iter().collect();
    all.extend(Folder::all(root));
    Folder::each_once(&mut all);
    all
}

/// Locks folders; a folder that another process holds for long stays unlocked.
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

/// This process and its ancestors.
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

    #[test]
    fn cpus_are_shared_out_until_there_are_none() {
        let (_dir, root) = tree();
        let first = choose(&root, &[], &set("0-1"), Share::Free, Some(run("10-1-5")));
        assert_eq!(
            (first.cpus.to_string(), first.others.len()),
            ("0-1".to_owned(), 0)
        );
        let second = choose(&root, &[], &set("0-3"), Share::Free, Some(run("11-1-5")));
        assert_eq!(
            (second.cpus.to_string(), second.others[0].pid),
            ("2-3".to_owned(), 10)
        );
        let third = choose(&root, &[], &set("0-3"), Share::Free, Some(run("12-1-5")));
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
        let fourth = choose(&root, &[], &set("0-3"), Share::Free, None);
        assert_eq!(fourth.cpus, set("0-1"), "what ended gave its CPUs back");
        assert!(fourth.seat.is_none());
        let stubborn = choose(&root, &[], &set("2-3"), Share::All, None);
        assert_eq!((stubborn.cpus, stubborn.others.len()), (set("2-3"), 1));
        let elsewhere = choose(&root, &[], &set("0-1"), Share::All, None);
        assert!(
            elsewhere.others.is_empty(),
            "only those that are in the way"
        );
        let some = |most| Share::SomeFree(most, [3, 1, 2, 0].map(CpuId).into());
        let few = choose(&root, &[], &set("0-3"), some(1), Some(run("13-1-5")));
        assert_eq!(few.cpus, set("1"), "3 is taken");
        let seen = choose(&root, &[], &set("0-3"), Share::Free, None);
        assert_eq!(seen.cpus, set("0"), "no more than it uses");
        let crowded = choose(&root, &[], &set("1-3"), some(2), None);
        assert_eq!(crowded.cpus, set("1,3"), "all are taken");
    }

    #[test]
    fn files_of_dead_runs_are_removed_and_nonsense_is_ignored() {
        let (dir, root) = tree();
        let seat = choose(&root, &[], &set("0-3"), Share::Free, Some(run("10-1-5")))
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
        for (name, text) in [("cpus-11-1-5", "many\n"), ("cpus-x", ""), ("run-1-1-1", "")] {
            std::fs::write(own.join(name), text).unwrap();
        }
        let held = File::open(own.join("cpus-11-1-5")).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let chosen = choose(&root, &[], &set("0-3"), Share::Free, None);
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
    fn files_of_dead_runs_are_forgotten() {
        let (_dir, root) = tree();
        let folder = Folder::public(&root)
            .filter(Folder::is_own)
            .or_else(|| Folder::own(&root).ok())
            .unwrap();
        let seat = choose(&root, &[], &set("0-3"), Share::All, Some(run("10-1-5")))
            .seat
            .unwrap();
        for name in ["cpus-11-1-5", "cpus-12-1-5", "cpus-x"] {
            folder.create(name).unwrap();
        }
        forget_dead(&root);
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
        let _outer = choose(&root, &[], &set("0-3"), Share::Free, Some(run("10-1-5")));
        let _inner = choose(&root, &[], &set("0-3"), Share::Free, Some(run("20-7-5")));
        let family = [(30, 9), (20, 7), (10, 1)];
        let others = |family: &[(RawPid, u64)]| {
            choose(&root, family, &set("0-3"), Share::Free, None)
                .others
                .len()
        };
        assert_eq!(others(&family), 0);
        // Another process may have had the number before.
        assert_eq!(others(&[(20, 8)]), 2);
        assert!(ancestors(&Root::default()).len() > 1);
    }

    #[test]
    fn of_runs_that_start_at_once_only_one_believes_that_it_is_alone() {
        let (_dir, root) = tree();
        let chosen: Vec<Chosen> = std::thread::scope(|scope| {
            let start = |number: u32| {
                let root = &root;
                scope.spawn(move || {
                    choose(
                        root,
                        &[],
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
            choose(&root, &[], &set("0"), Share::Free, Some(run("10-1-5"))).cpus,
            set("0")
        );
    }
}
