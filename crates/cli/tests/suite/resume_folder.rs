//! `--resume=RUN`: a batch goes on in its log folder.

use crate::common::{command, cosched, ended, err, out, read, until, write};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

/// Job 1 ends at once, 2 and 3 wait for the file `go`, and 4 for one of them.
const BATCH: [&str; 8] = [
    "-j2",
    "--policy=linux",
    "echo begin {}; touch began-{}; [ {} = 'a 1' ] || until [ -e go ]; do sleep 0.01; done; echo end {}",
    ":::",
    "a 1",
    "a 2",
    "a 3",
    "a 4",
];

fn start(folder: &TempDir) -> Child {
    let mut run = command(folder.path(), &[&["run"], &BATCH[..]].concat());
    run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().expect("it runs");
    until("jobs 2 and 3 run", || {
        ["began-a 2", "began-a 3"].map(|file| folder.path().join(file).exists()) == [true; 2]
    });
    run
}

/// The only log folder, from the folder of the test.
fn logs(folder: &TempDir) -> String {
    let mut all = folder.path().join("cosched-logs").read_dir().expect("logs");
    let name = all.next().expect("a log folder").expect("an entry");
    assert!(all.next().is_none(), "one log folder");
    format!("cosched-logs/{}", name.file_name().to_string_lossy())
}

