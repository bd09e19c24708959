//! The loop: observe, estimate, decide, check, apply, record.

mod actuation;
mod admit;
mod arrivals;
mod backend;
mod co_runners;
mod config;
mod crowds;
mod enter;
mod error;
mod fact;
mod histogram;
mod intake;
mod intervals;
mod lifecycle;
mod looseness;
mod main_loop;
mod now;
mod recorder;
mod result;
mod show;
mod shutdown;
mod state;
mod task_record;

pub use admit::{AtOnceState, RateAt, Untried, first_in_order};
pub use backend::{Backend, Began, Event, Kill, MayStart, Planner};
pub use config::{
    Actuation, Halt, HaltOn, HaltParseError, HaltWhen, Order, Restart, RunConfig, TimeLimit,
};
pub use error::RunError;
pub use fact::{DecisionRecord, Fact, Switch, Switched, Warning};
pub use histogram::Histogram;
pub use intake::{Intake, Listed};
pub use main_loop::{run, run_all};
pub use now::{Doing, RunNow, WatchedTask};
pub use recorder::{NullRecorder, Recorder};
pub use result::{EndedBy, LeftOut, Occupation, Overhead, PlanCounts, RunResult, TaskResult};
