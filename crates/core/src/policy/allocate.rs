//! Allocation of chosen tasks to CPUs (Feliu et al., lines 9-12 of the poster's algorithm; Perf&Fair, section 5.3).
//!
//! With SMT, the chosen tasks are sorted by L1 bandwidth, and the two ends are paired on one core, again and again. The
//! same pairs result if each task, the heaviest first, goes to the core with the fewest tasks and, among those, the
//! least L1 bandwidth: with as many tasks as CPUs the first half takes a core each, and the lightest task joins the
//! heaviest. With fewer tasks the heaviest stay alone on their cores. The same rule serves cores with more than two
//! threads.
//!
//! A task stays on the core where it ran last, if equal cores leave a choice: a migration costs it the contents of its
//! caches.

use super::regions::share_out;
use crate::decision::Change;
use crate::placement::{Placement, Purpose};
use crate::snapshot::{Snapshot, TaskView};
use crate::topology::{Cpu, CpuId, CpuSet, Machine};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that was chosen to run.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The index of the task in the snapshot.
    pub(super) ix: u32,
    pub(super) purpose: Purpose,
    /// Its CPUs, if already fixed.
    pub(super) reserved: Option<CpuSet>,
    /// Whether the other CPUs of its cores stay idle.
    pub(super) whole_core: bool,
}

/// One core with free CPUs.
#[derive(Clone, Default)]
struct Core {
    /// Free CPUs not given out yet.
    free: Vec<CpuId>,
    /// Number of tasks on it, from before or by this allocation.
    tasks: u32,
    /// Their L1 bandwidth.
    l1: u64,
}

impl Core {
    /// Takes a free CPU out of `last`.
    fn take(&mut self, last: &CpuSet) -> Option<CpuId> {
        let pos = self.free.iter().position(|&cpu| last.contains(cpu))?;
        Some(self.free.remove(pos))
    }
}

fn l1(task: &TaskView) -> u64 {
    task.estimates.l1.value().map_or(0, |rate| rate.0) / u64::from(task.cpus.max(1))
}

/// Gives each chosen task its CPUs. The changes are in the order of `chosen`.
///
/// `free` are the CPUs not reserved for any of them. With `full`, a running task that was not chosen stops, unless it
/// can't be stopped.
pub(super) fn allocate(
    snap: &Snapshot,
    full: bool,
    free: &CpuSet,
    chosen: Vec<Chosen>,
) -> Vec<Change> {
    let machine = &*snap.machine;
    let mut cores = vec![Core::default(); machine.cores.len()];
    for cpu in machine.cpus.iter().filter(|cpu| free.contains(cpu.id)) {
        cores[cpu.core].free.push(cpu.id);
    }
    let mut allocation = Allocation {
        machine,
        tasks: chosen
            .iter()
            .map(|chosen| &*snap.tasks[chosen.ix as usize])
            .collect(),
        cpus: chosen
            .iter()
            .map(|chosen| chosen.reserved.clone())
            .collect(),
        cores,
    };
    if machine.has_smt() {
        allocation.count_neighbours(snap, full);
    }
    allocation.place_gangs();
    for (cores, singles) in allocation.groups() {
        if machine.has_smt() {
            allocation.balance_singles(&cores, &singles);
        } else {
            allocation.place_singles(&cores, &singles);
        }
    }
    chosen
        .into_iter()
        .zip(allocation.cpus)
        .map(|(chosen, cpus): (Chosen, Option<CpuSet>)| Change::Place {
            task: snap.tasks[chosen.ix as usize].id,
            placement: Placement::Exclusive {
                cpus: cpus.unwrap_or_default(),
                whole_core: chosen.whole_core,
            },
            lease_end: None,
            purpose: chosen.purpose,
        })
        .collect()
}

/// The chosen tasks, and the CPUs given to them so far.
struct Allocation<'a> {
    machine: &'a Machine,
    tasks: Vec<&'a TaskView>,
    cpus: Vec<Option<CpuSet>>,
    cores: Vec<Core>,
}

