//! Contention on the memory bus (EFS, Eqs. 1-12): how much several tasks slow each other down.
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
//! rises with `d`, so `d` is the only root of one scalar equation, `sum u_i(d) + d^2 = 1`, and a step costs O(n). It is
//! solved in `d` and not in `U`, because near saturation `1 - U` has no digits left while `d` keeps them all.

use super::error::{ModelError, check_share};

/// What one pass over the demands yields at a given `d`: sums of the utilisations and the speeds, and their
/// derivatives.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) utilisation: f64,
    pub(super) utilisation_slope: f64,
    pub(super) speed: f64,
    pub(super) speed_slope: f64,
}

/// The free share of the bus on which a set of tasks settles: the solution of EFS, Eq. 10.
///
/// The speed of each task of the set follows from it alone. It is plain data without allocation.
///
/// ```
/// use cosched_core::model::bus::Equilibrium;
/// // Two tasks that each want the bus half of the time: with u = (1 - D) / 2, Eq. 10 becomes D^2 + 4 D - 1 = 0 ...
/// let pair = Equilibrium::of(&[0.5, 0.5])?;
/// // ... whose root, sqrt(5) - 2, leaves each of them 0.382 of the bus instead of 0.5, at 76 % of its solo speed.
/// assert!((pair.total() - 0.763_932).abs() < 1e-6);
/// assert!((pair.speed(0.5) - 0.763_932).abs() < 1e-6);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equilibrium {
    /// `d = sqrt(D)`.
    root: f64,
    /// How many tasks have `b = 1`.
    saturating: usize,
    /// How many tasks have `b > 0`.
    contenders: usize,
}

impl Equilibrium {
    /// Solves EFS, Eq. 10 for the solo utilisations `solo` (each from 0 to 1, no unit) in O(n) per step, in two to four
    /// steps, without allocation.
    ///
    /// The relative error in `D` is below 1e-9 (in practice below 1e-11) up to at least 4,096 tasks of any mixture.
    /// Limits: no task leaves the bus free; tasks with `b = 1` take the whole bus in equal shares, and tasks with
    /// `0 < b < 1` beside them come to a halt, as the limit of the equation demands.
    ///
    /// # Errors
    /// [`ModelError::ItemOutOfRange`] for a demand that is negative, above 1 or not a number.
    pub fn of(solo: &[f64]) -> Result<Self, ModelError> {
        let (mut sum, mut contenders, mut saturating) = (0.0, 0, 0);
        for (index, &b) in solo.iter().enumerate() {
            if !(0.0..=1.0).contains(&b) {
                return Err(out_of_range("solo utilisation", index, b));
            }
            sum += b;
            contenders += usize::from(b > 0.0);
            saturating += usize::from(b == 1.0);
        }
        let root = match (saturating, contenders) {
            (0, 0) => 1.0,
            // One demand alone gets what it wants, and the sum is that demand.
            (0, 1) => (1.0 - sum).sqrt(),
            (0, _) => solve(solo, start(solo.len(), sum)),
            _ => 0.0,
        };
        Ok(Self {
            root,
            saturating,
            contenders,
        })
    }

    /// `D = 1 - U`, the share of time in which the bus is idle, from 0 to 1. Exact to the last few digits even where
    /// `1 - total()` would be lost to rounding.
    #[must_use]
    pub fn free(&self) -> f64 {
        self.root * self.root
    }

    /// `sqrt(D)`, the variable in which the equation is solved.
    #[must_use]
    pub fn root_free(&self) -> f64 {
        self.root
    }

    /// `U`, the total utilisation of the bus, from 0 to 1 (EFS, Eq. 5).
    #[must_use]
    pub fn total(&self) -> f64 {
        1.0 - self.free()
    }

