//! Batches on simulated machines, as the user of the built binary meets them.

mod common;

use common::simulated::{MACHINE, with_mix};
use common::{command, cosched, ended, err, json, out, read, write};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

#[test]
fn every_output_says_that_it_is_simulated() {
    let folder = with_mix();
    let files = [
        "--logs", "L", "--record", "r.json", "--events", "events", "--joblog", "log",
    ];
    let output = cosched(
        &folder,
        &[&["run", "mix.toml", "--on", MACHINE, "-v"], &files[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let summary = out(&output);
    assert!(
        summary.starts_with(&format!("SIMULATED on {MACHINE}: ")),
        "{summary}"
    );
    assert!(
        summary.contains("memory-5") && summary.contains("(simulated, 12 CPUs"),
        "{summary}"
    );
    for line in err(&output)
        .lines()
        .filter(|line| !line.starts_with("cosched: "))
    {
        assert!(line.starts_with("[simulated] "), "{line}");
    }
    assert!(
        err(&output).contains("[simulated] started wide")
            && err(&output).contains("] wide: exit 0 after")
    );

    let record: Value = serde_json::from_str(&read(&folder, "r.json")).expect("JSON");
    assert_eq!(
        (&record["backend"], &record["machine"]),
        (&"sim".into(), &MACHINE.into())
    );
    assert_eq!(
        (&record["started_at"], &record["started_at_absent"]),
        (&Value::Null, &"simulated".into())
    );
    for times in ["decide_us", "observe_us", "apply_us"] {
        assert_eq!(
            record["overhead"][times]["p50_absent"], "simulated",
            "{times}"
        );
    }
    assert_eq!(record["overhead"]["cpu_share_absent"], "simulated");
    assert_eq!(
        (&record["jobs"][0]["log"], &record["jobs"][0]["log_absent"]),
        (&Value::Null, &"simulated".into())
    );
    assert_eq!(
        (&record["jobs"][0]["program"], &record["jobs"][0]["command"]),
        (&"mcf".into(), &Value::Null)
    );
    assert_eq!(read(&folder, "L/run.json"), read(&folder, "r.json"));

    for name in ["L/series.jsonl", "r.series.jsonl", "events"] {
        let text = read(&folder, name);
        let first: Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first["backend"], "sim", "{name}");
    }
    assert_eq!(
        read(&folder, "log")
            .lines()
            .skip(1)
            .filter(|line| line.contains("\tsimulated\t"))
            .count(),
        10
    );
    let mut left: Vec<String> = std::fs::read_dir(folder.path().join("L"))
        .expect("the log folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    left.sort();
    assert_eq!(left, [".cosched-run", "run.json", "series.jsonl"]);
}

#[test]
fn jobs_have_their_solo_times_and_slowdowns() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json", "-q"];
    let record = json(&cosched(&folder, &words));
    assert_eq!(record["totals"]["succeeded"], 10, "{record}");
    for job in record["jobs"].as_array().expect("jobs") {
        assert_eq!(job["solo_source"], "simulated");
        let number = |key: &str| job[key].as_f64().unwrap_or_else(|| panic!("{key}: {job}"));
        // Instances differ a little, and a job may run beside a favourable phase of another job.
        assert!(number("slowdown") > 0.9, "{job}");
        let turnaround = number("finish_s") - number("arrival_s");
        assert!(
            (number("slowdown") - turnaround / number("solo_s")).abs() < 1e-9,
            "{job}"
        );
    }
    assert!(
        record["metrics"]["unfairness"]
            .as_f64()
            .is_some_and(|unfairness| unfairness >= 1.0),
        "{record}"
    );
    // Missing counters don't matter for solo runs: these are always there.
    let codes: Vec<&Value> = record["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|missing| &missing["capability"])
        .collect();
    assert!(!codes.contains(&&"solo-bandwidth".into()), "{codes:?}");
    let measured = json(&cosched(
        &folder,
        &[&words[..], &["--solo", "measure"]].concat(),
    ));
    assert_eq!(measured, record);
}

/// Every machine by its name, and whether it has the counter or meter.
fn machines_with(folder: &TempDir, what: &str) -> Vec<(String, bool)> {
    let list = json(&cosched(folder, &["list", "machines", "--format", "json"]));
    let has = |entry: &Value| {
        let has = entry["counts"][what]
            .as_bool()
            .unwrap_or_else(|| panic!("{what}: {entry}"));
        (entry["name"].as_str().expect("a name").to_owned(), has)
    };
    list["machines"]
        .as_array()
        .expect("a list")
        .iter()
        .map(has)
        .collect()
}

#[test]
fn every_machine_tells_what_it_can_and_no_more() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nprogram = \"lbm\"\ncopies = 2\nwork_instructions = 500_000_000\n",
    );
    let words = |machine: &str| {
        ["run", "mix.toml", "--format", "json", "-q", "--on", machine].map(str::to_owned)
    };
    let run = |words: &[String]| {
        cosched(
            &folder,
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    for (machine, has) in machines_with(&folder, "energy") {
        let energy = json(&run(&words(&machine)))["energy"].clone();
        // Energy is modelled in any case; a meter is something that a policy can read.
        assert!(
            energy["joules"].as_f64().is_some_and(|joules| joules > 0.0),
            "{machine}: {energy}"
        );
        assert_eq!(energy["source"], "modelled", "{machine}");
        let required = run(&[
            &words(&machine)[..],
            &["--require", "energy"].map(str::to_owned),
        ]
        .concat());
        assert_eq!(
            required.status.code(),
            Some(if has { 0 } else { 3 }),
            "{machine}: {}",
            err(&required)
        );
    }
    for (machine, has) in machines_with(&folder, "mm_reads") {
        let record = json(&run(&words(&machine)));
        assert_eq!(
            record["jobs"][1]["counts"]["mm_reads"].is_u64(),
            has,
            "{machine}: {record}"
        );
    }
}

#[test]
fn a_file_of_solo_times_goes_before_simulated_ones() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json"];
    let mut record = json(&cosched(&folder, &words));
    record["jobs"][0]["solo_s"] = 4.25.into();
    // A slowdown that contradicts its times would be an error.
    record["jobs"][0]["slowdown"] = serde_json::Value::Null;
    record["jobs"][1]["name"] = "another".into();
    write(&folder, "solo.json", &record.to_string());
    let output = cosched(&folder, &[&words[..], &["--solo", "solo.json"]].concat());
    let record = json(&output);
    let solo = |ix: usize| {
        (
            record["jobs"][ix]["solo_s"].as_f64(),
            record["jobs"][ix]["solo_source"].as_str(),
        )
    };
    assert_eq!(solo(0), (Some(4.25), Some("record")));
    assert_eq!(solo(1).1, Some("simulated"));
    assert!(
        err(&output).contains("no solo time for job memory-2; its simulated solo time is used"),
        "{}",
        err(&output)
    );
    let file = &record["setting"]["files"][0];
    assert_eq!(
        (file["kind"].as_str(), file["name"].as_str()),
        (Some("solo"), Some("solo.json")),
        "{record}"
    );
    assert!(
        file["sha256"].as_str().is_some_and(|hash| hash.len() == 64),
        "{file}"
    );
    assert!(
        !err(&output).contains("another machine"),
        "{}",
        err(&output)
    );
    let elsewhere = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--format",
        "json",
        "--solo",
        "solo.json",
    ];
    let record = json(&cosched(&folder, &elsewhere));
    let warnings = record["warnings"].as_array().expect("warnings");
    assert!(
        warnings
            .iter()
            .any(|warning| warning["code"] == "solo-other-machine"),
        "{warnings:?}"
    );
}

/// What a job came to is in the line of its end: its last sample is written later and holds no progress.
#[test]
fn the_series_has_the_progress_in_the_end() {
    let folder = with_mix();
    // Solo traces tell the progress of every job.
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--policy", "oracle", "--logs", "L", "--format", "json",
    ];
    let record = json(&cosched(&folder, &words));
    let series = read(&folder, "L/series.jsonl");
    let lines: Vec<serde_json::Value> = series
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let column = lines[0]["columns"]["e"]
        .as_array()
        .expect("columns")
        .iter()
        .position(|name| name == "progress_milli");
    let column = column.expect("a column of ends");
    for (task, job) in record["jobs"].as_array().expect("jobs").iter().enumerate() {
        let end = lines[1..]
            .iter()
            .find(|line| line[0] == "e" && line[2] == task)
            .expect("an end");
        let milli = job["progress"]
            .as_f64()
            .map(|quanta| (quanta * 1e3 + 0.5) as u64);
        assert!(milli.is_some_and(|milli| milli > 0), "{job}");
        assert_eq!(end[column].as_u64(), milli, "{end}");
    }
}

