//! Named parameters of policies. Their defaults are the papers' constants; a machine profile or the user can change
//! them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within these limits, both included.
    Number {
        /// Value when none is given.
        default: f64,
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
}

/// One parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamSpec {
    /// Its name; it ends with the unit, if there is one.
    pub name: &'static str,
    /// Its allowed values and its default.
    pub kind: ParamKind,
    /// What it does, and where its default comes from.
    pub about: &'static str,
}

/// The values of all parameters of one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params {
    values: BTreeMap<String, ParamValue>,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// A parameter that can't be set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// The policy has no such parameter.
    #[error("policy `{policy}` has no parameter `{name}`; it has {known}")]
    Unknown {
        /// The policy's name.
        policy: &'static str,
        /// The name that was given.
        name: String,
        /// The names of the policy's parameters, in one line.
        known: String,
    },
    /// The parameter may not have this value.
    #[error("parameter `{name}` of policy `{policy}` is `{value}`; expected {expected}")]
    BadValue {
        /// The policy's name.
        policy: &'static str,
        /// The parameter's name.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The allowed values, in words.
        expected: String,
    },
}

impl Params {
    /// The defaults of `specs`, changed by `settings` in their order.
    ///
    /// # Errors
    /// An unknown name, or a value outside its range.
    pub fn resolve(
        policy: &'static str,
        specs: &'static [ParamSpec],
        settings: &[(String, String)],
    ) -> Result<Params, ParamError> {
        let mut values = BTreeMap::new();
        for spec in specs {
            let value = match spec.kind {
                ParamKind::Number { default, .. } => ParamValue::Number(default),
                ParamKind::Choice(words) => ParamValue::Word(words[0].to_owned()),
            };
            values.insert(spec.name.to_owned(), value);
        }
        for (name, text) in settings {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(ParamError::Unknown { policy, name: name.clone(), known });
            };
            values.insert(name.clone(), parse(policy, spec, text)?);
        }
        Ok(Params { values })
    }

    /// A number that the policy declares.
    ///
    /// # Panics
    /// When the policy does not declare it: a mistake in its code, which the tests over the policy table find.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(ParamValue::Number(value)) => *value,
            _ => panic!("the policy does not declare the number `{name}`"),
        }
    }

    /// A word that the policy declares.
    ///
    /// # Panics
    /// As [`Params::number`].
    pub fn word(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(ParamValue::Word(word)) => word,
            _ => panic!("the policy does not declare the word `{name}`"),
        }
    }

    /// All values, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }
}

fn parse(policy: &'static str, spec: &'static ParamSpec, text: &str) -> Result<ParamValue, ParamError> {
    let bad = |expected: String| ParamError::BadValue { policy, name: spec.name, value: text.to_owned(), expected };
    match spec.kind {
        ParamKind::Number { min, max, .. } => match text.parse::<f64>() {
            Ok(value) if value >= min && value <= max => Ok(ParamValue::Number(value)),
            _ => Err(bad(format!("a number from {min} to {max}"))),
        },
        ParamKind::Choice(words) if words.contains(&text) => Ok(ParamValue::Word(text.to_owned())),
        ParamKind::Choice(words) => Err(bad(words.join(" or "))),
    }
}

/// A number from `min` to `max`.
pub(super) const fn number(name: &'static str, default: f64, min: f64, max: f64, about: &'static str) -> ParamSpec {
    ParamSpec { name, kind: ParamKind::Number { default, min, max }, about }
}

/// The length of an ordinary quantum.
pub(super) const QUANTUM_S: ParamSpec =
    number("quantum_s", 0.2, 0.001, 3600.0, "length of a quantum in seconds; 0.2 as in Perf&Fair and the lucky paper");