    /// `s = u / b`, the speed of a task of this set relative to running alone, from 0 to 1 (EFS, Eq. 11; the paper
    /// calls it slowdown).
    ///
    /// `solo` is the demand of a task that is in the set; for any other value the answer means nothing.
    #[must_use]
    pub fn speed(&self, solo: f64) -> f64 {
        if solo == 1.0 && self.saturating > 0 {
            1.0 / self.saturating as f64
        } else if solo == 0.0 || self.contenders == 1 {
            1.0
        } else {
            let q = 1.0 - solo;
            let a = q * self.root;
            // Rounding must not make a task faster than alone.
            (2.0 * self.root / (a + (a * a + 4.0 * q * solo).sqrt())).min(1.0)
        }
    }

    /// `u`, the share of time for which a task of this set keeps the bus busy, from 0 to `solo` (EFS, Eq. 10).
    #[must_use]
    pub fn utilisation(&self, solo: f64) -> f64 {
        solo * self.speed(solo)
    }
}

/// `T`, the throughput of a set of tasks (EFS, Eq. 12), in tasks' worth of solo progress, for callers that need nothing
/// else.
///
/// Any `n` tasks have a throughput between 1 and `n`; no task at all has 0. It never rises with any demand.
///
/// ```
/// use cosched_core::model::bus::throughput;
/// assert_eq!(throughput(&[])?, 0.0);
/// assert_eq!(throughput(&[0.0; 4])?, 4.0);
/// assert_eq!(throughput(&[1.0; 4])?, 1.0);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// As [`Equilibrium::of`].
pub fn throughput(solo: &[f64]) -> Result<f64, ModelError> {
    let equilibrium = Equilibrium::of(solo)?;
    Ok(solo.iter().map(|&b| equilibrium.speed(b)).sum())
}

/// `b`, the solo utilisation of a task that was measured at `u` while the bus had the free share `free = D = 1 - U`
/// (EFS, Eq. 9). Both from 0 to 1.
///
/// It takes `D` and not `U`, so that a caller that knows `D` well loses no digits near saturation. At `D = 0` every
/// task with `u > 0` has the limit `b = 1`.
///
/// ```
/// use cosched_core::model::bus::solo_utilisation;
/// // Two equal tasks that together keep the bus busy 76.4 % of the time each want it half of the time.
/// assert!((solo_utilisation(0.381_966, 0.236_068)? - 0.5).abs() < 1e-6);
/// // Alone on the bus a task gets what it wants.
/// assert!((solo_utilisation(0.3, 0.7)? - 0.3).abs() < 1e-15);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a value that is negative, above 1 or not a number.
pub fn solo_utilisation(u: f64, free: f64) -> Result<f64, ModelError> {
    check_share("measured utilisation", u)?;
    check_share("free share of the bus", free)?;
    Ok(invert(u, free))
}

/// Eq. 9 for values that are known to be in range.
#[inline]
pub(super) fn invert(u: f64, free: f64) -> f64 {
    let busy = u * (u + free);
    if busy == 0.0 {
        0.0
    } else {
        busy / (busy + free)
    }
}

fn out_of_range(what: &'static str, index: usize, value: f64) -> ModelError {
    ModelError::ItemOutOfRange {
        what,
        index,
        value,
        allowed: "a number from 0 to 1",
    }
}

/// A first guess of `d`: the exact answer if all `n` tasks had the mean demand.
///
/// For equal tasks `n u = 1 - D`, which turns Eq. 10 into `q (n - 1) D^2 + (b n^2 - q (n - 2)) D - q = 0`.
fn start(n: usize, sum: f64) -> f64 {
    let n = n as f64;
    let b = sum / n;
    let q = 1.0 - b;
    let (square, linear) = (q * (n - 1.0), b * n * n - q * (n - 2.0));
    let discriminant = (linear * linear + 4.0 * square * q).sqrt();
    // This form of the root adds numbers of one sign only.
    let free = if linear >= 0.0 {
        2.0 * q / (linear + discriminant)
    } else {
        (discriminant - linear) / (2.0 * square)
    };
    // The sum of demands just below 1 may round to n.
    free.clamp(f64::EPSILON * f64::EPSILON, 1.0).sqrt()
}

