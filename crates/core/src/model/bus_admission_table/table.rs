//! The tables: the speed of a task by its class and the free share of the bus.

use super::class::{DemandClass, HIGHEST, LOWEST, PHASES, STEPS};
use crate::model::error::{ModelError, check_share};
use crate::model::fixed::{
    LOG_DIGITS, Logarithms, OCTAVE, ONE, SHARE_DIGITS, TABLE_DIGITS, powers, two_to,
};

/// Points of the grid: point `i` is `D = 2^(-i/2)`.
pub(super) const POINTS: usize = 65;
/// 1 in the units of the tables.
const TABLE_ONE: f64 = (1_u64 << TABLE_DIGITS) as f64;
const COLUMNS: usize = (HIGHEST - LOWEST) as usize * 2 + POINTS;

/// The tables: constant, about 30 KB, one for a whole machine.
#[derive(Debug, Clone)]
pub struct BusAdmissionTable {
    /// `h` in units of 2^-31: a row for each step of half an octave of the odds, a column for each half octave of odds
    /// over free share.
    pub computing: Box<[[u32; COLUMNS]; PHASES]>,
    /// `2^(step / 64)` for the steps of an octave, in units of 2^-31.
    pub octave: [u32; STEPS],
    /// `D` of each point of the grid, in units of 2^-40.
    pub free: [u64; POINTS],
    /// Logarithms of the mantissas from 1 to 2, in units of 2^-12 octave.
    pub logarithms: Box<Logarithms>,
}

impl Default for BusAdmissionTable {
    fn default() -> Self {
        Self::new()
    }
}

impl BusAdmissionTable {
    /// Computes the tables with sums, products, quotients and square roots only, so that they are the same on every
    /// machine.
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
            (fine(point % 2 * STEPS / 2) * two_to(-(point.div_ceil(2) as i32)) * ONE as f64 + 0.5)
                as u64
        });
        Self {
            computing,
            octave,
            free,
            logarithms: Box::new(Logarithms::new(&powers)),
        }
    }

    /// The class nearest to the solo utilisation `solo`, from 0 to 1.
    ///
    /// ```
    /// use cosched_core::model::bus_admission_table::{BusAdmissionTable, DemandClass};
    /// let table = BusAdmissionTable::new();
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
        // Exponent and mantissa of the number, the latter as a share between 1 and 2.
        let bits = odds.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let mantissa = (bits & ((1 << 52) - 1) | 1 << 52) >> (52 - SHARE_DIGITS);
        Ok(self.class_at((exponent << LOG_DIGITS) + self.logarithms.of(mantissa)))
    }

    /// The solo utilisation in the middle of a class in units of 2^-31.
    #[must_use]
    pub fn demand_share(&self, class: DemandClass) -> u32 {
        (self.demand(class) * TABLE_ONE + 0.5) as u32
    }

    /// The solo utilisation in the middle of a class, from 0 to 0.99902.
    #[must_use]
    pub fn demand(&self, class: DemandClass) -> f64 {
        let Some(steps) = usize::from(class.number()).checked_sub(1) else {
            return 0.0;
        };
        let mantissa = f64::from(self.octave[steps % STEPS]) / TABLE_ONE;
        let odds = mantissa * two_to((steps / STEPS) as i32 + LOWEST);
        odds / (1.0 + odds)
    }

    /// The class nearest to odds with this logarithm.
    #[inline]
    pub(super) fn class_at(&self, log: i32) -> DemandClass {
        const STEP: i32 = OCTAVE / STEPS as i32;
        DemandClass::at((log + STEP / 2).div_euclid(STEP))
    }

    /// The odds of a class above 0 as a factor and a shift to the right: `u = h` times the factor, shifted. A shift
    /// beyond the last digit gives 0.
    #[inline]
    pub(super) fn odds_of(&self, class: DemandClass) -> (u64, u32) {
        let steps = usize::from(class.number()) - 1;
        let shift = 2 * TABLE_DIGITS as i32 - SHARE_DIGITS as i32 - LOWEST - (steps / STEPS) as i32;
        (
            u64::from(self.octave[steps % STEPS]),
            shift.clamp(0, 63) as u32,
        )
    }

    /// `u` and `h` of one task of a class at a point of the grid, in shares.
    #[inline]
    pub(super) fn shares_of(&self, class: DemandClass, point: usize) -> (u64, u64) {
        let Some((row, column)) = class.position() else {
            return (0, ONE);
        };
        let (mantissa, shift) = self.odds_of(class);
        let h = u64::from(self.computing[row][column + point]);
        ((h * mantissa) >> shift, h << (SHARE_DIGITS - TABLE_DIGITS))
    }
}
