//! Running a plan: solo runs if asked for, the run itself, and what is left behind.

use super::args::{Format, RunArgs};
use super::machine::MachineView;
use super::plan::{self, Plan, SoloWish};
use super::screen::{self, Screen};
use super::show::Shower;
use crate::exit::{Exit, usage};
use crate::input::Command;
use anyhow::Context as _;
use cosched_core::{
    EndedBy, Feed, Feeds, Halt, Nanos, Params, Policy, Rate, Reading, Restart, RunConfig, RunError, RunResult,
    SoloProfile, TaskSpec, find_policy,
};
use cosched_linux::root::Root;
use cosched_linux::{Freezing, Host, HostConfig, HostError, HostJob, Notice as HostNotice};
use cosched_report::{
    BackendKind, EnergySource, EventWriter, FileRecorder, JobInfo, JobLogWriter, Notice, Record, RunInfo, SeriesHeader,
    SeriesReader, SeriesWriter, Solo, SoloFile, SoloSource, SummaryOptions, append_joblog, ended_line, progress_line,
    record, summary,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Runs a plan to its end and reports.
pub(crate) fn execute(args: &RunArgs, view: &MachineView, mut plan: Plan) -> anyhow::Result<Exit> {
    // Whatever can't be written is found before anything is started.
    let files = Files::open(args, &plan)?;
    let screen = Screen::new(args.output.quiet);
    for without in &plan.choice.shortfalls {
        screen.warn(&format!("without {without}"));
    }
    let mut infos: Vec<JobInfo> = plan
        .jobs
        .iter()
        .zip(plan.specs.iter().zip(&plan.programs))
        .map(|((seq, job), (spec, program))| JobInfo {
            seq: *seq,
            program: job.input.program.clone(),
            command: job.input.command.as_ref().map(Command::line),
            log: Some(program.stdout.display().to_string()),
            log_stderr: Some(program.stderr.display().to_string()),
            ..JobInfo::of(spec)
        })
        .collect();
    match &plan.solo {
        SoloWish::Nothing => {}
        SoloWish::Known(times) | SoloWish::Profiles(times, _) => {
            for info in &mut infos {
                let time = times.get(&info.name, info.command.as_deref());
                info.solo = time.map(|s| Solo { time: Nanos::from_s(s), source: SoloSource::Record });
                if time.is_none() {
                    screen.warn(&format!("the --solo file has no solo time for job {}", info.name));
                }
            }
        }
        SoloWish::Measure => {
            if let Some(exit) = measure_solo(args, view, &mut plan, &mut infos, &screen)? {
                return Ok(exit);
            }
            plan::require_solo(&plan.choice, &plan.specs)?;
        }
    }
    for (spec, info) in plan.specs.iter_mut().zip(&infos) {
        spec.solo.time = info.solo.map(|solo| solo.time);
    }
    let mut policy = (plan.choice.entry.build)(&plan.choice.params);
    let setup = Setup {
        name: plan.choice.entry.name,
        params: &plan.choice.params,
        config: &plan.config,
        started_at: std::time::SystemTime::now(),
    };
    let (result, mut info) =
        run_once(args, view, &setup, &mut *policy, plan.host_jobs(), &plan.specs, infos, files, &screen)?;
    for odd in odd_traces(&result) {
        screen.warn(&odd);
    }
    info.warnings.extend(screen.take_warnings());
    let record = record(&result, &info);
    keep(args, &plan, &record)?;
    screen.clear();
    print(args, &record)?;
    Ok(exit_of(&result))
}

/// What differs between the run itself and the solo runs before it.
struct Setup<'a> {
    name: &'a str,
    params: &'a Params,
    config: &'a RunConfig,
    started_at: std::time::SystemTime,
}

/// The files that are written while a run goes on.
#[derive(Default)]
struct Files {
    series: Option<File>,
    events: Option<File>,
    joblog: Option<JobLogWriter<File>>,
}