/// Finds `d` with `sum u_i(d) + d^2 = 1` for two or more demands above 0 and none equal to 1.
///
/// The excess `F(d) = sum u_i(d) + d^2 - 1` rises, and `|d F'' / F'|` is at most 3 (each `u_i` contributes between -3
/// and 0, `d^2` contributes 1), so a Newton step of relative size `e` leaves a relative error of about `3 e^2 / 2`.
fn solve(solo: &[f64], start: f64) -> f64 {
    /// Leaves an error of some 2e-14 in `d`, by the bound above.
    const LAST_STEP: f64 = 1e-7;
    /// Only a guard: far above the number of steps that any known input needs.
    const MOST_STEPS: u32 = 100;

    let (mut low, mut high) = (0.0, 1.0);
    let mut d = start;
    for _ in 0..MOST_STEPS {
        let sums = sums::<false>(solo, d);
        let excess = sums.utilisation + d * d - 1.0;
        let slope = sums.utilisation_slope + 2.0 * d;
        if excess > 0.0 {
            high = d;
        } else {
            low = d;
        }
        let newton = d - excess / slope;
        let next = if newton > low && newton < high {
            newton
        } else if excess > 0.0 {
            // The chord to the known value -1 at d = 0: always inside, and exact where all u_i are proportional to d.
            (d / (1.0 + excess)).max(low)
        } else {
            // Newton's step in D: F is concave in D, so from below it never passes the root.
            (d * (d - 2.0 * excess / slope)).sqrt().min(high)
        };
        let step = (next - d).abs();
        d = next;
        if step <= LAST_STEP * d {
            break;
        }
    }
    d
}

/// Sums over all tasks at `d`; the sums over the speeds only if `SPEED`.
///
/// Four running sums side by side let the compiler use vector instructions. Their order is fixed here, so every machine
/// gets the same result.
#[inline]
pub(super) fn sums<const SPEED: bool>(solo: &[f64], d: f64) -> Sums {
    let mut lanes = [[0.0; 4]; 4];
    let (chunks, rest) = solo.as_chunks::<4>();
    for chunk in chunks {
        add_chunk::<SPEED>(chunk, d, &mut lanes);
    }
    // Padding with b = 0 adds nothing to the utilisation, a speed of 1 each, and no slope.
    let mut padding = 0;
    if !rest.is_empty() {
        let mut chunk = [0.0; 4];
        chunk[..rest.len()].copy_from_slice(rest);
        padding = 4 - rest.len();
        add_chunk::<SPEED>(&chunk, d, &mut lanes);
    }
    let [utilisation, utilisation_slope, speed, speed_slope] =
        lanes.map(|lane| (lane[0] + lane[1]) + (lane[2] + lane[3]));
    Sums {
        utilisation,
        utilisation_slope,
        speed: speed - padding as f64,
        speed_slope,
    }
}

#[inline(always)]
fn add_chunk<const SPEED: bool>(chunk: &[f64; 4], d: f64, lanes: &mut [[f64; 4]; 4]) {
    for (lane, &b) in chunk.iter().enumerate() {
        let q = 1.0 - b;
        let a = q * d;
        let qb4 = 4.0 * q * b;
        let r = (a * a + qb4).sqrt();
        let w = a + r;
        // One division serves the speed 2 d / w and its slope 8 q b / (r w^2).
        let inverse = 1.0 / (r * w);
        let inverse_w = r * inverse;
        let speed = 2.0 * d * inverse_w;
        let slope = 2.0 * qb4 * inverse_w * inverse;
        lanes[0][lane] += b * speed;
        lanes[1][lane] += b * slope;
        if SPEED {
            lanes[2][lane] += speed;
            lanes[3][lane] += slope;
        }
    }
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
