//! What a run is going to do, checked as far as it can be before anything is started.

use super::args::RunArgs;
use super::machine::{Choice, MachineView, check_emulation, choose};
use crate::exit::{incapable, usage};
use crate::input::{Command, Job};
use cosched_core::{
    Change, CpuSet, Feed, Feeds, Importance, Nanos, RunConfig, Snapshot, SoloProfile, TaskId, TaskSpec, TaskView,
    Trigger,
};
use cosched_linux::{Freezing, HostJob, Program, find_program};
use cosched_report::{Record, SoloFile, SoloTimes, solo_times, wait_text};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A run that is ready to be started.
pub(crate) struct Plan {
    pub(crate) choice: Choice,
    pub(crate) config: RunConfig,
    /// The jobs with their numbers in the job log.
    pub(crate) jobs: Vec<(u64, Job)>,
    pub(crate) programs: Vec<Program>,
    pub(crate) specs: Vec<TaskSpec>,
    pub(crate) logs: PathBuf,
    pub(crate) solo: SoloWish,
    pub(crate) skipped: usize,
}

/// Where solo times come from.
pub(crate) enum SoloWish {
    Nothing,
    Measure,
    Known(SoloTimes),
    /// A file of solo profiles, and the times in it.
    Profiles(SoloTimes, SoloFile),
}

impl SoloWish {
    /// What is known of a job beforehand.
    fn profile(&self, job: &Job) -> SoloProfile {
        let SoloWish::Profiles(_, file) = self else { return SoloProfile::default() };
        let command = job.input.command.as_ref().map(Command::line);
        file.profile(&job.name, command.as_deref()).unwrap_or_default()
    }
}

/// What an earlier record, or a file of solo profiles, says.
fn known_solo(file: &str) -> anyhow::Result<SoloWish> {
    let text = crate::input::read_text(Path::new(file))?;
    if SoloFile::is_one(&text) {
        let profiles = SoloFile::from_json(&text).map_err(|error| usage(format!("--solo {file}: {error}")))?;
        return Ok(SoloWish::Profiles(profiles.times(), profiles));
    }
    let record = Record::from_json(&text).map_err(|error| usage(format!("--solo {file}: {error}")))?;
    let times = solo_times(&record);
    if times.is_empty() {
        return Err(usage(format!(
            "--solo {file}: the record has no solo time; make one with `cosched run --solo measure`, or by running the \
             jobs with `--policy fifo --jobs 1`"
        )));
    }
    Ok(SoloWish::Known(times))
}

/// What solo runs will feed, or a file does: whether it does so for every job is seen later.
fn solo_feeds(solo: &SoloWish, feeds: &mut Feeds) {
    for (feed, counted) in [(Feed::SoloBandwidth, Feed::MmReads), (Feed::SoloTrace, Feed::Ipc)] {
        match (solo, feeds.why_missing(counted)) {
            (SoloWish::Nothing | SoloWish::Known(_), _) => {}
            (SoloWish::Measure, Some(why)) => {
                feeds.missing.insert(feed, why);
            }
            (SoloWish::Measure, None) | (SoloWish::Profiles(..), _) => {
                feeds.missing.remove(&feed);
            }
        }
    }
}

/// Holds what is known of each job alone against what the policy needs.
pub(crate) fn require_solo(choice: &Choice, specs: &[TaskSpec]) -> anyhow::Result<()> {
    for need in (choice.entry.needs)(&choice.params) {
        let lacks = |spec: &&TaskSpec| match need.feed {
            Feed::SoloBandwidth => spec.solo.mm_reads.is_none(),
            Feed::SoloTrace => spec.solo.trace.is_none(),
            _ => false,
        };
        let lacking: Vec<&str> = specs.iter().filter(lacks).map(|spec| spec.name.as_str()).collect();
        if need.importance == Importance::Required && !lacking.is_empty() {
            let shown = lacking[..lacking.len().min(5)].join(", ");
            let more = if lacking.len() > 5 { format!(" and {} more", lacking.len() - 5) } else { String::new() };
            return Err(incapable(format!(
                "policy {} needs the {}, and {shown}{more} {} none; make them with `cosched run --solo measure`, or give a \
                 solo-profiles.json of an earlier run, as in --solo cosched-logs/RUN/solo-profiles.json",
                choice.entry.name,
                need.feed.text(),
                if lacking.len() == 1 { "has" } else { "have" }
            )));
        }
    }
    Ok(())
}

