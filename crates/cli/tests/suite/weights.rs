//! Weights and niceness of the jobs in a mix file.

use crate::common::{command, cosched, ended, err, json, one_cpu, out, read, until, write};
use serde_json::Value;
use std::process::Stdio;
use tempfile::{TempDir, tempdir};

/// The time in ms that the first and the second job have had a CPU since the second began, by the series so far.
fn placed_ms(folder: &TempDir) -> [u64; 2] {
    let mut placed = [0, 0];
    let mut both = false;
    let series = std::fs::read_to_string(folder.path().join("logs/series.jsonl"));
    for line in series.unwrap_or_default().lines().skip(1) {
        let row: Value = serde_json::from_str(line).unwrap_or_default();
        let (Some(task), Some(interval)) = (row[2].as_u64(), row[3].as_u64()) else {
            continue;
        };
        both |= task == 1;
        if row[0] == "s" && both {
            placed[task as usize] += interval / 1_000_000;
        }
    }
    placed
}

#[test]
fn jobs_share_a_cpu_by_weight() {
    let spin = "command = \"while [ -e going ]; do :; done\"";
    let mix = format!(
        "[[job]]\nname = \"light\"\n{spin}\n[[job]]\nname = \"heavy\"\nweight = 4.0\n{spin}\n"
    );
    for policy in ["round-robin", "fair"] {
        let folder = tempdir().expect("a folder");
        write(&folder, "mix.toml", &mix);
        write(&folder, "going", "");
        let words = [
            "run",
            "mix.toml",
            "--policy",
            policy,
            "--param",
            "quantum_s=0.02",
            "--cpus",
        ];
        let mut run = command(folder.path(), &words)
            .args([&one_cpu(), "--quiet", "--logs", "logs"])
            .stdout(Stdio::null())
            .spawn()
            .expect("a run");
        until("the second job has had about four times as much", || {
            let [light, heavy] = placed_ms(&folder);
            // The first has had about ten turns.
            light > 200 && 2 * heavy > 5 * light && heavy < 6 * light
        });
        std::fs::remove_file(folder.path().join("going")).expect("a file");
        assert!(ended(&mut run).success());
        let record: Value =
            serde_json::from_str(&read(&folder, "logs/run.json")).expect("a record");
        assert_eq!(record["jobs"][1]["weight"], 4.0);
        assert_eq!(record["jobs"][0]["weight"], Value::Null);
    }
}

#[test]
fn a_job_of_a_mix_has_its_own_niceness() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\ncommand = \"nice\"\nnice = 3\n[[job]]\ncommand = \"nice\"\n",
    );
    let words = [
        "run",
        "mix.toml",
        "--nice",
        "7",
        "--quiet",
        "--keep-order",
        "--output",
        "group",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(
        (out(&output), err(&output)),
        ("3\n7\n".to_owned(), String::new())
    );
}

/// Jobs whose weights are 335 / 1024 by niceness, 2, and 1.
const MIX: &str = "[[job]]\nname = \"nice\"\nprogram = \"povray\"\nnice = 5\nwork_instructions = 4e9\n\
                   [[job]]\nname = \"both\"\nprogram = \"povray\"\nnice = 5\nweight = 2\nwork_instructions = 4e9\n\
                   [[job]]\nname = \"usual\"\nprogram = \"povray\"\nwork_instructions = 4e9\n";

#[test]
fn niceness_is_a_weight_unless_one_is_given() {
    let folder = tempdir().expect("a folder");
    write(&folder, "mix.toml", MIX);
    let run = |policy: &str| {
        let words = [
            "run",
            "mix.toml",
            "--on",
            "epyc-2cpu",
            "--jobs",
            "3",
            "--cpus",
            "0",
            "--logs",
            policy,
        ];
        let output = cosched(
            &folder,
            &[&words[..], &["--format", "json", "-q", "-p", policy]].concat(),
        );
        let record = json(&output);
        let weights = [0, 1, 2].map(|job: usize| record["jobs"][job]["weight"].as_f64());
        let warnings = record["warnings"].as_array().cloned().unwrap_or_default();
        let unused = warnings
            .iter()
            .filter(|warning| warning["code"] == "weights-unused")
            .count();
        let jobs = record["jobs"].as_array().cloned().unwrap_or_default();
        let mut order: Vec<(f64, String)> = Vec::new();
        for job in jobs {
            let finish = job["end_s"].as_f64().expect("an end");
            order.push((finish, job["name"].as_str().unwrap_or_default().to_owned()));
        }
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        let order: Vec<String> = order.into_iter().map(|(_, name)| name).collect();
        (weights, unused, order.join(" "))
    };
    let by_weight = [Some(335.0 / 1024.0), Some(2.0), None];
    assert_eq!(
        run("round-robin"),
        (by_weight, 0, "both usual nice".to_owned())
    );
    // The kernel knows of niceness only.
    let (weights, unused, order) = run("linux");
    assert_eq!((weights, unused), ([None; 3], 1));
    assert!(order.starts_with("usual"), "{order}");
    let why = cosched(&folder, &["why", "both", "--at", "300ms", "round-robin"]);
    assert!(
        out(&why).contains("\n  weight: 2\n"),
        "{}{}",
        out(&why),
        err(&why)
    );
}
