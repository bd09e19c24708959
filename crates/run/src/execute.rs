//! Carries out a plan: solo runs if wanted, the run itself, and the report.

use super::answer::{Ending, exit_of, exited_ok, print};
use super::batch::BatchResult;
use super::context::RunContext;
use super::files::{RecordFile, RunFiles, keep};
use super::folder::{JOBLOG, JOBLOG_FILES, LogFolder, LogNames};
use super::frames;
use super::limits::JobLimit;
use super::options::{RunOptions, SoloTimes};
use super::plan::RunPlan;
use super::platform::{MachineView, Platform};
use super::resume::{move_file, moved};
use super::screen::Screen;
use super::signals::Signals;
use super::solo;
use super::source::OpenInput;
use super::temporary;
use super::watch::Watch;
use crate::RunOutcome;
use crate::exit::Exit;
use crate::input::{Job, absolute, told};
use crate::stderr;
use anyhow::Result;
use cosched_core::{Counter, EndedBy, Nanos, RunResult, TaskResult, TaskSpec};
use cosched_linux::Allocation;
use cosched_report::{JobInfo, RunInfo, RunRecord, RunWarning, record, visible};
use std::cell::RefCell;
use std::path::Path;
use std::time::SystemTime;

/// Runs a plan to its end and reports.
pub(crate) fn execute<P: Platform>(
    options: &RunOptions,
    platform: &P,
    mut plan: RunPlan<P>,
    signals: &Signals,
) -> Result<RunOutcome> {
    // A file that can't be written is an error before anything is started.
    let (folder, mut files) = open_files(options, platform, &mut plan, signals)?;
    let folder = RefCell::new(folder);
    let record_file = files.record.take();
    let screen = Screen::new(options.output.quiet);
    let at_once = most_at_once(options, &plan);
    if options.output.frames {
        frames::open(&screen, options, platform.view(), at_once, &plan.batch.logs)?;
    }
    for warning in early_warnings(options, platform, &mut plan, at_once) {
        screen.warn(warning);
    }
    let memory = RefCell::new(plan.memory);
    // A coordinator shows what its workers do.
    let is_watched = !platform.view().is_simulated() && !options.output.frames;
    let watch = is_watched.then(|| Watch::new(files.metrics.take(), &screen));
    let mut batch = plan.batch;
    let logs = batch.logs.clone();
    let run = RunContext {
        options,
        platform,
        screen: &screen,
        signals,
        memory: &memory,
        watch: watch.as_ref(),
        logs: &logs,
        folder: &folder,
        input: &plan.input,
        files: &plan.files,
    };
    if let Some(exit) = solo::learn(&run, &plan.solo, &plan.jobs, &mut batch)? {
        return Ok(exit.into());
    }
    if options.solo == SoloTimes::OnlyMeasured {
        return Ok(end_of_solo_runs(&screen, &logs, &batch.infos).into());
    }
    let allocation = platform.view().allocation.as_ref();
    batch.config.ends = allocation.and_then(Allocation::end).map(time_until);
    let halt = batch.config.halt;
    let is_open = batch.open.is_some();
    let exits_as_job = exits_as_only_job(&plan.jobs, batch.open.as_ref());
    let BatchResult { result, mut info } = batch.run(&run, files)?;
    if is_open && result.tasks.is_empty() && result.ended_by == EndedBy::Completion {
        screen.say("cosched: no job came, so nothing to run");
    }
    warn_at_end(&run, &result, &mut info);
    let record = record(&result, &info);
    let kept = keep_files(&run, record_file, &record, &info);
    screen.clear();
    // Whoever reads the answer may let it wait.
    signals.release();
    // A full disk does not hide the result.
    let ending = Ending::new(&result, &halt, &logs, plan.reads_input);
    print(options, &record, &ending)?;
    kept?;
    let is_complete = report_lost_files(options, &info);
    let exit = match exit_of(&result, &halt, exits_as_job) {
        Exit::Success if !is_complete => Exit::Failure,
        exit => exit,
    };
    Ok(RunOutcome {
        exit,
        record: Some(record),
    })
}

