//! The load of a job on its core and on memory, and the throughput of the jobs of a core.

use crate::model::contention::{Contention, activity};

/// Load of a job on its core and on memory, per instruction, with its present share of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) own: f64,
    pub(super) l1: f64,
    /// Cycles of waiting for hits of the last-level cache.
    pub(super) hits: f64,
    /// Cycles of waiting for an idle memory.
    pub(super) waits: f64,
    /// Lines read x cycles per ns.
    pub(super) lines: f64,
    /// Cycles per ns.
    pub(super) ghz: f64,
    /// Weight x solo cycles per instruction on the fastest type of core, at this clock.
    pub(super) worth: f64,
}

/// Throughput of the jobs of a core: their part of the sum, and lines read and instructions per ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) sum: f64,
    pub(super) reads: f64,
    pub(super) instructions: f64,
    /// Whether there are any jobs.
    pub(super) is_busy: bool,
}

/// Number of threads of a core up to which they count: no processor has more.
const THREADS: usize = 8;

/// Throughput of the jobs of a core. They adapt to each other in two rounds.
pub(super) fn together<'a>(
    shared: &Contention,
    jobs: impl Iterator<Item = &'a Load> + Clone,
    latency: f64,
) -> Done {
    // Instructions per cycle, because divisions dominate the time.
    let mut ipcs = [0.0; THREADS];
    let jobs = jobs.take(THREADS);
    for (ipc, job) in ipcs.iter_mut().zip(jobs.clone()) {
        *ipc = 1.0 / (job.own + job.stall(latency));
    }
    let rounds = if ipcs[1] > 0.0 { 2 } else { 0 };
    for _ in 0..rounds {
        let (mut busy, mut ports) = (0.0, 0.0);
        for (ipc, job) in ipcs.iter().zip(jobs.clone()) {
            busy += activity(job.stall(latency) * ipc);
            ports += job.l1 * ipc;
        }
        for (ipc, job) in ipcs.iter_mut().zip(jobs.clone()) {
            let stall = job.stall(latency);
            let others = busy - activity(stall * *ipc);
            let in_core = job.own * (1.0 + shared.alpha * others)
                + shared.beta * job.l1 * (ports - job.l1 * *ipc);
            *ipc = 1.0 / (in_core + stall);
        }
    }
    let mut done = Done::default();
    for (ipc, job) in ipcs.iter().zip(jobs) {
        done.sum += job.worth * ipc;
        done.reads += job.lines * ipc;
        done.instructions += job.ghz * ipc;
        done.is_busy = true;
    }
    done
}

impl Load {
    /// Cycles per instruction of waiting for caches and memory.
    fn stall(&self, latency: f64) -> f64 {
        self.hits + self.waits * latency
    }
}
