//! Runs on one machine find each other and divide the CPUs: each run publishes what it may use in a file, and locks
//! that file while it lives. A file without a lock belongs to a dead run. This works across PID namespaces. The
//! guardian and the jobs do not hold the lock: they close the descriptor.

use crate::division::{CpuClaim, divide};
use crate::process::Process;
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use crate::shared_folder::SharedFolder;
use crate::sys::RawPid;
use crate::topology;
use cosched_core::CpuSet;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;

/// Prefix of the file names.
const PREFIX: &str = "cpus-";
/// Longer files are not cosched's.
const MOST_BYTES: u64 = 64 << 10;
/// Maximum number of live runs of a user that count. The files of others are not read.
const MOST_RUNS: usize = 64;
/// The word behind the CPUs of a run that uses all of them.
const FIXED: &str = "fixed";

/// Another live run, except the runs that this run is a job of.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its process number in its own PID namespace.
    pub pid: i32,
    /// The CPUs that it uses.
    pub cpus: CpuSet,
}

/// How a run chooses its CPUs.
#[derive(Clone, Debug, PartialEq)]
pub enum Share {
    /// Its share, beside the other runs.
    Fair,
    /// Its share at its start, for good: the CPUs of a scheduler in the kernel never change.
    Kept,
    /// All given CPUs.
    All,
}

/// This run among the live runs.
#[derive(Debug)]
pub struct PlaceAmongRuns {
    root: Root,
    /// `None` if it cannot be used, or in a job of another run: then there are no other runs.
    shared_folder: Option<SharedFolder>,
    own: CpuClaim,
    /// Whether others are to see this run while it is busy.
    is_public: bool,
    /// The file of this run, if it is published. Its lock shows that the run is alive.
    file: Option<File>,
    found: BTreeMap<OsString, Entry>,
    cpus: CpuSet,
    others: Vec<Neighbour>,
}

impl PlaceAmongRuns {
    /// Takes a place among the live runs, for a run that was given these CPUs. If it `is_public`, others see it from now
    /// on, except while it has no job.
    pub fn take(root: &Root, given: &CpuSet, share: Share, is_public: bool) -> PlaceAmongRuns {
        let run = RunId::own(root);
        let is_public = is_public && run.is_some();
        let run = run.unwrap_or(RunId::NOBODY);
        PlaceAmongRuns::take_as(root, run, &ancestors(root), given, share, is_public)
    }

    /// Like [`PlaceAmongRuns::take`]. `family` are this process and its ancestors, with their start times.
    fn take_as(
        root: &Root,
        run: RunId,
        family: &[(RawPid, u64)],
        given: &CpuSet,
        share: Share,
        is_public: bool,
    ) -> PlaceAmongRuns {
        let mut place = PlaceAmongRuns {
            root: root.clone(),
            shared_folder: SharedFolder::open(root),
            own: CpuClaim {
                user: geteuid().as_raw(),
                run,
                given: given.clone(),
                is_fixed: share == Share::All,
            },
            is_public,
            file: None,
            found: BTreeMap::new(),
            cpus: given.clone(),
            others: Vec::new(),
        };
        place.find();
        if place.is_inside_another(family) {
            // That run gave it these CPUs.
            place.shared_folder = None;
            place.found.clear();
        }
        place.divide();
        if share == Share::Kept {
            place.own.given.clone_from(&place.cpus);
            place.own.is_fixed = true;
        }
        place.set_busy(true);
        // A run that starts at the same time may have found nobody either.
        place.look();
        place
    }

    /// Publishes the CPUs of a run with jobs that are live or wait, and withdraws them while the run is idle: others then
    /// use them.
    pub(crate) fn set_busy(&mut self, is_busy: bool) {
        if !is_busy {
            self.withdraw();
        } else if self.is_public && self.file.is_none() {
            self.publish();
        }
    }

    /// Whether a run among the live ones is an ancestor of this process.
    fn is_inside_another(&self, family: &[(RawPid, u64)]) -> bool {
        let mut runs = self.found.values().map(|entry| entry.run);
        runs.any(|run| run.is_here(&self.root) && family.contains(&(run.pid, run.start)))
    }

    /// The CPUs to use; empty only if none were given.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Whether other runs can change its CPUs.
    pub(crate) fn may_change(&self) -> bool {
        self.shared_folder.is_some() && !self.own.is_fixed
    }

    /// The other runs on any of the given CPUs.
    pub fn others(&self) -> &[Neighbour] {
        &self.others
    }

    /// The other runs on any CPU that this run uses.
    pub fn rivals(&self) -> Vec<Neighbour> {
        let mut rivals = self.others.clone();
        rivals.retain(|other| !other.cpus.intersection(&self.cpus).is_empty());
        rivals
    }

