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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::contention::Asks;
    use crate::snapshot::{Estimates, Learnt, Measured, Trigger};
    use crate::task::TaskSpec;
    use crate::topology::Machine;
    use crate::units::{Absence, Reading};
    use std::sync::Arc;

    /// A job that reads so many lines per instruction, and ran first on this CPU.
    fn at_home(id: u32, reads: f64, cpu: u32) -> TaskView {
        let learnt = Learnt {
            asks: Asks {
                reads,
                ghz: 1.0,
                ..Asks::default()
            },
            solo_cpi: 1.0,
            slower: Vec::new(),
            error: 0.0,
            measured: Measured::Phase,
            progress: 0.0,
            last: None,
            phase: 0,
            stay: 1,
        };
        let estimates = Estimates {
            learnt: Reading::Value(learnt),
            ..Estimates::default()
        };
        let mut task = TaskView::arriving(&TaskSpec::new(id, "t"), Nanos::ZERO, estimates);
        task.home_cpu = Some(CpuId(cpu));
        task
    }

    fn new(id: u32) -> TaskView {
        TaskView::arriving(&TaskSpec::new(id, "new"), Nanos::ZERO, Estimates::default())
    }

    /// The CPUs of the first runs of the tasks at these positions. CPUs 0 and 1 are in one domain, 2 and 3 in another.
    fn first_cpus(tasks: Vec<TaskView>, at: &[u32]) -> Vec<Option<CpuSet>> {
        let mut machine = Machine::uniform("two domains", 4, 1);
        machine.memory_domains = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
        for cpu in &mut machine.cpus[2..] {
            cpu.memory_domain = 1;
        }
        let snap = Snapshot {
            machine: Arc::new(machine),
            now: Nanos::ZERO,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let round = Round::new(&snap);
        let mut homes = Homes::of(&snap);
        at.iter().map(|&ix| homes.first_cpus(&round, ix)).collect()
    }

    fn cpus(ids: &[u32]) -> Vec<Option<CpuSet>> {
        ids.iter().map(|&id| Some(CpuId(id).into())).collect()
    }

    #[test]
    fn a_new_job_begins_where_the_jobs_at_home_read_least() {
        let tasks = vec![at_home(0, 0.01, 0), at_home(1, 0.001, 2), new(2), new(3)];
        // The first counts as much as a usual job, so both are alike full with it.
        assert_eq!(first_cpus(tasks.clone(), &[2]), cpus(&[2]));
        assert_eq!(first_cpus(tasks, &[2, 3]), cpus(&[2, 2]), "0.0065 are less");
    }

    #[test]
    fn jobs_of_which_nothing_is_known_take_turns_over_the_domains() {
        let tasks = (0..3).map(new).collect();
        assert_eq!(first_cpus(tasks, &[0, 1, 2]), cpus(&[0, 2, 0]));
    }

    #[test]
    fn a_job_that_ran_goes_wherever_it_gains() {
        assert_eq!(first_cpus(vec![at_home(0, 0.01, 0)], &[0]), [None]);
    }
}
