//! The table of features: whether each works, what happens without it, and the remedy.

use crate::input::mine::machine_file;
use crate::input::spec::machine_in;
use crate::input::told;
use cosched_core::{Absence, Counter, Machine};
use cosched_linux::counters::CounterSupport;
use cosched_linux::energy::EnergyMeter;
use cosched_linux::events::short_name;
use cosched_linux::root::Root;
use cosched_linux::topology::Topology;
use cosched_linux::traffic::TrafficMeter;
use cosched_linux::{NoFolder, folder_problem, freezer_problem};
use cosched_report::count;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One line of the table of features.
#[derive(Serialize)]
pub struct Feature {
    /// Unique in the table.
    pub feature: String,
    pub works: bool,
    /// What was found, or why it does not work.
    pub found: String,
    /// Why it does not work, in words that features with the same cause share.
    #[serde(skip)]
    pub reason: String,
    /// What happens without it.
    pub without: &'static str,
    /// How to get it to work, as a command where there is one.
    pub mend: Option<String>,
}

impl Feature {
    /// A feature that works, with what was found; or one that does not, with the reason.
    fn new(feature: &str, found: Result<String, String>, without: &'static str) -> Feature {
        let works = found.is_ok();
        let (Ok(found) | Err(found)) = found;
        Feature {
            feature: feature.to_owned(),
            works,
            reason: found.clone(),
            found,
            without,
            mend: None,
        }
    }

    /// Adds the remedy, if the feature does not work.
    fn or_remedy(mut self, remedy: impl Into<String>) -> Feature {
        if !self.works {
            self.mend = Some(remedy.into());
        }
        self
    }
}

/// Every feature of this machine.
pub fn all(root: &Root, topology: &Topology, counters: &CounterSupport) -> Vec<Feature> {
    let mut features = Vec::new();
    for counter in Counter::BY_NEED {
        features.push(counting(counter, counters, topology.virtual_machine));
    }
    features.extend([
        cpu_time(root, counters),
        freezer(root),
        list_of_processes(root),
        binding(topology),
        kernel_scheduler(root),
        energy(root),
        traffic(root, &topology.machine),
        core_types(&topology.machine),
        calibration(machine_file(root)),
    ]);
    features
}

/// "yes", or the problem in words.
fn yes_unless(problem: Option<impl ToString>) -> Result<String, String> {
    match problem {
        None => Ok("yes".to_owned()),
        Some(problem) => Err(problem.to_string()),
    }
}

fn counting(counter: Counter, counters: &CounterSupport, is_virtual: bool) -> Feature {
    let name = format!("count {}", counter.text());
    let without = "policies fall back to CPU time and order of waiting, and say so";
    if counters.unproven.contains(&counter) {
        let found = "nothing was counted in a trial; it is believed once it counts something";
        return Feature::new(&name, Err(found.to_owned()), without);
    }
    let Some(absence) = counters.of(counter).absence() else {
        return Feature::new(&name, Ok("yes".to_owned()), without);
    };
    let mut problems = counters.problems.iter();
    let problem = problems.find(|problem| problem.counter == counter);
    let found = match problem {
        Some(problem) => problem.to_string(),
        None => absence.to_string(),
    };
    let mut feature = Feature::new(&name, Err(found), without);
    if let Some(problem) = problem {
        feature.reason = problem.reason.to_string();
    }
    let remedy = match absence {
        Absence::NoPermission => "sudo sysctl kernel.perf_event_paranoid=2".to_owned(),
        Absence::NoCounters if is_virtual => {
            "let the hypervisor expose the PMU (KVM: -cpu host,pmu=on), or use a physical machine"
                .to_owned()
        }
        Absence::NoCounterFree => {
            "sudo sysctl kernel.nmi_watchdog=0, and end other sessions of perf".to_owned()
        }
        _ => {
            let short = short_name(counter);
            format!("cosched run --event {short}=RAW, if your processor's manual has such an event")
        }
    };
    feature.or_remedy(remedy)
}

