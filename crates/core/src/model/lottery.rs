//! A lottery among threads (lucky, section 3). The caller draws the random numbers, so that the same seed gives the
//! same winners everywhere.

/// The position of the winner: each holder wins in proportion to its tickets. `random` is uniform over all 64 bits; it
/// picks the ticket, and the list is walked to its holder (lucky, steps 4 and 5). `None` if there are no tickets.
///
/// ```
/// use cosched_core::model::lottery::draw;
/// // Tickets 0 to 59 are astar's, 60 to 199 zeusmp's. A half of the whole range is the middle of the tickets.
/// assert_eq!(draw(&[60, 140], 1 << 63), Some(1));
/// assert_eq!(draw(&[60, 140], 1 << 61), Some(0));
/// assert_eq!(draw(&[0, 0], 1 << 63), None);
/// ```
#[must_use]
pub fn draw(tickets: &[u32], random: u64) -> Option<usize> {
    let total: u64 = tickets.iter().map(|&held| u64::from(held)).sum();
    let mut ticket = ((u128::from(random) * u128::from(total)) >> 64) as u64;
    for (holder, &held) in tickets.iter().enumerate() {
        match ticket.checked_sub(u64::from(held)) {
            Some(rest) => ticket = rest,
            None => return Some(holder),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn nobody_wins_without_tickets() {
        assert_eq!(draw(&[], 0), None);
        assert_eq!(draw(&[0, 0], u64::MAX), None);
        assert_eq!(draw(&[0, 1, 0], 0), Some(1));
        assert_eq!(draw(&[0, u32::MAX, 0], u64::MAX), Some(1));
    }

    #[test]
    fn draws_match_the_tickets() {
        let tickets = [1, 10, 50, 100, 100, 200, 400, 0, 139];
        let mut wins = [0u32; 9];
        let mut rng = Rng::new(1);
        for _ in 0..100_000 {
            wins[draw(&tickets, rng.next_u64()).unwrap()] += 1;
        }
        for (won, held) in wins.into_iter().zip(tickets) {
            assert!(won.abs_diff(100 * held) <= 40 + 5 * held, "{won} of {held}");
        }
    }
}
