//! A job as a JSON object on a line of a list. docs/schema/job-line.json describes it.

use super::command::Command;
use super::job::{Job, JobInput, wrong};
use super::mix::{WEIGHTS, check_variables};
use super::names::{base, is_name};
use crate::exit::usage;
use anyhow::Result;
use cosched_linux::{Adoption, InheritedAttributes};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A job on a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Option<String>,
    name: Option<String>,
    command: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cpus: Option<u32>,
    /// In bytes.
    mem: Option<u64>,
    weight: Option<f64>,
    expected_s: Option<f64>,
    adopt: Option<Adoption>,
    inherited: Option<InheritedAttributes>,
}

const EXAMPLE: &str = r#"as in {"command": "gzip a.txt", "cpus": 1}"#;

/// The greatest expected time, in seconds: some thirty years.
const LONGEST_S: f64 = 1e9;

/// Whether a line is a JSON object. A line of a shell does not begin like this.
pub(crate) fn is_object(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

/// The job of a line.
///
/// # Errors
/// What is wrong, with the place.
pub(crate) fn job(line: &[u8], place: &str) -> Result<JobInput> {
    let entry: Entry = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let why = text.split(" at line ").next().unwrap_or(&text);
        usage(format!("{place}: {why}; {EXAMPLE}"))
    })?;
    check_variables(&entry.env, place)?;
    if let Some(name) = entry.name.as_ref().filter(|name| !is_name(name)) {
        return Err(usage(format!(
            "{place}: name is `{name}`; expected at most 100 letters, digits and ._+-"
        )));
    }
    check("weight", entry.weight, WEIGHTS, place)?;
    check("expected_s", entry.expected_s, 0.0..=LONGEST_S, place)?;
    check("cpus", entry.cpus.map(f64::from), 1.0..=65_536.0, place)?;
    Ok(JobInput {
        id: entry.id,
        name: entry.name,
        cwd: entry.cwd,
        env: entry.env,
        cpus: entry.cpus,
        mem: entry.mem,
        weight: entry.weight,
        expected_s: entry.expected_s,
        adopt: entry.adopt,
        inherited: entry.inherited,
        ..JobInput::command(command(entry.command, entry.argv, place)?, place.to_owned())
    })
}

/// The line of a job. It has the folder and the variables of this process only if the job names them.
///
/// # Errors
/// A line can't say all of the job.
pub(crate) fn line(job: &Job) -> Result<Map<String, Value>> {
    let input = &job.input;
    let unsaid = [
        ("stdin", input.stdin.is_some()),
        ("nice", input.nice.is_some()),
        ("start_s", input.start_s > 0.0),
    ];
    if let Some((key, _)) = unsaid.iter().find(|(_, is_given)| *is_given) {
        return Err(wrong(
            job,
            format_args!(
                "a queue or a node knows no {key}; leave it out, or put it into the command"
            ),
        ));
    }
    let words = match &input.command {
        Some(Command::Argv(words)) => words.clone(),
        Some(Command::Shell(line)) => {
            let mut words = line.words();
            words[0] = line.program().into();
            words
        }
        None => return Err(wrong(job, "there is no command to queue; add one")),
    };
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let words = words.ok_or_else(|| wrong(job, "the queue takes only UTF-8"))?;
    let cwd = input.absolute_cwd();
    let all = json!({
        "name": base(input),
        "argv": words,
        "cwd": cwd,
        "env": input.env,
        "cpus": input.cpus,
        "mem": input.mem,
        "weight": input.weight,
        "expected_s": input.expected_s,
    });
    let Value::Object(mut line) = all else {
        return Ok(Map::new());
    };
    line.retain(|_, value| !value.is_null());
    Ok(line)
}

/// The name and the command of a job's line, as users see them.
///
/// # Errors
/// What is wrong with the line, or how many CPUs this process lacks for it.
pub fn described(line: &str) -> Result<(String, String), String> {
    let place = "the job";
    let job = job(line.as_bytes(), place).map_err(|why| {
        let why = why.to_string();
        let rest = why
            .strip_prefix(place)
            .and_then(|why| why.strip_prefix(": "));
        rest.map_or_else(|| why.clone(), str::to_owned)
    })?;
    if let (Some(wanted), Ok(cpus)) = (job.cpus, cosched_linux::affinity(0))
        && wanted as usize > cpus.len()
    {
        let have = cpus.len();
        return Err(format!(
            "it needs {wanted} CPUs at once, and {have} can be used here ({cpus})"
        ));
    }
    let command = job.command.as_ref().map(Command::line);
    Ok((base(&job), command.unwrap_or_default()))
}

