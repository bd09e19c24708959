//! The machine as policies see it: CPUs, cores, caches, memory domains and core types.
//!
//! A CPU is a hardware thread; a core holds one CPU or, with SMT, several. Identifiers of CPUs are the kernel's own;
//! cores, caches and memory domains are numbered from 0 in the order of their first CPU.

use crate::units::{Absence, Reading};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The kernel's number of a CPU (a hardware thread).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuId(pub u32);

/// A set of CPUs, in the kernel's list format: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    words: Vec<u64>,
}

/// The largest CPU number in the text form of a [`CpuSet`]; far above the kernel's limit of 8,192 CPUs.
pub const MAX_CPU: u32 = 65_535;

/// An invalid CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a list of CPUs; expected numbers and ranges, as in `0-3,8`")]
pub struct CpuListError {
    /// The text that was given.
    pub text: String,
}

impl CpuSet {
    /// The empty set.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Adds a CPU, and returns whether it was new.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.0 as usize / 64, cpu.0 % 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & (1 << bit) == 0;
        self.words[word] |= 1 << bit;
        new
    }

    /// Removes a CPU, and returns whether it was in the set.
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let was = self.contains(cpu);
        if was {
            self.words[cpu.0 as usize / 64] &= !(1 << (cpu.0 % 64));
            self.trim();
        }
        was
    }

    /// Removes every CPU of the other set.
    pub fn remove_all(&mut self, other: &CpuSet) {
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(mine, others)| *mine &= !others);
        self.trim();
    }

    /// Drops zero words at the end, so that equal sets have equal words.
    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words
            .get(cpu.0 as usize / 64)
            .is_some_and(|word| word & (1 << (cpu.0 % 64)) != 0)
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(ix, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(CpuId(ix as u32 * 64 + bit))
            })
        })
    }

    /// The smallest CPU of the set.
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The CPUs that are in both sets.
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        let mut both = CpuSet {
            words: self
                .words
                .iter()
                .zip(&other.words)
                .map(|(a, b)| a & b)
                .collect(),
        };
        both.trim();
        both
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        self.words.iter().zip(others).all(|(a, b)| a & !b == 0)
    }
}

impl From<CpuId> for CpuSet {
    fn from(cpu: CpuId) -> CpuSet {
        CpuSet::from_iter([cpu])
    }
}

impl Extend<CpuId> for CpuSet {
    fn extend<I: IntoIterator<Item = CpuId>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        set.extend(cpus);
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().map(|cpu| cpu.0).peekable();
        let mut first = true;
        while let Some(start) = cpus.next() {
            let mut end = start;
            while cpus.peek() == Some(&(end + 1)) {
                end = cpus.next().unwrap_or(end);
            }
            if !first {
                f.write_str(",")?;
            }
            first = false;
            if start == end {
                write!(f, "{start}")?
            } else {
                write!(f, "{start}-{end}")?
            }
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Parses the kernel's list format; surrounding white space and an empty list are valid.
    fn from_str(text: &str) -> Result<CpuSet, CpuListError> {
        parse_list(text.trim()).ok_or_else(|| CpuListError {
            text: text.trim().to_owned(),
        })
    }
}

fn parse_list(text: &str) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    if text.is_empty() {
        return Some(set);
    }
    for part in text.split(',') {
        let (start, end) = part.split_once('-').unwrap_or((part, part));
        let start: u32 = start.trim().parse().ok()?;
        let end: u32 = end.trim().parse().ok()?;
        if start > end || end > MAX_CPU {
            return None;
        }
        set.extend((start..=end).map(CpuId));
    }
    Some(set)
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuSet, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// One CPU and its position in the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The kernel's number of this CPU.
    pub id: CpuId,
    /// Index of its core in [`Machine::cores`].
    pub core: usize,
    /// Index of its last-level cache in [`Machine::llcs`].
    pub llc: usize,
    /// Index of its memory domain (NUMA node) in [`Machine::memory_domains`].
    pub memory_domain: usize,
    /// Index of its core type in [`Machine::core_types`].
    pub core_type: usize,
}

/// A type of core: all cores of a homogeneous machine are of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreType {
    /// Name, for example `core`, `big`, `small`.
    pub name: String,
    /// The kernel's relative capacity, 1024 for the fastest type, if reported.
    pub capacity: Option<u32>,
    /// Highest frequency in kHz, if known.
    pub max_khz: Option<u64>,
}

/// One of several computers that a run has jobs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its usable CPUs; none while it is away.
    pub cpus: CpuSet,
    /// CPUs that one task can have at most, where tasks take turns on the CPUs; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Its memory in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl Node {
    /// The greatest number of these CPUs that a task can have here.
    pub fn width_of(&self, usable: &CpuSet) -> usize {
        let most = self.width.map_or(usize::MAX, |width| width as usize);
        self.cpus.intersection(usable).len().min(most)
    }
}

