//! The search against trying everything.

use super::*;
use crate::model::contention::Latency;
use crate::rng::Rng;

/// Exchanges as long as the prediction of the whole set rises: slow, and obvious.
fn slowly(shared: &Contention, candidates: &[Candidate], places: &[Place]) -> f64 {
    let mut search = Search::new(shared, candidates, places);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| candidates[b].weight.total_cmp(&candidates[a].weight));
    let mut who: Vec<Option<usize>> = (0..places.len()).map(|place| order.get(place).copied()).collect();
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
                match who.iter().position(|there| other.is_some() && *there == other) {
                    Some(there) => who.swap(place, there),
                    None => who[place] = other,
                }
                let now = sum_of(&who);
                let least = if other.is_none() { IDLE_GAIN } else { LEAST_GAIN };
                if now > best * (1.0 + least) { best = now } else { who = kept }
            }
        }
        if best <= before * 1.001 {
            return best;
        }
    }
}

fn candidates(rng: &mut Rng, count: usize, shared: &Contention) -> Vec<Candidate> {
    let mut random = |most: u64| rng.below(most) as f64 / most as f64;
    (0..count as u32)
        .map(|ix| {
            let heavy = if random(10) < 0.3 { 0.03 * random(100) } else { 0.001 * random(100) };
            let asks = Asks {
                own: 0.3 + 0.5 * random(100),
                penalty: 20.0 + 80.0 * random(100),
                l1: 0.2 + 0.3 * random(100),
                llc: 2.0 * heavy,
                reads: heavy,
                steepness: 0.6 * random(100),
                ghz: 2.4,
            };
            let weight = libm::exp(-3.0 * random(100));
            Candidate { ix, weight, asks, solo_cpi: asks.solo_cpi(shared), last: None, fixed: None }
        })
        .collect()
}

fn places(cores: usize, threads: usize) -> Vec<Place> {
    (0..cores * threads).map(|cpu| Place { core: cpu % cores, llc: 0, domain: 0 }).collect()
}

#[test]
fn it_is_about_as_good_as_trying_everything() {
    let (mut worst, mut sum, mut count) = (f64::INFINITY, 0.0, 0.0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let most = [0.1, 0.2, 0.5][seed as usize % 3];
        let shared = Contention { memory: Latency { most: Some(most), rise: 0.2 }, ..Contention::default() };
        let candidates = candidates(&mut rng, 24, &shared);
        let places = places(6, 2);
        let (who, left_out) = Search::new(&shared, &candidates, &places).run();
        let mut found = Search::new(&shared, &candidates, &places);
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
        let shared = Contention { memory: Latency { most: Some(0.2), rise: 0.2 }, ..Contention::default() };
        let mut candidates = candidates(&mut rng, 9, &shared);
        candidates[4].fixed = Some(3);
        candidates[7].last = Some(5);
        let places = places(3, 2);
        let (who, _) = Search::new(&shared, &candidates, &places).run();
        assert_eq!(who[3], Some(4));
        let mut runs: Vec<usize> = who.iter().flatten().copied().collect();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs.len(), who.iter().flatten().count());
    }
}

#[test]
fn a_cpu_is_left_idle_where_one_more_job_would_cost_more_than_it_gains() {
    // Two that compute weigh much, the third hardly anything, and siblings cost a lot.
    let shared = Contention { alpha: 0.8, ..Contention::default() };
    let asks = Asks { own: 0.5, l1: 0.3, ghz: 2.0, ..Asks::default() };
    let job = |ix, weight| Candidate { ix, weight, asks, solo_cpi: 0.5, last: None, fixed: None };
    let candidates = [job(0, 1.0), job(1, 1.0), job(2, 0.01)];
    let (who, left_out) = Search::new(&shared, &candidates, &places(2, 2)).run();
    assert_eq!(who.iter().flatten().count(), 2);
    assert_eq!(left_out.iter().map(|left| left.candidate).collect::<Vec<_>>(), [2]);
    // The same with equal weights: all run.
    let candidates = [job(0, 1.0), job(1, 1.0), job(2, 1.0)];
    let (who, _) = Search::new(&shared, &candidates, &places(2, 2)).run();
    assert_eq!(who.iter().flatten().count(), 3);
}

#[test]
fn nothing_to_fill_and_nobody_to_run() {
    let shared = Contention::default();
    assert_eq!(Search::new(&shared, &[], &places(2, 1)).run().0, [None, None]);
    assert!(Search::new(&shared, &[], &[]).run().0.is_empty());
}
