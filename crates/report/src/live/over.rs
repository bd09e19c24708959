//! The last state of a run that is over: what was seen last is older than its end.

use super::{JobNow, JobState, LiveTotals, Status};
use crate::figures::Figures;
use crate::record::{Job, Record};
use crate::text::visible;

impl Status {
    /// The state after the end, as the record of the run tells it: nobody has a CPU, and every job has ended, or did not.
    pub fn over(&mut self, record: &Record) {
        let totals = &mut self.totals;
        let LiveTotals { jobs, earlier, .. } = *totals;
        *totals = LiveTotals {
            jobs,
            earlier,
            done: record.totals.succeeded + record.totals.failed,
            failed: record.totals.failed,
            dropped: record.totals.unfinished,
            ..LiveTotals::default()
        };
        totals
            .absent
            .note_option("left_s", None::<()>, "the run has ended");
        totals
            .absent
            .note_option("left_from", None::<()>, "the run has ended");
        let last = record
            .jobs
            .iter()
            .filter_map(|job| job.finish_s)
            .fold(0.0, f64::max);
        self.elapsed_s = self.elapsed_s.max(last);
        for cpu in &mut self.cpus {
            (cpu.job, cpu.since_s, cpu.shared, cpu.jobs) = (None, None, false, 0);
        }
        for row in &mut self.jobs {
            let job = record
                .jobs
                .get(row.job as usize)
                .filter(|job| visible(&job.name) == visible(&row.name));
            job.into_iter().for_each(|job| end(row, job));
        }
    }
}

fn end(row: &mut JobNow, job: &Job) {
    row.state = JobState::Ended;
    (row.cpus, row.reason, row.progress_from, row.share_from) = (None, None, None, None);
    row.exit = job.exit;
    let not_ended = if job.start_s.is_some() {
        "did not end"
    } else {
        "not started"
    };
    row.exit_text = Some(visible(job.exit_text.as_deref().unwrap_or(not_ended)));
    row.runs = Some(job.runs).filter(|&runs| runs > 1);
    let mut figures = Figures::default();
    for (name, value) in [
        ("finished_s", job.finish_s),
        ("started_s", job.start_s),
        ("ran_s", job.start_s.map(|_| job.ran_s)),
        ("cpu_s", job.cpu_s),
        ("max_rss_bytes", job.max_rss_bytes.map(|bytes| bytes as f64)),
    ] {
        figures.push(name, value.ok_or(not_ended));
    }
    row.figures = figures;
}
