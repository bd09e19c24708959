//! Records a run: passes everything that happens to the series, the events, the job log and a listener.

use crate::events::EventWriter;
use crate::info::{JobInfo, JobInfos, RunInfo};
use crate::joblog::{Entry, JobLogWriter};
use crate::live::{Live, RunFacts, Status};
use crate::progress::{LiveProgress, ProgressTracker};
use crate::series::SeriesWriter;
use crate::source::BackendKind;
use crate::warning::RunWarning;
use cosched_core::{
    DecisionRecord, Nanos, Recorder, RunNow, Sample, Snapshot, Switch, TaskId, TaskResult,
    TaskSpec, Wait, WaitReason, Warning,
};
use std::io::Write;
use std::time::{Duration, SystemTime};

/// Something to show the user during a run.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A job was started.
    Started {
        /// The task's specification, with its name.
        task: &'a TaskSpec,
        /// The job's command, log files and solo time.
        info: Option<&'a JobInfo>,
        /// Time since the start of the run.
        at: Nanos,
        /// How far the run is.
        progress: &'a LiveProgress,
    },
    /// A job is about to be started, for the first time or again.
    Starting {
        /// The job's command, log files and solo time.
        info: Option<&'a JobInfo>,
        /// Time since the start of the run.
        at: Nanos,
    },
    /// A job failed, and is started again.
    Retried {
        /// The task's result in the attempt that failed; `runs` is the attempt's number.
        result: &'a TaskResult,
        /// The job's command, log files and solo time.
        info: Option<&'a JobInfo>,
    },
    /// A job's machine is gone, and the job is queued again.
    Lost {
        /// The task.
        task: &'a TaskSpec,
        /// The job's command, log files and solo time.
        info: Option<&'a JobInfo>,
    },
    /// A job ended.
    Ended {
        /// The task's result.
        result: &'a TaskResult,
        /// The job's command, log files and solo time.
        info: Option<&'a JobInfo>,
        /// How far the run is.
        progress: &'a LiveProgress,
    },
    /// Time has passed. Sent at least once a quantum.
    Progress(&'a LiveProgress),
    /// The state of the run. What only the listener knows is not in it yet.
    Status(Box<Status>),
    /// A warning for the user. Repeated faults of a policy give one warning.
    Warning(&'a RunWarning),
}

/// Maximum number of warnings in the run record.
const MOST_WARNINGS: usize = 10_000;

/// A file that a run writes.
pub type Output<'a> = Box<dyn Write + 'a>;

/// The function that gets the notices.
type Listener<'a> = Box<dyn FnMut(Notice<'_>) -> bool + 'a>;

/// Writes the files that were asked for, keeps the warnings for the run record, and calls a listener.
///
/// A file that cannot be written any further causes one warning, and the run continues.
pub struct FileRecorder<'a> {
    jobs: JobInfos,
    run_start: Option<Duration>,
    /// The series, if it is written.
    pub series: Option<SeriesWriter<Output<'a>>>,
    /// The events, if they are written.
    pub events: Option<EventWriter<Output<'a>>>,
    /// The job log, if it is written.
    pub joblog: Option<JobLogWriter<Output<'a>>>,
    /// The host that the job log names; `None` for that of a local job.
    pub host: Option<String>,
    listener: Option<Listener<'a>>,
    /// The listener holds what a slow reader has not taken.
    is_behind: bool,
    tracker: ProgressTracker,
    live: Live,
    warnings: Vec<RunWarning>,
    policy_fault_shown: bool,
    few_cpus_shown: bool,
}

