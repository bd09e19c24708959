//! What a run over nodes tells its user.

use crate::protocol::Stream;
use cosched_core::TaskId;
use std::path::PathBuf;

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A node could not be used from the start.
    Absent {
        /// Its name.
        node: String,
        /// Why.
        why: String,
    },
    /// A node is gone. Its jobs start on others.
    Lost {
        /// Its name.
        node: String,
        /// Why.
        why: String,
        /// How many jobs it had.
        jobs: usize,
    },
    /// The run on a node warns of something.
    Says {
        /// The node's name.
        node: String,
        /// The warning.
        text: String,
    },
    /// Output of a node's jobs can't be kept.
    OutputLost {
        /// The node's name.
        node: String,
        /// Why.
        why: String,
    },
    /// The user asked for something that has no meaning over nodes.
    NotHere(&'static str),
    /// The user changed the maximum number of live jobs.
    JobLimit(u32),
}

/// A piece of a job's output, in a file with that of other jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPiece {
    /// The job.
    pub task: TaskId,
    /// Which of its streams.
    pub stream: Stream,
    /// The file.
    pub file: PathBuf,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}
