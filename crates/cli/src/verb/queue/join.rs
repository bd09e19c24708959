//! `cosched run --join`: the jobs of a run as jobs of the queue.

use super::connect::{Patient, ask, failure, socket, strange};
use super::logs;
use super::submit::complete;
use super::wait::{follow, worse};
use crate::exit::Exit;
use crate::stderr::say;
use anyhow::Result;
use cosched_linux::{Interrupt, Interrupts, settle_signals};
use cosched_queue::{Answer, Client, Job, JobLine, Request};
use cosched_report::visible;
use cosched_run::{RunOptions, job_lines};
use rustix::event::{PollFd, PollFlags, poll};
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

/// The signal that has cancelled the jobs; 0 if there was none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Queues the jobs of a run, and waits for them. A signal that would end a run cancels them.
///
/// # Errors
/// The jobs are wrong, or there is no service.
pub fn run(options: &RunOptions) -> Result<ExitCode> {
    let quiet = options.output.quiet;
    let mut lines = job_lines(options)?;
    complete(&mut lines)?;
    settle_signals();
    let interrupts = Interrupts::hold()?;
    let mut ids = Vec::new();
    let shown = submit(lines, &mut ids).and_then(|()| {
        let own = ids.clone();
        thread::spawn(move || cancel_at_signal(&interrupts, &own));
        show(&ids, quiet)
    });
    if shown.is_err() && !ids.is_empty() {
        let _ = ask(&Request::Cancel(ids));
    }
    Ok(match SIGNAL.load(Ordering::Relaxed) {
        0 => shown?,
        signal => Exit::Signal(signal),
    }
    .into())
}

/// Queues each job; `ids` has the numbers of those that are queued.
fn submit(lines: Vec<JobLine>, ids: &mut Vec<u64>) -> Result<()> {
    let mut service = Client::connect(&socket()?).map_err(failure)?;
    for line in lines {
        match service.ask(&Request::Submit(vec![line])).map_err(failure)? {
            Answer::Ids { ids: added } => ids.extend(added),
            answer => return Err(strange(&answer)),
        }
    }
    Ok(())
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

fn ended_line(job: &Job, over: usize, total: usize) -> String {
    let (id, name, command) = (job.id, visible(&job.name), visible(&job.command));
    format!("[{over}/{total}] job {id}, {name} ({command}): {job}")
}

/// Cancels the jobs at each signal. Without a service to do that, ends this process.
fn cancel_at_signal(interrupts: &Interrupts, ids: &[u64]) {
    loop {
        let _ = poll(&mut [PollFd::new(interrupts, PollFlags::IN)], None);
        let Some(Interrupt::End(signal)) = interrupts.next_signal() else {
            continue;
        };
        SIGNAL.store(signal, Ordering::Relaxed);
        if let Err(error) = ask(&Request::Cancel(ids.to_vec())) {
            say(format_args!("cosched: the jobs go on: {error}"));
            exit(Exit::Signal(signal).code().into());
        }
    }
}
