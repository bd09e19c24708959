//! The machine file, format `cosched.machine/1`: a machine to simulate. Documented in docs/machine-file.md.

use super::builtin::{CURVES, MACHINES, SOUND, find};
use super::curve_file::{builtin_curve, parse_curve};
use super::error::SpecError;
use super::params_table::read_params;
use super::table::{FileTable, Text};
use crate::curve::LatencyCurve;
use crate::machine::{
    CacheReplacement, CoreTypeSpec, CountersSpec, DeviceSpec, KernelSpec, LlcSpec, MachineSpec,
    MemorySpec, PowerSpec, STREAM_LOSS_MOST, SmtSpec,
};
use cosched_core::{Counter, Device, POLICIES, PerCounter, PerDevice};
use std::sync::Arc;

/// Maximum number of CPUs, so that a typing error can't fill the memory.
const MOST_CPUS: u64 = 8192;

/// The kernel's capacity of the fastest type.
const FASTEST: u32 = 1024;

const KEYS: [&str; 16] = [
    "schema",
    "name",
    "title",
    "topology",
    "core_type",
    "smt",
    "llc",
    "memory",
    "latency",
    "disk",
    "net",
    "power",
    "kernel",
    "counters",
    "params",
    // What `cosched calibrate` measured, for itself.
    "measured",
];

/// Returns the text of a latency file that a machine file names, or why it can't be read.
pub(super) type ReadCurve<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Parses a machine file whose latency curve is one of the [`CURVES`](super::CURVES).
///
/// # Errors
/// [`SpecError`]: the first error, with file, line, key and the allowed values.
pub fn parse_machine(text: &str, file: &str) -> Result<MachineSpec, SpecError> {
    let no_files: ReadCurve<'_> = &|_| Err("there are no files here".to_owned());
    parse_machine_with(text, file, no_files)
}

/// Parses a machine file. Its latency curve may be a file beside it.
///
/// # Errors
/// [`SpecError`]: the first error in either file, with file, line, key and the allowed values.
pub fn parse_machine_with(
    text: &str,
    file: &str,
    read_curve: ReadCurve<'_>,
) -> Result<MachineSpec, SpecError> {
    let page = "cosched help machine-file";
    let text = Text { text, file, page };
    let parsed = text.parse()?;
    let top = text.top(&parsed, &KEYS)?;
    top.schema("cosched.machine/1")?;
    let topology = top.figures("topology", &["sockets", "llcs_per_socket", "nodes"])?;
    let sockets = topology.whole("sockets", 1..=64)?;
    let core_types = read_core_types(&top)?;
    let llc = read_llc(&top)?;
    let machine = MachineSpec {
        name: read_name(&top)?,
        title: top.words("title")?,
        nodes: topology.whole_or_one("nodes", 1..=64)?,
        sockets,
        llcs_per_socket: topology.whole("llcs_per_socket", 1..=64)?,
        smt: read_smt(&top, &core_types)?,
        core_types,
        memory: read_memory(&top, sockets, llc.hit_ns, read_curve)?,
        llc,
        devices: PerDevice {
            disk: read_device(&top, Device::Disk)?,
            net: read_device(&top, Device::Net)?,
        },
        power: read_power(&top)?,
        kernel: read_kernel(&top)?,
        counters: read_counters(&top)?,
        params: read_params(&top)?,
    };
    check_size(&topology, &machine)?;
    for policy in POLICIES {
        let params = machine.params_for(policy);
        params.map_err(|error| top.refuse("params", error))?;
    }
    Ok(machine)
}

/// The built-in machine of this name, if any.
pub fn builtin_machine(name: &str) -> Option<MachineSpec> {
    find(MACHINES, name).map(|file| parse_machine(file.text, file.file).expect(SOUND))
}

fn read_name(top: &FileTable<'_>) -> Result<String, SpecError> {
    let name = top.name()?;
    if name == "host" || name == "mine" {
        let expected =
            "another name: `host` and `mine` are the machine on which cosched runs real processes";
        return Err(top.error("name", expected));
    }
    Ok(name)
}

fn check_size(topology: &FileTable<'_>, machine: &MachineSpec) -> Result<(), SpecError> {
    let mut at_llc = 0;
    for kind in &machine.core_types {
        at_llc += u64::from(kind.cores_per_llc * kind.threads_per_core);
    }
    let llcs = machine.nodes * machine.sockets * machine.llcs_per_socket;
    let cpus = u64::from(llcs) * at_llc;
    if cpus > MOST_CPUS {
        let message = format!("the number of CPUs is {cpus}; expected at most {MOST_CPUS}");
        return Err(topology.refuse("sockets", message));
    }
    Ok(())
}

