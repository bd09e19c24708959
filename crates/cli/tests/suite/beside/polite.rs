//! A run that steps back while others want CPUs.

use super::Killed;
use crate::common::looping::status;
use crate::common::{command, cosched, ended, err, one_cpu, out, read, until, write};
use cosched_linux::root::Root;
use std::fs::File;
use std::process::Command;
use tempfile::tempdir;

fn step_back(freeze: &str, policy: &str) {
    let folder = tempdir().expect("a folder");
    let cpu = one_cpu();
    let words = [
        "run", "--polite", "--cpus", &cpu, "--freeze", freeze, "--policy", policy,
    ];
    let endless = ["sh", "-c", "ulimit -t 60; while :; do :; done"];
    let job = ["--logs", "L", "--"];
    let mut run = command(folder.path(), &[&words[..], &job, &endless].concat());
    let run = run
        .stdout(File::create(folder.path().join("stdout")).expect("a file"))
        .stderr(File::create(folder.path().join("stderr")).expect("a file"));
    let mut run = Killed(run.spawn().expect("a run"));
    let pid = run.0.id().to_string();
    until("there is a state", || status(&pid).is_some());
    // The kernel divides a CPU between sessions (sched_autogroup), as the job and this one are. In the session of the tests it
    // would share that session's part with all that runs there, and get less than the quarter that counts.
    let other = Command::new("setsid")
        .args(["taskset", "-c", &cpu])
        .args(endless)
        .spawn();
    let _other = Killed(other.expect("setsid"));
    until("it has stepped back from its only CPU", || {
        status(&pid).is_some_and(|status| status["paused"] == true)
    });
    Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill");
    assert_eq!(ended(&mut run.0).code(), Some(130));
    let stderr = read(&folder, "stderr");
    for line in [
        "cosched: others want CPUs or memory: this run uses fewer CPUs, or pauses, until they want less (--polite)\n",
        "cosched: this run had stepped back for ",
    ] {
        assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
    }
    let record = read(&folder, "L/run.json");
    assert!(record.contains("\"stepped-back\"") && record.contains("\"steps-back\""));
}

#[test]
fn a_polite_run_pauses_where_others_want_its_only_cpu() {
    step_back("signals", "round-robin");
    step_back("signals", "linux");
    if cosched_linux::freezer_problem(&Root::default()).is_none() {
        step_back("cgroup", "round-robin");
    }
}

#[test]
fn where_it_means_nothing_it_is_refused() {
    let folder = tempdir().expect("a folder");
    write(&folder, "mix.toml", "[[job]]\nprogram = \"mcf\"\n");
    for option in ["--polite", "--jobserver"] {
        for (words, why) in [
            (
                ["--on", "xeon-e5645"],
                "has no meaning in a simulation (--on xeon-e5645); leave it out",
            ),
            (
                ["--actuator", "sched-ext"],
                "needs --actuator freezer; leave one of them out",
            ),
        ] {
            let all = [&["run", "mix.toml", option], &words[..]].concat();
            let output = cosched(&folder, &all);
            let told = (out(&output), err(&output), output.status.code());
            let error = format!("cosched: {option} {why}\n");
            assert_eq!(told, (String::new(), error, Some(2)));
        }
    }
}
