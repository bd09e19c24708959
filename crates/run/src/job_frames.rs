//! Frames about jobs and the whole run, which `--frames` and `--progress-to` write.

use cosched_core::{Earlier, Exit, Nanos, TaskResult, TaskSpec};
use cosched_nodes::protocol::{Frame, JobEnd, JobName, JobProgress, Progress};
use cosched_report::{JobInfo, LiveProgress, Notice, exit_status};

/// Least time between two frames about the whole run.
const EVERY: Nanos = Nanos::from_ms(1_000);

/// Makes frames of notices.
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

    /// The frame of a notice about a job or the whole run, if it has one.
    pub(crate) fn frame(&mut self, notice: &Notice<'_>) -> Option<Frame> {
        match notice {
            Notice::Started { task, info, at, .. } => Some(Frame::Start {
                job: job_name(task, *info),
                at_s: at.as_s(),
            }),
            Notice::Retried { result, info } => Some(Frame::Retry {
                job: job_name(&result.spec, *info),
                how: job_end(result),
                attempt: result.runs,
            }),
            // The run is ended, not this job: the coordinator starts it on another node.
            Notice::Ended { result, .. } if self.is_worker && is_interrupted(result) => None,
            Notice::Ended { result, info, .. } => Some(Frame::End {
                job: job_name(&result.spec, *info),
                how: JobEnd {
                    learnt: self.learnt(result),
                    ..job_end(result)
                },
            }),
            Notice::Progress(now) => self.progress(now),
            Notice::Starting { .. }
            | Notice::Lost { .. }
            | Notice::Status(_)
            | Notice::Warning(_) => None,
        }
    }

    /// What a coordinator keeps. Watchers get no models.
    fn learnt(&self, result: &TaskResult) -> Option<Earlier> {
        let learnt = result.learnt.as_deref().filter(|_| self.is_worker);
        learnt.cloned()
    }

    fn progress(&mut self, now: &LiveProgress) -> Option<Frame> {
        if now.elapsed < self.next {
            return None;
        }
        self.next = now.elapsed + EVERY;
        Some(Frame::Progress(Progress {
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

fn job_end(result: &TaskResult) -> JobEnd {
    let exit = result.exit.as_ref();
    let used = &result.resources;
    JobEnd {
        exit: exit.and_then(exit_status),
        signal: match exit {
            Some(Exit::Signal { signal, .. }) => Some(*signal),
            _ => None,
        },
        exit_text: exit.map(Exit::to_string).unwrap_or_default(),
        timed_out: result.timed_out,
        start_s: result.started.map(Nanos::as_s),
        end_s: result.finished.map(Nanos::as_s),
        cpu_s: result.cpu_time.value().map(Nanos::as_s),
        user_s: used.user_time.value().map(Nanos::as_s),
        system_s: used.system_time.value().map(Nanos::as_s),
        max_rss_bytes: used.max_rss.value(),
        read_bytes: used.read_bytes.value(),
        written_bytes: used.written_bytes.value(),
        learnt: None,
    }
}
