//! The machine file that a calibration writes: assumed figures, and over these what the kernel says and what was measured.

use super::figure::Figure;
use super::finding::{Findings, Measured, Point};
use anyhow::Result;
use cosched_core::Machine;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use toml::{Table, Value};

const ASSUMED: &str = include_str!("machine.toml");

/// What the machine file says was measured; nothing if there is no such file.
pub fn read(file: &Path) -> Measured {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut table: Table = text.parse().unwrap_or_default();
    let measured = table.remove("measured");
    let measured = measured.and_then(|measured| measured.try_into().ok());
    measured.unwrap_or_default()
}

/// A line for each finding, and whether any figure has changed: its range has nothing in common with that of before.
pub fn compared(findings: &Findings, before: &Measured) -> (String, bool) {
    let (mut text, mut has_changed) = (String::new(), false);
    for (key, figure) in &findings.figures {
        let _ = write!(text, "{key:<32} {}", range(*figure));
        if let Some(before) = before.get(key).filter(|before| figure.differs(**before)) {
            has_changed = true;
            let _ = write!(text, "; it was {}", range(*before));
        }
        text.push('\n');
    }
    for (key, why) in &findings.absent {
        let _ = writeln!(text, "{key:<32} - {why}");
    }
    (text, has_changed)
}

fn range(Figure { value, low, high }: Figure) -> String {
    let [value, low, high] = [value, low, high].map(four_digits);
    format!("{value} [{low}, {high}]")
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The text of the machine file; `curve` is the file of its latency curve, if there is one.
///
/// # Errors
/// The text can't be made.
pub fn machine_text(
    machine: &Machine,
    cache_bytes: &[u64],
    curve: Option<&str>,
    measured: &Measured,
) -> Result<String> {
    let mut table: Table = ASSUMED.parse()?;
    let domains = machine.memory_domains.len().max(1);
    set(&mut table, "title", machine.name.clone());
    set(&mut table, "topology.sockets", domains as i64);
    let llcs = machine.llcs.len().div_ceil(domains);
    set(&mut table, "topology.llcs_per_socket", llcs as i64);
    if let Some(&bytes) = cache_bytes.last() {
        set(&mut table, "llc.mb", bytes as f64 / f64::from(1 << 20));
    }
    if let Some(curve) = curve {
        set(&mut table, "latency.curve", curve);
    }
    for (key, figure) in measured {
        set(&mut table, key, four_digits(figure.value));
    }
    if let Some(Value::Array(types)) = table.get_mut("core_type") {
        *types = core_types(&types[0], machine, measured);
    }
    table.insert("measured".to_owned(), Value::try_from(measured)?);
    Ok(toml::to_string(&table)?)
}

/// Sets a key of the file. A measured figure without a table there has no place in it.
fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value.into());
        }
        Some((name, key)) => {
            if let Some(Value::Table(table)) = table.get_mut(name) {
                set(table, key, value);
            }
        }
    }
}

/// The types of core at the first last-level cache, which stands for all.
fn core_types(assumed: &Value, machine: &Machine, measured: &Measured) -> Vec<Value> {
    let mut types = Vec::new();
    for (ix, kind) in machine.core_types.iter().enumerate() {
        let cpus = machine.cpus.iter();
        let here = cpus.filter(|cpu| cpu.llc == 0 && cpu.core_type == ix);
        let cpus = here.clone().count();
        let cores = here.map(|cpu| cpu.core).collect::<BTreeSet<_>>().len();
        if cores == 0 {
            continue;
        }
        // It contains the assumed type, so that its keys are set like others.
        let mut table = Table::from_iter([("core".to_owned(), assumed.clone())]);
        set(&mut table, "core.name", kind.name.clone());
        set(&mut table, "core.cores_per_llc", cores as i64);
        set(
            &mut table,
            "core.threads_per_core",
            cpus.div_ceil(cores) as i64,
        );
        if let Some(khz) = kind.max_khz {
            set(&mut table, "core.ghz", khz as f64 / 1e6);
        }
        if machine.core_types.len() > 1 {
            let capacity = kind.capacity.unwrap_or(1024);
            set(&mut table, "core.capacity", i64::from(capacity));
        }
        for (key, figure) in measured.iter().filter(|_| ix == 0) {
            set(&mut table, key, four_digits(figure.value));
        }
        types.extend(table.remove("core"));
    }
    types
}

/// The text of the latency file.
pub fn curve_text(points: &[Point]) -> String {
    let points: Vec<[f64; 2]> = points
        .iter()
        .map(|&(rate, latency)| [rate, latency])
        .collect();
    format!(
        "schema = \"cosched.latency/1\"\nname = \"mine\"\ntitle = \"A walk beside streams of reads\"\n\
         source = \"measured; the last point has the mean slope of the others\"\n\n[[line]]\nreads = 1.0\n\
         points = {points:?}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::spec::machine_in;

    fn figures(all: &[(&str, f64)]) -> Measured {
        let figure = |&(key, value): &(&str, f64)| {
            let (low, high) = (value * 0.95, value * 1.05);
            (key.to_owned(), Figure { value, low, high })
        };
        all.iter().map(figure).collect()
    }

    #[test]
    fn the_file_is_a_machine_file_whatever_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.toml");
        let points = [(0.0, 1.0), (0.5, 1.25), (1.0, 3.0)];
        std::fs::write(folder.path().join("c.toml"), curve_text(&points)).unwrap();
        let some = [
            ("latency.idle_latency_ns", 123.456),
            ("llc.latency.hit_ns", 30.0),
            ("params.mu_trans_per_us", 310.0),
            ("core.ghz", 2.5),
            ("core.l2_kb", 1024.0),
            ("smt.issue_share", 0.25),
            ("cache.l1_ns", 1.5),
            ("bandwidth.001_cores", 90.0),
        ];
        let caches = [48 << 10, 2 << 20, 32 << 20];
        for machine in [Machine::uniform("two", 2, 1), Machine::uniform("smt", 8, 2)] {
            for (some, curve) in [(&[][..], None), (&some, Some("c.toml"))] {
                let measured = figures(some);
                let text = machine_text(&machine, &caches, curve, &measured).unwrap();
                std::fs::write(&file, text).unwrap();
                let spec = machine_in(&file).unwrap().spec;
                assert_eq!(spec.machine().cpus.len(), machine.cpus.len());
                assert_eq!(read(&file), measured);
                let mu = ("mu_trans_per_us".to_owned(), "310.0".to_owned());
                assert_eq!(spec.params.contains(&mu), !some.is_empty());
            }
        }
        let spec = machine_in(&file).unwrap().spec;
        assert_eq!(
            (spec.memory.idle_latency_ns, spec.llc.hit_ns),
            (123.5, 30.0)
        );
        assert_eq!(
            (spec.core_types[0].ghz, spec.core_types[0].l2_kb),
            (2.5, 1024.0)
        );
        assert_eq!(spec.memory.curve.lines[0].points, points);
    }

    #[test]
    fn a_change_is_a_range_apart_from_the_kept_one() {
        let kept = figures(&[("mu", 200.0)]);
        let compared = |mu| {
            let found = Findings {
                figures: figures(&[("mu", mu)]),
                ..Findings::default()
            };
            compared(&found, &kept)
        };
        let (text, has_changed) = compared(210.0);
        assert!(
            !has_changed && text.ends_with(" 210 [199.5, 220.5]\n"),
            "{text}"
        );
        let (text, has_changed) = compared(150.0);
        assert!(
            has_changed && text.contains("; it was 200 [190, 210]"),
            "{text}"
        );
    }
}
