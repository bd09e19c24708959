//! Finds a CPU for a task: at home, on an idle core, elsewhere, or several for a gang, if it fits the bus.

use super::domains::Joining;
use super::shared::Obstacle;
use super::turn::{Fit, Turn};
use crate::placement::Purpose;
use crate::snapshot::TaskView;
use crate::topology::CpuSet;

impl Turn<'_> {
    /// Runs a task on any free CPUs that it may use, if it fits or `fit` does not matter.
    pub(super) fn try_anywhere(&mut self, ix: u32, fit: Fit) -> bool {
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
                let joining = Joining {
                    tasks: 1,
                    cores: u32::from(idle),
                };
                if let Some(obstacle) = self.obstacle(ix, domain, joining, fit) {
                    self.refuse(ix, obstacle);
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

    fn try_gang(&mut self, ix: u32, home: usize, fit: Fit) -> bool {
        let task = self.round.task(ix);
        if fit == Fit::Must
            && let Some((other, obstacle)) = self.refused_gang
            && task.allowed.is_none()
            && self.round.task(other).cpus == task.cpus
            && self.known[ix as usize].asks_no_less_than(&self.known[other as usize])
        {
            self.refuse(ix, obstacle);
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
    pub(super) fn try_on(&mut self, ix: u32, cpus: &[usize], fit: Fit) -> bool {
        self.leave(ix);
        // A gang across domains is judged on the domain of its first CPU.
        let (domain, joining) = (
            self.shared.buses.of(cpus[0]),
            self.shared.buses.joining(cpus),
        );
        if let Some(obstacle) = self.obstacle(ix, domain, joining, fit) {
            self.refuse(ix, obstacle);
            if cpus.len() > 1 && self.round.task(ix).allowed.is_none() {
                self.refused_gang = Some((ix, obstacle));
            }
            return false;
        }
        self.run_on(ix, cpus);
        true
    }

    /// What a task that has to fit does not fit.
    fn obstacle(&mut self, ix: u32, domain: usize, joining: Joining, fit: Fit) -> Option<Obstacle> {
        if fit == Fit::NeedNot {
            return None;
        }
        let waiting = self.waiting();
        let known = &self.known[ix as usize];
        self.shared.obstacle(known, domain, joining, waiting)
    }

    /// Records the numbers of a task's first refusal.
    fn refuse(&mut self, ix: u32, obstacle: Obstacle) {
        if self.refusal_of[ix as usize] == 0 {
            let known = &self.known[ix as usize];
            self.refusals.push(self.shared.refusal(known, obstacle));
            self.refusal_of[ix as usize] = self.refusals.len() as u32;
        }
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
