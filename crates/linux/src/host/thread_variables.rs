//! Variables that say how many threads a program should start.
//!
//! Many libraries start a thread for each CPU of the machine, so the threads of n jobs are n times the CPUs. Where threads
//! wait for each other, most of their time is then lost.
//!
//! The variables name the CPUs of a job at its start. A job with all CPUs of the machine gets none: its program knows these
//! by itself, and what starts several processes (joblib, torchrun) gives each fewer threads only if no variable says
//! otherwise. For the same reason no variable of a single library is set where a general one does.

use crate::spawn::Environment;

/// The number itself, for commands. A variable with the same value is not the user's own: it is of a run around this one.
const SHARE: &str = "COSCHED_THREADS";

/// The variables of libraries that start threads before they know whether work for them comes.
const VARIABLES: [&str; 3] = [
    // OpenMP. OpenBLAS, MKL, BLIS and numexpr read it, too, unless their own is set. The user's OMP_NUM_THREADS counts for
    // them as well, so their own would contradict it.
    "OMP_NUM_THREADS",
    // The pools of Rust programs.
    "RAYON_NUM_THREADS",
    // The threads of Go programs that run at once.
    "GOMAXPROCS",
];

/// The CPUs of a job that starts now, of those of the run: `jobs` are live or wait, this one included, and at most
/// `most_live` are live at once.
pub fn cpus_of_job(cpus: usize, jobs: usize, most_live: usize) -> usize {
    let live = jobs.min(most_live).max(1);
    (cpus / live).max(1)
}

/// Which variables jobs get.
pub(super) struct ThreadVariables {
    /// CPUs of the machine.
    online: usize,
    /// Maximum number of live jobs.
    pub(super) most_live: usize,
}

impl ThreadVariables {
    pub(super) fn new(online: usize, most_live: usize) -> ThreadVariables {
        ThreadVariables { online, most_live }
    }

    /// The variables for a job with so many CPUs and this environment. Those of the user stay.
    pub(super) fn of(&self, cpus: usize, environment: &Environment) -> Vec<(&'static str, String)> {
        let outer = environment.get(SHARE);
        let mut variables = vec![(SHARE, cpus.to_string())];
        for name in VARIABLES {
            let is_wanted = match environment.get(name) {
                None => cpus < self.online,
                own => own == outer,
            };
            if is_wanted {
                variables.push((name, cpus.to_string()));
            }
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_divided_among_the_jobs_that_can_be_live() {
        for (cpus, jobs, most_live, should) in [
            (16, 1, 64, 16),
            (16, 3, 64, 5),
            (16, 16, 64, 1),
            (16, 100, usize::MAX, 1),
            (16, 100, 2, 8),
            (16, 1, 2, 16),
            (1, 9, 2, 1),
            (0, 1, 0, 1),
        ] {
            assert_eq!(cpus_of_job(cpus, jobs, most_live), should);
        }
    }

    #[test]
    fn the_users_own_values_stay_and_those_of_an_outer_run_do_not() {
        let of = |cpus, own: &[(&str, &str)]| {
            let own = own.iter().map(|(name, value)| (name.into(), value.into()));
            let set = ThreadVariables::new(8, 8).of(cpus, &Environment::new(own).unwrap());
            let set = set
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"));
            set.collect::<Vec<_>>().join(" ")
        };
        let all = "COSCHED_THREADS=2 OMP_NUM_THREADS=2 RAYON_NUM_THREADS=2 GOMAXPROCS=2";
        assert_eq!(of(2, &[]), all);
        assert_eq!(of(8, &[]), "COSCHED_THREADS=8", "all CPUs of the machine");
        let own = [("OMP_NUM_THREADS", "4"), ("GOMAXPROCS", "")];
        assert_eq!(of(2, &own), "COSCHED_THREADS=2 RAYON_NUM_THREADS=2");
        let outer = [
            ("COSCHED_THREADS", "4"),
            ("OMP_NUM_THREADS", "4"),
            ("GOMAXPROCS", "3"),
        ];
        let inner = "COSCHED_THREADS=2 OMP_NUM_THREADS=2 RAYON_NUM_THREADS=2";
        assert_eq!(of(2, &outer), inner);
        assert_eq!(of(8, &outer), "COSCHED_THREADS=8 OMP_NUM_THREADS=8");
    }
}
