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
use crate::decision::WaitReason;
use crate::estimate::UNSEEN_READS;
use crate::model::contention::{Prediction, Seat};
use crate::placement::Purpose;
use crate::policy::Params;
use crate::policy::params::{ParamSpec, number};
use crate::policy::round::Round;
use crate::snapshot::TaskView;
use crate::task::TaskId;
use crate::topology::{CpuSet, Machine};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const SHARE_MAX: ParamSpec = number(
    "measurement_share_max",
    0.08,
    0.0,
    1.0,
    "greatest share of the time in which jobs are measured of which little is known; 0 for no measurements",
);
pub(super) const REFINEMENT_SHARE_MAX: ParamSpec = number(
    "refinement_share_max",
    0.01,
    0.0,
    1.0,
    "the same, when more than a little is known of all jobs",
);

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
/// Share of a memory's bandwidth below which a job does not wait in its queue.
const READER: f64 = 0.02;

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
    match task.estimates.learnt.as_ref().value() {
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

    /// Chooses who runs in the next step of a measurement, if there is one; until when, and who is measured first.
    /// `is_choice` says whether anything depends on it, and `lead` how far a task is ahead, in tau.
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
            let first = state.measured.iter().find(|&&id| {
                round
                    .snap
                    .task(id)
                    .is_some_and(|task| task.running.is_some())
            });
            return first
                .filter(|_| now < state.until && round.overdue() == 0)
                .map(|&first| (state.until, first));
        }
        let goes_on = !state.measured.is_empty();
        let (measured, company) = (
            std::mem::take(&mut state.measured),
            std::mem::take(&mut state.company),
        );
        // What can't be stopped would go on beside a measurement.
        let fixed = |task: &TaskView| task.is_fixed();
        if self.share_max == 0.0
            || !is_choice
            || round.overdue() > 0
            || round
                .order
                .iter()
                .any(|&ix| round.task(ix).estimates.executed == 0)
            || round.snap.tasks.iter().any(fixed)
        {
            return None;
        }
        let (sites, measured, company) = if goes_on {
            state.steps += 1;
            let most = if state.rough {
                MOST_ROUGH_STEPS
            } else {
                MOST_STEPS
            };
            if state.steps > 1 && (state.steps > most || is_settled(round, &measured)) {
                return None;
            }
            let sites = Sites::of(&round.snap.machine);
            let [measured, company] = [measured, company].map(|ids| sites.again(round, &ids));
            (sites, measured, company)
        } else {
            state.steps = 0;
            let chosen = self.choose(
                state.spent.share_of(now + STEP + STEP - started),
                round,
                lead,
            )?;
            let learnt = |&(ix, _): &Seated| round.task(ix).estimates.learnt.as_ref().value();
            state.rough = chosen
                .1
                .iter()
                .filter_map(learnt)
                .any(|learnt| !learnt.measured);
            chosen
        };
        let purpose = if goes_on {
            Purpose::MeasureAlone
        } else {
            Purpose::LowContention
        };
        for (ix, site) in measured {
            if round
                .choose_whole_core_of(ix, sites.cores(site), purpose)
                .is_ok()
            {
                state.measured.push(round.task(ix).id);
            }
        }
        let first = *state.measured.first()?;
        for (ix, site) in company {
            if sites.choose(round, ix, site).is_ok() {
                state.company.push(round.task(ix).id);
            }
        }
        state.spent += STEP;
        state.until = now + STEP;
        Some((state.until, first))
    }

    /// Whom to measure, and who runs beside them.
    fn choose(
        &self,
        spent: f64,
        round: &Round<'_>,
        lead: &dyn Fn(u32) -> f64,
    ) -> Option<(Sites, Vec<Seated>, Vec<Seated>)> {
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
        let sites = Sites::of(&round.snap.machine);
        let mut group = Group {
            round,
            sites: &sites,
            slots: sites
                .all
                .iter()
                .map(|site| (0..site.cores.len()).collect())
                .collect(),
            taken: vec![0; sites.all.len()],
            seats: Vec::new(),
            measured: Vec::new(),
            prediction: Prediction::default(),
        };
        let chosen = group.add(&needy, true);
        let reads = |ix: u32| {
            let learnt = round.task(ix).estimates.learnt.as_ref().value();
            learnt.map_or(0.0, |learnt| learnt.asks.reads / learnt.solo_ns())
        };
        let open = round.open();
        let measured: BTreeSet<u32> = group.measured.iter().copied().collect();
        let others = round
            .order
            .iter()
            .copied()
            .filter(|ix| open[*ix as usize] && !measured.contains(ix))
            .filter(known);
        // Those who disturb least are the same few each time. They are not to get ahead of all others by that.
        let others = others.filter(|&ix| lead(ix) < MOST_LEAD);
        let mut others: Vec<(f64, u32)> = others.map(|ix| (reads(ix), ix)).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let others: Vec<u32> = others.into_iter().map(|(_, ix)| ix).collect();
        group.fill_up();
        let company = group.add(&others, false);
        Some((sites, chosen, company))
    }
}

