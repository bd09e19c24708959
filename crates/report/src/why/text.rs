//! The answer in words.

use super::{Did, Latest, Seen, SeriesEnd, State, Step, Why};
use crate::reason::{trigger_text, wait_text_naming};
use crate::series::Mode;
use crate::text::{count, seconds, visible, wrap};
use cosched_core::{Nanos, Purpose, TaskId};
use std::fmt::Write as _;

/// So many of those that were preferred are named.
const NAMED: usize = 8;
/// So many triggers of a decision are told.
const TRIGGERS: usize = 4;

fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "",
        Purpose::MeasureAlone => ", to be measured alone",
        Purpose::LowContention => ", since it disturbs little beside a measurement",
    }
}

fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "",
        Mode::WholeCore => ", with its whole core",
        Mode::Shared => ", which the kernel shares out",
    }
}

fn at(time: Nanos) -> String {
    format!("{:.3} s", time.as_s())
}

/// The answer for people, in lines of at most `width` characters.
pub fn why_text(why: &Why, width: usize) -> String {
    let mut out = String::new();
    let mut say = |indent: usize, text: &str| {
        for (ix, line) in wrap(text, width.saturating_sub(indent + 2).max(20))
            .iter()
            .enumerate()
        {
            let more = if ix == 0 { 0 } else { 2 };
            let _ = writeln!(out, "{:1$}{line}", "", indent + more);
        }
    };
    let name = |task: u32| {
        why.names
            .get(task as usize)
            .map_or_else(|| format!("job {task}"), |name| visible(name))
    };
    let job = visible(&why.job);
    let since = |time: Nanos| {
        format!(
            "since {}, for {}",
            at(time),
            seconds((why.at - time).as_s())
        )
    };
    let doing = match &why.state {
        State::NotArrived { arrival } => format!("has not arrived: it does at {}", at(*arrival)),
        State::Queued { since: from } => {
            format!("is in the queue, {}: it has not been started", since(*from))
        }
        State::Runs {
            since: from,
            cpus,
            mode,
            purpose,
        } => {
            let is_there = |seen: &Seen| !seen.cpus.is_empty() && seen.cpus.is_subset(cpus);
            let runs = if why.seen.as_ref().is_none_or(is_there) {
                "runs"
            } else {
                "is placed"
            };
            format!(
                "{runs} on CPU {cpus}{}{}, {}",
                mode_text(*mode),
                purpose_text(*purpose),
                since(*from)
            )
        }
        State::Waits { since: from } => format!("waits, {}", since(*from)),
        State::Ended { at: ended, exit } => format!("ended at {} ({})", at(*ended), visible(exit)),
    };
    say(0, &format!("{job} at {}: {doing}", at(why.at)));
    match (why.series_end, &why.state) {
        (Some(SeriesEnd::Over), State::Waits { .. } | State::Runs { .. }) => {
            say(
                2,
                "its series tells nothing after this time: its run was killed then, or could not write on",
            );
        }
        (Some(SeriesEnd::Over), State::Queued { .. } | State::NotArrived { .. }) => {
            say(2, "its series ends then, and it had not begun");
        }
        _ => {}
    }

    // The reason that holds now.
    let reason = why.steps.iter().rev().find_map(|step| match &step.did {
        Did::Waits { reason } => Some((step.at, reason)),
        _ => None,
    });
    if let (State::Waits { .. } | State::Queued { .. }, Some((told, reason))) = (&why.state, reason)
    {
        say(
            2,
            &format!(
                "why: {} (as decided at {})",
                wait_text_naming(reason, |task| name(task.0)),
                at(told)
            ),
        );
    }
    if let Some(seen) = &why.seen {
        say(
            2,
            &format!("in the kernel: {}", seen_text(seen, why.at, &name)),
        );
    }
    if matches!(why.state, State::Waits { .. } | State::Queued { .. }) {
        let shown = why.preferred.iter().take(NAMED);
        let shown: Vec<String> = shown
            .map(|one| {
                format!(
                    "{} on CPU {} since {}{}",
                    name(one.task),
                    one.cpus,
                    at(one.since),
                    purpose_text(one.purpose)
                )
            })
            .collect();
        let more = why.preferred.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!(" and {}", count(more as u64, "other"))
        } else {
            String::new()
        };
        if !shown.is_empty() {
            say(2, &format!("instead: {}{more}", shown.join("; ")));
        }
        if why.waiting > 0 {
            let wait = if why.waiting == 1 { "waits" } else { "wait" };
            let begun = if why.waiting == 1 { "has" } else { "have" };
            say(
                2,
                &format!(
                    "beside: {} that {begun} begun {wait} too",
                    count(why.waiting as u64, "other job")
                ),
            );
        }
    }
    match &why.latest {
        Some(Latest::Pause {
            overdue,
            at: latest,
            max_pause,
        }) => say(
            2,
            &format!(
                "latest: {}: at {} it has waited for {} (--max-pause) and comes before others",
                at(*latest),
                at(*overdue),
                seconds(max_pause.as_s())
            ),
        ),
        Some(Latest::Order) => say(
            2,
            "latest: not known: it has been let in, and begins in the policy's order",
        ),
        Some(Latest::Queue { live: 0 }) => {
            say(2, "latest: not known: it begins once it has been let in")
        }
        Some(Latest::Queue { live }) => {
            let live = count(*live as u64, "job");
            say(
                2,
                &format!(
                    "latest: not known: it is let in when one of the live jobs ends ({live} live)"
                ),
            );
        }
        None => {}
    }
    if let Some(next) = why.next_decision {
        say(
            2,
            &format!(
                "next: {} decides again at {} at the latest",
                visible(&why.policy),
                at(next)
            ),
        );
    }
    if !why.steps.is_empty() {
        say(0, "the last decisions about it:");
    }
    for step in &why.steps {
        say(2, &step_text(step, &name));
    }
    out
}

