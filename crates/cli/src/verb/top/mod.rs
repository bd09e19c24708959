//! `cosched top`: a run that goes on, on the whole screen.

mod app;
mod terminal;

use super::run::duration;
use crate::exit::{Exit, usage};
use crate::live::{Known, known, meant};
use app::{App, choose};
use clap::Args;
use cosched_core::Nanos;
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, ScreenSignals};
use cosched_report::RunLine;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use terminal::Screen;

/// Show a live run on the whole screen
///
/// It shows totals, CPUs, and jobs with state, time, progress and reason to wait, updated once a second. Keys: arrows choose a job, s sorts, / filters, space pauses the view, w says why the chosen job
/// waits, e ends it, ? shows all keys, q leaves.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// The run: the number of its process, its identity or the beginning of that, or its log folder; not needed if there is
    /// only one
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Time between two updates, as in 2s or 500ms; at least 200ms
    #[arg(short, long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    interval: Nanos,
}

/// The window tells no newer state sooner.
const LEAST_INTERVAL: Nanos = Nanos::from_ms(200);

pub(crate) fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    if args.interval < LEAST_INTERVAL {
        return Err(usage(format!(
            "--interval {} s: at least 0.2 s, as in --interval 500ms",
            args.interval.as_s()
        )));
    }
    if !std::io::stdout().is_terminal() {
        return Err(no_terminal("standard output is none"));
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(no_terminal(
            "with TERM=dumb nothing can be placed on the screen",
        ));
    }
    let root = Root::default();
    let mut runs = match &args.run {
        Some(name) => vec![meant(&root, name)?],
        None => known(&root, LiveRun::has_window),
    };
    let signals = ScreenSignals::hold()?;
    let place = match &runs[..] {
        [] => {
            writeln!(std::io::stdout(), "no batch is running")?;
            return Ok(ExitCode::SUCCESS);
        }
        [
            Known {
                status: Err(why),
                run,
            },
        ] => return Err(usage(format!("process {}: {why}", run.pid))),
        [_] => Ok((0, Vec::new())),
        _ => {
            let mut screen = take()?;
            let mut place = 0;
            loop {
                let lines: Vec<RunLine> = runs.iter().map(line_of).collect();
                match choose(&mut screen, &signals, &lines, place)? {
                    // What is in the list may be long past.
                    Ok((chosen, typed)) => {
                        match known(&root, |run| run.run == runs[chosen].run.run).pop() {
                            Some(asked) => {
                                place = chosen;
                                runs[chosen] = asked;
                                if runs[chosen].status.is_ok() {
                                    break Ok((chosen, typed));
                                }
                            }
                            None => {
                                runs.remove(chosen);
                                place = chosen.min(runs.len().saturating_sub(1));
                            }
                        }
                    }
                    Err(exit) => break Err(exit),
                }
            }
        }
    };
    let exit = match place {
        Err(exit) => exit,
        Ok((place, typed)) => {
            let chosen = runs.swap_remove(place);
            let (status, age_s) = match chosen.status {
                Ok(told) => told,
                Err(why) => return Err(usage(format!("process {}: {why}", chosen.run.pid))),
            };
            let interval = Duration::from_nanos(args.interval.0);
            let mut screen = take()?;
            App::new(root, status, age_s, interval).run(&mut screen, &signals, typed)?
        }
    };
    Ok(exit.into())
}

fn line_of(known: &Known) -> RunLine {
    let status = known
        .status
        .clone()
        .map(|(status, age_s)| (Box::new(status.made_visible()), age_s));
    RunLine {
        pid: known.run.pid,
        status,
    }
}

fn take() -> anyhow::Result<Screen> {
    Screen::take().map_err(|error| no_terminal(&error.to_string()))
}

fn no_terminal(why: &str) -> anyhow::Error {
    usage(format!(
        "cosched top needs a terminal ({why}); `cosched status` shows the same once, anywhere"
    ))
}

/// The end by the user.
const LEFT: Exit = Exit::Success;
