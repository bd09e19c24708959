//! One run of the loop: the run itself, or the solo runs before it.

use super::args::{Format, RunArgs};
use super::console::Showing;
use super::files::{Files, Watched};
use super::memory::{Known, Memory};
use super::platform::{KernelPart, Platform};
use super::screen::Screen;
use super::watched;
use super::window::Window;
use cosched_core::{
    Absence, Actuation, Backend as _, Capabilities, Nanos, Params, Policy, Reading, RunConfig,
    RunError, RunResult, TaskSpec, find_policy,
};
use cosched_linux::root::Root;
use cosched_linux::{accounts, own_run, throttling};
use cosched_report::{
    EarlierJob, EventContext, EventWriter, FileRecorder, JobInfo, LiveProgress, MachineUse, Notice,
    RunInfo, RunSetting, RunWarning, SeriesHeader, SeriesWriter, Throttling, ended_line,
    progress_line,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What all batches of one command share.
pub(crate) struct Setting<'a, P> {
    pub(crate) args: &'a RunArgs,
    pub(crate) platform: &'a P,
    pub(crate) screen: &'a Screen,
    /// Takes what is to be kept of the jobs.
    pub(crate) memory: &'a RefCell<Memory>,
    /// Serves those who look at the run.
    pub(crate) window: Option<&'a Window>,
    /// The log folder.
    pub(crate) logs: &'a Path,
}

/// Jobs that run together under a policy.
pub(crate) struct Batch<'a, P: Platform> {
    /// The policy's name in the table of policies.
    pub(crate) policy: &'static str,
    pub(crate) params: &'a Params,
    pub(crate) config: &'a RunConfig,
    pub(crate) capabilities: &'a Capabilities,
    /// How the run was started.
    pub(crate) record_as: RunSetting,
    pub(crate) jobs: Vec<P::Job>,
    pub(crate) specs: &'a [TaskSpec],
    pub(crate) infos: Vec<JobInfo>,
    /// What is known of each job from earlier runs.
    pub(crate) known: Vec<Option<Known>>,
    /// Jobs that earlier runs did.
    pub(crate) earlier: Vec<EarlierJob>,
    pub(crate) files: Files,
    /// Whether the jobs' output is shown, if the user asked for it.
    pub(crate) shows_output: bool,
}

/// What a scheduler in the kernel does for a policy.
fn kernel_part(policy: &str, params: &Params, actuation: Actuation) -> KernelPart {
    let hands_over = || find_policy(policy).is_some_and(|entry| entry.can_hand_over());
    match actuation {
        Actuation::Decisions => KernelPart::None,
        Actuation::Plans if hands_over() => {
            let factor = |name: &str| params.number(name) as u64;
            let measures = params.word("demand") == "measured";
            let lines_per_us = measures.then(|| params.number("mu_trans_per_us"));
            KernelPart::Efs {
                local: factor("c_local"),
                global: factor("c_global"),
                lines_per_us,
            }
        }
        Actuation::Plans => KernelPart::Plans,
    }
}

/// The result of a batch.
pub(crate) struct Outcome {
    pub(crate) result: RunResult,
    /// It has the warnings of the loop and of the files, but not those that the screen was told.
    pub(crate) info: RunInfo,
}

