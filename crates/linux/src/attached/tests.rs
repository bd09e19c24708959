//! What is sampled on a small machine.

use super::{Sampled, Sampler, Selection};
use crate::events::MachineEvents;
use crate::root::Root;
use cosched_core::{Absence, CpuId, CpuShare, Nanos, Reading};
use std::fs;
use std::path::Path;

/// A process or a thread.
#[derive(Clone, Copy)]
struct Fake {
    pid: i32,
    parent: i32,
    state: char,
    /// CPU time in ticks: its own, and of waited-for children.
    ticks: (u64, u64),
    threads: u32,
    start: u64,
    pages: u64,
    cpu: u32,
}

const SPINNER: Fake = Fake {
    pid: 10,
    parent: 1,
    state: 'R',
    ticks: (100, 0),
    threads: 1,
    start: 5,
    pages: 3,
    cpu: 1,
};

impl Fake {
    fn line(&self) -> String {
        let (own, children) = self.ticks;
        let [parent, pid] = [self.parent, self.pid];
        format!(
            "{pid} (x) {} {parent} {pid} {pid} 0 0 0 0 0 0 0 {own} 0 {children} 0 20 0 {} 0 {} 9 {} {}{}",
            self.state,
            self.threads,
            self.start,
            self.pages,
            "0 ".repeat(14),
            self.cpu
        )
    }

    /// Writes the process, with what it used and waited in milliseconds.
    fn write(&self, dir: &Path, used_ms: u64, waited_ms: u64) {
        let folder = dir.join(format!("proc/{}", self.pid));
        fs::create_dir_all(&folder).unwrap();
        self.write_in(&folder, used_ms, waited_ms);
        fs::write(folder.join("cmdline"), "spin\0").unwrap();
    }

    fn write_in(&self, folder: &Path, used_ms: u64, waited_ms: u64) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("stat"), self.line()).unwrap();
        let times = format!("{used_ms}000000 {waited_ms}000000 9\n");
        fs::write(folder.join("schedstat"), times).unwrap();
        fs::write(folder.join("status"), "Name:\tx\nCpus_allowed_list:\t1-2\n").unwrap();
    }
}

/// A small machine, and a sampler of these processes.
fn machine(pids: &[i32], fakes: &[Fake]) -> (tempfile::TempDir, Sampler) {
    let dir = tempfile::tempdir().unwrap();
    for fake in fakes {
        fake.write(dir.path(), 1_000, 500);
    }
    let root = Root::new(dir.path());
    let selection = [Selection::Pids(pids.to_vec())];
    let sampler = Sampler::new(&root, &selection, MachineEvents::default()).unwrap();
    (dir, sampler)
}

/// The only subject's sample.
fn only(sampled: &Sampled) -> &cosched_core::SubjectSample {
    assert_eq!(sampled.observed.subjects.len(), 1);
    &sampled.observed.subjects[0]
}

fn seconds(s: u64) -> Nanos {
    Nanos::from_ms(1_000 * s)
}

#[test]
fn time_used_and_waited_belongs_to_the_cpu_of_the_last_run() {
    let (dir, mut sampler) = machine(&[10], &[SPINNER]);
    fs::write(dir.path().join("proc/stat"), "cpu0 100 0 0 50 0 0 0 0\n").unwrap();
    let first = sampler.look_at(seconds(100));
    assert_eq!(
        (first.observed.length, only(&first).on.len()),
        (Nanos::ZERO, 0)
    );
    assert_eq!(only(&first).grew, Reading::Absent(Absence::NotYetMeasured));
    assert_eq!(
        first.observed.cpus,
        Reading::Absent(Absence::NotYetMeasured)
    );
    let now = Fake {
        ticks: (180, 0),
        cpu: 2,
        pages: 5,
        ..SPINNER
    };
    now.write(dir.path(), 1_800, 1_700);
    fs::write(dir.path().join("proc/stat"), "cpu0 250 0 0 60 0 0 0 40\n").unwrap();
    let second = sampler.look_at(seconds(102));
    let sample = only(&second);
    assert_eq!(second.observed.length, seconds(2));
    let share = CpuShare {
        cpu: CpuId(2),
        used: Nanos::from_ms(800),
        waited: Nanos::from_ms(1_200),
    };
    assert_eq!(sample.on, [share]);
    assert_eq!(sample.cpu_time, Nanos::from_ms(800));
    assert_eq!(sample.waited, Reading::Value(Nanos::from_ms(1_200)));
    assert_eq!((sample.wants, sample.threads, sample.processes), (1, 1, 1));
    let page = rustix::param::page_size() as i64;
    assert_eq!(sample.grew, Reading::Value(2 * page));
    assert_eq!(sample.counts.ipc(), Reading::Absent(Absence::NoCounters));
    assert_eq!(sample.pressure.cpu, Reading::Absent(Absence::NotTold));
    let cpus = second.observed.cpus.value().unwrap();
    assert_eq!(
        (cpus[0].busy, cpus[0].stolen),
        (Nanos::from_ms(1_500), Nanos::from_ms(400))
    );
}

