//! The memory domain in which a job first runs.

use super::play::{Play, cpu_of};
use cosched_core::*;
use std::sync::Arc;

/// Four CPUs in two memory domains, 0 and 1, 2 and 3, and six tasks, of which those from `new` on never ran.
fn two_domains(new: usize) -> Play {
    let mut play = Play::new();
    let mut machine = Machine::uniform("two domains", 4, 1);
    machine.memory_domains = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
    for cpu in &mut machine.cpus[2..] {
        cpu.memory_domain = 1;
    }
    play.snap.machine = Arc::new(machine);
    play.all_known();
    (6..8).for_each(|id| play.end(id));
    for task in &mut play.snap.tasks[new..] {
        task.estimates.learnt = Reading::Absent(Absence::NotYetMeasured);
        task.estimates.executed = 0;
    }
    play
}

/// The domains of these tasks after a decision.
fn domains(play: &mut Play, tasks: std::ops::Range<u32>) -> Vec<u32> {
    play.decide(0, None);
    let cpus = tasks.map(|id| cpu_of(play, id).unwrap());
    cpus.map(|cpu| cpu / 2).collect()
}

#[test]
fn new_jobs_begin_where_the_jobs_at_home_read_least() {
    let mut play = two_domains(4);
    for (id, reads, home) in [(0, 0.01, 0), (1, 0.001, 2)] {
        play.learnt(id, |learnt| learnt.asks.reads = reads);
        play.snap.tasks[id as usize].home_cpu = Some(CpuId(home));
    }
    // Each counts as much as a usual job, so even with one of them the second domain has less.
    assert_eq!(domains(&mut play, 4..6), [1, 1]);
}

#[test]
fn jobs_of_which_nothing_is_known_take_turns_over_the_domains() {
    let mut play = two_domains(0);
    assert_eq!(domains(&mut play, 0..4), [0, 1, 0, 1]);
}
