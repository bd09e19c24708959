//! Allocation of chosen tasks to CPUs (Feliu et al., lines 9-12 of the poster's algorithm; Perf&Fair, section 5.3).
//!
//! With SMT, the chosen are sorted by their L1 bandwidth and the two ends are paired on one core, again and again. The
//! same pairs come about when each task, from the heaviest to the lightest, goes to the core with the fewest tasks and,
//! among those, the least L1 bandwidth: with as many tasks as CPUs the first half takes a core each, and the lightest
//! of all joins the heaviest. With fewer tasks the heaviest stay alone on their cores. With more than two threads per
//! core the same rule goes on.
//!
//! Any of several alike cores will do, so a task stays where it ran last if possible: a move costs it the contents of
//! its caches.

use crate::decision::Change;
use crate::placement::{Placement, Purpose};
use crate::snapshot::{Snapshot, TaskView};
use crate::topology::{CpuId, CpuSet};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A task that was chosen to run.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The index of the task in the snapshot.
    pub(super) ix: u32,
    pub(super) purpose: Purpose,
    /// Its CPUs, if they are fixed already.
    pub(super) reserved: Option<CpuSet>,
    /// Whether the other CPUs of its cores stay idle.
    pub(super) whole_core: bool,
}

/// One core with free CPUs.
struct Core {
    /// Free CPUs that were not given out yet.
    free: Vec<CpuId>,
    /// Number of tasks that it holds, from before or by this allocation.
    tasks: u32,
    /// Their L1 bandwidth.
    l1: u64,
}

fn l1(task: &TaskView) -> u64 {
    task.estimates.l1.value().map_or(0, |rate| rate.0) / u64::from(task.cpus.max(1))
}

/// Gives each chosen task its CPUs; the changes are in the order of `chosen`.
///
/// `free` are the CPUs that are not reserved for any of them. With `full`, a task that ran until now is either among
/// the chosen or stops, unless it can't be stopped.
pub(super) fn allocate(
    snap: &Snapshot,
    full: bool,
    free: &CpuSet,
    chosen: Vec<Chosen>,
) -> Vec<Change> {
    let machine = &*snap.machine;
    let mut cores: Vec<Core> = machine
        .cores
        .iter()
        .map(|_| Core {
            free: Vec::new(),
            tasks: 0,
            l1: 0,
        })
        .collect();
    for cpu in machine.cpus.iter().filter(|cpu| free.contains(cpu.id)) {
        cores[cpu.core].free.push(cpu.id);
    }
    let mut assigned: Vec<Option<CpuSet>> = chosen.iter().map(|c| c.reserved.clone()).collect();
    if machine.has_smt() {
        count_neighbours(snap, full, &chosen, &mut cores);
    }
    gangs(snap, &chosen, &mut cores, &mut assigned);
    if machine.has_smt() {
        balanced_singles(snap, &chosen, &mut cores, &mut assigned);
    } else {
        sticky_singles(snap, &chosen, &mut cores, &mut assigned);
    }
    chosen
        .into_iter()
        .zip(assigned)
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

/// Adds the tasks that are on the cores already: those that go on running, and the chosen ones with reserved CPUs.
fn count_neighbours(snap: &Snapshot, full: bool, chosen: &[Chosen], cores: &mut [Core]) {
    let machine = &*snap.machine;
    let staying = snap.tasks.iter().filter(|task| task.stays(full));
    let staying = staying.filter_map(|task| Some((task, task.running.as_ref()?)));
    let staying = staying.filter_map(|(task, running)| match &running.placement {
        Placement::Exclusive { cpus, .. } => Some((task, cpus)),
        Placement::Shared { .. } => None,
    });
    let settled = chosen
        .iter()
        .filter_map(|c| Some((&snap.tasks[c.ix as usize], c.reserved.as_ref()?)));
    for (task, cpus) in staying.chain(settled) {
        for cpu in cpus.iter().filter_map(|cpu| machine.index_of(cpu)) {
            let core = &mut cores[machine.cpus[cpu].core];
            core.tasks += 1;
            core.l1 += l1(task);
        }
    }
}

/// Gangs take the cores with most free CPUs, so that they share cores with as few others as possible; among those, the
/// ones where they ran last.
fn gangs(snap: &Snapshot, chosen: &[Chosen], cores: &mut [Core], assigned: &mut [Option<CpuSet>]) {
    let machine = &*snap.machine;
    let needs = |c: &Chosen| c.reserved.is_none() && snap.tasks[c.ix as usize].cpus > 1;
    if !chosen.iter().any(needs) {
        return;
    }
    // Cores by the number of their free CPUs.
    let most = cores
        .iter()
        .map(|core| core.free.len())
        .max()
        .unwrap_or_default();
    let mut by_free: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); most + 1];
    for (ix, core) in cores.iter().enumerate() {
        by_free[core.free.len()].insert(ix);
    }
    for (c, place) in chosen
        .iter()
        .zip(assigned.iter_mut())
        .filter(|(c, _)| needs(c))
    {
        let task = &snap.tasks[c.ix as usize];
        let last = || {
            task.last_cpus
                .iter()
                .filter_map(|cpu| machine.index_of(cpu))
                .map(|ix| machine.cpus[ix].core)
        };
        let mut cpus = CpuSet::new();
        let mut wanted = task.cpus as usize;
        for free in (1..=most).rev() {
            while wanted > 0
                && let Some(ix) = last()
                    .find(|ix| by_free[free].contains(ix))
                    .or(by_free[free].first().copied())
            {
                let taken = wanted.min(free);
                let core = &mut cores[ix];
                cpus.extend(core.free.drain(..taken));
                core.tasks += taken as u32;
                core.l1 += l1(task) * taken as u64;
                wanted -= taken;
                by_free[free].remove(&ix);
                by_free[free - taken].insert(ix);
            }
        }
        *place = Some(cpus);
    }
}

