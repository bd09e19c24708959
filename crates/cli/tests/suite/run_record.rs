//! The record of real runs: what tells runs apart, what jobs used, and what earlier runs did of a batch.

use crate::common::{command, cosched, err, json, out, read, write};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

#[test]
fn the_record_tells_runs_apart_that_differ_in_how_they_were_started() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"a\"\ncommand = \"true\"\n",
    );
    let record = |words: &[&str]| {
        json(&cosched(
            &folder,
            &[&["run", "--format", "json", "--logs", "L"], words].concat(),
        ))
    };
    let first = record(&[
        "mix.toml",
        "--policy",
        "fair",
        "--param",
        "quantum_s=0.1",
        "--halt",
        "soon,fail=50%",
        "--timeout",
        "1h",
    ]);
    let setting = &first["setting"];
    let words: Vec<&str> = setting["command_line"]
        .as_array()
        .expect("words")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(words[1..6], ["run", "--format", "json", "--logs", "L"]);
    let mix = folder
        .path()
        .canonicalize()
        .expect("a path")
        .join("mix.toml");
    assert_eq!(
        Path::new(setting["input"]["path"].as_str().expect("a path"))
            .canonicalize()
            .expect("it is there"),
        mix
    );
    let sum = Command::new("sha256sum")
        .arg(&mix)
        .output()
        .expect("sha256sum");
    assert!(out(&sum).starts_with(setting["input"]["sha256"].as_str().expect("a hash")));
    let told = |file: &str| {
        std::fs::read_to_string(file)
            .expect("a file of the kernel")
            .trim()
            .to_owned()
    };
    assert_eq!(setting["host"], told("/proc/sys/kernel/hostname"));
    assert_eq!(setting["kernel"], told("/proc/sys/kernel/osrelease"));
    let params = setting["params"].as_array().expect("parameters");
    let quantum = params
        .iter()
        .find(|param| param["name"] == "quantum_s")
        .expect("the quantum");
    assert_eq!(
        (quantum["value"].as_f64(), quantum["origin"].as_str()),
        (Some(0.1), Some("param"))
    );
    assert!(
        params.len() > 1
            && params
                .iter()
                .filter(|param| param["origin"] == "default")
                .count()
                == params.len() - 1
    );
    let options = &setting["options"];
    assert_eq!(
        (options["halt"].as_str(), options["timeout"].as_str()),
        (Some("soon,fail=50%"), Some("3600s"))
    );
    assert!(options["deadline_s"].is_null() && options["deadline_s_absent"] == "not given");
    assert!(options["mem_keep_bytes"].is_u64());
    assert!(
        first["run_id"]
            .as_str()
            .is_some_and(|run| run.split('-').count() == 3),
        "{first}"
    );
    // A profile, another mix, and a setting from the environment.
    write(&folder, "profile.toml", "[params]\nquantum_s = 0.3\n");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"a\"\ncommand = \"true \"\n",
    );
    let words = [
        "run",
        "--format",
        "json",
        "--logs",
        "L",
        "mix.toml",
        "--policy",
        "fair",
        "--profile",
        "profile.toml",
        "--mem-keep",
        "1K",
    ];
    let second = json(&cosched(&folder, &words));
    assert_ne!(
        second["setting"]["input"]["sha256"],
        setting["input"]["sha256"]
    );
    assert_ne!(second["run_id"], first["run_id"]);
    assert_eq!(second["setting"]["options"]["mem_keep_bytes"], 1024);
    let params = second["setting"]["params"].as_array().expect("parameters");
    assert!(
        params
            .iter()
            .any(|param| param["name"] == "quantum_s" && param["origin"] == "profile"),
        "{second}"
    );
    assert_eq!(
        (files(&first), files(&second)),
        (vec![], vec![hashed(&folder, "profile", "profile.toml")])
    );
    // A word that is no UTF-8, and jobs that come from no file.
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"a\xff'b".to_vec());
    let odd: std::ffi::OsString = odd;
    let mut words = command(
        folder.path(),
        &["run", "--format", "json", "--logs", "L", "true"],
    );
    let third = json(&words.arg(odd).output().expect("the binary runs"));
    let words = third["setting"]["command_line"].as_array().expect("words");
    assert_eq!(words.last().and_then(Value::as_str), Some("$'a\\377\\'b'"));
    assert!(
        third["setting"]["input"]["sha256"].is_null()
            && third["setting"]["input"]["kind"] == "command"
    );
}

