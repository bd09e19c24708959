//! How busy the machine is.

use crate::root::Root;

/// The load average of the last minute: processes that ran or waited for a disk or a CPU, in the mean. `None` if the kernel
/// does not tell it.
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
