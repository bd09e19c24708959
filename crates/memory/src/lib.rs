//! What is kept of commands between runs, so that later runs know what to expect: for how long a command was placed, its
//! CPU time, its width, its greatest memory, and what was learnt of what it asks of caches and memory.
//!
//! - [`CommandKey`] says which command it was: its words, its folder, the identity of its program, and the kind of machine.
//! - [`RememberedCommand`] is what is kept of one command: a few runs, the last first. [`expected`] makes one expectation of
//!   several runs, and [`RecalledCommand`] is all that is known of a command before it runs.
//! - [`HistoryStore`] keeps many of them in one file, an SQLite database, which several runs may use at once. It is bounded:
//!   the commands that have not been seen for longest go first.
//! - [`HistoryError`] says what is wrong with a file, and what to do. Nobody's run may fail for that.
//! - [`Export`] is the content of a store as JSON.
//!
//! Nothing here starts a thread, and no connection outlives a call to this crate by more than its [`HistoryStore`]: runs fork.

mod error;
mod export;
mod key;
mod past;
mod remembered;
mod store;

pub use error::{HistoryError, HistoryProblem};
pub use export::{EXPORT_SCHEMA, Export};
pub use key::CommandKey;
pub use remembered::{
    MOST_RUNS, RecalledCommand, RememberedCommand, RememberedEnd, RememberedRun, expected,
};
pub use store::{Forget, HistoryStore, LockPatience};
