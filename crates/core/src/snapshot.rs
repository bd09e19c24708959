//! Everything that a policy sees. It is plain data that can be serialised, so that a decision can be replayed.

use crate::admission::Demand;
use crate::expected::Expected;
use crate::listed::one_of_each;
use crate::model::contention::{Asks, Contention};
use crate::placement::{Placement, Purpose};
use crate::task::{Control, Origin, TaskId, TaskSpec};
use crate::topology::{CpuId, CpuSet, Machine};
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a decision is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The wake-up that the last decision asked for is due. Also given at the start, after a change of the machine's
    /// CPUs, and when plans are given up. All CPUs are then given out anew.
    QuantumEnd,
    /// The lease of this task's placement ended before the quantum did.
    LeaseEnd(TaskId),
    /// A task has arrived and may be started.
    Arrived(TaskId),
    /// A task ended, and its CPUs are free.
    Ended(TaskId),
    /// A sleeping task woke.
    Woke(TaskId),
    /// The load on the memory bus fell: a task that did not fit may fit now.
    LoadFell,
    /// A task has become [overdue](TaskView::overdue).
    Starved(TaskId),
}

one_of_each! {
    Trigger {
        QuantumEnd,
        LeaseEnd(TaskId(3)),
        Arrived(TaskId(3)),
        Ended(TaskId(3)),
        Woke(TaskId(3)),
        LoadFell,
        Starved(TaskId(3)),
    }
}

/// What a task's progress is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressBasis {
    /// Measured against solo IPC (Perf&Fair, Eq. 1).
    Ipc,
    /// Measured against a trace of a solo run, instruction by instruction.
    Trace,
    /// Solo IPC is not known yet: executed time counts as progress, as if no co-runner slowed the task. The measured
    /// progress replaces it as soon as the first solo IPC is known.
    #[default]
    Provisional,
    /// CPU time alone, where nothing can be counted: as if no co-runner ever slowed a task.
    CpuTime,
}

/// What the loop's estimators know of a task. Every policy and every report sees the same figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// Lines read from memory, rate in the last executed quantum.
    pub mm_reads: Reading<Rate>,
    /// The same, mean over the time that the task has run.
    pub mm_reads_mean: Reading<Rate>,
    /// Lines written to memory, rate in the last executed quantum: counted, or else the task's part of what its memory
    /// domain wrote (EFS, Eq. 19).
    pub mm_writes: Reading<Rate>,
    /// Lines read and written by the memory domain that the task ran on, for whoever asked, rate in the last executed
    /// quantum; the mean over several domains (EFS, Eq. 18).
    #[serde(default = "not_requested")]
    pub domain_lines: Reading<Rate>,
    /// Accesses to the last-level cache, rate in the last executed quantum.
    pub llc: Reading<Rate>,
    /// Accesses to the first-level cache, rate in the last executed quantum.
    pub l1: Reading<Rate>,
    /// Instructions per cycle in the last executed quantum.
    pub ipc: Reading<f64>,
    /// Instructions retired per millisecond of CPU time in the last executed quantum; a thousandth of that is MIPS. It
    /// is the task's speed while it has a core, even where the kernel time-shares the core.
    #[serde(default = "not_yet")]
    pub cpu_instructions: Reading<u64>,
    /// Lines read from memory per millisecond of CPU time in the last executed quantum.
    #[serde(default = "not_yet")]
    pub cpu_mm_reads: Reading<Rate>,
    /// Instructions per cycle when alone, as last estimated.
    pub solo_ipc: Reading<f64>,
    /// Executed quanta since that estimate.
    pub solo_age: u32,
    /// Lines read from memory when alone, mean rate over a solo run made before this run.
    pub solo_mm_reads: Reading<Rate>,
    /// Quanta' worth of solo execution done so far (Perf&Fair, Eq. 1).
    pub progress: Reading<f64>,
    /// What the progress is based on.
    pub progress_basis: ProgressBasis,
    /// Instructions per cycle when alone, over the instructions of the last executed interval. It comes from the trace
    /// of a solo run made before this run.
    #[serde(default = "no_trace")]
    pub trace_ipc: Reading<f64>,
    /// Quanta' worth of solo execution done so far, by that trace.
    #[serde(default = "no_trace")]
    pub trace_progress: Reading<f64>,
    /// What was learnt of the task.
    #[serde(default = "not_yet")]
    pub learnt: Reading<Learnt>,
    /// Executed intervals so far, however short.
    pub executed: u32,
    /// Time for which the task has been placed.
    pub ran: Nanos,
}

