//! All that a policy sees: plain data, which serialises, so that a decision can be replayed.

use crate::listed::one_of_each;
use crate::placement::{Placement, Purpose};
use crate::task::{Control, Origin, TaskId, TaskSpec};
use crate::topology::{CpuSet, Machine};
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a decision is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The wake-up that the last decision asked for.
    QuantumEnd,
    /// The lease of this task's placement ended before the quantum did.
    LeaseEnd(TaskId),
    /// A task is there that was not before.
    Arrived(TaskId),
    /// A task ended, and its CPUs are free.
    Ended(TaskId),
    /// A sleeping task woke.
    Woke(TaskId),
    /// The load on the memory bus fell: what did not fit may fit now.
    LoadFell,
    /// A task has waited beyond its bound.
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

/// On what a task's progress is based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressBasis {
    /// Measured against solo IPC (Perf&Fair, Eq. 1).
    Ipc,
    /// Measured against a trace of a solo run, instruction by instruction.
    Trace,
    /// Solo IPC is not known yet: the time run, as if no co-runner slowed the task. It is replaced by the measured
    /// progress as soon as the first solo IPC is there.
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
    /// Lines written to memory, rate in the last executed quantum.
    pub mm_writes: Reading<Rate>,
    /// Accesses to the last-level cache, rate in the last executed quantum.
    pub llc: Reading<Rate>,
    /// Accesses to the first-level cache, rate in the last executed quantum.
    pub l1: Reading<Rate>,
    /// Instructions per cycle in the last executed quantum.
    pub ipc: Reading<f64>,
    /// Instructions retired per millisecond of CPU time in the last executed quantum; a thousandth of that is MIPS. It
    /// says what the task does while it has a core, also where the kernel shares the core out among several tasks.
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
    /// Instructions per cycle when alone over the instructions of the last executed interval, by a trace of a solo run
    /// made before this run.
    #[serde(default = "no_trace")]
    pub trace_ipc: Reading<f64>,
    /// Quanta' worth of solo execution done so far, by that trace.
    #[serde(default = "no_trace")]
    pub trace_progress: Reading<f64>,
    /// Executed intervals so far, however short.
    pub executed: u32,
    /// Time that the task has been placed.
    pub ran: Nanos,
}

/// What an event that was written before there was such a value says of it.
fn not_yet<T>() -> Reading<T> {
    Reading::Absent(Absence::NotYetMeasured)
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
            executed: 0,
            ran: Nanos::ZERO,
        }
    }
}

/// A placement that is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// Where.
    pub placement: Placement,
    /// What for.
    pub purpose: Purpose,
    /// Since when without a break.
    pub since: Nanos,
    /// Until when it was granted; `None` until further notice.
    pub lease_end: Option<Nanos>,
}

/// One task that has arrived and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its number.
    pub id: TaskId,
    /// Its name.
    pub name: Arc<str>,
    /// Hardware threads that it needs at the same time.
    pub cpus: u32,
    /// The CPUs that it may use; `None` for all.
    pub allowed: Option<CpuSet>,
    /// Linux nice value.
    pub nice: i8,
    /// Where it comes from.
    pub origin: Origin,
    /// What may be done to it.
    pub control: Control,
    /// When it arrived.
    pub arrived: Nanos,
    /// Where it runs now; `None` while it waits.
    pub running: Option<Running>,
    /// It sleeps of its own accord and needs no CPU now.
    pub asleep: bool,
    /// Since when it has waited; now, for a running one.
    pub waiting_since: Nanos,
    /// It has waited beyond the run's bound on pauses: take it first.
    pub overdue: bool,
    /// The CPUs that it ran on last.
    pub last_cpus: CpuSet,
    /// What is known of it.
    pub estimates: Estimates,
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
            origin: spec.origin,
            control: spec.control,
            arrived: now,
            running: None,
            asleep: false,
            waiting_since: now,
            overdue: false,
            last_cpus: CpuSet::new(),
            estimates,
        }
    }

    /// It runs, and a policy may not stop or move it: its CPUs are taken for good.
    pub fn is_fixed(&self) -> bool {
        self.running.is_some() && !(self.control.place && self.control.freeze)
    }

    /// Whether it keeps its CPUs in a round of giving them out: between quanta (not `full`) whoever runs, at the end of
    /// a quantum only a [fixed](TaskView::is_fixed) task.
    pub fn stays(&self, full: bool) -> bool {
        if full { self.is_fixed() } else { self.running.is_some() }
    }
}

/// Everything a policy may know when it decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Now.
    pub now: Nanos,
    /// What led to the question; several things can happen at once.
    pub triggers: Vec<Trigger>,
    /// Every task that has arrived and not ended, in ascending order of their numbers.
    pub tasks: Vec<TaskView>,
}

impl Snapshot {
    /// The task of that number.
    pub fn task(&self, id: TaskId) -> Option<&TaskView> {
        self.tasks.binary_search_by_key(&id, |task| task.id).ok().map(|ix| &self.tasks[ix])
    }

    /// Whether the whole machine is to be shared out anew, and not only what became free be filled.
    pub fn is_quantum_end(&self) -> bool {
        self.triggers.contains(&Trigger::QuantumEnd)
    }
}
