//! Random machines, programs, jobs and faults, and a backend that checks what the simulation reports.
#![allow(unreachable_pub)]

use crate::support;
use cosched_core::*;
use cosched_sim::machine::*;
use cosched_sim::program::*;
use cosched_sim::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;

prop_compose! {
    fn core_type()(
        cores in select(vec![1u32, 1, 2, 3]),
        threads in 1u32..=3,
        ghz in select(vec![0.8, 2.0, 3.3]),
        turbo in select(vec![vec![], vec![(1, 5.0)], vec![(1, 4.5), (3, 3.6)]]),
        cpi_factor in select(vec![0.3, 1.0, 4.0]),
        l1_ports in select(vec![0.5, 1.0, 2.0]),
        l2_kb in select(vec![0.0, 32.0, 256.0, 1_024.0, 4_096.0]),
    ) -> CoreTypeSpec {
        CoreTypeSpec {
            cores_per_llc: cores, threads_per_core: threads, ghz, turbo, cpi_factor, l1_ports, l2_kb,
            ..support::machine(1, 1).core_types[0].clone()
        }
    }
}

prop_compose! {
    pub fn machine()(
        sockets in 1u32..=3,
        llcs_per_socket in select(vec![1u32, 1, 2]),
        core_types in vec(core_type(), 1..=2),
        issue_share in select(vec![0.0, 0.4, 1.0]),
        l1_wait_cycles in select(vec![0.0, 1.0, 100.0]),
        mb in select(vec![0.1, 0.75, 6.0, 37.3]),
        (hit_ns, replacement, inclusive) in (
            select(vec![0.1, 1.0]),
            select(vec![CacheReplacement::ByAge, CacheReplacement::Random]),
            any::<bool>(),
        ),
        stream_loss in select(vec![0.0, 0.025, 1.0]),
        memory in (1u32..=3, select(vec![1.0, 10.667]), select(vec![1.0, 76.0, 150.0]), select(vec![0.0, 80.0, 2_000.0])),
        kernel in (
            select(vec![(0.1, 0.1), (1.0, 0.1), (18.0, 4.0), (60.0, 60.0)]),
            select(vec![0.0, 1.0]),
            select(vec![1.0, 32.0, 500.0]),
            select(vec![0.0, 3.0, 300.0]),
            select(vec![0.0, 30.0, 2_000.0]),
        ),
        ipc in any::<bool>(),
        counts in any::<[bool; Counter::COUNT]>(),
        traffic in any::<bool>(),
        noise in select(vec![0.0, 0.01, 0.5]),
        disk in proptest::option::of((select(vec![1.0, 300.0]), select(vec![0.0, 0.5]))),
    ) -> MachineSpec {
        let like = support::machine(1, 1);
        let (channels, gb_per_s_per_channel, idle_latency_ns, remote_ns) = memory;
        // A part of the latency of memory.
        let hit_ns = hit_ns * idle_latency_ns;
        let ((period_ms, min_slice_ms), wakeup_granularity_ms, balance_ms, switch_us, migration_us) = kernel;
        // The kernel tells several types apart by their capacity, the first being the fastest.
        let several = core_types.len() > 1;
        let core_types = core_types.into_iter().enumerate().map(|(ix, kind)| CoreTypeSpec {
            name: format!("type{ix}"),
            capacity: several.then_some(1_024 >> ix),
            ..kind
        });
        MachineSpec {
            nodes: 1,
            sockets,
            llcs_per_socket,
            core_types: core_types.collect(),
            smt: SmtSpec { issue_share, l1_wait_cycles },
            llc: LlcSpec { mb, hit_ns, replacement, inclusive },
            memory: MemorySpec {
                channels, gb_per_s_per_channel, idle_latency_ns, remote_ns, stream_loss, ..like.memory.clone()
            },
            kernel: KernelSpec {
                period_ms, min_slice_ms, wakeup_granularity_ms, balance_ms, switch_us, migration_us,
            },
            counters: CountersSpec {
                // Cycles and instructions share a flag.
                counts: PerCounter::from_fn(|counter| match Capability::of(counter) {
                    Capability::Ipc => ipc,
                    _ => counts[counter as usize],
                }),
                traffic,
                energy: true,
                noise,
            },
            devices: PerDevice {
                disk: disk.map(|(mb_per_s, stream_cost)| DeviceSpec { mb_per_s, stream_cost }),
                net: None,
            },
            ..like
        }
    }
}

prop_compose! {
    fn phase()(
        // Sometimes as short as a file allows.
        instructions in select(vec![1e3, 7e4, 3e6, 1e7, 5e8, 1e12]),
        cpi in select(vec![0.2, 1.0, 5.0]),
        memory in select(vec![0.0, 1.0, 4.0]),
        then_sleep_ms in select(vec![0.0, 0.0, 1e-6, 0.01, 3.7, 40.0]),
        disk in select(vec![0.0, 1e-6, 0.3, 20.0]),
    ) -> ProgramPhase {
        ProgramPhase { instructions, cpi, memory, then_sleep_ms, then_mb: PerDevice { disk, net: 0.0 } }
    }
}

