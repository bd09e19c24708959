//! Short measurements: a job runs alone behind its last-level cache.
//!
//! Without a measurement, a job's own work in the core can't be told from its slowdown by siblings. One measurement of
//! a phase settles most of that. In its first step the other jobs still stop, and the clock rises. It ends with the first step after
//! the second in which the job was as fast as in the step before, and read as much. Until then its cache fills, and the time for
//! that is in between.
//!
//! No model sees all that jobs on different cores cost each other: they share a cache, and the clock may fall as cores get busy.
//! So no two jobs behind one cache are measured at once.

use super::is_predictable;
use crate::estimate::{NOISE, ROUGH};
use crate::model::contention::{Contention, PlacedJob, PredictedSpeed, SpeedPrediction};
use crate::policy::prelude::*;
use crate::snapshot::{Learnt, Measured};
use crate::topology::Cpu;
use std::collections::BTreeSet;

/// Least length of the step in which the cache fills, and length of the others, at least three of them.
const LEAST_FILLING: Nanos = Nanos::from_ms(15);
const COUNTED: Nanos = Nanos::from_ms(3);
const STEPS: u32 = 3;
/// The share of the time that measurements may take, and the share up to which old ones are renewed. They pay for all later
/// quanta, so at the start they may take more: as if the run had lasted for so many quanta more. With 20, the last of 24 short
/// jobs were measured after half of the batch, or never.
const SHARE: f64 = 2.0 * NOISE;
const RENEWED: f64 = 0.5 * NOISE;
const LEAD: f64 = 50.0;
/// The cache of a job still fills if it got so much faster in a step, or read so much less. Then it goes on in a step in which
/// the cache fills, and in steps of twice the length of the last, up to so many steps.
const WARMER: f64 = 1.0 + NOISE;
const FULLER: f64 = 1.0 + ROUGH;
/// So many lines an instruction less save it about 0.01 cycles.
const FEW: f64 = 1e-4;
const MOST_STEPS: u32 = 7;
/// Bytes per ns with which a cache fills. While it fills, a job reads more than alone, and would seem slower alone than it
/// is. 12 MB fill within `LEAST_FILLING`, which was enough on simulated machines with such caches.
const FILL: f64 = 0.85;

/// The state kept between decisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MeasuringState {
    started: Option<Nanos>,
    /// Time spent on measurements.
    spent: Nanos,
    /// The jobs being measured, each behind a last-level cache of its own.
    measured: Vec<TaskId>,
    /// Those that were measured, though perhaps in vain, since all that needed it had their turn.
    had_turn: BTreeSet<TaskId>,
    /// The speed of each in the last step.
    speeds: Vec<Speed>,
    /// Steps of this measurement so far.
    steps: u32,
    /// End of the present step.
    until: Nanos,
}

impl MeasuringState {
    /// Chooses the tasks of the next step of a measurement, if any. Returns its end, and the first measured task.
    /// `measures`: whether one may begin or go on.
    pub(super) fn plan(
        &mut self,
        round: &mut Round<'_>,
        measures: bool,
        quantum: Nanos,
    ) -> Option<(Nanos, TaskId)> {
        let now = round.snap.now;
        let started = *self.started.get_or_insert(now);
        if !round.full {
            // A task that starts on a free CPU would disturb the present step.
            let goes_on = now < self.until && round.overdue() == 0;
            let first = self.measured.iter().find(|&&id| is_running(round, id));
            return first.filter(|_| goes_on).map(|&first| (self.until, first));
        }
        let last = std::mem::take(&mut self.measured);
        if !measures || !may_measure(round) {
            return None;
        }
        if last.is_empty() {
            self.steps = 0;
            self.begin(round, now - started, quantum)?;
        } else if self.steps < STEPS || self.warms(round, &last) {
            self.go_on(round, &last);
        }
        self.speeds = speeds_of(round, &last);
        let first = *self.measured.first()?;
        let step = match self.steps {
            0..STEPS => COUNTED,
            STEPS => filling(round, quantum),
            more => Nanos(COUNTED.0 << (more - STEPS - 1)).min(quantum),
        };
        self.steps += 1;
        self.spent += step;
        self.until = now + step;
        Some((self.until, first))
    }

    /// Begins a measurement of the jobs that need it most, in a run of this age.
    fn begin(&mut self, round: &mut Round<'_>, age: Nanos, quantum: Nanos) -> Option<()> {
        let lengthened = age.as_s() + LEAD * quantum.as_s();
        let allowed = REASONS
            .iter()
            .filter(|reason| self.spent <= Nanos::from_s(reason.share * lengthened));
        let turns = allowed.map(|reason| reason.needy(round, &self.had_turn));
        let group = turns
            .map(|needy| Group::of(round, &needy))
            .find(|group| !group.is_empty());
        let Some(group) = group else {
            // Without time for measurements nobody was passed over.
            if self.spent <= Nanos::from_s(SHARE * lengthened) {
                self.had_turn.clear();
            }
            return None;
        };
        for (ix, core) in group {
            self.had_turn.insert(round.task(ix).id);
            self.measure(round, ix, core, Purpose::WarmUp);
        }
        Some(())
    }

