//! New processes: forks, and children that share memory.
#![allow(unsafe_code)]

use super::{RawPid, check};
use std::ffi::{OsStr, OsString};
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::fd::AsRawFd as _;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// One side of a fork.
pub(crate) enum ForkSide {
    /// The new process.
    Child,
    /// The old process, with the number of the new one.
    Parent(RawPid),
}

/// Forks the process.
///
/// # Errors
/// An error of the kernel.
///
/// # Safety
/// The process has one thread. (With more, the child might find a lock held for ever.)
pub(crate) unsafe fn fork() -> io::Result<ForkSide> {
    // SAFETY: the caller's promise.
    match check(unsafe { libc::fork() })? {
        0 => Ok(ForkSide::Child),
        pid => Ok(ForkSide::Parent(pid)),
    }
}

/// Starts a program with these arguments, the first of which is its name. `settle` is called in the new process, before it
/// executes the program.
///
/// # Errors
/// The program can't be executed.
///
/// # Safety
/// The process has one thread, and `settle` allocates nothing.
pub(crate) unsafe fn start(
    program: &OsStr,
    args: &[OsString],
    settle: impl Fn() + Send + Sync + 'static,
) -> io::Result<RawPid> {
    let mut command = Command::new(program);
    if let [name, others @ ..] = args {
        command.arg0(name).args(others);
    }
    // SAFETY: the caller's promise.
    unsafe {
        command.pre_exec(move || {
            settle();
            Ok(())
        });
    }
    Ok(command.spawn()?.id() as RawPid)
}

/// Stack memory for a child that shares this process's memory, with a guard page below it.
pub(crate) struct Stack {
    lowest: *mut libc::c_void,
}

impl Stack {
    const GUARD: usize = 1 << 16;
    /// The child makes some system calls.
    const SIZE: usize = 1 << 18;

    /// # Errors
    /// Out of memory.
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

/// A flag of `clone3`; libc defines it with too small a type.
#[cfg(target_arch = "x86_64")]
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The main function of a child that shares memory.
pub(crate) type ChildMain = extern "C" fn(*mut libc::c_void) -> libc::c_int;

/// Starts a child that shares this process's memory and has its own descriptors, signal mask and working directory.
/// Both run concurrently. The child starts in `main`. Returns whether the child was created in `group`, an open
/// directory of a cgroup: kernels before Linux 5.7 and other processors cannot do that.
///
/// # Errors
/// An error of the kernel.
///
/// # Safety
/// `main` never returns. Until the child has become another program or has ended, the stack and what `argument` points to
/// live and do not change, and the child calls only functions that are safe after a fork. What the C library keeps per
/// thread, such as `errno`, is the same for both.
pub(crate) unsafe fn clone_into(
    main: ChildMain,
    stack: &Stack,
    argument: *mut libc::c_void,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<(RawPid, bool)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(group) = group {
        // SAFETY: the caller's promise.
        let pid = unsafe { clone_into_group(main, stack, argument, group) };
        if pid > 0 {
            return Ok((pid as RawPid, true));
        }
    }
    let _ = group;
    // SAFETY: the top of the stack is the end of its memory, which is aligned to pages; the rest is the caller's promise.
    let pid = check(unsafe {
        let top = stack.lowest.byte_add(Stack::SIZE);
        libc::clone(main, top, libc::CLONE_VM | libc::SIGCHLD, argument)
    })?;
    Ok((pid, false))
}

/// Starts a child in a cgroup. The C library has no call for that. Moving a process later would wait until all forks
/// and lockless reads on the machine have ended: a start took 15 ms instead of 1 ms (medians, Linux 6.18). Returns the child, or a negative error number.
///
/// # Safety
/// As [`clone_into`].
#[cfg(target_arch = "x86_64")]
unsafe fn clone_into_group(
    main: ChildMain,
    stack: &Stack,
    argument: *mut libc::c_void,
    group: BorrowedFd<'_>,
) -> isize {
    // SAFETY: the structure holds numbers only, and zero means "nothing" in each.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = libc::CLONE_VM as u64 | CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.stack = stack.lowest as u64;
    args.stack_size = Stack::SIZE as u64;
    args.cgroup = group.as_raw_fd() as u64;
    let answer: isize;
    // SAFETY: the parent only sees a system call, which changes the registers named here. The child begins behind it on
    // its own stack, whose top is aligned as a call wants it; it calls `main`, which never returns.
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
            // The compiler may choose any other register, even the frame pointer, which the child clears.
            in("r8") argument,
            in("r9") main,
            inlateout("rax") libc::SYS_clone3 as isize => answer,
            in("rdi") &raw const args,
            in("rsi") size_of::<libc::clone_args>(),
            out("rcx") _,
            out("r11") _,
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::super::kill;
    use super::*;
    use std::os::fd::AsFd;
    use std::time::Duration;

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
        let job = group.job(0).unwrap();
        let directory = job.directory().unwrap();
        let (stack, told) = (Stack::new().unwrap(), AtomicU32::new(0));
        // SAFETY: the child never returns and is killed before the stack and the number go; it allocates nothing.
        let (pid, is_in_group) = unsafe {
            clone_into(
                answers,
                &stack,
                (&raw const told).cast_mut().cast(),
                Some(directory.as_fd()),
            )
        }
        .unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while told.load(Ordering::SeqCst) == 0 && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let members = job.processes();
        kill(pid, libc::SIGKILL).unwrap();
        // SAFETY: takes numbers and no address.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        assert_eq!(told.load(Ordering::SeqCst), 7);
        assert_eq!(members, if is_in_group { vec![pid] } else { vec![] });
    }
}
