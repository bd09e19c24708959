//! The extensions that the paper announces (section 5), against `lucky` without them.

use crate::reproduction::engine::{
    Candidate, Cell, Draft, Grid, Lab, Measured, Result, changed, of_folder, saved,
};
use cosched_sim::MachineSpec;
use std::sync::Arc;

fn lucky() -> Candidate {
    Candidate::new("lucky")
}

/// The coefficients of `lucky` on a machine that nobody has fitted.
const ASSUMED: [(&str, f64); 6] = [
    ("to_big_alpha", 3.48),
    ("to_big_beta", -105.0),
    ("to_big_gamma_mips", 315.0),
    ("to_small_alpha", 0.28),
    ("to_small_beta", 14.0),
    ("to_small_gamma_mips", -110.0),
];

fn assuming(label: &str) -> Candidate {
    let named = lucky().named(label);
    ASSUMED.into_iter().fold(named, |candidate, (name, value)| {
        candidate.with(name, value)
    })
}

/// The machine on which a core without a job needs no power.
fn powered_down(spec: &MachineSpec) -> MachineSpec {
    changed(spec, |machine| {
        for kind in &mut machine.core_types {
            kind.active_w += std::mem::take(&mut kind.idle_w);
        }
    })
}

/// Every extension; a price of moves in ms, and what is tried at that price.
pub(super) fn all(draft: &mut Draft, lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<()> {
    let inflated = |factor: u32| {
        let label = format!("tickets x {factor} on the big core");
        lucky().named(&label).with("ticket_inflation", factor)
    };
    let factors = [2, 4, 16].map(inflated);
    let others = [
        lucky()
            .named("tickets that count contention")
            .with("memory", "shared"),
        lucky().named("consolidation").with("consolidation", "on"),
        lucky()
            .named("coefficients learnt")
            .with("coefficients", "learnt"),
        assuming("coefficients assumed"),
        assuming("coefficients assumed, then learnt").with("coefficients", "learnt"),
    ];
    let mut rows = Vec::new();
    for move_ms in [0.03, 3.0, 10.0] {
        let mut machine = powered_down(spec);
        machine.kernel.migration_us = 1e3 * move_ms;
        let mut candidates = vec![lucky()];
        candidates.extend(factors.clone());
        if move_ms == 0.03 {
            candidates.extend(others.clone());
        }
        rows.extend(gains(lab, &Arc::new(machine), &candidates, move_ms)?);
    }
    draft.table("hopes", rows);
    Ok(())
}

/// What each candidate saves against the first: a row for each other one.
fn gains(
    lab: &Lab<'_>,
    spec: &Arc<MachineSpec>,
    candidates: &[Candidate],
    move_ms: f64,
) -> Result<Vec<Vec<Cell>>> {
    let mixes = of_folder("lucky", lab.work());
    let grid = Grid::few(lab, spec, &mixes, candidates)?;
    let mut rows = Vec::new();
    for (ours, candidate) in candidates.iter().enumerate().skip(1) {
        let mut row = vec![
            Cell::text(&candidate.label),
            Cell::text(move_ms.to_string()),
        ];
        for figure in [Measured::energy_delay, Measured::time, Measured::moves] {
            let saved = grid.compared(ours, 0, figure, saved).concat();
            row.push(Cell::range(&saved, 1));
        }
        rows.push(row);
    }
    Ok(rows)
}
