//! System calls that have no safe wrapper elsewhere. This file, `spawn`, `guardian` and `counters::sys` hold all unsafe
//! code of the project.
#![allow(unsafe_code)]

use cosched_core::{CpuId, CpuSet, Nanos};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

/// A process number of the kernel.
pub(crate) type RawPid = i32;

/// A set of blocked signals, as it was before the run changed it; children get it back.
#[derive(Clone, Copy)]
pub(crate) struct SignalMask(libc::sigset_t);

/// What `wait_any` reports of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was stopped.
    Stopped,
    /// It was continued.
    Continued,
}

/// A child whose state has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    /// The child.
    pub(crate) pid: RawPid,
    /// Its new state.
    pub(crate) status: Status,
    /// What it and the descendants that it waited for have used; meaningful only if the child has ended.
    pub(crate) used: Used,
}

/// What a process and the descendants that it waited for have used, by the kernel's accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) user: Nanos,
    pub(crate) system: Nanos,
    /// The greatest resident memory of one of them, in bytes. The kernel counts it from the fork on, so it can be that of
    /// this process when it forked.
    pub(crate) max_rss: u64,
    /// Bytes fetched from storage, and written for it.
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl Used {
    /// CPU time.
    pub(crate) fn cpu_time(&self) -> Nanos {
        self.user + self.system
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn sigset(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before it is used, and sigaddset gets a valid pointer to it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks `signals`. Returns a descriptor to read them from, and the mask as it was before.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn take_signals(signals: &[i32]) -> io::Result<(OwnedFd, SignalMask)> {
    let set = sigset(signals);
    // SAFETY: both sets are valid for the length of the calls; the descriptor is new and owned by nobody else.
    unsafe {
        let mut old = std::mem::zeroed();
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, &mut old))?;
        let fd = check(libc::signalfd(
            -1,
            &set,
            libc::SFD_NONBLOCK | libc::SFD_CLOEXEC,
        ))?;
        Ok((OwnedFd::from_raw_fd(fd), SignalMask(old)))
    }
}

/// Puts a mask back in force.
pub(crate) fn restore_mask(mask: &SignalMask) {
    // SAFETY: the set was filled in by the kernel.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut());
    }
}

/// The signals whose effect can be changed, the realtime signals among them. The C library keeps some for itself and
/// refuses to change them.
fn all_signals() -> impl Iterator<Item = i32> {
    (1..=libc::SIGRTMAX()).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal))
}

