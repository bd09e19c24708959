//! Where each program is more efficient, and how well performance on the other type of core is predicted (sections 2 and 3).

use super::alone::Alone;
use crate::reproduction::engine::{Draft, FindingCell, ReproduceError, Result, fitted};
use crate::statistics::mean;
use cosched_core::model::cross_core::benefit;
use cosched_sim::{CoreTypesFit, MachineSpec};
use std::sync::Arc;

/// Section 2.2: coefficient of correlation of the prediction for the other type of core.
const CORRELATION: f64 = 0.98;

/// The programs whose misses the paper gives (section 3).
pub(super) const PAPERS_PROGRAMS: [&str; 3] = ["zeusmp", "astar", "bwaves"];

/// What a program gains from the big core.
pub(super) struct Benefit {
    pub(super) name: String,
    /// The big core's efficiency over the small one's, by seed.
    pub(super) ratio: Vec<f64>,
}

/// The types of core, fitted to a machine.
pub(super) struct CoreTypes {
    pub(super) fit: CoreTypesFit,
}

impl CoreTypes {
    /// Fits them.
    pub(super) fn fit(spec: &Arc<MachineSpec>) -> Result<CoreTypes> {
        match fitted(spec)?.core_types {
            Some(fit) => Ok(CoreTypes { fit }),
            None => Err(ReproduceError::trial(
                &spec.name,
                "its types of core cannot be fitted",
            )),
        }
    }

    pub(super) fn benefit(&self, alone: &Alone) -> Benefit {
        let CoreTypesFit { big, small, .. } = &self.fit;
        let mut ratio = Vec::new();
        for (on_big, on_small) in alone.big.iter().zip(&alone.small) {
            // The highest MIPS are the capacity; noise of the counters may lift one slightly above.
            let on_big = on_big.mips.min(big.capacity_mips());
            let on_small = on_small.mips.min(small.capacity_mips());
            ratio.extend(benefit(big, on_big, small, on_small));
        }
        Benefit {
            name: alone.program.name.clone(),
            ratio,
        }
    }

    pub(super) fn benefits(&self, alone: &[Alone]) -> Vec<Benefit> {
        alone.iter().map(|one| self.benefit(one)).collect()
    }
}

/// The ratios of the program of this name; none if there is no such program.
pub(super) fn ratio_of<'a>(benefits: &'a [Benefit], name: &str) -> &'a [f64] {
    match benefits.iter().find(|one| one.name == name) {
        Some(benefit) => &benefit.ratio,
        None => &[],
    }
}

/// The big core's efficiency over the small one's for each program alone, and how well one is predicted from the other.
pub(super) fn figure_2(draft: &mut Draft, spec: &Arc<MachineSpec>, alone: &[Alone]) -> Result<()> {
    let types = CoreTypes::fit(spec)?;
    let mut benefits = types.benefits(alone);
    benefits.sort_by(|a, b| {
        let a = mean(&a.ratio).unwrap_or(0.0);
        let b = mean(&b.ratio).unwrap_or(0.0);
        b.total_cmp(&a)
    });
    let names = benefits.iter().map(|one| one.name.clone());
    let ratios = benefits.iter().map(|one| one.ratio.clone());
    let series = ("big / small".to_owned(), ratios.collect());
    draft.bars("figure-2", names.collect(), vec![series]);
    for key in ["figure-2-zeusmp", "figure-2-bwaves"] {
        draft.judge_order(key, |name| ratio_of(&benefits, name).to_vec());
    }
    for name in PAPERS_PROGRAMS {
        if let Some(one) = alone.iter().find(|one| one.program.name == name) {
            draft.judge(&format!("misses-{name}"), &one.misses_by_seed());
        }
    }
    regression(draft, &types.fit);
    Ok(())
}

fn regression(draft: &mut Draft, types: &CoreTypesFit) {
    let mut rows = Vec::new();
    for (core, regression) in [("big", &types.to_big), ("small", &types.to_small)] {
        let Some(r2) = regression.r2 else { continue };
        rows.push(vec![
            FindingCell::text(format!("to the {core} core")),
            FindingCell::number(r2.sqrt(), 2),
            FindingCell::number(r2, 2),
            FindingCell::number(CORRELATION, 2),
        ]);
        let unexplained = 100.0 * (1.0 - r2);
        draft.judge(&format!("unexplained-{core}"), &[unexplained]);
    }
    draft.table("regression", rows);
}
