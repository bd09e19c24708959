//! Prints after how many runs of each program the pairs that are predicted from times alone are good: real programs, real
//! pairs. `COSCHED_PAIRS=pairs_spec2017.csv cargo run --release -p cosched-sim --features examples --example pairs`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.
#![allow(clippy::needless_range_loop)] // Both indices of a matrix.

#[allow(dead_code)]
mod shared;

use cosched_core::{Interference, NeighbouredRun, Rng, interferences};
use shared::{print_head, range, shuffle};
use std::collections::{BTreeMap, BTreeSet};

/// Runs are drawn from these sets, and judged by the others: near replicates at nominal clock.
const LEARN: [&str; 2] = ["test", "cpu_freq"];
const JUDGE: [&str; 2] = ["conservative", "ondemand"];

/// Left out: it runs for 2 s, and for eighteen programs there is a perfect pairing.
const LEFT_OUT: &str = "627.cam4_s";

/// One of this many pairs is held back: no run is drawn from it, so it is predicted unseen.
const ONE_HELD_BACK_OF: usize = 5;

const SEEDS: u64 = 20;
const COUNTS: [usize; 9] = [1, 2, 3, 4, 5, 7, 10, 20, 50];

/// Standard deviations of what is added to each run: real runs vary more than these.
const NOISES: [f64; 3] = [0.0, 0.02, 0.05];

/// The logarithm of the slowdown of each program beside each other; infinite where no pair is known.
type Table = Vec<Vec<f64>>;

struct Data {
    names: Vec<String>,
    /// Logarithm of slowdown, measured and predicted by the repository, by set, program and neighbour.
    pairs: BTreeMap<(String, usize, usize), [f64; 2]>,
}

impl Data {
    fn read(text: &str) -> Data {
        let mut names = Vec::new();
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[2] != LEFT_OUT && fields[3] != LEFT_OUT {
                names.push(fields[2].to_owned());
                rows.push(fields);
            }
        }
        names.sort();
        names.dedup();
        let mut pairs = BTreeMap::new();
        for row in rows {
            let of = |name: &str| {
                names
                    .iter()
                    .position(|known| known == name)
                    .expect("each pair has two rows")
            };
            let log = |field: &str| -field.parse::<f64>().expect("a number").ln();
            pairs.insert(
                (row[0].to_owned(), of(row[2]), of(row[3])),
                [log(row[4]), log(row[5])],
            );
        }
        Data { names, pairs }
    }

    /// The mean over sets of a column.
    fn table(&self, sets: &[&str], column: usize) -> Table {
        let count = self.names.len();
        let mut table = vec![vec![f64::INFINITY; count]; count];
        for (one, row) in table.iter_mut().enumerate() {
            for (other, cell) in row.iter_mut().enumerate() {
                let known = sets
                    .iter()
                    .filter_map(|set| self.pairs.get(&((*set).to_owned(), one, other)));
                let values: Vec<f64> = known.map(|pair| pair[column]).collect();
                if !values.is_empty() {
                    *cell = values.iter().sum::<f64>() / values.len() as f64;
                }
            }
        }
        table
    }

    /// Pairs to hold back, in both directions.
    fn hold_back(&self, lots: &mut Rng) -> BTreeSet<(usize, usize)> {
        let known = self.pairs.keys().map(|&(_, one, other)| (one, other));
        let mut pairs: Vec<(usize, usize)> = known.filter(|(one, other)| one < other).collect();
        pairs.sort_unstable();
        pairs.dedup();
        shuffle(&mut pairs, lots);
        pairs.truncate(pairs.len() / ONE_HELD_BACK_OF);
        let back = pairs.iter().map(|&(one, other)| (other, one));
        back.chain(pairs.iter().copied()).collect()
    }

    /// So many runs of each program, each beside another one that is drawn, but for the pairs held back.
    fn draw(
        &self,
        count: usize,
        noise: f64,
        held_back: &BTreeSet<(usize, usize)>,
        lots: &mut Rng,
    ) -> Vec<NeighbouredRun> {
        let programs = self.names.len();
        let mut runs = Vec::new();
        while runs.len() < count * programs {
            let command = runs.len() / count;
            let other = lots.below(programs as u64) as usize;
            let set = LEARN[lots.below(2) as usize];
            if held_back.contains(&(command, other)) {
                continue;
            }
            if let Some([slowdown, _]) = self.pairs.get(&(set.to_owned(), command, other)) {
                let time_s = (slowdown + noise * normal(lots)).exp();
                runs.push(NeighbouredRun {
                    command,
                    program: command,
                    time_s,
                    beside: vec![(other, 1.0)],
                });
            }
        }
        runs
    }
}

