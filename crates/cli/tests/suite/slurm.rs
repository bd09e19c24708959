//! `cosched slurm` where there is no Slurm.

use crate::common::schema::Schemas;
use crate::common::{command, cosched, err, out, read, write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::{TempDir, tempdir};

#[test]
fn the_script_runs_the_jobs_as_they_were_given() {
    let folder = tempdir().expect("a folder");
    let options = ["slurm", "-c2", "-t", "90m", "-A", "a b", "--dry-run", "-k"];
    let job = [
        "--logs", "a 'b' $c", "printf", "%s|", "it's {}", "$x\n\\", ":::", "1 2", "*",
    ];
    let script = cosched(&folder, &[&options[..], &job].concat());
    let script = out(&script);
    for line in [
        "#SBATCH --time=1:30:00",
        "#SBATCH '--account=a b'",
        "#SBATCH --cpus-per-task=2",
    ] {
        assert!(script.contains(line), "{script}");
    }
    assert!(!folder.path().join("a 'b' $c").exists());
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &script]).current_dir(folder.path());
    let output = crate::common::without_settings(shell)
        .output()
        .expect("a shell");
    assert_eq!(
        out(&output),
        "it's 1 2|$x\n\\|it's *|$x\n\\|",
        "{}",
        err(&output)
    );
    assert!(folder.path().join("a 'b' $c/joblog").exists());
}

#[test]
fn without_slurm_nothing_is_submitted_or_left() {
    let folder = tempdir().expect("a folder");
    let mut slurm = command(folder.path(), &["slurm", "true", ":::", "1"]);
    let output = slurm
        .env("PATH", "/nonexistent")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(
        err(&output).contains("can't start sbatch"),
        "{}",
        err(&output)
    );
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
}

#[test]
fn options_that_mean_nothing_in_a_batch_job_are_refused() {
    let folder = tempdir().expect("a folder");
    for (words, why) in [
        (&["--resume", "-f", "x"][..], "a requeued job resumes"),
        (&["--on=xeon-e5645", "-f", "x"], "needs no batch job"),
        (&["gzip", "-k"], "no standard input"),
        (&["-f", "x"], "x: "),
    ] {
        let output = cosched(&folder, &[&["slurm"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(err(&output).contains(why), "{}", err(&output));
    }
}

/// As Slurm does where a node can't start the script.
#[test]
fn success_is_what_the_record_says() {
    let folder = tempdir().expect("a folder");
    program(&folder, "scontrol", "echo JobState=COMPLETED ExitCode=0:0");
    let follow = |logs: &str, list: &str, sbatch: &str| {
        program(&folder, "sbatch", &format!("{sbatch}\necho 7"));
        write(&folder, "list", list);
        let words = ["slurm", "--wait", "--logs", logs, "-f", "list"];
        let mut slurm = command(folder.path(), &words);
        let path = std::env::var("PATH").expect("a path");
        let bin = folder.path().join("bin");
        slurm.env("PATH", format!("{}:{path}", bin.display()));
        let output = slurm.output().expect("the binary runs");
        (output.status.code(), err(&output))
    };
    let runs = "test $1 = --version || sh $2 >/dev/null 2>&1";
    let (code, told) = follow("none", "true\nfalse\n", "");
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("0 of 2 jobs ended") && told.contains("left no record"),
        "{told}"
    );
    let (code, told) = follow("failed", "true\nfalse\n", runs);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("1 job failed or did not end"), "{told}");
    let (code, told) = follow("good", "true\ntrue\n", runs);
    assert_eq!(code, Some(0), "{told}");
}

/// Makes a program of a shell script.
fn program(folder: &TempDir, name: &str, script: &str) {
    let name = format!("bin/{name}");
    write(folder, &name, &format!("#!/bin/sh\n{script}\n"));
    let path = folder.path().join(name);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its mode");
}

/// The accounts of Slurm are those of a script.
#[test]
fn a_report_says_what_a_batch_job_asked_for_and_used() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "--logs", "L", "--", "true"];
    let mut run = command(folder.path(), &words);
    run.env("SLURM_JOB_ID", "7").env("SLURM_JOB_NUM_NODES", "4");
    run.env("SLURM_JOB_CPUS_PER_NODE", "2(x3),4")
        .env("SLURM_MEM_PER_NODE", "2048");
    let output = run.output().expect("the binary runs");
    assert!(output.status.success(), "{}", err(&output));
    let record = serde_json::from_str(&read(&folder, "L/run.json")).expect("a record");
    Schemas::read().check("run.json", &record);

    let report = |sacct: &str| {
        program(&folder, "sacct", sacct);
        let mut report = command(folder.path(), &["report", "L"]);
        out(&report
            .env("PATH", folder.path().join("bin"))
            .output()
            .expect("the binary runs"))
    };
    let text = report("echo 4200");
    assert!(text.contains("energy of Slurm job 7: 4200 J"), "{text}");
    let asked = "Slurm job 7 asked for 10 CPUs on 4 nodes for ";
    assert!(
        text.contains(asked) && text.contains("asked for 2.00 GiB a node"),
        "{text}"
    );
    let text = report("echo accounting storage is disabled >&2\nexit 1");
    assert!(
        text.contains("not known (sacct: accounting storage is disabled)"),
        "{text}"
    );
}
