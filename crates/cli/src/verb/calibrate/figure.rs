//! Figures from samples in rounds.
//!
//! Every probe has a turn of a few samples in each round, so that a figure comes from the whole time of a calibration. A turn
//! counts only if it was calm: the threads had their CPUs, and no other CPU worked. What still disturbs a sample only
//! adds to it. So a figure is the best decile of its samples, and it ranges over the best samples of the turns.

use crate::workload::measure::Spent;
use cosched_core::CpuSet;
use cosched_linux::accounts;
use cosched_linux::root::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Maximum share of a turn that others may take from its threads, or use other CPUs.
const MOST_TAKEN: f64 = 0.02;

/// The values of a sample: of the measurement itself, and of what runs beside it.
pub type Sample = [f64; 2];

/// A measured figure, and the range of the turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Figure {
    /// A figure from turns of samples; none may be empty.
    pub fn of(turns: &[Vec<f64>]) -> Figure {
        let each: Vec<f64> = turns.iter().map(|turn| best_decile(turn)).collect();
        Figure {
            value: best_decile(&turns.concat()),
            low: each.iter().copied().fold(f64::INFINITY, f64::min),
            high: each.iter().copied().fold(0.0, f64::max),
        }
    }

    /// A monotone function of this figure.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Figure {
        let (low, high) = (function(self.low), function(self.high));
        Figure {
            value: function(self.value),
            low: low.min(high),
            high: low.max(high),
        }
    }

    /// How much this is more than another one; at least 0.
    pub fn above(self, other: Figure) -> Figure {
        Figure {
            value: (self.value - other.value).max(0.0),
            low: (self.low - other.high).max(0.0),
            high: (self.high - other.low).max(0.0),
        }
    }

    /// Whether the ranges of two figures have nothing in common.
    pub fn differs(self, other: Figure) -> bool {
        self.low > other.high || self.high < other.low
    }
}

