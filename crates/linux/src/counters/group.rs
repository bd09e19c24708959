//! Interprets counter reads: decoding, scaling and summing. It is pure, so tests need no counters.

use cosched_core::{Absence, Nanos, Reading};

/// One event's reading: how long it was requested, how long the hardware counted it, and the count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventReading {
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds on a hardware counter; less than `enabled` if the kernel multiplexes counters.
    pub running: u64,
    /// Events counted while running.
    pub value: u64,
}

/// Decodes a group read, `{ u64 nr, time_enabled, time_running, value[nr] }`, of `members` events in the order of
/// opening. `None` if the kernel returns something else, as it does for a group that fell apart.
pub(crate) fn decode_group(words: &[u64], members: usize) -> Option<Vec<EventReading>> {
    let [nr, enabled, running, values @ ..] = words else {
        return None;
    };
    if *nr != members as u64 || values.len() != members {
        return None;
    }
    Some(
        values
            .iter()
            .map(|&value| EventReading {
                enabled: *enabled,
                running: *running,
                value,
            })
            .collect(),
    )
}

/// Time on CPUs that an event may wait for a counter, in nanoseconds: if it has mostly had one, and if the kernel shares counters
/// out. Among dozens of events each waits for up to half a second.
const LONGEST_WAIT: u64 = 200_000_000;
const LONGEST_SHARED_WAIT: u64 = 800_000_000;

/// The share of the time on a counter below which an event shares it with others.
const SHARED: f64 = 0.8;

/// Greatest relative standard error of a total that is scaled: one with more may well be off by 3 %.
const MOST_ERROR: f64 = 0.01;
/// The same for an event that had a counter for `OFTEN` of the time or more. Its turns are so close together that it is off by less
/// than estimated: in a guest by 0.4 to 0.9 %, where the estimate was 0.8 to 1.5 %.
const MOST_ERROR_OFTEN: f64 = 0.025;
const OFTEN: f64 = 0.4;

/// Time on CPUs in which every program executes some instruction in user mode, however long its system calls take.
const LONGEST_STANDSTILL: u64 = 100_000_000;

/// The running total of one kind of event over all PMUs that count it.
///
/// A core belongs to one PMU only. So on a hybrid machine each PMU runs for a part of the time, and together they run
/// all the time: the interval is the longest time that any was enabled, and their running times add up. With one PMU
/// this is the usual scaling by enabled / running (perf_event_open(2)). Each interval is scaled by itself, so that the
/// total never falls.
#[derive(Debug, Default)]
pub(crate) struct EventTotal {
    last: Vec<EventReading>,
    total: u64,
    /// Whether the event happens whenever a program runs, as cycles and instructions do.
    always_happens: bool,
    /// Whether some interval was scaled by more than a hundredth.
    pub multiplexed: bool,
    /// Time on CPUs since the start, by the counters' own clock.
    clock: u64,
    /// Why a part of the time is not in the total.
    gap: Option<Absence>,
    in_gap: bool,
    scaling: Scaling,
    /// Time on a counter, and the count, in the last interval.
    pub interval: (Nanos, u64),
}

/// Time on a counter that counts as one look at the rate, in nanoseconds. Turns last some milliseconds, but neighbouring ones often
/// meet the same phase of the program.
const LOOK: f64 = 20e6;

/// How far counts that were scaled may be off: by how much the rate differs between neighbouring intervals, for how long it was
/// assumed, and from how many looks. Each interval is scaled by its own rate, so that slow changes of the rate are no error
/// (successive differences, as for systematic samples: Wolter, "Introduction to Variance Estimation", chapter 8).
#[derive(Debug, Default)]
struct Scaling {
    /// Of the intervals: the sums of their times, and of those on a counter.
    enabled: f64,
    running: f64,
    /// The mean rate, and half of the squared differences between neighbours, by the times on a counter.
    mean: f64,
    squares: f64,
    /// The rate of the last interval.
    last: Option<f64>,
    /// Sum over the intervals of the squared time off the counter by the number of looks.
    assumed_squares: f64,
}

