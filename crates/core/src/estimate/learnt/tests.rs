//! Tests the learner in worlds with a law of their own ([`foreign`](super::foreign)), so that a wrong equation shows.

use super::foreign::{Place, Program, Speed, run};
use super::rise::Rise;
use super::*;
use crate::counter::Counter;
use crate::model::contention::Seat;
use crate::placement::Purpose;
use crate::rng::Rng;
use crate::sample::{Counts, Usage};
use crate::topology::{Cpu, CpuId, CpuSet};
use crate::traffic::TrafficRates;

const Q: u64 = 200_000_000;
/// Length of a measurement.
const SHORT: u64 = 20_000_000;
/// Seeds of the sets of programs.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Checks a figure against the worst that was found with the seeds 1 to 12, with room for half as much again.
fn check(what: &str, now: f64, found: f64) {
    assert!(
        now <= 1.5 * found,
        "{what}: {now:.4}; at most {found} was found when this test was written"
    );
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// A number from `least` to `most`.
fn between(rng: &mut Rng, least: f64, most: f64) -> f64 {
    least + (most - least) * rng.below(1_001) as f64 / 1_000.0
}

/// Twelve random programs, from compute-bound to memory-bound.
fn programs(rng: &mut Rng) -> Vec<Program> {
    let heaviness = [0.0_f64, 0.01, 0.05, 0.15, 0.4, 0.8];
    let mut one = |n: usize| {
        let heavy = heaviness[n % 6];
        Program {
            width: between(rng, 1.2, 3.6),
            l1: between(rng, 0.25, 0.5),
            near: (
                0.1 * heavy.min(0.2) * between(rng, 1.0, 5.0),
                between(rng, 0.3, 0.8),
            ),
            wide: (
                0.02 * heavy * between(rng, 0.5, 1.5),
                between(rng, 0.5, 4.0),
            ),
            once: 0.01 * heavy * between(rng, 0.2, 1.0),
            overlap: between(rng, 1.5, 5.0),
        }
    };
    (0..12).map(&mut one).collect()
}

/// A program alone on a kind of core.
fn alone(program: Program, kind: usize) -> Speed {
    run(&[Place {
        program,
        core: 0,
        kind,
    }])[0]
}

struct World {
    machine: Machine,
    programs: Vec<Program>,
    learner: Learner,
    now: u64,
    rng: Rng,
    /// Solo execution of each job, in quanta.
    progress: Vec<f64>,
    noise: f64,
    /// An event that is not counted.
    missing: Option<Counter>,
    /// The next job to be measured.
    turn: usize,
    /// The relative errors of predicted cycles, and those of "as in the last interval".
    misses: Vec<(f64, f64)>,
}

impl World {
    fn new(seed: u64, noise: f64) -> World {
        World::on(Machine::uniform("world", 3, 2), seed, noise)
    }

    /// A world whose last core is slow, with or without the kernel's capacity.
    fn on_two_types(seed: u64, noise: f64, capacity: Option<u32>) -> World {
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
        World::on(machine, seed, noise)
    }

    fn on(machine: Machine, seed: u64, noise: f64) -> World {
        let mut rng = Rng::new(seed);
        let programs = programs(&mut rng);
        let mut learner = Learner::new(&machine.core_types, Nanos(Q));
        (0..programs.len() as u32).for_each(|job| learner.begin(TaskId(job), 1, 0.0, None));
        World {
            machine,
            progress: vec![0.0; programs.len()],
            programs,
            learner,
            now: 0,
            rng,
            noise,
            missing: None,
            turn: 0,
            misses: Vec::new(),
        }
    }

    /// Runs jobs on CPUs for a quantum.
    fn run(&mut self, placed: &[(u32, u32)]) {
        self.step(placed, Q, Purpose::Run);
    }

    /// Measures jobs that have a core each: one alone, or several together.
    fn measure(&mut self, placed: &[(u32, u32)]) {
        let purpose = match placed.len() {
            1 => Purpose::MeasureAlone,
            _ => Purpose::LowContention,
        };
        self.step(placed, SHORT, purpose);
    }

    fn step(&mut self, placed: &[(u32, u32)], ns: u64, purpose: Purpose) {
        let place = |&(job, cpu): &(u32, u32)| {
            let &Cpu {
                core, core_type, ..
            } = &self.machine.cpus[cpu as usize];
            Place {
                program: self.programs[job as usize],
                core,
                kind: core_type,
            }
        };
        let places: Vec<Place> = placed.iter().map(place).collect();
        let speeds = run(&places);
        if purpose == Purpose::Run {
            self.predict(placed, &speeds);
        }
        self.now += ns;
        let mut samples = Vec::new();
        for ((&(job, cpu), place), speed) in placed.iter().zip(&places).zip(&speeds) {
            let instructions = ns as f64 / speed.ns;
            self.progress[job as usize] += instructions * alone(place.program, 0).ns / Q as f64;
            let mut noisy = |count: f64| {
                let off = between(&mut self.rng, -self.noise, self.noise);
                Reading::Value((count * (1.0 + off)) as u64)
            };
            let mut counts = Usage::zero(TaskId(job)).counts;
            counts[Counter::Cycles] = noisy(speed.ghz * ns as f64);
            counts[Counter::Instructions] = noisy(instructions);
            counts[Counter::L1Accesses] = noisy(instructions * place.program.l1);
            counts[Counter::LlcAccesses] = noisy(instructions * speed.llc);
            counts[Counter::MmReads] = noisy(instructions * speed.reads);
            if let Some(counter) = self.missing {
                counts[counter] = Reading::Absent(Absence::NoSuchEvent);
            }
            samples.push(sample(job, CpuId(cpu), self.now, ns, counts, purpose));
        }
        self.learner.observe(&self.machine, &samples);
    }

    /// Compares what a policy would predict of these jobs with the truth.
    fn predict(&mut self, placed: &[(u32, u32)], speeds: &[Speed]) {
        let known: Option<Vec<Learnt>> = placed
            .iter()
            .map(|&(job, _)| self.learner.known(TaskId(job)).value())
            .collect();
        let Some(known) = known else { return };
        let seat = |(&(_, cpu), known): (&(u32, u32), &Learnt)| {
            let Cpu {
                core, core_type, ..
            } = self.machine.cpus[cpu as usize];
            Seat {
                asks: *known.asks_on(core_type),
                core,
                llc: 0,
                domain: 0,
                away: false,
            }
        };
        let seats: Vec<Seat> = placed.iter().zip(&known).map(seat).collect();
        let shared = self.learner.shared();
        let mut prediction = Prediction::default();
        prediction.make(&shared, &seats);
        for ((known, job), speed) in known.iter().zip(&prediction.jobs).zip(speeds) {
            let Some(last) = known.last else { continue };
            let change = shared.trust * libm::log(job.cpi / last.modelled)
                + shared.pull * libm::log(last.modelled / last.counted);
            let truth = speed.ns * speed.ghz;
            let off = |cpi: f64| (cpi / truth - 1.0).abs();
            let predicted = off(last.counted * libm::exp(change));
            self.misses.push((predicted, off(last.counted)));
        }
    }

    /// The median error of the predictions, and of "as in the last interval".
    fn medians(&self) -> (f64, f64) {
        let of = |of: fn(&(f64, f64)) -> f64| median(self.misses.iter().map(of).collect());
        (of(|miss| miss.0), of(|miss| miss.1))
    }

    /// Runs quanta of random sets of jobs, with a measurement now and then.
    fn mix(&mut self, quanta: u32, measures: bool) {
        for n in 0..quanta {
            let mut order: Vec<u32> = (0..self.programs.len() as u32).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, self.rng.below(at as u64 + 1) as usize);
            }
            let placed: Vec<(u32, u32)> = order.iter().copied().take(6).zip(0..).collect();
            self.run(&placed);
            if measures && n % 4 == 0 {
                self.measure_next();
            }
        }
    }

    fn is_heavy(&self, at: usize) -> bool {
        alone(self.programs[at], 0).waits() > 0.1
    }

    /// Measures the next job, as the policy does: alone if it waits for memory, else together with two others.
    fn measure_next(&mut self) {
        let count = self.programs.len();
        let next = self.turn % count;
        let mut group = vec![next];
        if !self.is_heavy(next) {
            let others = (next + 1..next + count).map(|at| at % count);
            group.extend(others.filter(|&at| !self.is_heavy(at)).take(2));
        }
        // In later rounds on another core, which may be of another type.
        let cores = (0..3).map(|nth| (nth + 2 * (self.turn / count)) as u32 % 3);
        let placed: Vec<(u32, u32)> = group.iter().map(|&job| job as u32).zip(cores).collect();
        self.turn += 1;
        self.measure(&placed);
    }

    fn known(&self, job: u32) -> Learnt {
        self.learner.known(TaskId(job)).value().unwrap()
    }

    /// The relative error of a job's solo time per instruction.
    fn solo_error(&self, job: u32) -> f64 {
        let truth = alone(self.programs[job as usize], 0).ns;
        let phase = self.learner.phase_of(TaskId(job)).unwrap();
        (phase.solo_ns / truth - 1.0).abs()
    }

    /// The relative error of a job's solo cycles per instruction.
    fn cpi_error(&self, job: u32) -> f64 {
        let truth = alone(self.programs[job as usize], 0);
        (self.known(job).solo_cpi / (truth.ns * truth.ghz) - 1.0).abs()
    }

    fn progress_error(&self, job: u32) -> f64 {
        (self.known(job).progress / self.progress[job as usize] - 1.0).abs()
    }

    /// The largest relative errors of solo time and of progress.
    fn errors(&self) -> (f64, f64) {
        let jobs = 0..self.programs.len() as u32;
        let solo = jobs.clone().map(|job| self.solo_error(job));
        let progress = jobs.map(|job| self.progress_error(job));
        (solo.fold(0.0, f64::max), progress.fold(0.0, f64::max))
    }

    /// The mean relative error of solo cycles per instruction.
    fn mean_error(&self) -> f64 {
        let jobs = 0..self.programs.len() as u32;
        jobs.map(|job| self.cpi_error(job)).sum::<f64>() / self.programs.len() as f64
    }

    /// A world in which jobs start with known phases.
    fn knowing(seed: u64, noise: f64, known: &[Option<Earlier>]) -> World {
        let mut world = World::new(seed, noise);
        for (job, earlier) in (0..).zip(known) {
            world.learner.begin(TaskId(job), 1, 0.0, earlier.as_ref());
        }
        world
    }

    fn kept(&self) -> Vec<Option<Earlier>> {
        (0..self.programs.len() as u32)
            .map(|job| self.learner.keep(TaskId(job)))
            .collect()
    }
}

