//! The schemas in `docs/schema/` describe the files that cosched writes.

use crate::common::looping::LoopingRun;
use crate::common::schema::{Schemas, folder};
use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{command, cosched, err, json, out, read, write};
use serde_json::Value;
use std::path::Path;
use tempfile::{TempDir, tempdir};

fn lines(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
}

fn succeed(folder: &TempDir, words: &[&str]) -> std::process::Output {
    let output = cosched(folder, words);
    assert!(output.status.success(), "{words:?}: {}", err(&output));
    output
}

/// Checks the record, the series and the events of a run.
fn check_run(schemas: &Schemas, folder: &TempDir) {
    let record = serde_json::from_str(&read(folder, "run.json")).expect("a record");
    schemas.check("run.json", &record);
    for event in lines(&read(folder, "events.jsonl")) {
        schemas.check("event.json", &event);
    }
    let series = read(folder, "run.series.jsonl");
    let mut series = lines(&series);
    schemas.check("series-header.json", &series.next().expect("a header"));
    for row in series {
        schemas.check("series-row.json", &row);
    }
}

#[test]
fn simulated_runs_of_every_policy() {
    let schemas = Schemas::read();
    for policy in cosched_core::POLICIES {
        let folder = with_mix();
        let machine = match policy.name {
            "bias" | "big-fair" | "lucky" => "big1-small3",
            // There a job has a home.
            "bandwidth" => "epyc-7502-2s",
            _ => MACHINE,
        };
        let words = ["run", "mix.toml", "--on", machine, "--policy", policy.name];
        let files = ["--record", "run.json", "--events", "events.jsonl"];
        let output = cosched(&folder, &[&words[..], &files].concat());
        assert!(read(&folder, "run.json").len() > 1000, "{}", err(&output));
        check_run(&schemas, &folder);
    }
}

#[test]
fn answers_about_a_simulated_run() {
    let (schemas, folder) = (Schemas::read(), with_mix());
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--policy", "even", "--record", "run.json",
    ];
    succeed(
        &folder,
        &[&words[..], &["--events", "events.jsonl"]].concat(),
    );
    for at in ["0.01s", "0.3s", "0.8s"] {
        let answer = succeed(
            &folder,
            &["why", "wide", "run.json", "--at", at, "--format", "json"],
        );
        schemas.check("why.json", &json(&answer));
    }
    for seq in ["0", "3"] {
        let answer = succeed(
            &folder,
            &["decide", "events.jsonl", "--seq", seq, "--format", "json"],
        );
        schemas.check("decide.json", &json(&answer));
    }
    for table in ["metrics", "jobs", "samples"] {
        let rows = succeed(
            &folder,
            &["report", "run.json", "--format", "jsonl", "--table", table],
        );
        for row in lines(&out(&rows)) {
            schemas.check("table-row.json", &row);
        }
    }
}

#[test]
fn a_real_run_its_job_log_and_its_history() {
    let (schemas, folder) = (Schemas::read(), tempdir().expect("a folder"));
    let mix = "[[job]]\ncommand = \"sleep 0.2\"\ncopies = 2\n[[job]]\ncommand = \"exit 3\"\nenv = { A = \"b\" }\n";
    write(&folder, "mix.toml", mix);
    let files = [
        "--record",
        "run.json",
        "--events",
        "events.jsonl",
        "--joblog",
        "log",
        "--logs",
        "logs",
    ];
    let words = [&["run", "mix.toml", "--solo", "measure"], &files[..]].concat();
    let history = folder.path().join("history");
    let run = command(folder.path(), &words)
        .env("COSCHED_HISTORY", &history)
        .output()
        .expect("a run");
    assert_eq!(run.status.code(), Some(1), "{}", err(&run));
    check_run(&schemas, &folder);
    for line in lines(&read(&folder, "log.runs")) {
        schemas.check("runs.json", &line);
    }
    let profiles = serde_json::from_str(&read(&folder, "logs/solo-profiles.json"));
    schemas.check("solo.json", &profiles.expect("solo profiles"));
    let words = ["history", "list", "--format", "json"];
    let known = command(folder.path(), &words)
        .env("COSCHED_HISTORY", &history)
        .output()
        .expect("the history");
    schemas.check("history.json", &json(&known));
}

#[test]
fn the_state_of_a_run() {
    let (schemas, run) = (Schemas::read(), LoopingRun::start(&[]));
    let output = command(run.folder(), &["status", &run.pid(), "--format", "json"]).output();
    let answer = json(&output.expect("an answer"));
    schemas.check("runs-now.json", &answer);
    schemas.check("status.json", &answer["runs"][0]["status"]);
    run.end();
}

#[test]
fn comparisons_of_policies_and_of_programs() {
    let (schemas, folder) = (Schemas::read(), with_mix());
    let words = [
        "compare",
        "mix.toml",
        "--on",
        MACHINE,
        "-p",
        "fair,linux",
        "-r",
        "2",
        "--out",
        "simulated",
    ];
    succeed(&folder, &words);
    write(&folder, "real.toml", "[[job]]\ncommand = \"true\"\n");
    let words = [
        "compare",
        "real.toml",
        "-p",
        "linux",
        "--candidate",
        "other=true",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "real",
    ];
    succeed(&folder, &words);
    for name in ["simulated", "real"] {
        for (file, schema) in [
            ("compare.json", "compare.json"),
            ("comparison.json", "comparison.json"),
        ] {
            let value = serde_json::from_str(&read(&folder, &format!("{name}/{file}")));
            schemas.check(schema, &value.expect("an object"));
        }
    }
}

#[test]
fn examples_obey_the_schemas() {
    let schemas = Schemas::read();
    let example = |name: &str| {
        std::fs::read_to_string(folder().join("examples").join(name)).expect("an example")
    };
    schemas.check(
        "event.json",
        &serde_json::from_str(&example("question.json")).expect("an event"),
    );
    schemas.check(
        "solo.json",
        &serde_json::from_str(&example("solo.json")).expect("solo profiles"),
    );
    for row in lines(&example("series.jsonl")) {
        schemas.check("series-row.json", &row);
    }
}

#[test]
#[should_panic(expected = "/jobs/0/ipc")]
fn a_value_of_another_type_is_found() {
    let folder = with_mix();
    cosched(
        &folder,
        &["run", "mix.toml", "--on", MACHINE, "--record", "run.json"],
    );
    let mut record: Value = serde_json::from_str(&read(&folder, "run.json")).expect("a record");
    record["jobs"][0]["ipc"] = "fast".into();
    Schemas::read().check("run.json", &record);
}

/// Appends the Rust files of a folder and of those below it.
fn append_sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            append_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source file"));
        }
    }
}

/// `lease-end` is `LeaseEnd` in the code.
fn variant(name: &str) -> String {
    let mut variant = String::new();
    for word in name.split('-') {
        let (first, rest) = word.split_at(1);
        variant.push_str(&first.to_uppercase());
        variant.push_str(rest);
    }
    variant
}

#[test]
fn every_property_is_in_the_code() {
    let mut code = String::new();
    for member in std::fs::read_dir(folder().join("../../crates")).expect("crates") {
        append_sources(&member.expect("a crate").path().join("src"), &mut code);
    }
    let is_part_of_word = |c: char| !(c.is_alphanumeric() || c == '_');
    let words: std::collections::BTreeSet<&str> = code.split(is_part_of_word).collect();
    for (schema, name) in Schemas::read().properties() {
        let is_there = words.contains(name.as_str()) || words.contains(variant(&name).as_str());
        assert!(
            is_there || name.contains(' '),
            "{schema}: no code writes {name}"
        );
    }
}
