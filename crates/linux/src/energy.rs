//! Energy of the processor packages, measured by the processors themselves.
//!
//! The kernel reports it in powercap's files (`intel-rapl`, AMD's processors included), and as perf PMUs. Each needs
//! permissions of its own. A package's meter includes everything that runs on it.

use crate::counters::sys::{
    self, EventAttributes, EventScope, EventStart, EventTarget, ReadFormat,
};
use crate::root::{NoMeter, ReadError, Root};
use crate::traffic::encode;
use cosched_core::{Absence, Reading};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

const POWERCAP: &str = "/sys/class/powercap";
const PMUS: &str = "/sys/bus/event_source/devices";
/// PMUs and their events. Only AMD's processors have the second, which counts cores without what they share.
const EVENTS: [(&str, &str); 2] = [("power", "energy-pkg"), ("power_core", "energy-core")];
const ITEM: &str = "energy meter";

/// The energy that all packages have used since the meter was opened.
///
/// The counters of powercap wrap, on a busy server after some minutes, so the meter must be read at least once a minute.
#[derive(Debug)]
pub struct EnergyMeter {
    root: Root,
    zones: Vec<Zone>,
    /// Open perf events, one for each package; without powercap's zones only.
    events: Vec<File>,
    joules_per_count: f64,
}

/// The powercap zone of a package.
#[derive(Debug)]
struct Zone {
    /// Path of its file `energy_uj`.
    file: String,
    counter: Wrapping,
}

/// A counter that returns to 0 after its largest value.
#[derive(Clone, Copy, Debug)]
struct Wrapping {
    largest: u64,
    last: u64,
    total: u128,
}

impl Wrapping {
    fn new(largest: u64, now: u64) -> Wrapping {
        Wrapping {
            largest,
            last: now,
            total: 0,
        }
    }

    /// Adds the count since the last call. A value smaller than the last one means one wrap.
    fn update(&mut self, now: u64) -> Result<(), Absence> {
        let since = match now.checked_sub(self.last) {
            Some(since) => since.into(),
            // The file's largest value is wrong: the counter has exceeded it.
            None if self.last > self.largest => return Err(Absence::WentBackwards),
            None => u128::from(self.largest - self.last) + u128::from(now) + 1,
        };
        self.last = now;
        self.total += since;
        Ok(())
    }
}

impl EnergyMeter {
    /// Opens the meters of all packages: powercap's files, or else perf events.
    ///
    /// # Errors
    /// [`NoMeter`]: the machine has no meter, like most virtual machines, or only administrators may read it.
    pub fn open(root: &Root) -> Result<EnergyMeter, NoMeter> {
        EnergyMeter::open_by(root, &mut |attributes, cpu| {
            sys::open(attributes, cpu, None)
        })
    }

    fn open_by(root: &Root, open: Open<'_>) -> Result<EnergyMeter, NoMeter> {
        let mut meter = EnergyMeter {
            root: root.clone(),
            zones: Vec::new(),
            events: Vec::new(),
            joules_per_count: 0.0,
        };
        let powercap = zones(root).map(|zones| meter.zones = zones);
        for (pmu, event) in EVENTS {
            if meter.meters() == 0 {
                meter.open_events(&format!("{PMUS}/{pmu}"), event, open)?;
            }
        }
        if meter.meters() == 0 {
            powercap?;
            let detail = format!("no package under {POWERCAP}, and no PMU {PMUS}/power");
            return Err(NoMeter::new(Absence::NoEnergyMeter, detail));
        }
        Ok(meter)
    }

    /// Opens the perf events, if the kernel has them.
    fn open_events(&mut self, pmu: &str, event: &str, open: Open<'_>) -> Result<(), NoMeter> {
        let root = &self.root;
        let event = format!("{pmu}/events/{event}");
        let (Some(terms), Some(scale), Some(type_id), Some(cpus)) = (
            root.text(&event, ITEM)?,
            root.parse(&format!("{event}.scale"), ITEM, "joules")?,
            root.parse(&format!("{pmu}/type"), ITEM, "the PMU's number")?,
            root.cpus(&format!("{pmu}/cpumask"), ITEM)?,
        ) else {
            return Ok(());
        };
        let Some(registers) = encode(root, pmu, &terms)? else {
            return Ok(());
        };
        self.joules_per_count = scale;
        let [config, config1, config2] = registers.0;
        let attributes = EventAttributes {
            type_id,
            config,
            config1,
            config2,
            scope: EventScope::Chip,
            start: Some(EventStart::Now),
            read: ReadFormat::Count,
        };
        for cpu in cpus.iter() {
            let opened = open(&attributes, EventTarget::Cpu(cpu.0));
            let denied = |error| NoMeter::new(Absence::NoPermission, format!("{pmu}: {error}"));
            self.events.push(opened.map_err(denied)?.into());
        }
        Ok(())
    }

