//! `even`: equal progress for all at the greatest predicted speed (ours).
//!
//! What a job's speed is worth follows from how far it is behind: weights w = exp(I - lead / tau), with lead its progress
//! beyond the least, and I the sum of what it was ahead of the mean before, with the opposite sign. Each quantum those jobs
//! run, in that pairing, whose Σ w x predicted speed is greatest ([`choose`]). A job that is far behind weighs e times as
//! much for each tau; so progress stays together, and within that the machine is used as well as it can be. The first term
//! alone would do (it is the method of multiplicative weights for the greatest equal speed), but then jobs that are hard to
//! run would always be some tau behind; the sum takes that away, as an integral does in a controller.
//!
//! A CPU stays idle if everyone who could use it is too far ahead, or would cost the others more than it gains.
//!
//! What the prediction needs is learnt from the intervals that jobs run anyway, and from short measurements ([`measure`]).

mod choose;
mod measure;

use super::estimation::progress_by;
use super::fair::progress_needs;
use super::params::{
    BIG_BUSY, BIG_CAPACITY, BIG_IDLE, P_MORE, P0, P1, P2, ParamKind, ParamSpec, QUANTUM_S,
    SMALL_BUSY, SMALL_CAPACITY, SMALL_IDLE, core_power, number, power_model,
};
use super::round::Round;
use super::{
    Need, Params, Policy, PolicyEntry, QuantumEnd, sharing_needs, state_is_a_field, wanted,
};
use crate::capability::Capability;
use crate::counter::Counter;
use crate::decision::{Basis, Decision, WaitReason};
use crate::model::cross_core::CoreType;
use crate::model::power::PowerModel;
use crate::placement::{Placement, Purpose};
use crate::rng::Rng;
use crate::snapshot::{Snapshot, TaskView};
use crate::task::TaskId;
use crate::topology::{Cpu, CpuId, CpuSet, Machine};
use crate::units::Nanos;
use choose::{Candidate, LeftOut, Model, Place, Power, Search};
use measure::{Measuring, MeasuringState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const TAU: ParamSpec = number(
    "tau_quanta",
    1.0,
    0.01,
    1e6,
    "lead in quanta for which a job counts e times less; less is fairer and slower",
);
const OBJECTIVE: ParamSpec = ParamSpec {
    name: "objective",
    kind: ParamKind::Choice(&["time", "energy", "edp"]),
    about: "what equal progress is to cost least of: time, energy, or energy x time; but for time cores stay idle where they \
            would cost more than they give, by the power of the machine",
    at_most: None,
};
const TAU_SHARE: ParamSpec = number(
    "tau_share",
    0.01,
    0.0,
    1.0,
    "the same as a share of the mean progress; the greater of the two counts",
);

/// A job that is ahead of the least by more than this many tau does not run, unless CPUs were idle for this share of the
/// time because of that: one job of which progress is estimated wrong, or that can't catch up, is not to stop the others.
const FARTHEST: f64 = 1.5;
const MOST_IDLE: f64 = 0.4;
/// Decay factor of the idle share, per quantum.
const IDLE_FADES: f64 = 0.98;
/// A job that is not too far ahead keeps at most so many CPUs idle for its sake, of those that it does not need itself.
const IDLE_FOR_EACH: usize = 2;
/// A job that is behind the median by more than this many tau counts as if it were behind by so many.
const DEEPEST: f64 = 4.0;
/// The part of a job's lead over the mean, in tau, by which the logarithm of its weight changes in each quantum, if tau is a
/// quantum; and the most that counts of a lead, and of the sum.
const INTEGRAL_SHARE: f64 = 0.1;
const MOST_LEAD: f64 = 3.0;
const MOST_INTEGRAL: f64 = 4.0;
/// Decay factor of past work and power, per quantum.
const FADES: f64 = 0.95;
/// Work is dear if a joule brings less than this part of what it brought in the last quanta.
const DEAR: f64 = 0.5;
/// Where energy counts, the logarithms of the weights are so much smaller. A job that is a little ahead would otherwise not
/// be worth the power of its core, though it will be in a moment: equals would pause in turn.
const FLAT: f64 = 8.0;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "even",
    gist: "equal progress for all at the greatest predicted speed",
    source: "ours",
    time_shares: true,
    can_hand_over: false,
    params: &[
        QUANTUM_S,
        OBJECTIVE,
        TAU,
        TAU_SHARE,
        measure::SHARE_MAX,
        measure::REFINEMENT_SHARE_MAX,
        P0,
        P1,
        P2,
        P_MORE,
        BIG_CAPACITY,
        BIG_BUSY,
        BIG_IDLE,
        SMALL_CAPACITY,
        SMALL_BUSY,
        SMALL_IDLE,
    ],
    needs,
    build: |params| {
        Box::new(Even {
            quantum: Nanos::from_s(params.number("quantum_s")),
            energy_share: match params.word("objective") {
                "energy" => 1.0,
                "edp" => 0.5,
                _ => 0.0,
            },
            power: power_model(params),
            core_power: core_power(params),
            tau: params.number("tau_quanta"),
            tau_share: params.number("tau_share"),
            measuring: Measuring::new(params),
            state: State::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.push(wanted(
        Capability::Counter(Counter::MmReads),
        "what jobs cost each other in caches and memory is not seen: only what they cost each other in a core counts",
    ));
    needs.extend(progress_needs());
    needs
}

struct Even {
    quantum: Nanos,
    /// How much energy counts beside time: 0 not at all, 1 alone, and 1/2 for their product.
    energy_share: f64,
    /// Of a machine whose cores are all alike, and of cores of two types, the fast one first.
    power: PowerModel,
    core_power: [CoreType; 2],
    tau: f64,
    tau_share: f64,
    measuring: Measuring,
    state: State,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    measuring: MeasuringState,
    /// The integral part of the logarithm of each job's weight.
    integrals: BTreeMap<TaskId, f64>,
    /// Weighted speeds and power in W of the last quanta, the older the less. Weights are taken relative to their mean.
    work: f64,
    watts: f64,
    /// The share of CPU time in the last quanta that nobody had because of leads.
    idle: f64,
}

/// What a choice came to, for those that it leaves out.
struct Outcome {
    /// What those that were considered and not chosen would be worth, and cost others.
    left_out: BTreeMap<u32, LeftOut>,
    /// The lead beyond which none was considered.
    most_lead: f64,
    /// The chosen jobs do much less work per watt than those of the last quanta.
    is_dear: bool,
}

/// What the jobs' progress means for their weights.
struct Leads {
    /// Of each task of the snapshot, in quanta.
    progress: Vec<f64>,
    /// The tasks that the others are compared with, and the median of their progress.
    counted: Vec<u32>,
    median: f64,
    /// Progress from which leads are counted.
    least: f64,
    tau: f64,
}

impl Leads {
    fn of(&self, ix: u32) -> f64 {
        (self.progress[ix as usize] - self.least).max(0.0) / self.tau
    }

    /// The progress of whoever has this lead.
    fn at(&self, lead: f64) -> f64 {
        self.least + lead * self.tau
    }
}

impl Policy for Even {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = Round::new(snap);
        let leads = self.leads(&round);
        // Even if all fit, it matters who has the fast cores.
        let is_choice =
            self.energy_share > 0.0 || !round.all_fit() || snap.machine.core_types.len() > 1;
        if let Some((until, first)) =
            self.measuring
                .plan(&mut self.state.measuring, &mut round, is_choice, &|ix| {
                    leads.of(ix)
                })
        {
            let basis = Basis {
                measures: Some(first),
                ..Basis::default()
            };
            self.state.quantum.end = until;
            return round.finish(until, basis, |_, _| WaitReason::Measuring { task: first });
        }
        let end = self.state.quantum.of_round(&round, self.quantum);
        if round.full && is_choice {
            self.integrate(snap, &leads);
        }
        // Those behind come first; the sort is stable, so overdue tasks stay first, and the longest waiting among equals.
        let head = round.head();
        round.order[head..]
            .sort_by(|&a, &b| leads.progress[a as usize].total_cmp(&leads.progress[b as usize]));
        // Between quanta there is nothing to choose, unless CPUs are idle on purpose.
        if !is_choice || (!round.full && self.energy_share == 0.0) {
            round.choose_in_order(Purpose::Run, false);
            return round.finish(end, Basis::default(), |_, ahead| WaitReason::Order {
                ahead,
            });
        }
        let outcome = self.choose(&mut round, &leads);
        if round.full {
            self.note_idle(&round, &leads, &outcome);
        }
        round.finish(end, Basis::default(), |ix, ahead| {
            match outcome.left_out.get(&ix) {
                Some(left) => {
                    let [worth_milli, loss_milli, power_milli] =
                        [left.worth, left.loss, left.power].map(|value| (value * 1e3) as u64);
                    WaitReason::Outweighed {
                        worth_milli,
                        loss_milli,
                        power_milli,
                    }
                }
                None if leads.of(ix) > outcome.most_lead => WaitReason::Lead {
                    progress_milli: (leads.progress[ix as usize] * 1e3) as u64,
                    limit_milli: (leads.at(outcome.most_lead) * 1e3) as u64,
                },
                None => WaitReason::Order { ahead },
            }
        })
    }

    state_is_a_field!();
}

/// Whether a task needs one CPU of any kind, and enough is known of it to predict its speed.
fn is_predictable(task: &TaskView) -> bool {
    task.cpus == 1 && task.allowed.is_none() && task.estimates.learnt.is_value()
}

/// Whether a choice can change a task's progress. Only such tasks count towards the median.
fn depends_on_choice(round: &Round<'_>, ix: u32) -> bool {
    let task = round.task(ix);
    !task.asleep
        && !task.is_fixed()
        && task.control.place
        && task.allowed.is_none()
        && !round.is_critical(ix)
}

/// The type of a core: 0 for the fastest, 1 for all others.
fn kind_of(machine: &Machine, core: &CpuSet) -> usize {
    let cpu = core.first().and_then(|cpu| machine.index_of(cpu));
    cpu.map_or(0, |ix| machine.cpus[ix].core_type.min(1))
}

impl Even {
    fn leads(&self, round: &Round<'_>) -> Leads {
        let tasks = &round.snap.tasks;
        let progress: Vec<f64> = tasks.iter().map(|task| progress_by(true, task)).collect();
        let mut counted: Vec<u32> = (0..tasks.len() as u32)
            .filter(|&ix| depends_on_choice(round, ix))
            .collect();
        if counted.is_empty() {
            counted = (0..tasks.len() as u32).collect();
        }
        let mut all: Vec<f64> = counted.iter().map(|&ix| progress[ix as usize]).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let tau = f64::max(self.tau, self.tau_share * mean);
        let half = all.len() / 2;
        let median = if all.is_empty() {
            0.0
        } else {
            *all.select_nth_unstable_by(half, f64::total_cmp).1
        };
        let least = all
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
            .max(median - DEEPEST * tau);
        Leads {
            progress,
            counted,
            median,
            least,
            tau,
        }
    }

    /// Weighted speed for each watt in the last quanta. A set that gives more for a watt than this makes work cheaper
    /// (Dinkelbach, "On Nonlinear Fractional Programming", Management Science 13, 1967).
    fn work_per_joule(&self) -> f64 {
        if self.state.watts > 0.0 {
            self.state.work / self.state.watts
        } else {
            0.0
        }
    }

    /// Lets the weights of those that stay ahead fall, and of those that stay behind rise.
    fn integrate(&mut self, snap: &Snapshot, leads: &Leads) {
        let live: BTreeSet<TaskId> = snap.tasks.iter().map(|task| task.id).collect();
        let integrals = &mut self.state.integrals;
        integrals.retain(|id, _| live.contains(id));
        let count = leads.counted.len().max(1) as f64;
        let progress = leads.counted.iter().map(|&ix| leads.progress[ix as usize]);
        let bounded: Vec<f64> = progress
            .map(|progress| ((progress - leads.median) / leads.tau).clamp(-MOST_LEAD, MOST_LEAD))
            .collect();
        let mean = bounded.iter().sum::<f64>() / count;
        let mut sum = 0.0;
        for (&ix, lead) in leads.counted.iter().zip(bounded) {
            let integral = integrals.entry(snap.tasks[ix as usize].id).or_insert(0.0);
            if leads.progress[ix as usize] < leads.least {
                // More weight would not bring it nearer, and cost the others.
                *integral *= FADES;
            } else {
                let change = INTEGRAL_SHARE * (lead - mean) / leads.tau.max(1.0);
                *integral = (*integral - change).clamp(-MOST_INTEGRAL, MOST_INTEGRAL);
            }
            sum += *integral;
        }
        for &ix in &leads.counted {
            if let Some(integral) = integrals.get_mut(&snap.tasks[ix as usize].id) {
                *integral -= sum / count;
            }
        }
    }

    /// Notes how many CPUs are idle though there are jobs for them, because these are too far ahead. To save energy CPUs are
    /// idle anyway; then it counts only where work was dear.
    fn note_idle(&mut self, round: &Round<'_>, leads: &Leads, outcome: &Outcome) {
        let open = round.open();
        let ahead = round
            .order
            .iter()
            .filter(|&&ix| open[ix as usize] && leads.of(ix) > outcome.most_lead);
        let idle = f64::min(f64::from(round.left()), ahead.count() as f64)
            / round.snap.machine.cpus.len() as f64;
        let idle = if self.energy_share == 0.0 || outcome.is_dear {
            idle
        } else {
            0.0
        };
        self.state.idle = IDLE_FADES * self.state.idle + (1.0 - IDLE_FADES) * idle;
    }

    /// Chooses for all free CPUs.
    fn choose(&mut self, round: &mut Round<'_>, leads: &Leads) -> Outcome {
        let snap = round.snap;
        // Overdue tasks must run; a task of which nothing is known runs to become known; what needs several CPUs, or certain
        // ones, takes its turn among the others by its progress.
        let mut claimed = 0;
        let mut critical = 0;
        let some_are_predictable = snap.tasks.iter().any(is_predictable);
        for pos in 0..round.order.len() {
            let ix = round.order[pos];
            let task = round.task(ix);
            let is_due = task.overdue || task.estimates.executed == 0 || claimed < round.left();
            if is_predictable(task) && !task.overdue {
                claimed += 1;
                critical += u32::from(round.is_critical(ix));
                continue;
            }
            if !is_due {
                continue;
            }
            let free = round.left().saturating_sub(critical);
            let chosen = if task.cpus > free && !task.overdue {
                Err(WaitReason::Gang {
                    needs: task.cpus,
                    free,
                })
            } else if some_are_predictable && task.allowed.is_none() && task.cpus <= round.left() {
                // It gets its CPUs now, so that the others are chosen for what is left.
                let cpus = round.pick(ix);
                round.choose_on(ix, cpus, Purpose::Run);
                Ok(())
            } else {
                round.choose(ix, Purpose::Run)
            };
            if let Err(reason) = chosen {
                round.wait(ix, reason);
            }
        }
        let (cpus, places, elsewhere) = places(round);
        let most_lead = self.most_lead(round, leads, cpus.len());
        let mut candidates = self.candidates(round, leads, most_lead, &cpus);
        settle_critical(round, &mut candidates, &places);
        let mean =
            candidates.iter().map(|one| one.weight).sum::<f64>() / candidates.len().max(1) as f64;
        let price = self.energy_share * mean * self.work_per_joule();
        let model = self.power_of(&snap.machine);
        let search = |price: f64| {
            let power = Power {
                model,
                price,
                elsewhere: &elsewhere,
            };
            Search::new(&snap.contention, &candidates, &places, power).run()
        };
        let mut chosen = search(price);
        let may_run = !places.is_empty() && !candidates.is_empty();
        if price > 0.0 && may_run && chosen.work == 0.0 && elsewhere.iter().all(|&busy| busy == 0) {
            // The jobs that are left do less work per watt than those before. Waiting makes no work cheaper.
            chosen = search(0.0);
            (self.state.work, self.state.watts) = (0.0, 0.0);
        }
        if round.full && mean > 0.0 && chosen.watts > 0.0 {
            let state = &mut self.state;
            // What is not predicted is taken to do as much as the others with a core alone.
            let others = elsewhere.iter().sum::<usize>() as f64;
            state.work = FADES * state.work + chosen.work / mean + others;
            state.watts = FADES * state.watts + chosen.watts;
        }
        let open = round.open();
        for (&cpu, who) in cpus.iter().zip(&chosen.who) {
            if let Some(candidate) = who
                .map(|at| &candidates[at])
                .filter(|candidate| open[candidate.ix as usize])
            {
                round.choose_on(candidate.ix, CpuSet::from_iter([cpu]), Purpose::Run);
            }
        }
        let is_dear = chosen.work < DEAR * mean * self.work_per_joule() * chosen.watts;
        let left_out = chosen
            .left_out
            .into_iter()
            .map(|left| (candidates[left.candidate].ix, left))
            .collect();
        Outcome {
            left_out,
            most_lead,
            is_dear,
        }
    }

    fn power_of(&self, machine: &Machine) -> Model<'_> {
        if machine.core_types.len() < 2 {
            return Model::Cores(&self.power);
        }
        let idle_w = machine
            .cores
            .iter()
            .map(|core| self.core_power[kind_of(machine, core)].idle_w())
            .sum();
        Model::Types {
            idle_w,
            nj: self.core_power.map(|core| core.nj_per_instruction()),
        }
    }

    /// The lead beyond which a job does not run. Those that are not too far ahead keep only so many CPUs idle for their sake:
    /// one that is alone far behind would otherwise stop a large machine.
    fn most_lead(&self, round: &Round<'_>, leads: &Leads, places: usize) -> f64 {
        if self.state.idle > MOST_IDLE {
            return f64::INFINITY;
        }
        let open = round
            .order
            .iter()
            .filter(|&&ix| round.is_open(ix) && is_predictable(round.task(ix)));
        let mut all: Vec<f64> = open.map(|&ix| leads.of(ix)).collect();
        let near = all.iter().filter(|&&lead| lead <= FARTHEST).count();
        let wanted = places.saturating_sub(IDLE_FOR_EACH * near).min(all.len());
        if wanted <= near {
            return FARTHEST;
        }
        *all.select_nth_unstable_by(wanted - 1, f64::total_cmp).1
    }

    fn candidates<'a>(
        &self,
        round: &Round<'a>,
        leads: &Leads,
        most_lead: f64,
        cpus: &[CpuId],
    ) -> Vec<Candidate<'a>> {
        let snap = round.snap;
        let open = round.open();
        let flat = if self.energy_share > 0.0 { FLAT } else { 1.0 };
        let mut candidates = Vec::new();
        for (ix, task) in (0..).zip(&snap.tasks) {
            let Some(learnt) = task
                .estimates
                .learnt
                .as_ref()
                .value()
                .filter(|_| is_predictable(task))
            else {
                continue;
            };
            let integral = self.state.integrals.get(&task.id).copied().unwrap_or(0.0);
            let is_critical = round.is_critical(ix);
            // It runs whatever it weighs. As one that is behind it would weigh more than its company is worth.
            let behind = integral - leads.of(ix).min(MOST_LEAD);
            let weight = libm::exp(if is_critical { behind.max(0.0) } else { behind } / flat);
            let place_of = |set: &CpuSet| set.first().and_then(|cpu| cpus.binary_search(&cpu).ok());
            let stays = task.running.as_ref().filter(|_| task.stays(round.full));
            let fixed = stays.and_then(|running| match &running.placement {
                Placement::Exclusive { cpus, .. } => place_of(cpus),
                Placement::Shared { .. } => None,
            });
            let is_open = open[ix as usize] && (is_critical || leads.of(ix) <= most_lead);
            if fixed.is_some() || is_open {
                let last = place_of(&task.last_cpus);
                candidates.push(Candidate {
                    ix,
                    weight,
                    learnt,
                    last,
                    fixed,
                });
            }
        }
        candidates
    }
}

