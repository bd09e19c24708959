//! Starting a run, finding its processes, waiting for conditions, and looking for what it left behind.

use super::seen::{SeenProcess, guardian, in_folder, is_named, list, mount, token};
pub(crate) use super::seen::{all, seen, signal};
use crate::common::{PATIENCE, bounded, runs_dir, without_settings};
pub(crate) use crate::common::{one_cpu, skipped, until};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(crate) const COSCHED: &str = env!("CARGO_BIN_EXE_cosched");

/// A call of cosched that neither uses nor keeps what is known of commands.
pub(crate) fn cosched() -> Command {
    let mut command = Command::new(COSCHED);
    without_settings(&mut command);
    command
}

/// Binds this thread, and so what it starts, to two CPUs: tests with a few jobs want to see some of them stopped, however
/// large the machine is.
fn use_two_cpus() {
    let all = sched_getaffinity(None).unwrap();
    let mut two = CpuSet::new();
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| all.is_set(cpu))
        .take(2)
        .for_each(|cpu| two.set(cpu));
    sched_setaffinity(None, &two).unwrap();
}

/// The ways of freezing that work here; prints why one does not.
pub(crate) fn freezers() -> Vec<&'static str> {
    let probe = cosched()
        .args(["run", "--dry-run", "--freeze", "cgroup", "--", "true"])
        .output()
        .unwrap();
    if probe.status.success() {
        return vec!["signals", "cgroup"];
    }
    let why = String::from_utf8_lossy(&probe.stderr);
    skipped(&format!("the cgroup freezer can't be used: {}", why.trim()));
    vec!["signals"]
}

/// Random numbers from a seed (xorshift64), to choose moments.
pub(crate) struct Moments(u64);

impl Moments {
    pub(crate) fn new(seed: u64) -> Moments {
        Moments(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Sleeps for a random time below `most_ms`.
    pub(crate) fn pass(&mut self, most_ms: u64) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        std::thread::sleep(Duration::from_micros(self.0 % (most_ms * 1_000)));
    }
}

/// A shell command that uses the CPU and writes numbered lines: this many, and more until somebody waits for its end.
/// On a busy machine it would else have ended before it was disturbed.
pub(crate) fn counting(lines: u32) -> String {
    format!(
        "i=0; while [ $i -lt {lines} ] || [ ! -e finish ]; do i=$((i+1)); \
         j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done; echo line $i; done; echo end"
    )
}

/// Whether the output is everything that [`counting`] writes.
pub(crate) fn is_complete(text: &str, lines: u32) -> bool {
    let Some(numbered) = text.strip_suffix("end\n") else {
        return false;
    };
    let written = numbered.lines().count() as u32;
    let expected: String = (1..=written).map(|line| format!("line {line}\n")).collect();
    written >= lines && numbered == expected
}

/// Builds a mix file.
#[derive(Default)]
pub(crate) struct MixBuilder(String);

impl MixBuilder {
    /// A line that holds for all jobs; comes first.
    pub(crate) fn top(mut self, line: &str) -> MixBuilder {
        self.0.insert_str(0, &format!("{line}\n"));
        self
    }

    pub(crate) fn shell(mut self, name: &str, command: &str) -> MixBuilder {
        assert!(!command.contains("'''"));
        self.0.push_str(&format!(
            "[[job]]\nname = \"{name}\"\ncommand = '''{command}'''\n\n"
        ));
        self
    }

    pub(crate) fn program(mut self, name: &str, program: &Path) -> MixBuilder {
        self.0.push_str(&format!(
            "[[job]]\nname = \"{name}\"\ncommand = [{:?}]\n\n",
            program.to_str().unwrap()
        ));
        self
    }

    /// Gives the last job a weight.
    pub(crate) fn weigh(mut self, weight: u32) -> MixBuilder {
        let end = self.0.trim_end().len();
        self.0.insert_str(end, &format!("\nweight = {weight}"));
        self
    }

