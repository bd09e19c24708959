//! What the probes say of the machine: the figures of its file.

use super::bench::{ProbeBench, bytes};
use super::figure::{Figures, MeasuredFigure};
use super::probe::Probe;
use std::collections::BTreeMap;

/// Measured figures, by their key: the place in the machine file, if that has one.
pub type Measured = BTreeMap<String, MeasuredFigure>;

/// What was measured, and why some figures were not.
#[derive(Default)]
pub struct CalibrationFindings {
    pub figures: Measured,
    pub absent: BTreeMap<String, String>,
    /// The points of the latency curve.
    pub curve: Vec<Point>,
}

/// A point of a latency curve: bandwidth by its peak, and latency by idle latency.
pub type Point = (f64, f64);

/// Maximum slowdown by a core with light jobs, and by all such cores, minus 1 (as in the fit of simulated machines; Perf&Fair,
/// section 3, calls a job light if it does not slow its co-runners).
const IMPACT_OF_ONE: f64 = 0.04;
const IMPACT_OF_ALL: f64 = 0.2;

/// Latencies of two levels that are nearer than this factor are no step.
const STEP: f64 = 1.15;

const MU: &str = "params.mu_trans_per_us";

/// Keys of a cache's reach and time, and the unit of its reach in bytes.
type CacheKeys = (&'static str, &'static str, f64);
const L1: CacheKeys = ("cache.l1_kb", "cache.l1_ns", 1024.0);
const L2: CacheKeys = ("core_type.0.l2_kb", "cache.l2_ns", 1024.0);
const LLC: CacheKeys = ("llc.mb", "llc.latency.hit_ns", 1_048_576.0);

/// The least P_1 that policies accept.
const LEAST_STEP_W: f64 = 0.001;

impl CalibrationFindings {
    pub fn add(&mut self, key: &str, figure: MeasuredFigure) {
        self.figures.insert(key.to_owned(), figure);
    }

    pub fn add_absent(&mut self, key: &str, why: &str) {
        self.absent.insert(key.to_owned(), why.to_owned());
    }

    /// Adds what probes tell each by itself: rates of memory by number of cores with the greatest one (mu of EFS, section
    /// 5.1), and figures of cores.
    pub fn add_each(&mut self, figures: &Figures<Probe>) {
        for (probe, &[ns, line]) in figures {
            match probe {
                Probe::Streams(cores) => self.add_rate(*cores, line.map(|ns| 1e3 / ns)),
                Probe::Clock => self.add("core_type.0.ghz", ns.map(f64::recip)),
                Probe::Switch => self.add("kernel.switching.switch_us", ns.map(us)),
                Probe::Move => self.add("kernel.switching.migration_us", ns.map(us)),
                Probe::Arithmetic { sibling: true } => {
                    let [alone, _] = figures[&Probe::Arithmetic { sibling: false }];
                    // 0 if siblings share nothing, 1 if they take turns.
                    let share = ns.map(|ns| (ns / alone.value - 1.0).clamp(0.0, 1.0));
                    self.add("smt.issue_share", share);
                }
                _ => {}
            }
        }
    }

    fn add_rate(&mut self, cores: usize, rate: MeasuredFigure) {
        self.add(&format!("bandwidth.{cores:03}_cores"), rate);
        if self.figures.get(MU).is_none_or(|mu| rate.value > mu.value) {
            self.add(MU, rate);
            let gb_per_s = rate.map(|lines| lines * 0.064);
            self.add("memory.gb_per_s_per_channel", gb_per_s);
        }
    }

