//! What this machine can count now for this user, and the reasons for the rest.

use super::group::EventReading;
use super::open::{CounterProblem, EventGroup, Opener, open_all};
use super::sys::{self, EventAttributes, EventStart, EventTarget};
use super::{JobCounters, KernelOpener, always_happens, read_group};
use crate::events::MachineEvents;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, Counter, Nanos, PerCounter, Reading};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

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
    /// Those that counted nothing in the trial, though memory is not used in every moment. They are believed once they count.
    pub unproven: BTreeSet<Counter>,
    /// The events that were counted in the trial, all at once or in turns: those that a run should open.
    pub usable: MachineEvents,
}

impl CounterSupport {
    /// Whether this counter can be counted.
    pub fn of(&self, counter: Counter) -> Reading<()> {
        self.events[counter]
    }
}

/// Tries out `events` on the calling thread: until each has counted, at least for a time, and at most for
/// [`LONGEST_TRIAL`].
///
/// # Errors
/// [`ReadError`] when `/proc/sys/kernel/perf_event_paranoid` exists and is malformed.
pub fn probe(
    root: &Root,
    events: &MachineEvents,
    at_least: Duration,
) -> Result<CounterSupport, ReadError> {
    let paranoid = root.parse(
        "/proc/sys/kernel/perf_event_paranoid",
        "perf_event_paranoid",
        "a whole number",
    )?;
    let mut trial = KernelTrial {
        opener: KernelOpener(EventTarget::Itself),
        since: Instant::now(),
        memory: Vec::new(),
    };
    let Tried {
        states,
        problems,
        unproven,
        usable,
    } = try_out(&mut trial, events, at_least);
    let (mut clock_alone, _) = JobCounters::open_target(
        EventTarget::Itself,
        &MachineEvents::default(),
        EventStart::Now,
    );
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
        unproven,
        usable,
    })
}

/// Maximum length of a trial, in CPU time. Where counters are fewer than events, each event waits for its turn of some
/// milliseconds.
pub const LONGEST_TRIAL: Duration = Duration::from_millis(50);

/// Maximum length of a trial on a machine that leaves it little CPU time.
const LONGEST_WAIT: Duration = Duration::from_millis(2_000);

/// Tests events by counting for a while, on the kernel or on a test's stand-in.
trait Trial: Opener {
    /// Starts to count these groups.
    fn begin(&mut self, groups: &[EventGroup<Self::Handle>]);
    /// Does some hundred microseconds of work that the events count. Returns the time since the start.
    fn work(&mut self) -> Duration;
    /// Reads every member of a group; `None` if the group does not answer.
    fn read(&mut self, group: &EventGroup<Self::Handle>) -> Option<Vec<EventReading>>;
}

/// Trials in the kernel.
struct KernelTrial {
    opener: KernelOpener,
    since: Instant,
    /// Memory to walk through; it grows.
    memory: Vec<u64>,
}

impl KernelTrial {
    /// Sizes of the memory in words: 128 KiB at first, at last more than most caches.
    const LEAST: usize = 1 << 14;
    const MOST: usize = 1 << 23;
    /// Words of a cache line.
    const LINE: usize = 8;
}

impl Opener for KernelTrial {
    type Handle = OwnedFd;
    fn open(
        &mut self,
        attributes: &EventAttributes,
        leader: Option<&OwnedFd>,
    ) -> io::Result<OwnedFd> {
        self.opener.open(attributes, leader)
    }
}

impl Trial for KernelTrial {
    fn begin(&mut self, groups: &[EventGroup<OwnedFd>]) {
        self.since = Instant::now();
        for (_, leader) in groups.iter().filter_map(|group| group.first()) {
            // An event that cannot be enabled counts nothing.
            let _ = sys::enable(leader.as_fd());
        }
    }

    fn work(&mut self) -> Duration {
        let larger = (2 * self.memory.len()).clamp(KernelTrial::LEAST, KernelTrial::MOST);
        self.memory.resize(larger, 1);
        let mut sum = 1u64;
        for word in self.memory.iter().step_by(KernelTrial::LINE) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(*word));
        }
        self.since.elapsed()
    }

    fn read(&mut self, group: &EventGroup<OwnedFd>) -> Option<Vec<EventReading>> {
        read_group(group, &mut Vec::new())
    }
}

/// The result of a trial.
struct Tried {
    states: PerCounter<Reading<()>>,
    problems: Vec<CounterProblem>,
    unproven: BTreeSet<Counter>,
    usable: MachineEvents,
}