fn send(run: &Child, signal: Signal) {
    kill_process(Pid::from_child(run), signal).expect("it runs");
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Checks that the outputs of all four jobs are whole, in the log folder itself, and that the record is of all jobs.
fn check_outputs(folder: &TempDir, logs: &str) {
    let record = read(folder, &format!("{logs}/run.json"));
    let record: Value = serde_json::from_str(&record).expect("a record");
    let mut files: Vec<PathBuf> = Vec::new();
    for (key, number) in [("jobs", 3), ("earlier_jobs", 1)] {
        let jobs = record[key].as_array().expect("a list");
        assert_eq!(jobs.len(), number, "{key}: {record}");
        for job in jobs {
            let job = if key == "jobs" { job } else { &job["job"] };
            files.push(job["log"].as_str().expect("a file").into());
        }
    }
    let mut shown = String::new();
    for file in files {
        let place = file.parent().expect("a folder").canonicalize();
        let expected = folder.path().join(logs).canonicalize();
        assert_eq!(place.expect("a folder"), expected.expect("a folder"));
        shown += &std::fs::read_to_string(file).expect("output");
    }
    let all = (1..=4).map(|job| format!("begin a {job}\nend a {job}\n"));
    assert_eq!(lines(&shown), lines(&all.collect::<String>()));
}

const REST: &str = "begin a 2\nbegin a 3\nbegin a 4\nend a 2\nend a 3\nend a 4\n";

/// What is printed after Ctrl-C goes on with the batch when it is pasted.
#[test]
fn an_interrupted_run_says_how_it_goes_on() {
    let folder = tempdir().expect("a folder");
    let run = start(&folder);
    send(&run, Signal::INT);
    let run = run.wait_with_output().expect("it ends");
    assert_eq!(run.status.code(), Some(130), "{}", err(&run));
    let shown = ["begin a 1", "begin a 2", "begin a 3", "end a 1"];
    assert_eq!(lines(&out(&run)), shown);
    let told = err(&run);
    assert!(!told.contains("/4] "), "the user ended the jobs: {told}");
    let last = told.lines().last().expect("a line");
    let pasted = last.strip_prefix("to continue: ").expect("a command");
    let logs = logs(&folder);
    assert!(
        pasted.ends_with(&format!("cosched run --resume={logs}")),
        "{pasted}"
    );
    write(&folder, "go", "");
    let mut shell = Command::new("sh");
    crate::common::without_settings(&mut shell).env("COSCHED_LOGS", "elsewhere");
    shell.args(["-c", pasted]).current_dir(folder.path());
    let resumed = shell.output().expect("sh");
    assert_eq!(resumed.status.code(), Some(0), "{}", err(&resumed));
    assert_eq!(lines(&out(&resumed)), lines(REST));
    assert!(
        err(&resumed).contains("1 done earlier"),
        "{}",
        err(&resumed)
    );
    assert!(!err(&resumed).contains("to continue"), "{}", err(&resumed));
    check_outputs(&folder, &logs);
    let again = shell.output().expect("sh");
    assert_eq!((again.status.code(), out(&again).as_str()), (Some(0), ""));
    let nothing = "cosched: all 4 jobs succeeded before; nothing is left to run\n";
    assert_eq!(err(&again), nothing);
}

#[test]
fn a_killed_run_goes_on() {
    let folder = tempdir().expect("a folder");
    let mut run = start(&folder);
    let is_done = |logs: &str| read(&folder, &format!("{logs}/joblog")).lines().count() == 2;
    until("job 1 is done", || is_done(&logs(&folder)));
    send(&run, Signal::KILL);
    assert_eq!(ended(&mut run).code(), None);
    let logs = logs(&folder);
    let resume = format!("--resume={logs}");
    let refused = cosched(&folder, &["run", &resume]);
    assert_eq!(
        (refused.status.code(), out(&refused)),
        (Some(2), String::new())
    );
    let told = err(&refused);
    assert!(told.contains("choose with --orphans"), "{told}");
    write(&folder, "go", "");
    let words = ["run", &resume, "--orphans", "kill", "-j1"];
    let resumed = cosched(&folder, &words);
    assert_eq!(resumed.status.code(), Some(0), "{}", err(&resumed));
    assert_eq!(lines(&out(&resumed)), lines(REST));
    check_outputs(&folder, &logs);
    let record = read(&folder, &format!("{logs}/run.json"));
    let record: Value = serde_json::from_str(&record).expect("a record");
    let options = &record["setting"]["options"];
    let found = (&options["jobs_at_once"], &options["policy"]);
    assert_eq!(found, (&1.into(), &"linux".into()), "{options}");
}

/// The line can be pasted whatever the words are, and needs the folder in which the run began.
#[test]
fn a_run_goes_on_with_the_words_that_began_it() {
    let folder = tempdir().expect("a folder");
    write(&folder, "values", "a b\n$(touch marker)\nit's\n");
    let line = "echo \"<{}>\"; [ -e go ]";
    let options = [
        "--logs=a log",
        "--wd=.",
        "-a",
        "values",
        "--tagstring",
        "'{#}",
    ];
    let halt = ["-j1", "--order=given", "--halt=now,fail=1"];
    let run = cosched(&folder, &[&["run"][..], &options, &halt, &[line]].concat());
    assert_eq!(
        (out(&run).as_str(), run.status.code()),
        ("'1\t<a b>\n", Some(1))
    );
    let told = err(&run);
    let last = told.lines().last().expect("a line");
    let pasted = last.strip_prefix("to continue: ").expect("a command");
    assert!(pasted.ends_with(" run '--resume=a log'"), "{pasted}");
    let elsewhere = tempdir().expect("a folder");
    let here = folder.path().display();
    let resume = format!("--resume={here}/a log");
    let refused = cosched(&elsewhere, &["run", &resume]);
    assert_eq!(refused.status.code(), Some(2));
    let told = err(&refused);
    assert!(
        told.ends_with(
            "the run began in another folder; first cd {here}\n"
                .replace("{here}", &here.to_string())
                .as_str()
        ),
        "{told}"
    );
    let refused = cosched(&elsewhere, &["run", "--resume=no"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = err(&refused);
    assert!(
        told.contains("the jobs of this run are not known: no/series.jsonl: "),
        "{told}"
    );
    write(&folder, "go", "");
    let mut shell = Command::new("sh");
    crate::common::without_settings(&mut shell);
    let resumed = shell
        .args(["-c", pasted])
        .current_dir(folder.path())
        .output();
    let resumed = resumed.expect("sh");
    assert_eq!(resumed.status.code(), Some(0), "{}", err(&resumed));
    let expected = "'1\t<a b>\n'2\t<$(touch marker)>\n'3\t<it's>\n";
    assert_eq!(out(&resumed), expected);
    assert!(!folder.path().join("marker").exists());
}

/// Without a log folder the whole command line is needed.
#[test]
fn a_run_without_a_log_folder_goes_on_by_its_job_log() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--no-logs",
        "--joblog=J",
        "--halt",
        "now,fail=1",
        "false",
        "a b",
    ];
    let run = cosched(&folder, &words);
    let told = err(&run);
    let last = told.lines().last().expect("a line");
    let whole = "cosched run --resume --no-logs --joblog=J --halt now,fail=1 false 'a b'";
    assert!(
        last.starts_with("to continue: ") && last.ends_with(whole),
        "{last}"
    );
}

/// The output of each attempt is kept, and that of a job that is done stays in its place.
#[test]
fn failed_jobs_run_again_as_often_as_the_user_resumes() {
    let folder = tempdir().expect("a folder");
    let run = |option: &str| -> Output {
        let line = "date +%N; test {} = good";
        let words = ["run", "-q", "-j1", option, line, ":::", "good", "bad"];
        cosched(&folder, &words)
    };
    let mut shown = out(&run("--logs=L"));
    assert_eq!(shown.lines().count(), 2);
    let record: Value = serde_json::from_str(&read(&folder, "L/run.json")).expect("a record");
    let [good, bad] = [0, 1].map(|job| {
        let file = Path::new(record["jobs"][job]["log"].as_str().expect("a file"));
        file.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    });
    for _ in 0..2 {
        let again = run("--resume=L");
        assert_eq!((again.status.code(), err(&again)), (Some(1), String::new()));
        shown += &out(&again);
    }
    let files = [
        format!("L/{good}"),
        format!("L/earlier-1/{bad}"),
        format!("L/earlier-2/{bad}"),
        format!("L/{bad}"),
    ];
    assert_eq!(files.map(|file| read(&folder, &file)).concat(), shown);
    // Another batch in the same folder puts everything aside.
    let other = cosched(&folder, &["run", "-q", "--logs=L", "true"]);
    assert_eq!((other.status.code(), err(&other)), (Some(0), String::new()));
    assert!(!folder.path().join("L").join(&good).exists());
    assert!(shown.starts_with(&read(&folder, &format!("L/earlier-3/{good}"))));
}

#[test]
fn what_can_not_be_resumed_is_refused() {
    let folder = tempdir().expect("a folder");
    write(&folder, "L/run.json", "{}");
    write(&folder, "N/joblog", "");
    for (words, told) in [
        (
            &["--resume", "L", "true"][..],
            "write --resume=L to resume the run of this folder",
        ),
        (
            &["--resume", "true"],
            "name the log folder of the run, as in --resume=cosched-logs/",
        ),
        (
            &["--resume=L", "true"],
            "there is no L/joblog; give the log folder of a run",
        ),
        (
            &["--resume=M", "true"],
            "there is no M/joblog; give the log folder of a run",
        ),
        (
            &["--resume=L", "--logs", "M", "true"],
            "--logs names another; leave --logs out",
        ),
        (
            &["--resume=N", "--joblog", "X", "true"],
            "--joblog X: the run to resume has its job log in N/joblog; leave --joblog out",
        ),
        (
            &["--resume=L", "--no-logs", "true"],
            "leave one of them out",
        ),
    ] {
        let run = cosched(&folder, &[&["run"], words].concat());
        assert_eq!((run.status.code(), out(&run).as_str()), (Some(2), ""));
        assert!(err(&run).contains(told), "{words:?}: {}", err(&run));
        assert_eq!(err(&run).lines().count(), 1, "{}", err(&run));
    }
    let left = folder.path().read_dir().expect("a folder");
    assert_eq!(left.count(), 2, "nothing was made");
}

/// Without its values the command would be one job, which the batch never had.
#[test]
fn a_batch_of_other_values_is_not_resumed() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--logs", "L", "echo", ":::", "a", "b"];
    assert_eq!(cosched(&folder, &words).status.code(), Some(0));
    let other = cosched(&folder, &["run", "--resume=L", "echo"]);
    let told = "cosched: --resume: no job of this command line is in L/joblog; give the same command line, and the same values on standard input; nothing was started\n";
    let shown = (other.status.code(), out(&other), err(&other));
    assert_eq!(shown, (Some(2), String::new(), told.to_owned()));
}

