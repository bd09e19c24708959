//! The load of the machine.

use crate::root::Root;

/// The load average of the last minute: the mean number of processes that ran or waited for a disk or a CPU. `None` if
/// the kernel does not report it.
pub fn average(root: &Root) -> Option<f64> {
    let text = root.text("/proc/loadavg", "load average").ok()??;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(average(&root), None);
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        for (text, load) in [
            ("4.25 3.10 2.00 2/512 12345\n", Some(4.25)),
            ("", None),
            ("much\n", None),
        ] {
            std::fs::write(dir.path().join("proc/loadavg"), text).unwrap();
            assert_eq!(average(&root), load, "{text:?}");
        }
    }
}
