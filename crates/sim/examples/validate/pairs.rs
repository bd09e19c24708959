//! Holds predictions against pairs of SPEC CPU2017 programs on a server: how fast each program is beside each other, relative to
//! alone (Bruno-Dzk/resource-contention, 2025).
//!
//! `examples/spec2017-pairs` has the server and the programs, fitted to what each program does alone, and says how. The
//! measurements come in a folder. Pairs that no fit has seen are judged apart, if the folder has any.

use crate::measurements::MeasuredTable;
use cosched_core::{Interference, Nanos, NeighbouredRun, Rng, interferences};
use cosched_sim::program::{ProgramCache, ProgramCore, ProgramMemory, Stall};
use cosched_sim::{MachineSpec, ProgramSpec, parse_machine_with, speeds_beside};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// The folder with the machine and the programs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/spec2017-pairs");

/// The campaigns at nominal clock. They are near replicates.
const SETS: [&str; 4] = ["test", "cpu_freq", "conservative", "ondemand"];

/// Runs to learn from are drawn from the first two campaigns, and judged by the others.
const LEARN: [&str; 2] = ["test", "cpu_freq"];
const JUDGE: [&str; 2] = ["conservative", "ondemand"];

/// Numbers of runs of each program to learn from.
const RUNS: [usize; 3] = [5, 10, 20];

/// Drawings of runs for each number.
const SEEDS: u64 = 20;

/// One of this many pairs is held back from learning.
const ONE_HELD_BACK_OF: usize = 5;

/// A program of 2 s, left out of learning as in the example `pairs`.
const TOO_SHORT: &str = "627.cam4_s";

/// Idle time of a neighbour between two of its runs, assumed: `runcpu` then checks results.
const GAP_S: f64 = 2.0;

/// Points of a curve of misses.
const POINTS: usize = 60;

/// Simulated time until a pair is measured, and until its end.
const SPAN: [Nanos; 2] = [Nanos::from_ms(3_000), Nanos::from_ms(4_000)];

/// A program, and the program beside it.
type Names = (String, String);

/// The predicted performance of programs beside others.
type Predicted = BTreeMap<Names, f64>;

/// A program beside another in one campaign.
struct Measured {
    set: String,
    /// The number of the pair, the same in all campaigns.
    number: String,
    names: Names,
    /// Speed relative to alone.
    performance: f64,
    /// The authors' own prediction of it.
    theirs: f64,
}

/// The measurements.
struct Data {
    all: Vec<Measured>,
    /// Mean time of each program alone, in seconds.
    alone_s: BTreeMap<String, f64>,
    /// The numbers of the pairs that fits have seen.
    shown: BTreeSet<String>,
}

/// A program as a gang of equal threads.
struct Gang {
    thread: Arc<ProgramSpec>,
    threads: usize,
}

/// The report on the measurements in a folder.
pub(crate) fn report(folder: &Path) -> Result<String, String> {
    let data = read(folder)?;
    let machine = Arc::new(machine()?);
    let from_curves = simulate(&data, &programs("programs.csv", &machine)?, &machine)?;
    let from_pairs = simulate(&data, &programs("programs_pairs.csv", &machine)?, &machine)?;
    let mut report = legend();
    report += &judged("no slowdown", &data, |_| Some(1.0));
    report += &judged("the authors' own prediction", &data, |one| Some(one.theirs));
    report += &judged("the same, mean over the campaigns", &data, |one| {
        Some(mean_prediction(one, &data))
    });
    for (name, predicted) in [
        ("simulated, from curves alone", &from_curves),
        (
            "simulated, from curves alone, with gaps",
            &with_gaps(&from_curves, &data)?,
        ),
        (
            "simulated, fitted to the shown pairs, with gaps",
            &with_gaps(&from_pairs, &data)?,
        ),
    ] {
        report += &judged(name, &data, |one| predicted.get(&one.names).copied());
    }
    report += &judged("the other campaigns' mean", &data, |one| {
        mean_of_others(one, &data)
    });
    for count in RUNS {
        report += &learnt(count, &data);
    }
    Ok(report)
}

