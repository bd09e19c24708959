//! From the rows of a series to the events of a trace.

use super::event::{Args, Meter, Title, Trace, Track, args};
use super::names::{
    LINE, activity_args, activity_title, bytes_per_s, cpu_title, end_args, ipc, quanta, run_args,
    start_args,
};
use super::sums::Sums;
use crate::reason::trigger_text;
use crate::series::measured::Measured;
use crate::series::replay::{Activity, Replay, Span};
use crate::series::{CpuMode, SampleRow, SeriesHeader, SeriesRow};
use crate::text::visible;
use cosched_core::{Basis, Counter, JobEnd, Nanos, Rate, TaskId, Trigger};
use serde_json::json;
use std::io::{self, Write};

/// Values of a job that go into its next slice or instant.
#[derive(Default)]
struct Pending {
    /// Measurements since its last slice.
    measured: Measured,
    /// Columns that its samples lack, with the reasons, since its last sample.
    lacks: Args,
    /// Its last interval had reads.
    reads: bool,
}

/// A converter of rows, one by one.
pub(super) struct Converter<'a, W> {
    header: &'a SeriesHeader,
    trace: Trace<W>,
    replay: Replay,
    sums: Sums,
    pending: Vec<Pending>,
}

impl<'a, W: Write> Converter<'a, W> {
    /// Begin a trace.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn new(out: W, header: &'a SeriesHeader) -> io::Result<Converter<'a, W>> {
        let mut trace = Trace::new(out, header)?;
        let title = Title::new("run begins", "run");
        trace.instant(Track::Decisions, Nanos::ZERO, &title, &run_args(header))?;
        Ok(Converter {
            header,
            trace,
            replay: Replay::new(header),
            sums: Sums::default(),
            pending: header.tasks.iter().map(|_| Pending::default()).collect(),
        })
    }

    /// Convert a row.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn row(&mut self, at: Nanos, row: &SeriesRow) -> io::Result<()> {
        self.replay.apply(at, row);
        let spans = self.replay.take_spans();
        self.slices(spans)?;
        match row {
            SeriesRow::Decided {
                triggers,
                next_wake,
                stood_in,
                basis,
            } => {
                self.decision(triggers, *next_wake, *stood_in, basis)?;
                self.failed_attempts(triggers)
            }
            SeriesRow::Started(task) => self.start(task.0 as usize),
            SeriesRow::Stopped(task) | SeriesRow::Waits { task, .. } => {
                self.reads_nothing(task.0 as usize)
            }
            SeriesRow::Sampled(sample) => self.sample(at, sample),
            SeriesRow::Lacks { task, column, why } => {
                let lacks = &mut self.pending[task.0 as usize].lacks;
                lacks.insert(column.clone(), json!(why.text()));
                Ok(())
            }
            SeriesRow::Ended { task, end } => self.end(*task, end),
            SeriesRow::Warned { code, text, .. } => {
                let title = Title::new(visible(code), "warning");
                let args = args(json!({ "text": visible(text) }));
                let now = self.replay.now;
                self.trace.instant(Track::Warnings, now, &title, &args)
            }
            SeriesRow::Placed { .. } | SeriesRow::Switched(_) | SeriesRow::Came(_) => Ok(()),
        }
    }

    /// End the trace; return the time of the last row.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish(mut self) -> io::Result<Nanos> {
        let spans = self.replay.finish();
        self.slices(spans)?;
        self.sums.write(&mut self.trace)?;
        self.trace.finish()?;
        Ok(self.replay.now)
    }

    /// Write spans that have ended, on the tracks of their jobs and CPUs.
    fn slices(&mut self, spans: Vec<Span>) -> io::Result<()> {
        for span in spans {
            let measured = std::mem::take(&mut self.pending[span.job].measured);
            let mut args = activity_args(&span.activity, &measured);
            if span.is_open {
                args.insert("series_ends_here".to_owned(), json!(true));
            }
            let time = (span.from, span.to);
            if let Some(title) = activity_title(&span.activity) {
                self.trace
                    .slice(Track::Job(span.job), time, &title, &args)?;
            }
            if let Activity::Runs(placed) = &span.activity
                && placed.mode != CpuMode::Shared
            {
                let title = cpu_title(placed, self.trace.job_name(span.job));
                for cpu in placed.cpus.iter() {
                    if let Some(track) = self.trace.cpu(cpu) {
                        self.trace.slice(track, time, &title, &args)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn job_instant(
        &mut self,
        job: usize,
        name: &str,
        category: &'static str,
        args: &Args,
    ) -> io::Result<()> {
        let title = Title::new(name, category);
        self.trace
            .instant(Track::Job(job), self.replay.now, &title, args)
    }

    fn start(&mut self, job: usize) -> io::Result<()> {
        let starts = self.replay.jobs[job].starts;
        if starts > 1 {
            let args = args(json!({ "run": starts }));
            return self.job_instant(job, "started again", "start", &args);
        }
        let args = start_args(self.header.tasks[job].command.as_deref());
        self.job_instant(job, "started", "start", &args)
    }

    /// Set the bandwidth of a job to 0: it has no CPU from now on.
    fn reads_nothing(&mut self, job: usize) -> io::Result<()> {
        if std::mem::take(&mut self.pending[job].reads) {
            self.trace.count(Meter::JobRead(job), self.replay.now, 0)?;
        }
        Ok(())
    }

    fn end(&mut self, task: TaskId, end: &JobEnd) -> io::Result<()> {
        let job = task.0 as usize;
        self.reads_nothing(job)?;
        if let Some(progress) = end.progress {
            self.pending[job].measured.progress_milli = Some((progress * 1e3) as u64);
            let now = self.replay.now;
            self.trace.count(Meter::Progress(job), now, progress)?;
        }
        let category = if end.exit == Some(0) && !end.timed_out {
            "end"
        } else {
            "failed"
        };
        let args = end_args(end);
        let how = format!("ended: {}", visible(&end.text()));
        self.job_instant(job, &how, category, &args)
    }

    fn sample(&mut self, at: Nanos, sample: &SampleRow) -> io::Result<()> {
        let job = sample.task.0 as usize;
        let lacks = std::mem::take(&mut self.pending[job].lacks);
        if !lacks.is_empty() {
            self.job_instant(job, "not measured", "absent", &lacks)?;
        }
        if sample.interval == Nanos::ZERO {
            return Ok(());
        }
        let begin = at - sample.interval;
        let counts = &sample.counts;
        let reads = bytes_per_s(counts[Counter::MmReads], sample.interval);
        let writes = bytes_per_s(counts[Counter::MmWrites], sample.interval);
        self.sums
            .add(begin, at, [busy_millionths(sample), reads, writes]);
        if let Some(ipc) = ipc(counts[Counter::Instructions], counts[Counter::Cycles]) {
            self.trace.count(Meter::Ipc(job), begin, ipc)?;
        }
        if let Some(reads) = reads {
            self.trace.count(Meter::JobRead(job), begin, reads)?;
        }
        if let Some(milli) = sample.progress_milli {
            self.trace.count(Meter::Progress(job), at, quanta(milli))?;
        }
        self.pending[job].reads = reads.is_some();
        self.pending[job].measured.add(sample);
        Ok(())
    }

    fn decision(
        &mut self,
        triggers: &[Trigger],
        next_wake: Option<Nanos>,
        stood_in: bool,
        basis: &Basis,
    ) -> io::Result<()> {
        let now = self.replay.now;
        let mut reasons = Vec::new();
        for trigger in triggers {
            reasons.push(trigger_text(trigger, |task| self.task_name(task)));
        }
        let args = args(json!({
            "because": reasons.join(", "),
            "next_wake_ns": next_wake,
            "target_bytes_per_s": basis.target.map(bandwidth),
            "predicted_bytes_per_s": basis.predicted.map(bandwidth),
            "measures": basis.measures.map(|task| self.task_name(task)),
        }));
        let title = match reasons.first() {
            _ if stood_in => Title::new("round-robin stood in", "stood-in"),
            Some(first) => Title::new(first, "decision"),
            None => Title::new("decision", "decision"),
        };
        self.trace.instant(Track::Decisions, now, &title, &args)?;
        let meters = [
            (Meter::Target, basis.target),
            (Meter::Predicted, basis.predicted),
        ];
        for (meter, rate) in meters {
            if let Some(rate) = rate {
                self.trace.count(meter, now, bandwidth(rate))?;
            }
        }
        Ok(())
    }

    /// Mark the ends of attempts that will be repeated.
    fn failed_attempts(&mut self, triggers: &[Trigger]) -> io::Result<()> {
        for trigger in triggers {
            if let Some(job) = self.replay.failed_attempt(trigger) {
                self.reads_nothing(job)?;
                self.job_instant(job, "attempt ended", "failed", &Args::new())?;
            }
        }
        Ok(())
    }

    fn task_name(&self, task: TaskId) -> String {
        match self.header.tasks.get(task.0 as usize) {
            Some(task) => visible(&task.name),
            None => format!("job {task}"),
        }
    }
}

/// Convert transactions per millisecond to bytes per second.
fn bandwidth(rate: Rate) -> u64 {
    rate.0.saturating_mul(1_000 * LINE)
}

/// Return the CPU time over time, in millionths of a CPU.
fn busy_millionths(sample: &SampleRow) -> Option<u64> {
    let busy = u128::from(sample.cpu_time?.0) * 1_000_000 / u128::from(sample.interval.0);
    u64::try_from(busy).ok()
}
