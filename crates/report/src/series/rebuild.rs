//! The record of a run that was killed, from its series.
//!
//! The series is written while the run goes on, so it holds what the run knew when it was killed: which jobs had ended
//! and how, which ran, and what was measured of each. What only the run's end would have told is absent.

use super::{EndedRow, Row, SampleRow, SeriesError, SeriesReader, SeriesTask};
use crate::given::Given;
use crate::info::{JobInfo, RunInfo};
use crate::record::{Job, Rebuilt, Record, WarningRecord, record};
use crate::source::EnergySource;
use cosched_core::{
    Absence, Capabilities, Counter, Counts, EndedBy, Exit, Nanos, Overhead, PerCounter,
    ProgressBasis, Reading, Resources, RunResult, TaskId, TaskResult, TaskSpec, Trigger,
};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

/// Why a run has left no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRecord {
    /// It was killed, or it could not write one, as on a full disk. Its series does not tell which.
    Killed,
    /// It goes on.
    GoesOn,
}

impl NoRecord {
    /// What ended the run, as `finished_by` says it.
    fn finished_by(self) -> &'static str {
        match self {
            NoRecord::Killed => "killed",
            NoRecord::GoesOn => "goes-on",
        }
    }

    /// Why a job that ran last has no end.
    fn without_end(self) -> &'static str {
        match self {
            NoRecord::Killed => "lost: its end is unknown",
            NoRecord::GoesOn => "it goes on",
        }
    }

    /// Why the signal that ended the run is absent.
    fn not_told(self) -> &'static str {
        match self {
            NoRecord::Killed => "the run left no record, and its series does not tell why",
            NoRecord::GoesOn => "the run goes on",
        }
    }

    /// Why a value is absent that only a record has which the run itself wrote.
    fn not_kept(self) -> &'static str {
        match self {
            NoRecord::Killed => "the run left no record that tells this",
            NoRecord::GoesOn => "the run has not ended",
        }
    }
}

/// Why a value is absent that the line of a job's end does not have.
const NOT_IN_SERIES: &str = "its series does not hold it";

