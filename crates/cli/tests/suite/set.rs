//! Live changes of a run: `cosched set`.

use crate::common::looping::status;
use crate::common::{command, cosched, ended, err, out, read, runs_dir, until, write};
use cosched_linux::root::Root;
use cosched_linux::{RunRequest, live_runs};
use std::fs::File;
use std::process::{Child, Command};
use tempfile::{TempDir, tempdir};

/// A run of jobs that each write a line to a file of theirs now and then while the file `going` is there. It is killed with
/// the test; its jobs end with the folder.
struct Run {
    folder: TempDir,
    child: Child,
}

impl Run {
    fn start(words: &[&str]) -> Run {
        Run::start_copies(
            4,
            "while [ -e going ]; do echo >> $COSCHED_JOB.ticks; sleep 0.01; done",
            words,
        )
    }

    fn start_copies(copies: u32, line: &str, words: &[&str]) -> Run {
        let folder = tempdir().expect("a folder");
        let mix = format!("[[job]]\nname = \"j\"\ncopies = {copies}\ncommand = \"{line}\"\n");
        write(&folder, "mix.toml", &mix);
        write(&folder, "going", "");
        let stderr = File::create(folder.path().join("stderr")).expect("a file");
        let all = [&["run", "mix.toml", "--logs", "L"], words].concat();
        let child = command(folder.path(), &all)
            .stdout(File::create(folder.path().join("stdout")).expect("a file"))
            .stderr(stderr)
            .spawn()
            .expect("a run");
        let run = Run { folder, child };
        until("a job runs", || run.ticks() > 0);
        until("there is a state", || status(&run.pid()).is_some());
        run
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// How much the jobs have written.
    fn ticks(&self) -> u64 {
        let files = self.folder.path().read_dir().expect("a folder").flatten();
        files
            .filter(|file| file.path().extension().is_some_and(|end| end == "ticks"))
            .map(|file| file.metadata().map_or(0, |meta| meta.len()))
            .sum()
    }

    /// Asks the run for a change.
    fn set(&self, words: &[&str]) {
        let pid = self.pid();
        let output = cosched(&self.folder, &[&["set", &*pid], words].concat());
        let asked = format!(
            "cosched: asked the run in {} for {}\n",
            self.folder.path().join("L").display(),
            words.join(" ")
        );
        let told = (out(&output), err(&output), output.status.code());
        assert_eq!(told, (String::new(), asked, Some(0)));
    }

    fn running(&self) -> u64 {
        let status = status(&self.pid()).unwrap_or_default();
        status["totals"]["running"].as_u64().unwrap_or(0)
    }

    fn is_paused(&self) -> bool {
        status(&self.pid()).is_some_and(|status| status["paused"] == true)
    }

    /// Lets the jobs end; returns the exit code of the run and its standard error.
    fn end(mut self) -> (Option<i32>, String, TempDir) {
        std::fs::remove_file(self.folder.path().join("going")).expect("a file");
        let code = ended(&mut self.child).code();
        let folder = std::mem::replace(&mut self.folder, tempdir().expect("a folder"));
        (code, read(&folder, "stderr"), folder)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn codes(folder: &TempDir) -> Vec<String> {
    let record: serde_json::Value =
        serde_json::from_str(&read(folder, "L/run.json")).expect("JSON");
    let warnings = record["warnings"].as_array().expect("a list").iter();
    let codes = warnings.map(|warning| warning["code"].as_str().unwrap_or_default().to_owned());
    // Others on the machine disturb, and leave things behind.
    codes
        .filter(|code| !["disturbed", "mended"].contains(&code.as_str()))
        .collect()
}

const PAUSED: &str =
    "cosched: by request all jobs are paused; `cosched set pause=off` continues them\n";
const CONTINUED: &str = "cosched: by request the jobs continue\n";

fn pause(freeze: &str) {
    let run = Run::start(&["--policy", "round-robin", "--freeze", freeze]);
    run.set(&["pause=on"]);
    until("it is paused", || run.is_paused());
    let (ticks, told) = (run.ticks(), status(&run.pid()).expect("a state"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(run.ticks(), ticks, "nothing runs");
    let output = cosched(&run.folder, &["status", &run.pid()]);
    assert!(out(&output).contains("\npaused, "), "{}", out(&output));
    assert_eq!(run.running(), 0, "{}", out(&output));
    let output = cosched(&run.folder, &["why", "j#1", &run.pid()]);
    let why = out(&output);
    assert!(
        why.starts_with("The run is paused. Before that:\n\nj#1 at "),
        "{why}"
    );
    run.set(&["pause=off"]);
    until("the jobs go on", || run.ticks() > ticks);
    until("it is not paused", || !run.is_paused());
    let later = status(&run.pid()).expect("a state");
    let elapsed = |state: &serde_json::Value| state["elapsed_s"].as_f64();
    assert!(elapsed(&later) >= elapsed(&told));
    let (code, stderr, folder) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains(PAUSED) && stderr.contains(CONTINUED),
        "{stderr}"
    );
    assert_eq!(codes(&folder), ["paused", "paused"]);
}

#[test]
fn a_paused_run_stands_still_until_it_is_continued() {
    pause("signals");
    if cosched_linux::freezer_problem(&Root::default()).is_none() {
        pause("cgroup");
    }
}

#[test]
fn a_paused_run_ends_its_jobs_where_it_is_asked_to() {
    let mut run = Run::start(&["--policy", "round-robin", "-j", "2"]);
    run.set(&["pause=on"]);
    until("it is paused", || run.is_paused());
    let state = status(&run.pid()).expect("a state");
    let jobs = state["jobs"].as_array().expect("a list");
    let job = jobs
        .iter()
        .find(|job| job["state"] != "queued")
        .expect("a job");
    let name = job["name"].as_str().expect("a name").to_owned();
    let end = job["job"].as_u64().expect("a number") as u32;
    let root = Root::default().with_runs_dir(runs_dir());
    let live = live_runs(&root);
    let own = live.iter().find(|live| live.pid.to_string() == run.pid());
    let request = RunRequest::End {
        end,
        name: name.clone(),
    };
    own.expect("the run").ask(&request).expect("it is asked");
    until("the job has ended", || {
        std::fs::read_to_string(run.folder.path().join("stderr"))
            .is_ok_and(|text| text.contains(&format!("{name} is ended by the user")))
    });
    assert!(run.is_paused(), "the others stay frozen");
    Command::new("kill")
        .args(["-INT", &run.pid()])
        .status()
        .expect("kill");
    assert_eq!(ended(&mut run.child).code(), Some(130));
}

#[test]
fn a_paused_run_that_halts_kills_jobs_that_ignore_sigterm() {
    // Without a second process in a job: a frozen one would outlive the first.
    let line = "trap '' TERM; echo $$ > $COSCHED_JOB.pid; while [ -e going ]; do echo > $COSCHED_JOB.ticks; done";
    let words = [
        "--policy",
        "linux",
        "--halt",
        "now,fail=1",
        "--grace",
        "0.1",
    ];
    let mut run = Run::start_copies(2, line, &words);
    let pid = run.folder.path().join("j#1.pid");
    let pid = || std::fs::read_to_string(&pid).unwrap_or_default();
    until("the first job runs", || pid().ends_with('\n'));
    run.set(&["pause=on"]);
    until("it is paused", || run.is_paused());
    Command::new("kill")
        .args(["-KILL", pid().trim()])
        .status()
        .expect("kill");
    assert_eq!(ended(&mut run.child).code(), Some(1));
    assert_eq!(read(&run.folder, "stdout"), "");
    let stderr = read(&run.folder, "stderr");
    assert!(
        stderr.contains(PAUSED) && !stderr.contains(CONTINUED),
        "{stderr}"
    );
}

#[test]
fn the_maximum_number_of_jobs_changes_and_the_live_ones_stay() {
    let run = Run::start(&["--policy", "linux", "-j", "1"]);
    until("one runs", || run.running() == 1);
    run.set(&["jobs=3"]);
    until("three run", || run.running() == 3);
    run.set(&["jobs=1", "pause=on"]);
    until("it is paused", || run.is_paused());
    run.set(&["pause=off"]);
    until("it is not paused", || !run.is_paused());
    assert_eq!(run.running(), 3, "the live ones stay");
    let (code, stderr, folder) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    for line in [
        "cosched: by request at most 3 live jobs from now on\n",
        "cosched: by request at most 1 live job from now on\n",
    ] {
        assert!(stderr.contains(line), "{stderr}");
    }
    assert_eq!(
        codes(&folder),
        ["job-limit", "job-limit", "paused", "paused"]
    );
}

#[test]
fn what_can_not_be_set_is_an_error() {
    let folder = tempdir().expect("a folder");
    let expected = "expected jobs=N, pause=on or pause=off, as in `cosched set jobs=4`";
    for (words, why) in [
        (
            &["0", "jobs=x"][..],
            format!("`jobs=x` is no setting; {expected}"),
        ),
        (
            &["0", "speed=2"],
            format!("`speed=2` is no setting; {expected}"),
        ),
        (
            &["pause=maybe"],
            format!("`pause=maybe` is no setting; {expected}"),
        ),
        (&["0"], format!("no setting; {expected}")),
        (
            &["0", "pause=on"],
            "no run 0 is live; `cosched status` lists the live runs".to_owned(),
        ),
    ] {
        let output = cosched(&folder, &[&["set"], words].concat());
        let told = (out(&output), err(&output), output.status.code());
        assert_eq!(told, (String::new(), format!("cosched: {why}\n"), Some(2)));
    }
}
