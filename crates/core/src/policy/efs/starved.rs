//! The longest starved task (EFS, section 4.3).

use super::known::EfsTask;
use super::queues::Queues;
use crate::model::starvation::{Starvation, Wait};
use crate::policy::round::Round;
use crate::policy::weights::GREATEST;

/// The starved task of the machine that has not run for the longest time, if any.
///
/// As in EFS, a task is starved if it is the first of its queue and lags too far behind the last, or has not run for
/// too long. Ours: a task that is not the first is starved too if it has not run for the longer of the two factors, in
/// periods of the machine. A task with less weight waits longer in proportion. Without this rule a task ahead of its
/// queue could wait until the queue catches up, which has no bound. A task for which tasks that can't be stopped leave
/// no room is skipped, so that it blocks no other.
pub(super) fn longest(
    rule: &Starvation,
    round: &Round<'_>,
    queues: &Queues,
    known: &[EfsTask],
) -> Option<u32> {
    let now = round.snap.now;
    let all = queues.all();
    let not_run = |ix: u32| (now - round.task(ix).waiting_since).0;
    let waits = |ix: u32| round.is_open(ix) && round.task(ix).running.is_none();
    let can_run = |ix: u32| queues.can_run(&round.snap.machine, round.task(ix));
    let mut longest: Option<(u64, u32)> = None;
    for cpu in 0..queues.tasks.len() {
        // If the first runs or was just chosen, the paper's rules starve no task of this queue.
        let Some(position) = queues.members(cpu).next() else {
            continue;
        };
        let ix = queues.member(position);
        if !waits(ix) {
            continue;
        }
        let wait = Wait {
            lag_ns: queues.lag(&known[ix as usize]),
            not_run_ns: not_run(ix),
        };
        let waited = wait.not_run_ns;
        if longest.is_none_or(|(most, first)| waited > most || (waited == most && ix < first))
            && rule.is_starved(wait, u64::from(queues.tasks[cpu]), all)
            && can_run(ix)
        {
            longest = Some((waited, ix));
        }
    }
    let forgotten = rule
        .local_factor
        .max(rule.global_factor)
        .saturating_mul(rule.period_ns(all));
    for &ix in &round.order {
        // The others have waited less, except for overdue tasks, which come first in the order.
        let task = round.task(ix);
        if !task.overdue
            && (not_run(ix) <= forgotten || longest.is_some_and(|(most, _)| not_run(ix) <= most))
        {
            break;
        }
        let weight = queues.weights.whole(task);
        let limit = u128::from(forgotten) * u128::from(GREATEST) / u128::from(weight);
        if waits(ix) && u128::from(not_run(ix)) > limit && can_run(ix) {
            return Some(ix);
        }
    }
    longest.map(|(_, ix)| ix)
}
