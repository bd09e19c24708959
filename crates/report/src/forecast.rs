//! The time left of a run by what is expected of its jobs, corrected by what they took.
//!
//! What is expected may be wrong. The jobs that have ended tell how far:
//!
//! - What they took, over what was expected of them, is a factor for all others. A memory that is wrong by the same factor
//!   everywhere is right again after the first job.
//! - How much that ratio differs from job to job, against how much jobs are expected to differ, tells what the memory is
//!   worth. If it is worth nothing, others are taken to need the mean of what jobs took, as if nothing were known.
//!
//! A job that runs for longer than expected is thought to need as much again as it has exceeded that by.

use cosched_core::{Nanos, TaskId};

/// What is expected of the jobs of a run.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    /// By the tasks' numbers.
    jobs: Vec<Job>,
    /// The jobs of which something is known, the longest first.
    longest: Vec<u32>,
    /// As many of these at the beginning have ended.
    passed: usize,
    /// The sum of what is expected of the jobs that have not ended, in seconds.
    ahead_s: f64,
    /// Jobs of which something is known and that have not ended, and others that have not.
    known: usize,
    unknown: usize,
    /// What the jobs that ended well took, over what was expected of them.
    fit: Fit,
    /// What those took of which nothing was known, and their number.
    unforeseen_s: f64,
    unforeseen: usize,
    /// What all jobs that ended took, in seconds.
    done_s: f64,
}

/// What was expected of jobs and what they took, in seconds.
#[derive(Clone, Debug, Default)]
struct Fit {
    n: f64,
    expected: f64,
    took: f64,
    /// The sum of the logarithms of their ratios, and that of the squares of these.
    ratios: f64,
    squares: f64,
    /// The variance of the logarithm of what is expected, over all jobs.
    claimed: f64,
}

/// Shorter times are noise.
const LEAST_S: f64 = 0.01;

impl Fit {
    fn add(&mut self, expected_s: f64, took_s: f64) {
        let ratio = (took_s.max(LEAST_S) / expected_s.max(LEAST_S)).ln();
        self.n += 1.0;
        self.expected += expected_s;
        self.took += took_s;
        self.ratios += ratio;
        self.squares += ratio * ratio;
    }

    /// The time of a job of which nothing is expected, and the time that each expected second adds to it.
    fn line(&self) -> (f64, f64) {
        if self.n == 0.0 || self.expected <= 0.0 {
            return (0.0, 1.0);
        }
        let mean = self.ratios / self.n;
        let error = (self.squares / self.n - mean * mean).max(0.0);
        let worth = if error > 0.0 {
            (1.0 - error / self.claimed).clamp(0.0, 1.0)
        } else {
            1.0
        };
        (
            (1.0 - worth) * self.took / self.n,
            worth * self.took / self.expected,
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    expected_s: Option<f64>,
    ended: bool,
}

/// What a run looks like at an instant.
pub(crate) struct Now<'a> {
    /// Time since the start of the run.
    pub(crate) elapsed: Nanos,
    /// CPUs of the run.
    pub(crate) cpus: usize,
    /// The jobs that are live and have not ended, and the time for which each was placed, in ascending order.
    pub(crate) live: &'a [(TaskId, Nanos)],
}

impl Forecast {
    /// A forecast from what is expected of each job; `None` where that is known of fewer than half of them.
    pub(crate) fn new(expected: impl Iterator<Item = Option<Nanos>>) -> Option<Forecast> {
        let jobs: Vec<Job> = expected
            .map(|time| Job {
                expected_s: time.map(Nanos::as_s),
                ended: false,
            })
            .collect();
        let time = |id: &u32| jobs[*id as usize].expected_s.unwrap_or(0.0);
        let mut longest: Vec<u32> = (0..jobs.len() as u32)
            .filter(|id| jobs[*id as usize].expected_s.is_some())
            .collect();
        if longest.is_empty() || longest.len() * 2 < jobs.len() {
            return None;
        }
        longest.sort_by(|a, b| time(b).total_cmp(&time(a)));
        let ahead_s: f64 = longest.iter().map(time).sum();
        let logs = || longest.iter().map(|id| time(id).max(LEAST_S).ln());
        let mean = logs().sum::<f64>() / longest.len() as f64;
        let claimed =
            logs().map(|log| (log - mean) * (log - mean)).sum::<f64>() / longest.len() as f64;
        let known = longest.len();
        Some(Forecast {
            unknown: jobs.len() - known,
            jobs,
            longest,
            passed: 0,
            ahead_s,
            known,
            fit: Fit {
                claimed,
                ..Fit::default()
            },
            unforeseen_s: 0.0,
            unforeseen: 0,
            done_s: 0.0,
        })
    }

