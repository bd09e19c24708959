//! Reports on a running batch: to the screen, the history, the journal of starts, and those who watch it.

use super::answer::exited_ok;
use super::console::Order;
use super::folder::output_files;
use super::job_frames::Events;
use super::memory::Memory;
use super::options::OutputOptions;
use super::progress_to::ProgressTo;
use super::runs::Journal;
use super::screen::Screen;
use super::signals::Signals;
use super::stream::AllKnown;
use super::watch::Watch;
use cosched_core::{ByTask, Exit, Fact, JobEnd, Nanos, TaskId, TaskResult, TaskSpec};
use cosched_linux::time_of_day;
use cosched_report::{JobInfo, LiveProgress, RunNews, RunWarning, ended_line, progress_line};
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Where the reports go, and what they need to know of the batch.
pub(super) struct Reporter<'a> {
    pub(super) options: &'a OutputOptions,
    /// Prefix of lines about jobs.
    pub(super) mark: &'static str,
    pub(super) screen: &'a Screen,
    pub(super) memory: &'a RefCell<Memory>,
    pub(super) watch: Option<&'a Watch>,
    pub(super) journal: Journal,
    pub(super) progress_to: Option<ProgressTo>,
    /// Makes the frames of `--frames`.
    pub(super) events: Option<Events>,
    /// What earlier runs know of each job.
    pub(super) known: AllKnown,
    /// The folder of the jobs' output.
    pub(super) folder: PathBuf,
    /// More jobs may come.
    pub(super) is_open: bool,
    /// Start of the run's clock; `None` in a simulation.
    pub(super) started_at: Option<SystemTime>,
    /// When the loop began, in real time.
    pub(super) began: Instant,
}

