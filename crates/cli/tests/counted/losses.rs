//! Counters that are few, taken by others, refused, or dead. Each loss is reported once, and nothing wrong is printed.

use crate::figures::{ALL, Faults, May, NOTHING, check, check_doctor, jobs, warnings_about};
use crate::guest::{Guest, pass};
use crate::run::{LawJob, RunningRun, User, job, six_jobs, start, ten_jobs};
use cosched_core::{Counter, CpuId, CpuSet};
use serde_json::Value;
use std::collections::BTreeMap;

fn even(jobs: &[LawJob]) -> RunningRun {
    start(User::Root, jobs, &["--policy", "even"])
}

/// A run of six jobs from its start to its end with the same fault.
fn check_throughout(may: &May) {
    let mut faults = Faults::default();
    check_doctor(User::Root, may, &mut faults);
    check(&even(&six_jobs()).end(), may, &mut faults);
    faults.none();
}

fn check_counters(counters: &str, may: &May) {
    let Some(guest) = Guest::enter() else { return };
    guest.set("counters", counters);
    check_throughout(may);
}

#[test]
fn eight_counters() {
    check_counters("8", &ALL);
}

#[test]
fn five_counters() {
    check_counters("5", &ALL);
}

#[test]
fn four_counters() {
    check_counters("4", &ALL);
}

#[test]
fn three_counters() {
    check_counters("3", &ALL);
}

/// With an event for it, writes are counted as everything else.
#[test]
fn a_sixth_event() {
    let Some(_guest) = Guest::enter() else { return };
    let options = ["--policy", "even", "--event", "mm-writes=0x01bb"];
    let may = May { lack: &[], ..ALL };
    let mut faults = Faults::default();
    check(
        &start(User::Root, &six_jobs(), &options).end(),
        &may,
        &mut faults,
    );
    faults.none();
}

/// `auto` chooses by what can really be counted.
#[test]
fn three_counters_under_auto() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("counters", "3");
    let ended = start(User::Root, &six_jobs(), &[]).end();
    let mut faults = Faults::default();
    check(&ended, &ALL, &mut faults);
    if ended.record["policy"] != "even" {
        faults.add(format!("auto chose {}", ended.record["policy"]));
    }
    faults.none();
}

#[test]
fn a_counter_stolen_in_the_middle() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("counters", "5");
    let run = even(&six_jobs());
    pass(1.5);
    guest.set("counters", "4");
    let mut faults = Faults::default();
    check(&run.end(), &ALL, &mut faults);
    check_doctor(User::Root, &ALL, &mut faults);
    faults.none();
}

/// Another session holds events on each CPU from the middle of the run on.
fn check_hog(kind: &str, events: u32) {
    let Some(guest) = Guest::enter() else { return };
    guest.set("counters", "5");
    let run = even(&six_jobs());
    pass(1.5);
    let _hog = guest.hog(kind, events);
    let mut faults = Faults::default();
    check(&run.end(), &ALL, &mut faults);
    check_doctor(User::Root, &ALL, &mut faults);
    faults.none();
}

#[test]
fn a_counter_pinned_in_the_middle() {
    check_hog("pinned", 1);
}

#[test]
fn two_counters_hogged_in_the_middle() {
    check_hog("flexible", 2);
}

/// A real PMU refuses groups that do not fit.
#[test]
fn groups_that_do_not_fit_are_refused() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("groups", "1");
    guest.set("counters", "3");
    check_throughout(&ALL);
}

#[test]
fn all_groups_are_refused() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("groups", "2");
    check_throughout(&ALL);
}

#[test]
fn groups_and_every_event_are_refused() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("groups", "2");
    guest.set("refused", "63");
    check_throughout(&NOTHING);
}

fn check_zeros(bits: u32, may: &May) {
    let Some(guest) = Guest::enter() else { return };
    guest.set("zeros", &bits.to_string());
    check_throughout(may);
}

const fn bit(counter: Counter) -> u32 {
    1 << counter as u32
}

#[test]
fn cycles_that_stand_still() {
    let lack = &[Counter::Cycles, Counter::MmWrites];
    check_zeros(bit(Counter::Cycles), &May { lack, ..ALL });
}

