//! Which PMUs count what the memory controllers move, and what to open on them for each memory domain.

use super::encoding::{Registers, encode};
use super::places::Places;
use super::{ITEM, NoTraffic};
use crate::root::{ReadError, Root};
use cosched_core::{Absence, CpuId, CpuSet, Machine};

const PMUS: &str = "/sys/bus/event_source/devices";
const MIB: f64 = 1_048_576.0;
const LINE: f64 = 64.0;

/// The counters that the lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficSource {
    /// Commands to the memory of Intel servers: `cas_count_read` and `cas_count_write` of `uncore_imc_N`.
    IntelCas,
    /// Counters of Intel clients since Tiger Lake that always run: `data_read` and `data_write` of
    /// `uncore_imc_free_running_N`.
    IntelFreeRunning,
    /// Counters of earlier Intel clients: `data_reads` and `data_writes` of `uncore_imc`.
    IntelClient,
    /// The memory controller of Nehalem and Westmere: `qmc_normal_reads_any` and `qmc_writes_full_any` of `uncore`.
    /// Writes of a part of a line are not counted.
    IntelQmc,
    /// Commands to the memory of AMD processors since Zen 4: event 0x0a of `amd_umc_N`, for reads and for writes.
    AmdUmc,
}

/// PMUs of one kind, and how they count.
struct Family {
    source: TrafficSource,
    /// The name of its PMU. Where there are several, a number follows behind `_`.
    pmu: &'static str,
    events: Events,
}

enum Events {
    /// Files under `events` have these names, or the names with `_sch` and the number of a subchannel.
    Named {
        reads: &'static str,
        writes: &'static str,
        /// Whether a count without a file `.scale` is a line. The command CAS moves a line.
        counts_lines: bool,
    },
    /// The kernel has no files for them. A count is a line.
    Terms {
        reads: &'static str,
        writes: &'static str,
    },
}

/// In the order in which they are looked for. The first that the machine has is used alone, so that nothing is counted
/// twice: Intel servers have counters that always run beside those of commands.
///
/// Sources: Linux, `arch/x86/events/intel/uncore_snb.c` (clients, Nehalem), `uncore_snbep.c` (servers) and
/// `arch/x86/events/amd/uncore.c`; for the numbers of AMD, `tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json`.
const FAMILIES: [Family; 5] = [
    Family {
        source: TrafficSource::IntelCas,
        pmu: "uncore_imc",
        events: Events::Named {
            reads: "cas_count_read",
            writes: "cas_count_write",
            counts_lines: true,
        },
    },
    Family {
        source: TrafficSource::IntelFreeRunning,
        pmu: "uncore_imc_free_running",
        events: Events::Named {
            reads: "data_read",
            writes: "data_write",
            counts_lines: false,
        },
    },
    Family {
        source: TrafficSource::IntelClient,
        pmu: "uncore_imc",
        events: Events::Named {
            reads: "data_reads",
            writes: "data_writes",
            counts_lines: false,
        },
    },
    Family {
        source: TrafficSource::IntelQmc,
        pmu: "uncore",
        events: Events::Named {
            reads: "qmc_normal_reads_any",
            writes: "qmc_writes_full_any",
            counts_lines: true,
        },
    },
    Family {
        source: TrafficSource::AmdUmc,
        pmu: "amd_umc",
        events: Events::Terms {
            reads: "event=0xa,rdwrmask=0x1",
            writes: "event=0xa,rdwrmask=0x2",
        },
    },
];

/// What a controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Reads,
    Writes,
}

/// An event to open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedEvent {
    pub(super) direction: Direction,
    pub(super) registers: Registers,
    pub(super) lines_per_count: f64,
}

/// The events of one PMU, to be opened as a group on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    /// The PMU's name.
    pub(super) pmu: String,
    pub(super) type_id: u32,
    pub(super) cpu: CpuId,
    /// At least one event of either direction.
    pub(super) events: Vec<PlannedEvent>,
}

