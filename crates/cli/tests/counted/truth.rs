//! The truth about jobs and the machine, which the law tells.

use cosched_core::Counter;
use std::collections::BTreeMap;

/// The truth about a job, over all of its processes.
#[derive(Clone, Debug)]
pub(crate) struct TrueJob {
    counts: [u64; Counter::COUNT],
    /// CPU time.
    pub(crate) cpu_s: f64,
    /// The time that its instructions take alone on the machine.
    pub(crate) alone_s: f64,
}

impl TrueJob {
    pub(crate) fn count(&self, counter: Counter) -> f64 {
        self.counts[counter as usize] as f64
    }

    pub(crate) fn ipc(&self) -> f64 {
        self.count(Counter::Instructions) / self.count(Counter::Cycles)
    }
}

/// The truth about the machine, over a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrueMachine {
    pub(crate) energy_j: f64,
    /// Lines read from memory.
    pub(crate) reads: f64,
    /// Lines written to memory.
    pub(crate) writes: f64,
}

impl TrueMachine {
    pub(crate) fn since(self, before: TrueMachine) -> TrueMachine {
        TrueMachine {
            energy_j: self.energy_j - before.energy_j,
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
        }
    }
}

fn read() -> String {
    let text = std::fs::read_to_string("/dev/law").expect("the law tells");
    assert!(
        !text.contains("\nlost "),
        "the law has no room left: {text}"
    );
    text
}

/// The truth about all jobs so far, by their names.
pub(crate) fn of_jobs() -> BTreeMap<String, TrueJob> {
    read().lines().filter_map(job_of_line).collect()
}

/// The truth about the machine so far.
pub(crate) fn of_machine() -> TrueMachine {
    let text = read();
    machine_of_line(text.lines().next().unwrap_or_default())
        .unwrap_or_else(|| panic!("no truth about the machine: {text}"))
}

/// Parses `machine NS NANOJOULES READS WRITES`.
fn machine_of_line(line: &str) -> Option<TrueMachine> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["machine", _, nanojoules, reads, writes] = words.as_slice() else {
        return None;
    };
    Some(TrueMachine {
        energy_j: nanojoules.parse::<f64>().ok()? / 1e9,
        reads: reads.parse().ok()?,
        writes: writes.parse().ok()?,
    })
}

/// Parses `job NAME PID PROCESSES START END`, the counts, CPU time and time alone.
fn job_of_line(line: &str) -> Option<(String, TrueJob)> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["job", name, _, _, _, _, sums @ ..] = words.as_slice() else {
        return None;
    };
    let sums: Vec<u64> = sums
        .iter()
        .map(|word| word.parse().expect("a number"))
        .collect();
    let [counts @ .., cpu_ns, alone_ns] = sums.as_slice() else {
        panic!("too few numbers: {line}")
    };
    let job = TrueJob {
        counts: counts.try_into().expect("a number for each counter"),
        cpu_s: *cpu_ns as f64 / 1e9,
        alone_s: *alone_ns as f64 / 1e9,
    };
    Some(((*name).to_owned(), job))
}
