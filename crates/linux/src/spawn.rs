//! Starts a job. Its process waits until its counters are attached, it is in its group and its CPUs are set, and then
//! executes the job's program.
#![allow(unsafe_code)]

use crate::interrupts;
use crate::process::Process;
use crate::root::Root;
use crate::sys::{self, RawPid, SignalMask, Stack};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program to start.
#[derive(Clone, Debug)]
pub struct JobProgram {
    /// Path of the program, already resolved.
    pub path: PathBuf,
    /// Its arguments; the first is the name by which it was called.
    pub args: Vec<OsString>,
    /// Its environment, to which the marks of the run are added. Jobs with equal environments share it.
    pub env: Arc<Environment>,
    /// Its working directory; `None` for the caller's.
    pub cwd: Option<PathBuf>,
    /// Its niceness; `None` for the caller's.
    pub nice: Option<i32>,
    /// Its standard input; `None` for none, and `/dev/stdin` for the caller's.
    pub stdin: Option<PathBuf>,
    /// Its standard output.
    pub stdout: PathBuf,
    /// Its standard error; may be the same file.
    pub stderr: PathBuf,
    /// Whether the output files may exist from an earlier start of the job, and are appended to then. If not, an existing
    /// file or link is an error.
    pub again: bool,
}

/// Environment variables.
#[derive(Debug, Default)]
pub struct Environment {
    /// As `NAME=VALUE`.
    entries: Vec<CString>,
}

impl Environment {
    /// The environment of these variables.
    ///
    /// # Errors
    /// A name or value contains a zero byte.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Environment> {
        let mut entries = Vec::new();
        for (mut entry, value) in variables {
            entry.push("=");
            entry.push(value);
            entries.push(c_string(&entry)?);
        }
        Ok(Environment { entries })
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.entries.iter().find_map(|entry| {
            let rest = entry.as_bytes().strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=").map(OsStr::from_bytes)
        })
    }
}

/// The state that a child restores: the signal mask and the open-file limit of the run's caller.
#[derive(Clone, Copy)]
pub(crate) struct CallerState {
    pub mask: SignalMask,
    pub files: Option<rustix::process::Rlimit>,
}

/// Resolves a program like a shell: a name with a slash is a path relative to `cwd`; any other name is looked up in
/// `PATH`.
pub fn find_program(name: &OsStr, cwd: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let cwd = cwd.unwrap_or(Path::new(""));
    let candidates = if name.as_bytes().contains(&b'/') {
        vec![cwd.join(name)]
    } else {
        let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        let dirs = std::env::split_paths(path);
        dirs.map(|dir| cwd.join(dir).join(name)).collect()
    };
    let found = candidates.into_iter().find(|path| is_program(path))?;
    Some(std::path::absolute(&found).unwrap_or(found))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "contains a zero byte"))
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

/// Opens a file for a job's output, for appending, so that output and error output can share it. Only a plain file is
/// accepted: opening a pipe would wait for its reader, and a link could lead to any user's file.
fn open_output(path: &Path, may_be_there: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    if may_be_there {
        options
            .create(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    } else {
        options.create_new(true);
    }
    let file = options.open(path).map_err(|error| named(path, error))?;
    if may_be_there {
        if !file.metadata()?.is_file() {
            return Err(named(path, io::Error::other("no longer a plain file")));
        }
        // The job inherits the flags.
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::APPEND)?;
    }
    Ok(file)
}

/// Opens a job's standard input. The caller's own is duplicated: opening it again fails if it is a socket.
fn open_input(path: Option<&Path>) -> io::Result<File> {
    let path = path.unwrap_or(Path::new("/dev/null"));
    if path == Path::new("/dev/stdin") {
        return Ok(io::stdin().as_fd().try_clone_to_owned()?.into());
    }
    File::open(path).map_err(|error| named(path, error))
}

/// The standard files of a job.
struct Files {
    stdin: File,
    stdout: File,
    stderr: File,
}

impl Files {
    fn open(program: &JobProgram) -> io::Result<Files> {
        let may_be_there = program.again || program.stderr == program.stdout;
        Ok(Files {
            stdin: open_input(program.stdin.as_deref())?,
            stdout: open_output(&program.stdout, program.again)?,
            stderr: open_output(&program.stderr, may_be_there)?,
        })
    }

