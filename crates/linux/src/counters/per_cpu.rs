//! Events of everything that runs on a CPU, for a scheduler in the kernel that reads them there.

use super::open::{CounterProblem, OpenedEvents, Opener, open_pmu};
use super::sys::{self, EventAttributes, EventScope, EventStart, EventTarget};
use crate::events::MachineEvents;
use cosched_core::{Counter, CpuId, Machine};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// The same events on each CPU, in user mode. They count until this is dropped.
#[derive(Debug)]
pub struct CpuEvents {
    events: Vec<OnCpu<OwnedFd>>,
    counters: BTreeSet<Counter>,
}

struct CpuOpener(CpuId);

impl Opener for CpuOpener {
    type Handle = OwnedFd;
    fn open(
        &mut self,
        attributes: &EventAttributes,
        leader: Option<&OwnedFd>,
    ) -> io::Result<OwnedFd> {
        sys::open(
            &on_cpu(attributes),
            EventTarget::Cpu(self.0.0),
            leader.map(|fd| fd.as_fd()),
        )
    }
}

fn on_cpu(attributes: &EventAttributes) -> EventAttributes {
    EventAttributes {
        scope: EventScope::Cpu,
        ..attributes.clone()
    }
}

impl CpuEvents {
    /// Opens `events` on each CPU of the machine. Events that cannot be opened on all of them are dropped.
    ///
    /// It takes one file descriptor for each counter on each CPU, and more permissions than the events of a process:
    /// `CAP_PERFMON`, or `perf_event_paranoid` at most 0.
    ///
    /// # Errors
    /// Why no event could be opened; `None` if there is no event to open.
    pub fn open(
        machine: &Machine,
        events: &MachineEvents,
    ) -> Result<CpuEvents, Option<CounterProblem>> {
        let cpus = machine.cpus.iter().map(|cpu| cpu.id);
        let (opened, problem) = open_each(cpus, events, CpuOpener);
        let events = CpuEvents {
            counters: opened.iter().map(|(_, counter, _)| *counter).collect(),
            events: opened,
        };
        for (_, _, event) in events.iter() {
            // A group member counts with its leader; enabling it again is harmless.
            let _ = sys::enable(event);
        }
        if events.counters.is_empty() {
            Err(problem)
        } else {
            Ok(events)
        }
    }

    /// The events.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, Counter, BorrowedFd<'_>)> {
        self.events
            .iter()
            .map(|(cpu, counter, event)| (*cpu, *counter, event.as_fd()))
    }

    /// The counters of the events.
    pub fn counters(&self) -> impl Iterator<Item = Counter> {
        self.counters.iter().copied()
    }
}

/// An event of a CPU, with its handle.
type OnCpu<H> = (CpuId, Counter, H);

/// Opens the events of each CPU in turn. Returns the events that no CPU lacks, and the first problem.
fn open_each<O: Opener>(
    cpus: impl Iterator<Item = CpuId>,
    events: &MachineEvents,
    mut opener: impl FnMut(CpuId) -> O,
) -> (Vec<OnCpu<O::Handle>>, Option<CounterProblem>) {
    let mut all = Vec::new();
    let mut problem = None;
    let mut everywhere: BTreeSet<Counter> = Counter::ALL.into_iter().collect();
    for cpu in cpus {
        let opened = open_on(cpu, events, opener(cpu));
        let members = opened.groups.into_iter().flatten();
        let here: Vec<OnCpu<O::Handle>> = members
            .map(|(counter, handle)| (cpu, counter, handle))
            .collect();
        everywhere.retain(|counter| here.iter().any(|(_, has, _)| has == counter));
        all.extend(here);
        problem = problem.or_else(|| opened.problems.into_iter().next());
    }
    all.retain(|(_, counter, _)| everywhere.contains(counter));
    (all, problem)
}

