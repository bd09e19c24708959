//! Starts a job. Its process waits until its counters are attached, it is in its group and its CPUs are set, and then
//! becomes the job's program.
#![allow(unsafe_code)]

use crate::interrupts;
use crate::process::Process;
use crate::root::Root;
use crate::sys::{self, FileLimit, RawPid, Side, SignalMask};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Path of the program, found already.
    pub path: PathBuf,
    /// Its arguments; the first is the name by which it was called.
    pub args: Vec<OsString>,
    /// Its whole environment. Jobs share it where it is the same: a copy for each would make every fork of a large batch
    /// copy the tables of as many pages.
    pub env: Arc<[(OsString, OsString)]>,
    /// Its working directory; `None` for the caller's.
    pub cwd: Option<PathBuf>,
    /// The file that it reads; `None` for nothing.
    pub stdin: Option<PathBuf>,
    /// The file that its output goes to.
    pub stdout: PathBuf,
    /// The file that its error output goes to; may be the same file.
    pub stderr: PathBuf,
    /// Whether these files are there from an earlier start of the job, and are written on. If not, they are made, and a
    /// file or link in their place is an error.
    pub again: bool,
}

/// A job's process that has not become its program yet.
pub(crate) struct Waiting {
    pub(crate) process: Process,
    go: File,
    answer: File,
}

/// What a child needs from the run: the signal mask and the file limit to restore, the root of `/proc`, its mark.
pub(crate) struct Surroundings<'a> {
    pub(crate) mask: &'a SignalMask,
    pub(crate) files: Option<&'a FileLimit>,
    pub(crate) root: &'a Root,
    /// The mark of the job.
    pub(crate) mark: u64,
}

/// Finds a program as a shell would: a name with a slash is a path relative to `cwd`; any other name is looked up in
/// `PATH`.
pub fn find_program(name: &OsStr, cwd: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let here = |path: &Path| match cwd {
        Some(cwd) => cwd.join(path),
        None => path.to_owned(),
    };
    if name.is_empty() {
        return None;
    }
    if name.as_bytes().contains(&b'/') {
        let path = here(Path::new(name));
        return is_program(&path).then(|| std::path::absolute(&path).unwrap_or(path));
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let candidates = std::env::split_paths(path).map(|dir| here(&dir).join(name));
    candidates.filter(|path| is_program(path)).map(|path| std::path::absolute(&path).unwrap_or(path)).next()
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "contains a zero byte"))
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

/// Opens a file for a job's output, for appending, so that output and error output can share it. It is a plain file that
/// this run made: opening a pipe would wait for its reader, and a link could lead to anybody's file.
fn open_output(path: &Path, is_there: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o644);
    if !is_there {
        return options.create_new(true).open(path);
    }
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no plain file any more"));
    }
    // The job inherits what is set now.
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::APPEND)?;
    Ok(file)
}