    fn descriptors(&self) -> [RawFd; 3] {
        [&self.stdin, &self.stdout, &self.stderr].map(AsRawFd::as_raw_fd)
    }
}

/// The name of the file for a job's progress.
pub(crate) const PROGRESS_FILE: &str = "cosched-progress";

/// A file for a job's progress. It is in memory: a pipe that nobody reads in time would block the job.
fn progress_file() -> io::Result<File> {
    let file = memfd_create(PROGRESS_FILE, MemfdFlags::CLOEXEC)?;
    Ok(file.into())
}

/// A number in the jobs for that file: one digit, since no other works in `echo >&9` of every shell. `None` if jobs inherit
/// files with all of them, or there can be no such file.
pub(crate) fn progress_number() -> Option<RawFd> {
    progress_file().ok()?;
    (3..=9).rev().find(|&number| !is_inherited(number))
}

fn is_inherited(number: RawFd) -> bool {
    // SAFETY: takes numbers only.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// An error that names the file.
fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The name of a variable, given as `NAME=VALUE`.
fn name_of(entry: &CString) -> &[u8] {
    let mut parts = entry.as_bytes().split(|&byte| byte == b'=');
    parts.next().unwrap_or_default()
}

/// Strings for the kernel, with a null-terminated array of pointers to them.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    _own: Vec<CString>,
    _shared: Option<Arc<Environment>>,
}

impl Strings {
    /// Own strings, and those shared variables that have other names.
    fn new(own: Vec<CString>, shared: Option<Arc<Environment>>) -> Strings {
        let names: Vec<&[u8]> = own.iter().map(name_of).collect();
        let entries = shared.iter().flat_map(|shared| &shared.entries);
        let others = entries.filter(|entry| !names.contains(&name_of(entry)));
        let mut pointers: Vec<_> = others.chain(&own).map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Strings {
            pointers,
            _own: own,
            _shared: shared,
        }
    }

    fn arguments(program: &JobProgram) -> io::Result<Strings> {
        let args = program.args.iter().map(|arg| c_string(arg));
        Ok(Strings::new(args.collect::<io::Result<_>>()?, None))
    }

    fn environment(program: &JobProgram, marks: &[(&str, &str)]) -> io::Result<Strings> {
        let marks = marks
            .iter()
            .map(|(name, value)| c_string(format!("{name}={value}").as_ref()));
        let env = Some(program.env.clone());
        Ok(Strings::new(marks.collect::<io::Result<_>>()?, env))
    }
}

/// The shell for scripts without an interpreter line.
const SHELL: &CStr = c"/bin/sh";

/// Words that run a script by the shell: the shell's name, the script, and its arguments without the first, its name.
fn script(path: &CStr, argv: &Strings) -> Vec<*const libc::c_char> {
    let mut words = vec![SHELL.as_ptr(), path.as_ptr()];
    words.extend(argv.pointers.iter().skip(1));
    if argv.pointers.len() == 1 {
        words.push(std::ptr::null());
    }
    words
}

/// Everything that a job's process reads before it executes its program. It is in the memory of the run, which both
/// share until then. So nothing here may change or move, and the child may not allocate or free.
struct Image {
    path: CString,
    argv: Strings,
    /// Arguments of the shell if the program is a script without an interpreter line.
    script: Vec<*const libc::c_char>,
    envp: Strings,
    cwd: Option<CString>,
    nice: Option<i32>,
    /// Standard input, output and error.
    files: [RawFd; 3],
    /// The file for the job's progress, and its number in the job.
    progress: Option<(RawFd, RawFd)>,
    /// The child's ends of the two pipes.
    go_read: RawFd,
    answer_write: RawFd,
    /// The run's ends, which the child closes.
    others: [RawFd; 2],
    around: CallerState,
    ignored: &'static [i32],
    run: RawPid,
}

/// A job's process that has not executed its program yet. Dropping it ends the process.
pub(crate) struct Waiting {
    pid: RawPid,
    /// Whether it was created in the given cgroup.
    pub is_in_group: bool,
    /// Written to when the process may go on; closing it ends the process.
    go: Option<File>,
    /// Closes when the process has executed its program or has ended. Until then the process uses all fields below.
    answer: File,
    _stack: Stack,
    _image: Box<Image>,
}

