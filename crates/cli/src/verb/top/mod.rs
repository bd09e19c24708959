//! `cosched top`: a live run on the whole screen.

mod app;
mod intervals;
mod session;
mod terminal;

pub use intervals::{IntervalSource, LiveView};

use crate::exit::usage;
use crate::live::{LiveRunStatus, chosen};
use crate::offer;
use anyhow::Result;
use app::App;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use cosched_linux::ScreenSignals;
use cosched_linux::root::Root;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use terminal::TopTerminal;

/// Show a live run on the whole screen
///
/// It shows totals, CPUs, and jobs with state, time, progress and reason to wait, once a second. Keys: arrows choose a job,
/// s sorts, / filters, space pauses the view, w explains why the chosen job waits, e ends it, ? shows all keys, q leaves.
#[derive(Args)]
pub struct TopArgs {
    /// The run: its process number, its identity, or its log folder; or the process of a session of `cosched attach`
    /// [default: the only live run, or else the only session]
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(offer::runs))]
    run: Option<String>,
}

pub fn run(args: TopArgs) -> Result<ExitCode> {
    check_terminal()?;
    let root = Root::default();
    if let Some(session) = session::chosen(&root, args.run.as_deref()) {
        return session::watch(root, session);
    }
    let Some(LiveRunStatus { run, status }) = chosen(&root, args.run.as_deref())? else {
        writeln!(std::io::stdout(), "no run is live")?;
        return Ok(ExitCode::SUCCESS);
    };
    let status = status.map_err(|why| usage(format!("process {}: {why}", run.pid)))?;
    let signals = ScreenSignals::hold()?;
    let mut screen = take_screen()?;
    let exit = App::new(root, run, status).run(&mut screen, &signals)?;
    Ok(exit.into())
}

/// Refuses standard output where nothing can be placed.
fn check_terminal() -> Result<()> {
    if !std::io::stdout().is_terminal() {
        return Err(no_terminal("standard output is none"));
    }
    if is_dumb() {
        return Err(no_terminal(
            "with TERM=dumb nothing can be placed on the screen",
        ));
    }
    Ok(())
}

/// Whether the terminal can only print lines.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Takes the terminal of this process.
///
/// # Errors
/// There is none.
pub fn take_screen() -> Result<TopTerminal> {
    TopTerminal::take().map_err(|error| no_terminal(&error.to_string()))
}

fn no_terminal(why: &str) -> anyhow::Error {
    usage(format!(
        "cosched top needs a terminal ({why}); `cosched status` shows the same once, anywhere"
    ))
}
