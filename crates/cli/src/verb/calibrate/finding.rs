//! What the probes say of the machine: the figures of its file.

use super::bench::Bench;
use super::figure::{Figure, Outcome};
use super::probe::{PAUSES, Probe};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was measured, by its key: the place in the machine file, if that has one.
pub type Findings = BTreeMap<String, Result<Figure, String>>;

/// What the machine file keeps of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// A figure, and its day.
    Figure {
        #[serde(flatten)]
        figure: Figure,
        on: String,
    },
    /// Why there is none.
    Absent { absent: String },
}

pub const MU: &str = "params.mu_trans_per_us";
pub const MEMORY: &str = "latency.idle_latency_ns";

/// A point of a latency curve: bandwidth by its peak, and latency by idle latency.
pub type Point = (f64, f64);

/// Maximum slowdown by a core with light jobs, and by all such cores, minus 1 (as in the fit of simulated machines; Perf&Fair,
/// section 3, calls a job light if it does not slow its co-runners).
const IMPACT_OF_ONE: f64 = 0.04;
const IMPACT_OF_ALL: f64 = 0.2;

/// Latencies of two levels that are nearer than this factor are no step.
const STEP: f64 = 1.15;

/// The figures of all probes.
pub struct Probed(pub BTreeMap<Probe, Outcome>);

impl Probed {
    fn both(&self, probe: Probe) -> Outcome {
        let missing = match probe {
            Probe::Alone | Probe::Sibling => "no core has two CPUs",
            Probe::Cache(_) => "no two cores share the last-level cache with room for both",
            _ => "there is only one core",
        };
        let outcome = self.0.get(&probe).cloned();
        outcome.unwrap_or_else(|| Err(missing.to_owned()))
    }

    /// Nanoseconds of a sample.
    fn ns(&self, probe: Probe) -> Result<Figure, String> {
        self.both(probe).map(|[ns, _]| ns)
    }

    /// The greatest rate of memory, and the rates by number of cores (mu of EFS, section 5.1).
    pub fn rates(&self, part: Option<String>) -> Findings {
        let mut all = Findings::new();
        let mut least: Result<Figure, String> = Err(String::new());
        for (probe, outcome) in &self.0 {
            let Probe::Streams(cores) = probe else {
                continue;
            };
            let ns = outcome.clone().map(|[ns, _]| ns);
            let key = format!("bandwidth.{cores:03}_cores");
            all.insert(key, ns.clone().map(lines_per_us));
            // The greatest rate is unknown without all cores, which come last.
            least = match (least, ns) {
                (Ok(before), Ok(now)) if before.value < now.value => Ok(before),
                (_, now) => now,
            };
        }
        let mu = part.map_or(least, Err).map(lines_per_us);
        let bytes = mu.clone().map(|mu| mu.map(|lines| lines * 0.064));
        all.insert(MU.to_owned(), mu);
        all.insert("memory.gb_per_s_per_channel".to_owned(), bytes);
        all
    }

    /// The figures of cores.
    pub fn cores(&self) -> Findings {
        let ghz = self.ns(Probe::Clock).map(|ns| ns.map(|ns| 1.0 / ns));
        let us = |probe| self.ns(probe).map(|ns| ns.map(|ns| ns / 1000.0));
        Findings::from([
            ("core_type.0.ghz".to_owned(), ghz),
            ("kernel.switching.switch_us".to_owned(), us(Probe::Switch)),
            ("kernel.switching.migration_us".to_owned(), us(Probe::Move)),
            ("smt.issue_share".to_owned(), self.issue_share()),
        ])
    }

    /// Growth of the time of arithmetic beside a sibling: 0 if nothing is shared, 1 if they take turns.
    fn issue_share(&self) -> Result<Figure, String> {
        let alone = self.ns(Probe::Alone)?;
        let more = self.ns(Probe::Sibling)?.above(alone);
        Ok(more.map(|ns| (ns / alone.value).min(1.0)))
    }

