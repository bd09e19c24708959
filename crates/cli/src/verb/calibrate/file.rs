//! The machine file that a calibration writes: assumed figures, replaced by what the kernel says and what was measured.

use super::bench::Bench;
use super::finding::{Findings, Found, Point};
use anyhow::{Context as _, Result};
use cosched_core::{Counter, Machine};
use cosched_linux::counters::probe;
use cosched_linux::energy::EnergyMeter;
use cosched_linux::events::MachineEvents;
use cosched_linux::traffic::TrafficMeter;
use cosched_sim::machine::CountersSpec;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

const ASSUMED: &str = include_str!("assumed.toml");

const HEADER: &str = "# Written by `cosched calibrate`, which replaces it.\n";

/// All that was measured of a machine, by the key of the figure.
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

/// What is known now, on the day `on`. A figure that could not be measured again stays as it was.
pub fn merged(mut measured: Measured, findings: &Findings, on: &str) -> Measured {
    for (key, outcome) in findings {
        let on = on.to_owned();
        let found = match (outcome, measured.get(key)) {
            (Ok(figure), _) => Found::Figure {
                figure: *figure,
                on,
            },
            (Err(_), Some(Found::Figure { .. })) => continue,
            (Err(why), _) => Found::Absent {
                absent: why.clone(),
            },
        };
        measured.insert(key.clone(), found);
    }
    measured
}

/// The text of the machine file; `curve` is the file of its latency curve, if there is one.
///
/// # Errors
/// The counters can't be probed.
pub fn machine_text(
    bench: &Bench,
    name: &str,
    curve: Option<&str>,
    measured: &Measured,
) -> Result<String> {
    let machine = &bench.machine;
    let mut table: Table = ASSUMED.parse().context("assumed.toml")?;
    insert(&mut table, "schema", "cosched.machine/1");
    insert(&mut table, "name", name);
    insert(&mut table, "title", machine.name.as_str());
    insert(&mut table, "core_type", core_types(bench));
    insert(&mut table, "counters", counters(bench)?);
    let domains = machine.memory_domains.len().max(1);
    let llcs = machine.llcs.len().div_ceil(domains);
    set(&mut table, "topology.sockets", domains as i64);
    set(&mut table, "topology.llcs_per_socket", llcs as i64);
    if let Some(&bytes) = bench.cache_bytes.last() {
        set(&mut table, "llc.mb", bytes as f64 / f64::from(1 << 20));
    }
    if domains > 1 {
        set(&mut table, "latency.remote_ns", 60.0);
    }
    if let Some(curve) = curve {
        set(&mut table, "latency.curve", curve);
    }
    if !machine.has_smt() {
        table.remove("smt");
    }
    for (key, found) in measured {
        if let Found::Figure { figure, .. } = found {
            set(&mut table, key, four_digits(figure.value));
        }
    }
    insert(&mut table, "measured", Value::try_from(measured)?);
    Ok(format!("{HEADER}{}", toml::to_string(&table)?))
}