impl Scaling {
    fn add(&mut self, enabled: u64, running: u64, value: u64) {
        if running == 0 {
            return;
        }
        let (weight, rate) = (running as f64, value as f64 / running as f64);
        let difference = rate - self.last.unwrap_or(rate);
        self.last = Some(rate);
        self.enabled += enabled as f64;
        self.running += weight;
        self.mean += (rate - self.mean) * weight / self.running;
        self.squares += weight * difference * difference / 2.0;
        let assumed = enabled.saturating_sub(running) as f64;
        let looks = (weight / LOOK).max(1.0);
        self.assumed_squares += assumed * assumed / looks;
    }

    /// Whether the event had a counter for so little of the time that others must have had turns all along.
    fn is_shared(&self) -> bool {
        self.running < SHARED * self.enabled
    }

    fn most_error(&self) -> f64 {
        match self.running < OFTEN * self.enabled {
            true => MOST_ERROR,
            false => MOST_ERROR_OFTEN,
        }
    }

    /// The standard error of the total.
    fn error(&self) -> f64 {
        if self.running == 0.0 {
            return 0.0;
        }
        (self.squares / self.running * self.assumed_squares).sqrt()
    }
}

impl EventTotal {
    /// The total of an event that happens whenever a program runs. If it is not counted for long, the counter stands still.
    pub(crate) fn of_what_always_happens() -> EventTotal {
        EventTotal {
            always_happens: true,
            ..EventTotal::default()
        }
    }

    /// Adds the counts since the last call; `now` has one reading per PMU, always in the same order.
    ///
    /// An interval in which it never got a counter is absent. A later one makes up for it, unless it was long: then the
    /// total has a [gap](EventTotal::gap).
    pub(crate) fn update(&mut self, now: &[EventReading]) -> Reading<u64> {
        self.last.resize(now.len(), EventReading::default());
        self.interval = (Nanos::ZERO, 0);
        let (mut enabled, mut running, mut value) = (0u64, 0u64, 0u64);
        for (now, last) in now.iter().zip(&self.last) {
            let parts = (
                now.enabled.checked_sub(last.enabled),
                now.running.checked_sub(last.running),
                now.value.checked_sub(last.value),
            );
            let (Some(e), Some(r), Some(v)) = parts else {
                return Reading::Absent(Absence::WentBackwards);
            };
            enabled = enabled.max(e);
            running += r;
            value += v;
        }
        self.clock = clock_of(now);
        if let Some(why) = self.uncounted(enabled, running, value) {
            // The baseline stays, so that a later interval includes this one.
            return match why {
                Absence::CountsNothing if !self.in_gap => Reading::Value(self.total),
                _ => Reading::Absent(why),
            };
        }
        if let Some(why) = self.gap.filter(|_| std::mem::take(&mut self.in_gap)) {
            // It counts again, since some moment in this interval.
            self.last.copy_from_slice(now);
            return Reading::Absent(why);
        }
        self.last.copy_from_slice(now);
        self.interval = (Nanos(running), value);
        self.scaling.add(enabled, running, value);
        let scaled = if running < enabled {
            self.multiplexed |= u128::from(running) * 100 < u128::from(enabled) * 99;
            u128::from(value) * u128::from(enabled) / u128::from(running)
        } else {
            value.into()
        };
        self.total = self
            .total
            .saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));
        Reading::Value(self.total)
    }

    /// The kernel did not answer this time.
    pub(crate) fn unread(&mut self) -> Reading<u64> {
        self.interval = (Nanos::ZERO, 0);
        Reading::Absent(Absence::CountersLost)
    }

    /// Why nothing was counted since the baseline, if so. A long time of that is a gap.
    fn uncounted(&mut self, enabled: u64, running: u64, value: u64) -> Option<Absence> {
        let (why, is_long) = if running == 0 && enabled > 0 {
            let most = match self.scaling.is_shared() {
                true => LONGEST_SHARED_WAIT,
                false => LONGEST_WAIT,
            };
            (Absence::NoCounterFree, enabled >= most)
        } else if self.always_happens && value == 0 && running > 0 {
            (Absence::CountsNothing, running >= LONGEST_STANDSTILL)
        } else {
            return None;
        };
        if is_long {
            self.gap = Some(why);
            self.in_gap = true;
        }
        Some(why)
    }

    /// Why a part of the time is not in the total; `None` if it is whole.
    pub(crate) fn gap(&self) -> Option<Absence> {
        self.gap
    }

    /// Whether it has counted nothing for long, though it always happens.
    pub(crate) fn stands_still(&self) -> bool {
        self.in_gap && self.gap == Some(Absence::CountsNothing)
    }

    /// The total at the end of the job: of all of its time, or absent if too little of it was counted.
    pub(crate) fn at_end(&self) -> Reading<u64> {
        let is_rough = self.scaling.error() > self.scaling.most_error() * self.total as f64;
        if let Some(why) = self.gap.or(is_rough.then_some(Absence::CountedTooLittle)) {
            return Reading::Absent(why);
        }
        if self.scaling.running == 0.0 && self.clock > 0 {
            return Reading::Absent(Absence::NoCounterFree);
        }
        // The last few milliseconds may lack a turn.
        let uncounted = self.clock.saturating_sub(clock_of(&self.last)) as f64;
        let more = (self.scaling.mean * uncounted) as u64;
        Reading::Value(self.total.saturating_add(more))
    }

    /// Time on CPUs since the start. It moves with the counts, while the kernel's accounts move by ticks.
    pub(crate) fn clock(&self) -> Nanos {
        Nanos(self.clock)
    }
}

