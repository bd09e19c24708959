//! The rows of a series: a table of their kinds and columns, and the writing and parsing of each.

use super::SeriesTask;
use cosched_core::{
    Absence, Basis, Counter, CpuSet, JobEnd, Nanos, PerCounter, Purpose, Switched, TaskId, Trigger,
    WaitReason,
};
use serde::de::DeserializeOwned;
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A kind of line.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRowKind {
    /// The first letter of its lines.
    pub code: &'static str,
    /// All its columns, with the letter and the time.
    pub columns: &'static [&'static str],
}

/// Every kind of line.
pub const KINDS: &[SeriesRowKind] = &[
    SeriesRowKind {
        code: "d",
        columns: &[
            "kind",
            "t_ns",
            "triggers",
            "next_wake_ns",
            "stood_in",
            "target",
            "predicted",
            "measures",
        ],
    },
    SeriesRowKind {
        code: "p",
        columns: &["kind", "t_ns", "task", "cpus", "mode", "purpose"],
    },
    SeriesRowKind {
        code: "x",
        columns: &["kind", "t_ns", "task"],
    },
    SeriesRowKind {
        code: "w",
        columns: &["kind", "t_ns", "task", "reason"],
    },
    SeriesRowKind {
        code: "s",
        columns: &SAMPLE_COLUMNS,
    },
    SeriesRowKind {
        code: "a",
        columns: &["kind", "t_ns", "task", "column", "why"],
    },
    SeriesRowKind {
        code: "b",
        columns: &["kind", "t_ns", "task"],
    },
    SeriesRowKind {
        code: "e",
        columns: &["kind", "t_ns", "task", "end"],
    },
    SeriesRowKind {
        code: "o",
        columns: &["kind", "t_ns", "cpu", "task"],
    },
    SeriesRowKind {
        code: "t",
        columns: &["kind", "t_ns", "task"],
    },
    SeriesRowKind {
        code: "!",
        columns: &["kind", "t_ns", "code", "text", "task"],
    },
];

/// Columns of a sample before the counters.
const BEFORE_COUNTERS: [&str; 8] = [
    "kind",
    "t_ns",
    "task",
    "interval_ns",
    "cpus",
    "purpose",
    "flags",
    "cpu_ns",
];

/// Number of counters in the columns before the progress; the others come after it.
const BEFORE_PROGRESS: usize = 6;

/// Columns of a sample.
const SAMPLE_COLUMNS: [&str; BEFORE_COUNTERS.len() + Counter::COUNT + 1] = {
    let mut columns = ["progress_milli"; BEFORE_COUNTERS.len() + Counter::COUNT + 1];
    let mut ix = 0;
    while ix < BEFORE_COUNTERS.len() {
        columns[ix] = BEFORE_COUNTERS[ix];
        ix += 1;
    }
    let mut counter = 0;
    while counter < Counter::COUNT {
        let behind_progress = if counter < BEFORE_PROGRESS { 0 } else { 1 };
        columns[BEFORE_COUNTERS.len() + counter + behind_progress] = Counter::ALL[counter].name();
        counter += 1;
    }
    columns
};

/// A task's share in its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuMode {
    /// The CPUs are its own.
    Exclusive,
    /// The CPUs are its own, and the other CPUs of their cores stay idle.
    WholeCore,
    /// The kernel time-shares them between it and other tasks.
    Shared,
}

/// The measurements of a task over one interval; counts are null where absent.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// The measured task.
    pub task: TaskId,
    /// Length of the interval.
    pub interval: Nanos,
    /// The CPUs of its placement.
    pub cpus: CpuSet,
    /// Purpose of the placement.
    pub purpose: Purpose,
    /// Whether no other task of the run was on the same cores.
    pub whole_core: bool,
    /// Whether an ordinary task joined within the interval.
    pub disturbed: bool,
    /// Whether the interval ended clearly before its planned end.
    pub cut_short: bool,
    /// Whether the counts are scaled estimates.
    pub multiplexed: bool,
    /// CPU time that the task used in the interval.
    pub cpu_time: Option<Nanos>,
    /// Counts in the interval.
    pub counts: PerCounter<Option<u64>>,
    /// The task's progress after the interval, in thousandths of a quantum.
    pub progress_milli: Option<u64>,
}

