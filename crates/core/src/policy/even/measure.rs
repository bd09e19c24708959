//! Short measurements: jobs that are little known get a core each, and the other cores run jobs that do not disturb
//! them.
//!
//! Without a measurement, a job's own work in the core can't be told from its slowdown by siblings. One measurement of
//! a phase settles most of that. It begins with a step in which the cache fills. The first measurement of a phase has
//! one more step: many jobs known roughly are worth more than a few known well. Later ones go on while the cycles per
//! instruction fall noticeably, because the cache still fills.
//!
//! Jobs are measured together in the order of their need, as long as none is disturbed by more than a share of its own
//! error. So the first measurements take many jobs at once, and later ones few. All other CPUs go to the jobs that
//! disturb least, unless they are ahead of the others.

use super::is_predictable;
use super::leads::Leads;
use crate::estimate::UNSEEN_READS;
use crate::model::contention::{Predicted, Prediction, Seat};
use crate::policy::prelude::*;
use crate::snapshot::Learnt;
use crate::topology::Machine;

/// Maximum share of the time for measurements: if a job is little known, and otherwise.
const MOST_OF_TIME: f64 = 0.08;
const MOST_FOR_REFINEMENT: f64 = 0.01;
/// Length of a step, and maximum number of steps after the first: if one of the jobs was never measured in its phase,
/// and otherwise.
const STEP: Nanos = Nanos::from_ms(15);
const MOST_ROUGH_STEPS: u32 = 1;
const MOST_STEPS: u32 = 3;
/// Least fall of the cycles per instruction per step, as a share, for which a measurement goes on.
const SETTLED: f64 = 0.01;
/// Relative errors of the solo cycles per instruction above which a job is measured, and above which it is little
/// known.
const WELL_KNOWN: f64 = 0.01;
const LITTLE_KNOWN: f64 = 0.05;
/// Least relative error of a job that was never measured in its phase.
const NEVER_MEASURED: f64 = 0.2;
/// Maximum disturbance of a measured job: this share of its error, within these limits. A slowdown up to `CALM` is
/// ignored.
const BETTER: f64 = 0.5;
const LEAST_DISTURBED: f64 = 0.005;
const MOST_DISTURBED: f64 = 0.15;
const CALM: f64 = 0.03;
/// Maximum lead of a co-runner, in tau.
const MOST_LEAD: f64 = 0.5;
/// Maximum number of disturbing jobs to try.
const REFUSALS: usize = 8;
/// Share of a memory's bandwidth below which a job does not wait in its queue.
const READER: f64 = 0.02;

/// The state kept between decisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MeasuringState {
    started: Option<Nanos>,
    /// Time spent on measurements.
    spent: Nanos,
    /// The jobs being measured, and their co-runners.
    measured: Vec<TaskId>,
    company: Vec<TaskId>,
    steps: u32,
    /// Whether one of them was never measured in its phase before.
    rough: bool,
    /// End of the present step.
    until: Nanos,
}

/// Relative error of a job's solo cycles per instruction.
fn unknown(task: &TaskView) -> f64 {
    match learnt(task) {
        // A phase seen once may be a transition.
        Some(learnt) if learnt.stay < 2 => 0.0,
        Some(learnt) if !learnt.measured => learnt.error.max(NEVER_MEASURED),
        Some(learnt) => learnt.error,
        None => 0.0,
    }
}

impl MeasuringState {
    /// Chooses the tasks of the next step of a measurement, if any. Returns its end, and the first measured task.
    /// `is_choice`: whether the choice matters at all.
    pub(super) fn plan(
        &mut self,
        round: &mut Round<'_>,
        is_choice: bool,
        leads: &Leads,
    ) -> Option<(Nanos, TaskId)> {
        let now = round.snap.now;
        let started = *self.started.get_or_insert(now);
        if !round.full {
            // A task that starts on a free CPU would disturb the present step.
            let goes_on = now < self.until && round.overdue() == 0;
            let first = self.measured.iter().find(|&&id| is_running(round, id));
            return first.filter(|_| goes_on).map(|&first| (self.until, first));
        }
        let measured = std::mem::take(&mut self.measured);
        let company = std::mem::take(&mut self.company);
        if !is_choice || !may_measure(round) {
            return None;
        }
        let sites = Sites::of(&round.snap.machine);
        let (group, purpose) = if measured.is_empty() {
            let spent = self.spent.share_of(now + STEP + STEP - started);
            (
                self.begin(spent, round, &sites, leads)?,
                Purpose::LowContention,
            )
        } else {
            self.steps += 1;
            if self.is_over(round, &measured) {
                return None;
            }
            let again = [measured, company].map(|ids| sites.again(round, &ids));
            (again, Purpose::MeasureAlone)
        };
        self.seat(round, &sites, group, purpose);
        let first = *self.measured.first()?;
        self.spent += STEP;
        self.until = now + STEP;
        Some((self.until, first))
    }

