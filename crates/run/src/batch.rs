//! One run of the loop: the run itself, or the solo runs before it.

use super::console::Showing;
use super::context::RunContext;
use super::files::{RunFiles, Watched};
use super::gauge::MachineGauge;
use super::job_frames::Events;
use super::memory::{Known, Memory};
use super::options::AnswerFormat;
use super::platform::{BackendOf, MachineView, Platform};
use super::policy::PolicyChoice;
use super::prepare::Preparer;
use super::reporter::Reporter;
use super::setting::setting;
use super::source::OpenInput;
use super::stream::{AllKnown, JobStream};
use super::watch::Watch;
use anyhow::Context as _;
use cosched_core::{
    Absence, Backend as _, Capabilities, Intake, Listed, Reading, RunConfig, RunError, RunResult,
    TaskId, TaskSpec, run_all,
};
use cosched_linux::own_run;
use cosched_linux::root::Root;
use cosched_report::{
    EarlierJob, EventContext, EventWriter, FileRecorder, JobInfo, JobInfos, RunInfo, RunWarning,
    SeriesHeader, SeriesWriter,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Jobs that run under a policy.
pub(crate) struct Batch<P: Platform> {
    pub(crate) choice: PolicyChoice,
    /// The machine's capabilities, and those that solo runs or a file of solo profiles provide.
    pub(crate) capabilities: Capabilities,
    pub(crate) config: RunConfig,
    /// Jobs that come while the run goes on. There are no others then.
    pub(crate) open: Option<OpenInput>,
    /// The jobs in the backend's own form.
    pub(crate) tasks: Vec<P::Job>,
    pub(crate) specs: Vec<TaskSpec>,
    /// What is known about the jobs before the run.
    pub(crate) infos: Vec<JobInfo>,
    /// What is known of each job from earlier runs; `None` where nothing is kept of it.
    pub(crate) known: Vec<Option<Known>>,
    /// Jobs that earlier runs did.
    pub(crate) earlier: Vec<EarlierJob>,
    /// The folder of the jobs' output.
    pub(crate) logs: PathBuf,
    /// The jobs run one by one for their solo times. Their output is not shown.
    pub(crate) alone: bool,
}

fn known_of(known: Vec<Option<Known>>) -> AllKnown {
    let known = (0..).map(TaskId).zip(known);
    let known = known.filter_map(|(id, known)| Some((id, known?)));
    Rc::new(RefCell::new(known.collect()))
}

/// Keeps in the history what the jobs did, whatever became of the run. Returns a warning if it can't be kept.
fn keep_learnt(memory: &mut Memory, result: Option<&RunResult>) -> Option<RunWarning> {
    if let Some(result) = result {
        memory.learn_rates(&result.rates);
    }
    memory.finish()
}

/// The result of a batch.
pub(crate) struct BatchResult {
    pub(crate) result: RunResult,
    /// With the warnings of the loop and of the files, but not those on the screen.
    pub(crate) info: RunInfo,
}

impl<P: Platform> Batch<P> {
    /// Runs the batch to its end.
    ///
    /// # Errors
    /// The backend can't be made, or it failed during the run.
    pub(crate) fn run(
        mut self,
        run: &RunContext<'_, P>,
        mut files: RunFiles,
    ) -> anyhow::Result<BatchResult> {
        let view = run.platform.view();
        let mut policy = (self.choice.entry.build)(&self.choice.params);
        let mut reporter = self.reporter(run, &mut files);
        self.open_console(run);
        let gauge = MachineGauge::of_run(view);
        let mut info = self.info(run);
        let infos = info.job_infos();
        let mut backend = self.backend(run, &infos)?;
        if !view.is_simulated() {
            let elapsed = Duration::from_nanos(backend.now().0);
            info.run_id = own_run(&Root::default());
            info.started_at = Some(SystemTime::now() - elapsed);
        }
        reporter.started_at = info.started_at;
        let recorder = self.recorder(run, &info, &infos, &mut files);
        let mut listed = Listed::new(std::mem::take(&mut self.specs));
        let mut stream = match self.open.take() {
            Some(open) => {
                let input = open.arriving.descriptor();
                let arrivals = P::arrivals(&mut backend).context("no job comes to a simulation")?;
                arrivals.watch_input(input.context("the input of jobs")?);
                Some(self.stream(run, open, infos.clone(), reporter.known.clone()))
            }
            None => None,
        };
        let intake: &mut dyn Intake<P::Backend> = match &mut stream {
            Some(stream) => stream,
            None => &mut listed,
        };
        let mut recorder = recorder.with_listener(|notice| reporter.report(notice));
        let result = run_all(
            &mut backend,
            &mut *policy,
            &mut recorder,
            intake,
            &self.config,
        );
        let late = P::late_failure(&mut backend);
        info.warnings = recorder.into_warnings();
        info.jobs = infos.borrow().values().cloned().collect();
        drop(backend);
        reporter.leave_console(run.signals, &infos.borrow());
        let unkept = keep_learnt(&mut run.memory.borrow_mut(), result.as_ref().ok());
        let result = result.map_err(|error| match error {
            RunError::Backend(error) => P::failure(error),
            error => error.into(),
        })?;
        if let Some(error) = late {
            return Err(P::failure(error));
        }
        let moved = files.watched.as_ref().and_then(Watched::moved);
        for warning in unkept.into_iter().chain(moved) {
            run.screen.warn(warning);
        }
        reporter.finish();
        if let Some(gauge) = gauge {
            gauge.finish(result.turnaround, &mut info);
        }
        Ok(BatchResult { result, info })
    }

    /// Makes the backend, with the jobs that are known.
    fn backend(&mut self, run: &RunContext<'_, P>, infos: &JobInfos) -> anyhow::Result<P::Backend> {
        run.platform.backend(BackendOf {
            choice: &self.choice,
            actuation: self.config.actuation,
            jobs: std::mem::take(&mut self.tasks),
            screen: run.screen,
            requests: run.watch.and_then(Watch::requests),
            logs: &self.logs,
            infos,
        })
    }

    /// The recorder of the files that the run writes while it goes on.
    fn recorder<'a>(
        &self,
        run: &RunContext<'_, P>,
        info: &RunInfo,
        infos: &JobInfos,
        files: &mut RunFiles,
    ) -> FileRecorder<'a> {
        let view = run.platform.view();
        let mut recorder = FileRecorder::new(info, infos.clone());
        if run.watch.is_some() {
            recorder = recorder.with_status(run.facts(info, self.alone));
        }
        if let Some(file) = files.series.take() {
            let header = SeriesHeader {
                open: self.open.is_some(),
                ..SeriesHeader::new(info, &self.specs)
            };
            recorder.series = Some(SeriesWriter::new(Box::new(file), &header));
        }
        if let Some(file) = files.events.take() {
            let context = self.event_context(view);
            recorder.events = Some(EventWriter::new(Box::new(file), context));
        }
        recorder.joblog = files.joblog.take();
        let allocation = view.allocation.as_ref();
        recorder.host = allocation.and_then(|_| info.setting.host.clone());
        recorder
    }

    fn stream<'a>(
        &'a self,
        run: &'a RunContext<'a, P>,
        open: OpenInput,
        infos: JobInfos,
        known: AllKnown,
    ) -> JobStream<'a, P> {
        JobStream {
            open,
            preparer: Preparer {
                options: run.options,
                platform: run.platform,
                logs: &self.logs,
                choice: &self.choice,
            },
            run,
            infos,
            known,
            count: 0,
            is_ready: false,
        }
    }

    fn reporter<'a>(&mut self, run: &RunContext<'a, P>, files: &mut RunFiles) -> Reporter<'a> {
        Reporter {
            options: &run.options.output,
            mark: run.platform.view().mark(),
            screen: run.screen,
            memory: run.memory,
            watch: run.watch,
            journal: std::mem::take(&mut files.journal),
            known: known_of(std::mem::take(&mut self.known)),
            folder: self.logs.clone(),
            progress_to: files.progress_to.take(),
            events: run.options.output.frames.then(Events::of_worker),
            is_open: self.open.is_some(),
            started_at: None,
            began: Instant::now(),
        }
    }

    /// Moves all output to a process of its own, so that a terminal that stands still does not stop the jobs.
    fn open_console(&self, run: &RunContext<'_, P>) {
        let output = &run.options.output;
        // Frames have one from the beginning.
        if run.platform.view().is_simulated() || output.frames {
            return;
        }
        let show = run.options.show(self.specs.len());
        let showing = Showing {
            run: std::process::id(),
            output: show.filter(|_| !self.alone),
            keep_order: output.keep_order,
            to_stderr: output.format != AnswerFormat::Text,
            frames: false,
        };
        run.screen.use_console(&showing, &self.logs);
    }

    /// What is known before the run, for the record.
    fn info(&mut self, run: &RunContext<'_, P>) -> RunInfo {
        let view = run.platform.view();
        RunInfo {
            run_id: None,
            setting: setting(run, &self.choice, &self.config),
            policy: self.choice.entry.name.to_owned(),
            backend: view.kind,
            machine: view.whole.clone(),
            seed: self.config.seed,
            quantum: self.config.quantum,
            started_at: None,
            jobs: std::mem::take(&mut self.infos),
            capabilities: self.capabilities.clone(),
            counters: view.counters.clone(),
            freezing: Some(view.freezing.clone()),
            cpu_share: Reading::Absent(Absence::NotYetMeasured),
            machine_use: Reading::Absent(view.unmeasured()),
            earlier: std::mem::take(&mut self.earlier),
            energy_source: view.energy,
            warnings: Vec::new(),
        }
    }

    /// The first line of the event file.
    fn event_context(&self, view: &MachineView) -> EventContext {
        let mut params = BTreeMap::new();
        for (name, value) in self.choice.params.iter() {
            let value = serde_json::to_value(value).unwrap_or_default();
            params.insert(name.to_owned(), value);
        }
        let missing = &self.capabilities.missing;
        EventContext {
            backend: view.kind,
            policy: self.choice.entry.name.to_owned(),
            params,
            machine_params: view.params.iter().cloned().collect(),
            missing: missing
                .iter()
                .map(|(capability, &why)| (capability.code(), why))
                .collect(),
        }
    }
}
