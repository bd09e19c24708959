//! Keeps the files that jobs write to within a limit. A job goes on writing at the end of its file. What is beyond the
//! limit is freed on the disk while the job runs, and cut off when it has ended, so that it can be told how much that was.
//! A file can exceed the limit on the disk by what its job writes between two looks.

use super::message::{Report, line};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The files that are watched.
#[derive(Default)]
struct Watched {
    jobs: BTreeMap<u32, Vec<Limited>>,
}

/// A file that is kept within the limit.
struct Limited {
    path: PathBuf,
    file: Option<File>,
    /// What is beyond the limit is freed up to here.
    freed: u64,
    /// Bytes that were cut off.
    cut: u64,
}

impl Limited {
    fn new(path: PathBuf) -> Limited {
        Limited {
            path,
            file: None,
            freed: 0,
            cut: 0,
        }
    }

    /// Frees what is beyond the limit. The file stays as long as it is.
    fn free(&mut self, limit: u64) {
        let from = self.freed.max(limit);
        let Some((file, length)) = self.look() else {
            return;
        };
        if length <= from {
            return;
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(file, how, from, length - from).is_ok() {
            // The last block is freed only when it is full.
            self.freed = length - length % BLOCK;
        } else if file.set_len(limit).is_ok() {
            // A file system without holes: what is written between the look and the cut is lost uncounted.
            self.cut += length - limit;
        }
    }

    /// Cuts off what is beyond the limit.
    fn cut(&mut self, limit: u64) {
        if let Some((file, length)) = self.look()
            && length > limit
            && file.set_len(limit).is_ok()
        {
            self.cut += length - limit;
        }
    }

    /// The file and its length.
    fn look(&mut self) -> Option<(&File, u64)> {
        if self.file.is_none() {
            self.file = OpenOptions::new()
                .write(true)
                .custom_flags(NO_FOLLOW)
                .open(&self.path)
                .ok();
        }
        let file = self.file.as_ref()?;
        Some((file, file.metadata().ok()?.len()))
    }
}

/// A multiple of all usual sizes of a block.
const BLOCK: u64 = 64 << 10;

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Watches the files of live jobs from a thread of its own, so that a terminal that takes nothing does not keep it from
/// looking.
pub(super) struct Limiter {
    limit: u64,
    watched: Arc<Mutex<Watched>>,
}

impl Limiter {
    pub(super) fn start(limit: u64) -> Limiter {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let shared = watched.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(LOOK);
                let mut watched = shared.lock().unwrap_or_else(PoisonError::into_inner);
                watched
                    .jobs
                    .values_mut()
                    .flatten()
                    .for_each(|file| file.free(limit));
            }
        });
        Limiter { limit, watched }
    }

    /// Watches the files of a job.
    pub(super) fn watch(&self, job: u32, files: &[PathBuf]) {
        let limited = files.iter().cloned().map(Limited::new).collect();
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .insert(job, limited);
    }

    /// Looks at the files of a job that has ended for the last time, and reports what was cut off.
    pub(super) fn ended(&self, job: u32, to: &mut impl Write) {
        let files = self
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .remove(&job);
        for (number, mut limited) in files.into_iter().flatten().enumerate() {
            limited.cut(self.limit);
            if limited.cut > 0 {
                // A run that has ended does not listen any more.
                let _ = to.write_all(&line(&Report::Cut {
                    job,
                    file: number,
                    bytes: limited.cut,
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn what_is_beyond_the_limit_is_freed_cut_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut job = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap();
        let mut limited = Limited::new(path.clone());
        let mut written = 0;
        for length in [3, 5, 1 << 20, 0, 3 << 20, 17] {
            job.write_all(&vec![b'x'; length]).unwrap();
            written += length as u64;
            limited.free(4);
            assert!(
                std::fs::metadata(&path).unwrap().blocks() * 512 <= 2 * BLOCK,
                "the disk is not filled"
            );
        }
        limited.cut(4);
        assert_eq!(std::fs::read(&path).unwrap(), b"xxxx");
        assert_eq!(limited.cut, written - 4);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut limited = Limited::new(link);
        limited.cut(1);
        assert_eq!(
            (limited.cut, std::fs::read(&path).unwrap().len()),
            (0, 4),
            "a link is not followed"
        );
    }

    #[test]
    fn a_file_is_watched_while_its_job_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, b"0123456789").unwrap();
        let limiter = Limiter::start(3);
        limiter.watch(7, &[path.clone(), dir.path().join("none")]);
        let mut told = Vec::new();
        limiter.ended(7, &mut told);
        let report: Report = serde_json::from_slice(&told).unwrap();
        assert_eq!(
            report,
            Report::Cut {
                job: 7,
                file: 0,
                bytes: 7
            }
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"012");
        let mut told = Vec::new();
        limiter.ended(7, &mut told);
        assert!(told.is_empty());
    }
}
