//! The rates at which tasks end with different numbers of them at once, and what follows from them.

use crate::topology::Machine;
use serde::{Deserialize, Serialize};

/// How far the rate may fall below the best for less CPU time, as a logarithm.
pub(super) const LOSS: f64 = 0.01;

/// The rate of ends with a number of tasks at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateAt {
    /// The number of tasks at once.
    pub jobs: u32,
    /// Tasks that end in a time, relative to full width.
    pub rate: f64,
    /// CPU time of a task, relative to full width; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Tasks that were measured.
    pub ends: u32,
}

impl RateAt {
    /// The rate at full width, to which all others are relative.
    pub(super) fn full(jobs: usize) -> RateAt {
        RateAt {
            jobs: jobs as u32,
            rate: 1.0,
            cpu: Some(1.0),
            ends: 0,
        }
    }

    /// The number of tasks at once.
    pub(super) fn number(&self) -> usize {
        self.jobs as usize
    }
}

/// What is known of the best number of tasks at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtOnceState {
    /// Two numbers were compared.
    Found {
        /// The number besides full width.
        other: RateAt,
        /// Full width.
        full: u32,
        /// Whether full width is better.
        is_full: bool,
    },
    /// All CPUs are used, because nothing was tried.
    Untried(Untried),
}

/// Why no other number at once was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Untried {
    /// A trial would cost too much in a run of fewer than so many alike tasks.
    Few(u32),
    /// The tasks are not of one program, or that is not known.
    Unlike,
    /// A task needs several CPUs.
    Wide,
    /// The machine has several memory domains. A policy may fill one first, so that fewer tasks look slower than they need be.
    Domains,
    /// The tasks run on several nodes.
    Nodes,
}

impl Untried {
    /// Why nothing can be tried on this machine; `None` if something can.
    pub(in crate::run) fn on(machine: &Machine) -> Option<Untried> {
        if !machine.nodes.is_empty() {
            Some(Untried::Nodes)
        } else if machine.memory_domains.len() > 1 {
            Some(Untried::Domains)
        } else {
            None
        }
    }
}

impl AtOnceState {
    /// Whether fewer than full width are best.
    pub(in crate::run::admit) fn is_fewer(&self) -> bool {
        matches!(self, AtOnceState::Found { is_full: false, .. })
    }

    /// Equal for states that differ in their figures alone.
    pub(super) fn kind(&self) -> (std::mem::Discriminant<Untried>, Option<(u32, bool)>) {
        let of = std::mem::discriminant;
        match self {
            AtOnceState::Found { other, is_full, .. } => {
                (of(&Untried::Few(0)), Some((other.jobs, *is_full)))
            }
            AtOnceState::Untried(why) => (of(why), None),
        }
    }
}

/// The known rate with which so many tasks end first; of equal ones that with the fewest at once, which use the least CPU
/// time. `known` is in ascending order.
pub(super) fn best(known: &[RateAt], tasks: usize) -> Option<RateAt> {
    let times = known.iter().map(|rate| time(rate, tasks));
    let first = times.fold(f64::INFINITY, f64::min);
    let is_first = |rate: &&RateAt| time(rate, tasks) <= first * (1.0 + LOSS);
    known.iter().find(is_first).copied()
}

/// The time that so many tasks take, as a multiple of a task's time at a rate of 1.
fn time(rate: &RateAt, tasks: usize) -> f64 {
    let jobs = f64::from(rate.jobs);
    let rounds = tasks as f64 / jobs;
    // The last round of many is blurred.
    let rounds = if rounds <= 2.0 {
        rounds.ceil()
    } else {
        rounds + 0.5
    };
    rounds * jobs / rate.rate
}
