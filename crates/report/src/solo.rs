//! Solo profiles in a file: what each job does alone, for policies that must know it beforehand.
//!
//! They are made from the record and the series of a run in which no two jobs overlapped. A record alone has the times.

use crate::figures::Absences;
use crate::json::{self, JsonError};
use crate::record::{JobRecord, RunRecord};
use crate::series::{SeriesError, SeriesReader, SeriesRow};
use crate::setting::JobGiven;
use crate::warning::{DISTURBED, SOLO_DISTURBED};
use cosched_core::{Absence, Counter, Nanos, Rate, SoloPoint, SoloProfile, SoloTrace};
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::sync::Arc;

/// The format's name and version.
pub const SOLO_SCHEMA: &str = "cosched.solo/1";

/// Minimum solo time in seconds. A shorter time would be 0 on the clock of a run, which counts nanoseconds.
const LEAST_S: f64 = 1e-9;

/// Solo profiles of several jobs; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoloFile {
    /// [`SOLO_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// The machine on which the jobs ran.
    pub machine: String,
    /// Whether others used the CPUs meanwhile, so that the times are not to be trusted.
    pub disturbed: bool,
    /// Every job that ran alone and ended with code 0.
    pub jobs: Vec<SoloJob>,
}

/// What one job does alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoloJob {
    /// Its name in that run.
    pub name: String,
    /// Its command, as a shell would take it.
    pub command: Option<String>,
    /// What else it was given.
    #[serde(default, skip_serializing_if = "JobGiven::is_empty")]
    pub given: JobGiven,
    /// Time from start to end in seconds; the median of several measurements, if there were several.
    pub time_s: f64,
    /// The least and the greatest of several measurements, in seconds; left out if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_s: Option<(f64, f64)>,
    /// Lines of 64 bytes read from memory, mean rate in transactions per microsecond.
    pub mm_reads_per_us: Option<f64>,
    /// Its IPC over the instructions done: pairs of instructions since its start and IPC since the pair before.
    pub trace: Option<SoloTrace>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

impl SoloJob {
    /// The solo time of a job.
    fn of(job: &JobRecord, time_s: f64) -> SoloJob {
        let mut absent = Absences::default();
        let not_kept = "a record does not have it";
        SoloJob {
            name: job.name.clone(),
            command: absent.note_option("command", job.command.clone(), "not given"),
            given: job.given.clone(),
            time_s,
            range_s: None,
            mm_reads_per_us: absent.note_option("mm_reads_per_us", None, not_kept),
            trace: absent.note_option("trace", None, not_kept),
            absent,
        }
    }

    /// Add what was counted while the job was alone.
    fn with_counters(mut self, job: &JobRecord, tracer: Tracer) -> SoloJob {
        let why = job.absent.why(Counter::MmReads.name());
        let why = why.unwrap_or(Absence::NotYetMeasured.text());
        let time = Nanos::from_s(self.time_s);
        let reads = job.end.counts.get(&Counter::MmReads);
        let reads = reads.and_then(|reads| Rate::from_count(*reads, time));
        let trace = match tracer.finish() {
            // The samples of later runs would be appended to those of the first.
            _ if job.end.runs > Some(1) => Err("it was started several times"),
            trace => trace,
        };
        self.absent.forget("mm_reads_per_us");
        self.absent.forget("trace");
        let reads = reads.map(Rate::per_us).ok_or(why);
        self.mm_reads_per_us = self.absent.note_result("mm_reads_per_us", reads);
        self.trace = self.absent.note_result("trace", trace);
        self
    }

    /// Check its numbers; `ix` is its place in the file.
    fn check(&self, ix: usize) -> Result<(), JsonError> {
        if !(LEAST_S..=1e9).contains(&self.time_s) {
            // Unlike a number's plain form, this one is short for numbers of any size.
            let problem = format!("found {:?}, expected 1e-9 to 1e9", self.time_s);
            return Err(JsonError::at(&format!("jobs[{ix}].time_s"), problem));
        }
        let reads = self.mm_reads_per_us.unwrap_or(0.0);
        if !(0.0..=1e9).contains(&reads) {
            let key = format!("jobs[{ix}].mm_reads_per_us");
            return Err(JsonError::at(&key, "expected 0 to 1e9".to_owned()));
        }
        Ok(())
    }
}

