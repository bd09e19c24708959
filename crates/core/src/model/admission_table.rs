//! The admission threshold (EFS, Eq. 16) for a scheduler that adds and removes tasks all the time: integers only,
//! bounded loops, no division, and the same cost whether 4 or 512 CPUs are busy.
//!
//! # The idea
//! The paper suggests look-up tables for many cores and leaves them open; this form is ours. Eq. 10 splits the speed of
//! a task into the time it uses the bus and the time it computes, `s = u + h`, and with the odds `o = b / (1 - b)` both
//! depend on one ratio alone:
//!
//! ```text
//! h = 2 / (1 + sqrt(1 + 4 o / D))        u = o h
//! ```
//!
//! So demands are sorted into classes of equal steps in `log o` (64 to the octave), the free share `D` into a grid of
//! equal steps in `log D` (2 to the octave, 65 points), and one table of `h` over `log o - log D` holds everything. A
//! [`BusLoad`] keeps the sums of `u` and `h` of the running tasks at each of the 65 points: adding or removing a task
//! touches these and nothing else. As they are integers, no rounding ever accumulates.
//!
//! Asking for the threshold is two binary searches over the grid: one for the point where the tasks' utilisations fill
//! the bus, `sum u = 1 - D`, which is the present throughput, and one for the point where a task that uses up what is
//! then left of the bus would bring the throughput to what is needed. Logarithms by look-up turn its utilisation into a
//! class.
//!
//! # Error
//! For up to [`MOST_TASKS`] tasks the throughput differs from the exact one (see [`bus`](super::bus)) by less than 1 %:
//! half a step of the odds, 0.54 %, moves the throughput by no more than about as much, and the interpolation adds up
//! to 0.37 %. Likewise the exact throughput with a task at the threshold differs from the needed one by less than 1 %.
//! The largest errors in some ten thousand mixtures that were chosen to be hard are 0.54 % and 0.39 %; the tests hold
//! the 1 %. Demands below 2^-42 count as 0 and demands above 1024/1025 = 0.99902 as this one: beyond it the limit in
//! which tasks with `b = 1` stop all others is not reproduced, and no counter can tell such demands apart.

use super::error::{ModelError, check_share};
use super::fixed::{FRACTION_DIGITS, LOG_DIGITS, Logarithms, OCTAVE, ONE, SHARE_DIGITS, TABLE_DIGITS};
use super::fixed::{fraction, powers, two_to};
use super::power::PowerModel;
use super::threshold::Objective;
use thiserror::Error;

/// The greatest number of tasks in a [`BusLoad`].
pub const MOST_TASKS: u32 = 2048;

/// Classes to an octave of the odds.
const STEPS: usize = 64;
/// Octave of the lowest class above 0, and of the highest class.
const LOWEST: i32 = -42;
const HIGHEST: i32 = 10;
/// Points of the grid: point `i` is `D = 2^(-i/2)`.
const POINTS: usize = 65;
/// Classes that correspond to one step of the grid. Classes that differ by a multiple of it share a row of the table.
const PHASES: usize = STEPS / 2;
/// 1 as the tables hold it.
const TABLE_ONE: f64 = (1_u64 << TABLE_DIGITS) as f64;
const COLUMNS: usize = (HIGHEST - LOWEST) as usize * 2 + POINTS;

/// A solo utilisation, rounded to one of 3,330 classes; ordered as the utilisations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DemandClass(u16);

impl DemandClass {
    /// The class of tasks that do not use the bus.
    pub const ZERO: Self = Self(0);
    /// The class of the most demanding tasks: 1024/1025 = 0.99902 and all above.
    pub const HIGHEST: Self = Self(((HIGHEST - LOWEST) as usize * STEPS + 1) as u16);

