//! A run told again from its files, whole, damaged or missing.

use super::*;

#[test]
fn a_run_is_told_again_from_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulate(&folder, "fair", "cosched-logs/1");
    let told = err(&first);
    let summary = &told[told.find("SIMULATED").expect("a summary")..];
    let last = report(&folder, &[]);
    assert_eq!(out(&last), summary, "{}", err(&last));
    std::fs::rename(
        folder.path().join("cosched-logs/1"),
        folder.path().join("logs"),
    )
    .unwrap();
    let again = report(&folder, &["logs"]);
    assert_eq!(out(&again), summary, "{}", err(&again));
    for file in ["logs/run.json", "logs/series.jsonl"] {
        let named = report(&folder, &[file]);
        assert_eq!(
            (out(&named), err(&named)),
            (summary.to_owned(), String::new()),
            "{file}"
        );
    }
    assert_eq!(
        out(&report(&folder, &["logs", "--format", "json"])),
        read(&folder, "logs/run.json")
    );
    let markdown = out(&report(&folder, &["logs", "--format", "markdown"]));
    assert!(
        markdown.starts_with("# logs\n\n**Simulated.** ") && markdown.contains("\n| lbm#4 | "),
        "{markdown}"
    );

    // The tables say what the record says.
    let record: Value = serde_json::from_str(&read(&folder, "logs/run.json")).unwrap();
    let csv = out(&report(&folder, &["logs", "--format", "csv"]));
    let jobs = rows(&csv);
    assert_eq!(jobs.len(), 6);
    for (row, job) in jobs.iter().zip(record["jobs"].as_array().unwrap()) {
        assert_eq!(
            (row["run"], row["name"]),
            ("logs", job["name"].as_str().unwrap())
        );
        assert_eq!(row["slowdown"], job["slowdown"].to_string());
        assert_eq!(
            row["instructions"],
            job["counts"]["instructions"].to_string()
        );
    }
    let jsonl = out(&report(
        &folder,
        &["logs", "--format", "jsonl", "--table", "metrics"],
    ));
    let metrics: Vec<Value> = jsonl
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let unfairness = metrics
        .iter()
        .find(|row| row["metric"] == "unfairness")
        .unwrap();
    assert_eq!(unfairness["value"], record["metrics"]["unfairness"]);
    let samples = out(&report(
        &folder,
        &["logs", "--format", "jsonl", "--table", "samples"],
    ));
    let samples: Vec<Value> = samples
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let all: u64 = samples
        .iter()
        .filter(|row| row["job"] == "gcc#1")
        .map(|row| row["instructions"].as_u64().unwrap())
        .sum();
    assert_eq!(
        all,
        record["jobs"][0]["counts"]["instructions"]
            .as_u64()
            .unwrap()
    );
}

#[test]
fn what_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert!(error(&folder, &[]).contains("there is no run in cosched-logs here"));
    simulate(&folder, "fair", "logs");
    std::fs::remove_file(folder.path().join("logs/series.jsonl")).unwrap();
    let told = "there is no series beside the record: who ran when is not known";
    for words in [
        &["logs", "--format", "csv", "--table", "samples"][..],
        &["logs", "--html", "page.html"],
    ] {
        let output = report(&folder, words);
        assert!(
            output.status.success() && err(&output).contains(told),
            "{words:?}: {}",
            err(&output)
        );
    }
    // It is also for whoever reads only the page.
    assert!(read(&folder, "page.html").contains(told));
    assert!(!err(&report(&folder, &["logs"])).contains("series"));
    assert!(
        error(&folder, &["logs", "--table", "jobs"])
            .contains("--table needs --format csv or jsonl")
    );
    // Nothing is put in the place of what others have there.
    std::os::unix::fs::symlink("page.html", folder.path().join("link")).unwrap();
    assert!(error(&folder, &["logs", "--html", "link"]).contains("--html link: it is a link"));
    assert!(error(&folder, &["logs", "--html", "/dev/null"]).contains("it is no regular file"));
    assert!(
        Path::new("/dev/null")
            .metadata()
            .is_ok_and(|meta| !meta.is_file())
    );
}

