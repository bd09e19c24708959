//! Latency beside streams: of memory, as the curve of a latency file, and of the last-level cache. Both give the limits of
//! light jobs.
//!
//! Perf&Fair (section 3) calls a job light if it does not slow its co-runners. How much is nothing, the paper does not say;
//! here, as in the fit of simulated machines, it is 4 % for each core with such a job, and a fifth in all. A walk waits for
//! every load, so it is slowed more than any program would be, and the limits are on the safe side.

use super::bench::Bench;
use super::figure::{Figure, watched};
use super::finding::{Finding, absent, disturbed};
use super::kernel::{Streams, Walk};
use crate::workload::arithmetic::Generator;
use crate::workload::ring::{LINE_BYTES, Line, relink};
use cosched_core::{CpuId, CpuSet};
use std::time::Duration;

const REPETITIONS: usize = 5;
const REPETITION: Duration = Duration::from_millis(60);

/// Iterations of the idle loop between two chunks of a stream, the slowest stream first.
const PAUSES: [u64; 8] = [3200, 1600, 800, 400, 200, 100, 50, 0];

/// Maximum slowdown by one core with light jobs, and by all of them, minus 1.
const IMPACT_OF_ONE: f64 = 0.04;
const IMPACT_OF_ALL: f64 = 0.2;

pub const CURVE: &str = "latency.curve";
const LIGHT_READS: &str = "params.light_mm_trans_per_us";
const LIGHT_ACCESSES: &str = "params.light_llc_trans_per_us";

/// A walk beside streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Lines per microsecond that the streams read.
    pub streams: f64,
    /// Nanoseconds per load of the walk.
    pub ns: f64,
    pub spread: f64,
}

/// A point of a latency curve: bandwidth by its peak, and latency by idle latency.
pub type Point = (f64, f64);

/// Measures memory, then the last-level cache. `mu` is the greatest rate of memory, if it is known.
pub fn measure(bench: &mut Bench, mu: Option<f64>) -> (Vec<Finding>, Vec<Point>) {
    if bench.cpus.len() < 2 {
        let why = "there is only one core, so nothing runs beside a walk";
        return (
            absent(&[CURVE, LIGHT_READS, LIGHT_ACCESSES], why),
            Vec::new(),
        );
    }
    let mut all = Vec::new();
    let mut points = Vec::new();
    match of_memory(bench) {
        Ok(loaded) => {
            points = mu.map(|mu| curve(&loaded, mu)).unwrap_or_default();
            let others = bench.cpus.len() - 1;
            all.push((LIGHT_READS.to_owned(), Ok(light(&loaded, others))));
            all.push((CURVE.to_owned(), curve_finding(&points, &loaded)));
        }
        Err(why) => all.extend(absent(&[CURVE, LIGHT_READS], &why)),
    }
    let accesses = of_cache(bench).map(|loaded| light(&loaded, bench.sharing_cache().len()));
    all.push((LIGHT_ACCESSES.to_owned(), accesses));
    (all, points)
}

fn curve_finding(points: &[Point], loaded: &[Loaded]) -> Result<Figure, String> {
    if points.len() < 3 {
        return Err("the greatest rate of memory is not known".to_owned());
    }
    Ok(Figure {
        value: points.len() as f64,
        spread: most_spread(loaded),
    })
}

fn most_spread(loaded: &[Loaded]) -> f64 {
    loaded.iter().map(|one| one.spread).fold(0.0, f64::max)
}

/// A walk over one half of the memory beside streams over the other.
fn of_memory(bench: &mut Bench) -> Result<Vec<Loaded>, String> {
    if !bench.exceeds_caches() {
        return Err("there is not enough free memory".to_owned());
    }
    let half = bench.lines.len() / 2;
    relink(&mut bench.lines[..half], &mut Generator::new(2));
    let (ring, streamed) = bench.lines.split_at(half);
    beside(bench, ring, streamed, &bench.cpus[1..])
}

/// The same within the last-level cache: each core uses twice the size of the cache before it.
fn of_cache(bench: &mut Bench) -> Result<Vec<Loaded>, String> {
    let others = bench.sharing_cache();
    let [.., before, last] = bench.cache_bytes[..] else {
        return Err("the kernel does not list the caches of this processor".to_owned());
    };
    if others.is_empty() {
        return Err("no other core uses the same last-level cache".to_owned());
    }
    let each = (2 * before / LINE_BYTES) as usize;
    let all = each * (others.len() + 1);
    if all as u64 * LINE_BYTES > last || all > bench.lines.len() {
        return Err("the caches of the cores are as large as the last-level cache".to_owned());
    }
    relink(&mut bench.lines[..each], &mut Generator::new(3));
    let (ring, rest) = bench.lines.split_at(each);
    beside(bench, ring, &rest[..all - each], &others)
}