    /// Whether the cache of a job filled from the last step but one to the last. After the step in which it fills, one counts.
    fn warms(&self, round: &Round<'_>, last: &[TaskId]) -> bool {
        let speeds = speeds_of(round, last);
        let mut pairs = self.speeds.iter().zip(&speeds);
        self.steps < MOST_STEPS
            && self.speeds.len() == speeds.len()
            && (self.steps == STEPS + 1 || pairs.any(|(before, now)| now.is_warmer_than(before)))
    }

    /// Measures the same jobs on the same cores.
    fn go_on(&mut self, round: &mut Round<'_>, last: &[TaskId]) {
        for id in last {
            let Ok(ix) = round.snap.tasks.binary_search_by_key(id, |task| task.id) else {
                continue;
            };
            let core = last_core(round, ix as u32);
            if let Some(core) = core.filter(|_| round.open()[ix]) {
                self.measure(round, ix as u32, core, Purpose::MeasureAlone);
            }
        }
    }

    fn measure(&mut self, round: &mut Round<'_>, ix: u32, core: usize, purpose: Purpose) {
        if round
            .choose_whole_core(ix, |one| one == core, purpose)
            .is_ok()
        {
            self.measured.push(round.task(ix).id);
        }
    }
}

/// A reason for a measurement.
struct Reason {
    /// Whether a task has it.
    holds: fn(&Learnt, &Contention) -> bool,
    /// The share of the time that measurements may have taken before one for this reason.
    share: f64,
}

/// In the order of their need.
const REASONS: [Reason; 3] = [
    Reason {
        holds: |learnt, shared| learnt.measured == Measured::Never || is_alike(learnt, shared),
        share: SHARE,
    },
    Reason {
        holds: |learnt, _| matches!(learnt.measured, Measured::OtherPhase | Measured::EarlierRun),
        share: SHARE,
    },
    Reason {
        holds: |learnt, shared| learnt.error > NOISE && is_heavy(learnt, shared),
        share: RENEWED,
    },
];

/// Whether only another job was measured that seems to do the same kind of work. Jobs that wait much for lines do not agree
/// in their accesses by chance; others may.
fn is_alike(learnt: &Learnt, shared: &Contention) -> bool {
    learnt.measured == Measured::Alike && !is_heavy(learnt, shared)
}

/// Whether a job waits long for lines, so that its time alone is most uncertain.
fn is_heavy(learnt: &Learnt, shared: &Contention) -> bool {
    let asks = &learnt.asks;
    asks.stall(shared, asks.reads, 1.0) > HEAVY * learnt.solo_cpi
}

/// Share of waiting for lines above which a job waits long.
const HEAVY: f64 = 2.0 * ROUGH;

impl Reason {
    /// The jobs that may be measured for this reason and had no turn yet, those that need it most first.
    fn needy(&self, round: &Round<'_>, had_turn: &BTreeSet<TaskId>) -> Vec<u32> {
        let mut needy: Vec<u32> = round.order.clone();
        needy.retain(|&ix| {
            let task = round.task(ix);
            !had_turn.contains(&task.id) && is_predictable(task) && self.need(round, ix) > 0.0
        });
        needy.sort_by(|&a, &b| self.need(round, b).total_cmp(&self.need(round, a)));
        needy
    }

    /// How much a task needs it: the relative error of its solo cycles per instruction; 0 if it does not.
    fn need(&self, round: &Round<'_>, ix: u32) -> f64 {
        match learnt(round.task(ix)) {
            Some(learnt) if (self.holds)(learnt, &round.snap.contention) => learnt.error.max(NOISE),
            _ => 0.0,
        }
    }
}

/// Time in which a cache of this machine fills; at most a quantum.
fn filling(round: &Round<'_>, quantum: Nanos) -> Nanos {
    let cache = round.snap.machine.llc_bytes.value().unwrap_or(0);
    let fills = Nanos((cache as f64 / FILL) as u64);
    fills.min(quantum).max(LEAST_FILLING)
}

fn learnt(task: &TaskView) -> Option<&Learnt> {
    task.estimates.learnt.as_ref().value()
}

/// How fast a job was in a step; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Speed {
    /// Per ns.
    instructions: f64,
    /// Lines read from memory, per instruction.
    reads: f64,
}

impl Speed {
    fn is_warmer_than(&self, before: &Speed) -> bool {
        self.instructions > before.instructions * WARMER || before.reads > self.reads * FULLER + FEW
    }
}

/// The speeds of these tasks in their last intervals.
fn speeds_of(round: &Round<'_>, tasks: &[TaskId]) -> Vec<Speed> {
    let mut speeds = Vec::with_capacity(tasks.len());
    for id in tasks {
        let estimates = round.snap.task(*id).map(|task| &task.estimates);
        let instructions = estimates.and_then(|of| of.cpu_instructions.value());
        let reads = estimates.and_then(|of| of.cpu_mm_reads.value());
        let instructions = instructions.unwrap_or(0) as f64;
        let reads = reads.map_or(0, |reads| reads.0) as f64;
        speeds.push(Speed {
            instructions,
            reads: reads / instructions.max(1.0),
        });
    }
    speeds
}

