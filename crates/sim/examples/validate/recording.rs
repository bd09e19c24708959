//! Recorded runs of programs: what was counted, as it grew.

/// What was counted of a program up to some instant, over all its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedCounts {
    pub(crate) instructions: f64,
    pub(crate) cycles: f64,
    /// Misses of the private second-level caches.
    pub(crate) llc_accesses: f64,
    /// Misses of the shared third-level cache. `local_memory_mb` of the data has writes in it too.
    pub(crate) reads: f64,
}

impl RecordedCounts {
    /// Each count by a function of the two.
    fn with(self, other: RecordedCounts, of: impl Fn(f64, f64) -> f64) -> RecordedCounts {
        RecordedCounts {
            instructions: of(self.instructions, other.instructions),
            cycles: of(self.cycles, other.cycles),
            llc_accesses: of(self.llc_accesses, other.llc_accesses),
            reads: of(self.reads, other.reads),
        }
    }

    pub(crate) fn plus(self, other: RecordedCounts) -> RecordedCounts {
        self.with(other, |x, y| x + y)
    }

    pub(crate) fn minus(self, other: RecordedCounts) -> RecordedCounts {
        self.with(other, |x, y| x - y)
    }
}

/// A recorded run of one program. Between two points its counts grow evenly.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    /// Seconds from the start, and the counts until then. The first point is the start.
    points: Vec<(f64, RecordedCounts)>,
}

impl Recording {
    pub(crate) fn new() -> Recording {
        Recording {
            points: vec![(0.0, RecordedCounts::default())],
        }
    }

    pub(crate) fn add(&mut self, interval_s: f64, counted: RecordedCounts) {
        let (last_s, last) = self.end();
        self.points.push((last_s + interval_s, last.plus(counted)));
    }

    fn end(&self) -> (f64, RecordedCounts) {
        self.points[self.points.len() - 1]
    }

    pub(crate) fn length_s(&self) -> f64 {
        self.end().0
    }

    pub(crate) fn total(&self) -> RecordedCounts {
        self.end().1
    }

    pub(crate) fn points(&self) -> &[(f64, RecordedCounts)] {
        &self.points
    }

    /// The counts after so many seconds.
    pub(crate) fn at(&self, time_s: f64) -> RecordedCounts {
        let next = self.points.partition_point(|point| point.0 <= time_s);
        if next == self.points.len() {
            return self.total();
        }
        let ((from_s, from), (to_s, to)) = (self.points[next - 1], self.points[next]);
        let part = (time_s - from_s) / (to_s - from_s);
        from.with(to, |x, y| x + part * (y - x))
    }

    /// The seconds after which this share of all instructions was done.
    pub(crate) fn time_of_share(&self, share: f64) -> f64 {
        let wanted = share * self.total().instructions;
        let is_before = |point: &(f64, RecordedCounts)| point.1.instructions <= wanted;
        let next = self.points.partition_point(is_before);
        if next == self.points.len() {
            return self.length_s();
        }
        let ((from_s, from), (to_s, to)) = (self.points[next - 1], self.points[next]);
        let part = (wanted - from.instructions) / (to.instructions - from.instructions);
        from_s + part * (to_s - from_s)
    }
}