/// The events of one CPU.
fn open_on<O: Opener>(
    cpu: CpuId,
    events: &MachineEvents,
    mut opener: O,
) -> OpenedEvents<O::Handle> {
    let mut opened = OpenedEvents {
        groups: Vec::new(),
        problems: Vec::new(),
        pmus: 1,
    };
    let entry = events.pmus.iter().find(|entry| {
        let cpus = entry.pmu.cpus.as_ref();
        cpus.is_none_or(|cpus| cpus.contains(cpu))
    });
    if let Some(entry) = entry {
        let is_hybrid = events.is_hybrid();
        open_pmu(
            &mut opener,
            entry,
            is_hybrid,
            EventStart::WhenEnabled,
            &mut opened,
        );
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CorePmu, PmuEvents, table_for};
    use crate::processor::Processor;
    use cosched_core::CpuSet;

    /// A CPU with this many counters that rejects an event.
    struct Fake {
        cpu: CpuId,
        room: usize,
    }

    impl Opener for Fake {
        type Handle = (u32, u32, u64);
        fn open(
            &mut self,
            attributes: &EventAttributes,
            _: Option<&Self::Handle>,
        ) -> io::Result<Self::Handle> {
            self.room = self
                .room
                .checked_sub(1)
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            let asked = on_cpu(attributes);
            assert_eq!(asked.scope, EventScope::Cpu);
            Ok((self.cpu.0, asked.type_id, asked.config))
        }
    }

    fn machine(pmus: &[(&str, u32, Option<&str>)]) -> MachineEvents {
        let processor = Processor {
            vendor: "GenuineIntel".to_owned(),
            family: 6,
            model: 0x97,
            stepping: 0,
        };
        let pmus = pmus.iter().map(|&(name, type_id, cpus)| PmuEvents {
            table: table_for(Some(&processor), name).clone(),
            pmu: CorePmu {
                name: name.to_owned(),
                type_id,
                cpus: cpus.map(|list| list.parse::<CpuSet>().unwrap()),
            },
        });
        MachineEvents {
            pmus: pmus.collect(),
        }
    }

    #[test]
    fn each_cpu_has_the_events_of_its_own_kind_of_core() {
        let events = machine(&[("cpu_core", 4, Some("0-1")), ("cpu_atom", 10, Some("2-3"))]);
        let (opened, _) = open_each((0..4).map(CpuId), &events, |cpu| Fake { cpu, room: 20 });
        let cycles: Vec<(u32, u64)> = opened
            .iter()
            .filter(|(_, counter, _)| *counter == Counter::Cycles)
            .map(|(cpu, _, handle)| (cpu.0, handle.2 >> 32))
            .collect();
        assert_eq!(cycles, [(0, 4), (1, 4), (2, 10), (3, 10)]);
        assert!(opened.iter().all(|(cpu, _, handle)| cpu.0 == handle.0));
    }

    #[test]
    fn what_one_cpu_lacks_is_left_out_on_all() {
        let events = machine(&[("cpu", 4, None)]);
        let room = |cpu: CpuId| if cpu == CpuId(1) { 2 } else { 20 };
        let (opened, _) = open_each((0..3).map(CpuId), &events, |cpu| Fake {
            cpu,
            room: room(cpu),
        });
        let of = |cpu: u32| {
            opened
                .iter()
                .filter(move |event| event.0 == CpuId(cpu))
                .map(|event| event.1)
        };
        let expected = &Counter::BY_NEED[..2];
        assert!(
            (0..3).all(|cpu| of(cpu).collect::<Vec<_>>() == expected),
            "{opened:?}"
        );
        let (none, problem) = open_each((0..3).map(CpuId), &events, |cpu| Fake { cpu, room: 0 });
        assert!(none.is_empty() && problem.is_some());
        assert!(
            open_each((0..3).map(CpuId), &MachineEvents::default(), |cpu| Fake {
                cpu,
                room: 9
            })
            .0
            .is_empty()
        );
    }
}
