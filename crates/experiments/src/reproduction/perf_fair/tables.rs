//! What was simulated: tables and figures as the paper has them.

use super::{Bench, FAIR, GROUPS, LINUX, NINTH, OURS, PERF_FAIR, POLICIES, bandwidth};
use crate::reproduction::engine::{
    Draft, ExperimentMix, Figure, FindingCell, Series, TrialMeasurements, plain,
};
use crate::statistics::{mean, quantile};
use cosched_report::chart::Curve;

/// All tables and figures.
pub(super) fn all(draft: &mut Draft, benches: &[Bench], mixes: &[ExperimentMix]) {
    for bench in benches {
        draft.machine(bench.name, bench.channels);
        summary(draft, bench);
    }
    let ends = [&benches[0], &benches[benches.len() - 1]];
    let names: Vec<String> = mixes.iter().map(|mix| mix.name.clone()).collect();
    for bench in ends {
        draft.machine(bench.name, bench.channels);
        figure_1(draft, bench, &names);
        figure_2(draft, bench, &names);
    }
    draft.text("figure-3");
    for bench in ends {
        draft.machine(bench.name, bench.channels);
        figure_3(draft, bench);
    }
    by_group(draft, benches);
    estimates(draft, benches);
}

/// Unfairness and speed of each policy over all mixes.
fn summary(draft: &mut Draft, bench: &Bench) {
    let mut rows = Vec::new();
    for (at, label) in bench.labels.iter().enumerate() {
        let policy = POLICIES.get(at).unwrap_or(&"ours");
        let speed_ups = bench.speed_ups(at);
        let speed: Vec<f64> = speed_ups.iter().filter_map(|mix| mean(mix)).collect();
        let least = quantile(&speed, 0.0).unwrap_or(f64::NAN);
        let greatest = quantile(&speed, 1.0).unwrap_or(f64::NAN);
        let range = format!("{} to {}", plain(least, 1), plain(greatest, 1));
        rows.push(vec![
            FindingCell::text(label),
            FindingCell::mean(&bench.grid.unfairness(at), 1),
            draft.cell(&format!("unfairness-{policy}"), 1),
            FindingCell::signed(&bench.overall(at), 1),
            draft.cell(&format!("speed-up-{policy}"), 1),
            FindingCell::text(range),
            FindingCell::mean(&bench.grid.means(at, TrialMeasurements::reads), 0),
        ]);
    }
    draft.table("summary-{machine}", rows);
}

fn figure_1(draft: &mut Draft, bench: &Bench, mixes: &[String]) {
    let mut series: Vec<Series> = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate() {
        let unfairness = bench.grid.by_mix(at, TrialMeasurements::unfair_percent);
        series.push(((*policy).to_owned(), unfairness));
    }
    draft.bars("figure-1-{machine}", mixes.to_vec(), series);
}

fn figure_2(draft: &mut Draft, bench: &Bench, mixes: &[String]) {
    let mut series: Vec<Series> = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate().skip(LINUX + 1) {
        series.push(((*policy).to_owned(), bench.speed_ups(at)));
    }
    draft.bars("figure-2-{machine}", mixes.to_vec(), series);
    let mut read = Vec::new();
    for mix in 0..mixes.len() {
        read.push(bandwidth(&bench.grid, mix));
    }
    draft.column("lines read per us", &read);
}

/// The paper's curves: jobs of mix 9 that have not ended, for the first seed.
fn figure_3(draft: &mut Draft, bench: &Bench) {
    let mut lines = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate() {
        let ends = &bench.grid.runs(NINTH, at)[0].ends_s;
        let mut left = ends.len() as f64;
        let mut points = vec![(0.0, left)];
        for end in ends {
            left -= 1.0;
            points.push((*end, left));
        }
        lines.push(Curve::steps((*policy).to_owned(), points));
    }
    draft.curves("figure-3-{machine}", lines);
}

/// Speed-up by group.
fn by_group(draft: &mut Draft, benches: &[Bench]) {
    let mut rows = Vec::new();
    for bench in benches {
        for (group, name) in GROUPS.iter().enumerate() {
            let mixes = bench.groups.iter().filter(|&&one| one == group).count();
            let mut row = vec![
                FindingCell::text(bench.channels),
                FindingCell::text(*name),
                FindingCell::number(mixes as f64, 0),
            ];
            for at in LINUX + 1..POLICIES.len() {
                row.push(FindingCell::signed(&bench.of_group(group, at), 1));
            }
            rows.push(row);
        }
    }
    draft.table("groups", rows);
}

fn sizes(errors: &[f64]) -> Vec<f64> {
    errors.iter().map(|error| error.abs()).collect()
}

/// The value below which a share of the sizes of the errors of estimated IPC lies, in per cent.
fn size_of_error(run: &TrialMeasurements, share: f64) -> Option<f64> {
    let size = quantile(&sizes(&run.watch.solo_errors), share)?;
    Some(100.0 * size)
}

fn mean_error(run: &TrialMeasurements) -> Option<f64> {
    Some(100.0 * mean(&run.watch.solo_errors)?)
}

fn mean_size_of_progress_error(run: &TrialMeasurements) -> Option<f64> {
    mean(&sizes(&run.progress_errors()))
}

fn spread_of_progress_errors(run: &TrialMeasurements) -> Option<f64> {
    let errors = run.progress_errors();
    let greatest = quantile(&errors, 1.0)?;
    let least = quantile(&errors, 0.0)?;
    Some(greatest - least)
}

/// Errors of the estimates, and their price.
fn estimates(draft: &mut Draft, benches: &[Bench]) {
    let mut rows = Vec::new();
    for bench in benches {
        for at in [[FAIR, PERF_FAIR], OURS].concat() {
            let mut row = vec![
                FindingCell::text(bench.channels),
                FindingCell::text(&bench.labels[at]),
                FindingCell::signed(&bench.grid.means(at, mean_error), 1),
            ];
            let figures: [Figure; 6] = [
                |run| size_of_error(run, 0.5),
                |run| size_of_error(run, 0.9),
                mean_size_of_progress_error,
                spread_of_progress_errors,
                TrialMeasurements::measuring_percent,
                TrialMeasurements::idle_while_measuring,
            ];
            for figure in figures {
                row.push(FindingCell::mean(&bench.grid.means(at, figure), 1));
            }
            rows.push(row);
        }
    }
    draft.table("estimates", rows);
}
