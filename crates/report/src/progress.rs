//! The progress of a run: counts, time left, and the line that shows them.

use crate::forecast::{Forecast, Now};
use crate::info::JobInfo;
use crate::text::{clock, seconds, visible};
use cosched_core::{Expected, ExpectedFrom, Nanos, Snapshot, TaskId, TaskResult, TaskView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveProgress {
    /// The run is a simulation.
    pub simulated: bool,
    /// Number of all jobs.
    pub total: usize,
    /// Jobs that ended, well or not.
    pub done: usize,
    /// Jobs that ended otherwise than with code 0.
    pub failed: usize,
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
    /// That rests on other commands, and can be far off.
    pub is_about: bool,
    /// All jobs that are left have taken longer than was known of them, so that nothing is known any more.
    pub is_overdue: bool,
}

/// Why there is no time left of a job, or of a run, that has taken longer than was known of it.
pub(crate) const OVERDUE: &str = "longer than expected";

/// What an estimate of the time left rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftFrom {
    /// Times of the jobs alone, and their progress.
    Solo,
    /// What earlier runs let expect.
    History,
    /// What earlier runs let expect, most of which were of other commands with the same program.
    Program,
    /// The mean time of the jobs that have ended well.
    Mean,
}

impl LeftFrom {
    /// The same in words.
    pub fn text(self) -> &'static str {
        match self {
            LeftFrom::Solo => "by times alone",
            LeftFrom::History => "by earlier runs",
            LeftFrom::Program => "by other runs of the program",
            LeftFrom::Mean => "by the jobs that ended",
        }
    }
}

/// A time left as on a clock; `about` says that it can be far off.
pub(crate) fn left_clock(left_s: f64, about: bool) -> String {
    format!("{}{}", if about { "about " } else { "" }, clock(left_s))
}