    /// Adds the figures of caches and of loaded memory.
    pub fn add_loads(&mut self, figures: &Figures<Probe>, bench: &ProbeBench<'_>) {
        let rings = bench.rings.iter().enumerate();
        let walk =
            |(ix, ring): (usize, &Vec<_>)| (bytes(ring) as f64, figures[&Probe::Walk(ix)][0]);
        let walks: Vec<Walk> = rings.map(walk).collect();
        self.add_caches(&walks, &bench.site.cache_bytes);
        self.add("latency.idle_latency_ns", walks[walks.len() - 1].1);
        let loaded = |cached| {
            let probes = Probe::loaded(cached).into_iter();
            let found = probes.filter_map(|probe| figures.get(&probe).copied());
            found.collect::<Vec<_>>()
        };
        let (in_memory, in_llc) = (loaded(false), loaded(true));
        for (key, limit) in [
            ("mm", light(&in_memory, bench.site.cpus.len() - 1)),
            ("llc", light(&in_llc, bench.sharing - 1)),
        ] {
            let key = format!("params.light_{key}_trans_per_us");
            match limit {
                Some(limit) => self.add(&key, limit),
                None => self.add_absent(&key, "no two cores share it with room for both"),
            }
        }
        self.curve = curve(&in_memory, self.figures[MU].value);
    }

    /// Adds reach and time of each cache; `reported` are the kernel's sizes of the caches.
    fn add_caches(&mut self, walks: &[Walk], reported: &[u64]) {
        let keys = match reported.len() {
            0..=2 => &[L1, LLC][2 - reported.len()..],
            _ => &[L1, L2, LLC],
        };
        let mut own = walks.first();
        for (ix, (&bytes, (reach_key, ns_key, unit))) in reported.iter().zip(keys).enumerate() {
            // A ring of three times a cache has left it; a larger one may exceed a guest's part of the next.
            let beyond = walks.iter().find(|walk| walk.0 >= 3.0 * bytes as f64);
            let next = beyond.filter(|_| ix + 1 < keys.len()).or(walks.last());
            match own.zip(next).and_then(|(own, next)| step(walks, own, next)) {
                Some((reach, ns)) => {
                    self.add(reach_key, reach.map(|bytes| bytes / unit));
                    self.add(ns_key, ns);
                }
                None => self.add_absent(reach_key, "no step in the times of loads shows its end"),
            }
            own = next;
        }
    }

    /// Adds the steps of power by active cores (EFS, Eqs. 13 and 25).
    pub fn add_power(&mut self, figures: Result<Figures<Probe>, String>, cores: usize) {
        match figures.and_then(|figures| power(&figures, cores)) {
            Err(why) => self.add_absent("params.p0_w", &why),
            Ok(steps) => {
                for (key, step) in ["p0_w", "p1_w", "p2_w", "p_more_w"].iter().zip(steps) {
                    self.add(&format!("params.{key}"), step);
                }
            }
        }
    }
}

fn us(ns: f64) -> f64 {
    ns / 1e3
}

/// A ring's size in bytes, and the time of a load in it.
type Walk = (f64, MeasuredFigure);

/// The end of a level, before which loads take less than the geometric mean of its time and that of the next level; and its
/// time. The end lies between two rings; its range has one more on either side, as a disturbed walk moves it by one.
fn step(walks: &[Walk], own: &Walk, next: &Walk) -> Option<(MeasuredFigure, MeasuredFigure)> {
    if next.1.value <= own.1.value * STEP {
        return None;
    }
    let limit = (own.1.value * next.1.value).sqrt();
    let is_beyond = |walk: &Walk| walk.0 > own.0 && walk.1.value > limit;
    let beyond = walks.iter().position(is_beyond)?;
    let reach = MeasuredFigure {
        value: walks[beyond - 1].0,
        low: walks[beyond.saturating_sub(2)].0,
        high: walks.get(beyond + 1).unwrap_or(&walks[beyond]).0,
    };
    Some((reach, own.1))
}

