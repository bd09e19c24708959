//! Chooses the jobs of the next quantum, and which of them share a core, for the greatest sum of weighted speeds.
//!
//! The sum is Σ w v: the weight of a job times its predicted speed, its cycles per instruction alone / beside the
//! others. There are too many sets to try, and predicting one takes microseconds. So the search separates contention in
//! a core, which it computes, from contention in caches and memory, which it prices: the price of a line that a job
//! reads is the loss of all others by it. At fixed prices each core counts for itself, and a change of one or two cores
//! is judged in nanoseconds.
//!
//! Where energy counts, the power of the active cores is subtracted, at the present price of a watt ([`power`]).
//!
//! 1. Begin with the jobs that keep their places.
//! 2. Make the moves that prices propose while the predicted sum rises: a waiting job, or none, takes a place.
//! 3. Exchange the jobs of two cores while the sum at present prices rises; repeat from 2.

mod jobs;
mod market;
mod moves;
mod power;
#[cfg(test)]
mod tests;

use crate::estimate::NOISE;
use crate::model::contention::{Contention, PlacedJob, SpeedPrediction};
use crate::snapshot::Learnt;
use jobs::{CoreThroughput, JobLoad, together};
use market::Market;
pub(super) use power::{Model, Power};

/// A job that may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobCandidate<'a> {
    /// Its index in the snapshot.
    pub(super) ix: u32,
    pub(super) weight: f64,
    pub(super) learnt: &'a Learnt,
    /// The place of its last run, if it is one of those to fill.
    pub(super) last: Option<usize>,
    /// Whether it has run until now.
    pub(super) runs: bool,
    /// The memory domain where its memory lies, if there are several.
    pub(super) home: Option<usize>,
    /// The place that it runs in and keeps.
    pub(super) fixed: Option<usize>,
    /// Whether it runs in any case.
    pub(super) is_critical: bool,
}

/// The weighted speed of a candidate, as far as it is known before its place. What its last interval showed corrects the
/// model by a factor.
#[derive(Clone, Copy, Debug)]
struct Worth {
    /// Weight x the instructions per ns that would make it as fast as alone, for each cycle per instruction and ns.
    alone: f64,
    /// The part of its weighted speed that does not depend on co-runners, as far as the model is not trusted; on a core of the
    /// fastest type.
    steady: f64,
}

impl Worth {
    fn of(one: &JobCandidate<'_>, shared: &Contention) -> Worth {
        let learnt = one.learnt;
        let alone = one.weight * learnt.solo_cpi / learnt.asks.ghz;
        let Some(last) = learnt.last else {
            return Worth { alone, steady: 0.0 };
        };
        let correction = libm::pow(last.modelled / last.counted, 1.0 - shared.pull);
        let there = learnt.solo_cpi_on(last.core_type, shared);
        let speed = one.weight * correction * there / last.modelled;
        Worth {
            alone: alone * correction * shared.trust,
            steady: speed * (1.0 - shared.trust),
        }
    }
}

/// A CPU to give out, or one that a job keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPlace {
    pub(super) core: usize,
    pub(super) llc: usize,
    pub(super) domain: usize,
    /// Number of the type of core.
    pub(super) kind: usize,
    /// Whether a task that is no candidate runs on its core.
    pub(super) awake: bool,
}

/// The jobs of the next quantum.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    /// The job in each place.
    pub(super) who: Vec<Option<usize>>,
    pub(super) left_out: Vec<LeftOut>,
    /// Sum of weight x predicted speed, and power of the machine in W.
    pub(super) work: f64,
    pub(super) watts: f64,
}

/// A candidate that does not run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeftOut {
    pub(super) candidate: usize,
    /// Its weight x speed beside the running jobs, their loss by it, and the cost of its core's power.
    pub(super) worth: f64,
    pub(super) loss: f64,
    pub(super) power: f64,
}

/// Minimum gain of a move, as a share of the sum.
const LEAST_GAIN: f64 = NOISE * NOISE;
/// Maximum number of places of a small machine. There each move is predicted; on a larger one all moves together.
const SMALL: usize = 64;
/// Number of waiting jobs that may get a place of a large machine in a quantum.
const POOL: usize = 512;
/// Maximum number of rounds of moves and exchanges.
const ROUNDS: usize = 3;

