//! The names of jobs: unique, fit for file names, and telling.

use super::command::Command;
use super::job::{Job, JobInput};
use super::values::MOST_JOBS;
use crate::exit::usage;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;

/// The longest name that is made here, in characters; users can give longer ones.
const LONGEST: usize = 48;

/// Makes the copies and the names.
///
/// A job that was not named is called after its values, or after its program; if several jobs run the same program, after
/// the first words of its command. Jobs that would have the same name, and copies, are called `NAME-1`, `NAME-2` and so
/// on.
///
/// # Errors
/// There is no job, or two jobs were given the same name.
pub(crate) fn expand(inputs: Vec<JobInput>) -> Result<Vec<Job>> {
    Namer::default().expand(inputs)
}

/// Names that are taken, and how far the numbers have come.
#[derive(Default)]
struct Namer {
    taken: HashSet<String>,
    numbers: HashMap<String, u32>,
    /// Names that were tried, to see that the work grows with the number of jobs and no faster.
    tried: usize,
}

impl Namer {
    fn expand(&mut self, inputs: Vec<JobInput>) -> Result<Vec<Job>> {
        check_names(&inputs)?;
        let total: u64 = inputs.iter().map(|input| u64::from(input.copies)).sum();
        if total > MOST_JOBS as u64 {
            return Err(usage(format!(
                "there are {total} jobs with their copies; cosched runs at most {MOST_JOBS} at once"
            )));
        }
        if inputs.is_empty() {
            return Err(usage(
                "there is no job to run; give a mix file, a list (-f FILE) or a command, as in `cosched run gzip a.txt`",
            ));
        }
        let bases = bases(&inputs);
        let mut unnamed: HashMap<&str, u32> = HashMap::new();
        for (input, base) in inputs.iter().zip(&bases) {
            if input.name.is_none() {
                *unnamed.entry(base).or_default() += input.copies;
            }
        }
        let mut is_unique = Vec::new();
        for base in &bases {
            is_unique.push(unnamed.get(base.as_str()) == Some(&1));
        }
        // Names that were given are not numbered, so the others make way for them.
        for input in inputs.iter().filter(|input| input.copies == 1) {
            self.taken.extend(input.name.clone());
        }
        let mut jobs = Vec::with_capacity(total as usize);
        for ((input, base), is_unique) in inputs.into_iter().zip(bases).zip(is_unique) {
            for _ in 1..input.copies {
                let name = self.number(&base);
                let input = input.clone();
                jobs.push(Job { name, input });
            }
            let name = match &input.name {
                Some(name) if input.copies == 1 => name.clone(),
                None if is_unique && self.taken.insert(base.clone()) => base,
                _ => self.number(&base),
            };
            jobs.push(Job { name, input });
        }
        Ok(jobs)
    }

