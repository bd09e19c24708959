//! `even` beside the others in the usual worlds: tables, goals and pictures.

use super::{Mixes, SCENES, lengths_s, met, table};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, Curve, curves};
use crate::reproduction::findings::{Cell, Part, plain};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::Lab;
use crate::reproduction::trial::{Measured, machine};
use crate::statistics::{mean, quantile};
use std::cmp::Ordering;

/// Positions of candidates; the order is that of the rows.
const LINUX: usize = 0;
const BANDWIDTH: usize = 1;
const EVEN: usize = 5;
const COUNT: usize = 8;

fn candidates() -> [Candidate; COUNT] {
    let again = Candidate {
        label: "even, again".to_owned(),
        ..Candidate::new("even").remembering().compared()
    };
    let knowing = Candidate {
        label: "even, true progress".to_owned(),
        ..Candidate::new("even").knowing_progress()
    };
    [
        Candidate::new("linux"),
        Candidate::new("bandwidth"),
        Candidate::new("fair").compared(),
        Candidate::new("perf-fair").compared(),
        Candidate::new("oracle"),
        Candidate::new("even").compared(),
        again,
        knowing,
    ]
}

/// Positions of the mixes on which the constants of `even` were not chosen: all but mixes 3, 7 and 13.
const OTHERS: [usize; 10] = [0, 1, 3, 4, 5, 7, 8, 9, 10, 11];

/// What `even` is to reach, in per cent.
const UNFAIR_MOST: f64 = 5.0;
const WORST_MOST: f64 = 12.0;
const BEHIND_MOST: f64 = 1.0;

/// What was simulated on a machine with jobs of one length.
struct Bench {
    machine: &'static str,
    seconds: u64,
    grid: Grid,
    /// The mixes on which nothing was chosen, where others were.
    others: Option<Grid>,
}

/// The tables, the goals and the pictures.
pub(super) fn parts(lab: &Lab<'_>) -> Result<Vec<Part>, ReproduceError> {
    let candidates = candidates();
    let mut benches: Vec<Bench> = Vec::new();
    for &seconds in lengths_s(lab) {
        for scene in &SCENES {
            let what = format!("even on {}, {seconds} s", scene.machine);
            let (spec, mixes) = (machine(scene.machine)?, scene.mixes.of(seconds));
            let grid = Grid::simulate(
                &lab.pool,
                &what,
                &spec,
                &mixes,
                &candidates,
                lab.few_seeds(),
            )?;
            let others = (scene.mixes == Mixes::PerfFair).then(|| grid.only(&OTHERS));
            benches.push(Bench {
                machine: scene.machine,
                seconds,
                grid,
                others,
            });
        }
    }
    let mut parts = vec![
        Part::Heading("What `even` reaches".to_owned()),
        Part::Text(
            "Unfairness over the mixes, and that of the worst run; speed-up of turnaround over `linux`, on the mix where it is \
             least, and the least over `bandwidth` on any mix; the share of the time in measurements; and for policies that \
             estimate progress, estimated over true progress at the end of the jobs of a mix, greatest less least. \
             `even, again` begins with what another run of the same jobs learnt, as with `cosched history`. `even, true progress` is \
             shown the truth in place of its estimate: what separates it from `even` is the estimate."
                .to_owned(),
        ),
    ];
    parts.extend(benches.iter().map(Bench::summary));
    parts.push(Part::Heading(
        "Mixes on which nothing was chosen".to_owned(),
    ));
    parts.extend(benches.iter().filter_map(Bench::of_others));
    parts.push(Part::Heading("Goals".to_owned()));
    parts.extend(goals(&benches));
    parts.push(Part::Heading(
        "Fairness against speed, and estimates against the truth".to_owned(),
    ));
    let is_shown = |bench: &&Bench| bench.others.is_some() && bench.seconds == benches[0].seconds;
    for bench in benches.iter().filter(is_shown) {
        parts.push(bench.picture(&candidates));
        parts.push(bench.errors(&candidates));
    }
    Ok(parts)
}

