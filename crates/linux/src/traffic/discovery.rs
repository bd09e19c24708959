//! Finds the PMUs of the memory controllers, and the events to open for each memory domain.

use super::ITEM;
use super::encoding::{Registers, encode};
use super::places::Places;
use crate::root::{NoMeter, ReadError, Root};
use cosched_core::{Absence, CpuId, CpuSet, Machine};

const PMUS: &str = "/sys/bus/event_source/devices";
const MIB: f64 = 1_048_576.0;
const LINE: f64 = 64.0;

/// PMUs of one kind, and their events.
struct Family {
    /// The name of its PMU. If there are several, `_` and a number follow.
    pmu: &'static str,
    /// The names of its events: files under `events` have these names, or the names with `_sch` and the number of a
    /// subchannel. With [`Unit::Terms`], these are the terms of the events.
    reads: &'static str,
    writes: &'static str,
    unit: Unit,
}

/// The unit of a count.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// A line, unless a file `.scale` says otherwise. The command CAS moves a line.
    Line,
    /// As in the file `.scale`.
    Scaled,
    /// A line. The kernel has no files for the events.
    Terms,
}

/// In order of preference. Only the first family on the machine is used, so that nothing is counted twice: Intel
/// servers have free-running counters beside those of commands.
///
/// Sources: Linux, `arch/x86/events/intel/uncore_snb.c` (clients, Nehalem), `uncore_snbep.c` (servers) and
/// `arch/x86/events/amd/uncore.c`; for the numbers of AMD,
/// `tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json`.
const FAMILIES: [Family; 5] = [
    // Commands to the memory of Intel servers.
    Family {
        pmu: "uncore_imc",
        reads: "cas_count_read",
        writes: "cas_count_write",
        unit: Unit::Line,
    },
    // Free-running counters of Intel clients since Tiger Lake.
    Family {
        pmu: "uncore_imc_free_running",
        reads: "data_read",
        writes: "data_write",
        unit: Unit::Scaled,
    },
    // Earlier Intel clients.
    Family {
        pmu: "uncore_imc",
        reads: "data_reads",
        writes: "data_writes",
        unit: Unit::Scaled,
    },
    // Nehalem and Westmere. Partial-line writes are not counted.
    Family {
        pmu: "uncore",
        reads: "qmc_normal_reads_any",
        writes: "qmc_writes_full_any",
        unit: Unit::Line,
    },
    // Commands to the memory of AMD processors since Zen 4.
    Family {
        pmu: "amd_umc",
        reads: "event=0xa,rdwrmask=0x1",
        writes: "event=0xa,rdwrmask=0x2",
        unit: Unit::Terms,
    },
];

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Direction {
    Reads,
    Writes,
}

/// An event to open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedEvent {
    pub direction: Direction,
    pub registers: Registers,
    pub lines_per_count: f64,
}

/// The events of one PMU, to be opened as a group on a CPU.
#[derive(Debug)]
pub(super) struct Planned {
    /// The PMU's name.
    pub pmu: String,
    pub type_id: u32,
    pub cpu: CpuId,
    /// At least one event of each direction.
    pub events: Vec<PlannedEvent>,
}

/// The events to open for each memory domain of the machine, or why it cannot be counted.
pub(super) type TrafficPlan = Vec<Result<Vec<Planned>, NoMeter>>;

/// Finds the machine's memory controllers.
///
/// # Errors
/// [`NoMeter`]: there are no known ones, or a file does not name their sockets.
pub(super) fn discover(root: &Root, machine: &Machine) -> Result<TrafficPlan, NoMeter> {
    let names = root.names(PMUS, ITEM)?;
    for family in &FAMILIES {
        let mut found = Vec::new();
        for name in names.iter().filter(|name| family.has(name)) {
            found.push((name.as_str(), family.find(root, name)?));
        }
        // Clients since Alder Lake have an `uncore_imc_N` without events beside the free-running counters.
        if found.iter().any(|(_, events)| !events.is_empty()) {
            let pmus: Result<Vec<Pmu<'_>>, _> = found
                .into_iter()
                .map(|(name, events)| Pmu::read(root, family, name, &events))
                .collect();
            return plan(root, machine, &pmus?);
        }
    }
    Err(unknown(&names))
}

/// Why none of these PMUs counts traffic.
fn unknown(names: &[String]) -> NoMeter {
    let known: Vec<String> = FAMILIES.iter().map(Family::text).collect();
    let hint = if names.iter().any(|name| name == "amd_df") {
        "; of AMD processors without amd_umc, reads and writes can't be told apart"
    } else {
        ""
    };
    let detail = format!("{PMUS} has none of {}{hint}", known.join(", "));
    NoMeter::new(Absence::NotTold, detail)
}

/// A PMU of a family.
struct Pmu<'a> {
    name: &'a str,
    /// The CPUs on which its counters are opened, one for each socket.
    cpus: CpuSet,
    /// Its number and its events.
    counts: Result<(u32, Vec<PlannedEvent>), NoMeter>,
}

impl<'a> Pmu<'a> {
    fn read(
        root: &Root,
        family: &Family,
        name: &'a str,
        events: &[(Direction, String)],
    ) -> Result<Pmu<'a>, ReadError> {
        const MASK: &str = "a list of CPUs, as in `0,18`";
        let file = format!("{PMUS}/{name}/cpumask");
        let cpus = root.cpus(&file, ITEM)?;
        Ok(Pmu {
            name,
            cpus: cpus.ok_or_else(|| root.missing(&file, ITEM, MASK))?,
            counts: family.events_of(root, name, events),
        })
    }
}

