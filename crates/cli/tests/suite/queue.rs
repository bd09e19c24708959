//! The queue of a machine: `serve` and the verbs that ask it.

use crate::common::schema::Schemas;
use crate::common::{self, ended, err, out, until};
use crate::completion::answer as offered_by;
use crate::faults::seen::runtime_folder;
use cosched_linux::service::kill_with_parent;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

/// A service with folders of its own. Its jobs go on while the file `going` is there.
struct Served {
    folder: TempDir,
    service: Option<Child>,
}

impl Served {
    fn new() -> Served {
        let folder = tempdir().expect("a folder");
        let run = folder.path().join("run");
        std::fs::create_dir(&run).expect("a folder");
        std::fs::set_permissions(&run, PermissionsExt::from_mode(0o700)).expect("its mode");
        std::fs::write(folder.path().join("going"), "").expect("a file");
        let service = None;
        Served { folder, service }
    }

    fn start(options: &[&str]) -> Served {
        let mut served = Served::new();
        served.serve(options);
        served
    }

    /// Starts the service, and waits until it answers.
    fn serve(&mut self, options: &[&str]) {
        let log = std::fs::File::create(self.path("serve.log")).expect("a file");
        let mut command = self.command(&[&["serve"], options].concat());
        kill_with_parent(&mut command);
        let service = command.stderr(log).spawn().expect("it starts");
        self.service = Some(service);
        until("the service answers", || {
            self.call(&["wait", "--", "0"]).status.code() == Some(2)
        });
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = common::command(self.folder.path(), words);
        command
            .env("XDG_STATE_HOME", self.path("state"))
            .env("COSCHED_RUNS_DIR", self.path("run"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Leaves the state of a run that may be live: nobody can tell from here.
    fn leave_state_of_another_container(&self) {
        let folder = self.runtime_folder();
        let state = || {
            let files = std::fs::read_dir(&folder).ok()?.flatten();
            let is_state = |name: &OsStr| name.as_bytes().starts_with(b"status-");
            files
                .map(|file| file.path())
                .find(|path| path.file_name().is_some_and(is_state))
        };
        until("it has a state", || state().is_some());
        let own = state().expect("it lasts as the run");
        std::fs::copy(own, folder.join("status-13-1-1")).expect("a file");
    }

    /// The folder for the files of this user's live runs.
    fn runtime_folder(&self) -> PathBuf {
        runtime_folder(&self.path("run"))
    }

    fn socket(&self) -> PathBuf {
        self.runtime_folder().join("queue.sock")
    }

    fn call(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().expect("the binary runs")
    }

    /// Submits a line for the shell, and returns its number.
    fn submit(&self, line: &str) -> String {
        let output = self.call(&["submit", line]);
        assert!(output.status.success(), "{}", err(&output));
        out(&output).trim_end().to_owned()
    }

    /// Submits a job that writes when it starts and ends, and goes on while this file and the test are there.
    fn submit_loop(&self, name: &str, going: &str) -> String {
        let work = while_there(going);
        self.submit(&format!(
            "echo start {name} >> lines; {work}; echo end {name} >> lines"
        ))
    }

    fn wait(&self, job: &str) -> Option<i32> {
        self.call(&["wait", job]).status.code()
    }

    fn queue(&self) -> Value {
        let told = self.call(&["status", "--all", "--format", "json"]);
        let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
        told["queue"].clone()
    }

    fn state(&self, job: &str) -> String {
        let queue = self.queue();
        let jobs = queue["jobs"].as_array().expect("jobs");
        let id: u64 = job.parse().expect("a number");
        let job = jobs.iter().find(|known| known["id"] == id);
        let state = job.expect("the job")["state"].as_str();
        state.expect("a state").to_owned()
    }

    fn worker(&self) -> String {
        self.queue()["service"]["worker_pid"].to_string()
    }

    /// Kills the service, and waits until its worker is dead as well.
    fn kill(&mut self) {
        let worker = self.worker();
        let mut service = self.service.take().expect("a service");
        service.kill().expect("killed");
        service.wait().expect("it ends");
        until("the worker is dead", || !is_alive(&worker));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn queue_file(&self, name: &str) -> PathBuf {
        self.path("state/cosched/queue").join(name)
    }

    /// A file of a reaper. One database was made.
    fn claim(&self, name: &str) -> PathBuf {
        let folders = std::fs::read_dir(self.path("state/cosched/queue")).expect("a folder");
        let mut claims = folders.flatten().map(|folder| folder.path().join("jobs"));
        claims
            .find(|claims| claims.is_dir())
            .expect("the reapers' folder")
            .join(name)
    }

    /// What a service says that refuses to start.
    fn refusal(&self) -> String {
        let log = std::fs::File::create(self.path("serve.log")).expect("a file");
        let service = self.command(&["serve"]).stderr(log).spawn();
        let code = ended(&mut service.expect("it starts")).code();
        assert_eq!(code, Some(1), "{}", self.said());
        self.said()
    }

    /// What the service has said.
    fn said(&self) -> String {
        std::fs::read_to_string(self.path("serve.log")).unwrap_or_default()
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("a file");
    }

    fn make(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file");
    }

    /// What the jobs wrote, sorted.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("lines")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).expect("it listens")
    }

    /// Whether a client is connected: a socket with this path has state 3.
    fn has_client(&self) -> bool {
        let path = self.socket();
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("a list");
        let mut ours = sockets
            .lines()
            .filter(|line| line.ends_with(path.to_str().expect("UTF-8")));
        ours.any(|line| line.split_whitespace().nth(5) == Some("03"))
    }

    /// Listens in place of a service, and reads the request of a client. It is as if the service died before it answered
    /// once the client's socket is closed.
    fn request_of(&self, client: &mut Command) -> (Child, UnixStream, String) {
        let folder = self.runtime_folder();
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).expect("its mode");
        let listener = UnixListener::bind(self.socket()).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let child = client.spawn().expect("it runs");
        let mut stream = None;
        until("the client connects", || {
            stream = listener.accept().ok();
            stream.is_some()
        });
        let (stream, _) = stream.expect("a client");
        stream.set_nonblocking(false).expect("a socket");
        let mut request = String::new();
        let read = BufReader::new(&stream).read_line(&mut request);
        read.expect("a request");
        (child, stream, request)
    }

    fn ask(&self, request: &[u8]) -> Value {
        let mut client = self.connect();
        client.write_all(request).expect("it reads");
        answer(&mut BufReader::new(client))
    }
}

impl Drop for Served {
    /// Ends the service, and with their folder all jobs.
    fn drop(&mut self) {
        if let Some(mut service) = self.service.take() {
            let _ = service.kill();
            let _ = service.wait();
        }
        for entry in std::fs::read_dir(self.folder.path()).into_iter().flatten() {
            let _ = std::fs::remove_file(entry.expect("an entry").path());
        }
        let folder = self.folder.path().to_owned();
        if !std::thread::panicking() {
            until("no process is left", || !has_processes(&folder));
        }
    }
}

/// A line for the shell that goes on while this file is there. A killed test removes no file.
fn while_there(file: &str) -> String {
    let test = std::process::id();
    format!("while [ -e {file} ] && kill -0 {test}; do sleep 0.02; done")
}

fn answer(client: &mut impl std::io::BufRead) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Whether a process has not ended.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// Whether a process works in this folder.
fn has_processes(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut places = processes.filter_map(|entry| entry.path().join("cwd").read_link().ok());
    places.any(|place| place.starts_with(folder))
}

fn signal(pid: &str, what: &str) {
    let done = Command::new("kill").args([what, pid]).status();
    assert!(done.expect("kill runs").success(), "kill {what} {pid}");
}

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
    for part in ["JOB", "exit 0", "exit 3", "signal 9", "mine", "exit 127"] {
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
