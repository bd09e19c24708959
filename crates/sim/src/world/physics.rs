//! The cores and caches between two changes: syncs a core to now, and solves for its rates from now on.
//!
//! A core is the unit: its threads share issue slots and the first-level cache. Between two changes a core's rates are
//! constant. They are solved again when something on the core changes, when the latency of memory has changed
//! noticeably, and when its threads' lines in the last-level cache have changed enough to matter.
//!
//! A thread's lines in the last-level cache grow with its reads and fall with replacements ([`llc`](super::llc)). On a
//! linear piece of the curve of misses its reads fall linearly with its lines, so this is an exponential approach,
//! computed exactly.

use super::SimWorld;
use super::decay::decay;
use super::llc::Llc;
use super::memory::CoreDemand;
use super::thread::{Thread, ThreadState, TrueCounts};
use crate::machine::MachineSpec;
use cosched_core::Machine;

/// Shortest time between two solutions for a core's rates, in ns, per unit of the step.
const SHORTEST_STEP: f64 = 500_000.0;
/// Longest time between two solutions, in ns.
const LONGEST_STEP: f64 = 250_000_000.0;
/// Maximum number of rounds in which the threads of a core adapt to each other, and greatest change of a rate, as a
/// share, to stop at.
const SMT_ROUNDS: usize = 12;
const SMT_TOLERANCE: f64 = 1e-4;
/// Least share of the way to the point where its lines rest that a thread goes in a curve.
const LEAST_APPROACH: f64 = 1e-9;
/// Maximum share of its time in which a thread waits for lines that left its private caches.
const MOST_LOST: f64 = 0.9;
/// Change of a thread's lines times their weight to solve for, on which the losses of all threads depend: a share of its
/// own, and a share of the sum over all threads, per unit of the step.
const OWN_MASS_TOLERANCE: f64 = 5.0;
const MASS_TOLERANCE: f64 = 0.25;
/// Change of a cache's pace, as a share, at which its cores check whether they must be solved earlier.
const PACE_TOLERANCE: f64 = 0.05;

pub(crate) struct Core {
    pub cpus: Vec<usize>,
    pub core_type: usize,
    pub llc: usize,
    pub domain: usize,
    /// The instant of its threads' figures, in ns.
    pub at: u64,
    /// Instant at which its rates are to be solved again, or a phase ends, in ns.
    pub changes: u64,
    /// Pace of its last-level cache when `changes` was planned, and evictions from its private caches.
    pub planned: [f64; 2],
    pub dirty: bool,
    pub active: bool,
    /// Its clock in GHz now.
    pub ghz: f64,
    /// ns in which it ran, weighted by the power of its clock relative to the nominal one.
    pub active_ns: f64,
    /// Instructions, weighted by their energy at its clock relative to the nominal one.
    pub instructions: f64,
    pub lines: f64,
}

impl Core {
    /// An idle core with these CPUs, given by their indices.
    pub(crate) fn new(cpus: Vec<usize>, machine: &Machine, spec: &MachineSpec) -> Core {
        let first = &machine.cpus[cpus[0]];
        Core {
            core_type: first.core_type,
            llc: first.llc,
            domain: first.memory_domain,
            cpus,
            at: 0,
            changes: u64::MAX,
            planned: [0.0; 2],
            dirty: false,
            active: false,
            ghz: spec.core_types[first.core_type].ghz,
            active_ns: 0.0,
            instructions: 0.0,
            lines: 0.0,
        }
    }
}

