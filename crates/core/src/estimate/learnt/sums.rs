//! Weighted sums of products for linear least squares.

/// Sums of products of `N` figures; the last one is the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums<const N: usize> {
    sums: [[f64; N]; N],
    weight: f64,
}

impl<const N: usize> Default for Sums<N> {
    fn default() -> Sums<N> {
        Sums {
            sums: [[0.0; N]; N],
            weight: 0.0,
        }
    }
}

impl<const N: usize> Sums<N> {
    /// Adds a row. Earlier rows decay, so that the total weight never exceeds `most`.
    pub(super) fn add(&mut self, row: [f64; N], weight: f64, most: f64) {
        self.scale(1.0 - (weight / most).min(1.0));
        self.weight += weight;
        for (i, sums) in self.sums.iter_mut().enumerate() {
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum += weight * row[i] * row[j];
            }
        }
    }

    /// Total weight of all rows.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// Scales the weight of all rows.
    pub(super) fn scale(&mut self, factor: f64) {
        self.weight *= factor;
        self.sums
            .iter_mut()
            .flatten()
            .for_each(|sum| *sum *= factor);
    }

    /// The sum of the products of two figures.
    pub(super) fn of(&self, i: usize, j: usize) -> f64 {
        self.sums[i][j]
    }

    /// Adds the rows of `other`; if there are rows already, the weight of `other` is capped at `ratio` x theirs.
    pub(super) fn join(mut self, mut other: Sums<N>, ratio: f64) -> Sums<N> {
        if self.weight > 0.0 && other.weight > ratio * self.weight {
            other.scale(ratio * self.weight / other.weight);
        }
        self.weight += other.weight;
        for (mine, others) in self
            .sums
            .iter_mut()
            .flatten()
            .zip(other.sums.iter().flatten())
        {
            *mine += others;
        }
        self
    }
}

/// The solution of a symmetric, positive definite system of two equations, and the inverse of its matrix.
pub(super) fn solve_two(a: [[f64; 2]; 2], b: [f64; 2]) -> Option<([f64; 2], [[f64; 2]; 2])> {
    let det = a[0][0] * a[1][1] - a[0][1] * a[1][0];
    if det.is_nan() || det <= LEAST_DETERMINANT * a[0][0] * a[1][1] {
        return None;
    }
    let inverse = [
        [a[1][1] / det, -a[0][1] / det],
        [-a[1][0] / det, a[0][0] / det],
    ];
    Some((
        std::array::from_fn(|i| inverse[i][0] * b[0] + inverse[i][1] * b[1]),
        inverse,
    ))
}

/// A determinant below this fraction of the product of the diagonal is a rounding error.
const LEAST_DETERMINANT: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_old_rows_fade() {
        let mut sums = Sums::<3>::default();
        for x in 0..10 {
            sums.add([1.0, f64::from(x), 2.0 + 3.0 * f64::from(x)], 1.0, 100.0);
        }
        let fit = |sums: &Sums<3>| {
            let a = [
                [sums.of(0, 0), sums.of(0, 1)],
                [sums.of(1, 0), sums.of(1, 1)],
            ];
            solve_two(a, [sums.of(0, 2), sums.of(1, 2)]).map(|(found, _)| found)
        };
        let [level, slope] = fit(&sums).unwrap();
        assert!((level - 2.0).abs() < 1e-9 && (slope - 3.0).abs() < 1e-9);
        for _ in 0..40 {
            for x in 0..10 {
                sums.add([1.0, f64::from(x), 5.0 - f64::from(x)], 1.0, 20.0);
            }
        }
        let [level, slope] = fit(&sums).unwrap();
        assert!(
            (level - 5.0).abs() < 1e-3 && (slope + 1.0).abs() < 1e-3,
            "{level} {slope}"
        );
        assert!(sums.weight() <= 20.0);
        // One point does not determine two figures.
        let mut one = Sums::<3>::default();
        one.add([1.0, 2.0, 3.0], 1.0, 9.0);
        assert_eq!(fit(&one), None);
    }

    #[test]
    fn rows_that_are_joined_count_for_a_part() {
        let (mut few, mut many) = (Sums::<2>::default(), Sums::<2>::default());
        few.add([1.0, 1.0], 2.0, 100.0);
        (0..50).for_each(|_| many.add([1.0, 9.0], 1.0, 100.0));
        let both = few.join(many, 0.25);
        assert!(
            (both.weight() - 2.5).abs() < 1e-9 && (both.of(0, 1) - (2.0 + 0.5 * 9.0)).abs() < 1e-9
        );
        assert_eq!(Sums::default().join(many, 0.25).weight(), many.weight());
    }
}
