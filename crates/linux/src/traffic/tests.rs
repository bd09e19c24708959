//! Memory controllers of every kind, as small file trees.

use super::discovery::{Direction, Planned, TrafficPlan, discover};
use super::encoding::Registers;
use super::meter::TrafficMeter;
use crate::counters::sys::{EventAttributes, EventScope, EventStart, EventTarget, ReadFormat};
use crate::root::{NoMeter, Root};
use crate::topology;
use Direction::{Reads, Writes};
use cosched_core::{Absence, Machine, Reading, Traffic};
use std::io::{self, Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use tempfile::TempDir;

const MIB: &str = "6.103515625e-5";

struct Tree(TempDir);

impl Tree {
    /// Sockets and NUMA nodes, as lists of CPUs.
    fn new(sockets: &[&str], nodes: &[&str]) -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.file("sys/devices/system/cpu/online", &sockets.join(","));
        for socket in sockets {
            for cpu in topology_list(socket).iter() {
                tree.file(
                    &format!(
                        "sys/devices/system/cpu/cpu{}/topology/package_cpus_list",
                        cpu.0
                    ),
                    socket,
                );
            }
        }
        for (ix, node) in nodes.iter().enumerate() {
            tree.file(&format!("sys/devices/system/node/node{ix}/cpulist"), node);
        }
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    fn of_pmu(&self, pmu: &str, file: &str, text: &str) {
        self.file(&format!("sys/bus/event_source/devices/{pmu}/{file}"), text);
    }

    /// A PMU with the fields that most have, and events with or without a scale.
    fn pmu(
        &self,
        name: &str,
        type_id: u32,
        mask: &str,
        events: &[(&str, &str)],
        scale: Option<&str>,
    ) -> &Tree {
        self.of_pmu(name, "type", &type_id.to_string());
        self.of_pmu(name, "cpumask", mask);
        self.of_pmu(name, "format/event", "config:0-7");
        self.of_pmu(name, "format/umask", "config:8-15");
        for (event, terms) in events {
            self.of_pmu(name, &format!("events/{event}"), terms);
            if let Some(scale) = scale {
                self.of_pmu(name, &format!("events/{event}.scale"), scale);
                self.of_pmu(name, &format!("events/{event}.unit"), "MiB");
            }
        }
        self
    }

    /// Controllers of a server; each PMU has a box on every socket.
    fn server(&self, controllers: u32, mask: &str) -> &Tree {
        for controller in 0..controllers {
            self.pmu(
                &format!("uncore_imc_{controller}"),
                20 + controller,
                mask,
                &CAS,
                Some(MIB),
            );
        }
        self
    }

    fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    /// The machine with the CPUs of this list only.
    fn machine(&self, used: &str) -> Machine {
        topology::read(&self.root(), &topology_list(used), None)
            .unwrap()
            .machine
    }

    fn plan(&self, used: &str) -> Result<TrafficPlan, NoMeter> {
        discover(&self.root(), &self.machine(used))
    }
}

const CAS: [(&str, &str); 3] = [
    ("cas_count_read", "event=0x04,umask=0x03"),
    ("cas_count_write", "event=0x04,umask=0x0c"),
    ("clockticks", "event=0xff"),
];

fn topology_list(list: &str) -> cosched_core::CpuSet {
    list.parse().unwrap()
}

/// Direction, `config` and lines per count of each event.
fn events(planned: &Planned) -> Vec<(Direction, u64, f64)> {
    let event = |event: &super::discovery::PlannedEvent| {
        let Registers([config, 0, 0]) = event.registers else {
            panic!("{event:?}")
        };
        (event.direction, config, event.lines_per_count)
    };
    planned.events.iter().map(event).collect()
}

/// PMU and CPU of each planned group, for each domain.
fn places(plan: &TrafficPlan) -> Vec<Result<Vec<(&str, u32)>, &NoMeter>> {
    fn of_domain(planned: &[Planned]) -> Vec<(&str, u32)> {
        planned
            .iter()
            .map(|one| (one.pmu.as_str(), one.cpu.0))
            .collect()
    }
    plan.iter()
        .map(|domain| domain.as_deref().map(of_domain))
        .collect()
}

#[test]
fn clients_count_data_reads_and_writes() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    let events_of = [
        ("data_reads", "event=0x01"),
        ("data_writes", "event=0x02"),
        ("gt_requests", "event=0x03"),
    ];
    tree.pmu("uncore_imc", 9, "0", &events_of, Some(MIB));
    let plan = tree.plan("0-3").unwrap();
    assert_eq!(places(&plan), [Ok(vec![("uncore_imc", 0)])]);
    let planned = &plan[0].as_ref().unwrap()[0];
    assert_eq!(
        (planned.type_id, events(planned)),
        (9, vec![(Reads, 1, 1.0), (Writes, 2, 1.0)])
    );
}

