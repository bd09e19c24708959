//! The pace of a job's visible progress, and its time left while the pace is steady.

use crate::units::{Absence, Nanos, Reading};
use crate::visible::Visible;

/// Maximum number of marks. One more, and every second one goes.
const MOST_MARKS: usize = 16;
/// Least number of windows between marks that shows whether a pace is steady.
const LEAST_WINDOWS: usize = 3;
/// Greatest relative spread of a steady pace: standard deviation over the windows by mean.
const STEADY: f64 = 0.25;

/// The pace of a job.
#[derive(Debug)]
pub struct Pace {
    last: Reading<Visible>,
    marks: Vec<Mark>,
    /// Time since its start by time placed, at the last look.
    stretch: f64,
}

/// A point of its progress.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Time placed in seconds.
    ran_s: f64,
    share: f64,
}

impl Mark {
    fn rate_to(self, later: Mark) -> f64 {
        (later.share - self.share) / (later.ran_s - self.ran_s)
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            last: Reading::Absent(Absence::NotYetMeasured),
            marks: Vec::new(),
            stretch: 1.0,
        }
    }
}

impl Pace {
    /// Takes in its visible progress after `ran` of time placed and `passed` since its start.
    pub fn saw(&mut self, passed: Nanos, ran: Nanos, seen: Reading<Visible>) {
        self.last = seen;
        let Reading::Value(seen) = seen else {
            self.marks.clear();
            return;
        };
        let mark = Mark {
            ran_s: ran.as_s(),
            share: seen.share,
        };
        if let Some(last) = self.marks.last() {
            if mark.ran_s < last.ran_s || mark.share < last.share {
                // It has started again, or there is more to do than before.
                self.marks.clear();
            } else if mark.ran_s == last.ran_s {
                return;
            }
        }
        self.stretch = passed.share_of(ran);
        self.marks.push(mark);
        if self.marks.len() > MOST_MARKS {
            let mut is_odd = false;
            self.marks.retain(|_| {
                is_odd = !is_odd;
                is_odd
            });
        }
    }

    /// Share of its work that is done after `ran` of time placed, and the source of the share.
    ///
    /// # Errors
    /// Why it is not visible.
    pub fn share(&self, ran: Nanos) -> Result<(f64, &'static str), &'static str> {
        let seen = match self.last {
            Reading::Value(seen) => seen,
            Reading::Absent(why) => return Err(why.text()),
        };
        let share = match self.steady() {
            Ok((last, rate)) => last.share + rate * (ran.as_s() - last.ran_s).max(0.0),
            Err(_) => seen.share,
        };
        Ok((share.min(1.0), seen.from.into()))
    }

    /// Seconds until its end, if it goes on to be placed as much as so far.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn left_s(&self, ran: Nanos) -> Result<f64, &'static str> {
        Ok(self.placed_left_s(ran)? * self.stretch)
    }

    /// Seconds of time placed that it still needs after `ran`.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn placed_left_s(&self, ran: Nanos) -> Result<f64, &'static str> {
        let (share, _) = self.share(ran)?;
        let (_, rate) = self.steady()?;
        Ok((1.0 - share) / rate)
    }

    /// The last mark, and the rate in the later half of the windows.
    ///
    /// # Errors
    /// Why the pace is not steady.
    fn steady(&self) -> Result<(Mark, f64), &'static str> {
        let windows = self.marks.len().saturating_sub(1);
        if windows < LEAST_WINDOWS {
            return Err("too little has been done to tell");
        }
        let (middle, last) = (self.marks[windows / 2], self.marks[windows]);
        let rate = middle.rate_to(last);
        // Progress in large steps stands still in between.
        if rate <= 0.0 || self.spread() > STEADY {
            return Err("its pace varies too much");
        }
        Ok((last, rate))
    }

    /// The relative spread of the rate over the windows.
    fn spread(&self) -> f64 {
        let (Some(&first), Some(&last)) = (self.marks.first(), self.marks.last()) else {
            return f64::INFINITY;
        };
        let mean = first.rate_to(last);
        if mean <= 0.0 {
            return f64::INFINITY;
        }
        let mut sum = 0.0;
        for pair in self.marks.windows(2) {
            let deviation = pair[0].rate_to(pair[1]) - mean;
            sum += deviation * deviation * (pair[1].ran_s - pair[0].ran_s);
        }
        (sum / (last.ran_s - first.ran_s)).sqrt() / mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visible::VisibleFrom;

    fn seen(share: f64) -> Reading<Visible> {
        let from = VisibleFrom::Input;
        Reading::Value(Visible { share, from })
    }

    /// The pace of a job with these shares, a second apart, placed for half of the time.
    fn pace(shares: &[f64]) -> Pace {
        let mut pace = Pace::default();
        for (s, &share) in (1u32..).map(f64::from).zip(shares) {
            pace.saw(Nanos::from_s(2.0 * s), Nanos::from_s(s), seen(share));
        }
        pace
    }

    #[test]
    fn a_steady_pace_tells_the_time_left() {
        let steady: Vec<f64> = (1..=50).map(|s| f64::from(s) / 100.0).collect();
        let at = |n: usize, ran_s: f64| pace(&steady[..n]).left_s(Nanos::from_s(ran_s));
        assert!(at(3, 3.0).is_err(), "two windows");
        for n in [4, 16, 17, 18, 40, 50] {
            let left_s = at(n, n as f64).unwrap();
            assert!((left_s - 2.0 * (100 - n) as f64).abs() < 1e-6, "{left_s}");
        }
        let later_s = at(50, 53.0).unwrap();
        assert!((later_s - 94.0).abs() < 1e-6, "{later_s}");
        assert_eq!(at(50, 150.0), Ok(0.0));
        let (share, _) = pace(&steady).share(Nanos::from_s(53.0)).unwrap();
        assert!((share - 0.53).abs() < 1e-6, "{share}");
    }

    #[test]
    fn an_uneven_pace_tells_none() {
        let varies = "its pace varies too much";
        let uneven = [0.1, 0.1, 0.2, 0.4, 0.4, 0.6];
        let pace = pace(&uneven);
        assert_eq!(pace.share(Nanos::from_s(9.0)), Ok((0.6, "input")));
        assert_eq!(pace.left_s(Nanos::from_s(6.0)), Err(varies));
        assert_eq!(
            self::pace(&[0.3; 9]).left_s(Nanos::from_s(9.0)),
            Err(varies)
        );
    }

    #[test]
    fn between_large_steps_nothing_is_told() {
        let mut pace = Pace::default();
        for s in 1..=3_000u32 {
            let share = f64::from(s / 60) / 100.0;
            let at = Nanos::from_s(f64::from(s));
            pace.saw(at, at, seen(share));
            let left_s = pace.placed_left_s(at);
            assert!(
                left_s.is_err() || left_s.is_ok_and(f64::is_finite),
                "{s} {left_s:?}"
            );
        }
    }

    #[test]
    fn what_was_seen_of_other_work_is_forgotten() {
        let mut pace = pace(&[0.1, 0.2, 0.3, 0.4]);
        let at = Nanos::from_s;
        assert!(pace.left_s(at(4.0)).is_ok());
        pace.saw(at(10.0), at(5.0), seen(0.3));
        assert!(pace.left_s(at(5.0)).is_err(), "its input grew");
        let why = Absence::KeepsInput;
        pace.saw(at(12.0), at(6.0), Reading::Absent(why));
        assert_eq!(pace.share(at(6.0)), Err(why.text()));
    }
}
