//! Starts a job. Its process waits until its counters are attached, it is in its group and its CPUs are set, and then
//! becomes the job's program.
#![allow(unsafe_code)]

use crate::interrupts;
use crate::process::{FileId, JOB_VARIABLE, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys::{self, FileLimit, RawPid, SignalMask, Stack};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Path of the program, found already.
    pub path: PathBuf,
    /// Its arguments; the first is the name by which it was called.
    pub args: Vec<OsString>,
    /// Its environment, but for the marks of the run. Jobs share it where it is the same.
    pub env: Arc<Environment>,
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

/// Names and values of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// As `NAME=VALUE`.
    entries: Vec<CString>,
}

impl Environment {
    /// The environment of these variables. Those with which a run marks its jobs are left out: a run within a run puts its
    /// own marks in place of the outer one's.
    ///
    /// # Errors
    /// A name or value contains a zero byte.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Environment> {
        let others = variables
            .into_iter()
            .filter(|(name, _)| name != RUN_VARIABLE && name != JOB_VARIABLE);
        let entry = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            c_string(&name)
        };
        Ok(Environment {
            entries: others.map(entry).collect::<io::Result<_>>()?,
        })
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let values = self
            .entries
            .iter()
            .filter_map(|entry| entry.as_bytes().strip_prefix(name.as_bytes()));
        values
            .filter_map(|rest| rest.strip_prefix(b"="))
            .map(OsStr::from_bytes)
            .next()
    }
}

/// What a child needs from the run: the signal mask and the file limit to restore, and its mark.
pub(crate) struct Surroundings {
    pub(crate) mask: SignalMask,
    pub(crate) files: Option<FileLimit>,
    /// The mark of the job.
    pub(crate) mark: u64,
}

/// Finds a program as a shell would: a name with a slash is a path relative to `cwd`; any other name is looked up in
/// `PATH`.
pub fn find_program(name: &OsStr, cwd: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
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
    candidates
        .filter(|path| is_program(path))
        .map(|path| std::path::absolute(&path).unwrap_or(path))
        .next()
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "contains a zero byte"))
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
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
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

/// All that the process of a job reads before it becomes its program. It lies in the memory of the run, which the two
/// share until then, so nothing here may change or move, and nothing in the child may allocate or free.
struct Image {
    path: CString,
    /// Ends with a null pointer, as do the next two.
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    shell_argv: Vec<*const libc::c_char>,
    cwd: Option<CString>,
    /// What becomes standard input, output and error output.
    files: [RawFd; 3],
    /// The ends of the two pipes: those of the child, and those of the run, which it closes.
    go_read: RawFd,
    answer_write: RawFd,
    others: [RawFd; 2],
    around: Surroundings,
    ignored: &'static [i32],
    run: RawPid,
}

const SHELL: &CStr = c"/bin/sh";

/// A job's process that has not become its program yet. Dropping it ends the process.
pub(crate) struct Waiting {
    pid: RawPid,
    /// It was made in the group that was given. If not, it is to be moved there.
    pub(crate) is_in_group: bool,
    /// Written to when the process is to go on; closing it ends the process.
    go: Option<File>,
    /// The files that its output and its error output go to.
    pub(crate) outputs: [FileId; 2],
    /// Closes when the process has become its program or has ended: until then it uses all that is below.
    answer: File,
    _stack: Stack,
    _image: Box<Image>,
    /// What the image points to.
    _strings: Vec<CString>,
    _env: Arc<Environment>,
}

