//! The machine's CPUs, cores, caches, memory domains and core types, from sysfs.

use crate::processor::Processors;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, CoreType, Cpu, CpuId, CpuSet, Machine, MachineError, Reading};

const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// The machine, and why some of its CPUs are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The CPUs that may be used, with the cores, caches and domains that they belong to.
    pub machine: Machine,
    /// All CPUs, including those that are not used.
    pub facts: CpuFacts,
}

/// Which CPUs there are, which are used, and why the others are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuFacts {
    /// All CPUs of the machine.
    pub present: CpuSet,
    /// CPUs that are switched off.
    pub offline: CpuSet,
    /// CPUs that are online, but not in the affinity of this process (a container, `taskset`, a batch system).
    pub not_allowed: CpuSet,
    /// CPUs that are allowed, but not among the CPUs that were asked for.
    pub not_asked_for: CpuSet,
    /// The CPUs that are used.
    pub used: CpuSet,
    /// Whether the processor reports a hypervisor below it.
    pub virtual_machine: bool,
}

impl CpuFacts {
    /// Each set of CPUs that is left out, with the reason in words; no empty sets.
    pub fn left_out(&self) -> Vec<(CpuSet, &'static str)> {
        let all = [
            (&self.offline, "offline"),
            (&self.not_allowed, "not in the affinity of this process"),
            (&self.not_asked_for, "not asked for"),
        ];
        all.into_iter()
            .filter(|(cpus, _)| !cpus.is_empty())
            .map(|(cpus, why)| (cpus.clone(), why))
            .collect()
    }
}

/// Why a machine can't be described or used.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file of the kernel can't be used.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The list of CPUs that was asked for names some that can't be used.
    #[error(
        "the CPUs {asked} can't be used: {}",
        unusable_text(absent, offline, not_allowed)
    )]
    Unusable {
        /// The list that was asked for.
        asked: CpuSet,
        /// CPUs of the list that the machine does not have.
        absent: CpuSet,
        /// CPUs of the list that are switched off.
        offline: CpuSet,
        /// CPUs of the list that are not in the affinity of this process.
        not_allowed: CpuSet,
    },
    /// The list of CPUs that was asked for is empty.
    #[error("the list of CPUs is empty; give at least one, as in `0-3,8`")]
    EmptyList,
    /// No CPU is both online and in the affinity of this process.
    #[error("none of the CPUs {affinity} that this process may use is online; online are {online}")]
    NoneAllowed {
        /// The affinity of this process.
        affinity: CpuSet,
        /// The CPUs that are online.
        online: CpuSet,
    },
    /// The files contradict each other.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

