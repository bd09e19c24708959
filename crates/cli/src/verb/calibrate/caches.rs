//! The reach of each cache, and the time of a load from each and from memory: a walk over rings of growing size.

use super::bench::Bench;
use super::figure::{Disturbance, Figure, MOST_SPREAD, figure};
use super::finding::{Finding, absent, disturbed as disturbed_text};
use super::kernel::Walk;
use crate::workload::arithmetic::Generator;
use crate::workload::ring::{LINE_BYTES, Line, relink};
use cosched_core::CpuSet;
use std::time::Duration;

const REPETITIONS: usize = 5;
const REPETITION: Duration = Duration::from_millis(12);

/// The smallest ring.
const LEAST_BYTES: u64 = 8 << 10;

/// Maximum ratio of the first ring beyond a cache to the last within it: one between them may have been given up.
const NEXT: f64 = 2.0;

/// Latencies of two levels that are nearer than this factor are no step.
const STEP: f64 = 1.15;

const KEYS: [[&str; 2]; 3] = [
    ["cache.l1_kb", "cache.l1_ns"],
    ["core_type.0.l2_kb", "cache.l2_ns"],
    ["llc.mb", "llc.latency.hit_ns"],
];
const MEMORY: &str = "latency.idle_latency_ns";

/// Measures the caches of the first CPU.
pub fn measure(bench: &mut Bench) -> Vec<Finding> {
    let reported = bench.cache_bytes.clone();
    if reported.len() < 2 {
        let why = "the kernel does not list the caches of this processor";
        return absent(&[&KEYS.concat()[..], &[MEMORY]].concat(), why);
    }
    // Others evict lines from any CPU.
    let cpus = bench.machine.all_cpus();
    let half = bench.lines.len() / 2;
    let (walks, disturbed) = scan(&mut bench.lines[..half], &cpus);
    let disturbed = disturbed.map(disturbed_text);
    findings(&levels(&walks, &reported), disturbed.as_deref())
}

/// A ring and the time of a load in it.
#[derive(Clone, Copy, Debug)]
struct Timed {
    bytes: u64,
    ns: Figure,
}

/// Times walks of all sizes; also returns why the last ring that was given up was.
fn scan(lines: &mut [Line], cpus: &CpuSet) -> (Vec<Timed>, Option<Disturbance>) {
    let (mut walks, mut disturbed) = (Vec::new(), None);
    let mut generator = Generator::new(1);
    for bytes in sizes(lines.len() as u64 * LINE_BYTES) {
        let ring = &mut lines[..(bytes / LINE_BYTES) as usize];
        // This also loads the lines into the caches.
        relink(ring, &mut generator);
        let mut walk = Walk::over(ring);
        walk.for_time(REPETITION);
        match figure(cpus, REPETITIONS, || walk.for_time(REPETITION)) {
            Ok(ns) => walks.push(Timed { bytes, ns }),
            Err(why) => disturbed = Some(why),
        }
    }
    (walks, disturbed)
}

/// Sizes up to `most`, two for each doubling.
fn sizes(most: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = LEAST_BYTES;
    while size <= most {
        sizes.push(size);
        if size / 2 * 3 <= most {
            sizes.push(size / 2 * 3);
        }
        size *= 2;
    }
    sizes
}

/// A level of the memory hierarchy, as far as it could be told.
#[derive(Debug, PartialEq)]
struct Level {
    /// The largest ring whose loads are nearer to this level's than to the next level's.
    reach: Option<Figure>,
    ns: Option<Figure>,
}

/// The caches of these reported sizes, and memory as the last level.
fn levels(walks: &[Timed], reported: &[u64]) -> Vec<Level> {
    let mut ns = Vec::new();
    let mut before = 0;
    for &bytes in reported {
        // Rings just beyond the cache before it: larger ones may exceed the share of a cache that a guest has.
        let to = if before == 0 { bytes / 2 } else { 4 * before };
        ns.push(plateau(walks, 2 * before, to));
        before = bytes;
    }
    ns.push(plateau(walks, before + before / 4, u64::MAX));
    let mut levels = Vec::new();
    for (ix, own) in ns.iter().enumerate() {
        let next = ns.get(ix + 1).copied().flatten();
        let start = ix.checked_sub(1).map_or(0, |before| 2 * reported[before]);
        let reach = match (own, next) {
            (Some(own), Some(next)) => knee(walks, start, own.value, next.value),
            _ => None,
        };
        levels.push(Level { reach, ns: *own });
    }
    levels
}

/// The time of loads in rings of these sizes: of the smallest three.
fn plateau(walks: &[Timed], from: u64, to: u64) -> Option<Figure> {
    let within = walks
        .iter()
        .filter(|walk| (from..=to).contains(&walk.bytes));
    let smallest: Vec<Figure> = within.take(3).map(|walk| walk.ns).collect();
    let values: Vec<f64> = smallest.iter().map(|ns| ns.value).collect();
    if values.is_empty() {
        return None;
    }
    let figure = Figure::of(&values);
    let spreads = smallest.iter().map(|ns| ns.spread);
    let spread = spreads.fold(figure.spread, f64::max);
    Some(Figure { spread, ..figure }).filter(|figure| figure.spread <= MOST_SPREAD)
}

