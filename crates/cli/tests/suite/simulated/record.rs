//! The record and the other files of a run.

use super::{SLEEPER, SLEEPERS};
use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{command, cosched, err, json, out, read, write};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// The line of a job's end in the series says the same as the record.
#[test]
fn the_series_has_what_the_record_has_of_an_end() {
    let folder = with_mix();
    // Solo traces tell the progress of every job.
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--policy", "oracle", "--logs", "L", "--format", "json",
    ];
    let record = json(&cosched(&folder, &words));
    let series = read(&folder, "L/series.jsonl");
    let lines: Vec<Value> = series
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (task, job) in record["jobs"].as_array().expect("jobs").iter().enumerate() {
        let mut ends = lines[1..].iter();
        let end = ends.find(|line| line[0] == "e" && line[2] == task);
        let end = end.expect("an end")[3].as_object().expect("an object");
        assert!(job["progress"].as_f64() > Some(0.0), "{job}");
        assert!(end.contains_key("progress") && end.contains_key("counts"));
        for (key, value) in end {
            assert_eq!(*value, job[key], "{key}");
        }
    }
}

#[test]
fn the_record_names_machine_and_program_files_by_their_content() {
    let folder = tempdir().expect("a folder");
    let machine = include_str!("../../../../../machines/i5-2500.toml");
    write(&folder, "sleeper.toml", SLEEPER);
    write(
        &folder,
        "mix.toml",
        &format!("{SLEEPERS}[[job]]\nprogram = \"mcf\"\nwork_instructions = 1_000_000\n"),
    );
    let files = |machine: &str| {
        write(&folder, "m.toml", machine);
        let record = json(&cosched(
            &folder,
            &[
                "run", "mix.toml", "--on", "./m.toml", "--format", "json", "-q",
            ],
        ));
        record["setting"]["files"]
            .as_array()
            .expect("a list")
            .clone()
    };
    let first = files(machine);
    let named: Vec<_> = first
        .iter()
        .map(|file| (file["kind"].as_str(), file["name"].as_str()))
        .collect();
    assert_eq!(
        named,
        [
            (Some("machine"), Some("./m.toml")),
            (Some("program"), Some("./sleeper.toml"))
        ]
    );
    assert!(
        first
            .iter()
            .all(|file| file["sha256"].as_str().is_some_and(|hash| hash.len() == 64)),
        "{first:?}"
    );
    let second = files(&format!("{machine}\n"));
    assert_ne!(first[0]["sha256"], second[0]["sha256"]);
    assert_eq!(first[1], second[1]);
}

#[test]
fn events_that_can_not_be_written_are_told() {
    let folder = with_mix();
    for (option, what) in [("--events", "the events file"), ("--joblog", "the job log")] {
        let words = [
            "run",
            "mix.toml",
            "--on",
            MACHINE,
            "-q",
            "--format",
            "json",
            option,
            "/dev/full",
        ];
        let output = cosched(&folder, &words);
        let told = format!("{what} is written no further");
        assert_eq!(output.status.code(), Some(1), "{option}: {}", err(&output));
        assert!(err(&output).contains(&told), "{option}: {}", err(&output));
        let record = json(&output);
        let warnings = record["warnings"].as_array().expect("warnings");
        let stopped = |warning: &&Value| warning["code"] == "file-stopped";
        let [text] = &warnings
            .iter()
            .filter(stopped)
            .map(|warning| &warning["text"])
            .collect::<Vec<_>>()[..]
        else {
            panic!("{record}")
        };
        assert!(
            text.as_str().is_some_and(|text| text.starts_with(&told)),
            "{record}"
        );
    }
}

#[test]
fn an_interrupted_simulation_leaves_its_record() {
    let folder = tempdir().expect("a folder");
    // Far more work than is simulated before the signal comes.
    let endless =
        "[[job]]\nprogram = \"mcf\"\ncopies = 3\nwork_instructions = 100_000_000_000_000\n";
    write(&folder, "mix.toml", endless);
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--policy", "linux", "--logs", "L", "--format", "json",
    ];
    let mut run = command(folder.path(), &words);
    let child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let series = folder.path().join("L/series.jsonl");
    let begun = || std::fs::read_to_string(&series).is_ok_and(|text| text.lines().count() > 2);
    let patience = Instant::now() + Duration::from_secs(60);
    while !begun() {
        assert!(Instant::now() < patience, "nothing is simulated");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let record = json(&output);
    assert_eq!(
        (&record["finished_by"], &record["signal"]),
        (&"signal".into(), &2.into())
    );
    assert_eq!(
        (&record["backend"], &record["jobs"][0]["exit_text"]),
        (&"sim".into(), &"SIGTERM".into())
    );
    assert_eq!(read(&folder, "L/run.json"), out(&output));
    assert!(err(&output).contains("SIGINT"), "{}", err(&output));
}