#[test]
fn clients_with_counters_that_always_run_count_all_controllers() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    let events_of = [
        ("data_read", "event=0xff,umask=0x20"),
        ("data_write", "event=0xff,umask=0x30"),
        ("data_total", "umask=0x10"),
    ];
    for n in 0..2 {
        // Since Alder Lake there is also a PMU with the other name, without events.
        tree.pmu(&format!("uncore_imc_{n}"), 30 + n, "0", &[], None);
        tree.pmu(
            &format!("uncore_imc_free_running_{n}"),
            40 + n,
            "0",
            &events_of,
            Some(MIB),
        );
    }
    let plan = tree.plan("0-3").unwrap();
    assert_eq!(
        places(&plan),
        [Ok(vec![
            ("uncore_imc_free_running_0", 0),
            ("uncore_imc_free_running_1", 0)
        ])]
    );
    assert_eq!(
        events(&plan[0].as_ref().unwrap()[1]),
        [(Reads, 0x20ff, 1.0), (Writes, 0x30ff, 1.0)]
    );
}

#[test]
fn servers_count_commands_and_nothing_twice() {
    let tree = Tree::new(&["0-3", "4-7"], &["0-3", "4-7"]);
    tree.server(2, "0,4");
    let running = [
        ("read", "event=0xff,umask=0x20"),
        ("write", "event=0xff,umask=0x21"),
    ];
    tree.pmu("uncore_imc_free_running_0", 50, "0,4", &running, Some(MIB));
    // An event of the whole controller beside one of a subchannel.
    tree.of_pmu(
        "uncore_imc_0",
        "events/cas_count_read_sch0",
        "event=0x05,umask=0xcf",
    );
    let plan = tree.plan("0-7").unwrap();
    let on = |cpu| Ok(vec![("uncore_imc_0", cpu), ("uncore_imc_1", cpu)]);
    assert_eq!(places(&plan), [on(0), on(4)]);
    for domain in &plan {
        for planned in domain.as_ref().unwrap() {
            assert_eq!(events(planned), [(Reads, 0x304, 1.0), (Writes, 0xc04, 1.0)]);
        }
    }
}

#[test]
fn subchannels_of_a_controller_are_added() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    let events_of = [
        ("cas_count_read_sch0", "event=0x05,umask=0xcf"),
        ("cas_count_read_sch1", "event=0x06,umask=0xcf"),
        ("cas_count_write_sch0", "event=0x05,umask=0xf0"),
        ("cas_count_write_sch1", "event=0x06,umask=0xf0"),
    ];
    tree.pmu("uncore_imc_0", 9, "0", &events_of, Some("1.220703125e-4"));
    let plan = tree.plan("0-3").unwrap();
    let found = events(&plan[0].as_ref().unwrap()[0]);
    assert_eq!(
        found,
        [
            (Reads, 0xcf05, 2.0),
            (Reads, 0xcf06, 2.0),
            (Writes, 0xf005, 2.0),
            (Writes, 0xf006, 2.0)
        ]
    );
}

#[test]
fn nehalem_and_early_servers_count_lines_without_a_scale() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    let qmc = [
        ("qmc_normal_reads_any", "event=0x2c,umask=0x0f"),
        ("qmc_writes_full_any", "event=0x2f,umask=0x0f"),
        ("clockticks", "event=0xff,umask=0x00"),
    ];
    tree.pmu("uncore", 9, "0", &qmc, None)
        .pmu("uncore_cbox_0", 8, "0", &[], None);
    let plan = tree.plan("0-3").unwrap();
    assert_eq!(
        events(&plan[0].as_ref().unwrap()[0]),
        [(Reads, 0xf2c, 1.0), (Writes, 0xf2f, 1.0)]
    );

    let tree = Tree::new(&["0-3"], &["0-3"]);
    tree.pmu("uncore_imc_0", 9, "0", &CAS, None);
    assert_eq!(
        events(&tree.plan("0-3").unwrap()[0].as_ref().unwrap()[0])[0].2,
        1.0
    );
}

