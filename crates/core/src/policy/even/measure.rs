//! Short measurements: jobs of which too little is known get a core each, and what runs on the other cores is chosen so
//! that it does not disturb them.
//!
//! Without any measurement, what a job does in the core and what its siblings cost it can't be told apart. One measurement
//! of a phase settles most of that. It begins with a step in which the cache fills. The first measurement of a phase has one
//! more: many jobs known roughly are worth more than a few that are known well. Later ones go on as long as the cycles per
//! instruction still fall noticeably, because the cache still fills.
//!
//! Who is measured together: jobs in the order of their need, each as long as nobody is disturbed by more than a part of
//! what is unknown of him anyway. So the first measurements take many jobs at once, and later ones few. All other CPUs go
//! to jobs that disturb least, unless they are ahead of the others.

use super::is_predictable;
use crate::estimate::UNSEEN_READS;
use crate::model::contention::{Prediction, Seat};
use crate::placement::Purpose;
use crate::policy::Params;
use crate::policy::params::{ParamSpec, number};
use crate::policy::round::Round;
use crate::snapshot::TaskView;
use crate::task::TaskId;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub(super) const SHARE_MAX: ParamSpec = number(
    "measurement_share_max",
    0.08,
    0.0,
    1.0,
    "greatest share of the time in which jobs are measured of which little is known; 0 for no measurements",
);
pub(super) const REFINEMENT_SHARE_MAX: ParamSpec =
    number("refinement_share_max", 0.01, 0.0, 1.0, "the same, when more than a little is known of all jobs");

/// Length of a step of a measurement, and the most steps after the first: if one of the jobs was never measured in its phase,
/// and otherwise.
const STEP: Nanos = Nanos::from_ms(15);
const MOST_ROUGH_STEPS: u32 = 1;
const MOST_STEPS: u32 = 3;
/// A measurement goes on while the cycles per instruction fall by this part from step to step.
const SETTLED: f64 = 0.01;
/// A job is measured if its cycles per instruction alone are not known to this part; much is unknown above that part.
const WELL_KNOWN: f64 = 0.01;
const LITTLE_KNOWN: f64 = 0.05;
/// At least so much is unknown of a job that was never measured in its phase.
const NEVER_MEASURED: f64 = 0.2;
/// A job may be disturbed by this part of what is unknown of it, within these limits, and by so much in any case.
const BETTER: f64 = 0.5;
const LEAST_DISTURBED: f64 = 0.005;
const MOST_DISTURBED: f64 = 0.15;
const CALM: f64 = 0.03;
/// A job that is ahead of the least by so many tau is no company.
const MOST_LEAD: f64 = 0.5;
/// After so many jobs that disturb, no other is tried.
const REFUSALS: usize = 8;

/// Parameters of measurements.
pub(super) struct Measuring {
    share_max: f64,
    refinement_share_max: f64,
}

/// What is remembered from decision to decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MeasuringState {
    started: Option<Nanos>,
    /// Time that measurements have taken.
    spent: Nanos,
    /// The jobs that are being measured, and those beside them.
    measured: Vec<TaskId>,
    company: Vec<TaskId>,
    steps: u32,
    /// One of them was never measured in its phase before.
    rough: bool,
    /// When the present step ends.
    until: Nanos,
}

/// The part of a job's cycles per instruction alone that is unknown.
fn unknown(task: &TaskView) -> f64 {
    match task.estimates.learnt.value() {
        // A phase that was seen once may be the passage from one to another.
        Some(learnt) if learnt.stay < 2 => 0.0,
        Some(learnt) if !learnt.measured => learnt.error.max(NEVER_MEASURED),
        Some(learnt) => learnt.error,
        None => 0.0,
    }
}

impl Measuring {
    pub(super) fn new(params: &Params) -> Measuring {
        Measuring {
            share_max: params.number("measurement_share_max"),
            refinement_share_max: params.number("refinement_share_max"),
        }
    }