fn cpu_time(root: &Root, counters: &CounterSupport) -> Feature {
    let found = if freezer_problem(root).is_none() {
        Ok("from cgroups")
    } else if let Some(why) = counters.cpu_time.absence() {
        Err(why.to_string())
    } else {
        Ok("from the kernel's task clock, which also counts time that a hypervisor took")
    };
    Feature::new(
        "CPU time per job",
        found.map(str::to_owned),
        "CPU times are known at each job's end only",
    )
    .or_remedy("sudo sysctl kernel.perf_event_paranoid=2")
}

fn freezer(root: &Root) -> Feature {
    // Without systemd only root can help.
    let remedy = if root.path("/run/systemd/system").is_dir() {
        "systemd-run --user --scope -p Delegate=yes cosched run ..."
    } else {
        "run cosched in a cgroup whose folder, cgroup.procs and cgroup.subtree_control root gave to you (chown)"
    };
    Feature::new(
        "freeze by cgroup",
        yes_unless(freezer_problem(root)),
        "jobs are frozen by SIGSTOP and SIGCONT, which a job can notice",
    )
    .or_remedy(remedy)
}

/// Whether a run can keep the list of its processes for `cosched thaw`.
fn list_of_processes(root: &Root) -> Feature {
    let problem = folder_problem(root);
    let feature = Feature::new(
        "list of a run's processes",
        yes_unless(problem.as_ref()),
        "`cosched thaw` finds what killed runs left by groups and variables alone",
    );
    let Some(NoFolder::Taken { path, .. }) = problem else {
        return feature;
    };
    let path = path.display();
    feature.or_remedy(format!("ask its owner or root to remove {path}"))
}

fn binding(topology: &Topology) -> Feature {
    let used = topology.machine.cpus.len();
    let present = topology.present.len();
    Feature::new(
        "bind to CPUs",
        Ok(format!("{used} of {present} CPUs")),
        "the kernel chooses the CPU of each job that runs",
    )
}

fn kernel_scheduler(root: &Root) -> Feature {
    let lack = cosched_ext::lack(root);
    let feature = Feature::new(
        "scheduler in the kernel",
        yes_unless(lack.as_ref()),
        "no --actuator sched-ext",
    );
    match lack {
        Some(lack) => feature.or_remedy(lack.remedy()),
        None => feature,
    }
}

fn energy(root: &Root) -> Feature {
    let without = "energy is absent from the record";
    let why = match EnergyMeter::open(root) {
        Ok(meter) => {
            let meters = count(meter.meters() as u64, "meter");
            return Feature::new("package energy", Ok(meters), without);
        }
        Err(problem) => problem.reason,
    };
    let feature = Feature::new("package energy", Err(why.to_string()), without);
    if why == Absence::NoPermission {
        feature.or_remedy("sudo chmod o+r /sys/class/powercap/intel-rapl:*/energy_uj")
    } else {
        feature
    }
}

/// What the memory controllers count, in all memory domains or in some.
fn traffic(root: &Root, machine: &Machine) -> Feature {
    let meter = TrafficMeter::open(root, machine);
    let mut found = Vec::new();
    let problem = match &meter {
        Ok(meter) => {
            let counted = meter.problems().filter(Option::is_none).count();
            let domains = machine.memory_domains.len();
            found.push(format!("{counted} of {domains} memory domains"));
            meter.problems().flatten().next()
        }
        Err(problem) => Some(problem),
    };
    let without = "efs leaves out writes, and what other programs move";
    let Some(problem) = problem else {
        return Feature::new("memory traffic", Ok(found.join("; ")), without);
    };
    found.push(problem.to_string());
    let mut feature = Feature::new("memory traffic", Err(found.join("; ")), without);
    feature.reason = problem.reason.to_string();
    if problem.reason == Absence::NoPermission {
        feature.or_remedy("sudo sysctl kernel.perf_event_paranoid=0")
    } else {
        feature
    }
}

