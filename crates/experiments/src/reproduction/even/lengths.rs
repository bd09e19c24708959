//! Jobs of unequal lengths, which are all there at the start or arrive over time.

use super::{ENDS, Mixes, table};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part};
use crate::reproduction::grid::{Grid, simulate};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::Mix;
use crate::reproduction::trial::{Measured, Trial, machine};
use crate::statistics::mean;
use cosched_core::{Nanos, Rng};
use cosched_sim::{SimJob, Work};

/// The policies, and whether they remember an earlier run; the first is the base.
const POLICIES: [(&str, bool); 9] = [
    ("linux", false),
    ("round-robin", false),
    ("fifo", false),
    ("bandwidth", false),
    ("even", false),
    ("round-robin", true),
    ("fifo", true),
    ("bandwidth", true),
    ("even", true),
];

/// Random bits of a length.
const BITS: u32 = 16;

/// Ten to the power of `draw` / 2^16, as a product of roots: so every machine computes the same digits.
fn one_to_ten(draw: u64) -> f64 {
    let (mut length, mut root) = (1.0, 10.0_f64);
    for bit in (0..BITS).rev() {
        root = root.sqrt();
        if draw >> bit & 1 == 1 {
            length *= root;
        }
    }
    length
}

/// The jobs of a mix, each of 1 to 10 times this length alone.
fn jobs(mix: &Mix, shortest: Nanos, seed: u64) -> Vec<SimJob> {
    let mut rng = Rng::new(seed);
    let length = |rng: &mut Rng| Nanos::from_s(shortest.as_s() * one_to_ten(rng.below(1 << BITS)));
    mix.jobs
        .iter()
        .map(|job| SimJob {
            work: Work::SoloTime(length(&mut rng)),
            ..job.clone()
        })
        .collect()
}

/// When jobs arrive: at any time before that of ten of the shortest alone. Then about as much work arrives as the machine can
/// do.
fn arrivals(count: usize, shortest: Nanos, seed: u64) -> Vec<Nanos> {
    let mut rng = Rng::new(!seed);
    (0..count)
        .map(|_| Nanos(rng.below(10 * shortest.0)))
        .collect()
}

/// A table for each machine, and for each way to arrive.
pub(super) fn parts(lab: &Lab<'_>) -> Result<Vec<Part>, ReproduceError> {
    let shortest_s: u64 = if lab.quick { 1 } else { 10 };
    let seeds = lab.few_seeds();
    let mixes = Mixes::PerfFair.of(shortest_s);
    let mut parts = vec![
        Part::Heading("Jobs of unequal lengths".to_owned()),
        Part::Text(format!(
            "The 13 mixes with jobs of {shortest_s} to {} s alone, equally many in each ratio of lengths, drawn anew for each mix \
             and seed, with {}. Unless it is known how long jobs are, what is left at the end are long ones, beside idle CPUs. \
             Those that run *again* know how long each job had CPUs in another run: `fifo` begins with the longest, and the others \
             never stop a job that would end last. Equal progress lets no job end early: mean turnaround is not what `even` is good \
             for.",
            10 * shortest_s,
            in_words(seeds)
        )),
    ];
    for arrive in [false, true] {
        if arrive {
            parts.push(Part::Text(format!(
                "The same jobs when they arrive at any time of the first {} s. Then turnaround is that from a job's arrival to its \
                 end, and a job that arrives late begins with the progress of the one that is furthest behind.",
                10 * shortest_s
            )));
        }
        for name in ENDS {
            parts.push(of_machine(
                lab,
                name,
                &mixes,
                Nanos::from_ms(1_000 * shortest_s),
                arrive,
            )?);
        }
    }
    Ok(parts)
}

fn of_machine(
    lab: &Lab<'_>,
    name: &str,
    mixes: &[Mix],
    shortest: Nanos,
    arrive: bool,
) -> Result<Part, ReproduceError> {
    let (spec, seeds) = (machine(name)?, lab.few_seeds());
    let variants = |mix: usize, seed: u64| {
        let draw = seed.wrapping_mul(64) ^ mix as u64;
        let drawn = jobs(&mixes[mix], shortest, draw);
        let arrivals = if arrive {
            arrivals(drawn.len(), shortest, draw)
        } else {
            Vec::new()
        };
        let of = |(policy, remembers)| Trial {
            remembers,
            arrivals: arrivals.clone(),
            ..Trial::new(&spec, &drawn, policy, seed)
        };
        POLICIES.map(of).to_vec()
    };
    let (id, how) = if arrive {
        ("arrivals", "jobs that arrive over time")
    } else {
        ("lengths", "all jobs at the start")
    };
    let what = format!("even: unequal lengths on {name}, {how}");
    let grid = Grid::of_results(
        simulate(&lab.pool, &what, mixes.len(), seeds, variants)?,
        seeds.len(),
    );
    let cpus = spec.machine().cpus.len() as f64;
    let rows = POLICIES
        .iter()
        .enumerate()
        .map(|(at, &(policy, remembers))| {
            let mean_stay = |run: &Measured| mean(&run.stays_s);
            let idle = |run: &Measured| Some(100.0 * run.watch.idle_s / (cpus * run.turnaround_s));
            let sooner = grid.geometric(|mix, seed| {
                Some(mean_stay(&grid.of(mix, 0)[seed])? / mean_stay(&grid.of(mix, at)[seed])?)
            });
            let sooner: Vec<f64> = sooner.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect();
            vec![
                Cell::text(if remembers {
                    format!("`{policy}`, again")
                } else {
                    format!("`{policy}`")
                }),
                Cell::mean(&grid.means(at, mean_stay), 1),
                Cell::signed(&sooner, 1),
                Cell::mean(&grid.means(at, |run| Some(run.turnaround_s)), 1),
                Cell::signed(&grid.speed_up(at, (&grid, 0)), 1),
                Cell::mean(&grid.means(at, idle), 1),
                Cell::mean(&grid.unfairness(at), 1),
            ]
        });
    Ok(table(
        format!("even-{id}-{name}"),
        format!(
            "`{name}`, {how}: mean turnaround of the jobs, the end of the last one, both also as gain over `linux` (geometric mean \
             over mixes), the share of all CPU time until then that nobody had, and unfairness."
        ),
        &[
            "policy",
            "mean turnaround, s",
            "over `linux`, %",
            "end of the last, s",
            "last over `linux`, %",
            "idle, %",
            "unfairness, %",
        ],
        rows.collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_spread_evenly_by_their_logarithm() {
        assert_eq!(one_to_ten(0), 1.0);
        assert!((one_to_ten(1 << 15) - 10.0_f64.sqrt()).abs() < 1e-12);
        assert!((9.99..10.0).contains(&one_to_ten((1 << BITS) - 1)));
        let mixes = Mixes::PerfFair.of(1);
        let shortest = Nanos::from_ms(1_000);
        let s = |seed: u64| -> Vec<f64> {
            let of = |job: &SimJob| match job.work {
                Work::SoloTime(time) => time.as_s(),
                Work::Instructions(_) => panic!("a time"),
            };
            jobs(&mixes[0], shortest, seed).iter().map(of).collect()
        };
        assert_eq!(s(1), s(1));
        assert_ne!(s(1), s(2));
        let drawn: Vec<f64> = (0..100).flat_map(s).collect();
        let below = drawn
            .iter()
            .filter(|length| **length < 10.0_f64.sqrt())
            .count() as f64
            / drawn.len() as f64;
        assert!((0.47..0.53).contains(&below), "{below}");
        assert!(drawn.iter().all(|length| (1.0..=10.0).contains(length)));
    }
}
