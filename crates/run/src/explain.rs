//! `--dry-run`: explains what would be done, and why.

use super::memory::Known;
use super::options::{AnswerFormat, RunOptions};
use super::plan::RunPlan;
use super::platform::{MachineView, Platform, threads_env};
use super::policy::BUS_RATE;
use crate::input::{Command, told};
use cosched_core::{
    Actuation, Change, Decision, Expected, ExpectedFrom, IdealBandwidth, InitialProgress, Nanos,
    Order, PolicyEntry, Rng, Snapshot, TaskEstimator, TaskView, Trigger, Width, first_in_order,
    spare_cpus,
};
use cosched_linux::cpus_of_job;
use cosched_report::{
    BackendKind, ExpectedOfJob, RunWarning, bytes, count, seconds, shortfall_text, visible,
    visible_lines, wait_text,
};
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

/// What is expected of a job, and where that comes from.
fn expected_text(expected: &Expected) -> String {
    let mut text = format!("expected: {}", seconds(expected.time.as_s()));
    if expected.least != expected.greatest {
        let least = seconds(expected.least.as_s());
        let greatest = seconds(expected.greatest.as_s());
        text.push_str(&format!(" ({least} to {greatest})"));
    }
    if let Some(memory) = expected.memory {
        let memory = bytes(memory as f64);
        text.push_str(&format!(", {memory} of memory"));
    }
    let runs = count(expected.runs.into(), "run");
    let from = match expected.from {
        ExpectedFrom::Same => "of this command",
        ExpectedFrom::Changed => "of this command in another folder, or before its program changed",
        ExpectedFrom::Program => "of other commands with this program",
        ExpectedFrom::Told => return format!("{text}, as given"),
        ExpectedFrom::Solo => return format!("{text}, as it took alone"),
    };
    format!("{text}, from {runs} {from}")
}

/// Prints the plan and the first decision of the policy.
pub(crate) fn explain<P: Platform>(
    options: &RunOptions,
    platform: &P,
    plan: &RunPlan<P>,
) -> anyhow::Result<()> {
    let mut plan = Explanation {
        options,
        platform,
        plan,
        view: platform.view(),
        text: String::new(),
    };
    if options.output.format == AnswerFormat::Json {
        let object = serde_json::to_string_pretty(&plan.as_json())?;
        plan.text = object + "\n";
    } else if options.output.quiet {
        return plan.print_commands();
    } else {
        plan.tell()?;
    }
    io::stdout().write_all(plan.text.as_bytes())?;
    Ok(())
}

/// A plan, and the text about it so far.
struct Explanation<'a, P: Platform> {
    options: &'a RunOptions,
    platform: &'a P,
    plan: &'a RunPlan<P>,
    view: &'a MachineView,
    text: String,
}

