//! What the runs of commands beside each other tell of their programs.

use crate::key::Numbers;
use crate::remembered::{RecalledCommand, RememberedRun};
use cosched_core::{NeighbouredRun, interferences};
use std::collections::BTreeMap;

/// Maximum numbers of programs, and of commands of each, to learn from: the fit takes some 0.13 s then.
const MOST_PROGRAMS: usize = 32;
const MOST_COMMANDS: usize = 16;

/// The commands of a batch that ran before, and their programs.
#[derive(Default)]
pub(crate) struct Past {
    /// The index of each program.
    programs: BTreeMap<i64, usize>,
    /// The runs of each command by program.
    runs: Vec<BTreeMap<i64, Vec<RememberedRun>>>,
}

impl Past {
    /// Adds the runs of a command.
    pub(crate) fn add(&mut self, numbers: Numbers, runs: &[RememberedRun]) {
        let next = self.programs.len();
        let program = *self.programs.entry(numbers.program).or_insert(next);
        if program == next {
            self.runs.push(BTreeMap::new());
        }
        let commands = &mut self.runs[program];
        if commands.len() < MOST_COMMANDS {
            commands
                .entry(numbers.exact)
                .or_insert_with(|| runs.to_vec());
        }
    }

    /// Tells how each program of these commands fared beside the others.
    pub(crate) fn tell(&self, commands: &[Option<Numbers>], found: &mut [RecalledCommand]) {
        let programs = self.programs.len();
        if !(2..=MOST_PROGRAMS).contains(&programs) {
            return;
        }
        let runs = self.neighboured();
        if runs.is_empty() {
            return;
        }
        // All programs that are not in the batch count as one.
        let known = interferences(programs + 1, &runs);
        for (numbers, recalled) in commands.iter().zip(found) {
            let program = numbers.and_then(|numbers| self.programs.get(&numbers.program));
            recalled.interference = program.map(|&program| known[program]);
        }
    }

    /// The runs whose neighbours are known.
    fn neighboured(&self) -> Vec<NeighbouredRun> {
        let other = self.programs.len();
        let index = |program: &i64| self.programs.get(program).copied().unwrap_or(other);
        let mut all = Vec::new();
        let commands = self.runs.iter().enumerate();
        let commands = commands
            .flat_map(|(program, commands)| commands.values().map(move |runs| (program, runs)));
        for (command, (program, runs)) in commands.enumerate() {
            for run in runs.iter().filter(|run| run.time_s() > 0.0) {
                let Some(beside) = &run.beside else {
                    continue;
                };
                all.push(NeighbouredRun {
                    command,
                    program,
                    time_s: run.time_s(),
                    beside: beside
                        .iter()
                        .map(|(program, share)| (index(program), *share))
                        .collect(),
                });
            }
        }
        all
    }
}
