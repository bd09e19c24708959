//! The learner against worlds that its own model makes, so that the truth is known.

use super::*;
use crate::counter::Counter;
use crate::model::contention::{Latency, Prediction, Seat};
use crate::placement::Purpose;
use crate::rng::Rng;
use crate::sample::{Counts, Usage};
use crate::topology::{Cpu, CpuId, CpuSet};
use crate::traffic::TrafficRates;

const Q: u64 = 200_000_000;

fn truth() -> Contention {
    Contention {
        alpha: 0.35,
        beta: 0.9,
        hit: 0.17,
        memory: Latency {
            most: Some(0.12),
            rise: 0.25,
        },
    }
}

/// Twelve jobs, from those that compute to those that only read.
fn jobs() -> Vec<Asks> {
    (0..12u32)
        .map(|n| {
            let reads = [0.0, 0.0002, 0.001, 0.003, 0.008, 0.016][n as usize % 6];
            Asks {
                own: 0.3 + 0.04 * f64::from(n),
                penalty: 30.0 + 6.0 * f64::from(n),
                l1: 0.25 + 0.02 * f64::from(n),
                llc: 2.5 * reads,
                reads,
                steepness: 0.1 + 0.05 * f64::from(n % 5),
                ghz: 2.4,
            }
        })
        .collect()
}

/// What a job asks for on a type of core: on the slow one it takes half again to twice the cycles in the core, at half of
/// the clock.
fn on_type(asks: &Asks, core_type: usize) -> Asks {
    if core_type == 0 {
        return *asks;
    }
    Asks {
        own: asks.own * (1.5 + 0.5 * asks.own),
        penalty: 0.6 * asks.penalty,
        ghz: 1.2,
        ..*asks
    }
}

struct World {
    machine: Machine,
    jobs: Vec<Asks>,
    learner: Learner,
    now: u64,
    rng: Rng,
    /// Solo time of what each job has executed, in quanta.
    progress: Vec<f64>,
    noise: f64,
    /// It is not counted.
    missing: Option<Counter>,
}

impl World {
    fn new(noise: f64) -> World {
        World::on(Machine::uniform("world", 3, 2), noise)
    }

    /// Of its cores the last is slow, which the kernel says or not.
    fn on_two_types(noise: f64, capacity: Option<u32>) -> World {
        let mut machine = Machine::uniform("two types", 3, 2);
        machine
            .cpus
            .iter_mut()
            .filter(|cpu| cpu.core == 2)
            .for_each(|cpu| cpu.core_type = 1);
        let kind = |name: &str, capacity| CoreType {
            name: name.to_owned(),
            capacity,
            max_khz: None,
        };
        machine.core_types = vec![kind("big", capacity.map(|_| 1024)), kind("small", capacity)];
        World::on(machine, noise)
    }

    fn on(machine: Machine, noise: f64) -> World {
        let jobs = jobs();
        let mut learner = Learner::new(&machine.core_types, Nanos(Q));
        (0..jobs.len() as u32).for_each(|job| learner.begin(TaskId(job), 1, 0.0, None));
        World {
            machine,
            progress: vec![0.0; jobs.len()],
            jobs,
            learner,
            now: 0,
            rng: Rng::new(5),
            noise,
            missing: None,
        }
    }

    /// Lets jobs run on CPUs for some time; with `alone` as a measurement, a core each.
    fn run(&mut self, placed: &[(u32, u32)], ns: u64, alone: bool) {
        let seats: Vec<Seat> = placed
            .iter()
            .map(|&(job, cpu)| {
                let Cpu {
                    core, core_type, ..
                } = self.machine.cpus[cpu as usize];
                Seat {
                    asks: on_type(&self.jobs[job as usize], core_type),
                    core,
                    llc: 0,
                    domain: 0,
                }
            })
            .collect();
        let mut prediction = Prediction::default();
        prediction.make(&truth(), &seats);
        self.now += ns;
        let mut samples = Vec::new();
        for ((&(job, cpu), seat), done) in placed.iter().zip(&seats).zip(&prediction.jobs) {
            let (fast, asks) = (self.jobs[job as usize], seat.asks);
            let instructions = asks.ghz * ns as f64 / done.cpi;
            self.progress[job as usize] +=
                instructions * fast.solo_cpi(&truth()) / fast.ghz / Q as f64;
            let mut noisy = |count: f64| {
                let off = (self.rng.below(2_001) as f64 / 1_000.0 - 1.0) * self.noise;
                Reading::Value((count * (1.0 + off)) as u64)
            };
            let mut counts = Usage::zero(TaskId(job)).counts;
            counts[Counter::Cycles] = noisy(asks.ghz * ns as f64);
            counts[Counter::Instructions] = noisy(instructions);
            counts[Counter::L1Accesses] = noisy(instructions * asks.l1);
            counts[Counter::LlcAccesses] = noisy(instructions * asks.llc);
            counts[Counter::MmReads] = noisy(done.reads * ns as f64);
            if let Some(counter) = self.missing {
                counts[counter] = Reading::Absent(Absence::NoSuchEvent);
            }
            samples.push(sample(job, CpuId(cpu), self.now, ns, counts, alone));
        }
        self.learner.observe(&self.machine, &samples);
    }

