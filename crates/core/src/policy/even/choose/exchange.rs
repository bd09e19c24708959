//! Improves a set by exchanges that prices propose. On a small machine the whole set is predicted for each.

use super::jobs::Done;
use super::{LEAST_GAIN, Search};

/// Least rise of the latency, as a share, after which the other cores are computed anew.
const LEAST_RISE: f64 = 0.002;
/// Number of waiting jobs to consider for each move.
const CONSIDERED: usize = 24;
/// Maximum number of moves in a round, maximum number of predictions for each, and maximum loss by prices, as a share
/// of the sum, of a move to try.
const MOVES: usize = 24;
const TRIES: usize = 8;
const SLACK: f64 = 0.01;
/// Maximum number of passes over all exchanges of siblings in a round.
const PASSES: usize = 2;
/// On a large machine: number of waiting jobs to try in each place, and number of following places to exchange it with.
const WAITING: usize = 8;
const PARTNERS: usize = 4;

/// A job, or none, takes a place.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Gain of the sum at present prices.
    gain: f64,
    who: Option<usize>,
    /// The place that the job leaves, if it runs.
    from: Option<usize>,
    to: usize,
}

impl Search<'_> {
    /// Gain if a place's core changes from `before` to `after`, and rise of the latency.
    fn gain_of(&self, place: usize, before: Done, after: Done) -> (f64, f64) {
        let more = after.reads - before.reads;
        let power = self.cost(place, before, after);
        let place = &self.places[place];
        let market = &self.now.markets[place.domain];
        let rise = market.rise(self.shared, more);
        (
            after.sum
                - before.sum
                - market.loss(rise)
                - self.now.caches[place.llc].1 * more
                - power,
            rise,
        )
    }

    /// Makes the moves that prices propose, while the predicted sum of the whole set rises. Returns the sum.
    pub(super) fn replace(&mut self, mut sum: f64) -> f64 {
        for _ in 0..MOVES {
            let moves = self.best_moves();
            match self.try_moves(&moves, sum) {
                Some(now) => sum = now,
                None => break,
            }
        }
        self.settle()
    }

    /// The best move of no job, of each of the best waiting jobs, and of the running jobs.
    fn best_moves(&mut self) -> Vec<Move> {
        self.find_loads();
        let mut newcomers = vec![(None, None)];
        newcomers.extend(
            self.best_waiting(CONSIDERED)
                .into_iter()
                .map(|at| (Some(at), None)),
        );
        // Where idle CPUs are likely, a job may leave its sibling for the place of a job that is not worth its own.
        if self.power.price > 0.0 || self.kinds.len() > 1 {
            for (place, who) in self.who.iter().enumerate() {
                if who.is_some() && !self.is_fixed(place) {
                    newcomers.push((*who, Some(place)));
                }
            }
        }
        let mut moves: Vec<Move> = newcomers
            .into_iter()
            .map(|(who, from)| self.best_move(who, from))
            .collect();
        moves.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.who.cmp(&b.who)));
        moves
    }

    /// Makes the first of these moves that raises the predicted sum. Returns the new sum.
    fn try_moves(&mut self, moves: &[Move], sum: f64) -> Option<f64> {
        let slack = self.part(SLACK);
        for one in moves.iter().take(TRIES) {
            if one.gain < -slack {
                break;
            }
            if let Some(from) = one.from {
                self.who[from] = None;
            }
            let kept = std::mem::replace(&mut self.who[one.to], one.who);
            let least = self.least_gain(one, kept);
            let now = self.settle();
            if now > sum + least {
                return Some(now);
            }
            self.who[one.to] = kept;
            if let Some(from) = one.from {
                self.who[from] = one.who;
            }
        }
        None
    }

    /// Minimum gain of a move that takes a place from `kept`: more if a CPU falls idle, less if one wakes.
    fn least_gain(&self, one: &Move, kept: Option<usize>) -> f64 {
        if one.who.is_none() || (one.from.is_some() && kept.is_some()) {
            self.idle_gain()
        } else if kept.is_none() && one.from.is_none() {
            -self.idle_gain()
        } else {
            self.part(LEAST_GAIN)
        }
    }

    /// The move with the greatest gain at present prices: of a job, which may run in `from`, or of no job.
    fn best_move(&mut self, who: Option<usize>, from: Option<usize>) -> Move {
        let left = from.map_or(0.0, |from| {
            self.who[from] = None;
            let core = self.core_of[from];
            self.gain_of(from, self.done[core], self.done_on(core)).0
        });
        let mut best = Move {
            gain: f64::NEG_INFINITY,
            who,
            from,
            to: 0,
        };
        for to in 0..self.places.len() {
            let kept = self.who[to];
            let core = self.core_of[to];
            if self.is_fixed(to)
                || kept == who
                || from.is_some_and(|from| self.core_of[from] == core)
            {
                continue;
            }
            self.who[to] = who;
            let after = self.done_on(core);
            let gain = self.gain_of(to, self.done[core], after).0 + left;
            self.who[to] = kept;
            if gain > best.gain {
                best = Move { gain, to, ..best };
            }
        }
        if let Some(from) = from {
            self.who[from] = who;
        }
        best
    }

    /// Exchanges jobs of different cores while the sum at present prices rises.
    pub(super) fn swap_siblings(&mut self) {
        self.find_loads();
        let least = self.part(LEAST_GAIN);
        for _ in 0..PASSES {
            let mut again = false;
            for place in 0..self.places.len() {
                for other in place + 1..self.places.len() {
                    again |= self.may_swap(place, other) && self.swap(place, other, least);
                }
            }
            if !again {
                break;
            }
        }
    }

    /// Exchanges the jobs of two places if the sum at present prices rises by more than `least`.
    fn swap(&mut self, place: usize, other: usize, least: f64) -> bool {
        let (core, there) = (self.core_of[place], self.core_of[other]);
        self.who.swap(place, other);
        let (here, away) = (self.done_on(core), self.done_on(there));
        let gain = self.gain_of(place, self.done[core], here).0
            + self.gain_of(other, self.done[there], away).0;
        let is_better = gain > least;
        if is_better {
            self.turn(place, self.done[core], here);
            self.turn(other, self.done[there], away);
            (self.done[core], self.done[there]) = (here, away);
        } else {
            self.who.swap(place, other);
        }
        is_better
    }

    /// The `most` waiting jobs with the greatest worth at present prices.
    fn best_waiting(&self, most: usize) -> Vec<usize> {
        let mut waiting: Vec<(f64, usize)> = self
            .waiting()
            .into_iter()
            .map(|at| {
                let (job, loss) = self.job_and_loss(at);
                (job.sum - loss, at)
            })
            .collect();
        if waiting.len() > most {
            waiting.select_nth_unstable_by(most, by_worth);
            waiting.truncate(most);
        }
        waiting.sort_by(by_worth);
        waiting.into_iter().map(|(_, at)| at).collect()
    }

    /// Makes one pass of moves that raise the sum at present prices. Returns whether there were any.
    pub(super) fn exchange(&mut self) -> bool {
        let mut waiting = self.best_waiting(WAITING);
        let mut moved = self.power.price > 0.0 && self.clear_dear_cores();
        for place in 0..self.places.len() {
            if !self.is_fixed(place) {
                moved |= self.take_waiting(place, &mut waiting);
                moved |= self.swap_near(place);
            }
        }
        moved
    }

    /// Clears cores whose jobs are worth less than they cost, the last ones first.
    fn clear_dear_cores(&mut self) -> bool {
        let mut moved = false;
        for core in (0..self.cores.len()).rev() {
            let place = self.cores[core][0];
            let before = self.done[core];
            if !before.is_busy || self.cores[core].iter().any(|&place| self.is_fixed(place)) {
                continue;
            }
            let (gain, rise) = self.gain_of(place, before, Done::default());
            if gain > self.idle_gain() {
                self.clear_core(core);
                self.settle_after(place, Done::default(), rise);
                moved = true;
            }
        }
        moved
    }

    /// Gives a place to the best waiting job, or to none, if the sum rises.
    fn take_waiting(&mut self, place: usize, waiting: &mut Vec<usize>) -> bool {
        let (kept, core) = (self.who[place], self.core_of[place]);
        let before = self.done[core];
        let mut best = None;
        let mut most = self.part(LEAST_GAIN);
        for pos in (0..waiting.len()).map(Some).chain([None]) {
            self.who[place] = pos.map(|pos| waiting[pos]);
            let after = self.done_on(core);
            let (gain, rise) = self.gain_of(place, before, after);
            let least = if pos.is_none() { self.idle_gain() } else { 0.0 };
            if gain > most.max(least) {
                most = gain;
                best = Some((pos, after, rise));
            }
        }
        self.who[place] = kept;
        let Some((pos, after, rise)) = best else {
            return false;
        };
        self.who[place] = pos.map(|pos| waiting.swap_remove(pos));
        waiting.extend(kept);
        self.settle_after(place, after, rise);
        true
    }

    /// Exchanges the job of a place with those of the following places, if the sum rises.
    fn swap_near(&mut self, place: usize) -> bool {
        let core = self.core_of[place];
        let mut moved = false;
        for step in 1..=PARTNERS.min(self.places.len().saturating_sub(1)) {
            let other = (place + step) % self.places.len();
            if !self.may_swap(place, other) {
                continue;
            }
            let there = self.core_of[other];
            self.who.swap(place, other);
            let (here, away) = (self.done_on(core), self.done_on(there));
            let (of_here, rise_here) = self.gain_of(place, self.done[core], here);
            let (of_away, rise_away) = self.gain_of(other, self.done[there], away);
            if of_here + of_away > self.part(LEAST_GAIN) {
                let was_away = self.done[there];
                self.settle_after(place, here, rise_here);
                self.done[there] = was_away;
                self.settle_after(other, away, rise_away);
                moved = true;
            } else {
                self.who.swap(place, other);
            }
        }
        moved
    }

    /// Updates latency and sums for a move after which the place's core does `after`.
    fn settle_after(&mut self, place: usize, after: Done, rise: f64) {
        let (core, domain) = (self.core_of[place], self.places[place].domain);
        let before = self.done[core];
        let market = &mut self.now.markets[domain];
        let latency = market.latency;
        market.move_by(after.reads - before.reads, rise);
        self.turn(place, before, after);
        self.done[core] = after;
        if rise.abs() > LEAST_RISE * latency {
            for core in 0..self.cores.len() {
                if self.places[self.cores[core][0]].domain == domain {
                    self.done[core] = self.done_on(core);
                }
            }
        }
    }
}

/// Compares pairs of worth and candidate: the greatest worth first, then the lower candidate.
fn by_worth(a: &(f64, usize), b: &(f64, usize)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}
