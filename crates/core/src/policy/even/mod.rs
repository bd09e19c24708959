//! `even`: equal progress for all jobs at the greatest predicted speed (ours).
//!
//! The weight of a job is w = exp(I - lead / tau): lead is its progress beyond the least, and I the negative sum of its
//! past leads over the mean. Progress is divided by the job's `weight` in the mix file. Each quantum runs the jobs, in the
//! pairing, with the greatest Σ w x predicted speed ([`choose`]). w grows by a factor of e for each tau that the job falls
//! behind. So progress stays together, and within that the machine is used as well as it can be. The lead alone would do (the method of
//! multiplicative weights for the greatest equal speed), but jobs that are hard to run would always stay some tau
//! behind. I removes that, as an integral does in a controller.
//!
//! A CPU stays idle if every job that could use it is too far ahead, or would cost the others more than it gains.
//!
//! The prediction is fitted to the intervals that jobs run anyway, and to short measurements ([`measure`]).

mod choose;
mod leads;
mod lengths;
mod measure;
mod room;

use super::params::{
    BIG_BUSY, BIG_CAPACITY, BIG_IDLE, P_MORE, P0, P1, P2, SMALL_BUSY, SMALL_CAPACITY, SMALL_IDLE,
    core_power, power_model,
};
use super::prelude::*;
use crate::model::cross_core::CoreType;
use crate::model::power::PowerModel;
use crate::topology::{CpuSet, Machine};
use choose::{Candidate, LeftOut, Model, Power, Search};
use leads::{Integrals, Leads, MOST_LEAD};
use lengths::Lengths;
use measure::MeasuringState;
use room::Room;
use std::collections::BTreeMap;

const OBJECTIVE: ParamSpec = choice(
    "objective",
    &["time", "energy", "edp", "mean"],
    "what equal progress should cost least of: time, energy, or energy x time; for the last two, cores stay idle where \
     they would cost more than they give, by the power of the machine. `mean` is not for equal progress, but for the \
     least mean turnaround: for jobs that arrive during the run, or differ in length",
);

/// A job with a greater lead than this, in tau, does not run, unless CPUs were idle because of that for this share of
/// the time: a job with a wrong estimate of progress, or one that can't catch up, must not stop the others.
const FARTHEST: f64 = 1.5;
const MOST_IDLE: f64 = 0.4;
/// Decay factor of the idle share, per quantum.
const IDLE_FADES: f64 = 0.98;
/// Maximum number of CPUs that idle for each job that is not too far ahead.
const IDLE_FOR_EACH: usize = 2;
/// Decay factor of past work and power, per quantum.
const FADES: f64 = 0.95;
/// Work per joule, as a share of that in the last quanta, below which work is dear.
const DEAR: f64 = 0.5;
/// Divisor of the logarithms of the weights where energy counts. Otherwise a job a little ahead would not be worth the
/// power of its core, though it will be in a moment: equal jobs would pause in turn.
const FLAT: f64 = 8.0;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "even",
    gist: "equal progress for all at the greatest predicted speed",
    source: "ours",
    for_research: false,
    time_shares: true,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: &[
        QUANTUM_S,
        OBJECTIVE,
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
            for_mean: params.word("objective") == "mean",
            power: power_model(params),
            core_power: core_power(params),
            state: State::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs(&[wanted(
        Capability::Counter(Counter::MmReads),
        "what jobs cost each other in caches and memory is not seen: only what they cost each other in a core counts",
    )]);
    needs.extend(PROGRESS_NEEDS);
    needs
}

struct Even {
    quantum: Nanos,
    /// Weight of energy against time: 0 for time alone, 1 for energy alone, 1/2 for their product.
    energy_share: f64,
    /// Whether the mean turnaround counts instead of equal progress.
    for_mean: bool,
    /// Power of a machine with equal cores, and of cores of two types, the fast one first.
    power: PowerModel,
    core_power: [CoreType; 2],
    state: State,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    measuring: MeasuringState,
    integrals: Integrals,
    lengths: Lengths,
    /// Decaying sums of weighted speed and of power in W. Weights are relative to their mean.
    work: f64,
    watts: f64,
    /// Moving average of the share of CPU time idle because of leads.
    idle: f64,
}

/// The outcome of a choice for the tasks left out.
struct Outcome {
    /// Worth and cost of the jobs considered and not chosen.
    left_out: BTreeMap<u32, LeftOut>,
    /// The lead beyond which no job was considered.
    most_lead: f64,
    /// Whether the chosen jobs do much less work per watt than those of the last quanta.
    is_dear: bool,
}