fn is_running(round: &Round<'_>, id: TaskId) -> bool {
    let task = round.snap.task(id);
    task.is_some_and(|task| task.running.is_some())
}

/// Whether a measurement may run: no task is overdue or fixed, which would go on beside it.
fn may_measure(round: &Round<'_>) -> bool {
    round.overdue() == 0 && !round.snap.tasks.iter().any(|task| task.is_fixed())
}

/// The core of a task's last run.
fn last_core(round: &Round<'_>, ix: u32) -> Option<usize> {
    let cpu = round.snap.machine.cpu(round.task(ix).last_cpus.first()?)?;
    Some(cpu.core)
}

/// Jobs measured together.
struct Group<'a> {
    round: &'a Round<'a>,
    /// Each job and its core, and its seat.
    jobs: Vec<(u32, usize)>,
    seats: Vec<PlacedJob>,
}

impl<'a> Group<'a> {
    /// The jobs to measure, out of those that need it, and the core of each. Skips jobs that would disturb each other.
    fn of(round: &'a Round<'a>, needy: &[u32]) -> Vec<(u32, usize)> {
        let mut group = Group {
            round,
            jobs: Vec::new(),
            seats: Vec::new(),
        };
        for &ix in needy.iter().take(2 * round.snap.machine.cores.len()) {
            group.add(ix);
        }
        group.jobs
    }

    /// Adds a job, which is predictable, unless there is no core for it, or one of the jobs would be disturbed.
    fn add(&mut self, ix: u32) {
        let Some(core) = self.core_for(ix) else {
            return;
        };
        let (Some(learnt), Some(cpu)) = (learnt(self.round.task(ix)), self.first_cpu(core)) else {
            return;
        };
        self.seats.push(PlacedJob {
            asks: *learnt.asks_on(cpu.core_type),
            core,
            llc: cpu.llc,
            domain: cpu.memory_domain,
            away: false,
        });
        if self.is_calm() {
            self.jobs.push((ix, core));
        } else {
            self.seats.pop();
        }
    }

    /// The core of a job's last run, else one of its type at the same cache, else any at its memory; `None` if no core may take
    /// it.
    fn core_for(&self, ix: u32) -> Option<usize> {
        let last = last_core(self.round, ix);
        let site = |core: usize| self.first_cpu(core).map(|cpu| (cpu.core_type, cpu.llc));
        let home = last.map(site);
        let free = (0..self.round.snap.machine.cores.len()).filter(|&core| self.is_free(core));
        let memory = self.round.task(ix).home(&self.round.snap.machine);
        let is_at_home = |core: &usize| {
            let cpu = self.first_cpu(*core);
            memory.is_none_or(|memory| cpu.is_some_and(|cpu| cpu.memory_domain == memory))
        };
        free.filter(is_at_home).min_by_key(|&core| {
            let is_elsewhere = home != Some(site(core));
            (last != Some(core), is_elsewhere, core)
        })
    }

    fn is_free(&self, core: usize) -> bool {
        let llc = self.first_cpu(core).map(|cpu| cpu.llc);
        self.seats.iter().all(|seat| Some(seat.llc) != llc)
    }

    fn first_cpu(&self, core: usize) -> Option<&'a Cpu> {
        let machine = &self.round.snap.machine;
        machine.cpu(machine.cores[core].first()?)
    }

    /// Whether no job is disturbed. A single job never is.
    fn is_calm(&self) -> bool {
        if self.seats.len() < 2 {
            return true;
        }
        let mut prediction = SpeedPrediction::default();
        prediction.make(&self.round.snap.contention, &self.seats);
        let mut all = self.seats.iter().zip(&prediction.jobs);
        !self.is_overloaded(&prediction) && all.all(|(seat, job)| !self.is_disturbed(seat, job))
    }

    /// Whether the jobs ask a memory for more than its limit, whatever latency is assumed. A job alone at the limit is
    /// not disturbed by that.
    fn is_overloaded(&self, prediction: &SpeedPrediction) -> bool {
        let most = self.round.snap.contention.memory.most;
        let limit = most.unwrap_or(f64::INFINITY) * (1.0 + ROUGH);
        let mut loads = vec![[0.0; 2]; prediction.latency.len()];
        for (seat, job) in self.seats.iter().zip(&prediction.jobs) {
            let [all, greatest] = &mut loads[seat.domain];
            *all += job.reads;
            *greatest = job.reads.max(*greatest);
        }
        loads
            .iter()
            .any(|[all, greatest]| *all > greatest.max(limit))
    }

    /// Whether a job is disturbed at the memory. It has its cache for itself.
    fn is_disturbed(&self, seat: &PlacedJob, job: &PredictedSpeed) -> bool {
        let solo = seat.asks.solo_cpi(&self.round.snap.contention);
        job.cpi > solo * (1.0 + ROUGH)
    }
}
