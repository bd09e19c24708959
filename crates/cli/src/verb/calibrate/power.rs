//! Power by the number of active cores (EFS, Eqs. 13 and 25), by the processor's energy meter or the user's own meter.

use super::bench::Bench;
use super::figure::{Figure, Outcome, Sample, rounds, turn};
use super::finding::Findings;
use super::threads::{Streams, beside, compute};
use cosched_core::CpuSet;
use cosched_linux::energy::EnergyMeter;
use cosched_linux::root::Root;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Calm turns of each kind of work on each number of cores.
const TURNS: usize = 3;

/// The time over which an energy meter is read, or in which a meter of the user settles.
const TIME: Duration = Duration::from_secs(1);

/// The least P_1 that policies accept.
const LEAST_STEP_W: f64 = 0.001;

const STEPS: [&str; 4] = [
    "params.p0_w",
    "params.p1_w",
    "params.p2_w",
    "params.p_more_w",
];

/// A number of active cores, and whether they read memory or compute. EFS has a mean over programs; this is one over both.
type State = (usize, bool);

/// What tells the power.
enum Meter {
    Energy(EnergyMeter),
    /// A shell command that prints watts.
    Command(String),
}

impl Meter {
    fn open(root: &Root, command: Option<&str>) -> Result<Meter, String> {
        match command {
            Some(command) => Ok(Meter::Command(command.to_owned())),
            None => EnergyMeter::open(root)
                .map(Meter::Energy)
                .map_err(|why| format!("{why}; --power-command gives another meter")),
        }
    }

    /// The mean power while `wait` waits and returns the seconds, or the power after it.
    fn watts(&mut self, wait: impl FnOnce() -> f64) -> Result<f64, String> {
        match self {
            Meter::Energy(meter) => {
                let stopped = || "the energy meter stopped".to_owned();
                let before = meter.joules().value().ok_or_else(stopped)?;
                let elapsed_s = wait();
                let joules = meter.joules().value().ok_or_else(stopped)? - before;
                Ok(joules / elapsed_s)
            }
            Meter::Command(command) => {
                wait();
                printed_watts(command)
            }
        }
    }
}

