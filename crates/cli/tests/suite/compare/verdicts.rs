//! What a comparison runs, and what it says.

use super::support::{SIMULATED, change, compare, records};
use crate::common::{err, json, out, write};

#[test]
fn simulated_policies_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    write(&folder, "b.toml", &SIMULATED.replace("gcc", "mcf"));
    let words = [
        "a.toml",
        "b.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,bandwidth,even",
        "-r",
        "3",
        "--format",
        "json",
    ];
    let first = compare(&folder, &[&words[..], &["--out", "c"]].concat());
    assert!(first.status.success(), "{}", err(&first));
    let answer = json(&first);
    assert_eq!(
        (answer["schema"].as_str(), answer["blocks"].as_u64()),
        (Some("cosched.comparison/1"), Some(3))
    );
    assert_eq!(
        (
            answer["runs"].as_array().unwrap().len(),
            records(&folder, "c").len()
        ),
        (18, 18)
    );
    // Turnaround, unfairness, ANTT and energy of two candidates: over both mixes, and of each.
    assert_eq!(answer["comparisons"].as_array().unwrap().len(), 4 * 2 * 3);
    for one in answer["comparisons"].as_array().unwrap() {
        assert!(
            one["verdict"].is_string() && one["low"].as_f64() <= one["change"].as_f64(),
            "{one}"
        );
    }
    let turnaround = |run: &serde_json::Value| run["figures"]["turnaround_s"].as_f64().unwrap();
    assert!(
        answer["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|run| turnaround(run) > 0.1)
    );
    // The same again gives the same, whichever thread makes which run.
    let again = compare(&folder, &[&words[..], &["--out", "d"]].concat());
    assert_eq!(json(&again)["runs"], answer["runs"]);
    assert_eq!(json(&again)["comparisons"], answer["comparisons"]);
    let (text, csv) = (
        std::fs::read_to_string(folder.path().join("c/comparison.txt")).unwrap(),
        "c/comparison.csv",
    );
    assert!(
        text.starts_with("SIMULATED\n2 mixes simulated on epyc-2cpu, 3 blocks, seed 1\n"),
        "{text}"
    );
    let csv = std::fs::read_to_string(folder.path().join(csv)).unwrap();
    assert!(
        csv.lines().count() > 18 * 8 && csv.lines().all(|line| line.split(',').count() >= 7),
        "{csv}"
    );
    // One block's series are kept, and the page shows its timelines.
    let series = |block: u32| {
        folder
            .path()
            .join(format!("c/runs/{block:04}/b/even/series.jsonl"))
            .exists()
    };
    assert_eq!((series(1), series(2), series(3)), (true, false, false));
    let page = std::fs::read_to_string(folder.path().join("c/comparison.html")).unwrap();
    assert_eq!(page.matches("--perfetto FILE").count(), 6);
    assert!(page.contains("This shows 6 runs of the first block."));
}

#[test]
fn a_policy_does_not_differ_from_itself() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    let words = [
        "a.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "fair",
        "--param",
        "quantum_s=0.2,0.20",
        "-r",
        "5",
        "--format",
        "json",
    ];
    let answer = json(&compare(&folder, &words));
    for one in answer["comparisons"].as_array().unwrap() {
        assert_eq!(
            (one["verdict"].as_str(), one["change"].as_f64()),
            (Some("no-difference"), Some(0.0)),
            "{one}"
        );
    }
}

#[test]
fn real_jobs_and_other_programs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'nap'\ncommand = 'sleep 0.1'\ncopies = 2\n",
    );
    let words = [
        "jobs.toml",
        "--policies",
        "fifo,round-robin",
        "--candidate",
        "by hand=sleep 0.2; echo done",
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
        runs.iter()
            .find(|run| run["trial"]["candidate"] == candidate)
            .unwrap()
            .clone()
    };
    // Of a command only the time is known.
    let figures = of(2)["figures"].as_object().unwrap().clone();
    assert!(figures.len() == 1 && figures["turnaround_s"].as_f64().unwrap() >= 0.2);
    assert!(of(2)["policy"].is_null());
    let judged = answer["comparisons"].as_array().unwrap();
    let is_of_other =
        |one: &&serde_json::Value| one["metric"] == "turnaround_s" && one["candidate"] == 2;
    assert!(
        judged.iter().find(is_of_other).unwrap()["verdict"].is_string(),
        "{answer}"
    );
    // Each job ran alone: its slowdown is known.
    assert!(of(0)["figures"]["antt"].as_f64().unwrap() > 0.9, "{answer}");
    assert!(folder.path().join("c/solo/jobs.json").is_file());
    // What the jobs wrote is the same in each run, and is not kept.
    let run = folder.path().join("c/runs/0001/jobs/fifo");
    let mut left: Vec<_> = run
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let files = [".cosched-run", "joblog", "joblog.runs", "run.json"];
    assert_eq!(left, [&files[..], &["series.jsonl"]].concat());
    let one = compare(
        &folder,
        &[
            "jobs.toml",
            "-p",
            "fifo,linux",
            "-r",
            "1",
            "--solo-runs",
            "0",
        ],
    );
    assert!(
        out(&one).contains("one block shows nothing"),
        "{}",
        out(&one)
    );
}