fn sample(job: u32, cpu: CpuId, at: u64, ns: u64, counts: Counts, purpose: Purpose) -> Sample {
    Sample {
        task: TaskId(job),
        at: Nanos(at),
        interval: Nanos(ns),
        planned: Nanos(ns),
        purpose,
        cpus: CpuSet::from_iter([cpu]),
        whole_core: purpose != Purpose::Run,
        co_runners: [TaskId(job)].into(),
        disturbed: false,
        cpu_time: Reading::Value(Nanos(ns)),
        counts,
        multiplexed: false,
        traffic: TrafficRates::absent(Absence::NotRequested),
        device_time: crate::device::DeviceTime::not_requested(),
        observed: false,
    }
}

#[test]
fn with_measurements_it_learns_what_jobs_do_alone() {
    // Accesses to the first-level cache that are 4 % off are taken for another phase. With a noise of 0.05 that happens
    // often, and progress was up to 20 % off.
    for (noise, found, most) in [(0.0, 0.016, 0.75), (0.01, 0.016, 0.75), (0.02, 0.028, 0.8)] {
        let (mut solo, mut progress, mut ratio) = (0.0f64, 0.0f64, 0.0);
        for seed in SEEDS {
            let mut world = World::new(seed, noise);
            world.mix(80, true);
            let errors = world.errors();
            (solo, progress) = (solo.max(errors.0), progress.max(errors.1));
            // What is learnt helps to predict the next intervals.
            world.misses.clear();
            world.mix(80, true);
            let (predicted, last) = world.medians();
            ratio += predicted / last / SEEDS.len() as f64;
            assert!(world.learner.shared().memory.most.is_some());
        }
        check(&format!("noise {noise}: solo time"), solo, found);
        check(&format!("noise {noise}: progress"), progress, found);
        assert!(
            ratio < most,
            "noise {noise}: the error is {ratio:.2} of that of the last interval; 0.65 to 0.7 were found"
        );
    }
}

