//! Power and energy by the number of active cores (EFS, Eqs. 13-15).
//!
//! | symbol | meaning | unit |
//! | --- | --- | --- |
//! | `k` | number of active cores: cores, not SMT siblings (ours; the paper's machine has none) | cores |
//! | `P_0` | power with no core active: supply, disks, idle chip | W |
//! | `P_k` | what the `k`-th active core adds | W |
//! | `Power(k)` | `P_0 + ... + P_k` (Eq. 13) | W |
//! | `T` | throughput of [`bus`](super::bus) (Eq. 12) | tasks' worth of solo progress |
//! | energy per work | `Power / T` (Eq. 14) | W, that is J for each second of solo progress |

use super::error::{ModelError, check_non_negative, check_positive};

/// Power as a sum of steps, one for each active core (EFS, Eq. 13).
#[derive(Debug, Clone, PartialEq)]
pub struct PowerModel {
    /// `P_0`, `P_1`, ...
    steps_w: Vec<f64>,
    /// `Power(0)`, `Power(1)`, ...
    watts: Vec<f64>,
}

impl PowerModel {
    /// The model with the steps `P_0`, `P_1`, ..., in watts, each finite and at least 0, at least two of them, and
    /// `P_0 + P_1` above 0.
    ///
    /// ```
    /// use cosched_core::model::power::PowerModel;
    /// // The machine of EFS, Eq. 25 (Core i5-2500, whole system).
    /// let i5 = PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3])?;
    /// assert!((i5.watts(2) - 61.2).abs() < 1e-12);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::ItemOutOfRange`] or [`ModelError::OutOfRange`] for steps outside this range,
    /// [`ModelError::Length`] for fewer than two.
    pub fn new(steps_w: &[f64]) -> Result<Self, ModelError> {
        if steps_w.len() < 2 {
            return Err(ModelError::Length {
                what: "list of power steps",
                got: steps_w.len(),
                expected: 2,
            });
        }
        for (index, &value) in steps_w.iter().enumerate() {
            check_non_negative("power step", value).map_err(|_| ModelError::ItemOutOfRange {
                what: "power step",
                index,
                value,
                allowed: "a finite number of watts of at least 0",
            })?;
        }
        check_positive("power with one active core", steps_w[0] + steps_w[1])?;
        let mut total = 0.0;
        let watts = steps_w
            .iter()
            .map(|step| {
                total += step;
                total
            })
            .collect();
        check_positive("power with all cores active", total)?;
        Ok(Self {
            steps_w: steps_w.to_vec(),
            watts,
        })
    }

    /// The steps `P_0`, `P_1`, ... in watts.
    #[must_use]
    pub fn steps_w(&self) -> &[f64] {
        &self.steps_w
    }

    /// `Power(k)` in watts with `active` cores active (EFS, Eq. 13).
    ///
    /// Past the last step that is known, each further core adds as much as the last one (ours).
    ///
    /// ```
    /// # use cosched_core::model::power::PowerModel;
    /// let model = PowerModel::new(&[10.0, 5.0, 3.0])?;
    /// assert_eq!([0, 1, 2, 4].map(|k| model.watts(k)), [10.0, 15.0, 18.0, 24.0]);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn watts(&self, active: usize) -> f64 {
        let last = self.watts.len() - 1;
        match self.watts.get(active) {
            Some(&watts) => watts,
            None => self.watts[last] + (active - last) as f64 * self.steps_w[last],
        }
    }
}

/// Energy per work, `Power / T`, in joules for each second of solo progress (EFS, Eq. 14).
///
/// `watts` is the power of the whole system (W), `throughput` is `T` (tasks' worth of solo progress). With no
/// throughput it is infinite.
///
/// ```
/// use cosched_core::model::power::energy_per_work;
/// // Four undisturbed tasks on the machine of EFS, Eq. 25 cost less each than one alone, because they share the 26.6 W.
/// assert!(energy_per_work(85.8, 4.0)? < energy_per_work(49.2, 1.0)?);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a negative value or one that is not finite.
pub fn energy_per_work(watts: f64, throughput: f64) -> Result<f64, ModelError> {
    check_non_negative("power in watts", watts)?;
    check_non_negative("throughput", throughput)?;
    Ok(if throughput == 0.0 {
        f64::INFINITY
    } else {
        watts / throughput
    })
}

/// A measurement of the power with a number of active cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerPoint {
    /// Number of active cores.
    pub active: usize,
    /// Power of the whole system (W).
    pub watts: f64,
}

/// The result of [`fit`].
#[derive(Debug, Clone, PartialEq)]
pub struct PowerFit {
    /// The fitted steps.
    pub model: PowerModel,
    /// Root of the mean squared deviation of the measurements from the model (W).
    pub deviation_w: f64,
    /// Whether the measured power fell somewhere as more cores became active. These numbers of cores then share their
    /// mean, so that no step of the model is negative.
    pub levelled: bool,
}

