//! From the rows of a series to the events of a trace.

use super::job::{Doing, LINE, Place, bytes_per_s, ipc, quanta};
use super::packet::{Arg, Args, Count, Phase};
use super::stage::{Happened, Stage};
use super::sweep::Sweep;
use super::tracks::{DECISIONS, Meter, Tracks, WARNINGS};
use crate::holders::Holders;
use crate::reason::trigger_text;
use crate::record::{Job, Record};
use crate::series::{EndedRow, Mode, Row, SampleRow, SeriesHeader};
use crate::text::visible;
use cosched_core::{
    Basis, Counter, CpuId, CpuSet, Nanos, Purpose, Rate, Switched, TaskId, Trigger,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write};

/// Why a row did not become part of the trace.
#[derive(Debug)]
pub(super) enum Refused {
    /// It contradicts the header.
    Row(String),
    /// The trace can't be written.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}

/// What is known of a job beside what it does.
#[derive(Debug, Default)]
struct Life {
    starts: u32,
    ended: bool,
    /// Where it was placed last: that is not told again where it is started again there.
    place: Option<Place>,
    /// The CPUs that it was seen to have, if that is told; then they are what its slices show.
    has: Option<BTreeSet<CpuId>>,
    /// What it does while it has none.
    idle: Option<Doing>,
    /// Nothing earlier of it can still be told; `None` while it has no CPU.
    open_since: Option<Nanos>,
    /// Its reads were counted in its last interval.
    reads: bool,
    /// What its samples lack, with the reasons, since its last sample.
    lacks: Args,
}

impl Life {
    /// It was not seen to have a CPU.
    fn has_none(&self) -> bool {
        self.has.as_ref().is_none_or(BTreeSet::is_empty)
    }
}

/// Turns rows into events, one by one.
#[derive(Debug)]
pub(super) struct Converter<'a, W> {
    tracks: Tracks<W>,
    stage: Stage,
    sweep: Sweep,
    lives: Vec<Life>,
    /// Jobs with a CPU.
    placed: BTreeSet<usize>,
    /// Who was seen to have each CPU.
    holders: Holders,
    /// Jobs that have not arrived, the next one first.
    arrivals: VecDeque<(Nanos, usize)>,
    /// What a record tells of jobs, by their names.
    recorded: BTreeMap<&'a str, &'a Job>,
    now: Nanos,
    latest: Nanos,
}

