//! The scenarios that are played on every backend.

mod ending;
mod placing;
mod plans;
mod policies;

use crate::fixture::{Fixture, Skip};
use crate::runner::Case;
use std::rc::Rc;

macro_rules! cases {
    ($fixture:ident, $make:ident: $($file:ident::$scenario:ident,)*) => {
        vec![$({
            let make = $make.clone();
            Case {
                name: format!("{}::{}", $fixture, stringify!($scenario)),
                play: Box::new(move || $file::$scenario(&make()?)),
            }
        },)*]
    };
}

/// All scenarios on one fixture, which is made when a scenario is played.
pub(crate) fn on_fixture<F: Fixture>(
    name: &str,
    make: impl Fn() -> Result<F, Skip> + 'static,
) -> Vec<Case> {
    let make = Rc::new(make);
    cases! { name, make:
        placing::what_is_placed_starts_and_nothing_else,
        placing::a_gang_runs_on_all_of_its_cpus,
        placing::what_is_stopped_does_nothing_until_it_is_placed_again,
        placing::stops_and_starts_in_quick_succession_are_no_news,
        placing::tasks_go_where_they_are_placed,
        placing::tasks_with_one_cpu_share_it,
        placing::changes_are_carried_out_as_one,
        ending::an_end_is_told_once_and_its_usage_can_be_read,
        ending::what_cannot_be_started_has_ended,
        ending::failures_are_told_as_they_are,
        ending::what_is_killed_ends_by_its_signal,
        ending::what_never_started_cannot_be_killed,
        ending::waiting_ends_at_its_time_or_at_news,
        ending::a_task_that_sleeps_is_told_of_and_wakes,
        ending::a_task_that_sleeps_can_be_stopped,
        ending::nothing_stands_still_when_the_backend_is_dropped,
        plans::a_plan_takes_the_place_of_what_was,
        plans::a_filler_takes_an_empty_seat_and_gives_it_back,
        plans::nobody_fills_a_whole_core_or_beyond_its_mask,
        plans::residency_is_what_happened,
        plans::an_old_plan_is_refused,
        plans::changes_end_a_plan,
        plans::every_policy_completes_a_batch_by_plans,
        policies::every_policy_completes_a_batch_within_its_masks,
        policies::failures_leave_the_others_alone,
        policies::nonsense_is_replaced,
        policies::gangs_take_turns_with_others,
        policies::a_run_repeats_itself,
    }
}
