//! The traffic of each memory domain, by which the kernel measures demands (EFS, Eqs. 18 and 19).
//!
//! On most processors only reads are counted on each CPU. The memory controllers count reads and writes, but for the whole
//! memory domain. Eq. 19 shares out the writes as the reads are: each counted read stands for more than a line. This factor is
//! that of the last quantum.

use crate::intf::{DOMAINS, Image, traffic};
use cosched_core::{Nanos, Rate, Reading, Traffic, TrafficRates};

/// Units of a nanosecond in which the kernel has the time of a line.
const LINE_UNITS: f64 = (1_u64 << 20) as f64;
/// Units of a bus in which it has what others use.
const SHARE_UNITS: f64 = 4096.0;
/// Greatest number of lines for a counted one. More are written where next to nothing is read: by devices, for example.
const MOST_LINES: f64 = 16.0;
/// A shorter time says too little.
const SHORTEST: Nanos = Nanos::from_ms(10);

/// The use of one memory domain's bus.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bus {
    /// Lines moved for a job for each one counted: at least 1.
    lines: f64,
    /// Lines moved for others than jobs, per microsecond (Eq. 18).
    others: f64,
}

impl Bus {
    /// Where the traffic is not counted, each counted line is one line, and others move nothing.
    const UNKNOWN: Bus = Bus {
        lines: 1.0,
        others: 0.0,
    };

    /// From the traffic of the domain, and the lines counted for jobs there. `has_writes`: those include written lines.
    fn of(rates: &TrafficRates, counted: Rate, has_writes: bool) -> Option<Bus> {
        let all = rates.lines_of_each().value()?.per_us();
        let reads = match counted {
            Rate(0) => rates.reads.value()?,
            counted => counted,
        };
        let lines = match rates.writes_of(reads) {
            Reading::Value(writes) if reads > Rate(0) && !has_writes => {
                1.0 + writes.per_us() / reads.per_us()
            }
            _ => 1.0,
        };
        let lines = lines.min(MOST_LINES);
        Some(Bus {
            lines,
            others: (all - lines * counted.per_us()).max(0.0),
        })
    }
}

/// What all memory domains have moved up to an instant.
struct Moved {
    at: Nanos,
    traffic: Vec<Traffic>,
    /// Lines counted for jobs in each domain.
    counted: Vec<u64>,
}

/// The buses of all memory domains.
pub(crate) struct Buses {
    /// Lines that a bus moves in a microsecond, above 0.
    lines_per_us: f64,
    /// Written lines are counted on each CPU as well.
    has_writes: bool,
    last: Option<Moved>,
}

impl Buses {
    pub(crate) fn new(lines_per_us: f64, has_writes: bool) -> Buses {
        Buses {
            lines_per_us,
            has_writes,
            last: None,
        }
    }

    /// The kernel's input before any traffic is known.
    pub(crate) fn unknown(&self) -> Image {
        self.image(&[Bus::UNKNOWN; DOMAINS])
    }

    /// The kernel's input after the traffic of each domain was read, with the lines counted for jobs; both since the start
    /// of the run. `None` if the last reading is too recent.
    pub(crate) fn after(
        &mut self,
        at: Nanos,
        traffic: &[Traffic],
        counted: Vec<u64>,
    ) -> Option<Image> {
        let before = self.last.as_ref();
        if before.is_some_and(|before| at - before.at < SHORTEST) {
            return None;
        }
        let now = Moved {
            at,
            traffic: traffic.to_vec(),
            counted,
        };
        let image = before.map(|before| self.image(&self.between(before, &now)));
        self.last = Some(now);
        image
    }

    fn between(&self, before: &Moved, now: &Moved) -> [Bus; DOMAINS] {
        let length = now.at - before.at;
        std::array::from_fn(|domain| {
            let rates = TrafficRates::between(&before.traffic, &now.traffic, &[domain], length);
            let lines = now.counted[domain].saturating_sub(before.counted[domain]);
            let counted = Rate::from_count(lines, length);
            counted
                .and_then(|counted| Bus::of(&rates, counted, self.has_writes))
                .unwrap_or(Bus::UNKNOWN)
        })
    }