    /// The number of the class, from 0: the form in which a kernel keeps it.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The class with this number; none above [`HIGHEST`](Self::HIGHEST).
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        (number <= Self::HIGHEST.0).then_some(Self(number))
    }

    /// The class whose odds have this logarithm, in steps, rounded to the nearest by the caller.
    fn at(steps: i32) -> Self {
        let above = steps - LOWEST * STEPS as i32 + 1;
        Self(above.clamp(0, i32::from(Self::HIGHEST.0)) as u16)
    }

    /// Row and first column of the table, and octave and step in it, of a class above 0.
    #[inline]
    fn position(self) -> Option<(usize, usize)> {
        (self.0 > 0).then(|| {
            let steps = usize::from(self.0) - 1;
            (steps % PHASES, steps / PHASES)
        })
    }
}

/// The factor by which throughput must grow, as an integer in units of 2^-20; see [`Objective::gain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u32);

impl Gain {
    const DIGITS: u32 = 20;
    /// No throughput may be lost: for the throughput objective, and for a task that wakes no further core.
    pub const NONE: Self = Self(1 << Self::DIGITS);

    /// The nearest gain. Gains of 4,096 and more are all the same: nothing is ever worth them.
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a negative gain or one that is not finite.
    pub fn of(gain: f64) -> Result<Self, ModelError> {
        super::error::check_non_negative("gain of throughput", gain)?;
        // A conversion to an integer saturates.
        Ok(Self((gain * f64::from(1_u32 << Self::DIGITS) + 0.5) as u32))
    }

    /// In units of 2^-20: the form in which a kernel keeps it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The gain with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The gains that a task needs which wakes core number 2, 3, ..., `cores`, in this order, ready to be handed to a
    /// kernel.
    ///
    /// # Errors
    /// None for a [`PowerModel`], which is valid by construction; the type says so because gains are checked.
    pub fn for_cores(power: &PowerModel, objective: Objective, cores: usize) -> Result<Vec<Self>, ModelError> {
        (1..cores).map(|active| Self::of(objective.gain(power.watts(active), power.watts(active + 1))?)).collect()
    }
}

/// Why a [`BusLoad`] refuses a change. It is then as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LoadError {
    /// It holds [`MOST_TASKS`] already.
    #[error("the load holds {MOST_TASKS} tasks already")]
    Full,
    /// No task of this class was added, or it was removed already.
    #[error("no task of this demand class is in the load")]
    NotThere,
}

/// The tables: constant, some 30 KB, one for a whole machine.
#[derive(Debug, Clone)]
pub struct AdmissionTable {
    /// `h`, as a share, by phase and column.
    computing: Box<[[u32; COLUMNS]; PHASES]>,
    /// `2^(step / 64)` for the steps of one octave, as a share.
    octave: [u32; STEPS],
    /// `D` of each point of the grid, as a share.
    free: [u64; POINTS],
    logarithms: Box<Logarithms>,
}

impl Default for AdmissionTable {
    fn default() -> Self {
        Self::new()
    }
}

impl AdmissionTable {
    /// Computes the tables, with sums, products, quotients and square roots only: the same on every machine.
    #[must_use]
    pub fn new() -> Self {
        let powers = powers();
        let fine = |step: usize| powers[step * (OCTAVE as usize / STEPS)];
        let mut computing = Box::new([[0; COLUMNS]; PHASES]);
        for (phase, row) in computing.iter_mut().enumerate() {
            for (column, h) in row.iter_mut().enumerate() {
                let steps = column * PHASES + phase;
                let x = fine(steps % STEPS) * two_to((steps / STEPS) as i32 + LOWEST);
                *h = (2.0 / (1.0 + (1.0 + 4.0 * x).sqrt()) * TABLE_ONE + 0.5) as u32;
            }
        }
        let octave = std::array::from_fn(|step| (fine(step) * TABLE_ONE + 0.5) as u32);
        let free = std::array::from_fn(|point| {
            (fine(point % 2 * STEPS / 2) * two_to(-(point.div_ceil(2) as i32)) * ONE as f64 + 0.5) as u64
        });
        Self { computing, octave, free, logarithms: Box::new(Logarithms::new(&powers)) }
    }

