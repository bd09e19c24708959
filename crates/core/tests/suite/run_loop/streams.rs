//! Tasks that come while the run goes on.

use super::support::{finish_ms, world};
use crate::memory::{Memory, Work};
use cosched_core::*;
use std::collections::VecDeque;

/// Tasks that come at these instants, in ms. The world knows them from the start.
struct Stream {
    left: VecDeque<(u64, TaskSpec)>,
    /// The instant at which it is known that no more come.
    ends: u64,
    now: u64,
    taken: usize,
    /// The maximum number of tasks that were asked for at once.
    room: usize,
}

impl Stream {
    fn new(world: &mut Memory, comes: &[u64], ends: u64) -> Stream {
        let news = comes.iter().chain([&ends]);
        let news = news.map(|&ms| (Nanos::from_ms(ms), Event::Arrivals));
        world.naps = news.collect();
        let left = comes.iter().copied().zip(world.specs()).collect();
        Stream {
            left,
            ends,
            now: 0,
            taken: 0,
            room: 0,
        }
    }
}

impl Intake<Memory> for Stream {
    fn take(&mut self, backend: &mut Memory, room: usize, out: &mut Vec<TaskSpec>) {
        self.now = backend.now().0 / 1_000_000;
        self.room = self.room.max(room);
        let come = self.left.partition_point(|(at, _)| *at <= self.now);
        for (_, mut task) in self.left.drain(..come.min(room)) {
            task.arrives = backend.now();
            self.taken += 1;
            out.push(task);
        }
    }

    fn is_ready(&self) -> bool {
        self.left.front().is_some_and(|(at, _)| *at <= self.now)
    }

    fn has_ended(&self) -> bool {
        self.left.is_empty() && self.now >= self.ends
    }
}

fn run_stream(
    world: &mut Memory,
    stream: &mut Stream,
    recorder: &mut dyn Recorder,
    config: &RunConfig,
) -> RunResult {
    let entry = find_policy("fifo").unwrap();
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let mut policy = (entry.build)(&params);
    run_all(world, &mut *policy, recorder, stream, config).unwrap()
}

#[test]
fn a_task_starts_when_it_comes_and_the_run_ends_with_its_input() {
    let mut world = world(2, vec![Work::ms(100), Work::ms(100), Work::ms(50)]);
    let mut stream = Stream::new(&mut world, &[0, 300, 320], 700);
    let config = RunConfig::default();
    let result = run_stream(&mut world, &mut stream, &mut NullRecorder, &config);
    assert_eq!(finish_ms(&result), [100, 400, 370]);
    assert_eq!(world.now(), Nanos::from_ms(700), "more could have come");
    assert_eq!(result.ended_by, EndedBy::Completion);
}

#[test]
fn an_interrupt_ends_the_input() {
    let mut world = world(1, vec![Work::ms(100), Work::ms(100)]);
    let mut stream = Stream::new(&mut world, &[0, 300], 400);
    world.interrupts = vec![Nanos::from_ms(200)];
    let config = RunConfig::default();
    let result = run_stream(&mut world, &mut stream, &mut NullRecorder, &config);
    assert_eq!((stream.taken, result.tasks.len()), (1, 1));
    assert_eq!(world.now(), Nanos::from_ms(200));
}

/// Percentages of an unknown number say nothing: the first failure would be 100 %.
#[test]
fn a_percentage_is_judged_once_all_tasks_are_known() {
    let failing = Work::ms(10).exit(1);
    let works = vec![failing.clone(), Work::ms(10), failing, Work::ms(500)];
    let mut world = world(1, works);
    let mut stream = Stream::new(&mut world, &[0, 100, 200, 300], 400);
    let config = RunConfig {
        halt: "now,fail=50%".parse().unwrap(),
        ..RunConfig::default()
    };
    let result = run_stream(&mut world, &mut stream, &mut NullRecorder, &config);
    assert_eq!(result.ended_by, EndedBy::Halt);
    let last = &result.tasks[3];
    assert!(last.told_to_end);
    assert_eq!(last.finished, Some(Nanos::from_ms(400)));
}

/// A recorder that notes how many tasks each state shows, and when.
#[derive(Default)]
struct Shown(Vec<(u64, usize)>);

impl Recorder for Shown {
    fn wants_state(&self) -> bool {
        true
    }

    fn state(&mut self, now: &RunNow<'_>) {
        self.0.push((now.at.0 / 1_000_000, now.tasks.len()));
    }
}

#[test]
fn an_idle_run_shows_that_its_last_task_has_ended() {
    let mut world = world(1, vec![Work::ms(100), Work::ms(100)]);
    let mut stream = Stream::new(&mut world, &[0, 60_000], 90_000);
    let mut shown = Shown::default();
    run_stream(&mut world, &mut stream, &mut shown, &RunConfig::default());
    let expected = [(0, 1), (1_000, 0), (60_000, 1), (61_000, 0), (90_000, 0)];
    assert_eq!(shown.0, expected, "once in each idle time, and at the end");
}

/// A recorder whose reader takes all at the third look after the end of a task.
#[derive(Default)]
struct Behind {
    looks_left: usize,
    looks_ms: Vec<u64>,
}

impl Recorder for Behind {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Ended(_) = fact {
            self.looks_left = 4;
        }
    }

    fn tick(&mut self, snapshot: &Snapshot, _: usize) {
        if self.looks_left > 0 {
            self.looks_left -= 1;
            self.looks_ms.push(snapshot.now.0 / 1_000_000);
        }
    }

    fn is_behind(&self) -> bool {
        self.looks_left > 0
    }
}

#[test]
fn an_idle_run_goes_on_writing_to_a_slow_reader() {
    let mut world = world(1, vec![Work::ms(100), Work::ms(100)]);
    let mut stream = Stream::new(&mut world, &[0, 60_000], 60_050);
    let mut behind = Behind::default();
    run_stream(&mut world, &mut stream, &mut behind, &RunConfig::default());
    assert_eq!(behind.looks_ms[..4], [100, 150, 200, 250]);
}

/// A recorder that counts the tasks between their coming and their end.
#[derive(Default)]
struct Held {
    now: usize,
    max: usize,
    ended: usize,
    forgotten: usize,
}

impl Recorder for Held {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Came(tasks) => {
                self.now += tasks.len();
                self.max = self.max.max(self.now);
            }
            Fact::Ended(_) => {
                self.now -= 1;
                self.ended += 1;
            }
            Fact::Forgotten(_) => {
                self.forgotten += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn a_long_stream_is_neither_held_nor_kept_as_a_whole() {
    const ALL: usize = 16_000;
    let mut works = vec![Work::ms(1); ALL];
    // Failures are kept when successes are not.
    works[ALL - 1] = Work::ms(1).exit(1);
    let mut world = world(64, works);
    let mut stream = Stream::new(&mut world, &[0; ALL], 0);
    world.naps.clear();
    let config = RunConfig {
        results_max: 1_000,
        jobs: 64,
        ..RunConfig::default()
    };
    let mut held = Held::default();
    let result = run_stream(&mut world, &mut stream, &mut held, &config);
    assert_eq!((stream.taken, held.ended), (ALL, ALL));
    assert_eq!(result.tasks.len(), 1_001);
    assert_eq!(result.tasks[1_000].exit, Some(Exit::Code(1)));
    let left_out = &result.left_out;
    assert_eq!((left_out.succeeded, left_out.failed), (ALL - 1_001, 0));
    assert_eq!(
        (held.forgotten, left_out.times.count()),
        (ALL - 1_001, ALL as u64)
    );
    assert!(stream.room <= 500 && held.max < 11_000, "{}", held.max);
}