impl<P: Platform> Batch<'_, P> {
    /// Runs the batch to its end.
    ///
    /// # Errors
    /// The backend can't be made, or it failed during the run.
    pub(crate) fn run(
        self,
        setting: &Setting<'_, P>,
        policy: &mut dyn Policy,
    ) -> anyhow::Result<Outcome> {
        let Setting {
            args,
            platform,
            screen,
            memory,
            window,
            logs,
        } = *setting;
        let view = platform.view();
        let Batch {
            config,
            specs,
            files,
            known,
            ..
        } = self;
        let job_files: Vec<Option<(PathBuf, PathBuf)>> = self.jobs.iter().map(P::files).collect();
        let job_folder = job_files
            .iter()
            .flatten()
            .next()
            .and_then(|(out, _)| Some(out.parent()?.to_owned()));
        // A simulation has no jobs that would suffer from a terminal that stands still.
        if !view.is_simulated() {
            screen.use_console(&Showing {
                output: args.show().filter(|_| self.shows_output),
                keep_order: args.output.keep_order,
                to_stderr: args.output.format == Format::Json,
                log_limit: args.output.log_limit,
            });
        }
        let root = Root::default();
        let cpus = view.machine.all_cpus();
        let accounts = || {
            if view.is_simulated() {
                None
            } else {
                accounts::read(&root, &cpus)
            }
        };
        let accounts_before = accounts();
        let unknown = if view.is_simulated() {
            Absence::Simulated
        } else {
            Absence::NotTold
        };
        let throttled = || {
            if view.is_simulated() {
                Reading::Absent(unknown)
            } else {
                throttling::read(&root, &cpus)
            }
        };
        let throttled_before = throttled();
        let mut backend = platform.backend(
            args,
            kernel_part(self.policy, self.params, self.config.actuation),
            self.jobs,
            screen,
            window.map(Window::inbox),
        )?;
        // Times in the record count from the start of the backend's clock.
        let started_at = (!view.is_simulated())
            .then(|| SystemTime::now() - Duration::from_nanos(backend.now().0));
        let mut info = RunInfo {
            run_id: if view.is_simulated() {
                None
            } else {
                own_run(&root)
            },
            setting: self.record_as,
            policy: self.policy.to_owned(),
            backend: view.kind,
            machine: backend.machine(),
            seed: config.seed,
            quantum: config.quantum,
            started_at,
            jobs: self.infos,
            capabilities: self.capabilities.clone(),
            counters: view.counters.clone(),
            freezing: Some(view.freezing.clone()),
            cpu_share: Reading::Absent(if view.is_simulated() {
                Absence::Simulated
            } else {
                Absence::NotYetMeasured
            }),
            machine_use: Reading::Absent(unknown),
            throttling: Reading::Absent(unknown),
            earlier: self.earlier,
            energy_source: view.energy,
            warnings: Vec::new(),
        };
        let alone = !self.shows_output;
        let mut recorder = FileRecorder::new(&info, specs)
            .with_facts(watched::facts(args, &info, config, logs, alone));
        if let Some(file) = files.series {
            let header = SeriesHeader::new(&info, specs);
            recorder = recorder.with_series(SeriesWriter::new(Box::new(file), &header));
        }
        if let Some(file) = files.events {
            let value = |value| serde_json::to_value(value).unwrap_or_default();
            let params: BTreeMap<String, serde_json::Value> = self
                .params
                .iter()
                .map(|(name, number)| (name.to_owned(), value(number)))
                .collect();
            let missing = &self.capabilities.missing;
            let context = EventContext {
                backend: info.backend,
                policy: self.policy.to_owned(),
                params,
                machine_params: view.params.iter().cloned().collect(),
                missing: missing
                    .iter()
                    .map(|(capability, &why)| (capability.code(), why))
                    .collect(),
            };
            recorder = recorder.with_events(EventWriter::new(Box::new(file), context));
        }
        if let Some(joblog) = files.joblog {
            recorder = recorder.with_joblog(joblog.boxed());
        }
        let mut journal = files.journal;
        let mut note = |info: Option<&JobInfo>, at: Nanos| {
            let (Some(info), Some(began)) = (info, started_at) else {
                return;
            };
            journal.starting(info, began + Duration::from_nanos(at.0));
            if let Some(warning) = journal.take_warning() {
                screen.warn(warning);
            }
        };
        let began = Instant::now();
        let mark = if view.is_simulated() {
            "[simulated] "
        } else {
            ""
        };
        let mut recorder = recorder.with_listener(|notice| match notice {
            Notice::Starting { info, at } => note(info, at),
            Notice::Started { task, info, .. } => {
                if let Some((out, err)) = &job_files[task.id.0 as usize] {
                    let tag = info.and_then(|info| info.tag.as_ref());
                    let tag = tag.filter(|_| args.output.tag).unwrap_or(&task.name);
                    screen.started(task.id.0, tag, [out, err]);
                }
                if args.output.verbose {
                    let what = info.map_or_else(|| task.name.clone(), JobInfo::what);
                    screen.say(&format!("{mark}started {what}"));
                }
            }
            Notice::Retried { result, info } => {
                if let Some((out, err)) = &job_files[result.spec.id.0 as usize] {
                    screen.started_again(result.spec.id.0, [out, err]);
                }
                let what = info.map_or_else(|| result.spec.name.clone(), JobInfo::what);
                let exit = result
                    .exit
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                screen.say(&format!(
                    "{mark}{what}: {exit} in attempt {}; it is started again",
                    result.runs
                ));
            }
            Notice::Ended {
                result,
                info,
                progress,
            } => {
                if let Some(Some(known)) = known.get(result.spec.id.0 as usize) {
                    memory.borrow_mut().ended(known, result);
                }
                let failed =
                    result.timed_out || !result.exit.as_ref().is_some_and(cosched_core::Exit::ok);
                screen.ended(result.spec.id.0, failed);
                if args.output.quiet
                    && matches!(result.exit, Some(cosched_core::Exit::NotStarted(_)))
                {
                    // Nobody else tells of it: the job could not.
                    screen.answer(&format!("cosched: {}", ended_line(progress, result, info)));
                }
                if failed || args.output.verbose || !screen.is_terminal() {
                    screen.say(&ended_line(progress, result, info));
                }
                if failed {
                    screen.last_error(result.spec.id.0);
                }
            }
            Notice::Progress(progress) => {
                screen.progress(|width| line(progress, began, width));
                screen.sign_of_life(|| line(progress, began, 200));
                let problem = memory.borrow_mut().pass();
                problem.into_iter().for_each(|problem| screen.warn(problem));
                tell_lost(window, screen);
            }
            Notice::Watched(status) => {
                if let Some(window) = window {
                    watched::show(window, status, own_cpu_time());
                }
            }
            Notice::Status(lines) => lines
                .iter()
                .for_each(|line| screen.answer(&format!("cosched: {line}"))),
            Notice::Warning(warning) => screen.say(&format!("cosched: {}", warning.text())),
        });
        let cpu_before = own_cpu_time();
        let result = cosched_core::run(&mut backend, policy, &mut recorder, specs.to_vec(), config);
        let warnings = recorder.into_warnings();
        let cpu_used = own_cpu_time() - cpu_before;
        let left_out = P::left_out(&backend);
        drop(backend);
        let shown = screen.leave_console();
        for cut in shown.cuts {
            let job = specs[cut.job as usize].name.clone();
            let file = if cut.file == 0 { "out" } else { "err" };
            screen.warn(RunWarning::LogCut {
                file: format!("{job}.{file}"),
                bytes: cut.bytes,
            });
        }
        for (job, file) in shown.rewritten {
            let file = if file == 0 { "out" } else { "err" };
            screen.warn(RunWarning::LogRewritten {
                file: format!("{}.{file}", specs[job as usize].name),
            });
        }
        if let Some(why) = shown.lost {
            let folder = job_folder
                .map(|folder| folder.display().to_string())
                .unwrap_or_default();
            screen.warn(RunWarning::OutputLost { why, folder });
        }
        tell_lost(window, screen);
        // Whatever became of the run, what its jobs did is known.
        let problem = memory.borrow_mut().finish();
        let result = match result {
            Ok(result) => result,
            Err(RunError::Backend(error)) => return Err(P::failure(error)),
            Err(error) => return Err(error.into()),
        };
        info.warnings = warnings;
        problem.into_iter().for_each(|problem| screen.warn(problem));
        if let Some(moved) = files.watched.as_ref().and_then(Watched::moved) {
            screen.warn(moved);
        }
        journal.finish();
        if let Some(warning) = journal.take_warning() {
            screen.warn(warning);
        }
        // While a run is suspended, others heat the processor.
        info.throttling = if left_out.total > Nanos::ZERO {
            Reading::Absent(Absence::NotYetMeasured)
        } else {
            let past =
                throttled_before.and_then(|before| throttled().and_then(|now| now.since(&before)));
            past.map(|past| Throttling {
                events: past.events,
                time: past.time,
                run: result.turnaround,
            })
        };
        // Everything that this process started has ended, and counts as its own.
        if let Some(used) = accounts()
            .zip(accounts_before)
            .and_then(|(now, before)| now.since(&before))
        {
            let accounts::CpuUse {
                total,
                stolen,
                foreign,
            } = used.without(left_out);
            info.machine_use = Reading::Value(MachineUse {
                cpus: cpus.len(),
                total,
                stolen,
                foreign,
            });
        }
        if result.turnaround > Nanos::ZERO && !view.is_simulated() {
            info.cpu_share = Reading::Value(cpu_used.share_of(result.turnaround));
        }
        Ok(Outcome { result, info })
    }
}

/// The progress line. In a simulation it also shows how much faster than real time the simulation goes.
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

/// Tells that nobody can look at the run any more.
fn tell_lost(window: Option<&Window>, screen: &Screen) {
    if let Some(why) = window.and_then(Window::take_lost) {
        screen.warn(RunWarning::NoWindow { why });
    }
}

/// CPU time of this process, without its children.
fn own_cpu_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
