//! The record of a run that was killed or goes on, from its series.
//!
//! The series has the jobs that ended and how, those that ran, and all measurements. Values that only the end of the run
//! gives are absent.

use super::in_order::RowsInOrder;
use super::measured::Measured;
use super::replay::Replay;
use super::{Row, SampleRow, SeriesError, SeriesHeader, SeriesReader, SeriesTask};
use crate::info::{JobInfo, RunInfo};
use crate::record::{Job, Rebuilt, Record, WarningRecord, record};
use crate::source::EnergySource;
use crate::warning::is_wish;
use cosched_core::{
    Absence, Capabilities, Counts, EndedBy, JobEnd, LeftOut, Nanos, Overhead, ProgressBasis,
    Reading, Resources, RunResult, TaskId, TaskResult, TaskSpec, Trigger,
};
use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;
use std::sync::Arc;

/// Why a run has no record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoRecord {
    /// It was killed, or it could not write one, as on a full disk. Its series does not say which.
    Killed,
    /// It still runs.
    GoesOn,
}

impl NoRecord {
    /// Return the end of the run, for `finished_by`.
    fn finished_by(self) -> &'static str {
        match self {
            NoRecord::Killed => "killed",
            NoRecord::GoesOn => "goes-on",
        }
    }

    /// Return why a job that ran last has no end.
    fn without_end(self) -> &'static str {
        match self {
            NoRecord::Killed => "lost: its end is unknown",
            NoRecord::GoesOn => "still running",
        }
    }

    /// Return why a value is absent that only the run itself could record.
    fn not_kept(self) -> &'static str {
        match self {
            NoRecord::Killed => "the run left no record of this",
            NoRecord::GoesOn => "the run has not ended",
        }
    }
}

