//! Prints the turnaround of batches that are repeated under fifo, each with what the history knows from the ones before:
//! min, median and max of the last three of eighteen, with three seeds. Three orders: longest first, as in the list while
//! there is room, and what fits best beside the running ones while there is room.
//! `cargo run --release -p cosched-sim --features examples --example repeated`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use cosched_sim::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs of a command by which its time is expected, as in the history.
const RUNS: usize = 5;
const BATCHES: u64 = 18;
const SEEDS: u64 = 3;

/// Names of programs with the time that each takes alone, in milliseconds.
type Programs = Vec<(String, u64)>;

/// A run of a program: its time, and its neighbours with their shares of it, if they are known.
type Past = (f64, Option<Vec<(String, f64)>>);

/// The runs of each command, the last one last. A command is a program with its time alone.
type History = BTreeMap<(String, u64), Vec<Past>>;

/// Which task comes next.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Longest,
    Listed,
    Fitting,
}

fn mix(number: usize, copies: usize) -> Programs {
    let path = format!(
        "{}/../../mixes/perf-fair/mix{number:02}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).expect("it is there");
    let table: toml::Table = text.parse().expect("it is TOML");
    let mut programs = Vec::new();
    for job in table["job"].as_array().expect("jobs") {
        let count = job
            .get("copies")
            .map_or(1, |count| count.as_integer().expect("a number"));
        let name = job["program"].as_str().expect("a name");
        programs.extend((0..count).map(|_| (name.to_owned(), 12_000)));
    }
    std::iter::repeat_n(programs, copies).flatten().collect()
}

fn uneven(mut programs: Programs) -> Programs {
    programs
        .iter_mut()
        .step_by(2)
        .for_each(|program| program.1 *= 5);
    programs
}

fn quickstart(seed: Option<u64>) -> Programs {
    let kinds = [
        ("chase", 6),
        ("stream", 6),
        ("compute", 6),
        ("bus", 3),
        ("phases", 3),
    ];
    let mut programs = Programs::new();
    for (name, count) in kinds {
        programs.extend((0..count).map(|_| (format!("workload-{name}"), 2_000)));
    }
    if let Some(seed) = seed {
        let mut lots = Rng::new(seed);
        for place in (1..programs.len()).rev() {
            programs.swap(place, lots.below(place as u64 + 1) as usize);
        }
    }
    programs
}

fn expected(past: &[Past]) -> Option<Expected> {
    let times = past.iter().rev().take(RUNS).map(|(time, _)| *time);
    let mut last: Vec<f64> = times.collect();
    last.sort_by(f64::total_cmp);
    let median = last.get(last.len() / 2)?;
    Some(Expected::of(Nanos::from_s(*median), ExpectedFrom::Same))
}

/// What the last runs of each command tell of the programs.
fn fitted(history: &History) -> BTreeMap<String, Interference> {
    let mut programs: Vec<&String> = history.keys().map(|(name, _)| name).collect();
    programs.dedup();
    let of = |name: &String| programs.binary_search(&name).expect("it ran");
    let mut runs = Vec::new();
    for (command, ((name, _), past)) in history.iter().enumerate() {
        for (time, beside) in past.iter().rev().take(RUNS) {
            let Some(beside) = beside else {
                continue;
            };
            runs.push(NeighbouredRun {
                command,
                program: of(name),
                time_s: *time,
                beside: beside
                    .iter()
                    .map(|(other, share)| (of(other), *share))
                    .collect(),
            });
        }
    }
    if runs.is_empty() {
        return BTreeMap::new();
    }
    let fitted = interferences(programs.len(), &runs);
    programs.into_iter().cloned().zip(fitted).collect()
}

/// Runs a batch, notes the times of its tasks, and returns its turnaround in seconds.
fn batch(
    machine: &Arc<MachineSpec>,
    programs: &Programs,
    history: &mut History,
    next: Next,
    seed: u64,
) -> f64 {
    let known = fitted(history);
    let mut jobs = Vec::new();
    let mut specs = Vec::new();
    for (id, (name, ms)) in programs.iter().enumerate() {
        let program = Arc::new(builtin_program(name).expect("it is built in"));
        let work = JobWork::SoloTime(Nanos::from_ms(*ms));
        jobs.push(SimJob {
            program,
            work,
            cpus: 1,
            nice: 0,
        });
        let mut spec = TaskSpec::new(id as u32, &format!("{name}-{id}"));
        let past = history.get(&(name.clone(), *ms));
        spec.expected = past.and_then(|past| expected(past));
        spec.program = Some(name.as_str().into());
        spec.interference = known.get(name).copied().filter(|_| next == Next::Fitting);
        specs.push(spec);
    }
    let mut sim = Sim::new(SimConfig::new(machine.clone(), jobs, seed)).expect("it fits");
    let entry = find_policy("fifo").expect("it is there");
    let params = Params::resolve(entry.name, entry.params, &machine.settings_for(entry));
    let params = params.expect("they are right");
    let config = RunConfig {
        quantum: Nanos::from_s(params.number("quantum_s")),
        seed,
        jobs: if next == Next::Longest {
            usize::MAX
        } else {
            sim.machine().cpus.len()
        },
        ..RunConfig::default()
    };
    let result = run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut NullRecorder,
        specs,
        &config,
    );
    let result = result.expect("it runs");
    for (task, (name, ms)) in result.tasks.iter().zip(programs) {
        let share =
            |(other, time): (&Arc<str>, &Nanos)| (other.to_string(), time.share_of(task.ran));
        let beside = task.beside.as_ref();
        let shares = beside.map(|beside| beside.iter().map(share).collect());
        let past = (task.ran.as_s(), shares);
        history.entry((name.clone(), *ms)).or_default().push(past);
    }
    result.turnaround.as_s()
}

