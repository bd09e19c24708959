//! The running tasks, as sums over the grid of free shares.

use super::class::DemandClass;
use super::search::first;
use super::state::BusState;
use super::table::{BusAdmissionTable, POINTS};
use crate::model::fixed::{FRACTION_DIGITS, ONE, fraction};

/// Maximum number of tasks in a [`BusLoad`].
pub const MOST_TASKS: u32 = 2048;

/// The running tasks, as sums over the grid: about 1.1 KB, and 6.6 KB of counts that guard against a wrong removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusLoad {
    /// Sum of `u` at each point, in shares.
    pub(super) busy: [u64; POINTS],
    /// Sum of `h` at each point, in shares.
    pub(super) computing: [u64; POINTS],
    pub(super) tasks: u32,
    /// Tasks of class 0.
    pub(super) undisturbed: u32,
    pub(super) counts: Box<[u16]>,
}

/// The state in which the running tasks settle: between `point` and the one before it.
pub(super) struct Settled {
    pub(super) point: usize,
    pub(super) state: BusState,
    pub(super) throughput: u64,
}

impl Default for BusLoad {
    fn default() -> Self {
        Self::new()
    }
}

impl BusLoad {
    /// A load without tasks.
    #[must_use]
    pub fn new() -> Self {
        let counts = vec![0; usize::from(DemandClass::HIGHEST.number()) + 1].into();
        Self {
            busy: [0; POINTS],
            computing: [0; POINTS],
            tasks: 0,
            undisturbed: 0,
            counts,
        }
    }

    /// Number of tasks.
    #[must_use]
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Adds a task. Returns false, and changes nothing, at [`MOST_TASKS`] tasks.
    pub fn add(&mut self, table: &BusAdmissionTable, class: DemandClass) -> bool {
        if self.tasks == MOST_TASKS {
            return false;
        }
        self.tasks += 1;
        self.counts[usize::from(class.number())] += 1;
        self.change(table, class, 1);
        true
    }

    /// Removes a task that was added with this class. Returns false, and changes nothing, if there is none.
    pub fn remove(&mut self, table: &BusAdmissionTable, class: DemandClass) -> bool {
        let count = &mut self.counts[usize::from(class.number())];
        if *count == 0 {
            return false;
        }
        *count -= 1;
        self.tasks -= 1;
        self.change(table, class, -1);
        true
    }

    /// `T`, the throughput of the tasks (EFS, Eq. 12), in tasks' worth of solo progress.
    #[must_use]
    pub fn throughput(&self, table: &BusAdmissionTable) -> f64 {
        if self.tasks == 0 {
            0.0
        } else {
            self.settle(table).throughput as f64 / ONE as f64
        }
    }

    /// `T` if `copies` more tasks of this class joined the running ones (EFS, Eq. 12), in tasks' worth of solo
    /// progress: the [`throughput`](Self::throughput) after as many additions, without a change.
    ///
    /// ```
    /// use cosched_core::model::bus_admission_table::{BusAdmissionTable, BusLoad};
    /// let (table, mut load) = (BusAdmissionTable::new(), BusLoad::new());
    /// let class = table.class_of(0.6)?;
    /// let two = load.throughput_with(&table, class, 2);
    /// load.add(&table, class);
    /// load.add(&table, class);
    /// assert_eq!(two, load.throughput(&table));
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn throughput_with(
        &self,
        table: &BusAdmissionTable,
        class: DemandClass,
        copies: u32,
    ) -> f64 {
        if self.tasks + copies == 0 {
            return 0.0;
        }
        let copies = u64::from(copies);
        let full = |point: usize| {
            self.busy[point] + copies * table.shares_of(class, point).0 + table.free[point]
        };
        let point = first(0, POINTS, |point| full(point) <= ONE).min(POINTS - 1);
        let others = |point: usize| {
            ONE - table.free[point]
                + self.computing[point]
                + copies * table.shares_of(class, point).1
        };
        let mut throughput = others(point);
        if point > 0 && full(point) < ONE {
            let way = fraction(ONE - full(point), full(point - 1) - full(point));
            let distance = others(point - 1).wrapping_sub(throughput) as i64;
            throughput = throughput.wrapping_add_signed((distance * way as i64) >> FRACTION_DIGITS);
        }
        throughput as f64 / ONE as f64
    }

    /// Adds the shares of a task `times` times: 1 or -1.
    #[inline]
    fn change(&mut self, table: &BusAdmissionTable, class: DemandClass, times: i64) {
        if class == DemandClass::ZERO {
            self.undisturbed = self.undisturbed.wrapping_add_signed(times as i32);
        }
        let sums = self.busy.iter_mut().zip(&mut self.computing);
        for (point, (busy, computing)) in sums.enumerate() {
            let (u, h) = table.shares_of(class, point);
            *busy = busy.wrapping_add_signed(times * u as i64);
            *computing = computing.wrapping_add_signed(times * h as i64);
        }
    }

    /// The state at a point of the grid.
    #[inline]
    pub(super) fn state(&self, table: &BusAdmissionTable, point: usize) -> BusState {
        let used = ONE - table.free[point];
        BusState {
            free: table.free[point],
            rest: used.saturating_sub(self.busy[point]),
            others: used + self.computing[point],
        }
    }

    pub(super) fn settle(&self, table: &BusAdmissionTable) -> Settled {
        // The bus is over-full at a point if the tasks would use more than 1 - D there. It is over-full up to some
        // point.
        let full = |point: usize| self.busy[point] + table.free[point];
        let point = first(0, POINTS, |point| full(point) <= ONE).min(POINTS - 1);
        let mut state = self.state(table, point);
        if point > 0 && full(point) < ONE {
            let way = fraction(ONE - full(point), full(point - 1) - full(point));
            state = state.towards(&self.state(table, point - 1), way);
        }
        // The tasks fill the bus exactly: nothing is left, and T = 1 - D + sum h.
        state.rest = 0;
        Settled {
            point,
            throughput: state.others,
            state,
        }
    }
}
