//! Writes a series while the run goes on.

use super::{CpuMode, SampleRow, SeriesHeader, SeriesRow, SeriesTask};
use crate::info::JobInfo;
use crate::reason::wait_code;
use crate::sink::LineSink;
use crate::warning::{RunFile, RunWarning};
use cosched_core::{
    Absence, ByTask, Change, CpuSet, DecisionRecord, Fact, JobEnd, Nanos, Placement, Purpose,
    Reading, Sample, Switch, Switched, TaskId, TaskResult, TaskSpec, Wait,
};
use std::collections::BTreeMap;
use std::io::Write;

/// What was last written about a task.
#[derive(Debug, Default)]
struct Last {
    placed: Option<(CpuSet, CpuMode, Purpose)>,
    waits: Option<&'static str>,
    lacks: BTreeMap<&'static str, Absence>,
}

/// In thousandths, rounded.
fn milli(quanta: f64) -> u64 {
    (quanta * 1e3 + 0.5) as u64
}

/// Writes a series. All lines of one decision are written in one piece.
///
/// A write error ends the writing and is kept for [`SeriesWriter::take_warning`].
#[derive(Debug)]
pub struct SeriesWriter<W> {
    sink: LineSink<W>,
    /// Number of tasks in the header.
    in_header: usize,
    last: BTreeMap<TaskId, Last>,
    /// Rows that say which CPU went to whom.
    switches: u32,
    /// The time of the last row that is no measurement.
    latest: Nanos,
    buffer: Vec<u8>,
}

/// Maximum number of rows about the holders of CPUs, about 6 MB. If CPUs change hands every few milliseconds, they cover
/// some minutes.
const MOST_SWITCHES: u32 = 200_000;

impl<W: Write> SeriesWriter<W> {
    /// Begins a series with its header.
    pub fn new(out: W, header: &SeriesHeader) -> SeriesWriter<W> {
        let mut writer = SeriesWriter {
            sink: LineSink::new(out, RunFile::Series),
            in_header: header.tasks.len(),
            last: BTreeMap::new(),
            switches: 0,
            latest: Nanos::ZERO,
            buffer: vec![],
        };
        // A header is plain data with text keys: it can't fail to serialise.
        if serde_json::to_writer(&mut writer.buffer, header).is_ok() {
            writer.buffer.push(b'\n');
        }
        writer.flush();
        writer
    }

    fn flush(&mut self) {
        self.sink.write(&self.buffer);
        self.buffer.clear();
    }

    fn row(&mut self, at: Nanos, row: &SeriesRow) {
        if !row.is_of_the_past() {
            self.latest = at;
        }
        row.write(at, &mut self.buffer);
    }

    /// Something happened. Of warnings it is told [apart](SeriesWriter::warned), with their words.
    pub fn note(&mut self, at: Nanos, fact: &Fact<'_>, jobs: &ByTask<JobInfo>) {
        match *fact {
            Fact::Came(tasks) => {
                for task in tasks {
                    self.taken(at, task, jobs.get(task.id));
                }
            }
            Fact::Started { task, .. } => self.started(at, task.id),
            Fact::Ended(result) => self.ended(at, result),
            Fact::LeftOut { task, reason } => self.waits(at, &Wait { task, reason }),
            Fact::Decided(record) => self.decided(&record),
            Fact::Sampled(samples) => self.left(samples),
            Fact::Switched(switches) => self.switched(switches),
            Fact::Starting(_)
            | Fact::Failed(_)
            | Fact::Lost(_)
            | Fact::PlanAdopted(_)
            | Fact::Warned(_)
            | Fact::Forgotten(_) => return,
        }
        self.flush();
    }

    /// A task has come. The header may have it already.
    fn taken(&mut self, now: Nanos, task: &TaskSpec, info: Option<&JobInfo>) {
        if task.id.0 as usize >= self.in_header {
            let task = Box::new(SeriesTask::new(task, info));
            self.row(now, &SeriesRow::Came(task));
        }
    }

    /// A task was started.
    fn started(&mut self, now: Nanos, task: TaskId) {
        self.row(now, &SeriesRow::Started(task));
    }

    /// A decision was made.
    fn decided(&mut self, record: &DecisionRecord<'_>) {
        if !self.sink.is_open() {
            return;
        }
        let now = record.snapshot.now;
        for sample in record.samples {
            let estimates = record
                .snapshot
                .task(sample.task)
                .map(|task| &task.estimates);
            self.sample(
                sample,
                estimates.and_then(|estimates| estimates.progress.value()),
            );
            if estimates.is_none() {
                // It has ended.
                self.last.remove(&sample.task);
            }
        }
        let decision = record.decision;
        self.row(
            now,
            &SeriesRow::Decided {
                triggers: record.snapshot.triggers.clone(),
                next_wake: decision.next_wake,
                stood_in: record.stood_in,
                basis: decision.basis,
            },
        );
        for change in &decision.changes {
            self.change(now, change);
        }
        for wait in &decision.waits {
            self.waits(now, wait);
        }
    }

