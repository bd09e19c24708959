//! The program file, format `cosched.program/1`: what a program asks of a core, of caches and of memory. Documented in
//! docs/program-file.md.

use super::builtin::{PROGRAMS, SOUND, find};
use super::error::SpecError;
use super::text::{Group, Limits, Number, Pairs, Sources, Table, Text, Words};
use crate::program::{
    MeasuredHits, Phase, ProgramCache, ProgramCore, ProgramMemory, ProgramSpec, Stall,
};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// The version of the format.
pub(super) const SCHEMA: &str = "cosched.program/1";

const CPI: Limits = Limits::new("cpi", 0.05, 100.0, "0.6");
// An instruction may load and store more than once. No program accesses more than two lines per instruction.
const L1_ACCESSES: Limits = Limits::new("l1_accesses_per_ki", 0.0, 2000.0, "380");
const HITS_L2: Limits = Limits::new("l2_kb", 0.0, 65536.0, "256");
const HITS_CYCLES: Limits = Limits::new("llc_cycles", 1.0, 1000.0, "36");
const L1_MISSES: Limits = Limits::new("l1_misses_per_ki", 0.0, 2000.0, "24.1");
const LLC_ACCESSES: Limits = Limits::new("llc_accesses_per_ki", 0.0, 2000.0, "6.4");
const SIZE: Limits = Limits::new("llc_misses_per_ki", 0.001, 65536.0, "MB");
const LLC_MISSES: Limits = Limits::new("llc_misses_per_ki", 0.0, 2000.0, "misses");
const READS: Limits = Limits::new("reads_per_ki", 0.0, 2000.0, "4.9");
/// Lines written for each line read. The built-in programs have at most 1.
const MOST_WRITES: f64 = 100.0;
const WRITES: Limits = Limits::new("writes_per_ki", 0.0, 2000.0, "2.4");
const AT_MB: Limits = Limits::new("at_mb", 0.0, 65536.0, "2.5");
const CPI_FIXED: Limits = Limits::new("cpi_fixed", -100.0, 100.0, "0.62");
const CPI_SLOPE: Limits = Limits::new("cpi_per_100_cycles", 0.0, 1000.0, "0.254");
const FROM_CYCLES: Limits = Limits::new("from_cycles", 1.0, 10_000.0, "228");
const MLP: Limits = Limits::new("mlp", 1.0, 64.0, "2");
const INSTRUCTIONS: Limits = Limits::new("instructions", 1e3, 1e15, "20e9");
const PHASE_CPI: Limits = Limits::new("cpi", 0.01, 100.0, "1.0");
const PHASE_MEMORY: Limits = Limits::new("memory", 0.0, 100.0, "1.5");
const SLEEP: Limits = Limits::new("then_sleep_ms", 0.0, 3.6e6, "20");

