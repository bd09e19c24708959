//! Who fits best beside those that run, by [interference](Interference) learnt from earlier runs.

use super::{Admission, AdmissionInput};
use crate::estimate::{Interference, MISFIT};
use crate::task::TaskSpec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of CPUs. With many co-runners a run tells little of each, and more of them even out.
pub(in crate::run) const MOST_CPUS: usize = 8;
/// The name of all programs that have none.
const NAMELESS: &str = "";
/// Maximum number of waiting tasks to compare.
const MOST_COMPARED: usize = 256;
/// Standard deviations of a clear difference.
const CLEAR: f64 = 1.28;

impl Admission<'_> {
    /// The queue position of a task that clearly fits better beside the running ones than the one at `place`.
    pub(super) fn better_beside(&self, place: usize, run: &AdmissionInput<'_>) -> Option<usize> {
        let first = run.spec(self.queue.at(place));
        let interference = first.interference?;
        if run.machine.cpus.len() > MOST_CPUS || first.cpus > 1 {
            return None;
        }
        let running = run.live.iter().map(|&id| {
            let spec = run.spec(id);
            let known = spec.interference.unwrap_or(Interference::AVERAGE);
            (program_of(spec), known)
        });
        RunningPrograms::new(running).better(&self.comparable(run), &interference)
    }

    /// The waiting tasks of one CPU of which something is known, with their queue positions. A task that is there again comes
    /// last in any case.
    fn comparable(&self, run: &AdmissionInput<'_>) -> Vec<Candidate> {
        let mut all = Vec::new();
        for (place, id) in self.queue.in_order().take(MOST_COMPARED).enumerate() {
            let spec = run.spec(id);
            if let Some(interference) = spec.interference
                && spec.cpus == 1
                && !self.queue[id].is_again
            {
                all.push((place, interference));
            }
        }
        all
    }
}

/// The name of a task's program.
pub(in crate::run) fn program_of(task: &TaskSpec) -> Arc<str> {
    let program = task.program.clone();
    program.unwrap_or_else(|| NAMELESS.into())
}

/// A waiting task: its queue position, and what is known of its program.
type Candidate = (usize, Interference);

/// The running programs, and how each waiting one would fit.
struct RunningPrograms {
    /// Each program once, with the number of its tasks.
    programs: Vec<(f64, Interference)>,
}

/// Running programs, compared with those that wait.
struct Excess<'a> {
    programs: &'a [(f64, Interference)],
    /// Sums over the running tasks: sensitivity and pressures beyond the mean of those that wait.
    sensitivity: f64,
    pressure: f64,
    bandwidth_pressure: f64,
}

impl RunningPrograms {
    /// Those of these tasks, each with the name of its program.
    fn new(tasks: impl Iterator<Item = (Arc<str>, Interference)>) -> RunningPrograms {
        let mut programs: BTreeMap<Arc<str>, (f64, Interference)> = BTreeMap::new();
        for (name, interference) in tasks {
            programs.entry(name).or_insert((0.0, interference)).0 += 1.0;
        }
        RunningPrograms {
            programs: programs.into_values().collect(),
        }
    }

    /// The queue position of the task that fits best, if it clearly fits better than `first`.
    fn better(&self, waiting: &[Candidate], first: &Interference) -> Option<usize> {
        let excess = Excess::over(&self.programs, waiting);
        let cost = |one: &Candidate| excess.cost(&one.1);
        let best = waiting
            .iter()
            .min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
        excess.prefers(&best.1, first).then_some(best.0)
    }
}

