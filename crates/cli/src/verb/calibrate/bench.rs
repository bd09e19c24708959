//! What the measurements use: CPUs, memory, and the sizes of the caches.

use crate::workload::memory::available;
use crate::workload::ring::{LINE_BYTES, Line, huge_lines};
use anyhow::{Context as _, Result};
use cosched_core::{CpuId, CpuSet, Machine};
use cosched_linux::root::Root;
use cosched_linux::{pin_thread, topology};
use cosched_run::within_quota;

/// Memory in last-level caches: a walk over half of it misses an old-fashioned cache every time.
const LLCS: u64 = 4;

/// Memory where the kernel does not list the last-level cache, and the least otherwise.
const LEAST_BYTES: u64 = 256 << 20;

/// The CPUs and the memory of the measurements. This thread is bound to the first CPU.
pub struct Bench {
    pub root: Root,
    pub machine: Machine,
    /// Why this is only a part of the machine; `None` if it is all.
    pub part: Option<String>,
    /// A CPU of each core in the memory domain that has the most of them, the fastest first; never empty.
    pub cpus: Vec<CpuId>,
    /// The other CPU of the first core, if it has one.
    pub sibling: Option<CpuId>,
    /// Sizes of the first CPU's caches, the nearest first.
    pub cache_bytes: Vec<u64>,
    /// Lines to walk and stream over; empty if no measurement needs any.
    pub lines: Vec<Line>,
}

impl Bench {
    /// Looks at the machine, and reserves memory if `needs_memory`.
    ///
    /// # Errors
    /// The machine can't be described, or there is no memory.
    pub fn new(needs_memory: bool) -> Result<Bench> {
        let root = Root::default();
        let affinity = cosched_linux::affinity(0)?;
        let (found, _) = within_quota(&root, topology::read(&root, &affinity, None)?);
        let machine = found.machine;
        let online = root.cpus("/sys/devices/system/cpu/online", "online CPUs")?;
        let part = online.and_then(|online| part_of(&online, &machine.all_cpus()));
        let cpus = first_of_each_core(&machine);
        let core = machine.cores.iter().find(|core| core.contains(cpus[0]));
        let sibling = core.and_then(|core| core.iter().nth(1));
        let caches = topology::data_caches(&root, cpus[0])?;
        let cache_bytes: Vec<u64> = caches.iter().filter_map(|cache| cache.bytes).collect();
        pin_thread(cpus[0]).context("binding to a CPU")?;
        let lines = if needs_memory {
            huge_lines(memory_for(cache_bytes.last().copied()))?
        } else {
            Vec::new()
        };
        Ok(Bench {
            root,
            machine,
            part,
            cpus,
            sibling,
            cache_bytes,
            lines,
        })
    }

    /// The other cores that share the first CPU's last-level cache, by their first CPUs.
    pub fn sharing_cache(&self) -> Vec<CpuId> {
        let llc = self
            .machine
            .llcs
            .iter()
            .find(|llc| llc.contains(self.cpus[0]));
        let others = self.cpus[1..].iter().copied();
        others
            .filter(|&cpu| llc.is_some_and(|llc| llc.contains(cpu)))
            .collect()
    }

    /// The first CPUs, as a set.
    pub fn set(&self, count: usize) -> CpuSet {
        self.cpus.iter().take(count).copied().collect()
    }

    /// Whether the memory exceeds the last-level cache by enough that streams and walks over it miss.
    pub fn exceeds_caches(&self) -> bool {
        let last = self.cache_bytes.last().copied().unwrap_or(0);
        self.lines.len() as u64 * LINE_BYTES >= 2 * last
    }
}

/// Why these CPUs are only a part of the machine.
fn part_of(online: &CpuSet, used: &CpuSet) -> Option<String> {
    (used.len() < online.len()).then(|| format!("only CPUs {used} of {online} may be used"))
}

/// Bytes to measure with, at most half of what is available.
fn memory_for(llc_bytes: Option<u64>) -> u64 {
    let wanted = llc_bytes.map_or(0, |bytes| bytes.saturating_mul(LLCS));
    let most = available().map_or(u64::MAX, |bytes| bytes / 2);
    wanted.max(LEAST_BYTES).min(most)
}

fn first_of_each_core(machine: &Machine) -> Vec<CpuId> {
    let mut best = Vec::new();
    for domain in &machine.memory_domains {
        let first = machine.cores.iter().filter_map(CpuSet::first);
        let here: Vec<CpuId> = first.filter(|&cpu| domain.contains(cpu)).collect();
        if here.len() > best.len() {
            best = here;
        }
    }
    best.sort_by_key(|&cpu| machine.cpu(cpu).map(|cpu| cpu.core_type));
    best
}
