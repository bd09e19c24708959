//! The memory of a socket. All cores see one latency: the one at which they ask for exactly the bandwidth that memory
//! delivers at it.

use crate::curve::LatencyCurve;
use crate::machine::MemorySpec;
use std::sync::Arc;

/// Lines per ns at 1 GB/s of 10^9 bytes.
const LINES_PER_NS_PER_GB_PER_S: f64 = 1.0 / 64.0;

/// Least change of the latency, or of a core's demand, as a share, to solve for.
const TOLERANCE: f64 = 0.004;

/// Number of changes after which the sums are computed anew, so that rounding errors can't add up.
const FRESH_SUM: u32 = 4_096;

/// The memory of one socket. It stores each core's demand, so that a change of one core only updates the sum.
#[derive(Clone)]
pub(crate) struct Domain {
    curve: Arc<LatencyCurve>,
    idle: f64,
    /// Lines per ns with one thread per channel.
    peak: f64,
    /// Share of `peak` lost to each further thread.
    loss: f64,
    /// Maximum loss to streams, as a share of the bandwidth.
    most_lost: f64,
    /// Latency now, in ns.
    pub latency: f64,
    /// The latency of each core's last solution.
    pub used: Vec<f64>,
    asks: Vec<CoreDemand>,
    /// Sum of `asks`.
    all: CoreDemand,
    changes: u32,
    /// Whether a core's demand changed since the latency was last settled.
    unsettled: bool,
}

/// Demand of a core on a domain.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct CoreDemand {
    /// Lines per ns.
    pub lines: f64,
    /// Share of them that is read.
    pub reads: f64,
    /// Decrease of `lines` per ns of latency.
    pub yields: f64,
    /// Sum of the squares of its threads' lines.
    pub squares: f64,
}

impl CoreDemand {
    fn add(&mut self, other: &CoreDemand, sign: f64) {
        self.lines += sign * other.lines;
        self.reads += sign * other.reads;
        self.yields += sign * other.yields;
        self.squares += sign * other.squares;
    }

    /// Effective number of streams: the number of threads with equal demand that would share the lines as unevenly.
    fn streams(&self) -> f64 {
        if self.squares > 0.0 {
            (self.lines * self.lines / self.squares).max(1.0)
        } else {
            1.0
        }
    }
}

impl Domain {
    pub(crate) fn new(spec: &MemorySpec, cores: usize) -> Domain {
        Domain {
            curve: spec.curve.clone(),
            idle: spec.idle_latency_ns,
            peak: f64::from(spec.channels) * spec.gb_per_s_per_channel * LINES_PER_NS_PER_GB_PER_S,
            loss: spec.stream_loss / f64::from(spec.channels),
            most_lost: spec.stream_loss_most,
            latency: spec.idle_latency_ns,
            used: vec![spec.idle_latency_ns; cores],
            asks: vec![CoreDemand::default(); cores],
            all: CoreDemand::default(),
            changes: 0,
            unsettled: false,
        }
    }

    pub(crate) fn ask(&mut self, core: usize, asks: CoreDemand) {
        self.used[core] = self.latency;
        let before = std::mem::replace(&mut self.asks[core], asks);
        if before == asks {
            return;
        }
        self.unsettled = true;
        self.changes += 1;
        if self.changes >= FRESH_SUM {
            self.changes = 0;
            self.all = CoreDemand::default();
            self.asks.iter().for_each(|asks| self.all.add(asks, 1.0));
        } else {
            self.all.add(&before, -1.0);
            self.all.add(&asks, 1.0);
        }
    }

    /// Adapts the latency to the demand. Returns whether it changed noticeably.
    pub(crate) fn settle(&mut self) -> bool {
        if !std::mem::replace(&mut self.unsettled, false) {
            return false;
        }
        let latency = self.balance(&self.all);
        let change = latency - self.latency;
        let noticeable = change.abs() > TOLERANCE * self.latency;
        if noticeable {
            self.latency = latency;
        }
        noticeable
    }

