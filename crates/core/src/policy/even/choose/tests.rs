//! Compares the search with trying all sets.

use super::*;
use crate::model::contention::{Latency, PhaseDemand, SiblingEffect};
use crate::model::power::PowerModel;
use crate::rng::Rng;
use crate::snapshot::{LastCpi, Measured};
use std::sync::LazyLock;

static MODEL: LazyLock<PowerModel> =
    LazyLock::new(|| PowerModel::new([26.6, 22.6, 12.0, 12.3]).unwrap());

/// What a job asks that reads nothing from memory.
fn light() -> PhaseDemand {
    PhaseDemand {
        own: 0.5,
        l1: 0.1,
        ghz: 2.0,
        ..PhaseDemand::default()
    }
}

fn priced<'a>(
    price: f64,
    shared: &'a Contention,
    candidates: &'a [JobCandidate<'a>],
    places: &'a [CpuPlace],
) -> Search<'a> {
    let is_one = places.iter().all(|place| place.kind == 0);
    let model = if is_one {
        Model::Cores(&MODEL)
    } else {
        Model::Types {
            idle_w: 3.0,
            nj: [5.0, 2.0],
        }
    };
    Search::new(
        shared,
        candidates,
        places,
        Power {
            model,
            price,
            elsewhere: &[0, 0],
        },
    )
}

/// Power costs nothing.
fn free_power<'a>(
    shared: &'a Contention,
    candidates: &'a [JobCandidate<'a>],
    places: &'a [CpuPlace],
) -> Search<'a> {
    priced(0.0, shared, candidates, places)
}

/// Exchanges while the prediction of the whole set rises: slow and obvious.
fn slowly(shared: &Contention, candidates: &[JobCandidate], places: &[CpuPlace]) -> f64 {
    let mut search = free_power(shared, candidates, places);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| candidates[b].weight.total_cmp(&candidates[a].weight));
    let mut who: Vec<Option<usize>> = (0..places.len())
        .map(|place| order.get(place).copied())
        .collect();
    let mut sum_of = |who: &[Option<usize>]| {
        search.who = who.to_vec();
        search.settle()
    };
    let mut best = sum_of(&who);
    loop {
        let before = best;
        for place in 0..places.len() {
            for other in (0..candidates.len()).map(Some).chain([None]) {
                let kept = who.clone();
                match who
                    .iter()
                    .position(|there| other.is_some() && *there == other)
                {
                    Some(there) => who.swap(place, there),
                    None => who[place] = other,
                }
                let now = sum_of(&who);
                let least = if other.is_none() { NOISE } else { LEAST_GAIN };
                if now > best * (1.0 + least) {
                    best = now
                } else {
                    who = kept
                }
            }
        }
        if best <= before * 1.001 {
            return best;
        }
    }
}

/// A job with its weight.
type Job = (f64, Learnt);

fn learnt(asks: PhaseDemand, solo_cpi: f64) -> Learnt {
    Learnt {
        asks,
        solo_cpi,
        slower: Vec::new(),
        error: 0.01,
        measured: Measured::Phase,
        progress: 1.0,
        last: None,
        phase: 0,
    }
}

fn candidates(jobs: &[Job]) -> Vec<JobCandidate<'_>> {
    (0..)
        .zip(jobs)
        .map(|(ix, (weight, learnt))| JobCandidate {
            ix,
            weight: *weight,
            learnt,
            last: None,
            runs: false,
            home: None,
            fixed: None,
            is_critical: false,
        })
        .collect()
}

fn random_jobs(rng: &mut Rng, count: usize, shared: &Contention) -> Vec<Job> {
    let mut random = |most: u64| rng.below(most) as f64 / most as f64;
    (0..count)
        .map(|_| {
            let heavy = if random(10) < 0.3 {
                0.03 * random(100)
            } else {
                0.001 * random(100)
            };
            let asks = PhaseDemand {
                own: 0.3 + 0.5 * random(100),
                penalty: 20.0 + 80.0 * random(100),
                l1: 0.2 + 0.3 * random(100),
                llc: 2.0 * heavy,
                reads: heavy,
                steepness: 0.6 * random(100),
                ghz: 2.4,
                ..PhaseDemand::default()
            };
            let weight = libm::exp(-3.0 * random(100));
            let slow = PhaseDemand {
                own: asks.own * (1.0 + random(100)),
                penalty: 0.5 * asks.penalty,
                ghz: 1.2,
                ..asks
            };
            (
                weight,
                Learnt {
                    slower: vec![slow],
                    ..learnt(asks, asks.solo_cpi(shared))
                },
            )
        })
        .collect()
}

