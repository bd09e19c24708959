//! Everything that a policy sees. It is plain, serialisable data, so that a decision can be replayed.

use crate::bus_admission::Demand;
use crate::device::PerDevice;
use crate::expected::Expected;
use crate::listed::one_of_each;
use crate::model::contention::{Contention, PhaseDemand};
use crate::placement::{Placement, Purpose};
use crate::task::{Control, Origin, TaskId, TaskSpec, is_one, one};
use crate::topology::{CpuId, CpuSet, Machine};
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reason for asking for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The wake-up that the last decision asked for is due. Also given at the start, after a change of the machine's
    /// CPUs, and when plans are given up. All CPUs are then reallocated.
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

/// Basis of a task's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressBasis {
    /// Measured against solo IPC (Perf&Fair, Eq. 1).
    Ipc,
    /// Measured against a trace of a solo run, instruction by instruction.
    Trace,
    /// Solo IPC is not known yet: executed time counts as progress, as if without slowdown. The measured progress
    /// replaces it as soon as the first solo IPC is known.
    #[default]
    Provisional,
    /// CPU time alone, where nothing can be counted: as if without slowdown.
    CpuTime,
}

/// The loop's estimates for a task. Every policy and every report sees the same figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// Lines read from memory, rate in the last executed quantum.
    pub mm_reads: Reading<Rate>,
    /// The same rate, as a mean over the time that the task has run.
    pub mm_reads_mean: Reading<Rate>,
    /// Lines written to memory, rate in the last executed quantum: counted, or else the task's share of the writes of
    /// its memory domain (EFS, Eq. 19).
    pub mm_writes: Reading<Rate>,
    /// Lines read and written by the task's memory domain, from all sources, rate in the last executed quantum; the
    /// mean if it ran on several domains (EFS, Eq. 18).
    #[serde(default = "not_requested")]
    pub domain_lines: Reading<Rate>,
    /// Time that each device worked for it, in ns per millisecond, in the last executed quantum.
    #[serde(
        default = "PerDevice::not_requested",
        skip_serializing_if = "PerDevice::is_not_requested"
    )]
    pub device_time: PerDevice<Reading<Rate>>,
    /// Accesses to the last-level cache, rate in the last executed quantum.
    pub llc: Reading<Rate>,
    /// Accesses to the first-level cache, rate in the last executed quantum.
    pub l1: Reading<Rate>,
    /// Instructions per cycle in the last executed quantum.
    pub ipc: Reading<f64>,
    /// Instructions retired per millisecond of CPU time in the last executed quantum; a thousandth of that is MIPS. It
    /// is the task's speed while on a CPU, even where the kernel time-shares the CPU.
    #[serde(default = "not_yet")]
    pub cpu_instructions: Reading<u64>,
    /// Lines read from memory per millisecond of CPU time in the last executed quantum.
    #[serde(default = "not_yet")]
    pub cpu_mm_reads: Reading<Rate>,
    /// Estimated solo IPC.
    pub solo_ipc: Reading<f64>,
    /// Quanta executed since that estimate.
    pub solo_age: u32,
    /// Solo execution done so far, in quanta (Perf&Fair, Eq. 1).
    pub progress: Reading<f64>,
    /// Basis of `progress`.
    pub progress_basis: ProgressBasis,
    /// Solo IPC over the instructions of the last executed interval, from the trace of a solo run before this run.
    #[serde(default = "no_trace")]
    pub trace_ipc: Reading<f64>,
    /// Solo execution done so far, in quanta, by that trace.
    #[serde(default = "no_trace")]
    pub trace_progress: Reading<f64>,
    /// The learnt model of the task.
    #[serde(default = "not_yet")]
    pub learnt: Reading<Learnt>,
    /// Threads that want a CPU at the same time, for tasks of [`Width::Measured`](crate::Width): the largest number that
    /// lasted.
    #[serde(default = "not_requested", skip_serializing_if = "is_absent")]
    pub wanting: Reading<u32>,
    /// Time placed that it still needs, by its visible progress; for policies that want it, and only at a steady pace.
    #[serde(default = "not_requested", skip_serializing_if = "is_absent")]
    pub visible_left: Reading<Nanos>,
    /// Intervals executed so far, however short.
    pub executed: u32,
    /// Total time in which the task was placed.
    pub ran: Nanos,
}

