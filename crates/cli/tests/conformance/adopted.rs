//! Programs that run already as a fixture: shells that count, which the backend did not start. Each has a cgroup of its own
//! where this user may make one, so that it can be stopped. Its tasks can only be placed, stopped and let go, so scenarios
//! in which a program starts or ends by itself are not played.

use crate::host::{PATIENCE, ThisMachine};
use crate::processes;
use cosched_conformance::{Fixture, JobAction, ScenarioJob, ScenarioSkip};
use cosched_core::{CpuSet, Intake as _, Nanos, TaskSpec};
use cosched_linux::Interrupts;
use cosched_linux::attached::{Attached, ManageConfig, Newcomers, Sampler, Selection};
use cosched_linux::counters::probe;
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Programs of this machine.
pub(crate) struct Adopted {
    children: RefCell<Vec<Child>>,
    /// The hierarchy of groups; `None` if this user may make no group there.
    top: Option<PathBuf>,
    /// Other sessions on the machine are elsewhere.
    runs_dir: tempfile::TempDir,
}

thread_local! {
    /// The processes of the scenario's tasks. A backend knows only what its subjects do.
    static PIDS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

impl Adopted {
    pub(crate) fn new() -> Adopted {
        let top = top().filter(|top| {
            let probe = top.join(format!("conformance-{}", std::process::id()));
            let may_make = std::fs::create_dir(&probe).is_ok();
            let may_freeze = probe.join("cgroup.freeze").exists();
            let _ = std::fs::remove_dir(&probe);
            may_make && may_freeze
        });
        Adopted {
            children: RefCell::new(Vec::new()),
            top,
            runs_dir: tempfile::tempdir().expect("a folder"),
        }
    }

    /// The group of a program.
    fn group(&self, pid: u32) -> Option<PathBuf> {
        Some(self.top.as_ref()?.join(format!("conformance {pid}")))
    }

    /// What selects a program: its own group, or else its number.
    fn selection(&self, pid: i32) -> Selection {
        let Some(group) = self.group(pid as u32) else {
            return Selection::Pids(vec![pid]);
        };
        std::fs::create_dir(&group).expect("a group");
        std::fs::write(group.join("cgroup.procs"), pid.to_string()).expect("a process");
        Selection::Cgroup(group.to_str().expect("UTF-8").to_owned())
    }

    fn start(&self, job: &ScenarioJob) -> Result<i32, ScenarioSkip> {
        if job.does != JobAction::Endless {
            return Err(ScenarioSkip(
                "programs that run already end unseen".to_owned(),
            ));
        }
        if job.cpus > 1 {
            return Err(ScenarioSkip("its programs have one thread".to_owned()));
        }
        let mut shell = Command::new("sh");
        let child = shell.args(["-c", "while :; do :; done"]).spawn();
        let child = child.expect("a shell");
        let pid = child.id() as i32;
        self.children.borrow_mut().push(child);
        Ok(pid)
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        for child in self.children.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for child in self.children.borrow().iter() {
            if let Some(group) = self.group(child.id()) {
                let _ = std::fs::remove_dir(group);
            }
        }
    }
}

/// Where the v2 hierarchy is mounted.
fn top() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut lines = mounts.lines();
    let mount = lines.find(|line| line.contains(" - cgroup2 "))?;
    Some(PathBuf::from(mount.split(' ').nth(4)?))
}

impl Fixture for Adopted {
    type Backend = Attached<'static>;

    const AFTER_STOP: Nanos = ThisMachine::AFTER_STOP;
    const CLOSE: Nanos = ThisMachine::CLOSE;
    const LONG: u64 = ThisMachine::LONG;
    const LEAST_SHARE: f64 = ThisMachine::LEAST_SHARE;
    const NOT_REPEATABLE: Option<&'static str> = ThisMachine::NOT_REPEATABLE;
    const RUNS_BEFORE: Option<&'static str> = Some("its programs run already");

    fn backend(&self, jobs: &[ScenarioJob]) -> Result<Attached<'static>, ScenarioSkip> {
        let mut pids = Vec::new();
        for job in jobs {
            pids.push(self.start(job)?);
        }
        if pids.is_empty() {
            return Err(ScenarioSkip(
                "a session needs a program that runs".to_owned(),
            ));
        }
        PIDS.set(pids.clone());
        let root = Root::default().with_runs_dir(self.runs_dir.path());
        let events = MachineEvents::detect(&root, &[]).expect("this machine's events");
        let counters = probe(&root, &events, Duration::ZERO).expect("what this machine can count");
        let selections: Vec<Selection> = pids.iter().map(|&pid| self.selection(pid)).collect();
        let sampler = Sampler::new(&root, &selections, counters.usable.clone());
        let sampler = sampler.expect("live processes");
        let config = ManageConfig {
            interval: Nanos::from_ms(10),
            pause: self.top.is_some(),
            stays: true,
        };
        let interrupts = Interrupts::hold().expect("signals");
        let watch = Box::new(|_: &_, _: &_| true);
        let backend = Attached::new(&root, sampler, &counters, interrupts, config, watch);
        let mut backend = backend.expect("a backend");
        enter(&mut backend, pids.len());
        Ok(backend)
    }

    fn cpus_of(_: &mut Attached<'static>, task: usize, _: Option<&CpuSet>) -> CpuSet {
        PIDS.with_borrow(|pids| processes::allowed(pids[task]))
    }

    fn nothing_stands_still(&self) {
        for child in self.children.borrow().iter() {
            let pid = child.id() as i32;
            let ticks = || processes::seen(pid).map_or(0, |seen| seen.cpu_ticks);
            let before = ticks();
            let end = Instant::now() + PATIENCE;
            while ticks() <= before {
                assert!(Instant::now() < end, "process {pid} stands still");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Waits until all programs have used a CPU, and so are tasks.
fn enter(backend: &mut Attached<'static>, count: usize) {
    use cosched_core::Backend as _;
    let mut tasks: Vec<TaskSpec> = Vec::new();
    let mut newcomers = Newcomers::default();
    while tasks.len() < count {
        let end = backend.now() + Nanos::from_ms(50);
        backend.wait(Some(end), &mut Vec::new()).expect("a wait");
        newcomers.take(backend, count, &mut tasks);
    }
    // Tasks are numbered as they use a CPU.
    let pid = |task: &TaskSpec| {
        let words = task.name.split(' ').nth(1).expect("a number");
        words.parse().expect("a number")
    };
    PIDS.set(tasks.iter().map(pid).collect());
}
