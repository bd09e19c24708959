//! The effect of another number of tasks at once on what each task takes, with its uncertainty.
//!
//! Least squares over the logarithms of two groups of tasks, `old` and `new`, with a trend in the order of their starts: files
//! sorted by size would otherwise pass for an effect.

/// What an ended task took.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskTimes {
    /// Its position in the order of starts.
    pub(super) turn: u32,
    /// Logarithm of its time from start to end.
    pub(super) time: f64,
    /// Logarithm of its CPU time, if that is known.
    pub(super) cpu: Option<f64>,
}

/// A difference of logarithms, and half of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeEffect {
    pub(super) mean: f64,
    pub(super) half: f64,
}

/// Least half of an interval: tasks at once share the noise of the machine, which their own spread does not show.
const LEAST_HALF: f64 = 0.005;

/// Least number of tasks in each group.
const LEAST: usize = 3;

/// Student's quantile for 99 % on one side (Cornish and Fisher's expansion, 7 % too low for three degrees of freedom).
fn student(freedom: f64) -> f64 {
    2.326 + 3.73 / freedom + 5.72 / (freedom * freedom)
}

/// `new` minus `old`; `None` if too few are known.
pub(super) fn effect(
    old: &[TaskTimes],
    new: &[TaskTimes],
    value: fn(&TaskTimes) -> Option<f64>,
) -> Option<TimeEffect> {
    let mut rows: Vec<[f64; 3]> = Vec::new();
    let mut least = usize::MAX;
    for (group, samples) in [(0.0, old), (1.0, new)] {
        let before = rows.len();
        let known = samples
            .iter()
            .filter_map(|sample| Some((sample.turn, value(sample)?)));
        rows.extend(known.map(|(turn, value)| [group, f64::from(turn), value]));
        least = least.min(rows.len() - before);
    }
    if least < LEAST {
        return None;
    }
    let freedom = rows.len() as f64 - 3.0;
    let [[gg, gt, gv], [_, tt, tv], [_, _, vv]] = products(&rows);
    let det = gg * tt - gt * gt;
    if det <= 1e-9 * gg * tt {
        return None;
    }
    let mean = (gv * tt - tv * gt) / det;
    let trend = (tv * gg - gv * gt) / det;
    let rest = (vv - mean * gv - trend * tv).max(0.0) / freedom;
    let half = student(freedom) * (rest * tt / det).sqrt();
    Some(TimeEffect {
        mean,
        half: half.max(LEAST_HALF),
    })
}

/// The spread of the times about their trend.
pub(super) fn spread(samples: &[TaskTimes]) -> f64 {
    let row = |sample: &TaskTimes| [0.0, f64::from(sample.turn), sample.time];
    let rows: Vec<[f64; 3]> = samples.iter().map(row).collect();
    let [_, [_, tt, tv], [_, _, vv]] = products(&rows);
    let freedom = samples.len().saturating_sub(2).max(1);
    ((vv - tv * tv / tt).max(0.0) / freedom as f64).sqrt()
}

/// Sums of products of all pairs of columns, each column without its mean.
fn products(rows: &[[f64; 3]]) -> [[f64; 3]; 3] {
    let mut means = [0.0; 3];
    for row in rows {
        (0..3).for_each(|i| means[i] += row[i] / rows.len() as f64);
    }
    let mut sums = [[0.0; 3]; 3];
    for row in rows {
        for i in 0..3 {
            for j in 0..3 {
                sums[i][j] += (row[i] - means[i]) * (row[j] - means[j]);
            }
        }
    }
    sums
}
