//! The pressure on memory, by the kernel's own measure (PSI).

use crate::root::Root;

/// Share of the last 10 seconds in which some task waited for memory, in per cent; `None` if the kernel does not report it.
pub(crate) fn memory(root: &Root) -> Option<f64> {
    let text = root
        .text("/proc/pressure/memory", "memory pressure")
        .ok()??;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let words = some.split_ascii_whitespace();
    words
        .into_iter()
        .find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
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
}
