//! A job alone in a fresh world.

use super::backend::ForeignWorld;
use super::error::WorldError;
use super::line::WorldJob;
use cosched_core::{
    Backend as _, Change, Counter, Counts, CpuSet, Event, Machine, Nanos, Placement, Purpose, Rate,
    SoloPoint, SoloProfile, SoloTrace, TaskId, Usage,
};
use std::sync::Arc;

/// The only task of its world.
const TASK: TaskId = TaskId(0);

/// Runs a job alone to its end, on the first CPUs of a fresh world with whole cores of its own. With `trace_step` its IPC is
/// recorded, one point for each interval of this length. The profile is empty if the job fails.
///
/// # Errors
/// The world can't go on, or a signal came.
pub fn run_alone(
    mut world: ForeignWorld,
    job: WorldJob,
    trace_step: Option<Nanos>,
) -> Result<SoloProfile, WorldError> {
    let placement = Placement::Exclusive {
        cpus: first_cpus(&world.machine(), job.cpus as usize),
        whole_core: true,
    };
    world.add(vec![job])?;
    world.apply(&[Change::Place {
        task: TASK,
        placement,
        lease_end: None,
        purpose: Purpose::MeasureAlone,
    }])?;
    let mut notes = TraceNotes::default();
    loop {
        let mark = trace_step.map(|step| next_mark(world.now(), step));
        let end = wait(&mut world, mark)?;
        let usage = read(&mut world)?;
        notes.add(&usage.counts);
        match end {
            None => {}
            Some(false) => return Ok(SoloProfile::default()),
            Some(true) => {
                let time = world.now();
                let reads = usage.counts[Counter::MmReads].value();
                let trace = trace_step.and_then(|_| SoloTrace::new(notes.points).ok());
                return Ok(SoloProfile {
                    time: Some(time),
                    mm_reads: reads.and_then(|reads| Rate::from_count(reads, time)),
                    trace: trace.map(Arc::new),
                });
            }
        }
    }
}

/// The first CPUs of the fastest cores, one of each core while there are cores.
fn first_cpus(machine: &Machine, count: usize) -> CpuSet {
    let mut order = Vec::new();
    for cpu in &machine.cpus {
        let core = &machine.cores[cpu.core];
        let within = core.iter().position(|other| other == cpu.id);
        order.push((cpu.core_type, within, cpu.id));
    }
    order.sort_unstable();
    order.into_iter().take(count).map(|(.., cpu)| cpu).collect()
}

/// The next multiple of a step.
fn next_mark(now: Nanos, step: Nanos) -> Nanos {
    let step = step.0.max(1);
    Nanos((now.0 / step + 1).saturating_mul(step))
}

/// Waits until the mark or the end of the task. Returns whether the task succeeded, if it has ended.
fn wait(world: &mut ForeignWorld, mark: Option<Nanos>) -> Result<Option<bool>, WorldError> {
    let mut events = Vec::new();
    while mark.is_none_or(|mark| world.now() < mark) {
        world.wait(mark, &mut events)?;
        for event in events.drain(..) {
            match event {
                Event::Ended { exit, .. } => return Ok(Some(exit.ok())),
                Event::Interrupt { signal } => return Err(WorldError::Interrupted(signal)),
                _ => {}
            }
        }
    }
    Ok(None)
}

fn read(world: &mut ForeignWorld) -> Result<Usage, WorldError> {
    let mut usages = Vec::new();
    world.read(&[TASK], &mut usages);
    match (world.take_failure(), usages.pop()) {
        (Some(failure), _) => Err(failure),
        (None, usage) => Ok(usage.unwrap_or_else(|| Usage::zero(TASK))),
    }
}

/// The IPC of a task by instructions executed.
struct TraceNotes {
    points: Vec<SoloPoint>,
    last: Counts,
}

impl Default for TraceNotes {
    fn default() -> TraceNotes {
        TraceNotes {
            points: Vec::new(),
            last: Usage::zero(TASK).counts,
        }
    }
}

impl TraceNotes {
    /// Adds a point, given the task's counts so far. A stretch without instructions belongs to the next one.
    fn add(&mut self, counts: &Counts) {
        let ipc = counts.since(&self.last).ipc().value();
        let instructions = counts[Counter::Instructions].value();
        let (Some(ipc), Some(instructions)) = (ipc, instructions) else {
            return;
        };
        if ipc > 0.0 {
            self.points.push(SoloPoint { instructions, ipc });
            self.last = *counts;
        }
    }
}
