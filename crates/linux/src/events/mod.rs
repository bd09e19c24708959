//! Event encodings as data, and the ones that this machine uses.
//!
//! A processor counts the events in its event-select registers, and each microarchitecture has its own numbers. They
//! are data: `tables/` has one file per microarchitecture, with its source. If none fits, the kernel's generic events
//! are used. Hybrid machines have one PMU per core type, each with its own table.

mod encoding;
mod table;

pub(crate) use encoding::parse_value;
pub use encoding::{Encoding, EventError, EventOverride, KernelEvent, short_name};
pub use table::{AbsentEvent, EventTable, TableEvent, table_for, tables};

use crate::processor::Processors;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, Counter, CpuSet};

const PMU_DIR: &str = "/sys/bus/event_source/devices";

/// The kernel's own events, such as page faults (`event=2`).
const SOFTWARE: &str = "software";

/// A performance monitoring unit of the machine's cores.
#[derive(Clone, Debug, PartialEq)]
pub struct CorePmu {
    /// The kernel's name, for example `cpu` or `cpu_core`.
    pub name: String,
    /// The kernel's number, the `type` of `perf_event_attr`.
    pub type_id: u32,
    /// The CPUs that it belongs to; `None` for all.
    pub cpus: Option<CpuSet>,
}

/// A core PMU with its events.
#[derive(Clone, Debug, PartialEq)]
pub struct PmuEvents {
    /// The PMU that counts.
    pub pmu: CorePmu,
    /// Its events; the user's own replace the table's.
    pub table: EventTable,
}

impl PmuEvents {
    /// Whether its events are the kernel's own, in place of a missing core PMU.
    pub fn is_of_kernel(&self) -> bool {
        self.pmu.name == SOFTWARE
    }
}

/// The events of this machine: one entry per core PMU; empty if the machine exposes no counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineEvents {
    /// The core PMUs.
    pub pmus: Vec<PmuEvents>,
}

/// Why the machine's events cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum MachineEventsError {
    /// A file of the kernel is unusable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A user's own event names a PMU that the machine lacks.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl MachineEvents {
    /// Finds the core PMUs and their tables, and replaces the tables' events by the user's own.
    ///
    /// A later override of the same event wins. On a machine without a core PMU, the kernel's own events can
    /// serve instead, as in `mm=software/event=2/`.
    ///
    /// # Errors
    /// [`MachineEventsError`]: an unusable file, or an override for a PMU that the machine lacks.
    pub fn detect(
        root: &Root,
        overrides: &[EventOverride],
    ) -> Result<MachineEvents, MachineEventsError> {
        let processors = Processors::read(root)?;
        let mut pmus: Vec<PmuEvents> = core_pmus(root)?
            .into_iter()
            .map(|pmu| {
                let table = table_for(processors.kind_of(pmu.cpus.as_ref()), &pmu.name).clone();
                PmuEvents { pmu, table }
            })
            .collect();
        if pmus.is_empty() && overrides.iter().any(is_software) {
            let table = EventTable::empty(SOFTWARE, "events of the kernel");
            pmus.extend(core_pmu(root, SOFTWARE)?.map(|pmu| PmuEvents { pmu, table }));
        }
        let mut events = MachineEvents { pmus };
        for own in overrides {
            events.replace(own)?;
        }
        Ok(events)
    }

    /// Replaces a counter's event on the PMUs of the user's own event.
    fn replace(&mut self, own: &EventOverride) -> Result<(), EventError> {
        let wanted = match &own.encoding {
            Encoding::Raw { pmu, .. } => pmu.as_deref(),
            Encoding::Kernel(_) => None,
        };
        let mut found = wanted.is_none();
        for entry in &mut self.pmus {
            if wanted.is_none_or(|name| name == entry.pmu.name) {
                entry.table.replace(own.counter, own.encoding.clone());
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        let names: Vec<&str> = self.pmus.iter().map(|entry| &*entry.pmu.name).collect();
        Err(EventError::UnknownPmu {
            pmu: wanted.unwrap_or_default().to_owned(),
            known: if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            },
        })
    }

    /// Whether the machine has several core types, each with its own PMU.
    pub fn is_hybrid(&self) -> bool {
        self.pmus.len() > 1
    }

    /// Whether the kernel's own events stand in for those of a missing core PMU.
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.pmus.iter().any(PmuEvents::is_of_kernel)
    }

    /// Removes the counter's event on every PMU that has one.
    pub(crate) fn give_up(&mut self, counter: Counter, reason: Absence, why: &str) {
        for entry in &mut self.pmus {
            if entry.table.events.remove(&counter).is_some() {
                let why = why.to_owned();
                entry
                    .table
                    .absent
                    .insert(counter, AbsentEvent { reason, why });
            }
        }
    }
}