    /// Looks for runs that have come or gone; returns whether that changes the CPUs to use.
    pub fn look(&mut self) -> bool {
        self.find() && self.divide()
    }

    fn publish(&mut self) {
        let CpuClaim {
            given, is_fixed, ..
        } = &self.own;
        let word = if *is_fixed { FIXED } else { "shared" };
        let name = self.name();
        let shared_folder = self.shared_folder.as_ref();
        self.file = shared_folder
            .and_then(|shared_folder| shared_folder.publish(&name, &format!("{given} {word}\n")));
    }

    fn withdraw(&mut self) {
        if let (Some(shared_folder), Some(_)) = (&self.shared_folder, self.file.take()) {
            shared_folder.remove(self.name());
        }
    }

    fn name(&self) -> String {
        format!("{PREFIX}{}", self.own.run)
    }

    /// Finds the live runs; returns whether any has come or gone. Removes the caller's files of dead runs.
    fn find(&mut self) -> bool {
        let Some(shared_folder) = &self.shared_folder else {
            return false;
        };
        let mut names = shared_folder.names(PREFIX);
        names.retain(|name| *name != *self.name());
        let mut before = std::mem::take(&mut self.found);
        let known: Vec<OsString> = before.keys().cloned().collect();
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for name in names {
            let entry = before.remove(&name);
            let entry = entry.or_else(|| Entry::open(shared_folder, &name));
            let Some(entry) = entry.and_then(|entry| entry.live(&self.root, shared_folder, &name))
            else {
                continue;
            };
            let count = counts.entry(entry.user).or_default();
            *count += 1;
            if *count <= MOST_RUNS {
                self.found.insert(name, entry);
            }
        }
        !self.found.keys().eq(&known)
    }

    /// Divides the CPUs among the runs; returns whether those of this run change.
    fn divide(&mut self) -> bool {
        let claims = self.found.values().filter_map(Entry::claim);
        let mut claims: Vec<CpuClaim> = claims.cloned().collect();
        claims.push(self.own.clone());
        let all: CpuSet = claims.iter().flat_map(|claim| claim.given.iter()).collect();
        let mut parts = divide(&claims, &topology::cores(&self.root, &all));
        let own = parts.pop().unwrap_or_default();
        self.others.clear();
        for (claim, cpus) in claims.iter().zip(parts) {
            if !claim.given.intersection(&self.own.given).is_empty() {
                let pid = claim.run.pid;
                self.others.push(Neighbour { pid, cpus });
            }
        }
        std::mem::replace(&mut self.cpus, own) != self.cpus
    }
}

impl Drop for PlaceAmongRuns {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// A file that is named after a run.
#[derive(Debug)]
struct Entry {
    run: RunId,
    user: u32,
    file: File,
    /// What it contains, once it has been read; `None` if that is invalid.
    claim: OnceCell<Option<CpuClaim>>,
}

impl Entry {
    fn open(shared_folder: &SharedFolder, name: &OsStr) -> Option<Entry> {
        let run = RunId::in_name(name, PREFIX)?;
        let (file, user) = shared_folder.open_file(name)?;
        Some(Entry {
            run,
            user,
            file,
            claim: OnceCell::new(),
        })
    }

    /// The same if its run is alive. If not, the file is removed, if it is the caller's.
    fn live(self, root: &Root, shared_folder: &SharedFolder, name: &OsStr) -> Option<Entry> {
        if self.is_alive(root) && !self.run.is_forged(root, self.user) {
            return Some(self);
        }
        if self.user == geteuid().as_raw() {
            shared_folder.remove(name);
        }
        None
    }

    /// Whether its run is alive. The process counts too: others may lock the file of a dead run.
    fn is_alive(&self, root: &Root) -> bool {
        if flock(&self.file, FlockOperation::NonBlockingLockShared).is_ok() {
            let _ = flock(&self.file, FlockOperation::Unlock);
            return false;
        }
        self.run.fate(root) != RunFate::Dead
    }

    /// What it says; read at most once.
    fn claim(&self) -> Option<&CpuClaim> {
        self.claim.get_or_init(|| self.read()).as_ref()
    }