    /// Quanta of random sets, with a measurement of three jobs now and then.
    fn mix(&mut self, quanta: u32, measures: bool) {
        for n in 0..quanta {
            let mut order: Vec<u32> = (0..self.jobs.len() as u32).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, self.rng.below(at as u64 + 1) as usize);
            }
            let placed: Vec<(u32, u32)> = order.iter().copied().take(6).zip(0..).collect();
            self.run(&placed, Q, false);
            if measures && n % 8 == 0 {
                let three: Vec<(u32, u32)> =
                    (0..3).map(|core| ((n / 8 * 3 + core) % 12, core)).collect();
                self.run(&three, 20_000_000, true);
            }
        }
    }

    /// The greatest relative errors of the CPI alone, and of progress.
    fn errors(&self) -> (f64, f64) {
        let (mut cpi, mut progress) = (0.0f64, 0.0f64);
        for (job, asks) in self.jobs.iter().enumerate() {
            let known = self.learner.known(TaskId(job as u32)).value().unwrap();
            cpi = cpi.max((known.solo_cpi / asks.solo_cpi(&truth()) - 1.0).abs());
            progress = progress.max((known.progress / self.progress[job] - 1.0).abs());
        }
        (cpi, progress)
    }
}

fn sample(job: u32, cpu: CpuId, at: u64, ns: u64, counts: Counts, alone: bool) -> Sample {
    Sample {
        task: TaskId(job),
        at: Nanos(at),
        interval: Nanos(ns),
        planned: Nanos(ns),
        purpose: if alone {
            Purpose::MeasureAlone
        } else {
            Purpose::Run
        },
        cpus: CpuSet::from_iter([cpu]),
        whole_core: alone,
        co_runners: [TaskId(job)].into(),
        disturbed: false,
        cpu_time: Reading::Value(Nanos(ns)),
        counts,
        multiplexed: false,
        traffic: TrafficRates::absent(Absence::NotRequested),
        observed: false,
    }
}

#[test]
fn with_measurements_it_learns_what_jobs_do_alone() {
    for noise in [0.0, 0.01, 0.05] {
        let mut world = World::new(noise);
        world.mix(80, true);
        let (cpi, progress) = world.errors();
        assert!(
            cpi < 0.06 + noise && progress < 0.06 + noise,
            "noise {noise}: CPI {cpi}, progress {progress}"
        );
        let shared = world.learner.shared();
        assert!(
            (shared.alpha - 0.35).abs() < 0.2 && shared.memory.most.is_some(),
            "{shared:?}"
        );
    }
}

#[test]
fn progress_is_that_alone_on_the_fastest_core_wherever_a_job_runs() {
    for (noise, capacity) in [(0.0, None), (0.01, Some(350))] {
        let mut world = World::on_two_types(noise, capacity);
        world.mix(160, true);
        let (cpi, progress) = world.errors();
        assert!(
            cpi < 0.1 && progress < 0.1,
            "noise {noise}: CPI {cpi}, progress {progress}"
        );
        for (job, asks) in (0..).zip(&world.jobs) {
            let known = world.learner.known(TaskId(job)).value().unwrap();
            let (slow, slower) = (on_type(asks, 1), known.slower[0]);
            let off = slower.solo_cpi(&truth()) / slow.solo_cpi(&truth()) - 1.0;
            assert!(
                off.abs() < 0.15 && (slower.ghz / 1.2 - 1.0).abs() < 0.05,
                "{job}: {off} {slower:?}"
            );
            assert_eq!(known.asks_on(1), &slower);
            assert!((known.solo_ns() - known.solo_cpi / known.asks.ghz).abs() < 1e-12);
        }
    }
}