/// What was learnt of a task from the intervals that it ran: see [`model::contention`](crate::model::contention).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// What it asks for in its present phase, on a core of the fastest type.
    pub asks: Asks,
    /// Cycles per instruction alone on such a core, in the present phase.
    pub solo_cpi: f64,
    /// What it asks for on cores of each of the other types, in their order; expected where it was not seen there. Empty where
    /// all cores are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<Asks>,
    /// Relative standard error of `solo_cpi`.
    pub error: f64,
    /// Quanta' worth of solo execution done so far.
    pub progress: f64,
    /// Number of the present phase, in the order in which they were first seen.
    pub phase: u32,
    /// Intervals in that phase without a break.
    pub stay: u32,
    /// Whether the task was measured in this phase with its cores to itself.
    pub measured: bool,
    /// In a measurement, by which part of the cycles per instruction they fell since the interval before because the cache
    /// filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<f64>,
}

impl Learnt {
    /// What it asks for on a core of this type.
    pub fn asks_on(&self, core_type: usize) -> &Asks {
        core_type
            .checked_sub(1)
            .and_then(|slower| self.slower.get(slower))
            .unwrap_or(&self.asks)
    }

    /// Time in ns for an instruction when alone on a core of the fastest type.
    pub fn solo_ns(&self) -> f64 {
        self.solo_cpi / self.asks.ghz
    }
}

/// The value of a field that an older recorded event lacks.
fn not_yet<T>() -> Reading<T> {
    Reading::Absent(Absence::NotYetMeasured)
}

fn not_requested<T>() -> Reading<T> {
    Reading::Absent(Absence::NotRequested)
}

fn no_trace<T>() -> Reading<T> {
    Reading::Absent(Absence::NoSoloTrace)
}

impl Default for Estimates {
    fn default() -> Estimates {
        let not_yet = not_yet();
        Estimates {
            mm_reads: not_yet,
            mm_reads_mean: not_yet,
            mm_writes: not_yet,
            domain_lines: not_requested(),
            llc: not_yet,
            l1: not_yet,
            ipc: Reading::Absent(Absence::NotYetMeasured),
            cpu_instructions: Reading::Absent(Absence::NotYetMeasured),
            cpu_mm_reads: not_yet,
            solo_ipc: Reading::Absent(Absence::NoSoloEstimate),
            solo_age: 0,
            solo_mm_reads: Reading::Absent(Absence::NoSoloEstimate),
            progress: Reading::Absent(Absence::NotYetMeasured),
            progress_basis: ProgressBasis::Provisional,
            trace_ipc: no_trace(),
            trace_progress: no_trace(),
            learnt: Reading::Absent(Absence::NotYetMeasured),
            executed: 0,
            ran: Nanos::ZERO,
        }
    }
}

/// A placement that is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The CPUs, exclusive or shared.
    pub placement: Placement,
    /// What the placement is for.
    pub purpose: Purpose,
    /// When the task began to run without a break. Moves do not count as breaks.
    pub since: Nanos,
    /// When the lease ends; `None`: until further notice.
    pub lease_end: Option<Nanos>,
}

