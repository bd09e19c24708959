//! Running a plan: solo runs if wanted, the run itself, and what is left behind. The same for real processes and for
//! simulated ones.

use super::answer::{exit_of, print};
use super::args::{Format, RunArgs};
use super::files::{Files, keep};
use super::plan::{Plan, require_solo};
use super::screen::Screen;
use super::show::Shower;
use super::world::World;
use crate::exit::Exit;
use cosched_core::{
    Absence, Backend as _, Capabilities, Capability, Counter, Nanos, Params, Policy, Reading, RunConfig, RunError,
    RunResult, TaskResult, TaskSpec, find_policy,
};
use cosched_report::{
    EnergySource, EventWriter, FileRecorder, JobInfo, JobLogWriter, LiveProgress, Notice, RunInfo, SeriesHeader,
    SeriesWriter, Solo, SoloSource, ended_line, progress_line, record,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

/// A run in the making: its plan, and what is learned before it.
pub(crate) struct Run<'a, W: World> {
    pub(crate) args: &'a RunArgs,
    pub(crate) world: &'a W,
    pub(crate) plan: Plan<W>,
    pub(crate) infos: Vec<JobInfo>,
    pub(crate) screen: Screen,
    /// A file that was asked for could not be written to its end.
    pub(crate) lost: Cell<bool>,
}

/// What differs between the run itself and the solo runs before it.
pub(crate) struct Batch<'a, W: World> {
    pub(crate) policy: &'static str,
    pub(crate) params: &'a Params,
    pub(crate) config: &'a RunConfig,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) jobs: Vec<W::Job>,
    pub(crate) specs: &'a [TaskSpec],
    pub(crate) infos: Vec<JobInfo>,
    pub(crate) files: Files,
}

/// Runs a plan to its end and reports.
pub(crate) fn execute<W: World>(args: &RunArgs, world: &W, plan: Plan<W>) -> anyhow::Result<Exit> {
    // Whatever can't be written is found before anything is started.
    let files = Files::open(args, &plan.logs)?;
    let screen = Screen::new(args.output.quiet);
    for without in &plan.choice.shortfalls {
        screen.warn(&format!("without {without}"));
    }
    let infos = plan.infos();
    let mut run = Run { args, world, plan, infos, screen, lost: Cell::new(false) };
    if let Some(exit) = run.solo_times()? {
        return Ok(exit);
    }
    let plan = &run.plan;
    let mut policy = (plan.choice.entry.build)(&plan.choice.params);
    let batch = Batch {
        policy: plan.choice.entry.name,
        params: &plan.choice.params,
        config: &plan.config,
        capabilities: &plan.capabilities,
        jobs: plan.tasks.clone(),
        specs: &plan.specs,
        infos: run.infos.clone(),
        files,
    };
    let (result, mut info) = run.once(&mut *policy, batch)?;
    for odd in odd_traces(&result) {
        run.screen.warn(&odd);
    }
    info.warnings.extend(run.screen.take_warnings());
    let record = record(&result, &info);
    keep(args, &plan.logs, &record)?;
    run.screen.clear();
    print(args, &record)?;
    let exit = exit_of(&result);
    if run.lost.get() {
        // Also for whoever wants no warnings: what was asked for is not there.
        if args.output.quiet {
            let lost = record.warnings.iter().filter(|warning| warning.contains("is written no further"));
            lost.for_each(|warning| eprintln!("cosched: {warning}"));
        }
        return Ok(if exit == Exit::Success { Exit::Failure } else { exit });
    }
    Ok(exit)
}