    /// Chooses who runs in the next step of a measurement, if there is one; until when, and who is measured first. `is_choice` says
    /// whether anything depends on it, and `lead` how far a task is ahead, in tau.
    pub(super) fn plan(
        &self,
        state: &mut MeasuringState,
        round: &mut Round<'_>,
        is_choice: bool,
        lead: &dyn Fn(u32) -> f64,
    ) -> Option<(Nanos, TaskId)> {
        let now = round.snap.now;
        let started = *state.started.get_or_insert(now);
        if !round.full {
            // Whoever began on a CPU that became free would disturb the step that goes on.
            let first =
                state.measured.iter().find(|&&id| round.snap.task(id).is_some_and(|task| task.running.is_some()));
            return first.filter(|_| now < state.until && round.overdue() == 0).map(|&first| (state.until, first));
        }
        let goes_on = !state.measured.is_empty();
        let (measured, company) = (std::mem::take(&mut state.measured), std::mem::take(&mut state.company));
        // What can't be stopped would go on beside a measurement.
        let fixed = |task: &TaskView| task.is_fixed();
        if self.share_max == 0.0
            || !is_choice
            || round.overdue() > 0
            || round.order.iter().any(|&ix| round.task(ix).estimates.executed == 0)
            || round.snap.tasks.iter().any(fixed)
        {
            return None;
        }
        let (measured, company) = if goes_on {
            state.steps += 1;
            let most = if state.rough { MOST_ROUGH_STEPS } else { MOST_STEPS };
            if state.steps > 1 && (state.steps > most || is_settled(round, &measured)) {
                return None;
            }
            (positions(round, &measured), positions(round, &company))
        } else {
            state.steps = 0;
            let chosen = self.choose(state.spent.share_of(now + STEP + STEP - started), round, lead)?;
            let is_new = |ix: &u32| round.task(*ix).estimates.learnt.value().is_some_and(|learnt| !learnt.measured);
            state.rough = chosen.0.iter().any(is_new);
            chosen
        };
        let purpose = if goes_on { Purpose::MeasureAlone } else { Purpose::LowContention };
        for ix in measured {
            if round.choose_whole_core(ix, purpose).is_ok() {
                state.measured.push(round.task(ix).id);
            }
        }
        let first = *state.measured.first()?;
        for ix in company {
            if round.choose(ix, Purpose::Run).is_ok() {
                state.company.push(round.task(ix).id);
            }
        }
        state.spent += STEP;
        state.until = now + STEP;
        Some((state.until, first))
    }

    /// Whom to measure, and who runs beside them.
    fn choose(&self, spent: f64, round: &Round<'_>, lead: &dyn Fn(u32) -> f64) -> Option<(Vec<u32>, Vec<u32>)> {
        let machine = &*round.snap.machine;
        let known = |ix: &u32| is_predictable(round.task(*ix));
        let mut needy: Vec<u32> = round.order.iter().copied().filter(known).collect();
        needy.retain(|&ix| unknown(round.task(ix)) > WELL_KNOWN);
        needy.sort_by(|&a, &b| unknown(round.task(b)).total_cmp(&unknown(round.task(a))));
        let most = if unknown(round.task(*needy.first()?)) > LITTLE_KNOWN {
            self.share_max
        } else {
            self.refinement_share_max
        };
        if spent > most {
            return None;
        }
        let mut group = Group { round, seats: Vec::new(), measured: Vec::new(), prediction: Prediction::default() };
        let cores: Vec<usize> = (0..machine.cores.len()).collect();
        group.add(&needy, &cores, true);
        let reads = |ix: u32| {
            let learnt = round.task(ix).estimates.learnt.value();
            learnt.map_or(0.0, |learnt| learnt.asks.reads * learnt.asks.ghz / learnt.solo_cpi)
        };
        let open = round.open();
        let chosen: BTreeSet<u32> = group.measured.iter().copied().collect();
        let others = round.order.iter().copied().filter(|ix| open[*ix as usize] && !chosen.contains(ix)).filter(known);
        // Those who disturb least are the same few each time. They are not to get ahead of all others by that.
        let others = others.filter(|&ix| lead(ix) < MOST_LEAD);
        let mut others: Vec<(f64, u32)> = others.map(|ix| (reads(ix), ix)).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let others: Vec<u32> = others.into_iter().map(|(_, ix)| ix).collect();
        // The cores that are left, with all their CPUs.
        let rest = group.measured.len()..machine.cores.len();
        let cores: Vec<usize> = rest.flat_map(|core| machine.cores[core].iter().map(move |_| core)).collect();
        let company = group.add(&others, &cores, false);
        Some((group.measured, company))
    }
}