#[test]
fn failed_jobs_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'bad'\ncommand = 'exit 3'\n",
    );
    let output = compare(
        &folder,
        &[
            "jobs.toml",
            "-p",
            "fifo,linux",
            "-r",
            "1",
            "--solo-runs",
            "0",
            "--out",
            "c",
        ],
    );
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(
        out(&output).contains("jobs failed, bad first"),
        "{}",
        out(&output)
    );
    // Whoever fails early is not fast.
    write(
        &folder,
        "good.toml",
        "[[job]]\nname = 'good'\ncommand = 'sleep 0.1'\n",
    );
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
    for told in [
        "the command or jobs failed",
        "the command failed (exit 127: ",
        "), so it is compared with nothing",
    ] {
        assert!(out(&output).contains(told), "{}", out(&output));
    }
    // Nor does a program that fails do as much as a policy whose job fails.
    let words = [
        "jobs.toml",
        "-p",
        "fifo",
        "--candidate",
        "x=exit 1",
        "-r",
        "2",
        "--solo-runs",
        "0",
        "--format",
        "json",
    ];
    let answer = json(&compare(&folder, &words));
    for one in answer["comparisons"].as_array().unwrap() {
        assert!(
            one["verdict"] == "cant-say" && one["change"].is_null(),
            "{one}"
        );
    }
}

#[test]
fn blocks_that_warm_up_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'here'\ncommand = 'echo run >> count'\n",
    );
    let words = ["jobs.toml", "-p", "fifo,linux", "-r", "2"];
    let more = ["--solo-runs", "1", "--out", "c", "--format", "json"];
    let output = compare(&folder, &[&words[..], &more].concat());
    assert_eq!(json(&output)["blocks"], 2, "{}", err(&output));
    let count = std::fs::read_to_string(folder.path().join("count")).unwrap();
    assert_eq!((count.lines().count(), records(&folder, "c").len()), (5, 4));
}

