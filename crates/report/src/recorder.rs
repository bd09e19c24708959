//! Records a run: passes everything that happens to the series, the events, the job log and a listener.

use crate::events::EventWriter;
use crate::info::{JobInfo, JobInfos, RunInfo};
use crate::joblog::{JobLogEntry, JobLogWriter};
use crate::live::{Live, RunFacts, RunStatus};
use crate::progress::{LiveProgress, ProgressTracker};
use crate::series::SeriesWriter;
use crate::source::BackendKind;
use crate::warning::RunWarning;
use cosched_core::{Fact, Nanos, Recorder, RunNow, Snapshot, TaskId, TaskResult, Warning};
use std::io::Write;
use std::time::{Duration, SystemTime};

/// What a listener is told during a run.
#[derive(Debug)]
pub enum RunNews<'a> {
    /// Something happened. Warnings are told as such.
    Fact {
        /// When.
        at: Nanos,
        /// What.
        fact: Fact<'a>,
        /// What is known of the job that it is about.
        info: Option<&'a JobInfo>,
        /// How far the run is then.
        progress: &'a LiveProgress,
    },
    /// Time has passed. Told at least once a quantum.
    Progress(&'a LiveProgress),
    /// The state of the run. What only the listener knows is not in it yet.
    Status(Box<RunStatus>),
    /// A warning for the user. Repeated faults of a policy give one warning.
    Warning(&'a RunWarning),
}

/// Maximum number of warnings in the run record.
const MOST_WARNINGS: usize = 10_000;

/// A file that a run writes.
pub type Output<'a> = Box<dyn Write + 'a>;

/// The function that is told.
type Listener<'a> = Box<dyn FnMut(RunNews<'_>) -> bool + 'a>;

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
        listener: impl FnMut(RunNews<'_>) -> bool + 'a,
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
            listener(RunNews::Warning(&warning));
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

    /// Tells everybody but the user of something that is no warning.
    fn pass_on(&mut self, at: Nanos, fact: Fact<'_>) {
        let jobs = self.jobs.borrow();
        self.tracker.note(at, &fact, &jobs);
        self.live.note(at, &fact, &jobs);
        if let Some(series) = &mut self.series {
            series.note(at, &fact, &jobs);
        }
        if let (Some(events), Fact::Decided(record)) = (&mut self.events, &fact) {
            events.decided(record);
        }
        if let (Some(joblog), Fact::Failed(result) | Fact::Ended(result)) = (&mut self.joblog, fact)
        {
            let info = jobs.get(result.spec.id);
            joblog.ended(&entry(result, info, self.run_start, self.host.as_ref()));
        }
        if let Some(listener) = &mut self.listener {
            listener(RunNews::Fact {
                at,
                fact,
                info: fact.task().and_then(|task| jobs.get(task)),
                progress: self.tracker.progress(),
            });
        }
        drop(jobs);
        if let Fact::Forgotten(task) = fact {
            self.jobs.borrow_mut().remove(task);
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
    }

    fn name(&self, task: TaskId) -> String {
        match self.jobs.borrow().get(task) {
            Some(info) => info.name.clone(),
            None => format!("job {task}"),
        }
    }
}

/// The line of the job log of a job that ended.
fn entry(
    result: &TaskResult,
    info: Option<&JobInfo>,
    run_start: Option<Duration>,
    host: Option<&String>,
) -> JobLogEntry {
    let (seq, command) = match info {
        Some(info) => (info.seq, info.command_or_name()),
        None => (u64::from(result.spec.id.0) + 1, result.spec.name.as_str()),
    };
    let mut entry = JobLogEntry::of(result, seq, command, run_start);
    if let Some(host) = info.and_then(|info| info.host.as_ref()).or(host) {
        entry.host.clone_from(host);
    }
    entry
}

impl Recorder for FileRecorder<'_> {
    fn wants_policy_state(&self) -> bool {
        self.events.is_some()
    }

    fn emit(&mut self, at: Nanos, fact: Fact<'_>) {
        if let Fact::Warned(warning) = fact {
            self.warn(at, warning);
        } else {
            self.pass_on(at, fact);
        }
        self.check_files();
    }

    fn tick(&mut self, snapshot: &Snapshot, _queued: usize) {
        // The estimate is only for the listener.
        if let Some(listener) = &mut self.listener {
            self.tracker.tick(snapshot);
            self.is_behind = listener(RunNews::Progress(self.tracker.progress()));
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
            listener(RunNews::Status(Box::new(status)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventContext;
    use crate::series::SeriesHeader;
    use crate::testing::{FullDisk, decision, info, result, samples, simulated, snapshot};
    use crate::{EventReader, RunFile, SeriesReader, read_joblog};
    use cosched_core::{DecisionRecord, Exit, RngState, TaskSpec};
    use std::collections::BTreeMap;

    fn drive(recorder: &mut FileRecorder<'_>, result: &cosched_core::RunResult) {
        assert!(recorder.wants_policy_state() || recorder.events.is_none());
        recorder.emit(Nanos::ZERO, Fact::Came(&specs(result)));
        let snapshot = snapshot();
        let samples = samples(snapshot.now);
        for task in &result.tasks {
            let (task, run, again) = (&task.spec, 1, false);
            recorder.emit(Nanos(5), Fact::Starting(task));
            recorder.emit(Nanos::ZERO, Fact::Started { task, run, again });
        }
        let record = DecisionRecord {
            snapshot: &snapshot,
            samples: &samples,
            policy_state: None,
            rng: RngState {
                seed: 1,
                position: 0,
            },
            decision: &decision(),
            stood_in: false,
        };
        recorder.emit(snapshot.now, Fact::Decided(record));
        recorder.tick(&snapshot, 0);
        for _ in 0..3 {
            let why = "task #9 is unknown or has ended".to_owned();
            let fault = Warning::PolicyFault { why };
            recorder.emit(snapshot.now, Fact::Warned(&fault));
        }
        let timed_out = Warning::TimedOut(TaskId(1));
        recorder.emit(snapshot.now, Fact::Warned(&timed_out));
        for task in result.tasks.iter().take(2) {
            recorder.emit(Nanos::from_s(20.0), Fact::Ended(task));
        }
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

    fn words(told: RunNews<'_>) -> Option<String> {
        let (at, fact, info, progress) = match told {
            RunNews::Fact {
                at,
                fact,
                info,
                progress,
            } => (at, fact, info, progress),
            RunNews::Progress(progress) => return Some(crate::progress_line(progress, 80)),
            RunNews::Status(status) => return Some(format!("{} s", status.elapsed_s)),
            RunNews::Warning(warning) => return Some(format!("warning: {}", warning.text())),
        };
        match fact {
            Fact::Started { task, .. } => Some(format!("started {}", task.name)),
            Fact::Starting(_) => Some(format!("{} starts at {}", info?.name, at.0)),
            Fact::Ended(_) => {
                let LiveProgress { done, total, .. } = progress;
                let command = info?.command_or_name();
                Some(format!("{done}/{total} {command}"))
            }
            _ => None,
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
            let mut recorder = recorder.with_listener(|what| {
                told.extend(words(what));
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
        let mut recorder = recorder.with_listener(|what| {
            if let RunNews::Fact {
                fact: Fact::Failed(result),
                info,
                ..
            } = what
            {
                told.push((info.unwrap().name.clone(), result.runs));
            }
            false
        });
        let task = &mut result.tasks[0];
        (task.exit, task.runs) = (Some(cosched_core::Exit::Code(3)), 1);
        recorder.emit(Nanos::from_s(1.0), Fact::Failed(task));
        (task.exit, task.runs) = (Some(cosched_core::Exit::Code(0)), 2);
        recorder.emit(Nanos::from_s(2.0), Fact::Ended(task));
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
        recorder.emit(Nanos::from_s(15.0), Fact::Ended(&result.tasks[0]));
        assert!(result.tasks[0].exit.as_ref().is_some_and(Exit::ok));
        drop(recorder);
        assert_eq!(
            read_joblog(joblog.as_slice(), "j").unwrap().entries[0].host,
            "simulated"
        );
    }
}
