//! Tests the learner in worlds with a law of their own ([`test_law`](super::test_law)), so that a wrong equation shows.

mod core_types;
mod earlier;
mod kinds;
mod measurements;
mod phases;
mod siblings;
mod trust;

use super::rise::SiblingVariance;
use super::test_law::{PlacedProgram, Speed, TestProgram, run};
use super::*;
use crate::counter::Counter;
use crate::model::contention::{PlacedJob, SiblingEffect};
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

/// Checks a figure against the worst that was found with these seeds, with room for half as much again.
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
fn programs(rng: &mut Rng) -> Vec<TestProgram> {
    let heaviness = [0.0_f64, 0.01, 0.05, 0.15, 0.4, 0.8];
    let mut one = |n: usize| {
        let heavy = heaviness[n % 6];
        TestProgram {
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
fn alone(program: TestProgram, kind: usize) -> Speed {
    run(&[PlacedProgram {
        program,
        core: 0,
        kind,
    }])[0]
}

/// What a job did in an interval.
#[derive(Clone, Default)]
struct Done {
    cycles: f64,
    instructions: f64,
    l1: f64,
    llc: f64,
    reads: f64,
}

struct TestWorld {
    machine: Machine,
    programs: Vec<TestProgram>,
    learner: Learner,
    now: u64,
    rng: Rng,
    /// Solo execution of each job, in quanta.
    progress: Vec<f64>,
    noise: f64,
    /// An event that is not counted.
    missing: Option<Counter>,
    /// A job that goes on as another program in the middle of the next step.
    change: Option<(u32, TestProgram)>,
    /// The next job to be measured.
    turn: usize,
    /// The relative errors of predicted cycles, and those of "as in the last interval".
    misses: Vec<(f64, f64)>,
}

impl TestWorld {
    fn new(seed: u64, noise: f64) -> TestWorld {
        TestWorld::on(Machine::uniform("world", 3, 2), seed, noise)
    }

    /// A world whose last core is slow, with or without the kernel's capacity.
    fn on_two_types(seed: u64, noise: f64, capacity: Option<u32>) -> TestWorld {
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
        TestWorld::on(machine, seed, noise)
    }

    fn on(machine: Machine, seed: u64, noise: f64) -> TestWorld {
        let mut rng = Rng::new(seed);
        let programs = programs(&mut rng);
        let mut learner = Learner::new(&machine.core_types, Nanos(Q));
        (0..programs.len() as u32).for_each(|job| learner.begin(TaskId(job), 1, 0.0, None));
        TestWorld {
            machine,
            progress: vec![0.0; programs.len()],
            programs,
            learner,
            now: 0,
            rng,
            noise,
            missing: None,
            change: None,
            turn: 0,
            misses: Vec::new(),
        }
    }

    /// Runs jobs on CPUs for a quantum.
    fn run(&mut self, placed: &[(u32, u32)]) {
        self.step(placed, Q, Purpose::Run);
    }

    /// Runs a job for a quantum while no other job runs.
    fn run_alone(&mut self, job: u32) {
        let mut done = [Done::default()];
        self.add_work(&[(job, 0)], Q as f64, &mut done);
        self.now += Q;
        let counts = self.counts_of(job, &done[0]);
        let mut sample = sample(job, CpuId(0), self.now, Q, counts, Purpose::Run);
        sample.whole_core = true;
        self.learner.observe(&self.machine, &[sample]);
    }

    /// Measures jobs, each on a core.
    fn measure(&mut self, placed: &[(u32, u32)]) {
        self.step(placed, SHORT, Purpose::MeasureAlone);
    }

    fn step(&mut self, placed: &[(u32, u32)], ns: u64, purpose: Purpose) {
        let mut done = vec![Done::default(); placed.len()];
        let speeds = self.add_work(placed, 0.5 * ns as f64, &mut done);
        match self.change.take() {
            Some((job, program)) => self.programs[job as usize] = program,
            None if purpose == Purpose::Run => self.predict(placed, &speeds),
            None => {}
        }
        self.add_work(placed, 0.5 * ns as f64, &mut done);
        self.now += ns;
        let mut samples = Vec::new();
        for (&(job, cpu), done) in placed.iter().zip(&done) {
            let counts = self.counts_of(job, done);
            samples.push(sample(job, CpuId(cpu), self.now, ns, counts, purpose));
        }
        self.learner.observe(&self.machine, &samples);
    }

    /// Adds what jobs do in so many ns, and returns their speeds.
    fn add_work(&mut self, placed: &[(u32, u32)], ns: f64, done: &mut [Done]) -> Vec<Speed> {
        let place = |&(job, cpu): &(u32, u32)| {
            let &Cpu {
                core, core_type, ..
            } = &self.machine.cpus[cpu as usize];
            PlacedProgram {
                program: self.programs[job as usize],
                core,
                kind: core_type,
            }
        };
        let places: Vec<PlacedProgram> = placed.iter().map(place).collect();
        let speeds = run(&places);
        for (at, &(job, _)) in placed.iter().enumerate() {
            let (program, speed) = (places[at].program, &speeds[at]);
            let instructions = ns / speed.ns;
            self.progress[job as usize] += instructions * alone(program, 0).ns / Q as f64;
            let done = &mut done[at];
            done.cycles += speed.ghz * ns;
            done.instructions += instructions;
            done.l1 += instructions * program.l1;
            done.llc += instructions * speed.llc;
            done.reads += instructions * speed.reads;
        }
        speeds
    }

    /// What is counted of it.
    fn counts_of(&mut self, job: u32, done: &Done) -> Counts {
        let mut noisy = |count: f64| {
            let off = between(&mut self.rng, -self.noise, self.noise);
            Reading::Value((count * (1.0 + off)) as u64)
        };
        let mut counts = Usage::zero(TaskId(job)).counts;
        counts[Counter::Cycles] = noisy(done.cycles);
        counts[Counter::Instructions] = noisy(done.instructions);
        counts[Counter::L1Accesses] = noisy(done.l1);
        counts[Counter::LlcAccesses] = noisy(done.llc);
        counts[Counter::MmReads] = noisy(done.reads);
        if let Some(counter) = self.missing {
            counts[counter] = Reading::Absent(Absence::NoSuchEvent);
        }
        counts
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
            PlacedJob {
                asks: *known.asks_on(core_type),
                core,
                llc: 0,
                domain: 0,
                away: false,
            }
        };
        let seats: Vec<PlacedJob> = placed.iter().zip(&known).map(seat).collect();
        let shared = self.learner.shared();
        let mut prediction = SpeedPrediction::default();
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

    /// Measures the next job alone, in later rounds on another core, which may be of another type.
    fn measure_next(&mut self) {
        let jobs = self.programs.len();
        let core = 2 * (self.turn / jobs) % 3;
        self.measure(&[((self.turn % jobs) as u32, core as u32)]);
        self.turn += 1;
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
    fn knowing(seed: u64, noise: f64, known: &[Option<EarlierPhases>]) -> TestWorld {
        let mut world = TestWorld::new(seed, noise);
        for (job, earlier) in (0..).zip(known) {
            world.learner.begin(TaskId(job), 1, 0.0, earlier.as_ref());
        }
        world
    }

    fn kept(&self) -> Vec<Option<EarlierPhases>> {
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
