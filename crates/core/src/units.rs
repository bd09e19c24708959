//! Quantities that cross a crate's boundary, and values that may be absent.
//!
//! Times are whole nanoseconds and bandwidths whole transactions per millisecond, so that policies compare exact
//! integers: the same inputs give the same decision on every machine, and a tie is a tie.

use crate::listed::listed_enum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A time span, or an instant counted from the start of the run, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero time; as an instant, the start of the run.
    pub const ZERO: Nanos = Nanos(0);
    /// The largest instant; later than any that occurs.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// From seconds; negative and non-finite values give zero, too large ones the maximum.
    pub fn from_s(s: f64) -> Nanos {
        Nanos((s * 1e9) as u64)
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The span from `earlier` to this instant; zero when `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This span as a share of `whole`; 0 when `whole` is zero.
    pub fn share_of(self, whole: Nanos) -> f64 {
        if whole.0 == 0 {
            0.0
        } else {
            self.0 as f64 / whole.0 as f64
        }
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        self.since(other)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

/// A transaction rate in transactions per millisecond; a transaction moves one cache line of 64 bytes.
///
/// The papers quote transactions per microsecond; a thousandth of that is the resolution here.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rate(pub u64);

impl Rate {
    /// `count` transactions within `interval`, rounded to the nearest; `None` when the interval is zero.
    pub fn from_count(count: u64, interval: Nanos) -> Option<Rate> {
        let ns = u128::from(interval.0);
        if ns == 0 {
            return None;
        }
        let per_ms = (u128::from(count) * 1_000_000 + ns / 2) / ns;
        Some(Rate(u64::try_from(per_ms).unwrap_or(u64::MAX)))
    }

    /// The transactions within `interval` at this rate.
    pub fn count_in(self, interval: Nanos) -> u64 {
        let count = u128::from(self.0) * u128::from(interval.0) / 1_000_000;
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// From transactions per microsecond, the papers' unit.
    pub fn from_per_us(per_us: f64) -> Rate {
        Rate((per_us * 1e3 + 0.5) as u64)
    }

    /// In transactions per microsecond, the papers' unit.
    pub fn per_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In bytes per second.
    pub fn bytes_per_s(self) -> f64 {
        self.per_us() * 1e6 * 64.0
    }
}

/// A time in JSON as a number of seconds.
pub(crate) mod as_seconds {
    use super::Nanos;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_s())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        f64::deserialize(from).map(Nanos::from_s)
    }
}

listed_enum! {
    /// Why a value is absent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Absence {
        /// Not requested in this run.
        NotRequested,
        /// The machine exposes no hardware performance counters (most virtual machines).
        NoCounters,
        /// The counter hardware cannot count this event.
        NoSuchEvent,
        /// The kernel denies this user access.
        NoPermission,
        /// The counters worked and then stopped.
        CountersLost,
        /// A reading was smaller than the one before it.
        WentBackwards,
        /// The task has not run long enough to be measured.
        NotYetMeasured,
        /// No interval was measured in which the task ran almost alone.
        NoSoloEstimate,
        /// Some phase of the task was never measured almost alone.
        PhaseNotMeasured,
        /// No solo trace was measured or given.
        NoSoloTrace,
        /// No solo time was measured or given.
        NoSoloTime,
        /// The task had not ended.
        NotEnded,
        /// The task never started.
        NotStarted,
        /// The task ended without having done its work.
        Failed,
        /// The machine has no energy meter that can be read.
        NoEnergyMeter,
        /// Real time has no meaning in a simulation.
        Simulated,
        /// No hardware counter was free for this event: others hold them, or there are too few.
        NoCounterFree,
        /// It counted nothing while programs ran.
        CountsNothing,
        /// It was on a hardware counter for too small a part of the time to be scaled.
        CountedTooLittle,
        /// Too many open files for more counters.
        TooManyFiles,
        /// All cores are of one type.
        OneCoreType,
        /// The kernel does not report the value.
        NotTold,
        /// The kernel's scheduling decides who runs beside the task, and on which core.
        CoRunnersUnknown,
        /// The value is within the run's own use, so it cannot be told apart from it.
        WithinOwn,
        /// Some of the tasks behind the figure lack their value.
        SomeTasksLackIt,
        /// The backend has no such mechanism.
        NotOffered,
        /// The user has not allowed that running programs are paused.
        NoPause,
        /// The program is not alone in a cgroup that was selected.
        NoOwnGroup,
        /// The program's cgroup contains cosched itself or the init process.
        HoldsCosched,
        /// Some task is the client of work on other machines, which cannot be frozen from here.
        OnlyClient,
        /// The task reads no large file, or has read it.
        NoInput,
        /// The task keeps what it reads in memory, so its work follows.
        KeepsInput,
        /// The task reads several files, and nobody knows how many.
        SeveralInputs,
    }
}

impl Absence {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Absence::NotRequested => "not asked for",
            Absence::NoCounters => "this machine has no hardware counters",
            Absence::NoSuchEvent => "the counter hardware cannot count this event",
            Absence::NoPermission => "not permitted to this user",
            Absence::CountersLost => "the counters stopped answering",
            Absence::WentBackwards => "the counter went backwards",
            Absence::NotYetMeasured => "not measured",
            Absence::NoSoloEstimate => "never ran almost alone",
            Absence::PhaseNotMeasured => "not all of its phases ran almost alone",
            Absence::NoSoloTrace => "no trace of a solo run (use --solo)",
            Absence::NoSoloTime => "no solo time (use --solo)",
            Absence::NotEnded => "did not end",
            Absence::NotStarted => "did not start",
            Absence::Failed => "the job failed",
            Absence::NoEnergyMeter => "no energy meter",
            Absence::Simulated => "simulated",
            Absence::NoCounterFree => "no hardware counter was free for it",
            Absence::CountsNothing => "it counted nothing while programs ran",
            Absence::CountedTooLittle => {
                "it was on a hardware counter for too small a part of the time"
            }
            Absence::TooManyFiles => "too many files were open (`ulimit -Hn` raises the limit)",
            Absence::OneCoreType => "all cores are of one type",
            Absence::NotTold => "the kernel does not report it",
            Absence::CoRunnersUnknown => "the kernel decides who runs beside it",
            Absence::WithinOwn => {
                "no process that was waited for took more than cosched itself, from which it can't be told"
            }
            Absence::SomeTasksLackIt => "some jobs lack it",
            Absence::NotOffered => "this backend does not offer it",
            Absence::NoPause => "nothing that runs already is paused unless --pause is given",
            Absence::NoOwnGroup => {
                "a program is paused by its own cgroup alone, so select it by --unit or --cgroup"
            }
            Absence::HoldsCosched => {
                "a cgroup with cosched or the init process in it is never paused; select one below it"
            }
            Absence::OnlyClient => {
                "freezing `srun` would stop the client alone, while its work on the nodes goes on"
            }
            Absence::NoInput => "it reads no file of 1 MiB or more now",
            Absence::KeepsInput => "it keeps its input in memory, so its work follows",
            Absence::SeveralInputs => "it reads several files, or one again",
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A value, or the reason why there is none. Never a zero that stands for "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading<T> {
    /// The value.
    Value(T),
    /// Why it is absent.
    Absent(Absence),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::Absent(_) => None,
        }
    }

    /// The reason of absence, if there is no value.
    pub fn absence(&self) -> Option<Absence> {
        match self {
            Reading::Value(_) => None,
            Reading::Absent(why) => Some(*why),
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Reading::Value(value) => Reading::Value(value),
            Reading::Absent(why) => Reading::Absent(*why),
        }
    }

    /// Applies `f` to the value, if there is one.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Value(value) => Reading::Value(f(value)),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }

    /// Applies `f` to the value, if there is one. `f` may return a reason of its own.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Reading::Value(value) => f(value),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }

    /// Whether there is a value.
    pub fn is_value(&self) -> bool {
        matches!(self, Reading::Value(_))
    }

    /// The option's value; without one, absent for the reason `why`.
    pub fn from_option(value: Option<T>, why: Absence) -> Reading<T> {
        value.map_or(Reading::Absent(why), Reading::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_rounded_and_has_no_zero_interval() {
        assert_eq!(Rate::from_count(19, Nanos(1_000)), Some(Rate(19_000)));
        assert_eq!(Rate::from_count(1, Nanos::from_ms(3)), Some(Rate(0)));
        assert_eq!(Rate::from_count(2, Nanos::from_ms(3)), Some(Rate(1)));
        assert_eq!(Rate::from_count(5, Nanos::ZERO), None);
        assert_eq!(Rate::from_count(u64::MAX, Nanos(1)), Some(Rate(u64::MAX)));
        assert_eq!(Rate::from_per_us(3.5), Rate(3_500));
    }

    #[test]
    fn times_saturate() {
        assert_eq!(Nanos(1) - Nanos(2), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos::from_s(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_s(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_s(0.2), Nanos::from_ms(200));
    }

    #[test]
    fn readings_keep_their_reason() {
        let absent: Reading<u64> = Reading::Absent(Absence::NoCounters);
        assert_eq!(absent.map(|v| v + 1), Reading::Absent(Absence::NoCounters));
        let text = serde_json::to_string(&absent).unwrap();
        assert_eq!(text, r#"{"absent":"no-counters"}"#);
        assert_eq!(serde_json::from_str::<Reading<u64>>(&text).unwrap(), absent);
    }
}
