//! Solo utilisation of the bus, estimated beside another program (section 5.2, Figure 6).

use super::bus::{AT_ONCE, FEWER_AT_ONCE, mu, solo_utilisation, synthetic};
use super::{Bench, LINUX};
use crate::reproduction::engine::{
    Draft, ExperimentMix, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements,
};
use crate::statistics::{mean, over};
use cosched_core::model::bus;
use cosched_core::{Nanos, TaskId};
use cosched_report::chart::Curve;
use cosched_sim::JobWork;

/// Solo utilisation of the program that is estimated.
const OBSERVED: f64 = 0.57;

/// Estimates of the solo utilisation of a program beside another one, by seed; all in per cent.
struct Estimates {
    /// Solo utilisation of the other.
    other: f64,
    by_eq_9: Vec<f64>,
    /// By the additive model, which ignores waiting.
    additive: Vec<f64>,
}

/// Estimates of the solo utilisation of a program beside others.
struct Beside {
    truth: f64,
    estimates: Vec<Estimates>,
}

/// What a job used of the bus while it was watched.
fn used(run: &TrialMeasurements, job: u32, mu: f64) -> f64 {
    match run.watch.lines.get(&TaskId(job)) {
        Some(&(lines, ns)) => lines as f64 * 1e3 / ns.max(1) as f64 / mu,
        None => 0.0,
    }
}

impl Beside {
    /// Estimates for a program that uses 57 % of the bus alone, from simulated counters. `None` if no program can use as much.
    fn simulate(bench: &Bench<'_>, at_once: f64, others: &[u32]) -> Result<Option<Beside>> {
        let machine = &bench.slow;
        let Some(observed) = synthetic(machine, OBSERVED, at_once) else {
            return Ok(None);
        };
        let work = JobWork::SoloTime(Nanos::from_ms(20_000));
        let (mut mixes, mut demands) = (Vec::new(), Vec::new());
        for &percent in others {
            let mut mix = ExperimentMix::of_copies(&observed, 1, work);
            if percent > 0 {
                // The greatest is as great as one program alone can be.
                let demand = f64::from(percent.min(99)) / 100.0;
                let Some(other) = synthetic(machine, demand, at_once) else {
                    continue;
                };
                mix.jobs
                    .extend(ExperimentMix::of_copies(&other, 1, work).jobs);
            }
            mixes.push(mix);
            demands.push(f64::from(percent));
        }
        // Both run for at least as long as one takes alone.
        let watched = [TrialCandidate {
            noted: Nanos::from_ms(10_000),
            ..TrialCandidate::new("linux")
        }];
        let grid = Grid::few(bench.lab, machine, &mixes, &watched)?;
        let mut estimates = Vec::new();
        for (mix, demand) in demands.into_iter().enumerate() {
            let runs = grid.runs(mix, LINUX);
            estimates.push(Estimates::of(demand, runs, mu(machine)));
        }
        let truth = 100.0 * solo_utilisation(machine, &observed);
        Ok(Some(Beside { truth, estimates }))
    }

    /// The mean size of the error of estimates beside all others, by seed.
    fn errors(&self, of: impl Fn(&Estimates) -> &Vec<f64>) -> Vec<f64> {
        let mut sizes = Vec::new();
        for beside in &self.estimates {
            let values = of(beside).iter();
            let errors = values.map(|value| (value - self.truth).abs());
            sizes.push(errors.collect());
        }
        over(&sizes, mean)
    }

    fn points(&self, of: impl Fn(&Estimates) -> &Vec<f64>) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        for beside in &self.estimates {
            if let Some(estimate) = mean(of(beside)) {
                points.push((beside.other, estimate));
            }
        }
        points
    }
}

impl Estimates {
    fn of(other: f64, runs: &[TrialMeasurements], mu: f64) -> Estimates {
        let (mut by_eq_9, mut additive) = (Vec::new(), Vec::new());
        for run in runs {
            let (mine, theirs) = (used(run, 0, mu), used(run, 1, mu));
            additive.push(100.0 * mine);
            let free = (1.0 - mine - theirs).max(1e-6);
            if let Ok(solo) = bus::solo_utilisation(mine, free) {
                by_eq_9.push(100.0 * solo);
            }
        }
        Estimates {
            other,
            by_eq_9,
            additive,
        }
    }
}

/// Solo utilisation estimated beside another program, by Eq. 9 and by the additive model.
pub(super) fn figure_6(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let others = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    let Some(found) = Beside::simulate(bench, AT_ONCE, &others)? else {
        return Ok(());
    };
    let truth = vec![(0.0, found.truth), (100.0, found.truth)];
    let lines = vec![
        Curve::line("by Eq. 9".to_owned(), found.points(|one| &one.by_eq_9)),
        Curve::line("truth".to_owned(), truth),
        Curve::line(
            "additive model".to_owned(),
            found.points(|one| &one.additive),
        ),
    ];
    draft.curves("figure-6", lines);
    let rows = found.estimates.iter().map(|one| {
        vec![
            FindingCell::number(one.other, 0),
            FindingCell::number(found.truth, 1),
            FindingCell::mean(&one.by_eq_9, 1),
            FindingCell::mean(&one.additive, 1),
        ]
    });
    draft.table("figure-6-numbers", rows.collect());
    draft.judge_order("figure-6", |name| match name {
        "additive" => found.errors(|one| &one.additive),
        _ => found.errors(|one| &one.by_eq_9),
    });
    Ok(())
}

/// Figure 6 with programs that wait for fewer misses at once.
pub(super) fn causes(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    // With few misses at once a program can't use much more.
    let others = [10, 20, 30, 40, 50];
    let mut rows = Vec::new();
    for at_once in FEWER_AT_ONCE {
        let Some(found) = Beside::simulate(bench, at_once, &others)? else {
            continue;
        };
        rows.push(vec![
            FindingCell::number(at_once, 0),
            FindingCell::mean(&found.errors(|one| &one.by_eq_9), 1),
            FindingCell::mean(&found.errors(|one| &one.additive), 1),
        ]);
    }
    draft.table("figure-6-causes", rows);
    Ok(())
}
