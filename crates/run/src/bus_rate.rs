//! Measures the rate of this machine's memory for a policy that would otherwise judge by another machine's.

use super::policy::BUS_RATE;
use super::screen::Screen;
use super::signals::Signals;
use crate::exit::incapable;
use crate::input::spec::measured_params;
use anyhow::{Context as _, Result};
use cosched_linux::root::Root;
use cosched_linux::settle_helper;
use std::process::{Command, Stdio};

/// Lets `cosched calibrate` measure the rate, and returns the parameters that this machine's file has then.
///
/// # Errors
/// A signal has come, or the rate could not be measured; `cosched calibrate` has said why then.
pub(crate) fn measured_bus_rate(
    screen: &Screen,
    signals: &Signals,
) -> Result<Vec<(String, String)>> {
    screen.say("cosched: measuring the rate of this machine's memory for a few seconds; the policy needs it");
    let program = std::env::current_exe().context("finding cosched itself")?;
    let mut calibrate = Command::new(program);
    calibrate.args(["calibrate", "--quick", "--quiet"]);
    // Ctrl-C ends it, and then the run.
    settle_helper(&mut calibrate);
    let calibrated = calibrate.stdin(Stdio::null()).status();
    signals.look()?;
    if calibrated
        .context("starting `cosched calibrate`")?
        .success()
    {
        return Ok(measured_params(&Root::default()));
    }
    Err(incapable(format!(
        "the policy needs the rate of this machine's memory; give it, as in --param {BUS_RATE}=300; nothing was started"
    )))
}
