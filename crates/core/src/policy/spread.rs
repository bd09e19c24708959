//! `spread`: the tasks are spread over the caches by their demand on memory. No task is stopped.
//!
//! A region is a group of CPUs that share a last-level cache. On a machine with one such cache, a region is a core of
//! several threads. Where each core has one thread, there is one region, and all tasks share all CPUs. The parameter
//! `regions` chooses otherwise.
//!
//! A task is bound to one region, or to several if it wants more CPUs than one has. Within its regions the kernel
//! schedules. Demand is lines read from memory, and a fixed number of lines for each CPU that the task wants. So tasks
//! that read little, or that nobody can count, are spread by their CPUs.
//!
//! At the end of a quantum the tasks are laid out anew: the greatest demand first, each to the region with room that has
//! the least demand per CPU. The new layout replaces the present one only if it lowers the greatest demand per CPU by
//! `gain_percent`. Where the greatest stays the same, the next greatest counts. Between quanta only new tasks are bound.
//!
//! The idea is that of the bandwidth-aware scheduler of Feliu et al., which gives each core the same demand on its L1
//! cache. Ours: it is applied to caches that cores share, in space alone, with hysteresis.

use super::prelude::*;
use crate::decision::Wait;
use crate::topology::{CpuSet, Machine};
use std::cmp::Reverse;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "spread",
    gist: "jobs spread over the caches by their reads; none is stopped",
    source: "ours, after the balance of L1 demand over cores by Feliu et al.",
    for_research: false,
    time_shares: true,
    kernel_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[LONG_QUANTUM_S, GAIN_PERCENT, CPU_DEMAND, REGIONS],
    needs: &|_| {
        vec![
            required(Capability::Affinity),
            wanted(
                Capability::Counter(Counter::MmReads),
                "jobs are spread by the CPUs that they want alone",
            ),
        ]
    },
    build: &|params| {
        Box::new(Spread {
            kind: RegionKind::of(params.word("regions")),
            quantum: Nanos::from_s(params.number("quantum_s")),
            gain_milli: (params.number("gain_percent") * 10.0) as u128,
            cpu_demand: (params.number("cpu_trans_per_us") * 1e3) as u64,
            state: QuantumEnd::default(),
        })
    },
};

const LONG_QUANTUM_S: ParamSpec = number(
    "quantum_s",
    2.0,
    0.001,
    3600.0,
    "seconds between two layouts; 2 is long beside the time in which a moved job refills its cache",
);
const GAIN_PERCENT: ParamSpec = number(
    "gain_percent",
    10.0,
    0.0,
    99.0,
    "least decrease of the greatest demand per CPU for which jobs are moved",
);
const CPU_DEMAND: ParamSpec = number(
    "cpu_trans_per_us",
    3.5,
    0.001,
    1e6,
    "demand of a wanted CPU, in lines read per microsecond; 3.5 is the limit of a light job in Perf&Fair",
);

const REGIONS: ParamSpec = choice(
    "regions",
    &["auto", "cache", "core"],
    "what a job is bound to: `auto` is a last-level cache or, with one cache, a core of several threads",
);

/// What a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionKind {
    Auto,
    Cache,
    Core,
}

impl RegionKind {
    fn of(word: &str) -> RegionKind {
        match word {
            "cache" => RegionKind::Cache,
            "core" => RegionKind::Core,
            _ => RegionKind::Auto,
        }
    }
}

struct Spread {
    kind: RegionKind,
    quantum: Nanos,
    gain_milli: u128,
    /// Lines per ms.
    cpu_demand: u64,
    state: QuantumEnd,
}

impl Policy for Spread {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let full = is_full(snap);
        let end = self.state.after(snap.now, full, self.quantum);
        let regions = regions(&snap.machine, self.kind);
        let mut layout = Layout::present(snap, regions, self.cpu_demand, full);
        layout.bind_others();
        if full {
            let anew = layout.anew();
            if is_gain(&anew.peaks(), &layout.peaks(), self.gain_milli) {
                layout = anew;
            }
        }
        layout.decision(end)
    }

    state_is_a_field!();
}

/// Whether the first demand that differs, the greatest before all others, is lower by at least so many thousandths.
fn is_gain(new: &[u64], old: &[u64], milli: u128) -> bool {
    for (&new, &old) in new.iter().zip(old) {
        let limit = u128::from(old) * (1_000 - milli);
        if new < old && u128::from(new) * 1_000 <= limit {
            return true;
        }
        if new > old {
            return false;
        }
    }
    false
}