const MISSES_EXAMPLE: &str = "[[1.75, 4.3], [7, 1.5], [19.25, 0.2]]";
const PARTS_EXAMPLE: &str =
    "parts = [{ instructions = 20e9, memory = 1.5 }, { instructions = 20e9, memory = 0.5 }]";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Words,
    name: Words,
    title: Words,
    length: Table<Length>,
    core: Table<Core>,
    cache: Table<Cache>,
    memory: Table<Memory>,
    phases: Table<Phases>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    source: Words,
    assumed: Words,
    instructions: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Core {
    source: Words,
    assumed: Words,
    cpi: Number,
    l1_accesses_per_ki: Number,
    hits: Table<Hits>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hits {
    source: Words,
    assumed: Words,
    l2_kb: Number,
    llc_cycles: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    source: Words,
    assumed: Words,
    l1_misses_per_ki: Number,
    llc_accesses_per_ki: Number,
    llc_misses_per_ki: Pairs,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    source: Words,
    assumed: Words,
    reads_per_ki: Number,
    writes_per_ki: Number,
    at_mb: Number,
    cpi_fixed: Number,
    cpi_per_100_cycles: Number,
    from_cycles: Number,
    mlp: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Phases {
    source: Words,
    assumed: Words,
    #[serde(default)]
    parts: Vec<Spanned<Part>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    instructions: Number,
    cpi: Number,
    memory: Number,
    then_sleep_ms: Number,
}

/// Reads a program file's text.
///
/// # Errors
/// [`SpecError`]: the first problem, with file, line and key, and what would be right.
pub fn parse_program(text: &str, file: &str) -> Result<ProgramSpec, SpecError> {
    let text = Text {
        text,
        file,
        page: "cosched man program-file",
    };
    let parsed: File = text.read()?;
    let top = text.top();
    top.schema(&parsed.schema, SCHEMA)?;
    let name = top.name(parsed.name, "astar")?;
    let title = top.words(parsed.title, "title", "path finding on maps")?;
    let mut sources = Sources::default();

    let instructions = read_length(&text, parsed.length, &mut sources)?;
    let core = read_core(&text, parsed.core, &mut sources)?;
    let (group, cache) = text.table("[cache]", parsed.cache)?;
    sources.add(&group, cache.source, cache.assumed)?;
    let cache = read_cache(
        &group,
        cache.l1_misses_per_ki,
        (cache.llc_accesses_per_ki, cache.llc_misses_per_ki),
    )?;
    let (group, memory) = text.table("[memory]", parsed.memory)?;
    let memory = read_memory(&group, memory, &core, &cache, &mut sources)?;
    let phases = read_phases(&text, parsed.phases, &mut sources)?;
    Ok(ProgramSpec {
        name,
        title,
        instructions,
        core,
        cache,
        memory,
        phases,
        sources: sources.in_order(),
    })
}

/// The program of this name, if one comes with the simulator.
pub fn builtin_program(name: &str) -> Option<ProgramSpec> {
    find(PROGRAMS, name).map(|file| parse_program(file.text, file.file).expect(SOUND))
}

fn read_length(
    text: &Text<'_>,
    length: Table<Length>,
    sources: &mut Sources,
) -> Result<Option<f64>, SpecError> {
    let Some(length) = length else {
        return Ok(None);
    };
    let (group, length) = text.group("[length]", length);
    sources.add(&group, length.source, length.assumed)?;
    group.number(length.instructions, &INSTRUCTIONS).map(Some)
}

fn read_core(
    text: &Text<'_>,
    core: Table<Core>,
    sources: &mut Sources,
) -> Result<ProgramCore, SpecError> {
    let (group, core) = text.table("[core]", core)?;
    sources.add(&group, core.source, core.assumed)?;
    let cpi = group.number(core.cpi, &CPI)?;
    let l1_accesses_per_ki = group.number(core.l1_accesses_per_ki, &L1_ACCESSES)?;
    let hits = match core.hits {
        None => None,
        Some(hits) => {
            let (group, hits) = text.group("[core.hits]", hits);
            sources.add(&group, hits.source, hits.assumed)?;
            Some(MeasuredHits {
                l2_kb: group.number(hits.l2_kb, &HITS_L2)?,
                llc_cycles: group.number(hits.llc_cycles, &HITS_CYCLES)?,
            })
        }
    };
    Ok(ProgramCore {
        cpi,
        l1_accesses_per_ki,
        hits,
    })
}

fn read_phases(
    text: &Text<'_>,
    phases: Table<Phases>,
    sources: &mut Sources,
) -> Result<Vec<Phase>, SpecError> {
    let Some(phases) = phases else {
        return Ok(Vec::new());
    };
    let (group, phases) = text.group("[phases]", phases);
    sources.add(&group, phases.source, phases.assumed)?;
    if phases.parts.is_empty() {
        return Err(group.missing("parts", "at least one part", PARTS_EXAMPLE));
    }
    let parts = phases.parts.into_iter();
    parts.map(|part| read_part(text, part)).collect()
}

fn read_cache(
    group: &Group<'_>,
    l1_misses: Number,
    (accesses, misses): (Number, Pairs),
) -> Result<ProgramCache, SpecError> {
    let l1_misses_per_ki = group.number(l1_misses, &L1_MISSES)?;
    let llc_accesses_per_ki = group.number(accesses, &LLC_ACCESSES)?;
    let mut before = (0.0, llc_accesses_per_ki);
    let mut llc_misses_per_ki = Vec::new();
    for (span, (mb, misses)) in group.pairs(misses, (&SIZE, &LLC_MISSES), MISSES_EXAMPLE)? {
        if misses > before.1 {
            let found = format!("{misses} at {mb} MB");
            let expected = format!(
                "at most {} as with {} MB: with nothing in the cache every access (llc_accesses_per_ki) misses, and more \
                 cache never makes more misses",
                before.1, before.0
            );
            return Err(group.wrong(
                span,
                LLC_MISSES.key,
                found,
                expected,
                format!("{} = {MISSES_EXAMPLE}", LLC_MISSES.key),
            ));
        }
        before = (mb, misses);
        llc_misses_per_ki.push(before);
    }
    Ok(ProgramCache {
        l1_misses_per_ki,
        llc_accesses_per_ki,
        llc_misses_per_ki,
    })
}

fn read_memory(
    group: &Group<'_>,
    memory: Memory,
    core: &ProgramCore,
    cache: &ProgramCache,
    sources: &mut Sources,
) -> Result<ProgramMemory, SpecError> {
    sources.add(group, memory.source, memory.assumed)?;
    let reads_span = memory.reads_per_ki.as_ref().map_or(0..0, Spanned::span);
    let writes_span = memory.writes_per_ki.as_ref().map_or(0..0, Spanned::span);
    let reads_per_ki = group.number(memory.reads_per_ki, &READS)?;
    let writes_per_ki = group.number(memory.writes_per_ki, &WRITES)?;
    let at_mb = group.number(memory.at_mb, &AT_MB)?;
    check_uses(
        cache,
        at_mb,
        group,
        [
            (reads_per_ki, reads_span),
            (writes_per_ki, writes_span.clone()),
        ],
    )?;
    check_writes(reads_per_ki, writes_per_ki, group, writes_span)?;
    let fitted = memory.cpi_fixed.is_some()
        || memory.cpi_per_100_cycles.is_some()
        || memory.from_cycles.is_some();
    let either = "either mlp, or cpi_fixed with cpi_per_100_cycles and from_cycles";
    let stall = match memory.mlp {
        Some(mlp) if fitted => {
            return Err(group.wrong(mlp.span(), MLP.key, "given beside a fit", either, "mlp = 2"));
        }
        None if !fitted => return Err(group.missing(MLP.key, either, "mlp = 2")),
        Some(mlp) => Stall::Overlap {
            mlp: group.number(Some(mlp), &MLP)?,
        },
        None => read_fitted_stall(
            group,
            memory.cpi_fixed,
            memory.cpi_per_100_cycles,
            memory.from_cycles,
            core,
        )?,
    };
    Ok(ProgramMemory {
        reads_per_ki,
        writes_per_ki,
        at_mb,
        stall,
    })
}

/// Checks that a program without misses does not use memory, whose use is scaled with the misses.
fn check_uses(
    cache: &ProgramCache,
    at_mb: f64,
    group: &Group<'_>,
    [reads, writes]: [(f64, Range<usize>); 2],
) -> Result<(), SpecError> {
    if misses_at(cache, at_mb) > 0.0 {
        return Ok(());
    }
    for (key, (lines, span)) in [(READS.key, reads), (WRITES.key, writes)] {
        if lines > 0.0 {
            let expected = format!(
                "0, since with {at_mb} MB (at_mb) the program has no misses by llc_misses_per_ki"
            );
            return Err(group.wrong(span, key, lines, expected, format!("{key} = 0")));
        }
    }
    Ok(())
}

fn check_writes(
    reads: f64,
    writes: f64,
    group: &Group<'_>,
    span: Range<usize>,
) -> Result<(), SpecError> {
    if writes <= MOST_WRITES * reads {
        return Ok(());
    }
    // Rounded down, so that the figure itself is allowed.
    let most = (MOST_WRITES * reads * 1e6).floor() / 1e6;
    let expected = format!(
        "at most {most} ({MOST_WRITES} for each line read), since in the simulation writes follow the reads"
    );
    Err(group.wrong(span, WRITES.key, writes, expected, "writes_per_ki = 0"))
}

fn read_fitted_stall(
    group: &Group<'_>,
    fixed: Number,
    slope: Number,
    from: Number,
    core: &ProgramCore,
) -> Result<Stall, SpecError> {
    let span = fixed.as_ref().map_or(0..0, Spanned::span);
    let cpi_fixed = group.number(fixed, &CPI_FIXED)?;
    let cpi_per_100_cycles = group.number(slope, &CPI_SLOPE)?;
    let from_cycles = group.number(from, &FROM_CYCLES)?;
    let least = core.cpi - cpi_per_100_cycles * from_cycles / 100.0;
    // The tolerance is for rounding: a fit may begin exactly at the core's own figure.
    if cpi_fixed < least - 1e-9 {
        let expected = format!(
            "at least {}, so that at from_cycles the program is not faster than without any miss ([core] cpi)",
            (least * 1e4).ceil() / 1e4
        );
        let example = "cpi_fixed = 0.62";
        return Err(group.wrong(span, CPI_FIXED.key, cpi_fixed, expected, example));
    }
    Ok(Stall::Fitted {
        cpi_fixed,
        cpi_per_100_cycles,
        from_cycles,
    })
}

/// Misses per KI with this much of the cache: linear from every access at 0 MB through the points.
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

fn read_part(text: &Text<'_>, part: Spanned<Part>) -> Result<Phase, SpecError> {
    let (group, part) = text.group("[phases] parts", part);
    Ok(Phase {
        instructions: group.number(part.instructions, &INSTRUCTIONS)?,
        cpi: group.number_or(part.cpi, &PHASE_CPI, 1.0)?,
        memory: group.number_or(part.memory, &PHASE_MEMORY, 1.0)?,
        then_sleep_ms: group.number_or(part.then_sleep_ms, &SLEEP, 0.0)?,
    })
}