fn uniform(lots: &mut Rng) -> f64 {
    lots.below(1 << 30) as f64 / f64::from(1 << 30)
}

fn normal(lots: &mut Rng) -> f64 {
    (0..12).map(|_| uniform(lots)).sum::<f64>() - 6.0
}

/// The perfect matching with the least total cost, as the partner of each.
fn matching(costs: &Table) -> Vec<usize> {
    let count = costs.len();
    let mut least = vec![f64::INFINITY; 1 << count];
    let mut pair = vec![(0, 0); 1 << count];
    least[0] = 0.0;
    for done in 0..least.len() - 1 {
        let one = done.trailing_ones() as usize;
        for other in one + 1..count {
            let both = done | 1 << one | 1 << other;
            let cost = least[done] + costs[one][other] + costs[other][one];
            if done >> other & 1 == 0 && cost < least[both] {
                least[both] = cost;
                pair[both] = (one, other);
            }
        }
    }
    let mut partners = vec![0; count];
    let mut left = least.len() - 1;
    while left > 0 {
        let (one, other) = pair[left];
        partners[one] = other;
        partners[other] = one;
        left &= !(1 << one | 1 << other);
    }
    partners
}

/// The mean slowdown in percent, by the truth, of the pairs that these costs choose.
fn quality(costs: &Table, truth: &Table) -> f64 {
    let partners = matching(costs);
    let total: f64 = partners
        .iter()
        .enumerate()
        .map(|(one, &other)| truth[one][other])
        .sum();
    100.0 * total / partners.len() as f64
}

/// Costs for all pairs that are known.
fn costs(truth: &Table, mut cost: impl FnMut(usize, usize) -> f64) -> Table {
    let mut table = truth.clone();
    for (one, row) in table.iter_mut().enumerate() {
        for (other, cell) in row
            .iter_mut()
            .enumerate()
            .filter(|(_, cell)| cell.is_finite())
        {
            *cell = cost(one, other);
        }
    }
    table
}

/// The mean absolute error in percent.
fn error(table: &Table, truth: &Table) -> f64 {
    let count = truth.len();
    let all = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
    error_of(table, truth, all)
}

/// The mean absolute error of these pairs in percent, as far as they are known.
fn error_of(table: &Table, truth: &Table, pairs: impl IntoIterator<Item = (usize, usize)>) -> f64 {
    let mut errors = Vec::new();
    for (one, other) in pairs {
        if truth[one][other].is_finite() {
            errors.push((table[one][other] - truth[one][other]).abs());
        }
    }
    100.0 * errors.iter().sum::<f64>() / errors.len() as f64
}

/// The pairs in which a run was drawn.
fn seen(runs: &[NeighbouredRun]) -> BTreeSet<(usize, usize)> {
    let pairs = runs.iter().map(|run| (run.command, run.beside[0].0));
    pairs.collect()
}

fn by_model(programs: &[Interference], runs: &[NeighbouredRun], truth: &Table) -> Table {
    let alone: Vec<f64> = (0..programs.len())
        .map(|one| alone(programs, runs, one))
        .collect();
    costs(truth, |one, other| {
        alone[one] + programs[one].slowdown_beside(&programs[other])
    })
}

/// The logarithm of a program's time alone by the model.
fn alone(programs: &[Interference], runs: &[NeighbouredRun], one: usize) -> f64 {
    let own: Vec<&NeighbouredRun> = runs.iter().filter(|run| run.command == one).collect();
    let slowdown = |run: &NeighbouredRun| programs[one].slowdown_beside(&programs[run.beside[0].0]);
    let logs = own.iter().map(|run| run.time_s.ln() - slowdown(run));
    logs.sum::<f64>() / own.len() as f64
}

/// The mean of the runs of a program, or, `by_pair`, that of the pair, with the other as one run more.
fn by_means(runs: &[NeighbouredRun], truth: &Table, by_pair: bool) -> Table {
    costs(truth, |one, other| {
        let own: Vec<&NeighbouredRun> = runs.iter().filter(|run| run.command == one).collect();
        let mean = own.iter().map(|run| run.time_s.ln()).sum::<f64>() / own.len() as f64;
        let pair: Vec<&&NeighbouredRun> = own
            .iter()
            .filter(|run| by_pair && run.beside[0].0 == other)
            .collect();
        (mean + pair.iter().map(|run| run.time_s.ln()).sum::<f64>()) / (1 + pair.len()) as f64
    })
}

