//! Selection by FITNESS (Feliu et al.; Xu et al.): the task whose bandwidth is nearest to the remaining bandwidth per
//! free CPU.
//!
//! FITNESS(p) = 1 / |BW_remain / CPU_remain - BW(p)| is greatest where |BW_remain - BW(p) x CPU_remain| is least. The
//! latter is compared in whole numbers. Candidates with equal bandwidth form a group, ordered by rank. Groups are
//! sorted once. A binary search finds the nearest group on either side of the wanted bandwidth, and path-compressed
//! links skip empty groups. So choosing m of n candidates takes O(n log n) in all, where a scan for every CPU takes O(n
//! m).
//!
//! A gang is compared by its bandwidth per CPU.

/// A candidate for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitnessCandidate {
    /// The caller's number.
    pub index: u32,
    /// Rank for ties: 0 is the longest waiting. All ranks differ.
    pub rank: u32,
    /// Reads from memory per CPU, in transactions per millisecond.
    pub bandwidth: u64,
    /// Number of CPUs it needs.
    pub cpus: u32,
}

/// Candidates sorted for selection.
#[derive(Debug)]
pub struct FitnessQueue {
    /// Sorted by bandwidth, then rank.
    candidates: Vec<FitnessCandidate>,
    groups: Vec<Group>,
    /// Link to the nearest non-empty group at or above; `groups.len()` if there is none.
    up: Vec<u32>,
    /// Link to the nearest non-empty group at or below, plus 1; 0 if there is none.
    down: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    bandwidth: u64,
    next: u32,
    end: u32,
}

impl FitnessQueue {
    /// Sorts the candidates, in O(n log n).
    pub fn new(mut candidates: Vec<FitnessCandidate>) -> FitnessQueue {
        candidates.sort_unstable_by_key(|c| (c.bandwidth, c.rank));
        let mut groups: Vec<Group> = Vec::with_capacity(candidates.len());
        for (ix, candidate) in candidates.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.bandwidth == candidate.bandwidth => group.end += 1,
                _ => groups.push(Group {
                    bandwidth: candidate.bandwidth,
                    next: ix as u32,
                    end: ix as u32 + 1,
                }),
            }
        }
        let up = (0..=groups.len() as u32).collect();
        let down = (0..=groups.len() as u32).collect();
        FitnessQueue {
            candidates,
            groups,
            up,
            down,
        }
    }

    /// The gap between a group's bandwidth and the target, then the rank of its first candidate.
    fn misfit(&self, group: &Group, remain: i128, cpus: i128) -> (u128, u32) {
        let gap = (remain - i128::from(group.bandwidth) * cpus).unsigned_abs();
        (gap, self.candidates[group.next as usize].rank)
    }

    /// Takes out the fittest candidate; ties go to the lower rank. `None` if no candidate is left.
    ///
    /// `remain` is the remaining bandwidth, which can be negative; `cpus` is the number of free CPUs, at least 1.
    pub fn take(&mut self, remain: i128, cpus: u32) -> Option<FitnessCandidate> {
        let cpus = i128::from(cpus);
        let split = self
            .groups
            .partition_point(|group| i128::from(group.bandwidth) * cpus < remain);
        let above = find(&mut self.up, split as u32) as usize;
        let below = find(&mut self.down, split as u32) as usize;
        let group = match (below.checked_sub(1), self.groups.get(above)) {
            (None, None) => return None,
            (Some(below), None) => below,
            (None, Some(_)) => above,
            (Some(below), Some(high)) => {
                let low = &self.groups[below];
                if self.misfit(low, remain, cpus) < self.misfit(high, remain, cpus) {
                    below
                } else {
                    above
                }
            }
        };
        let chosen = self.candidates[self.groups[group].next as usize];
        self.groups[group].next += 1;
        if self.groups[group].next == self.groups[group].end {
            self.up[group] = group as u32 + 1;
            self.down[group + 1] = group as u32;
        }
        Some(chosen)
    }
}

/// The root of `start`. Shortens the path to it.
fn find(links: &mut [u32], start: u32) -> u32 {
    let mut root = start;
    while links[root as usize] != root {
        root = links[root as usize];
    }
    let mut at = start;
    while links[at as usize] != root {
        at = std::mem::replace(&mut links[at as usize], root);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, as a scan.
    fn scan(left: &mut Vec<FitnessCandidate>, remain: i128, cpus: u32) -> Option<FitnessCandidate> {
        let gap = |c: &FitnessCandidate| {
            (remain - i128::from(c.bandwidth) * i128::from(cpus)).unsigned_abs()
        };
        let best = left
            .iter()
            .enumerate()
            .min_by_key(|(_, c)| (gap(c), c.rank))?
            .0;
        Some(left.remove(best))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn takes_what_a_scan_takes(
            bandwidths in proptest::collection::vec(0u64..40, 0..60),
            target in 0i128..2_000,
            cpus in 1u32..70,
        ) {
            let n = bandwidths.len() as u32;
            let mut all: Vec<FitnessCandidate> = bandwidths
                .iter()
                .enumerate()
                .map(|(ix, &bandwidth)| FitnessCandidate {
                    index: ix as u32,
                    // Any order other than that of the index.
                    rank: (n - 1 - ix as u32) ^ 1,
                    bandwidth,
                    cpus: 1,
                })
                .collect();
            let mut queue = FitnessQueue::new(all.clone());
            let (mut remain, mut left) = (target, cpus);
            while left > 0 {
                let expected = scan(&mut all, remain, left);
                let got = queue.take(remain, left);
                prop_assert_eq!(got, expected);
                let Some(got) = got else { break };
                remain -= i128::from(got.bandwidth);
                left -= 1;
            }
        }
    }

    #[test]
    fn ties_go_to_the_longest_waiting() {
        let c = |index, rank, bandwidth| FitnessCandidate {
            index,
            rank,
            bandwidth,
            cpus: 1,
        };
        // 8 and 12 are equally far from 10; so are both tens.
        let mut queue = FitnessQueue::new(vec![c(0, 3, 8), c(1, 2, 12), c(2, 1, 10), c(3, 0, 10)]);
        let order: Vec<u32> = (0..4).map(|_| queue.take(10, 1).unwrap().index).collect();
        assert_eq!(order, [3, 2, 1, 0]);
        assert_eq!(queue.take(10, 1), None);
    }
}
