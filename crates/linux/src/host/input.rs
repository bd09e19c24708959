//! The share of its input that a job has read, as anyone can see it from outside.
//!
//! The input is the largest file that a process of the job reads on. The share of it is no progress if the job keeps what
//! it reads, as `sort` does, or if the file is one of several.

use crate::hold::tree::ProcessTree;
use crate::offsets::{Offset, offsets};
use crate::process;
use cosched_core::{Absence, Reading};

/// Maximum number of processes looked at.
pub(super) const MOST_PROCESSES: usize = 16;

/// The input of a job.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The files that it read at the last look, and the memory that it had of its own, in bytes.
    files: Vec<Offset>,
    memory: u64,
    followed: Option<Offset>,
    /// Whether it was followed at two looks.
    is_settled: bool,
    is_one_of_several: bool,
}

impl Input {
    /// Looks at the processes of the job. Returns the share of its input that it has read.
    pub(super) fn look(&mut self, tree: &ProcessTree) -> Reading<f64> {
        let mut files = Vec::new();
        let mut memory = 0;
        for member in tree.members().iter().take(MOST_PROCESSES) {
            files.extend(offsets(tree.root(), member.pid));
            memory += process::own_memory(tree.root(), member.pid).unwrap_or(0);
        }
        self.update(files, memory)
    }

    /// Takes in the files that the job reads now, and the memory that it has. Returns the share of its input that it has
    /// read.
    fn update(&mut self, files: Vec<Offset>, memory: u64) -> Reading<f64> {
        let chosen = self.choose(&files);
        let before = std::mem::replace(&mut self.files, files);
        let kept = memory.saturating_sub(std::mem::replace(&mut self.memory, memory));
        let Some(now) = chosen else {
            return Reading::Absent(Absence::NoInput);
        };
        let followed = self.followed.replace(now);
        let goes_on = followed.is_some_and(|old| old.file == now.file && old.read <= now.read);
        self.is_one_of_several |= self.is_settled && !goes_on;
        if self.is_one_of_several {
            return Reading::Absent(Absence::SeveralInputs);
        }
        let read = now.read.saturating_sub(offset_in(&before, &now));
        if read > 0 && kept >= read / 2 {
            return Reading::Absent(Absence::KeepsInput);
        }
        self.is_settled |= goes_on;
        Reading::Value(now.read as f64 / now.size as f64)
    }

    /// The largest file that the job has not read to its end, and has read on since the last look. The file followed
    /// remains one of these while it is open.
    fn choose(&self, files: &[Offset]) -> Option<Offset> {
        let followed = self.followed.map(|followed| followed.file);
        let unread = files.iter().filter(|file| file.read < file.size);
        let chosen = unread
            .filter(|file| followed == Some(file.file) || file.read > offset_in(&self.files, file));
        chosen.max_by_key(|file| (file.size, file.read)).copied()
    }
}

/// The offset in the same file at the last look; 0 if it was not open.
fn offset_in(files: &[Offset], now: &Offset) -> u64 {
    let mut files = files.iter();
    let before = files.find(|before| before.file == now.file);
    before.map_or(0, |before| before.read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(file: u64, read: u64, size: u64) -> Offset {
        Offset {
            file: (1, file),
            read: read * MIB,
            size: size * MIB,
        }
    }

    /// What is read of a job at looks at the files it reads, and at its memory in MiB.
    fn seen(looks: &[(&[Offset], u64)]) -> Vec<Reading<f64>> {
        let mut input = Input::default();
        let looks = looks.iter();
        looks
            .map(|(files, memory)| input.update(files.to_vec(), memory * MIB))
            .collect()
    }

    const NONE: Reading<f64> = Reading::Absent(Absence::NoInput);
    const KEEPS: Reading<f64> = Reading::Absent(Absence::KeepsInput);
    const SEVERAL: Reading<f64> = Reading::Absent(Absence::SeveralInputs);

    fn share(share: f64) -> Reading<f64> {
        Reading::Value(share)
    }

    #[test]
    fn the_largest_file_that_is_read_on_is_followed() {
        let looks: [(&[Offset], u64); 5] = [
            (&[at(1, 0, 90), at(2, 1, 10), at(3, 1, 5)], 0),
            (&[at(1, 0, 90), at(2, 2, 10), at(3, 4, 5)], 0),
            (&[at(1, 0, 90), at(2, 2, 10), at(3, 4, 5)], 9),
            (&[at(2, 10, 10)], 9),
            (&[], 9),
        ];
        let shares = [share(0.1), share(0.2), share(0.2), NONE, NONE];
        assert_eq!(seen(&looks), shares);
    }

    #[test]
    fn what_is_kept_in_memory_is_not_done() {
        let looks: [(&[Offset], u64); 5] = [
            (&[at(1, 10, 40)], 5),
            (&[at(1, 20, 40)], 20),
            (&[at(1, 30, 40)], 24),
            (&[at(1, 32, 40)], 20),
            (&[at(2, 2, 40)], 21),
        ];
        let shares = [KEEPS, KEEPS, share(0.75), share(0.8), SEVERAL];
        assert_eq!(seen(&looks), shares);
    }

    #[test]
    fn one_of_several_files_says_nothing_of_the_others() {
        let looks: [(&[Offset], u64); 4] = [
            (&[at(1, 1, 2)], 0),
            (&[at(2, 1, 4)], 0),
            (&[at(2, 2, 4)], 0),
            (&[at(3, 2, 4)], 0),
        ];
        assert_eq!(seen(&looks), [share(0.5), share(0.25), share(0.5), SEVERAL]);
        let again: [(&[Offset], u64); 4] = [
            (&[at(1, 1, 4)], 0),
            (&[at(1, 2, 4)], 0),
            (&[at(1, 1, 4)], 0),
            (&[at(1, 2, 4)], 0),
        ];
        assert_eq!(seen(&again), [share(0.25), share(0.5), SEVERAL, SEVERAL]);
    }
}
