//! What a coordinator and its workers tell each other.
//!
//! A [`NodeOrder`] is a JSON line to a worker. A [`WorkerFrame`] is a JSON line from it. If a frame has the key `bytes`, so many raw bytes
//! follow its line.

use cosched_core::{EarlierPhases, JobEnd};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Longest line of a frame, in bytes. A frame has a name or a message, never a whole file.
const LONGEST_LINE: usize = 1 << 20;

/// Characters of a wrong line that an error shows.
const MOST_SHOWN: usize = 100;

/// The files of a node's run that its worker sends, in their order.
pub const FILES: [&str; 2] = ["run.json", "series.jsonl"];

/// A line to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeOrder {
    /// Run this job. docs/schema/job-line.json describes it.
    Job(Map<String, Value>),
    /// End the job with this id.
    Cancel(String),
    /// Leave the job with this id to another node, unless it has begun.
    GiveBack(String),
    /// The coordinator lives.
    Beat,
    /// No more jobs will come.
    End,
}

impl NodeOrder {
    /// The order as a line, with its end.
    pub fn line(&self) -> Vec<u8> {
        let text = match self {
            NodeOrder::Job(job) => serde_json::to_string(job).unwrap_or_default(),
            NodeOrder::Cancel(id) => json!({ "cancel": id }).to_string(),
            NodeOrder::GiveBack(id) => json!({ "give_back": id }).to_string(),
            NodeOrder::Beat => json!({ "beat": true }).to_string(),
            NodeOrder::End => json!({ "end": true }).to_string(),
        };
        (text + "\n").into_bytes()
    }

    /// Parses a line.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn parse(line: &[u8]) -> serde_json::Result<NodeOrder> {
        let object: Map<String, Value> = serde_json::from_slice(line)?;
        Ok(match object.iter().next() {
            Some((key, Value::String(id))) if key == "cancel" => NodeOrder::Cancel(id.clone()),
            Some((key, Value::String(id))) if key == "give_back" => NodeOrder::GiveBack(id.clone()),
            Some((key, Value::Bool(true))) if key == "beat" => NodeOrder::Beat,
            Some((key, Value::Bool(true))) if key == "end" => NodeOrder::End,
            _ => NodeOrder::Job(object),
        })
    }
}

/// A line from a worker. Those about jobs are as `--progress-to` writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkerFrame {
    /// The first frame.
    Node(NodeDescription),
    /// A job has started.
    Start {
        /// Which.
        #[serde(flatten)]
        job: JobName,
        /// Seconds since the start of the run.
        at_s: f64,
    },
    /// An attempt of a job has failed, and there will be another. No worker has retries.
    Retry {
        /// Which.
        #[serde(flatten)]
        job: JobName,
        /// How the attempt ended.
        #[serde(flatten)]
        how: JobEnd,
        /// Its number.
        attempt: u32,
    },
    /// Output of a job.
    Output {
        /// The job's id.
        id: String,
        /// Which of its streams.
        stream: JobStream,
        /// So many bytes of it follow.
        bytes: u64,
    },
    /// A job has ended, and all its output was sent.
    End {
        /// Which.
        #[serde(flatten)]
        job: JobName,
        /// How.
        #[serde(flatten)]
        how: JobEnd,
        /// What was learnt of its demands on caches and memory, for the coordinator's history.
        #[serde(skip_serializing_if = "Option::is_none")]
        learnt: Option<EarlierPhases>,
    },
    /// Where the run is.
    Progress(NodeProgress),
    /// What a run would warn of.
    Warning {
        /// The warning.
        text: String,
    },
    /// A piece of a file that the run has written.
    File {
        /// Its name.
        name: String,
        /// So many bytes of it follow.
        bytes: u64,
    },
    /// The worker lives.
    Beat,
}

impl WorkerFrame {
    /// The number of raw bytes that follow the line.
    pub fn bytes(&self) -> u64 {
        match self {
            WorkerFrame::Output { bytes, .. } | WorkerFrame::File { bytes, .. } => *bytes,
            _ => 0,
        }
    }
}

/// A node, and the run on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Its name.
    pub host: String,
    /// CPUs that the run uses.
    pub cpus: u32,
    /// Jobs that run at once; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Memory, in bytes; `None` if the kernel does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The machine's model.
    pub machine: String,
    /// The id of the run on the node.
    pub run_id: String,
    /// The version of cosched there.
    pub version: String,
}

/// A stream of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The job of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobName {
    /// Its number in the run.
    pub job: u64,
    /// As on the job's line; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name in the run.
    pub name: String,
}

