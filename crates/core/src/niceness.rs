//! The weights of nice values, as in the kernel: a task gets time in proportion to its weight.

/// The weights of the nice values -20 to 19 (`sched_prio_to_weight` in the kernel).
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of nice 0.
const NICE_0: u32 = 1_024;

/// The weight of a nice value, relative to nice 0. Each step divides it by about 1.25. Values beyond -20 and 19 count as
/// these.
///
/// ```
/// assert_eq!(cosched_core::weight_of_nice(0), 1.0);
/// assert_eq!(cosched_core::weight_of_nice(5), 335.0 / 1024.0);
/// ```
#[must_use]
pub fn weight_of_nice(nice: i8) -> f64 {
    f64::from(kernel_weight(nice)) / f64::from(NICE_0)
}

/// The kernel's weight of a nice value: 1024 for nice 0.
#[must_use]
pub fn kernel_weight(nice: i8) -> u32 {
    WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_quarter() {
        for nice in -20..19 {
            let step = weight_of_nice(nice) / weight_of_nice(nice + 1);
            assert!((step - 1.25).abs() < 0.06, "{nice}: {step}");
        }
        assert_eq!([-20, 0, 19].map(kernel_weight), [88_761, 1_024, 15]);
        assert_eq!(kernel_weight(-128), 88_761);
    }
}
