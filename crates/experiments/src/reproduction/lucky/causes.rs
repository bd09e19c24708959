//! What the differences from the paper come from: one thing is changed at a time.

use super::alone;
use super::efficiency::{CoreTypes, ratio_of};
use super::{BIAS, BIG_FAIR, LUCKY, candidates, products_saved, saved_over_mixes};
use crate::reproduction::engine::{
    Draft, FindingCell, Grid, Lab, Result, TrialCandidate, changed, of_folder, refitted,
};
use cosched_sim::MachineSpec;
use std::sync::Arc;

fn simulate(lab: &Lab<'_>, spec: &Arc<MachineSpec>, candidates: &[TrialCandidate]) -> Result<Grid> {
    let mixes = of_folder("lucky", lab.work());
    Grid::few(lab, spec, &mixes, candidates)
}

/// The machine whose big core takes so much power when it is idle; its policies know it.
fn with_idle_power(spec: &MachineSpec, idle_w: f64) -> MachineSpec {
    changed(spec, |machine| {
        machine.core_types[0].idle_w = idle_w;
        for (name, value) in &mut machine.params {
            if name == "big_idle_w" {
                *value = idle_w.to_string();
            } else if name == "big_busy_w" {
                let busy_w: f64 = value.parse().unwrap_or(0.0);
                let beyond_idle_w = busy_w - spec.core_types[0].idle_w;
                *value = (beyond_idle_w + idle_w).to_string();
            }
        }
    })
}

/// The idle power of the big core.
pub(super) fn idle_power(draft: &mut Draft, lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<()> {
    let mixes = of_folder("lucky", lab.work());
    let four_mi = mixes.iter().position(|mix| mix.name == "4mi");
    let mut rows = Vec::new();
    for idle_w in [0.7, 3.0, 6.0, 9.0] {
        let changed = Arc::new(with_idle_power(spec, idle_w));
        let grid = simulate(lab, &changed, &candidates())?;
        let over_big_fair = products_saved(&grid, LUCKY, BIG_FAIR);
        let worst = four_mi.map_or(&[][..], |mix| &over_big_fair[mix]);
        rows.push(vec![
            FindingCell::number(idle_w, 1),
            FindingCell::signed(&saved_over_mixes(&grid, LUCKY, BIAS), 1),
            FindingCell::signed(&saved_over_mixes(&grid, LUCKY, BIG_FAIR), 1),
            FindingCell::signed(&saved_over_mixes(&grid, BIG_FAIR, BIAS), 1),
            FindingCell::signed(worst, 1),
        ]);
    }
    draft.table("idle-power", rows);
    Ok(())
}

/// Quanta of `big-fair` in s, and costs of a move in ms.
const MOVES: [(f64, f64); 5] = [
    (0.2, 0.03),
    (0.02, 0.03),
    (2.0, 0.03),
    (0.2, 3.0),
    (0.2, 10.0),
];

/// What `lucky` saves over `big-fair`, by how often that changes the big core's job, and by the price of a move.
pub(super) fn moves(draft: &mut Draft, lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<()> {
    let mut rows = Vec::new();
    for (quantum_s, move_ms) in MOVES {
        let changed = changed(spec, |machine| machine.kernel.migration_us = 1e3 * move_ms);
        let both = [
            TrialCandidate::new("lucky"),
            TrialCandidate::new("big-fair").with("quantum_s", quantum_s),
        ];
        let grid = simulate(lab, &Arc::new(changed), &both)?;
        rows.push(vec![
            FindingCell::text(quantum_s.to_string()),
            FindingCell::text(move_ms.to_string()),
            FindingCell::signed(&saved_over_mixes(&grid, 0, 1), 1),
        ]);
    }
    draft.table("moves", rows);
    Ok(())
}

/// Figure 2, the regression and what `lucky` saves, by the latency of memory.
pub(super) fn latencies(draft: &mut Draft, lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<()> {
    let mut rows = Vec::new();
    for factor in [2.0, 1.0, 0.5, 0.25, 0.1] {
        let changed = changed(spec, |machine| machine.memory.idle_latency_ns *= factor);
        let changed = refitted(changed)?;
        let types = CoreTypes::fit(&changed)?;
        let alone = alone::all(lab, &changed)?;
        let benefits = types.benefits(&alone);
        let grid = simulate(lab, &changed, &candidates())?;
        let mut row = vec![FindingCell::number(factor, 2)];
        for name in ["zeusmp", "bwaves", "astar"] {
            row.push(FindingCell::mean(ratio_of(&benefits, name), 2));
        }
        for r2 in [types.fit.to_big.r2, types.fit.to_small.r2] {
            row.push(FindingCell::number(r2.unwrap_or(f64::NAN).sqrt(), 2));
        }
        for base in [BIAS, BIG_FAIR] {
            row.push(FindingCell::signed(
                &saved_over_mixes(&grid, LUCKY, base),
                1,
            ));
        }
        rows.push(row);
    }
    draft.table("latencies", rows);
    Ok(())
}
