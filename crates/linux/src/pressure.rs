//! The pressure on CPUs, memory and disks, by the kernel's own measure (PSI).

use crate::root::Root;
use cosched_core::{Absence, Pressure, Reading};
use std::path::Path;

/// Share of the last 10 seconds in which some task waited for memory, in per cent; `None` if the kernel does not report it.
pub(crate) fn memory(root: &Root) -> Option<f64> {
    some(&root.path("/proc/pressure/memory"))
}

/// The pressure of a group, or of the machine where the group has none of its own.
pub(crate) fn of_group(root: &Root, group: Option<&Path>) -> Pressure {
    let own = group.filter(|group| group.join("memory.pressure").exists());
    let file = |of: &str| match own {
        Some(group) => group.join(format!("{of}.pressure")),
        None => root.path(&format!("/proc/pressure/{of}")),
    };
    let share = |of: &str| Reading::from_option(some(&file(of)), Absence::NotTold);
    Pressure {
        of_machine: own.is_none(),
        cpu: share("cpu"),
        memory: share("memory"),
        io: share("io"),
    }
}

/// The share of the last 10 seconds in which some task waited, in per cent.
fn some(file: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(file).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let mut words = some.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_last_seconds_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(memory(&root), None);
        std::fs::create_dir_all(dir.path().join("proc/pressure")).unwrap();
        let full = "full avg10=1.00 avg60=0.00 avg300=0.00 total=5\n";
        for (text, pressure) in [
            (
                format!("some avg10=12.34 avg60=3.00 avg300=0.50 total=99\n{full}"),
                Some(12.34),
            ),
            (full.to_owned(), None),
            ("some avg60=1\n".to_owned(), None),
        ] {
            std::fs::write(dir.path().join("proc/pressure/memory"), &text).unwrap();
            assert_eq!(memory(&root), pressure, "{text:?}");
        }
    }

    #[test]
    fn a_group_without_pressure_has_that_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let (root, group) = (Root::new(dir.path()), dir.path().join("group"));
        std::fs::create_dir_all(dir.path().join("proc/pressure")).unwrap();
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(dir.path().join("proc/pressure/io"), "some avg10=7.00\n").unwrap();
        let machine = of_group(&root, Some(&group));
        assert_eq!(
            (machine.of_machine, machine.io),
            (true, Reading::Value(7.0))
        );
        assert_eq!(machine.cpu, Reading::Absent(Absence::NotTold));
        std::fs::write(group.join("memory.pressure"), "some avg10=30.50 total=1\n").unwrap();
        let own = of_group(&root, Some(&group));
        assert_eq!((own.of_machine, own.memory), (false, Reading::Value(30.5)));
        assert_eq!(own.io, Reading::Absent(Absence::NotTold));
    }
}