/// The curve of a latency file: ascending in both, from [0, 1] to the peak. Latencies that do not rise are noise, and are
/// left out; there is no curve if none rises. The last point has the mean slope of all measured rates; so one noisy latency does not become a steep end.
fn curve(loaded: &[[MeasuredFigure; 2]], mu: f64) -> Vec<Point> {
    let mut points = vec![(0.0, 1.0)];
    let (mut most, mut latency) = (0.0, 1.0);
    for [ns, line] in loaded {
        // The walk's own lines count too.
        let rate = (1e3 / line.value + 1e3 / ns.value) / mu;
        let slower = ns.value / loaded[0][0].value;
        if slower > latency && rate.min(0.99) > most {
            latency = slower;
            points.push((rate.min(0.99), latency));
        }
        most = rate.min(0.99).max(most);
    }
    if points.len() == 1 {
        return Vec::new();
    }
    points.push((1.0, 1.0 + (latency - 1.0) / most));
    points
}

/// The greatest rate of each of `others` cores that slows a walk beside them by no more than is light. It ranges from that of
/// the slowest walks and streams to that of the fastest.
fn light(loaded: &[[MeasuredFigure; 2]], others: usize) -> Option<MeasuredFigure> {
    // The slowest streams, which come first, show what another active core costs without reading.
    let base_ns = loaded.first()?[0].value;
    let most_ns = base_ns * (1.0 + (IMPACT_OF_ONE * others as f64).min(IMPACT_OF_ALL));
    let rate_at = |end: fn(&MeasuredFigure) -> f64| {
        let rate = |[ns, line]: &[MeasuredFigure; 2]| (1e3 / end(line) / others as f64, end(ns));
        rate_until(base_ns, loaded.iter().map(rate), most_ns)
    };
    Some(MeasuredFigure {
        value: rate_at(|ns| ns.value),
        low: rate_at(|ns| ns.high),
        high: rate_at(|ns| ns.low),
    })
}

/// The rate at which walks first take `most_ns`, between two measured ones; the greatest if none takes so long.
fn rate_until(base_ns: f64, walks: impl Iterator<Item = (f64, f64)>, most_ns: f64) -> f64 {
    let (mut rate, mut ns) = (0.0, base_ns);
    for (next_rate, next_ns) in walks {
        if next_ns > most_ns {
            return rate + (next_rate - rate) * (most_ns - ns) / (next_ns - ns);
        }
        (rate, ns) = (next_rate, next_ns);
    }
    rate
}

