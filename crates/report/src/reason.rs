//! Reasons to wait and triggers of decisions as sentences, with their numbers and units.

use crate::text::{count, seconds};
use cosched_core::{DemandBasis, Device, Rate, Reading, TaskId, Trigger, WaitReason};

/// The code of a reason to wait, as in the series and in events.
pub fn wait_code(reason: &WaitReason) -> &'static str {
    reason.into()
}

const FITS_NOW: &str = "It did not fit when it was tried. It fits beside the jobs that were chosen after it: the next \
                        decision tries it again.";

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
        WaitReason::Order { ahead: 0 } => "All CPUs are taken; it is next.".to_owned(),
        WaitReason::Order { ahead } => {
            let jobs = count(ahead.into(), "job");
            format!("All CPUs are taken, and it is behind {jobs}.")
        }
        WaitReason::Fitness { bandwidth, wanted } => {
            let (bandwidth, wanted) = (per_us(bandwidth), per_us(wanted));
            format!(
                "Other jobs fit the remaining bandwidth better: it reads {bandwidth} transactions/us per CPU, wanted are {wanted}."
            )
        }
        WaitReason::Ahead {
            progress_milli,
            max_progress_milli,
        } => {
            let progress = thousandths(progress_milli);
            let leader = thousandths(max_progress_milli);
            format!(
                "It is held back: it has done {progress:.2} quanta of work alone, the leader {leader:.2}."
            )
        }
        WaitReason::Heavy {
            llc,
            llc_limit,
            mm,
            mm_limit,
        } => {
            let mut excesses = excess(llc, "last-level cache accesses", llc_limit);
            excesses.extend(excess(mm, "memory transactions", mm_limit));
            let excesses = excesses.join(" and ");
            format!("It would disturb a job that is being measured: {excesses}.")
        }
        WaitReason::Unmeasured => {
            "It is not measured yet, and might disturb a job that is being measured.".to_owned()
        }
        WaitReason::Gang { needs, free } => {
            let needs = count(needs.into(), "CPU");
            format!("It needs {needs} at once; free: {free}.")
        }
        WaitReason::Memory { needs, free } => {
            let [needs, free] = [needs, free].map(|bytes| bytes as f64 / 1e9);
            format!("It needs {needs:.1} GB of memory; the most that a node has left: {free:.1}.")
        }
        WaitReason::Affinity => "None of the CPUs that it may use is free.".to_owned(),
        WaitReason::NoTime { expected, left } => {
            let (expected, left) = (seconds(expected.as_s()), seconds(left.as_s()));
            format!(
                "It is expected to take {expected}, and the allocation ends in {left}: this run does not start it."
            )
        }
        WaitReason::TooWide { needs, most } => {
            let needs = count(needs.into(), "CPU");
            format!(
                "It needs {needs} at once, and no node that is left has more than {most}: this run does not start it."
            )
        }
        WaitReason::Measuring { task } => {
            format!("It would disturb {}, which is being measured.", name(task))
        }
        WaitReason::Lead {
            progress_milli,
            limit_milli,
        } => {
            let progress = thousandths(progress_milli);
            let limit = thousandths(limit_milli);
            format!(
                "It is ahead of the others: {progress:.2} quanta of work alone, limit {limit:.2}."
            )
        }
        WaitReason::Outweighed {
            worth_milli,
            loss_milli,
            power_milli,
        } => outweighed(worth_milli, loss_milli, power_milli),
        WaitReason::BusFull {
            device,
            demand_milli,
            basis,
            threshold_milli,
            energy_with_mj,
            energy_without_mj,
        } => {
            let what = full_resource(device);
            let demand = percent(demand_milli);
            let basis = basis_note(basis);
            let threshold = percent(threshold_milli);
            let with_j = thousandths(energy_with_mj);
            let without_j = thousandths(energy_without_mj);
            format!(
                "It does not fit {what}: alone it uses {demand} %{basis}, at most {threshold} % fits. A second's \
                 worth of work costs {with_j:.1} J with it, {without_j:.1} J without."
            )
        }
        WaitReason::FitsNow => FITS_NOW.to_owned(),
    }
}

/// A measured rate with its limit.
fn excess(rate: Reading<Rate>, what: &str, limit: Rate) -> Vec<String> {
    let Reading::Value(rate) = rate else {
        return Vec::new();
    };
    let (rate, limit) = (per_us(rate), per_us(limit));
    vec![format!("{rate} {what}/us (limit {limit})")]
}

fn outweighed(worth_milli: u64, loss_milli: u64, power_milli: u64) -> String {
    let worth = thousandths(worth_milli);
    let loss = thousandths(loss_milli);
    let power = match power_milli {
        0 => String::new(),
        _ => format!("; its power is worth {:.2}", thousandths(power_milli)),
    };
    format!(
        "Others are worth more: it would add {worth:.2} of weight x speed, and they would lose {loss:.2}{power}."
    )
}

fn full_resource(device: Option<Device>) -> &'static str {
    match device {
        None => "the memory bus",
        Some(Device::Disk) => "the disk",
        Some(Device::Net) => "the network",
    }
}

fn basis_note(basis: DemandBasis) -> &'static str {
    match basis {
        DemandBasis::Measured => "",
        DemandBasis::Given => " (as given)",
        DemandBasis::Assumed => " (assumed)",
    }
}

fn thousandths(milli: u64) -> f64 {
    milli as f64 / 1e3
}

fn percent(milli: u32) -> String {
    format!("{:.1}", f64::from(milli) / 10.0)
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
