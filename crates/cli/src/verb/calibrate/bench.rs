//! What the probes use: the machine, its CPUs, rings of lines to walk over, and memory to stream over.

use crate::workload::arithmetic::Generator;
use crate::workload::ring::{LINE_BYTES, Line, huge_lines, link};
use anyhow::{Context as _, Result};
use cosched_core::{CpuId, CpuSet, Machine};
use cosched_linux::root::Root;
use cosched_linux::{Allocation, pin_thread, topology};
use cosched_run::Allotted;

/// The smallest ring: a part of any first cache.
const LEAST_BYTES: u64 = 8 << 10;

/// The size of a last-level cache that the kernel does not list.
const USUAL_LLC: u64 = 32 << 20;

/// The memory to stream over, in last-level caches, and its least size: caches keep nothing of it that is read again.
const STREAMED_LLCS: u64 = 4;
const LEAST_STREAMED: u64 = 256 << 20;

/// This machine, as the kernel describes it.
pub struct Site {
    pub root: Root,
    pub machine: Machine,
    /// Sizes of the caches of the first CPU of `cpus`, the nearest first.
    pub cache_bytes: Vec<u64>,
    /// A CPU of each core of the first memory domain, the fastest first; never empty.
    pub cpus: Vec<CpuId>,
}

impl Site {
    /// Reads the machine.
    ///
    /// # Errors
    /// It can't be described, or may not be used as a whole.
    pub fn read(root: Root) -> Result<Site> {
        let affinity = cosched_linux::affinity(0)?;
        let whole = topology::read(&root, &affinity, None)?;
        let machine = Allotted::of(&root, whole, Allocation::here().as_ref())
            .topology
            .machine;
        let used = machine.all_cpus();
        let online = root.cpus("/sys/devices/system/cpu/online", "online CPUs")?;
        if let Some(online) = online.filter(|online| used.len() < online.len()) {
            anyhow::bail!("only CPUs {used} of {online} may be used; measure the whole machine");
        }
        let domain = &machine.memory_domains[0];
        let first = machine.cores.iter().filter_map(CpuSet::first);
        let mut cpus: Vec<CpuId> = first.filter(|&cpu| domain.contains(cpu)).collect();
        cpus.sort_by_key(|&cpu| machine.cpu(cpu).map(|cpu| (cpu.core_type, cpu.llc)));
        let caches = topology::data_caches(&root, cpus[0])?;
        Ok(Site {
            cache_bytes: caches.iter().filter_map(|cache| cache.bytes).collect(),
            root,
            machine,
            cpus,
        })
    }
}

/// The CPUs and the memory of the probes. This thread is pinned to the first CPU.
pub struct ProbeBench<'a> {
    pub site: &'a Site,
    /// How many of the CPUs share the first one's last-level cache, itself included. They come first.
    pub sharing: usize,
    /// The other CPU of the first core, if it has one.
    pub sibling: Option<CpuId>,
    /// In ascending order of their sizes. The largest exceed the caches.
    pub rings: Vec<Vec<Line>>,
    /// Far larger than the last-level cache.
    pub streamed: Vec<Line>,
    pub power_command: Option<&'a str>,
}

impl ProbeBench<'_> {
    /// Allocates the memory; the rings only if `with_rings`.
    ///
    /// # Errors
    /// There is too little free memory.
    pub fn new<'a>(
        site: &'a Site,
        with_rings: bool,
        power_command: Option<&'a str>,
    ) -> Result<ProbeBench<'a>> {
        let (cpu, machine) = (site.cpus[0], &site.machine);
        let shares = |set: &&CpuSet| set.contains(cpu);
        let llc = machine.llcs.iter().find(shares);
        let shares_llc = |&&other: &&CpuId| llc.is_none_or(|llc| llc.contains(other));
        let core = machine.cores.iter().find(shares);
        let (rings, streamed) = memory(&site.cache_bytes, with_rings)?;
        pin_thread(cpu).context("pinning to a CPU")?;
        Ok(ProbeBench {
            site,
            sharing: site.cpus.iter().filter(shares_llc).count(),
            sibling: core.and_then(|core| core.iter().find(|&other| other != cpu)),
            rings,
            streamed,
            power_command,
        })
    }

    /// The ring that one core walks over within the last-level cache: twice the cache before it. `None` if each core that
    /// shares the cache can't have as much of it, or only one does.
    pub fn cached_ring(&self) -> Option<&[Line]> {
        let &[.., before, last] = &self.site.cache_bytes[..] else {
            return None;
        };
        let mut rings = self.rings.iter();
        let ring = rings.find(|ring| bytes(ring) >= 2 * before)?;
        let fits = bytes(ring) * self.sharing as u64 <= last;
        (self.sharing > 1 && fits).then_some(ring.as_slice())
    }

    /// The ring of about half of the second cache.
    pub fn half_of_second_cache(&self) -> &[Line] {
        let most = self.site.cache_bytes.get(1).map_or(0, |l2| l2 / 2);
        let ring = self.rings.iter().rfind(|ring| bytes(ring) <= most);
        ring.map_or(&[], Vec::as_slice)
    }
}

pub fn bytes(lines: &[Line]) -> u64 {
    lines.len() as u64 * LINE_BYTES
}

/// The rings, and the memory to stream over.
fn memory(cache_bytes: &[u64], with_rings: bool) -> Result<(Vec<Vec<Line>>, Vec<Line>)> {
    let llc = cache_bytes.last().copied().unwrap_or(USUAL_LLC);
    let too_little = |_| {
        let mb = llc >> 20;
        anyhow::anyhow!("there is too little free memory to exceed a cache of {mb} MB")
    };
    let streamed = huge_lines((llc * STREAMED_LLCS).max(LEAST_STREAMED)).map_err(too_little)?;
    let mut generator = Generator::new(1);
    let mut rings = Vec::new();
    let mut bytes = LEAST_BYTES;
    while with_rings && bytes <= 2 * llc {
        for bytes in [bytes, bytes / 2 * 3] {
            let mut ring = huge_lines(bytes).map_err(too_little)?;
            link(&mut ring, &mut generator);
            rings.push(ring);
        }
        bytes *= 2;
    }
    Ok((rings, streamed))
}
