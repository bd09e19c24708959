//! Limits on the run, its jobs, its CPUs and its memory: `--deadline`, CPU quotas and `--mem-keep`.

use crate::common::{command, cosched, err, json, out, skipped, until, write};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::{TempDir, tempdir};

/// How the run ended, without its time.
fn headline(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines
        .find(|line| line.contains(" succeeded"))
        .expect("a summary");
    let (jobs, rest) = line.split_once(" in ").expect("jobs and their time");
    let (_, how) = rest.split_once("; ").expect("how they ended");
    format!("{jobs}; {how}")
}

#[test]
fn at_the_deadline_the_run_ends_with_124() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--policy",
        "fifo",
        "--jobs",
        "1",
        "--deadline",
        "0.3",
        "--logs",
        "logs",
        "--output",
        "group",
        "echo {}; exec sleep {}",
        ":::",
        "1000",
        "2000",
        "3000",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(out(&output), "1000\n");
    let told = err(&output);
    let warning = "cosched: the deadline has passed: no more jobs are started, and running jobs are asked to end\n";
    assert!(told.contains(warning), "{told}");
    assert_eq!(
        headline(&told),
        "0 succeeded, 1 interrupted, 2 not started; the deadline ended the run"
    );
    let record = crate::common::read(&folder, "logs/run.json");
    let record: Value = serde_json::from_str(&record).expect("a record");
    crate::common::schema::Schemas::read().check("run.json", &record);
    assert_eq!(record["finished_by"], "deadline");
    assert_eq!(record["setting"]["options"]["deadline_s"], 0.3);
}

#[test]
fn a_deaf_job_is_killed_after_the_grace_period_and_a_deadline_in_time_changes_nothing() {
    let folder = tempdir().expect("a folder");
    let deaf = "trap '' TERM; echo on; while :; do sleep 1; done";
    let words = [
        "run",
        "--quiet",
        "--deadline",
        "0.3",
        "--grace",
        "0.1",
        "--output",
        "group",
    ];
    let output = cosched(&folder, &[&words[..], &["--", "sh", "-c", deaf]].concat());
    assert_eq!(
        (output.status.code(), out(&output), err(&output)),
        (Some(124), "on\n".to_owned(), String::new())
    );
    let words = [
        "run",
        "--quiet",
        "--deadline",
        "1h",
        "--output",
        "group",
        "echo",
        "done",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(
        (output.status.code(), out(&output), err(&output)),
        (Some(0), "done\n".to_owned(), String::new())
    );
    for wrong in ["0", "soon"] {
        let output = cosched(&folder, &["run", "--deadline", wrong, "true"]);
        assert_eq!(
            (output.status.code(), out(&output)),
            (Some(2), String::new())
        );
        assert!(err(&output).contains("expected a duration above zero"));
    }
}

#[test]
fn a_simulation_has_a_deadline_too() {
    let folder = tempdir().expect("a folder");
    let mix = "[[job]]\nname = \"lbm\"\nprogram = \"lbm\"\ncopies = 3\n";
    write(&folder, "mix.toml", mix);
    let words = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--cpus",
        "0",
        "--policy",
        "fifo",
        "--deadline",
        "50s",
        "--no-logs",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(output.status.code(), Some(124));
    assert!(
        err(&output).contains("the deadline has passed"),
        "{}",
        err(&output)
    );
    assert_eq!(out(&output), "");
    assert_eq!(
        headline(&err(&output)),
        "simulated: 0 succeeded, 1 interrupted, 2 not started; the deadline ended the run"
    );
    let record = json(&cosched(
        &folder,
        &[&words[..], &["--format", "json"]].concat(),
    ));
    assert_eq!(record["finished_by"], "deadline");
    assert_eq!(record["metrics"]["turnaround_s"], 50.0);
    assert_eq!(record["totals"]["unfinished"], 2);
}

#[test]
fn the_help_tells_the_limits_on_time_apart() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["help", "run"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    let text = out(&output);
    for part in [
        "End a job after this time; pauses do not count",
        "End the whole run after this time",
        "Limit on live jobs; 0 for all",
        "Start no job while less memory than this is available",
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part}");
    }
}

