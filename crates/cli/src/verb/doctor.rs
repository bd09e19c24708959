//! `cosched doctor`: what works here, what does not, why, and how to get it to work.

use super::run::{Format, width_of};
use super::thaw::words;
use crate::exit::Exit;
use clap::Args;
use cosched_core::{Counter, Machine, Reading, auto_policy, auto_shortfall};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::energy::EnergyMeter;
use cosched_linux::events::{MachineEvents, short_name};
use cosched_linux::orphans::{Orphan, OrphanState, orphans};
use cosched_linux::root::Root;
use cosched_linux::throttling;
use cosched_linux::topology::{self, Topology};
use cosched_linux::traffic::TrafficMeter;
use cosched_linux::{Freezing, NoFolder, folder_problem, freezer_problem, meminfo};
use cosched_report::{count, wrap};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Show what works on this machine, what does not, and how to get it to work
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,

    /// Show every feature on its own, with what it needs
    #[arg(short, long)]
    verbose: bool,
}

/// One line of the table of features.
#[derive(Serialize)]
struct Feature {
    /// Unique in the table.
    feature: String,
    works: bool,
    /// What was found, or why it does not work.
    found: String,
    /// Why it does not work, in words that features with the same cause share.
    #[serde(skip)]
    reason: String,
    /// The privilege or the hardware that it needs.
    needs: &'static str,
    /// What happens without it.
    without: &'static str,
    /// How to get it to work, as a command where there is one.
    mend: Option<String>,
}

pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let root = Root::default();
    let affinity = cosched_linux::affinity(0)?;
    let topology = topology::read(&root, &affinity, None)?;
    let events = MachineEvents::detect(&root, &[])?;
    let counters = probe(&root, &events)?;
    let features = features(&root, &topology, &counters);
    let freezing = if freezer_problem(&root).is_none() {
        Freezing::Cgroup
    } else {
        Freezing::Signals
    };
    let capabilities = cosched_linux::capabilities(&root, &topology.machine, &counters, freezing);
    let orphans = orphans(&root);
    let mut out = std::io::stdout();
    match args.format {
        Format::Json => {
            let machine = &topology.machine;
            let lacks = auto_shortfall(&capabilities).map(|lack| lack.why.to_string());
            let object = serde_json::json!({
                "auto_policy": auto_policy(&capabilities, false).name, "auto_lacks": lacks,
                "machine": machine.name, "cpus": machine.all_cpus(), "cores": machine.cores, "llcs": machine.llcs,
                "memory_domains": machine.memory_domains, "core_types": machine.core_types, "features": features,
                "orphans": orphans.iter().map(told).collect::<Vec<_>>(),
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        }
        Format::Text => {
            out.write_all(machine_text(&topology).as_bytes())?;
            let policy = auto_policy(&capabilities, false);
            let why = auto_shortfall(&capabilities)
                .map_or_else(String::new, |lack| format!(" ({})", lack.why));
            writeln!(out, "policy: --policy auto takes {}{why}\n", policy.name)?;
            if args.verbose {
                out.write_all(full(&counters, &features).as_bytes())?;
            } else {
                out.write_all(brief(&features, width_of(std::io::stdout())).as_bytes())?;
            }
            if !orphans.is_empty() {
                writeln!(
                    out,
                    "\njobs of killed runs are still there (`cosched thaw` frees those that are frozen, `thaw --kill` ends all):"
                )?;
            }
            for orphan in &orphans {
                writeln!(out, "    {}", told(orphan))?;
            }
        }
    }
    Ok(Exit::Success.into())
}

/// A job that outlived its run, and whether it stands still.
fn told(orphan: &Orphan) -> String {
    match orphan.state {
        OrphanState::Runs => words(orphan),
        held => format!("{}: {}", words(orphan), held.text()),
    }
}

fn features(root: &Root, topology: &Topology, counters: &CounterSupport) -> Vec<Feature> {
    let is_virtual = topology.facts.virtual_machine;
    let mut features = Vec::new();
    for counter in Counter::BY_NEED {
        let state = counters.of(counter);
        let problem = counters
            .problems
            .iter()
            .find(|problem| problem.counter == counter);
        features.push(Feature {
            feature: format!("count {}", counter.text()),
            works: state.is_value(),
            found: match (state, problem) {
                (Reading::Value(()), _) => "yes".to_owned(),
                (Reading::Absent(_), Some(problem)) => problem.to_string(),
                (Reading::Absent(why), None) => why.to_string(),
            },
            reason: match (state, problem) {
                (_, Some(problem)) => problem.reason.to_string(),
                (state, None) => state.absence().map_or_else(String::new, |why| why.to_string()),
            },
            needs: "hardware counters; perf_event_paranoid at most 2, or CAP_PERFMON",
            without: "policies fall back to CPU time and order of waiting, and say so",
            mend: match state {
                Reading::Value(()) => None,
                Reading::Absent(cosched_core::Absence::NoPermission) => {
                    Some("sudo sysctl kernel.perf_event_paranoid=2".to_owned())
                }
                Reading::Absent(cosched_core::Absence::NoCounters) if is_virtual => Some(
                    "let the hypervisor expose the PMU (KVM: -cpu host,pmu=on), or use a physical machine".to_owned(),
                ),
                Reading::Absent(_) => {
                    let example = format!(
                        "cosched run --event {}=RAW, if your processor's manual has such an event",
                        short_name(counter)
                    );
                    Some(example)
                }
            },
        });
    }
    let freezer = freezer_problem(root);
    features.push(Feature {
        feature: "CPU time per job".to_owned(),
        works: counters.cpu_time.is_value() || freezer.is_none(),
        found: match (counters.cpu_time, &freezer) {
            (_, None) => "from cgroups".to_owned(),
            (Reading::Value(()), Some(_)) => {
                "from the kernel's task clock, which also counts time that a hypervisor took"
                    .to_owned()
            }
            (Reading::Absent(why), Some(_)) => why.to_string(),
        },
        reason: String::new(),
        needs: "perf_event_paranoid at most 2, or a cgroup v2 hierarchy that can be written",
        without: "CPU times are known at each job's end only",
        mend: (!counters.cpu_time.is_value() && freezer.is_some())
            .then(|| "sudo sysctl kernel.perf_event_paranoid=2".to_owned()),
    });
    features.push(Feature {
        feature: "freeze by cgroup".to_owned(),
        works: freezer.is_none(),
        found: freezer.as_ref().map_or_else(|| "yes".to_owned(), ToString::to_string),
        reason: String::new(),
        needs: "cgroup v2 (Linux 5.2) and permission to write the caller's own group: root, or delegation by systemd",
        without: "jobs are frozen by SIGSTOP and SIGCONT, which a job can notice",
        mend: freezer.is_some().then(|| {
            // Without systemd there is nobody to ask.
            if root.path("/run/systemd/system").is_dir() {
                "systemd-run --user --scope -p Delegate=yes cosched run ...".to_owned()
            } else {
                "have root make a cgroup, give it, its cgroup.procs and its cgroup.subtree_control to you (chown), and \
                 start a shell in it (echo PID > cgroup.procs); run cosched there"
                    .to_owned()
            }
        }),
    });
    features.push(Feature {
        feature: "freeze by signals".to_owned(),
        works: true,
        found: "yes".to_owned(),
        reason: String::new(),
        needs: "nothing",
        without: "-",
        mend: None,
    });
    features.push(list_of_processes(root));
    features.push(Feature {
        feature: "bind to CPUs".to_owned(),
        works: true,
        found: format!(
            "{} of {} CPUs",
            topology.facts.used.len(),
            topology.facts.present.len()
        ),
        reason: String::new(),
        needs: "nothing; a container or cpuset may leave fewer CPUs",
        without: "the kernel chooses the CPU of each job that runs",
        mend: None,
    });
    let lack = cosched_ext::lack(root);
    features.push(Feature {
        feature: "scheduler in the kernel".to_owned(),
        works: lack.is_none(),
        found: lack.as_ref().map_or_else(|| "yes".to_owned(), ToString::to_string),
        reason: String::new(),
        needs: "Linux 6.13 or later with CONFIG_SCHED_CLASS_EXT=y, CAP_BPF and CAP_PERFMON (root), no other such scheduler, and a \
                cosched that was built with it",
        without: "no --actuator sched-ext",
        mend: lack.map(|lack| lack.remedy().to_owned()),
    });
    let energy = EnergyMeter::open(root);
    features.push(Feature {
        feature: "package energy".to_owned(),
        works: energy.is_ok(),
        found: match &energy {
            Ok(meter) => format!("{} packages", meter.packages()),
            Err(problem) => problem.reason.to_string(),
        },
        reason: String::new(),
        needs: "RAPL or the like; powercap files that can be read (root), or the power PMU",
        without: "energy is absent from the record",
        mend: match &energy {
            Err(problem) if problem.reason == cosched_core::Absence::NoPermission => {
                Some("sudo chmod o+r /sys/class/powercap/intel-rapl:*/energy_uj".to_owned())
            }
            _ => None,
        },
    });
    features.push(traffic(root, &topology.machine));
    let throttled = throttling::read(root, &topology.facts.used);
    features.push(Feature {
        feature: "throttling by heat".to_owned(),
        works: throttled.is_value(),
        found: throttled
            .absence()
            .map_or_else(|| "yes".to_owned(), |why| why.to_string()),
        reason: String::new(),
        needs: "an Intel processor that is not behind a hypervisor",
        without: "runs slowed down by heat are told by their counted cycles alone",
        mend: None,
    });
    let memory = meminfo::read(root);
    features.push(Feature {
        feature: "memory left".to_owned(),
        works: memory.is_ok(),
        found: memory.map_or_else(
            |error| error.to_string(),
            |memory| format!("{} MiB", memory.usable() >> 20),
        ),
        reason: String::new(),
        needs: "nothing",
        without: "--mem-keep has no effect",
        mend: None,
    });
    let types = topology.machine.core_types.len();
    features.push(Feature {
        feature: "cores of two types".to_owned(),
        works: types > 1,
        found: format!("{types} type{}", if types == 1 { "" } else { "s" }),
        reason: String::new(),
        needs: "a hybrid processor",
        without: "policies for big and small cores are off",
        mend: None,
    });
    for feature in features
        .iter_mut()
        .filter(|feature| feature.reason.is_empty())
    {
        feature.reason.clone_from(&feature.found);
    }
    features
}

/// Whether a run can keep the list of its processes for those who come after it.
fn list_of_processes(root: &Root) -> Feature {
    let problem = folder_problem(root);
    let folder = match &problem {
        Some(
            NoFolder::Foreign { path, .. }
            | NoFolder::Open { path, .. }
            | NoFolder::NotFolder { path },
        ) => Some(path),
        _ => None,
    };
    Feature {
        feature: "list of a run's processes".to_owned(),
        works: problem.is_none(),
        found: problem
            .as_ref()
            .map_or_else(|| "yes".to_owned(), ToString::to_string),
        reason: String::new(),
        needs: "a folder that is the caller's alone, in $XDG_RUNTIME_DIR, in /run/user/UID or in /tmp",
        without: "`cosched thaw` finds what killed runs left by groups and marks alone",
        mend: folder
            .map(|path| format!("have {} removed, by its owner or by root", path.display())),
    }
}

/// What the memory controllers count, in all memory domains or in some.
fn traffic(root: &Root, machine: &Machine) -> Feature {
    let meter = TrafficMeter::open(root, machine);
    let problem = match &meter {
        Ok(meter) => meter.problems().flatten().next(),
        Err(problem) => Some(problem),
    };
    let found = meter.as_ref().map_or(String::new(), |meter| {
        let counted = meter.problems().filter(Option::is_none).count();
        format!(
            "{counted} of {} memory domains",
            machine.memory_domains.len()
        )
    });
    let why = problem.map(ToString::to_string);
    Feature {
        feature: "memory traffic".to_owned(),
        works: problem.is_none(),
        found: [found]
            .into_iter()
            .filter(|found| !found.is_empty())
            .chain(why)
            .collect::<Vec<_>>()
            .join("; "),
        reason: problem.map_or_else(String::new, |problem| problem.reason.to_string()),
        needs: "a memory controller with counters; perf_event_paranoid at most 0, or CAP_PERFMON",
        without: "efs leaves out writes, and what other programs move",
        mend: problem
            .is_some_and(|problem| problem.reason == cosched_core::Absence::NoPermission)
            .then(|| "sudo sysctl kernel.perf_event_paranoid=0".to_owned()),
    }
}

/// What the machine is.
fn machine_text(topology: &Topology) -> String {
    let machine = &topology.machine;
    let threads = if machine.has_smt() { " with SMT" } else { "" };
    let parts = [
        format!(
            "{} ({})",
            count(machine.cpus.len() as u64, "CPU"),
            machine.all_cpus()
        ),
        format!("{}{threads}", count(machine.cores.len() as u64, "core")),
        count(machine.llcs.len() as u64, "last-level cache"),
        count(machine.memory_domains.len() as u64, "memory domain"),
    ];
    let mut out = format!("{}\n{}\n", machine.name, parts.join(", "));
    for (cpus, why) in topology.facts.left_out() {
        let _ = writeln!(out, "left out: CPUs {cpus}, {why}");
    }
    out
}

/// What does not work, each reason and remedy once; then what works.
fn brief(features: &[Feature], width: usize) -> String {
    let mut out = String::new();
    let mut told: Vec<(String, &str, Option<&str>)> = Vec::new();
    for feature in features.iter().filter(|feature| !feature.works) {
        let key = (
            feature.reason.clone(),
            feature.without,
            feature.mend.as_deref(),
        );
        if told.contains(&key) {
            continue;
        }
        let same = features.iter().filter(|other| {
            !other.works
                && (&other.reason, other.without, other.mend.as_deref()) == (&key.0, key.1, key.2)
        });
        // "count cycles, count reads" says the same word twice.
        let name = |(ix, same): (usize, &'_ Feature)| match same.feature.strip_prefix("count ") {
            Some(rest) if ix > 0 => rest.to_owned(),
            _ => same.feature.clone(),
        };
        let names: Vec<String> = same.enumerate().map(name).collect();
        let mut paragraph = |first: &str, text: &str| {
            for (ix, line) in wrap(text, width.saturating_sub(6)).iter().enumerate() {
                let indent = if ix == 0 { first } else { "      " };
                let _ = writeln!(out, "{indent}{line}");
            }
        };
        paragraph("  ", &format!("{}: {}", names.join(", "), key.0));
        let mend = key
            .2
            .map_or_else(String::new, |mend| format!("; remedy: {mend}"));
        paragraph("      ", &format!("without: {}{mend}", key.1));
        told.push(key);
    }
    let works: Vec<String> = features
        .iter()
        .filter(|feature| feature.works)
        .map(Feature::brief)
        .collect();
    let works = wrap(
        &format!("works: {}", works.join(", ")),
        width.saturating_sub(4),
    )
    .join("\n    ");
    if out.is_empty() {
        format!("{works}\n")
    } else {
        format!("off:\n{out}{works}\n")
    }
}

/// Every feature with all that is known of it.
fn full(counters: &CounterSupport, features: &[Feature]) -> String {
    let mut out = String::new();
    if let Some(paranoid) = counters.paranoid {
        let _ = writeln!(out, "perf_event_paranoid {paranoid}");
    }
    for (pmu, table) in &counters.pmus {
        let _ = writeln!(out, "counters of {pmu}: table {table}");
    }
    out.push('\n');
    let width = features
        .iter()
        .map(|feature| feature.feature.len())
        .max()
        .unwrap_or_default();
    let indent = width + "off ".len() + 1;
    for feature in features {
        let mark = if feature.works { "ok " } else { "off" };
        let _ = writeln!(out, "{mark} {:<width$} {}", feature.feature, feature.found);
        if !feature.works {
            let _ = writeln!(out, "{:<indent$}needs: {}", "", feature.needs);
            let _ = writeln!(out, "{:<indent$}without: {}", "", feature.without);
            if let Some(mend) = &feature.mend {
                let _ = writeln!(out, "{:<indent$}remedy: {mend}", "");
            }
        }
    }
    out
}

impl Feature {
    fn brief(&self) -> String {
        if self.found == "yes" {
            self.feature.clone()
        } else {
            format!("{} ({})", self.feature, self.found)
        }
    }
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
