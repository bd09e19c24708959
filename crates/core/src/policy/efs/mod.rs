//! `efs`: runs only what fits the memory bus (EFS, section 4). A CPU idles where one more task would cost more energy
//! per piece of work than it saves.
//!
//! # What it does
//!
//! - **Demand.** The bandwidth that a task used beside co-runners gives its solo bandwidth (Eq. 9), which predicts its
//!   next interval (Eq. 20). A new task starts at one over the number of cores. See `known`. Without counters, demands
//!   can be given with the tasks (ours); a task without one keeps its first guess.
//! - **Queues.** Every task has a home CPU. A CPU's queue is ordered by vruntime: CPU time divided by the task's weight,
//!   as in CFS. Weights are relative to the greatest, and vruntimes follow it. Time asleep is not charged, so a task that wakes comes first, but
//!   for a period at most. Queues are balanced by weight, and a CPU with no fitting task of its own takes one from
//!   another queue. See `queues`.
//! - **Admission.** A free CPU takes the first task of its queue whose demand is at most the threshold beside the
//!   running tasks (Eq. 16); if there is none, it idles. When a task ends or falls asleep, idle CPUs try again. See
//!   `domains` and `turn`.
//! - **Devices.** If the disk or the network is to count, each is one more bus for the whole machine: a task must fit
//!   all of them (section 6). See `shared`.
//! - **Starvation.** The longest starved task runs at once whatever the load, for a slice as long as its lag, at most a
//!   period (section 4.3). All others are judged anew beside it. See `starved`.
//!
//! # Ours
//!
//! EFS runs in the kernel and decides on each CPU when that CPU is free. Here all CPUs are decided at common instants,
//! so that co-runners are measured over the same interval, as Eq. 9 needs. As in the paper, CPUs are decided one after
//! another, each beside the tasks of the others: a CPU not yet decided counts with the task that ran there. The CPU
//! whose first task has waited longest comes first; among CPUs whose first task runs, the one that has run longest. So
//! a running task goes on while it fits, and tasks that exclude each other take turns by starving. A slice is the CPU's
//! period (Eq. 21), which is at least a quantum, times the task's share of its queue's weight. The next common instant
//! is the end of the shortest slice, between the least slice (4/18 of a quantum) and a quantum.
//!
//! While a first guess keeps a task waiting, or a task that woke waits or does not fit, the next instant comes after a
//! least slice. A demand measured beside co-runners weighs less than one measured alone, by the square of the bus's
//! free share over its used share: the error of Eq. 9 grows as that falls. Each memory domain has its own bus. Its
//! active cores add to the machine's power, and P_0 counts once. Cores count, not their threads: a second task on a
//! core costs no power, but must add a hundredth of its work alone. An idle core is woken for as many waiting tasks as
//! it has CPUs, if not for one, and no task shares a core while another core is worth waking. A gang counts as one task
//! per CPU, and needs all its CPUs at once.
//!
//! Between two such instants free CPUs are filled, and running tasks stay, as under all policies here. Overdue tasks
//! come first, whether they fit or not.
//!
//! A backend that admits tasks by itself, at every event as in the paper, gets all of them with shared CPUs, and their
//! demands. The rest is up to it.
//!
//! # What it depends on
//!
//! Near saturation Eq. 9 says little: with D near 0 every task seems to do nothing but use the bus. Where the measured
//! use reaches what `mu_trans_per_us` says the bus can serve (it counts as all but 1/1024 of it), tasks run one at a
//! time until they have been measured on a calmer bus. So a value that is too low, as the paper's is for most machines,
//! costs time and energy; so does a bus that serves every request without delay until it is full.
//!
//! # How long a task can wait
//!
//! Eq. 24 alone bounds no wait: it counts the slices of the starved tasks before a task, and not the time until it is
//! starved itself. Let q be the quantum, n the greatest number of tasks alive at once while it waits, P = t_period(n)
//! (Eq. 21), which is at least q, c the greater of `c_local` and `c_global`, and r the greatest weight of a task over
//! its own. Then no task waits longer than
//!
//! ```text
//! (c r + n) P + q
//! ```
//!
//! Full rounds, in which all CPUs are given out anew, are at most q apart: none lasts longer, and filling CPUs between
//! them never delays the next. A task that has not run for c r P is starved at the latest (`starved`, the third rule),
//! so a full round finds it starved within c r P + q. From there on let a turn be a full round in which no starved
//! slice is in force. A slice is at most P long and a full round comes when it ends. So the first turn comes within P,
//! and after each turn another within P. In each turn a task starts that has waited at least as long as ours: the
//! longest overdue, or if none is overdue, the longest starved, as it is tried before all others and takes its place
//! from the task that runs there. A task that has started waits anew, and so not longer than ours. Hence at most n - 1
//! turns go to others, and ours comes within n P. This n P is t_max of Eq. 24.
//!
//! This holds for gangs and affinity masks as well. CPUs of tasks that can't be stopped count for no other task: a task
//! that finds no room beside them can wait for ever. For a task that has not begun, which is never overdue, the bound
//! holds as long as no other is overdue. As under all policies, a task that has begun waits no longer than `max_pause`
//! allows (see the parent module); the lesser of the two bounds holds.

