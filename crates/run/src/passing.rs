//! The log folder of a run that keeps none (`--no-logs`): it goes with the run.

use super::folder::{self, Folder};
use std::path::{Path, PathBuf};

/// The log folder of a run, which is removed in the end with `--no-logs`.
pub(crate) struct Passing {
    /// Dropped first, to unlock the folder.
    folder: Option<Folder>,
    path: PathBuf,
    keeps: bool,
}

impl Passing {
    /// Takes the folder at `path`, to be removed when dropped unless `keeps`.
    pub(crate) fn new(folder: Folder, path: &Path, keeps: bool) -> Passing {
        Passing {
            folder: Some(folder),
            path: path.to_owned(),
            keeps,
        }
    }

    /// Keeps the folder if it holds output that is nowhere else.
    pub(crate) fn keep_if(&mut self, holds_more: bool) {
        self.keeps |= holds_more;
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.folder = None;
        if !self.keeps
            && let Ok(unused) = folder::lock(&self.path)
        {
            let _ = unused.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Readers;

    #[test]
    fn a_run_that_keeps_no_logs_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        for keeps in [false, true] {
            let logs = base.path().join("logs");
            let names = ["a.out".to_owned(), "solo".to_owned()];
            let folder = Folder::claim(&logs, &names, Readers::Everybody).unwrap();
            std::fs::write(logs.join("a.out"), "x").unwrap();
            std::fs::create_dir(logs.join("solo")).unwrap();
            drop(Passing::new(folder, &logs, keeps));
            assert_eq!(logs.exists(), keeps);
        }
    }
}
