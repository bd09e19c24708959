//! The kernel's scheduler across CPUs: it chooses a CPU for threads that start or wake, and balances the load.
//!
//! A thread that starts or wakes goes to the CPU with the least load, and among several idle ones to one of an idle
//! core. Of these it prefers its last cache; a new thread goes to the cache with the least load. A CPU that runs out of
//! work pulls a waiting thread from another at once, from its own cache first. Every balancing interval each CPU with
//! at least two threads less than another pulls one, and an idle core pulls one of two threads that share a core.

use super::SimWorld;
use super::thread::{Thread, ThreadState};

impl SimWorld {
    /// Chooses the CPU for a thread that starts, wakes or must move.
    pub(crate) fn choose_cpu(&self, thread_ix: usize) -> Option<usize> {
        let thread = &self.threads[thread_ix];
        let mut usable = thread
            .affinity
            .iter()
            .copied()
            .filter(|&cpu| self.cpus[cpu].online);
        if thread.affinity.len() == 1 {
            return usable.next_back();
        }
        usable.min_by_key(|&cpu| self.preference(thread, cpu))
    }

    /// Ranks a CPU for a thread that starts or wakes; the least is the best.
    fn preference(&self, thread: &Thread, cpu: usize) -> [usize; 6] {
        let llc = self.llc_of(cpu);
        let load = self.cpus[cpu].runnable();
        let core = self.load_of_core(self.cpus[cpu].core);
        let (elsewhere, crowd) = match thread.last_cpu {
            Some(last) => (usize::from(self.llc_of(last) != llc), 0),
            None => {
                let cores = self.llcs[llc].cores.iter();
                (0, cores.map(|&core| self.load_of_core(core)).sum())
            }
        };
        let moves = usize::from(thread.last_cpu != Some(cpu));
        [load, core - load, elsewhere, crowd, moves, cpu]
    }

    fn llc_of(&self, cpu: usize) -> usize {
        self.cores[self.cpus[cpu].core].llc
    }

    fn load_of_core(&self, core: usize) -> usize {
        let cpus = self.cores[core].cpus.iter();
        cpus.map(|&cpu| self.cpus[cpu].runnable()).sum()
    }

    /// Pulls a waiting thread to an idle CPU from the longest queue, its own cache's first.
    pub(crate) fn pull_when_idle(&mut self, cpu: usize) {
        if self.shared == 0 || !self.cpus[cpu].online {
            return;
        }
        self.take_over(cpu, 2);
    }

    /// Migrates a waiting thread to a CPU from the longest queue of at least `least` threads, its own cache's first.
    fn take_over(&mut self, cpu: usize, least: usize) {
        let found = self
            .busiest(cpu, least, true)
            .or_else(|| self.busiest(cpu, least, false));
        if let Some(thread) = found {
            self.migrate(thread, cpu);
        }
    }

    /// A waiting thread that may use `cpu`, of the most loaded CPU, which has at least `least` threads. `near`: whether
    /// that CPU has the same last-level cache.
    fn busiest(&self, cpu: usize, least: usize, near: bool) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (other, state) in self.cpus.iter().enumerate() {
            let load = state.runnable();
            let is_near = self.llc_of(other) == self.llc_of(cpu);
            let is_less = best.is_some_and(|(most, _)| most >= load);
            if other == cpu || load < least || is_near != near || is_less {
                continue;
            }
            // From the end of the queue: the last thread to run loses least.
            let mut waiting = state.queue.iter().rev().map(|&(_, thread)| thread);
            if let Some(thread) = waiting.find(|&thread| self.may_use(thread, cpu)) {
                best = Some((load, thread));
            }
        }
        best.map(|(_, thread)| thread)
    }

    fn may_use(&self, thread: usize, cpu: usize) -> bool {
        self.threads[thread].affinity.binary_search(&cpu).is_ok()
    }

    fn migrate(&mut self, thread: usize, to: usize) {
        self.dequeue(thread, ThreadState::Off);
        self.enqueue(thread, to);
    }

    /// Balances all CPUs; called once per balancing interval.
    pub(crate) fn balance(&mut self) {
        let online = self.cpus.iter().filter(|cpu| cpu.online);
        let (least, most) = online.fold((usize::MAX, 0), |(least, most), cpu| {
            (least.min(cpu.runnable()), most.max(cpu.runnable()))
        });
        if most >= least + 2 {
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].online {
                    self.take_over(cpu, self.cpus[cpu].runnable() + 2);
                }
            }
        }
        self.spread_over_cores();
    }

    /// The threads that run on a core.
    fn running_on(&self, core: usize) -> impl Iterator<Item = usize> {
        let cpus = self.cores[core].cpus.iter();
        cpus.filter_map(|&cpu| self.cpus[cpu].current)
    }

    /// Lets idle cores pull one of two threads that run on the same core.
    fn spread_over_cores(&mut self) {
        for core in 0..self.cores.len() {
            if self.load_of_core(core) > 0 {
                continue;
            }
            let mut cpus = self.cores[core].cpus.iter().copied();
            let Some(cpu) = cpus.find(|&cpu| self.cpus[cpu].online) else {
                continue;
            };
            let found = (0..self.cores.len())
                .filter(|&other| self.running_on(other).count() > 1)
                .find_map(|other| {
                    let mut threads = self.running_on(other);
                    threads.find(|&thread| self.may_use(thread, cpu))
                });
            if let Some(thread) = found {
                self.migrate(thread, cpu);
            }
        }
    }
}
