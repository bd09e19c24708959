//! Why a task that has arrived does not begin now.

use super::{Admission, AdmissionInput, AdmissionNews};
use crate::decision::WaitReason;
use crate::expected::ExpectedFrom;
use crate::run::backend::MayStart;
use crate::run::config::{Restart, RunConfig};
use crate::run::fact::Warning;
use crate::run::result::EndedBy;
use crate::task::{Origin, TaskId, TaskSpec};
use crate::topology::Machine;
use crate::units::Nanos;

/// Delay before asking the backend again whether a task may start.
pub(super) const ROOM_RETRY: Nanos = Nanos::from_ms(1_000);

/// Why a task that has arrived does not begin now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AdmissionHold {
    /// As many tasks are live as may be.
    Full,
    /// The delay since the last start is not over.
    Delay,
    /// The backend starts no task now.
    NoStart,
    /// Free memory is too little for it. Others may pass.
    Memory,
    /// It does not begin in this run any more.
    Never(AdmissionLack),
}

/// What a task lacks that does not come back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AdmissionLack {
    pub(super) reason: WaitReason,
    /// What the run ended by, if all other tasks end.
    pub(super) ends_run_by: EndedBy,
}

impl AdmissionHold {
    /// Whether the backend is to be asked again: nothing tells when it would answer otherwise.
    pub(super) fn is_of_backend(self) -> bool {
        matches!(self, AdmissionHold::NoStart | AdmissionHold::Memory)
    }
}

impl Admission<'_> {
    /// Why no task may begin now, whichever it is.
    pub(super) fn hold_of_all(&self, run: &AdmissionInput<'_>) -> Option<AdmissionHold> {
        if run.live.len() >= self.most_live(run.machine) {
            return Some(AdmissionHold::Full);
        }
        let has_delay = self.config.delay > Nanos::ZERO;
        let is_early = self.delay_end().is_some_and(|end| end > run.now);
        // With a delay at most one live task is new, because the policy could start two at once.
        if is_early || has_delay && run.some_live_is_new() {
            return Some(AdmissionHold::Delay);
        }
        None
    }

    /// Why this task may not begin now.
    pub(super) fn hold_of(
        &self,
        id: TaskId,
        run: &mut AdmissionInput<'_>,
    ) -> Option<AdmissionHold> {
        let spec = &run.records[id].spec;
        if let Some(lack) = lack(spec, run, self.config) {
            return Some(AdmissionHold::Never(lack));
        }
        match (run.may_start)(spec) {
            MayStart::Later if run.some_live() => Some(AdmissionHold::NoStart),
            MayStart::Yes | MayStart::Later => None,
            MayStart::NeedsMemory => Some(AdmissionHold::Memory),
        }
    }

    /// Notes why a task does not begin: when to ask again, and what the user does not know yet.
    pub(super) fn note_hold(
        &mut self,
        id: TaskId,
        hold: AdmissionHold,
        run: &AdmissionInput<'_>,
        news: &mut Vec<AdmissionNews>,
    ) {
        if hold.is_of_backend() {
            self.room_retry = Some(run.now + ROOM_RETRY);
        }
        match hold {
            AdmissionHold::Memory => self.warn_of_memory(id, run, news),
            AdmissionHold::Never(lack) => self.note_lack(id, lack, news),
            AdmissionHold::Full | AdmissionHold::Delay | AdmissionHold::NoStart => {}
        }
    }

    /// Warns of the first task that waits for memory although a CPU is left for it.
    fn warn_of_memory(
        &mut self,
        id: TaskId,
        run: &AdmissionInput<'_>,
        news: &mut Vec<AdmissionNews>,
    ) {
        let waits = run.some_live() && run.has_cpu();
        if waits && !std::mem::replace(&mut self.told_memory, true) {
            news.push(AdmissionNews::Warned(Warning::WaitsForMemory(id)));
        }
    }

    /// Notes a task that never begins. The first one says what the run ends by.
    fn note_lack(&mut self, task: TaskId, lack: AdmissionLack, news: &mut Vec<AdmissionNews>) {
        let reason = lack.reason;
        news.push(AdmissionNews::LeftOut { task, reason });
        if self.lack.is_none() {
            self.lack = Some(lack.ends_run_by);
            news.push(AdmissionNews::Warned(Warning::LeftOut(task, reason)));
        }
    }
}

fn lack(spec: &TaskSpec, run: &AdmissionInput<'_>, config: &RunConfig) -> Option<AdmissionLack> {
    if let Some(reason) = lack_of_cpus(spec, run.machine) {
        return Some(AdmissionLack {
            reason,
            ends_run_by: EndedBy::NoNode,
        });
    }
    let reason = lack_of_time(spec, run.now, config)?;
    Some(AdmissionLack {
        reason,
        ends_run_by: EndedBy::NoTime,
    })
}

/// The reason for a task not to start, if no node that is left is wide enough. The CPUs of one machine may come back.
pub(in crate::run) fn lack_of_cpus(spec: &TaskSpec, machine: &Machine) -> Option<WaitReason> {
    let needs = spec.cpus;
    let most = machine.widest(&machine.all_cpus()) as u32;
    let is_narrow = !machine.nodes.is_empty() && needs > most;
    is_narrow.then_some(WaitReason::TooWide { needs, most })
}

/// The reason for a task not to start, if it is expected to end too late. The times of other commands are no ground.
fn lack_of_time(spec: &TaskSpec, now: Nanos, config: &RunConfig) -> Option<WaitReason> {
    let is_asked = config.restart == Restart::Never && spec.origin != Origin::Adopted;
    let left = config.ends.filter(|_| is_asked)? - now;
    let expected = spec.expected?;
    let is_late = expected.from != ExpectedFrom::Program && expected.time > left;
    is_late.then_some(WaitReason::NoTime {
        expected: expected.time,
        left,
    })
}
