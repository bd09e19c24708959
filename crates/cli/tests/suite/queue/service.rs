//! The service: its start, its database, its worker, its kills and its end.

use super::*;

#[test]
fn without_a_service_each_verb_says_how_to_start_one() {
    let served = Served::new();
    for words in [
        &["submit", "true"][..],
        &["run", "--join", "true"],
        &["wait"],
        &["logs", "1"],
        &["cancel", "1"],
        &["rerun", "1"],
        &["drain"],
    ] {
        let output = served.call(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let why = err(&output);
        assert!(why.contains("start one with `cosched serve`"), "{why}");
    }
    let quiet = out(&served.call(&["status"]));
    assert!(!quiet.contains("\nqueue"), "{quiet}");
}

#[test]
fn a_drained_service_ends_after_its_jobs() {
    let mut served = Served::start(&[]);
    served.submit_loop("a", "going");
    assert!(served.call(&["drain"]).status.success());
    let refused = served.call(&["submit", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("drains"), "{}", err(&refused));
    served.remove("going");
    let mut service = served.service.take().expect("a service");
    assert!(ended(&mut service).success());
    assert_eq!(served.lines(), ["end a", "start a"]);
    served.serve(&[]);
    assert_eq!(served.state("1"), "ended");
}

/// One job runs on, one ends while there is no service, and one waits for its turn.
#[test]
fn a_killed_service_loses_nothing() {
    let mut served = Served::start(&["--", "--jobs", "2"]);
    served.make("briefly");
    let long = served.submit_loop("long", "going");
    let short = served.submit_loop("short", "briefly");
    let queued = served.submit_loop("queued", "going");
    until("two run", || served.lines().len() == 2);
    until("all clients have left", || !served.has_client());
    let waiting = served.command(&["wait", &long]).spawn();
    let mut waiting = waiting.expect("it runs");
    until("it is connected", || served.has_client());
    served.kill();
    let status = out(&served.call(&["status"]));
    let offer = "2 jobs of a queue run on without its service; `cosched serve` takes them over\n";
    assert!(
        status.contains(offer) && !status.contains("thaw"),
        "{status}"
    );
    served.remove("briefly");
    let end = served.claim(&format!("{short}-1.end"));
    until("it ends", || end.exists());
    served.serve(&["--", "--jobs", "2"]);
    assert_eq!(served.wait(&short), Some(0));
    until("the last one starts", || {
        served.lines().contains(&"start queued".to_owned())
    });
    assert_eq!(served.state(&long), "running");
    served.remove("going");
    assert_eq!(
        (served.wait(&long), served.wait(&queued)),
        (Some(0), Some(0))
    );
    assert!(ended(&mut waiting).success(), "the client came back");
    let all = [
        "end long",
        "end queued",
        "end short",
        "start long",
        "start queued",
        "start short",
    ];
    assert_eq!(served.lines(), all);
}

#[test]
fn a_killed_or_stopped_worker_is_replaced_or_continued() {
    let served = Served::start(&["--", "--jobs", "1"]);
    let first = served.submit_loop("a", "going");
    let second = served.submit_loop("b", "going");
    until("it runs", || served.lines() == ["start a"]);
    let worker = served.worker();
    signal(&worker, "-KILL");
    until("there is another", || {
        let now = served.worker();
        now != worker && now != "null"
    });
    signal(&served.worker(), "-STOP");
    served.remove("going");
    assert_eq!(
        (served.wait(&first), served.wait(&second)),
        (Some(0), Some(0))
    );
    assert_eq!(served.lines(), ["end a", "end b", "start a", "start b"]);
}

#[test]
fn jobs_that_a_restart_of_the_machine_lost_run_again_when_asked() {
    let mut served = Served::start(&[]);
    let job = served.submit_loop("a", "going");
    until("it runs", || served.lines() == ["start a"]);
    served.kill();
    let start = served.claim(&format!("{job}-1.start"));
    let text = std::fs::read_to_string(&start).expect("a file");
    let mut reaper: Value = serde_json::from_str(&text).expect("JSON");
    signal(&reaper["pid"].to_string(), "-KILL");
    reaper["boot"] = json!("another");
    std::fs::write(&start, reaper.to_string()).expect("written");
    served.serve(&[]);
    assert_eq!(served.state(&job), "lost");
    assert_eq!(served.wait(&job), Some(1));
    assert_eq!(out(&served.call(&["rerun"])), format!("{job}\n"));
    until("it runs again", || served.lines() == ["start a", "start a"]);
    served.remove("going");
    assert_eq!(served.wait(&job), Some(0));
    let logs = served.queue()["jobs"][0]["out"].to_string();
    assert!(logs.ends_with("/logs/1-2.out\""), "{logs}");
}

/// One old job has ended, one runs on, and their numbers are given to others.
#[test]
fn a_damaged_database_is_moved_away_as_told_and_old_ends_mean_nothing() {
    let mut served = Served::start(&[]);
    assert_eq!(served.submit("echo old; exit 3"), "1");
    assert_eq!(served.wait("1"), Some(3));
    served.submit_loop("old", "going");
    until("it runs", || served.lines() == ["start old"]);
    served.kill();
    std::fs::write(served.queue_file("queue.db"), "").expect("a file");
    let why = served.refusal();
    assert!(why.contains("queue.db: it is empty"), "{why}");
    let remedy = why.split('`').nth(1).expect("a command");
    let typed = Command::new("sh").args(["-c", remedy]).status();
    assert!(typed.expect("it runs").success(), "{remedy}");
    served.serve(&[]);
    let said = served.said();
    assert!(
        said.contains("jobs of an earlier queue still run"),
        "{said}"
    );
    assert_eq!(served.submit("echo new"), "1");
    assert_eq!(served.submit_loop("new", "going"), "2");
    assert_eq!(served.wait("1"), Some(0));
    assert_eq!(out(&served.call(&["logs", "1"])), "new\n");
    until("it runs", || served.lines() == ["start new", "start old"]);
    assert_eq!(served.state("2"), "running");
    served.remove("going");
    assert_eq!(served.wait("2"), Some(0));
    until("the old one ends", || {
        served.lines().contains(&"end old".to_owned())
    });
}

#[test]
fn there_is_one_service_and_a_stopped_one_is_named() {
    let mut served = Served::start(&[]);
    let pid = served.service.as_ref().expect("a service").id().to_string();
    let second = served.call(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        err(&second).contains(&format!("process {pid} serves")),
        "{}",
        err(&second)
    );
    let mut elsewhere = served.command(&["serve"]);
    let elsewhere = elsewhere
        .env("XDG_STATE_HOME", served.path("other"))
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    assert_eq!(elsewhere.status.code(), Some(1), "{}", err(&elsewhere));
    signal(&pid, "-STOP");
    until("it is stopped", || {
        let told = served.call(&["submit", "true"]);
        err(&told).contains(&format!("`kill -CONT {pid}`"))
    });
    signal(&pid, "-CONT");
    until("it answers", || {
        served.call(&["submit", "true"]).status.success()
    });
    let bad = served.call(&["serve", "--", "--no-such-option"]);
    assert_eq!(bad.status.code(), Some(1), "the queue is in use");
    served.kill();
    let told = common::json(&served.call(&["status", "--format", "json"]));
    Schemas::read().check("runs-now.json", &told);
    let why = told["queue_absent"].as_str().expect("a reason");
    assert!(why.contains("start one with `cosched serve`"), "{why}");
    for options in [
        &["--no-such-option"][..],
        &["--policy", "nosuch"],
        &["--param", "quantum_s=x"],
    ] {
        let bad = served.call(&[&["serve", "--"], options].concat());
        assert_eq!(bad.status.code(), Some(2), "{}", err(&bad));
        assert!(!err(&bad).contains("serving"), "{}", err(&bad));
    }
}

/// The way of systemd: the socket is descriptor 3.
#[test]
fn a_passed_socket_is_used_and_left_in_place() {
    let served = Served::new();
    let folder = served.runtime_folder();
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).expect("its mode");
    let socket = folder.join("queue.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    // What comes before the service waits.
    let mut early = served.connect();
    early
        .write_all(b"{\"submit\": {\"jobs\": [{\"command\": \"true\"}]}}\n")
        .expect("sent");
    let cosched = env!("CARGO_BIN_EXE_cosched");
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve 3<&0 </dev/null";
    let settings = served.command(&["serve"]);
    let settings = settings.get_envs();
    let mut service = Command::new("sh")
        .args(["-c", script, cosched])
        .envs(settings.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(served.folder.path())
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    assert_eq!(answer(&mut BufReader::new(early)), json!({"ids": [1]}));
    assert_eq!(served.wait("1"), Some(0));
    assert!(served.call(&["drain"]).status.success());
    assert!(ended(&mut service).success());
    assert!(socket.exists());
}
