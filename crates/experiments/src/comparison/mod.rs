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

pub use answer::{Answer, Judged, Spread};
pub use conclusion::conclusion;
pub use design::{Candidate, Design, Means, Mix, Trial};
pub use figures::Outcome;
pub use store::{
    COMPARE_SCHEMA, COMPARISON_FILE, Manifest, RUN_FILE, SHOWN_BLOCK, Store, StoreError,
};
pub use text::{LEVELS, csv, json, markdown, meaning, runs_text, text, what};
pub use verdict::{Change, Comparison, More, Verdict, compare};
pub use words::{change_text, number, verdict_text};