#[test]
fn files_that_are_damaged_are_told() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&folder, "fair", "logs");
    let (record, series) = (
        read(&folder, "logs/run.json"),
        read(&folder, "logs/series.jsonl"),
    );

    // A record that is cut off is no record; its series still tells what happened.
    write(&folder, "logs/run.json", &record[..record.len() / 2]);
    let told = error(&folder, &["logs"]);
    assert!(
        told.contains("run.json: line ") && told.contains("cosched report logs/series.jsonl"),
        "{told}"
    );
    let alone = report(&folder, &["logs/series.jsonl"]);
    assert!(
        alone.status.success() && err(&alone).contains("left no record"),
        "{}",
        err(&alone)
    );
    write(
        &folder,
        "logs/run.json",
        &record.replace("cosched.run/2", "cosched.run/9"),
    );
    assert!(error(&folder, &["logs"]).contains("found `cosched.run/9`"));

    // A series with a wrong line leaves the figures of the record.
    write(&folder, "logs/run.json", &record);
    let lines: Vec<&str> = series.lines().collect();
    let wrong = [&lines[..20], &["[\"p\",1,2]"], &lines[20..]]
        .concat()
        .join("\n");
    write(&folder, "logs/series.jsonl", &wrong);
    let page = report(
        &folder,
        &["logs", "--html", "page.html", "--format", "json"],
    );
    assert_eq!(out(&page), record);
    assert!(
        err(&page).contains("series.jsonl, line 21: column `cpus`"),
        "{}",
        err(&page)
    );
    assert!(
        read(&folder, "page.html").contains("line 21")
            && !read(&folder, "page.html").contains("Who ran where")
    );
    assert_eq!(
        out(&report(&folder, &["logs/series.jsonl", "--format", "json"])),
        record,
        "its record tells"
    );
    std::fs::rename(
        folder.path().join("logs/run.json"),
        folder.path().join("aside"),
    )
    .unwrap();
    assert!(error(&folder, &["logs/series.jsonl"]).contains("line 21"));
    std::fs::rename(
        folder.path().join("aside"),
        folder.path().join("logs/run.json"),
    )
    .unwrap();

    // The series of another run is not mixed with it.
    simulate(&folder, "linux", "other");
    write(
        &folder,
        "logs/series.jsonl",
        &read(&folder, "other/series.jsonl"),
    );
    let page = report(&folder, &["logs", "--html", "page.html"]);
    assert!(
        err(&page).contains("is of another run, and was not used"),
        "{}",
        err(&page)
    );
    assert!(!read(&folder, "page.html").contains("Who ran where"));

    for (name, content, expected) in [
        ("text", "hello\n", "this is no run record (cosched.run/2)"),
        ("empty", "", "this is no run record"),
        (
            "future",
            "{\"schema\":\"cosched.series/9\"}\n",
            "this is no run record",
        ),
    ] {
        write(&folder, name, content);
        assert!(error(&folder, &[name]).contains(expected), "{name}");
    }
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), mode).unwrap();
    assert!(
        error(&folder, &["pipe"]).contains("pipe: it is no regular file; name a log folder"),
        "nobody waits for it"
    );
    std::fs::create_dir(folder.path().join("nothing")).unwrap();
    assert!(error(&folder, &["nothing"]).contains("no run in this folder"));
    assert!(error(&folder, &["gone"]).contains("gone: there is no such file and no such live run"));
    assert!(
        error(&folder, &["logs", "--baseline", "x"])
            .contains("--baseline is for the folder of a comparison")
    );
}