/// The greatest unfairness of any run, in per cent.
pub(super) fn worst(grid: &Grid, at: usize) -> f64 {
    let runs = (0..grid.mixes).flat_map(|mix| grid.values(mix, at, Measured::unfair_percent));
    runs.max_by(f64::total_cmp).unwrap_or(f64::NAN)
}

/// How much faster it is than the base on the mix where that is least, in per cent: mean over the seeds.
pub(super) fn least(grid: &Grid, at: usize, base: usize) -> f64 {
    let gain =
        |mix: usize| mean(&grid.gains(mix, at, grid.of(mix, base), |run| Some(run.turnaround_s)));
    (0..grid.mixes)
        .filter_map(gain)
        .min_by(f64::total_cmp)
        .unwrap_or(f64::NAN)
}

/// Estimated over true progress less 1 at the end of each job, in per cent; empty where nothing was compared.
fn errors(run: &Measured, at: usize) -> Vec<f64> {
    let percent = |(estimate, truth): &(f64, f64)| 100.0 * (estimate / truth - 1.0);
    let of = if at >= EVEN {
        &run.watch.learnt
    } else {
        &run.watch.progress
    };
    of.values().map(percent).collect()
}

/// Distance between the greatest and the least of these errors.
fn spread(run: &Measured, at: usize) -> Option<f64> {
    let errors = errors(run, at);
    Some(quantile(&errors, 1.0)? - quantile(&errors, 0.0)?)
}

fn measuring(run: &Measured) -> f64 {
    100.0 * run.watch.measuring.as_s() / run.turnaround_s
}

const COLUMNS: [&str; 8] = [
    "policy",
    "unfairness, %",
    "worst, %",
    "speed-up, %",
    "least mix, %",
    "least over `bandwidth`, %",
    "time measuring, %",
    "spread of estimates, %",
];

/// The first six columns.
fn cells(grid: &Grid, at: usize, label: &str) -> Vec<Cell> {
    let over = |base: usize| {
        if at == base {
            Cell::Absent("the base".to_owned())
        } else {
            Cell::number(least(grid, at, base), 1)
        }
    };
    vec![
        Cell::text(format!("`{label}`")),
        Cell::mean(&grid.unfairness(at), 1),
        Cell::number(worst(grid, at), 1),
        Cell::signed(&grid.speed_up(at, (grid, LINUX)), 1),
        over(LINUX),
        over(BANDWIDTH),
    ]
}

impl Bench {
    fn summary(&self) -> Part {
        let rows = candidates().into_iter().enumerate().map(|(at, candidate)| {
            let mut row = cells(&self.grid, at, &candidate.label);
            row.push(Cell::mean(
                &self.grid.means(at, |run| Some(measuring(run))),
                1,
            ));
            row.push(if candidate.truth {
                Cell::mean(&self.grid.means(at, |run| spread(run, at)), 1)
            } else {
                Cell::Absent("it does not estimate progress, or does not use it".to_owned())
            });
            row
        });
        let caption = format!("`{}`, jobs of {} s.", self.machine, self.seconds);
        table(
            format!("even-{}-{}s", self.machine, self.seconds),
            caption,
            &COLUMNS,
            rows.collect(),
        )
    }

    fn of_others(&self) -> Option<Part> {
        let grid = self.others.as_ref()?;
        let rows = candidates()
            .iter()
            .enumerate()
            .map(|(at, candidate)| cells(grid, at, &candidate.label))
            .collect();
        let caption = format!(
            "`{}`, jobs of {} s: all mixes but 3, 7 and 13.",
            self.machine, self.seconds
        );
        Some(table(
            format!("even-others-{}-{}s", self.machine, self.seconds),
            caption,
            &COLUMNS[..6],
            rows,
        ))
    }

