//! `--dry-run`: explains what would be done, and why.

use super::memory::Known;
use super::options::RunOptions;
use super::plan::Plan;
use super::platform::{Platform, View};
use super::setting::auto_lacks;
use crate::input::{Command, told};
use cosched_core::{
    Actuation, Change, Decision, Expected, ExpectedFrom, Nanos, Order, Snapshot, Start,
    TaskEstimator, TaskView, Trigger, Width, first_in_order, spare_cpus,
};
use cosched_report::{
    ExpectedOfJob, RunWarning, count, seconds, shortfall_text, visible, visible_lines, wait_text,
};
use std::io::{self, IsTerminal as _, Write};

/// The snapshot for the first decision: all jobs that may be live have arrived, and none has been started.
fn first_snapshot<P: Platform>(view: &View, plan: &Plan<P>) -> Snapshot {
    let live = first_in_order(&plan.specs, &plan.config)
        .into_iter()
        .take(plan.config.jobs);
    let mut tasks: Vec<TaskView> = (0..)
        .zip(live)
        .map(|(turn, id)| {
            let spec = &plan.specs[id.0 as usize];
            let estimator = TaskEstimator::new(spec, plan.config.quantum, Start::default());
            TaskView {
                turn,
                ..TaskView::arriving(spec, Nanos::ZERO, estimator.initial(&spec.solo))
            }
        })
        .collect();
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
    let Expected {
        time,
        least,
        greatest,
        memory,
        from,
        runs,
    } = expected;
    let range = if least == greatest {
        String::new()
    } else {
        format!(
            " ({} to {})",
            seconds(least.as_s()),
            seconds(greatest.as_s())
        )
    };
    let memory = memory
        .map(|bytes| format!(", {} of memory", cosched_report::bytes(bytes as f64)))
        .unwrap_or_default();
    let from = match from {
        ExpectedFrom::Same => "of this command",
        ExpectedFrom::Changed => "of this command in another folder, or before its program changed",
        ExpectedFrom::Program => "of other commands with this program",
    };
    format!(
        "expected: {}{range}{memory}, from {} {from}",
        seconds(time.as_s()),
        count(u64::from(*runs), "run")
    )
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
    let mut rows = policy_rows(options, view, plan)?;
    rows.extend(machine_rows(options, view, plan));
    rows.extend(file_rows(options, view, plan));
    rows.extend(job_rows(platform, plan));
    for (label, text) in rows {
        writeln!(out, "{label:<10}{text}")?;
    }
    writeln!(out, "first")?;
    for text in first.lines(plan) {
        writeln!(out, "{:<10}{text}", "")?;
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
    for (((seq, job), spec), known) in plan.jobs.iter().zip(&plan.specs).zip(&plan.known) {
        jobs.push(serde_json::json!({
            "seq": seq,
            "name": job.name,
            "program": job.input.program,
            "command": job.input.command.as_ref().map(Command::line),
            "cpus": spec.cpus,
            "identity": known.as_ref().map(Known::identity),
            "width": spec.width,
            "expected": spec.expected.as_ref().map(ExpectedOfJob::of),
        }));
    }
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
        "history": options.history.as_deref().map(|path| path.display().to_string()),
        "actuation": plan.config.actuation,
        "refused": view.refused.as_ref().map(ToString::to_string),
        "without": plan.choice.shortfalls.iter().map(shortfall_text).collect::<Vec<_>>(),
        "skipped": plan.earlier.len(),
        "warnings": plan.warnings.iter().map(RunWarning::text).collect::<Vec<_>>(),
        "jobs": jobs,
        "first_decision": decision,
    })
}

/// A line of the plan: its label, which is empty if it continues the line before, and its text.
type Row = (&'static str, String);

fn policy_rows<P: Platform>(
    options: &RunOptions,
    view: &View,
    plan: &Plan<P>,
) -> anyhow::Result<Vec<Row>> {
    let choice = &plan.choice;
    let entry = choice.entry;
    let mut rows = vec![("policy", format!("{} - {}", entry.name, entry.gist))];
    if options.policy.name.is_none() {
        let why = auto_lacks(options, view);
        let why = why.unwrap_or("the machine has all that it needs".to_owned());
        rows.push(("", format!("chosen by auto: {}", visible(&why))));
    }
    for (name, value) in choice.params.iter() {
        let value = serde_json::to_string(value)?;
        let origin = match choice.origins.get(name) {
            Some(origin) => format!(" ({})", origin.text()),
            None => String::new(),
        };
        rows.push(("", format!("{name} = {value}{origin}")));
    }
    for shortfall in &choice.shortfalls {
        rows.push(("without", shortfall_text(shortfall)));
    }
    Ok(rows)
}

fn machine_rows<P: Platform>(options: &RunOptions, view: &View, plan: &Plan<P>) -> Vec<Row> {
    let (name, cpus) = (visible(&view.machine.name), view.machine.all_cpus());
    let mut rows = vec![("machine", format!("{name}, CPUs {cpus}"))];
    for warning in view.warnings.iter().chain(&plan.warnings) {
        rows.push(("warning", visible(&warning.text())));
    }
    rows.push(("freezing", view.freezing.clone()));
    if let Some(shell) = &options.shell {
        rows.push(("shell", told(shell)));
    }
    if plan.config.actuation == Actuation::Plans {
        let text = "plans: a CPU whose job sleeps or ends goes to the next job at once";
        rows.push(("actuation", text.to_owned()));
    }
    if let Some(why) = &view.refused {
        rows.push(("refused", visible(&why.message)));
    }
    rows
}

fn file_rows<P: Platform>(options: &RunOptions, view: &View, plan: &Plan<P>) -> Vec<Row> {
    let mut rows = vec![("logs", told(&plan.logs))];
    if !view.is_simulated() {
        let history = options.history.as_ref().map_or("off".to_owned(), told);
        rows.push(("history", history));
    }
    rows
}

fn job_rows<P: Platform>(platform: &P, plan: &Plan<P>) -> Vec<Row> {
    let skipped = match plan.earlier.len() {
        0 => String::new(),
        earlier => format!(", {earlier} done before"),
    };
    let (jobs, live) = (plan.jobs.len(), plan.config.jobs);
    let mut rows = vec![(
        "jobs",
        format!("{jobs} (at most {live} live at once){skipped}"),
    )];
    for ((_, job), spec) in plan.jobs.iter().zip(&plan.specs) {
        let shown = visible(&platform.shown(job));
        rows.push(("", format!("{:<20} {shown}", job.name)));
        if let Some(expected) = &spec.expected {
            rows.push(("", format!("{:<20}   {}", "", expected_text(expected))));
        }
    }
    let some_expected = plan.specs.iter().any(|spec| spec.expected.is_some());
    if plan.config.order == Order::Longest && some_expected {
        let text = "the longest first, by the times of earlier runs (--order given: as given)";
        rows.push(("order", text.to_owned()));
    }
    rows
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
            let more = if spec.width == Width::Measured && !spare.is_empty() {
                format!(", and may use {spare} while they are idle")
            } else {
                String::new()
            };
            let (name, cpus) = (&spec.name, placement.cpus());
            lines.push(format!("{name:<20} starts on CPU {cpus}{more}"));
        }
        for wait in &self.decision.waits {
            let name = &plan.specs[wait.task.0 as usize].name;
            lines.push(format!("{name:<20} waits: {}", wait_text(&wait.reason)));
        }
        lines
    }
}
