//! Reasons to wait and triggers of decisions as sentences, with their numbers and units.

use crate::text::count;
use cosched_core::{DemandBasis, Rate, Reading, TaskId, Trigger, WaitReason};

/// The code of a reason to wait, as in the series and in events.
pub fn wait_code(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Order { .. } => "order",
        WaitReason::Fitness { .. } => "fitness",
        WaitReason::Ahead { .. } => "ahead",
        WaitReason::Heavy { .. } => "heavy",
        WaitReason::Unmeasured => "unmeasured",
        WaitReason::Gang { .. } => "gang",
        WaitReason::Affinity => "affinity",
        WaitReason::BusFull { .. } => "bus-full",
        WaitReason::Measuring { .. } => "measuring",
        WaitReason::Lead { .. } => "lead",
        WaitReason::Outweighed { .. } => "outweighed",
    }
}

fn per_us(rate: Rate) -> String {
    format!("{:.1}", rate.per_us())
}

/// Why a job waits: one sentence with its numbers and their units. Other jobs are named by the numbers of their tasks.
pub fn wait_text(reason: &WaitReason) -> String {
    wait_text_naming(reason, |task| format!("Job {task}"))
}

/// The same; `name` returns the name of a task's job.
pub(crate) fn wait_text_naming(reason: &WaitReason, name: impl Fn(TaskId) -> String) -> String {
    match *reason {
        WaitReason::Order { ahead: 0 } => {
            "All CPUs are taken, and it is the next in line.".to_owned()
        }
        WaitReason::Order { ahead } => {
            format!(
                "All CPUs are taken, and {} before it in the policy's order.",
                come(ahead)
            )
        }
        WaitReason::Fitness { bandwidth, wanted } => format!(
            "Other jobs fit the remaining memory bandwidth better: it reads {} transactions/us per CPU, where {} were \
             wanted.",
            per_us(bandwidth),
            per_us(wanted)
        ),
        WaitReason::Ahead {
            progress_milli,
            max_progress_milli,
        } => held_back(progress_milli, max_progress_milli),
        WaitReason::Heavy {
            llc,
            llc_limit,
            mm,
            mm_limit,
        } => {
            format!(
                "A job is being measured in low contention, and this one would disturb it: {}.",
                excesses(llc, llc_limit, mm, mm_limit)
            )
        }
        WaitReason::Unmeasured => {
            "A job is being measured in low contention, and this one has not been measured yet."
                .to_owned()
        }
        WaitReason::Gang { needs, free } => {
            format!(
                "It needs {} at once, and {free} {} free.",
                count(needs.into(), "CPU"),
                is_are(free)
            )
        }
        WaitReason::Affinity => "None of the CPUs that it may use is free.".to_owned(),
        WaitReason::Measuring { task } => {
            format!(
                "{} is being measured with little beside it, and this one would disturb it.",
                name(task)
            )
        }
        WaitReason::Lead {
            progress_milli,
            limit_milli,
        } => format!(
            "It is ahead of the others: it has done {:.2} quanta of work alone, and none with more than {:.2} runs now.",
            thousandths(progress_milli),
            thousandths(limit_milli)
        ),
        WaitReason::Outweighed {
            worth_milli,
            loss_milli,
            power_milli,
        } => outweighed(worth_milli, loss_milli, power_milli),
        WaitReason::BusFull {
            demand_milli,
            basis,
            threshold_milli,
            energy_with_mj,
            energy_without_mj,
        } => {
            let energy_mj = [energy_with_mj, energy_without_mj];
            bus_full(demand_milli, basis, threshold_milli, energy_mj)
        }
    }
}

fn bus_full(
    demand_milli: u32,
    basis: DemandBasis,
    threshold_milli: u32,
    [with_mj, without_mj]: [u64; 2],
) -> String {
    format!(
        "It does not fit the memory bus beside what runs: alone it would keep the bus busy {} % of the time{}, where \
         {} % would still fit; with it a second's worth of work would cost {:.1} J, without it {:.1} J.",
        percent(demand_milli),
        basis_note(basis),
        percent(threshold_milli),
        thousandths(with_mj),
        thousandths(without_mj)
    )
}