/// The files of a record's setting: kind, name and hash.
fn files(record: &Value) -> Vec<[String; 3]> {
    let list = record["setting"]["files"]
        .as_array()
        .expect("a list")
        .iter();
    list.map(|file| {
        ["kind", "name", "sha256"].map(|key| file[key].as_str().expect("text").to_owned())
    })
    .collect()
}

/// What the setting should say of a file.
fn hashed(folder: &tempfile::TempDir, kind: &str, name: &str) -> [String; 3] {
    let sum = Command::new("sha256sum")
        .arg(folder.path().join(name))
        .output()
        .expect("sha256sum");
    let hash = out(&sum).split(' ').next().expect("a hash").to_owned();
    [kind.to_owned(), name.to_owned(), hash]
}

fn codes(record: &Value) -> Vec<&str> {
    let warnings = record["warnings"].as_array().expect("warnings").iter();
    warnings
        .filter_map(|warning| warning["code"].as_str())
        .collect()
}

#[test]
fn the_record_says_where_solo_times_are_from() {
    let folder = tempdir().expect("a folder");
    let run = |solo: &str, logs: &str| {
        json(&cosched(
            &folder,
            &[
                "run", "--solo", solo, "--logs", logs, "--format", "json", "sleep", "0.05",
            ],
        ))
    };
    let measured = run("measure", "M");
    let here = measured["machine"].as_str().expect("a name").to_owned();
    assert_eq!(files(&measured), Vec::<[String; 3]>::new());
    for file in ["M/solo-profiles.json", "M/solo.json", "M/run.json"] {
        let used = run(file, "L");
        assert_eq!(files(&used), [hashed(&folder, "solo", file)]);
        assert!(!codes(&used).contains(&"solo-other-machine"), "{used}");
        // The same file as if it came from a machine on which others ran.
        let mut changed: Value = serde_json::from_str(&read(&folder, file)).expect("JSON");
        changed["machine"] = "far away".into();
        if file == "M/solo-profiles.json" {
            assert_eq!(changed["disturbed"], false, "a short run is not judged");
            changed["disturbed"] = true.into();
        } else {
            changed["warnings"] = serde_json::json!([{"code": "solo-disturbed", "text": ""}]);
        }
        write(&folder, "changed.json", &changed.to_string());
        let used = run("changed.json", "L");
        assert!(codes(&used).contains(&"solo-disturbed"), "{file}: {used}");
        let warnings = used["warnings"].as_array().expect("warnings");
        let other = warnings
            .iter()
            .find(|warning| warning["code"] == "solo-other-machine")
            .expect("a warning");
        let text = other["text"].as_str().expect("a sentence");
        assert!(text.contains("far away") && text.contains(&here), "{text}");
    }
}

#[test]
fn disturbed_solo_runs_are_marked_wherever_their_times_go() {
    struct Busy(std::process::Child);
    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let folder = tempdir().expect("a folder");
    let busy = Busy(
        Command::new("sh")
            .args(["-c", "ulimit -t 60; while :; do :; done"])
            .spawn()
            .expect("a shell"),
    );
    let words = [
        "run", "--solo", "measure", "--logs", "L", "--format", "json", "sleep", "1.6",
    ];
    let record = json(&cosched(&folder, &words));
    drop(busy);
    let solo: Value = serde_json::from_str(&read(&folder, "L/solo.json")).expect("JSON");
    let figure = |key: &str| solo["machine_load"][key].as_f64().unwrap_or(0.0);
    let foreign = figure("foreign_cpus") > 0.1 && figure("foreign_share") > 0.02;
    if !foreign && figure("steal_share") <= 0.02 {
        println!("skipped, because the kernel does not tell of other load here");
        return;
    }
    assert_eq!(codes(&solo), ["solo-disturbed"], "{}", solo["warnings"]);
    assert!(
        codes(&record).contains(&"solo-disturbed"),
        "{}",
        record["warnings"]
    );
    let profiles: Value =
        serde_json::from_str(&read(&folder, "L/solo-profiles.json")).expect("JSON");
    assert_eq!(profiles["disturbed"], true);
    for file in ["L/solo-profiles.json", "L/solo.json", "L/run.json"] {
        let used = json(&cosched(
            &folder,
            &[
                "run", "--solo", file, "--logs", "N", "--format", "json", "true",
            ],
        ));
        assert!(
            codes(&used).contains(&"solo-disturbed"),
            "{file}: {}",
            used["warnings"]
        );
    }
}

