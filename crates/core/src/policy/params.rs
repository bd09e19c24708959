//! Named parameters of policies. Their defaults are the papers' constants; a machine profile or the user can change
//! them.

use crate::model::cross_core::CoreType;
use crate::model::power::PowerModel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within these limits, both included.
    Number {
        /// The default.
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

impl std::fmt::Display for ParamValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamValue::Number(number) => number.fmt(f),
            ParamValue::Word(word) => word.fmt(f),
        }
    }
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
                return Err(unknown(policy, specs, name));
            };
            values.insert(name.clone(), parse(policy, spec, text)?);
            for &(name, number) in set_along(name, text) {
                let number = ParamValue::Number(number);
                if specs.iter().any(|spec| spec.name == name) {
                    values.insert(name.to_owned(), number);
                }
            }
        }
        Ok(Params { values })
    }

    /// A number that the policy declares.
    ///
    /// # Panics
    /// If the policy does not declare it: a bug that the tests over the policy table find.
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
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }
}

fn unknown(policy: &'static str, specs: &[ParamSpec], name: &str) -> ParamError {
    let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    ParamError::Unknown {
        policy,
        name: name.to_owned(),
        known: known.join(", "),
    }
}

fn parse(
    policy: &'static str,
    spec: &'static ParamSpec,
    text: &str,
) -> Result<ParamValue, ParamError> {
    let expected = match spec.kind {
        ParamKind::Number { min, max, .. } => match text.parse::<f64>() {
            Ok(value) if value >= min && value <= max => return Ok(ParamValue::Number(value)),
            _ if min == f64::MIN && max == f64::MAX => "a number".to_owned(),
            _ if max == f64::MAX => format!("a number of at least {min}"),
            _ if min == f64::MIN => format!("a number of at most {max}"),
            _ => format!("a number from {min} to {max}"),
        },
        ParamKind::Choice(words) if words.contains(&text) => {
            return Ok(ParamValue::Word(text.to_owned()));
        }
        ParamKind::Choice(words) => words.join(" or "),
    };
    Err(ParamError::BadValue {
        policy,
        name: spec.name,
        value: shortened(text),
        expected,
    })
}

/// Shortens a long number, and leaves any other text as it is.
fn shortened(text: &str) -> String {
    const LONGEST_NUMBER: usize = 24;
    match text.parse::<f64>() {
        Ok(number) if text.len() > LONGEST_NUMBER => format!("{number:e}"),
        _ => text.to_owned(),
    }
}

/// A number from `min` to `max`.
pub(super) const fn number(
    name: &'static str,
    default: f64,
    min: f64,
    max: f64,
    about: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        kind: ParamKind::Number { default, min, max },
        about,
    }
}

/// One of these words; the first is the default.
pub(super) const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    about: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        kind: ParamKind::Choice(words),
        about,
    }
}

/// Whose limits hold. See [`set_along`].
pub(super) const AS: ParamSpec = choice(
    "as",
    &["cosched", "paper"],
    "`paper`: the limits of Perf&Fair, whatever the machine; other parameters given beside it still count",
);

/// What Perf&Fair states for every machine: quanta (section 6.1), validity of estimates (5), light jobs (3). It bounds
/// neither the time for estimates nor a lead.
const AS_PAPER: &[(&str, f64)] = &[
    ("quantum_s", 0.2),
    ("estimation_quantum_s", 0.1),
    ("valid_quanta", 40.0),
    ("light_llc_trans_per_us", 19.0),
    ("light_mm_trans_per_us", 3.5),
    ("estimation_share_max", 1.0),
    ("renewal_share_max", 1.0),
    ("lead_max_percent", 0.0),
];

/// The parameters that a setting sets along with its own, of those that the policy has: all in Perf&Fair for `as=paper`.
/// Later settings override them.
pub fn set_along(name: &str, value: &str) -> &'static [(&'static str, f64)] {
    match (name, value) {
        ("as", "paper") => AS_PAPER,
        _ => &[],
    }
}

/// The estimator of progress.
pub(super) const ESTIMATES: ParamSpec = choice(
    "estimates",
    &["paper", "learnt"],
    "whose progress counts: by the paper's own estimator, or by the learnt model",
);
/// The length of an ordinary quantum.
pub(super) const QUANTUM_S: ParamSpec = number(
    "quantum_s",
    0.2,
    0.001,
    3600.0,
    "length of a quantum in seconds; 0.2 as in Perf&Fair and the lucky paper",
);

