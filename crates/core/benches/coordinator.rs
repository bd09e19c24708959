//! The cost of a coordinator: the loop and `place` on 64 nodes of 64 CPUs, with jobs of 10 s in the mean that come and
//! end. It prints the CPU time for each job, and its share of the time that the jobs take.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Instant;

const NODES: u32 = 64;
const SLOTS: u32 = 64;
const MEAN_MS: u64 = 10_000;

fn main() {
    println!("| jobs | us a job | share of a CPU | decide, us |");
    println!("| --- | --- | --- | --- |");
    for jobs in [25_000, 50_000, 100_000] {
        measure(jobs);
    }
}

fn measure(jobs: u32) {
    let entry = find_policy("place").expect("a policy of the table");
    let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
    let mut policy = (entry.build)(&params);
    let config = RunConfig {
        jobs_per_cpu: Some(2),
        results_max: 3_000,
        ..RunConfig::default()
    };
    let mut nodes = Nodes::new();
    let began = Instant::now();
    let result = run(
        &mut nodes,
        &mut *policy,
        &mut NullRecorder,
        specs(jobs),
        &config,
    );
    let took = began.elapsed();
    let result = result.expect("a run");
    assert_eq!(result.left_out.count() + result.tasks.len(), jobs as usize);
    assert_eq!(result.policy_faults, 0);
    let us = took.as_secs_f64() * 1e6 / f64::from(jobs);
    let share = took.as_secs_f64() / result.turnaround.as_s();
    let decide = result.overhead.decide.quantile_ns(0.5).unwrap_or_default() as f64 / 1e3;
    println!(
        "| {jobs} | {us:.1} | {:.2} % | {decide:.1} |",
        share * 100.0
    );
}

/// Jobs with demands all different.
fn specs(jobs: u32) -> Vec<TaskSpec> {
    let mut specs = Vec::new();
    for id in 0..jobs {
        let mut spec = TaskSpec::new(id, &format!("job-{id}"));
        spec.solo.mm_reads = Some(Rate(u64::from(id) * 7_919 % 30_011));
        specs.push(spec);
    }
    specs
}

/// Nodes whose jobs take their time, whatever the others do.
struct Nodes {
    machine: Arc<Machine>,
    since: Instant,
    now: Nanos,
    ends: BinaryHeap<Reverse<(Nanos, TaskId)>>,
    rng: Rng,
}

#[derive(Debug, thiserror::Error)]
#[error("nothing runs")]
struct Idle;

impl Nodes {
    fn new() -> Nodes {
        let mut machine = Machine::uniform("nodes", NODES * SLOTS, 1);
        let cpus = |node: u32| {
            (node * SLOTS..(node + 1) * SLOTS)
                .map(CpuId)
                .collect::<CpuSet>()
        };
        let sets: Vec<CpuSet> = (0..NODES).map(cpus).collect();
        for cpu in &mut machine.cpus {
            cpu.llc = (cpu.id.0 / SLOTS) as usize;
            cpu.memory_domain = cpu.llc;
        }
        let node = |(ix, cpus): (usize, &CpuSet)| Node {
            name: format!("node{ix}"),
            cpus: cpus.clone(),
            width: None,
            memory: Some(256 << 30),
        };
        machine.nodes = sets.iter().enumerate().map(node).collect();
        machine.llcs.clone_from(&sets);
        machine.memory_domains = sets;
        machine.validate().expect("a sound machine");
        Nodes {
            machine: Arc::new(machine),
            since: Instant::now(),
            now: Nanos::ZERO,
            ends: BinaryHeap::new(),
            rng: Rng::new(1),
        }
    }
}

impl Backend for Nodes {
    type Error = Idle;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn now(&mut self) -> Nanos {
        self.now
    }
    fn stopwatch(&self) -> Option<Nanos> {
        Some(Nanos(self.since.elapsed().as_nanos() as u64))
    }
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Idle> {
        let next = self.ends.peek().map(|Reverse((at, _))| *at);
        let until = until.unwrap_or(Nanos::MAX).max(self.now);
        if next.is_none_or(|next| next > until) {
            self.now = until;
            return if until == Nanos::MAX {
                Err(Idle)
            } else {
                Ok(())
            };
        }
        if let Some(Reverse((at, task))) = self.ends.pop() {
            self.now = at;
            let exit = Exit::Code(0);
            events.push(Event::Ended { task, exit });
        }
        Ok(())
    }
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        out.extend(tasks.iter().map(|&task| Usage::zero(task)));
    }
    fn device_time(&mut self, _: &mut [Usage]) {}

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, _: TaskId) -> Reading<Wanting> {
        Reading::Absent(Absence::NotOffered)
    }
    fn apply(&mut self, changes: &[Change]) -> Result<(), Idle> {
        for change in changes {
            let length = Nanos::from_ms(MEAN_MS / 2 + self.rng.below(MEAN_MS));
            self.ends.push(Reverse((self.now + length, change.task())));
        }
        Ok(())
    }
    fn began(&self, _: TaskId) -> Began {
        Began::WithDecision
    }
    fn planner(&mut self) -> Option<&mut dyn Planner<Idle>> {
        None
    }
    fn kill(&mut self, _: TaskId, _: Kill) {}
    fn ending(&mut self) {}
    fn forget(&mut self, _: TaskId) {}
    fn restart(&mut self, _: TaskId) -> bool {
        false
    }
    fn resources(&mut self, _: TaskId) -> Resources {
        Resources::absent(Absence::NotOffered)
    }
    fn may_start(&mut self, _: &TaskSpec) -> MayStart {
        MayStart::Yes
    }
    fn traffic(&mut self, _: &mut Vec<Traffic>) {}
    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NoEnergyMeter)
    }
}