    /// Joules that all packages have used since the meter was opened, or why they are unknown.
    pub fn joules(&mut self) -> Reading<f64> {
        let mut total = 0;
        for zone in &mut self.zones {
            let Ok(Some(now)) = self.root.number(&zone.file, ITEM) else {
                return Reading::Absent(Absence::CountersLost);
            };
            if let Err(why) = zone.counter.update(now) {
                return Reading::Absent(why);
            }
            total += zone.counter.total;
        }
        let mut counts = 0;
        for event in &mut self.events {
            let mut count = [0; 8];
            if event.read_exact(&mut count).is_err() {
                return Reading::Absent(Absence::CountersLost);
            }
            counts += u64::from_ne_bytes(count);
        }
        Reading::Value(total as f64 / 1e6 + counts as f64 * self.joules_per_count)
    }

    /// Number of meters: one for each package, or for each core if only these have some.
    pub fn meters(&self) -> usize {
        self.zones.len() + self.events.len()
    }
}

/// Opens an event on a CPU.
type Open<'a> = &'a mut dyn FnMut(&EventAttributes, EventTarget) -> io::Result<OwnedFd>;

/// The zones of whole packages. Others are left out: `intel-rapl:0:0` and similar ones are parts of a package, `psys`
/// is the whole board, and `intel-rapl-mmio` repeats the same packages.
fn zones(root: &Root) -> Result<Vec<Zone>, ReadError> {
    let mut zones = Vec::new();
    for name in root.names(POWERCAP, ITEM)? {
        let is_package = name
            .strip_prefix("intel-rapl:")
            .is_some_and(|number| number.parse::<u32>().is_ok());
        let dir = format!("{POWERCAP}/{name}");
        let label = root.text(&format!("{dir}/name"), ITEM)?;
        if is_package && label.is_some_and(|label| label.starts_with("package-")) {
            let file = format!("{dir}/energy_uj");
            let largest = microjoules(root, &format!("{dir}/max_energy_range_uj"))?;
            let counter = Wrapping::new(largest, microjoules(root, &file)?);
            zones.push(Zone { file, counter });
        }
    }
    Ok(zones)
}

