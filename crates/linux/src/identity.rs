//! Which machine this is, and which kernel it runs.

use crate::root::Root;

/// The name of this host; `None` if the kernel does not tell it.
pub fn host_name(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/hostname")
}

/// The release of the kernel, as `uname -r` prints it; `None` if the kernel does not tell it.
pub fn kernel_release(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/osrelease")
}

/// Tells this start of the machine from all others; `None` if the kernel does not tell it.
pub fn boot(root: &Root) -> Option<String> {
    told(root, "/proc/sys/kernel/random/boot_id")
}

fn told(root: &Root, file: &str) -> Option<String> {
    root.text(file, "this machine").ok()?.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_of_itself() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!((host_name(&root), kernel_release(&root), boot(&root)), (None, None, None));
        let folder = dir.path().join("proc/sys/kernel");
        std::fs::create_dir_all(folder.join("random")).unwrap();
        for (file, text) in [("hostname", "node7\n"), ("osrelease", "6.18.44-x\n"), ("random/boot_id", "5f-1\n")] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let all = [host_name(&root), kernel_release(&root), boot(&root)].map(Option::unwrap);
        assert_eq!(all, ["node7", "6.18.44-x", "5f-1"]);
        std::fs::write(folder.join("hostname"), "\n").unwrap();
        assert_eq!(host_name(&root), None);
    }
}
