//! Restricts a machine to some of its CPUs.

use crate::topology::{CpuSet, Machine};

impl Machine {
    /// The machine with only some of its CPUs, without the cores, caches, domains and types that lose all of theirs.
    pub fn part(&self, usable: &CpuSet) -> Machine {
        let mut part = self.clone();
        for node in &mut part.nodes {
            node.cpus = node.cpus.intersection(usable);
        }
        part.cpus.retain(|cpu| usable.contains(cpu.id));
        let cores = keep(&mut part.cores, usable);
        let llcs = keep(&mut part.llcs, usable);
        let domains = keep(&mut part.memory_domains, usable);
        let mut types: Vec<usize> = part.cpus.iter().map(|cpu| cpu.core_type).collect();
        types.sort_unstable();
        types.dedup();
        let types_kept = types.iter().map(|&ix| self.core_types[ix].clone());
        part.core_types = types_kept.collect();
        for cpu in &mut part.cpus {
            cpu.core = cores[cpu.core].unwrap_or_default();
            cpu.llc = llcs[cpu.llc].unwrap_or_default();
            cpu.memory_domain = domains[cpu.memory_domain].unwrap_or_default();
            cpu.core_type = types.binary_search(&cpu.core_type).unwrap_or_default();
        }
        part
    }
}

/// Drops the sets without a usable CPU, and returns the new numbers of all.
fn keep(sets: &mut Vec<CpuSet>, usable: &CpuSet) -> Vec<Option<usize>> {
    let mut numbers = Vec::new();
    let mut kept = Vec::new();
    for set in sets.iter() {
        let set = set.intersection(usable);
        numbers.push((!set.is_empty()).then_some(kept.len()));
        if !set.is_empty() {
            kept.push(set);
        }
    }
    *sets = kept;
    numbers
}