impl Files {
    fn open(args: &RunArgs, plan: &Plan) -> anyhow::Result<Files> {
        let made = plan::make_logs(&plan.logs)?;
        Files::open_in_logs(args, plan).inspect_err(|_| {
            // Nothing was started: a folder that was made for nothing goes. One that is not empty stays.
            if !made.is_empty() {
                let _ = std::fs::remove_file(plan.logs.join("series.jsonl"));
            }
            for folder in &made {
                let _ = std::fs::remove_dir(folder);
            }
        })
    }

    fn open_in_logs(args: &RunArgs, plan: &Plan) -> anyhow::Result<Files> {
        let create = |option: &str, path: &Path| {
            File::create(path)
                .map_err(|error| usage(format!("{option} {}: {error}; nothing was started", path.display())))
        };
        if let Some(path) = &args.output.record {
            // Not truncated: an earlier record stays until there is a new one.
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|error| usage(format!("--record {}: {error}; nothing was started", path.display())))?;
        }
        let events = args.output.events.as_ref().map(|path| create("--events", path)).transpose()?;
        let series = Some(create("--logs", &plan.logs.join("series.jsonl"))?);
        // Last, since a job log that is begun anew loses what it held: by now everything else can be written.
        let joblog = match &args.output.joblog {
            None => None,
            Some(path) => {
                let fail = |error| usage(format!("--joblog {}: {error}; nothing was started", path.display()));
                let log = append_joblog(path).map_err(fail)?;
                if args.resume {
                    Some(log)
                } else {
                    drop(log);
                    create("--joblog", path)?;
                    Some(append_joblog(path).map_err(fail)?)
                }
            }
        };
        Ok(Files { series, events, joblog })
    }
}

/// One run of the loop on this machine.
#[allow(clippy::too_many_arguments)]
fn run_once(
    args: &RunArgs,
    view: &MachineView,
    setup: &Setup<'_>,
    policy: &mut dyn Policy,
    host_jobs: Vec<HostJob>,
    specs: &[TaskSpec],
    jobs: Vec<JobInfo>,
    files: Files,
    screen: &Screen,
) -> anyhow::Result<(RunResult, RunInfo)> {
    let shower = args.output.output.map(|how| {
        let logs =
            host_jobs.iter().map(|job| (job.name.clone(), job.program.stdout.clone(), job.program.stderr.clone()));
        RefCell::new(Shower::new(how, args.output.format == Format::Json, logs))
    });
    let tell = screen.clone();
    let mut host = Host::new(HostConfig {
        root: Root::default(),
        machine: view.topology.machine.clone(),
        jobs: host_jobs,
        freezing: view.freezing,
        counters: view.counters.clone(),
        mem_keep: args.limits.mem_keep,
        max_pause: args.limits.max_pause,
        small: view.small.clone(),
        notice: Box::new(move |notice| tell.warn(&host_notice(&notice))),
    })?;
    let counted: Vec<&str> =
        view.counters.events.iter().filter(|(_, state)| state.is_value()).map(|(kind, _)| kind.name()).collect();
    let freezing = match host.freezing() {
        Freezing::Cgroup => "cgroup v2 freezer",
        Freezing::Signals | Freezing::Auto => "signals (SIGSTOP, SIGCONT)",
    };
    let has_energy = view.feeds.why_missing(Feed::Energy).is_none();
    let mut info = RunInfo {
        policy: setup.name.to_owned(),
        backend: BackendKind::Host,
        machine: std::sync::Arc::new(view.topology.machine.clone()),
        seed: setup.config.seed,
        quantum: setup.config.quantum,
        started_at: Some(setup.started_at),
        jobs,
        feeds: worth_telling(&view.feeds, setup),
        counters: (!counted.is_empty()).then(|| counted.join(", ")),
        freezing: Some(freezing.to_owned()),
        cpu_share: Reading::Absent(cosched_core::Absence::NotYetMeasured),
        energy_source: if has_energy { EnergySource::Measured } else { EnergySource::Absent },
        warnings: Vec::new(),
    };
    let mut recorder = FileRecorder::new(&info, specs);
    if let Some(file) = files.series {
        let header = SeriesHeader::new(&info, specs);
        recorder = recorder.with_series(SeriesWriter::new(Box::new(file), &header));
    }
    if let Some(file) = files.events {
        let params =
            setup.params.iter().map(|(name, value)| (name.to_owned(), serde_json::to_value(value).unwrap_or_default()));
        let params: BTreeMap<String, serde_json::Value> = params.collect();
        recorder = recorder.with_events(EventWriter::new(Box::new(file), info.backend, setup.name, params));
    }
    if let Some(joblog) = files.joblog {
        recorder = recorder.with_joblog(JobLogWriter::new(Box::new(joblog.into_inner()), false));
    }
    let infos = info.jobs.clone();
    let mut recorder = recorder.with_listener(|notice| match notice {
        Notice::Started { task, .. } => {
            if let Some(shower) = &shower {
                shower.borrow_mut().started(task.id.0 as usize);
            }
            if args.output.verbose {
                screen.say(&format!("started {}", task.name));
            }
        }
        Notice::Ended { result, info, progress } => {
            if let Some(shower) = &shower {
                shower.borrow_mut().ended(result.spec.id.0 as usize, || screen.clear());
            }
            let failed = result.timed_out || !result.exit.as_ref().is_some_and(cosched_core::Exit::ok);
            if failed || args.output.verbose || !screen.is_terminal() {
                screen.say(&ended_line(progress, result, info));
            }
            if failed && let Some(text) = last_error(infos.get(result.spec.id.0 as usize)) {
                screen.say(&text);
            }
        }
        Notice::Progress(progress) => {
            if let Some(shower) = &shower {
                shower.borrow_mut().poll(|| screen.clear());
            }
            screen.progress(|width| progress_line(progress, width));
        }
        Notice::Warning(text) => screen.say(&format!("cosched: {text}")),
    });
    let cpu_before = own_cpu_time();
    let result = cosched_core::run(&mut host, policy, &mut recorder, specs.to_vec(), setup.config);
    let warnings = recorder.into_warnings();
    let cpu_used = own_cpu_time() - cpu_before;
    drop(host);
    screen.clear();
    let result = match result {
        Ok(result) => result,
        Err(RunError::Backend(HostError::System { what, source })) => {
            return Err(anyhow::Error::new(source).context(what));
        }
        Err(error) => return Err(error.into()),
    };
    info.warnings = warnings;
    if result.turnaround > Nanos::ZERO {
        info.cpu_share = Reading::Value(cpu_used.share_of(result.turnaround));
    }
    Ok((result, info))
}

