//! The jobs of a run: from a mix file, a list of commands, or the command line.

pub(crate) mod list;
pub(crate) mod mix;
pub(crate) mod near;
pub(crate) mod spec;
pub(crate) mod template;

use crate::exit::usage;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The place of a job that is given on the command line.
pub(crate) const COMMAND_LINE: &str = "the command line";

/// The command of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A program with its arguments, started without a shell.
    Argv(Vec<String>),
    /// A line for `/bin/sh -c`.
    Shell(String),
}

impl Command {
    /// The command as one line that a shell would read in the same way.
    pub(crate) fn line(&self) -> String {
        match self {
            Command::Argv(words) => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
            Command::Shell(line) => line.clone(),
        }
    }

    /// The name of its program, without folders: the job's name if it was not given one.
    fn program_name(&self) -> String {
        let first = match self {
            Command::Argv(words) => words.first().map_or("job", String::as_str),
            Command::Shell(line) => {
                let mut words = line.split_whitespace().filter(|word| !word.contains('='));
                words.next().unwrap_or("job")
            }
        };
        name_in_file(first)
    }
}

/// The last part of a path, without the characters that a job's name can't have.
fn name_in_file(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let clean: String = name.chars().filter(|&c| c.is_ascii_alphanumeric() || "._+-".contains(c)).collect();
    if clean.trim_matches('.').is_empty() { "job".to_owned() } else { clean }
}

/// Quotes a word for the shell if it needs it.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// One job as it was given, before its copies are made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobInput {
    /// The name that the user gave it.
    pub(crate) name: Option<String>,
    /// The command to run on this machine; `None` if it can only be simulated.
    pub(crate) command: Option<Command>,
    /// The program profile that it simulates: a built-in name or a path.
    pub(crate) program: Option<String>,
    /// Number of copies, at least 1.
    pub(crate) copies: u32,
    /// Variables added to the environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its working directory.
    pub(crate) cwd: Option<PathBuf>,
    /// The file that it reads as standard input; `None` is `/dev/null`.
    pub(crate) stdin: Option<PathBuf>,
    /// When it arrives, in seconds from the start of the run.
    pub(crate) start_s: f64,
    /// Hardware threads that it needs at once.
    pub(crate) cpus: u32,
    /// Its work in a simulation, in instructions; `None` is the default work.
    pub(crate) work_instructions: Option<u64>,
    /// Where it was given, such as file and line; for messages.
    pub(crate) place: String,
}

impl JobInput {
    /// A job that is only a command.
    pub(crate) fn command(command: Command, place: String) -> JobInput {
        JobInput {
            name: None,
            command: Some(command),
            program: None,
            copies: 1,
            env: BTreeMap::new(),
            cwd: None,
            stdin: None,
            start_s: 0.0,
            cpus: 1,
            work_instructions: None,
            place,
        }
    }
}

/// One job of the run: one of the copies, with a name of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    /// Its unique name, which can be part of a file's name.
    pub(crate) name: String,
    /// The job as it was given.
    pub(crate) input: JobInput,
}

/// Makes the copies and the names.
///
/// A job with several copies is called `NAME-1`, `NAME-2` and so on; so are jobs without a name of their own that run
/// the same program.
pub(crate) fn expand(inputs: Vec<JobInput>) -> anyhow::Result<Vec<Job>> {
    let mut named: HashMap<&str, &str> = HashMap::new();
    for input in &inputs {
        let Some(name) = &input.name else { continue };
        if let Some(first) = named.insert(name, &input.place) {
            return Err(usage(format!(
                "{}: the name `{name}` is taken by another job ({first}); names must be unique, for several of one \
                 job write copies = 2",
                input.place
            )));
        }
    }
    let mut unnamed: HashMap<String, u32> = HashMap::new();
    for input in inputs.iter().filter(|input| input.name.is_none()) {
        *unnamed.entry(default_name(input)).or_default() += input.copies;
    }
    let mut jobs = Vec::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for input in inputs {
        let base = input.name.clone().unwrap_or_else(|| default_name(&input));
        let several = match &input.name {
            Some(_) => input.copies > 1,
            None => unnamed.get(&base).is_some_and(|&n| n > 1) || taken.contains(&base),
        };
        for _ in 0..input.copies {
            let name = if several {
                let number = numbers.entry(base.clone()).or_default();
                loop {
                    *number += 1;
                    let name = format!("{base}-{number}");
                    // The user may have given this name to another job.
                    if !taken.contains(&name) && (input.name.is_some() || !jobs_named(&name, &jobs)) {
                        break name;
                    }
                }
            } else {
                base.clone()
            };
            if !taken.insert(name.clone()) {
                return Err(usage(format!("{}: the name `{name}` is taken by a copy of another job", input.place)));
            }
            jobs.push(Job { name, input: input.clone() });
        }
    }
    if jobs.is_empty() {
        return Err(usage(
            "there is no job to run; give a mix file, `-f FILE`, or a command, as in `cosched run gzip -k {} ::: *.txt`",
        ));
    }
    Ok(jobs)
}

fn jobs_named(name: &str, jobs: &[Job]) -> bool {
    jobs.iter().any(|job| job.name == name)
}

fn default_name(input: &JobInput) -> String {
    match (&input.command, &input.program) {
        (Some(command), _) => command.program_name(),
        (None, Some(program)) => name_in_file(program.strip_suffix(".toml").unwrap_or(program)),
        (None, None) => "job".to_owned(),
    }
}

