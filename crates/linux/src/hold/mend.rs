//! Frees what a dead run left behind: frozen groups and stopped processes. Used by every start, and by `cosched thaw`.

use crate::cgroup::{self, Stale};
use crate::hold::claim::RunClaim;
use crate::hold::ledger::{self, FoundLedger, RUNS, Record};
use crate::hold::process_scan::ProcessScan;
use crate::hold::session::{self, Restored};
use crate::neighbours;
use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::{RunFate, RunId, is_among_us, mark};
use crate::runtime::PrivateFolder;
use crate::sys::RawPid;
use crate::watch;
use rustix::process::{Signal, geteuid};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was freed, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Groups of runs and jobs that were thawed, or that were empty and removed. A group with processes stays until
    /// they have ended.
    pub groups: Vec<PathBuf>,
    /// Stopped processes that were continued.
    pub continued: Vec<RawPid>,
    /// Frozen groups of dead runs that the caller may not thaw.
    pub denied: Vec<PathBuf>,
    /// Groups of runs that can't be seen from here, in another PID namespace for example. They were left alone.
    pub unknown: Vec<PathBuf>,
    /// Those of them in which something is frozen. Their run may have died, or may go on and continue it soon.
    pub unknown_frozen: Vec<PathBuf>,
    /// What killed attached sessions had changed in programs of others.
    pub attached: Restored,
}

impl Mended {
    /// Whether nothing was freed.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.continued.is_empty() && self.attached.is_empty()
    }
}

/// Where to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Groups beside the caller's own, and in those of dead runs.
    Near,
    /// The whole hierarchy.
    Everywhere,
    /// The whole hierarchy, and only what is left of these runs, as in the variable `COSCHED_RUN`; of that only what is
    /// this user's. The superuser may name anybody's runs.
    Runs(Vec<String>, u32),
}

impl Reach {
    pub(crate) fn covers(&self, run: &RunId, owner: u32) -> bool {
        match self {
            Reach::Near | Reach::Everywhere => true,
            Reach::Runs(runs, user) => [0, owner].contains(user) && runs.contains(&run.to_string()),
        }
    }
}

/// Rounds in which stopped processes are continued, while any are found.
const ROUNDS: u32 = 4;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(20);

/// Frees what dead runs left behind, as far as the caller may.
pub fn mend(root: &Root, reach: &Reach) -> Mended {
    let mut mended = Mended::default();
    let stale = stale_groups(root, reach);
    thaw_and_remove(&stale, &mut mended);
    let mut look = ProcessScan::new(root);
    let dead = dead_runs(&look, reach, &stale);
    if !dead.is_empty() {
        // One of them may have started jobs since that look, and died: its list must not be removed.
        look = ProcessScan::new(root);
    }
    for _ in 0..ROUNDS {
        let now: Vec<RawPid> = dead.iter().flat_map(|dead| dead.go_on(&look)).collect();
        if now.is_empty() {
            break;
        }
        mended.continued.extend(now);
        std::thread::sleep(BETWEEN_ROUNDS);
        look = ProcessScan::new(root);
    }
    mended.continued.sort_unstable();
    mended.continued.dedup();
    remove_files(&look, &dead);
    mended.attached = session::mend(root, |run, owner| reach.covers(run, owner));
    mended
}

/// Thaws the groups of dead runs, and removes those without processes.
fn thaw_and_remove(stale: &[Stale], mended: &mut Mended) {
    let (dead, unknown): (Vec<_>, Vec<_>) = stale.iter().partition(|group| group.dead);
    for group in unknown {
        mended.unknown.push(group.dir.clone());
        if cgroup::holds_frozen(&group.dir) {
            mended.unknown_frozen.push(group.dir.clone());
        }
    }
    for group in &dead {
        match cgroup::thaw(&group.dir) {
            Err(_) => mended.denied.push(group.dir.clone()),
            Ok(true) => mended.groups.push(group.dir.clone()),
            Ok(false) => {}
        }
    }
    // From below: a run inside another was found after it.
    for group in dead.iter().rev() {
        if cgroup::remove(&group.dir) && !mended.groups.contains(&group.dir) {
            mended.groups.push(group.dir.clone());
        }
    }
    mended.groups.sort();
}