/// What to open for each memory domain of the machine, or why it can't be counted.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) source: TrafficSource,
    pub(super) domains: Vec<Result<Vec<Planned>, NoTraffic>>,
}

/// Looks for the machine's memory controllers.
///
/// # Errors
/// [`NoTraffic`]: there are none that are known here, or a file does not say which sockets they belong to.
pub(super) fn discover(root: &Root, machine: &Machine) -> Result<Plan, NoTraffic> {
    let names = root.names(PMUS, ITEM)?;
    for family in &FAMILIES {
        let mut pmus = Vec::new();
        for name in names.iter().filter(|name| family.has(name)) {
            pmus.push(Pmu {
                dir: format!("{PMUS}/{name}"),
                name,
                events: family.find(root, name)?,
            });
        }
        // Clients since Alder Lake have an `uncore_imc_N` without events beside the counters that always run.
        if pmus
            .iter()
            .any(|pmu| pmu.events.iter().any(|names| !names.is_empty()))
        {
            return plan(root, machine, family, &pmus);
        }
    }
    let known: Vec<String> = FAMILIES.iter().map(Family::text).collect();
    let mut problem = NoTraffic::new(
        Absence::NotTold,
        format!("{PMUS} has none of {}", known.join(", ")),
    );
    if names.iter().any(|name| name == "amd_df") {
        problem.details.push(
            "of AMD processors without amd_umc, reads and writes can't be told apart".to_owned(),
        );
    }
    Err(problem)
}

/// A PMU of a family, and the names or terms of its events for reads and for writes.
struct Pmu<'a> {
    name: &'a str,
    dir: String,
    events: [Vec<String>; 2],
}

