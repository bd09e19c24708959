//! The rate of line transfers by the number of cores that stream, and the greatest rate: mu of EFS (section 5.1).

use super::bench::Bench;
use super::figure::{Disturbance, Figure, figure};
use super::finding::{Finding, absent, cores_key, finding};
use super::kernel::Streams;
use std::time::Duration;

const REPETITIONS: usize = 7;
const REPETITION: Duration = Duration::from_millis(100);

/// Lines per microsecond to GB/s.
const GB_PER_S: f64 = 0.064;

pub const MU: &str = "params.mu_trans_per_us";
const BYTES: &str = "memory.gb_per_s_per_channel";

/// Measures the memory domain of the first CPU.
pub fn measure(bench: &Bench) -> Vec<Finding> {
    if !bench.exceeds_caches() {
        return absent(&[MU, BYTES], "there is not enough free memory");
    }
    if let Some(part) = &bench.part {
        return absent(&[MU, BYTES], part);
    }
    let mut all = Vec::new();
    let mut greatest: Result<Figure, String> = Err("no core could be measured".to_owned());
    for cores in powers_up_to(bench.cpus.len()) {
        let found = finding(&cores_key(cores), rate(bench, cores));
        greatest = greater(greatest, found.1.clone());
        all.push(found);
    }
    all.push((MU.to_owned(), greatest.clone()));
    all.push((BYTES.to_owned(), greatest.map(|rate| rate.times(GB_PER_S))));
    all
}

/// Lines per microsecond that streams on so many cores read together.
fn rate(bench: &Bench, cores: usize) -> Result<Figure, Disturbance> {
    let streams = Streams {
        lines: &bench.lines,
        cpus: &bench.cpus[..cores],
        pause: 0,
    };
    let once = || streams.beside(|| std::thread::sleep(REPETITION)).1;
    figure(&bench.set(cores), REPETITIONS, once)
}

/// 1, 2, 4 and so on, and the last number itself.
fn powers_up_to(last: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |power| Some(power * 2));
    let mut numbers: Vec<usize> = powers.take_while(|&power| power < last).collect();
    numbers.push(last);
    numbers
}

/// The greater rate. All cores must have been measured: without them the greatest rate is unknown.
fn greater(
    before: Result<Figure, String>,
    more_cores: Result<Figure, String>,
) -> Result<Figure, String> {
    let more_cores = more_cores?;
    match before {
        Ok(before) if before.value > more_cores.value => Ok(before),
        _ => Ok(more_cores),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_rate_needs_all_cores() {
        assert_eq!(powers_up_to(1), [1]);
        assert_eq!(powers_up_to(6), [1, 2, 4, 6]);
        assert_eq!(powers_up_to(8), [1, 2, 4, 8]);
        let rate = |value| Ok(Figure { value, spread: 0.1 });
        let refused = || Err("disturbed".to_owned());
        assert_eq!(greater(rate(5.0), rate(4.0)), rate(5.0));
        assert_eq!(greater(refused(), rate(4.0)), rate(4.0));
        assert_eq!(greater(rate(5.0), refused()), refused());
    }
}