/// The steps of power. None is negative.
fn power(figures: &Figures<Probe>, cores: usize) -> Result<[MeasuredFigure; 4], String> {
    let watts = |cores| figures[&Probe::Power(cores)][0];
    let per_core = |from: usize, to: usize| {
        let cores = (to - from) as f64;
        watts(to).map(|more| (more - watts(from).value).max(0.0) / cores)
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

    fn figure(value: f64) -> MeasuredFigure {
        let (low, high) = (value * 0.9, value * 1.1);
        MeasuredFigure { value, low, high }
    }

    fn figures(all: &[(Probe, [f64; 2])]) -> Figures<Probe> {
        let both = |&(probe, both): &(Probe, [f64; 2])| (probe, both.map(figure));
        all.iter().map(both).collect()
    }

    fn value(found: &CalibrationFindings, key: &str) -> f64 {
        found.figures[key].value
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
        let mut found = CalibrationFindings::default();
        found.add_caches(&walks(&ends, 90.0), &REPORTED);
        for (key, expected) in [
            ("cache.l1_kb", 32.0),
            ("cache.l1_ns", 1.5),
            ("core_type.0.l2_kb", 1024.0),
            ("cache.l2_ns", 5.0),
            ("llc.mb", 32.0),
            ("llc.latency.hit_ns", 20.0),
        ] {
            assert_eq!(value(&found, key), expected, "{key}");
        }
        let MeasuredFigure { low, high, .. } = found.figures["llc.mb"];
        assert_eq!((low, high), (16.0, 128.0));
        let mut flat = CalibrationFindings::default();
        flat.add_caches(&walks(&[(2 << 20, 5.0)], 90.0), &REPORTED);
        assert!(flat.absent.contains_key("llc.mb") && !flat.figures.contains_key("llc.mb"));
    }

    #[test]
    fn probes_tell_rates_and_cores() {
        let mut found = CalibrationFindings::default();
        found.add_each(&figures(&[
            (Probe::Streams(1), [0.0, 8.0]),
            (Probe::Streams(2), [0.0, 4.0]),
            (Probe::Streams(4), [0.0, 5.0]),
            (Probe::Clock, [0.25, 0.0]),
            (Probe::Switch, [900.0, 0.0]),
            (Probe::Arithmetic { sibling: false }, [2.0, 0.0]),
            (Probe::Arithmetic { sibling: true }, [3.0, 0.0]),
        ]));
        // The greatest rate needs few cores.
        for (key, expected) in [
            (MU, 250.0),
            ("memory.gb_per_s_per_channel", 16.0),
            ("bandwidth.004_cores", 200.0),
            ("core_type.0.ghz", 4.0),
            ("kernel.switching.switch_us", 0.9),
            ("smt.issue_share", 0.5),
        ] {
            assert_eq!(value(&found, key), expected, "{key}");
        }
    }

    /// Walks that take these times beside streams of these rates.
    fn loaded(all: &[(f64, f64)]) -> Vec<[MeasuredFigure; 2]> {
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
        let points = curve(&loaded(&all), 400.0);
        assert_eq!(points[..3], [(0.0, 1.0), (0.5, 1.25), (0.75, 2.0)]);
        assert_eq!(points[3..], [(1.0, 1.0 + 1.0 / 0.75)]);
        // A noisy latency at a low rate.
        let all = [(100.0, 40.0), (110.0, 70.0), (105.0, 190.0)];
        let points = curve(&loaded(&all), 400.0);
        assert!(points[2].1 < 1.21, "{points:?}");
        assert!(curve(&loaded(&all[..1]), 400.0).is_empty());
        let exceeded = curve(&loaded(&all), 100.0);
        assert!(exceeded.is_sorted() && exceeded[exceeded.len() - 1].0 == 1.0);
    }

    #[test]
    fn a_light_job_is_found_between_two_rates() {
        let all = loaded(&[(100.0, 1.0), (102.0, 40.0), (106.0, 80.0), (180.0, 160.0)]);
        // One other core may cost 4 %: half-way between 2 and 6 %. Walks and streams may be 10 % slower or faster.
        let one = light(&all, 1).unwrap();
        assert!((one.value - 60.0).abs() < 1e-9);
        assert!((one.low - 0.4 / 1.1).abs() < 1e-9);
        assert!((one.high - (80.0 + 80.0 * 8.6 / 66.6) / 0.9).abs() < 1e-9);
        // Two may cost 8 %: 2/74 of the way to the last, for each half.
        let two = light(&all, 2).unwrap();
        assert!((two.value - (40.0 + 40.0 * 2.0 / 74.0)).abs() < 1e-9);
        assert_eq!(light(&all[..2], 1).unwrap().value, 40.0);
        assert_eq!(light(&[], 1), None);
    }

    /// The steps of a machine that draws these watts by its active cores.
    fn steps_of(watts: &[f64]) -> Result<[f64; 4], String> {
        let cores = watts.len() - 1;
        let states = watts.iter().enumerate();
        let all: Vec<_> = states
            .map(|(ix, watts)| (Probe::Power(ix), [*watts, 0.0]))
            .collect();
        let steps = power(&figures(&all), cores)?;
        Ok(steps.map(|step| step.value))
    }

    #[test]
    fn the_steps_of_the_machine_of_efs() {
        let found = steps_of(&[26.6, 49.2, 61.2, 73.5, 85.8]).unwrap();
        for (step, published) in found.iter().zip([26.6, 22.6, 12.0, 12.3]) {
            assert!((step - published).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(steps_of(&[20.0, 30.0]).unwrap(), [20.0, 10.0, 10.0, 10.0]);
        assert_eq!(steps_of(&[20.0, 30.0, 25.0]).unwrap()[2], 0.0);
        assert!(steps_of(&[9.0; 5]).unwrap_err().contains("does not show"));
    }
}
