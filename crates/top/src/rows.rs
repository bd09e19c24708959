//! Which jobs are shown, in which order.

use cosched_report::{JobNow, Status};

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
    const ALL: [Sort; 5] = [
        Sort::Listed,
        Sort::Time,
        Sort::Wait,
        Sort::Slowdown,
        Sort::Memory,
    ];

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
        let place = Sort::ALL
            .iter()
            .position(|sort| *sort == self)
            .map_or(0, |place| place + 1);
        Sort::ALL[place % Sort::ALL.len()]
    }
}

/// The positions of the jobs that a filter lets through, in this order. A filter is a part of a name, or a state.
pub fn rows(status: &Status, sort: Sort, filter: &str) -> Vec<usize> {
    let filter = filter.to_lowercase();
    let jobs = &status.jobs;
    let mut rows: Vec<usize> = (0..jobs.len())
        .filter(|&ix| passes(&jobs[ix], &filter))
        .collect();
    match sort {
        Sort::Listed => {}
        Sort::Time => sort_descending(&mut rows, jobs, "ran_s"),
        Sort::Wait => sort_ascending(&mut rows, jobs, "waiting_since_s"),
        Sort::Slowdown => sort_descending(&mut rows, jobs, "slowdown"),
        Sort::Memory => sort_descending(&mut rows, jobs, "resident_bytes"),
    }
    rows
}

fn passes(job: &JobNow, filter: &str) -> bool {
    filter.is_empty()
        || job.state.text().starts_with(filter)
        || job.name.to_lowercase().contains(filter)
}

/// A figure of a job, or what sorts last.
fn figure_or(job: &JobNow, name: &str, last: f64) -> f64 {
    job.figures.get(name).copied().unwrap_or(last)
}

fn sort_descending(rows: &mut [usize], jobs: &[JobNow], name: &str) {
    rows.sort_by(|&a, &b| {
        figure_or(&jobs[b], name, -1.0).total_cmp(&figure_or(&jobs[a], name, -1.0))
    });
}

fn sort_ascending(rows: &mut [usize], jobs: &[JobNow], name: &str) {
    rows.sort_by(|&a, &b| {
        figure_or(&jobs[a], name, f64::MAX).total_cmp(&figure_or(&jobs[b], name, f64::MAX))
    });
}