prop_compose! {
    pub fn program()(
        cpi in select(vec![0.05, 0.4, 1.3, 4.0]),
        l1 in select(vec![0.0, 300.0, 2_000.0]),
        misses in select(vec![0.0, 0.001, 3.0, 40.0, 200.0]),
        filtered in 0.0..=1.0f64,
        falls in vec((0.01..9.0f64, 0.0..=1.0f64), 1..4),
        level in select(vec![0.1, 1.0, 2.0]),
        at_mb in select(vec![0.0, 2.5, 20.0]),
        writes in select(vec![0.0, 0.3, 1.5]),
        mlp in 1.0..40.0f64,
        fit in proptest::option::of((select(vec![0.0, 0.05, 2.0]), select(vec![1.0, 228.0]), select(vec![0.0, 0.3]))),
        hits in proptest::option::of((select(vec![0.0, 256.0, 1_024.0]), select(vec![1.0, 36.0]))),
        phases in prop_oneof![Just(Vec::new()), vec(phase(), 1..4)],
    ) -> ProgramSpec {
        let accesses = misses * filtered;
        let (mut mb, mut left) = (0.0, accesses);
        let curve: Vec<(f64, f64)> = falls.iter().map(|&(wider, keeps)| {
            mb += wider;
            left *= keeps;
            (mb, left)
        }).collect();
        let reads = left * level;
        let hits = hits.map(|(l2_kb, llc_cycles)| MeasuredHits { l2_kb, llc_cycles });
        let stall = match fit {
            Some((cpi_per_100_cycles, from_cycles, above)) => Stall::Fitted {
                cpi_fixed: cpi - cpi_per_100_cycles * from_cycles / 100.0 + above, cpi_per_100_cycles, from_cycles,
            },
            None => Stall::Overlap { mlp },
        };
        ProgramSpec {
            name: "random".to_owned(),
            title: String::new(),
            instructions: None,
            core: ProgramCore { cpi, l1_accesses_per_ki: l1, hits },
            cache: ProgramCache { l1_misses_per_ki: misses, l2_kb: 1_024.0, llc_accesses_per_ki: accesses, llc_misses_per_ki: curve },
            memory: ProgramMemory { reads_per_ki: reads, writes_per_ki: reads * writes, at_mb, stall },
            phases,
        }
    }
}

/// A job, when it arrives, and bits that choose its mask.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub job: SimJob,
    pub arrives: Nanos,
    pub mask: Option<u32>,
}

/// Limits a job's work by the shortest of its phases, so that a run does not have millions of them.
fn work(program: &ProgramSpec, wanted: u64) -> u64 {
    let round: f64 = program.phases.iter().map(|phase| phase.instructions).sum();
    if program.phases.is_empty() {
        wanted
    } else {
        wanted.min((round * 100.0) as u64)
    }
}

prop_compose! {
    pub fn arrival()(
        program in program(),
        wanted in prop_oneof![select(vec![1u64, 2, 7]), 10..10_000u64, 10_000..100_000_000u64],
        solo in proptest::option::weighted(0.2, 1..30_000_000u64),
        cpus in select(vec![1u32, 1, 1, 1, 2, 3]),
        nice in select(vec![0i8, 0, 0, 5, 19, -20]),
        arrives in select(vec![0u64, 0, 0, 1, 20_000_000, 333_333_333]),
        mask in proptest::option::weighted(0.3, 1u32..),
    ) -> Arrival {
        let work = match solo {
            // Only for programs without tiny phases, for the same reason.
            Some(ns) if program.phases.iter().all(|phase| phase.instructions > 1e6) => JobWork::SoloTime(Nanos(ns)),
            _ => JobWork::Instructions(work(&program, wanted)),
        };
        Arrival { job: SimJob { program: Arc::new(program), work, cpus, nice }, arrives: Nanos(arrives), mask }
    }
}

