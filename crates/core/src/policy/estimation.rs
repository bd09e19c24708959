//! Quanta of low contention, in which a task shows what its IPC is when it is alone (Perf&Fair, section 5.1 and
//! Algorithm 1, lines 2-9).
//!
//! The task whose estimate expired longest ago gets a whole core; only light tasks, which put little load on the shared
//! cache and memory, run beside it, and CPUs that are left stay idle. When it is light itself, other light tasks whose
//! estimate is at least half expired get a whole core each as well.
//!
//! Ours: everyone runs one ordinary quantum first, so that light and heavy are known; nothing is estimated while all
//! tasks fit on the machine at once, since then nobody has to wait for anybody; and the share of time that goes into
//! estimation is bounded.

use super::Params;
use super::params::{ParamSpec, number};
use super::round::Round;
use crate::decision::{Basis, Decision, WaitReason};
use crate::placement::Purpose;
use crate::snapshot::TaskView;
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
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

/// Parameters of estimation.
pub(super) struct Estimation {
    length: Nanos,
    valid_quanta: u32,
    light_llc: Rate,
    light_mm: Rate,
    share_max: f64,
    renewal_share_max: f64,
}

/// What it remembers from decision to decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EstimationState {
    /// Time granted to estimation quanta so far.
    spent: Nanos,
    /// The part of it that renewed estimates.
    #[serde(default)]
    renewed: Nanos,
    /// Start of the first quantum.
    started: Option<Nanos>,
    /// An estimation quantum lasts until then.
    until: Option<Nanos>,
}

/// Light and heavy, by the last executed quantum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Light,
    Heavy {
        llc: Reading<Rate>,
        mm: Reading<Rate>,
    },
    Unknown,
}

impl Estimation {
    pub(super) fn new(params: &Params, length: Nanos) -> Estimation {
        Estimation {
            length,
            valid_quanta: params.number("valid_quanta") as u32,
            light_llc: Rate::from_per_us(params.number("light_llc_trans_per_us")),
            light_mm: Rate::from_per_us(params.number("light_mm_trans_per_us")),
            share_max: params.number("estimation_share_max"),
            renewal_share_max: params.number("renewal_share_max"),
        }
    }