/// Where a run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeProgress {
    /// Jobs so far.
    pub total: usize,
    /// Jobs that have ended.
    pub done: usize,
    /// Those that failed.
    pub failed: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that are live and wait.
    pub waiting: usize,
    /// Jobs that have not started.
    pub queued: usize,
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Expected seconds to the end; `None` if there is no estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
    /// The live jobs whose progress is visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobProgress>,
}

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
    /// Its unique name.
    pub name: String,
    /// Share of its work that is done.
    pub share: f64,
    /// Expected seconds to its end; `None` if there is no estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
}

/// Writes a frame with its raw bytes.
///
/// # Errors
/// It can't be written.
///
/// # Panics
/// The frame announces another number of bytes.
pub fn write_frame(to: &mut dyn Write, frame: &WorkerFrame, raw: &[u8]) -> io::Result<()> {
    assert_eq!(frame.bytes(), raw.len() as u64, "{frame:?}");
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    line.extend_from_slice(raw);
    to.write_all(&line)
}

/// What a reader of frames finds next.
#[derive(Debug, PartialEq)]
pub enum FramePiece<'a> {
    /// A frame. Its raw bytes follow.
    Frame(Box<WorkerFrame>),
    /// The next raw bytes of the last frame.
    Bytes(&'a [u8]),
}

/// Why bytes are no frames.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The line is no frame.
    #[error("expected a frame of cosched, found `{line}`: {error}")]
    Wrong {
        /// Its beginning.
        line: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The line does not end.
    #[error("expected a frame of cosched, found a line of more than 1 MiB: `{line}`")]
    Long {
        /// Its beginning.
        line: String,
    },
}

/// Reads frames from bytes that come in any pieces. Only a line that is incomplete is copied.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// What has come of a line.
    begun: Vec<u8>,
    /// Raw bytes of the last frame that have not come.
    left: u64,
}

impl FrameReader {
    /// Takes the next frame or raw bytes off `input`. Call it until it returns `None`: then all of `input` is taken.
    ///
    /// # Errors
    /// There is something else. Nothing can be read after it.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<FramePiece<'a>>, FrameError> {
        if input.is_empty() {
            return Ok(None);
        }
        if self.left > 0 {
            let taken =
                usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
            self.left -= taken as u64;
            return Ok(Some(FramePiece::Bytes(take(input, taken))));
        }
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            self.begun.extend_from_slice(take(input, input.len()));
            self.check_length(self.begun.len())?;
            return Ok(None);
        };
        let rest = take(input, end + 1);
        self.check_length(self.begun.len() + end)?;
        let frame = if self.begun.is_empty() {
            parse(rest)?
        } else {
            self.begun.extend_from_slice(rest);
            parse(&std::mem::take(&mut self.begun))?
        };
        self.left = frame.bytes();
        Ok(Some(FramePiece::Frame(Box::new(frame))))
    }

    fn check_length(&self, length: usize) -> Result<(), FrameError> {
        if length <= LONGEST_LINE {
            return Ok(());
        }
        let line = beginning(&self.begun);
        Err(FrameError::Long { line })
    }
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(length);
    *input = rest;
    taken
}

fn parse(line: &[u8]) -> Result<WorkerFrame, FrameError> {
    serde_json::from_slice(line).map_err(|error| FrameError::Wrong {
        line: beginning(line),
        error,
    })
}

