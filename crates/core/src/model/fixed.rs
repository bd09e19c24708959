//! Integer logarithms. The [`bus_admission_table`](super::bus_admission_table) computes with them, because a kernel has no
//! floating point and no fast division.

/// Binary digits of a logarithm after the point: logarithms come in units of 2^-12 octave.
pub(super) const LOG_DIGITS: u32 = 12;
/// One octave, a factor of 2, in those units.
pub(super) const OCTAVE: i32 = 1 << LOG_DIGITS;
/// Binary digits after the point of a share (a number from 0 to 1, or a sum of such).
pub(super) const SHARE_DIGITS: u32 = 40;
/// Binary digits after the point in a table of 32-bit numbers.
pub(super) const TABLE_DIGITS: u32 = 31;
/// The share 1.
pub(super) const ONE: u64 = 1 << SHARE_DIGITS;

/// Leading digits of a number that the logarithm uses.
const MANTISSA_DIGITS: u32 = 10;
const MANTISSAS: usize = 1 << MANTISSA_DIGITS;

/// Powers of two in steps of 2^-12 octave, from 1 to 2. Only square roots and products, so the same on every machine.
pub(super) fn powers() -> Vec<f64> {
    let mut step = 2.0_f64;
    for _ in 0..LOG_DIGITS {
        step = step.sqrt();
    }
    let mut power = 1.0;
    let mut powers = Vec::with_capacity(OCTAVE as usize + 1);
    for _ in 0..OCTAVE {
        powers.push(power);
        power *= step;
    }
    powers.push(2.0);
    powers
}

/// `2^exponent`, exact.
pub(super) fn two_to(exponent: i32) -> f64 {
    let factor = if exponent < 0 { 0.5 } else { 2.0 };
    (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * factor)
}

/// Binary logarithm by look-up, with an error of at most 2^-11 octave.
#[derive(Debug, Clone)]
pub struct Logarithms {
    /// Logarithms of the mantissas from 1 to 2, in equal steps.
    pub log: [u16; MANTISSAS],
}

impl Logarithms {
    pub(super) fn new(powers: &[f64]) -> Self {
        let mut log = [0; MANTISSAS];
        let mut nearest = 0;
        for (mantissa, log) in log.iter_mut().enumerate() {
            let middle = 1.0 + (mantissa as f64 + 0.5) / MANTISSAS as f64;
            while powers[nearest + 1] <= middle {
                nearest += 1;
            }
            let up = middle * middle > powers[nearest] * powers[nearest + 1];
            *log = (nearest + usize::from(up)) as u16;
        }
        Self { log }
    }

    /// `log2(share)` in units of 2^-12 octave; 0 for a share of 1. A share of 0 counts as the smallest one.
    #[inline]
    pub(super) fn of(&self, share: u64) -> i32 {
        let share = share.max(1);
        let exponent = 63 - share.leading_zeros();
        let mantissa = (share << (63 - exponent)) << 1 >> (64 - MANTISSA_DIGITS);
        ((exponent as i32 - SHARE_DIGITS as i32) << LOG_DIGITS)
            + i32::from(self.log[mantissa as usize])
    }
}

/// Binary digits after the point of a [`fraction`].
pub(super) const FRACTION_DIGITS: u32 = 12;

/// `part / whole` in units of 2^-12, rounded down, for `part <= whole` and `whole` above 0: long division, one digit a
/// step, because the processor may have no fast division.
#[inline]
pub(super) fn fraction(mut part: u64, whole: u64) -> u64 {
    if part >= whole {
        return 1 << FRACTION_DIGITS;
    }
    let mut quotient = 0;
    for _ in 0..FRACTION_DIGITS {
        part <<= 1;
        let digit = u64::from(part >= whole);
        part -= digit * whole;
        quotient = quotient << 1 | digit;
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_the_numbers() {
        let logarithms = Logarithms::new(&powers());
        let mut share = 1_u64;
        while share < ONE {
            let exact = (share as f64 / ONE as f64).log2();
            let got = f64::from(logarithms.of(share)) / f64::from(OCTAVE);
            assert!(
                (got - exact).abs() < 0.000_9,
                "{share}: {got}, expected {exact}"
            );
            share += 1 + share / 97;
        }
        assert_eq!(logarithms.of(0), logarithms.of(1));
    }

    #[test]
    fn fractions_agree_with_division() {
        for (part, whole) in [
            (0, 1),
            (1, 3),
            (2, 3),
            (5, 5),
            (9, 5),
            (1, 1 << 48),
            ((1 << 48) - 1, 1 << 48),
        ] {
            assert_eq!(
                fraction(part, whole),
                (part.min(whole) << 12) / whole,
                "{part} / {whole}"
            );
        }
    }
}