/// Gives critical jobs a place each, if they can on cores of their own, on the fastest, and where they ran last. The others
/// are chosen to go with them.
fn settle_critical(round: &Round<'_>, candidates: &mut [Candidate<'_>], places: &[Place]) {
    let cores = places.iter().map(|place| place.core + 1).max().unwrap_or(0);
    let (mut taken, mut busy) = (vec![false; places.len()], vec![false; cores]);
    for place in candidates.iter().filter_map(|one| one.fixed) {
        (taken[place], busy[places[place].core]) = (true, true);
    }
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&place| places[place].kind);
    // What was passed over once is taken for good.
    let (mut alone_from, mut free_from) = (0, 0);
    for one in candidates
        .iter_mut()
        .filter(|one| one.fixed.is_none() && round.is_critical(one.ix))
    {
        while alone_from < order.len()
            && (taken[order[alone_from]] || busy[places[order[alone_from]].core])
        {
            alone_from += 1;
        }
        while free_from < order.len() && taken[order[free_from]] {
            free_from += 1;
        }
        let Some(&found) = order.get(alone_from).or(order.get(free_from)) else {
            break;
        };
        let place = one
            .last
            .filter(|last| {
                !taken[*last]
                    && !busy[places[*last].core]
                    && places[*last].kind == places[found].kind
            })
            .unwrap_or(found);
        (taken[place], busy[places[place].core]) = (true, true);
        one.fixed = Some(place);
    }
}

