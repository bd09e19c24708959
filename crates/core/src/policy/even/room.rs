//! The CPUs that `even` gives out in a round, and the places of critical jobs, which are chosen first.

use super::choose::{Candidate, Place};
use super::is_predictable;
use crate::policy::prelude::*;
use crate::topology::{CpuId, CpuSet};

/// The CPUs to fill, and those of predictable tasks that stay; in ascending order.
pub(super) struct Room {
    pub(super) cpus: Vec<CpuId>,
    pub(super) places: Vec<Place>,
    /// Number of cores of each memory domain that are busy with other tasks.
    pub(super) elsewhere: Vec<usize>,
}

impl Room {
    pub(super) fn new(round: &Round<'_>) -> Room {
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
            places.push(Place {
                core: cpu.core,
                llc: cpu.llc,
                domain: cpu.memory_domain,
                kind: cpu.core_type,
                awake: awake[cpu.core],
            });
        }
        Room {
            cpus,
            places,
            elsewhere,
        }
    }

    /// The place of the first CPU of a set, if it has one.
    pub(super) fn place_of(&self, set: &CpuSet) -> Option<usize> {
        self.cpus.binary_search(&set.first()?).ok()
    }

    /// Gives each critical job a place: on a core of its own if possible, of the fastest type, and where it ran last.
    /// The other jobs are chosen to go with them.
    pub(super) fn settle_critical(&self, round: &Round<'_>, candidates: &mut [Candidate<'_>]) {
        let places = &self.places;
        let cores = places.iter().map(|place| place.core + 1).max().unwrap_or(0);
        let (mut taken, mut busy) = (vec![false; places.len()], vec![false; cores]);
        for place in candidates.iter().filter_map(|one| one.fixed) {
            (taken[place], busy[places[place].core]) = (true, true);
        }
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&place| places[place].kind);
        for one in candidates {
            if one.fixed.is_some() || !round.is_critical(one.ix) {
                continue;
            }
            let is_alone = |place: usize| !taken[place] && !busy[places[place].core];
            let alone = order.iter().find(|&&place| is_alone(place));
            let Some(&found) = alone.or_else(|| order.iter().find(|&&place| !taken[place])) else {
                break;
            };
            let last = one
                .last
                .filter(|&last| is_alone(last) && places[last].kind == places[found].kind);
            let place = last.unwrap_or(found);
            (taken[place], busy[places[place].core]) = (true, true);
            one.fixed = Some(place);
        }
    }
}
