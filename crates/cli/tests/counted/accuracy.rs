//! How well progress is measured and slowdowns are estimated, under each law.

use crate::figures::{ALL, Faults, GOAL, Most, check_counts, check_slowdowns, errors_of};
use crate::guest::Guest;
use crate::run::{User, start, ten_jobs};

/// `perf-fair` measures a job beside others that disturb little, and the clock falls as cores get busy.
const BESIDE_OTHERS: Most = Most {
    slowdown: 0.2,
    mean_slowdown: 0.05,
    mean_progress: 0.05,
};

fn check_law(law: &str, user: User, policy: &str, most: &Most) {
    let Some(guest) = Guest::enter() else { return };
    guest.set("law", law);
    let ended = start(user, &ten_jobs(), &["--policy", policy]).end();
    let errors = errors_of(&ended);
    println!(
        "{law}, {user:?}, {policy}: {}\n{}",
        errors.text(),
        errors.table
    );
    let mut faults = Faults::default();
    // Two jobs have phases, and not each phase of a short job is measured.
    errors.check(7, most, &mut faults);
    check_counts(&ended, &ALL, &mut faults);
    check_slowdowns(&ended, most, &mut faults);
    faults.none();
}

#[test]
fn even_as_root_at_a_bus() {
    check_law("bus", User::Root, "even", &GOAL);
}

#[test]
fn even_as_root_in_a_cache() {
    check_law("cache", User::Root, "even", &GOAL);
}

#[test]
fn even_as_root_beside_siblings() {
    check_law("smt", User::Root, "even", &GOAL);
}

#[test]
fn even_as_an_ordinary_user_at_a_bus() {
    check_law("bus", User::Ordinary, "even", &GOAL);
}

#[test]
fn even_as_an_ordinary_user_in_a_cache() {
    check_law("cache", User::Ordinary, "even", &GOAL);
}

#[test]
fn even_as_an_ordinary_user_beside_siblings() {
    check_law("smt", User::Ordinary, "even", &GOAL);
}

#[test]
fn perf_fair_as_root_at_a_bus() {
    check_law("bus", User::Root, "perf-fair", &GOAL);
}

#[test]
fn perf_fair_as_root_beside_siblings() {
    check_law("smt", User::Root, "perf-fair", &BESIDE_OTHERS);
}
