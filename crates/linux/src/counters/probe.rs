//! What this machine can count now for this user, and the reasons for the rest.

use super::group::Counted;
use super::open::{CounterProblem, Group, Opener, open_all};
use super::sys::{Start, Target};
use super::{JobCounters, KernelOpener, read_group};
use crate::events::MachineEvents;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, Counter, Nanos, PerCounter, Reading};

/// Counter support of this machine.
#[derive(Clone, Debug)]
pub struct CounterSupport {
    /// The value in `/proc/sys/kernel/perf_event_paranoid`; `None` on a kernel without perf events. Up to 2 an ordinary
    /// user may count its own processes in user mode; some distributions have 3 and 4, which forbid it altogether.
    pub paranoid: Option<i64>,
    /// The core PMUs, each with the name of its event table.
    pub pmus: Vec<(String, String)>,
    /// Whether each counter can be counted, or why not.
    pub events: PerCounter<Reading<()>>,
    /// Whether CPU time can be counted.
    pub cpu_time: Reading<()>,
    /// Details of the events that cannot be counted.
    pub problems: Vec<CounterProblem>,
    /// The events that can be counted together without multiplexing: those that a run should open.
    pub usable: MachineEvents,
}

impl CounterSupport {
    /// Whether this counter can be counted.
    pub fn of(&self, counter: Counter) -> Reading<()> {
        self.events[counter]
    }
}

/// Tries out `events` on the calling thread.
///
/// # Errors
/// [`ReadError`] when `/proc/sys/kernel/perf_event_paranoid` exists and is malformed.
pub fn probe(root: &Root, events: &MachineEvents) -> Result<CounterSupport, ReadError> {
    let paranoid = root.parse(
        "/proc/sys/kernel/perf_event_paranoid",
        "perf_event_paranoid",
        "a whole number",
    )?;
    let Tried {
        states,
        problems,
        usable,
    } = try_out(&mut KernelOpener(Target::Itself), events);
    let (mut clock_alone, _) =
        JobCounters::open_target(Target::Itself, &MachineEvents::default(), Start::Now);
    let cpu_time = clock_alone.read_cpu_time().map(|_: Nanos| ());
    let pmus = events
        .pmus
        .iter()
        .map(|entry| (entry.pmu.name.clone(), entry.table.name.clone()))
        .collect();
    Ok(CounterSupport {
        paranoid,
        pmus,
        events: states,
        cpu_time,
        problems,
        usable,
    })
}

/// Tests events by counting for a while, on the kernel or on a test's stand-in.
trait Trial: Opener {
    /// Does some hundred microseconds of work that the events count.
    fn work(&mut self);
    /// Reads every member of a group; `None` if the group does not answer.
    fn read(&mut self, group: &Group<Self::Handle>) -> Option<Vec<Counted>>;
}

impl Trial for KernelOpener {
    fn work(&mut self) {
        let mut x = 1u64;
        for n in 0..200_000u64 {
            x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(n));
        }
    }

    fn read(&mut self, group: &Group<Self::Handle>) -> Option<Vec<Counted>> {
        read_group(group, &mut Vec::new())
    }
}

/// The result of a trial.
struct Tried {
    states: PerCounter<Reading<()>>,
    problems: Vec<CounterProblem>,
    usable: MachineEvents,
}

/// Finds the events that can be counted together.
///
/// The kernel accepts a group as if all counters were free, although a watchdog or another user may hold some. So the
/// group also runs for a moment. While it gets no counter, the least needed event is dropped.
fn try_out<T: Trial>(trial: &mut T, events: &MachineEvents) -> Tried {
    let mut usable = events.clone();
    loop {
        let opened = open_all(trial, &usable, Start::Now);
        if let Some(counter) = starved(trial, &opened.groups) {
            let why = "other users of the counters leave no room for it";
            usable.give_up(counter, Absence::DoesNotFit, why);
            continue;
        }
        let states = opened
            .places()
            .map(|places| places.map_or_else(Reading::Absent, |_| Reading::Value(())));
        for (counter, state) in states.iter() {
            if let Some(why) = state.absence() {
                usable.give_up(counter, why, "can't be counted here");
            }
        }
        return Tried {
            states,
            problems: opened.problems,
            usable,
        };
    }
}