#[test]
fn progress_is_that_alone_on_the_fastest_core_wherever_a_job_runs() {
    // Solo time is that of the present phase, which may be a guess: on the slow core few jobs are measured.
    for (noise, capacity) in [(0.0, None), (0.01, Some(350))] {
        let (mut solo, mut progress, mut slow) = (0.0f64, 0.0f64, 0.0f64);
        for seed in SEEDS {
            let mut world = World::on_two_types(seed, noise, capacity);
            world.mix(160, true);
            let errors = world.errors();
            (solo, progress) = (solo.max(errors.0), progress.max(errors.1));
            for (job, &program) in (0..).zip(&world.programs) {
                let known = world.known(job);
                let slower = known.slower[0];
                let ns = slower.solo_cpi(&world.learner.shared()) / slower.ghz;
                slow = slow.max((ns / alone(program, 1).ns - 1.0).abs());
                assert!((slower.ghz / 1.2 - 1.0).abs() < 0.08, "{job}: {slower:?}");
                assert_eq!(known.asks_on(1), &slower);
                assert!((known.solo_ns() - known.solo_cpi / known.asks.ghz).abs() < 1e-12);
            }
        }
        check(&format!("noise {noise}: solo time"), solo, 0.23);
        check(&format!("noise {noise}: progress"), progress, 0.07);
        // A phase that was only guessed on the slow core may be far off; progress counts on the fast one.
        check(
            &format!("noise {noise}: solo time on the slow core"),
            slow,
            0.43,
        );
    }
}

