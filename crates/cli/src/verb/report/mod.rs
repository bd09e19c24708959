//! `cosched report`: what happened in runs, or what a comparison found, from the files that were kept.
//!
//! [`args`]: the command line; [`sources`]: what its paths name; [`runs`]: reads runs;
//! [`comparison`]: reads comparisons; [`slurm`]: asks Slurm for energy; [`tables`]: tidy tables; [`figures`]: charts as files.

mod args;
pub mod comparison;
mod figures;
mod runs;
mod slurm;
mod sources;
mod tables;

use crate::exit::{Exit, usage};
use crate::output::{Made, check_output};
use crate::print::width;
use crate::stderr;
use crate::whole_file::write_whole;
use anyhow::Result;
pub use args::ReportArgs;
use args::{ReportFormat, TableArg};
use cosched_page::{
    Picture, RunView, comparison_page, comparison_pictures, run_page, run_pictures,
};
use cosched_report::{
    Origin, RunRecord, SummaryOptions, TableForm, count, origin_doubts, overview, summary, visible,
    wrap,
};
use runs::ReportedRun;
use serde_json::Value;
use sources::{ReportSource, RunFiles};
use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: ReportArgs) -> Result<ExitCode> {
    if let Some(file) = &args.html {
        check_output("--html", file, Made::Page)?;
    }
    let is_table = matches!(
        args.printed(),
        Some(ReportFormat::Csv | ReportFormat::Jsonl)
    );
    if args.table.is_some() && !is_table {
        return Err(usage("--table needs --format csv or jsonl"));
    }
    match sources::find(&args.paths)? {
        ReportSource::Comparison(folder) => report_comparison(&args, &folder)?,
        ReportSource::Runs(files) => report_runs(&args, files)?,
    }
    Ok(Exit::Success.into())
}

fn report_comparison(args: &ReportArgs, folder: &Path) -> Result<()> {
    let (store, answer) = comparison::judged(folder, args)?;
    if args.wants_files() {
        let view = comparison::view(&store, &answer)?;
        write_files(
            args,
            || comparison_page(&view),
            || comparison_pictures(&view),
        )?;
    }
    if let Some(format) = args.printed() {
        let mut out = std::io::stdout().lock();
        comparison::print(format, args, (&store, &answer), &mut out)?;
        out.flush()?;
    }
    let lacking = comparison::without_series(&store, &answer);
    if args.table == Some(TableArg::Samples) && lacking > 0 {
        let runs = count(lacking as u64, "run");
        say(args, &format!("{runs} left no series: no samples"));
    }
    Ok(())
}

fn report_runs(args: &ReportArgs, files: Vec<RunFiles>) -> Result<()> {
    refuse_comparison_options(args)?;
    let runs = read_runs(args, files)?;
    if args.wants_files() {
        let mut views: Vec<RunView<'_>> = runs.iter().map(ReportedRun::view).collect();
        if let Some(first) = views.first_mut() {
            first.notes.extend(doubts(&runs));
        }
        write_files(args, || run_page(&views), || pictures(&views))?;
    }
    if let Some(format) = args.printed() {
        let mut out = std::io::stdout().lock();
        print(format, args, &runs, &mut out)?;
        out.flush()?;
    }
    say_notes(args, &runs);
    Ok(())
}

fn refuse_comparison_options(args: &ReportArgs) -> Result<()> {
    let option = if args.baseline.is_some() {
        "--baseline"
    } else if !args.metrics.is_empty() {
        "--metric"
    } else {
        return Ok(());
    };
    Err(usage(format!("{option} is for the folder of a comparison")))
}

/// Read the runs, with their series if the output needs them.
fn read_runs(args: &ReportArgs, files: Vec<RunFiles>) -> Result<Vec<ReportedRun>> {
    let needs_series = args.wants_files() || args.table == Some(TableArg::Samples);
    let mut runs = Vec::new();
    for files in files {
        let mut run = ReportedRun::read(files, args.wants_files())?;
        // A series that was there but is not used has its note already.
        if needs_series && run.series.is_none() && run.notes.is_empty() {
            let note = "there is no series beside the record: who ran when is not known.";
            run.notes.push(note.to_owned());
        }
        runs.push(run);
    }
    runs::sort(&mut runs);
    Ok(runs)
}