fn places(cores: usize, threads: usize) -> Vec<CpuPlace> {
    (0..cores * threads)
        .map(|cpu| CpuPlace {
            core: cpu % cores,
            llc: 0,
            domain: 0,
            kind: 0,
            awake: false,
        })
        .collect()
}

#[test]
fn it_is_about_as_good_as_trying_everything() {
    let (mut worst, mut sum, mut count) = (f64::INFINITY, 0.0, 0.0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let most = [0.1, 0.2, 0.5][seed as usize % 3];
        let shared = Contention {
            memory: Latency {
                most: Some(most),
                rise: 0.2,
            },
            ..Contention::default()
        };
        let jobs = random_jobs(&mut rng, 24, &shared);
        let candidates = candidates(&jobs);
        let places = places(6, 2);
        let Chosen { who, left_out, .. } = free_power(&shared, &candidates, &places).run();
        let mut found = free_power(&shared, &candidates, &places);
        found.who.clone_from(&who);
        let ratio = found.settle() / slowly(&shared, &candidates, &places);
        (worst, sum, count) = (f64::min(worst, ratio), sum + ratio, count + 1.0);
        let runs = who.iter().flatten().count();
        assert_eq!(runs + left_out.len(), 24);
    }
    assert!(worst > 0.9 && sum / count > 0.98, "{worst} {}", sum / count);
}

#[test]
fn those_that_stay_stay_and_nobody_runs_twice() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let shared = Contention {
            memory: Latency {
                most: Some(0.2),
                rise: 0.2,
            },
            ..Contention::default()
        };
        let jobs = random_jobs(&mut rng, 9, &shared);
        let mut candidates = candidates(&jobs);
        candidates[4].fixed = Some(3);
        candidates[7].last = Some(5);
        let places = places(3, 2);
        let Chosen { who, .. } = free_power(&shared, &candidates, &places).run();
        assert_eq!(who[3], Some(4));
        let mut runs: Vec<usize> = who.iter().flatten().copied().collect();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs.len(), who.iter().flatten().count());
    }
}

#[test]
fn a_cpu_is_left_idle_where_one_more_job_would_cost_more_than_it_gains() {
    // Two jobs that compute have great weights, the third hardly any, and siblings cost a lot.
    let shared = Contention::default();
    let asks = PhaseDemand {
        own: 0.5,
        l1: 0.3,
        ghz: 2.0,
        time: SiblingEffect {
            sensitivity: 1.0,
            pressure: 0.8,
        },
        ..PhaseDemand::default()
    };
    let jobs = [1.0, 1.0, 0.01].map(|weight| (weight, learnt(asks, 0.5)));
    let first = candidates(&jobs);
    let Chosen { who, left_out, .. } = free_power(&shared, &first, &places(2, 2)).run();
    assert_eq!(who.iter().flatten().count(), 2);
    assert_eq!(
        left_out
            .iter()
            .map(|left| left.candidate)
            .collect::<Vec<_>>(),
        [2]
    );
    // The same with equal weights: all run.
    let jobs = [1.0; 3].map(|weight| (weight, learnt(asks, 0.5)));
    let candidates = candidates(&jobs);
    let Chosen { who, .. } = free_power(&shared, &candidates, &places(2, 2)).run();
    assert_eq!(who.iter().flatten().count(), 3);
}

#[test]
fn nothing_to_fill_and_nobody_to_run() {
    let shared = Contention::default();
    assert_eq!(
        free_power(&shared, &[], &places(2, 1)).run().who,
        [None, None]
    );
    assert!(free_power(&shared, &[], &[]).run().who.is_empty());
}

#[test]
fn jobs_that_read_run_at_their_memory_while_it_has_places_and_is_not_full() {
    let asks = PhaseDemand {
        llc: 0.02,
        reads: 0.02,
        penalty: 30.0,
        ..light()
    };
    let jobs: Vec<Job> = (0..3).map(|_| (1.0, learnt(asks, 0.5))).collect();
    let mut candidates = candidates(&jobs);
    for (at, one) in candidates.iter_mut().enumerate() {
        (one.home, one.last) = (Some(1), Some(at));
    }
    let mut places = places(4, 1);
    for place in &mut places[2..] {
        place.domain = 1;
    }
    let away = |shared: &Contention| {
        let Chosen { who, .. } = free_power(shared, &candidates, &places).run();
        (
            who[..2].iter().flatten().count(),
            who[2..].iter().flatten().count(),
        )
    };
    let wide = Contention::default();
    assert_eq!(away(&wide), (1, 2), "the third has no place at home");
    // A read from far away is worth nothing: it runs at home, or not at all.
    let far = Contention { far: 1e3, ..wide };
    assert_eq!(away(&far).1, 2);
}