/// The time on CPUs in these readings, one per PMU.
fn clock_of(now: &[EventReading]) -> u64 {
    let enabled = now.iter().map(|counted| counted.enabled).max();
    let running: u64 = now.iter().map(|counted| counted.running).sum();
    enabled.unwrap_or(0).max(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(enabled: u64, running: u64, value: u64) -> EventReading {
        EventReading {
            enabled,
            running,
            value,
        }
    }

    #[test]
    fn groups_are_decoded_in_order_or_not_at_all() {
        let words = [2, 100, 50, 7, 8];
        assert_eq!(
            decode_group(&words, 2).unwrap(),
            [counted(100, 50, 7), counted(100, 50, 8)]
        );
        for (words, members) in [
            (&words[..], 3),
            (&words[..4], 2),
            (&words[..2], 2),
            (&[][..], 0),
        ] {
            assert_eq!(decode_group(words, members), None, "{words:?}");
        }
    }

    #[test]
    fn counts_that_ran_all_the_time_are_exact() {
        let mut total = EventTotal::default();
        assert_eq!(total.update(&[counted(0, 0, 0)]), Reading::Value(0));
        assert_eq!(total.update(&[counted(10, 10, 7)]), Reading::Value(7));
        assert_eq!(total.update(&[counted(10, 10, 7)]), Reading::Value(7));
        assert!(!total.multiplexed);
    }

    #[test]
    fn intervals_are_scaled_by_themselves() {
        let mut total = EventTotal::default();
        assert_eq!(
            total.update(&[counted(100, 100, 1000)]),
            Reading::Value(1000)
        );
        assert_eq!(
            total.update(&[counted(200, 150, 1500)]),
            Reading::Value(2000)
        );
        assert!(total.multiplexed);
        assert_eq!(
            total.update(&[counted(300, 250, 2500)]),
            Reading::Value(3000)
        );
    }

    #[test]
    fn an_interval_without_counter_is_absent_and_made_up_for_later() {
        let mut total = EventTotal::default();
        assert_eq!(total.update(&[counted(100, 100, 10)]), Reading::Value(10));
        assert_eq!(
            total.update(&[counted(200, 100, 10)]),
            Reading::Absent(Absence::NoCounterFree)
        );
        assert_eq!(total.update(&[counted(300, 200, 20)]), Reading::Value(30));
        assert_eq!(
            total.update(&[counted(300, 200, 19)]),
            Reading::Absent(Absence::WentBackwards)
        );
        assert_eq!(total.gap(), None);
    }

    #[test]
    fn a_long_time_without_counter_is_a_gap_and_counting_goes_on_behind_it() {
        let mut total = EventTotal::default();
        total.update(&[counted(100, 100, 10)]);
        let lost = 100 + LONGEST_WAIT;
        let waits = total.update(&[counted(lost, 100, 10)]);
        assert_eq!(waits, Reading::Absent(Absence::NoCounterFree));
        assert_eq!(total.gap(), Some(Absence::NoCounterFree));
        let returns = total.update(&[counted(lost + 100, 150, 15)]);
        assert_eq!(returns, Reading::Absent(Absence::NoCounterFree));
        let goes_on = total.update(&[counted(lost + 200, 250, 25)]);
        assert_eq!(goes_on, Reading::Value(20));
        assert_eq!(total.clock(), Nanos(lost + 200));
    }

    #[test]
    fn a_total_that_is_scaled_holds_while_the_rate_is_steady_or_well_sampled() {
        // A tenth of each of 20 intervals is counted, at rates that alternate.
        let lack_at = |rates: [u64; 2], share: u64| {
            let mut total = EventTotal::default();
            let mut now = EventReading::default();
            for interval in 0..20 {
                now.enabled += 1_000;
                now.running += share;
                now.value += share * rates[interval % 2];
                total.update(&[now]);
            }
            total.at_end().absence()
        };
        assert_eq!(lack_at([5, 5], 100), None);
        assert_eq!(lack_at([4, 6], 100), Some(Absence::CountedTooLittle));
        assert_eq!(lack_at([4, 6], 900), None);
        assert_eq!(lack_at([1, 9], 1_000), None, "all of it was counted");
    }

    #[test]
    fn at_the_end_the_last_time_without_a_turn_is_made_up_for() {
        let mut total = EventTotal::default();
        total.update(&[counted(100, 50, 500)]);
        total.update(&[counted(120, 50, 500)]);
        assert_eq!(total.at_end(), Reading::Value(1_200));
        let mut never = EventTotal::default();
        never.update(&[counted(100, 0, 0)]);
        assert_eq!(never.at_end(), Reading::Absent(Absence::NoCounterFree));
    }

    #[test]
    fn a_counter_that_stands_still_counts_nothing() {
        let still = |total: &mut EventTotal, until: u64| total.update(&[counted(until, until, 10)]);
        let mut total = EventTotal::of_what_always_happens();
        total.update(&[counted(100, 100, 10)]);
        let short = still(&mut total, LONGEST_STANDSTILL);
        assert_eq!((short, total.gap()), (Reading::Value(10), None));
        let long = still(&mut total, 100 + LONGEST_STANDSTILL);
        assert_eq!(long, Reading::Absent(Absence::CountsNothing));
        assert_eq!(total.gap(), Some(Absence::CountsNothing));
        // Other events may be rare.
        let mut rare = EventTotal::default();
        rare.update(&[counted(100, 100, 10)]);
        assert_eq!(
            still(&mut rare, 100 + LONGEST_STANDSTILL),
            Reading::Value(10)
        );
    }

    #[test]
    fn the_pmus_of_a_hybrid_machine_share_the_time() {
        let mut total = EventTotal::default();
        // 60 on a big core, 40 on a small one: nothing was missed, so nothing is scaled.
        assert_eq!(
            total.update(&[counted(100, 60, 600), counted(100, 40, 200)]),
            Reading::Value(800)
        );
        assert!(!total.multiplexed);
        // Then only on small cores, half of the time without a counter.
        assert_eq!(
            total.update(&[counted(200, 60, 600), counted(200, 90, 450)]),
            Reading::Value(800 + 500)
        );
        assert!(total.multiplexed);
        // If the kernel stops a PMU's clock while the job is on other cores, nothing is scaled either.
        let mut total = EventTotal::default();
        assert_eq!(
            total.update(&[counted(60, 60, 600), counted(40, 40, 200)]),
            Reading::Value(800)
        );
        assert!(!total.multiplexed);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn totals_never_fall_and_scale_a_steady_rate_right(
            steps in prop::collection::vec((1u64..1_000_000, 0u64..=100), 1..20),
            rate in 0u64..50,
        ) {
            let mut total = EventTotal::default();
            let (mut now, mut before) = (EventReading::default(), 0);
            let mut missed = false;
            for (span, percent) in steps {
                let running = span * percent / 100;
                now.enabled += span;
                now.running += running;
                now.value += running * rate;
                match total.update(&[now]) {
                    Reading::Value(value) => {
                        prop_assert!(value >= before);
                        // Each scaled interval is rounded down by less than one.
                        prop_assert!(value <= now.enabled * rate && now.enabled * rate - value <= 20);
                        before = value;
                        missed = false;
                    }
                    Reading::Absent(why) => {
                        prop_assert_eq!(why, Absence::NoCounterFree);
                        missed = true;
                    }
                }
            }
            prop_assert!(missed || before > 0 || rate == 0);
        }
    }
}