impl<'a> Excess<'a> {
    fn over(programs: &'a [(f64, Interference)], waiting: &[Candidate]) -> Excess<'a> {
        let beyond = |value: fn(&Interference) -> f64| {
            let sum = waiting.iter().map(|(_, one)| value(one)).sum::<f64>();
            let mean = sum / waiting.len().max(1) as f64;
            let running = programs.iter();
            running
                .map(|(count, one)| count * (value(one) - mean))
                .sum()
        };
        Excess {
            programs,
            sensitivity: beyond(|one| one.sensitivity),
            pressure: beyond(|one| one.pressure),
            bandwidth_pressure: beyond(|one| one.bandwidth_pressure),
        }
    }

    /// The logarithm by which the running tasks and `one` slow each other, beyond what they would if those that wait came in
    /// turn. Without the mean, disturbing programs would always start last.
    fn cost(&self, one: &Interference) -> f64 {
        let own =
            one.sensitivity * self.pressure + one.pressure_beyond_mild() * self.bandwidth_pressure;
        let of_others = one.pressure * self.sensitivity + one.bandwidth_pressure * self.pressure;
        own + of_others
    }

    /// Whether `one` clearly costs less than `other`.
    fn prefers(&self, one: &Interference, other: &Interference) -> bool {
        self.cost(one) + CLEAR * self.variance(one, other).sqrt() < self.cost(other)
    }

    /// The variance of the difference of their costs. The tasks of a program share its errors.
    fn variance(&self, one: &Interference, other: &Interference) -> f64 {
        let square = |value: f64| value * value;
        let both = |value: fn(&Interference) -> f64| square(value(one)) + square(value(other));
        let mut variance = square(self.pressure)
            * (both(|one| one.sensitivity_sd) + both(|one| one.bandwidth_pressure_sd))
            + square(self.sensitivity + self.bandwidth_pressure) * both(|one| one.pressure_sd);
        let by_pressure =
            one.sensitivity - other.sensitivity + one.bandwidth_pressure - other.bandwidth_pressure;
        let by_others = one.pressure - other.pressure;
        for (count, program) in self.programs {
            let own = square(by_pressure * program.pressure_sd)
                + square(by_others * program.sensitivity_sd)
                + square(by_others * program.bandwidth_pressure_sd);
            let mut misfit = 0.0;
            for waiting in [one, other] {
                misfit += square(waiting.slowdown_beside(program));
                misfit += square(program.slowdown_beside(waiting));
            }
            variance += square(*count) * (own + square(MISFIT) * misfit);
        }
        variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(sensitivity: f64, pressure: f64) -> Interference {
        Interference {
            sensitivity,
            pressure,
            bandwidth_pressure: 0.0,
            sensitivity_sd: 0.1,
            pressure_sd: 0.01,
            bandwidth_pressure_sd: 0.01,
        }
    }

    fn beside(running: Interference) -> RunningPrograms {
        RunningPrograms::new([(Arc::from("a"), running)].into_iter())
    }

    #[test]
    fn one_of_which_nothing_is_known_is_not_preferred() {
        let average = Interference::AVERAGE;
        let waiting = [(7, average), (8, known(2.0, 0.25))];
        assert_eq!(beside(average).better(&waiting, &average), None);
        assert_eq!(beside(average).better(&waiting, &waiting[1].1), None);
        assert_eq!(beside(average).better(&[], &average), None);
    }

    #[test]
    fn who_disturbs_gets_a_co_runner_that_hardly_minds() {
        let [mild, harsh] = [known(0.1, 0.02), known(2.0, 0.25)];
        let waiting = [(0, mild), (3, harsh)];
        let better = |running, first| beside(running).better(&waiting, first);
        assert_eq!(
            (better(harsh, &harsh), better(harsh, &mild)),
            (Some(0), None)
        );
        assert_eq!((better(mild, &mild), better(mild, &harsh)), (Some(3), None));
    }

    #[test]
    fn a_stream_does_not_start_beside_a_stream() {
        let stream = Interference {
            bandwidth_pressure: 0.5,
            ..known(0.0, 0.2)
        };
        let cached = Interference {
            bandwidth_pressure: -0.1,
            ..stream
        };
        let waiting = [(0, stream), (5, cached)];
        let running = beside(Interference {
            pressure: 0.6,
            ..stream
        });
        assert_eq!(running.better(&waiting, &stream), Some(5));
        assert_eq!(running.better(&waiting, &cached), None);
    }

    #[test]
    fn copies_of_a_program_share_their_error() {
        let one = Interference {
            pressure_sd: 0.05,
            ..Interference::AVERAGE
        };
        let other = Interference {
            sensitivity: 0.2,
            ..one
        };
        let spread = |names: [&str; 4]| {
            let tasks = names.map(|name| (Arc::from(name), one));
            let programs = RunningPrograms::new(tasks.into_iter()).programs;
            Excess::over(&programs, &[(0, one), (1, other)]).variance(&one, &other)
        };
        assert!(spread(["a"; 4]) > 1.5 * spread(["a", "b", "c", "d"]));
    }
}
