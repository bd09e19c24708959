//! What a run and its console tell each other: a JSON object on each line.

use cosched_nodes::protocol::{JobStream, WorkerFrame};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From the run to its console.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Redraw the progress line.
    Progress(String),
    /// Remove the progress line, and end a line that a job has not ended.
    Clear,
    /// Write a line that stays.
    Say(String),
    /// A job of this name has started. Its output is marked by the tag.
    Started { job: u32, tag: String, name: String },
    /// A piece of a job's output has come, and lies in this file of its node.
    Piece {
        job: u32,
        stream: JobStream,
        file: PathBuf,
        offset: u64,
        bytes: u64,
    },
    /// A job that failed is started again, when its files have these lengths. Of pieces, those that have come are of earlier
    /// attempts.
    Again { job: u32, lengths: [u64; 2] },
    /// A job has ended: show what is left of its output. If it failed, its last error may be asked for.
    Ended { job: u32, failed: bool },
    /// Show the last line that a failed job wrote to its error output, unless all of it is shown.
    LastError { job: u32 },
    /// Write a frame.
    Frame(Box<WorkerFrame>),
    /// Write a file in frames.
    File { name: String, path: PathBuf },
}

impl Order {
    /// Whether a later one replaces it.
    pub(super) fn is_progress(&self) -> bool {
        match self {
            Order::Progress(_) => true,
            Order::Frame(frame) => matches!(**frame, WorkerFrame::Progress(_)),
            _ => false,
        }
    }

    /// Whether only a person misses it.
    pub(super) fn is_message(&self) -> bool {
        match self {
            Order::Clear | Order::Say(_) | Order::LastError { .. } => true,
            Order::Frame(frame) => matches!(**frame, WorkerFrame::Warning { .. }),
            order => order.is_progress(),
        }
    }
}

/// From the console to the run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// A job has cut off a file of its output: what it had written there is gone.
    Rewritten { job: u32, file: usize },
    /// Everything has been carried out. If the jobs' output could not be shown completely, why.
    Done { lost: Option<String> },
}

/// The message as a line.
pub(super) fn line<T: Serialize>(message: &T) -> Vec<u8> {
    // Plain data: it can't fail to serialise.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_is_in_it() {
        let orders = [
            Order::Say("two\nlines".to_owned()),
            Order::Started {
                job: 3,
                tag: "\r".to_owned(),
                name: "a\n".to_owned(),
            },
        ];
        for order in orders {
            let line = line(&order);
            assert_eq!(
                line.iter().position(|&byte| byte == b'\n'),
                Some(line.len() - 1)
            );
            assert_eq!(serde_json::from_slice::<Order>(&line).unwrap(), order);
        }
    }
}
