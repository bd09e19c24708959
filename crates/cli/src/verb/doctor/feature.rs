//! The table of features: what each needs, whether it works, and the remedy if not.

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

/// One line of the table of features.
#[derive(Serialize)]
pub(super) struct Feature {
    /// Unique in the table.
    pub(super) feature: String,
    pub(super) works: bool,
    /// What was found, or why it does not work.
    pub(super) found: String,
    /// Why it does not work, in words that features with the same cause share.
    #[serde(skip)]
    pub(super) reason: String,
    /// The privilege or the hardware that it needs.
    pub(super) needs: &'static str,
    /// What happens without it.
    pub(super) without: &'static str,
    /// How to get it to work, as a command where there is one.
    pub(super) mend: Option<String>,
}

impl Feature {
    /// A feature that works, with what was found; or one that does not, with the reason.
    fn new(
        feature: &str,
        found: Result<String, String>,
        needs: &'static str,
        without: &'static str,
    ) -> Feature {
        let works = found.is_ok();
        let found = found.unwrap_or_else(|why| why);
        Feature {
            feature: feature.to_owned(),
            works,
            reason: found.clone(),
            found,
            needs,
            without,
            mend: None,
        }
    }

    fn or_remedy(self, remedy: Option<impl Into<String>>) -> Feature {
        Feature {
            mend: remedy.map(Into::into),
            ..self
        }
    }
}

/// Every feature of this machine.
pub(super) fn all(root: &Root, topology: &Topology, counters: &CounterSupport) -> Vec<Feature> {
    let mut features: Vec<Feature> = Counter::BY_NEED
        .into_iter()
        .map(|counter| counting(counter, counters, topology.virtual_machine))
        .collect();
    features.extend([
        cpu_time(root, counters),
        freezer(root),
        list_of_processes(root),
        binding(topology),
        kernel_scheduler(root),
        energy(root),
        traffic(root, &topology.machine),
        core_types(&topology.machine),
    ]);
    features
}

/// "yes", or the problem in words.
fn yes_unless(problem: Option<impl ToString>) -> Result<String, String> {
    problem.map_or(Ok("yes".to_owned()), |problem| Err(problem.to_string()))
}

fn counting(counter: Counter, counters: &CounterSupport, is_virtual: bool) -> Feature {
    let state = counters.of(counter);
    let problem = counters
        .problems
        .iter()
        .find(|problem| problem.counter == counter);
    let found = match problem.filter(|_| !state.is_value()) {
        Some(problem) => Err(problem.to_string()),
        None => yes_unless(state.absence()),
    };
    let mut feature = Feature::new(
        &format!("count {}", counter.text()),
        found,
        "hardware counters; perf_event_paranoid at most 2, or CAP_PERFMON",
        "policies fall back to CPU time and order of waiting, and say so",
    );
    if let Some(problem) = problem {
        feature.reason = problem.reason.to_string();
    }
    feature.or_remedy(state.absence().map(|why| match why {
        Absence::NoPermission => "sudo sysctl kernel.perf_event_paranoid=2".to_owned(),
        Absence::NoCounters if is_virtual => {
            "let the hypervisor expose the PMU (KVM: -cpu host,pmu=on), or use a physical machine".to_owned()
        }
        _ => format!(
            "cosched run --event {}=RAW, if your processor's manual has such an event",
            short_name(counter)
        ),
    }))
}

fn cpu_time(root: &Root, counters: &CounterSupport) -> Feature {
    let clock = counters.cpu_time;
    let found = match (freezer_problem(root), clock.absence()) {
        (None, _) => Ok("from cgroups".to_owned()),
        (Some(_), None) => Ok(
            "from the kernel's task clock, which also counts time that a hypervisor took"
                .to_owned(),
        ),
        (Some(_), Some(why)) => Err(why.to_string()),
    };
    let is_off = found.is_err();
    Feature::new(
        "CPU time per job",
        found,
        "perf_event_paranoid at most 2, or a cgroup v2 hierarchy that can be written",
        "CPU times are known at each job's end only",
    )
    .or_remedy(is_off.then_some("sudo sysctl kernel.perf_event_paranoid=2"))
}