fn unusable_text(absent: &CpuSet, offline: &CpuSet, not_allowed: &CpuSet) -> String {
    let affinity =
        "not in the affinity of this process (see `taskset -p`, or the container's cpuset)";
    let parts = [
        cpus_text(absent, "does not exist", "do not exist"),
        cpus_text(offline, "is offline", "are offline"),
        cpus_text(
            not_allowed,
            &format!("is {affinity}"),
            &format!("are {affinity}"),
        ),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn cpus_text(cpus: &CpuSet, one: &str, several: &str) -> Option<String> {
    match cpus.len() {
        0 => None,
        1 => Some(format!("CPU {cpus} {one}")),
        _ => Some(format!("CPUs {cpus} {several}")),
    }
}

/// The CPUs that this process may run on, by `/proc/self/status`.
///
/// # Errors
/// [`ReadError`] when the file lacks that line or can't be read.
pub fn own_affinity(root: &Root) -> Result<CpuSet, ReadError> {
    const STATUS: &str = "/proc/self/status";
    const ITEM: &str = "affinity of this process";
    const EXPECTED: &str = "a line `Cpus_allowed_list:` with a list of CPUs, as in `0-3,8`";
    let text = root
        .text(STATUS, ITEM)?
        .ok_or_else(|| root.missing(STATUS, ITEM, EXPECTED))?;
    let list = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.ok_or_else(|| root.malformed(STATUS, ITEM, EXPECTED, "no such line"))?;
    list.parse()
        .map_err(|_| root.malformed(STATUS, ITEM, EXPECTED, list.trim()))
}

/// Describes the machine under `root`, restricted to `affinity` and, if given, to the CPUs `asked`.
///
/// Sets of siblings, cache sharers and node members keep only CPUs that are used. What sysfs does not tell falls back:
/// a CPU without siblings is its own core; without cache files, the CPUs of one package share a last-level cache, whose
/// size is absent; CPUs without a node form one memory domain. Only what the kernel says makes cores differ in type:
/// `cpu_core` and `cpu_atom` on hybrid Intel parts, `cpu_capacity` on others. A core with only a higher top frequency
/// is a favoured core of the same type.
///
/// # Errors
/// [`TopologyError`]: an unusable file, or a list or an affinity that leaves nothing to use.
pub fn read(
    root: &Root,
    affinity: &CpuSet,
    asked: Option<&CpuSet>,
) -> Result<Topology, TopologyError> {
    let processors = Processors::read(root)?;
    let facts = select(root, affinity, asked, processors.virtual_machine)?;
    let used: Vec<CpuId> = facts.used.iter().collect();

    let mut core_sets = Vec::new();
    let mut llc_sets = Vec::new();
    let mut llc_bytes = Vec::new();
    for &cpu in &used {
        core_sets.push(siblings(root, cpu)?.unwrap_or_else(|| CpuSet::from_iter([cpu])));
        let cache = last_level_cache(root, cpu)?;
        llc_bytes.push(cache.as_ref().and_then(|cache| cache.bytes));
        llc_sets.push(match cache {
            Some(cache) => cache.cpus,
            None => package(root, cpu)?.unwrap_or_else(|| facts.present.clone()),
        });
    }
    let (core_of, cores) = number(&used, &core_sets);
    let (llc_of, llcs) = number(&used, &llc_sets);
    let (domain_of, memory_domains) = number(&used, &node_sets(root, &used)?);
    let (type_of, core_types) = core_types(root, &used)?;
    // Caches of unequal size exist (a die with stacked cache beside one without). The smallest size is safe to plan
    // with.
    let llc_bytes = llc_bytes
        .into_iter()
        .collect::<Option<Vec<u64>>>()
        .and_then(|all| all.into_iter().min());

    let cpus = (0..used.len())
        .map(|ix| Cpu {
            id: used[ix],
            core: core_of[ix],
            llc: llc_of[ix],
            memory_domain: domain_of[ix],
            core_type: type_of[ix],
        })
        .collect();
    let llc_bytes = Reading::from_option(llc_bytes, Absence::NotTold);
    let machine = Machine {
        name: processors.name(),
        cpus,
        cores,
        llcs,
        memory_domains,
        core_types,
        llc_bytes,
    };
    machine.validate()?;
    Ok(Topology { machine, facts })
}

/// Which CPUs are used, and why the others are not.
fn select(
    root: &Root,
    affinity: &CpuSet,
    asked: Option<&CpuSet>,
    virtual_machine: bool,
) -> Result<CpuFacts, TopologyError> {
    let online_path = format!("{CPU_DIR}/online");
    let online = root.cpus(&online_path, "online CPUs")?.ok_or_else(|| {
        root.missing(&online_path, "online CPUs", "a list of CPUs, as in `0-3,8`")
    })?;
    let present = root
        .cpus(&format!("{CPU_DIR}/present"), "CPUs")?
        .unwrap_or_else(|| online.clone());
    let allowed = online.intersection(affinity);
    if allowed.is_empty() {
        return Err(TopologyError::NoneAllowed {
            affinity: affinity.clone(),
            online,
        });
    }
    let used = match asked {
        None => allowed.clone(),
        Some(asked) if asked.is_empty() => return Err(TopologyError::EmptyList),
        Some(asked) if asked.is_subset(&allowed) => asked.clone(),
        Some(asked) => {
            return Err(TopologyError::Unusable {
                asked: asked.clone(),
                absent: minus(asked, &present),
                offline: minus(&asked.intersection(&present), &online),
                not_allowed: minus(&asked.intersection(&online), affinity),
            });
        }
    };
    Ok(CpuFacts {
        offline: minus(&present, &online),
        not_allowed: minus(&online, affinity),
        not_asked_for: minus(&allowed, &used),
        present,
        used,
        virtual_machine,
    })
}

fn minus(all: &CpuSet, without: &CpuSet) -> CpuSet {
    all.iter().filter(|&cpu| !without.contains(cpu)).collect()
}

/// Numbers groups in the order of their first CPU. `sets[i]` says with whom `used[i]` shares. When two CPUs disagree,
/// the lower-numbered one counts, so that every CPU is in exactly one group.
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

/// The CPUs of a CPU's core; `thread_siblings_list` is the name before Linux 5.3.
fn siblings(root: &Root, cpu: CpuId) -> Result<Option<CpuSet>, ReadError> {
    first_list(
        root,
        cpu,
        ["core_cpus_list", "thread_siblings_list"],
        "SMT siblings",
    )
}

/// The CPUs of a CPU's package; `core_siblings_list` is the name before Linux 5.3.
pub(crate) fn package(root: &Root, cpu: CpuId) -> Result<Option<CpuSet>, ReadError> {
    first_list(
        root,
        cpu,
        ["package_cpus_list", "core_siblings_list"],
        "CPUs of the package",
    )
}

fn first_list(
    root: &Root,
    cpu: CpuId,
    names: [&str; 2],
    item: &'static str,
) -> Result<Option<CpuSet>, ReadError> {
    for name in names {
        if let Some(cpus) = root.cpus(&format!("{CPU_DIR}/cpu{}/topology/{name}", cpu.0), item)? {
            return Ok(Some(cpus));
        }
    }
    Ok(None)
}

struct Cache {
    cpus: CpuSet,
    bytes: Option<u64>,
}

/// The data or unified cache of the highest level that sysfs lists for a CPU.
fn last_level_cache(root: &Root, cpu: CpuId) -> Result<Option<Cache>, ReadError> {
    let dir = format!("{CPU_DIR}/cpu{}/cache", cpu.0);
    let mut best: Option<(u64, Cache)> = None;
    for index in root
        .names(&dir, "caches")?
        .iter()
        .filter(|name| name.starts_with("index"))
    {
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
        if best.as_ref().is_none_or(|(highest, _)| level > *highest) {
            let bytes = cache_size(root, &format!("{dir}/size"))?;
            best = Some((level, Cache { cpus, bytes }));
        }
    }
    Ok(best.map(|(_, cache)| cache))
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

/// The CPUs of each NUMA node; none where the kernel knows no nodes.
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
    let homeless: CpuSet = used
        .iter()
        .copied()
        .filter(|&cpu| node_of(&nodes, cpu).is_none())
        .collect();
    Ok(used
        .iter()
        .map(|&cpu| node_of(&nodes, cpu).map_or(&homeless, |node| &nodes[node]))
        .cloned()
        .collect())
}

/// What distinguishes core types: the rank of the hybrid kind, and the capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TypeKey {
    hybrid_rank: usize,
    /// Capacity, negated so that the fastest sorts first.
    slowness: i64,
}

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

fn core_types(root: &Root, used: &[CpuId]) -> Result<(Vec<usize>, Vec<CoreType>), ReadError> {
    // Fastest first. On some hybrid parts `cpu_lowpower` are the cores outside the shared cache.
    let mut hybrid = Vec::new();
    for pmu in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
        hybrid.extend(root.cpus(&format!("/sys/devices/{pmu}/cpus"), "CPUs of a core type")?);
    }
    let mut keys = Vec::new();
    let mut capacities = Vec::new();
    let mut frequencies = Vec::new();
    for &cpu in used {
        let dir = format!("{CPU_DIR}/cpu{}", cpu.0);
        let capacity = root.parse::<u32>(
            &format!("{dir}/cpu_capacity"),
            "CPU capacity",
            "a whole number",
        )?;
        let frequency = format!("{dir}/cpufreq/cpuinfo_max_freq");
        frequencies.push(root.number(&frequency, "highest frequency")?);
        // Where the kernel tells hybrid kinds, capacities within a kind differ only by favoured cores.
        let slowness = if hybrid.is_empty() {
            -capacity.map_or(0, i64::from)
        } else {
            0
        };
        let hybrid_rank = hybrid
            .iter()
            .position(|kind| kind.contains(cpu))
            .unwrap_or(hybrid.len());
        keys.push(TypeKey {
            hybrid_rank,
            slowness,
        });
        capacities.push(capacity);
    }
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let of: Vec<usize> = keys
        .iter()
        .map(|key| distinct.binary_search(key).unwrap_or(0))
        .collect();
    let types = type_names(distinct.len())
        .into_iter()
        .enumerate()
        .map(|(ix, name)| {
            let members = || (0..used.len()).filter(|&cpu| of[cpu] == ix);
            CoreType {
                name,
                capacity: members().filter_map(|cpu| capacities[cpu]).max(),
                max_khz: members().filter_map(|cpu| frequencies[cpu]).max(),
            }
        })
        .collect();
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
        // A set that lacks its own CPU still holds it.
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

    #[test]
    fn every_unusable_cpu_is_named() {
        let text = unusable_text(&cpus("99"), &cpus("3-4"), &cpus("7"));
        assert!(
            text.starts_with(
                "CPU 99 does not exist; CPUs 3-4 are offline; CPU 7 is not in the affinity"
            ),
            "{text}"
        );
    }
}