fn beginning(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * MOST_SHOWN)]);
    text.trim_end().chars().take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job() -> JobName {
        JobName {
            job: 3,
            id: Some("17".to_owned()),
            name: "gzip#3".to_owned(),
        }
    }

    /// One of each kind, with raw bytes that look like lines.
    fn examples() -> Vec<(WorkerFrame, Vec<u8>)> {
        let node = NodeDescription {
            host: "node1".to_owned(),
            cpus: 2,
            jobs: Some(2),
            memory: Some(2_097_152_000),
            machine: "a \"machine\"\n".to_owned(),
            run_id: "1-2-3".to_owned(),
            version: "0.1.0".to_owned(),
        };
        let how = JobEnd {
            exit: Some(0),
            exit_text: "exit 0".to_owned(),
            user_s: Some(0.1 + 0.2),
            max_rss_bytes: Some(u64::MAX),
            ..JobEnd::default()
        };
        let raw = b"\n{\"event\":\"beat\"}\n\xff\0".to_vec();
        let output = WorkerFrame::Output {
            id: "17".to_owned(),
            stream: JobStream::Err,
            bytes: raw.len() as u64,
        };
        let file = WorkerFrame::File {
            name: "run.json".to_owned(),
            bytes: 0,
        };
        let plain = |frame| (frame, Vec::new());
        vec![
            plain(WorkerFrame::Node(node)),
            plain(WorkerFrame::Start {
                job: job(),
                at_s: 0.12,
            }),
            (output, raw),
            plain(WorkerFrame::Retry {
                job: job(),
                how: how.clone(),
                attempt: 2,
            }),
            plain(WorkerFrame::End {
                job: job(),
                how,
                learnt: Some(EarlierPhases::default()),
            }),
            plain(WorkerFrame::Progress(NodeProgress::default())),
            plain(WorkerFrame::Warning {
                text: "é".to_owned(),
            }),
            plain(file),
            plain(WorkerFrame::Beat),
        ]
    }

    fn written(frames: &[(WorkerFrame, Vec<u8>)]) -> Vec<u8> {
        let mut all = Vec::new();
        for (frame, raw) in frames {
            write_frame(&mut all, frame, raw).unwrap();
        }
        all
    }

    /// Reads bytes that come in these pieces.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(WorkerFrame, Vec<u8>)> {
        let mut reader = FrameReader::default();
        let mut found: Vec<(WorkerFrame, Vec<u8>)> = Vec::new();
        for mut input in pieces {
            while let Some(piece) = reader.next(&mut input).unwrap() {
                match piece {
                    FramePiece::Frame(frame) => found.push((*frame, Vec::new())),
                    FramePiece::Bytes(bytes) => found.last_mut().unwrap().1.extend(bytes),
                }
            }
            assert!(input.is_empty());
        }
        found
    }

    #[test]
    fn frames_come_back_however_their_bytes_are_cut() {
        let frames = examples();
        let all = written(&frames);
        for cut in 0..=all.len() {
            let (first, rest) = all.split_at(cut);
            assert_eq!(read([first, rest]), frames, "cut at {cut}");
        }
        assert_eq!(read(all.chunks(1)), frames);
    }

    #[test]
    fn a_frame_is_the_line_that_the_contract_shows() {
        let start = WorkerFrame::Start {
            job: job(),
            at_s: 0.12,
        };
        assert_eq!(
            String::from_utf8(written(&[(start, Vec::new())])).unwrap(),
            "{\"event\":\"start\",\"job\":3,\"id\":\"17\",\"name\":\"gzip#3\",\"at_s\":0.12}\n"
        );
        let output = &examples()[2..3];
        let line = b"{\"event\":\"output\",\"id\":\"17\",\"stream\":\"err\",\"bytes\":20}\n\n{";
        assert!(written(output).starts_with(line));
    }

    fn error(bytes: &[u8]) -> String {
        let mut reader = FrameReader::default();
        let mut input = bytes;
        reader.next(&mut input).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let long = vec![b'x'; LONGEST_LINE + 1];
        for (bytes, why) in [
            (&b"Welcome to node1\n"[..], "found `Welcome to node1`"),
            (b"{\"event\":\"new\"}\n", "unknown variant `new`"),
            (b"{\"event\":\"warning\"}\n", "missing field `text`"),
            (&long, "a line of more than 1 MiB: `xxx"),
        ] {
            let error = error(bytes);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn orders_come_back() {
        let job = json!({"id": "17", "argv": ["gzip", "a b"]});
        for order in [
            NodeOrder::Job(job.as_object().unwrap().clone()),
            NodeOrder::Cancel("1\n7".to_owned()),
            NodeOrder::GiveBack("17".to_owned()),
            NodeOrder::Beat,
            NodeOrder::End,
        ] {
            let line = order.line();
            let newline = line.iter().position(|&byte| byte == b'\n');
            assert_eq!(newline, Some(line.len() - 1));
            assert_eq!(NodeOrder::parse(&line).unwrap(), order);
        }
        assert_eq!(
            NodeOrder::Cancel("17".to_owned()).line(),
            b"{\"cancel\":\"17\"}\n"
        );
        assert!(NodeOrder::parse(b"ls\n").is_err());
    }

    proptest! {
        #[test]
        fn any_frames_come_back_in_any_pieces(
            raws in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
            piece in 1usize..400,
        ) {
            let mut frames = Vec::new();
            for raw in raws {
                let output = WorkerFrame::Output {
                    id: String::from_utf8_lossy(&raw).into_owned(),
                    stream: JobStream::Out,
                    bytes: raw.len() as u64,
                };
                frames.push((output, raw));
                frames.push((WorkerFrame::Beat, Vec::new()));
            }
            let all = written(&frames);
            prop_assert_eq!(read(all.chunks(piece)), frames);
        }
    }
}
