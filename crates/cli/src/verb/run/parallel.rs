//! Options of GNU parallel that are short for another option, or mean nothing here. The help does not show them.

use super::args::{LimitArgs, OutputArgs};
use clap::{ArgAction, Args};
use cosched_core::Order;
use cosched_run::Show;

#[derive(Args)]
pub struct ParallelArgs {
    /// No effect: progress is always shown
    #[arg(long, aliases = ["eta", "progress"], action = ArgAction::Count, hide = true)]
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
    shuf: bool,
}

impl ParallelArgs {
    /// Sets the options that these words mean.
    pub fn apply(&self, limits: &mut LimitArgs, output: &mut OutputArgs) {
        if self.shuf {
            limits.order = Order::Random;
        }
        if self.ungroup {
            output.output = Some(Show::Live);
        }
        if self.group {
            output.output = Some(Show::Group);
        }
    }
}
