//! The first set, and which of its jobs share a core.

use super::market::{Ask, Market};
use super::{LEAST_GAIN, Search};
use crate::model::contention::activity;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Number of heavy readers to try for each place of a small machine.
const READERS: usize = 6;
/// Reciprocal of the share of the places that may be filled before a gain is computed anew.
const STALE: usize = 8;
/// How often the set is made again without its heaviest reader.
const STARTS: usize = 2;
/// Solo reads above which a job is a heavy reader, as a share of the memory's limit.
const HEAVY: f64 = 0.04;
/// Assumed busy share of each job's sibling, on cores with several CPUs.
const SIBLINGS: f64 = 0.5;
/// Latency at which jobs are compared, as a multiple of an idle memory's.
const TYPICAL_LATENCY: f64 = 1.2;

impl Search<'_> {
    /// Makes a first set. On a small machine one heavy reader can cost several others more than it is worth, which
    /// prices do not show. There the light readers come first, and each heavy one must raise the predicted sum of the
    /// whole set.
    pub(super) fn start(&mut self) {
        let candidates = self.candidates;
        let open = (0..candidates.len()).filter(|&at| candidates[at].fixed.is_none());
        let (mut heavy, light): (Vec<usize>, Vec<usize>) =
            open.partition(|&at| self.is_small() && self.is_heavy(at));
        self.fill(&light);
        if heavy.is_empty() {
            return;
        }
        heavy.sort_by(|&a, &b| {
            let by_weight = candidates[b].weight.total_cmp(&candidates[a].weight);
            by_weight.then(a.cmp(&b))
        });
        let bare = (self.settle(), self.who.clone());
        let mut best = self.add_heavy(bare.0, heavy.clone());
        // The heaviest reader may keep out several others that are worth more together.
        let mut rest = heavy;
        for _ in 0..STARTS {
            let runs = self.who.iter().flatten().filter(|at| rest.contains(at));
            let Some(&most) = runs.max_by(|&&a, &&b| {
                let by_reads = candidates[a].reads().total_cmp(&candidates[b].reads());
                by_reads.then(b.cmp(&a))
            }) else {
                break;
            };
            rest.retain(|&at| at != most);
            let kept = std::mem::replace(&mut self.who, bare.1.clone());
            let sum = self.add_heavy(bare.0, rest.clone());
            if sum <= best {
                self.who = kept;
                break;
            }
            best = sum;
        }
        self.pair(self.who.iter().flatten().copied().collect());
    }

    /// A job's demand on its memory domain, wherever it will run.
    fn ask(&self, at: usize, pressure: f64) -> Ask {
        let one = &self.candidates[at];
        // The type of core is assigned later.
        let asks = one.learnt.asks_on(
            one.fixed
                .map_or(self.kinds[0], |place| self.places[place].kind),
        );
        let m = asks.reads_at(1.0 / pressure);
        let hits = asks.penalty * self.shared.hit * (asks.llc - m).max(0.0);
        let siblings = if self.cores.len() < self.places.len() {
            SIBLINGS
        } else {
            0.0
        };
        Ask {
            worth: one.worth(asks),
            fixed: asks.own * (1.0 + siblings * self.shared.alpha) + hits,
            waits: asks.penalty * m,
            lines: m * asks.ghz,
            by_siblings: siblings * self.shared.alpha * asks.own,
        }
    }

    /// The memory domain where a job runs or ran last.
    fn domain_of(&self, at: usize) -> usize {
        let one = &self.candidates[at];
        one.fixed
            .or(one.last)
            .map_or(self.places[0].domain, |place| self.places[place].domain)
    }

    /// The speed of a job on a type of core, at a typical latency.
    fn typical_speed(&self, at: usize, kind: usize) -> f64 {
        let asks = self.candidates[at].learnt.asks_on(self.kinds[kind]);
        self.candidates[at].worth(asks)
            / (asks.own + asks.stall(self.shared, asks.reads, TYPICAL_LATENCY))
    }

    /// The weight of the job in a place; -1 if the place is free.
    fn weight_in(&self, place: usize) -> f64 {
        self.who[place].map_or(-1.0, |at| self.candidates[at].weight)
    }

    /// The number of jobs on a core.
    fn jobs_on(&self, core: usize) -> usize {
        let places = self.cores[core].iter();
        places.filter(|&&place| self.who[place].is_some()).count()
    }

    fn is_heavy(&self, at: usize) -> bool {
        let most = self.shared.memory.most;
        most.is_some_and(|most| self.candidates[at].reads() > HEAVY * most)
    }

    /// Adds heavy readers, the one that raises the sum most first, while the sum rises.
    fn add_heavy(&mut self, mut sum: f64, mut heavy: Vec<usize>) -> f64 {
        // Places in the order to fill: free ones, then by the weight of their jobs.
        let mut order: Vec<usize> = (0..self.places.len())
            .filter(|&place| self.is_open(place))
            .collect();
        order.sort_by(|&a, &b| {
            self.weight_in(a)
                .total_cmp(&self.weight_in(b))
                .then(a.cmp(&b))
        });
        for place in order {
            let kept = self.who[place];
            let least = if kept.is_some() {
                self.part(LEAST_GAIN)
            } else {
                -self.idle_gain()
            };
            let mut best = (sum + least, None);
            for (pos, &at) in heavy.iter().enumerate().take(READERS) {
                self.who[place] = Some(at);
                let now = self.settle();
                if now > best.0 {
                    best = (now, Some(pos));
                }
            }
            match best.1 {
                Some(pos) => {
                    self.who[place] = Some(heavy.remove(pos));
                    sum = best.0;
                }
                None => {
                    self.who[place] = kept;
                    break;
                }
            }
        }
        sum
    }

    /// Repeatedly chooses the job that raises the sum most. Each chosen job makes lines dearer, so an old gain is an
    /// upper bound: only the best job has to be computed anew.
    fn fill(&mut self, from: &[usize]) {
        let mut markets = vec![Market::default(); self.now.markets.len()];
        let pressure = self.places.len() as f64;
        let asks: Vec<Ask> = (0..self.candidates.len())
            .map(|at| self.ask(at, pressure))
            .collect();
        for (at, one) in self.candidates.iter().enumerate() {
            if one.fixed.is_some() {
                markets[self.domain_of(at)].add(self.shared, &asks[at]);
            }
        }
        // Upper bound of each job's gain, its number as tie-break, and the number of jobs chosen when it was computed.
        let mut heap: BinaryHeap<(i64, Reverse<usize>, usize)> = from
            .iter()
            .map(|&at| (sortable(f64::INFINITY), Reverse(at), usize::MAX))
            .collect();
        let open = (0..self.places.len())
            .filter(|&place| self.is_open(place))
            .count();
        let mut chosen = Vec::with_capacity(open);
        while chosen.len() < open {
            let Some((_, Reverse(at), stamp)) = heap.pop() else {
                break;
            };
            let market = &mut markets[self.domain_of(at)];
            // A recent gain is as good as new: one job of many changes prices little.
            if stamp <= chosen.len() && chosen.len() - stamp <= open / STALE {
                market.add(self.shared, &asks[at]);
                chosen.push(at);
            } else {
                let gain = market.gain(self.shared, &asks[at]);
                heap.push((sortable(gain), Reverse(at), chosen.len()));
            }
        }
        self.pair(chosen);
    }

    /// How busy a job keeps its core.
    fn busy(&self, at: usize) -> f64 {
        let learnt = self.candidates[at].learnt;
        activity(
            learnt
                .asks
                .stall(self.shared, learnt.asks.reads, TYPICAL_LATENCY)
                / learnt.solo_cpi,
        )
    }

    /// Places these jobs: those that gain most from a fast core get one of the fastest type, and so on.
    fn pair(&mut self, mut placed: Vec<usize>) {
        placed.retain(|&at| self.candidates[at].fixed.is_none());
        self.clear();
        for kind in 0..self.kinds.len() - 1 {
            let room = self.room(kind, placed.len());
            let gains: Vec<f64> = (0..self.candidates.len())
                .map(|at| self.typical_speed(at, kind) - self.typical_speed(at, kind + 1))
                .collect();
            placed.sort_by(|&a, &b| gains[b].total_cmp(&gains[a]).then(a.cmp(&b)));
            let rest = placed.split_off(room.min(placed.len()));
            self.pair_on(kind, std::mem::replace(&mut placed, rest));
        }
        self.pair_on(self.kinds.len() - 1, placed);
    }

    /// Clears all places but those of jobs that stay.
    pub(super) fn clear(&mut self) {
        for who in &mut self.who {
            *who = who.filter(|&at| self.candidates[at].fixed.is_some());
        }
    }

    /// Number of these jobs for this type of core, among this and the slower types: each core gets a job before any
    /// gets a second, the fastest first.
    fn room(&self, kind: usize, jobs: usize) -> usize {
        let open =
            (0..self.cores.len()).filter(|&core| self.kind_of[core] >= kind && !self.closed[core]);
        // Places already taken count as first jobs.
        let mut places: Vec<(usize, usize)> = Vec::new();
        for core in open {
            let all = self.cores[core].len();
            places.extend((self.jobs_on(core)..all).map(|nth| (nth, self.kind_of[core])));
        }
        places.sort_unstable();
        places
            .iter()
            .take(jobs)
            .filter(|place| place.1 == kind)
            .count()
    }

    /// Places these jobs on a type of core, the busiest beside those that wait most. The busiest take a core each, that
    /// of their last run if possible. Then the least busy join the busiest, and so on.
    fn pair_on(&mut self, kind: usize, mut placed: Vec<usize>) {
        let busy: Vec<f64> = (0..self.candidates.len()).map(|at| self.busy(at)).collect();
        placed.sort_by(|&a, &b| busy[b].total_cmp(&busy[a]).then(a.cmp(&b)));
        let mut cores: Vec<usize> = (0..self.cores.len())
            .filter(|&core| self.kind_of[core] == kind && self.free_place(core).is_some())
            .collect();
        cores.sort_by_key(|&core| self.jobs_on(core));
        let mut rest = VecDeque::from(placed);
        let first: Vec<usize> = rest.drain(..cores.len().min(rest.len())).collect();
        let homes = self.find_homes(&first, &cores);
        for (core, home) in homes.iter().enumerate() {
            let Some(at) = *home else { continue };
            let last = self.candidates[at]
                .last
                .filter(|&place| self.core_of[place] == core && self.who[place].is_none());
            if let Some(place) = last.or(self.free_place(core)) {
                self.who[place] = Some(at);
            }
        }
        let busy: Vec<f64> = homes
            .iter()
            .map(|home| home.map_or(0.0, |at| busy[at]))
            .collect();
        cores.sort_by(|&a, &b| busy[b].total_cmp(&busy[a]).then(a.cmp(&b)));
        // Each turn gives each core one of the rest, while there is room.
        while !rest.is_empty() && cores.iter().any(|&core| self.free_place(core).is_some()) {
            for &core in &cores {
                if let Some(place) = self.free_place(core) {
                    self.who[place] = rest.pop_back();
                }
            }
        }
    }

    /// The job of each core, for all cores. A job gets the core of its last run, if that is one of `cores` and free,
    /// else the first one left.
    fn find_homes(&self, jobs: &[usize], cores: &[usize]) -> Vec<Option<usize>> {
        let mut is_open = vec![false; self.cores.len()];
        for &core in cores {
            is_open[core] = true;
        }
        let mut homes: Vec<Option<usize>> = vec![None; self.cores.len()];
        let mut homeless = Vec::new();
        for &at in jobs {
            let home = self.candidates[at].last.map(|last| self.core_of[last]);
            match home.filter(|&core| is_open[core] && homes[core].is_none()) {
                Some(core) => homes[core] = Some(at),
                None => homeless.push(at),
            }
        }
        let mut jobs = homeless.into_iter();
        for &core in cores {
            if homes[core].is_none() {
                homes[core] = jobs.next();
            }
        }
        homes
    }

    /// Whether a place may be filled anew.
    fn is_open(&self, place: usize) -> bool {
        !self.closed[self.core_of[place]] && !self.is_fixed(place)
    }

    fn free_place(&self, core: usize) -> Option<usize> {
        self.cores[core]
            .iter()
            .copied()
            .find(|&place| self.who[place].is_none() && !self.closed[core])
    }
}

/// An integer with the order of [`f64::total_cmp`].
fn sortable(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}
