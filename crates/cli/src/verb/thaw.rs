//! `cosched thaw`: frees the processes that a killed run left frozen.

use super::run::Format;
use clap::Args;
use cosched_linux::mend::{Reach, mend};
use cosched_linux::root::Root;
use std::io::Write;
use std::process::ExitCode;

/// Free the processes that a killed run left frozen or stopped
///
/// Every run has a guardian that does this at once; use this verb if both were killed. It touches only groups and
/// processes of runs whose own process has died.
#[derive(Args, Debug)]
pub(crate) struct ThawArgs {
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub(crate) fn run(args: ThawArgs) -> anyhow::Result<ExitCode> {
    let mended = mend(&Root::default(), Reach::Everywhere);
    let mut out = std::io::stdout();
    match args.format {
        Format::Json => {
            let groups: Vec<String> = mended.groups.iter().map(|group| group.display().to_string()).collect();
            let object = serde_json::json!({
                "groups": groups, "released": mended.released, "continued": mended.continued,
            });
            writeln!(out, "{object}")?;
        }
        Format::Text if mended.is_empty() => writeln!(out, "nothing of a dead run is frozen or stopped")?,
        Format::Text => {
            for group in &mended.groups {
                writeln!(out, "thawed and removed {}", group.display())?;
            }
            for pid in &mended.released {
                writeln!(out, "released process {pid}")?;
            }
            for pid in &mended.continued {
                writeln!(out, "continued process {pid}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
