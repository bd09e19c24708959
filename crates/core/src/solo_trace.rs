//! A task's solo IPC, instruction by instruction, recorded in a solo run.

use serde::{Deserialize, Serialize};

/// One stretch of a solo run: from the previous point, or the start, to this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, f64)", into = "(u64, f64)")]
pub struct SoloPoint {
    /// Instructions retired from the start of the task to the end of the stretch.
    pub instructions: u64,
    /// Instructions per cycle over the stretch.
    pub ipc: f64,
}

impl From<(u64, f64)> for SoloPoint {
    fn from((instructions, ipc): (u64, f64)) -> SoloPoint {
        SoloPoint { instructions, ipc }
    }
}

impl From<SoloPoint> for (u64, f64) {
    fn from(point: SoloPoint) -> (u64, f64) {
        (point.instructions, point.ipc)
    }
}

/// Why a list of points is no valid trace.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SoloTraceError {
    /// The list has no point.
    #[error("the trace has no point")]
    Empty,
    /// Instructions do not grow from point to point.
    #[error("point {0} of the trace does not have more instructions than the one before it")]
    Order(usize),
    /// An IPC is not a finite number above 0.
    #[error("point {index} of the trace has the IPC {ipc}; expected a number above 0")]
    Ipc {
        /// The index of the point, from 0.
        index: usize,
        /// Its IPC.
        ipc: f64,
    },
}

/// A task's solo IPC, keyed by the instructions done: the advance knowledge of Perf&Fair's Oracle (section 7).
///
/// ```
/// use cosched_core::SoloTrace;
/// // 1,000 instructions at an IPC of 2, then 1,000 at 0.5: 500 cycles and 2,000.
/// let trace = SoloTrace::new(vec![(1_000, 2.0), (2_000, 0.5)])?;
/// assert_eq!(trace.ipc_over(0, 1_000), 2.0);
/// assert_eq!(trace.ipc_over(0, 2_000), 2_000.0 / 2_500.0);
/// assert_eq!(trace.ipc_over(1_500, 9_000), 0.5);
/// # Ok::<(), cosched_core::SoloTraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<SoloPoint>", into = "Vec<SoloPoint>")]
pub struct SoloTrace {
    points: Vec<SoloPoint>,
    /// Cycles from the start to each point.
    cycles: Vec<f64>,
}

impl SoloTrace {
    /// A trace of these points, in the order of their instructions.
    ///
    /// # Errors
    /// There is no point, the instructions do not ascend, or an IPC is not a finite number above 0.
    pub fn new<P: Into<SoloPoint>>(points: Vec<P>) -> Result<SoloTrace, SoloTraceError> {
        let points: Vec<SoloPoint> = points.into_iter().map(Into::into).collect();
        let mut cycles = Vec::with_capacity(points.len());
        let (mut done, mut total) = (0, 0.0);
        for (index, &SoloPoint { instructions, ipc }) in points.iter().enumerate() {
            if instructions <= done {
                return Err(SoloTraceError::Order(index));
            }
            if !(ipc > 0.0 && ipc.is_finite()) {
                return Err(SoloTraceError::Ipc { index, ipc });
            }
            total += (instructions - done) as f64 / ipc;
            cycles.push(total);
            done = instructions;
        }
        if points.is_empty() {
            Err(SoloTraceError::Empty)
        } else {
            Ok(SoloTrace { points, cycles })
        }
    }

    /// The points, in ascending order of their instructions.
    pub fn points(&self) -> &[SoloPoint] {
        &self.points
    }

    /// Instructions of the whole solo run.
    pub fn instructions(&self) -> u64 {
        self.points.last().map_or(0, |point| point.instructions)
    }

    /// Instructions per cycle that the task had alone from its instruction `from` to its instruction `to`.
    ///
    /// Beyond the end of the trace the IPC of the last stretch holds, because two runs of one program never retire
    /// exactly the same number of instructions. An empty range has the IPC at its place.
    pub fn ipc_over(&self, from: u64, to: u64) -> f64 {
        if from >= to {
            return self.points[self.stretch(from)].ipc;
        }
        (to - from) as f64 / (self.cycles_to(to) - self.cycles_to(from))
    }

    /// The stretch in which an instruction lies.
    fn stretch(&self, instruction: u64) -> usize {
        self.points
            .partition_point(|point| point.instructions <= instruction)
            .min(self.points.len() - 1)
    }

    fn cycles_to(&self, instruction: u64) -> f64 {
        let at = self.stretch(instruction);
        let (start, cycles) = if at == 0 {
            (0, 0.0)
        } else {
            (self.points[at - 1].instructions, self.cycles[at - 1])
        };
        cycles + (instruction - start) as f64 / self.points[at].ipc
    }
}

impl TryFrom<Vec<SoloPoint>> for SoloTrace {
    type Error = SoloTraceError;

    fn try_from(points: Vec<SoloPoint>) -> Result<SoloTrace, SoloTraceError> {
        SoloTrace::new(points)
    }
}

impl From<SoloTrace> for Vec<SoloPoint> {
    fn from(trace: SoloTrace) -> Vec<SoloPoint> {
        trace.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_trace_is_refused() {
        let of = |points: &[(u64, f64)]| SoloTrace::new(points.to_vec()).unwrap_err();
        assert_eq!(of(&[]), SoloTraceError::Empty);
        assert_eq!(of(&[(0, 1.0)]), SoloTraceError::Order(0));
        assert_eq!(of(&[(5, 1.0), (5, 1.0)]), SoloTraceError::Order(1));
        assert_eq!(
            of(&[(5, 1.0), (6, 0.0)]),
            SoloTraceError::Ipc { index: 1, ipc: 0.0 }
        );
        assert!(matches!(of(&[(5, f64::NAN)]), SoloTraceError::Ipc { .. }));
        assert!(serde_json::from_str::<SoloTrace>("[[5,1.0],[4,1.0]]").is_err());
    }

    #[test]
    fn it_reads_and_writes_as_pairs() {
        let trace = SoloTrace::new(vec![(5, 0.5), (9, 1.25)]).unwrap();
        let text = serde_json::to_string(&trace).unwrap();
        assert_eq!(text, "[[5,0.5],[9,1.25]]");
        assert_eq!(serde_json::from_str::<SoloTrace>(&text).unwrap(), trace);
        assert_eq!(trace.instructions(), 9);
    }

    #[test]
    fn the_ipc_of_a_range_is_instructions_over_cycles() {
        let trace = SoloTrace::new(vec![(100, 1.0), (200, 0.5), (400, 2.0)]).unwrap();
        for (from, to, cycles) in [
            (0, 50, 50.0),
            (50, 150, 150.0),
            (0, 400, 400.0),
            (150, 300, 150.0),
            (400, 600, 100.0),
        ] {
            assert_eq!(
                trace.ipc_over(from, to),
                (to - from) as f64 / cycles,
                "{from} {to}"
            );
        }
        assert_eq!(
            (
                trace.ipc_over(100, 100),
                trace.ipc_over(99, 99),
                trace.ipc_over(700, 700)
            ),
            (0.5, 1.0, 2.0)
        );
    }
}