/// Finds the events that can be counted, all at once or in turns.
///
/// The kernel accepts an event as if all counters were free, although a watchdog or another user may hold them. So the
/// events also run for a moment. The least needed one that gets no counter is given up, and the rest is tried again: a
/// pair may lack the room that one event has.
fn try_out<T: Trial>(trial: &mut T, events: &MachineEvents, at_least: Duration) -> Tried {
    let mut usable = events.clone();
    loop {
        let opened = open_all(trial, &usable, EventStart::WhenEnabled);
        let seen = count_for_a_while(trial, &opened.groups, at_least);
        let starved = seen.iter().filter(|(_, counted)| counted.running == 0);
        if let Some((&counter, _)) = starved.max_by_key(|(counter, _)| counter.need()) {
            let why = "other users hold the hardware counters, as the NMI watchdog or `perf` does";
            usable.give_up(counter, Absence::NoCounterFree, why);
            continue;
        }
        let nothing = seen.iter().filter(|(_, counted)| counted.value == 0);
        let mut unproven: BTreeSet<Counter> = nothing.map(|(counter, _)| *counter).collect();
        let broken = |counter: &&Counter| always_happens(**counter, events);
        if let Some(&counter) = unproven.iter().find(broken) {
            let why = "it counted nothing while a program ran";
            usable.give_up(counter, Absence::CountsNothing, why);
            continue;
        }
        if events.is_of_kernel() {
            unproven.clear();
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
            unproven,
            usable,
        };
    }
}