    /// A job has ended for the first time, well or not, after having been placed for `ran`.
    pub(crate) fn ended(&mut self, task: TaskId, ran: Nanos, well: bool) {
        let Some(job) = self.jobs.get_mut(task.0 as usize).filter(|job| !job.ended) else {
            return;
        };
        job.ended = true;
        let expected = job.expected_s;
        self.done_s += ran.as_s();
        match expected {
            Some(expected_s) => {
                self.ahead_s = (self.ahead_s - expected_s).max(0.0);
                self.known = self.known.saturating_sub(1);
                if well {
                    self.fit.add(expected_s, ran.as_s());
                }
            }
            None => {
                self.unknown = self.unknown.saturating_sub(1);
                if well {
                    self.unforeseen_s += ran.as_s();
                    self.unforeseen += 1;
                }
            }
        }
        let jobs = &self.jobs;
        let ended = self.longest[self.passed..]
            .iter()
            .take_while(|id| jobs[**id as usize].ended)
            .count();
        self.passed += ended;
    }

    /// Whether all jobs that have not ended have run for longer than is expected of them by now: what is left is not known then.
    pub(crate) fn is_outlived(&self, live: &[(TaskId, Nanos)]) -> bool {
        let (base, slope) = self.fit.line();
        let outlived = |(task, ran): &(TaskId, Nanos)| {
            let expected_s = self
                .jobs
                .get(task.0 as usize)
                .and_then(|job| job.expected_s);
            expected_s.is_some_and(|expected_s| ran.as_s() > base + slope * expected_s)
        };
        !live.is_empty() && live.len() == self.known + self.unknown && live.iter().all(outlived)
    }

