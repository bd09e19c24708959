//! The choice of the policy: the one with the given name or the best that the machine supports, with its parameters.

use super::options::{Actuator, MachineOptions, RunOptions};
use super::replay;
use crate::exit::{incapable, usage};
use crate::input::spelling::unknown;
use crate::input::{read_spec, spec, told};
use anyhow::Result;
use cosched_core::{
    Actuation, Capabilities, Capability, Importance, JobKind, POLICIES, ParamError, ParamKind,
    Params, PolicyEntry, Shortfall, auto_lacks, auto_row, find_policy, set_along,
};
use cosched_foreign::{Command, PolicyPatience, describe};
use cosched_report::visible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use strum::IntoStaticStr;

/// The policy of a run.
pub(crate) struct PolicyChoice {
    pub(crate) entry: &'static PolicyEntry,
    pub(crate) params: Params,
    /// The origin of each parameter that does not have its default.
    pub(crate) origins: BTreeMap<String, ParamOrigin>,
    /// The content of the file of `--profile`.
    pub(crate) profile: Option<String>,
    /// The wanted capabilities that the machine lacks.
    pub(crate) shortfalls: Vec<Shortfall>,
    /// What the machine lacks for the first row of `auto`, if that chose.
    pub(crate) lacks: Option<String>,
}

/// Where a parameter's value comes from. A later variant overrides an earlier one.
#[derive(Clone, Copy, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ParamOrigin {
    /// The row of `auto`.
    Auto,
    /// The machine file: of a simulated machine, or of this one as `cosched calibrate` measured it.
    Machine,
    /// The file of `--profile`.
    Profile,
    /// `--param`.
    Param,
}

impl ParamOrigin {
    /// The origin in words, for `--dry-run`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            ParamOrigin::Auto => "by auto",
            ParamOrigin::Machine => "the machine's",
            ParamOrigin::Profile => "from --profile",
            ParamOrigin::Param => "from --param",
        }
    }
}

/// Values of parameters. A later one overrides an earlier one.
#[derive(Default)]
struct Settings {
    values: Vec<(String, String)>,
    origins: BTreeMap<String, ParamOrigin>,
}

impl Settings {
    fn set(&mut self, name: &str, value: &str, origin: ParamOrigin) {
        self.values.push((name.to_owned(), value.to_owned()));
        self.origins.insert(name.to_owned(), origin);
        for (name, _) in set_along(name, value) {
            self.origins.insert((*name).to_owned(), origin);
        }
    }
}

/// The parameter with the greatest rate of line transfers of a memory domain.
pub(crate) const BUS_RATE: &str = "mu_trans_per_us";

/// The settings with which a policy judges by that rate.
const BY_BUS_RATE: [(&str, &str); 3] = [
    ("demand", "measured"),
    ("memory", "shared"),
    ("consolidation", "on"),
];

impl PolicyChoice {
    /// Whether the policy freezes jobs.
    pub(crate) fn freezes(&self) -> bool {
        let needs = (self.entry.needs)(&self.params);
        needs
            .iter()
            .any(|need| need.capability == Capability::Freeze)
    }

    /// Whether the policy would judge by the rate of another machine's memory, its default.
    pub(crate) fn lacks_bus_rate(&self) -> bool {
        let is_set = |(name, word)| has_param(self.entry, name) && self.params.word(name) == word;
        BY_BUS_RATE.into_iter().any(is_set) && !self.origins.contains_key(BUS_RATE)
    }
}

fn has_param(entry: &PolicyEntry, name: &str) -> bool {
    entry.params.iter().any(|spec| spec.name == name)
}

/// The policy that the user names; `None` if it is to be chosen.
///
/// # Errors
/// There is none, as [`policy_by_word`] says.
pub(crate) fn named_policy(options: &RunOptions) -> Result<Option<&'static PolicyEntry>> {
    let Some(word) = options.policy.name.as_deref() else {
        return Ok(None);
    };
    let patience = match options.machine.on {
        Some(_) => PolicyPatience::Simulated,
        None => PolicyPatience::Limited,
    };
    let found = policy_by_word(word, patience);
    found
        .map(Some)
        .map_err(|problem| usage(format!("--policy: {problem}")))
}

/// The policies of commands and files that were named so far. A user names few, and each lives as long as this process.
static NAMED: Mutex<Vec<(String, PolicyPatience, &PolicyEntry)>> = Mutex::new(Vec::new());

