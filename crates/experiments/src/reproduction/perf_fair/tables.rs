//! What was simulated: tables and figures as the paper has them.

use super::{Bench, FAIR, GROUPS, LINUX, NINTH, PERF_FAIR};
use crate::reproduction::figure::{Axes, Curve, bars, curves};
use crate::reproduction::findings::{Cell, Part, Table, plain};
use crate::reproduction::mixes::Mix;
use crate::reproduction::paper::perf_fair as paper;
use crate::reproduction::trial::Measured;
use crate::statistics::{Estimate, mean, quantile};

/// Unfairness and speed of each policy over all mixes.
pub(super) fn summary(bench: &Bench) -> Table {
    let rows = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let published =
            |of: &[(&str, f64)]| match of.iter().find(|(name, _)| *name == candidate.policy) {
                Some((_, value)) => Cell::number(*value, 1),
                None => Cell::Absent("not published".to_owned()),
            };
        let speed: Vec<f64> = (0..bench.grid.mixes)
            .filter_map(|mix| mean(&bench.speed_up(mix, at)))
            .collect();
        let range = [0.0, 1.0]
            .map(|share| quantile(&speed, share).map_or(String::new(), |value| plain(value, 1)));
        vec![
            Cell::text(format!("`{}`", candidate.label)),
            Cell::mean(&bench.grid.unfairness(at), 1),
            published(&paper::UNFAIRNESS),
            Cell::signed(&bench.overall(at), 1),
            published(&paper::SPEED_UP),
            Cell::text(format!("{} to {}", range[0], range[1])),
            Cell::mean(&bench.grid.means(at, |run| Some(run.reads_per_us)), 0),
        ]
    });
    Table {
        id: format!("perf-fair-summary-{}", bench.name),
        caption: format!(
            "Unfairness and speed-up of turnaround over `linux` with {}.",
            bench.channels
        ),
        columns: [
            "policy",
            "unfairness, %",
            "paper's",
            "speed-up, %",
            "paper's speed-up",
            "least and greatest mix, %",
            "lines read per us",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}

/// The names of the mixes without their folder.
fn names(mixes: &[Mix]) -> Vec<String> {
    mixes.iter().map(|mix| mix.short().to_owned()).collect()
}

pub(super) fn figure_1(bench: &Bench, mixes: &[Mix]) -> Part {
    let series = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let of = |mix| Estimate::of(&bench.grid.values(mix, at, Measured::unfair_percent));
        (candidate.label.clone(), (0..mixes.len()).map(of).collect())
    });
    bars(
        format!("perf-fair-figure-1-{}", bench.name),
        format!(
            "Unfairness of each mix with {} (the paper's Figure 1).",
            bench.channels
        ),
        Axes {
            x: "mix",
            y: "unfairness, %",
            decimals: 1,
        },
        names(mixes),
        series.collect(),
        None,
    )
}

pub(super) fn figure_2(bench: &Bench, mixes: &[Mix]) -> Part {
    let policies = bench
        .candidates
        .iter()
        .enumerate()
        .filter(|&(at, _)| at != LINUX);
    let series = policies.map(|(at, candidate)| {
        let of = |mix| Estimate::of(&bench.speed_up(mix, at));
        (candidate.label.clone(), (0..mixes.len()).map(of).collect())
    });
    let line = (0..mixes.len()).map(|mix| bench.bandwidth(mix)).collect();
    bars(
        format!("perf-fair-figure-2-{}", bench.name),
        format!(
            "Speed-up of turnaround over `linux` of each mix with {}, and its mean bandwidth under `linux` (the paper's \
             Figure 2).",
            bench.channels
        ),
        Axes {
            x: "mix",
            y: "speed-up, %",
            decimals: 1,
        },
        names(mixes),
        series.collect(),
        Some(("lines read per us".to_owned(), line)),
    )
}

/// The paper's curves: jobs of mix 9 that have not ended, for the first seed.
pub(super) fn figure_3(bench: &Bench) -> Part {
    let lines = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let ends = &bench.grid.of(NINTH, at)[0].ends_s;
        let mut points = vec![(0.0, ends.len() as f64)];
        points.extend(
            ends.iter()
                .enumerate()
                .map(|(ended, &end)| (end, (ends.len() - ended - 1) as f64)),
        );
        Curve::steps(candidate.label.clone(), points)
    });
    curves(
        format!("perf-fair-figure-3-{}", bench.name),
        format!(
            "Jobs of mix 9 that have not ended, with {}, first seed (the paper's Figure 3).",
            bench.channels
        ),
        Axes {
            x: "time, s",
            y: "jobs",
            decimals: 1,
        },
        lines.collect(),
    )
}

