//! The result of a comparison: in files beside the runs, and on standard output.

use super::args::{CompareArgs, CompareFormat};
use crate::exit::Exit;
use crate::input::told;
use crate::stderr;
use crate::whole_file::write_whole;
use cosched_experiments::comparison::{Answer, Store, csv, json, markdown, text};
use cosched_report::count;
use cosched_run::width_of;
use std::io::Write as _;
use std::process::ExitCode;

/// Columns of the text in the folder.
const WIDTH: usize = 100;

/// Writes and prints the answer.
///
/// # Errors
/// It can't be written, or a record can't be read.
pub(super) fn show(
    args: &CompareArgs,
    store: &Store,
    mut answer: Answer,
) -> anyhow::Result<ExitCode> {
    answer.notes.extend(store.solo_doubts());
    write(store, &answer)?;
    print(args.format, &answer)?;
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

/// Writes the answer in all forms beside the runs.
fn write(store: &Store, answer: &Answer) -> anyhow::Result<()> {
    let page =
        cosched_page::comparison_page(&crate::verb::report::comparison::view(store, answer)?);
    let forms = [
        ("comparison.txt", text(answer, WIDTH)),
        ("comparison.md", markdown(answer)),
        ("comparison.csv", csv(answer)),
        ("comparison.json", json(answer)),
        ("comparison.html", page),
    ];
    for (name, content) in forms {
        write_whole(&store.folder().join(name), content.as_bytes())?;
    }
    Ok(())
}

fn print(format: CompareFormat, answer: &Answer) -> anyhow::Result<()> {
    let text = match format {
        CompareFormat::Text => text(answer, width_of(std::io::stdout())),
        CompareFormat::Markdown => markdown(answer),
        CompareFormat::Csv => csv(answer),
        CompareFormat::Json => json(answer),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