/// The largest ring up to which loads take less than the geometric mean of two levels' times. The spread is the distance to
/// the next ring, which is beyond the cache; that must have been measured.
fn knee(walks: &[Timed], start: u64, own_ns: f64, next_ns: f64) -> Option<Figure> {
    if next_ns < own_ns * STEP {
        return None;
    }
    let limit = (own_ns * next_ns).sqrt();
    let mut reach: Option<u64> = None;
    for walk in walks.iter().filter(|walk| walk.bytes >= start) {
        if walk.ns.value > limit {
            let reach = reach? as f64;
            let spread = walk.bytes as f64 / reach - 1.0;
            let figure = Figure {
                value: reach,
                spread,
            };
            return Some(figure).filter(|_| spread <= NEXT - 1.0);
        }
        reach = Some(walk.bytes);
    }
    None
}

/// The figures of these levels; `disturbed` says why some rings were given up.
fn findings(levels: &[Level], disturbed: Option<&str>) -> Vec<Finding> {
    let no_step = disturbed.unwrap_or("no step in the time of loads shows its end");
    let missing = disturbed.unwrap_or("too few rings fit in free memory, or their times differ");
    let mut all = Vec::new();
    let (memory, caches) = match levels.split_last() {
        Some((memory, caches)) => (memory.ns, caches),
        None => (None, levels),
    };
    // Between the first and the last cache there may be one more than the file describes, or none.
    let last = caches.len().saturating_sub(1);
    for (ix, [reach, time]) in KEYS.into_iter().enumerate() {
        let level = if ix == 2 {
            Some(last)
        } else {
            Some(ix).filter(|&ix| ix < last)
        };
        let Some(level) = level.map(|level| &caches[level]) else {
            all.extend(absent(&[reach, time], "this processor has no such cache"));
            continue;
        };
        let unit = if ix == 2 { 1 << 20 } else { 1 << 10 };
        let bytes = level.reach.map(|bytes| bytes.times(1.0 / f64::from(unit)));
        all.push((reach.to_owned(), bytes.ok_or_else(|| no_step.to_owned())));
        all.push((time.to_owned(), level.ns.ok_or_else(|| missing.to_owned())));
    }
    all.push((MEMORY.to_owned(), memory.ok_or_else(|| missing.to_owned())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks on a machine whose caches end at these sizes.
    fn walks(ends: &[(u64, f64)], beyond_ns: f64) -> Vec<Timed> {
        let ns_of = |bytes: u64| {
            let level = ends.iter().find(|(end, _)| bytes <= *end);
            level.map_or(beyond_ns, |(_, ns)| *ns)
        };
        let timed = |bytes| Timed {
            bytes,
            ns: Figure {
                value: ns_of(bytes),
                spread: 0.01,
            },
        };
        sizes(1 << 30).into_iter().map(timed).collect()
    }

    #[test]
    fn a_cache_ends_where_loads_become_slow() {
        let reported = [48 << 10, 2 << 20, 64 << 20];
        let real = [(48 << 10, 1.5), (2 << 20, 5.0), (64 << 20, 25.0)];
        let levels = levels(&walks(&real, 100.0), &reported);
        let reach = |ix: usize| levels[ix].reach.unwrap().value as u64;
        assert_eq!([reach(0), reach(1), reach(2)], reported);
        let ns: Vec<f64> = levels.iter().map(|level| level.ns.unwrap().value).collect();
        assert_eq!(ns, [1.5, 5.0, 25.0, 100.0]);
        assert_eq!(levels[3].reach, None, "memory has no end");
    }

    #[test]
    fn a_guest_finds_its_own_part_of_a_shared_cache() {
        let reported = [48 << 10, 2 << 20, 256 << 20];
        let real = [(48 << 10, 1.5), (2 << 20, 5.0), (24 << 20, 30.0)];
        let levels = levels(&walks(&real, 120.0), &reported);
        assert_eq!(levels[2].reach.unwrap().value as u64, 24 << 20);
        assert_eq!(levels[2].ns.unwrap().value, 30.0);
    }

    #[test]
    fn without_a_step_or_memory_nothing_is_claimed() {
        let reported = [48 << 10, 2 << 20, 64 << 20];
        let flat = levels(&walks(&[], 50.0), &reported);
        assert!(flat.iter().all(|level| level.reach.is_none()));
        let mut short = walks(&[(48 << 10, 1.0), (2 << 20, 5.0)], 20.0);
        short.retain(|walk| walk.bytes < 32 << 20);
        let found = findings(&levels(&short, &reported), Some("too small"));
        let memory = found.iter().find(|(key, _)| key == MEMORY).unwrap();
        assert_eq!(memory.1, Err("too small".to_owned()));
        let reach = found.iter().find(|(key, _)| key == "llc.mb").unwrap();
        assert!(reach.1.is_err());
    }
}
