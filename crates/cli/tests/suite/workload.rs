//! `cosched workload` as its users meet it: the built binary, its two forms of answer, its errors and its exit codes.

use serde_json::Value;
use std::process::{Command, Output};

fn cosched(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cosched"))
        .args(words)
        .output()
        .expect("the binary runs")
}

fn stdout(words: &[&str]) -> String {
    let output = cosched(words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{words:?} exits with {}: {stderr}",
        output.status
    );
    assert_eq!(stderr, "", "{words:?} says nothing on stderr");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(words: &[&str]) -> Value {
    let text = stdout(words);
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// The names that the listing gives, and a small amount of work for each: quick even in an unoptimised build.
fn small_runs() -> Vec<Vec<String>> {
    let listing = stdout(&["workload"]);
    let lines = listing.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| !line.starts_with(' '));
    let small = |line: &str| {
        let name = line.split(' ').next().expect("a name");
        let mut words = vec!["workload", name, "--work", "1K"];
        match name {
            "chase" | "stream" | "bus" => words.extend(["--working-set", "64K"]),
            "phases" => words.extend(["--working-set", "64K", "--period", "100"]),
            "compute" => {}
            _ => panic!("this test has no small run of {name}"),
        }
        words.into_iter().map(String::from).collect()
    };
    names.map(small).collect()
}

fn with<'a>(run: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    run.iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn every_workload_reports_what_it_did_as_json() {
    let runs = small_runs();
    assert_eq!(runs.len(), 5);
    for run in &runs {
        let report = json(&with(run, &["--format", "json", "--seed", "7"]));
        assert_eq!(report["schema"], "cosched.workload/1");
        assert_eq!(report["workload"], run[1].as_str());
        assert_eq!(report["seed"], 7);
        assert_eq!(report["work"], 1000, "{report}");
        let expected = if run[1] == "compute" {
            0..=0
        } else {
            65_520..=65_536
        };
        assert!(
            expected.contains(&report["working_set_bytes"].as_u64().expect("bytes")),
            "{report}"
        );
        let checksum = report["checksum"].as_str().expect("text");
        assert!(
            checksum.len() == 18 && checksum.starts_with("0x"),
            "{checksum}"
        );
        for clock in ["elapsed_s", "cpu_s"] {
            assert!(
                report["run"][clock]
                    .as_f64()
                    .is_some_and(|seconds| seconds > 0.0),
                "{clock}: {report}"
            );
            assert!(
                report["setup"][clock]
                    .as_f64()
                    .is_some_and(|seconds| seconds >= 0.0),
                "{clock}: {report}"
            );
        }
        assert!(report["details"].is_object(), "{report}");
    }
}

#[test]
fn every_workload_reports_the_same_as_one_line_of_text() {
    for run in small_runs() {
        let text = stdout(&with(&run, &[]));
        assert_eq!(text.lines().count(), 1, "{text}");
        let checksum = &json(&with(&run, &["--format", "json"]))["checksum"];
        assert!(text.starts_with(&format!("{}: 1000 ", run[1])), "{text}");
        for part in [
            "working set",
            "elapsed",
            "CPU",
            "set-up",
            "seed 1,",
            checksum.as_str().expect("text"),
        ] {
            assert!(text.contains(part), "no {part}: {text}");
        }
    }
}

#[test]
fn a_seed_decides_the_checksum() {
    for run in small_runs() {
        let checksum =
            |seed| json(&with(&run, &["--format", "json", "--seed", seed]))["checksum"].clone();
        assert_eq!(checksum("3"), checksum("3"));
        assert_ne!(checksum("3"), checksum("4"));
    }
}

