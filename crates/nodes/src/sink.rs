//! The folder of a node in the run's log folder: the output of its jobs in one file, and the files of its own run.

use crate::protocol::JobStream;
use cosched_core::TaskId;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The file with the output of all jobs of a node.
const OUTPUT: &str = "output";

/// A piece of a job's output, in a file with that of other jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPiece {
    /// The job.
    pub task: TaskId,
    /// Which of its streams.
    pub stream: JobStream,
    /// The file.
    pub file: PathBuf,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// The folder of a node. It is made when something comes.
pub(crate) struct Sink {
    folder: PathBuf,
    output: Option<File>,
    /// The length of the output's file.
    length: u64,
}

impl Sink {
    pub(crate) fn new(folder: PathBuf) -> Sink {
        Sink {
            folder,
            output: None,
            length: 0,
        }
    }

    /// The file with the output.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// Begins a piece of a job's output with a line that says whose it is.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn begin(&mut self, job: &str, stream: JobStream, bytes: u64) -> io::Result<()> {
        let stream = match stream {
            JobStream::Out => "out",
            JobStream::Err => "err",
        };
        let before = if self.length == 0 { "" } else { "\n" };
        let line = format!("{before}== {job} {stream} {bytes}\n");
        self.append(line.as_bytes()).map(drop)
    }

    /// Appends output, and returns its place in the file.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let file = match &mut self.output {
            Some(file) => file,
            none => none.insert(open(&self.folder, OUTPUT)?),
        };
        file.write_all(bytes)?;
        let place = self.length;
        self.length += bytes.len() as u64;
        Ok(place)
    }

    /// Appends to a file of the node's own run.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        open(&self.folder, name)?.write_all(bytes)
    }
}

/// Opens a file of a private folder for appending, and makes both if they are missing.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_all_jobs_is_one_readable_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::new(folder.path().join("node1"));
        sink.begin("a#1", JobStream::Out, 3).unwrap();
        assert_eq!(sink.append(b"on").unwrap(), 13);
        assert_eq!(sink.append(b"e").unwrap(), 15);
        sink.begin("b#2", JobStream::Err, 2).unwrap();
        sink.append(b"x\n").unwrap();
        let text = std::fs::read_to_string(sink.path()).unwrap();
        assert_eq!(text, "== a#1 out 3\none\n== b#2 err 2\nx\n");
        sink.keep("run.json", b"{").unwrap();
        sink.keep("run.json", b"}").unwrap();
        let record = std::fs::read_to_string(folder.path().join("node1/run.json")).unwrap();
        assert_eq!(record, "{}");
    }
}
