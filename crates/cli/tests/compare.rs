//! `cosched compare`: what it runs, what it says, and what an interruption costs.

mod common;

use common::{err, json, out, until, write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A call with a cache of its own.
fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = common::command(folder.path(), words);
    command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    command
}

fn compare(folder: &TempDir, words: &[&str]) -> Output {
    command(folder, &[&["compare"], words].concat()).output().expect("the binary runs")
}

const SIMULATED: &str = "[[job]]\nprogram = 'gcc'\ncopies = 3\nwork_instructions = 1e9\n\n[[job]]\nprogram = 'lbm'\ncopies = 3\n\
                         work_instructions = 1e9\n";

/// How many runs have a record.
fn records(folder: &TempDir, name: &str) -> Vec<std::path::PathBuf> {
    fn walk(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.ends_with("run.json")
                || (path.ends_with("command.json") && !folder.join("run.json").exists())
            {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&folder.path().join(name).join("runs"), &mut found);
    found.sort();
    found
}

#[test]
fn simulated_policies_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    write(&folder, "b.toml", &SIMULATED.replace("gcc", "mcf"));
    let words = ["a.toml", "b.toml", "--on", "epyc-2cpu", "-p", "linux,bandwidth,even", "-r", "3", "--format", "json"];
    let first = compare(&folder, &[&words[..], &["--out", "c"]].concat());
    assert!(first.status.success(), "{}", err(&first));
    let answer = json(&first);
    assert_eq!((answer["schema"].as_str(), answer["blocks"].as_u64()), (Some("cosched.comparison/1"), Some(3)));
    assert_eq!((answer["runs"].as_array().unwrap().len(), records(&folder, "c").len()), (18, 18));
    // Turnaround, unfairness, ANTT and energy of two candidates: over both mixes, and of each.
    assert_eq!(answer["comparisons"].as_array().unwrap().len(), 4 * 2 * 3);
    for one in answer["comparisons"].as_array().unwrap() {
        assert!(one["verdict"].is_string() && one["low"].as_f64() <= one["change"].as_f64(), "{one}");
    }
    let turnaround = |run: &serde_json::Value| run["figures"]["turnaround_s"].as_f64().unwrap();
    assert!(answer["runs"].as_array().unwrap().iter().all(|run| turnaround(run) > 0.1));
    // The same again gives the same, whatever the number of threads.
    let again = compare(&folder, &[&words[..], &["--out", "d", "-j", "1"]].concat());
    assert_eq!(json(&again)["runs"], answer["runs"]);
    assert_eq!(json(&again)["comparisons"], answer["comparisons"]);
    let (text, csv) = (std::fs::read_to_string(folder.path().join("c/comparison.txt")).unwrap(), "c/comparison.csv");
    assert!(text.starts_with("SIMULATED\n2 mixes simulated on epyc-2cpu, 3 blocks, seed 1\n"), "{text}");
    let csv = std::fs::read_to_string(folder.path().join(csv)).unwrap();
    assert!(csv.lines().count() > 18 * 8 && csv.lines().all(|line| line.split(',').count() >= 7), "{csv}");
    // One block's series are kept, and the page shows its timelines.
    let series = |block: u32| folder.path().join(format!("c/runs/{block:04}/b/even/series.jsonl")).exists();
    assert_eq!((series(1), series(2), series(3)), (true, false, false));
    let page = std::fs::read_to_string(folder.path().join("c/comparison.html")).unwrap();
    assert_eq!(page.matches("data-timeline=").count(), 6);
    assert!(page.contains("Of each candidate the run of the first block."));
    // More blocks are added to those that are there.
    let stamps =
        || records(&folder, "c").iter().map(|file| file.metadata().unwrap().modified().unwrap()).collect::<Vec<_>>();
    let before = stamps();
    let more = compare(&folder, &["--resume", "c", "-r", "4", "--format", "json"]);
    assert_eq!(json(&more)["blocks"], 4, "{}", err(&more));
    // As many as were asked for last, though one is gone.
    std::fs::remove_file(&records(&folder, "c")[23]).unwrap();
    assert_eq!(json(&compare(&folder, &["--resume", "c", "--format", "json"]))["blocks"], 4);
    assert!(records(&folder, "c").len() == 24 && before.iter().all(|stamp| stamps().contains(stamp)));
    // What can't be read is told with its remedy.
    std::fs::write(&records(&folder, "c")[3], "{").unwrap();
    let damaged = compare(&folder, &["--resume", "c"]);
    assert!(damaged.status.code() == Some(1) && err(&damaged).contains("run.json: "), "{}", err(&damaged));
    assert!(err(&damaged).contains("makes the run again"), "{}", err(&damaged));
}