    /// The class nearest to the solo utilisation `solo`, from 0 to 1.
    ///
    /// ```
    /// use cosched_core::model::admission_table::{AdmissionTable, DemandClass};
    /// let table = AdmissionTable::new();
    /// let class = table.class_of(0.4)?;
    /// assert!((table.demand(class) / 0.4 - 1.0).abs() < 0.004);
    /// assert_eq!(table.class_of(0.0)?, DemandClass::ZERO);
    /// assert_eq!(table.class_of(1.0)?, DemandClass::HIGHEST);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a value that is negative, above 1 or not a number.
    pub fn class_of(&self, solo: f64) -> Result<DemandClass, ModelError> {
        check_share("solo utilisation", solo)?;
        let odds = solo / (1.0 - solo);
        if odds >= two_to(HIGHEST) {
            return Ok(DemandClass::HIGHEST);
        }
        if odds < two_to(LOWEST - 1) {
            return Ok(DemandClass::ZERO);
        }
        // Exponent and mantissa of the number itself, the latter as a share between 1 and 2.
        let bits = odds.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let mantissa = (bits & ((1 << 52) - 1) | 1 << 52) >> (52 - SHARE_DIGITS);
        Ok(self.class_at((exponent << LOG_DIGITS) + self.logarithms.of(mantissa)))
    }

