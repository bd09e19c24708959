//! What a world says of its machine, and what it lacks.

use cosched_core::{Absence, Capabilities, Capability, Cpu, CpuSet, Device, Machine};
use std::collections::BTreeMap;

/// Checks that a machine does not contradict itself. The error names the field.
pub(super) fn check(machine: &Machine) -> Result<(), String> {
    machine
        .validate()
        .map_err(|error| format!("machine: {error}"))?;
    if machine.name.is_empty() {
        return Err("machine.name: it is empty".to_owned());
    }
    if !machine.nodes.is_empty() {
        return Err("machine.nodes: a world is one computer".to_owned());
    }
    check_sets(machine, "cores", &machine.cores, |cpu| cpu.core)?;
    check_sets(machine, "llcs", &machine.llcs, |cpu| cpu.llc)?;
    let domains = &machine.memory_domains;
    check_sets(machine, "memory_domains", domains, |cpu| cpu.memory_domain)
}

/// Checks that each set has CPUs, and only those that refer to it.
fn check_sets(
    machine: &Machine,
    field: &str,
    sets: &[CpuSet],
    index: fn(&Cpu) -> usize,
) -> Result<(), String> {
    for (at, set) in sets.iter().enumerate() {
        if set.is_empty() {
            return Err(format!("machine.{field}[{at}]: it has no CPU"));
        }
        for cpu in set.iter() {
            match machine.cpu(cpu) {
                None => {
                    return Err(format!(
                        "machine.{field}[{at}]: CPU {} is not in `cpus`",
                        cpu.0
                    ));
                }
                Some(known) if index(known) != at => {
                    let other = index(known);
                    return Err(format!(
                        "machine.{field}[{at}]: CPU {} is in `{field}[{other}]`, as `cpus` says",
                        cpu.0
                    ));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// What a world lacks: as it says, and what no world has.
pub(super) fn capabilities(
    missing: &BTreeMap<String, Absence>,
    machine: &Machine,
) -> Result<Capabilities, String> {
    let mut capabilities = Capabilities::default();
    for device in Device::ALL {
        lack(
            &mut capabilities,
            Capability::Device(device),
            Absence::NotOffered,
        );
    }
    lack(&mut capabilities, Capability::Plans, Absence::NotOffered);
    if machine.core_types.len() < 2 {
        lack(
            &mut capabilities,
            Capability::CoreTypes,
            Absence::OneCoreType,
        );
    }
    for (code, &why) in missing {
        let capability = Capability::of_code(code);
        let capability =
            capability.ok_or_else(|| format!("missing: there is no capability `{code}`"))?;
        lack(&mut capabilities, capability, why);
    }
    Ok(capabilities)
}

fn lack(capabilities: &mut Capabilities, capability: Capability, why: Absence) {
    capabilities.missing.insert(capability, why);
}
