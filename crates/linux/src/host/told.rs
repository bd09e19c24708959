//! The progress that a job writes to a descriptor of its own.

use super::printed::tail;
use crate::spawn::Further;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, RawFd};

/// Environment variable with the number of the descriptor.
pub(super) const PROGRESS_VARIABLE: &str = "COSCHED_PROGRESS_FD";

/// What a job has written to its descriptor. It is in memory: a pipe that nobody reads in time would block the job.
pub(super) struct Told {
    file: File,
    /// Its number in the job.
    pub(super) number: RawFd,
}

impl Told {
    pub(super) fn new(number: RawFd) -> io::Result<Told> {
        let file = memfd_create("cosched-progress", MemfdFlags::CLOEXEC)?.into();
        Ok(Told { file, number })
    }

    /// What the job gets.
    pub(super) fn further(&self) -> Further<'_> {
        Further {
            file: self.file.as_fd(),
            number: self.number,
        }
    }

    /// The share done by its last line; `None` if that tells none.
    pub(super) fn share(&self) -> Option<f64> {
        share_of(tail(&self.file)?.lines().last()?)
    }
}

/// The share in a line: the per cent done, as in `42` or `42 %`, or what is done and of how much, as in `21/50`.
fn share_of(line: &str) -> Option<f64> {
    let (done, whole) = match line.split_once('/') {
        Some((done, whole)) => (done, number(whole)?),
        None => (line.trim_end().trim_end_matches('%'), 100.0),
    };
    let share = number(done)? / whole;
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_per_cent_or_how_much_of_what() {
        let told = [
            ("42", Some(0.42)),
            (" 42.5 % ", Some(0.425)),
            ("21/50", Some(0.42)),
            ("3 / 2", Some(1.0)),
            ("-1", Some(0.0)),
            ("1/0", None),
            ("nan", None),
            ("half", None),
            ("", None),
        ];
        for (line, share) in told {
            assert_eq!(share_of(line), share, "{line}");
        }
    }
}
