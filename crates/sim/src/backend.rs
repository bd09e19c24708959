//! The backend of the loop on the simulated machine.

use crate::error::SimError;
use crate::residency::Residencies;
use crate::schedule::InForce;
use crate::sim::Sim;
use crate::world::{TrueCounts, WorldEvent};
use cosched_core::{
    Absence, Backend, Began, Capabilities, Change, Counts, Demand, DeviceTime, Event, Exit, Kill,
    Machine, MayStart, Nanos, Occupation, Payload, Plan, Planner, Reading, Resources, Switch,
    TaskId, TaskSpec, Traffic, Usage, Visible, VisibleFrom, Wanting,
};
use std::sync::Arc;

/// Maximum number of consecutive waits in which no task runs, sleeps or is about to return. Then the simulation gives
/// up, as nothing will change.
const PATIENCE: u32 = 100_000;

impl Backend for Sim {
    type Error = SimError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.config.machine.capabilities(&self.machine)
    }

    fn now(&mut self) -> Nanos {
        Nanos(self.world.now)
    }

    fn stopwatch(&self) -> Option<Nanos> {
        None
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), SimError> {
        if let Some(signal) = (self.next_signal)() {
            events.push(Event::Interrupt { signal });
            return Ok(());
        }
        let limit = until.map_or(u64::MAX, |until| until.0.max(self.world.now));
        loop {
            self.world.settle();
            if !self.queued.is_empty() {
                events.append(&mut self.queued);
                return Ok(());
            }
            let at = self.next_instant(limit)?;
            self.events += 1;
            if let Some(residencies) = &mut self.residencies {
                residencies.pass(&self.world, at, |task| {
                    self.tasks[task].started && !self.tasks[task].ended
                });
            }
            self.world.advance(at);
            while self.faults.front().is_some_and(|fault| fault.at.0 <= at) {
                if let Some(fault) = self.faults.pop_front() {
                    self.strike(fault.what);
                }
            }
            self.report_happenings();
            self.fill();
            if at == limit && self.queued.is_empty() {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        for &task in tasks {
            if !self.tasks[task.0 as usize].started {
                let why = Absence::NotStarted;
                out.push(Usage {
                    cpu_time: Reading::Absent(why),
                    counts: Counts::absent(why),
                    ..Usage::zero(task)
                });
                continue;
            }
            self.world.sync_task(task.0);
            let mut tally = TrueCounts::default();
            let mut cpu_ns = 0;
            for thread in self.world.tasks[task.0 as usize].clone() {
                tally.add(&self.world.threads[thread].tally);
                cpu_ns += self.world.threads[thread].cpu_ns;
            }
            let counters = &self.config.machine.counters;
            let counts = self.tasks[task.0 as usize]
                .reported
                .read(&tally, counters, self.trouble);
            let residency = match &self.residencies {
                Some(residencies) => Reading::Value(residencies.of(task)),
                None => Reading::Absent(Absence::NotRequested),
            };
            out.push(Usage {
                task,
                cpu_time: Reading::Value(Nanos(cpu_ns)),
                counts,
                multiplexed: false,
                residency,
                ..Usage::zero(task)
            });
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        for usage in usages {
            self.world.sync_task(usage.task.0);
            let threads = &self.world.threads[self.world.tasks[usage.task.0 as usize].clone()];
            usage.device_time = DeviceTime::from_fn(|device| {
                let each = threads.iter().map(|thread| thread.tally.device_ns[device]);
                let offered = self.world.devices[device].as_ref();
                let time = offered.map(|_| Nanos(each.sum::<f64>() as u64));
                Reading::from_option(time, Absence::NotOffered)
            });
        }
    }

    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>) {
        if !self.config.shows_progress {
            return;
        }
        for &task in tasks {
            self.world.sync_task(task.0);
            let threads = &self.world.threads[self.world.tasks[task.0 as usize].clone()];
            let done: f64 = threads.iter().map(|thread| thread.tally.instructions).sum();
            let left: f64 = threads.iter().map(|thread| thread.work_left).sum();
            let share = done / (done + left);
            let from = VisibleFrom::Descriptor;
            out.push((task, Reading::Value(Visible { share, from })));
        }
    }

    fn wanting(&mut self, _task: TaskId) -> Reading<Wanting> {
        // A simulated job always has the stated number of threads.
        Reading::Absent(Absence::NotOffered)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), SimError> {
        self.schedule = None;
        for change in changes {
            if let Change::Stop { task } = change {
                self.stop(*task);
            }
        }
        for change in changes {
            if let Change::Place {
                task, placement, ..
            } = change
            {
                self.place(*task, placement);
            }
        }
        self.world.settle();
        Ok(())
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::WithDecision
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<SimError>> {
        Some(self)
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        if !self.tasks[task.0 as usize].started {
            return;
        }
        // Simulated programs do not catch signals.
        let signal = if how == Kill::Kill { 9 } else { 15 };
        self.end(task, Exit::Signal { signal, oom: false });
    }

    fn restart(&mut self, task: TaskId) -> bool {
        let ix = task.0 as usize;
        let Some(state) = self.tasks.get_mut(ix).filter(|state| state.ended) else {
            return false;
        };
        (state.started, state.ended, state.placement) = (false, false, None);
        state.reported.begin_anew();
        if let Some(residencies) = &mut self.residencies {
            residencies.forget(task);
        }
        let work = self.solo[ix].instructions as f64;
        self.world.restart_task(task.0, work);
        true
    }

    // A simulation is small, and keeps all.
    fn forget(&mut self, _task: TaskId) {}

    // It holds nothing.
    fn ending(&mut self) {}

    fn resources(&mut self, _task: TaskId) -> Resources {
        // Profiles describe only the use of the processor: programs hold no memory, and make no system calls.
        Resources::absent(Absence::Simulated)
    }

    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let counters = &self.config.machine.counters;
        let moved = self.world.moved();
        let all = self.traffic.read(moved, counters, self.trouble);
        let whole = &self.world.machine;
        for cpus in &self.machine.memory_domains {
            out.push(match whole.cpus_in(cpus).next() {
                Some(cpu) => all[cpu.memory_domain],
                None => Traffic::absent(Absence::NotTold),
            });
        }
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Value(self.world.energy().total())
    }
}

impl Sim {
    /// The next instant at which the world, a fault or a seat needs attention, at most `limit`.
    fn next_instant(&mut self, limit: u64) -> Result<u64, SimError> {
        let now = self.world.now;
        let fault = self.faults.front().map(|fault| fault.at.0.max(now));
        let schedule = self.schedule.as_ref();
        let over = schedule.map(|schedule| schedule.next_end(now));
        let due = [fault, over].into_iter().flatten();
        let next = due.fold(self.world.next_event(), u64::min);
        let at = next.min(limit);
        if at == u64::MAX {
            return Err(SimError::Stuck(Nanos(now)));
        }
        if next != u64::MAX || self.world.any_running() {
            self.idle_waits = 0;
        } else if self.idle_waits == PATIENCE {
            return Err(SimError::Stuck(Nanos(now)));
        } else {
            self.idle_waits += 1;
        }
        Ok(at)
    }

    /// Queues events for the placed tasks from what happened in the world.
    fn report_happenings(&mut self) {
        for happening in std::mem::take(&mut self.world.happened) {
            match happening {
                WorldEvent::Finished(task) => self.end(TaskId(task), Exit::Code(0)),
                WorldEvent::Slept(task) if self.tasks[task as usize].placement.is_some() => {
                    self.queued.push(Event::Slept(TaskId(task)));
                }
                WorldEvent::Woke(task) if self.tasks[task as usize].placement.is_some() => {
                    self.queued.push(Event::Woke(TaskId(task)));
                }
                WorldEvent::Slept(_) | WorldEvent::Woke(_) => {}
            }
        }
    }
}

impl Planner<SimError> for Sim {
    fn install(&mut self, plan: &Plan) -> Result<(), SimError> {
        let generation = plan.generation;
        let adopted = self.generation;
        let refused = match &self.ejected {
            Some(why) => Some(format!("the scheduler was ejected: {why}")),
            None if generation > adopted => None,
            None => Some(format!("generation {adopted} was adopted already")),
        };
        if let Some(why) = refused {
            self.queued.push(Event::PlanRefused { generation, why });
            return Ok(());
        }
        self.generation = generation;
        self.residencies
            .get_or_insert_with(|| Residencies::new(self.tasks.len()));
        let Payload::Schedule(schedule) = &plan.payload;
        let schedule = InForce::new(schedule.clone(), &self.world.machine);
        for ix in 0..self.tasks.len() as u32 {
            if self.tasks[ix as usize].placement.is_some() && !schedule.seats(TaskId(ix)) {
                self.stop(TaskId(ix));
            }
        }
        for seat in &schedule.plan.seats {
            self.place(seat.task, &seat.placement);
        }
        self.schedule = Some(schedule);
        self.world.settle();
        self.fill();
        self.queued.push(Event::PlanAdopted { generation });
        Ok(())
    }

    fn switches(&mut self, _out: &mut Vec<Switch>) {}

    fn occupation(&mut self) -> Option<Occupation> {
        None
    }

    fn admits(&mut self) -> Option<Vec<Demand>> {
        None
    }
}