/// Whether processes can be created in groups like this one, an open directory of a cgroup. Linux 6.18 kills each of them if
/// the group of this process was killed (`cgroup.kill`) before this process entered it.
pub(crate) fn can_create_in(group: BorrowedFd<'_>) -> bool {
    let Ok(stack) = Stack::new() else {
        return false;
    };
    // SAFETY: `end_at_once` makes one system call and never returns. The stack lives until the child was waited for.
    let child = unsafe { sys::clone_into(end_at_once, &stack, std::ptr::null_mut(), Some(group)) };
    let Some((child, is_in_group)) = child.ok() else {
        return false;
    };
    let pid = Pid::from_raw(child);
    let status = rustix::io::retry_on_intr(|| waitpid(pid, WaitOptions::empty()));
    let has_lived = matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0));
    is_in_group && has_lived
}

extern "C" fn end_at_once(_: *mut libc::c_void) -> libc::c_int {
    sys::exit_now(0)
}

/// Creates the process of a job, in `group` (a directory of a cgroup) if the kernel can do that.
///
/// As after `vfork`, it shares the memory of the run until it executes its program, so no page tables are copied.
/// Unlike after `vfork`, the run continues, to attach counters etc., while the process waits for [`Waiting::start`].
///
/// # Errors
/// A file or a process cannot be created.
pub(crate) fn prepare(
    program: &JobProgram,
    marks: &[(&str, &str)],
    around: CallerState,
    group: Option<BorrowedFd<'_>>,
    progress_at: Option<RawFd>,
) -> io::Result<Waiting> {
    let files = Files::open(program)?;
    let (go_read, go) = pipe()?;
    let (answer, mut answer_write) = pipe()?;
    if progress_at == Some(answer_write.as_raw_fd()) {
        // The child still needs it when the file for its progress has taken this number.
        answer_write = answer_write.try_clone()?;
    }
    let progress = progress_at.map(|_| progress_file()).transpose()?;
    let cwd = program.cwd.as_ref().map(|cwd| c_string(cwd.as_os_str()));
    let path = c_string(program.path.as_os_str())?;
    let argv = Strings::arguments(program)?;
    let image = Box::new(Image {
        script: script(&path, &argv),
        path,
        argv,
        envp: Strings::environment(program, marks)?,
        cwd: cwd.transpose()?,
        nice: program.nice,
        files: files.descriptors(),
        progress: progress.as_ref().map(AsRawFd::as_raw_fd).zip(progress_at),
        go_read: go_read.as_raw_fd(),
        answer_write: answer_write.as_raw_fd(),
        others: [go.as_raw_fd(), answer.as_raw_fd()],
        around,
        ignored: interrupts::inherited(),
        run: std::process::id() as RawPid,
    });
    let stack = Stack::new()?;
    let argument = (&raw const *image).cast_mut().cast();
    // SAFETY: `become_program` calls only functions that are safe after a fork, on data that was prepared before it, and
    // never returns. The data and the stack live until the pipe for the answer has closed: `Waiting` sees to that.
    let (pid, is_in_group) = unsafe { sys::clone_into(become_program, &stack, argument, group) }?;
    Ok(Waiting {
        pid,
        is_in_group,
        go: Some(go),
        answer,
        _stack: stack,
        _image: image,
    })
}

/// The child's side: waits for the run's go and executes the job's program.
///
/// The C library's `errno` is shared with the run. So before the go the child makes no call that can fail. After it the
/// run only waits for the answer.
extern "C" fn become_program(image: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `prepare` passes a valid image, which nobody changes.
    let image = unsafe { &*image.cast_const().cast::<Image>() };
    let around = &image.around;
    // SAFETY: system calls on open descriptors, on a buffer of the length that is passed, and on strings and arrays that
    // end and outlive the calls.
    unsafe {
        for fd in image.others {
            libc::close(fd);
        }
        libc::setsid();
        // This signal continues a stopped job if the run dies and no other process can.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT, 0, 0, 0);
        // End of file means that the run has died, perhaps before the signal was requested.
        let mut byte = 0u8;
        if libc::read(image.go_read, (&raw mut byte).cast(), 1) != 1 || libc::getppid() != image.run
        {
            sys::exit_now(127);
        }
        take_files(image);
        if let Some(cwd) = &image.cwd
            && libc::chdir(cwd.as_ptr()) < 0
        {
            failed(image, b'c');
        }
        if let Some(nice) = image.nice
            && libc::setpriority(libc::PRIO_PROCESS, 0, nice) < 0
        {
            failed(image, b'n');
        }
        if let Some(limit) = &around.files {
            sys::restore_file_limit(limit);
        }
        sys::default_signals(&around.mask, image.ignored);
        execute(image);
        failed(image, b'x')
    }
}