fn read_core_types(top: &FileTable<'_>) -> Result<Vec<CoreTypeSpec>, SpecError> {
    let keys = [
        "source",
        "assumed",
        "name",
        "cores_per_llc",
        "threads_per_core",
        "ghz",
        "capacity",
        "l2_kb",
        "turbo",
        "pipeline",
        "power",
    ];
    let tables = top.tables("core_type", &keys)?;
    let several = tables.len() > 1;
    let mut types: Vec<CoreTypeSpec> = Vec::new();
    for table in tables {
        let table = table.with_source()?;
        let pipeline = table.figures("pipeline", &["cpi_factor", "l1_ports"])?;
        let power = table.figures("power", &["idle_w", "active_w", "nj_per_instruction"])?;
        let name = table.name()?;
        if types.iter().any(|other| other.name == name) {
            return Err(table.error("name", "a name that no other core type has"));
        }
        types.push(CoreTypeSpec {
            name,
            cores_per_llc: table.whole("cores_per_llc", 1..=512)?,
            threads_per_core: table.whole("threads_per_core", 1..=8)?,
            ghz: table.number("ghz", 0.1..=10.0)?,
            turbo: read_turbo(&table)?,
            capacity: read_capacity(&table, several, types.last())?,
            cpi_factor: pipeline.number("cpi_factor", 0.1..=10.0)?,
            l1_ports: pipeline.number("l1_ports", 0.5..=16.0)?,
            l2_kb: table.number("l2_kb", 0.0..=65536.0)?,
            idle_w: power.number("idle_w", 0.0..=1000.0)?,
            active_w: power.number("active_w", 0.0..=1000.0)?,
            nj_per_instruction: power.number("nj_per_instruction", 0.0..=1000.0)?,
        });
    }
    Ok(types)
}

/// Reads the clocks of a core type while few cores of its socket are active.
fn read_turbo(table: &FileTable<'_>) -> Result<Vec<(u32, f64)>, SpecError> {
    let Some(turbo) = table.optional_figures("turbo", &["steps"])? else {
        return Ok(Vec::new());
    };
    let nominal = table.number("ghz", 0.1..=10.0)?;
    let expected =
        "pairs of active cores, whole and ascending, and GHz, ghz to 10, never ascending";
    let steps = turbo.pairs("steps", expected, |before, (cores, ghz)| {
        let (least, most) = before.unwrap_or((0.0, 10.0));
        cores > least && cores <= 4096.0 && cores.fract() == 0.0 && (nominal..=most).contains(&ghz)
    })?;
    Ok(steps
        .iter()
        .map(|&(cores, ghz)| (cores as u32, ghz))
        .collect())
}

/// Reads the capacity of a core type; `before` is the previous type. The kernel distinguishes types by their capacity,
/// so several types need one.
fn read_capacity(
    table: &FileTable<'_>,
    several: bool,
    before: Option<&CoreTypeSpec>,
) -> Result<Option<u32>, SpecError> {
    if !several && !table.has("capacity") {
        return Ok(None);
    }
    let capacity = table.whole("capacity", 1..=FASTEST)?;
    let is_right = match before {
        None => capacity == FASTEST,
        Some(before) => before.capacity.is_none_or(|most| capacity <= most),
    };
    if !is_right {
        let expected = "1024 for the first core type, at most that of the type before for others";
        return Err(table.error("capacity", expected));
    }
    Ok(Some(capacity))
}

fn read_smt(top: &FileTable<'_>, core_types: &[CoreTypeSpec]) -> Result<SmtSpec, SpecError> {
    let has_siblings = core_types.iter().any(|kind| kind.threads_per_core > 1);
    match top.optional_figures("smt", &["issue_share", "l1_wait_cycles"])? {
        Some(smt) => Ok(SmtSpec {
            issue_share: smt.number("issue_share", 0.0..=1.0)?,
            l1_wait_cycles: smt.number("l1_wait_cycles", 0.0..=100.0)?,
        }),
        None if has_siblings => {
            Err(top.error("smt", "a table, since threads_per_core is more than 1"))
        }
        // Without siblings nothing uses these figures.
        None => Ok(SmtSpec {
            issue_share: 0.0,
            l1_wait_cycles: 0.0,
        }),
    }
}

fn read_llc(top: &FileTable<'_>) -> Result<LlcSpec, SpecError> {
    let llc = top.figures("llc", &["mb", "inclusive", "latency", "replacement"])?;
    let latency = llc.figures("latency", &["hit_ns"])?;
    let replacement = match llc.optional_figures("replacement", &["victim"])? {
        Some(replacement) if replacement.choice("victim", &["old", "any"])? == "any" => {
            CacheReplacement::Random
        }
        _ => CacheReplacement::ByAge,
    };
    Ok(LlcSpec {
        mb: llc.number("mb", 0.1..=65536.0)?,
        hit_ns: latency.number("hit_ns", 0.1..=1000.0)?,
        replacement,
        inclusive: llc.flag("inclusive")?,
    })
}

