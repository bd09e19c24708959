//! The description of a simulated machine: its parts and their capacities.

use crate::curve::LatencyCurve;
use cosched_core::{
    Absence, Capabilities, Capability, CoreType, Counter, Cpu, CpuId, CpuSet, Device, Machine,
    Node, ParamError, Params, PerCounter, PerDevice, PolicyEntry, Reading,
};
use std::sync::Arc;

/// A simulated machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// Its name on the command line.
    pub name: String,
    /// A one-line description.
    pub title: String,
    /// Nodes: computers like this one, each with all of its parts; 1 for a single computer.
    pub nodes: u32,
    /// Sockets of a node; each is a memory domain.
    pub sockets: u32,
    /// Last-level caches per socket.
    pub llcs_per_socket: u32,
    /// The types of core, the fastest first. All last-level caches have the same number of cores of each type.
    pub core_types: Vec<CoreTypeSpec>,
    /// Slowdown of the threads of a core by each other.
    pub smt: SmtSpec,
    /// The last-level caches.
    pub llc: LlcSpec,
    /// Memory of each socket.
    pub memory: MemorySpec,
    /// Disks and network; without one, moving bytes takes no time.
    pub devices: PerDevice<Option<DeviceSpec>>,
    /// Power other than that of the cores.
    pub power: PowerSpec,
    /// The kernel's scheduler, and the cost of its actions.
    pub kernel: KernelSpec,
    /// What the counters can count.
    pub counters: CountersSpec,
    /// Values that replace the defaults of policies' parameters on this machine, by the parameter's name.
    pub params: Vec<(String, String)>,
}

/// A type of core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreTypeSpec {
    /// Its name, for example `core`, `big` or `small`.
    pub name: String,
    /// Cores of this type at each last-level cache.
    pub cores_per_llc: u32,
    /// Hardware threads of each core.
    pub threads_per_core: u32,
    /// Nominal clock in GHz, without turbo the only one.
    pub ghz: f64,
    /// (active cores of the socket, GHz with at most so many), in ascending order of cores; with more the clock is nominal.
    pub turbo: Vec<(u32, f64)>,
    /// The kernel's relative capacity, 1024 for the fastest type; required where there are several types.
    pub capacity: Option<u32>,
    /// Cycles per instruction without misses, relative to those of the profiles' machines.
    pub cpi_factor: f64,
    /// Accesses per cycle of the first-level data cache.
    pub l1_ports: f64,
    /// Size of the private second-level cache in KB. Accesses to lines in it do not reach the last level.
    pub l2_kb: f64,
    /// Power of an idle core, in W.
    pub idle_w: f64,
    /// Power of a running core beyond its idle power at the nominal clock, in W. It grows with the third power of the clock.
    pub active_w: f64,
    /// Energy of an instruction at the nominal clock, in nJ: the part of a core's power that grows with its IPC. It grows
    /// with the square of the clock.
    pub nj_per_instruction: f64,
}

/// SMT: the threads of a core share its issue slots and its first-level cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmtSpec {
    /// Growth of a thread's time in the core while a sibling never stalls, from 0 (nothing is shared) to 1 (the
    /// siblings take turns).
    pub issue_share: f64,
    /// Cycles that an access to the first-level cache waits while a sibling always keeps its ports busy.
    pub l1_wait_cycles: f64,
}

/// The last-level caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlcSpec {
    /// Size of each cache, in MB of 2^20 bytes.
    pub mb: f64,
    /// Latency of a hit as a core sees it, in ns.
    pub hit_ns: f64,
    /// The line to replace.
    pub replacement: CacheReplacement,
    /// Whether it has all lines of the private caches. A line that it replaces leaves these, too.
    pub inclusive: bool,
}

/// The line of a last-level cache that a new line replaces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheReplacement {
    /// An old line: lines of threads that do not run, and empty ones, first; then those of the thread whose oldest line is
    /// older.
    ByAge,
    /// Any line.
    Random,
}

/// Default of [`MemorySpec::stream_loss_most`]: the gain of four programs from banks of their own (Liu et al.,
/// PACT 2012). With many streams every access finds another row open, and more streams change nothing.
pub const STREAM_LOSS_MOST: f64 = 0.086;

