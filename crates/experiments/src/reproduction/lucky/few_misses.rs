//! The regression of section 2.2 over programs that miss seldom.

use super::alone::{Alone, sample};
use crate::reproduction::engine::{Cell, Draft};
use cosched_core::model::cross_core::{CorePair, fit};

/// The most million misses a second of the programs that are included. The paper's examples of programs that miss often have
/// 29 and 14.
const MOST: [(f64, &str); 3] = [(f64::INFINITY, "all"), (29.0, "29"), (14.0, "14")];

/// The correlation of the prediction; absent if there are too few programs.
fn correlation(pairs: &[CorePair]) -> Cell {
    let r2 = fit(pairs).ok().and_then(|fit| fit.r2);
    Cell::number(r2.unwrap_or(f64::NAN).sqrt(), 2)
}

/// The correlation by how often the programs miss.
pub(super) fn causes(draft: &mut Draft, alone: &[Alone]) {
    let mut rows = Vec::new();
    for (most, label) in MOST {
        let (mut to_big, mut to_small) = (Vec::new(), Vec::new());
        for one in alone.iter().filter(|one| one.misses() <= most) {
            let (big, small) = (sample(&one.big), sample(&one.small));
            to_big.push(CorePair {
                from: small,
                to_mips: big.mips,
            });
            to_small.push(CorePair {
                from: big,
                to_mips: small.mips,
            });
        }
        rows.push(vec![
            Cell::text(label),
            Cell::number(to_big.len() as f64, 0),
            correlation(&to_big),
            correlation(&to_small),
        ]);
    }
    draft.table("few-misses", rows);
}