impl<'a, W: Write> Converter<'a, W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn new(
        out: W,
        header: &SeriesHeader,
        record: Option<&'a Record>,
    ) -> io::Result<Converter<'a, W>> {
        let mut tracks = Tracks::new(out, header)?;
        let begin = ("run begins", "run");
        tracks.event(
            Nanos::ZERO,
            DECISIONS,
            Phase::Instant,
            begin,
            &run_args(header),
        )?;
        let mut arrivals: Vec<(Nanos, usize)> = header
            .tasks
            .iter()
            .enumerate()
            .map(|(ix, task)| (task.arrival_ns, ix))
            .collect();
        arrivals.sort_unstable();
        let jobs = record.map_or(&[][..], |record| &record.jobs);
        Ok(Converter {
            stage: Stage::new(header, &tracks),
            tracks,
            sweep: Sweep::default(),
            lives: header.tasks.iter().map(|_| Life::default()).collect(),
            placed: BTreeSet::new(),
            holders: Holders::default(),
            arrivals: arrivals.into(),
            recorded: jobs.iter().map(|job| (job.name.as_str(), job)).collect(),
            now: Nanos::ZERO,
            latest: Nanos::ZERO,
        })
    }

    /// Takes a row.
    ///
    /// # Errors
    /// The row contradicts the header, or the trace can't be written.
    pub(super) fn row(&mut self, at: Nanos, row: &Row) -> Result<(), Refused> {
        if i64::try_from(at.0).is_err() {
            return Err(Refused::Row(format!(
                "column `t_ns`: {} ns are more than a trace can hold",
                at.0
            )));
        }
        self.latest = self.latest.max(at);
        match row {
            // Measurements tell of the past.
            Row::Sampled(sample) => return self.sampled(at, sample),
            Row::Lacks { task, column, why } => {
                let job = self.job(*task)?;
                self.lives[job]
                    .lacks
                    .push((column.clone(), Arg::Text(why.text().to_owned())));
                return Ok(());
            }
            _ => self.advance(at)?,
        }
        match row {
            Row::Decided {
                triggers,
                next_wake,
                stood_in,
                basis,
            } => {
                self.decided(triggers, *next_wake, *stood_in, basis)?;
            }
            Row::Switched(switched) => self.switched(*switched)?,
            Row::Placed {
                task,
                cpus,
                mode,
                purpose,
            } => {
                let job = self.job(*task)?;
                let place = Place {
                    cpus: cpus.clone(),
                    mode: *mode,
                    purpose: *purpose,
                };
                self.lives[job].idle = None;
                self.place(job, place);
            }
            Row::Stopped(task) => {
                let job = self.job(*task)?;
                self.leave(job, Doing::Off);
            }
            Row::Waits { task, reason } => {
                let job = self.job(*task)?;
                self.leave(job, Doing::Waits(*reason));
            }
            Row::Started(task) => {
                let job = self.job(*task)?;
                self.started(job);
            }
            Row::Ended(row) => {
                let job = self.job(row.task)?;
                self.ended(job, row);
            }
            Row::Warned { code, text } => {
                let args = [text_arg("text", visible(text))];
                self.tracks.event(
                    self.now,
                    WARNINGS,
                    Phase::Instant,
                    (&visible(code), "warning"),
                    &args,
                )?;
            }
            Row::Sampled(_) | Row::Lacks { .. } => {}
        }
        Ok(())
    }

    /// Ends the trace where the series ends; returns that time and the number of packets.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish(mut self) -> io::Result<(Nanos, u64)> {
        let end = self.latest;
        self.advance(end)?;
        self.stage.write(self.now, &mut self.tracks)?;
        self.stage.finish(end, &mut self.tracks)?;
        self.sweep.finish(&mut self.tracks)?;
        let written = self.tracks.written();
        self.tracks.finish()?;
        Ok((end, written))
    }

    fn job(&self, task: TaskId) -> Result<usize, Refused> {
        let job = task.0 as usize;
        let known = self.lives.len();
        if job < known {
            Ok(job)
        } else {
            Err(Refused::Row(format!(
                "column `task`: {job}, but the header has {known}"
            )))
        }
    }

    /// Time goes on to this moment, if it is not there yet; jobs arrive until then.
    fn advance(&mut self, to: Nanos) -> io::Result<()> {
        while let Some((at, job)) = self.arrivals.front().copied().filter(|(at, _)| *at <= to) {
            self.arrivals.pop_front();
            self.go_to(at)?;
            if *self.stage.does(job) == Doing::Nothing && self.lives[job].starts == 0 {
                self.stage.set(job, Doing::Queued);
            }
        }
        self.go_to(to)
    }

    fn go_to(&mut self, to: Nanos) -> io::Result<()> {
        if to > self.now {
            self.stage.write(self.now, &mut self.tracks)?;
            self.now = to;
            let open = self
                .placed
                .iter()
                .filter_map(|&job| self.lives[job].open_since)
                .min();
            self.sweep
                .write(open.unwrap_or(to).min(to), &mut self.tracks)?;
        }
        Ok(())
    }

    fn place(&mut self, job: usize, place: Place) {
        self.lives[job].place = Some(place.clone());
        self.lives[job].open_since.get_or_insert(self.now);
        self.placed.insert(job);
        match self.lives[job].has {
            Some(_) => self.seen(job),
            None => self.stage.set(job, Doing::Placed(place)),
        }
    }

    /// A job has no CPU from now on. It is stopped, so it reads nothing any more.
    fn leave(&mut self, job: usize, doing: Doing) {
        let life = &mut self.lives[job];
        if life.open_since.take().is_some() && std::mem::take(&mut life.reads) {
            self.sweep
                .set(self.now, Meter::JobRead(job), Count::Whole(0));
        }
        self.placed.remove(&job);
        self.lives[job].idle = Some(doing.clone());
        // A plan lets it fill in where it was not placed.
        if self.lives[job].has_none() {
            self.stage.set(job, doing);
        }
    }

    /// A CPU was seen to go to a job, or to none.
    fn switched(&mut self, switched: Switched) -> Result<(), Refused> {
        let Switched::To { cpu, task } = switched else {
            self.holders = Holders::default();
            for job in 0..self.lives.len() {
                if self.lives[job].has.take().is_some() {
                    let place = self.lives[job]
                        .place
                        .clone()
                        .filter(|_| self.placed.contains(&job));
                    let idle = self.lives[job].idle.clone().unwrap_or(Doing::Nothing);
                    self.stage.set(job, place.map_or(idle, Doing::Placed));
                }
            }
            return Ok(());
        };
        let to = task.map(|task| self.job(task)).transpose()?;
        if let Some(before) = self.holders.switched(self.now, switched) {
            let before = self.job(before)?;
            self.lives[before].has.get_or_insert_default().remove(&cpu);
            self.seen(before);
        }
        if let Some(job) = to {
            self.lives[job].has.get_or_insert_default().insert(cpu);
            self.seen(job);
        }
        Ok(())
    }

    /// A job is on the CPUs that it was seen to have.
    fn seen(&mut self, job: usize) {
        let life = &self.lives[job];
        let cpus: CpuSet = life.has.iter().flatten().copied().collect();
        if life.ended || cpus.is_empty() {
            // One that has a place and no CPU waits in the kernel, or sleeps.
            let idle = if self.placed.contains(&job) {
                Doing::Off
            } else {
                life.idle.clone().unwrap_or(Doing::Nothing)
            };
            return self
                .stage
                .set(job, if life.ended { Doing::Nothing } else { idle });
        }
        let (mode, purpose) = life
            .place
            .as_ref()
            .map_or((Mode::Exclusive, Purpose::Run), |place| {
                (place.mode, place.purpose)
            });
        // Whoever is seen on a CPU has it for itself.
        let mode = if mode == Mode::Shared {
            Mode::Exclusive
        } else {
            mode
        };
        self.stage.set(
            job,
            Doing::Placed(Place {
                cpus,
                mode,
                purpose,
            }),
        );
    }

    fn started(&mut self, job: usize) {
        let life = &mut self.lives[job];
        life.starts += 1;
        life.ended = false;
        let (starts, place) = (life.starts, life.place.clone());
        if starts == 1 {
            return self
                .stage
                .tell(job, happened("started", "start", Vec::new()));
        }
        let args = vec![("run".to_owned(), Arg::Whole(starts.into()))];
        self.stage
            .tell(job, happened("started again", "start", args));
        self.stage.split(job);
        // A place that is the same as before is not told again.
        if let Some(place) = place {
            self.place(job, place);
        }
    }

    fn ended(&mut self, job: usize, row: &EndedRow) {
        self.lives[job].ended = true;
        self.holders.ended(TaskId(job as u32));
        self.lives[job].has = None;
        self.stage.figures(job).end(row.progress_milli);
        if let Some(milli) = row.progress_milli {
            self.sweep
                .set(self.now, Meter::Progress(job), Count::Number(quanta(milli)));
        }
        self.leave(job, Doing::Nothing);
        let category = if row.exit == Some(0) && !row.timed_out {
            "end"
        } else {
            "failed"
        };
        let name = self.stage.name(job);
        let mut args = end_args(row);
        args.extend(
            self.recorded
                .get(name)
                .into_iter()
                .flat_map(|recorded| record_args(recorded)),
        );
        self.stage.tell(
            job,
            happened(&format!("ended: {}", visible(&row.text)), category, args),
        );
    }

    fn sampled(&mut self, at: Nanos, sample: &SampleRow) -> Result<(), Refused> {
        let job = self.job(sample.task)?;
        if at > self.now {
            // What was decided before the interval ended holds for it.
            self.stage.write(self.now, &mut self.tracks)?;
        }
        let lacks = std::mem::take(&mut self.lives[job].lacks);
        if !lacks.is_empty() {
            self.stage
                .tell(job, happened("not measured", "absent", lacks));
        }
        let life = &mut self.lives[job];
        if sample.interval == Nanos::ZERO {
            return Ok(());
        }
        let begin = at - sample.interval;
        if let Some(since) = &mut life.open_since {
            *since = (*since).max(at);
        }
        let counts = &sample.counts;
        let rate = |counter: Counter| bytes_per_s(counts[counter]?, sample.interval);
        let busy = sample.cpu_time.and_then(|time| {
            u64::try_from(u128::from(time.0) * 1_000_000 / u128::from(sample.interval.0)).ok()
        });
        let reads = rate(Counter::MmReads);
        life.reads = reads.is_some();
        self.sweep
            .interval(begin, at, [busy, reads, rate(Counter::MmWrites)]);
        let both = counts[Counter::Instructions].zip(counts[Counter::Cycles]);
        if let Some(value) = both.and_then(|(instructions, cycles)| ipc(instructions, cycles)) {
            self.sweep.set(begin, Meter::Ipc(job), Count::Number(value));
        }
        if let Some(reads) = reads {
            self.sweep
                .set(begin, Meter::JobRead(job), Count::Whole(reads));
        }
        if let Some(milli) = sample.progress_milli {
            self.sweep
                .set(at, Meter::Progress(job), Count::Number(quanta(milli)));
        }
        self.stage.figures(job).add(sample);
        Ok(())
    }

    fn decided(
        &mut self,
        triggers: &[Trigger],
        next_wake: Option<Nanos>,
        stood_in: bool,
        basis: &Basis,
    ) -> io::Result<()> {
        let stage = &self.stage;
        let known = self.lives.len();
        let name = |task: TaskId| {
            if (task.0 as usize) < known {
                stage.name(task.0 as usize).to_owned()
            } else {
                format!("job {task}")
            }
        };
        let reasons: Vec<String> = triggers
            .iter()
            .map(|trigger| trigger_text(trigger, name))
            .collect();
        let bytes = |rate: Rate| rate.0.saturating_mul(1_000 * LINE);
        let mut args = vec![text_arg("because", reasons.join(", "))];
        let numbers = [
            ("next_wake_ns", next_wake.map(|at| at.0)),
            ("target_bytes_per_s", basis.target.map(bytes)),
            ("predicted_bytes_per_s", basis.predicted.map(bytes)),
        ];
        args.extend(
            numbers
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), Arg::Whole(value?)))),
        );
        args.extend(basis.measures.map(|task| text_arg("measures", name(task))));
        let title = match (stood_in, reasons.first()) {
            (true, _) => ("round-robin stood in".to_owned(), "stood-in"),
            (false, Some(first)) => (first.clone(), "decision"),
            (false, None) => ("decision".to_owned(), "decision"),
        };
        self.tracks.event(
            self.now,
            DECISIONS,
            Phase::Instant,
            (&title.0, title.1),
            &args,
        )?;
        for (meter, rate) in [
            (Meter::Target, basis.target),
            (Meter::Predicted, basis.predicted),
        ] {
            if let Some(rate) = rate {
                self.sweep.set(self.now, meter, Count::Whole(bytes(rate)));
            }
        }
        // The end of an attempt that is made again has no row of its own.
        for trigger in triggers {
            let Trigger::Ended(task) = trigger else {
                continue;
            };
            let again = self
                .lives
                .get(task.0 as usize)
                .is_some_and(|life| life.starts > 0 && !life.ended);
            if again {
                let job = task.0 as usize;
                self.leave(job, Doing::Queued);
                self.stage
                    .tell(job, happened("attempt ended", "failed", Vec::new()));
            }
        }
        Ok(())
    }
}