#[test]
fn what_was_learnt_on_a_type_of_core_that_is_not_there_is_dropped() {
    let mut world = World::on_two_types(0.0, None);
    world.mix(80, true);
    let kept = world.kept();
    assert!(
        kept.iter()
            .flatten()
            .flat_map(|earlier| &earlier.phases)
            .any(|phase| phase.core_type == 1)
    );
    let mut later = World::knowing(0.0, &kept);
    for job in 0..12 {
        let known = later.learner.known(TaskId(job)).value();
        assert!(known.is_none_or(|known| known.slower.is_empty()), "{job}");
    }
    later.mix(8, true);
    // The machine loses a type while it runs.
    world.machine = Machine::uniform("one type is left", 3, 2);
    let before = world.learner.known(TaskId(0)).value().unwrap().progress;
    world.mix(8, true);
    let known = world.learner.known(TaskId(0)).value().unwrap();
    assert!(known.slower.is_empty() && known.progress >= before);
}

#[test]
fn what_a_job_does_on_a_core_where_it_never_was_follows_from_the_others() {
    let mut world = World::on_two_types(0.0, None);
    // The last four jobs never run on the slow core, and the first four on no other.
    for n in 0..120u32 {
        let job = |first: u32, nth: u32| first + (n + nth) % 4;
        world.run(&[(job(4, 0), 0), (job(8, 0), 1), (job(0, 0), 2)], Q, false);
        world.run(&[(job(8, 2), 0), (job(4, 3), 2)], Q, false);
        let calm = [(job(8, 0), 0), (job(4, 1), 1), (job(0, 2), 2)];
        world.run(&calm, 20_000_000, true);
    }
    for job in 0..12 {
        let known = world.learner.known(TaskId(job)).value().unwrap();
        let fast = world.jobs[job as usize];
        let slow = on_type(&fast, 1);
        let off = |asks: &Asks, truth_: &Asks| {
            asks.solo_cpi(&truth()) / asks.ghz / (truth_.solo_cpi(&truth()) / truth_.ghz) - 1.0
        };
        assert!(
            off(&known.asks, &fast).abs() < 0.2,
            "{job}: {}",
            off(&known.asks, &fast)
        );
        assert!(
            off(&known.slower[0], &slow).abs() < 0.2,
            "{job}: {}",
            off(&known.slower[0], &slow)
        );
        let progress = known.progress / world.progress[job as usize] - 1.0;
        assert!(progress.abs() < 0.2, "{job}: {progress}");
    }
}

#[test]
fn without_any_it_is_worse_and_says_so() {
    let (mut with, mut without) = (World::new(0.01), World::new(0.01));
    with.mix(80, true);
    without.mix(80, false);
    let mean = |world: &World| {
        let off = |(job, asks): (u32, &Asks)| {
            (world.learner.known(TaskId(job)).value().unwrap().solo_cpi / asks.solo_cpi(&truth())
                - 1.0)
                .abs()
        };
        (0..).zip(&world.jobs).map(off).sum::<f64>() / world.jobs.len() as f64
    };
    assert!(
        mean(&with) < mean(&without),
        "{} {}",
        mean(&with),
        mean(&without)
    );
    for job in 0..12 {
        let [with, without] =
            [&with, &without].map(|world| world.learner.known(TaskId(job)).value().unwrap());
        assert!(with.measured && !without.measured);
        assert!(
            with.error < without.error,
            "job {job}: {} {}",
            with.error,
            without.error
        );
    }
}

#[test]
fn a_phase_that_comes_back_is_known() {
    let mut world = World::new(0.005);
    world.mix(40, true);
    let before = world.learner.known(TaskId(3)).value().unwrap();
    let calm = world.jobs[3];
    world.jobs[3] = Asks {
        reads: 0.012,
        llc: 0.03,
        ..calm
    };
    world.mix(20, true);
    let other = world.learner.known(TaskId(3)).value().unwrap();
    assert!(other.phase != before.phase && other.stay > 3);
    world.jobs[3] = calm;
    world.run(&[(3, 0), (4, 3)], Q, false);
    let after = world.learner.known(TaskId(3)).value().unwrap();
    assert_eq!(
        (after.phase, after.stay, after.measured),
        (before.phase, 1, true)
    );
    assert!((after.solo_cpi / before.solo_cpi - 1.0).abs() < 0.05);
    // Progress holds all phases.
    let truth = world.progress[3];
    assert!(
        (after.progress / truth - 1.0).abs() < 0.08,
        "{} {truth}",
        after.progress
    );
}

