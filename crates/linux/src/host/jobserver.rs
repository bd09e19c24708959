//! The jobservers of GNU make for jobs: a pipe with tokens for each job.
//!
//! A client (make, ninja, cargo) runs one process without a token, and one more for each byte that it reads from the
//! pipe; it writes the byte back when that process has ended. So a job with n CPUs gets n - 1 tokens. Each job has its
//! own pipe: its CPUs are its own too, and if it is killed, its tokens are lost to no other job.
//!
//! make knows the name of the pipe since 4.4, and ninja knows nothing else; an older make fails at it, and wants two
//! descriptors that it inherits. Which make a job calls is not known before, so the one in `PATH` decides for all.

use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::{NoFolder, PrivateFolder};
use crate::watch::JOBSERVER;
use cosched_core::{CpuSet, Nanos, TaskId};
use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::process::Command;

/// Time between two looks at the memory.
const LOOKS_EVERY: Nanos = Nanos::from_ms(1_000);

/// The jobservers of the live jobs.
#[derive(Default)]
pub(super) struct Jobservers {
    /// The folder of the pipes, and the first part of their names; `None` if jobs get no jobserver.
    place: Option<(PrivateFolder, String)>,
    pipes: BTreeMap<TaskId, Pipe>,
    style: Style,
    is_short_of_memory: bool,
    next_look: Nanos,
}

/// How a client finds the pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Style {
    /// By its name.
    #[default]
    Name,
    /// By the numbers of two descriptors that it inherits.
    Descriptors,
}

impl Style {
    /// What the `make` in `PATH` can use.
    fn of_make() -> Style {
        let mut make = Command::new("make");
        make.arg("--version").env_remove("MAKEFLAGS");
        match make.output() {
            Ok(output) => Style::of_version(&String::from_utf8_lossy(&output.stdout)),
            Err(_) => Style::Name,
        }
    }

    /// What a make with this answer to `--version` can use.
    fn of_version(text: &str) -> Style {
        let Some(version) = text.strip_prefix("GNU Make ") else {
            return Style::Name;
        };
        let version = version.split_whitespace().next().unwrap_or_default();
        let mut numbers = version
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) < (4, 4) => Style::Descriptors,
            _ => Style::Name,
        }
    }
}

/// What a job that is about to start gets of its jobserver.
pub(super) struct Offer {
    /// Its `MAKEFLAGS`.
    pub(super) flags: String,
    /// The ends that it inherits. They are closed here once it has started.
    _ends: Option<[OwnedFd; 2]>,
}

/// The lowest number of a descriptor that jobs inherit: a shell script uses those with one digit.
const LOWEST: i32 = 10;

/// Opens one end of the pipe for a job that is started before the descriptor is closed.
fn inherited(folder: &PrivateFolder, name: &str, end: OFlags) -> rustix::io::Result<OwnedFd> {
    let end = rustix::fs::openat(folder, name, end | OFlags::CLOEXEC, Mode::empty())?;
    let end = fcntl_dupfd_cloexec(&end, LOWEST)?;
    fcntl_setfd(&end, FdFlags::empty())?;
    Ok(end)
}

struct Pipe {
    file: File,
    /// Number of tokens in the pipe and with its clients.
    tokens: usize,
    /// Number of tokens that the job's CPUs allow.
    allowed: usize,
}

impl Pipe {
    /// Number of tokens that there should be.
    fn target(&self, is_short_of_memory: bool) -> usize {
        if is_short_of_memory { 0 } else { self.allowed }
    }

    /// Adds the tokens that are missing, or takes back those that are too many and in no client's hands.
    fn settle(&mut self, target: usize) {
        if self.tokens < target {
            let missing = vec![b'+'; target - self.tokens];
            self.tokens += self.file.write(&missing).unwrap_or(0);
        } else if self.tokens > target {
            let mut surplus = vec![0; self.tokens - target];
            self.tokens -= self.file.read(&mut surplus).unwrap_or(0);
        }
    }
}

