//! Whether there is room for one more job: enough memory, and not too much load.

use crate::load;
use crate::meminfo;
use crate::root::Root;
use cosched_core::{MayStart, Nanos, Resources, TaskId};
use std::collections::BTreeMap;

/// Time after which the memory of a started job shows.
const SHOWS_AFTER: Nanos = Nanos::from_ms(1_000);
/// Time between two measurements of used and free memory.
const LOOKS_EVERY: Nanos = Nanos::from_ms(1_000);

/// The limits on memory and load under which one more job may start.
#[derive(Clone, Copy, Debug)]
pub struct HeadroomLimits {
    /// No further job starts while less memory than this is available, in bytes; 0 for no limit.
    pub mem_keep: u64,
    /// Memory that all jobs together were given, in bytes; `None` for that of the machine and of its cgroups.
    pub given: Option<u64>,
    /// With so many live jobs, a further one of unknown need starts only if it may take as much memory as any job so far.
    pub guess_from: usize,
    /// No further job starts while the load average of the last minute exceeds this.
    pub most_load: Option<f64>,
}

impl Default for HeadroomLimits {
    /// No limit.
    fn default() -> HeadroomLimits {
        HeadroomLimits {
            mem_keep: 0,
            given: None,
            guess_from: usize::MAX,
            most_load: None,
        }
    }
}

/// Keeps memory free and the load low, and starts no job whose need exceeds free memory.
pub(crate) struct HeadroomCheck {
    limits: HeadroomLimits,
    /// Live jobs, with their needs where known.
    live: BTreeMap<TaskId, Option<u64>>,
    /// Known needs of rejected jobs, which may be started anyway.
    refused: BTreeMap<TaskId, u64>,
    /// Peak memory of any job so far; `None` until a job has ended or had the time to take its memory.
    greatest: Option<u64>,
    last_start: Nanos,
    look: Option<Look>,
}

/// The last measurement of free memory, updated with the jobs that started and ended since.
#[derive(Clone, Copy)]
struct Look {
    at: Nanos,
    total: u64,
    available: u64,
    /// Memory that no live job has or is known to take, and that need not be kept free.
    free: i128,
    /// Memory that jobs of unknown need take if each grows to the greatest so far; `None` if nobody asked.
    guessed: Option<i128>,
}

impl HeadroomCheck {
    pub(crate) fn new(limits: HeadroomLimits) -> HeadroomCheck {
        HeadroomCheck {
            limits,
            live: BTreeMap::new(),
            refused: BTreeMap::new(),
            greatest: None,
            last_start: Nanos::ZERO,
            look: None,
        }
    }

