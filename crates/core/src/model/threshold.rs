//! The admission threshold (EFS, Eq. 16): how demanding may one more task be before it is not worth running now?
//!
//! | symbol | meaning | range |
//! | --- | --- | --- |
//! | `b_1 .. b_{n-1}` | solo utilisations of the running tasks | 0 to 1 |
//! | `b_n` | the threshold: solo utilisation of the additional task with which nothing is won or lost | 0 to 1 |
//! | `T`, `T*` | throughput of the running tasks, and the throughput that is needed with the additional one | tasks |
//! | gain | `T* / T`, from the [`Objective`] and the power that one more active core costs | at least 0 |
//!
//! # How it is solved
//! Throughput falls as `b_n` rises, so the threshold is the root of one equation, and no other equation is solved
//! inside it. The unknown is `d = sqrt(D)` (see [`bus`]). With it the running tasks' utilisations follow in closed
//! form. The additional task takes the rest, `u_n = 1 - D - sum u_i`, and its speed is `u_n + D / (u_n + D)`. The sum
//! of all speeds must be `T*`. Only at the end does Eq. 9 turn `u_n` into `b_n`.
//!
//! [`admission_table`](super::admission_table) answers the same question in bounded time and with
//! integers alone.

use super::bus::{self, Equilibrium};
use super::error::{ModelError, check_non_negative};
use super::power::PowerModel;

/// What one more task must not make worse (EFS, Eq. 15 and the remark below it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Energy per work, `Power / T`: the paper's.
    Energy,
    /// Energy-delay product per work, `Power / T^2`.
    EnergyDelay,
    /// Throughput, `T`.
    Throughput,
}

impl Objective {
    /// The factor by which the throughput must grow for the objective to stay as it is when power grows from `before_w`
    /// to `after_w` (W): their ratio for energy, its root for energy-delay product, 1 for throughput.
    ///
    /// ```
    /// use cosched_core::model::threshold::Objective;
    /// // Power doubles: twice the work is needed for the same energy, 1.41 times for the same energy-delay product.
    /// assert_eq!(Objective::Energy.gain(30.0, 60.0)?, 2.0);
    /// assert_eq!(Objective::EnergyDelay.gain(30.0, 60.0)?, f64::sqrt(2.0));
    /// assert_eq!(Objective::Throughput.gain(30.0, 60.0)?, 1.0);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a power that is not finite, a negative one, or a `before_w` of 0.
    pub fn gain(self, before_w: f64, after_w: f64) -> Result<f64, ModelError> {
        super::error::check_positive("power before in watts", before_w)?;
        check_non_negative("power after in watts", after_w)?;
        let ratio = after_w / before_w;
        Ok(match self {
            Self::Energy => ratio,
            Self::EnergyDelay => ratio.sqrt(),
            Self::Throughput => 1.0,
        })
    }
}

/// Which additional tasks are worth running (EFS, Eq. 16).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Admission {
    /// Even a task that never uses the bus would make the objective worse: another core costs more than it can give.
    Nothing,
    /// Tasks with a solo utilisation of at most this, from 0 to 1.
    UpTo(f64),
    /// Any task.
    Everything,
}

impl Admission {
    /// Whether a task with this solo utilisation may run.
    #[must_use]
    pub fn admits(self, solo: f64) -> bool {
        match self {
            Self::Nothing => false,
            Self::UpTo(threshold) => solo <= threshold,
            Self::Everything => true,
        }
    }

    /// `b_n` as one number from 0 to 1: 0 when nothing fits, 1 when everything does.
    #[must_use]
    pub fn threshold(self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::UpTo(threshold) => threshold,
            Self::Everything => 1.0,
        }
    }
}

/// The admission threshold beside tasks that each keep one core of their own busy, when the next one takes one more
/// core (EFS, Eq. 16).
///
/// `running` are solo utilisations from 0 to 1. With nothing running everything is admitted: there is no energy per
/// work to compare with.
///
/// ```
/// use cosched_core::model::{bus, power::PowerModel, threshold::{Objective, threshold}};
/// let i5 = PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3])?;
/// let running = [0.4, 0.4];
/// let b = threshold(&running, &i5, Objective::Energy)?.threshold();
/// assert!((b - 0.432_8).abs() < 1e-4);
/// // With such a task energy per work is what it was without it.
/// let before = i5.watts(2) / bus::throughput(&running)?;
/// let after = i5.watts(3) / bus::throughput(&[0.4, 0.4, b])?;
/// assert!((before - after).abs() < 1e-9);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::ItemOutOfRange`] for a demand that is negative, above 1 or not a number.
pub fn threshold(
    running: &[f64],
    power: &PowerModel,
    objective: Objective,
) -> Result<Admission, ModelError> {
    if running.is_empty() {
        return Ok(Admission::Everything);
    }
    let gain = objective.gain(power.watts(running.len()), power.watts(running.len() + 1))?;
    threshold_for_gain(running, gain)
}