/// Counts until each event has counted something, or for the longest time. Returns the sums over all PMUs; nothing of
/// events that do not answer.
fn count_for_a_while<T: Trial>(
    trial: &mut T,
    groups: &[EventGroup<T::Handle>],
    at_least: Duration,
) -> BTreeMap<Counter, EventReading> {
    trial.begin(groups);
    loop {
        let tried_for = trial.work();
        let mut seen: BTreeMap<Counter, EventReading> = BTreeMap::new();
        for group in groups {
            let counted = trial.read(group).into_iter().flatten();
            for ((counter, _), counted) in group.iter().zip(counted) {
                let sum = seen.entry(*counter).or_default();
                sum.enabled += counted.enabled;
                sum.running += counted.running;
                sum.value += counted.value;
            }
        }
        let on_cpu = seen.values().map(|counted| counted.enabled).max();
        let on_cpu = Duration::from_nanos(on_cpu.unwrap_or(0));
        let has_counted = |counted: &EventReading| counted.running > 0 && counted.value > 0;
        let is_enough = tried_for >= at_least && seen.values().all(has_counted);
        let is_long = on_cpu >= LONGEST_TRIAL || tried_for >= LONGEST_WAIT;
        if groups.is_empty() || is_enough || is_long {
            return seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CorePmu, PmuEvents, tables};

    /// A kernel that accepts groups of any size, on hardware with `free` free counters. Groups take turns, and one that
    /// needs more never runs.
    struct Shared {
        free: usize,
        /// An event that the kernel rejects, and the error number.
        refused: Option<(u64, i32)>,
        /// An event that counts nothing.
        broken: Option<Counter>,
        answers: bool,
        /// Steps of work, one a millisecond.
        steps: u64,
    }

    impl Shared {
        fn with(free: usize) -> Shared {
            Shared {
                free,
                refused: None,
                broken: None,
                answers: true,
                steps: 0,
            }
        }
    }

    impl Opener for Shared {
        type Handle = ();
        fn open(&mut self, attributes: &EventAttributes, _leader: Option<&()>) -> io::Result<()> {
            match self.refused {
                Some((config, errno)) if config == attributes.config => {
                    Err(io::Error::from_raw_os_error(errno))
                }
                _ => Ok(()),
            }
        }
    }

    impl Trial for Shared {
        fn begin(&mut self, _groups: &[EventGroup<()>]) {
            self.steps = 0;
        }
        fn work(&mut self) -> Duration {
            self.steps += 1;
            Duration::from_millis(self.steps)
        }
        fn read(&mut self, group: &EventGroup<()>) -> Option<Vec<EventReading>> {
            let runs = group.len() <= self.free;
            let of = |(counter, ()): &(Counter, ())| EventReading {
                enabled: 1_000_000 * self.steps,
                running: if runs { 500_000 * self.steps } else { 0 },
                value: if runs && self.broken != Some(*counter) {
                    7
                } else {
                    0
                },
            };
            self.answers.then(|| group.iter().map(of).collect())
        }
    }

    fn tried(trial: &mut Shared, events: &MachineEvents) -> Tried {
        try_out(trial, events, Duration::ZERO)
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

    /// The reasons of the events that are given up.
    fn given_up(tried: &Tried) -> Vec<(Counter, Absence)> {
        let problems = tried.problems.iter();
        problems
            .map(|problem| (problem.counter, problem.reason))
            .collect()
    }

    #[test]
    fn with_few_counters_events_take_turns_and_with_none_all_are_given_up() {
        for free in 2..=Counter::COUNT {
            let mut trial = Shared::with(free);
            let tried = tried(&mut trial, &machine(&["cpu"]));
            assert_eq!(usable(&tried), [Counter::BY_NEED]);
            assert!(tried.states.iter().all(|(_, state)| state.is_value()));
            assert_eq!(trial.steps, 1, "no longer than needed");
        }
        // The pair needs two.
        let lone = tried(&mut Shared::with(1), &machine(&["cpu"]));
        assert_eq!(given_up(&lone), [(Counter::Cycles, Absence::NoCounterFree)]);
        let none = tried(&mut Shared::with(0), &machine(&["cpu"]));
        assert!(
            none.states
                .iter()
                .all(|(_, state)| *state == Reading::Absent(Absence::NoCounterFree))
        );
    }

    #[test]
    fn what_counts_nothing_is_given_up_if_every_program_must_cause_it() {
        for broken in Counter::ALL {
            let mut trial = Shared {
                broken: Some(broken),
                ..Shared::with(8)
            };
            let events = machine(&["cpu"]);
            let tried = tried(&mut trial, &events);
            let is_broken = always_happens(broken, &events);
            let expected = is_broken.then_some((broken, Absence::CountsNothing));
            assert_eq!(given_up(&tried), Vec::from_iter(expected));
            assert_eq!(tried.unproven.contains(&broken), !is_broken);
        }
    }

    #[test]
    fn what_is_given_up_is_given_up_on_every_pmu() {
        let tried = tried(&mut Shared::with(1), &machine(&["cpu_atom", "cpu_core"]));
        assert!(
            usable(&tried)
                .iter()
                .all(|of_pmu| !of_pmu.contains(&Counter::Cycles))
        );
        assert_eq!(tried.problems.len(), 2);
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
        let tried = tried(&mut trial, &events);
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
        let again = open_all(&mut trial, &tried.usable, EventStart::OnExec);
        assert_eq!(again.places()[Counter::MmReads], Err(Absence::NoPermission));
        assert!(again.places()[Counter::MmWrites].is_ok());
    }

    #[test]
    fn a_group_that_does_not_answer_gives_nothing_up() {
        let mut trial = Shared {
            answers: false,
            ..Shared::with(0)
        };
        let tried = tried(&mut trial, &machine(&["cpu"]));
        assert_eq!(usable(&tried), [Counter::BY_NEED]);
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
        let support = probe(
            &Root::new(dir.path()),
            &MachineEvents::default(),
            Duration::ZERO,
        )
        .unwrap();
        assert_eq!(support.paranoid, Some(-1));
        for counter in Counter::ALL {
            assert_eq!(support.of(counter), Reading::Absent(Absence::NoCounters));
        }
        assert!(support.usable.pmus.is_empty());
        assert_eq!(
            probe(
                &Root::new("/nowhere"),
                &MachineEvents::default(),
                Duration::ZERO
            )
            .unwrap()
            .paranoid,
            None
        );
    }

    #[test]
    fn this_machine_counts_what_the_probe_calls_usable() {
        let root = Root::default();
        let events = MachineEvents::detect(&root, &[]).unwrap();
        let support = probe(&root, &events, Duration::ZERO).unwrap();
        if !support.events.iter().any(|(_, state)| state.is_value()) {
            let skipped = format!("skipped, because {}\n", support.problems[0]);
            drop(io::Write::write_all(&mut io::stderr(), skipped.as_bytes()));
            return;
        }
        let (mut counters, problems) =
            JobCounters::open_target(EventTarget::Itself, &support.usable, EventStart::Now);
        assert!(
            !problems.iter().any(|problem| problem.event.is_some()),
            "{problems:?}"
        );
        std::hint::black_box((0..200_000u64).fold(1, |x: u64, n| x.wrapping_mul(31) ^ n));
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
