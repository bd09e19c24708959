use super::*;
use crate::model::samples::{cases, demand};
use proptest::prelude::*;

/// The oracle: the dense multivariate Newton of the paper on Eq. 10, started at `u = b / n`, with Gaussian elimination.
/// `None` when it leaves the domain.
fn dense_newton(solo: &[f64]) -> Option<Vec<f64>> {
    let n = solo.len();
    let mut u: Vec<f64> = solo.iter().map(|b| b / n as f64).collect();
    for _ in 0..200 {
        let free = 1.0 - u.iter().sum::<f64>();
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let k = 1.0 - 1.0 / solo[i];
                // The i-th equation is k u_i^2 + k u_i D + D = 0, and D depends on every u.
                let by_free = k * u[i] + 1.0;
                let mut row = vec![-by_free; n + 1];
                row[i] += k * (2.0 * u[i] + free);
                row[n] = -(k * u[i] * u[i] + k * u[i] * free + free);
                row
            })
            .collect();
        for i in 0..n {
            let pivot = (i..n).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs()))?;
            rows.swap(i, pivot);
            let (upper, lower) = rows.split_at_mut(i + 1);
            for row in lower {
                let factor = row[i] / upper[i][i];
                for (a, b) in row[i..].iter_mut().zip(&upper[i][i..]) {
                    *a -= factor * b;
                }
            }
        }
        let mut step = vec![0.0; n];
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| rows[i][j] * step[j]).sum();
            step[i] = (rows[i][n] - known) / rows[i][i];
        }
        u.iter_mut().zip(&step).for_each(|(u, s)| *u += s);
        if step.iter().zip(&u).all(|(s, u)| s.abs() <= 1e-14 * u.abs()) {
            return u
                .iter()
                .zip(solo)
                .all(|(u, b)| (0.0..=*b * (1.0 + 1e-9)).contains(u))
                .then_some(u);
        }
    }
    None
}

fn utilisation(b: f64, root: f64) -> f64 {
    b * speed(b, root)
}

/// Distance of `D` from the solution, relative to `D`: excess over slope, summed without loss of digits.
fn relative_residual(solo: &[f64], d: f64) -> f64 {
    let (mut excess, mut lost, mut slope) = (d * d - 1.0, 0.0, 2.0 * d);
    for &b in solo {
        let q = 1.0 - b;
        let r = (q * (q * d * d + 4.0 * b)).sqrt();
        let u = 2.0 * b * d / (q * d + r);
        slope += 8.0 * q * b * b / (r * (q * d + r) * (q * d + r));
        let sum = excess + u;
        lost += if excess.abs() >= u {
            (excess - sum) + u
        } else {
            (u - sum) + excess
        };
        excess = sum;
    }
    // dD / D = 2 dd / d.
    2.0 * ((excess + lost) / slope).abs() / d
}