#[test]
fn bus_says_what_was_calibrated_or_why_nothing_was() {
    let small = [
        "workload",
        "bus",
        "--working-set",
        "64K",
        "--work",
        "1K",
        "--format",
        "json",
    ];
    let calibrated = json(&[&small[..], &["--share", "0.25", "--chains", "4"]].concat());
    let details = &calibrated["details"];
    assert_eq!(details["share_wanted"], 0.25);
    assert_eq!(details["loads"], 4000);
    let [miss, spin] =
        ["miss_ns", "spin_ns"].map(|key| details[key].as_f64().expect("a measured cost"));
    let idle = details["idle_iterations"].as_f64().expect("a count");
    let share = details["share_calibrated"].as_f64().expect("a share");
    assert!(miss > 0.0 && spin > 0.0, "{details}");
    assert!(
        (miss / (miss + idle * spin) - share).abs() < 1e-9,
        "the share follows from the costs: {details}"
    );

    let given = json(&[&small[..], &["--idle-iterations", "40"]].concat());
    assert_eq!(given["details"]["idle_iterations"], 40);
    assert_eq!(
        given["details"]["calibration_absent"],
        "--idle-iterations was given"
    );
    assert_eq!(given["details"].get("miss_ns"), None);
}

#[test]
fn without_a_name_the_workloads_are_listed() {
    let (plain, help) = (stdout(&["workload"]), stdout(&["workload", "--help"]));
    // The help is wrapped to the width of the terminal, so only its words can be compared.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = words(&help);
    let rows: Vec<&str> = plain.lines().skip(2).collect();
    assert_eq!(rows.len(), 10, "{plain}");
    for row in rows.chunks(2) {
        assert!(help.contains(&words(row[0])), "{help}");
        assert!(row[1].trim_start().starts_with("stresses "), "{plain}");
    }
}

#[test]
fn bad_values_are_refused_with_flag_value_and_range() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["chase", "--work", "0"],
            &["--work", "'0'", "from 1 to 1000T"],
        ),
        (
            &["chase", "--work", "many"],
            &["--work", "'many'", "a count such as"],
        ),
        (
            &["chase", "--working-set", "63"],
            &["--working-set", "'63'", "from 64B to 1024T"],
        ),
        (
            &["chase", "--working-set", "8MB"],
            &["--working-set", "'8MB'", "a size such as"],
        ),
        (
            &["chase", "--working-set", "1024T"],
            &["--working-set", "'1024T'", "at most", "available"],
        ),
        (
            &["stream", "--working-set", "1024T"],
            &["--working-set", "T'", "at most", "available"],
        ),
        (
            &["stream", "--op", "scale"],
            &["--op", "'scale'", "read", "copy", "triad"],
        ),
        (
            &["bus", "--share", "1.5"],
            &["--share", "'1.5'", "0, or from 0.001 to 1"],
        ),
        (
            &["bus", "--share", "half"],
            &["--share", "'half'", "a number such as"],
        ),
        (
            &["bus", "--chains", "3"],
            &["--chains", "'3'", "1, 2, 4, 8 or 16"],
        ),
        (
            &["bus", "--idle-iterations", "2G"],
            &["--idle-iterations", "'2G'", "from 0 to 1G"],
        ),
        (
            &["bus", "--idle-iterations", "5", "--share", "1"],
            &["--idle-iterations", "--share", "cannot be used with"],
        ),
        (
            &["phases", "--period", "1"],
            &["--period", "'1'", "from 2 to 1000T"],
        ),
        (&["compute", "--seed", "x"], &["--seed", "'x'"]),
        (
            &["compute", "--format", "xml"],
            &["--format", "'xml'", "text", "json"],
        ),
        (&["compute", "--working-set", "1M"], &["--working-set"]),
        (&["pursue"], &["'pursue'"]),
    ];
    for (words, expected) in cases {
        let output = cosched(&[&["workload"], *words].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{words:?}");
        assert!(stderr.starts_with("error: "), "{words:?}: {stderr}");
        for part in *expected {
            assert!(stderr.contains(part), "{words:?}: no {part} in: {stderr}");
        }
    }
}