fn read_memory(
    top: &FileTable<'_>,
    sockets: u32,
    hit_ns: f64,
    read_curve: ReadCurve<'_>,
) -> Result<MemorySpec, SpecError> {
    let memory = top.figures("memory", &["channels", "gb_per_s_per_channel", "banks"])?;
    let banks = memory.optional_figures("banks", &["stream_loss", "stream_loss_most"])?;
    let stream_loss_most = match &banks {
        Some(banks) => banks.number_or("stream_loss_most", 0.0..=0.9, STREAM_LOSS_MOST)?,
        None => STREAM_LOSS_MOST,
    };
    let stream_loss = match banks {
        Some(banks) => banks.number("stream_loss", 0.0..=1.0)?,
        None => 0.0,
    };
    let latency = top.figures("latency", &["idle_latency_ns", "remote_ns", "curve"])?;
    let idle_latency_ns = latency.number("idle_latency_ns", 1.0..=10_000.0)?;
    if idle_latency_ns < hit_ns {
        let expected = format!("at least {hit_ns}, the latency of the last-level cache (hit_ns)");
        return Err(latency.error("idle_latency_ns", expected));
    }
    let remote_ns = match sockets {
        1 if !latency.has("remote_ns") => 0.0,
        _ => latency.number("remote_ns", 0.0..=10_000.0)?,
    };
    let curve = curve_of(&latency, read_curve)?;
    Ok(MemorySpec {
        channels: memory.whole("channels", 1..=64)?,
        gb_per_s_per_channel: memory.number("gb_per_s_per_channel", 0.1..=1000.0)?,
        idle_latency_ns,
        remote_ns,
        stream_loss,
        stream_loss_most,
        curve: Arc::new(curve),
    })
}

/// The latency curve: a built-in one, or that of a file.
fn curve_of(latency: &FileTable<'_>, read_curve: ReadCurve<'_>) -> Result<LatencyCurve, SpecError> {
    let name = latency.words("curve").unwrap_or_default();
    if let Some(curve) = builtin_curve(&name) {
        return Ok(curve);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let names: Vec<&str> = CURVES.iter().map(|curve| curve.name).collect();
        let names = names.join("\", \"");
        let expected =
            format!("\"{names}\", or a latency file beside this one, as in \"./my.toml\"");
        return Err(latency.error("curve", expected));
    }
    let text = read_curve(&name);
    let text = text.map_err(|why| latency.refuse("curve", format!("[latency] curve: {why}")))?;
    let (_, curve) = parse_curve(&text, &name)?;
    Ok(curve)
}

fn read_device(top: &FileTable<'_>, device: Device) -> Result<Option<DeviceSpec>, SpecError> {
    let Some(table) = top.optional_figures(device.name(), &["mb_per_s", "stream_cost"])? else {
        return Ok(None);
    };
    Ok(Some(DeviceSpec {
        mb_per_s: table.number("mb_per_s", 0.001..=1e9)?,
        stream_cost: table.number_or("stream_cost", 0.0..=100.0, 0.0)?,
    }))
}

fn read_power(top: &FileTable<'_>) -> Result<PowerSpec, SpecError> {
    let power = top.figures("power", &["static_w", "uncore_w", "nj_per_line"])?;
    Ok(PowerSpec {
        static_w: power.number("static_w", 0.0..=10_000.0)?,
        uncore_w: power.number("uncore_w", 0.0..=1000.0)?,
        nj_per_line: power.number("nj_per_line", 0.0..=1000.0)?,
    })
}

fn read_kernel(top: &FileTable<'_>) -> Result<KernelSpec, SpecError> {
    let kernel = top.figures("kernel", &["period_ms", "min_slice_ms", "switching"])?;
    let keys = [
        "wakeup_granularity_ms",
        "balance_ms",
        "switch_us",
        "migration_us",
    ];
    let switching = kernel.figures("switching", &keys)?;
    let spec = KernelSpec {
        period_ms: kernel.number("period_ms", 0.1..=1000.0)?,
        min_slice_ms: kernel.number("min_slice_ms", 0.1..=1000.0)?,
        wakeup_granularity_ms: switching.number("wakeup_granularity_ms", 0.0..=1000.0)?,
        balance_ms: switching.number("balance_ms", 1.0..=60_000.0)?,
        switch_us: switching.number("switch_us", 0.0..=1000.0)?,
        migration_us: switching.number("migration_us", 0.0..=10_000.0)?,
    };
    if spec.min_slice_ms > spec.period_ms {
        let expected = format!("at most period_ms, {}", spec.period_ms);
        return Err(kernel.error("min_slice_ms", expected));
    }
    Ok(spec)
}

/// Reads the counters' abilities. A counter that the file does not name does not count.
fn read_counters(top: &FileTable<'_>) -> Result<CountersSpec, SpecError> {
    let mut keys = Counter::ALL.map(CountersSpec::key).to_vec();
    keys.dedup();
    keys.extend(["traffic", "energy", "noise"]);
    let table = top.figures("counters", &keys)?;
    let mut counts = PerCounter::default();
    for counter in Counter::ALL {
        counts[counter] = table.flag(CountersSpec::key(counter))?;
    }
    Ok(CountersSpec {
        counts,
        traffic: table.flag("traffic")?,
        energy: table.flag("energy")?,
        noise: table.number("noise", 0.0..=0.5)?,
    })
}