/// The greatest sum of all sets, with its work.
fn by_trying_all(
    price: f64,
    shared: &Contention,
    candidates: &[JobCandidate],
    places: &[CpuPlace],
) -> (f64, f64) {
    let mut search = priced(price, shared, candidates, places);
    let mut best = (f64::NEG_INFINITY, 0.0);
    let choices = candidates.len() + 1;
    for number in 0..choices.pow(places.len() as u32) {
        let mut rest = number;
        for place in 0..places.len() {
            search.who[place] = (rest % choices).checked_sub(1);
            rest /= choices;
        }
        let mut runs: Vec<usize> = search.who.iter().flatten().copied().collect();
        let count = runs.len();
        runs.sort_unstable();
        runs.dedup();
        if runs.len() == count {
            let sum = search.settle();
            best = if sum > best.0 {
                (sum, search.work)
            } else {
                best
            };
        }
    }
    best
}

#[test]
fn where_power_has_a_price_it_is_nearly_as_good_as_trying_all_sets() {
    let (mut worst, mut idle) = (0.0f64, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let most = [0.05, 0.1, 0.3][seed as usize % 3];
        let shared = Contention {
            memory: Latency {
                most: Some(most),
                rise: 0.2,
            },
            ..Contention::default()
        };
        let jobs = random_jobs(&mut rng, 5, &shared);
        let candidates = candidates(&jobs);
        let places = if seed % 2 == 0 {
            places(2, 2)
        } else {
            places(4, 1)
        };
        let price = [0.002, 0.01, 0.02][seed as usize / 3 % 3];
        let chosen = priced(price, &shared, &candidates, &places).run();
        let (sum, work) = by_trying_all(price, &shared, &candidates, &places);
        worst = worst.max((sum - (chosen.work - price * chosen.watts)) / work.max(0.1));
        let active = chosen
            .who
            .iter()
            .zip(&places)
            .filter(|(who, _)| who.is_some())
            .map(|(_, place)| place.core);
        idle += usize::from(
            active.collect::<std::collections::BTreeSet<_>>().len()
                < places.len() / if seed % 2 == 0 { 2 } else { 1 },
        );
    }
    assert!(worst < 0.05, "{worst}");
    assert!(idle > 10 && idle < 55, "{idle}");
}

#[test]
fn a_core_that_is_awake_anyway_costs_no_power() {
    let shared = Contention::default();
    let asks = light();
    let jobs = [(1.0, learnt(asks, 0.5))];
    let candidates = candidates(&jobs);
    let runs = |awake: bool| {
        let place = CpuPlace {
            core: 0,
            llc: 0,
            domain: 0,
            kind: 0,
            awake,
        };
        let chosen = priced(0.1, &shared, &candidates, &[place]).run();
        (chosen.who[0].is_some(), chosen.watts)
    };
    // A speed of 1, and 22.6 W at a tenth each.
    assert_eq!(runs(false), (false, 26.6));
    assert_eq!(runs(true), (true, 26.6));
}