impl Outcome {
    /// Why a task that was not chosen waits, with `ahead` tasks before it.
    fn reason(&self, leads: &Leads, ix: u32, ahead: u32) -> WaitReason {
        if let Some(left) = self.left_out.get(&ix) {
            WaitReason::Outweighed {
                worth_milli: (left.worth * 1e3) as u64,
                loss_milli: (left.loss * 1e3) as u64,
                power_milli: (left.power * 1e3) as u64,
            }
        } else if leads.of(ix) > self.most_lead {
            WaitReason::Lead {
                progress_milli: (leads.progress[ix as usize] * 1e3) as u64,
                limit_milli: (leads.at(self.most_lead) * 1e3) as u64,
            }
        } else {
            WaitReason::Order { ahead }
        }
    }
}

impl Policy for Even {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let (mut round, leads) = self.begin(snap);
        // Even if all fit, the choice of the fast cores matters.
        let is_choice =
            self.energy_share > 0.0 || !round.all_fit() || snap.machine.core_types.len() > 1;
        let measuring = &mut self.state.measuring;
        if let Some((until, first)) = measuring.plan(&mut round, is_choice, &leads) {
            let basis = Basis {
                measures: Some(first),
                ..Basis::default()
            };
            self.state.quantum.end = until;
            return round.finish(until, basis, |_, _| WaitReason::Measuring { task: first });
        }
        let end = self.state.quantum.of_round(&round, self.quantum);
        if round.full && is_choice {
            self.state.integrals.add(snap, &leads);
        }
        round.order_by_progress(&leads.progress);
        // Between quanta there is nothing to choose, unless CPUs are idle on purpose.
        if !is_choice || (!round.full && self.energy_share == 0.0) {
            round.choose_in_order(Purpose::Run, false);
            return round.finish_in_order(end);
        }
        let outcome = self.choose(&mut round, &leads);
        if round.full {
            self.note_idle(&round, &leads, &outcome);
        }
        round.finish(end, Basis::default(), |ix, ahead| {
            outcome.reason(&leads, ix, ahead)
        })
    }

    state_is_a_field!();
}

/// Whether a task needs one CPU of any kind, and its speed can be predicted.
fn is_predictable(task: &TaskView) -> bool {
    task.cpus == 1 && task.allowed.is_none() && task.estimates.learnt.is_value()
}

/// The type of a core: 0 for the fastest, 1 for all others.
fn kind_of(machine: &Machine, core: &CpuSet) -> usize {
    let cpu = core.first().and_then(|cpu| machine.cpu(cpu));
    cpu.map_or(0, |cpu| cpu.core_type.min(1))
}

