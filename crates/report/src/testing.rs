//! Small machines, runs and snapshots for the tests.

use crate::figures::Absences;
use crate::info::{JobInfo, RunInfo, SoloTime};
use crate::machine_load::MachineUse;
use crate::setting::{ParamSetting, RunInput, RunOptions, RunSetting};
use crate::source::{BackendKind, EnergySource, SoloSource};
use crate::warning::RunWarning;
use cosched_core::{
    Absence, Capabilities, Capability, Change, Counter, Counts, Decision, DeviceTime, EndedBy,
    Estimates, Exit, LeftOut, Machine, Nanos, Overhead, ParamValue, Placement, ProgressBasis,
    Purpose, Rate, Reading, Resources, RunResult, Running, Sample, Snapshot, TaskId, TaskResult,
    TaskSpec, TaskView, TrafficRates, Trigger, Usage, Wait, WaitReason,
};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A writer with room for a number of bytes, then an error.
#[derive(Debug)]
pub(crate) struct FullDisk {
    pub written: Vec<u8>,
    pub room: usize,
}

impl FullDisk {
    pub(crate) fn after(room: usize) -> FullDisk {
        FullDisk {
            written: Vec::new(),
            room,
        }
    }
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.room - self.written.len());
        if n == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.written.extend_from_slice(&bytes[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn machine() -> Arc<Machine> {
    Arc::new(Machine::uniform("two cores", 2, 1))
}

pub(crate) fn counted(instructions: u64, cycles: u64) -> Counts {
    Counts::from_fn(|counter| match counter {
        Counter::Cycles => Reading::Value(cycles),
        Counter::Instructions => Reading::Value(instructions),
        Counter::L1Accesses => Reading::Value(instructions / 3),
        Counter::LlcAccesses => Reading::Value(instructions / 100),
        Counter::MmReads => Reading::Value(instructions / 1_000),
        _ => Reading::Absent(Absence::NoSuchEvent),
    })
}

/// A job that ran from 0 to `finish_s` and needs `solo_s` alone.
pub(crate) fn finished(id: u32, name: &str, finish_s: f64, solo_s: f64) -> TaskResult {
    let mut spec = TaskSpec::new(id, name);
    spec.solo.time = Some(Nanos::from_s(solo_s));
    TaskResult {
        spec,
        started: Some(Nanos::ZERO),
        finished: Some(Nanos::from_s(finish_s)),
        exit: Some(Exit::Code(0)),
        timed_out: false,
        told_to_end: false,
        ended_by_user: false,
        cpu_time: Reading::Value(Nanos::from_s(finish_s * 0.5)),
        waited_max: Nanos::from_ms(400),
        ran: Nanos::from_s(finish_s * 0.5),
        shared: false,
        counts: counted(3_000_000_000, 2_000_000_000),
        multiplexed: false,
        resources: Resources {
            max_rss: Reading::Value(120 << 20),
            user_time: Reading::Value(Nanos::from_s(finish_s * 0.4)),
            system_time: Reading::Value(Nanos::from_s(finish_s * 0.1)),
            read_bytes: Reading::Value(4_096),
            written_bytes: Reading::Absent(Absence::NotTold),
        },
        progress: Reading::Value(solo_s / 0.2),
        progress_basis: ProgressBasis::Ipc,
        progress_learnt: Reading::Value(1.02 * solo_s / 0.2),
        runs: 1,
        width: Reading::Value(1),
        learnt: None,
        beside: None,
    }
}

/// Four jobs: two copies that ended, one that failed, one that never started.
pub(crate) fn result() -> RunResult {
    let mut failed = finished(2, "check", 1.25, 5.0);
    failed.exit = Some(Exit::Signal {
        signal: 11,
        oom: false,
    });
    failed.spec.solo.time = None;
    let never = TaskResult {
        spec: TaskSpec {
            arrives: Nanos::from_s(60.0),
            ..TaskSpec::new(3, "late")
        },
        started: None,
        finished: None,
        exit: None,
        timed_out: false,
        told_to_end: false,
        ended_by_user: false,
        cpu_time: Reading::Absent(Absence::NotStarted),
        waited_max: Nanos::ZERO,
        ran: Nanos::ZERO,
        shared: false,
        counts: Counts::absent(Absence::NotStarted),
        multiplexed: false,
        resources: Resources::absent(Absence::NotStarted),
        progress: Reading::Absent(Absence::NotStarted),
        progress_basis: ProgressBasis::Provisional,
        progress_learnt: Reading::Absent(Absence::NotStarted),
        runs: 0,
        width: Reading::Absent(Absence::NotStarted),
        learnt: None,
        beside: None,
    };
    let mut overhead = Overhead {
        decisions: 120,
        quanta: 100,
        ..Overhead::default()
    };
    for us in 1..=100 {
        overhead.decide.add(us * 100);
        overhead.observe.add(us * 1_000);
        overhead.apply.add(us * 2_000);
    }
    RunResult {
        tasks: vec![
            finished(0, "mcf-1", 15.0, 10.0),
            finished(1, "mcf-2", 20.0, 10.0),
            failed,
            never,
        ],
        left_out: LeftOut::default(),
        turnaround: Nanos::from_s(20.0),
        ended_by: EndedBy::Halt,
        overhead,
        policy_faults: 0,
        plans: None,
        rates: Vec::new(),
        predictions: None,
        energy_j: Reading::Value(412.5),
    }
}

/// The same machine and two good jobs, simulated: no counters of time, no energy.
pub(crate) fn simulated() -> (RunResult, RunInfo) {
    let result = RunResult {
        tasks: vec![
            finished(0, "mcf-1", 15.0, 10.0),
            finished(1, "mcf-2", 20.0, 16.0),
        ],
        overhead: Overhead {
            decisions: 120,
            quanta: 100,
            ..Overhead::default()
        },
        ended_by: EndedBy::Completion,
        energy_j: Reading::Absent(Absence::NoEnergyMeter),
        ..result()
    };
    let mut info = info(&result);
    info.backend = BackendKind::Sim;
    info.started_at = None;
    info.run_id = None;
    info.machine_use = Reading::Absent(Absence::Simulated);
    info.counters = Some("simulated, every event".to_owned());
    info.freezing = Some("simulated".to_owned());
    info.cpu_share = Reading::Absent(Absence::Simulated);
    info.warnings.clear();
    info.capabilities = Capabilities::default();
    for job in &mut info.jobs {
        (job.program, job.log) = (Some("mcf".to_owned()), None);
    }
    info.jobs[0].solo = Some(SoloTime {
        time: Nanos::from_s(10.0),
        source: SoloSource::Simulated,
    });
    (result, info)
}

/// A run of a mix file on a host, with a parameter and no option.
pub(crate) fn setting() -> RunSetting {
    let mut absent = Absences::default();
    for name in [
        "timeout",
        "deadline_s",
        "mem_keep_bytes",
        "load",
        "solo",
        "shell",
    ] {
        absent.lack(name, "not given");
    }
    absent.lack("policy_lacks", "the policy was named");
    RunSetting {
        command_line: Some(["cosched", "run", "'a b.toml'"].map(str::to_owned).to_vec()),
        cwd: Some("/home/u".to_owned()),
        input: RunInput {
            kind: "mix".to_owned(),
            path: Some("/home/u/a b.toml".to_owned()),
            sha256: Some("e3b0c442".to_owned()),
            ..RunInput::default()
        },
        host: Some("node7".to_owned()),
        kernel: Some("6.18.44".to_owned()),
        params: vec![ParamSetting {
            name: "quantum_s".to_owned(),
            value: ParamValue::Number(0.2),
            origin: "param".to_owned(),
        }],
        options: RunOptions {
            policy: "perf-fair".to_owned(),
            jobs_at_once: 8,
            order: "auto".to_owned(),
            cpus: "0-1".to_owned(),
            actuation: "decisions".to_owned(),
            actuator: "freezer".to_owned(),
            restart: "never".to_owned(),
            attempts: 1,
            halt: "never".to_owned(),
            max_pause_s: 30.0,
            grace_s: 5.0,
            absent,
            ..RunOptions::default()
        },
        ..RunSetting::default()
    }
}

pub(crate) fn info(result: &RunResult) -> RunInfo {
    let mut jobs: Vec<JobInfo> = result
        .tasks
        .iter()
        .map(|task| JobInfo::of(&task.spec))
        .collect();
    for job in &mut jobs {
        job.command = Some(format!("./{} --input 'a b'", job.name));
        job.log = Some(format!("cosched-logs/{}.out", job.name));
    }
    if let Some(first) = jobs.first_mut() {
        first.solo = Some(SoloTime {
            time: Nanos::from_s(10.0),
            source: SoloSource::Measured,
        });
    }
    RunInfo {
        run_id: Some("10-77-4026531836".to_owned()),
        setting: setting(),
        machine_use: Reading::Value(MachineUse {
            cpus: 2,
            total: Nanos::from_s(40.0),
            stolen: Nanos::from_ms(80),
            foreign: Nanos::from_ms(400),
        }),
        earlier: Vec::new(),
        policy: "perf-fair".to_owned(),
        backend: BackendKind::Host,
        machine: machine(),
        seed: 7,
        quantum: Nanos::from_ms(200),
        started_at: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250)),
        jobs,
        capabilities: Capabilities {
            missing: [(Capability::Counter(Counter::MmWrites), Absence::NoSuchEvent)].into(),
        },
        counters: Some("5 events of AMD Zen 5".to_owned()),
        freezing: Some("signals".to_owned()),
        cpu_share: Reading::Value(0.0021),
        energy_source: EnergySource::Measured,
        warnings: vec![RunWarning::GuardianReplaced],
    }
}