#[test]
fn what_was_learnt_on_a_type_of_core_that_is_not_there_is_dropped() {
    let mut world = World::on_two_types(1, 0.0, None);
    world.mix(80, true);
    let kept = world.kept();
    assert!(
        kept.iter()
            .flatten()
            .flat_map(|earlier| &earlier.phases)
            .any(|phase| phase.core_type == 1)
    );
    let mut later = World::knowing(1, 0.0, &kept);
    for job in 0..12 {
        let known = later.learner.known(TaskId(job)).value();
        assert!(known.is_none_or(|known| known.slower.is_empty()), "{job}");
    }
    later.mix(8, true);
    // The machine loses a type while it runs.
    world.machine = Machine::uniform("one type is left", 3, 2);
    let before = world.known(0).progress;
    world.mix(8, true);
    let known = world.known(0);
    assert!(known.slower.is_empty() && known.progress >= before);
}

#[test]
fn what_a_job_does_on_a_core_where_it_never_was_follows_from_the_others() {
    let (mut unseen, mut count, mut progress) = (0.0, 0.0, 0.0f64);
    for seed in SEEDS {
        let mut world = World::on_two_types(seed, 0.0, None);
        // The last four jobs never run on the slow core, and the first four run only there.
        for n in 0..120u32 {
            let job = |first: u32, nth: u32| first + (n + nth) % 4;
            world.run(&[(job(4, 0), 0), (job(8, 0), 1), (job(0, 0), 2)]);
            world.run(&[(job(8, 2), 0), (job(4, 3), 2)]);
            for placed in [(job(8, 0), 0), (job(4, 1), 1), (job(0, 2), 2)] {
                world.measure(&[placed]);
            }
        }
        for job in 0..12 {
            if job >= 4 {
                progress = progress.max(world.progress_error(job));
            }
            let kind = usize::from(job >= 8);
            if (4..8).contains(&job) {
                continue;
            }
            let known = world.known(job);
            let asks = known.asks_on(kind);
            let ns = asks.solo_cpi(&world.learner.shared()) / asks.ghz;
            unseen += (ns / alone(world.programs[job as usize], kind).ns - 1.0).abs();
            count += 1.0;
        }
    }
    // One factor for all jobs is learnt, but wide programs lose more on the slow core: up to 32 % in single ones.
    check(
        "mean error of solo time where it never was",
        unseen / count,
        0.13,
    );
    check(
        "progress of the jobs that were on the fast core",
        progress,
        0.005,
    );
}

#[test]
fn without_any_it_is_worse_and_says_so() {
    for seed in SEEDS {
        let (mut with, mut without) = (World::new(seed, 0.01), World::new(seed, 0.01));
        with.mix(80, true);
        without.mix(80, false);
        let (one, other) = (with.mean_error(), without.mean_error());
        assert!(one < other, "{one} {other}; 0.015 and 0.28 were found");
        for job in 0..12 {
            let (one, other) = (with.known(job).error, without.known(job).error);
            assert!(one < other, "job {job}: {one} {other}");
        }
    }
}

