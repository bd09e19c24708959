//! Stops and continues the processes of one job by signals, without a cgroup.
//!
//! One signal stops the job's own process group. None of its processes can escape by forking: the kernel also delivers
//! a signal for a group to a child that is just being made. Processes that have left the group are found and stopped
//! one by one. Such a process may be in the middle of a fork, and a process of the group in the middle of leaving it.
//! So a job is scanned again later, until all processes stand still and none is new.

use crate::hold::tree::ProcessTree;
use crate::process::Process;
use crate::sys;
use rustix::process::Signal;

/// Maximum number of scans in a row while they find new processes.
const LOOKS: u32 = 16;

/// What was stopped of one job.
#[derive(Debug, Default)]
pub(crate) struct SignalStop {
    /// Processes outside the job's process group that were stopped, to be continued one by one.
    stopped: Vec<Process>,
    /// No process can have escaped: a second look found that all stand still.
    complete: bool,
    /// How many orphans the job had adopted at the last look.
    adopted: u32,
}

impl SignalStop {
    /// Stops all processes of a job. See [`SignalStop::look_again`] for what may escape at first.
    pub(crate) fn stop(&mut self, tree: &ProcessTree) {
        stop_group(tree);
        self.stopped.clear();
        self.adopted = tree.adopted();
        // The job's own process leads its session and its group, and can leave neither.
        self.complete = tree.is_main_alone();
        if !self.complete {
            self.stop_strays(tree);
            // One that was outside may have joined the group since the first signal.
            stop_group(tree);
        }
    }

    /// Looks at a stopped job again if a process may have escaped its stop, or if an orphan came back to the job.
    /// Returns whether everything is known to stand still.
    pub(crate) fn look_again(&mut self, tree: &ProcessTree) -> bool {
        if !self.complete || self.adopted != tree.adopted() {
            let known = self.stopped.len();
            let members = self.stop_strays(tree);
            // A process in state D may be in the middle of a fork.
            self.complete = self.stopped.len() == known && members.iter().all(Process::is_stopped);
        }
        self.complete
    }

    /// Continues everything that was stopped. With `but_main` the job's own process group stays as it is.
    pub(crate) fn go_on(&mut self, tree: &ProcessTree, but_main: bool) {
        // Processes that left the group while its stop was under way must be known.
        self.look_again(tree);
        if tree.main_gone {
            // The group's number may belong to others by now, so its former members are continued one by one.
            for process in tree.members() {
                if process.is_stopped() && process.group == tree.main.pid {
                    process.signal(tree.root(), Signal::CONT);
                }
            }
        } else if !but_main {
            tree.go_on();
        }
        for process in self.stopped.drain(..) {
            process.signal(tree.root(), Signal::CONT);
        }
    }

    /// Stops the processes outside the job's process group. Looks until it finds no new one; returns all processes of
    /// the last look.
    fn stop_strays(&mut self, tree: &ProcessTree) -> Vec<Process> {
        self.adopted = tree.adopted();
        let mut members = Vec::new();
        for _ in 0..LOOKS {
            members = tree.members();
            members.retain(|process| process.state != 'Z');
            let mut any_new = false;
            for process in &members {
                let in_group = process.group == tree.main.pid && !tree.main_gone;
                if !in_group && !self.has_stopped(process) {
                    any_new |= self.stop_stray(tree, process);
                }
            }
            if !any_new {
                break;
            }
        }
        members
    }

    fn has_stopped(&self, process: &Process) -> bool {
        self.stopped
            .iter()
            .any(|known| known.pid == process.pid && known.start == process.start)
    }

    /// Stops a process outside the group; returns whether it ran. One that stands still already may have left the group
    /// with our signal on its way, so it is continued with the others.
    fn stop_stray(&mut self, tree: &ProcessTree, process: &Process) -> bool {
        // The guardian must know of it before it is stopped.
        tree.note(process);
        let ran = !process.is_stopped();
        if ran && !process.signal(tree.root(), Signal::STOP) {
            return false;
        }
        self.stopped.push(*process);
        ran
    }
}

