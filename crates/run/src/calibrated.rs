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
    calibrate.args(["calibrate", "--quick", "--quiet"]);
    let calibrate = calibrate.stdin(Stdio::null()).output();
    let calibrate = calibrate.context("starting `cosched calibrate`")?;
    with_bus_rate(measured_params(&Root::default()), &calibrate.stderr)
}

/// These parameters, if the rate is among them. `messages` says why it is not.
fn with_bus_rate(params: Vec<(String, String)>, messages: &[u8]) -> Result<Vec<(String, String)>> {
    if params.iter().any(|(name, _)| name == BUS_RATE) {
        return Ok(params);
    }
    let why = String::from_utf8_lossy(messages);
    let why = why.lines().last().unwrap_or("it was not measured");
    let why = why.trim_start_matches("cosched: ");
    Err(incapable(format!(
        "policy efs needs the rate of this machine's memory: {why}; or give it, as in --param {BUS_RATE}=300; nothing \
         was started"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efs_is_refused_without_a_measured_rate() {
        let params = |name: &str| vec![(name.to_owned(), "310".to_owned())];
        assert_eq!(
            with_bus_rate(params(BUS_RATE), b"").unwrap(),
            params(BUS_RATE)
        );
        let refused = with_bus_rate(
            params("p0_w"),
            b"cosched: measuring\ncosched: it was busy\n",
        );
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("memory: it was busy; or give it"), "{text}");
    }
}
