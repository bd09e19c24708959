//! How well progress is measured and slowdowns are estimated, under each law.

use crate::figures::{ALL, Faults, check, errors_of};
use crate::guest::Guest;
use crate::run::{User, start, ten_jobs};

fn check_law(law: &str, user: User, policy: &str) {
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
    errors.check(8, &mut faults);
    check(&ended, &ALL, &mut faults);
    faults.none();
}

#[test]
fn even_as_root_at_a_bus() {
    check_law("bus", User::Root, "even");
}

#[test]
fn even_as_root_in_a_cache() {
    check_law("cache", User::Root, "even");
}

#[test]
fn even_as_root_beside_siblings() {
    check_law("smt", User::Root, "even");
}

#[test]
fn even_as_an_ordinary_user_at_a_bus() {
    check_law("bus", User::Ordinary, "even");
}

#[test]
fn even_as_an_ordinary_user_in_a_cache() {
    check_law("cache", User::Ordinary, "even");
}

#[test]
fn even_as_an_ordinary_user_beside_siblings() {
    check_law("smt", User::Ordinary, "even");
}

#[test]
fn perf_fair_as_root_at_a_bus() {
    check_law("bus", User::Root, "perf-fair");
}

#[test]
fn perf_fair_as_root_beside_siblings() {
    check_law("smt", User::Root, "perf-fair");
}
