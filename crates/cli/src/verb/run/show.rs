//! The jobs' output on the terminal, read from the files that the jobs write to.

use super::args::Show;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Follows the output of all jobs.
pub(crate) struct Shower {
    how: Show,
    /// Each line has the job's label before it.
    tagged: bool,
    /// The run record goes to standard output, so the jobs' output goes to standard error.
    to_stderr: bool,
    jobs: Vec<Followed>,
}

struct Followed {
    name: String,
    streams: [Stream; 2],
    live: bool,
}

struct Stream {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl Shower {
    /// Follows jobs, given with their labels and files.
    pub(crate) fn new(
        how: Show,
        tagged: bool,
        to_stderr: bool,
        jobs: impl Iterator<Item = (String, PathBuf, PathBuf)>,
    ) -> Shower {
        let stream = |path| Stream { path, file: None, position: 0, partial: Vec::new() };
        let followed = |(name, out, err)| Followed { name, streams: [stream(out), stream(err)], live: false };
        Shower { how, tagged, to_stderr, jobs: jobs.map(followed).collect() }
    }

    /// A job was started: from now on its output is shown.
    pub(crate) fn started(&mut self, ix: usize) {
        self.jobs[ix].live = true;
    }

    /// Shows the complete lines that jobs have written since the last call; nothing if output is shown job by job.
    pub(crate) fn poll(&mut self, mut clear: impl FnMut()) {
        if self.how == Show::Group {
            return;
        }
        for ix in 0..self.jobs.len() {
            if self.jobs[ix].live {
                self.show(ix, false, &mut clear);
            }
        }
    }

    /// A job ended: the rest of its output, or all of it.
    pub(crate) fn ended(&mut self, ix: usize, mut clear: impl FnMut()) {
        self.show(ix, true, &mut clear);
        self.jobs[ix].live = false;
        self.jobs[ix].streams.iter_mut().for_each(|stream| stream.file = None);
    }

    fn show(&mut self, ix: usize, all: bool, clear: &mut impl FnMut()) {
        let job = &mut self.jobs[ix];
        for (number, stream) in job.streams.iter_mut().enumerate() {
            let mut bytes = std::mem::take(&mut stream.partial);
            stream.read_new(&mut bytes);
            if self.how != Show::Group && !all {
                let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |pos| pos + 1);
                stream.partial = bytes.split_off(end);
            }
            if bytes.is_empty() {
                continue;
            }
            clear();
            let text = if self.tagged { tag(&job.name, &bytes) } else { bytes };
            // A closed pipe is no error: the files have all output.
            let _ = if number == 0 && !self.to_stderr {
                std::io::stdout().write_all(&text).and_then(|()| std::io::stdout().flush())
            } else {
                std::io::stderr().write_all(&text)
            };
        }
    }
}

impl Stream {
    fn read_new(&mut self, into: &mut Vec<u8>) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        if file.seek(SeekFrom::Start(self.position)).is_ok()
            && let Ok(read) = file.read_to_end(into)
        {
            self.position += read as u64;
        }
    }
}

/// Each line with the job's name before it. An unfinished last line gets a line end.
fn tag(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut tagged = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        tagged.extend_from_slice(name.as_bytes());
        tagged.push(b'\t');
        tagged.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            tagged.push(b'\n');
        }
    }
    tagged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tagged_and_ended() {
        assert_eq!(tag("a", b"x\n\ny"), b"a\tx\na\t\na\ty\n");
    }
}
