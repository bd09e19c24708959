//! Energy of the processor packages, measured by the processors themselves.
//!
//! The kernel offers it through two interfaces: powercap's files (`intel-rapl`, AMD's processors included), and the
//! perf events of the `power` PMU. Both are mostly for administrators only. A package's meter counts everything that
//! runs on it, whoever started it.

use crate::counters::{read_words, sys};
use crate::events::Encoding;
use crate::root::{ReadError, Root};
use cosched_core::{Absence, CpuSet, Reading};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

const POWERCAP: &str = "/sys/class/powercap";
const POWER_PMU: &str = "/sys/bus/event_source/devices/power";
const ITEM: &str = "energy meter";

/// The interface that the joules come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnergySource {
    /// `energy_uj` under `/sys/class/powercap`.
    Powercap,
    /// The event `energy-pkg` of the `power` PMU.
    PowerPmu,
}

/// Why there is no energy meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEnergy {
    /// The reason that reports show.
    pub reason: Absence,
    /// The details, one line for each interface that was tried.
    pub details: Vec<String>,
}

impl fmt::Display for NoEnergy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if !self.details.is_empty() {
            write!(f, " ({})", self.details.join("; "))?;
        }
        Ok(())
    }
}

/// The energy that all packages have used since the meter was opened.
///
/// Powercap's counters wrap, on a busy server after some minutes, so the meter must be read at least once a minute.
#[derive(Debug)]
pub struct EnergyMeter {
    packages: Packages,
}

#[derive(Debug)]
enum Packages {
    Powercap { root: Root, zones: Vec<Zone> },
    PowerPmu { scale: f64, events: Vec<OwnedFd> },
}

/// The powercap zone of a package.
#[derive(Debug)]
struct Zone {
    /// Path of its file `energy_uj`.
    file: String,
    counter: Wrapping,
}

/// A counter that returns to 0 after its largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Adds what was counted since the last call. A value smaller than the last one means one wrap.
    fn update(&mut self, now: u64) -> Result<(), Absence> {
        let since = match now.checked_sub(self.last) {
            Some(since) => since.into(),
            // The file's largest value is wrong: the counter has been above it.
            None if self.last > self.largest => return Err(Absence::WentBackwards),
            None => u128::from(self.largest - self.last) + u128::from(now) + 1,
        };
        self.last = now;
        self.total += since;
        Ok(())
    }
}

impl EnergyMeter {
    /// Opens the meters of all packages: powercap where it can be read, else the `power` PMU.
    ///
    /// # Errors
    /// [`NoEnergy`]: the machine has no meter, like most virtual machines, or only administrators may read it.
    pub fn open(root: &Root) -> Result<EnergyMeter, NoEnergy> {
        let mut details = Vec::new();
        let mut reason = Absence::NoEnergyMeter;
        match powercap_zones(root) {
            Ok(zones) if !zones.is_empty() => {
                return Ok(EnergyMeter {
                    packages: Packages::Powercap {
                        root: root.clone(),
                        zones,
                    },
                });
            }
            Ok(_) => details.push(format!("no package under {POWERCAP}")),
            Err(error) => {
                if error.is_permission() {
                    reason = Absence::NoPermission;
                }
                details.push(error.to_string());
            }
        }
        match power_events(root) {
            Ok(Some((scale, events))) => {
                return Ok(EnergyMeter {
                    packages: Packages::PowerPmu { scale, events },
                });
            }
            Ok(None) => details.push(format!("no package event under {POWER_PMU}")),
            Err(PowerError::Read(error)) => details.push(error.to_string()),
            Err(PowerError::Open(error)) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    reason = Absence::NoPermission;
                }
                details.push(format!("energy-pkg of the power PMU: {error}"));
            }
        }
        Err(NoEnergy { reason, details })
    }

    /// Joules that all packages have used since the meter was opened, or why they are not known.
    pub fn joules(&mut self) -> Reading<f64> {
        match &mut self.packages {
            Packages::Powercap { root, zones } => {
                let mut total = 0;
                for zone in zones {
                    match root.number(&zone.file, ITEM) {
                        Ok(Some(now)) => match zone.counter.update(now) {
                            Ok(()) => total += zone.counter.total,
                            Err(why) => return Reading::Absent(why),
                        },
                        Ok(None) | Err(_) => return Reading::Absent(Absence::CountersLost),
                    }
                }
                Reading::Value(total as f64 / 1e6)
            }
            Packages::PowerPmu { scale, events } => {
                let mut words = Vec::new();
                let mut total = 0u128;
                for event in events {
                    match read_words(event.as_fd(), 1, &mut words) {
                        Ok(&[count]) => total += u128::from(count),
                        _ => return Reading::Absent(Absence::CountersLost),
                    }
                }
                Reading::Value(total as f64 * *scale)
            }
        }
    }

    /// The interface that the joules come from.
    pub fn source(&self) -> EnergySource {
        match self.packages {
            Packages::Powercap { .. } => EnergySource::Powercap,
            Packages::PowerPmu { .. } => EnergySource::PowerPmu,
        }
    }

    /// How many packages are measured.
    pub fn packages(&self) -> usize {
        match &self.packages {
            Packages::Powercap { zones, .. } => zones.len(),
            Packages::PowerPmu { events, .. } => events.len(),
        }
    }
}