/// Draw the pictures of all runs; with several runs their names begin with that of the run.
fn pictures(views: &[RunView<'_>]) -> Vec<Picture> {
    let mut all = Vec::new();
    for view in views {
        for mut picture in run_pictures(view) {
            if views.len() > 1 {
                picture.name = format!("{}-{}", view.label, picture.name);
            }
            all.push(picture);
        }
    }
    all
}

fn say_notes(args: &ReportArgs, runs: &[ReportedRun]) {
    // The text has the doubts already.
    if args.printed() != Some(ReportFormat::Text) {
        for doubt in doubts(runs) {
            say(args, &doubt);
        }
    }
    for run in runs {
        for note in &run.notes {
            say(args, &format!("{}: {}", visible(&run.label), visible(note)));
        }
    }
}

/// Writes the page and the pictures that were asked for.
fn write_files(
    args: &ReportArgs,
    page: impl FnOnce() -> String,
    pictures: impl FnOnce() -> Vec<Picture>,
) -> Result<()> {
    if let Some(file) = &args.html {
        write_whole(file, page().as_bytes())?;
    }
    if let Some(folder) = &args.figures {
        figures::write(&pictures(), folder)?;
    }
    Ok(())
}

fn say(args: &ReportArgs, what: &str) {
    if !args.quiet {
        stderr::say(format_args!("cosched: {what}"));
    }
}

/// The columns before those of a tidy table of runs.
const PREFIX: [&str; 4] = ["run", "policy", "machine", "seed"];

fn print(
    format: ReportFormat,
    args: &ReportArgs,
    runs: &[ReportedRun],
    out: &mut dyn Write,
) -> Result<()> {
    let of_one = if runs.len() == 1 {
        TableArg::Jobs
    } else {
        TableArg::Metrics
    };
    let table = args.table.unwrap_or(of_one);
    let text = match format {
        ReportFormat::Text => text(runs),
        ReportFormat::Markdown => markdown(runs),
        ReportFormat::Json => records(runs)?,
        ReportFormat::Csv => return write_table(TableForm::Csv, table, runs, out),
        ReportFormat::Jsonl => return write_table(TableForm::Jsonl, table, runs, out),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn markdown(runs: &[ReportedRun]) -> String {
    let mut all = Vec::new();
    for run in runs {
        all.push(cosched_report::markdown(&run.label, &run.batch()));
    }
    all.join("\n")
}

/// The record, or a list of the records.
fn records(runs: &[ReportedRun]) -> Result<String> {
    if let [run] = runs {
        return Ok(run.record.to_json());
    }
    let records: Vec<&RunRecord> = runs.iter().map(|run| &run.record).collect();
    Ok(serde_json::to_string_pretty(&records)? + "\n")
}

fn write_table(
    form: TableForm,
    table: TableArg,
    runs: &[ReportedRun],
    out: &mut dyn Write,
) -> Result<()> {
    let mut writer = tables::Writer::new(form, &PREFIX, table, out)?;
    for run in runs {
        let record = &run.record;
        let prefix = vec![
            Value::from(&*run.label),
            Value::from(&*record.policy),
            Value::from(&*record.machine),
            Value::from(record.seed),
        ];
        writer.run(&prefix, record, run.series.as_deref())?;
    }
    writer.finish()
}

/// What is doubtful where these runs stand beside each other.
fn doubts(runs: &[ReportedRun]) -> Vec<String> {
    let mut origins = Vec::new();
    for run in runs {
        origins.push(Origin::of(&run.record));
    }
    let mut doubts = Vec::new();
    for doubt in origin_doubts(&origins) {
        doubts.push(visible(&doubt));
    }
    doubts
}

/// Columns of a text that goes to a file.
const WIDTH: usize = 100;

/// For people: one run as at its end, several side by side.
fn text(runs: &[ReportedRun]) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    let width = if is_terminal { width() } else { WIDTH };
    let [run] = runs else {
        return side_by_side(runs, width) + &wrapped(&doubts(runs), width);
    };
    let no_color = std::env::var_os("NO_COLOR").unwrap_or_default();
    let options = SummaryOptions {
        width,
        colour: is_terminal && no_color.is_empty(),
        verbose: true,
        ..SummaryOptions::default()
    };
    let energy = slurm::energy_line(&run.record).unwrap_or_default();
    energy + &summary(&run.batch(), &options)
}

fn side_by_side(runs: &[ReportedRun], width: usize) -> String {
    let mut named = Vec::new();
    for run in runs {
        named.push((run.label.clone(), &run.record));
    }
    overview(&named).in_capitals().text(width)
}

fn wrapped(texts: &[String], width: usize) -> String {
    let mut out = String::new();
    for line in texts.iter().flat_map(|text| wrap(text, width)) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