fn freezer(root: &Root) -> Feature {
    let problem = freezer_problem(root);
    // Without systemd only root can help.
    let remedy = if root.path("/run/systemd/system").is_dir() {
        "systemd-run --user --scope -p Delegate=yes cosched run ..."
    } else {
        "have root make a cgroup, give it, its cgroup.procs and its cgroup.subtree_control to you (chown), and \
         start a shell in it (echo PID > cgroup.procs); run cosched there"
    };
    let remedy = problem.as_ref().map(|_| remedy);
    Feature::new(
        "freeze by cgroup",
        yes_unless(problem),
        "cgroup v2 (Linux 5.2) and permission to write the caller's own group: root, or delegation by systemd",
        "jobs are frozen by SIGSTOP and SIGCONT, which a job can notice",
    )
    .or_remedy(remedy)
}

/// Whether a run can keep the list of its processes for `cosched thaw`.
fn list_of_processes(root: &Root) -> Feature {
    let problem = folder_problem(root);
    let remedy = match &problem {
        Some(NoFolder::Taken { path, .. }) => Some(format!(
            "ask its owner or root to remove {}",
            path.display()
        )),
        _ => None,
    };
    Feature::new(
        "list of a run's processes",
        yes_unless(problem),
        "a folder that is the caller's alone, in $XDG_RUNTIME_DIR, in /run/user/UID or in /tmp",
        "`cosched thaw` finds what killed runs left by groups and variables alone",
    )
    .or_remedy(remedy)
}

fn binding(topology: &Topology) -> Feature {
    let (used, present) = (topology.machine.cpus.len(), topology.present.len());
    Feature::new(
        "bind to CPUs",
        Ok(format!("{used} of {present} CPUs")),
        "nothing; a container or cpuset may leave fewer CPUs",
        "the kernel chooses the CPU of each job that runs",
    )
}

fn kernel_scheduler(root: &Root) -> Feature {
    let lack = cosched_ext::lack(root);
    let remedy = lack.as_ref().map(|lack| lack.remedy());
    Feature::new(
        "scheduler in the kernel",
        yes_unless(lack.as_ref()),
        "Linux 6.13 or later with CONFIG_SCHED_CLASS_EXT=y, CAP_BPF and CAP_PERFMON (root), no other such scheduler, and a \
         cosched that was built with it",
        "no --actuator sched-ext",
    )
    .or_remedy(remedy)
}

fn energy(root: &Root) -> Feature {
    let meter = EnergyMeter::open(root).map_err(|problem| problem.reason);
    let is_denied = matches!(&meter, Err(Absence::NoPermission));
    Feature::new(
        "package energy",
        meter
            .map(|meter| count(meter.packages() as u64, "package"))
            .map_err(|why| why.to_string()),
        "RAPL or the like; powercap files that can be read (root)",
        "energy is absent from the record",
    )
    .or_remedy(is_denied.then_some("sudo chmod o+r /sys/class/powercap/intel-rapl:*/energy_uj"))
}

/// What the memory controllers count, in all memory domains or in some.
fn traffic(root: &Root, machine: &Machine) -> Feature {
    let meter = TrafficMeter::open(root, machine);
    let problem = match &meter {
        Ok(meter) => meter.problems().flatten().next(),
        Err(problem) => Some(problem),
    };
    let mut found = Vec::new();
    if let Ok(meter) = &meter {
        let counted = meter.problems().filter(Option::is_none).count();
        let domains = machine.memory_domains.len();
        found.push(format!("{counted} of {domains} memory domains"));
    }
    found.extend(problem.map(ToString::to_string));
    let found = found.join("; ");
    let mut feature = Feature::new(
        "memory traffic",
        if problem.is_none() {
            Ok(found)
        } else {
            Err(found)
        },
        "a memory controller with counters; perf_event_paranoid at most 0, or CAP_PERFMON",
        "efs leaves out writes, and what other programs move",
    );
    if let Some(problem) = problem {
        feature.reason = problem.reason.to_string();
    }
    let is_denied = problem.is_some_and(|problem| problem.reason == Absence::NoPermission);
    feature.or_remedy(is_denied.then_some("sudo sysctl kernel.perf_event_paranoid=0"))
}

fn core_types(machine: &Machine) -> Feature {
    let types = machine.core_types.len();
    let found = count(types as u64, "type");
    Feature::new(
        "cores of two types",
        if types > 1 { Ok(found) } else { Err(found) },
        "a hybrid processor",
        "policies for big and small cores are off",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
