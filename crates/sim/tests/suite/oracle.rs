//! Compares the simulation with a slow reference: the same equations in fixed steps of a microsecond, without
//! shortcuts.
//!
//! Each thread has a core to itself. What it holds of the cache follows `reads - replaced x held w / sum(held w)`, where
//! empty lines are replaced first. `w` is the fourth power of the age of its oldest line: the time in which it touches as
//! many different lines as it holds, one by one. The latency of memory is the one at which memory delivers what all threads ask for at it, found by
//! bisection in every step.

use crate::support::*;
use cosched_core::*;
use cosched_sim::program::{ProgramSpec, Stall};
use cosched_sim::*;

const STEP_NS: f64 = 1_000.0;

#[derive(Clone)]
struct Walker {
    cpi: f64,
    mlp: f64,
    writes: f64,
    /// Cycles that a hit costs.
    hit: f64,
    /// (lines held, reads per instruction).
    reads: Vec<(f64, f64)>,
    starts: f64,
    /// When it is stopped, and goes on.
    pause: (f64, f64),
    held: f64,
    age: f64,
    read: f64,
    done: f64,
}

impl Walker {
    fn of(program: &ProgramSpec, machine: &MachineSpec, starts: f64, pause: (f64, f64)) -> Walker {
        let Stall::Overlap { mlp } = program.memory.stall else {
            panic!("a fit")
        };
        let lines = |mb: f64| mb * 16_384.0;
        // The curve begins at the size of the private cache. The last level was measured behind 1 MB. The reads of
        // these programs follow the curve unscaled.
        let mut reads = vec![(
            lines(machine.core_types[0].l2_kb / 1_024.0),
            program.cache.l1_misses_per_ki / 1e3,
        )];
        reads.push((lines(1.0), program.cache.llc_accesses_per_ki / 1e3));
        let last = program
            .cache
            .llc_misses_per_ki
            .iter()
            .map(|&(mb, misses)| (lines(mb + 1.0), misses / 1e3));
        reads.extend(last);
        let writes = program.memory.writes_per_ki / program.memory.reads_per_ki.max(1e-300);
        let (held, age, read, done) = (0.0, f64::INFINITY, 0.0, 0.0);
        let hit = machine.llc.hit_ns * machine.core_types[0].ghz / mlp;
        Walker {
            cpi: program.core.cpi,
            mlp,
            writes,
            hit,
            reads,
            starts,
            pause,
            held,
            age,
            read,
            done,
        }
    }

    fn runs(&self, now: f64) -> bool {
        self.starts <= now && !(self.pause.0 <= now && now < self.pause.1)
    }

    fn reads_now(&self) -> f64 {
        self.reads_with(self.held)
    }

    /// Reads per instruction with so many lines.
    fn reads_with(&self, held: f64) -> f64 {
        let mut before = self.reads[0];
        for &point in &self.reads {
            if held < point.0 {
                let width = (point.0 - before.0).max(1e-9);
                return before.1 + (point.1 - before.1) * ((held - before.0) / width).max(0.0);
            }
            before = point;
        }
        before.1
    }

    /// Its lines times their weight.
    fn mass(&self) -> f64 {
        self.held * self.age.powi(4)
    }

    /// Instructions since it touched the oldest line that it holds.
    fn instructions_ago(&self) -> f64 {
        const LINES: f64 = 64.0;
        let least = (0.01 * self.reads[0].1).max(1e-9);
        let (mut at, mut ago) = (0.0, 0.0);
        while at < self.held {
            let width = f64::min(LINES, self.held - at);
            ago += width / self.reads_with(at + 0.5 * width).max(least);
            at += width;
        }
        ago
    }

    /// Instructions per ns at a latency.
    fn rate(&self, ghz: f64, latency: f64) -> f64 {
        let hits = self.reads[0].1 - self.reads_now();
        ghz / (self.cpi + hits * self.hit + self.reads_now() * latency * ghz / self.mlp)
    }
}