/// Two tasks that run on a CPU each, one that waits.
pub(crate) fn snapshot() -> Snapshot {
    let running = |cpu: &str| {
        Some(Running {
            placement: Placement::Exclusive {
                cpus: cpu.parse().unwrap(),
                whole_core: true,
            },
            purpose: Purpose::Run,
            since: Nanos::from_ms(200),
            lease_end: Some(Nanos::from_ms(400)),
        })
    };
    let task = |id: u32, running: Option<Running>| TaskView {
        id: TaskId(id),
        name: format!("job-{id}").into(),
        cpus: 1,
        allowed: None,
        weight: 1.0,
        origin: Default::default(),
        control: Default::default(),
        arrived: Nanos::ZERO,
        bus_use_milli: None,
        solo_reads: None,
        memory: None,
        turn: 0,
        expected: None,
        waiting_since: if running.is_some() {
            Nanos::from_ms(400)
        } else {
            Nanos::from_ms(200)
        },
        last_cpus: running
            .as_ref()
            .map(|running| running.placement.cpus().clone())
            .unwrap_or_default(),
        home_cpu: None,
        running,
        asleep: false,
        overdue: false,
        estimates: Estimates {
            mm_reads: Reading::Value(Rate(41_200)),
            ipc: Reading::Value(0.1 + 0.2),
            progress: Reading::Value(1.0 / 3.0),
            executed: 2,
            ..Estimates::default()
        },
    };
    Snapshot {
        machine: machine(),
        now: Nanos::from_ms(400),
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: [(0, running("0")), (1, running("1")), (2, None)]
            .map(|(id, running)| Box::new(task(id, running)))
            .to_vec(),
    }
}

