//! The queue of a machine: `serve` and the verbs that ask it.

mod jobs;
mod requests;
mod service;

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
