//! The pure part of cosched: tasks, machines, measurements and decisions, their estimators and metrics, and the
//! policies. It does no I/O, reads no clock and knows no backend; any implementation of [`Backend`] will do.
#![cfg_attr(test, allow(clippy::disallowed_methods))] // The rules are the library's.

mod bus_admission;
mod by_task;
mod capability;
mod check;
mod counter;
mod decision;
mod device;
mod disturbance;
mod estimate;
mod expected;
mod job_end;
mod listed;
pub mod metric;
pub mod model;
mod niceness;
mod papers;
mod part;
mod placement;
mod plan;
mod policy;
mod residency;
mod resources;
mod rng;
mod run;
mod sample;
mod snapshot;
mod solo_trace;
mod spare;
pub mod spelling;
mod task;
mod topology;
mod traffic;
mod units;
mod visible;

pub use bus_admission::{BusAdmission, Demand};
pub use by_task::ByTask;
pub use capability::{Capabilities, Capability};
pub use check::{InvalidDecision, check};
pub use counter::{Counter, PerCounter};
pub use decision::{Basis, Change, Decision, DemandBasis, Wait, WaitReason};
pub use device::{Device, DeviceTime, PerDevice};
pub use disturbance::{
    CpuShare, CpuUsed, Disturbance, Disturber, Evidence, Observed, Pressure, SubjectSample,
    disturbances,
};
pub use estimate::{
    EarlierPhase, EarlierPhases, IdealBandwidth, InitialProgress, Interference, NeighbouredRun,
    Pace, PredictionErrors, TaskEstimator, interferences,
};
pub use expected::{Expected, ExpectedFrom};
pub use job_end::JobEnd;
pub use niceness::{kernel_weight, weight_of_nice};
pub use papers::{PAPERS, Paper};
pub use placement::{Placement, Purpose};
pub use plan::{Filler, Payload, Plan, Schedule, Seat, Spare};
pub use policy::{
    AUTO, AutoRow, BuildPolicy, FindNeeds, FitnessCandidate, FitnessQueue, Importance, JobKind,
    Need, POLICIES, ParamError, ParamKind, ParamSpec, ParamValue, Params, Policy, PolicyEntry,
    PolicyFailure, Shortfall, auto_lacks, auto_row, find_policy, set_along, spread_has_choice,
    stand_in,
};
pub use residency::Residency;
pub use resources::Resources;
pub use rng::{Rng, RngState};
pub use run::{
    Actuation, AtOnceState, Backend, Began, DecisionRecord, Doing, EndedBy, Event, Fact, Halt,
    HaltOn, HaltParseError, HaltWhen, Histogram, Intake, Kill, LeftOut, Listed, MayStart,
    NullRecorder, Occupation, Order, Overhead, PlanCounts, Planner, RateAt, Recorder, Restart,
    RunConfig, RunError, RunNow, RunResult, Switch, Switched, TaskResult, TimeLimit, Untried,
    Warning, WatchedTask, first_in_order, run, run_all,
};
pub use sample::{Counts, Sample, Usage, Wanting};
pub use snapshot::{
    Estimates, LastCpi, Learnt, Measured, ProgressBasis, Running, Snapshot, TaskView, Trigger,
};
pub use solo_trace::{SoloPoint, SoloTrace, SoloTraceError};
pub use spare::spare_cpus;
pub use task::{Control, Exit, Origin, SoloProfile, TaskId, TaskSpec, Width, signal_name};
pub use topology::{
    CoreType, Cpu, CpuId, CpuListError, CpuSet, MAX_CPU, Machine, MachineError, Node, node_of,
};
pub use traffic::{Traffic, TrafficRates};
pub use units::{Absence, Nanos, Rate, Reading};
pub use visible::{Visible, VisibleFrom};