fn legend() -> String {
    let mut text = format!(
        "## Pairs of SPEC CPU2017\n\n\
         Cells: mean / 90th percentile / greatest error of the speed relative to alone, in percent points.\n\n\
         - *Shown* pairs were known when the models were made. The fit to shown pairs has seen them. *Hidden* pairs are all others.\n\
         - With gaps, a neighbour is idle for {GAP_S} s between two of its runs. This is assumed.\n\
         - A prediction by learning knows the times of runs only. They are drawn from the first two campaigns, {SEEDS} times. The other \
         campaigns judge. *Seen* pairs were drawn, *unseen* ones are a fifth that never is.\n\n\
         | prediction | pairs | all |"
    );
    for set in SETS {
        let _ = write!(text, " `{set}` |");
    }
    text + "\n| --- | --- | --- | --- | --- | --- | --- |\n"
}

fn read(folder: &Path) -> Result<Data, String> {
    let mut all = Vec::new();
    for row in &MeasuredTable::read(&folder.join("pairs_spec2017.csv"))?.rows {
        if SETS.contains(&row.text("set")?) {
            all.push(Measured {
                set: row.text("set")?.to_owned(),
                number: row.text("pair")?.to_owned(),
                names: (
                    row.text("program")?.to_owned(),
                    row.text("corunner")?.to_owned(),
                ),
                performance: row.number("normalised_performance")?,
                theirs: row.number("repo_prediction")?,
            });
        }
    }
    let mut shown = BTreeSet::new();
    for row in &own_table("shown_pairs.csv")?.rows {
        shown.insert(row.text("pair")?.to_owned());
    }
    let alone_s = times_alone(&MeasuredTable::read(
        &folder.join("sensitivity_spec2017.csv"),
    )?)?;
    Ok(Data {
        all,
        alone_s,
        shown,
    })
}

/// A table of the repository.
fn own_table(name: &str) -> Result<MeasuredTable, String> {
    MeasuredTable::read(&Path::new(FOLDER).join(name))
}