/// Whoever asks another policy gets the answer that a run on the same machine would get.
#[test]
fn decisions_by_other_policies_respect_the_machine() {
    let folder = with_mix();
    let words = [
        "run",
        "mix.toml",
        "--on",
        MACHINE,
        "-q",
        "--policy",
        "round-robin",
        "--events",
        "events",
    ];
    assert_eq!(cosched(&folder, &words).status.code(), Some(0));
    let asked = json(&cosched(
        &folder,
        &["decide", "events", "--policy", "efs", "--format", "json"],
    ));
    assert_eq!(
        cosched(
            &folder,
            &[
                "run", "mix.toml", "--on", MACHINE, "-q", "--policy", "efs", "--record", "r"
            ]
        )
        .status
        .code(),
        Some(0)
    );
    let record: Value = serde_json::from_str(&read(&folder, "r")).expect("a record");
    let params = record["setting"]["params"].as_array().expect("parameters");
    assert!(
        params.iter().any(|param| param["origin"] == "machine"),
        "{params:?}"
    );
    for param in params {
        let name = param["name"].as_str().expect("a name");
        assert_eq!(asked["params"][name], param["value"], "{name}");
    }
    let oracle = cosched(&folder, &["decide", "events", "--policy", "oracle"]);
    assert!(
        oracle.status.code() == Some(3) && err(&oracle).contains("solo trace"),
        "{}",
        err(&oracle)
    );
    let refused = cosched(&folder, &["decide", "events", "--policy", "lucky"]);
    assert_eq!(refused.status.code(), Some(3), "{}", out(&refused));
    let told = err(&refused);
    assert!(
        told.contains("needs cores of two types") && told.contains("events"),
        "{told}"
    );
}