/// The zones of whole packages. Others are left out: `intel-rapl:0:0` and the like are parts of a package, `psys` is
/// the whole board, and `intel-rapl-mmio` shows the same packages again.
fn powercap_zones(root: &Root) -> Result<Vec<Zone>, ReadError> {
    let mut zones = Vec::new();
    for name in root.names(POWERCAP, ITEM)? {
        let number = name.strip_prefix("intel-rapl:");
        if !number
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        {
            continue;
        }
        let file = |file: &str| format!("{POWERCAP}/{name}/{file}");
        if !root
            .text(&file("name"), ITEM)?
            .is_some_and(|zone| zone.starts_with("package-"))
        {
            continue;
        }
        let microjoules = |path: &str| {
            root.number(path, ITEM)?
                .ok_or_else(|| root.missing(path, ITEM, "a whole number of microjoules"))
        };
        let largest = microjoules(&file("max_energy_range_uj"))?;
        let now = microjoules(&file("energy_uj"))?;
        zones.push(Zone {
            file: file("energy_uj"),
            counter: Wrapping::new(largest, now),
        });
    }
    Ok(zones)
}

enum PowerError {
    Read(ReadError),
    Open(io::Error),
}

impl From<ReadError> for PowerError {
    fn from(error: ReadError) -> PowerError {
        PowerError::Read(error)
    }
}

/// The package's event of the `power` PMU.
#[derive(Debug, PartialEq)]
struct PackageEvent {
    type_id: u32,
    config: u64,
    /// Joules per count.
    scale: f64,
    /// One CPU of each package.
    cpus: CpuSet,
}

fn package_event(root: &Root) -> Result<Option<PackageEvent>, ReadError> {
    let file = |file: &str| format!("{POWER_PMU}/{file}");
    let Some(text) = root.text(&file("events/energy-pkg"), ITEM)? else {
        return Ok(None);
    };
    let config = match format!("/{text}/").parse() {
        Ok(Encoding::Raw { config, .. }) => config,
        _ => {
            return Err(root.malformed(
                &file("events/energy-pkg"),
                ITEM,
                "an event, as in `event=0x02`",
                text,
            ));
        }
    };
    let missing = |name: &str, expected| root.missing(&file(name), ITEM, expected);
    const TYPE: &str = "the PMU's number";
    const SCALE: &str = "joules per count";
    const MASK: &str = "a list of CPUs, as in `0,18`";
    let type_id = root
        .parse(&file("type"), ITEM, TYPE)?
        .ok_or_else(|| missing("type", TYPE))?;
    let scale_file = "events/energy-pkg.scale";
    let scale: f64 = root
        .parse(&file(scale_file), ITEM, SCALE)?
        .ok_or_else(|| missing(scale_file, SCALE))?;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(root.malformed(&file(scale_file), ITEM, SCALE, scale.to_string()));
    }
    let cpus = root
        .cpus(&file("cpumask"), ITEM)?
        .ok_or_else(|| missing("cpumask", MASK))?;
    Ok(Some(PackageEvent {
        type_id,
        config,
        scale,
        cpus,
    }))
}