fn stop_group(tree: &ProcessTree) {
    if tree.leads_group() {
        let _ = sys::kill(-tree.main.pid, libc::SIGSTOP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::sys::RawPid;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// A shell that leads a session of its own, like a job's own process. It is killed with everything that it started.
    struct Shell {
        child: Child,
        tree: ProcessTree,
        dir: tempfile::TempDir,
    }

    impl Shell {
        fn start(script: &str) -> Shell {
            let dir = tempfile::tempdir().unwrap();
            let mut command = Command::new("setsid");
            command
                .args(["sh", "-c", script])
                .current_dir(dir.path())
                .stdin(Stdio::null());
            let child = command.spawn().unwrap();
            let pid = child.id() as RawPid;
            until("the session", || {
                Process::read(&Root::default(), pid).is_some_and(|p| p.session == pid)
            });
            let main = Process::read(&Root::default(), pid).unwrap();
            Shell {
                child,
                tree: ProcessTree::new(Root::default(), main, None),
                dir,
            }
        }

        fn touch(&self, file: &str) {
            std::fs::write(self.dir.path().join(file), "").unwrap();
        }

        /// For the script `LEAVES`.
        fn let_one_leave(&self) {
            self.touch("go");
            until("a process leaves", || !self.strays().is_empty());
        }

        fn states(&self) -> String {
            self.tree
                .members()
                .iter()
                .map(|process| process.state)
                .collect()
        }

        /// Processes outside the shell's session.
        fn strays(&self) -> Vec<Process> {
            let mut all = self.tree.members();
            all.retain(|process| process.session != self.tree.main.pid);
            all
        }

        /// A parent in state D waits for a child that shares its memory until the child executes a program.
        fn stands_still(&self, stop: &mut SignalStop) {
            until("all stand still", || {
                stop.look_again(&self.tree);
                self.states().chars().all(|state| "TD".contains(state))
            });
        }

        fn runs(&self) {
            until("all run", || !self.states().contains('T'));
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            for process in self.tree.members() {
                process.signal(&Root::default(), Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < end, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    const LEAVES: &str = "while [ ! -e go ]; do sleep 0.01; done; setsid sleep 1000 & wait";

    #[test]
    fn a_process_that_leaves_its_session_between_two_stops_is_stopped_and_continued() {
        let shell = Shell::start(LEAVES);
        let mut stop = SignalStop::default();
        stop.stop(&shell.tree);
        shell.stands_still(&mut stop);
        stop.go_on(&shell.tree, false);
        shell.runs();
        shell.let_one_leave();
        for _ in 0..3 {
            stop.stop(&shell.tree);
            shell.stands_still(&mut stop);
            stop.go_on(&shell.tree, false);
            shell.runs();
        }
    }

    #[test]
    fn one_that_left_with_its_stop_on_the_way_is_continued() {
        let shell = Shell::start(LEAVES);
        shell.let_one_leave();
        // The case in which the group's signal reached a process, and the process left the group before it stood still.
        let stray = shell.strays()[0];
        stray.signal(&Root::default(), Signal::STOP);
        until("it stands still", || shell.strays()[0].state == 'T');
        let mut stop = SignalStop::default();
        stop.stop(&shell.tree);
        shell.stands_still(&mut stop);
        stop.go_on(&shell.tree, false);
        shell.runs();
    }

    #[test]
    fn an_orphan_that_comes_back_to_a_stopped_job_is_stopped() {
        // Each is one process: a shell that is stopped while it starts another would stay in state D.
        let mut shell = Shell::start("exec sleep 1000");
        let orphan = Shell::start("exec sleep 1000");
        let mut stop = SignalStop::default();
        stop.stop(&shell.tree);
        shell.stands_still(&mut stop);
        shell.tree.adopt(orphan.tree.main);
        shell.stands_still(&mut stop);
        // Its first process may be in state D, waiting for a child that was stopped before it could execute a program.
        until("the orphan stands still", || orphan.states().contains('T'));
        stop.go_on(&shell.tree, false);
        shell.runs();
    }

    /// A storm of forks outside the job's process group: whatever the timing, in the end nothing runs.
    #[test]
    fn processes_that_fork_while_they_are_stopped_do_not_escape() {
        let shell = Shell::start(
            "ulimit -t 60; setsid sh -c 'while :; do /bin/true & /bin/true; done' & wait",
        );
        until("the storm", || shell.strays().len() > 1);
        let mut stop = SignalStop::default();
        for _ in 0..20 {
            stop.stop(&shell.tree);
            until("nothing runs and nothing is new", || {
                stop.look_again(&shell.tree);
                let before = shell.tree.members();
                std::thread::sleep(Duration::from_millis(5));
                let after = shell.tree.members();
                before == after && after.iter().all(|process| "TDZ".contains(process.state))
            });
            stop.go_on(&shell.tree, false);
            std::thread::sleep(Duration::from_millis(3));
        }
        assert!(shell.tree.main.is_same(&Root::default()));
    }
}
