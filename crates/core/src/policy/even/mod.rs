//! `even`: equal progress for all jobs at the greatest predicted speed (ours).
//!
//! The weight of a job is w = exp(-lead / tau): lead is its progress beyond the median. Progress is divided by the job's
//! `weight` in the mix file. Each quantum runs the jobs, in the pairing, with the greatest Σ w x predicted speed
//! ([`choose`]). w grows by a factor of e for each tau that the job falls behind. So progress stays together, and within
//! that the machine is used as well as it can be (the method of multiplicative weights for the greatest equal speed).
//!
//! A CPU stays idle if every job that could use it is too far ahead, or would cost the others more than it gains.
//!
//! The prediction is fitted to the intervals that jobs run anyway, and to short measurements ([`measure`]).

mod alone;
mod choose;
mod homes;
mod leads;
mod lengths;
mod measure;
mod round_cpus;

use super::params::{
    BIG_BUSY, BIG_CAPACITY, BIG_IDLE, P_MORE, P0, P1, P2, SMALL_BUSY, SMALL_CAPACITY, SMALL_IDLE,
    core_power, power_model,
};
use super::prelude::*;
use crate::estimate::MEMORY;
use crate::model::cross_core::CoreType;
use crate::model::power::PowerModel;
use crate::topology::{CpuSet, Machine};
use alone::choose_alone;
use choose::{JobCandidate, LeftOut, Model, Power, Search};
use homes::Homes;
use leads::Leads;
use lengths::Lengths;
use measure::MeasuringState;
use round_cpus::RoundCpus;
use std::collections::BTreeMap;

const OBJECTIVE: ParamSpec = choice(
    "objective",
    &["time", "energy", "edp", "mean"],
    "what equal progress should cost least of: time, energy, or energy x time; for the last two, cores stay idle where \
     they would cost more than they give, by the power of the machine. `mean` is not for equal progress, but for the \
     least mean turnaround: for jobs that arrive during the run, or differ in length",
);

/// Divisor of the logarithms of the weights where energy counts. Otherwise a job a little ahead would not be worth the
/// power of its core, though it will be in a moment: equal jobs would pause in turn.
const FLAT: f64 = 2.0;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "even",
    gist: "equal progress for all at the greatest predicted speed",
    source: "ours",
    for_research: false,
    time_shares: true,
    kernel_shares: false,
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
    needs: &needs,
    build: &|params| {
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
    lengths: Lengths,
    /// Decaying sums of weighted speed and of power in W. Weights are relative to their mean.
    work: f64,
    watts: f64,
}

/// Why a task that was not chosen waits, with `ahead` tasks before it. `left_out`: worth and cost of the jobs considered
/// and not chosen.
fn reason(left_out: &BTreeMap<u32, LeftOut>, leads: &Leads, ix: u32, ahead: u32) -> WaitReason {
    if let Some(left) = left_out.get(&ix) {
        WaitReason::Outweighed {
            worth_milli: (left.worth * 1e3) as u64,
            loss_milli: (left.loss * 1e3) as u64,
            power_milli: (left.power * 1e3) as u64,
        }
    } else if leads.is_ahead(ix) {
        WaitReason::Lead {
            progress_milli: (leads.progress[ix as usize] * 1e3) as u64,
            limit_milli: (leads.limit * 1e3) as u64,
        }
    } else {
        WaitReason::Order { ahead }
    }
}

impl Policy for Even {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let (mut round, leads) = self.begin(snap);
        let is_choice = self.is_choice(&round);
        // For the mean turnaround a job that arrives begins at once.
        let measures = is_choice && !(self.for_mean && has_new(&round));
        let measuring = &mut self.state.measuring;
        if let Some((until, first)) = measuring.plan(&mut round, measures, self.quantum) {
            let basis = Basis {
                measures: Some(first),
                ..Basis::default()
            };
            self.state.quantum.end = until;
            return round.finish(until, basis, |_, _| WaitReason::Measuring { task: first });
        }
        let end = self.state.quantum.of_round(&round, self.quantum);
        round.order_by_progress(&leads.progress);
        // Between quanta there is nothing to choose, unless CPUs are idle on purpose.
        if !is_choice || (!round.full && self.energy_share == 0.0) {
            if !self.for_mean || !choose_alone(&mut round) {
                round.choose_in_order(Purpose::Run, false);
            }
            return round.finish_in_order(end);
        }
        let left_out = self.choose(&mut round, &leads);
        round.finish(end, Basis::default(), |ix, ahead| {
            reason(&left_out, &leads, ix, ahead)
        })
    }

    /// For the mean turnaround progress tells how long a job takes.
    fn evens_progress(&self) -> bool {
        !self.for_mean
    }

    /// It shows how much time a job still needs.
    fn wants_visible(&self) -> bool {
        self.for_mean
    }

    state_is_a_field!();
}

