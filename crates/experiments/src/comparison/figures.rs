//! The figures of single runs.

use crate::comparison::design::Trial;
use crate::comparison::frequency::{MEAN_GHZ, mean_ghz};
use cosched_report::{BackendKind, MachineLoad, Origin, Record, clip};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which run it was.
    pub trial: Trial,
    /// The policy that decided, never `auto`; `None` of a command.
    pub policy: Option<String>,
    /// Metrics by their names in the run record, and [`MEAN_GHZ`]; those without a value are left out.
    pub figures: BTreeMap<String, f64>,
    /// Why metrics have no value, by their names.
    pub absent: BTreeMap<String, String>,
    /// The number of jobs that did not end well; `None` of a command.
    pub failed: Option<usize>,
    /// The exit status of a command; `None` of a policy.
    pub exit: Option<i32>,
    /// What makes its figures doubtful, in words.
    pub doubts: Vec<String>,
    /// Where it was made; `None` of a command. It is told once for all runs.
    #[serde(skip)]
    pub origin: Option<Origin>,
    /// Who else used the CPUs; short runs are judged by it together.
    #[serde(skip)]
    pub load: Option<MachineLoad>,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            block: 1,
            mix: 0,
            candidate: 0,
        }
    }
}

/// The program that ran the batch, seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRun {
    /// [`COMMAND_SCHEMA`].
    pub schema: String,
    /// The command, as a shell takes it.
    pub command: String,
    /// Time from its start to its end in seconds.
    pub elapsed_s: f64,
    /// Its exit status as in a shell.
    pub exit: i32,
    /// Who else used the CPUs meanwhile; `None` of a run whose record says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_load: Option<MachineLoad>,
    /// The end of what a command that failed wrote to its error output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// What makes its time doubtful, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// The name of the time that the whole program took, as a metric. It is the only one that other programs have, and a
/// policy's is measured in the same way: what cosched itself takes at its start and end is in it.
pub const ELAPSED: &str = "elapsed_s";

/// The format's name and version.
pub const COMMAND_SCHEMA: &str = "cosched.command/1";

/// No more characters of a line that a command wrote are shown.
const LONGEST: usize = 160;

/// How runs end that were ended before their time: they are made again.
const CUT: [&str; 3] = ["signal", "killed", "goes-on"];

/// Warnings of runs that say that figures are not to be trusted.
const DOUBTS: [&str; 2] = ["disturbed", "cpus-collide"];

impl Outcome {
    /// What a run record says; `None` if the run was ended before its time.
    pub fn of_record(trial: Trial, record: &Record) -> Option<Outcome> {
        if CUT.contains(&record.finished_by.as_str()) {
            return None;
        }
        let mut outcome = Outcome {
            trial,
            policy: Some(record.policy.clone()),
            ..Outcome::default()
        };
        outcome.origin = Some(Origin::of(record));
        for (name, value) in record.metrics.iter() {
            match value {
                Ok(value) => drop(outcome.figures.insert(name.to_owned(), *value)),
                Err(why) => drop(outcome.absent.insert(name.to_owned(), why.to_owned())),
            }
        }
        outcome.failed = Some(record.totals.failed + record.totals.unfinished);
        if record.backend == BackendKind::Host {
            outcome.load = Some(record.machine_load.clone());
            let doubts = record
                .warnings
                .iter()
                .filter(|warning| DOUBTS.contains(&warning.code.as_str()));
            outcome
                .doubts
                .extend(doubts.map(|warning| warning.text.clone()));
            match mean_ghz(record) {
                Ok(ghz) => drop(outcome.figures.insert(MEAN_GHZ.to_owned(), ghz)),
                Err(why) => drop(outcome.absent.insert(MEAN_GHZ.to_owned(), why.to_owned())),
            }
        }
        Some(outcome)
    }

    /// What another program took.
    pub fn of_command(trial: Trial, run: &CommandRun) -> Outcome {
        Outcome {
            trial,
            figures: BTreeMap::from([(ELAPSED.to_owned(), run.elapsed_s)]),
            exit: Some(run.exit),
            load: run.machine_load.clone(),
            doubts: (run.exit != 0)
                .then(|| {
                    let last = run
                        .errors
                        .iter()
                        .flat_map(|text| text.lines())
                        .rfind(|line| !line.trim().is_empty());
                    let last = last
                        .map(|line| format!(" (it wrote: {})", clip(line.trim(), LONGEST)))
                        .unwrap_or_default();
                    format!(
                        "the command exited with {}{last}, so it is compared with nothing",
                        run.exit
                    )
                })
                .into_iter()
                .chain(run.doubts.iter().cloned())
                .collect(),
            ..Outcome::default()
        }
    }

    /// Whether jobs did not end well, or the command says so of itself.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some_and(|failed| failed > 0) || self.exit.is_some_and(|exit| exit != 0)
    }

    /// Whether as much of the batch was done as in the other run: a batch that fails early is no faster one. A command's exit
    /// status does not tell how much of the batch it did before it failed, so that is never known to be as much.
    pub fn did_as_much_as(&self, other: &Outcome) -> bool {
        match (self.failed, other.failed) {
            (Some(failed), Some(there)) => failed == there,
            _ => !self.has_failed() && !other.has_failed(),
        }
    }

    /// The value of a metric.
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied()
    }
}
