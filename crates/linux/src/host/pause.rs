//! Holds all jobs: while the run is paused or has no CPU, and while its process is suspended. They are frozen, and the
//! clock of the run stands still.

use super::Host;
use super::loaded::in_charge;
use super::notice::HostNotice;
use crate::sys::{self, RawPid};
use crate::watch::{LiveSettings, RunRequest};
use cosched_core::{Event, TaskId};

/// Whether and why the jobs are held.
#[derive(Default)]
pub(super) struct RunPause {
    /// The user has paused the run.
    is_paused: bool,
    /// The run is being ended. Its jobs need their CPUs for that, so it is never held again.
    is_ending: bool,
    /// The jobs that ran when they were all frozen; `None` while they are not held.
    running: Option<Vec<TaskId>>,
}

impl RunPause {
    pub(super) fn is_held(&self) -> bool {
        self.running.is_some()
    }
}

impl Host {
    /// Holds the jobs or lets them go on, as the run may run or not.
    pub(super) fn hold_or_let_go(&mut self) {
        let is_wanted = self.pause.is_paused || self.extent.is_empty();
        match (is_wanted && !self.pause.is_ending, self.pause.is_held()) {
            (true, false) => {
                self.hold();
                self.queued.push(Event::Paused);
            }
            (false, true) => {
                self.let_go();
                self.queued.push(Event::Continued);
            }
            _ => {}
        }
    }

    /// Ends the pause for good: the run is being ended.
    pub(super) fn end_hold(&mut self) {
        self.pause.is_ending = true;
        self.extent.settle();
        self.hold_or_let_go();
    }

    /// Carries out a request, or passes it on to the loop.
    pub(super) fn grant(&mut self, request: RunRequest, events: &mut Vec<Event>) {
        match request {
            RunRequest::End { end, name } => {
                let task = TaskId(end);
                events.push(Event::EndTask { task, name });
            }
            RunRequest::Set(LiveSettings { jobs, pause }) => {
                if let Some(jobs) = jobs {
                    let limit = if jobs == 0 { usize::MAX } else { jobs as usize };
                    if let Some(variables) = &mut self.thread_variables {
                        variables.most_live = limit;
                    }
                    events.push(Event::JobLimit(limit));
                    self.notices.tell(HostNotice::JobLimit(jobs));
                }
                if let Some(pause) = pause {
                    self.set_pause(pause);
                }
            }
        }
    }

    fn set_pause(&mut self, pause: bool) {
        if pause != self.pause.is_paused && !self.pause.is_ending {
            self.pause.is_paused = pause;
            self.notices.tell(HostNotice::Paused(pause));
        }
    }

    /// Freezes all jobs, stops this process until it is continued, and then resumes.
    pub(super) fn suspend(&mut self) {
        let was_held = self.pause.is_held();
        if !was_held {
            self.hold();
        }
        let _ = sys::kill(std::process::id() as RawPid, libc::SIGSTOP);
        if !was_held {
            self.let_go();
        }
    }

    fn hold(&mut self) {
        self.clock.stop();
        let live = self.lifecycle.tasks();
        let running: Vec<TaskId> = live
            .filter(|&task| !self.actuator.is_frozen(task))
            .collect();
        self.lifecycle.adopt_orphans();
        for &task in &running {
            self.actuator.set_frozen(&self.lifecycle, task, true);
        }
        self.actuator.settle(&mut self.lifecycle);
        if let Some(loaded) = in_charge(&mut self.loaded) {
            loaded.rest(&self.lifecycle);
        }
        self.pause.running = Some(running);
    }

    fn let_go(&mut self) {
        for task in self.pause.running.take().into_iter().flatten() {
            self.actuator.set_frozen(&self.lifecycle, task, false);
        }
        self.clock.go_on();
    }
}
