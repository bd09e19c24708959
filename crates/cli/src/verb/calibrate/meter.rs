//! The machine's power: by the processor's energy meter, or by a shell command.

use cosched_linux::energy::EnergyMeter;
use cosched_linux::root::Root;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time over which an energy meter is read, or in which a meter of the user settles.
const TIME: Duration = Duration::from_secs(1);

/// The mean watts over a second, or those that the command prints after it.
///
/// # Errors
/// There is no meter, or the command does not print watts.
pub fn watts(root: &Root, command: Option<&str>) -> Result<f64, String> {
    if let Some(command) = command {
        sleep(TIME);
        return printed_watts(command).ok_or_else(|| format!("`{command}` does not print watts"));
    }
    let opened = EnergyMeter::open(root);
    let mut meter = opened.map_err(|why| format!("{why}; --power-command gives another meter"))?;
    let start = Instant::now();
    sleep(TIME);
    let joules = meter.joules().value().ok_or("the meter has stopped")?;
    Ok(joules / start.elapsed().as_secs_f64())
}

fn printed_watts(command: &str) -> Option<f64> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    let printed = shell.stderr(Stdio::inherit()).output().ok()?.stdout;
    let watts = String::from_utf8(printed).ok()?.trim().parse().ok()?;
    (0.0..1e6).contains(&watts).then_some(watts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_watts() {
        assert_eq!(printed_watts("echo 41.5"), Some(41.5));
        for command in ["echo 41.5 W", "echo inf", "true"] {
            assert_eq!(printed_watts(command), None);
        }
        assert!(watts(&Root::new("/nonexistent"), None).is_err());
    }
}
