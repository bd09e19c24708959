//! Intervals: from a placement, or the last sample, to the next sample. A closed interval becomes a sample for the
//! estimators. The loop knows the plan: where each task was placed, beside which others, and for how long. The backend
//! reports only usage. So a sample means the same on every backend.

use super::backend::{Backend, Began};
use super::looseness::cpus_of;
use super::state::RunLoop;
use super::task_record::OpenInterval;
use crate::decision::{Change, Decision};
use crate::device::DeviceTime;
use crate::placement::{Placement, Purpose};
use crate::residency::Residency;
use crate::sample::{Sample, Usage};
use crate::snapshot::{Running, Snapshot, TaskView};
use crate::task::TaskId;
use crate::traffic::{Traffic, TrafficRates};
use crate::units::{Nanos, Reading};
use std::sync::Arc;

impl<B: Backend> RunLoop<'_, B> {
    /// Whether a change ends a task's interval: it stops the task, changes its placement or purpose, or places a
    /// filler.
    pub(super) fn breaks(&self, change: &Change) -> bool {
        let Some(task) = self.snap.task(change.task()) else {
            return false;
        };
        let Some(running) = &task.running else {
            return true;
        };
        match change {
            Change::Stop { .. } => true,
            Change::Place {
                placement, purpose, ..
            } => running.placement != *placement || running.purpose != *purpose,
        }
    }

    /// Closes the open intervals of these tasks and feeds the estimators; with `reopen`, new intervals start at once.
    pub(super) fn close(&mut self, tasks: &[TaskId], reopen: bool) {
        let now = self.snap.now;
        let mut due = tasks.to_vec();
        due.retain(|id| {
            let interval = self.records[*id].interval.as_ref();
            interval.is_some_and(|interval| interval.since < now)
        });
        if due.is_empty() {
            return;
        }
        let mut usages = Vec::with_capacity(due.len());
        let first = self.samples.len();
        self.backend.read(&due, &mut usages);
        self.read_devices(&mut usages);
        if reopen {
            self.look_at_widths(&due, &usages);
        }
        let traffic = self.traffic_now();
        // Only a new interval needs the co-runners, and finding them costs a pass over all tasks.
        let co_runners = reopen.then(|| self.running_now());
        for usage in usages {
            let task = usage.task;
            let Some(interval) = self.records[task].interval.take() else {
                continue;
            };
            self.take_sample(&interval, usage, &traffic);
            if let Some(co_runners) = &co_runners {
                self.records[task].interval = Some(OpenInterval {
                    since: now,
                    planned_end: None,
                    co_runners: co_runners.clone(),
                    disturbed: false,
                    traffic: traffic.clone(),
                    ..interval
                });
            }
        }
        self.learn(first);
    }

    /// Reads how long devices worked for the tasks, if the policy needs it.
    fn read_devices(&mut self, usages: &mut [Usage]) {
        if self.config.devices {
            return self.backend.device_time(usages);
        }
        for usage in usages {
            usage.device_time = DeviceTime::not_requested();
        }
    }

    /// Turns a closed interval into a sample and feeds the task's estimators.
    fn take_sample(&mut self, interval: &OpenInterval, usage: Usage, traffic: &[Traffic]) {
        let record = &mut self.records[usage.task];
        let mut sample = planned_sample(&self.snap, interval, &usage, &record.used);
        if !traffic.is_empty() {
            let domains = domains_of(&self.snap, interval, usage.task);
            sample.traffic =
                TrafficRates::between(&interval.traffic, traffic, &domains, sample.interval);
        }
        let position = self.snap.position(usage.task);
        let mut view = position.map(|position| &mut self.snap.tasks[position]);
        let fills_in = view.as_ref().is_some_and(|view| view.running.is_none());
        let length = sample.interval;
        if let Some(residency) = usage.residency_since(&record.used) {
            observe(&mut sample, &residency);
            if let (Some(view), Some(last)) = (&mut view, residency.last_on_cpu)
                && sample.interval > Nanos::ZERO
            {
                if fills_in {
                    // It began to fill in no later than this, so this bounds its wait.
                    let began = (last - sample.interval).max(interval.since);
                    record.waited_max = record.waited_max.max(began - view.waiting_since);
                }
                view.waiting_since = view.waiting_since.max(last);
            }
        }
        record.used = merge(usage, &record.used);
        // A placed task owns its CPU even while it sleeps; a filler has one only while it runs.
        record.ran += if fills_in { sample.interval } else { length };
        if let Some(view) = view {
            let estimates = &mut view.estimates;
            let clock = self.snap.machine.clock_share(&sample.cpus);
            record.estimator.update(&sample, clock, estimates);
            record.progress_basis = estimates.progress_basis;
            record.last_solo = estimates.solo_ipc;
        }
        // An unused filler and a task that slept all the time yield no sample.
        if sample.interval > Nanos::ZERO {
            self.samples.push(sample);
        }
    }

    /// Learns from the samples from index `first` on, which ended together.
    fn learn(&mut self, first: usize) {
        let samples = &self.samples[first..];
        self.learner.observe(&self.snap.machine, samples);
        self.snap.contention = self.learner.shared();
        for sample in samples {
            if let Some(position) = self.snap.position(sample.task) {
                self.snap.tasks[position].estimates.learnt = self.learner.known(sample.task);
            }
        }
    }

    /// The running tasks, which may run beside each other; none on several nodes, whose own schedulers know.
    pub(super) fn running_now(&self) -> Arc<[TaskId]> {
        if !self.snap.machine.nodes.is_empty() {
            return Arc::default();
        }
        self.snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .map(|task| task.id)
            .collect()
    }

    /// Traffic of the memory domains up to now; empty if it is not read.
    pub(super) fn traffic_now(&mut self) -> Arc<[Traffic]> {
        let now = self.snap.now;
        if self.config.traffic && self.traffic.0 != now {
            let mut all = Vec::with_capacity(self.snap.machine.memory_domains.len());
            self.backend.traffic(&mut all);
            self.traffic = (now, all.into());
        }
        self.traffic.1.clone()
    }

    /// Updates the snapshot after a decision was applied.
    pub(super) fn commit(&mut self, decision: Decision) {
        let wake = decision.next_wake;
        self.waits = decision.waits;
        let mut joined_ordinary = false;
        let mut placed = Vec::new();
        for change in decision.changes {
            let Some(position) = self.snap.position(change.task()) else {
                continue;
            };
            match change {
                Change::Stop { .. } => self.commit_stop(position),
                Change::Place {
                    task,
                    placement,
                    lease_end,
                    purpose,
                } => {
                    let joins = self.snap.tasks[position].running.is_none();
                    joined_ordinary |= joins && purpose == Purpose::Run;
                    self.commit_place(position, placement, lease_end, purpose);
                    placed.push(task);
                }
            }
        }
        self.open_intervals(&placed, wake);
        self.update_intervals(joined_ordinary, wake);
        self.next_wake = wake;
    }

    fn commit_stop(&mut self, position: usize) {
        let task = &mut self.snap.tasks[position];
        task.running = None;
        task.waiting_since = self.snap.now;
        // A frozen task cannot show that it wakes, so it waits like the others.
        task.asleep = false;
        self.records[task.id].interval = None;
    }

    fn commit_place(
        &mut self,
        position: usize,
        placement: Placement,
        lease_end: Option<Nanos>,
        purpose: Purpose,
    ) {
        let now = self.snap.now;
        let task = &mut self.snap.tasks[position];
        let record = &mut self.records[task.id];
        let since = task.running.as_ref().map_or(now, |running| running.since);
        if task.running.is_none() && record.started.is_some() {
            record.waited_max = record.waited_max.max(now - task.waiting_since);
        } else if task.running.is_none() {
            let began = self.backend.began(task.id);
            record.started = Some(match began {
                Began::At(at) => at.max(now),
                Began::WithDecision | Began::Later => now,
            });
            record.runs += 1;
            record.handed_over = began == Began::Later;
            self.admission.started(now);
            if !record.handed_over {
                record.tell_start(self.recorder);
            }
        }
        record.told_overdue = false;
        record.shared |= matches!(placement, Placement::Shared { .. });
        task.overdue = false;
        task.waiting_since = now;
        task.last_cpus = placement.cpus().clone();
        if task.home_cpu.is_none() {
            task.home_cpu = self.snap.machine.home_on(&task.last_cpus);
        }
        task.running = Some(Running {
            placement,
            purpose,
            since,
            lease_end,
        });
    }

    /// Opens intervals for tasks that were just placed, unless theirs continue.
    pub(super) fn open_intervals(&mut self, placed: &[TaskId], wake: Option<Nanos>) {
        if placed.is_empty() {
            return;
        }
        let now = self.snap.now;
        let co_runners = self.running_now();
        let traffic = self.traffic_now();
        for &id in placed {
            let Some(running) = self.snap.task(id).and_then(|task| task.running.as_ref()) else {
                continue;
            };
            let record = &mut self.records[id];
            if record.handed_over {
                continue;
            }
            let planned_end = [running.lease_end, wake].into_iter().flatten().min();
            if let Some(open) = record.interval.as_mut().filter(|open| open.since < now) {
                open.planned_end = planned_end;
                continue;
            }
            record.interval = Some(OpenInterval {
                // A task that has just been started counts from its real start, because starting takes time.
                since: record.started.map_or(now, |started| started.max(now)),
                planned_end,
                purpose: running.purpose,
                cpus: running.placement.cpus().clone(),
                whole_core: false,
                co_runners: co_runners.clone(),
                disturbed: false,
                traffic: traffic.clone(),
            });
        }
    }

    /// Updates whole cores and disturbances in all open intervals.
    fn update_intervals(&mut self, joined_ordinary: bool, wake: Option<Nanos>) {
        if !self.snap.machine.nodes.is_empty() {
            // The coordinator of several nodes does not know what runs beside a task.
            return;
        }
        let now = self.snap.now;
        let whole = self.whole_cores();
        for (task, whole_core) in self.snap.tasks.iter().zip(whole) {
            let Some(interval) = &mut self.records[task.id].interval else {
                continue;
            };
            if interval.since >= now {
                interval.whole_core = whole_core;
                interval.planned_end = interval.planned_end.or(wake);
            } else {
                interval.whole_core &= whole_core;
                interval.disturbed |= joined_ordinary;
            }
        }
    }

    /// For each task of the snapshot: whether no other task runs, or may run, on its cores.
    fn whole_cores(&self) -> Vec<bool> {
        let running = self
            .snap
            .tasks
            .iter()
            .filter_map(|task| task.running.as_ref());
        // Under time-sharing, any task may run beside any other. A task then has whole cores only if no other task
        // runs.
        if running
            .clone()
            .any(|running| matches!(running.placement, Placement::Shared { .. }))
        {
            return vec![running.count() == 1; self.snap.tasks.len()];
        }
        let mut users = vec![0u32; self.snap.machine.cores.len()];
        for task in &self.snap.tasks {
            self.cores_of(task)
                .into_iter()
                .for_each(|core| users[core] += 1);
        }
        let tasks = self.snap.tasks.iter();
        tasks
            .map(|task| self.cores_of(task).into_iter().all(|core| users[core] == 1))
            .collect()
    }

    /// The cores on which a task may run now, in ascending order; none if it waits.
    fn cores_of(&self, task: &TaskView) -> Vec<usize> {
        let machine = &*self.snap.machine;
        let record = &self.records[task.id];
        let own = task.running.iter().map(|running| running.placement.cpus());
        let cpus = own.flat_map(|own| cpus_of(record.spec.width, &record.bound, own).iter());
        let mut cores: Vec<usize> = cpus
            .filter_map(|cpu| machine.cpu(cpu))
            .map(|cpu| cpu.core)
            .collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }
}