impl Thread {
    /// Time that the thread's rates may stay constant at this pace of its cache, in ns: until its cycles per
    /// instruction have changed by a share of `least`, or may have, as it has left its linear piece.
    fn step(&self, llc: &Llc, least: f64) -> f64 {
        let pace = llc.pace();
        let flow = self.rate * self.uses.reads - pace * self.oldest.weight * self.held;
        let change = flow.abs() * self.uses.share_per_line;
        let mut step = LONGEST_STEP;
        if change * step > least {
            step = least / change;
        }
        let (below, above) = self.uses.piece;
        let to_end = if flow > 0.0 {
            above - self.held
        } else {
            self.held - below
        };
        // Beyond the end of the piece the curve may have its greatest slope.
        let beyond = least / self.uses.most_share_per_line;
        if flow.abs() * step > to_end + beyond {
            step = (to_end + beyond) / flow.abs() + 1.0;
        }
        let change = self.mass_change(flow, llc.age_power());
        let own_mass = self.held * self.oldest.weight;
        let most = least * (OWN_MASS_TOLERANCE * own_mass + MASS_TOLERANCE * llc.mass());
        if pace > 0.0 && change * step > most {
            step = most / change;
        }
        step.max(SHORTEST_STEP * least)
    }

    /// Change per ns of its lines times their weight, at this change of its lines.
    fn mass_change(&self, flow: f64, age_power: f64) -> f64 {
        let age = self.age();
        if age <= 0.0 {
            return 0.0;
        }
        let by_lines = flow * self.oldest.growth;
        let by_time = if self.oldest.is_left {
            age_power * self.held / age
        } else {
            0.0
        };
        self.oldest.weight * (by_lines.abs() + by_time)
    }

    /// The age of its oldest line at the last solution, in ns.
    fn age(&self) -> f64 {
        self.oldest.age.map_or(0.0, |(age, _)| age)
    }
}

/// Adds to the lines read and written by a memory domain.
fn moved_by(moved: &mut [(f64, f64)], domain: usize, done: &TrueCounts) {
    let (reads, writes) = &mut moved[domain];
    *reads += done.reads;
    *writes += done.writes;
}

impl SimWorld {
    /// Syncs a core to now.
    pub(crate) fn sync(&mut self, core_ix: usize) {
        let now = self.now;
        let core = &mut self.cores[core_ix];
        let span = now - core.at;
        if span == 0 {
            return;
        }
        let llc = &mut self.llcs[core.llc];
        llc.advance(now);
        let pace = llc.take_losses(core_ix) / span as f64;
        core.at = now;
        let ghz = core.ghz;
        let boost = ghz / self.spec.core_types[core.core_type].ghz;
        if core.active {
            core.active_ns += span as f64 * boost * boost * boost;
        }
        let mut gained = 0.0;
        for &cpu in &core.cpus {
            let Some(thread) = self.cpus[cpu].current else {
                continue;
            };
            let thread = &mut self.threads[thread];
            thread.cpu_ns += span;
            // Most have this weight, and the division takes longer than the rest of the sum.
            let is_plain = thread.weight == super::run_queue::NICE_0;
            thread.vruntime += if is_plain {
                span
            } else {
                span * super::run_queue::NICE_0 / thread.weight
            };
            let mut rest = span as f64;
            let switching = thread.switching.min(rest);
            thread.switching -= switching;
            rest -= switching;
            thread.tally.cycles += rest * ghz;
            let warming = thread.warming.min(rest);
            thread.warming -= warming;
            rest -= warming;
            let instructions = (thread.rate * rest).min(thread.left());
            let done = thread.execute(instructions);
            core.instructions += done.instructions * boost * boost;
            core.lines += done.reads + done.writes;
            moved_by(&mut self.moved, thread.home.unwrap_or(core.domain), &done);
            // Its lines approach the point where reads and losses balance.
            // Both are lines in what it holds, around what it held when its rates were solved.
            let gains = thread.rate * thread.uses.reads_per_line;
            let losses = pace * thread.oldest.weight;
            let growth = thread.oldest.growth;
            let speed = losses * growth - gains;
            let inflow = thread.rate * thread.uses.reads
                + (losses * (growth - 1.0) - gains) * thread.uses.at_held;
            let before = thread.held;
            // So slow an approach is a straight line. The point may also be too far away for a number.
            let held = if speed * rest > LEAST_APPROACH {
                let rests_at = inflow / speed;
                rests_at + (thread.held - rests_at) * decay(speed * rest)
            } else {
                thread.held + (inflow - speed * thread.held) * rest
            };
            debug_assert!(held.is_finite(), "{held} lines held");
            thread.held = held.clamp(0.0, llc.size);
            gained += thread.held - before;
        }
        llc.gained(gained);
    }

