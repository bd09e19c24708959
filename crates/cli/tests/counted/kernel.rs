//! What the scheduler in the kernel counts, whenever a CPU goes from one job to another: `guest/counted.sh -k KERNEL`.

use crate::candidates::{CANDIDATES, LAWS};
use crate::figures::{ALL, Faults, check_counts};
use crate::guest::Guest;
use crate::run::{EndedRun, LawJob, User, six_jobs, start, ten_jobs};
use std::path::Path;

/// Holds the counts of a run under the scheduler in the kernel against the truth, if the kernel can have one.
fn check(jobs: &[LawJob], options: &[&str]) {
    let Some(_guest) = Guest::enter() else { return };
    if !Path::new("/sys/kernel/sched_ext").exists() {
        eprintln!("skipped, because this kernel has no sched_ext");
        return;
    }
    let options = [&["--actuator", "sched-ext", "--jobs", "0"], options].concat();
    let ended = start(User::Root, jobs, &options).end();
    let mut faults = Faults::default();
    for code in ["counted-outside", "plans-given-up", "not-taken"] {
        if warned(&ended, code) {
            faults.add(format!("{code}: {}", ended.said));
        }
    }
    check_counts(&ended, &ALL, &mut faults);
    faults.none();
}

fn warned(ended: &EndedRun, code: &str) -> bool {
    let warnings = ended.record["warnings"].as_array().expect("a list");
    warnings.iter().any(|warning| warning["code"] == code)
}

/// With what EFS has to know of the guest.
fn check_efs(jobs: &[LawJob]) {
    let efs = CANDIDATES
        .iter()
        .find(|candidate| candidate.name() == "efs");
    let options = efs.expect("it is compared").options(&LAWS[0], "");
    check(jobs, &Vec::from_iter(options.iter().map(String::as_str)));
}

/// Jobs that take turns by plans: most counts begin and end with a switch.
#[test]
fn plans() {
    let options = ["--policy", "round-robin", "--param", "quantum_s=0.1"];
    check(&ten_jobs(), &options);
}

#[test]
fn efs_with_fewer_jobs_than_cpus() {
    check_efs(&six_jobs());
}

#[test]
fn efs_with_more_jobs_than_cpus() {
    check_efs(&ten_jobs());
}
