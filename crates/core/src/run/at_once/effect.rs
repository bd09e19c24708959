//! The effect of another number of tasks at once on what each task takes, with its uncertainty.
//!
//! Least squares over the logarithms of two groups of tasks, `old` and `new`. Each kind of task has a mean of its own, and all
//! have one trend in the order of their starts: files sorted by size would otherwise pass for an effect.

use std::collections::BTreeMap;

/// What an ended task took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Tasks of one kind are alike.
    pub(super) kind: u32,
    /// Its position in the order of starts.
    pub(super) turn: u32,
    /// Logarithm of its time from start to end.
    pub(super) time: f64,
    /// Logarithm of its CPU time, if that is known.
    pub(super) cpu: Option<f64>,
}

/// A difference of logarithms, and half of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effect {
    pub(super) mean: f64,
    pub(super) half: f64,
}

/// Least half of an interval: tasks at once share the noise of the machine, which their own spread does not show.
const LEAST_HALF: f64 = 0.005;

/// Tasks of a kind in each group below which the kind takes no part.
const LEAST_OF_KIND: usize = 2;

/// Student's quantile for 99 % on one side (Cornish and Fisher's expansion, 7 % too low for three degrees of freedom).
pub(super) fn student(freedom: f64) -> f64 {
    2.326 + 3.73 / freedom + 5.72 / (freedom * freedom)
}

/// `new` minus `old`; `None` if too few are alike.
pub(super) fn effect(
    old: &[Sample],
    new: &[Sample],
    value: fn(&Sample) -> Option<f64>,
) -> Option<Effect> {
    let mut kinds: BTreeMap<u32, Vec<[f64; 3]>> = BTreeMap::new();
    for (group, samples) in [(0.0, old), (1.0, new)] {
        for sample in samples {
            if let Some(value) = value(sample) {
                let rows = kinds.entry(sample.kind).or_default();
                rows.push([group, f64::from(sample.turn), value]);
            }
        }
    }
    kinds.retain(|_, rows| {
        let new = rows.iter().filter(|row| row[0] > 0.0).count();
        new.min(rows.len() - new) >= LEAST_OF_KIND
    });
    let rows: usize = kinds.values().map(Vec::len).sum();
    let freedom = rows as f64 - kinds.len() as f64 - 2.0;
    if freedom < 3.0 {
        return None;
    }
    let [[gg, gt, gv], [_, tt, tv], [_, _, vv]] = products(kinds.values());
    let det = gg * tt - gt * gt;
    if det <= 1e-9 * gg * tt {
        return None;
    }
    let mean = (gv * tt - tv * gt) / det;
    let trend = (tv * gg - gv * gt) / det;
    let rest = (vv - mean * gv - trend * tv).max(0.0) / freedom;
    let half = student(freedom) * (rest * tt / det).sqrt();
    Some(Effect {
        mean,
        half: half.max(LEAST_HALF),
    })
}

/// Sums of products of all pairs of columns, each column without its mean in the kind.
fn products<'a>(kinds: impl Iterator<Item = &'a Vec<[f64; 3]>>) -> [[f64; 3]; 3] {
    let mut sums = [[0.0; 3]; 3];
    for rows in kinds {
        let mut means = [0.0; 3];
        for row in rows {
            (0..3).for_each(|i| means[i] += row[i] / rows.len() as f64);
        }
        for row in rows {
            for i in 0..3 {
                for j in 0..3 {
                    sums[i][j] += (row[i] - means[i]) * (row[j] - means[j]);
                }
            }
        }
    }
    sums
}

/// The spread of the times within kinds, and how many tasks are of a kind with at least three.
pub(super) fn spread(samples: &[Sample]) -> (f64, usize) {
    let mut kinds: BTreeMap<u32, Vec<[f64; 3]>> = BTreeMap::new();
    for sample in samples {
        let row = [0.0, 0.0, sample.time];
        kinds.entry(sample.kind).or_default().push(row);
    }
    kinds.retain(|_, rows| rows.len() > LEAST_OF_KIND);
    let alike: usize = kinds.values().map(Vec::len).sum();
    let freedom = alike.saturating_sub(kinds.len()).max(1);
    let squares = products(kinds.values())[2][2];
    ((squares / freedom as f64).sqrt(), alike)
}
