//! Fits the policies' parameters to a simulated machine as the papers did: by running programs.
//!
//! The fit uses only the topology of the machine's description and, for two types of core, the power of their cores.
//! The lucky paper takes that power from elsewhere too. Instances behave exactly like their profiles.

mod light;

pub use light::LightFit;

use crate::config::DEFAULT_STEP;
use crate::machine::{CoreTypeSpec, MachineSpec};
use crate::program::ProgramSpec;
use crate::world::{Instance, SimWorld, TrueCounts};
use crate::{PROGRAMS, builtin_program};
use cosched_core::model::ModelError;
use cosched_core::model::cross_core::{BothWays, CoreSample, CoreType, RegressionFit};
use cosched_core::model::power::PowerModel;
use cosched_core::{CpuId, CpuSet, Machine, Nanos};
use std::sync::Arc;

/// The most demanding of EFS's synthetic programs: it only misses.
const MICRO_BENCHMARK: &str = "bus-100";

/// Simulated time of each program in the fit of the built-in machines; it covers some of the phases.
pub const FIT_LENGTH: Nanos = Nanos::from_ms(20_000);

/// The fitted parameters of a machine.
#[derive(Debug)]
pub struct MachineFit {
    /// Lines per microsecond of one memory domain when each of its cores asks for as much as it can (EFS, section 5.1).
    pub mu_trans_per_us: f64,
    /// Power of the machine by the active cores of one memory domain, with no core of another domain active (EFS, Eq. 25).
    pub power: PowerModel,
    /// Number of cores of one memory domain, and so of measured steps.
    pub cores: usize,
    /// The thresholds of a light job.
    pub light: LightFit,
    /// The models of the types of core, if there are exactly two.
    pub core_types: Option<CoreTypesFit>,
}

/// The models of a machine's two types of core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreTypesFit {
    /// The first, faster type.
    pub big: CoreType,
    /// The second, slower type.
    pub small: CoreType,
    /// Predicts the big type from the small one (lucky, section 2.2).
    pub to_big: RegressionFit,
    /// Predicts the small type from the big one.
    pub to_small: RegressionFit,
}

/// Fits the parameters of a machine to runs of the SPEC CPU2006 profiles and of EFS's micro-benchmark, each for
/// `length` of simulated time.
///
/// # Errors
/// The runs determine no power model or no regression, for example with a `length` of 0 or on an unusual machine.
pub fn fit(machine: &Arc<MachineSpec>, length: Nanos) -> Result<MachineFit, ModelError> {
    let spec: Vec<Arc<ProgramSpec>> = PROGRAMS
        .iter()
        .filter(|file| file.file.starts_with("programs/spec-cpu2006/"))
        .filter_map(|file| builtin_program(file.name).map(Arc::new))
        .collect();
    let cores = first_of_each_core(machine);
    // Fewer copies can reach more where streams take bandwidth from each other, but with all of them the bus is full.
    let mu_trans_per_us = match builtin_program(MICRO_BENCHMARK) {
        Some(bus) => rates(machine, &Arc::new(bus), cores.len(), length).lines_per_ns * 1e3,
        None => 0.0,
    };
    let power = fit_power(machine, &spec, &cores, length)?;
    // Each program runs beside every other, and impacts show soon.
    let light = light::fit(&at_one_clock(machine), &spec, &cores, Nanos(length.0 / 2));
    let core_types = match &machine.core_types[..] {
        [big, small] => Some(fit_core_types(machine, (big, small), &spec, length)?),
        _ => None,
    };
    Ok(MachineFit {
        mu_trans_per_us,
        power,
        cores: cores.len(),
        light,
        core_types,
    })
}

impl MachineFit {
    /// The policies' parameters from the fit, in the order of the policies, rounded to four digits.
    pub fn params(&self) -> Vec<(&'static str, f64)> {
        let [p0, p1, p2, p_more] = self.power.steps_w;
        let mut params = vec![
            ("mu_trans_per_us", self.mu_trans_per_us),
            ("p0_w", p0),
            ("p1_w", p1),
            ("p2_w", p2),
            ("p_more_w", p_more),
            ("light_llc_trans_per_us", self.light.llc_trans_per_us),
            ("light_mm_trans_per_us", self.light.mm_trans_per_us),
        ];
        if let Some(types) = &self.core_types {
            let (big, small) = (types.big, types.small);
            let (to_big, to_small) = (types.to_big.regression, types.to_small.regression);
            params.extend([
                ("big_capacity_mips", big.capacity_mips()),
                ("big_busy_w", big.busy_w()),
                ("big_idle_w", big.idle_w()),
                ("small_capacity_mips", small.capacity_mips()),
                ("small_busy_w", small.busy_w()),
                ("small_idle_w", small.idle_w()),
                ("to_big_alpha", to_big.alpha),
                ("to_big_beta", to_big.beta),
                ("to_big_gamma_mips", to_big.gamma),
                ("to_small_alpha", to_small.alpha),
                ("to_small_beta", to_small.beta),
                ("to_small_gamma_mips", to_small.gamma),
            ]);
        }
        for (_, value) in &mut params {
            *value = four_digits(*value);
        }
        params
    }
}