/// A cgroup with a quota on CPU time, which is removed with the test.
struct Quota(PathBuf);

impl Quota {
    /// A group that may use this many CPUs' time; `None` where none can be made.
    fn new(hundredths: u32) -> Option<Quota> {
        let name = format!("cosched-test-{}-{hundredths}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu").join(&name);
        let v2 = Path::new("/sys/fs/cgroup").join(&name);
        let us = hundredths * 1_000;
        let v1 = Quota::make(v1, "cpu.cfs_quota_us", &us.to_string());
        let made = v1.or_else(|_| Quota::make(v2, "cpu.max", &format!("{us} 100000")));
        match made {
            Ok(quota) => Some(quota),
            Err(error) => {
                eprintln!("skipped, because no cgroup with a CPU quota can be made: {error}");
                None
            }
        }
    }

    fn make(folder: PathBuf, file: &str, limit: &str) -> std::io::Result<Quota> {
        std::fs::create_dir(&folder)?;
        let quota = Quota(folder);
        let limit_file = std::fs::OpenOptions::new()
            .write(true)
            .open(quota.0.join(file));
        std::io::Write::write_all(&mut limit_file?, limit.as_bytes())?;
        Ok(quota)
    }

    /// Runs cosched in the group.
    fn cosched(&self, folder: &TempDir, words: &[&str]) -> Output {
        let mut inner = command(folder.path(), words);
        inner.env_remove("COSCHED_CPUS");
        let mut outer = Command::new("/bin/sh");
        outer
            .arg("-c")
            .arg("echo $$ > \"$0/cgroup.procs\" && exec \"$@\"");
        outer
            .arg(&self.0)
            .arg(inner.get_program())
            .args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        outer
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null());
        outer.output().expect("the binary runs")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        until("the group is empty", || {
            std::fs::remove_dir(&self.0).is_ok()
        });
    }
}

