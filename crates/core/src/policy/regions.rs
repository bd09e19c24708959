//! The caches of a machine that has several: which of the chosen tasks run behind which.
//!
//! The memory of a task lies in the socket where it ran first, and its cache holds its data. So a task stays where it
//! ran last while no cache has more than its share of the tasks. Those that have to go read least; they stay in their
//! socket if it has room. Ours; the papers' machines have one cache.

use crate::snapshot::TaskView;
use crate::topology::{Cpu, Machine};
use std::cmp::Reverse;

/// The free CPUs behind a last-level cache, and the tasks that get them.
#[derive(Default)]
struct Region {
    domain: usize,
    free: usize,
    tasks: Vec<usize>,
    reads: u64,
}

/// The tasks of each last-level cache, among `tasks`, for these free CPUs. Tasks for which there is no CPU are left out.
pub(super) fn share_out(
    machine: &Machine,
    free: &[&Cpu],
    tasks: &[(usize, &TaskView)],
) -> Vec<Vec<usize>> {
    let mut regions: Vec<Region> = machine.llcs.iter().map(|_| Region::default()).collect();
    for cpu in free {
        regions[cpu.llc].domain = cpu.memory_domain;
        regions[cpu.llc].free += 1;
    }
    let mut by_reads: Vec<(usize, &TaskView)> = tasks.to_vec();
    by_reads.sort_by_key(|(_, task)| (Reverse(reads(task)), task.id));
    let share = |region: &Region| (region.free * tasks.len()).div_ceil(free.len().max(1));
    let mut homeless = Vec::new();
    for (at, task) in by_reads {
        match last_cpu(machine, task) {
            Some(cpu) if has_room(&regions[cpu.llc], share(&regions[cpu.llc])) => {
                regions[cpu.llc].add(at, task);
            }
            last => homeless.push((at, task, last.map(|cpu| cpu.memory_domain))),
        }
    }
    for (at, task, domain) in homeless {
        let with_room = regions
            .iter_mut()
            .filter(|region| region.tasks.len() < region.free);
        let best = with_room.min_by_key(|region| {
            let is_abroad = domain.is_some_and(|domain| domain != region.domain);
            let is_over = region.tasks.len() >= share(region);
            (
                is_over,
                is_abroad,
                region.tasks.len() * 1000 / region.free,
                region.reads,
            )
        });
        if let Some(region) = best {
            region.add(at, task);
        }
    }
    regions.into_iter().map(|region| region.tasks).collect()
}

impl Region {
    fn add(&mut self, at: usize, task: &TaskView) {
        self.tasks.push(at);
        self.reads += reads(task);
    }
}

fn has_room(region: &Region, share: usize) -> bool {
    region.tasks.len() < share.min(region.free)
}

fn last_cpu<'a>(machine: &'a Machine, task: &TaskView) -> Option<&'a Cpu> {
    machine.cpu(task.last_cpus.first()?)
}

fn reads(task: &TaskView) -> u64 {
    task.estimates.mm_reads.value().map_or(0, |rate| rate.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskSpec;
    use crate::units::{Nanos, Rate, Reading};

    /// Two sockets with two caches each, of two CPUs.
    fn machine() -> Machine {
        let mut machine = Machine::uniform("m", 8, 1);
        let set = |cpus: &str| cpus.parse().unwrap();
        machine.llcs = ["0-1", "2-3", "4-5", "6-7"].map(set).to_vec();
        machine.memory_domains = ["0-3", "4-7"].map(set).to_vec();
        for cpu in &mut machine.cpus {
            cpu.llc = cpu.id.0 as usize / 2;
            cpu.memory_domain = cpu.id.0 as usize / 4;
        }
        machine.validate().unwrap();
        machine
    }

    /// Shares out tasks that read so much and ran on these CPUs. Names them by their reads.
    fn shared_out(tasks: &[(u64, &str)]) -> Vec<Vec<u64>> {
        let machine = machine();
        let views: Vec<TaskView> = tasks.iter().zip(0..).map(task).collect();
        let tasks_with_index: Vec<(usize, &TaskView)> = views.iter().enumerate().collect();
        let free: Vec<&Cpu> = machine.cpus.iter().collect();
        let shares = share_out(&machine, &free, &tasks_with_index);
        let names = |share: &Vec<usize>| share.iter().map(|&at| tasks[at].0).collect();
        shares.iter().map(names).collect()
    }

    fn task((&(reads, cpus), id): (&(u64, &str), u32)) -> TaskView {
        let spec = TaskSpec::new(id, &format!("t{id}"));
        let mut task = TaskView::arriving(&spec, Nanos::ZERO, Default::default());
        task.estimates.mm_reads = Reading::Value(Rate(reads));
        task.last_cpus = cpus.parse().unwrap();
        task
    }

    #[test]
    fn tasks_stay_and_those_that_read_least_move_within_their_socket() {
        let none: Vec<u64> = Vec::new();
        assert_eq!(shared_out(&[]), vec![none; 4]);
        let spread = vec![vec![9], vec![7], vec![5], vec![3]];
        assert_eq!(
            shared_out(&[(3, ""), (9, ""), (5, ""), (7, "")]),
            spread,
            "new ones"
        );
        let last = [(9, "6"), (7, "4"), (5, "2"), (3, "0")];
        let stay = vec![vec![3], vec![5], vec![7], vec![9]];
        assert_eq!(shared_out(&last), stay);
        let crowded = [(9, "0"), (3, "1"), (5, "4")];
        let moved = vec![vec![9], vec![3], vec![5], vec![]];
        assert_eq!(shared_out(&crowded), moved);
        let one_socket = [(9, "0"), (8, "1"), (3, "2"), (4, "3")];
        let least_readers_left = vec![vec![9], vec![4], vec![8], vec![3]];
        assert_eq!(shared_out(&one_socket), least_readers_left);
    }
}
