//! How headline figures move when an assumed number of the simulated world is another.
//!
//! One number is changed at a time. Jobs are short and seeds few, so that it takes minutes: what counts is the difference
//! from the world as it is, with the same jobs and seeds.

use crate::efs::Effects;
use crate::error::ReproduceError;
use crate::findings::{Cell, Chapter, Part, Table, shown};
use crate::grid::{Candidate, Grid};
use crate::lab::{Lab, in_words};
use crate::lucky::saved_over_mixes;
use crate::mixes::{Mix, copies, of_folder, program};
use crate::stats::{Estimate, mean, over};
use crate::trial::{machine, refitted};
use cosched_core::Nanos;
use cosched_sim::machine::Replacement;
use cosched_sim::{MachineSpec, SimJob, Work};
use std::sync::Arc;

/// Work of each job.
const WORK: Work = Work::SoloTime(Nanos::from_ms(10_000));

/// A change of a machine, and its name.
type Change = (&'static str, fn(&mut MachineSpec));

/// Each assumed number halved and doubled, or as far as it makes sense.
const CHANGES: &[Change] = &[
    ("idle latency x 0.8", |m| m.memory.idle_latency_ns *= 0.8),
    ("idle latency x 1.25", |m| m.memory.idle_latency_ns *= 1.25),
    ("price of a hit x 0.5", |m| m.llc.hit_ns *= 0.5),
    ("price of a hit x 2", |m| m.llc.hit_ns *= 2.0),
    ("any line is replaced", |m| {
        m.llc.replacement = Replacement::Random
    }),
    ("streams cost nothing", |m| m.memory.stream_loss = 0.0),
    ("streams cost x 2", |m| {
        m.memory.stream_loss *= 2.0;
        m.memory.stream_loss_most *= 2.0;
    }),
    ("last level x 0.67", |m| m.llc.mb *= 0.67),
    ("last level x 1.5", |m| m.llc.mb *= 1.5),
    ("SMT issue share x 0.5", |m| m.smt.issue_share *= 0.5),
    ("SMT issue share x 1.5", |m| m.smt.issue_share *= 1.5),
    ("wait for L1 0", |m| m.smt.l1_wait_cycles = 0.0),
    ("wait for L1 x 2", |m| m.smt.l1_wait_cycles *= 2.0),
    ("period x 0.33", |m| m.kernel.period_ms *= 0.33),
    ("period x 3", |m| m.kernel.period_ms *= 3.0),
    ("balancing x 0.25", |m| m.kernel.balance_ms *= 0.25),
    ("balancing x 4", |m| m.kernel.balance_ms *= 4.0),
    ("switch x 0.5", |m| m.kernel.switch_us *= 0.5),
    ("switch x 3", |m| m.kernel.switch_us *= 3.0),
    ("cold private caches x 0.5", |m| {
        m.kernel.migration_us *= 0.5
    }),
    ("cold private caches x 5", |m| m.kernel.migration_us *= 5.0),
    ("energy of a line x 0.5", |m| m.power.nj_per_line *= 0.5),
    ("energy of a line x 2", |m| m.power.nj_per_line *= 2.0),
    ("big core idle x 0.5", |m| idle_power(m, 0.5)),
    ("big core idle x 2", |m| idle_power(m, 2.0)),
    ("counters without noise", |m| m.counters.noise = 0.0),
    ("noise of counters x 5", |m| m.counters.noise *= 5.0),
];

/// Where there are two types of core, the idle power of the big one is assumed.
fn idle_power(machine: &mut MachineSpec, factor: f64) {
    if machine.core_types.len() > 1 {
        machine.core_types[0].idle_w *= factor;
    }
}

/// A machine, and the figures that are looked at on it.
struct Scene {
    machine: &'static str,
    title: &'static str,
    /// The figures, and decimals that are shown.
    figures: &'static [(&'static str, usize)],
    /// Measures them by seed.
    measure: fn(&Bench<'_>) -> Result<Vec<Vec<f64>>, ReproduceError>,
}

const OF_24: &[(&str, usize)] = &[
    ("linux, unfairness", 1),
    ("bandwidth, speed-up", 1),
    ("fair, speed-up", 1),
    ("perf-fair, speed-up", 1),
    ("perf-fair, unfairness", 1),
    ("round-robin, speed-up", 1),
];

const SCENES: [Scene; 4] = [
    Scene {
        machine: "xeon-e5645",
        title: "Perf&Fair's 13 mixes with three channels: unfairness, and speed-up over `linux`, in per cent",
        figures: OF_24,
        measure: perf_fair,
    },
    Scene {
        machine: "xeon-e5645-1ch",
        title: "Perf&Fair's 13 mixes with one channel: unfairness, and speed-up over `linux`, in per cent",
        figures: OF_24,
        measure: perf_fair,
    },
    Scene {
        machine: "i5-2500",
        title: "EFS, four copies of eight programs: energy saved and time lost against `linux`, in per cent",
        figures: &[("energy saved", 1), ("time lost", 1)],
        measure: efs,
    },
    Scene {
        machine: "big1-small3",
        title: "Lucky's mixes: energy-delay product that `lucky` saves over `bias` and over `big-fair`, in per cent",
        figures: &[("over bias", 1), ("over big-fair", 1)],
        measure: lucky,
    },
];

/// A change that moves no figure by as much as this is left out.
const NOTHING: f64 = 0.05;