/// The values of a pipe are not in the folder.
#[test]
fn a_batch_without_its_values_is_not_resumed() {
    let folder = tempdir().expect("a folder");
    write(&folder, "values", "0\n1\n");
    let values = std::fs::File::open(folder.path().join("values")).expect("the values");
    let mut first = command(folder.path(), &["run", "-q", "--logs", "L", "exit {}"]);
    let first = first.stdin(values).output().expect("it runs");
    assert_eq!(first.status.code(), Some(1), "{}", err(&first));
    let empty = cosched(&folder, &["run", "--resume=L"]);
    assert_eq!(empty.status.code(), Some(2), "{}", err(&empty));
    let why = "--resume: there are no values; give the values of the run";
    assert!(err(&empty).contains(why), "{}", err(&empty));
}

/// Its words would be carried out by whoever resumes it.
#[test]
fn the_words_of_another_user_are_not_carried_out() {
    let folder = tempdir().expect("a folder");
    let first = cosched(
        &folder,
        &["run", "-q", "--logs", "L", "--", "touch", "made"],
    );
    assert!(first.status.success(), "{}", err(&first));
    let series = folder.path().join("L/series.jsonl");
    if std::os::unix::fs::chown(series, Some(65_534), None).is_err() {
        return crate::common::skipped("only root may give files away");
    }
    let refused = cosched(&folder, &["run", "--resume=L"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = "another user has written its series";
    assert!(err(&refused).contains(why), "{}", err(&refused));
}