/// An error that names the file.
fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Forks the process of a job.
///
/// # Errors
/// Whatever keeps it from being started, with the file concerned.
pub(crate) fn prepare(program: &Program, around: &Surroundings<'_>) -> io::Result<Waiting> {
    // Everything that can fail or allocate is done before the fork.
    let path = c_string(program.path.as_os_str())?;
    let args: Vec<CString> = program.args.iter().map(|arg| c_string(arg)).collect::<io::Result<_>>()?;
    let env: Vec<CString> = program
        .env
        .iter()
        .map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            c_string(&entry)
        })
        .collect::<io::Result<_>>()?;
    let shell = c"/bin/sh".to_owned();
    // A script without a first line that names its interpreter is run by the shell.
    let shell_args: Vec<CString> =
        [&shell, &path].into_iter().chain(args.iter().skip(1)).map(|arg| (*arg).clone()).collect();
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|item| item.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, envp, shell_argv) = (pointers(&args), pointers(&env), pointers(&shell_args));
    let cwd = program.cwd.as_ref().map(|cwd| c_string(cwd.as_os_str())).transpose()?;
    let stdin_path = program.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
    let stdin = File::open(stdin_path).map_err(|error| named(stdin_path, error))?;
    let stdout = open_output(&program.stdout, program.again).map_err(|error| named(&program.stdout, error))?;
    let is_there = program.again || program.stderr == program.stdout;
    let stderr = open_output(&program.stderr, is_there).map_err(|error| named(&program.stderr, error))?;
    let (mut go_read, go) = pipe()?;
    let (answer, mut answer_write) = pipe()?;
    let own_pid = std::process::id() as RawPid;
    let ignored = interrupts::inherited();

    // SAFETY: this process has one thread (the backend checks that when it is made), and the child calls only functions
    // that are safe after a fork, on data that was prepared before it.
    match unsafe { sys::fork() }? {
        Side::Parent(pid) => {
            let process = Process::read(around.root, pid)
                .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat can't be read")))?;
            Ok(Waiting { process, go, answer })
        }
        Side::Child => {
            drop(go);
            drop(answer);
            let failed = |step: u8, error: &io::Error, answer: &mut File| -> ! {
                let mut message = [0u8; 5];
                message[0] = step;
                message[1..].copy_from_slice(&error.raw_os_error().unwrap_or(0).to_ne_bytes());
                let _ = answer.write_all(&message);
                sys::exit_now(127)
            };
            // SAFETY: system calls on numbers and on strings and arrays that outlive them; every descriptor is open.
            unsafe {
                libc::setsid();
                for (file, target) in [(&stdin, 0), (&stdout, 1), (&stderr, 2)] {
                    if file.as_raw_fd() == target {
                        libc::fcntl(target, libc::F_SETFD, 0);
                    } else if libc::dup2(file.as_raw_fd(), target) < 0 {
                        failed(b'd', &io::Error::last_os_error(), &mut answer_write);
                    }
                }
                if let Some(cwd) = &cwd
                    && libc::chdir(cwd.as_ptr()) < 0
                {
                    failed(b'c', &io::Error::last_os_error(), &mut answer_write);
                }
            }
            // If the parent dies, this signal continues a stopped job, even if nothing else is left to do so.
            let _ = sys::signal_on_parent_death(libc::SIGCONT);
            sys::set_mark(around.mark);
            if let Some(limit) = around.files {
                sys::restore_file_limit(limit);
            }
            // Reading nothing means that the parent has died, before or after the signal above was asked for.
            let mut byte = [0u8];
            if !matches!(go_read.read(&mut byte), Ok(1)) || parent_pid() != own_pid {
                sys::exit_now(127);
            }
            sys::default_signals(around.mask, ignored);
            // SAFETY: both arrays end with a null pointer, and all strings live.
            unsafe {
                libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
                if io::Error::last_os_error().raw_os_error() == Some(libc::ENOEXEC) {
                    libc::execve(shell.as_ptr(), shell_argv.as_ptr(), envp.as_ptr());
                }
            }
            failed(b'x', &io::Error::last_os_error(), &mut answer_write)
        }
    }
}

fn parent_pid() -> RawPid {
    // SAFETY: takes nothing and can't fail.
    unsafe { libc::getppid() }
}

impl Waiting {
    /// Lets the process become its program. Returns the process, and a pipe that tells if that failed.
    ///
    /// # Errors
    /// The process has died meanwhile.
    pub(crate) fn go(mut self) -> io::Result<Started> {
        self.go.write_all(b"g")?;
        Ok(Started { process: self.process, answer: self.answer })
    }
}

/// A process that was told to become its program.
pub(crate) struct Started {
    pub(crate) process: Process,
    answer: File,
}

impl Started {
    /// Waits until the program is in place.
    ///
    /// # Errors
    /// The program could not be started; the process then ends by itself.
    pub(crate) fn wait(mut self, program: &Program) -> io::Result<Process> {
        let mut message = Vec::new();
        // The pipe closes when the program is in place.
        self.answer.read_to_end(&mut message)?;
        if message.len() < 5 {
            return Ok(self.process);
        }
        let code = i32::from_ne_bytes([message[1], message[2], message[3], message[4]]);
        let error = io::Error::from_raw_os_error(code);
        Err(match (message[0], &program.cwd) {
            (b'c', Some(cwd)) => named(cwd, error),
            _ => named(&program.path, error),
        })
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
        let find = |name: &str, cwd, path: &str| find_program(OsStr::new(name), cwd, Some(OsStr::new(path)));
        let here = dir.path().to_str().unwrap();
        assert_eq!(find("tool", None, here), None, "not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("tool", None, &format!("/nowhere:{here}")), Some(program.clone()));
        assert_eq!(find("./tool", Some(dir.path()), "/nowhere").unwrap().file_name(), program.file_name());
        assert_eq!(find("./tool", None, here), None);
        assert_eq!(find(here, None, "/nowhere"), None, "a folder");
        assert_eq!(find("", None, here), None);
    }
}
