//! Compares the simulation with a slow reference: the same equations in fixed steps of a microsecond, without
//! shortcuts.
//!
//! Each thread has a core to itself. What it holds of the cache follows `reads - replaced x held / size`, where empty lines
//! are replaced first. The latency of memory is the one at which memory delivers what all threads ask for at it, found by
//! bisection in every step.

mod support;

use cosched_core::*;
use cosched_sim::program::{ProgramSpec, Stall};
use cosched_sim::*;
use support::*;

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
    held: f64,
    read: f64,
    done: f64,
}

impl Walker {
    fn of(program: &ProgramSpec, machine: &MachineSpec, starts: f64) -> Walker {
        let Stall::Overlap { mlp } = program.memory.stall else { panic!("a fit") };
        let lines = |mb: f64| mb * 16_384.0;
        // The curve begins at the size of the private cache. The last level was measured behind 1 MB. The reads of
        // these programs follow the curve unscaled.
        let mut reads = vec![(lines(machine.core_types[0].l2_kb / 1_024.0), program.cache.l1_misses_per_ki / 1e3)];
        reads.push((lines(1.0), program.cache.llc_accesses_per_ki / 1e3));
        let last = program.cache.llc_misses_per_ki.iter().map(|&(mb, misses)| (lines(mb + 1.0), misses / 1e3));
        reads.extend(last);
        let writes = program.memory.writes_per_ki / program.memory.reads_per_ki.max(1e-300);
        let (held, read, done) = (0.0, 0.0, 0.0);
        let hit = machine.llc.hit_ns * machine.core_types[0].ghz / mlp;
        Walker { cpi: program.core.cpi, mlp, writes, hit, reads, starts, held, read, done }
    }

    fn reads_now(&self) -> f64 {
        let mut before = self.reads[0];
        for &point in &self.reads {
            if self.held < point.0 {
                let width = (point.0 - before.0).max(1e-9);
                return before.1 + (point.1 - before.1) * ((self.held - before.0) / width).max(0.0);
            }
            before = point;
        }
        before.1
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
        let runs = |walker: &Walker| walker.starts <= now;
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
            let streams = if squares > 0.0 { lines * lines / squares } else { 1.0 };
            let peak = peak * (1.0 - (memory.stream_loss * (streams - 1.0) / f64::from(memory.channels)).min(0.086));
            let share = if lines > 0.0 { reads / lines } else { 1.0 };
            let given = memory.idle_latency_ns * memory.curve.latency(lines / peak, share);
            if given > latency { low = latency } else { high = latency }
        }
        // Empty lines go first. Here nobody stops.
        let fills = asked(latency).0 * STEP_NS;
        let empty = size - walkers.iter().map(|walker| walker.held).sum::<f64>();
        let replaced = (fills - empty.max(0.0)).max(0.0) / size;
        for walker in &mut walkers {
            if walker.starts <= now {
                let instructions = walker.rate(ghz, latency) * STEP_NS;
                let reads = walker.reads_now() * instructions;
                walker.done += instructions;
                walker.read += reads;
                walker.held += reads - walker.held * replaced;
            }
        }
        now += STEP_NS;
    }
    walkers
}

/// Compares jobs that start at different times on CPUs of their own, after `at_ms`.
fn compare(machine: &MachineSpec, jobs: &[(ProgramSpec, u64)], at_ms: u64, tolerance: f64) {
    let mut machine = machine.clone();
    (machine.kernel.switch_us, machine.kernel.migration_us) = (0.0, 0.0);
    let walkers = jobs.iter().map(|(program, ms)| Walker::of(program, &machine, *ms as f64 * 1e6)).collect();
    let endless = jobs.iter().map(|(program, _)| job(program, 3_000)).collect();
    let config = config(&machine, endless);
    let mut sim = Sim::new(config).unwrap();
    let mut starts: Vec<(u64, u32)> = jobs.iter().zip(0..).map(|((_, ms), task)| (*ms, task)).collect();
    starts.sort_unstable();
    let wait = |sim: &mut Sim, ms: u64| {
        while sim.now() < Nanos::from_ms(ms) {
            sim.wait(Some(Nanos::from_ms(ms)), &mut Vec::new()).unwrap();
        }
    };
    for (ms, task) in starts {
        wait(&mut sim, ms);
        let placement = Placement::Exclusive { cpus: [CpuId(task)].into_iter().collect::<CpuSet>(), whole_core: false };
        sim.apply(&[Change::Place { task: TaskId(task), placement, lease_end: None, purpose: Purpose::Run }]).unwrap();
    }
    wait(&mut sim, at_ms);
    let walkers = reference(&machine, walkers, at_ms as f64 * 1e6);
    let mut usages = Vec::new();
    sim.read(&(0..jobs.len() as u32).map(TaskId).collect::<Vec<_>>(), &mut usages);
    for (task, (usage, walker)) in usages.iter().zip(&walkers).enumerate() {
        let executed = usage.counts[Counter::Instructions].value().unwrap() as f64;
        let off = executed / walker.done - 1.0;
        let reads = usage.counts[Counter::MmReads].value().unwrap() as f64;
        let reads_off = (reads - walker.read) / walker.read.max(1e4);
        assert!(off.abs() < tolerance, "task {task}: {executed} instructions, the reference {}", walker.done);
        assert!(reads_off.abs() < tolerance, "task {task}: {reads} reads, the reference {}", walker.read);
    }
}

#[test]
fn streams_meet_the_reference() {
    compare(&machine(4, 1), &[(stream(), 0), (stream(), 10), (compute(), 0), (stream(), 30)], 100, 0.02);
}

#[test]
fn walkers_that_fill_the_cache_together_meet_the_reference() {
    compare(&machine(4, 1), &[(chase(6.0), 0), (chase(4.0), 0), (chase(7.0), 20)], 150, 0.03);
}

#[test]
fn a_walker_at_rest_meets_the_reference_when_a_stream_starts() {
    compare(&machine(2, 1), &[(chase(2.0), 0), (stream(), 300)], 400, 0.03);
}

#[test]
fn a_walker_at_rest_meets_the_reference_when_streams_start_and_writes_cost() {
    let mut writer = stream();
    writer.memory.writes_per_ki = 15.0;
    compare(&machine(4, 1), &[(chase(2.0), 0), (writer.clone(), 150), (writer, 180), (chase(3.0), 50)], 250, 0.03);
}
