//! Which events to open, in which order, and which to drop if the hardware or the kernel cannot count all.

use super::sys::{EventAttributes, EventScope, EventStart, ReadFormat};
use crate::events::{AbsentEvent, CorePmu, Encoding, MachineEvents, PmuEvents, TableEvent};
use cosched_core::{Absence, Counter, PerCounter};
use std::fmt;
use std::io;

/// A counter that is not counted, with the reason.
#[derive(Clone, Debug)]
pub struct CounterProblem {
    /// The counter that is not counted.
    pub counter: Counter,
    /// The PMU that does not count it; `None` if there is no PMU.
    pub pmu: Option<String>,
    /// The event that was requested; `None` if there is none.
    pub event: Option<String>,
    /// The reason in the counter's readings.
    pub reason: Absence,
    /// The cause in words.
    pub why: String,
}

/// Opens events; the kernel, or a test's stand-in.
pub(crate) trait Opener {
    /// A handle of an opened event.
    type Handle;
    /// Opens an event, in the group of `leader` if there is one.
    fn open(
        &mut self,
        attributes: &EventAttributes,
        leader: Option<&Self::Handle>,
    ) -> io::Result<Self::Handle>;
}

impl CounterProblem {
    fn on(
        pmu: &CorePmu,
        counter: Counter,
        event: Option<String>,
        (reason, why): (Absence, String),
    ) -> CounterProblem {
        CounterProblem {
            counter,
            pmu: Some(pmu.name.clone()),
            event,
            reason,
            why,
        }
    }
}

impl fmt::Display for CounterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.counter)?;
        if let Some(event) = &self.event {
            write!(f, " ({event})")?;
        }
        if let Some(pmu) = &self.pmu {
            write!(f, " on {pmu}")?;
        }
        write!(f, ": {}", self.why)
    }
}

/// The reason of absence for an error of `perf_event_open` on an event for `counter`.
pub(crate) fn absence_of(errno: i32, counter: Counter) -> Absence {
    match errno {
        libc::EACCES | libc::EPERM => Absence::NoPermission,
        libc::ENOSYS => Absence::NoCounters,
        // Every processor counts cycles and instructions, so an error here means that there are no counters.
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP
            if matches!(counter, Counter::Cycles | Counter::Instructions) =>
        {
            Absence::NoCounters
        }
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL => {
            Absence::NoSuchEvent
        }
        _ => Absence::CountersLost,
    }
}

/// The arguments of `perf_event_open` for an event. On a machine with several core PMUs a kernel event must name its
/// PMU in the upper half of `config` (since Linux 5.13; `PERF_PMU_TYPE_SHIFT` in `linux/perf_event.h`).
pub(crate) fn attributes(
    event: &TableEvent,
    pmu: &CorePmu,
    hybrid: bool,
    start: Option<EventStart>,
) -> EventAttributes {
    let (type_id, config, config1) = match event.encoding {
        Encoding::Kernel(event) => {
            let of_pmu = if hybrid { pmu.type_id } else { 0 };
            let config = u64::from(of_pmu) << 32 | event.config;
            (event.type_id, config, 0)
        }
        Encoding::Raw {
            config, config1, ..
        } => (pmu.type_id, config, config1),
    };
    EventAttributes {
        type_id,
        config,
        config1,
        config2: 0,
        scope: EventScope::Job,
        start,
        read: ReadFormat::Group,
    }
}

/// Events that are read by one call, the leader first.
pub(crate) type EventGroup<H> = Vec<(Counter, H)>;

/// The opened events, and the problems.
pub(crate) struct OpenedEvents<H> {
    pub groups: Vec<EventGroup<H>>,
    pub problems: Vec<CounterProblem>,
    /// Number of core PMUs of the machine.
    pub pmus: usize,
}

/// An event's position: the index of its group, and its index in the group.
pub(crate) type EventPosition = (usize, usize);

impl<H> OpenedEvents<H> {
    /// The positions of each counter's events, one per PMU, or why the counter is absent.
    pub(crate) fn places(&self) -> PerCounter<Result<Vec<EventPosition>, Absence>> {
        PerCounter::from_fn(|counter| {
            let mut places = Vec::new();
            for (g, group) in self.groups.iter().enumerate() {
                let member = group.iter().position(|(member, _)| *member == counter);
                places.extend(member.map(|member| (g, member)));
            }
            // If only some PMUs counted it, the job's time on the others would be lost.
            if places.len() == self.pmus && !places.is_empty() {
                return Ok(places);
            }
            let problem = self
                .problems
                .iter()
                .find(|problem| problem.counter == counter);
            Err(problem.map_or(Absence::NoSuchEvent, |problem| problem.reason))
        })
    }
}

