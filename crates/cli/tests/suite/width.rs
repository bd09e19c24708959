//! How many CPUs a job gets: with real processes, which look at the CPUs that they may use.

use crate::common::{self, until};
use std::path::Path;
use std::process::{Child, Command, Output};
use tempfile::{TempDir, tempdir};

/// A run that chooses its CPUs beside others.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = common::command(folder, &[&["run"], words].concat());
    command.env_remove("COSCHED_CPUS");
    command
}

/// Runs a batch to its end, and returns its record. Whatever the other tests run, it has the CPUs that are named.
fn record(folder: &Path, words: &[&str]) -> serde_json::Value {
    let mut command = command(folder, &["--format", "json", "--quiet", "--logs", "logs"]);
    if !words.contains(&"--cpus") {
        command.args(["--cpus", "all"]);
    }
    let output = command.args(words).output().expect("cosched runs");
    read(&output)
}

fn read(output: &Output) -> serde_json::Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("a record")
}

/// What a job of a run wrote.
fn written(record: &serde_json::Value, job: usize) -> String {
    let log = record["jobs"][job]["log"].as_str().expect("its output");
    std::fs::read_to_string(log)
        .expect("its output")
        .trim()
        .to_owned()
}

/// Prints the CPUs that the shell may use.
const SHOW: &str = "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status";

/// The CPUs of this process, and the first two of them; `None` if there is only one.
pub(crate) fn cpus() -> Option<(String, [u32; 2])> {
    let set = cosched_linux::affinity(0).expect("the CPUs of this process");
    let mut each = set.iter().map(|cpu| cpu.0);
    let both = each.next().zip(each.next());
    if both.is_none() {
        eprintln!("skipped, because there is only one CPU");
    }
    both.map(|(one, other)| (set.to_string(), [one, other]))
}

#[test]
fn a_single_job_has_all_cpus() {
    let Some((all, _)) = cpus() else { return };
    for policy in ["fifo", "round-robin", "fair", "linux"] {
        let folder = tempdir().expect("a folder");
        let record = record(folder.path(), &["--policy", policy, "--", "sh", "-c", SHOW]);
        assert_eq!(written(&record, 0), all, "{policy}");
    }
}

#[test]
fn jobs_that_fill_the_cpus_have_one_each_until_one_ends() {
    let Some((_, [one, other])) = cpus() else {
        return;
    };
    for freeze in ["auto", "signals"] {
        let folder = tempdir().expect("a folder");
        // Each has looked before either ends (a file is there before its content); then the second waits until it may use the CPU of the first.
        let look = format!(
            "({SHOW}) > new.$1; mv new.$1 own.$1; until [ -e own.$2 ]; do sleep 0.01; done"
        );
        let wait =
            format!("while [ \"$({SHOW})\" = \"$(cat own.$1)\" ]; do sleep 0.01; done; {SHOW}");
        let list = format!(
            "sh -c '{look}' sh a b\nsh -c '{look}; {wait}' sh b a\n",
            wait = wait.replace('\'', "'\\''"),
            look = look.replace('\'', "'\\''")
        );
        std::fs::write(folder.path().join("jobs"), list).expect("a file");
        let cpus = format!("{one},{other}");
        let record = record(
            folder.path(),
            &[
                "--cpus", &cpus, "--policy", "fifo", "--freeze", freeze, "-f", "jobs",
            ],
        );
        let own = |name: &str| {
            std::fs::read_to_string(folder.path().join(name))
                .expect("it looked")
                .trim()
                .to_owned()
        };
        let mut both = [own("own.a"), own("own.b")];
        both.sort();
        assert_eq!(both, [one.to_string(), other.to_string()]);
        let last = written(&record, 1).replace('-', ",");
        assert_eq!(last, cpus, "what the first had is lent to the second");
    }
}

