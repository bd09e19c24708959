//! The holders of the CPUs in the kernel, beside the decisions of the policy.

use crate::series::replay::Replay;
use cosched_core::{CpuId, CpuSet, Nanos, TaskId};
use serde::Serialize;

/// The holders of a run's CPUs in the kernel at a time.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// The job's CPUs; empty if it held none.
    pub cpus: CpuSet,
    /// Since when it held a CPU, or held none.
    pub since: Nanos,
    /// The CPUs that other jobs held, in ascending order.
    pub others: Vec<Held>,
    /// The CPUs that no job of the run held: idle, or with other programs.
    pub free: CpuSet,
}

/// A CPU that a job held.
#[derive(Debug, Serialize)]
pub struct Held {
    /// The CPU.
    pub cpu: CpuId,
    /// The job's number.
    pub task: u32,
    /// Since when it held the CPU.
    pub since: Nanos,
}

impl Seen {
    /// Return the holders of these CPUs; `None` if the job never held one, since the kernel's scheduler may not have it.
    pub(super) fn of(replay: &Replay, task: TaskId, cpus: &CpuSet) -> Option<Seen> {
        let job = replay.job(task);
        let mut seen = Seen {
            cpus: job.held.clone()?,
            since: job.held_since,
            others: Vec::new(),
            free: cpus.clone(),
        };
        for (cpu, holder) in replay.holders.iter() {
            seen.free.remove(cpu);
            if holder.task != task {
                seen.others.push(Held {
                    cpu,
                    task: holder.task.0,
                    since: holder.since,
                });
            }
        }
        Some(seen)
    }
}
