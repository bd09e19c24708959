//! Small batches of jobs that are hard to keep track of.

use std::path::Path;
use std::process::Command;

/// Random numbers from a seed (xorshift64). The same seed gives the same attacks; their moments are as exact as sleeping
/// is.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % most
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// What a job does around its work, which is the script `work` in its folder: a line for each kind of job.
const KINDS: &str = include_str!("kinds.txt");

/// Policies that differ in when and how they freeze.
pub const POLICIES: [&str; 4] = ["round-robin", "perf-fair", "fair", "linux"];

/// A batch: the kinds of its jobs, and its mix file.
pub struct Batch {
    pub kinds: Vec<&'static str>,
    pub mix: String,
}

/// Makes a batch. Where jobs may not stop themselves, none does: nobody continues one that stops after its run has died.
pub fn batch(dice: &mut Dice, mount: &str, may_stop: bool) -> Batch {
    let mut lines: Vec<&str> = KINDS.lines().collect();
    if !may_stop {
        lines.retain(|line| !line.contains("kill -STOP"));
    }
    let count = 3 + dice.below(4);
    let mut kinds = Vec::new();
    let mut mix = String::new();
    for number in 0..count {
        let line = dice.one_of(&lines);
        let (kind, command) = line.split_once(": ").unwrap_or((line, ""));
        let command = command.replace("MOUNT", mount);
        mix.push_str(&format!("[[job]]\nname = \"{kind}-{number}\"\n"));
        mix.push_str(&format!("command = '''{command}'''\n\n"));
        kinds.push(kind);
    }
    Batch { kinds, mix }
}

/// The work of a job: it uses the CPU for some tenths of a second.
pub const WORK: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done\n";

/// A call of the program that learns nothing, and whose runs are apart from all others on the machine.
pub fn apart(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("COSCHED_HISTORY", "off")
        .env("COSCHED_RUNS_DIR", folder);
    command
}
