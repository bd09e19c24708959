//! How live runs divide the CPUs: first among users, then among each user's runs. All runs compute the same division.

use crate::run_id::RunId;
use cosched_core::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// A live run, as it has published itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuClaim {
    pub user: u32,
    pub run: RunId,
    /// The CPUs that it may use.
    pub given: CpuSet,
    /// Whether it uses all of them, by `--cpus`.
    pub is_fixed: bool,
}

/// The CPUs of each run, in the order of the claims. None is empty, unless the run was given none. Where there are fewer
/// CPUs than runs, some runs collide: those of one user before those of two.
pub(crate) fn divide(claims: &[CpuClaim], cores: &[CpuSet]) -> Vec<CpuSet> {
    let mut parts: Vec<CpuSet> = claims.iter().map(|claim| claim.given.clone()).collect();
    let mut users: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (ix, claim) in claims.iter().enumerate() {
        if !claim.is_fixed {
            parts[ix] = wish(claim, claims);
            users.entry(claim.user).or_default().push(ix);
        }
    }
    let of_users: Vec<CpuSet> = users.values().map(|runs| union(&parts, runs)).collect();
    let of_users = share_out(&of_users, cores);
    for (runs, of_user) in users.values_mut().zip(of_users) {
        runs.sort_by_key(|&ix| (claims[ix].run.start, claims[ix].run));
        let wishes: Vec<CpuSet> = runs
            .iter()
            .map(|&ix| parts[ix].intersection(&of_user))
            .collect();
        for ((&ix, wish), share) in runs.iter().zip(&wishes).zip(share_out(&wishes, cores)) {
            if !share.is_empty() {
                parts[ix] = share;
            } else if !wish.is_empty() {
                parts[ix].clone_from(wish);
            }
        }
    }
    parts
}

fn union(sets: &[CpuSet], of: &[usize]) -> CpuSet {
    of.iter().flat_map(|&ix| sets[ix].iter()).collect()
}

/// The CPUs that a run without a list would like to use: those that no run has listed. Lists of other users count only as
/// far as they leave each user an equal share.
fn wish(claim: &CpuClaim, claims: &[CpuClaim]) -> CpuSet {
    let all: BTreeSet<u32> = claims.iter().map(|other| other.user).collect();
    let free = claims.iter().filter(|other| !other.is_fixed);
    let free: BTreeSet<u32> = free.map(|other| other.user).collect();
    let fair = claim.given.len() / all.len();
    let unlisted = without_lists(claim, claims.iter());
    if unlisted.len() / free.len() >= fair.max(1) {
        return unlisted;
    }
    let own = claims.iter().filter(|other| other.user == claim.user);
    let unlisted = without_lists(claim, own);
    if unlisted.is_empty() {
        claim.given.clone()
    } else {
        unlisted
    }
}

fn without_lists<'a>(claim: &CpuClaim, others: impl Iterator<Item = &'a CpuClaim>) -> CpuSet {
    let mut left = claim.given.clone();
    for other in others.filter(|other| other.is_fixed) {
        left.remove_all(&other.given);
    }
    left
}

/// Divides all CPUs of the wishes. Those who wish the fewest come first, because they have the least choice.
fn share_out(wishes: &[CpuSet], cores: &[CpuSet]) -> Vec<CpuSet> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by_key(|&ix| wishes[ix].len());
    let mut left = union(wishes, &order);
    let mut shares = vec![CpuSet::new(); wishes.len()];
    for (place, &ix) in order.iter().enumerate() {
        let mine = wishes[ix].intersection(&left);
        let rivals = order[place..].iter();
        let rivals = rivals.filter(|&&other| !wishes[other].intersection(&mine).is_empty());
        shares[ix] = portion(&mine, rivals.count(), cores);
        left.remove_all(&shares[ix]);
    }
    // What is left over goes to those with the most choice.
    for &ix in order.iter().rev() {
        let more = wishes[ix].intersection(&left);
        left.remove_all(&more);
        shares[ix].extend(more.iter());
    }
    shares
}

/// One of `rivals` equal portions of these CPUs, of whole cores if there are enough.
fn portion(cpus: &CpuSet, rivals: usize, cores: &[CpuSet]) -> CpuSet {
    let parts = cores.iter().map(|core| core.intersection(cpus));
    let parts: Vec<CpuSet> = parts.filter(|part| !part.is_empty()).collect();
    let rivals = rivals.max(1);
    if parts.len() < rivals {
        return first(cpus, (cpus.len() / rivals).max(1), cores);
    }
    let own = parts.iter().take(parts.len() / rivals);
    own.flat_map(CpuSet::iter).collect()
}

