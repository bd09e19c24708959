//! What an earlier call of a comparison has left running, if it was killed: no run is made beside it.

use crate::exit::{Exit, Failure};
use crate::input::told;
use crate::stderr;
use crate::whole_file::{append_regular, read_own};
use cosched_linux::mend::{Reach, mend};
use cosched_linux::orphans::{end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_linux::{Fate, fate_of};
use cosched_report::visible;
use cosched_run::orphan_text;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Grace period for jobs of a killed run, and for processes of a command whose comparison died.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Grace period for a run to end its jobs after its comparison died.
pub(super) const RUN_GRACE: Duration = Duration::from_secs(30);

/// The file that each keeper of a folder has locked as long as it lives. It holds the identity of the run that began last.
pub(super) const LOCK: &str = ".keeper";

/// How often it is looked whether something has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Lets those who come later wait for this process. Where files can't be locked nobody waits.
pub(super) fn let_others_wait(folder: &Path) -> Option<File> {
    let file = append_regular(&folder.join(LOCK)).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Notes which run it is that goes on, for those who come later if all of this is killed.
pub(super) fn name_run(lock: Option<&File>, run: Option<String>) {
    if let Some((mut file, run)) = lock.zip(run) {
        // Without it, `cosched thaw --kill` ends the jobs.
        let _ = file
            .set_len(0)
            .and_then(|()| file.write_all(run.as_bytes()));
    }
}

/// Waits until what an earlier call began has ended, and ends the jobs of runs that were killed.
///
/// # Errors
/// Some of it still goes on.
pub(super) fn end(folder: &Path) -> anyhow::Result<()> {
    let patience = Instant::now() + RUN_GRACE + 2 * GRACE;
    let busy = |what: &str| Failure {
        exit: Exit::Failure,
        message: format!(
            "{}: {what} of an earlier call of this comparison has not ended yet; end it, and go on then",
            told(folder)
        ),
    };
    if let Ok(file) = append_regular(&folder.join(LOCK)) {
        while matches!(
            flock(&file, FlockOperation::NonBlockingLockExclusive),
            Err(Errno::WOULDBLOCK)
        ) {
            if Instant::now() > patience {
                return Err(busy("a run").into());
            }
            std::thread::sleep(LOOK);
        }
    }
    let Some(run) = read_own(&folder.join(LOCK)).and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        return Ok(());
    };
    let root = Root::default();
    while fate_of(&root, &run) == Fate::Alive {
        if Instant::now() > patience {
            return Err(busy(&format!("run {}", visible(&run))).into());
        }
        std::thread::sleep(LOOK);
    }
    // Its name is from a file.
    let reach = Reach::Runs(vec![run], geteuid().as_raw());
    let found = orphans_within(&root, &reach);
    if found.is_empty() {
        return Ok(());
    }
    let all = |orphans: &[_]| {
        orphans
            .iter()
            .map(orphan_text)
            .collect::<Vec<_>>()
            .join("; ")
    };
    stderr::say(format_args!(
        "cosched: an earlier call of this comparison was killed, and left jobs, which are ended: {}",
        all(&found)
    ));
    mend(&root, &reach);
    let (_, left) = end_orphans(&root, &reach, GRACE);
    mend(&root, &reach);
    if left.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{}: jobs of an earlier call of this comparison still run, and can't be ended by this user: {}; end them (`cosched thaw \
         --kill` as root), and go on then",
        told(folder),
        all(&left)
    );
    Err(Failure {
        exit: Exit::Permission,
        message,
    }
    .into())
}
