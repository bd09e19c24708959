//! A job alone on the machine.

use crate::config::{JobWork, SimJob};
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use crate::world::{Behaviour, Instance, LINES_PER_MB, SimWorld, TrueCounts, WorldEvent};
use cosched_core::{Device, Nanos, Rate, SoloPoint, SoloTrace};
use std::sync::Arc;

/// Events of a solo run between two calls of `stop`: a few milliseconds.
const LOOK_UP: u64 = 4096;

/// The run of a job alone on the machine, on its fastest cores.
#[derive(Clone, Copy, Debug)]
pub struct SoloRun {
    /// Time from its start to its end.
    pub time: Nanos,
    /// Instructions that it executes.
    pub instructions: u64,
    /// Instructions per cycle, mean over its life and its threads.
    pub ipc: f64,
    /// Lines read from memory, mean rate.
    pub mm_reads: Rate,
}

/// Lower bound of a job's solo time in seconds: on the fastest cores, with each thread having a whole cache from the
/// start, and memory otherwise idle. Nothing is simulated for it. It holds for a job exactly like its profile.
pub fn least_solo_s(machine: &MachineSpec, job: &SimJob) -> f64 {
    match job.work {
        JobWork::SoloTime(time) => time.as_s(),
        JobWork::Instructions(instructions) => {
            let each = instructions as f64 / f64::from(job.cpus.max(1));
            least_s_of(machine, &job.program, each)
        }
    }
}

/// The same for one thread with this number of instructions.
fn least_s_of(machine: &MachineSpec, program: &ProgramSpec, instructions: f64) -> f64 {
    // The fastest type of core comes first.
    let Some(kind) = machine.core_types.first() else {
        return 0.0;
    };
    let ghz = kind.clock_ghz(1);
    let behaviour = Behaviour::new(program, kind, machine.llc.hit_ns * kind.ghz);
    let latency = machine.memory.idle_latency_ns * ghz;
    let whole = machine.llc.mb * LINES_PER_MB;
    let stall = behaviour.waits(whole, 1.0, latency).stall;
    let mut phases = Vec::new();
    for phase in &behaviour.phases {
        let ns_each = (behaviour.cpi * phase.cpi + stall * phase.memory) / ghz;
        let mut pause_ns = phase.then_sleep_ms * 1e6;
        for device in Device::ALL {
            if let Some(spec) = machine.devices[device] {
                pause_ns += phase.then_mb[device] * 1e6 / spec.bytes_per_ns();
            }
        }
        phases.push((phase.instructions, ns_each, pause_ns));
    }
    let cycle: f64 = phases.iter().map(|(instructions, ..)| instructions).sum();
    let cycle_ns: f64 = phases
        .iter()
        .map(|(instructions, ns_each, pause)| instructions * ns_each + pause)
        .sum();
    let (whole, mut left) = if cycle.is_finite() {
        // The pause after its last instruction does not count.
        let whole = (instructions / cycle).ceil() - 1.0;
        (whole, instructions - whole * cycle)
    } else {
        (0.0, instructions)
    };
    let mut ns = if whole > 0.0 { whole * cycle_ns } else { 0.0 };
    for (instructions, ns_each, pause) in phases {
        let done = left.min(instructions);
        ns += done * ns_each;
        left -= done;
        if left <= 0.0 {
            break;
        }
        ns += pause;
    }
    ns / 1e9
}

