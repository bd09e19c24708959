//! Quanta of low contention, in which a task shows its solo IPC (Perf&Fair, section 5.1 and Algorithm 1, lines 2-9).
//!
//! The task whose estimate expired longest ago gets a whole core. Only light tasks, which put little load on the shared
//! cache and memory, run beside it; the other CPUs idle. If it is light itself, other light tasks whose estimate is at
//! least half expired get a whole core each as well.
//!
//! Ours: each task runs one ordinary quantum first, to show whether it is light or heavy; nothing is estimated while
//! all tasks fit on the machine at once, as then no task has to wait; with several memory domains one task is estimated
//! in each; and, unless `as=paper`, the share of time for estimation is bounded.

use super::prelude::*;
use crate::units::{Absence, Rate, Reading};
use std::cmp::Reverse;

pub(super) const VALID_QUANTA: ParamSpec = number(
    "valid_quanta",
    40.0,
    1.0,
    1e6,
    "executed quanta for which a solo IPC estimate is valid; 40 (8 s) in Perf&Fair",
);
pub(super) const LIGHT_LLC: ParamSpec = number(
    "light_llc_trans_per_us",
    19.0,
    0.0,
    1e6,
    "most accesses to the last-level cache of a light job, per microsecond; 19 on the Perf&Fair paper's machine",
);
pub(super) const LIGHT_MM: ParamSpec = number(
    "light_mm_trans_per_us",
    3.5,
    0.0,
    1e6,
    "most reads from memory of a light job, per microsecond; 3.5 on the Perf&Fair paper's machine",
);
pub(super) const SHARE_MAX: ParamSpec = number(
    "estimation_share_max",
    0.25,
    0.0,
    1.0,
    "greatest share of the time that goes into estimation quanta",
);
pub(super) const RENEWAL_SHARE_MAX: ParamSpec = number(
    "renewal_share_max",
    0.05,
    0.0,
    1.0,
    "the same, while every job that can be estimated has an estimate, and only expired ones are renewed",
);

/// A policy that measures tasks alone, and decides by their progress between measurements. `length` is the length of an
/// estimation quantum.
pub(super) fn estimating(
    params: &Params,
    length: Nanos,
    decide: impl Fn(Round<'_>, Nanos) -> Decision + 'static,
) -> Box<dyn Policy> {
    Box::new(Estimating {
        is_as_paper: params.word("as") == "paper",
        quantum: Nanos::from_s(params.number("quantum_s")),
        estimation: Estimation {
            length,
            valid_quanta: params.number("valid_quanta") as u32,
            light_llc: Rate::from_per_us(params.number("light_llc_trans_per_us")),
            light_mm: Rate::from_per_us(params.number("light_mm_trans_per_us")),
            share_max: params.number("estimation_share_max"),
            renewal_share_max: params.number("renewal_share_max"),
        },
        decide,
        state: State::default(),
    })
}

struct Estimating<F> {
    /// No task is preferred because it would end last, which is ours.
    is_as_paper: bool,
    quantum: Nanos,
    estimation: Estimation,
    decide: F,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    estimation: EstimationState,
}

impl<F: Fn(Round<'_>, Nanos) -> Decision> Policy for Estimating<F> {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = if self.is_as_paper {
            Round::keeping(snap, |_| false)
        } else {
            Round::new(snap)
        };
        match self.estimation.plan(&mut self.state.estimation, &mut round) {
            Some((until, basis)) => self.estimation.finish(round, until, basis),
            None => {
                let end = self.state.quantum.of_round(&round, self.quantum);
                (self.decide)(round, end)
            }
        }
    }

    state_is_a_field!();
}

struct Estimation {
    length: Nanos,
    valid_quanta: u32,
    light_llc: Rate,
    light_mm: Rate,
    share_max: f64,
    renewal_share_max: f64,
}

/// The state kept between decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct EstimationState {
    /// Time spent on estimation quanta so far.
    spent: Nanos,
    /// The part of it that renewed estimates.
    #[serde(default)]
    renewed: Nanos,
    /// Start of the first quantum.
    started: Option<Nanos>,
    /// End of the present estimation quantum.
    until: Option<Nanos>,
}

