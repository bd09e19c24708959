//! Loaded latency: the time of a read while memory is busy.

/// Latency against bandwidth, by the share of reads. Both axes are relative, bandwidth to the peak and latency to the
/// idle latency, so one measured curve serves machines with other channels.
#[derive(Debug, PartialEq)]
pub struct LatencyCurve {
    /// One line for each share of reads, in ascending order of the share.
    pub lines: Vec<LatencyLine>,
}

/// Latency against bandwidth at one share of reads.
#[derive(Debug, PartialEq)]
pub struct LatencyLine {
    /// Share of reads among all lines moved, in (0, 1].
    pub reads: f64,
    /// (bandwidth / peak, latency / idle latency), both ascending; the first latency is 1.
    pub points: Vec<(f64, f64)>,
}

/// Slope beyond the last point, in idle latencies per peak bandwidth. It is steep enough to cap the bandwidth there.
const WALL: f64 = 1_000.0;

impl LatencyCurve {
    /// Latency relative to the idle latency, at least 1. `bandwidth` is the share of the peak in use, `reads` the share
    /// of reads in it. Interpolation is linear between points.
    ///
    /// Lines end at different bandwidths, since writes cost more time of the bus than reads. So between two lines each is
    /// read at the same share of its own end. The end in between follows from the time of the bus per line moved.
    pub fn latency(&self, bandwidth: f64, reads: f64) -> f64 {
        let above = self.lines.partition_point(|line| line.reads < reads);
        match (
            above.checked_sub(1).and_then(|below| self.lines.get(below)),
            self.lines.get(above),
        ) {
            (Some(low), Some(high)) => {
                let part = (reads - low.reads) / (high.reads - low.reads);
                let share = bandwidth * ((1.0 - part) / low.end() + part / high.end());
                let (a, b) = (
                    low.latency(share * low.end()),
                    high.latency(share * high.end()),
                );
                a + (b - a) * part
            }
            (Some(line), None) | (None, Some(line)) => line.latency(bandwidth),
            (None, None) => 1.0,
        }
    }
}

impl LatencyLine {
    /// The bandwidth of its last point.
    fn end(&self) -> f64 {
        self.points.last().map_or(1.0, |point| point.0)
    }

    /// Latency relative to the idle latency.
    fn latency(&self, bandwidth: f64) -> f64 {
        // There are few points, so a scan is faster than a binary search.
        let above = self.points.iter().filter(|&&(x, _)| x < bandwidth).count();
        match (
            above
                .checked_sub(1)
                .and_then(|below| self.points.get(below)),
            self.points.get(above),
        ) {
            (Some(&(x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * ((bandwidth - x0) / (x1 - x0)),
            (Some(&(x, y)), None) => y + (bandwidth - x) * WALL,
            (None, Some(&(_, y))) => y,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_between_points_and_lines_and_a_wall_at_the_end() {
        let line = |reads, top| LatencyLine {
            reads,
            points: vec![(0.1, 1.0), (0.5, top), (0.9, 2.0 * top)],
        };
        let curve = LatencyCurve {
            lines: vec![line(0.5, 2.0), line(1.0, 1.5)],
        };
        assert_eq!(curve.latency(0.0, 0.5), 1.0);
        assert_eq!(curve.latency(0.3, 0.5), 1.5);
        assert_eq!(curve.latency(0.3, 0.2), 1.5);
        assert_eq!(curve.latency(0.5, 0.75), 1.75);
        assert_eq!(curve.latency(0.9, 1.0), 3.0);
        assert!(curve.latency(0.91, 1.0) > 12.0);
    }
}
