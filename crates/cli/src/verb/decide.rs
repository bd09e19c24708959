//! `cosched decide`: what would a policy do in this situation, and why?

use crate::exit::{OrUsage as _, usage};
use crate::input::told;
use crate::print::{print, print_json};
use crate::verb::run::{Format, name_value};
use anyhow::Result;
use clap::Args;
use cosched_core::{
    Absence, Capabilities, Capability, Change, Decision, Importance, Params, Policy, PolicyEntry,
    Purpose, Rng, Snapshot, TaskId, check,
};
use cosched_foreign::PolicyPatience;
use cosched_report::{
    BackendKind, EventPick, EventRecord, read_event, trigger_text, visible, visible_lines,
    wait_text,
};
use cosched_run::{once_each, policy_by_word, unmet};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what a policy decides for a snapshot, and why
///
/// The snapshot is a line of a file that `cosched run --events FILE` or another program wrote; see
/// `cosched help formats`.
/// With the recorded policy, its parameters and its state, the decision is the same to the last bit.
#[derive(Args)]
pub struct DecideArgs {
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

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: DecideArgs) -> Result<ExitCode> {
    let file = told(&args.snapshot);
    let event = event(&args, &file)?;
    let entry = policy_entry(&args, &event, &file)?;
    // Recorded parameters and state belong to the policy that was recorded with them.
    let same = event.policy.as_deref() == Some(entry.name);
    once_each(&args.params)?;
    let settings = settings(&args, &event, entry, same);
    let params = Params::resolve(entry.name, entry.params, &settings).or_usage()?;
    check_needs(&event, entry, &params, &file)?;
    let mut policy = (entry.build)(&params);
    let mut rng = Rng::new(1);
    if same {
        load(&mut *policy, &event, &file)?;
        rng = event.rng.map_or(rng, Rng::restore);
    }
    let decision = policy.try_decide(&event.snapshot, &mut rng)?;
    let fault = check(&event.snapshot, &decision).err();
    let fault = fault.map(|fault| fault.to_string());
    if args.format == Format::Text {
        // Names come from a file that anybody may have written.
        let text = text(entry.name, &event, &decision, fault.as_deref());
        return print(visible_lines(&text));
    }
    let recorded = event.decision.as_ref();
    let recorded = recorded.filter(|_| same && !event.stood_in);
    print_json(&serde_json::json!({
        "policy": entry.name,
        "backend": event.backend,
        "params": params,
        "seq": event.seq,
        "decision": decision,
        "policy_state": policy.save(),
        "rng": rng.state(),
        "invalid": fault,
        "same_as_recorded": recorded.map(|recorded| *recorded == decision),
        "contention": event.snapshot.contention,
    }))
}

/// Gives a policy the state that was recorded.
fn load(policy: &mut dyn Policy, event: &EventRecord, file: &str) -> Result<()> {
    let Some(state) = &event.policy_state else {
        return Ok(());
    };
    policy
        .load(state)
        .or_usage_in(format!("{file}: policy_state"))
}

/// The event that the arguments pick.
fn event(args: &DecideArgs, file: &str) -> Result<EventRecord> {
    let pick = match args.seq {
        Some(seq) => EventPick::Seq(seq),
        None => EventPick::First,
    };
    let event = if file == "-" {
        read_event(std::io::stdin().lock(), file, pick)
    } else {
        let opened = File::open(&args.snapshot).or_usage_in(file)?;
        read_event(BufReader::new(opened), file, pick)
    };
    event.or_usage()
}

/// The policy of `--policy`, or the recorded one.
fn policy_entry(
    args: &DecideArgs,
    event: &EventRecord,
    file: &str,
) -> Result<&'static PolicyEntry> {
    let Some(name) = args.policy.as_deref().or(event.policy.as_deref()) else {
        return Err(usage(format!(
            "{file} names no policy; give one, as in --policy perf-fair"
        )));
    };
    policy_by_word(name, PolicyPatience::Simulated).map_err(usage)
}

