//! The report on a comparison, from the records in its folder.

use super::args::{ReportArgs, ReportFormat, TableArg};
use super::tables;
use crate::exit::{OrUsage as _, usage};
use crate::print::width;
use crate::run_files::{SERIES, open_series};
use anyhow::Result;
use cosched_core::metric::metric;
use cosched_experiments::comparison::{
    ComparisonFolder, ComparisonResult, ComparisonText, RUN_COLUMNS, SHOWN_BLOCK, json, run_values,
    write_figures,
};
use cosched_page::ComparisonView;
use cosched_report::{TableForm, Timeline};
use std::io::Write;
use std::path::Path;

/// Maximum number of runs that are shown as wholes.
const MAX_WHOLE: usize = 8;

/// The comparison in a folder, judged anew.
///
/// # Errors
/// It can't be read, or has no such baseline or metric.
pub fn judged(folder: &Path, args: &ReportArgs) -> Result<(ComparisonFolder, ComparisonResult)> {
    let (store, mut manifest) = ComparisonFolder::open(folder).or_usage()?;
    let design = &mut manifest.design;
    if let Some(wanted) = &args.baseline {
        let names: Vec<&str> = design.candidates.iter().map(|one| &*one.name).collect();
        let Some(at) = names.iter().position(|name| name == wanted) else {
            let names = names.join(", ");
            return Err(usage(format!(
                "--baseline {wanted}: the candidates are {names}"
            )));
        };
        design.baseline = at;
    }
    if let Some(unknown) = args.metrics.iter().find(|name| metric(name).is_none()) {
        return Err(usage(format!(
            "--metric {unknown}: there is no such metric; see `cosched list metrics`"
        )));
    }
    if !args.metrics.is_empty() {
        manifest.metrics.clone_from(&args.metrics);
    }
    let outcomes = store.outcomes(&manifest.design).or_usage()?;
    let mut answer = ComparisonResult::new(manifest, outcomes);
    answer.notes.extend(store.solo_doubts());
    Ok((store, answer))
}

/// What pages and pictures need.
///
/// # Errors
/// A record can't be read.
pub fn view<'a>(
    store: &ComparisonFolder,
    answer: &'a ComparisonResult,
) -> Result<ComparisonView<'a>> {
    let design = &answer.manifest.design;
    // All candidates of a mix, or none; but the first mix is always there.
    let mixes = (MAX_WHOLE / design.candidates.len()).clamp(1, design.mixes.len());
    let mut whole = Vec::new();
    for trial in answer.outcomes.iter().map(|outcome| outcome.trial) {
        if trial.block != SHOWN_BLOCK || trial.mix >= mixes || whole.len() == MAX_WHOLE {
            continue;
        }
        if let Some(record) = store.record(trial).or_usage()? {
            whole.push((trial, record, timeline(&store.run(trial))));
        }
    }
    Ok(ComparisonView { answer, whole })
}

/// The timeline of a run, if its series can be read. The verdicts do not depend on it.
fn timeline(folder: &Path) -> Option<Timeline> {
    let mut series = open_series(&folder.join(SERIES)).ok()?;
    Timeline::read(&mut series).ok()
}

/// Prints it.
///
/// # Errors
/// It can't be written, or a file can't be read.
pub fn print(
    format: ReportFormat,
    args: &ReportArgs,
    (store, answer): (&ComparisonFolder, &ComparisonResult),
    out: &mut dyn Write,
) -> Result<()> {
    let table = args.table.unwrap_or(TableArg::Metrics);
    let text = match format {
        ReportFormat::Text => ComparisonText::of(answer).text(width()),
        ReportFormat::Markdown => ComparisonText::of(answer).markdown(),
        ReportFormat::Json => json(answer),
        ReportFormat::Csv => return write_table(TableForm::Csv, table, (store, answer), out),
        ReportFormat::Jsonl => return write_table(TableForm::Jsonl, table, (store, answer), out),
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Runs of which only the figures are kept: those of other programs, and most of a simulation.
pub fn without_series(store: &ComparisonFolder, answer: &ComparisonResult) -> usize {
    answer
        .outcomes
        .iter()
        .filter(|outcome| !store.run(outcome.trial).join(SERIES).is_file())
        .count()
}

fn write_table(
    form: TableForm,
    table: TableArg,
    (store, answer): (&ComparisonFolder, &ComparisonResult),
    out: &mut dyn Write,
) -> Result<()> {
    if table == TableArg::Metrics {
        return Ok(write_figures(answer, form, out)?);
    }
    let mut writer = tables::Writer::new(form, &RUN_COLUMNS, table, out)?;
    for outcome in &answer.outcomes {
        let trial = outcome.trial;
        if let Some(record) = store.record(trial).or_usage()? {
            let run = run_values(&answer.manifest.design, outcome).to_vec();
            let series = store.run(trial).join(SERIES);
            let series = series.is_file().then_some(&*series);
            writer.run(&run, &record, series)?;
        }
    }
    writer.finish()
}