/// The first of these CPUs, of whole cores as far as possible.
pub(crate) fn first(cpus: &CpuSet, count: usize, cores: &[CpuSet]) -> CpuSet {
    let parts = cores.iter().map(|core| core.intersection(cpus));
    let in_order: Vec<_> = parts
        .flat_map(|part| part.iter().collect::<Vec<_>>())
        .collect();
    in_order.into_iter().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn claim(user: u32, number: u32, given: &str, is_fixed: bool) -> CpuClaim {
        CpuClaim {
            user,
            run: RunId::parse(&format!("{number}-{number}-5")).unwrap(),
            given: set(given),
            is_fixed,
        }
    }

    /// Cores of two CPUs each: 0 and n, 1 and n + 1, and so on.
    fn pairs(n: u32) -> Vec<CpuSet> {
        (0..n)
            .map(|core| {
                [core, core + n]
                    .map(cosched_core::CpuId)
                    .into_iter()
                    .collect()
            })
            .collect()
    }

    fn divided(claims: &[CpuClaim], cores: &[CpuSet]) -> Vec<String> {
        let parts = divide(claims, cores);
        parts.iter().map(CpuSet::to_string).collect()
    }

    #[test]
    fn users_come_before_runs_and_cores_stay_whole() {
        let cores = pairs(4);
        let free = |user, number| claim(user, number, "0-7", false);
        assert_eq!(divided(&[free(1, 9)], &cores), ["0-7"]);
        assert_eq!(
            divided(&[free(1, 9), free(1, 8)], &cores),
            ["2-3,6-7", "0-1,4-5"],
            "the older run keeps the first CPUs"
        );
        assert_eq!(
            divided(&[free(1, 1), free(2, 2), free(2, 3)], &cores),
            ["0-1,4-5", "2,6", "3,7"]
        );
        let crowd: Vec<CpuClaim> = (0..9).map(|number| free(2, number + 1)).collect();
        let all = [crowd, vec![free(1, 20)]].concat();
        let parts = divided(&all, &cores);
        assert_eq!(parts[9], "0-1,4-5", "as against one run");
        assert_eq!(parts[8], "2-3,6-7", "too many for their CPUs");
    }

    #[test]
    fn listed_cpus_are_left_out_as_far_as_that_is_fair() {
        let cores: Vec<CpuSet> = (0..4).map(|cpu| set(&cpu.to_string())).collect();
        let free = |user, number| claim(user, number, "0-3", false);
        let listed = |user, list| claim(user, 1, list, true);
        assert_eq!(
            divided(&[listed(1, "0-1"), free(2, 2)], &cores),
            ["0-1", "2-3"]
        );
        assert_eq!(
            divided(&[listed(2, "0-2"), free(2, 2)], &cores),
            ["0-2", "3"]
        );
        assert_eq!(
            divided(&[listed(2, "0-3"), free(2, 2)], &cores),
            ["0-3", "0-3"]
        );
        assert_eq!(
            divided(&[listed(1, "0-2"), free(2, 2)], &cores),
            ["0-2", "0-3"],
            "another user may not list more than his share"
        );
        let greedy = [listed(1, "0-1"), free(1, 2), free(2, 3)];
        assert_eq!(divided(&greedy, &cores)[2], "0-1,3", "one user's share");
    }

    fn claims(most_users: u32) -> impl Strategy<Value = Vec<CpuClaim>> {
        let run = (0..most_users, 1..1000u32, any::<bool>(), any::<u8>());
        proptest::collection::vec(run, 1..12).prop_map(|runs| {
            let one = |(user, number, is_fixed, mask): (u32, u32, bool, u8)| {
                let listed = (0..8).filter(|bit| mask & (1 << bit) != 0);
                let listed: CpuSet = listed.map(cosched_core::CpuId).collect();
                let given = if listed.is_empty() {
                    set("0-7")
                } else {
                    listed
                };
                CpuClaim {
                    given,
                    ..claim(user, number, "0", is_fixed)
                }
            };
            runs.into_iter().map(one).collect()
        })
    }

    proptest! {
        #[test]
        fn runs_with_the_same_cpus_share_all_of_them(users in proptest::collection::vec(0..4u32, 1..9), smt in any::<bool>()) {
            let all: Vec<CpuClaim> = users
                .iter()
                .enumerate()
                .map(|(ix, &user)| claim(user, ix as u32 + 1, "0-15", false))
                .collect();
            let cores = if smt { pairs(8) } else { (0..16).map(|cpu| set(&cpu.to_string())).collect() };
            let parts = divide(&all, &cores);
            let together: CpuSet = parts.iter().flat_map(CpuSet::iter).collect();
            prop_assert_eq!(together, set("0-15"));
            prop_assert!(parts.iter().all(|part| !part.is_empty()));
            let distinct: BTreeSet<u32> = users.iter().copied().collect();
            // Each user has 4 CPUs or more.
            for user in &distinct {
                let own: Vec<usize> = (0..users.len()).filter(|&ix| users[ix] == *user).collect();
                let part = union(&parts, &own);
                prop_assert!(part.len() >= 16 / distinct.len() - 1);
                if own.len() <= 4 {
                    let sum: usize = own.iter().map(|&ix| parts[ix].len()).sum();
                    prop_assert_eq!(sum, part.len(), "they are disjoint");
                }
                for (ix, other) in parts.iter().enumerate() {
                    prop_assert!(users[ix] == *user || other.intersection(&part).is_empty());
                }
            }
        }

        #[test]
        fn whatever_others_claim_a_run_keeps_its_users_share(others in claims(4), order in any::<u64>()) {
            let cores: Vec<CpuSet> = (0..8).map(|cpu| set(&cpu.to_string())).collect();
            let mut all = others;
            let own = claim(9, 5000, "0-7", false);
            all.insert(order as usize % (all.len() + 1), own.clone());
            let users: BTreeSet<u32> = all.iter().map(|claim| claim.user).collect();
            let parts = divide(&all, &cores);
            let at = all.iter().position(|claim| *claim == own).unwrap();
            prop_assert!(parts[at].len() >= 8 / users.len(), "{:?} of {:?}", parts[at], all);
            for (claim, part) in all.iter().zip(&parts) {
                prop_assert!(!part.is_empty() && part.is_subset(&claim.given));
                prop_assert!(!claim.is_fixed || *part == claim.given);
            }
            // Whoever computes it finds the same.
            let mut turned: Vec<(CpuClaim, CpuSet)> = all.iter().cloned().zip(parts).collect();
            turned.rotate_left(1);
            let again: Vec<CpuClaim> = turned.iter().map(|(claim, _)| claim.clone()).collect();
            prop_assert_eq!(divide(&again, &cores)[(at + all.len() - 1) % all.len()].clone(), turned[(at + all.len() - 1) % all.len()].1.clone());
        }
    }
}
