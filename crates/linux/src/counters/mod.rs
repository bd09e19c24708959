//! Counts hardware events and CPU time of a job, over all its processes.
//!
//! Each job gets events of its own, which its children inherit. They count in user mode only, so that an ordinary user
//! may count at `perf_event_paranoid` 2. An event knows for how long the job was on CPUs and for how long it was on a
//! hardware counter meanwhile. The first is the clock by which counts become rates; where nothing is counted, the
//! kernel's task clock takes its place. Both include user and system time, and children while they run and after they
//! ended. A count that is unavailable is absent with its reason, and never stops a run.

pub(crate) mod group;
mod open;
mod per_cpu;
mod probe;
pub(crate) mod sys;
mod trust;

pub use group::EventReading;
pub use open::CounterProblem;
pub(crate) use open::absence_of;
pub use per_cpu::CpuEvents;
pub use probe::{CounterSupport, LONGEST_TRIAL, probe};
pub use sys::EventStart;
pub(crate) use trust::Trust;

use crate::events::MachineEvents;
use cosched_core::{Absence, Counter, Counts, Nanos, PerCounter, Reading};
use group::EventTotal;
use open::{EventGroup, EventPosition, Opener};
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use sys::{EventAttributes, EventScope, EventTarget, ReadFormat};

/// The counters of one job. Dropping them closes them; the job continues uncounted.
#[derive(Debug)]
pub struct JobCounters {
    groups: Vec<EventGroup<OwnedFd>>,
    /// Each counter's events, or why it is absent.
    counted: PerCounter<Result<CountedEvents, Absence>>,
    /// The kernel's task clock, if no event is counted.
    task_clock: Result<OwnedFd, Absence>,
    /// Kept between reads, so that a read allocates no memory.
    words: Vec<u64>,
}

/// The events of one counter.
#[derive(Debug)]
struct CountedEvents {
    /// Positions of its events, one per PMU.
    places: Vec<EventPosition>,
    total: EventTotal,
}

/// Opens events of a process or thread in the kernel.
struct KernelOpener(EventTarget);

impl Opener for KernelOpener {
    type Handle = OwnedFd;
    fn open(
        &mut self,
        attributes: &EventAttributes,
        leader: Option<&OwnedFd>,
    ) -> io::Result<OwnedFd> {
        sys::open(attributes, self.0, leader.map(AsFd::as_fd))
    }
}

impl JobCounters {
    /// Opens the machine's `events` of process `pid`, and reports those that cannot be counted.
    ///
    /// With [`EventStart::OnExec`] the process must not have executed its program yet. Its earlier activity and existing
    /// children are not counted. This takes one file descriptor per counter and core PMU, or one if nothing is counted.
    pub fn open(
        pid: Pid,
        events: &MachineEvents,
        start: EventStart,
    ) -> (JobCounters, Vec<CounterProblem>) {
        JobCounters::open_target(EventTarget::Process(pid), events, start)
    }

    fn open_target(
        target: EventTarget,
        events: &MachineEvents,
        start: EventStart,
    ) -> (JobCounters, Vec<CounterProblem>) {
        let opened = open::open_all(&mut KernelOpener(target), events, start);
        let task_clock = match opened.groups.is_empty() {
            true => open_task_clock(target, start),
            false => Err(Absence::NotRequested),
        };
        let places = opened.places();
        let counted = PerCounter::from_fn(|counter| {
            let places = places[counter].clone()?;
            let total = total_of(counter, events);
            Ok(CountedEvents { places, total })
        });
        let counters = JobCounters {
            groups: opened.groups,
            counted,
            task_clock,
            words: Vec::new(),
        };
        (counters, opened.problems)
    }

    /// All counts since the start, scaled if the kernel multiplexed counters.
    ///
    /// Reading a running job interrupts its CPUs, so freeze it first where that is possible. A read costs one system
    /// call per group. An event that got no counter at all since the last read is [`Absence::NoCounterFree`] this time.
    pub fn read(&mut self) -> Counts {
        let words = &mut self.words;
        let readings: Vec<Option<Vec<EventReading>>> = self
            .groups
            .iter()
            .map(|group| read_group(group, words))
            .collect();
        Counts::from_fn(|counter| {
            let CountedEvents { places, total } = match &mut self.counted[counter] {
                Ok(events) => events,
                Err(why) => return Reading::Absent(*why),
            };
            let now: Option<Vec<EventReading>> = places
                .iter()
                .map(|&(group, member)| Some(readings[group].as_ref()?[member]))
                .collect();
            match now {
                Some(now) => total.update(&now),
                None => total.unread(),
            }
        })
    }