fn plan(
    root: &Root,
    machine: &Machine,
    family: &Family,
    pmus: &[Pmu<'_>],
) -> Result<Plan, NoTraffic> {
    let mut all = Vec::new();
    let mut named = CpuSet::new();
    for pmu in pmus {
        const MASK: &str = "a list of CPUs, as in `0,18`";
        let file = format!("{}/cpumask", pmu.dir);
        let cpus = root
            .cpus(&file, ITEM)?
            .ok_or_else(|| root.missing(&file, ITEM, MASK))?;
        named.extend(cpus.iter());
        all.push((cpus, family.events_of(root, pmu)));
    }
    let places = Places::read(root, &named)?;
    let of_domain = |domain| {
        let sockets = places.of_domain(machine, domain)?;
        let mut planned = Vec::new();
        for (pmu, (cpus, found)) in pmus.iter().zip(&all) {
            for cpu in cpus.intersection(&sockets).iter() {
                // What one PMU does not count would be missing in the sum, so the whole domain is absent.
                let (type_id, events) = found.clone()?;
                planned.push(Planned {
                    pmu: pmu.name.to_owned(),
                    type_id,
                    cpu,
                    events,
                });
            }
        }
        Ok(planned)
    };
    Ok(Plan {
        source: family.source,
        domains: (0..machine.memory_domains.len()).map(of_domain).collect(),
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn subchannels(names: &[String], base: &str) -> Vec<Option<String>> {
    names
        .iter()
        .map(|name| subchannel(name, base).map(str::to_owned))
        .collect()
}

impl Family {
    fn has(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(self.pmu) else {
            return false;
        };
        rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number)
    }

    fn text(&self) -> String {
        match self.events {
            Events::Named { reads, writes, .. } => format!("{} ({reads}, {writes})", self.pmu),
            Events::Terms { .. } => self.pmu.to_owned(),
        }
    }

    /// The names or terms of a PMU's events for reads and for writes.
    fn find(&self, root: &Root, pmu: &str) -> Result<[Vec<String>; 2], ReadError> {
        let (reads, writes) = match self.events {
            Events::Terms { reads, writes } => {
                return Ok([reads, writes].map(|terms| vec![terms.to_owned()]));
            }
            Events::Named { reads, writes, .. } => (reads, writes),
        };
        let names = root.names(&format!("{PMUS}/{pmu}/events"), ITEM)?;
        Ok([reads, writes].map(|base| {
            // The event of the whole controller includes those of its subchannels.
            if names.iter().any(|name| name == base) {
                return vec![base.to_owned()];
            }
            names
                .iter()
                .filter(|name| subchannel(name, base).is_some())
                .cloned()
                .collect()
        }))
    }

    /// The PMU's number and its events.
    fn events_of(&self, root: &Root, pmu: &Pmu<'_>) -> Result<(u32, Vec<PlannedEvent>), NoTraffic> {
        const TYPE: &str = "the PMU's number";
        let file = format!("{}/type", pmu.dir);
        let type_id = root
            .parse(&file, ITEM, TYPE)?
            .ok_or_else(|| root.missing(&file, ITEM, TYPE))?;
        let [reads, writes] = &pmu.events;
        for (direction, events) in [("reads", reads), ("writes", writes)] {
            if events.is_empty() {
                let why = format!(
                    "{} has no event for {direction} that is known here",
                    pmu.name
                );
                return Err(NoTraffic::new(Absence::NoSuchEvent, why));
            }
        }
        if let Events::Named {
            reads: of_reads,
            writes: of_writes,
            ..
        } = self.events
            && subchannels(reads, of_reads) != subchannels(writes, of_writes)
        {
            let why = format!(
                "{} counts reads and writes of different subchannels",
                pmu.name
            );
            return Err(NoTraffic::new(Absence::NoSuchEvent, why));
        }
        let mut planned = Vec::new();
        for (direction, events) in [(Direction::Reads, reads), (Direction::Writes, writes)] {
            for event in events {
                let (registers, lines_per_count) = self.event(root, &pmu.dir, event)?;
                planned.push(PlannedEvent {
                    direction,
                    registers,
                    lines_per_count,
                });
            }
        }
        Ok((type_id, planned))
    }

    /// The registers of an event, and the lines that a count stands for.
    fn event(&self, root: &Root, dir: &str, event: &str) -> Result<(Registers, f64), ReadError> {
        const TERMS: &str = "the terms of an event, as in `event=0x04,umask=0x03`";
        let file = format!("{dir}/events/{event}");
        let (terms, lines) = match self.events {
            Events::Terms { .. } => (event.to_owned(), 1.0),
            Events::Named { counts_lines, .. } => (
                root.text(&file, ITEM)?
                    .ok_or_else(|| root.missing(&file, ITEM, TERMS))?,
                lines_per_count(root, &file, counts_lines)?,
            ),
        };
        let registers =
            encode(root, dir, &terms)?.ok_or_else(|| root.malformed(&file, ITEM, TERMS, terms))?;
        Ok((registers, lines))
    }
}

/// The number of the subchannel that the event `name` belongs to.
fn subchannel<'a>(name: &'a str, base: &str) -> Option<&'a str> {
    let number = name.strip_prefix(base)?.strip_prefix("_sch")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

/// Lines per count, by the files `.scale` and `.unit` beside an event. Without them a count is a line, if `counts_lines`.
fn lines_per_count(root: &Root, event: &str, counts_lines: bool) -> Result<f64, ReadError> {
    const SCALE: &str = "MiB per count, more than 0";
    const UNIT: &str = "`MiB`";
    let (scale_file, unit_file) = (format!("{event}.scale"), format!("{event}.unit"));
    let scale: Option<f64> = root.parse(&scale_file, ITEM, SCALE)?;
    let unit = root.text(&unit_file, ITEM)?;
    match (scale, unit) {
        (None, None) if counts_lines => Ok(1.0),
        (None, _) => Err(root.missing(&scale_file, ITEM, SCALE)),
        (Some(_), None) => Err(root.missing(&unit_file, ITEM, UNIT)),
        (Some(_), Some(unit)) if unit != "MiB" => Err(root.malformed(&unit_file, ITEM, UNIT, unit)),
        (Some(scale), Some(_)) if scale.is_finite() && scale > 0.0 => Ok(scale * MIB / LINE),
        (Some(scale), Some(_)) => Err(root.malformed(&scale_file, ITEM, SCALE, scale.to_string())),
    }
}
