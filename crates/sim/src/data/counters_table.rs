//! The table `[counters]` of a machine file: a flag for each counter, for the meters of memory traffic and for that of energy, and the noise of all.

use super::error::SpecError;
use super::text::{Flag, Group, Limits, Number, Sources, Words};
use crate::machine::CountersSpec;
use cosched_core::{Counter, PerCounter};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

const NOISE: Limits = Limits::new("noise", 0.0, 0.5, "0.01");

/// The table as it is written.
#[derive(Default)]
pub(super) struct Counters {
    source: Words,
    assumed: Words,
    /// Keyed by [`CountersSpec::key`].
    counts: BTreeMap<&'static str, bool>,
    traffic: Option<bool>,
    energy: Flag,
    noise: Number,
}

impl Counters {
    /// Checks the values and records their source. A counter that the file does not name does not count.
    pub(super) fn check(
        self,
        group: &Group<'_>,
        sources: &mut Sources,
    ) -> Result<CountersSpec, SpecError> {
        sources.add(group, self.source, self.assumed)?;
        let counts = |counter| {
            self.counts
                .get(CountersSpec::key(counter))
                .copied()
                .unwrap_or(false)
        };
        Ok(CountersSpec {
            counts: PerCounter::from_fn(counts),
            traffic: self.traffic.unwrap_or(false),
            energy: group.flag(self.energy, "energy")?,
            noise: group.number(self.noise, &NOISE)?,
        })
    }
}

/// A key of the table.
enum Key {
    Source,
    Assumed,
    Traffic,
    Energy,
    Noise,
    Counts(&'static str),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key of [counters]")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
                let flags = Counter::ALL.map(CountersSpec::key);
                match (name, flags.into_iter().find(|key| *key == name)) {
                    (_, Some(key)) => Ok(Key::Counts(key)),
                    ("source", None) => Ok(Key::Source),
                    ("assumed", None) => Ok(Key::Assumed),
                    ("traffic", None) => Ok(Key::Traffic),
                    ("energy", None) => Ok(Key::Energy),
                    ("noise", None) => Ok(Key::Noise),
                    _ => {
                        let mut keys = vec!["source", "assumed"];
                        keys.extend(flags);
                        keys.dedup();
                        keys.extend(["traffic", "energy", "noise"]);
                        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                        Err(E::custom(format!(
                            "unknown field `{name}`, expected one of {}",
                            keys.join(", ")
                        )))
                    }
                }
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counters, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Counters;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the table [counters]")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counters, A::Error> {
                let mut table = Counters::default();
                // TOML itself refuses a key that occurs twice.
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Source => table.source = Some(map.next_value()?),
                        Key::Assumed => table.assumed = Some(map.next_value()?),
                        Key::Traffic => table.traffic = Some(map.next_value()?),
                        Key::Energy => table.energy = Some(map.next_value()?),
                        Key::Noise => table.noise = Some(map.next_value()?),
                        Key::Counts(key) => {
                            table.counts.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(table)
            }
        }
        deserializer.deserialize_map(Table)
    }
}