    /// Whether the measurement has taken enough steps.
    fn is_over(&self, round: &Round<'_>, measured: &[TaskId]) -> bool {
        let most = if self.rough {
            MOST_ROUGH_STEPS
        } else {
            MOST_STEPS
        };
        self.steps > 1 && (self.steps > most || is_settled(round, measured))
    }

    /// Places the measured jobs, then their co-runners.
    fn seat(
        &mut self,
        round: &mut Round<'_>,
        sites: &Sites,
        [measured, company]: [Vec<Seated>; 2],
        purpose: Purpose,
    ) {
        for (ix, site) in measured {
            let chosen = round.choose_whole_core(ix, |core| sites.of[core] == site, purpose);
            if chosen.is_ok() {
                self.measured.push(round.task(ix).id);
            }
        }
        if self.measured.is_empty() {
            return;
        }
        for (ix, site) in company {
            if sites.choose(round, ix, site).is_ok() {
                self.company.push(round.task(ix).id);
            }
        }
    }

    /// The tasks to measure, and their co-runners. `spent` is the share of the time spent on measurements.
    fn begin(
        &mut self,
        spent: f64,
        round: &Round<'_>,
        sites: &Sites,
        leads: &Leads,
    ) -> Option<[Vec<Seated>; 2]> {
        self.steps = 0;
        let mut needy: Vec<u32> = round.order.clone();
        needy.retain(|&ix| is_predictable(round.task(ix)) && unknown(round.task(ix)) > WELL_KNOWN);
        needy.sort_by(|&a, &b| unknown(round.task(b)).total_cmp(&unknown(round.task(a))));
        let most = if unknown(round.task(*needy.first()?)) > LITTLE_KNOWN {
            MOST_OF_TIME
        } else {
            MOST_FOR_REFINEMENT
        };
        if spent > most {
            return None;
        }
        let mut group = Group::new(round, sites);
        let measured = group.add(&needy, true);
        // The jobs that disturb least are the same few each time. This must not bring them ahead of all others.
        let mut open = round.open();
        for &ix in &group.measured {
            open[ix as usize] = false;
        }
        let mut others: Vec<u32> = round.order.clone();
        others.retain(|&ix| {
            open[ix as usize] && is_predictable(round.task(ix)) && leads.of(ix) < MOST_LEAD
        });
        others.sort_by(|&a, &b| {
            let (one, other) = (reads(round.task(a)), reads(round.task(b)));
            one.total_cmp(&other).then(a.cmp(&b))
        });
        group.fill_up();
        let company = group.add(&others, false);
        self.rough = measured
            .iter()
            .filter_map(|&(ix, _)| learnt(round.task(ix)))
            .any(|learnt| !learnt.measured);
        Some([measured, company])
    }
}

fn learnt(task: &TaskView) -> Option<&Learnt> {
    task.estimates.learnt.as_ref().value()
}

/// Lines that a job reads per ns alone.
fn reads(task: &TaskView) -> f64 {
    learnt(task).map_or(0.0, |learnt| learnt.asks.reads / learnt.solo_ns())
}

fn is_running(round: &Round<'_>, id: TaskId) -> bool {
    let task = round.snap.task(id);
    task.is_some_and(|task| task.running.is_some())
}

/// Whether a measurement may run: no task is overdue, new, or fixed, which would go on beside it.
fn may_measure(round: &Round<'_>) -> bool {
    let is_unknown = |&ix: &u32| round.task(ix).estimates.executed == 0;
    round.overdue() == 0
        && !round.order.iter().any(is_unknown)
        && !round.snap.tasks.iter().any(|task| task.is_fixed())
}

