//! Comparisons of ways to run a batch: which runs are made in which order, what their figures say, and the folder that
//! keeps them.

mod answer;
mod conclusion;
mod design;
mod figures;
mod store;
mod text;
mod verdict;
mod words;

pub use answer::{ComparisonResult, FigureSpread, MetricVerdicts};
pub use design::{CandidateRun, ComparedCandidate, ComparedMix, ComparisonDesign, ComparisonMeans};
pub use figures::RunFigures;
pub use store::{
    COMPARE_SCHEMA, COMPARISON_FILE, ComparisonFolder, Manifest, RUN_FILE, SHOWN_BLOCK, StoreError,
};
pub use text::{
    ComparisonText, LEVELS, MetricText, RUN_COLUMNS, csv, json, run_values, runs_text,
    write_figures,
};
pub use verdict::{CandidateVerdict, Comparison, RelativeChange, VerdictMore, compare};
pub use words::number;
