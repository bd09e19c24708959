//! `--dry-run`: explains what would be done, and why.

use super::memory::Known;
use super::options::RunOptions;
use super::plan::Plan;
use super::platform::{Platform, View};
use super::setting::auto_lacks;
use crate::input::{Command, told};
use cosched_core::{
    Actuation, Change, Decision, Expected, ExpectedFrom, Nanos, Order, PolicyEntry, Snapshot,
    Start, TaskEstimator, TaskView, Trigger, Width, first_in_order, spare_cpus,
};
use cosched_report::{
    ExpectedOfJob, RunWarning, bytes, count, seconds, shortfall_text, visible, visible_lines,
    wait_text,
};
use std::io::{self, IsTerminal as _, Write};

/// The snapshot for the first decision: all jobs that may be live have arrived, and none has been started.
fn first_snapshot<P: Platform>(view: &View, plan: &Plan<P>) -> Snapshot {
    let config = &plan.config;
    let mut live = first_in_order(&plan.specs, config);
    live.truncate(config.jobs);
    let mut tasks = Vec::new();
    for (turn, id) in (0..).zip(live) {
        let spec = &plan.specs[id.0 as usize];
        let estimator = TaskEstimator::new(spec, config.quantum, Start::default());
        let estimate = estimator.initial(&spec.solo);
        tasks.push(TaskView {
            turn,
            ..TaskView::arriving(spec, Nanos::ZERO, estimate)
        });
    }
    tasks.sort_by_key(|task| task.id);
    Snapshot {
        machine: view.machine.clone(),
        now: Nanos::ZERO,
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        admits: None,
        contention: Default::default(),
        tasks,
    }
}

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
    };
    format!("{text}, from {runs} {from}")
}

/// The first decision of the policy, and the snapshot that it is made for.
struct First {
    snapshot: Snapshot,
    decision: Decision,
}

impl First {
    fn of<P: Platform>(view: &View, plan: &Plan<P>, seed: u64) -> First {
        let mut policy = (plan.choice.entry.build)(&plan.choice.params);
        let snapshot = first_snapshot(view, plan);
        let decision = policy.decide(&snapshot, &mut cosched_core::Rng::new(seed));
        First { snapshot, decision }
    }
}

/// Prints the plan and the first decision of the policy.
pub(crate) fn explain<P: Platform>(
    options: &RunOptions,
    platform: &P,
    plan: &Plan<P>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if options.output.quiet && !options.output.json {
        print_commands(&mut out, platform, plan)?;
        return Ok(out.flush()?);
    }
    let view = platform.view();
    let first = First::of(view, plan, options.policy.seed);
    if options.output.json {
        let object = as_json(options, view, plan, &first.decision);
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        return Ok(out.flush()?);
    }
    if view.is_simulated() {
        let machine = visible(&view.machine.name);
        writeln!(out, "SIMULATED on {machine}: no command would be started")?;
    }
    let mut rows = Rows::default();
    rows.policy(options, view, plan)?;
    rows.machine(options, view, plan);
    rows.files(options, view, plan);
    rows.jobs(platform, plan);
    rows.add("first", String::new());
    for text in first.lines(plan) {
        rows.more(text);
    }
    for (label, text) in rows.0 {
        writeln!(out, "{}", format!("{label:<10}{text}").trim_end())?;
    }
    writeln!(out, "nothing was started")?;
    Ok(out.flush()?)
}

/// Prints the commands alone, to be read by a shell. A terminal gets a form in which nothing controls it.
fn print_commands<P: Platform>(
    out: &mut impl Write,
    platform: &P,
    plan: &Plan<P>,
) -> io::Result<()> {
    let for_shell = !io::stdout().is_terminal() && !platform.view().is_simulated();
    for (_, job) in &plan.jobs {
        match &job.input.command {
            Some(command) if for_shell => out.write_all(&command.line_for_sh())?,
            _ => out.write_all(visible_lines(&platform.shown(job)).as_bytes())?,
        }
        writeln!(out)?;
    }
    Ok(())
}

fn as_json<P: Platform>(
    options: &RunOptions,
    view: &View,
    plan: &Plan<P>,
    decision: &Decision,
) -> serde_json::Value {
    let mut jobs = Vec::new();
    for (ix, (seq, job)) in plan.jobs.iter().enumerate() {
        let spec = &plan.specs[ix];
        jobs.push(serde_json::json!({
            "seq": seq,
            "name": job.name,
            "program": job.input.program,
            "command": job.input.command.as_ref().map(Command::line),
            "cpus": spec.cpus,
            "identity": plan.known[ix].as_ref().map(Known::identity),
            "width": spec.width,
            "expected": spec.expected.as_ref().map(ExpectedOfJob::of),
        }));
    }
    let history = options.history.as_deref();
    let without: Vec<String> = plan.choice.shortfalls.iter().map(shortfall_text).collect();
    let warnings: Vec<String> = plan.warnings.iter().map(RunWarning::text).collect();
    serde_json::json!({
        "policy": plan.choice.entry.name,
        "policy_lacks": auto_lacks(options, view),
        "params": plan.choice.params,
        "param_origins": plan.choice.origins,
        "backend": view.kind,
        "machine": view.machine.name,
        "cpus": view.machine.all_cpus(),
        "live_jobs": plan.config.jobs,
        "order": plan.config.order,
        "history": history.map(|path| path.display().to_string()),
        "actuation": plan.config.actuation,
        "refused": view.refused.as_ref().map(ToString::to_string),
        "without": without,
        "skipped": plan.earlier.len(),
        "warnings": warnings,
        "jobs": jobs,
        "first_decision": decision,
    })
}

