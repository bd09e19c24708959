//! The machine file that a calibration writes: the assumed figures, replaced by what was read and what was measured.

use super::bench::Bench;
use super::finding::Found;
use super::loaded::{CURVE, Point};
use anyhow::{Context as _, Result};
use cosched_core::{Counter, Machine};
use cosched_linux::counters::probe;
use cosched_linux::energy::EnergyMeter;
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use cosched_linux::traffic::TrafficMeter;
use cosched_sim::machine::CountersSpec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use toml::{Table, Value};

const ASSUMED: &str = include_str!("assumed.toml");

const HEADER: &str = "# Written by `cosched calibrate`, which replaces it. [measured] has each figure with its spread and \
                      its day.\n";

const MEASURED: &str = "measured by `cosched calibrate`";

/// All that has been measured of a machine, by the key of the figure.
pub type Measured = BTreeMap<String, Found>;

/// What the machine file says was measured; nothing if there is no such file.
pub fn read(file: &Path) -> Measured {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let table: Table = text.parse().unwrap_or_default();
    let measured = table.get("measured").cloned();
    measured
        .and_then(|measured| measured.try_into().ok())
        .unwrap_or_default()
}

/// The text of the machine file.
///
/// # Errors
/// The counters can't be probed.
pub fn machine_text(bench: &Bench, name: &str, measured: &Measured) -> Result<String> {
    let mut table: Table = ASSUMED.parse().context("assumed.toml")?;
    let words = [
        ("schema", "cosched.machine/1"),
        ("name", name),
        ("title", &bench.machine.name),
    ];
    for (key, word) in words {
        table.insert(key.to_owned(), word.into());
    }
    insert_read(&mut table, bench)?;
    insert_measured(&mut table, name, measured);
    table.insert("measured".to_owned(), Value::try_from(measured)?);
    Ok(format!("{HEADER}{}", toml::to_string(&table)?))
}

/// The name of the latency file beside the machine file.
pub fn curve_name(name: &str) -> String {
    format!("{name}.latency.toml")
}

/// The text of the latency file.
pub fn curve_text(name: &str, points: &[Point]) -> String {
    let mut text = format!(
        "{HEADER}schema = \"cosched.latency/1\"\nname = \"{name}\"\ntitle = \"A walk beside streams of reads\"\n\
         source = \"{MEASURED}; the last point continues the last measured slope\"\n\n[[line]]\nreads = 1.0\npoints = [\n"
    );
    for (bandwidth, latency) in points {
        let _ = writeln!(text, "    [{bandwidth:.4}, {latency:.4}],");
    }
    text + "]\n"
}

/// Inserts what the kernel says of the machine.
fn insert_read(table: &mut Table, bench: &Bench) -> Result<()> {
    let machine = &bench.machine;
    let domains = machine.memory_domains.len().max(1);
    let llcs = machine.llcs.len().div_ceil(domains);
    let mut topology = Table::new();
    insert(&mut topology, "source", "read from the kernel");
    insert(&mut topology, "sockets", domains as i64);
    insert(&mut topology, "llcs_per_socket", llcs as i64);
    insert(table, "topology", topology);
    insert(table, "core_type", core_types(bench));
    insert(table, "counters", counters(&bench.root, machine)?);
    if let (Some(&bytes), Some(Value::Table(llc))) =
        (bench.cache_bytes.last(), table.get_mut("llc"))
    {
        insert(llc, "mb", bytes as f64 / f64::from(1 << 20));
        insert(llc, "assumed", "the size that the kernel lists");
    }
    if domains > 1
        && let Some(Value::Table(latency)) = table.get_mut("latency")
    {
        insert(latency, "remote_ns", 60.0);
    }
    if !machine.has_smt() {
        table.remove("smt");
    }
    Ok(())
}