    /// A task waits, or is left out; written if the reason is another than before.
    fn waits(&mut self, now: Nanos, wait: &Wait) {
        let &Wait { task, reason } = wait;
        let code = wait_code(&reason);
        let last = self.last.entry(task).or_default();
        if last.waits.replace(code) != Some(code) {
            self.row(now, &SeriesRow::Waits { task, reason });
        }
    }

    /// The samples after the last decision: those of the tasks that ended last. They hold no progress: what it came to is
    /// in the line of the end.
    fn left(&mut self, samples: &[Sample]) {
        samples.iter().for_each(|sample| self.sample(sample, None));
    }

    fn sample(&mut self, sample: &Sample, progress: Option<f64>) {
        let task = sample.task;
        let cpu_time = ("cpu_ns", sample.cpu_time.absence());
        let counts = sample
            .counts
            .iter()
            .map(|(counter, count)| (counter.name(), count.absence()));
        for (column, why) in counts.chain([cpu_time]) {
            let lacks = &mut self.last.entry(task).or_default().lacks;
            match why {
                Some(why) if lacks.insert(column, why) != Some(why) => {
                    self.row(
                        sample.at,
                        &SeriesRow::Lacks {
                            task,
                            column: column.to_owned(),
                            why,
                        },
                    );
                }
                Some(_) => {}
                None => {
                    lacks.remove(column);
                }
            }
        }
        let row = SampleRow {
            task,
            interval: sample.interval,
            cpus: sample.cpus.clone(),
            purpose: sample.purpose,
            whole_core: sample.whole_core,
            disturbed: sample.disturbed,
            cut_short: sample.cut_short(),
            multiplexed: sample.multiplexed,
            cpu_time: sample.cpu_time.value(),
            counts: sample.counts.map(Reading::value),
            progress_milli: progress.map(milli),
        };
        self.row(sample.at, &SeriesRow::Sampled(row));
    }

    fn change(&mut self, now: Nanos, change: &Change) {
        let last = self.last.entry(change.task()).or_default();
        match change {
            Change::Place {
                task,
                placement,
                purpose,
                ..
            } => {
                let mode = match placement {
                    Placement::Exclusive {
                        whole_core: true, ..
                    } => CpuMode::WholeCore,
                    Placement::Exclusive {
                        whole_core: false, ..
                    } => CpuMode::Exclusive,
                    Placement::Shared { .. } => CpuMode::Shared,
                };
                let place = (placement.cpus().clone(), mode, *purpose);
                last.waits = None;
                if last.placed.as_ref() != Some(&place) {
                    last.placed = Some(place.clone());
                    let (cpus, mode, purpose) = place;
                    self.row(
                        now,
                        &SeriesRow::Placed {
                            task: *task,
                            cpus,
                            mode,
                            purpose,
                        },
                    );
                }
            }
            Change::Stop { task } => {
                last.placed = None;
                self.row(now, &SeriesRow::Stopped(*task));
            }
        }
    }

    /// What CPUs went to which tasks.
    fn switched(&mut self, switches: &[Switch]) {
        for switch in switches {
            let row = match switch.what {
                _ if self.switches > MOST_SWITCHES => break,
                Switched::To { .. } if self.switches == MOST_SWITCHES => Switched::Untold,
                what => what,
            };
            // Nothing follows what says that nothing follows.
            self.switches = if row == Switched::Untold {
                MOST_SWITCHES + 1
            } else {
                self.switches + 1
            };
            // Rows stand in the order of time.
            self.row(switch.at.max(self.latest), &SeriesRow::Switched(row));
        }
    }

    /// A task ended.
    fn ended(&mut self, now: Nanos, result: &TaskResult) {
        let task = result.spec.id;
        self.last.remove(&task);
        let row = SeriesRow::Ended {
            task,
            end: Box::new(JobEnd::of(result)),
        };
        self.row(now, &row);
    }

    /// The user was warned, of this task if it is one.
    pub fn warned(&mut self, now: Nanos, task: Option<TaskId>, warning: &RunWarning) {
        self.row(
            now,
            &SeriesRow::Warned {
                code: warning.code().to_owned(),
                text: warning.text(),
                task,
            },
        );
        self.flush();
    }

    /// The warning that the series is written no further; returned once.
    pub fn take_warning(&mut self) -> Option<RunWarning> {
        self.sink.take_warning()
    }

    /// Returns the writer.
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.sink.into_inner()
    }
}
