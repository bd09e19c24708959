//! Prints the tables of results/auto-measured.md, which choose the rows of `auto`.
//! `cargo run --release -p cosched-sim --features examples --example auto`
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::{
    AUTO, Absence, AutoRow, Capabilities, Capability, Counter, JobKind, NullRecorder, Params,
    auto_row, find_policy,
};
use shared::lab::{JobScene, starving, walkers};
use shared::{geometric_mean, print_head, server};
use std::collections::BTreeMap;

/// A policy with its parameters.
type Candidate = (&'static str, &'static [(&'static str, &'static str)]);

const HALF: &[(&str, &str)] = &[("quantum_s", "0.5")];
const CANDIDATES: [Candidate; 7] = [
    ("fifo", &[]),
    ("linux", &[]),
    ("bandwidth", &[]),
    ("perf-fair", &[]),
    ("perf-fair", HALF),
    ("even", &[]),
    ("even", HALF),
];

/// The events; instructions stand for cycles too.
const EVENTS: [Counter; 4] = [
    Counter::Instructions,
    Counter::MmReads,
    Counter::LlcAccesses,
    Counter::L1Accesses,
];

/// Turnaround divided by that of `fifo`, and unfairness: geometric means over scenes.
type Figures = [f64; 2];

/// Scenes with a title.
type World = (&'static str, Vec<JobScene>);

struct Lab {
    worlds: Vec<World>,
    /// Figures in each world, by candidate and the withheld events that it would use.
    known: BTreeMap<(Candidate, Vec<Counter>), Vec<Figures>>,
}

fn main() {
    let mut lab = Lab::new(worlds());
    println!("## The rows of `auto` in each world\n");
    lab.print_rows();
    println!("\n## The rows of `auto` on 128 cores, which did not decide\n");
    Lab::new(servers()).print_rows();
    let all_best = lab.print_choice();
    lab.print_candidates();
    assert!(all_best, "a row of auto is not the best of its candidates");
}

impl Lab {
    fn new(worlds: Vec<World>) -> Lab {
        Lab {
            worlds,
            known: BTreeMap::new(),
        }
    }

    /// Prints what each row of `auto` gains in each world where only the events that it needs are counted.
    fn print_rows(&mut self) {
        let titles: Vec<&str> = self.worlds.iter().map(|world| world.0).collect();
        print_head(&format!("counted | policy | mean | {}", titles.join(" | ")));
        let rows = AUTO
            .iter()
            .filter(|row| !matches!(row.only, Some(JobKind::Alike | JobKind::Arriving)));
        for row in rows {
            let needed = |event: &Counter| row.needs.contains(&Capability::of(*event));
            let withheld: Vec<Counter> = EVENTS.into_iter().filter(|e| !needed(e)).collect();
            let candidate = candidate(row);
            let cells: Vec<String> = self.of(candidate, &withheld).iter().map(cell).collect();
            let mean = cell(&self.mean(candidate, &withheld));
            let (counted, name) = (counted(&withheld), name(candidate));
            println!("| {counted} | {name} | {mean} | {} |", cells.join(" | "));
        }
    }

    /// Prints the choice of `auto` for each set of events beside the best candidate. Returns whether all are the best.
    fn print_choice(&mut self) -> bool {
        println!("\n## The choice for each set of events\n");
        print_head("counted | `auto` | means | best candidate | means | old `auto` | means");
        let mut all_best = true;
        for withheld in subsets() {
            let own = candidate(auto_row(&lacking(&withheld), JobKind::Any));
            let best = self.best(&withheld);
            let old = match withheld[..] {
                [] => ("even", [].as_slice()),
                _ => CANDIDATES[0],
            };
            let cells = [own, best, old].map(|one| {
                let figures = self.mean(one, &withheld);
                format!("{} | {}", name(one), cell(&figures))
            });
            println!("| {} | {} |", counted(&withheld), cells.join(" | "));
            all_best &= self.is_as_good(own, best, &withheld);
        }
        all_best
    }

    /// Prints the means of all candidates.
    fn print_candidates(&mut self) {
        println!("\n## All candidates: means over the worlds\n");
        print_head(&format!("counted | {}", CANDIDATES.map(name).join(" | ")));
        for withheld in subsets() {
            let cells = CANDIDATES.map(|candidate| cell(&self.mean(candidate, &withheld)));
            println!("| {} | {} |", counted(&withheld), cells.join(" | "));
        }
    }

    /// The candidate with the least turnaround; of those within 1 %, with the least unfairness.
    fn best(&mut self, withheld: &[Counter]) -> Candidate {
        let mut all = Vec::new();
        for candidate in CANDIDATES {
            if self.gains_by_counts(candidate, withheld) {
                all.push((self.mean(candidate, withheld), candidate));
            }
        }
        let least = all.iter().map(|one| one.0[0]).fold(f64::INFINITY, f64::min);
        all.sort_by(|a, b| a.0[1].total_cmp(&b.0[1]));
        let near = all.into_iter().find(|one| one.0[0] <= 1.01 * least);
        near.expect("the fastest is within 1 % of itself").1
    }

    /// Whether the counts gain 2.5 %. What it gains without them comes from turns, and with real programs that
    /// gain is not sure.
    fn gains_by_counts(&mut self, candidate: Candidate, withheld: &[Counter]) -> bool {
        let blind = self.mean(candidate, &EVENTS)[0];
        candidate == CANDIDATES[0] || self.mean(candidate, withheld)[0] <= 0.975 * blind
    }

    /// Whether the difference is not more than noise: 1 % of the turnaround and 0.05 of unfairness.
    fn is_as_good(&mut self, own: Candidate, best: Candidate, withheld: &[Counter]) -> bool {
        let [own, best] = [own, best].map(|one| self.mean(one, withheld));
        own[0] <= 1.01 * best[0] && own[1] <= 0.05 + best[1]
    }

    fn mean(&mut self, candidate: Candidate, withheld: &[Counter]) -> Figures {
        mean(&self.of(candidate, withheld))
    }

    /// The figures in each world.
    fn of(&mut self, candidate: Candidate, withheld: &[Counter]) -> Vec<Figures> {
        let fifo = self.measured(CANDIDATES[0], &[]);
        let own = self.measured(candidate, &used(candidate, withheld));
        let relative = |(own, fifo): (&Figures, &Figures)| [own[0] / fifo[0], own[1]];
        own.iter().zip(&fifo).map(relative).collect()
    }

    fn measured(&mut self, candidate: Candidate, withheld: &[Counter]) -> Vec<Figures> {
        let key = (candidate, withheld.to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let of_world = |(_, scenes): &World| measure(scenes, candidate, withheld);
        let all: Vec<Figures> = self.worlds.iter().map(of_world).collect();
        self.known.insert(key, all.clone());
        all
    }
}

/// Turnaround and unfairness: geometric means over the scenes.
fn measure(scenes: &[JobScene], (policy, params): Candidate, withheld: &[Counter]) -> Figures {
    let of_scene = |scene: &JobScene| {
        let scene = scene.clone().change(|machine| {
            for &counter in withheld {
                machine.counters.counts[counter] = false;
            }
        });
        let run = scene.run_with(policy, params, 1, &mut NullRecorder);
        ["turnaround_s", "unfairness"].map(|metric| run.get(metric))
    };
    let all: Vec<Figures> = scenes.iter().map(of_scene).collect();
    mean(&all)
}

/// Geometric means.
fn mean(all: &[Figures]) -> Figures {
    [0, 1].map(|which| geometric_mean(&all.iter().map(|one| one[which]).collect::<Vec<_>>()))
}

/// Turnaround against `fifo` in percent, and unfairness.
fn cell([turnaround, unfairness]: &Figures) -> String {
    format!("{:+.1}, {unfairness:.2}", 100.0 * (turnaround - 1.0))
}

fn candidate(row: &AutoRow) -> Candidate {
    (row.policy.name, &[])
}

fn name((policy, params): Candidate) -> String {
    let params = params.iter();
    let params: String = params
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    format!("`{policy}{params}`")
}

/// Every set of events that a machine may not count.
fn subsets() -> Vec<Vec<Counter>> {
    let of_bits = |bits: usize| {
        let events = EVENTS.into_iter().enumerate();
        let within = events.filter(|(at, _)| bits >> at & 1 == 1);
        within.map(|(_, event)| event).collect()
    };
    (0..1 << EVENTS.len()).map(of_bits).collect()
}

fn counted(withheld: &[Counter]) -> String {
    let counted = EVENTS.iter().filter(|event| !withheld.contains(event));
    let names: Vec<&str> = counted.map(|&event| Capability::of(event).text()).collect();
    match names[..] {
        [] => "nothing".to_owned(),
        _ => names.join(", "),
    }
}

fn lacking(withheld: &[Counter]) -> Capabilities {
    let missing = withheld.iter();
    Capabilities {
        missing: missing
            .map(|&event| (Capability::of(event), Absence::NoSuchEvent))
            .collect(),
    }
}

/// The withheld events that the policy would use.
fn used((policy, _): Candidate, withheld: &[Counter]) -> Vec<Counter> {
    let entry = find_policy(policy).expect("in the table");
    let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
    let needs = (entry.needs)(&params);
    let is_used = |event: &Counter| {
        let wanted = Capability::of(*event);
        needs.iter().any(|need| need.capability == wanted)
    };
    withheld.iter().copied().filter(is_used).collect()
}

fn worlds() -> Vec<World> {
    let two_channels = |solo_ms| mixes("xeon-e5645-2ch", solo_ms);
    let noisy = |scene: JobScene| scene.change(|machine| machine.counters.noise = 0.2);
    let uneven = two_channels(20_000).into_iter().map(JobScene::uneven);
    let channels = ["xeon-e5645", "xeon-e5645-2ch", "xeon-e5645-1ch"];
    vec![
        (
            "mixed",
            channels.map(|machine| mixes(machine, 100_000)).concat(),
        ),
        ("short", two_channels(12_000)),
        ("uneven", uneven.collect()),
        (
            "noise",
            two_channels(100_000).into_iter().map(noisy).collect(),
        ),
        (
            "other machine",
            two_channels(100_000).into_iter().map(perturbed).collect(),
        ),
        ("four cores", (1..=8).map(efs).collect()),
        ("walkers", vec![walkers()]),
        ("starving", vec![starving()]),
        ("alike", ["lbm", "povray"].map(alike).to_vec()),
    ]
}

/// Half the cache, twice as slow, and threads of a core that disturb each other half as much.
fn perturbed(scene: JobScene) -> JobScene {
    scene.change(|machine| {
        machine.llc.mb /= 2.0;
        machine.llc.hit_ns *= 2.0;
        machine.smt.issue_share /= 2.0;
    })
}

/// Three mixes of Perf&Fair: 24 programs each.
fn mixes(machine: &'static str, solo_ms: u64) -> Vec<JobScene> {
    let mix = |number| JobScene::on(machine).mix(&format!("perf-fair/mix{number:02}"), solo_ms);
    [1, 7, 13].map(mix).to_vec()
}

fn efs(number: usize) -> JobScene {
    JobScene::on("i5-2500").mix(&format!("efs/high-{number}"), 100_000)
}

fn alike(program: &'static str) -> JobScene {
    JobScene::on("xeon-e5645-2ch").copies(24, program, 30_000)
}

fn servers() -> Vec<World> {
    [("192 jobs", 8), ("312 jobs", 13), ("528 jobs", 22)]
        .map(|(title, mixes)| (title, vec![server("server-2x64", mixes)]))
        .to_vec()
}