    fn read(&self) -> Option<CpuClaim> {
        let mut text = String::new();
        (&self.file)
            .take(MOST_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        let (cpus, word) = text.trim_end().split_once(' ')?;
        Some(CpuClaim {
            user: self.user,
            run: self.run,
            given: ascending(cpus)?,
            is_fixed: word == FIXED,
        })
    }
}

/// Parses a list of CPUs in ascending order; `None` if it is another text. A list that repeats large ranges would take
/// long.
fn ascending(list: &str) -> Option<CpuSet> {
    let numbers: Result<Vec<u32>, _> = list.split([',', '-']).map(str::parse).collect();
    numbers.ok()?.is_sorted_by(|a, b| a < b).then_some(())?;
    list.parse().ok()
}

/// Removes the caller's files of dead runs.
pub(crate) fn forget_dead(root: &Root) {
    let Some(shared_folder) = SharedFolder::open(root) else {
        return;
    };
    for name in shared_folder.names(PREFIX) {
        let entry = Entry::open(&shared_folder, &name);
        entry.and_then(|entry| entry.live(root, &shared_folder, &name));
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
    use crate::run_id::tests::{link_namespace, write_stat};
    use crate::runtime::tests::tree;
    use std::path::PathBuf;
    use std::sync::Barrier;

    /// A tree in which the processes 10 to 12 live, and its folder of CPUs.
    fn machine() -> (tempfile::TempDir, Root, PathBuf) {
        let (dir, root, _) = tree();
        link_namespace(dir.path(), 5);
        for pid in [1, 10, 11, 12] {
            write_stat(dir.path(), pid, 'S', 1);
        }
        let folder = dir.path().join("tmp/cosched-cpus");
        (dir, root, folder)
    }

    fn take(root: &Root, run: &str, given: &str, share: Share) -> PlaceAmongRuns {
        let run = RunId::parse(run).unwrap();
        PlaceAmongRuns::take_as(root, run, &[], &given.parse().unwrap(), share, true)
    }

    fn cpus(place: &mut PlaceAmongRuns) -> String {
        place.look();
        place.cpus().to_string()
    }

    #[test]
    fn runs_that_come_and_go_get_their_share() {
        let (_dir, root, folder) = machine();
        let mut first = take(&root, "10-1-5", "0-3", Share::Fair);
        assert_eq!(cpus(&mut first), "0-3");
        let mut second = take(&root, "11-1-5", "0-3", Share::Fair);
        assert_eq!(
            (second.cpus().to_string(), second.others()[0].pid),
            ("2-3".to_owned(), 10)
        );
        assert!(first.look() && !first.look());
        assert_eq!(first.cpus().to_string(), "0-1");
        assert_eq!(
            first.others(),
            [Neighbour {
                pid: 11,
                cpus: "2-3".parse().unwrap()
            }]
        );
        let listed = take(&root, "12-1-5", "3", Share::All);
        assert_eq!(
            (cpus(&mut first), cpus(&mut second)),
            ("0".to_owned(), "1-2".to_owned())
        );
        drop(first);
        assert_eq!(
            (cpus(&mut second), listed.cpus().to_string()),
            ("0-2".to_owned(), "3".to_owned())
        );
        drop((second, listed));
        assert_eq!(folder.read_dir().unwrap().count(), 0, "they leave nothing");
    }

    #[test]
    fn an_idle_run_leaves_its_cpus_to_others() {
        let (_dir, root, folder) = machine();
        let mut idle = take(&root, "10-1-5", "0-3", Share::Fair);
        let mut other = take(&root, "11-1-5", "0-3", Share::Fair);
        assert_eq!(cpus(&mut other), "2-3");
        idle.set_busy(false);
        assert_eq!(cpus(&mut other), "0-3");
        assert_eq!(folder.read_dir().unwrap().count(), 1);
        idle.set_busy(true);
        assert_eq!(
            (cpus(&mut idle), cpus(&mut other)),
            ("0-1".to_owned(), "2-3".to_owned())
        );
    }

    #[test]
    fn a_run_that_keeps_its_share_gives_up_no_cpu() {
        let (_dir, root, _) = machine();
        let mut first = take(&root, "10-1-5", "0-3", Share::Fair);
        let mut kept = take(&root, "11-1-5", "0-3", Share::Kept);
        let mut last = take(&root, "12-1-5", "0-3", Share::Fair);
        assert_eq!(
            [cpus(&mut first), cpus(&mut kept), cpus(&mut last)],
            ["0", "2-3", "1"]
        );
        assert!(!kept.may_change());
    }

    #[test]
    fn runs_that_start_at_the_same_time_find_each_other() {
        let (_dir, root, _) = machine();
        // Else both would create it.
        drop(SharedFolder::open(&root).unwrap());
        for _ in 0..100 {
            let start = Barrier::new(2);
            let taken = |run| {
                start.wait();
                take(&root, run, "0-3", Share::Fair)
            };
            let (one, other) = std::thread::scope(|scope| {
                let one = scope.spawn(|| taken("10-1-5"));
                (taken("11-1-5"), one.join().unwrap())
            });
            let found = one.others().len() + other.others().len();
            assert!(found > 0, "one of them finds the other");
        }
    }

    #[test]
    fn files_of_dead_runs_are_removed_and_nonsense_is_ignored() {
        let (_dir, root, folder) = machine();
        let mut place = take(&root, "10-1-5", "0-3", Share::Fair);
        std::fs::write(folder.join("cpus-11-1-5"), "0-3 shared\n").unwrap();
        for (name, text) in [("cpus-x", "0-3 shared\n"), ("cpus-12-1-5", "many\n")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        // Somebody locks the file of a dead run.
        std::fs::write(folder.join("cpus-9-1-5"), "0-3 shared\n").unwrap();
        let held = File::open(folder.join("cpus-9-1-5")).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        assert_eq!(cpus(&mut place), "0-3");
        let left = |name: &str| folder.join(name).exists();
        assert!(!left("cpus-11-1-5") && !left("cpus-9-1-5") && left("cpus-x"));
        // A live run.
        let place_of_killed = take(&root, "11-1-5", "0-3", Share::Fair);
        assert_eq!(cpus(&mut place), "0-1");
        std::mem::forget(place_of_killed);
        write_stat(_dir.path(), 11, 'Z', 1);
        assert_eq!(cpus(&mut place), "0-3");
    }

    #[test]
    fn a_run_among_the_jobs_uses_what_the_run_around_it_gave() {
        let (_dir, root, _) = machine();
        let _outer = take(&root, "10-1-5", "0-3", Share::Fair);
        let inner = |family: &[(RawPid, u64)]| {
            let run = RunId::parse("11-1-5").unwrap();
            PlaceAmongRuns::take_as(
                &root,
                run,
                family,
                &"0-1".parse().unwrap(),
                Share::Fair,
                true,
            )
        };
        let nested = inner(&[(11, 1), (10, 1)]);
        assert_eq!(
            (nested.cpus().to_string(), nested.others()),
            ("0-1".to_owned(), &[][..])
        );
        // Another process may have had the number before.
        assert_eq!(inner(&[(11, 1), (10, 2)]).cpus().to_string(), "0");
        // A number of another namespace is not that of a process here.
        let _elsewhere = take(&root, "1-1-6", "9", Share::All);
        assert_eq!(inner(&[(11, 1), (1, 1)]).cpus().to_string(), "0");
        assert!(ancestors(&Root::default()).len() > 1);
    }

    #[test]
    fn the_file_of_another_users_process_does_not_count() {
        let (dir, root, _) = machine();
        let user = geteuid().as_raw();
        let of = |pid: RawPid, user: u32| {
            let status = format!("Uid:\t{user}\t{user}\t{user}\t{user}\n");
            std::fs::write(dir.path().join(format!("proc/{pid}/status")), status).unwrap();
        };
        of(1, user + 1);
        of(11, user);
        let _forged = take(&root, "1-1-5", "0-3", Share::Fair);
        let family = [(10, 1), (1, 1)];
        let given = "0-3".parse().unwrap();
        let run = RunId::parse("10-1-5").unwrap();
        let mut place = PlaceAmongRuns::take_as(&root, run, &family, &given, Share::Fair, true);
        assert_eq!(cpus(&mut place), "0-3", "it has no other run beside it");
        let _own = take(&root, "11-1-5", "0-3", Share::Fair);
        assert_eq!(cpus(&mut place), "0-1", "and none around it");
    }

    #[test]
    fn what_others_write_costs_no_time() {
        assert_eq!(ascending("0-3,8").unwrap().to_string(), "0-3,8");
        for list in [
            "",
            "0-65535,0-65535",
            "3,3",
            "1,0",
            "3-1",
            "0-",
            "0-3-5",
            "-1",
        ] {
            assert_eq!(ascending(list), None, "{list}");
        }
        let (dir, root, folder) = machine();
        let mut place = take(&root, "10-1-5", "0-3", Share::Fair);
        let mut held = Vec::new();
        for pid in 100..100 + MOST_RUNS as RawPid + 9 {
            write_stat(dir.path(), pid, 'S', 1);
            let path = folder.join(format!("cpus-{pid}-1-5"));
            std::fs::write(&path, "many\n").unwrap();
            let file = File::open(path).unwrap();
            flock(&file, FlockOperation::LockExclusive).unwrap();
            held.push(file);
        }
        assert_eq!(cpus(&mut place), "0-3", "they say nothing");
        assert_eq!(place.found.len(), MOST_RUNS);
        assert!(!place.look(), "they are the same");
    }

    #[test]
    fn without_the_folder_a_run_uses_all_of_its_cpus() {
        let (_dir, root, folder) = machine();
        std::fs::write(folder, "").unwrap();
        let mut place = take(&root, "10-1-5", "0-3", Share::Fair);
        assert_eq!(cpus(&mut place), "0-3");
    }
}