/// Opens every event of `events` on each PMU, in the order of [`Counter::BY_NEED`].
///
/// Instructions and cycles form a group, so that their ratio is that of one time; the kernel may refuse the group, and then
/// each counts by itself. All others count by themselves. So where counters are fewer than events, the kernel rotates the
/// events, and no event is lost. Inherited groups need Linux 4.13.
pub(crate) fn open_all<O: Opener>(
    opener: &mut O,
    events: &MachineEvents,
    start: EventStart,
) -> OpenedEvents<O::Handle> {
    let mut opened = OpenedEvents {
        groups: Vec::new(),
        problems: Vec::new(),
        pmus: events.pmus.len(),
    };
    if events.pmus.is_empty() {
        opened
            .problems
            .extend(Counter::BY_NEED.map(|counter| CounterProblem {
                counter,
                pmu: None,
                event: None,
                reason: Absence::NoCounters,
                why: Absence::NoCounters.to_string(),
            }));
    }
    for entry in &events.pmus {
        open_pmu(opener, entry, events.is_hybrid(), start, &mut opened);
    }
    opened
}

/// Opens the events of one PMU.
pub(super) fn open_pmu<O: Opener>(
    opener: &mut O,
    PmuEvents { pmu, table }: &PmuEvents,
    hybrid: bool,
    start: EventStart,
    opened: &mut OpenedEvents<O::Handle>,
) {
    let first = opened.groups.len();
    for counter in Counter::BY_NEED {
        if let Some(AbsentEvent { reason, why }) = table.absent.get(&counter).cloned() {
            let problem = CounterProblem::on(pmu, counter, None, (reason, why));
            opened.problems.push(problem);
        }
        let Some(event) = table.event(counter) else {
            continue;
        };
        let ask = |start| attributes(event, pmu, hybrid, start);
        // Of the pair, only the instructions are there before the cycles.
        let pair = opened.groups.get_mut(first);
        if counter == Counter::Cycles
            && let Some(pair) = pair
            && let Ok(handle) = opener.open(&ask(None), Some(&pair[0].1))
        {
            pair.push((counter, handle));
            continue;
        }
        match opener.open(&ask(Some(start)), None) {
            Ok(handle) => opened.groups.push(vec![(counter, handle)]),
            Err(error) => {
                let reason = absence_of(error.raw_os_error().unwrap_or(0), counter);
                let why = (reason, format!("{reason} ({error})"));
                let problem = CounterProblem::on(pmu, counter, Some(event.name()), why);
                opened.problems.push(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::table_for;
    use crate::processor::Processor;

    /// A kernel that accepts groups or not, and rejects some events.
    struct Fake {
        has_groups: bool,
        refuse: Vec<(u64, i32)>,
        asked: Vec<EventAttributes>,
    }

    impl Fake {
        fn new() -> Fake {
            Fake {
                has_groups: true,
                refuse: Vec::new(),
                asked: Vec::new(),
            }
        }
    }

    impl Opener for Fake {
        type Handle = u64;
        fn open(&mut self, attributes: &EventAttributes, leader: Option<&u64>) -> io::Result<u64> {
            self.asked.push(attributes.clone());
            let refused = self
                .refuse
                .iter()
                .find(|(config, _)| *config == attributes.config)
                .map(|(_, errno)| *errno);
            let no_group = (leader.is_some() && !self.has_groups).then_some(libc::EINVAL);
            match refused.or(no_group) {
                Some(errno) => Err(io::Error::from_raw_os_error(errno)),
                None => Ok(attributes.config),
            }
        }
    }

    fn machine(pmus: &[(&str, u32, u32)]) -> MachineEvents {
        let pmus = pmus
            .iter()
            .map(|&(name, type_id, model)| {
                let processor = Processor {
                    vendor: "GenuineIntel".to_owned(),
                    family: 6,
                    model,
                    stepping: 0,
                };
                let pmu = CorePmu {
                    name: name.to_owned(),
                    type_id,
                    cpus: None,
                };
                PmuEvents {
                    table: table_for(Some(&processor), name).clone(),
                    pmu,
                }
            })
            .collect();
        MachineEvents { pmus }
    }

    fn counters_of(opened: &OpenedEvents<u64>) -> Vec<Vec<Counter>> {
        let of_group =
            |group: &EventGroup<u64>| group.iter().map(|(counter, _)| *counter).collect();
        opened.groups.iter().map(of_group).collect()
    }

    fn westmere() -> MachineEvents {
        machine(&[("cpu", 4, 0x2c)])
    }

    /// Number of counters without an event in the table.
    fn without_event(events: &MachineEvents) -> usize {
        events.pmus[0].table.absent.len()
    }

    #[test]
    fn instructions_and_cycles_are_a_pair_and_the_others_count_by_themselves() {
        let mut fake = Fake::new();
        let opened = open_all(&mut fake, &westmere(), EventStart::OnExec);
        let [i, c, reads, llc, l1, _] = Counter::BY_NEED;
        assert_eq!(
            counters_of(&opened),
            [vec![i, c], vec![reads], vec![llc], vec![l1]]
        );
        let starts: Vec<Option<EventStart>> = fake.asked.iter().map(|attr| attr.start).collect();
        let leads = Some(EventStart::OnExec);
        assert_eq!(starts, [leads, None, leads, leads, leads]);
        assert_eq!(
            (
                fake.asked[2].type_id,
                fake.asked[2].config,
                fake.asked[2].config1
            ),
            (4, 0x1b7, 0x7033)
        );
        assert_eq!((fake.asked[0].type_id, fake.asked[0].config), (0, 1));
        assert_eq!(opened.problems.len(), without_event(&westmere()));
        let text = opened.problems[0].to_string();
        assert!(
            text.starts_with("mm_writes on cpu: What a core writes back"),
            "{text}"
        );
    }

    #[test]
    fn where_groups_are_refused_each_event_counts_by_itself() {
        let mut fake = Fake::new();
        fake.has_groups = false;
        let opened = open_all(&mut fake, &westmere(), EventStart::Now);
        assert_eq!(
            counters_of(&opened),
            Counter::BY_NEED[..5]
                .iter()
                .map(|&counter| vec![counter])
                .collect::<Vec<_>>()
        );
        assert_eq!(opened.problems.len(), without_event(&westmere()));
        assert!(
            fake.asked
                .last()
                .is_some_and(|asked| asked.start == Some(EventStart::Now))
        );
    }

    #[test]
    fn a_refused_event_does_not_stop_the_others() {
        let mut fake = Fake::new();
        fake.refuse = vec![
            (1, libc::ENOENT),
            (0x4f2e, libc::EACCES),
            (0x1b7, libc::EINVAL),
        ];
        let opened = open_all(&mut fake, &westmere(), EventStart::OnExec);
        assert_eq!(
            counters_of(&opened),
            [[Counter::Cycles], [Counter::L1Accesses]]
        );
        let mut refused = opened.problems;
        refused.retain(|problem| problem.event.is_some());
        let reasons: Vec<(Counter, Absence)> =
            refused.iter().map(|p| (p.counter, p.reason)).collect();
        let expected = [
            (Counter::Instructions, Absence::NoCounters),
            (Counter::MmReads, Absence::NoSuchEvent),
            (Counter::LlcAccesses, Absence::NoPermission),
        ];
        assert_eq!(reasons, expected);
        let text = refused[2].to_string();
        assert!(
            text.starts_with("llc_accesses (LONGEST_LAT_CACHE.REFERENCE) on cpu: not permitted"),
            "{text}"
        );
        assert_eq!(fake.asked[1].start, Some(EventStart::OnExec));
    }

    #[test]
    fn hybrid_machines_get_events_per_pmu_that_say_which_they_mean() {
        let mut fake = Fake::new();
        let opened = open_all(
            &mut fake,
            &machine(&[("cpu_core", 4, 0x97), ("cpu_atom", 10, 0x97)]),
            EventStart::OnExec,
        );
        assert_eq!(opened.groups.len(), 2 * 4);
        assert!(
            opened.places()[Counter::Cycles]
                .as_ref()
                .is_ok_and(|places| places.len() == 2)
        );
        assert_eq!(
            (fake.asked[0].type_id, fake.asked[0].config),
            (0, 4 << 32 | 1)
        );
        assert_eq!(
            (fake.asked[5].type_id, fake.asked[5].config),
            (0, 10 << 32 | 1)
        );
        assert_eq!((fake.asked[7].type_id, fake.asked[7].config), (10, 0x412e));
    }

    #[test]
    fn without_a_pmu_every_event_is_absent_for_that_reason() {
        let opened = open_all(
            &mut Fake::new(),
            &MachineEvents::default(),
            EventStart::OnExec,
        );
        assert!(opened.groups.is_empty());
        assert_eq!(opened.problems.len(), Counter::COUNT);
        assert!(
            opened
                .problems
                .iter()
                .all(|problem| problem.reason == Absence::NoCounters)
        );
        assert_eq!(
            opened.problems[0].to_string(),
            "instructions: this machine has no hardware counters"
        );
    }

    #[test]
    fn error_numbers_have_one_reason_each() {
        let cases = [
            (libc::EPERM, Counter::Cycles, Absence::NoPermission),
            (libc::ENOSYS, Counter::MmReads, Absence::NoCounters),
            (libc::EOPNOTSUPP, Counter::Cycles, Absence::NoCounters),
            (libc::EOPNOTSUPP, Counter::MmReads, Absence::NoSuchEvent),
            (libc::EMFILE, Counter::Cycles, Absence::CountersLost),
        ];
        for (errno, counter, reason) in cases {
            assert_eq!(absence_of(errno, counter), reason, "{errno}");
        }
    }
}