pub fn fault(jobs: u32) -> impl Strategy<Value = Fault> {
    let exit = Exit::Signal {
        signal: 11,
        oom: false,
    };
    let what = prop_oneof![
        Just(FaultKind::CountersVanish),
        Just(FaultKind::CountersWrap),
        select(vec![
            0.0,
            0.5,
            1_000.0,
            1e300,
            f64::INFINITY,
            f64::NAN,
            -1.0
        ])
        .prop_map(|factor| FaultKind::CountersLie { factor }),
        (0u32..9).prop_map(|cpu| FaultKind::CpuOffline(CpuId(cpu))),
        (0u32..9).prop_map(|cpu| FaultKind::CpuOffline(CpuId(cpu))),
        (0u32..9).prop_map(|cpu| FaultKind::CpuOnline(CpuId(cpu))),
        (0..jobs + 2).prop_map(move |task| FaultKind::JobDies {
            task: TaskId(task),
            exit: exit.clone()
        }),
    ];
    // Often several at the same instant.
    let at = select(vec![
        0u64,
        1,
        1_000_000,
        5_000_000,
        5_000_000,
        20_000_000,
        333_333_333,
    ]);
    (at, what).prop_map(|(at, what)| Fault {
        at: Nanos(at),
        what,
    })
}

/// What is simulated, and the jobs' arrivals and masks.
#[derive(Clone, Debug)]
pub struct Scene {
    pub config: SimConfig,
    pub tasks: Vec<TaskSpec>,
}

pub fn scene() -> impl Strategy<Value = Scene> {
    let faults = prop_oneof![Just(Vec::new()).boxed(), vec(fault(6), 1..6).boxed()];
    let parts = (
        machine(),
        vec(arrival(), 1..7),
        faults,
        select(vec![0.0, 0.02, 0.3]),
        any::<u8>(),
    );
    parts.prop_map(|(machine, arrivals, faults, variation, seed)| {
        let cpus: Vec<CpuId> = machine.machine().all_cpus().iter().collect();
        let mut jobs = Vec::new();
        let mut tasks = Vec::new();
        for (ix, arrival) in arrivals.into_iter().enumerate() {
            let needs = arrival.job.cpus.min(cpus.len() as u32);
            let picked = |mask: u32| {
                let set: CpuSet = (0..cpus.len())
                    .filter(|bit| mask >> (bit % 32) & 1 == 1)
                    .map(|bit| cpus[bit])
                    .collect();
                set
            };
            let allowed = arrival
                .mask
                .map(picked)
                .filter(|set| set.len() >= needs as usize);
            tasks.push(TaskSpec {
                cpus: needs,
                weight: weight_of_nice(arrival.job.nice),
                arrives: arrival.arrives,
                allowed,
                ..TaskSpec::new(ix as u32, &format!("job{ix}"))
            });
            jobs.push(SimJob {
                cpus: needs,
                ..arrival.job
            });
        }
        let config = SimConfig {
            variation,
            faults,
            ..SimConfig::new(Arc::new(machine), jobs, u64::from(seed))
        };
        Scene { config, tasks }
    })
}

/// A simulation that is checked whenever the loop asks it for anything.
pub struct Watched {
    pub sim: Sim,
    pub wrong: Vec<String>,
    last: Nanos,
    energy: f64,
    told: Vec<Option<Usage>>,
    /// Whether a fault may start the counters again from zero.
    wraps: bool,
    threads: Vec<u32>,
    waits: u32,
}

impl Watched {
    pub fn new(config: &SimConfig) -> Watched {
        Watched {
            sim: Sim::new(config.clone()).unwrap(),
            wrong: Vec::new(),
            last: Nanos::ZERO,
            energy: 0.0,
            told: vec![None; config.jobs.len()],
            wraps: config
                .faults
                .iter()
                .any(|fault| fault.what == FaultKind::CountersWrap),
            threads: config.jobs.iter().map(|job| job.cpus).collect(),
            waits: 0,
        }
    }

    fn look(&mut self) {
        let now = self.sim.now();
        if now < self.last {
            self.wrong.push(format!("{now:?} after {:?}", self.last));
        }
        let cpus = self.sim.machine().cpus.len();
        if cpus == 0 {
            self.wrong.push("no CPU is left".to_owned());
        }
        self.last = now;
    }

    fn energy(&mut self) {
        let energy = self
            .sim
            .energy_parts()
            .iter()
            .map(|part| part.1)
            .sum::<f64>();
        if !energy.is_finite() || energy < self.energy * (1.0 - 1e-12) {
            self.wrong
                .push(format!("energy {energy} after {}", self.energy));
        }
        self.energy = energy;
    }
}

impl Backend for Watched {
    type Error = SimError;

    fn machine(&self) -> Arc<Machine> {
        self.sim.machine()
    }

    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn now(&mut self) -> Nanos {
        self.look();
        self.last
    }

