//! Runs as traces: what a trace shows is what the record of the same run tells.

#[path = "../../../report/src/trace/tests/decoded.rs"]
#[allow(dead_code)]
mod decoded;

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{command, cosched, ended, err, out, read, until, write};
use cosched_core::POLICIES;
use decoded::{Decoded, Kind, Track, decode};
use serde_json::Value;
use std::process::Stdio;
use tempfile::{TempDir, tempdir};

/// Makes the trace of a log folder, and checks it.
fn traced(folder: &TempDir, run: &str) -> Decoded {
    let output = cosched(folder, &["trace", run, "--perfetto", "out.json"]);
    assert!(output.status.success(), "{run}: {}", err(&output));
    assert!(
        out(&output).starts_with("out.json: ") && out(&output).contains("https://ui.perfetto.dev")
    );
    let bytes = std::fs::read(folder.path().join("out.json")).expect("the trace");
    checked(&bytes)
}

fn checked(bytes: &[u8]) -> Decoded {
    let decoded = decode(bytes).expect("a trace");
    decoded
        .check()
        .unwrap_or_else(|problem| panic!("{problem}"));
    decoded
}

fn track<'a>(decoded: &'a Decoded, parent: &str, name: &str) -> &'a Track {
    decoded
        .track(parent, name)
        .unwrap_or_else(|| panic!("no {parent} / {name}"))
}

/// What a counter comes to over time: the sum of value x time.
fn integral(decoded: &Decoded, track: &Track) -> f64 {
    let points: Vec<(u64, f64)> = decoded
        .on(track)
        .filter_map(|event| Some((event.at, event.value?)))
        .collect();
    points
        .windows(2)
        .map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) as f64 / 1e9)
        .sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-3 * b.abs() + 1e-6
}

/// Compares a trace with the record of the same run.
fn compare(decoded: &Decoded, record: &Value, what: &str) {
    let jobs = record["jobs"].as_array().expect("jobs");
    for job in jobs {
        let name = job["name"].as_str().expect("a name");
        let track = track(decoded, "Jobs", name);
        let end = decoded
            .on(track)
            .find(|event| event.name.starts_with("ended: "))
            .expect("it ended");
        let finish = job["end_s"].as_f64().expect("a time");
        assert!(
            near(end.at as f64 / 1e9, finish),
            "{what}, {name}: {} {finish}",
            end.at
        );
        let slices = decoded.slices(track);
        assert_eq!(
            slices.first().map(|slice| slice.0 as f64 / 1e9),
            job["arrival_s"].as_f64(),
            "{what}, {name}"
        );
        assert_eq!(
            slices.last().map(|slice| slice.1),
            Some(end.at),
            "{what}, {name}"
        );
        assert!(
            slices.windows(2).all(|pair| pair[0].1 == pair[1].0),
            "{what}, {name}: {slices:?}"
        );
    }
    let sum = |key: &str| {
        jobs.iter()
            .map(|job| job[key].as_f64().expect("a value"))
            .sum::<f64>()
    };
    let used = integral(decoded, track(decoded, "Machine", "busy CPUs"));
    assert!(near(used, sum("cpu_s")), "{what}: {used} {}", sum("cpu_s"));
    let reads: f64 = jobs
        .iter()
        .map(|job| job["counts"]["mm_reads"].as_f64().expect("a count") * 64.0)
        .sum();
    let read = integral(decoded, track(decoded, "Machine", "read bandwidth"));
    assert!(near(read, reads), "{what}: {read} {reads}");
    let of_jobs: f64 = jobs
        .iter()
        .map(|job| {
            integral(
                decoded,
                track(
                    decoded,
                    "Counters of jobs",
                    &format!("{} read bandwidth", job["name"].as_str().expect("a name")),
                ),
            )
        })
        .sum();
    // A job that is paused and not stopped has no value meanwhile, and the last one is counted on here.
    assert!(of_jobs >= 0.999 * reads, "{what}: {of_jobs} {reads}");
}

#[test]
fn traces_of_simulated_runs_are_what_their_records_tell() {
    let folder = with_mix();
    for (nth, policy) in POLICIES.iter().map(|entry| entry.name).enumerate() {
        let (seed, logs) = (nth.to_string(), format!("L-{policy}"));
        let machine = if ["bias", "big-fair", "lucky"].contains(&policy) {
            "big1-small3"
        } else {
            MACHINE
        };
        let mut words = vec![
            "run", "mix.toml", "--on", machine, "-p", policy, "--seed", &seed, "--logs", &logs,
            "-q",
        ];
        for plans in [false, true] {
            if plans {
                words.extend(["--actuation", "plans"]);
            }
            let run = cosched(&folder, &words);
            assert!(run.status.success(), "{policy}: {}", err(&run));
            let decoded = traced(&folder, &logs);
            let record: Value = serde_json::from_str(&read(&folder, &format!("{logs}/run.json")))
                .expect("a record");
            compare(&decoded, &record, &format!("{policy}, plans {plans}"));
            assert!(
                decoded
                    .tracks
                    .iter()
                    .all(|track| track.group.ends_with("(simulated)"))
            );
        }
    }
}