impl SoloFile {
    /// The times of the jobs of a run, without the rest of their profiles.
    ///
    /// A job's `solo_s` is its solo time. If no two jobs of the run overlapped, the solo time of every other job that
    /// succeeded is its own time from start to end.
    pub fn of_record(record: &RunRecord) -> SoloFile {
        let one_by_one = one_by_one(record);
        let mut disturbed = has_warning(record, SOLO_DISTURBED);
        let mut jobs = Vec::new();
        for job in &record.jobs {
            if let Some(time_s) = solo_time(job, one_by_one) {
                disturbed |= job.solo_s.is_none() && has_warning(record, DISTURBED);
                jobs.push(SoloJob::of(job, time_s));
            }
        }
        SoloFile {
            schema: SOLO_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: record.machine.clone(),
            disturbed,
            jobs,
        }
    }

    /// Profiles of the jobs that were alone and succeeded in a run.
    ///
    /// # Errors
    /// The series cannot be read.
    pub fn of_run<R: BufRead>(
        record: &RunRecord,
        series: SeriesReader<R>,
    ) -> Result<SoloFile, SeriesError> {
        let mut tracers: Vec<Tracer> = record.jobs.iter().map(|_| Tracer::default()).collect();
        for row in series {
            if let (_, SeriesRow::Sampled(sample)) = row?
                && let Some(tracer) = tracers.get_mut(sample.task.0 as usize)
            {
                tracer.add(
                    sample.counts[Counter::Cycles],
                    sample.counts[Counter::Instructions],
                );
            }
        }
        let mut file = SoloFile::of_record(record);
        let mut jobs = Vec::new();
        for (job, tracer) in record.jobs.iter().zip(tracers) {
            let solo = file.jobs.iter().find(|solo| solo.name == job.name);
            if let Some(solo) = solo.filter(|_| job.end.exit == Some(0)) {
                jobs.push(solo.clone().with_counters(job, tracer));
            }
        }
        file.jobs = jobs;
        Ok(file)
    }

    /// Whether it has more than times.
    pub fn has_counters(&self) -> bool {
        let mut jobs = self.jobs.iter();
        jobs.any(|job| job.mm_reads_per_us.is_some() || job.trace.is_some())
    }

    /// Reads the JSON object.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected.
    pub fn from_json(text: &str) -> Result<SoloFile, JsonError> {
        let file: SoloFile = json::parse(text)?;
        if file.schema != SOLO_SCHEMA {
            let problem = format!("found `{}`, expected `{SOLO_SCHEMA}`", file.schema);
            return Err(JsonError::at("schema", problem));
        }
        for (ix, job) in file.jobs.iter().enumerate() {
            job.check(ix)?;
        }
        Ok(file)
    }

    /// The JSON text, each job on a line of its own, since traces are long.
    pub fn to_json(&self) -> String {
        // Plain data with text keys can't fail to serialise.
        fn text<T: Serialize>(value: &T) -> String {
            serde_json::to_string(value).unwrap_or_default()
        }
        let jobs: Vec<String> = self.jobs.iter().map(text).collect();
        format!(
            r#"{{"schema":{schema},"cosched_version":{version},"machine":{machine},"disturbed":{disturbed},"jobs":[
{jobs}
]}}
"#,
            schema = text(&self.schema),
            version = text(&self.cosched_version),
            machine = text(&self.machine),
            disturbed = self.disturbed,
            jobs = jobs.join(",\n"),
        )
    }

    /// The profile of a job, by its command and what else it was given. Of several that are alike it is that of the same
    /// name, else the first. The name alone is used only if the job has no command or the file has none, since numbered
    /// names mean other work in another run.
    pub fn profile(
        &self,
        name: &str,
        command: Option<&str>,
        given: &JobGiven,
    ) -> Option<SoloProfile> {
        let by_command = self.jobs.iter().any(|job| job.command.is_some());
        let alike: Vec<&SoloJob> = match command {
            Some(_) if by_command => {
                let jobs = self.jobs.iter();
                jobs.filter(|job| job.command.as_deref() == command && job.given == *given)
                    .collect()
            }
            _ => self.jobs.iter().filter(|job| job.name == name).collect(),
        };
        let named = alike.iter().find(|job| job.name == name);
        let found = named.or(alike.first())?;
        Some(SoloProfile {
            time: Some(Nanos::from_s(found.time_s)),
            mm_reads: found.mm_reads_per_us.map(Rate::from_per_us),
            trace: found.trace.clone().map(Arc::new),
        })
    }
}

/// The solo time of a job in seconds; `one_by_one` if no two jobs of its run overlapped.
fn solo_time(job: &JobRecord, one_by_one: bool) -> Option<f64> {
    let span = job.end.start_s.zip(job.end.end_s);
    let alone = span.filter(|_| one_by_one && job.end.exit == Some(0));
    let time_s = job.solo_s.or(alone.map(|(start, finish)| finish - start));
    time_s.filter(|time_s| *time_s >= LEAST_S)
}

