//! The identity and kind of this machine, and its kernel.

use crate::meminfo;
use crate::root::Root;
use crate::topology;

/// The name of this host; `None` if unknown.
pub fn host_name(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/hostname")
}

/// The release of the kernel, as `uname -r` prints it; `None` if unknown.
pub fn kernel_release(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/osrelease")
}

/// The name and version of the distribution; `None` if unknown.
pub fn distribution(root: &Root) -> Option<String> {
    let fields = told(root, "/etc/os-release")?;
    let mut fields = fields.lines();
    let name = fields.find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// The identity of this boot of the machine; `None` if unknown.
pub fn boot(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/random/boot_id")
}

/// The kind of this machine, as relevant for the time and memory of a program: the `name` of its processor, the number
/// of its CPUs, and its memory. Machines of one kind have the same text, wherever they are and whichever CPUs a run may
/// use.
///
/// Memory is rounded up to one of eight sizes between powers of two, because the kernel's own share differs slightly
/// between its versions.
pub fn machine_kind(root: &Root, name: &str) -> String {
    let cpus = topology::online(root)
        .map(|cpus| format!(", {} CPUs", cpus.len()))
        .unwrap_or_default();
    let memory = meminfo::read(root)
        .ok()
        .map(|memory| memory.total.div_ceil(1 << 30).max(1));
    let memory = memory.map(|gib| {
        let step = (gib.next_power_of_two() / 8).max(1);
        format!(", {} GiB", gib.div_ceil(step) * step)
    });
    format!("{name}{cpus}{}", memory.unwrap_or_default())
}

fn told(root: &Root, file: &str) -> Option<String> {
    root.text(file, "this machine")
        .ok()?
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_kind_are_told_alike() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(machine_kind(&root, "Xeon"), "Xeon");
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu")).unwrap();
        std::fs::write(
            dir.path().join("sys/devices/system/cpu/online"),
            "0-7,16-23\n",
        )
        .unwrap();
        for (kb, gib) in [
            (24_000_000u64, 24),
            (24_400_000, 24),
            (263_000_000, 256),
            (900_000, 1),
            (1_583_000_000, 1_536),
        ] {
            let text = format!("MemTotal: {kb} kB\nMemAvailable: 1 kB\n");
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
            assert_eq!(
                machine_kind(&root, "Xeon"),
                format!("Xeon, 16 CPUs, {gib} GiB")
            );
        }
    }

    #[test]
    fn what_the_kernel_tells_of_itself() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let tell = [host_name, kernel_release, boot, distribution];
        assert_eq!(tell.map(|of| of(&root)), [None, None, None, None]);
        let folder = dir.path().join("proc/sys/kernel");
        std::fs::create_dir_all(folder.join("random")).unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        for (file, text) in [
            (
                "../../../etc/os-release",
                "ID=x\nPRETTY_NAME=\"X Linux 12 (y)\"\n",
            ),
            ("hostname", "node7\n"),
            ("osrelease", "6.18.44-x\n"),
            ("random/boot_id", "5f-1\n"),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let all = tell.map(|of| of(&root).unwrap());
        assert_eq!(all, ["node7", "6.18.44-x", "5f-1", "X Linux 12 (y)"]);
        std::fs::write(folder.join("hostname"), "\n").unwrap();
        assert_eq!(host_name(&root), None);
    }
}
