//! Managing programs that run already: what is changed, and that it is undone.

use crate::common::{command, cosched, err, skipped, until};
use crate::faults::seen::{is_named, mount};
use cosched_core::{CpuId, CpuSet};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Programs that compute, each in a process group of its own.
struct Programs(Vec<Child>);

impl Programs {
    fn start(count: usize) -> Programs {
        Programs((0..count).map(|_| spin()).collect())
    }

    fn pids(&self) -> String {
        let pids: Vec<String> = self.0.iter().map(|child| child.id().to_string()).collect();
        pids.join(",")
    }

    fn cpus(&self) -> Vec<CpuSet> {
        self.0.iter().map(|child| cpus(child.id())).collect()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spin() -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    shell.process_group(0).spawn().expect("a shell")
}

/// The CPUs that a process may use.
fn cpus(pid: u32) -> CpuSet {
    cosched_linux::affinity(pid as i32).expect("a process")
}

/// Binds a process as another program would.
fn bind(pid: u32, cpus: &CpuSet) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(cpu.0 as usize));
    let pid = Pid::from_raw(pid as i32);
    rustix::thread::sched_setaffinity(pid, &set).expect("it may be bound");
}

/// All CPUs, if there are two and this test may use all; says why not otherwise.
fn all_cpus() -> Option<CpuSet> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: CpuSet = online.parse().unwrap_or_default();
    let own = cpus(std::process::id());
    if own.len() < 2 || own != online {
        skipped("it takes two CPUs, and a test that may use all");
        return None;
    }
    Some(own)
}

/// A session, with its error output.
struct Session(Child);

impl Session {
    /// Binds each of these programs to cores.
    fn start(pids: &str) -> Session {
        let words = [
            "attach",
            "--pid",
            pids,
            "--manage",
            "--interval",
            "50ms",
            "--log",
        ];
        let params = ["--param", "regions=core", "--param", "quantum_s=0.05"];
        Session::run(&[&words[..], &params].concat())
    }