#[test]
fn amd_controllers_have_no_event_names_and_belong_to_a_socket_each() {
    let tree = Tree::new(&["0-3", "4-7"], &["0-3", "4-7"]);
    for (n, mask) in [(0, "0"), (1, "0"), (2, "4"), (3, "4")] {
        let name = format!("amd_umc_{n}");
        tree.of_pmu(&name, "type", &format!("{}", 20 + n));
        tree.of_pmu(&name, "cpumask", mask);
        tree.of_pmu(&name, "format/event", "config:0-7");
        tree.of_pmu(&name, "format/rdwrmask", "config:8-9");
    }
    tree.of_pmu("amd_df", "type", "5");
    let plan = tree.plan("0-7").unwrap();
    let domains = [
        Ok(vec![("amd_umc_0", 0), ("amd_umc_1", 0)]),
        Ok(vec![("amd_umc_2", 4), ("amd_umc_3", 4)]),
    ];
    assert_eq!(places(&plan), domains);
    assert_eq!(
        events(&plan[1].as_ref().unwrap()[0]),
        [(Reads, 0x10a, 1.0), (Writes, 0x20a, 1.0)]
    );
}

#[test]
fn fields_lie_where_the_pmu_says() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    tree.server(1, "0")
        .of_pmu("uncore_imc_0", "format/umask", "config:32-39");
    let plan = tree.plan("0-3").unwrap();
    assert_eq!(events(&plan[0].as_ref().unwrap()[0])[0].1, 0x3_0000_0004);
}

#[test]
fn other_machines_say_what_was_looked_for() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    for pmu in [
        "cpu",
        "msr",
        "power",
        "uncore_cbox_0",
        "uncore_imcx",
        "uncore_imc_free_running_x",
    ] {
        tree.pmu(pmu, 9, "0", &CAS, Some(MIB));
    }
    let error = tree.plan("0-3").unwrap_err();
    assert_eq!(error.reason, Absence::NotTold);
    assert!(
        error
            .to_string()
            .contains("uncore_imc (cas_count_read, cas_count_write)"),
        "{error}"
    );
    tree.of_pmu("amd_df", "type", "5");
    let error = tree.plan("0-3").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("amd_umc, reads and writes can't be told apart"),
        "{error}"
    );
}

#[test]
fn a_restricted_run_counts_the_controllers_of_its_sockets() {
    let tree = Tree::new(&["0-3", "4-7"], &["0-3", "4-7"]);
    tree.server(1, "0,4");
    // The run may not use the CPUs that the PMU names.
    assert_eq!(
        places(&tree.plan("5-6").unwrap()),
        [Ok(vec![("uncore_imc_0", 4)])]
    );
    assert_eq!(
        places(&tree.plan("2,6").unwrap()),
        [Ok(vec![("uncore_imc_0", 0)]), Ok(vec![("uncore_imc_0", 4)])]
    );
    // Numbers interleave on some machines.
    let tree = Tree::new(&["0,2,4", "1,3,5"], &["0,2,4", "1,3,5"]);
    tree.server(1, "0-1");
    assert_eq!(
        places(&tree.plan("3-4").unwrap()),
        [Ok(vec![("uncore_imc_0", 1)]), Ok(vec![("uncore_imc_0", 0)])]
    );
}

#[test]
fn a_socket_with_several_memory_domains_cannot_be_counted() {
    // The first socket is split, the second is not.
    let tree = Tree::new(&["0-3", "4-7"], &["0-1", "2-3", "4-7"]);
    tree.server(2, "0,4");
    let plan = tree.plan("0-7").unwrap();
    let found = places(&plan);
    for split in &found[..2] {
        let error = split.as_ref().unwrap_err();
        assert_eq!(error.reason, Absence::NotTold);
        assert!(
            error
                .to_string()
                .contains("the socket of CPU 0 has 2 memory domains"),
            "{error}"
        );
    }
    assert_eq!(found[2], Ok(vec![("uncore_imc_0", 4), ("uncore_imc_1", 4)]));
    // The same for a run that uses only one of them.
    assert!(places(&tree.plan("3").unwrap())[0].is_err());
}

#[test]
fn a_memory_domain_of_two_sockets_needs_both() {
    for nodes in [&["0-7"][..], &[]] {
        let tree = Tree::new(&["0-3", "4-7"], nodes);
        tree.server(1, "0,4");
        assert_eq!(
            places(&tree.plan("0-7").unwrap()),
            [Ok(vec![("uncore_imc_0", 0), ("uncore_imc_0", 4)])]
        );
        tree.server(1, "0");
        let plan = tree.plan("0-7").unwrap();
        let error = plan[0].as_ref().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("names a CPU of the socket of CPUs 4-7"),
            "{error}"
        );
    }
}