impl Even {
    /// The round, and the leads that decide in it. For the mean turnaround no job must run because it ends last.
    fn begin<'a>(&mut self, snap: &'a Snapshot) -> (Round<'a>, Leads) {
        if self.for_mean {
            self.state.lengths.note(snap);
            let leads = Leads::by_end(snap, &self.state.lengths, self.quantum);
            return (Round::keeping(snap, |_| false), leads);
        }
        let round = Round::new(snap);
        let leads = Leads::new(&round);
        (round, leads)
    }

    /// Weighted speed per watt in the last quanta. A set with more per watt makes work cheaper (Dinkelbach, "On
    /// Nonlinear Fractional Programming", Management Science 13, 1967).
    fn work_per_joule(&self) -> f64 {
        if self.state.watts > 0.0 {
            self.state.work / self.state.watts
        } else {
            0.0
        }
    }

    /// Updates the share of CPUs that idle because the waiting jobs are too far ahead. To save energy CPUs idle anyway;
    /// then this counts only where work was dear.
    fn note_idle(&mut self, round: &Round<'_>, leads: &Leads, outcome: &Outcome) {
        let idle = if self.energy_share == 0.0 || outcome.is_dear {
            let open = round.open();
            let is_ahead = |ix: &&u32| open[**ix as usize] && leads.of(**ix) > outcome.most_lead;
            let ahead = round.order.iter().filter(is_ahead).count();
            ahead.min(round.left() as usize) as f64 / round.snap.machine.cpus.len() as f64
        } else {
            0.0
        };
        self.state.idle = IDLE_FADES * self.state.idle + (1.0 - IDLE_FADES) * idle;
    }

    /// Chooses jobs for all free CPUs.
    fn choose(&mut self, round: &mut Round<'_>, leads: &Leads) -> Outcome {
        let snap = round.snap;
        choose_unpredictable(round);
        let room = Room::new(round);
        let most_lead = self.most_lead(round, leads, room.cpus.len());
        let mut candidates = self.candidates(round, leads, most_lead, &room);
        room.settle_critical(round, &mut candidates);
        let weights = candidates.iter().map(|one| one.weight);
        let mean = weights.sum::<f64>() / candidates.len().max(1) as f64;
        let mut power = Power {
            model: self.power_of(&snap.machine),
            price: self.energy_share * mean * self.work_per_joule(),
            elsewhere: &room.elsewhere,
        };
        let mut chosen = Search::new(&snap.contention, &candidates, &room.places, power).run();
        let others = room.elsewhere.iter().sum::<usize>();
        let may_run = !room.places.is_empty() && !candidates.is_empty();
        if power.price > 0.0 && may_run && chosen.work == 0.0 && others == 0 {
            // The jobs left do less work per watt than those before. Waiting makes no work cheaper.
            power.price = 0.0;
            chosen = Search::new(&snap.contention, &candidates, &room.places, power).run();
            (self.state.work, self.state.watts) = (0.0, 0.0);
        }
        if round.full && mean > 0.0 && chosen.watts > 0.0 {
            let state = &mut self.state;
            // A core with unpredictable tasks counts as a job of mean weight at full speed.
            state.work = FADES * state.work + chosen.work / mean + others as f64;
            state.watts = FADES * state.watts + chosen.watts;
        }
        let open = round.open();
        for (&cpu, who) in room.cpus.iter().zip(&chosen.who) {
            if let Some(ix) = who.map(|at| candidates[at].ix)
                && open[ix as usize]
            {
                round.choose_on(ix, cpu.into(), Purpose::Run);
            }
        }
        let left_out = chosen.left_out.into_iter();
        Outcome {
            is_dear: chosen.work < DEAR * mean * self.work_per_joule() * chosen.watts,
            left_out: left_out
                .map(|left| (candidates[left.candidate].ix, left))
                .collect(),
            most_lead,
        }
    }

    fn power_of(&self, machine: &Machine) -> Model<'_> {
        if machine.core_types.len() < 2 {
            return Model::Cores(&self.power);
        }
        let of_core = |core: &CpuSet| self.core_power[kind_of(machine, core)].idle_w();
        Model::Types {
            idle_w: machine.cores.iter().map(of_core).sum(),
            nj: self.core_power.map(|core| core.nj_per_instruction()),
        }
    }

    /// The lead beyond which a job does not run. The number of CPUs idle for each job behind is limited: otherwise a
    /// single job far behind would stop a large machine.
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
        room: &Room,
    ) -> Vec<Candidate<'a>> {
        let open = round.open();
        let mut candidates = Vec::new();
        for (ix, task) in (0..).zip(&round.snap.tasks) {
            let Some(learnt) = task.estimates.learnt.as_ref().value() else {
                continue;
            };
            if !is_predictable(task) {
                continue;
            }
            let stays = task.stays(round.full).then(|| task.exclusive_cpus());
            let fixed = stays.flatten().and_then(|cpus| room.place_of(cpus));
            let may_run = round.is_critical(ix) || leads.of(ix) <= most_lead;
            if fixed.is_some() || (open[ix as usize] && may_run) {
                candidates.push(Candidate {
                    ix,
                    weight: self.weight(round, leads, ix),
                    learnt,
                    last: room.place_of(&task.last_cpus),
                    fixed,
                });
            }
        }
        candidates
    }

    fn weight(&self, round: &Round<'_>, leads: &Leads, ix: u32) -> f64 {
        if self.for_mean {
            return 1.0 / leads.progress[ix as usize];
        }
        let integral = self.state.integrals.of(round.task(ix).id);
        let mut behind = integral - leads.of(ix).min(MOST_LEAD);
        if round.is_critical(ix) {
            // It runs whatever its weight. A weight of at least 1 keeps away co-runners that slow it by more than they
            // gain.
            behind = behind.max(0.0);
        }
        libm::exp(if self.energy_share > 0.0 {
            behind / FLAT
        } else {
            behind
        })
    }
}

/// Chooses the tasks whose speed can't be predicted. Overdue tasks must run. New tasks run to be measured. Tasks that
/// need several CPUs, or certain ones, take turns with the others by progress.
fn choose_unpredictable(round: &mut Round<'_>) {
    let mut claimed = 0;
    let mut critical = 0;
    let some_are_predictable = round.snap.tasks.iter().any(|task| is_predictable(task));
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
            // It gets its CPUs now, and the others are chosen for the rest.
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
}
