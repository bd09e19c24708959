//! What is compared: laws, mixes of jobs, and policies.

use crate::run::{LawJob, job};
use cosched_core::{POLICIES, Rng};

/// A law, and what a user's measurement of its machine would say. `cosched calibrate` measures by loads of its own, which
/// the law does not see.
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// Lines that the memory moves in a microsecond.
    mu_trans_per_us: &'static str,
    /// Power in watts: without jobs, and what the first, the second and each further core with one job adds.
    power_w: [&'static str; 4],
}

pub(crate) const LAWS: [Law; 3] = [
    Law {
        name: "bus",
        mu_trans_per_us: "166",
        power_w: ["11", "6.4", "6.4", "6.4"],
    },
    Law {
        name: "cache",
        mu_trans_per_us: "160",
        power_w: ["11", "6.4", "6.4", "6.4"],
    },
    // The clock falls from 3.3 GHz with one busy core to 2.6 GHz with four.
    Law {
        name: "smt",
        mu_trans_per_us: "160",
        power_w: ["11", "8.0", "7.7", "5.4"],
    },
];

/// Jobs that run together. Each takes 2 to 5 s alone.
pub(crate) struct LawMix {
    pub(crate) name: &'static str,
    /// Programs and their instructions.
    jobs: &'static [(&'static str, &'static str)],
}

pub(crate) const MIXES: [LawMix; 2] = [
    LawMix {
        name: "half streams and copies",
        jobs: &[
            ("stream", "8e9"),
            ("stream", "7e9"),
            ("stream", "6e9"),
            ("stream", "5e9"),
            ("stream", "4e9"),
            ("copy", "9e9"),
            ("copy", "7e9"),
            ("copy", "5e9"),
            ("chase", "3e9"),
            ("chase", "18e8"),
            ("compute", "27e9"),
            ("compute", "15e9"),
            ("reuse", "9e9"),
            ("fit", "18e9"),
            ("fit", "10e9"),
            ("turns", "12e9"),
        ],
    },
    LawMix {
        name: "three jobs of each program",
        jobs: &[
            ("stream", "8e9"),
            ("stream", "6e9"),
            ("stream", "4e9"),
            ("copy", "9e9"),
            ("copy", "7e9"),
            ("copy", "4e9"),
            ("chase", "32e8"),
            ("chase", "22e8"),
            ("chase", "14e8"),
            ("compute", "28e9"),
            ("compute", "20e9"),
            ("compute", "13e9"),
            ("reuse", "11e9"),
            ("reuse", "8e9"),
            ("reuse", "5e9"),
            ("fit", "20e9"),
            ("fit", "15e9"),
            ("fit", "9e9"),
            ("turns", "13e9"),
            ("turns", "10e9"),
            ("turns", "6e9"),
            ("waves", "9e9"),
            ("waves", "7e9"),
            ("waves", "4e9"),
        ],
    },
];

impl LawMix {
    /// Its jobs, in an order of their own for each repeat.
    pub(crate) fn jobs(&self, repeat: usize) -> Vec<LawJob> {
        let mut jobs = Vec::new();
        for (number, (program, instructions)) in self.jobs.iter().enumerate() {
            let name = format!("{program}-{}", number + 1);
            jobs.push(job(&name, program, instructions));
        }
        let mut rng = Rng::new(repeat as u64);
        for last in (1..jobs.len()).rev() {
            jobs.swap(last, rng.below(last as u64 + 1) as usize);
        }
        jobs
    }
}

/// What a candidate is given beside its parameters.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    Nothing,
    /// The powers of the machine, and the rate of its memory.
    PowersAndRate,
    /// A solo run of each job.
    SoloRuns,
}

/// A policy with parameters.
pub(crate) struct Candidate {
    policy: &'static str,
    params: &'static [&'static str],
    given: Given,
}

const fn candidate(
    policy: &'static str,
    params: &'static [&'static str],
    given: Given,
) -> Candidate {
    Candidate {
        policy,
        params,
        given,
    }
}

/// The first one is the measure for the others.
pub(crate) const CANDIDATES: [Candidate; 13] = [
    candidate("linux", &[], Given::Nothing),
    candidate("fifo", &[], Given::Nothing),
    candidate("round-robin", &[], Given::Nothing),
    candidate("spread", &[], Given::Nothing),
    candidate("bandwidth", &[], Given::Nothing),
    candidate("fair", &[], Given::Nothing),
    candidate("perf-fair", &[], Given::Nothing),
    candidate("oracle", &[], Given::SoloRuns),
    candidate("efs", &[], Given::PowersAndRate),
    candidate("efs", &["objective=throughput"], Given::PowersAndRate),
    candidate("even", &[], Given::Nothing),
    candidate("even", &["objective=mean"], Given::Nothing),
    candidate("auto", &[], Given::Nothing),
];

/// Policies that have nothing to decide on a machine with one memory and one type of core.
const LEFT_OUT: [&str; 4] = ["place", "bias", "big-fair", "lucky"];

impl Candidate {
    pub(crate) fn name(&self) -> String {
        let mut words = vec![self.policy];
        words.extend(self.params);
        words.join(" ")
    }

    /// The options of its runs; the solo runs are in a file.
    pub(crate) fn options(&self, law: &Law, solo: &str) -> Vec<String> {
        let [p0, p1, p2, more] = law.power_w;
        let powers = [("p0_w", p0), ("p1_w", p1), ("p2_w", p2), ("p_more_w", more)];
        let mut params: Vec<String> = self.params.iter().map(|&param| param.to_owned()).collect();
        if self.given == Given::PowersAndRate {
            params.extend(powers.map(|(name, watts)| format!("{name}={watts}")));
            params.push(format!("mu_trans_per_us={}", law.mu_trans_per_us));
        }
        let mut options = vec!["--policy".to_owned(), self.policy.to_owned()];
        for param in params {
            options.extend(["--param".to_owned(), param]);
        }
        if self.given == Given::SoloRuns {
            options.extend(["--solo".to_owned(), solo.to_owned()]);
        }
        options
    }
}

/// A new policy is compared, or it is said why not.
#[test]
fn no_policy_is_forgotten() {
    for policy in POLICIES {
        let is_compared = CANDIDATES
            .iter()
            .any(|candidate| candidate.policy == policy.name);
        assert!(
            is_compared != LEFT_OUT.contains(&policy.name),
            "{} is neither compared nor left out, or both",
            policy.name
        );
    }
}
