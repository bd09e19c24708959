//! What a job does at a time, and what was measured of it meanwhile: names and values of its slices.

use super::packet::{Arg, Args};
use crate::reason::{wait_code, wait_text};
use crate::series::{Mode, SampleRow};
use cosched_core::{Counter, CpuSet, Nanos, Purpose, WaitReason};
use serde_json::Value;

/// Bytes of a line of memory.
pub(super) const LINE: u64 = 64;

/// Where a job has its CPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) cpus: CpuSet,
    pub(super) mode: Mode,
    pub(super) purpose: Purpose,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Doing {
    /// It has not arrived, or it has ended.
    Nothing,
    /// It has arrived, and nothing was decided about it yet; or its last attempt failed.
    Queued,
    /// It waits for this reason.
    Waits(WaitReason),
    /// It has CPUs.
    Placed(Place),
    /// It was stopped and no reason is told, as when it sleeps; or its CPUs were given to others while it was being
    /// ended.
    Off,
}

impl Doing {
    /// The name and the category of the slice on the job's own track.
    pub(super) fn name(&self) -> (String, &'static str) {
        match self {
            Doing::Nothing => (String::new(), ""),
            Doing::Queued => ("queued".to_owned(), "queued"),
            Doing::Waits(reason) => (format!("waits: {}", wait_code(reason)), "wait"),
            Doing::Placed(Place {
                cpus,
                mode: Mode::Shared,
                purpose,
            }) => (
                format!("shares {}", cpus_text(cpus)),
                purpose_code(*purpose),
            ),
            Doing::Placed(Place { cpus, purpose, .. }) => {
                let how = match purpose {
                    Purpose::Run => "on",
                    Purpose::MeasureAlone => "measured alone on",
                    Purpose::LowContention => "low contention on",
                };
                (format!("{how} {}", cpus_text(cpus)), purpose_code(*purpose))
            }
            Doing::Off => ("off CPU".to_owned(), "off"),
        }
    }

    /// What is told of it in its slice.
    pub(super) fn args(&self) -> Args {
        match self {
            Doing::Waits(reason) => {
                let mut args = vec![("reason".to_owned(), Arg::Text(wait_text(reason)))];
                let numbers = serde_json::to_value(reason).unwrap_or_default();
                for (name, value) in numbers
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| *name != "why")
                {
                    flatten(name, value, &mut args);
                }
                args
            }
            Doing::Placed(place) => place.args(),
            Doing::Nothing | Doing::Queued | Doing::Off => Vec::new(),
        }
    }
}

impl Place {
    /// What is told of it in its slices.
    pub(super) fn args(&self) -> Args {
        let text = |name: &str, text: String| (name.to_owned(), Arg::Text(text));
        vec![
            text("cpus", self.cpus.to_string()),
            text("mode", mode_code(self.mode).to_owned()),
            text("purpose", purpose_code(self.purpose).to_owned()),
        ]
    }

    /// What the slice of a job is called on the tracks of its CPUs: measurements are told apart.
    pub(super) fn title(&self, job: &str) -> (String, &'static str) {
        let title = match self.purpose {
            Purpose::Run => job.to_owned(),
            Purpose::MeasureAlone => format!("{job} (measured alone)"),
            Purpose::LowContention => format!("{job} (low contention)"),
        };
        (title, purpose_code(self.purpose))
    }
}

fn cpus_text(cpus: &CpuSet) -> String {
    if cpus.len() == 1 {
        format!("CPU {cpus}")
    } else {
        format!("CPUs {cpus}")
    }
}

/// As in the series.
fn purpose_code(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "run",
        Purpose::MeasureAlone => "measure-alone",
        Purpose::LowContention => "low-contention",
    }
}

/// As in the series.
fn mode_code(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::WholeCore => "whole-core",
        Mode::Shared => "shared",
    }
}

/// A number beside a reason, by its name in the series; numbers within it by the names of both.
fn flatten(name: &str, value: &Value, args: &mut Args) {
    let arg = match value {
        Value::Bool(flag) => Arg::Flag(*flag),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), _, _) => Arg::Whole(whole),
            (None, Some(signed), _) => Arg::Signed(signed),
            (None, None, number) => Arg::Number(number.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Arg::Text(text.clone()),
        Value::Object(inner) => {
            return inner
                .iter()
                .for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, args));
        }
        Value::Null | Value::Array(_) => return,
    };
    args.push((name.to_owned(), arg));
}

/// Progress in quanta.
pub(super) fn quanta(milli: u64) -> f64 {
    milli as f64 / 1e3
}