fn has_warning(record: &RunRecord, code: &str) -> bool {
    record.warnings.iter().any(|warning| warning.code == code)
}

/// Whether every job ended before the next one started.
fn one_by_one(record: &RunRecord) -> bool {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for job in &record.jobs {
        if let Some(start) = job.end.start_s {
            spans.push((start, job.end.end_s.unwrap_or(f64::INFINITY)));
        }
    }
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

/// Collects the samples of one job into a trace.
#[derive(Default)]
struct Tracer {
    points: Vec<SoloPoint>,
    instructions: u64,
    /// Cycles since the last point.
    cycles: u64,
    gap: bool,
}

impl Tracer {
    fn add(&mut self, cycles: Option<u64>, instructions: Option<u64>) {
        let (Some(cycles), Some(instructions)) = (cycles, instructions) else {
            self.gap = true;
            return;
        };
        let before = self.points.last().map_or(0, |point| point.instructions);
        self.instructions += instructions;
        self.cycles += cycles;
        // An interval without instructions is counted with the next one.
        if self.instructions > before && self.cycles > 0 {
            let ipc = (self.instructions - before) as f64 / self.cycles as f64;
            self.points.push(SoloPoint {
                instructions: self.instructions,
                ipc,
            });
            self.cycles = 0;
        }
    }

    fn finish(self) -> Result<SoloTrace, &'static str> {
        if self.gap {
            return Err("instructions or cycles could not be counted all the time");
        }
        SoloTrace::new(self.points).map_err(|_| "it was never measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WarningRecord;
    use crate::series::SeriesHeader;
    use crate::series::SeriesWriter;
    use crate::testing::{check_absences, info, result, samples, snapshot};
    use cosched_core::{ByTask, DecisionRecord, Fact, Reading, RngState};

    /// A run of three jobs one after the other; the samples are of the first two.
    fn run(gap: bool) -> (RunRecord, Vec<u8>) {
        let mut result = result();
        result.tasks.truncate(3);
        let mut at = 0.0;
        for task in &mut result.tasks {
            task.spec.solo.time = None;
            task.started = Some(Nanos::from_s(at));
            task.spec.arrives = Nanos::from_s(at);
            at += 4.0;
            task.finished = Some(Nanos::from_s(at));
        }
        let mut info = info(&result);
        info.jobs.iter_mut().for_each(|job| job.solo = None);
        let specs: Vec<_> = result.tasks.iter().map(|task| task.spec.clone()).collect();
        let mut text = Vec::new();
        let mut series = SeriesWriter::new(&mut text, &SeriesHeader::new(&info, &specs));
        let mut samples = samples(Nanos::from_ms(400));
        if gap {
            samples[1].counts[Counter::Cycles] = Reading::Absent(Absence::CountersLost);
        }
        for _ in 0..2 {
            let record = DecisionRecord {
                snapshot: &snapshot(),
                samples: &samples,
                policy_state: None,
                rng: RngState {
                    seed: 1,
                    position: 0,
                },
                decision: &crate::testing::decision(),
                stood_in: false,
            };
            series.note(Nanos::ZERO, &Fact::Decided(record), &ByTask::default());
        }
        drop(series);
        (crate::record(&result, &info), text)
    }

    fn file(gap: bool) -> SoloFile {
        let (record, series) = run(gap);
        SoloFile::of_run(&record, SeriesReader::new(series.as_slice(), "s").unwrap()).unwrap()
    }

    #[test]
    fn a_run_one_by_one_gives_profiles() {
        let file = file(false);
        // The third failed.
        assert_eq!(file.jobs.len(), 2);
        let profile = file
            .profile(
                "whatever",
                Some("./mcf-1 --input 'a b'"),
                &JobGiven::default(),
            )
            .unwrap();
        assert_eq!(profile.time, Some(Nanos::from_s(4.0)));
        let trace = profile.trace.unwrap();
        let points: Vec<(u64, f64)> = trace.points().iter().map(|&point| point.into()).collect();
        assert_eq!(points, [(400_000_000, 2.0 / 3.0), (800_000_000, 2.0 / 3.0)]);
        assert_eq!(
            file.profile("mcf-1", Some("./other"), &JobGiven::default()),
            None
        );
        assert!(file.profile("mcf-1", None, &JobGiven::default()).is_some());
    }

    #[test]
    fn jobs_with_one_command_are_told_apart_by_what_they_were_given() {
        let mut file = file(false);
        let given = |cwd: &str| JobGiven {
            cwd: Some(cwd.to_owned()),
            ..JobGiven::default()
        };
        for (job, cwd) in file.jobs.iter_mut().zip(["a", "b"]) {
            (job.command, job.given) = (Some("./solve".to_owned()), given(cwd));
        }
        (file.jobs[0].time_s, file.jobs[1].time_s) = (1.0, 2.0);
        let file = SoloFile::from_json(&file.to_json()).unwrap();
        for (cwd, time) in [("a", Some(1.0)), ("b", Some(2.0)), ("c", None)] {
            let profile = file.profile("mcf-1", Some("./solve"), &given(cwd));
            assert_eq!(
                profile.and_then(|profile| profile.time),
                time.map(Nanos::from_s)
            );
        }
    }

    #[test]
    fn that_solo_runs_were_disturbed_goes_on_to_whoever_uses_them() {
        let (mut record, series) = run(false);
        let warning = |code: &str| WarningRecord {
            code: code.to_owned(),
            text: String::new(),
        };
        let file = |record: &RunRecord| {
            SoloFile::of_run(record, SeriesReader::new(series.as_slice(), "s").unwrap()).unwrap()
        };
        assert!(!file(&record).disturbed && !SoloFile::of_record(&record).disturbed);
        record.warnings.push(warning("disturbed"));
        assert!(
            SoloFile::of_record(&record).disturbed,
            "they are times of that run"
        );
        record
            .jobs
            .iter_mut()
            .for_each(|job| job.solo_s = Some(1.0));
        assert!(
            !SoloFile::of_record(&record).disturbed,
            "they are of runs before it"
        );
        record.warnings.push(warning("solo-disturbed"));
        assert!(SoloFile::of_record(&record).disturbed);
        let marked = file(&record);
        assert!(marked.disturbed);
        let text = marked.to_json();
        assert_eq!(SoloFile::from_json(&text).unwrap(), marked);
    }

    #[test]
    fn a_gap_in_the_counters_leaves_no_trace() {
        let file = file(true);
        assert!(file.jobs[0].trace.is_some());
        assert_eq!(file.jobs[1].trace, None);
        assert!(
            file.jobs[1]
                .absent
                .why("trace")
                .unwrap()
                .contains("could not be counted")
        );
        check_absences(&serde_json::from_str(&file.to_json()).unwrap());
    }

    #[test]
    fn it_reads_back_the_same_and_says_what_is_wrong() {
        for gap in [false, true] {
            let text = file(gap).to_json();
            assert_eq!(SoloFile::from_json(&text).unwrap(), file(gap));
        }
        let text = file(false).to_json();
        let check = |text: &str, expected: &str| {
            let error = SoloFile::from_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            &text.replace("cosched.solo/1", "cosched.solo/2"),
            "expected `cosched.solo/1`",
        );
        check(
            &text.replacen("[[400000000,", "[[0,", 1),
            "point 0 of the trace",
        );
        check(
            &text.replacen("\"time_s\":4.0", "\"time_s\":-4.0", 1),
            "jobs[0].time_s",
        );
        // The clock of a run counts nanoseconds.
        for (time, found) in [
            ("0", "0.0"),
            ("1e-320", "1e-320"),
            ("9e-10", "9e-10"),
            ("1e10", "10000000000.0"),
        ] {
            let wrong = text.replacen("\"time_s\":4.0", &format!("\"time_s\":{time}"), 1);
            check(
                &wrong,
                &format!("`jobs[0].time_s`: found {found}, expected 1e-9 to 1e9"),
            );
        }
        assert!(
            SoloFile::from_json(&text.replacen("\"time_s\":4.0", "\"time_s\":1e-9", 1)).is_ok()
        );
        let no_reads = text.replacen(
            "\"mm_reads_per_us\":",
            "\"mm_reads_per_us\":0.0,\"was\":",
            1,
        );
        assert!(SoloFile::from_json(&no_reads).is_ok());
        check(&text.replacen("\"name\"", "\"nam\"", 1), "`name`");
    }

    fn time_of(file: &SoloFile, name: &str, command: Option<&str>) -> Option<f64> {
        let profile = file.profile(name, command, &JobGiven::default());
        profile.and_then(|profile| profile.time).map(Nanos::as_s)
    }

    #[test]
    fn a_record_has_the_times() {
        let all = result();
        let record = crate::record(&all, &info(&all));
        let file = SoloFile::of_record(&record);
        let command = Some("./mcf-2 --input 'a b'");
        assert_eq!(time_of(&file, "mcf-1", None), Some(10.0));
        assert_eq!(time_of(&file, "another name", command), Some(10.0));
        assert_eq!(time_of(&file, "mcf-1", Some("./other")), None);
        assert_eq!(time_of(&file, "check", None), None);
        // One after the other: each was alone.
        let file = SoloFile::of_record(&run(false).0);
        assert_eq!(time_of(&file, "x", command), Some(4.0));
    }
}
