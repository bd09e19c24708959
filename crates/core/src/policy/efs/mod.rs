//! `efs`: runs only what fits the memory bus. A CPU idles where one more job would cost more energy than it brings.
mod chip;
mod known;
mod queues;
mod settings;
mod standing;
mod starved;
mod turn;

use super::round::Round;
use super::{Need, Params, Policy, PolicyEntry, required, sharing_needs, state_is_a_field, wanted};
use crate::decision::{Basis, Change, Decision, WaitReason};
use crate::model::admission_table::AdmissionTable;
use crate::rng::Rng;
use crate::run::Feed;
use crate::snapshot::Snapshot;
use crate::units::Nanos;
use known::State;
use settings::Settings;
use turn::{Turn, is_in_starved_slice};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "efs",
    gist: "runs only what fits the memory bus; a CPU idles where one more job would cost more energy than it brings",
    source: "EFS (2016)",
    time_shares: true,
    params: settings::PARAMS,
    needs,
    build: |params| {
        Box::new(Efs {
            settings: Settings::new(params),
            table: AdmissionTable::new(),
            state: State::default(),
            thresholds: standing::Thresholds::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.push(required(Feed::MmReads));
    needs.push(wanted(Feed::MmWrites, "reads alone count as use of the memory bus"));
    needs
}

struct Efs {
    settings: Settings,
    table: AdmissionTable,
    state: State,
    thresholds: standing::Thresholds,
}

impl Policy for Efs {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        self.state.take_in(&self.settings, &self.table, snap);
        // Nobody keeps a CPU from the overdue.
        let protect = !snap.tasks.iter().any(|task| task.overdue);
        let round = Round::keeping(snap, |task| protect && is_in_starved_slice(task, snap.now));
        let full = round.full;
        let mut turn = Turn::new(&self.settings, &self.table, round, &mut self.state.tasks, protect);
        turn.give_out();
        let length = turn.length();
        let soon = turn.ends_soon();
        turn.explain();
        let (round, starved) = (turn.round, turn.starved);
        let mut end = self.state.quantum.of_round(&round, length);
        if !full && soon {
            end = end.min(snap.now + Nanos(self.settings.rule.least_slice_ns.max(1)));
            self.state.quantum.end = end;
        }
        let mut decision = round.finish(end, Basis::default(), |_, ahead| WaitReason::Order { ahead });
        if let Some((ix, until)) = starved {
            let id = snap.tasks[ix as usize].id;
            for change in &mut decision.changes {
                if let Change::Place { task, lease_end, .. } = change
                    && *task == id
                {
                    *lease_end = Some(until);
                }
            }
        }
        if full {
            decision.standing =
                standing::changed(&mut self.thresholds, &self.settings, &self.table, snap, &mut self.state);
        }
        decision
    }

    state_is_a_field!();
}
