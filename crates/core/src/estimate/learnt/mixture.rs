//! Intervals in which a job was in two phases.
//!
//! What is counted for each instruction is then the mean of both phases, weighted by their instructions, and so is the solo time
//! of an instruction. If both phases were measured alone, that needs no model.

use super::ROUGH;
use super::phase::{LearntPhase, SAME_PHASE, far};

/// Weight of a difference in accesses to the first-level cache, which do not depend on co-runners, relative to one in accesses to
/// the last-level cache.
const L1_TELLS: f64 = 3.0;

/// The solo time per instruction of this phase, in ns, if it is a mixture of two phases of this job that were measured alone.
pub(super) fn solo_ns_of_mixture(mixture: &LearntPhase, phases: &[LearntPhase]) -> Option<f64> {
    // Without these accesses any phase between two others would seem to be their mixture. Alone nothing takes longer.
    let observed_ns = mixture.ran / mixture.instructions.max(1.0);
    if mixture.asks.l1 == 0.0 {
        return None;
    }
    let mut nearest = (SAME_PHASE, None);
    for (ix, first) in phases.iter().enumerate() {
        for second in &phases[..ix] {
            if let Some((distance, solo_ns)) = as_mixture_of(mixture, first, second)
                && distance < nearest.0
                && solo_ns < observed_ns * (1.0 + ROUGH)
            {
                nearest = (distance, Some(solo_ns));
            }
        }
    }
    nearest.1
}

/// How far this phase is from the nearest mixture of two others, and the solo time per instruction of that mixture.
fn as_mixture_of(
    mixture: &LearntPhase,
    first: &LearntPhase,
    second: &LearntPhase,
) -> Option<(f64, f64)> {
    let types = [first, second].map(|phase| phase.core_type);
    if types != [mixture.core_type; 2] {
        return None;
    }
    let (first_ns, second_ns) = (first.measured_ns()?, second.measured_ns()?);
    let part = part_of_second(mixture, first, second)?;
    let mean = |x: f64, y: f64| x + part * (y - x);
    let (first, second) = (&first.asks, &second.asks);
    let l1 = far(mixture.asks.l1, mean(first.l1, second.l1));
    let llc = far(mixture.asks.llc, mean(first.llc, second.llc));
    Some((f64::max(L1_TELLS * l1, llc), mean(first_ns, second_ns)))
}

/// The part of the instructions that the second phase has in the nearest mixture, by least squares; `None` if the nearest is no
/// mixture.
fn part_of_second(mixture: &LearntPhase, first: &LearntPhase, second: &LearntPhase) -> Option<f64> {
    let weights = [
        L1_TELLS / mixture.asks.l1.max(f64::MIN_POSITIVE),
        1.0 / mixture.asks.llc.max(f64::MIN_POSITIVE),
    ];
    let figures = |phase: &LearntPhase| [weights[0] * phase.asks.l1, weights[1] * phase.asks.llc];
    let [from, to, at] = [first, second, mixture].map(figures);
    let (mut along, mut length) = (0.0, 0.0);
    for figure in 0..2 {
        let way = to[figure] - from[figure];
        along += way * (at[figure] - from[figure]);
        length += way * way;
    }
    let part = along / length;
    (0.0..=1.0).contains(&part).then_some(part)
}
