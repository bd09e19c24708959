//! The jobs of a run, read from where the options say: a mix file, a list of commands, or the command line. Jobs may also come
//! while the run goes on.

use super::options::{JobSource, RunOptions, SoloTimes};
use super::resume;
use super::shell::Shells;
use crate::exit::usage;
use crate::input::template::{self, Parsed};
use crate::input::{
    Arriving, Job, JobInput, Reading, absolute, expand, has_input, is_input, job_line, list, mix,
    path_text, read_bytes, read_mix, told,
};
use crate::sha256::sha256;
use anyhow::Result;
use cosched_core::{Absence, Actuation, Restart};
use cosched_report::{Absences, RunInput, SettingFile};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The jobs of a run, as they were read.
pub(crate) struct RunJobs {
    /// The jobs; none if they come while the run goes on.
    pub(crate) jobs: Vec<Job>,
    /// Whether jobs that have ended are started again.
    pub(crate) restart: Restart,
    /// Where they come from.
    pub(crate) input: RunInput,
    /// Standard input held the jobs or their values, or a job reads it.
    pub(crate) reads_input: bool,
    /// Jobs that come while the run goes on. There are no others then.
    pub(crate) open: Option<OpenInput>,
}

/// An input whose jobs come while the run goes on.
pub(crate) struct OpenInput {
    pub(crate) arriving: Arriving,
    pub(crate) defaults: JobDefaults,
}

/// What the options say of all jobs.
pub(crate) struct JobDefaults {
    /// The shells for lines.
    shells: Shells,
    /// Working folder of jobs that have none of their own.
    cwd: Option<PathBuf>,
    /// Niceness of jobs that have none of their own.
    nice: Option<i8>,
}

impl JobDefaults {
    fn new(options: &RunOptions) -> Result<JobDefaults> {
        Ok(JobDefaults {
            shells: Shells::new(options.shell.as_deref())?,
            cwd: options.cwd.as_deref().map(absolute),
            nice: options.nice,
        })
    }

    /// Applies them to a job.
    ///
    /// # Errors
    /// There is no shell for it.
    pub(crate) fn apply(&mut self, input: &mut JobInput) -> Result<()> {
        if let Some(command) = &mut input.command {
            self.shells.choose(command)?;
        }
        if input.cwd.is_none() {
            input.cwd.clone_from(&self.cwd);
        }
        input.nice = input.nice.or(self.nice);
        Ok(())
    }
}

/// Reads the jobs of a run; `None` if there is no value for a command. They may come later where the run can take them then.
pub(crate) fn read_jobs(options: &RunOptions) -> Result<Option<RunJobs>> {
    read(options, may_stream(options))
}

/// The jobs of a run as lines for a queue, in their order. docs/schema/job-line.json describes them.
///
/// # Errors
/// The jobs are wrong, or a queue can't run them as a run would.
pub fn job_lines(options: &RunOptions) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
    let Some(run) = read(options, false)? else {
        return Ok(Vec::new());
    };
    if run.restart != Restart::Never {
        return Err(usage("a queue restarts no jobs; leave out `restart`"));
    }
    run.jobs.iter().map(job_line).collect()
}

/// Whether jobs may come while the run goes on. Otherwise all are read before.
fn may_stream(options: &RunOptions) -> bool {
    !options.is_simulated()
        && !options.dry_run
        && !resume::has_begun(options)
        && options.solo == SoloTimes::Nothing
        && options.machine.actuation() == Actuation::Decisions
}

/// What a source gives, before the options are applied to it.
struct Given {
    inputs: Vec<JobInput>,
    /// Jobs that come while the run goes on. There are no others then.
    arriving: Option<Arriving>,
    restart: Restart,
    /// Standard input holds the jobs or their values.
    reads_input: bool,
    from: RunInput,
}

fn read(options: &RunOptions, streams: bool) -> Result<Option<RunJobs>> {
    let given = match &options.jobs {
        JobSource::Mix(file) => Some(read_mix_file(options, file)?),
        JobSource::List(file) => Some(read_list(options, file, streams)?),
        JobSource::Command(words, reading) => read_command(options, words, reading, streams)?,
    };
    let Some(given) = given else {
        return Ok(None);
    };
    let Given {
        mut inputs,
        arriving,
        restart,
        ..
    } = given;
    let mut defaults = JobDefaults::new(options)?;
    for input in &mut inputs {
        defaults.apply(input)?;
    }
    let reads_input = given.reads_input || inputs.iter().any(JobInput::reads_own_input);
    if !options.is_simulated() && has_input() {
        check_own_input(options, restart, &inputs)?;
    }
    let jobs = match &arriving {
        Some(_) => Vec::new(),
        None => expand(inputs)?,
    };
    Ok(Some(RunJobs {
        jobs,
        restart,
        input: given.from,
        reads_input,
        open: arriving.map(|arriving| OpenInput { arriving, defaults }),
    }))
}