/// Resets all signals to their default, but for those in `ignored`, and puts the mask back in force, as a program
/// expects at its start. What is waiting was meant for the process that this one was made by, and is dropped: it would act
/// on the memory of both.
pub(crate) fn default_signals(mask: &SignalMask, ignored: &[i32]) {
    // SAFETY: neither the default nor ignoring runs any code of ours.
    unsafe {
        for signal in all_signals() {
            // Ignoring a signal drops one that is waiting.
            libc::signal(signal, libc::SIG_IGN);
            if !ignored.contains(&signal) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    restore_mask(mask);
}

/// The signals that this process ignores.
pub(crate) fn ignored_signals() -> Vec<i32> {
    let is_ignored = |&signal: &i32| {
        // SAFETY: nothing is changed, and the structure is valid for the length of the call.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut now) == 0
                && now.sa_sigaction == libc::SIG_IGN
        }
    };
    all_signals().filter(is_ignored).collect()
}

/// Ignores a signal, or gives it back its default.
pub(crate) fn set_ignored(signal: i32, ignored: bool) {
    // SAFETY: neither the default nor ignoring runs any code of ours.
    unsafe {
        libc::signal(
            signal,
            if ignored {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            },
        );
    }
}

/// Ignores every signal that can be ignored, for a process that must outlive all others.
pub(crate) fn ignore_signals() {
    // SAFETY: ignoring runs no code of ours.
    unsafe {
        for signal in all_signals().filter(|&signal| signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Takes up to `MOST` of the signals that are waiting in a descriptor from [`take_signals`]. Leaves out a SIGPIPE that this
/// process caused itself by writing to a pipe, such as that of a job which was killed before it became its program: the
/// write has failed, and that is news enough. Nothing is returned only if nothing else is waiting.
pub(crate) fn pending_signals<const MOST: usize>(fd: BorrowedFd<'_>) -> Vec<i32> {
    let own = std::process::id();
    let is_news = |info: &&libc::signalfd_siginfo| {
        info.ssi_signo as i32 != libc::SIGPIPE || info.ssi_pid != own
    };
    loop {
        // SAFETY: the buffer is as large as the length that is passed, and any bytes are valid signalfd_siginfo.
        let (infos, got) = unsafe {
            let mut infos: [libc::signalfd_siginfo; MOST] = std::mem::zeroed();
            let got = libc::read(fd.as_raw_fd(), (&raw mut infos).cast(), size_of_val(&infos));
            (infos, got)
        };
        let count = usize::try_from(got).unwrap_or(0) / size_of::<libc::signalfd_siginfo>();
        let news: Vec<i32> = infos[..count]
            .iter()
            .filter(is_news)
            .map(|info| info.ssi_signo as i32)
            .collect();
        if count == 0 || !news.is_empty() {
            return news;
        }
    }
}

/// The next child whose state has changed; `None` if there is none now.
pub(crate) fn wait_any() -> Option<Waited> {
    let mut status = 0;
    // SAFETY: both pointers are valid, and the kernel fills the usage in when it returns a child.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
        (libc::wait4(-1, &mut status, flags, &mut usage), usage)
    };
    if pid <= 0 {
        return None;
    }
    let status = if libc::WIFEXITED(status) {
        Status::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Status::Signaled(libc::WTERMSIG(status))
    } else if libc::WIFSTOPPED(status) {
        Status::Stopped
    } else {
        Status::Continued
    };
    let time = |t: libc::timeval| {
        Duration::new(
            t.tv_sec.max(0) as u64,
            t.tv_usec.clamp(0, 999_999) as u32 * 1_000,
        )
    };
    let nanos = |t: libc::timeval| Nanos(time(t).as_nanos() as u64);
    let bytes =
        |count: libc::c_long, unit: u64| u64::try_from(count).unwrap_or(0).saturating_mul(unit);
    let used = Used {
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
        max_rss: bytes(usage.ru_maxrss, 1024),
        read_bytes: bytes(usage.ru_inblock, 512),
        written_bytes: bytes(usage.ru_oublock, 512),
    };
    Some(Waited { pid, status, used })
}

/// The greatest resident memory of this process so far, in bytes.
pub(crate) fn own_max_rss() -> u64 {
    // SAFETY: the pointer is valid, and the kernel fills the usage in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss)
        .unwrap_or(0)
        .saturating_mul(1024)
}

/// Makes orphaned descendants children of this process instead of the system's first process.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Makes the kernel send `signal` to this process when its parent dies.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn signal_on_parent_death(signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) }).map(drop)
}

/// Before the program of `command` begins, puts this mask back in force, gives all signals but those in `ignored` their
/// default, and makes the kernel send it SIGTERM when the thread that starts it ends.
pub(crate) fn before_exec(
    command: &mut std::process::Command,
    mask: SignalMask,
    ignored: &'static [i32],
) {
    use std::os::unix::process::CommandExt as _;
    let parent = std::process::id();
    let settle = move || {
        default_signals(&mask, ignored);
        signal_on_parent_death(libc::SIGTERM)?;
        // The parent may have ended before that.
        // SAFETY: takes nothing.
        if unsafe { libc::getppid() } as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated: the list of ignored signals
    // lives as long as the program, and an error of the system holds a number.
    unsafe {
        command.pre_exec(settle);
    }
}

/// Sends a signal to a process, or for a negative number to a process group.
///
/// # Errors
/// An error of the kernel: no such process, or not permitted.
pub(crate) fn kill(pid: RawPid, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Number of words in a kernel CPU mask that holds every CPU number of a [`CpuSet`].
const MASK_WORDS: usize = cosched_core::MAX_CPU as usize / 64 + 1;

/// Binds a thread to CPUs.
///
/// # Errors
/// An error of the kernel: no such thread, not permitted, or none of the CPUs may be used.
pub(crate) fn set_affinity(tid: RawPid, cpus: &CpuSet) -> io::Result<()> {
    let highest = cpus.iter().last().map_or(0, |cpu| cpu.0 as usize);
    let mut words = vec![0u64; highest / 64 + 1];
    for cpu in cpus.iter() {
        words[cpu.0 as usize / 64] |= 1 << (cpu.0 % 64);
    }
    // SAFETY: the length that is passed is that of the buffer.
    check(unsafe { libc::sched_setaffinity(tid, size_of_val(&words[..]), words.as_ptr().cast()) })
        .map(drop)
}

/// The scheduling policy of processes that a scheduler loaded into the kernel takes; `SCHED_EXT` in `linux/sched.h`.
const SCHED_EXT: i32 = 7;

/// Gives a thread to the scheduler that was loaded into the kernel, or back to the ordinary one. Its nice value stays.
///
/// ```c
/// int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
/// ```
///
/// # Errors
/// An error of the kernel: no such thread, not permitted, or a kernel without `sched_ext`.
pub(crate) fn set_loaded_scheduler(tid: RawPid, loaded: bool) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    let policy = if loaded { SCHED_EXT } else { libc::SCHED_OTHER };
    // SAFETY: `param` lives through the call, which only reads it.
    check(unsafe { libc::sched_setscheduler(tid, policy, &param) }).map(drop)
}

/// Whether a thread belongs to a scheduler that was loaded into the kernel, by its own policy.
///
/// ```c
/// int sched_getscheduler(pid_t pid);
/// ```
pub(crate) fn is_loaded(tid: RawPid) -> bool {
    // SAFETY: the call takes and returns numbers.
    unsafe { libc::sched_getscheduler(tid) & !libc::SCHED_RESET_ON_FORK == SCHED_EXT }
}

/// Whether a thread has an ordinary scheduling policy, and none of real time or with a deadline.
///
/// ```c
/// int sched_getscheduler(pid_t pid);
/// ```
pub(crate) fn is_ordinary(tid: RawPid) -> bool {
    // SAFETY: the call takes and returns numbers.
    let policy = unsafe { libc::sched_getscheduler(tid) } & !libc::SCHED_RESET_ON_FORK;
    [
        libc::SCHED_OTHER,
        libc::SCHED_BATCH,
        libc::SCHED_IDLE,
        SCHED_EXT,
    ]
    .contains(&policy)
}

/// The CPUs that a thread may use; `tid` 0 is the calling thread.
///
/// # Errors
/// An error of the kernel.
pub fn affinity(tid: RawPid) -> io::Result<CpuSet> {
    let mut words = vec![0u64; MASK_WORDS];
    // SAFETY: the length that is passed is that of the buffer.
    check(unsafe {
        libc::sched_getaffinity(tid, size_of_val(&words[..]), words.as_mut_ptr().cast())
    })?;
    let bits = words.iter().enumerate().flat_map(|(ix, &word)| {
        (0..64)
            .filter(move |bit| word & (1 << bit) != 0)
            .map(move |bit| CpuId(ix as u32 * 64 + bit))
    });
    Ok(bits.collect())
}

/// Another descriptor for what this process has open under a number: they share the position.
///
/// # Errors
/// Nothing is open under that number, or an error of the kernel.
pub fn same_open_file(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel checks the number; nothing of this process is read or written.
    let fd = check(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A limit on open files: what is in force, and how far it may be raised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLimit(libc::rlimit);

/// The limit on open files as it was when this process raised it first.
static CALLERS_FILE_LIMIT: OnceLock<FileLimit> = OnceLock::new();

/// Raises the limit on open files as far as allowed; returns the limit as the caller had set it.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn raise_file_limit() -> io::Result<FileLimit> {
    // SAFETY: the structure is valid for the length of the calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raised))?;
        Ok(*CALLERS_FILE_LIMIT.get_or_init(|| FileLimit(limit)))
    }
}

/// Descriptors that are kept free for what a run can't do without: starting a job, replacing the guardian, reading what
/// becomes of jobs.
const SPARE_DESCRIPTORS: usize = 64;

/// How many more descriptors can be used for what a run can do without. Counting takes long on older kernels.
pub(crate) fn spare_descriptors() -> usize {
    // SAFETY: the structure is valid for the length of the call.
    let most = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) < 0 {
            return usize::MAX;
        }
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    };
    // A folder of this kernel has the number of its entries as its size since Linux 6.2; before, they are counted.
    let folder = "/proc/self/fd";
    let open = match std::fs::metadata(folder).map_or(0, |folder| folder.len()) {
        0 => std::fs::read_dir(folder).map_or(0, Iterator::count),
        size => size as usize,
    };
    most.saturating_sub(open + SPARE_DESCRIPTORS)
}

/// Puts a limit on open files back in force.
pub(crate) fn restore_file_limit(limit: &FileLimit) {
    // SAFETY: the structure is valid for the length of the call.
    unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit.0);
    }
}