    /// Forgets a job that has ended.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.refused.remove(&task);
    }

    /// Records that a job has started, whether or not it was allowed.
    pub(crate) fn started(&mut self, now: Nanos, task: TaskId) {
        if !self.live.contains_key(&task) {
            let needs = self.refused.remove(&task);
            self.hold(now, task, needs);
        }
    }

    /// Records that a job could not be started.
    pub(crate) fn not_started(&mut self, task: TaskId) {
        self.release(task);
    }

    /// Records the resources of an ended job. An absent figure counts as zero.
    pub(crate) fn ended(&mut self, task: TaskId, resources: &Resources) {
        self.release(task);
        let peak = resources.max_rss.value().unwrap_or(0);
        self.greatest = self.greatest.max(Some(peak));
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
        let most_load = self.limits.most_load;
        if most_load.is_some_and(|most| load::average(root).is_some_and(|load| load > most)) {
            return MayStart::Later;
        }
        let is_crowded = self.live.len() >= self.limits.guess_from;
        self.look(root, now, is_crowded, holds);
        let needs = needs.filter(|needs| self.look.is_none_or(|look| *needs <= look.total));
        let has_memory = match needs {
            Some(needs) => self.has_free(needs),
            None => self.has_kept(),
        };
        if !has_memory {
            self.refused.extend(needs.map(|needs| (task, needs)));
            return MayStart::NeedsMemory;
        }
        if is_crowded && needs.is_none() && !self.has_guess() {
            return MayStart::Later;
        }
        self.hold(now, task, needs);
        MayStart::Yes
    }

    /// Whether less memory is available than must be kept free. Unlike [`HeadroomCheck::may_start`] this measures at each call.
    pub(crate) fn is_short(&self, root: &Root) -> bool {
        meminfo::read(root).is_ok_and(|memory| memory.usable() < self.limits.mem_keep)
    }

    /// Measures memory if that was long ago, with `guesses` also that of jobs of unknown need. One pass over all live jobs
    /// for each waiting job would cost the product of their numbers.
    fn look(&mut self, root: &Root, now: Nanos, guesses: bool, holds: impl Fn(TaskId) -> u64) {
        if let Some(look) = self.look {
            let is_fresh = now - look.at < LOOKS_EVERY;
            if is_fresh && (look.guessed.is_some() || !guesses) {
                return;
            }
        }
        // An unknown amount of memory counts as enough.
        let Ok(memory) = meminfo::read(root) else {
            self.look = None;
            return;
        };
        let mut usable = memory.usable();
        if let Some(given) = self.limits.given {
            let held: u64 = self.live.keys().map(|&task| holds(task)).sum();
            usable = usable.min(given.saturating_sub(held));
        }
        let mut free = i128::from(usable) - i128::from(self.limits.mem_keep);
        // Memory shared between jobs, such as mapped files, shows in each of them but is used once. So this adds what
        // jobs may still take, and not their total needs.
        for (&task, needs) in &self.live {
            if let Some(needs) = needs {
                free -= i128::from(needs.saturating_sub(holds(task)));
            }
        }
        self.look = Some(Look {
            at: now,
            total: memory.total,
            available: usable,
            free,
            guessed: guesses.then(|| self.guess(now, holds)),
        });
    }

    /// Memory that live jobs of unknown need take if each grows to the greatest so far.
    fn guess(&mut self, now: Nanos, holds: impl Fn(TaskId) -> u64) -> i128 {
        let mut held = Vec::new();
        for (&task, needs) in &self.live {
            if needs.is_none() {
                held.push(holds(task));
            }
        }
        if now - self.last_start >= SHOWS_AFTER {
            self.greatest = self.greatest.max(held.iter().copied().max());
        }
        let greatest = self.greatest.unwrap_or(0);
        let to_come = held.iter().map(|&held| greatest.saturating_sub(held));
        to_come.map(i128::from).sum()
    }

    /// Whether this much memory is left, even if each live job grows to its known need.
    fn has_free(&self, needs: u64) -> bool {
        self.look.is_none_or(|look| i128::from(needs) <= look.free)
    }

    /// Whether the memory to keep free is available.
    fn has_kept(&self) -> bool {
        self.look
            .is_none_or(|look| look.available >= self.limits.mem_keep)
    }

    /// Whether memory is left for one more job of unknown need, even if that and each live job grow to the greatest so
    /// far.
    fn has_guess(&self) -> bool {
        match (self.greatest, self.look) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(greatest), Some(look)) => {
                i128::from(greatest) <= look.free - look.guessed.unwrap_or(0)
            }
        }
    }

    /// Reserves memory for a job.
    fn hold(&mut self, now: Nanos, task: TaskId, needs: Option<u64>) {
        self.last_start = now;
        self.live.insert(task, needs);
        let Some(look) = &mut self.look else {
            return;
        };
        match (needs, &mut look.guessed) {
            (Some(needs), _) => look.free -= i128::from(needs),
            (None, Some(guessed)) => *guessed += i128::from(self.greatest.unwrap_or(0)),
            (None, None) => {}
        }
    }

    /// Releases a job's memory: what it had and what it was still allowed to take. What a job of unknown need had shows at
    /// the next look.
    fn release(&mut self, task: TaskId) {
        if let (Some(Some(needs)), Some(look)) = (self.live.remove(&task), &mut self.look) {
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

    fn keep(kb: u64, guess_from: usize) -> HeadroomCheck {
        HeadroomCheck::new(HeadroomLimits {
            mem_keep: kb << 10,
            guess_from,
            ..HeadroomLimits::default()
        })
    }

    #[test]
    fn jobs_of_unknown_need_may_grow_to_the_greatest_so_far() {
        let dir = tempfile::tempdir().unwrap();
        let left = |kb| leave(dir.path(), kb);
        let root = Root::new(dir.path());
        let holds = std::cell::Cell::new(0);
        let next = std::cell::Cell::new(0);
        let ask = |headroom: &mut HeadroomCheck, at: f64| {
            next.set(next.get() + 1);
            let task = TaskId(next.get());
            headroom.may_start(&root, Nanos::from_s(at), (task, None), |_| {
                holds.get() << 10
            })
        };
        left(89);
        let mut headroom = keep(50, 2);
        assert_eq!(
            [0.0; 2].map(|at| ask(&mut headroom, at)),
            [MayStart::Yes; 2]
        );
        assert_eq!(
            ask(&mut headroom, 0.0),
            MayStart::Later,
            "what the first two need is not known"
        );
        holds.set(10);
        assert_eq!(
            [1.0; 4].map(|at| ask(&mut headroom, at)),
            [MayStart::Yes, MayStart::Yes, MayStart::Yes, MayStart::Later],
            "39 are left for jobs of 10"
        );
        holds.set(0);
        headroom.ended(TaskId(1), &peak(30));
        assert_eq!(
            ask(&mut headroom, 2.0),
            MayStart::Later,
            "four may grow by 30 each"
        );
        left(49);
        assert_eq!(ask(&mut headroom, 3.0), MayStart::NeedsMemory);
        let mut headroom = keep(50, usize::MAX);
        assert_eq!(ask(&mut headroom, 3.0), MayStart::NeedsMemory);
        left(50);
        assert!((0..100).all(|_| ask(&mut headroom, 4.0) == MayStart::Yes));
        left(0);
        let mut headroom = keep(0, usize::MAX);
        assert_eq!(
            ask(&mut headroom, 4.0),
            MayStart::Yes,
            "nothing is to be kept"
        );
        left(90);
        let mut headroom = keep(10, usize::MAX);
        headroom.limits.given = Some(30 << 10);
        holds.set(15);
        assert_eq!(
            [5.0; 2].map(|at| ask(&mut headroom, at)),
            [MayStart::Yes; 2]
        );
        assert_eq!(
            ask(&mut headroom, 6.0),
            MayStart::NeedsMemory,
            "two hold all that was given"
        );
    }

    fn peak(kb: u64) -> Resources {
        Resources {
            max_rss: Reading::Value(kb << 10),
            ..Resources::absent(Absence::NotTold)
        }
    }

    #[test]
    fn jobs_whose_memory_is_known_wait_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let left = |kb| leave(dir.path(), kb);
        let root = Root::new(dir.path());
        let mut headroom = keep(0, usize::MAX);
        let nothing = Resources::absent(Absence::NotTold);
        left(80);
        let holds = std::cell::Cell::new(0);
        let ask = |headroom: &mut HeadroomCheck, at: f64, id: u32, kb: Option<u64>| {
            headroom.may_start(
                &root,
                Nanos::from_s(at),
                (TaskId(id), kb.map(|kb| kb << 10)),
                |_| holds.get() << 10,
            )
        };
        assert_eq!(ask(&mut headroom, 0.0, 0, Some(50)), MayStart::Yes);
        // The first has not taken its memory yet.
        assert_eq!(ask(&mut headroom, 0.1, 1, Some(40)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut headroom, 0.1, 2, Some(30)), MayStart::Yes);
        assert_eq!(
            ask(&mut headroom, 0.1, 3, None),
            MayStart::Yes,
            "what nobody knows waits for nothing"
        );
        headroom.ended(TaskId(0), &nothing);
        assert_eq!(ask(&mut headroom, 0.2, 1, Some(40)), MayStart::Yes);
        assert_eq!(ask(&mut headroom, 0.3, 4, Some(50)), MayStart::NeedsMemory);
        // Both have mapped a file, which does not count as used.
        holds.set(30);
        assert_eq!(
            ask(&mut headroom, 0.9, 4, Some(50)),
            MayStart::NeedsMemory,
            "it looks once a second"
        );
        assert_eq!(ask(&mut headroom, 1.0, 4, Some(50)), MayStart::Yes);
        holds.set(0);
        // Other programs use memory too.
        left(20);
        (1..5).for_each(|id| headroom.ended(TaskId(id), &nothing));
        assert_eq!(ask(&mut headroom, 2.0, 4, Some(21)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut headroom, 2.0, 4, Some(20)), MayStart::Yes);
        assert_eq!(ask(&mut headroom, 2.0, 5, Some(20)), MayStart::NeedsMemory);
        // It could not be started, so it takes nothing.
        headroom.not_started(TaskId(4));
        assert_eq!(ask(&mut headroom, 2.0, 5, Some(20)), MayStart::Yes);
        headroom.ended(TaskId(5), &nothing);
        assert_eq!(ask(&mut headroom, 2.0, 6, Some(100)), MayStart::NeedsMemory);
        assert_eq!(
            ask(&mut headroom, 2.0, 7, Some(10 << 30)),
            MayStart::Yes,
            "10 TB on a machine with 100 KB"
        );
        assert_eq!(
            ask(&mut headroom, 2.0, 8, Some(20)),
            MayStart::Yes,
            "nobody waits for what can't be"
        );
        headroom.ended(TaskId(8), &nothing);
        // A job that was admitted anyway counts.
        headroom.started(Nanos::from_s(2.0), TaskId(6));
        assert_eq!(ask(&mut headroom, 2.0, 8, Some(1)), MayStart::NeedsMemory);
        // Memory to keep free is not available to jobs.
        let mut headroom = keep(15, usize::MAX);
        assert_eq!(ask(&mut headroom, 2.0, 6, Some(6)), MayStart::NeedsMemory);
        assert_eq!(ask(&mut headroom, 2.0, 6, Some(5)), MayStart::Yes);
        std::fs::remove_file(dir.path().join("proc/meminfo")).unwrap();
        let mut headroom = keep(0, usize::MAX);
        assert_eq!(
            ask(&mut headroom, 3.0, 7, Some(50)),
            MayStart::Yes,
            "what the machine does not tell is not too little"
        );
    }
}
