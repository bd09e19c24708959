//! Simulated machines and programs: by the name of one that is built in, or from a file.

use super::command::told;
use super::mine::{MINE, machine_file};
use super::read::read_spec;
use super::spelling::unknown;
use crate::exit::usage;
use anyhow::Result;
use cosched_core::POLICIES;
use cosched_foreign::Command;
use cosched_linux::root::Root;
use cosched_sim::{
    MACHINES, MachineSpec, PROGRAMS, ProgramSpec, builtin_machine, builtin_program,
    parse_machine_with, parse_program,
};
use std::path::{Path, PathBuf};

/// The word for the best policy that the machine supports.
pub const AUTO: &str = "auto";

/// A machine or program with the text of its file, unless it is built in.
pub struct Described<T> {
    /// What it is.
    pub spec: T,
    /// The text of its file.
    pub text: Option<String>,
}

impl<T> Described<T> {
    fn built_in(spec: T) -> Described<T> {
        Described { spec, text: None }
    }

    /// What a file of this name describes.
    fn parse<E: ToString>(
        text: String,
        name: &str,
        parse: fn(&str, &str) -> Result<T, E>,
    ) -> Result<Described<T>> {
        let spec = parse(&text, name).map_err(|error| usage(error.to_string()))?;
        let text = Some(text);
        Ok(Described { spec, text })
    }
}

/// Whether `name` is the path of a file, neither the name of something built in nor a command.
pub fn is_path(name: &str) -> bool {
    if Command::of(name).is_some() {
        return false;
    }
    name.contains('/') || name.ends_with(".toml")
}

/// The file that a program is in, if it is not built in; its path counts from `folder`.
pub(crate) fn program_file(name: &str, folder: &Path) -> Option<PathBuf> {
    if !is_path(name) {
        return None;
    }
    let plain = match name.strip_prefix("./") {
        Some("") | None => name,
        Some(rest) => rest,
    };
    Some(folder.join(plain))
}

/// A built-in program, as an example in messages.
pub(crate) const EXAMPLE_PROGRAM: &str = "mcf";

/// The machine of `--on`.
///
/// # Errors
/// There is no such machine, or its file can't be read. The message says what to write instead.
pub fn machine(name: &str) -> Result<Described<MachineSpec>> {
    if is_path(name) {
        return machine_in(Path::new(name));
    }
    if name == MINE {
        let file = machine_file(&Root::default());
        let file = file.ok_or_else(|| usage("--on mine: set XDG_DATA_HOME or HOME"))?;
        if !file.exists() {
            return Err(usage(format!(
                "--on mine: there is no {}; `cosched calibrate` measures this machine",
                file.display()
            )));
        }
        return machine_in(&file);
    }
    match builtin_machine(name) {
        Some(machine) => Ok(Described::built_in(machine)),
        None => {
            let problem = unknown("machine", name, &machine_names());
            Err(usage(format!(
                "--on: {problem}, or a file, as in --on ./{name}.toml"
            )))
        }
    }
}

/// The machine that a file describes.
///
/// # Errors
/// The file can't be read. The message names it, and the line.
pub fn machine_in(file: &Path) -> Result<Described<MachineSpec>> {
    let text = read_spec(file).map_err(|error| usage(format!("--on: {error}")))?;
    let curve = |name: &str| curve_beside(file, name);
    let spec = parse_machine_with(&text, &told(file), &curve);
    let spec = spec.map_err(|error| usage(error.to_string()))?;
    Ok(Described {
        spec,
        text: Some(text),
    })
}

/// The policies' parameters in this machine's own file; none if it can't be read. `cosched doctor` says why.
pub(crate) fn measured_params(root: &Root) -> Vec<(String, String)> {
    let file = machine_file(root).and_then(|file| machine_in(&file).ok());
    file.map(|file| file.spec.params).unwrap_or_default()
}

/// The text of a latency file; its path counts from the folder of the machine file.
fn curve_beside(machine: &Path, file: &str) -> Result<String, String> {
    let folder = machine.parent().unwrap_or(Path::new(""));
    read_spec(&folder.join(file)).map_err(|error| error.to_string())
}

/// The program of a job. The path of a file counts from `folder`; `place` says where the job was given, for messages.
///
/// # Errors
/// There is no such program, or its file can't be read. The message says what to write instead.
pub fn program(name: &str, folder: &Path, place: &str) -> Result<Described<ProgramSpec>> {
    if let Some(path) = program_file(name, folder) {
        let text = read_spec(&path).map_err(|error| usage(format!("{place}: program {error}")))?;
        return Described::parse(text, &told(&path), parse_program);
    }
    match builtin_program(name) {
        Some(program) => Ok(Described::built_in(program)),
        None => {
            let problem = unknown("program", name, &program_names());
            Err(usage(format!(
                "{place}: {problem}, or a file, as in program = \"./{name}.toml\""
            )))
        }
    }
}

/// The built-in machines, and this one: real and simulated.
pub fn machine_names() -> Vec<&'static str> {
    ["host", MINE]
        .into_iter()
        .chain(MACHINES.iter().map(|machine| machine.name))
        .collect()
}

/// The built-in programs.
pub fn program_names() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).collect()
}

/// The policies, and the word for the best of them.
pub fn policy_names() -> Vec<&'static str> {
    std::iter::once(AUTO)
        .chain(POLICIES.iter().map(|policy| policy.name))
        .collect()
}
