//! The program file, format `cosched.program/1`: a program's demand on a core, on caches and on memory. Documented in
//! docs/program-file.md.

use super::builtin::{PROGRAMS, SOUND, find};
use super::error::SpecError;
use super::table::{FileTable, Text};
use crate::program::{
    MeasuredHits, ProgramCache, ProgramCore, ProgramMemory, ProgramPhase, ProgramSpec, Stall,
};
use cosched_core::PerDevice;

/// Maximum number of lines written per line read. The built-in programs have at most 1.
const MOST_WRITES: f64 = 100.0;

const KEYS: [&str; 8] = [
    "schema", "name", "title", "length", "core", "cache", "memory", "phases",
];

/// Parses a program file.
///
/// # Errors
/// [`SpecError`]: the first error, with file, line, key and the allowed values.
pub fn parse_program(text: &str, file: &str) -> Result<ProgramSpec, SpecError> {
    let page = "cosched help program-file";
    let text = Text { text, file, page };
    let parsed = text.parse()?;
    let top = text.top(&parsed, &KEYS)?;
    top.schema("cosched.program/1")?;
    let core = read_core(&top)?;
    let cache = read_cache(&top)?;
    Ok(ProgramSpec {
        name: top.name()?,
        title: top.words("title")?,
        instructions: read_length(&top)?,
        memory: read_memory(&top, &core, &cache)?,
        core,
        cache,
        phases: read_phases(&top)?,
    })
}

/// The built-in program of this name, if any.
pub fn builtin_program(name: &str) -> Option<ProgramSpec> {
    find(PROGRAMS, name).map(|file| parse_program(file.text, file.file).expect(SOUND))
}

fn read_length(top: &FileTable<'_>) -> Result<Option<f64>, SpecError> {
    match top.optional_figures("length", &["instructions"])? {
        Some(length) => Ok(Some(length.number("instructions", 1e3..=1e15)?)),
        None => Ok(None),
    }
}

fn read_core(top: &FileTable<'_>) -> Result<ProgramCore, SpecError> {
    let core = top.figures("core", &["cpi", "l1_accesses_per_ki", "hits"])?;
    let hits = match core.optional_figures("hits", &["l2_kb", "llc_cycles"])? {
        Some(hits) => Some(MeasuredHits {
            l2_kb: hits.number("l2_kb", 0.0..=65536.0)?,
            llc_cycles: hits.number("llc_cycles", 1.0..=1000.0)?,
        }),
        None => None,
    };
    Ok(ProgramCore {
        cpi: core.number("cpi", 0.05..=100.0)?,
        // An instruction may load and store more than once. No program accesses more than two lines per instruction.
        l1_accesses_per_ki: core.number("l1_accesses_per_ki", 0.0..=2000.0)?,
        hits,
    })
}

fn read_cache(top: &FileTable<'_>) -> Result<ProgramCache, SpecError> {
    let keys = [
        "l1_misses_per_ki",
        "l2_kb",
        "llc_accesses_per_ki",
        "llc_misses_per_ki",
    ];
    let cache = top.figures("cache", &keys)?;
    let accesses = cache.number("llc_accesses_per_ki", 0.0..=2000.0)?;
    let expected = "pairs of MB, 0.001 to 65536, ascending, and misses, 0 to llc_accesses_per_ki, never ascending";
    let misses = cache.pairs("llc_misses_per_ki", expected, |before, (mb, misses)| {
        let (least_mb, most_misses) = before.unwrap_or((0.0, accesses));
        let is_size = mb > least_mb && (0.001..=65536.0).contains(&mb);
        is_size && (0.0..=most_misses).contains(&misses)
    })?;
    Ok(ProgramCache {
        l1_misses_per_ki: cache.number("l1_misses_per_ki", 0.0..=2000.0)?,
        l2_kb: cache.number_or("l2_kb", 1.0..=65536.0, 1_024.0)?,
        llc_accesses_per_ki: accesses,
        llc_misses_per_ki: misses,
    })
}

fn read_memory(
    top: &FileTable<'_>,
    core: &ProgramCore,
    cache: &ProgramCache,
) -> Result<ProgramMemory, SpecError> {
    let keys = [
        "reads_per_ki",
        "writes_per_ki",
        "at_mb",
        "cpi_fixed",
        "cpi_per_100_cycles",
        "from_cycles",
        "mlp",
    ];
    let memory = top.figures("memory", &keys)?;
    let spec = ProgramMemory {
        reads_per_ki: memory.number("reads_per_ki", 0.0..=2000.0)?,
        writes_per_ki: memory.number("writes_per_ki", 0.0..=2000.0)?,
        at_mb: memory.number("at_mb", 0.0..=65536.0)?,
        stall: read_stall(&memory, core)?,
    };
    if spec.reads_per_ki > 0.0 && misses_at(cache, spec.at_mb) == 0.0 {
        let expected = "0, since with at_mb of cache llc_misses_per_ki has no misses";
        return Err(memory.error("reads_per_ki", expected));
    }
    if spec.writes_per_ki > MOST_WRITES * spec.reads_per_ki {
        let expected = format!("at most {MOST_WRITES} for each line read");
        return Err(memory.error("writes_per_ki", expected));
    }
    Ok(spec)
}