#[test]
fn what_is_not_counted_is_absent_with_its_reason() {
    let mut world = World::new(0.0);
    let none = sample(
        0,
        CpuId(0),
        Q,
        Q,
        Counts::absent(Absence::NoCounters),
        false,
    );
    world.learner.observe(&world.machine, &[none]);
    assert_eq!(
        world.learner.known(TaskId(0)),
        Reading::Absent(Absence::NoCounters)
    );
    assert_eq!(
        world.learner.known(TaskId(1)),
        Reading::Absent(Absence::NotYetMeasured)
    );
    // Who shared a core is not known where the kernel time-shares CPUs, and where plans let others fill in.
    let mut counts = Usage::zero(TaskId(2)).counts;
    counts[Counter::Cycles] = Reading::Value(480_000_000);
    counts[Counter::Instructions] = Reading::Value(600_000_000);
    let mut shared = sample(2, CpuId(0), Q, Q, counts, false);
    shared.cpus = "0-5".parse().unwrap();
    let mut filled = sample(3, CpuId(0), Q, Q, counts, false);
    filled.observed = true;
    world.learner.observe(&world.machine, &[shared, filled]);
    assert_eq!(
        world.learner.known(TaskId(2)),
        Reading::Absent(Absence::NotTold)
    );
    assert_eq!(
        world.learner.known(TaskId(3)),
        Reading::Absent(Absence::NotTold)
    );
    // Without the caches' events what jobs cost each other in a core is learnt all the same.
    let mut counts = Counts::absent(Absence::NoSuchEvent);
    counts[Counter::Cycles] = Reading::Value(480_000_000);
    counts[Counter::Instructions] = Reading::Value(600_000_000);
    world.learner.observe(
        &world.machine,
        &[sample(1, CpuId(1), 2 * Q, Q, counts, false)],
    );
    let known = world.learner.known(TaskId(1)).value().unwrap();
    assert!((known.solo_cpi - 0.8).abs() < 0.05 && known.asks.reads == 0.0);
}

#[test]
fn one_counter_that_is_missing_costs_little() {
    // Reads depend on co-runners, and accesses to the last-level cache say nothing of the share that is missed: less is told
    // by them, but phases do not flicker and progress stays near the truth.
    for (missing, most) in [
        (Counter::L1Accesses, 0.1),
        (Counter::LlcAccesses, 0.12),
        (Counter::MmReads, 0.15),
    ] {
        let mut world = World::new(0.01);
        world.missing = Some(missing);
        world.mix(80, true);
        let (_, progress) = world.errors();
        assert!(progress < most, "{missing:?}: {progress}");
        let phases = world
            .learner
            .jobs
            .values()
            .map(|job| job.phases.len())
            .max()
            .unwrap();
        assert!(phases <= 2, "{missing:?}: {phases}");
    }
}

#[test]
fn measured_together_at_a_memory_that_is_full_they_are_not_known_well() {
    // Three who could each read all that the memory delivers: what each does alone does not show in the load.
    let greedy = Asks {
        own: 0.3,
        penalty: 40.0,
        l1: 0.3,
        llc: 0.04,
        reads: 0.04,
        steepness: 0.0,
        ghz: 2.4,
    };
    let mut world = World::new(0.0);
    (0..3).for_each(|job| world.jobs[job] = greedy);
    world.run(&[(0, 0), (1, 2), (2, 4)], 20_000_000, true);
    (0..40).for_each(|n| world.run(&[(n % 3, 0), (3 + n % 2, 2), (5 + n % 3, 4)], Q, false));
    let solo = greedy.solo_cpi(&truth());
    let known = |world: &World| {
        let known = world.learner.known(TaskId(0)).value().unwrap();
        ((known.solo_cpi / solo - 1.0).abs(), known.error)
    };
    let (off, error) = known(&world);
    assert!(error > 0.3 && off < error, "{off} {error}");
    // One measurement alone says what that one could not.
    world.run(&[(0, 0)], 20_000_000, true);
    let (off, error) = known(&world);
    assert!(error < 0.055 && off < error, "{off} {error}");
}

#[test]
fn progress_is_at_most_the_time_that_was_used_and_begins_where_it_is_told() {
    let mut world = World::new(0.03);
    world.learner.begin(TaskId(2), 1, 7.0, None);
    for _ in 0..5 {
        world.run(&[(2, 0)], Q, true);
    }
    let progress = world.learner.known(TaskId(2)).value().unwrap().progress;
    assert!(progress <= 12.0 + 1e-9 && progress > 11.5, "{progress}");
    world.learner.end(TaskId(2));
    assert_eq!(
        world.learner.known(TaskId(2)),
        Reading::Absent(Absence::NotYetMeasured)
    );
}

