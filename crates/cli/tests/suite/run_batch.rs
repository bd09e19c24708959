//! Batches of real processes, as the user of the built binary meets them.

use crate::common::{command, cosched, err, json, one_cpu, out, read, write};
use cosched_core::POLICIES;
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn a_mix_file_with_every_key() {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    write(&folder, "in put.txt", "from a file\n");
    write(
        &folder,
        "mix.toml",
        "schema = \"cosched.mix/1\"\n[[job]]\nname = \"env\"\ncommand = \"echo $WORD; pwd; cat\"\n\
         env = { WORD = \"héllo\" }\ncwd = \"sub\"\nstdin = \"../in put.txt\"\ncopies = 2\n\
         [[job]]\ncommand = [\"true\"]\nstart_s = 0.05\n",
    );
    let record = json(&cosched(
        &folder,
        &["run", "mix.toml", "--format", "json", "--logs", "L"],
    ));
    let names: Vec<&str> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .filter_map(|j| j["name"].as_str())
        .collect();
    assert_eq!(names, ["env#1", "env#2", "true"]);
    assert!(
        record["jobs"][2]["start_s"].as_f64().expect("a start") >= 0.05,
        "{record}"
    );
    for copy in ["L/env#1.out", "L/env#2.out"] {
        let text = read(&folder, copy);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() == 3 && lines[0] == "héllo" && lines[1].ends_with("/sub"),
            "{text}"
        );
        assert_eq!(lines[2], "from a file");
    }
}

#[test]
fn jobs_that_end_are_started_again_until_the_longest_has() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "restart = \"until-last\"\n[[job]]\nname = \"short\"\ncommand = \"echo run; sleep 0.1\"\n\
         [[job]]\nname = \"long\"\ncommand = [\"sleep\", \"1.2\"]\n\
         [[job]]\nname = \"bad\"\ncommand = \"sleep 0.1; exit 3\"\n",
    );
    for how in ["auto", "signals"] {
        let words = [
            "run", "mix.toml", "--policy", "linux", "--freeze", how, "--format", "json", "--logs",
            how,
        ];
        let output = cosched(&folder, &words);
        // The bad job failed; the jobs that were ended together with the long one did not.
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        let record = json(&output);
        let job = |ix: usize| &record["jobs"][ix];
        let runs: Vec<u64> = (0..3).filter_map(|ix| job(ix)["runs"].as_u64()).collect();
        assert!(runs[0] > 1 && runs[1..] == [1, 1], "{record}");
        assert_eq!(
            (job(0)["exit"].as_i64(), job(2)["exit"].as_i64()),
            (Some(0), Some(3))
        );
        let finish = |ix: usize| job(ix)["end_s"].as_f64().expect("an end");
        assert!(finish(0) < finish(1), "its first end is its end");
        assert_eq!(record["metrics"]["turnaround_s"].as_f64(), Some(finish(1)));
        assert_eq!(
            (
                record["totals"]["succeeded"].as_u64(),
                record["totals"]["failed"].as_u64()
            ),
            (Some(2), Some(1))
        );
        let lines = read(&folder, &format!("{how}/short.out")).lines().count() as u64;
        assert!(
            lines == runs[0] || lines + 1 == runs[0],
            "{lines} lines of {} runs",
            runs[0]
        );
    }
}

#[test]
fn lists_templates_and_words() {
    let folder = tempdir().expect("a folder");
    write(&folder, "list", "# jobs\necho one\n\necho two three\n");
    let shown = |words: &[&str]| {
        let output = cosched(
            &folder,
            &[&["run", "--jobs", "1", "-q", "--output", "group"], words].concat(),
        );
        assert!(output.status.success(), "{words:?}: {}", err(&output));
        out(&output)
    };
    assert_eq!(shown(&["-f", "list"]), "one\ntwo three\n");
    assert_eq!(shown(&["--", "echo", "-n", "x"]), "x");
    assert_eq!(
        shown(&["echo", "-n", "<{}>", ":::", "a b", "ü"]),
        "<a b><ü>"
    );
}

