//! The machine file that a calibration writes: a template, filled with what the kernel says and what was measured.

use super::bench::Bench;
use super::finding::{Findings, Found, Point};
use anyhow::Result;
use cosched_core::{Counter, CpuSet};
use cosched_linux::counters::probe;
use cosched_linux::energy::EnergyMeter;
use cosched_linux::events::MachineEvents;
use cosched_linux::traffic::TrafficMeter;
use cosched_sim::machine::CountersSpec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use toml::{Table, Value};

/// Templates, in which `{KEY|DEFAULT}` is the place of a figure.
const MACHINE: &str = include_str!("machine.toml");
const CORE: &str = include_str!("core.toml");
const SMT: &str = include_str!("smt.toml");

/// What takes the place of a key.
type Values = BTreeMap<String, String>;

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
    let domains = machine.memory_domains.len().max(1);
    let mut values = Values::new();
    let mut set = |key: &str, value: String| values.insert(key.to_owned(), value);
    set("name", name.to_owned());
    set("title", quoted(&machine.name));
    set("sockets", domains.to_string());
    set("llcs", machine.llcs.len().div_ceil(domains).to_string());
    if let Some(&bytes) = bench.cache_bytes.last() {
        set("llc.mb", (bytes as f64 / f64::from(1 << 20)).to_string());
    }
    if domains > 1 {
        set("remote", "remote_ns = 60".to_owned());
    }
    if let Some(curve) = curve {
        set("curve", curve.to_owned());
    }
    set("counters", counters(bench)?);
    let mut params = String::new();
    for (key, found) in measured {
        if let Found::Figure { figure, .. } = found {
            let value = four_digits(figure.value);
            set(key, value.to_string());
            if let Some(param) = key.strip_prefix("params.") {
                let _ = writeln!(params, "{param} = {value}");
            }
        }
    }
    set("params", params);
    if machine.has_smt() {
        let smt = filled(SMT, &values);
        values.insert("smt".to_owned(), smt);
    }
    let core_types = core_types(bench, &values);
    values.insert("core_types".to_owned(), core_types);
    let measured = Table::from_iter([("measured".to_owned(), Value::try_from(measured)?)]);
    Ok(filled(MACHINE, &values) + &toml::to_string(&measured)?)
}

/// A template with its places filled.
fn filled(template: &str, values: &Values) -> String {
    let mut text = String::new();
    for (ix, part) in template.split(['{', '}']).enumerate() {
        if ix % 2 == 0 {
            text += part;
        } else {
            let (key, default) = part.split_once('|').unwrap_or((part, ""));
            text += values.get(key).map_or(default, String::as_str);
        }
    }
    text
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The types of core at the first last-level cache, which stands for all.
fn core_types(bench: &Bench, all: &Values) -> String {
    let machine = &bench.machine;
    let mut text = String::new();
    for (ix, kind) in machine.core_types.iter().enumerate() {
        let here = |core: &&CpuSet| {
            let first = core.first().and_then(|cpu| machine.cpu(cpu));
            first.is_some_and(|cpu| cpu.llc == 0 && cpu.core_type == ix)
        };
        let cores: Vec<&CpuSet> = machine.cores.iter().filter(here).collect();
        let Some(threads) = cores.iter().map(|core| core.len()).max() else {
            continue;
        };
        let mut values = Values::new();
        let mut set = |key: &str, value: String| values.insert(key.to_owned(), value);
        set("name", quoted(&kind.name));
        set("cores", cores.len().to_string());
        set("threads", threads.to_string());
        if let [_, l2, _, ..] = bench.cache_bytes[..] {
            set("l2_kb", (l2 / 1024).to_string());
        }
        if let Some(khz) = kind.max_khz {
            set("ghz", (khz as f64 / 1e6).to_string());
        }
        for key in ["ghz", "l2_kb"] {
            if let Some(value) = all.get(&format!("core_type.{ix}.{key}")) {
                set(key, value.clone());
            }
        }
        if machine.core_types.len() > 1 {
            let capacity = kind.capacity.unwrap_or(1024);
            set("capacity", format!("capacity = {capacity}"));
        }
        text += &filled(CORE, &values);
    }
    text
}

/// What this machine can count.
fn counters(bench: &Bench) -> Result<String> {
    let root = &bench.root;
    let support = probe(root, &MachineEvents::detect(root, &[])?)?;
    // Cycles and instructions share a key.
    let mut all = BTreeMap::new();
    for counter in Counter::ALL {
        let counts = support.of(counter).is_value();
        *all.entry(CountersSpec::key(counter)).or_insert(true) &= counts;
    }
    let traffic = TrafficMeter::open(root, &bench.machine);
    all.insert("traffic", traffic.is_ok());
    all.insert("energy", EnergyMeter::open(root).is_ok());
    Ok(all
        .iter()
        .map(|(key, can)| format!("{key} = {can}\n"))
        .collect())
}

/// The text of the latency file.
pub fn curve_text(name: &str, points: &[Point]) -> String {
    let points: Vec<[f64; 2]> = points
        .iter()
        .map(|&(bandwidth, latency)| [bandwidth, latency])
        .collect();
    format!(
        "schema = \"cosched.latency/1\"\nname = \"{name}\"\ntitle = \"A walk beside streams of reads\"\n\
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
    use cosched_core::Machine;
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
                let mu = ("mu_trans_per_us".to_owned(), "310".to_owned());
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
