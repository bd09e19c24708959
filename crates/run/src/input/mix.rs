//! The mix file: jobs in TOML, the same for this machine and for a simulated one. Documented in docs/mix-file.md.

use super::command::Command;
use super::job::JobInput;
use super::names::is_name;
use crate::exit::usage;
use anyhow::Result;
use cosched_core::Restart;
use cosched_report::visible;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::ops::{Range, RangeInclusive};
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
    copies: Option<Spanned<u32>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    stdin: Option<PathBuf>,
    start_s: Option<Spanned<f64>>,
    cpus: Option<Spanned<u32>>,
    /// A float, because 2e9 is easier to read than its zeros.
    work_instructions: Option<Spanned<f64>>,
    bus_use: Option<Spanned<f64>>,
    given: Option<Spanned<toml::Table>>,
    nice: Option<Spanned<i8>>,
    weight: Option<Spanned<f64>>,
}

/// The most instructions of a job: ten years of a core that executes 3e9 a second.
const MOST_INSTRUCTIONS: f64 = 1e18;

/// The latest arrival, in seconds: some thirty years.
const LATEST_S: f64 = 1e9;

/// The weights that a job may have.
pub const WEIGHTS: RangeInclusive<f64> = 1e-3..=1e3;

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a list of words or a line for the shell"
)]
enum Words {
    Line(String),
    Argv(Vec<String>),
}

const EXAMPLE: &str = include_str!("mix_example.txt");

/// A mix file, for the places in messages.
struct Source<'a> {
    file: &'a str,
    /// Where each line ends: the text is not read again for each job.
    line_ends: Vec<usize>,
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
pub fn parse(text: &str, file: &str) -> Result<Mix> {
    let line_ends = text.match_indices('\n').map(|(at, _)| at);
    let source = Source {
        file,
        line_ends: line_ends.collect(),
    };
    let parsed: File = toml::from_str(text).map_err(|error| source.refuse(&error))?;
    if let Some(schema) = parsed.schema
        && schema.as_ref() != SCHEMA
    {
        let place = source.at(schema.span());
        let found = schema.into_inner();
        return Err(usage(format!(
            "{place}: schema is `{found}`; expected `{SCHEMA}`"
        )));
    }
    if parsed.job.is_empty() {
        return Err(usage(format!("{file}: there is no [[job]]; {EXAMPLE}")));
    }
    let mut jobs = Vec::new();
    for entry in parsed.job {
        jobs.push(job(entry, &source)?);
    }
    Ok(Mix {
        jobs,
        restart: parsed.restart,
    })
}

fn job(entry: Spanned<Entry>, source: &Source) -> Result<JobInput> {
    let place = source.at(entry.span());
    let entry = entry.into_inner();
    check_variables(&entry.env, &place)?;
    let copies = source.number("copies", entry.copies, 1..=100_000)?;
    let start_s = source.number("start_s", entry.start_s, 0.0..=LATEST_S)?;
    let instructions = source.number(
        "work_instructions",
        entry.work_instructions,
        1.0..=MOST_INSTRUCTIONS,
    )?;
    let bus_use = source.number("bus_use", entry.bus_use, 0.0..=1.0)?;
    Ok(JobInput {
        adopt: None,
        inherited: None,
        id: None,
        name: source.name(entry.name)?,
        command: source.command(entry.command)?,
        tag: None,
        values: Vec::new(),
        program: entry.program,
        copies: copies.unwrap_or(1),
        env: entry.env,
        cwd: entry.cwd,
        nice: source.number("nice", entry.nice, -20..=19)?,
        weight: source.number("weight", entry.weight, WEIGHTS)?,
        stdin: entry.stdin,
        start_s: start_s.unwrap_or(0.0),
        cpus: source.number("cpus", entry.cpus, 1..=65_536)?,
        work_instructions: instructions.map(|count| count as u64),
        given_to_world: source.given(entry.given)?,
        mem: None,
        expected_s: None,
        bus_use_milli: bus_use.map(|share| (share * 1e3).round() as u16),
        place,
        is_only: false,
    })
}

