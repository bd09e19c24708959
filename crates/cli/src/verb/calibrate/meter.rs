//! What tells the machine's power: the processor's energy meter, or a shell command.

use cosched_linux::energy::EnergyMeter;
use cosched_linux::root::Root;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time over which an energy meter is read, or in which a meter of the user settles.
const TIME: Duration = Duration::from_secs(1);

pub enum Meter {
    Energy(EnergyMeter),
    /// A shell command that prints watts.
    Command(String),
}

impl Meter {
    /// Opens the meter.
    ///
    /// # Errors
    /// There is no meter, or the command does not print watts.
    pub fn open(root: &Root, command: Option<&str>) -> Result<Meter, String> {
        match command {
            Some(command) => printed_watts(command)
                .map(|_| Meter::Command(command.to_owned()))
                .ok_or_else(|| format!("`{command}` does not print watts")),
            None => EnergyMeter::open(root)
                .map(Meter::Energy)
                .map_err(|why| format!("{why}; --power-command gives another meter")),
        }
    }

    /// The mean power over a second, or the power after it; `None` if the meter has stopped.
    pub fn watts(&mut self) -> Option<f64> {
        match self {
            Meter::Energy(meter) => {
                let (start, before) = (Instant::now(), meter.joules().value()?);
                std::thread::sleep(TIME);
                Some((meter.joules().value()? - before) / start.elapsed().as_secs_f64())
            }
            Meter::Command(command) => {
                std::thread::sleep(TIME);
                printed_watts(command)
            }
        }
    }
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
            let refused = Meter::open(&Root::default(), Some(command));
            assert!(refused.err().unwrap().contains("does not print watts"));
        }
        assert!(Meter::open(&Root::new("/nonexistent"), None).is_err());
    }
}