#[test]
fn the_seed_decides_every_byte() {
    let folder = with_mix();
    let run = |seed: &str, logs: &str, policy: &str| {
        let words = [
            "run", "mix.toml", "--on", MACHINE, "--policy", policy, "--format", "json", "-q",
        ];
        let output = cosched(
            &folder,
            &[&words[..], &["--seed", seed, "--logs", logs]].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{policy}: {}", err(&output));
        (out(&output), read(&folder, &format!("{logs}/series.jsonl")))
    };
    for policy in ["auto", "linux", "fifo"] {
        assert_eq!(run("3", "a", policy), run("3", "b", policy), "{policy}");
        let others = ["4", "5", "6"].map(|seed| run(seed, "c", policy));
        let times = |text: &str| {
            serde_json::from_str::<Value>(text).expect("JSON")["metrics"]["turnaround_s"].clone()
        };
        let same = times(&run("3", "a", policy).0);
        assert!(
            others.iter().any(|(record, _)| times(record) != same),
            "{policy}: the seed changes nothing"
        );
    }
}

#[test]
fn every_policy_ends_its_batch_and_its_decisions_replay() {
    let folder = with_mix();
    let policies = json(&cosched(&folder, &["list", "policies", "--format", "json"]));
    for policy in policies["policies"].as_array().expect("a list") {
        let name = policy["name"].as_str().expect("a name");
        let words = [
            "run", "mix.toml", "--on", MACHINE, "-q", "--policy", name, "--events", "events",
        ];
        let output = cosched(&folder, &words);
        if output.status.code() == Some(3) {
            println!("{name} skipped, because {}", err(&output));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
        let events = read(&folder, "events").lines().count();
        for seq in [0, events / 2, events - 1] {
            let words = [
                "decide",
                "events",
                "--format",
                "json",
                "--seq",
                &seq.to_string(),
            ];
            let object = json(&cosched(&folder, &words));
            let text = out(&cosched(&folder, &[&words[..2], &words[4..]].concat()));
            assert!(
                text.starts_with(&format!("SIMULATED on {MACHINE}: ")),
                "{text}"
            );
            assert_eq!(
                (&object["same_as_recorded"], &object["backend"]),
                (&true.into(), &"sim".into()),
                "{name} {seq}"
            );
        }
    }
}

/// A program that computes for some milliseconds and then sleeps for 10 ms, again and again.
const SLEEPER: &str = "\
schema = \"cosched.program/1\"
name = \"sleeper\"
title = \"computes and sleeps in turns\"
[core]
assumed = \"a test\"
cpi = 1
l1_accesses_per_ki = 300
[cache]
assumed = \"a test\"
l1_misses_per_ki = 0
llc_accesses_per_ki = 0
llc_misses_per_ki = [[1, 0]]
[memory]
assumed = \"a test\"
reads_per_ki = 0
writes_per_ki = 0
at_mb = 1
mlp = 1
[phases]
assumed = \"a test\"
parts = [{ instructions = 20e6, then_sleep_ms = 10 }]
";

/// More jobs than CPUs, and each sleeps for more than half of its time.
const SLEEPERS: &str = "\
[[job]]
program = \"./sleeper.toml\"
copies = 6
work_instructions = 1_000_000_000
";

#[test]
fn plans_give_the_cpus_of_sleeping_jobs_to_others() {
    let folder = tempdir().expect("a folder");
    write(&folder, "sleeper.toml", SLEEPER);
    write(&folder, "mix.toml", SLEEPERS);
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--cpus", "0,2", "--policy", "fair",
    ];
    let record = |how: &str| {
        let output = cosched(
            &folder,
            &[&words[..], &["--format", "json", "-q", "--actuation", how]].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        json(&output)
    };
    let (decisions, plans) = (record("decisions"), record("plans"));
    let turnaround = |record: &Value| {
        record["metrics"]["turnaround_s"]
            .as_f64()
            .expect("a turnaround")
    };
    let (slow, fast) = (turnaround(&decisions), turnaround(&plans));
    assert!(
        fast < 0.8 * slow,
        "{fast} s by plans, {slow} s by decisions"
    );
    assert_eq!(
        decisions["plans_absent"],
        "decisions were carried out one by one"
    );
    let counts = &plans["plans"];
    assert!(
        counts["installed"]
            .as_u64()
            .is_some_and(|installed| installed > 0),
        "{counts}"
    );
    assert_eq!(
        (&counts["adopted"], &counts["given_up_s"]),
        (&counts["installed"], &Value::Null)
    );
    let summary = out(&cosched(
        &folder,
        &[&words[..], &["--actuation", "plans", "-v"]].concat(),
    ));
    assert!(summary.contains("\ncarried out as plans: "), "{summary}");
    let dry = out(&cosched(
        &folder,
        &[&words[..], &["--actuation", "plans", "--dry-run"]].concat(),
    ));
    assert!(dry.contains("\nactuation plans: "), "{dry}");
}

#[test]
fn the_record_names_machine_and_program_files_by_their_content() {
    let folder = tempdir().expect("a folder");
    let machine = include_str!("../../../machines/i5-2500.toml");
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
fn without_a_series_the_record_is_the_same() {
    let record = |more: &[&str]| {
        let folder = with_mix();
        let words = [
            &[
                "run", "mix.toml", "--on", MACHINE, "-q", "--format", "json", "--logs", "l",
            ][..],
            more,
        ]
        .concat();
        let record = json(&cosched(&folder, &words));
        (
            record,
            folder.path().join("l/series.jsonl").exists(),
            folder.path().join("l/run.json").exists(),
        )
    };
    let ((with, kept, _), (without, is_there, is_recorded)) =
        (record(&[]), record(&["--no-series"]));
    assert_eq!((kept, is_there, is_recorded), (true, false, true));
    assert!(
        with["jobs"].as_array().is_some_and(|jobs| jobs.len() == 10),
        "{with}"
    );
    assert_eq!(with, without);
    // Without it nobody can tell what became of real jobs.
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["run", "--no-series", "touch", "m"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("--no-series is for simulated runs"),
        "{}",
        err(&output)
    );
    assert!(!folder.path().join("m").exists());
}

/// Simulated jobs write nothing, so standard output is for the summary.
#[test]
fn without_a_log_folder_the_summary_is_where_it_always_is() {
    let folder = with_mix();
    let output = cosched(&folder, &["run", "mix.toml", "--on", MACHINE, "--no-logs"]);
    assert!(out(&output).contains("10 jobs"), "{}", out(&output));
}

#[test]
fn policies_for_two_types_of_core_run_where_there_are_two() {
    let folder = tempdir().expect("a folder");
    let job = |program: &str, work: &str| {
        format!("[[job]]\nprogram = \"{program}\"\nwork_instructions = {work}\n")
    };
    let jobs = [
        job("mcf", "1_000_000_000"),
        job("hmmer", "9_000_000_000"),
        job("namd", "3_000_000_000"),
    ]
    .concat();
    write(
        &folder,
        "mix.toml",
        &format!(
            "restart = \"until-last\"\n{jobs}{}",
            job("lbm", "1_000_000_000")
        ),
    );
    for policy in ["bias", "big-fair", "lucky"] {
        let words = [
            "run",
            "mix.toml",
            "--on",
            "big1-small3",
            "-q",
            "--policy",
            policy,
            "--format",
            "json",
        ];
        let record = json(&cosched(&folder, &words));
        let jobs = record["jobs"].as_array().expect("jobs");
        assert!(
            jobs.iter().all(|job| job["exit"].as_i64() == Some(0)),
            "{policy}: {record}"
        );
        assert!(
            jobs.iter().any(|job| job["runs"].as_u64() > Some(1)),
            "{policy}: {record}"
        );
        let words = ["run", "mix.toml", "--on", "big1-small3", "--policy", policy];
        let summary = out(&cosched(&folder, &words));
        assert!(
            summary.contains(" times, started again until the last had ended once"),
            "{summary}"
        );
        assert_eq!(record["overhead"]["policy_faults"].as_u64(), Some(0));
        let output = cosched(
            &folder,
            &["run", "mix.toml", "--on", MACHINE, "-q", "--policy", policy],
        );
        assert_eq!(output.status.code(), Some(3), "{policy}: {}", err(&output));
        let told = err(&output);
        assert!(
            told.contains(MACHINE) && told.contains("as in --on big1-small3"),
            "{told}"
        );
    }
}

#[test]
fn the_oracle_has_its_traces_from_simulated_solo_runs() {
    let folder = with_mix();
    let words = [
        "run", "mix.toml", "--on", MACHINE, "-q", "--policy", "oracle", "--format", "json",
    ];
    let record = json(&cosched(&folder, &words));
    for job in record["jobs"].as_array().expect("jobs") {
        assert_eq!(job["progress_basis"].as_str(), Some("trace"), "{job}");
        // The job's solo time is the same, up to the noise of counters and the cost of switches.
        let number = |key: &str| job[key].as_f64().expect("a number");
        let alone = number("progress") * record["quantum_s"].as_f64().expect("a quantum");
        assert!((alone / number("solo_s") - 1.0).abs() < 0.05, "{job}");
    }
    assert_eq!(
        record["warnings"].as_array().map(Vec::len),
        Some(0),
        "{record}"
    );
}

#[test]
fn limits_hold_as_on_the_host() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json", "-q"];
    let late = cosched(&folder, &[&words[..], &["--timeout", "0.1"]].concat());
    assert_eq!(late.status.code(), Some(124), "{}", err(&late));
    assert_eq!(json(&late)["totals"]["timed_out"], 10);
    let halted = cosched(
        &folder,
        &[&words[..], &["--jobs", "2", "--halt", "soon,success=1"]].concat(),
    );
    assert_eq!(
        (halted.status.code(), json(&halted)["finished_by"].clone()),
        (Some(0), "halt".into())
    );
    let halted = cosched(
        &folder,
        &[
            &words[..],
            &["--policy", "linux", "--halt", "now,success=1"],
        ]
        .concat(),
    );
    let record = json(&halted);
    let exits: Vec<_> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["exit_text"].as_str())
        .collect();
    assert!(exits.contains(&Some("SIGTERM")), "{exits:?}");
    assert_eq!(halted.status.code(), Some(0), "{}", err(&halted));
    let halted = cosched(
        &folder,
        &[&words[..], &["--timeout", "0.1", "--halt", "now,fail=1"]].concat(),
    );
    assert_eq!(halted.status.code(), Some(124), "{}", err(&halted));
    let few = json(&cosched(
        &folder,
        &[&words[..], &["--cpus", "0-1"]].concat(),
    ));
    assert_eq!(
        (&few["machine_details"]["cpus"], &few["totals"]["succeeded"]),
        (&2.into(), &10.into())
    );
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
fn a_dry_run_says_where_and_simulates_nothing() {
    let folder = with_mix();
    let output = cosched(&folder, &["run", "mix.toml", "--on", MACHINE, "--dry-run"]);
    let text = out(&output);
    assert!(
        text.starts_with(&format!("SIMULATED on {MACHINE}")),
        "{text}"
    );
    for part in [
        "program lbm, 2000000000 instructions",
        "freezing  simulated",
        "nothing was started",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let object = json(&cosched(
        &folder,
        &[
            "run",
            "mix.toml",
            "--on",
            MACHINE,
            "--dry-run",
            "--format",
            "json",
        ],
    ));
    assert_eq!(
        (&object["backend"], &object["jobs"][0]["program"]),
        (&"sim".into(), &"mcf".into())
    );
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        1,
        "only the mix file"
    );
}

#[test]
fn parameters_come_from_the_machine_unless_the_user_says_otherwise() {
    let folder = with_mix();
    write(&folder, "profile.toml", "[params]\np1_w = 20\np2_w = 10\n");
    let run = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--policy",
        "efs",
        "--dry-run",
    ];
    let user = [
        "--profile",
        "profile.toml",
        "--param",
        "p2_w=11",
        "--param",
        "c_local=7",
    ];
    let text = out(&cosched(&folder, &[&run[..], &user[..]].concat()));
    for line in [
        "mu_trans_per_us = 149.3 (the machine's)",
        "p0_w = 26.6 (the machine's)",
        "p1_w = 20.0 (from --profile)",
        "p2_w = 11.0 (from --param)",
        "c_local = 7.0 (from --param)",
        "c_global = 5.0\n",
    ] {
        assert!(
            text.contains(&format!("          {line}")),
            "{line}: {text}"
        );
    }
    let object = json(&cosched(
        &folder,
        &[&run[..], &user[..], &["--format", "json"]].concat(),
    ));
    assert_eq!(object["params"]["mu_trans_per_us"], 149.3);
    let origins = &object["param_origins"];
    assert_eq!(
        (&origins["p0_w"], &origins["p1_w"]),
        (&"machine".into(), &"profile".into())
    );
    assert_eq!(
        (&origins["p2_w"], &origins["c_global"]),
        (&"param".into(), &Value::Null)
    );
    // A policy without these parameters is the same on every machine.
    let words = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--policy",
        "linux",
        "--dry-run",
        "--format",
        "json",
    ];
    assert_eq!(
        json(&cosched(&folder, &words))["param_origins"],
        serde_json::json!({})
    );
    let list = json(&cosched(&folder, &["list", "machines", "--format", "json"]));
    let machine = list["machines"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|machine| machine["name"] == "i5-2500");
    assert_eq!(
        machine.expect("built in")["params"]["mu_trans_per_us"],
        149.3
    );
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

/// A program with so many phases that its solo run takes very long to simulate.
const RESTLESS: &str = include_str!("../../../programs/workloads/workload-chase.toml");

/// A folder with a mix whose job runs for days alone, in phases of microseconds.
fn with_restless_mix() -> TempDir {
    let folder = tempdir().expect("a folder");
    let parts = "[phases]\nassumed = \"to take long\"\nparts = [{ instructions = 1000 }, { instructions = 1000, cpi = 2 }]\n";
    write(&folder, "restless.toml", &format!("{RESTLESS}\n{parts}"));
    write(
        &folder,
        "mix.toml",
        "[[job]]\nprogram = \"./restless.toml\"\nwork_instructions = 1e14\n",
    );
    folder
}

/// If it simulated the job alone, this would not end today.
#[test]
fn a_dry_run_simulates_no_job_alone() {
    let folder = with_restless_mix();
    let mut run = command(
        folder.path(),
        &["run", "mix.toml", "--on", MACHINE, "--dry-run"],
    );
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let status = ended(&mut run);
    let output = run.wait_with_output().expect("an output");
    assert_eq!(status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).contains("100000000000000 instructions")
            && out(&output).contains("nothing was started")
    );
}

