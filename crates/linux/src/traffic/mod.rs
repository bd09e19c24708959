//! Lines that each memory domain reads and writes, counted by its memory controllers.
//!
//! The kernel offers these counters as perf PMUs of their own. They count for whoever asked (jobs of the run, other
//! processes, devices), so they are opened on a CPU and for no process, which mostly only administrators may. The
//! readers follow the kernel's sources. They were tested on small file trees only: no machine with such a PMU was at
//! hand.

mod discovery;
mod encoding;
mod meter;
mod places;
#[cfg(test)]
mod tests;

pub use discovery::TrafficSource;
pub use meter::TrafficMeter;

use crate::root::ReadError;
use cosched_core::Absence;
use std::fmt;

const ITEM: &str = "memory traffic";

/// Why the traffic of a memory domain, or of all of them, is not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTraffic {
    /// The reason that reports show.
    pub reason: Absence,
    /// The details, one line for each thing that was tried or found.
    pub details: Vec<String>,
}

impl NoTraffic {
    fn new(reason: Absence, detail: impl Into<String>) -> NoTraffic {
        NoTraffic {
            reason,
            details: vec![detail.into()],
        }
    }

    /// One error for several. What permission would mend comes first, because the user can do something about it.
    fn merge(problems: impl IntoIterator<Item = NoTraffic>) -> Option<NoTraffic> {
        let mut merged: Option<NoTraffic> = None;
        for problem in problems {
            let Some(so_far) = &mut merged else {
                merged = Some(problem);
                continue;
            };
            if problem.reason == Absence::NoPermission {
                so_far.reason = Absence::NoPermission;
            }
            for detail in problem.details {
                if !so_far.details.contains(&detail) {
                    so_far.details.push(detail);
                }
            }
        }
        merged
    }
}

impl From<ReadError> for NoTraffic {
    fn from(error: ReadError) -> NoTraffic {
        let reason = if error.is_permission() {
            Absence::NoPermission
        } else {
            Absence::NotTold
        };
        NoTraffic::new(reason, error.to_string())
    }
}

impl fmt::Display for NoTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if !self.details.is_empty() {
            write!(f, " ({})", self.details.join("; "))?;
        }
        Ok(())
    }
}