    /// The next name of this form that is free.
    fn number(&mut self, base: &str) -> String {
        let number = match self.numbers.get_mut(base) {
            Some(number) => number,
            None => self.numbers.entry(base.to_owned()).or_default(),
        };
        loop {
            *number += 1;
            self.tried += 1;
            let name = format!("{base}-{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Checks that no two jobs were given the same name.
fn check_names(inputs: &[JobInput]) -> Result<()> {
    let mut named: HashMap<&str, &str> = HashMap::new();
    for input in inputs {
        let Some(name) = &input.name else { continue };
        if let Some(first) = named.insert(name, &input.place) {
            let place = &input.place;
            return Err(usage(format!(
                "{place}: another job has the name `{name}` ({first}); for several of one job write copies = 2"
            )));
        }
    }
    Ok(())
}

/// For each job the name that it was given, or one that is made of what it does.
fn bases(inputs: &[JobInput]) -> Vec<String> {
    let mut bases = Vec::new();
    let mut users: HashMap<String, u32> = HashMap::new();
    for input in inputs {
        let base = input.name.clone().unwrap_or_else(|| short_name(input));
        *users.entry(base.clone()).or_default() += 1;
        bases.push(base);
    }
    for (input, base) in inputs.iter().zip(&mut bases) {
        let can_be_longer = input.name.is_none() && input.values.is_empty();
        if can_be_longer
            && users[base] > 1
            && let Some(command) = &input.command
            && let Some(longer) = clean(&words_of(command).join("-"), false)
        {
            *base = longer;
        }
    }
    bases
}

/// The name of a job from its values, or from the program that it runs or simulates.
fn short_name(input: &JobInput) -> String {
    let values = lossy(&input.values.join(OsStr::new("-")));
    clean(&values, true)
        .or_else(|| program_name(input))
        .unwrap_or_else(|| "job".to_owned())
}

fn program_name(input: &JobInput) -> Option<String> {
    if let Some(command) = &input.command {
        let words = words_of(command);
        return clean(last_part(words.first()?), false);
    }
    let program = input.program.as_deref()?;
    let program = program.strip_suffix(".toml").unwrap_or(program);
    clean(last_part(program), false)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Words of the shell that say nothing about what a line does.
const GRAMMAR: &str = "! { } do done elif else fi if then time until while exec ; | & ( ) < >";

/// As [`program_words`], with the program's name alone.
fn words_of(command: &Command) -> Vec<String> {
    let mut words = program_words(command);
    if let Some(first) = words.first_mut() {
        *first = last_part(first).to_owned();
    }
    words
}

/// The first words of a command that tell what it does, its program first: without variables that are set for it, without
/// the shell's grammar, and without the shell itself.
pub(crate) fn program_words(command: &Command) -> Vec<String> {
    const MOST: usize = 8;
    let line = match command {
        Command::Argv(words) => match &words[..] {
            [shell, option, line, ..] if is_shell(shell) && option == "-c" => lossy(line),
            words => return words.iter().take(MOST).map(|word| lossy(word)).collect(),
        },
        // Values that give no name leave a script that begins with setting its variables.
        Command::Shell(line) => lossy(&line.script),
    };
    let mut words = Vec::new();
    // `for x in ...` and `cd x &&` come before what the line does.
    let mut until: Option<&str> = None;
    for word in divided(&line).split_whitespace() {
        if let Some(end) = until {
            let is_end = match end {
                "" => word == ";" || word == "&",
                end => word == end,
            };
            if is_end {
                until = None;
            }
            continue;
        }
        match word {
            _ if GRAMMAR.split(' ').any(|known| known == word) => {}
            _ if !words.is_empty() => words.push(word.to_owned()),
            "for" => until = Some("do"),
            "case" => until = Some("in"),
            "cd" | "export" | "set" | "ulimit" | "umask" => until = Some(""),
            _ if word.contains('=') => {}
            _ => words.push(word.to_owned()),
        }
        if words.len() == MOST {
            break;
        }
    }
    if words.is_empty() {
        // Nothing but such words: better than no name at all.
        words.extend(line.split_whitespace().take(2).map(str::to_owned));
    }
    words
}

/// The beginning of a line, with blanks around the signs of the shell.
fn divided(line: &str) -> String {
    const MOST_READ: usize = 2_000;
    let mut divided = String::new();
    for c in line.chars().take(MOST_READ) {
        if ";|&()<>".contains(c) {
            divided.extend([' ', c, ' ']);
        } else {
            divided.push(c);
        }
    }
    divided
}

fn lossy(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn is_shell(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    matches!(last_part(&word), "sh" | "bash" | "dash" | "ksh" | "zsh")
}

/// The text as a name: other characters become dashes, and of a long text the beginning is left, or the end. `None` if
/// nothing is left of it.
fn clean(text: &str, keep_end: bool) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || "._+-".contains(c) {
            name.push(c);
        } else if !name.ends_with('-') && !"'\"".contains(c) {
            name.push('-');
        }
    }
    if keep_end {
        let length = name.chars().count();
        let surplus = length.saturating_sub(LONGEST);
        name = name.chars().skip(surplus).collect();
    }
    let name: String = name.chars().take(LONGEST).collect();
    let name = name.trim_start_matches(['.', '-']).trim_end_matches(['-']);
    let has_substance = name.contains(char::is_alphanumeric);
    has_substance.then(|| name.to_owned())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+-".contains(c)
}

/// Whether a user can give this name to a job: it becomes part of a file's name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && name.chars().all(is_name_char)
        && !name.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn input(command: &str, name: Option<&str>, copies: u32) -> JobInput {
        JobInput {
            name: name.map(str::to_owned),
            copies,
            ..JobInput::command(Command::shell(command), "mix.toml:3".to_owned())
        }
    }

    fn names(inputs: Vec<JobInput>) -> Vec<String> {
        expand(inputs)
            .unwrap()
            .into_iter()
            .map(|job| job.name)
            .collect()
    }

    fn of_lines(lines: &[&str]) -> Vec<String> {
        names(lines.iter().map(|line| input(line, None, 1)).collect())
    }

    fn of_values(values: &[&[&str]]) -> Vec<String> {
        let job = |values: &&[&str]| JobInput {
            values: values.iter().map(OsString::from).collect(),
            ..input("gzip x", None, 1)
        };
        names(values.iter().map(job).collect())
    }

    #[test]
    fn copies_are_numbered() {
        assert_eq!(
            names(vec![input("x", Some("a"), 1), input("y", Some("b"), 2)]),
            ["a", "b-1", "b-2"]
        );
        assert_eq!(
            names(vec![input("gzip a", None, 2), input("xz", None, 1)]),
            ["gzip-1", "gzip-2", "xz"]
        );
    }

    #[test]
    fn jobs_are_called_after_their_program_or_their_first_words() {
        assert_eq!(
            of_lines(&["/bin/gzip a", "gzip b", "xz c"]),
            ["gzip-a", "gzip-b", "xz"]
        );
        assert_eq!(
            of_lines(&["A=1 ./run.sh", "(:)", "..."]),
            ["run.sh", "job-1", "job-2"]
        );
        assert_eq!(
            of_lines(&[
                "for i in 1 2; do sort $i; done",
                "while read x; do wc; done"
            ]),
            ["sort", "read"]
        );
        assert_eq!(
            of_lines(&[
                "cd sub && make check",
                "time make",
                "if test -e x; then ls; fi"
            ]),
            ["make-check", "make", "test"]
        );
        assert_eq!(of_lines(&["echo a", "echo a"]), ["echo-a-1", "echo-a-2"]);
        let shell = Command::Argv(["/bin/sh", "-c", "wc -l < x"].map(OsString::from).to_vec());
        assert_eq!(names(vec![JobInput::command(shell, String::new())]), ["wc"]);
        let long = format!("echo {}", "long/".repeat(50));
        let found = of_lines(&[&long, "echo"]);
        assert!(
            found[0].len() <= LONGEST && found[0].starts_with("echo-long-long"),
            "{found:?}"
        );
    }

    #[test]
    fn jobs_with_values_are_called_after_them() {
        assert_eq!(of_values(&[&["a.txt"], &["d/b.txt"]]), ["a.txt", "d-b.txt"]);
        assert_eq!(
            of_values(&[&["a", "1"], &["a", "2"], &["a", "2"]]),
            ["a-1", "a-2-1", "a-2-2"]
        );
        assert_eq!(
            of_values(&[&["$(touch x)"], &["-n"], &["../x"], &[""], &["ü"]]),
            ["touch-x", "n", "x", "gzip", "ü"]
        );
        let long = format!("{}/the-file.txt", "folder/".repeat(30));
        let found = of_values(&[&[&long]]);
        assert!(
            found[0].len() <= LONGEST && found[0].ends_with("folder-the-file.txt"),
            "{found:?}"
        );
        assert!(found.iter().all(|name| is_name(name)));
    }

    #[test]
    fn jobs_that_are_only_simulated_are_called_after_their_program() {
        let job = |program: &str| JobInput {
            command: None,
            program: Some(program.to_owned()),
            ..JobInput::command(Command::shell(""), "mix.toml:3".to_owned())
        };
        let jobs = expand(
            ["mcf", "../own/mcf-2.toml", "/a b.toml", ".toml"]
                .map(job)
                .to_vec(),
        )
        .unwrap();
        assert_eq!(
            jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
            ["mcf", "mcf-2", "a-b", "job"]
        );
    }

    #[test]
    fn clashes_are_told_or_avoided() {
        let error = expand(vec![input("x", Some("a"), 1), input("x", Some("a"), 1)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mix.toml:3") && error.contains("`a`"),
            "{error}"
        );
        assert_eq!(
            names(vec![input("x", Some("a-1"), 1), input("x", Some("a"), 2)]),
            ["a-1", "a-2", "a-3"]
        );
        assert_eq!(
            names(vec![input("x", Some("a"), 2), input("x", Some("a-1"), 1)]),
            ["a-2", "a-3", "a-1"]
        );
        assert_eq!(
            names(vec![input("x", None, 1), input("y", Some("x"), 1)]),
            ["x-1", "x"]
        );
        assert!(expand(vec![]).is_err());
        let many = (0..50_000).map(|_| input("x", None, 100_000)).collect();
        assert!(
            expand(many)
                .unwrap_err()
                .to_string()
                .contains("5000000000 jobs")
        );
    }

    /// Each job costs at most one name that is taken and one that is free, however many there are and however they
    /// clash.
    #[test]
    fn the_work_grows_with_the_number_of_jobs() {
        let mut inputs: Vec<JobInput> = (0..200_000)
            .map(|n| input("x", Some(&format!("x-{n}")), 1))
            .collect();
        inputs.push(input("x", Some("x"), 100_000));
        inputs.extend((0..50_000).map(|_| input("x", None, 1)));
        let mut namer = Namer::default();
        let jobs = namer.expand(inputs).unwrap();
        assert_eq!(jobs.len(), 350_000);
        assert!(namer.tried <= 2 * jobs.len(), "{} names tried", namer.tried);
        assert_eq!(
            jobs.iter()
                .map(|job| &job.name)
                .collect::<HashSet<_>>()
                .len(),
            jobs.len()
        );
    }
}