/// The mean time of each program beside a bubble of 0 MB.
fn times_alone(curves: &MeasuredTable) -> Result<BTreeMap<String, f64>, String> {
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &curves.rows {
        if SETS.contains(&row.text("set")?) && row.number("bubble_mb")? == 0.0 {
            let program = row.text("program")?.to_owned();
            times
                .entry(program)
                .or_default()
                .push(row.number("time_s")?);
        }
    }
    let means = times
        .into_iter()
        .map(|(program, times)| (program, mean(&times)));
    Ok(means.collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn machine() -> Result<MachineSpec, String> {
    let read = |name: &str| {
        let file = Path::new(FOLDER).join(name);
        std::fs::read_to_string(&file)
            .map_err(|why| format!("cannot read {}: {why}", file.display()))
    };
    parse_machine_with(&read("machine.toml")?, "machine.toml", &read)
        .map_err(|error| error.to_string())
}

/// The programs of a table, by name.
fn programs(table: &str, machine: &MachineSpec) -> Result<BTreeMap<String, Gang>, String> {
    let power = fitted_figure("power")?;
    let mut programs = BTreeMap::new();
    for row in &own_table(table)?.rows {
        let name = row.text("program")?;
        let curve = MissCurve {
            stream_gb: row.number("stream_gb")?,
            reuse_gb: row.number("reuse_gb")?,
            scale_mb: row.number("scale_mb")?,
            power,
        };
        let gang = Parameters {
            curve,
            threads: row.number("threads")?,
            wait_s_per_gb: row.number("wait_s_per_gb")?,
            writes_per_read: row.number("writes_per_read")?,
            core_s: row.number("core_s")?,
        };
        programs.insert(name.to_owned(), gang.program(name, machine));
    }
    Ok(programs)
}

/// A figure of the machine that its file has no place for.
fn fitted_figure(name: &str) -> Result<f64, String> {
    for row in &own_table("machine.csv")?.rows {
        if row.text("figure")? == name {
            return row.number("value");
        }
    }
    Err(format!("machine.csv has no {name}"))
}

/// What a gang misses in a unit of work, by the cache that it holds.
struct MissCurve {
    stream_gb: f64,
    reuse_gb: f64,
    scale_mb: f64,
    power: f64,
}

impl MissCurve {
    fn missed_gb(&self, held_mb: f64) -> f64 {
        let left = (1.0 - held_mb / self.scale_mb / self.power).max(0.0);
        self.stream_gb + self.reuse_gb * left.powf(self.power)
    }
}

/// A row of a table of programs. A unit of work takes 1 s alone.
struct Parameters {
    curve: MissCurve,
    threads: f64,
    /// Time that the whole gang waits for a GB of misses at the idle latency.
    wait_s_per_gb: f64,
    writes_per_read: f64,
    /// Time in the core, hits included.
    core_s: f64,
}

impl Parameters {
    /// The gang, whose threads run at one instruction per cycle alone.
    fn program(&self, name: &str, machine: &MachineSpec) -> Gang {
        let ghz = machine.core_types[0].ghz;
        let idle_ns = machine.memory.idle_latency_ns;
        let llc_mb = machine.llc.mb;
        let per_ki = 1e3 / (64.0 * self.threads * ghz);
        let mut misses = Vec::new();
        for point in 1..=POINTS {
            let held_mb = llc_mb * point as f64 / POINTS as f64;
            misses.push((
                held_mb / self.threads,
                self.curve.missed_gb(held_mb) * per_ki,
            ));
        }
        let accesses_gb = self.curve.missed_gb(0.0);
        let hits_s = self.wait_s_per_gb * accesses_gb * machine.llc.hit_ns / idle_ns;
        let reads_per_ki = self.curve.missed_gb(llc_mb) * per_ki;
        let thread = ProgramSpec {
            name: name.to_owned(),
            title: String::new(),
            instructions: None,
            core: ProgramCore {
                cpi: self.core_s - hits_s,
                l1_accesses_per_ki: 0.0,
                hits: None,
            },
            cache: ProgramCache {
                l1_misses_per_ki: 0.0,
                l2_kb: machine.core_types[0].l2_kb,
                llc_accesses_per_ki: accesses_gb * per_ki,
                llc_misses_per_ki: misses,
            },
            memory: ProgramMemory {
                reads_per_ki,
                writes_per_ki: reads_per_ki * self.writes_per_read,
                at_mb: llc_mb / self.threads,
                stall: Stall::Overlap {
                    mlp: idle_ns / (64.0 * self.wait_s_per_gb * self.threads),
                },
            },
            phases: Vec::new(),
        };
        Gang {
            thread: Arc::new(thread),
            threads: self.threads as usize,
        }
    }
}

/// The performance of each program beside each that it was measured with.
fn simulate(
    data: &Data,
    programs: &BTreeMap<String, Gang>,
    machine: &Arc<MachineSpec>,
) -> Result<Predicted, String> {
    let mut alone = BTreeMap::new();
    for (name, gang) in programs {
        alone.insert(name, speeds(machine, &[gang])[0]);
    }
    let mut predicted = Predicted::new();
    for Measured { names, .. } in &data.all {
        let (one, other) = names;
        if !predicted.contains_key(names) {
            let both = speeds(machine, &[find(programs, one)?, find(programs, other)?]);
            predicted.insert(names.clone(), both[0] / alone[one]);
            predicted.insert((other.clone(), one.clone()), both[1] / alone[other]);
        }
    }
    Ok(predicted)
}

fn find<'a>(programs: &'a BTreeMap<String, Gang>, name: &str) -> Result<&'a Gang, String> {
    let gang = programs.get(name);
    gang.ok_or(format!("no table of programs has {name}"))
}

