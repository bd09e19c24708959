//! The time left of a run, from the expected times of its jobs and the times of those that ended.
//!
//! The time that jobs took, over their expected time, is a factor for all others. A job without an expected time is assumed
//! to need the mean time of those that ended, or of those that are expected. Visible progress of a job takes precedence.

use cosched_core::{Nanos, TaskId};
use std::collections::BTreeMap;

/// An estimator of the time left of a run.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    /// The jobs that have not ended.
    jobs: BTreeMap<TaskId, Job>,
    /// The number of all jobs.
    total: usize,
    /// The jobs with an expected time, and that time.
    expected: Sum,
    /// The time that all jobs took that ended, in seconds.
    done_s: f64,
    /// The jobs that succeeded, and their time.
    ended_well: Sum,
    /// Those of them with an expected time, and their time.
    known: Sum,
    /// The expected time of those, in seconds.
    known_expected_s: f64,
}

/// A number of jobs and their time in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    jobs: usize,
    time_s: f64,
}

impl Sum {
    fn add(&mut self, time_s: f64) {
        self.jobs += 1;
        self.time_s += time_s;
    }

    fn mean_s(self) -> Option<f64> {
        (self.jobs > 0).then(|| self.time_s / self.jobs as f64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    expected_s: Option<f64>,
    /// Seconds from the start of the run.
    arrives_s: f64,
}

/// A run at an instant.
pub(crate) struct Now<'a> {
    /// Time since the start of the run.
    pub elapsed: Nanos,
    /// Part of it in which no job was there, because the next had not arrived.
    pub idle: Nanos,
    /// CPUs of the run.
    pub cpus: usize,
    /// The jobs that are live and have not ended, and the time for which each was placed.
    pub live: &'a [(TaskId, Nanos)],
    /// Time placed in seconds that live jobs still need, as far as their progress shows it.
    pub left_s: &'a BTreeMap<TaskId, f64>,
}

/// The time left of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    /// Too little is known.
    Unknown,
    /// All jobs that are left have taken longer than expected.
    Overdue,
    /// In seconds.
    Seconds(f64),
}

impl Forecast {
    /// Add the next job, with its expected time in seconds and its time of arrival.
    pub(crate) fn add(&mut self, expected_s: Option<f64>, arrives: Nanos) {
        let job = Job {
            expected_s,
            arrives_s: arrives.as_s(),
        };
        self.jobs.insert(TaskId(self.total as u32), job);
        self.total += 1;
        if let Some(expected_s) = expected_s {
            self.expected.add(expected_s);
        }
    }

    /// Whether a job has ended.
    pub(crate) fn has_ended(&self, task: TaskId) -> bool {
        (task.0 as usize) < self.total && !self.jobs.contains_key(&task)
    }

    /// A job has ended, well or not, after having been placed for `ran`.
    pub(crate) fn ended(&mut self, task: TaskId, ran: Nanos, well: bool) {
        let Some(job) = self.jobs.remove(&task) else {
            return;
        };
        let ran_s = ran.as_s();
        self.done_s += ran_s;
        if !well {
            return;
        }
        self.ended_well.add(ran_s);
        if let Some(expected_s) = job.expected_s {
            self.known.add(ran_s);
            self.known_expected_s += expected_s;
        }
    }

    /// Return the time that jobs took over their expected time.
    fn factor(&self) -> f64 {
        if self.known_expected_s > 0.0 {
            self.known.time_s / self.known_expected_s
        } else {
            1.0
        }
    }

    /// Return the time that a job without an expected time needs, in seconds; `None` before a job has succeeded, unless
    /// most jobs have an expected time.
    fn mean_s(&self) -> Option<f64> {
        let are_most_known = self.expected.jobs * 2 >= self.total;
        let expected_s = self.expected.mean_s().filter(|_| are_most_known);
        self.ended_well.mean_s().or(expected_s)
    }

    /// Whether times of jobs are known, besides their visible progress.
    pub(crate) fn knows_times(&self) -> bool {
        self.mean_s().is_some()
    }

    /// Return the time left.
    pub(crate) fn left(&self, now: &Now<'_>) -> Left {
        let Some(rest) = self.rest(now) else {
            return Left::Unknown;
        };
        if rest.work_s <= 0.0 {
            return Left::Overdue;
        }
        let ran_s: f64 = now.live.iter().map(|(_, ran)| ran.as_s()).sum();
        let done_s = self.done_s + ran_s;
        let elapsed_s = (now.elapsed - now.idle).as_s();
        let at_once = now.cpus.min(self.total).max(1) as f64;
        let rate = if elapsed_s < 1.0 || done_s < 0.02 * (rest.work_s + done_s) {
            at_once
        } else if self.ended_well.jobs > 0 {
            done_s / elapsed_s
        } else {
            // Where the kernel shares CPUs out, jobs are placed for longer than they run. Only their ends show by how much.
            (done_s / elapsed_s).min(at_once)
        };
        Left::Seconds((rest.work_s / rate).max(rest.longest_s))
    }