/// The PMUs of the machine's cores, sorted by name.
fn core_pmus(root: &Root) -> Result<Vec<CorePmu>, ReadError> {
    let mut found = Vec::new();
    for name in root.names(PMU_DIR, "performance counters")? {
        // Other PMUs count a whole chip, or trace. `cpum_cf` is s390's; Arm's are named after architecture or core.
        let is_core = matches!(
            name.as_str(),
            "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower" | "cpum_cf"
        ) || ["armv", "apple_"]
            .iter()
            .any(|start| name.starts_with(start));
        if !is_core {
            continue;
        }
        let Some(pmu) = core_pmu(root, &name)? else {
            let file = format!("{PMU_DIR}/{name}/type");
            return Err(root.missing(&file, "performance counters", TYPE));
        };
        found.push(pmu);
    }
    Ok(found)
}

/// Whether a user's event is counted by the kernel in software.
fn is_software(own: &EventOverride) -> bool {
    matches!(&own.encoding, Encoding::Raw { pmu: Some(pmu), .. } if pmu == SOFTWARE)
}

/// The content of the file `type` of a PMU.
const TYPE: &str = "the PMU's number";

/// A PMU with this name, if there is one.
fn core_pmu(root: &Root, name: &str) -> Result<Option<CorePmu>, ReadError> {
    let dir = format!("{PMU_DIR}/{name}");
    let Some(type_id) = root.parse(&format!("{dir}/type"), "performance counters", TYPE)? else {
        return Ok(None);
    };
    let cpus = root.cpus(&format!("{dir}/cpus"), "CPUs of a PMU")?;
    Ok(Some(CorePmu {
        name: name.to_owned(),
        type_id,
        cpus,
    }))
}

