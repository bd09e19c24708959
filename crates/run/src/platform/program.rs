//! The program of a job on this machine.

use crate::exit::no_program;
use crate::folder::{output_files, reaped_files};
use crate::input::{COMMAND_LINE, Command, Job, JobInput, is_name, told, wrong};
use anyhow::{Context as _, Result};
use cosched_linux::{Environment, InheritedAttributes, JobProgram, find_program};
use serde_json::json;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The programs of jobs. Where jobs are many, most call the same one, so what was found for a job is kept.
pub(crate) struct Programs {
    /// This process's own environment, which jobs share.
    own: Arc<Environment>,
    found: RefCell<HashMap<Search, Option<PathBuf>>>,
    /// By the variables that are added to our own.
    environments: RefCell<HashMap<BTreeMap<String, String>, Arc<Environment>>>,
}

/// All that a search for a program depends on.
#[derive(PartialEq, Eq, Hash)]
struct Search {
    name: OsString,
    cwd: Option<PathBuf>,
    /// The value of `PATH`.
    path: Option<OsString>,
}

impl Programs {
    pub(crate) fn new() -> Result<Programs> {
        let own = Environment::new(std::env::vars_os()).context("reading the environment")?;
        Ok(Programs {
            own: Arc::new(own),
            found: RefCell::default(),
            environments: RefCell::default(),
        })
    }

    /// Forget what was found: files may have changed.
    pub(crate) fn forget(&self) {
        self.found.borrow_mut().clear();
        self.environments.borrow_mut().clear();
    }

    /// Find the program of this name. `cosched` means this same binary.
    pub(crate) fn find(
        &self,
        name: &OsStr,
        cwd: Option<&Path>,
        path: Option<&OsStr>,
    ) -> Option<PathBuf> {
        if name == "cosched" {
            return std::env::current_exe().ok();
        }
        let search = Search {
            name: name.to_owned(),
            cwd: cwd.map(Path::to_owned),
            path: path.map(OsStr::to_owned),
        };
        let mut found = self.found.borrow_mut();
        found
            .entry(search)
            .or_insert_with(|| find_program(name, cwd, path))
            .clone()
    }

    /// Our own environment with the variables of a job.
    fn environment(&self, job: &Job) -> Result<Arc<Environment>> {
        let added = &job.input.env;
        if added.is_empty() {
            return Ok(self.own.clone());
        }
        if let Some(known) = self.environments.borrow().get(added) {
            return Ok(known.clone());
        }
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in added {
            all.insert(name.into(), value.into());
        }
        let environment = Environment::new(all);
        let environment = environment.map_err(|error| wrong(job, format_args!("env {error}")))?;
        let environment = Arc::new(environment);
        self.environments
            .borrow_mut()
            .insert(added.clone(), environment.clone());
        Ok(environment)
    }

    /// The program to start for a job.
    pub(crate) fn of(&self, job: &Job, logs: &Path) -> Result<JobProgram> {
        let input = &job.input;
        let Some(command) = &input.command else {
            return Err(wrong(
                job,
                "has no command to run; add one, or simulate it (--on MACHINE)",
            ));
        };
        let env = self.environment(job)?;
        let cwd = working_folder(job)?;
        let (path, args) = match command {
            Command::Shell(line) => (line.program().to_owned(), line.words()),
            Command::Argv(words) => {
                let path = self.find(&words[0], cwd.as_deref(), env.get("PATH"));
                let path = path.ok_or_else(|| missing_program(job, &words[0], cwd.as_deref()))?;
                (path, words.clone())
            }
        };
        let stdin = input.absolute_stdin();
        if let Some(file) = &stdin
            && !input.reads_own_input()
        {
            check_stdin(job, file)?;
        }
        let [stdout, stderr] = output_files(logs, &job.name);
        Ok(JobProgram {
            path,
            args,
            env,
            cwd,
            nice: input.nice.map(i32::from),
            stdin,
            stdout,
            stderr,
            again: false,
        })
    }
}

/// The id of a job that has a reaper, which names its files.
pub(crate) fn reaped_id(job: &Job) -> Result<&str> {
    let id = job.input.id.as_deref().filter(|id| is_name(id));
    id.ok_or_else(|| wrong(job, "--reaper needs an id that can be a file name"))
}

/// The reaper that starts this program. It is this same binary.
pub(crate) fn reaped(
    program: JobProgram,
    key: &Path,
    inherited: Option<&InheritedAttributes>,
) -> JobProgram {
    let mut args: Vec<OsString> = ["cosched", "reap"].map(Into::into).to_vec();
    let inherited = json!(inherited).to_string();
    args.extend([key.into(), inherited.into(), program.path.into()]);
    args.extend(program.args);
    let [stdout, stderr] = reaped_files(key);
    JobProgram {
        // Also after the file of this program was replaced.
        path: "/proc/self/exe".into(),
        args,
        stdout,
        stderr,
        again: true,
        ..program
    }
}

fn working_folder(job: &Job) -> Result<Option<PathBuf>> {
    let cwd = job.input.absolute_cwd();
    if let Some(cwd) = &cwd
        && !cwd.is_dir()
    {
        let name = told(cwd);
        return Err(wrong(job, format_args!("cwd {name} is not a folder")));
    }
    Ok(cwd)
}

/// What errors say of a program that is not there.
pub(crate) const NO_PROGRAM: &str = "there is no program";

/// The error for a program that cannot be started, with the exit code of the shell, `nice` and `time`.
fn missing_program(job: &Job, word: &OsStr, cwd: Option<&Path>) -> anyhow::Error {
    let JobInput { place, is_only, .. } = &job.input;
    let name = told(word);
    let is_path = word.as_bytes().contains(&b'/');
    if is_path && let Some(why) = unfit(word, cwd) {
        let why = wrong(job, format_args!("{name} {why}"));
        return no_program(126, *is_only, why.to_string());
    }
    let within = if is_path { "" } else { " in PATH" };
    let example = if cwd.unwrap_or(Path::new("")).join(word).is_file() {
        format!("./{name}; `-f {name}` runs the lines of that file")
    } else if place == COMMAND_LINE {
        "./tool; a line for the shell is one word, as in 'wc -l {}'".to_owned()
    } else {
        "./tool".to_owned()
    };
    let why = wrong(
        job,
        format_args!(
            "{NO_PROGRAM} `{name}`{within}; check the name, or give its path, as in {example}"
        ),
    );
    no_program(127, *is_only, why.to_string())
}

/// Why a file that is there is no program.
fn unfit(word: &OsStr, cwd: Option<&Path>) -> Option<String> {
    let path = cwd.unwrap_or(Path::new("")).join(word);
    match path.metadata() {
        Ok(there) if there.is_file() => {
            let name = told(word);
            Some(format!(
                "is not executable (`-f {name}` runs its lines; chmod +x makes it a program)"
            ))
        }
        Ok(_) => Some("is a folder or a device, no program".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(format!("can't be executed: {error}")),
    }
}

/// Refuses standard input that can't be read, and a named pipe: opening it waits for its writer. The job may wait for that, the
/// run must not.
fn check_stdin(job: &Job, file: &Path) -> Result<()> {
    let name = told(file);
    let opened = match file.metadata() {
        Ok(meta) if meta.file_type().is_fifo() => {
            return Err(wrong(
                job,
                format_args!("stdin {name} is a named pipe; let a shell read it"),
            ));
        }
        Ok(_) => std::fs::File::open(file).map(drop),
        Err(error) => Err(error),
    };
    opened.map_err(|error| wrong(job, format_args!("stdin {name}: {error}")))
}
