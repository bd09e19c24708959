//! What an attack leaves behind.

use crate::seen::{SeenProcess, in_folder, list, mount, seen};
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Everything of a run that can be left, by its token.
pub struct Traces {
    /// The folder in which its jobs work, and in which runs find each other.
    pub folder: PathBuf,
    pub token: String,
    /// A guardian that was stopped.
    pub guardian: Option<SeenProcess>,
}

/// What is left.
#[derive(Debug, Default)]
pub struct Left {
    pub processes: Vec<SeenProcess>,
    pub groups: Vec<PathBuf>,
    pub list: bool,
}

impl Left {
    pub fn nothing(&self) -> bool {
        self.processes.is_empty() && self.groups.is_empty() && !self.list
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stopped = 0;
        for process in &self.processes {
            stopped += usize::from(matches!(process.state, 'T' | 't'));
        }
        let all = self.processes.len();
        let groups = self.groups.len();
        let list = self.list;
        write!(
            f,
            "{all} processes ({stopped} stopped), {groups} groups, list: {list}"
        )?;
        for process in &self.processes {
            let SeenProcess {
                pid, state, parent, ..
            } = process;
            let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(name.trim_ascii_end());
            write!(f, "; {pid} {name} {state} of {parent}")?;
        }
        Ok(())
    }
}

/// The groups of this name.
fn groups(name: &str) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    let mut todo: Vec<PathBuf> = mount().into_iter().map(PathBuf::from).collect();
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name() == *name {
                groups.push(entry.path());
            } else {
                todo.push(entry.path());
            }
        }
    }
    groups
}

impl Traces {
    /// What is left now. Jobs that still work count.
    fn look(&self) -> Left {
        let groups = groups(&format!("cosched-{}", self.token));
        let list = list(&self.folder, &self.token).exists();
        let mut processes = in_folder(&self.folder);
        if let Some(guardian) = self.guardian
            && let Some(now) = seen(guardian.pid)
            && now.start == guardian.start
            && now.state != 'Z'
            && processes.iter().all(|process| process.pid != now.pid)
        {
            processes.push(now);
        }
        Left {
            processes,
            groups,
            list,
        }
    }

    /// Waits until nothing is left, at most for `patience`.
    pub fn wait(&self, patience: Duration, mut meanwhile: impl FnMut(&Left)) -> Left {
        let end = Instant::now() + patience;
        loop {
            let left = self.look();
            if left.nothing() || Instant::now() > end {
                return left;
            }
            meanwhile(&left);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