#[test]
fn a_phase_that_comes_back_is_known() {
    let (mut solo, mut progress) = (0.0f64, 0.0f64);
    for seed in SEEDS {
        let mut world = World::new(seed, 0.005);
        world.mix(60, true);
        let before = world.known(3);
        let calm = world.programs[3];
        world.programs[3] = Program {
            near: (4.0 * calm.near.0, calm.near.1),
            once: 0.006,
            ..calm
        };
        world.mix(60, true);
        let other = world.known(3);
        assert!(
            other.phase != before.phase && other.stay > 3,
            "{seed}: {other:?}"
        );
        world.programs[3] = calm;
        world.run(&[(3, 0), (4, 3)]);
        let after = world.known(3);
        assert_eq!((after.phase, after.stay), (before.phase, 1), "{seed}");
        solo = solo.max((after.solo_cpi / before.solo_cpi - 1.0).abs());
        // Progress includes all phases.
        progress = progress.max(world.progress_error(3));
    }
    check("change of solo cycles", solo, 0.02);
    check("progress", progress, 0.011);
}

#[test]
fn phases_that_differ_by_less_than_siblings_raise_are_told_apart() {
    let mut progress = 0.0f64;
    for seed in SEEDS {
        let mut world = World::new(seed, 0.005);
        let calm = Program {
            width: 2.5,
            l1: 0.35,
            near: (0.06, 0.5),
            wide: (0.0005, 1.0),
            once: 0.0002,
            overlap: 1.5,
        };
        let busy = Program {
            near: (1.5 * calm.near.0, calm.near.1),
            ..calm
        };
        let raised = |core| {
            let place = |program, core| Place {
                program,
                core,
                kind: 0,
            };
            run(&[place(calm, 0), place(world.programs[2], core)])[0].llc
        };
        assert!(raised(0) > 1.5 * raised(1));
        // All work in one phase would be 7 % off.
        assert!(alone(busy, 0).ns > 1.14 * alone(calm, 0).ns);
        for n in 0..8 {
            world.programs[3] = [calm, busy][n % 2];
            world.mix(5, false);
            if n < 2 {
                world.measure(&[(3, 0)]);
            }
            if n == 1 {
                // The others are measured too.
                (0..12)
                    .filter(|&job| job != 3)
                    .for_each(|job| world.measure(&[(job, 0)]));
            }
            world.mix(15, false);
        }
        progress = progress.max(world.progress_error(3));
    }
    assert!(
        progress < 0.05,
        "{progress}; 0.01 was found, and up to 0.062 with the seeds 4 to 12"
    );
}