/// A line about the job with this id, as in `{"cancel": "7"}`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Withdrawal {
    /// End it.
    Cancel(String),
    /// Leave it to another node, unless it has begun.
    GiveBack(String),
}

/// The withdrawal on a line, if it is one.
pub(crate) fn withdrawal(line: &[u8]) -> Option<Withdrawal> {
    serde_json::from_slice(line).ok()
}

/// The `id` of an object that is no job.
pub(crate) fn id(line: &[u8]) -> Option<String> {
    let object: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(object["id"].as_str()?.to_owned())
}

fn command(line: Option<String>, argv: Option<Vec<String>>, place: &str) -> Result<Command> {
    match (line, argv) {
        (Some(line), None) if !line.trim().is_empty() => Ok(Command::shell(line)),
        (None, Some(words)) if words.first().is_some_and(|word| !word.is_empty()) => {
            Ok(Command::Argv(words.into_iter().map(Into::into).collect()))
        }
        (Some(_), Some(_)) => Err(usage(format!(
            "{place}: there are command and argv; give one of them"
        ))),
        _ => Err(usage(format!(
            "{place}: there is no command; {EXAMPLE}, or argv"
        ))),
    }
}

fn check(key: &str, value: Option<f64>, range: RangeInclusive<f64>, place: &str) -> Result<()> {
    match value {
        Some(value) if !range.contains(&value) => {
            let (least, greatest) = (range.start(), range.end());
            Err(usage(format!(
                "{place}: {key} is {value}; expected {least} to {greatest}"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_object_is_a_job() {
        let line = br#"{"id":"7","argv":["gzip","a b"],"name":"z","cwd":"/tmp","env":{"A":"1"},"cpus":2,"mem":1024,"weight":2.5,"expected_s":3}"#;
        assert!(is_object(line));
        let job = job(line, "-:1").unwrap();
        let words = ["gzip", "a b"].map(Into::into).to_vec();
        assert_eq!(job.command, Some(Command::Argv(words)));
        assert_eq!(
            (job.id.as_deref(), job.name.as_deref()),
            (Some("7"), Some("z"))
        );
        assert_eq!((job.cpus, job.mem), (Some(2), Some(1024)));
        assert_eq!((job.weight, job.expected_s), (Some(2.5), Some(3.0)));
        assert_eq!((job.env["A"].as_str(), job.cwd), ("1", Some("/tmp".into())));
    }

    #[test]
    fn a_line_is_described_or_refused_without_a_place() {
        let told = |line: &str| described(line);
        let pair = |name: &str, command: &str| Ok((name.to_owned(), command.to_owned()));
        assert_eq!(
            told(r#"{"argv":["/bin/echo","a b"]}"#),
            pair("echo", "/bin/echo 'a b'")
        );
        assert_eq!(
            told(r#"{"command":"a | b","name":"x"}"#),
            pair("x", "a | b")
        );
        let why = told(r#"{"command":"x","cpus":0}"#).unwrap_err();
        assert!(why.starts_with("cpus is 0"), "{why}");
    }

    #[test]
    fn errors_name_the_place_and_the_key() {
        for (line, why) in [
            (r#"{"comand":"x"}"#, "unknown field `comand`"),
            (r#"{"id":"x"}"#, "there is no command"),
            (r#"{"command":" "}"#, "there is no command"),
            (r#"{"command":"x","argv":["y"]}"#, "give one of them"),
            (r#"{"command":"x","cpus":0}"#, "cpus is 0"),
            (r#"{"command":"x","weight":1e9}"#, "weight is 1000000000"),
            (r#"{"command":"x","expected_s":-1}"#, "expected_s is -1"),
            (r#"{"command":"x","env":{"A=":""}}"#, "`A=` can't be"),
            (r#"{"command":"x","name":"a/b"}"#, "name is `a/b`"),
            (r#"{"command":"#, "EOF"),
        ] {
            let error = job(line.as_bytes(), "jobs:3").unwrap_err().to_string();
            assert!(
                error.starts_with("jobs:3: ") && error.contains(why),
                "{error}"
            );
        }
        assert!(!is_object(b"{ echo a; }") && !is_object(b"{}") && is_object(b"{ \"a\": 1"));
    }
}
