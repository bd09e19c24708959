//! Runs of recorded programs, and what the estimators thought in them.

use super::series::{CorunProgram, THREADS};
use crate::backend::{self, CpuTime, Replay, Tape};
use crate::recording::Recording;
use cosched_core::{
    Absence, Counter, EarlierPhases, Estimates, Fact, InitialProgress, Machine, Nanos, Params,
    Policy, Purpose, Reading, Recorder, RunConfig, Sample, SoloTrace, TaskEstimator, TaskId,
    TaskResult, TaskSpec, TrafficRates, find_policy, run,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size of the last-level cache of a Xeon E5-2683 v4.
const LLC_BYTES: u64 = 40 << 20;

/// The unit of progress: the quantum of the policies.
const QUANTUM: Nanos = Nanos::from_ms(200);

/// The progress of a program at an instant, in seconds alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) is: f64,
    pub(super) thought: f64,
}

/// What an estimator made of a run of a program.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// Seconds alone of all its work: as recorded, and as estimated.
    pub(super) alone_s: f64,
    pub(super) thought_s: Result<f64, Absence>,
    /// While it ran.
    pub(super) marks: Vec<Mark>,
    /// The relative standard error of a solo speed that the estimator states itself, as a mean over the run.
    pub(super) doubt: Option<f64>,
}

impl Judged {
    /// The estimated slowdown relative to the true one, less 1.
    pub(super) fn error(&self) -> Result<f64, Absence> {
        Ok(self.alone_s / self.thought_s? - 1.0)
    }

    /// The greatest error of the progress in the run, as a share of all work; `None` if it is not known meanwhile.
    pub(super) fn worst_mark(&self) -> Option<f64> {
        let errors = self
            .marks
            .iter()
            .map(|mark| (mark.thought - mark.is).abs() / self.alone_s);
        errors.reduce(f64::max)
    }
}

/// What was recorded of one program in a run: its intervals, and what the learner thought after each.
#[derive(Default)]
struct Notes {
    samples: Vec<Sample>,
    /// Progress after each interval by the learner, and by Eq. 1.
    learnt: Fed,
    by_ratio: Fed,
    instructions: f64,
    result: Option<TaskResult>,
}

#[derive(Default)]
struct Notebook {
    tasks: BTreeMap<TaskId, Notes>,
}

impl Notebook {
    fn note(&mut self, samples: &[Sample]) {
        for sample in samples {
            let notes = self.tasks.entry(sample.task).or_default();
            notes.instructions += instructions_of(sample);
            notes.samples.push(sample.clone());
        }
    }
}

impl Recorder for Notebook {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Decided(record) => {
                self.note(record.samples);
                for task in &record.snapshot.tasks {
                    if !record.samples.iter().any(|sample| sample.task == task.id) {
                        continue;
                    }
                    let notes = self.tasks.entry(task.id).or_default();
                    let learnt = task.estimates.learnt.as_ref();
                    let progress = learnt.map(|learnt| learnt.progress);
                    notes.learnt.add(notes.instructions, progress);
                    let doubt = learnt.value().map(|learnt| learnt.error);
                    notes.learnt.doubts.extend(doubt);
                    notes
                        .by_ratio
                        .add(notes.instructions, task.estimates.progress);
                }
            }
            Fact::Sampled(samples) => {
                self.note(samples);
            }
            Fact::Ended(result) => {
                let notes = self.tasks.entry(result.spec.id).or_default();
                notes.result = Some(result.clone());
            }
            _ => {}
        }
    }
}

/// The run of one program among others.
pub(super) struct ProgramRun {
    notes: Notes,
    result: TaskResult,
}

/// The socket on which the programs of a co-run ran.
fn socket() -> Machine {
    let mut machine = Machine::uniform("socket 1 of two Xeon E5-2683 v4", 2 * THREADS, 1);
    machine.llc_bytes = Reading::Value(LLC_BYTES);
    machine
}

/// Runs recorded programs to their end under a policy. Each may know what an earlier run of it learnt.
pub(super) fn replay(
    tapes: Vec<Tape>,
    earlier: &[Option<Arc<EarlierPhases>>],
    cpu_time: CpuTime,
    policy: &mut dyn Policy,
) -> Result<Vec<ProgramRun>, String> {
    let mut specs = Vec::new();
    for (id, earlier) in (0..).zip(earlier) {
        specs.push(TaskSpec {
            cpus: THREADS,
            earlier: earlier.clone(),
            ..TaskSpec::new(id, &format!("program {id}"))
        });
    }
    let config = RunConfig {
        quantum: QUANTUM,
        ..RunConfig::default()
    };
    let mut notebook = Notebook::default();
    let mut backend = Replay::new(socket(), tapes, cpu_time);
    run(&mut backend, policy, &mut notebook, specs, &config).map_err(|why| why.to_string())?;
    let runs = notebook.tasks.into_values().map(|mut notes| {
        let result = notes.result.take().ok_or("a program did not end")?;
        Ok(ProgramRun { notes, result })
    });
    runs.collect()
}

/// The policy `even` as it is by default.
pub(super) fn even() -> Result<Box<dyn Policy>, String> {
    let entry = find_policy("even").ok_or("there is no policy `even`")?;
    let params = Params::resolve(entry.name, entry.params, &[]).map_err(|why| why.to_string())?;
    Ok((entry.build)(&params))
}

impl ProgramRun {
    /// What the learner keeps for a later run; `None` if it measured nothing.
    pub(super) fn kept(&self) -> Option<Arc<EarlierPhases>> {
        self.result.learnt.clone()
    }

    /// The learner of this run.
    pub(super) fn learner(&self, program: &CorunProgram) -> Judged {
        self.judged(program, self.result.progress_learnt, &self.notes.learnt)
    }