impl Jobservers {
    /// The jobservers of a run, which has no job yet.
    ///
    /// # Errors
    /// There is no folder for them.
    pub(super) fn new(root: &Root, run: &RunId) -> Result<Jobservers, NoFolder> {
        let mut jobservers = Jobservers::default();
        jobservers.place = Some((PrivateFolder::own(root)?, format!("{JOBSERVER}{run}")));
        jobservers.style = Style::of_make();
        Ok(jobservers)
    }

    /// Creates the jobserver of a job that is about to start with so many CPUs. It has no token before the next
    /// [`tend`](Jobservers::tend). Returns what to hold until the job has started; `None` if jobs get no jobserver.
    ///
    /// # Errors
    /// The pipe cannot be created.
    pub(super) fn open(&mut self, task: TaskId, cpus: usize) -> Result<Option<Offer>, NoFolder> {
        let Some((folder, run)) = &self.place else {
            return Ok(None);
        };
        let name = format!("{run}.{}", task.0);
        let file = folder.create_pipe(&name)?;
        let (auth, ends) = match self.style {
            Style::Name => (format!("fifo:{}", folder.path_of(&name).display()), None),
            Style::Descriptors => {
                let end = |flags| {
                    inherited(folder, &name, flags)
                        .map_err(|error| folder.problem(&name, error.into()))
                };
                let ends = [end(OFlags::RDONLY)?, end(OFlags::WRONLY)?];
                let [read, write] = ends.each_ref().map(|end| end.as_raw_fd());
                (format!("{read},{write}"), Some(ends))
            }
        };
        let pipe = Pipe {
            file,
            tokens: 0,
            allowed: 0,
        };
        self.pipes.insert(task, pipe);
        // As make writes it: options with a letter, of which there are none, would come before the first blank.
        Ok(Some(Offer {
            flags: format!(" -j{cpus} --jobserver-auth={auth}"),
            _ends: ends,
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pipes.is_empty()
    }

    /// Removes the jobserver of a job that has ended.
    pub(super) fn close(&mut self, task: TaskId) {
        if let (Some(_), Some((folder, run))) = (self.pipes.remove(&task), &self.place) {
            folder.remove(format!("{run}.{}", task.0));
        }
    }

    /// Fits the tokens to the CPUs of the running jobs; other jobs keep theirs. While memory is short, there are none.
    /// Returns when to look at the memory again.
    pub(super) fn tend(
        &mut self,
        now: Nanos,
        running: &BTreeMap<TaskId, &CpuSet>,
        is_short_of_memory: impl FnOnce() -> bool,
    ) -> Nanos {
        if now >= self.next_look {
            self.is_short_of_memory = is_short_of_memory();
            self.next_look = now + LOOKS_EVERY;
        }
        for (task, cpus) in divided(running) {
            if let Some(pipe) = self.pipes.get_mut(&task) {
                pipe.allowed = cpus.saturating_sub(1);
            }
        }
        for pipe in self.pipes.values_mut() {
            pipe.settle(pipe.target(self.is_short_of_memory));
        }
        self.next_look
    }

    /// The pipes from which clients still owe tokens: they become readable when a client returns one.
    pub(super) fn owing(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let is_short = self.is_short_of_memory;
        let pipes = self.pipes.values();
        let owing = pipes.filter(move |pipe| pipe.tokens > pipe.target(is_short));
        owing.map(|pipe| pipe.file.as_fd())
    }
}

impl Drop for Jobservers {
    fn drop(&mut self) {
        while let Some((&task, _)) = self.pipes.first_key_value() {
            self.close(task);
        }
    }
}

/// Divides the CPUs among the running jobs, given with the CPUs that each may use: a CPU counts for one of its jobs, the
/// one that has the fewest so far.
fn divided(running: &BTreeMap<TaskId, &CpuSet>) -> BTreeMap<TaskId, usize> {
    let mut shares: BTreeMap<TaskId, usize> = running.keys().map(|&task| (task, 0)).collect();
    let all: CpuSet = running.values().flat_map(|cpus| cpus.iter()).collect();
    for cpu in all.iter() {
        let users = running.iter().filter(|(_, cpus)| cpus.contains(cpu));
        if let Some((task, _)) = users.min_by_key(|(task, _)| shares[task]) {
            *shares.entry(*task).or_default() += 1;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tests::tree;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn each_cpu_counts_for_one_job() {
        for (sets, shares) in [
            (vec!["0-3"], vec![4]),
            (vec!["0", "1-3"], vec![1, 3]),
            // The kernel shares the CPUs out.
            (vec!["0-3", "0-3", "0-3"], vec![2, 1, 1]),
            (vec!["0-1", "0-1", "0-1"], vec![1, 1, 0]),
            // Each has a CPU of its own and the spare one.
            (vec!["0,2", "1-2"], vec![2, 1]),
            (vec!["0,2", "0-1"], vec![2, 1]),
            (vec![], vec![]),
        ] {
            let sets: Vec<CpuSet> = sets.into_iter().map(cpus).collect();
            let running = (0..).map(TaskId).zip(&sets).collect();
            let divided: Vec<usize> = divided(&running).into_values().collect();
            assert_eq!(divided, shares, "{sets:?}");
        }
    }

    #[test]
    fn an_old_make_gets_descriptors() {
        for (text, style) in [
            ("GNU Make 4.4.1\nBuilt for", Style::Name),
            ("GNU Make 4.4", Style::Name),
            ("GNU Make 5.0", Style::Name),
            ("GNU Make 4.3\nBuilt for", Style::Descriptors),
            ("GNU Make 4.2.1", Style::Descriptors),
            ("bmake", Style::Name),
            ("", Style::Name),
        ] {
            assert_eq!(Style::of_version(text), style, "{text}");
        }
    }

    #[test]
    fn tokens_follow_cpus_and_memory_and_debts_are_paid_later() {
        let (_dir, root, own) = tree();
        let mut all = Jobservers::new(&root, &RunId::NOBODY).unwrap();
        all.style = Style::Name;
        let (four, one) = (cpus("0-3"), cpus("0"));
        let running = |cpus| BTreeMap::from([(TaskId(7), cpus)]);
        let names = || std::fs::read_dir(&own).unwrap().count();
        let flags = all.open(TaskId(7), 4).unwrap().unwrap().flags;
        let (options, path) = flags.split_once("fifo:").unwrap();
        assert_eq!(options, " -j4 --jobserver-auth=");
        let client = PrivateFolder::own(&root).unwrap();
        let name = path.rsplit_once('/').unwrap().1;
        let open = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK;
        let mode = rustix::fs::Mode::empty();
        let client = File::from(rustix::fs::openat(&client, name, open, mode).unwrap());
        let take = |most: usize| (&client).read(&mut vec![0; most]).unwrap_or(0);
        let give = |count: usize| (&client).write(&vec![b'+'; count]).unwrap();
        let s = Nanos::from_s;
        let next = all.tend(s(1.0), &running(&four), || false);
        assert_eq!((next, take(9)), (s(2.0), 3));
        give(1);
        all.tend(s(1.1), &running(&one), || panic!("it looked just now"));
        assert_eq!((take(9), all.owing().count()), (0, 1), "two are in use");
        give(1);
        all.tend(s(1.2), &running(&one), || panic!("it looked just now"));
        assert_eq!((take(9), all.owing().count()), (0, 1));
        all.tend(s(1.3), &running(&four), || panic!("it looked just now"));
        assert_eq!((take(9), all.owing().count()), (2, 0));
        all.tend(s(2.0), &running(&four), || true);
        give(3);
        assert_eq!(all.owing().count(), 1, "memory is short");
        all.tend(s(2.1), &BTreeMap::new(), || panic!("it looked just now"));
        assert_eq!((take(9), all.owing().count()), (0, 0));
        all.tend(s(3.0), &BTreeMap::new(), || false);
        assert_eq!(take(9), 3, "a frozen job keeps its tokens");
        all.open(TaskId(8), 1).unwrap();
        assert_eq!(names(), 2);
        all.close(TaskId(8));
        assert_eq!(names(), 1);
        drop(all);
        assert_eq!(names(), 0);
    }
}