/// The node of a run over nodes that has the first of these CPUs.
pub fn node_of<'a>(nodes: &'a [Node], cpus: &CpuSet) -> Option<&'a Node> {
    let first = cpus.first()?;
    nodes.iter().find(|node| node.cpus.contains(first))
}

/// A machine as the policies see it: it contains only the usable CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name for reports, for example the processor's model.
    pub name: String,
    /// The usable CPUs, in ascending order of their numbers.
    pub cpus: Vec<Cpu>,
    /// The usable CPUs of each core.
    pub cores: Vec<CpuSet>,
    /// The usable CPUs of each last-level cache.
    pub llcs: Vec<CpuSet>,
    /// The usable CPUs of each memory domain.
    pub memory_domains: Vec<CpuSet>,
    /// The types of core, the fastest first.
    pub core_types: Vec<CoreType>,
    /// Size of one last-level cache in bytes.
    pub llc_bytes: Reading<u64>,
    /// The computers that it consists of; empty for a single one. A task runs on one of them, to its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// A machine description that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// No CPU is usable.
    #[error("the machine `{name}` has no usable CPU")]
    NoCpu {
        /// The machine's name.
        name: String,
    },
    /// CPUs are listed twice or not in ascending order.
    #[error("CPU {cpu} of the machine `{name}` is listed twice or out of order")]
    Order {
        /// The machine's name.
        name: String,
        /// The kernel's number of the CPU.
        cpu: u32,
    },
    /// A CPU refers to a core, cache or memory domain that does not list it, or to a core type that does not exist.
    #[error("CPU {cpu} of the machine `{name}`: its {what} does not list it")]
    Dangling {
        /// The machine's name.
        name: String,
        /// The kernel's number of the CPU.
        cpu: u32,
        /// The broken reference, in words.
        what: &'static str,
    },
}

impl Machine {
    /// A homogeneous machine with one last-level cache and one memory domain.
    ///
    /// CPUs are numbered as usual on Linux: first one CPU of each core, then the second of each.
    ///
    /// ```
    /// let m = cosched_core::Machine::uniform("six by two", 6, 2);
    /// assert_eq!(m.cpus.len(), 12);
    /// assert_eq!(m.cores[0].to_string(), "0,6");
    /// ```
    pub fn uniform(name: &str, cores: u32, threads_per_core: u32) -> Machine {
        let cpus: Vec<Cpu> = (0..cores * threads_per_core)
            .map(|id| Cpu {
                id: CpuId(id),
                core: (id % cores) as usize,
                llc: 0,
                memory_domain: 0,
                core_type: 0,
            })
            .collect();
        let all: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
        let mut core_sets = vec![CpuSet::new(); cores as usize];
        for cpu in &cpus {
            core_sets[cpu.core].insert(cpu.id);
        }
        Machine {
            name: name.to_owned(),
            cpus,
            cores: core_sets,
            llcs: vec![all.clone()],
            memory_domains: vec![all],
            core_types: vec![CoreType {
                name: "core".to_owned(),
                capacity: None,
                max_khz: None,
            }],
            llc_bytes: Reading::Absent(Absence::NotRequested),
            nodes: Vec::new(),
        }
    }

