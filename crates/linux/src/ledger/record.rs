//! Lists read back, by the guardian or by those who come after it.

use super::{FIRST_LINE, HEAD_BYTES, Head, PREFIX, SLOT_BYTES};
use crate::identity;
use crate::process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::Folder;
use crate::sys::RawPid;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Entries beyond this are not read in all lists of another user: they can be as long as that user likes. There is room for
/// a hundred thousand.
const MOST_BYTES: u64 = 64 << 20;
/// How much of a list is read at once.
const CHUNK_BYTES: u64 = 128 * SLOT_BYTES as u64;

/// What a list says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) head: Head,
    boot: String,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) members: Vec<MemberRecord>,
    /// The number and the start of the run's guardian.
    pub(crate) guardian: Option<(RawPid, u64)>,
    /// Where each job is in `jobs`.
    places: HashMap<u32, usize>,
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

    /// Reads the head of a list that anybody may have written.
    fn read_head(file: &mut File) -> Option<Record> {
        let mut bytes = vec![0; HEAD_BYTES];
        file.read_exact(&mut bytes).ok()?;
        Record::parse(&bytes)
    }

    /// Reads the entries that follow the head, no more than `most` bytes, which become fewer. A slot that was never written
    /// is the last: slots are used in their order, but for the first, the guardian's. So no hole is read to its end.
    fn read_entries(&mut self, file: &mut File, most: &mut u64) {
        let mut is_first = true;
        while *most > 0 {
            let mut chunk = Vec::new();
            let length = CHUNK_BYTES.min(*most);
            if file.by_ref().take(length).read_to_end(&mut chunk).is_err() {
                return;
            }
            for slot in chunk.chunks_exact(SLOT_BYTES) {
                if !is_first && slot.iter().all(|&byte| byte == 0) {
                    return;
                }
                self.enter(slot);
                is_first = false;
            }
            *most -= chunk.len() as u64;
            if (chunk.len() as u64) < length {
                return;
            }
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Record> {
        let (head, slots) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut lines = head.split(|&byte| byte == b'\n');
        if lines.next()? != FIRST_LINE.as_bytes() {
            return None;
        }
        let run = RunId::parse(text(next_value(&mut lines, "run")?)?)?;
        let boot = text(next_value(&mut lines, "boot")?)?.to_owned();
        let cpus = text(next_value(&mut lines, "cpus")?)?.parse().ok()?;
        let group = next_value(&mut lines, "group")
            .map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
        let mut record = Record {
            head: Head { run, group, cpus },
            boot,
            jobs: Vec::new(),
            members: Vec::new(),
            guardian: None,
            places: HashMap::new(),
        };
        slots
            .chunks_exact(SLOT_BYTES)
            .for_each(|slot| record.enter(slot));
        Some(record)
    }

    fn enter(&mut self, slot: &[u8]) {
        let mut words = slot.splitn(6, |&byte| byte == b' ');
        let kind = words.next().unwrap_or_default();
        let [Some(task), Some(pid), Some(start), Some(last)] =
            std::array::from_fn(|_| number(words.next()?))
        else {
            return;
        };
        let (Ok(task), Ok(pid)) = (u32::try_from(task), RawPid::try_from(pid)) else {
            return;
        };
        match kind {
            b"job" => {
                let name = words.next().unwrap_or_default();
                let name =
                    String::from_utf8_lossy(&name[..name.len().min(last as usize)]).into_owned();
                self.places.entry(task).or_insert(self.jobs.len());
                self.jobs.push(JobRecord {
                    task,
                    pid,
                    start,
                    name,
                });
            }
            b"member" => {
                let Ok(session) = RawPid::try_from(last) else {
                    return;
                };
                self.members.push(MemberRecord {
                    task,
                    pid,
                    start,
                    session,
                });
            }
            b"guardian" => self.guardian = Some((pid, start)),
            _ => {}
        }
    }

    /// The name of a job in it.
    pub(crate) fn name_of(&self, task: u32) -> Option<&str> {
        self.places
            .get(&task)
            .map(|&place| self.jobs[place].name.as_str())
    }

    /// The processes that it names: the number of the job, and the process's number and start.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, RawPid, u64)> {
        let jobs = self.jobs.iter().map(|job| (job.task, job.pid, job.start));
        jobs.chain(
            self.members
                .iter()
                .map(|member| (member.task, member.pid, member.start)),
        )
    }

    /// Whether any process that it names still exists.
    pub(crate) fn any_lives(&self, root: &Root) -> bool {
        self.processes()
            .any(|(_, pid, start)| process::lives(root, pid, start))
    }
}