impl Plan {
    pub(crate) fn new(
        args: &RunArgs,
        view: &MachineView,
        jobs: Vec<(u64, Job)>,
        skipped: usize,
    ) -> anyhow::Result<Plan> {
        let solo = match args.solo.as_deref() {
            None => SoloWish::Nothing,
            Some("measure") => SoloWish::Measure,
            Some(file) => known_solo(file)?,
        };
        let mut feeds = view.feeds.clone();
        solo_feeds(&solo, &mut feeds);
        let choice = choose(&args.policy, &feeds)?;
        check_emulation(view, &choice)?;
        let machine = &view.topology.machine;
        let started_at = SystemTime::now();
        let logs = args.output.logs.clone().unwrap_or_else(|| default_logs(started_at));
        let logs = std::path::absolute(&logs).unwrap_or(logs);
        let mut programs = Vec::new();
        let mut specs = Vec::new();
        for (ix, (_, job)) in jobs.iter().enumerate() {
            let input = &job.input;
            if input.cpus as usize > machine.cpus.len() {
                return Err(incapable(format!(
                    "{}: job `{}` needs cpus = {}, and {} can be used here ({}); use a smaller number, as in cpus = 1",
                    input.place,
                    job.name,
                    input.cpus,
                    machine.cpus.len(),
                    machine.all_cpus()
                )));
            }
            programs.push(program(job, &logs)?);
            specs.push(TaskSpec {
                cpus: input.cpus,
                arrives: Nanos::from_s(input.start_s),
                solo: solo.profile(job),
                ..TaskSpec::new(ix as u32, &job.name)
            });
        }
        if !matches!(solo, SoloWish::Measure) {
            require_solo(&choice, &specs)?;
        }
        let cpus = machine.cpus.len();
        let default_jobs = if choice.entry.time_shares { 4 * cpus } else { cpus };
        let config = RunConfig {
            quantum: Nanos::from_s(choice.params.number("quantum_s")),
            jobs: args.limits.jobs.map_or(default_jobs, |n| n as usize),
            max_pause: args.limits.max_pause,
            halt: args.limits.halt,
            timeout: args.limits.timeout,
            grace: args.limits.grace,
            seed: args.policy.seed,
            ..RunConfig::default()
        };
        Ok(Plan { choice, config, jobs, programs, specs, logs, solo, skipped })
    }

    /// The jobs as the backend wants them.
    pub(crate) fn host_jobs(&self) -> Vec<HostJob> {
        let jobs = self.jobs.iter().zip(&self.programs);
        jobs.map(|((_, job), program)| HostJob { name: job.name.clone(), program: program.clone() }).collect()
    }
}

fn default_logs(now: SystemTime) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(now).to_string();
    let stamp: String = stamp.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    PathBuf::from("cosched-logs").join(format!("{}-{}", stamp.replace('T', "-"), std::process::id()))
}

