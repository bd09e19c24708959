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
