//! What the probes say of the machine: the figures of its file.

use super::bench::{Bench, bytes};
use super::figure::{Figure, Figures};
use super::probe::Probe;
use std::collections::BTreeMap;

/// What was measured, or why it was not, by its key: the place in the machine file, if that has one.
pub type Findings = BTreeMap<String, Result<Figure, String>>;

/// A point of a latency curve: bandwidth by its peak, and latency by idle latency.
pub type Point = (f64, f64);

/// Maximum slowdown by a core with light jobs, and by all such cores, minus 1 (as in the fit of simulated machines; Perf&Fair,
/// section 3, calls a job light if it does not slow its co-runners).
const IMPACT_OF_ONE: f64 = 0.04;
const IMPACT_OF_ALL: f64 = 0.2;

/// Latencies of two levels that are nearer than this factor are no step.
const STEP: f64 = 1.15;

/// The least P_1 that policies accept.
const LEAST_STEP_W: f64 = 0.001;

const ONE_CORE: &str = "there is only one core";

fn per_us(ns: Figure) -> Figure {
    ns.map(|ns| 1e3 / ns)
}

/// The rates of memory by number of cores, and the greatest one (mu of EFS, section 5.1), which is also returned.
pub fn rates(figures: &Figures<Probe>) -> (Findings, Figure) {
    let mut all = Findings::new();
    let mut mu = per_us(figures[&Probe::Streams(1)][1]);
    for (probe, [_, line]) in figures {
        if let Probe::Streams(cores) = probe {
            let rate = per_us(*line);
            all.insert(format!("bandwidth.{cores:03}_cores"), Ok(rate));
            if rate.value > mu.value {
                mu = rate;
            }
        }
    }
    let gb_per_s = mu.map(|lines| lines * 0.064);
    all.insert("memory.gb_per_s_per_channel".to_owned(), Ok(gb_per_s));
    all.insert("params.mu_trans_per_us".to_owned(), Ok(mu));
    (all, mu)
}

/// The figures of caches, memory latency and cores, and the points of the latency curve.
pub fn others(figures: &Figures<Probe>, bench: &Bench, mu: Figure) -> (Findings, Vec<Point>) {
    let rings = bench.rings.iter().enumerate();
    let walk = |(ix, ring): (usize, &Vec<_>)| (bytes(ring) as f64, figures[&Probe::Walk(ix)][0]);
    let walks: Vec<Walk> = rings.map(walk).collect();
    let (_, idle) = walks[walks.len() - 1];
    let mut all = caches(&walks, &bench.cache_bytes);
    all.insert("latency.idle_latency_ns".to_owned(), Ok(idle));
    all.extend(cores(figures));
    let loaded = |cached| -> Vec<[Figure; 2]> {
        let probes = Probe::loaded(cached);
        probes
            .filter_map(|probe| figures.get(&probe).copied())
            .collect()
    };
    let reads = light(&loaded(false), bench.cpus.len() - 1).ok_or(ONE_CORE);
    let no_room = "no two cores share the last-level cache with room for both";
    let accesses = light(&loaded(true), bench.sharing - 1).ok_or(no_room);
    for (unit, limit) in [("mm", reads), ("llc", accesses)] {
        let key = format!("params.light_{unit}_trans_per_us");
        all.insert(key, limit.map_err(str::to_owned));
    }
    (all, curve(&loaded(false), idle.value, mu.value))
}

/// The figures of cores.
fn cores(figures: &Figures<Probe>) -> Findings {
    let ns = |probe, missing: &str| {
        let both = figures.get(&probe).ok_or_else(|| missing.to_owned())?;
        Ok(both[0])
    };
    let arithmetic = |sibling| ns(Probe::Arithmetic { sibling }, "no core has two CPUs");
    // 0 if siblings share nothing, 1 if they take turns.
    let share = |alone: Figure| {
        let grown = arithmetic(true)?.map(|both| both / alone.value - 1.0);
        Ok(grown.map(|grown| grown.clamp(0.0, 1.0)))
    };
    let us = |ns: Figure| ns.map(|ns| ns / 1e3);
    let all = [
        (
            "core.ghz",
            ns(Probe::Clock, "").map(|ns| ns.map(|ns| 1.0 / ns)),
        ),
        ("kernel.switching.switch_us", ns(Probe::Switch, "").map(us)),
        (
            "kernel.switching.migration_us",
            ns(Probe::Move, ONE_CORE).map(us),
        ),
        ("smt.issue_share", arithmetic(false).and_then(share)),
    ];
    all.map(|(key, found)| (key.to_owned(), found)).into()
}

