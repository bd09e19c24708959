//! The threshold: the highest class of one more task.

use super::class::DemandClass;
use super::gain::Gain;
use super::load::{BusLoad, Settled};
use super::search::first;
use super::state::BusState;
use super::table::{BusAdmissionTable, POINTS};
use crate::model::fixed::{ONE, SHARE_DIGITS, fraction};

impl BusAdmissionTable {
    /// The highest class admitted beside the tasks of `load` if the throughput must grow by `gain`. Candidates of this
    /// class and below fit; with `None` nothing fits. [`DemandClass::HIGHEST`] means that everything fits.
    ///
    /// Without running tasks everything fits. The cost does not depend on the number of tasks.
    ///
    /// ```
    /// use cosched_core::model::{power::PowerModel, objective::Objective};
    /// use cosched_core::model::bus_admission_table::{BusAdmissionTable, BusLoad, DemandClass, Gain};
    /// let table = BusAdmissionTable::new();
    /// let gains = Gain::for_cores(&PowerModel::new([26.6, 22.6, 12.0, 12.3])?, Objective::Energy, 4)?;
    /// let mut load = BusLoad::new();
    /// assert_eq!(table.ceiling(&load, gains[0]), Some(DemandClass::HIGHEST));
    /// // Two tasks run on two cores: the next one would wake the third. Exactly: 0.4328.
    /// let class = table.class_of(0.4)?;
    /// load.add(&table, class);
    /// load.add(&table, class);
    /// let ceiling = table.ceiling(&load, gains[1]).unwrap();
    /// assert!((table.demand(ceiling) - 0.432_8).abs() < 0.005);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn ceiling(&self, load: &BusLoad, gain: Gain) -> Option<DemandClass> {
        if load.tasks == 0 {
            return Some(DemandClass::HIGHEST);
        }
        let settled = load.settle(self);
        // The throughput has 11 digits before the point and the gain 12, which leaves room for 20 of each after it.
        let needed =
            (settled.throughput >> (SHARE_DIGITS - Gain::DIGITS)) * u64::from(gain.number());
        let most = settled.throughput + ONE;
        if needed > most {
            return None;
        }
        if needed <= (u64::from(load.undisturbed) + 1) * ONE {
            return Some(DemandClass::HIGHEST);
        }

        let Some((low, high)) = self.bracket(load, &settled, needed) else {
            return Some(DemandClass::HIGHEST);
        };
        let root = root_between(low, high, needed);
        if root.rest == 0 {
            return Some(DemandClass::ZERO);
        }
        let log = self.logarithms.of(root.rest) + self.logarithms.of(root.rest + root.free);
        Some(self.class_at(log - self.logarithms.of(root.free)))
    }

    /// The states of the grid below and above the root: where one more task that takes the rest of the bus brings the
    /// throughput to `needed`. `None` if it always does.
    fn bracket(
        &self,
        load: &BusLoad,
        settled: &Settled,
        needed: u64,
    ) -> Option<(BusState, BusState)> {
        // The shortfall rises from point to point.
        let point = first(settled.point, POINTS, |point| {
            load.state(self, point).short_of(needed) >= 0
        });
        if point == POINTS {
            return None;
        }
        // This point lies below the root. Above the root lies the previous point, or the settled state without the
        // additional task.
        let high = if point == settled.point {
            settled.state
        } else {
            load.state(self, point - 1)
        };
        Some((load.state(self, point), high))
    }
}

/// The state between these two in which one more task brings the throughput to `needed`.
fn root_between(low: BusState, high: BusState, needed: u64) -> BusState {
    // The root may be nearer to the upper state than one step of the grid by orders of magnitude, because D may be that
    // much smaller than the rest of the bus. So the distance from there is halved until it passes the root.
    let steep = (high.free | 1)
        .leading_zeros()
        .saturating_sub((low.rest | 1).leading_zeros());
    let tries = steep as usize + 4;
    let halvings = first(1, tries, |halvings| {
        high.halved_towards(&low, halvings).short_of(needed) <= 0
    });
    let mut above = high;
    if halvings < tries {
        above = high.halved_towards(&low, halvings);
    }
    let mut below = high.halved_towards(&low, halvings - 1);
    // The shortfall is curved within an octave. After two more halvings a straight line is close enough.
    for _ in 0..2 {
        let middle = below.halved_towards(&above, 1);
        if middle.short_of(needed) >= 0 {
            below = middle;
        } else {
            above = middle;
        }
    }
    let short = below.short_of(needed).max(0) as u64;
    let beyond = above.short_of(needed).min(0).unsigned_abs();
    below.towards(&above, fraction(short, (short + beyond).max(1)))
}
