//! Finds a CPU for a task: at home, on an idle core, elsewhere, or several for a gang, if it fits the bus.

use super::domains::Joining;
use super::shared::{DomainPlace, Obstacle};
use super::turn::{FitRule, Turn};
use crate::decision::WaitReason;
use crate::placement::Purpose;
use crate::snapshot::TaskView;
use crate::topology::CpuSet;

impl Turn<'_> {
    /// Runs a task on any free CPUs that it may use, if it fits or `fit` does not matter.
    pub(super) fn try_anywhere(&mut self, ix: u32, fit: FitRule) -> bool {
        let task = self.round.task(ix);
        if task.cpus > self.round.left() {
            return false;
        }
        self.leave(ix);
        let home = self.known[ix as usize].home as usize;
        if task.cpus > 1 {
            return self.try_gang(ix, home, fit);
        }
        let own = self.shared.buses.of(home);
        // The free CPUs of a domain differ only in whether their cores are idle. Idle cores are faster.
        let is_best = self.shared.buses.core_is_idle(home) || self.free_of[own][1] == 0;
        if self.free[home] && is_best && self.try_on(ix, &[home], fit) {
            return true;
        }
        for domain in
            std::iter::once(own).chain((0..self.free_of.len()).filter(|&domain| domain != own))
        {
            for idle in [true, false] {
                if self.free_of[domain][usize::from(idle)] == 0 {
                    continue;
                }
                let place = one_cpu(domain, idle);
                if self.is_refused(ix, place, fit) {
                    self.refused[ix as usize] = Some(place);
                } else if let Some(cpu) = self.free_cpu(task, home, domain, idle) {
                    self.run_on(ix, &[cpu]);
                    return true;
                }
            }
        }
        false
    }

    /// Takes a task off the CPUs that it still holds: it is judged beside the others, not beside itself.
    fn leave(&mut self, ix: u32) {
        let running = self.round.task(ix).running.as_ref();
        let first = running.and_then(|running| running.placement.cpus().first());
        if let Some(cpu) = first.and_then(|cpu| self.round.snap.machine.index_of(cpu))
            && self.incumbents[cpu] == Some(ix)
        {
            self.vacate(cpu);
        }
    }

    /// A free CPU of a domain that a task may use, on an idle or an active core; the search starts at its home.
    fn free_cpu(&self, task: &TaskView, home: usize, domain: usize, idle: bool) -> Option<usize> {
        let cpus = self.free.len();
        (0..cpus).map(|step| (home + step) % cpus).find(|&cpu| {
            self.free[cpu]
                && self.shared.buses.of(cpu) == domain
                && self.shared.buses.core_is_idle(cpu) == idle
                && self.may_use(task, cpu)
        })
    }

    pub(super) fn may_use(&self, task: &TaskView, cpu: usize) -> bool {
        task.may_use(self.round.snap.machine.cpus[cpu].id)
    }

    fn try_gang(&mut self, ix: u32, home: usize, fit: FitRule) -> bool {
        let task = self.round.task(ix);
        if fit == FitRule::Must
            && let Some((other, place)) = self.refused_gang
            && task.allowed.is_none()
            && self.round.task(other).cpus == task.cpus
            && self.known[ix as usize].asks_no_less_than(&self.known[other as usize])
        {
            self.refused[ix as usize] = Some(place);
            return false;
        }
        match self.gang_cpus(task, home) {
            Some(cpus) => self.try_on(ix, &cpus, fit),
            None => false,
        }
    }

    /// Free CPUs for a gang: those of its last run, then of the domain of its home, then others.
    fn gang_cpus(&self, task: &TaskView, home: usize) -> Option<Vec<usize>> {
        let (all, needs) = (self.free.len(), task.cpus as usize);
        let own = self.shared.buses.of(home);
        let last = self.round.snap.machine.positions(&task.last_cpus);
        let near = (0..all).map(|step| (home + step) % all);
        let mut cpus: Vec<usize> = Vec::with_capacity(needs);
        let there = near.clone().filter(|&cpu| self.shared.buses.of(cpu) == own);
        let elsewhere = near.filter(|&cpu| self.shared.buses.of(cpu) != own);
        for cpu in last.chain(there).chain(elsewhere) {
            if self.free[cpu] && self.may_use(task, cpu) && !cpus.contains(&cpu) {
                cpus.push(cpu);
                if cpus.len() == needs {
                    return Some(cpus);
                }
            }
        }
        None
    }

    /// Runs a task on these free CPUs, if it fits or `fit` does not matter.
    pub(super) fn try_on(&mut self, ix: u32, cpus: &[usize], fit: FitRule) -> bool {
        self.leave(ix);
        let place = self.place_of(cpus);
        if self.is_refused(ix, place, fit) {
            self.refused[ix as usize] = Some(place);
            if cpus.len() > 1 && self.round.task(ix).allowed.is_none() {
                self.refused_gang = Some((ix, place));
            }
            return false;
        }
        self.run_on(ix, cpus);
        true
    }

    /// What a task on these CPUs would join. A gang across domains is judged on the domain of its first CPU.
    fn place_of(&self, cpus: &[usize]) -> DomainPlace {
        DomainPlace {
            domain: self.shared.buses.of(cpus[0]),
            joining: self.shared.buses.joining(cpus),
        }
    }

    fn is_refused(&mut self, ix: u32, place: DomainPlace, fit: FitRule) -> bool {
        fit == FitRule::Must && self.obstacle(ix, place).is_some()
    }

    /// What a task does not fit in a place.
    fn obstacle(&mut self, ix: u32, place: DomainPlace) -> Option<Obstacle> {
        let waiting = self.waiting();
        let known = &self.known[ix as usize];
        self.shared.obstacle(known, place, waiting)
    }

    /// Why a task that was refused waits, when all are chosen; `None` if the fit is not what keeps it waiting.
    ///
    /// Tasks chosen after its refusal count too. Of several free places the one with the greatest threshold tells. If
    /// none is free, it is judged where it was last tried, as one more task.
    pub(super) fn refusal(&mut self, ix: u32) -> Option<WaitReason> {
        let last = self.refused[ix as usize]?;
        let free = self.free_places(ix);
        let has_room = !free.is_empty();
        let places = if has_room { free } else { vec![last] };
        let mut refusals = Vec::new();
        for place in places {
            match self.refusal_in(ix, place) {
                Some(refusal) => refusals.push(refusal),
                None => return has_room.then_some(WaitReason::FitsNow),
            }
        }
        refusals.into_iter().max_by_key(threshold_milli)
    }

    fn refusal_in(&mut self, ix: u32, place: DomainPlace) -> Option<WaitReason> {
        let obstacle = self.obstacle(ix, place)?;
        let known = &self.known[ix as usize];
        Some(self.shared.refusal(known, place, obstacle))
    }

    /// The places that a task could take now.
    fn free_places(&self, ix: u32) -> Vec<DomainPlace> {
        let task = self.round.task(ix);
        let home = self.known[ix as usize].home as usize;
        if task.cpus > 1 {
            let cpus = self.gang_cpus(task, home);
            return cpus.iter().map(|cpus| self.place_of(cpus)).collect();
        }
        let mut places = Vec::new();
        for domain in 0..self.free_of.len() {
            for idle in [true, false] {
                if self.free_cpu(task, home, domain, idle).is_some() {
                    places.push(one_cpu(domain, idle));
                }
            }
        }
        places
    }

    fn run_on(&mut self, ix: u32, cpus: &[usize]) {
        let task = self.round.task(ix);
        let known = &mut self.known[ix as usize];
        let machine = &*self.round.snap.machine;
        for &cpu in cpus {
            let domain = self.shared.buses.of(cpu);
            self.free[cpu] = false;
            self.free_of[domain][usize::from(self.shared.buses.core_is_idle(cpu))] -= 1;
            if self.shared.buses.core_is_idle(cpu) {
                // The core's other CPUs no longer belong to an idle core.
                let core = &machine.cores[machine.cpus[cpu].core];
                for sibling in machine.positions(core) {
                    if self.free[sibling] {
                        let of = &mut self.free_of[self.shared.buses.of(sibling)];
                        of[1] -= 1;
                        of[0] += 1;
                    }
                }
            }
            self.shared.add(known, &[cpu]);
        }
        if !cpus.contains(&(known.home as usize)) {
            let weight = self.queues.weights.whole(task);
            self.queues.rehome(known, weight, cpus[0]);
        }
        let set: CpuSet = cpus.iter().map(|&cpu| machine.cpus[cpu].id).collect();
        self.round.choose_on(ix, set, Purpose::Run);
        self.chosen.push(ix);
        self.refused_gang = None;
    }

    /// Takes the incumbent of a CPU off all its CPUs, to free them.
    pub(super) fn vacate(&mut self, cpu: usize) {
        let Some(ix) = self.incumbents[cpu] else {
            return;
        };
        let machine = &*self.round.snap.machine;
        let known = &self.known[ix as usize];
        let Some(running) = &self.round.task(ix).running else {
            return;
        };
        for cpu in machine.positions(running.placement.cpus()) {
            self.incumbents[cpu] = None;
            self.shared.remove(known, &[cpu]);
            let domain = self.shared.buses.of(cpu);
            let is_idle = self.shared.buses.core_is_idle(cpu);
            if is_idle {
                // The core's other free CPUs now belong to an idle core.
                let core = &machine.cores[machine.cpus[cpu].core];
                for sibling in machine.positions(core) {
                    if self.free[sibling] {
                        self.free_of[domain][0] -= 1;
                        self.free_of[domain][1] += 1;
                    }
                }
            }
            self.free[cpu] = true;
            self.free_of[domain][usize::from(is_idle)] += 1;
        }
    }
}

/// One CPU of a memory domain, on an idle or an active core.
fn one_cpu(domain: usize, idle: bool) -> DomainPlace {
    DomainPlace {
        domain,
        joining: Joining {
            tasks: 1,
            cores: u32::from(idle),
        },
    }
}

fn threshold_milli(refusal: &WaitReason) -> u32 {
    match refusal {
        WaitReason::BusFull {
            threshold_milli, ..
        } => *threshold_milli,
        _ => 0,
    }
}
