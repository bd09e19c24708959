//! This machine as a fixture: shells that count, sleep, fail and die.

use crate::processes::{self, SeenProcess};
use cosched_conformance::{Fixture, JobAction, ScenarioJob, ScenarioSkip, name};
use cosched_core::{CpuSet, Machine, Nanos};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use cosched_linux::{
    Environment, Freezing, HeadroomLimits, Host, HostConfig, HostJob, JobBegin, JobProgram,
    KernelScheduler, freezer_problem, topology,
};
use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The limit of a wait. Nothing on this machine takes nearly this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// This machine, with one way of freezing.
pub(crate) struct ThisMachine {
    root: Root,
    freezing: Freezing,
    pub(crate) machine: Machine,
    counters: CounterSupport,
    outputs: tempfile::TempDir,
    /// Programs made so far: each start of a job has files of its own.
    programs: Cell<usize>,
}

impl ThisMachine {
    pub(crate) fn new(freezing: Freezing) -> Result<ThisMachine, ScenarioSkip> {
        let outputs = tempfile::tempdir().expect("a folder");
        // Apart from the runs of others.
        let root = Root::default().with_runs_dir(outputs.path());
        if freezing == Freezing::Cgroup
            && let Some(problem) = freezer_problem(&root)
        {
            return Err(ScenarioSkip(format!(
                "the cgroup freezer can't be used: {problem}"
            )));
        }
        let affinity = cosched_linux::affinity(0).expect("the CPUs of this process");
        let machine = topology::read(&root, &affinity, None)
            .expect("this machine's topology")
            .machine;
        let events = MachineEvents::detect(&root, &[]).expect("this machine's events");
        let counters = probe(&root, &events, Duration::ZERO).expect("what this machine can count");
        Ok(ThisMachine {
            root,
            freezing,
            machine,
            counters,
            outputs,
            programs: Cell::new(0),
        })
    }

    /// A backend with these jobs, and with a scheduler in the kernel if there is one.
    pub(crate) fn host(
        &self,
        jobs: &[ScenarioJob],
        kernel: Option<Box<dyn KernelScheduler>>,
        max_pause: Nanos,
    ) -> Host {
        let jobs = jobs.iter().enumerate();
        let jobs = jobs
            .map(|(id, job)| HostJob {
                key: None,
                cpus: None,
                name: name(id),
                begin: JobBegin::Program(self.program(job)),
            })
            .collect();
        let host = Host::new(HostConfig {
            progress: None,
            place: None,
            polite: false,
            jobserver: false,
            threads_env: None,
            root: self.root.clone(),
            machine: self.machine.clone(),
            jobs,
            kernel,
            requests: None,
            freezing: self.freezing,
            counters: self.counters.clone(),
            headroom: HeadroomLimits::default(),
            max_pause,
            ends_jobs: false,
            notice: Box::new(|notice| eprintln!("{notice:?}")),
        });
        let host = host.expect("a backend");
        assert_eq!(host.freezing(), self.freezing);
        host
    }

    fn program(&self, job: &ScenarioJob) -> JobProgram {
        let id = self.programs.replace(self.programs.get() + 1);
        // About 1,000 iterations of a loop in the shell take a millisecond.
        let once = match job.does {
            JobAction::Work(ms) => format!("i=0; while [ $i -lt {ms}000 ]; do i=$((i+1)); done"),
            JobAction::Endless => "ulimit -t 60; while :; do :; done".to_owned(),
            JobAction::Fails => "exit 3".to_owned(),
            JobAction::Crashes => "kill -SEGV $$".to_owned(),
            JobAction::Naps => "kill -STOP $$".to_owned(),
            JobAction::Unstartable => String::new(),
        };
        let others = format!("{{ {once}; }} & ").repeat(job.cpus as usize - 1);
        let script = format!("{others}{once}; wait");
        let path = if job.does == JobAction::Unstartable {
            "/no/such/program"
        } else {
            "/bin/sh"
        };
        JobProgram {
            path: PathBuf::from(path),
            args: ["sh", "-c", &script].map(OsString::from).to_vec(),
            env: Arc::new(Environment::new(std::env::vars_os()).expect("no zero bytes")),
            cwd: None,
            stdin: None,
            stdout: self.outputs.path().join(format!("{id}.out")),
            stderr: self.outputs.path().join(format!("{id}.err")),
            nice: None,
            again: false,
        }
    }
}

impl Fixture for ThisMachine {
    type Backend = Host;

    /// A running process must be interrupted, and a waiting one must get a CPU, before it stops.
    const AFTER_STOP: Nanos = Nanos::from_ms(5);
    const CLOSE: Nanos = Nanos::ZERO;
    const LONG: u64 = 40;
    const LEAST_SHARE: f64 = 0.0;
    const NOT_REPEATABLE: Option<&'static str> =
        Some("real processes never do the same thing twice");

    fn backend(&self, jobs: &[ScenarioJob]) -> Result<Host, ScenarioSkip> {
        Ok(self.host(jobs, None, Nanos::from_ms(50)))
    }

    fn cpus_of(_backend: &mut Host, task: usize, _wanted: Option<&CpuSet>) -> CpuSet {
        let mut all = CpuSet::new();
        for process in processes::of_run(std::process::id(), Some(&name(task))) {
            // The process may have ended meanwhile.
            all.extend(processes::allowed(process.pid).iter().collect::<Vec<_>>());
        }
        all
    }

    /// Only jobs without end are left: each of their processes must use the CPU.
    fn nothing_stands_still(&self) {
        let end = Instant::now() + PATIENCE;
        let stands = |before: &SeenProcess| {
            processes::seen(before.pid)
                .is_some_and(|now| now.state != 'Z' && now.cpu_ticks <= before.cpu_ticks)
        };
        let left = processes::of_run(std::process::id(), None);
        assert!(!left.is_empty(), "the jobs run on");
        for process in &left {
            while stands(process) {
                assert!(
                    Instant::now() < end,
                    "{process:?} stands still: {:?}",
                    processes::seen(process.pid)
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
