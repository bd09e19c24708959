//! Carries out decisions, either as changes one decision at a time, or as plans for the backend.

use super::backend::Backend;
use super::error::RunError;
use super::fact::{Fact, Warning};
use super::state::RunLoop;
use super::task_record::OpenInterval;
use crate::bus_admission::BusAdmission;
use crate::decision::{Change, Decision, Wait};
use crate::placement::Purpose;
use crate::plan::{Payload, Plan, Schedule};
use crate::snapshot::Trigger;
use crate::task::TaskId;
use crate::topology::CpuSet;
use crate::units::Nanos;
use std::sync::Arc;

impl<B: Backend> RunLoop<'_, B> {
    /// Carries out a checked decision and updates the snapshot.
    pub(super) fn carry_out(&mut self, mut decision: Decision) -> Result<(), RunError<B::Error>> {
        for change in decision
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Place { .. }))
        {
            let record = &self.records[change.task()];
            if record.started.is_none() {
                self.recorder
                    .emit(self.snap.now, Fact::Starting(&record.spec));
            }
        }
        if self.planning.is_none() {
            let changes = self.loosened(&decision);
            self.backend.apply(&changes)?;
            self.commit(decision);
            self.note_bounds();
            return Ok(());
        }
        let admission = decision.admission.take();
        self.commit(decision);
        let waits = std::mem::take(&mut self.waits);
        let installed = self.install(&waits, admission);
        self.waits = waits;
        installed
    }

    /// Gives the backend a plan, made from the snapshot and the order of the waiting tasks.
    fn install(
        &mut self,
        waits: &[Wait],
        admission: Option<BusAdmission>,
    ) -> Result<(), RunError<B::Error>> {
        let Some(planning) = &mut self.planning else {
            return Ok(());
        };
        if admission.is_some() {
            planning.admission = admission;
        }
        planning.generation += 1;
        let (generation, admission) = (planning.generation, planning.admission.clone());
        let schedule = Schedule::of(&self.snap, waits, admission, self.spare(waits));
        let fillers: Vec<TaskId> = schedule.fillers.iter().map(|filler| filler.task).collect();
        let plan = Plan {
            generation,
            payload: Payload::Schedule(schedule),
        };
        if let Some(planner) = self.backend.planner() {
            planner.install(&plan)?;
        }
        if let Some(plans) = &mut self.plans {
            plans.installed += 1;
        }
        self.watch_fillers(&fillers);
        Ok(())
    }

    /// Opens an interval for each filler, and ends those of former fillers.
    fn watch_fillers(&mut self, fillers: &[TaskId]) {
        let mut over = Vec::new();
        for task in self.snap.tasks.iter().filter(|task| task.running.is_none()) {
            let is_watched = self.records[task.id].interval.is_some();
            if is_watched && !fillers.contains(&task.id) {
                over.push(task.id);
            }
        }
        self.close(&over, false);
        for id in over {
            self.records[id].interval = None;
        }
        let all: Arc<[TaskId]> = self.running_now();
        let (since, planned_end) = (self.snap.now, self.next_wake);
        let traffic = self.traffic_now();
        for &id in fillers {
            let interval = &mut self.records[id].interval;
            interval.get_or_insert_with(|| OpenInterval {
                since,
                planned_end,
                purpose: Purpose::Run,
                cpus: CpuSet::new(),
                whole_core: false,
                co_runners: all.clone(),
                disturbed: false,
                traffic: traffic.clone(),
            });
        }
    }

    /// Records that a plan is in force.
    pub(super) fn plan_adopted(&mut self, now: Nanos, generation: u64) {
        if let Some(plans) = &mut self.plans {
            plans.adopted += 1;
        }
        self.recorder.emit(now, Fact::PlanAdopted(generation));
    }

    /// Continues without plans: applies the present placements as changes, and requests a new decision for all tasks.
    pub(super) fn give_up_plans(
        &mut self,
        now: Nanos,
        why: String,
        triggers: &mut Vec<Trigger>,
    ) -> Result<(), RunError<B::Error>> {
        if self.planning.take().is_none() {
            return Ok(());
        }
        self.snap.admits = None;
        if let Some(plans) = &mut self.plans {
            plans.given_up = Some(now);
        }
        self.recorder
            .emit(now, Fact::Warned(&Warning::PlansGivenUp { why }));
        let all: Vec<TaskId> = self.snap.tasks.iter().map(|task| task.id).collect();
        self.close(&all, true);
        let mut changes = Vec::new();
        for task in &self.snap.tasks {
            let record = &mut self.records[task.id];
            match &task.running {
                Some(running) => changes.push(Change::Place {
                    task: task.id,
                    placement: running.placement.clone(),
                    lease_end: running.lease_end,
                    purpose: running.purpose,
                }),
                None => {
                    record.interval = None;
                    if record.started.is_some() {
                        changes.push(Change::Stop { task: task.id });
                    }
                }
            }
        }
        self.backend.apply(&changes)?;
        triggers.push(Trigger::QuantumEnd);
        Ok(())
    }
}