impl SoloRun {
    /// Runs a job alone; `None` if `stop` returned `true`.
    pub(crate) fn simulate(
        machine: &Arc<MachineSpec>,
        job: &SimJob,
        instance: Instance,
        step: f64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<SoloRun> {
        SoloRun::watched(machine, job, instance, step, u64::MAX, |_| {}, stop)
    }

    /// Runs a job alone again, and records its IPC per `every`. `Some(None)` for a job that does nothing, `None` if
    /// `stop` returned `true`.
    ///
    /// The points split the run's steps, which changes the last digits of its figures. So the job's work and time do
    /// not come from this run.
    pub(crate) fn trace(
        machine: &Arc<MachineSpec>,
        job: &SimJob,
        instance: Instance,
        step: f64,
        every: Nanos,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Option<SoloTrace>> {
        let mut notes = TraceNotes::default();
        let every = every.0.max(1);
        SoloRun::watched(
            machine,
            job,
            instance,
            step,
            every,
            |done| notes.add(done),
            stop,
        )?;
        Some(SoloTrace::new(notes.points).ok())
    }

    fn watched(
        machine: &Arc<MachineSpec>,
        job: &SimJob,
        instance: Instance,
        step: f64,
        every: u64,
        mut look: impl FnMut(&TrueCounts),
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<SoloRun> {
        let (work, limit) = match job.work {
            JobWork::Instructions(instructions) => (instructions as f64, u64::MAX),
            JobWork::SoloTime(time) => (1e18, time.0),
        };
        let mut world = lone_world(machine, job, instance, step, work);
        let mut done = world.happened.contains(&WorldEvent::Finished(0));
        let mut events = 0u64;
        while !done && world.now < limit {
            if events.is_multiple_of(LOOK_UP) && stop() {
                return None;
            }
            events += 1;
            let next = world.next_event().min(limit);
            if next == u64::MAX {
                break;
            }
            let mark = (world.now / every + 1).saturating_mul(every);
            world.advance(next.min(mark));
            if world.now == mark {
                look(&tally(&mut world));
            }
            // A job may sleep millions of times, and its sleeps do not matter here.
            done = world.happened.contains(&WorldEvent::Finished(0));
            world.happened.clear();
        }
        let all = tally(&mut world);
        look(&all);
        let time = Nanos(world.now);
        let ipc = if all.cycles > 0.0 {
            all.instructions / all.cycles
        } else {
            0.0
        };
        Some(SoloRun {
            time,
            instructions: (all.instructions + 0.5) as u64,
            ipc,
            mm_reads: Rate::from_count(all.reads as u64, time).unwrap_or_default(),
        })
    }
}

/// The IPC of a job by instructions executed.
#[derive(Default)]
struct TraceNotes {
    points: Vec<SoloPoint>,
    last: TrueCounts,
}

impl TraceNotes {
    /// Adds a point, given the job's counts so far. A stretch without instructions belongs to the next one.
    fn add(&mut self, tally: &TrueCounts) {
        let done = tally.instructions - self.last.instructions;
        let cycles = tally.cycles - self.last.cycles;
        let instructions = (tally.instructions + 0.5) as u64;
        let before = self.points.last().map_or(0, |point| point.instructions);
        if instructions > before && cycles > 0.0 {
            let ipc = done / cycles;
            self.points.push(SoloPoint { instructions, ipc });
            self.last = *tally;
        }
    }
}

/// A world in which a job starts alone, with its threads on the fastest cores, one per core while there are cores.
fn lone_world(
    machine: &Arc<MachineSpec>,
    job: &SimJob,
    instance: Instance,
    step: f64,
    work: f64,
) -> SimWorld {
    let mut world = SimWorld::new(machine.clone(), std::slice::from_ref(&job.program), step);
    world.add_task(0, instance, job.cpus, work, 0);
    // CPUs are numbered with one of each core first, and the fastest type comes first at each cache.
    let mut order: Vec<usize> = (0..world.cpus.len()).collect();
    order.sort_by_key(|&cpu| world.machine.cpus[cpu].core_type);
    for thread in 0..job.cpus as usize {
        world.place(thread, Arc::new([order[thread % order.len()]]));
    }
    world.settle();
    world
}

/// The counts of the world's only task so far.
fn tally(world: &mut SimWorld) -> TrueCounts {
    world.sync_task(0);
    let mut all = TrueCounts::default();
    for thread in &world.threads {
        all.add(&thread.tally);
    }
    all
}
