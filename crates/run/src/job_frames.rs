//! Frames about jobs and the whole run, which `--frames` and `--progress-to` write.

use cosched_core::{EarlierPhases, Fact, JobEnd, Nanos, TaskResult, TaskSpec};
use cosched_nodes::protocol::{JobName, JobProgress, NodeProgress, WorkerFrame};
use cosched_report::{JobInfo, LiveProgress, RunNews};

/// Least time between two frames about the whole run.
const EVERY: Nanos = Nanos::from_ms(1_000);

/// Makes frames of what is told.
#[derive(Default)]
pub(crate) struct Events {
    /// When the next frame about the whole run is due.
    next: Nanos,
    /// They are for a coordinator.
    is_worker: bool,
}

impl Events {
    /// For a coordinator.
    pub(crate) fn of_worker() -> Events {
        Events {
            is_worker: true,
            ..Events::default()
        }
    }

    /// The frame for what is told, if it has one.
    pub(crate) fn frame(&mut self, told: &RunNews<'_>) -> Option<WorkerFrame> {
        match told {
            RunNews::Fact { at, fact, info, .. } => self.of_fact(*at, fact, *info),
            RunNews::Progress(now) => self.progress(now),
            RunNews::Status(_) | RunNews::Warning(_) => None,
        }
    }

    fn of_fact(&self, at: Nanos, fact: &Fact<'_>, info: Option<&JobInfo>) -> Option<WorkerFrame> {
        match *fact {
            Fact::Started {
                task, again: false, ..
            } => Some(WorkerFrame::Start {
                job: job_name(task, info),
                at_s: at.as_s(),
            }),
            Fact::Failed(result) => Some(WorkerFrame::Retry {
                job: job_name(&result.spec, info),
                how: JobEnd::of(result),
                attempt: result.runs,
            }),
            // The run is ended, not this job: the coordinator starts it on another node.
            Fact::Ended(result) if self.is_worker && is_interrupted(result) => None,
            Fact::Ended(result) => Some(WorkerFrame::End {
                job: job_name(&result.spec, info),
                how: JobEnd::of(result),
                learnt: self.learnt(result),
            }),
            _ => None,
        }
    }

    /// What a coordinator keeps. Watchers get no models.
    fn learnt(&self, result: &TaskResult) -> Option<EarlierPhases> {
        let learnt = result.learnt.as_deref().filter(|_| self.is_worker);
        learnt.cloned()
    }

    fn progress(&mut self, now: &LiveProgress) -> Option<WorkerFrame> {
        if now.elapsed < self.next {
            return None;
        }
        self.next = now.elapsed + EVERY;
        Some(WorkerFrame::Progress(NodeProgress {
            total: now.total,
            done: now.done,
            failed: now.failed,
            running: now.running,
            waiting: now.waiting,
            queued: now.queued,
            elapsed_s: now.elapsed.as_s(),
            left_s: now.left.map(Nanos::as_s),
            jobs: now.jobs.iter().map(job_progress).collect(),
        }))
    }
}

fn job_progress(job: &cosched_report::JobProgress) -> JobProgress {
    JobProgress {
        name: job.name.to_string(),
        share: job.share,
        left_s: job.left_s,
    }
}

/// Whether a job was ended with its run.
fn is_interrupted(result: &TaskResult) -> bool {
    result.told_to_end && !result.ended_by_user
}

fn job_name(spec: &TaskSpec, info: Option<&JobInfo>) -> JobName {
    JobName {
        job: info.map_or(u64::from(spec.id.0) + 1, |info| info.seq),
        id: info.and_then(|info| info.id.clone()),
        name: spec.name.clone(),
    }
}
