//! One job, as it was given and as it is run.

use super::command::{Command, quote_in_a_line, told};
use super::read::OWN_INPUT;
use crate::exit::usage;
use crate::sha256::sha256;
use cosched_core::weight_of_nice;
use cosched_linux::{Adoption, InheritedAttributes};
use cosched_report::{JobGiven, is_hidden};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// One job as it was given, before its copies are made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobInput {
    /// What the user calls it; told where its progress is told.
    pub(crate) id: Option<String>,
    /// The name that the user gave it.
    pub(crate) name: Option<String>,
    /// The command to run on this machine; `None` if it can only be simulated.
    pub(crate) command: Option<Command>,
    /// What `--tag` puts before its output, if the user chose that.
    pub(crate) tag: Option<OsString>,
    /// The values that were put into its command; empty if it was given as a whole.
    pub(crate) values: Vec<OsString>,
    /// The program profile that it simulates: a built-in name or a path.
    pub(crate) program: Option<String>,
    /// Number of copies, at least 1.
    pub(crate) copies: u32,
    /// Variables added to the environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its working directory.
    pub(crate) cwd: Option<PathBuf>,
    /// Its niceness; `None` is that of the caller.
    pub(crate) nice: Option<i8>,
    /// Its weight, if the user gave one.
    pub(crate) weight: Option<f64>,
    /// The file that it reads as standard input; `None` is `/dev/null`, and `/dev/stdin` that of the run.
    pub(crate) stdin: Option<PathBuf>,
    /// When it arrives, in seconds from the start of the run.
    pub(crate) start_s: f64,
    /// Hardware threads that it needs at once; `None` if the user did not say.
    pub(crate) cpus: Option<u32>,
    /// Its work in a simulation, in instructions; `None` is the default work.
    pub(crate) work_instructions: Option<u64>,
    /// What a world in a process of its own is given with it.
    pub(crate) given_to_world: serde_json::Map<String, serde_json::Value>,
    /// The memory that it is said to need, in bytes.
    pub(crate) mem: Option<u64>,
    /// The time that it is said to need, in seconds.
    pub(crate) expected_s: Option<f64>,
    /// The process of it that runs already, with its descendants; `None` if it is to be started.
    pub(crate) adopt: Option<Adoption>,
    /// What it inherits; `None` is what the run does.
    pub(crate) inherited: Option<InheritedAttributes>,
    /// What it is said to use of the memory bus when alone, for each of its CPUs, in thousandths.
    pub(crate) bus_use_milli: Option<u16>,
    /// Where it was given, such as file and line; for messages.
    pub(crate) place: String,
    /// It is the only job of a command line, so that the run exits as it does.
    pub(crate) is_only: bool,
}

impl JobInput {
    /// A job that is only a command.
    pub(crate) fn command(command: Command, place: String) -> JobInput {
        JobInput {
            id: None,
            name: None,
            command: Some(command),
            tag: None,
            values: Vec::new(),
            program: None,
            copies: 1,
            env: BTreeMap::new(),
            cwd: None,
            nice: None,
            weight: None,
            stdin: None,
            start_s: 0.0,
            cpus: None,
            work_instructions: None,
            given_to_world: serde_json::Map::new(),
            mem: None,
            expected_s: None,
            adopt: None,
            inherited: None,
            bus_use_milli: None,
            place,
            is_only: false,
        }
    }

    /// A line that is no job.
    pub(crate) fn none(place: String) -> JobInput {
        JobInput {
            command: None,
            ..JobInput::command(Command::shell(""), place)
        }
    }

    /// Its weight: as given, else that of its niceness.
    pub(crate) fn weight(&self) -> f64 {
        let of_nice = self.nice.map_or(1.0, weight_of_nice);
        self.weight.unwrap_or(of_nice)
    }

    /// Whether its standard input is that of the run.
    pub(crate) fn reads_own_input(&self) -> bool {
        self.stdin.as_deref() == Some(Path::new(OWN_INPUT))
    }

    /// Its working directory, absolute.
    pub(crate) fn absolute_cwd(&self) -> Option<PathBuf> {
        self.cwd.as_deref().map(absolute)
    }

    /// The file of its standard input, absolute.
    pub(crate) fn absolute_stdin(&self) -> Option<PathBuf> {
        let file = self.stdin.as_deref()?;
        Some(match self.absolute_cwd() {
            Some(cwd) => cwd.join(file),
            None => absolute(file),
        })
    }

    /// What it was given beside its command. Files are absolute: a later run may be called elsewhere.
    pub(crate) fn given(&self) -> JobGiven {
        JobGiven {
            cwd: self.absolute_cwd().map(told),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), digest(value)))
                .collect(),
            stdin: self.absolute_stdin().map(told),
        }
    }
}

/// The absolute form of a path; the path itself if the current folder is gone.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn digest(value: &str) -> String {
    sha256(value.as_bytes())[..16].to_owned()
}

/// One job of the run: one of the copies, with a name of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    /// Its unique name, which can be part of a file's name.
    pub(crate) name: String,
    /// The job as it was given.
    pub(crate) input: JobInput,
}

impl Job {
    /// The tag that the user chose, or its values in one line, or its name: what `--tag` puts before its output.
    pub(crate) fn tag(&self) -> String {
        let JobInput { tag, values, .. } = &self.input;
        if let Some(tag) = tag {
            return in_a_line(tag);
        }
        if values.is_empty() {
            return self.name.clone();
        }
        let values = values.iter().map(|value| in_a_line(value));
        values.collect::<Vec<_>>().join(" ")
    }
}

/// The text as it is, or quoted if it would not stay in one line.
fn in_a_line(text: &OsStr) -> String {
    match text.to_str() {
        Some(plain) if !plain.contains(|c| is_hidden(c) || c == '\n' || c == '\t') => {
            plain.to_owned()
        }
        _ => quote_in_a_line(text.as_bytes()),
    }
}

/// An error of the input about a job.
pub(crate) fn wrong(job: &Job, what: impl Display) -> anyhow::Error {
    usage(format!("{}: job `{}`: {what}", job.input.place, job.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_values() {
        let input = JobInput::command(Command::shell("x"), String::new());
        let mut job = Job {
            name: "x".to_owned(),
            input,
        };
        assert_eq!(job.tag(), "x");
        job.input.values = vec![
            "a b".into(),
            "\u{1b}[2J".into(),
            r"\xff".into(),
            OsStr::from_bytes(b"\xff").to_owned(),
        ];
        assert_eq!(job.tag(), r"a b $'\033[2J' \xff $'\377'");
        // Its line is one, and has one tab.
        job.input.values = vec!["a\nb".into(), "c\td".into()];
        assert_eq!(job.tag(), r"$'a\nb' $'c\td'");
    }
}
