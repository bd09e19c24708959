//! Requirements of a scheduler in the kernel.

use cosched_linux::root::Root;
use thiserror::Error;

/// Why no scheduler can be loaded into the kernel here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lack {
    /// This program was built without it.
    #[error("this cosched was built without sched_ext")]
    NotBuilt,
    /// The kernel has no sched_ext.
    #[error("Linux {release} has no sched_ext")]
    NoClass {
        /// The kernel's release.
        release: String,
    },
    /// The kernel has no type information.
    #[error("the kernel has no type information (CONFIG_DEBUG_INFO_BTF)")]
    NoTypes,
    /// Its sched_ext is that of Linux 6.12.
    #[error("the sched_ext of Linux {release} is too old: it has no {CALL}, which came with 6.13")]
    TooOld {
        /// The kernel's release.
        release: String,
    },
    /// Another scheduler is loaded.
    #[error("another scheduler is loaded: {name}")]
    Other {
        /// Its name.
        name: String,
    },
    /// The caller may not load one.
    #[error("this user may not load a scheduler (CAP_BPF and CAP_PERFMON)")]
    NoPermission,
}

impl Lack {
    /// More permissions would help.
    pub fn is_permission(&self) -> bool {
        *self == Lack::NoPermission
    }

    /// What would help.
    pub fn remedy(&self) -> &'static str {
        match self {
            Lack::NotBuilt => {
                "cargo install --path crates/cli --features sched-ext (needs clang 16 or later, libelf and zlib)"
            }
            Lack::NoClass { .. } => "boot with CONFIG_SCHED_CLASS_EXT",
            Lack::NoTypes => "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
            Lack::TooOld { .. } => "boot Linux 6.13 or later",
            Lack::Other { .. } => {
                "end the program that loaded it (systemctl stop scx, or whatever started it)"
            }
            Lack::NoPermission => "run cosched as root",
        }
    }
}

/// The youngest call that the scheduler can't do without.
const CALL: &str = "scx_bpf_dsq_insert";

/// Bits of the set of effective capabilities.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The first missing requirement; `None` if a scheduler can probably be loaded. A build without it counts only where another
/// build would work.
pub fn lack(root: &Root) -> Option<Lack> {
    match lack_of_machine(root) {
        Some(lack @ (Lack::NoClass { .. } | Lack::NoTypes | Lack::TooOld { .. })) => Some(lack),
        _ if !crate::SUPPORTED => Some(Lack::NotBuilt),
        other => other,
    }
}

/// The first requirement that the machine lacks, for any build.
fn lack_of_machine(root: &Root) -> Option<Lack> {
    let release = text(root, "/proc/sys/kernel/osrelease").unwrap_or_else(|| "?".to_owned());
    let Some(state) = of_class(root, "state") else {
        return Some(Lack::NoClass { release });
    };
    let Ok(types) = std::fs::read(root.path("/sys/kernel/btf/vmlinux")) else {
        return Some(Lack::NoTypes);
    };
    // Names stand between zeros there.
    let call = [b"\0", CALL.as_bytes(), b"\0"].concat();
    if !types.windows(call.len()).any(|part| part == call) {
        return Some(Lack::TooOld { release });
    }
    if state != "disabled" {
        // The scheduler in charge is called the root there.
        let name = of_class(root, "root/ops");
        let name = name.filter(|name| !name.is_empty());
        return Some(Lack::Other {
            name: name.unwrap_or_else(|| format!("its state is {state}")),
        });
    }
    (!may_load(root)).then_some(Lack::NoPermission)
}

/// Whether this process has the capabilities to load a scheduler.
fn may_load(root: &Root) -> bool {
    let status = text(root, "/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let caps = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    caps.is_some_and(|caps| {
        has(caps, CAP_SYS_ADMIN) || has(caps, CAP_BPF) && has(caps, CAP_PERFMON)
    })
}

fn has(caps: u64, cap: u32) -> bool {
    caps >> cap & 1 == 1
}

/// What the kernel says of its class of loaded schedulers.
fn of_class(root: &Root, file: &str) -> Option<String> {
    text(root, &["/sys/kernel/sched_ext", file].join("/"))
}

fn text(root: &Root, path: &str) -> Option<String> {
    root.text(path, "sched_ext").ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.12.0-amd64\n");
        assert_eq!(
            lack_of_machine(&root),
            Some(Lack::NoClass {
                release: "6.12.0-amd64".to_owned()
            })
        );
        write("sys/kernel/sched_ext/state", "disabled\n");
        assert_eq!(lack_of_machine(&root), Some(Lack::NoTypes));
        write(
            "sys/kernel/btf/vmlinux",
            "\0scx_bpf_dispatch\0scx_bpf_dsq_insert_vtime\0",
        );
        assert_eq!(
            lack_of_machine(&root),
            Some(Lack::TooOld {
                release: "6.12.0-amd64".to_owned()
            })
        );
        write("sys/kernel/btf/vmlinux", "\0scx_bpf_dsq_insert\0");
        write("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
        assert_eq!(lack_of_machine(&root), Some(Lack::NoPermission));
        for caps in ["0000000000200000", "000000c000000000"] {
            write("proc/self/status", &format!("CapEff:\t{caps}\n"));
            assert_eq!(lack_of_machine(&root), None, "{caps}");
        }
        write("sys/kernel/sched_ext/state", "enabled\n");
        assert_eq!(
            lack_of_machine(&root),
            Some(Lack::Other {
                name: "its state is enabled".to_owned()
            })
        );
        write(
            &["sys/kernel/sched_ext", "root", "ops"].join("/"),
            "lavd_1.0\n",
        );
        assert_eq!(
            lack_of_machine(&root),
            Some(Lack::Other {
                name: "lavd_1.0".to_owned()
            })
        );
    }
}