    /// Syncs the cores of a cache that fills, so that its unused lines are exact.
    pub(crate) fn sync_filling(&mut self, llc: usize) {
        if self.llcs[llc].is_filling() {
            for at in 0..self.llcs[llc].cores.len() {
                self.sync(self.llcs[llc].cores[at]);
            }
            self.llcs[llc].all_synced();
        }
    }

    /// Executes the rest that rounding leaves at the end of a phase or of the work.
    pub(crate) fn finish_piece(&mut self, thread: usize) {
        let ThreadState::Running(cpu) = self.threads[thread].state else {
            return;
        };
        let left = self.threads[thread].left();
        let done: TrueCounts = self.threads[thread].execute(left);
        let core = &mut self.cores[self.cpus[cpu].core];
        core.instructions += done.instructions;
        core.lines += done.reads + done.writes;
        let home = self.threads[thread].home.unwrap_or(core.domain);
        moved_by(&mut self.moved, home, &done);
    }

    /// Solves for the rates of a core's threads at the present latencies. The core must be synced.
    pub(crate) fn solve(&mut self, core: usize) {
        self.cores[core].dirty = false;
        self.gather_siblings(core);
        self.share_issue_slots(core);
        self.set_rates(core);
        self.ask_memory(core);
        self.plan_next_look(core);
        let llc = self.cores[core].llc;
        self.plan_full(llc);
        self.update_next(core);
        self.plan_neighbours(llc);
        if self.llcs[llc].take_became_full() {
            self.touch_all(llc);
        }
    }

    /// Solves for the rates of all cores of a cache: the weights of their lines begin to count.
    fn touch_all(&mut self, llc: usize) {
        for at in 0..self.llcs[llc].cores.len() {
            self.touch(self.llcs[llc].cores[at]);
        }
    }

    /// Collects the core's running threads, each with its speed alone on the core. They are few, so a small array is
    /// reused.
    fn gather_siblings(&mut self, core_ix: usize) {
        let core = &self.cores[core_ix];
        let ghz = core.ghz;
        let cache = &self.llcs[core.llc];
        self.scratch.clear();
        for &cpu in &core.cpus {
            let Some(thread_ix) = self.cpus[cpu].current else {
                continue;
            };
            let thread = &mut self.threads[thread_ix];
            let behaviour = &self.behaviours[thread.program][core.core_type];
            let phase = &behaviour.phases[thread.phase];
            let memory = phase.memory * thread.instance.memory;
            let (reads, slope, piece) = behaviour.reads(thread.held);
            thread.uses.l1 = behaviour.l1;
            thread.uses.llc = behaviour.llc * memory;
            thread.uses.reads = reads * memory;
            thread.uses.writes = thread.uses.reads * behaviour.writes;
            thread.uses.reads_per_line = slope * memory;
            thread.uses.at_held = thread.held;
            let home = thread.home.unwrap_or(core.domain);
            let remote = if home == core.domain {
                0.0
            } else {
                self.spec.memory.remote_ns
            };
            let latency = (self.domains[home].latency + remote) * ghz;
            let own = behaviour.cpi * phase.cpi * thread.instance.cpi;
            let waits = behaviour.waits(thread.held, memory, latency);
            let private = behaviour
                .private
                .min(cache.most_private() / core.cpus.len() as f64);
            let evictions = private * cache.evictions_from_private();
            let lost = (evictions * waits.per_refetch / ghz).min(MOST_LOST);
            // A thread that ran before starts from its last figure.
            let busy = if thread.rate > 0.0 { thread.busy } else { own };
            // The thread executes only in the rest of the time.
            let refetched = evictions * (busy + waits.stall) / (ghz * (1.0 - lost));
            thread.uses.refetched = refetched;
            thread.uses.llc += refetched;
            let stall = waits.stall + refetched * waits.per_refetch;
            let growth = waits.growth + refetched * waits.growth_per_refetch;
            self.scratch.push(Sibling {
                thread: thread_ix,
                home,
                memory,
                own,
                busy,
                stall,
                per_line: waits.per_line,
                most_per_line: waits.most_per_line,
                growth: growth * ghz,
                ipc: 1.0 / (busy + stall),
                piece,
            });
        }
    }

