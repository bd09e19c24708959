//! Which programs EFS leaves as they are, and what fewer cores would have brought them.

use super::Bench;
use super::bus::solo_utilisation;
use super::programs::{AFFECTED, Effects};
use crate::reproduction::engine::{Draft, FindingCell};
use crate::statistics::mean;

fn mean_saved(effects: &Effects, program: usize) -> f64 {
    mean(&effects.energy_saved[program]).unwrap_or(0.0)
}

/// Compares the effects of `efs` (Figure 8) with those of the best fixed number of cores (Figure 9).
pub(super) fn causes(draft: &mut Draft, bench: &Bench<'_>, efs: &Effects, fixed: &[Effects]) {
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    let mut hopeless = 0;
    for (at, program) in bench.programs.iter().enumerate() {
        let (mut best, mut cores) = (&fixed[0], 1);
        for (effects, number) in fixed.iter().zip(1..) {
            if mean_saved(effects, at) >= mean_saved(best, at) {
                (best, cores) = (effects, number);
            }
        }
        if mean_saved(best, at) <= AFFECTED {
            hopeless += 1;
        } else if mean_saved(efs, at) <= AFFECTED {
            missed.push(program.name.as_str());
        }
        rows.push(vec![
            FindingCell::text(program.name.clone()),
            FindingCell::number(100.0 * solo_utilisation(&bench.full, program), 0),
            FindingCell::signed(&efs.energy_saved[at], 1),
            FindingCell::signed(&efs.time_lost[at], 1),
            FindingCell::number(f64::from(cores), 0),
            FindingCell::signed(&best.energy_saved[at], 1),
            FindingCell::signed(&best.time_lost[at], 1),
        ]);
    }
    if missed.is_empty() {
        missed.push("none");
    }
    draft.value("hopeless", hopeless);
    draft.value("programs", bench.programs.len());
    draft.value("missed", missed.join(", "));
    draft.table("left-alone", rows);
}