/// Checks the names of variables.
pub(super) fn check_variables(env: &BTreeMap<String, String>, place: &str) -> Result<()> {
    for name in env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let name = visible(name);
            return Err(usage(format!(
                "{place}: env: `{name}` can't be the name of a variable"
            )));
        }
        if ["COSCHED_JOB", "COSCHED_RUN", "PARALLEL_JOBSLOT"].contains(&name.as_str()) {
            return Err(usage(format!(
                "{place}: env: {name} is set by cosched; choose another name"
            )));
        }
    }
    Ok(())
}

/// A table in JSON; the error names the key.
fn json_table(
    table: toml::Table,
    key: &str,
) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    let mut object = serde_json::Map::new();
    for (name, value) in table {
        let value = json(value, &format!("{key}.{name}"))?;
        object.insert(name, value);
    }
    Ok(object)
}

fn json(value: toml::Value, key: &str) -> Result<serde_json::Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Float(number) => {
            return Err(format!("{key} is {number}, which JSON can't hold"));
        }
        toml::Value::Datetime(time) => {
            return Err(format!(
                "{key} is a time; write it as a text, as in \"{time}\""
            ));
        }
        toml::Value::Array(values) => {
            let mut list = Vec::new();
            for (at, value) in values.into_iter().enumerate() {
                list.push(json(value, &format!("{key}[{at}]"))?);
            }
            list.into()
        }
        toml::Value::Table(table) => json_table(table, key)?.into(),
    })
}

