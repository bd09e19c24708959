//! Names and values of the events of a trace.

use super::event::{Args, Title, args};
use crate::reason::{wait_code, wait_text};
use crate::series::measured::Measured;
use crate::series::replay::{Activity, Placed};
use crate::series::{CpuMode, SeriesHeader};
use crate::text::{clip, visible};
use cosched_core::{Counter, CpuSet, JobEnd, Nanos, Purpose, WaitReason};
use serde_json::{Value, json};

/// Bytes of a line of memory.
pub(super) const LINE: u64 = 64;
/// Maximum number of characters of a job's command.
const MAX_COMMAND: usize = 500;

/// Return the title of an activity on the track of its job; `None` for a job that is absent.
pub(super) fn activity_title(activity: &Activity) -> Option<Title> {
    Some(match activity {
        Activity::Absent => return None,
        Activity::Queued => Title::new("queued", "queued"),
        Activity::Waits(reason) => Title::new(format!("waits: {}", wait_code(reason)), "wait"),
        Activity::Runs(placed) => Title::new(placed_name(placed), placed.purpose.into()),
        Activity::OffCpu => Title::new("off CPU", "off"),
    })
}

fn placed_name(placed: &Placed) -> String {
    let how = match (placed.mode, placed.purpose) {
        (CpuMode::Shared, _) => "shares",
        (_, Purpose::Run) => "on",
        (_, Purpose::MeasureAlone) => "measured alone on",
        (_, Purpose::LowContention) => "low contention on",
        (_, Purpose::WarmUp) => "warms up on",
    };
    format!("{how} {}", cpus_text(&placed.cpus))
}

fn cpus_text(cpus: &CpuSet) -> String {
    if cpus.len() == 1 {
        format!("CPU {cpus}")
    } else {
        format!("CPUs {cpus}")
    }
}

/// Return the title of a job's slice on the track of its CPU.
pub(super) fn cpu_title(placed: &Placed, job: &str) -> Title {
    let name = match placed.purpose {
        Purpose::Run => job.to_owned(),
        Purpose::MeasureAlone => format!("{job} (measured alone)"),
        Purpose::LowContention => format!("{job} (low contention)"),
        Purpose::WarmUp => format!("{job} (warms up)"),
    };
    Title::new(name, placed.purpose.into())
}

/// Return the values of a slice: its activity, and the measurements in it.
pub(super) fn activity_args(activity: &Activity, measured: &Measured) -> Args {
    match activity {
        Activity::Waits(reason) => wait_args(reason),
        Activity::Runs(placed) => {
            let mut args = args(json!({
                "cpus": placed.cpus.to_string(),
                "mode": placed.mode,
                "purpose": placed.purpose,
            }));
            args.extend(measured_args(measured));
            args
        }
        Activity::Absent | Activity::Queued | Activity::OffCpu => Args::new(),
    }
}

/// Return a reason in words, and its numbers as the series names them.
fn wait_args(reason: &WaitReason) -> Args {
    let mut args = match serde_json::to_value(reason) {
        Ok(Value::Object(numbers)) => numbers,
        _ => Args::new(),
    };
    args.remove("why");
    args.insert("reason".to_owned(), json!(wait_text(reason)));
    args
}

fn measured_args(measured: &Measured) -> Args {
    let instructions = measured.count(Counter::Instructions);
    let cycles = measured.count(Counter::Cycles);
    let reads = measured.count(Counter::MmReads);
    let writes = measured.count(Counter::MmWrites);
    let cpu_time = measured.cpu_time();
    args(json!({
        "ipc": ipc(instructions, cycles),
        "read_bytes_per_s": bytes_per_s(reads, measured.interval),
        "written_bytes_per_s": bytes_per_s(writes, measured.interval),
        "cpu_share": cpu_time.map(|time| time.share_of(measured.interval)),
        "progress_quanta": measured.progress_milli.map(quanta),
    }))
}

/// Convert progress to quanta.
pub(super) fn quanta(milli: u64) -> f64 {
    milli as f64 / 1e3
}

/// Convert lines in an interval to bytes per second; `None` if the interval is empty.
pub(super) fn bytes_per_s(lines: Option<u64>, interval: Nanos) -> Option<u64> {
    let bytes = u128::from(lines?) * u128::from(LINE) * 1_000_000_000;
    let rate = bytes.checked_div(interval.0.into())?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Return instructions per cycle; `None` if there was no cycle.
pub(super) fn ipc(instructions: Option<u64>, cycles: Option<u64>) -> Option<f64> {
    let cycles = cycles.filter(|cycles| *cycles > 0)?;
    Some(instructions? as f64 / cycles as f64)
}

/// Return the values of the run that its header has.
pub(super) fn run_args(header: &SeriesHeader) -> Args {
    args(json!({
        "policy": visible(&header.policy),
        "machine": visible(&header.machine.name),
        "backend": header.backend,
        "seed": header.seed,
        "quantum_ns": header.quantum_ns,
        "cosched_version": visible(&header.cosched_version),
        "run_id": header.run_id.as_deref().map(visible),
        "started_at": header.started_at.as_deref().map(visible),
    }))
}

/// Return the command of a job.
pub(super) fn start_args(command: Option<&str>) -> Args {
    let shown = command.map(|command| clip(&visible(command), MAX_COMMAND));
    args(json!({ "command": shown }))
}

/// Return the values of a job's end. The event has its time and its words.
pub(super) fn end_args(end: &JobEnd) -> Args {
    let mut args = args(json!(end));
    for key in ["start_s", "end_s", "exit_text", "counts"] {
        args.remove(key);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SampleRow;
    use cosched_core::{PerCounter, TaskId};

    /// The categories are the codes of the series.
    #[test]
    fn categories_are_codes() {
        for purpose in Purpose::ALL {
            let category: &str = purpose.into();
            assert_eq!(json!(purpose), category);
        }
    }

    #[test]
    fn every_reason_has_its_words_and_all_its_numbers() {
        let mut text = String::new();
        for reason in WaitReason::one_of_each() {
            let title = activity_title(&Activity::Waits(reason)).unwrap();
            let mut args = wait_args(&reason);
            assert!(args.remove("reason").is_some());
            text.push_str(&format!("{}\n  {}\n", title.name, Value::Object(args)));
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_an_interval_lacks_is_absent_and_not_zero() {
        let sample = |cycles: Option<u64>, reads: Option<u64>| SampleRow {
            task: TaskId(0),
            interval: Nanos::from_ms(500),
            cpus: CpuSet::new(),
            purpose: Purpose::Run,
            whole_core: false,
            disturbed: false,
            cut_short: false,
            multiplexed: false,
            cpu_time: Some(Nanos::from_ms(250)),
            counts: PerCounter::from_fn(|counter| match counter {
                Counter::Cycles => cycles,
                Counter::Instructions => Some(300),
                Counter::MmReads => reads,
                _ => None,
            }),
            progress_milli: None,
        };
        let mut measured = Measured::default();
        assert_eq!(measured_args(&measured), Args::new());
        measured.add(&sample(Some(100), Some(10)));
        measured.add(&sample(Some(300), None));
        measured.progress_milli = Some(2_500);
        assert_eq!(
            Value::Object(measured_args(&measured)),
            json!({"ipc": 1.5, "cpu_share": 0.5, "progress_quanta": 2.5})
        );
        assert_eq!(bytes_per_s(Some(1_000), Nanos::from_ms(500)), Some(128_000));
        assert_eq!(
            (bytes_per_s(Some(1), Nanos::ZERO), ipc(Some(1), Some(0))),
            (None, None)
        );
    }
}