    /// Lets the core's threads slow each other down: a thread that does not wait for memory takes issue slots and ports
    /// of the first-level cache from the others. Two threads have a closed formula; more are solved in turns, until no
    /// thread's IPC changes.
    fn share_issue_slots(&mut self, core_ix: usize) {
        let kind = &self.spec.core_types[self.cores[core_ix].core_type];
        let smt = &self.spec.smt;
        if let [only] = &mut self.scratch[..] {
            only.busy = only.own;
            only.ipc = 1.0 / (only.own + only.stall);
            return;
        }
        if let [one, two] = &mut self.scratch[..] {
            let l1 = [one.thread, two.thread].map(|thread| self.threads[thread].uses.l1);
            let waits = l1[0] * l1[1] * smt.l1_wait_cycles / kind.l1_ports;
            if let Some(ipcs) = both(one, two, smt.issue_share, waits)
                && (0..2).all(|at| l1[at] * ipcs[at] <= kind.l1_ports)
            {
                for (sibling, ipc) in [one, two].into_iter().zip(ipcs) {
                    sibling.ipc = ipc;
                    sibling.busy = 1.0 / ipc - sibling.stall;
                }
                return;
            }
        }
        for _ in 0..SMT_ROUNDS {
            let mut moved = false;
            for ix in 0..self.scratch.len() {
                let (mut busy, mut ports) = (0.0, 0.0);
                for (other, sibling) in self.scratch.iter().enumerate() {
                    if other != ix {
                        busy += sibling.busy * sibling.ipc;
                        ports += self.threads[sibling.thread].uses.l1 * sibling.ipc / kind.l1_ports;
                    }
                }
                let sibling = &mut self.scratch[ix];
                let waits = self.threads[sibling.thread].uses.l1
                    * smt.l1_wait_cycles
                    * f64::min(ports, 1.0);
                sibling.busy = sibling.own * (1.0 + smt.issue_share * busy) + waits;
                let ipc = 1.0 / (sibling.busy + sibling.stall);
                moved |= (ipc - sibling.ipc).abs() > SMT_TOLERANCE * ipc;
                sibling.ipc = ipc;
            }
            if !moved {
                break;
            }
        }
    }

    /// Sets each thread's instructions per ns, and the lines that they read into the last-level cache.
    fn set_rates(&mut self, core_ix: usize) {
        let core = &mut self.cores[core_ix];
        let ghz = core.ghz;
        let llc = &mut self.llcs[core.llc];
        llc.advance(self.now);
        let (mut fills, mut refetched, mut mass) = (0.0, 0.0, 0.0);
        for sibling in &self.scratch {
            let thread = &mut self.threads[sibling.thread];
            thread.rate = sibling.ipc * ghz;
            thread.busy = sibling.busy;
            thread.uses.share_per_line = (sibling.per_line * sibling.ipc).abs();
            thread.uses.most_share_per_line = sibling.most_per_line * sibling.ipc;
            thread.uses.piece = sibling.piece;
            let behaviour = &self.behaviours[thread.program][core.core_type];
            thread.grow_old(&behaviour.ages, sibling.memory, llc.age_power(), self.now);
            thread.oldest.weight = llc.weight(thread.age());
            fills += thread.rate * thread.uses.reads;
            refetched += thread.rate * thread.uses.refetched;
            mass += thread.held * thread.oldest.weight;
        }
        llc.set_use(core_ix, fills, refetched, mass);
    }

    /// Passes the demand of the core's threads to each memory domain.
    fn ask_memory(&mut self, core_ix: usize) {
        for (domain_ix, domain) in self.domains.iter_mut().enumerate() {
            let mut asks = CoreDemand::default();
            for sibling in self
                .scratch
                .iter()
                .filter(|sibling| sibling.home == domain_ix)
            {
                let thread = &self.threads[sibling.thread];
                let reads = thread.rate * (thread.uses.reads + thread.uses.refetched);
                let lines = reads + thread.rate * thread.uses.writes;
                asks.reads += reads;
                asks.lines += lines;
                asks.squares += lines * lines;
                asks.yields += lines * sibling.growth * sibling.ipc;
            }
            domain.ask(core_ix, asks);
        }
    }

