//! The caches of a machine that has several: which of the chosen tasks run behind which.
//!
//! The memory of a task lies in the socket where it ran first, and a cache there holds its data. So a task stays where it
//! ran last while no cache has more than its share of the tasks. Those that have to go read least; they stay in their
//! socket if it has room, and come back if they had to leave it. Ours; the papers' machines have one cache.

use crate::snapshot::TaskView;
use crate::topology::{Cpu, Machine};
use crate::units::Rate;
use std::cmp::Reverse;

/// The CPUs behind a last-level cache, and the tasks that get them.
#[derive(Default)]
struct Region {
    /// The memory domains of its CPUs: several, if a socket is split in clusters.
    domains: Vec<usize>,
    cpus: usize,
    /// CPUs that a running task keeps, or that a task got here.
    busy: usize,
    /// Busy CPUs if all caches are filled alike.
    share: usize,
    /// The tasks that got a CPU here, and the lines that they read.
    tasks: Vec<usize>,
    reads: Rate,
}

/// The tasks of each last-level cache, among `tasks`, for these free CPUs. Tasks for which there is no CPU are left out.
pub(super) fn share_out(
    machine: &Machine,
    free: &[&Cpu],
    tasks: &[(usize, &TaskView)],
) -> Vec<Vec<usize>> {
    let mut regions = regions(machine, free, tasks.len());
    let mut movers = Vec::new();
    for (at, task) in most_reads_first(tasks) {
        match last_cache_at_home(machine, task) {
            Some(llc) if regions[llc].is_below_share() => regions[llc].add(at, task),
            _ => movers.push((at, task)),
        }
    }
    for (at, task) in movers {
        let with_room = regions.iter_mut().filter(|region| region.has_room());
        if let Some(region) = with_room.min_by_key(|region| region.rank(task.home(machine))) {
            region.add(at, task);
        }
    }
    regions.into_iter().map(|region| region.tasks).collect()
}

/// The caches before any of the tasks has got a CPU.
fn regions(machine: &Machine, free: &[&Cpu], tasks: usize) -> Vec<Region> {
    let mut regions: Vec<Region> = machine.llcs.iter().map(|_| Region::default()).collect();
    for cpu in &machine.cpus {
        let region = &mut regions[cpu.llc];
        region.domains.push(cpu.memory_domain);
        region.cpus += 1;
        region.busy += 1;
    }
    for cpu in free {
        regions[cpu.llc].busy -= 1;
    }
    let all = machine.cpus.len();
    let busy = all - free.len() + tasks;
    for region in &mut regions {
        region.share = (region.cpus * busy).div_ceil(all).min(region.cpus);
    }
    regions
}

fn most_reads_first<'a>(tasks: &[(usize, &'a TaskView)]) -> Vec<(usize, &'a TaskView)> {
    let mut tasks = tasks.to_vec();
    tasks.sort_by_key(|(_, task)| (Reverse(reads(task)), task.id));
    tasks
}

impl Region {
    fn has_room(&self) -> bool {
        self.busy < self.cpus
    }

    fn is_below_share(&self) -> bool {
        self.busy < self.share
    }

    /// The lower, the better for a task with memory in this domain: below the share, at home, and then the emptiest.
    fn rank(&self, domain: Option<usize>) -> (bool, bool, usize, Rate) {
        let is_abroad = domain.is_some_and(|domain| !self.domains.contains(&domain));
        let filled = self.busy * 1000 / self.cpus;
        (!self.is_below_share(), is_abroad, filled, self.reads)
    }

    fn add(&mut self, at: usize, task: &TaskView) {
        self.tasks.push(at);
        self.busy += 1;
        self.reads.0 += reads(task).0;
    }
}

/// The cache behind which a task ran last, unless that is in another domain than its memory.
fn last_cache_at_home(machine: &Machine, task: &TaskView) -> Option<usize> {
    let last = machine.cpu(task.last_cpus.first()?)?;
    let home = task.home(machine);
    let is_home = home.is_none_or(|home| home == last.memory_domain);
    is_home.then_some(last.llc)
}

fn reads(task: &TaskView) -> Rate {
    task.estimates.mm_reads.value().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskSpec;
    use crate::topology::{CpuId, CpuSet};
    use crate::units::{Nanos, Reading};

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

    /// Shares out these CPUs to tasks that read so much and ran there. Names the tasks by their reads.
    fn shared_out(free: &str, tasks: &[(u64, &str)]) -> Vec<Vec<u64>> {
        let machine = machine();
        let views: Vec<TaskView> = tasks.iter().zip(0..).map(task).collect();
        let views: Vec<(usize, &TaskView)> = views.iter().enumerate().collect();
        let free: CpuSet = free.parse().unwrap();
        let free: Vec<&Cpu> = machine.cpus_in(&free).collect();
        let shares = share_out(&machine, &free, &views);
        let names = |share: &Vec<usize>| share.iter().map(|&at| tasks[at].0).collect();
        shares.iter().map(names).collect()
    }

    fn task((&(reads, cpus), id): (&(u64, &str), u32)) -> TaskView {
        let spec = TaskSpec::new(id, &format!("t{id}"));
        let mut task = TaskView::arriving(&spec, Nanos::ZERO, Default::default());
        task.estimates.mm_reads = Reading::Value(Rate(reads));
        task.last_cpus = cpus.parse().unwrap();
        task.home_cpu = machine().home_on(&task.last_cpus);
        task
    }

    #[test]
    fn new_tasks_go_where_most_cpus_are_free() {
        let new = [(3, ""), (9, ""), (5, ""), (7, "")];
        assert_eq!(
            shared_out("0-7", &new),
            [vec![9], vec![7], vec![5], vec![3]]
        );
        let beside_others = shared_out("0,3-5", &[(9, ""), (3, "")]);
        assert_eq!(beside_others, [vec![3], vec![], vec![9], vec![]]);
    }

    #[test]
    fn a_task_comes_back_to_the_socket_of_its_memory() {
        let machine = machine();
        let abroad = TaskView {
            home_cpu: Some(CpuId(0)),
            ..task((&(9, "6"), 0))
        };
        let free: Vec<&Cpu> = machine.cpus.iter().collect();
        let shares = share_out(&machine, &free, &[(0, &abroad)]);
        assert_eq!(shares, [vec![0], vec![], vec![], vec![]]);
    }

    #[test]
    fn a_home_is_right_while_the_machine_changes() {
        let [left, right] = [task((&(9, "1"), 0)), task((&(9, "5"), 1))];
        let homes = |cpus: &str| {
            let machine = machine().part(&cpus.parse().unwrap());
            [left.home(&machine), right.home(&machine)]
        };
        assert_eq!(homes("0-7"), [Some(0), Some(1)]);
        assert_eq!(homes("1-3,6-7"), [Some(0), None], "its own CPU is gone");
        assert_eq!(homes("0-3"), [None, None], "one domain");
    }

    #[test]
    fn tasks_stay_and_those_that_read_least_move_within_their_socket() {
        let apart = [(9, "6"), (7, "4"), (5, "2"), (3, "0")];
        assert_eq!(
            shared_out("0-7", &apart),
            [vec![3], vec![5], vec![7], vec![9]]
        );
        let together = [(9, "0"), (3, "1"), (5, "4")];
        assert_eq!(
            shared_out("0-7", &together),
            [vec![9], vec![3], vec![5], vec![]]
        );
        let one_socket = [(9, "0"), (8, "1"), (3, "2"), (4, "3")];
        assert_eq!(
            shared_out("0-7", &one_socket),
            [vec![9], vec![4], vec![8], vec![3]]
        );
    }
}
