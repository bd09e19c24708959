//! Which jobs are shown, in which order.

use cosched_report::{JobNow, Status};

/// An order of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As the state lists them: those that have been let in, those that come next, those that have ended.
    #[default]
    Listed,
    /// By what they do: those that run first.
    State,
    /// By their names.
    Name,
    /// Those that have run longest first.
    Time,
    /// Those that have waited longest first.
    Wait,
    /// Those that are slowed down most first.
    Slowdown,
    /// Those that have done least of their work first.
    Done,
    /// Those that hold most memory first.
    Memory,
}

impl Sort {
    const ALL: [Sort; 8] = [
        Sort::Listed,
        Sort::State,
        Sort::Name,
        Sort::Time,
        Sort::Wait,
        Sort::Slowdown,
        Sort::Done,
        Sort::Memory,
    ];

    /// The word for it.
    pub fn text(self) -> &'static str {
        match self {
            Sort::Listed => "number",
            Sort::State => "state",
            Sort::Name => "name",
            Sort::Time => "time",
            Sort::Wait => "wait",
            Sort::Slowdown => "slowdown",
            Sort::Done => "done",
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
    let passes = |job: &JobNow| {
        filter.is_empty()
            || job.state.text().starts_with(&filter)
            || job.name.to_lowercase().contains(&filter)
    };
    let mut rows: Vec<usize> = (0..status.jobs.len())
        .filter(|&ix| passes(&status.jobs[ix]))
        .collect();
    let job = |ix: usize| &status.jobs[ix];
    let figure = |ix: usize, name: &str| job(ix).figures.get(name).copied();
    // What is not known comes last.
    let falling = |rows: &mut Vec<usize>, name: &str| {
        rows.sort_by(|&a, &b| {
            figure(b, name)
                .unwrap_or(-1.0)
                .total_cmp(&figure(a, name).unwrap_or(-1.0))
        });
    };
    let rising = |rows: &mut Vec<usize>, name: &str| {
        let value = |ix: usize| figure(ix, name).unwrap_or(f64::MAX);
        rows.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
    };
    match sort {
        Sort::Listed => {}
        Sort::State => rows.sort_by_key(|&ix| job(ix).state),
        Sort::Name => rows.sort_by(|&a, &b| job(a).name.cmp(&job(b).name)),
        Sort::Time => falling(&mut rows, "ran_s"),
        Sort::Wait => rising(&mut rows, "waiting_since_s"),
        Sort::Slowdown => falling(&mut rows, "slowdown"),
        Sort::Done => rising(&mut rows, "share"),
        Sort::Memory => falling(&mut rows, "resident_bytes"),
    }
    rows
}
