//! A session: it looks at the attached programs, and remembers what has ended.

use crate::exit::OrUsage as _;
use anyhow::{Context as _, Result};
use cosched_core::{CpuSet, Machine, Nanos, disturbances};
use cosched_linux::attached::{Sampled, Sampler, Selection};
use cosched_linux::counters::probe;
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use cosched_linux::topology;
use cosched_report::{AttachedNow, LeftOutNow, SubjectNow};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;

/// Maximum number of ended subjects that are shown, the latest.
const MOST_ENDED: usize = 16;

/// A session.
pub struct Session {
    sampler: Sampler,
    machine: Machine,
    selected: Vec<String>,
    ended: VecDeque<String>,
}

impl Session {
    /// Prepares to observe these selections.
    ///
    /// # Errors
    /// A named process, group or user does not exist, or the machine can't be read.
    pub fn new(root: &Root, selections: &[Selection]) -> Result<Session> {
        let counters = probe(root, &MachineEvents::detect(root, &[])?)?;
        let sampler = Sampler::new(root, selections, counters.usable).or_usage()?;
        Ok(Session {
            sampler,
            machine: whole_machine(root)?,
            selected: selections.iter().map(Selection::to_string).collect(),
            ended: VecDeque::new(),
        })
    }

    /// Looks at the programs. The first look only begins an interval.
    pub fn look(&mut self) -> AttachedNow {
        let sampled = self.sampler.look(since_boot());
        self.ended.extend(sampled.ended.iter().cloned());
        while self.ended.len() > MOST_ENDED {
            self.ended.pop_front();
        }
        self.now(&sampled)
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

/// The machine with all online CPUs, whatever the affinity of this process.
fn whole_machine(root: &Root) -> Result<Machine> {
    let online = root.cpus("/sys/devices/system/cpu/online", "online CPUs")?;
    let all: CpuSet = online.context("the kernel does not list the online CPUs")?;
    Ok(topology::read(root, &all, None)?.machine)
}

/// The time since the machine was started.
fn since_boot() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
