//! What was simulated: tables and figures as the paper has them.

use super::{Bench, FAIR, GROUPS, LINUX, NINTH, PERF_FAIR, POLICIES, bandwidth};
use crate::reproduction::engine::{
    Axes, Cell, Chapter, Measured, Mix, Series, bars, curves, plain,
};
use crate::reproduction::paper::perf_fair as paper;
use crate::statistics::{mean, quantile};
use cosched_report::chart::Curve;

/// All tables and figures.
pub(super) fn all(chapter: &mut Chapter, benches: &[Bench], mixes: &[Mix]) {
    for bench in benches {
        let mut channels = bench.channels.to_owned();
        channels[..1].make_ascii_uppercase();
        chapter.heading(format!("{channels}: `{}`", bench.name));
        summary(chapter, bench);
    }
    let ends = [&benches[0], &benches[benches.len() - 1]];
    let names: Vec<String> = mixes.iter().map(|mix| mix.name.clone()).collect();
    for bench in ends {
        chapter.heading(format!("Figures 1 and 2 with {}", bench.channels));
        figure_1(chapter, bench, &names);
        figure_2(chapter, bench, &names);
    }
    chapter.heading("Figure 3: how jobs of mix 9 end");
    for bench in ends {
        figure_3(chapter, bench);
    }
    by_group(chapter, benches);
    estimates(chapter, benches);
}

fn published(policy: &str, figures: &[(&str, f64)]) -> Cell {
    let found = figures.iter().find(|(name, _)| *name == policy);
    found.map_or_else(Cell::absent, |(_, value)| Cell::number(*value, 1))
}

/// Unfairness and speed of each policy over all mixes.
fn summary(chapter: &mut Chapter, bench: &Bench) {
    let mut rows = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate() {
        let speed_ups = bench.speed_ups(at);
        let speed: Vec<f64> = speed_ups.iter().filter_map(|mix| mean(mix)).collect();
        let [least, greatest] =
            [0.0, 1.0].map(|share| plain(quantile(&speed, share).unwrap_or(f64::NAN), 1));
        rows.push(vec![
            Cell::text(format!("`{policy}`")),
            Cell::mean(&bench.grid.unfairness(at), 1),
            published(policy, &paper::UNFAIRNESS),
            Cell::signed(&bench.overall(at), 1),
            published(policy, &paper::SPEED_UP),
            Cell::text(format!("{least} to {greatest}")),
            Cell::mean(&bench.grid.means(at, Measured::reads), 0),
        ]);
    }
    chapter.table(
        format!("perf-fair-summary-{}", bench.name),
        format!(
            "Unfairness and speed-up of turnaround over `linux` with {}.",
            bench.channels
        ),
        [
            "policy",
            "unfairness, %",
            "paper's",
            "speed-up, %",
            "paper's speed-up",
            "least and greatest mix, %",
            "lines read per us",
        ],
        rows,
    );
}

fn figure_1(chapter: &mut Chapter, bench: &Bench, mixes: &[String]) {
    let policies = POLICIES.iter().enumerate();
    let series = policies.map(|(at, policy)| -> Series {
        let unfairness = bench.grid.by_mix(at, Measured::unfair_percent);
        ((*policy).to_owned(), unfairness)
    });
    chapter.figure(bars(
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
        mixes.to_vec(),
        series.collect(),
        None,
    ));
}

fn figure_2(chapter: &mut Chapter, bench: &Bench, mixes: &[String]) {
    let policies = POLICIES.iter().enumerate().skip(LINUX + 1);
    let series =
        policies.map(|(at, policy)| -> Series { ((*policy).to_owned(), bench.speed_ups(at)) });
    let read = (0..mixes.len()).map(|mix| bandwidth(&bench.grid, mix));
    chapter.figure(bars(
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
        mixes.to_vec(),
        series.collect(),
        Some(("lines read per us", read.collect())),
    ));
}

