//! Comparisons of ways to run a batch: which runs are made in which order, what their figures say, and the folder that
//! keeps them.

mod answer;
mod design;
mod figures;
mod store;
mod text;
mod verdict;

pub use answer::{Answer, Judged, Spread};
pub use design::{Candidate, Design, Means, Mix, Trial};
pub use figures::Outcome;
pub use store::{
    COMPARE_SCHEMA, COMPARISON_FILE, Manifest, RUN_FILE, SHOWN_BLOCK, Store, StoreError,
};
pub use text::{
    LEVELS, change_text, csv, json, markdown, meaning, number, runs_text, text, verdict_text, what,
};
pub use verdict::{Change, Comparison, Verdict, compare};
