//! Figures from samples in rounds.
//!
//! Every probe has a turn of a few samples in each round, so that a figure comes from the whole time of a calibration. A turn
//! counts only if it was calm: the threads had their CPUs, the clock stayed, and no other CPU worked. What still disturbs a
//! sample only adds to it. So the best sample of a turn counts. A figure is the median of these, and ranges over all of them:
//! another calibration finds its median there, unless the machine has drifted since.

use cosched_core::CpuSet;
use cosched_linux::accounts;
use cosched_linux::root::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Maximum share of a turn that others may take from its threads, or use other CPUs.
pub const MOST_TAKEN: f64 = 0.02;

/// The values of a sample: of the measurement itself, and of what runs beside it.
pub type Sample = [f64; 2];

/// The figures of each probe.
pub type Figures<P> = BTreeMap<P, [MeasuredFigure; 2]>;

/// A measured figure, and its range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFigure {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl MeasuredFigure {
    /// The value at `ix` of samples in turns; none may be empty.
    fn of(turns: &[Vec<Sample>], ix: usize) -> MeasuredFigure {
        let best = |turn: &Vec<Sample>| {
            turn.iter()
                .map(|sample| sample[ix])
                .fold(f64::INFINITY, f64::min)
        };
        let mut sorted: Vec<f64> = turns.iter().map(best).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        MeasuredFigure {
            value: sorted[last / 2],
            low: sorted[0],
            high: sorted[last],
        }
    }

    /// A monotone function of this figure.
    pub fn map(self, function: impl Fn(f64) -> f64) -> MeasuredFigure {
        let (low, high) = (function(self.low), function(self.high));
        MeasuredFigure {
            value: function(self.value),
            low: low.min(high),
            high: low.max(high),
        }
    }

    /// Whether the ranges of two figures have nothing in common.
    pub fn differs(self, other: MeasuredFigure) -> bool {
        self.low > other.high || self.high < other.low
    }
}

/// Gives each probe turns until `calm` of them were calm, in at most twice as many rounds. `turn` returns nothing if it was
/// disturbed.
///
/// # Errors
/// A probe can't have that many calm turns any more.
pub fn rounds<P: Ord + Copy>(
    probes: &[P],
    calm: usize,
    mut turn: impl FnMut(P) -> Option<Vec<Sample>>,
) -> Result<Figures<P>, String> {
    let mut all: BTreeMap<P, Vec<Vec<Sample>>> = BTreeMap::new();
    for left in (0..=2 * calm).rev() {
        for &probe in probes {
            let turns = all.entry(probe).or_default();
            if turns.len() + left < calm {
                return Err("the machine was busy; try again when nothing else runs".to_owned());
            }
            if turns.len() < calm {
                turns.extend(turn(probe));
            }
        }
    }
    let each = all.into_iter();
    Ok(each
        .map(|(probe, turns)| (probe, [0, 1].map(|ix| MeasuredFigure::of(&turns, ix))))
        .collect())
}

/// The result of `work`, which also tells the seconds that its threads lost to other programs; `None` if these were too many,
/// or if the `others`, which should be idle, were not.
pub fn calm<T>(root: &Root, others: &CpuSet, work: impl FnOnce() -> (T, f64)) -> Option<T> {
    let (start, before) = (Instant::now(), accounts::busy(root, others));
    let (result, lost_s) = work();
    let most_s = MOST_TAKEN * start.elapsed().as_secs_f64();
    let busy = accounts::busy(root, others).zip(before);
    let busy_s = busy.map_or(0.0, |(now, before)| now.as_s() - before.as_s());
    (lost_s <= most_s && busy_s <= most_s * others.len() as f64).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    fn figure(value: f64, low: f64, high: f64) -> MeasuredFigure {
        MeasuredFigure { value, low, high }
    }

    #[test]
    fn a_figure_is_the_median_of_the_best_samples_of_turns() {
        let turns = [[12.0, 10.0, 90.0], [11.0, 14.0, 11.5], [20.0, 30.0, 21.0]];
        let turns = turns.map(|turn| turn.map(|value| [0.0, value]).to_vec());
        assert_eq!(MeasuredFigure::of(&turns, 1), figure(11.0, 10.0, 20.0));
        let times = figure(10.0, 8.0, 20.0);
        assert_eq!(times.map(|ns| 1000.0 / ns), figure(100.0, 50.0, 125.0));
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
        let turns = Cell::new(0_u32);
        let every = |period: u32| {
            turns.set(0);
            rounds(&['a'], 5, |_| {
                turns.set(turns.get() + 1);
                let is_calm = turns.get().is_multiple_of(period);
                is_calm.then(|| vec![[f64::from(turns.get()), 7.0]; 3])
            })
        };
        assert_eq!(every(1).unwrap()[&'a'][0], figure(3.0, 1.0, 5.0));
        let found = every(2).unwrap();
        assert_eq!(found[&'a'], [figure(6.0, 2.0, 10.0), figure(7.0, 7.0, 7.0)]);
        assert!(every(3).unwrap_err().contains("busy"));
        assert_eq!(turns.get(), 8, "two calm turns, and too few rounds left");
    }

    #[test]
    fn a_turn_whose_threads_waited_or_beside_a_busy_cpu_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let stat = |ticks| {
            let text = format!("cpu1 {ticks} 0 0 900 0 0 0 0 0 0\n");
            std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        };
        let others: CpuSet = "1".parse().unwrap();
        let is_calm = |lost_s, ticks| {
            stat(5);
            let work = || {
                std::thread::sleep(Duration::from_millis(1));
                stat(5 + ticks);
                ((), lost_s)
            };
            calm(&Root::new(dir.path()), &others, work).is_some()
        };
        assert!(is_calm(0.0, 0));
        assert!(!is_calm(0.0, 100_000));
        assert!(!is_calm(1000.0, 0));
    }
}
