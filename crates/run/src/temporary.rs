//! Temporary log folders, of runs that keep none. A run removes its own, and what killed runs of its user have left.

use super::folder::{MANIFEST, lock, plain, remove_folder, stamp};
use crate::exit::usage;
use crate::input::told;
use anyhow::Result;
use cosched_linux::identity::host_name;
use cosched_linux::mend::Reach;
use cosched_linux::orphans::orphans_within;
use cosched_linux::root::Root;
use cosched_linux::{RunFate, fate_of, own_run};
use rustix::process::geteuid;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Entries of the temporary directory that are searched: any user can fill it.
const MOST_ENTRIES: usize = 100_000;

/// The path of the temporary folder of this run. Its temporary directory is not made if it is missing.
///
/// # Errors
/// That is missing.
pub(crate) fn folder() -> Result<PathBuf> {
    let all = std::env::temp_dir();
    if all.is_dir() {
        let name = own_run(&Root::default()).unwrap_or_else(stamp);
        return Ok(all.join(prefix() + &name));
    }
    let all = told(&all);
    Err(usage(format!(
        "--no-logs: the temporary directory {all} does not exist; nothing was started; set TMPDIR to another"
    )))
}

/// What the names of such folders begin with; the identity of the run follows. Hosts can share the directory, and no other
/// host's runs can be seen from here.
fn prefix() -> String {
    match host_name(&Root::default()) {
        Some(host) => format!("cosched-{}-", plain(&host)),
        None => "cosched-".to_owned(),
    }
}

/// Removes the temporary folders of this user's dead runs whose jobs have ended.
pub(crate) fn remove_left() {
    let Ok(entries) = std::env::temp_dir().read_dir() else {
        return;
    };
    let prefix = prefix();
    for entry in entries.take(MOST_ENTRIES).flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let folder = entry.path();
        // Anybody can make such folders, and a look at all processes takes long.
        if run.is_some() && is_own(&folder) && run.is_some_and(is_over) {
            remove_unless_used(&folder);
        }
    }
}

/// Whether a run is dead and has no live job.
fn is_over(run: &str) -> bool {
    let root = Root::default();
    let reach = Reach::Runs(vec![run.to_owned()], geteuid().as_raw());
    fate_of(&root, run) == RunFate::Dead && orphans_within(&root, &reach).is_empty()
}

/// Whether a folder is this user's, and was not kept.
fn is_own(folder: &Path) -> bool {
    let Ok(meta) = folder.symlink_metadata() else {
        return false;
    };
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    let is_ours = meta.is_dir() && meta.uid() == geteuid().as_raw();
    // Its run may have died before it made the first file.
    is_ours && (folder.join(MANIFEST).exists() || is_empty())
}

/// Removes a folder, unless a run uses it.
fn remove_unless_used(folder: &Path) {
    if std::fs::remove_dir(folder).is_ok() {
        return;
    }
    if let Ok(_lock) = lock(folder) {
        remove_folder(folder);
    }
}