fn insert(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

/// The types of core at the first last-level cache, which stands for all.
fn core_types(bench: &Bench) -> Vec<Value> {
    let machine = &bench.machine;
    let several = machine.core_types.len() > 1;
    let mut types = Vec::new();
    for (ix, kind) in machine.core_types.iter().enumerate() {
        let (cores, threads) = cores_at_first_llc(machine, ix);
        if cores == 0 {
            continue;
        }
        let ghz = kind.max_khz.map_or(3.0, |khz| khz as f64 / 1e6);
        let l2_kb = match bench.cache_bytes[..] {
            [_, l2, _, ..] => l2 as f64 / 1024.0,
            _ => 0.0,
        };
        let mut core = Table::new();
        let read = "the kernel lists cores and the size of the second cache; the clock is its highest, or else 3 GHz";
        insert(&mut core, "assumed", read);
        insert(&mut core, "name", kind.name.as_str());
        insert(&mut core, "cores_per_llc", cores as i64);
        insert(&mut core, "threads_per_core", threads as i64);
        insert(&mut core, "ghz", ghz);
        insert(&mut core, "l2_kb", l2_kb);
        if several {
            insert(
                &mut core,
                "capacity",
                i64::from(kind.capacity.unwrap_or(1024)),
            );
        }
        let pipeline = [("cpi_factor", 1.0), ("l1_ports", 2.0)];
        insert(
            &mut core,
            "pipeline",
            figures("about the core of the profiles", &pipeline),
        );
        let power = [
            ("idle_w", 0.0),
            ("active_w", 3.0),
            ("nj_per_instruction", 0.4),
        ];
        insert(
            &mut core,
            "power",
            figures("a core of a large server processor", &power),
        );
        types.push(Value::Table(core));
    }
    types
}

/// The number of cores of a type at the first last-level cache, and the CPUs of the widest.
fn cores_at_first_llc(machine: &Machine, kind: usize) -> (usize, usize) {
    let mut cores = 0;
    let mut threads = 1;
    for core in &machine.cores {
        let first = core.first().and_then(|cpu| machine.cpu(cpu));
        if first.is_some_and(|cpu| cpu.llc == 0 && cpu.core_type == kind) {
            cores += 1;
            threads = threads.max(core.len());
        }
    }
    (cores, threads)
}

fn figures(assumed: &str, values: &[(&str, f64)]) -> Table {
    let mut table = Table::new();
    insert(&mut table, "assumed", assumed);
    for (key, value) in values {
        insert(&mut table, key, *value);
    }
    table
}

/// What this machine can count.
fn counters(root: &Root, machine: &Machine) -> Result<Table> {
    let support = probe(root, &MachineEvents::detect(root, &[])?)?;
    let mut table = figures(
        "this machine counts this; the noise is chosen",
        &[("noise", 0.01)],
    );
    for counter in Counter::ALL {
        let counts = support.of(counter).is_value();
        insert(&mut table, CountersSpec::key(counter), counts);
    }
    let traffic = TrafficMeter::open(root, machine);
    insert(&mut table, "traffic", traffic.is_ok());
    insert(&mut table, "energy", EnergyMeter::open(root).is_ok());
    Ok(table)
}

/// Inserts what was measured, and says so in each table.
fn insert_measured(table: &mut Table, name: &str, measured: &Measured) {
    let mut by_table: BTreeMap<&str, Vec<(&str, Value)>> = BTreeMap::new();
    for (path, found) in measured {
        let (Found::Figure { value, .. }, Some((parent, key))) = (found, path.rsplit_once('.'))
        else {
            continue;
        };
        let value = match path.as_str() {
            CURVE => Value::from(curve_name(name)),
            _ => Value::from(four_digits(*value)),
        };
        by_table.entry(parent).or_default().push((key, value));
    }
    for (path, values) in by_table {
        if path == "params" {
            insert(table, path, Table::new());
        }
        if let Some(inner) = table_at(table, path) {
            fill(inner, values);
        }
    }
    // A hit is never slower than a read.
    let hit = number_at(table, "llc.latency", "hit_ns");
    let read = number_at(table, "latency", "idle_latency_ns");
    if let (Some(hit), Some(read), Some(latency)) = (hit, read, table_at(table, "latency"))
        && read < hit
    {
        insert(latency, "idle_latency_ns", hit);
    }
}

/// Sets measured values in a table. It is assumed as long as it has other figures.
fn fill(table: &mut Table, values: Vec<(&str, Value)>) {
    let names: Vec<&str> = values.iter().map(|(key, _)| *key).collect();
    let is_figure = |(key, value): (&String, &Value)| {
        !value.is_table() && !["source", "assumed"].contains(&key.as_str())
    };
    let others = table.iter().filter(|pair| is_figure(*pair));
    let is_complete = others
        .into_iter()
        .all(|(key, _)| names.contains(&key.as_str()));
    let names = names.join(", ");
    let assumed = table.remove("assumed");
    let assumed = assumed.as_ref().and_then(Value::as_str).unwrap_or_default();
    if is_complete {
        insert(table, "source", MEASURED);
    } else {
        insert(
            table,
            "assumed",
            format!("{names}: {MEASURED}; the rest: {assumed}"),
        );
    }
    for (key, value) in values {
        insert(table, key, value);
    }
}

/// The table at a path such as `core_type.0.power`.
fn table_at<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Table> {
    let mut words = path.split('.');
    let mut at = table.get_mut(words.next()?)?;
    for word in words {
        at = match word.parse::<usize>() {
            Ok(ix) => at.as_array_mut()?.get_mut(ix)?,
            Err(_) => at.as_table_mut()?.get_mut(word)?,
        };
    }
    at.as_table_mut()
}

fn number_at(table: &mut Table, path: &str, key: &str) -> Option<f64> {
    let value = table_at(table, path)?.get(key)?;
    value
        .as_float()
        .or_else(|| Some(value.as_integer()? as f64))
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::spec::machine_in;

    fn bench(machine: Machine) -> Bench {
        Bench {
            root: Root::new("/nonexistent"),
            cpus: vec![machine.cpus[0].id],
            machine,
            part: None,
            sibling: None,
            cache_bytes: vec![48 << 10, 2 << 20, 32 << 20],
            lines: Vec::new(),
        }
    }

    fn measured(figures: &[(&str, f64)]) -> Measured {
        let found = |value| Found::Figure {
            value,
            spread: 0.02,
            on: "2026-01-31".to_owned(),
        };
        let all = figures.iter();
        all.map(|&(key, value)| (key.to_owned(), found(value)))
            .collect()
    }

    #[test]
    fn the_file_is_a_machine_file_whatever_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.toml");
        let some = [
            ("latency.idle_latency_ns", 123.456),
            ("llc.latency.hit_ns", 30.0),
            ("params.mu_trans_per_us", 310.0),
            ("cache.l1_ns", 1.5),
            ("move_us", 5.0),
        ];
        for machine in [Machine::uniform("two", 2, 1), Machine::uniform("smt", 8, 2)] {
            for figures in [&[][..], &some] {
                let figures = measured(figures);
                let text = machine_text(&bench(machine.clone()), "m", &figures).unwrap();
                std::fs::write(&file, text).unwrap();
                let spec = machine_in(&file).unwrap().spec;
                assert_eq!(spec.machine().cpus.len(), machine.cpus.len());
                assert_eq!(read(&file), figures);
                let has_mu = spec
                    .params
                    .contains(&("mu_trans_per_us".to_owned(), "310.0".to_owned()));
                assert_eq!(has_mu, !figures.is_empty(), "{:?}", spec.params);
            }
        }
        let spec = machine_in(&file).unwrap().spec;
        assert_eq!(
            (spec.memory.idle_latency_ns, spec.llc.hit_ns),
            (123.5, 30.0)
        );
    }

    #[test]
    fn what_is_assumed_is_marked() {
        let mut slow = measured(&[
            ("latency.idle_latency_ns", 90.0),
            ("llc.latency.hit_ns", 95.0),
        ]);
        let absent = "no core has two CPUs".to_owned();
        slow.insert("smt.issue_share".to_owned(), Found::Absent { absent });
        let two = bench(Machine::uniform("two", 2, 1));
        let table: Table = machine_text(&two, "m", &slow).unwrap().parse().unwrap();
        let latency = &table["latency"];
        assert!(
            latency["assumed"]
                .as_str()
                .unwrap()
                .starts_with("idle_latency_ns: measured")
        );
        assert_eq!(
            latency["idle_latency_ns"].as_float(),
            Some(95.0),
            "not below a hit"
        );
        let hit = table["llc"]["latency"].as_table().unwrap();
        assert!(hit["source"].as_str() == Some(MEASURED) && !hit.contains_key("assumed"));
        assert_eq!(
            table["measured"]["smt.issue_share"]["absent"].as_str(),
            Some("no core has two CPUs")
        );
    }

    #[test]
    fn the_curve_is_a_latency_file() {
        let folder = tempfile::tempdir().unwrap();
        let points = [(0.0, 1.0), (0.5, 1.25), (1.0, 3.0)];
        let curve = folder.path().join(curve_name("m"));
        std::fs::write(&curve, curve_text("m", &points)).unwrap();
        let two = bench(Machine::uniform("two", 2, 1));
        let text = machine_text(&two, "m", &measured(&[(CURVE, 3.0)])).unwrap();
        let file = folder.path().join("m.toml");
        std::fs::write(&file, text).unwrap();
        let spec = machine_in(&file).unwrap().spec;
        assert_eq!(spec.memory.curve.lines[0].points, points);
    }
}