/// What to start for a job; `cosched` itself is this very program.
fn program(job: &Job, logs: &Path) -> anyhow::Result<Program> {
    let input = &job.input;
    let place = &input.place;
    let Some(command) = &input.command else {
        return Err(usage(format!(
            "{place}: job `{}` has a program to simulate but no command to run; add one, as in command = [\"gzip\", \"a\"]",
            job.name
        )));
    };
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    env.retain(|(name, _)| name.to_str().is_none_or(|name| !input.env.contains_key(name)));
    env.extend(input.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    let cwd = input.cwd.as_deref().map(|cwd| std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned()));
    if let Some(cwd) = cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        return Err(usage(format!("{place}: job `{}`: cwd {} is not a folder", job.name, cwd.display())));
    }
    let stdin = input.stdin.as_deref().map(|file| match &cwd {
        Some(cwd) => cwd.join(file),
        None => std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
    });
    if let Some(file) = &stdin
        && let Err(error) = std::fs::File::open(file)
    {
        return Err(usage(format!("{place}: job `{}`: stdin {}: {error}", job.name, file.display())));
    }
    let (path, args) = match command {
        Command::Shell(line) => (PathBuf::from("/bin/sh"), ["sh", "-c", line].map(OsString::from).to_vec()),
        Command::Argv(words) => {
            let search = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
            let found = match words[0].as_str() {
                "cosched" => std::env::current_exe().ok(),
                name => find_program(OsStr::new(name), cwd.as_deref(), search),
            };
            let Some(found) = found else {
                return Err(usage(format!(
                    "{place}: job `{}`: there is no program `{}`{}; check the name, or give its path, as in command = \
                     [\"./tool\"]",
                    job.name,
                    words[0],
                    if words[0].contains('/') { "" } else { " in PATH" }
                )));
            };
            (found, words.iter().map(OsString::from).collect())
        }
    };
    let stdout = logs.join(format!("{}.out", job.name));
    let stderr = logs.join(format!("{}.err", job.name));
    Ok(Program { path, args, env, cwd, stdin, stdout, stderr })
}

/// Makes the log folder and proves that it can be written; gives the folders that were not there before, the deepest
/// first.
pub(crate) fn make_logs(logs: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let made: Vec<PathBuf> = logs.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    let fail = |error: std::io::Error| {
        usage(format!(
            "--logs: can't write to the log folder {}: {error}; nothing was started; choose another, as in --logs /tmp/run1",
            logs.display()
        ))
    };
    std::fs::create_dir_all(logs).map_err(fail)?;
    let probe = logs.join(".cosched-probe");
    let mut file = std::fs::File::create(&probe).map_err(fail)?;
    let written = file.write_all(b"probe").and_then(|()| file.sync_all());
    let _ = std::fs::remove_file(&probe);
    written.map_err(fail)?;
    Ok(made)
}

/// What the policy sees when all jobs that may be live are there and none has been started.
fn first_snapshot(view: &MachineView, plan: &Plan) -> Snapshot {
    let live = plan.specs.iter().filter(|spec| spec.arrives == Nanos::ZERO).take(plan.config.jobs);
    let tasks = live.map(|spec| TaskView {
        id: spec.id,
        name: spec.name.as_str().into(),
        cpus: spec.cpus,
        allowed: None,
        nice: 0,
        origin: spec.origin,
        control: spec.control,
        arrived: spec.arrives,
        running: None,
        asleep: false,
        waiting_since: Nanos::ZERO,
        overdue: false,
        last_cpus: CpuSet::new(),
        estimates: cosched_core::Estimates::default(),
    });
    Snapshot {
        machine: std::sync::Arc::new(view.topology.machine.clone()),
        now: Nanos::ZERO,
        triggers: vec![Trigger::QuantumEnd],
        tasks: tasks.collect(),
    }
}

