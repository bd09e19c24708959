//! What a run and its console tell each other: a JSON object on each line.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// From the run to its console.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Redraw the progress line.
    Progress(String),
    /// Remove the progress line.
    Clear,
    /// Write a line that stays.
    Say(String),
    /// The folder of the files of all jobs that start from now on.
    Folder(FileName),
    /// A job has started and writes to these files in the folder.
    Started {
        job: u32,
        tag: String,
        files: [FileName; 2],
    },
    /// A job that failed is started again, when its files have these lengths.
    Again { job: u32, lengths: [u64; 2] },
    /// A job has ended: show what is left of its output. If it failed, its last error may be asked for.
    Ended { job: u32, failed: bool },
    /// Show the last line that a failed job wrote to its error output.
    LastError { job: u32 },
}

/// From the console to the run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// So many bytes of a job's output were cut off, because the file reached its limit.
    Cut { job: u32, file: usize, bytes: u64 },
    /// A job has cut off a file of its output: what it had written there is gone.
    Rewritten { job: u32, file: usize },
    /// Everything has been carried out. If the jobs' output could not be shown completely, why.
    Done { lost: Option<String> },
}

/// The name of a file, which need not be text. Most are, and text is four times shorter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum FileName {
    Text(String),
    Bytes(Vec<u8>),
}

impl FileName {
    pub(super) fn of(name: &OsStr) -> FileName {
        match name.to_str() {
            Some(text) => FileName::Text(text.to_owned()),
            None => FileName::Bytes(name.as_bytes().to_vec()),
        }
    }

    pub(super) fn path(self) -> PathBuf {
        match self {
            FileName::Text(text) => text.into(),
            FileName::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
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
        let names = [&b"a\n\xff"[..], b"a b"].map(OsStr::from_bytes);
        let orders = [
            Order::Say("two\nlines".to_owned()),
            Order::Started {
                job: 3,
                tag: "\r".to_owned(),
                files: names.map(FileName::of),
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
        assert_eq!(
            names.map(|name| FileName::of(name).path()),
            names.map(PathBuf::from)
        );
    }
}
