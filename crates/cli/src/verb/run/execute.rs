//! Carries out a plan: solo runs if wanted, the run itself, and the report. Real and simulated processes are treated
//! alike.

use super::answer::{exit_of, print};
use super::args::RunArgs;
use super::batch::{Batch, BatchResult, Session};
use super::files::{Files, keep};
use super::metrics::MetricsSocket;
use super::old_logs::{Passing, prune};
use super::plan::{DEFAULT_LOGS, ONLY, Plan};
use super::platform::Platform;
use super::resume::{move_file, moved};
use super::screen::Screen;
use super::setting::setting;
use super::{solo, watched};
use crate::exit::Exit;
use crate::input::told;
use crate::stderr;
use cosched_core::{Counter, RunResult, TaskResult};
use cosched_linux::root::Root;
use cosched_report::{RunWarning, record, visible};
use std::cell::RefCell;
use std::path::Path;

/// Runs a plan to its end, reports, and returns the exit code.
pub(crate) fn execute<P: Platform>(
    args: &RunArgs,
    platform: &P,
    mut plan: Plan<P>,
) -> anyhow::Result<Exit> {
    platform.check(plan.config.jobs.min(plan.jobs.len()))?;
    let metrics = args
        .output
        .metrics
        .as_ref()
        .map(MetricsSocket::bind)
        .transpose()?;
    // A file that can't be written is an error before anything is started.
    let names = plan
        .tasks
        .iter()
        .filter_map(P::files)
        .flat_map(|(out, err)| [out, err]);
    let writes = names
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let reads = || P::reads(args, &plan.jobs, &plan.tasks);
    let (folder, mut files) = Files::open(args, &plan.logs, writes, reads, &plan.seen)?;
    let record_to = files.record.take();
    let aside = folder.aside.clone();
    let mut folder = Passing::new(folder, &plan.logs, !args.output.no_logs);
    let screen = Screen::new(args.output.quiet);
    if let Some(address) = metrics.as_ref().and_then(MetricsSocket::address) {
        screen.say(&format!("cosched: metrics are served at {address}"));
    }
    if let Some(open) = metrics.as_ref().filter(|metrics| metrics.is_open()) {
        let address = open
            .address()
            .map(|address| address.to_string())
            .unwrap_or_default();
        screen.warn(RunWarning::MetricsOpen { address });
    }
    for warning in &platform.view().warnings {
        screen.warn(warning.clone());
    }
    if let Some(aside) = &aside {
        // What an earlier run left in this folder has been put aside by now.
        plan.earlier
            .iter_mut()
            .for_each(|job| moved(job, &plan.logs, aside));
        for warning in &mut plan.warnings {
            if let RunWarning::Rebuilt { file, .. } = warning {
                move_file(file, &plan.logs, aside);
            }
        }
    }
    plan.warnings
        .drain(..)
        .for_each(|warning| screen.warn(warning));
    for &shortfall in &plan.choice.shortfalls {
        screen.warn(RunWarning::Without(shortfall));
    }
    // `-j 6 sleep` means six sleepers at once to users of GNU parallel.
    let (asked, cpus) = (
        plan.config.jobs.min(plan.jobs.len()),
        platform.view().machine.cpus.len(),
    );
    if !plan.choice.entry.time_shares && args.limits.jobs.is_some() && asked > cpus {
        screen.warn(RunWarning::FewerAtOnce {
            policy: plan.choice.entry.name.to_owned(),
            asked,
            cpus,
        });
    }
    let is_only = matches!(&plan.jobs[..], [(_, job)] if job.input.is_only);
    let takes_no_values = is_only && plan.jobs[0].1.input.values.is_empty();
    let memory = RefCell::new(std::mem::take(&mut plan.memory));
    // Nobody looks at a simulation: it is over too soon.
    let window =
        (!platform.view().is_simulated()).then(|| watched::open(&Root::default(), metrics));
    let window = window.map(|(window, problem)| {
        problem.into_iter().for_each(|warning| screen.warn(warning));
        window
    });
    let logs = plan.logs.clone();
    let session = Session {
        args,
        platform,
        screen: &screen,
        memory: &memory,
        window: window.as_ref(),
        logs: &logs,
    };
    let mut infos = plan.infos(platform.view().is_simulated());
    if args.output.no_logs {
        infos
            .iter_mut()
            .for_each(|info| (info.log, info.log_stderr) = (None, None));
    }
    if let Some(exit) = solo::learn(&session, &mut plan, &mut infos)? {
        return Ok(exit);
    }
    if args.solo.as_deref() == Some(ONLY) {
        screen.clear();
        screen.say(&format!(
            "cosched: what each job does alone is in {}",
            told(plan.logs.join("solo-profiles.json"))
        ));
        let failed = infos.iter().any(|info| info.solo_failed);
        return Ok(if failed { Exit::Failure } else { Exit::Success });
    }
    let mut policy = (plan.choice.entry.build)(&plan.choice.params);
    let batch = Batch {
        policy: plan.choice.entry.name,
        params: &plan.choice.params,
        config: &plan.config,
        capabilities: &plan.capabilities,
        record_as: setting(
            args,
            platform.view(),
            (&plan.input, &plan.files),
            (&plan.choice.params, &plan.choice.origins),
            &plan.config,
        ),
        jobs: plan.tasks,
        specs: &plan.specs,
        infos,
        known: plan.known,
        earlier: plan.earlier,
        files,
        shows_output: true,
    };
    let BatchResult { result, mut info } = batch.run(&session, &mut *policy)?;
    for odd in odd_traces(&result) {
        screen.warn(odd);
    }
    for disturbed in info.disturbances(false) {
        screen.warn(disturbed);
    }
    if takes_no_values && unread_input() {
        screen.warn(RunWarning::InputUnread);
    }
    let adopted = info.earlier.iter().any(|job| job.adopted);
    info.warnings.extend(screen.take_warnings());
    if info
        .warnings
        .iter()
        .any(|warning| matches!(warning, RunWarning::OutputLost { .. }))
    {
        folder.keep();
    }
    let record = record(&result, &info);
    let kept = keep(record_to, &plan.logs, &record);
    screen.clear();
    // What the run found out is shown even where it can't be kept, and a reader who has gone does not change it.
    match print(args, &record) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        printed => printed?,
    }
    kept?;
    if let Some(keep) = args.output.keep_logs.filter(|_| args.output.logs.is_none()) {
        prune(Path::new(DEFAULT_LOGS), keep as usize);
    }
    let exit = exit_of(&result, &plan.config.halt, is_only);
    let lost: Vec<&RunWarning> = info
        .warnings
        .iter()
        .filter(|warning| warning.is_lost_file())
        .collect();
    if args.output.quiet {
        // The user asked for this file, and it is incomplete: --quiet does not hide that.
        lost.iter()
            .for_each(|warning| stderr::say(format_args!("cosched: {}", visible(&warning.text()))));
    }
    // It is not known that an adopted job succeeded.
    Ok(if exit == Exit::Success && (adopted || !lost.is_empty()) {
        Exit::Failure
    } else {
        exit
    })
}

/// Whether there is something in a pipe to standard input that nobody has read.
fn unread_input() -> bool {
    let input = std::io::stdin();
    let is_pipe = rustix::fs::fstat(&input).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo
    });
    is_pipe && rustix::io::ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0)
}

/// Warnings for jobs whose solo trace can't belong to the work that they did: the numbers of instructions differ by
/// more than a tenth.
fn odd_traces(result: &RunResult) -> Vec<RunWarning> {
    let odd = |task: &TaskResult| {
        let (trace, did) = (
            task.spec.solo.trace.as_ref()?.instructions(),
            task.counts[Counter::Instructions].value()?,
        );
        let ended_well = task.exit.as_ref().is_some_and(cosched_core::Exit::ok);
        (ended_well && trace.abs_diff(did) > trace / 10).then(|| RunWarning::SoloTraceOdd {
            job: task.spec.name.clone(),
            retired: did,
            alone: trace,
        })
    };
    result.tasks.iter().filter_map(odd).collect()
}
