//! The machine file, format `cosched.machine/1`: a machine to simulate. Documented in docs/machine-file.md.

use super::builtin::{CURVES, MACHINES, SOUND, find};
use super::counters_table::read_counters;
use super::curve_file::builtin_curve;
use super::error::SpecError;
use super::params::{ParamTable, read_params};
use super::text::{Group, Limits, Number, Sources, Table, Text, Words};
use crate::curve::LatencyCurve;
use crate::machine::{
    CoreTypeSpec, KernelSpec, LlcSpec, MachineSpec, MemorySpec, PowerSpec, Replacement,
    STREAM_LOSS_MOST, SmtSpec,
};
use crate::source::Source;
use serde::Deserialize;
use std::sync::Arc;
use toml::Spanned;

/// The version of the format.
pub(super) const SCHEMA: &str = "cosched.machine/1";

/// More CPUs than any machine has, so that a typing error can't fill the memory.
const MOST_CPUS: u32 = 8192;

const SOCKETS: Limits = Limits::new("sockets", 1.0, 64.0, "1");
const LLCS: Limits = Limits::new("llcs_per_socket", 1.0, 64.0, "1");
const CORES: Limits = Limits::new("cores_per_llc", 1.0, 512.0, "6");
const THREADS: Limits = Limits::new("threads_per_core", 1.0, 8.0, "2");
const GHZ: Limits = Limits::new("ghz", 0.1, 10.0, "2.4");
/// The kernel's capacity of the fastest type.
const FASTEST: u32 = 1024;
const CAPACITY: Limits = Limits::new("capacity", 1.0, 1024.0, "1024");
const L2_KB: Limits = Limits::new("l2_kb", 0.0, 65536.0, "256");
const CPI_FACTOR: Limits = Limits::new("cpi_factor", 0.1, 10.0, "1.0");
const L1_PORTS: Limits = Limits::new("l1_ports", 0.5, 16.0, "2");
const IDLE_W: Limits = Limits::new("idle_w", 0.0, 1000.0, "0.7");
const ACTIVE_W: Limits = Limits::new("active_w", 0.0, 1000.0, "5");
const NJ_INSTRUCTION: Limits = Limits::new("nj_per_instruction", 0.0, 1000.0, "1.2");
const ISSUE_SHARE: Limits = Limits::new("issue_share", 0.0, 1.0, "0.4");
const L1_WAIT: Limits = Limits::new("l1_wait_cycles", 0.0, 100.0, "1.0");
const LLC_MB: Limits = Limits::new("mb", 0.1, 65536.0, "12");
const HIT_NS: Limits = Limits::new("hit_ns", 0.1, 1000.0, "15");
const CHANNELS: Limits = Limits::new("channels", 1.0, 64.0, "3");
const CHANNEL_GB_S: Limits = Limits::new("gb_per_s_per_channel", 0.1, 1000.0, "10.667");
const IDLE_NS: Limits = Limits::new("idle_latency_ns", 1.0, 10_000.0, "76");
const REMOTE_NS: Limits = Limits::new("remote_ns", 0.0, 10_000.0, "80");
const STREAM_LOSS: Limits = Limits::new("stream_loss", 0.0, 1.0, "0.025");
const STATIC_W: Limits = Limits::new("static_w", 0.0, 10_000.0, "26.6");
const UNCORE_W: Limits = Limits::new("uncore_w", 0.0, 1000.0, "8");
const NJ_LINE: Limits = Limits::new("nj_per_line", 0.0, 1000.0, "18");
const PERIOD: Limits = Limits::new("period_ms", 0.1, 1000.0, "18");
const MIN_SLICE: Limits = Limits::new("min_slice_ms", 0.1, 1000.0, "4");
const WAKEUP: Limits = Limits::new("wakeup_granularity_ms", 0.0, 1000.0, "1");
const BALANCE: Limits = Limits::new("balance_ms", 1.0, 60_000.0, "32");
const SWITCH: Limits = Limits::new("switch_us", 0.0, 1000.0, "3");
const MIGRATION: Limits = Limits::new("migration_us", 0.0, 10_000.0, "30");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Words,
    name: Words,
    title: Words,
    topology: Table<Topology>,
    #[serde(default)]
    core_type: Vec<Spanned<CoreType>>,
    smt: Table<Smt>,
    llc: Table<Llc>,
    memory: Table<Memory>,
    latency: Table<Latency>,
    power: Table<Power>,
    kernel: Table<Kernel>,
    counters: Table<ParamTable>,
    params: Table<ParamTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topology {
    source: Words,
    assumed: Words,
    sockets: Number,
    llcs_per_socket: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoreType {
    source: Words,
    assumed: Words,
    name: Words,
    cores_per_llc: Number,
    threads_per_core: Number,
    ghz: Number,
    capacity: Number,
    l2_kb: Number,
    pipeline: Table<Pipeline>,
    power: Table<CorePower>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pipeline {
    source: Words,
    assumed: Words,
    cpi_factor: Number,
    l1_ports: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorePower {
    source: Words,
    assumed: Words,
    idle_w: Number,
    active_w: Number,
    nj_per_instruction: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Smt {
    source: Words,
    assumed: Words,
    issue_share: Number,
    l1_wait_cycles: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Llc {
    source: Words,
    assumed: Words,
    mb: Number,
    latency: Table<LlcLatency>,
    replacement: Table<ReplacementTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LlcLatency {
    source: Words,
    assumed: Words,
    hit_ns: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplacementTable {
    source: Words,
    assumed: Words,
    first: Words,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    source: Words,
    assumed: Words,
    channels: Number,
    gb_per_s_per_channel: Number,
    banks: Table<Banks>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Banks {
    source: Words,
    assumed: Words,
    stream_loss: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    source: Words,
    assumed: Words,
    idle_latency_ns: Number,
    remote_ns: Number,
    curve: Words,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Power {
    source: Words,
    assumed: Words,
    static_w: Number,
    uncore_w: Number,
    nj_per_line: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel {
    source: Words,
    assumed: Words,
    period_ms: Number,
    min_slice_ms: Number,
    switching: Table<Switching>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switching {
    source: Words,
    assumed: Words,
    wakeup_granularity_ms: Number,
    balance_ms: Number,
    switch_us: Number,
    migration_us: Number,
}

/// Reads a machine file's text. It names one of the [`CURVES`](super::CURVES) as its latency curve.
///
/// # Errors
/// [`SpecError`]: the first problem, with file, line and key, and what would be right.
pub fn parse_machine(text: &str, file: &str) -> Result<MachineSpec, SpecError> {
    let text = Text {
        text,
        file,
        page: "cosched man machine-file",
    };
    let parsed: File = text.read()?;
    let top = text.top();
    top.schema(&parsed.schema, SCHEMA)?;
    let name_span = parsed.name.as_ref().map_or(0..0, Spanned::span);
    let name = top.name(parsed.name, "i5-2500")?;
    if name == "host" {
        let expected = "another name: `host` is the machine on which cosched runs real processes";
        return Err(top.wrong(name_span, "name", "`host`", expected, "name = \"my-host\""));
    }
    let title = top.words(parsed.title, "title", "Intel Core i5-2500, four cores")?;
    let mut sources = Sources::default();

    let (group, topology) = text.table("[topology]", parsed.topology)?;
    sources.add(&group, topology.source, topology.assumed)?;
    let sockets = group.whole(topology.sockets, &SOCKETS)?;
    let llcs_per_socket = group.whole(topology.llcs_per_socket, &LLCS)?;

    let core_types = read_core_types(&text, parsed.core_type, &mut sources)?;
    let llcs = sockets * llcs_per_socket;
    check_size(&top, llcs, &core_types)?;
    let smt = read_smt(&text, parsed.smt, &core_types, &mut sources)?;
    let llc = read_llc(&text, parsed.llc, &mut sources)?;
    let (memory, curve_source) = read_memory(
        &text,
        parsed.memory,
        parsed.latency,
        sockets,
        &llc,
        &mut sources,
    )?;
    let (group, power) = text.table("[power]", parsed.power)?;
    sources.add(&group, power.source, power.assumed)?;
    let power = PowerSpec {
        static_w: group.number(power.static_w, &STATIC_W)?,
        uncore_w: group.number(power.uncore_w, &UNCORE_W)?,
        nj_per_line: group.number(power.nj_per_line, &NJ_LINE)?,
    };
    let (group, kernel) = text.table("[kernel]", parsed.kernel)?;
    let kernel = read_kernel(&text, &group, kernel, &mut sources)?;
    let (group, counters) = text.table("[counters]", parsed.counters)?;
    let counters = read_counters(&group, counters, &mut sources)?;
    let params = match parsed.params {
        Some(params) => {
            let (group, params) = text.group("[params]", params);
            read_params(&group, params, &mut sources)?
        }
        None => Vec::new(),
    };
    let mut sources = sources.in_order();
    sources.push(curve_source);
    Ok(MachineSpec {
        name,
        title,
        sockets,
        llcs_per_socket,
        core_types,
        smt,
        llc,
        memory,
        power,
        kernel,
        counters,
        params,
        sources,
    })
}

/// The machine of this name, if one comes with the simulator.
pub fn builtin_machine(name: &str) -> Option<MachineSpec> {
    find(MACHINES, name).map(|file| parse_machine(file.text, file.file).expect(SOUND))
}

fn check_size(top: &Group<'_>, llcs: u32, core_types: &[CoreTypeSpec]) -> Result<(), SpecError> {
    let mut at_llc = 0;
    for kind in core_types {
        at_llc += u64::from(kind.cores_per_llc * kind.threads_per_core);
    }
    let cpus = u64::from(llcs) * at_llc;
    if cpus <= u64::from(MOST_CPUS) {
        return Ok(());
    }
    let expected = format!("at most {MOST_CPUS}");
    let example = "sockets = 1, llcs_per_socket = 1, cores_per_llc = 6, threads_per_core = 2";
    Err(top.wrong(0..0, "the number of CPUs", cpus, expected, example))
}

fn read_smt(
    text: &Text<'_>,
    smt: Table<Smt>,
    core_types: &[CoreTypeSpec],
    sources: &mut Sources,
) -> Result<SmtSpec, SpecError> {
    if let Some(smt) = smt {
        let (group, smt) = text.group("[smt]", smt);
        sources.add(&group, smt.source, smt.assumed)?;
        return Ok(SmtSpec {
            issue_share: group.number(smt.issue_share, &ISSUE_SHARE)?,
            l1_wait_cycles: group.number(smt.l1_wait_cycles, &L1_WAIT)?,
        });
    }
    if core_types.iter().any(|kind| kind.threads_per_core > 1) {
        let expected = "the table, since threads_per_core is more than 1";
        let example = "[smt], with issue_share = 0.4 and l1_wait_cycles = 1.0";
        return Err(text.top().missing("[smt]", expected, example));
    }
    // Without siblings nothing uses these figures.
    Ok(SmtSpec {
        issue_share: 0.0,
        l1_wait_cycles: 0.0,
    })
}

fn read_llc(text: &Text<'_>, llc: Table<Llc>, sources: &mut Sources) -> Result<LlcSpec, SpecError> {
    let (group, llc) = text.table("[llc]", llc)?;
    sources.add(&group, llc.source, llc.assumed)?;
    let mb = group.number(llc.mb, &LLC_MB)?;
    let replacement = match llc.replacement {
        None => Replacement::UnusedFirst,
        Some(replacement) => {
            let (group, replacement) = text.group("[llc.replacement]", replacement);
            sources.add(&group, replacement.source, replacement.assumed)?;
            read_replacement(&group, replacement.first)?
        }
    };
    let (group, latency) = text.table("[llc.latency]", llc.latency)?;
    sources.add(&group, latency.source, latency.assumed)?;
    Ok(LlcSpec {
        mb,
        hit_ns: group.number(latency.hit_ns, &HIT_NS)?,
        replacement,
    })
}

/// Reads the memory of a socket; also gives the source of its latency curve.
fn read_memory(
    text: &Text<'_>,
    memory: Table<Memory>,
    latency: Table<Latency>,
    sockets: u32,
    llc: &LlcSpec,
    sources: &mut Sources,
) -> Result<(MemorySpec, (String, Source)), SpecError> {
    let (group, memory) = text.table("[memory]", memory)?;
    sources.add(&group, memory.source, memory.assumed)?;
    let channels = group.whole(memory.channels, &CHANNELS)?;
    let gb_per_s_per_channel = group.number(memory.gb_per_s_per_channel, &CHANNEL_GB_S)?;
    let stream_loss = match memory.banks {
        None => 0.0,
        Some(banks) => {
            let (group, banks) = text.group("[memory.banks]", banks);
            sources.add(&group, banks.source, banks.assumed)?;
            group.number(banks.stream_loss, &STREAM_LOSS)?
        }
    };
    let (group, latency) = text.table("[latency]", latency)?;
    sources.add(&group, latency.source, latency.assumed)?;
    let idle_latency_ns = read_idle_latency(&group, latency.idle_latency_ns, llc.hit_ns)?;
    let remote_ns = match sockets {
        1 => group.number_or(latency.remote_ns, &REMOTE_NS, 0.0)?,
        _ => group.number(latency.remote_ns, &REMOTE_NS)?,
    };
    let (curve, curve_source) = read_curve(&group, latency.curve)?;
    let memory = MemorySpec {
        channels,
        gb_per_s_per_channel,
        idle_latency_ns,
        remote_ns,
        stream_loss,
        stream_loss_most: STREAM_LOSS_MOST,
        curve: Arc::new(curve),
    };
    Ok((memory, curve_source))
}

fn read_idle_latency(group: &Group<'_>, idle: Number, hit_ns: f64) -> Result<f64, SpecError> {
    let span = idle.as_ref().map_or(0..0, Spanned::span);
    let ns = group.number(idle, &IDLE_NS)?;
    if ns >= hit_ns {
        return Ok(ns);
    }
    let expected =
        format!("at least {hit_ns}, the latency of the last-level cache ([llc.latency] hit_ns)");
    Err(group.wrong(span, IDLE_NS.key, ns, expected, IDLE_NS.example()))
}

fn read_core_types(
    text: &Text<'_>,
    tables: Vec<Spanned<CoreType>>,
    sources: &mut Sources,
) -> Result<Vec<CoreTypeSpec>, SpecError> {
    let several = tables.len() > 1;
    if tables.is_empty() {
        let example = "[[core_type]], with name = \"core\", cores_per_llc = 6 and its other keys";
        return Err(text
            .top()
            .missing("[[core_type]]", "a table for each type of core", example));
    }
    let mut types: Vec<CoreTypeSpec> = Vec::new();
    for table in tables {
        let (group, table) = text.group("[[core_type]]", table);
        let name = read_type_name(&group, table.name, &types)?;
        sources.add_named(&group, &name, table.source, table.assumed)?;
        let capacity = read_capacity(&group, table.capacity, several, types.last())?;
        let cores_per_llc = group.whole(table.cores_per_llc, &CORES)?;
        let threads_per_core = group.whole(table.threads_per_core, &THREADS)?;
        let ghz = group.number(table.ghz, &GHZ)?;
        let l2_kb = group.number(table.l2_kb, &L2_KB)?;
        let pipeline = (table.pipeline).ok_or_else(|| missing_part(&group, "pipeline"))?;
        let power = (table.power).ok_or_else(|| missing_part(&group, "power"))?;
        let (group, pipeline) = text.group("[core_type.pipeline]", pipeline);
        sources.add_named(&group, &name, pipeline.source, pipeline.assumed)?;
        let cpi_factor = group.number(pipeline.cpi_factor, &CPI_FACTOR)?;
        let l1_ports = group.number(pipeline.l1_ports, &L1_PORTS)?;
        let (group, power) = text.group("[core_type.power]", power);
        sources.add_named(&group, &name, power.source, power.assumed)?;
        types.push(CoreTypeSpec {
            cores_per_llc,
            threads_per_core,
            ghz,
            capacity,
            cpi_factor,
            l1_ports,
            l2_kb,
            idle_w: group.number(power.idle_w, &IDLE_W)?,
            active_w: group.number(power.active_w, &ACTIVE_W)?,
            nj_per_instruction: group.number(power.nj_per_instruction, &NJ_INSTRUCTION)?,
            name,
        });
    }
    Ok(types)
}

fn missing_part(group: &Group<'_>, key: &str) -> SpecError {
    group.missing(
        key,
        "the table",
        format!("[core_type.{key}], with its keys"),
    )
}

fn read_type_name(
    group: &Group<'_>,
    name: Words,
    types: &[CoreTypeSpec],
) -> Result<String, SpecError> {
    let span = name.as_ref().map_or(0..0, Spanned::span);
    let name = group.name(name, "core")?;
    if types.iter().any(|other| other.name == name) {
        let found = format!("`{name}` again");
        let expected = "a name that no other core type has";
        return Err(group.wrong(span, "name", found, expected, "name = \"small\""));
    }
    Ok(name)
}

/// Reads the capacity of a core type; `before` is the type before it. The kernel tells several types apart by their
/// capacity, so they need one.
fn read_capacity(
    group: &Group<'_>,
    capacity: Number,
    several: bool,
    before: Option<&CoreTypeSpec>,
) -> Result<Option<u32>, SpecError> {
    if capacity.is_none() && !several {
        return Ok(None);
    }
    let span = capacity.as_ref().map_or(0..0, Spanned::span);
    let capacity = group.whole(capacity, &CAPACITY)?;
    let is_right = match before {
        None => capacity == FASTEST,
        Some(before) => before.capacity.is_none_or(|most| capacity <= most),
    };
    if !is_right {
        let expected = "1024 for the first core type, and for each other one at most that of the type before it";
        return Err(group.wrong(span, "capacity", capacity, expected, "capacity = 1024"));
    }
    Ok(Some(capacity))
}

fn read_replacement(group: &Group<'_>, first: Words) -> Result<Replacement, SpecError> {
    let (expected, example) = ("`unused` or `any`", "first = \"unused\"");
    let Some(first) = first else {
        return Err(group.missing("first", expected, example));
    };
    match first.as_ref().as_str() {
        "unused" => Ok(Replacement::UnusedFirst),
        "any" => Ok(Replacement::Random),
        other => Err(group.wrong(
            first.span(),
            "first",
            format!("`{other}`"),
            expected,
            example,
        )),
    }
}

fn read_curve(
    group: &Group<'_>,
    curve: Words,
) -> Result<(LatencyCurve, (String, Source)), SpecError> {
    let names: Vec<&str> = CURVES.iter().map(|curve| curve.name).collect();
    let (expected, example) = (
        format!("one of {}", names.join(", ")),
        format!("curve = \"{}\"", names[0]),
    );
    let Some(name) = curve else {
        return Err(group.missing("curve", expected, example));
    };
    match builtin_curve(name.as_ref()) {
        Some((curve, source)) => Ok((curve, (format!("curve {}", name.as_ref()), source))),
        None => Err(group.wrong(
            name.span(),
            "curve",
            format!("`{}`", name.as_ref()),
            expected,
            example,
        )),
    }
}

fn read_kernel(
    text: &Text<'_>,
    group: &Group<'_>,
    kernel: Kernel,
    sources: &mut Sources,
) -> Result<KernelSpec, SpecError> {
    sources.add(group, kernel.source, kernel.assumed)?;
    let period_ms = group.number(kernel.period_ms, &PERIOD)?;
    let slice_span = kernel.min_slice_ms.as_ref().map_or(0..0, Spanned::span);
    let min_slice_ms = group.number(kernel.min_slice_ms, &MIN_SLICE)?;
    if min_slice_ms > period_ms {
        let expected = format!("at most period_ms, {period_ms}");
        let example = format!("{} = {period_ms}", MIN_SLICE.key);
        return Err(group.wrong(slice_span, MIN_SLICE.key, min_slice_ms, expected, example));
    }
    let (group, switching) = text.table("[kernel.switching]", kernel.switching)?;
    sources.add(&group, switching.source, switching.assumed)?;
    Ok(KernelSpec {
        period_ms,
        min_slice_ms,
        wakeup_granularity_ms: group.number(switching.wakeup_granularity_ms, &WAKEUP)?,
        balance_ms: group.number(switching.balance_ms, &BALANCE)?,
        switch_us: group.number(switching.switch_us, &SWITCH)?,
        migration_us: group.number(switching.migration_us, &MIGRATION)?,
    })
}
