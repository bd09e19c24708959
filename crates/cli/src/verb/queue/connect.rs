//! The way to the service.

use crate::exit::{Exit, Failure, usage};
use crate::stderr::say;
use anyhow::{Result, anyhow};
use cosched_linux::root::Root;
use cosched_linux::service::runtime_file;
use cosched_queue::{
    ClientError, JobSelection, JobSubmission, QueueAnswer, QueueClient, QueueRequest, QueuedJob,
};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a verb waits for a service that has ended: something may start it again.
const RESTART: Duration = Duration::from_secs(60);

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket of the service.
///
/// # Errors
/// There is no place for it.
pub fn socket() -> Result<PathBuf> {
    let file = runtime_file(&Root::default(), "queue.sock");
    file.map_err(|why| usage(format!("no place for the socket of the queue: {why}")))
}

/// The folder of the queue: below the user's state folder. A relative name of that folder does not count, as its
/// specification says.
///
/// # Errors
/// There is no place for it.
pub fn folder() -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = std::env::home_dir().map(|home| home.join(".local/state"));
    let mut places = state.into_iter().chain(home);
    let place = places.find(|place| place.is_absolute());
    let place = place.ok_or_else(|| usage("no place for the queue; set XDG_STATE_HOME"))?;
    Ok(place.join("cosched/queue"))
}

/// Asks the service once.
///
/// # Errors
/// There is no answer, or it refused.
pub fn ask(request: &QueueRequest) -> Result<QueueAnswer> {
    let mut client = QueueClient::connect(&socket()?).map_err(failure)?;
    client.ask(request).map_err(failure)
}

/// All jobs of the queue.
///
/// # Errors
/// There is no answer, or it refused.
pub fn all_jobs() -> Result<Vec<QueuedJob>> {
    let (all, ids) = (true, Vec::new());
    match ask(&QueueRequest::Status(JobSelection { all, ids }))? {
        QueueAnswer::Status { jobs, .. } => Ok(jobs),
        answer => Err(strange(&answer)),
    }
}

/// What went wrong, with the exit code.
pub fn failure(error: ClientError) -> anyhow::Error {
    let exit = match error {
        ClientError::Refused(_) => Exit::Usage,
        _ => Exit::Failure,
    };
    let message = error.to_string();
    Failure { exit, message }.into()
}

/// What to say of jobs that a service may have queued before it ended.
pub fn unknown(token: &str) -> String {
    format!(
        "it is not known whether the jobs are queued: once a service answers, `cosched submit --token {token}` prints their numbers if they are"
    )
}

/// An answer of another kind than the request has.
pub fn strange(answer: &QueueAnswer) -> anyhow::Error {
    anyhow::anyhow!("the service has another version: {answer:?}")
}

/// A connection that is made again if the service is started again.
pub struct Patient {
    socket: PathBuf,
    client: QueueClient,
}

impl Patient {
    /// Connects.
    ///
    /// # Errors
    /// No service listens.
    pub fn connect() -> Result<Patient> {
        let socket = socket()?;
        let client = QueueClient::connect(&socket).map_err(failure)?;
        Ok(Patient { socket, client })
    }

    /// Asks until there is an answer.
    ///
    /// # Errors
    /// No service comes, or it refuses.
    pub fn ask(&mut self, request: &QueueRequest) -> Result<QueueAnswer, ClientError> {
        // A service that is started again may end each time, as with a damaged database.
        let mut end = None;
        loop {
            let asked = Instant::now();
            match self.client.ask(request) {
                Err(ClientError::Gone) => {}
                answer => return answer,
            }
            if asked.elapsed() > RESTART {
                end = None;
            }
            let end = *end.get_or_insert_with(|| Instant::now() + RESTART);
            self.reconnect(end)?;
        }
    }

    /// Queues jobs, once: the request is repeated with its token if the service ends before it answers.
    ///
    /// # Errors
    /// The service refuses, or it is not known whether the jobs are queued.
    pub fn submit(&mut self, submission: JobSubmission) -> Result<Vec<u64>> {
        let token = submission.token.clone().unwrap_or_default();
        match self.ask(&QueueRequest::Submit(submission)) {
            Ok(QueueAnswer::Ids { ids }) => Ok(ids),
            Ok(answer) => Err(strange(&answer)),
            Err(error @ ClientError::Refused(_)) => Err(failure(error)),
            Err(error) => Err(anyhow!("{error}; {}", unknown(&token))),
        }
    }

    /// Reads a further answer; `None` if the service has ended, and another one has come.
    ///
    /// # Errors
    /// No service comes.
    pub fn further(&mut self) -> Result<Option<QueueAnswer>> {
        match self.client.further() {
            Err(ClientError::Gone) => {
                self.reconnect(Instant::now() + RESTART).map_err(failure)?;
                Ok(None)
            }
            answer => answer.map(Some).map_err(failure),
        }
    }

    fn reconnect(&mut self, end: Instant) -> Result<(), ClientError> {
        let mut has_said = false;
        loop {
            sleep(PAUSE);
            match QueueClient::connect(&self.socket) {
                Ok(client) if Instant::now() < end => {
                    self.client = client;
                    return Ok(());
                }
                Err(ClientError::NotServed(_)) if Instant::now() < end => {}
                Ok(_) | Err(ClientError::NotServed(_)) => return Err(ClientError::Gone),
                Err(error) => return Err(error),
            }
            if !std::mem::replace(&mut has_said, true) {
                say("cosched: the service has ended, and its jobs go on; waiting for its restart");
            }
        }
    }
}