    /// Jobs `NAME-1`, `NAME-2` and so on.
    pub(crate) fn copies(self, name: &str, copies: u32, command: &str) -> MixBuilder {
        (1..=copies).fold(self, |mix, n| mix.shell(&format!("{name}-{n}"), command))
    }

    /// `count` jobs `count-N` that do [`counting`].
    pub(crate) fn counting(self, count: u32, lines: u32) -> MixBuilder {
        self.copies("count", count, &counting(lines))
    }
}

/// All processes of this name, without zombies.
pub(crate) fn all_named(name: &str) -> Vec<SeenProcess> {
    all()
        .into_iter()
        .filter(|process| is_named(process.pid, name))
        .collect()
}

/// The v2 group of this process.
pub(crate) fn own_group() -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Path::new(&mount()?).join(path.trim_start_matches('/')))
}

/// A run of the program in a folder of its own.
pub(crate) struct TestRun {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) pid: i32,
    pub(crate) token: String,
    child: Child,
    status: Option<ExitStatus>,
}

impl TestRun {
    /// Starts a mix under round-robin with a short quantum.
    pub(crate) fn start(mix: MixBuilder, freeze: &str, more: &[&str]) -> TestRun {
        TestRun::start_in(tempfile::tempdir().unwrap(), mix, freeze, more)
    }

    pub(crate) fn start_in(
        dir: tempfile::TempDir,
        mix: MixBuilder,
        freeze: &str,
        more: &[&str],
    ) -> TestRun {
        TestRun::start_by(&[], dir, mix, freeze, more)
    }