/// The least needed event, if the events were enabled for a while and none of them was ever on the hardware.
fn starved<T: Trial>(trial: &mut T, groups: &[Group<T::Handle>]) -> Option<Counter> {
    if groups.is_empty() {
        return None;
    }
    trial.work();
    let (mut enabled, mut running) = (0, 0);
    for group in groups {
        for counted in trial.read(group)? {
            enabled += counted.enabled;
            running += counted.running;
        }
    }
    let members = groups.iter().flatten();
    let least = members
        .map(|(counter, _)| *counter)
        .max_by_key(|counter| counter.need());
    least.filter(|_| enabled > 0 && running == 0)
}

#[cfg(test)]
mod tests {
    use super::super::sys::Attributes;
    use super::*;
    use crate::events::{CorePmu, PmuEvents, tables};
    use std::io;

    /// A kernel that accepts groups of any size, on hardware with `free` free counters. A group that needs more never
    /// runs.
    struct Shared {
        free: usize,
        /// An event that the kernel rejects, and the error number.
        refused: Option<(u64, i32)>,
        answers: bool,
        worked: usize,
    }

    impl Shared {
        fn with(free: usize) -> Shared {
            Shared {
                free,
                refused: None,
                answers: true,
                worked: 0,
            }
        }
    }

    impl Opener for Shared {
        type Handle = ();
        fn open(&mut self, attributes: &Attributes, _leader: Option<&()>) -> io::Result<()> {
            match self.refused {
                Some((config, errno)) if config == attributes.config => {
                    Err(io::Error::from_raw_os_error(errno))
                }
                _ => Ok(()),
            }
        }
    }

    impl Trial for Shared {
        fn work(&mut self) {
            self.worked += 1;
        }
        fn read(&mut self, group: &Group<()>) -> Option<Vec<Counted>> {
            let runs = group.len() <= self.free;
            let counted = Counted {
                enabled: 100,
                running: if runs { 100 } else { 0 },
                value: 7,
            };
            self.answers.then(|| vec![counted; group.len()])
        }
    }

    /// A machine with these PMUs, each with an event for each counter.
    fn machine(pmus: &[&str]) -> MachineEvents {
        let mut table = tables()
            .iter()
            .find(|table| table.name == "zen5")
            .unwrap()
            .clone();
        for counter in Counter::ALL {
            if table.event(counter).is_none() {
                table.replace(counter, "0x1234".parse().unwrap());
            }
        }
        let entry = |(ix, name): (usize, &&str)| PmuEvents {
            pmu: CorePmu {
                name: (*name).to_owned(),
                type_id: ix as u32 + 4,
                cpus: None,
            },
            table: table.clone(),
        };
        MachineEvents {
            pmus: pmus.iter().enumerate().map(entry).collect(),
        }
    }

    fn usable(tried: &Tried) -> Vec<Vec<Counter>> {
        let counters = |entry: &PmuEvents| {
            let mut counters = Counter::BY_NEED.to_vec();
            counters.retain(|&counter| entry.table.event(counter).is_some());
            counters
        };
        tried.usable.pmus.iter().map(counters).collect()
    }

    #[test]
    fn the_least_needed_events_are_given_up_until_the_rest_is_counted() {
        for free in 0..=Counter::COUNT + 2 {
            let mut trial = Shared::with(free);
            let tried = try_out(&mut trial, &machine(&["cpu"]));
            let kept = free.min(Counter::COUNT);
            assert_eq!(
                usable(&tried),
                [&Counter::BY_NEED[..kept]],
                "{free} counters are free"
            );
            for counter in Counter::ALL {
                let fits = counter.need() < kept;
                let expected = if fits {
                    Reading::Value(())
                } else {
                    Reading::Absent(Absence::DoesNotFit)
                };
                assert_eq!(
                    tried.states[counter], expected,
                    "{counter} with {free} free"
                );
                let problem = tried
                    .problems
                    .iter()
                    .find(|problem| problem.counter == counter);
                let told = problem.map(|problem| problem.reason);
                assert_eq!(told, (!fits).then_some(Absence::DoesNotFit), "{counter}");
            }
            // One trial for each dropped event, and a successful one if any event is left.
            assert_eq!(trial.worked, Counter::COUNT - kept + usize::from(kept > 0));
        }
    }