/// What is off and matters: what every report has, and what this policy wants. That a machine has one type of core is
/// no defect to anybody else.
fn worth_telling(feeds: &Feeds, setup: &Setup<'_>) -> Feeds {
    let needs = find_policy(setup.name).map(|entry| (entry.needs)(setup.params)).unwrap_or_default();
    let mut told = feeds.clone();
    told.missing.retain(|&feed, _| {
        feed.is_counter() || matches!(feed, Feed::CpuTime | Feed::Energy) || needs.iter().any(|need| need.feed == feed)
    });
    told
}

/// The last line that a failed job wrote to its error output.
fn last_error(info: Option<&JobInfo>) -> Option<String> {
    let text = std::fs::read(info?.log_stderr.as_ref()?).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let short: String = line.chars().take(200).collect();
    Some(format!("    {short}"))
}

/// CPU time of this process, without its children.
fn own_cpu_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Runs each distinct job alone and notes its time; an exit if the user has had enough.
fn measure_solo(
    args: &RunArgs,
    view: &MachineView,
    plan: &mut Plan,
    infos: &mut [JobInfo],
    screen: &Screen,
) -> anyhow::Result<Option<Exit>> {
    let fifo = find_policy("fifo").context("the table of policies has no fifo")?;
    let params = Params::resolve(fifo.name, fifo.params, &[])?;
    let folder = plan.logs.join("solo");
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    // One of each: copies of a job share its solo time.
    let mut firsts: Vec<usize> = Vec::new();
    let mut first_of: Vec<usize> = Vec::new();
    for (ix, (_, job)) in plan.jobs.iter().enumerate() {
        let same = |&&other: &&usize| {
            let a = &plan.jobs[other].1.input;
            let b = &job.input;
            a.command == b.command && a.env == b.env && a.cwd == b.cwd && a.stdin == b.stdin && a.cpus == b.cpus
        };
        let first = firsts.iter().find(same).copied();
        first_of.push(first.unwrap_or(ix));
        if first.is_none() {
            firsts.push(ix);
        }
    }
    screen.say(&format!("cosched: {} solo runs first, one after the other", firsts.len()));
    let all = plan.host_jobs();
    let mut jobs = Vec::new();
    let mut specs = Vec::new();
    let mut solo_infos = Vec::new();
    for (number, &ix) in firsts.iter().enumerate() {
        let mut job = all[ix].clone();
        let moved = |path: &PathBuf| path.file_name().map_or_else(|| folder.join("out"), |name| folder.join(name));
        job.program.stdout = moved(&job.program.stdout);
        job.program.stderr = moved(&job.program.stderr);
        solo_infos.push(JobInfo {
            log: Some(job.program.stdout.display().to_string()),
            log_stderr: Some(job.program.stderr.display().to_string()),
            ..infos[ix].clone()
        });
        specs.push(TaskSpec { cpus: plan.specs[ix].cpus, ..TaskSpec::new(number as u32, &job.name) });
        jobs.push(job);
    }
    let config = RunConfig { jobs: 1, halt: Halt::default(), restart: Restart::Never, ..plan.config.clone() };
    let setup = Setup { name: fifo.name, params: &params, config: &config, started_at: std::time::SystemTime::now() };
    let mut policy = (fifo.build)(&params);
    let series = plan.logs.join("solo.series.jsonl");
    let file = File::create(&series).with_context(|| format!("{}", series.display()))?;
    let files = Files { series: Some(file), ..Files::default() };
    let (result, info) = run_once(args, view, &setup, &mut *policy, jobs, &specs, solo_infos, files, screen)?;
    let record = record(&result, &info);
    write_whole(&plan.logs.join("solo.json"), &record.to_json())?;
    let profiles = solo_profiles(&record, &series)?;
    write_whole(&plan.logs.join("solo-profiles.json"), &profiles.to_json())?;
    if let EndedBy::Signal(_) = result.ended_by {
        return Ok(Some(exit_of(&result)));
    }
    for (ix, &first) in first_of.iter().enumerate() {
        let Some(task) = firsts.iter().position(|&f| f == first).and_then(|number| result.tasks.get(number)) else {
            continue;
        };
        let ok = task.exit.as_ref().is_some_and(cosched_core::Exit::ok) && !task.timed_out;
        let (Some(started), Some(finished), true) = (task.started, task.finished, ok) else {
            if first == ix {
                screen.warn(&format!("job {} failed alone: no solo time, no slowdown for it", infos[ix].name));
            }
            continue;
        };
        let time = finished - started;
        infos[ix].solo = Some(Solo { time, source: SoloSource::Measured });
        let reads = task.counts.mm_reads.value().and_then(|reads| Rate::from_count(reads, time));
        let found = profiles.jobs.iter().find(|job| job.name == infos[first].name);
        let trace = found.and_then(|job| job.trace.clone()).map(std::sync::Arc::new);
        plan.specs[ix].solo = SoloProfile { time: Some(time), mm_reads: reads, trace };
    }
    Ok(None)
}

