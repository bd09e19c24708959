//! What the probes use: CPUs, rings of lines to walk over, and memory to stream over.

use crate::workload::arithmetic::Generator;
use crate::workload::ring::{LINE_BYTES, Line, huge_lines, link};
use anyhow::{Context as _, Result};
use cosched_core::{CpuId, CpuSet, Machine};
use cosched_linux::root::Root;
use cosched_linux::{meminfo, pin_thread, topology};
use cosched_run::within_quota;

/// The smallest ring: a part of any first cache.
const LEAST_BYTES: u64 = 8 << 10;

/// The size of a last-level cache that the kernel does not list.
const USUAL_LLC: u64 = 32 << 20;

/// The memory to stream over, in last-level caches, and its least size: caches keep nothing of it that is read again.
const STREAMED_LLCS: u64 = 4;
const LEAST_STREAMED: u64 = 256 << 20;

/// All rings and that memory together, in last-level caches.
const ALL_LLCS: u64 = 11;

/// The CPUs and the memory of the probes. This thread is pinned to the first CPU.
pub struct Bench {
    pub root: Root,
    pub machine: Machine,
    /// All CPUs of the machine, also those that may not be used.
    pub online: CpuSet,
    /// A CPU of each core in the memory domain that has the most of them, the fastest first; never empty.
    pub cpus: Vec<CpuId>,
    /// The other CPU of the first core, if it has one.
    pub sibling: Option<CpuId>,
    /// Sizes of the first CPU's caches, the nearest first.
    pub cache_bytes: Vec<u64>,
    /// In ascending order of their sizes. The largest exceed the caches.
    pub rings: Vec<Ring>,
    /// Far larger than the last-level cache.
    pub streamed: Vec<Line>,
    /// Where streams started last.
    pub started: usize,
}

/// A ring, and where the last walk over it stopped.
pub struct Ring {
    pub lines: Vec<Line>,
    pub at: usize,
}

impl Ring {
    pub fn bytes(&self) -> u64 {
        self.lines.len() as u64 * LINE_BYTES
    }
}

impl Bench {
    /// Reads the machine. There are no rings and no memory yet.
    ///
    /// # Errors
    /// The machine can't be described.
    pub fn new() -> Result<Bench> {
        let root = Root::default();
        let affinity = cosched_linux::affinity(0)?;
        let (found, _) = within_quota(&root, topology::read(&root, &affinity, None)?);
        let machine = found.machine;
        let online = root.cpus("/sys/devices/system/cpu/online", "online CPUs")?;
        let cpus = first_of_each_core(&machine);
        let core = machine.cores.iter().find(|core| core.contains(cpus[0]));
        let sibling = core.and_then(|core| core.iter().find(|&cpu| cpu != cpus[0]));
        let caches = topology::data_caches(&root, cpus[0])?;
        pin_thread(cpus[0]).context("pinning to a CPU")?;
        Ok(Bench {
            online: online.unwrap_or_else(|| machine.all_cpus()),
            root,
            machine,
            sibling,
            cache_bytes: caches.iter().filter_map(|cache| cache.bytes).collect(),
            cpus,
            rings: Vec::new(),
            streamed: Vec::new(),
            started: 0,
        })
    }

    /// Allocates the memory to stream over, and the rings if `with_rings`.
    ///
    /// # Errors
    /// There is not enough free memory to exceed the caches.
    pub fn allocate(&mut self, with_rings: bool) -> Result<()> {
        let free = meminfo::read(&self.root).map_or(u64::MAX, |memory| memory.usable());
        let listed = self.cache_bytes.last().copied().unwrap_or(USUAL_LLC);
        let llc = listed.min(free / 2 / ALL_LLCS);
        anyhow::ensure!(
            llc > listed / 3 * 2,
            "there is too little free memory to exceed a cache of {} MB",
            listed >> 20
        );
        self.streamed = huge_lines((llc * STREAMED_LLCS).max(LEAST_STREAMED))?;
        let mut generator = Generator::new(1);
        for bytes in sizes(2 * llc).filter(|_| with_rings) {
            let mut lines = huge_lines(bytes)?;
            link(&mut lines, &mut generator);
            self.rings.push(Ring { lines, at: 0 });
        }
        Ok(())
    }

    /// The other cores that share the first CPU's last-level cache, by their first CPUs.
    pub fn sharing_cache(&self) -> &[CpuId] {
        let mut llcs = self.machine.llcs.iter();
        let llc = llcs.find(|llc| llc.contains(self.cpus[0]));
        let shares = |cpu: &CpuId| llc.is_some_and(|llc| llc.contains(*cpu));
        let number = self.cpus.iter().take_while(|cpu| shares(cpu)).count();
        &self.cpus[1..number.max(1)]
    }

    /// Why these CPUs are only a part of the machine; `None` if they are all.
    pub fn part(&self) -> Option<String> {
        let used = self.machine.all_cpus();
        (used.len() < self.online.len())
            .then(|| format!("only CPUs {used} of {} may be used", self.online))
    }
}

/// Sizes of rings, two for each doubling.
fn sizes(most: u64) -> impl Iterator<Item = u64> {
    let doubled = std::iter::successors(Some(LEAST_BYTES), |bytes| Some(bytes * 2));
    let both = doubled.flat_map(|bytes| [bytes, bytes / 2 * 3]);
    both.take_while(move |&bytes| bytes <= most)
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
    best.sort_by_key(|&cpu| machine.cpu(cpu).map(|cpu| (cpu.core_type, cpu.llc)));
    best
}
