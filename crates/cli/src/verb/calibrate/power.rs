//! Power by the number of active cores (EFS, Eqs. 13 and 25), where the processor has an energy meter. EFS measured the
//! whole system; here it is the processor.

use super::bench::Bench;
use super::figure::{Figure, figure};
use super::finding::{Finding, absent, disturbed};
use super::kernel::Streams;
use crate::workload::compute::{iterate, start};
use cosched_core::{CpuId, CpuSet};
use cosched_linux::energy::EnergyMeter;
use cosched_linux::pin_thread;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REPETITIONS: usize = 3;
const REPETITION: Duration = Duration::from_millis(500);

pub const STEPS: [&str; 4] = [
    "params.p0_w",
    "params.p1_w",
    "params.p2_w",
    "params.p_more_w",
];

/// Measures the power with no core active, one, two, and all.
pub fn measure(bench: &Bench) -> Vec<Finding> {
    let mut meter = match EnergyMeter::open(&bench.root) {
        Ok(meter) => meter,
        Err(why) => return absent(&STEPS, &why.to_string()),
    };
    match watts(bench, &mut meter) {
        Ok(watts) => {
            let steps = steps(watts, bench.cpus.len()).into_iter().zip(STEPS);
            let mut all: Vec<Finding> = Vec::new();
            for (step, key) in steps {
                all.push((key.to_owned(), Ok(step)));
            }
            all
        }
        Err(why) => absent(&STEPS, &why),
    }
}

/// Power with 0, 1, 2 and all cores of the domain active; where there are fewer, of as many as there are.
fn watts(bench: &Bench, meter: &mut EnergyMeter) -> Result<[Figure; 4], String> {
    let mut all = Vec::new();
    for cores in [0, 1, 2, bench.cpus.len()] {
        let cpus = &bench.cpus[..cores.min(bench.cpus.len())];
        all.push(mean_watts(bench, meter, cpus)?);
    }
    <[Figure; 4]>::try_from(all).map_err(|_| "not all were measured".to_owned())
}

/// The mean of two kinds of work, one that computes and one that reads memory: EFS has a mean over programs.
fn mean_watts(bench: &Bench, meter: &mut EnergyMeter, cpus: &[CpuId]) -> Result<Figure, String> {
    let streams = Streams {
        lines: &bench.lines,
        cpus,
        pause: 0,
    };
    let used: CpuSet = bench.machine.all_cpus();
    let mut watts = || {
        let reading = streams.beside(|| watts_of(meter)).0?;
        let computing = computing(cpus, || watts_of(meter))?;
        Some((reading + computing) / 2.0)
    };
    let mut is_lost = false;
    let found = figure(&used, REPETITIONS, || {
        watts().unwrap_or_else(|| {
            is_lost = true;
            0.0
        })
    });
    if is_lost {
        return Err("the energy meter stopped".to_owned());
    }
    found.map_err(disturbed)
}

/// Mean power of a repetition in which this thread sleeps; `None` if the meter can't be read.
fn watts_of(meter: &mut EnergyMeter) -> Option<f64> {
    let start = (meter.joules().value()?, Instant::now());
    std::thread::sleep(REPETITION);
    let joules = meter.joules().value()? - start.0;
    Some(joules / start.1.elapsed().as_secs_f64())
}

/// Does `work` while each of these CPUs computes.
fn computing<T>(cpus: &[CpuId], work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for &cpu in cpus {
            let stop = &stop;
            scope.spawn(move || {
                let _ = pin_thread(cpu);
                while !stop.load(Ordering::Relaxed) {
                    black_box(iterate(start(1), 10_000));
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// The steps of Eq. 13 from the power with 0, 1, 2 and all cores. No step is negative.
fn steps([idle, one, two, all]: [Figure; 4], cores: usize) -> [Figure; 4] {
    let step = |from: Figure, to: Figure, cores: usize| Figure {
        value: ((to.value - from.value) / cores as f64).max(0.0),
        spread: from.spread.max(to.spread),
    };
    let first = step(idle, one, 1);
    let second = if cores < 2 { first } else { step(one, two, 1) };
    let further = if cores < 3 {
        second
    } else {
        step(two, all, cores - 2)
    };
    [idle, first, second, further]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_machine_of_efs() {
        let watts = |value| Figure {
            value,
            spread: 0.03,
        };
        let measured = [26.6, 49.2, 61.2, 85.8].map(watts);
        let steps: Vec<f64> = steps(measured, 4).iter().map(|step| step.value).collect();
        for (step, published) in steps.iter().zip([26.6, 22.6, 12.0, 12.3]) {
            assert!((step - published).abs() < 1e-9, "{steps:?}");
        }
        let one = super::steps([20.0, 30.0, 30.0, 30.0].map(watts), 1);
        assert_eq!(one[3].value, 10.0, "a single core tells of no other");
    }
}
