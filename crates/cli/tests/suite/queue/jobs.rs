//! Jobs of the queue, from `submit` and `run --join` to their ends.

use super::*;

#[test]
fn jobs_are_queued_shown_and_waited_for() {
    let served = Served::start(&[]);
    assert_eq!(served.submit("pwd; echo $GREETING"), "1");
    assert_eq!(served.wait("1"), Some(0));
    let mut with_variable = served.command(&["submit", "--wait", "sh", "-c", "echo $A; exit 3"]);
    let output = with_variable
        .env("A", "a b")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    assert_eq!((output.status.code(), &*out(&output)), (Some(3), "2\n"));
    assert!(
        err(&output).contains("job 2 (echo): exit 3"),
        "{}",
        err(&output)
    );
    assert_eq!(out(&served.call(&["logs", "2"])), "a b\n");
    assert_eq!(served.submit("echo oops >&2; kill -9 $$"), "3");
    assert_eq!(served.wait("3"), Some(137));
    assert_eq!(err(&served.call(&["logs", "3"])), "oops\n");
    assert_eq!(served.call(&["wait"]).status.code(), Some(0));
    assert_eq!(served.call(&["wait", "1", "2"]).status.code(), Some(1));
    let missing = served.call(&["submit", "--wait", "--name", "mine", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(127), "{}", err(&missing));
    let why = err(&served.call(&["logs", "4"]));
    assert!(why.contains("no-such-program"), "{why}");
    let text = out(&served.call(&["status", "--all"]));
    for part in ["JOB", "exit 0", "exit 3", "SIGKILL", "mine", "not started"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(out(&served.call(&["status"])).contains("queue: no job\n"));
    let schemas = Schemas::read();
    let told = served.call(&["status", "--all", "--format", "json"]);
    schemas.check("runs-now.json", &common::json(&told));
    for words in [
        &["wait", "9"][..],
        &["logs", "9"],
        &["cancel", "9"],
        &["rerun", "1"],
        &["submit", "--cpus", "0", "true"],
        &["submit", "--cpus", "65536", "true"],
    ] {
        let refused = served.call(words);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    }
}

#[test]
fn a_run_joins_the_queue_and_ends_as_any_run() {
    let served = Served::start(&[]);
    let mut several =
        served.command(&["run", "--join", "echo {} $A >&2; exit {}", ":::", "0", "1"]);
    let several = several.env("A", "a b").stderr(Stdio::piped()).output();
    let several = several.expect("it runs");
    assert_eq!(several.status.code(), Some(1));
    let shown = err(&several);
    for part in [
        "0 a b\n",
        "1 a b\n",
        "/2] job 2, ",
        ": exit 1\n",
        "1 succeeded, 1 failed\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let one = served.call(&["run", "--join", "-q", "--", "sh", "-c", "pwd; exit 3"]);
    assert_eq!((one.status.code(), &*err(&one)), (Some(3), ""));
    assert_eq!(out(&one), format!("{}\n", served.folder.path().display()));
    assert!(served.call(&["run", "--join", "true"]).status.success());
    for (words, part) in [
        (
            &["--policy", "fair", "true"][..],
            "--policy has no meaning with --join",
        ),
        (&["mix.toml"], "a node knows no nice"),
    ] {
        let mix = "[[job]]\ncommand = 'true'\nnice = 1\n";
        std::fs::write(served.path("mix.toml"), mix).expect("a file");
        let refused = served.call(&[&["run", "--join"], words].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(err(&refused).contains(part), "{}", err(&refused));
    }
    assert_eq!(served.queue()["jobs"].as_array().map(Vec::len), Some(4));
}

#[test]
fn an_interrupted_run_takes_its_jobs_out_of_the_queue() {
    let served = Served::start(&[]);
    let others = served.submit_loop("others", "going");
    let line = "touch began; sleep 1000 {}";
    let mut joined = served.command(&["run", "--join", line, ":::", "1", "2", "3"]);
    let mut joined = joined.spawn().expect("it runs");
    until("all are queued", || {
        let jobs = served.queue()["jobs"].as_array().map_or(0, Vec::len);
        jobs == 4 && Path::new(&served.path("began")).exists()
    });
    signal(&joined.id().to_string(), "-INT");
    assert_eq!(ended(&mut joined).code(), Some(130));
    for job in ["2", "3", "4"] {
        assert_eq!(served.state(job), "cancelled");
    }
    assert_eq!(served.state(&others), "running");
    served.remove("going");
    assert_eq!(served.wait(&others), Some(0));
}

#[test]
fn a_job_has_the_umask_the_niceness_and_the_limits_of_its_submit() {
    let served = Served::start(&[]);
    let line = "umask 027; ulimit -n 123; exec nice -n 3 \"$0\" submit 'umask; nice; ulimit -n'";
    let cosched = env!("CARGO_BIN_EXE_cosched");
    let settings = served.command(&["submit"]);
    let settings = settings.get_envs();
    let submitted = Command::new("sh")
        .args(["-c", line, cosched])
        .envs(settings.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(served.folder.path())
        .output()
        .expect("it runs");
    assert_eq!(out(&submitted), "1\n", "{}", err(&submitted));
    assert_eq!(served.wait("1"), Some(0));
    let own = rustix::process::getpriority_process(None).expect("a niceness");
    let told = out(&served.call(&["logs", "1"]));
    assert_eq!(told, format!("0027\n{}\n123\n", (own + 3).min(19)));
}

#[test]
fn a_job_that_takes_too_long_is_told_as_such() {
    let served = Served::start(&["--", "--timeout", "0.1"]);
    let job = served.submit("sleep 1000");
    let waited = served.call(&["wait", &job]);
    assert_eq!(waited.status.code(), Some(124));
    let why = err(&waited);
    assert!(why.contains("job 1 (sleep): timed out"), "{why}");
    let told = common::json(&served.call(&["status", "--all", "--format", "json"]));
    Schemas::read().check("runs-now.json", &told);
}

#[test]
fn logs_follow_a_job_until_it_is_over() {
    let served = Served::start(&[]);
    let job = served.submit(&format!("echo a; {}; echo b", while_there("going")));
    let mut follow = served.command(&["logs", "-f", &job]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(follow.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "a");
    served.remove("going");
    assert_eq!(lines.next().expect("a line").expect("text"), "b");
    assert!(lines.next().is_none());
    assert!(ended(&mut follow).success());
}

#[test]
fn why_finds_the_run_of_the_queue_and_a_job_by_its_number() {
    let served = Served::start(&[]);
    served.submit("true");
    assert_eq!(served.wait("1"), Some(0));
    let job = served.submit_loop("a", "going");
    served.leave_state_of_another_container();
    until("its state is known", || {
        let told = out(&served.call(&["why", &format!("echo#{job}")]));
        told.starts_with(&format!("echo#{job}-1 at")) && told.contains("runs on CPU")
    });
    served.remove("going");
    assert_eq!(served.wait(&job), Some(0));
}

#[test]
fn cancelled_jobs_end_or_never_start() {
    let served = Served::start(&["--", "--jobs", "1"]);
    let first = served.submit_loop("a", "going");
    let second = served.submit_loop("b", "going");
    until("it runs", || served.lines() == ["start a"]);
    let offered = |verb: &str| {
        let mut call = served.command(&["--", "cosched", verb, ""]);
        offered_by(call.env("_CLAP_COMPLETE_INDEX", "2").stdout(Stdio::piped()))
    };
    assert_eq!(offered("cancel"), [&*first, &*second]);
    assert!(served.call(&["cancel", &second, &first]).status.success());
    assert_eq!(
        (served.wait(&first), served.wait(&second)),
        (Some(1), Some(1))
    );
    assert_eq!(served.state(&first), "cancelled");
    assert_eq!(served.state(&second), "cancelled");
    assert_eq!(served.lines(), ["start a"]);
    let over = err(&served.call(&["cancel", &first]));
    assert!(over.contains("job 1 was over"), "{over}");
    assert_eq!(offered("logs"), [&*first, &*second]);
    assert!(!offered("cancel").contains(&first));
}

/// The service dies before it answers. The next one queues the jobs, and hears of the signal.
#[test]
fn jobs_of_a_run_that_was_interrupted_early_are_cancelled() {
    let mut served = Served::new();
    let line = while_there("going");
    let mut join = served.command(&["run", "--join", &line]);
    let (mut child, stream, _) = served.request_of(join.stderr(Stdio::piped()));
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    signal(&child.id().to_string(), "-TERM");
    told.read_line(&mut String::new()).expect("a line");
    drop(stream);
    served.serve(&[]);
    assert_eq!(ended(&mut child).code(), Some(143));
    assert_eq!(served.state("1"), "cancelled");
}