/// The lines of the plan, each with its label.
#[derive(Default)]
struct Rows(Vec<(&'static str, String)>);

impl Rows {
    fn add(&mut self, label: &'static str, text: impl Into<String>) {
        self.0.push((label, text.into()));
    }

    /// Adds a line that continues the one before.
    fn more(&mut self, text: String) {
        self.add("", text);
    }

    fn policy<P: Platform>(
        &mut self,
        options: &RunOptions,
        view: &View,
        plan: &Plan<P>,
    ) -> anyhow::Result<()> {
        let choice = &plan.choice;
        let PolicyEntry { name, gist, .. } = choice.entry;
        self.add("policy", format!("{name} - {gist}"));
        if options.policy.name.is_none() {
            let lacks = auto_lacks(options, view);
            let why = match &lacks {
                Some(why) => visible(why),
                None => "the machine has all that it needs".into(),
            };
            self.more(format!("chosen by auto: {why}"));
        }
        for (name, value) in choice.params.iter() {
            let mut text = format!("{name} = {}", serde_json::to_string(value)?);
            if let Some(origin) = choice.origins.get(name) {
                let origin = origin.text();
                text.push_str(&format!(" ({origin})"));
            }
            self.more(text);
        }
        for shortfall in &choice.shortfalls {
            self.add("without", shortfall_text(shortfall));
        }
        Ok(())
    }

    fn machine<P: Platform>(&mut self, options: &RunOptions, view: &View, plan: &Plan<P>) {
        let name = visible(&view.machine.name);
        let cpus = view.machine.all_cpus();
        self.add("machine", format!("{name}, CPUs {cpus}"));
        for warning in view.warnings.iter().chain(&plan.warnings) {
            self.add("warning", visible(&warning.text()));
        }
        self.add("freezing", &view.freezing);
        if let Some(shell) = &options.shell {
            self.add("shell", told(shell));
        }
        if plan.config.actuation == Actuation::Plans {
            self.add(
                "actuation",
                "plans: a CPU whose job sleeps or ends goes to the next job at once",
            );
        }
        if let Some(why) = &view.refused {
            self.add("refused", visible(&why.message));
        }
    }

    fn files<P: Platform>(&mut self, options: &RunOptions, view: &View, plan: &Plan<P>) {
        self.add("logs", told(&plan.logs));
        match &options.history {
            _ if view.is_simulated() => {}
            Some(history) => self.add("history", told(history)),
            None => self.add("history", "off"),
        }
    }

    fn jobs<P: Platform>(&mut self, platform: &P, plan: &Plan<P>) {
        let jobs = plan.jobs.len();
        let live = plan.config.jobs;
        let mut text = format!("{jobs} (at most {live} live at once)");
        if !plan.earlier.is_empty() {
            let earlier = plan.earlier.len();
            text.push_str(&format!(", {earlier} done before"));
        }
        self.add("jobs", text);
        let mut some_expected = false;
        for ((_, job), spec) in plan.jobs.iter().zip(&plan.specs) {
            let name = &job.name;
            let shown = visible(&platform.shown(job));
            self.more(format!("{name:<20} {shown}"));
            if let Some(expected) = &spec.expected {
                some_expected = true;
                let expected = expected_text(expected);
                self.more(format!("{:<23}{expected}", ""));
            }
        }
        if plan.config.order == Order::Longest && some_expected {
            self.add(
                "order",
                "the longest first, by the times of earlier runs (--order given: as given)",
            );
        }
    }
}

impl First {
    /// A line for each job that starts, and for each that waits for a reason.
    fn lines<P: Platform>(&self, plan: &Plan<P>) -> Vec<String> {
        let spare = spare_cpus(&self.snapshot, &self.decision);
        let mut lines = Vec::new();
        for change in &self.decision.changes {
            let Change::Place {
                task, placement, ..
            } = change
            else {
                continue;
            };
            let spec = &plan.specs[task.0 as usize];
            let name = &spec.name;
            let cpus = placement.cpus();
            let mut line = format!("{name:<20} starts on CPU {cpus}");
            if spec.width == Width::Measured && !spare.is_empty() {
                line.push_str(&format!(", and may use {spare} while they are idle"));
            }
            lines.push(line);
        }
        for wait in &self.decision.waits {
            let name = &plan.specs[wait.task.0 as usize].name;
            let why = wait_text(&wait.reason);
            lines.push(format!("{name:<20} waits: {why}"));
        }
        lines
    }
}