#[test]
fn a_policy_does_not_differ_from_itself() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    let words =
        ["a.toml", "--on", "epyc-2cpu", "-p", "fair", "--param", "quantum_s=0.2,0.20", "-r", "5", "--format", "json"];
    let answer = json(&compare(&folder, &words));
    for one in answer["comparisons"].as_array().unwrap() {
        assert_eq!((one["verdict"].as_str(), one["change"].as_f64()), (Some("no-difference"), Some(0.0)), "{one}");
    }
}

#[test]
fn real_jobs_and_other_programs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'sleep 0.2'\ncopies = 2\n");
    let words = [
        "jobs.toml",
        "--policies",
        "fifo,round-robin",
        "--candidate",
        "by hand=sleep 0.4; echo done",
        "-r",
        "2",
        "--solo-runs",
        "2",
        "--out",
        "c",
        "--format",
        "json",
        "--",
        "--cpus",
        "0",
    ];
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{}", err(&output));
    let answer = json(&output);
    assert_eq!(answer["runs"].as_array().unwrap().len(), 6);
    let of = |candidate: u64| {
        let runs = answer["runs"].as_array().unwrap();
        runs.iter().find(|run| run["trial"]["candidate"] == candidate).unwrap().clone()
    };
    assert!(of(2)["figures"]["elapsed_s"].as_f64().unwrap() >= 0.4 && of(2)["policy"].is_null());
    let (inside, outside) = (of(0)["figures"]["turnaround_s"].clone(), of(0)["figures"]["elapsed_s"].clone());
    assert!(outside.as_f64() > inside.as_f64(), "{answer}");
    let judged = answer["comparisons"].as_array().unwrap();
    let is_of_other = |one: &&serde_json::Value| one["metric"] == "elapsed_s" && one["candidate"] == 2;
    assert!(judged.iter().find(is_of_other).unwrap()["verdict"].is_string(), "{answer}");
    // Each job ran alone: its slowdown is known.
    assert!(of(0)["figures"]["antt"].as_f64().unwrap() > 0.9, "{answer}");
    assert!(folder.path().join("c/solo/jobs.json").is_file());
    // What the jobs wrote is the same in each run, and is not kept.
    let run = folder.path().join("c/runs/0001/jobs/fifo");
    let mut left: Vec<_> =
        run.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [".cosched-run", "command.json", "run.json", "series.jsonl"]);
    let command = std::fs::read(folder.path().join("c/runs/0001/jobs/by-hand/command.json")).unwrap();
    let load = serde_json::from_slice::<serde_json::Value>(&command).unwrap()["machine_load"].clone();
    // A machine whose kernel keeps no accounts says so.
    assert!(load["cpu_s"].as_f64().map_or_else(|| load["absent"]["cpu_s"].is_string(), |time| time > 0.3), "{load}");
    let cached = || folder.path().join("cache/cosched/solo").read_dir().unwrap().count();
    assert_eq!(cached(), 1);
    let again = compare(&folder, &["jobs.toml", "-p", "fifo,linux", "-r", "1", "--out", "d", "--", "--cpus", "0"]);
    assert!(err(&again).contains("known from an earlier comparison") && cached() == 1, "{}", err(&again));
    assert!(out(&again).contains("one block shows nothing"), "{}", out(&again));
    // Another job is another one.
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'sleep 0.1'\ncopies = 2\n");
    let other =
        compare(&folder, &["jobs.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "1", "--", "--cpus", "0"]);
    assert!(other.status.success() && cached() == 2, "{}", err(&other));
    let changed = compare(&folder, &["--resume", "c"]);
    assert!(changed.status.code() == Some(2) && err(&changed).contains("it was changed"), "{}", err(&changed));
}

#[test]
fn failed_jobs_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'bad'\ncommand = 'exit 3'\n");
    let output = compare(&folder, &["jobs.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "0", "--out", "c"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(out(&output).contains("jobs did not end well"), "{}", out(&output));
    // Whoever fails early is not fast.
    write(&folder, "good.toml", "[[job]]\nname = 'good'\ncommand = 'sleep 0.1'\n");
    let words = [
        "good.toml",
        "-p",
        "fifo",
        "--candidate",
        "typo=no-such-program",
        "-r",
        "2",
        "--solo-runs",
        "0",
        "--format",
        "markdown",
    ];
    let output = compare(&folder, &words);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    for told in ["the command or jobs failed", "no-such-program: not found), so it is compared with nothing"] {
        assert!(out(&output).contains(told), "{}", out(&output));
    }
    // Nor does a program that fails do as much as a policy whose job fails.
    let words =
        ["jobs.toml", "-p", "fifo", "--candidate", "x=exit 1", "-r", "2", "--solo-runs", "0", "--format", "json"];
    let answer = json(&compare(&folder, &words));
    for one in answer["comparisons"].as_array().unwrap() {
        assert!(one["verdict"].is_null() && one["change"].is_null(), "{one}");
    }
}

#[test]
fn a_comparison_goes_on_as_it_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'here'\ncommand = 'pwd >> places'\ncopies = 2\n");
    let words = ["compare", "jobs.toml", "-p", "fifo,linux", "--candidate", "by hand=pwd >> places; env >> variables"];
    let more = ["-r", "1", "--warmup", "1", "--solo-runs", "0", "--out", "c"];
    let first = command(&folder, &[&words[..], &more].concat()).env("COSCHED_JOBS", "1").output().unwrap();
    assert!(first.status.success(), "{}", err(&first));
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count();
    // The warm-up is not kept.
    assert_eq!((lines("places"), records(&folder, "c").len()), (10, 3));
    // From another folder, and with other variables.
    write(&folder, "other/empty", "");
    let other = |words: &[&str]| {
        let mut command = command(&folder, words);
        command.current_dir(folder.path().join("other")).env("COSCHED_JOBS", "2").env("COSCHED_MAX_PAUSE", "9s");
        command.output().unwrap()
    };
    let second = other(&["compare", "--resume", "../c", "-r", "2"]);
    assert!(second.status.success(), "{}", err(&second));
    assert_eq!((lines("places"), records(&folder, "c").len()), (20, 6), "warmed up again, since runs were made");
    assert_eq!(folder.path().join("other").read_dir().unwrap().count(), 1);
    let record = |block: u32| {
        let text = std::fs::read(folder.path().join(format!("c/runs/{block:04}/jobs/fifo/run.json"))).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    assert_eq!(record(1)["setting"]["options"], record(2)["setting"]["options"]);
    assert_eq!(record(2)["setting"]["options"]["jobs_at_once"], 1);
    let variables = std::fs::read_to_string(folder.path().join("variables")).unwrap();
    assert!(variables.contains("COSCHED_JOBS=1") && !variables.contains("COSCHED_JOBS=2"), "{variables}");
    assert!(!variables.contains("COSCHED_MAX_PAUSE"), "{variables}");
    // Nothing is left to do: nothing is warmed up.
    let third = other(&["compare", "--resume", "../c"]);
    assert!(third.status.success() && lines("places") == 20, "{}", err(&third));
    // A run without its record is made again.
    std::fs::remove_file(folder.path().join("c/runs/0002/jobs/fifo/run.json")).unwrap();
    let fourth = other(&["compare", "--resume", "../c", "--warmup", "0"]);
    assert!(fourth.status.success() && lines("places") == 22, "{}", err(&fourth));
    assert_eq!(record(2)["finished_by"], "completion");
}

#[test]
fn what_runs_read_must_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(from);
        std::fs::copy(from, folder.path().join(to)).unwrap();
    };
    copy("machines/epyc-2cpu.toml", "machine.toml");
    copy("programs/spec-cpu2006/gcc.toml", "gcc.toml");
    write(&folder, "a.toml", &SIMULATED.replace("'gcc'", "'./gcc.toml'"));
    let words = ["a.toml", "--on", "./machine.toml", "-p", "linux,even", "-r", "1", "--out", "c"];
    let begun = compare(&folder, &words);
    assert!(begun.status.success(), "{}", err(&begun));
    write(&folder, "other/empty", "");
    let mut elsewhere = command(&folder, &["compare", "--resume", "../c", "-r", "2", "--format", "json"]);
    let elsewhere = elsewhere.current_dir(folder.path().join("other")).output().unwrap();
    assert_eq!(json(&elsewhere)["blocks"], 2, "{}", err(&elsewhere));
    for file in ["machine.toml", "gcc.toml"] {
        let before = std::fs::read_to_string(folder.path().join(file)).unwrap();
        write(&folder, file, &format!("{before}\n# another\n"));
        let changed = compare(&folder, &["--resume", "c"]);
        assert!(changed.status.code() == Some(2), "{}", err(&changed));
        assert!(err(&changed).contains(&format!("{file}: it was changed since")), "{}", err(&changed));
        write(&folder, file, &before);
    }
    assert!(compare(&folder, &["--resume", "c"]).status.success());
    let moved = compare(&folder, &["--resume", "c", "--on", "epyc-2cpu"]);
    assert!(moved.status.code() == Some(2) && err(&moved).contains("goes on as it was begun"), "{}", err(&moved));
    // So does the program of a job.
    write(&folder, "work.sh", "exit 0\n");
    write(&folder, "real.toml", "[[job]]\nname = 'work'\ncommand = 'sh work.sh'\n");
    let words = ["real.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "0", "--out", "d"];
    assert!(compare(&folder, &words).status.success());
    write(&folder, "work.sh", "sleep 0.01; exit 0\n");
    let changed = compare(&folder, &["--resume", "d"]);
    assert!(changed.status.code() == Some(2), "{}", err(&changed));
    assert!(err(&changed).contains("a program of its jobs was changed"), "{}", err(&changed));
}

#[test]
fn one_comparison_works_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'wait'\ncommand = 'echo run >> count; while [ ! -e go ]; do sleep 0.05; done'\n",
    );
    let words = ["compare", "jobs.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "0", "--out", "c"];
    let first = command(&folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a run has begun", || folder.path().join("count").exists());
    for words in [&words[..], &["compare", "--resume", "c"]] {
        let second = command(&folder, words).output().unwrap();
        assert_eq!(second.status.code(), Some(2), "{}", err(&second));
        assert!(err(&second).contains("another `cosched compare` makes runs in this folder"), "{}", err(&second));
    }
    write(&folder, "go", "");
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", err(&first));
    assert_eq!(std::fs::read_to_string(folder.path().join("count")).unwrap().lines().count(), 2);
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'sleep 0.01'\n");
    let stubborn = "stubborn=trap 'echo asked >> asked' INT TERM; touch begun; while :; do sleep 0.05; done";
    let words =
        ["compare", "jobs.toml", "-p", "fifo", "--candidate", stubborn, "-r", "1", "--solo-runs", "0", "--out", "c"];
    let child = command(&folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it has begun", || folder.path().join("begun").exists());
    let pid = rustix::process::Pid::from_child(&child);
    let asked = || std::fs::read_to_string(folder.path().join("asked")).unwrap_or_default().lines().count();
    for times in 1..=3 {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        until("it was asked", || times == 3 || asked() == times);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", err(&output));
    // One that goes on in the background does not, wherever it went, and its time is doubtful.
    for (quick, left) in [
        ("sleep 1000 & echo $! > left; exit 0", "a process"),
        ("setsid sleep 1000 & (setsid sh -c 'echo $$ > left; sleep 1000; :' &) ; sleep 0.2", "3 processes"),
    ] {
        let quick = format!("quick={quick}");
        let words = ["jobs.toml", "-p", "fifo", "--candidate", &quick, "-r", "1", "--solo-runs", "0"];
        let output = compare(&folder, &words);
        assert!(output.status.success(), "{}", err(&output));
        let told = format!("the command left {left} behind, which had to be ended");
        assert!(out(&output).contains(&told), "{}", out(&output));
        let left = std::fs::read_to_string(folder.path().join("left")).unwrap();
        assert!(!Path::new("/proc").join(left.trim()).exists(), "{left}");
    }
}

#[test]
fn a_suspended_comparison_pauses_what_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'count'\ncommand = 'until [ -e go1 ]; do echo >> count1; sleep 0.01; done'\n",
    );
    let other = "other=setsid sh -c 'until [ -e go2 ]; do echo >> count2; sleep 0.01; done' & wait";
    let words =
        ["compare", "jobs.toml", "-p", "fifo", "--candidate", other, "-r", "1", "--solo-runs", "0", "--format", "json"];
    let began = std::time::Instant::now();
    let child = command(&folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let count = |which: u32| std::fs::read(folder.path().join(format!("count{which}"))).unwrap_or_default().len();
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    };
    let pause = std::time::Duration::from_secs(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        until("one of them runs", || (1..=2).any(|which| count(which) > 0 && !seen.contains(&which)));
        let which = (1..=2).find(|which| count(*which) > 0 && !seen.contains(which)).unwrap();
        seen.insert(which);
        signal(rustix::process::Signal::TSTP);
        until("it stands still", is_stopped);
        let before = count(which);
        std::thread::sleep(pause);
        assert_eq!(count(which), before, "{which} went on");
        signal(rustix::process::Signal::CONT);
        until("it goes on", || count(which) > before);
        write(&folder, &format!("go{which}"), "");
    }
    let output = child.wait_with_output().unwrap();
    let all = began.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", err(&output));
    let answer = json(&output);
    let runs = answer["runs"].as_array().unwrap();
    let elapsed: f64 = runs.iter().map(|run| run["figures"]["elapsed_s"].as_f64().unwrap()).sum();
    assert!(runs.len() == 2 && elapsed <= all - 2.0 * pause.as_secs_f64(), "{elapsed} of {all}: {answer}");
    for run in runs {
        let is_told = |doubt: &serde_json::Value| doubt.as_str().unwrap().starts_with("it was suspended for ");
        assert!(run["doubts"].as_array().unwrap().iter().any(is_told), "{answer}");
    }
}

#[test]
fn with_commands_blocks_end_when_their_times_are_known() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'sleep 0.1'\n");
    let words =
        ["jobs.toml", "-p", "fifo", "--candidate", "hand=sleep 0.1", "-r", "6", "--solo-runs", "0", "--until-ci"];
    let output = compare(&folder, &[&words[..], &["100%", "--format", "json", "--out", "c", "--warmup", "1"]].concat());
    assert_eq!(json(&output)["blocks"], 3, "{}", err(&output));
    assert!(!folder.path().join("c/runs/0000").exists() && folder.path().join("c/runs/0003").exists());
    // Where nothing can be compared, more blocks are no advice.
    let words =
        ["jobs.toml", "-p", "fifo", "--candidate", "bad=echo no luck >&2; exit 3", "-r", "3", "--solo-runs", "0"];
    let output = compare(&folder, &[&words[..], &["--until-ci", "5%"]].concat());
    let text = out(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no runs can be compared in elapsed_s") && !text.contains("more blocks: "), "{text}");
    assert!(text.contains("the command exited with 3 (it wrote: no luck), so it is compared with nothing"), "{text}");
}

#[test]
fn the_time_is_for_all_that_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'echo >> count; sleep 0.05'\n");
    let words = ["jobs.toml", "-p", "fifo,linux", "-r", "1", "--out", "c"];
    let output = compare(&folder, &[&words[..], &["--max-time", "1ms"]].concat());
    assert!(out(&output).contains("the time of --max-time was over before all was made"), "{}", out(&output));
    assert!(!folder.path().join("count").exists());
    let output = compare(&folder, &[&words[..], &["--max-time", "1h"]].concat());
    assert!(output.status.success() && !out(&output).contains("--max-time"), "{}{}", out(&output), err(&output));
    // It was measured alone, and that stays.
    for (more, told) in [
        (&["--solo-runs", "4"][..], "--solo-runs: this comparison began otherwise"),
        (&["--solo-runs", "0"], "--solo-runs: this comparison began otherwise"),
        (&["--fresh-solo"], "--fresh-solo: this comparison began otherwise"),
    ] {
        let output = compare(&folder, &[&["--resume", "c"], more].concat());
        assert!(output.status.code() == Some(2) && err(&output).contains(told), "{more:?}: {}", err(&output));
    }
    assert!(compare(&folder, &["--resume", "c", "--solo-runs", "3"]).status.success());
}

