//! The choice of the policy: the one with the given name or the best that the machine supports, with its parameters.

use super::options::RunOptions;
use crate::exit::{incapable, usage};
use crate::input::near::unknown;
use crate::input::{spec, told};
use anyhow::Result;
use cosched_core::{
    Capabilities, Capability, Importance, POLICIES, ParamError, ParamKind, Params, PolicyEntry,
    Shortfall, auto_policy, find_policy,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The policy of a run.
pub(crate) struct Choice {
    pub(crate) entry: &'static PolicyEntry,
    pub(crate) params: Params,
    /// The origin of each parameter that does not have its default.
    pub(crate) origins: BTreeMap<String, Origin>,
    /// The content of the file of `--profile`.
    pub(crate) profile: Option<String>,
    /// The wanted capabilities that the machine lacks.
    pub(crate) shortfalls: Vec<Shortfall>,
}

/// Where a parameter's value comes from. A later variant overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// The simulated machine's file.
    Machine,
    /// The file of `--profile`.
    Profile,
    /// `--param`.
    Param,
}

impl Origin {
    /// The word for it in the run record.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Origin::Machine => "machine",
            Origin::Profile => "profile",
            Origin::Param => "param",
        }
    }

    /// The origin in words, for `--dry-run`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Origin::Machine => "the machine's",
            Origin::Profile => "from --profile",
            Origin::Param => "from --param",
        }
    }
}

/// Chooses the policy by its name, sets its parameters, and checks its needs against what the machine can do. `machine`
/// has the parameters that belong to the machine, including those of other policies; they have been checked. `crowd` says
/// that the user wants more jobs at once than there are CPUs.
pub(crate) fn choose(
    options: &RunOptions,
    capabilities: &Capabilities,
    machine: &[(String, String)],
    crowd: bool,
) -> Result<Choice> {
    let entry = match options.policy.name.as_deref() {
        None => auto_policy(capabilities, crowd),
        Some(name) => find_policy(name).ok_or_else(|| {
            let problem = unknown("policy", name, &spec::policy_names());
            usage(format!("--policy: {problem}, as in --policy fair"))
        })?,
    };
    let has = |(name, _): &&(String, String)| entry.params.iter().any(|spec| spec.name == *name);
    let mut settings: Vec<(String, String)> = machine.iter().filter(has).cloned().collect();
    let mut origins = vec![Origin::Machine; settings.len()];
    let content = options
        .policy
        .profile
        .as_deref()
        .map(crate::input::read_spec)
        .transpose()?;
    if let (Some(path), Some(text)) = (&options.policy.profile, &content) {
        settings.extend(profile(path, text, entry)?);
        origins.resize(settings.len(), Origin::Profile);
    }
    once_each(&options.policy.params)?;
    settings.extend(options.policy.params.iter().cloned());
    origins.resize(settings.len(), Origin::Param);
    let params = Params::resolve(entry.name, entry.params, &settings)
        .map_err(|error| refused(&error, entry))?;
    let origins = settings
        .into_iter()
        .map(|(name, _)| name)
        .zip(origins)
        .collect();
    let mut shortfalls = Vec::new();
    for shortfall in entry.shortfalls(&params, capabilities) {
        match shortfall.importance {
            Importance::Required => {
                let machine = options.machine.on.as_deref().unwrap_or("this machine");
                return Err(unmet(entry, &shortfall, machine));
            }
            Importance::Wanted(_) => shortfalls.push(shortfall),
        }
    }
    Ok(Choice {
        entry,
        params,
        origins,
        profile: content,
        shortfalls,
    })
}

/// Refuses a parameter that is given twice: nobody means the first value, and which one counts is a guess.
pub fn once_each(params: &[(String, String)]) -> Result<()> {
    for (ix, (name, value)) in params.iter().enumerate() {
        if let Some((_, first)) = params[..ix].iter().find(|(other, _)| other == name) {
            return Err(usage(format!(
                "--param: `{name}` is given twice, as {first} and as {value}; leave one of them out, as in --param \
                 {name}={value}"
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

/// The error that a policy can't run without something that a machine lacks.
pub fn unmet(entry: &PolicyEntry, shortfall: &Shortfall, machine: &str) -> anyhow::Error {
    let hint = match spec::machine_with_core_types() {
        Some(other) if shortfall.capability == Capability::CoreTypes => {
            format!("; simulate the jobs on one that has several, as in --on {other}")
        }
        _ => String::new(),
    };
    incapable(format!(
        "policy {} needs {}, and {machine} has none: {}{hint}; `cosched list policies` shows what each policy needs",
        entry.name,
        shortfall.capability.text(),
        shortfall.why
    ))
}

/// The settings in a machine profile for this policy. Settings for other policies are checked and left out.
fn profile(path: &Path, text: &str, entry: &PolicyEntry) -> Result<Vec<(String, String)>> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Profile {
        #[serde(default)]
        params: BTreeMap<String, toml::Spanned<toml::Value>>,
    }
    let file = told(path);
    let line =
        |span: std::ops::Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let example = "a profile looks like this: [params] with light_mm_trans_per_us = 3.5 below it";
    let parsed: Profile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, line);
        usage(format!(
            "{file}:{line}: {}; {example}",
            error.message().trim()
        ))
    })?;
    let mut settings = Vec::new();
    for (name, value) in parsed.params {
        let line = line(value.span());
        let text = match value.into_inner() {
            toml::Value::String(word) => word,
            other => other.to_string(),
        };
        let owner = POLICIES
            .iter()
            .find(|policy| policy.params.iter().any(|spec| spec.name == name));
        let Some(owner) = owner else {
            return Err(usage(format!(
                "{file}:{line}: no policy has a parameter `{name}`; {example}"
            )));
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
