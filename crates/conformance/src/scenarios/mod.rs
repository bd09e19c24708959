//! The scenarios that are played on every backend.

mod ending;
mod machines;
mod placing;
mod plans;
mod policies;

use crate::fixture::{Fixture, ScenarioOutcome, ScenarioSkip};
use crate::simulated::Simulation;
use cosched_core::{POLICIES, PolicyEntry, find_policy};
use cosched_sim::MACHINES;
use std::rc::Rc;

/// A scenario on a fixture, or with a policy.
pub struct Case {
    /// Its name; on a fixture `FIXTURE::SCENARIO`.
    pub name: String,
    /// Plays it.
    pub play: Box<dyn Fn() -> ScenarioOutcome>,
}

/// The policies with which a scenario is played.
type Entries = [&'static PolicyEntry];

macro_rules! cases {
    ($fixture:ident, $make:ident: $($file:ident::$scenario:ident $(with $entries:ident)?,)*) => {
        vec![$({
            let make = $make.clone();
            Case {
                name: format!("{}::{}", $fixture, stringify!($scenario)),
                play: Box::new(move || $file::$scenario(&make()? $(, &$entries)?)),
            }
        },)*]
    };
}

/// All scenarios on one fixture, which is made when a scenario is played.
pub fn on_fixture<F: Fixture>(
    name: &str,
    make: impl Fn() -> Result<F, ScenarioSkip> + 'static,
) -> Vec<Case> {
    let make = Rc::new(make);
    let all: Vec<&'static PolicyEntry> = POLICIES.iter().collect();
    let [by_plans, batch, again] = [all.clone(), all.clone(), all];
    let [failures, gangs] = [some(), some()];
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
        plans::a_batch_completes_by_plans with by_plans,
        policies::a_batch_completes_within_its_masks with batch,
        policies::failures_leave_the_others_alone with failures,
        policies::nonsense_is_replaced,
        policies::gangs_take_turns_with_others with gangs,
        policies::a_run_repeats_itself with again,
    }
}

/// Where the policy hardly matters, one that stops tasks and one that does not.
fn some() -> Vec<&'static PolicyEntry> {
    let names = ["fifo", "round-robin"].iter();
    names.filter_map(|name| find_policy(name)).collect()
}

/// The scenarios of the loop with one policy, in the built-in simulation.
pub fn of_policy(entry: &'static PolicyEntry) -> Vec<Case> {
    let make = Rc::new(|| Ok(Simulation::default()));
    let name = entry.name;
    let [batch, failures, gangs, again] = [(); 4].map(|()| vec![entry]);
    let mut cases = cases! { name, make:
        policies::a_batch_completes_within_its_masks with batch,
        policies::failures_leave_the_others_alone with failures,
        policies::gangs_take_turns_with_others with gangs,
        policies::a_run_repeats_itself with again,
    };
    for machine in MACHINES {
        cases.push(Case {
            name: format!("{name}::many_jobs_on_{}", machine.name),
            play: Box::new(move || machines::many_jobs(machine.name, entry)),
        });
    }
    cases
}