/// Speed-up by group.
pub(super) fn by_group(benches: &[Bench]) -> Table {
    let mut rows = Vec::new();
    for bench in benches {
        for (group, name) in GROUPS.iter().enumerate() {
            let mixes = bench.groups.iter().filter(|&&one| one == group).count();
            let mut row = vec![
                Cell::text(bench.channels),
                Cell::text(*name),
                Cell::number(mixes as f64, 0),
            ];
            row.extend(
                (1..bench.candidates.len())
                    .map(|candidate| Cell::signed(&bench.of_group(group, candidate), 1)),
            );
            rows.push(row);
        }
    }
    let mut columns = vec!["memory".to_owned(), "group".to_owned(), "mixes".to_owned()];
    columns.extend(
        benches[0]
            .candidates
            .iter()
            .skip(1)
            .map(|candidate| format!("`{}`", candidate.label)),
    );
    Table {
        id: "perf-fair-groups".to_owned(),
        caption: "Mean speed-up over `linux` in per cent, by the lines that a mix reads per us under `linux` with three channels: \
                  low demand below 80, middle demand 80 to 120, high demand above \
                  (the paper's section 7.2). With fewer channels the same mixes ask for as much, and get less."
            .to_owned(),
        columns,
        rows,
    }
}

/// CPUs that are idle while something is measured; `None` if nothing is.
pub(super) fn idle_while_measuring(run: &Measured) -> Option<f64> {
    let measuring = run.watch.measuring.as_s();
    (measuring > 0.0).then(|| run.watch.idle_measuring_s / measuring)
}

/// Errors of the estimates, and their price.
pub(super) fn estimates(benches: &[Bench]) -> Table {
    let mut rows = Vec::new();
    for bench in benches {
        for at in [FAIR, PERF_FAIR] {
            let of = |run: &Measured, share: f64| {
                let sizes: Vec<f64> = run
                    .watch
                    .solo_errors
                    .iter()
                    .map(|error| 100.0 * error.abs())
                    .collect();
                quantile(&sizes, share)
            };
            let progress = |run: &Measured| {
                let sizes: Vec<f64> = run
                    .progress_errors
                    .iter()
                    .map(|error| 100.0 * error.abs())
                    .collect();
                mean(&sizes)
            };
            let spread = |run: &Measured| {
                let errors = &run.progress_errors;
                Some(100.0 * (quantile(errors, 1.0)? - quantile(errors, 0.0)?))
            };
            let grid = &bench.grid;
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::text(format!("`{}`", bench.candidates[at].label)),
                Cell::signed(
                    &grid.means(at, |run| Some(100.0 * mean(&run.watch.solo_errors)?)),
                    1,
                ),
                Cell::mean(&grid.means(at, |run| of(run, 0.5)), 1),
                Cell::mean(&grid.means(at, |run| of(run, 0.9)), 1),
                Cell::mean(&grid.means(at, progress), 1),
                Cell::mean(&grid.means(at, spread), 1),
                Cell::mean(
                    &grid.means(at, |run| {
                        Some(100.0 * run.watch.measuring.as_s() / run.turnaround_s)
                    }),
                    1,
                ),
                Cell::mean(&grid.means(at, idle_while_measuring), 1),
            ]);
        }
    }
    Table {
        id: "perf-fair-estimates".to_owned(),
        caption:
            "Estimates against the truth. IPC alone: estimate / truth - 1 at each new estimate, its mean, and median \
                  and nine tenths of its size. Progress: estimate / truth - 1 at the end of each job, mean size, and \
                  distance between the greatest and the least in a mix. Price: share of the time \
                  in which something is measured alone, and CPUs out of twelve that are idle meanwhile."
                .to_owned(),
        columns: [
            "memory",
            "policy",
            "IPC alone, mean, %",
            "median size",
            "90th percentile of size",
            "progress, mean size, %",
            "greatest - least",
            "time measuring, %",
            "idle CPUs",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    }
}
