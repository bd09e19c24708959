//! The arithmetic of the workloads: a step that the compiler can neither compute in advance nor shorten, and a seeded
//! generator.

/// The multiplier of Knuth's linear congruential generator MMIX: odd, with no pattern in its bits.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// One step of an idle loop: four dependent operations (shift, exclusive or, multiply, add), about six cycles.
///
/// Shifts and products together leave no closed form for many steps, so a loop of them can't be folded. The step is a
/// bijection: different states stay different.
#[inline(always)]
fn step(state: u64) -> u64 {
    (state ^ (state >> 32))
        .wrapping_mul(MULTIPLIER)
        .wrapping_add(1)
}

/// `count` steps, each of which needs the one before.
#[inline(always)]
pub fn spin(mut state: u64, count: u64) -> u64 {
    for _ in 0..count {
        state = step(state);
    }
    state
}

/// Adds a value to a checksum in which the order of values matters. It is short (two cycles), so that it overlaps
/// with the load of the next value.
#[inline(always)]
pub fn fold(checksum: u64, value: u64) -> u64 {
    checksum.rotate_left(5) ^ value
}

/// SplitMix64, a small seeded generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014): every seed is good, and it is fast enough to shuffle gigabytes in the set-up.
#[derive(Clone)]
pub struct Generator(u64);

impl Generator {
    /// A generator whose whole sequence follows from the seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`. The bias, at most `bound` / 2^64, does not matter for an order of visits.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // The first outputs of SplitMix64 for the seed 1234567, as its reference program prints them.
        let mut generator = Generator::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(
            [generator.next(), generator.next(), generator.next()],
            expected
        );
    }

    #[test]
    fn bounded_numbers_stay_below_their_bound_and_reach_every_value() {
        let mut generator = Generator::new(3);
        let mut seen = [false; 7];
        for _ in 0..200 {
            seen[usize::try_from(generator.below(7)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 7]);
    }

    #[test]
    fn spinning_is_stepping_again_and_again() {
        assert_eq!(spin(5, 0), 5);
        assert_eq!(spin(5, 3), step(step(step(5))));
    }
}