/// The share of differences between two neighbours that are within 1.64 standard deviations, in percent.
fn covered(programs: &[Interference], truth: &Table) -> f64 {
    let (mut within, mut all) = (0.0, 0.0);
    for (one, row) in truth.iter().enumerate() {
        for (first, second) in
            (0..row.len()).flat_map(|first| (0..first).map(move |second| (first, second)))
        {
            let real = row[first] - row[second];
            if real.is_finite() {
                let (difference, sd) =
                    compared(&programs[one], &programs[first], &programs[second]);
                all += 1.0;
                within += if (real - difference).abs() <= 1.64 * sd {
                    1.0
                } else {
                    0.0
                };
            }
        }
    }
    100.0 * within / all
}

/// What the first neighbour costs a program more than the second, and the standard deviation of that.
fn compared(own: &Interference, first: &Interference, second: &Interference) -> (f64, f64) {
    let square = |value: f64| value * value;
    let slowdowns = [first, second].map(|other| own.slowdown_beside(other));
    let misfit = slowdowns.map(|slowdown| square(0.3 * slowdown) + square(0.005));
    let apart = first.pressure - second.pressure;
    let bandwidth_apart = first.bandwidth_pressure - second.bandwidth_pressure;
    let of_pressures = square(first.pressure_sd) + square(second.pressure_sd);
    let of_bandwidth = square(first.bandwidth_pressure_sd) + square(second.bandwidth_pressure_sd);
    let variance = square(apart * own.sensitivity_sd)
        + square(bandwidth_apart * own.pressure_sd)
        + square(own.sensitivity) * of_pressures
        + square(own.pressure_beyond_mild()) * of_bandwidth
        + misfit[0]
        + misfit[1];
    (slowdowns[0] - slowdowns[1], variance.sqrt())
}

fn main() {
    let path = std::env::var("COSCHED_PAIRS").expect("COSCHED_PAIRS names pairs_spec2017.csv");
    let text = std::fs::read_to_string(&path).expect("COSCHED_PAIRS can be read");
    let data = Data::read(&text);
    let truth = data.table(&JUDGE, 0);
    let theirs = data.table(&JUDGE, 1);
    let again = data.table(&LEARN, 0);
    let mut lots = Rng::new(0);
    let mut random = Vec::new();
    for _ in 0..200 {
        random.push(quality(&costs(&truth, |_, _| uniform(&mut lots)), &truth));
    }
    let worst = costs(&truth, |one, other| -truth[one][other]);
    println!(
        "{} programs; mean slowdown of the pairs chosen [%]:",
        data.names.len()
    );
    println!(
        "- optimum {:.1}, worst {:.1}, random {}",
        quality(&truth, &truth),
        quality(&worst, &truth),
        range(random, 1, " / ")
    );
    println!(
        "- the repository's prediction {:.1}, error {:.1}",
        quality(&theirs, &truth),
        error(&theirs, &truth)
    );
    println!(
        "- all pairs measured in the other sets {:.1}, error {:.1}",
        quality(&again, &truth),
        error(&again, &truth)
    );
    for noise in NOISES {
        println!("\nnoise {noise}\n");
        print_head(
            "runs | model: slowdown, error seen, error unseen, covered | mean per program: error | table of pairs: slowdown, error",
        );
        for count in COUNTS {
            let mut columns: [Vec<f64>; 7] = Default::default();
            for seed in 0..SEEDS {
                let mut lots = Rng::new(seed);
                let held_back = data.hold_back(&mut lots);
                let runs = data.draw(count, noise, &held_back, &mut lots);
                let programs = interferences(data.names.len(), &runs);
                let [model, mean, table] = [
                    by_model(&programs, &runs, &truth),
                    by_means(&runs, &truth, false),
                    by_means(&runs, &truth, true),
                ];
                columns[0].push(quality(&model, &truth));
                columns[1].push(error_of(&model, &truth, seen(&runs)));
                columns[2].push(error_of(&model, &truth, held_back));
                columns[3].push(covered(&programs, &truth));
                columns[4].push(error(&mean, &truth));
                columns[5].push(quality(&table, &truth));
                columns[6].push(error(&table, &truth));
            }
            let [slowdown, seen, unseen, covered, mean, by_table, table] =
                columns.map(|values| range(values, 1, " / "));
            println!(
                "| {count} | {slowdown}; {seen}; {unseen}; {covered} | {mean} | {by_table}; {table} |"
            );
        }
    }
}
