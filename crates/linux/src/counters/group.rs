//! Interprets counter reads: decoding, scaling and summing. It is pure, so tests need no counters.

use cosched_core::{Absence, Reading};

/// One event's reading: how long it was requested, how long the hardware counted it, and the count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds on a hardware counter; less than `enabled` if the kernel multiplexes counters.
    pub running: u64,
    /// Events counted while running.
    pub value: u64,
}

/// Decodes a group read, `{ u64 nr, time_enabled, time_running, value[nr] }`, of `members` events in the order of
/// opening. `None` if the kernel returns something else, as it does for a group that fell apart.
pub(crate) fn decode_group(words: &[u64], members: usize) -> Option<Vec<Counted>> {
    let [nr, enabled, running, values @ ..] = words else {
        return None;
    };
    if *nr != members as u64 || values.len() != members {
        return None;
    }
    Some(
        values
            .iter()
            .map(|&value| Counted {
                enabled: *enabled,
                running: *running,
                value,
            })
            .collect(),
    )
}

/// The running total of one kind of event over all PMUs that count it.
///
/// A core belongs to one PMU only. So on a hybrid machine each PMU runs for a part of the time, and together they run
/// all the time: the interval is the longest time that any was enabled, and their running times add up. With one PMU
/// this is the usual scaling by enabled / running (perf_event_open(2)). Each interval is scaled by itself, so that the
/// total never falls.
#[derive(Debug, Default)]
pub(crate) struct Total {
    last: Vec<Counted>,
    total: u64,
    /// Whether some interval was scaled by more than a hundredth.
    pub multiplexed: bool,
}

impl Total {
    /// Adds the counts since the last call; `now` has one reading per PMU, always in the same order.
    pub(crate) fn update(&mut self, now: &[Counted]) -> Reading<u64> {
        self.last.resize(now.len(), Counted::default());
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
        if running == 0 && enabled > 0 {
            // It never got a counter. The baseline stays, so that the next interval includes this one.
            return Reading::Absent(Absence::CountersLost);
        }
        self.last.copy_from_slice(now);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(enabled: u64, running: u64, value: u64) -> Counted {
        Counted {
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
        let mut total = Total::default();
        assert_eq!(total.update(&[counted(0, 0, 0)]), Reading::Value(0));
        assert_eq!(total.update(&[counted(10, 10, 7)]), Reading::Value(7));
        assert_eq!(total.update(&[counted(10, 10, 7)]), Reading::Value(7));
        assert!(!total.multiplexed);
    }

    #[test]
    fn intervals_are_scaled_by_themselves() {
        let mut total = Total::default();
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
        let mut total = Total::default();
        assert_eq!(total.update(&[counted(100, 100, 10)]), Reading::Value(10));
        assert_eq!(
            total.update(&[counted(200, 100, 10)]),
            Reading::Absent(Absence::CountersLost)
        );
        assert_eq!(total.update(&[counted(300, 200, 20)]), Reading::Value(30));
        assert_eq!(
            total.update(&[counted(300, 200, 19)]),
            Reading::Absent(Absence::WentBackwards)
        );
    }

    #[test]
    fn the_pmus_of_a_hybrid_machine_share_the_time() {
        let mut total = Total::default();
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
        let mut total = Total::default();
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
            let mut total = Total::default();
            let (mut now, mut before) = (Counted::default(), 0);
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
                        prop_assert_eq!(why, Absence::CountersLost);
                        missed = true;
                    }
                }
            }
            prop_assert!(missed || before > 0 || rate == 0);
        }
    }
}