#[test]
fn a_thread_that_never_gets_its_cpu_waits_all_the_time() {
    let (dir, mut sampler) = machine(&[10], &[SPINNER]);
    sampler.look_at(seconds(100));
    let starved = only(&sampler.look_at(seconds(103))).waited;
    assert_eq!(starved, Reading::Value(seconds(3)));
    let sleeps = Fake {
        state: 'S',
        ..SPINNER
    };
    sleeps.write(dir.path(), 1_000, 500);
    let slept = sampler.look_at(seconds(106));
    assert_eq!(only(&slept).waited, Reading::Value(Nanos::ZERO));
    assert_eq!(only(&slept).wants, 0);
}

#[test]
fn a_kernel_that_does_not_count_waits_says_so() {
    let (dir, mut sampler) = machine(&[10], &[SPINNER]);
    let schedstat = dir.path().join("proc/10/schedstat");
    fs::write(&schedstat, "0 0 0\n").unwrap();
    sampler.look_at(seconds(100));
    let busy = Fake {
        ticks: (150, 0),
        ..SPINNER
    };
    busy.write(dir.path(), 0, 0);
    fs::write(&schedstat, "0 0 0\n").unwrap();
    let sampled = sampler.look_at(seconds(102));
    let sample = only(&sampled);
    assert_eq!(sample.waited, Reading::Absent(Absence::NotTold));
    assert_eq!(sample.on[0].used, Nanos::from_ms(500), "by clock ticks");
}

#[test]
fn each_thread_counts_where_it_ran() {
    let process = Fake {
        threads: 2,
        state: 'S',
        ..SPINNER
    };
    let (dir, mut sampler) = machine(&[10], &[process]);
    let thread = |tid: i32, cpu: u32, used_ms: u64, waited_ms: u64| {
        let fake = Fake {
            pid: tid,
            cpu,
            ..SPINNER
        };
        let folder = dir.path().join(format!("proc/10/task/{tid}"));
        fake.write_in(&folder, used_ms, waited_ms);
    };
    thread(10, 0, 10, 0);
    thread(11, 1, 20, 0);
    sampler.look_at(seconds(100));
    let busy = Fake {
        ticks: (200, 0),
        ..process
    };
    busy.write(dir.path(), 10, 0);
    thread(11, 1, 1_020, 300);
    thread(12, 2, 400, 0);
    let sampled = sampler.look_at(seconds(102));
    let on = only(&sampled).on.iter();
    let on: Vec<(u32, u64)> = on.map(|on| (on.cpu.0, on.used.0 / 1_000_000)).collect();
    assert_eq!(on, [(0, 0), (1, 1_000), (2, 400)]);
    assert_eq!(only(&sampled).wants, 3);
}

#[test]
fn the_time_of_children_that_ended_counts_once() {
    let shell = Fake {
        state: 'S',
        ..SPINNER
    };
    let child = Fake {
        pid: 11,
        parent: 10,
        ticks: (50, 0),
        ..shell
    };
    let grandchild = Fake {
        pid: 12,
        parent: 11,
        ticks: (30, 0),
        ..shell
    };
    let (dir, mut sampler) = machine(&[10], &[shell, child, grandchild]);
    sampler.look_at(seconds(100));
    // Both end: they used 10 and 5 ticks more. A child that was never seen used 20.
    for pid in ["11", "12"] {
        fs::remove_dir_all(dir.path().join("proc").join(pid)).unwrap();
    }
    let waited = Fake {
        ticks: (101, 60 + 35 + 20),
        ..shell
    };
    waited.write(dir.path(), 1_010, 500);
    let sampled = sampler.look_at(seconds(102));
    assert_eq!(
        only(&sampled).cpu_time,
        Nanos::from_ms(10 * (1 + 10 + 5 + 20))
    );
    // A child that started in the interval counts from its start.
    let young = Fake {
        pid: 13,
        parent: 10,
        ticks: (7, 0),
        start: 10_300,
        ..shell
    };
    young.write(dir.path(), 70, 0);
    let sampled = sampler.look_at(seconds(104));
    assert_eq!(only(&sampled).cpu_time, Nanos::from_ms(70));
}

#[test]
fn a_subject_that_has_ended_is_named_once() {
    let other = Fake { pid: 20, ..SPINNER };
    let (dir, mut sampler) = machine(&[10, 20], &[SPINNER, other]);
    assert_eq!(sampler.look_at(seconds(100)).subjects.len(), 2);
    let zombie = Fake {
        pid: 20,
        state: 'Z',
        ..SPINNER
    };
    zombie.write(dir.path(), 1_000, 500);
    let sampled = sampler.look_at(seconds(102));
    assert_eq!(
        (sampled.ended, sampled.subjects.len()),
        (vec!["spin 20".to_owned()], 1)
    );
    // Its number is given away.
    let later = Fake {
        pid: 20,
        start: 77_777,
        ..SPINNER
    };
    fs::remove_dir_all(dir.path().join("proc/20")).unwrap();
    later.write(dir.path(), 0, 0);
    for at in [104, 106] {
        let sampled = sampler.look_at(seconds(at));
        assert_eq!((sampled.ended.len(), sampled.subjects.len()), (0, 1));
    }
}
