//! The report on a comparison, from the records in its folder.

use super::args::{ReportArgs, ReportFormat, TableArg};
use super::tables::{self, Prefix};
use crate::exit::usage;
use crate::run_files::{SERIES, open_series};
use cosched_core::metric::metric;
use cosched_experiments::comparison::{Answer, SHOWN_BLOCK, Store, csv, json, markdown, text};
use cosched_page::ComparisonView;
use cosched_report::{Form, Timeline};
use cosched_run::width_of;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Maximum number of runs that are shown as wholes.
const MAX_WHOLE: usize = 8;

/// The comparison in a folder, judged anew.
///
/// # Errors
/// It can't be read, or has no such baseline or metric.
pub(super) fn judged(folder: &Path, args: &ReportArgs) -> anyhow::Result<(Store, Answer)> {
    let (store, mut manifest) = Store::open(folder).map_err(|error| usage(error.to_string()))?;
    let names: Vec<String> = manifest
        .design
        .candidates
        .iter()
        .map(|one| one.name.clone())
        .collect();
    if let Some(wanted) = &args.baseline {
        let found = names.iter().position(|name| name == wanted);
        manifest.design.baseline = found.ok_or_else(|| {
            usage(format!(
                "--baseline {wanted}: the candidates are {}",
                names.join(", ")
            ))
        })?;
    }
    if let Some(unknown) = args.metrics.iter().find(|name| metric(name).is_none()) {
        return Err(usage(format!(
            "--metric {unknown}: there is no such metric; see `cosched list metrics`"
        )));
    }
    if !args.metrics.is_empty() {
        manifest.metrics.clone_from(&args.metrics);
    }
    let outcomes = store
        .outcomes(&manifest.design)
        .map_err(|error| usage(error.to_string()))?;
    let mut answer = Answer::new(manifest, outcomes);
    answer.notes.extend(store.solo_doubts());
    Ok((store, answer))
}

/// What pages and pictures need.
///
/// # Errors
/// A record can't be read.
pub(crate) fn view<'a>(store: &Store, answer: &'a Answer) -> anyhow::Result<ComparisonView<'a>> {
    let design = &answer.manifest.design;
    // All candidates of a mix, or none; but the first mix is always there.
    let mixes = (MAX_WHOLE / design.candidates.len()).clamp(1, design.mixes.len());
    let mut whole = Vec::new();
    for trial in answer.outcomes.iter().map(|outcome| outcome.trial) {
        if trial.block != SHOWN_BLOCK || trial.mix >= mixes || whole.len() == MAX_WHOLE {
            continue;
        }
        let record = store.record(trial);
        if let Some(record) = record.map_err(|error| usage(error.to_string()))? {
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
pub(super) fn print(
    format: ReportFormat,
    args: &ReportArgs,
    (store, answer): (&Store, &Answer),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let table = args.table.unwrap_or(TableArg::Metrics);
    match format {
        ReportFormat::Text => {
            out.write_all(text(answer, width_of(std::io::stdout())).as_bytes())?
        }
        ReportFormat::Markdown => out.write_all(markdown(answer).as_bytes())?,
        ReportFormat::Json => out.write_all(json(answer).as_bytes())?,
        ReportFormat::Csv if table == TableArg::Metrics => out.write_all(csv(answer).as_bytes())?,
        ReportFormat::Csv => write_table(Form::Csv, table, (store, answer), out)?,
        ReportFormat::Jsonl => write_table(Form::Jsonl, table, (store, answer), out)?,
    }
    Ok(())
}

/// Runs of which only the figures are kept: those of other programs, and most of a simulation.
pub(super) fn without_series(store: &Store, answer: &Answer) -> usize {
    answer
        .outcomes
        .iter()
        .filter(|outcome| !store.run(outcome.trial).join(SERIES).is_file())
        .count()
}

/// The columns before those of the table.
const PREFIX: [&str; 4] = ["block", "mix", "candidate", "policy"];

fn write_table(
    form: Form,
    table: TableArg,
    (store, answer): (&Store, &Answer),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let design = &answer.manifest.design;
    let mut writer = tables::Writer::new(form, &PREFIX, table, out)?;
    for outcome in &answer.outcomes {
        let trial = outcome.trial;
        let prefix: Prefix = vec![
            Value::from(trial.block),
            Value::from(design.mixes[trial.mix].name.as_str()),
            Value::from(design.candidates[trial.candidate].name.as_str()),
            Value::from(outcome.policy.as_deref()),
        ];
        if table == TableArg::Metrics {
            let values = outcome
                .figures
                .iter()
                .map(|(name, value)| (name, Value::from(*value), Value::Null));
            let absent = outcome
                .absent
                .iter()
                .map(|(name, why)| (name, Value::Null, Value::from(why.as_str())));
            for (name, value, why) in values.chain(absent) {
                writer.row(&prefix, vec![Value::from(name.as_str()), value, why])?;
            }
            continue;
        }
        if let Some(record) = store
            .record(trial)
            .map_err(|error| usage(error.to_string()))?
        {
            let series = store.run(trial).join(SERIES);
            writer.run(
                &prefix,
                &record,
                Some(&series)
                    .filter(|file| file.is_file())
                    .map(|file| &**file),
            )?;
        }
    }
    writer.finish()
}
