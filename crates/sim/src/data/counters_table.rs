//! The table `[counters]` of a machine file: a flag for each counter, for the meters of memory traffic and of energy,
//! and the noise of all.

use super::error::SpecError;
use super::params::{ParamTable, words};
use super::text::{Group, Limits, Real, Sources};
use crate::machine::CountersSpec;
use cosched_core::{Counter, PerCounter};
use toml::{Spanned, Value};

const NOISE: Limits = Limits::new("noise", 0.0, 0.5, "0.01");

/// Reads the table. A counter that the file does not name does not count.
pub(super) fn read_counters(
    group: &Group<'_>,
    mut table: ParamTable,
    sources: &mut Sources,
) -> Result<CountersSpec, SpecError> {
    let source = words(group, &mut table, "source")?;
    let assumed = words(group, &mut table, "assumed")?;
    sources.add(group, source, assumed)?;
    let mut counts = PerCounter::from_fn(|_| false);
    for counter in Counter::ALL {
        let flag = flag(
            group,
            table.get(CountersSpec::key(counter)),
            CountersSpec::key(counter),
        )?;
        counts[counter] = flag.unwrap_or(false);
    }
    let spec = CountersSpec {
        counts,
        traffic: flag(group, table.remove("traffic").as_ref(), "traffic")?.unwrap_or(false),
        energy: match flag(group, table.remove("energy").as_ref(), "energy")? {
            Some(energy) => energy,
            None => return Err(group.missing("energy", "true or false", "energy = true")),
        },
        noise: read_noise(group, table.remove("noise"))?,
    };
    let keys = Counter::ALL.map(CountersSpec::key);
    table.retain(|key, _| !keys.contains(&key.as_str()));
    match table.first_key_value() {
        None => Ok(spec),
        Some((key, value)) => Err(unknown(group, key, value)),
    }
}

fn flag(
    group: &Group<'_>,
    value: Option<&Spanned<Value>>,
    key: &str,
) -> Result<Option<bool>, SpecError> {
    let Some(value) = value else {
        return Ok(None);
    };
    match value.as_ref() {
        Value::Boolean(flag) => Ok(Some(*flag)),
        other => Err(group.wrong(
            value.span(),
            key,
            other,
            "true or false",
            format!("{key} = true"),
        )),
    }
}

fn read_noise(group: &Group<'_>, value: Option<Spanned<Value>>) -> Result<f64, SpecError> {
    let Some(value) = value else {
        return group.number(None, &NOISE);
    };
    let span = value.span();
    let number = match value.into_inner() {
        Value::Float(number) => number,
        Value::Integer(number) => number as f64,
        other => {
            return Err(group.wrong(span, NOISE.key, other, NOISE.to_string(), NOISE.example()));
        }
    };
    group.number(Some(Spanned::new(span, Real(number))), &NOISE)
}

fn unknown(group: &Group<'_>, key: &str, value: &Spanned<Value>) -> SpecError {
    let mut keys = Counter::ALL.map(CountersSpec::key).to_vec();
    keys.dedup();
    keys.extend(["traffic", "energy", "noise"]);
    let expected = format!("one of {}", keys.join(", "));
    group.wrong(
        value.span(),
        key,
        "not a key of this table",
        expected,
        "mm_reads = true",
    )
}
