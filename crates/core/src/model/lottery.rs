//! A lottery over a changing set of holders (lucky, section 3), with O(log m) draw and update.
//!
//! The paper's implementation walks a list, O(m), and names a tree as the remedy for hundreds of threads. This is a
//! binary indexed tree: node `i` holds the tickets of the `i & -i` slots that end with slot `i`. It makes no random
//! numbers: the caller draws them, so that the same seed gives the same winners everywhere.

use thiserror::Error;

/// A holder's place in a [`Lottery`], given by [`Lottery::insert`] and reused after [`Lottery::remove`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot as an index for arrays beside the lottery: from 0, below the greatest number of holders that there ever
    /// was.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a [`Lottery`] refuses a change. The lottery is then unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LotteryError {
    /// The slot was never given out, or its holder was removed.
    #[error("there is no holder in slot {}", .0.0)]
    NoHolder(Slot),
    /// The slots are numbered with 32 bits.
    #[error("the lottery is full")]
    Full,
}

/// Holders and their tickets.
///
/// ```
/// use cosched_core::model::lottery::Lottery;
/// let mut lottery = Lottery::new();
/// let astar = lottery.insert(60)?;
/// let zeusmp = lottery.insert(140)?;
/// // Tickets 0 to 59 are astar's, 60 to 199 zeusmp's.
/// assert_eq!(lottery.total(), 200);
/// assert_eq!((lottery.holder(59), lottery.holder(60), lottery.holder(200)), (Some(astar), Some(zeusmp), None));
/// // A random number of 64 bits picks a ticket: a half of the whole range is the middle of the tickets.
/// assert_eq!(lottery.draw(1 << 63), Some(zeusmp));
/// lottery.remove(zeusmp)?;
/// assert_eq!(lottery.draw(1 << 63), Some(astar));
/// # Ok::<(), cosched_core::model::lottery::LotteryError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lottery {
    /// Tickets of each slot; `None` where there is no holder.
    tickets: Vec<Option<u32>>,
    /// Sums: entry `i - 1` covers the slots `i - (i & -i)` to `i - 1`.
    tree: Vec<u64>,
    free: Vec<Slot>,
    total: u64,
}

impl Lottery {
    /// A lottery without holders.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many holders there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tickets.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tickets together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The tickets of a holder; `None` if the slot has no holder.
    #[must_use]
    pub fn tickets(&self, slot: Slot) -> Option<u32> {
        self.tickets.get(slot.index()).copied().flatten()
    }

    /// Adds a holder, in O(log m). A holder without tickets may take part but never wins.
    ///
    /// # Errors
    /// [`LotteryError::Full`] after 2^32 holders at one time.
    pub fn insert(&mut self, tickets: u32) -> Result<Slot, LotteryError> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = Slot(u32::try_from(self.tickets.len()).map_err(|_| LotteryError::Full)?);
                self.tickets.push(None);
                // The new node covers slots that may hold tickets already: the nodes below it have their sums.
                let end = self.tree.len() + 1;
                let (mut node, mut sum) = (end - 1, 0);
                while node > end - lowest_bit(end) {
                    sum += self.tree[node - 1];
                    node -= lowest_bit(node);
                }
                self.tree.push(sum);
                slot
            }
        };
        self.tickets[slot.index()] = Some(tickets);
        self.add(slot, u64::from(tickets));
        Ok(slot)
    }

    /// Sets the number of tickets of a holder, in O(log m).
    ///
    /// # Errors
    /// [`LotteryError::NoHolder`] when the slot has no holder.
    pub fn set(&mut self, slot: Slot, tickets: u32) -> Result<(), LotteryError> {
        let before = self.tickets(slot).ok_or(LotteryError::NoHolder(slot))?;
        self.tickets[slot.index()] = Some(tickets);
        self.add(slot, u64::from(tickets).wrapping_sub(u64::from(before)));
        Ok(())
    }

    /// Removes a holder, in O(log m), and returns its tickets.
    ///
    /// # Errors
    /// [`LotteryError::NoHolder`] when the slot has no holder.
    pub fn remove(&mut self, slot: Slot) -> Result<u32, LotteryError> {
        let tickets = self.tickets(slot).ok_or(LotteryError::NoHolder(slot))?;
        self.add(slot, 0_u64.wrapping_sub(u64::from(tickets)));
        self.tickets[slot.index()] = None;
        self.free.push(slot);
        Ok(tickets)
    }

    /// The holder of this ticket, in O(log m). Tickets are numbered from 0 to below [`total`](Self::total), in the
    /// order of the slots.
    #[must_use]
    pub fn holder(&self, ticket: u64) -> Option<Slot> {
        if ticket >= self.total {
            return None;
        }
        let (mut node, mut left) = (0, ticket);
        let mut step = highest_bit(self.tree.len());
        while step > 0 {
            let next = node + step;
            if let Some(&sum) = self.tree.get(next - 1)
                && sum <= left
            {
                left -= sum;
                node = next;
            }
            step >>= 1;
        }
        Some(Slot(node as u32))
    }

    /// The winner for a random number that is uniform over all 64 bits; `None` if there are no tickets (lucky, steps 4
    /// and 5). A holder wins in proportion to its tickets, up to one part in 2^64 / total.
    #[must_use]
    pub fn draw(&self, random: u64) -> Option<Slot> {
        self.holder(((u128::from(random) * u128::from(self.total)) >> 64) as u64)
    }

    /// Adds `change`, which wraps when it stands for a negative number, to all sums that cover the slot.
    fn add(&mut self, slot: Slot, change: u64) {
        let mut node = slot.index() + 1;
        while let Some(sum) = self.tree.get_mut(node - 1) {
            *sum = sum.wrapping_add(change);
            node += lowest_bit(node);
        }
        self.total = self.total.wrapping_add(change);
    }
}

fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

fn highest_bit(number: usize) -> usize {
    number.checked_ilog2().map_or(0, |bit| 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::samples::cases;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// The oracle: the paper's list, walked from the start.
    fn scan(holders: &[Option<u32>], mut ticket: u64) -> Option<usize> {
        holders.iter().position(|tickets| {
            let tickets = u64::from(tickets.unwrap_or(0));
            let wins = ticket < tickets;
            ticket = ticket.saturating_sub(tickets);
            wins
        })
    }

    #[test]
    fn nobody_wins_without_tickets() {
        let mut lottery = Lottery::new();
        assert_eq!((lottery.draw(0), lottery.is_empty()), (None, true));
        let slot = lottery.insert(0).unwrap();
        assert_eq!((lottery.draw(u64::MAX), lottery.len()), (None, 1));
        lottery.set(slot, u32::MAX).unwrap();
        assert_eq!(lottery.draw(u64::MAX), Some(slot));
        assert_eq!(lottery.remove(slot), Ok(u32::MAX));
        assert_eq!(lottery.remove(slot), Err(LotteryError::NoHolder(slot)));
        assert_eq!(lottery.set(slot, 1), Err(LotteryError::NoHolder(slot)));
        assert_eq!(lottery.insert(5).unwrap(), slot);
    }

    #[test]
    fn draws_match_the_tickets() {
        let tickets = [1, 10, 50, 100, 100, 200, 400, 0, 139];
        let mut lottery = Lottery::new();
        let slots: Vec<Slot> = tickets
            .iter()
            .map(|&tickets| lottery.insert(tickets).unwrap())
            .collect();
        let mut random = ChaCha8Rng::seed_from_u64(15);
        let draws = 1_000_000;
        let mut wins = vec![0_u32; tickets.len()];
        for _ in 0..draws {
            let winner = lottery.draw(random.next_u64()).unwrap();
            wins[slots.iter().position(|&slot| slot == winner).unwrap()] += 1;
        }
        let chi_square: f64 = tickets
            .iter()
            .zip(&wins)
            .filter(|(tickets, _)| **tickets > 0)
            .map(|(&tickets, &wins)| {
                let expected = f64::from(draws) * f64::from(tickets) / lottery.total() as f64;
                (f64::from(wins) - expected).powi(2) / expected
            })
            .sum();
        // 7 degrees of freedom: 1 in 1,000 exceeds 24.3 by chance; the seed is fixed.
        assert!(chi_square < 24.3, "{chi_square}: {wins:?}");
        assert_eq!(wins[7], 0);
    }

    #[derive(Debug, Clone)]
    enum Change {
        Insert(u32),
        Set(usize, u32),
        Remove(usize),
        Draw(u64),
    }

    fn change() -> impl Strategy<Value = Change> {
        let tickets = || prop_oneof![0_u32..300, Just(u32::MAX)];
        prop_oneof![
            3 => tickets().prop_map(Change::Insert),
            1 => (any::<usize>(), tickets()).prop_map(|(which, tickets)| Change::Set(which, tickets)),
            1 => any::<usize>().prop_map(Change::Remove),
            3 => any::<u64>().prop_map(Change::Draw),
        ]
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn agrees_with_a_list_through_all_changes(changes in prop::collection::vec(change(), 1..300)) {
            let mut lottery = Lottery::new();
            let mut list: Vec<Option<u32>> = Vec::new();
            for change in changes {
                let present: Vec<usize> = (0..list.len()).filter(|&slot| list[slot].is_some()).collect();
                match change {
                    Change::Insert(tickets) => {
                        let slot = lottery.insert(tickets).unwrap().index();
                        list.resize(list.len().max(slot + 1), None);
                        prop_assert!(list[slot].replace(tickets).is_none());
                    }
                    Change::Set(which, tickets) if !present.is_empty() => {
                        let slot = present[which % present.len()];
                        lottery.set(Slot(slot as u32), tickets).unwrap();
                        list[slot] = Some(tickets);
                    }
                    Change::Remove(which) if !present.is_empty() => {
                        let slot = present[which % present.len()];
                        prop_assert_eq!(lottery.remove(Slot(slot as u32)).ok(), list[slot].take());
                    }
                    Change::Draw(ticket) => {
                        let ticket = ticket % (lottery.total() + 2);
                        prop_assert_eq!(lottery.holder(ticket).map(Slot::index), scan(&list, ticket));
                    }
                    Change::Set(..) | Change::Remove(..) => {}
                }
                let total: u64 = list.iter().flatten().map(|&tickets| u64::from(tickets)).sum();
                prop_assert_eq!(lottery.total(), total);
                prop_assert_eq!(lottery.len(), list.iter().flatten().count());
            }
        }
    }
}