    fn picture(&self, candidates: &[Candidate]) -> Part {
        let drawn = candidates.iter().enumerate().map(|(at, candidate)| {
            let point = |mix: usize| {
                let gains = self.grid.gains(mix, at, self.grid.of(mix, LINUX), |run| {
                    Some(run.turnaround_s)
                });
                mean(&self.grid.values(mix, at, Measured::unfair_percent)).zip(mean(&gains))
            };
            Curve::points(
                candidate.label.clone(),
                (0..self.grid.mixes).filter_map(point).collect(),
            )
        });
        curves(
            format!("even-picture-{}", self.machine),
            format!(
                "Unfairness and speed-up over `linux` on `{}`: each point is a mix with jobs of {} s.",
                self.machine, self.seconds
            ),
            Axes {
                x: "unfairness, %",
                y: "speed-up over linux, %",
                decimals: 1,
            },
            drawn.collect(),
        )
    }

    fn errors(&self, candidates: &[Candidate]) -> Part {
        let drawn = candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.truth)
            .map(|(at, candidate)| {
                let mut of_all: Vec<f64> = (0..self.grid.mixes)
                    .flat_map(|mix| errors(&self.grid.of(mix, at)[0], at))
                    .collect();
                of_all.sort_by(f64::total_cmp);
                let last = of_all.len().saturating_sub(1).max(1) as f64;
                let points = of_all
                    .iter()
                    .enumerate()
                    .map(|(rank, &error)| (100.0 * rank as f64 / last, error));
                Curve::line(candidate.label.clone(), points.collect())
            });
        curves(
            format!("even-errors-{}", self.machine),
            format!(
                "Estimated over true progress at the end of each job on `{}`: all mixes with jobs of {} s, first seed, jobs in \
                 the order of their errors.",
                self.machine, self.seconds
            ),
            Axes {
                x: "jobs with a lesser error, %",
                y: "estimated / true - 1, %",
                decimals: 2,
            },
            drawn.collect(),
        )
    }
}

/// A goal, what was reached, and whether that is enough. A figure that does not exist meets no goal.
#[derive(Clone, Debug, PartialEq)]
struct Goal {
    reached: f64,
    is_met: bool,
}

impl Goal {
    fn at_most(reached: f64, most: f64) -> Goal {
        let is_met = matches!(
            reached.partial_cmp(&most),
            Some(Ordering::Less | Ordering::Equal)
        );
        Goal { reached, is_met }
    }

    fn at_least(reached: f64, least: f64) -> Goal {
        Goal {
            reached,
            ..Goal::at_most(-reached, -least)
        }
    }
}

/// The goals of `even` over some mixes, in the order of their columns.
fn goals_of(grid: &Grid) -> [Goal; 4] {
    let over_seeds = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    [
        Goal::at_most(over_seeds(&grid.unfairness(EVEN)), UNFAIR_MOST),
        Goal::at_most(worst(grid, EVEN), WORST_MOST),
        Goal::at_least(over_seeds(&grid.speed_up(EVEN, (grid, BANDWIDTH))), 0.0),
        Goal::at_least(least(grid, EVEN, BANDWIDTH), -BEHIND_MOST),
    ]
}

