//! Maps the memory controllers of a socket to memory domains.
//!
//! A PMU names its socket by one CPU, which the run need not be allowed to use. The controllers of a socket serve the
//! memory of all its NUMA nodes, and the kernel does not report which serves which. So counts can be attributed to a
//! memory domain only if it is the only one of its sockets.

use super::ITEM;
use crate::root::{NoMeter, ReadError, Root};
use crate::topology::{node_of, nodes, package};
use cosched_core::{Absence, CpuId, CpuSet, Machine};
use std::collections::BTreeSet;

/// The sockets that PMUs name, and the NUMA nodes of all CPUs.
pub(super) struct Places {
    /// CPUs of each NUMA node, usable or not.
    nodes: Vec<CpuSet>,
    /// For each CPU that a PMU names, the CPUs of its socket; those of all nodes if unknown.
    sockets: Vec<(CpuId, CpuSet)>,
}

impl Places {
    /// Reads the positions of the CPUs that the PMUs name.
    pub(super) fn read(root: &Root, named: &CpuSet) -> Result<Places, ReadError> {
        let nodes = nodes(root, ITEM)?;
        let all: CpuSet = nodes.iter().flat_map(CpuSet::iter).collect();
        let mut sockets = Vec::new();
        for cpu in named.iter() {
            sockets.push((cpu, package(root, cpu)?.unwrap_or_else(|| all.clone())));
        }
        Ok(Places { nodes, sockets })
    }

    /// The CPUs named by PMUs that represent the sockets of this memory domain.
    ///
    /// # Errors
    /// [`NoMeter`]: a socket has other memory domains as well, or some of the domain's CPUs are on no named socket.
    pub(super) fn of_domain(&self, machine: &Machine, domain: usize) -> Result<CpuSet, NoMeter> {
        let members = &machine.memory_domains[domain];
        let node = members.first().and_then(|cpu| node_of(&self.nodes, cpu));
        // Without a node the domain is the whole machine, but only the usable CPUs are known.
        let cpus = node.map_or(members, |node| &self.nodes[node]);
        let mut named = CpuSet::new();
        let mut reached = CpuSet::new();
        for (cpu, socket) in &self.sockets {
            if !socket.intersection(cpus).is_empty() {
                self.check_socket(*cpu, socket)?;
                named.insert(*cpu);
                reached.extend(socket.iter());
            }
        }
        let mut missed = cpus.clone();
        missed.remove_all(&reached);
        if !missed.is_empty() {
            let why =
                format!("no PMU of memory controllers names a CPU of the socket of CPUs {missed}");
            return Err(NoMeter::new(Absence::NotTold, why));
        }
        Ok(named)
    }

    /// Checks that a socket has only one memory domain.
    fn check_socket(&self, cpu: CpuId, socket: &CpuSet) -> Result<(), NoMeter> {
        let of_socket: BTreeSet<Option<usize>> =
            socket.iter().map(|cpu| node_of(&self.nodes, cpu)).collect();
        if of_socket.len() == 1 {
            return Ok(());
        }
        let why = format!(
            "the socket of CPU {} has {} memory domains, and the kernel does not say which of its memory controllers              serves which",
            cpu.0,
            of_socket.len()
        );
        Err(NoMeter::new(Absence::NotTold, why))
    }
}
