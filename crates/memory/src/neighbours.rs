//! What the runs of commands beside each other tell of their programs.

use crate::key::Key;
use crate::remembered::{Recalled, Run};
use cosched_core::{Fitted, NeighbouredRun};
use std::collections::BTreeMap;

/// Maximum numbers of programs and of commands to learn from. The time for it rises with the cube of the former.
const MOST_PROGRAMS: usize = 64;
const MOST_COMMANDS: usize = 1_000;

/// The commands of a batch that ran before, and their programs.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// The index of each command.
    commands: BTreeMap<i64, usize>,
    /// The index of each program.
    programs: BTreeMap<i64, usize>,
    /// The runs of a command, with the index of its program.
    runs: Vec<(usize, Vec<Run>)>,
}

impl Neighbours {
    /// Adds the runs of a command.
    pub(crate) fn add(&mut self, key: &Key, runs: &[Run]) {
        let numbers = key.numbers();
        if runs.is_empty() || self.commands.contains_key(&numbers.exact) {
            return;
        }
        let next = self.programs.len();
        let program = *self.programs.entry(numbers.program).or_insert(next);
        self.commands.insert(numbers.exact, self.runs.len());
        self.runs.push((program, runs.to_vec()));
    }

    /// Tells of each command how its program fared.
    pub(crate) fn tell(&self, keys: &[Option<Key>], found: &mut [Recalled]) {
        let programs = self.programs.len();
        if !(2..=MOST_PROGRAMS).contains(&programs) {
            return;
        }
        let commands = self.runs.len().min(MOST_COMMANDS);
        // All programs that are not in the batch count as one.
        let fitted = Fitted::to(commands, programs + 1, &self.neighboured());
        for (key, recalled) in keys.iter().zip(found) {
            let numbers = key.as_ref().map(Key::numbers);
            let program = numbers.and_then(|numbers| self.programs.get(&numbers.program));
            recalled.interference = program.map(|&program| fitted.programs[program]);
        }
    }

    fn neighboured(&self) -> Vec<NeighbouredRun> {
        let other = self.programs.len();
        let index = |program: &i64| self.programs.get(program).copied().unwrap_or(other);
        let mut all = Vec::new();
        for (command, (program, runs)) in self.runs.iter().take(MOST_COMMANDS).enumerate() {
            let timed = runs.iter().filter(|run| run.time_s() > 0.0);
            all.extend(timed.map(|run| {
                NeighbouredRun {
                    command,
                    program: *program,
                    time_s: run.time_s(),
                    beside: run
                        .beside
                        .iter()
                        .map(|(program, share)| (index(program), *share))
                        .collect(),
                }
            }));
        }
        all
    }
}