/// The CPUs that are to be filled, and those of tasks that stay on one CPU and are known; in ascending order. And of each
/// memory domain how many cores are busy with others.
fn places(round: &Round<'_>) -> (Vec<CpuId>, Vec<Place>, Vec<usize>) {
    let machine = &*round.snap.machine;
    let mut set: CpuSet = machine
        .cpus
        .iter()
        .map(|cpu| cpu.id)
        .filter(|&cpu| round.is_free(cpu))
        .take(round.left() as usize)
        .collect();
    for task in round
        .snap
        .tasks
        .iter()
        .filter(|task| task.stays(round.full) && is_predictable(task))
    {
        if let Some(Placement::Exclusive { cpus, .. }) =
            task.running.as_ref().map(|running| &running.placement)
        {
            set.extend(cpus.iter());
        }
    }
    let mut awake = vec![false; machine.cores.len()];
    let mut elsewhere = vec![0; machine.memory_domains.len()];
    for cpu in machine
        .cpus
        .iter()
        .filter(|cpu| !set.contains(cpu.id) && !round.is_free(cpu.id))
    {
        if !std::mem::replace(&mut awake[cpu.core], true) {
            elsewhere[cpu.memory_domain] += 1;
        }
    }
    let (cpus, places) = set
        .iter()
        .filter_map(|cpu| {
            let cpu = &machine.cpus[machine.index_of(cpu)?];
            let Cpu {
                core,
                llc,
                memory_domain: domain,
                core_type: kind,
                ..
            } = *cpu;
            let place = Place {
                core,
                llc,
                domain,
                kind,
                awake: awake[cpu.core],
            };
            Some((cpu.id, place))
        })
        .unzip();
    (cpus, places, elsewhere)
}