/// Who had which CPU.
fn seen_text(seen: &Seen, now: Nanos, name: &impl Fn(u32) -> String) -> String {
    let (had, span) = (seconds(seen.had.as_s()), seconds(seen.span.as_s()));
    let since = format!(
        "since {}, for {}",
        at(seen.since),
        seconds((now - seen.since).as_s())
    );
    let own = if seen.cpus.is_empty() {
        format!("on no CPU {since}; it had one for {had} of the last {span}")
    } else {
        format!(
            "on CPU {}; it has had one {since}, and for {had} of the last {span}",
            seen.cpus
        )
    };
    let shown = seen.others.iter().take(NAMED);
    let mut cpus: Vec<String> = shown
        .map(|held| {
            format!(
                "{} on CPU {} since {}",
                name(held.task),
                held.cpu.0,
                at(held.since)
            )
        })
        .collect();
    if let more @ 1.. = seen.others.len().saturating_sub(NAMED) {
        cpus.push(format!("others on {}", count(more as u64, "CPU")));
    }
    if !seen.free.is_empty() {
        cpus.push(format!("no job on CPU {}", seen.free));
    }
    let cpus = if cpus.is_empty() {
        String::new()
    } else {
        format!("; {}", cpus.join("; "))
    };
    format!("{own}{cpus}")
}

/// A decision and its trigger.
fn step_text(step: &Step, name: &impl Fn(u32) -> String) -> String {
    let did = match &step.did {
        Did::Placed {
            cpus,
            mode,
            purpose,
            before,
            left_by,
            waited,
        } => {
            let after = waited
                .map(|waited| format!(" after {}", seconds(waited.as_s())))
                .unwrap_or_default();
            let why = match before {
                Some(before) if before == cpus => ", where it was before".to_owned(),
                _ if !left_by.is_empty() => {
                    let who: Vec<String> = left_by.iter().map(|task| name(*task)).collect();
                    format!(", which {} had until then", who.join(", "))
                }
                Some(before) => format!(", before on CPU {before}"),
                None => ", for the first time".to_owned(),
            };
            format!(
                "placed on CPU {cpus}{after}{why}{}{}",
                mode_text(*mode),
                purpose_text(*purpose)
            )
        }
        Did::Stopped => "stopped".to_owned(),
        Did::Waits { reason } => {
            format!("waits: {}", wait_text_naming(reason, |task| name(task.0)))
        }
    };
    let shown = step.triggers.iter().take(TRIGGERS);
    let mut triggers: Vec<String> = shown
        .map(|trigger| trigger_text(trigger, |task: TaskId| name(task.0)))
        .collect();
    if let more @ 1.. = step.triggers.len().saturating_sub(TRIGGERS) {
        triggers.push(format!("and {more} more"));
    }
    let because = if triggers.is_empty() {
        String::new()
    } else {
        format!(" [{}]", triggers.join(", "))
    };
    let stood_in = if step.stood_in {
        " [round-robin stood in for the policy]"
    } else {
        ""
    };
    format!("{}  {did}{because}{stood_in}", at(step.at))
}
