//! A policy that runs both programs of a co-run all the time, except in short windows in which one of them is measured alone.
//!
//! No policy of cosched measures two programs that both fit on the machine, because neither has to wait then. This one shows what
//! the learner would make of such measurements.

use cosched_core::{Change, CpuSet, Decision, Nanos, Placement, Policy, Purpose, Rng, Snapshot};

/// A decision each quantum. In so many of them each program is measured once: the estimates of Perf&Fair are valid for as long.
const QUANTUM: Nanos = Nanos::from_ms(200);
const CYCLE: u32 = 40;

/// The policy, with the number of quanta so far.
#[derive(Default)]
pub(super) struct Windows {
    quanta: u32,
}

/// Who is measured in a quantum, by its number, and for what.
fn window(quantum: u32) -> Option<(usize, Purpose)> {
    match quantum % CYCLE {
        10 => Some((0, Purpose::WarmUp)),
        11 => Some((0, Purpose::MeasureAlone)),
        30 => Some((1, Purpose::WarmUp)),
        31 => Some((1, Purpose::MeasureAlone)),
        _ => None,
    }
}

impl Policy for Windows {
    fn decide(&mut self, snapshot: &Snapshot, _rng: &mut Rng) -> Decision {
        let window = window(self.quanta).filter(|_| snapshot.tasks.len() == 2);
        self.quanta += 1;
        let mut decision = Decision {
            next_wake: Some(snapshot.now + QUANTUM),
            ..Decision::default()
        };
        for (at, task) in snapshot.tasks.iter().enumerate() {
            let first = task.id.0 * task.cpus;
            let own: CpuSet = (first..first + task.cpus)
                .map(cosched_core::CpuId)
                .collect();
            match window {
                Some((measured, _)) if measured != at => {
                    if task.running.is_some() {
                        decision.changes.push(Change::Stop { task: task.id });
                    }
                }
                _ => decision.changes.push(Change::Place {
                    task: task.id,
                    placement: Placement::Exclusive {
                        cpus: own,
                        whole_core: true,
                    },
                    lease_end: None,
                    purpose: window.map_or(Purpose::Run, |(_, purpose)| purpose),
                }),
            }
        }
        decision
    }

    fn save(&self) -> serde_json::Value {
        self.quanta.into()
    }

    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
        self.quanta = serde_json::from_value(state.clone())?;
        Ok(())
    }
}