/// The progress line, in at most `width` characters; the time left is `--:--` while it is not known.
///
/// In a narrow terminal parts are left out from the right. The time left is the last but one to go.
pub fn progress_line(progress: &LiveProgress, width: usize) -> String {
    let LiveProgress {
        simulated,
        total,
        done,
        failed,
        running,
        waiting,
        queued,
        elapsed,
        left,
        ..
    } = *progress;
    let left = match left {
        Some(left) => format!("{} left", left_clock(left.as_s(), progress.is_about)),
        None if progress.is_overdue => OVERDUE.to_owned(),
        None => "--:-- left".to_owned(),
    };
    let mut parts = vec![format!("{done}/{total} done"), left];
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.push(format!("{running} running"));
    for (n, what) in [(waiting, "waiting"), (queued, "queued")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    parts.push(format!("{} elapsed", clock(elapsed.as_s())));
    let mut line = if simulated {
        "[simulated] ".to_owned()
    } else {
        String::new()
    };
    for (ix, part) in parts.iter().enumerate() {
        let divider = if ix == 0 { "" } else { ", " };
        if (line.chars().count() + divider.len() + part.chars().count()) > width {
            break;
        }
        line.push_str(divider);
        line.push_str(part);
    }
    line
}

/// One line about a job that ended, for output on which no progress line can be drawn.
pub fn ended_line(progress: &LiveProgress, result: &TaskResult, info: Option<&JobInfo>) -> String {
    let what = info.map_or_else(|| visible(&result.spec.name), JobInfo::what);
    let exit = result
        .exit
        .as_ref()
        .map_or_else(|| "ended".to_owned(), ToString::to_string);
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
    let timed_out = if result.timed_out {
        " (ran out of its time)"
    } else {
        ""
    };
    let simulated = if progress.simulated {
        "[simulated] "
    } else {
        ""
    };
    let digits = progress.total.to_string().len();
    format!(
        "{simulated}[{:digits$}/{}] {what}: {}{time}{timed_out}{attempts}",
        progress.done,
        progress.total,
        visible(&exit)
    )
}

/// Counts jobs and work during a run.
#[derive(Clone, Debug)]
pub struct ProgressTracker {
    progress: LiveProgress,
    quantum: Nanos,
    /// Solo times by the tasks' numbers, as far as they are known. All are looked at in each turn, so they are no map.
    solo_s: Vec<Option<f64>>,
    /// The sum of the solo times, if all are known.
    all_solo_s: Option<f64>,
    solo_done_s: f64,
    /// What earlier runs let expect, if they do of most jobs.
    forecast: Option<Forecast>,
    /// Most of that comes from other commands.
    is_by_program: bool,
    started: usize,
    started_ended: usize,
    /// Jobs that have not been let in.
    pending: usize,
    ended_well: usize,
    ran_well_s: f64,
    ran_ended_s: f64,
    /// By the tasks' numbers.
    ended: Vec<bool>,
}

impl ProgressTracker {
    /// A count for `jobs` jobs; `solo_s` has the known solo times in seconds.
    pub fn new(
        simulated: bool,
        total: usize,
        quantum: Nanos,
        solo_s: BTreeMap<TaskId, f64>,
    ) -> ProgressTracker {
        let all_solo_s = (solo_s.len() == total).then(|| solo_s.values().sum());
        let mut by_number = vec![None; total];
        for (task, solo_s) in solo_s {
            if let Some(known) = by_number.get_mut(task.0 as usize) {
                *known = Some(solo_s);
            }
        }
        ProgressTracker {
            progress: LiveProgress {
                simulated,
                total,
                queued: total,
                ..LiveProgress::default()
            },
            quantum,
            solo_s: by_number,
            all_solo_s,
            solo_done_s: 0.0,
            forecast: None,
            is_by_program: false,
            started: 0,
            started_ended: 0,
            pending: 0,
            ended_well: 0,
            ran_well_s: 0.0,
            ran_ended_s: 0.0,
            ended: vec![false; total],
        }
    }

    /// Uses what is expected of each job, in the order of the tasks.
    pub fn expecting(
        mut self,
        expected: impl Iterator<Item = Option<Expected>> + Clone,
    ) -> ProgressTracker {
        self.forecast = Forecast::new(
            expected
                .clone()
                .map(|expected| expected.map(|expected| expected.time)),
        );
        let (of_others, own): (Vec<Expected>, Vec<Expected>) = expected
            .flatten()
            .partition(|expected| expected.from == ExpectedFrom::Program);
        self.is_by_program = of_others.len() > own.len();
        self
    }

    /// How far the run is.
    pub fn progress(&self) -> &LiveProgress {
        &self.progress
    }

    /// How much of a job's work is done, after so many quanta of solo execution; `None` if its solo time is not known.
    pub fn share(&self, task: TaskId, quanta: f64) -> Option<f64> {
        let solo_s = self.solo_s_of(task).filter(|&solo_s| solo_s > 0.0)?;
        Some(quanta * self.quantum.as_s() / solo_s)
    }

    /// What the time left rests on.
    pub(crate) fn left_from(&self) -> LeftFrom {
        match (self.all_solo_s, &self.forecast) {
            (Some(_), _) => LeftFrom::Solo,
            (None, Some(_)) if self.is_by_program => LeftFrom::Program,
            (None, Some(_)) => LeftFrom::History,
            (None, None) => LeftFrom::Mean,
        }
    }

    pub(crate) fn solo_s_of(&self, task: TaskId) -> Option<f64> {
        self.solo_s.get(task.0 as usize).copied().flatten()
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.ended.get(task.0 as usize).is_some_and(|&ended| ended)
    }

    /// A job was started for the first time.
    pub fn started(&mut self) {
        self.started += 1;
        self.count();
    }

    /// An attempt of a job failed, and it is queued again.
    pub fn failed_once(&mut self) {
        self.started = self.started.saturating_sub(1);
        self.count();
    }

    /// A job was started again. Once it has ended, nobody waits for it.
    pub fn started_again(&mut self, task: TaskId) {
        if !self.has_ended(task) {
            self.started();
        }
    }

    /// A job ended.
    pub fn ended(&mut self, now: Nanos, result: &TaskResult) {
        let ok = result.exit.as_ref().is_some_and(cosched_core::Exit::ok);
        self.progress.elapsed = now;
        if let Some(ended) = self.ended.get_mut(result.spec.id.0 as usize) {
            *ended = true;
        }
        self.progress.done += 1;
        self.progress.failed += usize::from(!ok);
        self.started_ended += usize::from(result.started.is_some());
        self.ran_ended_s += result.ran.as_s();
        if ok {
            self.ended_well += 1;
            self.ran_well_s += result.ran.as_s();
        }
        if let Some(forecast) = &mut self.forecast {
            forecast.ended(result.spec.id, result.ran, ok);
        }
        self.solo_done_s += self.solo_s_of(result.spec.id).unwrap_or(0.0);
        self.count();
    }

    fn count(&mut self) {
        let live = self.started.saturating_sub(self.started_ended);
        let progress = &mut self.progress;
        progress.running = progress.running.min(live);
        progress.waiting = live - progress.running;
        progress.queued = progress.total.saturating_sub(progress.done + live);
    }

    /// Time has passed. So many jobs, `pending`, have not been let in.
    pub fn tick(&mut self, snapshot: &Snapshot, pending: usize) {
        self.pending = pending;
        self.progress.elapsed = snapshot.now;
        self.progress.running = self
            .unfinished(snapshot)
            .filter(|task| task.running.is_some())
            .count();
        self.count();
        self.progress.is_overdue = self.is_overdue(snapshot);
        // As much again as it has taken too long would be told as a time that is known.
        let left = self.left_s(snapshot).filter(|_| !self.progress.is_overdue);
        self.progress.left = left.map(Nanos::from_s);
        self.progress.is_about = self.left_from() == LeftFrom::Program;
    }

    /// Whether all jobs that are left have taken longer than is known of them.
    fn is_overdue(&self, snapshot: &Snapshot) -> bool {
        match (&self.forecast, self.all_solo_s) {
            (_, Some(all_s)) => {
                self.unfinished(snapshot).next().is_some() && self.by_solo(snapshot, all_s).0 <= 0.0
            }
            (Some(forecast), None) => forecast.is_outlived(&self.live(snapshot)),
            (None, None) => false,
        }
    }

    /// The jobs that have begun and not ended, and for how long each was placed.
    fn live(&self, snapshot: &Snapshot) -> Vec<(TaskId, Nanos)> {
        self.unfinished(snapshot)
            .map(|task| (task.id, task.estimates.ran))
            .collect()
    }

    /// Tasks that have not ended yet. Tasks that were started again don't count: the run does not wait for them.
    fn unfinished<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a TaskView> {
        snapshot
            .tasks
            .iter()
            .filter(|task| !self.has_ended(task.id))
    }

    /// The time left in seconds: from solo times and progress if all solo times are known; else from what earlier runs
    /// let expect; else from the time of the jobs that have ended.
    fn left_s(&self, snapshot: &Snapshot) -> Option<f64> {
        let elapsed = snapshot.now.as_s();
        if let (Some(forecast), None) = (&self.forecast, self.all_solo_s) {
            let live = self.live(snapshot);
            let cpus = snapshot.machine.cpus.len();
            return forecast.left_s(&Now {
                elapsed: snapshot.now,
                cpus,
                live: &live,
            });
        }
        let (work, done, longest) = match self.all_solo_s {
            Some(all_s) => self.by_solo(snapshot, all_s),
            None => self.by_mean(snapshot)?,
        };
        // Too little is done to know the speed, or the remaining jobs take longer than any known time.
        if done <= 0.0 || elapsed <= 0.0 || done < 0.02 * (work + done) || work <= 0.0 {
            return None;
        }
        Some((work * elapsed / done).max(longest))
    }

    /// Solo seconds: still to do, done, and to do for the longest job.
    fn by_solo(&self, snapshot: &Snapshot, total: f64) -> (f64, f64, f64) {
        let (mut done, mut longest) = (self.solo_done_s, 0.0f64);
        for task in self.unfinished(snapshot) {
            let solo = self.solo_s_of(task.id).unwrap_or(0.0);
            let quanta = task.estimates.progress.value().unwrap_or(0.0);
            let one = (quanta * self.quantum.as_s()).min(solo);
            done += one;
            longest = longest.max(solo - one);
        }
        (total - done, done, longest)
    }

    /// The same in seconds on CPUs. Jobs are taken to need the mean time of those that ended well, and one that has run for
    /// longer as much again as it has exceeded that by. Those tell of the others too: where short jobs end first, the mean of
    /// the ends alone would be far too short.
    fn by_mean(&self, snapshot: &Snapshot) -> Option<(f64, f64, f64)> {
        if self.ended_well == 0 {
            return None;
        }
        let mean = self.ran_well_s / self.ended_well as f64;
        let (mut work, mut done, mut longest) = (0.0, self.ran_ended_s, 0.0f64);
        let (mut whole_s, mut known) = (self.ran_well_s, self.ended_well);
        for task in self.unfinished(snapshot) {
            let ran = task.estimates.ran.as_s();
            let left = (mean - ran).abs();
            if ran > mean {
                (whole_s, known) = (whole_s + ran + left, known + 1);
            }
            (work, done, longest) = (work + left, done + ran, longest.max(left));
        }
        Some((
            work + self.pending as f64 * whole_s / known as f64,
            done,
            longest,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{finished, snapshot};
    use cosched_core::{Exit, Reading};

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

    /// What is known of other commands is no firm time, and a job that has outlived it has none left.
    #[test]
    fn what_is_known_of_other_commands_is_marked() {
        let tracker = |from| {
            let expected = [Some(Expected::of(Nanos::from_s(8.0), from))];
            ProgressTracker::new(false, 1, Nanos::from_ms(200), BTreeMap::new())
                .expecting(expected.into_iter())
        };
        let line = |tracker: &mut ProgressTracker, at: f64| {
            let mut snapshot = snapshot();
            snapshot.tasks.truncate(1);
            (snapshot.now, snapshot.tasks[0].estimates.ran) =
                (Nanos::from_s(at), Nanos::from_s(at));
            tracker.tick(&snapshot, 0);
            progress_line(tracker.progress(), 28)
        };
        let (mut own, mut other) = (tracker(ExpectedFrom::Same), tracker(ExpectedFrom::Program));
        assert_eq!(line(&mut own, 2.0), "0/1 done, 0:06 left");
        assert_eq!(
            (line(&mut other, 2.0).as_str(), other.left_from()),
            ("0/1 done, about 0:06 left", LeftFrom::Program)
        );
        line(&mut other, 12.0);
        assert!(other.progress().is_overdue && other.progress().left.is_none());
        let wide = progress_line(other.progress(), 60);
        assert!(
            wide.starts_with("0/1 done, longer than expected, "),
            "{wide}"
        );
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
            "[simulated] [ 3/24] mcf\\x1b[2J: SIGTERM after 12.5 s (ran out of its time)"
        );
    }

    #[test]
    fn unknown_until_a_job_has_ended() {
        let mut tracker = ProgressTracker::new(false, 5, Nanos::from_ms(200), BTreeMap::new());
        let mut snapshot = snapshot();
        (0..3).for_each(|_| tracker.started());
        tracker.tick(&snapshot, 2);
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
        tracker.tick(&snapshot, 2);
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
        let mut tracker =
            ProgressTracker::new(false, 2, Nanos::from_ms(200), [(TaskId(1), 10.0)].into());
        tracker.started();
        tracker.failed_once();
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (0, 2)
        );
        tracker.started_again(TaskId(0));
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (1, 1)
        );
        tracker.ended(Nanos::from_s(1.0), &finished(0, "a", 1.0, 1.0));
        tracker.started_again(TaskId(0));
        assert_eq!(
            (tracker.progress().waiting, tracker.progress().queued),
            (0, 1)
        );
        // One solo time is enough to tell the share of one job.
        assert_eq!(
            (
                tracker.share(TaskId(0), 10.0),
                tracker.share(TaskId(1), 25.0)
            ),
            (None, Some(0.5))
        );
    }

    /// A short job ended, and two others have run for ten times as long: they, and one that has not begun, need more than
    /// the short one did.
    #[test]
    fn jobs_that_outlast_the_others_need_as_much_again() {
        let mut tracker = ProgressTracker::new(false, 2, Nanos::from_ms(200), BTreeMap::new());
        tracker.ended(Nanos::from_s(4.0), &finished(1, "a", 8.0, 1.0));
        let mut snapshot = snapshot();
        snapshot.tasks.truncate(1);
        snapshot.now = Nanos::from_s(60.0);
        snapshot.tasks[0].estimates.ran = Nanos::from_s(60.0);
        tracker.tick(&snapshot, 0);
        assert_eq!(tracker.progress().left, Some(Nanos::from_s(56.0)));
        // One more counts as the mean of 4 s and of the 116 s that the other is thought to need: 56 + 60 s, of which 64 s
        // took 60 s.
        tracker.tick(&snapshot, 1);
        assert_eq!(
            tracker.progress().left,
            Some(Nanos::from_s(116.0 * 60.0 / 64.0))
        );
    }

    #[test]
    fn jobs_that_were_started_again_are_waited_for_by_nobody() {
        let solo = (0..3).map(|id| (TaskId(id), 10.0)).collect();
        let mut tracker = ProgressTracker::new(false, 3, Nanos::from_ms(200), solo);
        (0..3).for_each(|_| tracker.started());
        tracker.ended(Nanos::from_s(10.0), &finished(0, "a", 10.0, 10.0));
        let mut snapshot = snapshot();
        snapshot.now = Nanos::from_s(10.0);
        // The first task is in its second run and does not count.
        snapshot
            .tasks
            .iter_mut()
            .for_each(|task| task.estimates.progress = Reading::Value(25.0));
        tracker.tick(&snapshot, 0);
        let progress = tracker.progress();
        assert_eq!(
            (progress.done, progress.running, progress.waiting),
            (1, 1, 1)
        );
        assert_eq!(progress.left, Some(Nanos::from_s(5.0)));
    }

    #[test]
    fn by_solo_times_where_all_are_known() {
        let solo = (0..3).map(|id| (TaskId(id), 10.0)).collect();
        let mut tracker = ProgressTracker::new(false, 3, Nanos::from_ms(200), solo);
        let mut snapshot = snapshot();
        snapshot.now = Nanos::from_s(10.0);
        // 25, 10 and 0 quanta of 0.2 s: 7 of 30 s of work are done in 10 s.
        for (task, quanta) in snapshot.tasks.iter_mut().zip([25.0, 10.0, 0.0]) {
            task.estimates.progress = Reading::Value(quanta);
        }
        tracker.tick(&snapshot, 0);
        let left = tracker.progress().left.unwrap().as_s();
        assert!((left - 23.0 * 10.0 / 7.0).abs() < 1e-6, "{left}");
        // Two jobs are done, so the third is alone: it can't end sooner than it would alone.
        tracker.ended(Nanos::from_s(10.0), &finished(0, "a", 10.0, 10.0));
        tracker.ended(Nanos::from_s(10.0), &finished(1, "b", 10.0, 10.0));
        snapshot.tasks.drain(..2);
        tracker.tick(&snapshot, 0);
        assert_eq!(tracker.progress().left, Some(Nanos::from_s(10.0)));
    }
}