/// One task that has arrived and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its number in the run.
    pub id: TaskId,
    /// Its unique name.
    pub name: Arc<str>,
    /// Hardware threads that it needs at the same time.
    pub cpus: u32,
    /// The CPUs that it may use; `None` for all.
    pub allowed: Option<CpuSet>,
    /// Linux nice value.
    pub nice: i8,
    /// What it is said to use of the memory bus when alone, for each of its CPUs, in thousandths; `None` if nobody said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_use_milli: Option<u16>,
    /// Whether this run started it or found it running.
    pub origin: Origin,
    /// What may be done to it.
    pub control: Control,
    /// When it arrived.
    pub arrived: Nanos,
    /// Its number in the order in which tasks were let in: each is given the next one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: u32,
    /// What earlier runs of it let expect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Where it runs now; `None` while it waits.
    pub running: Option<Running>,
    /// It sleeps of its own accord and needs no CPU now.
    pub asleep: bool,
    /// When its wait began; for a running task, now.
    pub waiting_since: Nanos,
    /// It has waited for longer than the run's bound on pauses. A policy takes it first.
    pub overdue: bool,
    /// The CPUs that it ran on last.
    pub last_cpus: CpuSet,
    /// What was measured and estimated of it.
    pub estimates: Estimates,
}

fn is_zero(turn: &u32) -> bool {
    *turn == 0
}

impl TaskView {
    /// A task at the instant of its arrival, with what is known of it then.
    pub fn arriving(spec: &TaskSpec, now: Nanos, estimates: Estimates) -> TaskView {
        TaskView {
            id: spec.id,
            name: spec.name.as_str().into(),
            cpus: spec.cpus,
            allowed: spec.allowed.clone(),
            nice: spec.nice,
            bus_use_milli: spec.bus_use_milli,
            origin: spec.origin,
            control: spec.control,
            arrived: now,
            turn: 0,
            expected: spec.expected,
            running: None,
            asleep: false,
            waiting_since: now,
            overdue: false,
            last_cpus: CpuSet::new(),
            estimates,
        }
    }

    /// Whether it runs and a policy may not stop or move it. Its CPUs are then taken for good.
    pub fn is_fixed(&self) -> bool {
        self.running.is_some() && !(self.control.place && self.control.freeze)
    }

    /// Whether it may use a CPU.
    pub fn may_use(&self, cpu: CpuId) -> bool {
        self.allowed.as_ref().is_none_or(|mask| mask.contains(cpu))
    }

    /// The CPUs of a set that it may use.
    #[inline]
    pub fn usable(&self, cpus: &CpuSet) -> CpuSet {
        match &self.allowed {
            Some(mask) => mask.intersection(cpus),
            None => cpus.clone(),
        }
    }

    /// The CPUs that it runs on and shares with no other task.
    pub fn exclusive_cpus(&self) -> Option<&CpuSet> {
        match &self.running.as_ref()?.placement {
            Placement::Exclusive { cpus, .. } => Some(cpus),
            Placement::Shared { .. } => None,
        }
    }

    /// Whether it keeps its CPUs when CPUs are given out. Between quanta (not `full`) every running task does; at the
    /// end of a quantum only a [fixed](TaskView::is_fixed) task does.
    pub fn stays(&self, full: bool) -> bool {
        if full {
            self.is_fixed()
        } else {
            self.running.is_some()
        }
    }
}

/// Everything a policy may know when it decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The machine, with the CPUs that may be used now.
    pub machine: Arc<Machine>,
    /// The present time.
    pub now: Nanos,
    /// Why the policy is asked. Several things can happen at once.
    pub triggers: Vec<Trigger>,
    /// Tasks that have arrived and wait to be let in.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u32,
    /// What the machine charges tasks that share it, as learnt so far.
    #[serde(default)]
    pub contention: Contention,
    /// The backend [admits](crate::Planner::admits) tasks to the memory bus by itself; the demands that it has measured, in
    /// ascending order of the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admits: Option<Vec<Demand>>,
    /// Every task that has arrived and not ended, in ascending order of their numbers.
    pub tasks: Vec<TaskView>,
}

impl Snapshot {
    /// The task of that number.
    pub fn task(&self, id: TaskId) -> Option<&TaskView> {
        self.position(id).map(|ix| &self.tasks[ix])
    }

    /// The index in `tasks` of the task of that number.
    pub(crate) fn position(&self, id: TaskId) -> Option<usize> {
        self.tasks.binary_search_by_key(&id, |task| task.id).ok()
    }

    /// Whether all CPUs are to be given out anew. If not, only free CPUs are filled.
    pub fn is_quantum_end(&self) -> bool {
        self.triggers.contains(&Trigger::QuantumEnd)
    }
}