#[test]
fn a_command_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "jobs.toml", "[[job]]\ncommand = 'true'\n");
    let odd = "odd \"name\"=printf '%s|' {} '$x' \"a\\\\b\" > written; exit 0";
    let words = ["jobs.toml", "-p", "fifo", "--candidate", odd, "-r", "1"];
    let output = compare(&folder, &[&words[..], &["--solo-runs", "0"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    let written = std::fs::read_to_string(folder.path().join("written")).unwrap();
    assert_eq!(written, "{}|$x|a\\b|");
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    write(
        &folder,
        "real.toml",
        "[[job]]\nname = 'a'\ncommand = 'touch started'\n",
    );
    write(&folder, "full/other", "");
    let cases: &[(&[&str], &str)] = &[
        (
            &["real.toml", "-p", "fifo", "--candidate", "x="],
            "the command is empty",
        ),
        (
            &["real.toml", "-p", "fifo", "--candidate", "=true"],
            "NAME=CMD",
        ),
        (
            &["real.toml", "-p", "fifo,linux", "--", "--logs", "x"],
            "--logs behind `--`",
        ),
        (
            &["real.toml", "-p", "fifo,linux", "--", "--record", "x"],
            "--record behind `--`",
        ),
        (
            &["real.toml", "-p", "fifo,linux", "--", "--seed", "4"],
            "--seed behind `--`",
        ),
        (
            &["real.toml", "-p", "fifo,linux", "--", "--joblog", "x"],
            "--joblog behind `--`",
        ),
        (
            &["a.toml", "-p", "linux", "--on", "epyc-2cpu"],
            "only one candidate, linux; name another, as in --policies linux,auto",
        ),
        (
            &["a.toml", "-p", "linx,fair", "--on", "epyc-2cpu"],
            "--policies: there is no policy `linx` (did you mean `linux`?)",
        ),
        (
            &[
                "a.toml",
                "-p",
                "linux,fair",
                "--on",
                "epyc-2cpu",
                "--solo-runs",
                "3",
            ],
            "--solo-runs: a simulation knows",
        ),
        (
            &["a.toml", "-p", "linux,linux", "--on", "epyc-2cpu"],
            "two candidates are called `linux`",
        ),
        (
            &["a.toml", "--baseline", "linx", "--on", "epyc-2cpu"],
            "did you mean `linux`",
        ),
        (
            &["a.toml", "--param", "quantum=1", "--on", "epyc-2cpu"],
            "has a parameter `quantum`",
        ),
        (
            &[
                "a.toml",
                "-p",
                "fair",
                "--param",
                "quantum_s=0.1,x",
                "--on",
                "epyc-2cpu",
            ],
            "--param quantum_s",
        ),
        (
            &["a.toml", "--metric", "speed", "--on", "epyc-2cpu"],
            "there is no metric `speed`",
        ),
        (
            &["a.toml", "--candidate", "x=true", "--on", "epyc-2cpu"],
            "a command can't run in a simulation",
        ),
        (&["no.toml", "--on", "epyc-2cpu"], "no.toml"),
        (
            &["a.toml", "--on", "epyc-2cpu", "--out", "full"],
            "name a new folder",
        ),
        (
            &[
                "a.toml",
                "-p",
                "lucky,linux",
                "--on",
                "epyc-2cpu",
                "--out",
                "lucky",
            ],
            "lucky with a: policy lucky needs",
        ),
        (
            &["real.toml", "-p", "fifo,linux", "--", "--cpuss", "0"],
            "--cpuss",
        ),
    ];
    for (words, told) in cases {
        let output = compare(&folder, words);
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "{words:?}: {}",
            err(&output)
        );
        assert!(err(&output).contains(told), "{words:?}: {}", err(&output));
    }
    assert!(
        !folder.path().join("started").exists() && !folder.path().join("cosched-compare").exists()
    );
}

#[test]
fn runs_of_different_origins_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "sim.toml", SIMULATED);
    let words = [
        "sim.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,fair",
        "-r",
        "2",
        "--out",
        "c",
    ];
    assert!(compare(&folder, &words).status.success());
    let report = |words: &[&str]| {
        let output = crate::common::cosched(&folder, &[&["report"], words].concat());
        assert!(output.status.success(), "{}", err(&output));
        (
            out(&output)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            err(&output),
        )
    };
    for (key, value, told) in [
        (
            "machine",
            "another",
            "these runs are of different machines: another, 1 run; epyc-2cpu, 1 run",
        ),
        (
            "cosched_version",
            "9.9.9",
            concat!(
                "these runs are of different versions of cosched: ",
                env!("CARGO_PKG_VERSION"),
                ", 1 run; 9.9.9, 1 run"
            ),
        ),
    ] {
        change(&folder, "c/runs/0002/sim/fair/run.json", key, value);
        let (text, _) = report(&["c/runs/0001/sim/fair", "c/runs/0002/sim/fair"]);
        assert!(text.contains(told), "{text}");
        let (text, errors) = report(&[
            "c/runs/0001/sim/fair",
            "c/runs/0002/sim/fair",
            "--format",
            "csv",
        ]);
        assert!(
            errors.contains(told) && !text.contains("of different"),
            "{errors}"
        );
    }
}

#[test]
fn blocks_are_made_until_the_intervals_are_narrow() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "a.toml",
        "[[job]]\nprogram = 'gcc'\ncopies = 4\nwork_instructions = 3e8\n\n\
         [[job]]\nprogram = 'lbm'\ncopies = 3\nwork_instructions = 1e9\n",
    );
    let compared = |words: &[&str]| {
        let usual = [
            "a.toml",
            "--on",
            "i5-2500",
            "-p",
            "linux,fifo",
            "--metric",
            "turnaround_s",
            "--format",
            "json",
        ];
        let output = compare(&folder, &[&usual, words].concat());
        assert!(output.status.success(), "{}", err(&output));
        json(&output)
    };
    let half_width = |answer: &serde_json::Value| {
        let one = &answer["comparisons"][0];
        (one["high"].as_f64().unwrap() - one["low"].as_f64().unwrap()) / 2.0
    };
    let narrow = compared(&["--until-ci", "0.05%", "--out", "narrow"]);
    let blocks = narrow["blocks"].as_u64().unwrap();
    assert!(7 < blocks && blocks < 100, "{blocks}");
    assert!(half_width(&narrow) <= 0.0005, "{narrow}");
    assert_eq!(narrow["notes"].as_array().unwrap().len(), 0);

    let fewer = (blocks - 1).to_string();
    let wide = compared(&["--until-ci", "0.05%", "-r", &fewer, "--out", "wide"]);
    assert!(half_width(&wide) > 0.0005, "{wide}");
    let note = wide["notes"][0].as_str().unwrap();
    assert!(
        note.contains("after") && note.contains("not ±0.05 %"),
        "{note}"
    );
    let runs = |answer: &serde_json::Value| answer["runs"].as_array().unwrap().clone();
    assert!(runs(&narrow).starts_with(&runs(&wide)));
}