fn printed_watts(command: &str) -> Result<f64, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    let output = shell.stderr(Stdio::inherit()).output();
    let output = output.map_err(|why| format!("`{command}`: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let watts = text.trim().parse().ok();
    let watts = watts.filter(|watts| (0.0..1e6).contains(watts));
    watts.ok_or_else(|| {
        format!(
            "`{command}` must print watts, and printed `{}`",
            text.trim()
        )
    })
}

/// Measures the steps of power.
pub fn measure(bench: &Bench, command: Option<&str>) -> Findings {
    let mut problem = None;
    let steps = Meter::open(&bench.root, command).and_then(|mut meter| {
        steps(bench.cpus.len(), |state| {
            if problem.is_some() {
                return None;
            }
            state_turn(bench, &mut meter, state).unwrap_or_else(|why| {
                problem = Some(why);
                None
            })
        })
    });
    let steps = problem.map_or(steps, Err);
    let found = |ix: usize| steps.clone().map(|steps| steps[ix]);
    let keys = STEPS.iter().enumerate();
    keys.map(|(ix, key)| ((*key).to_owned(), found(ix)))
        .collect()
}

/// A turn in a state.
fn state_turn(
    bench: &Bench,
    meter: &mut Meter,
    (cores, reads): State,
) -> Result<Option<Vec<Sample>>, String> {
    let cpus = &bench.cpus[..cores];
    let streams = Streams::new(&bench.streamed, cores, 0, 0);
    let step = |ix| if reads { streams.step(ix) } else { compute() };
    let wait = || {
        let start = Instant::now();
        std::thread::sleep(TIME);
        start.elapsed().as_secs_f64()
    };
    let others: CpuSet = bench
        .online
        .iter()
        .filter(|cpu| !cpus.contains(cpu))
        .collect();
    let mut problem = None;
    let samples = turn(&bench.root, &others, 0.0, 1, || {
        let (watts, spent) = beside(cpus, step, || meter.watts(wait));
        let watts = watts.unwrap_or_else(|why| {
            problem = Some(why);
            f64::NAN
        });
        ([watts, 0.0], spent)
    });
    problem.map_or(Ok(samples), Err)
}

/// The steps of Eq. 13 from the power with 0, 1, 2 and all cores active, whose turns `turn` takes. No step is negative.
fn steps(
    cores: usize,
    turn: impl FnMut(State) -> Option<Vec<Sample>>,
) -> Result<[Figure; 4], String> {
    let actives = [0, 1, 2, cores].map(|active| active.min(cores));
    let mut states: Vec<State> = actives
        .map(|active| [(active, false), (active, true)])
        .concat();
    states.sort_unstable();
    states.dedup();
    let measured = rounds(&states, TURNS, turn);
    let watts = |active| mean(&measured, active);
    let per_core = |from, to| {
        let more = watts(to)?.above(watts(from)?);
        Ok::<Figure, String>(more.map(|watts| watts / (to - from) as f64))
    };
    let first = per_core(0, 1)?;
    if first.value < LEAST_STEP_W {
        return Err("the meter does not show an active core".to_owned());
    }
    let second = if cores < 2 { first } else { per_core(1, 2)? };
    let further = if cores < 3 {
        second
    } else {
        per_core(2, cores)?
    };
    Ok([watts(0)?, first, second, further])
}

/// The mean of both kinds of work.
fn mean(measured: &BTreeMap<State, Outcome>, active: usize) -> Result<Figure, String> {
    let [compute, _] = measured[&(active, false)].clone()?;
    let [read, _] = measured[&(active, true)].clone()?;
    Ok(Figure {
        value: f64::midpoint(compute.value, read.value),
        low: f64::midpoint(compute.low, read.low),
        high: f64::midpoint(compute.high, read.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a machine that draws these watts by its active cores; reading memory draws 2 W more, computing less.
    fn steps_of(watts: &[f64]) -> Vec<f64> {
        let found = steps(watts.len() - 1, |(active, reads)| {
            let more = if reads { 2.0 } else { -2.0 };
            Some(vec![[watts[active] + more, 0.0]])
        });
        found.unwrap().iter().map(|step| step.value).collect()
    }

    #[test]
    fn the_steps_of_the_machine_of_efs() {
        let found = steps_of(&[26.6, 49.2, 61.2, 73.5, 85.8]);
        for (step, published) in found.iter().zip([26.6, 22.6, 12.0, 12.3]) {
            assert!((step - published).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(steps_of(&[20.0, 30.0]), [20.0, 10.0, 10.0, 10.0]);
        assert_eq!(steps_of(&[20.0, 30.0, 25.0])[2], 0.0, "no step is negative");
        let constant = steps(4, |_| Some(vec![[9.0, 0.0]]));
        assert!(constant.unwrap_err().contains("does not show"));
        let busy = steps(4, |(active, _)| {
            (active < 2).then(|| vec![[9.0 + active as f64, 0.0]])
        });
        assert!(busy.unwrap_err().contains("busy"));
    }

    #[test]
    fn a_command_prints_watts() {
        let watts = |command| {
            let mut meter = Meter::open(&Root::default(), Some(command)).unwrap();
            meter.watts(|| 1.0)
        };
        assert_eq!(watts("echo 41.5"), Ok(41.5));
        for command in ["echo 41.5 W", "echo inf", "true"] {
            assert!(watts(command).unwrap_err().contains("must print watts"));
        }
    }

    #[test]
    fn an_energy_meter_gives_the_mean_power() {
        let dir = tempfile::tempdir().unwrap();
        let zone = dir.path().join("sys/class/powercap/intel-rapl:0");
        std::fs::create_dir_all(&zone).unwrap();
        let write = |file, text: &str| std::fs::write(zone.join(file), text).unwrap();
        write("name", "package-0");
        write("max_energy_range_uj", "262143328850");
        write("energy_uj", "5000000");
        let mut meter = Meter::open(&Root::new(dir.path()), None).unwrap();
        let found = meter.watts(|| {
            write("energy_uj", "25000000");
            0.5
        });
        assert_eq!(found.unwrap(), 40.0);
        assert!(Meter::open(&Root::new("/nonexistent"), None).is_err());
    }
}
