//! Simulated machines and programs: by the name of one that is built in, or from a file.

use super::command::told;
use super::near::did_you_mean;
use super::read::read_spec;
use crate::exit::usage;
use clap::builder::{PossibleValue, TypedValueParser};
use cosched_core::POLICIES;
use cosched_sim::{
    MACHINES, MachineSpec, PROGRAMS, ProgramSpec, builtin_machine, builtin_program, parse_machine,
    parse_program,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A machine or program with the text of its file, unless it is built in.
pub(crate) struct Described<T> {
    pub(crate) spec: T,
    pub(crate) text: Option<String>,
}

impl<T> Described<T> {
    fn built_in(spec: T) -> Described<T> {
        Described { spec, text: None }
    }
}

/// Whether `name` is the path of a file, not the name of something built in.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// The file that a program is in, if it is not built in; its path counts from `folder`.
pub(crate) fn program_file(name: &str, folder: &Path) -> Option<PathBuf> {
    is_path(name).then(|| {
        folder.join(
            name.strip_prefix("./")
                .filter(|rest| !rest.is_empty())
                .unwrap_or(name),
        )
    })
}

/// The name of a built-in program, as an example in messages.
pub(crate) fn example_program() -> &'static str {
    PROGRAMS.first().map_or("mcf", |program| program.name)
}

/// The name of a machine with several types of core, as an example in messages.
pub(crate) fn machine_with_core_types() -> Option<&'static str> {
    MACHINES
        .iter()
        .map(|machine| machine.name)
        .find(|name| has_core_types(name))
}

fn has_core_types(name: &str) -> bool {
    builtin_machine(name).is_some_and(|machine| machine.machine().core_types.len() > 1)
}

/// The machine of `--on`.
///
/// # Errors
/// There is no such machine, or its file can't be read. The message says what to write instead.
pub(crate) fn machine(name: &str) -> anyhow::Result<Described<MachineSpec>> {
    if is_path(name) {
        let text = read_spec(Path::new(name)).map_err(|error| usage(format!("--on: {error}")))?;
        let spec = parse_machine(&text, &told(name)).map_err(|error| usage(error.to_string()))?;
        return Ok(Described {
            spec,
            text: Some(text),
        });
    }
    builtin_machine(name).map(Described::built_in).ok_or_else(|| {
        let known: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
        usage(format!(
            "--on: there is no machine `{name}`{}; there are host, {}, as in --on {}; a machine file is given by its path, \
             as in --on ./{name}.toml",
            did_you_mean(name, known.iter().copied().chain(["host"])),
            known.join(", "),
            known.first().unwrap_or(&"host"),
        ))
    })
}

/// The program of a job. The path of a file counts from `folder`; `place` says where the job was given, for messages.
///
/// # Errors
/// There is no such program, or its file can't be read. The message says what to write instead.
pub(crate) fn program(
    name: &str,
    folder: &Path,
    place: &str,
) -> anyhow::Result<Described<ProgramSpec>> {
    if let Some(path) = program_file(name, folder) {
        let text = read_spec(&path).map_err(|error| usage(format!("{place}: program {error}")))?;
        let spec = parse_program(&text, &told(&path)).map_err(|error| usage(error.to_string()))?;
        return Ok(Described {
            spec,
            text: Some(text),
        });
    }
    builtin_program(name).map(Described::built_in).ok_or_else(|| {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        usage(format!(
            "{place}: there is no program `{name}`{}; there are {}, as in program = \"{}\"; a program file is given by its \
             path from the mix file, as in program = \"./{name}.toml\"",
            did_you_mean(name, known.iter().copied()),
            known.join(", "),
            example_program(),
        ))
    })
}

/// The built-in machines, and this one.
pub(crate) fn machine_names() -> Vec<&'static str> {
    std::iter::once("host")
        .chain(MACHINES.iter().map(|machine| machine.name))
        .collect()
}

/// The built-in programs.
pub(crate) fn program_names() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).collect()
}

/// The policies, and the word for the best of them.
pub(crate) fn policy_names() -> Vec<&'static str> {
    std::iter::once("auto")
        .chain(POLICIES.iter().map(|policy| policy.name))
        .collect()
}

/// Accepts any word, which may be the name of a file or is refused later with better words, and offers these names for
/// completion.
#[derive(Clone)]
pub(crate) struct Offered(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::NonEmptyStringValueParser::new().parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}
