//! A machine that is simulated: what it is made of, and what its parts can do.

use crate::curve::LatencyCurve;
use crate::source::Source;
use cosched_core::{
    Absence, CoreType, Counter, Cpu, CpuId, CpuSet, Machine, ParamError, Params, PerCounter, PolicyEntry, Reading,
};
use std::sync::Arc;

/// A simulated machine. Every group of figures says where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// Its name on the command line.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Sockets; each is a memory domain.
    pub sockets: u32,
    /// Last-level caches per socket.
    pub llcs_per_socket: u32,
    /// The types of core, the fastest first; each last-level cache has the same of each.
    pub core_types: Vec<CoreTypeSpec>,
    /// How the threads of a core get in each other's way.
    pub smt: SmtSpec,
    /// The last-level caches.
    pub llc: LlcSpec,
    /// Memory, per socket.
    pub memory: MemorySpec,
    /// Power, beside that of the cores.
    pub power: PowerSpec,
    /// The kernel that runs on it.
    pub kernel: KernelSpec,
    /// What its counters can count.
    pub counters: CountersSpec,
    /// Parameters of policies that belong to the machine, by their names: what they are here instead of the defaults.
    pub params: Vec<(String, String)>,
    /// Where each group of figures comes from, in the order of the file.
    pub sources: Vec<(String, Source)>,
}

/// A type of core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreTypeSpec {
    /// Its name, for example `core`, `big`, `small`.
    pub name: String,
    /// Cores of this type at each last-level cache.
    pub cores_per_llc: u32,
    /// Hardware threads of each core.
    pub threads_per_core: u32,
    /// Clock in GHz; it does not change.
    pub ghz: f64,
    /// The kernel's relative capacity, 1024 for the fastest type, if there are several types.
    pub capacity: Option<u32>,
    /// Cycles per instruction without misses, relative to those of the profiles' machines.
    pub cpi_factor: f64,
    /// Accesses to the first-level data cache that are served in a cycle.
    pub l1_ports: f64,
    /// Size of the private second-level cache in KB: what it holds does not reach the last level.
    pub l2_kb: f64,
    /// Power of a core that does nothing, in W.
    pub idle_w: f64,
    /// Power of a core that runs something, beyond its idle power, in W, whatever it runs.
    pub active_w: f64,
    /// Energy of an instruction, in nJ: the part of a core's power that goes with its IPC.
    pub nj_per_instruction: f64,
}

/// SMT: the threads of a core share its issue slots and its first-level cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmtSpec {
    /// How much longer a thread's instructions take in the core while a sibling never stalls, from 0 (nothing is
    /// shared) to 1 (the siblings take turns).
    pub issue_share: f64,
    /// Cycles that an access to the first-level cache waits while a sibling keeps its ports busy all the time.
    pub l1_wait_cycles: f64,
}

/// The last-level caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlcSpec {
    /// Size of one, in MB of 2^20 bytes.
    pub mb: f64,
}

/// Main memory of one socket.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySpec {
    /// Channels.
    pub channels: u32,
    /// Peak bandwidth of a channel, in GB/s of 10^9 bytes.
    pub gb_per_s_per_channel: f64,
    /// Read latency of an idle system as a core sees it, in ns.
    pub idle_latency_ns: f64,
    /// What a read from another socket's memory takes longer, in ns.
    pub remote_ns: f64,
    /// How latency grows with bandwidth, relative to the peak and to the idle latency.
    pub curve: Arc<LatencyCurve>,
}

/// Power beside that of the cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSpec {
    /// What the machine takes when it is idle, in W.
    pub static_w: f64,
    /// What a socket takes more when any of its cores runs something, in W.
    pub uncore_w: f64,
    /// Energy to move one line of 64 bytes from or to memory, in nJ.
    pub nj_per_line: f64,
}

