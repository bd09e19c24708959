//! `cosched list`: prints the tables that the program itself uses.

mod simulated;

use crate::exit::usage;
use crate::input::spec;
use crate::input::spelling::did_you_mean;
use crate::offer;
use crate::print::{print, width};
use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use cosched_core::metric::METRICS;
use cosched_core::{
    AUTO, AutoRow, Counter, Importance, PAPERS, POLICIES, ParamKind, Params, PolicyEntry,
};
use cosched_linux::events::{EventTable, own_tables, tables};
use cosched_linux::root::Root;
use cosched_report::wrap;
use cosched_sim::MACHINES;
use std::fmt::Write as _;
use std::process::ExitCode;

/// List policies, machines, programs, metrics or counter events
#[derive(Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Show these in full, with parameters and sources; without NAME, policies, machines and programs take a line each
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    #[arg(add = ArgValueCandidates::new(|| offer::names(all_names())))]
    names: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
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
    let whats = [
        What::Policies,
        What::Machines,
        What::Programs,
        What::Metrics,
    ];
    whats.into_iter().flat_map(names_of).collect()
}

/// The names in a list that can be shown in full.
fn names_of(what: What) -> Vec<&'static str> {
    match what {
        What::Policies => spec::policy_names(),
        What::Machines => MACHINES.iter().map(|machine| machine.name).collect(),
        What::Programs => spec::program_names(),
        What::Metrics => METRICS.iter().map(|metric| metric.name).collect(),
        What::Events => Vec::new(),
    }
}

/// Refuses names that are not in the list.
fn check(names: &[String], known: &[&'static str]) -> Result<()> {
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    let Some(name) = unknown else { return Ok(()) };
    if known.is_empty() {
        return Err(usage(format!("`{name}`: this list is shown as a whole")));
    }
    let hint = did_you_mean(name, known);
    let known = known.join(", ");
    Err(usage(format!(
        "there is no `{name}` in this list{hint}; it has {known}"
    )))
}

pub fn run(args: ListArgs) -> Result<ExitCode> {
    check(&args.names, &names_of(args.what))?;
    let text = match args.what {
        What::Policies => policies(&args.names),
        What::Machines => simulated::machines(&args.names)?,
        What::Programs => simulated::programs(&args.names)?,
        What::Metrics => metrics(&args.names),
        What::Events => events()?,
    };
    print(text)
}

/// Whether an entry is listed, where these names were given.
fn is_wanted(name: &str, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

/// Columns of the names in a brief list.
const NAMES: usize = 14;

/// Adds an entry of a brief list: its name, and what it is in lines of the terminal's width.
fn brief_entry(brief: &mut String, name: &str, about: &str) {
    let width = width().saturating_sub(NAMES + 1);
    let mut name = name;
    for line in wrap(about, width) {
        let _ = writeln!(brief, "{name:<NAMES$} {line}");
        name = "";
    }
}

/// A few lines for each policy, or these policies in full.
fn policies(names: &[String]) -> String {
    let mut text = String::new();
    if names.is_empty() {
        brief_entry(&mut text, spec::AUTO, ABOUT_AUTO);
        brief_policies(&mut text, false);
        text.push_str("\nFor research:\n");
        brief_policies(&mut text, true);
        text.push_str(
            "\n`cosched list policies NAME` shows parameters, needs, the source and BibTeX\n",
        );
        return text;
    }
    if is_wanted(spec::AUTO, names) {
        let _ = writeln!(text, "{:<13} {ABOUT_AUTO}", spec::AUTO);
        AUTO.iter().for_each(|row| add_row(&mut text, row));
    }
    for entry in POLICIES {
        if is_wanted(entry.name, names) {
            add_policy(&mut text, entry);
        }
    }
    text
}

const ABOUT_AUTO: &str = "the best policy that this machine supports (the default)";

/// Adds a row of the choice of `auto`.
fn add_row(text: &mut String, row: &AutoRow) {
    let (name, condition) = (row.policy.name, row.condition());
    let (percent, unfairness) = (row.turnaround_percent, row.unfairness);
    let _ = writeln!(
        text,
        "{:<13} {name} with {condition}: {percent:+.1} % time against fifo, unfairness {unfairness:.2}",
        ""
    );
}

fn brief_policies(text: &mut String, for_research: bool) {
    for entry in POLICIES {
        if entry.for_research == for_research {
            brief_entry(text, entry.name, entry.gist);
        }
    }
}

/// How many jobs run under a policy that lets each run to its end.
const AT_ONCE: &str = "learns whether fewer jobs at once end sooner: with --jobs auto, and where `auto` chooses it for many \
                       jobs of one program on three CPUs or more";

fn add_policy(text: &mut String, entry: &PolicyEntry) {
    let _ = writeln!(text, "{:<13} {}", entry.name, entry.gist);
    let _ = writeln!(text, "{:<13} source: {}", "", entry.source);
    if !entry.time_shares {
        let _ = writeln!(text, "{:<13} {AT_ONCE}", "");
    }
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap_or_default();
    for need in (entry.needs)(&params) {
        let capability = need.capability.text();
        let need = match need.importance {
            Importance::Required => format!("needs {capability}"),
            Importance::Wanted(without) => format!("wants {capability}; without: {without}"),
        };
        let _ = writeln!(text, "{:<13} {need}", "");
    }
    for spec in entry.params {
        let default = match spec.kind {
            ParamKind::Number { default, .. } => default.to_string(),
            ParamKind::Choice(words) => words[0].to_owned(),
        };
        let _ = writeln!(text, "{:<13} --param {}={default}", "", spec.name);
        let _ = writeln!(text, "{:<13}     {}", "", spec.about);
    }
    text.push('\n');
    for paper in PAPERS {
        if paper.policies.contains(&entry.name) {
            let _ = writeln!(text, "{}", paper.bibtex());
        }
    }
}

fn metrics(names: &[String]) -> String {
    let mut text = String::new();
    for metric in METRICS {
        if !is_wanted(metric.name, names) {
            continue;
        }
        let better = format!("{:?}", metric.better).to_lowercase();
        let unit = format!("[{}; {better} is better]", metric.unit);
        let _ = writeln!(text, "{:<16} {} {unit}", metric.name, metric.meaning);
        let _ = writeln!(text, "{:<16} source: {}", "", metric.source);
    }
    text
}

fn events() -> Result<String> {
    let own = own_tables(&Root::default())?;
    let mut texts = Vec::new();
    for table in tables() {
        let is_own = own.iter().any(|own| own.name == table.name);
        texts.push(events_of(table, is_own));
    }
    Ok(texts.join("\n"))
}

fn events_of(table: &EventTable, is_own: bool) -> String {
    let here = if is_own { "  <- this machine" } else { "" };
    let mut text = format!("{}{here}\n  source: {}\n", table.title, table.source);
    for counter in Counter::BY_NEED {
        let shown = match table.event(counter) {
            Some(event) => format!("{:<28} {}", event.encoding.to_string(), event.name()),
            None => format!("- ({})", table.why_absent(counter)),
        };
        let _ = writeln!(text, "  {:<13} {shown}", counter.name());
    }
    text
}