/// How many jobs the user may expect to be live at once; 0 for no number.
fn most_at_once<P: Platform>(options: &RunOptions, plan: &RunPlan<P>) -> usize {
    let most = plan.batch.config.jobs;
    match plan.batch.open {
        // `-j 0` asks for no number.
        Some(_) if options.limits.jobs == Some(JobLimit::All) => 0,
        Some(_) => most,
        None => most.min(plan.jobs.len()),
    }
}

/// Whether the exit code of a single job is that of the run. A list with one line is a list all the same.
fn exits_as_only_job(jobs: &[(u64, Job)], open: Option<&OpenInput>) -> bool {
    match (jobs, open) {
        ([(_, job)], _) => job.input.is_only,
        (_, Some(open)) => open.arriving.takes_values(),
        _ => false,
    }
}

/// Warns about solo traces and disturbances, and notes all warnings of the run for its record.
fn warn_at_end<P>(run: &RunContext<'_, P>, result: &RunResult, info: &mut RunInfo) {
    for warning in result.tasks.iter().filter_map(odd_trace) {
        run.screen.warn(warning);
    }
    let disturbances = info.disturbances(false);
    if run.options.solo == SoloTimes::Nothing {
        // Only who measures must know at once that other programs ran.
        info.warnings.extend(disturbances);
    } else {
        for warning in disturbances {
            run.screen.warn(warning);
        }
    }
    info.warnings.extend(run.screen.take_warnings());
}

/// Writes the record, and sends a coordinator its files.
///
/// # Errors
/// The record can't be written.
fn keep_files<P>(
    run: &RunContext<'_, P>,
    record_file: Option<RecordFile>,
    record: &RunRecord,
    info: &RunInfo,
) -> Result<()> {
    let mut kept = Ok(());
    if let Some(folder) = &mut *run.folder.borrow_mut() {
        if info.warnings.iter().any(is_output_lost) {
            folder.keep();
        }
        kept = keep(record_file, run.logs, record);
    }
    if run.options.output.frames {
        frames::close(run.screen, run.logs, run.signals);
    }
    kept
}

/// Opens the log folder and all files that the run writes. A simulation that keeps none has no folder.
fn open_files<P: Platform>(
    options: &RunOptions,
    platform: &P,
    plan: &mut RunPlan<P>,
    signals: &Signals,
) -> Result<(Option<LogFolder>, RunFiles)> {
    let output = &options.output;
    let named = [&output.record, &output.events, &output.joblog];
    let is_kept = output.keeps_logs() || named.iter().any(|file| file.is_some());
    let view = platform.view();
    if view.is_simulated() && !is_kept {
        return Ok((None, RunFiles::default()));
    }
    if !view.is_simulated() {
        temporary::remove_left();
    }
    let mut names = names(options, view, plan);
    names.written.extend_from_slice(&view.folders);
    let reads = || platform.reads(&plan.jobs, &plan.batch.tasks);
    let (folder, files) =
        RunFiles::open(options, &plan.batch.logs, names, reads, &plan.seen, signals)?;
    if let Some(aside) = &folder.aside {
        follow_files(plan, aside);
    }
    Ok((Some(folder), files))
}

/// The names of the jobs' files in the log folder: of those that are to run, and of those that are done. A resumed job log stays,
/// too.
fn names<P: Platform>(options: &RunOptions, view: &MachineView, plan: &RunPlan<P>) -> LogNames {
    let mut names = LogNames::default();
    if view.has_job_files() {
        for TaskSpec { name, .. } in &plan.batch.specs {
            let files = ["out", "err"].map(|end| format!("{name}.{end}"));
            names.written.extend(files);
        }
    }
    for job in plan.batch.earlier.iter().flat_map(|earlier| &earlier.job) {
        for file in [&job.log, &job.log_stderr].into_iter().flatten() {
            let path = Path::new(file);
            if path.parent() == Some(&plan.batch.logs)
                && let Some(name) = path.file_name().and_then(|name| name.to_str())
            {
                names.stays.insert(name.to_owned());
            }
        }
    }
    for file in &names.written {
        names.stays.remove(file);
    }
    if keeps_joblog(options, &plan.batch.logs) {
        names.stays.extend(JOBLOG_FILES.map(str::to_owned));
    }
    names
}

