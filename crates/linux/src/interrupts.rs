//! The meaning of signals to cosched. Some end a run. The others must not end a process that others depend on.

use crate::sys::{self, SignalMask};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// Signals that end a run cleanly, unless they were ignored when cosched was started. SIGPIPE means that the reader of
/// its output is gone.
const ENDING: [i32; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGXCPU,
];

/// Signals without meaning to cosched outside of a run, whose default would end it: its jobs would continue without a
/// scheduler.
const MEANINGLESS: [i32; 9] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXFSZ,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// The signal after which a run of real jobs starts no more of them, unless it was ignored when cosched was started.
pub(crate) const DRAINING: i32 = libc::SIGUSR2;

/// What this process got from its caller, for the programs that it starts.
struct Inherited {
    ignored: Vec<i32>,
    mask: SignalMask,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Sets the signal dispositions of this process, once: children are reported (its parent may have ignored SIGCHLD), and
/// stray signals do not end the process. Call it before anything is started.
pub fn settle_signals() {
    settled();
}

/// The signals that were ignored when this program was started, and so are ignored by its jobs. SIGCHLD is excluded: a
/// job must see the ends of its own children. So is SIGPIPE, which Rust programs ignore from the start.
pub(crate) fn inherited() -> &'static [i32] {
    &settled().ignored
}

/// The signals that were blocked when this program was started, and so are blocked in its jobs.
pub(crate) fn inherited_mask() -> SignalMask {
    settled().mask
}

fn settled() -> &'static Inherited {
    INHERITED.get_or_init(|| {
        let mut ignored = sys::ignored_signals();
        ignored.retain(|&signal| signal != libc::SIGCHLD && signal != libc::SIGPIPE);
        sys::set_ignored(libc::SIGCHLD, false);
        for signal in MEANINGLESS {
            sys::set_ignored(signal, true);
        }
        let mask = sys::signal_mask();
        Inherited { ignored, mask }
    })
}

/// The signals to block for a run: those that end or suspend it, unless the caller ignored them.
pub(crate) fn held() -> Vec<i32> {
    let wanted = ENDING.into_iter().chain([libc::SIGTSTP]);
    wanted
        .filter(|signal| !inherited().contains(signal))
        .collect()
}

/// Blocked signals that end a run, read on request. Dropping it releases them.
pub struct Interrupts {
    signals: OwnedFd,
    mask: SignalMask,
}

/// The meaning of a signal to a run.
#[derive(Clone, Copy, Debug)]
pub enum Interrupt {
    /// End the run; the signal's number.
    End(i32),
    /// Pause the run until SIGCONT; only with [`Interrupts::hold_all`].
    Suspend,
}

impl Interrupts {
    /// Blocks Ctrl-C, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE and SIGXCPU from now on, for a run without processes of its
    /// own. Signals that the caller ignored stay ignored.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold() -> io::Result<Interrupts> {
        let mut held = held();
        held.retain(|&signal| signal != libc::SIGTSTP);
        Interrupts::of(&held)
    }

    /// Blocks SIGTSTP as well, for a run whose processes must pause with it.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold_all() -> io::Result<Interrupts> {
        Interrupts::of(&held())
    }

    /// Blocks no signal, for a run whose caller takes them.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold_none() -> io::Result<Interrupts> {
        Interrupts::of(&[])
    }

    /// Blocks these signals.
    pub(crate) fn of(held: &[i32]) -> io::Result<Interrupts> {
        let (signals, mask) = sys::take_signals(held)?;
        Ok(Interrupts { signals, mask })
    }

    /// The number of a pending signal; `None` if there is none. Does not wait.
    pub(crate) fn next_number(&self) -> Option<i32> {
        sys::pending_signals::<1>(self.signals.as_fd()).pop()
    }

    /// A pending signal; `None` if there is none. Does not wait.
    pub fn next_signal(&self) -> Option<Interrupt> {
        Some(match self.next_number()? {
            libc::SIGTSTP => Interrupt::Suspend,
            signal => Interrupt::End(signal),
        })
    }

    /// Whether a signal is pending, and keeps it so. A SIGPIPE is dropped instead: sent again, it would count as caused by
    /// this process itself.
    pub fn has_come(&self) -> bool {
        while let Some(signal) = self.next_number() {
            if signal != libc::SIGPIPE {
                let _ = sys::kill(std::process::id() as sys::RawPid, signal);
                return true;
            }
        }
        false
    }

    /// Unblocks the signals. One that is pending was meant for this run: it is dropped, and ends nothing that follows.
    pub fn release(&self) {
        while self.next_number().is_some() {}
        sys::restore_mask(&self.mask);
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.release();
    }
}
