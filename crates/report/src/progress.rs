//! The progress of a run: counts, time left, and the line that shows them.

use crate::forecast::{Forecast, Left, Now};
use crate::info::JobInfo;
use crate::text::{clock, seconds, visible};
use cosched_core::{
    ByTask, Expected, ExpectedFrom, Fact, JobEnd, Nanos, Pace, Snapshot, TaskId, TaskResult,
    TaskSpec, WatchedTask,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveProgress {
    /// The run is a simulation.
    pub simulated: bool,
    /// Number of all jobs.
    pub total: usize,
    /// Jobs that ended, well or not.
    pub done: usize,
    /// Jobs that ended otherwise than with code 0, without those that the user ended.
    pub failed: usize,
    /// Jobs that the user ended.
    pub cancelled: usize,
    /// Jobs that are on CPUs.
    pub running: usize,
    /// Jobs that were started and wait, frozen, for their turn.
    pub waiting: usize,
    /// Jobs that were not started yet.
    pub queued: usize,
    /// Time since the start of the run.
    pub elapsed: Nanos,
    /// Estimated time until its end; `None` while it is not known.
    pub left: Option<Nanos>,
    /// The estimate comes from other commands, and can be far off.
    pub is_about: bool,
    /// All jobs that are left have taken longer than expected.
    pub is_overdue: bool,
    /// The live jobs whose progress is visible, by number.
    pub jobs: Vec<JobProgress>,
}

/// The visible progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// Its unique name.
    pub name: Arc<str>,
    /// Share of its work that is done.
    pub share: f64,
    /// Estimated seconds until its end; `None` while its pace is not steady.
    pub left_s: Option<f64>,
}

/// Reason for an absent time left: the job, or all jobs that are left, have taken longer than expected.
pub(crate) const OVERDUE: &str = "longer than expected";

/// Source of an estimate of the time left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftFrom {
    /// Solo times of the jobs.
    Solo,
    /// Earlier runs of the same commands.
    History,
    /// Earlier runs, mostly of other commands with the same program.
    Program,
    /// The mean time of the jobs that succeeded.
    Mean,
    /// The visible progress of the live jobs.
    Visible,
}

impl LeftFrom {
    /// The same in words.
    pub fn text(self) -> &'static str {
        match self {
            LeftFrom::Solo => "by times alone",
            LeftFrom::History => "by earlier runs",
            LeftFrom::Program => "by other runs of the program",
            LeftFrom::Mean => "by the jobs that ended",
            LeftFrom::Visible => "by the progress of live jobs",
        }
    }
}

/// Render a time left as on a clock; `about` marks one that can be far off.
pub(crate) fn left_clock(left_s: f64, about: bool) -> String {
    let about = if about { "about " } else { "" };
    format!("{about}{}", clock(left_s))
}