#[test]
fn commands_hear_the_variables_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'true'\n");
    let words = ["jobs.toml", "-p", "fifo", "--candidate", "heard=echo $COSCHED_POLICY $COSCHED_JOBS >> heard", "-r"];
    let begin = ["1", "--solo-runs", "0", "--out", "c"];
    let mut first = command(&folder, &[&["compare"], &words[..], &begin].concat());
    let first = first.env("COSCHED_POLICY", "fair").env("COSCHED_JOBS", "1").output().unwrap();
    assert!(first.status.success(), "{}", err(&first));
    let mut more = command(&folder, &["compare", "--resume", "c", "-r", "2"]);
    assert!(more.env("COSCHED_POLICY", "efs").output().unwrap().status.success());
    assert_eq!(std::fs::read_to_string(folder.path().join("heard")).unwrap(), "fair 1\nfair 1\n");
}

#[test]
fn precision_that_was_not_reached_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    let words = ["a.toml", "--on", "epyc-2cpu", "-p", "linux,even", "-r", "3", "--until-ci", "0.01%", "--out", "c"];
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains("and --until-ci asked for 0.01 %"), "{}", out(&output));
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    write(&folder, "real.toml", "[[job]]\nname = 'a'\ncommand = 'touch started'\n");
    write(&folder, "full/other", "");
    std::fs::create_dir(folder.path().join("of-all")).unwrap();
    std::fs::set_permissions(folder.path().join("of-all"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let on = ["--on", "epyc-2cpu"];
    let cases: [(&[&str], &str); 27] = [
        (&["real.toml", "-p", "fifo", "--candidate", "x="], "it has not a command"),
        (&["real.toml", "-p", "fifo", "--candidate", "=true"], "NAME=CMD"),
        (&["real.toml", "-p", "fifo,linux", "--", "--logs", "x"], "--logs behind `--`: give --out before"),
        (&["real.toml", "-p", "fifo,linux", "--", "--record", "x"], "--record behind `--`"),
        (&["real.toml", "-p", "fifo,linux", "--", "--seed", "4"], "give --seed before"),
        (&["real.toml", "-p", "fifo,linux", "--dry-run", "--", "--joblog", "x"], "--joblog behind `--`"),
        (&["real.toml", "-p", "fifo,linux", "-j", "4"], "--jobs: it is for simulations"),
        (&["a.toml", "-p", "fifo,linux", "--warmup", "1", "--on", "epyc-2cpu"], "--warmup"),
        (&["a.toml", "-p", "fifo,linux", "--warmup", "100", "--on", "epyc-2cpu"], "--warmup"),
        (&["a.toml", "--until-ci", "1%", "-r", "2", "--on", "epyc-2cpu"], "3 blocks at least"),
        (
            &["a.toml", "-p", "linux", "--on", "epyc-2cpu"],
            "only one candidate, linux; name what it is compared with, as in --policies linux,auto",
        ),
        (
            &["a.toml", "-p", "linx,fair", "--on", "epyc-2cpu"],
            "--policies: there is no policy `linx` (did you mean `linux`?)",
        ),
        (&["a.toml", "-p", "linux,fair", "--on", "epyc-2cpu", "--solo-runs", "3"], "--solo-runs: a simulation knows"),
        (&["a.toml", "-p", "linux,fair", "--on", "epyc-2cpu", "--fresh-solo"], "--fresh-solo: a simulation knows"),
        (&["real.toml", "-p", "fifo,linux", "--", "--resume"], "--resume behind `--`: a comparison goes on by its own"),
        (&["real.toml", "-p", "fifo,linux", "--out", "of-all/x"], "or allow it with `-- --shared-logs`"),
        (&["a.toml", "-p", "linux,linux", "--on", "epyc-2cpu"], "two candidates are called `linux`"),
        (&["a.toml", "--baseline", "linx", "--on", "epyc-2cpu"], "did you mean `linux`"),
        (&["a.toml", "--param", "quantum=1", "--on", "epyc-2cpu"], "has a parameter `quantum`"),
        (&["a.toml", "-p", "fair", "--param", "quantum_s=0.1,x", "--on", "epyc-2cpu"], "--param quantum_s"),
        (&["a.toml", "--metric", "speed", "--on", "epyc-2cpu"], "there is no metric `speed`"),
        (&["a.toml", "--candidate", "x=true", "--on", "epyc-2cpu"], "runs real programs"),
        (&["no.toml", "--on", "epyc-2cpu"], "no.toml"),
        (&["a.toml", "--on", "epyc-2cpu", "--out", "full"], "name a new folder"),
        (&["a.toml", "-p", "lucky,linux", "--on", "epyc-2cpu"], "lucky with a: policy lucky needs"),
        (&["real.toml", "-p", "fifo,linux", "--", "--cpuss", "0"], "--cpuss"),
        (&["--resume", "full"], "compare.json"),
    ];
    for (words, told) in cases {
        let output = compare(&folder, words);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}: {}", err(&output));
        assert!(err(&output).contains(told), "{words:?}: {}", err(&output));
    }
    assert!(!folder.path().join("started").exists() && !folder.path().join("cosched-compare").exists());
    let dry = compare(&folder, &[&["a.toml", "-p", "linux,even", "--dry-run"], &on[..]].concat());
    assert!(out(&dry).contains("candidate even") && out(&dry).ends_with("nothing was run\n"), "{}", out(&dry));
    let words = ["real.toml", "-p", "fifo,linux", "--dry-run", "--warmup", "2", "--until-ci", "1%", "--max-time", "1h"];
    let dry = compare(&folder, &words);
    for told in ["warm-up   2 blocks", "until     the differences are known to 1.00 %", "at most   "] {
        assert!(out(&dry).contains(told), "{}", out(&dry));
    }
    assert!(!folder.path().join("cosched-compare").exists());
}