#[test]
fn a_stated_number_of_cpus_is_kept_to() {
    let Some((all, [one, _])) = cpus() else {
        return;
    };
    let of = |words: &[&str]| {
        let folder = tempdir().expect("a folder");
        let record = record(
            folder.path(),
            &[words, &["--policy", "fifo", "--", "sh", "-c", SHOW]].concat(),
        );
        let job = &record["jobs"][0];
        assert_eq!(job["width_source"], "stated");
        assert_eq!(job["width"], job["cpus"]);
        (written(&record, 0), job["cpus"].as_u64())
    };
    assert_eq!(of(&["--cpus-per-job", "1"]), (one.to_string(), Some(1)));
    assert_eq!(of(&["--cpus-per-job", "all"]).0, all);
    assert_eq!(of(&["--cpus-per-job", "2"]).1, Some(2));
    let folder = tempdir().expect("a folder");
    let mix = format!("[[job]]\nname = \"x\"\ncommand = \"\"\"{SHOW}\"\"\"\ncpus = 1\n")
        .replace('\\', "\\\\");
    std::fs::write(folder.path().join("mix.toml"), mix).expect("a file");
    let record = record(folder.path(), &["--cpus-per-job", "all", "mix.toml"]);
    assert_eq!(
        written(&record, 0),
        one.to_string(),
        "the mix file comes first"
    );
    let refused = command(folder.path(), &["--cpus-per-job", "65536", "true"])
        .output()
        .expect("cosched runs");
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--cpus-per-job all"));
}

#[test]
fn a_solo_run_has_all_cpus_too() {
    let Some((all, _)) = cpus() else { return };
    let folder = tempdir().expect("a folder");
    record(
        folder.path(),
        &["--solo", "measure", "--", "sh", "-c", SHOW],
    );
    let solo = std::fs::read_dir(folder.path().join("logs/solo"))
        .expect("its folder")
        .filter_map(Result::ok);
    let out = solo
        .map(|file| file.path())
        .find(|file| file.extension().is_some_and(|kind| kind == "out"));
    let alone = std::fs::read_to_string(out.expect("its output")).expect("its output");
    assert_eq!(alone.trim(), all);
}

#[test]
fn the_width_that_was_found_is_in_the_record() {
    let Some((_, [one, _])) = cpus() else { return };
    let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let wide = format!("({work}) & ({work}) & ({work}); wait");
    for (cpus, freeze) in [
        ("all", "auto"),
        ("all", "signals"),
        (&*one.to_string(), "auto"),
        (&*one.to_string(), "signals"),
    ] {
        let of = |line: &str| {
            let folder = tempdir().expect("a folder");
            let words = [
                "--cpus",
                cpus,
                "--freeze",
                freeze,
                "--policy",
                "fifo",
                "--param",
                "quantum_s=0.01",
            ];
            let record = record(
                folder.path(),
                &[&words[..], &["--", "sh", "-c", line]].concat(),
            );
            assert_eq!(record["jobs"][0]["width_source"], "measured");
            record["jobs"][0]["width"].as_u64()
        };
        // On a busy CPU the shell that starts the three may take a few looks to get to its `wait`.
        let found = (of(&wide), of(work));
        assert!(
            matches!(found, (Some(3 | 4), Some(1))),
            "on CPUs {cpus}, {freeze}: {found:?}"
        );
    }
    let folder = tempdir().expect("a folder");
    let record = record(
        folder.path(),
        &["--policy", "fifo", "--param", "quantum_s=10", "--", "true"],
    );
    let job = &record["jobs"][0];
    assert!(
        job["width"].is_null() && job["width_absent"] == "not measured",
        "{job}"
    );
}

/// A run whose job goes on as long as a file is there. When the run is killed, so does the job.
struct Held {
    folder: TempDir,
    child: Child,
}

