//! The policy of a run: by its name or the best that the machine can feed, with its parameters.

use super::args::PolicyArgs;
use crate::exit::{incapable, usage};
use cosched_core::{Feeds, Importance, POLICIES, ParamKind, Params, PolicyEntry, auto_policy, find_policy};
use std::path::Path;

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