    /// Starts the program by another one that executes it.
    pub(crate) fn start_by(
        by: &[&str],
        dir: tempfile::TempDir,
        mix: MixBuilder,
        freeze: &str,
        more: &[&str],
    ) -> TestRun {
        std::fs::write(dir.path().join("mix.toml"), mix.0).unwrap();
        use_two_cpus();
        let mut args = vec!["run", "mix.toml", "--logs", "logs", "--freeze", freeze];
        if !more.contains(&"--policy") {
            args.extend(["--policy", "round-robin", "--param", "quantum_s=0.02"]);
        }
        args.extend(more);
        // A caller that runs the tests in the background may ignore these.
        let child = bounded()
            .args(by)
            .arg(COSCHED)
            .args(args)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(File::create(dir.path().join("stdout")).unwrap())
            .stderr(File::create(dir.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        // The child is not reaped before `child` is waited for, so its number can't be reused.
        let token = token(pid).unwrap();
        TestRun {
            dir,
            pid,
            token,
            child,
            status: None,
        }
    }

    /// Every process that carries the mark of this run, without zombies.
    pub(crate) fn marked(&self) -> Vec<SeenProcess> {
        let mark = format!("COSCHED_RUN={}", self.token);
        let is_marked = |process: &SeenProcess| {
            let environ =
                std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            environ
                .split(|&byte| byte == 0)
                .any(|entry| entry == mark.as_bytes())
        };
        all().into_iter().filter(is_marked).collect()
    }

    /// Every process that works in the folder of this run, without zombies.
    pub(crate) fn in_folder(&self) -> Vec<SeenProcess> {
        in_folder(&self.dir.path().canonicalize().unwrap())
    }

    /// The processes in the folder of this run with this name.
    pub(crate) fn named(&self, name: &str) -> Vec<i32> {
        self.in_folder()
            .iter()
            .map(|process| process.pid)
            .filter(|&pid| is_named(pid, name))
            .collect()
    }

    /// What the file of this name in the folder of the run holds.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// Waits until nothing that works in the folder is stopped or frozen for good: all of it has ended.
    pub(crate) fn all_ended(&self) {
        self.finish();
        let end = Instant::now() + PATIENCE;
        while !self.in_folder().is_empty() {
            assert!(
                Instant::now() < end,
                "left: {:?}; the run said:\n{}",
                self.in_folder(),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until that many processes carry the mark.
    pub(crate) fn until_marked(&self, count: usize) {
        until("the jobs' start", || self.marked().len() >= count);
    }

    /// Lets those end that do [`counting`].
    pub(crate) fn finish(&self) {
        std::fs::write(self.dir.path().join("finish"), "").unwrap();
    }

    pub(crate) fn guardian(&self) -> Option<i32> {
        guardian(self.pid)
    }

    pub(crate) fn send(&self, what: Signal) {
        signal(self.pid, what);
    }

    /// Whether the program itself has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status.is_some()
    }

    /// Waits for the end of the program and returns its exit code; `None` if a signal killed it.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.finish();
        let end = Instant::now() + PATIENCE;
        while !self.has_ended() {
            if Instant::now() > end {
                panic!(
                    "the run never ends; {:?}; it said:\n{}",
                    self.marked(),
                    self.stderr()
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.status.and_then(|status| status.code())
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("stdout")).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }

    /// What a job wrote to standard output.
    pub(crate) fn output(&self, job: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(format!("logs/{job}.out"))).unwrap_or_default()
    }

    /// The group that this run has, or had.
    pub(crate) fn group(&self) -> Option<PathBuf> {
        Some(own_group()?.join(format!("cosched-{}", self.token)))
    }

    /// Whether a job's group is frozen on request.
    pub(crate) fn has_frozen_group(&self) -> bool {
        let Some(Ok(jobs)) = self.group().map(std::fs::read_dir) else {
            return false;
        };
        let mut files = jobs.filter_map(|entry| Some(entry.ok()?.path().join("cgroup.freeze")));
        files.any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "1"))
    }

    /// Waits until no process of the run is stopped.
    pub(crate) fn nothing_stopped(&self) {
        until("no process of the run is stopped", || {
            self.marked().iter().all(|process| process.state != 'T')
        });
    }

    fn all_free_and_ended(&self) {
        self.nothing_stopped();
        until("no group of the run is frozen", || !self.has_frozen_group());
        until("all processes of the run have ended", || {
            self.marked().is_empty()
        });
    }

    /// As [`nothing_left`](TestRun::nothing_left), where nobody is left to remove the group of the run but the next
    /// `cosched thaw`.
    pub(crate) fn nothing_left_to_thaw(&self) {
        self.all_free_and_ended();
        // Zombies of others' children leave a group a little later.
        until("the run's group is gone", || {
            assert!(
                cosched()
                    .args(["thaw", "--run", &self.token])
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            self.group().is_none_or(|group| !group.exists())
        });
        self.nothing_left();
    }

    /// Waits until nothing of the run is stopped or frozen, all its processes have ended, and no group is left.
    pub(crate) fn nothing_left(&self) {
        self.all_free_and_ended();
        until("the run's group is gone", || {
            self.group().is_none_or(|group| !group.exists())
        });
        until("the run's list is gone", || !self.list().exists());
    }

    /// The file with the list of the run's processes.
    fn list(&self) -> PathBuf {
        list(runs_dir(), &self.token)
    }

    /// Checks the counting jobs' logs: all must be complete. If the run was killed, those of jobs that never began may
    /// be empty.
    pub(crate) fn logs_complete(&self, count: u32, lines: u32, all_started: bool) {
        for number in 1..=count {
            let text = self.output(&format!("count-{number}"));
            let complete = is_complete(&text, lines) || (!all_started && text.is_empty());
            assert!(
                complete,
                "count-{number} wrote {text:?}; the run said:\n{}",
                self.stderr()
            );
        }
    }
}

impl Drop for TestRun {
    fn drop(&mut self) {
        // A failed test leaves nothing running either.
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        for process in self.marked().into_iter().chain(self.in_folder()) {
            signal(process.pid, Signal::KILL);
        }
    }
}
