//! The share of its input that each job has read, as anyone can see it from outside.
//!
//! A job's input is the largest file that one of its processes reads on. The share of it is no progress if the job keeps
//! what it reads, as `sort` does, or if the file is one of several.

use super::clock::own_cpu_time;
use crate::offsets::{Offset, offsets};
use crate::process;
use crate::tree::Tree;
use cosched_core::{Absence, Nanos, Reading, TaskId};
use std::collections::BTreeMap;

/// Least time between two looks, as a multiple of the CPU time of one. So they cost at most 0.1 % of a CPU.
const SHARE: u64 = 1_000;
/// Maximum number of processes looked at, per job.
const MOST_PROCESSES: usize = 16;

/// The inputs of all jobs.
#[derive(Default)]
pub(super) struct Inputs {
    jobs: BTreeMap<TaskId, Input>,
    /// Time of the next look.
    next: Nanos,
}

impl Inputs {
    /// Looks at the inputs of these jobs, if that is due.
    pub(super) fn look<'a>(
        &mut self,
        now: Nanos,
        jobs: impl Iterator<Item = (TaskId, &'a Tree)>,
    ) -> Vec<(TaskId, Reading<f64>)> {
        if now < self.next {
            return Vec::new();
        }
        let before = own_cpu_time();
        let mut shares = Vec::new();
        for (task, tree) in jobs {
            let input = self.jobs.entry(task).or_default();
            shares.push((task, input.look(tree)));
        }
        let took = own_cpu_time() - before;
        self.next = now + Nanos(took.0.saturating_mul(SHARE));
        shares
    }

    /// Forgets a job that has ended, or starts again.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.jobs.remove(&task);
    }
}

/// The input of a job.
#[derive(Default)]
struct Input {
    /// The files that it read at the last look, and the memory that it had of its own, in bytes.
    files: Vec<Offset>,
    memory: u64,
    followed: Option<Offset>,
    was_shown: bool,
    is_one_of_several: bool,
}

impl Input {
    fn look(&mut self, tree: &Tree) -> Reading<f64> {
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
        self.files = files;
        let kept = memory.saturating_sub(std::mem::replace(&mut self.memory, memory));
        let Some(now) = chosen else {
            return Reading::Absent(Absence::NoInput);
        };
        let before = self.followed.replace(now);
        let before = before.filter(|before| before.file == now.file && before.read <= now.read);
        self.is_one_of_several |= self.was_shown && before.is_none();
        if self.is_one_of_several {
            return Reading::Absent(Absence::SeveralInputs);
        }
        let Some(before) = before else {
            return Reading::Absent(Absence::NotYetMeasured);
        };
        let read = now.read - before.read;
        if read > 0 && kept >= read / 2 {
            return Reading::Absent(Absence::KeepsInput);
        }
        self.was_shown = true;
        Reading::Value(now.read as f64 / now.size as f64)
    }

    /// The largest file that the job has not read to its end, and has read on since the last look. The file followed
    /// remains one of these while it is open.
    fn choose(&self, files: &[Offset]) -> Option<Offset> {
        let followed = self.followed.map(|followed| followed.file);
        let unread = files.iter().filter(|file| file.read < file.size);
        let chosen = unread.filter(|file| followed == Some(file.file) || self.has_read_on(file));
        chosen.max_by_key(|file| (file.size, file.read)).copied()
    }

    fn has_read_on(&self, now: &Offset) -> bool {
        let mut files = self.files.iter();
        let before = files.find(|before| before.file == now.file);
        now.read > before.map_or(0, |before| before.read)
    }
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

    const NOT_YET: Reading<f64> = Reading::Absent(Absence::NotYetMeasured);
    const NONE: Reading<f64> = Reading::Absent(Absence::NoInput);
    const KEEPS: Reading<f64> = Reading::Absent(Absence::KeepsInput);
    const SEVERAL: Reading<f64> = Reading::Absent(Absence::SeveralInputs);

    #[test]
    fn the_largest_file_that_is_read_on_is_followed() {
        let looks: [(&[Offset], u64); 5] = [
            (&[at(1, 0, 90), at(2, 1, 10), at(3, 1, 5)], 1),
            (&[at(1, 0, 90), at(2, 2, 10), at(3, 4, 5)], 1),
            (&[at(1, 0, 90), at(2, 2, 10), at(3, 4, 5)], 9),
            (&[at(2, 10, 10)], 1),
            (&[], 1),
        ];
        let share = Reading::Value(0.2);
        assert_eq!(seen(&looks), [NOT_YET, share, share, NONE, NONE]);
    }

    #[test]
    fn what_is_kept_in_memory_is_not_done() {
        let looks: [(&[Offset], u64); 4] = [
            (&[at(1, 10, 40)], 20),
            (&[at(1, 20, 40)], 25),
            (&[at(1, 30, 40)], 29),
            (&[at(1, 32, 40)], 20),
        ];
        let shares = [Reading::Value(0.75), Reading::Value(0.8)];
        assert_eq!(seen(&looks), [NOT_YET, KEEPS, shares[0], shares[1]]);
    }

    #[test]
    fn one_of_several_files_says_nothing_of_the_others() {
        let second: [(&[Offset], u64); 4] = [
            (&[at(1, 1, 2)], 1),
            (&[at(2, 1, 4)], 1),
            (&[at(2, 2, 4)], 1),
            (&[at(3, 2, 4)], 1),
        ];
        let half = Reading::Value(0.5);
        assert_eq!(seen(&second), [NOT_YET, NOT_YET, half, SEVERAL]);
        let again: [(&[Offset], u64); 4] = [
            (&[at(1, 1, 4)], 1),
            (&[at(1, 2, 4)], 1),
            (&[at(1, 1, 4)], 1),
            (&[at(1, 2, 4)], 1),
        ];
        assert_eq!(seen(&again), [NOT_YET, half, SEVERAL, SEVERAL]);
    }
}
