//! A session: it looks at the attached programs, and remembers what has ended.

use crate::exit::OrUsage as _;
use anyhow::Result;
use cosched_core::{Machine, disturbances};
use cosched_linux::attached::{Sampled, Sampler, Selection};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use cosched_linux::topology::whole_machine;
use cosched_report::{AttachedNow, LeftOutNow, SubjectNow};
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum number of ended subjects that are shown, the latest.
const MOST_ENDED: usize = 16;

/// A session.
pub struct AttachSession {
    pub sampler: Sampler,
    /// The counters of this machine.
    pub counters: CounterSupport,
    pub rows: Rows,
}

/// The rows of its table.
pub struct Rows {
    machine: Machine,
    selected: Vec<String>,
    ended: VecDeque<String>,
}

impl AttachSession {
    /// Prepares to observe these selections.
    ///
    /// # Errors
    /// A named process, group or user does not exist, or the machine can't be read.
    pub fn new(root: &Root, selections: &[Selection]) -> Result<AttachSession> {
        let counters = probe(root, &MachineEvents::detect(root, &[])?, Duration::ZERO)?;
        let sampler = Sampler::new(root, selections, counters.usable.clone()).or_usage()?;
        Ok(AttachSession {
            sampler,
            counters,
            rows: Rows {
                machine: whole_machine(root)?,
                selected: selections.iter().map(Selection::to_string).collect(),
                ended: VecDeque::new(),
            },
        })
    }

    /// Looks at the programs. The first look only begins an interval.
    pub fn look(&mut self) -> AttachedNow {
        self.rows.of(&self.sampler.look())
    }
}

impl Rows {
    /// The rows after a look.
    pub fn of(&mut self, sampled: &Sampled) -> AttachedNow {
        self.ended.extend(sampled.ended.iter().cloned());
        while self.ended.len() > MOST_ENDED {
            self.ended.pop_front();
        }
        self.now(sampled)
    }

    fn now(&self, sampled: &Sampled) -> AttachedNow {
        let found = disturbances(&sampled.observed, &self.machine);
        let left_out = LeftOutNow {
            processes: sampled.processes_left_out,
            threads: sampled.threads_left_out,
        };
        let selected = self.selected.clone();
        let mut now = AttachedNow::new(selected, &sampled.observed, &found, left_out);
        for (row, subject) in now.subjects.iter_mut().zip(&sampled.subjects) {
            row.command.clone_from(&subject.command);
            let group = subject.group.as_deref();
            row.group = group.map(|group| group.display().to_string());
        }
        let ended = self.ended.iter().rev().map(|name| SubjectNow::ended(name));
        now.subjects.extend(ended);
        now
    }
}
