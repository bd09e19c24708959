//! Recorded programs as a backend: the loop, its policies and its estimators see them as if they ran now.
//!
//! A program goes on as it was recorded beside the other that is not frozen. While all others are frozen, it goes on as it was
//! recorded alone. Where it changes, it goes on from the same share of its instructions. The end of the other program needs no
//! change: it is in the recording.
//!
//! What was not recorded is absent.

use crate::recording::{RecordedCounts, Recording};
use cosched_core::{
    Absence, Began, Capabilities, Capability, Change, Counter, Counts, Event, Exit, Kill, Machine,
    MayStart, Nanos, Placement, Planner, Reading, Resources, TaskId, TaskSpec, Traffic, Usage,
    Visible, Wanting,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the CPU time of a program comes from. The data have none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CpuTime {
    /// It is absent, as in the data.
    Absent,
    /// Its cycles at this clock. A real run reads it from the kernel, so this shows how a real run goes. It hides that the clock
    /// rises while few CPUs are busy.
    OfCycles { ghz: f64 },
}

/// The recordings of a program.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    pub(crate) alone: Recording,
    /// Beside each other program, by its number. Beside one that is not here, it is as alone.
    pub(crate) beside: BTreeMap<usize, Recording>,
}

impl Tape {
    fn recording(&self, beside: Option<usize>) -> &Recording {
        let recording = beside.and_then(|other| self.beside.get(&other));
        recording.unwrap_or(&self.alone)
    }
}

/// A program that goes on as recorded.
struct Player {
    tape: Tape,
    is_placed: bool,
    has_ended: bool,
    /// The program beside which it plays, and its place in that recording in seconds.
    beside: Option<usize>,
    place_s: f64,
    counted: RecordedCounts,
}

impl Player {
    fn new(tape: Tape) -> Player {
        Player {
            beside: None,
            tape,
            is_placed: false,
            has_ended: false,
            place_s: 0.0,
            counted: RecordedCounts::default(),
        }
    }

    fn runs(&self) -> bool {
        self.is_placed && !self.has_ended
    }

    fn recording(&self) -> &Recording {
        self.tape.recording(self.beside)
    }

    fn left(&self) -> Nanos {
        // Rounding up makes sure that it has ended then.
        Nanos(Nanos::from_s(self.recording().length_s() - self.place_s).0 + 1)
    }

    fn advance(&mut self, time_s: f64) {
        let before = self.recording().at(self.place_s);
        self.place_s += time_s;
        let now = self.recording().at(self.place_s);
        self.counted = self.counted.plus(now.minus(before));
        self.has_ended = self.place_s >= self.recording().length_s();
    }

    fn is_frozen(&self) -> bool {
        !self.is_placed && !self.has_ended
    }

    /// Goes on in another recording, from the same share of its instructions.
    fn change_recording(&mut self, beside: Option<usize>) {
        if beside == self.beside {
            return;
        }
        let done = self.recording().at(self.place_s).instructions;
        let share = done / self.recording().total().instructions;
        self.beside = beside;
        self.place_s = self.recording().time_of_share(share);
    }
}

/// The backend of recorded programs.
pub(crate) struct Replay {
    machine: Arc<Machine>,
    cpu_time: CpuTime,
    now: Nanos,
    players: Vec<Player>,
}

/// Nothing would ever happen again.
#[derive(Debug, thiserror::Error)]
#[error("no recorded program runs")]
pub(crate) struct Stuck;

impl Replay {
    pub(crate) fn new(machine: Machine, tapes: Vec<Tape>, cpu_time: CpuTime) -> Replay {
        Replay {
            machine: Arc::new(machine),
            cpu_time,
            now: Nanos::ZERO,
            players: tapes.into_iter().map(Player::new).collect(),
        }
    }

