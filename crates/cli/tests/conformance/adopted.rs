//! Programs that run already as a fixture: shells that count, which the backend did not start. Its tasks can only be placed
//! and let go, so scenarios in which a program starts, ends by itself or stops are not played.

use crate::fixture::{Does, Fixture, Job, Skip};
use crate::processes;
use cosched_core::{CpuSet, Intake as _, Nanos, TaskSpec};
use cosched_linux::Interrupts;
use cosched_linux::attached::{Attached, ManageConfig, Newcomers, Sampler, Selection};
use cosched_linux::counters::probe;
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use std::cell::RefCell;
use std::process::{Child, Command};

/// Programs of this machine.
pub(crate) struct Adopted {
    children: RefCell<Vec<Child>>,
}

thread_local! {
    /// The processes of the scenario's tasks. A backend knows only what its subjects do.
    static PIDS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

impl Adopted {
    pub(crate) fn new() -> Adopted {
        Adopted {
            children: RefCell::new(Vec::new()),
        }
    }

    fn start(&self, job: &Job) -> Result<i32, Skip> {
        if job.does != Does::Endless {
            return Err(Skip("programs that run already end unseen".to_owned()));
        }
        if job.cpus > 1 {
            return Err(Skip("its programs have one thread".to_owned()));
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
    }
}

impl Fixture for Adopted {
    type Backend = Attached<'static>;

    const AFTER_STOP: Nanos = Nanos::from_ms(5);
    const CLOSE: Nanos = Nanos::ZERO;
    const LONG: u64 = 40;
    const LEAST_SHARE: f64 = 0.0;
    const NOT_REPEATABLE: Option<&'static str> =
        Some("real processes never do the same thing twice");

    const RUNS_BEFORE: Option<&'static str> = Some("its programs run already");

    fn backend(&self, jobs: &[Job]) -> Result<Attached<'static>, Skip> {
        let mut pids = Vec::new();
        for job in jobs {
            pids.push(self.start(job)?);
        }
        if pids.is_empty() {
            return Err(Skip("a session needs a program that runs".to_owned()));
        }
        PIDS.set(pids.clone());
        let root = Root::default();
        let events = MachineEvents::detect(&root, &[]).expect("this machine's events");
        let counters = probe(&root, &events).expect("what this machine can count");
        let selections: Vec<Selection> =
            pids.iter().map(|&pid| Selection::Pids(vec![pid])).collect();
        let sampler = Sampler::new(&root, &selections, counters.usable.clone());
        let sampler = sampler.expect("live processes");
        let config = ManageConfig {
            interval: Nanos::from_ms(10),
            pause: false,
            manages: vec![true; pids.len()],
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

    fn nothing_stands_still(&self) {}
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