/// Whether the cache of all that are measured has filled as far as it matters.
fn is_settled(round: &Round<'_>, measured: &[TaskId]) -> bool {
    let settling = |&id: &TaskId| {
        round
            .snap
            .task(id)?
            .estimates
            .learnt
            .as_ref()
            .value()?
            .settling
    };
    measured
        .iter()
        .filter_map(settling)
        .all(|settling| settling < SETTLED)
}

/// A task, as its index in the snapshot, and the number of a site.
type Seated = (u32, usize);

/// Cores of one type at one last-level cache.
struct Site {
    llc: usize,
    domain: usize,
    core_type: usize,
    cores: Vec<usize>,
}

/// All cores by their sites, in the order of their first cores.
struct Sites {
    all: Vec<Site>,
    /// The number of the site of each core.
    of: Vec<usize>,
}

impl Sites {
    fn of(machine: &Machine) -> Sites {
        let kind = |core: &CpuSet| {
            let cpu = &machine.cpus[machine.index_of(core.first()?)?];
            Some((cpu.llc, cpu.core_type, cpu.memory_domain))
        };
        let mut sites = Sites {
            all: Vec::new(),
            of: vec![0; machine.cores.len()],
        };
        let mut known = BTreeMap::new();
        for (core, cpus) in machine.cores.iter().enumerate() {
            let Some((llc, core_type, domain)) = kind(cpus) else {
                continue;
            };
            let site = *known.entry((llc, core_type)).or_insert_with(|| {
                sites.all.push(Site {
                    llc,
                    domain,
                    core_type,
                    cores: Vec::new(),
                });
                sites.all.len() - 1
            });
            sites.all[site].cores.push(core);
            sites.of[core] = site;
        }
        sites
    }

    /// Where a task ran last.
    fn last(&self, round: &Round<'_>, ix: u32) -> Option<usize> {
        let machine = &*round.snap.machine;
        let cpu = machine.index_of(round.task(ix).last_cpus.first()?)?;
        Some(self.of[machine.cpus[cpu].core])
    }

    fn cores(&self, site: usize) -> &[usize] {
        &self.all[site].cores
    }

    /// Chooses a task for a CPU of a site.
    fn choose(&self, round: &mut Round<'_>, ix: u32, site: usize) -> Result<(), WaitReason> {
        if self.all.len() == 1 {
            return round.choose(ix, Purpose::Run);
        }
        let machine = &*round.snap.machine;
        let last = round.task(ix).last_cpus.iter().filter(|&cpu| {
            machine
                .index_of(cpu)
                .is_some_and(|cpu| self.of[machine.cpus[cpu].core] == site)
        });
        let all = self
            .cores(site)
            .iter()
            .flat_map(|&core| machine.cores[core].iter());
        let found = last.chain(all).find(|&cpu| round.is_free(cpu));
        let cpu = found.ok_or(WaitReason::Affinity)?;
        round.choose_on(ix, CpuSet::from_iter([cpu]), Purpose::Run);
        Ok(())
    }

    /// Tasks that ran in the last step, if they may be chosen, where they were.
    fn again(&self, round: &Round<'_>, ids: &[TaskId]) -> Vec<Seated> {
        let open = round.open();
        let open = ids
            .iter()
            .filter_map(|id| {
                round
                    .snap
                    .tasks
                    .binary_search_by_key(id, |task| task.id)
                    .ok()
                    .map(|ix| ix as u32)
            })
            .filter(|&ix| open[ix as usize]);
        open.filter_map(|ix| Some((ix, self.last(round, ix)?)))
            .collect()
    }
}

/// Jobs that are measured together, and those that run beside them.
struct Group<'a> {
    round: &'a Round<'a>,
    sites: &'a Sites,
    /// Of each site: cores that may be taken, as positions in its list, one for each job; and how many are.
    slots: Vec<Vec<usize>>,
    taken: Vec<usize>,
    /// Of those that are measured, and of the others.
    seats: Vec<Seat>,
    measured: Vec<u32>,
    prediction: Prediction,
}

