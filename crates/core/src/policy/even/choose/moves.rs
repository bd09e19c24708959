//! Improves a set by moves that prices propose. On a small machine the whole set is predicted for each.

use super::jobs::CoreThroughput;
use super::{LEAST_GAIN, SMALL, Search, changed_reads};
use crate::estimate::NOISE;

/// Number of waiting jobs to consider for each move, and maximum number of predictions for it.
const CONSIDERED: usize = 24;
const TRIES: usize = 8;
/// On a large machine: number of waiting jobs to consider at once, number of empty and of taken places to try for each,
/// and number of places to exchange a job with.
const NEWCOMERS: usize = 128;
const REACH: (usize, usize) = (32, 64);
const NEXT: usize = 5;

/// A job, or none, takes a place.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Gain of the sum at present prices.
    gain: f64,
    who: Option<usize>,
    to: usize,
}

impl Search<'_> {
    /// Gain if a place's core changes from `before` to `after`.
    fn gain_of(&self, place: usize, before: CoreThroughput, after: CoreThroughput) -> f64 {
        let loss = self.loss_by(self.places[place].domain, before, after);
        after.sum - before.sum - loss - self.cost(place, before, after)
    }

    /// Makes moves while the predicted sum of the whole set rises. Returns the sum.
    pub(super) fn replace(&mut self, mut sum: f64) -> f64 {
        // Many moves at once save time. For energy each counts: several jobs must share the power of a core.
        if self.power.price == 0.0 && self.is_small() {
            sum = self.make_all(sum).unwrap_or(sum);
        }
        for _ in 0..2 * self.places.len() {
            let better = if self.is_small() {
                self.make_one(sum)
            } else {
                self.make_all(sum)
            };
            match better {
                Some(now) => sum = now,
                None => break,
            }
        }
        self.settle()
    }

    /// Makes the first of the best moves that raises the predicted sum. Returns the new sum.
    fn make_one(&mut self, sum: f64) -> Option<f64> {
        self.find_loads();
        let waiting = self.newcomers();
        let jobs = waiting.iter().take(CONSIDERED).map(|(_, at)| Some(*at));
        let mut moves: Vec<Move> = jobs
            .chain([None])
            .filter_map(|who| self.best_move(who))
            .collect();
        moves.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.who.cmp(&b.who)));
        for one in moves.iter().take(TRIES) {
            let kept = std::mem::replace(&mut self.who[one.to], one.who);
            let now = self.settle();
            if now > sum + self.part(LEAST_GAIN) {
                return Some(now);
            }
            self.who[one.to] = kept;
        }
        None
    }

    /// Makes the best move of each waiting job that raises the sum at present prices, and clears the places whose jobs cost
    /// the others more than they do. Returns the new sum, if it is greater.
    fn make_all(&mut self, sum: f64) -> Option<f64> {
        self.find_loads();
        let before = self.who.clone();
        let most = if self.is_small() {
            self.places.len()
        } else {
            NEWCOMERS
        };
        let waiting = self.newcomers();
        for (worth, at) in waiting.into_iter().take(most) {
            if worth <= 0.0 && !self.is_small() {
                break;
            }
            let best = self.best_move(Some(at));
            if let Some(one) = best.filter(|one| one.gain > self.part(LEAST_GAIN)) {
                self.put(one.who, one.to);
            }
        }
        self.clear_places();
        let now = self.settle();
        if now > sum + self.part(NOISE) {
            return Some(now);
        }
        self.who = before;
        None
    }

    /// Clears places, the best ones first, while the sum at present prices rises.
    fn clear_places(&mut self) {
        let least = self.part(LEAST_GAIN);
        let mut moves: Vec<(f64, usize)> = Vec::new();
        for to in 0..self.places.len() {
            if self.vacating[to] > least && !self.is_fixed(to) {
                moves.push((self.vacating[to], to));
            }
        }
        moves.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, to) in moves {
            // Those before have changed the prices.
            if self.gain_by(None, to) > least {
                self.put(None, to);
            }
        }
    }

    /// The gain at present prices if this job, or none, takes a place.
    pub(super) fn gain_by(&self, who: Option<usize>, to: usize) -> f64 {
        let core = self.core_of[to];
        self.gain_of(to, self.done[core], self.done_with(core, to, who))
    }

    /// Gives a place to a job, or to none, and updates the prices.
    fn put(&mut self, who: Option<usize>, to: usize) {
        self.who[to] = who;
        self.update(to);
    }

    /// The waiting jobs, those with the greatest worth at present prices first.
    pub(super) fn newcomers(&self) -> Vec<(f64, usize)> {
        let mut waiting: Vec<(f64, usize)> = Vec::new();
        for at in self.waiting() {
            let place = self.candidates[at].last.unwrap_or(0);
            waiting.push((self.worth_on(at, self.core_of[place]), at));
        }
        waiting.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        waiting
    }

    /// The move with the greatest gain at present prices of a waiting job, or of no job. Of equal ones, the place of the job's
    /// last run comes first. On a large machine only the next ones are tried, of the empty ones and of the others. `None` if
    /// all places are taken for good.
    fn best_move(&self, who: Option<usize>) -> Option<Move> {
        let places = self.places.len();
        let first = who.map_or(0, |at| self.candidates[at].last.unwrap_or(at));
        let circle = (first..first + places).map(|place| place % places);
        let (mut empty, mut taken) = if self.is_small() {
            (SMALL, SMALL)
        } else {
            REACH
        };
        // Siblings and the power of a core only lower what a job is worth on a core of its own, which is the same on all cores of
        // a type and memory domain.
        let mut worth: Option<((usize, usize), f64)> = None;
        let mut best: Option<Move> = None;
        for to in circle {
            if (empty, taken) == (0, 0) {
                break;
            }
            let left = if self.who[to].is_none() {
                &mut empty
            } else {
                &mut taken
            };
            if *left == 0 || self.is_fixed(to) || self.who[to] == who {
                continue;
            }
            *left -= 1;
            if let (Some(best), Some(at)) = (best, who) {
                let core = self.core_of[to];
                let site = (self.places[to].domain, self.kind_of[core]);
                let known = worth.filter(|(there, _)| *there == site);
                let (_, most) =
                    *worth.insert(known.unwrap_or_else(|| (site, self.worth_on(at, core))));
                if self.vacating[to] + most <= best.gain {
                    continue;
                }
            }
            let gain = self.gain_by(who, to);
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(Move { gain, who, to });
            }
        }
        best
    }

    /// Gives the best waiting job its best place.
    pub(super) fn seat_best(&mut self) {
        self.find_loads();
        if let Some(&(_, best)) = self.newcomers().first() {
            self.seat(best);
        }
    }

    /// Gives a job its best place, if any is left, and updates the prices.
    pub(super) fn seat(&mut self, at: usize) {
        if let Some(one) = self.best_move(Some(at)) {
            self.put(one.who, one.to);
        }
    }

    /// Exchanges jobs of different cores while the sum at present prices rises. Returns the predicted sum.
    pub(super) fn swap_siblings(&mut self, sum: f64) -> f64 {
        self.find_loads();
        let before = self.who.clone();
        let places = self.places.len();
        let reach = if self.is_small() { places } else { NEXT };
        for place in 0..places {
            for other in place + 1..places.min(place + reach) {
                if self.may_swap(place, other) {
                    self.swap(place, other);
                }
            }
        }
        if self.settle() < sum {
            self.who = before;
            self.settle();
        }
        self.sum
    }

    /// Exchanges the jobs of two places if the sum at present prices rises.
    fn swap(&mut self, place: usize, other: usize) {
        let (core, there) = (self.core_of[place], self.core_of[other]);
        self.who.swap(place, other);
        let (here, away) = (self.done_on(core), self.done_on(there));
        let gain = self.gain_of(place, self.done[core], here)
            + self.gain_of(other, self.done[there], away);
        if gain > self.part(LEAST_GAIN) {
            self.update(place);
            self.update(other);
        } else {
            self.who.swap(place, other);
        }
    }

    /// Updates the prices after a change of a place's core.
    fn update(&mut self, place: usize) {
        let core = self.core_of[place];
        let (before, after) = (self.done[core], self.done_on(core));
        let changes = changed_reads(self.places[place].domain, before, after);
        for (domain, reads) in changes.into_iter().flatten() {
            self.markets[domain].add(self.shared, reads);
        }
        self.turn(place, before, after);
        self.done[core] = after;
        for at in 0..self.cores[core].len() {
            let place = self.cores[core][at];
            self.vacating[place] = self.gain_by(None, place);
        }
    }
}
