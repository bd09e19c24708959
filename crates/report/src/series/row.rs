//! The lines of a series: one table of their kinds and columns, and how each is written and read.

use cosched_core::{
    Absence, Basis, Counter, CpuId, CpuSet, Nanos, PerCounter, Purpose, Rate, Switched, TaskId,
    Trigger, WaitReason,
};
use serde::de::DeserializeOwned;
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A kind of line.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The letter that its lines begin with.
    pub code: &'static str,
    /// What such a line says, in words.
    pub meaning: &'static str,
    /// Its columns, the letter's and the time's included.
    pub columns: &'static [&'static str],
}

/// Every kind of line.
pub const KINDS: &[Kind] = &[
    Kind {
        code: "d",
        meaning: "a decision was made",
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
    Kind {
        code: "p",
        meaning: "a task was placed on other CPUs or in another way than before",
        columns: &["kind", "t_ns", "task", "cpus", "mode", "purpose"],
    },
    Kind {
        code: "x",
        meaning: "a task was stopped (frozen)",
        columns: &["kind", "t_ns", "task"],
    },
    Kind {
        code: "w",
        meaning: "a task waits for another reason than before",
        columns: &["kind", "t_ns", "task", "reason"],
    },
    Kind {
        code: "s",
        meaning: "what was measured of a task since it was placed or last measured",
        columns: &SAMPLE_COLUMNS,
    },
    Kind {
        code: "a",
        meaning: "why a column of a task's samples is null from now on",
        columns: &["kind", "t_ns", "task", "column", "why"],
    },
    Kind {
        code: "b",
        meaning: "a task was started",
        columns: &["kind", "t_ns", "task"],
    },
    Kind {
        code: "e",
        meaning: "a task ended",
        columns: &[
            "kind",
            "t_ns",
            "task",
            "exit",
            "exit_text",
            "timed_out",
            "max_rss_bytes",
            "user_ns",
            "system_ns",
            "read_bytes",
            "written_bytes",
            "progress_milli",
        ],
    },
    Kind {
        code: "o",
        meaning: "a CPU went to a task, or with null to none of the run, as a scheduler in the kernel saw it; null for the CPU: that is \
                  not told from now on",
        columns: &["kind", "t_ns", "cpu", "task"],
    },
    Kind {
        code: "!",
        meaning: "a warning",
        columns: &["kind", "t_ns", "code", "text"],
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

/// The counters in the columns before the progress. Later counters come after it, since a new column goes to the end of
/// the line.
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

/// How a task has its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The CPUs are its own.
    Exclusive,
    /// The CPUs are its own, and their cores' other CPUs are kept idle.
    WholeCore,
    /// The kernel time-shares them between it and others.
    Shared,
}

/// What was measured of a task over one interval; counts are null where absent.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// The task that was measured.
    pub task: TaskId,
    /// How long the interval lasted.
    pub interval: Nanos,
    /// The CPUs that the task was placed on.
    pub cpus: CpuSet,
    /// What the placement was for.
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
    /// What each counter counted in the interval.
    pub counts: PerCounter<Option<u64>>,
    /// The task's progress after the interval, in thousandths of a quantum.
    pub progress_milli: Option<u64>,
}

/// How a task ended, and what it had used by then; null where absent, as in the run record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRow {
    /// The task that ended.
    pub task: TaskId,
    /// Its exit status as in a shell; `None` if it is not known.
    pub exit: Option<i32>,
    /// How it ended, in words.
    pub text: String,
    /// Whether it ran out of its time.
    pub timed_out: bool,
    /// Greatest resident memory of any one of its processes, in bytes.
    pub max_rss: Option<u64>,
    /// CPU time in user mode.
    pub user_time: Option<Nanos>,
    /// CPU time in the kernel.
    pub system_time: Option<Nanos>,
    /// Bytes that were fetched from storage.
    pub read_bytes: Option<u64>,
    /// Bytes that were written for storage.
    pub written_bytes: Option<u64>,
    /// Its progress in the end, in thousandths of a quantum.
    pub progress_milli: Option<u64>,
}

