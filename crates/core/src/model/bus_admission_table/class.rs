//! Classes of demand: solo utilisations in equal steps of the logarithm of their odds.

/// Number of classes per octave of the odds.
pub(super) const STEPS: usize = 64;
/// Octave of the lowest class above 0, and of the highest class.
pub(super) const LOWEST: i32 = -42;
pub(super) const HIGHEST: i32 = 10;
/// Number of classes per step of the grid of free shares. Classes that differ by a multiple of it share a row of the
/// table.
pub(super) const PHASES: usize = STEPS / 2;

/// A solo utilisation, rounded to one of 3,330 classes. Classes compare like utilisations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DemandClass(u16);

impl DemandClass {
    /// The class of tasks that do not use the bus.
    pub const ZERO: Self = Self(0);
    /// The class of the greatest demands: 1024/1025 = 0.99902 and all above.
    pub const HIGHEST: Self = Self(((HIGHEST - LOWEST) as usize * STEPS + 1) as u16);

    /// The number of the class, from 0, as a kernel stores it.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The class with this number; `None` above [`HIGHEST`](Self::HIGHEST).
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        (number <= Self::HIGHEST.0).then_some(Self(number))
    }

    /// The class whose odds have this logarithm, in steps. The caller rounds to the nearest.
    pub(super) fn at(steps: i32) -> Self {
        let above = steps - LOWEST * STEPS as i32 + 1;
        Self(above.clamp(0, i32::from(Self::HIGHEST.0)) as u16)
    }

    /// Row and first column in the table of a class above 0.
    #[inline]
    pub(super) fn position(self) -> Option<(usize, usize)> {
        (self.0 > 0).then(|| {
            let steps = usize::from(self.0) - 1;
            (steps % PHASES, steps / PHASES)
        })
    }
}
