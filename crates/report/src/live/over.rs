//! The state of a run that writes none: of a suspended one, and of one that has ended.

use super::{CpuNow, JobNow, JobState, LiveTotals, RunStatus};
use crate::figures::Figures;
use crate::record::{JobRecord, RunRecord};
use crate::text::visible;
use cosched_core::Absence;

impl RunStatus {
    /// Bring the state to a suspended run, in which these jobs are frozen.
    pub fn suspend(&mut self, is_frozen: impl Fn(u32) -> bool) {
        self.suspended = true;
        for row in &mut self.jobs {
            let total = match row.state {
                JobState::Running => &mut self.totals.running,
                JobState::Sleeping => &mut self.totals.sleeping,
                _ => continue,
            };
            if is_frozen(row.job) {
                *total = total.saturating_sub(1);
                self.totals.waiting += 1;
                row.state = JobState::Waiting;
                row.cpus = None;
            }
        }
        let mut states = self.jobs.iter().map(|row| row.state);
        if !states.any(|state| state == JobState::Running) {
            self.clear_cpus();
        }
    }

    fn clear_cpus(&mut self) {
        for cpu in &mut self.cpus {
            *cpu = CpuNow::idle(cpu.cpu);
        }
    }

    /// Bring the state to the end of the run: no CPU has a job, and every job has ended or did not start.
    pub fn over(&mut self, record: &RunRecord) {
        let cancelled = record.cancelled();
        let mut totals = LiveTotals {
            jobs: self.totals.jobs,
            earlier: self.totals.earlier,
            done: record.totals.succeeded + record.totals.failed,
            failed: record.totals.failed.saturating_sub(cancelled),
            cancelled,
            dropped: record.totals.unfinished,
            ..LiveTotals::default()
        };
        for name in ["left_s", "left_from"] {
            totals.absent.lack(name, "the run has ended");
        }
        self.totals = totals;
        for job in &record.jobs {
            self.elapsed_s = self.elapsed_s.max(job.end.end_s.unwrap_or(0.0));
        }
        self.clear_cpus();
        for row in &mut self.jobs {
            if let Some(job) = record.jobs.get(row.job as usize)
                && visible(&job.name) == visible(&row.name)
            {
                end(row, job);
            }
        }
    }
}

fn end(row: &mut JobNow, job: &JobRecord) {
    row.state = JobState::Ended;
    row.cpus = None;
    row.reason = None;
    row.progress_from = None;
    row.share_from = None;
    row.end = job.end.clone();
    if !job.has_ended() {
        let not_ended = match job.end.start_s {
            Some(_) => Absence::NotEnded,
            None => Absence::NotStarted,
        };
        row.end.exit_text = not_ended.text().to_owned();
    }
    row.end.exit_text = visible(&row.end.exit_text);
    row.figures = Figures::default();
}
