//! The published figures, each with the place where it stands.

/// Feliu et al., "Perf&Fair: a Progress-Aware Scheduler to Enhance Performance and Fairness in SMT Multicores".
pub(crate) mod perf_fair {
    /// Section 7.1, Figure 1: geometric means of the unfairness over 13 mixes, in per cent above 1.
    pub(crate) const UNFAIRNESS: [(&str, f64); 5] = [
        ("linux", 33.0),
        ("bandwidth", 149.0),
        ("fair", 13.5),
        ("perf-fair", 18.5),
        ("oracle", 3.5),
    ];
    /// Section 7.2, Figure 2: geometric means of the speed-up of turnaround over linux, in per cent.
    pub(crate) const SPEED_UP: [(&str, f64); 3] =
        [("bandwidth", 5.0), ("fair", 2.2), ("perf-fair", 5.6)];
    /// Section 7.1: mixes out of 13 whose unfairness passes 20 %.
    pub(crate) const MIXES_ABOVE_20: [(&str, f64); 3] =
        [("linux", 12.0), ("fair", 1.0), ("perf-fair", 4.0)];
    /// Section 7.3: the quantum at which the first job of mix 9 ends under Perf, and that at which 12 have ended under linux.
    pub(crate) const FIRST_END_QUANTA: f64 = 812.0;
    pub(crate) const HALF_END_QUANTA: f64 = 1_600.0;
    /// Sections 5 and 6: the quantum, and the time that each job takes alone, in s.
    pub(crate) const QUANTUM_S: f64 = 0.2;
    pub(crate) const SOLO_S: f64 = 100.0;
    /// Section 7.2: mean bandwidth in transactions per us that separates the groups of mixes.
    pub(crate) const GROUPS: [f64; 2] = [80.0, 120.0];
}

/// Feliu et al., "Addressing Bandwidth Contention in SMT Multicores Through Scheduling" (poster).
pub(crate) mod bandwidth {
    /// Section 2: mean speed-up of the average IPC over linux, in per cent.
    pub(crate) const SPEED_UP: f64 = 5.0;
}

/// EFS: Energy-Friendly Scheduler for memory-bandwidth-constrained systems (2016).
pub(crate) mod efs {
    /// Section 5.1: transactions per us of a program that only misses.
    pub(crate) const MU: f64 = 150.0;
    /// Eq. 25: power with no core active, and what each further active core adds, in W.
    pub(crate) const POWER_W: [f64; 5] = [26.6, 22.6, 12.0, 12.3, 12.3];
    /// Section 5.1: standard deviation between programs with 1 to 4 active cores, in per cent.
    pub(crate) const POWER_DEVIATION: [f64; 4] = [3.3, 2.8, 3.4, 5.1];
    /// Section 3.2: greatest difference between the model and the measured synthetic program in Figure 4, in per cent.
    pub(crate) const FIGURE_4_MOST: f64 = 10.0;
    /// Standard deviation of that difference, in per cent.
    pub(crate) const FIGURE_4_DEVIATION: f64 = 3.3;
    /// Section 5.2, Figure 6: solo utilisation of the program that is estimated.
    pub(crate) const FIGURE_6_SOLO: f64 = 0.57;
    /// Table 1: time in s and energy of the system in J of four copies of a program that only misses: serial, parallel
    /// under linux, parallel under EFS.
    pub(crate) const TABLE_1_S: [f64; 3] = [21.84, 27.76, 23.48];
    pub(crate) const TABLE_1_J: [f64; 3] = [904.0, 2_079.0, 1_089.0];
    /// Table 1: energy of the CPU in J.
    pub(crate) const TABLE_1_CPU_J: [f64; 3] = [527.0, 1_376.0, 527.0];
    /// Section 5.3, Figure 8: mean energy of the CPU saved, in per cent.
    pub(crate) const FIGURE_8_CPU: f64 = 12.3;
    /// Section 5.3, Figure 8: mean energy saved, mean slowdown, mean energy-delay saved, all in per cent.
    pub(crate) const FIGURE_8: (f64, f64, f64) = (7.7, 1.9, 5.4);
    /// Programs out of 25 whose energy changes by more than 3 %, their mean energy saved and mean slowdown in per cent.
    pub(crate) const AFFECTED: (f64, f64, f64) = (12.0, 17.6, 2.1);
    /// Out of so many programs.
    pub(crate) const PROGRAMS: f64 = 25.0;
    /// Energy saved and slowdown in per cent of two programs.
    pub(crate) const NAMED: [(&str, f64, f64); 2] =
        [("libquantum", 32.2, 3.7), ("GemsFDTD", 24.8, -4.2)];
    /// The greatest speed-up of a program, in per cent: GemsFDTD's.
    pub(crate) const BEST_GAIN: f64 = 4.2;
    /// Section 5.3, Figure 10: mean energy saved and mean speed-up of mixes of high demand, in per cent.
    pub(crate) const FIGURE_10: (f64, f64) = (23.7, 0.3);
}

/// Lucky scheduling for energy-efficient heterogeneous multi-core systems.
pub(crate) mod lucky {
    /// Section 1, Figure 1: how many times faster big-fair is than bias, energy saved in per cent, share of the time for
    /// which one thread had the big core under bias in per cent.
    pub(crate) const FIGURE_1: (f64, f64, f64) = (1.47, 37.0, 96.0);
    /// Section 4, Figure 3: energy-delay product saved in per cent, mean and greatest.
    pub(crate) const OVER_BIAS: (f64, f64) = (39.0, 51.0);
    /// The same over big-fair.
    pub(crate) const OVER_BIG_FAIR: (f64, f64) = (12.0, 20.0);
    /// The same in two mixes in which big-fair was better.
    pub(crate) const WORSE: [(&str, f64); 2] = [("3ci-1mi", -4.0), ("4mi", -12.0)];
    /// The same of big-fair over bias.
    pub(crate) const BIG_FAIR_OVER_BIAS: f64 = 16.0;
    /// Section 2.2: coefficient of correlation of the prediction for the other type of core.
    pub(crate) const CORRELATION: f64 = 0.98;
    /// Section 3: million misses of the last-level cache a second. The paper does not say on which core; bias scheduling
    /// measures on the one that a thread has.
    pub(crate) const MISSES: [(&str, f64); 3] =
        [("zeusmp", 14.0), ("astar", 14.0), ("bwaves", 29.0)];
}