impl<P: Platform> Explanation<'_, P> {
    /// Prints the commands alone, to be read by a shell. A terminal gets a form in which nothing controls it.
    fn print_commands(&self) -> anyhow::Result<()> {
        let stdout = io::stdout();
        let for_shell = !stdout.is_terminal() && !self.view.is_simulated();
        let mut out = io::BufWriter::new(stdout.lock());
        for (_, job) in &self.plan.jobs {
            let line = match &job.input.command {
                Some(command) if for_shell => command.line_for_sh(),
                _ => visible_lines(&self.platform.shown(job)).into(),
            };
            out.write_all(&line)?;
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    fn as_json(&self) -> serde_json::Value {
        let Explanation { plan, view, .. } = self;
        let mut jobs = Vec::new();
        for (ix, (seq, job)) in plan.jobs.iter().enumerate() {
            let spec = &plan.batch.specs[ix];
            let known = plan.batch.known[ix].as_ref();
            jobs.push(serde_json::json!({
                "seq": seq,
                "name": job.name,
                "program": job.input.program,
                "command": job.input.command.as_ref().map(Command::line),
                "cpus": spec.cpus,
                "identity": known.map(Known::identity),
                "width": spec.width,
                "expected": spec.expected.as_ref().map(ExpectedOfJob::of),
            }));
        }
        let choice = &plan.batch.choice;
        let history = self.options.history.as_deref();
        let without: Vec<String> = choice.shortfalls.iter().map(shortfall_text).collect();
        let warnings: Vec<String> = plan.warnings.iter().map(RunWarning::text).collect();
        serde_json::json!({
            "policy": choice.entry.name,
            "policy_lacks": choice.lacks,
            "params": choice.params,
            "param_origins": choice.origins,
            "backend": view.kind,
            "machine": view.machine.name,
            "cpus": view.machine.all_cpus(),
            "cpu_quota": view.quota,
            "slurm": view.by_slurm,
            "mem_keep_bytes": self.options.limits.kept_memory(view.memory),
            "live_jobs": plan.batch.config.jobs,
            "tries_at_once": plan.batch.config.tries_at_once(&view.machine),
            "order": plan.batch.config.order,
            "threads_env": <&str>::from(self.options.machine.threads_env),
            "threads_of_first": self.threads_of_first(),
            "history": history.map(|path| path.display().to_string()),
            "actuation": plan.batch.config.actuation,
            "refused": view.refused.as_ref().map(ToString::to_string),
            "without": without,
            "skipped": plan.batch.earlier.len(),
            "warnings": warnings,
            "jobs": jobs,
            "first_decision": self.first_decision(&self.first_snapshot()),
        })
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        if self.view.is_simulated() {
            let machine = visible(&self.view.machine.name);
            let line = format!("SIMULATED on {machine}: no command would be started\n");
            self.text.push_str(&line);
        }
        self.policy()?;
        self.machine();
        self.files();
        self.jobs();
        self.first();
        self.text.push_str("nothing was started\n");
        Ok(())
    }

    /// Adds a line with a label.
    fn add(&mut self, label: &str, text: impl Display) {
        let line = format!("{label:<10}{text}");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds a line that continues the one before.
    fn more(&mut self, text: impl Display) {
        self.add("", text);
    }

    fn policy(&mut self) -> anyhow::Result<()> {
        let choice = &self.plan.batch.choice;
        let PolicyEntry { name, gist, .. } = choice.entry;
        self.add("policy", format_args!("{name} - {gist}"));
        if self.options.policy.name.is_none() {
            let why = choice
                .lacks
                .as_deref()
                .unwrap_or("the machine has all that it needs");
            self.more(format_args!("chosen by auto: {why}"));
        }
        let lacks_bus_rate = !self.view.is_simulated() && choice.lacks_bus_rate();
        for (name, value) in choice.params.iter() {
            if lacks_bus_rate && name == BUS_RATE {
                self.more(format_args!("{name}: will be measured first"));
                continue;
            }
            let value = serde_json::to_string(value)?;
            let origin = match choice.origins.get(name) {
                Some(origin) => format!(" ({})", origin.text()),
                None => String::new(),
            };
            self.more(format_args!("{name} = {value}{origin}"));
        }
        for shortfall in &choice.shortfalls {
            self.add("without", shortfall_text(shortfall));
        }
        Ok(())
    }

    fn machine(&mut self) {
        let Explanation { plan, view, .. } = *self;
        let name = visible(&view.machine.name);
        let cpus = view.machine.all_cpus();
        self.add("machine", format_args!("{name}, CPUs {cpus}"));
        for line in view.quota.iter().chain(&view.by_slurm) {
            self.more(line);
        }
        let kept = self.options.limits.kept_memory(view.memory);
        if let Some(kept) = kept.filter(|&kept| kept > 0) {
            let kept = bytes(kept as f64);
            self.add(
                "memory",
                format_args!("no further job starts while less than {kept} is free (--mem-keep)"),
            );
        }
        for warning in view.warnings.iter().chain(&plan.warnings) {
            self.add("warning", visible(&warning.text()));
        }
        self.add("freezing", &view.freezing);
        if let Some(threads) = self.threads_of_first() {
            self.add(
                "threads",
                format_args!("{threads} for the first job (--threads-env)"),
            );
        }
        if let Some(shell) = &self.options.shell {
            self.add("shell", told(shell));
        }
        if plan.batch.config.actuation == Actuation::Plans {
            self.add(
                "actuation",
                "plans: a CPU whose job sleeps or ends goes to the next job at once",
            );
        }
        if let Some(why) = &view.refused {
            self.add("refused", visible(&why.message));
        }
    }

    /// The number of threads that variables say to the first job; `None` if there are none, or a node decides.
    fn threads_of_first(&self) -> Option<usize> {
        let cpus = self.view.machine.cpus.len();
        let most_live = threads_env(self.options, cpus)?;
        if self.view.kind != BackendKind::Host {
            return None;
        }
        Some(match self.plan.batch.specs.first()? {
            spec if spec.width == Width::Stated => spec.cpus as usize,
            _ => cpus_of_job(cpus, self.plan.jobs.len(), most_live),
        })
    }

    fn files(&mut self) {
        self.add("logs", told(&self.plan.batch.logs));
        match &self.options.history {
            _ if self.view.is_simulated() => {}
            Some(history) => self.add("history", told(history)),
            None => self.add("history", "off"),
        }
    }

    fn jobs(&mut self) {
        let plan = self.plan;
        let jobs = plan.jobs.len();
        let live = plan.batch.config.jobs;
        let done = match plan.batch.earlier.len() {
            0 => String::new(),
            earlier => format!(", {earlier} done before"),
        };
        self.add(
            "jobs",
            format_args!("{jobs} (at most {live} live at once){done}"),
        );
        if plan.batch.config.tries_at_once(&self.view.machine) {
            self.add(
                "at once",
                "in a long batch some of these jobs try whether fewer at once end sooner (--jobs N: N at once)",
            );
        }
        let mut some_expected = false;
        for ((_, job), spec) in plan.jobs.iter().zip(&plan.batch.specs) {
            let name = &job.name;
            let shown = visible(&self.platform.shown(job));
            self.more(format_args!("{name:<20} {shown}"));
            if let Some(expected) = &spec.expected {
                some_expected = true;
                let expected = expected_text(expected);
                self.more(format_args!("{:<23}{expected}", ""));
            }
        }
        let is_batch = plan
            .batch
            .specs
            .iter()
            .all(|spec| spec.arrives == Nanos::ZERO);
        if plan.batch.config.order == Order::Auto && is_batch && some_expected {
            self.add(
                "order",
                "the longest begin early enough to end with the others, by the expected times (--order given: as given)",
            );
        }
    }

    /// The snapshot for the first decision: all jobs that may be live have arrived, and none has been started.
    fn first_snapshot(&self) -> Snapshot {
        let plan = self.plan;
        let config = &plan.batch.config;
        let mut live = first_in_order(&plan.batch.specs, config);
        live.truncate(config.jobs);
        let mut tasks = Vec::new();
        for (turn, id) in (0..).zip(live) {
            let spec = &plan.batch.specs[id.0 as usize];
            let estimator = TaskEstimator::new(spec, config.quantum, InitialProgress::default());
            let estimate = estimator.initial();
            let view = TaskView {
                turn,
                ..TaskView::arriving(spec, Nanos::ZERO, estimate)
            };
            tasks.push(Box::new(view));
        }
        tasks.sort_by_key(|task| task.id);
        let mut ideal = IdealBandwidth::default();
        plan.batch.specs.iter().for_each(|spec| ideal.add(spec));
        Snapshot {
            machine: self.view.machine.clone(),
            now: Nanos::ZERO,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            admits: None,
            ideal_bandwidth: ideal.mean(),
            contention: Default::default(),
            tasks,
        }
    }

    fn first_decision(&self, snapshot: &Snapshot) -> Decision {
        let choice = &self.plan.batch.choice;
        let mut policy = (choice.entry.build)(&choice.params);
        policy.decide(snapshot, &mut Rng::new(self.options.policy.seed))
    }

    /// Adds a line for each job that starts, and for each that waits for a reason.
    fn first(&mut self) {
        let snapshot = self.first_snapshot();
        let decision = self.first_decision(&snapshot);
        let spare = spare_cpus(&snapshot, &decision);
        let specs = &self.plan.batch.specs;
        self.add("first", "");
        for change in &decision.changes {
            let Change::Place {
                task, placement, ..
            } = change
            else {
                continue;
            };
            let spec = &specs[task.0 as usize];
            let name = &spec.name;
            let cpus = placement.cpus();
            let more = if spec.width == Width::Measured && !spare.is_empty() {
                format!(", and may use {spare} while they are idle")
            } else {
                String::new()
            };
            self.more(format_args!("{name:<20} starts on CPU {cpus}{more}"));
        }
        for wait in &decision.waits {
            let name = &specs[wait.task.0 as usize].name;
            let why = wait_text(&wait.reason);
            self.more(format_args!("{name:<20} waits: {why}"));
        }
    }
}