/// The kernel's scheduler, and what its actions cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelSpec {
    /// In this time every task of a CPU runs once, as long as they are few, in ms (EFS, section 4.3: 18 ms).
    pub period_ms: f64,
    /// The shortest slice, in ms: with more tasks the period grows (EFS, section 4.3: 4 ms).
    pub min_slice_ms: f64,
    /// A task that wakes interrupts one that is ahead of it by more than this, in ms.
    pub wakeup_granularity_ms: f64,
    /// How often the loads of the CPUs are balanced, in ms.
    pub balance_ms: f64,
    /// What a switch costs the CPU, in microseconds, in the kernel.
    pub switch_us: f64,
    /// What a thread loses to cold private caches when it starts on another core, in microseconds.
    pub migration_us: f64,
}

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountersSpec {
    /// Whether each counter counts per task.
    pub counts: PerCounter<bool>,
    /// Whether policies can read a meter of energy.
    pub energy: bool,
    /// Each interval's count is off by up to this share, up or down.
    pub noise: f64,
}

impl CountersSpec {
    /// The key in `[counters]` of a machine file that says whether a counter counts.
    pub fn key(counter: Counter) -> &'static str {
        match counter {
            Counter::Cycles | Counter::Instructions => "ipc",
            other => other.name(),
        }
    }

    /// What a machine file says of counters: keys and values, each key once.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, bool)> {
        // Cycles and instructions have a key in common.
        let others = Counter::ALL.into_iter().filter(|&counter| counter != Counter::Instructions);
        others.map(|counter| (CountersSpec::key(counter), self.counts[counter]))
    }

    /// Why a counter does not count; `None` when it does.
    pub fn absence(&self, counter: Counter) -> Option<Absence> {
        if self.counts[counter] {
            return None;
        }
        let any = self.counts.iter().any(|(_, counts)| *counts);
        Some(if any { Absence::NoSuchEvent } else { Absence::NoCounters })
    }
}

impl MachineSpec {
    /// What of the machine's parameters a policy has: settings for [`Params::resolve`], before those of the user.
    pub fn settings_for(&self, entry: &PolicyEntry) -> Vec<(String, String)> {
        let has = |name: &str| entry.params.iter().any(|spec| spec.name == name);
        self.params.iter().filter(|(name, _)| has(name)).cloned().collect()
    }

    /// A policy's parameters on this machine: its defaults, changed by what the machine's file says.
    ///
    /// # Errors
    /// A value outside its range; a machine that was read from a file has none.
    pub fn params_for(&self, entry: &PolicyEntry) -> Result<Params, ParamError> {
        Params::resolve(entry.name, entry.params, &self.settings_for(entry))
    }

    /// The machine as policies see it. CPUs are numbered as Linux mostly does: first one CPU of each core, then the
    /// second of each.
    pub fn machine(&self) -> Machine {
        let mut cpus = Vec::new();
        let mut cores = Vec::new();
        let llcs = self.sockets * self.llcs_per_socket;
        let threads = self.core_types.iter().map(|kind| kind.threads_per_core).max().unwrap_or(1);
        for thread in 0..threads {
            let mut core = 0;
            for llc in 0..llcs as usize {
                for (core_type, kind) in self.core_types.iter().enumerate() {
                    for _ in 0..kind.cores_per_llc {
                        if thread < kind.threads_per_core {
                            let memory_domain = llc / self.llcs_per_socket as usize;
                            let id = CpuId(cpus.len() as u32);
                            cpus.push(Cpu { id, core, llc, memory_domain, core_type });
                            if thread == 0 {
                                cores.push(CpuSet::new());
                            }
                            cores[core].insert(id);
                        }
                        core += 1;
                    }
                }
            }
        }
        let set = |ours: &dyn Fn(&Cpu) -> bool| cpus.iter().filter(|cpu| ours(cpu)).map(|cpu| cpu.id).collect();
        Machine {
            name: self.name.clone(),
            llcs: (0..llcs as usize).map(|llc| set(&|cpu| cpu.llc == llc)).collect(),
            memory_domains: (0..self.sockets as usize).map(|d| set(&|cpu| cpu.memory_domain == d)).collect(),
            cores,
            core_types: self
                .core_types
                .iter()
                .map(|kind| CoreType {
                    name: kind.name.clone(),
                    capacity: kind.capacity,
                    max_khz: Some((kind.ghz * 1e6 + 0.5) as u64),
                })
                .collect(),
            llc_bytes: Reading::Value((self.llc.mb * 1_048_576.0) as u64),
            cpus,
        }
    }
}
