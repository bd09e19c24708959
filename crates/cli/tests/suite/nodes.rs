//! Runs over nodes, here of workers on this machine.

use crate::common::{command, cosched, ended, err, out, skipped, until};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

/// A run over two nodes whose jobs are these words.
fn over_nodes(folder: &TempDir, words: &[&str]) -> Command {
    let first = ["run", "--nodes", "local:2", "--logs", "logs"];
    command(folder.path(), &[&first[..], words].concat())
}

fn run(folder: &TempDir, words: &[&str]) -> Output {
    over_nodes(folder, words).output().expect("it runs")
}

fn start(folder: &TempDir, words: &[&str]) -> Child {
    over_nodes(folder, words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// The columns of the job log, without its header.
fn joblog(folder: &TempDir) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.path().join("logs/joblog")).unwrap_or_default();
    let columns = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().skip(1).map(columns).collect()
}

/// The numbers of the jobs that succeeded, in ascending order.
fn succeeded(folder: &TempDir) -> Vec<u32> {
    let log = joblog(folder);
    let ok = log.iter().filter(|line| line[6] == "0" && line[7] == "0");
    let mut numbers: Vec<u32> = ok.map(|line| line[0].parse().expect("a number")).collect();
    numbers.sort_unstable();
    numbers
}

/// The processes whose command line has this word.
fn processes(word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_own = pid == std::process::id() as i32;
        if !is_own && String::from_utf8_lossy(&line).contains(word) {
            found.push(pid);
        }
    }
    found
}

fn kill(pid: i32, signal: &str) {
    let done = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(done.expect("kill runs").success());
}

fn children(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let numbers = children.split_whitespace();
    numbers
        .map(|child| child.parse().expect("a number"))
        .collect()
}

/// The children of a process that are workers.
fn workers(run: &Child) -> Vec<i32> {
    let all = processes("worker");
    children(run.id() as i32)
        .into_iter()
        .filter(|child| all.contains(child))
        .collect()
}

/// A word that no other process has.
fn unique(folder: &TempDir) -> String {
    let name = folder.path().file_name().expect("a name");
    name.to_string_lossy().replace('.', "")
}

#[test]
fn output_order_and_files_are_those_of_one_run() {
    let folder = tempdir().expect("a folder");
    let script = "echo $0; echo err $0 >&2; printf '\\377'";
    let output = run(
        &folder,
        &["-k", "sh", "-c", script, ":::", "a", "b", "c", "d"],
    );
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(output.stdout, b"a\n\xffb\n\xffc\n\xffd\n\xff");
    assert!(err(&output).contains("err c\n"), "{}", err(&output));
    assert_eq!(succeeded(&folder), [1, 2, 3, 4]);
    let mut hosts: Vec<String> = joblog(&folder)
        .into_iter()
        .map(|line| line[1].clone())
        .collect();
    hosts.sort();
    hosts.dedup();
    let logs = folder.path().join("logs");
    for host in hosts {
        let node = logs.join(&host);
        assert!(host.starts_with("local"), "{host}");
        let text =
            String::from_utf8_lossy(&fs::read(node.join("output")).expect("output")).into_owned();
        assert!(
            text.starts_with("== sh#") || text.starts_with("== "),
            "{text}"
        );
        assert!(node.join("run.json").exists() && node.join("series.jsonl").exists());
    }
    let files = fs::read_dir(&logs).expect("a folder").count();
    assert!(files <= 8, "no file for each job: {files}");
    let table = cosched(&folder, &["report", "logs", "--format", "csv"]);
    let table = out(&table);
    let titles = table.lines().next().unwrap_or_default();
    let node = titles.split(',').position(|title| title == "node");
    let node = node.expect("a column");
    for row in table.lines().skip(1) {
        let node = row.split(',').nth(node).unwrap_or_default();
        assert!(node.starts_with("local"), "{row}");
    }
}

