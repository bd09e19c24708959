//! A measured figure with its spread, and why a measurement is not trusted.

use crate::workload::arithmetic::spin;
use cosched_core::CpuSet;
use cosched_linux::accounts::{self, CpuAccounts};
use cosched_linux::root::Root;
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Attempts at a measurement before it is given up.
const TRIES: usize = 5;

/// Time between two attempts: what disturbs may end.
const BREAK: Duration = Duration::from_millis(100);

/// Maximum share of the CPUs that others may take meanwhile. Below it they change a figure by less than its usual spread.
const MOST_TAKEN: f64 = 0.03;

/// Seconds taken by others that may be an error of the kernel's accounts: a tick, on most systems.
const ACCOUNT_ERROR_S: f64 = 0.01;

/// Maximum change of the reference loop's time. Turbo clocks of a shared processor change by up to 15 % at any time; what
/// that does to a figure is in its spread.
const MOST_DRIFT: f64 = 0.2;

/// Time in which a core that was idle reaches its clock.
const WARM_UP: Duration = Duration::from_millis(10);

/// Maximum spread of a figure. A figure with more says nothing.
pub const MOST_SPREAD: f64 = 0.25;

/// A figure: the median of its repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub value: f64,
    /// The greatest distance of a repetition from the median, as a share of the median.
    pub spread: f64,
}

impl Figure {
    /// The figure of these repetitions; of none it is 0.
    pub fn of(values: &[f64]) -> Figure {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let value = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let distances = sorted.iter().map(|one| (one - value).abs());
        let most = distances.fold(0.0, f64::max);
        let spread = if most == 0.0 { 0.0 } else { most / value.abs() };
        Figure { value, spread }
    }

    /// The same figure in another unit.
    pub fn times(self, factor: f64) -> Figure {
        Figure {
            value: self.value * factor,
            ..self
        }
    }
}

/// What happened beside a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// CPU time of the CPUs in use, in seconds.
    pub total_s: f64,
    /// Of this, time that the hypervisor gave to other guests.
    pub stolen_s: f64,
    /// Of this, time that other programs took.
    pub foreign_s: f64,
    /// Change of the reference loop's time, as a share.
    pub drift: f64,
}

/// Why a measurement is not trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The hypervisor gave this share of the CPUs to other guests.
    Stolen(f64),
    /// Other programs took this share of the CPUs.
    Foreign(f64),
    /// The reference loop's time changed by this share.
    Drift(f64),
    /// The repetitions differ by this share.
    Spread(f64),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match *self {
            Disturbance::Stolen(share) => {
                write!(f, "the hypervisor took {} of the CPUs", percent(share))
            }
            Disturbance::Foreign(share) => {
                write!(f, "other programs took {} of the CPUs", percent(share))
            }
            Disturbance::Drift(share) => write!(f, "the clock changed by {}", percent(share)),
            Disturbance::Spread(share) => write!(f, "repetitions differ by {}", percent(share)),
        }
    }
}

impl Conditions {
    /// Judges a measurement that was made under these conditions.
    pub fn judge(&self, figure: Figure) -> Result<(), Disturbance> {
        let is_much = |s: f64| s > self.total_s * MOST_TAKEN + ACCOUNT_ERROR_S;
        if is_much(self.stolen_s) {
            return Err(Disturbance::Stolen(self.stolen_s / self.total_s));
        }
        if is_much(self.foreign_s) {
            return Err(Disturbance::Foreign(self.foreign_s / self.total_s));
        }
        if self.drift > MOST_DRIFT {
            return Err(Disturbance::Drift(self.drift));
        }
        if figure.spread > MOST_SPREAD {
            return Err(Disturbance::Spread(figure.spread));
        }
        Ok(())
    }
}

