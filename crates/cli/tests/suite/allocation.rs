//! Runs in an allocation of Slurm, as its variables describe it. No Slurm is needed.

use crate::common::{command, ended, err, json, out, read, skipped, until, write};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;
use tempfile::{TempDir, tempdir};

/// Puts a program of Slurm into a folder in front of the real one.
fn stub(folder: &TempDir, name: &str, script: &str) {
    write(folder, name, &format!("#!/bin/sh\n{script}\n"));
    let file = folder.path().join(name);
    let set = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755));
    set.expect("permissions");
}

/// A call of cosched with these variables, each given as `JOB_ID=7` without `SLURM_`.
fn within(folder: &Path, variables: &str, words: &[&str]) -> Command {
    let mut command = command(folder, words);
    command.env_remove("COSCHED_CPUS");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    command.env("PATH", path);
    for (name, value) in variables.split(' ').filter_map(|pair| pair.split_once('=')) {
        command.env(format!("SLURM_{name}"), value);
    }
    command
}

fn cosched(folder: &TempDir, variables: &str, words: &[&str]) -> Output {
    let output = within(folder.path(), variables, words).output();
    output.expect("the binary runs")
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.expect("the host's name").trim_end().to_owned()
}

#[test]
fn plan_and_doctor_say_what_was_given() {
    let folder = tempdir().expect("a folder");
    const ONE: &str = "JOB_ID=7 CPUS_ON_NODE=1 MEM_PER_NODE=64 JOB_END_TIME=4102444800";
    let plan = ["run", "--dry-run", "true"];
    for words in [&["doctor"][..], &plan] {
        let told = out(&cosched(&folder, ONE, words));
        for part in [
            "Slurm job 7: 1 of ",
            "Slurm job 7: 64.0 MiB of memory (SLURM_MEM_PER_NODE)\n",
            "Slurm job 7: ends 2100-01-01T00:00:00Z; no job starts that is expected to end later\n",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!out(&cosched(&folder, "CPUS_ON_NODE=1", words)).contains("Slurm"));
    }
    let plan = ["run", "--dry-run", "--format", "json", "true"];
    let one = json(&cosched(&folder, ONE, &plan));
    let cpus = one["cpus"].as_str().expect("CPUs");
    assert!(cpus.parse::<u32>().is_ok(), "{cpus}");
    assert_eq!(one["mem_keep_bytes"], 64 * (1 << 20) / 20);
    stub(&folder, "squeue", "echo \"$@\" > asked; echo 1-00:00:00");
    let asked = json(&cosched(&folder, "JOB_ID=7", &plan));
    assert!(
        asked["slurm"][0]
            .as_str()
            .expect("a line")
            .contains(": ends 2"),
        "{asked}"
    );
    assert_eq!(read(&folder, "asked"), "--noheader --format=%L --jobs=7\n");
    stub(&folder, "squeue", "echo UNLIMITED");
    let unknown = json(&cosched(&folder, "JOB_ID=7", &plan));
    let line = "Slurm job 7: its end is unknown (no SLURM_JOB_END_TIME, and no answer of squeue)";
    assert_eq!(unknown["slurm"], serde_json::json!([line]));
    // The user's own list comes first.
    let all = cosched_linux::affinity(0).expect("the CPUs of this process");
    let listed = [&["run", "--cpus", "all"], &plan[1..]].concat();
    let listed = json(&cosched(&folder, ONE, &listed));
    assert_eq!(listed["cpus"], all.to_string());
}

#[test]
fn job_log_and_log_folder_name_the_host() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "--quiet", "--joblog", "J", "true"];
    for (variables, host) in [("JOB_ID=7", host()), ("", ":".to_owned())] {
        let output = cosched(&folder, variables, &words);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let log = read(&folder, "J");
        let line = log.lines().nth(1).expect("a job");
        assert_eq!(line.split('\t').nth(1), Some(&*host), "{variables}");
    }
    let logs = folder.path().join("cosched-logs").read_dir();
    let names = logs
        .expect("log folders")
        .map(|entry| entry.expect("a folder").file_name());
    let mut dashes: Vec<usize> = names
        .map(|name| name.to_string_lossy().matches('-').count())
        .collect();
    dashes.sort_unstable();
    assert_eq!(dashes, [2, 3 + host().matches('-').count()]);
}

/// The first run was on a node that nobody can reach.
#[test]
fn a_requeued_job_goes_on_from_a_dead_node() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--quiet",
        "--joblog",
        "J",
        "echo {} >> done",
        ":::",
        "a",
        "b",
    ];
    let output = cosched(&folder, "JOB_ID=7 CPUS_ON_NODE=1", &words);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    // As if it had been killed elsewhere after its first job.
    let log: Vec<String> = read(&folder, "J")
        .lines()
        .take(2)
        .map(str::to_owned)
        .collect();
    let runs = read(&folder, "J.runs").replace(&format!("\"{}\"", host()), "\"gone\"");
    std::fs::remove_dir_all(folder.path().join("cosched-logs")).expect("removed");
    let resume = [&words[..1], &["--resume"], &words[1..]].concat();
    let mut codes = Vec::new();
    for variables in [
        "",
        "JOB_ID=7",
        "JOB_ID=8 RESTART_COUNT=1",
        "JOB_ID=7 RESTART_COUNT=1",
    ] {
        write(&folder, "J", &format!("{}\n", log.join("\n")));
        write(&folder, "J.runs", &runs);
        write(&folder, "done", "");
        let output = cosched(&folder, variables, &resume);
        codes.push(output.status.code());
        let is_refused = err(&output).contains("can't be seen from here");
        assert_eq!(
            is_refused,
            output.status.code() == Some(2),
            "{variables}: {}",
            err(&output)
        );
        let done = read(&folder, "done");
        assert_eq!(
            done.lines().count(),
            usize::from(!is_refused),
            "{variables}"
        );
    }
    assert_eq!(codes, [Some(2), Some(2), Some(2), Some(0)]);
}

