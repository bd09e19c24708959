//! Where each program is more efficient, and how well performance on the other type of core is predicted (sections 2 and 3).

use super::alone::Alone;
use crate::reproduction::engine::{
    Axes, Cell, Chapter, ReproduceError, Result, Verdict, bars, fitted,
};
use crate::reproduction::paper::lucky as paper;
use crate::statistics::mean;
use cosched_core::model::cross_core::benefit;
use cosched_sim::{CoreTypesFit, MachineSpec};
use std::sync::Arc;

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
    let found = benefits.iter().find(|one| one.name == name);
    found.map_or(&[], |one| &one.ratio)
}

/// The big core's efficiency over the small one's for each program alone, and how well one is predicted from the other.
pub(super) fn figure_2(
    chapter: &mut Chapter,
    spec: &Arc<MachineSpec>,
    alone: &[Alone],
) -> Result<()> {
    let types = CoreTypes::fit(spec)?;
    let mut benefits = types.benefits(alone);
    benefits.sort_by(|a, b| {
        let [a, b] = [a, b].map(|one| mean(&one.ratio).unwrap_or(0.0));
        b.total_cmp(&a)
    });
    chapter.heading("Figure 2: where each program is more efficient");
    chapter.figure(bars(
        "lucky-figure-2".to_owned(),
        "MIPS squared per watt on the big core over that on the small one, each program alone."
            .to_owned(),
        Axes {
            x: "program",
            y: "big / small",
            decimals: 2,
        },
        benefits.iter().map(|one| one.name.clone()).collect(),
        vec![(
            "big / small".to_owned(),
            benefits.iter().map(|one| one.ratio.clone()).collect(),
        )],
        None,
    ));
    for gains in ["zeusmp", "bwaves"] {
        let order = [gains, "astar"];
        let values = order.map(|name| (name, ratio_of(&benefits, name).to_vec()));
        let what = "Figure 2: efficiency of the big core";
        chapter.judge(Verdict::order(what, &order, &values));
    }
    for (name, figure) in paper::MISSES {
        if let Some(one) = alone.iter().find(|one| one.program.name == name) {
            let what = format!("million misses a second of {name} on the big core");
            chapter.judge(Verdict::size(what, figure, 0, &one.misses_by_seed()));
        }
    }
    regression(chapter, &types.fit);
    Ok(())
}

fn regression(chapter: &mut Chapter, types: &CoreTypesFit) {
    let mut rows = Vec::new();
    for (name, regression) in [
        ("to the big core", &types.to_big),
        ("to the small core", &types.to_small),
    ] {
        let Some(r2) = regression.r2 else { continue };
        rows.push(vec![
            Cell::text(name),
            Cell::number(r2.sqrt(), 2),
            Cell::number(r2, 2),
            Cell::number(paper::CORRELATION, 2),
        ]);
        // Correlations near 1 differ by what they leave unexplained.
        let left = 100.0 * (1.0 - paper::CORRELATION * paper::CORRELATION);
        let what = format!("variance that the prediction {name} leaves unexplained, %");
        chapter.judge(Verdict::size(what, left, 0, &[100.0 * (1.0 - r2)]));
    }
    chapter.table(
        "lucky-regression",
        "The regression that predicts MIPS on the other type of core from MIPS and misses (section 2.2), over all programs.",
        [
            "prediction",
            "correlation",
            "R squared",
            "paper's correlation",
        ],
        rows,
    );
}
