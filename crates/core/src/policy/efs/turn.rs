//! One decision: overdue tasks, the longest starved, then each free CPU from its queue, then the rest.

use super::known::EfsTask;
use super::queues::Queues;
use super::settings::EfsSettings;
use super::shared::{DomainPlace, SharedResources};
use super::starved;
use crate::decision::WaitReason;
use crate::model::bus_admission_table::BusAdmissionTable;
use crate::model::objective::Objective;
use crate::placement::Purpose;
use crate::policy::round::Round;
use crate::snapshot::TaskView;
use crate::units::Nanos;

/// A decision in the making. CPUs are given by their positions in the machine.
pub(super) struct Turn<'a> {
    pub(super) settings: &'a EfsSettings,
    pub(super) round: Round<'a>,
    pub(super) known: &'a mut [EfsTask],
    pub(super) queues: Queues,
    pub(super) shared: SharedResources<'a>,
    pub(super) free: Vec<bool>,
    /// In a full round, the task on each CPU not yet decided: the others are judged beside it.
    pub(super) incumbents: Vec<Option<u32>>,
    /// Number of free CPUs of each domain: on active cores, and on idle ones.
    pub(super) free_of: Vec<[u32; 2]>,
    /// The gang refused since the last choice, and where.
    pub(super) refused_gang: Option<(u32, DomainPlace)>,
    /// Whether a starved task keeps its CPUs until its slice ends.
    pub(super) protect: bool,
    /// Whether a task that woke on its CPUs does not fit.
    pub(super) overloaded: bool,
    /// Where each task was last refused.
    pub(super) refused: Vec<Option<DomainPlace>>,
    /// The chosen tasks.
    pub(super) chosen: Vec<u32>,
    /// The longest starved task, and the end of its slice.
    pub(super) starved: Option<(u32, Nanos)>,
}

/// Whether a placement has to fit the bus and the devices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FitRule {
    /// Runs only if it fits.
    Must,
    /// Runs in any case.
    NeedNot,
}