/// Whether a job log that is in the log folder stays there: it is resumed, or the user named it.
fn keeps_joblog(options: &RunOptions, logs: &Path) -> bool {
    match &options.output.joblog {
        Some(named) => absolute(named) == logs.join(JOBLOG),
        None => options.resume.is_some() && options.has_own_joblog(),
    }
}

/// Corrects the paths of earlier runs' files that were put aside.
fn follow_files<P: Platform>(plan: &mut RunPlan<P>, aside: &Path) {
    for job in &mut plan.batch.earlier {
        moved(job, &plan.batch.logs, aside);
    }
    for warning in &mut plan.warnings {
        if let RunWarning::Rebuilt { file, .. } = warning {
            move_file(file, &plan.batch.logs, aside);
        }
    }
}

/// The warnings that are known before any job starts.
fn early_warnings<P: Platform>(
    options: &RunOptions,
    platform: &P,
    plan: &mut RunPlan<P>,
    at_once: usize,
) -> Vec<RunWarning> {
    let mut warnings = platform.view().warnings.clone();
    warnings.append(&mut plan.warnings);
    let shortfalls = plan.batch.choice.shortfalls.iter();
    warnings.extend(shortfalls.map(|&shortfall| RunWarning::Without(shortfall)));
    // Users of GNU parallel expect six sleepers from `-j 6 sleep`.
    let cpus = platform.view().machine.cpus.len();
    let entry = plan.batch.choice.entry;
    if !entry.time_shares && options.limits.jobs.is_some() && at_once > cpus {
        warnings.push(RunWarning::FewerAtOnce {
            policy: entry.name.to_owned(),
            asked: at_once,
            cpus,
        });
    }
    warnings
}

fn end_of_solo_runs(screen: &Screen, logs: &Path, infos: &[JobInfo]) -> Exit {
    let file = told(logs.join("solo-profiles.json"));
    screen.clear();
    screen.say(&format!("cosched: the solo profiles are in {file}"));
    if infos.iter().any(|info| info.solo_failed) {
        Exit::Failure
    } else {
        Exit::Success
    }
}

/// The time until an instant; zero if that is past.
fn time_until(end: SystemTime) -> Nanos {
    let left = end.duration_since(SystemTime::now());
    Nanos::from_s(left.unwrap_or_default().as_secs_f64())
}

fn is_output_lost(warning: &RunWarning) -> bool {
    matches!(warning, RunWarning::OutputLost { .. })
}

/// Returns whether all files are complete. With `--quiet` it prints which are not: the user asked for them.
fn report_lost_files(options: &RunOptions, info: &RunInfo) -> bool {
    let mut is_complete = true;
    for warning in info
        .warnings
        .iter()
        .filter(|warning| warning.is_lost_file())
    {
        is_complete = false;
        if options.output.quiet {
            let text = visible(&warning.text());
            stderr::say(format_args!("cosched: {text}"));
        }
    }
    is_complete
}

/// The warning that a solo trace belongs to other work: its instructions differ by more than a tenth.
fn odd_trace(task: &TaskResult) -> Option<RunWarning> {
    let alone = task.spec.solo.trace.as_ref()?.instructions();
    let retired = task.counts[Counter::Instructions].value()?;
    let is_odd = exited_ok(task) && alone.abs_diff(retired) > alone / 10;
    is_odd.then(|| RunWarning::SoloTraceOdd {
        job: task.spec.name.clone(),
        retired,
        alone,
    })
}