fn read_mix_file(options: &RunOptions, file: &Path) -> Result<Given> {
    let text =
        read_mix(file).map_err(|error| usage(format!("{error}; as in `cosched run jobs.toml`")))?;
    let mix = mix::parse(&text, &told(file))?;
    Ok(Given {
        inputs: mix.jobs,
        arriving: None,
        restart: mix.restart,
        reads_input: is_input(file),
        from: noted_input("mix", Some((file, text.as_bytes())), options.is_simulated()),
    })
}

/// A coordinator reads a list that is longer, in bytes, while the run goes on, so that it needs little memory.
const MOST_AT_ONCE: u64 = 256 << 10;

fn read_list(options: &RunOptions, file: &Path, streams: bool) -> Result<Given> {
    let example = |error| usage(format!("{error}; as in `cosched run -f commands.txt`"));
    let mut given = Given {
        inputs: Vec::new(),
        arriving: None,
        restart: Restart::Never,
        reads_input: is_input(file),
        from: noted_open_input("list", file),
    };
    if streams {
        // A coordinator gives jobs only to nodes that it knows.
        let waits = !options.output.frames;
        let most = match options.nodes {
            Some(_) => MOST_AT_ONCE,
            None => u64::MAX,
        };
        given.arriving = Arriving::commands(file, waits, most).map_err(example)?;
    }
    if given.arriving.is_none() {
        let bytes = read_bytes(file).map_err(example)?;
        given.inputs = list::parse(&bytes, &told(file))?;
        given.from = noted_input("list", Some((file, &bytes)), options.is_simulated());
    }
    Ok(given)
}

fn read_command(
    options: &RunOptions,
    words: &[OsString],
    reading: &Reading,
    streams: bool,
) -> Result<Option<Given>> {
    let mut given = Given {
        inputs: Vec::new(),
        arriving: None,
        restart: Restart::Never,
        reads_input: false,
        from: noted_input("command", None, options.is_simulated()),
    };
    if words.is_empty() {
        return Ok(Some(given));
    }
    match template::parse(words, reading, streams)? {
        Parsed::Listed { jobs, .. } if jobs.is_empty() => return Ok(None),
        Parsed::Listed { jobs, from_input } => {
            given.inputs = jobs;
            given.reads_input = from_input;
        }
        Parsed::Open { lines, jobs } => {
            given.arriving = Some(Arriving::values(lines, jobs));
            given.reads_input = true;
        }
    }
    Ok(Some(given))
}

/// Refuses to let jobs read the run's standard input twice: the second time nothing is left of it.
fn check_own_input(options: &RunOptions, restart: Restart, inputs: &[JobInput]) -> Result<()> {
    let readers = inputs.iter().filter(|input| input.reads_own_input());
    let jobs: u64 = readers.map(|input| u64::from(input.copies)).sum();
    let why = match jobs {
        0 => return Ok(()),
        1 if options.solo == SoloTimes::Measured => "--solo measure runs a job twice",
        1 if options.limits.attempts > 1 => "--retries runs a job again if it fails",
        1 if restart != Restart::Never => "restart runs a job again",
        1 => return Ok(()),
        jobs => &format!("{jobs} jobs would read it"),
    };
    Err(usage(format!(
        "standard input can be read once, and {why}; give the job a file, or add `< /dev/null` if it reads none"
    )))
}

/// Where the jobs of a run come from, as it is noted when they are read. A simulation notes no path.
fn noted_input(kind: &str, file: Option<(&Path, &[u8])>, simulated: bool) -> RunInput {
    const NO_FILE: &str = "the jobs were given on the command line";
    let mut absent = Absences::default();
    let mut path = None;
    let why = match file {
        None => NO_FILE,
        Some(_) if simulated => Absence::Simulated.text(),
        Some((name, _)) if name == Path::new("-") => "standard input",
        Some((name, _)) => {
            path = Some(path_text(&absolute(name)));
            ""
        }
    };
    let hash = file.map(|(_, bytes)| sha256(bytes));
    RunInput {
        kind: kind.to_owned(),
        path: absent.note_option("path", path, why),
        sha256: absent.note_option("sha256", hash, NO_FILE),
        absent,
    }
}

/// Where jobs come from while the run goes on.
fn noted_open_input(kind: &str, file: &Path) -> RunInput {
    let mut from = noted_input(kind, Some((file, b"")), false);
    from.sha256 = None;
    from.absent
        .note_option::<()>("sha256", None, "its jobs came while the run went on");
    from
}

/// A file that a run used, by its name as it was given and its content.
pub(crate) fn noted_file(kind: &str, name: &Path, content: &[u8]) -> SettingFile {
    SettingFile {
        kind: kind.to_owned(),
        name: path_text(name),
        sha256: sha256(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let input = |path: &str| noted_input("list", Some((Path::new(path), b"abc")), false);
        let from_file = input("/a/b");
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (from_file.path.as_deref(), from_file.sha256.as_deref()),
            (Some("/a/b"), Some(hash))
        );
        assert_eq!(input("-").absent.why("path"), Some("standard input"));
        assert_eq!(
            noted_input("mix", Some((Path::new("/a"), b"")), true).path,
            None,
            "no path in a simulation"
        );
    }
}
