//! `cosched report`: what happened in runs, or what a comparison found, from the files that were kept.
//!
//! [`args`]: the command line; [`sources`]: what its paths name; [`runs`]: reads runs;
//! [`comparison`]: reads comparisons; [`tables`]: tidy tables; [`figures`]: charts as files.

mod args;
pub(crate) mod comparison;
mod figures;
mod runs;
mod sources;
mod tables;

use crate::exit::{Exit, usage};
use crate::output::{Made, check_output};
use crate::stderr;
use crate::whole_file::write_whole;
pub(crate) use args::ReportArgs;
use args::{ReportFormat, TableArg};
use cosched_page::{
    Picture, RunView, comparison_page, comparison_pictures, run_page, run_pictures,
};
use cosched_report::{
    Form, Origin, Record, SummaryOptions, count, origin_doubts, overview, summary, visible, wrap,
};
use cosched_run::width_of;
use runs::Run;
use serde_json::Value;
use sources::{RunFiles, Source};
use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.html {
        check_output("--html", file, Made::Page)?;
    }
    let is_table = matches!(
        args.printed(),
        Some(ReportFormat::Csv | ReportFormat::Jsonl)
    );
    if args.table.is_some() && !is_table {
        return Err(usage(
            "--table says what a row of CSV or JSON Lines is; add --format csv or jsonl",
        ));
    }
    match sources::find(&args.paths)? {
        Source::Comparison(folder) => report_comparison(&args, &folder)?,
        Source::Runs(files) => report_runs(&args, files)?,
    }
    Ok(Exit::Success.into())
}

fn report_comparison(args: &ReportArgs, folder: &Path) -> anyhow::Result<()> {
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
        say(
            args,
            &format!("{runs} left no series, so they have no samples"),
        );
    }
    Ok(())
}

fn report_runs(args: &ReportArgs, files: Vec<RunFiles>) -> anyhow::Result<()> {
    refuse_comparison_options(args)?;
    let runs = read_runs(args, files)?;
    if args.wants_files() {
        let mut views: Vec<RunView<'_>> = runs.iter().map(Run::view).collect();
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

fn refuse_comparison_options(args: &ReportArgs) -> anyhow::Result<()> {
    let given = [
        (args.baseline.is_some(), "--baseline"),
        (!args.metrics.is_empty(), "--metric"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(usage(format!(
            "{option} is for the folder of a comparison; make one with `cosched compare`"
        ))),
        None => Ok(()),
    }
}

/// Read the runs, with their series if the output needs them.
fn read_runs(args: &ReportArgs, files: Vec<RunFiles>) -> anyhow::Result<Vec<Run>> {
    let needs_series = args.wants_files() || args.table == Some(TableArg::Samples);
    let mut runs = Vec::new();
    for files in files {
        let mut run = Run::read(files, args.wants_files())?;
        // A series that was there but is not used has its note already.
        if needs_series && run.series.is_none() && run.notes.is_empty() {
            run.notes.push(
                "there is no series beside the record: who ran when is not known.".to_owned(),
            );
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

fn say_notes(args: &ReportArgs, runs: &[Run]) {
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
) -> anyhow::Result<()> {
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
    runs: &[Run],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let of_one = if runs.len() == 1 {
        TableArg::Jobs
    } else {
        TableArg::Metrics
    };
    let table = args.table.unwrap_or(of_one);
    match format {
        ReportFormat::Text => out.write_all(text(runs).as_bytes())?,
        ReportFormat::Markdown => out.write_all(markdown(runs).as_bytes())?,
        ReportFormat::Json => write_records(runs, out)?,
        ReportFormat::Csv => write_table(Form::Csv, table, runs, out)?,
        ReportFormat::Jsonl => write_table(Form::Jsonl, table, runs, out)?,
    }
    Ok(())
}

fn markdown(runs: &[Run]) -> String {
    let all: Vec<String> = runs
        .iter()
        .map(|run| cosched_report::markdown(&run.label, &run.batch()))
        .collect();
    all.join("\n")
}

/// Writes the record, or a list of the records.
fn write_records(runs: &[Run], out: &mut dyn Write) -> anyhow::Result<()> {
    if let [run] = runs {
        out.write_all(run.record.to_json().as_bytes())?;
    } else {
        let records: Vec<&Record> = runs.iter().map(|run| &run.record).collect();
        serde_json::to_writer_pretty(&mut *out, &records)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_table(
    form: Form,
    table: TableArg,
    runs: &[Run],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut writer = tables::Writer::new(form, &PREFIX, table, out)?;
    for run in runs {
        let record = &run.record;
        let prefix = vec![
            Value::from(run.label.as_str()),
            Value::from(record.policy.as_str()),
            Value::from(record.machine.as_str()),
            Value::from(record.seed),
        ];
        writer.run(&prefix, record, run.series.as_deref())?;
    }
    writer.finish()
}

/// What is doubtful where these runs stand beside each other.
fn doubts(runs: &[Run]) -> Vec<String> {
    let origins: Vec<Origin> = runs.iter().map(|run| Origin::of(&run.record)).collect();
    origin_doubts(&origins)
        .iter()
        .map(|doubt| visible(doubt))
        .collect()
}

/// Columns of a text that goes to a file.
const WIDTH: usize = 100;

/// For people: one run as at its end, several side by side.
fn text(runs: &[Run]) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    let width = if is_terminal {
        width_of(std::io::stdout())
    } else {
        WIDTH
    };
    let [run] = runs else {
        return side_by_side(runs, width) + &wrapped(&doubts(runs), width);
    };
    let options = SummaryOptions {
        width,
        colour: is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        verbose: true,
        ..SummaryOptions::default()
    };
    summary(&run.batch(), &options)
}

fn side_by_side(runs: &[Run], width: usize) -> String {
    let named: Vec<_> = runs
        .iter()
        .map(|run| (run.label.clone(), &run.record))
        .collect();
    overview(&named, width)
}

fn wrapped(texts: &[String], width: usize) -> String {
    let mut out = String::new();
    for line in texts.iter().flat_map(|text| wrap(text, width)) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