/// Without SMT: each task stays where it ran last if it can. The others take what is left, in order.
fn sticky_singles(
    snap: &Snapshot,
    chosen: &[Chosen],
    cores: &mut [Core],
    assigned: &mut [Option<CpuSet>],
) {
    let machine = &*snap.machine;
    for (c, place) in chosen
        .iter()
        .zip(assigned.iter_mut())
        .filter(|(_, place)| place.is_none())
    {
        let task = &snap.tasks[c.ix as usize];
        if let Some(last) = task.last_cpus.first()
            && let Some(ix) = machine.index_of(last)
        {
            let core = &mut cores[machine.cpus[ix].core];
            if let Some(pos) = core.free.iter().position(|&cpu| cpu == last) {
                core.free.remove(pos);
                *place = Some([last].into_iter().collect());
            }
        }
    }
    let mut rest = cores.iter_mut().flat_map(|core| core.free.drain(..));
    for place in assigned.iter_mut().filter(|place| place.is_none()) {
        *place = rest.next().map(|cpu| [cpu].into_iter().collect());
    }
}

/// With SMT: L1 bandwidth balanced over the cores.
fn balanced_singles(
    snap: &Snapshot,
    chosen: &[Chosen],
    cores: &mut [Core],
    assigned: &mut [Option<CpuSet>],
) {
    let mut singles: Vec<usize> = (0..chosen.len())
        .filter(|&c| assigned[c].is_none())
        .collect();
    singles.sort_by_key(|&c| {
        let task = &snap.tasks[chosen[c].ix as usize];
        (Reverse(l1(task)), task.id)
    });
    // Fewest tasks first, then least L1 bandwidth, then lowest number.
    let mut heap: BinaryHeap<Reverse<(u32, u64, usize)>> = cores
        .iter()
        .enumerate()
        .filter(|(_, core)| !core.free.is_empty())
        .map(|(ix, core)| Reverse((core.tasks, core.l1, ix)))
        .collect();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); cores.len()];
    for &c in &singles {
        let Some(Reverse((tasks, sum, ix))) = heap.pop() else {
            break;
        };
        members[ix].push(c);
        if members[ix].len() < cores[ix].free.len() {
            heap.push(Reverse((
                tasks + 1,
                sum + l1(&snap.tasks[chosen[c].ix as usize]),
                ix,
            )));
        }
    }
    exchange_alike(snap, chosen, cores, &mut members);
    for (core, members) in cores.iter_mut().zip(&members) {
        let mut late = Vec::new();
        for &c in members {
            let last = &snap.tasks[chosen[c].ix as usize].last_cpus;
            match core.free.iter().position(|&cpu| last.contains(cpu)) {
                Some(pos) => assigned[c] = Some([core.free.remove(pos)].into_iter().collect()),
                None => late.push(c),
            }
        }
        for c in late {
            assigned[c] = Some([core.free.remove(0)].into_iter().collect());
        }
    }
}

/// Exchanges the groups of tasks among alike cores (wholly free, of the same size and type), so that as many groups as
/// possible get the core where a member ran last.
fn exchange_alike(
    snap: &Snapshot,
    chosen: &[Chosen],
    cores: &[Core],
    members: &mut Vec<Vec<usize>>,
) {
    let machine = &*snap.machine;
    let kind = |ix: usize| {
        let cpu = cores[ix]
            .free
            .first()
            .and_then(|&cpu| machine.index_of(cpu))
            .map(|ix| &machine.cpus[ix])?;
        let whole = cores[ix].tasks == 0 && cores[ix].free.len() == machine.cores[ix].len();
        whole.then_some((cores[ix].free.len(), cpu.core_type))
    };
    let kinds: Vec<_> = (0..cores.len()).map(kind).collect();
    let last_core = |c: usize| {
        let cpu = snap.tasks[chosen[c].ix as usize].last_cpus.first()?;
        machine.index_of(cpu).map(|ix| machine.cpus[ix].core)
    };
    let mut result: Vec<Vec<usize>> = vec![Vec::new(); cores.len()];
    let mut taken = vec![false; cores.len()];
    let mut homeless = Vec::new();
    for ix in 0..cores.len() {
        let group = std::mem::take(&mut members[ix]);
        if kinds[ix].is_none() {
            // Not exchangeable: the group was balanced for exactly this core.
            taken[ix] = true;
            result[ix] = group;
        } else if !group.is_empty() {
            homeless.push((kinds[ix], group));
        }
    }
    homeless.retain_mut(|(kind, group)| {
        let home = group
            .iter()
            .filter_map(|&c| last_core(c))
            .find(|&core| !taken[core] && kinds[core] == *kind);
        match home {
            Some(core) => {
                taken[core] = true;
                result[core] = std::mem::take(group);
                false
            }
            None => true,
        }
    });
    let mut next = 0;
    for (kind, group) in homeless {
        // There are no more groups of a kind than cores of that kind, so each group gets a core. Cores of one kind
        // mostly lie together, so the search starts where the last one ended.
        let found = (0..cores.len())
            .map(|step| (next + step) % cores.len())
            .find(|&c| !taken[c] && kinds[c] == kind);
        if let Some(core) = found {
            next = core + 1;
            taken[core] = true;
            result[core] = group;
        }
    }
    *members = result;
}
