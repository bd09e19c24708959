//! Requests to the service: answered once, refused, or never answered.

use super::*;

/// As when the service dies after it has queued the jobs, and another one comes.
#[test]
fn jobs_are_queued_once_if_the_service_dies_before_it_answers() {
    let run = [
        "run",
        "--join",
        "-q",
        "echo {} >> lines",
        ":::",
        "1",
        "2",
        "3",
    ];
    for (words, lines, printed) in [
        (&["submit", "echo 1 >> lines"][..], &["1"][..], "1\n"),
        (&run, &["1", "2", "3"], ""),
    ] {
        let mut served = Served::new();
        let mut client = served.command(words);
        client
            .env("LONG", "x".repeat(100_000))
            .stdout(Stdio::piped());
        let (child, stream, request) = served.request_of(&mut client);
        assert!(request.len() < 200_000, "the variables are sent once");
        served.serve(&[]);
        let ids: Vec<usize> = (1..=lines.len()).collect();
        assert_eq!(served.ask(request.as_bytes()), json!({"ids": ids}));
        drop(stream);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        assert_eq!(out(&output), printed);
        assert!(served.call(&["wait"]).status.success());
        assert_eq!(served.lines(), lines);
    }
}

#[test]
fn a_run_that_is_interrupted_before_the_service_answers_says_how_to_find_its_jobs() {
    let mut served = Served::new();
    let mut join = served.command(&["run", "--join", "true"]);
    let (mut child, stream, request) = served.request_of(join.stderr(Stdio::piped()));
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    let pid = child.id().to_string();
    signal(&pid, "-INT");
    let mut why = String::new();
    told.read_line(&mut why).expect("a line");
    assert!(why.contains("a second signal does not wait"), "{why}");
    signal(&pid, "-INT");
    why.clear();
    told.read_to_string(&mut why).expect("text");
    assert_eq!(ended(&mut child).code(), Some(130));
    assert!(
        why.contains("not known whether the jobs are queued"),
        "{why}"
    );
    let remedy = why.split('`').nth(1).expect("a command");
    let words: Vec<&str> = remedy.split(' ').skip(1).collect();
    drop(stream);
    served.serve(&[]);
    let asked = served.call(&words);
    assert_eq!(asked.status.code(), Some(2), "{}", err(&asked));
    assert_eq!(served.ask(request.as_bytes()), json!({"ids": [1]}));
    assert_eq!(out(&served.call(&words)), "1\n");
    let again = served.call(&[&words[..], &["true"]].concat());
    assert_eq!(out(&again), "1\n", "a repeated command queues nothing");
}

#[test]
fn bad_requests_are_told_and_block_nobody() {
    let served = Served::start(&[]);
    for (request, part) in [
        (&b"\xff\xfe\n"[..], "not a request"),
        (b"\n", "not a request"),
        (&[&vec![b'x'; 65 << 20][..], b"\n"].concat(), "64 MiB"),
        (
            b"{\"submit\": {\"jobs\": [{\"id\": \"1\", \"command\": \"x\"}]}}\n",
            "job 1: the queue sets `id`",
        ),
    ] {
        let told = served.ask(request);
        let why = told["error"].as_str().expect("an error");
        assert!(why.contains(part), "{why}");
    }
    // Its answers fill the socket.
    let mut silent = served.connect();
    silent.set_nonblocking(true).expect("a socket");
    while silent.write_all(b"{\"status\": {\"all\": true}}\n").is_ok() {}
    let job = served.submit("echo a");
    assert_eq!(served.wait(&job), Some(0));
}

#[test]
fn a_thousand_clients_are_served_and_one_more_is_told_so() {
    let served = Served::start(&[]);
    let mut clients = Vec::new();
    let mut refused = None;
    // The test itself may open some thousand files, or fewer.
    while refused.is_none() && clients.len() < 1_100 {
        let Ok(mut client) = UnixStream::connect(served.socket()) else {
            return eprintln!("skipped, because this process may not open so many files");
        };
        let _ = client.write_all(b"{\"status\": {}}\n");
        let told = answer(&mut BufReader::new(&client));
        refused = told["error"].as_str().map(str::to_owned);
        clients.push(client);
    }
    let why = refused.expect("a refusal");
    assert!(why.contains("1,000 clients"), "{why}");
    drop(clients);
    until("they have left", || {
        served.call(&["submit", "true"]).status.success()
    });
}

#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped, because only root may become another user");
    }
    let served = Served::start(&[]);
    for place in [served.path(""), served.path("run"), served.runtime_folder()] {
        let open = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place, open).expect("its mode");
    }
    let socket = served.socket();
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("its mode");
    let asked = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("another user");
        let mut client = UnixStream::connect(socket).expect("it listens");
        let _ = client.write_all(b"{\"status\": {}}\n");
        let mut told = String::new();
        let _ = client.read_to_string(&mut told);
        told
    });
    let told = asked.join().expect("an answer");
    assert!(told.contains("belongs to another user"), "{told}");
}