#[test]
fn without_a_list_of_sockets_one_memory_domain_has_all() {
    let tree = Tree::new(&[], &["0-3"]);
    tree.file("sys/devices/system/cpu/online", "0-3");
    tree.server(1, "0");
    assert_eq!(
        places(&tree.plan("0-3").unwrap()),
        [Ok(vec![("uncore_imc_0", 0)])]
    );
    tree.file("sys/devices/system/node/node0/cpulist", "0-1");
    tree.file("sys/devices/system/node/node1/cpulist", "2-3");
    let plan = tree.plan("0-3").unwrap();
    assert!(places(&plan).iter().all(Result::is_err), "{plan:?}");
}

#[test]
fn a_controller_that_lacks_a_direction_takes_its_domain_with_it() {
    let tree = Tree::new(&["0-3", "4-7"], &["0-3", "4-7"]);
    tree.pmu("uncore_imc_0", 20, "0", &CAS, Some(MIB));
    tree.pmu("uncore_imc_1", 21, "4", &CAS, Some(MIB));
    tree.pmu("uncore_imc_2", 22, "4", &CAS[..1], Some(MIB));
    let plan = tree.plan("0-7").unwrap();
    let found = places(&plan);
    assert_eq!(found[0], Ok(vec![("uncore_imc_0", 0)]));
    let error = found[1].as_ref().unwrap_err();
    assert_eq!(error.reason, Absence::NoSuchEvent);
    assert!(
        error
            .to_string()
            .contains("uncore_imc_2 has no event for writes"),
        "{error}"
    );
}

#[test]
fn malformed_files_are_named_with_what_was_expected() {
    let cases = [
        ("type", "x", "the PMU's number"),
        ("cpumask", "x", "a list of CPUs"),
        ("format/umask", "config:x", "the bits of a field"),
        ("format/umask", "config:8", "wide enough"),
        ("events/cas_count_write", "what", "terms of an event"),
        ("events/cas_count_write", "event=?", "terms of an event"),
        ("events/cas_count_read.scale", "much", "MiB per count"),
        ("events/cas_count_read.scale", "-1", "MiB per count"),
        ("events/cas_count_read.unit", "Joules", "`MiB`"),
    ];
    for (file, text, expected) in cases {
        let tree = Tree::new(&["0-3"], &["0-3"]);
        tree.server(1, "0").of_pmu("uncore_imc_0", file, text);
        let error = tree
            .plan("0-3")
            .and_then(|mut plan| plan.remove(0))
            .unwrap_err();
        assert_eq!(error.reason, Absence::NotTold);
        let words = error.to_string();
        // A term without a value stands for 1, so `what` is a field that the PMU lacks.
        let named = if text == "what" { "format/what" } else { file };
        let expected = if text == "what" {
            "the bits of a field"
        } else {
            expected
        };
        assert!(
            words.contains(named) && words.contains(expected),
            "{file}: {words}"
        );
        assert!(text == "what" || words.contains(text), "{file}: {words}");
    }
    for (file, expected) in [
        ("type", "the PMU's number"),
        ("cpumask", "a list of CPUs"),
        ("format/event", "the bits of a field"),
        ("events/cas_count_read.unit", "`MiB`"),
    ] {
        let tree = Tree::new(&["0-3"], &["0-3"]);
        tree.server(1, "0");
        std::fs::remove_file(tree.root().path(&format!(
            "/sys/bus/event_source/devices/uncore_imc_0/{file}"
        )))
        .unwrap();
        let error = tree
            .plan("0-3")
            .and_then(|mut plan| plan.remove(0))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(file) && error.contains("does not exist") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn what_the_kernel_refuses_is_absent_with_its_reason() {
    let tree = Tree::new(&["0-3", "4-7"], &["0-3", "4-7"]);
    tree.server(2, "0,4");
    for (errno, reason) in [
        (libc::EACCES, Absence::NoPermission),
        (libc::EPERM, Absence::NoPermission),
        (libc::EINVAL, Absence::NoSuchEvent),
        (libc::EMFILE, Absence::CountersLost),
    ] {
        let refuse = |_: &EventAttributes, _: EventTarget, _: Option<BorrowedFd<'_>>| {
            Err(io::Error::from_raw_os_error(errno))
        };
        let error = TrafficMeter::open_by(&mut { refuse }, tree.plan("0-7").unwrap()).unwrap_err();
        assert_eq!(error.reason, reason);
        assert!(
            error.to_string().contains("uncore_imc_0 on CPU 0"),
            "{error}"
        );
        // Only the second controller of the second socket fails: no partial sum is reported.
        let mut opened = 0;
        let some =
            |attributes: &EventAttributes, target: EventTarget, _: Option<BorrowedFd<'_>>| {
                if (attributes.type_id, target) == (21, EventTarget::Cpu(4)) {
                    return Err(io::Error::from_raw_os_error(errno));
                }
                opened += 1;
                Ok(answers(&[&[2, 10, 10, 7, 3]]))
            };
        let mut meter = TrafficMeter::open_by(&mut { some }, tree.plan("0-7").unwrap()).unwrap();
        let problems: Vec<_> = meter
            .problems()
            .map(|problem| problem.map(|problem| problem.reason))
            .collect();
        assert_eq!(problems, [None, Some(reason)]);
        assert_eq!(read(&mut meter), [moved(14, 6), Traffic::absent(reason)]);
        assert_eq!(opened, 4 + 2);
    }
}