/// Whether the cache of all that are measured has filled as far as it matters.
fn is_settled(round: &Round<'_>, measured: &[TaskId]) -> bool {
    let settling = |&id: &TaskId| round.snap.task(id)?.estimates.learnt.value()?.settling;
    measured.iter().filter_map(settling).all(|settling| settling < SETTLED)
}

/// Where tasks are in the snapshot, if they may be chosen.
fn positions(round: &Round<'_>, ids: &[TaskId]) -> Vec<u32> {
    let position = |id: &TaskId| round.snap.tasks.binary_search_by_key(id, |task| task.id).ok().map(|ix| ix as u32);
    let open = round.open();
    ids.iter().filter_map(position).filter(|&ix| open[ix as usize]).collect()
}

/// Jobs that are measured together, and those that run beside them.
struct Group<'a> {
    round: &'a Round<'a>,
    /// Of those that are measured, and of the others.
    seats: Vec<Seat>,
    measured: Vec<u32>,
    prediction: Prediction,
}

impl Group<'_> {
    /// Where a job would be. All jobs of a group are predictable, and all cores have CPUs.
    fn seat(&self, ix: u32, core: usize) -> Option<Seat> {
        let machine = &*self.round.snap.machine;
        let learnt = self.round.task(ix).estimates.learnt.value()?;
        let cpu = &machine.cpus[machine.index_of(machine.cores[core].first()?)?];
        Some(Seat { asks: learnt.asks, core, llc: cpu.llc, domain: cpu.memory_domain })
    }

    /// Adds jobs in this order, to be measured or to run beside, as long as there are cores, but none by whom somebody
    /// would be disturbed. Returns those that it added.
    fn add(&mut self, jobs: &[u32], cores: &[usize], measured: bool) -> Vec<u32> {
        let mut added: Vec<u32> = Vec::new();
        let mut rest = jobs;
        for _ in 0..=REFUSALS {
            let room = rest.len().min(cores.len() - added.len());
            // A prediction looks at all of them, so whole blocks are tried: the largest that disturbs nobody is added.
            let (mut fits, mut least) = (0, room + 1);
            let mut tried = room;
            while fits + 1 < least {
                let (seats, before) = (self.seats.len(), self.measured.len());
                self.put(&rest[..tried], &cores[added.len()..], measured);
                if self.is_calm() {
                    fits = tried;
                } else {
                    least = tried;
                }
                self.seats.truncate(seats);
                self.measured.truncate(before);
                tried = fits + (least - fits) / 2;
            }
            self.put(&rest[..fits], &cores[added.len()..], measured);
            added.extend(&rest[..fits]);
            // The next one disturbs somebody.
            rest = rest.get(fits + 1..).unwrap_or_default();
        }
        added
    }

    fn put(&mut self, jobs: &[u32], cores: &[usize], measured: bool) {
        for (&ix, &core) in jobs.iter().zip(cores) {
            self.seats.extend(self.seat(ix, core));
            if measured {
                self.measured.push(ix);
            }
        }
    }

    /// Whether none of those that are measured is disturbed by more than it may be. One alone is disturbed by nobody.
    fn is_calm(&mut self) -> bool {
        if self.seats.len() < 2 {
            return true;
        }
        let shared = &self.round.snap.contention;
        self.prediction.make(shared, &self.seats);
        let measured = self.measured.iter().zip(&self.seats).zip(&self.prediction.jobs);
        measured.into_iter().all(|((&ix, seat), job)| {
            let may = (BETTER * unknown(self.round.task(ix))).clamp(LEAST_DISTURBED, MOST_DISTURBED);
            let solo = seat.asks.solo_cpi(shared);
            let cached = self.prediction.cached[seat.llc];
            let share = if cached > 0.0 { (job.reads / cached).clamp(0.02, 1.0) } else { 1.0 };
            // What it would read with all of the cache stays unknown the less of it it has.
            let unseen = seat.asks.miss_cost(shared, share) * UNSEEN_READS * libm::log(1.0 / share) / solo;
            job.cpi <= (1.0 + may.max(CALM)) * solo && unseen < may
        })
    }
}