#[test]
fn failures_retries_and_time_limits_are_those_of_one_run() {
    let folder = tempdir().expect("a folder");
    let output = run(
        &folder,
        &["--retries", "2", "sh", "-c", "exit $0", ":::", "0", "3"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("retrying"), "{}", err(&output));
    assert_eq!(succeeded(&folder), [1]);
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["--timeout", "100ms", "sleep", ":::", "1000"]);
    assert_eq!(output.status.code(), Some(124), "{}", err(&output));
    let output = run(&folder, &["--cpus-per-job", "3000", "true", ":::", "1"]);
    assert_ne!(output.status.code(), Some(0), "{}", out(&output));
    fs::write(folder.path().join("plain"), "").expect("a file");
    for (program, code) in [("no-such-program-anywhere", 127), ("./plain", 126)] {
        let output = run(&folder, &["--", program]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
    }
}

#[test]
fn an_interrupt_ends_all_jobs_and_all_workers() {
    let folder = tempdir().expect("a folder");
    let word = unique(&folder);
    let script =
        format!("trap 'exit 3' TERM; touch started-$0; while :; do sleep 0.05; done # {word}");
    let mut child = start(&folder, &["sh", "-c", &script, ":::", "1", "2"]);
    until("both jobs run", || {
        ["started-1", "started-2"]
            .iter()
            .all(|name| folder.path().join(name).exists())
    });
    kill(child.id() as i32, "-INT");
    assert_eq!(ended(&mut child).code(), Some(130));
    until("nothing is left", || processes(&word).is_empty());
}

/// Writes a list of jobs that are sent ahead: all claim to be short. The first ones run this line, and the others are 16 a node.
fn write_ahead(folder: &TempDir, first: usize, line: &str) {
    let job = |line: &str| format!("{{\"command\": \"{line}\", \"expected_s\": 0.001}}\n");
    let jobs = job(line).repeat(first) + &job("touch done.$$").repeat(32);
    fs::write(folder.path().join("list"), jobs).expect("a file");
}

#[test]
fn jobs_behind_a_long_one_go_to_another_node() {
    let folder = tempdir().expect("a folder");
    write_ahead(
        &folder,
        1,
        "until ls done.* | grep -c . | grep -qx 32; do sleep 0.05; done",
    );
    let output = run(&folder, &["-j1", "-f", "list"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(!err(&output).contains("lost"), "{}", err(&output));
    assert_eq!(succeeded(&folder), (1..=33).collect::<Vec<_>>());
    assert_eq!(joblog(&folder).len(), 33);
}

#[test]
fn jobs_that_had_not_begun_have_no_line() {
    let folder = tempdir().expect("a folder");
    write_ahead(&folder, 2, "touch begun.$$; sleep 1000");
    let mut child = start(&folder, &["-j1", "-f", "list"]);
    until("both nodes are taken", || {
        let files = fs::read_dir(folder.path()).expect("a folder").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("begun.")).count() == 2
    });
    kill(child.id() as i32, "-INT");
    assert!(!ended(&mut child).success());
    let log = joblog(&folder).into_iter();
    let mut jobs: Vec<String> = log.map(|line| line[0].clone()).collect();
    jobs.sort();
    assert_eq!(jobs, ["1", "2"]);
}

#[test]
fn the_jobs_of_a_lost_node_run_on_another_and_succeed_once() {
    let folder = tempdir().expect("a folder");
    let script = "touch started-$0; while [ ! -e go ]; do sleep 0.05; done; echo $0";
    let mut child = start(&folder, &["sh", "-c", script, ":::", "1", "2", "3", "4"]);
    until("a job runs", || folder.path().join("started-1").exists());
    let workers = workers(&child);
    assert_eq!(workers.len(), 2);
    kill(workers[0], "-KILL");
    fs::write(folder.path().join("go"), "").expect("a file");
    assert!(ended(&mut child).success());
    assert_eq!(succeeded(&folder), [1, 2, 3, 4]);
    assert_eq!(joblog(&folder).len(), 4);
    let output = child.wait_with_output().expect("output");
    assert!(err(&output).contains("is lost"), "{}", err(&output));
}

#[test]
fn a_job_that_is_wider_than_all_nodes_that_are_left_waits_for_another_run() {
    let cpus = cosched_linux::affinity(0).expect("some CPUs");
    if cpus.len() < 2 {
        return skipped("no node can be wider than another one on a single CPU");
    }
    let folder = tempdir().expect("a folder");
    let exe = env!("CARGO_BIN_EXE_cosched");
    let script = format!(
        "case \"$*\" in *' wide -- '*) all=all;; *) all={};; esac; exec {exe} worker -- --cpus=$all",
        cpus.first().expect("one").0
    );
    let ssh = fake(folder.path(), &script);
    let wide = r#"{"command": "touch begun; test -e go || sleep 1000", "cpus": 2}"#;
    let list = format!("{wide}\n{wide}\necho narrow\n");
    fs::write(folder.path().join("list"), list).expect("a file");
    let words = [
        "run",
        "--nodes",
        "ssh:wide,narrow",
        "--logs",
        "logs",
        "--joblog",
        "logs/joblog",
        "--resume",
        "-f",
        "list",
    ];
    let call = || {
        let mut call = command(folder.path(), &words);
        call.env("PATH", &ssh)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        call
    };
    let mut child = call().spawn().expect("it runs");
    until("a wide job runs", || folder.path().join("begun").exists());
    let mut workers = workers(&child);
    workers.retain(|&worker| {
        let line = fs::read_to_string(format!("/proc/{worker}/cmdline"));
        line.expect("it lives").contains("--cpus=all")
    });
    kill(workers[0], "-KILL");
    let code = ended(&mut child).code();
    let told = child.wait_with_output().expect("output");
    let told = err(&told);
    assert_eq!(code, Some(75), "{told}");
    let why = "It needs 2 CPUs at once, and no node that is left has more than 1";
    assert!(
        told.contains("jobs are left for --resume") && told.contains(why),
        "{told}"
    );
    assert_eq!(succeeded(&folder), [3]);
    fs::write(folder.path().join("go"), "").expect("a file");
    let output = call().output().expect("it runs");
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(succeeded(&folder), [1, 2, 3]);
}

/// Slurm ends a job step, or a node shuts down: all runs there get SIGTERM.
#[test]
fn a_node_that_ends_gives_its_jobs_to_others_and_the_last_leaves_them() {
    let folder = tempdir().expect("a folder");
    let script = "touch started-$0; while [ ! -e go ]; do sleep 0.05; done";
    let words = ["sh", "-c", script, ":::", "1", "2"];
    let mut child = start(&folder, &words);
    until("both jobs run", || {
        ["started-1", "started-2"]
            .iter()
            .all(|name| folder.path().join(name).exists())
    });
    for worker in workers(&child) {
        for run in children(worker) {
            kill(run, "-TERM");
        }
    }
    assert_eq!(ended(&mut child).code(), Some(75));
    assert_eq!(succeeded(&folder), [0; 0]);
    let output = child.wait_with_output().expect("output");
    assert!(err(&output).contains("to continue"), "{}", err(&output));
    fs::write(folder.path().join("go"), "").expect("a file");
    let output = run(&folder, &[&["--resume=logs"][..], &words].concat());
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(succeeded(&folder), [1, 2]);
}

#[test]
fn a_killed_run_leaves_no_process_and_goes_on() {
    let folder = tempdir().expect("a folder");
    let word = unique(&folder);
    let script = format!("test $0 = 1 || test -e go || sleep 1000; echo $0 # {word}");
    let words = ["sh", "-c", &script, ":::", "1", "2", "3"];
    let mut child = start(&folder, &words);
    until("the first has ended", || succeeded(&folder) == [1]);
    kill(child.id() as i32, "-KILL");
    ended(&mut child);
    until("nothing is left", || processes(&word).is_empty());
    fs::write(folder.path().join("go"), "").expect("a file");
    let output = run(&folder, &[&["--resume=logs"][..], &words].concat());
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(succeeded(&folder), [1, 2, 3]);
    assert_eq!(joblog(&folder).len(), 3);
}

#[test]
fn without_a_node_there_is_an_error_that_says_what_to_do() {
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["--on", "xeon-e5645", "true", ":::", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    let mut slurm = command(folder.path(), &["run", "--nodes", "slurm", "true"]);
    let output = slurm
        .env_remove("SLURM_JOB_NODELIST")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("no Slurm allocation"),
        "{}",
        err(&output)
    );
    let ssh = fake(
        folder.path(),
        "echo 'Permission denied (publickey).' >&2; exit 255",
    );
    let mut remote = command(folder.path(), &["run", "--nodes", "ssh:a,b", "true"]);
    let output = remote.env("PATH", ssh).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(
        err(&output).contains("Permission denied"),
        "{}",
        err(&output)
    );
}

/// ssh gives its words to a shell on the other host.
#[test]
fn ssh_leads_to_a_worker() {
    let folder = tempdir().expect("a folder");
    let exe = env!("CARGO_BIN_EXE_cosched");
    let script = format!(
        "while [ \"$1\" != -- ]; do shift; done; shift; line=$(echo \"$*\" | sed 's,^exec cosched,exec {exe},'); exec sh -c \"$line\""
    );
    let ssh = fake(folder.path(), &script);
    let mut run = command(
        folder.path(),
        &["run", "--nodes", "ssh:a,b", "echo", ":::", "x y", "z"],
    );
    let output = run.env("PATH", ssh).output().expect("it runs");
    assert!(output.status.success(), "{}", err(&output));
    let mut lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["x y", "z"]);
}

#[test]
fn a_node_that_is_late_is_left_out() {
    let folder = tempdir().expect("a folder");
    let exe = env!("CARGO_BIN_EXE_cosched");
    let script =
        format!("case \"$*\" in *' late -- '*) exec sleep 1000;; esac; exec {exe} worker --");
    let ssh = fake(folder.path(), &script);
    let words = ["run", "--nodes", "ssh:early,late", "echo", ":::", "1", "2"];
    let output = command(folder.path(), &words).env("PATH", ssh).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", err(&output));
    let warning = "node late is not used: no answer in time";
    assert!(err(&output).contains(warning), "{}", err(&output));
}

/// A `PATH` with an ssh that is this script.
fn fake(folder: &Path, script: &str) -> String {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let ssh = bin.join("ssh");
    fs::write(&ssh, format!("#!/bin/sh\n{script}\n")).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&ssh, mode).expect("a mode");
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", bin.display())
}
