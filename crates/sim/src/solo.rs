//! A job alone on the machine.

use crate::machine::MachineSpec;
use crate::sim::{SimJob, Work};
use crate::world::{Happening, Instance, World};
use cosched_core::{Nanos, Rate};
use std::sync::Arc;

/// What a job does when it has the machine, and its fastest cores, to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoloRun {
    /// From its start to its end.
    pub time: Nanos,
    /// What it executes.
    pub instructions: u64,
    /// Instructions per cycle, mean over its life and its threads.
    pub ipc: f64,
    /// Lines read from memory, mean rate.
    pub mm_reads: Rate,
}

impl SoloRun {
    /// Runs a job alone.
    pub(crate) fn simulate(machine: &Arc<MachineSpec>, job: &SimJob, instance: Instance, step: f64) -> SoloRun {
        let (work, limit) = match job.work {
            Work::Instructions(instructions) => (instructions as f64, u64::MAX),
            Work::SoloTime(time) => (1e18, time.0),
        };
        let mut world = World::new(machine.clone(), std::slice::from_ref(&job.program), step);
        world.add_task(0, instance, job.cpus, work, 0);
        // CPUs are numbered with one of each core first, and the fastest type is the first at each cache.
        let mut order: Vec<usize> = (0..world.cpus.len()).collect();
        order.sort_by_key(|&cpu| world.machine.cpus[cpu].core_type);
        for thread in 0..job.cpus as usize {
            world.place(thread, Arc::new([order[thread % order.len()]]));
        }
        world.settle();
        let done = |world: &World| world.happened.contains(&Happening::Finished(0));
        while !done(&world) && world.now < limit {
            let next = world.next_event().min(limit);
            if next == u64::MAX {
                break;
            }
            world.advance(next);
        }
        world.sync_task(0);
        let mut all = crate::world::Tally::default();
        world.threads.iter().for_each(|thread| all.add(&thread.tally));
        let time = Nanos(world.now);
        SoloRun {
            time,
            instructions: (all.instructions + 0.5) as u64,
            ipc: if all.cycles > 0.0 { all.instructions / all.cycles } else { 0.0 },
            mm_reads: Rate::from_count(all.reads as u64, time).unwrap_or_default(),
        }
    }
}