/// A ring's size in bytes, and the time of a load in it.
type Walk = (f64, Figure);

/// Reach and time of each cache from walks; `reported` are the kernel's sizes of the caches.
fn caches(walks: &[Walk], reported: &[u64]) -> Findings {
    let level = |ix: usize| match ix.checked_sub(1) {
        _ if ix == reported.len() => walks.last(),
        None => walks
            .iter()
            .rfind(|walk| walk.0 <= reported[0] as f64 / 2.0),
        // A ring of three times the cache before it has left that; a larger one may exceed a guest's part.
        Some(before) => walks
            .iter()
            .find(|walk| walk.0 >= 3.0 * reported[before] as f64),
    };
    let mut all = Findings::new();
    for ix in 0..reported.len() {
        let (reach_key, ns_key, unit) = match ix {
            last if last + 1 == reported.len() => ("llc.mb", "llc.latency.hit_ns", 1_048_576.0),
            0 => ("cache.l1_kb", "cache.l1_ns", 1024.0),
            1 => ("core.l2_kb", "cache.l2_ns", 1024.0),
            _ => continue,
        };
        let both = level(ix).zip(level(ix + 1));
        let step = both.and_then(|(own, next)| step(walks, own, next));
        let step = step.ok_or_else(|| "no step in the times of loads shows its end".to_owned());
        let reach = step
            .clone()
            .map(|(reach, _)| reach.map(|bytes| bytes / unit));
        all.insert(reach_key.to_owned(), reach);
        all.insert(ns_key.to_owned(), step.map(|(_, ns)| ns));
    }
    all
}

/// The end of a level, before which loads take less than the geometric mean of its time and that of the next level; and its
/// time. The end lies between two rings.
fn step(walks: &[Walk], own: &Walk, next: &Walk) -> Option<(Figure, Figure)> {
    if next.1.value <= own.1.value * STEP {
        return None;
    }
    let limit = (own.1.value * next.1.value).sqrt();
    let is_beyond = |walk: &Walk| walk.0 > own.0 && walk.1.value > limit;
    let beyond = walks.iter().position(is_beyond)?;
    let (value, high) = (walks[beyond - 1].0, walks[beyond].0);
    let low = value;
    Some((Figure { value, low, high }, own.1))
}

/// The curve of a latency file: ascending in both, from [0, 1] to the peak. Beyond the last measured point it continues as
/// straight as before. Latencies that do not rise are noise, and are left out.
fn curve(loaded: &[[Figure; 2]], idle_ns: f64, mu: f64) -> Vec<Point> {
    let mut points = vec![(0.0, 1.0)];
    for [ns, line] in loaded {
        // The walk's own lines count too.
        let rate = (1e3 / line.value + 1e3 / ns.value) / mu;
        let (before, latency) = points[points.len() - 1];
        if rate.min(1.0) > before && ns.value / idle_ns > latency {
            points.push((rate.min(1.0), ns.value / idle_ns));
        }
    }
    if let [.., (x0, y0), (x1, y1)] = points[..]
        && x1 < 1.0
    {
        points.push((1.0, y1 + (y1 - y0) / (x1 - x0) * (1.0 - x1)));
    }
    points
}

/// The greatest rate of each of `others` cores that slows a walk beside them by no more than is light, between two measured
/// ones. The slowest streams, which come first, show what another active core costs without reading.
fn light(loaded: &[[Figure; 2]], others: usize) -> Option<Figure> {
    let base_ns = loaded.first()?[0].value;
    let most = 1.0 + (IMPACT_OF_ONE * others as f64).min(IMPACT_OF_ALL);
    let (mut low, mut slowdown) = (0.0, 1.0);
    for [ns, line] in loaded {
        let (high, slower) = (1e3 / line.value / others as f64, ns.value / base_ns);
        if slower > most {
            let value = low + (high - low) * (most - slowdown) / (slower - slowdown);
            return Some(Figure { value, low, high });
        }
        (low, slowdown) = (high, slower);
    }
    // Even the greatest rate is light.
    Some(Figure {
        value: low,
        low,
        high: low,
    })
}