/// The admission threshold for a given gain: the largest solo utilisation of an additional task with which the
/// throughput is still at least `gain` times that of the tasks `running`.
///
/// This is the form for machines on which the next task may or may not wake another core (an SMT sibling of a busy CPU
/// does not, so the gain is 1): get the gain from [`Objective::gain`]. It costs some four or five passes over the tasks
/// more than [`bus::throughput`], and does not allocate. The throughput at the threshold has a relative error below
/// 1e-9, except where it depends on digits of `1 - b_n` that a threshold just below 1 cannot hold.
///
/// ```
/// use cosched_core::model::threshold::{Admission, threshold_for_gain};
/// // No throughput may be lost: beside two tasks that need half the bus each, one that needs 77 % of it still pays.
/// let Admission::UpTo(b) = threshold_for_gain(&[0.5, 0.5], 1.0)? else { panic!() };
/// assert!((b - 0.777_4).abs() < 1e-4);
/// // Two tasks can't become more than three.
/// assert_eq!(threshold_for_gain(&[0.0, 0.0], 1.6)?, Admission::Nothing);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::ItemOutOfRange`] for a demand, and [`ModelError::OutOfRange`] for a gain, outside its range.
pub fn threshold_for_gain(running: &[f64], gain: f64) -> Result<Admission, ModelError> {
    check_non_negative("gain of throughput", gain)?;
    let alone = Equilibrium::of(running)?;
    if running.is_empty() {
        return Ok(Admission::Everything);
    }
    let now: f64 = running.iter().map(|&b| alone.speed(b)).sum();
    let needed = now * gain;
    // A task that never uses the bus adds exactly 1. A task that does nothing else stops all tasks but those that never
    // use it.
    let undisturbed = running.iter().filter(|&&b| b == 0.0).count();
    let (most, least) = (now + 1.0, undisturbed as f64 + 1.0);
    Ok(if needed <= least {
        Admission::Everything
    } else if needed > most {
        Admission::Nothing
    } else if alone.root_free() == 0.0 {
        // Beside a task with b = 1 the throughput is `least` for every b_n > 0, and that is not enough.
        Admission::UpTo(0.0)
    } else {
        Admission::UpTo(solve(running, alone.root_free(), needed))
    })
}

/// Finds `b_n` for a needed throughput above that of the tasks with `b = 0` and one more.
///
/// With `v = u_n + D = 1 - sum u_i` the additional task's speed is `v - D + D / v`. The throughput itself falls by up
/// to 1 within a step of relative size `D` below `highest`, which no Newton step finds. So the equation that is solved
/// is `D - a v = 0`, where `a = T* - (sum s_i + v - D)` is what the additional task must add as `D / v`. It has the
/// same root and is smooth.
fn solve(running: &[f64], highest: f64, needed: f64) -> f64 {
    const LAST_STEP: f64 = 1e-7;
    /// Only a guard: far above the number of steps that any known input needs.
    const MOST_STEPS: u32 = 200;
    /// Below this the running tasks leave the whole bus to the additional one (their 1 - b is at least 1e-16 where it
    /// is not 0), and its 1 - b = D has no digit left. This is far above where the terms of the sums would underflow.
    const LEAST: f64 = 1e-24;
    /// With b = 1 the throughput would be too low.
    const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

    let (mut low, mut high) = (0.0, highest);
    let mut d = highest;
    let (mut rest, mut free) = (0.0, d * d);
    for _ in 0..MOST_STEPS {
        let sums = bus::sums::<true>(running, d);
        free = d * d;
        let v = (1.0 - sums.utilisation).max(free);
        let a = needed - sums.speed - (v - free);
        let a_slope = sums.utilisation_slope + 2.0 * d - sums.speed_slope;
        let excess = free - a * v;
        let slope = 2.0 * d - a_slope * v + a * sums.utilisation_slope;
        if excess > 0.0 {
            high = d;
        } else {
            low = d;
        }
        let newton = d - excess / slope;
        // Where the other tasks alone do more than is needed, the form is not monotone and Newton may point the wrong
        // way.
        let next = if slope > 0.0 && newton >= low && newton <= high {
            newton
        } else {
            0.5 * (low + high)
        };
        let step = next - d;
        // There are two ways to the same u_n, and one of them always keeps its digits: the rest of the bus, or the
        // required D / v.
        let by_speed = free > v * v;
        let rest_step = step * (sums.utilisation_slope + 2.0 * d);
        let small = step.abs() <= LAST_STEP * d && (by_speed || rest_step.abs() <= LAST_STEP * v);
        d = next;
        free = d * d;
        rest = if by_speed {
            let a = a + a_slope * step;
            if a > 0.0 {
                free * (1.0 - a) / a
            } else {
                v - free
            }
        } else {
            v - step * sums.utilisation_slope - free
        };
        if small {
            break;
        }
        if d < LEAST {
            return BELOW_ONE;
        }
    }
    bus::invert(rest.clamp(0.0, 1.0), free).min(BELOW_ONE)
}

#[cfg(test)]
#[path = "threshold_tests.rs"]
mod tests;
