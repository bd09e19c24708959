//! The built-in machines and programs for simulations.

use super::{brief_entry, is_wanted};
use anyhow::Context as _;
use cosched_report::count;
use cosched_sim::program::Stall;
use cosched_sim::{
    MACHINES, MachineSpec, PROGRAMS, ProgramSpec, Source, builtin_machine, builtin_program,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A few lines for each machine, or these machines in full.
pub(super) fn machines(names: &[String]) -> anyhow::Result<(String, Value)> {
    let mut brief = String::new();
    brief_entry(
        &mut brief,
        "host",
        "this machine, with real processes (the default of --on)",
    );
    let mut text = String::new();
    let mut list = Vec::new();
    for entry in MACHINES.iter().filter(|entry| is_wanted(entry.name, names)) {
        let spec = builtin_machine(entry.name)
            .with_context(|| format!("the built-in machine {}", entry.name))?;
        brief_entry(&mut brief, entry.name, &spec.title);
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}  {}", entry.name, spec.title);
        let _ = writeln!(text, "  {}", machine_line(&spec));
        sources(&spec.sources, &mut text);
        list.push(machine_json(entry.name, &spec));
    }
    brief.push_str("\n`cosched list machines NAME` shows caches, memory, clocks and the sources\n");
    Ok((
        if names.is_empty() { brief } else { text },
        json!({ "machines": list }),
    ))
}

/// A few lines for each program, or these programs in full.
pub(super) fn programs(names: &[String]) -> anyhow::Result<(String, Value)> {
    let mut brief = String::new();
    let mut text = String::new();
    let mut list = Vec::new();
    for entry in PROGRAMS.iter().filter(|entry| is_wanted(entry.name, names)) {
        let spec = builtin_program(entry.name)
            .with_context(|| format!("the built-in program {}", entry.name))?;
        brief_entry(&mut brief, entry.name, &spec.title);
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}  {}", entry.name, spec.title);
        let _ = writeln!(text, "  {}", program_line(&spec));
        sources(&spec.sources, &mut text);
        list.push(program_json(entry.name, &spec));
    }
    brief.push_str("\n`cosched list programs NAME` shows figures and their sources\n");
    Ok((
        if names.is_empty() { brief } else { text },
        json!({ "programs": list }),
    ))
}

/// The source of each group of figures; assumed figures are marked.
fn sources(sources: &[(String, Source)], text: &mut String) {
    for (group, source) in sources {
        let _ = writeln!(text, "    {group}: {source}");
    }
}

fn sources_json(sources: &[(String, Source)]) -> Vec<Value> {
    sources
        .iter()
        .map(|(group, source)| source_json(group, source))
        .collect()
}

fn source_json(group: &str, source: &Source) -> Value {
    match source {
        Source::Cited(text) => json!({ "group": group, "assumed": false, "source": text }),
        Source::Assumed(text) => json!({ "group": group, "assumed": true, "source": text }),
    }
}

/// Peak bandwidth of one socket's memory in GB/s.
fn peak_gb_per_s(spec: &MachineSpec) -> f64 {
    f64::from(spec.memory.channels) * spec.memory.gb_per_s_per_channel
}

/// Clocks in GHz, the fastest type of core first.
fn clocks(spec: &MachineSpec) -> String {
    let mut clocks = Vec::new();
    for kind in &spec.core_types {
        let name = if spec.core_types.len() > 1 {
            format!("{} ", kind.name)
        } else {
            String::new()
        };
        clocks.push(format!("{name}{:.2} GHz", kind.ghz));
    }
    clocks.join(" and ")
}

fn machine_line(spec: &MachineSpec) -> String {
    let machine = spec.machine();
    let caches = match machine.llcs.len() {
        1 => format!("LLC {} MB", spec.llc.mb),
        n => format!("{n} LLCs of {} MB", spec.llc.mb),
    };
    let per_socket = if spec.sockets > 1 { " a socket" } else { "" };
    format!(
        "{} on {} and {}; {}; {caches}; memory {:.1} GB/s{per_socket} ({}), {} ns",
        count(machine.cpus.len() as u64, "CPU"),
        count(machine.cores.len() as u64, "core"),
        count(u64::from(spec.sockets), "socket"),
        clocks(spec),
        peak_gb_per_s(spec),
        count(u64::from(spec.memory.channels), "channel"),
        spec.memory.idle_latency_ns,
    )
}

fn machine_json(name: &str, spec: &MachineSpec) -> Value {
    let machine = spec.machine();
    let core_types: Vec<Value> = spec
        .core_types
        .iter()
        .map(|kind| json!({ "name": kind.name, "ghz": kind.ghz }))
        .collect();
    let counts: serde_json::Map<String, Value> = (spec.counters.flags())
        .chain([("energy", spec.counters.energy)])
        .map(|(key, counts)| (key.to_owned(), json!(counts)))
        .collect();
    json!({
        "name": name,
        "title": spec.title,
        "sockets": spec.sockets,
        "cpus": machine.cpus.len(),
        "cores": machine.cores.len(),
        "core_types": core_types,
        "llcs": machine.llcs.len(),
        "llc_mb": spec.llc.mb,
        "memory_channels_per_socket": spec.memory.channels,
        "memory_gb_per_s_per_socket": peak_gb_per_s(spec),
        "memory_idle_latency_ns": spec.memory.idle_latency_ns,
        "counts": counts,
        "params": params_json(&spec.params),
        "sources": sources_json(&spec.sources),
    })
}

/// The parameters as a JSON object: a value that is a number as a number, any other as text.
fn params_json(params: &[(String, String)]) -> Value {
    let mut object = serde_json::Map::new();
    for (name, text) in params {
        let value = match text.parse::<f64>() {
            Ok(number) => json!(number),
            Err(_) => json!(text),
        };
        object.insert(name.clone(), value);
    }
    object.into()
}

fn program_line(spec: &ProgramSpec) -> String {
    let memory = &spec.memory;
    let phases = match spec.phases.len() {
        0 | 1 => String::new(),
        n => format!("; {n} phases"),
    };
    format!(
        "{} cycles an instruction without misses; of 1,000 instructions {} access the L1 cache and {} the LLC; with {} MB \
         of it they read {} lines and write {}{phases}",
        spec.core.cpi,
        spec.core.l1_accesses_per_ki,
        spec.cache.llc_accesses_per_ki,
        memory.at_mb,
        memory.reads_per_ki,
        memory.writes_per_ki,
    )
}

fn program_json(name: &str, spec: &ProgramSpec) -> Value {
    let stall = match spec.memory.stall {
        Stall::Fitted {
            cpi_fixed,
            cpi_per_100_cycles,
            from_cycles,
        } => {
            json!({ "fitted": {
                "cpi_fixed": cpi_fixed, "cpi_per_100_cycles": cpi_per_100_cycles, "from_cycles": from_cycles,
            } })
        }
        Stall::Overlap { mlp } => json!({ "overlap": { "mlp": mlp } }),
    };
    json!({
        "name": name,
        "title": spec.title,
        "cpi": spec.core.cpi,
        "l1_accesses_per_ki": spec.core.l1_accesses_per_ki,
        "llc_accesses_per_ki": spec.cache.llc_accesses_per_ki,
        "llc_misses_per_ki": spec.cache.llc_misses_per_ki,
        "reads_per_ki": spec.memory.reads_per_ki,
        "writes_per_ki": spec.memory.writes_per_ki,
        "at_mb": spec.memory.at_mb,
        "stall": stall,
        "phases": spec.phases.len(),
        "sources": sources_json(&spec.sources),
    })
}