/// The machine at the clock that it has with all cores active. A co-runner that lowers the clock is not heavy for it.
fn at_one_clock(machine: &Arc<MachineSpec>) -> Arc<MachineSpec> {
    let mut machine = (**machine).clone();
    let at_a_cache: u32 = machine
        .core_types
        .iter()
        .map(|kind| kind.cores_per_llc)
        .sum();
    let cores = at_a_cache * machine.llcs_per_socket;
    for kind in &mut machine.core_types {
        kind.ghz = kind.clock_ghz(cores.into());
        kind.turbo.clear();
    }
    Arc::new(machine)
}

/// Rounds to four significant digits.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The CPUs of the first memory domain: the first CPU of each core in order, then their siblings.
fn cpus_of_a_domain(machine: &MachineSpec) -> Vec<CpuId> {
    let cpus = machine.machine().cpus.into_iter();
    cpus.filter(|cpu| cpu.memory_domain == 0)
        .map(|cpu| cpu.id)
        .collect()
}

/// The first CPU of each core of the first memory domain.
fn first_of_each_core(machine: &MachineSpec) -> Vec<CpuId> {
    let cpus = cpus_of_a_domain(machine);
    let first = machine.machine().cores;
    let mut first: Vec<CpuId> = first.iter().filter_map(CpuSet::first).collect();
    first.retain(|cpu| cpus.contains(cpu));
    first
}

/// Fits the power of 0, 1, 2 and all cores of one memory domain, given by their first CPUs: means over copies of every
/// program. The power that all cores add beyond the second is shared evenly (EFS, section 5.1).
fn fit_power(
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    first: &[CpuId],
    length: Nanos,
) -> Result<PowerModel, ModelError> {
    let mean_w = |active: usize| {
        let sum: f64 = programs
            .iter()
            .map(|program| watts(machine, program, &first[..active], length))
            .sum();
        sum / programs.len() as f64
    };
    let idle_w = watts(machine, &programs[0], &[], length);
    let one_w = mean_w(1);
    let mut steps_w = [idle_w, one_w - idle_w, one_w - idle_w, one_w - idle_w];
    if first.len() >= 2 {
        let two_w = mean_w(2);
        steps_w[2] = two_w - one_w;
        steps_w[3] = two_w - one_w;
        if first.len() > 2 {
            steps_w[3] = (mean_w(first.len()) - two_w) / (first.len() - 2) as f64;
        }
    }
    PowerModel::new(steps_w)
}

/// Mean power of the machine while a copy of a program runs on each of these CPUs, in W.
fn watts(
    machine: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
    cpus: &[CpuId],
    length: Nanos,
) -> f64 {
    let done = together(machine, program, cpus, 1e18, length);
    done.energy_j / done.time.as_s()
}

/// Fits the models to runs of every program alone on a core of each type, with the same work on both.
fn fit_core_types(
    machine: &Arc<MachineSpec>,
    (big, small): (&CoreTypeSpec, &CoreTypeSpec),
    programs: &[Arc<ProgramSpec>],
    length: Nanos,
) -> Result<CoreTypesFit, ModelError> {
    let whole = machine.machine();
    let (cpu_of_big, cpu_of_small) = (first_of_type(&whole, 0), first_of_type(&whole, 1));
    let mut pairs = BothWays::default();
    let mut best = (0.0f64, 0.0f64);
    for program in programs {
        let on_big = together(machine, program, cpu_of_big.as_slice(), 1e18, length);
        let work = on_big.instructions();
        let on_small = together(machine, program, cpu_of_small.as_slice(), work, Nanos::MAX);
        let (on_big, on_small) = (on_big.sample(), on_small.sample());
        pairs.add(on_big, on_small, 1.0)?;
        best = (best.0.max(on_big.mips), best.1.max(on_small.mips));
    }
    Ok(CoreTypesFit {
        big: core_type(big, best.0)?,
        small: core_type(small, best.1)?,
        to_big: pairs.to_big.fit()?,
        to_small: pairs.to_small.fit()?,
    })
}