#[test]
fn the_record_has_every_field_and_absent_ones_say_why() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run", "--format", "json", "--record", "r.json", "--seed", "7", "true",
    ];
    let record = json(&cosched(&folder, &words));
    assert_eq!(
        (&record["schema"], &record["seed"]),
        (&"cosched.run/2".into(), &7.into())
    );
    let has = |object: &Value, keys: &[&str]| {
        for key in keys {
            let is_known = !object[key].is_null() || *key == "program";
            let is_explained = object[format!("{key}_absent")].is_string();
            assert!(is_known || is_explained, "{key}: {object}");
        }
    };
    has(
        &record,
        &[
            "policy",
            "backend",
            "machine",
            "started_at",
            "quantum_s",
            "jobs",
            "metrics",
            "energy",
            "overhead",
        ],
    );
    let job = [
        "name",
        "program",
        "start_s",
        "end_s",
        "exit",
        "cpu_s",
        "waited_max_s",
        "ipc",
    ];
    has(
        &record["jobs"][0],
        &[&job[..], &["progress", "solo_s", "slowdown"]].concat(),
    );
    has(
        &record["metrics"],
        &[
            "turnaround_s",
            "unfairness",
            "stp",
            "antt",
            "jain",
            "mean_ipc",
            "worst_slowdown",
        ],
    );
    has(&record["metrics"], &["max_wait_s", "energy_j", "edp_js"]);
    has(&record["energy"], &["joules", "source"]);
    has(
        &record["overhead"],
        &["quanta", "decide_us", "observe_us", "apply_us", "cpu_share"],
    );
    assert_eq!(
        serde_json::from_str::<Value>(&read(&folder, "r.json")).expect("JSON"),
        record
    );
    assert!(read(&folder, "r.series.jsonl").lines().count() > 1);
}

#[test]
fn output_modes_lose_nothing() {
    let folder = tempdir().expect("a folder");
    let job = "printf 'a\\nend'; printf oops >&2";
    for (mode, stdout, stderr) in [
        ("group", "a\nend", "oops"),
        ("live", "a\nend", "oops"),
        ("tag", "printf\ta\nprintf\tend\n", "printf\toops\n"),
    ] {
        let output = cosched(&folder, &["run", "-q", "--output", mode, job]);
        assert_eq!(
            (out(&output).as_str(), err(&output).as_str()),
            (stdout, stderr),
            "{mode}"
        );
    }
}

#[test]
fn every_policy_ends_its_batch_and_its_decisions_replay() {
    let folder = tempdir().expect("a folder");
    for name in POLICIES.iter().map(|entry| entry.name) {
        let words = [
            "run", "-q", "--policy", name, "--events", "events", "cosched", "workload", "compute",
            "--work", "{}",
        ];
        let output = cosched(&folder, &[&words[..], &[":::", "1K", "2K", "3K"]].concat());
        if output.status.code() == Some(3) {
            println!("{name} skipped, because {}", err(&output));
            continue;
        }
        assert!(output.status.success(), "{name}: {}", err(&output));
        let events = read(&folder, "events").lines().count();
        assert!(events > 0, "{name}");
        for seq in 0..events {
            let words = [
                "decide",
                "events",
                "--format",
                "json",
                "--seq",
                &seq.to_string(),
            ];
            assert_eq!(
                json(&cosched(&folder, &words))["same_as_recorded"],
                true,
                "{name} {seq}"
            );
        }
    }
}

