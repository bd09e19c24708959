//! The kernel's scheduler on one CPU: a queue ordered by weighted run time, slices, and preemption at wake-up, as in
//! CFS and EEVDF.
//!
//! In one period (18 ms for fewer than five tasks, else 4 ms each: EFS, section 4.3) every runnable thread of a CPU
//! runs once, for a slice in proportion to its weight. A thread that joins a queue starts at the queue's least run
//! time. It keeps up to one period of its lead on its last queue, and up to half a period of its lag, so sleepers have
//! some precedence.

use super::SimWorld;
use super::thread::ThreadState;
use crate::machine::KernelSpec;
use std::collections::VecDeque;

/// Weight of a thread of nice 0.
pub(crate) const NICE_0: u64 = 1_024;

/// Run times start here, so that a thread can be behind the least of them.
const ORIGIN: u64 = 1 << 40;

/// The scheduler's times in ns.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub period: u64,
    pub min_slice: u64,
    pub wakeup_granularity: u64,
    pub balance: u64,
    pub switch: f64,
    pub migration: f64,
}

impl Times {
    pub(crate) fn new(kernel: &KernelSpec) -> Times {
        Times {
            period: ns(kernel.period_ms),
            min_slice: ns(kernel.min_slice_ms),
            wakeup_granularity: ns(kernel.wakeup_granularity_ms),
            balance: ns(kernel.balance_ms).max(1),
            switch: kernel.switch_us * 1e3,
            migration: kernel.migration_us * 1e3,
        }
    }
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6 + 0.5) as u64
}

/// Waiting threads, by (run time, thread). Usually there are few, and new ones join near the end.
#[derive(Default)]
pub(crate) struct Queue(VecDeque<(u64, usize)>);

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(u64, usize)> {
        self.0.iter()
    }

    fn first(&self) -> Option<(u64, usize)> {
        self.0.front().copied()
    }

    fn pop_first(&mut self) -> Option<(u64, usize)> {
        self.0.pop_front()
    }

    fn insert(&mut self, one: (u64, usize)) {
        if self.0.back().is_none_or(|last| *last < one) {
            self.0.push_back(one);
        } else if let Err(at) = self.0.binary_search(&one) {
            self.0.insert(at, one);
        }
    }

    fn remove(&mut self, one: (u64, usize)) {
        if let Ok(at) = self.0.binary_search(&one) {
            self.0.remove(at);
        }
    }
}

/// A CPU and its queue.
pub(crate) struct CpuState {
    pub core: usize,
    pub online: bool,
    pub current: Option<usize>,
    pub queue: Queue,
    /// Total weight of the waiting threads and the running one.
    weight: u64,
    least: u64,
    picked_at: u64,
    pub slice_end: Option<u64>,
    /// The thread that ran last.
    last: Option<usize>,
    /// Whether something has changed, so that another thread may have to run.
    pub reschedule: bool,
}

impl CpuState {
    pub(crate) fn new(core: usize) -> CpuState {
        CpuState {
            core,
            online: true,
            current: None,
            queue: Queue::default(),
            weight: 0,
            least: ORIGIN,
            picked_at: 0,
            slice_end: None,
            last: None,
            reschedule: false,
        }
    }

    /// Number of threads that run or wait here.
    pub(crate) fn runnable(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }
}

impl SimWorld {
    /// Puts a thread that is on no CPU into a CPU's queue.
    pub(crate) fn enqueue(&mut self, thread_ix: usize, cpu_ix: usize) {
        let cpu = &mut self.cpus[cpu_ix];
        let thread = &mut self.threads[thread_ix];
        debug_assert!(matches!(
            thread.state,
            ThreadState::Off | ThreadState::Asleep
        ));
        // Off a queue, `vruntime` is `ORIGIN` plus the thread's lead over the queue's least run time.
        let ahead = thread
            .vruntime
            .clamp(ORIGIN - self.times.period / 2, ORIGIN + self.times.period);
        thread.vruntime = (cpu.least + ahead).saturating_sub(ORIGIN);
        thread.state = ThreadState::Ready(cpu_ix);
        cpu.queue.insert((thread.vruntime, thread_ix));
        cpu.weight += thread.weight;
        self.reschedule_later(cpu_ix);
    }

    /// Takes a thread off its CPU, and sets its state.
    pub(crate) fn dequeue(&mut self, thread_ix: usize, state: ThreadState) {
        let cpu_ix = match self.threads[thread_ix].state {
            ThreadState::Ready(cpu) => {
                let key = (self.threads[thread_ix].vruntime, thread_ix);
                self.cpus[cpu].queue.remove(key);
                cpu
            }
            ThreadState::Running(cpu) => {
                self.vacate(cpu);
                cpu
            }
            ThreadState::Off | ThreadState::Asleep | ThreadState::Waiting | ThreadState::Done => {
                self.threads[thread_ix].state = state;
                return;
            }
        };
        let cpu = &mut self.cpus[cpu_ix];
        let thread = &mut self.threads[thread_ix];
        cpu.weight -= thread.weight;
        thread.vruntime = (ORIGIN + thread.vruntime).saturating_sub(cpu.least);
        thread.state = state;
        self.reschedule_later(cpu_ix);
    }