    /// Reach and time of each cache, and the time of memory, from walks over rings of these sizes. `reported` are the
    /// kernel's sizes of the caches.
    pub fn caches(&self, rings: &[u64], reported: &[u64]) -> Findings {
        let times = (0..rings.len()).map(|ix| self.ns(Probe::Walk(ix)));
        let walks: Vec<Walk> = rings.iter().copied().zip(times).collect();
        let (_, memory) = walks.last().cloned().unwrap_or((0, Err(String::new())));
        let mut levels = Vec::new();
        for (ix, &bytes) in reported.iter().enumerate() {
            levels.push(match ix.checked_sub(1) {
                None => walks.iter().rfind(|walk| walk.0 <= bytes / 2),
                // A ring of three times the cache before it has left that; a larger one may exceed a guest's part.
                Some(before) => walks.iter().find(|walk| walk.0 >= 3 * reported[before]),
            });
        }
        levels.push(walks.last());
        let mut all = Findings::from([(MEMORY.to_owned(), memory)]);
        for (ix, pair) in levels.windows(2).enumerate() {
            let Some((reach_key, ns_key, unit)) = cache_keys(ix, reported.len()) else {
                continue;
            };
            let (reach, ns) = match (pair[0], pair[1]) {
                (Some(own), Some(next)) => step(&walks, own, next),
                _ => (Err(NO_STEP.to_owned()), Err(NO_STEP.to_owned())),
            };
            let reach = reach.map(|bytes| bytes.map(|bytes| bytes / unit));
            all.extend([(reach_key.to_owned(), reach), (ns_key.to_owned(), ns)]);
        }
        all
    }

    /// The walk in memory beside streams, as the points of a latency file; `mu` is the greatest rate.
    pub fn curve(&self, idle: Figure, mu: Figure) -> Result<Vec<Point>, String> {
        let loaded = self.loaded(Probe::Memory)?;
        // The walk's own lines count too.
        let rates = loaded.iter();
        let rates =
            rates.map(|(ns, lines)| (1e3 / lines.value + 1e3 / ns.value, ns.value / idle.value));
        Ok(curve(rates.collect(), mu.value))
    }

    /// The rate of each of `others` cores that slows a walk by no more than is light, and slows it alone by `idle`.
    pub fn light(
        &self,
        probe: fn(u64) -> Probe,
        idle: Figure,
        others: usize,
    ) -> Result<Figure, String> {
        let loaded = self.loaded(probe)?;
        let most = 1.0 + (IMPACT_OF_ONE * others as f64).min(IMPACT_OF_ALL);
        let limit = |pick: fn(&Figure) -> f64| {
            let each = loaded.iter();
            let each = each.map(|(ns, lines)| (1e3 / lines.value, pick(ns) / idle.value));
            light(each.collect(), most) / others as f64
        };
        // Greater latencies mean a lower limit.
        Ok(Figure {
            value: limit(|ns| ns.value),
            low: limit(|ns| ns.high),
            high: limit(|ns| ns.low),
        })
    }

    /// Times of a walk and of the lines beside it, the slowest streams first.
    fn loaded(&self, probe: fn(u64) -> Probe) -> Result<Vec<(Figure, Figure)>, String> {
        let each = PAUSES.into_iter();
        each.map(|pause| self.both(probe(pause)).map(|[ns, line]| (ns, line)))
            .collect()
    }
}

/// A ring's size in bytes, and the time of a load in it.
type Walk = (u64, Result<Figure, String>);

const NO_STEP: &str = "no step in the times of loads shows where it ends";

/// The keys of a cache's reach and time, and the unit of its reach, in bytes; `None` if the file has no such cache.
fn cache_keys(ix: usize, caches: usize) -> Option<(&'static str, &'static str, f64)> {
    match ix {
        last if last + 1 == caches => Some(("llc.mb", "llc.latency.hit_ns", 1_048_576.0)),
        0 => Some(("cache.l1_kb", "cache.l1_ns", 1024.0)),
        1 => Some(("core_type.0.l2_kb", "cache.l2_ns", 1024.0)),
        _ => None,
    }
}

/// The end of a level, before which loads take less than the geometric mean of its time and that of the next level; and its
/// time. The end lies between two rings.
fn step(
    walks: &[Walk],
    own: &Walk,
    next: &Walk,
) -> (Result<Figure, String>, Result<Figure, String>) {
    let (own_ns, next_ns) = match (&own.1, &next.1) {
        (Ok(own), Ok(next)) if next.value > own.value * STEP => (*own, *next),
        (Err(why), _) | (_, Err(why)) => return (Err(why.clone()), Err(why.clone())),
        _ => return (Err(NO_STEP.to_owned()), Err(NO_STEP.to_owned())),
    };
    let limit = (own_ns.value * next_ns.value).sqrt();
    let mut low = own.0 as f64;
    for (bytes, ns) in walks.iter().filter(|walk| walk.0 > own.0) {
        match ns {
            Err(why) => return (Err(why.clone()), Ok(own_ns)),
            Ok(ns) if ns.value <= limit => low = *bytes as f64,
            Ok(_) => {
                let high = *bytes as f64;
                let reach = Figure {
                    value: low,
                    low,
                    high,
                };
                return (Ok(reach), Ok(own_ns));
            }
        }
    }
    (Err(NO_STEP.to_owned()), Ok(own_ns))
}

