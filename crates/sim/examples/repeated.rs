//! Prints the turnaround of batches that are repeated under fifo, each with what the history knows from the ones before:
//! min, median and max of the last three of eighteen, with three seeds. Three orders: longest first, as in the list while
//! there is room, and what fits best beside the running ones while there is room.
//! `cargo run --release -p cosched-sim --features examples --example repeated`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::*;
use cosched_sim::*;
use shared::lab::{JobScene, mix_programs, policy_on};
use shared::{least_median_greatest, print_head, range, shuffle};
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
    let names = mix_programs(&format!("perf-fair/mix{number:02}"));
    let once: Programs = names.into_iter().map(|name| (name, 12_000)).collect();
    vec![once; copies].concat()
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
        shuffle(&mut programs, &mut Rng::new(seed));
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
    machine: &'static str,
    programs: &Programs,
    history: &mut History,
    next: Next,
    seed: u64,
) -> f64 {
    let known = fitted(history);
    let mut specs = Vec::new();
    for (id, (name, ms)) in programs.iter().enumerate() {
        let mut spec = TaskSpec::new(id as u32, &format!("{name}-{id}"));
        let past = history.get(&(name.clone(), *ms));
        spec.expected = past.and_then(|past| expected(past));
        spec.program = Some(name.as_str().into());
        spec.interference = known.get(name).copied().filter(|_| next == Next::Fitting);
        specs.push(spec);
    }
    let sim = JobScene::on(machine).programs(programs).config(seed);
    let (mut policy, config) = policy_on(&sim.machine, "fifo", &[]);
    let mut sim = Sim::new(sim).expect("it fits");
    let config = RunConfig {
        seed,
        jobs: if next == Next::Longest {
            usize::MAX
        } else {
            sim.machine().cpus.len()
        },
        ..config
    };
    let result = run(&mut sim, &mut *policy, &mut NullRecorder, specs, &config);
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
    print_head(
        "jobs | machine | longest first [s] | as in the list [s] | what fits best [s] | ratios of medians",
    );
    for (name, machine, programs) in worlds {
        let orders = [Next::Longest, Next::Listed, Next::Fitting];
        let times = orders.map(|next| last_times(machine, &programs, next));
        let medians = times.clone().map(|times| least_median_greatest(times)[1]);
        let ratios = [1, 2].map(|at| format!("{:.2}", medians[at] / medians[at - 1]));
        let ranges = times.map(|times| range(times, 1, " / "));
        println!(
            "| {name} | `{machine}` | {} | {} |",
            ranges.join(" | "),
            ratios.join(", ")
        );
    }
}

/// The times of the last three batches, with all seeds.
fn last_times(machine: &'static str, programs: &Programs, next: Next) -> Vec<f64> {
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
    last
}