/// A list that was found in a runtime folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) record: Record,
    /// The user whose run it was; only processes of this user may be acted upon.
    pub(crate) owner: u32,
}

/// The lists of this boot that the caller may act upon, of the runs that are wanted. Lists of earlier boots are removed.
pub(crate) fn found(root: &Root, wanted: impl Fn(&RunId) -> bool) -> Vec<Found> {
    let boot = identity::boot(root);
    let mut all = Vec::new();
    let mut left: HashMap<u32, u64> = HashMap::new();
    for folder in Folder::all(root) {
        let most = if folder.is_own() {
            u64::MAX
        } else {
            MOST_BYTES
        };
        let left = left.entry(folder.owner).or_insert(most);
        for name in folder.names(PREFIX) {
            let Some(mut file) = folder.open_file(&name) else {
                continue;
            };
            let Some(mut record) = Record::read_head(&mut file) else {
                continue;
            };
            if boot.as_ref().is_some_and(|boot| *boot != record.boot) {
                folder.remove(&name);
                continue;
            }
            let is_its = name.as_bytes() == format!("{PREFIX}{}", record.head.run).as_bytes();
            if is_its && *left > 0 && wanted(&record.head.run) {
                record.read_entries(&mut file, left);
                all.push(Found {
                    record,
                    owner: folder.owner,
                });
            }
        }
    }
    all
}

/// Removes files without a head, of those runs that are told: such a run was killed when it had made its file, and had
/// started nothing.
pub(crate) fn forget_empty(folders: &[Folder], is_dead: impl Fn(&RunId) -> bool) {
    for folder in folders {
        for name in folder.names(PREFIX) {
            let run = name
                .to_str()
                .and_then(|name| RunId::parse(name.strip_prefix(PREFIX)?));
            if run.is_none_or(|run| !is_dead(&run)) {
                continue;
            }
            let file = folder.open_file(&name);
            if file.is_some_and(|mut file| Record::read_head(&mut file).is_none()) {
                folder.remove(&name);
            }
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn number(word: &[u8]) -> Option<u64> {
    text(word)?.parse().ok()
}

/// The value in the next line of a head, which must have this name.
fn next_value<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, name: &str) -> Option<&'a [u8]> {
    lines
        .next()?
        .strip_prefix(name.as_bytes())?
        .strip_prefix(b" ")
}

/// Removes the file of a user's run from these folders. Others may have files of that name, which say something else.
pub(crate) fn forget(folders: &[Folder], run: &RunId, owner: u32) {
    for folder in folders.iter().filter(|folder| folder.owner == owner) {
        folder.remove(OsStr::new(&format!("{PREFIX}{run}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn entries_are_read_up_to_the_first_that_was_never_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut head = format!("{FIRST_LINE}\nrun 10-77-5\nboot b\ncpus 0\n").into_bytes();
        head.resize(HEAD_BYTES, b' ');
        file.write_all(&head).unwrap();
        // The guardian's slot is a hole until there is a guardian. A struck slot has blanks.
        let slots = ["job 0 10 1 1 a", "", "job 2 12 1 1 c", "job 2 13 1 1 d"];
        let at = |slot: usize| (HEAD_BYTES + slot * SLOT_BYTES) as u64;
        for (ix, text) in slots.iter().enumerate() {
            file.write_all_at(format!("{text:SLOT_BYTES$}").as_bytes(), at(1 + ix))
                .unwrap();
        }
        file.write_all_at(
            format!("{:SLOT_BYTES$}", "job 9 19 1 1 z").as_bytes(),
            at(3_000),
        )
        .unwrap();
        let read = |most: u64| {
            let (mut file, mut left) = (&file, most);
            std::io::Seek::rewind(&mut file).unwrap();
            let mut file = file.try_clone().unwrap();
            let mut record = Record::read_head(&mut file).unwrap();
            record.read_entries(&mut file, &mut left);
            (record, most - left)
        };
        let (record, _) = read(u64::MAX);
        assert_eq!(
            record
                .processes()
                .map(|(task, ..)| task)
                .collect::<Vec<_>>(),
            [0, 2, 2]
        );
        let names = [0, 1, 2, 9].map(|task| record.name_of(task));
        assert_eq!(names, [Some("a"), None, Some("c"), None]);
        let (record, used) = read(3 * SLOT_BYTES as u64);
        assert_eq!(
            (record.jobs.len(), used),
            (1, 3 * SLOT_BYTES as u64),
            "no further than the user's share"
        );
    }
}
