//! The CPUs that `even` gives out in a round.

use super::choose::CpuPlace;
use super::is_predictable;
use crate::policy::prelude::*;
use crate::topology::{CpuId, CpuSet};

/// The CPUs to fill, and those of predictable tasks that stay; in ascending order.
pub(super) struct RoundCpus {
    pub(super) cpus: Vec<CpuId>,
    pub(super) places: Vec<CpuPlace>,
    /// Number of cores of each memory domain that are busy with other tasks.
    pub(super) elsewhere: Vec<usize>,
}

impl RoundCpus {
    pub(super) fn new(round: &Round<'_>) -> RoundCpus {
        let machine = &*round.snap.machine;
        let mut set: CpuSet = machine
            .cpus
            .iter()
            .map(|cpu| cpu.id)
            .filter(|&cpu| round.is_free(cpu))
            .take(round.left() as usize)
            .collect();
        for task in &round.snap.tasks {
            if task.stays(round.full)
                && is_predictable(task)
                && let Some(cpus) = task.exclusive_cpus()
            {
                set.extend(cpus.iter());
            }
        }
        let mut awake = vec![false; machine.cores.len()];
        let mut elsewhere = vec![0; machine.memory_domains.len()];
        for cpu in &machine.cpus {
            if !set.contains(cpu.id) && !round.is_free(cpu.id) && !awake[cpu.core] {
                awake[cpu.core] = true;
                elsewhere[cpu.memory_domain] += 1;
            }
        }
        let (mut cpus, mut places) = (Vec::new(), Vec::new());
        for cpu in set.iter().filter_map(|cpu| machine.cpu(cpu)) {
            cpus.push(cpu.id);
            places.push(CpuPlace {
                core: cpu.core,
                llc: cpu.llc,
                domain: cpu.memory_domain,
                kind: cpu.core_type,
                awake: awake[cpu.core],
            });
        }
        RoundCpus {
            cpus,
            places,
            elsewhere,
        }
    }

    /// The place of the first CPU of a set, if it has one.
    pub(super) fn place_of(&self, set: &CpuSet) -> Option<usize> {
        self.cpus.binary_search(&set.first()?).ok()
    }
}