/// Whether the caches of all measured jobs have filled far enough.
fn is_settled(round: &Round<'_>, measured: &[TaskId]) -> bool {
    measured.iter().all(|&id| {
        let learnt = round.snap.task(id).and_then(learnt);
        let settling = learnt.and_then(|learnt| learnt.settling);
        settling.is_none_or(|settling| settling < SETTLED)
    })
}

/// The index of a task in the snapshot, and the number of a site.
type Seated = (u32, usize);

/// The cores of one type at one last-level cache.
struct Site {
    llc: usize,
    domain: usize,
    core_type: usize,
    cores: Vec<usize>,
}

/// All cores by their sites, in the order of their first cores.
struct Sites {
    all: Vec<Site>,
    /// The number of each core's site.
    of: Vec<usize>,
}

impl Sites {
    fn of(machine: &Machine) -> Sites {
        let mut sites = Sites {
            all: Vec::new(),
            of: vec![0; machine.cores.len()],
        };
        for (core, cpus) in machine.cores.iter().enumerate() {
            let Some(cpu) = cpus.first().and_then(|cpu| machine.cpu(cpu)) else {
                continue;
            };
            let is_there = |site: &Site| (site.llc, site.core_type) == (cpu.llc, cpu.core_type);
            let number = sites.all.iter().position(is_there).unwrap_or_else(|| {
                sites.all.push(Site {
                    llc: cpu.llc,
                    domain: cpu.memory_domain,
                    core_type: cpu.core_type,
                    cores: Vec::new(),
                });
                sites.all.len() - 1
            });
            sites.all[number].cores.push(core);
            sites.of[core] = number;
        }
        sites
    }

    /// The site of a task's last run.
    fn last(&self, round: &Round<'_>, ix: u32) -> Option<usize> {
        let cpu = round.snap.machine.cpu(round.task(ix).last_cpus.first()?)?;
        Some(self.of[cpu.core])
    }

    /// Chooses a task for a CPU of a site: that of its last run, else the first free one.
    fn choose(&self, round: &mut Round<'_>, ix: u32, site: usize) -> Result<(), WaitReason> {
        if self.all.len() == 1 {
            return round.choose(ix, Purpose::Run);
        }
        let machine = &*round.snap.machine;
        let last = machine
            .cpus_in(&round.task(ix).last_cpus)
            .filter(|cpu| self.of[cpu.core] == site)
            .map(|cpu| cpu.id);
        let cores = self.all[site].cores.iter();
        let all = cores.flat_map(|&core| machine.cores[core].iter());
        let cpu = last.chain(all).find(|&cpu| round.is_free(cpu));
        round.choose_on(ix, cpu.ok_or(WaitReason::Affinity)?.into(), Purpose::Run);
        Ok(())
    }

    /// The tasks of the last step that may be chosen, at their sites.
    fn again(&self, round: &Round<'_>, ids: &[TaskId]) -> Vec<Seated> {
        let open = round.open();
        let mut again = Vec::new();
        for id in ids {
            if let Ok(ix) = round.snap.tasks.binary_search_by_key(id, |task| task.id)
                && open[ix]
                && let Some(site) = self.last(round, ix as u32)
            {
                again.push((ix as u32, site));
            }
        }
        again
    }
}

/// Jobs measured together, and their co-runners.
#[derive(Clone)]
struct Group<'a> {
    round: &'a Round<'a>,
    sites: &'a Sites,
    /// Cores of each site for further jobs, the next one last; one entry per job.
    slots: Vec<Vec<usize>>,
    /// Seats of the measured jobs, then of the co-runners.
    seats: Vec<Seat>,
    measured: Vec<u32>,
}

