//! `--dry-run`: explains what would be done, and why.

use super::args::{Format, RunArgs};
use super::memory::Known;
use super::plan::Plan;
use super::platform::{Platform, View};
use super::setting::auto_lacks;
use crate::input::{Command, told};
use crate::size::format_size;
use cosched_core::{
    Actuation, Change, Expected, ExpectedFrom, Nanos, Order, Snapshot, Start, TaskEstimator,
    TaskId, TaskView, Trigger, Width, first_in_order, spare_cpus,
};
use cosched_report::{
    ExpectedOfJob, RunWarning, count, seconds, shortfall_text, visible, visible_lines, wait_text,
};
use std::io::{IsTerminal as _, Write as _};

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
        .map(|bytes| format!(", {} of memory", format_size(bytes)))
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

/// Prints the plan and the first decision of the policy.
pub(crate) fn explain<P: Platform>(
    args: &RunArgs,
    platform: &P,
    plan: &Plan<P>,
) -> anyhow::Result<()> {
    let view = platform.view();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.output.quiet && args.output.format == Format::Text {
        // The commands alone, to be read by a shell. A terminal gets a form in which nothing controls it.
        let is_terminal = std::io::stdout().is_terminal();
        for (_, job) in &plan.jobs {
            match &job.input.command {
                Some(command) if !is_terminal && !view.is_simulated() => {
                    out.write_all(&command.line_for_sh())?
                }
                _ => out.write_all(visible_lines(&platform.shown(job)).as_bytes())?,
            }
            writeln!(out)?;
        }
        return Ok(out.flush()?);
    }
    let mut policy = (plan.choice.entry.build)(&plan.choice.params);
    let snapshot = first_snapshot(view, plan);
    let decision = policy.decide(&snapshot, &mut cosched_core::Rng::new(args.policy.seed));
    if args.output.format == Format::Json {
        let jobs: Vec<_> = plan
            .jobs
            .iter()
            .zip(&plan.specs)
            .zip(&plan.known)
            .map(|(((seq, job), spec), known)| {
                let command = job.input.command.as_ref().map(Command::line);
                serde_json::json!({
                    "seq": seq,
                    "name": job.name,
                    "program": job.input.program,
                    "command": command,
                    "cpus": spec.cpus,
                    "identity": known.as_ref().map(Known::identity),
                    "width": spec.width,
                    "expected": spec.expected.as_ref().map(ExpectedOfJob::of),
                })
            })
            .collect();
        let object = serde_json::json!({
            "policy": plan.choice.entry.name,
            "policy_lacks": auto_lacks(args, view),
            "params": plan.choice.params,
            "param_origins": plan.choice.origins,
            "backend": view.kind,
            "machine": view.machine.name,
            "cpus": view.machine.all_cpus(),
            "live_jobs": plan.config.jobs,
            "order": plan.config.order,
            "history": args.history().map(|path| path.display().to_string()),
            "actuation": plan.config.actuation,
            "refused": view.refused.as_ref().map(ToString::to_string),
            "without": plan.choice.shortfalls.iter().map(shortfall_text).collect::<Vec<_>>(),
            "skipped": plan.earlier.len(),
            "warnings": plan.warnings.iter().map(RunWarning::text).collect::<Vec<_>>(),
            "jobs": jobs,
            "first_decision": decision,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        return Ok(out.flush()?);
    }
    let machine = &view.machine;
    if view.is_simulated() {
        writeln!(
            out,
            "SIMULATED on {}: no command would be started",
            visible(&machine.name)
        )?;
    }
    writeln!(
        out,
        "policy    {} - {}",
        plan.choice.entry.name, plan.choice.entry.gist
    )?;
    if args.policy.policy == "auto" {
        let why = auto_lacks(args, view).map_or_else(
            || "the machine has all that it needs".to_owned(),
            |why| visible(&why),
        );
        writeln!(out, "          taken by auto: {why}")?;
    }
    for (name, value) in plan.choice.params.iter() {
        let origin = plan
            .choice
            .origins
            .get(name)
            .map(|origin| format!(" ({})", origin.text()))
            .unwrap_or_default();
        writeln!(
            out,
            "          {name} = {}{origin}",
            serde_json::to_string(value)?
        )?;
    }
    for shortfall in &plan.choice.shortfalls {
        writeln!(out, "without   {}", shortfall_text(shortfall))?;
    }
    writeln!(
        out,
        "machine   {}, CPUs {}",
        visible(&machine.name),
        machine.all_cpus()
    )?;
    for warning in &view.warnings {
        writeln!(out, "          {}", visible(&warning.text()))?;
    }
    for warning in &plan.warnings {
        writeln!(out, "warning   {}", visible(&warning.text()))?;
    }
    writeln!(out, "freezing  {}", view.freezing)?;
    if let Some(shell) = &args.shell {
        writeln!(out, "shell     {}", told(shell))?;
    }
    if plan.config.actuation == Actuation::Plans {
        writeln!(
            out,
            "actuation plans: a CPU whose job sleeps or ends goes to the next at once"
        )?;
    }
    if let Some(why) = &view.refused {
        writeln!(out, "refused   {}", visible(&why.message))?;
    }
    writeln!(out, "logs      {}", told(plan.logs.as_os_str()))?;
    if !view.is_simulated() {
        let history = args.history();
        writeln!(
            out,
            "history   {}",
            history.map_or_else(|| "off".to_owned(), |path| told(path.as_os_str()))
        )?;
    }
    let skipped = if !plan.earlier.is_empty() {
        format!(", {} done before", plan.earlier.len())
    } else {
        String::new()
    };
    writeln!(
        out,
        "jobs      {} (at most {} live at once){skipped}",
        plan.jobs.len(),
        plan.config.jobs
    )?;
    let name = |id: TaskId| plan.specs[id.0 as usize].name.as_str();
    for ((_, job), spec) in plan.jobs.iter().zip(&plan.specs) {
        writeln!(
            out,
            "          {:<20} {}",
            job.name,
            visible(&platform.shown(job))
        )?;
        if let Some(expected) = &spec.expected {
            writeln!(out, "          {:<20}   {}", "", expected_text(expected))?;
        }
    }
    let by_length = plan.config.order == Order::Longest
        && plan.specs.iter().any(|spec| spec.expected.is_some());
    if by_length {
        writeln!(
            out,
            "order     the longest first, as far as earlier runs know (--order given: as given)"
        )?;
    }
    writeln!(out, "first")?;
    let spare = spare_cpus(&snapshot, &decision);
    for change in &decision.changes {
        if let Change::Place {
            task, placement, ..
        } = change
        {
            let is_loose =
                plan.specs[task.0 as usize].width == Width::Measured && !spare.is_empty();
            let more = if is_loose {
                format!(", and may use {spare} while nobody has it")
            } else {
                String::new()
            };
            writeln!(
                out,
                "          {:<20} starts on CPU {}{more}",
                name(*task),
                placement.cpus()
            )?;
        }
    }
    for wait in &decision.waits {
        writeln!(
            out,
            "          {:<20} waits: {}",
            name(wait.task),
            wait_text(&wait.reason)
        )?;
    }
    writeln!(out, "nothing was started")?;
    Ok(out.flush()?)
}
