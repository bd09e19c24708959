//! What this machine can count now, for this user, and why not the rest.

use super::open::{CounterProblem, ProblemCause};
use super::sys::{Start, Target};
use super::{JobCounters, read_group};
use crate::events::{EventKind, MachineEvents};
use crate::root::{ReadError, Root};
use cosched_core::{Absence, Nanos, Reading};

/// What can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterSupport {
    /// `/proc/sys/kernel/perf_event_paranoid`; `None` on a kernel without perf events. An ordinary user may count its
    /// own processes in user mode up to 2; some distributions have 3 and 4, which forbid it altogether.
    pub paranoid: Option<i64>,
    /// The core PMUs, with the name of the table that is used for each.
    pub pmus: Vec<(String, String)>,
    /// Per kind of event, whether it can be counted, the most needed first.
    pub events: Vec<(EventKind, Reading<()>)>,
    /// Whether CPU time can be counted.
    pub cpu_time: Reading<()>,
    /// The details of what can't be counted.
    pub problems: Vec<CounterProblem>,
    /// The events that can be counted together without sharing counters out: what a run should open.
    pub usable: MachineEvents,
}

impl CounterSupport {
    /// Whether this kind can be counted.
    pub fn of(&self, kind: EventKind) -> Reading<()> {
        let found = self.events.iter().find(|(known, _)| *known == kind);
        found.map_or(Reading::Absent(Absence::NoSuchEvent), |(_, reading)| *reading)
    }
}

/// Tries out `events` on this very thread.
///
/// The kernel accepts a group as if all counters were free, though a watchdog or another user may hold some. So the
/// group is also run for a moment, and as long as it gets no counter, the least needed event is given up.
///
/// # Errors
/// [`ReadError`] when `/proc/sys/kernel/perf_event_paranoid` exists and can't be understood.
pub fn probe(root: &Root, events: &MachineEvents) -> Result<CounterSupport, ReadError> {
    let paranoid = root.parse("/proc/sys/kernel/perf_event_paranoid", "perf_event_paranoid", "a whole number")?;
    let mut usable = events.clone();
    let mut given_up: Vec<EventKind> = Vec::new();
    loop {
        let (mut counters, mut problems) = JobCounters::open_target(Target::Itself, &usable, Start::Now);
        if let Some(kind) = starved(&mut counters) {
            given_up.push(kind);
            usable = usable.without(kind, "other users of the counters leave no room for it");
            continue;
        }
        for problem in &mut problems {
            if given_up.contains(&problem.kind) {
                problem.cause = ProblemCause::DoesNotFit;
            }
        }
        let state = |kind| counters.absence(kind).map_or(Reading::Value(()), Reading::Absent);
        let list = EventKind::ALL.map(|kind| (kind, state(kind))).to_vec();
        let cpu_time = counters.read_cpu_time().map(|_: Nanos| ());
        for (kind, state) in &list {
            if !state.is_value() {
                usable = usable.without(*kind, "can't be counted here");
            }
        }
        let pmus = events.pmus.iter().map(|entry| (entry.pmu.name.clone(), entry.table.name.clone())).collect();
        return Ok(CounterSupport { paranoid, pmus, events: list, cpu_time, problems, usable });
    }
}

/// The least needed event, if this thread's counters were wanted for a while and never got onto the hardware.
fn starved(counters: &mut JobCounters) -> Option<EventKind> {
    if counters.groups.is_empty() {
        return None;
    }
    spin();
    let mut words = Vec::new();
    let (mut enabled, mut running) = (0, 0);
    for group in &counters.groups {
        for counted in read_group(group, &mut words)? {
            enabled += counted.enabled;
            running += counted.running;
        }
    }
    let least = || counters.groups.iter().flat_map(|group| &group.members).map(|(kind, _)| *kind).max();
    if enabled > 0 && running == 0 { least() } else { None }
}

/// Work for the counters to count; some hundred microseconds.
fn spin() {
    let mut x = 1u64;
    for n in 0..200_000u64 {
        x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_pmu_counts_nothing_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/perf_event_paranoid"), "-1\n").unwrap();
        let support = probe(&Root::new(dir.path()), &MachineEvents::default()).unwrap();
        assert_eq!(support.paranoid, Some(-1));
        assert_eq!(support.events.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(support.of(kind), Reading::Absent(Absence::NoCounters));
        }
        assert!(support.usable.pmus.is_empty());
        assert_eq!(probe(&Root::new("/nowhere"), &MachineEvents::default()).unwrap().paranoid, None);
    }

    #[test]
    fn this_machine_is_probed() {
        let root = Root::default();
        let events = MachineEvents::detect(&root, &[]).unwrap();
        let support = probe(&root, &events).unwrap();
        let counted = support.events.iter().filter(|(_, state)| state.is_value()).count();
        if counted == 0 {
            drop(std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("skipped, because {}\n", support.problems[0]),
            ));
        }
        // What is said to be usable opens without any complaint but those of the tables.
        let (_, problems) = JobCounters::open_target(Target::Itself, &support.usable, Start::Now);
        let refused = problems.iter().filter(|p| matches!(p.cause, ProblemCause::Refused(_)));
        assert_eq!(refused.count(), 0);
    }
}
