//! Lists read back, by the guardian or by those who come after it.

use super::{FIRST_LINE, HEAD_BYTES, Head, PREFIX, SLOT_BYTES};
use crate::identity;
use crate::process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::Folder;
use crate::sys::RawPid;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Entries beyond this are not read: a list can be as long as its user likes. There is room for a hundred thousand.
const MOST_BYTES: u64 = 64 << 20;

/// What a list says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) head: Head,
    boot: String,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) members: Vec<MemberRecord>,
    /// The number and the start of the run's guardian.
    pub(crate) guardian: Option<(RawPid, u64)>,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRecord {
    pub(crate) task: u32,
    pub(crate) pid: RawPid,
    pub(crate) start: u64,
    pub(crate) name: String,
}

/// A process in a list that belongs to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberRecord {
    pub(crate) task: u32,
    pub(crate) pid: RawPid,
    pub(crate) start: u64,
    pub(crate) session: RawPid,
}

impl Record {
    /// Reads the list of a run that goes on, whatever its length.
    pub(super) fn read(file: &File) -> Option<Record> {
        let mut bytes = Vec::new();
        crate::process::read_all(file, &mut bytes).ok()?;
        Record::parse(&bytes)
    }

    /// Reads a file that anybody may have written.
    fn read_kept(mut file: File) -> Option<Record> {
        let mut bytes = vec![0; HEAD_BYTES];
        file.read_exact(&mut bytes).ok()?;
        // What is no list is read no further.
        Record::parse(&bytes)?;
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Record::parse(&bytes)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Record> {
        let (head, slots) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut lines = head.split(|&byte| byte == b'\n');
        if lines.next()? != FIRST_LINE.as_bytes() {
            return None;
        }
        let mut value = |name: &str| lines.next()?.strip_prefix(name.as_bytes())?.strip_prefix(b" ");
        let text = |value: Option<&[u8]>| Some(std::str::from_utf8(value?).ok()?.to_owned());
        let run = RunId::parse(&text(value("run"))?)?;
        let boot = text(value("boot"))?;
        let cpus = text(value("cpus"))?.parse().ok()?;
        let group = value("group").map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
        let mut record =
            Record { head: Head { run, group, cpus }, boot, jobs: Vec::new(), members: Vec::new(), guardian: None };
        slots.chunks_exact(SLOT_BYTES).for_each(|slot| record.enter(slot));
        Some(record)
    }

    fn enter(&mut self, slot: &[u8]) {
        let mut words = slot.splitn(6, |&byte| byte == b' ');
        let kind = words.next().unwrap_or_default();
        let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
        let (Some(task), Some(pid), Some(start), Some(last)) = (number(), number(), number(), number()) else { return };
        let (Ok(task), Ok(pid)) = (u32::try_from(task), RawPid::try_from(pid)) else { return };
        match kind {
            b"job" => {
                let name = words.next().unwrap_or_default();
                let name = String::from_utf8_lossy(&name[..name.len().min(last as usize)]).into_owned();
                self.jobs.push(JobRecord { task, pid, start, name });
            }
            b"member" => {
                let Ok(session) = RawPid::try_from(last) else { return };
                self.members.push(MemberRecord { task, pid, start, session });
            }
            b"guardian" => self.guardian = Some((pid, start)),
            _ => {}
        }
    }

    /// The name of a job in it.
    pub(crate) fn name_of(&self, task: u32) -> Option<&str> {
        self.jobs.iter().find(|job| job.task == task).map(|job| job.name.as_str())
    }

    /// Whether any process that it names still exists.
    pub(crate) fn any_lives(&self, root: &Root) -> bool {
        let jobs = self.jobs.iter().map(|job| (job.pid, job.start));
        let mut all = jobs.chain(self.members.iter().map(|member| (member.pid, member.start)));
        all.any(|(pid, start)| process::lives(root, pid, start))
    }
}

/// A list that was found in a runtime folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) record: Record,
    /// The user whose run it was; only processes of this user may be acted upon.
    pub(crate) owner: u32,
}

/// The lists of all runs of this boot that the caller may act upon. Lists of earlier boots are removed.
pub(crate) fn found(root: &Root) -> Vec<Found> {
    let boot = identity::boot(root);
    let mut all = Vec::new();
    for folder in Folder::all(root) {
        for name in folder.names(PREFIX) {
            let Some(record) = folder.open_file(&name).and_then(Record::read_kept) else { continue };
            if boot.as_ref().is_some_and(|boot| *boot != record.boot) {
                folder.remove(&name);
            } else if name.as_bytes() == format!("{PREFIX}{}", record.head.run).as_bytes() {
                all.push(Found { record, owner: folder.owner });
            }
        }
    }
    all
}

/// Removes the file of a user's run. Others may have files of that name, which say something else.
pub(crate) fn forget(root: &Root, run: &RunId, owner: u32) {
    for folder in Folder::all(root).iter().filter(|folder| folder.owner == owner) {
        folder.remove(OsStr::new(&format!("{PREFIX}{run}")));
    }
}
