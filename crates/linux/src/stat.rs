//! The line of `/proc/PID/stat`, or of a thread's `stat`.

use crate::root::Root;
use crate::sys::RawPid;
use cosched_core::{CpuId, Nanos};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str::SplitAsciiWhitespace;

/// Size of the buffer for the parsed fields, and more.
const BYTES: usize = 1024;

/// What the kernel tells of a process, or a thread, in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// State letter: R, S, D, T (stopped), Z (zombie) etc.
    pub state: char,
    pub parent: RawPid,
    pub group: RawPid,
    pub session: RawPid,
    /// CPU time, user and system, in clock ticks.
    pub ticks: u64,
    /// CPU time of waited-for children, in clock ticks.
    pub child_ticks: u64,
    pub threads: u32,
    /// Start time in clock ticks since boot.
    pub start: u64,
    /// Resident memory in bytes.
    pub resident: Option<u64>,
    /// The CPU where it ran last.
    pub last_cpu: Option<CpuId>,
}

impl Stat {
    /// Reads the line from a path; `None` if there is no such process or thread.
    pub(crate) fn read(root: &Root, path: &str) -> Option<Stat> {
        Stat::read_file(&File::open(root.path(path)).ok()?)
    }

    /// Reads the line from an open file; `None` if the process is gone.
    pub(crate) fn read_file(file: &File) -> Option<Stat> {
        let mut bytes = [0u8; BYTES];
        // The kernel returns the whole line at once.
        let length = file.read_at(&mut bytes, 0).ok()?;
        Stat::parse(&bytes[..length])
    }

    /// Parses a line. The name in parentheses may contain blanks and parentheses; the last `)` ends it.
    pub(crate) fn parse(line: &[u8]) -> Option<Stat> {
        let name_end = line.iter().rposition(|&byte| byte == b')')?;
        // Fields 3 and following of proc_pid_stat(5).
        let mut fields = std::str::from_utf8(&line[name_end + 1..])
            .ok()?
            .split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let ticks = field(&mut fields, 7)? + field(&mut fields, 0)?;
        let child_ticks = field(&mut fields, 0)? + field(&mut fields, 0)?;
        let threads = fields.nth(2)?.parse().ok()?;
        let start = field(&mut fields, 1)?;
        let pages = field(&mut fields, 1);
        let last_cpu = fields.nth(14).and_then(|cpu| cpu.parse().ok());
        Some(Stat {
            state,
            parent,
            group,
            session,
            ticks,
            child_ticks,
            threads,
            start,
            resident: pages.map(|pages| pages.saturating_mul(rustix::param::page_size() as u64)),
            last_cpu: last_cpu.map(CpuId),
        })
    }
}

/// The number after this many fields that are skipped.
fn field(fields: &mut SplitAsciiWhitespace<'_>, skipped: usize) -> Option<u64> {
    fields.nth(skipped)?.parse().ok()
}

/// A time of the kernel's clock ticks.
pub(crate) fn tick_time(ticks: u64) -> Nanos {
    Nanos(ticks.saturating_mul(tick_ns()))
}

/// Clock ticks since the machine was started, as in the start of a process.
pub(crate) fn ticks_since_boot() -> u64 {
    since_boot().0 / tick_ns()
}

/// The time since the machine was started.
pub(crate) fn since_boot() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_their_places() {
        let line = b"42 (a) b) R 7 8 9 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 3 0 4242 99 10 \
            18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 6 0 0 0 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.threads), ('R', 7, 3));
        assert_eq!((stat.ticks, stat.child_ticks, stat.start), (110, 150, 4242));
        assert_eq!(stat.resident, Some(10 * rustix::param::page_size() as u64));
        assert_eq!(stat.last_cpu, Some(CpuId(6)));
        let own = Stat::read(&Root::default(), "/proc/self/stat").unwrap();
        assert!(own.last_cpu.is_some() && own.resident.is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn a_short_line_has_no_memory_and_no_cpu() {
        let stat = Stat::parse(b"5 (x) S 7 8 9 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 77").unwrap();
        assert_eq!((stat.ticks, stat.resident, stat.last_cpu), (3, None, None));
        assert_eq!(Stat::parse(b"5 (x) S 7 8 9"), None);
    }
}