/// The sample of an interval that went as planned.
fn planned_sample(
    snap: &Snapshot,
    interval: &OpenInterval,
    usage: &Usage,
    before: &Usage,
) -> Sample {
    let length = snap.now - interval.since;
    Sample {
        task: usage.task,
        at: snap.now,
        interval: length,
        planned: interval
            .planned_end
            .map_or(length, |end| end - interval.since),
        purpose: interval.purpose,
        cpus: interval.cpus.clone(),
        whole_core: interval.whole_core,
        co_runners: interval.co_runners.clone(),
        disturbed: interval.disturbed,
        cpu_time: delta(usage.cpu_time, before.cpu_time),
        counts: usage.counts.since(&before.counts),
        multiplexed: usage.multiplexed,
        traffic: TrafficRates::not_requested(),
        device_time: usage.device_time.since(&before.device_time),
        observed: false,
    }
}

/// The memory domains on which a task ran in an interval. A filler runs near its last CPUs.
fn domains_of(snap: &Snapshot, interval: &OpenInterval, task: TaskId) -> Vec<usize> {
    let machine = &*snap.machine;
    if machine.memory_domains.len() == 1 {
        return vec![0];
    }
    let last = snap
        .task(task)
        .filter(|_| interval.cpus.is_empty())
        .map(|view| &view.last_cpus);
    let mut domains: Vec<usize> = machine
        .cpus_in(last.unwrap_or(&interval.cpus))
        .map(|cpu| cpu.memory_domain)
        .collect();
    domains.sort_unstable();
    domains.dedup();
    domains
}