/// No counter is needed for it.
#[test]
fn given_demands_keep_jobs_off_the_memory_bus() {
    let folder = tempdir().expect("a folder");
    let job = "[[job]]\ncommand = [\"cosched\", \"workload\", \"compute\", \"--work\", \"20M\"]\nbus_use = 1\ncopies = 3\n";
    write(&folder, "mix.toml", job);
    let words = [
        "run",
        "mix.toml",
        "-q",
        "--policy",
        "efs",
        "--param",
        "demand=given",
        "--param",
        "quantum_s=0.02",
    ];
    let output = cosched(&folder, &[&words[..], &["--events", "events"]].concat());
    if output.status.code() == Some(3) {
        println!("skipped, because {}", err(&output));
        return;
    }
    assert!(output.status.success(), "{}", err(&output));
    let events = read(&folder, "events");
    for (seq, event) in events.lines().enumerate() {
        let event: Value = serde_json::from_str(event).expect("an event");
        let changes = event["decision"]["changes"].as_array().expect("changes");
        let starts = changes
            .iter()
            .filter(|change| change.get("place").is_some())
            .count();
        assert!(starts <= 1, "two that fill the bus: {event}");
        let words = [
            "decide",
            "events",
            "--format",
            "json",
            "--seq",
            &seq.to_string(),
        ];
        assert_eq!(
            json(&cosched(&folder, &words))["same_as_recorded"],
            true,
            "{seq}"
        );
    }
    if cosched_linux::affinity(0)
        .expect("the CPUs of this process")
        .len()
        == 1
    {
        println!("skipped in part, because with one CPU nobody waits for the bus");
    } else {
        assert!(events.contains("\"basis\":\"given\""), "{events}");
    }
    let wrong = write_mix(&folder, &job.replace("bus_use = 1\n", "bus_use = 1.5\n"));
    assert_eq!(wrong.status.code(), Some(2));
    for part in ["wrong.toml:3", "bus_use is 1.5", "expected 0.0 to 1.0"] {
        assert!(err(&wrong).contains(part), "{part}: {}", err(&wrong));
    }
}

fn write_mix(folder: &tempfile::TempDir, text: &str) -> std::process::Output {
    write(folder, "wrong.toml", text);
    cosched(folder, &["run", "wrong.toml"])
}

#[test]
fn solo_times_are_measured_and_used_again() {
    let folder = tempdir().expect("a folder");
    for solo in ["measure", "L/solo.json"] {
        let words = [
            "run", "--solo", solo, "--logs", "L", "--format", "json", "sleep", "{}", ":::", "0.1",
            "0.1",
        ];
        let record = json(&cosched(&folder, &words));
        assert!(
            record["jobs"][1]["slowdown"]
                .as_f64()
                .is_some_and(|slowdown| slowdown > 0.0),
            "{solo}: {record}"
        );
    }
}

#[test]
fn solo_times_that_can_not_be_had_are_warned_of_by_code() {
    let folder = tempdir().expect("a folder");
    let codes = |solo: &str, words: &[&str]| {
        let options = [
            "run", "--solo", solo, "--logs", "L", "--format", "json", "--policy", "linux",
        ];
        let record = json(&cosched(&folder, &[&options[..], words].concat()));
        let warnings = record["warnings"].as_array().expect("warnings").clone();
        let of_job = |warning: &&Value| {
            warning["text"]
                .as_str()
                .is_some_and(|text| text.contains("job fails"))
        };
        let of_job: Vec<Value> = warnings
            .iter()
            .filter(of_job)
            .map(|warning| warning["code"].clone())
            .collect();
        of_job
    };
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"fails\"\ncommand = \"false\"\n[[job]]\ncommand = \"true\"\n",
    );
    assert_eq!(codes("measure", &["mix.toml"]), ["solo-failed"]);
    assert_eq!(codes("L/solo.json", &["mix.toml"]), ["solo-missing"]);
}

#[test]
fn the_summary_says_why_figures_are_missing_that_were_asked_for() {
    let folder = tempdir().expect("a folder");
    let jobs = ["--logs", "L", "exit {}", ":::", "0", "3"];
    let text = |options: &[&str]| err(&cosched(&folder, &[&["run"], options, &jobs].concat()));
    let asked = text(&["--solo", "measure"]);
    assert!(
        asked.contains("not known: unfairness, STP, ANTT"),
        "{asked}"
    );
    assert!(!asked.contains("not known: energy"), "{asked}");
    assert!(!text(&[]).contains("not known"), "nobody asked");
}

