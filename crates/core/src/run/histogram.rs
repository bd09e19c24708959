//! A histogram of the loop's own processing times, in constant memory.

/// A histogram of nanoseconds with buckets of at most 1/32 relative width.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

const SUB_BITS: u32 = 5;

fn bucket(ns: u64) -> usize {
    let bits = 64 - ns.leading_zeros();
    if bits <= SUB_BITS {
        return ns as usize;
    }
    let shift = bits - SUB_BITS - 1;
    (((shift + 1) << SUB_BITS) as u64 + ((ns >> shift) - (1 << SUB_BITS))) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let (group, sub) = (
        (bucket as u64) >> SUB_BITS,
        (bucket as u64) & ((1 << SUB_BITS) - 1),
    );
    if group == 0 {
        return sub;
    }
    let width = 1u64 << (group - 1);
    ((1 << SUB_BITS) + sub) * width + (width - 1)
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: vec![0; bucket(u64::MAX >> 16) + 1],
            count: 0,
        }
    }
}

impl Histogram {
    /// Adds a time in nanoseconds.
    pub fn add(&mut self, ns: u64) {
        let last = self.buckets.len() - 1;
        self.buckets[bucket(ns).min(last)] += 1;
        self.count += 1;
    }

    /// Number of times added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The `q`-quantile in nanoseconds, accurate to 1/32; `None` if no time was added.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((self.count as f64 * q) as u64).min(self.count - 1);
        let mut seen = 0;
        for (ix, &n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen > rank {
                return Some(upper_end(ix));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut ns = 1u64;
        while ns < 1 << 47 {
            for near in [ns - 1, ns, ns + 1, ns + ns / 3] {
                let end = upper_end(bucket(near));
                assert!(end >= near && end - near <= near / 32 + 1, "{near} {end}");
            }
            ns *= 2;
        }
    }

    #[test]
    fn quantiles() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile_ns(0.5), None);
        for ns in 1..=100 {
            h.add(ns * 1_000);
        }
        h.add(u64::MAX);
        let median = h.quantile_ns(0.5).unwrap();
        assert!((50_000..53_000).contains(&median), "{median}");
        assert!(h.quantile_ns(1.0).unwrap() > 1 << 40);
    }
}