/// Whether a task is light or heavy on the cache and the memory, by its last executed quantum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Light,
    Heavy {
        llc: Reading<Rate>,
        mm: Reading<Rate>,
    },
    Unknown,
}

impl Estimation {
    fn load(&self, task: &TaskView) -> Load {
        let (llc, mm) = (task.estimates.llc, task.estimates.mm_reads);
        // One event that can't be counted is no evidence against the task; both together would be.
        if !llc.is_value() && !mm.is_value() {
            Load::Unknown
        } else if llc.value().is_none_or(|rate| rate <= self.light_llc)
            && mm.value().is_none_or(|rate| rate <= self.light_mm)
        {
            Load::Light
        } else {
            Load::Heavy { llc, mm }
        }
    }

    fn is_light(&self, task: &TaskView) -> bool {
        self.load(task) == Load::Light
    }

    /// Executed quanta since the task's estimate, if it can be estimated at all.
    fn age(&self, task: &TaskView) -> Option<u32> {
        if task.estimates.executed == 0 || !task.estimates.ipc.is_value() {
            return None;
        }
        match task.estimates.solo_ipc {
            Reading::Value(_) => Some(task.estimates.solo_age),
            Reading::Absent(Absence::NoSoloEstimate) => Some(u32::MAX),
            Reading::Absent(_) => None,
        }
    }

    /// Whether a task was never measured.
    fn is_first(&self, task: &TaskView) -> bool {
        self.age(task) == Some(u32::MAX)
    }

    /// Chooses the tasks to measure, if this round belongs to an estimation quantum. Returns its end, and the first of
    /// them.
    fn plan(&self, state: &mut EstimationState, round: &mut Round<'_>) -> Option<(Nanos, Basis)> {
        let now = round.snap.now;
        let started = *state.started.get_or_insert(now);
        if !round.full {
            // A task that ended left CPUs free. While the measurement goes on, only light tasks may fill them.
            let until = state.until.filter(|&until| until > now)?;
            let goes_on = round.snap.tasks.iter().any(|task| is_measured_alone(task));
            return goes_on.then(|| (until, Basis::default()));
        }
        state.until = None;
        let until = now + self.length;
        let elapsed = until - started;
        let share = (state.spent + self.length).share_of(elapsed);
        let is_spent = share > self.share_max && state.spent > Nanos::ZERO;
        if is_spent || self.share_max == 0.0 || !self.may_measure(round) {
            return None;
        }
        // An old estimate is better than none, so renewals get less time.
        let share = (state.renewed + self.length).share_of(elapsed);
        let may_renew = share <= self.renewal_share_max && self.renewal_share_max > 0.0;
        let measured = self.choose_in_each_domain(round, may_renew);
        let first = round.task(*measured.first()?);
        if measured.iter().all(|&ix| self.is_light(round.task(ix))) {
            self.choose_more(round);
        }
        state.spent += self.length;
        if measured.iter().all(|&ix| !self.is_first(round.task(ix))) {
            state.renewed += self.length;
        }
        state.until = Some(until);
        let basis = Basis {
            measures: Some(first.id),
            ..Basis::default()
        };
        Some((until, basis))
    }

    /// Whether a measurement is useful, and disturbs no task.
    fn may_measure(&self, round: &Round<'_>) -> bool {
        let is_unknown = |ix: &u32| round.task(*ix).estimates.executed == 0;
        // A task that can't be stopped would go on beside the measurement.
        let disturbs = |task: &TaskView| task.stays(true) && !self.is_light(task);
        !round.all_fit()
            && round.overdue() == 0
            && !round.order.iter().any(is_unknown)
            && !round.snap.tasks.iter().any(|task| disturbs(task))
    }