fn goals(benches: &[Bench]) -> [Part; 2] {
    let (mut rows, mut reached, mut all) = (Vec::new(), 0, 0);
    for bench in benches {
        for (name, grid) in [
            ("all", Some(&bench.grid)),
            ("not 3, 7, 13", bench.others.as_ref()),
        ] {
            let Some(grid) = grid else { continue };
            let goals = goals_of(grid);
            all += goals.len();
            reached += goals.iter().filter(|goal| goal.is_met).count();
            let mut row = vec![
                Cell::text(format!("`{}`", bench.machine)),
                Cell::text(format!("{} s", bench.seconds)),
            ];
            row.push(Cell::text(name));
            row.extend(goals.map(|goal| {
                Cell::text(format!("{}: {}", plain(goal.reached, 2), met(goal.is_met)))
            }));
            rows.push(row);
        }
    }
    let words = format!(
        "Of {all} goals {reached} are met and {} are not. A mean counts as it is, without its interval; the worst counts over \
         all mixes and seeds.",
        all - reached
    );
    let caption = "Goals of `even`, in per cent: unfairness at most 5 in the geometric mean and 12 in the worst run; at least as \
                   fast as `bandwidth` in the mean, and on no mix more than 1 behind it.";
    let columns = [
        "machine",
        "jobs",
        "mixes",
        "unfairness, at most 5",
        "worst, at most 12",
        "mean over `bandwidth`, at least 0",
        "least over `bandwidth`, at least -1",
    ];
    [
        Part::Text(words),
        table("even-goals".to_owned(), caption.to_owned(), &columns, rows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::pool::Pool;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_goal_is_met_up_to_its_limit_and_a_figure_that_is_missing_meets_none() {
        assert!(Goal::at_most(5.0, 5.0).is_met && !Goal::at_most(5.1, 5.0).is_met);
        assert!(Goal::at_least(-1.0, -1.0).is_met && !Goal::at_least(-1.1, -1.0).is_met);
        assert!(!Goal::at_most(f64::NAN, 5.0).is_met && !Goal::at_least(f64::NAN, 0.0).is_met);
        assert_eq!(Goal::at_least(-2.5, -1.0).reached, -2.5);
    }

    #[test]
    fn a_bench_shows_each_policy_and_what_it_estimates() {
        let stop = AtomicBool::new(false);
        let pool = Pool {
            threads: 2,
            progress: &|_, _, _| (),
            stop: &stop,
        };
        let (spec, all) = (machine("xeon-e5645-1ch").unwrap(), Mixes::PerfFair.of(4));
        let candidates = candidates();
        assert_eq!(
            (candidates[BANDWIDTH].policy, candidates[EVEN].policy),
            ("bandwidth", "even")
        );
        let grid =
            Grid::simulate(&pool, "two mixes", &spec, &all[8..10], &candidates, &[1]).unwrap();
        let bench = Bench {
            machine: "xeon-e5645-1ch",
            seconds: 4,
            others: Some(grid.only(&[1])),
            grid,
        };
        let Part::Table(shown) = bench.summary() else {
            panic!("a table")
        };
        let Some(Part::Table(of_others)) = bench.of_others() else {
            panic!("a table")
        };
        for (row, candidate) in shown.rows.iter().zip(&candidates) {
            assert_eq!(row.len(), shown.columns.len());
            assert_eq!(
                matches!(row[7], Cell::Absent(_)),
                !candidate.truth,
                "{}",
                candidate.label
            );
        }
        assert_eq!(
            (
                shown.rows.len(),
                of_others.rows.len(),
                of_others.columns.len()
            ),
            (COUNT, COUNT, 6)
        );
        let grid = &bench.grid;
        let single = Measured::unfair_percent(&grid.of(1, EVEN)[0]).unwrap();
        assert_eq!(worst(&grid.only(&[1]), EVEN), single);
        assert!(worst(grid, EVEN) >= single);
        // What it is for: fairer than the kernel, and as fair as it knows how far jobs are.
        let [linux, even, knowing] = [LINUX, EVEN, COUNT - 1].map(|at| grid.unfairness(at)[0]);
        assert!(
            even < 0.25 * linux && knowing < even,
            "{linux} {even} {knowing}"
        );
        assert!(least(grid, EVEN, LINUX) > least(grid, LINUX, EVEN));
        let spread = spread(&grid.of(0, EVEN)[0], EVEN).unwrap();
        assert!(spread > 0.5 && spread < 50.0, "{spread}");
        let [Part::Text(words), Part::Table(judged)] = goals(&[bench]) else {
            panic!("words and a table")
        };
        assert!(words.starts_with("Of 8 goals "), "{words}");
        assert_eq!(judged.rows.len(), 2);
    }
}