fn lines_per_us(ns: Figure) -> Figure {
    ns.map(|ns| 1e3 / ns)
}

/// The curve of a latency file: ascending in both, from [0, 1] to the peak. Beyond the last measured point the curve
/// continues as straight as before. Latencies that do not rise are noise, and are left out.
fn curve(mut rates: Vec<Point>, mu: f64) -> Vec<Point> {
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

/// The greatest rate that slows by at most `most`, between two measured ones; if even the greatest does not, that one.
fn light(loaded: Vec<Point>, most: f64) -> f64 {
    let (mut rate, mut slowdown) = (0.0, 1.0);
    for (here, slower) in loaded {
        if slower > most {
            return rate + (here - rate) * (most - slowdown).max(0.0) / (slower - slowdown);
        }
        (rate, slowdown) = (here, slower);
    }
    rate
}

/// All figures of the machine but power, and the points of its latency curve.
pub fn findings(probed: &Probed, bench: &Bench, quick: bool) -> (Findings, Vec<Point>) {
    let mut all = probed.rates(bench.part());
    if quick {
        return (all, Vec::new());
    }
    let rings: Vec<u64> = bench.rings.iter().map(|ring| ring.bytes()).collect();
    all.extend(probed.cores());
    all.extend(probed.caches(&rings, &bench.cache_bytes));
    let (idle, mu) = (all[MEMORY].clone(), all[MU].clone());
    let both = idle.clone().and_then(|idle| Ok((idle, mu?)));
    let points = both.and_then(|(idle, mu)| probed.curve(idle, mu));
    let others = bench.cpus.len() - 1;
    let reads = idle.and_then(|idle| probed.light(Probe::Memory, idle, others));
    let hit = bench.cached_ring().map(|ix| probed.ns(Probe::Walk(ix)));
    let hit = hit.unwrap_or_else(|| Err("the kernel does not list the caches".to_owned()));
    let sharing = bench.sharing_cache().len();
    let accesses = hit.and_then(|hit| probed.light(Probe::Cache, hit, sharing));
    all.insert("params.light_mm_trans_per_us".to_owned(), reads);
    all.insert("params.light_llc_trans_per_us".to_owned(), accesses);
    (all, points.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Figure {
        let (low, high) = (value * 0.9, value * 1.1);
        Figure { value, low, high }
    }

    fn probed(all: &[(Probe, [f64; 2])]) -> Probed {
        let outcome = |&(probe, both): &(Probe, [f64; 2])| (probe, Ok(both.map(figure)));
        Probed(all.iter().map(outcome).collect())
    }

    fn busy() -> Outcome {
        Err("the machine was busy".to_owned())
    }

    /// Rings of powers of two from 8 KB to 1 GB, on a machine whose caches end at these sizes.
    fn walks(ends: &[(u64, f64)], beyond_ns: f64) -> (Vec<u64>, Probed) {
        let rings: Vec<u64> = (13..=30).map(|power| 1 << power).collect();
        let mut all = Vec::new();
        for (ix, &bytes) in rings.iter().enumerate() {
            let level = ends.iter().find(|(end, _)| bytes <= *end);
            let ns = level.map_or(beyond_ns, |(_, ns)| *ns);
            all.push((Probe::Walk(ix), [ns, 0.0]));
        }
        (rings, probed(&all))
    }

    const REPORTED: [u64; 3] = [48 << 10, 2 << 20, 256 << 20];

    fn value(findings: &Findings, key: &str) -> f64 {
        findings[key].as_ref().unwrap().value
    }

    #[test]
    fn a_cache_ends_where_loads_become_slow() {
        // The guest has 32 MB of the last-level cache.
        let (rings, walks) = walks(&[(48 << 10, 1.5), (2 << 20, 5.0), (32 << 20, 25.0)], 100.0);
        let found = walks.caches(&rings, &REPORTED);
        for (key, expected) in [
            ("cache.l1_kb", 32.0),
            ("cache.l1_ns", 1.5),
            ("core_type.0.l2_kb", 2048.0),
            ("cache.l2_ns", 5.0),
            ("llc.mb", 32.0),
            ("llc.latency.hit_ns", 25.0),
            (MEMORY, 100.0),
        ] {
            assert_eq!(value(&found, key), expected, "{key}");
        }
        assert_eq!(
            found["llc.mb"].as_ref().unwrap().high,
            64.0,
            "the next ring"
        );
    }

    #[test]
    fn without_a_step_or_a_calm_machine_nothing_is_claimed() {
        let (rings, flat) = walks(&[(2 << 20, 5.0)], 90.0);
        let found = flat.caches(&rings, &REPORTED);
        assert!(found["llc.mb"].is_err() && found["llc.latency.hit_ns"].is_err());
        assert_eq!(value(&found, MEMORY), 90.0);
        let (rings, mut disturbed) = walks(&[(48 << 10, 1.5), (2 << 20, 5.0)], 90.0);
        // The first ring beyond the second cache: that may end before it or after it.
        disturbed.0.insert(Probe::Walk(9), busy());
        let found = disturbed.caches(&rings, &REPORTED);
        assert_eq!(found["core_type.0.l2_kb"], busy().map(|[ns, _]| ns));
        assert_eq!(value(&found, "cache.l2_ns"), 5.0);
    }

    #[test]
    fn the_greatest_rate_needs_all_cores_of_the_machine() {
        let mut streams = probed(&[
            (Probe::Streams(1), [8.0, 0.0]),
            (Probe::Streams(2), [4.0, 0.0]),
            (Probe::Streams(4), [5.0, 0.0]),
        ]);
        let found = streams.rates(None);
        assert_eq!(value(&found, MU), 250.0);
        assert_eq!(value(&found, "memory.gb_per_s_per_channel"), 16.0);
        assert_eq!(value(&found, "bandwidth.004_cores"), 200.0);
        let part = streams.rates(Some("only CPU 0".to_owned()));
        assert!(part[MU].is_err() && part["bandwidth.001_cores"].is_ok());
        streams.0.insert(Probe::Streams(4), busy());
        assert!(streams.rates(None)[MU].is_err());
    }

    #[test]
    fn a_sibling_takes_a_share() {
        let both = probed(&[(Probe::Alone, [2.0, 0.0]), (Probe::Sibling, [3.0, 0.0])]);
        assert_eq!(value(&both.cores(), "smt.issue_share"), 0.5);
        let none = probed(&[(Probe::Clock, [0.25, 0.0])]).cores();
        assert_eq!(value(&none, "core_type.0.ghz"), 4.0);
        assert_eq!(
            none["smt.issue_share"],
            Err("no core has two CPUs".to_owned())
        );
    }

    #[test]
    fn a_curve_ascends_and_reaches_the_peak() {
        // The third latency is noise.
        let rates = vec![(100.0, 1.0), (198.0, 1.25), (250.0, 1.2), (300.0, 2.0)];
        let points = curve(rates.clone(), 400.0);
        assert_eq!(
            points[..3],
            [(0.0, 1.0), (198.0 / 400.0, 1.25), (0.75, 2.0)]
        );
        let slope = 0.75 / (0.75 - 0.495);
        assert_eq!(points[3].0, 1.0);
        assert!((points[3].1 - (2.0 + slope * 0.25)).abs() < 1e-9);
        assert_eq!(
            curve(rates, 100.0)[2],
            (1.0, 2.0),
            "a peak that was exceeded"
        );
    }

    #[test]
    fn a_light_job_is_found_between_two_rates() {
        // Rates of 40, 80 and 160 lines per microsecond, and more beyond.
        let times = [(102.0, 25.0), (106.0, 12.5), (180.0, 6.25)];
        let mut all = Vec::new();
        for (ix, pause) in PAUSES.into_iter().enumerate() {
            let (ns, line) = times[ix.min(2)];
            all.push((Probe::Memory(pause), [ns, line]));
        }
        let all = probed(&all);
        let limit = |others| {
            all.light(Probe::Memory, figure(100.0), others)
                .unwrap()
                .value
        };
        // One other core may cost 4 %: half-way between 2 and 6 %.
        assert_eq!(limit(1), 60.0);
        // Two may cost 8 %: 2/74 of the way to the last, for each half.
        assert!((limit(2) - (80.0 + 80.0 * 2.0 / 74.0) / 2.0).abs() < 1e-9);
        assert!(all.light(Probe::Cache, figure(100.0), 1).is_err());
    }
}
