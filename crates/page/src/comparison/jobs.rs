//! What became of each job: its slowdown under each candidate, the worst first.

use super::by_mix;
use crate::facts::median;
use crate::html::{Cell, Table, paragraph};
use crate::view::ComparisonView;
use cosched_report::decimal;
use std::collections::BTreeMap;

/// The section; empty if no slowdown is known.
pub(super) fn section(view: &ComparisonView<'_>) -> String {
    let design = &view.answer.manifest.design;
    let parts = by_mix(view, |mix| {
        let mut all: BTreeMap<&str, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
        for (trial, facts) in view.runs.iter().filter(|(trial, _)| trial.mix == mix) {
            for job in &facts.jobs {
                if let Some(slowdown) = job.slowdown {
                    all.entry(&job.name)
                        .or_default()
                        .entry(trial.candidate)
                        .or_default()
                        .push(slowdown);
                }
            }
        }
        if all.is_empty() {
            return String::new();
        }
        let shown: Vec<usize> = (0..design.candidates.len())
            .filter(|at| all.values().any(|one| one.contains_key(at)))
            .collect();
        let mut rows: Vec<(f64, Vec<Cell>)> = Vec::new();
        for (name, of) in all {
            let medians: Vec<Option<f64>> = shown
                .iter()
                .map(|at| of.get(at).and_then(|all| median(all.iter().copied())))
                .collect();
            let worst = medians.iter().flatten().copied().fold(0.0, f64::max);
            let mut cells = vec![Cell::text(name)];
            cells.extend(
                medians
                    .iter()
                    .map(|one| Cell::number(*one, |slowdown| decimal(slowdown, 2))),
            );
            rows.push((worst, cells));
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut columns = vec!["job".to_owned()];
        columns.extend(
            shown
                .iter()
                .map(|at| format!("#{}", design.candidates[*at].name)),
        );
        Table {
            caption: "",
            columns,
            rows: rows.into_iter().map(|(_, cells)| cells).collect(),
        }
        .html()
    });
    if parts.is_empty() {
        return paragraph("No slowdowns are known: that needs times alone (--solo-runs).");
    }
    format!(
        "{}{parts}",
        paragraph(
            "Medians over the blocks; the job that some candidate slowed down most comes first."
        )
    )
}
