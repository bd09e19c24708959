//! Metrics of a run: speed, fairness, energy.
//!
//! [`METRICS`] is the single table; listings, the run record, the documentation and the tests use it. A metric is
//! computed from [`Outcomes`]: it is a value, or the reason for its absence. A metric over the slowdowns of all tasks
//! is absent if one task lacks its slowdown, because readers would take a figure over the rest for one over all tasks.
//!
//! Symbols: n tasks; T_i = turnaround of task i, from its arrival to its end; S_i = its solo time, alone on the
//! machine; s_i = T_i / S_i = its slowdown. Only + - x / are used, in the order of the tasks, so the same run gives the
//! same bits on every machine.
//!
//! ```
//! use cosched_core::metric::{Outcome, Outcomes, metric};
//! use cosched_core::{Absence, Nanos, Reading};
//!
//! // Two tasks of 10 s and 20 s alone, which end after 15 s and 24 s: slowdowns 1.5 and 1.2.
//! let task = |turnaround, solo| Outcome {
//!     turnaround: Reading::Value(Nanos::from_ms(turnaround)),
//!     solo: Reading::Value(Nanos::from_ms(solo)),
//!     ipc: Reading::Absent(Absence::NoCounters),
//!     waited_max: Nanos::ZERO,
//! };
//! let run = Outcomes {
//!     tasks: vec![task(15_000, 10_000), task(24_000, 20_000)],
//!     turnaround: Nanos::from_ms(24_000),
//!     energy_j: Reading::Absent(Absence::NoEnergyMeter),
//! };
//! let unfairness = metric("unfairness").unwrap().of(&run);
//! assert_eq!(unfairness, Reading::Value(1.25));
//! ```

mod energy;
mod fairness;
mod outcome;
mod speed;
#[cfg(test)]
mod tests;

pub use energy::{energy, energy_delay_product};
pub use fairness::{jain, longest_wait, unfairness, worst_slowdown};
pub use outcome::{Outcome, Outcomes};
pub use speed::{antt, mean_ipc, stp, turnaround};

use crate::units::Reading;

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

impl Better {
    /// The direction in one word.
    pub fn text(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
        }
    }
}

/// Requirement of a metric, besides the run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None.
    Nothing,
    /// Every task's longest wait.
    Waits,
    /// Every task's slowdown, hence its solo time.
    Slowdowns,
    /// Hardware counters.
    Counters,
    /// An energy meter or model.
    Energy,
}

/// A metric of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in the run record's `metrics`, with the unit last if it has one.
    pub name: &'static str,
    /// Its unit; `1` for a ratio.
    pub unit: &'static str,
    /// Its better direction.
    pub better: Better,
    /// Its requirement.
    pub needs: Needs,
    /// Its definition in one line.
    pub meaning: &'static str,
    /// A short explanation for readers of a summary.
    pub hint: &'static str,
    /// Its equation, in the symbols of this module.
    pub equation: &'static str,
    /// Its publication.
    pub source: &'static str,
    compute: fn(&Outcomes) -> Reading<f64>,
}

impl Metric {
    /// Its value for a run, or why there is none.
    pub fn of(&self, outcomes: &Outcomes) -> Reading<f64> {
        (self.compute)(outcomes)
    }
}

/// The metric with this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// Every metric, in display order.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "turnaround_s",
        unit: "s",
        better: Better::Lower,
        needs: Needs::Nothing,
        meaning: "time from the launch to the end of the last job",
        hint: "launch to the end of the last job",
        equation: "max over tasks of their end, from the start of the run",
        source: "Perf&Fair, section 6 (turnaround time of the mix)",
        compute: turnaround,
    },
    Metric {
        name: "unfairness",
        unit: "1",
        better: Better::Lower,
        needs: Needs::Slowdowns,
        meaning: "greatest slowdown / least slowdown",
        hint: "1.00 is fair; greatest / least slowdown",
        equation: "max s_i / min s_i",
        source: "Perf&Fair, section 6 (quoted there as per cent above 1)",
        compute: unfairness,
    },
    Metric {
        name: "stp",
        unit: "1",
        better: Better::Higher,
        needs: Needs::Slowdowns,
        meaning: "system throughput: sum of the jobs' speeds against alone, waiting included",
        hint: "sum of the jobs' speeds (1 / slowdown); more is better",
        equation: "sum 1 / s_i",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008; as weighted speed-up in Snavely and Tullsen, ASPLOS 2000",
        compute: stp,
    },
    Metric {
        name: "antt",
        unit: "1",
        better: Better::Lower,
        needs: Needs::Slowdowns,
        meaning: "average normalised turnaround time: the mean slowdown",
        hint: "mean slowdown; 1.00 is as fast as alone",
        equation: "(1/n) sum s_i",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008",
        compute: antt,
    },
    Metric {
        name: "jain",
        unit: "1",
        better: Better::Higher,
        needs: Needs::Slowdowns,
        meaning: "Jain's fairness index over the jobs' speeds (1 / slowdown)",
        hint: "evenness of the jobs' speeds; 1.00 is fair",
        equation: "(sum 1/s_i)^2 / (n sum (1/s_i)^2)",
        source: "Jain, Chiu and Hawe, DEC-TR-301, 1984",
        compute: jain,
    },
    Metric {
        name: "mean_ipc",
        unit: "instructions/cycle",
        better: Better::Higher,
        needs: Needs::Counters,
        meaning: "mean over the jobs of their instructions per cycle",
        hint: "instructions per cycle, mean of the jobs; more is faster",
        equation: "(1/n) sum instructions_i / cycles_i",
        source: "Feliu et al., poster on bandwidth contention in SMT multicores (mean IPC of a mix)",
        compute: mean_ipc,
    },
    Metric {
        name: "worst_slowdown",
        unit: "1",
        better: Better::Lower,
        needs: Needs::Slowdowns,
        meaning: "greatest slowdown of any job",
        hint: "of any job; 1.00 is as fast as alone",
        equation: "max s_i",
        source: "the numerator of unfairness (Perf&Fair, section 6)",
        compute: worst_slowdown,
    },
    Metric {
        name: "max_wait_s",
        unit: "s",
        better: Better::Lower,
        needs: Needs::Waits,
        meaning: "longest time that any job was without a CPU between two placements",
        hint: "the longest pause of any job that had begun; the queue does not count",
        equation: "max over tasks and pauses of the pause's length",
        source: "EFS, section 4.3 (time that a task has not run)",
        compute: longest_wait,
    },
    Metric {
        name: "energy_j",
        unit: "J",
        better: Better::Lower,
        needs: Needs::Energy,
        meaning: "energy of the processor package over the run",
        hint: "of the package (simulated: of the machine); less is better",
        equation: "integral of package power over the run",
        source: "EFS, Figure 8 (CPU energy); Lucky (estimated energy)",
        compute: energy,
    },
    Metric {
        name: "edp_js",
        unit: "J s",
        better: Better::Lower,
        needs: Needs::Energy,
        meaning: "energy-delay product: energy times turnaround",
        hint: "energy x turnaround; less is better",
        equation: "energy_j x turnaround_s",
        source: "Gonzalez and Horowitz, IEEE JSSC 31(9), 1996; used in Lucky and EFS",
        compute: energy_delay_product,
    },
];