    /// Whether a core's demand differs noticeably at the present latency from its last solution.
    pub(crate) fn is_stale(&self, core: usize) -> bool {
        let asks = &self.asks[core];
        (self.used[core] - self.latency).abs() * asks.yields > TOLERANCE * asks.lines
    }

    /// Maximum lines per ns for the present demand. Threads that read different rows of a bank close each other's.
    fn capacity(&self, all: &CoreDemand) -> f64 {
        self.peak * (1.0 - (self.loss * (all.streams() - 1.0)).min(self.most_lost))
    }

    /// The latency at which memory delivers exactly the bandwidth that the cores ask for at it. A core's rate is 1 /
    /// (time in the core + time in memory), so its demand falls along a hyperbola. All cores together are treated as
    /// one.
    fn balance(&self, all: &CoreDemand) -> f64 {
        // After the last core has stopped, rounding leaves a tiny sum.
        if all.lines <= 1e-9 * self.peak {
            return self.idle;
        }
        let share = (all.reads / all.lines).min(1.0);
        let per_ns = (all.yields / all.lines).max(0.0);
        let start = self.latency;
        let capacity = self.capacity(all);
        let demand = Demand {
            domain: self,
            lines: all.lines,
            share,
            per_ns,
            start,
            capacity,
        };
        let at_start = demand.surplus(start);
        // The solution lies between `start` and `start + at_start`.
        if at_start.abs() <= TOLERANCE * start {
            return start;
        }
        let (low, high) = demand.bracket(at_start);
        demand.root(low, high)
    }
}

/// Total demand of all cores, by latency.
struct Demand<'a> {
    domain: &'a Domain,
    /// Lines per ns at the latency `start`.
    lines: f64,
    /// Share of the lines that is read.
    share: f64,
    /// Relative decrease of the lines per ns of latency.
    per_ns: f64,
    start: f64,
    /// Maximum lines per ns of the memory.
    capacity: f64,
}

/// A latency, and the surplus at it.
type Point = (f64, f64);

