//! The machine's CPUs, cores, caches, memory domains and core types, from sysfs.

use crate::processor::Processors;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, CoreType, Cpu, CpuId, CpuSet, Machine, MachineError, Reading};
use std::collections::BTreeSet;

const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// The machine, and the reasons for excluded CPUs.
#[derive(Debug)]
pub struct Topology {
    /// The used CPUs, with their cores, caches and domains.
    pub machine: Machine,
    /// All CPUs of the machine.
    pub present: CpuSet,
    /// Each set of excluded CPUs, with the reason in words; no empty sets.
    pub left_out: Vec<(CpuSet, &'static str)>,
    /// Whether the processor reports a hypervisor below it.
    pub virtual_machine: bool,
}

const NOT_IN_AFFINITY: &str = "not in the affinity of this process";

impl Topology {
    /// Whether something binds this process to a part of the machine.
    pub fn is_bound(&self) -> bool {
        let mut reasons = self.left_out.iter().map(|(_, why)| *why);
        reasons.any(|why| why == NOT_IN_AFFINITY)
    }
}

/// Why a machine cannot be described or used.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file of the kernel is unusable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The requested list of CPUs contains unusable ones.
    #[error(
        "the CPUs {0} do not exist, are offline, or are not in the affinity of this process (see `taskset -p`, or the \
         container's cpuset)"
    )]
    Unusable(CpuSet),
    /// The requested list of CPUs is empty.
    #[error("the list of CPUs is empty; give at least one, as in `0-3,8`")]
    EmptyList,
    /// The files contradict each other.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// The online CPUs.
///
/// # Errors
/// The kernel does not list them.
pub(crate) fn online(root: &Root) -> Result<CpuSet, TopologyError> {
    let (path, item) = ("/sys/devices/system/cpu/online", "online CPUs");
    let online = root.cpus(path, item)?;
    Ok(online.ok_or_else(|| root.missing(path, item, "a list of CPUs"))?)
}

/// Describes the machine with all online CPUs, whatever this process may use.
///
/// # Errors
/// As [`read`].
pub fn whole_machine(root: &Root) -> Result<Machine, TopologyError> {
    Ok(read(root, &online(root)?, None)?.machine)
}

/// Describes the machine under `root`, restricted to `affinity` and, if given, to the CPUs `asked`.
///
/// Sets of siblings, cache sharers and node members contain only used CPUs. Without sysfs files, a CPU without siblings
/// is its own core; without cache files, the CPUs of one package share a last-level cache of absent size; CPUs without
/// a node form one memory domain. Core types differ only if the kernel reports it: by `cpu_core` and `cpu_atom` on
/// hybrid Intel parts, by `cpu_capacity` on others. A core with only a higher top frequency is a favoured core of the
/// same type.
///
/// # Errors
/// [`TopologyError`]: an unusable file, or a list or an affinity that leaves no CPU.
pub fn read(
    root: &Root,
    affinity: &CpuSet,
    asked: Option<&CpuSet>,
) -> Result<Topology, TopologyError> {
    let processors = Processors::read(root)?;
    let (present, used) = choose(root, affinity, asked)?;
    let cpus: Vec<CpuId> = used.cpus.iter().collect();
    let caches = caches(root, &cpus, &present)?;
    let llc_sets: Vec<CpuSet> = caches.iter().map(|cache| cache.cpus.clone()).collect();
    let (core_of, cores) = number(&cpus, &core_sets(root, &cpus)?);
    let (llc_of, llcs) = number(&cpus, &llc_sets);
    let (domain_of, memory_domains) = number(&cpus, &node_sets(root, &cpus)?);
    let (type_of, core_types) = core_types(root, &cpus)?;
    let machine = Machine {
        name: processors.name(),
        cpus: (0..cpus.len())
            .map(|ix| Cpu {
                id: cpus[ix],
                core: core_of[ix],
                llc: llc_of[ix],
                memory_domain: domain_of[ix],
                core_type: type_of[ix],
            })
            .collect(),
        cores,
        llcs,
        memory_domains,
        core_types,
        llc_bytes: smallest(&caches),
        nodes: Vec::new(),
    };
    machine.validate()?;
    Ok(Topology {
        machine,
        present,
        left_out: used.left_out,
        virtual_machine: processors.virtual_machine,
    })
}