/// Jobs whose solo trace can't be of the work that they did: its length is another by more than a tenth.
fn odd_traces(result: &RunResult) -> Vec<String> {
    let odd = |task: &cosched_core::TaskResult| {
        let (trace, did) = (task.spec.solo.trace.as_ref()?.instructions(), task.counts.instructions.value()?);
        let ended_well = task.exit.as_ref().is_some_and(cosched_core::Exit::ok);
        (ended_well && trace.abs_diff(did) > trace / 10).then(|| {
            format!("job {} retired {did} instructions, alone {trace}: its solo trace is of other work", task.spec.name)
        })
    };
    result.tasks.iter().filter_map(odd).collect()
}

/// What each job did alone, from the series of the solo runs.
fn solo_profiles(record: &Record, series: &Path) -> anyhow::Result<SoloFile> {
    let name = series.display().to_string();
    let file = File::open(series).with_context(|| name.clone())?;
    Ok(SoloFile::of_run(record, SeriesReader::new(std::io::BufReader::new(file), &name)?)?)
}

fn host_notice(notice: &HostNotice) -> String {
    match notice {
        HostNotice::Mended(mended) => format!(
            "an earlier run was killed with its guardian; {} groups were thawed and removed, {} processes continued",
            mended.groups.len(),
            mended.continued.len()
        ),
        HostNotice::StoppedItself { job } => {
            format!("job {job} stopped itself; its CPUs go to others until it is continued (kill -CONT)")
        }
        HostNotice::Continued { job } => format!("job {job} had stopped itself for too long and was continued"),
        HostNotice::Lingers { job, processes } => {
            format!(
                "job {job}: its own process has ended; {processes} that it started still run, and the job with them"
            )
        }
        HostNotice::GuardianReplaced => "the guardian was killed; another has taken its place".to_owned(),
        HostNotice::NoGuardian(why) => {
            format!("there is no guardian ({why}): if cosched is killed now, use `cosched thaw`")
        }
        HostNotice::FreezeFailed { job, why } => format!("job {job} could not be frozen or thawed: {why}"),
        HostNotice::CountersFailed { job, why } => format!("job {job} is not counted: {why}"),
    }
}