/// The regions of a machine, in the order of their first CPU.
fn regions(machine: &Machine, kind: RegionKind) -> Vec<CpuSet> {
    let all = [machine.all_cpus()];
    let has_caches = machine.llcs.iter().filter(|llc| !llc.is_empty()).count() > 1;
    let groups: &[CpuSet] = match kind {
        RegionKind::Cache => &machine.llcs,
        RegionKind::Core => &machine.cores,
        RegionKind::Auto if has_caches => &machine.llcs,
        RegionKind::Auto if machine.has_smt() => &machine.cores,
        RegionKind::Auto => &all,
    };
    let usable = groups.iter().filter(|group| !group.is_empty());
    usable.cloned().collect()
}

/// Whether the machine has several regions, so that `spread` binds jobs.
pub fn spread_has_choice(machine: &Machine, params: &Params) -> bool {
    regions(machine, RegionKind::of(params.word("regions"))).len() > 1
}

/// The CPUs of each task, and what they mean for the regions.
#[derive(Clone)]
struct Layout<'a> {
    snap: &'a Snapshot,
    regions: Vec<CpuSet>,
    /// Lines per ms.
    cpu_demand: u64,
    /// The CPUs of each task; `None` if it is not bound.
    masks: Vec<Option<CpuSet>>,
    /// The load of each region.
    loads: Vec<Load>,
}

/// The load of a region.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Lines read per ms.
    demand: u64,
    /// Wanted CPUs, in thousandths.
    wanted: u64,
}

/// CPUs that a task wants at the same time.
fn wanted_cpus(task: &TaskView) -> u64 {
    let measured = task.estimates.wanting.value();
    u64::from(measured.unwrap_or(task.cpus).max(task.cpus).max(1))
}

/// Whether a task may be bound now.
fn is_ready(task: &TaskView) -> bool {
    !task.asleep && task.control.place
}

impl<'a> Layout<'a> {
    /// The layout of the running tasks. In a `full` round each has the whole of its regions, also CPUs that have come
    /// back.
    fn present(
        snap: &'a Snapshot,
        regions: Vec<CpuSet>,
        cpu_demand: u64,
        full: bool,
    ) -> Layout<'a> {
        let mut layout = Layout {
            snap,
            loads: vec![Load::default(); regions.len()],
            regions,
            cpu_demand,
            masks: vec![None; snap.tasks.len()],
        };
        for (ix, task) in snap.tasks.iter().enumerate() {
            let Some(running) = &task.running else {
                continue;
            };
            let cpus = running.placement.cpus();
            let mask = if full && is_ready(task) {
                layout.whole_regions(task, cpus)
            } else {
                cpus.clone()
            };
            layout.bind(ix, mask);
        }
        layout
    }

    /// All CPUs of the regions that these CPUs touch, as far as the task may use them.
    fn whole_regions(&self, task: &TaskView, cpus: &CpuSet) -> CpuSet {
        let mut whole = CpuSet::new();
        for region in &self.regions {
            if !region.intersection(cpus).is_empty() {
                whole.extend(task.usable(region).iter());
            }
        }
        whole
    }

    /// The demand of a task, in lines per ms.
    fn demand(&self, task: &TaskView) -> u64 {
        let reads = task.estimates.mm_reads.value().map_or(0, |rate| rate.0);
        let by_cpus = wanted_cpus(task).saturating_mul(self.cpu_demand);
        reads.saturating_add(by_cpus).max(1)
    }

    /// Binds a task that is not bound, and counts its demand. A sleeper has none.
    fn bind(&mut self, ix: usize, mask: CpuSet) {
        let task = &self.snap.tasks[ix];
        if !task.asleep {
            let demand = self.demand(task);
            let wanted = 1_000 * wanted_cpus(task);
            let size = mask.len().max(1) as u64;
            for (region, load) in self.regions.iter().zip(&mut self.loads) {
                let part = region.intersection(&mask).len() as u64;
                load.demand = load.demand.saturating_add(share(demand, part, size));
                load.wanted = load.wanted.saturating_add(share(wanted, part, size));
            }
        }
        self.masks[ix] = Some(mask);
    }

    /// Binds all tasks that can run and are not bound, the greatest demand first.
    fn bind_others(&mut self) {
        let mut order = Vec::new();
        for (ix, task) in self.snap.tasks.iter().enumerate() {
            if self.masks[ix].is_none() && is_ready(task) {
                order.push((Reverse(self.demand(task)), ix));
            }
        }
        order.sort_unstable();
        for (_, ix) in order {
            let mask = self.choose(ix);
            if !mask.is_empty() {
                self.bind(ix, mask);
            }
        }
    }

    /// The best region for a task, with the next best ones until it has as many CPUs as it wants.
    fn choose(&self, ix: usize) -> CpuSet {
        let task = &self.snap.tasks[ix];
        let wanted = wanted_cpus(task);
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_by_key(|&region| self.rank(ix, region));
        let mut mask = CpuSet::new();
        for region in order {
            if mask.len() as u64 >= wanted {
                break;
            }
            mask.extend(task.usable(&self.regions[region]).iter());
        }
        mask
    }

    /// Sort key of a region for a task: those with room first, then the least demand per CPU, then where the task is.
    fn rank(&self, ix: usize, region: usize) -> (u64, u64, bool, usize) {
        let task = &self.snap.tasks[ix];
        let (cpus, load) = (&self.regions[region], self.loads[region]);
        let size = cpus.len() as u64;
        let wanted = load.wanted + 1_000 * wanted_cpus(task);
        let overload = (wanted / size).saturating_sub(1_000);
        let running = task.running.as_ref();
        let is_here =
            running.is_some_and(|now| !now.placement.cpus().intersection(cpus).is_empty());
        (overload, load.demand / size, !is_here, region)
    }

    /// A layout from the beginning. Tasks that may not be moved, or sleep, stay.
    fn anew(&self) -> Layout<'a> {
        let mut anew = self.clone();
        anew.loads.fill(Load::default());
        for (ix, task) in self.snap.tasks.iter().enumerate() {
            if let Some(mask) = anew.masks[ix].take()
                && !is_ready(task)
            {
                anew.bind(ix, mask);
            }
        }
        anew.bind_others();
        anew
    }

    /// Demand per CPU of each region, the greatest first.
    fn peaks(&self) -> Vec<u64> {
        let each = self.loads.iter().zip(&self.regions);
        let mut peaks: Vec<u64> = each
            .map(|(load, cpus)| load.demand / cpus.len() as u64)
            .collect();
        peaks.sort_unstable_by_key(|&peak| Reverse(peak));
        peaks
    }

    /// The decision: names only what changes.
    fn decision(self, end: Nanos) -> Decision {
        let mut decision = Decision {
            next_wake: Some(end),
            ..Decision::default()
        };
        for (task, mask) in self.snap.tasks.iter().zip(self.masks) {
            let running = task.running.as_ref();
            match mask {
                None if is_ready(task) => decision.waits.push(Wait {
                    task: task.id,
                    reason: WaitReason::Affinity,
                }),
                Some(mask) if running.is_none_or(|now| *now.placement.cpus() != mask) => {
                    decision.changes.push(Change::Place {
                        task: task.id,
                        placement: Placement::Shared { mask },
                        lease_end: None,
                        purpose: Purpose::Run,
                    });
                }
                _ => {}
            }
        }
        decision
    }
}

