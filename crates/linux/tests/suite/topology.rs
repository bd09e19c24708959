//! Machines of many kinds, built as small file trees and read back.

use cosched_core::{Absence, CpuSet, Machine, Reading};
use cosched_linux::root::Root;
use cosched_linux::topology::{self, Topology, TopologyError};
use tempfile::TempDir;

/// A small tree of sysfs and proc files.
struct Tree {
    dir: TempDir,
}

impl Tree {
    fn new(present: &str, online: &str) -> Tree {
        let tree = Tree {
            dir: tempfile::tempdir().unwrap(),
        };
        tree.file("sys/devices/system/cpu/present", present);
        tree.file("sys/devices/system/cpu/online", online);
        tree
    }

    fn file(&self, path: &str, text: &str) -> &Tree {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// Writes the same file for each CPU of a list.
    fn each(&self, list: &str, path: &str, text: &str) -> &Tree {
        for cpu in cpus(list).iter() {
            self.file(&format!("sys/devices/system/cpu/cpu{}/{path}", cpu.0), text);
        }
        self
    }

    /// A cache that all CPUs of the list share.
    fn cache(&self, list: &str, index: u32, level: u32, kind: &str, size: &str) -> &Tree {
        let dir = format!("cache/index{index}");
        self.each(list, &format!("{dir}/level"), &level.to_string());
        self.each(list, &format!("{dir}/type"), kind);
        self.each(list, &format!("{dir}/size"), size);
        self.each(list, &format!("{dir}/shared_cpu_list"), list)
    }

    fn cores(&self, lists: &[&str]) -> &Tree {
        for list in lists {
            self.each(list, "topology/core_cpus_list", list);
        }
        self
    }

    fn node(&self, number: u32, list: &str) -> &Tree {
        self.file(
            &format!("sys/devices/system/node/node{number}/cpulist"),
            list,
        )
    }

    fn root(&self) -> Root {
        Root::new(self.dir.path())
    }

    fn read(&self, affinity: &str, asked: Option<&str>) -> Result<Topology, TopologyError> {
        topology::read(&self.root(), &cpus(affinity), asked.map(cpus).as_ref())
    }

    fn machine(&self) -> Machine {
        self.read("0-1023", None).unwrap().machine
    }
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn lists(sets: &[CpuSet]) -> Vec<String> {
    sets.iter().map(CpuSet::to_string).collect()
}

fn type_of(machine: &Machine, cpu: usize) -> &str {
    &machine.core_types[machine.cpus[cpu].core_type].name
}

fn virtual_machine() -> Tree {
    let tree = Tree::new("0-1", "0-1");
    tree.cores(&["0", "1"]).node(0, "0-1");
    tree.cache("0", 0, 1, "Data", "48K")
        .cache("1", 0, 1, "Data", "48K");
    tree.cache("0-1", 3, 3, "Unified", "32768K");
    tree.file(
        "proc/cpuinfo",
        "processor : 0\nmodel name : AMD EPYC\nflags : fpu hypervisor\n",
    );
    tree
}

/// Two siblings per core, numbered as Linux does: n and n + 6.
fn six_by_two() -> Tree {
    let tree = Tree::new("0-11", "0-11");
    tree.cores(&["0,6", "1,7", "2,8", "3,9", "4,10", "5,11"])
        .node(0, "0-11");
    for core in 0..6 {
        let pair = format!("{core},{}", core + 6);
        tree.cache(&pair, 0, 1, "Data", "32K")
            .cache(&pair, 1, 1, "Instruction", "32K");
        tree.cache(&pair, 2, 2, "Unified", "256K");
    }
    tree.cache("0-11", 3, 3, "Unified", "12288K");
    tree
}

#[test]
fn virtual_machine_without_smt() {
    let found = virtual_machine().read("0-1", None).unwrap();
    let machine = &found.machine;
    assert_eq!(machine.name, "AMD EPYC");
    assert_eq!(lists(&machine.cores), ["0", "1"]);
    assert_eq!(lists(&machine.llcs), ["0-1"]);
    assert_eq!(lists(&machine.memory_domains), ["0-1"]);
    assert_eq!(machine.llc_bytes, Reading::Value(32 << 20));
    assert_eq!(
        (
            machine.core_types.len(),
            machine.core_types[0].name.as_str()
        ),
        (1, "core")
    );
    assert_eq!(
        (
            machine.core_types[0].capacity,
            machine.core_types[0].max_khz
        ),
        (None, None)
    );
    assert!(!machine.has_smt() && found.virtual_machine && found.left_out.is_empty());
}

#[test]
fn six_cores_of_two_threads() {
    let machine = six_by_two().machine();
    assert!(machine.has_smt());
    assert_eq!(
        lists(&machine.cores),
        ["0,6", "1,7", "2,8", "3,9", "4,10", "5,11"]
    );
    assert_eq!(lists(&machine.llcs), ["0-11"]);
    assert_eq!(machine.llc_bytes, Reading::Value(12 << 20));
    assert_eq!(machine.name, "unknown processor");
}

#[test]
fn hybrid_parts_have_two_types_whatever_their_favoured_cores() {
    let tree = Tree::new("0-7", "0-7");
    tree.cores(&["0-1", "2-3", "4", "5", "6", "7"])
        .cache("0-7", 3, 3, "Unified", "24M");
    tree.file("sys/devices/cpu_core/cpus", "0-3")
        .file("sys/devices/cpu_atom/cpus", "4-7");
    tree.each("0-1", "cpufreq/cpuinfo_max_freq", "5000000")
        .each("2-3", "cpufreq/cpuinfo_max_freq", "5200000");
    tree.each("4-7", "cpufreq/cpuinfo_max_freq", "3900000");
    tree.each("0-1", "cpu_capacity", "1009")
        .each("2-3", "cpu_capacity", "1024")
        .each("4-7", "cpu_capacity", "600");
    let machine = tree.machine();
    assert_eq!(machine.core_types.len(), 2);
    assert_eq!(
        (
            type_of(&machine, 0),
            type_of(&machine, 3),
            type_of(&machine, 4)
        ),
        ("big", "big", "small")
    );
    assert_eq!(
        (
            machine.core_types[0].capacity,
            machine.core_types[0].max_khz
        ),
        (Some(1024), Some(5_200_000))
    );
    assert_eq!(
        (
            machine.core_types[1].capacity,
            machine.core_types[1].max_khz
        ),
        (Some(600), Some(3_900_000))
    );
    // With only one type in use, only that type remains.
    let machine = tree.read("0-7", Some("4-6")).unwrap().machine;
    assert_eq!(
        (machine.core_types.len(), type_of(&machine, 0)),
        (1, "core")
    );
}

#[test]
fn arm_types_come_from_capacities_fastest_first() {
    let tree = Tree::new("0-7", "0-7");
    tree.each("0-3", "cpu_capacity", "446")
        .each("4-6", "cpu_capacity", "871")
        .each("7", "cpu_capacity", "1024");
    let machine = tree.machine();
    let names: Vec<&str> = machine.core_types.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["big", "medium", "small"]);
    assert_eq!(
        (
            type_of(&machine, 0),
            type_of(&machine, 5),
            type_of(&machine, 7)
        ),
        ("small", "medium", "big")
    );
    let capacities: Vec<_> = machine.core_types.iter().map(|t| t.capacity).collect();
    assert_eq!(capacities, [Some(1024), Some(871), Some(446)]);
}

#[test]
fn frequencies_alone_make_no_types() {
    let tree = Tree::new("0-1", "0-1");
    tree.each("0", "cpufreq/cpuinfo_max_freq", "4700000").each(
        "1",
        "cpufreq/cpuinfo_max_freq",
        "4500000",
    );
    let machine = tree.machine();
    assert_eq!(
        (machine.core_types.len(), machine.core_types[0].max_khz),
        (1, Some(4_700_000))
    );
}

#[test]
fn two_sockets_with_several_caches_each() {
    let tree = Tree::new("0-7", "0-7");
    tree.node(0, "0-3").node(1, "4-7").node(2, "");
    for list in ["0-1", "2-3", "4-5", "6-7"] {
        tree.cache(
            list,
            3,
            3,
            "Unified",
            if list == "2-3" { "98304K" } else { "32768K" },
        );
    }
    let machine = tree.machine();
    assert_eq!(lists(&machine.llcs), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(lists(&machine.memory_domains), ["0-3", "4-7"]);
    assert_eq!((machine.cpus[5].llc, machine.cpus[5].memory_domain), (2, 1));
    assert_eq!(machine.llc_bytes, Reading::Value(32 << 20));
}

#[test]
fn without_cache_files_packages_share_and_the_size_is_absent() {
    let tree = Tree::new("0-3", "0-3");
    tree.each("0-1", "topology/package_cpus_list", "0-1").each(
        "2-3",
        "topology/package_cpus_list",
        "2-3",
    );
    let machine = tree.machine();
    assert_eq!(lists(&machine.llcs), ["0-1", "2-3"]);
    assert_eq!(machine.llc_bytes, Reading::Absent(Absence::NotTold));
    // The files report nothing: every CPU is its own core, with one cache and one domain for all.
    let machine = Tree::new("0-2", "0-2").machine();
    assert_eq!(
        (
            lists(&machine.cores).len(),
            lists(&machine.llcs),
            machine.memory_domains.len()
        ),
        (3, vec!["0-2".into()], 1)
    );
}

#[test]
fn offline_and_forbidden_cpus_are_left_out_with_the_reason() {
    let tree = six_by_two();
    tree.file("sys/devices/system/cpu/online", "0-4,6-11");
    let found = tree.read("0-1,3-8", Some("0-1,6-7")).unwrap();
    let left_out: Vec<String> = found
        .left_out
        .iter()
        .map(|(cpus, _)| cpus.to_string())
        .collect();
    assert_eq!(left_out, ["5", "2,9-11", "3-4,8"]);
    assert_eq!(lists(&found.machine.cores), ["0,6", "1,7"]);
    // An unusable sibling is not part of the core.
    assert_eq!(
        lists(&tree.read("0-1", None).unwrap().machine.cores),
        ["0", "1"]
    );
}

#[test]
fn lists_that_cannot_be_used_are_explained() {
    let tree = six_by_two();
    tree.file("sys/devices/system/cpu/online", "0-4,6-11");
    let error = tree.read("0-7", Some("4-5,8,12-13")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the CPUs 5,8,12-13 do not exist, "), "{text}");
    assert!(matches!(
        tree.read("0-7", Some("")),
        Err(TopologyError::EmptyList)
    ));
    assert!(tree.read("5", None).is_err());
}

#[test]
fn malformed_files_are_named() {
    let cases = [
        ("sys/devices/system/cpu/online", "zero", "online CPUs"),
        (
            "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
            "1-",
            "SMT siblings",
        ),
        (
            "sys/devices/system/cpu/cpu0/cache/index3/level",
            "three",
            "cache level",
        ),
        (
            "sys/devices/system/cpu/cpu0/cache/index3/size",
            "large",
            "cache size",
        ),
        (
            "sys/devices/system/cpu/cpu0/cpu_capacity",
            "-3",
            "CPU capacity",
        ),
        (
            "sys/devices/system/node/node0/cpulist",
            "all",
            "CPUs of a memory domain",
        ),
        ("proc/cpuinfo", "processor : one", "processor"),
    ];
    for (path, text, item) in cases {
        let tree = virtual_machine();
        tree.file(path, text);
        let error = tree.read("0-1", None).unwrap_err().to_string();
        assert!(
            error.starts_with(item) && error.contains(path) && error.contains("expected"),
            "{path}: {error}"
        );
    }
    let empty = Tree {
        dir: tempfile::tempdir().unwrap(),
    };
    let error = empty.read("0", None).unwrap_err().to_string();
    assert!(
        error.contains("cpu/online does not exist; expected a list of CPUs"),
        "{error}"
    );
}

#[test]
fn this_machine_is_described() {
    let root = Root::default();
    let affinity = cosched_linux::affinity(0).unwrap();
    match topology::read(&root, &affinity, None) {
        Ok(found) => {
            assert_eq!(found.machine.validate(), Ok(()));
            assert!(found.machine.all_cpus().is_subset(&affinity));
        }
        // A build sandbox may hide sysfs.
        Err(error) => drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped, because {error}\n"),
        )),
    }
}
