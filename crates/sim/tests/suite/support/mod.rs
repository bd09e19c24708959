//! Small machines and programs for tests, with round figures.
#![allow(dead_code, unreachable_pub)]

use cosched_core::*;
use cosched_sim::curve::{LatencyCurve, LatencyLine};
use cosched_sim::machine::*;
use cosched_sim::program::*;
use cosched_sim::*;
use std::sync::Arc;

pub fn curve() -> Arc<LatencyCurve> {
    let line = |reads, knee: f64| LatencyLine {
        reads,
        points: vec![
            (0.05, 1.0),
            (0.3, 1.05),
            (0.6, 1.2),
            (knee, 1.6),
            (knee + 0.06, 2.2),
            (0.96, 6.6),
        ],
    };
    Arc::new(LatencyCurve {
        lines: vec![line(0.5, 0.72), line(1.0, 0.84)],
    })
}

/// One socket, one cache, one channel.
pub fn machine(cores: u32, threads: u32) -> MachineSpec {
    MachineSpec {
        name: "small".to_owned(),
        title: "for tests".to_owned(),
        nodes: 1,
        sockets: 1,
        llcs_per_socket: 1,
        core_types: vec![CoreTypeSpec {
            name: "core".to_owned(),
            cores_per_llc: cores,
            threads_per_core: threads,
            ghz: 2.0,
            turbo: Vec::new(),
            capacity: None,
            cpi_factor: 1.0,
            l1_ports: 1.0,
            l2_kb: 256.0,
            idle_w: 1.0,
            active_w: 5.0,
            nj_per_instruction: 1.0,
        }],
        smt: SmtSpec {
            issue_share: 0.4,
            l1_wait_cycles: 1.0,
        },
        llc: LlcSpec {
            mb: 8.0,
            hit_ns: 15.0,
            replacement: CacheReplacement::ByAge,
            inclusive: false,
        },
        memory: MemorySpec {
            channels: 1,
            gb_per_s_per_channel: 10.667,
            idle_latency_ns: 76.0,
            remote_ns: 60.0,
            stream_loss: 0.025,
            stream_loss_most: STREAM_LOSS_MOST,
            curve: curve(),
        },
        devices: PerDevice::default(),
        power: PowerSpec {
            static_w: 20.0,
            uncore_w: 8.0,
            nj_per_line: 20.0,
        },
        kernel: KernelSpec {
            period_ms: 18.0,
            min_slice_ms: 4.0,
            wakeup_granularity_ms: 1.0,
            balance_ms: 32.0,
            switch_us: 3.0,
            migration_us: 30.0,
        },
        counters: CountersSpec {
            counts: PerCounter::from_fn(|counter| counter != Counter::MmWrites),
            traffic: true,
            energy: false,
            noise: 0.0,
        },
        params: Vec::new(),
    }
}

/// A program with a core part, accesses per KI that miss less and less until `fits_mb` are held, and an overlap of
/// misses.
pub fn program(name: &str, cpi: f64, misses: f64, fits_mb: f64, mlp: f64) -> ProgramSpec {
    // The profile describes a cache behind one of 1 MB.
    let curve = if fits_mb > 1.0 {
        vec![(fits_mb - 1.0, 0.0)]
    } else {
        vec![(1.0, misses)]
    };
    ProgramSpec {
        name: name.to_owned(),
        title: String::new(),
        instructions: None,
        core: ProgramCore {
            cpi,
            l1_accesses_per_ki: 300.0,
            hits: None,
        },
        cache: ProgramCache {
            l1_misses_per_ki: misses,
            l2_kb: 1_024.0,
            llc_accesses_per_ki: misses,
            llc_misses_per_ki: curve,
        },
        memory: ProgramMemory {
            reads_per_ki: misses,
            writes_per_ki: 0.0,
            at_mb: 0.0,
            stall: Stall::Overlap { mlp },
        },
        phases: Vec::new(),
    }
}

/// Needs nothing but a core.
pub fn compute() -> ProgramSpec {
    program("compute", 0.5, 0.0, 0.0, 2.0)
}

/// Reads as fast as memory allows.
pub fn stream() -> ProgramSpec {
    program("stream", 0.3, 30.0, 0.0, 12.0)
}

/// Walks through some MB, one line after the other.
pub fn chase(mb: f64) -> ProgramSpec {
    program("chase", 1.0, 100.0, mb, 1.0)
}

pub fn job(program: &ProgramSpec, solo_ms: u64) -> SimJob {
    SimJob {
        program: Arc::new(program.clone()),
        work: JobWork::SoloTime(Nanos::from_ms(solo_ms)),
        cpus: 1,
        nice: 0,
    }
}

pub fn config(machine: &MachineSpec, jobs: Vec<SimJob>) -> SimConfig {
    SimConfig {
        variation: 0.0,
        ..SimConfig::new(Arc::new(machine.clone()), jobs, 1)
    }
}

pub fn specs(config: &SimConfig) -> Vec<TaskSpec> {
    let spec = |(id, job): (usize, &SimJob)| TaskSpec {
        cpus: job.cpus,
        weight: weight_of_nice(job.nice),
        ..TaskSpec::new(id as u32, &format!("{}-{id}", job.program.name))
    };
    config.jobs.iter().enumerate().map(spec).collect()
}

pub fn run_on(config: &SimConfig, policy: &str) -> (RunResult, Sim) {
    let entry = find_policy(policy).unwrap();
    let params = config.machine.params_for(entry).unwrap();
    let mut policy = (entry.build)(&params);
    let mut sim = Sim::new(config.clone()).unwrap();
    let quantum = Nanos::from_s(params.number("quantum_s"));
    let settings = RunConfig {
        quantum,
        traffic: true,
        devices: entry.needs_devices(&params),
        ..RunConfig::default()
    };
    let result = run(
        &mut sim,
        &mut *policy,
        &mut NullRecorder,
        specs(config),
        &settings,
    )
    .unwrap();
    (result, sim)
}

/// Whether a policy can work on the machine of these tests.
pub fn suits(entry: &PolicyEntry) -> bool {
    let sim = Sim::new(config(&machine(2, 2), vec![job(&compute(), 1)])).unwrap();
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let shortfalls = entry.shortfalls(&params, &sim.capabilities());
    shortfalls
        .iter()
        .all(|shortfall| shortfall.importance != Importance::Required)
}
