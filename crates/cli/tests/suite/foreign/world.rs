//! Runs in a world in a process of its own: the example in Python.

use super::has_python;
use crate::common::schema::Schemas;
use crate::common::{cosched, err, json, out, read, write};
use cosched_core::POLICIES;
use serde_json::Value;
use std::process::Output;
use tempfile::{TempDir, tempdir};

const MIX: &str = include_str!("../../../../../examples/foreign/queue_mix.toml");

/// The word for the example world; `None`, with a word, where there is no Python.
fn world() -> Option<String> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/foreign/queue_world.py"
    );
    has_python().then(|| format!("cmd:python3 {file}"))
}

/// A folder with the example's mix in it.
fn with_mix() -> TempDir {
    let folder = tempdir().expect("a folder");
    write(&folder, "mix.toml", MIX);
    folder
}

fn run(folder: &TempDir, on: &str, more: &[&str]) -> Output {
    cosched(folder, &[&["run", "mix.toml", "--on", on], more].concat())
}

fn record(folder: &TempDir) -> Value {
    serde_json::from_str(&read(folder, "run.json")).expect("a record")
}

#[test]
fn a_policy_in_a_process_decides_there_too_and_is_repeated_without_it() {
    let (Some(world), Some(policy)) = (world(), super::policy("nothing")) else {
        return;
    };
    let folder = with_mix();
    for (policy, events) in [(policy.as_str(), "once"), ("events:once", "again")] {
        let words = [
            "--policy", policy, "--events", events, "--record", "run.json",
        ];
        let ended = run(&folder, &world, &words);
        assert!(ended.status.success(), "{}", err(&ended));
        assert_eq!(record(&folder)["overhead"]["policy_faults"], 0);
    }
    assert_eq!(read(&folder, "once"), read(&folder, "again"));
}

#[test]
fn a_batch_runs_under_every_policy_and_is_the_same_for_the_same_seed() {
    let Some(world) = world() else { return };
    let folder = with_mix();
    let mut played = 0;
    for policy in POLICIES {
        let words = ["--policy", policy.name, "--no-logs", "--record"];
        let once = run(&folder, &world, &[&words[..], &["run.json"]].concat());
        if once.status.code() == Some(3) {
            let said = err(&once);
            assert!(said.contains("all cores are of one type"), "{said}");
            continue;
        }
        assert!(once.status.success(), "{}: {}", policy.name, err(&once));
        run(&folder, &world, &[&words[..], &["again.json"]].concat());
        assert_eq!(read(&folder, "run.json"), read(&folder, "again.json"));
        let record = record(&folder);
        assert_eq!(record["overhead"]["policy_faults"], 0, "{}", policy.name);
        for job in record["jobs"].as_array().expect("jobs") {
            assert_eq!(job["exit"], 0, "{}: {job}", policy.name);
        }
        played += 1;
    }
    assert!(played >= POLICIES.len() - 4, "only {played} were played");
}

#[test]
fn the_record_tells_of_the_world() {
    let Some(world) = world() else { return };
    let folder = with_mix();
    let output = run(&folder, &world, &["--record", "run.json", "-p", "fifo"]);
    assert!(output.status.success(), "{}", err(&output));
    let record = record(&folder);
    assert_eq!(record["backend"], "sim");
    assert_eq!(record["machine"], "four CPUs on a bus");
    assert_eq!(record["setting"]["world"], *world);
    // Alone a job takes as long as it is given, and counts as its law says.
    let solo: Vec<&Value> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| &job["solo_s"])
        .collect();
    assert_eq!(solo, [2.0, 2.0, 1.5, 2.0, 2.0, 1.0]);
    let copy = &record["jobs"][2];
    assert_eq!(copy["counts"]["instructions"], 3_000_000_000_u64);
    assert_eq!(copy["counts"]["mm_reads"], 75_000_000);
    assert_eq!(
        record["jobs"][0]["mm_writes_absent"],
        "the counter hardware cannot count this event"
    );
    let page = cosched(&folder, &["report", "run.json", "--html", "run.html"]);
    assert!(page.status.success(), "{}", err(&page));
    let again = format!("--on '{world}' --policy fifo");
    assert!(read(&folder, "run.html").contains(&again));
}

