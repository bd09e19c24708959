//! The controller in worlds whose W(n) is known.

use super::*;
use crate::rng::Rng;
use proptest::prelude::*;

/// A batch of tasks that do one unit of work each, at the speed of 1 / W(n) while n are live.
struct World<'a> {
    /// W(n).
    time: &'a dyn Fn(usize) -> f64,
    full: usize,
    tasks: usize,
    /// Spread of the work, as a logarithm.
    noise: f64,
    /// Growth of the work from the first to the last task, as a logarithm.
    trend: f64,
}

/// What came of a batch.
struct Came {
    /// Time of the batch.
    time: f64,
    at_once: AtOnceLearner,
    /// The least number at once.
    least: usize,
}

impl World<'_> {
    fn work(&self, id: usize, rng: &mut Rng) -> f64 {
        // A sum of uniform numbers is nearly normal.
        let normal: f64 = (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0;
        let trend = self.trend * id as f64 / self.tasks as f64;
        libm::exp(self.noise * normal + trend)
    }

    fn run(&self, known: &[RateAt], is_on: bool, seed: u64) -> Came {
        let mut rng = Rng::new(seed);
        let mut spec = TaskSpec::new(0, "t");
        spec.program = Some("t".into());
        let mut at_once = AtOnceLearner::new(self.full, known, self.tasks);
        let mut live: Vec<(usize, f64, f64)> = Vec::new();
        let (mut now, mut next, mut least) = (0.0, 0, self.full);
        while next < self.tasks || !live.is_empty() {
            let limit = if is_on { at_once.limit() } else { self.full };
            let first = next;
            while live.len() < limit && next < self.tasks {
                live.push((next, self.work(next, &mut rng), now));
                next += 1;
            }
            least = least.min(limit);
            at_once.admitted(live.len(), std::iter::empty());
            for id in first..next {
                spec.id = TaskId(id as u32);
                at_once.admitted(live.len(), std::iter::once(&spec));
            }
            let time = (self.time)(live.len());
            let left = live.iter().map(|task| task.1);
            let span = left.fold(f64::INFINITY, f64::min);
            now += span * time;
            live.iter_mut().for_each(|task| task.1 -= span);
            let place = live.iter().position(|task| task.1 <= 1e-9).unwrap();
            let (id, _, started) = live.remove(place);
            let time = Nanos::from_s(now - started);
            let cpu = Reading::Value(time);
            at_once.ended(TaskId(id as u32), time, cpu, self.tasks - next);
        }
        Came {
            time: now,
            at_once,
            least,
        }
    }
}

fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// W(n) with a memory that serves `served` at once, and loses the share `loss` for each further one.
fn memory(served: f64, loss: f64) -> impl Fn(usize) -> f64 {
    move |n| {
        let over = (n as f64 / served).max(1.0);
        over * (1.0 + loss * (n as f64 - served).max(0.0))
    }
}

#[test]
fn where_fewer_end_sooner_it_finds_them_and_later_runs_begin_there() {
    let time = memory(6.0, 0.05);
    let world = World {
        time: &time,
        full: 16,
        tasks: 2_000,
        noise: 0.05,
        trend: 0.0,
    };
    for seed in 1..=10 {
        let (on, off) = (world.run(&[], true, seed), world.run(&[], false, seed));
        let best = on.at_once.base.jobs;
        assert!((5..=8).contains(&best), "seed {seed}: {best}");
        assert!(on.time < 0.8 * off.time, "seed {seed}");
        let known = on.at_once.learnt();
        let few = World { tasks: 16, ..world };
        let (told, untold) = (few.run(&known, true, seed), few.run(&[], true, seed));
        assert_eq!(untold.least, 16, "too few to try");
        assert!(told.time < 0.9 * untold.time, "seed {seed}");
    }
}

/// The memory is saturated: fewer at once are as fast, and use less CPU time.
#[test]
fn where_the_rate_is_flat_it_saves_cpu_time() {
    let time = memory(8.0, 0.0);
    for seed in 1..=10 {
        let world = World {
            time: &time,
            full: 16,
            tasks: 3_000,
            noise: 0.012,
            trend: 0.0,
        };
        let (on, off) = (world.run(&[], true, seed), world.run(&[], false, seed));
        let best = on.at_once.base.jobs;
        assert!((8..16).contains(&best), "seed {seed}: {best}");
        assert!(on.time < 1.015 * off.time, "seed {seed}");
    }
}

/// What earlier runs found no longer holds.
#[test]
fn from_too_few_it_comes_back() {
    let of = |jobs, rate| RateAt {
        jobs,
        rate,
        cpu: None,
        ends: 9,
    };
    let known = [of(2, 2.0), of(8, 1.0)];
    let world = World {
        time: &|_| 1.0,
        full: 8,
        tasks: 2_000,
        noise: 0.05,
        trend: 0.0,
    };
    for seed in 1..=10 {
        let came = world.run(&known, true, seed);
        assert_eq!((came.least, came.at_once.base.jobs), (2, 8), "seed {seed}");
    }
}

/// Tasks that fail tell nothing: a trial does not wait for one that succeeds.
#[test]
fn a_failure_ends_a_trial_and_counts() {
    let mut spec = TaskSpec::new(0, "t");
    spec.program = Some("t".into());
    let mut at_once = AtOnceLearner::new(4, &[], 2_000);
    for id in 0..2_000 {
        spec.id = TaskId(id);
        at_once.admitted(4, std::iter::once(&spec));
        if id < 3 {
            continue;
        }
        let (time, left) = (Nanos::from_s(1.0), 1_999 - id as usize);
        at_once.ended(TaskId(id - 3), time, Reading::Value(time), left);
        if at_once.limit() == 3 {
            at_once.give_up();
            assert_eq!((at_once.limit(), at_once.failures), (4, 1));
            assert!(at_once.spent > 0.0);
            return;
        }
    }
    panic!("nothing was tried");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Nothing is ever gained: it never narrows for good, and what it tries costs at most two hundredths of the time.
    #[test]
    fn where_tasks_do_not_disturb_each_other_it_keeps_full_width(
        full in 2_usize..32,
        generations in 1_usize..120,
        noise in 0.0..0.8,
        trend in -1.0..1.0,
    ) {
        let time = |_: usize| 1.0;
        let world = World { time: &time, full, tasks: full * generations, noise, trend };
        let (mut on, mut off) = (0.0, 0.0);
        for seed in 1..=10 {
            let came = world.run(&[], true, seed);
            prop_assert_eq!(came.at_once.base.jobs as usize, full);
            on += came.time;
            off += world.run(&[], false, seed).time;
        }
        prop_assert!(on <= 1.02 * off, "{} {}", on, off);
    }
}