#[test]
fn a_job_that_would_end_after_the_allocation_is_left() {
    let folder = tempdir().expect("a folder");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let end = now.expect("a time").as_secs() + 600;
    let words = ["run", "--logs", "L", "-f", "-"];
    let mut run = within(
        folder.path(),
        &format!("JOB_ID=7 JOB_END_TIME={end}"),
        &words,
    );
    run.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut run = run.spawn().expect("the binary runs");
    let lines = "{\"argv\": [\"echo\", \"long\"], \"name\": \"long\", \"expected_s\": 5000}\n\
                 {\"argv\": [\"echo\", \"short\"], \"expected_s\": 1}\n\
                 {\"argv\": [\"echo\", \"unknown\"]}\n";
    let mut input = run.stdin.take().expect("a pipe");
    input.write_all(lines.as_bytes()).expect("written");
    drop(input);
    let output = run.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(75), "{}", err(&output));
    let told = err(&output);
    assert!(told.contains("2 succeeded, 1 not started in "), "{told}");
    assert!(
        told.contains("; the allocation ends too early for the others"),
        "{told}"
    );
    assert!(!out(&output).contains("long"));
    let record: serde_json::Value =
        serde_json::from_str(&read(&folder, "L/run.json")).expect("a record");
    crate::common::schema::Schemas::read().check("run.json", &record);
    assert_eq!(record["finished_by"], "allocation");
    let why = cosched(&folder, "", &["why", "long#1", "L"]);
    let told = out(&why);
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("is in the queue"), "{told}{}", err(&why));
    let why = "why: It is expected to take 1 h 23 min, and the allocation ends in ";
    assert!(told.contains(why) && !told.contains("latest"), "{told}");
}

#[test]
fn after_usr2_running_jobs_go_on_and_no_more_start() {
    let folder = tempdir().expect("a folder");
    let job = ": {}; touch begun; until test -e go; do sleep 0.01; done";
    let words = [
        "run", "--policy", "fifo", "--jobs", "1", job, ":::", "1", "2",
    ];
    let mut run = within(folder.path(), "", &words);
    let told = std::fs::File::create(folder.path().join("told")).expect("a file");
    let mut run = run.stderr(told).spawn().expect("the binary runs");
    until("the first job begins", || {
        folder.path().join("begun").exists()
    });
    let pid = Pid::from_child(&run);
    kill_process(pid, Signal::USR2).expect("it runs");
    let warning = "SIGUSR2: no more jobs are started; running jobs go on";
    until("the run hears it", || {
        read(&folder, "told").contains(warning)
    });
    write(&folder, "go", "");
    assert_eq!(ended(&mut run).code(), Some(75));
    let told = read(&folder, "told");
    assert!(told.contains("1 succeeded, 1 not started in "), "{told}");
    assert!(
        told.contains("; SIGUSR2 stopped further starts\nto continue: "),
        "{told}"
    );
}

/// Its coordinator is lost. Only a batch job that goes on without its script has to be started again.
#[test]
fn a_worker_asks_slurm_no_longer_than_the_batch_job_may_lack_its_script() {
    let folder = tempdir().expect("a folder");
    let jobs = [
        "JobState=RUNNING Restarts=0 BatchFlag=0",
        "JobState=RUNNING Restarts=1 BatchFlag=1",
        "JobState=COMPLETING Restarts=0 BatchFlag=1",
    ];
    for job in jobs {
        let answer = format!("echo asked >> asked; echo {job} NodeList=node1 BatchHost=node1");
        let script = format!("case $2 in hostnames) echo node1;; *) {answer};; esac");
        stub(&folder, "scontrol", &script);
        let variables = "JOB_ID=7 JOB_NODELIST=node1";
        let mut worker = within(folder.path(), variables, &["worker", "--"]);
        let output = worker.env("SLURMD_NODENAME", "node1").output();
        assert_eq!(output.expect("it runs").status.code(), Some(143), "{job}");
    }
    assert_eq!(read(&folder, "asked"), "asked\n".repeat(jobs.len()));
}

#[test]
fn no_policy_freezes_srun() {
    let folder = tempdir().expect("a folder");
    stub(&folder, "srun", "shift\nexec \"$@\"");
    let call = |words: &[&str]| cosched(&folder, "", words);
    let remote = ["srun", "-n1", "echo", "{}", ":::", "a", "b"];
    for policy in [&["--policy", "fifo"][..], &[]] {
        let output = call(&[&["run"], policy, &remote].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{policy:?}: {}",
            err(&output)
        );
    }
    let freezes = ["run", "--policy", "round-robin", "--freeze", "signals"];
    let here = call(&[&freezes[..], &["echo", "srun"]].concat());
    if here.status.code() != Some(0) {
        return skipped(&format!("no job can be frozen here: {}", err(&here)));
    }
    for line in [&remote[..], &["cd / && X=1 srun -n1 echo {}", ":::", "a"]] {
        let output = call(&[&freezes[..], line].concat());
        assert_eq!(
            (output.status.code(), out(&output)),
            (Some(3), String::new())
        );
        assert!(err(&output).contains("freezing `srun` would stop the client alone"));
    }
}