    /// The class of a task from what counters show, in integers: its utilisation and the free share of the bus, both in
    /// units of 2^-31 (EFS, Eq. 9, `o = u (u + D) / D`). Values above 1 count as 1.
    ///
    /// ```
    /// use cosched_core::model::admission_table::AdmissionTable;
    /// let (table, unit) = (AdmissionTable::new(), f64::from(1_u32 << 31));
    /// // The example of `bus::solo_utilisation`: u = 0.382 and D = 0.236 mean b = 0.5.
    /// let class = table.class_of_measured((0.381_966 * unit) as u32, (0.236_068 * unit) as u32);
    /// assert_eq!(class, table.class_of(0.5)?);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn class_of_measured(&self, utilisation: u32, free: u32) -> DemandClass {
        let share = |value: u32| (u64::from(value) << (SHARE_DIGITS - TABLE_DIGITS)).min(ONE);
        let (u, free) = (share(utilisation), share(free));
        if u == 0 {
            return DemandClass::ZERO;
        }
        if free == 0 {
            return DemandClass::HIGHEST;
        }
        let log = self.logarithms.of(u) + self.logarithms.of(u + free) - self.logarithms.of(free);
        self.class_at(log)
    }

    /// The solo utilisation in the middle of a class, from 0 to 0.99902.
    #[must_use]
    pub fn demand(&self, class: DemandClass) -> f64 {
        let Some(steps) = usize::from(class.0).checked_sub(1) else { return 0.0 };
        let mantissa = f64::from(self.octave[steps % STEPS]) / TABLE_ONE;
        let odds = mantissa * two_to((steps / STEPS) as i32 + LOWEST);
        odds / (1.0 + odds)
    }

    /// The class nearest to odds with this logarithm.
    #[inline]
    fn class_at(&self, log: i32) -> DemandClass {
        const STEP: i32 = OCTAVE / STEPS as i32;
        DemandClass::at((log + STEP / 2).div_euclid(STEP))
    }

    /// The highest class that is admitted beside the tasks of `load` if the throughput must grow by `gain`: candidates
    /// of this class and below fit, and with `None` nothing fits. [`DemandClass::HIGHEST`] means that everything fits.
    ///
    /// With nothing running everything fits. The cost does not depend on the number of tasks.
    ///
    /// ```
    /// use cosched_core::model::{power::PowerModel, threshold::Objective};
    /// use cosched_core::model::admission_table::{AdmissionTable, BusLoad, DemandClass, Gain};
    /// let table = AdmissionTable::new();
    /// let gains = Gain::for_cores(&PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3])?, Objective::Energy, 4)?;
    /// let mut load = BusLoad::new();
    /// assert_eq!(table.ceiling(&load, gains[0]), Some(DemandClass::HIGHEST));
    /// // Two tasks run on two cores: the next one would wake the third. Exactly: 0.4328.
    /// let class = table.class_of(0.4)?;
    /// load.add(&table, class).unwrap();
    /// load.add(&table, class).unwrap();
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
        // The throughput has 11 digits before the point and the gain 12: there is room for 20 of each after it.
        let needed = (settled.throughput >> (SHARE_DIGITS - Gain::DIGITS)) * u64::from(gain.0);
        let most = settled.throughput + ONE;
        if needed > most {
            return None;
        }
        if needed <= (u64::from(load.undisturbed) + 1) * ONE {
            return Some(DemandClass::HIGHEST);
        }

        // How far a task that takes what is left of the bus falls short of what is needed: it rises from point to
        // point.
        let at = |point: usize| load.state(self, point);
        let point = first(settled.point, POINTS, |point| at(point).short_of(needed) >= 0);
        if point == POINTS {
            return Some(DemandClass::HIGHEST);
        }
        // Below the root lies this point; above it the one before, or the settled state without the additional task.
        let low = at(point);
        let high = if point == settled.point { settled.state } else { at(point - 1) };
        // The root may be nearer to the upper state by orders of magnitude than one step of the grid, for D may be as
        // much smaller than what that step leaves of the bus. So the way from there is halved until it is passed.
        let steep = (high.free | 1).leading_zeros().saturating_sub((low.rest | 1).leading_zeros());
        let tries = steep as usize + 4;
        let try_at = |halvings: usize| high.halved_towards(&low, halvings);
        let halvings = first(1, tries, |halvings| try_at(halvings).short_of(needed) <= 0);
        let mut low = try_at(halvings - 1);
        let mut high = if halvings == tries { high } else { try_at(halvings) };
        // The shortfall bends within an octave: two halvings more, and a straight line will do.
        for _ in 0..2 {
            let middle = low.halved_towards(&high, 1);
            if middle.short_of(needed) >= 0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let (below, above) = (low.short_of(needed).max(0) as u64, high.short_of(needed).min(0).unsigned_abs());
        let way = fraction(below, (below + above).max(1));
        let root = low.towards(&high, way);
        if root.rest == 0 {
            return Some(DemandClass::ZERO);
        }
        let log = self.logarithms.of(root.rest) + self.logarithms.of(root.rest + root.free);
        Some(self.class_at(log - self.logarithms.of(root.free)))
    }
}

/// How the running tasks would be at some `D`, and what they leave, in shares.
#[derive(Clone, Copy)]
struct State {
    /// `D`.
    free: u64,
    /// What is left of the bus: `1 - D - sum u`.
    rest: u64,
    /// Throughput of the running tasks and the use of the bus by the one that takes the rest: `1 - D + sum h`.
    others: u64,
}

impl State {
    /// Whether, and how far, throughput falls short of `needed` if another task takes the rest: negative if it does
    /// not.
    ///
    /// With `v = u + D` that task adds `D / v`, and `a` is what it must add: `a v - D` has the sign of `a - D / v`,
    /// needs no division, and is smooth where `D / v` is steep.
    #[inline]
    fn short_of(&self, needed: u64) -> i64 {
        // D / v is at most 1: to need more is to need too much.
        let a = needed.saturating_sub(self.others).min(ONE);
        let product = (u128::from(a) * u128::from(self.rest + self.free)) >> SHARE_DIGITS;
        product as i64 - self.free as i64
    }

    /// The state that lies `part`, in units of 2^-12, of the way to `to`.
    #[inline]
    fn towards(&self, to: &Self, part: u64) -> Self {
        self.between(to, |distance| (distance * part as i64) >> FRACTION_DIGITS)
    }