    /// Eq. 1 of Perf&Fair in this run, which it decides by.
    pub(super) fn ratio(&self, program: &CorunProgram) -> Judged {
        let last = self.notes.by_ratio.last;
        self.judged(program, last, &self.notes.by_ratio)
    }

    /// The progress in the record of this run. It is known only at the end.
    pub(super) fn record(&self, program: &CorunProgram) -> Judged {
        self.judged(program, self.result.progress, &Fed::default())
    }

    fn judged(&self, program: &CorunProgram, quanta: Reading<f64>, fed: &Fed) -> Judged {
        let total = program.beside.total().instructions;
        let marks = fed.marks.iter().map(|&(instructions, quanta)| Mark {
            is: program.alone.time_of_share(instructions / total),
            thought: quanta * QUANTUM.as_s(),
        });
        Judged {
            alone_s: program.alone.length_s(),
            thought_s: match quanta {
                Reading::Value(quanta) => Ok(quanta * QUANTUM.as_s()),
                Reading::Absent(why) => Err(why),
            },
            marks: marks.collect(),
            doubt: fed.doubt(),
        }
    }

    /// Progress in this run against the trace of the run alone.
    pub(super) fn with_trace(&self, program: &CorunProgram) -> Judged {
        let mut spec = spec(program);
        spec.solo.trace = trace_of(&program.alone);
        let mut estimator = TaskEstimator::new(&spec, QUANTUM, InitialProgress::default());
        let mut estimates = Estimates::default();
        let fed = self.feed(&mut estimator, &mut estimates, |of| of.trace_progress);
        let earned = Reading::from_option(estimator.earned_by_trace(), Absence::NoSoloTrace);
        self.judged(program, earned, &fed)
    }

    /// Progress in this run by Eq. 1 of Perf&Fair with the mean speed of the run alone: that is one measurement before this run.
    pub(super) fn with_mean_speed(&self, program: &CorunProgram, cpu_time: CpuTime) -> Judged {
        let mut estimator = TaskEstimator::new(&spec(program), QUANTUM, InitialProgress::default());
        let mut estimates = Estimates::default();
        if let Some(first) = self.notes.samples.first() {
            let measurement = whole_run_alone(first, &program.alone, cpu_time);
            estimator.update(&measurement, 1.0, &mut estimates);
        }
        let before = estimates.progress;
        let fed = self.feed(&mut estimator, &mut estimates, |of| {
            difference(of.progress, before)
        });
        self.judged(program, fed.last, &fed)
    }

    /// Gives an estimator the intervals of this run, and returns the progress after each.
    fn feed(
        &self,
        estimator: &mut TaskEstimator,
        estimates: &mut Estimates,
        progress: impl Fn(&Estimates) -> Reading<f64>,
    ) -> Fed {
        let mut fed = Fed::default();
        let mut instructions = 0.0;
        for sample in &self.notes.samples {
            estimator.update(sample, 1.0, estimates);
            instructions += instructions_of(sample);
            fed.add(instructions, progress(estimates));
        }
        fed
    }
}

fn instructions_of(sample: &Sample) -> f64 {
    let instructions = sample.counts[Counter::Instructions].value();
    instructions.unwrap_or(0) as f64
}

fn spec(program: &CorunProgram) -> TaskSpec {
    TaskSpec {
        cpus: THREADS,
        ..TaskSpec::new(0, &program.name)
    }
}

/// Progress in quanta after each interval.
struct Fed {
    /// Instructions so far, and progress.
    marks: Vec<(f64, f64)>,
    /// Stated standard errors, if the estimator states them.
    doubts: Vec<f64>,
    last: Reading<f64>,
}

impl Default for Fed {
    fn default() -> Fed {
        Fed {
            marks: Vec::new(),
            doubts: Vec::new(),
            last: Reading::Absent(Absence::NotYetMeasured),
        }
    }
}

impl Fed {
    fn add(&mut self, instructions: f64, progress: Reading<f64>) {
        self.last = progress;
        if let Reading::Value(quanta) = progress {
            self.marks.push((instructions, quanta));
        }
    }

    fn doubt(&self) -> Option<f64> {
        let count = self.doubts.len() as f64;
        (count > 0.0).then(|| self.doubts.iter().sum::<f64>() / count)
    }
}

fn difference(now: Reading<f64>, before: Reading<f64>) -> Reading<f64> {
    now.and_then(|now| before.map(|before| now - before))
}

/// The trace of a run alone. Intervals in which nothing was done have no speed, so they belong to the next ones.
fn trace_of(alone: &Recording) -> Option<Arc<SoloTrace>> {
    let mut points = Vec::new();
    let (mut instructions, mut cycles) = (0, 0.0);
    for (_, counted) in &alone.points()[1..] {
        let done = counted.instructions as u64;
        let more = (done - instructions) as f64;
        if more > 0.0 && counted.cycles > cycles {
            points.push((done, more / (counted.cycles - cycles)));
            (instructions, cycles) = (done, counted.cycles);
        }
    }
    SoloTrace::new(points).ok().map(Arc::new)
}

/// A sample of the whole run alone, shaped like another sample of the program.
fn whole_run_alone(like: &Sample, alone: &Recording, cpu_time: CpuTime) -> Sample {
    let mut sample = like.clone();
    let total = alone.total();
    sample.interval = Nanos::from_s(alone.length_s());
    sample.planned = sample.interval;
    sample.purpose = Purpose::MeasureAlone;
    sample.whole_core = true;
    sample.disturbed = false;
    sample.traffic = TrafficRates::absent(Absence::NotRequested);
    sample.counts = backend::counts(total);
    sample.cpu_time = backend::cpu_time(cpu_time, total);
    sample
}