#[test]
fn agrees_with_the_dense_newton_method() {
    let sets: [&[f64]; 8] = [
        &[0.57, 0.3, 0.8],
        &[0.5, 0.5],
        &[0.1; 4],
        &[0.999; 4],
        &[0.01, 0.99],
        &[1e-6, 0.4, 0.9999],
        &[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        &[0.9; 16],
    ];
    for solo in sets {
        let oracle = dense_newton(solo).expect("the oracle converges from b / n");
        let root = root_of_free_share(solo);
        for (u, &b) in oracle.iter().zip(solo) {
            let ours = utilisation(b, root);
            assert!(
                (ours - u).abs() <= 1e-9 * u,
                "{solo:?}: {ours}, expected {u}"
            );
        }
    }
}

#[test]
fn equal_tasks_have_a_closed_form() {
    // n u = 1 - D in Eq. 10: u = 2 / (c + n + sqrt((c + n)^2 - 4 c (n - 1))).
    for n in [2_usize, 4, 64, 512, 4096] {
        for b in [
            1e-150,
            1e-9,
            1e-3,
            0.1,
            0.5,
            0.9,
            0.999,
            1.0 - 1e-9,
            1.0 - f64::EPSILON / 2.0,
        ] {
            let (c, m) = ((1.0 - b) / b, n as f64);
            let root = (((c + m) / 2.0).powi(2) - c * (m - 1.0)).sqrt();
            let u = 1.0 / ((c + m) / 2.0 + root);
            let root = root_of_free_share(&vec![b; n]);
            let ours = utilisation(b, root);
            assert!(
                (ours - u).abs() <= 1e-9 * u,
                "{n} of {b}: {ours}, expected {u}"
            );
        }
    }
}

#[test]
fn limits() {
    let check = |solo: &[f64], expected: f64| {
        assert_eq!(throughput(solo).unwrap(), expected, "{solo:?}");
    };
    check(&[], 0.0);
    check(&[0.0], 1.0);
    check(&[1.0], 1.0);
    check(&[1.0; 4], 1.0);
    check(&[1.0, 0.0, 1.0], 2.0);
    // Beside a task that always uses the bus, any task that needs it waits for ever.
    check(&[1.0, 1e-300, 1.0 - 1e-16], 1.0);
    for solo in [&[0.75][..], &[0.75, 0.0, 0.0]] {
        let error = throughput(solo).unwrap() - solo.len() as f64;
        assert!(error.abs() < 1e-12, "{solo:?}: {error}");
    }
}

#[test]
fn demands_just_below_one_share_unequally() {
    // Close to saturation u_i is proportional to 1 / sqrt(1 - b_i): 1e-3 to 1e-6.
    let root = root_of_free_share(&[1.0 - 1e-6, 1.0 - 1e-12]);
    assert!((utilisation(1.0 - 1e-6, root) - 0.001).abs() < 2e-6);
    assert!((utilisation(1.0 - 1e-12, root) - 0.999).abs() < 2e-6);
    assert!((root * root / 1e-12 - 0.998).abs() < 1e-3);
    // A free share keeps its digits even where it is far below the last digit of the total.
    let root = root_of_free_share(&[1.0 - f64::EPSILON; 100]);
    assert!((root * root / (f64::EPSILON * 1e-4) - 1.0).abs() < 1e-9);
}

#[test]
fn the_smallest_demands_keep_their_speed() {
    let solo = [f64::from_bits(1), 1e-300, f64::MIN_POSITIVE];
    assert_eq!(throughput(&solo).unwrap(), 3.0);
    let root = root_of_free_share(&solo);
    assert!(solo.iter().all(|&b| utilisation(b, root) > 0.0));
}

#[test]
fn bad_input_is_refused() {
    for bad in [
        -1e-300,
        1.0 + f64::EPSILON,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let refused = |result: Result<(), ModelError>| {
            assert!(
                matches!(result, Err(ModelError::OutOfRange { .. })),
                "{bad}: {result:?}"
            );
        };
        refused(throughput(&[0.5, bad]).map(drop));
        refused(solo_utilisation(bad, 0.5).map(drop));
        refused(solo_utilisation(0.5, bad).map(drop));
    }
    let message = throughput(&[0.5, -2.0]).unwrap_err().to_string();
    assert_eq!(
        message,
        "solo utilisation is -2, expected a number from 0 to 1"
    );
}

#[test]
fn thousands_of_tasks_of_any_mixture_are_solved() {
    let values = [
        0.0,
        1e-300,
        1e-12,
        1e-4,
        0.03,
        0.5,
        0.97,
        1.0 - 1e-6,
        1.0 - 1e-12,
        1.0 - f64::EPSILON / 2.0,
    ];
    for first in 0..values.len() {
        for last in first..values.len() {
            let solo: Vec<f64> = (0..4096)
                .map(|i| values[first + i % (last - first + 1)])
                .collect();
            let root = root_of_free_share(&solo);
            assert!(root > 0.0);
            let residual = relative_residual(&solo, root);
            assert!(residual < 1e-9, "{first} to {last}: {residual}");
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_free_share_solves_the_equation(solo in prop::collection::vec(demand(60, 52), 2..200)) {
        let root = root_of_free_share(&solo);
        prop_assert!(relative_residual(&solo, root) < 1e-9);
    }

    #[test]
    fn agrees_with_the_dense_newton_method_on_mixtures(solo in prop::collection::vec(0.001..0.999, 2..12)) {
        // If the oracle leaves the domain there is no reference. No known case does so.
        let oracle = dense_newton(&solo);
        prop_assert!(oracle.is_some());
        let root = root_of_free_share(&solo);
        for (u, &b) in oracle.unwrap().iter().zip(&solo) {
            prop_assert!((utilisation(b, root) - u).abs() <= 1e-9 * u);
        }
    }

    /// The equation from which the paper derives Eqs. 9 and 10: a task's solo time, with its use of the bus stretched by
    /// the share of time that the others leave.
    #[test]
    fn each_task_uses_what_the_others_leave(solo in prop::collection::vec(0.001..0.999, 1..12)) {
        let root = root_of_free_share(&solo);
        let used: Vec<f64> = solo.iter().map(|&b| utilisation(b, root)).collect();
        let total: f64 = used.iter().sum();
        for (&b, &u) in solo.iter().zip(&used) {
            let left = 1.0 - (total - u);
            prop_assert!((u - b / (b / left + 1.0 - b)).abs() < 1e-9 * u, "{} of {}", u, b);
        }
    }

    #[test]
    fn inversion_after_prediction_gives_the_demands_back(solo in prop::collection::vec(demand(40, 40), 1..100)) {
        let root = root_of_free_share(&solo);
        for &b in &solo {
            let back = solo_utilisation(utilisation(b, root), root * root).unwrap();
            prop_assert!((back - b).abs() <= 1e-9 * b, "{} became {}", b, back);
        }
    }

    #[test]
    fn throughput_falls_as_any_demand_grows(
        solo in prop::collection::vec(demand(20, 20), 1..30), which in 0_usize..30, more in demand(20, 20),
    ) {
        let which = which % solo.len();
        let mut grown = solo.clone();
        grown[which] = grown[which].max(more);
        let (before, after) = (throughput(&solo).unwrap(), throughput(&grown).unwrap());
        prop_assert!(after <= before * (1.0 + 1e-10), "{} became {}", before, after);
    }

    #[test]
    fn speeds_and_sums_stay_in_range(solo in prop::collection::vec(demand(1000, 52), 0..50)) {
        let root = root_of_free_share(&solo);
        let n = solo.len() as f64;
        prop_assert!(solo.iter().all(|&b| (0.0..=1.0).contains(&speed(b, root))));
        let total: f64 = solo.iter().map(|&b| utilisation(b, root)).sum();
        prop_assert!((total + root * root - 1.0).abs() < 1e-9);
        let throughput = throughput(&solo).unwrap();
        prop_assert!(throughput <= n && throughput >= n.min(1.0) - 1e-9);
    }

    #[test]
    fn one_more_task_slows_everyone_down(solo in prop::collection::vec(demand(20, 20), 1..30), b in demand(20, 20)) {
        let before = root_of_free_share(&solo);
        let with: Vec<f64> = solo.iter().copied().chain([b]).collect();
        let after = root_of_free_share(&with);
        for &b in &solo {
            prop_assert!(speed(b, after) <= speed(b, before) * (1.0 + 1e-10));
        }
    }
}
