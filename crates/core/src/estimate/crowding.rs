//! Crowding: for some time, more threads of one process want to run than its task has CPUs.
//!
//! Only threads of one process count. They may wait for each other, and their number can be set. A build has a process
//! for each file, and loses little.

/// Consecutive observations after which a crowd counts.
const LASTING: usize = 5;
/// Least use of the CPUs that the threads want, as a share of them, by a task that had these CPUs.
const ENOUGH: f64 = 0.75;

/// The estimator of a task's crowding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowding {
    /// The threads in consecutive observations of a crowd.
    seen: Vec<u32>,
}

impl Crowding {
    /// Adds an observation: the threads that want to run of the process with the most, the CPUs of the task, and its CPU
    /// time per time. Returns the number of threads, once, when the crowd has lasted.
    pub(crate) fn add(&mut self, threads: u32, cpus: u32, used: f64) -> Option<u32> {
        if self.seen.len() == LASTING {
            return None;
        }
        let is_crowd = threads > cpus && used < ENOUGH * f64::from(threads);
        if !is_crowd {
            self.seen.clear();
            return None;
        }
        self.seen.push(threads);
        if self.seen.len() < LASTING {
            return None;
        }
        self.seen.sort_unstable();
        Some(self.seen[LASTING / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crowds that are told, as text.
    fn told(looks: &[(u32, u32, f64)]) -> String {
        let mut crowding = Crowding::default();
        let mut told = String::new();
        for &(threads, cpus, used) in looks {
            if let Some(threads) = crowding.add(threads, cpus, used) {
                told += &format!("{threads} ");
            }
        }
        told
    }

    #[test]
    fn a_crowd_that_lasts_is_told_once() {
        let crowd = [8, 9, 3, 8, 8].map(|threads| (threads, 2, 2.0));
        assert_eq!(told(&crowd), "8 ", "the median");
        assert_eq!(told(&[crowd, crowd].concat()), "8 ");
        assert_eq!(told(&crowd[..4]), "", "it may pass");
        let broken = [&crowd[..4], &[(1, 2, 1.0)], &crowd[..4]].concat();
        assert_eq!(told(&broken), "");
        assert_eq!(told(&[(2, 2, 1.0); 9]), "", "a CPU for each");
        assert_eq!(told(&[(4, 2, 3.5); 9]), "", "it had the CPUs of others");
    }
}