fn core_types(machine: &Machine) -> Feature {
    let types = machine.core_types.len();
    let found = count(types as u64, "type");
    Feature::new(
        "cores of two types",
        if types > 1 { Ok(found) } else { Err(found) },
        "policies for big and small cores are off",
    )
}

/// Whether this machine was measured, where the file is, and how old.
fn calibration(file: Option<PathBuf>) -> Feature {
    let found = match file.filter(|file| file.exists()) {
        None => Err("this machine has not been measured".to_owned()),
        Some(file) => match machine_in(&file) {
            Ok(_) => Ok(format!("{}, {}", told(&file), age(&file))),
            Err(why) => Err(why.to_string()),
        },
    };
    Feature::new(
        "machine file",
        found,
        "no --on mine; efs measures memory first; fair and perf-fair use the limits of another machine",
    )
    .or_remedy("cosched calibrate")
}

/// The age of a file.
fn age(file: &Path) -> String {
    let written = file.metadata().and_then(|meta| meta.modified());
    let age = written.ok().and_then(|at| at.elapsed().ok());
    let days = age.unwrap_or_default().as_secs() / 86_400;
    format!("{} old", count(days, "day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_file_is_named_with_its_age() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.toml");
        let missing = calibration(Some(path.clone()));
        assert!(!missing.works && missing.mend.as_deref() == Some("cosched calibrate"));
        std::fs::write(&path, cosched_sim::MACHINES[0].text).unwrap();
        let days = std::time::Duration::from_secs(3 * 86_400 + 60);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::now() - days)
            .unwrap();
        let found = calibration(Some(path.clone()));
        assert!(
            found.works && found.found.ends_with("m.toml, 3 days old"),
            "{}",
            found.found
        );
        std::fs::write(&path, "nam = 1").unwrap();
        assert!(!calibration(Some(path)).works);
    }

    #[test]
    fn what_is_in_the_way_of_the_list_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let user = rustix::process::geteuid().as_raw();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        assert!(list_of_processes(&root).works);
        let squatted = dir.path().join(format!("tmp/cosched-{user}"));
        std::fs::remove_dir(&squatted).unwrap();
        std::fs::write(&squatted, "").unwrap();
        let feature = list_of_processes(&root);
        assert!(!feature.works && feature.found == format!("{} is no folder", squatted.display()));
        assert!(
            feature
                .mend
                .unwrap()
                .contains(&squatted.display().to_string())
        );
    }

    #[test]
    fn traffic_that_is_not_counted_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let machine = Machine::uniform("two", 2, 1);
        let feature = traffic(&root, &machine);
        assert!(!feature.works && feature.mend.is_none());
        assert!(
            feature
                .found
                .starts_with("the kernel does not report it (/sys/bus"),
            "{}",
            feature.found
        );
        // A socket with two memory domains: nobody knows which controller serves which.
        for (file, text) in [
            ("type", "9"),
            ("cpumask", "0"),
            ("format/event", "config:0-7"),
        ] {
            write(
                &format!("/sys/bus/event_source/devices/uncore_imc_0/{file}"),
                text,
            );
        }
        for event in ["cas_count_read", "cas_count_write"] {
            write(
                &format!("/sys/bus/event_source/devices/uncore_imc_0/events/{event}"),
                "event=0x04",
            );
        }
        write(
            "/sys/devices/system/cpu/cpu0/topology/package_cpus_list",
            "0-1",
        );
        write("/sys/devices/system/node/node0/cpulist", "0");
        write("/sys/devices/system/node/node1/cpulist", "1");
        let feature = traffic(&root, &machine);
        assert!(
            !feature.works && feature.found.contains("has 2 memory domains"),
            "{}",
            feature.found
        );
        let json = serde_json::to_value(&feature).unwrap();
        assert_eq!(
            (&json["feature"], &json["works"]),
            (&"memory traffic".into(), &false.into())
        );
    }
}
