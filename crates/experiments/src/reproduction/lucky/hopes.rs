//! The extensions that the paper announces (section 5), against `lucky` without them.

use crate::reproduction::engine::{
    Draft, FindingCell, Grid, Lab, Result, TrialCandidate, TrialMeasurements, changed, of_folder,
    refitted, saved,
};
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machine on which a core without a job needs no power.
fn powered_down(spec: &MachineSpec) -> MachineSpec {
    changed(spec, |machine| {
        for kind in &mut machine.core_types {
            kind.active_w += std::mem::take(&mut kind.idle_w);
        }
    })
}

/// The extensions on the machine as it is, with moves that cost much, and with a slow memory.
pub(super) fn all(draft: &mut Draft, lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<()> {
    let dear_moves = changed(spec, |machine| machine.kernel.migration_us = 1e4);
    let slow_memory = changed(spec, |machine| machine.memory.gb_per_s_per_channel /= 4.0);
    let slow_memory = refitted(slow_memory)?;
    let mut rows = Vec::new();
    for (label, key, spec) in [
        ("as it is", "as-it-is", spec.as_ref()),
        ("a move costs 10 ms", "dear-moves", &dear_moves),
        ("a quarter of the bandwidth", "slow-memory", &slow_memory),
    ] {
        let spec = Arc::new(powered_down(spec));
        rows.extend(gains(lab, &spec, label, &draft.candidates(key))?);
    }
    draft.table("hopes", rows);
    Ok(())
}

/// What each of these saves against `lucky` without extensions.
fn gains(
    lab: &Lab<'_>,
    spec: &Arc<MachineSpec>,
    label: &str,
    extended: &[TrialCandidate],
) -> Result<Vec<Vec<FindingCell>>> {
    let mixes = of_folder("lucky", lab.work());
    let candidates = [&[TrialCandidate::new("lucky")], extended].concat();
    let grid = Grid::simulate(lab, spec, &mixes, &candidates, &lab.seeds)?;
    let mut rows = Vec::new();
    for (ours, candidate) in candidates.iter().enumerate().skip(1) {
        let mut row = vec![
            FindingCell::text(label),
            FindingCell::text(&candidate.label),
        ];
        for figure in [
            TrialMeasurements::energy_delay,
            TrialMeasurements::time,
            TrialMeasurements::moves,
        ] {
            let saved = grid.compared(ours, 0, figure, saved).concat();
            row.push(FindingCell::range(&saved, 1));
        }
        rows.push(row);
    }
    Ok(rows)
}