/// A run that goes on has neither a record nor an end; whatever is in its series by then is in the trace.
#[test]
fn a_run_that_goes_on_is_traced_up_to_now() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--logs", "L", "--grace", "1", "sleep", "600"];
    let mut run = command(folder.path(), &words)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let series = folder.path().join("L/series.jsonl");
    let told = |what: &str| std::fs::read_to_string(&series).is_ok_and(|text| text.contains(what));
    until("a started job", || told("\n[\"b\""));
    let decoded = traced(&folder, "L");
    assert!(!folder.path().join("L/run.json").exists());
    let job = track(&decoded, "Jobs", "sleep");
    let open = decoded
        .on(job)
        .filter(|event| event.kind == Kind::Slice)
        .last()
        .expect("a slice");
    let is_open = ("series_ends_here".to_owned(), "true".to_owned());
    assert!(open.args.contains(&is_open), "{:?}", open.args);
    assert!(
        decoded
            .on(job)
            .all(|event| !event.name.starts_with("ended"))
    );
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    ended(&mut run);
    let decoded = traced(&folder, "L/series.jsonl");
    let job = track(&decoded, "Jobs", "sleep");
    let end = decoded
        .on(job)
        .find(|event| event.name.starts_with("ended: "))
        .expect("it has ended");
    assert_eq!(
        (end.name.as_str(), end.category.as_str()),
        ("ended: SIGTERM", "failed")
    );
    assert!(
        decoded
            .events
            .iter()
            .any(|event| event.category == "warning"),
        "the end of the run is told"
    );
}

#[test]
fn a_run_is_named_by_any_of_its_files() {
    let folder = with_mix();
    let run = cosched(
        &folder,
        &[
            "run", "mix.toml", "--on", MACHINE, "--logs", "L", "-q", "--record", "r.json",
        ],
    );
    assert!(run.status.success(), "{}", err(&run));
    let trace = |run: &str| {
        let output = cosched(&folder, &["trace", run, "--perfetto", "out"]);
        assert!(output.status.success(), "{}", err(&output));
        let trace = std::fs::read(folder.path().join("out")).expect("the trace");
        (trace, err(&output))
    };
    let (whole, told) = trace("L");
    assert!(told.is_empty() && checked(&whole).events.len() > 100);
    assert_eq!(trace("r.series.jsonl").0, whole);
    assert_eq!(trace("r.json").0, whole);
    // A run that was killed while it wrote a line.
    let series = read(&folder, "L/series.jsonl");
    write(&folder, "K/series.jsonl", series.trim_end());
    let (killed, told) = trace("K");
    let expected = "cosched: K/series.jsonl: its last line is incomplete and left out: the run goes on, or was killed\n";
    assert_eq!(told, expected);
    checked(&killed);
}

#[test]
fn what_can_not_be_traced_is_told_and_nothing_is_written() {
    let folder = with_mix();
    let run = cosched(
        &folder,
        &["run", "mix.toml", "--on", MACHINE, "--logs", "L/1", "-q"],
    );
    assert!(run.status.success(), "{}", err(&run));
    let series = read(&folder, "L/1/series.jsonl");
    let damaged = |line: usize, text: &str| {
        let mut lines: Vec<&str> = series.lines().collect();
        lines[line - 1] = text;
        lines.join("\n") + "\n"
    };
    write(&folder, "damaged", &damaged(40, "[\"p\",1,2,"));
    write(&folder, "unknown", &damaged(41, "[\"b\",1,77]"));
    write(
        &folder,
        "later",
        &series.replacen("cosched.series/2", "cosched.series/9", 1),
    );
    write(&folder, "none", "");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    std::os::unix::fs::symlink("out", folder.path().join("link")).expect("a link");
    let before = cosched(&folder, &["trace", "L/1", "--perfetto", "out"]);
    assert!(before.status.success(), "{}", err(&before));
    let before = std::fs::read(folder.path().join("out")).expect("a trace");
    write(&folder, "L/1/x.out", "what a job wrote\n");
    let cases: [(&str, &str, &[&str]); 14] = [
        ("damaged", "out", &["damaged, line 40: ", "`head -n 39`"]),
        (
            "unknown",
            "out",
            &["unknown, line 41: column `task`: 77, but the header has 10"],
        ),
        (
            "later",
            "out",
            &["found `cosched.series/9`", "needs that version"],
        ),
        (
            "none",
            "out",
            &["none: its run ended before a job of it began"],
        ),
        (
            "L",
            "out",
            &["L: there is no series.jsonl in it; the last of the runs in it is L/1"],
        ),
        (
            "empty",
            "out",
            &["empty: there is no series.jsonl in it; give the log folder"],
        ),
        ("absent", "out", &["absent: there is no such file"]),
        ("absent/run", "out", &["absent/run: there is no such file"]),
        (
            "L/1",
            "L/1/run.json",
            &["this file is not a trace that cosched made, and stays as it is; name another"],
        ),
        ("L/1", "L/1/series.jsonl", &["this file is not a trace"]),
        ("L/1", "L/1/x.out", &["this file is not a trace"]),
        ("L/1", "empty", &["it is a folder"]),
        ("L/1", "nowhere/out", &["there is no folder nowhere"]),
        ("L/1", "link", &["it is a link"]),
    ];
    for (run, target, told) in cases {
        let output = cosched(&folder, &["trace", run, "--perfetto", target]);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{run} {target}: {}",
            err(&output)
        );
        assert!(
            told.iter().all(|part| err(&output).contains(part)),
            "{run} {target}: {}",
            err(&output)
        );
    }
    assert_eq!(
        std::fs::read(folder.path().join("out")).expect("a trace"),
        before,
        "an earlier one stays"
    );
    assert_eq!(read(&folder, "L/1/series.jsonl"), series);
    assert_eq!(read(&folder, "L/1/x.out"), "what a job wrote\n");
    assert!(read(&folder, "L/1/run.json").starts_with("{"));
    assert!(
        cosched(&folder, &["trace", "L/1", "--perfetto", "out"])
            .status
            .success(),
        "a trace is replaced"
    );
    assert!(!folder.path().join("out.new").exists());
    let without = cosched(&folder, &["trace", "L/1"]);
    assert_eq!(without.status.code(), Some(2), "{}", err(&without));
}
