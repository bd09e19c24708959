//! Which jobs are shown, in which order.

use cosched_report::{JobNow, RunStatus};

/// An order of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As the state lists them: those that have been let in, those that come next, those that have ended.
    #[default]
    Listed,
    /// Those that have run longest first.
    Time,
    /// Those that have waited longest first.
    Wait,
    /// Those that are slowed down most first.
    Slowdown,
    /// Those that hold most memory first.
    Memory,
}

impl Sort {
    /// The word for it.
    pub fn text(self) -> &'static str {
        match self {
            Sort::Listed => "number",
            Sort::Time => "time",
            Sort::Wait => "wait",
            Sort::Slowdown => "slowdown",
            Sort::Memory => "memory",
        }
    }

    /// The next order; after the last the first.
    pub fn next(self) -> Sort {
        match self {
            Sort::Listed => Sort::Time,
            Sort::Time => Sort::Wait,
            Sort::Wait => Sort::Slowdown,
            Sort::Slowdown => Sort::Memory,
            Sort::Memory => Sort::Listed,
        }
    }
}

/// The positions of the jobs that a filter lets through, in this order. A filter is a part of a name, or a state.
pub fn rows(status: &RunStatus, sort: Sort, filter: &str) -> Vec<usize> {
    let filter = filter.to_lowercase();
    let mut rows = Vec::new();
    for (ix, job) in status.jobs.iter().enumerate() {
        if passes(job, &filter) {
            rows.push(ix);
        }
    }
    // Keys in ascending order; a job without the figure comes last.
    match sort {
        Sort::Listed => {}
        Sort::Time => sort_by(&mut rows, |ix| -status.jobs[ix].end.ran_s.unwrap_or(-1.0)),
        Sort::Wait => sort_by(&mut rows, |ix| since_s(&status.jobs[ix])),
        Sort::Slowdown => sort_by(&mut rows, |ix| -figure(&status.jobs[ix], "slowdown")),
        Sort::Memory => sort_by(&mut rows, |ix| -figure(&status.jobs[ix], "resident_bytes")),
    }
    rows
}

fn passes(job: &JobNow, filter: &str) -> bool {
    filter.is_empty()
        || job.state.text().starts_with(filter)
        || job.name.to_lowercase().contains(filter)
}

fn sort_by(rows: &mut [usize], key: impl Fn(usize) -> f64) {
    rows.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
}

/// A figure of a job, or less than any.
fn figure(job: &JobNow, name: &str) -> f64 {
    job.figures.get(name).copied().unwrap_or(-1.0)
}

/// Since when a job waits.
fn since_s(job: &JobNow) -> f64 {
    let since_s = job.figures.get("waiting_since_s");
    since_s.copied().unwrap_or(f64::MAX)
}