/// Writes the record beside the logs and, if asked for, where the user wants it.
fn keep(args: &RunArgs, plan: &Plan, record: &Record) -> anyhow::Result<()> {
    let text = record.to_json();
    let in_logs = write_whole(&plan.logs.join("run.json"), &text);
    if let Some(path) = &args.output.record {
        write_whole(path, &text)?;
        let beside = path.with_extension("series.jsonl");
        let from = plan.logs.join("series.jsonl");
        std::fs::copy(&from, &beside).with_context(|| format!("{}", beside.display()))?;
    }
    // A full log folder takes nothing from how the jobs ended, and the answer is still printed: told, and no more.
    if let Err(error) = in_logs {
        eprintln!("cosched: {error:#}");
    }
    Ok(())
}

/// Writes a file whole or not at all.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("can't write {}", path.display());
    // What is no plain file (a pipe, /dev/stdout) can't be replaced.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, text).with_context(context);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new).with_context(context)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.with_context(context)
}

/// The answer: the record, or a summary for people.
fn print(args: &RunArgs, record: &Record) -> anyhow::Result<()> {
    if args.output.format == Format::Json {
        std::io::stdout().write_all(record.to_json().as_bytes())?;
        return Ok(());
    }
    if args.output.quiet {
        return Ok(());
    }
    // With --output standard output belongs to the jobs.
    let to_stderr = args.output.output.is_some();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_terminal = if to_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let width = if to_stderr { screen::width_of(std::io::stderr()) } else { screen::width_of(std::io::stdout()) };
    let options = SummaryOptions { width: if is_terminal { width } else { 100 }, colour: is_terminal && !no_colour };
    let text = summary(record, &options);
    if to_stderr {
        std::io::stderr().write_all(text.as_bytes())?;
    } else {
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The exit that a result leads to.
fn exit_of(result: &RunResult) -> Exit {
    let failed = |task: &cosched_core::TaskResult| !task.exit.as_ref().is_some_and(cosched_core::Exit::ok);
    match result.ended_by {
        EndedBy::Signal(signal) => Exit::Signal(signal),
        _ if result.tasks.iter().any(|task| task.timed_out) => Exit::TimedOut,
        EndedBy::Halt if result.tasks.iter().any(|task| task.exit.as_ref().is_some_and(|exit| !exit.ok())) => {
            Exit::Failure
        }
        // A rule on successes was met: what it left out did not fail.
        EndedBy::Halt => Exit::Success,
        EndedBy::Completion if result.tasks.iter().any(failed) => Exit::Failure,
        EndedBy::Completion => Exit::Success,
    }
}