#[test]
fn verbs_that_only_answer() {
    let folder = tempdir().expect("a folder");
    for words in [
        "completions bash",
        "completions zsh",
        "completions fish",
        "man",
        "doctor",
        "list policies",
        "list metrics",
        "list events",
        "list machines",
        "list programs",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let output = cosched(&folder, &words);
        assert!(
            output.status.success() && output.stdout.len() > 100 && output.stderr.is_empty(),
            "{words:?}"
        );
        if words[0] == "doctor" {
            let answer = json(&cosched(&folder, &["doctor", "--format", "json"]));
            assert!(answer.is_object());
        }
    }
    let unknown = command(folder.path(), &["run", "true"])
        .env("COSCHED_POLICY", "nope")
        .output()
        .expect("it runs");
    assert!(unknown.status.code() == Some(2) && err(&unknown).contains("`nope`"));
}

#[test]
fn a_gang_gets_its_cpus() {
    let folder = tempdir().expect("a folder");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        // Not with `eprintln!`, which the test harness captures.
        let _ = std::io::stderr()
            .write_all(b"a_gang_gets_its_cpus skipped, because there is one CPU\n");
        return;
    }
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"gang\"\ncpus = 2\ncommand = \"true\"\n[[job]]\ncommand = [\"true\"]\n",
    );
    let words = [
        "run", "mix.toml", "--policy", "fifo", "--logs", "L", "--format", "json",
    ];
    let record = json(&cosched(&folder, &words));
    assert_eq!(
        (&record["jobs"][0]["cpus"], &record["totals"]["succeeded"]),
        (&2.into(), &2.into()),
        "{record}"
    );
    let series = read(&folder, "L/series.jsonl");
    let lines = series
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let placed: Vec<Value> = lines
        .filter(|line| line[0] == "p" && line[2] == 0)
        .collect();
    assert!(!placed.is_empty(), "{series}");
    for line in placed {
        let width: usize = line[3]
            .as_str()
            .expect("CPUs")
            .split(',')
            .map(list_length)
            .sum();
        assert_eq!(width, 2, "{line}");
    }
}

/// Numbers in an item of a CPU list: `3` or `0-3`.
fn list_length(item: &str) -> usize {
    let number = |text: &str| text.parse::<usize>().expect("a CPU");
    item.split_once('-')
        .map_or(1, |(first, last)| number(last) - number(first) + 1)
}

#[test]
fn a_list_from_standard_input() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-f", "-", "--jobs", "1", "-q", "--output", "group"];
    let mut child = command(folder.path(), &words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"echo one\n# no job\necho two\n")
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output), "one\ntwo\n");
}

#[test]
fn memory_to_keep_that_is_never_there_stops_no_batch() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--mem-keep",
        "1000000G",
        "--format",
        "json",
        "true",
        ":::",
        "a",
        "b",
        "c",
    ];
    let output = cosched(&folder, &words);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(json(&output)["totals"]["succeeded"], 3);
}

#[test]
fn with_json_the_jobs_output_goes_to_standard_error() {
    let folder = tempdir().expect("a folder");
    let output = cosched(
        &folder,
        &[
            "run",
            "--format",
            "json",
            "--output",
            "live",
            "echo from the job",
        ],
    );
    assert!(
        json(&output)["schema"] == "cosched.run/2" && err(&output).contains("from the job\n"),
        "{}",
        err(&output)
    );
}

/// Whoever opens a pipe waits for its writer, and the run must not.
#[test]
fn a_pipe_as_standard_input_is_refused() {
    let folder = tempdir().expect("a folder");
    let made = Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    write(
        &folder,
        "mix.toml",
        "[[job]]\ncommand = [\"cat\"]\nstdin = \"pipe\"\n",
    );
    let run = cosched(&folder, &["run", "mix.toml"]);
    assert!(
        run.status.code() == Some(2)
            && err(&run).contains("pipe is a named pipe; let a shell read it"),
        "{}",
        err(&run)
    );
}

