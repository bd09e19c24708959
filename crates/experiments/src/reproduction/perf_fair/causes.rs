//! What the differences from the paper come from, and what it does not say: one thing is changed at a time.

use super::{
    BANDWIDTH, Bench, FAIR, HALF, JOBS, LINUX, PERF_FAIR, ROUND_ROBIN, mixes_faster, mixes_unfair,
};
use crate::reproduction::engine::{
    Draft, ExperimentMix, FindingCell, Grid, Lab, Result, TrialCandidate, TrialMeasurements,
    changed, gain, plain, refitted, with_long_slices,
};
use crate::statistics::{mean, over};
use cosched_report::chart::Curve;
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machines with most and with fewest channels, and what is simulated on them.
struct Ends<'a> {
    lab: &'a Lab<'a>,
    mixes: &'a [ExperimentMix],
    benches: [&'a Bench; 2],
}

/// Experiments that show what the differences come from.
pub(super) fn all(
    draft: &mut Draft,
    lab: &Lab<'_>,
    mixes: &[ExperimentMix],
    benches: &[Bench],
) -> Result<()> {
    let ends = Ends {
        lab,
        mixes,
        benches: [&benches[0], &benches[benches.len() - 1]],
    };
    draft.causes();
    ends.channels(draft);
    ends.scarcer(draft)?;
    figure_3(draft, benches);
    ends.refill(draft)?;
    ends.missing(draft)?;
    ends.price(draft)?;
    ends.smt(draft)?;
    ends.noise(draft)?;
    ends.knob(draft)
}

/// The group of high demand.
const HIGH: usize = 2;

/// Shares of issue slots that a busy sibling takes, and cycles that an access waits for a port: the machine's, and others
/// around them.
const SMT: [(f64, f64); 5] = [(0.4, 1.0), (0.3, 1.0), (0.5, 1.0), (0.4, 0.5), (0.4, 2.0)];

/// How much counts are off at most.
const NOISE: [f64; 3] = [0.01, 0.05, 0.1];

/// Values of the knob between performance and fairness, in per cent; the paper's is 0.
const LEADS: [f64; 9] = [
    0.0,
    25.0,
    50.0,
    100.0,
    200.0,
    400.0,
    800.0,
    1_600.0,
    1_000_000.0,
];

/// The policy with this knob between performance and fairness.
fn with_lead(lead: f64) -> TrialCandidate {
    TrialCandidate::new("perf-fair").with("lead_max_percent", lead)
}

/// It knows true progress and measures nothing.
fn without_measurements(candidate: TrialCandidate) -> TrialCandidate {
    candidate.knowing_progress().with("estimation_share_max", 0)
}

/// The mean of values as text.
fn mean_text(values: &[f64]) -> String {
    let mean = mean(values).unwrap_or(f64::NAN);
    plain(mean, 1)
}

/// What is left of gains in per cent without others, by seed.
fn gains_without(gains: &[f64], others: &[f64]) -> Vec<f64> {
    let mut rest = Vec::new();
    for (gain, other) in gains.iter().zip(others) {
        let ratio = (100.0 + gain) / (100.0 + other);
        rest.push(100.0 * (ratio - 1.0));
    }
    rest
}