fn held_back(progress_milli: u64, max_progress_milli: u64) -> String {
    format!(
        "It is held back: within {:.2} quanta of the leader. Its progress is {:.2} quanta of work alone, the leader's \
         {:.2}.",
        thousandths(max_progress_milli - progress_milli),
        thousandths(progress_milli),
        thousandths(max_progress_milli)
    )
}

/// The rates of a heavy job that are measured, with their limits.
fn excesses(llc: Reading<Rate>, llc_limit: Rate, mm: Reading<Rate>, mm_limit: Rate) -> String {
    let mut parts = Vec::new();
    for (rate, what, limit) in [
        (llc, "last-level cache accesses", llc_limit),
        (mm, "memory transactions", mm_limit),
    ] {
        if let Some(rate) = rate.value() {
            parts.push(format!(
                "{} {what}/us (limit {})",
                per_us(rate),
                per_us(limit)
            ));
        }
    }
    parts.join(" and ")
}

fn outweighed(worth_milli: u64, loss_milli: u64, power_milli: u64) -> String {
    let power = match power_milli {
        0 => String::new(),
        _ => format!(
            "; the power of its core is worth {:.2}",
            thousandths(power_milli)
        ),
    };
    format!(
        "Others are worth more now: weight x speed of this job would be {:.2}, and those that run would lose {:.2} by \
         it{power}.",
        thousandths(worth_milli),
        thousandths(loss_milli)
    )
}

fn basis_note(basis: DemandBasis) -> &'static str {
    match basis {
        DemandBasis::Measured => "",
        DemandBasis::Given => " (as given)",
        DemandBasis::Assumed => " (not measured: an assumption)",
    }
}

fn thousandths(milli: u64) -> f64 {
    milli as f64 / 1e3
}

fn percent(milli: u32) -> String {
    format!("{:.1}", f64::from(milli) / 10.0)
}

fn come(jobs: u32) -> String {
    if jobs == 1 {
        "1 job comes".to_owned()
    } else {
        format!("{} come", count(jobs.into(), "job"))
    }
}

fn is_are(n: u32) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// A trigger of a decision in a few words; `name` returns the name of a task's job.
pub fn trigger_text(trigger: &Trigger, name: impl Fn(TaskId) -> String) -> String {
    match *trigger {
        Trigger::QuantumEnd => "the quantum ended".to_owned(),
        Trigger::LeaseEnd(task) => format!("the lease of {} ended", name(task)),
        Trigger::Arrived(task) => format!("{} arrived", name(task)),
        Trigger::Ended(task) => format!("{} ended", name(task)),
        Trigger::Woke(task) => format!("{} woke", name(task)),
        Trigger::LoadFell => "the load on the memory bus fell".to_owned(),
        Trigger::Starved(task) => format!("{} has waited beyond its bound", name(task)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_a_sentence_with_its_numbers() {
        let reasons = [
            WaitReason::Order { ahead: 0 },
            WaitReason::Order { ahead: 12 },
        ];
        let reasons = reasons.into_iter().chain(WaitReason::one_of_each());
        let text: String = reasons
            .map(|reason| format!("{}: {}\n", wait_code(&reason), wait_text(&reason)))
            .collect();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn codes_are_those_of_the_serialised_form() {
        for reason in WaitReason::one_of_each() {
            let json = serde_json::to_value(reason).unwrap();
            assert_eq!(json["why"], wait_code(&reason));
        }
    }

    #[test]
    fn triggers_name_their_jobs() {
        let name = |task: TaskId| format!("mcf-{}", task.0);
        let texts: Vec<String> = Trigger::one_of_each()
            .iter()
            .map(|trigger| trigger_text(trigger, name))
            .collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