/// Co-runners present for less than this share of a task's time on a CPU are ignored.
const PASSING: f64 = 0.05;

/// Replaces the planned figures with the observed ones.
fn observe(sample: &mut Sample, residency: &Residency) {
    let on_cpu = residency.on_cpu;
    let met = residency
        .beside
        .iter()
        .filter(|(_, time)| time.share_of(on_cpu) >= PASSING)
        .map(|(task, _)| *task);
    let mut co_runners: Vec<TaskId> = met.chain([sample.task]).collect();
    co_runners.sort_unstable();
    // A task that slept for a while was not cut short.
    if !sample.cut_short() {
        sample.planned = on_cpu;
    }
    sample.interval = on_cpu;
    sample.whole_core = residency.alone.share_of(on_cpu) >= 1.0 - PASSING;
    sample.co_runners = co_runners.into();
    sample.observed = true;
}

fn delta(now: Reading<Nanos>, before: Reading<Nanos>) -> Reading<Nanos> {
    now.and_then(|now| before.map(|before| now - before))
}

/// The newer totals. A counter that has stopped stays absent, because its last value is not the task's total.
pub(super) fn merge(new: Usage, old: &Usage) -> Usage {
    Usage {
        multiplexed: new.multiplexed || old.multiplexed,
        ..new
    }
}
