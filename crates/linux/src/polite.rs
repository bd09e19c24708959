//! How many CPUs a polite run leaves to others: a function of its state and of a reading, once a second.

/// A CPU counts as wanted by others from this share of its time. A run of cosched itself uses much less.
const LEAST_USE: f64 = 0.25;
/// Share of time, in per cent, in which tasks wait for memory (`some avg10`), from which memory counts as short.
const SHORT_OF_MEMORY: f64 = 10.0;
/// Quiet seconds before the first CPU is taken back. Another follows with each further one.
const QUIET: u32 = 10;

/// What others want.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wants {
    /// CPU time that others had, in CPUs.
    pub cpus: f64,
    /// The pressure on memory, in per cent.
    pub memory: f64,
}

/// How far a run has stepped back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Polite {
    /// The CPUs that it leaves to others.
    pub left: usize,
    /// Whether memory is short, so that no job may start.
    pub is_short: bool,
    /// The CPUs that others wanted at the last reading.
    wanted: usize,
    /// Seconds for which others have wanted fewer CPUs than they are left.
    quiet: u32,
}

impl Polite {
    /// The state a second later, for a run with so many CPUs.
    pub(crate) fn after(self, wants: Wants, cpus: usize) -> Polite {
        let wanted = wants.cpus + 1.0 - LEAST_USE;
        // NaN and negative readings count as 0.
        let wanted = (wanted as usize).min(cpus);
        let is_short = wants.memory > SHORT_OF_MEMORY;
        // One reading may be wrong: processes come and go while it is taken.
        let certain = wanted.min(self.wanted);
        let is_quiet = !is_short && wanted < self.left;
        let quiet = if is_quiet { self.quiet + 1 } else { 0 };
        let step = usize::from(is_short);
        let back = usize::from(quiet > QUIET);
        Polite {
            left: (self.left + step - back).max(certain).min(cpus),
            is_short,
            wanted,
            quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cpus(cpus: f64) -> Wants {
        Wants { cpus, memory: 0.0 }
    }

    /// The CPUs that are left to others after each of these readings.
    fn left(readings: &[f64]) -> Vec<usize> {
        let mut state = Polite::default();
        let mut all = Vec::new();
        for &reading in readings {
            state = state.after(cpus(reading), 4);
            all.push(state.left);
        }
        all
    }

    #[test]
    fn it_steps_back_at_once_and_returns_slowly() {
        assert_eq!(left(&[0.2, 0.24, 0.2]), [0, 0, 0]);
        assert_eq!(left(&[0.25, 0.25, 1.24, 1.25, 1.25]), [0, 1, 1, 1, 2]);
        assert_eq!(left(&[9.0, 9.0, 9.0]), [0, 4, 4], "none is left to the run");
        assert_eq!(
            left(&[3.0, 0.0, 3.0, 0.0]),
            [0, 0, 0, 0],
            "one reading is no reason"
        );
        let after: Vec<f64> = [[2.0; 2].as_slice(), &[0.0; 13]].concat();
        assert_eq!(left(&after)[1..], [[2; 11].as_slice(), &[1, 0, 0]].concat());
    }

    #[test]
    fn while_memory_is_short_it_gives_one_cpu_after_the_other() {
        let short = Wants {
            cpus: 0.0,
            memory: 10.1,
        };
        let mut state = Polite::default();
        for left in [1, 2, 3, 4, 4] {
            state = state.after(short, 4);
            assert_eq!((state.left, state.is_short), (left, true));
        }
        assert!(!state.after(cpus(0.0), 4).is_short);
    }

    fn readings() -> impl Strategy<Value = Vec<Wants>> {
        let reading = (-1.0..20.0f64, 0.0..30.0f64);
        let reading = reading.prop_map(|(cpus, memory)| Wants { cpus, memory });
        proptest::collection::vec(reading, 0..40)
    }

    proptest! {
        #[test]
        fn whatever_was_before_it_settles_on_what_others_want(before in readings(), others in 0.0..12.0f64, all in 1usize..9) {
            let mut state = Polite::default();
            for wants in before {
                state = state.after(wants, all);
                prop_assert!(state.left <= all);
            }
            let goal = ((others + 0.75) as usize).min(all);
            let mut lefts = vec![state.left];
            for _ in 0..QUIET as usize + all + 3 {
                state = state.after(cpus(others), all);
                lefts.push(state.left);
            }
            prop_assert_eq!(state.left, goal);
            let is_direct = lefts.is_sorted() || lefts.is_sorted_by(|a, b| a >= b);
            prop_assert!(is_direct, "{:?}", lefts);
            prop_assert_eq!(state.after(cpus(others), all).left, goal, "and stays there");
        }
    }
}