impl Held {
    fn start(cpus: &str, runtime: &Path) -> Held {
        let folder = tempdir().expect("a folder");
        let line = "touch began; while [ -e began ]; do sleep 0.02; done";
        let mut command = command(
            folder.path(),
            &["--quiet", "--cpus", cpus, "--", "sh", "-c", line],
        );
        let child = command
            .env("COSCHED_RUNS_DIR", runtime)
            .spawn()
            .expect("cosched runs");
        until("the job begins", || folder.path().join("began").exists());
        Held { folder, child }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.folder.path().join("began"));
        let _ = self.child.wait();
    }
}

/// The warnings of a run that name a process, and the CPUs that its job may use.
fn beside(words: &[&str], runtime: &Path, pid: u32) -> (Vec<String>, String) {
    let folder = tempdir().expect("a folder");
    let words = [
        &["--format", "json", "--quiet", "--logs", "logs"],
        words,
        &["--", "sh", "-c", SHOW],
    ]
    .concat();
    let output = command(folder.path(), &words)
        .env("COSCHED_RUNS_DIR", runtime)
        .output()
        .expect("cosched runs");
    let record = read(&output);
    let warnings = record["warnings"].as_array().expect("a list").iter();
    let named = warnings.filter(|warning| {
        let text = warning["text"].as_str().unwrap_or_default();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        text.contains("live (process") && numbers.any(|number| number == pid.to_string())
    });
    (
        named
            .map(|warning| warning["code"].as_str().unwrap_or_default().to_owned())
            .collect(),
        written(&record, 0),
    )
}

/// Each names its CPUs, so no other run on this machine changes what they say. The program `beside` tests runs that share.
#[test]
fn a_run_says_whose_cpus_it_uses_too() {
    let Some((_, [one, other])) = cpus() else {
        return;
    };
    let runtime = tempdir().expect("a folder");
    let (one, other) = (one.to_string(), other.to_string());
    let held = Held::start(&one, runtime.path());
    let pid = held.pid();
    assert_eq!(
        beside(&["--cpus", &one], runtime.path(), pid),
        (vec!["cpus-collide".to_owned()], one.clone())
    );
    assert_eq!(
        beside(&["--cpus", &other], runtime.path(), pid),
        (vec![], other)
    );
    assert_eq!(
        beside(&["--cpus", "all"], runtime.path(), pid).0,
        Vec::<String>::new(),
        "as it was told"
    );
    drop(held);
    assert_eq!(
        beside(&["--cpus", &one], runtime.path(), pid).0,
        Vec::<String>::new(),
        "it has ended"
    );
}

#[test]
fn a_killed_run_uses_no_cpus() {
    let Some((_, [one, _])) = cpus() else { return };
    let runtime = tempdir().expect("a folder");
    let one = one.to_string();
    let mut held = Held::start(&one, runtime.path());
    let pid = held.pid();
    assert_eq!(
        beside(&["--cpus", &one], runtime.path(), pid).0,
        ["cpus-collide"]
    );
    held.child.kill().expect("it can be killed");
    held.child.wait().expect("it ends");
    // Its job and its guardian go on.
    assert_eq!(
        beside(&["--cpus", &one], runtime.path(), pid).0,
        Vec::<String>::new()
    );
}

#[test]
fn a_run_among_the_jobs_does_not_collide_with_the_run_around_it() {
    let Some((all, [one, _])) = cpus() else {
        return;
    };
    let runtime = tempdir().expect("a folder");
    let folder = tempdir().expect("a folder");
    let line = format!(
        "echo $PPID > outer; {} run --cpus {one} --format json --quiet --logs inner -- true > record",
        env!("CARGO_BIN_EXE_cosched")
    );
    let mut outer = command(
        folder.path(),
        &["--quiet", "--cpus", &all, "--", "sh", "-c", &line],
    );
    assert!(
        outer
            .env("COSCHED_RUNS_DIR", runtime.path())
            .status()
            .expect("cosched runs")
            .success()
    );
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    let inner: serde_json::Value = serde_json::from_str(&read("record")).expect("a record");
    let outer = format!("process {} ", read("outer").trim());
    assert!(
        !inner["warnings"].to_string().contains(&outer),
        "{}",
        inner["warnings"]
    );
}
