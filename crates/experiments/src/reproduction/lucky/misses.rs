//! Figure 2 for programs that miss as often as in the paper.

use super::alone::Alone;
use super::efficiency::{CoreTypes, PAPERS_PROGRAMS};
use crate::reproduction::engine::{Draft, FindingCell, Lab, Result};
use cosched_sim::program::ProgramPhase;
use cosched_sim::{MachineSpec, ProgramSpec};
use std::sync::Arc;

/// The program with so many times the misses.
fn with_misses(program: &ProgramSpec, factor: f64) -> Arc<ProgramSpec> {
    let mut changed = program.clone();
    if changed.phases.is_empty() {
        changed.phases.push(ProgramPhase {
            instructions: 1e15,
            cpi: 1.0,
            memory: 1.0,
            then_sleep_ms: 0.0,
            then_mb: Default::default(),
        });
    }
    for phase in &mut changed.phases {
        phase.memory *= factor;
    }
    Arc::new(changed)
}

/// By what factor a program must miss more often to miss so many million times a second.
fn factor_for(
    spec: &Arc<MachineSpec>,
    program: &ProgramSpec,
    misses: f64,
    seeds: &[u64],
) -> Result<f64> {
    let (mut low, mut high) = (0.01, 10.0);
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        let changed = with_misses(program, middle);
        let alone = Alone::simulate(spec, &changed, seeds)?;
        if alone.misses() < misses {
            low = middle
        } else {
            high = middle
        }
    }
    Ok(0.5 * (low + high))
}

/// Compares the programs' efficiency with the profiles' misses and with the paper's.
pub(super) fn causes(
    draft: &mut Draft,
    lab: &Lab<'_>,
    spec: &Arc<MachineSpec>,
    alone: &[Alone],
) -> Result<()> {
    let types = CoreTypes::fit(spec)?;
    let papers = &*draft;
    let rows = lab.map(&PAPERS_PROGRAMS, |name| {
        let mut programs = alone.iter();
        let Some(as_it_is) = programs.find(|one| one.program.name == *name) else {
            return Ok(None);
        };
        let misses = papers.published(&format!("misses-{name}"));
        let program = &as_it_is.program;
        let factor = factor_for(spec, program, misses, &lab.seeds[..1])?;
        let changed = with_misses(program, factor);
        let changed = Alone::simulate(spec, &changed, lab.few_seeds())?;
        Ok(Some(vec![
            FindingCell::text(*name),
            FindingCell::number(as_it_is.misses(), 0),
            FindingCell::number(changed.misses(), 0),
            FindingCell::number(factor, 2),
            FindingCell::mean(&types.benefit(as_it_is).ratio, 2),
            FindingCell::mean(&types.benefit(&changed).ratio, 2),
        ]))
    })?;
    draft.table("misses", rows.into_iter().flatten().collect());
    Ok(())
}
