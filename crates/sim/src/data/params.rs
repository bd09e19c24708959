//! The table `params` of a machine file: policies' parameters that depend on the machine.

use super::error::SpecError;
use super::text::{Group, Short, Sources, Words};
use cosched_core::{POLICIES, ParamError, ParamKind, ParamSpec, Params};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The keys: the parameters of all policies, `source` and `assumed`.
pub(super) type ParamTable = BTreeMap<String, Spanned<Value>>;

/// Shown in errors.
const EXAMPLE: &str = "mu_trans_per_us = 150";

/// Reads the table: each key must be a parameter of some policy, in the range of every policy that has it.
pub(super) fn read_params(
    group: &Group<'_>,
    mut table: ParamTable,
    sources: &mut Sources,
) -> Result<Vec<(String, String)>, SpecError> {
    let source = words(group, &mut table, "source")?;
    let assumed = words(group, &mut table, "assumed")?;
    sources.add(group, source, assumed)?;
    let spans: BTreeMap<String, std::ops::Range<usize>> = table
        .iter()
        .map(|(name, value)| (name.clone(), value.span()))
        .collect();
    let settings: Vec<(String, String)> = table
        .into_iter()
        .map(|(name, value)| read_param(group, name, value))
        .collect::<Result<_, _>>()?;
    check_bounds(group, &settings, &spans)?;
    Ok(settings)
}

/// Checks the parameters that may not exceed another one, where the file gives both.
fn check_bounds(
    group: &Group<'_>,
    settings: &[(String, String)],
    spans: &BTreeMap<String, std::ops::Range<usize>>,
) -> Result<(), SpecError> {
    for spec in POLICIES.iter().flat_map(|policy| policy.params) {
        let Some((bound, value, most)) = spec.at_most.and_then(|bound| {
            Some((
                bound,
                number(settings, spec.name)?,
                number(settings, bound)?,
            ))
        }) else {
            continue;
        };
        if value > most {
            let span = spans.get(spec.name).cloned().unwrap_or_default();
            let expected = format!("at most {bound}, {}", Short(most));
            return Err(group.wrong(
                span,
                spec.name,
                Short(value),
                expected,
                format!("{} = {}", spec.name, Short(most)),
            ));
        }
    }
    Ok(())
}

/// The number that the file gives for a parameter, if it does.
fn number(settings: &[(String, String)], name: &str) -> Option<f64> {
    let (_, text) = settings.iter().find(|(key, _)| key == name)?;
    text.parse().ok()
}

pub(super) fn words(
    group: &Group<'_>,
    table: &mut ParamTable,
    key: &str,
) -> Result<Words, SpecError> {
    let Some(value) = table.remove(key) else {
        return Ok(None);
    };
    let span = value.span();
    match value.into_inner() {
        Value::String(text) => Ok(Some(Spanned::new(span, text))),
        other => Err(group.wrong(span, key, other, "text", format!("{key} = \"measured\""))),
    }
}

fn read_param(
    group: &Group<'_>,
    name: String,
    value: Spanned<Value>,
) -> Result<(String, String), SpecError> {
    let span = value.span();
    let setting = match value.into_inner() {
        Value::String(word) => (name, word),
        other => (name, other.to_string()),
    };
    let mut known = false;
    for policy in POLICIES {
        let Some(spec) = policy.params.iter().find(|spec| spec.name == setting.0) else {
            continue;
        };
        known = true;
        match Params::check_setting(policy.name, policy.params, &setting) {
            // What the parameter is beside others is checked when all are read.
            Ok(()) | Err(ParamError::Above { .. }) => {}
            Err(ParamError::Unknown { .. }) => known = false,
            Err(ParamError::BadValue { value, .. }) => {
                let (expected, example) = range(spec);
                return Err(group.wrong(
                    span,
                    spec.name,
                    value,
                    expected,
                    format!("{} = {example}", spec.name),
                ));
            }
        }
    }
    if !known {
        let expected = "the name of one, as `cosched list policies` shows them";
        return Err(group.wrong(
            span,
            &setting.0,
            "not a parameter of any policy",
            expected,
            EXAMPLE,
        ));
    }
    Ok(setting)
}

/// The allowed values of a parameter, in words, and one of them.
fn range(spec: &ParamSpec) -> (String, String) {
    match spec.kind {
        ParamKind::Number { default, min, max } => (
            format!("{} to {}", Short(min), Short(max)),
            default.to_string(),
        ),
        ParamKind::Choice(words) => (words.join(" or "), format!("\"{}\"", words[0])),
    }
}
