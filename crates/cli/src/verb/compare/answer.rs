//! The result of a comparison: in files beside the runs, and on standard output.

use super::args::{CompareArgs, CompareFormat};
use crate::exit::Exit;
use crate::input::told;
use crate::print::{print, width};
use crate::stderr;
use crate::whole_file::write_whole;
use anyhow::Result;
use cosched_experiments::comparison::{
    ComparisonFolder, ComparisonResult, ComparisonText, csv, json, number,
};
use cosched_report::count;
use std::process::ExitCode;

/// Columns of the text in the folder.
const WIDTH: usize = 100;

/// Writes and prints the answer.
///
/// # Errors
/// It can't be written, or a record can't be read.
pub fn show(
    args: &CompareArgs,
    store: &ComparisonFolder,
    mut answer: ComparisonResult,
) -> Result<ExitCode> {
    answer.notes.extend(store.solo_doubts());
    answer.notes.extend(still_wide(args, &answer));
    write(store, &answer)?;
    print_in(args.format, &answer)?;
    if !args.quiet {
        stderr::say(format_args!(
            "cosched: {} and the answer in five forms are in {}",
            count(answer.outcomes.len() as u64, "run"),
            told(store.folder())
        ));
    }
    let exit = if answer.failed() {
        Exit::Failure
    } else {
        Exit::Success
    };
    Ok(exit.into())
}

/// Says that the intervals are wider than wanted.
fn still_wide(args: &CompareArgs, answer: &ComparisonResult) -> Option<String> {
    let wanted = args.until_ci?;
    let reached = answer.widest_half_percent()?;
    let blocks = count(answer.whole_blocks() as u64, "block");
    (reached > wanted).then(|| {
        let reached = number(reached);
        format!("the widest interval is still ±{reached} % after {blocks}, not ±{wanted} %")
    })
}

/// Writes the answer in all forms beside the runs.
fn write(store: &ComparisonFolder, answer: &ComparisonResult) -> Result<()> {
    let page =
        cosched_page::comparison_page(&crate::verb::report::comparison::view(store, answer)?);
    let words = ComparisonText::of(answer);
    let forms = [
        ("comparison.txt", words.text(WIDTH)),
        ("comparison.md", words.markdown()),
        ("comparison.csv", csv(answer)),
        ("comparison.json", json(answer)),
        ("comparison.html", page),
    ];
    for (name, content) in forms {
        write_whole(&store.folder().join(name), content.as_bytes())?;
    }
    Ok(())
}

fn print_in(format: CompareFormat, answer: &ComparisonResult) -> Result<()> {
    let text = match format {
        CompareFormat::Text => ComparisonText::of(answer).text(width()),
        CompareFormat::Markdown => ComparisonText::of(answer).markdown(),
        CompareFormat::Csv => csv(answer),
        CompareFormat::Json => json(answer),
    };
    print(text)?;
    Ok(())
}