    fn weight(&self, task: &TaskView) -> Weight {
        match (task.estimates.llc, task.estimates.mm_reads) {
            // One event that can't be counted says nothing against the task; both together would.
            (Reading::Absent(_), Reading::Absent(_)) => Weight::Unknown,
            (llc, mm) => {
                let within =
                    |rate: Reading<Rate>, most: Rate| rate.value().is_none_or(|rate| rate <= most);
                let is_light = within(llc, self.light_llc) && within(mm, self.light_mm);
                if is_light {
                    Weight::Light
                } else {
                    Weight::Heavy { llc, mm }
                }
            }
        }
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

    /// Chooses whom to measure, if this round belongs to an estimation quantum; when it ends, and for whom it is.
    pub(super) fn plan(
        &self,
        state: &mut EstimationState,
        round: &mut Round<'_>,
    ) -> Option<(Nanos, Basis)> {
        let now = round.snap.now;
        let started = *state.started.get_or_insert(now);
        if !round.full {
            // A task that ended left CPUs: as long as the measurement goes on, only light ones may fill them.
            let goes_on = state
                .until
                .filter(|&until| until > now && round.snap.tasks.iter().any(is_measured_alone));
            return goes_on.map(|until| (until, Basis::default()));
        }
        state.until = None;
        let share =
            |spent: Nanos| (spent + self.length).0 as f64 / (now + self.length - started).0 as f64;
        let someone_unknown = round
            .order
            .iter()
            .any(|&ix| round.task(ix).estimates.executed == 0);
        if round.all_fit()
            || someone_unknown
            // A measurement would keep them waiting.
            || round.overdue() > 0
            || (share(state.spent) > self.share_max && state.spent > Nanos::ZERO)
            || self.share_max == 0.0
            // What can't be stopped would go on beside the measurement.
            || round.snap.tasks.iter().any(|task| task.stays(true) && self.weight(task) != Weight::Light)
        {
            return None;
        }
        let mut expired: Vec<u32> = round.order.clone();
        expired.retain(|&ix| {
            self.age(round.task(ix))
                .is_some_and(|age| age >= self.valid_quanta)
        });
        // The longest expired; among those never estimated the one that has run most, then the longest waiting.
        expired
            .sort_by_key(|&ix| Reverse((self.age(round.task(ix)), round.task(ix).estimates.ran)));
        // An old estimate is worth more than none, so that renewing may take less time.
        let may_renew =
            share(state.renewed) <= self.renewal_share_max && self.renewal_share_max > 0.0;
        expired.retain(|&ix| may_renew || self.is_first(round.task(ix)));
        // One that can't have whole cores, for its mask or its size, must not keep the others from being measured.
        let first = expired
            .into_iter()
            .find(|&ix| round.choose_whole_core(ix, Purpose::MeasureAlone).is_ok())?;
        let renews = !self.is_first(round.task(first));
        if self.weight(round.task(first)) == Weight::Light {
            let soon = self.valid_quanta.div_ceil(2);
            let mut more: Vec<u32> = round
                .order
                .iter()
                .copied()
                .filter(|&ix| {
                    ix != first && self.age(round.task(ix)).is_some_and(|age| age >= soon)
                })
                .collect();
            more.retain(|&ix| self.weight(round.task(ix)) == Weight::Light);
            more.sort_by_key(|&ix| Reverse(self.age(round.task(ix))));
            for ix in more {
                if round.choose_whole_core(ix, Purpose::MeasureAlone).is_err() && round.left() == 0
                {
                    break;
                }
            }
        }
        state.spent += self.length;
        if renews {
            state.renewed += self.length;
        }
        let until = now + self.length;
        state.until = Some(until);
        Some((
            until,
            Basis {
                measures: Some(round.task(first).id),
                ..Basis::default()
            },
        ))
    }

    /// Fills what is left with light tasks, those with the least progress first.
    pub(super) fn finish(&self, mut round: Round<'_>, until: Nanos, basis: Basis) -> Decision {
        let snap = round.snap;
        round.consider_sleepers();
        let mut light: Vec<u32> = round.order.clone();
        light.retain(|&ix| round.is_open(ix) && self.weight(round.task(ix)) == Weight::Light);
        light.sort_by(|&a, &b| progress(round.task(a)).total_cmp(&progress(round.task(b))));
        for ix in light {
            if round.left() == 0 {
                break;
            }
            if let Err(reason) = round.choose(ix, Purpose::LowContention) {
                round.wait(ix, reason);
            }
        }
        round.finish(until, basis, |ix, ahead| {
            match self.weight(&snap.tasks[ix as usize]) {
                Weight::Heavy { llc, mm } => WaitReason::Heavy {
                    llc,
                    llc_limit: self.light_llc,
                    mm,
                    mm_limit: self.light_mm,
                },
                Weight::Unknown => WaitReason::Unmeasured,
                Weight::Light => WaitReason::Order { ahead },
            }
        })
    }
}

/// The task's progress in quanta; 0 before its first.
pub(super) fn progress(task: &TaskView) -> f64 {
    task.estimates.progress.value().unwrap_or(0.0)
}

/// The same by the paper's estimator, or by what was learnt.
pub(super) fn progress_by(learnt: bool, task: &TaskView) -> f64 {
    let known = task.estimates.learnt.as_ref().value().filter(|_| learnt);
    known.map_or_else(|| progress(task), |learnt| learnt.progress)
}

fn is_measured_alone(task: &TaskView) -> bool {
    let running = task.running.as_ref();
    running.is_some_and(|running| running.purpose == Purpose::MeasureAlone)
}