    /// Plans the core's next event: a thread reaches the end of its piece, or its rates have changed.
    fn plan_next_look(&mut self, core_ix: usize) {
        let core = &mut self.cores[core_ix];
        let llc = &self.llcs[core.llc];
        let mut changes = u64::MAX;
        for sibling in &self.scratch {
            let thread = &mut self.threads[sibling.thread];
            let lag = thread.switching + thread.warming;
            thread.ends = after(self.now, lag + thread.left() / thread.rate);
            let step = after(self.now, lag + thread.step(llc, self.step));
            changes = changes.min(thread.ends).min(step);
        }
        core.changes = changes;
        core.planned = [llc.pace(), llc.evictions_from_private()];
    }

    /// Plans the next event of a cache that fills: it may be full then.
    fn plan_full(&mut self, llc: usize) {
        let at = self.cores.len() + llc;
        self.next[at] = after(self.now, self.llcs[llc].may_be_full_in());
    }

    /// Checks whether a cache is full.
    pub(crate) fn full_event(&mut self, llc: usize) {
        self.sync_filling(llc);
        self.plan_full(llc);
        self.plan_neighbours(llc);
        if self.llcs[llc].take_became_full() {
            self.touch_all(llc);
        }
    }

    /// Plans an earlier solution for the cores of a cache whose pace has changed: a thread's stable lines may now
    /// change quickly.
    fn plan_neighbours(&mut self, llc: usize) {
        let cache = &self.llcs[llc];
        let now = [cache.pace(), cache.evictions_from_private()];
        for at in 0..self.llcs[llc].cores.len() {
            let core_ix = self.llcs[llc].cores[at];
            let core = &mut self.cores[core_ix];
            let [is_other_pace, are_other_evictions] =
                [0, 1].map(|ix| differs(now[ix], core.planned[ix]));
            if !is_other_pace && !are_other_evictions {
                continue;
            }
            core.planned = now;
            let threads = core.cpus.iter().filter_map(|&cpu| self.cpus[cpu].current);
            let mut step = threads
                .map(|thread| self.threads[thread].step(&self.llcs[llc], self.step))
                .fold(f64::INFINITY, f64::min);
            if are_other_evictions {
                step = step.min(SHORTEST_STEP * self.step);
            }
            let changes = after(self.now, step);
            if changes < core.changes {
                core.changes = changes;
                self.update_next(core_ix);
            }
        }
    }