/// What no run can have is no figure, and the record of another run is none of this one.
#[test]
fn a_run_without_a_record_is_told_from_its_series() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "going", "");
    let job = "test {} = a || while test -e going; do sleep 0.1; done";
    let words = ["run", "--logs", "logs", "-q", "-j2", job, ":::", "a", "b"];
    let mut run = common::command(folder.path(), &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let series = folder.path().join("logs/series.jsonl");
    until("a has ended", || {
        std::fs::read_to_string(&series)
            .is_ok_and(|text| text.lines().any(|line| line.starts_with("[\"e\",")))
    });
    let live = report(&folder, &["logs"]);
    assert!(
        err(&live).contains("This run is still live"),
        "{}",
        err(&live)
    );
    let text = out(&live);
    assert!(
        text.contains("still running")
            && text.contains("; the run goes on")
            && !text.contains("lost"),
        "{text}"
    );
    assert!(
        !text.contains("launch to the end of the last job"),
        "the last job has no end yet: {text}"
    );
    run.kill().unwrap();
    ended(&mut run);
    until("the guardian has ended", || {
        let id = serde_json::from_str::<Value>(
            read(&folder, "logs/series.jsonl").lines().next().unwrap(),
        )
        .unwrap();
        let id = id["run_id"].as_str().unwrap().to_owned();
        !Command::new("pgrep")
            .args(["-f", &format!("cosched-guardian.*{id}")])
            .output()
            .is_ok_and(|found| found.status.success())
    });
    let dead = report(&folder, &["logs"]);
    assert!(
        dead.status.success() && err(&dead).contains("left no record"),
        "{}",
        err(&dead)
    );
    // The same files stay where a disk was full: then the run ended by itself, and its jobs did.
    let known = "1 succeeded, 1 without a known end; the run left no record: it was killed, or could not write it";
    let words = out(&dead).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(known) && out(&dead).contains("lost: "),
        "{}",
        out(&dead)
    );
    assert!(
        !out(&dead).contains("launch to the end of the last job"),
        "{}",
        out(&dead)
    );
    assert!(
        report(&folder, &["logs", "--html", "page.html", "-q"])
            .status
            .success()
    );
    assert!(read(&folder, "page.html").contains("left no record"));
    std::fs::remove_file(folder.path().join("going")).unwrap();
}

#[test]
fn a_resumed_run_has_the_jobs_of_its_batch() {
    let folder = tempfile::tempdir().unwrap();
    let words = |more: &[&'static str]| {
        let run = ["run", "-q", "--joblog", "batch.log", "-j1", "-p", "fifo"];
        let jobs = ["test {} != b || test -e ready", ":::", "a", "b", "c"];
        [&run[..], more, &jobs[..]].concat()
    };
    assert_eq!(
        cosched(&folder, &words(&["--logs", "one"])).status.code(),
        Some(1)
    );
    write(&folder, "ready", "");
    let second = cosched(&folder, &words(&["--logs", "two", "--resume"]));
    assert!(second.status.success(), "{}", err(&second));
    let text = out(&report(&folder, &["two"]));
    assert!(text.contains("2 done earlier"), "{text}");
    for job in ["\ntest#1 ", "\ntest#2 ", "\ntest#3 "] {
        assert_eq!(text.matches(job).count(), 1, "{text}");
    }
    // In the order of time, however they are named.
    for paths in [["one", "two"], ["two", "one"]] {
        let csv = [&paths[..], &["--format", "csv", "--table", "jobs"]].concat();
        let csv = out(&report(&folder, &csv));
        let runs: Vec<(&str, &str)> = rows(&csv)
            .iter()
            .map(|row| (row["run"], row["name"]))
            .collect();
        assert_eq!(
            runs,
            [
                ("one", "test#1"),
                ("one", "test#2"),
                ("one", "test#3"),
                ("two", "test#2")
            ]
        );
    }
}

/// A run that is interrupted while its jobs run alone leaves an empty series.
#[test]
fn a_run_that_ended_before_its_first_job_hides_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = ["run", "-q", "--logs", "cosched-logs/good", "--", "true"];
    assert!(cosched(&folder, &run).status.success());
    write(&folder, "cosched-logs/newer/series.jsonl", "");
    let report = cosched(&folder, &["report", "cosched-logs"]);
    assert!(report.status.success(), "{}", err(&report));
    assert!(cosched(&folder, &["report"]).status.success());
    let alone = cosched(&folder, &["report", "cosched-logs/newer"]);
    assert_eq!(alone.status.code(), Some(2));
    let why = "its run ended before a job of it began, so there is nothing to show";
    assert!(err(&alone).contains(why), "{}", err(&alone));
}
