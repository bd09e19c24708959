//! How often and for how long the processor slowed its cores down since they were too hot, by the kernel's counts (Intel
//! only). Read before and after a run, they say whether it was slowed down so.

use crate::root::Root;
use cosched_core::{Absence, CpuSet, Nanos, Reading};

/// The files of a CPU. The kernel keeps each count for each CPU, though siblings share a core and all share a package. An
/// event is counted when it begins, its time when it ends.
const FILES: [&str; 4] = [
    "core_throttle_count",
    "package_throttle_count",
    "core_throttle_total_time_ms",
    "package_throttle_total_time_ms",
];
const ITEM: &str = "throttling";

/// Counts since the machine was started, of each CPU in question and in the order of the files; `None` where the kernel
/// does not have the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleCounts {
    of_cpus: Vec<[Option<u64>; FILES.len()]>,
}

/// What happened between two instants to the core or package that was throttled most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// Number of times that it began.
    pub events: u64,
    /// How long it lasted, of what had ended; absent where the kernel counts events only (before Linux 5.5).
    pub time: Reading<Nanos>,
}

/// Reads the counts of these CPUs; absent unless the kernel has them for all of these.
pub fn read(root: &Root, cpus: &CpuSet) -> Reading<ThrottleCounts> {
    let mut of_cpus = Vec::new();
    for cpu in cpus.iter() {
        let mut counts = [None; FILES.len()];
        for (count, file) in counts.iter_mut().zip(FILES) {
            let path = format!(
                "/sys/devices/system/cpu/cpu{}/thermal_throttle/{file}",
                cpu.0
            );
            match root.number(&path, ITEM) {
                Ok(read) => *count = read,
                Err(error) if error.is_permission() => {
                    return Reading::Absent(Absence::NoPermission);
                }
                Err(_) => return Reading::Absent(Absence::NotTold),
            }
        }
        if counts[0].is_none() {
            return Reading::Absent(Absence::NotTold);
        }
        of_cpus.push(counts);
    }
    Reading::Value(ThrottleCounts { of_cpus })
}

impl ThrottleCounts {
    /// What happened since `earlier`, which is of the same CPUs; absent when a count went backwards, or is no longer there.
    pub fn since(&self, earlier: &ThrottleCounts) -> Reading<Throttled> {
        // Whoever shares a core or a package tells the same again, so that only the greatest count is one core's.
        let mut most = [None; FILES.len()];
        for (now, before) in self.of_cpus.iter().zip(&earlier.of_cpus) {
            for (most, counts) in most.iter_mut().zip(now.iter().zip(before)) {
                let past = match counts {
                    (None, None) => continue,
                    (Some(now), Some(before)) => match now.checked_sub(*before) {
                        Some(past) => past,
                        None => return Reading::Absent(Absence::WentBackwards),
                    },
                    _ => return Reading::Absent(Absence::NotTold),
                };
                *most = (*most).max(Some(past));
            }
        }
        let [core, package, core_ms, package_ms] = most;
        match core.max(package) {
            Some(events) if self.of_cpus.len() == earlier.of_cpus.len() => {
                let time = core_ms
                    .max(package_ms)
                    .map(|ms| Nanos(ms.saturating_mul(1_000_000)));
                Reading::Value(Throttled {
                    events,
                    time: Reading::from_option(time, Absence::NotTold),
                })
            }
            _ => Reading::Absent(Absence::NotTold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these counts of its CPUs, in the order of [`FILES`].
    fn tree(cpus: &[&[u64]]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (cpu, counts) in cpus.iter().enumerate() {
            let folder = dir
                .path()
                .join(format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle"));
            std::fs::create_dir_all(&folder).unwrap();
            for (file, count) in FILES.iter().zip(*counts) {
                std::fs::write(folder.join(file), format!("{count}\n")).unwrap();
            }
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    fn counts(cpus: &[&[u64]], of: &str) -> Reading<ThrottleCounts> {
        read(&tree(cpus).1, &of.parse().unwrap())
    }

    fn between(before: &[&[u64]], after: &[&[u64]], of: &str) -> Reading<Throttled> {
        let [before, after] = [before, after].map(|cpus| counts(cpus, of).value().expect("counts"));
        after.since(&before)
    }

    #[test]
    fn the_core_that_was_throttled_most_counts_once() {
        // CPUs 0 and 1 are siblings, and all are of one package; CPU 3 is not the run's.
        let before: [&[u64]; 4] = [
            &[10, 2, 500, 7],
            &[10, 2, 500, 7],
            &[0, 2, 0, 7],
            &[0, 2, 0, 7],
        ];
        let after: [&[u64]; 4] = [
            &[14, 3, 900, 57],
            &[14, 3, 900, 57],
            &[1, 3, 20, 57],
            &[90, 3, 9_000, 57],
        ];
        let throttled = |events, ms: u64| {
            Reading::Value(Throttled {
                events,
                time: Reading::Value(Nanos::from_ms(ms)),
            })
        };
        assert_eq!(between(&before, &after, "0-2"), throttled(4, 400));
        assert_eq!(
            between(&before, &after, "2"),
            throttled(1, 50),
            "the package for longer than the core"
        );
        assert_eq!(between(&before, &before, "0-3"), throttled(0, 0));
    }

    #[test]
    fn older_kernels_count_events_only() {
        let told = between(&[&[1, 4]], &[&[3, 4]], "0");
        assert_eq!(
            told,
            Reading::Value(Throttled {
                events: 2,
                time: Reading::Absent(Absence::NotTold)
            })
        );
        assert_eq!(
            between(&[&[1]], &[&[1]], "0")
                .value()
                .map(|throttled| throttled.events),
            Some(0)
        );
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let (ok, gone) = ([5, 5, 5, 5], Reading::Absent(Absence::NotTold));
        assert_eq!(
            counts(&[], "0"),
            Reading::Absent(Absence::NotTold),
            "a virtual machine"
        );
        assert_eq!(
            counts(&[&ok, &[]], "0-1"),
            Reading::Absent(Absence::NotTold),
            "a CPU is offline"
        );
        assert!(counts(&[&ok, &[]], "0").is_value());
        for at in 0..4 {
            let mut less = ok;
            less[at] = 4;
            assert_eq!(
                between(&[&ok, &ok], &[&ok, &less], "0-1"),
                Reading::Absent(Absence::WentBackwards),
                "{at}"
            );
        }
        assert_eq!(
            between(&[&ok], &[&ok[..3]], "0"),
            gone,
            "a count is no longer there"
        );
        assert_eq!(between(&[&ok[..2]], &[&ok], "0"), gone);
        let (dir, root) = tree(&[&ok]);
        std::fs::write(
            dir.path()
                .join("sys/devices/system/cpu/cpu0/thermal_throttle")
                .join(FILES[2]),
            "long",
        )
        .unwrap();
        assert_eq!(
            read(&root, &"0".parse().unwrap()),
            Reading::Absent(Absence::NotTold)
        );
    }
}
