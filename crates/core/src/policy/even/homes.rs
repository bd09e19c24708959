//! The memory domain in which a job runs first. Its memory stays there, so the domains should have alike demand.

use crate::policy::prelude::*;
use crate::topology::{CpuId, CpuSet};

/// Lines per ns that the jobs of each memory domain would read alone.
pub(super) struct Homes {
    demand: Vec<f64>,
    /// Of a job of which nothing is known.
    usual: f64,
}

impl Homes {
    pub(super) fn of(snap: &Snapshot) -> Homes {
        let tasks = snap.tasks.iter();
        let known: Vec<f64> = tasks.filter_map(|task| demand_of(task)).collect();
        let usual = match known.is_empty() {
            true => 1.0,
            false => known.iter().sum::<f64>() / known.len() as f64,
        };
        let mut demand = vec![0.0; snap.machine.memory_domains.len()];
        for task in &snap.tasks {
            if let Some(home) = task.home(&snap.machine) {
                demand[home] += demand_of(task).unwrap_or(usual);
            }
        }
        // Equal demands of nothing are shared out by number.
        let least = f64::MIN_POSITIVE;
        Homes {
            demand,
            usual: usual.max(least),
        }
    }

    /// CPUs for a task's first run, in the domain with the least demand that has any. `None` if all is one domain, or if it
    /// has run, or needs several CPUs.
    pub(super) fn first_cpus(&mut self, round: &Round<'_>, ix: u32) -> Option<CpuSet> {
        let task = round.task(ix);
        let machine = &*round.snap.machine;
        let is_new = task.cpus == 1 && task.allowed.is_none() && task.home(machine).is_none();
        if self.demand.len() < 2 || !is_new {
            return None;
        }
        let free = machine.cpus.iter().filter(|cpu| round.is_free(cpu.id));
        let is_shared = |core: usize| !machine.cores[core].iter().all(|cpu| round.is_free(cpu));
        let best = free.min_by(|one, other| {
            let demands =
                self.demand[one.memory_domain].total_cmp(&self.demand[other.memory_domain]);
            demands.then((is_shared(one.core), one.id).cmp(&(is_shared(other.core), other.id)))
        })?;
        self.demand[best.memory_domain] += self.usual;
        let id: CpuId = best.id;
        Some(id.into())
    }
}

fn demand_of(task: &TaskView) -> Option<f64> {
    let learnt = task.estimates.learnt.as_ref().value()?;
    Some(learnt.asks.reads * learnt.asks.ghz / learnt.solo_cpi)
}
