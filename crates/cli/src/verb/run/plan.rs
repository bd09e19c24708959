//! What a run is going to do, checked as far as it can be before anything is started.

use super::args::RunArgs;
use super::policy::{Choice, choose};
use super::world::{World, check_width};
use crate::exit::usage;
use crate::input::{Command, Job};
use cosched_core::{Feed, Feeds, Nanos, RunConfig, SoloProfile, TaskSpec};
use cosched_report::{JobInfo, Record, SoloTimes, solo_times};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A run that is ready to be started.
pub(crate) struct Plan<W: World> {
    pub(crate) choice: Choice,
    /// What the policy can't be fed with, by now.
    pub(crate) feeds: Feeds,
    pub(crate) config: RunConfig,
    /// The jobs with their numbers in the job log.
    pub(crate) jobs: Vec<(u64, Job)>,
    /// The same as the world wants them.
    pub(crate) tasks: Vec<W::Job>,
    pub(crate) specs: Vec<TaskSpec>,
    pub(crate) logs: PathBuf,
    pub(crate) solo: SoloWish,
    pub(crate) skipped: usize,
}

/// Where solo times come from.
pub(crate) struct SoloWish {
    /// Jobs run alone first.
    pub(crate) alone: bool,
    /// What an earlier record says, which wins.
    pub(crate) known: Option<SoloTimes>,
}

impl<W: World> Plan<W> {
    pub(crate) fn new(args: &RunArgs, world: &W, jobs: Vec<(u64, Job)>, skipped: usize) -> anyhow::Result<Plan<W>> {
        let known = match args.solo.as_deref() {
            None | Some("measure") => None,
            Some(file) => {
                let text = crate::input::read_text(Path::new(file))?;
                let record = Record::from_json(&text).map_err(|error| usage(format!("--solo {file}: {error}")))?;
                let times = solo_times(&record);
                if times.is_empty() {
                    return Err(usage(format!(
                        "--solo {file}: the record has no solo time; make one with `cosched run --solo measure`, or by \
                         running the jobs with `--policy fifo --jobs 1`"
                    )));
                }
                Some(times)
            }
        };
        let solo = SoloWish { alone: W::SOLO_BY_DEFAULT || args.solo.as_deref() == Some("measure"), known };
        let view = world.view();
        let mut feeds = view.feeds.clone();
        if solo.alone && feeds.why_missing(Feed::MmReads).is_none() {
            feeds.missing.remove(&Feed::SoloBandwidth);
        }
        let choice = choose(&args.policy, &feeds)?;
        let machine = &view.machine;
        let started_at = SystemTime::now();
        let logs = args.output.logs.clone().unwrap_or_else(|| default_logs(started_at));
        let logs = std::path::absolute(&logs).unwrap_or(logs);
        let mut tasks = Vec::new();
        let mut specs = Vec::new();
        for (ix, (_, job)) in jobs.iter().enumerate() {
            let input = &job.input;
            check_width(job, &machine.all_cpus())?;
            tasks.push(world.job(job, &logs)?);
            specs.push(TaskSpec {
                cpus: input.cpus,
                arrives: Nanos::from_s(input.start_s),
                solo: SoloProfile::default(),
                ..TaskSpec::new(ix as u32, &job.name)
            });
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
        };
        Ok(Plan { choice, feeds, config, jobs, tasks, specs, logs, solo, skipped })
    }

    /// What is known of the jobs before the run.
    pub(crate) fn infos(&self) -> Vec<JobInfo> {
        let jobs = self.jobs.iter().zip(self.specs.iter().zip(&self.tasks));
        let text = |path: &PathBuf| path.display().to_string();
        let info = |((seq, job), (spec, task)): (&(u64, Job), (&TaskSpec, &W::Job))| {
            let files = W::files(task);
            JobInfo {
                seq: *seq,
                program: job.input.program.clone(),
                command: job.input.command.as_ref().map(Command::line),
                log: files.as_ref().map(|(out, _)| text(out)),
                log_stderr: files.as_ref().map(|(_, err)| text(err)),
                ..JobInfo::of(spec)
            }
        };
        jobs.map(info).collect()
    }
}

fn default_logs(now: SystemTime) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(now).to_string();
    let stamp: String = stamp.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    PathBuf::from("cosched-logs").join(format!("{}-{}", stamp.replace('T', "-"), std::process::id()))
}
