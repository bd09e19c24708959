//! Pairs of programs on the two hardware threads of a core: how much each slows the other (shosborn/SMART-ECRTS19, 2019).
//!
//! `even` sees each program alone, then half of the pairs, and predicts the others. The data have times only, so nothing is
//! known of caches and memory.

use crate::backend::{CpuTime, Replay, Tape};
use crate::measurements::MeasuredTable;
use crate::recording::{RecordedCounts, Recording};
use cosched_core::model::contention::{Contention, PlacedJob, SpeedPrediction};
use cosched_core::{
    Change, CpuId, Decision, Learnt, Machine, Nanos, Placement, Policy, Purpose, Recorder, Rng,
    RunConfig, Snapshot, TaskId, TaskSpec, run,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Programs, by number. The first one is measured.
type Pair = (usize, usize);

/// Drawings of the half to learn from.
const SEEDS: u64 = 20;

/// How often each pair of this half runs, for a quantum each time.
const ROUNDS: usize = 10;
const QUANTUM: Nanos = Nanos::from_ms(200);

/// An assumed clock. Only ratios of cycles matter.
const GHZ: f64 = 2.0;

/// A program lasts longer than all its quanta, so none ends while pairs are learnt.
const ALONE_S: f64 = 100.0;

/// The measurements.
struct Data {
    programs: Vec<String>,
    /// Time beside the other program relative to alone.
    slowdowns: BTreeMap<Pair, f64>,
}

/// The report on the measurements in a folder.
pub(crate) fn report(folder: &Path) -> Result<String, String> {
    let data = read(&folder.join("smt_pairs_taclebench.csv"))?;
    let [mut unslowed, mut own_mean, mut learnt] = [(); 3].map(|()| Vec::new());
    for seed in 0..SEEDS {
        let shown = draw(&data, seed);
        let predicted = predict(&data, &shown)?;
        for (pair, slowdown) in &data.slowdowns {
            if is_in(pair, &shown) {
                continue;
            }
            unslowed.push(error(1.0, *slowdown));
            own_mean.push(error(own_mean_of(pair.0, &data, &shown), *slowdown));
            learnt.push(error(predicted[pair], *slowdown));
        }
    }
    let count = data.slowdowns.len();
    Ok(format!(
        "## Siblings of a core\n\n\
         Error of the slowdown of hidden pairs, in percent: median / mean / 90th percentile / greatest. Half of the {count} pairs are \
         shown, drawn {SEEDS} times.\n\n\
         | prediction | error |\n| --- | --- |\n\
         | no slowdown | {} |\n\
         | the program's own mean in the shown half | {} |\n\
         | `even`, learnt from the shown half | {} |\n",
        cell(unslowed),
        cell(own_mean),
        cell(learnt)
    ))
}

fn error(predicted: f64, slowdown: f64) -> f64 {
    100.0 * (predicted / slowdown - 1.0).abs()
}

fn cell(mut errors: Vec<f64>) -> String {
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let [median, high, greatest] =
        [0.5, 0.9, 1.0].map(|share| errors[(share * (errors.len() - 1) as f64) as usize]);
    format!("{median:.1} / {mean:.1} / {high:.1} / {greatest:.1}")
}

fn read(file: &Path) -> Result<Data, String> {
    let table = MeasuredTable::read(file)?;
    let mut names = BTreeSet::new();
    for row in &table.rows {
        names.insert(row.text("program")?.to_owned());
    }
    let programs: Vec<String> = names.into_iter().collect();
    let number = |name: &str| {
        let number = programs.iter().position(|known| known == name);
        number.ok_or(format!("{}: {name} is no program", file.display()))
    };
    let mut slowdowns = BTreeMap::new();
    for row in &table.rows {
        let pair = (
            number(row.text("program")?)?,
            number(row.text("corunner")?)?,
        );
        slowdowns.insert(pair, row.number("slowdown_of_mean")?);
    }
    Ok(Data {
        programs,
        slowdowns,
    })
}

/// Half of the pairs, each once. A program beside itself is never shown.
fn draw(data: &Data, seed: u64) -> Vec<Pair> {
    let different = data.slowdowns.keys().filter(|pair| pair.0 < pair.1);
    let mut pairs: Vec<Pair> = different.copied().collect();
    let mut lots = Rng::new(seed);
    for at in (1..pairs.len()).rev() {
        pairs.swap(at, lots.below(at as u64 + 1) as usize);
    }
    pairs.truncate(pairs.len() / 2);
    pairs
}

fn is_in(pair: &Pair, pairs: &[Pair]) -> bool {
    pairs.contains(pair) || pairs.contains(&(pair.1, pair.0))
}

/// The mean slowdown of a program beside those that it was shown with.
fn own_mean_of(program: usize, data: &Data, shown: &[Pair]) -> f64 {
    let mut slowdowns = Vec::new();
    for (pair, slowdown) in &data.slowdowns {
        if pair.0 == program && is_in(pair, shown) {
            slowdowns.push(*slowdown);
        }
    }
    slowdowns.iter().sum::<f64>() / slowdowns.len() as f64
}

/// The slowdowns of all pairs, by what `even` learnt in a run of those shown.
fn predict(data: &Data, shown: &[Pair]) -> Result<BTreeMap<Pair, f64>, String> {
    let learnt = learn(data, shown)?;
    let mut predicted = BTreeMap::new();
    for pair in data.slowdowns.keys() {
        let mut prediction = SpeedPrediction::default();
        let seats = [pair.0, pair.1].map(|program| seat(&learnt[program]));
        prediction.make(&Contention::default(), &seats);
        predicted.insert(*pair, prediction.jobs[0].cpi / learnt[pair.0].solo_cpi);
    }
    Ok(predicted)
}

/// A job on the only core.
fn seat(learnt: &Learnt) -> PlacedJob {
    PlacedJob {
        asks: learnt.asks,
        core: 0,
        llc: 0,
        domain: 0,
        away: false,
    }
}

/// What the learner of `even` makes of a run, by program.
fn learn(data: &Data, shown: &[Pair]) -> Result<Vec<Learnt>, String> {
    let mut tapes = Vec::new();
    let mut specs = Vec::new();
    for (number, name) in data.programs.iter().enumerate() {
        tapes.push(tape(number, data));
        specs.push(TaskSpec::new(number as u32, name));
    }
    let mut policy = ShownPairs {
        programs: data.programs.len(),
        pairs: shown.to_vec(),
        quanta: 0,
        learnt: BTreeMap::new(),
    };
    let machine = Machine::uniform("a core of two hardware threads", 1, 2);
    let mut backend = Replay::new(machine, tapes, CpuTime::OfCycles { ghz: GHZ });
    let config = RunConfig {
        quantum: QUANTUM,
        ..RunConfig::default()
    };
    run(&mut backend, &mut policy, &mut Unrecorded, specs, &config)
        .map_err(|why| why.to_string())?;
    let mut all = Vec::new();
    for (number, name) in data.programs.iter().enumerate() {
        let learnt = policy.learnt.remove(&TaskId(number as u32));
        all.push(learnt.ok_or(format!("nothing was learnt of {name}"))?);
    }
    Ok(all)
}

/// A program at one instruction per cycle alone, and as much slower beside each other as was measured.
fn tape(program: usize, data: &Data) -> Tape {
    let of_program = data.slowdowns.iter().filter(|(pair, _)| pair.0 == program);
    Tape {
        alone: slowed(1.0),
        beside: of_program
            .map(|(pair, slowdown)| (pair.1, slowed(*slowdown)))
            .collect(),
    }
}

fn slowed(slowdown: f64) -> Recording {
    let mut recording = Recording::new();
    let counted = RecordedCounts {
        instructions: ALONE_S * GHZ * 1e9,
        cycles: slowdown * ALONE_S * GHZ * 1e9,
        ..RecordedCounts::default()
    };
    recording.add(slowdown * ALONE_S, counted);
    recording
}

/// A policy that measures each program alone, then runs some pairs in turn, and at last the programs one after the other.
struct ShownPairs {
    programs: usize,
    pairs: Vec<Pair>,
    quanta: usize,
    /// What was learnt until the last pair ran.
    learnt: BTreeMap<TaskId, Learnt>,
}

impl ShownPairs {
    /// The programs of this quantum, and its purpose; none once all pairs had their rounds.
    fn turn(&self) -> Option<(Vec<usize>, Purpose)> {
        if self.quanta < self.programs {
            return Some((vec![self.quanta], Purpose::MeasureAlone));
        }
        let turn = self.quanta - self.programs;
        let pair = self.pairs[turn % self.pairs.len()];
        (turn < ROUNDS * self.pairs.len()).then(|| (vec![pair.0, pair.1], Purpose::Run))
    }

    fn keep(&mut self, snapshot: &Snapshot) {
        for task in &snapshot.tasks {
            if let Some(learnt) = task.estimates.learnt.as_ref().value() {
                self.learnt.insert(task.id, learnt.clone());
            }
        }
    }
}

impl Policy for ShownPairs {
    fn decide(&mut self, snapshot: &Snapshot, _lots: &mut Rng) -> Decision {
        if self.quanta == self.programs + ROUNDS * self.pairs.len() {
            self.keep(snapshot);
        }
        let (programs, purpose) = match self.turn() {
            Some(turn) => turn,
            None => (first_of(snapshot), Purpose::Run),
        };
        self.quanta += 1;
        let mut decision = Decision {
            next_wake: Some(snapshot.now + QUANTUM),
            ..Decision::default()
        };
        for task in &snapshot.tasks {
            if task.running.is_some() {
                decision.changes.push(Change::Stop { task: task.id });
            }
        }
        for (cpu, program) in programs.into_iter().enumerate() {
            decision.changes.push(Change::Place {
                task: TaskId(program as u32),
                placement: Placement::Exclusive {
                    cpus: [CpuId(cpu as u32)].into_iter().collect(),
                    whole_core: purpose == Purpose::MeasureAlone,
                },
                lease_end: None,
                purpose,
            });
        }
        decision
    }

    fn save(&self) -> serde_json::Value {
        self.quanta.into()
    }

    fn load(&mut self, quanta: &serde_json::Value) -> Result<(), serde_json::Error> {
        self.quanta = serde_json::from_value(quanta.clone())?;
        Ok(())
    }
}

fn first_of(snapshot: &Snapshot) -> Vec<usize> {
    let first = snapshot.tasks.first();
    first.map(|task| task.id.0 as usize).into_iter().collect()
}

/// Nothing of the run is kept but what the policy took.
struct Unrecorded;

impl Recorder for Unrecorded {}