/// One line of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// A decision was made.
    Decided {
        /// What triggered it.
        triggers: Vec<Trigger>,
        /// The latest time at which the policy wants to be asked again.
        next_wake: Option<Nanos>,
        /// Whether the policy's own decision could not be carried out, and round-robin stood in.
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
        mode: Mode,
        /// What the placement is for.
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
    Ended(EndedRow),
    /// What a scheduler in the kernel saw of a CPU.
    Switched(Switched),
    /// The user was warned.
    Warned {
        /// The warning's code.
        code: String,
        /// The warning as a sentence.
        text: String,
    },
}

impl Row {
    /// Whether its time is that of what it measures: it stands in a series after rows with later times.
    pub(crate) fn is_of_the_past(&self) -> bool {
        matches!(self, Row::Sampled(_) | Row::Lacks { .. })
    }

    /// The task that the line is about, if it is about one.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Row::Decided { .. } | Row::Warned { .. } => None,
            Row::Placed { task, .. } | Row::Waits { task, .. } | Row::Lacks { task, .. } => {
                Some(*task)
            }
            Row::Stopped(task) | Row::Started(task) => Some(*task),
            Row::Sampled(row) => Some(row.task),
            Row::Ended(row) => Some(row.task),
            Row::Switched(Switched::To { task, .. }) => *task,
            Row::Switched(Switched::Untold) => None,
        }
    }
}

/// Letters of a sample's flags.
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

impl Row {
    /// Appends the line, with its end.
    pub fn write(&self, at: Nanos, out: &mut Vec<u8>) {
        let mut line = |value: &dyn erased::Line| value.append(out);
        match self {
            Row::Decided {
                triggers,
                next_wake,
                stood_in,
                basis,
            } => {
                let Basis {
                    target,
                    predicted,
                    measures,
                } = basis;
                line(&(
                    "d",
                    at,
                    triggers,
                    next_wake,
                    u8::from(*stood_in),
                    target,
                    predicted,
                    measures,
                ));
            }
            Row::Placed {
                task,
                cpus,
                mode,
                purpose,
            } => line(&("p", at, task, cpus, mode, purpose)),
            Row::Stopped(task) => line(&("x", at, task)),
            Row::Waits { task, reason } => line(&("w", at, task, reason)),
            Row::Sampled(row) => line(&SampleLine(at, row)),
            Row::Lacks { task, column, why } => line(&("a", at, task, column, why)),
            Row::Started(task) => line(&("b", at, task)),
            Row::Ended(row) => line(&(
                "e",
                at,
                row.task,
                row.exit,
                &row.text,
                u8::from(row.timed_out),
                row.max_rss,
                row.user_time,
                row.system_time,
                row.read_bytes,
                row.written_bytes,
                row.progress_milli,
            )),
            Row::Switched(Switched::To { cpu, task }) => line(&("o", at, cpu, task)),
            Row::Switched(Switched::Untold) => line(&("o", at, None::<CpuId>, None::<TaskId>)),
            Row::Warned { code, text } => line(&("!", at, code, text)),
        }
    }

