//! The mix file: jobs in TOML, the same for this machine and for a simulated one. Documented in docs/mix-file.md.

use super::command::Command;
use super::job::JobInput;
use super::mix_bounds::too_much;
use super::names::is_name;
use crate::exit::usage;
use cosched_core::Restart;
use cosched_report::visible;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;

/// The version of the format.
pub(crate) const SCHEMA: &str = "cosched.mix/1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Option<Spanned<String>>,
    #[serde(default)]
    restart: Restart,
    #[serde(default)]
    job: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<Spanned<String>>,
    command: Option<Spanned<Words>>,
    program: Option<String>,
    copies: Option<Spanned<Whole>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    stdin: Option<PathBuf>,
    start_s: Option<Spanned<Amount>>,
    cpus: Option<Spanned<Whole>>,
    work_instructions: Option<Spanned<Amount>>,
    bus_use: Option<Spanned<Amount>>,
}

/// A whole number of any size, so that one that is too large is told as such.
#[derive(Clone, Copy)]
struct Whole(i128);

/// A whole number or one such as 2e9, which is easier to read.
#[derive(Clone, Copy)]
enum Amount {
    Whole(Whole),
    Float(f64),
}

/// Reads a number; the text says what was expected.
struct Number(&'static str);

impl Visitor<'_> for Number {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Amount, E> {
        Ok(Amount::Whole(Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Amount, E> {
        Ok(Amount::Whole(Whole(value.into())))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Amount, E> {
        Ok(Amount::Whole(Whole(value)))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Amount, E> {
        Ok(Amount::Whole(Whole(value.try_into().unwrap_or(i128::MAX))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Amount, E> {
        Ok(Amount::Float(value))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole, D::Error> {
        let expected = "a whole number";
        match deserializer.deserialize_any(Number(expected))? {
            Amount::Whole(whole) => Ok(whole),
            Amount::Float(value) => {
                Err(D::Error::invalid_type(Unexpected::Float(value), &expected))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        deserializer.deserialize_any(Number("a number, as in 2e9"))
    }
}

impl Amount {
    fn as_f64(&self) -> f64 {
        match *self {
            Amount::Whole(Whole(value)) => value as f64,
            Amount::Float(value) => value,
        }
    }
}

/// The most instructions of a job: ten years of a core that executes 3e9 a second.
const MOST_INSTRUCTIONS: u64 = 1_000_000_000_000_000_000;

/// The latest arrival, in seconds: some thirty years.
const LATEST_S: f64 = 1e9;

/// A number in a form that is easy to read: 1e15 instead of fifteen zeros.
fn short(number: f64) -> String {
    if number.abs() >= 1e6 {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a list of words, as in [\"gzip\", \"-k\", \"a.txt\"], or a line for the shell"
)]
enum Words {
    Line(String),
    Argv(Vec<String>),
}

const EXAMPLE: &str = "a job looks like this:

    [[job]]
    name = \"compress\"
    command = [\"gzip\", \"-k\", \"a.txt\"]
    copies = 2";

/// The lines of a text, to find the number of a line without reading the text again for each job.
struct Lines {
    /// Where each line ends.
    ends: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        Lines {
            ends: text.match_indices('\n').map(|(at, _)| at).collect(),
        }
    }

    /// The number, from 1, of the line with the byte `at`.
    fn number(&self, at: usize) -> usize {
        self.ends.partition_point(|&end| end < at) + 1
    }
}

/// A mix file, for the places in messages.
struct Source<'a> {
    file: &'a str,
    lines: Lines,
}

/// The content of a mix file.
#[derive(Debug)]
pub struct Mix {
    pub(crate) jobs: Vec<JobInput>,
    /// Whether jobs that have ended are started again.
    pub(crate) restart: Restart,
}

impl Mix {
    /// The programs that its jobs simulate, by built-in name or path.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().filter_map(|job| job.program.as_deref())
    }
}

/// Reads a mix file's text.
///
/// # Errors
/// What is wrong, with file, line and key, and what to write instead.
pub fn parse(text: &str, file: &str) -> anyhow::Result<Mix> {
    if let Some((line, problem)) = too_much(text) {
        return Err(usage(format!("{file}:{line}: {problem}; {EXAMPLE}")));
    }
    let source = Source {
        file,
        lines: Lines::of(text),
    };
    let parsed: File = toml::from_str(text).map_err(|error| {
        let place = error
            .span()
            .map_or_else(|| file.to_owned(), |span| source.at(span));
        usage(format!(
            "{place}: {}; {EXAMPLE}",
            error.message().trim().replace('\n', "; ")
        ))
    })?;
    if let Some(schema) = &parsed.schema
        && schema.as_ref() != SCHEMA
    {
        let found = schema.as_ref();
        return Err(usage(format!(
            "{}: schema is `{found}`; this version reads `{SCHEMA}`",
            source.at(schema.span())
        )));
    }
    if parsed.job.is_empty() {
        return Err(usage(format!("{file}: there is no [[job]]; {EXAMPLE}")));
    }
    let restart = parsed.restart;
    let jobs = parsed
        .job
        .into_iter()
        .map(|entry| job(entry, &source))
        .collect::<anyhow::Result<_>>()?;
    Ok(Mix { jobs, restart })
}

fn job(entry: Spanned<Entry>, source: &Source) -> anyhow::Result<JobInput> {
    let place = source.at(entry.span());
    let entry = entry.into_inner();
    if let Some(name) = &entry.name
        && !is_name(name.as_ref())
    {
        return Err(usage(format!(
            "{}: name is `{}`; expected letters, digits, `.`, `_`, `+` and `-`, at most 100, as in name = \"sort-1\"",
            source.at(name.span()),
            name.as_ref()
        )));
    }
    if entry.command.is_none() && entry.program.is_none() {
        return Err(usage(format!(
            "{place}: the job has neither a command (to run) nor a program (to simulate); {EXAMPLE}"
        )));
    }
    check_variables(&entry.env, &place)?;
    let bus_use = source.number(
        entry.bus_use,
        "bus_use",
        1.0,
        ("a share of the memory bus", "0.4"),
    )?;
    let start_s = source.number(entry.start_s, "start_s", LATEST_S, ("seconds", "2.5"))?;
    Ok(JobInput {
        name: entry.name.map(Spanned::into_inner),
        command: source.command(entry.command)?,
        values: Vec::new(),
        program: entry.program,
        copies: source.whole(entry.copies, "copies", 100_000)?.unwrap_or(1),
        env: entry.env,
        cwd: entry.cwd,
        stdin: entry.stdin,
        start_s: start_s.unwrap_or(0.0),
        cpus: source.whole(entry.cpus, "cpus", 65_536)?,
        work_instructions: source.instructions(entry.work_instructions)?,
        bus_use_milli: bus_use.map(|share| (share * 1e3).round() as u16),
        place,
        is_only: false,
    })
}

/// Checks the names of variables.
fn check_variables(env: &BTreeMap<String, String>, place: &str) -> anyhow::Result<()> {
    for name in env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(usage(format!(
                "{place}: env: `{}` can't be the name of a variable; as in env = {{ SEED = \"1\" }}",
                visible(name)
            )));
        }
        if name == "COSCHED_JOB" || name == "COSCHED_RUN" {
            return Err(usage(format!(
                "{place}: env: {name} is set by cosched for each job; choose another name"
            )));
        }
    }
    Ok(())
}

impl Source<'_> {
    fn at(&self, span: Range<usize>) -> String {
        format!("{}:{}", self.file, self.lines.number(span.start))
    }

    /// A whole number from 1 to `greatest`.
    fn whole(
        &self,
        value: Option<Spanned<Whole>>,
        key: &str,
        greatest: u32,
    ) -> anyhow::Result<Option<u32>> {
        let Some(value) = value else { return Ok(None) };
        let place = self.at(value.span());
        let Whole(value) = value.into_inner();
        match u32::try_from(value) {
            Ok(value) if (1..=greatest).contains(&value) => Ok(Some(value)),
            _ => Err(usage(format!(
                "{place}: {key} is {value}; expected 1 to {greatest}, as in {key} = 1"
            ))),
        }
    }

    /// A number from 0 to `greatest`; `what` is its meaning and an example.
    fn number(
        &self,
        value: Option<Spanned<Amount>>,
        key: &str,
        greatest: f64,
        what: (&str, &str),
    ) -> anyhow::Result<Option<f64>> {
        let Some(amount) = value else { return Ok(None) };
        let value = amount.as_ref().as_f64();
        if (0.0..=greatest).contains(&value) {
            return Ok(Some(value));
        }
        Err(usage(format!(
            "{}: {key} is {}; expected {} from 0 to {}, as in {key} = {}",
            self.at(amount.span()),
            short(value),
            what.0,
            short(greatest),
            what.1
        )))
    }

    fn instructions(&self, amount: Option<Spanned<Amount>>) -> anyhow::Result<Option<u64>> {
        let Some(amount) = amount else {
            return Ok(None);
        };
        let place = self.at(amount.span());
        // Whole numbers are compared as such: between 1e18 and the next float are more than a hundred of them.
        let (exact, shown) = match amount.into_inner() {
            Amount::Whole(Whole(value)) => (u64::try_from(value).ok(), value.to_string()),
            // A float that is too large becomes the largest number, which is too large as well.
            Amount::Float(value) => (
                (value.fract() == 0.0 && value > 0.0).then_some(value as u64),
                short(value),
            ),
        };
        let exact = exact.filter(|exact| (1..=MOST_INSTRUCTIONS).contains(exact));
        if exact.is_some() {
            return Ok(exact);
        }
        Err(usage(format!(
            "{place}: work_instructions is {shown}; expected a whole number, 1 to {}, as in work_instructions = 2e9",
            short(MOST_INSTRUCTIONS as f64)
        )))
    }

    fn command(&self, words: Option<Spanned<Words>>) -> anyhow::Result<Option<Command>> {
        let Some(words) = words else { return Ok(None) };
        let place = self.at(words.span());
        match words.into_inner() {
            Words::Line(line) if !line.trim().is_empty() => Ok(Some(Command::shell(line))),
            Words::Argv(words) if words.first().is_some_and(|word| !word.is_empty()) => Ok(Some(
                Command::Argv(words.into_iter().map(OsString::from).collect()),
            )),
            _ => Err(usage(format!(
                "{place}: command is empty; expected, as in command = [\"gzip\", \"-k\", \"a.txt\"]"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_job_is_read() {
        let jobs = parse(
            "schema = \"cosched.mix/1\"\n\n[[job]]\nname = \"mcf\"\ncommand = [\"./mcf\", \"inp.in\"]\nprogram = \"mcf\"\ncopies = 4\n\
             env = { A = \"1\" }\ncwd = \"w\"\nstdin = \"in\"\nstart_s = 1.5\ncpus = 2\nwork_instructions = 5\nbus_use = 0.4\n\
             [[job]]\ncommand = \"sort < a\"\n",
            "mix.toml",
        )
        .unwrap()
        .jobs;
        assert_eq!(
            (jobs[0].copies, jobs[0].bus_use_milli, jobs[1].bus_use_milli),
            (4, Some(400), None)
        );
        assert_eq!(jobs[0].start_s, 1.5);
        assert_eq!(jobs[0].place, "mix.toml:3");
        assert_eq!(jobs[1].command, Some(Command::shell("sort < a")));
    }

    #[test]
    fn work_is_a_whole_number_however_it_is_written() {
        let work = |value: &str| {
            let text = format!("[[job]]\nprogram = \"x\"\nwork_instructions = {value}\n");
            parse(&text, "mix.toml").unwrap().jobs[0].work_instructions
        };
        assert_eq!(
            ["2e9", "2_000_000_000", "2.0e9", "1", "1e18"].map(work),
            [2e9, 2e9, 2e9, 1.0, 1e18].map(|n| Some(n as u64))
        );
    }

    #[test]
    fn jobs_are_started_again_only_if_it_says_so() {
        let restart = |line: &str| {
            parse(&format!("{line}\n[[job]]\ncommand = \"x\"\n"), "mix.toml")
                .unwrap()
                .restart
        };
        assert_eq!(restart(""), Restart::Never);
        assert_eq!(restart("restart = \"never\""), Restart::Never);
        assert_eq!(restart("restart = \"until-last\""), Restart::UntilLast);
    }

    #[test]
    fn errors_name_file_line_and_what_is_right() {
        let check = |text: &str, expected: &[&str]| {
            let error = parse(text, "mix.toml").unwrap_err().to_string();
            for part in expected {
                assert!(error.contains(part), "{error}");
            }
        };
        check(
            "[[job]]\nname = \"a\"\ncomand = \"x\"\n",
            &["mix.toml:3", "`comand`", "command"],
        );
        check(
            "[[job]]\ncommand = \"x\"\ncopies = 0\n",
            &["mix.toml:3", "copies is 0", "expected 1"],
        );
        check(
            "[[job]]\ncommand = \"x\"\ncopies = \"two\"\n",
            &["mix.toml:3", "string"],
        );
        check(
            "[[job]]\ncommand = \"x\"\nname = \"a/b\"\n",
            &["mix.toml:3", "`a/b`", "letters"],
        );
        check("[[job]]\nname = \"a\"\n", &["mix.toml:1", "command"]);
        check("[[job]]\ncommand = []\n", &["mix.toml:2", "empty"]);
        check("[[job]]\ncommand = 5\n", &["mix.toml:2", "list of words"]);
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = -1.0\n",
            &["mix.toml:3", "start_s"],
        );
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = 99999999999999999999\n",
            &["mix.toml:3", "start_s is 1e20;"],
        );
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = 1e300\n",
            &["mix.toml:3", "start_s is 1e300;", "0 to 1e9"],
        );
        for (value, told) in [
            ("0", "0"),
            ("-3", "-3"),
            ("0.0", "0"),
            ("inf", "inf"),
            ("-1e9", "-1e9"),
            ("1.5", "1.5"),
            ("2e18", "2e18"),
            ("nan", "NaN"),
            // One more than 1e18 is no float of its own.
            ("1000000000000000001", "1000000000000000001"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            let told = format!("work_instructions is {told}; expected a whole number, 1 to 1e18");
            check(
                &format!("[[job]]\nprogram = \"x\"\nwork_instructions = {value}\n"),
                &["mix.toml:3", &told],
            );
        }
        check(
            "[[job]]\ncommand = \"x\"\ncopies = 1.5\n",
            &["mix.toml:3", "`1.5`, expected a whole number"],
        );
        let nines = "99999999999999999999";
        let told = format!("copies is {nines}; expected 1 to 100000, as in copies = 1");
        check(
            &format!("[[job]]\ncommand = \"x\"\ncopies = {nines}\n"),
            &["mix.toml:3", &told],
        );
        check(
            "[[job]]\nprogram = \"x\"\nwork_instructions = \"1\"\n",
            &["mix.toml:3", "a number, as in 2e9"],
        );
        check(
            "schema = \"cosched.mix/9\"\n[[job]]\ncommand = \"x\"\n",
            &["mix.toml:1", "cosched.mix/1"],
        );
        check("", &["mix.toml", "[[job]]"]);
        check("[[job]]\ncommand = \"x\n", &["mix.toml:2"]);
        check(
            "\nx = [[[[[[[[[[[[",
            &["mix.toml:2", "nested too deeply", "[[job]]"],
        );
        check("jobs = 1\n", &["mix.toml:1", "`jobs`"]);
        check(
            "restart = \"always\"\n[[job]]\ncommand = \"x\"\n",
            &["mix.toml:1", "`always`", "`until-last`"],
        );
    }
}