    /// CPU time, user and system, of the job and its descendants since the start, at the last [read](JobCounters::read).
    /// It is the counters' own clock: it moves with the counts.
    pub fn read_cpu_time(&mut self) -> Reading<Nanos> {
        let clock = self.totals().map(|(_, total)| total.clock()).max();
        match (clock, &self.task_clock) {
            (Some(clock), _) => Reading::Value(clock),
            (None, Err(why)) => Reading::Absent(*why),
            (None, Ok(fd)) => match read_words(fd.as_fd(), 1, &mut self.words) {
                Ok(&[ns]) => Reading::Value(Nanos(ns)),
                _ => Reading::Absent(Absence::CountersLost),
            },
        }
    }

    /// The totals of the events that are counted.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (Counter, &EventTotal)> {
        let counted = self.counted.iter();
        counted.filter_map(|(counter, events)| Some((counter, &events.as_ref().ok()?.total)))
    }

    /// Whether the kernel has multiplexed counters at any read so far, so that counts are scaled estimates.
    pub fn multiplexed(&self) -> bool {
        self.totals().any(|(_, total)| total.multiplexed)
    }
}

/// The total of a counter's events before the first reading. The kernel's own events may stand in for rare ones.
pub(crate) fn total_of(counter: Counter, events: &MachineEvents) -> EventTotal {
    match always_happens(counter, events) {
        true => EventTotal::of_what_always_happens(),
        false => EventTotal::default(),
    }
}

/// Whether every program causes this event all the time.
fn always_happens(counter: Counter, events: &MachineEvents) -> bool {
    matches!(counter, Counter::Instructions | Counter::Cycles) && !events.is_of_kernel()
}

/// Opens the kernel's clock of the CPU time of a task and of its descendants, by inheritance;
/// `PERF_COUNT_SW_TASK_CLOCK`.
fn open_task_clock(target: EventTarget, start: EventStart) -> Result<OwnedFd, Absence> {
    const TYPE_SOFTWARE: u32 = 1;
    const TASK_CLOCK: u64 = 1;
    let attributes = EventAttributes {
        type_id: TYPE_SOFTWARE,
        config: TASK_CLOCK,
        config1: 0,
        config2: 0,
        scope: EventScope::Job,
        start: Some(start),
        read: ReadFormat::Count,
    };
    sys::open(&attributes, target, None).map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Absence::NoPermission,
        // This kernel has no perf events: where they exist, the clock does too.
        Some(libc::ENOSYS | libc::ENOENT) => Absence::NoCounters,
        _ => Absence::CountersLost,
    })
}

/// Reads a group; `None` if the answer is invalid.
fn read_group(group: &EventGroup<OwnedFd>, words: &mut Vec<u64>) -> Option<Vec<EventReading>> {
    let (_, leader) = group.first()?;
    let members = group.len();
    let words = read_words(leader.as_fd(), 3 + members, words).ok()?;
    group::decode_group(words, members)
}

/// Reads up to `count` words of 64 bits. An event in an error state returns none.
pub(crate) fn read_words<'a>(
    fd: BorrowedFd<'_>,
    count: usize,
    words: &'a mut Vec<u64>,
) -> io::Result<&'a [u64]> {
    const WORD: usize = size_of::<u64>();
    /// Words of a group's number of events, its two times, and every event.
    const MOST: usize = 3 + Counter::COUNT;
    let mut bytes = [0u8; MOST * WORD];
    let length = rustix::io::read(fd, &mut bytes[..count.min(MOST) * WORD])?;
    words.clear();
    words.extend(bytes[..length].chunks_exact(WORD).map(|chunk| {
        let mut word = [0; WORD];
        word.copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    }));
    Ok(words)
}