fn microjoules(root: &Root, file: &str) -> Result<u64, ReadError> {
    root.number(file, ITEM)?
        .ok_or_else(|| root.missing(file, ITEM, "a whole number of microjoules"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn write(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    fn zone(dir: &Path, zone: &str, name: &str, energy: &str, largest: &str) {
        for (file, text) in [
            ("name", name),
            ("energy_uj", energy),
            ("max_energy_range_uj", largest),
        ] {
            write(dir, &format!("sys/class/powercap/{zone}/{file}"), text);
        }
    }

    #[test]
    fn packages_add_up_and_nothing_is_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        zone(
            dir.path(),
            "intel-rapl:0",
            "package-0",
            "1000000",
            "262143328850",
        );
        zone(
            dir.path(),
            "intel-rapl:1",
            "package-1",
            "5000000",
            "262143328850",
        );
        for (other, name) in [
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:1:0", "dram"),
            ("intel-rapl:2", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
            ("intel-rapl", "intel-rapl"),
        ] {
            zone(dir.path(), other, name, "7", "9");
        }
        let mut meter = EnergyMeter::open(&Root::new(dir.path())).unwrap();
        assert_eq!(meter.meters(), 2);
        assert_eq!(meter.joules(), Reading::Value(0.0));
        zone(
            dir.path(),
            "intel-rapl:0",
            "package-0",
            "3500000",
            "262143328850",
        );
        zone(dir.path(), "intel-rapl:2", "psys", "8000000", "9000000");
        assert_eq!(meter.joules(), Reading::Value(2.5));
        // The second package wraps: 262143328850 - 5000000 + 1000000 + 1 microjoules.
        zone(
            dir.path(),
            "intel-rapl:1",
            "package-1",
            "1000000",
            "262143328850",
        );
        let Reading::Value(joules) = meter.joules() else {
            panic!()
        };
        assert!((joules - (2.5 + 262_139.328_851)).abs() < 1e-6, "{joules}");
        std::fs::remove_file(dir.path().join("sys/class/powercap/intel-rapl:1/energy_uj")).unwrap();
        assert_eq!(meter.joules(), Reading::Absent(Absence::CountersLost));
    }

    #[test]
    fn no_meter_says_where_was_looked() {
        let dir = tempfile::tempdir().unwrap();
        let error = EnergyMeter::open(&Root::new(dir.path())).unwrap_err();
        assert_eq!(error.reason, Absence::NoEnergyMeter);
        assert!(
            error
                .to_string()
                .contains("no package under /sys/class/powercap"),
            "{error}"
        );
        zone(dir.path(), "intel-rapl:0", "package-0", "much", "9");
        let error = EnergyMeter::open(&Root::new(dir.path()))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("says `much`; expected a whole number"),
            "{error}"
        );
    }

    #[test]
    fn perf_events_stand_in_for_powercap() {
        for (pmu, event) in EVENTS {
            check_events(pmu, event);
        }
    }

    fn check_events(pmu: &str, event: &str) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let counts = dir.path().join("counts");
        std::fs::write(&counts, [6_u64, 10].map(u64::to_ne_bytes).concat()).unwrap();
        for (file, text) in [
            ("type", "9"),
            ("cpumask", "0,2"),
            ("format/event", "config:0-7"),
            (&format!("events/{event}"), "event=0x02"),
            (&format!("events/{event}.scale"), "0.5"),
        ] {
            write(dir.path(), &format!("{PMUS}/{pmu}/{file}")[1..], text);
        }
        let mut asked = Vec::new();
        let mut meter = EnergyMeter::open_by(&root, &mut |attributes, cpu| {
            asked.push((attributes.type_id, attributes.config, cpu));
            Ok(File::open(&counts)?.into())
        })
        .unwrap();
        let targets = [EventTarget::Cpu(0), EventTarget::Cpu(2)];
        assert_eq!(asked, targets.map(|cpu| (9, 2, cpu)));
        assert_eq!(meter.meters(), 2);
        // Two meters, each with 6 and then 10 counts of half a joule.
        assert_eq!(meter.joules(), Reading::Value(6.0));
        assert_eq!(meter.joules(), Reading::Value(10.0));
        assert_eq!(meter.joules(), Reading::Absent(Absence::CountersLost));
        let denied = EnergyMeter::open_by(&root, &mut |_, _| Err(io::ErrorKind::NotFound.into()));
        assert_eq!(denied.unwrap_err().reason, Absence::NoPermission);
    }

    #[test]
    fn a_file_for_administrators_only_is_a_matter_of_permission() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        zone(dir.path(), "intel-rapl:0", "package-0", "1", "9");
        let file = dir.path().join("sys/class/powercap/intel-rapl:0/energy_uj");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
        if std::fs::read(&file).is_ok() {
            drop(std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("skipped, because this user may read every file\n"),
            ));
            return;
        }
        assert_eq!(
            EnergyMeter::open(&Root::new(dir.path()))
                .unwrap_err()
                .reason,
            Absence::NoPermission
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        /// A counter of 0..=largest loses no microjoule if it is read before it wraps a second time.
        #[test]
        fn wraps_are_counted_right(
            largest in 1u64..u64::MAX / 2,
            start in any::<u64>(),
            steps in prop::collection::vec(any::<u64>(), 1..50),
        ) {
            let turn = u128::from(largest) + 1;
            let mut real = u128::from(start) % turn;
            let begin = real;
            let mut counter = Wrapping::new(largest, real as u64);
            for step in steps {
                real += u128::from(step) % turn;
                counter.update((real % turn) as u64).unwrap();
                prop_assert_eq!(counter.total, real - begin);
            }
        }
    }
}
