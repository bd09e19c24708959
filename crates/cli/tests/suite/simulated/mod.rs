//! Batches on simulated machines, as the user of the built binary meets them.

mod machines;
mod options;
mod policies;
mod record;
mod solo;

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, out, read};
use serde_json::Value;

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
        summary.contains("memory#5") && summary.contains("(simulated, 12 CPUs"),
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