/// Whether a job can have this name: it becomes part of a file's name.
pub(crate) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    !name.is_empty() && name.len() <= 100 && name.chars().all(fine) && !name.starts_with(['.', '-'])
}

/// The largest list, mix or record that is read, in MiB: more than a million jobs need.
const MOST_MIB: u64 = 512;

/// The largest machine, program or profile that is read, in MiB: people write them by hand.
const MOST_SPEC_MIB: u64 = 16;

/// Reads a whole file, or standard input for `-`.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    read_at_most(path, MOST_MIB)
}

/// Reads a small file that describes a machine, a program or a profile.
pub(crate) fn read_spec(path: &Path) -> anyhow::Result<String> {
    read_at_most(path, MOST_SPEC_MIB)
}

/// Reads only plain files and pipes, up to `most_mib`: a device or a mistyped path must not fill the memory.
fn read_at_most(path: &Path, most_mib: u64) -> anyhow::Result<String> {
    let fail = |why: &str| usage(format!("{}: can't be read: {why}", path.display()));
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let kind = std::fs::metadata(path).map_err(|error| fail(&error.to_string()))?.file_type();
        if kind.is_dir() {
            return Err(fail("it is a folder"));
        }
        if !kind.is_file() && !kind.is_fifo() {
            return Err(fail("it is neither a plain file nor a pipe"));
        }
        Box::new(std::fs::File::open(path).map_err(|error| fail(&error.to_string()))?)
    };
    let mut text = Vec::new();
    let read = input.take((most_mib << 20) + 1).read_to_end(&mut text);
    read.map_err(|error| fail(&error.to_string()))?;
    if text.len() as u64 > most_mib << 20 {
        return Err(fail(&format!("it is larger than {most_mib} MiB")));
    }
    String::from_utf8(text).map_err(|_| fail("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inputs: Vec<(&str, Option<&str>, u32)>) -> Vec<String> {
        let input = |(line, name, copies): (&str, Option<&str>, u32)| JobInput {
            name: name.map(str::to_owned),
            copies,
            ..JobInput::command(Command::Shell(line.to_owned()), "here".to_owned())
        };
        expand(inputs.into_iter().map(input).collect()).unwrap().into_iter().map(|job| job.name).collect()
    }

    #[test]
    fn copies_and_unnamed_jobs_are_numbered() {
        assert_eq!(names(vec![("x", Some("a"), 1), ("y", Some("b"), 2)]), ["a", "b-1", "b-2"]);
        assert_eq!(
            names(vec![("/bin/gzip a", None, 1), ("gzip b", None, 1), ("xz c", None, 1)]),
            ["gzip-1", "gzip-2", "xz"]
        );
        assert_eq!(
            names(vec![("A=1 ./run.sh", None, 1), ("(:)", None, 1), ("...", None, 1)]),
            ["run.sh", "job-1", "job-2"]
        );
    }

    #[test]
    fn jobs_that_are_only_simulated_are_called_after_their_program() {
        let job = |program: &str| JobInput {
            command: None,
            program: Some(program.to_owned()),
            ..JobInput::command(Command::Shell(String::new()), "mix.toml:3".to_owned())
        };
        let jobs = expand(["mcf", "../own/mcf-2.toml", "/a b.toml", ".toml"].map(job).to_vec()).unwrap();
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["mcf", "mcf-2", "ab", "job"]);
    }

    #[test]
    fn only_plain_files_and_pipes_of_a_sound_size_are_read() {
        let why = |path: &Path| read_spec(path).unwrap_err().to_string();
        assert!(why(Path::new("/dev/zero")).contains("neither a plain file nor a pipe"));
        assert!(why(Path::new("/")).contains("it is a folder"));
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MOST_SPEC_MIB << 20).unwrap();
        assert_eq!(read_spec(file.path()).unwrap().len() as u64, MOST_SPEC_MIB << 20);
        file.as_file().set_len((MOST_SPEC_MIB << 20) + 1).unwrap();
        assert!(why(file.path()).ends_with("it is larger than 16 MiB"), "{}", why(file.path()));
        std::fs::write(file.path(), [0xff]).unwrap();
        assert!(why(file.path()).ends_with("it is not UTF-8 text"));
    }

    #[test]
    fn clashes_are_told() {
        let job = |name: &str, copies| JobInput {
            name: Some(name.to_owned()),
            copies,
            ..JobInput::command(Command::Shell("x".to_owned()), "mix.toml:3".to_owned())
        };
        let error = expand(vec![job("a", 1), job("a", 1)]).unwrap_err().to_string();
        assert!(error.contains("mix.toml:3") && error.contains("`a`"), "{error}");
        let jobs = expand(vec![job("a-1", 1), job("a", 2)]).unwrap();
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a-1", "a-2", "a-3"]);
        assert!(expand(vec![job("a", 2), job("a-1", 1)]).is_err());
        assert!(expand(vec![]).is_err());
    }

    #[test]
    fn lines_are_quoted_for_the_shell() {
        let line = Command::Argv(["a", "b c", "it's", "", "x=1", "*"].map(str::to_owned).to_vec()).line();
        assert_eq!(line, r#"a 'b c' 'it'\''s' '' x=1 '*'"#);
    }
}