/// Main memory of one socket.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySpec {
    /// Number of channels.
    pub channels: u32,
    /// Peak bandwidth of a channel, in GB/s of 10^9 bytes.
    pub gb_per_s_per_channel: f64,
    /// Read latency of an idle system as a core sees it, in ns.
    pub idle_latency_ns: f64,
    /// Additional latency of a read from another socket's memory, in ns.
    pub remote_ns: f64,
    /// Share of a channel's bandwidth lost to each further stream on it, as streams close each other's rows.
    pub stream_loss: f64,
    /// Maximum share of the bandwidth lost to all further streams together.
    pub stream_loss_most: f64,
    /// Growth of the latency with bandwidth, relative to the peak and to the idle latency.
    pub curve: Arc<LatencyCurve>,
}

/// A device that all jobs share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSpec {
    /// MB of 10^6 bytes that it moves per second for one job.
    pub mb_per_s: f64,
    /// Growth of the time per byte with each further job that it serves, as a share: the seeks of a disk.
    pub stream_cost: f64,
}

impl DeviceSpec {
    pub(crate) fn bytes_per_ns(&self) -> f64 {
        self.mb_per_s * 1e-3
    }
}

/// Power other than that of the cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSpec {
    /// Power of the idle machine without its cores, in W.
    pub static_w: f64,
    /// Additional power of a socket while any of its cores runs, in W.
    pub uncore_w: f64,
    /// Energy to move a line of 64 bytes from or to memory, in nJ.
    pub nj_per_line: f64,
}

/// The kernel's scheduler, and the cost of its actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelSpec {
    /// Scheduling period in ms: every task of a CPU runs once in it, while the tasks are few (EFS, section 4.3: 18 ms).
    pub period_ms: f64,
    /// The shortest slice, in ms. With many tasks the period grows (EFS, section 4.3: 4 ms).
    pub min_slice_ms: f64,
    /// A waking task preempts the running one if that is ahead by more than this, in ms of weighted run time.
    pub wakeup_granularity_ms: f64,
    /// Interval of load balancing between CPUs, in ms.
    pub balance_ms: f64,
    /// Kernel time of a switch, in microseconds.
    pub switch_us: f64,
    /// Time lost to cold private caches when a thread starts on another core, in microseconds.
    pub migration_us: f64,
}

/// What the counters can count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountersSpec {
    /// Whether each counter counts, per task.
    pub counts: PerCounter<bool>,
    /// Whether the traffic of each memory domain can be read.
    pub traffic: bool,
    /// Whether policies can read an energy meter.
    pub energy: bool,
    /// Maximum error of each interval's count, as a share, up or down.
    pub noise: f64,
}

impl CountersSpec {
    /// The key of a counter in `[counters]` of a machine file.
    pub fn key(counter: Counter) -> &'static str {
        match counter {
            Counter::Cycles | Counter::Instructions => "ipc",
            other => other.name(),
        }
    }

    /// Why a counter does not count; `None` if it does.
    pub fn absence(&self, counter: Counter) -> Option<Absence> {
        if self.counts[counter] {
            return None;
        }
        let any = self.counts.iter().any(|(_, counts)| *counts);
        Some(if any {
            Absence::NoSuchEvent
        } else {
            Absence::NoCounters
        })
    }

    /// Why the traffic of memory domains can't be read; `None` if it can.
    pub fn traffic_absence(&self) -> Option<Absence> {
        (!self.traffic).then_some(Absence::NoSuchEvent)
    }
}

impl MachineSpec {
    /// The machine's values for the parameters of this policy. [`Params::resolve`] applies them before the user's
    /// settings.
    pub fn settings_for(&self, entry: &PolicyEntry) -> Vec<(String, String)> {
        let mut settings = self.params.clone();
        settings.retain(|(name, _)| entry.params.iter().any(|spec| spec.name == name));
        settings
    }

    /// A policy's parameters on this machine: its defaults, replaced by the values of the machine file.
    ///
    /// # Errors
    /// A value is outside its range. A machine read from a file has no such value.
    pub fn params_for(&self, entry: &PolicyEntry) -> Result<Params, ParamError> {
        Params::resolve(entry.name, entry.params, &self.settings_for(entry))
    }