/// The search for one quantum.
pub(super) struct Search<'a> {
    shared: &'a Contention,
    candidates: &'a [JobCandidate<'a>],
    worths: Vec<Worth>,
    places: &'a [CpuPlace],
    power: Power<'a>,
    /// The job in each place.
    who: Vec<Option<usize>>,
    /// The candidates that may get a place.
    pool: Vec<usize>,
    /// The places of each core.
    cores: Vec<Vec<usize>>,
    core_of: Vec<usize>,
    /// The types of core, the fastest first, and the index in this list for each core.
    kinds: Vec<usize>,
    kind_of: Vec<usize>,
    /// The present set as input of the model, and its prediction.
    seats: Vec<PlacedJob>,
    prediction: SpeedPrediction,
    /// Its weighted speeds minus the cost of power, its weighted speeds, and its power in W.
    sum: f64,
    work: f64,
    watts: f64,
    /// The memory domains, with their prices.
    markets: Vec<Market>,
    /// Lines read per ns into each last-level cache.
    cached: Vec<f64>,
    /// Active cores, per memory domain.
    active: Vec<usize>,
    /// Load of each candidate on each type of core.
    loads: Vec<JobLoad>,
    /// Throughput of the jobs of each core at present prices.
    done: Vec<CoreThroughput>,
    /// Gain at present prices if each place were cleared.
    vacating: Vec<f64>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        shared: &'a Contention,
        candidates: &'a [JobCandidate<'a>],
        places: &'a [CpuPlace],
        power: Power<'a>,
    ) -> Search<'a> {
        let numbers = distinct(places.iter().map(|place| place.core));
        let mut cores = vec![Vec::new(); numbers.len()];
        let mut core_of = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            let core = numbers.binary_search(&place.core).unwrap_or_default();
            cores[core].push(at);
            core_of.push(core);
        }
        let kinds = distinct(places.iter().map(|place| place.kind));
        let kind_of = cores
            .iter()
            .map(|core| kinds.binary_search(&places[core[0]].kind))
            .map(Result::unwrap_or_default)
            .collect();
        let mut who = vec![None; places.len()];
        // On a large machine the search improves the present set.
        let is_start = |one: &&JobCandidate<'_>| one.runs && places.len() > SMALL;
        for (at, candidate) in candidates.iter().enumerate() {
            let start = Some(candidate).filter(is_start).and_then(|one| one.last);
            if let Some(place) = candidate.fixed.or(start) {
                who[place] = Some(at);
            }
        }
        let homes = candidates.iter().filter_map(|one| one.home);
        let domains = places.iter().map(|place| place.domain);
        let domains = domains.chain(homes).map(|domain| domain + 1).max();
        let llcs = places.iter().map(|place| place.llc + 1).max();
        Search {
            shared,
            candidates,
            worths: candidates
                .iter()
                .map(|one| Worth::of(one, shared))
                .collect(),
            places,
            power,
            who,
            pool: (0..candidates.len()).collect(),
            cores,
            core_of,
            kinds,
            kind_of,
            seats: Vec::new(),
            prediction: SpeedPrediction::default(),
            sum: 0.0,
            work: 0.0,
            watts: 0.0,
            markets: vec![Market::default(); domains.unwrap_or(0)],
            cached: vec![0.0; llcs.unwrap_or(0)],
            active: Vec::new(),
            loads: Vec::new(),
            done: Vec::new(),
            vacating: Vec::new(),
        }
    }

    /// Chooses the jobs to run.
    pub(super) fn run(mut self) -> Chosen {
        if self.places.is_empty() || self.candidates.is_empty() {
            return Chosen {
                who: self.who,
                ..Chosen::default()
            };
        }
        self.seat_critical();
        let (before, least) = (self.who.clone(), self.settle());
        if before.iter().all(Option::is_none) {
            // The first core to wake costs most: several jobs may pay for it where one does not.
            self.seat_best();
        }
        if !self.is_small() {
            self.narrow();
        }
        self.climb();
        if self.power.price > 0.0 && self.is_small() {
            self.climb_from_full();
        }
        if self.sum < least {
            self.who = before;
            self.settle();
        }
        self.pool = (0..self.candidates.len()).collect();
        self.find_loads();
        self.finish()
    }

    /// Makes moves and exchanges while the predicted sum rises.
    fn climb(&mut self) {
        let mut sum = self.settle();
        for _ in 0..ROUNDS {
            let last = sum;
            sum = self.replace(sum);
            sum = self.swap_siblings(sum);
            if sum <= last + self.part(LEAST_GAIN) {
                break;
            }
        }
    }

    /// Searches again from a full machine, and keeps the better set. Some jobs pay for the power of their cores only
    /// together.
    fn climb_from_full(&mut self) {
        let (kept, sum) = (self.who.clone(), self.sum);
        let waiting = self.newcomers();
        let free = self.who.iter_mut().filter(|who| who.is_none());
        for (place, (_, at)) in free.zip(waiting) {
            *place = Some(at);
        }
        self.climb();
        if self.sum < sum {
            self.who = kept;
            self.settle();
        }
    }

    /// Gives each critical job the place where it gains most. The other jobs are chosen to go with them.
    fn seat_critical(&mut self) {
        for at in 0..self.candidates.len() {
            let one = &self.candidates[at];
            if one.is_critical && one.fixed.is_none() {
                // On a large machine a single job hardly changes the shares of the caches.
                if self.is_small() || self.done.is_empty() {
                    self.settle();
                    self.find_loads();
                }
                self.seat(at);
            }
        }
    }

    /// The present set, and the worth and cost of each job left out.
    fn finish(self) -> Chosen {
        let has_idle_core = self
            .cores
            .iter()
            .any(|core| core.iter().all(|&place| self.who[place].is_none()));
        let others = CoreThroughput {
            is_busy: !has_idle_core,
            ..CoreThroughput::default()
        };
        let mut left_out = Vec::new();
        for candidate in self.waiting() {
            let place = self.candidates[candidate].last.unwrap_or(0);
            let (job, loss) = self.job_and_loss(candidate, self.core_of[place]);
            left_out.push(LeftOut {
                candidate,
                worth: job.sum,
                loss,
                power: self.cost(place, others, job),
            });
        }
        Chosen {
            who: self.who,
            left_out,
            work: self.work,
            watts: self.watts,
        }
    }

    /// Whether the machine is small.
    fn is_small(&self) -> bool {
        self.places.len() <= SMALL
    }

    /// This share of the weighted speeds of the present set.
    fn part(&self, part: f64) -> f64 {
        part * self.work
    }

    /// Throughput of a waiting job alone on a core, and the loss of the others by it.
    fn job_and_loss(&self, candidate: usize, core: usize) -> (CoreThroughput, f64) {
        let job = self.alone_on(candidate, core);
        let domain = self.places[self.cores[core][0]].domain;
        (job, self.loss_by(domain, CoreThroughput::default(), job))
    }

    /// The worth of a waiting job alone on a core, minus the loss of the others.
    fn worth_on(&self, candidate: usize, core: usize) -> f64 {
        let (job, loss) = self.job_and_loss(candidate, core);
        job.sum - loss
    }

    /// Throughput of a candidate alone on a core.
    fn alone_on(&self, candidate: usize, core: usize) -> CoreThroughput {
        let domain = self.places[self.cores[core][0]].domain;
        let load = self.load_on(candidate, core);
        together(std::iter::once(load), domain, &self.markets, self.shared)
    }

    /// The loss of the others if a core of this domain changes from `before` to `after`.
    fn loss_by(&self, domain: usize, before: CoreThroughput, after: CoreThroughput) -> f64 {
        if before.away.is_none() && after.away.is_none() {
            let more = after.reads - before.reads;
            return self.markets[domain].loss(self.shared, more);
        }
        let changes = changed_reads(domain, before, after);
        let losses = changes.into_iter().flatten();
        losses
            .map(|(domain, reads)| self.markets[domain].loss(self.shared, reads))
            .sum()
    }

    /// The candidates of the pool without a place.
    fn waiting(&self) -> Vec<usize> {
        let mut runs = vec![false; self.candidates.len()];
        for &at in self.who.iter().flatten() {
            runs[at] = true;
        }
        let pool = self.pool.iter().copied();
        pool.filter(|&at| !runs[at]).collect()
    }

    /// On a large machine the search goes on with the jobs that have places and those that are worth most now.
    fn narrow(&mut self) {
        self.find_loads();
        let waiting = self.newcomers().into_iter().take(POOL);
        let placed = self.who.iter().flatten().copied();
        self.pool = waiting.map(|(_, at)| at).chain(placed).collect();
    }

    /// Predicts the sum for the present set, minus the cost of its power, and sets the prices.
    fn settle(&mut self) -> f64 {
        self.seats.clear();
        for (place, who) in self.places.iter().zip(&self.who) {
            if let Some(who) = who {
                self.seats.push(PlacedJob {
                    asks: *self.candidates[*who].learnt.asks_on(place.kind),
                    core: place.core,
                    llc: place.llc,
                    domain: self.candidates[*who].home.unwrap_or(place.domain),
                    away: self.is_away(*who, place.domain),
                });
            }
        }
        self.prediction.make(self.shared, &self.seats);
        self.markets.fill(Market::default());
        for (market, &latency) in self.markets.iter_mut().zip(&self.prediction.latency) {
            market.latency = latency;
        }
        self.cached.fill(0.0);
        self.cached[..self.prediction.cached.len()].copy_from_slice(&self.prediction.cached);
        let of_instructions = self.find_prices();
        self.watts = self.count_active() + of_instructions;
        self.sum = self.work - self.power.price * self.watts;
        self.sum
    }

    /// Sums up the work of the present set, and the cost of a line in each memory domain. Returns the power
    /// of the instructions in W.
    fn find_prices(&mut self) -> f64 {
        let (mut work, mut of_instructions) = (0.0, 0.0);
        let placed = self
            .places
            .iter()
            .zip(&self.who)
            .filter_map(|(place, who)| Some((place.kind, (*who)?)));
        for ((seat, job), (kind, who)) in self.seats.iter().zip(&self.prediction.jobs).zip(placed) {
            of_instructions += self.power.of_instruction(kind) * seat.asks.ghz / job.cpi;
            let steady = self.steady_on(who, kind);
            let market = &mut self.markets[seat.domain];
            let waits = job.waits;
            let worth = self.worths[who].alone * seat.asks.ghz;
            work += steady + worth / job.cpi;
            market.reads += job.reads;
            market.yields += job.reads * waits / job.cpi;
            let slope = worth / (job.cpi * job.cpi) * waits;
            market.slowed += slope;
            market.bends += 2.0 * slope * waits / job.cpi;
        }
        self.work = work;
        of_instructions
    }

    /// Computes the load of each candidate on each type of core, with its present share of the last-level cache, and
    /// the throughput of each core. On a large machine the shares of waiting jobs hardly change during the search.
    fn find_loads(&mut self) {
        let is_first = self.loads.is_empty();
        self.loads
            .resize(self.candidates.len() * self.kinds.len(), JobLoad::default());
        if is_first || self.is_small() {
            for at in self.waiting() {
                self.find_load(at, self.candidates[at].last.unwrap_or(0));
            }
        }
        for place in 0..self.places.len() {
            if let Some(at) = self.who[place] {
                self.find_load(at, place);
            }
        }
        self.done.clear();
        for core in 0..self.cores.len() {
            self.done.push(self.done_on(core));
        }
        self.vacating.clear();
        for place in 0..self.places.len() {
            let gain = self.gain_by(None, place);
            self.vacating.push(gain);
        }
    }

    /// Computes the load of a candidate in a place, on each type of core.
    fn find_load(&mut self, at: usize, place: usize) {
        for (nth, &kind) in self.kinds.iter().enumerate() {
            // For types of core that its present cache lacks, take the first cache that has them.
            let mut order = std::iter::once(place).chain(0..self.places.len());
            let here = order.find(|&place| self.places[place].kind == kind);
            let llc = self.places[here.unwrap_or(0)].llc;
            self.loads[at * self.kinds.len() + nth] = self.load(at, kind, llc);
        }
    }

    /// The load of a candidate on the type of a core.
    fn load_on(&self, candidate: usize, core: usize) -> &JobLoad {
        &self.loads[candidate * self.kinds.len() + self.kind_of[core]]
    }

    fn load(&self, candidate: usize, kind: usize, llc: usize) -> JobLoad {
        let one = &self.candidates[candidate];
        let asks = one.learnt.asks_on(kind);
        let cached = self.cached[llc];
        // Its reads depend on its share, and its share on its reads.
        let mut m = asks.reads;
        let solo = if kind == 0 {
            one.learnt.solo_cpi
        } else {
            asks.own + asks.stall(self.shared, asks.reads, 1.0)
        };
        let mut rate = m * asks.ghz / solo;
        for _ in 0..2 {
            m = asks.reads_at(rate / f64::max(cached, rate));
            let more = asks.stall(self.shared, m, 1.0) - asks.stall(self.shared, asks.reads, 1.0);
            rate = m * asks.ghz / (solo + more);
        }
        JobLoad {
            own: asks.own,
            time: asks.time,
            accesses: asks.accesses,
            touches: asks.line() * self.shared.hit * asks.llc,
            replaced: asks.line() * self.shared.hit * m,
            waits: asks.line() * m,
            lines: m * asks.ghz,
            ghz: asks.ghz,
            home: one.home,
            worth: self.worths[candidate].alone * asks.ghz,
            steady: self.steady_on(candidate, kind),
        }
    }

    /// The part of a candidate's weighted speed that does not depend on co-runners, on a core of this type.
    fn steady_on(&self, candidate: usize, kind: usize) -> f64 {
        let steady = self.worths[candidate].steady;
        if kind == 0 || steady == 0.0 {
            return steady;
        }
        let learnt = self.candidates[candidate].learnt;
        let [fastest_ns, here_ns] =
            [0, kind].map(|kind| learnt.solo_cpi_on(kind, self.shared) / learnt.asks_on(kind).ghz);
        steady * fastest_ns / here_ns
    }

    /// Throughput of the jobs of a core at the present latency.
    fn done_on(&self, core: usize) -> CoreThroughput {
        let first = self.cores[core][0];
        self.done_with(core, first, self.who[first])
    }

    /// The same with this job, or none, in a place of the core.
    fn done_with(&self, core: usize, to: usize, who: Option<usize>) -> CoreThroughput {
        let places = &self.cores[core];
        let domain = self.places[to].domain;
        let jobs = places
            .iter()
            .filter_map(|&place| if place == to { who } else { self.who[place] });
        let loads = jobs.map(|at| self.load_on(at, core));
        together(loads, domain, &self.markets, self.shared)
    }

    /// Whether a domain is not that of a candidate's memory.
    fn is_away(&self, candidate: usize, domain: usize) -> bool {
        let home = self.candidates[candidate].home;
        home.is_some_and(|home| home != domain)
    }

    /// Whether it can matter to exchange the jobs of two places.
    fn may_swap(&self, one: usize, other: usize) -> bool {
        let (core, there) = (self.core_of[one], self.core_of[other]);
        let are_alike = self.cores[core].len() == 1
            && self.cores[there].len() == 1
            && self.places[one].llc == self.places[other].llc
            && self.places[one].domain == self.places[other].domain
            && self.places[one].kind == self.places[other].kind;
        core != there
            && !are_alike
            && self.who[one] != self.who[other]
            && !self.is_fixed(one)
            && !self.is_fixed(other)
    }

    fn is_fixed(&self, place: usize) -> bool {
        self.who[place].is_some_and(|at| {
            let one = &self.candidates[at];
            one.is_critical || one.fixed.is_some()
        })
    }
}

/// The change of the lines read from each memory domain as a core of a domain changes.
fn changed_reads(
    domain: usize,
    before: CoreThroughput,
    after: CoreThroughput,
) -> [Option<(usize, f64)>; 3] {
    let came = after.away;
    let went = before.away.map(|(home, reads)| (home, -reads));
    [Some((domain, after.reads - before.reads)), came, went]
}

fn distinct(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