/// Makes the process of a job.
///
/// It shares the memory of the run until it becomes its program, as after `vfork`, so that the tables of a large run's
/// pages need not be copied. Unlike there the run goes on, to attach counters and the like; the process waits meanwhile.
/// Where the kernel can it is made in `group`, the directory of a cgroup.
///
/// # Errors
/// Whatever keeps it from being started, with the file concerned.
pub(crate) fn prepare(
    program: &Program,
    marks: &[(&str, &str)],
    around: Surroundings,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<Waiting> {
    let path = c_string(program.path.as_os_str())?;
    let mut strings: Vec<CString> = program
        .args
        .iter()
        .map(|arg| c_string(arg))
        .collect::<io::Result<_>>()?;
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|item| item.as_ptr()).collect()
    };
    let ended = |mut list: Vec<*const libc::c_char>| {
        list.push(std::ptr::null());
        list
    };
    let argv = ended(pointers(&strings));
    // A script without a first line that names its interpreter is run by the shell.
    let script = [SHELL.as_ptr(), path.as_ptr()]
        .into_iter()
        .chain(argv.iter().skip(1).copied());
    let shell_argv = if program.args.is_empty() {
        ended(script.collect())
    } else {
        script.collect()
    };
    let marks: Vec<CString> = marks
        .iter()
        .map(|(name, value)| c_string(OsStr::new(&format!("{name}={value}"))))
        .collect::<io::Result<_>>()?;
    let envp = ended([pointers(&program.env.entries), pointers(&marks)].concat());
    strings.extend(marks);
    let cwd = program
        .cwd
        .as_ref()
        .map(|cwd| c_string(cwd.as_os_str()))
        .transpose()?;
    let stdin_path = program.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
    let stdin = File::open(stdin_path).map_err(|error| named(stdin_path, error))?;
    let stdout = open_output(&program.stdout, program.again)
        .map_err(|error| named(&program.stdout, error))?;
    let is_there = program.again || program.stderr == program.stdout;
    let stderr =
        open_output(&program.stderr, is_there).map_err(|error| named(&program.stderr, error))?;
    let id = |file: &File| file.metadata().map(|file| (file.dev(), file.ino()));
    let outputs = [id(&stdout)?, id(&stderr)?];
    let (go_read, go) = pipe()?;
    let (answer, answer_write) = pipe()?;
    let image = Box::new(Image {
        path,
        argv,
        envp,
        shell_argv,
        cwd,
        files: [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()],
        go_read: go_read.as_raw_fd(),
        answer_write: answer_write.as_raw_fd(),
        others: [go.as_raw_fd(), answer.as_raw_fd()],
        around,
        ignored: interrupts::inherited(),
        run: std::process::id() as RawPid,
    });
    let stack = Stack::new()?;
    let argument = (&raw const *image).cast_mut().cast();
    let in_group = group.and_then(|group| {
        // SAFETY: `become_program` calls only functions that are safe after a fork, on data that was prepared before it, and
        // never returns. The data and the stack live until the pipe for the answer has closed: `Waiting` sees to that.
        unsafe { sys::clone_into_group(become_program, &stack, argument, group) }.ok()
    });
    let pid = match in_group {
        Some(pid) => pid,
        // SAFETY: the same.
        None => unsafe { sys::clone_sharing_memory(become_program, &stack, argument) }?,
    };
    // The child has descriptors of its own.
    drop((stdin, stdout, stderr, go_read, answer_write));
    Ok(Waiting {
        pid,
        is_in_group: in_group.is_some(),
        go: Some(go),
        outputs,
        answer,
        _stack: stack,
        _image: image,
        _strings: strings,
        _env: program.env.clone(),
    })
}

/// The child's side: waits until it is told to go on, and becomes the job's program.
///
/// The C library's `errno` is the run's as well. So before the word to go on comes, nothing is called that can fail;
/// after that the run waits for the answer and looks at nothing.
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
        // If the parent dies, this signal continues a stopped job, even if nothing else is left to do so.
        let _ = sys::signal_on_parent_death(libc::SIGCONT);
        // Reading nothing means that the run has died, before or after the signal above was asked for.
        let mut byte = 0u8;
        if libc::read(image.go_read, (&raw mut byte).cast(), 1) != 1 || libc::getppid() != image.run
        {
            sys::exit_now(127);
        }
        sys::set_mark(around.mark);
        for (&file, target) in image.files.iter().zip(0..) {
            if file == target {
                libc::fcntl(target, libc::F_SETFD, 0);
            } else if libc::dup2(file, target) < 0 {
                failed(image, b'd');
            }
        }
        if let Some(cwd) = &image.cwd
            && libc::chdir(cwd.as_ptr()) < 0
        {
            failed(image, b'c');
        }
        if let Some(limit) = &around.files {
            sys::restore_file_limit(limit);
        }
        sys::default_signals(&around.mask, image.ignored);
        libc::execve(
            image.path.as_ptr(),
            image.argv.as_ptr(),
            image.envp.as_ptr(),
        );
        if io::Error::last_os_error().raw_os_error() == Some(libc::ENOEXEC) {
            libc::execve(
                SHELL.as_ptr(),
                image.shell_argv.as_ptr(),
                image.envp.as_ptr(),
            );
        }
        failed(image, b'x')
    }
}

/// Tells the run which step failed and why, and ends the child.
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

    /// Lets the process become its program, and waits until it has.
    ///
    /// # Errors
    /// The program could not be started, or the process has died meanwhile; it then ends by itself.
    pub(crate) fn start(mut self, program: &Program) -> io::Result<()> {
        if let Some(mut go) = self.go.take() {
            go.write_all(b"g")?;
        }
        let mut message = [0; 5];
        // The pipe closes when the program is in place.
        if self.read_answer(&mut message) == 0 {
            return Ok(());
        }
        let [step, code @ ..] = message;
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
        Err(match (step, &program.cwd) {
            (b'c', Some(cwd)) => named(cwd, error),
            _ => named(&program.path, error),
        })
    }
}

impl Waiting {
    /// Reads from the child until something comes or it has closed its end; returns how much came. These calls leave
    /// `errno` alone.
    fn read_answer(&self, message: &mut [u8]) -> usize {
        rustix::io::retry_on_intr(|| rustix::io::read(&self.answer, &mut *message)).unwrap_or(0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.go = None;
        // Until the child has closed this, it uses what is about to be freed.
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