    /// Takes the CPU from its thread. The caller decides where the thread goes.
    fn vacate(&mut self, cpu_ix: usize) {
        let core = self.cpus[cpu_ix].core;
        self.touch(core);
        self.sync_filling(self.cores[core].llc);
        let cpu = &mut self.cpus[cpu_ix];
        if let Some(thread) = cpu.current.take() {
            let thread = &mut self.threads[thread];
            let llc = &mut self.llcs[self.cores[core].llc];
            llc.advance(self.now);
            thread.held_at = llc.leave(thread.held);
            thread.rate = 0.0;
            thread.oldest.age = None;
        }
        cpu.slice_end = None;
    }

    fn reschedule_later(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.cpus[cpu].reschedule, true) {
            self.to_reschedule.push(cpu);
        }
    }

    /// Chooses the running thread anew on every CPU with a change.
    pub(crate) fn reschedule_all(&mut self) {
        while !self.to_reschedule.is_empty() {
            // In the order of CPU numbers, so that the order of the changes does not matter.
            self.to_reschedule.sort_unstable();
            for cpu in std::mem::take(&mut self.to_reschedule) {
                self.cpus[cpu].reschedule = false;
                self.reschedule(cpu);
            }
        }
    }

    fn reschedule(&mut self, cpu_ix: usize) {
        if self.cpus[cpu_ix].current.is_none() && self.cpus[cpu_ix].queue.is_empty() {
            self.pull_when_idle(cpu_ix);
        }
        let cpu = &self.cpus[cpu_ix];
        let first = cpu.queue.first();
        match (cpu.current, first) {
            (None, None) => {}
            (None, Some(_)) => self.pick(cpu_ix),
            (Some(current), Some((vruntime, _))) => {
                // The running thread's run time is exact only after its core is synced.
                self.sync(self.cpus[cpu_ix].core);
                if vruntime + self.times.wakeup_granularity < self.threads[current].vruntime {
                    self.requeue(cpu_ix);
                    self.pick(cpu_ix);
                } else {
                    self.set_slice(cpu_ix);
                }
            }
            (Some(_), None) => self.set_slice(cpu_ix),
        }
    }

    /// Puts the running thread back into the queue.
    fn requeue(&mut self, cpu_ix: usize) {
        let Some(thread) = self.cpus[cpu_ix].current else {
            return;
        };
        self.vacate(cpu_ix);
        self.threads[thread].state = ThreadState::Ready(cpu_ix);
        self.cpus[cpu_ix]
            .queue
            .insert((self.threads[thread].vruntime, thread));
    }

    /// Ends a slice: the thread with the least run time gets the CPU.
    pub(crate) fn slice_over(&mut self, cpu_ix: usize) {
        self.requeue(cpu_ix);
        self.pick(cpu_ix);
    }

    /// Gives a free CPU to the thread with the least run time.
    fn pick(&mut self, cpu_ix: usize) {
        let core_ix = self.cpus[cpu_ix].core;
        self.touch(core_ix);
        self.sync_filling(self.cores[core_ix].llc);
        let cpu = &mut self.cpus[cpu_ix];
        let Some((vruntime, thread_ix)) = cpu.queue.pop_first() else {
            return;
        };
        cpu.least = cpu.least.max(vruntime);
        cpu.current = Some(thread_ix);
        cpu.picked_at = self.now;
        let is_other = cpu.last.replace(thread_ix) != Some(thread_ix);
        let core = &self.cores[core_ix];
        let thread = &mut self.threads[thread_ix];
        thread.state = ThreadState::Running(cpu_ix);
        let moved = thread
            .last_cpu
            .is_none_or(|last| self.cpus[last].core != core_ix);
        if is_other {
            thread.switching = self.times.switch;
        }
        if moved {
            thread.warming = self.times.migration;
        }
        thread.last_cpu = Some(cpu_ix);
        thread.home.get_or_insert(core.domain);
        let llc = &mut self.llcs[core.llc];
        llc.advance(self.now);
        thread.held = if thread.held_in == core.llc {
            llc.left_of(thread.held, thread.held_at)
        } else {
            0.0
        };
        thread.held_in = core.llc;
        llc.take(thread.held);
        self.set_slice(cpu_ix);
    }

    /// Sets the end of the running thread's slice.
    fn set_slice(&mut self, cpu_ix: usize) {
        let cpu = &mut self.cpus[cpu_ix];
        let runnable = cpu.runnable() as u64;
        cpu.slice_end = match cpu.current {
            Some(current) if runnable > 1 => {
                let period = self.times.period.max(runnable * self.times.min_slice);
                let slice = period * self.threads[current].weight / cpu.weight;
                // A slice no longer than the switch to it would do no work.
                let least = (2.0 * self.times.switch) as u64 + 1;
                Some((cpu.picked_at + slice.max(least)).max(self.now + 1))
            }
            _ => None,
        };
        let core = cpu.core;
        self.update_next(core);
    }
}
