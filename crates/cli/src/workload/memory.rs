//! Memory for a working set: a failed allocation is an error, not an abort, and all memory is touched before any clock
//! starts.

use crate::size::format_size;
use std::fmt;

/// The memory for the working set is not available.
#[derive(Debug, PartialEq, Eq)]
pub struct MemoryError {
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes that the operating system says are available, if it says so.
    pub available: Option<u64>,
}

impl std::error::Error for MemoryError {}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid value '{}' for '--working-set <SIZE>': ",
            format_size(self.asked)
        )?;
        match self.available {
            Some(available) => {
                write!(
                    f,
                    "must be at most {}, the memory that is available now",
                    format_size(available)
                )
            }
            None => write!(f, "that much memory could not be allocated"),
        }
    }
}

/// Checks that a working set of `asked` bytes would fit in the memory that is free or can be freed. An allocation
/// beyond it would succeed, since memory is overcommitted, and the first touch would then push other programs out to
/// swap or get a process killed.
///
/// # Errors
/// It would not fit. If the system does not say how much is available, nothing is refused.
pub fn check(asked: u64) -> Result<(), MemoryError> {
    let available = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| available_bytes(&text));
    if available.is_some_and(|available| asked > available) {
        Err(MemoryError { asked, available })
    } else {
        Ok(())
    }
}

/// A vector of `count` items, each made by `make` from its index, so every page has been written. A workload that fills
/// several calls [`check`] with the sum of their sizes first.
///
/// # Errors
/// The allocation failed.
pub fn filled<T>(count: usize, make: impl FnMut(usize) -> T) -> Result<Vec<T>, MemoryError> {
    let mut items = reserved(count)?;
    items.extend((0..count).map(make));
    Ok(items)
}

/// An empty vector with untouched room for `count` items.
///
/// # Errors
/// The allocation failed.
pub fn reserved<T>(count: usize) -> Result<Vec<T>, MemoryError> {
    let asked = (count as u64).saturating_mul(size_of::<T>() as u64);
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| MemoryError {
        asked,
        available: None,
    })?;
    Ok(items)
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_made_in_order() {
        assert_eq!(filled(4, |i| i * i), Ok(vec![0, 1, 4, 9]));
    }

    #[test]
    fn more_memory_than_there_is_gives_an_error_that_names_the_option() {
        let error = check(8 << 50).expect_err("no machine has 8 PiB");
        assert_eq!(error.asked, 8 << 50);
        let error = MemoryError {
            asked: 8 << 50,
            available: Some(3 << 29),
        };
        let expected = "invalid value '8192T' for '--working-set <SIZE>': must be at most 1.5G, the memory that is";
        assert!(error.to_string().starts_with(expected), "{error}");
        // More than the address space: the allocator itself refuses it.
        let error = filled(usize::MAX / 8, |i| i as u64).expect_err("2^64 bytes");
        assert!(
            error.to_string().ends_with("could not be allocated"),
            "{error}"
        );
        assert_eq!(check(4096), Ok(()));
    }

    #[test]
    fn available_memory_is_read_or_absent() {
        let text = "MemTotal:       24 kB\nMemFree:  5 kB\nMemAvailable:       12 kB\n";
        assert_eq!(available_bytes(text), Some(12 * 1024));
        assert_eq!(available_bytes("MemTotal: 24 kB\n"), None);
        assert_eq!(available_bytes("MemAvailable: many kB\n"), None);
    }
}