/// The policy that a word of `--policy` means: a name, `cmd:` and a command, or `events:` and a file. A command is started, and a
/// file read, at the first call.
///
/// # Errors
/// There is none of this name; the command is no policy; the file has no events.
pub fn policy_by_word(
    word: &str,
    patience: PolicyPatience,
) -> Result<&'static PolicyEntry, String> {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = named.iter();
    if let Some((_, _, entry)) = known.find(|(one, how, _)| one == word && *how == patience) {
        return Ok(entry);
    }
    let entry = if let Some(command) = Command::of(word) {
        describe(&command, patience).map_err(|error| error.to_string())?
    } else if let Some(file) = replay::file_of(word) {
        replay::policy(file).map_err(|error| error.to_string())?
    } else {
        return policy_of_table(word);
    };
    named.push((word.to_owned(), patience, entry));
    Ok(entry)
}

fn policy_of_table(word: &str) -> Result<&'static PolicyEntry, String> {
    find_policy(word).ok_or_else(|| {
        if word.contains(['/', '.', ' ']) {
            return format!(
                "`{}` is no name; for a command write --policy \"{}{}\"",
                visible(word),
                Command::MARK,
                visible(word)
            );
        }
        let problem = unknown("policy", word, &spec::policy_names());
        format!("{problem}, as in `fair`")
    })
}

/// Chooses the policy by its name, sets its parameters, and checks its needs against what the machine can do. `machine`
/// has the parameters that belong to the machine, including those of other policies; they have been checked. `jobs` says
/// what is known of the jobs, `has_nodes` that the machine consists of several nodes.
pub(crate) fn choose(
    options: &RunOptions,
    capabilities: &Capabilities,
    machine: &[(String, String)],
    jobs: JobKind,
    has_nodes: bool,
) -> Result<PolicyChoice> {
    let mut auto = None;
    let entry = match named_policy(options)? {
        Some(entry) => entry,
        None if has_nodes => POLICIES
            .iter()
            .find(|entry| entry.for_nodes)
            .unwrap_or(&POLICIES[0]),
        None => auto.insert(auto_row(capabilities, jobs)).policy,
    };
    if has_nodes && !entry.for_nodes {
        return Err(usage(format!(
            "--policy {}: it decides on one machine, not on several nodes; use --policy place",
            entry.name
        )));
    }
    let given = &options.policy;
    let mut settings = Settings::default();
    for (name, value) in auto.map_or(&[][..], |row| row.params) {
        settings.set(name, value, ParamOrigin::Auto);
    }
    for (name, value) in machine {
        if has_param(entry, name) {
            settings.set(name, value, ParamOrigin::Machine);
        }
    }
    let mut content = None;
    if let Some(path) = &given.profile {
        let text = read_spec(path)?;
        for (name, value) in profile(path, &text, entry)? {
            settings.set(&name, &value, ParamOrigin::Profile);
        }
        content = Some(text);
    }
    once_each(&given.params)?;
    let mut by_rank: Vec<&(String, String)> = given.params.iter().collect();
    // What is given beside a setting overrides what that sets along.
    by_rank.sort_by_key(|(name, value)| set_along(name, value).is_empty());
    for (name, value) in by_rank {
        settings.set(name, value, ParamOrigin::Param);
    }
    let Settings {
        values,
        mut origins,
    } = settings;
    origins.retain(|name, _| has_param(entry, name));
    let params = Params::resolve(entry.name, entry.params, &values)
        .map_err(|error| refused(&error, entry))?;
    check_planned(&options.machine, entry, &params)?;
    let mut shortfalls = Vec::new();
    for shortfall in entry.shortfalls(&params, capabilities) {
        match shortfall.importance {
            Importance::Required => {
                let machine = options.machine.on.as_deref().unwrap_or("this machine");
                return Err(unmet(entry, &shortfall, machine));
            }
            // `auto` has counted that in.
            Importance::Wanted(_) if auto.is_some() => {}
            Importance::Wanted(_) => shortfalls.push(shortfall),
        }
    }
    Ok(PolicyChoice {
        entry,
        params,
        origins,
        profile: content,
        shortfalls,
        lacks: auto.and_then(|row| auto_lacks(row, capabilities)),
    })
}

/// Refuses a parameter that is given twice: nobody means the first value, and which one counts is a guess.
pub fn once_each(params: &[(String, String)]) -> Result<()> {
    for (ix, (name, value)) in params.iter().enumerate() {
        if let Some((_, first)) = params[..ix].iter().find(|(other, _)| other == name) {
            return Err(usage(format!(
                "--param: `{name}` is given twice, as {first} and as {value}; leave one of them out"
            )));
        }
    }
    Ok(())
}

