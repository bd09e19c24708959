//! The total bandwidth that the tasks of one quantum should use, and selection towards it.
//!
//! Bandwidth here is a task's reads from memory in its last executed quantum, in transactions per millisecond and per
//! CPU. The target spreads the demand of the whole workload evenly over its execution (Xu et al.; Feliu et al.).
//!
//! Ours: with several memory domains each gets its part of the target, because the tasks whose memory is there share it.

use super::fitness::{FitnessCandidate, FitnessQueue};
use super::round::Round;
use crate::decision::{Basis, WaitReason};
use crate::placement::Purpose;
use crate::snapshot::{Snapshot, TaskView};
use crate::units::{Rate, Reading};

/// The mean bandwidths that make up the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BandwidthTarget {
    /// The mean of each task since its start, computed anew each quantum (OATR, Perf&Fair, Algorithm 1, line 11).
    Online,
    /// The mean over the solo runs of all tasks of the run (IABW).
    Ideal,
}

/// The state of selection towards a target within one round.
pub(super) struct TargetSelection {
    /// Mean bandwidth per CPU of the target. A task not measured yet counts as this.
    mean: u64,
    /// Total bandwidth wanted.
    target: i128,
    /// What is left of it and of the CPUs, in each memory domain. A task counts for the domain where its memory lies.
    parts: Vec<Part>,
    /// Bandwidth wanted per CPU when the last CPU was filled.
    wanted: Rate,
    /// Whether any mean is known. If not, all tasks are alike, and no number means anything.
    is_known: bool,
}

/// What the chosen tasks leave of a memory domain.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Remaining bandwidth; negative if the chosen tasks exceed the target.
    bandwidth: i128,
    /// CPUs for which no task is chosen yet; negative if tasks will have to run elsewhere.
    cpus: i128,
}

impl BandwidthTarget {
    /// The mean per CPU as a fraction: the sum of bandwidths, and the number of CPUs; 0 and 0 if none is known.
    fn sum_and_cpus(self, snap: &Snapshot) -> (i128, i128) {
        match self {
            BandwidthTarget::Online => measured(&snap.tasks),
            BandwidthTarget::Ideal => match snap.ideal_bandwidth {
                Reading::Value(rate) => (i128::from(rate.0), 1),
                Reading::Absent(_) => (0, 0),
            },
        }
    }
}

/// The sum of the mean bandwidths of the measured tasks, and the number of their CPUs.
fn measured(tasks: &[Box<TaskView>]) -> (i128, i128) {
    let (mut sum, mut cpus) = (0, 0);
    for task in tasks {
        if let Reading::Value(rate) = task.estimates.mm_reads_mean {
            sum += i128::from(rate.0);
            cpus += i128::from(task.cpus);
        }
    }
    (sum, cpus)
}

impl TargetSelection {
    /// The target for the CPUs of the machine, minus the bandwidth of the tasks that go on running.
    pub(super) fn new(round: &Round<'_>, target: BandwidthTarget) -> TargetSelection {
        let (sum, cpus) = target.sum_and_cpus(round.snap);
        let machine = &*round.snap.machine;
        let wanted = |on: usize| {
            if cpus == 0 {
                0
            } else {
                sum * on as i128 / cpus
            }
        };
        let mut parts = vec![Part::default(); machine.memory_domains.len()];
        for cpu in &machine.cpus {
            parts[cpu.memory_domain].cpus += 1;
        }
        for part in &mut parts {
            part.bandwidth = wanted(part.cpus as usize);
        }
        let mut fit = TargetSelection {
            mean: if cpus == 0 { 0 } else { (sum / cpus) as u64 },
            target: wanted(machine.cpus.len()),
            parts,
            wanted: Rate(0),
            is_known: cpus > 0,
        };
        let running = round.snap.tasks.iter();
        for task in running.filter(|task| task.stays(round.full)) {
            fit.subtract(task, task.home(machine));
        }
        fit.wanted = per_cpu(fit.remain(), round.left());
        fit
    }

    /// Subtracts a task from the part of its memory, or from the emptiest part if it has none yet.
    fn subtract(&mut self, task: &TaskView, home: Option<usize>) {
        let bandwidth = i128::from(self.bandwidth(task));
        let cpus = i128::from(task.cpus);
        let emptiest = || (0..self.parts.len()).max_by_key(|&at| self.parts[at].cpus);
        if let Some(part) = home.or_else(emptiest) {
            let part = &mut self.parts[part];
            part.bandwidth -= bandwidth * cpus;
            part.cpus -= cpus;
        }
    }