impl<'a> Turn<'a> {
    /// Starts with the tasks that stay where they run.
    pub(super) fn new(
        settings: &'a EfsSettings,
        table: &'a BusAdmissionTable,
        round: Round<'a>,
        known: &'a mut [EfsTask],
        protect: bool,
    ) -> Turn<'a> {
        let snap = round.snap;
        let machine = &*snap.machine;
        let queues = Queues::new(settings, table, &round, known);
        let mut shared = SharedResources::new(settings, table, machine);
        let mut overloaded = false;
        // Tasks that woke on their CPUs come last: they are judged beside the others.
        for woken in [false, true] {
            for (task, known) in snap
                .tasks
                .iter()
                .zip(known.iter())
                .filter(|(_, known)| known.woke == woken)
            {
                let keeps =
                    task.stays(round.full) || (protect && is_in_starved_slice(task, snap.now));
                // A sleeper does not use the bus. This is decided anew when it wakes.
                if keeps
                    && !task.asleep
                    && let Some(cpus) = task.exclusive_cpus()
                {
                    let cpus: Vec<usize> = machine.positions(cpus).collect();
                    if let Some(&first) = cpus
                        .first()
                        .filter(|_| woken && settings.objective != Objective::Throughput)
                    {
                        let place = DomainPlace {
                            domain: shared.buses.of(first),
                            joining: shared.buses.joining(&cpus),
                        };
                        let waiting = round.order.len() + 1;
                        overloaded |= shared.obstacle(known, place, waiting).is_some();
                    }
                    shared.add(known, &cpus);
                }
            }
        }
        let mut free: Vec<bool> = machine
            .cpus
            .iter()
            .map(|cpu| round.is_free(cpu.id))
            .collect();
        let mut incumbents = vec![None; machine.cpus.len()];
        for (ix, (task, known)) in snap
            .tasks
            .iter()
            .zip(known.iter())
            .enumerate()
            .filter(|(_, (task, _))| round.full && !task.asleep && !task.stays(true))
        {
            let Some(cpus) = task.exclusive_cpus() else {
                continue;
            };
            let cpus: Vec<usize> = machine.positions(cpus).collect();
            // Starved slices and gangs that share their CPUs with them were counted above.
            if cpus.iter().all(|&cpu| free[cpu]) {
                shared.add(known, &cpus);
                cpus.iter()
                    .for_each(|&cpu| (free[cpu], incumbents[cpu]) = (false, Some(ix as u32)));
            }
        }
        let mut free_of = vec![[0; 2]; machine.memory_domains.len()];
        for cpu in (0..free.len()).filter(|&cpu| free[cpu]) {
            free_of[shared.buses.of(cpu)][usize::from(shared.buses.core_is_idle(cpu))] += 1;
        }
        let refused = vec![None; snap.tasks.len()];
        Turn {
            settings,
            round,
            known,
            queues,
            shared,
            free,
            incumbents,
            free_of,
            refused_gang: None,
            protect,
            overloaded,
            refused,
            chosen: Vec::new(),
            starved: None,
        }
    }

    /// Gives out all free CPUs, or those that are worth it.
    pub(super) fn give_out(&mut self) {
        for position in 0..self.round.overdue() {
            let ix = self.round.order[position];
            self.make_room(ix);
            self.try_anywhere(ix, FitRule::NeedNot);
        }
        if self.round.full && !self.in_starved_slice() {
            self.run_starved();
        }
        self.run_queues();
        (0..self.incumbents.len()).for_each(|cpu| self.vacate(cpu));
        self.run_rest();
        self.keep_sleepers();
    }

    /// Number of tasks not chosen yet.
    pub(super) fn waiting(&self) -> usize {
        self.round.order.len().saturating_sub(self.chosen.len())
    }

    fn in_starved_slice(&self) -> bool {
        self.protect
            && self
                .round
                .snap
                .tasks
                .iter()
                .any(|task| is_in_starved_slice(task, self.round.snap.now))
    }

    /// Runs the longest starved task of the machine at once, whatever the load.
    fn run_starved(&mut self) {
        let rule = &self.settings.rule;
        let chosen = starved::longest(rule, &self.round, &self.queues, self.known);
        let Some(ix) = chosen else { return };
        let known = &self.known[ix as usize];
        let slice = self.settings.rule.slice_ns(
            self.queues.lag(known),
            u64::from(self.queues.tasks[known.home as usize]),
        );
        self.make_room(ix);
        if self.try_anywhere(ix, FitRule::NeedNot) {
            self.starved = Some((ix, self.round.snap.now + Nanos(slice)));
        }
    }

    /// Vacates the CPUs of a task that runs whether it fits or not: its home, or all CPUs for a gang.
    fn make_room(&mut self, ix: u32) {
        let task = self.round.task(ix);
        let home = self.known[ix as usize].home as usize;
        let all = 0..self.incumbents.len();
        if task.cpus > 1 {
            all.for_each(|cpu| self.vacate(cpu));
        } else if !all
            .clone()
            .any(|cpu| self.free[cpu] && self.may_use(task, cpu))
        {
            let mut near = all.clone().map(|step| (home + step) % all.len());
            let taken = near.find(|&cpu| self.incumbents[cpu].is_some() && self.may_use(task, cpu));
            taken.into_iter().for_each(|cpu| self.vacate(cpu));
        }
    }

    /// The first task of a CPU's queue that may be chosen.
    fn first_open(&self, cpu: usize) -> Option<u32> {
        self.queues
            .members(cpu)
            .map(|position| self.queues.member(position))
            .find(|&ix| self.round.is_open(ix))
    }

    /// Gives each CPU the first task of its queue that fits beside the others. The CPU whose first task has waited
    /// longest comes first; CPUs of active cores come after those of idle cores.
    ///
    /// In a full round a CPU not yet decided counts with the task that runs there (EFS, section 4.2: each CPU decides
    /// for itself, beside the tasks of the others). So a task keeps running until one before it in its own queue fits,
    /// or until it no longer fits itself. Tasks that exclude each other take turns by starving.
    fn run_queues(&mut self) {
        let mut turns: Vec<(Nanos, Nanos, u32, u32)> = Vec::new();
        for cpu in 0..self.free.len() {
            if (self.free[cpu] || self.incumbents[cpu].is_some())
                && let Some(ix) = self.first_open(cpu)
            {
                // Of the running tasks, the one that has run longest is judged first: it gives way to a starved task.
                let sits = self.incumbents[cpu].and_then(|ix| self.round.task(ix).running.as_ref());
                let since = sits.map_or(Nanos::ZERO, |running| running.since);
                turns.push((self.round.task(ix).waiting_since, since, ix, cpu as u32));
            }
        }
        turns.sort_unstable();
        let mut busy_cores: Vec<usize> = Vec::new();
        for (_, _, _, cpu) in turns {
            let cpu = cpu as usize;
            let own = u32::from(self.incumbents[cpu].is_some());
            if self.shared.buses.on_core(cpu) == own {
                self.vacate(cpu);
                self.run_queue(cpu);
            } else {
                busy_cores.push(cpu);
            }
        }
        for cpu in busy_cores {
            self.vacate(cpu);
            self.run_queue(cpu);
        }
    }

    fn run_queue(&mut self, cpu: usize) {
        for position in self.queues.members(cpu) {
            if !self.free[cpu] {
                return;
            }
            let ix = self.queues.member(position);
            if self.round.is_open(ix) {
                self.try_from_home(ix, cpu);
            }
        }
    }

    /// Runs a task at home if it fits. If its home's core is active, an idle core is tried first: it is faster there
    /// for the power of a core.
    fn try_from_home(&mut self, ix: u32, home: usize) {
        let domain = self.shared.buses.of(home);
        let elsewhere = !self.shared.buses.core_is_idle(home) && self.free_of[domain][1] > 0;
        if elsewhere || self.round.task(ix).cpus > 1 {
            self.try_anywhere(ix, FitRule::Must);
        } else {
            self.try_on(ix, &[home], FitRule::Must);
        }
    }

    /// Fills CPUs without a fitting task of their own from other queues, the longest waiting first.
    fn run_rest(&mut self) {
        for position in 0..self.round.order.len() {
            if self.round.left() == 0 {
                return;
            }
            let ix = self.round.order[position];
            if self.round.is_open(ix) {
                self.try_anywhere(ix, FitRule::Must);
            }
        }
    }

    /// Keeps sleepers on CPUs that no other task wants.
    fn keep_sleepers(&mut self) {
        let awake = self.round.order.len();
        self.round.consider_sleepers();
        for position in awake..self.round.order.len() {
            let ix = self.round.order[position];
            let Some(cpus) = self.round.task(ix).exclusive_cpus() else {
                continue;
            };
            if cpus.iter().all(|cpu| self.round.is_free(cpu)) {
                self.round.choose_on(ix, cpus.clone(), Purpose::Run);
            }
        }
    }

    /// Time until the next full decision: the shortest slice of a chosen task with others in its queue, at most a
    /// quantum.
    pub(super) fn length(&self) -> Nanos {
        let rule = &self.settings.rule;
        let mut length = self.settings.quantum.0;
        if self.someone_waits() {
            for &ix in &self.chosen {
                let home = self.known[ix as usize].home as usize;
                let (tasks, weight) = (
                    u64::from(self.queues.tasks[home]),
                    self.queues.weight[home].max(1),
                );
                if tasks > 1 {
                    let own = self.queues.weights.whole(self.round.task(ix));
                    let slice =
                        u128::from(rule.period_ns(tasks)) * u128::from(own) / u128::from(weight);
                    length = length.min(u64::try_from(slice).unwrap_or(u64::MAX));
                }
            }
        }
        let mut length = length.max(rule.least_slice_ns);
        if self.ends_soon() {
            length = length.min(rule.least_slice_ns);
        }
        // All CPUs are decided when a starved slice ends.
        let snap = self.round.snap;
        let in_slice = snap
            .tasks
            .iter()
            .filter(|task| self.protect && is_in_starved_slice(task, snap.now));
        let ends = in_slice.filter_map(|task| task.running.as_ref()?.lease_end);
        for end in ends.chain(self.starved.map(|(_, end)| end)) {
            length = length.min((end - snap.now).0);
        }
        Nanos(length.max(1))
    }

    fn someone_waits(&self) -> bool {
        self.round.order.iter().any(|&ix| self.round.is_open(ix))
    }

    /// Whether the next decision should come soon: a first guess of a demand keeps others waiting, or a task that woke
    /// waits, or runs and does not fit.
    pub(super) fn ends_soon(&self) -> bool {
        let guessed = self
            .chosen
            .iter()
            .any(|&ix| self.known[ix as usize].is_unmeasured());
        self.overloaded
            || self
                .round
                .order
                .iter()
                .any(|&ix| self.round.is_open(ix) && (guessed || self.known[ix as usize].woke))
    }

    /// Records why each other task waits.
    pub(super) fn explain(&mut self) {
        for cpu in 0..self.free.len() {
            let mut ahead = 0;
            for position in self.queues.members(cpu) {
                let ix = self.queues.member(position);
                if self.round.is_open(ix) {
                    let reason = self.reason(ix, ahead);
                    self.round.wait(ix, reason);
                    ahead += 1;
                }
            }
        }
    }

    fn reason(&mut self, ix: u32, ahead: u32) -> WaitReason {
        if let Some(refusal) = self.refusal(ix) {
            return refusal;
        }
        let (needs, free) = (self.round.task(ix).cpus, self.round.left());
        if needs > free && needs > 1 {
            WaitReason::Gang { needs, free }
        } else if free > 0 {
            WaitReason::Affinity
        } else {
            WaitReason::Order { ahead }
        }
    }
}

/// Whether a task is in its starved slice. No other task has a lease.
pub(super) fn is_in_starved_slice(task: &TaskView, now: Nanos) -> bool {
    !task.asleep
        && task
            .running
            .as_ref()
            .is_some_and(|running| running.lease_end.is_some_and(|end| end > now))
}