/// Programs whose energy depends most on the bus, and two that hardly use it.
const FOURS: [&str; 8] = [
    "libquantum",
    "lbm",
    "soplex",
    "mcf",
    "GemsFDTD",
    "milc",
    "gcc",
    "povray",
];

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let mut parts = vec![Part::Text(format!(
        "One assumed number of the world is changed at a time, by as much as can be doubted or more, if the machine has it. The \
         parameters that policies take from a machine's file are fitted again. The first row of each table is the world as it \
         is; the others are differences from it, seed by seed, with {}. Jobs take 10 s alone, so that policies that measure \
         pay more than in the chapters above. A difference whose interval holds zero is not shown to be one.",
        in_words(lab.sensitivity_seeds()),
    ))];
    for scene in &SCENES {
        parts.extend(scene.parts(lab)?);
    }
    let title = "How sensitive the figures are".to_owned();
    Ok(Chapter {
        id: "sensitivity",
        title,
        parts,
        verdicts: Vec::new(),
        causes: Vec::new(),
    })
}

impl Scene {
    fn parts(&self, lab: &Lab<'_>) -> Result<[Part; 2], ReproduceError> {
        let base = machine(self.machine)?;
        let measure = |name: &str, spec: Arc<MachineSpec>| {
            (self.measure)(&Bench {
                lab,
                what: format!("{name}, {}", self.machine),
                spec,
            })
        };
        let as_it_is = measure("as it is", base.clone())?;
        let row = |name: &str, cells: &mut dyn Iterator<Item = Cell>| -> Vec<Cell> {
            std::iter::once(Cell::text(name)).chain(cells).collect()
        };
        let decimals = |at: usize| self.figures[at].1;
        let mut first = as_it_is
            .iter()
            .enumerate()
            .map(|(at, values)| Cell::mean(values, decimals(at)));
        let mut rows = vec![row("as it is", &mut first)];
        let mut without_effect = Vec::new();
        // For each figure the change that moves it most.
        let mut most: Vec<Option<(f64, &str)>> = vec![None; self.figures.len()];
        for (name, change) in CHANGES {
            let mut changed = (*base).clone();
            change(&mut changed);
            if changed == *base {
                continue;
            }
            let values = measure(name, refitted(changed)?)?;
            let pairs = |(values, base): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> {
                values
                    .iter()
                    .zip(base)
                    .map(|(value, base)| value - base)
                    .collect()
            };
            let differences: Vec<Vec<f64>> = values.iter().zip(&as_it_is).map(pairs).collect();
            if differences
                .iter()
                .flatten()
                .all(|difference| difference.abs() < NOTHING)
            {
                without_effect.push(*name);
                continue;
            }
            for (most, pairs) in most.iter_mut().zip(&differences) {
                let Some(moved) = Estimate::of(pairs) else {
                    continue;
                };
                let (low, high) = moved.interval();
                let is_shown = low > 0.0 || high < 0.0;
                if is_shown && most.is_none_or(|(so_far, _)| moved.mean.abs() > so_far.abs()) {
                    *most = Some((moved.mean, name));
                }
            }
            let mut cells = differences
                .iter()
                .enumerate()
                .map(|(at, pairs)| Cell::signed(pairs, decimals(at)));
            rows.push(row(name, &mut cells));
        }
        let mut columns = vec!["changed".to_owned()];
        columns.extend(self.figures.iter().map(|(name, _)| (*name).to_owned()));
        let mut caption = format!("{}; `{}`.", self.title, self.machine);
        if !without_effect.is_empty() {
            caption.push_str(&format!(" Without effect: {}.", without_effect.join(", ")));
        }
        let id = format!("sensitivity-{}", self.machine);
        let moves = self
            .figures
            .iter()
            .zip(&most)
            .map(|((figure, decimals), most)| match most {
                Some((by, change)) => {
                    format!("{figure}, {change} ({})", shown(*by, None, *decimals, true))
                }
                None => format!("{figure}, none"),
            });
        let conclusion = format!(
            "What moves each figure most: {}.",
            moves.collect::<Vec<_>>().join("; ")
        );
        Ok([
            Part::Table(Table {
                id,
                caption,
                columns,
                rows,
            }),
            Part::Text(conclusion),
        ])
    }
}

/// A machine on which figures are measured.
struct Bench<'a> {
    lab: &'a Lab<'a>,
    what: String,
    spec: Arc<MachineSpec>,
}

impl Bench<'_> {
    fn grid(&self, mixes: &[Mix], policies: &[&'static str]) -> Result<Grid, ReproduceError> {
        let candidates: Vec<Candidate> = policies
            .iter()
            .map(|policy| Candidate::new(policy))
            .collect();
        let seeds = self.lab.sensitivity_seeds();
        Grid::simulate(
            &self.lab.pool,
            &self.what,
            &self.spec,
            mixes,
            &candidates,
            seeds,
        )
    }
}

fn perf_fair(bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let policies = ["linux", "bandwidth", "fair", "perf-fair", "round-robin"];
    let grid = bench.grid(&of_folder("perf-fair", WORK), &policies)?;
    let speed_up = |at: usize| grid.speed_up(at, (&grid, 0));
    Ok(vec![
        grid.unfairness(0),
        speed_up(1),
        speed_up(2),
        speed_up(3),
        grid.unfairness(3),
        speed_up(4),
    ])
}

fn efs(bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let fours: Vec<Vec<SimJob>> = FOURS
        .iter()
        .map(|name| copies(&program(name), 4, WORK))
        .collect();
    let seeds = bench.lab.sensitivity_seeds();
    let effects = Effects::simulate(bench.lab, &bench.what, &bench.spec, &fours, seeds)?;
    Ok(vec![
        over(&effects.energy_saved(), mean),
        over(&effects.time_lost(), mean),
    ])
}

fn lucky(bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let grid = bench.grid(&of_folder("lucky", WORK), &["lucky", "bias", "big-fair"])?;
    Ok([1, 2].map(|base| saved_over_mixes(&grid, 0, base)).to_vec())
}