/// Removes the files of dead runs that have no process left.
fn remove_files(look: &ProcessScan<'_>, dead: &[DeadRun]) {
    let folders = PrivateFolder::all(look.root);
    for dead in dead {
        dead.claim().wake_guardian(look);
        if dead.record.is_some() && dead.claim().processes(look).is_empty() {
            ledger::forget(&folders, RUNS, &dead.run, dead.owner);
        }
    }
    watch::forget_dead(look.root);
    neighbours::forget_dead(look.root);
}

fn stale_groups(root: &Root, reach: &Reach) -> Vec<Stale> {
    let is_near = *reach == Reach::Near;
    let dir = if is_near {
        cgroup::own_directory(root).ok()
    } else {
        cgroup::top_directory(root)
    };
    let mut stale = dir
        .map(|dir| cgroup::stale(root, &dir, !is_near))
        .unwrap_or_default();
    stale.retain(|group| owner_of(&group.dir).is_some_and(|owner| reach.covers(&group.run, owner)));
    if root.runs_dir().is_some() && !matches!(reach, Reach::Runs(..)) {
        stale.retain(|group| !is_of_others(root, group));
    }
    stale
}

/// Whether all that a group's run has in it finds its runs elsewhere. What can't be told, because it is another user's, counts.
fn is_of_others(root: &Root, group: &Stale) -> bool {
    let mut processes = cgroup::processes_within(&group.dir, |_| true);
    processes.retain(|&pid| match process::environ(root, pid) {
        Ok(_) => mark(root, pid).is_some_and(|mark| mark.run == group.run),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    });
    !processes.is_empty() && !processes.iter().any(|&pid| is_among_us(root, pid))
}

/// The part of a dead run that belongs to one user. Several users may have parts of one run; nobody may act for others.
pub(crate) struct DeadRun {
    pub(crate) run: RunId,
    pub(crate) record: Option<Record>,
    pub(crate) group: Option<PathBuf>,
    pub(crate) owner: u32,
}

impl DeadRun {
    fn new(run: RunId, owner: u32) -> DeadRun {
        DeadRun {
            run,
            record: None,
            group: None,
            owner,
        }
    }

    /// What can be claimed for it.
    pub(crate) fn claim(&self) -> RunClaim<'_> {
        RunClaim {
            run: self.run,
            record: self.record.as_ref(),
            group: self.group.as_deref(),
            owner: self.owner,
            is_own_list: false,
        }
    }

    /// Continues those of its processes that were seen stopped; returns them.
    fn go_on(&self, look: &ProcessScan<'_>) -> Vec<RawPid> {
        let claimed = self.claim().processes(look).into_iter();
        let mut stopped: Vec<Process> = claimed.map(|member| member.process).collect();
        stopped.retain(|process| process.is_stopped() && process.signal(look.root, Signal::CONT));
        stopped.iter().map(|process| process.pid).collect()
    }
}

/// The covered dead runs that left a list, a group, or a process with their variable.
fn dead_runs(look: &ProcessScan<'_>, reach: &Reach, stale: &[Stale]) -> Vec<DeadRun> {
    let mut runs: BTreeMap<(RunId, u32), DeadRun> = BTreeMap::new();
    for found in ledger::found(look.root, RUNS, |run| run.fate(look.root) == RunFate::Dead) {
        let dead = listed(look.root, found);
        runs.insert((dead.run, dead.owner), dead);
    }
    for group in stale.iter().filter(|group| group.dead) {
        // It has gone if nobody owns it.
        if let Some(owner) = owner_of(&group.dir) {
            let entry = runs
                .entry((group.run, owner))
                .or_insert_with(|| DeadRun::new(group.run, owner));
            entry.group.get_or_insert_with(|| group.dir.clone());
        }
    }
    for (pid, mark) in look.marked() {
        let run = mark.run;
        // A run that was named is found wherever its user has put its folder.
        let may_count = matches!(reach, Reach::Runs(..)) || is_among_us(look.root, pid);
        if run.fate(look.root) != RunFate::Dead || !may_count {
            continue;
        }
        let users = look.users(pid);
        // The superuser's runs may have processes of anybody.
        let is_known = |user: &u32| runs.contains_key(&(run, *user));
        if !users.iter().chain([&0]).any(is_known)
            && let Some(&user) = users.first()
        {
            runs.insert((run, user), DeadRun::new(run, user));
        }
    }
    let all = runs.into_values();
    all.filter(|dead| reach.covers(&dead.run, dead.owner))
        .collect()
}

