//! Contention on the memory bus (EFS, Eqs. 1-12): how much co-running tasks slow each other down.
//!
//! | symbol | here | meaning | range |
//! | --- | --- | --- | --- |
//! | `b_i` | solo utilisation, demand | share of its solo time that task `i` keeps the bus busy (Eq. 2) | 0 to 1 |
//! | `u_i` | utilisation | the same share when others run beside it (Eq. 4) | 0 to `b_i` |
//! | `U` | total | sum of all `u_i` (Eq. 5) | 0 to 1 |
//! | `D` | free share | `1 - U`, the share of time in which the bus is idle | 0 to 1 |
//! | `s_i` | speed | `u_i / b_i`, progress relative to running alone (Eq. 11) | 0 to 1 |
//! | `T` | throughput | sum of all `s_i`, in tasks' worth of solo progress (Eq. 12) | at least 1 |
//!
//! All of them are ratios without a unit.
//!
//! # How the equations are solved
//! Eq. 10 is, for each task, a quadratic in `u_i` once `D` is known. With `d = sqrt(D)` and `q = 1 - b` its positive
//! root, divided by `b`, is the speed
//!
//! ```text
//! s(d) = 2 d / (q d + sqrt(q^2 d^2 + 4 q b))
//! ```
//!
//! which has no cancellation and no overflow for any demand, and the right limit at `b = 0`. Every `u_i = b_i s_i`
//! rises with `d`, so `d` is the only root of one equation, `sum u_i(d) + d^2 = 1`. It is solved in `d` and not in `U`,
//! because near saturation `1 - U` has no digits left while `d` keeps them all.

use super::error::{ModelError, check_share};

/// `T`, the throughput of a set of tasks (EFS, Eq. 12), in tasks' worth of solo progress.
///
/// Any `n` tasks have a throughput between 1 and `n`; an empty set has 0. It never rises with any demand.
///
/// ```
/// use cosched_core::model::bus::throughput;
/// assert_eq!(throughput(&[])?, 0.0);
/// assert_eq!(throughput(&[0.0; 4])?, 4.0);
/// assert_eq!(throughput(&[1.0; 4])?, 1.0);
/// // Four tasks at half of their speeds (EFS, section 3.1): u = b / 2 in Eq. 9 gives 6 u^2 + 3 u - 1 = 0.
/// assert!((throughput(&[0.457_427; 4])? - 2.0).abs() < 1e-5);
/// // Two tasks that each want the bus half of the time: with u = (1 - D) / 2, Eq. 10 becomes D^2 + 4 D - 1 = 0, whose
/// // root, sqrt(5) - 2, leaves each of them 0.382 of the bus instead of 0.5, at 76 % of its solo speed.
/// assert!((throughput(&[0.5, 0.5])? - 2.0 * 0.763_932).abs() < 1e-5);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a demand that is negative, above 1 or not a number.
pub fn throughput(solo: &[f64]) -> Result<f64, ModelError> {
    for &b in solo {
        check_share("solo utilisation", b)?;
    }
    if solo.contains(&1.0) {
        // The tasks with b = 1 share the whole bus and do the work of one. Those with 0 < b < 1 stop.
        let undisturbed = solo.iter().filter(|&&b| b == 0.0).count();
        return Ok(undisturbed as f64 + 1.0);
    }
    let root = root_of_free_share(solo);
    Ok(solo.iter().map(|&b| speed(b, root)).sum())
}

/// `s = u / b`, the speed of a task relative to running alone (EFS, Eq. 11; the paper calls it slowdown).
fn speed(solo: f64, root: f64) -> f64 {
    let q = 1.0 - solo;
    let a = q * root;
    // Rounding must not make a task faster than alone.
    (2.0 * root / (a + (a * a + 4.0 * q * solo).sqrt())).min(1.0)
}

/// `d = sqrt(D)`: the root of the rising function `sum u_i(d) + d^2 - 1` for demands below 1, by Newton's method, with
/// bisection for a step that leaves the interval of the root.
fn root_of_free_share(solo: &[f64]) -> f64 {
    const LAST_STEP: f64 = 1e-12;
    /// Only a guard: far above the number of steps for any known input.
    const MOST_STEPS: u32 = 200;
    let (mut low, mut high) = (0.0, 1.0);
    let mut d = 1.0;
    for _ in 0..MOST_STEPS {
        let (mut excess, mut slope) = (d * d - 1.0, 2.0 * d);
        for &b in solo {
            let q = 1.0 - b;
            let a = q * d;
            let r = (a * a + 4.0 * q * b).sqrt();
            excess += b * 2.0 * d / (a + r);
            slope += b * 8.0 * q * b / (r * (a + r) * (a + r));
        }
        if excess > 0.0 {
            high = d;
        } else {
            low = d;
        }
        let newton = d - excess / slope;
        let next = if low < newton && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        let step = (next - d).abs();
        d = next;
        if step <= LAST_STEP * d {
            break;
        }
    }
    d
}

/// `b`, the solo utilisation of a task measured at `u` while the bus had the free share `free = D = 1 - U` (EFS,
/// Eq. 9). Both from 0 to 1.
///
/// It takes `D` and not `U`, so that a caller with an exact `D` loses no digits near saturation. At `D = 0` every task
/// with `u > 0` has the limit `b = 1`.
///
/// ```
/// use cosched_core::model::bus::solo_utilisation;
/// // Two equal tasks that together keep the bus busy 76.4 % of the time each want it half of the time.
/// assert!((solo_utilisation(0.381_966, 0.236_068)? - 0.5).abs() < 1e-6);
/// // Alone on the bus a task reaches its demand.
/// assert!((solo_utilisation(0.3, 0.7)? - 0.3).abs() < 1e-15);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a value that is negative, above 1 or not a number.
pub fn solo_utilisation(u: f64, free: f64) -> Result<f64, ModelError> {
    check_share("measured utilisation", u)?;
    check_share("free share of the bus", free)?;
    let busy = u * (u + free);
    Ok(if busy == 0.0 {
        0.0
    } else {
        busy / (busy + free)
    })
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
