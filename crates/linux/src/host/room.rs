//! Whether there is room for one more job: enough memory, and not too much load.

use crate::load;
use crate::meminfo;
use crate::root::Root;
use cosched_core::{MayStart, Nanos, Resources, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// Time after which the memory of a started job shows in the machine's free memory.
const SHOWS_AFTER: Nanos = Nanos::from_ms(1_000);
/// Time between two measurements of used and free memory.
const LOOKS_EVERY: Nanos = Nanos::from_ms(1_000);

/// Keeps memory free and the load low, and starts no job whose known need exceeds free memory.
pub(crate) struct Room {
    mem_keep: Option<u64>,
    most_load: Option<f64>,
    /// The jobs admitted within [`SHOWS_AFTER`].
    recent: VecDeque<Nanos>,
    /// Peak memory of any ended job.
    largest: Option<u64>,
    /// Known needs of live jobs.
    held: BTreeMap<TaskId, u64>,
    /// Known needs of rejected jobs, which may be started anyway.
    refused: BTreeMap<TaskId, u64>,
    look: Option<Look>,
}

/// The last measurement of free memory, updated with the jobs that started and ended since.
#[derive(Clone, Copy)]
struct Look {
    at: Nanos,
    total: u64,
    /// Memory that no live job has or may still take, and that need not be kept free.
    free: i128,
}

impl Room {
    pub(crate) fn new(mem_keep: Option<u64>, most_load: Option<f64>) -> Room {
        Room {
            mem_keep,
            most_load,
            recent: VecDeque::new(),
            largest: None,
            held: BTreeMap::new(),
            refused: BTreeMap::new(),
            look: None,
        }
    }

    /// Records that a job has started, whether or not it was allowed.
    pub(crate) fn started(&mut self, task: TaskId) {
        if let Some(needs) = self.refused.remove(&task) {
            self.hold(task, needs);
        }
    }

    /// Records that a job could not be started.
    pub(crate) fn not_started(&mut self, task: TaskId) {
        self.release(task);
    }

    /// Records the resources of an ended job. An absent figure counts as zero.
    pub(crate) fn ended(&mut self, task: TaskId, resources: &Resources) {
        self.release(task);
        self.largest = self
            .largest
            .max(Some(resources.max_rss.value().unwrap_or(0)));
    }

    /// Whether a job with this memory need, if known, may start. If so, it counts as started now. `holds` returns the
    /// present memory of a live job. A need above the machine's memory must be wrong and counts as unknown.
    pub(crate) fn may_start(
        &mut self,
        root: &Root,
        now: Nanos,
        (task, needs): (TaskId, Option<u64>),
        holds: impl Fn(TaskId) -> u64,
    ) -> MayStart {
        let is_calm = self
            .most_load
            .is_none_or(|most| load::average(root).is_none_or(|load| load <= most));
        if !is_calm || !self.has_memory(root, now) {
            return MayStart::Later;
        }
        if let Some(needs) = needs {
            let fits = self.fits(root, now, needs, holds);
            let is_wrong = self.look.is_some_and(|look| needs > look.total);
            if !fits && !is_wrong {
                self.refused.insert(task, needs);
                return MayStart::NeedsMemory;
            }
            if !is_wrong {
                self.hold(task, needs);
            }
        }
        if self.mem_keep.is_some() {
            self.recent.push_back(now);
        }
        MayStart::Yes
    }

    /// An unknown amount of memory counts as enough.
    fn has_memory(&mut self, root: &Root, now: Nanos) -> bool {
        let Some(keep) = self.mem_keep else {
            return true;
        };
        while self
            .recent
            .front()
            .is_some_and(|&began| now - began >= SHOWS_AFTER)
        {
            self.recent.pop_front();
        }
        let hidden = match self.largest {
            Some(largest) => largest.saturating_mul(self.recent.len() as u64),
            None if self.recent.is_empty() => 0,
            // Their needs are unknown, so they start one after the other.
            None => return false,
        };
        meminfo::read(root).map_or(true, |memory| {
            memory.usable() >= keep.saturating_add(hidden)
        })
    }

    /// Whether this much memory is left, even if each live job grows to its known need. Memory shared between jobs,
    /// such as mapped files, shows in each of them but is used once. So this adds what jobs may still take, and not
    /// their total needs.
    fn fits(&mut self, root: &Root, now: Nanos, needs: u64, holds: impl Fn(TaskId) -> u64) -> bool {
        // One pass over all live jobs for each waiting job would cost the product of their numbers.
        if self.look.is_none_or(|look| now - look.at >= LOOKS_EVERY) {
            let to_come =
                |(task, needs): (&TaskId, &u64)| i128::from(needs.saturating_sub(holds(*task)));
            self.look = meminfo::read(root).ok().map(|memory| Look {
                at: now,
                total: memory.total,
                free: i128::from(memory.usable())
                    - i128::from(self.mem_keep.unwrap_or(0))
                    - self.held.iter().map(to_come).sum::<i128>(),
            });
        }
        self.look.is_none_or(|look| i128::from(needs) <= look.free)
    }

    /// Reserves memory for a job.
    fn hold(&mut self, task: TaskId, needs: u64) {
        if let Some(look) = &mut self.look
            && self.held.insert(task, needs).is_none()
        {
            look.free -= i128::from(needs);
        }
    }

    /// Releases a job's memory: what it had and what it was still allowed to take.
    fn release(&mut self, task: TaskId) {
        if let Some(needs) = self.held.remove(&task)
            && let Some(look) = &mut self.look
        {
            look.free += i128::from(needs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Absence, Reading};
    use std::path::Path;

    /// Makes `dir` the root of a machine with 100 KB, with `kb` available.
    fn leave(dir: &Path, kb: u64) {
        std::fs::create_dir_all(dir.join("proc")).unwrap();
        let text = format!("MemTotal: 100 kB\nMemAvailable: {kb} kB\n");
        std::fs::write(dir.join("proc/meminfo"), text).unwrap();
    }

    #[test]
    fn memory_that_does_not_show_yet_counts() {
        let dir = tempfile::tempdir().unwrap();
        let left = |kb| leave(dir.path(), kb);
        let root = Root::new(dir.path());
        let ended = |kb: u64| Resources {
            max_rss: Reading::Value(kb << 10),
            ..Resources::absent(Absence::NotTold)
        };
        let s = Nanos::from_s;
        let may = |room: &mut Room, at: f64| {
            room.may_start(&root, s(at), (TaskId(0), None), |_| 0) == MayStart::Yes
        };
        let mut room = Room::new(Some(50 << 10), None);
        left(89);
        assert!(
            may(&mut room, 0.0) && !may(&mut room, 0.9),
            "what the first needs is not known"
        );
        assert!(may(&mut room, 1.0));
        room.ended(TaskId(0), &ended(20));
        assert!(may(&mut room, 1.1), "20 of the last second, and 50 to keep");
        assert!(
            !may(&mut room, 1.2),
            "with 40 of the last second it would be too little"
        );
        assert!(may(&mut room, 2.05), "one of them shows by now");
        left(49);
        assert!(!may(&mut room, 9.0));
        let mut room = Room::new(None, None);
        assert!(
            (0..100).all(|_| may(&mut room, 0.0)),
            "nothing is to be kept"
        );
    }

    #[test]
    fn jobs_whose_memory_is_known_wait_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let left = |kb| leave(dir.path(), kb);
        let root = Root::new(dir.path());
        let mut room = Room::new(None, None);
        let nothing = Resources::absent(Absence::NotTold);
        left(80);
        let holds = std::cell::Cell::new(0);
        let ask = |room: &mut Room, at: f64, id: u32, kb: Option<u64>| {
            room.may_start(
                &root,
                Nanos::from_s(at),
                (TaskId(id), kb.map(|kb| kb << 10)),
                |_| holds.get() << 10,
            )
        };
        assert_eq!(ask(&mut room, 0.0, 0, Some(50)), MayStart::Yes);
        // The first has not taken its memory yet.
        assert_eq!(ask(&mut room, 0.1, 1, Some(40)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut room, 0.1, 2, Some(30)), MayStart::Yes);
        assert_eq!(
            ask(&mut room, 0.1, 3, None),
            MayStart::Yes,
            "what nobody knows waits for nothing"
        );
        room.ended(TaskId(0), &nothing);
        assert_eq!(ask(&mut room, 0.2, 1, Some(40)), MayStart::Yes);
        assert_eq!(ask(&mut room, 0.3, 4, Some(50)), MayStart::NeedsMemory);
        // Both have mapped a file, which does not count as used.
        holds.set(30);
        assert_eq!(
            ask(&mut room, 0.9, 4, Some(50)),
            MayStart::NeedsMemory,
            "it looks once a second"
        );
        assert_eq!(ask(&mut room, 1.0, 4, Some(50)), MayStart::Yes);
        holds.set(0);
        // Other programs use memory too.
        left(20);
        (1..5).for_each(|id| room.ended(TaskId(id), &nothing));
        assert_eq!(ask(&mut room, 2.0, 4, Some(21)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut room, 2.0, 4, Some(20)), MayStart::Yes);
        assert_eq!(ask(&mut room, 2.0, 5, Some(20)), MayStart::NeedsMemory);
        // It could not be started, so it takes nothing.
        room.not_started(TaskId(4));
        assert_eq!(ask(&mut room, 2.0, 5, Some(20)), MayStart::Yes);
        room.ended(TaskId(5), &nothing);
        assert_eq!(ask(&mut room, 2.0, 6, Some(100)), MayStart::NeedsMemory);
        assert_eq!(
            ask(&mut room, 2.0, 7, Some(10 << 30)),
            MayStart::Yes,
            "10 TB on a machine with 100 KB"
        );
        assert_eq!(
            ask(&mut room, 2.0, 8, Some(20)),
            MayStart::Yes,
            "nobody waits for what can't be"
        );
        room.ended(TaskId(8), &nothing);
        // A job that was admitted anyway counts.
        room.started(TaskId(6));
        assert_eq!(ask(&mut room, 2.0, 8, Some(1)), MayStart::NeedsMemory);
        // Memory to keep free is not available to jobs.
        let mut room = Room::new(Some(15 << 10), None);
        assert_eq!(ask(&mut room, 2.0, 6, Some(6)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut room, 2.0, 6, Some(5)), MayStart::Yes);
        std::fs::remove_file(dir.path().join("proc/meminfo")).unwrap();
        let mut room = Room::new(None, None);
        assert_eq!(
            ask(&mut room, 3.0, 7, Some(50)),
            MayStart::Yes,
            "what the machine does not tell is not too little"
        );
    }
}