/// `--dry-run`: what would be done, and why.
pub(crate) fn explain(args: &RunArgs, view: &MachineView, plan: &Plan) -> anyhow::Result<()> {
    let mut policy = (plan.choice.entry.build)(&plan.choice.params);
    let snapshot = first_snapshot(view, plan);
    let decision = policy.decide(&snapshot, &mut cosched_core::Rng::new(args.policy.seed));
    if args.output.format == super::Format::Json {
        let jobs: Vec<_> = plan
            .jobs
            .iter()
            .map(|(seq, job)| {
                let command = job.input.command.as_ref().map(Command::line);
                serde_json::json!({ "seq": seq, "name": job.name, "command": command, "cpus": job.input.cpus })
            })
            .collect();
        let object = serde_json::json!({
            "policy": plan.choice.entry.name,
            "params": plan.choice.params,
            "machine": view.topology.machine.name,
            "cpus": view.topology.machine.all_cpus(),
            "live_jobs": plan.config.jobs,
            "without": plan.choice.shortfalls,
            "skipped": plan.skipped,
            "jobs": jobs,
            "first_decision": decision,
        });
        println!("{}", serde_json::to_string_pretty(&object)?);
        return Ok(());
    }
    let machine = &view.topology.machine;
    println!("policy    {} - {}", plan.choice.entry.name, plan.choice.entry.gist);
    for (name, value) in plan.choice.params.iter() {
        println!("          {name} = {}", serde_json::to_string(value)?);
    }
    for without in &plan.choice.shortfalls {
        println!("without   {without}");
    }
    println!("machine   {}, CPUs {}", machine.name, machine.all_cpus());
    let freezing = if view.freezing == Freezing::Cgroup { "cgroup freezer" } else { "signals" };
    println!("freezing  {freezing}");
    println!("logs      {}", plan.logs.display());
    let skipped = if plan.skipped > 0 { format!(", {} done before", plan.skipped) } else { String::new() };
    println!("jobs      {} (at most {} live at once){skipped}", plan.jobs.len(), plan.config.jobs);
    let name = |id: TaskId| plan.specs[id.0 as usize].name.as_str();
    for (_, job) in &plan.jobs {
        println!("          {:<20} {}", job.name, job.input.command.as_ref().map_or_else(String::new, Command::line));
    }
    println!("first");
    for change in &decision.changes {
        if let Change::Place { task, placement, .. } = change {
            println!("          {:<20} starts on CPU {}", name(*task), placement.cpus());
        }
    }
    for wait in &decision.waits {
        println!("          {:<20} waits: {}", name(wait.task), wait_text(&wait.reason));
    }
    println!("nothing was started");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Absence, Params, Rate, SoloTrace, find_policy};

    fn choice(policy: &str) -> Choice {
        let entry = find_policy(policy).expect("a policy of the table");
        let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
        Choice { entry, params, shortfalls: Vec::new() }
    }

    #[test]
    fn jobs_without_a_solo_trace_are_named() {
        let trace = SoloTrace::new(vec![(1_000, 1.0)]).expect("a trace");
        let known = SoloProfile { time: None, mm_reads: Some(Rate(1)), trace: Some(trace.into()) };
        let mut specs: Vec<TaskSpec> = (0..8).map(|id| TaskSpec::new(id, &format!("job-{id}"))).collect();
        specs.iter_mut().for_each(|spec| spec.solo = known.clone());
        assert!(require_solo(&choice("oracle"), &specs).is_ok());
        specs[5].solo.trace = None;
        let error = require_solo(&choice("oracle"), &specs).expect_err("job-5 lacks it").to_string();
        assert!(error.contains("solo trace of each job, and job-5 has none"), "{error}");
        specs.iter_mut().for_each(|spec| spec.solo.trace = None);
        let error = require_solo(&choice("oracle"), &specs).expect_err("all lack it").to_string();
        assert!(error.contains("job-4 and 3 more have none"), "{error}");
        // Who does not need it does not ask.
        assert!(require_solo(&choice("perf-fair"), &specs).is_ok());
    }

    #[test]
    fn solo_runs_feed_what_can_be_counted() {
        let feeds = |missing: &[Feed], solo: &SoloWish| {
            let mut feeds = Feeds::default();
            for &feed in missing.iter().chain(&[Feed::SoloTrace, Feed::SoloBandwidth]) {
                feeds.missing.insert(feed, Absence::NoCounters);
            }
            solo_feeds(solo, &mut feeds);
            (feeds.why_missing(Feed::SoloTrace), feeds.why_missing(Feed::SoloBandwidth))
        };
        let no = Some(Absence::NoCounters);
        assert_eq!(feeds(&[], &SoloWish::Nothing), (no, no));
        assert_eq!(feeds(&[], &SoloWish::Measure), (None, None));
        assert_eq!(feeds(&[Feed::Ipc], &SoloWish::Measure), (no, None));
        assert_eq!(feeds(&[Feed::MmReads], &SoloWish::Measure), (None, no));
    }
}