#[test]
fn solo_runs_show_no_output_of_their_own() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run", "-q", "--output", "group", "-k", "--solo", "measure", "echo", ":::", "a", "b",
    ];
    assert_eq!(out(&cosched(&folder, &words)), "a\nb\n");
}

#[test]
fn more_jobs_than_run_at_once_are_told() {
    let folder = tempdir().expect("a folder");
    let one = one_cpu();
    let words = [
        "run", "--policy", "fifo", "--cpus", &one, "-j", "3", "sleep", ":::", "0.01", "0.02",
        "0.03",
    ];
    let told = err(&cosched(&folder, &words));
    assert!(
        told.contains("--jobs 3: under fifo each job has a CPU of its own, so that 1 run at once"),
        "{told}"
    );
    for words in [
        &["--policy", "linux", "-j", "3"][..],
        &["--policy", "fifo", "-j", "1"],
        &["--policy", "fifo"],
    ] {
        let words = [
            &["run", "--cpus", &one],
            words,
            &["sleep", ":::", "0.01", "0.02", "0.03"],
        ]
        .concat();
        let told = err(&cosched(&folder, &words));
        assert!(!told.contains("at once"), "{told}");
    }
}

#[test]
fn manual_pages_are_written_to_a_folder_and_follow_no_link() {
    let folder = tempdir().expect("a folder");
    let pages = cosched(&folder, &["man", "--dir", "a/pages"]);
    assert!(pages.status.success(), "{}", err(&pages));
    assert!(read(&folder, "a/pages/cosched.1").contains("cosched"));
    write(&folder, "precious", "kept");
    let page = folder.path().join("a/pages/cosched-run.1");
    std::fs::remove_file(&page).expect("a page");
    std::os::unix::fs::symlink(folder.path().join("precious"), &page).expect("a link");
    let again = cosched(&folder, &["man", "--dir", "a/pages"]);
    assert!(again.status.success(), "{}", err(&again));
    assert_eq!(read(&folder, "precious"), "kept");
    assert!(read(&folder, "a/pages/cosched-run.1").len() > 100);
}

#[test]
fn words_for_values_that_a_job_lacks_are_left_out() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--no-logs",
        "-k",
        "-n",
        "2",
        "printf",
        "<%s>",
        "{1}",
        "{2}",
        "x{2}",
        ":::",
        "1",
        "2",
        "3",
    ];
    assert_eq!(out(&cosched(&folder, &words)), "<1><2><x2><3><x>");
}

#[test]
fn jobs_begin_in_the_order_of_their_solo_times() {
    // Nothing but the solo runs knows that the last is the longest.
    let folder = tempdir().expect("a folder");
    let jobs = ["sleep", "{}", ":::", "0.1", "0.1", "0.1", "0.1", "2"];
    let words = [
        "run", "-j2", "-p", "fifo", "--format", "json", "--logs", "L", "--solo",
    ];
    let record = json(&cosched(
        &folder,
        &[&words[..], &["measure"], &jobs[..]].concat(),
    ));
    let jobs_of = |record: &Value| record["jobs"].as_array().expect("jobs").clone();
    let all = jobs_of(&record);
    for job in &all {
        assert_eq!(job["expected"]["from"], "solo", "{job}");
        assert_eq!(job["expected"]["time_s"], job["solo_s"], "{job}");
    }
    let start = |job: &Value| job["start_s"].as_f64().expect("a time");
    let before = all.iter().filter(|job| start(job) < start(&all[4]));
    assert!(before.count() <= 1, "{record}");
    // A file of solo times says the same, and so does the plan.
    let file = [
        &words[..],
        &["L/solo-profiles.json", "--dry-run"],
        &jobs[..],
    ]
    .concat();
    let plan = json(&cosched(&folder, &file));
    let expected = &jobs_of(&plan)[4]["expected"];
    assert_eq!(expected["from"], "solo", "{plan}");
    // The file rounds.
    let time = |value: &Value| value.as_f64().expect("a time");
    let off = time(&expected["time_s"]) - time(&all[4]["solo_s"]);
    assert!(off.abs() < 1e-6, "{plan}");
}