pub(crate) fn samples(at: Nanos) -> Vec<Sample> {
    (0..2u32)
        .map(|id| Sample {
            task: TaskId(id),
            at,
            interval: Nanos::from_ms(200),
            planned: Nanos::from_ms(200),
            purpose: Purpose::Run,
            cpus: id.to_string().parse().unwrap(),
            whole_core: true,
            co_runners: [TaskId(0), TaskId(1)].into(),
            disturbed: false,
            cpu_time: Reading::Value(Nanos(199_800_000)),
            counts: Usage {
                counts: counted(400_000_000, 600_000_000),
                ..Usage::zero(TaskId(id))
            }
            .counts,
            multiplexed: false,
            traffic: TrafficRates::absent(Absence::NotRequested),
            device_time: DeviceTime::not_requested(),
            observed: false,
        })
        .collect()
}

/// Task 2 takes the CPU of task 1.
pub(crate) fn decision() -> Decision {
    Decision {
        changes: vec![
            Change::Stop { task: TaskId(1) },
            Change::Place {
                task: TaskId(2),
                placement: Placement::Exclusive {
                    cpus: "1".parse().unwrap(),
                    whole_core: false,
                },
                lease_end: Some(Nanos::from_ms(600)),
                purpose: Purpose::Run,
            },
        ],
        waits: vec![Wait {
            task: TaskId(1),
            reason: WaitReason::Order { ahead: 0 },
        }],
        next_wake: Some(Nanos::from_ms(600)),
        ..Decision::default()
    }
}

/// Asserts that every key that is null has its reason beside it, and every reason its null.
pub(crate) fn check_absences(value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                if value.is_null() {
                    let why = map
                        .get(&format!("{key}_absent"))
                        .unwrap_or_else(|| panic!("{key} has no reason"));
                    assert!(why.as_str().is_some_and(|why| !why.is_empty()), "{key}");
                }
                if let Some(name) = key.strip_suffix("_absent") {
                    let value = map.get(name);
                    assert!(
                        value.is_none_or(serde_json::Value::is_null),
                        "{name} has a value"
                    );
                }
                check_absences(value);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(check_absences),
        _ => {}
    }
}
