//! Whether there is room for one more job: enough memory, and not too much load.

use crate::load;
use crate::meminfo;
use crate::root::Root;
use cosched_core::{Nanos, Resources};
use std::collections::VecDeque;

/// The memory of a job that began earlier than this before now shows in what the machine has left.
const SHOWS_AFTER: Nanos = Nanos::from_ms(1_000);

/// Keeps some memory free, and the load low.
pub(crate) struct Room {
    mem_keep: Option<u64>,
    most_load: Option<f64>,
    /// The jobs that were let in within [`SHOWS_AFTER`].
    recent: VecDeque<Nanos>,
    /// The greatest memory of a job that has ended.
    largest: Option<u64>,
}

impl Room {
    pub(crate) fn new(mem_keep: Option<u64>, most_load: Option<f64>) -> Room {
        Room { mem_keep, most_load, recent: VecDeque::new(), largest: None }
    }

    /// A job has ended and had used this. What is not told of it is too little to tell.
    pub(crate) fn ended(&mut self, resources: &Resources) {
        self.largest = self.largest.max(Some(resources.max_rss.value().unwrap_or(0)));
    }

    /// Whether one more job may be let in. If so, it counts as let in now.
    pub(crate) fn may_start(&mut self, root: &Root, now: Nanos) -> bool {
        let is_calm = self.most_load.is_none_or(|most| load::average(root).is_none_or(|load| load <= most));
        is_calm && self.has_memory(root, now)
    }

    /// What a machine does not tell is not too little.
    fn has_memory(&mut self, root: &Root, now: Nanos) -> bool {
        let Some(keep) = self.mem_keep else { return true };
        while self.recent.front().is_some_and(|&began| now - began >= SHOWS_AFTER) {
            self.recent.pop_front();
        }
        let hidden = match self.largest {
            Some(largest) => largest.saturating_mul(self.recent.len() as u64),
            None if self.recent.is_empty() => 0,
            // Nobody knows what they will need: one after the other.
            None => return false,
        };
        let has = meminfo::read(root).map_or(true, |memory| memory.usable() >= keep.saturating_add(hidden));
        if has {
            self.recent.push_back(now);
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Absence, Reading};

    #[test]
    fn memory_that_does_not_show_yet_counts() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        let left = |kb: u64| {
            let text = format!("MemTotal: 100 kB\nMemAvailable: {kb} kB\n");
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
        };
        let root = Root::new(dir.path());
        let ended = |kb: u64| Resources { max_rss: Reading::Value(kb << 10), ..Resources::absent(Absence::NotTold) };
        let s = Nanos::from_s;
        let mut room = Room::new(Some(50 << 10), None);
        left(89);
        assert!(room.may_start(&root, s(0.0)) && !room.may_start(&root, s(0.9)), "what the first needs is not known");
        assert!(room.may_start(&root, s(1.0)));
        room.ended(&ended(20));
        assert!(room.may_start(&root, s(1.1)), "20 of the last second, and 50 to keep");
        assert!(!room.may_start(&root, s(1.2)), "with 40 of the last second it would be too little");
        assert!(room.may_start(&root, s(2.05)), "one of them shows by now");
        left(49);
        assert!(!room.may_start(&root, s(9.0)));
        let mut room = Room::new(None, None);
        assert!((0..100).all(|_| room.may_start(&root, s(0.0))), "nothing is to be kept");
    }
}