/// The least value of a mark, far above any limit that somebody could mean.
pub(crate) const LEAST_MARK: u64 = 1 << 62;

/// Marks this process and all that it will ever start. The mark is the soft limit on the time for which a realtime process
/// may run without a pause, which has no effect on others, and none at this size. A program keeps it when it clears its
/// environment, leaves its session, closes its files and loses its parent. A limit that somebody has set is left as it is.
pub(crate) fn set_mark(mark: u64) {
    // SAFETY: the structure is valid for the length of the calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let is_set = libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) < 0
            || limit.rlim_max < libc::RLIM_INFINITY;
        if !is_set && limit.rlim_cur >= LEAST_MARK as libc::rlim_t {
            limit.rlim_cur = mark as libc::rlim_t;
            libc::setrlimit(libc::RLIMIT_RTTIME, &limit);
        }
    }
}

/// Names the calling thread for `ps` and `top`; at most 15 bytes are used.
pub(crate) fn set_name(name: &std::ffi::CStr) {
    // SAFETY: the kernel reads at most 16 bytes of a string that ends within them or is longer.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0);
    }
}

/// One side of a fork.
pub(crate) enum Side {
    /// The new process.
    Child,
    /// The old process, with the number of the new one.
    Parent(RawPid),
}

/// Splits the process in two.
///
/// # Errors
/// An error of the kernel.
///
/// # Safety
/// The process has one thread. (With more, the child might find a lock taken for ever.)
pub(crate) unsafe fn fork() -> io::Result<Side> {
    // SAFETY: the caller's promise.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(pid)),
    }
}