/// Whether a task never ran.
fn has_new(round: &Round<'_>) -> bool {
    let mut waiting = round.order.iter();
    waiting.any(|&ix| round.task(ix).estimates.executed == 0)
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
        let mut round = Round::new(snap);
        if round.all_fit() {
            // Nobody has to wait, so nobody would end last for that.
            round = Round::keeping(snap, |_| false);
        }
        let leads = Leads::new(&round);
        (round, leads)
    }

    /// Whether it matters who runs where: tasks wait or share cores, cores may idle, or cores are of two types. For the
    /// mean turnaround nobody should pause for jobs that share cores.
    fn is_choice(&self, round: &Round<'_>) -> bool {
        let suffices = if self.for_mean {
            round.all_fit()
        } else {
            round.each_has_cores()
        };
        self.energy_share > 0.0 || round.snap.machine.core_types.len() > 1 || !suffices
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

    /// Chooses jobs for all free CPUs. Returns the worth and cost of those left out.
    fn choose(&mut self, round: &mut Round<'_>, leads: &Leads) -> BTreeMap<u32, LeftOut> {
        let snap = round.snap;
        choose_unpredictable(round);
        let round_cpus = RoundCpus::new(round);
        let candidates = self.candidates(round, leads, &round_cpus);
        let weights = candidates.iter().map(|one| one.weight);
        let mean = weights.sum::<f64>() / candidates.len().max(1) as f64;
        let mut power = Power {
            model: self.power_of(&snap.machine),
            price: self.energy_share * mean * self.work_per_joule(),
            elsewhere: &round_cpus.elsewhere,
        };
        let mut chosen =
            Search::new(&snap.contention, &candidates, &round_cpus.places, power).run();
        let others = round_cpus.elsewhere.iter().sum::<usize>();
        let may_run = !round_cpus.places.is_empty() && !candidates.is_empty();
        if power.price > 0.0 && may_run && chosen.work == 0.0 && others == 0 {
            // The jobs left do less work per watt than those before. Waiting makes no work cheaper.
            power.price = 0.0;
            chosen = Search::new(&snap.contention, &candidates, &round_cpus.places, power).run();
            (self.state.work, self.state.watts) = (0.0, 0.0);
        }
        if round.full && mean > 0.0 && chosen.watts > 0.0 {
            let state = &mut self.state;
            // A core with unpredictable tasks counts as a job of mean weight at full speed.
            state.work = (1.0 - 1.0 / MEMORY) * state.work + chosen.work / mean + others as f64;
            state.watts = (1.0 - 1.0 / MEMORY) * state.watts + chosen.watts;
        }
        let open = round.open();
        for (&cpu, who) in round_cpus.cpus.iter().zip(&chosen.who) {
            if let Some(ix) = who.map(|at| candidates[at].ix)
                && open[ix as usize]
            {
                round.choose_on(ix, cpu.into(), Purpose::Run);
            }
        }
        let left_out = chosen.left_out.into_iter();
        left_out
            .map(|left| (candidates[left.candidate].ix, left))
            .collect()
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

    fn candidates<'a>(
        &self,
        round: &Round<'a>,
        leads: &Leads,
        round_cpus: &RoundCpus,
    ) -> Vec<JobCandidate<'a>> {
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
            let fixed = stays.flatten().and_then(|cpus| round_cpus.place_of(cpus));
            let may_run = round.is_critical(ix) || !leads.is_ahead(ix);
            if fixed.is_some() || (open[ix as usize] && may_run) {
                candidates.push(JobCandidate {
                    ix,
                    weight: self.weight(round, leads, ix),
                    learnt,
                    last: round_cpus.place_of(&task.last_cpus),
                    runs: task.running.is_some(),
                    home: task.home(&round.snap.machine),
                    fixed,
                    is_critical: round.is_critical(ix),
                });
            }
        }
        candidates
    }

    fn weight(&self, round: &Round<'_>, leads: &Leads, ix: u32) -> f64 {
        if self.for_mean {
            return 1.0 / leads.progress[ix as usize];
        }
        let mut behind = leads.behind(ix);
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
    let mut homes = Homes::of(round.snap);
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
        } else if let Some(cpus) = homes.first_cpus(round, ix) {
            round.choose_on(ix, cpus, Purpose::Run);
            Ok(())
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