/// The steps of power by active cores (EFS, Eqs. 13 and 25). No step is negative.
pub fn power(figures: Result<Figures<Probe>, String>, cores: usize) -> Findings {
    let steps = figures.and_then(|figures| steps(&figures, cores));
    let keys = ["p0_w", "p1_w", "p2_w", "p_more_w"].into_iter().enumerate();
    keys.map(|(ix, key)| {
        (
            format!("params.{key}"),
            steps.clone().map(|steps| steps[ix]),
        )
    })
    .collect()
}

fn steps(figures: &Figures<Probe>, cores: usize) -> Result<[Figure; 4], String> {
    let watts = |cores| {
        let [compute, read] = [false, true].map(|reads| figures[&Probe::Power { cores, reads }][0]);
        compute.with(read, f64::midpoint)
    };
    let per_core = |from: usize, to: usize| {
        let more = watts(to).with(watts(from), |to, from| (to - from).max(0.0));
        more.map(|watts| watts / (to - from) as f64)
    };
    let first = per_core(0, 1);
    if first.value < LEAST_STEP_W {
        return Err("the meter does not show an active core".to_owned());
    }
    let second = if cores > 1 { per_core(1, 2) } else { first };
    let further = if cores > 2 {
        per_core(2, cores)
    } else {
        second
    };
    Ok([watts(0), first, second, further])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Figure {
        let (low, high) = (value * 0.9, value * 1.1);
        Figure { value, low, high }
    }

    fn figures(all: &[(Probe, [f64; 2])]) -> Figures<Probe> {
        let both = |&(probe, both): &(Probe, [f64; 2])| (probe, both.map(figure));
        all.iter().map(both).collect()
    }

    fn value(found: &Findings, key: &str) -> f64 {
        found[key].as_ref().unwrap().value
    }

    const REPORTED: [u64; 3] = [48 << 10, 2 << 20, 32 << 20];

    /// Walks over rings of powers of two from 8 KB to 1 GB, on a machine whose caches end at these sizes.
    fn walks(ends: &[(u64, f64)], beyond_ns: f64) -> Vec<Walk> {
        let rings = (13..=30).map(|power| 1_u64 << power);
        let ns = |bytes| {
            let level = ends.iter().find(|(end, _)| bytes <= *end);
            level.map_or(beyond_ns, |(_, ns)| *ns)
        };
        rings
            .map(|bytes| (bytes as f64, figure(ns(bytes))))
            .collect()
    }

    #[test]
    fn a_cache_ends_where_loads_become_slower() {
        let ends = [(32 << 10, 1.5), (1 << 20, 5.0), (32 << 20, 20.0)];
        let found = caches(&walks(&ends, 90.0), &REPORTED);
        for (key, expected) in [
            ("cache.l1_kb", 32.0),
            ("cache.l1_ns", 1.5),
            ("core.l2_kb", 1024.0),
            ("cache.l2_ns", 5.0),
            ("llc.mb", 32.0),
            ("llc.latency.hit_ns", 20.0),
        ] {
            assert_eq!(value(&found, key), expected, "{key}");
        }
        assert_eq!(found["llc.mb"].as_ref().unwrap().high, 64.0);
        let flat = caches(&walks(&[(2 << 20, 5.0)], 90.0), &REPORTED);
        assert!(flat["llc.mb"].is_err() && flat["llc.latency.hit_ns"].is_err());
    }

    #[test]
    fn the_greatest_rate_may_need_few_cores() {
        let (found, _) = rates(&figures(&[
            (Probe::Streams(1), [0.0, 8.0]),
            (Probe::Streams(2), [0.0, 4.0]),
            (Probe::Streams(4), [0.0, 5.0]),
        ]));
        assert_eq!(value(&found, "params.mu_trans_per_us"), 250.0);
        assert_eq!(value(&found, "memory.gb_per_s_per_channel"), 16.0);
        assert_eq!(value(&found, "bandwidth.004_cores"), 200.0);
    }

    #[test]
    fn a_sibling_takes_a_share() {
        let mut all = vec![(Probe::Clock, [0.25, 0.0]), (Probe::Switch, [900.0, 0.0])];
        let none = cores(&figures(&all));
        assert_eq!(value(&none, "core.ghz"), 4.0);
        let why = "no core has two CPUs".to_owned();
        assert_eq!(none["smt.issue_share"], Err(why));
        for (sibling, ns) in [(false, 2.0), (true, 3.0)] {
            all.push((Probe::Arithmetic { sibling }, [ns, 0.0]));
        }
        assert_eq!(value(&cores(&figures(&all)), "smt.issue_share"), 0.5);
    }

    /// Walks that take these times beside streams of these rates.
    fn loaded(all: &[(f64, f64)]) -> Vec<[Figure; 2]> {
        let both = all.iter().map(|&(ns, rate)| [ns, 1e3 / rate].map(figure));
        both.collect()
    }

    #[test]
    fn a_curve_ascends_and_reaches_the_peak() {
        // The third latency is noise.
        let all = [
            (100.0, 90.0),
            (125.0, 192.0),
            (120.0, 250.0),
            (200.0, 295.0),
        ];
        let points = curve(&loaded(&all), 100.0, 400.0);
        assert_eq!(points, [(0.0, 1.0), (0.5, 1.25), (0.75, 2.0), (1.0, 2.75)]);
        let exceeded = curve(&loaded(&all), 100.0, 250.0);
        assert_eq!(exceeded[2], (1.0, 2.0));
    }

    #[test]
    fn a_light_job_is_found_between_two_rates() {
        let all = loaded(&[(100.0, 1.0), (102.0, 40.0), (106.0, 80.0), (180.0, 160.0)]);
        // One other core may cost 4 %: half-way between 2 and 6 %.
        let one = light(&all, 1).unwrap();
        assert!((one.value - 60.0).abs() < 1e-9);
        assert_eq!((one.low, one.high), (40.0, 80.0));
        // Two may cost 8 %: 2/74 of the way to the last, for each half.
        let two = light(&all, 2).unwrap();
        assert!((two.value - (40.0 + 40.0 * 2.0 / 74.0)).abs() < 1e-9);
        assert_eq!(light(&all[..2], 1).unwrap().value, 40.0);
        assert_eq!(light(&[], 1), None);
    }

    /// The steps of a machine that draws these watts by its active cores; reading memory draws 2 W more, computing less.
    fn steps_of(watts: &[f64]) -> Findings {
        let cores = watts.len() - 1;
        let state = |probe: Probe| match probe {
            Probe::Power { cores, reads: true } => (probe, [watts[cores] + 2.0, 0.0]),
            Probe::Power { cores, .. } => (probe, [watts[cores] - 2.0, 0.0]),
            _ => panic!("{probe:?} is no power"),
        };
        let all: Vec<_> = Probe::powers(cores).into_iter().map(state).collect();
        power(Ok(figures(&all)), cores)
    }

    #[test]
    fn the_steps_of_the_machine_of_efs() {
        let steps = |watts: &[f64]| {
            let found = steps_of(watts);
            let keys = [
                "params.p0_w",
                "params.p1_w",
                "params.p2_w",
                "params.p_more_w",
            ];
            keys.map(|key| value(&found, key))
        };
        let found = steps(&[26.6, 49.2, 61.2, 73.5, 85.8]);
        for (step, published) in found.iter().zip([26.6, 22.6, 12.0, 12.3]) {
            assert!((step - published).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(steps(&[20.0, 30.0]), [20.0, 10.0, 10.0, 10.0]);
        assert_eq!(steps(&[20.0, 30.0, 25.0])[2], 0.0, "no step is negative");
        let constant = &steps_of(&[9.0; 5])["params.p1_w"];
        assert!(constant.as_ref().unwrap_err().contains("does not show"));
    }
}
