//! The protocol: requests and answers, a line of JSON each.

use crate::job::QueuedJob;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufRead, Read as _, Write};

/// A job as docs/schema/job-line.json describes it.
pub type JobLine = Map<String, Value>;

/// The longest request, in bytes.
const LONGEST: u64 = 64 << 20;

/// The longest token, in bytes.
const LONGEST_TOKEN: usize = 100;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueRequest {
    /// To queue jobs, all or none. The answer is [`QueueAnswer::Ids`].
    Submit(JobSubmission),
    /// To see which jobs a request with this token has queued. The answer is [`QueueAnswer::Ids`].
    Submitted(String),
    /// To see jobs. The answer is [`QueueAnswer::Status`].
    Status(JobSelection),
    /// To wait for these jobs, or for all that are not over. The answers are [`QueueAnswer::Ended`] and [`QueueAnswer::Done`].
    Wait(Vec<u64>),
    /// To end jobs. The answer is [`QueueAnswer::Cancelled`].
    Cancel(Vec<u64>),
    /// To accept no more jobs, and end once all are over. The answer is [`QueueAnswer::Draining`].
    Drain(bool),
    /// To queue jobs again that are unknown or lost. The answer is [`QueueAnswer::Ids`].
    Rerun(Vec<u64>),
}

/// Jobs to queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSubmission {
    /// A word that no other request has. A second request with it queues nothing, and has the answer of the first. So a
    /// client whose service ended before it answered can ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What each job has that does not say otherwise; variables are added to its own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub common: JobLine,
    /// The jobs.
    pub jobs: Vec<JobLine>,
}

impl JobSubmission {
    /// Jobs with a token of their own.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(common: JobLine, jobs: Vec<JobLine>) -> io::Result<JobSubmission> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(JobSubmission {
            token: Some(format!("{:032x}", u128::from_ne_bytes(random))),
            common,
            jobs,
        })
    }
}

/// What is wrong with a token, if something is.
pub(crate) fn token_problem(token: &str) -> Option<String> {
    let is_wrong = token.is_empty() || token.len() > LONGEST_TOKEN;
    is_wrong.then(|| format!("a token has 1 to {LONGEST_TOKEN} bytes"))
}

/// Which jobs to see; by default those that are not over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSelection {
    /// All jobs.
    #[serde(default)]
    pub all: bool,
    /// Only these.
    #[serde(default)]
    pub ids: Vec<u64>,
}

/// An answer of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum QueueAnswer {
    /// The numbers of the jobs that were queued.
    Ids {
        /// In the order of the request.
        ids: Vec<u64>,
    },
    /// The service and its jobs.
    Status {
        /// The service.
        service: ServiceInfo,
        /// The jobs, in the order of their numbers.
        jobs: Vec<QueuedJob>,
    },
    /// A job that is over.
    Ended {
        /// The job.
        ended: Box<QueuedJob>,
    },
    /// All jobs that the client waited for are over.
    Done {
        /// True.
        done: bool,
    },
    /// The jobs that end now. The others were over.
    Cancelled {
        /// Their numbers.
        cancelled: Vec<u64>,
    },
    /// The service accepts no more jobs.
    Draining {
        /// True.
        draining: bool,
    },
    /// The request was refused.
    Error {
        /// What is wrong, and what to do.
        error: String,
    },
}

/// The service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceInfo {
    /// Its process.
    pub pid: u32,
    /// Its version of cosched.
    pub version: String,
    /// Whether it accepts no more jobs.
    pub draining: bool,
    /// The process of its worker, a run; `None` while there is none.
    pub worker_pid: Option<u32>,
}

/// Reads a request; `None` at the end. The inner error is for the client.
///
/// # Errors
/// The client can't be read.
pub(crate) fn read_request(
    client: &mut impl BufRead,
) -> io::Result<Option<Result<QueueRequest, String>>> {
    let mut line = Vec::new();
    client.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
        client.skip_until(b'\n')?;
        let why = "the request is longer than 64 MiB; submit fewer jobs at once";
        return Ok(Some(Err(why.to_owned())));
    }
    Ok(Some(parse(&line)))
}

fn parse(line: &[u8]) -> Result<QueueRequest, String> {
    serde_json::from_slice(line).map_err(|error| {
        format!(r#"not a request ({error}); expected JSON as in {{"status": {{}}}}, {{"submit": {{"jobs": [{{"command": "make"}}]}}}}"#)
    })
}

/// Writes an answer.
///
/// # Errors
/// The client does not read.
pub(crate) fn write_line(mut to: impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Vec<Result<QueueRequest, String>> {
        let mut client = input;
        let next = || read_request(&mut client).unwrap();
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn requests_are_read_one_a_line() {
        let requests = read(
            br#"{"status": {}}
{"wait": [7, 8]}
{"submit": {"jobs": [{"command": "make"}]}}
{"drain": true}"#,
        );
        let kinds: Vec<QueueRequest> = requests.into_iter().map(Result::unwrap).collect();
        assert_eq!(kinds[0], QueueRequest::Status(JobSelection::default()));
        assert_eq!(kinds[1], QueueRequest::Wait(vec![7, 8]));
        assert!(matches!(&kinds[2], QueueRequest::Submit(it) if it.jobs[0]["command"] == "make"));
        assert_eq!(kinds[3], QueueRequest::Drain(true));
    }

    #[test]
    fn what_is_no_request_is_told_and_the_next_one_is_read() {
        let mut input = vec![b'x'; 65 << 20];
        input
            .extend(b"\n\xff\xfe\n{\"stat\": 1}\n{\"status\": {\"al\": 1}}\n\n{\"cancel\": [1]}\n");
        let requests = read(&input);
        let whys = ["64 MiB", "not a request", "`stat`", "`al`", "not a request"];
        assert_eq!(requests.len(), whys.len() + 1);
        for (request, part) in requests.iter().zip(whys) {
            let why = request.as_ref().unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(requests[5], Ok(QueueRequest::Cancel(vec![1])));
    }

    #[test]
    fn answers_are_told_apart() {
        let job = crate::job::tests::job(7);
        let answers = [
            QueueAnswer::Ids { ids: vec![7] },
            QueueAnswer::Ended {
                ended: Box::new(job),
            },
            QueueAnswer::Done { done: true },
            QueueAnswer::Cancelled { cancelled: vec![] },
            QueueAnswer::Draining { draining: true },
            QueueAnswer::Error {
                error: "x".to_owned(),
            },
        ];
        for answer in answers {
            let mut text = Vec::new();
            write_line(&mut text, &answer).unwrap();
            assert_eq!(
                serde_json::from_slice::<QueueAnswer>(&text).unwrap(),
                answer
            );
        }
    }
}
