//! The kernel's scheduler across CPUs: it chooses a CPU for threads that start or wake, and evens out the load.
//!
//! A thread that starts or wakes goes to the CPU with the least to do, and among several idle ones to one of an idle
//! core. Of these it prefers the cache that it was at before; a thread that has not run yet goes to the cache with the
//! least to do. A CPU that runs out of work takes a waiting thread from another at once, from its own cache first.
//! Every balancing interval each CPU with at least two threads less than another takes one over, and an idle core takes
//! one of two threads that share a core.

use super::World;
use super::thread::State;

impl World {
    /// Chooses the CPU for a thread that starts, wakes or must move.
    pub(crate) fn choose_cpu(&self, thread_ix: usize) -> Option<usize> {
        let thread = &self.threads[thread_ix];
        let llc_of = |cpu: usize| self.cores[self.cpus[cpu].core].llc;
        let mut usable = thread
            .affinity
            .iter()
            .copied()
            .filter(|&cpu| self.cpus[cpu].online);
        if thread.affinity.len() == 1 {
            return usable.next_back();
        }
        let score = |cpu: usize| {
            let core = &self.cores[self.cpus[cpu].core];
            let load = self.cpus[cpu].runnable();
            let beside: usize = core
                .cpus
                .iter()
                .map(|&sibling| self.cpus[sibling].runnable())
                .sum();
            let (elsewhere, crowd) = match thread.last_cpu {
                Some(last) => (usize::from(llc_of(last) != core.llc), 0),
                None => {
                    let at = &self.llcs[core.llc].cores;
                    (
                        0,
                        at.iter()
                            .flat_map(|&c| &self.cores[c].cpus)
                            .map(|&c| self.cpus[c].runnable())
                            .sum(),
                    )
                }
            };
            (
                load,
                beside - load,
                elsewhere,
                crowd,
                usize::from(thread.last_cpu != Some(cpu)),
                cpu,
            )
        };
        usable.min_by_key(|&cpu| score(cpu))
    }

    /// Gives a CPU without work a waiting thread from the longest queue, of its own cache first.
    pub(crate) fn pull_when_idle(&mut self, cpu: usize) {
        if self.shared == 0 || !self.cpus[cpu].online {
            return;
        }
        let llc = self.cores[self.cpus[cpu].core].llc;
        let near = |other: usize| self.cores[self.cpus[other].core].llc == llc;
        let found = self
            .busiest(cpu, 2, near)
            .or_else(|| self.busiest(cpu, 2, |other| !near(other)));
        if let Some((from, thread)) = found {
            self.migrate(thread, from, cpu);
        }
    }

    /// The CPU with the most to do that has at least `least` threads and a waiting thread which may use `cpu`; and that
    /// thread.
    fn busiest(
        &self,
        cpu: usize,
        least: usize,
        which: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize, usize)> = None;
        for (other, state) in self.cpus.iter().enumerate() {
            let load = state.runnable();
            if other == cpu
                || load < least
                || !which(other)
                || best.is_some_and(|(most, ..)| most >= load)
            {
                continue;
            }
            // From the end of the queue: the thread that runs last loses least.
            let may = |&&(_, thread): &&(u64, usize)| self.may_use(thread, cpu);
            if let Some(&(_, thread)) = state.queue.iter().rev().find(may) {
                best = Some((load, other, thread));
            }
        }
        best.map(|(_, from, thread)| (from, thread))
    }

    fn may_use(&self, thread: usize, cpu: usize) -> bool {
        self.threads[thread].affinity.binary_search(&cpu).is_ok()
    }

    fn migrate(&mut self, thread: usize, _from: usize, to: usize) {
        self.dequeue(thread, State::Off);
        self.enqueue(thread, to);
    }

    /// Balances all CPUs; called once per balancing interval.
    pub(crate) fn balance(&mut self) {
        let loads = |world: &World| {
            let online = world
                .cpus
                .iter()
                .filter(|cpu| cpu.online)
                .map(|cpu| cpu.runnable());
            online.fold((usize::MAX, 0), |(least, most), load| {
                (least.min(load), most.max(load))
            })
        };
        let (least, most) = loads(self);
        if most >= least + 2 {
            for cpu in 0..self.cpus.len() {
                if !self.cpus[cpu].online {
                    continue;
                }
                let load = self.cpus[cpu].runnable();
                let llc = self.cores[self.cpus[cpu].core].llc;
                let near = |other: usize| self.cores[self.cpus[other].core].llc == llc;
                let found = self
                    .busiest(cpu, load + 2, near)
                    .or_else(|| self.busiest(cpu, load + 2, |other| !near(other)));
                if let Some((from, thread)) = found {
                    self.migrate(thread, from, cpu);
                }
            }
        }
        self.spread_over_cores();
    }

    /// Lets idle cores take one of two threads that run on the same core.
    fn spread_over_cores(&mut self) {
        let running = |world: &World, core: usize| {
            world.cores[core]
                .cpus
                .iter()
                .filter(|&&cpu| world.cpus[cpu].current.is_some())
                .count()
        };
        for core in 0..self.cores.len() {
            let idle = self.cores[core]
                .cpus
                .iter()
                .all(|&cpu| self.cpus[cpu].runnable() == 0);
            let Some(cpu) = self.cores[core]
                .cpus
                .iter()
                .copied()
                .find(|&cpu| self.cpus[cpu].online && idle)
            else {
                continue;
            };
            let found = (0..self.cores.len())
                .filter(|&other| running(self, other) > 1)
                .find_map(|other| {
                    let mut threads = self.cores[other]
                        .cpus
                        .iter()
                        .filter_map(|&cpu| self.cpus[cpu].current);
                    threads.find(|&thread| self.may_use(thread, cpu))
                });
            if let Some(thread) = found
                && let State::Running(from) = self.threads[thread].state
            {
                self.migrate(thread, from, cpu);
            }
        }
    }
}
