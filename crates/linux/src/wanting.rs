//! The number of threads of a job that want a CPU: threads in state R, which run or wait for one. It does not depend on
//! the job's CPUs: if eight threads share one CPU, all eight are in that state.

use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::RawPid;
use cosched_core::{Absence, Reading, Wanting};

/// Maximum number of threads read, so that a job of thousands does not cost too much of a quantum. The count is then
/// too low, but still above the CPUs of most machines.
const MOST_THREADS: usize = 256;

/// The threads of these processes that want a CPU now.
pub(crate) fn wanting(
    root: &Root,
    processes: impl IntoIterator<Item = Process>,
) -> Reading<Wanting> {
    let (mut looked_at, mut some_is_there) = (0, false);
    let (mut all, mut most) = (0, 0);
    for process in processes {
        some_is_there = true;
        if looked_at >= MOST_THREADS {
            break;
        }
        let wants = threads_wanting(root, &process, &mut looked_at);
        all += wants;
        most = most.max(wants);
    }
    if !some_is_there {
        return Reading::Absent(Absence::NotTold);
    }
    Reading::Value(Wanting {
        all,
        of_one_process: Reading::Value(most),
    })
}

/// The threads of a process that want a CPU now. Adds those that it reads to `looked_at`.
fn threads_wanting(root: &Root, process: &Process, looked_at: &mut usize) -> u32 {
    if process.threads <= 1 {
        *looked_at += 1;
        return u32::from(process.wants_cpu());
    }
    // The first thread may have ended; the process's own state then says nothing about the others.
    let threads = process::threads(root, process.pid).into_iter();
    let mut wants = 0;
    for tid in threads.take(MOST_THREADS - *looked_at) {
        *looked_at += 1;
        wants += u32::from(thread(root, process.pid, tid).is_some_and(|thread| thread.wants_cpu()));
    }
    wants
}

fn thread(root: &Root, pid: RawPid, tid: RawPid) -> Option<Process> {
    Process::read_from(root, &format!("/proc/{pid}/task/{tid}/stat"), tid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Writes a process with threads in these states; their numbers follow its own.
    fn write(dir: &Path, pid: RawPid, states: &str) -> Process {
        let stat = |id: RawPid, state: char| {
            format!(
                "{id} (a) b) {state} 1 {pid} {pid}{} {} 0 77 0",
                " 0".repeat(13),
                states.len()
            )
        };
        for (tid, state) in (pid..).zip(states.chars()) {
            let task = dir.join(format!("proc/{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("stat"), stat(tid, state)).unwrap();
        }
        std::fs::write(
            dir.join(format!("proc/{pid}/stat")),
            stat(pid, states.chars().next().unwrap()),
        )
        .unwrap();
        Process::read(&Root::new(dir), pid).unwrap()
    }

    #[test]
    fn threads_that_run_or_wait_for_a_cpu_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let all = [
            write(dir.path(), 100, "R"),
            write(dir.path(), 200, "S"),
            write(dir.path(), 300, "ZRDRSR"),
        ];
        let of = |all, most| {
            let of_one_process = Reading::Value(most);
            Reading::Value(Wanting {
                all,
                of_one_process,
            })
        };
        assert_eq!(wanting(&root, all), of(4, 3));
        assert_eq!(wanting(&root, [all[1]]), of(0, 0));
        assert_eq!(
            wanting(&root, []),
            Reading::Absent(Absence::NotTold),
            "it has gone"
        );
    }

    #[test]
    fn a_look_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let many = write(dir.path(), 1_000, &"R".repeat(300));
        assert_eq!(
            wanting(&root, [many, many]).map(|wanting| wanting.all),
            Reading::Value(MOST_THREADS as u32)
        );
    }

    #[test]
    fn a_real_process_that_is_bound_to_one_cpu_wants_two() {
        let root = Root::default();
        let cpu = crate::sys::affinity(0).unwrap().first().unwrap();
        let mut command = std::process::Command::new("sh");
        let line = "ulimit -t 60; read x; while :; do :; done & while :; do :; done";
        let mut shell = command.args(["-c", line]);
        shell = shell.stdin(std::process::Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let pid = child.id() as RawPid;
        crate::sys::set_affinity(pid, &[cpu].into_iter().collect()).unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x\n").unwrap();
        let tree = || process::descendants(&root, pid);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while wanting(&root, tree()).map(|wanting| wanting.all) != Reading::Value(2) {
            assert!(std::time::Instant::now() < end, "{:?}", tree());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        for process in tree() {
            process.signal(&root, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
    }
}