impl Reporter<'_> {
    /// Passes on what is told to everyone concerned. Returns whether the reader of `--progress-to` has not taken all yet.
    pub(super) fn report(&mut self, told: RunNews<'_>) -> bool {
        if let Some(to) = &mut self.progress_to {
            to.report(&told);
            let problem = to.take_warning();
            self.warn_of(problem);
        }
        let frame = self.events.as_mut();
        let frame = frame.and_then(|events| events.frame(&told));
        match told {
            RunNews::Fact {
                at,
                fact,
                info,
                progress,
            } => self.report_fact(at, fact, info, progress),
            RunNews::Progress(progress) => self.progress(progress),
            RunNews::Status(status) => {
                if let Some(watch) = self.watch {
                    watch.write(status, self.screen);
                }
            }
            // Its coordinator knows that.
            RunNews::Warning(RunWarning::EndedByUser { .. }) if self.options.frames => {}
            // The summary has it.
            RunNews::Warning(RunWarning::JobsAtOnce { .. }) => {}
            RunNews::Warning(warning) => {
                self.screen.show_warning(&warning.text());
            }
        }
        // A job's output comes before its end.
        if let Some(frame) = frame {
            self.screen.send(Order::Frame(Box::new(frame)));
        }
        self.progress_to.as_ref().is_some_and(ProgressTo::is_behind)
    }

    fn report_fact(
        &mut self,
        at: Nanos,
        fact: Fact<'_>,
        info: Option<&JobInfo>,
        progress: &LiveProgress,
    ) {
        match fact {
            Fact::Starting(_) => self.starting(info, at),
            Fact::Started {
                task, again: false, ..
            } => self.started(task, info),
            Fact::Failed(result) => self.retried(result, info),
            Fact::Lost(task) => self.lost(task, info),
            Fact::Ended(result) => self.ended(result, info, progress),
            _ => {}
        }
    }

    fn starting(&mut self, info: Option<&JobInfo>, at: Nanos) {
        if let (Some(info), Some(began)) = (info, self.started_at) {
            let at = began + Duration::from_nanos(at.0);
            self.journal.starting(info, at);
            self.warn_of_journal();
        }
    }

    fn started(&self, task: &TaskSpec, info: Option<&JobInfo>) {
        let tag = info.and_then(|info| match self.events {
            Some(_) => info.id.as_ref(),
            None => info.tag.as_ref(),
        });
        self.screen.send(Order::Started {
            job: task.id.0,
            tag: tag.unwrap_or(&task.name).clone(),
            name: task.name.clone(),
        });
        if self.options.verbose {
            let what = what(task, info);
            self.say(&format!("{}started {what}", self.mark));
        }
    }

    fn retried(&self, result: &TaskResult, info: Option<&JobInfo>) {
        let task = &result.spec;
        self.show_again(task);
        let mark = self.mark;
        let what = what(task, info);
        let end = JobEnd::of(result).text();
        let attempt = result.runs;
        self.say(&format!(
            "{mark}{what}: {end} in attempt {attempt}; retrying"
        ));
    }

    fn lost(&self, task: &TaskSpec, info: Option<&JobInfo>) {
        self.show_again(task);
        let (mark, what) = (self.mark, what(task, info));
        self.say(&format!("{mark}{what}: its machine is gone; starting anew"));
    }

    /// Shows the output of the job's next run apart from that of the last.
    fn show_again(&self, task: &TaskSpec) {
        let lengths = output_files(&self.folder, &task.name)
            .map(|file| file.metadata().map_or(0, |meta| meta.len()));
        let job = task.id.0;
        self.screen.send(Order::Again { job, lengths });
    }

    /// Writes a line about a job. In a real run it begins with the time of day.
    fn say(&self, line: &str) {
        if self.started_at.is_some() {
            let now = time_of_day(SystemTime::now());
            self.screen.say(&format!("{now} {line}"));
        } else {
            self.screen.say(line);
        }
    }

    fn ended(&self, result: &TaskResult, info: Option<&JobInfo>, progress: &LiveProgress) {
        let job = result.spec.id.0;
        if let Some(mut known) = self.known.borrow_mut().remove(result.spec.id) {
            known.learnt = info.and_then(|info| info.learnt.clone());
            self.memory.borrow_mut().ended(&known, result);
        }
        let failed = result.timed_out || !exited_ok(result);
        self.screen.send(Order::Ended { job, failed });
        if self.options.quiet {
            // A job that did not start cannot report that itself.
            let is_told = self.events.is_some() || result.ended_by_user;
            if matches!(result.exit, Some(Exit::NotStarted(_))) && !is_told {
                let line = ended_line(progress, result, info);
                self.screen.answer(&format!("cosched: {line}"));
            }
            return;
        }
        // Whoever ends the run knows that its jobs end. The summary tells of a single job at once.
        let has_others = self.is_open || progress.total > 1;
        let is_news = failed && !result.told_to_end && has_others;
        if is_news || self.options.verbose {
            let info = info.filter(|_| !self.options.has_summary());
            self.say(&ended_line(progress, result, info));
        }
        if is_news {
            self.screen.send(Order::LastError { job });
        }
    }

    fn progress(&self, progress: &LiveProgress) {
        self.screen
            .progress(|width| self.progress_line(progress, width));
        self.screen
            .sign_of_life(|| self.progress_line(progress, 200));
        let problem = self.memory.borrow_mut().pass();
        self.warn_of(problem);
    }

    /// The progress line. A simulation's also has its speed relative to real time.
    fn progress_line(&self, progress: &LiveProgress, width: usize) -> String {
        let line = progress_line(progress, width);
        if !progress.simulated {
            return line;
        }
        let real = self.began.elapsed().as_secs_f64();
        let speed = progress.elapsed.as_s() / real;
        let longer = format!("{line}, {speed:.0} x real time");
        if longer.chars().count() <= width {
            longer
        } else {
            line
        }
    }

    fn warn_of(&self, problem: Option<RunWarning>) {
        if let Some(warning) = problem {
            self.screen.warn(warning);
        }
    }

    fn warn_of_journal(&mut self) {
        let problem = self.journal.take_warning();
        self.warn_of(problem);
    }

    /// Warns about output that was rewritten or not shown, after the last job. Frames go on to the end of the run.
    pub(super) fn leave_console(&self, signals: &Signals, infos: &ByTask<JobInfo>) {
        if self.events.is_some() {
            return;
        }
        let shown = self.screen.leave_console(signals);
        for (job, file) in shown.rewritten {
            let Some(job) = infos.get(TaskId(job)) else {
                continue;
            };
            let end = if file == 0 { "out" } else { "err" };
            let file = format!("{}.{end}", job.name);
            self.screen.warn(RunWarning::LogRewritten { file });
        }
        if let Some(why) = shown.lost {
            let folder = self.folder.display().to_string();
            self.screen.warn(RunWarning::OutputLost { why, folder });
        }
    }

    /// Writes what still waits to be written to the journal and for `--progress-to`.
    pub(super) fn finish(&mut self) {
        if let Some(to) = &mut self.progress_to {
            to.finish();
            let problem = to.take_warning();
            self.warn_of(problem);
        }
        self.journal.finish();
        self.warn_of_journal();
    }
}

/// What a job runs, in words.
fn what(task: &TaskSpec, info: Option<&JobInfo>) -> String {
    match info {
        Some(info) => info.what(),
        None => task.name.clone(),
    }
}