/// A descriptor that returns these words, one entry per read.
fn answers(reads: &[&[u64]]) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    for word in reads.iter().copied().flatten() {
        file.write_all(&word.to_ne_bytes()).unwrap();
    }
    file.rewind().unwrap();
    file.into()
}

fn moved(reads: u64, writes: u64) -> Traffic {
    Traffic {
        reads: Reading::Value(reads),
        writes: Reading::Value(writes),
    }
}

fn read(meter: &mut TrafficMeter) -> Vec<Traffic> {
    let mut out = Vec::new();
    meter.read(&mut out);
    out
}

#[test]
fn controllers_are_added_scaled_and_lost_together() {
    let tree = Tree::new(&["0-3"], &["0-3"]);
    tree.pmu("uncore_imc_0", 20, "0", &CAS, Some(MIB));
    // Half a line per count.
    tree.pmu("uncore_imc_1", 21, "0", &CAS, Some("3.0517578125e-5"));
    let mut asked = Vec::new();
    let open =
        |attributes: &EventAttributes, target: EventTarget, leader: Option<BorrowedFd<'_>>| {
            asked.push((attributes.clone(), target, leader.is_some()));
            Ok(match attributes.type_id {
                // In the third interval it got no counter, in the fourth it counts for half of the time.
                20 => answers(&[
                    &[2, 0, 0, 0, 0],
                    &[2, 100, 100, 50, 10],
                    &[2, 200, 100, 50, 10],
                    &[2, 300, 200, 100, 20],
                    &[2, 400, 300, 100, 20],
                ]),
                _ => answers(&[
                    &[2, 0, 0, 0, 0],
                    &[2, 100, 100, 200, 40],
                    &[2, 200, 200, 400, 41],
                    &[2, 300, 300, 600, 42],
                ]),
            })
        };
    let mut meter = TrafficMeter::open_by(&mut { open }, tree.plan("0-3").unwrap()).unwrap();
    let (leader, target, has_leader) = &asked[0];
    assert_eq!(
        (leader.type_id, leader.config, leader.scope),
        (20, 0x304, EventScope::Chip)
    );
    assert_eq!(
        (leader.start, leader.read, *target, *has_leader),
        (
            Some(EventStart::Now),
            ReadFormat::Group,
            EventTarget::Cpu(0),
            false
        )
    );
    assert_eq!(
        (asked[1].0.config, asked[1].0.start, asked[1].2),
        (0xc04, None, true)
    );
    assert_eq!(asked.len(), 4);

    assert_eq!(read(&mut meter), [moved(0, 0)]);
    assert_eq!(read(&mut meter), [moved(50 + 100, 10 + 20)]);
    assert_eq!(read(&mut meter), [Traffic::absent(Absence::NoCounterFree)]);
    assert_eq!(read(&mut meter), [moved(150 + 300, 30 + 21)]);
    // The second controller has stopped responding.
    assert_eq!(read(&mut meter), [Traffic::absent(Absence::CountersLost)]);
}

#[test]
fn real_events_are_read() {
    // The kernel's clock of CPU 0 replaces a controller: a nanosecond is a line.
    let tree = Tree::new(&["0"], &["0"]);
    tree.pmu(
        "uncore_imc",
        1,
        "0",
        &[("data_reads", "event=0x00"), ("data_writes", "event=0x00")],
        Some(MIB),
    );
    match TrafficMeter::open(&tree.root(), &tree.machine("0")) {
        Ok(mut meter) => {
            let (first, second) = (read(&mut meter), read(&mut meter));
            let values = |traffic: &[Traffic]| {
                (
                    traffic[0].reads.value().unwrap(),
                    traffic[0].writes.value().unwrap(),
                )
            };
            let (first, second) = (values(&first), values(&second));
            assert!(
                first.0 > 0 && second.0 > first.0 && second.1 > first.1,
                "{first:?} {second:?}"
            );
        }
        Err(error) => {
            assert_eq!(error.reason, Absence::NoPermission, "{error}");
            drop(io::stderr().write_fmt(format_args!("skipped, because {error}\n")));
        }
    }
}
