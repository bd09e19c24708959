//! The regression of section 2.2 over programs that miss seldom.

use super::alone::{Alone, sample};
use crate::reproduction::engine::{Draft, FindingCell};
use cosched_core::model::cross_core::{BothWays, PairSums};

/// The most million misses a second of the programs that are included. The paper's examples of programs that miss often have
/// 29 and 14.
const MOST: [(f64, &str); 3] = [(f64::INFINITY, "all"), (29.0, "29"), (14.0, "14")];

/// The correlation of the prediction; absent if there are too few programs.
fn correlation(pairs: &PairSums) -> FindingCell {
    let r2 = pairs.fit().ok().and_then(|fit| fit.r2);
    FindingCell::number(r2.unwrap_or(f64::NAN).sqrt(), 2)
}

/// The correlation by how often the programs miss.
pub(super) fn causes(draft: &mut Draft, alone: &[Alone]) {
    let mut rows = Vec::new();
    for (most, label) in MOST {
        let mut pairs = BothWays::default();
        for one in alone.iter().filter(|one| one.misses() <= most) {
            // Means of counts are in the range of the model.
            _ = pairs.add(sample(&one.big), sample(&one.small), 1.0);
        }
        rows.push(vec![
            FindingCell::text(label),
            FindingCell::number(pairs.to_big.count(), 0),
            correlation(&pairs.to_big),
            correlation(&pairs.to_small),
        ]);
    }
    draft.table("few-misses", rows);
}
