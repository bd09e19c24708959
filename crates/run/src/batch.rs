//! One run of the loop: the run itself, or the solo runs before it.

use super::console::Showing;
use super::facts;
use super::files::{Files, Watched};
use super::gauge::Gauge;
use super::job_frames::Events;
use super::memory::Known;
use super::options::Format;
use super::platform::{BackendOf, KernelPart, MachineView, Platform};
use super::prepare::Preparer;
use super::reporter::Reporter;
use super::runs::Journal;
use super::session::Session;
use super::stream::{AllKnown, Open, Stream};
use super::watch::Watch;
use anyhow::Context as _;
use cosched_core::{
    Absence, Actuation, Backend as _, Capabilities, Intake, Listed, Params, Policy, PolicyEntry,
    Reading, RunConfig, RunError, RunResult, TaskId, TaskSpec, run_all,
};
use cosched_linux::own_run;
use cosched_linux::root::Root;
use cosched_report::{
    EarlierJob, EventContext, EventWriter, FileRecorder, JobInfo, JobInfos, RunInfo, RunSetting,
    SeriesHeader, SeriesWriter,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Jobs that run together under a policy.
pub(crate) struct Batch<'a, P: Platform> {
    /// The policy that decides.
    pub(crate) entry: &'static PolicyEntry,
    /// Whether it freezes jobs.
    pub(crate) freezes: bool,
    pub(crate) params: &'a Params,
    pub(crate) config: &'a RunConfig,
    pub(crate) capabilities: &'a Capabilities,
    /// How the run was started.
    pub(crate) record_as: RunSetting,
    /// Jobs that come while the run goes on. There are no others then.
    pub(crate) open: Option<Open>,
    pub(crate) jobs: Vec<P::Job>,
    /// The folder of the jobs' output.
    pub(crate) folder: PathBuf,
    pub(crate) specs: &'a [TaskSpec],
    pub(crate) infos: Vec<JobInfo>,
    /// What earlier runs know of each job.
    pub(crate) known: Vec<Option<Known>>,
    /// Jobs done by earlier runs.
    pub(crate) earlier: Vec<EarlierJob>,
    pub(crate) files: Files,
    /// Whether the jobs' output may be shown. Solo runs show none.
    pub(crate) shows_output: bool,
}

fn known_of(known: Vec<Option<Known>>) -> AllKnown {
    let known = (0..).map(TaskId).zip(known);
    let known = known.filter_map(|(id, known)| Some((id, known?)));
    Rc::new(RefCell::new(known.collect()))
}

/// What a scheduler in the kernel does for a policy.
fn kernel_part(entry: &PolicyEntry, params: &Params, actuation: Actuation) -> KernelPart {
    match actuation {
        Actuation::Decisions => KernelPart::None,
        Actuation::Plans if entry.can_hand_over => {
            let measures = params.word("demand") == "measured";
            KernelPart::Efs {
                local: params.number("c_local") as u64,
                global: params.number("c_global") as u64,
                lines_per_us: measures.then(|| params.number("mu_trans_per_us")),
            }
        }
        Actuation::Plans => KernelPart::Plans,
    }
}

/// The result of a batch.
pub(crate) struct BatchResult {
    pub(crate) result: RunResult,
    /// With the warnings of the loop and of the files, but not those on the screen.
    pub(crate) info: RunInfo,
}

