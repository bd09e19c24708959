//! The schemas of `docs/schema/`, and a validator of the part of JSON Schema that they use.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Keywords that hold no rule.
const ANNOTATIONS: [&str; 4] = ["$schema", "$defs", "title", "description"];

/// Keywords that the validator knows.
const RULES: [&str; 14] = [
    "$ref",
    "type",
    "const",
    "enum",
    "oneOf",
    "anyOf",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "prefixItems",
    "minItems",
    "items",
];

/// All schemas, by the names of their files.
pub(crate) struct Schemas(BTreeMap<String, Value>);

/// `docs/schema/`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

impl Schemas {
    pub(crate) fn read() -> Schemas {
        let mut schemas = BTreeMap::new();
        for entry in std::fs::read_dir(folder()).expect("docs/schema") {
            let path = entry.expect("an entry").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let name = path.file_name().expect("a name").to_string_lossy();
                let text = std::fs::read_to_string(&path).expect("a schema");
                let schema =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
                schemas.insert(name.into_owned(), schema);
            }
        }
        Schemas(schemas)
    }

    pub(crate) fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Names of all properties and of all columns of lines, with the schemas that they are in.
    pub(crate) fn properties(&self) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for (name, schema) in &self.0 {
            collect_properties(name, schema, &mut found);
        }
        found
    }

    /// Asserts that a value obeys the schema in the file `name`.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, value: &Value) {
        let place = Place {
            schemas: self,
            document: name,
        };
        if let Err(error) = place.validate(self.get(name), value, "") {
            panic!("docs/schema/{name}: {error}\n{value}");
        }
    }
}

fn collect_properties(name: &str, schema: &Value, found: &mut BTreeSet<(String, String)>) {
    if let Some(properties) = schema["properties"].as_object() {
        found.extend(properties.keys().map(|key| (name.to_owned(), key.clone())));
    }
    for item in schema["prefixItems"].as_array().into_iter().flatten() {
        found.extend(
            item["title"]
                .as_str()
                .map(|title| (name.to_owned(), title.to_owned())),
        );
    }
    match schema {
        Value::Object(map) => map
            .values()
            .for_each(|inner| collect_properties(name, inner, found)),
        Value::Array(list) => list
            .iter()
            .for_each(|inner| collect_properties(name, inner, found)),
        _ => {}
    }
}

/// A schema document in which references without a file are looked up.
#[derive(Clone, Copy)]
struct Place<'a> {
    schemas: &'a Schemas,
    document: &'a str,
}

impl<'a> Place<'a> {
    fn validate(self, schema: &'a Value, value: &Value, path: &str) -> Result<(), String> {
        let rules = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return Err(format!("{path}: not allowed")),
            rules => rules.as_object().expect("a schema is an object"),
        };
        for keyword in rules.keys() {
            assert!(
                RULES.contains(&keyword.as_str()) || ANNOTATIONS.contains(&keyword.as_str()),
                "{}: the validator lacks {keyword}",
                self.document
            );
        }
        self.follow(rules, value, path)?;
        check_type(rules, value, path)?;
        check_constants(rules, value, path)?;
        self.check_alternatives(rules, value, path)?;
        match value {
            Value::Object(map) => self.check_object(rules, map, path),
            Value::Array(list) => self.check_list(rules, list, path),
            _ => Ok(()),
        }
    }

    fn follow(
        self,
        rules: &'a Map<String, Value>,
        value: &Value,
        path: &str,
    ) -> Result<(), String> {
        match self.target(rules) {
            Some((place, target)) => place.validate(target, value, path),
            None => Ok(()),
        }
    }

    /// What a schema refers to.
    fn target(self, rules: &'a Map<String, Value>) -> Option<(Place<'a>, &'a Value)> {
        let reference = rules.get("$ref").and_then(Value::as_str)?;
        let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if file.is_empty() { self.document } else { file };
        let target = self.schemas.get(document).pointer(pointer);
        let target =
            target.unwrap_or_else(|| panic!("{}: {reference} leads nowhere", self.document));
        Some((Place { document, ..self }, target))
    }

    fn check_alternatives(
        self,
        rules: &'a Map<String, Value>,
        value: &Value,
        path: &str,
    ) -> Result<(), String> {
        for keyword in ["oneOf", "anyOf"] {
            let Some(alternatives) = rules.get(keyword).and_then(Value::as_array) else {
                continue;
            };
            let results = alternatives
                .iter()
                .map(|schema| self.validate(schema, value, path));
            let (fits, errors): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
            if fits.is_empty() || (keyword == "oneOf" && fits.len() > 1) {
                return Err(format!(
                    "{path}: {} of {keyword} fit: {errors:?}",
                    fits.len()
                ));
            }
        }
        Ok(())
    }

    fn check_object(
        self,
        rules: &'a Map<String, Value>,
        map: &Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        for key in rules
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let key = key.as_str().expect("a name");
            if !map.contains_key(key) {
                return Err(format!("{path}: {key} is missing"));
            }
        }
        let referred = self.target(rules).map(|(_, target)| &target["properties"]);
        for (key, value) in map {
            let path = format!("{path}/{key}");
            let property = rules
                .get("properties")
                .and_then(|properties| properties.get(key));
            let absence = rules
                .get("patternProperties")
                .filter(|_| key.ends_with("_absent"))
                .map(|patterns| &patterns["_absent$"]);
            let is_evaluated = referred.is_some_and(|properties| properties.get(key).is_some());
            let unevaluated = rules.get("unevaluatedProperties").filter(|_| !is_evaluated);
            if let Some(schema) = property
                .or(absence)
                .or(rules.get("additionalProperties"))
                .or(unevaluated)
            {
                self.validate(schema, value, &path)?;
            }
        }
        Ok(())
    }

    fn check_list(
        self,
        rules: &'a Map<String, Value>,
        list: &[Value],
        path: &str,
    ) -> Result<(), String> {
        let least = rules.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (list.len() as u64) < least {
            return Err(format!("{path}: fewer than {least} items"));
        }
        let first: &[Value] = rules
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice);
        for (at, value) in list.iter().enumerate() {
            if let Some(schema) = first.get(at).or(rules.get("items")) {
                self.validate(schema, value, &format!("{path}/{at}"))?;
            }
        }
        Ok(())
    }
}

fn check_type(rules: &Map<String, Value>, value: &Value, path: &str) -> Result<(), String> {
    let allowed = match rules.get("type") {
        None => return Ok(()),
        Some(Value::Array(types)) => types.iter().collect(),
        Some(one) => vec![one],
    };
    if allowed
        .iter()
        .any(|name| has_type(value, name.as_str().expect("a type")))
    {
        return Ok(());
    }
    Err(format!("{path}: {value} is not of type {allowed:?}"))
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("no type {name}"),
    }
}

fn check_constants(rules: &Map<String, Value>, value: &Value, path: &str) -> Result<(), String> {
    let differs = rules.get("const").is_some_and(|constant| constant != value);
    let listed = rules.get("enum").and_then(Value::as_array);
    if differs || listed.is_some_and(|values| !values.contains(value)) {
        return Err(format!("{path}: {value} is none of the allowed values"));
    }
    Ok(())
}