#[test]
fn a_cpu_quota_bounds_the_number_of_cpus() {
    let cpus = cosched_linux::affinity(0)
        .expect("the CPUs of this process")
        .len();
    if cpus < 2 {
        return eprintln!("skipped, because there is only one CPU");
    }
    let (Some(one), Some(more)) = (Quota::new(100), Quota::new(cpus as u32 * 100 - 50)) else {
        return;
    };
    let folder = tempdir().expect("a folder");
    let plan = ["run", "--dry-run", "true"];
    let limit = format!("1 of {cpus} CPUs: the cgroup's quota is 1.0\n");
    let output = one.cosched(&folder, &plan);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    assert!(out(&output).contains(&limit), "{}", out(&output));
    let output = one.cosched(&folder, &["doctor"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    assert!(
        out(&output).contains(&format!("\n{limit}")),
        "{}",
        out(&output)
    );
    for words in [
        &["doctor", "--format", "json"][..],
        &["run", "--dry-run", "--format", "json", "true"],
    ] {
        let answer = json(&one.cosched(&folder, words));
        assert_eq!(answer["cpu_quota"], limit.trim(), "{words:?}");
    }
    let job = ["run", "--quiet", "--format", "json", "--no-logs", "true"];
    let used = |quota: &Quota, words: &[&str]| {
        json(&quota.cosched(&folder, &[&job[..1], words, &job[1..]].concat()))["machine_details"]
            ["cpus"]
            .as_u64()
    };
    assert_eq!(used(&one, &[]), Some(1));
    assert_eq!(used(&one, &["--cpus", "all"]), Some(cpus as u64));
    // The quota is rounded up, and so it is no limit.
    assert!(!out(&more.cosched(&folder, &plan)).contains("quota"));
}

/// Starts jobs of unknown memory, each of which waits for the others: `jobs` are live at once.
fn crowd(folder: &TempDir, words: &[&str], jobs: usize) -> Output {
    let line = "echo > began.{}; until [ $(ls began.* | wc -l) -ge 4 ]; do sleep 0.02; done";
    let names: Vec<String> = (0..jobs).map(|job| job.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cpus = two_cpus();
    let run = ["run", "--quiet", "--no-logs", "--cpus", &cpus];
    cosched(folder, &[&run[..], words, &[line, ":::"], &names].concat())
}

/// Two CPUs as a list, or one if there is only one.
fn two_cpus() -> String {
    let cpus = cosched_linux::affinity(0).expect("the CPUs of this process");
    let two: Vec<String> = cpus.iter().take(2).map(|cpu| cpu.0.to_string()).collect();
    two.join(",")
}

#[test]
fn two_jobs_a_cpu_are_live_under_a_policy_that_pauses() {
    let cpus = two_cpus().split(',').count();
    let folder = tempdir().expect("a folder");
    let plan = [
        "run",
        "--dry-run",
        "--cpus",
        &two_cpus(),
        "--policy",
        "round-robin",
        "true",
        ":::",
        "a",
    ];
    let output = cosched(&folder, &plan);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    let text = out(&output);
    let live = format!("1 (at most {} live at once)\n", 2 * cpus);
    assert!(text.contains(&live), "{text}");
    assert!(text.contains(" is free (--mem-keep)\n"), "{text}");
    let none = [&plan[..2], &["--mem-keep", "0"], &plan[2..]].concat();
    assert!(!out(&cosched(&folder, &none)).contains("--mem-keep"));
    // These end only once four are live.
    if cpus == 2 {
        let output = crowd(&folder, &["--policy", "round-robin"], 4);
        assert_eq!(
            (output.status.code(), out(&output), err(&output)),
            (Some(0), String::new(), String::new())
        );
    }
}

#[test]
fn memory_that_is_never_free_delays_no_run_for_ever() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--mem-keep",
        "1000000G",
        "--policy",
        "fifo",
        "--no-logs",
        "--output",
        "group",
        "echo",
        ":::",
        "a",
        "b",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(
        (output.status.code(), out(&output)),
        (Some(0), "a\nb\n".to_owned())
    );
    let told = err(&output);
    let short = " is started though memory is short: no other job runs\n";
    assert!(told.contains(short), "{told}");
    assert_eq!(told.matches("memory is short").count(), 1, "{told}");
}

#[test]
fn the_memory_to_keep_is_a_twentieth() {
    let folder = tempdir().expect("a folder");
    let keep = |words: &[&str]| {
        let run = [
            &["run", "--quiet", "--no-logs", "--format", "json"],
            words,
            &["true"],
        ]
        .concat();
        json(&cosched(&folder, &run))["setting"]["options"]["mem_keep_bytes"].as_u64()
    };
    let memory = cosched_linux::meminfo::read(&cosched_linux::root::Root::default());
    let memory = memory.expect("the memory of this machine").allowed();
    assert_eq!(keep(&[]), Some(memory / 20));
    assert_eq!(keep(&["--mem-keep", "64K"]), Some(64 << 10));
    assert_eq!(keep(&["--mem-keep", "0"]), Some(0));
}

#[test]
fn the_plan_tells_of_the_trial_of_fewer_at_once() {
    let folder = tempdir().expect("a folder");
    let plan = |jobs: &str| {
        let words = [
            "run",
            "--dry-run",
            "--policy",
            "fifo",
            "--jobs",
            jobs,
            "true",
            ":::",
            "a",
            "b",
        ];
        out(&cosched(&folder, &words))
    };
    let fifo = out(&cosched(&folder, &["list", "policies", "fifo"]));
    assert!(fifo.contains("--jobs auto"), "{fifo}");
    if own_machine_has_several_domains() {
        return skipped("this machine has several memory domains");
    }
    let tried = "try whether fewer at once end sooner";
    assert!(plan("auto").contains(tried), "{}", plan("auto"));
    assert!(!plan("2").contains(tried), "{}", plan("2"));
}

fn own_machine_has_several_domains() -> bool {
    Path::new("/sys/devices/system/node/node1").exists()
}