/// Walks alone, and beside streams at each rate.
fn beside(
    bench: &Bench,
    ring: &[Line],
    streamed: &[Line],
    others: &[CpuId],
) -> Result<Vec<Loaded>, String> {
    let mut walk = Walk::over(ring);
    walk.for_time(REPETITION);
    let mut cpus = bench.set(1);
    let mut all = vec![repeated(&cpus, || (walk.for_time(REPETITION), 0.0))?];
    for cpu in others {
        cpus.insert(*cpu);
    }
    for pause in PAUSES {
        let streams = Streams {
            lines: streamed,
            cpus: others,
            pause,
        };
        let one = repeated(&cpus, || streams.beside(|| walk.for_time(REPETITION)))?;
        all.push(one);
    }
    Ok(all)
}

/// The medians of an undisturbed measurement of latency and rate.
fn repeated(cpus: &CpuSet, once: impl FnMut() -> (f64, f64)) -> Result<Loaded, String> {
    let all = watched(cpus, REPETITIONS, once, |&(ns, _)| ns).map_err(disturbed)?;
    let ns: Vec<f64> = all.iter().map(|&(ns, _)| ns).collect();
    let rates: Vec<f64> = all.iter().map(|&(_, rate)| rate).collect();
    let (ns, rate) = (Figure::of(&ns), Figure::of(&rates));
    Ok(Loaded {
        streams: rate.value,
        ns: ns.value,
        spread: ns.spread.max(rate.spread),
    })
}

/// The curve of a latency file: ascending in both, from [0, 1] to the peak. Beyond the last measured point the curve
/// continues as straight as before. Latencies that do not rise are noise, and are left out.
fn curve(loaded: &[Loaded], mu: f64) -> Vec<Point> {
    let Some(idle) = loaded.first() else {
        return Vec::new();
    };
    let mut rates: Vec<Point> = Vec::new();
    for one in &loaded[1..] {
        // The walk's own lines count too.
        rates.push((one.streams + 1e3 / one.ns, one.ns / idle.ns));
    }
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let peak = rates.last().map_or(mu, |last| last.0.max(mu));
    let mut points = vec![(0.0, 1.0)];
    for (rate, latency) in rates {
        let (x, y) = points[points.len() - 1];
        if rate / peak > x && latency > y {
            points.push((rate / peak, latency));
        }
    }
    if let [.., (x0, y0), (x1, y1)] = points[..]
        && x1 < 1.0
    {
        points.push((1.0, y1 + (y1 - y0) / (x1 - x0) * (1.0 - x1)));
    }
    points
}

/// The greatest rate of each of `others` cores that does not slow a walk by more than is light. If even the greatest does
/// not, that one.
fn light(loaded: &[Loaded], others: usize) -> Figure {
    let spread = most_spread(loaded);
    let most = 1.0 + (IMPACT_OF_ONE * others as f64).min(IMPACT_OF_ALL);
    let idle_ns = loaded.first().map_or(1.0, |idle| idle.ns);
    let (mut rate, mut slowdown) = (0.0, 1.0);
    for one in loaded.iter().skip(1) {
        let here = one.ns / idle_ns;
        if here > most {
            rate += (one.streams - rate) * (most - slowdown) / (here - slowdown);
            break;
        }
        (rate, slowdown) = (one.streams, here);
    }
    Figure {
        value: rate / others as f64,
        spread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(all: &[(f64, f64)]) -> Vec<Loaded> {
        let one = |&(streams, ns): &(f64, f64)| Loaded {
            streams,
            ns,
            spread: 0.02,
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_curve_ascends_and_reaches_the_peak() {
        // With 100 ns a walk reads 10 lines per microsecond. The third latency is noise.
        let walks = loaded(&[
            (0.0, 100.0),
            (90.0, 100.0),
            (190.0, 125.0),
            (242.0, 120.0),
            (295.0, 200.0),
        ]);
        let points = curve(&walks, 400.0);
        let expected = [(0.0, 1.0), (198.0 / 400.0, 1.25), (0.75, 2.0)];
        assert_eq!(points[..3], expected);
        assert_eq!(points.len(), 4);
        let slope = 0.75 / (0.75 - 0.495);
        assert_eq!(points[3].0, 1.0);
        assert!((points[3].1 - (2.0 + slope * 0.25)).abs() < 1e-9);
        assert_eq!(
            curve(&walks, 100.0)[2],
            (1.0, 2.0),
            "a peak that was exceeded"
        );
    }

    #[test]
    fn a_light_job_is_found_between_two_rates() {
        let walks = loaded(&[(0.0, 100.0), (40.0, 102.0), (80.0, 106.0), (160.0, 180.0)]);
        // One other core may cost 4 %: half-way between 2 and 6 %.
        assert_eq!(light(&walks, 1).value, 60.0);
        // Two may cost 8 %: 2/74 of the way to the last, for each half.
        assert!((light(&walks, 2).value - (80.0 + 80.0 * 2.0 / 74.0) / 2.0).abs() < 1e-9);
        let calm = loaded(&[(0.0, 100.0), (40.0, 101.0), (80.0, 102.0)]);
        assert_eq!(light(&calm, 1).value, 80.0);
    }
}
