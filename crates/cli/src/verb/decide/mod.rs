//! `cosched decide`: what would a policy do in this situation, and why?

mod known;

use crate::exit::usage;
use crate::input::near::near;
use crate::input::told;
use crate::verb::run::{Format, moment, name_value, seed};
use clap::Args;
use cosched_core::{
    Absence, Capabilities, Capability, Change, Decision, Importance, Nanos, POLICIES, Params,
    PolicyEntry, Rng, Snapshot, TaskId, check, find_policy,
};
use cosched_report::{
    BackendKind, Event, Pick, read_event, trigger_text, visible, visible_lines, wait_text,
};
use cosched_run::{once_each, unmet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what a policy decides for a snapshot, and why
///
/// The snapshot is a line of a file that `cosched run --events FILE` or another program wrote; see
/// `cosched man formats`.
/// With the recorded policy, its parameters and its state, the decision is the same to the last bit.
#[derive(Args, Debug)]
pub(crate) struct DecideArgs {
    /// File with the snapshot; `-` is standard input
    snapshot: PathBuf,

    /// Policy [default: the recorded one]
    #[arg(short, long, value_name = "P")]
    policy: Option<String>,

    /// Set a parameter of the policy, as in quantum_s=0.1; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_value)]
    params: Vec<(String, String)>,

    /// Number of the decision, from 0 [default: the first]
    #[arg(long, value_name = "N")]
    seq: Option<u64>,

    /// The decision that held at this time since the start of the run, as in 90s
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "seq")]
    at: Option<Nanos>,

    /// Show only this job, and the jobs that run if it has no CPU
    #[arg(long, value_name = "NAME")]
    job: Option<String>,

    /// Seed of the generator [default: the recorded state of the recorded policy, else 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub(crate) fn run(args: DecideArgs) -> anyhow::Result<ExitCode> {
    let file = told(&args.snapshot);
    let event = event(&args, &file)?;
    let snapshot = &event.snapshot;
    let entry = policy_entry(&args, &event, &file)?;
    // Recorded parameters and state belong to the policy that was recorded with them.
    let same = event.policy.as_deref() == Some(entry.name);
    once_each(&args.params)?;
    let settings = settings(&args, &event, entry, same);
    let params = Params::resolve(entry.name, entry.params, &settings)
        .map_err(|error| usage(error.to_string()))?;
    let lacks = entry.shortfalls(&params, &capabilities(&event, entry, &params));
    if let Some(lack) = lacks
        .iter()
        .find(|lack| lack.importance == Importance::Required)
    {
        return Err(unmet(entry, lack, &format!("the machine of {file}")));
    }
    let mut policy = (entry.build)(&params);
    if let Some(state) = event.policy_state.as_ref().filter(|_| same) {
        policy
            .load(state)
            .map_err(|error| usage(format!("{file}: policy_state: {error}")))?;
    }
    let mut rng = generator(args.seed, event.rng.filter(|_| same));
    let mut decision = policy.decide(snapshot, &mut rng);
    let fault = check(snapshot, &decision)
        .err()
        .map(|fault| fault.to_string());
    let replayed = event
        .decision
        .as_ref()
        .filter(|_| same && !event.stood_in)
        .map(|then| *then == decision);
    if let Some(name) = &args.job {
        narrow(snapshot, &mut decision, name).map_err(|why| usage(format!("{file}: {why}")))?;
    }
    let mut out = std::io::stdout();
    match args.format {
        Format::Json => {
            let object = serde_json::json!({
                "policy": entry.name, "backend": event.backend, "params": params, "seq": event.seq, "decision": decision,
                "invalid": fault, "same_as_recorded": replayed, "learnt": known::known(snapshot, &decision),
                "contention": snapshot.contention,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        }
        Format::Text => {
            // Names come from a file that anybody may have written.
            let text = text(entry.name, &event, &decision, fault.as_deref());
            out.write_all(visible_lines(&text).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The event that the arguments pick.
fn event(args: &DecideArgs, file: &str) -> anyhow::Result<Event> {
    let input: Box<dyn BufRead> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = std::fs::File::open(&args.snapshot);
        Box::new(BufReader::new(
            opened.map_err(|error| usage(format!("{file}: {error}")))?,
        ))
    };
    let pick = match (args.seq, args.at) {
        (Some(seq), _) => Pick::Seq(seq),
        (None, Some(at)) => Pick::At(at),
        (None, None) => Pick::First,
    };
    read_event(input, file, pick).map_err(|error| usage(error.to_string()))
}

/// The policy of `--policy`, or the recorded one.
fn policy_entry(
    args: &DecideArgs,
    event: &Event,
    file: &str,
) -> anyhow::Result<&'static PolicyEntry> {
    let Some(name) = args.policy.as_deref().or(event.policy.as_deref()) else {
        return Err(usage(format!(
            "{file} names no policy; give one, as in --policy perf-fair"
        )));
    };
    find_policy(name).ok_or_else(|| {
        let known: Vec<&str> = POLICIES.iter().map(|entry| entry.name).collect();
        usage(format!(
            "there is no policy `{name}`; there are {}",
            known.join(", ")
        ))
    })
}

/// The recorded parameters, then those of the arguments. Another policy than the recorded one takes the machine's alone.
fn settings(
    args: &DecideArgs,
    event: &Event,
    entry: &PolicyEntry,
    same: bool,
) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    if same {
        for (name, value) in &event.params {
            settings.push((name.clone(), plain(value)));
        }
    } else {
        for (name, value) in &event.machine_params {
            if entry.params.iter().any(|spec| spec.name == *name) {
                settings.push((name.clone(), value.clone()));
            }
        }
    }
    settings.extend(args.params.iter().cloned());
    settings
}

fn generator(seed: Option<u64>, recorded: Option<cosched_core::RngState>) -> Rng {
    match (seed, recorded) {
        (Some(seed), _) => Rng::new(seed),
        (None, Some(recorded)) => Rng::restore(recorded),
        (None, None) => Rng::new(1),
    }
}

/// Leaves of a decision what concerns a job: what becomes of it; if it waits, also who is placed instead.
fn narrow(snapshot: &Snapshot, decision: &mut Decision, name: &str) -> Result<(), String> {
    let job = snapshot
        .tasks
        .iter()
        .find(|task| *task.name == *name)
        .map(|task| task.id);
    let job = job.ok_or_else(|| {
        let hint = near(name, snapshot.tasks.iter().map(|task| &*task.name));
        let hint = hint.map_or_else(String::new, |other| format!("; is it `{other}`?"));
        format!("there is no job `{name}` that had arrived and not ended then{hint}")
    })?;
    decision.waits.retain(|wait| wait.task == job);
    let waits = !decision.waits.is_empty();
    decision
        .changes
        .retain(|change| change.task() == job || (waits && matches!(change, Change::Place { .. })));
    Ok(())
}

/// What the run of the event could do, as far as this policy needs it.
fn capabilities(event: &Event, entry: &PolicyEntry, params: &Params) -> Capabilities {
    let needs = (entry.needs)(params)
        .into_iter()
        .map(|need| need.capability);
    Capabilities {
        missing: needs
            .filter_map(|capability| Some((capability, lack(event, capability)?)))
            .collect(),
    }
}

/// Why the run of the event lacked something; `None` if it did not, or if the event does not tell.
fn lack(event: &Event, capability: Capability) -> Option<Absence> {
    // Whether jobs were run alone before is seen from what is known of them.
    let mut estimates = event.snapshot.tasks.iter().map(|task| &task.estimates);
    match capability {
        Capability::SoloTrace => {
            let none = Absence::NoSoloTrace;
            estimates
                .all(|task| task.trace_progress.absence() == Some(none))
                .then_some(none)
        }
        Capability::SoloBandwidth => estimates
            .all(|task| !task.solo_mm_reads.is_value())
            .then_some(Absence::NoSoloEstimate),
        capability => event.missing.get(&capability.code()).copied(),
    }
}

fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// How many of the placed tasks have no measured bandwidth.
fn unmeasured(snapshot: &Snapshot, decision: &Decision) -> usize {
    let placed = decision.changes.iter().filter_map(|change| match change {
        Change::Place { task, .. } => snapshot.task(*task),
        Change::Stop { .. } => None,
    });
    placed
        .filter(|task| !task.estimates.mm_reads.is_value())
        .count()
}

fn text(policy: &str, event: &Event, decision: &Decision, fault: Option<&str>) -> String {
    let snapshot: &Snapshot = &event.snapshot;
    let mut out = String::new();
    let triggers: Vec<String> = snapshot
        .triggers
        .iter()
        .map(|trigger| trigger_text(trigger, |id| job_name(snapshot, id)))
        .collect();
    if event.backend == Some(BackendKind::Sim) {
        let machine = &snapshot.machine.name;
        let _ = writeln!(
            out,
            "SIMULATED on {}: the snapshot is of a simulated machine",
            visible(machine)
        );
    }
    let _ = writeln!(
        out,
        "{policy} at {:.3} s, because {}",
        snapshot.now.as_s(),
        triggers.join(", ")
    );
    out.push_str(&basis_lines(snapshot, decision));
    for change in &decision.changes {
        out.push_str(&change_line(snapshot, change));
    }
    for wait in &decision.waits {
        let _ = writeln!(
            out,
            "  wait   {:<20} {}",
            job_name(snapshot, wait.task),
            wait_text(&wait.reason)
        );
    }
    let known = known::known(snapshot, decision);
    out.push_str(&known::text(&known, |id| job_name(snapshot, id)));
    if let Some(wake) = decision.next_wake {
        let _ = writeln!(out, "  again at {:.3} s at the latest", wake.as_s());
    }
    if let Some(fault) = fault {
        let _ = writeln!(out, "  this decision can't be carried out: {fault}");
    }
    out
}

fn job_name(snapshot: &Snapshot, id: TaskId) -> String {
    snapshot
        .task(id)
        .map_or_else(|| id.to_string(), |task| visible(&task.name))
}

/// What the decision measures and aims at.
fn basis_lines(snapshot: &Snapshot, decision: &Decision) -> String {
    let mut out = String::new();
    if let Some(task) = decision.basis.measures {
        let _ = writeln!(
            out,
            "  measures {} in low contention",
            job_name(snapshot, task)
        );
    }
    if let (Some(target), Some(predicted)) = (decision.basis.target, decision.basis.predicted) {
        let _ = writeln!(
            out,
            "  wants {:.3} trans/us from memory in all; the chosen tasks are predicted to use {:.3}{}",
            target.per_us(),
            predicted.per_us(),
            match unmeasured(snapshot, decision) {
                0 => String::new(),
                number =>
                    format!(", where {number} not yet measured count as the mean of the others"),
            }
        );
    }
    out
}

fn change_line(snapshot: &Snapshot, change: &Change) -> String {
    let (task, placement, purpose) = match change {
        Change::Stop { task } => return format!("  stop   {}\n", job_name(snapshot, *task)),
        Change::Place {
            task,
            placement,
            purpose,
            ..
        } => (*task, placement, purpose),
    };
    let running = snapshot.task(task).and_then(|task| task.running.as_ref());
    let verb = match running {
        None => "start",
        Some(running) if running.placement.cpus() == placement.cpus() => "keep",
        Some(_) => "move",
    };
    let what_for = match purpose {
        cosched_core::Purpose::Run => "",
        cosched_core::Purpose::MeasureAlone => ", to be measured alone",
        cosched_core::Purpose::LowContention => ", since it disturbs little",
    };
    format!(
        "  {verb:<6} {:<20} CPU {}{what_for}\n",
        job_name(snapshot, task),
        placement.cpus()
    )
}