/// Repeats a measurement until an undisturbed one is found, judged by what others take of these CPUs, if any; `value` is what its repetitions should agree in.
pub fn watched<T>(
    cpus: &CpuSet,
    repetitions: usize,
    mut once: impl FnMut() -> T,
    value: impl Fn(&T) -> f64,
) -> Result<Vec<T>, Disturbance> {
    let mut tries = 0;
    loop {
        let before = Witness::look(cpus);
        let all: Vec<T> = (0..repetitions).map(|_| once()).collect();
        let conditions = before.until_now(cpus);
        let values: Vec<f64> = all.iter().map(&value).collect();
        tries += 1;
        match conditions.judge(Figure::of(&values)) {
            Ok(()) => return Ok(all),
            Err(why) if tries == TRIES => return Err(why),
            Err(_) => std::thread::sleep(BREAK),
        }
    }
}

/// The figure of a measurement with one value.
pub fn figure(
    cpus: &CpuSet,
    repetitions: usize,
    once: impl FnMut() -> f64,
) -> Result<Figure, Disturbance> {
    let values = watched(cpus, repetitions, once, |&value| value)?;
    Ok(Figure::of(&values))
}

/// The state of the machine at one instant.
struct Witness {
    accounts: Option<CpuAccounts>,
    reference_s: f64,
}

impl Witness {
    fn look(cpus: &CpuSet) -> Witness {
        let start = Instant::now();
        while start.elapsed() < WARM_UP {
            reference_s();
        }
        let reference_s = reference_s();
        Witness {
            accounts: accounts::read(&Root::default(), cpus),
            reference_s,
        }
    }

    /// What has happened since. Without accounts nothing is known to have been taken.
    fn until_now(&self, cpus: &CpuSet) -> Conditions {
        let now = accounts::read(&Root::default(), cpus);
        let used = now.and_then(|now| now.since(self.accounts.as_ref()?));
        let used = used.unwrap_or_default();
        Conditions {
            total_s: used.total.as_s(),
            stolen_s: used.stolen.as_s(),
            foreign_s: used.foreign.as_s(),
            drift: (reference_s() / self.reference_s - 1.0).abs(),
        }
    }
}

/// Seconds of a loop in registers, the quickest of a few: it changes with the clock alone.
fn reference_s() -> f64 {
    let mut quickest = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(spin(black_box(1), 200_000));
        quickest = quickest.min(start.elapsed().as_secs_f64());
    }
    quickest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_and_the_greatest_distance_from_it() {
        let figure = Figure::of(&[104.0, 90.0, 100.0]);
        assert_eq!((figure.value, figure.spread), (100.0, 0.1));
        assert_eq!(Figure::of(&[0.0, 0.0]).spread, 0.0);
        assert_eq!(figure.times(0.5).value, 50.0);
    }

    #[test]
    fn each_disturbance_refuses_and_small_ones_do_not() {
        let calm = Conditions {
            total_s: 1.0,
            stolen_s: 0.03,
            foreign_s: 0.03,
            drift: 0.07,
        };
        let figure = Figure {
            value: 1.0,
            spread: 0.2,
        };
        assert_eq!(calm.judge(figure), Ok(()));
        let stolen = Conditions {
            stolen_s: 0.12,
            ..calm
        };
        assert_eq!(stolen.judge(figure), Err(Disturbance::Stolen(0.12)));
        let foreign = Conditions {
            foreign_s: 0.5,
            ..calm
        };
        assert_eq!(foreign.judge(figure), Err(Disturbance::Foreign(0.5)));
        let drift = Conditions { drift: 0.3, ..calm };
        assert_eq!(drift.judge(figure), Err(Disturbance::Drift(0.3)));
        let wide = Figure {
            spread: 0.3,
            ..figure
        };
        assert_eq!(calm.judge(wide), Err(Disturbance::Spread(0.3)));
    }

    #[test]
    fn a_measurement_that_stays_disturbed_is_given_up() {
        let mut calls = 0;
        let once = || {
            calls += 1;
            f64::from(calls % 2)
        };
        // The repetitions differ each time. On a busy machine the reason is another.
        assert!(figure(&CpuSet::new(), 4, once).is_err());
        assert_eq!(calls, 4 * TRIES as i32);
    }
}
