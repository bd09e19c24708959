//! Jobs that run already when the run takes them over. Their processes are not children of this one, so their ends are
//! watched through handles.

use super::config::Adoption;
use super::lifecycle::Lifecycle;
use super::live_job::{AdoptedJob, LiveJob};
use crate::cgroup::JobGroup;
use crate::hold::mend;
use crate::hold::tree::ProcessTree;
use crate::process::{self, Process};
use cosched_core::{Nanos, TaskId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::cell::Cell;
use std::os::fd::OwnedFd;

/// Scans for processes that were forked while their job was moved into its group.
const LOOKS: u32 = 8;

impl Lifecycle {
    /// Takes over a job that was added. If its process is gone, the job has ended.
    pub(super) fn adopt(&mut self, task: TaskId, Adoption { pid, start_time }: Adoption) {
        let found = Process::find(&self.root, pid, start_time);
        let handle = found.and_then(|main| main.handle(&self.root));
        let main = found.unwrap_or(Process::gone(pid, start_time));
        mend::dismiss_guardians(&self.root, &main);
        let group = self.make_group(task);
        let group = group.filter(|group| handle.is_some() && self.gather(task, group, &main));
        let tree = ProcessTree::new(self.root.clone(), main, group)
            .with_ledger(self.ledger.clone(), task.0)
            .of_foreigners();
        // If it fails, the variable of its first run still tells of it.
        let _ = self.ledger.adopted(task.0, &self.jobs[task].name, &main);
        let before = tree.cpu_time();
        let mut live = LiveJob::new(tree, self.free_slot(), 0);
        live.tree.main_gone = handle.is_none();
        live.adopted = Some(AdoptedJob {
            handle,
            before,
            greatest: Cell::new(Nanos::ZERO),
        });
        self.jobs[task].live = Some(live);
        self.live.insert(task);
    }

    /// Moves all processes of a job into its group; `false` if the first can't be moved.
    fn gather(&self, task: TaskId, group: &JobGroup, main: &Process) -> bool {
        if !self.moves(task, group, main) {
            return false;
        }
        for _ in 0..LOOKS {
            let inside = group.processes();
            let mut outside = process::descendants(&self.root, main.pid);
            outside.retain(|process| !inside.contains(&process.pid));
            if outside.is_empty() {
                break;
            }
            for process in outside {
                // It may have ended.
                let _ = group.add(process.pid);
            }
        }
        true
    }

    fn adopted(&self) -> impl Iterator<Item = (TaskId, &LiveJob, &AdoptedJob)> {
        self.tasks().filter_map(|task| {
            let live = self.live(task)?;
            Some((task, live, live.adopted.as_ref()?))
        })
    }

    /// The handles of adopted processes whose ends were not seen.
    pub(super) fn adopted_ends(&self) -> impl Iterator<Item = &OwnedFd> {
        let running = self
            .adopted()
            .filter(|(_, live, _)| live.main_end.is_none());
        running.filter_map(|(_, _, adopted)| adopted.handle.as_ref())
    }

    /// The adopted jobs whose own process has ended since the last look.
    pub(super) fn ended_adopted(&self) -> Vec<TaskId> {
        let mut ended = Vec::new();
        for (task, live, adopted) in self.adopted() {
            if live.main_end.is_none() && adopted.handle.as_ref().is_none_or(is_readable) {
                ended.push(task);
            }
        }
        ended
    }
}

fn is_readable(handle: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