#[test]
fn a_large_machine_leaves_cores_idle_too() {
    let shared = Contention::default();
    let asks = light();
    let jobs: Vec<Job> = (0..200)
        .map(|ix| (if ix < 60 { 1.0 } else { 0.1 }, learnt(asks, 0.5)))
        .collect();
    let candidates = candidates(&jobs);
    let places = places(50, 2);
    // A job is worth 1, two of a core about 1.3 together, and a core costs 12.3 W.
    let active = |price: f64| {
        let chosen = priced(price, &shared, &candidates, &places).run();
        let cores = chosen
            .who
            .iter()
            .zip(&places)
            .filter(|(who, _)| who.is_some())
            .map(|(_, place)| place.core);
        cores.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(active(0.0), 50);
    assert_eq!(active(0.05), 50);
    assert!((28..=32).contains(&active(0.08)), "{}", active(0.08));
    assert!(active(0.2) <= 1, "{}", active(0.2));
}

#[test]
fn on_a_large_machine_those_that_are_behind_take_the_places_of_those_that_run() {
    let shared = Contention::default();
    let jobs: Vec<Job> = (0..200)
        .map(|ix| (if ix < 100 { 0.1 } else { 1.0 }, learnt(light(), 0.5)))
        .collect();
    let mut candidates = candidates(&jobs);
    for (ix, one) in candidates.iter_mut().enumerate() {
        (one.last, one.runs) = (Some(ix % 100), ix < 100);
    }
    let places = places(100, 1);
    let chosen = free_power(&shared, &candidates, &places).run();
    assert!(
        chosen.who.iter().all(|who| who.is_some_and(|at| at >= 100)),
        "{:?}",
        chosen.who
    );
    // Where all are alike, nobody moves.
    for one in &mut candidates {
        one.weight = 1.0;
    }
    let chosen = free_power(&shared, &candidates, &places).run();
    assert!(
        chosen
            .who
            .iter()
            .enumerate()
            .all(|(place, who)| *who == Some(place))
    );
}

/// Cores of alternating types, the first one fast.
fn two_types(cores: usize, threads: usize) -> Vec<CpuPlace> {
    places(cores, threads)
        .into_iter()
        .map(|place| CpuPlace {
            kind: place.core % 2,
            ..place
        })
        .collect()
}

#[test]
fn with_two_types_of_core_it_is_nearly_as_good_as_trying_all_sets() {
    let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
    for seed in 0..90 {
        let mut rng = Rng::new(seed);
        let most = [0.05, 0.1, 0.3][seed as usize % 3];
        let shared = Contention {
            memory: Latency {
                most: Some(most),
                rise: 0.2,
            },
            ..Contention::default()
        };
        let jobs = random_jobs(&mut rng, 3 + seed as usize % 3, &shared);
        let candidates = candidates(&jobs);
        let places = if seed % 2 == 0 {
            two_types(2, 2)
        } else {
            two_types(4, 1)
        };
        let price = [0.0, 0.005, 0.02][seed as usize / 3 % 3];
        let chosen = priced(price, &shared, &candidates, &places).run();
        let (best, work) = by_trying_all(price, &shared, &candidates, &places);
        let off = (best - (chosen.work - price * chosen.watts)) / work.max(0.3);
        (worst, sum, count) = (worst.max(off), sum + off, count + 1.0);
    }
    assert!(
        worst < 0.08 && sum / count < 0.005,
        "{worst} {}",
        sum / count
    );
}

#[test]
fn a_fast_core_is_for_whom_it_helps_most_whatever_the_machine_s_size() {
    let shared = Contention::default();
    let job = |slower: f64| {
        let asks = light();
        (
            1.0,
            Learnt {
                slower: vec![PhaseDemand {
                    own: 0.5 * slower,
                    ghz: 1.0,
                    ..asks
                }],
                ..learnt(asks, 0.5)
            },
        )
    };
    for cores in [4, 100] {
        // Every other job does as much per cycle on a slow core as on a fast one, the others half as much.
        let jobs: Vec<Job> = (0..cores)
            .map(|ix| job(if ix % 2 == 0 { 1.0 } else { 2.0 }))
            .collect();
        let candidates = candidates(&jobs);
        let places = two_types(cores, 1);
        let chosen = free_power(&shared, &candidates, &places).run();
        for (place, who) in places.iter().zip(&chosen.who) {
            assert_eq!(
                who.map(|at| at % 2),
                Some(1 - place.kind),
                "{:?}",
                chosen.who
            );
        }
        assert!(
            (chosen.work - 0.75 * cores as f64).abs() < 1e-6 * cores as f64,
            "{}",
            chosen.work
        );
    }
}

#[test]
fn a_slow_core_is_as_slow_as_it_is_however_little_the_model_of_co_runners_is_trusted() {
    let fast = light();
    let slow = PhaseDemand {
        own: 0.6,
        ghz: 0.5,
        ..fast
    };
    let places = [1, 0].map(|kind| CpuPlace {
        core: kind,
        llc: 0,
        domain: 0,
        kind,
        awake: false,
    });
    for (trust, last_type) in [(0.0, 0), (0.0, 1), (0.5, 0), (0.5, 1), (1.0, 1)] {
        let shared = Contention {
            trust,
            ..Contention::default()
        };
        let there = [fast, slow][last_type].solo_cpi(&shared);
        let mut job = learnt(fast, fast.solo_cpi(&shared));
        job.slower = vec![slow];
        job.last = Some(LastCpi {
            counted: there,
            modelled: there,
            core_type: last_type,
        });
        let jobs = [(1.0, job)];
        let candidates = candidates(&jobs);
        let work_on = |places: &[CpuPlace]| free_power(&shared, &candidates, places).run().work;
        let ratio = 0.5 / 0.6 * 0.5 / 2.0;
        assert!((work_on(&places[1..]) - 1.0).abs() < 0.01);
        assert!((work_on(&places[..1]) - ratio).abs() < 0.01);
        let both = free_power(&shared, &candidates, &places).run();
        assert_eq!(both.who, [None, Some(0)]);
    }
}