    /// Lets each program that runs play what was recorded beside the other one that is not frozen, or alone.
    fn change_recordings(&mut self) {
        for at in 0..self.players.len() {
            let mut others = (0..self.players.len()).filter(|other| *other != at);
            let beside = others.find(|other| !self.players[*other].is_frozen());
            let player = &mut self.players[at];
            if player.runs() {
                player.change_recording(beside);
            }
        }
    }
}

/// The counts that cosched would have.
pub(crate) fn counts(counted: RecordedCounts) -> Counts {
    let value = |counter| match counter {
        Counter::Cycles => Reading::Value(counted.cycles as u64),
        Counter::Instructions => Reading::Value(counted.instructions as u64),
        Counter::LlcAccesses => Reading::Value(counted.llc_accesses as u64),
        Counter::MmReads => Reading::Value(counted.reads as u64),
        Counter::L1Accesses | Counter::MmWrites => Reading::Absent(Absence::NotOffered),
    };
    Counts::from_fn(value)
}

/// The CPU time that cosched would have.
pub(crate) fn cpu_time(source: CpuTime, counted: RecordedCounts) -> Reading<Nanos> {
    match source {
        CpuTime::Absent => Reading::Absent(Absence::NotOffered),
        CpuTime::OfCycles { ghz } => Reading::Value(Nanos((counted.cycles / ghz) as u64)),
    }
}

impl cosched_core::Backend for Replay {
    type Error = Stuck;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let mut missing = vec![
            (Capability::Plans, Absence::NotOffered),
            (Capability::Energy, Absence::NotOffered),
            (Capability::Traffic, Absence::NotOffered),
            (
                Capability::Counter(Counter::L1Accesses),
                Absence::NotOffered,
            ),
            (Capability::Counter(Counter::MmWrites), Absence::NotOffered),
        ];
        if self.cpu_time == CpuTime::Absent {
            missing.push((Capability::CpuTime, Absence::NotOffered));
        }
        Capabilities {
            missing: missing.into_iter().collect(),
        }
    }

    fn now(&mut self) -> Nanos {
        self.now
    }

    fn stopwatch(&self) -> Option<Nanos> {
        None
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Stuck> {
        let running = self.players.iter().filter(|player| player.runs());
        let ends = running.map(|player| self.now + player.left());
        let next = ends.chain(until).min().ok_or(Stuck)?;
        let time_s = (next - self.now).as_s();
        self.now = self.now.max(next);
        for (id, player) in (0..).zip(&mut self.players) {
            if !player.runs() {
                continue;
            }
            player.advance(time_s);
            if player.has_ended {
                events.push(Event::Ended {
                    task: TaskId(id),
                    exit: Exit::Code(0),
                });
            }
        }
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        for &task in tasks {
            let counted = self.players[task.0 as usize].counted;
            out.push(Usage {
                counts: counts(counted),
                cpu_time: cpu_time(self.cpu_time, counted),
                ..Usage::zero(task)
            });
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Stuck> {
        for change in changes {
            let player = &mut self.players[change.task().0 as usize];
            player.is_placed = match change {
                Change::Stop { .. } => false,
                Change::Place { placement, .. } => matches!(placement, Placement::Exclusive { .. }),
            };
        }
        self.change_recordings();
        Ok(())
    }

    fn device_time(&mut self, _usages: &mut [Usage]) {}

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, _task: TaskId) -> Reading<Wanting> {
        Reading::Absent(Absence::NotOffered)
    }

    fn resources(&mut self, _task: TaskId) -> Resources {
        Resources::absent(Absence::NotOffered)
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::WithDecision
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<Stuck>> {
        None
    }

    fn kill(&mut self, task: TaskId, _how: Kill) {
        self.players[task.0 as usize].has_ended = true;
    }

    fn ending(&mut self) {}

    fn restart(&mut self, _task: TaskId) -> bool {
        false
    }

    fn forget(&mut self, _task: TaskId) {}

    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, _out: &mut Vec<Traffic>) {}

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NotOffered)
    }
}