impl Allocation<'_> {
    /// Counts the tasks already on the cores: those that go on running, and the chosen ones with reserved CPUs.
    fn count_neighbours(&mut self, snap: &Snapshot, full: bool) {
        for task in snap.tasks.iter().filter(|task| task.stays(full)) {
            if let Some(cpus) = task.exclusive_cpus() {
                count_neighbour(&mut self.cores, self.machine, task, cpus);
            }
        }
        for (task, cpus) in self.tasks.iter().zip(&self.cpus) {
            if let Some(cpus) = cpus {
                count_neighbour(&mut self.cores, self.machine, task, cpus);
            }
        }
    }

    /// Places gangs on the cores with most free CPUs, so that they share cores with as few others as possible; among
    /// those, on the cores where they ran last.
    fn place_gangs(&mut self) {
        for (task, place) in self.tasks.iter().zip(&mut self.cpus) {
            if place.is_some() || task.cpus == 1 {
                continue;
            }
            let cpus = place.insert(CpuSet::new());
            let mut wanted = task.cpus as usize;
            while wanted > 0
                && let Some(core) = emptiest_core(&self.cores, self.machine, &task.last_cpus)
            {
                let core = &mut self.cores[core];
                let taken = wanted.min(core.free.len());
                cpus.extend(core.free.drain(..taken));
                core.tasks += taken as u32;
                core.l1 += l1(task) * taken as u64;
                wanted -= taken;
            }
        }
    }

    /// The cores to balance among themselves, each group with its tasks: those of a last-level cache, or all.
    fn groups(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let singles: Vec<usize> = (0..self.tasks.len())
            .filter(|&at| self.cpus[at].is_none())
            .collect();
        let has_types = self.machine.core_types.len() > 1;
        if self.machine.llcs.len() == 1 || has_types {
            return vec![((0..self.cores.len()).collect(), singles)];
        }
        let free = self.cores.iter().flat_map(|core| &core.free);
        let free: Vec<&Cpu> = free.filter_map(|&cpu| self.machine.cpu(cpu)).collect();
        let tasks: Vec<(usize, &TaskView)> =
            singles.iter().map(|&at| (at, self.tasks[at])).collect();
        let shares = share_out(self.machine, &free, &tasks);
        // The free CPUs are in the order of their cores.
        let mut cores = vec![Vec::new(); shares.len()];
        for cpu in free {
            let cores = &mut cores[cpu.llc];
            if cores.last() != Some(&cpu.core) {
                cores.push(cpu.core);
            }
        }
        cores.into_iter().zip(shares).collect()
    }

    /// Places tasks without SMT: each where it ran last if possible, the others on the CPUs left, in order.
    fn place_singles(&mut self, cores: &[usize], singles: &[usize]) {
        for &at in singles {
            let last = self.tasks[at].last_cpus.first();
            let last = last.and_then(|last| self.machine.cpu(last));
            if let Some(last) = last
                && cores.binary_search(&last.core).is_ok()
            {
                let taken = self.cores[last.core].take(&last.id.into());
                self.cpus[at] = taken.map(CpuSet::from);
            }
        }
        let mut rest = Vec::new();
        for &core in cores {
            rest.append(&mut self.cores[core].free);
        }
        let mut rest = rest.into_iter();
        for &at in singles {
            let place = &mut self.cpus[at];
            *place = place.take().or_else(|| rest.next().map(CpuSet::from));
        }
    }

    /// Places tasks with SMT: balances L1 bandwidth over the cores.
    fn balance_singles(&mut self, cores: &[usize], singles: &[usize]) {
        let members = self.balanced(cores, singles);
        let members = self.exchange_alike(cores, members);
        for (&core, members) in cores.iter().zip(members) {
            let core = &mut self.cores[core];
            let mut late = Vec::new();
            for at in members {
                match core.take(&self.tasks[at].last_cpus) {
                    Some(cpu) => self.cpus[at] = Some(cpu.into()),
                    None => late.push(at),
                }
            }
            for at in late {
                self.cpus[at] = Some(core.free.remove(0).into());
            }
        }
    }

    /// The tasks of each core: each task, the heaviest first, joins the core with the fewest tasks, and among those the
    /// one with the least L1 bandwidth.
    fn balanced(&self, cores: &[usize], singles: &[usize]) -> Vec<Vec<usize>> {
        let mut singles = singles.to_vec();
        singles.sort_by_key(|&at| (Reverse(l1(self.tasks[at])), self.tasks[at].id));
        // The last tie-break is the number of the core.
        let mut heap: BinaryHeap<Reverse<(u32, u64, usize)>> = cores
            .iter()
            .map(|&core| &self.cores[core])
            .enumerate()
            .filter(|(_, core)| !core.free.is_empty())
            .map(|(ix, core)| Reverse((core.tasks, core.l1, ix)))
            .collect();
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); cores.len()];
        for at in singles {
            let Some(Reverse((tasks, sum, ix))) = heap.pop() else {
                break;
            };
            members[ix].push(at);
            if members[ix].len() < self.cores[cores[ix]].free.len() {
                heap.push(Reverse((tasks + 1, sum + l1(self.tasks[at]), ix)));
            }
        }
        members
    }

    /// Exchanges the groups of tasks among equal cores, so that as many groups as possible get the core where a member
    /// ran last.
    fn exchange_alike(&self, cores: &[usize], members: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = cores.len();
        let kinds: Vec<_> = cores.iter().map(|&core| self.kind(core)).collect();
        let mut result: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut taken: Vec<bool> = kinds.iter().map(Option::is_none).collect();
        let mut homeless = Vec::new();
        for (core, group) in members.into_iter().enumerate() {
            if kinds[core].is_none() {
                // Not exchangeable: the group was balanced for exactly this core.
                result[core] = group;
                continue;
            }
            let home = group
                .iter()
                .filter_map(|&at| self.machine.cpu(self.tasks[at].last_cpus.first()?))
                .filter_map(|cpu| cores.binary_search(&cpu.core).ok())
                .find(|&home| !taken[home] && kinds[home] == kinds[core]);
            match home {
                Some(home) => {
                    taken[home] = true;
                    result[home] = group;
                }
                None if group.is_empty() => {}
                None => homeless.push((kinds[core], group)),
            }
        }
        // There are no more groups of a kind than cores of that kind, so each group gets a core. Cores of one kind
        // mostly lie together, so the search starts where the last one ended.
        let mut next = 0;
        for (kind, group) in homeless {
            let mut order = (next..count).chain(0..next);
            if let Some(core) = order.find(|&core| !taken[core] && kinds[core] == kind) {
                next = core + 1;
                taken[core] = true;
                result[core] = group;
            }
        }
        result
    }

    /// The size and type of a core that is wholly free; `None` if it is not.
    fn kind(&self, core: usize) -> Option<(usize, usize)> {
        let Core { free, tasks, .. } = &self.cores[core];
        let whole = *tasks == 0 && free.len() == self.machine.cores[core].len();
        let cpu = self.machine.cpu(*free.first()?)?;
        whole.then_some((free.len(), cpu.core_type))
    }
}

fn count_neighbour(cores: &mut [Core], machine: &Machine, task: &TaskView, cpus: &CpuSet) {
    for cpu in machine.cpus_in(cpus) {
        let core = &mut cores[cpu.core];
        core.tasks += 1;
        core.l1 += l1(task);
    }
}

/// The core with the most free CPUs, if any is free: one with CPUs of `last`, else the first.
fn emptiest_core(cores: &[Core], machine: &Machine, last: &CpuSet) -> Option<usize> {
    let most = cores.iter().map(|core| core.free.len()).max()?;
    let last = machine.cpus_in(last).map(|cpu| cpu.core);
    last.chain(0..cores.len())
        .find(|&core| most > 0 && cores[core].free.len() == most)
}