#[test]
fn an_interrupted_comparison_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'echo run >> count; sleep 0.5'\n");
    let words = ["compare", "jobs.toml", "-p", "fifo,linux", "-r", "2", "--solo-runs", "0", "--out", "c"];
    let count = || std::fs::read_to_string(folder.path().join("count")).unwrap_or_default().lines().count();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let before = count();
        let child = command(&folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("a run has begun", || count() > before);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal.as_raw()), "{}", err(&output));
        assert!(err(&output).contains("--resume"), "{}", err(&output));
    }
    // A comparison that is killed takes its run with it.
    let before = count();
    let mut child = command(&folder, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a run has begun", || count() > before);
    child.kill().unwrap();
    child.wait().unwrap();
    let made = records(&folder, "c").len();
    let output = compare(&folder, &["--resume", "c", "--format", "json"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!((json(&output)["blocks"].as_u64(), records(&folder, "c").len()), (Some(2), 4));
    assert!(made < 4);
}

/// The processes whose working folder this is, with their states. The tests of this file start all of theirs in folders of their own.
fn processes_in(folder: &TempDir) -> Vec<(u32, char)> {
    let folder = folder.path().canonicalize().unwrap();
    let pids = Path::new("/proc").read_dir().unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.trim_start().chars().next()
    };
    let is_here = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
    pids.filter(is_here).filter_map(|pid| Some((pid, state(pid)?))).filter(|(_, state)| *state != 'Z').collect()
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The process number that a job has written into a file.
fn number_in(folder: &TempDir, name: &str) -> u32 {
    let read = || std::fs::read_to_string(folder.path().join(name)).ok().filter(|text| text.ends_with('\n'));
    until("a number was written", || read().is_some());
    read().unwrap().trim().parse().unwrap()
}

#[test]
fn a_killed_comparison_leaves_nothing_that_runs_or_stands_still() {
    use rustix::process::Signal;
    let deaf = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > deaf; while :; do sleep 0.05; done' &)";
    let command_line = format!("sleep 1000 & setsid sleep 1000 & {deaf}; sleep 1000");
    let other = format!("other={command_line}");
    // A command, and the job of a run; the other candidate ends at once.
    let cases = [("true", other.as_str()), ("echo $$ > deaf; sleep 1000 & setsid sleep 1000 & wait", "other=true")];
    for (job, other) in cases {
        for suspends in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            write(&folder, "jobs.toml", &format!("[[job]]\nname = 'a'\ncommand = '{job}'\n"));
            let words = ["compare", "jobs.toml", "-p", "fifo", "--candidate", other, "-r", "1", "--solo-runs", "0"];
            let mut child = command(&folder, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            number_in(&folder, "deaf");
            let sleeps = || {
                let is_sleep =
                    |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n");
                processes_in(&folder)
                    .into_iter()
                    .filter(|(pid, _)| is_sleep(*pid))
                    .map(|(_, state)| state)
                    .collect::<Vec<_>>()
            };
            until("all of it runs", || sleeps().len() >= 2);
            if suspends {
                send(child.id(), Signal::TSTP);
                // Jobs of a run may be frozen, which their state does not show.
                let is_stopped = || job != "true" || sleeps().iter().all(|state| *state == 'T');
                until("it stands still", || processes_in(&folder).contains(&(child.id(), 'T')) && is_stopped());
            }
            child.kill().unwrap();
            child.wait().unwrap();
            until(&format!("nothing is left of {other}, {job}, {suspends}"), || processes_in(&folder).is_empty());
        }
    }
}

#[test]
fn a_run_that_is_killed_is_told_and_its_jobs_end() {
    use rustix::process::Signal;
    let folder = tempfile::tempdir().unwrap();
    let job = "test -e go || { echo $PPID > run; sleep 1000 & setsid sleep 1000 & wait; }";
    write(&folder, "jobs.toml", &format!("[[job]]\nname = 'long'\ncommand = '{job}'\ncopies = 2\n"));
    let words = ["compare", "jobs.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "0", "--out", "c"];
    let child = command(&folder, &words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    send(number_in(&folder, "run"), Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    for told in ["its `cosched run` was ended from outside (signal: 9 (SIGKILL)), as", "were ended: long", "--resume"] {
        assert!(err(&output).contains(told), "{}", err(&output));
    }
    assert_eq!(processes_in(&folder), [], "its jobs went on");
    // All are killed at once, the process between them too: then the next call ends the jobs.
    std::fs::remove_file(folder.path().join("run")).unwrap();
    let mut child = command(&folder, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let run = number_in(&folder, "run");
    let stat = std::fs::read_to_string(format!("/proc/{run}/stat")).unwrap();
    let keeper = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_ne!(keeper, child.id());
    // Whoever is stopped can't do anything before its end.
    [run, keeper].into_iter().for_each(|pid| send(pid, Signal::STOP));
    [child.id(), keeper, run].into_iter().for_each(|pid| send(pid, Signal::KILL));
    child.wait().unwrap();
    assert_ne!(processes_in(&folder), [], "jobs go on");
    write(&folder, "go", "");
    let output = compare(&folder, &["--resume", "c", "--format", "json"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("was killed, and left jobs, which are ended: long"), "{}", err(&output));
    assert_eq!((processes_in(&folder), json(&output)["blocks"].as_u64()), (vec![], Some(1)));
}

/// Writes another value in the place of one in a file of JSON.
fn change(folder: &TempDir, name: &str, key: &str, value: &str) {
    let file = folder.path().join(name);
    let mut object: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(object[key].is_string(), "{object}");
    object[key] = value.into();
    std::fs::write(file, object.to_string()).unwrap();
}

#[test]
fn a_comparison_goes_on_only_where_it_began() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "sim.toml", SIMULATED);
    write(&folder, "real.toml", "[[job]]\nname = 'nap'\ncommand = 'true'\n");
    let simulated = ["sim.toml", "--on", "epyc-2cpu", "-p", "linux,fair", "-r", "1", "--out", "sim"];
    let real = ["real.toml", "-p", "fifo,linux", "-r", "1", "--solo-runs", "0", "--out", "real"];
    for (words, out) in [(&simulated[..], "sim"), (&real[..], "real")] {
        assert!(compare(&folder, words).status.success());
        let again = compare(&folder, words);
        assert!(again.status.success(), "{}", err(&again));
        change(&folder, &format!("{out}/compare.json"), "machine", "the other one");
        for words in [words, &["--resume", out]] {
            let output = compare(&folder, words);
            assert_eq!(output.status.code(), Some(2), "{}", err(&output));
            for told in ["this comparison began on the machine `the other one`, and this is `", "with another --out"] {
                assert!(err(&output).contains(told), "{}", err(&output));
            }
        }
    }
}

#[test]
fn runs_of_different_origins_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "sim.toml", SIMULATED);
    let words = ["sim.toml", "--on", "epyc-2cpu", "-p", "linux,fair", "-r", "2", "--out", "c"];
    assert!(compare(&folder, &words).status.success());
    let report = |words: &[&str]| {
        let output = common::cosched(&folder, &[&["report"], words].concat());
        assert!(output.status.success(), "{}", err(&output));
        (out(&output).split_whitespace().collect::<Vec<_>>().join(" "), err(&output))
    };
    assert!(!report(&["c"]).0.contains("of different"));
    for (key, value, told) in [
        (
            "machine",
            "another",
            "these runs are of different machines, and differences may be theirs: another, 1 run; epyc-2cpu, 3 runs",
        ),
        (
            "cosched_version",
            "9.9.9",
            "these runs are of different versions of cosched, and differences may be theirs: 0.1.0, 3 runs; 9.9.9, 1 run",
        ),
    ] {
        change(&folder, "c/runs/0002/sim/fair/run.json", key, value);
        let (text, _) = report(&["c"]);
        assert!(text.contains(told), "{text}");
        let side_by_side = told.replace("3 runs", "1 run");
        let (text, _) = report(&["c/runs/0001/sim/fair", "c/runs/0002/sim/fair"]);
        assert!(text.contains(&side_by_side), "{text}");
        let (text, told) = report(&["c/runs/0001/sim/fair", "c/runs/0002/sim/fair", "--csv"]);
        assert!(told.contains(&side_by_side) && !text.contains("of different"), "{told}");
    }
    let again = compare(&folder, &["--resume", "c"]);
    assert!(out(&again).contains("of different machines"), "{}", out(&again));
}

#[test]
fn a_comparison_that_could_write_nothing_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    let words = ["compare", "a.toml", "--on", "epyc-2cpu", "-p", "linux,fair", "-r", "1", "--out", "c"];
    // No file may hold a byte, as on a full disk;
    // and in the second case no more than 8 KiB.
    write(&folder, "long.toml", &format!("{SIMULATED}# {}\n", "long ".repeat(5000)));
    let limited = |words: &[&str], blocks: &str| {
        let mut shell = Command::new("/bin/sh");
        common::without_settings(&mut shell);
        shell.args(["-c", "ulimit -f \"$0\"; exec \"$@\"", blocks, env!("CARGO_BIN_EXE_cosched")]).args(words);
        shell.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap()
    };
    let full = limited(&words, "0");
    assert_eq!(full.status.code(), Some(1), "{}", err(&full));
    assert!(err(&full).contains("can't write ") && err(&full).contains("compare.json"), "{}", err(&full));
    assert!(command(&folder, &words).output().unwrap().status.success());
    let long = ["compare", "long.toml", "--on", "epyc-2cpu", "-p", "linux,fair", "-r", "1", "--out", "d"];
    let full = limited(&long, "16");
    assert!(full.status.code() == Some(1) && err(&full).contains("mixes/long.toml"), "{}", err(&full));
    assert!(command(&folder, &long).output().unwrap().status.success());
}

#[test]
fn a_folder_that_can_not_be_written_is_told() {
    if rustix::process::geteuid().is_root() {
        return eprintln!("skipped, because root may write anywhere");
    }
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    assert!(
        compare(&folder, &["a.toml", "--on", "epyc-2cpu", "-p", "linux,fair", "-r", "1", "--out", "c"])
            .status
            .success()
    );
    let allow = |mode: u32, name: &str| {
        std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o444, "c/.lock");
    allow(0o555, "c");
    let output = compare(&folder, &["--resume", "c"]);
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert!(err(&output).contains("this folder can't be written, so no runs can be made in it"), "{}", err(&output));
    assert!(common::cosched(&folder, &["report", "c"]).status.success());
    allow(0o755, "c");
}

#[test]
fn short_runs_that_were_disturbed_are_told_together() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\nname = 'nap'\ncommand = 'true'\n");
    let words = ["jobs.toml", "-p", "fifo,linux", "-r", "4", "--solo-runs", "0", "--out", "c"];
    assert!(compare(&folder, &words).status.success());
    // The machine was as it was; what follows is told of a machine that others used.
    let put = |run_s: f64| {
        for block in 1..=4 {
            let file = folder.path().join(format!("c/runs/{block:04}/jobs/fifo/run.json"));
            let mut run: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            run["machine_load"] = serde_json::json!({
                "cpu_s": 2.0 * run_s, "steal_share": 0.0, "foreign_share": 0.75, "foreign_cpus": 1.5,
                "throttled_s": null, "throttle_events": null, "absent": {"throttled_s": "not told", "throttle_events": "not told"},
            });
            std::fs::write(file, run.to_string()).unwrap();
        }
        let text = out(&common::cosched(&folder, &["report", "c"]));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = "fifo with jobs: figures are not to be trusted: runs under 1 s are not judged one by one, and in 4 runs together other \
                programs took 1.50 of 2 CPUs";
    let (long, short) = (put(0.5), put(0.1));
    assert!(long.contains(told) && !short.contains("fifo with jobs"), "{long}");
}