/// Build the record of a run that was killed or goes on, as far as its series has it.
///
/// `log_of` returns the files of a job's standard output and standard error, by its name. `ran` says which jobs were
/// found running after the run: the series may lack a job that started just before the run was killed.
///
/// A job that ran when the run was killed is `lost`. Its figures reach to its last sample, like those of a job that goes
/// on, and the batch has no turnaround. A job that was started several times has the figures that a record gives: those of
/// its first run if that ended by itself, else those of its last attempt.
///
/// # Errors
/// The series cannot be read. A last line that was cut off is no error.
pub fn rebuild<R: BufRead>(
    mut series: SeriesReader<R>,
    why: NoRecord,
    log_of: impl Fn(&str) -> (Option<String>, Option<String>),
    ran: impl Fn(&str) -> bool,
) -> Result<Record, SeriesError> {
    let header = series.header().clone();
    let mut run = RebuiltRun::new(&header);
    for row in RowsInOrder::new(&mut series) {
        let (at, row) = row?;
        run.apply(at, row);
    }
    let mut rebuilt = record(&run.result(), &run_info(&header, log_of));
    let names = header.tasks.iter().map(|task| &*task.name);
    let lives: HashMap<&str, &Life> = names.zip(&run.lives).collect();
    for job in &mut rebuilt.jobs {
        lives[&*job.name].amend(job, ran(&job.name), why);
    }
    amend(&mut rebuilt, why);
    rebuilt.cosched_version = header.cosched_version;
    rebuilt.warnings = run.warnings;
    rebuilt.rebuilt = Some(Rebuilt {
        until_s: run.replay.now.as_s(),
        cut_off: series.cut_off(),
        by_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    Ok(rebuilt)
}

/// Return what the header says of the run.
fn run_info(
    header: &SeriesHeader,
    log_of: impl Fn(&str) -> (Option<String>, Option<String>),
) -> RunInfo {
    let mut jobs = Vec::new();
    for task in &header.tasks {
        let (log, log_stderr) = log_of(&task.name);
        jobs.push(JobInfo {
            seq: task.seq.unwrap_or(u64::from(task.task) + 1),
            command: task.command.clone(),
            given: task.given.clone(),
            log,
            log_stderr,
            ..JobInfo::of(&TaskSpec::new(task.task, &task.name))
        });
    }
    let started_at = header.started_at.as_deref();
    RunInfo {
        run_id: header.run_id.clone(),
        setting: header.setting.clone(),
        policy: header.policy.clone(),
        backend: header.backend,
        machine: Arc::new(header.machine.clone()),
        seed: header.seed,
        quantum: header.quantum_ns,
        started_at: started_at.and_then(|at| humantime::parse_rfc3339(at).ok()),
        jobs,
        capabilities: Capabilities::default(),
        counters: None,
        freezing: None,
        cpu_share: Reading::Absent(Absence::NotYetMeasured),
        machine_use: Reading::Absent(Absence::NotYetMeasured),
        earlier: header.earlier_jobs.clone(),
        energy_source: EnergySource::Absent,
        warnings: Vec::new(),
    }
}

/// Mark what only a record has which the run itself wrote.
fn amend(rebuilt: &mut Record, why: NoRecord) {
    if rebuilt.jobs.iter().any(|job| job.finish_s.is_none()) {
        rebuilt.metrics.lose("turnaround_s", why.not_kept());
        rebuilt.metrics.lose("edp_js", why.not_kept());
    }
    rebuilt.finished_by = why.finished_by().to_owned();
    let absent = &mut rebuilt.absent;
    for name in ["signal", "counters", "freezing", "plans"] {
        absent.lack(name, why.not_kept());
    }
    absent.forget("rebuilt");
}

/// A run, as far as its series has it.
struct RebuiltRun {
    replay: Replay,
    lives: Vec<Life>,
    overhead: Overhead,
    policy_faults: u64,
    warnings: Vec<WarningRecord>,
}

impl RebuiltRun {
    fn new(header: &SeriesHeader) -> RebuiltRun {
        RebuiltRun {
            replay: Replay::new(header),
            lives: header.tasks.iter().map(Life::new).collect(),
            overhead: Overhead::default(),
            policy_faults: 0,
            warnings: Vec::new(),
        }
    }

    fn apply(&mut self, at: Nanos, row: Row) {
        let task = row.task().map(|task| task.0 as usize);
        let paused_since = task.and_then(|task| self.replay.jobs[task].paused_since());
        self.replay.apply(at, &row);
        let now = self.replay.now;
        match row {
            Row::Decided {
                triggers, stood_in, ..
            } => {
                self.overhead.decisions += 1;
                self.overhead.quanta += u64::from(triggers.contains(&Trigger::QuantumEnd));
                self.policy_faults += u64::from(stood_in);
            }
            Row::Warned { code, text, .. } if !is_wish(&code) => {
                self.warnings.push(WarningRecord { code, text });
            }
            Row::Warned { .. } => {}
            Row::Started(task) => self.life(task).start(now),
            Row::Placed { task, .. } => {
                if let Some(since) = paused_since {
                    self.life(task).wait(since, now);
                }
            }
            Row::Sampled(sample) => self.life(sample.task).sample(at, &sample),
            Row::Lacks { task, column, why } => {
                self.life(task).lacks.insert(column, why);
            }
            Row::Ended { task, end } => {
                self.life(task).end.get_or_insert(end);
            }
            Row::Stopped(_) | Row::Switched(_) | Row::Waits { .. } | Row::Came(_) => {}
        }
    }

    fn life(&mut self, task: TaskId) -> &mut Life {
        &mut self.lives[task.0 as usize]
    }

    fn result(&self) -> RunResult {
        let jobs = self.lives.iter().zip(&self.replay.jobs);
        RunResult {
            tasks: jobs.map(|(life, job)| life.result(job.starts)).collect(),
            left_out: LeftOut::default(),
            turnaround: self.replay.now,
            ended_by: EndedBy::Completion,
            overhead: self.overhead.clone(),
            policy_faults: self.policy_faults,
            plans: None,
            rates: Vec::new(),
            predictions: None,
            energy_j: Reading::Absent(Absence::NotYetMeasured),
        }
    }
}

/// The run of a job that counts: its first if that ended by itself, else its last attempt.
struct Life {
    spec: TaskSpec,
    started: Option<Nanos>,
    waited_max: Nanos,
    measured: Measured,
    /// Columns that its samples lack. The series says so once, for all attempts.
    lacks: BTreeMap<String, Absence>,
    end: Option<Box<JobEnd>>,
}

impl Life {
    fn new(task: &SeriesTask) -> Life {
        Life {
            spec: TaskSpec {
                cpus: task.cpus,
                width: task.width,
                weight: task.weight.unwrap_or(1.0),
                arrives: task.arrival_ns,
                ..TaskSpec::new(task.task, &task.name)
            },
            started: None,
            waited_max: Nanos::ZERO,
            measured: Measured::default(),
            lacks: BTreeMap::new(),
            end: None,
        }
    }

    fn start(&mut self, at: Nanos) {
        if self.end.is_none() {
            self.started = Some(at);
            self.waited_max = Nanos::ZERO;
            self.measured = Measured::default();
        }
    }

    /// Count a pause between two placements.
    fn wait(&mut self, since: Nanos, to: Nanos) {
        if self.end.is_none() && self.started.is_some_and(|start| start <= since) {
            self.waited_max = self.waited_max.max(to - since);
        }
    }

    fn sample(&mut self, at: Nanos, sample: &SampleRow) {
        // The last sample of an attempt can come after the start of the next.
        let begin = at - sample.interval;
        if self.end.is_none() && self.started.is_some_and(|start| start <= begin) {
            self.measured.add(sample);
        }
    }

    fn result(&self, runs: u32) -> TaskResult {
        let none = if self.started.is_some() {
            Absence::NotYetMeasured
        } else {
            Absence::NotStarted
        };
        let why = |column: &str| *self.lacks.get(column).unwrap_or(&none);
        if let Some(end) = &self.end {
            let spec = self.spec.clone();
            return TaskResult {
                runs,
                ..end.result(spec, why)
            };
        }
        let counts = Counts::from_fn(|counter| {
            Reading::from_option(self.measured.count(counter), why(counter.name()))
        });
        TaskResult {
            spec: self.spec.clone(),
            started: self.started,
            finished: None,
            exit: None,
            timed_out: false,
            told_to_end: false,
            ended_by_user: false,
            cpu_time: Reading::from_option(self.measured.cpu_time(), why("cpu_ns")),
            waited_max: self.waited_max,
            ran: self.measured.interval,
            shared: false,
            counts,
            multiplexed: self.measured.multiplexed,
            resources: Resources::absent(none),
            width: Reading::Absent(none),
            learnt: None,
            beside: None,
            progress: Reading::Absent(none),
            progress_basis: ProgressBasis::Provisional,
            progress_learnt: Reading::Absent(none),
            runs,
        }
    }

    /// Put into the job's record what a result cannot hold.
    fn amend(&self, job: &mut Job, ran: bool, why: NoRecord) {
        if self.end.is_some() {
            return;
        }
        let absent = &mut job.absent;
        if self.started.is_some() || ran {
            job.lost = why == NoRecord::Killed;
            for name in ["finish_s", "exit", "exit_text"] {
                absent.lack(name, why.without_end());
            }
        }
        if self.started.is_some() {
            absent.lack("width", why.not_kept());
            absent.lack("progress", why.not_kept());
        } else if job.lost {
            absent.lack("waited_max_s", why.not_kept());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Absences;
    use crate::record::EarlierJob;
    use crate::series::{SeriesHeader, SeriesWriter};
    use crate::testing::{check_absences, info, result, samples};
    use cosched_core::{ByTask, Fact};

    /// The record from a series with four tasks and these lines, of a run that resumed another.
    fn rebuilt(lines: &str) -> Record {
        let result = result();
        let info = RunInfo {
            earlier: vec![earlier()],
            ..info(&result)
        };
        let header = SeriesHeader::new(&info, result.tasks.iter().map(|task| &task.spec));
        let text = format!("{}\n{lines}", serde_json::to_string(&header).unwrap());
        let series = SeriesReader::new(text.as_bytes(), "s").unwrap();
        rebuild(
            series,
            NoRecord::Killed,
            |name| (Some(format!("L/{name}.out")), None),
            |name| name == "late",
        )
        .unwrap()
    }

    fn earlier() -> EarlierJob {
        let mut absent = Absences::default();
        for name in ["started_at", "run_id"] {
            absent.lack(name, "no record of its run was found");
        }
        EarlierJob {
            seq: 7,
            name: "old".to_owned(),
            command: Some("old x".to_owned()),
            started_at: None,
            runtime_s: 2.5,
            exit: 0,
            run_id: None,
            record: Some("L/run.json".to_owned()),
            job: None,
            absent,
        }
        .without_record()
    }

    /// A sample of 100 ms that ends then, with 50 ms of CPU time and 10 cycles.
    fn sample(at_ms: u64, task: u32) -> String {
        format!(
            r#"["s",{},{task},100000000,"0","run","",50000000,10,20,1,1,1,null,5]{}"#,
            at_ms * 1_000_000,
            '\n'
        )
    }

    #[test]
    fn what_a_killed_run_knew_is_in_its_record() {
        let lines = [
            r#"["b",0,0]"#,
            r#"["b",0,1]"#,
            r#"["a",100000000,0,"mm_writes","no-such-event"]"#,
            &(sample(100, 0) + &sample(100, 1)),
            r#"["d",100000000,["quantum-end"],200000000,0,null,null,null]"#,
            r#"["x",100000000,1]"#,
            &sample(200, 0),
            r#"["e",300000000,0,{"exit":3,"exit_text":"exit 3","timed_out":false,"start_s":0,"end_s":0.3,"cpu_s":0.15,"user_s":0.07,"system_s":0.03,"max_rss_bytes":4096,"read_bytes":0,"written_bytes":512,"ran_s":0.3,"width":1,"progress":1.25,"progress_basis":"ipc","counts":{"cycles":30,"instructions":60}}]"#,
            &sample(300, 0),
            r#"["!",310000000,"halting","the halt rule is met"]"#,
            r#"["!",310000000,"solo-failed","a job failed alone"]"#,
            r#"["p",400000000,1,"1","exclusive","run"]"#,
            &sample(500, 1),
            r#"["b",600000000,2]"#,
        ];
        let record =
            rebuilt(&(lines.map(str::trim_end).join("\n") + "\n[\"e\",700000000,2,0,\"exi"));
        check_absences(&serde_json::from_str(&record.to_json()).unwrap());
        let whole = Record::from_json(&record.to_json()).unwrap();
        assert_eq!(whole, record);
        assert_eq!(
            (record.finished_by.as_str(), record.run_id.as_deref()),
            ("killed", Some("10-77-4026531836"))
        );
        assert_eq!(record.setting, info(&result()).setting);
        let rebuilt = record.rebuilt.as_ref().unwrap();
        assert_eq!((rebuilt.until_s, rebuilt.cut_off), (0.6, true));
        assert_eq!((record.overhead.decisions, record.overhead.quanta), (1, 1));
        let codes = record.warnings.iter().map(|warning| &*warning.code);
        assert_eq!(
            codes.collect::<Vec<_>>(),
            ["solo-failed"],
            "a halt is no warning"
        );
        let [ended, ran, begun, never] = &record.jobs[..] else {
            panic!("four jobs")
        };
        assert_eq!(
            (ended.exit, ended.exit_text.as_deref(), ended.lost),
            (Some(3), Some("exit 3"), false)
        );
        assert_eq!(
            (ended.finish_s, ended.cpu_s, ended.ran_s),
            (Some(0.3), Some(0.15), 0.3)
        );
        assert_eq!(
            (ended.user_s, ended.max_rss_bytes, ended.written_bytes),
            (Some(0.07), Some(4096), Some(512))
        );
        assert_eq!(
            (ended.counts.get("cycles"), ended.instructions),
            (Some(&30), Some(60))
        );
        assert_eq!(
            ended.counts.entry("mm_writes").unwrap().unwrap_err(),
            Absence::NoSuchEvent.text()
        );
        assert_eq!(ended.log.as_deref(), Some("L/mcf-1.out"));
        assert!(
            ran.lost && ran.exit.is_none() && ran.absent.why("exit").unwrap().starts_with("lost")
        );
        assert_eq!(
            (ran.cpu_s, ran.ran_s, ran.waited_max_s),
            (Some(0.1), 0.2, Some(0.3))
        );
        assert_eq!(
            (ended.progress, ended.progress_basis, ran.progress),
            (Some(1.25), ProgressBasis::Ipc, None)
        );
        let not_kept = Some(NoRecord::Killed.not_kept());
        assert_eq!(ran.absent.why("progress"), not_kept);
        assert_eq!(
            (
                record.metrics.get("turnaround_s"),
                record.metrics.why("turnaround_s")
            ),
            (None, not_kept)
        );
        assert!(
            begun.lost && begun.cpu_s.is_none(),
            "it was not measured yet"
        );
        assert!(
            never.lost && never.start_s.is_none(),
            "it was found running"
        );
        assert_eq!(
            (never.waited_max_s, never.absent.why("waited_max_s")),
            (None, not_kept)
        );
        assert_eq!(
            (&record.earlier_jobs[..], record.metrics_over.as_str()),
            (&[earlier()][..], "this-run")
        );
        assert_eq!(
            record.absent.why("signal"),
            Some(NoRecord::Killed.not_kept())
        );
        let totals = &record.totals;
        assert_eq!(totals.earlier, 1);
        assert_eq!(
            (totals.succeeded, totals.failed, totals.unfinished),
            (0, 1, 3)
        );
    }

    /// What the run knew of a job that ended does not depend on who writes the record.
    #[test]
    fn jobs_that_ended_are_as_in_the_own_record_of_the_run() {
        let result = result();
        let info = info(&result);
        let header = SeriesHeader::new(&info, result.tasks.iter().map(|task| &task.spec));
        let mut text = Vec::new();
        let mut series = SeriesWriter::new(&mut text, &header);
        for task in &result.tasks {
            let (spec, run, again) = (&task.spec, task.runs, false);
            let started = Fact::Started {
                task: spec,
                run,
                again,
            };
            let start = task.started.unwrap_or_default();
            series.note(start, &started, &ByTask::default());
        }
        for task in &result.tasks {
            let mut sample = samples(Nanos(1)).remove(0);
            sample.task = task.spec.id;
            sample.counts = task.counts;
            series.note(Nanos(1), &Fact::Sampled(&[sample]), &ByTask::default());
        }
        for task in result.tasks.iter().filter(|task| task.exit.is_some()) {
            let end = task.finished.unwrap_or_default();
            series.note(end, &Fact::Ended(task), &ByTask::default());
        }
        drop(series);
        let series = SeriesReader::new(&*text, "s").unwrap();
        let rebuilt = rebuild(series, NoRecord::Killed, |_| (None, None), |_| false).unwrap();
        let own = record(&result, &info);
        let mut ended = 0;
        for (own, rebuilt) in own.jobs.iter().zip(&rebuilt.jobs) {
            if own.exit_text.is_none() {
                continue;
            }
            ended += 1;
            let [own, rebuilt] = [own, rebuilt].map(|job| serde_json::to_value(job).unwrap());
            let differ = own.as_object().unwrap().iter();
            let differ = differ.filter(|(key, value)| rebuilt.get(*key) != Some(*value));
            let differ: Vec<&str> = differ.map(|(key, _)| &**key).collect();
            // The files are asked for, and solo times are not in the series.
            let is_apart = |key: &str| {
                let parts = ["log", "solo", "slowdown"];
                parts.iter().any(|part| key.starts_with(part))
            };
            let differ: Vec<&str> = differ.into_iter().filter(|key| !is_apart(key)).collect();
            assert!(differ.is_empty(), "{differ:?}: {own} {rebuilt}");
        }
        assert!(ended > 1);
    }

    #[test]
    fn of_several_attempts_the_last_counts_and_of_several_runs_the_first() {
        let lacks = r#"["a",50000000,0,"mm_writes","no-such-event"]"#;
        let (first, rest) = (sample(100, 0), sample(150, 0) + &sample(300, 0));
        let lines = format!("[\"b\",0,0]\n{lacks}\n{first}[\"b\",200000000,0]\n{rest}");
        let job = &rebuilt(&lines).jobs[0];
        assert_eq!(
            job.counts.entry("mm_writes").unwrap().unwrap_err(),
            Absence::NoSuchEvent.text()
        );
        assert_eq!(
            (job.runs, job.start_s, job.cpu_s, job.ran_s),
            (2, Some(0.2), Some(0.05), 0.1)
        );
        let end = r#"["e",100000000,0,{"exit":0,"exit_text":"exit 0","timed_out":false,"start_s":0,"end_s":0.1,"cpu_s":0.05}]"#;
        let lines = format!(
            "[\"b\",0,0]\n{end}\n{}[\"b\",100000000,0]\n{}",
            sample(100, 0),
            sample(300, 0)
        );
        let job = &rebuilt(&lines).jobs[0];
        assert_eq!(
            (job.runs, job.finish_s, job.cpu_s, job.exit),
            (2, Some(0.1), Some(0.05), Some(0))
        );
    }
}
