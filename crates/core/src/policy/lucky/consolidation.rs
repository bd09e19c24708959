//! On which cores all tasks together are most efficient.

use super::super::core_types::Split;
use super::shared_memory::SharedMemory;
use super::types::CoreTypes;

/// The numbers of big and small CPUs, at most one for each CPU that tasks need, on which all tasks together are most
/// efficient (MIPS^2 / W) if these CPUs are busy and the others need no power. `None` before measurements.
pub(super) fn most_efficient(
    types: &CoreTypes,
    split: &Split<'_>,
    memory: &SharedMemory,
) -> Option<(usize, usize)> {
    let known = split.free.iter().filter_map(|&ix| {
        let speeds = types.speeds(split, ix)?;
        let demand = memory.demand(ix) / speeds.here;
        Some([
            speeds.big,
            speeds.small,
            demand * speeds.big,
            demand * speeds.small,
        ])
    });
    let [big, small, big_demand, small_demand] = means(known)?;
    let needed = split.free.iter().map(|&ix| split.task(ix).cpus as usize);
    let needed: usize = needed.sum();
    let sizes = split.sizes();
    let (mut best, mut most) = (None, 0.0);
    for bigs in (0..=sizes.0.min(needed)).rev() {
        let least = usize::from(bigs == 0);
        for smalls in (least..=sizes.1.min(needed - bigs)).rev() {
            let slowed = memory.slowed(&[(bigs, big_demand), (smalls, small_demand)]);
            let (on_big, on_small) = (big * slowed, small * slowed);
            let mips = bigs as f64 * on_big + smalls as f64 * on_small;
            let watts = bigs as f64 * types.big.power_w(on_big).ok()?
                + smalls as f64 * types.small.power_w(on_small).ok()?;
            if mips * mips / watts > most {
                (best, most) = (Some((bigs, smalls)), mips * mips / watts);
            }
        }
    }
    best
}

/// The mean of each of four quantities; `None` of nothing.
fn means(all: impl Iterator<Item = [f64; 4]>) -> Option<[f64; 4]> {
    let (mut sums, mut count) = ([0.0; 4], 0.0);
    for values in all {
        count += 1.0;
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    (count > 0.0).then(|| sums.map(|sum| sum / count))
}
