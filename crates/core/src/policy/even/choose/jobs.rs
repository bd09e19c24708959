//! The load of a job on its core and on memory, and the throughput of the jobs of a core.

use super::market::Market;
use crate::model::contention::{Contention, SiblingEffect};

/// Load of a job on its core and on memory, per instruction, with its present share of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobLoad {
    pub(super) own: f64,
    /// How siblings stretch its time, and how it stretches theirs.
    pub(super) time: SiblingEffect,
    /// The same of its accesses.
    pub(super) accesses: SiblingEffect,
    /// Cycles of waiting for the last-level cache if it had all, and the part of them that reads from memory replace.
    pub(super) touches: f64,
    pub(super) replaced: f64,
    /// Cycles of waiting for an idle memory.
    pub(super) waits: f64,
    /// Lines read x cycles per ns.
    pub(super) lines: f64,
    /// Cycles per ns.
    pub(super) ghz: f64,
    /// Where its memory lies; `None` for the domain of its core.
    pub(super) home: Option<usize>,
    /// Weight x solo cycles per instruction on the fastest type of core, at this clock.
    pub(super) worth: f64,
    /// Weighted speed that does not depend on co-runners.
    pub(super) steady: f64,
}

/// Throughput of the jobs of a core: their part of the sum, and lines read and instructions per ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoreThroughput {
    pub(super) sum: f64,
    pub(super) reads: f64,
    /// Lines read by jobs that are away from their memory, and its domain; of several the last.
    pub(super) away: Option<(usize, f64)>,
    pub(super) instructions: f64,
    /// Whether there are any jobs.
    pub(super) is_busy: bool,
}

/// Throughput of the jobs of a core in this domain.
pub(super) fn together<'a>(
    jobs: impl Iterator<Item = &'a JobLoad> + Clone,
    domain: usize,
    markets: &[Market],
    shared: &Contention,
) -> CoreThroughput {
    let time: f64 = jobs.clone().map(|job| job.time.pressure).sum();
    let accesses: f64 = jobs.clone().map(|job| job.accesses.pressure).sum();
    let mut done = CoreThroughput::default();
    for job in jobs {
        let home = job.home.unwrap_or(domain);
        let way = if home == domain { 0.0 } else { shared.far };
        let latency = markets[home].latency + way;
        let stretched = job.time.growth(time - job.time.pressure);
        let grown = job.accesses.growth(accesses - job.accesses.pressure);
        let more = shared.reads_growth(grown);
        let hits = (job.touches * grown - job.replaced * more).max(0.0);
        let ipc = 1.0 / ((job.own + hits + job.waits * latency * more) * stretched);
        let lines = job.lines * more * ipc;
        done.sum += job.steady + job.worth * ipc;
        done.instructions += job.ghz * ipc;
        done.is_busy = true;
        if home == domain {
            done.reads += lines;
        } else {
            let before = done.away.map_or(0.0, |away| away.1);
            done.away = Some((home, before + lines));
        }
    }
    done
}