mod domains;
mod known;
mod predicted;
mod publish;
mod queues;
mod seat;
mod settings;
mod shared;
mod starved;
mod turn;

use super::linux::share_all_cpus;
use super::prelude::*;
use crate::model::bus_admission_table::{BusAdmissionTable, DemandClass};
use crate::model::window::Window;
use known::EfsState;
use queues::cores_of_domains;
use settings::EfsSettings;
use turn::{Turn, is_in_starved_slice};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "efs",
    gist: "runs only what fits the memory bus; a CPU idles where one more job would cost more energy than it brings",
    source: "EFS (2016)",
    for_research: false,
    time_shares: true,
    kernel_shares: false,
    weighs: true,
    can_hand_over: true,
    for_nodes: false,
    params: settings::PARAMS,
    needs: &needs,
    build: &|params| {
        Box::new(Efs {
            settings: EfsSettings::new(params),
            table: BusAdmissionTable::new(),
            state: EfsState::default(),
        })
    },
};

fn needs(params: &Params) -> Vec<Need> {
    let mut needs: Vec<Need> = settings::devices(params)
        .into_iter()
        .map(|device| required(Capability::Device(device)))
        .collect();
    if params.word("demand") != "given" {
        needs.extend(bus_needs(needs.is_empty()));
    }
    sharing_needs(&needs)
}

/// To measure the use of the memory bus: required, unless a device is considered too.
fn bus_needs(alone: bool) -> [Need; 2] {
    let reads = Capability::Counter(Counter::MmReads);
    [
        if alone {
            required(reads)
        } else {
            wanted(
                reads,
                "every job counts as 1 / number of cores of the memory bus",
            )
        },
        wanted(
            Capability::Traffic,
            "what other programs move, and writes that are not counted per job, do not count as use of the memory bus",
        ),
    ]
}

struct Efs {
    settings: EfsSettings,
    table: BusAdmissionTable,
    state: EfsState,
}

impl Efs {
    /// Lets all tasks run and passes their demands to a backend that decides at each event.
    fn hand_over(&mut self, snap: &Snapshot) -> Decision {
        let end = self
            .state
            .quantum
            .after(snap.now, snap.is_quantum_end(), self.settings.quantum);
        let cores = cores_of_domains(&snap.machine)
            .into_iter()
            .max()
            .unwrap_or(1);
        let tasks = self.state.tasks.iter_mut();
        for known in tasks.filter(|known| known.bus.is_unknown()) {
            known.bus.assume(&self.table, Window::initial(cores));
        }
        for measured in snap.admits.iter().flatten() {
            let known = self
                .state
                .tasks
                .binary_search_by_key(&measured.task, |known| known.id);
            if let (Ok(ix), Some(class)) = (known, DemandClass::from_number(measured.class)) {
                self.state.tasks[ix].take_measured(&self.table, class);
            }
        }
        let admission = publish::changed(&self.settings, &self.table, snap, &mut self.state);
        Decision {
            changes: share_all_cpus(snap),
            next_wake: Some(end),
            admission,
            ..Decision::default()
        }
    }
}

impl Policy for Efs {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        self.state.take_in(&self.settings, &self.table, snap);
        if snap.admits.is_some() {
            return self.hand_over(snap);
        }
        // Overdue tasks come before starved slices.
        let protect = !snap.tasks.iter().any(|task| task.overdue);
        let round = Round::keeping(snap, |task| protect && is_in_starved_slice(task, snap.now));
        let full = round.full;
        let mut turn = Turn::new(
            &self.settings,
            &self.table,
            round,
            &mut self.state.tasks,
            protect,
        );
        turn.give_out();
        let length = turn.length();
        let soon = turn.ends_soon();
        turn.explain();
        let (round, starved) = (turn.round, turn.starved);
        let mut end = self.state.quantum.of_round(&round, length);
        if !full && soon {
            end = end.min(snap.now + Nanos(self.settings.rule.least_slice_ns.max(1)));
            self.state.quantum.end = end;
        }
        let mut decision = round.finish_in_order(end);
        if let Some((ix, until)) = starved {
            let id = snap.tasks[ix as usize].id;
            for change in &mut decision.changes {
                if let Change::Place {
                    task, lease_end, ..
                } = change
                    && *task == id
                {
                    *lease_end = Some(until);
                }
            }
        }
        if full {
            decision.admission =
                publish::changed(&self.settings, &self.table, snap, &mut self.state);
        }
        decision
    }

    state_is_a_field!();
}