#[test]
fn the_record_names_all_that_was_lacking() {
    let folder = with_mix();
    let words = [
        "run",
        "mix.toml",
        "--on",
        MACHINE,
        "-p",
        "round-robin",
        "-v",
        "--logs",
        "L",
        "--events",
        "events",
    ];
    let output = cosched(&folder, &words);
    let record: Value = serde_json::from_str(&read(&folder, "L/run.json")).expect("JSON");
    let event: Value =
        serde_json::from_str(read(&folder, "events").lines().next().expect("a line"))
            .expect("JSON");
    let mut codes: Vec<&str> = record["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|missing| missing["capability"].as_str().expect("a code"))
        .collect();
    codes.sort_unstable();
    let of_event: Vec<&String> = event["missing"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(codes, of_event);
    assert_eq!(codes, ["core-types", "energy", "mm-writes"]);
    // The reader of the summary can do nothing with the others: the energy is modelled, and this policy needs no types.
    let summary = out(&output);
    let off = summary
        .lines()
        .find(|line| line.starts_with("off: "))
        .unwrap_or_else(|| panic!("{summary}"));
    assert!(
        off.contains("writes to memory") && !off.contains("energy") && !off.contains("types"),
        "{off}"
    );
}

#[test]
fn solo_runs_can_be_interrupted() {
    let folder = with_restless_mix();
    let mut run = command(
        folder.path(),
        &["run", "mix.toml", "--on", MACHINE, "-q", "--logs", "L"],
    );
    let child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // Until the signals are held back, one of them would end the program at once.
    let status = format!("/proc/{}/status", child.id());
    let held = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & 0b10 != 0)
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while !held() {
        assert!(Instant::now() < patience, "the signals are not held back");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let expected = "interrupted while the jobs were simulated alone; nothing was run";
    assert!(
        err(&output).contains(expected) && output.stdout.is_empty(),
        "{}",
        err(&output)
    );
    assert!(!folder.path().join("L").exists());
}

#[test]
fn machines_and_programs_are_listed_with_their_sources() {
    let folder = tempdir().expect("a folder");
    for (what, expected) in [("machines", MACHINE), ("programs", "mcf")] {
        let brief = out(&cosched(&folder, &["list", what]));
        let object = json(&cosched(&folder, &["list", what, "--format", "json"]));
        let entries = object[what].as_array().expect("a list");
        assert!(
            entries.iter().any(|entry| entry["name"] == expected),
            "{what}"
        );
        for entry in entries {
            let name = entry["name"].as_str().expect("a name");
            assert!(
                brief
                    .lines()
                    .any(|line| line.split(' ').next() == Some(name)),
                "{name}"
            );
            let text = out(&cosched(&folder, &["list", what, name]));
            assert!(text.starts_with(&format!("{name}  ")), "{text}");
            let sources = entry["sources"].as_array().expect("sources");
            assert!(!sources.is_empty(), "{name} has no source");
            for source in sources {
                let (group, said) = (source["group"].as_str(), source["source"].as_str());
                let mark = if source["assumed"] == true {
                    "assumed: "
                } else {
                    ""
                };
                let line = format!(
                    "    {}: {mark}{}\n",
                    group.expect("a group"),
                    said.expect("a source")
                );
                assert!(text.contains(&line), "{name}: no {line:?}");
            }
        }
    }
    let script = out(&cosched(&folder, &["completions", "bash"]));
    for name in [MACHINE, "mcf", "perf-fair"] {
        assert!(script.contains(name), "completions know {name}");
    }
    let unknown = cosched(&folder, &["list", "programs", "mcff"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("there is no `mcff` in this list (did you mean `mcf`?)"),
        "{}",
        err(&unknown)
    );
}

#[test]
fn every_mix_of_the_repository_can_be_simulated() {
    let folder = tempdir().expect("a folder");
    let mixes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mixes");
    let mut read = 0;
    for (part, machine, least) in [
        ("perf-fair", "xeon-e5645", 13),
        ("bandwidth", "xeon-e5645", 10),
        ("lucky", "big1-small3", 8),
        ("efs", "i5-2500", 30),
    ] {
        let files = std::fs::read_dir(mixes.join(part)).expect("a folder of mixes");
        let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        assert!(files.len() >= least, "{part}: {}", files.len());
        let mut seen = std::collections::HashSet::new();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a mix");
            let jobs: String = text.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(
                seen.insert(jobs),
                "{}: another mix has the same jobs",
                file.display()
            );
            let has_lengths =
                text.matches("work_instructions").count() == text.matches("[[job]]").count();
            assert_eq!(has_lengths, part == "lucky", "{}", file.display());
            let output = cosched(
                &folder,
                &[
                    "run",
                    &file.display().to_string(),
                    "--on",
                    machine,
                    "--dry-run",
                ],
            );
            assert!(
                output.status.success(),
                "{}: {}",
                file.display(),
                err(&output)
            );
            read += 1;
        }
    }
    assert!(read >= 61);
}