    /// Remaining bandwidth of the machine; negative if the chosen tasks exceed the target.
    fn remain(&self) -> i128 {
        self.parts.iter().map(|part| part.bandwidth).sum()
    }

    /// Predicted bandwidth per CPU of a task.
    fn bandwidth(&self, task: &TaskView) -> u64 {
        task.estimates
            .mm_reads
            .value()
            .map_or(self.mean, |rate| rate.0 / u64::from(task.cpus.max(1)))
    }

    /// Chooses a task whatever its bandwidth, and subtracts that. Records the reason if it can't be chosen.
    pub(super) fn choose(&mut self, round: &mut Round<'_>, ix: u32) -> bool {
        match round.choose(ix, Purpose::Run) {
            Ok(()) => {
                let task = round.task(ix);
                self.subtract(task, task.home(&round.snap.machine));
                true
            }
            Err(reason) => {
                round.wait(ix, reason);
                false
            }
        }
    }

    fn candidate(&self, round: &Round<'_>, rank: u32) -> FitnessCandidate {
        let index = round.order[rank as usize];
        let task = round.task(index);
        FitnessCandidate {
            index,
            rank,
            bandwidth: self.bandwidth(task),
            cpus: task.cpus,
        }
    }

    /// Chooses the fittest candidates first, until every CPU has a task: with several memory domains for each those
    /// whose memory is there, and then any. `candidates` are positions in the round's order, which also breaks ties.
    pub(super) fn fill(&mut self, round: &mut Round<'_>, candidates: &[u32]) {
        if self.parts.len() > 1 {
            for home in 0..self.parts.len() {
                self.fill_part(round, candidates, home);
            }
        }
        let mut queue = self.queue(round, candidates, |_| true);
        while round.left() > 0 {
            let Some(fittest) = queue.take(self.remain(), round.left()) else {
                break;
            };
            self.wanted = per_cpu(self.remain(), round.left());
            // A task that does not fit now will not fit later in this round: CPUs only become fewer.
            self.choose(round, fittest.index);
        }
    }

    /// Chooses for the CPUs of a memory domain among the candidates whose memory is there.
    fn fill_part(&mut self, round: &mut Round<'_>, candidates: &[u32], home: usize) {
        let machine = &*round.snap.machine;
        let is_here = |task: &TaskView| task.home(machine) == Some(home);
        let mut queue = self.queue(round, candidates, is_here);
        while self.parts[home].cpus > 0 && round.left() > 0 {
            let Part { bandwidth, cpus } = self.parts[home];
            let Some(fittest) = queue.take(bandwidth, cpus as u32) else {
                break;
            };
            self.wanted = per_cpu(bandwidth, cpus as u32);
            self.choose(round, fittest.index);
        }
    }

    /// The candidates that are still open and meet a condition.
    fn queue(
        &self,
        round: &Round<'_>,
        candidates: &[u32],
        condition: impl Fn(&TaskView) -> bool,
    ) -> FitnessQueue {
        let mut queue = Vec::new();
        for &rank in candidates {
            let ix = round.order[rank as usize];
            if round.left() > 0 && round.is_open(ix) && condition(round.task(ix)) {
                queue.push(self.candidate(round, rank));
            }
        }
        FitnessQueue::new(queue)
    }

    /// Why a task that was not the fittest waits, with `ahead` tasks before it. A task not measured yet counted as the
    /// mean, so its reason states no bandwidth.
    pub(super) fn reason(&self, task: &TaskView, ahead: u32) -> WaitReason {
        if self.is_known && task.estimates.mm_reads.is_value() {
            WaitReason::Fitness {
                bandwidth: Rate(self.bandwidth(task)),
                wanted: self.wanted,
            }
        } else {
            WaitReason::Order { ahead }
        }
    }

    /// The numbers behind the decision; none without measurements.
    pub(super) fn basis(&self) -> Basis {
        if !self.is_known {
            return Basis::default();
        }
        let rate = |value: i128| Some(Rate(u64::try_from(value.max(0)).unwrap_or(u64::MAX)));
        Basis {
            target: rate(self.target),
            predicted: rate(self.target - self.remain()),
            measures: None,
        }
    }
}

/// Remaining bandwidth per CPU, for `left` free CPUs.
fn per_cpu(remain: i128, left: u32) -> Rate {
    let per_cpu = remain.max(0) / i128::from(left.max(1));
    Rate(u64::try_from(per_cpu).unwrap_or(u64::MAX))
}
