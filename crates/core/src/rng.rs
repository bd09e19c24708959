//! The seeded generator of a run; its position is data, so that a decision can be replayed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};

/// A generator of uniform numbers: ChaCha with 8 rounds, the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    inner: ChaCha8Rng,
}

/// The position of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RngState {
    /// The run's seed.
    pub seed: u64,
    /// 32-bit words drawn so far.
    pub position: u64,
}

impl Rng {
    /// A generator at its beginning.
    pub fn new(seed: u64) -> Rng {
        Rng {
            seed,
            inner: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// A generator that continues from `state`.
    pub fn restore(state: RngState) -> Rng {
        let mut rng = Rng::new(state.seed);
        rng.inner.set_word_pos(u128::from(state.position));
        rng
    }

    /// The position of this generator, for [`Rng::restore`].
    pub fn state(&self) -> RngState {
        RngState {
            seed: self.seed,
            position: self.inner.get_word_pos() as u64,
        }
    }

    /// 64 uniform random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// An unbiased uniform number below `bound`. A bound of 0 counts as 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        let bound = bound.max(1);
        // Reject the few values above the largest multiple of `bound`.
        let zone = u64::MAX - (u64::MAX % bound + 1) % bound;
        loop {
            let x = self.next_u64();
            if x <= zone {
                return x % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_where_it_was() {
        let mut rng = Rng::new(7);
        for _ in 0..13 {
            rng.below(1_000);
        }
        let mut again = Rng::restore(rng.state());
        assert_eq!(
            (0..50).map(|_| rng.next_u64()).collect::<Vec<_>>(),
            (0..50).map(|_| again.next_u64()).collect::<Vec<_>>()
        );
        assert_eq!(Rng::new(1).below(1), 0);
        assert_eq!(Rng::new(1).below(0), 0);
    }
}
