//! The loop: observe, estimate, decide, check, apply, record.

mod actuation;
mod admit;
mod arrivals;
mod at_once;
mod backend;
mod beside;
mod config;
mod crowds;
mod error;
mod fact;
mod histogram;
mod intake;
mod intervals;
mod lifecycle;
mod looseness;
mod main_loop;
mod neighbours;
mod now;
mod order;
mod overtaking;
mod queue;
mod recorder;
mod response;
mod result;
mod show;
mod shutdown;
mod state;
mod task_record;

pub use at_once::{AtOnceState, RateAt, Untried};
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
pub use order::first_in_order;
pub use recorder::{NullRecorder, Recorder};
pub use result::{EndedBy, LeftOut, Occupation, Overhead, PlanCounts, RunResult, TaskResult};