    #[test]
    fn what_is_given_up_is_given_up_on_every_pmu() {
        let tried = try_out(&mut Shared::with(2), &machine(&["cpu_atom", "cpu_core"]));
        assert_eq!(
            usable(&tried),
            [&Counter::BY_NEED[..2], &Counter::BY_NEED[..2]]
        );
        assert_eq!(tried.problems.len(), 2 * (Counter::COUNT - 2));
    }

    #[test]
    fn a_refused_event_is_not_opened_again_and_keeps_its_reason() {
        let events = machine(&["cpu"]);
        let reads = events.pmus[0]
            .table
            .event(Counter::MmReads)
            .unwrap()
            .encoding
            .to_string();
        let config = u64::from_str_radix(reads.trim_start_matches("0x"), 16).unwrap();
        let mut trial = Shared {
            refused: Some((config, libc::EACCES)),
            ..Shared::with(8)
        };
        let tried = try_out(&mut trial, &events);
        assert_eq!(
            tried.states[Counter::MmReads],
            Reading::Absent(Absence::NoPermission)
        );
        assert!(matches!(
            tried.problems[..],
            [CounterProblem {
                reason: Absence::NoPermission,
                ..
            }]
        ));
        // A run that opens the usable events gives the same reason, although it requests no rejected event.
        let again = open_all(&mut trial, &tried.usable, Start::OnExec);
        assert_eq!(again.places()[Counter::MmReads], Err(Absence::NoPermission));
        assert!(again.places()[Counter::MmWrites].is_ok());
    }

    #[test]
    fn a_group_that_does_not_answer_gives_nothing_up() {
        let mut trial = Shared {
            answers: false,
            ..Shared::with(0)
        };
        let tried = try_out(&mut trial, &machine(&["cpu"]));
        assert_eq!(usable(&tried), [Counter::BY_NEED]);
        assert_eq!(trial.worked, 1);
    }

    #[test]
    fn a_machine_without_pmu_counts_nothing_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(
            dir.path().join("proc/sys/kernel/perf_event_paranoid"),
            "-1\n",
        )
        .unwrap();
        let support = probe(&Root::new(dir.path()), &MachineEvents::default()).unwrap();
        assert_eq!(support.paranoid, Some(-1));
        for counter in Counter::ALL {
            assert_eq!(support.of(counter), Reading::Absent(Absence::NoCounters));
        }
        assert!(support.usable.pmus.is_empty());
        assert_eq!(
            probe(&Root::new("/nowhere"), &MachineEvents::default())
                .unwrap()
                .paranoid,
            None
        );
    }

    #[test]
    fn this_machine_counts_what_the_probe_calls_usable() {
        let root = Root::default();
        let events = MachineEvents::detect(&root, &[]).unwrap();
        let support = probe(&root, &events).unwrap();
        if !support.events.iter().any(|(_, state)| state.is_value()) {
            let skipped = format!("skipped, because {}\n", support.problems[0]);
            drop(io::Write::write_all(&mut io::stderr(), skipped.as_bytes()));
            return;
        }
        let (mut counters, problems) =
            JobCounters::open_target(Target::Itself, &support.usable, Start::Now);
        assert!(
            !problems.iter().any(|problem| problem.event.is_some()),
            "{problems:?}"
        );
        KernelOpener(Target::Itself).work();
        let counts = counters.read();
        for (counter, state) in support.events.iter() {
            assert_eq!(counts[counter].map(|_| ()), *state, "{counter}");
        }
        assert!(
            counts[Counter::Instructions]
                .value()
                .is_none_or(|count| count > 200_000)
        );
    }
}
