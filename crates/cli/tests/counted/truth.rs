//! The truth about jobs, which the law tells.

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

/// The truth about all jobs so far, by their names.
pub(crate) fn of_jobs() -> BTreeMap<String, TrueJob> {
    let text = std::fs::read_to_string("/dev/law").expect("the law tells");
    assert!(
        !text.contains("\nlost "),
        "the law has no room left: {text}"
    );
    text.lines().filter_map(job_of_line).collect()
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