impl Source<'_> {
    fn at(&self, span: Range<usize>) -> String {
        let line = self.line_ends.partition_point(|&end| end < span.start) + 1;
        format!("{}:{line}", self.file)
    }

    /// The error for a text that is no mix file.
    fn refuse(&self, error: &toml::de::Error) -> anyhow::Error {
        let place = match error.span() {
            Some(span) => self.at(span),
            None => self.file.to_owned(),
        };
        let problem = error.message().trim().replace('\n', "; ");
        usage(format!("{place}: {problem}; {EXAMPLE}"))
    }

    /// A number within a range.
    fn number<T: Copy + Debug + PartialOrd>(
        &self,
        key: &str,
        number: Option<Spanned<T>>,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>> {
        let Some(number) = number else {
            return Ok(None);
        };
        let value = *number.as_ref();
        if range.contains(&value) {
            return Ok(Some(value));
        }
        let place = self.at(number.span());
        let (least, greatest) = range.into_inner();
        Err(usage(format!(
            "{place}: {key} is {value:?}; expected {least:?} to {greatest:?}"
        )))
    }

    fn name(&self, name: Option<Spanned<String>>) -> Result<Option<String>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let place = self.at(name.span());
        let name = name.into_inner();
        if is_name(&name) {
            return Ok(Some(name));
        }
        Err(usage(format!(
            "{place}: name is `{name}`; expected at most 100 letters, digits and ._+-"
        )))
    }

    /// The table for a world, in JSON.
    fn given(
        &self,
        table: Option<Spanned<toml::Table>>,
    ) -> Result<serde_json::Map<String, serde_json::Value>> {
        let Some(table) = table else {
            return Ok(serde_json::Map::new());
        };
        let place = self.at(table.span());
        json_table(table.into_inner(), "given")
            .map_err(|problem| usage(format!("{place}: {problem}")))
    }

    fn command(&self, words: Option<Spanned<Words>>) -> Result<Option<Command>> {
        let Some(words) = words else {
            return Ok(None);
        };
        let place = self.at(words.span());
        match words.into_inner() {
            Words::Line(line) if !line.trim().is_empty() => Ok(Some(Command::shell(line))),
            Words::Argv(words) if words.first().is_some_and(|word| !word.is_empty()) => {
                let words = words.into_iter().map(OsString::from);
                Ok(Some(Command::Argv(words.collect())))
            }
            _ => Err(usage(format!("{place}: command is empty; {EXAMPLE}"))),
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
             nice = 5\nweight = 2.5\n\
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
        assert_eq!((jobs[0].nice, jobs[0].weight()), (Some(5), 2.5));
        assert_eq!(jobs[0].place, "mix.toml:3");
        assert_eq!(jobs[1].command, Some(Command::shell("sort < a")));
    }

    #[test]
    fn what_a_world_is_given_is_kept_as_it_is() {
        let text = "[[job]]\nname = \"a\"\n[job.given]\nwork = 5e9\nphases = [{ cpi = 1, name = \"x\" }]\non = true\n";
        let given = parse(text, "mix.toml")
            .unwrap()
            .jobs
            .remove(0)
            .given_to_world;
        let expected =
            serde_json::json!({"work": 5e9, "phases": [{"cpi": 1, "name": "x"}], "on": true});
        assert_eq!(serde_json::Value::Object(given), expected);
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
        check(
            "[[job]]\ncommand = \"x\"\nweight = 0.0\n",
            &["mix.toml:3", "weight is 0.0", "0.001 to 1000.0"],
        );
        check(
            "[[job]]\ngiven = { at = [{ day = 2026-11-29 }] }\n",
            &["mix.toml:2", "given.at[0].day is a time", "\"2026-11-29\""],
        );
        check(
            "[[job]]\ngiven = { x = nan }\n",
            &["mix.toml:2", "given.x is NaN"],
        );
        check("[[job]]\ngiven = 5\n", &["mix.toml:2", "integer"]);
        check("[[job]]\ncommand = []\n", &["mix.toml:2", "empty"]);
        check("[[job]]\ncommand = 5\n", &["mix.toml:2", "list of words"]);
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = -1.0\n",
            &["mix.toml:3", "start_s"],
        );
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = 99999999999999999999\n",
            &["mix.toml:3", "99999999999999999999"],
        );
        check(
            "[[job]]\ncommand = \"x\"\nstart_s = 1e300\n",
            &["mix.toml:3", "start_s is 1e300;", "0.0 to 1000000000.0"],
        );
        for (value, told) in [
            ("0", "0.0"),
            ("-3", "-3.0"),
            ("0.5", "0.5"),
            ("inf", "inf"),
            ("2e18", "2e18"),
            ("nan", "NaN"),
        ] {
            let told = format!("work_instructions is {told}; expected 1.0 to 1e18");
            check(
                &format!("[[job]]\nprogram = \"x\"\nwork_instructions = {value}\n"),
                &["mix.toml:3", &told],
            );
        }
        check(
            "[[job]]\ncommand = \"x\"\ncopies = 1.5\n",
            &["mix.toml:3", "`1.5`, expected u32"],
        );
        check(
            "[[job]]\ncommand = \"x\"\ncopies = 100001\n",
            &["mix.toml:3", "copies is 100001; expected 1 to 100000"],
        );
        check(
            "[[job]]\nprogram = \"x\"\nwork_instructions = \"1\"\n",
            &["mix.toml:3", "string", "expected f64"],
        );
        check(
            "schema = \"cosched.mix/9\"\n[[job]]\ncommand = \"x\"\n",
            &["mix.toml:1", "cosched.mix/1"],
        );
        check("", &["mix.toml", "[[job]]"]);
        check("[[job]]\ncommand = \"x\n", &["mix.toml:2"]);
        check("\nx = [[[[[[[[[[[[", &["mix.toml:2", "[[job]]"]);
        check("jobs = 1\n", &["mix.toml:1", "`jobs`"]);
        check(
            "restart = \"always\"\n[[job]]\ncommand = \"x\"\n",
            &["mix.toml:1", "`always`", "`until-last`"],
        );
    }
}