    fn image(&self, buses: &[Bus; DOMAINS]) -> Image {
        let mut image = Image::new(traffic::SIZE);
        for (domain, bus) in buses.iter().enumerate() {
            let time = 1e3 / self.lines_per_us * bus.lines * LINE_UNITS;
            let others = (bus.others / self.lines_per_us).min(1.0) * SHARE_UNITS;
            image.put_u64(
                traffic::LINE_TIME + 8 * domain,
                (time.round() as u64).max(1),
            );
            image.put_u32(traffic::OTHERS + 4 * domain, others.round() as u32);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Absence;

    fn moved(reads: u64, writes: u64) -> Traffic {
        Traffic {
            reads: Reading::Value(reads),
            writes: Reading::Value(writes),
        }
    }

    /// Time of a counted line (ns) and the share of the bus that others use, after 100 ms in which the first domain moved
    /// `traffic` and `counted` lines were counted in it. A bus moves 100 lines in a microsecond, so 10 million lines fill it.
    fn first_bus(traffic: Traffic, counted: u64, has_writes: bool) -> (f64, f64) {
        let mut buses = Buses::new(100.0, has_writes);
        let lines = |lines| {
            let mut all = vec![0; DOMAINS];
            all[0] = lines;
            all
        };
        let start = Nanos::from_ms(7);
        assert_eq!(buses.after(start, &[moved(0, 0)], lines(0)), None);
        let soon = start + Nanos::from_ms(5);
        assert_eq!(buses.after(soon, &[moved(0, 0)], lines(0)), None);
        let image = buses.after(start + Nanos::from_ms(100), &[traffic], lines(counted));
        let image = image.unwrap();
        let unknown = buses.unknown();
        for other in 1..DOMAINS {
            let at = traffic::LINE_TIME + 8 * other;
            assert_eq!(image.u64(at), unknown.u64(at));
        }
        (
            image.u64(traffic::LINE_TIME) as f64 / LINE_UNITS,
            f64::from(image.u32(traffic::OTHERS)) / SHARE_UNITS,
        )
    }

    fn check(got: (f64, f64), line_time: f64, others: f64) {
        let is_near = (got.0 - line_time).abs() < 1e-3 && (got.1 - others).abs() < 1e-3;
        assert!(is_near, "{got:?}, not {line_time} ns and {others}");
    }

    #[test]
    fn writes_are_shared_out_as_reads_are() {
        // Eq. 19: accesses_p / (accesses_p - writes_p) = 8 / 6 lines for a read. Jobs read all.
        let all = moved(6_000_000, 2_000_000);
        check(first_bus(all, 6_000_000, false), 10.0 * 8.0 / 6.0, 0.0);
        // Others read a third, so a third of the writes are theirs, and a third of what is used (Eq. 18).
        check(
            first_bus(all, 4_000_000, false),
            10.0 * 8.0 / 6.0,
            0.8 / 3.0,
        );
        // No job has run yet: what it will read has the same part of the writes.
        check(first_bus(all, 0, false), 10.0 * 8.0 / 6.0, 0.8);
        // Jobs read in other domains as well: at most all writes are theirs.
        check(first_bus(all, 10_000_000, false), 12.0, 0.0);
        // Their own writes are counted.
        check(first_bus(all, 7_000_000, true), 10.0, 0.1);
    }

    #[test]
    fn each_job_uses_what_the_model_gives_it() {
        // The plain definition, as the policy has it in user space.
        let rates = TrafficRates {
            reads: Reading::Value(Rate(90_000)),
            writes: Reading::Value(Rate(41_000)),
            domains: 1,
        };
        let reads = [50_000, 30_000, 1_000].map(Rate);
        let counted = Rate(reads.iter().map(|reads| reads.0).sum());
        let bus = Bus::of(&rates, counted, false).unwrap();
        let mut own = 0.0;
        for reads in reads {
            let lines = bus.lines * reads.per_us();
            let defined = reads.per_us() + rates.writes_of(reads).value().unwrap().per_us();
            assert!((lines - defined).abs() < 1e-2, "{lines}, not {defined}");
            own += lines;
        }
        let all = rates.lines_of_each().value().unwrap().per_us();
        assert!((own + bus.others - all).abs() < 1e-9);
    }

    #[test]
    fn without_traffic_a_counted_line_is_one_line() {
        let none = Traffic::absent(Absence::NoPermission);
        check(first_bus(none, 5_000_000, false), 10.0, 0.0);
        let half = Traffic {
            writes: Reading::Absent(Absence::CountersLost),
            ..moved(5, 5)
        };
        check(first_bus(half, 5_000_000, false), 10.0, 0.0);
        // Writes of devices, where nobody reads, are nobody's.
        check(first_bus(moved(0, 3_000_000), 0, false), 10.0, 0.3);
        check(first_bus(moved(0, 0), 0, false), 10.0, 0.0);
    }

    #[test]
    fn the_factor_and_the_share_have_bounds() {
        let written = moved(10_000, 50_000_000);
        check(first_bus(written, 10_000, false), 10.0 * MOST_LINES, 1.0);
    }
}