impl<'a> Group<'a> {
    fn new(round: &'a Round<'a>, sites: &'a Sites) -> Group<'a> {
        let cores = sites.all.iter().map(|site| &site.cores);
        Group {
            round,
            sites,
            slots: cores
                .map(|cores| cores.iter().rev().copied().collect())
                .collect(),
            seats: Vec::new(),
            measured: Vec::new(),
        }
    }

    /// Offers the cores left with all their CPUs. A measured job has a core of its own.
    fn fill_up(&mut self) {
        let cores = &self.round.snap.machine.cores;
        for slots in &mut self.slots {
            *slots = slots
                .iter()
                .flat_map(|&core| std::iter::repeat_n(core, cores[core].len()))
                .collect();
        }
    }

    /// The site for a job: that of its last run, else the one with most room. `None` if all are full.
    fn site_for(&self, ix: u32) -> Option<usize> {
        let has_room = |&site: &usize| !self.slots[site].is_empty();
        let last = self.sites.last(self.round, ix).filter(has_room);
        // Reversed, so that the first of equal maxima wins.
        let all = (0..self.slots.len()).rev().filter(has_room);
        last.or_else(|| all.max_by_key(|&site| self.slots[site].len()))
    }

    /// Adds jobs in this order, to be measured or as co-runners, while there are cores. Skips those that would disturb
    /// a measured job. Returns the jobs added.
    fn add(&mut self, jobs: &[u32], measured: bool) -> Vec<Seated> {
        let mut added: Vec<Seated> = Vec::new();
        let mut rest = jobs;
        for _ in 0..=REFUSALS {
            let fit = self.most_calm(rest, measured);
            added.extend(self.put(&rest[..fit], measured));
            // The next one disturbs a measured job.
            rest = rest.get(fit + 1..).unwrap_or_default();
        }
        added
    }

    /// Number of these jobs, from the first on, that can be added without disturbing a measured job. A prediction
    /// covers all jobs at once, so this bisects.
    fn most_calm(&self, jobs: &[u32], measured: bool) -> usize {
        let room = self.slots.iter().map(Vec::len).sum();
        let mut tried = jobs.len().min(room);
        let (mut fit, mut least) = (0, tried + 1);
        while fit + 1 < least {
            let mut with = self.clone();
            with.put(&jobs[..tried], measured);
            if with.is_calm() {
                fit = tried;
            } else {
                least = tried;
            }
            tried = fit + (least - fit) / 2;
        }
        fit
    }

    /// Seats these jobs, which are all predictable.
    fn put(&mut self, jobs: &[u32], measured: bool) -> Vec<Seated> {
        let mut put = Vec::with_capacity(jobs.len());
        for &ix in jobs {
            let Some(learnt) = learnt(self.round.task(ix)) else {
                continue;
            };
            let Some(at) = self.site_for(ix) else {
                continue;
            };
            let Some(core) = self.slots[at].pop() else {
                continue;
            };
            let site = &self.sites.all[at];
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

    /// Whether no measured job is disturbed beyond its limit. A single job is never disturbed.
    fn is_calm(&self) -> bool {
        if self.seats.len() < 2 {
            return true;
        }
        let mut prediction = Prediction::default();
        prediction.make(&self.round.snap.contention, &self.seats);
        let mut loads = vec![0.0; prediction.latency.len()];
        for (seat, job) in self.seats.iter().zip(&prediction.jobs) {
            loads[seat.domain] += job.reads;
        }
        let measured = self.measured.iter().zip(&self.seats).zip(&prediction.jobs);
        measured.into_iter().all(|((&ix, seat), job)| {
            let cached = prediction.cached[seat.llc];
            !self.is_disturbed(ix, seat, job, cached, loads[seat.domain])
        })
    }

    /// Whether a measured job is disturbed beyond its limit. `cached` is the rate of lines read into its cache, `load`
    /// that from its memory.
    fn is_disturbed(&self, ix: u32, seat: &Seat, job: &Predicted, cached: f64, load: f64) -> bool {
        let shared = &self.round.snap.contention;
        let may = (BETTER * unknown(self.round.task(ix))).clamp(LEAST_DISTURBED, MOST_DISTURBED);
        let solo = seat.asks.solo_cpi(shared);
        let share = if cached > 0.0 {
            (job.reads / cached).clamp(0.02, 1.0)
        } else {
            1.0
        };
        // The smaller its share of the cache, the less is known of its reads with the whole cache.
        let unseen =
            seat.asks.miss_cost(shared, share) * UNSEEN_READS * libm::log(1.0 / share) / solo;
        // A memory delivers no more than its limit, whatever latency is assumed. A job alone at the limit is not
        // disturbed by that.
        let most = shared.memory.most.unwrap_or(f64::INFINITY);
        let overload = if job.reads > READER * most {
            load / most.max(job.reads)
        } else {
            1.0
        };
        let slowdown = f64::max(job.cpi / solo, overload);
        slowdown > 1.0 + may.max(CALM) || unseen >= may
    }
}