/// The used CPUs, and why the others are excluded.
struct Used {
    cpus: CpuSet,
    left_out: Vec<(CpuSet, &'static str)>,
}

/// Chooses the CPUs to use from those of the machine, which come first.
fn choose(
    root: &Root,
    affinity: &CpuSet,
    asked: Option<&CpuSet>,
) -> Result<(CpuSet, Used), TopologyError> {
    let path = format!("{CPU_DIR}/online");
    let Some(online) = root.cpus(&path, "online CPUs")? else {
        return Err(root
            .missing(&path, "online CPUs", "a list of CPUs, as in `0-3,8`")
            .into());
    };
    let present = root.cpus(&format!("{CPU_DIR}/present"), "CPUs")?;
    let present = present.unwrap_or_else(|| online.clone());
    let allowed = online.intersection(affinity);
    let cpus = asked.unwrap_or(&allowed).clone();
    if asked.is_some_and(CpuSet::is_empty) {
        return Err(TopologyError::EmptyList);
    }
    if !cpus.is_subset(&allowed) {
        return Err(TopologyError::Unusable(minus(&cpus, &allowed)));
    }
    let mut left_out = vec![
        (minus(&present, &online), "offline"),
        (minus(&online, affinity), NOT_IN_AFFINITY),
        (minus(&allowed, &cpus), "not asked for"),
    ];
    left_out.retain(|(cpus, _)| !cpus.is_empty());
    Ok((present, Used { cpus, left_out }))
}

fn minus(all: &CpuSet, without: &CpuSet) -> CpuSet {
    let mut rest = all.clone();
    rest.remove_all(without);
    rest
}

/// Numbers groups in the order of their first CPU. `sets[i]` are the CPUs that share with `used[i]`. When two CPUs
/// disagree, the lower-numbered one counts, so that every CPU is in exactly one group.
fn number(used: &[CpuId], sets: &[CpuSet]) -> (Vec<usize>, Vec<CpuSet>) {
    let mut of = vec![usize::MAX; used.len()];
    let mut groups: Vec<CpuSet> = Vec::new();
    for (ix, set) in sets.iter().enumerate() {
        if of[ix] != usize::MAX {
            continue;
        }
        let mut members = CpuSet::new();
        for (other, &cpu) in used.iter().enumerate().skip(ix) {
            if of[other] == usize::MAX && (other == ix || set.contains(cpu)) {
                of[other] = groups.len();
                members.insert(cpu);
            }
        }
        groups.push(members);
    }
    (of, groups)
}

/// The cores of those CPUs that exist, in the order of their first CPU. A CPU without siblings is its own core.
pub(crate) fn cores(root: &Root, cpus: &CpuSet) -> Vec<CpuSet> {
    let present = root.cpus(&format!("{CPU_DIR}/present"), "CPUs");
    let present = present.ok().flatten();
    let cpus = present.map_or_else(|| cpus.clone(), |present| present.intersection(cpus));
    let mut cores: Vec<CpuSet> = Vec::new();
    for cpu in cpus.iter() {
        if !cores.iter().any(|core| core.contains(cpu)) {
            let siblings = cpu_list(root, cpu, "topology/core_cpus_list", "SMT siblings");
            let mut core = siblings.ok().flatten().unwrap_or_default();
            core.insert(cpu);
            cores.push(core);
        }
    }
    cores
}

/// The CPUs of each CPU's core.
fn core_sets(root: &Root, used: &[CpuId]) -> Result<Vec<CpuSet>, ReadError> {
    let mut sets = Vec::new();
    for &cpu in used {
        let siblings = cpu_list(root, cpu, "topology/core_cpus_list", "SMT siblings")?;
        sets.push(siblings.unwrap_or_else(|| CpuSet::from_iter([cpu])));
    }
    Ok(sets)
}

/// The CPUs of a CPU's package.
pub(crate) fn package(root: &Root, cpu: CpuId) -> Result<Option<CpuSet>, ReadError> {
    cpu_list(
        root,
        cpu,
        "topology/package_cpus_list",
        "CPUs of the package",
    )
}

/// A list of CPUs in a file of a CPU.
fn cpu_list(
    root: &Root,
    cpu: CpuId,
    file: &str,
    item: &'static str,
) -> Result<Option<CpuSet>, ReadError> {
    root.cpus(&format!("{CPU_DIR}/cpu{}/{file}", cpu.0), item)
}

/// A data or unified cache of a CPU.
#[derive(Clone, Debug)]
pub struct Cache {
    /// 1 for the nearest.
    pub level: u64,
    /// The CPUs that share it.
    pub cpus: CpuSet,
    /// Its size; `None` if sysfs does not list it.
    pub bytes: Option<u64>,
}

/// The last-level cache of each CPU; without cache files its package's, and without packages the machine's.
fn caches(root: &Root, used: &[CpuId], present: &CpuSet) -> Result<Vec<Cache>, ReadError> {
    let mut caches = Vec::new();
    for &cpu in used {
        caches.push(match data_caches(root, cpu)?.pop() {
            Some(cache) => cache,
            None => Cache {
                level: 1,
                cpus: package(root, cpu)?.unwrap_or_else(|| present.clone()),
                bytes: None,
            },
        });
    }
    Ok(caches)
}

/// The smallest size, if all are known. Caches of unequal size exist (for example one die with stacked cache and one
/// without). The smallest size is safe for planning.
fn smallest(caches: &[Cache]) -> Reading<u64> {
    let sizes: Option<Vec<u64>> = caches.iter().map(|cache| cache.bytes).collect();
    let smallest = sizes.and_then(|sizes| sizes.into_iter().min());
    Reading::from_option(smallest, Absence::NotTold)
}

/// The data and unified caches that sysfs lists for a CPU, the nearest first.
///
/// # Errors
/// A file of the kernel is unusable.
pub fn data_caches(root: &Root, cpu: CpuId) -> Result<Vec<Cache>, ReadError> {
    let dir = format!("{CPU_DIR}/cpu{}/cache", cpu.0);
    let mut caches: Vec<Cache> = Vec::new();
    let mut indices = root.names(&dir, "caches")?;
    indices.retain(|name| name.starts_with("index"));
    for index in indices {
        let dir = format!("{dir}/{index}");
        if root.text(&format!("{dir}/type"), "cache type")?.as_deref() == Some("Instruction") {
            continue;
        }
        let Some(level) = root.number(&format!("{dir}/level"), "cache level")? else {
            continue;
        };
        let Some(cpus) = root.cpus(&format!("{dir}/shared_cpu_list"), "CPUs that share a cache")?
        else {
            continue;
        };
        if caches.iter().all(|cache| cache.level != level) {
            let bytes = cache_size(root, &format!("{dir}/size"))?;
            caches.push(Cache { level, cpus, bytes });
        }
    }
    caches.sort_by_key(|cache| cache.level);
    Ok(caches)
}

/// The size of a cache in bytes; `None` if sysfs does not list it.
fn cache_size(root: &Root, file: &str) -> Result<Option<u64>, ReadError> {
    const ITEM: &str = "cache size";
    let Some(text) = root.text(file, ITEM)? else {
        return Ok(None);
    };
    let size = parse_size(&text);
    size.map(Some)
        .ok_or_else(|| root.malformed(file, ITEM, "a size, as in `32768K`", text))
}

/// Parses `32768K`, `8M` or a plain number of bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1024),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1024 * 1024),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The CPUs of each NUMA node; empty if the kernel has no nodes.
pub(crate) fn nodes(root: &Root, item: &'static str) -> Result<Vec<CpuSet>, ReadError> {
    let mut nodes = Vec::new();
    for name in root.names(NODE_DIR, item)? {
        let is_node = name
            .strip_prefix("node")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if is_node && let Some(cpus) = root.cpus(&format!("{NODE_DIR}/{name}/cpulist"), item)? {
            nodes.push(cpus);
        }
    }
    Ok(nodes)
}

/// The node of a CPU, as an index in the list of [`nodes`].
pub(crate) fn node_of(nodes: &[CpuSet], cpu: CpuId) -> Option<usize> {
    nodes.iter().position(|node| node.contains(cpu))
}

/// The members of each used CPU's memory domain.
fn node_sets(root: &Root, used: &[CpuId]) -> Result<Vec<CpuSet>, ReadError> {
    let nodes = nodes(root, "CPUs of a memory domain")?;
    let mut homeless: CpuSet = used.iter().copied().collect();
    for cpu in nodes.iter().flat_map(CpuSet::iter) {
        homeless.remove(cpu);
    }
    let mut sets = Vec::new();
    for &cpu in used {
        sets.push(match node_of(&nodes, cpu) {
            Some(node) => nodes[node].clone(),
            None => homeless.clone(),
        });
    }
    Ok(sets)
}

/// The sort key of a core type: the rank of the hybrid kind, and the capacity, negated so that the fastest sorts first.
type TypeKey = (usize, i64);

/// Names of `count` types, from the fastest to the slowest.
fn type_names(count: usize) -> Vec<String> {
    let names: &[&str] = match count {
        1 => &["core"],
        2 => &["big", "small"],
        3 => &["big", "medium", "small"],
        _ => return (1..=count).map(|n| format!("type-{n}")).collect(),
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The properties of a CPU that determine the type of its core.
struct Kind {
    key: TypeKey,
    capacity: Option<u32>,
    max_khz: Option<u64>,
}

impl Kind {
    /// `hybrid` are the CPUs of each hybrid kind, the fastest first.
    fn read(root: &Root, cpu: CpuId, hybrid: &[CpuSet]) -> Result<Kind, ReadError> {
        let dir = format!("{CPU_DIR}/cpu{}", cpu.0);
        let file = format!("{dir}/cpu_capacity");
        let capacity: Option<u32> = root.parse(&file, "CPU capacity", "a whole number")?;
        let file = format!("{dir}/cpufreq/cpuinfo_max_freq");
        let max_khz = root.number(&file, "highest frequency")?;
        let rank = hybrid.iter().position(|kind| kind.contains(cpu));
        // If the kernel lists hybrid kinds, capacities within a kind differ only by favoured cores.
        let slowness = if hybrid.is_empty() {
            -capacity.map_or(0, i64::from)
        } else {
            0
        };
        Ok(Kind {
            key: (rank.unwrap_or(hybrid.len()), slowness),
            capacity,
            max_khz,
        })
    }
}

fn core_types(root: &Root, used: &[CpuId]) -> Result<(Vec<usize>, Vec<CoreType>), ReadError> {
    // Fastest first. On some hybrid parts `cpu_lowpower` are the cores outside the shared cache.
    let mut hybrid = Vec::new();
    for pmu in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
        hybrid.extend(root.cpus(&format!("/sys/devices/{pmu}/cpus"), "CPUs of a core type")?);
    }
    let mut kinds = Vec::new();
    for &cpu in used {
        kinds.push(Kind::read(root, cpu, &hybrid)?);
    }
    let keys: BTreeSet<TypeKey> = kinds.iter().map(|kind| kind.key).collect();
    let keys: Vec<TypeKey> = keys.into_iter().collect();
    let of = kinds
        .iter()
        .map(|kind| keys.binary_search(&kind.key).unwrap_or(0))
        .collect();
    let mut types = Vec::new();
    for (key, name) in keys.iter().zip(type_names(keys.len())) {
        let members: Vec<&Kind> = kinds.iter().filter(|kind| kind.key == *key).collect();
        types.push(CoreType {
            name,
            capacity: members.iter().filter_map(|kind| kind.capacity).max(),
            max_khz: members.iter().filter_map(|kind| kind.max_khz).max(),
        });
    }
    Ok((of, types))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn groups_are_numbered_by_their_first_cpu_even_when_cpus_disagree() {
        let used = [CpuId(1), CpuId(2), CpuId(3)];
        let (of, groups) = number(&used, &[cpus("1,3"), cpus("2"), cpus("1,3")]);
        assert_eq!((of, groups), (vec![0, 1, 0], vec![cpus("1,3"), cpus("2")]));
        let (of, groups) = number(&used, &[cpus("1-2"), cpus("2-3"), cpus("2-3")]);
        assert_eq!((of, groups), (vec![0, 0, 1], vec![cpus("1-2"), cpus("3")]));
        // A set that lacks its own CPU still includes it.
        let (of, groups) = number(&used, &[cpus(""), cpus("3"), cpus("3")]);
        assert_eq!((of, groups), (vec![0, 1, 1], vec![cpus("1"), cpus("2-3")]));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("32768K"), Some(32 << 20));
        assert_eq!(parse_size("8M"), Some(8 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("big"), None);
        assert_eq!(parse_size("99999999999999999999K"), None);
    }
}
