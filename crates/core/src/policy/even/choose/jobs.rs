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

/// Throughput of a job with a core of its own.
pub(super) fn alone(job: &Load, latency: f64) -> Done {
    let ipc = 1.0 / (job.own + job.hits + job.waits * latency);
    Done {
        sum: job.worth * ipc,
        reads: job.lines * ipc,
        instructions: job.ghz * ipc,
        is_busy: true,
    }
}

/// Throughput of two jobs of one core.
pub(super) fn both(shared: &Contention, a: &Load, b: &Load, latency: f64) -> Done {
    let stalls = [a.hits + a.waits * latency, b.hits + b.waits * latency];
    let guess = 1.0 + 0.5 * shared.alpha;
    // Instructions per cycle, because divisions dominate the time.
    let mut ipcs = [
        1.0 / (a.own * guess + stalls[0]),
        1.0 / (b.own * guess + stalls[1]),
    ];
    let ports = shared.beta * a.l1 * b.l1;
    for _ in 0..2 {
        let busy = [activity(stalls[0] * ipcs[0]), activity(stalls[1] * ipcs[1])];
        ipcs = [
            1.0 / (a.own * (1.0 + shared.alpha * busy[1]) + ports * ipcs[1] + stalls[0]),
            1.0 / (b.own * (1.0 + shared.alpha * busy[0]) + ports * ipcs[0] + stalls[1]),
        ];
    }
    Done {
        sum: a.worth * ipcs[0] + b.worth * ipcs[1],
        reads: a.lines * ipcs[0] + b.lines * ipcs[1],
        instructions: a.ghz * ipcs[0] + b.ghz * ipcs[1],
        is_busy: true,
    }
}

impl Load {
    /// Cycles per instruction of waiting for caches and memory.
    fn stall(&self, latency: f64) -> f64 {
        self.hits + self.waits * latency
    }
}

/// Throughput of the jobs of a core with more threads.
pub(super) fn several(shared: &Contention, jobs: &[&Load], latency: f64) -> Done {
    let mut cpis: Vec<f64> = jobs
        .iter()
        .map(|job| job.own + job.stall(latency))
        .collect();
    for _ in 0..2 {
        cpis = (0..jobs.len())
            .map(|at| {
                let (mut busy, mut ports) = (0.0, 0.0);
                for other in (0..jobs.len()).filter(|&other| other != at) {
                    busy += activity(jobs[other].stall(latency) / cpis[other]);
                    ports += jobs[other].l1 / cpis[other];
                }
                let job = jobs[at];
                job.own * (1.0 + shared.alpha * busy)
                    + shared.beta * job.l1 * ports
                    + job.stall(latency)
            })
            .collect();
    }
    let mut done = Done {
        is_busy: !jobs.is_empty(),
        ..Done::default()
    };
    for (job, cpi) in jobs.iter().zip(cpis) {
        done.sum += job.worth / cpi;
        done.reads += job.lines / cpi;
        done.instructions += job.ghz / cpi;
    }
    done
}