/// The paper's curves: jobs of mix 9 that have not ended, for the first seed.
fn figure_3(chapter: &mut Chapter, bench: &Bench) {
    let lines = POLICIES.iter().enumerate().map(|(at, policy)| {
        let ends = &bench.grid.runs(NINTH, at)[0].ends_s;
        let mut left = ends.len() as f64;
        let mut points = vec![(0.0, left)];
        for end in ends {
            left -= 1.0;
            points.push((*end, left));
        }
        Curve::steps((*policy).to_owned(), points)
    });
    chapter.figure(curves(
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
    ));
}

/// Speed-up by group.
fn by_group(chapter: &mut Chapter, benches: &[Bench]) {
    let mut rows = Vec::new();
    for bench in benches {
        for (group, name) in GROUPS.iter().enumerate() {
            let mixes = bench.groups.iter().filter(|&&one| one == group).count();
            let mut row = vec![
                Cell::text(bench.channels),
                Cell::text(*name),
                Cell::number(mixes as f64, 0),
            ];
            for at in LINUX + 1..POLICIES.len() {
                row.push(Cell::signed(&bench.of_group(group, at), 1));
            }
            rows.push(row);
        }
    }
    let mut columns = ["memory", "group", "mixes"].map(str::to_owned).to_vec();
    columns.extend(
        POLICIES[LINUX + 1..]
            .iter()
            .map(|policy| format!("`{policy}`")),
    );
    chapter.heading("Groups of mixes by bandwidth");
    chapter.table(
        "perf-fair-groups",
        "Mean speed-up over `linux` in per cent, by the lines that a mix reads per us under `linux` with three channels: low \
         demand below 80, middle demand 80 to 120, high demand above (the paper's section 7.2). With fewer channels the same \
         mixes ask for as much, and get less.",
        columns,
        rows,
    );
}

/// The value below which a share of the sizes of the errors of estimated IPC lies, in per cent.
fn size_of_error(run: &Measured, share: f64) -> Option<f64> {
    let errors = run.watch.solo_errors.iter();
    let sizes: Vec<f64> = errors.map(|error| 100.0 * error.abs()).collect();
    quantile(&sizes, share)
}

fn mean_size_of_progress_error(run: &Measured) -> Option<f64> {
    let errors = run.progress_errors();
    mean(&errors.iter().map(|error| error.abs()).collect::<Vec<_>>())
}

fn spread_of_progress_errors(run: &Measured) -> Option<f64> {
    let errors = run.progress_errors();
    Some(quantile(&errors, 1.0)? - quantile(&errors, 0.0)?)
}

/// Errors of the estimates, and their price.
fn estimates(chapter: &mut Chapter, benches: &[Bench]) {
    let mut rows = Vec::new();
    for bench in benches {
        for at in [FAIR, PERF_FAIR] {
            let grid = &bench.grid;
            let bias = grid.means(at, |run| Some(100.0 * mean(&run.watch.solo_errors)?));
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::text(format!("`{}`", POLICIES[at])),
                Cell::signed(&bias, 1),
                Cell::mean(&grid.means(at, |run| size_of_error(run, 0.5)), 1),
                Cell::mean(&grid.means(at, |run| size_of_error(run, 0.9)), 1),
                Cell::mean(&grid.means(at, mean_size_of_progress_error), 1),
                Cell::mean(&grid.means(at, spread_of_progress_errors), 1),
                Cell::mean(&grid.means(at, Measured::measuring_percent), 1),
                Cell::mean(&grid.means(at, Measured::idle_while_measuring), 1),
            ]);
        }
    }
    chapter.heading("What estimates are worth");
    chapter.table(
        "perf-fair-estimates",
        "Estimates against the truth. IPC alone: estimate / truth - 1 at each new estimate, its mean, and median and nine \
         tenths of its size. Progress: estimate / truth - 1 at the end of each job, mean size, and distance between the \
         greatest and the least in a mix. Price: share of the time in which something is measured alone, and CPUs out of \
         twelve that are idle meanwhile.",
        [
            "memory",
            "policy",
            "IPC alone, mean, %",
            "median size",
            "90th percentile of size",
            "progress, mean size, %",
            "greatest - least",
            "time measuring, %",
            "idle CPUs",
        ],
        rows,
    );
}