impl Demand<'_> {
    /// The latency caused by the demand at `latency`, minus `latency`.
    fn surplus(&self, latency: f64) -> f64 {
        let lines = self.lines / (1.0 + self.per_ns * (latency - self.start)).max(1e-9);
        let caused = self.domain.curve.latency(lines / self.capacity, self.share);
        self.domain.idle * caused - latency
    }

    /// Two points on both sides of the solution; `at_start` is the surplus at the start.
    fn bracket(&self, at_start: f64) -> (Point, Point) {
        let start = (self.start, at_start);
        if at_start > 0.0 {
            let mut low = start;
            let mut high = self.start + at_start.min(self.start);
            let mut at_high = self.surplus(high);
            while at_high > 0.0 {
                low = (high, at_high);
                high *= 2.0;
                at_high = self.surplus(high);
            }
            return (low, (high, at_high));
        }
        let low = (self.start + at_start).max(self.domain.idle);
        let at_low = self.surplus(low);
        if at_low < 0.0 {
            // The idle latency is the solution, except for rounding.
            return ((self.domain.idle, 0.0), start);
        }
        ((low, at_low), start)
    }

    /// Regula falsi with the Illinois rule: the value at an end that stays twice is halved.
    fn root(&self, (mut low, mut at_low): Point, (mut high, mut at_high): Point) -> f64 {
        let mut side = 0;
        for _ in 0..60 {
            if at_low == at_high || high - low <= 1e-9 * high {
                break;
            }
            let middle = (low * at_high - high * at_low) / (at_high - at_low);
            let at_middle = self.surplus(middle);
            if at_middle.abs() <= 0.1 * TOLERANCE * middle {
                return middle;
            }
            if at_middle > 0.0 {
                (low, at_low) = (middle, at_middle);
                if side == 1 {
                    at_high *= 0.5;
                }
                side = 1;
            } else {
                (high, at_high) = (middle, at_middle);
                if side == -1 {
                    at_low *= 0.5;
                }
                side = -1;
            }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::LatencyLine;
    use crate::machine::STREAM_LOSS_MOST;

    fn spec() -> MemorySpec {
        let points = vec![(0.1, 1.0), (0.6, 1.1), (0.8, 1.4), (0.9, 2.5), (0.96, 6.6)];
        MemorySpec {
            channels: 1,
            gb_per_s_per_channel: 10.667,
            idle_latency_ns: 76.0,
            remote_ns: 0.0,
            stream_loss: 0.0,
            stream_loss_most: STREAM_LOSS_MOST,
            curve: Arc::new(LatencyCurve {
                lines: vec![LatencyLine { reads: 1.0, points }],
            }),
        }
    }

    /// Demand of a core that spends `core` ns and a latency / `mlp` per line.
    fn asks(core: f64, mlp: f64, latency: f64) -> CoreDemand {
        let time = core + latency / mlp;
        CoreDemand {
            lines: 1.0 / time,
            reads: 1.0 / time,
            yields: 1.0 / time / time / mlp,
            squares: 1.0 / time / time,
        }
    }

    #[test]
    fn the_latency_is_where_asked_and_given_meet() {
        for cores in 1..=12 {
            let mut domain = Domain::new(&spec(), 12);
            for _ in 0..50 {
                for core in 0..cores {
                    domain.ask(core, asks(5.0 + core as f64, 4.0, domain.latency));
                }
                if !domain.settle() {
                    break;
                }
            }
            // The reference, by bisection: the latency at which memory delivers the demand.
            let asked = |latency: f64| {
                (0..cores)
                    .map(|core| asks(5.0 + core as f64, 4.0, latency).lines)
                    .sum::<f64>()
            };
            let (mut low, mut high) = (76.0, 10_000.0);
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                let given = 76.0 * spec().curve.latency(asked(middle) / domain.peak, 1.0);
                if given > middle {
                    low = middle
                } else {
                    high = middle
                }
            }
            // On the steep end of the curve a slightly lower latency means a lot more bandwidth, so the test compares
            // latencies.
            assert!(
                (domain.latency - low).abs() < 2.0 * TOLERANCE * low,
                "{cores}: {} {low}",
                domain.latency
            );
            assert!(asked(domain.latency) < 0.98 * domain.peak);
        }
    }

    #[test]
    fn streams_take_bandwidth_from_each_other() {
        let mut domain = Domain::new(
            &MemorySpec {
                stream_loss: 0.025,
                ..spec()
            },
            8,
        );
        let share = |domain: &Domain| domain.capacity(&domain.all) / domain.peak;
        domain.ask(0, asks(1.0, 4.0, 76.0));
        assert_eq!(share(&domain), 1.0);
        (1..4).for_each(|core| domain.ask(core, asks(1.0, 4.0, 76.0)));
        assert!((share(&domain) - (1.0 - 3.0 * 0.025)).abs() < 1e-12);
        (4..8).for_each(|core| domain.ask(core, asks(1.0, 4.0, 76.0)));
        assert!(
            (share(&domain) - (1.0 - STREAM_LOSS_MOST)).abs() < 1e-12,
            "with many every access finds another row open"
        );
        // A thread with a small demand hardly disturbs; more channels have more banks.
        let mut domain = Domain::new(
            &MemorySpec {
                stream_loss: 0.025,
                ..spec()
            },
            2,
        );
        domain.ask(0, asks(1.0, 4.0, 76.0));
        domain.ask(1, asks(2_000.0, 4.0, 76.0));
        assert!(share(&domain) > 0.999);
        let mut domain = Domain::new(
            &MemorySpec {
                stream_loss: 0.025,
                channels: 3,
                ..spec()
            },
            4,
        );
        (0..4).for_each(|core| domain.ask(core, asks(1.0, 4.0, 76.0)));
        assert!((share(&domain) - (1.0 - 0.025)).abs() < 1e-12);
    }

    #[test]
    fn idle_memory_has_the_idle_latency() {
        let mut domain = Domain::new(&spec(), 1);
        domain.ask(0, asks(1.0, 10.0, 76.0));
        domain.settle();
        assert!(domain.latency > 76.0);
        domain.ask(0, CoreDemand::default());
        domain.settle();
        assert_eq!(domain.latency, 76.0);
    }
}
