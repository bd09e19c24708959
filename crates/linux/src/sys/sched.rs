//! CPUs and scheduling policies of threads.
#![allow(unsafe_code)]

use super::{RawPid, check};
use cosched_core::{CpuId, CpuSet, MAX_CPU};
use std::io;

/// Number of words in a kernel CPU mask that holds every CPU number of a [`CpuSet`].
const MASK_WORDS: usize = MAX_CPU as usize / 64 + 1;

/// Pins a thread to CPUs.
///
/// # Errors
/// An error of the kernel: no such thread, not permitted, or none of the CPUs is allowed.
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

/// Pins the calling thread to a CPU.
///
/// # Errors
/// An error of the kernel: this thread may not use the CPU.
pub fn pin_thread(cpu: CpuId) -> io::Result<()> {
    set_affinity(0, &CpuSet::from_iter([cpu]))
}

/// The scheduling policy for a scheduler loaded into the kernel; `SCHED_EXT` in `linux/sched.h`.
const SCHED_EXT: i32 = 7;

/// Moves a thread to the scheduler loaded into the kernel, or back to the ordinary one. Its nice value stays.
///
/// ```c
/// int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
/// ```
///
/// # Errors
/// An error of the kernel: no such thread, not permitted, or a kernel without `sched_ext`.
pub(crate) fn set_loaded_scheduler(tid: RawPid, loaded: bool) -> io::Result<()> {
    let priority = 0i32;
    let policy = if loaded { SCHED_EXT } else { libc::SCHED_OTHER };
    // SAFETY: `priority` is all of the structure. It lives through the call, which only reads it. musl has no such call.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &priority) };
    check(result as i32).map(drop)
}

/// Whether a thread's own policy assigns it to a scheduler loaded into the kernel.
pub(crate) fn is_loaded(tid: RawPid) -> bool {
    policy(tid) == SCHED_EXT
}

/// Whether a thread has an ordinary scheduling policy: neither real-time nor deadline.
pub(crate) fn is_ordinary(tid: RawPid) -> bool {
    [
        libc::SCHED_OTHER,
        libc::SCHED_BATCH,
        libc::SCHED_IDLE,
        SCHED_EXT,
    ]
    .contains(&policy(tid))
}

/// ```c
/// int sched_getscheduler(pid_t pid);
/// ```
fn policy(tid: RawPid) -> i32 {
    // SAFETY: the call takes and returns numbers. musl has none.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) };
    policy as i32 & !libc::SCHED_RESET_ON_FORK
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
    Ok((0..=MAX_CPU)
        .filter(|&cpu| is_set(&words, cpu))
        .map(CpuId)
        .collect())
}

fn is_set(words: &[u64], bit: u32) -> bool {
    words[bit as usize / 64] & (1 << (bit % 64)) != 0
}