#[test]
fn what_is_not_counted_is_absent_with_its_reason() {
    let mut world = World::new(1, 0.0);
    let none = sample(
        0,
        CpuId(0),
        Q,
        Q,
        Counts::absent(Absence::NoCounters),
        Purpose::Run,
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
    // Core sharing is unknown where the kernel time-shares CPUs, and where plans let fillers in.
    let mut counts = Usage::zero(TaskId(2)).counts;
    counts[Counter::Cycles] = Reading::Value(480_000_000);
    counts[Counter::Instructions] = Reading::Value(600_000_000);
    let mut shared = sample(2, CpuId(0), Q, Q, counts, Purpose::Run);
    shared.cpus = "0-5".parse().unwrap();
    let mut filled = sample(3, CpuId(0), Q, Q, counts, Purpose::Run);
    filled.observed = true;
    world.learner.observe(&world.machine, &[shared, filled]);
    assert_eq!(
        world.learner.known(TaskId(2)),
        Reading::Absent(Absence::CoRunnersUnknown)
    );
    assert_eq!(
        world.learner.known(TaskId(3)),
        Reading::Absent(Absence::CoRunnersUnknown)
    );
    // Without cache events, the costs between jobs in a core are still learnt.
    let mut counts = Counts::absent(Absence::NoSuchEvent);
    counts[Counter::Cycles] = Reading::Value(480_000_000);
    counts[Counter::Instructions] = Reading::Value(600_000_000);
    world.learner.observe(
        &world.machine,
        &[sample(1, CpuId(1), 2 * Q, Q, counts, Purpose::Run)],
    );
    let known = world.learner.known(TaskId(1)).value().unwrap();
    assert!((known.solo_cpi - 0.8).abs() < 0.05 && known.asks.reads == 0.0);
}

#[test]
fn one_counter_that_is_missing_costs_little() {
    // Reads depend on co-runners, and accesses to the last-level cache do not show the miss rate: so precision is
    // lower, but phases do not flicker and progress stays near the truth.
    for (missing, found, most_phases) in [
        (Counter::L1Accesses, 0.016, 2),
        (Counter::LlcAccesses, 0.026, 2),
        (Counter::MmReads, 0.033, 2),
    ] {
        let (mut progress, mut phases) = (0.0f64, 0);
        for seed in SEEDS {
            let mut world = World::new(seed, 0.01);
            world.missing = Some(missing);
            world.mix(80, true);
            progress = progress.max(world.errors().1);
            let jobs = world.learner.jobs.values();
            phases = phases.max(jobs.map(|job| job.phases.len()).max().unwrap());
        }
        check(&format!("progress without {missing:?}"), progress, found);
        assert!(phases <= most_phases, "{missing:?}: {phases}");
    }
}

#[test]
fn measured_together_at_a_memory_that_is_full_they_are_not_known_well() {
    // Three jobs that could each saturate the memory: their solo demand does not show in the load.
    let greedy = Program {
        width: 3.0,
        l1: 0.3,
        near: (0.0, 1.0),
        wide: (0.0, 1.0),
        once: 0.04,
        overlap: 10.0,
    };
    let mut world = World::new(1, 0.0);
    (0..3).for_each(|job| world.programs[job] = greedy);
    world.measure(&[(0, 0), (1, 1), (2, 2)]);
    (0..40).for_each(|n| world.run(&[(n % 3, 0), (3 + n % 2, 1), (5 + n % 3, 2)]));
    let (off, error) = (world.cpi_error(0), world.known(0).error);
    assert!(
        error > 0.15 && off < 2.0 * error,
        "{off} {error}; 0.28 and 0.21 were found"
    );
    // A single solo measurement fills this gap.
    world.measure(&[(0, 0)]);
    // Its modelled cycles are still 16 % off, because the curve of the memory is not that of the law.
    let (off, error) = (world.solo_error(0), world.known(0).error);
    assert!(error < 0.06 && off < NOISE, "{off} {error}");
}

#[test]
fn progress_is_at_most_the_time_that_was_used_and_begins_where_it_is_told() {
    let mut world = World::new(1, 0.03);
    world.learner.begin(TaskId(2), 1, 7.0, None);
    for _ in 0..5 {
        world.step(&[(2, 0)], Q, Purpose::MeasureAlone);
    }
    let progress = world.known(2).progress;
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
    let mut gang = sample(0, CpuId(0), Q, Q, counts, Purpose::Run);
    gang.cpus = "0-2".parse().unwrap();
    let other = sample(1, CpuId(3), Q, Q, counts, Purpose::Run);
    let seen = vec![
        Seen::of(&machine, &gang, 3).unwrap(),
        Seen::of(&machine, &other, 1).unwrap(),
    ];
    let met = |at: usize| -> Vec<(u32, f64)> {
        siblings(&seen, at)
            .into_iter()
            .map(|(other, met)| (other.task.0, met))
            .collect()
    };
    // Two of its three threads share core 0, and the third shares core 1 with the other job.
    assert_eq!(met(0), [(0, 2.0 / 3.0), (1, 1.0 / 3.0)]);
    assert_eq!(met(1), [(0, 1.0)]);
}

#[test]
fn a_job_takes_at_most_8_kb() {
    assert!(size_of::<Job>() + PHASES * (Phase::most_bytes() + size_of::<u32>()) <= 8 << 10);
}

#[test]
fn what_an_earlier_run_learnt_is_known_from_the_beginning() {
    for seed in SEEDS {
        let mut first = World::new(seed, 0.01);
        first.mix(80, true);
        let known = first.kept();
        assert!(known.iter().all(Option::is_some));
        let mut second = World::knowing(seed, 0.01, &known);
        let start = second.mean_error();
        let mut fresh = World::new(seed, 0.01);
        second.mix(6, false);
        fresh.mix(6, false);
        let ran = |job: &u32| fresh.learner.phase_of(TaskId(*job)).is_some();
        let (mut one, mut other, mut count) = (0.0, 0.0, 0.0);
        for job in (0..12).filter(ran) {
            one += second.cpi_error(job);
            other += fresh.cpi_error(job);
            count += 1.0;
        }
        assert!(one < 0.5 * other, "{one} {other}; 5 % of it was found");
        check("mean error of solo cycles at the start", start, 0.015);
        check("mean error of solo cycles", one / count, 0.013);
    }
}

#[test]
fn what_is_wrong_about_it_is_found_out() {
    let mut first = World::new(1, 0.01);
    first.mix(80, true);
    let known = first.kept();
    let changed = |change: fn(&mut EarlierPhase)| {
        let mut known = known.clone();
        known
            .iter_mut()
            .flatten()
            .flat_map(|earlier| &mut earlier.phases)
            .for_each(change);
        let mut world = World::knowing(1, 0.01, &known);
        world.mix(80, true);
        world.mean_error()
    };
    let right = first.mean_error();
    let slower = changed(|phase| scale(phase, 2.0));
    let faster = changed(|phase| scale(phase, 0.5));
    let a_bit = changed(|phase| scale(phase, 1.2));
    let flat = changed(|phase| (phase.asks.penalty, phase.asks.steepness) = (0.0, 0.0));
    for wrong in [slower, faster, a_bit, flat] {
        check("solo cycles more wrong than without", wrong - right, 0.001);
    }
    // Impossible values are rejected.
    let odd = changed(|phase| phase.solo_cpi = f64::NAN);
    assert_eq!(odd, changed(|phase| phase.asks.ghz = 0.0));
    assert_eq!(odd, right);
}

fn scale(phase: &mut EarlierPhase, by: f64) {
    phase.asks.own *= by;
    phase.solo_cpi *= by;
}

#[test]
fn what_was_never_measured_is_not_kept() {
    let mut world = World::new(1, 0.01);
    world.mix(20, false);
    assert!(world.kept().iter().all(Option::is_none));
}

/// A forecast after intervals in which the counted cycles and the model's follow these functions of two random numbers
/// from -1 to 1; logarithms.
fn forecast(counted: fn(f64, [f64; 2]) -> f64, modelled: fn(f64, [f64; 2]) -> f64) -> Forecast {
    let mut rng = Rng::new(4);
    let mut forecast = Forecast::default();
    let mut last: Option<Look> = None;
    for _ in 0..2_000 {
        let random = [0, 1].map(|_| between(&mut rng, -1.0, 1.0));
        let now = counted(last.map_or(0.0, |last| last.counted), random);
        let look = Look {
            counted: now,
            modelled: modelled(now, random),
            phase: 0,
        };
        if let Some(last) = last.replace(look) {
            forecast.learn(&last, &look);
        }
    }
    forecast
}

#[test]
fn a_model_is_trusted_as_far_as_it_tells_the_next_interval() {
    // The counted cycles are a random walk, and the model says something else.
    let useless = forecast(
        |last, [step, _]| last + 0.1 * step,
        |_, [_, other]| 0.1 * other,
    );
    let errors = useless.errors().unwrap();
    let (error, of_last) = (errors.median, errors.median_as_last);
    assert!(useless.trust < 0.2, "{}; 0 was found", useless.trust);
    assert!(
        error <= 1.05 * of_last,
        "{error} {of_last}; 0.0515 and 0.0505 were found"
    );
    // The model knows all of it.
    let exact = forecast(|_, [level, _]| 0.2 * level, |counted, _| counted);
    assert!(exact.trust > 0.9, "{}; 1 was found", exact.trust);
}

#[test]
fn what_siblings_raise_is_learnt_also_for_pairs_that_never_ran() {
    let mut rng = Rng::new(6);
    let table: Vec<(f64, f64)> = (0..12)
        .map(|_| {
            let sensitivity = between(&mut rng, 0.4, 1.6);
            (sensitivity, between(&mut rng, 0.1, 0.8))
        })
        .collect();
    let mut learnt = vec![Rise::default(); table.len()];
    // Every second pair may run. 120 pairs are 20 samples a job.
    for _ in 0..120 {
        let (one, other) = loop {
            let [one, other] = [0, 1].map(|_| rng.below(12) as usize);
            if (one + other) % 2 == 1 {
                break (one, other);
            }
        };
        for (one, other) in [(one, other), (other, one)] {
            let noise = between(&mut rng, -0.02, 0.02);
            let growth = (1.0 + table[one].0 * table[other].1) * (1.0 + noise);
            let beside = [(learnt[other], 1.0)];
            let lesson = Lesson::of(&learnt[one], &beside, growth - 1.0, ROUGH);
            learnt[one].learn_sensitivity(&lesson);
            learnt[other].learn_pressure(&lesson, 1.0);
        }
    }
    let errors = |ran: bool| {
        let mut all = Vec::new();
        for one in 0..12 {
            for other in (0..12).filter(|&other| other != one && ((one + other) % 2 == 1) == ran) {
                let truth = 1.0 + table[one].0 * table[other].1;
                let predicted = learnt[one].of.growth(learnt[other].of.pressure);
                all.push((predicted / truth - 1.0).abs());
            }
        }
        median(all)
    };
    let (ran, never) = (errors(true), errors(false));
    assert!(
        ran < 0.03 && never < 0.03,
        "{ran} {never}; 0.0026 and 0.0055 were found"
    );
}

/// Slowdowns of pairs of programs on a core, measured: program, co-runner, slowdown. From
/// <https://github.com/shosborn/SMART-ECRTS19>, interference-benchmark/results.
fn measured_pairs(text: &str) -> Vec<(String, String, f64)> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|&one| one == name).unwrap();
    let [one, other, slowdown] = ["program", "corunner", "slowdown_of_mean"].map(column);
    lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|row| {
            let slowdown = row[slowdown].parse().unwrap();
            (row[one].to_owned(), row[other].to_owned(), slowdown)
        })
        .collect()
}

