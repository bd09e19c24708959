//! Least squares with two unknowns: a and b of y = a x + b z.

/// Weighted sums of products of rows (x, z, y).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WeightedSums {
    xx: f64,
    xz: f64,
    zz: f64,
    xy: f64,
    zy: f64,
    weight: f64,
}

/// A determinant below this fraction of the product of the diagonal is a rounding error.
const LEAST_DETERMINANT: f64 = 1e-12;

/// The unknowns, and the inverse of the matrix of the normal equations: their variances in units of a row's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Solution {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) inverse: [f64; 3],
}

impl WeightedSums {
    pub(super) fn add(&mut self, [x, z, y]: [f64; 3], weight: f64) {
        self.xx += weight * x * x;
        self.xz += weight * x * z;
        self.zz += weight * z * z;
        self.xy += weight * x * y;
        self.zy += weight * z * y;
        self.weight += weight;
    }

    /// Scales the weight of all rows down to `most`, if it is greater.
    pub(super) fn fade(&mut self, most: f64) {
        if self.weight > most {
            self.scale(most / self.weight);
        }
    }

    /// Scales the weight of all rows.
    pub(super) fn scale(&mut self, factor: f64) {
        for sum in [
            &mut self.xx,
            &mut self.xz,
            &mut self.zz,
            &mut self.xy,
            &mut self.zy,
        ] {
            *sum *= factor;
        }
        self.weight *= factor;
    }

    /// Adds the rows of `other`; if there are rows already, at most with this part of their weight.
    pub(super) fn join(mut self, mut other: WeightedSums, part: f64) -> WeightedSums {
        if self.weight > 0.0 {
            other.fade(part * self.weight);
        }
        self.xx += other.xx;
        self.xz += other.xz;
        self.zz += other.zz;
        self.xy += other.xy;
        self.zy += other.zy;
        self.weight += other.weight;
        self
    }

    /// Adds prior knowledge: the standard errors of a and b around a value, in units of a row's error.
    pub(super) fn assume(mut self, a: Option<(f64, f64)>, b: (f64, f64)) -> WeightedSums {
        let precision = |error: f64| 1.0 / (error * error).max(LEAST_DETERMINANT);
        if let Some((a, error)) = a {
            self.xx += precision(error);
            self.xy += precision(error) * a;
        }
        self.zz += precision(b.1);
        self.zy += precision(b.1) * b.0;
        self
    }

    /// The solution with figures of at least `least`; `None` if the rows do not determine it.
    pub(super) fn solve(&self, least: [f64; 2]) -> Option<Solution> {
        let det = self.xx * self.zz - self.xz * self.xz;
        if det.is_nan() || det <= LEAST_DETERMINANT * self.xx * self.zz {
            return None;
        }
        let free = (self.xx * self.zy - self.xz * self.xy) / det;
        let mut b = free.max(least[1]);
        let mut a = (self.xy - b * self.xz) / self.xx;
        if a < least[0] {
            a = least[0];
            b = ((self.zy - a * self.xz) / self.zz).max(least[1]);
        }
        Some(Solution {
            a,
            b,
            inverse: [self.zz / det, -self.xz / det, self.xx / det],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [f64; 2] = [f64::NEG_INFINITY; 2];

    fn line(level: f64, slope: f64, weight: f64) -> WeightedSums {
        let mut sums = WeightedSums::default();
        for x in 0..10 {
            let x = f64::from(x);
            sums.add([1.0, x, level + slope * x], weight);
        }
        sums
    }

    fn check(sums: WeightedSums, least: [f64; 2], a: f64, b: f64) {
        let found = sums.solve(least).unwrap();
        let off = (found.a - a).abs().max((found.b - b).abs());
        assert!(off < 1e-6, "{found:?}");
    }

    #[test]
    fn a_line_is_found_within_bounds_and_near_what_is_assumed() {
        check(line(2.0, 3.0, 1.0), ALL, 2.0, 3.0);
        // The best level for a slope of 4, and the best slope for a level of 5.
        check(line(2.0, 3.0, 1.0), [f64::NEG_INFINITY, 4.0], -2.5, 4.0);
        check(line(2.0, 3.0, 1.0), [5.0, 0.0], 5.0, 3.0 - 135.0 / 285.0);
        // One point does not determine two figures, but one of them may be known.
        let mut one = WeightedSums::default();
        one.add([1.0, 2.0, 3.0], 1.0);
        assert_eq!(one.solve(ALL), None);
        check(one.assume(None, (1.0, 1e-6)), ALL, 1.0, 1.0);
        let nothing = WeightedSums::default();
        check(nothing.assume(Some((4.0, 1.0)), (5.0, 2.0)), ALL, 4.0, 5.0);
    }

    #[test]
    fn rows_that_are_joined_count_for_a_part() {
        let both = line(1.0, 0.0, 1.0).join(line(9.0, 0.0, 100.0), 0.25);
        assert!((both.weight - 12.5).abs() < 1e-9);
        assert!((both.solve(ALL).unwrap().a - (1.0 + 8.0 * 0.2)).abs() < 1e-9);
        let alone = WeightedSums::default().join(line(1.0, 0.0, 5.0), 0.25);
        assert_eq!(alone.weight, 50.0);
    }
}
