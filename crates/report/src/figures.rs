//! Values that may be absent, in JSON: null, with the reason beside it under the same name and `_absent`.

use cosched_core::Reading;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The suffix of a reason's name.
const SUFFIX: &str = "_absent";

/// The reasons of absence in one JSON object, by the name of the value that is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Absences {
    reasons: BTreeMap<String, String>,
}

impl Absences {
    /// Returns the value. If it is absent, returns `None` and notes the reason under the name.
    pub fn note<T>(&mut self, name: &str, reading: Reading<T>) -> Option<T> {
        if let Some(why) = reading.absence() {
            self.lack(name, why.text());
        }
        reading.value()
    }

    /// The same for an option, with the reason in words.
    pub fn note_option<T>(&mut self, name: &str, value: Option<T>, why: &str) -> Option<T> {
        if value.is_none() {
            self.lack(name, why);
        }
        value
    }

    /// The same for a result, whose error is the reason in words.
    pub(crate) fn note_result<T>(&mut self, name: &str, value: Result<T, &str>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(why) => self.note_option(name, None, why),
        }
    }

    /// Notes the reason of a value that is absent.
    pub fn lack(&mut self, name: &str, why: &str) {
        self.reasons.insert(name.to_owned(), why.to_owned());
    }

    /// Forgets a reason, since there is a value now.
    pub(crate) fn forget(&mut self, name: &str) {
        self.reasons.remove(name);
    }

    /// Why the value of that name is absent.
    pub fn why(&self, name: &str) -> Option<&str> {
        self.reasons.get(name).map(String::as_str)
    }

    /// All names with their reasons.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let reasons = self.reasons.iter();
        reasons.map(|(name, why)| (&**name, &**why))
    }
}

impl Serialize for Absences {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reasons = self.reasons.iter();
        serializer.collect_map(reasons.map(|(name, why)| (format!("{name}{SUFFIX}"), why)))
    }
}

impl<'de> Deserialize<'de> for Absences {
    /// Takes the keys that end in `_absent` and ignores others: a later version may have more keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Absences, D::Error> {
        let mut absences = Absences::default();
        for (key, why) in BTreeMap::<String, Value>::deserialize(deserializer)? {
            if let (Some(name), Value::String(why)) = (key.strip_suffix(SUFFIX), why) {
                absences.reasons.insert(name.to_owned(), why);
            }
        }
        Ok(absences)
    }
}

/// An object of named values in a fixed order, each a value or null with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures<T> {
    entries: Vec<(String, Result<T, String>)>,
}

impl<T> Default for Figures<T> {
    fn default() -> Figures<T> {
        Figures {
            entries: Vec::new(),
        }
    }
}

impl<T> Figures<T> {
    /// An object of these readings, in their order.
    pub fn of<'a>(readings: impl IntoIterator<Item = (&'a str, Reading<T>)>) -> Figures<T> {
        let mut figures = Figures::default();
        for (name, reading) in readings {
            figures.push_reading(name, reading);
        }
        figures
    }

    /// Adds a value, or the reason why there is none, under a name that the object has not yet.
    pub fn push(&mut self, name: &str, value: Result<T, &str>) {
        self.entries
            .push((name.to_owned(), value.map_err(str::to_owned)));
    }

    /// Takes away the value of that name, for this reason. Where there is none, its own reason stays.
    pub(crate) fn lose(&mut self, name: &str, why: &str) {
        for (other, value) in &mut self.entries {
            if other == name && value.is_ok() {
                *value = Err(why.to_owned());
            }
        }
    }

    /// Adds a reading in the same way.
    pub(crate) fn push_reading(&mut self, name: &str, reading: Reading<T>) {
        match reading {
            Reading::Value(value) => self.push(name, Ok(value)),
            Reading::Absent(why) => self.push(name, Err(why.text())),
        }
    }

    /// The value or the reason under that name; `None` where there is no such name.
    pub fn entry(&self, name: &str) -> Option<Result<&T, &str>> {
        let mut entries = self.iter();
        entries
            .find(|(other, _)| *other == name)
            .map(|entry| entry.1)
    }

    /// The value of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entry(name)?.ok()
    }

    /// Why the value of that name is absent.
    pub fn why(&self, name: &str) -> Option<&str> {
        self.entry(name)?.err()
    }

    /// All names with their values or reasons.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<&T, &str>)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref().map_err(String::as_str)))
    }
}

impl<T: Serialize> Serialize for Figures<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.entries {
            match value {
                Ok(value) => map.serialize_entry(name, value)?,
                Err(why) => {
                    map.serialize_entry(name, &None::<T>)?;
                    map.serialize_entry(&format!("{name}{SUFFIX}"), why)?;
                }
            }
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Figures<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Figures<T>, D::Error> {
        struct Named<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Named<T> {
            type Value = Figures<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers, null where absent")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Figures<T>, A::Error> {
                let mut entries: Vec<(String, Result<T, String>)> = Vec::new();
                let mut reasons = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.strip_suffix(SUFFIX) {
                        Some(name) => {
                            reasons.insert(name.to_owned(), map.next_value::<String>()?);
                        }
                        None => {
                            let value: Option<T> = map.next_value()?;
                            entries.push((key, value.ok_or_else(|| "no reason given".to_owned())));
                        }
                    }
                }
                for (name, value) in &mut entries {
                    if let (Err(why), Some(reason)) = (value, reasons.remove(name)) {
                        *why = reason;
                    }
                }
                Ok(Figures { entries })
            }
        }
        deserializer.deserialize_map(Named(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Absence;

    #[test]
    fn absent_is_null_with_the_reason_beside_it() {
        let figures = Figures::of([
            ("stp", Reading::Value(1.5)),
            ("antt", Reading::Absent(Absence::NoSoloTime)),
            ("jain", Reading::Value(1.0)),
        ]);
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(
            text,
            r#"{"stp":1.5,"antt":null,"antt_absent":"no solo time (use --solo)","jain":1.0}"#
        );
        assert_eq!(
            serde_json::from_str::<Figures<f64>>(&text).unwrap(),
            figures
        );
        assert_eq!(
            (figures.get("stp"), figures.get("antt")),
            (Some(&1.5), None)
        );
        assert_eq!(figures.why("antt"), Some("no solo time (use --solo)"));
        assert!(figures.entry("edp").is_none());
    }
}
