//! Jobs with a reaper. The reaper is the child of this process and the job is its first child, so the kernel tells nobody
//! else that the job has stopped itself.

use super::lifecycle::Lifecycle;
use crate::process::{self, Process};
use crate::root::Root;
use cosched_core::{Event, Nanos, TaskId};
use rustix::process::Signal;

/// Longest time between two looks, and shortest.
const LONGEST: Nanos = Nanos::from_ms(1_000);
const SHORTEST: Nanos = Nanos::from_ms(10);

impl Lifecycle {
    /// Looks whether jobs with a reaper have stopped themselves, or go on. Appends what is new to `events`. Returns when
    /// to look again. What a frozen job does is not known before it is thawed.
    pub(crate) fn look_at_reaped(
        &mut self,
        now: Nanos,
        is_frozen: impl Fn(TaskId) -> bool,
        events: &mut Vec<Event>,
    ) -> Option<Nanos> {
        let mut reaped: Vec<TaskId> = self.tasks().collect();
        reaped.retain(|&task| self.jobs[task].key.is_some());
        if reaped.is_empty() {
            return None;
        }
        if now >= self.next_look {
            self.next_look = now + self.max_pause.clamp(SHORTEST, LONGEST);
            for task in reaped.into_iter().filter(|&task| !is_frozen(task)) {
                self.look_at(task, now, events);
            }
        }
        Some(self.next_look)
    }

    fn look_at(&mut self, task: TaskId, now: Nanos, events: &mut Vec<Event>) {
        let root = self.root.clone();
        let Some(live) = self.live_mut(task) else {
            return;
        };
        if live.main_end.is_some() {
            return;
        }
        let reaper = live.tree.main;
        live.reaped = live.reaped.or_else(|| first_child(&root, &reaper));
        let Some(job) = live.reaped else { return };
        let job = Process::find(&root, job.pid, job.start);
        let is_stopped = job.is_some_and(|job| job.is_stopped());
        if is_stopped == live.stopped_itself.is_some() {
            return;
        }
        self.main_paused(task, is_stopped, now, false, events);
        if !is_stopped {
            // A thaw has left it as it was, with the job that had stopped itself.
            reaper.signal(&root, Signal::CONT);
        }
    }
}

/// The oldest child of a reaper.
fn first_child(root: &Root, reaper: &Process) -> Option<Process> {
    let children = process::children_of_thread(root, reaper.pid, reaper.pid);
    Process::read(root, *children.first()?)
}