impl<W: World> Run<'_, W> {
    /// Finds the jobs' solo times; an exit if the user has had enough meanwhile.
    fn solo_times(&mut self) -> anyhow::Result<Option<Exit>> {
        if self.plan.solo.alone
            && let Some(exit) = self.world.alone(self)?
        {
            return Ok(Some(exit));
        }
        if let Some(profiles) = &self.plan.solo.profiles {
            for (spec, info) in self.plan.specs.iter_mut().zip(&self.infos) {
                if let Some(profile) = profiles.profile(&info.name, info.command.as_deref()) {
                    spec.solo = profile;
                }
            }
        }
        if let Some(times) = &self.plan.solo.known {
            for info in &mut self.infos {
                let instead = if info.solo.is_some() { "; its own is simulated" } else { "" };
                match times.get(&info.name, info.command.as_deref()) {
                    Some(s) => info.solo = Some(Solo { time: Nanos::from_s(s), source: SoloSource::Record }),
                    None => {
                        self.screen.warn(&format!("the --solo file has no solo time for job {}{instead}", info.name))
                    }
                }
            }
        }
        for (spec, info) in self.plan.specs.iter_mut().zip(&self.infos) {
            spec.solo.time = info.solo.map(|solo| solo.time);
        }
        require_solo(&self.plan.choice, &self.plan.specs)?;
        Ok(None)
    }

    /// One run of the loop.
    pub(crate) fn once(&self, policy: &mut dyn Policy, batch: Batch<'_, W>) -> anyhow::Result<(RunResult, RunInfo)> {
        let (args, screen, view) = (self.args, &self.screen, self.world.view());
        let Batch { config, specs, files, .. } = batch;
        let shower = args.output.output.map(|how| {
            let named = specs.iter().zip(&batch.jobs);
            let logs = named.filter_map(|(spec, job)| {
                let (out, err) = W::files(job)?;
                Some((spec.name.clone(), out, err))
            });
            RefCell::new(Shower::new(how, args.output.format == Format::Json, logs))
        });
        let started_at = (!view.is_simulated()).then(SystemTime::now);
        let mut backend = self.world.backend(args, batch.jobs, screen)?;
        let mut info = RunInfo {
            policy: batch.policy.to_owned(),
            backend: view.kind,
            machine: backend.machine(),
            seed: config.seed,
            quantum: config.quantum,
            started_at,
            jobs: batch.infos,
            capabilities: worth_telling(batch.capabilities, batch.policy, batch.params, view.energy),
            counters: view.counters.clone(),
            freezing: Some(view.freezing.clone()),
            cpu_share: Reading::Absent(if view.is_simulated() { Absence::Simulated } else { Absence::NotYetMeasured }),
            energy_source: view.energy,
            warnings: Vec::new(),
        };
        let mut recorder = FileRecorder::new(&info, specs);
        if let Some(file) = files.series {
            let header = SeriesHeader::new(&info, specs);
            recorder = recorder.with_series(SeriesWriter::new(Box::new(file), &header));
        }
        if let Some(file) = files.events {
            let value = |value| serde_json::to_value(value).unwrap_or_default();
            let params: BTreeMap<String, serde_json::Value> =
                batch.params.iter().map(|(name, number)| (name.to_owned(), value(number))).collect();
            recorder = recorder.with_events(EventWriter::new(Box::new(file), info.backend, batch.policy, params));
        }
        if let Some(joblog) = files.joblog {
            recorder = recorder.with_joblog(JobLogWriter::new(Box::new(joblog.into_inner()), false));
        }
        let infos = info.jobs.clone();
        let began = Instant::now();
        let mark = if view.is_simulated() { "[simulated] " } else { "" };
        let mut recorder = recorder.with_listener(|notice| match notice {
            Notice::Started { task, .. } => {
                if let Some(shower) = &shower {
                    shower.borrow_mut().started(task.id.0 as usize);
                }
                if args.output.verbose {
                    screen.say(&format!("{mark}started {}", task.name));
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
                screen.progress(|width| line(progress, began, width));
            }
            Notice::Warning(text) => screen.say(&format!("cosched: {text}")),
        });
        let cpu_before = own_cpu_time();
        let result = cosched_core::run(&mut backend, policy, &mut recorder, specs.to_vec(), config);
        self.lost.set(self.lost.get() || recorder.has_lost());
        let warnings = recorder.into_warnings();
        let cpu_used = own_cpu_time() - cpu_before;
        drop(backend);
        screen.clear();
        let result = match result {
            Ok(result) => result,
            Err(RunError::Backend(error)) => return Err(W::failure(error)),
            Err(error) => return Err(error.into()),
        };
        info.warnings = warnings;
        if result.turnaround > Nanos::ZERO && !view.is_simulated() {
            info.cpu_share = Reading::Value(cpu_used.share_of(result.turnaround));
        }
        Ok((result, info))
    }
}

/// Jobs whose solo trace can't be of the work that they did: its length is another by more than a tenth.
fn odd_traces(result: &RunResult) -> Vec<String> {
    let odd = |task: &TaskResult| {
        let (trace, did) = (task.spec.solo.trace.as_ref()?.instructions(), task.counts[Counter::Instructions].value()?);
        let ended_well = task.exit.as_ref().is_some_and(cosched_core::Exit::ok);
        (ended_well && trace.abs_diff(did) > trace / 10).then(|| {
            format!("job {} retired {did} instructions, alone {trace}: its solo trace is of other work", task.spec.name)
        })
    };
    result.tasks.iter().filter_map(odd).collect()
}

/// The progress line; of a simulation with how much faster than the real thing it goes.
fn line(progress: &LiveProgress, began: Instant, width: usize) -> String {
    let mut line = progress_line(progress, width);
    let real = began.elapsed().as_secs_f64();
    if progress.simulated && real > 0.0 {
        let speed = format!(", {:.0} x real time", progress.elapsed.as_s() / real);
        if line.chars().count() + speed.chars().count() <= width {
            line.push_str(&speed);
        }
    }
    line
}

/// What is off and matters: what every report has, and what this policy wants. That a machine has one type of core is
/// no defect to anybody else, nor is a meter that lacks where energy is modelled.
fn worth_telling(capabilities: &Capabilities, policy: &str, params: &Params, energy: EnergySource) -> Capabilities {
    let needs = find_policy(policy).map(|entry| (entry.needs)(params)).unwrap_or_default();
    let mut told = capabilities.clone();
    told.missing.retain(|&capability, _| {
        let reported = match capability {
            Capability::Energy => energy != EnergySource::Modelled,
            Capability::CpuTime => true,
            capability => capability.is_counter(),
        };
        reported || needs.iter().any(|need| need.capability == capability)
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
