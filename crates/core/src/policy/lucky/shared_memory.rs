//! What a task on a big core loses at the memory, and costs the others there, by the bus model of EFS.
//!
//! A faster task asks for more lines. So with the performance on each type, its demand there is known.

use super::super::core_types::Split;
use super::types::Speeds;
use crate::model::bus::{solo_utilisation, throughput};

/// The demand for memory of all tasks.
pub(super) struct SharedMemory {
    /// Solo utilisation of each task of the snapshot, on its present type of core.
    demands: Vec<f64>,
}

impl SharedMemory {
    /// From the lines that each task read in the last quantum (EFS, Eq. 9). The bus of each memory domain serves
    /// `mu_per_ms`, and all are taken as one.
    pub(super) fn of(split: &Split<'_>, mu_per_ms: f64) -> SharedMemory {
        let served = mu_per_ms * split.snap.machine.memory_domains.len() as f64;
        let used = split.snap.tasks.iter().map(|task| {
            let reads = task.estimates.mm_reads.value();
            reads.map_or(0.0, |rate| (rate.0 as f64 / served).min(1.0))
        });
        let used: Vec<f64> = used.collect();
        let free = (1.0 - used.iter().sum::<f64>()).max(0.0);
        let demands = used
            .iter()
            .map(|&u| solo_utilisation(u, free).unwrap_or(0.0));
        SharedMemory {
            demands: demands.collect(),
        }
    }

    /// The solo utilisation of a task of the snapshot, on its present type of core.
    pub(super) fn demand(&self, ix: u32) -> f64 {
        self.demands[ix as usize]
    }

    /// The mean speed of so many tasks with each of these demands, over that of the present tasks (EFS, Eq. 12). There is
    /// at least one task of both.
    pub(super) fn slowed(&self, tasks: &[(usize, f64)]) -> f64 {
        let mut demands = Vec::new();
        for &(number, demand) in tasks {
            demands.extend(vec![demand.min(1.0); number]);
        }
        let mean = |demands: &[f64]| throughput(demands).unwrap_or(1.0) / demands.len() as f64;
        mean(&demands) / mean(&self.demands)
    }

    /// By how much all tasks' efficiency, the square of their speed, changes if this one is on a big core rather than on
    /// a small one (EFS, Eq. 12).
    pub(super) fn gain(&self, ix: u32, speeds: &Speeds) -> f64 {
        let all_with = |mips: f64| {
            let mut demands = self.demands.clone();
            let demand = &mut demands[ix as usize];
            *demand = (*demand * mips / speeds.here).min(1.0);
            throughput(&demands).unwrap_or(1.0)
        };
        let ratio = all_with(speeds.big) / all_with(speeds.small);
        ratio * ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_task_asks_for_more() {
        let memory = SharedMemory {
            demands: vec![0.25, 0.5, 0.0],
        };
        // On the big core it asks for 0.5. Two such tasks run at 0.763932 (EFS, Eq. 10), and the third is undisturbed.
        let speeds = Speeds {
            here: 1.0,
            big: 2.0,
            small: 1.0,
        };
        let together = 2.0 * 0.763_932 + 1.0;
        let now = throughput(&[0.25, 0.5, 0.0]).unwrap();
        assert!((memory.gain(0, &speeds) - (together / now).powi(2)).abs() < 1e-5);
        assert_eq!(memory.gain(2, &speeds), 1.0);
        // Two tasks of 0.5 in place of all three, in mean speed.
        let slowed = memory.slowed(&[(2, 0.5), (0, 1.0)]);
        assert!((slowed - 0.763_932 * 3.0 / now).abs() < 1e-5);
    }
}