fn text_arg(name: &str, text: String) -> (String, Arg) {
    (name.to_owned(), Arg::Text(text))
}

fn happened(name: &str, category: &'static str, args: Args) -> Happened {
    Happened {
        name: name.to_owned(),
        category,
        args,
    }
}

/// What the header tells of the run.
fn run_args(header: &SeriesHeader) -> Args {
    let mut args = vec![
        text_arg("policy", visible(&header.policy)),
        text_arg("machine", visible(&header.machine.name)),
        text_arg(
            "backend",
            serde_json::to_value(header.backend).map_or_else(|_| String::new(), plain),
        ),
        ("seed".to_owned(), Arg::Whole(header.seed)),
        ("quantum_ns".to_owned(), Arg::Whole(header.quantum_ns.0)),
        text_arg("cosched_version", visible(&header.cosched_version)),
    ];
    let told = [
        ("run_id", &header.run_id),
        ("started_at", &header.started_at),
    ];
    args.extend(
        told.into_iter()
            .filter_map(|(name, value)| Some(text_arg(name, visible(value.as_deref()?)))),
    );
    args
}

fn plain(value: serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// What the row of a job's end tells; what is absent is left out.
fn end_args(row: &EndedRow) -> Args {
    let mut args = Args::new();
    args.extend(
        row.exit
            .map(|exit| ("exit".to_owned(), Arg::Signed(exit.into()))),
    );
    args.push(("timed_out".to_owned(), Arg::Flag(row.timed_out)));
    let whole = [
        ("max_rss_bytes", row.max_rss),
        ("user_ns", row.user_time.map(|time| time.0)),
        ("system_ns", row.system_time.map(|time| time.0)),
        ("read_bytes", row.read_bytes),
        ("written_bytes", row.written_bytes),
    ];
    args.extend(
        whole
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), Arg::Whole(value?)))),
    );
    args.extend(
        row.progress_milli
            .map(|milli| ("progress_quanta".to_owned(), Arg::Number(quanta(milli)))),
    );
    args
}

/// What only the record knows of a job; what is absent is left out.
fn record_args(job: &Job) -> Args {
    let numbers = [
        ("slowdown", job.slowdown),
        ("slowdown_estimate", job.slowdown_estimate),
        ("solo_s", job.solo_s),
        ("turnaround_s", job.turnaround_s()),
        ("waited_max_s", job.waited_max_s),
    ];
    numbers
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Arg::Number(value?))))
        .collect()
}