pub(super) const MU: ParamSpec = number(
    "mu_trans_per_us",
    150.0,
    0.001,
    1e6,
    "transactions that the memory bus of one memory domain serves per microsecond; 150 on the EFS paper's machine; on \
     a real machine never assumed, but measured (`cosched calibrate`)",
);
pub(super) const P0: ParamSpec = number(
    "p0_w",
    26.6,
    0.0,
    1e6,
    "power of the system with no core active, in watts; 26.6 on the EFS paper's machine, assumed unless a profile or a machine file gives it",
);
pub(super) const P1: ParamSpec = number(
    "p1_w",
    22.6,
    0.001,
    1e6,
    "what the first active core of a memory domain adds, in watts; 22.6 on the EFS paper's machine, assumed unless a profile or a machine file gives it",
);
pub(super) const P2: ParamSpec = number(
    "p2_w",
    12.0,
    0.0,
    1e6,
    "what the second active core adds, in watts; 12 on the EFS paper's machine, assumed unless a profile or a machine file gives it",
);
pub(super) const P_MORE: ParamSpec = number(
    "p_more_w",
    12.3,
    0.0,
    1e6,
    "what each further active core adds, in watts; 12.3 on the EFS paper's machine, assumed unless a profile or a machine file gives it",
);

pub(super) const BIG_CAPACITY: ParamSpec = number(
    "big_capacity_mips",
    6_400.0,
    1.0,
    1e9,
    "performance of a big core at its best, in million instructions/s; 2 per cycle at the lucky paper's 3.2 GHz",
);
pub(super) const SMALL_CAPACITY: ParamSpec = number(
    "small_capacity_mips",
    1_600.0,
    1.0,
    1e9,
    "performance of a small core at its best, in million instructions/s; 2 per cycle at the lucky paper's 0.8 GHz",
);
pub(super) const BIG_BUSY: ParamSpec = number(
    "big_busy_w",
    18.9,
    0.001,
    1e6,
    "power of a busy big core in watts; 18.9 follows from the lucky paper",
);
pub(super) const BIG_IDLE: ParamSpec = number(
    "big_idle_w",
    3.0,
    0.0,
    1e6,
    "power of an idle big core in watts; assumed: the lucky paper does not state it",
);
pub(super) const SMALL_BUSY: ParamSpec = number(
    "small_busy_w",
    2.15,
    0.001,
    1e6,
    "power of a busy small core in watts; 2.15 in the lucky paper",
);
pub(super) const SMALL_IDLE: ParamSpec = number(
    "small_idle_w",
    0.7,
    0.0,
    1e6,
    "power of an idle small core in watts; 0.7 in the lucky paper",
);

/// The power of the machine by its active cores, from `p0_w` to `p_more_w`.
pub(super) fn power_model(params: &Params) -> PowerModel {
    let steps = ["p0_w", "p1_w", "p2_w", "p_more_w"].map(|name| params.number(name));
    // The limits of the parameters are within those of the model.
    PowerModel::new(steps).expect("power steps within their limits make a power model")
}

/// Capacity and power of a core of each of two types, the fast one first, from `big_capacity_mips` to `small_idle_w`.
/// An idle core needs no more power than a busy one.
pub(super) fn core_power(params: &Params) -> [CoreType; 2] {
    ["big", "small"].map(|kind| {
        let [capacity, busy, idle] = ["capacity_mips", "busy_w", "idle_w"]
            .map(|what| params.number(&format!("{kind}_{what}")));
        CoreType::new(capacity, busy, idle.min(busy))
            .expect("the ranges of the parameters are within those of the model")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::find_policy;

    #[test]
    fn as_paper_overrides_the_machine_and_yields_to_what_follows() {
        let settings = [
            ("light_mm_trans_per_us", "17"),
            ("quantum_s", "1"),
            ("as", "paper"),
            ("valid_quanta", "10"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for policy in ["fair", "perf-fair"] {
            let entry = find_policy(policy).unwrap();
            let params = Params::resolve(policy, entry.params, &settings).unwrap();
            assert_eq!(params.number("light_mm_trans_per_us"), 3.5);
            assert_eq!(params.number("light_llc_trans_per_us"), 19.0);
            assert_eq!(params.number("estimation_share_max"), 1.0);
            assert_eq!(params.number("renewal_share_max"), 1.0);
            assert_eq!(params.number("quantum_s"), 0.2);
            assert_eq!(params.number("valid_quanta"), 10.0);
            let undeclared = params
                .iter()
                .filter(|(name, _)| entry.params.iter().all(|spec| spec.name != *name));
            assert_eq!(undeclared.count(), 0, "{policy}");
        }
    }

    #[test]
    fn huge_numbers_are_told_in_short() {
        const SPECS: &[ParamSpec] = &[number("busy_w", 5.0, 0.0, 1e3, "")];
        let long = format!("1{}", "0".repeat(308));
        let told = |text: &str| {
            let setting = ("busy_w".to_owned(), text.to_owned());
            Params::resolve("p", SPECS, &[setting])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            told(&long),
            "parameter `busy_w` of policy `p` is `1e308`; expected a number from 0 to 1000"
        );
        assert_eq!(
            told("1000000"),
            "parameter `busy_w` of policy `p` is `1000000`; expected a number from 0 to 1000"
        );
    }
}
