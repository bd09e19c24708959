//! What an ordinary user may count.

use crate::figures::{ALL, Faults, May, NOTHING, check, check_doctor};
use crate::guest::Guest;
use crate::run::{User, six_jobs, start};

fn check_paranoid(level: &str, may: &May) {
    let Some(guest) = Guest::enter() else { return };
    guest.set_paranoid(level);
    let mut faults = Faults::default();
    check_doctor(User::Ordinary, may, &mut faults);
    let ended = start(User::Ordinary, &six_jobs(), &["--policy", "even"]).end();
    check(&ended, may, &mut faults);
    faults.none();
}

#[test]
fn an_ordinary_user_counts_at_paranoid_1() {
    check_paranoid("1", &ALL);
}

#[test]
fn an_ordinary_user_counts_at_paranoid_2() {
    check_paranoid("2", &ALL);
}

#[test]
fn an_ordinary_user_counts_nothing_at_paranoid_3() {
    check_paranoid("3", &NOTHING);
}
