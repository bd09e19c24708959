//! Options of GNU parallel that are short for another option, or mean nothing here. The help does not show them.

use clap::{ArgAction, Args};
use cosched_run::Show;

#[derive(Args)]
pub struct ParallelArgs {
    /// No effect: progress is always shown, and there is nothing to cite
    #[arg(long, aliases = ["eta", "progress", "will-cite"], action = ArgAction::Count, hide = true)]
    bar: u8,

    /// The same as --output live
    #[arg(short = 'u', long, aliases = ["lb", "line-buffer", "linebuffer"], hide = true)]
    #[arg(conflicts_with_all = ["output", "group"])]
    ungroup: bool,

    /// The same as --output group
    #[arg(long, conflicts_with = "output", hide = true)]
    group: bool,

    /// The same as --order random
    #[arg(long, conflicts_with = "order", hide = true)]
    pub shuf: bool,
}

impl ParallelArgs {
    /// How these words say that output is shown.
    pub fn show(&self) -> Option<Show> {
        match self {
            ParallelArgs { ungroup: true, .. } => Some(Show::Live),
            ParallelArgs { group: true, .. } => Some(Show::Group),
            _ => None,
        }
    }
}