/// What is known of a task, and how well, whatever the source: the intervals that it ran, or an earlier run. See
/// [`model::contention`](crate::model::contention).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// Its demand in the present phase, on a core of the fastest type.
    pub asks: PhaseDemand,
    /// Solo cycles per instruction on such a core, in the present phase.
    pub solo_cpi: f64,
    /// Its demand on each slower core type, in their order; predicted for types that it has not run on. Empty if all
    /// cores are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<PhaseDemand>,
    /// Relative standard error of `solo_cpi`.
    pub error: f64,
    /// How far it was measured.
    pub measured: Measured,
    /// Solo execution done so far, in quanta.
    pub progress: f64,
    /// Its last ordinary interval in this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastCpi>,
    /// Number of the present phase, in the order of their first appearance.
    pub phase: u32,
}

/// Cycles per instruction of a task in an interval beside others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastCpi {
    /// As counted.
    pub counted: f64,
    /// As the model said before.
    pub modelled: f64,
    /// The number of the type of its core.
    pub core_type: usize,
}

/// How far a task was measured alone behind its last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// In no phase.
    Never,
    /// Not itself, but another task that does the same kind of work as it does in the present phase.
    Alike,
    /// In the present phase, but in an earlier run.
    EarlierRun,
    /// In other phases, but not in the present one.
    OtherPhase,
    /// In the present phase, or in both phases of which it is a mixture.
    Phase,
}

impl Learnt {
    /// Solo cycles per instruction on a core of this type.
    pub fn solo_cpi_on(&self, core_type: usize, shared: &Contention) -> f64 {
        match core_type {
            0 => self.solo_cpi,
            slower => self.asks_on(slower).solo_cpi(shared),
        }
    }

    /// Its demand on a core of this type.
    pub fn asks_on(&self, core_type: usize) -> &PhaseDemand {
        core_type
            .checked_sub(1)
            .and_then(|slower| self.slower.get(slower))
            .unwrap_or(&self.asks)
    }

    /// Solo time per instruction on a core of the fastest type, in ns.
    pub fn solo_ns(&self) -> f64 {
        self.solo_cpi / self.asks.ghz
    }
}

/// The default for a field that older recorded events lack.
fn not_yet<T>() -> Reading<T> {
    Reading::Absent(Absence::NotYetMeasured)
}

fn not_requested<T>() -> Reading<T> {
    Reading::Absent(Absence::NotRequested)
}

fn is_absent<T>(reading: &Reading<T>) -> bool {
    reading.absence().is_some()
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
            device_time: PerDevice::not_requested(),
            llc: not_yet,
            l1: not_yet,
            ipc: Reading::Absent(Absence::NotYetMeasured),
            cpu_instructions: Reading::Absent(Absence::NotYetMeasured),
            cpu_mm_reads: not_yet,
            solo_ipc: Reading::Absent(Absence::NoSoloEstimate),
            solo_age: 0,
            progress: Reading::Absent(Absence::NotYetMeasured),
            progress_basis: ProgressBasis::Provisional,
            trace_ipc: no_trace(),
            trace_progress: no_trace(),
            learnt: Reading::Absent(Absence::NotYetMeasured),
            wanting: not_requested(),
            visible_left: not_requested(),
            executed: 0,
            ran: Nanos::ZERO,
        }
    }
}

/// A placement in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The CPUs, exclusive or shared.
    pub placement: Placement,
    /// Purpose of the placement.
    pub purpose: Purpose,
    /// Start of the present uninterrupted run. Moves are not interruptions.
    pub since: Nanos,
    /// When the lease ends; `None`: no end.
    pub lease_end: Option<Nanos>,
}

