//! Which jobs have a core to themselves while all jobs run but some must share cores: those that end soonest.
//!
//! Where L1 bandwidth is counted, [`allocate`](crate::policy::allocate) pairs the jobs by that, which gains more.
//! With several caches it keeps each job behind its own. Tasks that borrow spare CPUs may still meet on a core.

use crate::policy::prelude::*;
use crate::topology::{CpuId, CpuSet, Machine};

/// Chooses the jobs of a round in its order: the first ones have cores to themselves, the others share. False, and nothing
/// is chosen, where that does not apply.
pub(super) fn choose_alone(round: &mut Round<'_>) -> bool {
    let Some(mut cores) = Cores::new(round) else {
        return false;
    };
    let order = round.order.clone();
    let (first, others) = order.split_at(cores.alone(order.len()));
    for &ix in first {
        let last = cores.last_of(round, ix);
        cores.give(round, ix, last, true);
    }
    for &ix in first {
        cores.give(round, ix, cores.any(round), true);
    }
    for &ix in others {
        let last = cores.last_of(round, ix);
        cores.give(round, ix, last, false);
    }
    for &ix in others {
        cores.give(round, ix, cores.any(round), false);
    }
    true
}

/// The cores of the machine, all of them free at first.
struct Cores {
    cpus: Vec<CpuSet>,
    /// Whether a job has each core to itself.
    is_taken: Vec<bool>,
}

impl Cores {
    /// `None` unless all jobs run, some have to share cores, and all may run anywhere.
    fn new(round: &Round<'_>) -> Option<Cores> {
        let cpus = round.snap.machine.cores.clone();
        let must_share = round.full && round.all_fit() && round.order.len() > cpus.len();
        let may_run_anywhere = |&ix: &u32| {
            let task = round.task(ix);
            task.cpus == 1 && task.allowed.is_none() && !task.estimates.l1.is_value()
        };
        let fits = must_share
            && is_plain(&round.snap.machine, round.left())
            && round.order.iter().all(may_run_anywhere);
        let is_taken = vec![false; cpus.len()];
        fits.then_some(Cores { cpus, is_taken })
    }

    /// The number of jobs that can be alone if all of so many run.
    fn alone(&self, jobs: usize) -> usize {
        let threads = self.cpus[0].len();
        (threads * self.cpus.len() - jobs) / (threads - 1)
    }

    /// The CPU of a job's last run, unless it is taken.
    fn last_of(&self, round: &Round<'_>, ix: u32) -> Option<CpuId> {
        let last = round.task(ix).last_cpus.first()?;
        let core = round.snap.machine.cpu(last)?.core;
        (!self.is_taken[core] && round.is_free(last)).then_some(last)
    }

    /// A free CPU of a core that is not taken.
    fn any(&self, round: &Round<'_>) -> Option<CpuId> {
        let open = self.cpus.iter().zip(&self.is_taken);
        let mut cpus = open
            .filter(|(_, is_taken)| !**is_taken)
            .flat_map(|(core, _)| core.iter());
        cpus.find(|&cpu| round.is_free(cpu))
    }

    /// Gives a job that has none a CPU, or its whole core.
    fn give(&mut self, round: &mut Round<'_>, ix: u32, cpu: Option<CpuId>, whole: bool) {
        let Some(cpu) = cpu.filter(|_| round.is_open(ix)) else {
            return;
        };
        if let Some(of_cpu) = round.snap.machine.cpu(cpu) {
            self.is_taken[of_cpu.core] = whole;
        }
        round.choose_on(ix, cpu.into(), Purpose::Run);
    }
}

/// Whether so many free CPUs are all of the machine, in equal cores behind one cache.
fn is_plain(machine: &Machine, free: u32) -> bool {
    let threads = machine.cores[0].len();
    free as usize == machine.cpus.len()
        && machine.core_types.len() == 1
        && machine.memory_domains.len() == 1
        && machine.llcs.len() == 1
        && machine.cores.iter().all(|core| core.len() == threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::expected::{Expected, ExpectedFrom};
    use crate::policy::find_policy;
    use crate::snapshot::{Running, Trigger};
    use crate::task::TaskSpec;
    use crate::units::{Absence, Reading};
    use std::sync::Arc;

    /// Jobs that take so many seconds, all running on these CPUs of three cores of two threads: 0 and 3, 1 and 4, 2 and 5.
    fn snapshot(jobs: &[(f64, u32)]) -> Snapshot {
        let tasks = jobs.iter().zip(0..).map(|(&(time, cpu), id)| {
            let mut spec = TaskSpec::new(id, "t");
            spec.expected = Some(Expected::of(Nanos::from_s(time), ExpectedFrom::Same));
            let mut task = TaskView::arriving(&spec, Nanos::ZERO, Default::default());
            task.last_cpus = CpuId(cpu).into();
            task.running = Some(Running {
                placement: Placement::Exclusive {
                    cpus: CpuId(cpu).into(),
                    whole_core: false,
                },
                purpose: Purpose::Run,
                since: Nanos::ZERO,
                lease_end: None,
            });
            Box::new(task)
        });
        Snapshot {
            machine: Arc::new(Machine::uniform("m", 3, 2)),
            now: Nanos::from_s(1.0),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.collect(),
        }
    }

    /// The CPU of each job after the decision.
    fn places(jobs: &[(f64, u32)]) -> Vec<u32> {
        let entry = find_policy("even").unwrap();
        let params = [("objective".to_owned(), "mean".to_owned())];
        let params = Params::resolve("even", entry.params, &params).unwrap();
        let snap = snapshot(jobs);
        let decision = (entry.build)(&params).decide(&snap, &mut Rng::new(1));
        assert_eq!(check(&snap, &decision), Ok(()));
        let mut places: Vec<u32> = jobs.iter().map(|job| job.1).collect();
        for change in &decision.changes {
            let Change::Place {
                task, placement, ..
            } = change
            else {
                panic!("{change:?}: nobody pauses");
            };
            places[task.0 as usize] = placement.cpus().first().unwrap().0;
        }
        places
    }

    #[test]
    fn the_jobs_that_end_soonest_have_cores_to_themselves() {
        // 4 s shares a core with 40 s: the two longest share instead.
        assert_eq!(
            places(&[(4.0, 0), (40.0, 3), (30.0, 1), (2.0, 2)]),
            [0, 4, 1, 2]
        );
        // Three of five share in any case; nobody else moves.
        assert_eq!(
            places(&[(4.0, 0), (40.0, 1), (30.0, 4), (20.0, 2), (50.0, 5)]),
            [0, 1, 4, 2, 5]
        );
    }
}
