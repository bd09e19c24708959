//! Reads the counters of memory controllers.

use super::discovery::{Direction, Planned, PlannedEvent, TrafficPlan, discover};
use crate::counters::group::{EventTotal, decode_group};
use crate::counters::sys::{EventAttributes, EventScope, EventStart, EventTarget, ReadFormat};
use crate::counters::{absence_of, read_words, sys};
use crate::root::{NoMeter, Root};
use cosched_core::{Absence, Counter, Machine, Reading, Traffic};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The lines that each memory domain has read and written since the meter was opened, by all programs.
///
/// It takes two file descriptors per memory controller, on some processors four.
#[derive(Debug)]
pub struct TrafficMeter {
    /// In the order of the machine's memory domains.
    domains: Vec<Result<Vec<Controller>, NoMeter>>,
    /// Kept between reads.
    words: Vec<u64>,
}

/// The group of a memory controller's events.
#[derive(Debug)]
struct Controller {
    /// The events' descriptors, the leader first.
    members: Vec<OwnedFd>,
    counted: Vec<Counted>,
}

/// One event of a group.
#[derive(Debug)]
struct Counted {
    direction: Direction,
    lines_per_count: f64,
    total: EventTotal,
}

/// How an event is opened.
type Open<'a> =
    &'a mut dyn FnMut(&EventAttributes, EventTarget, Option<BorrowedFd<'_>>) -> io::Result<OwnedFd>;

impl TrafficMeter {
    /// Opens the counters of all memory controllers of the machine's memory domains. The controllers count for the
    /// whole machine, so this works even if the run may use only a few CPUs.
    ///
    /// # Errors
    /// [`NoMeter`]: no memory domain can be counted, because permission or known counters are missing.
    pub fn open(root: &Root, machine: &Machine) -> Result<TrafficMeter, NoMeter> {
        TrafficMeter::open_by(&mut sys::open, discover(root, machine)?)
    }

    /// The same, with a stand-in for the kernel's call to open events.
    pub(super) fn open_by(open: Open<'_>, plan: TrafficPlan) -> Result<TrafficMeter, NoMeter> {
        let mut domains = Vec::new();
        for planned in plan {
            domains.push(planned.and_then(|planned| Controller::open_all(open, &planned)));
        }
        let problems: Vec<&NoMeter> = domains
            .iter()
            .filter_map(|domain| domain.as_ref().err())
            .collect();
        // Missing permission comes first, because the user can fix that.
        let is_denied = |problem: &&&NoMeter| problem.reason == Absence::NoPermission;
        let first = problems.iter().find(is_denied).or(problems.first());
        if let Some(&first) = first
            && problems.len() == domains.len()
        {
            return Err(first.clone());
        }
        Ok(TrafficMeter {
            domains,
            words: Vec::new(),
        })
    }

    /// Appends the traffic of each memory domain since the meter was opened, in the order of
    /// [`Machine::memory_domains`]. A domain is absent if one of its controllers is, because a partial sum would look
    /// like low traffic. A read costs one system call per controller.
    pub fn read(&mut self, out: &mut Vec<Traffic>) {
        for domain in &mut self.domains {
            out.push(match domain {
                Ok(controllers) => read_domain(controllers, &mut self.words),
                Err(problem) => Traffic::absent(problem.reason),
            });
        }
    }

    /// Why a memory domain of the machine is not counted; `None` for each counted one.
    pub fn problems(&self) -> impl ExactSizeIterator<Item = Option<&NoMeter>> {
        self.domains.iter().map(|domain| domain.as_ref().err())
    }
}

impl Counted {
    fn new(event: &PlannedEvent) -> Counted {
        Counted {
            direction: event.direction,
            lines_per_count: event.lines_per_count,
            total: EventTotal::default(),
        }
    }
}

impl Controller {
    fn open_all(open: Open<'_>, planned: &[Planned]) -> Result<Vec<Controller>, NoMeter> {
        let mut controllers = Vec::new();
        for planned in planned {
            controllers.push(Controller::open(open, planned)?);
        }
        Ok(controllers)
    }

    fn open(open: Open<'_>, planned: &Planned) -> Result<Controller, NoMeter> {
        let mut members: Vec<OwnedFd> = Vec::new();
        for event in &planned.events {
            let leader = members.first().map(AsFd::as_fd);
            let [config, config1, config2] = event.registers.0;
            let attributes = EventAttributes {
                type_id: planned.type_id,
                config,
                config1,
                config2,
                scope: EventScope::Chip,
                start: leader.is_none().then_some(EventStart::Now),
                read: ReadFormat::Group,
            };
            let opened = open(&attributes, EventTarget::Cpu(planned.cpu.0), leader);
            members.push(opened.map_err(|error| {
                let reason = absence_of(error.raw_os_error().unwrap_or(0), Counter::MmReads);
                NoMeter::new(
                    reason,
                    format!("{} on CPU {}: {error}", planned.pmu, planned.cpu.0),
                )
            })?);
        }
        Ok(Controller {
            members,
            counted: planned.events.iter().map(Counted::new).collect(),
        })
    }

    /// Its traffic since it was opened.
    fn lines(&mut self, words: &mut Vec<u64>) -> Traffic {
        let count = self.members.len();
        let leader = self.members[0].as_fd();
        let group = read_words(leader, 3 + count, words)
            .ok()
            .and_then(|words| decode_group(words, count));
        let Some(group) = group else {
            return Traffic::absent(Absence::CountersLost);
        };
        let mut sum = Traffic {
            reads: Reading::Value(0),
            writes: Reading::Value(0),
        };
        for (event, now) in self.counted.iter_mut().zip(group) {
            let lines = event
                .total
                .update(&[now])
                .map(|count| (count as f64 * event.lines_per_count).round() as u64);
            match event.direction {
                Direction::Reads => sum.reads = add(sum.reads, lines),
                Direction::Writes => sum.writes = add(sum.writes, lines),
            }
        }
        sum
    }
}

fn add(a: Reading<u64>, b: Reading<u64>) -> Reading<u64> {
    a.and_then(|a| b.map(|b| a.saturating_add(b)))
}

/// Reads all controllers even if one fails: each keeps its own totals.
fn read_domain(controllers: &mut [Controller], words: &mut Vec<u64>) -> Traffic {
    let mut sum = Traffic {
        reads: Reading::Value(0),
        writes: Reading::Value(0),
    };
    for controller in controllers {
        let lines = controller.lines(words);
        sum.reads = add(sum.reads, lines.reads);
        sum.writes = add(sum.writes, lines.writes);
    }
    sum
}