#[test]
fn jobs_that_did_not_start_did_not_wait_between_placements() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--jobs",
        "1",
        "--halt",
        "now,fail=1",
        "--logs",
        "L",
        "--format",
        "json",
    ];
    let record = json(&cosched(
        &folder,
        &[&words[..], &["false", ":::", "1", "2"]].concat(),
    ));
    let job = &record["jobs"][1];
    assert!(
        job["waited_max_s"].is_null() && job["waited_max_s_absent"] == "did not start",
        "{job}"
    );
    assert!(
        record["jobs"][0]["waited_max_s"].as_f64().is_some(),
        "{record}"
    );
    // The table tells the time in the queue.
    let words = ["run", "-v", "--jobs", "1", "--logs", "L", "sleep"];
    let output = cosched(&folder, &[&words[..], &[":::", "0.1", "0.2"]].concat());
    let text = err(&output);
    let titles = text.lines().find(|line| line.starts_with("JOB "));
    assert!(
        titles.is_some_and(|titles| titles.contains("QUEUED")),
        "{text}"
    );
}

#[test]
fn memory_times_and_storage_of_jobs_are_told_of_the_attempt_that_counts() {
    let folder = tempdir().expect("a folder");
    let large = "dd if=/dev/zero of=/dev/null bs=64M count=2 2>&-";
    let busy = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    write(
        &folder,
        "list",
        &format!("{large}\n{busy}\ntest -e once || {{ touch once; {large}; exit 3; }}\n"),
    );
    for freeze in ["auto", "signals"] {
        let _ = std::fs::remove_file(folder.path().join("once"));
        let words = [
            "run",
            "-f",
            "list",
            "--freeze",
            freeze,
            "--retries",
            "2",
            "--format",
            "json",
            "--logs",
            "L",
        ];
        let record = json(&cosched(&folder, &words));
        let job = |ix: usize, key: &str| {
            record["jobs"][ix][key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {record}"))
        };
        assert!(job(0, "max_rss_bytes") > 60e6, "{record}");
        // What is no more than cosched's own is absent.
        let is_small = |ix: usize| {
            record["jobs"][ix]["max_rss_bytes"]
                .as_f64()
                .is_none_or(|rss| rss < 60e6)
        };
        assert!(is_small(1) && job(1, "user_s") > 0.0, "{record}");
        assert!(job(0, "system_s") > 0.0, "it filled memory");
        assert_eq!(job(2, "runs"), 2.0);
        assert!(is_small(2), "that was the attempt that failed: {record}");
        for ix in 0..3 {
            assert!(job(ix, "read_bytes") >= 0.0 && job(ix, "written_bytes") >= 0.0);
        }
    }
}

#[test]
fn the_record_says_how_far_the_run_had_the_machine_for_itself() {
    let folder = tempdir().expect("a folder");
    let record = json(&cosched(
        &folder,
        &["run", "--format", "json", "--logs", "L", "sleep", "0.3"],
    ));
    let load = &record["machine_load"];
    if let Some(why) = load["steal_share_absent"].as_str() {
        println!("skipped, because the machine's accounts can't be read: {why}");
        return;
    }
    let figure = |key: &str| {
        load[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key}: {record}"))
    };
    let cpus = record["machine_details"]["cpus"].as_f64().expect("CPUs");
    assert!(figure("cpu_s") > 0.2 * cpus, "{load}");
    assert!(
        (0.0..=1.0).contains(&figure("steal_share"))
            && (0.0..=1.0).contains(&figure("foreign_share")),
        "{load}"
    );
    assert!(
        (figure("foreign_cpus") - figure("foreign_share") * cpus).abs() < 1e-9,
        "{load}"
    );
}

#[test]
fn the_record_of_a_resumed_run_holds_all_jobs() {
    let folder = tempdir().expect("a folder");
    write(&folder, "list", "echo a\ntest -e fixed\necho b\n");
    let words = [
        "run", "-f", "list", "--joblog", "J", "--resume", "--logs", "L", "--format", "json",
    ];
    let first = json(&cosched(&folder, &words));
    assert_eq!(
        (
            first["metrics_over"].as_str(),
            first["totals"]["earlier"].as_u64()
        ),
        (Some("all-jobs"), Some(0))
    );
    write(&folder, "fixed", "");
    write(&folder, "list", "echo a\ntest -e fixed\necho b\nfalse\n");
    let second = json(&cosched(&folder, &words));
    let third = json(&cosched(&folder, &words));
    let commands = |record: &Value, list: &str| -> Vec<String> {
        let jobs = record[list].as_array().expect("jobs").iter();
        jobs.map(|job| job["command"].as_str().expect("a command").to_owned())
            .collect()
    };
    assert_eq!(commands(&second, "jobs"), ["test -e fixed", "false"]);
    assert_eq!(commands(&second, "earlier_jobs"), ["echo a", "echo b"]);
    assert_eq!(commands(&third, "jobs"), ["false"]);
    assert_eq!(
        commands(&third, "earlier_jobs"),
        ["echo a", "test -e fixed", "echo b"]
    );
    let runs: Vec<&Value> = third["earlier_jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| &job["run_id"])
        .collect();
    assert_eq!(
        runs,
        [&first["run_id"], &second["run_id"], &first["run_id"]]
    );
    for job in third["earlier_jobs"].as_array().expect("jobs") {
        let record: Value =
            serde_json::from_str(&read(&folder, job["record"].as_str().expect("a file")))
                .expect("JSON");
        assert_eq!(record["run_id"], job["run_id"]);
        assert!(
            Path::new(job["job"]["log"].as_str().expect("a file")).exists(),
            "{job}"
        );
        let same = record["jobs"]
            .as_array()
            .expect("jobs")
            .iter()
            .any(|of_run| of_run["start_s"] == job["job"]["start_s"]);
        assert!(
            same && job["exit"] == 0 && job["seq"].as_u64().is_some(),
            "{job}"
        );
    }
    assert_eq!(
        (
            third["metrics_over"].as_str(),
            third["totals"]["earlier"].as_u64()
        ),
        (Some("this-run"), Some(3))
    );
    let turnaround = third["metrics"]["turnaround_s"].as_f64().expect("a time");
    assert_eq!(
        third["jobs"][0]["end_s"].as_f64(),
        Some(turnaround),
        "of this run alone"
    );
    // Where only the job log is left, it tells what it knows.
    std::fs::remove_file(folder.path().join("J.runs")).expect("it was there");
    let fourth = json(&cosched(&folder, &words));
    let job = &fourth["earlier_jobs"][0];
    assert!(
        job["job"].is_null() && job["run_id_absent"] == "no record of its run was found",
        "{job}"
    );
    assert!(
        job["runtime_s"].as_f64().is_some()
            && job["started_at"].as_str().is_some()
            && job["exit"] == 0,
        "{job}"
    );
}

/// Whoever ends well because he is told to has not done his work.
#[test]
fn a_job_that_ran_out_of_its_time_is_no_success() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "-q",
        "--timeout",
        "0.2",
        "--record",
        "r.json",
        "trap 'exit 0' TERM; sleep 600 & wait",
    ];
    assert_eq!(cosched(&folder, &words).status.code(), Some(124));
    let record: Value = serde_json::from_str(&read(&folder, "r.json")).expect("JSON");
    let (totals, job) = (&record["totals"], &record["jobs"][0]);
    assert_eq!(
        [
            &totals["succeeded"],
            &totals["failed"],
            &totals["timed_out"]
        ],
        [0, 1, 1],
        "{totals}"
    );
    assert_eq!(
        (job["exit"].as_i64(), job["timed_out"].as_bool()),
        (Some(143), Some(true)),
        "{job}"
    );
    assert_eq!(
        record["metrics"]["stp_absent"], "the job failed",
        "{record}"
    );
    // Nor is it a time alone.
    let words = [
        "run",
        "--solo",
        "r.json",
        "trap 'exit 0' TERM; sleep 600 & wait",
    ];
    assert_eq!(cosched(&folder, &words).status.code(), Some(2));
}

/// A file that is not there is no log.
#[test]
fn jobs_that_never_started_have_no_logs() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "-q",
        "-j",
        "1",
        "--halt",
        "now,fail=1",
        "--record",
        "r.json",
        "false",
        ":::",
        "a",
        "b",
    ];
    cosched(&folder, &words);
    let record: Value = serde_json::from_str(&read(&folder, "r.json")).expect("JSON");
    let logs: Vec<bool> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["log"].is_string())
        .collect();
    assert_eq!(logs, [true, false], "{record}");
    assert_eq!(record["jobs"][1]["log_absent"], "did not start");
}