#[test]
fn instructions_that_stand_still() {
    let lack = &[Counter::Instructions, Counter::MmWrites];
    check_zeros(bit(Counter::Instructions), &May { lack, ..ALL });
}

#[test]
fn reads_that_stand_still() {
    let lack = &[Counter::MmReads, Counter::MmWrites];
    check_zeros(bit(Counter::MmReads), &May { lack, ..ALL });
}

/// Each job holds so many events of its own that those of cosched run for a tenth of the time. What is scaled from that may say too
/// little of a job whose phases are short: then it is absent. Cycles hardly change.
#[test]
fn a_tenth_of_the_time_on_counters() {
    let Some(guest) = Guest::enter() else { return };
    guest.set("counters", "5");
    let mut hogs = six_jobs();
    for job in &mut hogs {
        job.line = format!("hog own 45 sh -c \"{}\"", job.line);
    }
    let ended = even(&hogs).end();
    let mut faults = Faults::default();
    check(&ended, &NOTHING, &mut faults);
    if !jobs(&ended).all(|job| job["counts"]["cycles"].is_u64()) {
        faults.add("some job has no cycles, whose rate is steady");
    }
    faults.none();
}

/// Nothing can be vouched for after the counters were dead for a second.
fn check_gap(kind: &str) {
    let Some(guest) = Guest::enter() else { return };
    let run = even(&six_jobs());
    pass(1.5);
    guest.set("dead", kind);
    pass(1.0);
    guest.set("dead", "0");
    let mut faults = Faults::default();
    check(&run.end(), &NOTHING, &mut faults);
    faults.none();
}

#[test]
fn a_gap_without_counters() {
    check_gap("1");
}

#[test]
fn a_gap_with_counters_that_stand_still() {
    check_gap("2");
}

/// Children inherit the counters, and take their counts along when they end. What the kernel does after that is in the truth,
/// so they run a program that uses the caches much more than the kernel does.
#[test]
fn a_job_forks_two_hundred_children() {
    let Some(_guest) = Guest::enter() else { return };
    let forks = LawJob {
        name: "forks".to_owned(),
        line: "for i in $(seq 200); do (echo reuse 6e7 forks >/dev/law) || exit 1; done".to_owned(),
    };
    let jobs = [
        forks,
        job("stream", "stream", "4e9"),
        job("turns", "turns", "6e9"),
    ];
    let mut faults = Faults::default();
    check(&even(&jobs).end(), &ALL, &mut faults);
    faults.none();
}

#[test]
fn a_cpu_goes_offline_and_comes_back() {
    let Some(guest) = Guest::enter() else { return };
    let run = even(&ten_jobs());
    pass(1.5);
    guest.set_online(3, false);
    pass(1.5);
    guest.set_online(3, true);
    let ended = run.end();
    let mut faults = Faults::default();
    check(&ended, &ALL, &mut faults);
    let told = warnings_about(&ended, "offline");
    if told.len() != 1 {
        faults.add(format!(
            "{} warnings that a CPU is offline: {told:?}",
            told.len()
        ));
    }
    let series =
        std::fs::read_to_string(ended.folder.path().join("run.series.jsonl")).expect("a series");
    // A second after the CPU has gone.
    for (task, cpus) in placements_at(&series, 2.5) {
        if cpus.contains(CpuId(3)) {
            faults.add(format!(
                "task {task} stays on {cpus}, which are partly offline"
            ));
        }
    }
    faults.none();
}

/// The CPUs of each task at a time, by the lines of a series `["p", ns, task, cpus, ...]`.
fn placements_at(series: &str, at_s: f64) -> BTreeMap<u64, CpuSet> {
    let mut placements = BTreeMap::new();
    for line in series.lines() {
        let Ok(Value::Array(row)) = serde_json::from_str(line) else {
            continue;
        };
        let [kind, ns, task, cpus, ..] = row.as_slice() else {
            continue;
        };
        if kind == "p" && ns.as_f64().expect("a time") <= at_s * 1e9 {
            let cpus = cpus.as_str().and_then(|cpus| cpus.parse().ok());
            placements.insert(task.as_u64().expect("a number"), cpus.unwrap_or_default());
        }
    }
    placements
}