/// One line of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesRow {
    /// A decision was made.
    Decided {
        /// Its triggers.
        triggers: Vec<Trigger>,
        /// Latest time of the next decision.
        next_wake: Option<Nanos>,
        /// Whether round-robin stood in, since the policy's own decision was not possible.
        stood_in: bool,
        /// The numbers behind the decision.
        basis: Basis,
    },
    /// A task was placed.
    Placed {
        /// The task that was placed.
        task: TaskId,
        /// The CPUs that it may run on.
        cpus: CpuSet,
        /// Whether the CPUs are its own or shared.
        mode: CpuMode,
        /// Purpose of the placement.
        purpose: Purpose,
    },
    /// A task was stopped.
    Stopped(TaskId),
    /// A task waits.
    Waits {
        /// The task that waits.
        task: TaskId,
        /// Why it waits.
        reason: WaitReason,
    },
    /// A task was measured.
    Sampled(SampleRow),
    /// A column of the task's samples is absent from now on.
    Lacks {
        /// The task whose samples they are.
        task: TaskId,
        /// The name of the column.
        column: String,
        /// Why the column is absent.
        why: Absence,
    },
    /// A task was started.
    Started(TaskId),
    /// A task ended.
    Ended {
        /// The task that ended.
        task: TaskId,
        /// How, and what it used.
        end: Box<JobEnd>,
    },
    /// A CPU went to another task, as a scheduler in the kernel saw it.
    Switched(Switched),
    /// A task came while the run went on. Its number is the next.
    Came(Box<SeriesTask>),
    /// The user was warned.
    Warned {
        /// The warning's code.
        code: String,
        /// The warning as a sentence.
        text: String,
        /// The task that it is about, if it is one.
        task: Option<TaskId>,
    },
}

impl SeriesRow {
    /// Whether it is a measurement: it can come after rows with later times.
    pub(crate) fn is_of_the_past(&self) -> bool {
        matches!(self, SeriesRow::Sampled(_) | SeriesRow::Lacks { .. })
    }

    /// Return the task of the row, if it has one.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            SeriesRow::Decided { .. } | SeriesRow::Came(_) => None,
            SeriesRow::Warned { task, .. } => *task,
            SeriesRow::Placed { task, .. }
            | SeriesRow::Waits { task, .. }
            | SeriesRow::Lacks { task, .. }
            | SeriesRow::Ended { task, .. } => Some(*task),
            SeriesRow::Stopped(task) | SeriesRow::Started(task) => Some(*task),
            SeriesRow::Sampled(row) => Some(row.task),
            SeriesRow::Switched(Switched::To { task, .. }) => *task,
            SeriesRow::Switched(Switched::Untold) => None,
        }
    }
}

/// Return the letters of a sample's flags.
fn flags(row: &SampleRow) -> String {
    let all = [
        (row.whole_core, 'w'),
        (row.disturbed, 'd'),
        (row.cut_short, 'c'),
        (row.multiplexed, 'm'),
    ];
    all.iter()
        .filter(|(set, _)| *set)
        .map(|(_, letter)| *letter)
        .collect()
}

/// A sample as a line: the values of [`SAMPLE_COLUMNS`].
struct SampleLine<'a>(Nanos, &'a SampleRow);

impl Serialize for SampleLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SampleLine(at, row) = self;
        let mut line = serializer.serialize_tuple(SAMPLE_COLUMNS.len())?;
        line.serialize_element("s")?;
        line.serialize_element(at)?;
        line.serialize_element(&row.task)?;
        line.serialize_element(&row.interval)?;
        line.serialize_element(&row.cpus)?;
        line.serialize_element(&row.purpose)?;
        line.serialize_element(&flags(row))?;
        line.serialize_element(&row.cpu_time)?;
        let (first, later) = Counter::ALL.split_at(BEFORE_PROGRESS);
        for &counter in first {
            line.serialize_element(&row.counts[counter])?;
        }
        line.serialize_element(&row.progress_milli)?;
        for &counter in later {
            line.serialize_element(&row.counts[counter])?;
        }
        line.end()
    }
}

impl SeriesRow {
    /// Append the line, with its end.
    pub fn write(&self, at: Nanos, out: &mut Vec<u8>) {
        match self {
            SeriesRow::Decided {
                triggers,
                next_wake,
                stood_in,
                basis,
            } => {
                let stood_in = u8::from(*stood_in);
                let (target, predicted) = (basis.target, basis.predicted);
                let measures = basis.measures;
                append(
                    out,
                    &(
                        "d", at, triggers, next_wake, stood_in, target, predicted, measures,
                    ),
                );
            }
            SeriesRow::Placed {
                task,
                cpus,
                mode,
                purpose,
            } => append(out, &("p", at, task, cpus, mode, purpose)),
            SeriesRow::Stopped(task) => append(out, &("x", at, task)),
            SeriesRow::Waits { task, reason } => append(out, &("w", at, task, reason)),
            SeriesRow::Sampled(row) => append(out, &SampleLine(at, row)),
            SeriesRow::Lacks { task, column, why } => append(out, &("a", at, task, column, why)),
            SeriesRow::Started(task) => append(out, &("b", at, task)),
            SeriesRow::Ended { task, end } => append(out, &("e", at, task, end)),
            SeriesRow::Switched(Switched::To { cpu, task }) => append(out, &("o", at, cpu, task)),
            SeriesRow::Switched(Switched::Untold) => append(out, &("o", at, (), ())),
            SeriesRow::Came(task) => append(out, &("t", at, task)),
            SeriesRow::Warned { code, text, task } => append(out, &("!", at, code, text, task)),
        }
    }

