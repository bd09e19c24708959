//! Progress of a task that is visible from outside. Only observers see it, so no decision depends on it.

/// Progress of a task, as visible from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visible {
    /// Share of the work that is done, from 0 to 1.
    pub share: f64,
    /// Source of the share.
    pub from: VisibleFrom,
}

/// Source of visible progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum VisibleFrom {
    /// What it writes to `COSCHED_PROGRESS_FD`.
    Descriptor,
    /// The offset in the file that it reads.
    Input,
    /// What it prints.
    Output,
}
