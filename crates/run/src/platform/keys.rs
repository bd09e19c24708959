//! Which command a job is, for what is known of it from earlier runs.

use crate::input::{Command, Job, path_text, program_words, script};
use cosched_memory::CommandKey;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Makes the keys of jobs that run on this machine. Each file is looked at once.
pub(crate) struct Keys {
    machine: Rc<str>,
    folder: Rc<str>,
    files: RefCell<HashMap<PathBuf, Option<File>>>,
}

/// A file as it is now.
#[derive(Clone)]
struct File {
    /// Its name, without links.
    path: String,
    /// That, its size and the time of its last change.
    identity: String,
}

impl Keys {
    /// For jobs on a machine of this kind.
    pub(crate) fn new(machine: String) -> Keys {
        let folder = std::env::current_dir()
            .map(|folder| path_text(&folder))
            .unwrap_or_default();
        Keys {
            machine: machine.into(),
            folder: folder.into(),
            files: RefCell::default(),
        }
    }

    /// Looks at each file again.
    pub(crate) fn forget(&self) {
        self.files.borrow_mut().clear();
    }

    /// The key of a job, whose working folder is `cwd` if it has one of its own. `find` finds programs as the job would.
    /// `None` if the job has no command.
    pub(crate) fn of(
        &self,
        job: &Job,
        cwd: Option<&Path>,
        find: impl Fn(&OsStr) -> Option<PathBuf>,
    ) -> Option<CommandKey> {
        let command = job.input.command.as_ref()?;
        let words = program_words(command);
        let first = words.first().map(String::as_str).unwrap_or_default();
        let main = find(OsStr::new(first)).and_then(|path| self.file(&path));
        let mut program = match &main {
            Some(file) => file.path.clone(),
            None => first.to_owned(),
        };
        // Of a line for the shell that begins with the shell's own words, nothing but the shell can be told.
        let shell = match command {
            Command::Shell(line) if main.is_none() => self.file(line.program()),
            _ => None,
        };
        let script = script(&words).and_then(|word| match cwd {
            Some(cwd) => self.file(&cwd.join(word)),
            None => self.file(Path::new(word)),
        });
        if let Some(script) = &script {
            program = format!("{program} {}", script.path);
        }
        let mut identities = Vec::new();
        for file in [main, shell, script].into_iter().flatten() {
            identities.push(file.identity);
        }
        let folder = match cwd {
            Some(cwd) => path_text(cwd).into(),
            None => self.folder.clone(),
        };
        let given = job.input.given();
        let given = if given.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&given).unwrap_or_default()
        };
        Some(CommandKey {
            machine: self.machine.clone(),
            program: program.into(),
            command: command.line(),
            folder,
            given: given.into(),
            identity: identities.join(", ").into(),
        })
    }

    fn file(&self, path: &Path) -> Option<File> {
        let mut files = self.files.borrow_mut();
        let known = files.entry(path.to_owned());
        known.or_insert_with(|| File::at(path)).clone()
    }
}

impl File {
    /// What is there; `None` if it is no regular file.
    fn at(path: &Path) -> Option<File> {
        let full = path.canonicalize().ok()?;
        let meta = full.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let path = path_text(&full);
        let size = meta.len();
        let changed = meta.mtime();
        let nanos = meta.mtime_nsec();
        let identity = format!("{path} {size} {changed}.{nanos:09}");
        Some(File { path, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{list, template};
    use std::ffi::OsString;
    use std::time::{Duration, SystemTime};

    /// The keys of the lines of a list, and of one command of several words.
    fn keys(dir: &Path, lines: &str, words: &[&str]) -> Vec<CommandKey> {
        let mut inputs = list::parse(lines.as_bytes(), "list").unwrap();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = template::parse(&words, &crate::input::Reading::default(), false);
        if let template::Parsed::Listed { jobs, .. } = parsed.unwrap() {
            inputs.extend(jobs);
        }
        for input in &mut inputs {
            input.cwd = Some(dir.to_owned());
        }
        let jobs = crate::input::expand(inputs).unwrap();
        let keys = Keys::new("m".to_owned());
        let path = format!("{}:/usr/bin:/bin", dir.display());
        let find =
            |name: &OsStr| cosched_linux::find_program(name, Some(dir), Some(OsStr::new(&path)));
        jobs.iter()
            .map(|job| keys.of(job, Some(dir), find).unwrap())
            .collect()
    }

    #[test]
    fn programs_and_scripts_are_told_apart_by_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let write = |name: &str, content: &str| {
            let path = dir.join(name);
            std::fs::write(&path, content).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(content.len() as u64))
                .unwrap();
        };
        write("solve", "#!/bin/sh\n");
        write("run.sh", "true\n");
        let lines = "./solve 1 > out\nsolve 2\nbash -e run.sh x\nfor i in 1 2; do echo $i; done\n";
        let all = || keys(&dir, lines, &["sh", "run.sh", "y"]);
        let before = all();
        let at = |name: &str| dir.join(name).display().to_string();
        assert_eq!(*before[0].program, at("solve"));
        assert_eq!(
            (&before[1].program, &before[1].identity),
            (&before[0].program, &before[0].identity)
        );
        assert!(
            before[2].program.ends_with(&format!(" {}", at("run.sh"))),
            "{}",
            before[2].program
        );
        assert!(
            before[3].program.ends_with("/echo"),
            "{}",
            before[3].program
        );
        assert_eq!(
            (before[0].command.as_str(), before[4].command.as_str()),
            ("./solve 1 > out", "sh run.sh y")
        );
        write("solve", "#!/bin/sh\ntrue\n");
        write("run.sh", "false\n");
        let after = all();
        let same: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a == b).collect();
        assert_eq!(same, [false, false, false, true, false]);
        assert!(
            before
                .iter()
                .zip(&after)
                .all(|(a, b)| a.program == b.program)
        );
    }
}