    /// The state that lies 2^-halvings of the way to `to`.
    #[inline]
    fn halved_towards(&self, to: &Self, halvings: usize) -> Self {
        self.between(to, |distance| distance >> halvings)
    }

    #[inline]
    fn between(&self, to: &Self, way: impl Fn(i64) -> i64) -> Self {
        let between = |from: u64, to: u64| from.wrapping_add_signed(way(to.wrapping_sub(from) as i64));
        Self {
            free: between(self.free, to.free),
            rest: between(self.rest, to.rest),
            others: between(self.others, to.others),
        }
    }
}

/// The running tasks, as sums over the grid: some 1.1 KB, and 6.6 KB of counts that guard against a wrong removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusLoad {
    /// Sum of `u` at each point, in shares.
    busy: [u64; POINTS],
    /// Sum of `h` at each point, in shares.
    computing: [u64; POINTS],
    tasks: u32,
    /// Tasks of class 0.
    undisturbed: u32,
    counts: Box<[u16]>,
}

/// Where the running tasks settle: between `point` and the one before it.
struct Settled {
    point: usize,
    state: State,
    throughput: u64,
}

impl Default for BusLoad {
    fn default() -> Self {
        Self::new()
    }
}

impl BusLoad {
    /// No task.
    #[must_use]
    pub fn new() -> Self {
        let counts = vec![0; usize::from(DemandClass::HIGHEST.0) + 1].into();
        Self { busy: [0; POINTS], computing: [0; POINTS], tasks: 0, undisturbed: 0, counts }
    }

    /// How many tasks there are.
    #[must_use]
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Adds a task.
    ///
    /// # Errors
    /// [`LoadError::Full`] when there are [`MOST_TASKS`] already.
    pub fn add(&mut self, table: &AdmissionTable, class: DemandClass) -> Result<(), LoadError> {
        if self.tasks == MOST_TASKS {
            return Err(LoadError::Full);
        }
        self.tasks += 1;
        self.counts[usize::from(class.0)] += 1;
        self.change(table, class, |sum, share| *sum += share, |count| *count += 1);
        Ok(())
    }

    /// Removes a task that was added with this class.
    ///
    /// # Errors
    /// [`LoadError::NotThere`] when there is none.
    pub fn remove(&mut self, table: &AdmissionTable, class: DemandClass) -> Result<(), LoadError> {
        let count = &mut self.counts[usize::from(class.0)];
        if *count == 0 {
            return Err(LoadError::NotThere);
        }
        *count -= 1;
        self.tasks -= 1;
        self.change(table, class, |sum, share| *sum -= share, |count| *count -= 1);
        Ok(())
    }

    /// `T`, the throughput of the tasks (EFS, Eq. 12), in tasks' worth of solo progress.
    #[must_use]
    pub fn throughput(&self, table: &AdmissionTable) -> f64 {
        if self.tasks == 0 { 0.0 } else { self.settle(table).throughput as f64 / ONE as f64 }
    }

    /// `T` if `copies` more tasks of this class joined those that run (EFS, Eq. 12), in tasks' worth of solo progress:
    /// what [`throughput`](Self::throughput) would be after as many additions, without changing anything.
    ///
    /// ```
    /// use cosched_core::model::admission_table::{AdmissionTable, BusLoad};
    /// let (table, mut load) = (AdmissionTable::new(), BusLoad::new());
    /// let class = table.class_of(0.6)?;
    /// let two = load.throughput_with(&table, class, 2);
    /// load.add(&table, class).unwrap();
    /// load.add(&table, class).unwrap();
    /// assert_eq!(two, load.throughput(&table));
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn throughput_with(&self, table: &AdmissionTable, class: DemandClass, copies: u32) -> f64 {
        if self.tasks + copies == 0 {
            return 0.0;
        }
        let copies = u64::from(copies);
        let full = |point: usize| self.busy[point] + copies * shares_of(table, class, point).0 + table.free[point];
        let point = first(0, POINTS, |point| full(point) <= ONE).min(POINTS - 1);
        let others =
            |point: usize| ONE - table.free[point] + self.computing[point] + copies * shares_of(table, class, point).1;
        let mut throughput = others(point);
        if point > 0 && full(point) < ONE {
            let way = fraction(ONE - full(point), full(point - 1) - full(point));
            let distance = others(point - 1).wrapping_sub(throughput) as i64;
            throughput = throughput.wrapping_add_signed((distance * way as i64) >> FRACTION_DIGITS);
        }
        throughput as f64 / ONE as f64
    }

