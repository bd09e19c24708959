//! All policies that place jobs, in closed loop: each decides by what it counts, and the law says what comes of it.

use crate::candidates::{CANDIDATES, Candidate, LAWS, Law, LawMix, MIXES};
use crate::guest::Guest;
use crate::outcome::{Outcome, Place};
use crate::page;
use crate::run::{EndedRun, LawJob, User, cosched, folder, start, write_mix};
use crate::traffic::Traffic;
use std::process::Stdio;
use tempfile::TempDir;

const REPEATS: usize = 3;

#[test]
#[ignore = "takes long: guest/counted.sh -p"]
fn compare() {
    let Some(guest) = Guest::enter() else { return };
    let mut outcomes = Vec::new();
    let mut traffic = Vec::new();
    for (law, of_law) in LAWS.iter().enumerate() {
        guest.set("law", of_law.name);
        for (mix, of_mix) in MIXES.iter().enumerate() {
            let alone = run_alone(&guest, of_mix);
            for repeat in 0..REPEATS {
                for candidate in order(repeat) {
                    let jobs = of_mix.jobs(repeat);
                    let ended = run(&guest, of_law, &jobs, &CANDIDATES[candidate], &alone, &[]);
                    let place = Place {
                        law,
                        mix,
                        repeat,
                        candidate,
                    };
                    outcomes.push(Outcome::of(&ended, place));
                    println!("{}", outcomes.last().expect("one").line());
                }
            }
            traffic.push((law, traffic_under_efs(&guest, of_law, of_mix, &alone)));
        }
    }
    // `counted.sh` takes the page from here.
    println!("PAGE BEGIN\n{}PAGE END", page::of(&outcomes, &traffic));
}

/// The candidates in the order of a repeat: each repeat begins with another one.
fn order(repeat: usize) -> impl Iterator<Item = usize> {
    let first = repeat * CANDIDATES.len() / REPEATS;
    (0..CANDIDATES.len()).map(move |turn| (first + turn) % CANDIDATES.len())
}

fn run(
    guest: &Guest,
    law: &Law,
    jobs: &[LawJob],
    candidate: &Candidate,
    alone: &TempDir,
    more: &[&str],
) -> EndedRun {
    guest.clear();
    let solo = alone.path().join("alone/solo-profiles.json");
    let options = candidate.options(law, &solo.to_string_lossy());
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    // All jobs compete from the start. Else a queue decides more on slowdowns than the policy does, and begins with the
    // longest jobs where there are solo runs.
    options.extend(["--jobs", "0", "--order", "given"]);
    options.extend(more);
    start(User::Root, jobs, &options).end()
}

/// Runs each job alone, for the policies that must know that. Their profiles are in the folder.
fn run_alone(guest: &Guest, mix: &LawMix) -> TempDir {
    guest.clear();
    let folder = folder();
    write_mix(&mix.jobs(0), &folder);
    let mut command = cosched(User::Root, &folder);
    command.args(["run", "-q", "mix.toml", "--solo", "only", "--logs", "alone"]);
    let status = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{status}");
    folder
}

/// What `efs` reads of the memory controllers. It is in the events alone, which take time to write: a run of its own.
fn traffic_under_efs(guest: &Guest, law: &Law, mix: &LawMix, alone: &TempDir) -> Traffic {
    let efs = CANDIDATES
        .iter()
        .find(|candidate| candidate.name() == "efs");
    let efs = efs.expect("it is compared");
    let events = ["--events", "run.events"];
    let ended = run(guest, law, &mix.jobs(0), efs, alone, &events);
    Traffic::of(&ended)
}