    /// The time left in seconds; `None` while it can't be told.
    pub(crate) fn left_s(&self, now: &Now<'_>) -> Option<f64> {
        let (base, slope) = self.fit.line();
        let of = |expected_s: f64| base + slope * expected_s;
        // Jobs of which nothing is known take as long as others of these, or as those that are known.
        let mean_known = self.ahead_s / self.known.max(1) as f64;
        let other_s = match (self.unforeseen, self.fit.n > 0.0) {
            (0, false) => mean_known,
            (0, true) => self.fit.took / self.fit.n,
            (n, _) => self.unforeseen_s / n as f64,
        };
        let mut work = self.known as f64 * of(mean_known) + self.unknown as f64 * other_s;
        let (mut done, mut most) = (self.done_s, 0.0f64);
        for (task, ran) in now.live {
            let Some(job) = self.jobs.get(task.0 as usize) else {
                continue;
            };
            let whole = job.expected_s.map_or(other_s, of);
            let rest = (whole - ran.as_s()).abs();
            work += rest - whole;
            done += ran.as_s();
            most = most.max(rest);
        }
        let waits = |id: &&u32| {
            !self.jobs[**id as usize].ended
                && now
                    .live
                    .binary_search_by_key(&TaskId(**id), |(task, _)| *task)
                    .is_err()
        };
        if let Some(first) = self.longest[self.passed..].iter().find(waits) {
            most = most.max(self.jobs[*first as usize].expected_s.map_or(0.0, of));
        }
        let elapsed = now.elapsed.as_s();
        let at_once = now.cpus.min(self.jobs.len()).max(1) as f64;
        // Until a job has ended, and where the kernel shares CPUs out, jobs are placed for longer than they run.
        let rate = match done / elapsed {
            _ if elapsed < 1.0 || done < 0.02 * (work + done) => at_once,
            rate if self.fit.n > 0.0 => rate,
            rate => rate.min(at_once),
        };
        (work > 0.0 && rate > 0.0).then(|| (work / rate).max(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays jobs of `true_s` on CPUs of their own, by falling expectation as the loop lets them in, and compares the time left with the truth whenever a job ends. Returns
    /// the ratios, with the share of the run at which they were told.
    fn play(true_s: &[f64], expected_s: &[Option<f64>], cpus: usize) -> Vec<(f64, f64)> {
        let mut forecast = Forecast::new(expected_s.iter().map(|s| s.map(Nanos::from_s)))
            .expect("enough is known");
        let mut free = vec![0.0f64; cpus];
        let mut spans = vec![(0.0, 0.0); true_s.len()];
        let mut order: Vec<usize> = (0..true_s.len()).collect();
        order.sort_by(|a, b| {
            expected_s[*b]
                .unwrap_or(16.0)
                .total_cmp(&expected_s[*a].unwrap_or(16.0))
        });
        for id in order {
            let cpu = (0..cpus)
                .min_by(|a, b| free[*a].total_cmp(&free[*b]))
                .unwrap();
            spans[id] = (free[cpu], free[cpu] + true_s[id]);
            free[cpu] += true_s[id];
        }
        let end = free.iter().copied().fold(0.0, f64::max);
        let mut ends: Vec<(f64, usize)> = spans
            .iter()
            .enumerate()
            .map(|(id, span)| (span.1, id))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let look = |forecast: &Forecast, at: f64| {
            let live: Vec<(TaskId, Nanos)> = (0u32..)
                .zip(&spans)
                .filter(|(_, span)| span.0 <= at && at < span.1)
                .map(|(id, span)| (TaskId(id), Nanos::from_s(at - span.0)))
                .collect();
            forecast.left_s(&Now {
                elapsed: Nanos::from_s(at),
                cpus,
                live: &live,
            })
        };
        let mut told = vec![(0.0, look(&forecast, 0.0).unwrap() / end)];
        for (at, id) in ends {
            forecast.ended(TaskId(id as u32), Nanos::from_s(true_s[id]), true);
            if at < 0.95 * end {
                told.push((at / end, look(&forecast, at).unwrap_or(0.0) / (end - at)));
            }
        }
        told
    }

    fn lengths() -> Vec<f64> {
        let mut x = 7u64;
        let mut next = || {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as f64 / (1u64 << 31) as f64
        };
        (0..40).map(|_| 2.0 + 28.0 * next()).collect()
    }

    #[test]
    fn what_is_known_tells_the_end_from_the_beginning() {
        let lengths = lengths();
        let known: Vec<Option<f64>> = lengths.iter().map(|&s| Some(s)).collect();
        let told = play(&lengths, &known, 4);
        assert!(
            told.iter().all(|(_, ratio)| (0.9..1.1).contains(ratio)),
            "{told:?}"
        );
    }

    /// A memory that is wrong by ten everywhere is right after a few jobs, and a shuffled one is hardly worse than none.
    #[test]
    fn a_wrong_memory_is_soon_corrected() {
        let lengths = lengths();
        let by = |factor: f64| -> Vec<Option<f64>> {
            lengths.iter().map(|s| Some(s * factor)).collect()
        };
        for (factor, first) in [(10.0, 10.0), (0.1, 0.1)] {
            let told = play(&lengths, &by(factor), 4);
            assert!(
                (told[0].1 / first - 1.0).abs() < 0.1,
                "at first there is nothing but the memory: {told:?}"
            );
            assert!(
                told[2..]
                    .iter()
                    .all(|(_, ratio)| (0.6..1.6).contains(ratio)),
                "{factor}: {told:?}"
            );
        }
        let mut shuffled = by(1.0);
        shuffled.rotate_left(17);
        let told = play(&lengths, &shuffled, 4);
        let early = told.iter().filter(|(share, _)| (0.15..0.8).contains(share));
        assert!(
            early.clone().count() > 20
                && early.clone().all(|(_, ratio)| (0.4..2.0).contains(ratio)),
            "{told:?}"
        );
    }

    #[test]
    fn jobs_that_nobody_knows_count_as_the_others() {
        let lengths = lengths();
        let some: Vec<Option<f64>> = (0..)
            .zip(&lengths)
            .map(|(ix, &s)| (ix % 3 > 0).then_some(s))
            .collect();
        let told = play(&lengths, &some, 4);
        assert!(
            told.iter()
                .filter(|(share, _)| *share < 0.8)
                .all(|(_, ratio)| (0.6..1.6).contains(ratio)),
            "{told:?}"
        );
        let few: Vec<Option<Nanos>> = (0..9)
            .map(|ix| (ix < 4).then_some(Nanos::from_ms(1)))
            .collect();
        assert!(
            Forecast::new(few.into_iter()).is_none() && Forecast::new(std::iter::empty()).is_none()
        );
    }

    #[test]
    fn a_job_that_outlasts_its_time_needs_as_much_again() {
        let forecast = Forecast::new([Some(Nanos::from_s(10.0))].into_iter()).unwrap();
        let left = |at: f64| {
            let live = [(TaskId(0), Nanos::from_s(at))];
            forecast.left_s(&Now {
                elapsed: Nanos::from_s(at),
                cpus: 1,
                live: &live,
            })
        };
        assert_eq!(
            (left(0.0), left(4.0), left(10.0)),
            (Some(10.0), Some(6.0), None)
        );
        assert_eq!(left(25.0), Some(15.0));
        let outlived = |at: f64| forecast.is_outlived(&[(TaskId(0), Nanos::from_s(at))]);
        assert_eq!(
            (outlived(10.0), outlived(10.1), forecast.is_outlived(&[])),
            (false, true, false)
        );
    }
}
