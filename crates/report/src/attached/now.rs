//! An interval of attached programs, as JSON shows it.

use crate::figures::{Absences, Figures};
use cosched_core::{
    Counter, CpuShare, CpuUsed, Disturbance, Disturber, Nanos, Observed, Pressure, Rate, Reading,
    SubjectSample,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of an interval.
pub const ATTACHED_SCHEMA: &str = "cosched.attached/1";

/// An interval of attached programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachedNow {
    /// [`ATTACHED_SCHEMA`].
    pub schema: String,
    /// The version of cosched.
    pub cosched_version: String,
    /// The process of cosched.
    pub pid: u32,
    /// The selections, as options.
    pub selected: Vec<String>,
    /// Length of the interval in seconds.
    pub interval_s: f64,
    /// The subjects, in the order of the selections; then those that have ended.
    pub subjects: Vec<SubjectNow>,
    /// Who probably disturbs whom.
    pub disturbances: Vec<DisturbanceNow>,
    /// How each CPU spent the interval.
    pub cpus: Option<Vec<CpuUsed>>,
    /// What was not read.
    pub left_out: LeftOutNow,
    /// Reasons of absence of null values.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A subject in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubjectNow {
    /// Short name.
    pub name: String,
    /// Whether it lives.
    pub state: SubjectState,
    /// Command line of its first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Directory of its cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Live processes.
    pub processes: u32,
    /// Their threads.
    pub threads: u32,
    /// Threads that run or wait for a CPU.
    pub wants: u32,
    /// Where its threads ran and waited.
    pub on: Vec<CpuShare>,
    /// Whether the pressures are those of the whole machine.
    pub pressure_of_machine: bool,
    /// Figures: `cpus_used`, `waited_s`, `ipc`, `read_bytes_per_s`, `written_bytes_per_s`, `resident_bytes`,
    /// `grew_bytes`, and `cpu_`, `memory_` and `io_pressure_percent`.
    pub figures: Figures<f64>,
}

/// Whether a subject lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectState {
    /// It has a live process.
    Live,
    /// All its processes have ended.
    Ended,
}

/// Who probably disturbs whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceNow {
    /// The disturber; `null` if it is not observed.
    pub by: Option<String>,
    /// The subject that is slowed.
    pub slows: String,
    /// The kind of evidence and its measurements; each name ends with the unit.
    pub evidence: Value,
    /// All of it in words.
    pub text: String,
    /// Reasons of absence of null values.
    #[serde(flatten)]
    pub absent: Absences,
}

/// What was not read, because there is too much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutNow {
    /// Processes.
    pub processes: usize,
    /// Threads.
    pub threads: usize,
}

impl AttachedNow {
    /// An interval without names of commands and groups.
    pub fn new(
        selected: Vec<String>,
        observed: &Observed,
        disturbances: &[Disturbance],
        left_out: LeftOutNow,
    ) -> AttachedNow {
        let mut absent = Absences::default();
        let cpus = absent.note("cpus", observed.cpus.as_ref());
        let subjects = observed.subjects.iter();
        AttachedNow {
            schema: ATTACHED_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            selected,
            interval_s: observed.length.as_s(),
            subjects: subjects
                .map(|subject| SubjectNow::new(subject, observed.length))
                .collect(),
            disturbances: disturbances.iter().map(DisturbanceNow::new).collect(),
            cpus: cpus.cloned(),
            left_out,
            absent,
        }
    }

    /// Whether some subject lives.
    pub fn has_live(&self) -> bool {
        let mut subjects = self.subjects.iter();
        subjects.any(|subject| subject.state == SubjectState::Live)
    }
}

impl SubjectNow {
    fn new(sample: &SubjectSample, length: Nanos) -> SubjectNow {
        SubjectNow {
            name: sample.name.clone(),
            state: SubjectState::Live,
            command: None,
            group: None,
            processes: sample.processes,
            threads: sample.threads,
            wants: sample.wants,
            on: sample.on.clone(),
            pressure_of_machine: sample.pressure.of_machine,
            figures: figures(sample, length),
        }
    }

    /// A subject that has ended.
    pub fn ended(name: &str) -> SubjectNow {
        SubjectNow {
            name: name.to_owned(),
            state: SubjectState::Ended,
            command: None,
            group: None,
            processes: 0,
            threads: 0,
            wants: 0,
            on: Vec::new(),
            pressure_of_machine: false,
            figures: Figures::default(),
        }
    }
}

/// The figures of a subject.
fn figures(sample: &SubjectSample, length: Nanos) -> Figures<f64> {
    let Pressure {
        cpu, memory, io, ..
    } = sample.pressure;
    Figures::of([
        (
            "cpus_used",
            Reading::Value(sample.cpu_time.share_of(length)),
        ),
        ("waited_s", sample.waited.map(Nanos::as_s)),
        ("ipc", sample.counts.ipc()),
        (
            "read_bytes_per_s",
            bandwidth(sample, Counter::MmReads, length),
        ),
        (
            "written_bytes_per_s",
            bandwidth(sample, Counter::MmWrites, length),
        ),
        ("resident_bytes", sample.resident.map(|bytes| bytes as f64)),
        ("grew_bytes", sample.grew.map(|bytes| bytes as f64)),
        ("cpu_pressure_percent", cpu),
        ("memory_pressure_percent", memory),
        ("io_pressure_percent", io),
    ])
}

fn bandwidth(sample: &SubjectSample, counter: Counter, length: Nanos) -> Reading<f64> {
    let rate = |count| Rate::from_count(count, length).unwrap_or_default();
    sample.counts[counter].map(|count| rate(count).bytes_per_s())
}

impl DisturbanceNow {
    fn new(disturbance: &Disturbance) -> DisturbanceNow {
        let mut absent = Absences::default();
        let by = match &disturbance.by {
            Disturber::Subject(name) => Some(name.clone()),
            Disturber::Others | Disturber::Hypervisor => None,
        };
        let by = absent.note_option("by", by, &disturbance.by.to_string());
        DisturbanceNow {
            by,
            slows: disturbance.slows.clone(),
            evidence: serde_json::to_value(&disturbance.evidence).unwrap_or_default(),
            text: disturbance.to_string(),
            absent,
        }
    }
}
