//! `cosched list`: prints the tables that the program itself uses.

mod simulated;

use super::run::Format;
use crate::exit::usage;
use crate::input::near::did_you_mean;
use crate::input::spec;
use crate::verb::run::Offered;
use clap::{Args, ValueEnum};
use cosched_core::metric::METRICS;
use cosched_core::{Counter, Importance, POLICIES, ParamKind, Params};
use cosched_linux::events::{Event, own_tables, tables};
use cosched_linux::root::Root;
use cosched_report::wrap;
use cosched_run::width_of;
use cosched_sim::MACHINES;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// List policies, machines, programs, metrics or counter events
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: What,

    /// Show these in full, with their parameters and sources; policies, machines and programs are else a line each
    #[arg(value_name = "NAME", value_parser = Offered(all_names), hide_possible_values = true)]
    names: Vec<String>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Policies with their parameters and needs
    Policies,
    /// Machines that can be simulated, with their sources
    Machines,
    /// Programs that can be simulated, with their sources
    Programs,
    /// Metrics of a run
    Metrics,
    /// Counter events per microarchitecture, with their sources
    Events,
}

/// What can be shown in full.
fn all_names() -> Vec<&'static str> {
    let machines = spec::machine_names().into_iter().skip(1);
    spec::policy_names()
        .into_iter()
        .skip(1)
        .chain(machines)
        .chain(spec::program_names())
        .collect()
}

/// Refuses names that are not in the list.
fn check(names: &[String], known: &[&'static str]) -> anyhow::Result<()> {
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) if known.is_empty() => {
            Err(usage(format!("`{name}`: this list is shown as a whole")))
        }
        Some(name) if name == "auto" => Err(usage(
            "`auto` is no policy of its own: `cosched doctor` says which one it takes here, and `cosched man policies` why",
        )),
        Some(name) => Err(usage(format!(
            "there is no `{name}` in this list{}; it has {}",
            did_you_mean(name, known),
            known.join(", ")
        ))),
    }
}

pub(crate) fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    let known = match args.what {
        What::Policies => POLICIES.iter().map(|policy| policy.name).collect(),
        What::Machines => MACHINES.iter().map(|machine| machine.name).collect(),
        What::Programs => spec::program_names(),
        What::Metrics | What::Events => Vec::new(),
    };
    check(&args.names, &known)?;
    let (text, object) = match args.what {
        What::Policies => policies(&args.names),
        What::Machines => simulated::machines(&args.names)?,
        What::Programs => simulated::programs(&args.names)?,
        What::Metrics => metrics(),
        What::Events => events()?,
    };
    let mut out = std::io::stdout();
    match args.format {
        Format::Text => out.write_all(text.as_bytes())?,
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether an entry is listed, where these names were given.
fn is_wanted(name: &str, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

/// Adds an entry of a brief list: its name, and what it is in lines of the terminal's width.
fn brief_entry(brief: &mut String, name: &str, about: &str) {
    const NAMES: usize = 14;
    for (ix, line) in wrap(about, width_of(std::io::stdout()).saturating_sub(NAMES + 1))
        .iter()
        .enumerate()
    {
        let name = if ix == 0 { name } else { "" };
        let _ = writeln!(brief, "{name:<NAMES$} {line}");
    }
}

/// A few lines for each policy, or these policies in full.
fn policies(names: &[String]) -> (String, Value) {
    let mut brief = String::new();
    brief_entry(
        &mut brief,
        "auto",
        "the best policy that this machine supports (the default)",
    );
    let mut text = String::new();
    let mut list = Vec::new();
    for entry in POLICIES.iter().filter(|entry| is_wanted(entry.name, names)) {
        brief_entry(&mut brief, entry.name, entry.gist);
        let _ = writeln!(text, "{:<13} {}", entry.name, entry.gist);
        let _ = writeln!(text, "{:<13} source: {}", "", entry.source);
        let params = Params::resolve(entry.name, entry.params, &[]).unwrap_or_default();
        let mut needs = Vec::new();
        for need in (entry.needs)(&params) {
            let (required, without) = match need.importance {
                Importance::Required => (true, None),
                Importance::Wanted(without) => (false, Some(without)),
            };
            let _ = match without {
                None => writeln!(text, "{:<13} needs {}", "", need.capability.text()),
                Some(without) => writeln!(
                    text,
                    "{:<13} wants {}; without: {without}",
                    "",
                    need.capability.text()
                ),
            };
            needs.push(json!({ "capability": need.capability.code(), "required": required, "without": without }));
        }
        let mut specs = Vec::new();
        for spec in entry.params {
            let (shown, value, range) = match spec.kind {
                ParamKind::Number { default, min, max } => (
                    default.to_string(),
                    json!(default),
                    json!({ "min": min, "max": max }),
                ),
                ParamKind::Choice(words) => (words[0].to_owned(), json!(words[0]), json!(words)),
            };
            let _ = writeln!(text, "{:<13} --param {}={shown}", "", spec.name);
            let _ = writeln!(text, "{:<13}     {}", "", spec.about);
            specs.push(
                json!({ "name": spec.name, "default": value, "range": range, "about": spec.about }),
            );
        }
        text.push('\n');
        list.push(json!({
            "name": entry.name, "gist": entry.gist, "source": entry.source, "time_shares": entry.time_shares,
            "needs": needs, "params": specs,
        }));
    }
    brief.push_str("\n`cosched list policies NAME` shows parameters, needs and the source\n");
    (
        if names.is_empty() { brief } else { text },
        json!({ "policies": list }),
    )
}

fn metrics() -> (String, Value) {
    let mut text = String::new();
    let mut list = Vec::new();
    for metric in METRICS {
        let better = format!("{:?}", metric.better).to_lowercase();
        let _ = writeln!(
            text,
            "{:<16} {} [{}; {better} is better]",
            metric.name, metric.meaning, metric.unit
        );
        let _ = writeln!(text, "{:<16} source: {}", "", metric.source);
        list.push(json!({
            "name": metric.name, "meaning": metric.meaning, "unit": metric.unit, "better": better,
            "source": metric.source,
        }));
    }
    (text, json!({ "metrics": list }))
}

fn events() -> anyhow::Result<(String, Value)> {
    let own = own_tables(&Root::default())?;
    let mut text = Vec::new();
    let mut list = Vec::new();
    for table in tables() {
        let this_machine = own.iter().any(|own| own.name == table.name);
        let here = if this_machine {
            "  <- this machine"
        } else {
            ""
        };
        let mut lines = format!("{}{here}\n  source: {}\n", table.title, table.source);
        for counter in Counter::BY_NEED {
            let event = table.event(counter);
            let encoding = event.map(|event| event.encoding.to_string());
            let name = event.map(Event::name);
            let absent = event.is_none().then(|| table.why_absent(counter));
            let shown = match (&encoding, &name) {
                (Some(encoding), Some(name)) => format!("{encoding:<28} {name}"),
                _ => format!("- ({})", absent.unwrap_or_default()),
            };
            let _ = writeln!(lines, "  {:<13} {shown}", counter.name());
            list.push(json!({
                "table": table.name, "event": counter.name(), "encoding": encoding, "name": name, "absent": absent,
                "source": table.source, "this_machine": this_machine,
            }));
        }
        text.push(lines);
    }
    let text = text.join("\n");
    Ok((text, json!({ "events": list })))
}
