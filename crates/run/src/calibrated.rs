//! Measures the rate of this machine's memory for a policy that would otherwise judge by another machine's.

use super::policy::BUS_RATE;
use super::screen::Screen;
use crate::exit::incapable;
use crate::input::mine::measured_params;
use anyhow::{Context as _, Result};
use cosched_linux::root::Root;
use std::process::{Command, Stdio};

/// Lets `cosched calibrate` measure the rate, and returns the parameters that this machine's file has then.
///
/// # Errors
/// The rate could not be measured; the message says what to do.
pub(crate) fn measured_bus_rate(screen: &Screen) -> Result<Vec<(String, String)>> {
    screen.say("cosched: efs does not know this machine's memory; measuring it for a few seconds");
    let program = std::env::current_exe().context("finding cosched itself")?;
    let mut calibrate = Command::new(program);
    calibrate.args(["calibrate", "--only", "bandwidth", "--quiet"]);
    let calibrate = calibrate.stdin(Stdio::null()).output();
    let calibrate = calibrate.context("starting `cosched calibrate`")?;
    let params = measured_params(&Root::default());
    if params.iter().any(|(name, _)| name == BUS_RATE) {
        return Ok(params);
    }
    let why = String::from_utf8_lossy(&calibrate.stderr);
    let why = why.lines().last().unwrap_or("it was not measured").trim();
    Err(incapable(format!(
        "policy efs needs the rate of this machine's memory: {why}; give it, as in --param {BUS_RATE}=300, or run \
         `cosched calibrate` on the idle machine; nothing was started"
    )))
}