    #[inline]
    fn change(
        &mut self,
        table: &AdmissionTable,
        class: DemandClass,
        sum: impl Fn(&mut u64, u64),
        count: impl Fn(&mut u32),
    ) {
        let Some((row, column)) = class.position() else {
            count(&mut self.undisturbed);
            for total in &mut self.computing {
                sum(total, ONE);
            }
            return;
        };
        let (mantissa, shift) = odds_of(table, class);
        let shares = &table.computing[row][column..column + POINTS];
        for ((busy, computing), &h) in self.busy.iter_mut().zip(&mut self.computing).zip(shares) {
            let h = u64::from(h);
            sum(busy, (h * mantissa) >> shift);
            sum(computing, h << (SHARE_DIGITS - TABLE_DIGITS));
        }
    }

    /// The state at a point of the grid.
    #[inline]
    fn state(&self, table: &AdmissionTable, point: usize) -> State {
        let used = ONE - table.free[point];
        State {
            free: table.free[point],
            rest: used.saturating_sub(self.busy[point]),
            others: used + self.computing[point],
        }
    }

    fn settle(&self, table: &AdmissionTable) -> Settled {
        // The bus is over-full at a point if the tasks would use more than 1 - D there; it is so up to some point.
        let full = |point: usize| self.busy[point] + table.free[point];
        let point = first(0, POINTS, |point| full(point) <= ONE).min(POINTS - 1);
        let mut state = self.state(table, point);
        if point > 0 && full(point) < ONE {
            let way = fraction(ONE - full(point), full(point - 1) - full(point));
            state = state.towards(&self.state(table, point - 1), way);
        }
        // The tasks fill the bus exactly: they leave nothing, and T = 1 - D + sum h.
        state.rest = 0;
        Settled { point, throughput: state.others, state }
    }
}

/// The odds of a class above 0 as a factor and a shift to the right: `u = h` times the factor, shifted. Below the last
/// digit nothing is left of it.
#[inline]
fn odds_of(table: &AdmissionTable, class: DemandClass) -> (u64, u32) {
    let steps = usize::from(class.0) - 1;
    let shift = 2 * TABLE_DIGITS as i32 - SHARE_DIGITS as i32 - LOWEST - (steps / STEPS) as i32;
    (u64::from(table.octave[steps % STEPS]), shift.clamp(0, 63) as u32)
}

/// `u` and `h` of one task of a class at a point of the grid, in shares.
#[inline]
fn shares_of(table: &AdmissionTable, class: DemandClass, point: usize) -> (u64, u64) {
    let Some((row, column)) = class.position() else { return (0, ONE) };
    let (mantissa, shift) = odds_of(table, class);
    let h = u64::from(table.computing[row][column + point]);
    ((h * mantissa) >> shift, h << (SHARE_DIGITS - TABLE_DIGITS))
}

/// The first number from `from` to `end - 1` for which `holds`, if it does for all after that too; else `end`. As many
/// steps as the range has binary digits, without a jump that depends on the data.
#[inline]
fn first(from: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut size) = (from, end - from);
    while size > 1 {
        let half = size / 2;
        low = if holds(low + half - 1) { low } else { low + half };
        size -= half;
    }
    if size == 1 && !holds(low) { low + 1 } else { low }
}

#[cfg(test)]
#[path = "admission_table_tests.rs"]
mod tests;