/// `part / whole` of a quantity.
fn share(quantity: u64, part: u64, whole: u64) -> u64 {
    (u128::from(quantity) * u128::from(part) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Running, Trigger};
    use crate::task::TaskSpec;
    use crate::units::{Absence, Rate, Reading};
    use std::sync::Arc;

    /// Two caches of two CPUs each.
    fn machine() -> Machine {
        let mut machine = Machine::uniform("m", 4, 1);
        machine.llcs = ["0-1", "2-3"].map(|cpus| cpus.parse().unwrap()).to_vec();
        for cpu in &mut machine.cpus {
            cpu.llc = cpu.id.0 as usize / 2;
        }
        machine.validate().unwrap();
        machine
    }

    /// A task that reads so many lines per us, and where it runs.
    fn task(id: u32, per_us: f64, cpus: &str) -> TaskView {
        let spec = TaskSpec::new(id, &format!("t{id}"));
        let mut task = TaskView::arriving(&spec, Nanos::ZERO, Default::default());
        task.estimates.mm_reads = Reading::Value(Rate::from_per_us(per_us));
        task.running = (!cpus.is_empty()).then(|| Running {
            placement: Placement::Shared {
                mask: cpus.parse().unwrap(),
            },
            purpose: Purpose::Run,
            since: Nanos::ZERO,
            lease_end: None,
        });
        task
    }

    fn snapshot(machine: Machine, triggers: Vec<Trigger>, tasks: Vec<TaskView>) -> Snapshot {
        Snapshot {
            machine: Arc::new(machine),
            now: Nanos::from_ms(4_000),
            triggers,
            queued: 0,
            contention: Default::default(),
            admits: None,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            tasks: tasks.into_iter().map(Box::new).collect(),
        }
    }

    /// The changes of a decision, as `task: CPUs`.
    fn changes(snap: &Snapshot) -> Vec<String> {
        let params = Params::resolve("spread", ENTRY.params, &[]).unwrap();
        let decision = (ENTRY.build)(&params).decide(snap, &mut Rng::new(1));
        assert_eq!(crate::check::check(snap, &decision), Ok(()));
        let text = |change: &Change| match change {
            Change::Place {
                task, placement, ..
            } => format!("{}: {}", task.0, placement.cpus()),
            Change::Stop { task } => panic!("{task} is stopped"),
        };
        decision.changes.iter().map(text).collect()
    }

    #[track_caller]
    fn check(tasks: Vec<TaskView>, expected: &[&str]) {
        let snap = snapshot(machine(), vec![Trigger::QuantumEnd], tasks);
        assert_eq!(changes(&snap), expected);
    }

    #[test]
    fn heavy_readers_are_parted() {
        let start = ["", "", "", ""];
        let tasks = |cpus: [&str; 4]| {
            let each = [80.0, 1.0, 70.0, 1.0].into_iter().zip(cpus);
            each.zip(0..)
                .map(|((per_us, cpus), id)| task(id, per_us, cpus))
                .collect()
        };
        check(tasks(start), &["0: 0-1", "1: 2-3", "2: 2-3", "3: 0-1"]);
        check(tasks(["0-1", "2-3", "0-1", "2-3"]), &["2: 2-3", "3: 0-1"]);
        check(tasks(["2-3", "0-1", "0-1", "2-3"]), &[]);
    }

    #[test]
    fn tasks_move_only_for_a_gain() {
        // 83.5 beside 7 could be 45 and 45.5: a gain. 50 beside 42 could be 46 beside 46: too small.
        check(
            vec![
                task(0, 40.0, "0-1"),
                task(1, 36.5, "0-1"),
                task(2, 0.0, "2-3"),
            ],
            &["1: 2-3"],
        );
        check(
            vec![
                task(0, 40.0, "0-1"),
                task(1, 3.0, "0-1"),
                task(2, 32.0, "2-3"),
                task(3, 3.0, "2-3"),
            ],
            &[],
        );
    }

    #[test]
    fn where_the_greatest_demand_stays_the_next_counts() {
        for (new, old, expected) in [
            ([90, 10, 0], [100, 0, 0], true),
            ([91, 9, 0], [100, 0, 0], false),
            ([100, 45, 45], [100, 90, 0], true),
            ([100, 89, 1], [100, 90, 0], false),
            ([100, 90, 0], [100, 90, 0], false),
            ([101, 45, 44], [100, 90, 0], false),
        ] {
            assert_eq!(is_gain(&new, &old, 100), expected, "{new:?}, {old:?}");
        }
    }

    #[test]
    fn between_quanta_only_new_tasks_are_bound() {
        let tasks = vec![task(0, 80.0, "0-1"), task(1, 80.0, "0-1"), task(2, 1.0, "")];
        let snap = snapshot(machine(), vec![Trigger::Arrived(TaskId(2))], tasks);
        assert_eq!(changes(&snap), ["2: 2-3"]);
    }

    #[test]
    fn wide_tasks_have_several_caches_and_sleepers_stay() {
        let mut wide = task(0, 0.0, "0-1");
        wide.estimates.wanting = Reading::Value(3);
        let mut sleeper = task(1, 500.0, "0-1");
        sleeper.asleep = true;
        check(vec![wide, sleeper, task(2, 0.0, "0-1")], &["0: 0-3"]);
    }

    #[test]
    fn a_mask_and_a_lost_cpu_are_respected() {
        let mut bound = task(0, 0.0, "");
        bound.allowed = Some("3".parse().unwrap());
        check(vec![bound, task(1, 90.0, "")], &["0: 3", "1: 0-1"]);
        // CPU 1 has come back.
        check(vec![task(0, 0.0, "0")], &["0: 0-1"]);
    }

    #[test]
    fn regions_are_caches_else_cores_else_all() {
        let text = |machine: &Machine, word: &str| -> Vec<String> {
            let regions = regions(machine, RegionKind::of(word));
            regions.iter().map(CpuSet::to_string).collect()
        };
        assert_eq!(text(&machine(), "auto"), ["0-1", "2-3"]);
        assert_eq!(text(&Machine::uniform("m", 2, 2), "auto"), ["0,2", "1,3"]);
        assert_eq!(text(&Machine::uniform("m", 4, 1), "auto"), ["0-3"]);
        assert_eq!(text(&Machine::uniform("m", 2, 2), "cache"), ["0-3"]);
        assert_eq!(text(&Machine::uniform("m", 2, 1), "core"), ["0", "1"]);
    }
}