/// A type of core as the lucky paper models it (section 3).
fn core_type(kind: &CoreTypeSpec, capacity_mips: f64) -> Result<CoreType, ModelError> {
    let busy_w = kind.idle_w + kind.active_w + kind.nj_per_instruction * capacity_mips / 1e3;
    CoreType::new(capacity_mips, busy_w, kind.idle_w)
}

fn first_of_type(machine: &Machine, core_type: usize) -> Option<CpuId> {
    let mut cpus = machine.cpus.iter();
    let first = cpus.find(|cpu| cpu.core_type == core_type);
    first.map(|cpu| cpu.id)
}

/// Total rates of copies of a program on a machine.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Instructions of all copies per ns.
    pub instructions_per_ns: f64,
    /// Lines of all copies read from and written to memory per ns.
    pub lines_per_ns: f64,
}

/// Runs copies of a program for `length` of simulated time, each on a core of its own in the first memory domain.
///
/// # Panics
/// The domain has fewer cores than there are copies.
pub fn rates(
    machine: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
    copies: usize,
    length: Nanos,
) -> Rates {
    let cpus = &first_of_each_core(machine)[..copies];
    let done = together(machine, program, cpus, 1e18, length);
    let ns = done.time.0 as f64;
    let lines = done.tallies.iter().map(|tally| tally.reads + tally.writes);
    Rates {
        instructions_per_ns: done.instructions() / ns,
        lines_per_ns: lines.sum::<f64>() / ns,
    }
}

/// Runs programs side by side without end, each on a core of its own in the first memory domain: the instructions per ns of
/// each, from one instant to another.
pub fn speeds_beside(
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    from: Nanos,
    until: Nanos,
) -> Vec<f64> {
    let cores = first_of_each_core(machine);
    let jobs: Vec<(&Arc<ProgramSpec>, CpuId)> = programs.iter().zip(cores).collect();
    let [before, after] = [from, until].map(|limit| mixed(machine, &jobs, 1e18, limit));
    let span = (after.time - before.time).0 as f64;
    let tallies = after.tallies.iter().zip(&before.tallies);
    tallies
        .map(|(after, before)| (after.instructions - before.instructions) / span)
        .collect()
}

/// Counts of a joint run of programs.
struct Together {
    time: Nanos,
    tallies: Vec<TrueCounts>,
    energy_j: f64,
}

impl Together {
    /// Instructions of all copies.
    fn instructions(&self) -> f64 {
        self.tallies.iter().map(|tally| tally.instructions).sum()
    }

    /// Total rates of all copies, for the regressions.
    fn sample(&self) -> CoreSample {
        let reads: f64 = self.tallies.iter().map(|tally| tally.reads).sum();
        CoreSample {
            mips: self.instructions() / self.time.as_us(),
            llcms: reads / self.time.as_us(),
        }
    }
}

/// Runs a copy of a program on each of these CPUs until all have done their work, at most until `limit`.
fn together(
    machine: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
    cpus: &[CpuId],
    work: f64,
    limit: Nanos,
) -> Together {
    let mut copies = Vec::new();
    for &cpu in cpus {
        copies.push((program, cpu));
    }
    mixed(machine, &copies, work, limit)
}

/// Runs each of these programs on its CPU until all have done their work, at most until `limit`.
fn mixed(
    machine: &Arc<MachineSpec>,
    jobs: &[(&Arc<ProgramSpec>, CpuId)],
    work: f64,
    limit: Nanos,
) -> Together {
    let programs = jobs.iter().map(|(program, _)| Arc::clone(program));
    let programs: Vec<Arc<ProgramSpec>> = programs.collect();
    let exact = Instance {
        cpi: 1.0,
        memory: 1.0,
        length: 1.0,
    };
    let mut world = SimWorld::new(machine.clone(), &programs, DEFAULT_STEP);
    for (thread, &(_, cpu)) in jobs.iter().enumerate() {
        world.add_task(thread, exact, 1, work, 0);
        let at = world.machine.index_of(cpu).unwrap_or_default();
        world.place(thread, Arc::new([at]));
    }
    world.settle();
    while world.now < limit.0 {
        let next = world.next_event().min(limit.0);
        if next == u64::MAX {
            break;
        }
        world.advance(next);
    }
    for task in 0..jobs.len() as u32 {
        world.sync_task(task);
    }
    let threads = world.threads.iter();
    Together {
        time: Nanos(world.now),
        tallies: threads.map(|thread| thread.tally).collect(),
        energy_j: world.energy().total(),
    }
}