impl Group<'_> {
    /// Those who are measured have a core each. From now on the cores that are left are given out with all their CPUs.
    fn fill_up(&mut self) {
        let machine = &*self.round.snap.machine;
        for ((site, slots), taken) in self
            .sites
            .all
            .iter()
            .zip(&mut self.slots)
            .zip(&mut self.taken)
        {
            let rest = *taken..site.cores.len();
            *slots = rest
                .flat_map(|at| machine.cores[site.cores[at]].iter().map(move |_| at))
                .collect();
            *taken = 0;
        }
    }

    fn room(&self) -> usize {
        self.slots
            .iter()
            .zip(&self.taken)
            .map(|(slots, taken)| slots.len() - taken)
            .sum()
    }

    /// The number of free slots of a site.
    fn left(&self, site: usize) -> usize {
        self.slots[site].len() - self.taken[site]
    }

    /// The site for a job: where it ran last, or else where most is left. `None` if nothing is.
    fn site_for(&self, ix: u32) -> Option<usize> {
        let last = self
            .sites
            .last(self.round, ix)
            .filter(|&site| self.left(site) > 0);
        last.or_else(|| {
            (0..self.slots.len())
                .rev()
                .filter(|&site| self.left(site) > 0)
                .max_by_key(|&site| self.left(site))
        })
    }

    /// Adds jobs in this order, to be measured or to run beside, as long as there are cores, but none by whom somebody
    /// would be disturbed. Returns those that it added.
    fn add(&mut self, jobs: &[u32], measured: bool) -> Vec<Seated> {
        let mut added: Vec<Seated> = Vec::new();
        let mut rest = jobs;
        for _ in 0..=REFUSALS {
            let room = rest.len().min(self.room());
            // A prediction looks at all of them, so whole blocks are tried: the largest that disturbs nobody is added.
            let (mut fits, mut least) = (0, room + 1);
            let mut tried = room;
            while fits + 1 < least {
                let (seats, before, taken) =
                    (self.seats.len(), self.measured.len(), self.taken.clone());
                self.put(&rest[..tried], measured);
                if self.is_calm() {
                    fits = tried;
                } else {
                    least = tried;
                }
                self.seats.truncate(seats);
                self.measured.truncate(before);
                self.taken = taken;
                tried = fits + (least - fits) / 2;
            }
            added.extend(self.put(&rest[..fits], measured));
            // The next one disturbs somebody.
            rest = rest.get(fits + 1..).unwrap_or_default();
        }
        added
    }

    /// All jobs of a group are predictable.
    fn put(&mut self, jobs: &[u32], measured: bool) -> Vec<Seated> {
        let mut put = Vec::with_capacity(jobs.len());
        for &ix in jobs {
            let learnt = self.round.task(ix).estimates.learnt.as_ref().value();
            let (Some(learnt), Some(at)) = (learnt, self.site_for(ix)) else {
                continue;
            };
            let site = &self.sites.all[at];
            let core = site.cores[self.slots[at][self.taken[at]]];
            self.taken[at] += 1;
            self.seats.push(Seat {
                asks: *learnt.asks_on(site.core_type),
                core,
                llc: site.llc,
                domain: site.domain,
            });
            if measured {
                self.measured.push(ix);
            }
            put.push((ix, at));
        }
        put
    }

    /// Whether none of those that are measured is disturbed by more than it may be. One alone is disturbed by nobody.
    fn is_calm(&mut self) -> bool {
        if self.seats.len() < 2 {
            return true;
        }
        let shared = &self.round.snap.contention;
        self.prediction.make(shared, &self.seats);
        let mut loads = vec![0.0; self.prediction.latency.len()];
        for (seat, job) in self.seats.iter().zip(&self.prediction.jobs) {
            loads[seat.domain] += job.reads;
        }
        let most = shared.memory.most.unwrap_or(f64::INFINITY);
        let measured = self
            .measured
            .iter()
            .zip(&self.seats)
            .zip(&self.prediction.jobs);
        measured.into_iter().all(|((&ix, seat), job)| {
            let may =
                (BETTER * unknown(self.round.task(ix))).clamp(LEAST_DISTURBED, MOST_DISTURBED);
            let solo = seat.asks.solo_cpi(shared);
            let cached = self.prediction.cached[seat.llc];
            let share = if cached > 0.0 {
                (job.reads / cached).clamp(0.02, 1.0)
            } else {
                1.0
            };
            // What it would read with all of the cache stays unknown the less of it it has.
            let unseen =
                seat.asks.miss_cost(shared, share) * UNSEEN_READS * libm::log(1.0 / share) / solo;
            // A memory delivers no more than it can, whatever is believed of what its readers wait. One who is alone at its
            // limit is not disturbed by that.
            let is_reader = job.reads > READER * most;
            let slowdown = f64::max(
                job.cpi / solo,
                if is_reader {
                    loads[seat.domain] / most.max(job.reads)
                } else {
                    1.0
                },
            );
            slowdown <= 1.0 + may.max(CALM) && unseen < may
        })
    }
}
