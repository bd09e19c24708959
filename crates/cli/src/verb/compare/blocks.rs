//! The blocks of a comparison: a fixed number, or as many as narrow intervals take.

use super::args::CompareArgs;
use super::real::RealRuns;
use super::simulated;
use anyhow::Result;
use cosched_experiments::comparison::{
    CandidateRun, ComparisonResult, Manifest, RunFigures, number,
};
use std::ops::RangeInclusive;

/// Usual number of blocks. An interval of fewer is too often narrow by chance.
const USUAL: u32 = 7;

/// Usual maximum of blocks with `--until-ci`.
const MOST: u32 = 100;

/// Makes all blocks, and adds their outcomes.
pub fn make(
    args: &CompareArgs,
    runs: &RealRuns<'_>,
    manifest: &Manifest,
    outcomes: &mut Vec<RunFigures>,
) -> Result<()> {
    let Some(wanted) = args.until_ci else {
        return make_blocks(runs, 1..=args.reps.unwrap_or(USUAL), "", outcomes);
    };
    let most = args.reps.unwrap_or(MOST);
    make_blocks(runs, 1..=USUAL.min(most), "", outcomes)?;
    for block in USUAL + 1..=most {
        let so_far = ComparisonResult::new(manifest.clone(), outcomes.clone());
        // Without an interval after these blocks there will be none.
        let reached = so_far.widest_half_percent();
        let Some(reached) = reached.filter(|&reached| reached > wanted) else {
            break;
        };
        let aim = format!("±{} %, wanted ±{wanted} %; ", number(reached));
        make_blocks(runs, block..=block, &aim, outcomes)?;
    }
    Ok(())
}

fn make_blocks(
    runs: &RealRuns<'_>,
    blocks: RangeInclusive<u32>,
    aim: &str,
    outcomes: &mut Vec<RunFigures>,
) -> Result<()> {
    let trials: Vec<CandidateRun> = blocks.flat_map(|block| runs.design.block(block)).collect();
    if runs.design.is_simulated() {
        return simulated::make(runs.design, runs.store, runs.user, trials, aim, outcomes);
    }
    runs.make(&trials, aim, outcomes)
}