    /// Solves for the rates of all changed cores, until the latencies are stable.
    pub(crate) fn solve_dirty(&mut self) {
        while let Some(core) = self.dirty.pop() {
            self.solve(core);
        }
        for _ in 0..40 {
            let mut changed = false;
            for domain in 0..self.domains.len() {
                if self.domains[domain].settle() {
                    changed = true;
                    for core in 0..self.cores.len() {
                        if self.domains[domain].is_stale(core) {
                            self.sync(core);
                            self.solve(core);
                        }
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Updates a core's next event: a change of its rates, or the end of a slice.
    pub(crate) fn update_next(&mut self, core: usize) {
        let slices = self.cores[core]
            .cpus
            .iter()
            .filter_map(|&cpu| self.cpus[cpu].slice_end);
        self.next[core] = slices.fold(self.cores[core].changes, u64::min);
    }

    /// Syncs a core before anything on it changes, and marks its rates to be solved again.
    pub(crate) fn touch(&mut self, core: usize) {
        self.sync(core);
        if !std::mem::replace(&mut self.cores[core].dirty, true) {
            self.dirty.push(core);
        }
    }
}

/// Whether a pace differs noticeably from the planned one.
fn differs(pace: f64, planned: f64) -> bool {
    (pace - planned).abs() > PACE_TOLERANCE * f64::max(pace, planned)
}

/// Instructions per cycle of two threads of a core. `share` is the share of issue slots that a busy thread takes, and
/// `waits` times the other's IPC is the number of cycles that an instruction waits for a port. `None` without a
/// solution.
///
/// With x the IPC, a thread's cycles per instruction are `1/x1 = own1 (1 + share (1 - stall2 x2)) + stall1 + waits x2`,
/// so `1/x1 = a1 - b1 x2` and likewise for the other. This leads to `a1 b2 x1^2 - (a1 a2 - b1 + b2) x1 + a2 = 0`. Its
/// lesser root is the one that continues from `1/a1` where nothing is shared.
fn both(one: &Sibling, two: &Sibling, share: f64, waits: f64) -> Option<[f64; 2]> {
    let (a1, a2) = (one.intercept(share), two.intercept(share));
    let (b1, b2) = (one.slope(two, share, waits), two.slope(one, share, waits));
    let half = 0.5 * (a1 * a2 - b1 + b2);
    let root = (half * half - a1 * b2 * a2).sqrt();
    let x1 = a2 / (half + root);
    let x2 = 1.0 / (a2 - b2 * x1);
    (x1 > 0.0 && x2 > 0.0 && x1.is_finite() && x2.is_finite()).then_some([x1, x2])
}

/// A thread of the core to solve.
pub(crate) struct Sibling {
    thread: usize,
    home: usize,
    /// Factor on its accesses to the last-level cache.
    memory: f64,
    /// Cycles per instruction in the core, alone there.
    own: f64,
    /// The same beside its siblings.
    busy: f64,
    /// Cycles per instruction of waiting for memory.
    stall: f64,
    /// Change of its waiting per line held, and the greatest anywhere on its curve.
    per_line: f64,
    most_per_line: f64,
    /// Growth of the waiting per ns of latency.
    growth: f64,
    ipc: f64,
    piece: (f64, f64),
}

impl Sibling {
    /// `a` of [`both`].
    fn intercept(&self, share: f64) -> f64 {
        self.own * (1.0 + share) + self.stall
    }

    /// `b` of [`both`].
    fn slope(&self, other: &Sibling, share: f64, waits: f64) -> f64 {
        self.own * share * other.stall - waits
    }
}

/// The instant `span` ns after `now`, rounded up and at least 1 ns later; `u64::MAX` for an endless span.
pub(crate) fn after(now: u64, span: f64) -> u64 {
    if span >= 1e18 {
        return u64::MAX;
    }
    let whole = span as u64;
    now + (whole + u64::from(whole as f64 != span)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Rng;

    #[test]
    fn the_formula_for_two_threads_agrees_with_solving_in_turns() {
        let mut rng = Rng::new(1);
        let mut draw = |most: f64| most * rng.below(1 << 32) as f64 / 4_294_967_296.0;
        for _ in 0..20_000 {
            let (share, waits) = (draw(0.8), draw(0.6));
            let mut sibling = || Sibling {
                thread: 0,
                home: 0,
                memory: 1.0,
                own: 0.25 + draw(2.0),
                busy: 0.0,
                stall: draw(20.0) * draw(1.0),
                per_line: 0.0,
                most_per_line: 0.0,
                growth: 0.0,
                ipc: 0.0,
                piece: (0.0, 0.0),
            };
            let (one, two) = (sibling(), sibling());
            let Some(found) = both(&one, &two, share, waits) else {
                panic!("a solution")
            };
            let (mut x1, mut x2) = (1.0 / (one.own + one.stall), 1.0 / (two.own + two.stall));
            for _ in 0..5_000 {
                let cpi = |of: &Sibling, other: &Sibling, x: f64| {
                    of.own * (1.0 + share * (1.0 - other.stall * x)) + waits * x + of.stall
                };
                // Half of each step, so that it can't oscillate.
                x1 = 0.5 * (x1 + 1.0 / cpi(&one, &two, x2));
                x2 = 0.5 * (x2 + 1.0 / cpi(&two, &one, x1));
            }
            assert!(
                (found[0] / x1 - 1.0).abs() < 1e-6 && (found[1] / x2 - 1.0).abs() < 1e-6,
                "{found:?} {x1} {x2}"
            );
        }
    }
}