/// The speed of a thread of each gang while all run.
fn speeds(machine: &Arc<MachineSpec>, gangs: &[&Gang]) -> Vec<f64> {
    let mut threads = Vec::new();
    let mut first = Vec::new();
    for gang in gangs {
        first.push(threads.len());
        threads.extend(std::iter::repeat_n(gang.thread.clone(), gang.threads));
    }
    let speeds = speeds_beside(machine, &threads, SPAN[0], SPAN[1]);
    first.into_iter().map(|thread| speeds[thread]).collect()
}

/// Predictions if each neighbour is idle between its runs. The program's own time has no gaps.
fn with_gaps(predicted: &Predicted, data: &Data) -> Result<Predicted, String> {
    let mut with_gaps = Predicted::new();
    for (names, performance) in predicted {
        let Some(run_s) = data.alone_s.get(&names.1) else {
            return Err(format!(
                "sensitivity_spec2017.csv has no time of {} alone",
                names.1
            ));
        };
        let busy = run_s / (run_s + GAP_S);
        with_gaps.insert(names.clone(), 1.0 - busy * (1.0 - performance));
    }
    Ok(with_gaps)
}

/// The mean of the authors' predictions. The simulated programs are fitted to the mean of the campaigns, too.
fn mean_prediction(one: &Measured, data: &Data) -> f64 {
    let same = data.all.iter().filter(|other| other.names == one.names);
    mean(&same.map(|same| same.theirs).collect::<Vec<_>>())
}

/// The mean of the other campaigns: how well a repetition predicts.
fn mean_of_others(one: &Measured, data: &Data) -> Option<f64> {
    let mut others = Vec::new();
    for other in &data.all {
        if other.names == one.names && other.set != one.set {
            others.push(other.performance);
        }
    }
    (!others.is_empty()).then(|| mean(&others))
}

/// Absolute errors in percent points, by campaign.
#[derive(Default)]
struct Errors {
    by_set: BTreeMap<String, Vec<f64>>,
}

impl Errors {
    fn add(&mut self, one: &Measured, predicted: f64) {
        let error = 100.0 * (predicted - one.performance).abs();
        self.by_set.entry(one.set.clone()).or_default().push(error);
    }

    /// The row of a table, empty without errors.
    fn row(&self, name: &str, pairs: &str) -> String {
        if self.by_set.is_empty() {
            return String::new();
        }
        let all = self.by_set.values().flatten().copied().collect();
        let mut row = format!("| {name} | {pairs} | {} |", cell(all));
        for set in SETS {
            let errors = self.by_set.get(set).cloned().unwrap_or_default();
            let _ = write!(row, " {} |", cell(errors));
        }
        row + "\n"
    }
}

/// Mean, 90th percentile and greatest.
fn cell(mut errors: Vec<f64>) -> String {
    errors.sort_by(f64::total_cmp);
    let Some(greatest) = errors.last() else {
        return "-".to_owned();
    };
    let high = errors[errors.len() * 9 / 10];
    format!("{:.2} / {high:.1} / {greatest:.1}", mean(&errors))
}

/// The rows of a prediction that needs no runs.
fn judged(name: &str, data: &Data, predict: impl Fn(&Measured) -> Option<f64>) -> String {
    let [mut shown, mut hidden] = [Errors::default(), Errors::default()];
    for one in &data.all {
        if let Some(predicted) = predict(one) {
            if data.shown.contains(&one.number) {
                shown.add(one, predicted);
            } else {
                hidden.add(one, predicted);
            }
        }
    }
    shown.row(name, "shown") + &hidden.row(name, "hidden")
}