fn insert(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

/// Sets a figure at its place, as in `core_type.0.ghz`, if the machine file has that table.
fn set(table: &mut Table, path: &str, value: impl Into<Value>) {
    let mut words = path.split('.').peekable();
    let mut at = Some(table);
    while let (Some(word), Some(inner)) = (words.next(), at.take()) {
        if words.peek().is_none() {
            insert(inner, word, value);
            return;
        }
        at = match inner.get_mut(word) {
            Some(Value::Array(all)) => words
                .next()
                .and_then(|ix| all.get_mut(ix.parse::<usize>().ok()?)?.as_table_mut()),
            other => other.and_then(Value::as_table_mut),
        };
    }
}

/// The types of core at the first last-level cache, which stands for all.
fn core_types(bench: &Bench) -> Vec<Value> {
    let several = bench.machine.core_types.len() > 1;
    let mut types = Vec::new();
    for (ix, kind) in bench.machine.core_types.iter().enumerate() {
        let (cores, threads) = cores_at_first_llc(&bench.machine, ix);
        if cores == 0 {
            continue;
        }
        let read = "the kernel lists the cores; clock and second cache as [measured], or else as listed, or 3 GHz";
        let mut core = assumed(
            read,
            &[("ghz", kind.max_khz.map_or(3.0, |khz| khz as f64 / 1e6))],
        );
        insert(&mut core, "name", kind.name.as_str());
        insert(&mut core, "cores_per_llc", cores as i64);
        insert(&mut core, "threads_per_core", threads as i64);
        let l2 = bench
            .cache_bytes
            .get(1)
            .filter(|_| bench.cache_bytes.len() > 2);
        insert(&mut core, "l2_kb", l2.copied().unwrap_or(0) as f64 / 1024.0);
        if several {
            let capacity = kind.capacity.unwrap_or(1024);
            insert(&mut core, "capacity", i64::from(capacity));
        }
        let pipeline = [("cpi_factor", 1.0), ("l1_ports", 2.0)];
        let power = [
            ("idle_w", 0.0),
            ("active_w", 3.0),
            ("nj_per_instruction", 0.4),
        ];
        insert(
            &mut core,
            "pipeline",
            assumed("about the core of the profiles", &pipeline),
        );
        insert(
            &mut core,
            "power",
            assumed("a core of a large server processor", &power),
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

fn assumed(why: &str, values: &[(&str, f64)]) -> Table {
    let mut table = Table::new();
    insert(&mut table, "assumed", why);
    for (key, value) in values {
        insert(&mut table, key, *value);
    }
    table
}

/// What this machine can count.
fn counters(bench: &Bench) -> Result<Table> {
    let root = &bench.root;
    let support = probe(root, &MachineEvents::detect(root, &[])?)?;
    let mut table = assumed(
        "this machine counts this; the noise is chosen",
        &[("noise", 0.01)],
    );
    for counter in Counter::ALL {
        let counts = support.of(counter).is_value();
        insert(&mut table, CountersSpec::key(counter), counts);
    }
    let traffic = TrafficMeter::open(root, &bench.machine);
    insert(&mut table, "traffic", traffic.is_ok());
    insert(&mut table, "energy", EnergyMeter::open(root).is_ok());
    Ok(table)
}

/// The text of the latency file.
pub fn curve_text(name: &str, points: &[Point]) -> String {
    let points: Vec<[f64; 2]> = points
        .iter()
        .map(|&(bandwidth, latency)| [bandwidth, latency])
        .collect();
    format!(
        "{HEADER}schema = \"cosched.latency/1\"\nname = \"{name}\"\ntitle = \"A walk beside streams of reads\"\n\
         source = \"measured; the last point continues the last measured slope\"\n\n[[line]]\nreads = 1.0\n\
         points = {points:?}\n"
    )
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::figure::Figure;
    use super::*;
    use crate::input::spec::machine_in;
    use cosched_linux::root::Root;

    fn bench(machine: Machine) -> Bench {
        Bench {
            root: Root::new("/nonexistent"),
            online: machine.all_cpus(),
            cpus: vec![machine.cpus[0].id],
            machine,
            sibling: None,
            cache_bytes: vec![48 << 10, 2 << 20, 32 << 20],
            rings: Vec::new(),
            streamed: Vec::new(),
            started: 0,
        }
    }

    fn findings(figures: &[(&str, f64)]) -> Findings {
        let found = |value| {
            Ok(Figure {
                value,
                low: value,
                high: value + 1.0,
            })
        };
        let all = figures.iter();
        all.map(|&(key, value)| (key.to_owned(), found(value)))
            .collect()
    }

    #[test]
    fn the_file_is_a_machine_file_whatever_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.toml");
        let points = [(0.0, 1.0), (0.5, 1.25), (1.0, 3.0)];
        std::fs::write(folder.path().join("c.toml"), curve_text("m", &points)).unwrap();
        let some = [
            ("latency.idle_latency_ns", 123.456),
            ("llc.latency.hit_ns", 30.0),
            ("params.mu_trans_per_us", 310.0),
            ("core_type.0.ghz", 2.5),
            ("smt.issue_share", 0.25),
            ("cache.l1_ns", 1.5),
            ("bandwidth.001_cores", 90.0),
        ];
        for machine in [Machine::uniform("two", 2, 1), Machine::uniform("smt", 8, 2)] {
            for (figures, curve) in [(&[][..], None), (&some, Some("c.toml"))] {
                let measured = merged(Measured::new(), &findings(figures), "2026-01-31");
                let text = machine_text(&bench(machine.clone()), "m", curve, &measured).unwrap();
                std::fs::write(&file, text).unwrap();
                let spec = machine_in(&file).unwrap().spec;
                assert_eq!(spec.machine().cpus.len(), machine.cpus.len());
                assert_eq!(read(&file), measured);
                let mu = ("mu_trans_per_us".to_owned(), "310.0".to_owned());
                assert_eq!(spec.params.contains(&mu), !figures.is_empty());
            }
        }
        let spec = machine_in(&file).unwrap().spec;
        let times = (spec.memory.idle_latency_ns, spec.llc.hit_ns);
        assert_eq!(times, (123.5, 30.0));
        assert_eq!(spec.memory.curve.lines[0].points, points);
    }

    #[test]
    fn a_figure_stays_until_it_is_measured_again() {
        let first = merged(Measured::new(), &findings(&[("a", 1.0)]), "2026-01-01");
        let busy = || Err("busy".to_owned());
        let again = Findings::from([("a".to_owned(), busy()), ("b".to_owned(), busy())]);
        let second = merged(first.clone(), &again, "2026-02-02");
        assert_eq!(second["a"], first["a"]);
        let absent = "busy".to_owned();
        assert_eq!(second["b"], Found::Absent { absent });
        let third = merged(second, &findings(&[("a", 2.0), ("b", 3.0)]), "2026-03-03");
        assert!(matches!(&third["b"], Found::Figure { on, .. } if on == "2026-03-03"));
    }
}