    /// Chooses the task whose estimate expired longest ago for a whole core, in each memory domain of those whose memory
    /// is there. Among tasks never estimated, the one that has run most comes first, then the longest waiting.
    fn choose_in_each_domain(&self, round: &mut Round<'_>, may_renew: bool) -> Vec<u32> {
        let mut expired: Vec<u32> = round.order.clone();
        expired.retain(|&ix| {
            let task = round.task(ix);
            self.age(task) >= Some(self.valid_quanta) && (may_renew || self.is_first(task))
        });
        expired
            .sort_by_key(|&ix| Reverse((self.age(round.task(ix)), round.task(ix).estimates.ran)));
        let mut measured = Vec::new();
        let machine = &*round.snap.machine;
        for domain in 0..machine.memory_domains.len() {
            let mut at_home = expired.iter().copied();
            // A task that can't get whole cores, due to its mask or size, must not block the measurement of others.
            measured.extend(at_home.find(|&ix| {
                let home = round.task(ix).home(machine).unwrap_or(0);
                home == domain && choose_alone(round, ix).is_ok()
            }));
        }
        measured
    }

    /// Chooses other light tasks whose estimate is at least half expired for a whole core each.
    fn choose_more(&self, round: &mut Round<'_>) {
        let soon = self.valid_quanta.div_ceil(2);
        let mut more: Vec<u32> = round.order.clone();
        more.retain(|&ix| {
            let task = round.task(ix);
            round.is_open(ix) && self.age(task) >= Some(soon) && self.is_light(task)
        });
        more.sort_by_key(|&ix| Reverse(self.age(round.task(ix))));
        for ix in more {
            if choose_alone(round, ix).is_err() && round.left() == 0 {
                break;
            }
        }
    }

    /// Fills the CPUs left with light tasks, the least progress first.
    fn finish(&self, mut round: Round<'_>, until: Nanos, basis: Basis) -> Decision {
        let snap = round.snap;
        round.consider_sleepers();
        let mut light: Vec<u32> = round.order.clone();
        light.retain(|&ix| round.is_open(ix) && self.is_light(round.task(ix)));
        let progress = weighted_progress(snap, progress);
        light.sort_by(|&a, &b| progress[a as usize].total_cmp(&progress[b as usize]));
        for ix in light {
            if round.left() == 0 {
                break;
            }
            if let Err(reason) = round.choose(ix, Purpose::LowContention) {
                round.wait(ix, reason);
            }
        }
        round.finish(until, basis, |ix, ahead| {
            match self.load(&snap.tasks[ix as usize]) {
                Load::Heavy { llc, mm } => WaitReason::Heavy {
                    llc,
                    llc_limit: self.light_llc,
                    mm,
                    mm_limit: self.light_mm,
                },
                Load::Unknown => WaitReason::Unmeasured,
                Load::Light => WaitReason::Order { ahead },
            }
        })
    }
}

/// The task's progress in quanta; 0 before its first.
pub(super) fn progress(task: &TaskView) -> f64 {
    task.estimates.progress.value().unwrap_or(0.0)
}

/// The estimator of progress named by the parameter `estimates`.
pub(super) fn progress_by(estimates: &str) -> fn(&TaskView) -> f64 {
    if estimates == "learnt" {
        learnt_progress
    } else {
        progress
    }
}

/// The task's progress in quanta by the learnt model, else by the paper's estimator.
pub(super) fn learnt_progress(task: &TaskView) -> f64 {
    let learnt = task.estimates.learnt.as_ref().value();
    learnt.map_or_else(|| progress(task), |learnt| learnt.progress)
}

/// Chooses a task for a whole core where its memory is.
fn choose_alone(round: &mut Round<'_>, ix: u32) -> Result<(), WaitReason> {
    let machine = &round.snap.machine;
    let home = round.task(ix).home(machine);
    let is_at_home = |core: usize| {
        let first = machine.cores[core].first().and_then(|cpu| machine.cpu(cpu));
        home.is_none() || first.map(|cpu| cpu.memory_domain) == home
    };
    round.choose_whole_core(ix, is_at_home, Purpose::MeasureAlone)
}

fn is_measured_alone(task: &TaskView) -> bool {
    let running = task.running.as_ref();
    running.is_some_and(|running| running.purpose == Purpose::MeasureAlone)
}