/// The progress line, in at most `width` characters; the time left is `--:--` while it is not known.
///
/// In a narrow terminal parts are left out from the right.
pub fn progress_line(progress: &LiveProgress, width: usize) -> String {
    let LiveProgress {
        simulated,
        total,
        done,
        failed,
        cancelled,
        running,
        waiting,
        queued,
        elapsed,
        left,
        ..
    } = *progress;
    let left = match left {
        Some(left) => {
            let left = left_clock(left.as_s(), progress.is_about);
            format!("{left} left")
        }
        None if progress.is_overdue => OVERDUE.to_owned(),
        None => "--:-- left".to_owned(),
    };
    let mut parts = vec![format!("{done}/{total} done"), left];
    for (n, what) in [(failed, "failed"), (cancelled, "cancelled")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    parts.push(format!("{running} running"));
    for (n, what) in [(waiting, "waiting"), (queued, "queued")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    parts.push(format!("{} elapsed", clock(elapsed.as_s())));
    parts.extend(last_to_end(&progress.jobs));
    let mut line = if simulated {
        "[simulated] ".to_owned()
    } else {
        String::new()
    };
    for (ix, part) in parts.iter().enumerate() {
        let divider = if ix == 0 { "" } else { ", " };
        let longer = format!("{line}{divider}{part}");
        if longer.chars().count() > width {
            break;
        }
        line = longer;
    }
    line
}

/// The share that is done of the job with the most time left.
fn last_to_end(jobs: &[JobProgress]) -> Option<String> {
    let left_s = |job: &&JobProgress| job.left_s.unwrap_or(0.0);
    let last = jobs.iter().max_by(|a, b| left_s(a).total_cmp(&left_s(b)))?;
    Some(format!("{} {}", visible(&last.name), percent(last.share)))
}

/// A share as whole per cent, rounded down, and less than 100: what has not ended is not wholly done.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (100.0 * share).floor().min(99.0))
}

/// One line about a job that ended, for output without a progress line.
pub fn ended_line(progress: &LiveProgress, result: &TaskResult, info: Option<&JobInfo>) -> String {
    let what = match info {
        Some(info) => info.what(),
        None => visible(&result.spec.name),
    };
    let end = visible(&JobEnd::of(result).text());
    let time = match (result.started, result.finished) {
        (Some(started), Some(finished)) => {
            format!(" after {}", seconds((finished - started).as_s()))
        }
        _ => String::new(),
    };
    let attempts = if result.runs > 1 {
        format!(" (attempt {})", result.runs)
    } else {
        String::new()
    };
    let simulated = if progress.simulated {
        "[simulated] "
    } else {
        ""
    };
    let LiveProgress { done, total, .. } = progress;
    let digits = total.to_string().len();
    format!("{simulated}[{done:digits$}/{total}] {what}: {end}{time}{attempts}")
}

/// Counts jobs and work during a run.
#[derive(Debug)]
pub struct ProgressTracker {
    progress: LiveProgress,
    /// Solo times in seconds, as far as they are known.
    solo_s: BTreeMap<TaskId, f64>,
    forecast: Forecast,
    /// Number of jobs with an expected time.
    expected: usize,
    /// Those of them whose time is that of other commands.
    expected_of_others: usize,
    /// Jobs with a time of their own, not one of other commands.
    known: BTreeSet<TaskId>,
    /// The live jobs at whose progress was looked.
    paces: BTreeMap<TaskId, Pace>,
    /// Time without any job.
    idle: Nanos,
    /// When the jobs were counted last, if there was none.
    idle_since: Option<Nanos>,
    /// Jobs that were started and have not ended.
    live: BTreeSet<TaskId>,
}

impl ProgressTracker {
    /// A count of no jobs.
    pub fn new(simulated: bool) -> ProgressTracker {
        ProgressTracker {
            progress: LiveProgress {
                simulated,
                ..LiveProgress::default()
            },
            solo_s: BTreeMap::new(),
            forecast: Forecast::default(),
            expected: 0,
            expected_of_others: 0,
            known: BTreeSet::new(),
            paces: BTreeMap::new(),
            idle: Nanos::ZERO,
            idle_since: None,
            live: BTreeSet::new(),
        }
    }

    /// Something happened.
    pub fn note(&mut self, at: Nanos, fact: &Fact<'_>, jobs: &ByTask<JobInfo>) {
        match fact {
            Fact::Came(tasks) => {
                for task in *tasks {
                    let measured = jobs.get(task.id).and_then(|info| info.solo);
                    let solo = measured.map(|solo| solo.time).or(task.solo.time);
                    self.taken(task, solo.map(Nanos::as_s));
                }
            }
            Fact::Started { task, .. } => self.started(task.id),
            Fact::Failed(result) => self.queued_again(result.spec.id),
            Fact::Lost(task) => self.queued_again(task.id),
            Fact::Ended(result) => self.ended(at, result),
            _ => {}
        }
    }

    /// The next job has come, with its solo time in seconds, if that is known. It replaces the expected time.
    pub fn taken(&mut self, task: &TaskSpec, solo_s: Option<f64>) {
        let id = task.id;
        self.progress.total += 1;
        self.progress.queued += 1;
        let expected = task.expected.filter(Expected::is_telling);
        if let Some(expected) = expected {
            self.expected += 1;
            if expected.from == ExpectedFrom::Program {
                self.expected_of_others += 1;
            } else {
                self.known.insert(id);
            }
        }
        if let Some(solo_s) = solo_s {
            self.solo_s.insert(id, solo_s);
            self.known.insert(id);
        }
        let expected_s = expected.map(|expected| expected.time.as_s());
        self.forecast.add(solo_s.or(expected_s), task.arrives);
    }

    /// How far the run is.
    pub fn progress(&self) -> &LiveProgress {
        &self.progress
    }

    /// Return the source of the estimate.
    pub(crate) fn left_from(&self) -> LeftFrom {
        let total = self.progress.total;
        if self.solo_s.len() == total {
            LeftFrom::Solo
        } else if !self.forecast.knows_times() {
            LeftFrom::Visible
        } else if self.expected * 2 < total {
            LeftFrom::Mean
        } else if self.expected_of_others * 2 > self.expected {
            LeftFrom::Program
        } else {
            LeftFrom::History
        }
    }

    /// Note what was seen of the progress of a job.
    pub(crate) fn saw(&mut self, now: Nanos, task: &WatchedTask<'_>) {
        if let (Some(started), Some(seen)) = (task.started, task.visible) {
            let pace = self.paces.entry(task.spec.id).or_default();
            pace.saw(now - started, task.ran, seen);
        }
    }

    /// Return the pace of a job, if anyone has looked at its progress.
    pub(crate) fn pace_of(&self, task: TaskId) -> Option<&Pace> {
        self.paces.get(&task)
    }

    pub(crate) fn solo_s_of(&self, task: TaskId) -> Option<f64> {
        self.solo_s.get(&task).copied()
    }

    /// A job was started. The run does not wait for a job that has ended once.
    pub(crate) fn started(&mut self, task: TaskId) {
        if !self.forecast.has_ended(task) {
            self.live.insert(task);
        }
        self.count();
    }

    /// A job failed or was lost, and is queued again.
    fn queued_again(&mut self, task: TaskId) {
        self.live.remove(&task);
        self.count();
    }

    /// A job ended.
    pub fn ended(&mut self, now: Nanos, result: &TaskResult) {
        let ok = result.exit.as_ref().is_some_and(cosched_core::Exit::ok) && !result.timed_out;
        self.progress.elapsed = now;
        self.progress.done += 1;
        self.progress.failed += usize::from(!ok && !result.ended_by_user);
        self.progress.cancelled += usize::from(!ok && result.ended_by_user);
        self.live.remove(&result.spec.id);
        self.forecast.ended(result.spec.id, result.ran, ok);
        self.known.remove(&result.spec.id);
        self.paces.remove(&result.spec.id);
        self.count();
    }

    fn count(&mut self) {
        let live = self.live.len();
        let progress = &mut self.progress;
        progress.running = progress.running.min(live);
        progress.waiting = live - progress.running;
        progress.queued = progress.total.saturating_sub(progress.done + live);
    }

    /// Time has passed.
    pub fn tick(&mut self, snapshot: &Snapshot) {
        // Jobs that ended once and were started again don't count: the run does not wait for them.
        let mut running = 0;
        let mut live = Vec::new();
        let mut left_s = BTreeMap::new();
        self.progress.jobs.clear();
        for task in &snapshot.tasks {
            if self.forecast.has_ended(task.id) {
                continue;
            }
            let ran = task.estimates.ran;
            running += usize::from(task.running.is_some());
            live.push((task.id, ran));
            let Some(pace) = self.paces.get(&task.id) else {
                continue;
            };
            if let Ok(placed_s) = pace.placed_left_s(ran) {
                left_s.insert(task.id, placed_s);
            }
            if let Ok((share, _)) = pace.share(ran) {
                self.progress.jobs.push(JobProgress {
                    name: task.name.clone(),
                    share,
                    left_s: pace.left_s(ran).ok(),
                });
            }
        }
        self.progress.running = running;
        self.progress.elapsed = snapshot.now;
        self.count();
        if let Some(since) = self.idle_since.take() {
            self.idle += snapshot.now - since;
        }
        self.idle_since = snapshot.tasks.is_empty().then_some(snapshot.now);
        let left = self.forecast.left(&Now {
            elapsed: snapshot.now,
            idle: self.idle,
            cpus: snapshot.machine.cpus.len(),
            live: &live,
            left_s: &left_s,
        });
        // A job of unknown length can't be late.
        let are_known = live.iter().all(|(task, _)| self.known.contains(task));
        self.progress.is_overdue = left == Left::Overdue && !live.is_empty() && are_known;
        self.progress.left = match left {
            Left::Seconds(s) => Some(Nanos::from_s(s)),
            Left::Unknown | Left::Overdue => None,
        };
        self.progress.is_about = self.left_from() == LeftFrom::Program;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{finished, snapshot};
    use cosched_core::{Exit, Expected};

    fn progress() -> LiveProgress {
        LiveProgress {
            simulated: false,
            total: 24,
            done: 12,
            failed: 1,
            running: 2,
            waiting: 6,
            queued: 4,
            elapsed: Nanos::from_s(754.2),
            left: Some(Nanos::from_s(3_723.0)),
            ..LiveProgress::default()
        }
    }

    /// What is known of other commands is no firm time: a job that has outlived it is not late.
    #[test]
    fn what_is_known_of_other_commands_is_marked() {
        let tracker = |from| {
            let mut task = TaskSpec::new(0, "a");
            task.expected = Some(Expected {
                runs: 3,
                ..Expected::of(Nanos::from_s(8.0), from)
            });
            let mut tracker = ProgressTracker::new(false);
            tracker.taken(&task, None);
            tracker
        };
        let line = |tracker: &mut ProgressTracker, at: f64| {
            let mut snapshot = snapshot();
            snapshot.tasks.truncate(1);
            (snapshot.now, snapshot.tasks[0].estimates.ran) =
                (Nanos::from_s(at), Nanos::from_s(at));
            tracker.tick(&snapshot);
            progress_line(tracker.progress(), 28)
        };
        let (mut own, mut other) = (tracker(ExpectedFrom::Same), tracker(ExpectedFrom::Program));
        assert_eq!(line(&mut own, 2.0), "0/1 done, 0:06 left");
        assert_eq!(
            (line(&mut other, 2.0).as_str(), other.left_from()),
            ("0/1 done, about 0:06 left", LeftFrom::Program)
        );
        line(&mut own, 12.0);
        assert!(own.progress().is_overdue && own.progress().left.is_none());
        let wide = progress_line(own.progress(), 60);
        assert!(
            wide.starts_with("0/1 done, longer than expected, "),
            "{wide}"
        );
        assert_eq!(line(&mut other, 12.0), "0/1 done, --:-- left");
    }

    /// A tracker of jobs with these solo times.
    fn tracker(solo_s: &[Option<f64>]) -> ProgressTracker {
        let mut tracker = ProgressTracker::new(false);
        for (id, &solo_s) in (0..).zip(solo_s) {
            tracker.taken(&TaskSpec::new(id, "t"), solo_s);
        }
        tracker
    }

    #[test]
    fn lines_fit_the_width() {
        let full =
            "12/24 done, 1:02:03 left, 1 failed, 2 running, 6 waiting, 4 queued, 12:34 elapsed";
        assert_eq!(progress_line(&progress(), 80 + 10), full);
        assert_eq!(
            progress_line(&progress(), 40),
            "12/24 done, 1:02:03 left, 1 failed"
        );
        assert_eq!(progress_line(&progress(), 12), "12/24 done");
        let unknown = LiveProgress {
            left: None,
            simulated: true,
            failed: 0,
            queued: 0,
            ..progress()
        };
        assert_eq!(
            progress_line(&unknown, 90),
            "[simulated] 12/24 done, --:-- left, 2 running, 6 waiting, 12:34 elapsed"
        );
        for width in 0..100 {
            assert!(progress_line(&progress(), width).chars().count() <= width);
        }
    }

    #[test]
    fn the_line_shows_the_job_that_ends_last() {
        let job = |name: &str, share: f64, left_s: Option<f64>| JobProgress {
            name: name.into(),
            share,
            left_s,
        };
        let mut progress = progress();
        progress.jobs = vec![
            job("a", 0.5, Some(3.0)),
            job("b\r", 0.999, Some(9.0)),
            job("c", 0.1, None),
        ];
        let line = progress_line(&progress, 100);
        assert!(line.ends_with("12:34 elapsed, b\\r 99 %"), "{line}");
    }

    #[test]
    fn a_line_per_ended_job() {
        let mut result = finished(0, "mcf\u{1b}[2J", 12.5, 10.0);
        assert_eq!(
            ended_line(&progress(), &result, None),
            "[12/24] mcf\\x1b[2J: exit 0 after 12.5 s"
        );
        let spec = cosched_core::TaskSpec::new(0, "a.txt");
        let info = JobInfo {
            command: Some("gzip a.txt".to_owned()),
            ..JobInfo::of(&spec)
        };
        result.runs = 3;
        let told = "[12/24] a.txt (gzip a.txt): exit 0 after 12.5 s (attempt 3)";
        assert_eq!(ended_line(&progress(), &result, Some(&info)), told);
        result.runs = 1;
        (result.timed_out, result.exit) = (
            true,
            Some(Exit::Signal {
                signal: 15,
                oom: false,
            }),
        );
        let sim = LiveProgress {
            simulated: true,
            done: 3,
            ..progress()
        };
        assert_eq!(
            ended_line(&sim, &result, None),
            "[simulated] [ 3/24] mcf\\x1b[2J: timed out with SIGTERM after 12.5 s"
        );
    }

    #[test]
    fn unknown_until_a_job_has_ended() {
        let mut tracker = tracker(&[None; 5]);
        let mut snapshot = snapshot();
        (0..3).for_each(|task| tracker.started(TaskId(task)));
        tracker.tick(&snapshot);
        let LiveProgress {
            running,
            waiting,
            queued,
            left,
            ..
        } = *tracker.progress();
        assert_eq!((running, waiting, queued, left), (2, 1, 2, None));

        // Task 0 ended well after 4 s on a CPU; 1 and 2 ran 2 s each, two more have not come. So 2 + 2 + 4 + 4 = 12 s are
        // to do. 8 s were done in 4 s, so 6 s are left.
        tracker.ended(Nanos::from_s(4.0), &finished(0, "a", 8.0, 1.0));
        snapshot.tasks.remove(0);
        snapshot.now = Nanos::from_s(4.0);
        snapshot
            .tasks
            .iter_mut()
            .for_each(|task| task.estimates.ran = Nanos::from_s(2.0));
        tracker.tick(&snapshot);
        assert_eq!(tracker.progress().left, Some(Nanos::from_s(6.0)));
        assert_eq!(
            *tracker.progress(),
            LiveProgress {
                done: 1,
                running: 1,
                waiting: 1,
                queued: 2,
                total: 5,
                elapsed: Nanos::from_s(4.0),
                left: Some(Nanos::from_s(6.0)),
                ..LiveProgress::default()
            }
        );
    }

    #[test]
    fn a_job_between_two_attempts_is_queued() {
        let mut tracker = tracker(&[None, Some(10.0)]);
        tracker.started(TaskId(0));
        tracker.queued_again(TaskId(0));
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (0, 2)
        );
        tracker.started(TaskId(0));
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (1, 1)
        );
        tracker.ended(Nanos::from_s(1.0), &finished(0, "a", 1.0, 1.0));
        tracker.started(TaskId(0));
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (0, 1)
        );
        assert_eq!(tracker.solo_s_of(TaskId(0)), None);
        assert!(tracker.solo_s_of(TaskId(1)).is_some());
    }

    #[test]
    fn jobs_that_were_started_again_are_waited_for_by_nobody() {
        let mut tracker = tracker(&[Some(10.0); 3]);
        (0..3).for_each(|task| tracker.started(TaskId(task)));
        tracker.ended(Nanos::from_s(10.0), &finished(0, "a", 10.0, 10.0));
        let mut snapshot = snapshot();
        snapshot.now = Nanos::from_s(10.0);
        // The first task is in its second run and does not count.
        for task in &mut snapshot.tasks {
            task.estimates.ran = Nanos::from_s(2.5);
        }
        tracker.tick(&snapshot);
        let progress = tracker.progress();
        assert_eq!(
            (progress.done, progress.running, progress.waiting),
            (1, 1, 1)
        );
        assert_eq!(progress.left, Some(Nanos::from_s(5.0)));
    }

    #[test]
    fn by_solo_times_where_all_are_known() {
        let mut tracker = tracker(&[Some(10.0); 3]);
        let mut snapshot = snapshot();
        snapshot.now = Nanos::from_s(10.0);
        // 7 of 30 s of work are done in 10 s.
        for (task, ran_s) in snapshot.tasks.iter_mut().zip([5.0, 2.0, 0.0]) {
            task.estimates.ran = Nanos::from_s(ran_s);
        }
        tracker.tick(&snapshot);
        let left = tracker.progress().left.unwrap().as_s();
        assert!((left - 23.0 * 10.0 / 7.0).abs() < 1e-6, "{left}");
        // Two jobs took half of what was expected, so the third is expected to take half as well.
        tracker.ended(Nanos::from_s(10.0), &finished(0, "a", 10.0, 10.0));
        tracker.ended(Nanos::from_s(10.0), &finished(1, "b", 10.0, 10.0));
        snapshot.tasks.drain(..2);
        tracker.tick(&snapshot);
        assert_eq!(tracker.progress().left, Some(Nanos::from_s(5.0)));
    }

    #[test]
    fn a_cancelled_job_has_not_failed() {
        let mut tracker = tracker(&[None; 2]);
        let mut cancelled = finished(0, "a", 10.0, 10.0);
        cancelled.exit = Some(cosched_core::Exit::ToldToEnd);
        cancelled.ended_by_user = true;
        tracker.ended(Nanos::from_s(10.0), &cancelled);
        let progress = tracker.progress();
        assert_eq!((progress.failed, progress.cancelled), (0, 1));
        let line = progress_line(progress, 100);
        assert!(line.contains(" 1 cancelled, "), "{line}");
    }
}