#[test]
fn its_lines_are_as_the_schema_says() {
    let Some(world) = world() else { return };
    let folder = tempdir().expect("a folder");
    // A job that ends early, one that is killed, and one that fails.
    let jobs = [
        "work_s = 0.3, memory = 0.5",
        "work_s = 9.0",
        "work_s = 0.1, exit = { code = 3 }",
    ];
    let jobs = jobs.map(|given| format!("[[job]]\ngiven = {{ {given} }}\n"));
    write(&folder, "mix.toml", &jobs.concat());
    let inner = world.strip_prefix("cmd:").expect("a command");
    let tapped = format!("cmd:sh -c 'tee -a asked | {inner} | tee -a answered'");
    let words = ["--timeout", "1s", "--grace", "1s", "-p", "efs", "-q"];
    let output = run(&folder, &tapped, &words);
    assert_eq!(output.status.code(), Some(124), "{}", err(&output));
    let schemas = Schemas::read();
    for (file, kinds) in [
        (
            "asked",
            &["open", "add", "apply", "wait", "read", "kill"][..],
        ),
        ("answered", &["machine", "ok", "now", "usage"]),
    ] {
        let text = read(&folder, file);
        for line in text.lines() {
            let line = serde_json::from_str(line).expect("JSON");
            schemas.check("world-line.json", &line);
        }
        for kind in kinds {
            assert!(text.contains(&format!("\"{kind}\":")), "{file}: {kind}");
        }
    }
}

#[test]
fn its_runs_can_be_compared_asked_and_explained() {
    let Some(world) = world() else { return };
    let folder = with_mix();
    let words = ["compare", "mix.toml", "--on", &world, "-p", "linux,fifo"];
    let compared = cosched(&folder, &[&words[..], &["-r", "2"]].concat());
    assert!(compared.status.success(), "{}", err(&compared));
    assert!(out(&compared).contains("unfairness"), "{}", out(&compared));

    let files = ["--record", "run.json", "--events", "events", "-p", "even"];
    let output = run(&folder, &world, &files);
    assert!(output.status.success(), "{}", err(&output));
    let why = cosched(&folder, &["why", "wide", "run.json", "--at", "0.1"]);
    assert!(why.status.success(), "{}", err(&why));
    let decided = json(&cosched(
        &folder,
        &["decide", "events", "--seq", "2", "--format", "json"],
    ));
    assert_eq!(decided["same_as_recorded"], true);

    let plan = run(&folder, &world, &["--dry-run"]);
    let told = out(&plan);
    assert!(told.contains("four CPUs on a bus, CPUs 0-3"), "{told}");
    assert!(
        told.contains(r#"copy, given {"memory":0.5,"work_s":1.5}"#),
        "{told}"
    );
}

/// What is no world, or can't simulate this, is refused before anything is started.
#[test]
fn what_is_no_world_is_refused() {
    let folder = with_mix();
    for (on, more, code, told) in [
        ("cmd:", &[][..], 2, "there is no command"),
        (
            "cmd:false",
            &[],
            2,
            "`false` has ended without an answer; nothing was started",
        ),
        ("cmd:echo 5", &[], 2, "line 1 of its output: invalid type"),
        (
            r#"cmd:echo '{"error":"no licence"}'"#,
            &[],
            2,
            "reports an error: no licence; nothing was started",
        ),
        ("cmd:false", &["--polite"], 2, "--polite has no meaning"),
        ("i5-2500", &[], 2, "`stream#1`: has no program to simulate"),
        ("host", &[], 2, "`stream#1`: has no command to run"),
    ] {
        let output = run(&folder, on, more);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(code), "{on}: {said}");
        assert!(said.contains(told), "{on}: {said}");
    }
    let Some(world) = world() else { return };
    for (more, code, told) in [
        (
            &["--cpus", "2-4"][..],
            2,
            "not all of them exist on four CPUs on a bus",
        ),
        (
            &["--actuation", "plans"],
            3,
            "nothing here can carry out plans",
        ),
        (&["-p", "lucky"], 3, "all cores are of one type"),
    ] {
        let output = run(&folder, &world, more);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(told), "{more:?}: {said}");
    }
}

/// A world that goes wrong later ends the run, with the line that was wrong.
#[test]
fn a_world_that_goes_wrong_ends_the_run() {
    let Some(world) = world() else { return };
    let folder = with_mix();
    let inner = world.strip_prefix("cmd:").expect("a command");
    // What becomes of questions, and of answers.
    for (asked, answered, told) in [
        (
            "",
            "s/\"cpu_time\": /&1./",
            "usage[0].cpu_time: invalid type: floating point",
        ),
        ("", "s/\"now\": [0-9]*/\"now\": 9/", "now: 9 is before"),
        ("3q", "", "has ended"),
        ("5q", "", "has ended"),
    ] {
        let script = format!("sed -u {asked:?} | {inner} | sed -u -e \"$1\"");
        let on = format!("cmd:sh -c '{script}' sh '{answered}'");
        let output = run(&folder, &on, &["-p", "round-robin"]);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(1), "{told}: {said}");
        assert!(said.contains("the world can't go on"), "{told}: {said}");
        assert!(said.contains(told), "{told}: {said}");
    }
}

#[test]
fn a_job_that_fails_alone_is_told_and_has_no_slowdown() {
    let Some(world) = world() else { return };
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"bad\"\ngiven = { work_s = 0.1, exit = { code = 3 } }\n",
    );
    let output = run(&folder, &world, &["--record", "run.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let record = record(&folder);
    assert_eq!(record["jobs"][0]["solo_s"], Value::Null);
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("solo-failed"), "{warnings}");
}