/// The recorded parameters, then those of the arguments. Another policy than the recorded one takes the machine's alone.
fn settings(
    args: &DecideArgs,
    event: &EventRecord,
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

/// Checks that the run of the event had all that this policy requires.
fn check_needs(
    event: &EventRecord,
    entry: &PolicyEntry,
    params: &Params,
    file: &str,
) -> Result<()> {
    let mut missing = BTreeMap::new();
    for need in (entry.needs)(params) {
        if let Some(why) = lack(event, need.capability) {
            missing.insert(need.capability, why);
        }
    }
    for lack in entry.shortfalls(params, &Capabilities { missing }) {
        if lack.importance == Importance::Required {
            return Err(unmet(entry, &lack, &format!("the machine of {file}")));
        }
    }
    Ok(())
}

/// Why the run of the event lacked something; `None` if it did not, or if the event does not tell.
fn lack(event: &EventRecord, capability: Capability) -> Option<Absence> {
    // Whether jobs were run alone before is seen from what is known of them.
    let mut estimates = event.snapshot.tasks.iter().map(|task| &task.estimates);
    match capability {
        Capability::SoloTrace => {
            let none = Absence::NoSoloTrace;
            let lacks = estimates.all(|task| task.trace_progress.absence() == Some(none));
            lacks.then_some(none)
        }
        Capability::SoloBandwidth => {
            let known = event.snapshot.ideal_bandwidth.is_value();
            (!known).then_some(Absence::NoSoloEstimate)
        }
        capability => event.missing.get(&capability.code()).copied(),
    }
}

fn plain(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// How many of the placed tasks have no measured bandwidth.
fn unmeasured(snapshot: &Snapshot, decision: &Decision) -> usize {
    let mut unmeasured = 0;
    for change in &decision.changes {
        if let Change::Place { task, .. } = change
            && let Some(task) = snapshot.task(*task)
            && !task.estimates.mm_reads.is_value()
        {
            unmeasured += 1;
        }
    }
    unmeasured
}

fn text(policy: &str, event: &EventRecord, decision: &Decision, fault: Option<&str>) -> String {
    let snapshot: &Snapshot = &event.snapshot;
    let mut out = String::new();
    if event.backend == Some(BackendKind::Sim) {
        let machine = visible(&snapshot.machine.name);
        let _ = writeln!(
            out,
            "SIMULATED on {machine}: the snapshot is of a simulated machine"
        );
    }
    let mut triggers = Vec::new();
    for trigger in &snapshot.triggers {
        triggers.push(trigger_text(trigger, |id| job_name(snapshot, id)));
    }
    let triggers = triggers.join(", ");
    let now_s = snapshot.now.as_s();
    let _ = writeln!(out, "{policy} at {now_s:.3} s, because {triggers}");
    add_basis(&mut out, snapshot, decision);
    for change in &decision.changes {
        out.push_str(&change_line(snapshot, change));
    }
    for wait in &decision.waits {
        let name = job_name(snapshot, wait.task);
        let reason = wait_text(&wait.reason);
        let _ = writeln!(out, "  wait   {name:<20} {reason}");
    }
    if let Some(wake) = decision.next_wake {
        let _ = writeln!(out, "  again at {:.3} s at the latest", wake.as_s());
    }
    if let Some(fault) = fault {
        let _ = writeln!(out, "  this decision can't be carried out: {fault}");
    }
    out
}

fn job_name(snapshot: &Snapshot, id: TaskId) -> String {
    match snapshot.task(id) {
        Some(task) => visible(&task.name),
        None => id.to_string(),
    }
}

/// Adds what the decision measures and aims at.
fn add_basis(out: &mut String, snapshot: &Snapshot, decision: &Decision) {
    let basis = &decision.basis;
    if let Some(task) = basis.measures {
        let name = job_name(snapshot, task);
        let _ = writeln!(out, "  measures {name} in low contention");
    }
    let (Some(target), Some(predicted)) = (basis.target, basis.predicted) else {
        return;
    };
    let unknown = match unmeasured(snapshot, decision) {
        0 => String::new(),
        number => format!(", where {number} not yet measured count as the mean of the others"),
    };
    let (target, predicted) = (target.per_us(), predicted.per_us());
    let _ = writeln!(
        out,
        "  wants {target:.3} trans/us from memory in all; the chosen tasks are predicted to use {predicted:.3}{unknown}"
    );
}

fn change_line(snapshot: &Snapshot, change: &Change) -> String {
    let name = job_name(snapshot, change.task());
    let Change::Place {
        task,
        placement,
        purpose,
        ..
    } = change
    else {
        return format!("  stop   {name}\n");
    };
    let running = snapshot.task(*task).and_then(|task| task.running.as_ref());
    let verb = match running {
        None => "start",
        Some(running) if running.placement.cpus() == placement.cpus() => "keep",
        Some(_) => "move",
    };
    let what_for = match purpose {
        Purpose::Run => "",
        Purpose::MeasureAlone => ", to be measured alone",
        Purpose::LowContention => ", in low contention",
        Purpose::WarmUp => ", to warm up for a measurement",
    };
    let cpus = placement.cpus();
    format!("  {verb:<6} {name:<20} CPU {cpus}{what_for}\n")
}
