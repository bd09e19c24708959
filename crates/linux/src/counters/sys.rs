//! The one system call of this crate that no safe wrapper offers: `perf_event_open`.

#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use perf_event_open_sys::bindings::{self, perf_event_attr};
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// When an event starts to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventStart {
    /// At the process's next `execve`, so that only the job's own program is counted.
    OnExec,
    /// At once.
    Now,
    /// When it is enabled. The group is complete by then: an event that joins a counting group may wait long until it
    /// counts.
    WhenEnabled,
}

/// An event to request; unnamed registers are zero.
#[derive(Clone)]
pub(crate) struct EventAttributes {
    /// Number of the PMU or of the class of events.
    pub type_id: u32,
    /// The event's number within it.
    pub config: u64,
    /// A further register, for example Intel's off-core response.
    pub config1: u64,
    /// A second further register.
    pub config2: u64,
    /// The scope of the count.
    pub scope: EventScope,
    /// When to start. The members of a group follow their leader, so only a leader needs it.
    pub start: Option<EventStart>,
    /// The content of a read.
    pub read: ReadFormat,
}

/// The scope of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EventScope {
    /// A process and its children, in user mode: an ordinary user may request it at `perf_event_paranoid` 2.
    Job,
    /// Everything that runs on a CPU, in user mode.
    Cpu,
    /// A whole chip.
    Chip,
}

/// The content of a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ReadFormat {
    /// The count alone.
    Count,
    /// The number of events, the times, and every count of the group.
    Group,
}

impl EventAttributes {
    /// Converts it into the kernel's structure.
    pub(crate) fn to_kernel(&self) -> perf_event_attr {
        let times =
            bindings::PERF_FORMAT_TOTAL_TIME_ENABLED | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING;
        let read_format = match self.read {
            ReadFormat::Count => 0,
            ReadFormat::Group => times | bindings::PERF_FORMAT_GROUP,
        };
        let mut attr = perf_event_attr {
            type_: self.type_id,
            size: size_of::<perf_event_attr>() as u32,
            config: self.config,
            read_format: u64::from(read_format),
            ..perf_event_attr::default()
        };
        attr.config1 = self.config1;
        attr.config2 = self.config2;
        attr.set_disabled(
            matches!(
                self.start,
                Some(EventStart::OnExec | EventStart::WhenEnabled)
            )
            .into(),
        );
        attr.set_enable_on_exec((self.start == Some(EventStart::OnExec)).into());
        attr.set_inherit((self.scope == EventScope::Job).into());
        if self.scope != EventScope::Chip {
            attr.set_exclude_kernel(1);
            attr.set_exclude_hv(1);
        }
        attr
    }
}

/// The target of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EventTarget {
    /// The calling thread, and if inherited its future threads and processes.
    Itself,
    /// A process, likewise.
    Process(Pid),
    /// Everything that runs on a CPU.
    Cpu(u32),
}

/// Opens an event:
///
/// ```c
/// int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
/// ```
///
/// # Errors
/// An error of the kernel, see perf_event_open(2).
pub(crate) fn open(
    attributes: &EventAttributes,
    target: EventTarget,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let (pid, cpu) = match target {
        EventTarget::Itself => (0, -1),
        EventTarget::Process(pid) => (pid.as_raw_nonzero().get(), -1),
        EventTarget::Cpu(cpu) => (
            -1,
            i32::try_from(cpu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        ),
    };
    let group = leader.map_or(-1, |fd| fd.as_raw_fd());
    let mut attr = attributes.to_kernel();
    // SAFETY: `attr` is a valid `perf_event_attr` that outlives the call and states its own size, which bounds what
    // the kernel reads and writes through the pointer; the other arguments are plain numbers, and `leader` is borrowed.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(
            &mut attr,
            pid,
            cpu,
            group,
            bindings::PERF_FLAG_FD_CLOEXEC.into(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `fd` is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Enables an event with its group.
///
/// # Errors
/// An error of the kernel, see perf_event_open(2).
pub(crate) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed; the request takes no pointer.
    let done = unsafe { perf_event_open_sys::ioctls::ENABLE(event.as_raw_fd(), 0) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(start: Option<EventStart>, read: ReadFormat) -> EventAttributes {
        EventAttributes {
            type_id: 4,
            config: 0x1b7,
            config1: 0x7033,
            config2: 5,
            scope: EventScope::Job,
            start,
            read,
        }
    }

    #[test]
    fn a_leader_waits_for_exec_and_counts_children_in_user_mode() {
        let attr = job(Some(EventStart::OnExec), ReadFormat::Group).to_kernel();
        assert_eq!(
            (attr.type_, attr.config, attr.config1, attr.config2),
            (4, 0x1b7, 0x7033, 5)
        );
        assert_eq!(attr.size as usize, size_of::<perf_event_attr>());
        assert_eq!(
            (attr.disabled(), attr.enable_on_exec(), attr.inherit()),
            (1, 1, 1)
        );
        assert_eq!(
            (
                attr.exclude_kernel(),
                attr.exclude_hv(),
                attr.exclude_user()
            ),
            (1, 1, 0)
        );
        // TOTAL_TIME_ENABLED 1, TOTAL_TIME_RUNNING 2, GROUP 8.
        assert_eq!(
            (attr.read_format, attr.sample_type, attr.pinned()),
            (11, 0, 0)
        );
    }

    #[test]
    fn members_follow_their_leader_and_others_start_at_once() {
        let attr = job(None, ReadFormat::Group).to_kernel();
        assert_eq!(
            (attr.disabled(), attr.enable_on_exec(), attr.inherit()),
            (0, 0, 1)
        );
        let attr = job(Some(EventStart::Now), ReadFormat::Count).to_kernel();
        assert_eq!(
            (attr.disabled(), attr.enable_on_exec(), attr.read_format),
            (0, 0, 0)
        );
    }

    #[test]
    fn what_runs_on_a_cpu_is_counted_in_user_mode_and_inherits_nothing() {
        let attr = EventAttributes {
            scope: EventScope::Cpu,
            ..job(Some(EventStart::Now), ReadFormat::Group)
        }
        .to_kernel();
        assert_eq!(
            (
                attr.inherit(),
                attr.exclude_kernel(),
                attr.exclude_hv(),
                attr.disabled()
            ),
            (0, 1, 1, 0)
        );
    }

    #[test]
    fn a_chip_wide_event_excludes_nothing() {
        let attr = EventAttributes {
            scope: EventScope::Chip,
            ..job(None, ReadFormat::Count)
        }
        .to_kernel();
        assert_eq!(
            (
                attr.inherit(),
                attr.exclude_kernel(),
                attr.exclude_hv(),
                attr.read_format
            ),
            (0, 0, 0, 0)
        );
    }
}