impl<P: Platform> Batch<'_, P> {
    /// Runs the batch to its end.
    ///
    /// # Errors
    /// The backend can't be made, or it failed during the run.
    pub(crate) fn run(
        mut self,
        session: &Session<'_, P>,
        policy: &mut dyn Policy,
    ) -> anyhow::Result<BatchResult> {
        let Session {
            platform, memory, ..
        } = *session;
        let files = std::mem::take(&mut self.files);
        let jobs = std::mem::take(&mut self.jobs);
        let mut reporter = self.reporter(session, files.journal);
        reporter.progress_to = files.progress_to;
        self.open_console(session);
        let view = platform.view();
        let gauge = Gauge::of_run(view);
        let mut info = self.info(view);
        let infos = info.job_infos();
        let mut backend = platform.backend(BackendOf {
            options: session.options,
            part: kernel_part(self.entry, self.params, self.config.actuation),
            jobs,
            screen: session.screen,
            requests: session.watch.and_then(Watch::requests),
            logs: &self.folder,
            infos: &infos,
        })?;
        if !view.is_simulated() {
            let elapsed = Duration::from_nanos(backend.now().0);
            info.run_id = own_run(&Root::default());
            info.started_at = Some(SystemTime::now() - elapsed);
        }
        reporter.started_at = info.started_at;
        let mut recorder = FileRecorder::new(&info, infos.clone());
        if session.watch.is_some() {
            let facts = facts::facts(session, &info, !self.shows_output);
            recorder = recorder.with_status(facts);
        }
        if let Some(file) = files.series {
            let header = SeriesHeader {
                open: self.open.is_some(),
                ..SeriesHeader::new(&info, self.specs)
            };
            recorder.series = Some(SeriesWriter::new(Box::new(file), &header));
        }
        if let Some(file) = files.events {
            let context = self.event_context(platform);
            recorder.events = Some(EventWriter::new(Box::new(file), context));
        }
        recorder.joblog = files.joblog;
        let allocation = platform.view().allocation.as_ref();
        recorder.host = allocation.and_then(|_| info.setting.host.clone());
        let mut listed = Listed::new(self.specs.to_vec());
        let open = self.open.take();
        if let Some(open) = &open {
            let input = open.arriving.descriptor();
            let arrivals = P::arrivals(&mut backend).context("no job can come to a simulation")?;
            arrivals.watch_input(input.context("the input of jobs")?);
        }
        let known = reporter.known.clone();
        let mut stream = open.map(|open| self.stream(session, open, infos.clone(), known));
        let intake: &mut dyn Intake<P::Backend> = match &mut stream {
            Some(stream) => stream,
            None => &mut listed,
        };
        let mut recorder = recorder.with_listener(|notice| reporter.report(notice));
        let result = run_all(&mut backend, policy, &mut recorder, intake, self.config);
        let late = P::late_failure(&mut backend);
        info.warnings = recorder.into_warnings();
        info.jobs = infos.borrow().values().cloned().collect();
        drop(backend);
        reporter.leave_console(session.signals, &infos.borrow());
        if let Ok(result) = &result {
            memory.borrow_mut().learn_rates(&result.rates);
        }
        // Whatever became of the run, what its jobs did is known.
        let problem = memory.borrow_mut().finish();
        let result = result.map_err(|error| match error {
            RunError::Backend(error) => P::failure(error),
            error => error.into(),
        })?;
        if let Some(error) = late {
            return Err(P::failure(error));
        }
        let moved = files.watched.as_ref().and_then(Watched::moved);
        for warning in problem.into_iter().chain(moved) {
            session.screen.warn(warning);
        }
        reporter.finish();
        if let Some(gauge) = gauge {
            gauge.finish(result.turnaround, &mut info);
        }
        Ok(BatchResult { result, info })
    }

    fn stream<'a>(
        &'a self,
        session: &'a Session<'a, P>,
        open: Open,
        infos: JobInfos,
        known: AllKnown,
    ) -> Stream<'a, P> {
        Stream {
            open,
            preparer: Preparer {
                options: session.options,
                platform: session.platform,
                logs: &self.folder,
                policy: self.entry,
                freezes: self.freezes,
            },
            session,
            infos,
            known,
            count: 0,
            is_ready: false,
        }
    }

    fn reporter<'a>(&mut self, session: &Session<'a, P>, journal: Journal) -> Reporter<'a> {
        Reporter {
            options: &session.options.output,
            mark: session.platform.view().mark(),
            screen: session.screen,
            memory: session.memory,
            watch: session.watch,
            journal,
            known: known_of(std::mem::take(&mut self.known)),
            folder: self.folder.clone(),
            progress_to: None,
            events: session.options.output.frames.then(Events::of_worker),
            is_open: self.open.is_some(),
            started_at: None,
            began: Instant::now(),
        }
    }

    /// Moves all output to a process of its own, so that a terminal that stands still does not stop the jobs.
    fn open_console(&self, session: &Session<'_, P>) {
        let output = &session.options.output;
        // Frames have one from the beginning.
        if session.platform.view().is_simulated() || output.frames {
            return;
        }
        let show = session.options.show(self.specs.len());
        let showing = Showing {
            run: std::process::id(),
            output: show.filter(|_| self.shows_output),
            keep_order: output.keep_order,
            to_stderr: output.format != Format::Text,
            frames: false,
        };
        session.screen.use_console(&showing, &self.folder);
    }

    /// What is known before the run, for the record.
    fn info(&mut self, view: &MachineView) -> RunInfo {
        RunInfo {
            run_id: None,
            setting: self.record_as.clone(),
            policy: self.entry.name.to_owned(),
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
    fn event_context(&self, platform: &P) -> EventContext {
        let mut params = BTreeMap::new();
        for (name, value) in self.params.iter() {
            let value = serde_json::to_value(value).unwrap_or_default();
            params.insert(name.to_owned(), value);
        }
        let missing = &self.capabilities.missing;
        EventContext {
            backend: platform.view().kind,
            policy: self.entry.name.to_owned(),
            params,
            machine_params: platform.view().params.iter().cloned().collect(),
            missing: missing
                .iter()
                .map(|(capability, &why)| (capability.code(), why))
                .collect(),
        }
    }
}