/// Lines in an interval as bytes a second; `None` if it has no length.
pub(super) fn bytes_per_s(lines: u64, interval: Nanos) -> Option<u64> {
    let bytes = u128::from(lines) * u128::from(LINE) * 1_000_000_000;
    bytes
        .checked_div(interval.0.into())
        .map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Instructions per cycle; `None` if there was no cycle.
pub(super) fn ipc(instructions: u64, cycles: u64) -> Option<f64> {
    (cycles > 0).then(|| instructions as f64 / cycles as f64)
}

/// What was measured of a job since it was placed. What any interval lacked is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    interval: Nanos,
    /// `None` before the first interval.
    sums: Option<Sums>,
    progress_milli: Option<u64>,
}

/// CPU time, and what was counted, in the order of [`COUNTED`].
type Sums = [Option<u64>; 1 + COUNTED.len()];

const COUNTED: [Counter; 4] = [
    Counter::Cycles,
    Counter::Instructions,
    Counter::MmReads,
    Counter::MmWrites,
];

impl Figures {
    pub(super) fn add(&mut self, sample: &SampleRow) {
        self.interval += sample.interval;
        let counted = COUNTED.map(|counter| sample.counts[counter]);
        let mut new: Sums = [sample.cpu_time.map(|time| time.0); 1 + COUNTED.len()];
        new[1..].copy_from_slice(&counted);
        let old = self.sums.unwrap_or([Some(0); 1 + COUNTED.len()]);
        self.sums = Some(std::array::from_fn(|ix| old[ix]?.checked_add(new[ix]?)));
        self.progress_milli = sample.progress_milli.or(self.progress_milli);
    }

    /// The job's progress as its end tells it.
    pub(super) fn end(&mut self, progress_milli: Option<u64>) {
        self.progress_milli = progress_milli.or(self.progress_milli);
    }

    /// What is told where the slice ends; what is absent is left out.
    pub(super) fn args(&self) -> Args {
        let [cpu_time, cycles, instructions, reads, writes] = self.sums.unwrap_or_default();
        let share = cpu_time
            .filter(|_| self.interval > Nanos::ZERO)
            .map(|time| Nanos(time).share_of(self.interval));
        let ipc = instructions
            .zip(cycles)
            .and_then(|(instructions, cycles)| ipc(instructions, cycles));
        let rate = |lines: Option<u64>| {
            lines
                .and_then(|lines| bytes_per_s(lines, self.interval))
                .map(Arg::Whole)
        };
        let args = [
            ("ipc", ipc.map(Arg::Number)),
            ("read_bytes_per_s", rate(reads)),
            ("written_bytes_per_s", rate(writes)),
            ("cpu_share", share.map(Arg::Number)),
            (
                "progress_quanta",
                self.progress_milli.map(|milli| Arg::Number(quanta(milli))),
            ),
        ];
        args.into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{PerCounter, TaskId};

    /// The codes are those that the series has.
    #[test]
    fn codes_are_those_of_the_series() {
        for purpose in Purpose::ALL {
            assert_eq!(
                serde_json::to_value(purpose).unwrap(),
                purpose_code(purpose)
            );
        }
        for mode in [Mode::Exclusive, Mode::WholeCore, Mode::Shared] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode_code(mode));
        }
    }

    #[test]
    fn every_reason_has_its_words_and_all_its_numbers() {
        let reasons = WaitReason::one_of_each();
        let text: String = reasons
            .into_iter()
            .map(|reason| {
                let doing = Doing::Waits(reason);
                let args: String = doing.args()[1..]
                    .iter()
                    .map(|(name, value)| format!("  {name} = {value:?}\n"))
                    .collect();
                format!("{}\n{args}", doing.name().0)
            })
            .collect();
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
        let mut figures = Figures::default();
        assert_eq!(figures.args(), []);
        figures.add(&sample(Some(100), Some(10)));
        figures.add(&sample(Some(300), None));
        figures.end(Some(2_500));
        let shown: Vec<String> = figures
            .args()
            .iter()
            .map(|(name, value)| format!("{name} {value:?}"))
            .collect();
        assert_eq!(
            shown,
            [
                "ipc Number(1.5)",
                "cpu_share Number(0.5)",
                "progress_quanta Number(2.5)"
            ]
        );
        assert_eq!(bytes_per_s(1_000, Nanos::from_ms(500)), Some(128_000));
        assert_eq!((bytes_per_s(1, Nanos::ZERO), ipc(1, 0)), (None, None));
    }
}