    /// Reads a line; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// What is wrong, with the column's name.
    pub fn read(line: &str) -> Result<Option<(Nanos, Row)>, String> {
        // Series are long, so values that nobody asks for are skipped over.
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
        let row = match kind.code {
            "d" => Row::Decided {
                triggers: columns.get("triggers")?,
                next_wake: columns.get("next_wake_ns")?,
                stood_in: columns.get::<u8>("stood_in")? != 0,
                basis: Basis {
                    target: columns.get::<Option<Rate>>("target")?,
                    predicted: columns.get("predicted")?,
                    measures: columns.get("measures")?,
                },
            },
            "p" => Row::Placed {
                task: columns.get("task")?,
                cpus: columns.get("cpus")?,
                mode: columns.get("mode")?,
                purpose: columns.get("purpose")?,
            },
            "x" => Row::Stopped(columns.get("task")?),
            "w" => Row::Waits {
                task: columns.get("task")?,
                reason: columns.get("reason")?,
            },
            "s" => {
                let flags: String = columns.get("flags")?;
                let mut counts = PerCounter::default();
                for counter in Counter::ALL {
                    counts[counter] = match columns.value(counter.name()) {
                        // An earlier version did not have this counter.
                        None if counter as usize >= BEFORE_PROGRESS => None,
                        _ => columns.get(counter.name())?,
                    };
                }
                Row::Sampled(SampleRow {
                    task: columns.get("task")?,
                    interval: columns.get("interval_ns")?,
                    cpus: columns.get("cpus")?,
                    purpose: columns.get("purpose")?,
                    whole_core: flags.contains('w'),
                    disturbed: flags.contains('d'),
                    cut_short: flags.contains('c'),
                    multiplexed: flags.contains('m'),
                    cpu_time: columns.get("cpu_ns")?,
                    counts,
                    progress_milli: columns.get("progress_milli")?,
                })
            }
            "a" => Row::Lacks {
                task: columns.get("task")?,
                column: columns.get("column")?,
                why: columns.get("why")?,
            },
            "b" => Row::Started(columns.get("task")?),
            "e" => Row::Ended(EndedRow {
                task: columns.get("task")?,
                exit: columns.get("exit")?,
                text: columns.get("exit_text")?,
                timed_out: columns
                    .later::<u8>("timed_out")?
                    .is_some_and(|flag| flag != 0),
                max_rss: columns.later("max_rss_bytes")?,
                user_time: columns.later("user_ns")?,
                system_time: columns.later("system_ns")?,
                read_bytes: columns.later("read_bytes")?,
                written_bytes: columns.later("written_bytes")?,
                progress_milli: columns.later("progress_milli")?,
            }),
            "o" => Row::Switched(match columns.get::<Option<CpuId>>("cpu")? {
                Some(cpu) => Switched::To {
                    cpu,
                    task: columns.get("task")?,
                },
                None => Switched::Untold,
            }),
            "!" => Row::Warned {
                code: columns.get("code")?,
                text: columns.get("text")?,
            },
            _ => return Ok(None),
        };
        Ok(Some((columns.get("t_ns")?, row)))
    }
}

/// A line's values by the names of their columns.
struct Columns<'a> {
    kind: &'a Kind,
    values: &'a [&'a RawValue],
}

impl<'a> Columns<'a> {
    /// The value in the column of that name; `None` when the line is too short to have one.
    fn value(&self, name: &str) -> Option<&'a str> {
        let ix = self
            .kind
            .columns
            .iter()
            .position(|column| *column == name)?;
        self.values.get(ix).map(|value| value.get())
    }

    /// The value in a column that an earlier version did not have.
    fn later<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        if self.value(name).is_none() {
            Ok(None)
        } else {
            self.get(name)
        }
    }

    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let value = self.value(name).ok_or_else(|| {
            format!(
                "column `{name}` of a line of kind `{}` is missing",
                self.kind.code
            )
        })?;
        serde_json::from_str(value).map_err(|error| {
            // The place within the value helps nobody.
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            format!(
                "column `{name}` of a line of kind `{}`: {what}",
                self.kind.code
            )
        })
    }
}

mod erased {
    use serde::Serialize;

    /// A line of any columns, appended as JSON.
    pub(super) trait Line {
        fn append(&self, out: &mut Vec<u8>);
    }

    impl<T: Serialize> Line for T {
        fn append(&self, out: &mut Vec<u8>) {
            // Writing into memory can't fail, and nothing in a row refuses to serialise.
            if serde_json::to_writer(&mut *out, self).is_ok() {
                out.push(b'\n');
            }
        }
    }
}