#[test]
#[expect(clippy::disallowed_macros, reason = "says that it is skipped")]
fn measured_pairs_are_predicted_from_half_of_them() {
    let Some(path) = std::env::var_os("COSCHED_SMT_PAIRS") else {
        println!("skipped, because COSCHED_SMT_PAIRS names no file");
        return;
    };
    let pairs = measured_pairs(&std::fs::read_to_string(path).unwrap());
    let mut names: Vec<&str> = pairs.iter().map(|pair| pair.0.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let number = |name: &str| names.binary_search(&name).unwrap() as u32;
    let slowdowns: BTreeMap<(u32, u32), f64> = pairs
        .iter()
        .map(|(one, other, slowdown)| ((number(one), number(other)), *slowdown))
        .collect();
    let machine = Machine::uniform("pairs", 1, 2);
    let mut learner = Learner::new(&machine.core_types, Nanos(Q));
    let mut now = 0;
    let mut step = |learner: &mut Learner, placed: &[(u32, f64)], purpose| {
        now += Q;
        let samples = placed.iter().zip(0..).map(|(&(job, cpi), cpu)| {
            let mut counts = Usage::zero(TaskId(job)).counts;
            counts[Counter::Cycles] = Reading::Value(2 * Q);
            counts[Counter::Instructions] = Reading::Value((2.0 * Q as f64 / cpi) as u64);
            sample(job, CpuId(cpu), now, Q, counts, purpose)
        });
        learner.observe(&machine, &samples.collect::<Vec<_>>());
    };
    for job in 0..names.len() as u32 {
        learner.begin(TaskId(job), 1, 0.0, None);
        step(&mut learner, &[(job, 1.0)], Purpose::MeasureAlone);
    }
    // A program beside itself would be two jobs: such pairs do not run, but are predicted.
    let mut order: Vec<(u32, u32)> = slowdowns
        .keys()
        .copied()
        .filter(|pair| pair.0 < pair.1)
        .collect();
    let mut rng = Rng::new(7);
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at as u64 + 1) as usize);
    }
    order.truncate(order.len() / 2);
    for _ in 0..10 {
        for &(one, other) in &order {
            let placed = [
                (one, slowdowns[&(one, other)]),
                (other, slowdowns[&(other, one)]),
            ];
            step(&mut learner, &placed, Purpose::Run);
        }
    }
    let asks = |job: u32| learner.known(TaskId(job)).value().unwrap().asks;
    let seat = |job: u32| Seat {
        asks: asks(job),
        core: 0,
        llc: 0,
        domain: 0,
        away: false,
    };
    let error = |(&(one, other), truth): (&(u32, u32), &f64)| {
        let mut prediction = Prediction::default();
        prediction.make(&learner.shared(), &[seat(one), seat(other)]);
        let solo = learner.known(TaskId(one)).value().unwrap().solo_cpi;
        (prediction.jobs[0].cpi / solo / truth - 1.0).abs()
    };
    let error = median(slowdowns.iter().map(error).collect());
    assert!(error <= 0.03, "median error {error}; 0.018 was found");
}
