//! Starvation: when a task has waited too long, and the slice it then gets (EFS, section 4.3, Eqs. 21-24).
//!
//! | symbol | meaning | unit |
//! | --- | --- | --- |
//! | `n_c` | tasks on one CPU | |
//! | `n_p` | tasks on the whole chip | |
//! | `t_period(n)` | scheduling period: in it each of `n` tasks runs once (Eq. 21) | ns |
//! | lag | greatest vruntime of the CPU's tasks minus the task's own | ns |
//! | `t_local` | lag above which the last task in line is starved (Eq. 22) | ns |
//! | `t_global` | time without running above which it is starved (Eq. 23) | ns |
//! | `c_l`, `c_g` | factors of the two: 20 and 5 in the paper | |
//!
//! A task is judged only while it has the least vruntime of its CPU.

/// The times of the starvation rule as parameters.
///
/// ```
/// use cosched_core::model::starvation::Starvation;
/// let rule = Starvation::KERNEL;
/// assert_eq!([1, 4, 5, 10].map(|n| rule.period_ns(n) / 1_000_000), [18, 18, 20, 40]);
/// assert_eq!(rule.local_ns(4), 360_000_000);
/// assert_eq!(rule.global_ns(4), 90_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starvation {
    /// Shortest scheduling period (ns): 18 ms in Eq. 21.
    pub least_period_ns: u64,
    /// Period for each task when there are many (ns): 4 ms in Eq. 21.
    pub per_task_ns: u64,
    /// Least number of tasks for which the period grows with their number: 5 in Eq. 21.
    pub many: u64,
    /// `c_l` of Eq. 22.
    pub local_factor: u64,
    /// `c_g` of Eq. 23.
    pub global_factor: u64,
    /// Least slice of a starved task (ns) (ours: a task alone on its CPU has a lag of 0, and so has the paper's slice).
    pub least_slice_ns: u64,
}

impl Starvation {
    /// The values of the paper, for a scheduler in the kernel; the least slice of 4 ms is ours.
    pub const KERNEL: Self = Self {
        least_period_ns: 18_000_000,
        per_task_ns: 4_000_000,
        many: 5,
        local_factor: 20,
        global_factor: 5,
        least_slice_ns: 4_000_000,
    };

    /// The same rule at user level: all times scaled by quantum / 18 ms (ours), rounded down.
    ///
    /// ```
    /// use cosched_core::model::starvation::Starvation;
    /// let rule = Starvation::for_quantum(180_000_000);
    /// assert_eq!(rule.period_ns(1), 180_000_000);
    /// assert_eq!(rule.global_ns(10), 2_000_000_000);
    /// ```
    #[must_use]
    pub fn for_quantum(quantum_ns: u64) -> Self {
        let kernel = Self::KERNEL;
        let scaled = |ns: u64| {
            let scaled =
                u128::from(ns) * u128::from(quantum_ns) / u128::from(kernel.least_period_ns);
            // Only times at most as long as the paper's least period are scaled, so the result is at most the quantum.
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Self {
            least_period_ns: quantum_ns,
            per_task_ns: scaled(kernel.per_task_ns),
            least_slice_ns: scaled(kernel.least_slice_ns),
            ..kernel
        }
    }

    /// `t_period(n)` (ns) (EFS, Eq. 21). Saturates instead of overflowing, like all times here.
    #[must_use]
    pub fn period_ns(&self, tasks: u64) -> u64 {
        if tasks < self.many {
            self.least_period_ns
        } else {
            self.per_task_ns.saturating_mul(tasks)
        }
    }

    /// `t_local` (ns) for `tasks` on the CPU (EFS, Eq. 22).
    #[must_use]
    pub fn local_ns(&self, tasks: u64) -> u64 {
        self.local_factor.saturating_mul(self.period_ns(tasks))
    }

    /// `t_global` (ns) for `tasks` on the chip (EFS, Eq. 23).
    #[must_use]
    pub fn global_ns(&self, tasks: u64) -> u64 {
        self.global_factor.saturating_mul(self.period_ns(tasks))
    }

    /// Whether the task with the least vruntime of its CPU is starved (EFS, section 4.3, 2a and 2b): its lag exceeds
    /// `t_local`, or it has not run for longer than `t_global`.
    ///
    /// ```
    /// use cosched_core::model::starvation::{Starvation, Wait};
    /// let waited = Wait { lag_ns: 30_000_000, not_run_ns: 95_000_000 };
    /// assert!(Starvation::KERNEL.is_starved(waited, 2, 4));
    /// // With eight tasks on the chip t_global is 160 ms.
    /// assert!(!Starvation::KERNEL.is_starved(waited, 2, 8));
    /// ```
    #[must_use]
    pub fn is_starved(&self, wait: Wait, tasks_on_cpu: u64, tasks_on_chip: u64) -> bool {
        wait.lag_ns > self.local_ns(tasks_on_cpu) || wait.not_run_ns > self.global_ns(tasks_on_chip)
    }

    /// The slice of the longest starved task (ns): the lesser of one period of its CPU and its lag, but no less than
    /// [`least_slice_ns`](Self::least_slice_ns) (EFS, section 4.3; the floor is ours).
    ///
    /// ```
    /// use cosched_core::model::starvation::Starvation;
    /// assert_eq!(Starvation::KERNEL.slice_ns(400_000_000, 2), 18_000_000);
    /// assert_eq!(Starvation::KERNEL.slice_ns(7_000_000, 2), 7_000_000);
    /// assert_eq!(Starvation::KERNEL.slice_ns(0, 1), 4_000_000);
    /// ```
    #[must_use]
    pub fn slice_ns(&self, lag_ns: u64, tasks_on_cpu: u64) -> u64 {
        lag_ns
            .min(self.period_ns(tasks_on_cpu))
            .max(self.least_slice_ns)
    }
}

/// The wait of the task with the least vruntime of its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Greatest vruntime of the CPU's tasks minus its own (ns).
    pub lag_ns: u64,
    /// Time since it last ran (ns).
    pub not_run_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_is_continuous_up_to_a_step_and_saturates() {
        let rule = Starvation::KERNEL;
        assert_eq!(rule.period_ns(0), 18_000_000);
        assert_eq!(
            (rule.period_ns(4), rule.period_ns(5)),
            (18_000_000, 20_000_000)
        );
        assert_eq!(rule.period_ns(u64::MAX), u64::MAX);
        assert_eq!(Starvation::for_quantum(rule.least_period_ns), rule);
        assert_eq!(Starvation::for_quantum(u64::MAX).period_ns(1), u64::MAX);
    }

    #[test]
    fn both_thresholds_are_exceeded_not_met() {
        let rule = Starvation::KERNEL;
        let wait = |lag_ns, not_run_ns| Wait { lag_ns, not_run_ns };
        assert!(!rule.is_starved(wait(360_000_000, 90_000_000), 4, 4));
        assert!(rule.is_starved(wait(360_000_001, 0), 4, 4));
        assert!(rule.is_starved(wait(0, 90_000_001), 4, 4));
    }
}
