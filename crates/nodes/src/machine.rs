//! All nodes as one machine: a node is a memory domain, and its CPUs are the jobs that its worker runs at once.

use crate::protocol;
use cosched_core::{Absence, CoreType, Cpu, CpuId, CpuSet, Machine, Node, Reading};

/// A node's name, and what its worker said, if it has answered.
pub(crate) type Named<'a> = (&'a str, Option<&'a protocol::NodeDescription>);

/// The machine of these nodes. A node that has not answered has no CPU.
pub(crate) fn machine_of(nodes: &[Named<'_>]) -> Machine {
    let mut machine = Machine {
        name: name(nodes),
        cpus: Vec::new(),
        cores: Vec::new(),
        llcs: Vec::new(),
        memory_domains: Vec::new(),
        core_types: vec![CoreType {
            name: "slot".to_owned(),
            capacity: None,
            max_khz: None,
        }],
        llc_bytes: Reading::Absent(Absence::NotOffered),
        nodes: Vec::new(),
    };
    for (name, told) in nodes {
        if let Some(told) = told {
            add(&mut machine, name, told);
        }
    }
    machine
}

fn add(machine: &mut Machine, name: &str, told: &protocol::NodeDescription) {
    let domain = machine.memory_domains.len();
    let mut all = CpuSet::new();
    for _ in 0..slots(told) {
        let id = CpuId(machine.cpus.len() as u32);
        machine.cpus.push(Cpu {
            id,
            core: machine.cores.len(),
            llc: domain,
            memory_domain: domain,
            core_type: 0,
        });
        machine.cores.push(id.into());
        all.insert(id);
    }
    machine.llcs.push(all.clone());
    machine.memory_domains.push(all.clone());
    machine.nodes.push(Node {
        name: name.to_owned(),
        cpus: all,
        width: Some(told.cpus),
        memory: told.memory,
    });
}

fn name(nodes: &[Named<'_>]) -> String {
    let count = nodes.iter().filter(|(_, told)| told.is_some()).count();
    let nodes = if count == 1 { "node" } else { "nodes" };
    format!("{count} {nodes}")
}

/// The jobs that a node runs at once.
pub(crate) fn slots(node: &protocol::NodeDescription) -> u32 {
    node.jobs.unwrap_or(node.cpus).max(1)
}

/// The first CPU of each node.
pub(crate) fn first_cpus(nodes: &[Named<'_>]) -> Vec<u32> {
    let mut next = 0;
    let mut first = Vec::new();
    for (_, told) in nodes {
        first.push(next);
        next += told.map_or(0, slots);
    }
    first
}

/// The node of a CPU. Of nodes with the same first CPU, all but the last have none.
pub(crate) fn node_of(first: &[u32], cpu: CpuId) -> Option<usize> {
    first
        .partition_point(|&first| first <= cpu.0)
        .checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpus: u32, jobs: Option<u32>) -> protocol::NodeDescription {
        protocol::NodeDescription {
            host: "node".to_owned(),
            cpus,
            jobs,
            memory: None,
            machine: "m".to_owned(),
            run_id: "1".to_owned(),
            version: "1".to_owned(),
        }
    }

    #[test]
    fn each_node_that_answered_is_a_domain() {
        let (a, c) = (node(2, None), node(64, Some(3)));
        let nodes = [("a", Some(&a)), ("b", None), ("c", Some(&c))];
        let machine = machine_of(&nodes);
        machine.validate().unwrap();
        assert_eq!(machine.name, "2 nodes");
        let domains: Vec<String> = machine
            .memory_domains
            .iter()
            .map(CpuSet::to_string)
            .collect();
        assert_eq!(domains, ["0-1", "2-4"]);
        assert_eq!(machine.nodes[1].name, "c");
        let first = first_cpus(&nodes);
        let of = |cpu| node_of(&first, CpuId(cpu));
        assert_eq!(
            [of(0), of(1), of(2), of(4)],
            [Some(0), Some(0), Some(2), Some(2)]
        );
    }
}