/// The error about a parameter of `--param`, with a value that would be right. The other values have been checked.
fn refused(error: &ParamError, entry: &PolicyEntry) -> anyhow::Error {
    let spec = match error {
        ParamError::Unknown { .. } => entry.params.first(),
        ParamError::BadValue { name, .. } => entry.params.iter().find(|spec| spec.name == *name),
    };
    let example = spec.map_or_else(String::new, |spec| {
        let default = match spec.kind {
            ParamKind::Number { default, .. } => default.to_string(),
            ParamKind::Choice(words) => words[0].to_owned(),
        };
        format!(", as in --param {}={default}", spec.name)
    });
    usage(format!("--param: {error}{example}"))
}

/// The settings of a policy that plans do not carry out: a plan fills a CPU by the use of the memory bus alone.
const NOT_PLANNED: [&str; 2] = ["disk", "net"];

/// Refuses settings that plans would ignore.
fn check_planned(machine: &MachineOptions, entry: &PolicyEntry, params: &Params) -> Result<()> {
    let instead = match (machine.actuator, machine.actuation) {
        (Actuator::Freezer, Actuation::Decisions) => return Ok(()),
        (Actuator::Freezer, Actuation::Plans) => "--actuation decisions",
        (Actuator::SchedExt | Actuator::SchedExtAll, _) => "--actuator freezer",
    };
    for name in NOT_PLANNED {
        if has_param(entry, name) && params.word(name) == "on" {
            return Err(usage(format!(
                "--param: {name}=on has no effect on plans; leave it out, or use {instead}"
            )));
        }
    }
    Ok(())
}

/// The error that a policy can't run without something that a machine lacks.
pub fn unmet(entry: &PolicyEntry, shortfall: &Shortfall, machine: &str) -> anyhow::Error {
    let policy = entry.name;
    let need = shortfall.capability.text();
    let why = &shortfall.why;
    incapable(format!(
        "policy {policy} needs {need}, and {machine} has none: {why}; see `cosched list policies`"
    ))
}

/// The settings in a machine profile for this policy. Settings for other policies are checked and left out.
fn profile(path: &Path, text: &str, entry: &PolicyEntry) -> Result<Vec<(String, String)>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Profile {
        #[serde(default)]
        params: BTreeMap<String, toml::Spanned<toml::Value>>,
    }
    let file = told(path);
    let parsed: Profile = toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span());
        let problem = error.message().trim();
        usage(format!("{file}:{line}: {problem}; {PROFILE_EXAMPLE}"))
    })?;
    let mut settings = Vec::new();
    for (name, value) in parsed.params {
        let line = line_of(text, Some(value.span()));
        let value = match value.into_inner() {
            toml::Value::String(word) => word,
            other => other.to_string(),
        };
        let Some(owner) = POLICIES.iter().find(|policy| has_param(policy, &name)) else {
            return Err(usage(format!(
                "{file}:{line}: no policy has a parameter `{name}`; {PROFILE_EXAMPLE}"
            )));
        };
        let setting = (name, value);
        Params::resolve(owner.name, owner.params, std::slice::from_ref(&setting))
            .map_err(|error| usage(format!("{file}:{line}: {error}")))?;
        if has_param(entry, &setting.0) {
            settings.push(setting);
        }
    }
    Ok(settings)
}

const PROFILE_EXAMPLE: &str =
    "a profile looks like this: [params] with light_mm_trans_per_us = 3.5 below it";

/// The line of a text on which a span begins.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text[..start].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(name: &str, params: &[(&str, &str)]) -> PolicyChoice {
        let entry = find_policy(name).unwrap();
        let mut settings = Settings::default();
        for (name, value) in params {
            settings.set(name, value, ParamOrigin::Machine);
        }
        let Settings { values, origins } = settings;
        PolicyChoice {
            entry,
            params: Params::resolve(entry.name, entry.params, &values).unwrap(),
            origins,
            profile: None,
            shortfalls: Vec::new(),
            lacks: None,
        }
    }

    #[test]
    fn no_policy_judges_by_the_memory_of_another_machine() {
        assert!(choice("efs", &[]).lacks_bus_rate());
        assert!(choice("efs", &[("p0_w", "20")]).lacks_bus_rate());
        assert!(!choice("efs", &[(BUS_RATE, "300")]).lacks_bus_rate());
        // Given demands are shares of the bus already.
        assert!(!choice("efs", &[("demand", "given")]).lacks_bus_rate());
        assert!(!choice("even", &[]).lacks_bus_rate());
        assert!(!choice("lucky", &[]).lacks_bus_rate());
        for extension in [("memory", "shared"), ("consolidation", "on")] {
            assert!(choice("lucky", &[extension]).lacks_bus_rate());
        }
    }
}