/// The steps `P_k` that fit measured powers best by least squares, under the condition that no step is negative (EFS,
/// section 5.1, which averages runs for each number of active cores; the condition is ours).
///
/// Several measurements for the same number of cores are averaged. A number of cores that was not measured between two
/// that were lies on the straight line between them.
///
/// ```
/// use cosched_core::model::power::{PowerPoint, fit};
/// let points = [(0, 26.0), (0, 27.0), (1, 49.0), (3, 75.0)].map(|(active, watts)| PowerPoint { active, watts });
/// let fitted = fit(&points)?;
/// assert_eq!(fitted.model.steps_w(), [26.5, 22.5, 13.0, 13.0]);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::ItemOutOfRange`] for a power that is negative or not finite, [`ModelError::Undetermined`] when there
/// is no measurement with no core active (it is `P_0`) or none with some, and the errors of [`PowerModel::new`].
pub fn fit(points: &[PowerPoint]) -> Result<PowerFit, ModelError> {
    for (index, point) in points.iter().enumerate() {
        check_non_negative("power", point.watts).map_err(|_| ModelError::ItemOutOfRange {
            what: "power of measurement",
            index,
            value: point.watts,
            allowed: "a finite number of watts of at least 0",
        })?;
    }
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.active.cmp(&b.active).then(a.watts.total_cmp(&b.watts)));
    let undetermined = |reason| ModelError::Undetermined {
        what: "power model",
        reason,
    };
    if sorted.first().is_none_or(|point| point.active != 0) {
        return Err(undetermined("there is no measurement with 0 active cores"));
    }
    if sorted.last().is_none_or(|point| point.active == 0) {
        return Err(undetermined(
            "there is no measurement with 1 or more active cores",
        ));
    }

    // Pool adjacent violators: blocks of neighbouring core numbers whose means would fall are merged into one.
    let mut blocks: Vec<Block> = Vec::new();
    let mut levelled = false;
    for same in sorted.chunk_by(|a, b| a.active == b.active) {
        let watts: f64 = same.iter().map(|point| point.watts).sum();
        blocks.push(Block {
            first: same[0].active,
            last: same[0].active,
            count: same.len() as f64,
            watts,
        });
        while let [.., before, after] = blocks[..]
            && before.mean() > after.mean()
        {
            blocks.truncate(blocks.len() - 2);
            let (count, watts) = (before.count + after.count, before.watts + after.watts);
            blocks.push(Block {
                first: before.first,
                last: after.last,
                count,
                watts,
            });
            levelled = true;
        }
    }
    // The level at each end of each block; between two blocks, and inside one, the steps are equal.
    let mut steps = vec![blocks[0].mean()];
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            let before = blocks[index - 1];
            let cores = block.first - before.last;
            steps.extend(std::iter::repeat_n(
                (block.mean() - before.mean()) / cores as f64,
                cores,
            ));
        }
        steps.extend(std::iter::repeat_n(0.0, block.last - block.first));
    }
    let model = PowerModel::new(&steps)?;
    let deviations = sorted
        .iter()
        .map(|point| point.watts - model.watts(point.active));
    let squares: f64 = deviations.map(|deviation| deviation * deviation).sum();
    Ok(PowerFit {
        model,
        deviation_w: (squares / sorted.len() as f64).sqrt(),
        levelled,
    })
}

/// Neighbouring numbers of active cores that have one fitted power.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    last: usize,
    count: f64,
    watts: f64,
}

impl Block {
    fn mean(&self) -> f64 {
        self.watts / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(list: &[(usize, f64)]) -> Vec<PowerPoint> {
        list.iter()
            .map(|&(active, watts)| PowerPoint { active, watts })
            .collect()
    }

    #[test]
    fn steps_come_back_from_the_powers_they_give() {
        let model = PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3]).unwrap();
        let measured: Vec<_> = (0..=4).map(|k| (k, model.watts(k))).collect();
        let fitted = fit(&points(&measured)).unwrap();
        assert!(!fitted.levelled && fitted.deviation_w < 1e-12);
        for (a, b) in fitted.model.steps_w().iter().zip(model.steps_w()) {
            assert!((a - b).abs() < 1e-12);
        }
        assert!((model.watts(6) - (85.8 + 2.0 * 12.3)).abs() < 1e-12);
    }

    #[test]
    fn a_fall_is_levelled_and_never_becomes_a_negative_step() {
        let fitted = fit(&points(&[(0, 10.0), (1, 20.0), (2, 18.0), (3, 30.0)])).unwrap();
        assert!(fitted.levelled);
        assert_eq!(fitted.model.steps_w(), [10.0, 9.0, 0.0, 11.0]);
        assert!((fitted.deviation_w - 0.5_f64.sqrt()).abs() < 1e-12);
        // One block that absorbs several, across a number of cores that was not measured.
        let fitted = fit(&points(&[
            (0, 10.0),
            (1, 30.0),
            (3, 20.0),
            (4, 10.0),
            (5, 40.0),
        ]))
        .unwrap();
        assert_eq!(fitted.model.steps_w(), [10.0, 10.0, 0.0, 0.0, 0.0, 20.0]);
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        for list in [&[][..], &[(1, 5.0)], &[(0, 5.0), (0, 6.0)]] {
            assert!(
                matches!(fit(&points(list)), Err(ModelError::Undetermined { .. })),
                "{list:?}"
            );
        }
        assert!(matches!(
            fit(&points(&[(0, 1.0), (1, f64::NAN)])),
            Err(ModelError::ItemOutOfRange { index: 1, .. })
        ));
        assert!(matches!(
            fit(&points(&[(0, 0.0), (1, 0.0)])),
            Err(ModelError::OutOfRange { .. })
        ));
    }

    #[test]
    fn bad_steps_are_refused() {
        assert!(matches!(
            PowerModel::new(&[5.0]),
            Err(ModelError::Length { .. })
        ));
        assert!(matches!(
            PowerModel::new(&[5.0, -1.0]),
            Err(ModelError::ItemOutOfRange { index: 1, .. })
        ));
        assert!(matches!(
            PowerModel::new(&[5.0, f64::INFINITY]),
            Err(ModelError::ItemOutOfRange { .. })
        ));
        assert!(matches!(
            PowerModel::new(&[f64::MAX, f64::MAX]),
            Err(ModelError::OutOfRange { .. })
        ));
        assert!(PowerModel::new(&[0.0, 1.0]).is_ok());
        assert_eq!(energy_per_work(10.0, 0.0).unwrap(), f64::INFINITY);
        assert!(energy_per_work(f64::NAN, 1.0).is_err());
    }
}