/// The rows of a prediction learnt from so many runs of each program.
fn learnt(count: usize, data: &Data) -> String {
    let [mut seen, mut unseen, mut hidden] = [(); 3].map(|()| Errors::default());
    for seed in 0..SEEDS {
        let mut lots = Rng::new(seed);
        let held_back = hold_back(data, &mut lots);
        let drawn = Drawn::new(count, data, &held_back, &mut lots);
        let predicted = drawn.predict();
        for one in &data.all {
            let Some(predicted) = predicted.get(&one.names) else {
                continue;
            };
            if !JUDGE.contains(&one.set.as_str()) {
                continue;
            }
            if !data.shown.contains(&one.number) {
                hidden.add(one, *predicted);
            } else if held_back.contains(&one.number) {
                unseen.add(one, *predicted);
            } else if drawn.pairs.contains(&one.names) {
                seen.add(one, *predicted);
            }
        }
    }
    let name = format!("learnt from {count} runs of each program");
    seen.row(&name, "seen") + &unseen.row(&name, "unseen") + &hidden.row(&name, "hidden")
}

/// The numbers of the shown pairs to hold back.
fn hold_back(data: &Data, lots: &mut Rng) -> BTreeSet<String> {
    let mut numbers: Vec<String> = data.shown.iter().cloned().collect();
    for place in (1..numbers.len()).rev() {
        numbers.swap(place, lots.below(place as u64 + 1) as usize);
    }
    numbers.truncate(numbers.len() / ONE_HELD_BACK_OF);
    numbers.into_iter().collect()
}

/// Runs that were drawn, each of a program beside another.
struct Drawn {
    programs: Vec<String>,
    runs: Vec<NeighbouredRun>,
    pairs: BTreeSet<Names>,
}

impl Drawn {
    /// So many runs of each program, none of the pairs held back or hidden.
    fn new(count: usize, data: &Data, held_back: &BTreeSet<String>, lots: &mut Rng) -> Drawn {
        let mut known: BTreeMap<&String, Vec<&Measured>> = BTreeMap::new();
        for one in &data.all {
            let is_known = data.shown.contains(&one.number) && !held_back.contains(&one.number);
            let is_short = one.names.0 == TOO_SHORT || one.names.1 == TOO_SHORT;
            if is_known && !is_short && LEARN.contains(&one.set.as_str()) {
                known.entry(&one.names.0).or_default().push(one);
            }
        }
        let programs: Vec<String> = known.keys().map(|name| (*name).clone()).collect();
        let mut drawn = Drawn {
            programs,
            runs: Vec::new(),
            pairs: BTreeSet::new(),
        };
        for rows in known.values() {
            for _ in 0..count {
                drawn.add(rows[lots.below(rows.len() as u64) as usize]);
            }
        }
        drawn
    }

    fn add(&mut self, one: &Measured) {
        let index = [&one.names.0, &one.names.1]
            .map(|name| self.programs.iter().position(|known| known == name));
        if let [Some(program), Some(other)] = index {
            self.runs.push(NeighbouredRun {
                command: program,
                program,
                time_s: 1.0 / one.performance,
                beside: vec![(other, 1.0)],
            });
            self.pairs.insert(one.names.clone());
        }
    }

    /// The performance of each program beside each other.
    fn predict(&self) -> Predicted {
        let known = interferences(self.programs.len(), &self.runs);
        let mut predicted = Predicted::new();
        for (one, name) in self.programs.iter().enumerate() {
            let alone = self.log_alone(one, &known);
            for (other, beside) in self.programs.iter().enumerate() {
                let log_time = alone + known[one].slowdown_beside(&known[other]);
                predicted.insert((name.clone(), beside.clone()), (-log_time).exp());
            }
        }
        predicted
    }

    /// The logarithm of a program's time alone, which no run shows.
    fn log_alone(&self, program: usize, known: &[Interference]) -> f64 {
        let mut logs = Vec::new();
        for run in self.runs.iter().filter(|run| run.program == program) {
            let slowdown = known[program].slowdown_beside(&known[run.beside[0].0]);
            logs.push(run.time_s.ln() - slowdown);
        }
        mean(&logs)
    }
}
