//! The machine file that a calibration writes: assumed figures, and over these what the kernel says and what was measured.

use super::bench::Site;
use super::figure::MeasuredFigure;
use super::finding::{CalibrationFindings, Measured, Point};
use crate::input::told;
use anyhow::{Context as _, Result};
use cosched_core::{Cpu, Machine};
use cosched_run::whole_file::{create_private_folders, write_whole};
use cosched_sim::parse_machine_with;
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
pub fn compared(findings: &CalibrationFindings, before: &Measured) -> (String, bool) {
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

fn range(MeasuredFigure { value, low, high }: MeasuredFigure) -> String {
    let [value, low, high] = [value, low, high].map(four_digits);
    format!("{value} [{low}, {high}]")
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Writes the machine file, and the latency file if there is a new curve.
///
/// # Errors
/// A file can't be written, or a simulation could not read them.
pub fn write(file: &Path, site: &Site, measured: &Measured, curve: &[Point]) -> Result<()> {
    let folder = file.parent().context("a file in a folder")?;
    create_private_folders(folder).with_context(|| format!("making {}", folder.display()))?;
    let curve_file = file.with_extension("latency.toml");
    if !curve.is_empty() {
        write_whole(&curve_file, curve_text(curve).as_bytes())?;
    }
    let curve_name = curve_file.file_name().filter(|_| curve_file.exists());
    let curve_name = curve_name.and_then(|name| name.to_str());
    let text = machine_text(&site.machine, &site.cache_bytes, curve_name, measured)?;
    parse_machine_with(&text, &told(file), &|_| {
        std::fs::read_to_string(&curve_file).map_err(|error| error.to_string())
    })?;
    write_whole(file, text.as_bytes())
}

/// The text of the machine file; `curve` is the file of its latency curve, if there is one.
///
/// # Errors
/// The text can't be made.
fn machine_text(
    machine: &Machine,
    cache_bytes: &[u64],
    curve: Option<&str>,
    measured: &Measured,
) -> Result<String> {
    let mut file = Value::Table(ASSUMED.parse()?);
    let domains = machine.memory_domains.len().max(1);
    set(&mut file, "title", machine.name.clone());
    set(&mut file, "topology.sockets", domains as i64);
    let llcs = machine.llcs.len().div_ceil(domains);
    set(&mut file, "topology.llcs_per_socket", llcs as i64);
    let types = core_types(&file["core_type"][0], machine);
    set(&mut file, "core_type", types);
    if let Some(&bytes) = cache_bytes.last() {
        set(&mut file, "llc.mb", bytes as f64 / f64::from(1 << 20));
    }
    if let Some(curve) = curve {
        set(&mut file, "latency.curve", curve);
    }
    for (key, figure) in measured {
        set(&mut file, key, four_digits(figure.value));
    }
    set(&mut file, "measured", Value::try_from(measured)?);
    Ok(toml::to_string(&file)?)
}

/// Sets a key of the file, as in `core_type.0.ghz`. A measured figure without a table there has no place in it.
fn set(file: &mut Value, key: &str, value: impl Into<Value>) {
    let (mut at, mut rest) = (Some(file), key);
    while let Some((name, further)) = rest.split_once('.') {
        at = at.and_then(|at| match name.parse::<usize>() {
            Ok(ix) => at.get_mut(ix),
            Err(_) => at.get_mut(name),
        });
        rest = further;
    }
    if let Some(Value::Table(table)) = at {
        table.insert(rest.to_owned(), value.into());
    }
}

/// The types of core at the first last-level cache, which stands for all.
fn core_types(assumed: &Value, machine: &Machine) -> Vec<Value> {
    let mut types = Vec::new();
    for (ix, kind) in machine.core_types.iter().enumerate() {
        let here = |cpu: &&Cpu| cpu.llc == 0 && cpu.core_type == ix;
        let cores: Vec<usize> = machine
            .cpus
            .iter()
            .filter(here)
            .map(|cpu| cpu.core)
            .collect();
        let distinct = BTreeSet::from_iter(&cores).len();
        if distinct == 0 {
            continue;
        }
        let mut one = assumed.clone();
        let threads = cores.len().div_ceil(distinct);
        set(&mut one, "name", kind.name.clone());
        set(&mut one, "cores_per_llc", distinct as i64);
        set(&mut one, "threads_per_core", threads as i64);
        if let Some(khz) = kind.max_khz {
            set(&mut one, "ghz", khz as f64 / 1e6);
        }
        if machine.core_types.len() > 1 {
            let capacity = kind.capacity.unwrap_or(1024);
            set(&mut one, "capacity", i64::from(capacity));
        }
        types.push(one);
    }
    types
}

/// The text of the latency file.
fn curve_text(points: &[Point]) -> String {
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
            (key.to_owned(), MeasuredFigure { value, low, high })
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
            ("params.to_big_beta", -72.0),
            ("core_type.0.ghz", 2.5),
            ("core_type.0.l2_kb", 1024.0),
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
                for (name, value) in [("mu_trans_per_us", "310.0"), ("to_big_beta", "-72.0")] {
                    let param = (name.to_owned(), value.to_owned());
                    assert_eq!(spec.params.contains(&param), !some.is_empty());
                }
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
            let found = CalibrationFindings {
                figures: figures(&[("mu", mu)]),
                ..CalibrationFindings::default()
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