impl<'a> FileRecorder<'a> {
    /// A recorder for a run that writes no file yet. What is known of a job is in `jobs` before the job comes.
    pub fn new(info: &RunInfo, jobs: JobInfos) -> FileRecorder<'a> {
        let simulated = info.backend == BackendKind::Sim;
        let started_at = info.started_at.unwrap_or(SystemTime::UNIX_EPOCH);
        let run_start = started_at.duration_since(SystemTime::UNIX_EPOCH);
        FileRecorder {
            jobs,
            run_start: (!simulated).then(|| run_start.unwrap_or_default()),
            series: None,
            events: None,
            joblog: None,
            host: None,
            listener: None,
            is_behind: false,
            tracker: ProgressTracker::new(simulated),
            live: Live::new(info),
            warnings: Vec::new(),
            policy_fault_shown: false,
            few_cpus_shown: false,
        }
    }

    /// Calls `listener` with everything that happens. It returns whether it holds what a slow reader has not taken.
    pub fn with_listener(
        mut self,
        listener: impl FnMut(Notice<'_>) -> bool + 'a,
    ) -> FileRecorder<'a> {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Gives the listener the state of the run, with these facts, at most once a second.
    pub fn with_status(mut self, facts: RunFacts) -> FileRecorder<'a> {
        self.live.facts = Some(facts);
        self
    }

    /// How far the run is.
    pub fn progress(&self) -> &LiveProgress {
        self.tracker.progress()
    }

    /// The warnings, for the run record.
    pub fn into_warnings(mut self) -> Vec<RunWarning> {
        if let Some(joblog) = &mut self.joblog {
            joblog.finish();
        }
        self.check_files();
        self.warnings
    }

    fn tell(&mut self, warning: RunWarning) {
        if let Some(listener) = &mut self.listener {
            listener(Notice::Warning(&warning));
        }
        // A stream may give as many as it has jobs.
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        }
    }

    fn check_files(&mut self) {
        let problems = [
            self.series.as_mut().and_then(SeriesWriter::take_warning),
            self.events.as_mut().and_then(EventWriter::take_warning),
            self.joblog.as_mut().and_then(JobLogWriter::take_warning),
        ];
        for problem in problems.into_iter().flatten() {
            self.tell(problem);
        }
    }

    /// Writes a line of the job log.
    fn log_job(&mut self, result: &TaskResult) {
        let Some(joblog) = &mut self.joblog else {
            return;
        };
        let jobs = self.jobs.borrow();
        let info = jobs.get(result.spec.id);
        let (seq, command) = match info {
            Some(info) => (info.seq, info.command_or_name()),
            None => (u64::from(result.spec.id.0) + 1, result.spec.name.as_str()),
        };
        let mut entry = Entry::of(result, seq, command, self.run_start);
        let host = info.and_then(|info| info.host.as_ref());
        if let Some(host) = host.or(self.host.as_ref()) {
            entry.host.clone_from(host);
        }
        joblog.ended(&entry);
    }

    fn name(&self, task: TaskId) -> String {
        match self.jobs.borrow().get(task) {
            Some(info) => info.name.clone(),
            None => format!("job {task}"),
        }
    }
}