impl Ends<'_> {
    fn grid(&self, machine: &Arc<MachineSpec>, candidates: &[TrialCandidate]) -> Result<Grid> {
        Grid::few(self.lab, machine, self.mixes, candidates)
    }

    /// A row for each candidate on both machines: its speed, its unfairness, and more cells.
    fn by_candidate(
        &self,
        candidates: &[TrialCandidate],
        more: fn(&Grid, usize) -> Vec<FindingCell>,
    ) -> Result<Vec<Vec<FindingCell>>> {
        let mut rows = Vec::new();
        for bench in self.benches {
            let grid = self.grid(&bench.spec, candidates)?;
            for (at, candidate) in candidates.iter().enumerate() {
                let mut row = vec![
                    FindingCell::text(bench.channels),
                    FindingCell::text(&candidate.label),
                    FindingCell::signed(&bench.overall_in(&grid, at), 1),
                    FindingCell::mean(&grid.unfairness(at), 1),
                ];
                row.extend(more(&grid, at));
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn channels(&self, draft: &mut Draft) {
        let [most, fewest] = self.benches;
        let unfairness_most = most.grid.unfairness(LINUX);
        let unfairness_fewest = fewest.grid.unfairness(LINUX);
        let gain_most = most.overall(BANDWIDTH);
        let gain_fewest = fewest.overall(BANDWIDTH);
        draft.value("unfairness_most", mean_text(&unfairness_most));
        draft.value("unfairness_fewest", mean_text(&unfairness_fewest));
        draft.value("gain_most", mean_text(&gain_most));
        draft.value("gain_fewest", mean_text(&gain_fewest));
        draft.text("channels");
    }

    fn mixes_of_high_demand(&self) -> Vec<ExperimentMix> {
        let groups = &self.benches[1].groups;
        let mut mixes = Vec::new();
        for (mix, group) in self.mixes.iter().zip(groups) {
            if *group == HIGH {
                mixes.push(mix.clone());
            }
        }
        mixes
    }

    /// Mixes of high demand where memory is scarcer still.
    fn scarcer(&self, draft: &mut Draft) -> Result<()> {
        let policies = ["linux", "bandwidth", "oracle", "perf-fair", "fair"];
        let mut candidates = policies.map(TrialCandidate::new);
        for at in [3, 4] {
            candidates[at] = candidates[at].clone().with("as", "paper");
        }
        let [_, fewest] = self.benches;
        let mixes = self.mixes_of_high_demand();
        let mut rows = Vec::new();
        for share in [1.0, 0.7, 0.5] {
            let spec = changed(&fewest.spec, |machine| {
                machine.memory.gb_per_s_per_channel *= share;
            });
            let spec = refitted(spec)?;
            let grid = Grid::few(self.lab, &spec, &mixes, &candidates)?;
            let mut row = vec![FindingCell::number(share, 1)];
            for at in LINUX + 1..candidates.len() {
                let gains = grid.compared(at, LINUX, TrialMeasurements::time, gain);
                row.push(FindingCell::signed(&over(&gains, mean), 1));
            }
            rows.push(row);
        }
        draft.table("scarcer", rows);
        Ok(())
    }

    /// What `linux` gains by slices as long as a quantum.
    fn refill(&self, draft: &mut Draft) -> Result<()> {
        let linux = [TrialCandidate::new("linux")];
        let mut rows = Vec::new();
        for bench in self.benches {
            let spec = with_long_slices(&bench.spec);
            let grid = self.grid(&spec, &linux)?;
            let slices = bench.overall_in(&grid, 0);
            let mut row = vec![
                FindingCell::text(bench.channels),
                FindingCell::signed(&slices, 1),
            ];
            for at in [ROUND_ROBIN, BANDWIDTH, FAIR, PERF_FAIR] {
                let rest = gains_without(&bench.overall(at), &slices);
                row.push(FindingCell::signed(&rest, 1));
            }
            rows.push(row);
        }
        draft.table("refill", rows);
        Ok(())
    }

    /// What separates `perf-fair` and `fair` from perfect knowledge.
    fn missing(&self, draft: &mut Draft) -> Result<()> {
        // The three forms of `fair` stand before those of `perf-fair`.
        let candidates = draft.candidates("missing");
        let rows = self.by_candidate(&candidates, |grid, at| {
            vec![match at {
                3..6 => FindingCell::mean(&mixes_faster(grid, at, at - 3), 1),
                _ => FindingCell::absent(),
            }]
        })?;
        draft.table("missing", rows);
        Ok(())
    }

    /// How often jobs are measured, and beside whom.
    fn price(&self, draft: &mut Draft) -> Result<()> {
        let candidates = draft.candidates("once");
        let rows = self.by_candidate(&candidates, |grid, at| {
            vec![
                FindingCell::mean(&grid.means(at, TrialMeasurements::measuring_percent), 1),
                FindingCell::mean(&grid.means(at, TrialMeasurements::idle_while_measuring), 1),
            ]
        })?;
        draft.table("once", rows);
        Ok(())
    }

    /// Other figures of SMT, which are assumed.
    fn smt(&self, draft: &mut Draft) -> Result<()> {
        let mut candidates = ["linux", "bandwidth", "fair", "perf-fair"].map(TrialCandidate::new);
        for at in [2, 3] {
            candidates[at] = candidates[at].clone().with("as", "paper");
        }
        let [most, _] = self.benches;
        let mut rows = Vec::new();
        for (issue_share, l1_wait_cycles) in SMT {
            let spec = changed(&most.spec, |machine| {
                machine.smt.issue_share = issue_share;
                machine.smt.l1_wait_cycles = l1_wait_cycles;
            });
            let grid = self.grid(&refitted(spec)?, &candidates)?;
            let mut row = vec![
                FindingCell::number(issue_share, 1),
                FindingCell::number(l1_wait_cycles, 1),
            ];
            for at in 0..candidates.len() {
                row.push(FindingCell::mean(&grid.unfairness(at), 1));
            }
            for at in LINUX + 1..candidates.len() {
                let gains = grid.compared(at, LINUX, TrialMeasurements::time, gain);
                row.push(FindingCell::signed(&over(&gains, mean), 1));
            }
            rows.push(row);
        }
        draft.table("smt", rows);
        Ok(())
    }

    /// Counters that are off by more, and traces of other runs.
    fn noise(&self, draft: &mut Draft) -> Result<()> {
        let mut candidates = ["perf-fair", "oracle", "oracle"].map(TrialCandidate::new);
        candidates[0] = candidates[0].clone().with("as", "paper");
        candidates[2].others_traces = true;
        let mut rows = Vec::new();
        for bench in self.benches {
            for noise in NOISE {
                let noisy = changed(&bench.spec, |machine| machine.counters.noise = noise);
                let noisy = Arc::new(noisy);
                let grid = self.grid(&noisy, &candidates)?;
                rows.push(vec![
                    FindingCell::text(bench.channels),
                    FindingCell::number(100.0 * noise, 0),
                    FindingCell::mean(&grid.unfairness(0), 1),
                    FindingCell::mean(&mixes_unfair(&grid, 0), 1),
                    FindingCell::mean(&grid.unfairness(1), 1),
                    FindingCell::mean(&grid.unfairness(2), 1),
                ]);
            }
        }
        draft.table("noise", rows);
        Ok(())
    }

    /// The knob between performance and fairness.
    fn knob(&self, draft: &mut Draft) -> Result<()> {
        let as_it_is = LEADS.map(with_lead);
        let knowing = as_it_is.clone().map(without_measurements);
        let candidates = [as_it_is, knowing].concat();
        let mut rows = Vec::new();
        let mut lines = Vec::new();
        for bench in self.benches {
            let grid = self.grid(&bench.spec, &candidates)?;
            rows.extend(knob_rows(bench, &grid));
            let with_truth = format!("{}, true progress", bench.channels);
            lines.push(knob_curve(bench.channels.to_owned(), bench, &grid, 0));
            lines.push(knob_curve(with_truth, bench, &grid, LEADS.len()));
        }
        draft.table("knob", rows);
        draft.curves("knob-curve", lines);
        Ok(())
    }
}

/// Mean slowdown of the jobs under `linux` over that under a candidate, in per cent above 1: its mean over the mixes, by
/// seed.
fn mean_speed_up(bench: &Bench, grid: &Grid, at: usize) -> Vec<f64> {
    let gains = grid.compared_with(
        (&bench.grid, LINUX),
        at,
        TrialMeasurements::mean_slowdown,
        gain,
    );
    over(&gains, mean)
}

/// A row for each value of the knob: how much earlier the jobs end on average, speed-up and unfairness as it is, and the
/// same with true progress and without measurements.
fn knob_rows(bench: &Bench, grid: &Grid) -> Vec<Vec<FindingCell>> {
    let mut rows = Vec::new();
    for (at, lead) in LEADS.iter().enumerate() {
        let mut row = vec![
            FindingCell::text(bench.channels),
            FindingCell::number(*lead, 0),
        ];
        for candidate in [at, LEADS.len() + at] {
            row.push(FindingCell::signed(
                &mean_speed_up(bench, grid, candidate),
                1,
            ));
            row.push(FindingCell::signed(&bench.overall_in(grid, candidate), 1));
            row.push(FindingCell::mean(&grid.unfairness(candidate), 1));
        }
        rows.push(row);
    }
    rows
}

/// Unfairness, and how much earlier jobs end on average, of the candidate for each value of the knob, of which `first` is
/// the first.
fn knob_curve(name: String, bench: &Bench, grid: &Grid, first: usize) -> Curve {
    let mut points = Vec::new();
    for candidate in first..first + LEADS.len() {
        let speed_up = mean(&mean_speed_up(bench, grid, candidate));
        points.extend(mean(&grid.unfairness(candidate)).zip(speed_up));
    }
    Curve::line(name, points)
}

/// In how many mixes the time at which `linux` has ended so many jobs compares so with that of each of these policies.
fn ended(
    bench: &Bench,
    jobs: usize,
    compare: fn(&f64, &f64) -> bool,
    others: &[usize],
) -> FindingCell {
    let mixes = bench.grid.count(|mix, seed| {
        let linux_s = bench.grid.runs(mix, LINUX)[seed].end_s(jobs);
        let mut others = others.iter().map(|&at| &bench.grid.runs(mix, at)[seed]);
        others.all(|other| compare(&linux_s, &other.end_s(jobs)))
    });
    FindingCell::mean(&mixes, 1)
}

/// In how many mixes `linux` has ended half of the jobs first, and all of them last.
fn figure_3(draft: &mut Draft, benches: &[Bench]) {
    let rows = benches.iter().map(|bench| {
        vec![
            FindingCell::text(bench.channels),
            ended(bench, HALF, f64::lt, &[FAIR, PERF_FAIR]),
            ended(bench, HALF, f64::lt, &[BANDWIDTH]),
            ended(bench, JOBS, f64::ge, &[BANDWIDTH, FAIR, PERF_FAIR]),
        ]
    });
    draft.table("half", rows.collect());
}