/// The record of a run that was killed or goes on, as far as its series tells. `log_of` returns the files of a job's standard
/// output and standard error, by its name. `ran` tells which jobs were found running after that: one that was started just
/// when the run was killed may not be in the series.
///
/// A job that ran when the run was killed is `lost`. Its figures are those up to its last sample, as are those of a job that
/// goes on; the batch has no turnaround then. Of a job that was
/// started several times the record tells what it would have told: of its first run if it had ended by itself, else of
/// its last attempt.
///
/// # Errors
/// The series can't be read. A last line that was cut off is no error.
pub fn rebuild<R: BufRead>(
    mut series: SeriesReader<R>,
    why: NoRecord,
    log_of: impl Fn(&str) -> (Option<String>, Option<String>),
    ran: impl Fn(&str) -> bool,
) -> Result<Record, SeriesError> {
    let mut lives: Vec<Life> = series.header().tasks.iter().map(Life::new).collect();
    let mut overhead = Overhead::default();
    let (mut policy_faults, mut until, mut warnings) = (0, Nanos::ZERO, Vec::new());
    for line in series.by_ref() {
        let (at, row) = line?;
        until = until.max(at);
        match row {
            Row::Decided {
                triggers, stood_in, ..
            } => {
                overhead.decisions += 1;
                overhead.quanta += u64::from(triggers.contains(&Trigger::QuantumEnd));
                policy_faults += u64::from(stood_in);
            }
            Row::Warned { code, text } => warnings.push(WarningRecord { code, text }),
            Row::Switched(_) => {}
            Row::Started(task) => of(&mut lives, task, |life| life.start(at)),
            Row::Placed { task, .. } => of(&mut lives, task, |life| life.place(at)),
            Row::Stopped(task) => of(&mut lives, task, |life| life.stopped = Some(at)),
            Row::Sampled(sample) => of(&mut lives, sample.task, |life| life.sample(at, &sample)),
            Row::Lacks { task, column, why } => of(&mut lives, task, |life| {
                life.lacks.insert(column, why);
            }),
            Row::Ended(row) => of(&mut lives, row.task, |life| life.end(at, &row)),
            Row::Waits { .. } => {}
        }
    }
    let header = series.header();
    let jobs = header.tasks.iter().map(|task| {
        let (log, log_stderr) = log_of(&task.name);
        let spec = TaskSpec::new(task.task, &task.name);
        let seq = task.seq.unwrap_or(u64::from(task.task) + 1);
        JobInfo {
            seq,
            command: task.command.clone(),
            given: task.given.clone(),
            log,
            log_stderr,
            ..JobInfo::of(&spec)
        }
    });
    let info = RunInfo {
        run_id: header.run_id.clone(),
        setting: header.setting.clone(),
        policy: header.policy.clone(),
        backend: header.backend,
        machine: Arc::new(header.machine.clone()),
        seed: header.seed,
        quantum: header.quantum_ns,
        started_at: header
            .started_at
            .as_deref()
            .and_then(|at| humantime::parse_rfc3339(at).ok()),
        jobs: jobs.collect(),
        capabilities: Capabilities::default(),
        counters: None,
        freezing: None,
        cpu_share: Reading::Absent(Absence::NotYetMeasured),
        machine_use: Reading::Absent(Absence::NotYetMeasured),
        throttling: Reading::Absent(Absence::NotYetMeasured),
        earlier: header.earlier_jobs.clone(),
        energy_source: EnergySource::Absent,
        warnings: Vec::new(),
    };
    let result = RunResult {
        tasks: lives.iter().map(Life::result).collect(),
        turnaround: until,
        ended_by: EndedBy::Completion,
        overhead,
        policy_faults,
        plans: None,
        energy_j: Reading::Absent(Absence::NotYetMeasured),
    };
    let mut rebuilt = record(&result, &info);
    for (job, life) in rebuilt.jobs.iter_mut().zip(&lives) {
        life.amend(job, ran(&life.spec.name), why);
    }
    if rebuilt.jobs.iter().any(|job| job.finish_s.is_none()) {
        rebuilt.metrics.lose("turnaround_s", why.not_kept());
        rebuilt.metrics.lose("edp_js", why.not_kept());
    }
    rebuilt.cosched_version = header.cosched_version.clone();
    rebuilt.finished_by = why.finished_by().to_owned();
    rebuilt.warnings = warnings;
    rebuilt
        .absent
        .note_option("signal", None::<()>, why.not_told());
    for name in ["counters", "freezing", "plans"] {
        rebuilt.absent.note_option(name, None::<()>, why.not_kept());
    }
    rebuilt.absent.forget("rebuilt");
    rebuilt.rebuilt = Some(Rebuilt {
        until_s: until.as_s(),
        cut_off: series.cut_off(),
        by_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    Ok(rebuilt)
}

fn of(lives: &mut [Life], task: TaskId, change: impl FnOnce(&mut Life)) {
    if let Some(life) = lives.get_mut(task.0 as usize) {
        change(life);
    }
}

/// What the series tells of a task.
struct Life {
    spec: TaskSpec,
    runs: u32,
    /// Of the attempt that counts, as all below.
    started: Option<Nanos>,
    stopped: Option<Nanos>,
    waited_max: Nanos,
    ran: Nanos,
    sampled_to: Nanos,
    /// `None` once a sample lacked it.
    cpu_time: Option<Nanos>,
    counts: PerCounter<Option<u64>>,
    lacks: BTreeMap<String, Absence>,
    multiplexed: bool,
    ended: Option<(Nanos, EndedRow)>,
}

impl Life {
    fn new(task: &SeriesTask) -> Life {
        let (cpus, width) = (task.cpus, task.width);
        let spec = TaskSpec {
            cpus,
            width,
            arrives: task.arrival_ns,
            ..TaskSpec::new(task.task, &task.name)
        };
        Life {
            spec,
            runs: 0,
            started: None,
            stopped: None,
            waited_max: Nanos::ZERO,
            ran: Nanos::ZERO,
            sampled_to: Nanos::ZERO,
            cpu_time: Some(Nanos::ZERO),
            counts: PerCounter::from_fn(|_| Some(0)),
            lacks: BTreeMap::new(),
            multiplexed: false,
            ended: None,
        }
    }

    /// The first run counts once it has ended; of attempts that failed, the last.
    fn start(&mut self, at: Nanos) {
        let runs = self.runs + 1;
        if self.ended.is_some() {
            self.runs = runs;
            return;
        }
        let task = SeriesTask {
            task: self.spec.id.0,
            name: std::mem::take(&mut self.spec.name),
            cpus: self.spec.cpus,
            width: self.spec.width,
            arrival_ns: self.spec.arrives,
            seq: None,
            command: None,
            given: Given::default(),
        };
        // The series tells once what can't be measured of a task.
        let lacks = std::mem::take(&mut self.lacks);
        *self = Life {
            runs,
            started: Some(at),
            lacks,
            ..Life::new(&task)
        };
    }

    fn place(&mut self, at: Nanos) {
        if let Some(since) = self.stopped.take().filter(|_| self.ended.is_none()) {
            self.waited_max = self.waited_max.max(at - since);
        }
    }

    fn sample(&mut self, at: Nanos, sample: &SampleRow) {
        // The last sample of a run is written after its end, and can be written after the next start.
        let of_another_run = self.ended.as_ref().is_some_and(|(end, _)| at > *end)
            || self
                .started
                .is_none_or(|start| at - sample.interval < start);
        if of_another_run {
            return;
        }
        self.ran += sample.interval;
        self.sampled_to = at;
        self.multiplexed |= sample.multiplexed;
        self.cpu_time = self
            .cpu_time
            .zip(sample.cpu_time)
            .map(|(sum, time)| sum + time);
        let before = std::mem::take(&mut self.counts);
        self.counts =
            PerCounter::from_fn(|counter| Some(before[counter]? + sample.counts[counter]?));
    }

    fn end(&mut self, at: Nanos, row: &EndedRow) {
        if self.ended.is_none() {
            self.ended = Some((at, row.clone()));
        }
    }

    /// Whether it is measured up to its end: the run may have been killed between that and its last sample.
    fn is_whole(&self) -> bool {
        self.ended
            .as_ref()
            .is_none_or(|(end, _)| self.sampled_to >= *end)
    }

    fn result(&self) -> TaskResult {
        let none = if self.started.is_some() {
            Absence::NotYetMeasured
        } else {
            Absence::NotStarted
        };
        let lacks = |column: &str| *self.lacks.get(column).unwrap_or(&none);
        let measured = self.started.is_some() && self.sampled_to > Nanos::ZERO && self.is_whole();
        let count = |counter: Counter| {
            Reading::from_option(
                self.counts[counter].filter(|_| measured),
                lacks(counter.name()),
            )
        };
        let row = self.ended.as_ref().map(|(_, row)| row);
        let by_kernel = row.and_then(|row| Some(row.user_time? + row.system_time?));
        let cpu_time = self.cpu_time.filter(|_| measured).or(by_kernel);
        let used = row.map_or(Resources::absent(none), |row| Resources {
            max_rss: Reading::from_option(row.max_rss, Absence::NotTold),
            user_time: Reading::from_option(row.user_time, Absence::NotTold),
            system_time: Reading::from_option(row.system_time, Absence::NotTold),
            read_bytes: Reading::from_option(row.read_bytes, Absence::NotTold),
            written_bytes: Reading::from_option(row.written_bytes, Absence::NotTold),
        });
        TaskResult {
            spec: self.spec.clone(),
            started: self.started,
            finished: self.ended.as_ref().map(|(at, _)| *at),
            // The series has the exit status as in a shell; whether it is 0 is all that matters here.
            exit: row.map(|row| row.exit.map_or(Exit::Unknown, Exit::Code)),
            timed_out: row.is_some_and(|row| row.timed_out),
            told_to_end: false,
            ended_by_user: false,
            cpu_time: Reading::from_option(cpu_time, lacks("cpu_ns")),
            waited_max: self.waited_max,
            ran: self.ran,
            // The series does not tell.
            shared: false,
            counts: Counts::from_fn(count),
            multiplexed: self.multiplexed,
            resources: used,
            width: Reading::Absent(none),
            learnt: None,
            progress: Reading::from_option(
                row.and_then(|row| row.progress_milli)
                    .map(|milli| milli as f64 / 1e3),
                none,
            ),
            // The series does not tell what it is based on.
            progress_basis: ProgressBasis::Provisional,
            progress_learnt: Reading::Absent(none),
            runs: self.runs,
        }
    }

    /// Puts into the job's record what can't go through a result.
    fn amend(&self, job: &mut Job, ran: bool, why: NoRecord) {
        match &self.ended {
            Some((_, row)) => job.exit_text = Some(row.text.clone()),
            None if self.started.is_some() || ran => {
                job.lost = why == NoRecord::Killed;
                for name in ["finish_s", "exit", "exit_text"] {
                    job.absent.note_option(name, None::<()>, why.without_end());
                }
            }
            None => {}
        }
        if self.started.is_some() {
            job.absent.note_option("width", None::<()>, why.not_kept());
            if job.progress.is_none() {
                let absent = if self.ended.is_some() {
                    NOT_IN_SERIES
                } else {
                    why.not_kept()
                };
                job.absent.note_option("progress", None::<()>, absent);
            }
        } else if job.lost {
            job.absent
                .note_option("waited_max_s", None::<()>, why.not_kept());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Absences;
    use crate::record::EarlierJob;
    use crate::series::SeriesHeader;
    use crate::testing::{check_absences, info, result};

    /// The record from a series with four tasks and these lines, of a run that had adopted a job.
    fn rebuilt(lines: &str) -> Record {
        let result = result();
        let info = RunInfo {
            earlier: vec![adopted()],
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

    fn adopted() -> EarlierJob {
        let mut absent = Absences::default();
        for name in ["started_at", "runtime_s", "exit", "run_id"] {
            absent.note_option(name, None::<()>, "it was adopted");
        }
        EarlierJob {
            seq: 7,
            name: "old".to_owned(),
            command: Some("old x".to_owned()),
            started_at: None,
            runtime_s: None,
            exit: None,
            adopted: true,
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
            r#"["p",400000000,1,"1","exclusive","run"]"#,
            &sample(200, 0),
            r#"["e",300000000,0,3,"exit 3",0,4096,70000000,30000000,0,512,1250]"#,
            &sample(300, 0),
            r#"["!",310000000,"halting","the halt rule is met"]"#,
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
        assert_eq!(record.warnings[0].code, "halting");
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
            (Some(1.25), ProgressBasis::Provisional, None)
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
            (&[adopted()][..], "this-run")
        );
        assert_eq!(
            record.absent.why("signal"),
            Some(NoRecord::Killed.not_told())
        );
        let totals = &record.totals;
        assert_eq!((totals.earlier, totals.adopted), (1, 1));
        assert_eq!(
            (totals.succeeded, totals.failed, totals.unfinished),
            (0, 1, 3)
        );
    }

    #[test]
    fn the_kernel_tells_the_cpu_time_that_no_sample_does() {
        let end = r#"["e",300000000,0,0,"exit 0",1,null,70000000,30000000,null,null]"#;
        let record = rebuilt(&format!("[\"b\",0,0]\n{}{end}\n", sample(100, 0)));
        let job = &record.jobs[0];
        assert_eq!(
            (job.cpu_s, job.instructions, job.timed_out),
            (Some(0.1), None, true)
        );
        assert_eq!(
            (job.progress, job.absent.why("progress")),
            (None, Some(NOT_IN_SERIES)),
            "an earlier version wrote it"
        );
        let never = &record.jobs[1];
        assert_eq!(
            (never.waited_max_s, never.absent.why("waited_max_s")),
            (None, Some("did not start"))
        );
        // An earlier version did not write it.
        let record = rebuilt(&format!(
            "[\"b\",0,0]\n{}[\"e\",300000000,0,0,\"exit 0\"]\n",
            sample(100, 0)
        ));
        assert_eq!(
            (
                record.jobs[0].exit,
                record.jobs[0].cpu_s,
                record.jobs[0].timed_out
            ),
            (Some(0), None, false)
        );
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
        let end = r#"["e",100000000,0,0,"exit 0",0,null,null,null,null,null]"#;
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
