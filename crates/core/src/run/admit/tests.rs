//! Admission without a loop: who begins, and what holds the others.

use super::hold::{AdmissionHold, ROOM_RETRY};
use super::*;
use crate::expected::{Expected, ExpectedFrom};

/// A run on two CPUs. Its tasks come at the start.
struct AskingRun {
    now: Nanos,
    machine: Machine,
    records: ByTask<TaskRecord>,
    live: Vec<TaskId>,
    answer: MayStart,
}

fn tasks(count: u32) -> Vec<TaskSpec> {
    (0..count).map(|id| TaskSpec::new(id, "t")).collect()
}

impl AskingRun {
    fn new(admission: &mut Admission<'_>, tasks: Vec<TaskSpec>) -> AskingRun {
        let mut records = ByTask::default();
        for task in tasks {
            admission.came(&task, Nanos::ZERO);
            records.insert(task.id, TaskRecord::new(task, Nanos::from_ms(200)));
        }
        AskingRun {
            now: Nanos::ZERO,
            machine: Machine::uniform("two", 2, 1),
            records,
            live: Vec::new(),
            answer: MayStart::Yes,
        }
    }

    /// Asks about the present moment, with a backend that answers the same for every task but the last.
    fn with_input<T>(&mut self, ask: impl FnOnce(&mut AdmissionInput<'_>) -> T) -> T {
        let last = TaskId(self.records.count() as u32 - 1);
        let answer = self.answer;
        let mut input = AdmissionInput {
            now: self.now,
            machine: &self.machine,
            records: &self.records,
            live: self.live.clone(),
            some_end: false,
            is_open: false,
            may_start: &mut |task| match task.id == last {
                true if answer == MayStart::NeedsMemory => MayStart::Yes,
                _ => answer,
            },
        };
        let answer = ask(&mut input);
        self.live = input.live;
        answer
    }

    /// The tasks that begin, and the news.
    fn ask(&mut self, admission: &mut Admission<'_>) -> (Vec<u32>, Vec<AdmissionNews>) {
        let answer = self.with_input(|input| admission.who_may_begin(input));
        let begin = answer.admitted.iter().map(|task| task.id.0);
        (begin.collect(), answer.news)
    }

    fn hold_of_all(&mut self, admission: &Admission<'_>) -> Option<AdmissionHold> {
        self.with_input(|input| admission.hold_of_all(input))
    }

    fn hold_of(&mut self, admission: &Admission<'_>, id: u32) -> Option<AdmissionHold> {
        self.with_input(|input| admission.hold_of(TaskId(id), input))
    }
}

#[test]
fn no_more_begin_than_may_be_live() {
    let config = RunConfig {
        jobs: 1,
        ..RunConfig::default()
    };
    let mut admission = Admission::new(&config);
    let mut run = AskingRun::new(&mut admission, tasks(3));
    assert_eq!(run.ask(&mut admission), (vec![0], vec![]));
    assert_eq!(run.hold_of_all(&admission), Some(AdmissionHold::Full));
    assert_eq!(admission.ask_again(run.now), None, "an end will tell");
    admission.limit_to(2);
    assert_eq!(run.ask(&mut admission), (vec![1], vec![]));
}

#[test]
fn what_needs_memory_lets_others_pass() {
    let config = RunConfig::default();
    let mut admission = Admission::new(&config);
    let mut run = AskingRun::new(&mut admission, tasks(2));
    run.answer = MayStart::NeedsMemory;
    let waits = AdmissionNews::Warned(Warning::WaitsForMemory(TaskId(0)));
    assert_eq!(run.ask(&mut admission), (vec![1], vec![waits]));
    assert_eq!(run.hold_of(&admission, 0), Some(AdmissionHold::Memory));
    assert_eq!(admission.ask_again(run.now), Some(ROOM_RETRY));
    assert_eq!(run.ask(&mut admission), (vec![], vec![]), "told once");
    // Nothing else runs.
    run.live.clear();
    let short = AdmissionNews::Warned(Warning::ShortOfMemory(TaskId(0)));
    assert_eq!(run.ask(&mut admission), (vec![0], vec![short]));
}

#[test]
fn while_the_backend_starts_none_one_runs() {
    let config = RunConfig::default();
    let mut admission = Admission::new(&config);
    let mut run = AskingRun::new(&mut admission, tasks(2));
    run.answer = MayStart::Later;
    assert_eq!(run.ask(&mut admission), (vec![0], vec![]));
    assert_eq!(run.hold_of(&admission, 1), Some(AdmissionHold::NoStart));
    assert_eq!(admission.ask_again(run.now), Some(ROOM_RETRY));
    run.answer = MayStart::Yes;
    assert_eq!(run.ask(&mut admission), (vec![1], vec![]));
}

#[test]
fn starts_keep_their_distance() {
    let delay = Nanos::from_s(1.0);
    let config = RunConfig {
        delay,
        ..RunConfig::default()
    };
    let mut admission = Admission::new(&config);
    let mut run = AskingRun::new(&mut admission, tasks(2));
    assert_eq!(run.ask(&mut admission).0, [0]);
    run.records[TaskId(0)].started = Some(run.now);
    admission.started(run.now);
    assert_eq!(run.hold_of_all(&admission), Some(AdmissionHold::Delay));
    assert_eq!(admission.ask_again(run.now), Some(delay));
    run.now = delay;
    assert_eq!(run.ask(&mut admission).0, [1]);
    run.now = Nanos::from_s(9.0);
    let hold = run.hold_of_all(&admission);
    assert_eq!(hold, Some(AdmissionHold::Delay), "one has yet to start");
}

#[test]
fn what_would_end_too_late_is_left_out() {
    let [long, ends] = [20.0, 10.0].map(Nanos::from_s);
    let config = RunConfig {
        ends: Some(ends),
        ..RunConfig::default()
    };
    let mut admission = Admission::new(&config);
    let mut all = tasks(2);
    all[0].expected = Some(Expected::of(long, ExpectedFrom::Same));
    let mut run = AskingRun::new(&mut admission, all);
    let task = TaskId(0);
    let reason = WaitReason::NoTime {
        expected: long,
        left: ends,
    };
    let news = vec![
        AdmissionNews::LeftOut { task, reason },
        AdmissionNews::Warned(Warning::LeftOut(task, reason)),
    ];
    assert_eq!(run.ask(&mut admission), (vec![1], news));
    assert_eq!(admission.lack(), Some(EndedBy::NoTime));
    assert!(admission.queue().is_empty());
}

#[test]
fn a_lost_task_keeps_its_turn_and_a_restarted_one_arrives_again() {
    let config = RunConfig {
        jobs: 2,
        ..RunConfig::default()
    };
    let mut admission = Admission::new(&config);
    let mut run = AskingRun::new(&mut admission, tasks(3));
    assert_eq!(run.ask(&mut admission).0, [0, 1]);
    run.now = Nanos::from_s(5.0);
    run.live.clear();
    admission.comes_again(TaskId(0), run.now, false);
    admission.lost(TaskId(1), Some(1));
    let answer = run.with_input(|input| admission.who_may_begin(input));
    let [lost, new] = answer.admitted[..] else {
        panic!("{:?}", answer.admitted);
    };
    assert_eq!((lost.id, lost.turn), (TaskId(1), 1));
    assert_eq!((new.id, new.turn), (TaskId(2), 3));
    run.live.clear();
    let answer = run.with_input(|input| admission.who_may_begin(input));
    let [again] = answer.admitted[..] else {
        panic!("{:?}", answer.admitted);
    };
    assert_eq!((again.id, again.arrived), (TaskId(0), run.now));
}