/// A task that has arrived and has not ended.
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
    /// Its share of the time, or of progress, relative to other tasks: greater than 0, usually 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// Stated solo bus use of each of its CPUs, in thousandths; `None` if not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_use_milli: Option<u16>,
    /// Solo reads from memory, measured before the run; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solo_reads: Option<Rate>,
    /// Memory that it needs in bytes, as stated or expected; `None` if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Whether this run started it or found it running.
    pub origin: Origin,
    /// Operations that are allowed on it.
    pub control: Control,
    /// Arrival time.
    pub arrived: Nanos,
    /// Its position in the order of admission.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: u32,
    /// Expectations from earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Its present placement; `None` while it waits.
    pub running: Option<Running>,
    /// Whether it sleeps by its own choice and needs no CPU now.
    pub asleep: bool,
    /// Start of its wait; for a running task, now.
    pub waiting_since: Nanos,
    /// Whether it has waited longer than the run's bound on pauses. A policy chooses it first.
    pub overdue: bool,
    /// The CPUs that it ran on last.
    pub last_cpus: CpuSet,
    /// A CPU of the memory domain where it ran first, in which its memory lies. `None` before, and if there was only one
    /// domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_cpu: Option<CpuId>,
    /// Measurements and estimates.
    pub estimates: Estimates,
}

fn is_zero(turn: &u32) -> bool {
    *turn == 0
}

impl TaskView {
    /// A task at its arrival, with its initial estimates.
    pub fn arriving(spec: &TaskSpec, now: Nanos, estimates: Estimates) -> TaskView {
        TaskView {
            id: spec.id,
            name: spec.name.as_str().into(),
            cpus: spec.cpus,
            allowed: spec.allowed.clone(),
            weight: spec.weight,
            bus_use_milli: spec.bus_use_milli,
            solo_reads: spec.solo.mm_reads,
            memory: spec
                .memory
                .or(spec.expected.and_then(|expected| expected.memory)),
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
            home_cpu: None,
            estimates,
        }
    }

    /// Whether it runs and a policy may not stop or move it. Its CPUs are then occupied until it ends.
    pub fn is_fixed(&self) -> bool {
        self.running.is_some() && !(self.control.place && self.control.freeze)
    }

    /// The memory domain in which its memory lies; `None` if that is not known, or if there is no choice.
    pub fn home(&self, machine: &Machine) -> Option<usize> {
        let cpu = machine.cpu(self.home_cpu?)?;
        (machine.memory_domains.len() > 1).then_some(cpu.memory_domain)
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

    /// Its CPUs, if it runs on them exclusively.
    pub fn exclusive_cpus(&self) -> Option<&CpuSet> {
        match &self.running.as_ref()?.placement {
            Placement::Exclusive { cpus, .. } => Some(cpus),
            Placement::Shared { .. } => None,
        }
    }

    /// Whether it keeps its CPUs in this decision. Between quanta (not `full`) every running task does; at the end of a
    /// quantum only a [fixed](TaskView::is_fixed) task does.
    pub fn stays(&self, full: bool) -> bool {
        if full {
            self.is_fixed()
        } else {
            self.running.is_some()
        }
    }
}

/// All input of a policy's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The machine, with the CPUs that may be used now.
    pub machine: Arc<Machine>,
    /// The present time.
    pub now: Nanos,
    /// Why the policy is asked: several events can coincide.
    pub triggers: Vec<Trigger>,
    /// Number of tasks that have arrived and wait for admission.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u32,
    /// Costs of sharing this machine, as learnt so far.
    #[serde(default)]
    pub contention: Contention,
    /// Measured demands, in ascending order of the tasks, if the backend [admits](crate::Planner::admits) tasks to the
    /// memory bus by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admits: Option<Vec<Demand>>,
    /// Solo bandwidth per CPU, as the [mean](crate::IdealBandwidth) over all tasks of the run so far, queued and ended
    /// ones too.
    #[serde(default = "not_yet")]
    pub ideal_bandwidth: Reading<Rate>,
    /// Every task that has arrived and not ended, in ascending order of their numbers. Boxed, since the end of a task
    /// moves all later ones.
    pub tasks: Vec<Box<TaskView>>,
}

impl Snapshot {
    /// The task with this number.
    pub fn task(&self, id: TaskId) -> Option<&TaskView> {
        self.position(id).map(|ix| &*self.tasks[ix])
    }

    /// The index in `tasks` of the task with this number.
    pub(crate) fn position(&self, id: TaskId) -> Option<usize> {
        self.tasks.binary_search_by_key(&id, |task| task.id).ok()
    }

    /// Whether to reallocate all CPUs. If not, only free CPUs are filled.
    pub fn is_quantum_end(&self) -> bool {
        self.triggers.contains(&Trigger::QuantumEnd)
    }
}