fn range(values: &[f64]) -> String {
    format!(
        "{:.1} / {:.1} / {:.1}",
        values[0],
        values[values.len() / 2],
        values[values.len() - 1]
    )
}

fn main() {
    let mut worlds = Vec::new();
    for (machine, copies) in [("xeon-e5645-2ch", 4), ("i5-2500", 2), ("epyc-2cpu", 2)] {
        for number in [1, 7, 9, 11, 12, 13] {
            let name = format!("mix {number}, {copies} times");
            worlds.push((name, machine, mix(number, copies)));
        }
    }
    worlds.push(("mix 9, 4 times".to_owned(), "xeon-e5645-1ch", mix(9, 4)));
    worlds.push((
        "mix 9, 4 times, uneven".to_owned(),
        "xeon-e5645-2ch",
        uneven(mix(9, 4)),
    ));
    worlds.push(("mix 9".to_owned(), "xeon-e5645-2ch", mix(9, 1)));
    worlds.push(("mix 9".to_owned(), "xeon-e5645-1ch", mix(9, 1)));
    worlds.push(("mix 12".to_owned(), "xeon-e5645-2ch", mix(12, 1)));
    worlds.push((
        "24 `lbm`".to_owned(),
        "xeon-e5645-2ch",
        vec![("lbm".to_owned(), 12_000); 24],
    ));
    worlds.push(("quickstart".to_owned(), "epyc-2cpu", quickstart(None)));
    for seed in 0..4 {
        worlds.push((
            format!("quickstart, order {seed}"),
            "epyc-2cpu",
            quickstart(Some(seed)),
        ));
    }
    println!(
        "| jobs | machine | longest first [s] | as in the list [s] | what fits best [s] | ratios of medians |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, machine, programs) in worlds {
        let machine = Arc::new(builtin_machine(machine).expect("it is built in"));
        let orders = [Next::Longest, Next::Listed, Next::Fitting];
        let times = orders.map(|next| last_times(&machine, &programs, next));
        let median = |at: usize| times[at][times[at].len() / 2];
        let ratios = [1, 2].map(|at| format!("{:.2}", median(at) / median(at - 1)));
        let ranges = times.each_ref().map(|times| range(times));
        println!(
            "| {name} | `{}` | {} | {} |",
            machine.name,
            ranges.join(" | "),
            ratios.join(", ")
        );
    }
}

/// The times of the last three batches, with all seeds, in ascending order.
fn last_times(machine: &Arc<MachineSpec>, programs: &Programs, next: Next) -> Vec<f64> {
    let mut last = Vec::new();
    for seed in 0..SEEDS {
        let mut history = History::new();
        for number in 0..BATCHES {
            let time = batch(machine, programs, &mut history, next, 100 * seed + number);
            if number >= BATCHES - 3 {
                last.push(time);
            }
        }
    }
    last.sort_by(f64::total_cmp);
    last
}
