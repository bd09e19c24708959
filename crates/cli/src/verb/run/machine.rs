//! The machine that a run finds, and the policy that suits it.

use super::args::{FreezeArg, PolicyArgs};
use crate::exit::{incapable, usage};
use anyhow::Context as _;
use cosched_core::{Feeds, Importance, Machine, POLICIES, ParamKind, Params, PolicyEntry, auto_policy, find_policy};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::emulate::SmallCores;
use cosched_linux::events::{EventOverride, MachineEvents};
use cosched_linux::root::Root;
use cosched_linux::topology::{self, Topology};
use cosched_linux::{Freezing, GroupError};
use std::path::Path;

/// All that is known of this machine before a run.
pub(crate) struct MachineView {
    pub(crate) topology: Topology,
    pub(crate) counters: CounterSupport,
    pub(crate) feeds: Feeds,
    /// Why the cgroup freezer can't be used.
    pub(crate) freezer_problem: Option<GroupError>,
    pub(crate) freezing: Freezing,
    /// Small cores that are emulated.
    pub(crate) small: Option<SmallCores>,
}

/// Looks at the machine.
pub(crate) fn look(root: &Root, args: &PolicyArgs) -> anyhow::Result<MachineView> {
    let affinity = cosched_linux::affinity(0).context("reading the CPUs that this process may use")?;
    let topology = topology::read(root, &affinity, args.cpus.as_ref()).map_err(|error| match args.cpus {
        Some(_) => usage(format!(
            "--cpus: {error}; {affinity} can be used, as in --cpus {}",
            affinity.first().map_or(0, |cpu| cpu.0)
        )),
        None => anyhow::Error::new(error),
    })?;
    let overrides: Vec<EventOverride> = args
        .events
        .iter()
        .map(|text| text.parse::<EventOverride>().map_err(|error| usage(format!("--event {text}: {error}"))))
        .collect::<Result<_, _>>()?;
    let events = MachineEvents::detect(root, &overrides).map_err(|error| usage(format!("--event: {error}")))?;
    let counters = probe(root, &events)?;
    let freezer_problem = cosched_linux::freezer_problem(root);
    let freezing = match (args.freeze, &freezer_problem) {
        (FreezeArg::Signals, _) | (FreezeArg::Auto, Some(_)) => Freezing::Signals,
        (FreezeArg::Auto | FreezeArg::Cgroup, None) => Freezing::Cgroup,
        (FreezeArg::Cgroup, Some(why)) => {
            return Err(incapable(format!("--freeze cgroup: {why}; --freeze signals works everywhere")));
        }
    };
    let mut topology = topology;
    if let Some(small) = &args.emulate_small {
        topology.machine = emulated(small, &topology.machine, freezing, freezer_problem.as_ref())?;
    }
    let feeds = cosched_linux::feeds(root, &topology.machine, &counters, freezing);
    let small = args.emulate_small.clone();
    Ok(MachineView { topology, counters, feeds, freezer_problem, freezing, small })
}

/// The machine with small cores that are emulated.
fn emulated(
    small: &SmallCores,
    machine: &Machine,
    freezing: Freezing,
    freezer_problem: Option<&GroupError>,
) -> anyhow::Result<Machine> {
    if freezing != Freezing::Cgroup {
        let why = freezer_problem.map_or_else(|| "--freeze signals was given".to_owned(), ToString::to_string);
        return Err(incapable(format!("--emulate-small needs the cgroup freezer: {why}")));
    }
    small.on(machine).map_err(|error| usage(format!("--emulate-small: {error}, as in --emulate-small 1:0.25")))
}

/// Refuses a policy that lets the kernel choose the CPU, so that nobody would know when a job is on an emulated core.
pub(crate) fn check_emulation(view: &MachineView, choice: &Choice) -> anyhow::Result<()> {
    if view.small.is_some() && choice.entry.name == "linux" {
        return Err(usage(
            "--emulate-small: under policy linux nobody knows which jobs are on these CPUs; use another, as in --policy \
             big-fair",
        ));
    }
    Ok(())
}

/// The policy of a run.
pub(crate) struct Choice {
    pub(crate) entry: &'static PolicyEntry,
    pub(crate) params: Params,
    /// What it does without, in words.
    pub(crate) shortfalls: Vec<String>,
}

/// Chooses the policy by its name, sets its parameters, and holds its needs against what the machine feeds.
pub(crate) fn choose(args: &PolicyArgs, feeds: &Feeds) -> anyhow::Result<Choice> {
    let entry = match args.policy.as_str() {
        "auto" => auto_policy(feeds),
        name => find_policy(name).ok_or_else(|| {
            let known: Vec<&str> = POLICIES.iter().map(|entry| entry.name).collect();
            usage(format!(
                "--policy: there is no policy `{name}`; there are auto, {}, as in --policy fair",
                known.join(", ")
            ))
        })?,
    };
    let mut settings = match &args.profile {
        Some(path) => profile(path, entry)?,
        None => Vec::new(),
    };
    settings.extend(args.params.iter().cloned());
    let params = Params::resolve(entry.name, entry.params, &settings).map_err(|error| {
        let example = entry.params.first().map_or_else(String::new, |spec| {
            let value = match spec.kind {
                ParamKind::Number { default, .. } => default.to_string(),
                ParamKind::Choice(words) => words[0].to_owned(),
            };
            format!(", as in --param {}={value}", spec.name)
        });
        usage(format!("--param: {error}{example}"))
    })?;
    let mut shortfalls = Vec::new();
    for shortfall in entry.shortfalls(&params, feeds) {
        match shortfall.importance {
            Importance::Required => {
                return Err(incapable(format!(
                    "policy {} needs {}, and there is none: {}; `cosched list policies` shows what each policy needs",
                    entry.name,
                    shortfall.feed.text(),
                    shortfall.why
                )));
            }
            Importance::Wanted(without) => {
                shortfalls.push(format!("{}: {} ({})", shortfall.feed.text(), without, shortfall.why));
            }
        }
    }
    Ok(Choice { entry, params, shortfalls })
}

/// The settings of a machine profile that this policy has; those of other policies are checked and left out.
fn profile(path: &Path, entry: &PolicyEntry) -> anyhow::Result<Vec<(String, String)>> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Profile {
        #[serde(default)]
        params: std::collections::BTreeMap<String, toml::Spanned<toml::Value>>,
    }
    let file = path.display();
    let text = crate::input::read_text(path)?;
    let line = |span: std::ops::Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let example = "a profile looks like this: [params] with light_mm_trans_per_us = 3.5 below it";
    let parsed: Profile = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, line);
        usage(format!("{file}:{line}: {}; {example}", error.message().trim()))
    })?;
    let mut settings = Vec::new();
    for (name, value) in parsed.params {
        let line = line(value.span());
        let text = match value.into_inner() {
            toml::Value::String(word) => word,
            other => other.to_string(),
        };
        let owner = POLICIES.iter().find(|policy| policy.params.iter().any(|spec| spec.name == name));
        let Some(owner) = owner else {
            return Err(usage(format!("{file}:{line}: no policy has a parameter `{name}`; {example}")));
        };
        let setting = (name.clone(), text);
        Params::resolve(owner.name, owner.params, std::slice::from_ref(&setting))
            .map_err(|error| usage(format!("{file}:{line}: {error}")))?;
        if entry.params.iter().any(|spec| spec.name == name) {
            settings.push(setting);
        }
    }
    Ok(settings)
}