fn plan(root: &Root, machine: &Machine, pmus: &[Pmu<'_>]) -> Result<TrafficPlan, NoMeter> {
    let named = pmus.iter().flat_map(|pmu| pmu.cpus.iter()).collect();
    let places = Places::read(root, &named)?;
    Ok((0..machine.memory_domains.len())
        .map(|domain| plan_domain(pmus, &places.of_domain(machine, domain)?))
        .collect())
}

/// The events to open for a memory domain. `sockets` are the CPUs that represent its sockets. If one PMU cannot count,
/// the sum would be wrong, so the whole domain is absent.
fn plan_domain(pmus: &[Pmu<'_>], sockets: &CpuSet) -> Result<Vec<Planned>, NoMeter> {
    let mut planned = Vec::new();
    for pmu in pmus {
        for cpu in pmu.cpus.intersection(sockets).iter() {
            let (type_id, events) = pmu.counts.clone()?;
            planned.push(Planned {
                pmu: pmu.name.to_owned(),
                type_id,
                cpu,
                events,
            });
        }
    }
    Ok(planned)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

impl Family {
    fn has(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(self.pmu) else {
            return false;
        };
        rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number)
    }

    fn text(&self) -> String {
        match self.unit {
            Unit::Terms => self.pmu.to_owned(),
            _ => format!("{} ({}, {})", self.pmu, self.reads, self.writes),
        }
    }

    /// The names or terms of a PMU's events.
    fn find(&self, root: &Root, pmu: &str) -> Result<Vec<(Direction, String)>, ReadError> {
        let names = root.names(&format!("{PMUS}/{pmu}/events"), ITEM)?;
        let mut found = Vec::new();
        for (direction, base) in [
            (Direction::Reads, self.reads),
            (Direction::Writes, self.writes),
        ] {
            // The event of the whole controller includes those of its subchannels.
            if self.unit == Unit::Terms || names.iter().any(|name| name == base) {
                found.push((direction, base.to_owned()));
                continue;
            }
            let parts = names.iter().filter(|name| is_subchannel(name, base));
            found.extend(parts.map(|name| (direction, name.clone())));
        }
        Ok(found)
    }

    /// A PMU's number and its events.
    fn events_of(
        &self,
        root: &Root,
        pmu: &str,
        events: &[(Direction, String)],
    ) -> Result<(u32, Vec<PlannedEvent>), NoMeter> {
        const TYPE: &str = "the PMU's number";
        let file = format!("{PMUS}/{pmu}/type");
        let type_id = root
            .parse(&file, ITEM, TYPE)?
            .ok_or_else(|| root.missing(&file, ITEM, TYPE))?;
        for (direction, text) in [(Direction::Reads, "reads"), (Direction::Writes, "writes")] {
            if events.iter().all(|(of, _)| *of != direction) {
                let why = format!("{pmu} has no event for {text} that is known here");
                return Err(NoMeter::new(Absence::NoSuchEvent, why));
            }
        }
        let mut planned = Vec::new();
        for (direction, event) in events {
            let (registers, lines_per_count) = self.event(root, &format!("{PMUS}/{pmu}"), event)?;
            planned.push(PlannedEvent {
                direction: *direction,
                registers,
                lines_per_count,
            });
        }
        Ok((type_id, planned))
    }

    /// The registers of an event, and the lines per count.
    fn event(&self, root: &Root, dir: &str, event: &str) -> Result<(Registers, f64), ReadError> {
        const TERMS: &str = "the terms of an event, as in `event=0x04,umask=0x03`";
        let file = format!("{dir}/events/{event}");
        let (terms, lines) = if self.unit == Unit::Terms {
            (event.to_owned(), 1.0)
        } else {
            let terms = root.text(&file, ITEM)?;
            (
                terms.ok_or_else(|| root.missing(&file, ITEM, TERMS))?,
                lines_per_count(root, &file, self.unit)?,
            )
        };
        let registers =
            encode(root, dir, &terms)?.ok_or_else(|| root.malformed(&file, ITEM, TERMS, terms))?;
        Ok((registers, lines))
    }
}

/// Whether the event `name` is a subchannel's part of the event `base`.
fn is_subchannel(name: &str, base: &str) -> bool {
    let number = name
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix("_sch"));
    number.is_some_and(is_number)
}

/// Lines per count, by the files `.scale` and `.unit` beside an event.
fn lines_per_count(root: &Root, event: &str, unit: Unit) -> Result<f64, ReadError> {
    const SCALE: &str = "MiB per count, more than 0";
    const UNIT: &str = "`MiB`";
    let (scale_file, unit_file) = (format!("{event}.scale"), format!("{event}.unit"));
    let scale: f64 = match root.parse(&scale_file, ITEM, SCALE)? {
        Some(scale) => scale,
        None if unit == Unit::Line => return Ok(1.0),
        None => return Err(root.missing(&scale_file, ITEM, SCALE)),
    };
    match root.text(&unit_file, ITEM)? {
        None => Err(root.missing(&unit_file, ITEM, UNIT)),
        Some(unit) if unit != "MiB" => Err(root.malformed(&unit_file, ITEM, UNIT, unit)),
        Some(_) if scale.is_finite() && scale > 0.0 => Ok(scale * MIB / LINE),
        Some(_) => Err(root.malformed(&scale_file, ITEM, SCALE, scale.to_string())),
    }
}