    /// The capabilities of a run on this machine. `seen` is the part of it that the run may use.
    pub fn capabilities(&self, seen: &Machine) -> Capabilities {
        let mut capabilities = Capabilities::default();
        let missing = &mut capabilities.missing;
        for counter in Counter::ALL {
            if let Some(why) = self.counters.absence(counter) {
                missing.insert(Capability::of(counter), why);
            }
        }
        if let Some(why) = self.counters.traffic_absence() {
            missing.insert(Capability::Traffic, why);
        }
        for device in Device::ALL {
            if self.devices[device].is_none() {
                missing.insert(Capability::Device(device), Absence::NotOffered);
            }
        }
        if !self.counters.energy {
            missing.insert(Capability::Energy, Absence::NoEnergyMeter);
        }
        if seen.core_types.len() < 2 {
            missing.insert(Capability::CoreTypes, Absence::OneCoreType);
        }
        capabilities
    }

    /// The machine as policies see it. CPUs are numbered as usual in Linux: first one CPU of each core, then the second
    /// of each.
    pub fn machine(&self) -> Machine {
        let cpus = self.cpus();
        let cores = cpus.iter().map(|cpu| cpu.core + 1).max().unwrap_or(0);
        let domains = self.domains();
        let llcs = domains * self.llcs_per_socket as usize;
        let at_node = |cpu: &Cpu| cpu.memory_domain / self.sockets as usize;
        let mut nodes = Vec::new();
        if self.nodes > 1 {
            nodes = groups(&cpus, self.nodes as usize, at_node);
        }
        let node = |(ix, cpus)| Node {
            name: format!("{}-{ix}", self.name),
            cpus,
            width: None,
            memory: None,
        };
        Machine {
            nodes: (1..).zip(nodes).map(node).collect(),
            name: self.name.clone(),
            cores: groups(&cpus, cores, |cpu| cpu.core),
            llcs: groups(&cpus, llcs, |cpu| cpu.llc),
            memory_domains: groups(&cpus, domains, |cpu| cpu.memory_domain),
            core_types: self
                .core_types
                .iter()
                .map(CoreTypeSpec::core_type)
                .collect(),
            llc_bytes: Reading::Value((self.llc.mb * 1_048_576.0) as u64),
            cpus,
        }
    }

    fn cpus(&self) -> Vec<Cpu> {
        let threads = self.core_types.iter().map(|kind| kind.threads_per_core);
        let mut cpus = Vec::new();
        let threads = threads.max().unwrap_or(1);
        let cores: Vec<_> = self.cores().enumerate().collect();
        for node in cores.chunks(cores.len() / self.nodes as usize) {
            for thread in 0..threads {
                for &(core, (llc, core_type)) in node {
                    if thread < self.core_types[core_type].threads_per_core {
                        cpus.push(Cpu {
                            id: CpuId(cpus.len() as u32),
                            core,
                            llc,
                            memory_domain: llc / self.llcs_per_socket as usize,
                            core_type,
                        });
                    }
                }
            }
        }
        cpus
    }

    /// One of its nodes.
    pub(crate) fn one_node(&self) -> Arc<MachineSpec> {
        let node = MachineSpec {
            nodes: 1,
            ..self.clone()
        };
        Arc::new(node)
    }

    /// Memory domains of all nodes.
    fn domains(&self) -> usize {
        (self.nodes * self.sockets) as usize
    }

    /// The last-level cache and the type of each core.
    fn cores(&self) -> impl Iterator<Item = (usize, usize)> {
        let llcs = 0..self.domains() * self.llcs_per_socket as usize;
        llcs.flat_map(move |llc| {
            let kinds = self.core_types.iter().enumerate();
            kinds.flat_map(move |(core_type, kind)| {
                std::iter::repeat_n((llc, core_type), kind.cores_per_llc as usize)
            })
        })
    }
}

impl CoreTypeSpec {
    /// The clock in GHz while so many cores of the socket are active.
    pub fn clock_ghz(&self, active_cores: u64) -> f64 {
        let step = self
            .turbo
            .iter()
            .find(|&&(most, _)| active_cores <= most.into());
        step.map_or(self.ghz, |&(_, ghz)| ghz)
    }

    fn core_type(&self) -> CoreType {
        CoreType {
            name: self.name.clone(),
            capacity: self.capacity,
            max_khz: Some((self.clock_ghz(1) * 1e6 + 0.5) as u64),
        }
    }
}

/// Divides CPUs into `count` groups by the number of their group.
fn groups(cpus: &[Cpu], count: usize, group_of: impl Fn(&Cpu) -> usize) -> Vec<CpuSet> {
    let mut groups = vec![CpuSet::new(); count];
    for cpu in cpus {
        groups[group_of(cpu)].insert(cpu.id);
    }
    groups
}