    /// Parse a line; `None` for an unknown kind.
    ///
    /// # Errors
    /// The problem, with the column's name.
    pub fn read(line: &str) -> Result<Option<(Nanos, SeriesRow)>, String> {
        // Series are long, so unneeded values are not parsed.
        let values: Vec<&RawValue> = serde_json::from_str(line)
            .map_err(|error| format!("expected a JSON array: {error}"))?;
        let code = values
            .first()
            .and_then(|value| serde_json::from_str::<&str>(value.get()).ok());
        let code = code.ok_or("expected a letter in column `kind`")?;
        let Some(kind) = KINDS.iter().find(|kind| kind.code == code) else {
            return Ok(None);
        };
        let columns = Columns {
            kind,
            values: &values,
        };
        Ok(Some((columns.get("t_ns")?, columns.row()?)))
    }
}

/// The values of a line, by the names of their columns.
struct Columns<'a> {
    kind: &'a SeriesRowKind,
    values: &'a [&'a RawValue],
}

impl Columns<'_> {
    fn row(&self) -> Result<SeriesRow, String> {
        Ok(match self.kind.code {
            "d" => SeriesRow::Decided {
                triggers: self.get("triggers")?,
                next_wake: self.get("next_wake_ns")?,
                stood_in: self.flag("stood_in")?,
                basis: Basis {
                    target: self.get("target")?,
                    predicted: self.get("predicted")?,
                    measures: self.get("measures")?,
                },
            },
            "p" => SeriesRow::Placed {
                task: self.get("task")?,
                cpus: self.get("cpus")?,
                mode: self.get("mode")?,
                purpose: self.get("purpose")?,
            },
            "x" => SeriesRow::Stopped(self.get("task")?),
            "w" => SeriesRow::Waits {
                task: self.get("task")?,
                reason: self.get("reason")?,
            },
            "s" => SeriesRow::Sampled(self.sample()?),
            "a" => SeriesRow::Lacks {
                task: self.get("task")?,
                column: self.get("column")?,
                why: self.get("why")?,
            },
            "b" => SeriesRow::Started(self.get("task")?),
            "e" => SeriesRow::Ended {
                task: self.get("task")?,
                end: self.get("end")?,
            },
            "o" => SeriesRow::Switched(match self.get("cpu")? {
                Some(cpu) => Switched::To {
                    cpu,
                    task: self.get("task")?,
                },
                None => Switched::Untold,
            }),
            "t" => SeriesRow::Came(self.get("task")?),
            _ => SeriesRow::Warned {
                code: self.get("code")?,
                text: self.get("text")?,
                // Earlier versions did not tell it.
                task: match self.values.len() {
                    5.. => self.get("task")?,
                    _ => None,
                },
            },
        })
    }

    fn sample(&self) -> Result<SampleRow, String> {
        let flags: String = self.get("flags")?;
        let mut counts = PerCounter::default();
        for counter in Counter::ALL {
            counts[counter] = self.get(counter.name())?;
        }
        Ok(SampleRow {
            task: self.get("task")?,
            interval: self.get("interval_ns")?,
            cpus: self.get("cpus")?,
            purpose: self.get("purpose")?,
            whole_core: flags.contains('w'),
            disturbed: flags.contains('d'),
            cut_short: flags.contains('c'),
            multiplexed: flags.contains('m'),
            cpu_time: self.get("cpu_ns")?,
            counts,
            progress_milli: self.get("progress_milli")?,
        })
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.get::<u8>(name)? != 0)
    }

    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let code = self.kind.code;
        let mut names = self.kind.columns.iter();
        let value = names
            .position(|column| *column == name)
            .and_then(|ix| self.values.get(ix))
            .ok_or_else(|| format!("column `{name}` of a line of kind `{code}` is missing"))?;
        serde_json::from_str(value.get()).map_err(|error| {
            // The position within the value is of no use.
            let text = error.to_string();
            let problem = text.split(" at line ").next().unwrap_or(&text);
            format!("column `{name}` of a line of kind `{code}`: {problem}")
        })
    }
}

/// Append a line as JSON.
fn append(out: &mut Vec<u8>, line: &impl Serialize) {
    // Writing into memory cannot fail, and everything in a row serialises.
    if serde_json::to_writer(&mut *out, line).is_ok() {
        out.push(b'\n');
    }
}