fn power_events(root: &Root) -> Result<Option<(f64, Vec<OwnedFd>)>, PowerError> {
    let Some(event) = package_event(root)? else {
        return Ok(None);
    };
    let attributes = sys::Attributes {
        type_id: event.type_id,
        config: event.config,
        config1: 0,
        config2: 0,
        scope: sys::Scope::Chip,
        start: Some(sys::Start::Now),
        read: sys::ReadFormat::Count,
    };
    let open = |cpu: cosched_core::CpuId| sys::open(&attributes, sys::Target::Cpu(cpu.0), None);
    let events = event
        .cpus
        .iter()
        .map(open)
        .collect::<io::Result<Vec<OwnedFd>>>()
        .map_err(PowerError::Open)?;
    Ok((!events.is_empty()).then_some((event.scale, events)))
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
        assert_eq!(
            (meter.source(), meter.packages()),
            (EnergySource::Powercap, 2)
        );
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
        assert_eq!(
            (error.reason, error.details.len()),
            (Absence::NoEnergyMeter, 2)
        );
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

    fn power_pmu(dir: &Path, type_id: &str, event: &str, scale: &str, mask: &str) {
        let base = "sys/bus/event_source/devices/power";
        for (file, text) in [
            ("type", type_id),
            ("events/energy-pkg", event),
            ("events/energy-pkg.scale", scale),
            ("cpumask", mask),
        ] {
            write(dir, &format!("{base}/{file}"), text);
        }
    }

    #[test]
    fn the_power_pmu_is_described_by_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(package_event(&root).unwrap(), None);
        power_pmu(
            dir.path(),
            "9",
            "event=0x02",
            "2.3283064365386962890625e-10",
            "0,18",
        );
        let event = package_event(&root).unwrap().unwrap();
        assert_eq!((event.type_id, event.config, event.cpus.len()), (9, 2, 2));
        assert_eq!(event.scale, 1.0 / 4_294_967_296.0);
        for (file, text) in [
            ("type", "x"),
            ("events/energy-pkg", "x"),
            ("events/energy-pkg.scale", "-1"),
            ("cpumask", "x"),
        ] {
            power_pmu(dir.path(), "9", "event=0x02", "1", "0");
            write(
                dir.path(),
                &format!("sys/bus/event_source/devices/power/{file}"),
                text,
            );
            let error = package_event(&root).unwrap_err().to_string();
            assert!(
                error.contains(file) && error.contains("expected"),
                "{error}"
            );
        }
    }

    #[test]
    fn chip_wide_events_are_read_and_scaled() {
        // The kernel's clock of CPU 0 stands in for a meter: a nanosecond is a billionth of a joule.
        let dir = tempfile::tempdir().unwrap();
        power_pmu(dir.path(), "1", "event=0x00", "1e-9", "0");
        match EnergyMeter::open(&Root::new(dir.path())) {
            Ok(mut meter) => {
                assert_eq!(
                    (meter.source(), meter.packages()),
                    (EnergySource::PowerPmu, 1)
                );
                let (first, second) = (
                    meter.joules().value().unwrap(),
                    meter.joules().value().unwrap(),
                );
                assert!(first > 0.0 && second > first, "{first} {second}");
            }
            Err(error) => {
                assert_eq!(error.reason, Absence::NoPermission, "{error}");
                drop(std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("skipped, because {error}\n"),
                ));
            }
        }
    }

    #[test]
    fn a_counter_that_never_could_be_there_went_backwards() {
        let mut counter = Wrapping::new(100, 200);
        assert_eq!(counter.update(50), Err(Absence::WentBackwards));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        /// A counter of 0..=largest that is read before it wraps a second time gives every microjoule.
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