fn reference(machine: &MachineSpec, mut walkers: Vec<Walker>, until: f64) -> Vec<Walker> {
    let ghz = machine.core_types[0].ghz;
    let size = machine.llc.mb * 16_384.0;
    let memory = &machine.memory;
    let peak = f64::from(memory.channels) * memory.gb_per_s_per_channel / 64.0;
    let mut now = 0.0;
    while now < until {
        let runs = |walker: &Walker| walker.runs(now);
        let asked = |latency: f64| {
            let running = walkers.iter().filter(|walker| runs(walker));
            running.fold((0.0, 0.0, 0.0), |(reads, lines, squares), walker| {
                let more = walker.rate(ghz, latency) * walker.reads_now();
                let its = more * (1.0 + walker.writes);
                (reads + more, lines + its, squares + its * its)
            })
        };
        let (mut low, mut high) = (memory.idle_latency_ns, 100.0 * memory.idle_latency_ns);
        let mut latency = low;
        for _ in 0..40 {
            latency = 0.5 * (low + high);
            let (reads, lines, squares) = asked(latency);
            let streams = if squares > 0.0 {
                lines * lines / squares
            } else {
                1.0
            };
            let peak = peak
                * (1.0
                    - (memory.stream_loss * (streams - 1.0) / f64::from(memory.channels))
                        .min(memory.stream_loss_most));
            let share = if lines > 0.0 { reads / lines } else { 1.0 };
            let given = memory.idle_latency_ns * memory.curve.latency(lines / peak, share);
            if given > latency {
                low = latency
            } else {
                high = latency
            }
        }
        // Lines that nobody uses go first.
        let fills = asked(latency).0 * STEP_NS;
        let used = walkers
            .iter()
            .filter(|walker| runs(walker))
            .map(|walker| walker.held)
            .sum::<f64>();
        let unused = (size - used).max(0.0);
        for walker in &mut walkers {
            walker.age = if walker.runs(now) {
                let comes_back = walker.instructions_ago() / walker.rate(ghz, latency);
                comes_back.min(walker.age + STEP_NS)
            } else {
                f64::INFINITY
            };
        }
        let running = walkers.iter().filter(|walker| runs(walker));
        let all = running.map(Walker::mass).sum::<f64>().max(1e-300);
        let replaced = (fills - unused).max(0.0) / all;
        let left = if unused > fills {
            1.0 - fills / unused
        } else {
            0.0
        };
        for walker in &mut walkers {
            if walker.runs(now) {
                let instructions = walker.rate(ghz, latency) * STEP_NS;
                let reads = walker.reads_now() * instructions;
                walker.done += instructions;
                walker.read += reads;
                walker.held += reads - walker.mass() * replaced;
            } else {
                walker.held *= left;
            }
        }
        now += STEP_NS;
    }
    walkers
}

/// Compares jobs that start at different times on CPUs of their own, after `at_ms`.
fn compare(machine: &MachineSpec, jobs: &[(ProgramSpec, u64)], at_ms: u64, tolerance: f64) {
    let never = jobs
        .iter()
        .map(|_| (u64::MAX, u64::MAX))
        .collect::<Vec<_>>();
    compare_with_pauses(machine, jobs, &never, at_ms, tolerance);
}