/// Executes the job's program, in the child. Returns only if that fails. The C libraries differ in whether `execvpe` passes
/// a script without an interpreter line to the shell.
///
/// ```c
/// int execve(const char *pathname, char *const argv[], char *const envp[]);
/// ```
fn execute(image: &Image) {
    let envp = image.envp.pointers.as_ptr();
    // SAFETY: the strings and arrays end, and outlive the calls.
    unsafe {
        libc::execve(image.path.as_ptr(), image.argv.pointers.as_ptr(), envp);
        if io::Error::last_os_error().raw_os_error() == Some(libc::ENOEXEC) {
            libc::execve(SHELL.as_ptr(), image.script.as_ptr(), envp);
        }
    }
}

/// Gives a job's files their numbers, in the child.
fn take_files(image: &Image) {
    let standard = image.files.iter().copied().zip(0..);
    for (file, target) in standard.chain(image.progress) {
        // SAFETY: takes numbers only.
        let result = unsafe {
            if file == target {
                libc::fcntl(target, libc::F_SETFD, 0)
            } else {
                libc::dup2(file, target)
            }
        };
        if result < 0 {
            failed(image, b'd');
        }
    }
}

/// Reports the failed step and its cause to the run, and ends the child.
fn failed(image: &Image, step: u8) -> ! {
    let code = io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(0)
        .to_ne_bytes();
    let message = [step, code[0], code[1], code[2], code[3]];
    // SAFETY: the descriptor is open, and the buffer has the length that is passed.
    unsafe {
        libc::write(image.answer_write, message.as_ptr().cast(), message.len());
    }
    sys::exit_now(127)
}

impl Waiting {
    /// The process.
    ///
    /// # Errors
    /// `/proc` does not show it.
    pub(crate) fn process(&self, root: &Root) -> io::Result<Process> {
        Process::read(root, self.pid)
            .ok_or_else(|| io::Error::other(format!("/proc/{}/stat can't be read", self.pid)))
    }

    /// Lets the process execute its program, and waits until it has.
    ///
    /// # Errors
    /// The program could not be started, or the process has died meanwhile; it then ends by itself.
    pub(crate) fn start(mut self, program: &JobProgram) -> io::Result<()> {
        if let Some(mut go) = self.go.take() {
            go.write_all(b"g")?;
        }
        let mut message = [0; 5];
        // The pipe closes when the program is executed.
        if self.read_answer(&mut message) == 0 {
            return Ok(());
        }
        let [step, code @ ..] = message;
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
        Err(match (step, &program.cwd) {
            (b'c', Some(cwd)) => named(cwd, error),
            (b'n', _) => io::Error::new(error.kind(), format!("setting its niceness: {error}")),
            _ => named(&program.path, error),
        })
    }

    /// Reads from the child until data arrives or the child closes its end; returns the length. Does not change
    /// `errno`.
    fn read_answer(&self, message: &mut [u8]) -> usize {
        rustix::io::retry_on_intr(|| rustix::io::read(&self.answer, &mut *message)).unwrap_or(0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.go = None;
        // Until the child closes this, it uses the memory that is about to be freed.
        while self.read_answer(&mut [0; 8]) > 0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("tool");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let find = |name: &str, cwd, path: &str| {
            find_program(OsStr::new(name), cwd, Some(OsStr::new(path)))
        };
        let here = dir.path().to_str().unwrap();
        assert_eq!(find("tool", None, here), None, "not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            find("tool", None, &format!("/nowhere:{here}")),
            Some(program.clone())
        );
        assert_eq!(
            find("./tool", Some(dir.path()), "/nowhere")
                .unwrap()
                .file_name(),
            program.file_name()
        );
        assert_eq!(find("./tool", None, here), None);
        assert_eq!(find(here, None, "/nowhere"), None, "a folder");
        assert_eq!(find("", None, here), None);
    }
}
