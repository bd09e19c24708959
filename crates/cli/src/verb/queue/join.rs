//! `cosched run --join`: the jobs of a run as jobs of the queue.

use super::connect::{Patient, failure, unknown};
use super::logs;
use super::submit::common;
use super::wait::{follow, worse};
use crate::exit::Exit;
use crate::stderr::say;
use anyhow::Result;
use cosched_linux::{Interrupt, Interrupts, settle_signals};
use cosched_queue::{JobSubmission, QueueRequest, QueuedJob};
use cosched_report::visible;
use cosched_run::{RunOptions, job_lines};
use rustix::event::{PollFd, PollFlags, poll};
use std::process::{ExitCode, exit};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

/// The jobs; none until the service has queued them.
static JOBS: OnceLock<Vec<u64>> = OnceLock::new();

/// The signal that has cancelled the jobs; 0 if there was none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Queues the jobs of a run, and waits for them. A signal that would end a run cancels them.
///
/// # Errors
/// The jobs are wrong, or there is no service.
pub fn run(options: &RunOptions) -> Result<ExitCode> {
    let quiet = options.output.quiet;
    let submission = JobSubmission::new(common()?, job_lines(options)?)?;
    settle_signals();
    let interrupts = Interrupts::hold()?;
    let token = submission.token.clone().unwrap_or_default();
    thread::spawn(move || cancel_at_signal(&interrupts, &token));
    let queued = Patient::connect()?.submit(submission)?;
    let ids = JOBS.get_or_init(|| queued);
    if SIGNAL.load(Ordering::SeqCst) != 0 {
        // It came before their numbers were known.
        cancel(ids)?;
    }
    let shown = show(ids, quiet);
    if shown.is_err()
        && let Err(error) = cancel(ids)
    {
        say(format_args!("cosched: the jobs go on: {error}"));
    }
    Ok(match SIGNAL.load(Ordering::SeqCst) {
        0 => shown?,
        signal => Exit::Signal(signal),
    }
    .into())
}

fn cancel(ids: &[u64]) -> Result<()> {
    let cancelled = Patient::connect()?.ask(&QueueRequest::Cancel(ids.to_vec()));
    cancelled.map(drop).map_err(failure)
}

/// Shows what the jobs write and how they end.
fn show(ids: &[u64], quiet: bool) -> Result<Exit> {
    let total = ids.len();
    let (mut over, mut failed) = (0, 0);
    let mut exit = Exit::Success;
    follow(&mut Patient::connect()?, ids.to_vec(), |job| {
        logs::show(job)?;
        over += 1;
        exit = worse(exit, job, total == 1);
        if job.code() != Some(0) {
            failed += 1;
            if !quiet {
                say(ended_line(job, over, total));
            }
        }
        Ok(())
    })?;
    if !quiet {
        say(format_args!(
            "{} succeeded, {failed} failed",
            total - failed
        ));
    }
    Ok(exit)
}

fn ended_line(job: &QueuedJob, over: usize, total: usize) -> String {
    let (id, name, command) = (job.id, visible(&job.name), visible(&job.command));
    format!("[{over}/{total}] job {id}, {name} ({command}): {job}")
}

/// Cancels the jobs at each signal. Without a service to do that, or at the second signal before it has queued them, ends this
/// process.
fn cancel_at_signal(interrupts: &Interrupts, token: &str) {
    loop {
        let _ = poll(&mut [PollFd::new(interrupts, PollFlags::IN)], None);
        let Some(Interrupt::End(signal)) = interrupts.next_signal() else {
            continue;
        };
        let is_first = SIGNAL.swap(signal, Ordering::SeqCst) == 0;
        let why = match JOBS.get().map(|ids| cancel(ids)) {
            Some(Ok(())) => continue,
            Some(Err(error)) => format!("the jobs go on: {error}"),
            None if is_first => {
                say(
                    "cosched: the jobs are cancelled once the service has answered; a second signal does not wait for it",
                );
                continue;
            }
            None => unknown(token),
        };
        say(format_args!("cosched: {why}"));
        exit(Exit::Signal(signal).code().into());
    }
}