impl Recorder for FileRecorder<'_> {
    fn wants_policy_state(&self) -> bool {
        self.events.is_some()
    }

    fn taken(&mut self, now: Nanos, tasks: &[TaskSpec]) {
        let jobs = self.jobs.borrow();
        for task in tasks {
            let info = jobs.get(task.id);
            let measured = info.and_then(|info| info.solo).map(|solo| solo.time);
            let solo = measured.or(task.solo.time);
            self.tracker.taken(task, solo.map(Nanos::as_s));
            if let Some(series) = &mut self.series {
                series.taken(now, task, info);
            }
        }
        drop(jobs);
        self.check_files();
    }

    fn starting(&mut self, now: Nanos, task: &TaskSpec) {
        if let Some(listener) = &mut self.listener {
            listener(Notice::Starting {
                info: self.jobs.borrow().get(task.id),
                at: now,
            });
        }
    }

    fn started(&mut self, now: Nanos, task: &TaskSpec) {
        self.tracker.started();
        if let Some(series) = &mut self.series {
            series.started(now, task.id);
        }
        if let Some(listener) = &mut self.listener {
            listener(Notice::Started {
                task,
                info: self.jobs.borrow().get(task.id),
                at: now,
                progress: self.tracker.progress(),
            });
        }
        self.check_files();
    }

    fn restarted(&mut self, now: Nanos, task: &TaskSpec, _run: u32) {
        self.tracker.started_again(task.id);
        if let Some(series) = &mut self.series {
            series.started(now, task.id);
        }
        self.check_files();
    }

    fn retried(&mut self, _now: Nanos, result: &TaskResult) {
        self.tracker.queued_again();
        self.log_job(result);
        if let Some(listener) = &mut self.listener {
            let info = self.jobs.borrow();
            let info = info.get(result.spec.id);
            listener(Notice::Retried { result, info });
        }
        self.check_files();
    }

    fn lost(&mut self, _now: Nanos, task: &TaskSpec) {
        self.tracker.queued_again();
        if let Some(listener) = &mut self.listener {
            let info = self.jobs.borrow();
            let info = info.get(task.id);
            listener(Notice::Lost { task, info });
        }
    }

    fn decided(&mut self, record: DecisionRecord<'_>) {
        if let Some(series) = &mut self.series {
            series.decided(&record);
        }
        if let Some(events) = &mut self.events {
            events.decided(&record);
        }
        self.check_files();
    }

    fn left_out(&mut self, now: Nanos, task: TaskId, reason: WaitReason) {
        if let Some(series) = &mut self.series {
            series.waits(now, &Wait { task, reason });
        }
        self.check_files();
    }

    fn ended(&mut self, now: Nanos, result: &TaskResult) {
        self.tracker.ended(now, result);
        let id = result.spec.id;
        self.live.ended(now, result, self.jobs.borrow().get(id));
        if let Some(series) = &mut self.series {
            series.ended(now, result);
        }
        self.log_job(result);
        if let Some(listener) = &mut self.listener {
            listener(Notice::Ended {
                result,
                info: self.jobs.borrow().get(id),
                progress: self.tracker.progress(),
            });
        }
        self.check_files();
    }

    fn forgotten(&mut self, task: TaskId) {
        self.jobs.borrow_mut().remove(task);
    }

    fn switched(&mut self, switches: &[Switch]) {
        self.live.switched(switches);
        if let Some(series) = self.series.as_mut().filter(|_| !switches.is_empty()) {
            series.switched(switches);
        }
    }

    fn left(&mut self, samples: &[Sample]) {
        if let Some(series) = &mut self.series {
            series.left(samples);
        }
        self.check_files();
    }

    fn tick(&mut self, snapshot: &Snapshot, _queued: usize) {
        // The estimate is only for the listener.
        if let Some(listener) = &mut self.listener {
            self.tracker.tick(snapshot);
            self.is_behind = listener(Notice::Progress(self.tracker.progress()));
        }
    }

    fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn wants_state(&self) -> bool {
        self.live.facts.is_some()
    }

    fn state(&mut self, now: &RunNow<'_>) {
        if let Some(listener) = &mut self.listener {
            for task in now.tasks {
                self.tracker.saw(now.at, task);
            }
            self.tracker.tick(now.snapshot);
            let status = self.live.status(now, &self.jobs.borrow(), &self.tracker);
            listener(Notice::Status(Box::new(status)));
        }
    }

    fn warn(&mut self, now: Nanos, warning: &Warning) {
        let told = RunWarning::of_loop(warning, |task| self.name(task));
        if let Some(series) = &mut self.series {
            series.warned(now, warning.task(), &told);
        }
        let was_shown = match warning {
            // A faulty policy may fail in every quantum. The user sees one warning; the record has the number of faults.
            Warning::PolicyFault { .. } => std::mem::replace(&mut self.policy_fault_shown, true),
            // The advice is the same for the other jobs.
            Warning::FewCpus { .. } => std::mem::replace(&mut self.few_cpus_shown, true),
            _ => false,
        };
        if !was_shown {
            self.tell(told);
        }
        self.check_files();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventContext;
    use crate::series::SeriesHeader;
    use crate::testing::{FullDisk, decision, info, result, samples, simulated, snapshot};
    use crate::{EventReader, RunFile, SeriesReader, read_joblog};
    use cosched_core::{Exit, RngState};
    use std::collections::BTreeMap;

    fn drive(recorder: &mut FileRecorder<'_>, result: &cosched_core::RunResult) {
        assert!(recorder.wants_policy_state() || recorder.events.is_none());
        recorder.taken(Nanos::ZERO, &specs(result));
        let snapshot = snapshot();
        let samples = samples(snapshot.now);
        for task in &result.tasks {
            recorder.starting(Nanos(5), &task.spec);
            recorder.started(Nanos::ZERO, &task.spec);
        }
        recorder.decided(DecisionRecord {
            snapshot: &snapshot,
            samples: &samples,
            policy_state: None,
            rng: RngState {
                seed: 1,
                position: 0,
            },
            decision: &decision(),
            stood_in: false,
        });
        recorder.tick(&snapshot, 0);
        for _ in 0..3 {
            recorder.warn(
                snapshot.now,
                &Warning::PolicyFault {
                    why: "task #9 is unknown or has ended".to_owned(),
                },
            );
        }
        recorder.warn(snapshot.now, &Warning::TimedOut(TaskId(1)));
        result
            .tasks
            .iter()
            .take(2)
            .for_each(|task| recorder.ended(Nanos::from_s(20.0), task));
    }

    fn specs(result: &cosched_core::RunResult) -> Vec<TaskSpec> {
        result.tasks.iter().map(|task| task.spec.clone()).collect()
    }

    fn event_context() -> EventContext {
        EventContext {
            backend: BackendKind::Host,
            policy: "perf-fair".to_owned(),
            params: BTreeMap::new(),
            machine_params: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    #[test]
    fn every_file_is_written_and_the_listener_told() {
        let result = result();
        let (info, tasks) = (info(&result), specs(&result));
        let (mut series, mut events, mut joblog) = (Vec::new(), Vec::new(), Vec::new());
        let mut told = Vec::new();
        {
            let header = SeriesHeader::new(&info, &tasks);
            let mut recorder = FileRecorder::new(&info, info.job_infos());
            recorder.series = Some(SeriesWriter::new(Box::new(&mut series), &header));
            recorder.events = Some(EventWriter::new(Box::new(&mut events), event_context()));
            recorder.joblog = Some(JobLogWriter::new(Box::new(&mut joblog), true));
            let mut recorder = recorder.with_listener(|notice| {
                told.push(match notice {
                    Notice::Started { task, .. } => format!("started {}", task.name),
                    Notice::Starting { info, at } => {
                        format!("{} starts at {}", info.unwrap().name, at.0)
                    }
                    Notice::Lost { info, .. } => format!("{} is lost", info.unwrap().name),
                    Notice::Retried { result, info } => {
                        format!("{} failed in attempt {}", info.unwrap().name, result.runs)
                    }
                    Notice::Ended { progress, info, .. } => {
                        format!(
                            "{}/{} {}",
                            progress.done,
                            progress.total,
                            info.unwrap().command_or_name()
                        )
                    }
                    Notice::Progress(progress) => crate::progress_line(progress, 80),
                    Notice::Status(status) => format!("{} s", status.elapsed_s),
                    Notice::Warning(warning) => format!("warning: {}", warning.text()),
                });
                false
            });
            drive(&mut recorder, &result);
            let warnings = recorder.into_warnings();
            assert!(!warnings.iter().any(RunWarning::is_lost_file));
            assert_eq!(
                warnings.iter().map(RunWarning::text).collect::<Vec<_>>(),
                [
                    "the policy's decision could not be carried out (task #9 is unknown or has ended); round-robin \
                     decided instead",
                    "mcf-2 timed out and is ended",
                ]
            );
        }
        insta::assert_snapshot!(told.join("\n"));
        let rows = SeriesReader::new(series.as_slice(), "s")
            .unwrap()
            .map(Result::unwrap);
        assert!(rows.count() > 10);
        assert_eq!(
            EventReader::new(events.as_slice(), "e")
                .map(Result::unwrap)
                .count(),
            1
        );
        let log = read_joblog(joblog.as_slice(), "j").unwrap();
        let commands: Vec<&str> = log
            .entries
            .iter()
            .map(|entry| entry.command.as_str())
            .collect();
        assert_eq!(commands, ["./mcf-1 --input 'a b'", "./mcf-2 --input 'a b'"]);
        assert_eq!(
            (log.entries[0].seq, log.entries[0].start_s),
            (1, 1_700_000_000.25)
        );
    }

    #[test]
    fn each_attempt_is_logged_and_told() {
        let mut result = result();
        let info = info(&result);
        let (mut joblog, mut told) = (Vec::new(), Vec::new());
        let mut recorder = FileRecorder::new(&info, info.job_infos());
        recorder.joblog = Some(JobLogWriter::new(Box::new(&mut joblog), true));
        let mut recorder = recorder.with_listener(|notice| {
            if let Notice::Retried { result, info } = notice {
                told.push((info.unwrap().name.clone(), result.runs));
            }
            false
        });
        let task = &mut result.tasks[0];
        (task.exit, task.runs) = (Some(cosched_core::Exit::Code(3)), 1);
        recorder.retried(Nanos::from_s(1.0), task);
        (task.exit, task.runs) = (Some(cosched_core::Exit::Code(0)), 2);
        recorder.ended(Nanos::from_s(2.0), task);
        assert_eq!(recorder.progress().done, 1);
        drop(recorder);
        assert_eq!(told, [("mcf-1".to_owned(), 1)]);
        let log = read_joblog(joblog.as_slice(), "j").unwrap();
        let lines: Vec<(u64, i32)> = log
            .entries
            .iter()
            .map(|entry| (entry.seq, entry.exit))
            .collect();
        assert_eq!(lines, [(1, 3), (1, 0)]);
        assert_eq!(log.successes().count(), 1);
    }

    #[test]
    fn full_disks_are_told_once_each_and_harm_nothing() {
        let result = result();
        let (info, tasks) = (info(&result), specs(&result));
        let header = SeriesHeader::new(&info, &tasks);
        let full = || Box::new(FullDisk::after(3));
        let mut recorder = FileRecorder::new(&info, info.job_infos());
        recorder.series = Some(SeriesWriter::new(full(), &header));
        recorder.events = Some(EventWriter::new(full(), event_context()));
        recorder.joblog = Some(JobLogWriter::new(full(), true));
        drive(&mut recorder, &result);
        drive(&mut recorder, &result);
        let warnings = recorder.into_warnings();
        assert_eq!(
            warnings
                .iter()
                .filter(|warning| warning.is_lost_file())
                .count(),
            2,
            "{warnings:?}"
        );
        for stopped in [RunFile::Series, RunFile::Events, RunFile::JobLog] {
            let of_it = |warning: &&RunWarning| matches!(warning, RunWarning::FileStopped { file, .. } if *file == stopped);
            assert_eq!(warnings.iter().filter(of_it).count(), 1, "{warnings:?}");
        }
    }

    #[test]
    fn a_simulated_job_log_says_so() {
        let (result, info) = simulated();
        let mut joblog = Vec::new();
        let mut recorder = FileRecorder::new(&info, info.job_infos());
        recorder.joblog = Some(JobLogWriter::new(Box::new(&mut joblog), true));
        assert!(!recorder.wants_policy_state());
        recorder.ended(Nanos::from_s(15.0), &result.tasks[0]);
        assert!(result.tasks[0].exit.as_ref().is_some_and(Exit::ok));
        drop(recorder);
        assert_eq!(
            read_joblog(joblog.as_slice(), "j").unwrap().entries[0].host,
            "simulated"
        );
    }
}