/// The same, with when each job is stopped and goes on.
fn compare_with_pauses(
    machine: &MachineSpec,
    jobs: &[(ProgramSpec, u64)],
    pauses: &[(u64, u64)],
    at_ms: u64,
    tolerance: f64,
) {
    let mut machine = machine.clone();
    (machine.kernel.switch_us, machine.kernel.migration_us) = (0.0, 0.0);
    let ns = |ms: u64| ms as f64 * 1e6;
    let pauses_ns = pauses.iter().map(|&(from, to)| (ns(from), ns(to)));
    let walkers = jobs
        .iter()
        .zip(pauses_ns)
        .map(|((program, at), pause)| Walker::of(program, &machine, ns(*at), pause))
        .collect();
    let endless = jobs
        .iter()
        .map(|(program, _)| job(program, 3_000))
        .collect();
    let config = config(&machine, endless);
    let mut sim = Sim::new(config).unwrap();
    // When, which task, and whether it runs from then on.
    let mut moments: Vec<(u64, u32, bool)> = jobs
        .iter()
        .zip(0..)
        .map(|((_, ms), task)| (*ms, task, true))
        .collect();
    for (&(from, to), task) in pauses
        .iter()
        .zip(0..)
        .filter(|((from, _), _)| *from < at_ms)
    {
        moments.extend([(from, task, false), (to, task, true)]);
    }
    moments.sort_unstable();
    let wait = |sim: &mut Sim, ms: u64| {
        while sim.now() < Nanos::from_ms(ms) {
            sim.wait(Some(Nanos::from_ms(ms)), &mut Vec::new()).unwrap();
        }
    };
    for (ms, task, runs) in moments {
        wait(&mut sim, ms);
        if !runs {
            sim.apply(&[Change::Stop { task: TaskId(task) }]).unwrap();
            continue;
        }
        let placement = Placement::Exclusive {
            cpus: [CpuId(task)].into_iter().collect::<CpuSet>(),
            whole_core: false,
        };
        sim.apply(&[Change::Place {
            task: TaskId(task),
            placement,
            lease_end: None,
            purpose: Purpose::Run,
        }])
        .unwrap();
    }
    wait(&mut sim, at_ms);
    let walkers = reference(&machine, walkers, at_ms as f64 * 1e6);
    let mut usages = Vec::new();
    sim.read(
        &(0..jobs.len() as u32).map(TaskId).collect::<Vec<_>>(),
        &mut usages,
    );
    for (task, (usage, walker)) in usages.iter().zip(&walkers).enumerate() {
        let executed = usage.counts[Counter::Instructions].value().unwrap() as f64;
        let off = executed / walker.done - 1.0;
        let reads = usage.counts[Counter::MmReads].value().unwrap() as f64;
        let reads_off = (reads - walker.read) / walker.read.max(1e4);
        assert!(
            off.abs() < tolerance,
            "task {task}: {executed} instructions, the reference {}",
            walker.done
        );
        assert!(
            reads_off.abs() < tolerance,
            "task {task}: {reads} reads, the reference {}",
            walker.read
        );
    }
}

#[test]
fn streams_meet_the_reference() {
    compare(
        &machine(4, 1),
        &[
            (stream(), 0),
            (stream(), 10),
            (compute(), 0),
            (stream(), 30),
        ],
        100,
        0.02,
    );
}

#[test]
fn walkers_that_fill_the_cache_together_meet_the_reference() {
    compare(
        &machine(4, 1),
        &[(chase(6.0), 0), (chase(4.0), 0), (chase(7.0), 20)],
        150,
        0.03,
    );
}

#[test]
fn a_walker_at_rest_meets_the_reference_when_a_stream_starts() {
    compare(
        &machine(2, 1),
        &[(chase(2.0), 0), (stream(), 300)],
        400,
        0.03,
    );
}

#[test]
fn a_walker_at_rest_meets_the_reference_when_streams_start_and_writes_cost() {
    let mut writer = stream();
    writer.memory.writes_per_ki = 15.0;
    compare(
        &machine(4, 1),
        &[
            (chase(2.0), 0),
            (writer.clone(), 150),
            (writer, 180),
            (chase(3.0), 50),
        ],
        250,
        0.03,
    );
}

#[test]
fn walkers_that_stop_leave_their_lines_to_others_and_fetch_them_again() {
    // Together they want more than the cache holds; the pauses are shorter and longer than what fills it.
    let jobs = [(chase(4.0), 0), (chase(5.0), 0), (stream(), 0)];
    let never = (u64::MAX, u64::MAX);
    compare_with_pauses(
        &machine(4, 1),
        &jobs,
        &[(100, 101), never, never],
        160,
        0.03,
    );
    compare_with_pauses(
        &machine(4, 1),
        &jobs,
        &[(100, 140), (120, 150), never],
        200,
        0.03,
    );
}
