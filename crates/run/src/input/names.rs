//! The names of jobs: unique, fit for file names, and without their arguments.

use super::command::Command;
use super::job::{Job, JobInput};
use super::values::MOST_JOBS;
use crate::exit::usage;
use anyhow::Result;
use std::collections::HashMap;
use std::ffi::OsStr;

/// The longest name that is made here, in characters; users can give longer ones.
const LONGEST: usize = 48;

/// Makes the copies and the names.
///
/// A job that was not named is called after its program. Where several jobs would have the same name, each gets its
/// number in the batch: `gzip#3`. Nobody can give a name with `#`, so no two are equal.
///
/// # Errors
/// There is no job, or two jobs were given the same name.
pub(crate) fn expand(inputs: Vec<JobInput>) -> Result<Vec<Job>> {
    check_names(&inputs)?;
    let total: u64 = inputs.iter().map(|input| u64::from(input.copies)).sum();
    if total > MOST_JOBS as u64 {
        return Err(usage(format!(
            "there are {total} jobs with their copies; cosched runs at most {MOST_JOBS} at once"
        )));
    }
    if inputs.is_empty() {
        return Err(usage(
            "there is no job to run; give a mix file, a list (-f FILE, or -f - for standard input) or a command, as in `cosched run gzip a.txt`",
        ));
    }
    let bases: Vec<String> = inputs.iter().map(base).collect();
    let mut sharers: HashMap<&str, u32> = HashMap::new();
    for (input, base) in inputs.iter().zip(&bases) {
        *sharers.entry(base).or_default() += input.copies;
    }
    let mut jobs = Vec::with_capacity(total as usize);
    for (input, base) in inputs.into_iter().zip(&bases) {
        let is_given = input.name.is_some() && input.copies == 1;
        let is_numbered = sharers[&base[..]] > 1 && !is_given;
        let copies = input.copies as usize;
        for input in std::iter::repeat_n(input, copies) {
            let number = jobs.len() + 1;
            let name = if is_numbered {
                format!("{base}#{number}")
            } else {
                base.clone()
            };
            jobs.push(Job { name, input });
        }
    }
    Ok(jobs)
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

/// The name that a job was given, or that of the program that it runs or simulates.
pub(crate) fn base(input: &JobInput) -> String {
    let given = input.name.clone();
    given
        .or_else(|| program_name(input))
        .unwrap_or_else(|| "job".to_owned())
}

pub(crate) fn program_name(input: &JobInput) -> Option<String> {
    if let Some(command) = &input.command {
        let words = program_words(command);
        return clean(last_part(
            script(&words).or(words.first().map(String::as_str))?,
        ));
    }
    let program = input.program.as_deref()?;
    clean(last_part(program.strip_suffix(".toml").unwrap_or(program)))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Programs that run a script, with the letters of the options whose argument is code.
const INTERPRETERS: [(&str, &str); 5] = [
    ("sh bash dash ksh zsh python", "c"),
    ("perl ruby lua julia Rscript", "eE"),
    ("node", "ep"),
    ("php", "r"),
    ("java", ""),
];

/// Their long options whose argument is code, or names no file.
const CODE: [&str; 3] = ["eval", "print", "run"];

/// The script that an interpreter runs, by the first words of its command.
pub(crate) fn script(words: &[String]) -> Option<&str> {
    let name = last_part(words.first()?);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let mut known = INTERPRETERS.iter();
    let (_, code) = known.find(|(names, _)| names.split(' ').any(|known| known == name))?;
    for word in &words[1..] {
        let Some(option) = word.strip_prefix('-') else {
            return Some(word);
        };
        let is_code = match option.strip_prefix('-') {
            Some(long) => CODE.contains(&long.split('=').next().unwrap_or(long)),
            None => option.contains(|letter| code.contains(letter)),
        };
        if is_code {
            return None;
        }
    }
    None
}

/// Words of the shell that say nothing about what a line does.
const GRAMMAR: &str = "! { } do done elif else fi if then time until while exec ; | & ( ) < >";

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

/// The text as a name: other characters become dashes, and of a long text the beginning is left. `None` if nothing is
/// left of it.
fn clean(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || "._+-".contains(c) {
            name.push(c);
        } else if !name.ends_with('-') && !"'\"".contains(c) {
            name.push('-');
        }
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
        let jobs = expand(inputs).unwrap();
        jobs.into_iter().map(|job| job.name).collect()
    }

    fn of_lines(lines: &[&str]) -> Vec<String> {
        names(lines.iter().map(|line| input(line, None, 1)).collect())
    }

    #[test]
    fn who_shares_a_name_gets_the_number_in_the_batch() {
        assert_eq!(
            names(vec![input("x", Some("a"), 1), input("y", Some("b"), 2)]),
            ["a", "b#2", "b#3"]
        );
        assert_eq!(
            names(vec![input("gzip a", None, 2), input("xz", None, 1)]),
            ["gzip#1", "gzip#2", "xz"]
        );
        assert_eq!(
            names(vec![input("x", None, 1), input("y", Some("x"), 1)]),
            ["x#1", "x"]
        );
    }

    #[test]
    fn jobs_are_called_after_their_program() {
        assert_eq!(
            of_lines(&["/bin/gzip a", "gzip b", "xz c"]),
            ["gzip#1", "gzip#2", "xz"]
        );
        assert_eq!(
            of_lines(&["A=1 ./run.sh", "(:)", "...", "./a#1"]),
            ["run.sh", "job#2", "job#3", "a-1"]
        );
        assert_eq!(
            of_lines(&[
                "for i in 1 2; do sort $i; done",
                "while read x; do wc; done",
                "cd sub && make check",
                "time gcc",
                "if test -e x; then ls; fi"
            ]),
            ["sort", "read", "make", "gcc", "test"]
        );
        let shell = Command::Argv(["/bin/sh", "-c", "wc -l < x"].map(OsString::from).to_vec());
        assert_eq!(names(vec![JobInput::command(shell, String::new())]), ["wc"]);
        let long = of_lines(&["x".repeat(100).as_str()]);
        assert_eq!(long, ["x".repeat(LONGEST)]);
    }

    #[test]
    fn a_script_is_called_after_itself_and_code_after_its_interpreter() {
        assert_eq!(
            of_lines(&[
                "python3.12 -u d/spin.py 5",
                "bash -e run.sh x",
                "Rscript fit.R",
                "python3 -c 'secret()'",
                "perl -ne 'print' secret",
                "perl -p tidy.pl secret",
                "node -p 1",
                "julia --eval=1 secret",
                "php --run 'secret()'"
            ]),
            [
                "spin.py", "run.sh", "fit.R", "python3", "perl", "tidy.pl", "node", "julia", "php"
            ]
        );
    }

    #[test]
    fn jobs_that_are_only_simulated_are_called_after_their_program() {
        let job = |program: &str| JobInput {
            command: None,
            program: Some(program.to_owned()),
            ..JobInput::command(Command::shell(""), "mix.toml:3".to_owned())
        };
        let programs = ["mcf", "../own/mcf-2.toml", "/a b.toml", ".toml"];
        assert_eq!(
            names(programs.map(job).to_vec()),
            ["mcf", "mcf-2", "a-b", "job"]
        );
    }

    #[test]
    fn clashes_are_told() {
        let error = expand(vec![input("x", Some("a"), 1), input("x", Some("a"), 1)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mix.toml:3") && error.contains("`a`"),
            "{error}"
        );
        assert!(!is_name("a#1"));
        assert!(expand(vec![]).is_err());
        let many = (0..50_000).map(|_| input("x", None, 100_000)).collect();
        let error = expand(many).unwrap_err().to_string();
        assert!(error.contains("5000000000 jobs"), "{error}");
    }
}