#[test]
fn threads_of_a_gang_are_each_other_s_siblings() {
    let machine = Machine::uniform("m", 2, 2);
    let mut counts = Usage::zero(TaskId(0)).counts;
    counts[Counter::Cycles] = Reading::Value(1_000_000_000);
    counts[Counter::Instructions] = Reading::Value(1_000_000_000);
    let mut gang = sample(0, CpuId(0), Q, Q, counts, false);
    gang.cpus = "0-2".parse().unwrap();
    let other = sample(1, CpuId(3), Q, Q, counts, false);
    let seen = vec![
        Seen::of(&machine, &gang, 3).unwrap(),
        Seen::of(&machine, &other, 1).unwrap(),
    ];
    let company = Company::of(seen);
    let met = |at: usize| -> Vec<(u32, f64)> {
        company
            .siblings(at)
            .map(|(seen, met)| (seen.task.0, met))
            .collect()
    };
    // Of its three threads two share core 0, and the third shares core 1 with the other job.
    assert_eq!(met(0), [(0, 2.0 / 3.0), (1, 1.0 / 3.0)]);
    assert_eq!(met(1), [(0, 1.0)]);
    // They began together, so they are one group of readers.
    assert_eq!(company.readers.len(), 1);
}

#[test]
fn a_job_takes_at_most_8_kb() {
    assert!(size_of::<Job>() + PHASES * (Phase::most_bytes() + size_of::<u32>()) <= 8 << 10);
}

impl World {
    /// A world in which jobs begin with what is known of them.
    fn knowing(noise: f64, known: &[Option<Earlier>]) -> World {
        let mut world = World::new(noise);
        for (job, earlier) in (0..).zip(known) {
            world.learner.begin(TaskId(job), 1, 0.0, earlier.as_ref());
        }
        world
    }

    fn kept(&self) -> Vec<Option<Earlier>> {
        (0..self.jobs.len() as u32)
            .map(|job| self.learner.keep(TaskId(job)))
            .collect()
    }

    /// The mean relative error of the CPI alone.
    fn mean_error(&self) -> f64 {
        let off = |(job, asks): (u32, &Asks)| {
            (self.learner.known(TaskId(job)).value().unwrap().solo_cpi / asks.solo_cpi(&truth())
                - 1.0)
                .abs()
        };
        (0..).zip(&self.jobs).map(off).sum::<f64>() / self.jobs.len() as f64
    }
}

#[test]
fn what_an_earlier_run_learnt_is_known_from_the_beginning() {
    let mut first = World::new(0.01);
    first.mix(80, true);
    let known = first.kept();
    assert!(known.iter().all(Option::is_some));
    let mut second = World::knowing(0.01, &known);
    assert!(second.mean_error() < first.mean_error() + 1e-9);
    let mut fresh = World::new(0.01);
    second.mix(6, false);
    fresh.mix(6, false);
    let [second, fresh] = [&second, &fresh].map(World::mean_error);
    assert!(second < 0.5 * fresh && second < 0.03, "{second} {fresh}");
}

#[test]
fn what_is_wrong_about_it_is_found_out() {
    let mut first = World::new(0.01);
    first.mix(80, true);
    let known = first.kept();
    let changed = |change: fn(&mut EarlierPhase)| {
        let mut known = known.clone();
        known
            .iter_mut()
            .flatten()
            .flat_map(|earlier| &mut earlier.phases)
            .for_each(change);
        let mut world = World::knowing(0.01, &known);
        world.mix(80, true);
        world.mean_error()
    };
    let right = first.mean_error();
    let slower = changed(|phase| {
        (phase.asks.own, phase.solo_cpi) = (2.0 * phase.asks.own, 2.0 * phase.solo_cpi)
    });
    let faster = changed(|phase| {
        (phase.asks.own, phase.solo_cpi) = (0.5 * phase.asks.own, 0.5 * phase.solo_cpi)
    });
    let a_bit = changed(|phase| {
        (phase.asks.own, phase.solo_cpi) = (1.2 * phase.asks.own, 1.2 * phase.solo_cpi)
    });
    let flat = changed(|phase| (phase.asks.penalty, phase.asks.steepness) = (0.0, 0.0));
    for wrong in [slower, faster, a_bit, flat] {
        assert!(
            wrong < right + 0.015,
            "{right}: {slower} {faster} {a_bit} {flat}"
        );
    }
    // What can't be is not believed at all.
    let odd = changed(|phase| phase.solo_cpi = f64::NAN);
    assert_eq!(odd, changed(|phase| phase.asks.ghz = 0.0));
    assert_eq!(odd, right);
}

#[test]
fn what_was_never_measured_is_not_kept() {
    let mut world = World::new(0.01);
    world.mix(20, false);
    assert!(world.kept().iter().all(Option::is_none));
}