/// The tables for this machine's processors, even if the machine exposes no counters.
///
/// # Errors
/// [`ReadError`] when the files that describe the processors and PMUs are unusable.
pub fn own_tables(root: &Root) -> Result<Vec<&'static EventTable>, ReadError> {
    let processors = Processors::read(root)?;
    let mut own: Vec<&EventTable> = core_pmus(root)?
        .iter()
        .map(|pmu| table_for(processors.kind_of(pmu.cpus.as_ref()), &pmu.name))
        .collect();
    if own.is_empty() {
        let kinds = processors.kinds.iter();
        own.extend(kinds.map(|(kind, _)| table_for(Some(kind), "cpu")));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    const ALDER: &str =
        "processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 151\nstepping : 2\n";
    const ZEN5: &str =
        "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 26\nmodel : 2\nstepping : 1\n";

    fn overrides(texts: &[&str]) -> Vec<EventOverride> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_machine_without_core_pmu_has_no_events_but_is_still_listed() {
        let (_dir, root) = tree(&[
            ("proc/cpuinfo", ZEN5),
            ("sys/bus/event_source/devices/software/type", "1"),
            ("sys/bus/event_source/devices/power/type", "9"),
        ]);
        assert_eq!(
            MachineEvents::detect(&root, &overrides(&["mm=0x1"])).unwrap(),
            MachineEvents::default()
        );
        let own = own_tables(&root).unwrap();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].name, "zen5");
    }

    #[test]
    fn events_of_the_kernel_can_take_the_place_of_counters_that_are_not_there() {
        let files = [
            ("proc/cpuinfo", ZEN5),
            ("sys/bus/event_source/devices/software/type", "1"),
        ];
        let own = overrides(&["mm=software/event=2/"]);
        let (_dir, root) = tree(&files);
        let found = MachineEvents::detect(&root, &own).unwrap();
        let [PmuEvents { pmu, table }] = &found.pmus[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (pmu.name.as_str(), pmu.type_id, table.events.len()),
            ("software", 1, 1)
        );
        assert_eq!(
            table.event(Counter::MmReads).unwrap().name(),
            "software/config=0x0002/"
        );
        assert_eq!(table.absent.len(), Counter::COUNT - 1);
        // Not where the hardware counts.
        let (_dir, root) = tree(&[
            files[0],
            files[1],
            ("sys/bus/event_source/devices/cpu/type", "4"),
        ]);
        let error = MachineEvents::detect(&root, &own).unwrap_err().to_string();
        assert_eq!(
            error,
            "`software` is not a core PMU of this machine; it has cpu"
        );
    }

    #[test]
    fn hybrid_machines_have_a_table_per_pmu() {
        let (_dir, root) = tree(&[
            ("proc/cpuinfo", ALDER),
            ("sys/bus/event_source/devices/cpu_core/type", "4"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "0-15"),
            ("sys/bus/event_source/devices/cpu_atom/type", "10"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "0"),
            ("sys/bus/event_source/devices/uncore_imc_0/type", "20"),
        ]);
        let own = overrides(&[
            "llc=0x1",
            "mm=cpu_atom/config=0x2/",
            "mm=cpu_atom/config=0x3/",
        ]);
        let found = MachineEvents::detect(&root, &own).unwrap();
        assert!(found.is_hybrid());
        let of = |name: &str| {
            found
                .pmus
                .iter()
                .find(|entry| entry.pmu.name == name)
                .unwrap()
        };
        assert_eq!(
            (
                of("cpu_core").table.name.as_str(),
                of("cpu_core").pmu.type_id
            ),
            ("goldencove", 4)
        );
        assert_eq!(
            (
                of("cpu_atom").table.name.as_str(),
                of("cpu_atom").pmu.type_id
            ),
            ("gracemont", 10)
        );
        for entry in &found.pmus {
            assert_eq!(
                entry.table.event(Counter::LlcAccesses).unwrap().encoding,
                Encoding::raw(1)
            );
        }
        assert_eq!(
            of("cpu_core")
                .table
                .event(Counter::MmReads)
                .unwrap()
                .encoding,
            Encoding::raw(0x412e)
        );
        assert_eq!(
            of("cpu_atom").table.event(Counter::MmReads).unwrap().name(),
            "cpu_atom/config=0x0003/"
        );
        let error = MachineEvents::detect(&root, &overrides(&["mm=cpu/config=0x2/"]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "`cpu` is not a core PMU of this machine; it has cpu_atom, cpu_core"
        );
    }

    #[test]
    fn big_and_small_arm_cores_are_told_apart_by_their_cpus() {
        let core =
            |cpu, part| format!("processor : {cpu}\nCPU implementer : 0x41\nCPU part : {part}\n");
        let (_dir, root) = tree(&[
            (
                "proc/cpuinfo",
                &[core(0, "0xd03"), core(1, "0xd0c")].join("\n"),
            ),
            ("sys/bus/event_source/devices/armv8_cortex_a53/type", "8"),
            ("sys/bus/event_source/devices/armv8_cortex_a53/cpus", "0"),
            ("sys/bus/event_source/devices/armv8_neoverse_n1/type", "9"),
            ("sys/bus/event_source/devices/armv8_neoverse_n1/cpus", "1"),
        ]);
        let found = MachineEvents::detect(&root, &[]).unwrap();
        let tables: Vec<&str> = found
            .pmus
            .iter()
            .map(|entry| entry.table.name.as_str())
            .collect();
        assert_eq!(tables, ["generic", "neoverse-n1"]);
    }

    #[test]
    fn an_override_fills_what_was_absent() {
        let (_dir, root) = tree(&[
            ("proc/cpuinfo", ZEN5),
            ("sys/bus/event_source/devices/cpu/type", "4"),
        ]);
        let found = MachineEvents::detect(&root, &overrides(&["mm-writes=0x1"])).unwrap();
        let table = &found.pmus[0].table;
        assert_eq!(
            table.event(Counter::MmWrites).unwrap().encoding,
            Encoding::raw(1)
        );
        assert!(!table.absent.contains_key(&Counter::MmWrites));
        let mut left = found.clone();
        left.give_up(Counter::Cycles, Absence::NoCounterFree, "no room");
        let table = &left.pmus[0].table;
        let expected = AbsentEvent {
            reason: Absence::NoCounterFree,
            why: "no room".to_owned(),
        };
        assert_eq!(
            (
                table.event(Counter::Cycles),
                table.absent.get(&Counter::Cycles)
            ),
            (None, Some(&expected))
        );
        assert_eq!(table.events.len(), found.pmus[0].table.events.len() - 1);
    }

    #[test]
    fn a_pmu_without_a_number_is_named() {
        let (_dir, root) = tree(&[(
            "sys/bus/event_source/devices/cpu/format/event",
            "config:0-7",
        )]);
        let error = MachineEvents::detect(&root, &[]).unwrap_err().to_string();
        assert!(
            error.contains("cpu/type does not exist; expected the PMU's number"),
            "{error}"
        );
    }
}