/// Reads the stall time by latency: a number of overlapping misses, or a fit.
fn read_stall(memory: &FileTable<'_>, core: &ProgramCore) -> Result<Stall, SpecError> {
    let fit = ["cpi_fixed", "cpi_per_100_cycles", "from_cycles"];
    let is_fitted = fit.iter().any(|key| memory.has(key));
    if is_fitted == memory.has("mlp") {
        let expected = "either mlp, or cpi_fixed with cpi_per_100_cycles and from_cycles";
        return Err(memory.error("mlp", expected));
    }
    if memory.has_list("mlp") {
        let expected = "1 to 64, or pairs of MB, 0.001 to 65536, ascending, and 1 to 1000";
        let mlp = memory.pairs("mlp", expected, |before, (mb, mlp)| {
            let least_mb = before.map_or(0.0, |(mb, _)| mb);
            mb > least_mb && (0.001..=65536.0).contains(&mb) && (1.0..=1_000.0).contains(&mlp)
        })?;
        return Ok(Stall::OverlapBySize { mlp });
    }
    if !is_fitted {
        let mlp = memory.number("mlp", 1.0..=64.0)?;
        return Ok(Stall::Overlap { mlp });
    }
    let cpi_fixed = memory.number("cpi_fixed", -100.0..=100.0)?;
    let cpi_per_100_cycles = memory.number("cpi_per_100_cycles", 0.0..=1000.0)?;
    let from_cycles = memory.number("from_cycles", 1.0..=10_000.0)?;
    let least = core.cpi - cpi_per_100_cycles * from_cycles / 100.0;
    // The tolerance is for rounding: a fit may start exactly at the core's own figure.
    if cpi_fixed < least - 1e-9 {
        let least = (least * 1e4).ceil() / 1e4;
        let expected = format!("at least {least}, the core's cpi at from_cycles");
        return Err(memory.error("cpi_fixed", expected));
    }
    Ok(Stall::Fitted {
        cpi_fixed,
        cpi_per_100_cycles,
        from_cycles,
    })
}

/// Misses per KI with this much cache: linear from every access at 0 MB through the points.
fn misses_at(cache: &ProgramCache, mb: f64) -> f64 {
    let mut before = (0.0, cache.llc_accesses_per_ki);
    for &point in &cache.llc_misses_per_ki {
        if mb <= point.0 {
            return before.1 + (point.1 - before.1) * (mb - before.0) / (point.0 - before.0);
        }
        before = point;
    }
    before.1
}

fn read_phases(top: &FileTable<'_>) -> Result<Vec<ProgramPhase>, SpecError> {
    let Some(phases) = top.optional_figures("phases", &["parts"])? else {
        return Ok(Vec::new());
    };
    let keys = [&["instructions", "cpi", "memory"][..], &PAUSES].concat();
    let parts = phases.tables("parts", &keys)?;
    parts.iter().map(read_part).collect()
}

/// The ways to leave the CPU after a part.
const PAUSES: [&str; 3] = ["then_sleep_ms", "then_disk_mb", "then_net_mb"];

fn read_part(part: &FileTable<'_>) -> Result<ProgramPhase, SpecError> {
    let mut pauses = PAUSES.iter().filter(|key| part.has(key));
    if let (Some(first), Some(second)) = (pauses.next(), pauses.next()) {
        return Err(part.error(
            second,
            format!("no more than one of these keys, and {first} is there"),
        ));
    }
    Ok(ProgramPhase {
        instructions: part.number("instructions", 1e3..=1e15)?,
        cpi: part.number_or("cpi", 0.01..=100.0, 1.0)?,
        memory: part.number_or("memory", 0.0..=100.0, 1.0)?,
        then_sleep_ms: part.number_or("then_sleep_ms", 0.0..=3.6e6, 0.0)?,
        then_mb: PerDevice {
            disk: part.number_or("then_disk_mb", 0.0..=1e9, 0.0)?,
            net: part.number_or("then_net_mb", 0.0..=1e9, 0.0)?,
        },
    })
}