    /// Return what is left to do.
    fn rest(&self, now: &Now<'_>) -> Option<Rest> {
        let factor = self.factor();
        let mean_s = self.mean_s().or_else(|| visible_mean_s(now))?;
        let ran: BTreeMap<TaskId, Nanos> = now.live.iter().copied().collect();
        let mut rest = Rest::default();
        for (task, job) in &self.jobs {
            let expected_s = job.expected_s.map(|expected_s| expected_s * factor);
            let ran_s = ran.get(task).map_or(0.0, |ran| ran.as_s());
            let rest_s = match now.left_s.get(task) {
                Some(left_s) => *left_s,
                None => (expected_s.unwrap_or(mean_s) - ran_s).max(0.0),
            };
            let until_arrival_s = (job.arrives_s - now.elapsed.as_s()).max(0.0);
            rest.work_s += rest_s;
            rest.longest_s = rest.longest_s.max(until_arrival_s + rest_s);
        }
        Some(rest)
    }
}

/// The mean time in seconds of the live jobs whose progress shows it.
fn visible_mean_s(now: &Now<'_>) -> Option<f64> {
    let mut whole = Sum::default();
    for (task, ran) in now.live {
        if let Some(left_s) = now.left_s.get(task) {
            whole.add(ran.as_s() + left_s);
        }
    }
    whole.mean_s()
}

/// What is left to do of a run.
#[derive(Default)]
struct Rest {
    /// Time that all jobs still need on CPUs, in seconds.
    work_s: f64,
    /// The longest time to the end of one job, if no other delays it.
    longest_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(expected_s: &[Option<f64>]) -> Forecast {
        let mut forecast = Forecast::default();
        for &expected_s in expected_s {
            forecast.add(expected_s, Nanos::ZERO);
        }
        forecast
    }

    /// Plays jobs of `true_s` on CPUs of their own, by falling expectation as the loop lets them in, and compares the time left with the truth whenever a job ends. Returns
    /// the ratios, with the share of the run at which they were told.
    fn play(true_s: &[f64], expected_s: &[Option<f64>], cpus: usize) -> Vec<(f64, f64)> {
        let mut forecast = forecast(expected_s);
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
            let left = forecast.left(&Now {
                elapsed: Nanos::from_s(at),
                idle: Nanos::ZERO,
                cpus,
                live: &live,
                left_s: &BTreeMap::new(),
            });
            match left {
                Left::Seconds(s) => s,
                Left::Unknown | Left::Overdue => 0.0,
            }
        };
        let mut told = vec![(0.0, look(&forecast, 0.0) / end)];
        for (at, id) in ends {
            forecast.ended(TaskId(id as u32), Nanos::from_s(true_s[id]), true);
            if at < 0.95 * end {
                told.push((at / end, look(&forecast, at) / (end - at)));
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

    /// A memory that is wrong by ten everywhere is right after a few jobs.
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
    }

    #[test]
    fn a_job_that_outlasts_its_time_is_overdue() {
        let forecast = forecast(&[Some(10.0)]);
        let left = |forecast: &Forecast, at: f64| {
            let live = [(TaskId(0), Nanos::from_s(at))];
            forecast.left(&Now {
                elapsed: Nanos::from_s(at),
                idle: Nanos::ZERO,
                cpus: 1,
                live: &live,
                left_s: &BTreeMap::new(),
            })
        };
        assert_eq!(left(&forecast, 0.0), Left::Seconds(10.0));
        assert_eq!(left(&forecast, 4.0), Left::Seconds(6.0));
        assert_eq!(left(&forecast, 25.0), Left::Overdue);
        assert_eq!(left(&self::forecast(&[None]), 4.0), Left::Unknown);
    }

    #[test]
    fn visible_progress_tells_the_time_of_other_jobs_too() {
        let left = |expected_s: Option<f64>| {
            let forecast = forecast(&[expected_s; 3]);
            let ran = Nanos::from_s(4.0);
            forecast.left(&Now {
                elapsed: ran,
                idle: Nanos::ZERO,
                cpus: 2,
                live: &[(TaskId(0), ran), (TaskId(1), ran)],
                left_s: &BTreeMap::from([(TaskId(0), 6.0)]),
            })
        };
        assert_eq!(left(None), Left::Seconds((6.0 + 6.0 + 10.0) / 2.0));
        assert_eq!(left(Some(5.0)), Left::Seconds((6.0 + 1.0 + 5.0) / 2.0));
    }

    #[test]
    fn a_job_that_arrives_later_ends_later() {
        let mut forecast = Forecast::default();
        for arrives in [0.0, 60.0] {
            forecast.add(Some(10.0), Nanos::from_s(arrives));
        }
        let left = |forecast: &Forecast, at: f64, idle: f64, live: &[(TaskId, Nanos)]| {
            forecast.left(&Now {
                elapsed: Nanos::from_s(at),
                idle: Nanos::from_s(idle),
                cpus: 2,
                live,
                left_s: &BTreeMap::new(),
            })
        };
        let first = [(TaskId(0), Nanos::from_s(4.0))];
        assert_eq!(left(&forecast, 4.0, 0.0, &first), Left::Seconds(66.0));
        forecast.ended(TaskId(0), Nanos::from_s(10.0), true);
        assert_eq!(left(&forecast, 50.0, 40.0, &[]), Left::Seconds(20.0));
        let second = [(TaskId(1), Nanos::from_s(5.0))];
        assert_eq!(left(&forecast, 65.0, 50.0, &second), Left::Seconds(5.0));
    }
}