/// Memory for the stack of a child that shares this process's memory. Below it is a page that can't be touched.
pub(crate) struct Stack {
    lowest: *mut libc::c_void,
}

impl Stack {
    const GUARD: usize = 1 << 16;
    const SIZE: usize = 1 << 18;

    /// # Errors
    /// There is no memory.
    pub(crate) fn new() -> io::Result<Stack> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
        );
        // SAFETY: new memory is asked for, and its lowest part, which holds nothing yet, is closed.
        unsafe {
            let lowest = libc::mmap(std::ptr::null_mut(), Stack::SIZE, access, kind, -1, 0);
            if lowest == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let stack = Stack { lowest };
            check(libc::mprotect(lowest, Stack::GUARD, libc::PROT_NONE))?;
            Ok(stack)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the memory is this value's alone.
        unsafe {
            libc::munmap(self.lowest, Stack::SIZE);
        }
    }
}

/// Starts a child that shares this process's memory and has descriptors, a signal mask and a working directory of its own.
/// Both run on at once. The child begins in `main`.
///
/// # Errors
/// An error of the kernel.
///
/// # Safety
/// `main` never returns. Until the child has become another program or has ended, the stack and what `argument` points to
/// live and do not change, and the child calls only functions that are safe after a fork. What the C library keeps per
/// thread, such as `errno`, is the same for both.
pub(crate) unsafe fn clone_sharing_memory(
    main: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    stack: &Stack,
    argument: *mut libc::c_void,
) -> io::Result<RawPid> {
    // SAFETY: the top of the stack is the end of its memory, which is aligned to pages; the rest is the caller's promise.
    check(unsafe {
        let top = stack.lowest.byte_add(Stack::SIZE);
        libc::clone(main, top, libc::CLONE_VM | libc::SIGCHLD, argument)
    })
}