    /// Checks the description for contradictions.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn validate(&self) -> Result<(), MachineError> {
        let name = || self.name.clone();
        if self.cpus.is_empty() {
            return Err(MachineError::NoCpu { name: name() });
        }
        for pair in self.cpus.windows(2) {
            if pair[0].id >= pair[1].id {
                return Err(MachineError::Order {
                    name: name(),
                    cpu: pair[1].id.0,
                });
            }
        }
        for cpu in &self.cpus {
            let listed =
                |sets: &[CpuSet], ix: usize| sets.get(ix).is_some_and(|set| set.contains(cpu.id));
            let what = if !listed(&self.cores, cpu.core) {
                "core"
            } else if !listed(&self.llcs, cpu.llc) {
                "last-level cache"
            } else if !listed(&self.memory_domains, cpu.memory_domain) {
                "memory domain"
            } else if cpu.core_type >= self.core_types.len() {
                "core type"
            } else {
                continue;
            };
            return Err(MachineError::Dangling {
                name: name(),
                cpu: cpu.id.0,
                what,
            });
        }
        Ok(())
    }

    /// The mean clock of these CPUs as a share of the fastest core type's clock, by the highest frequencies; 1 where
    /// all cores are alike or a frequency is not known.
    pub fn clock_share(&self, cpus: &CpuSet) -> f64 {
        if self.core_types.len() < 2 || cpus.is_empty() {
            return 1.0;
        }
        let shares = cpus.iter().map(|cpu| self.clock_of(cpu).unwrap_or(1.0));
        shares.sum::<f64>() / cpus.len() as f64
    }

    /// The clock of a CPU as a share of the fastest type's, if both are known.
    fn clock_of(&self, cpu: CpuId) -> Option<f64> {
        let kind = &self.core_types[self.cpu(cpu)?.core_type];
        let fastest = self.core_types[0].max_khz.filter(|&khz| khz > 0)?;
        let here = kind.max_khz.filter(|&khz| khz > 0)?;
        Some(here as f64 / fastest as f64)
    }

    /// The greatest number of these CPUs that a task can have: on several nodes, that of one of them.
    pub fn widest(&self, usable: &CpuSet) -> usize {
        let each = self.nodes.iter();
        let widest = each.map(|node| node.width_of(usable)).max();
        widest.unwrap_or_else(|| usable.len())
    }

    /// All usable CPUs.
    pub fn all_cpus(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// The index of a CPU in [`Machine::cpus`], if it is usable.
    pub fn index_of(&self, cpu: CpuId) -> Option<usize> {
        self.cpus.binary_search_by_key(&cpu, |c| c.id).ok()
    }

    /// The CPU with this number, if it is usable.
    pub fn cpu(&self, cpu: CpuId) -> Option<&Cpu> {
        Some(&self.cpus[self.index_of(cpu)?])
    }

    /// A CPU of the memory domain of a task that begins on these CPUs: its memory is where it is touched first. `None` if
    /// they lie in several domains, or there is only one.
    pub fn home_on(&self, cpus: &CpuSet) -> Option<CpuId> {
        let first = self.cpu(cpus.first()?)?;
        let is_one = cpus.is_subset(&self.memory_domains[first.memory_domain]);
        (is_one && self.memory_domains.len() > 1).then_some(first.id)
    }

    /// The usable CPUs of a set.
    pub fn cpus_in(&self, set: &CpuSet) -> impl Iterator<Item = &Cpu> {
        set.iter().filter_map(|cpu| self.cpu(cpu))
    }

    /// The indices in [`Machine::cpus`] of the usable CPUs of a set.
    pub fn positions(&self, set: &CpuSet) -> impl Iterator<Item = usize> {
        set.iter().filter_map(|cpu| self.index_of(cpu))
    }

    /// Whether some core has more than one usable CPU.
    pub fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_read_and_print() {
        for text in ["", "0", "0-3", "0-3,8", "1,3,5-7,64-130"] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), text);
        }
        assert_eq!(" 3,1-2\n".parse::<CpuSet>().unwrap().to_string(), "1-3");
        for text in ["x", "3-1", "1,,2", "-1", "0-99999999", "1-"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn sets_compare_by_content() {
        let mut set: CpuSet = "1,200".parse().unwrap();
        assert!(set.remove(CpuId(200)));
        assert!(!set.remove(CpuId(200)));
        assert_eq!(set, "1".parse().unwrap());
        assert_eq!(set.len(), 1);
        assert!(set.is_subset(&"0-1".parse().unwrap()));
    }

    #[test]
    fn intersections_and_subsets() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        for (a, b, both) in [
            ("0-3", "2-200", "2-3"),
            ("70,130", "130", "130"),
            ("1,130", "1", "1"),
            ("5", "200", ""),
            ("", "3", ""),
        ] {
            assert_eq!(set(a).intersection(&set(b)), set(both), "{a} {b}");
            assert_eq!(set(b).intersection(&set(a)), set(both), "{a} {b}");
            assert_eq!(set(a).is_subset(&set(b)), a == both, "{a} {b}");
            assert_eq!(set(b).is_subset(&set(a)), b == both, "{a} {b}");
            assert!(set(both).is_subset(&set(a)));
            let mut rest = set(a);
            rest.remove_all(&set(b));
            assert_eq!(
                rest,
                set(a).iter().filter(|&cpu| !set(b).contains(cpu)).collect()
            );
        }
    }

    #[test]
    fn contradictions_are_found() {
        let good = Machine::uniform("m", 2, 2);
        assert_eq!(good.validate(), Ok(()));
        let mut bad = good.clone();
        bad.cores[1] = CpuSet::new();
        assert!(matches!(
            bad.validate(),
            Err(MachineError::Dangling { what: "core", .. })
        ));
        let mut bad = good.clone();
        bad.cpus.swap(0, 1);
        assert!(matches!(bad.validate(), Err(MachineError::Order { .. })));
        let mut bad = good;
        bad.cpus.clear();
        assert!(matches!(bad.validate(), Err(MachineError::NoCpu { .. })));
    }

    #[test]
    fn a_clock_is_a_share_of_the_fastest_one() {
        let mut machine = Machine::uniform("m", 4, 1);
        let kind = |khz: Option<u64>| CoreType {
            name: "core".to_owned(),
            capacity: None,
            max_khz: khz,
        };
        machine.core_types = vec![kind(Some(3_200_000)), kind(Some(800_000)), kind(None)];
        (1..3).for_each(|cpu| machine.cpus[cpu].core_type = 1);
        machine.cpus[3].core_type = 2;
        let share = |cpus: &str| machine.clock_share(&cpus.parse().unwrap());
        assert_eq!(
            ["0", "1", "0-1", "3", ""].map(share),
            [1.0, 0.25, 0.625, 1.0, 1.0]
        );
    }
}