/// A dead run by its list. All that is in a group is ended with it, so the group must be the owner's as well.
fn listed(root: &Root, FoundLedger { record, owner }: FoundLedger) -> DeadRun {
    let run = record.head.run;
    let group = record.head.group.clone().filter(|group| {
        cgroup::is_group_of(root, group, &run) && (owner == 0 || owner_of(group) == Some(owner))
    });
    DeadRun {
        run,
        record: Some(record),
        group,
        owner,
    }
}

/// Ends the guardians of dead runs that list this process. It is about to be another run's, and a guardian would continue what
/// that run stops.
pub(crate) fn dismiss_guardians(root: &Root, main: &Process) {
    let own = [0, geteuid().as_raw()];
    for found in ledger::found(root, RUNS, |run| run.fate(root) == RunFate::Dead) {
        let mut listed = found.record.processes();
        if own.contains(&found.owner) && listed.any(|(_, process)| process == main.into()) {
            found.end_guardian(root);
        }
    }
}

/// All dead runs that can be found from here, for the search for orphans.
pub(crate) fn all_dead_runs(look: &ProcessScan<'_>, reach: &Reach) -> Vec<DeadRun> {
    dead_runs(look, reach, &stale_groups(look.root, reach))
}

/// Whose a group is; `None` if it has gone.
fn owner_of(group: &Path) -> Option<u32> {
    std::fs::metadata(group).ok().map(|dir| dir.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::ledger::{Held, Ledger, LedgerHead, Pin};
    use crate::run_id::tests::{link_namespace, write_stat};
    use crate::sys;
    use cosched_core::CpuSet;
    use std::os::unix::fs::{PermissionsExt, chown};

    const RUN: &str = "10-78-500";

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        link_namespace(dir.path(), 500);
        write_stat(dir.path(), 1, 'S', 0);
        std::fs::write(
            dir.path().join("proc/self/mountinfo"),
            "31 30 0:27 / /groups rw - cgroup2 x rw\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), "0::/\n").unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    /// Writes a list without entries into a user's folder, as that user can. `None` if this user can't.
    fn write_list(dir: &Path, user: u32, group: &Path) -> Option<PathBuf> {
        let folder = dir.join(format!("tmp/cosched-{user}"));
        std::fs::create_dir_all(&folder).unwrap();
        let list = folder.join(format!("run-{RUN}"));
        let head = format!(
            r#"{{"format":1,"run":"{RUN}","boot":"","cpus":"0","group":"{}"}}"#,
            group.display()
        );
        std::fs::write(&list, format!("{head:8192}")).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let given = [&folder, &list]
            .into_iter()
            .try_for_each(|path| chown(path, Some(user), None));
        given.is_ok().then_some(list)
    }

    fn write_process(dir: &Path, pid: i32, user: u32) {
        write_stat(dir, pid, 'S', 90);
        let process = dir.join(format!("proc/{pid}"));
        std::fs::write(process.join("environ"), format!("COSCHED_RUN={RUN}\0")).unwrap();
        std::fs::write(
            process.join("status"),
            format!("Uid:\t{user}\t{user}\t{user}\t{user}\n"),
        )
        .unwrap();
    }

    #[test]
    fn a_group_that_is_not_the_runs_own_is_not_touched() {
        let (dir, root) = tree();
        let evil = dir.path().join(format!("home/cosched-{RUN}"));
        let real = dir.path().join(format!("groups/a/cosched-{RUN}"));
        for group in [&evil, &real] {
            std::fs::create_dir_all(group.join("job0")).unwrap();
        }
        let user = rustix::process::geteuid().as_raw();
        write_process(dir.path(), 2_000_000_000, user);
        for (listed, expected) in [
            (&evil, None),
            (&PathBuf::from("/"), None),
            (&real, Some(&real)),
        ] {
            write_list(dir.path(), user, listed).unwrap();
            let found = dead_runs(&ProcessScan::new(&root), &Reach::Everywhere, &[]);
            assert_eq!(
                (found.len(), found[0].group.as_ref()),
                (1, expected),
                "{}",
                listed.display()
            );
        }
    }

    #[test]
    fn a_list_that_was_made_and_never_written_goes() {
        let (dir, root) = tree();
        let user = rustix::process::geteuid().as_raw();
        let list = write_list(dir.path(), user, Path::new("/none")).unwrap();
        // Process 1 has this start, and may be about to write its list.
        let start = Process::read(&root, 1).unwrap().start;
        let alive = list.with_file_name(format!("run-1-{start}-500"));
        let foreign = list.with_file_name("run-backup");
        for list in [&list, &alive, &foreign] {
            std::fs::write(list, "").unwrap();
        }
        mend(&root, &Reach::Near);
        assert_eq!(
            [&list, &alive, &foreign].map(|list| list.exists()),
            [false, true, true]
        );
    }

    /// A session never signals, and a run remembers no masks: so a list of one can't make `cosched thaw` do what is the
    /// other's.
    #[test]
    fn a_list_counts_only_for_what_its_kind_holds() {
        let real = Root::default();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let stopped = Process::read(&real, child.id() as RawPid).unwrap();
        stopped.signal(&real, Signal::STOP);
        let now = || Process::read(&real, stopped.pid).unwrap();
        while !now().is_stopped() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let cpus = sys::affinity(stopped.pid).unwrap();
        // A tree whose other processes and files are its own.
        let (dir, root) = tree();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel/random")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "one\n").unwrap();
        let of_stopped = format!("proc/{}", stopped.pid);
        let shown = dir.path().join(&of_stopped);
        std::os::unix::fs::symlink(Path::new("/").join(&of_stopped), &shown).unwrap();
        let run = RunId::parse(RUN).unwrap();
        let session = Ledger::of_session(&root, run).unwrap();
        session.job(0, "job", &stopped).unwrap();
        session.member(0, &stopped);
        let head = LedgerHead {
            run: RunId::parse("11-78-500").unwrap(),
            group: None,
            cpus: CpuSet::new(),
        };
        let of_run = Ledger::begin(&root, &head).unwrap();
        let pin = Pin {
            thread: (&stopped).into(),
            process: (&stopped).into(),
            old: CpuSet::from(cpus.first().unwrap()),
            set: cpus.clone(),
            before: cpus.clone(),
            since: 0,
        };
        let _entry = of_run.enter(&Held::Pin(pin)).unwrap();
        let mended = mend(&root, &Reach::Everywhere);
        let (found, after) = (now(), sys::affinity(stopped.pid).unwrap());
        stopped.signal(&real, Signal::KILL);
        child.wait().unwrap();
        assert!(found.is_stopped() && after == cpus, "{mended:?}");
        assert!(mended.is_empty(), "{mended:?}");
        let user = geteuid().as_raw();
        let folder = dir.path().join(format!("tmp/cosched-{user}"));
        let left = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(left, 0, "both were read");
    }

    #[test]
    fn nobody_speaks_for_the_run_of_another_user() {
        let (dir, root) = tree();
        let (one, two) = (2_000_001, 2_000_002);
        let none = Path::new("/none");
        let (Some(of_one), Some(of_two)) = (
            write_list(dir.path(), one, none),
            write_list(dir.path(), two, none),
        ) else {
            return eprintln!("skipped, because only root may give files away");
        };
        write_process(dir.path(), 2_000_000_000, one);
        let found = |root: &Root| -> Vec<(u32, bool, usize)> {
            let all = dead_runs(&ProcessScan::new(root), &Reach::Everywhere, &[]);
            all.iter()
                .map(|dead| {
                    (
                        dead.owner,
                        dead.record.is_some(),
                        dead.claim().processes(&ProcessScan::new(root)).len(),
                    )
                })
                .collect()
        };
        assert_eq!(found(&root), [(one, true, 1), (two, true, 0)]);
        mend(&root, &Reach::Everywhere);
        assert!(
            of_one.exists() && !of_two.exists(),
            "a list is removed when what it tells of has gone"
        );
        std::fs::remove_file(of_one).unwrap();
        assert_eq!(
            found(&root),
            [(one, false, 1)],
            "the mark still tells of the run"
        );
        write_list(dir.path(), two, none);
        assert_eq!(
            found(&root),
            [(one, false, 1), (two, true, 0)],
            "a list of another user does not hide it"
        );
    }

    /// As in a list of runs that anybody could have written.
    #[test]
    fn a_run_that_a_user_names_counts_for_what_is_that_users() {
        let (dir, root) = tree();
        let (one, two) = (2_000_001, 2_000_002);
        write_process(dir.path(), 2_000_000_000, one);
        let group = dir.path().join(format!("groups/cosched-{RUN}"));
        std::fs::create_dir_all(group.join("job0")).unwrap();
        std::fs::write(group.join("cgroup.events"), "populated 1\nfrozen 1\n").unwrap();
        let found = |reach: &Reach| all_dead_runs(&ProcessScan::new(&root), reach).len();
        let of = |user| Reach::Runs(vec![RUN.to_owned()], user);
        if chown(&group, Some(one), None).is_err() {
            std::fs::remove_dir_all(&group).unwrap();
            eprintln!("skipped in part, because only root may give groups away");
        }
        assert_eq!((found(&of(two)), found(&of(one)), found(&of(0))), (0, 1, 1));
        assert_eq!(
            found(&Reach::Runs(vec!["11-78-500".to_owned()], one)),
            0,
            "it is another run"
        );
        if group.exists() {
            assert_eq!(
                stale_groups(&root, &of(two)).len(),
                0,
                "so it is not thawed"
            );
            assert_eq!(stale_groups(&root, &of(one)).len(), 1);
            // A list of another user that names this group as its own.
            write_list(dir.path(), two, &group).unwrap();
            let all = all_dead_runs(&ProcessScan::new(&root), &of(two));
            assert_eq!((all.len(), all[0].group.as_ref()), (1, None));
        }
    }

    #[test]
    fn processes_are_looked_at_once_for_all_runs() {
        let (dir, root) = tree();
        let user = rustix::process::geteuid().as_raw();
        let first = 2_000_000_000;
        for number in 0..100 {
            write_process(dir.path(), first + number, user);
            let environ = dir.path().join(format!("proc/{}/environ", first + number));
            std::fs::write(environ, format!("COSCHED_RUN={}-78-500\0", 10 + number)).unwrap();
        }
        let look = ProcessScan::new(&root);
        let found = dead_runs(&look, &Reach::Everywhere, &[]);
        let claimed = |dead: &DeadRun| -> Vec<RawPid> {
            dead.claim()
                .processes(&look)
                .iter()
                .map(|claimed| claimed.process.pid)
                .collect()
        };
        assert_eq!(claimed(&found[0]), [first]);
        for number in 0..100 {
            let process = dir.path().join(format!("proc/{}", first + number));
            std::fs::remove_file(process.join("stat")).unwrap();
        }
        let others: Vec<RawPid> = found.iter().flat_map(claimed).collect();
        assert_eq!(
            others,
            (first..first + 100).collect::<Vec<_>>(),
            "nothing was left to read"
        );
    }
}
