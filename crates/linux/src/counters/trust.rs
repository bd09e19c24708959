//! Which events are believed when they say that nothing happened.
//!
//! Some hypervisors and broken event tables offer events that always count 0. A job may really read nothing from memory for
//! a while, but all jobs of a run together do not.

use cosched_core::{Counter, Nanos, PerCounter};
use std::collections::BTreeSet;

/// Time on counters, over all jobs, after which an event that counts nothing is not believed any more.
const LONGEST_NOTHING: Nanos = Nanos::from_ms(2_000);

/// Belief in each event, over all jobs of a run.
#[derive(Debug)]
pub(crate) struct Trust {
    /// Time in which it has counted nothing, since it last counted something.
    nothing_for: PerCounter<Nanos>,
}

impl Trust {
    /// Believes all events but those of which nothing has been seen yet.
    pub(crate) fn new(unproven: &BTreeSet<Counter>) -> Trust {
        let nothing_for = PerCounter::from_fn(|counter| match unproven.contains(&counter) {
            true => LONGEST_NOTHING,
            false => Nanos::ZERO,
        });
        Trust { nothing_for }
    }

    /// Notes an interval of a job: the time on a counter, and the count.
    pub(crate) fn note(&mut self, counter: Counter, (running, count): (Nanos, u64)) {
        let nothing_for = &mut self.nothing_for[counter];
        *nothing_for = match count {
            0 => *nothing_for + running,
            _ => Nanos::ZERO,
        };
    }

    /// Whether the event is believed.
    pub(crate) fn believes(&self, counter: Counter) -> bool {
        self.nothing_for[counter] < LONGEST_NOTHING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_nothing_for_long_is_not_believed_until_it_counts() {
        let unproven = [Counter::MmReads].into();
        let mut trust = Trust::new(&unproven);
        let [reads, llc] = [Counter::MmReads, Counter::LlcAccesses];
        assert!(!trust.believes(reads) && trust.believes(llc));
        trust.note(reads, (Nanos::from_ms(1), 3));
        assert!(trust.believes(reads));
        let half = Nanos(LONGEST_NOTHING.0 / 2);
        trust.note(llc, (half, 0));
        assert!(trust.believes(llc));
        trust.note(llc, (half, 0));
        assert!(!trust.believes(llc) && trust.believes(reads));
    }
}
