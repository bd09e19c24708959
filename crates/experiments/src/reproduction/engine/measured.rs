//! The measurements of a trial.

use super::watch::TrialRecorder;
use crate::statistics::mean;
use cosched_core::metric::{Outcome, Outcomes, metric};
use cosched_core::{Counter, Nanos, RunResult};

/// The measurements of a trial.
#[derive(Clone, Debug)]
pub(crate) struct TrialMeasurements {
    /// Launch to the end of the last job, in s.
    pub(crate) turnaround_s: f64,
    /// Greatest slowdown / least slowdown.
    unfairness: Option<f64>,
    /// Energy of the machine until the last job ended, in J.
    energy_j: Option<f64>,
    /// The part of it that the chip uses beyond the idle machine, in J: cores, instructions, and what cores share.
    chip_energy_j: f64,
    /// CPU time of all jobs, in s.
    pub(crate) busy_s: f64,
    /// Mean over the jobs of their instructions per cycle.
    mean_ipc: Option<f64>,
    /// Instructions per cycle of each job.
    pub(crate) ipcs: Vec<f64>,
    /// Lines read from memory per us of the run.
    pub(crate) reads_per_us: f64,
    /// Million instructions a second, of all jobs.
    pub(crate) mips: f64,
    /// Slowdown of each job.
    pub(crate) slowdowns: Vec<f64>,
    /// When jobs ended, in s, ascending.
    pub(crate) ends_s: Vec<f64>,
    pub(crate) watch: TrialRecorder,
}

/// The parts of the energy that the chip uses beyond the idle machine.
const CHIP: [&str; 3] = ["uncore", "active cores", "instructions"];

/// A figure of a trial; `None` where it has none.
pub(crate) type Figure = fn(&TrialMeasurements) -> Option<f64>;

impl TrialMeasurements {
    /// The measurements of a run. `energy_parts` are those of the simulated machine, in J.
    pub(crate) fn of(
        result: &RunResult,
        energy_parts: &[(&'static str, f64)],
        watch: TrialRecorder,
    ) -> TrialMeasurements {
        let outcomes = Outcomes::of(result);
        let parts = energy_parts.iter();
        let of_chip = parts.filter(|(part, _)| CHIP.contains(part));
        let cpu_times = result.tasks.iter().filter_map(|task| task.cpu_time.value());
        let ends = result.tasks.iter().filter_map(|task| task.finished);
        let mut ends_s: Vec<f64> = ends.map(Nanos::as_s).collect();
        ends_s.sort_by(f64::total_cmp);
        let turnaround_s = result.turnaround.as_s();
        TrialMeasurements {
            turnaround_s,
            unfairness: value_of("unfairness", &outcomes),
            energy_j: value_of("energy_j", &outcomes),
            chip_energy_j: of_chip.map(|(_, joules)| joules).sum(),
            busy_s: cpu_times.map(Nanos::as_s).sum(),
            mean_ipc: value_of("mean_ipc", &outcomes),
            ipcs: outcomes.tasks.iter().filter_map(ipc).collect(),
            reads_per_us: total(result, Counter::MmReads) / result.turnaround.as_us(),
            mips: total(result, Counter::Instructions) / turnaround_s / 1e6,
            slowdowns: outcomes.tasks.iter().filter_map(slowdown).collect(),
            ends_s,
            watch,
        }
    }

    /// When so many jobs had ended, in s. Every job of a trial ends.
    pub(crate) fn end_s(&self, jobs: usize) -> f64 {
        self.ends_s[jobs - 1]
    }

    /// Turnaround in s.
    pub(crate) fn time(&self) -> Option<f64> {
        Some(self.turnaround_s)
    }

    /// Energy of the system in J.
    pub(crate) fn energy(&self) -> Option<f64> {
        self.energy_j
    }

    /// Energy of the chip in J, beyond that of the idle machine.
    pub(crate) fn chip_energy(&self) -> Option<f64> {
        Some(self.chip_energy_j)
    }

    /// Energy-delay product in J s.
    pub(crate) fn energy_delay(&self) -> Option<f64> {
        self.energy_j.map(|energy| energy * self.turnaround_s)
    }

    /// How often a running job was given other CPUs.
    pub(crate) fn moves(&self) -> Option<f64> {
        Some(f64::from(self.watch.moves))
    }

    /// Power over the run in W.
    pub(crate) fn power(&self) -> Option<f64> {
        self.energy_j.map(|energy| energy / self.turnaround_s)
    }

    /// Cycles per instruction, the inverse of the mean IPC.
    pub(crate) fn cycles_per_instruction(&self) -> Option<f64> {
        self.mean_ipc.map(|ipc| 1.0 / ipc)
    }

    /// Lines read from memory per us.
    pub(crate) fn reads(&self) -> Option<f64> {
        Some(self.reads_per_us)
    }

    /// Arithmetic mean of the jobs' slowdowns.
    pub(crate) fn mean_slowdown(&self) -> Option<f64> {
        mean(&self.slowdowns)
    }

    /// Unfairness in per cent above 1, as Perf&Fair quotes it. A run that is perfectly fair has a thousandth, so that
    /// geometric means exist.
    pub(crate) fn unfair_percent(&self) -> Option<f64> {
        self.unfairness
            .map(|unfairness| (100.0 * (unfairness - 1.0)).max(1e-3))
    }

    /// Share of the time in which something is measured alone, in per cent.
    pub(crate) fn measuring_percent(&self) -> Option<f64> {
        Some(100.0 * self.watch.measuring.as_s() / self.turnaround_s)
    }

    /// Idle CPUs while something is measured; `None` if nothing is.
    pub(crate) fn idle_while_measuring(&self) -> Option<f64> {
        let measuring = self.watch.measuring.as_s();
        (measuring > 0.0).then(|| self.watch.idle_measuring_s / measuring)
    }

    /// Estimated progress / true progress - 1 of each job before its end, in per cent.
    pub(crate) fn progress_errors(&self) -> Vec<f64> {
        let progress = self.watch.progress.values();
        progress
            .map(|(estimate, truth)| 100.0 * (estimate / truth - 1.0))
            .collect()
    }
}

fn value_of(name: &str, outcomes: &Outcomes) -> Option<f64> {
    metric(name)?.of(outcomes).value()
}

fn total(result: &RunResult, counter: Counter) -> f64 {
    let counts = result.tasks.iter().map(|task| task.counts[counter].value());
    counts.flatten().sum::<u64>() as f64
}

fn ipc(outcome: &Outcome) -> Option<f64> {
    outcome.ipc.value()
}

fn slowdown(outcome: &Outcome) -> Option<f64> {
    outcome.slowdown().value()
}
