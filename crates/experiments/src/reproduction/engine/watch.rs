//! A recorder of trials: where tasks ran, and the errors of estimates.

use cosched_core::{
    Change, Counter, CpuSet, DecisionRecord, Estimates, Fact, Nanos, Placement, ProgressBasis,
    Purpose, Recorder, Sample, Snapshot, TaskId,
};
use std::collections::BTreeMap;

/// A task that has had a CPU from one instant to another, in ns from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) cpu: u32,
    pub(crate) task: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A recorder of a trial: where tasks ran, and the errors of estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrialRecorder {
    noted: Nanos,
    since: Nanos,
    /// What runs where since then.
    placed: BTreeMap<TaskId, Placement>,
    measures: bool,
    cpus: usize,
    big: CpuSet,
    /// Time in which a task was measured in low contention.
    pub(crate) measuring: Nanos,
    /// Idle CPU time during these measurements, in s.
    pub(crate) idle_measuring_s: f64,
    /// For each task, the time for which it had a place on big cores alone, in s.
    pub(crate) on_big_s: BTreeMap<TaskId, f64>,
    /// How often a running task was given other CPUs.
    pub(crate) moves: u32,
    /// The last estimate of each task's progress, and its true progress then, in quanta.
    pub(crate) progress: BTreeMap<TaskId, (f64, f64)>,
    /// Estimated IPC alone / true IPC alone - 1 of each new estimate.
    pub(crate) solo_errors: Vec<f64>,
    /// Who had which CPU in the noted time. A task that shares CPUs is noted on the first free one of them.
    pub(crate) stays: Vec<Stay>,
    /// Sums of the counts of each task in the noted time: lines read and written, and time in ns.
    pub(crate) lines: BTreeMap<TaskId, (u64, u64)>,
}

impl TrialRecorder {
    /// Watches a run, and notes for so long who runs where.
    pub(crate) fn new(noted: Nanos) -> TrialRecorder {
        TrialRecorder {
            noted,
            ..TrialRecorder::default()
        }
    }

    /// Adds up the time since the last decision.
    pub(crate) fn pass(&mut self, now: Nanos) {
        let passed = now.since(self.since);
        let owners = self.owners();
        if self.measures {
            self.measuring = Nanos(self.measuring.0 + passed.0);
            self.idle_measuring_s += self.cpus.saturating_sub(owners.len()) as f64 * passed.as_s();
        }
        for (&task, placement) in &self.placed {
            if !self.big.is_empty() && placement.cpus().is_subset(&self.big) {
                *self.on_big_s.entry(task).or_default() += passed.as_s();
            }
        }
        if self.since < self.noted && passed > Nanos::ZERO {
            self.stays
                .extend(owners.into_iter().map(|(cpu, task)| Stay {
                    cpu,
                    task: task.0,
                    from: self.since.0,
                    to: now.0.min(self.noted.0),
                }));
        }
        self.since = now;
    }

    /// Who has which CPU.
    fn owners(&self) -> BTreeMap<u32, TaskId> {
        let mut owners: BTreeMap<u32, TaskId> = BTreeMap::new();
        for (&task, placement) in &self.placed {
            if let Placement::Exclusive { cpus, .. } = placement {
                owners.extend(cpus.iter().map(|cpu| (cpu.0, task)));
            }
        }
        for (&task, placement) in &self.placed {
            if let Placement::Shared { .. } = placement {
                let cpus = placement.cpus();
                let free = cpus.iter().find(|cpu| !owners.contains_key(&cpu.0));
                owners.extend(free.map(|cpu| (cpu.0, task)));
            }
        }
        owners
    }

    fn see_machine(&mut self, snapshot: &Snapshot) {
        let machine = &snapshot.machine;
        self.cpus = machine.cpus.len();
        if machine.core_types.len() > 1 {
            let big = machine.cpus.iter().filter(|cpu| cpu.core_type == 0);
            self.big = big.map(|cpu| cpu.id).collect();
        }
    }

    /// Compares estimates with the truth, where there are solo traces.
    fn compare(&mut self, sample: &Sample, known: &Estimates) {
        // What others leave of a quantum, or a job that is alone at the end, is no estimate that was asked for.
        if sample.purpose == Purpose::MeasureAlone
            && known.solo_age == 0
            && let Some(estimate) = known.solo_ipc.value()
            && let Some(truth) = known.trace_ipc.value()
            && truth > 0.0
        {
            self.solo_errors.push(estimate / truth - 1.0);
        }
        if known.progress_basis == ProgressBasis::Ipc
            && let Some(estimate) = known.progress.value()
            && let Some(truth) = known.trace_progress.value()
            && truth > 0.0
        {
            self.progress.insert(sample.task, (estimate, truth));
        }
    }

    fn count(&mut self, sample: &Sample) {
        let (lines, ns) = self.lines.entry(sample.task).or_default();
        for counter in [Counter::MmReads, Counter::MmWrites] {
            *lines += sample.counts[counter].value().unwrap_or(0);
        }
        *ns += sample.interval.0;
    }

    /// What runs where after a decision.
    fn place(&mut self, record: &DecisionRecord<'_>) {
        self.placed.clear();
        for task in &record.snapshot.tasks {
            if let Some(running) = &task.running {
                self.placed.insert(task.id, running.placement.clone());
            }
        }
        for change in &record.decision.changes {
            match change {
                Change::Stop { task } => _ = self.placed.remove(task),
                Change::Place {
                    task, placement, ..
                } => {
                    let before = self.placed.insert(*task, placement.clone());
                    let moved = before.is_some_and(|before| before.cpus() != placement.cpus());
                    self.moves += u32::from(moved);
                }
            }
        }
        self.measures = record.decision.basis.measures.is_some();
    }
}

impl Recorder for TrialRecorder {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let now = record.snapshot.now;
            self.pass(now);
            self.see_machine(record.snapshot);
            for sample in record.samples {
                let Some(task) = record.snapshot.task(sample.task) else {
                    continue;
                };
                self.compare(sample, &task.estimates);
                if now <= self.noted {
                    self.count(sample);
                }
            }
            self.place(&record);
        }
    }
}
