//! Policies and worlds in processes of their own.

mod world;

use crate::common::schema::{self, Schemas};
use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, json, out, read};
use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;

/// Whether there is a Python; else a test is skipped.
fn has_python() -> bool {
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if !has_python {
        println!("skipped, because there is no python3");
    }
    has_python
}

/// The command of the policy, which goes wrong in this way; `None`, with a word, where there is no Python.
pub(crate) fn policy(wrong: &str) -> Option<String> {
    if !has_python() {
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/foreign/policy.py");
    Some(format!("cmd:python3 {script} {wrong}"))
}

fn simulate(folder: &TempDir, policy: &str, name: &str) -> std::process::Output {
    let (record, events) = (format!("{name}.json"), format!("{name}.jsonl"));
    let words = ["run", "mix.toml", "--on", MACHINE, "--policy", policy];
    let files = ["--record", &record, "--events", &events];
    cosched(folder, &[&words[..], &files].concat())
}

fn record(folder: &TempDir, name: &str) -> Value {
    serde_json::from_str(&read(folder, name)).expect("a record")
}

#[test]
fn a_simulation_is_the_same_each_time_and_is_repeated_without_the_process() {
    let Some(policy) = policy("nothing") else {
        return;
    };
    let folder = with_mix();
    for name in ["once", "again"] {
        let run = simulate(&folder, &policy, name);
        assert!(run.status.success(), "{}", err(&run));
    }
    assert_eq!(read(&folder, "once.json"), read(&folder, "again.json"));
    let replay = simulate(&folder, "events:once.jsonl", "replay");
    assert!(replay.status.success(), "{}", err(&replay));
    assert_eq!(read(&folder, "once.jsonl"), read(&folder, "replay.jsonl"));
    let (mut once, mut replay) = (record(&folder, "once.json"), record(&folder, "replay.json"));
    assert_eq!(once["policy"], "least-progress");
    assert_eq!(once["overhead"]["policy_faults"], 0);
    assert!(once["overhead"]["decisions"].as_u64() > Some(20), "{once}");
    // The word for the policy differs, and a limit that no job met does not show in the events.
    for record in [&mut once, &mut replay] {
        for option in ["policy", "jobs_at_once"] {
            record["setting"]["options"][option] = Value::Null;
        }
    }
    assert_eq!(once, replay);
}

/// Another seed makes another situation, and then round-robin decides.
#[test]
fn a_replay_of_another_run_says_so() {
    let Some(policy) = policy("nothing") else {
        return;
    };
    let folder = with_mix();
    simulate(&folder, &policy, "once");
    let words = ["run", "mix.toml", "--on", "i5-2500", "--policy"];
    let run = cosched(&folder, &[&words[..], &["events:once.jsonl"]].concat());
    let told = err(&run);
    assert!(run.status.success(), "{told}");
    let expected = "the recorded decision 0 answers another situation); round-robin decided";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn its_lines_are_as_the_schema_says() {
    let Some(policy) = policy("confuses") else {
        return;
    };
    let folder = with_mix();
    let inner = policy.strip_prefix("cmd:").expect("a command");
    let tapped = format!("cmd:sh -c 'tee -a asked | {inner} | tee -a answered'");
    let run = simulate(&folder, &tapped, "tapped");
    assert!(run.status.success(), "{}", err(&run));
    let schemas = Schemas::read();
    for (file, kinds) in [
        ("asked", &["describe", "begin", "snapshot", "refused"][..]),
        ("answered", &["name", "decision"]),
    ] {
        let text = read(&folder, file);
        for line in text.lines() {
            let line = serde_json::from_str(line).expect("JSON");
            schemas.check("policy-line.json", &line);
        }
        for kind in kinds {
            assert!(text.contains(&format!("\"{kind}\":")), "{file}: {kind}");
        }
    }
}

#[test]
fn whatever_goes_wrong_round_robin_decides_and_the_jobs_end() {
    for (wrong, faults, told) in [
        ("crashes", 2.., "` has ended without an answer)"),
        ("hangs", 1.., "` has not answered within 0.3 s)"),
        ("floods", 1.., "` has not answered within 0.3 s)"),
        ("forgets", 1.., "ran nothing in 50 decisions, and "),
        ("talks", 1.., "line 3 of its output: expected value"),
        ("confuses", 1.., "task #99 is unknown or has ended"),
        (
            "misspells",
            1..,
            "decision.wake_at: unknown field `wake_at`",
        ),
    ] {
        let Some(policy) = policy(wrong) else {
            return;
        };
        let folder = with_mix();
        let jobs = ["--", "sleep", "{}", ":::", "0.5", "0.6", "0.7", "1.9", "2"];
        let words = [
            "run", "-j5", "--cpus", "0", "--policy", &policy, "--record", "run.json",
        ];
        let run = cosched(&folder, &[&words[..], &jobs].concat());
        let said = err(&run);
        assert_eq!(run.status.code(), Some(0), "{wrong}: {said}");
        let record = record(&folder, "run.json");
        let count = record["overhead"]["policy_faults"]
            .as_u64()
            .expect("a number");
        assert!(faults.contains(&count), "{wrong}: {count}");
        let warnings = record["warnings"].as_array().expect("a list");
        let of_policy: Vec<&Value> = warnings
            .iter()
            .filter(|warning| warning["code"] == "policy-fault")
            .collect();
        assert_eq!(of_policy.len(), 1, "{wrong}: {warnings:?}");
        let text = of_policy[0]["text"].as_str().expect("a sentence");
        assert!(text.contains(told), "{wrong}: {text}");
        let refused = said.contains("refused: task #99 is unknown or has ended");
        assert_eq!(refused, wrong == "confuses", "{said}");
    }
}

/// What is no policy is refused before anything starts.
#[test]
fn what_describes_no_policy_is_refused() {
    let folder = with_mix();
    for (command, told) in [
        ("false", "`false` has ended without an answer"),
        ("echo 5", "line 1 of its output: invalid type: integer `5`"),
        (r#"echo "{}""#, "missing field `name`"),
        (
            r#"echo '{"name":"even"}'"#,
            "name: `even` is the name of another policy",
        ),
        (
            r#"echo '{"name":"x","needs":["ipx"]}'"#,
            "there is no capability `ipx`",
        ),
        (
            r#"echo '{"name":"x","params":{"k":{"default":5,"max":4}}}'"#,
            "params.k: 5 is not from",
        ),
    ] {
        let run = simulate(&folder, &format!("cmd:{command}"), "run");
        assert_eq!(run.status.code(), Some(2), "{command}");
        assert!(err(&run).contains(told), "{command}: {}", err(&run));
    }
}

/// A policy names what it needs by the codes of the schema.
#[test]
fn every_capability_of_the_schema_can_be_needed() {
    let file = std::fs::read_to_string(schema::folder().join("event.json")).expect("a schema");
    let schema: Value = serde_json::from_str(&file).expect("JSON");
    let codes = schema["$defs"]["capability"]["enum"]
        .as_array()
        .expect("a list");
    for code in codes.iter().filter_map(Value::as_str) {
        let capability = cosched_core::Capability::of_code(code).expect(code);
        assert_eq!(capability.code(), code);
    }
}

#[test]
fn its_parameters_are_checked_like_others() {
    let Some(policy) = policy("nothing") else {
        return;
    };
    let folder = with_mix();
    for (param, told) in [
        ("k=10", "expected a number from 1 to 9"),
        ("mode=c", "expected a or b"),
        ("depth=1", "has no parameter `depth`"),
    ] {
        let words = ["run", "mix.toml", "--on", MACHINE, "--policy", &policy];
        let run = cosched(&folder, &[&words[..], &["--param", param]].concat());
        assert!(err(&run).contains(told), "{param}: {}", err(&run));
    }
}

/// The state and the generator that `decide` gives back are those of the next decision: from any language, decisions can
/// be chained.
#[test]
fn decisions_can_be_chained() {
    for policy in ["even", "perf-fair", "efs", "fair"] {
        let folder = with_mix();
        let run = simulate(&folder, policy, "run");
        assert!(run.status.success(), "{}", err(&run));
        let events: Vec<Value> = read(&folder, "run.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).expect("an event"))
            .collect();
        for seq in [0, 5, 10] {
            let words = ["decide", "run.jsonl", "--format", "json", "--seq"];
            let decided = cosched(&folder, &[&words[..], &[&seq.to_string()]].concat());
            let decided = json(&decided);
            let next = &events[seq + 1];
            assert_eq!(decided["same_as_recorded"], true, "{policy} {seq}");
            assert_eq!(decided["policy_state"], next["policy_state"], "{policy}");
            assert_eq!(decided["rng"], next["rng"], "{policy}");
        }
    }
}

#[test]
fn it_stands_beside_others_in_a_comparison() {
    let Some(policy) = policy("nothing") else {
        return;
    };
    let folder = with_mix();
    let words = ["compare", "mix.toml", "--on", MACHINE, "--reps", "2"];
    let policies = format!("round-robin,{policy}");
    let run = cosched(&folder, &[&words[..], &["--policies", &policies]].concat());
    assert!(run.status.success(), "{}", err(&run));
    assert!(out(&run).contains("\nleast-progress "), "{}", out(&run));
}

#[test]
fn a_good_policy_conforms_and_a_bad_one_does_not() {
    let folder = with_mix();
    for (wrong, code) in [("nothing", 0), ("confuses", 1)] {
        let Some(policy) = policy(wrong) else {
            return;
        };
        let scenarios = ["masks", "repeats", "many_jobs_on_i5-2500"];
        let words = [&["conform", "--policy", &policy][..], &scenarios].concat();
        let run = cosched(&folder, &words);
        assert_eq!(
            run.status.code(),
            Some(code),
            "{}\n{}",
            out(&run),
            err(&run)
        );
        let told = out(&run).contains("FAILED\nat 0");
        assert_eq!(told, wrong == "confuses", "{}", out(&run));
        let reason = out(&run).contains("task #99 is unknown or has ended");
        assert_eq!(reason, wrong == "confuses", "{}", out(&run));
    }
    let run = cosched(
        &folder,
        &["conform", "--on", "i5-2500", "--jobs", "mix.toml"],
    );
    assert!(err(&run).contains("a world is a command"), "{}", err(&run));
}
