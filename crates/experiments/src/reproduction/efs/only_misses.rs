//! Four copies of a program that only misses: who has a core, and what it costs (section 5.2, Figure 7 and Table 1).

use super::{Bench, CORES, LINUX, linux_and_efs, serial};
use crate::reproduction::engine::{
    Draft, Figure, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements, program, saved,
    share,
};
use cosched_core::Nanos;

/// Time that Figure 7 shows: the paper's 300 ms, scaled from its periods of 18 ms to quanta of 200 ms.
const FIGURE_7: Nanos = Nanos::from_ms(3_300);

fn simulate(bench: &Bench<'_>, candidates: &[TrialCandidate]) -> Result<Grid> {
    let mixes = [bench.four_of(&program("bus-100"))];
    Grid::few(bench.lab, &bench.full, &mixes, candidates)
}

fn busy_cores(run: &TrialMeasurements) -> Option<f64> {
    Some(run.busy_s / run.turnaround_s)
}

/// Who has which core.
pub(super) fn figure_7(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let mut both = linux_and_efs();
    for candidate in &mut both {
        candidate.noted = FIGURE_7;
    }
    let grid = simulate(bench, &both)?;
    draft.value("shown_s", FIGURE_7.as_s());
    draft.text("figure-7");
    for (at, candidate) in both.iter().enumerate() {
        let key = format!("figure-7-{}", candidate.policy);
        let first = &grid.runs(0, at)[0];
        draft.timeline(&key, CORES, &first.watch.stays);
        draft.judge(&key, &grid.values(0, at, busy_cores));
    }
    Ok(())
}

/// The figures of Table 1.
const FIGURES: [(&str, Figure); 3] = [
    ("time", TrialMeasurements::time),
    ("energy", TrialMeasurements::energy),
    ("cpu-energy", TrialMeasurements::chip_energy),
];

/// Position of the base of Table 1.
const PARALLEL: usize = LINUX + 1;

/// Four copies of a program that only misses: one after the other, together, and together under EFS.
pub(super) fn table_1(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let three = [
        serial().named("serial, `linux`"),
        TrialCandidate::new("linux").named("parallel, `linux`"),
        TrialCandidate::new("efs").named("parallel, `efs`"),
    ];
    let grid = simulate(bench, &three)?;
    let mut rows = Vec::new();
    for (at, key) in ["serial", "parallel", "efs"].into_iter().enumerate() {
        let mut row = vec![FindingCell::text(&three[at].label)];
        for (name, figure) in FIGURES {
            let shares = grid.compared(at, PARALLEL, figure, share);
            row.push(FindingCell::mean(&shares[0], 3));
            if at == PARALLEL {
                row.push(FindingCell::number(1.0, 3));
                continue;
            }
            let key = format!("{key}-{name}");
            let papers_share = 1.0 - draft.published(&key) / 100.0;
            row.push(FindingCell::number(papers_share, 3));
            let saved = grid.compared(at, PARALLEL, figure, saved);
            draft.judge(&key, &saved[0]);
        }
        let key = format!("{key}-power");
        let power = grid.values(0, at, TrialMeasurements::power);
        row.push(FindingCell::mean(&power, 1));
        row.push(draft.cell(&key, 1));
        rows.push(row);
        draft.judge(&key, &power);
    }
    draft.table("table-1", rows);
    Ok(())
}