fn best_decile(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = sorted.len().saturating_sub(1) / 10;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The figures of a probe, or why there are none.
pub type Outcome = Result<[Figure; 2], String>;

/// Gives each probe turns until `calm` of them were calm, in at most twice as many rounds. `turn` returns nothing if it was
/// disturbed.
pub fn rounds<P: Ord + Copy>(
    probes: &[P],
    calm: usize,
    mut turn: impl FnMut(P) -> Option<Vec<Sample>>,
) -> BTreeMap<P, Outcome> {
    let mut all: BTreeMap<P, Vec<Vec<Sample>>> = BTreeMap::new();
    for left in (1..=2 * calm).rev() {
        for &probe in probes {
            let turns = all.entry(probe).or_default();
            let missing = calm - turns.len();
            if 0 < missing && missing <= left {
                turns.extend(turn(probe));
            }
        }
    }
    let outcome = |turns: Vec<Vec<Sample>>| match turns.len() {
        enough if enough == calm => Ok([0, 1].map(|ix| figure_at(&turns, ix))),
        few => Err(format!("the machine was busy: {few} calm turns of {calm}")),
    };
    all.into_iter()
        .map(|(probe, turns)| (probe, outcome(turns)))
        .collect()
}

fn figure_at(turns: &[Vec<Sample>], ix: usize) -> Figure {
    let values = turns.iter();
    let values: Vec<Vec<f64>> = values
        .map(|turn| turn.iter().map(|sample| sample[ix]).collect())
        .collect();
    Figure::of(&values)
}

/// Takes samples in a turn; `None` if it was disturbed. Each sample comes with the time of its threads; `threads`
/// is the least share that they should have had, and `others` are the CPUs that should be idle.
pub fn turn(
    root: &Root,
    others: &CpuSet,
    threads: f64,
    samples: usize,
    mut sample: impl FnMut() -> (Sample, Spent),
) -> Option<Vec<Sample>> {
    let (start, before) = (Instant::now(), accounts::busy(root, others));
    let all: Vec<(Sample, Spent)> = (0..samples).map(|_| sample()).collect();
    let elapsed_s = start.elapsed().as_secs_f64();
    let busy = accounts::busy(root, others).zip(before);
    let busy_s = busy.map_or(0.0, |(now, before)| now.as_s() - before.as_s());
    let own_s: f64 = all.iter().map(|(_, spent)| spent.cpu_s).sum();
    let wanted_s: f64 = all.iter().map(|(_, spent)| spent.elapsed_s).sum();
    let has_cpus = own_s >= (threads - MOST_TAKEN) * wanted_s;
    let is_alone = busy_s <= MOST_TAKEN * elapsed_s * others.len() as f64;
    (has_cpus && is_alone).then(|| all.into_iter().map(|(sample, _)| sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn figure(value: f64, low: f64, high: f64) -> Figure {
        Figure { value, low, high }
    }

    #[test]
    fn a_figure_is_the_best_decile_and_ranges_over_the_turns() {
        let turns = [vec![12.0, 10.0, 90.0], vec![11.0, 14.0, 11.5]];
        assert_eq!(Figure::of(&turns), figure(10.0, 10.0, 11.0));
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(Figure::of(&[many]).value, 9.0);
        let times = figure(10.0, 8.0, 20.0);
        assert_eq!(times.map(|ns| 1000.0 / ns), figure(100.0, 50.0, 125.0));
        assert_eq!(times.above(figure(9.0, 9.0, 9.0)), figure(1.0, 0.0, 11.0));
    }

    #[test]
    fn only_ranges_apart_differ() {
        let kept = figure(100.0, 98.0, 105.0);
        assert!(!kept.differs(figure(108.0, 104.0, 109.0)));
        assert!(kept.differs(figure(108.0, 106.0, 109.0)));
        assert!(kept.differs(figure(80.0, 78.0, 97.0)));
    }

    #[test]
    fn disturbed_turns_are_repeated_and_a_busy_machine_has_no_figure() {
        // 'a' is calm, 'b' in every second round, 'c' never.
        let turns = Cell::new([0; 3]);
        let found = rounds(&['a', 'b', 'c'], 5, |probe| {
            let ix = probe as usize - 'a' as usize;
            let mut counts = turns.get();
            counts[ix] += 1;
            turns.set(counts);
            let is_calm = [true, counts[1] % 2 == 0, false][ix];
            is_calm.then(|| vec![[f64::from(counts[ix]), 7.0]; 3])
        });
        assert_eq!(
            found[&'a'],
            Ok([figure(1.0, 1.0, 5.0), figure(7.0, 7.0, 7.0)])
        );
        assert_eq!(found[&'b'].as_ref().unwrap()[0], figure(2.0, 2.0, 10.0));
        assert!(found[&'c'].as_ref().unwrap_err().contains("busy"));
        // The hopeless one was given up when too few rounds were left.
        assert_eq!(turns.get(), [5, 10, 6]);
    }

    #[test]
    fn a_turn_whose_threads_waited_does_not_count() {
        let root = Root::new("/nonexistent");
        let with_share = |cpu_s| {
            let spent = Spent {
                elapsed_s: 1.0,
                cpu_s,
            };
            turn(&root, &CpuSet::new(), 1.0, 3, || ([1.0, 0.0], spent))
        };
        assert_eq!(with_share(0.985).unwrap().len(), 3);
        assert_eq!(with_share(0.95), None);
    }

    #[test]
    fn a_turn_beside_a_busy_cpu_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let stat = |ticks| {
            let text = format!("cpu1 {ticks} 0 0 900 0 0 0 0 0 0\n");
            std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        };
        stat(5);
        let others: CpuSet = "1".parse().unwrap();
        let idle = Spent {
            elapsed_s: 1.0,
            cpu_s: 1.0,
        };
        let mut ticks = 5;
        let mut once = |more| {
            turn(&Root::new(dir.path()), &others, 1.0, 1, || {
                ticks += more;
                stat(ticks);
                ([1.0, 0.0], idle)
            })
        };
        assert!(once(0).is_some());
        assert!(once(100).is_none());
    }
}