    fn run(words: &[&str]) -> Session {
        let mut command = command(Path::new("/"), words);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        Session(command.spawn().expect("a session"))
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id() as i32).expect("a number");
        let _ = kill_process(pid, signal);
    }

    /// Its keeper.
    fn keeper(&self) -> Option<Pid> {
        let pid = self.0.id();
        let list = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(list).ok()?;
        let mut children = children.split_whitespace().flat_map(str::parse);
        Pid::from_raw(children.find(|&child| is_named(child, "mask-keeper"))?)
    }

    /// Reads its error output until a line contains these words.
    fn says(&mut self, words: &str) {
        let errors = self.0.stderr.as_mut().expect("error output");
        let mut line = Vec::new();
        let mut byte = [0];
        while errors.read_exact(&mut byte).is_ok() {
            line.push(byte[0]);
            if byte[0] == b'\n' {
                if String::from_utf8_lossy(&line).contains(words) {
                    return;
                }
                line.clear();
            }
        }
        panic!("it ended, and did not say: {words}");
    }

    /// Ends it by a signal, and returns the rest of its error output.
    fn end(mut self, signal: Signal) -> String {
        self.signal(signal);
        let status = self.0.wait().expect("its end");
        assert_eq!(status.success(), signal != Signal::KILL, "{status}");
        let mut text = String::new();
        let mut errors = self.0.stderr.take().expect("error output");
        if signal != Signal::KILL {
            errors.read_to_string(&mut text).expect("text");
        }
        text
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a session, and waits until each program has fewer CPUs than there are.
fn bound(programs: &Programs, all: &CpuSet) -> Session {
    let session = Session::start(&programs.pids());
    until("all are bound", || {
        programs.cpus().iter().all(|cpus| cpus.len() < all.len())
    });
    session
}

fn are_free(programs: &Programs, all: &CpuSet) -> bool {
    programs.cpus().iter().all(|cpus| cpus == all)
}

#[test]
fn programs_get_their_cpus_back_whatever_ends_the_session() {
    let Some(all) = all_cpus() else { return };
    let programs = Programs::start(2);
    let text = bound(&programs, &all).end(Signal::TERM);
    assert!(are_free(&programs, &all), "{:?} {text}", programs.cpus());
    assert!(text.contains("bound to CPUs"), "{text}");
    bound(&programs, &all).end(Signal::KILL);
    until("the keeper has freed them", || are_free(&programs, &all));
    // Another keeper takes the place of a killed one.
    let session = bound(&programs, &all);
    let keeper = session.keeper().expect("a keeper");
    kill_process(keeper, Signal::KILL).expect("it lives");
    until("there is another keeper", || {
        session.keeper().is_some_and(|other| other != keeper)
    });
    session.end(Signal::KILL);
    until("the other keeper has freed them", || {
        are_free(&programs, &all)
    });
    // Without any keeper.
    let session = bound(&programs, &all);
    session.signal(Signal::STOP);
    kill_process(session.keeper().expect("a keeper"), Signal::KILL).expect("it lives");
    session.end(Signal::KILL);
    let folder = tempfile::tempdir().expect("a folder");
    let thawed = cosched(&folder, &["thaw"]);
    assert!(thawed.status.success(), "{}", err(&thawed));
    // Another test that starts a run may have been first.
    until("they are free", || are_free(&programs, &all));
}

#[test]
fn a_policy_in_a_process_decides_and_its_first_fault_is_told() {
    let Some(all) = all_cpus() else { return };
    let Some(policy) = crate::foreign::policy("binds-confuses") else {
        return;
    };
    let programs = Programs::start(2);
    let pids = programs.pids();
    let words = ["attach", "--pid", &pids, "--manage", "--policy", &policy];
    let mut session = Session::run(&[&words[..], &["--interval", "50ms", "--for", "1m"]].concat());
    let last = CpuSet::from(all.iter().last().expect("a CPU"));
    until("both are on the last CPU", || {
        programs.cpus().iter().all(|cpus| *cpus == last)
    });
    let fault = "task #99 is unknown or has ended); round-robin";
    session.says(fault);
    // More faults come meanwhile, which are not told.
    std::thread::sleep(Duration::from_millis(300));
    let text = session.end(Signal::TERM);
    assert!(are_free(&programs, &all), "{:?} {text}", programs.cpus());
    assert!(!text.contains(fault), "{text}");
}

#[test]
fn what_others_have_bound_is_left_alone() {
    let Some(all) = all_cpus() else { return };
    let programs = Programs::start(3);
    let [first, second] = [0, 1].map(|ix| CpuSet::from(all.iter().nth(ix).expect("a CPU")));
    let [narrowed, changed, plain] = [0, 1, 2].map(|ix: usize| programs.0[ix].id());
    bind(narrowed, &second);
    let session = bound(&programs, &all);
    let other = if cpus(changed).contains(CpuId(first.first().expect("a CPU").0)) {
        &second
    } else {
        &first
    };
    bind(changed, other);
    let text = session.end(Signal::TERM);
    let now = [narrowed, changed, plain].map(cpus);
    assert_eq!(now, [second.clone(), other.clone(), all], "{text}");
    assert!(
        text.contains("1 thread left alone: somebody has bound it to fewer CPUs"),
        "{text}"
    );
    assert!(text.contains("somebody else has"), "{text}");
}

#[test]
fn nothing_is_paused_unless_it_may_be() {
    let programs = Programs::start(1);
    let pids = programs.pids();
    let words = ["attach", "--manage", "--pid", &pids, "--policy"];
    for (more, message) in [
        (&["round-robin"][..], "unless --pause is given"),
        (
            &["round-robin", "--pause"],
            "select it by --unit or --cgroup",
        ),
        (&["fifo"], "use --policy spread"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = cosched(&folder, &[&words, more].concat());
        assert!(!output.status.success(), "{more:?}");
        assert!(err(&output).contains(message), "{more:?}: {}", err(&output));
    }
}

/// Groups of their own for programs; removed at the end.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make(programs: &Programs) -> Option<Groups> {
        let mount = mount()?;
        let mut groups = Groups(Vec::new());
        for child in &programs.0 {
            let dir = Path::new(&mount).join(format!("managed-test-{}", child.id()));
            std::fs::create_dir(&dir).ok()?;
            groups.0.push(dir.clone());
            std::fs::write(dir.join("cgroup.procs"), child.id().to_string()).ok()?;
            std::fs::write(dir.join("cgroup.freeze"), "0").ok()?;
        }
        Some(groups)
    }

    fn frozen(&self) -> usize {
        let is_frozen = |dir: &&PathBuf| {
            let text = std::fs::read_to_string(dir.join("cgroup.freeze"));
            text.is_ok_and(|text| text.starts_with('1'))
        };
        self.0.iter().filter(is_frozen).count()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in &self.0 {
            let _ = std::fs::write(dir.join("cgroup.freeze"), "0");
            let _ = std::fs::write(dir.join("cgroup.kill"), "1");
            // Its process may not have been reaped yet.
            for _ in 0..1_000 {
                if std::fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn groups_that_were_paused_are_thawed_when_the_session_is_killed() {
    let Some(all) = all_cpus().filter(|all| all.len() <= 8) else {
        return skipped("it takes two to eight CPUs");
    };
    let programs = Programs::start(all.len() + 1);
    let Some(groups) = Groups::make(&programs) else {
        return skipped("this user can't make cgroups");
    };
    let mut words = vec![
        "attach",
        "--manage",
        "--pause",
        "--log",
        "--interval",
        "50ms",
    ];
    words.extend(["--policy", "round-robin", "--param", "quantum_s=0.05"]);
    let dirs: Vec<&str> = groups
        .0
        .iter()
        .map(|dir| dir.to_str().expect("UTF-8"))
        .collect();
    dirs.iter().for_each(|dir| words.extend(["--cgroup", dir]));
    for end in [Signal::TERM, Signal::KILL] {
        let session = Session::run(&words);
        until("one is frozen", || groups.frozen() > 0);
        session.end(end);
        until("none is frozen", || groups.frozen() == 0);
        until("all are free", || are_free(&programs, &all));
    }
    // One that can't act holds nobody up.
    let session = Session::run(&words);
    until("one is frozen", || groups.frozen() > 0);
    session.signal(Signal::STOP);
    until("the keeper thaws them", || groups.frozen() == 0);
    session.signal(Signal::CONT);
    until("it goes on", || groups.frozen() > 0);
    session.signal(Signal::TSTP);
    let text = session.end(Signal::TERM);
    assert!(
        groups.frozen() == 0 && text.contains("not suspended"),
        "{text}"
    );
    // A frozen session could not thaw its group.
    let cosched = command(Path::new("/"), &words);
    let mut inside = Command::new("sh");
    let enter = r#"echo $$ > "$0/cgroup.procs"; exec "$@""#;
    inside.args(["-c", enter, dirs[0]]);
    inside.arg(cosched.get_program()).args(cosched.get_args());
    let refused = inside.output().expect("a session");
    assert!(!refused.status.success() && groups.frozen() == 0);
    let message = "a cgroup with cosched or the init process in it is never paused";
    assert!(err(&refused).contains(message), "{}", err(&refused));
    drop(programs);
}