    fn stopwatch(&self) -> Option<Nanos> {
        None
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), SimError> {
        let before = self.last;
        self.sim.wait(until, events)?;
        self.look();
        self.energy();
        self.waits = if self.last == before {
            self.waits + 1
        } else {
            0
        };
        assert!(self.waits < 1_000, "time stands still at {before:?}");
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        let from = out.len();
        self.sim.read(tasks, out);
        let ns = |reading: &Reading<Nanos>| reading.value().map_or(0, |time| time.0);
        for usage in &out[from..] {
            let ix = usage.task.0 as usize;
            if ns(&usage.cpu_time) > u64::from(self.threads[ix]) * self.last.0 {
                self.wrong.push(format!("{usage:?} at {:?}", self.last));
            }
            if let Some(before) = &self.told[ix] {
                let mut pairs = before
                    .counts
                    .iter()
                    .zip(usage.counts.iter())
                    .map(|((_, before), (_, after))| (before, after));
                let fell = |(before, after): (&Reading<u64>, &Reading<u64>)| matches!((before.value(), after.value()), (Some(before), Some(after)) if after < before);
                if ns(&usage.cpu_time) < ns(&before.cpu_time) || !self.wraps && pairs.any(fell) {
                    self.wrong.push(format!("{before:?} then {usage:?}"));
                }
            }
            self.told[ix] = Some(usage.clone());
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        self.sim.device_time(usages)
    }

    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>) {
        self.sim.visible(tasks, out);
    }

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        self.sim.wanting(task)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), SimError> {
        self.sim.apply(changes)
    }

    fn began(&self, task: TaskId) -> Began {
        self.sim.began(task)
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<SimError>> {
        self.sim.planner()
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        self.sim.kill(task, how);
    }

    fn ending(&mut self) {
        self.sim.ending();
    }

    fn restart(&mut self, task: TaskId) -> bool {
        self.told[task.0 as usize] = None;
        self.sim.restart(task)
    }

    fn forget(&mut self, task: TaskId) {
        self.sim.forget(task);
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.sim.resources(task)
    }

    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        self.sim.may_start(task)
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        self.sim.traffic(out);
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.sim.energy_j()
    }
}

/// A call of the backend, sensible or not.
#[derive(Clone, Debug)]
pub enum Call {
    Wait(u64),
    Read,
    Kill(u32),
    Restart(u32),
    Apply(Vec<Order>),
    Install(u64, Vec<Order>),
}

/// A change for some task: its CPUs as bits, or `None` to stop it.
#[derive(Clone, Debug)]
pub struct Order(u32, Option<(u16, bool)>);

impl Order {
    pub fn of(&self, tasks: u32) -> Change {
        let task = TaskId(self.0 % tasks);
        let Some((bits, exclusive)) = self.1 else {
            return Change::Stop { task };
        };
        let cpus: CpuSet = (0..16)
            .filter(|bit| bits >> bit & 1 == 1)
            .map(|bit| CpuId(bit * bit))
            .collect();
        let placement = if exclusive {
            Placement::Exclusive {
                cpus,
                whole_core: bits & 1 == 1,
            }
        } else {
            Placement::Shared { mask: cpus }
        };
        Change::Place {
            task,
            placement,
            lease_end: None,
            purpose: Purpose::Run,
        }
    }
}

/// A plan: tasks to be placed get seats, tasks to be stopped become fillers.
pub fn plan(generation: u64, orders: &[Order], tasks: u32) -> Plan {
    let mut schedule = Schedule::default();
    for order in orders {
        match order.of(tasks) {
            Change::Place {
                task, placement, ..
            } => {
                let until = (order.0 % 3 == 0).then(|| Nanos::from_ms(50 * u64::from(order.0)));
                schedule.seats.push(Seat {
                    task,
                    placement,
                    until,
                });
            }
            Change::Stop { task } => schedule.fillers.push(Filler {
                task,
                allowed: None,
            }),
        }
    }
    if generation.is_multiple_of(2) {
        let demand = |task| Demand {
            task: TaskId(task),
            class: (task * 1_000) as u16,
        };
        schedule.admission = Some(BusAdmission {
            demands: (0..tasks).map(demand).collect(),
            gains: vec![1 << 20; 3],
        });
    }
    Plan {
        generation,
        payload: Payload::Schedule(schedule),
    }
}

/// How decisions are carried out.
pub fn actuation() -> impl Strategy<Value = Actuation> {
    prop_oneof![2 => Just(Actuation::Decisions), 1 => Just(Actuation::Plans)]
}

pub fn call() -> impl Strategy<Value = Call> {
    let order = (
        0u32..6,
        proptest::option::weighted(0.8, any::<(u16, bool)>()),
    )
        .prop_map(|(task, to)| Order(task, to));
    prop_oneof![
        4 => select(vec![0u64, 1, 999, 100_000, 5_000_000, 40_000_000]).prop_map(Call::Wait),
        2 => Just(Call::Read),
        1 => (0u32..6).prop_map(Call::Kill),
        1 => (0u32..6).prop_map(Call::Restart),
        4 => vec(order.clone(), 0..5).prop_map(Call::Apply),
        2 => (0u64..9, vec(order, 0..5)).prop_map(|(generation, orders)| Call::Install(generation, orders)),
    ]
}