/// A flag of `clone3`, which the C library's header gives with too small a type.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The same, in a cgroup from its first moment on; `group` is a descriptor of its directory. Nobody is moved, so the kernel waits for
/// no other process of the machine: a move waits until all forks, and all reads without a lock, that go on have ended.
///
/// # Errors
/// An error of the kernel: it is too old (before Linux 5.7), or does not let the process into the group. On processors for which this
/// is not written, always.
///
/// # Safety
/// As [`clone_sharing_memory`].
pub(crate) unsafe fn clone_into_group(
    main: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    stack: &Stack,
    argument: *mut libc::c_void,
    group: BorrowedFd<'_>,
) -> io::Result<RawPid> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the structure holds numbers only, and zero means "nothing" in each.
        let mut asked: libc::clone_args = unsafe { std::mem::zeroed() };
        asked.flags = libc::CLONE_VM as u64 | CLONE_INTO_CGROUP;
        asked.exit_signal = libc::SIGCHLD as u64;
        asked.stack = stack.lowest as u64;
        asked.stack_size = Stack::SIZE as u64;
        asked.cgroup = group.as_raw_fd() as u64;
        let answer: isize;
        // SAFETY: the C library has no such call. The parent only sees a system call, which changes the registers named here. The child
        // begins behind it on its own stack, whose top is aligned as a call wants it; it calls `main`, which never returns.
        unsafe {
            std::arch::asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "xor ebp, ebp",
                "mov rdi, r8",
                "call r9",
                "ud2",
                "2:",
                // Named, since the compiler may take any other for them, also the frame pointer, which the child clears.
                in("r8") argument,
                in("r9") main,
                inlateout("rax") libc::SYS_clone3 as isize => answer,
                in("rdi") &raw const asked,
                in("rsi") size_of::<libc::clone_args>(),
                out("rcx") _,
                out("r11") _,
            );
        }
        if answer < 0 {
            Err(io::Error::from_raw_os_error(-answer as i32))
        } else {
            Ok(answer as RawPid)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (main, stack, argument, group);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Ends the process at once, without running exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Whether this process has a single thread, as [`fork`] requires.
pub(crate) fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn raise(signal: i32) {
        // SAFETY: takes a number; the signal is blocked in this thread.
        unsafe {
            libc::raise(signal);
        }
    }

    #[test]
    fn a_signal_behind_one_that_means_nothing_is_seen() {
        let (signals, mask) = take_signals(&[libc::SIGPIPE, libc::SIGTERM]).unwrap();
        raise(libc::SIGPIPE);
        raise(libc::SIGTERM);
        assert_eq!(pending_signals::<1>(signals.as_fd()), [libc::SIGTERM]);
        assert!(pending_signals::<1>(signals.as_fd()).is_empty());
        restore_mask(&mask);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_child_is_made_in_a_group() {
        use crate::{cgroup::RunGroup, root::Root, run_id::RunId};
        use std::sync::atomic::{AtomicU32, Ordering};
        extern "C" fn answers(told: *mut libc::c_void) -> libc::c_int {
            // SAFETY: the test passes a number that lives until this process was killed.
            unsafe { &*told.cast::<AtomicU32>() }.store(7, Ordering::SeqCst);
            loop {
                // SAFETY: takes nothing.
                unsafe { libc::pause() };
            }
        }
        let run = RunId::parse(&format!("{}-1-1", std::process::id())).unwrap();
        let group = match RunGroup::create(&Root::default(), &run) {
            Ok(group) => group,
            Err(error) => return eprintln!("skipped, because {error}"),
        };
        let job = group.job(0, false).unwrap();
        let directory = job.directory().unwrap();
        let no_group = std::fs::File::open("/").unwrap();
        let nothing = std::ptr::null_mut();
        let stack = Stack::new().unwrap();
        // SAFETY: as below; nothing is started.
        let refused = unsafe { clone_into_group(answers, &stack, nothing, no_group.as_fd()) };
        assert!(refused.is_err());
        let (stack, told) = (Stack::new().unwrap(), AtomicU32::new(0));
        // SAFETY: the child never returns and is killed before the stack and the number go; it allocates nothing.
        let made = unsafe {
            clone_into_group(
                answers,
                &stack,
                (&raw const told).cast_mut().cast(),
                directory.as_fd(),
            )
        };
        let pid = match made {
            Ok(pid) => pid,
            Err(error) => {
                return eprintln!(
                    "skipped, because the kernel makes no process in a group: {error}"
                );
            }
        };
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while told.load(Ordering::SeqCst) == 0 && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let members = job.processes();
        kill(pid, libc::SIGKILL).unwrap();
        // SAFETY: takes numbers and no address.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        assert_eq!((told.load(Ordering::SeqCst), members), (7, vec![pid]));
    }
}
