//! How long the disk has worked for each job: its busy time, shared out by bytes.

use crate::root::Root;
use cosched_core::{Absence, Nanos, Reading, TaskId};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a sector in the kernel's counts, whatever the disk's are.
const SECTOR: u64 = 512;

/// The disk of the working directory.
pub(crate) struct Disk {
    /// Its counts; `None` if the kernel tells of no disk.
    counts: Option<PathBuf>,
    last: Counts,
    jobs: BTreeMap<TaskId, Job>,
}

/// What a disk has done so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    busy: Nanos,
    bytes: u64,
}

/// What is known of a job.
struct Job {
    bytes: u64,
    time: Reading<Nanos>,
}

impl Disk {
    pub(crate) fn of_working_directory(root: &Root) -> Disk {
        let here = std::fs::metadata(".").ok();
        let counts = here.and_then(|here| counts_of(root, here.dev()));
        Disk {
            last: counts.as_deref().and_then(read).unwrap_or_default(),
            counts,
            jobs: BTreeMap::new(),
        }
    }

    /// Whether the kernel tells how long it is busy.
    pub(crate) fn is_known(&self) -> bool {
        self.counts.is_some()
    }

    /// Shares out the busy time since the last call by the bytes that all live jobs have moved since their starts. Others
    /// have what the disk moved beyond that. A write counts when the job makes it, which can be before the disk does.
    pub(crate) fn share_out(&mut self, moved: &[(TaskId, Reading<u64>)]) {
        let Some(now) = self.counts.as_deref().and_then(read) else {
            return;
        };
        let busy = now.busy - self.last.busy;
        let by_disk = now.bytes.saturating_sub(self.last.bytes);
        self.last = now;
        let mut parts = Vec::new();
        for &(task, bytes) in moved {
            let job = self.jobs.entry(task).or_insert(Job {
                bytes: 0,
                time: Reading::Value(Nanos::ZERO),
            });
            match bytes {
                // A process that ended can take its count along.
                Reading::Value(bytes) => {
                    parts.push((task, bytes.saturating_sub(job.bytes)));
                    job.bytes = bytes;
                }
                Reading::Absent(why) => job.time = Reading::Absent(why),
            }
        }
        let by_jobs: u64 = parts.iter().map(|&(_, bytes)| bytes).sum();
        let all = by_jobs.max(by_disk).max(1);
        for (task, bytes) in parts {
            let part = u128::from(busy.0) * u128::from(bytes) / u128::from(all);
            if let Some(job) = self.jobs.get_mut(&task) {
                job.time = job.time.map(|time| time + Nanos(part as u64));
            }
        }
    }

    /// Forgets a job that has ended.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.jobs.remove(&task);
    }

    /// How long it has worked for a job.
    pub(crate) fn time(&self, task: TaskId) -> Reading<Nanos> {
        if !self.is_known() {
            return Reading::Absent(Absence::NotTold);
        }
        let job = self.jobs.get(&task);
        job.map_or(Reading::Absent(Absence::NotStarted), |job| job.time)
    }
}

/// The file with the counts of the whole disk of a device.
fn counts_of(root: &Root, device: u64) -> Option<PathBuf> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let mut folder = root.path(&format!("/sys/dev/block/{major}:{minor}"));
    // A mapped device has its counts, but others use the disk below it too.
    while let Some(below) = only_entry(&folder.join("slaves")) {
        folder = below;
    }
    if folder.join("partition").exists() {
        folder.push("..");
    }
    let counts = folder.join("stat");
    read(&counts).map(|_| counts)
}

fn only_entry(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?;
    let first = entries.next()?.ok()?.path();
    entries.next().is_none().then_some(first)
}

/// Linux, `Documentation/block/stat.rst`.
fn read(counts: &Path) -> Option<Counts> {
    let text = std::fs::read_to_string(counts).ok()?;
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let sectors = numbers.get(2)?.saturating_add(*numbers.get(6)?);
    Some(Counts {
        busy: Nanos::from_ms(*numbers.get(9)?),
        bytes: sectors.saturating_mul(SECTOR),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, busy_ms: u64, sectors: u64) {
        let text = format!("9 9 {sectors} 9 9 9 0 9 0 {busy_ms} 9 9\n");
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_whole_disk_is_found_behind_a_mapped_device_and_a_partition() {
        let tree = tempfile::tempdir().unwrap();
        let partition = tree.path().join("sys/dev/block/253:0/slaves/sda/sda1");
        std::fs::create_dir_all(&partition).unwrap();
        let root = Root::new(tree.path());
        let mapped = libc::makedev(253, 0);
        assert!(counts_of(&root, mapped).is_none());
        let disk = partition.parent().unwrap();
        write(&disk.join("stat"), 0, 0);
        std::os::unix::fs::symlink(
            "253:0/slaves/sda/sda1",
            tree.path().join("sys/dev/block/8:1"),
        )
        .unwrap();
        std::fs::write(partition.join("partition"), "1").unwrap();
        for device in [mapped, libc::makedev(8, 1)] {
            let found = counts_of(&root, device).unwrap();
            assert_eq!(found.canonicalize().unwrap(), disk.join("stat"));
        }
        assert!(counts_of(&root, libc::makedev(0, 40)).is_none());
    }

    #[test]
    fn busy_time_is_shared_out_by_bytes() {
        let tree = tempfile::tempdir().unwrap();
        let counts = tree.path().join("stat");
        write(&counts, 50, 10);
        let mut disk = Disk {
            last: read(&counts).unwrap(),
            counts: Some(counts.clone()),
            jobs: BTreeMap::new(),
        };
        let [a, b, c] = [0, 1, 2].map(TaskId);
        let bytes = Reading::Value::<u64>;
        let us = |us: u64| Reading::Value(Nanos(us * 1_000));
        let why = Absence::NoPermission;
        assert_eq!(disk.time(a), Reading::Absent(Absence::NotStarted));
        // Half of what the disk moved was for others.
        write(&counts, 150, 18);
        disk.share_out(&[
            (a, bytes(1_536)),
            (b, bytes(512)),
            (c, Reading::Absent(why)),
        ]);
        assert_eq!(disk.time(a), us(37_500));
        assert_eq!(disk.time(b), us(12_500));
        assert_eq!(disk.time(c), Reading::Absent(why));
        // What one wrote has not reached the disk yet, and a process of the other ended.
        write(&counts, 170, 18);
        disk.share_out(&[(a, bytes(9_999)), (b, bytes(0))]);
        assert_eq!(disk.time(a), us(57_500));
        assert_eq!(disk.time(b), us(12_500));
    }
}
