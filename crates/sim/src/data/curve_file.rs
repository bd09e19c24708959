//! The latency file, format `cosched.latency/1`: loaded latency against bandwidth. Documented in docs/machine-file.md.

use super::builtin::{CURVES, SOUND, find};
use super::error::SpecError;
use super::text::{Group, Limits, Number, Pairs, Text, Words};
use crate::curve::{LatencyCurve, LatencyLine};
use crate::source::Source;
use serde::Deserialize;
use toml::Spanned;

/// The version of the format.
pub(super) const SCHEMA: &str = "cosched.latency/1";

const READS: Limits = Limits::new("reads", 0.01, 1.0, "0.5");
/// Latency beyond the last point is not known, so the last point should be above what the memory can do.
const BANDWIDTH: Limits = Limits::new("points", 0.0, 1.0, "bandwidth by peak");
const LATENCY: Limits = Limits::new("points", 1.0, 1000.0, "latency by idle latency");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Words,
    name: Words,
    title: Words,
    source: Words,
    assumed: Words,
    #[serde(default)]
    line: Vec<Spanned<Line>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    reads: Number,
    points: Pairs,
}

/// Reads a latency file's text: its name, the curve, and its source.
///
/// # Errors
/// [`SpecError`]: the first problem, with file, line and key, and what would be right.
pub fn parse_curve(text: &str, file: &str) -> Result<(String, LatencyCurve, Source), SpecError> {
    let text = Text {
        text,
        file,
        page: "cosched man machine-file",
    };
    let parsed: File = text.read()?;
    let top = text.top();
    top.schema(&parsed.schema, SCHEMA)?;
    let name = top.name(parsed.name, "ddr3-1333")?;
    top.words(parsed.title, "title", "DDR3-1333, measured under load")?;
    let source = top.source(parsed.source, parsed.assumed)?;
    if parsed.line.is_empty() {
        return Err(top.missing(
            "[[line]]",
            "a line for each share of reads",
            "[[line]], with reads and points",
        ));
    }
    let mut lines: Vec<LatencyLine> = Vec::new();
    for line in parsed.line {
        let (group, line) = text.group("[[line]]", line);
        let span = line.reads.as_ref().map_or(0..0, Spanned::span);
        let reads = group.number(line.reads, &READS)?;
        if let Some(before) = lines.last()
            && reads <= before.reads
        {
            let found = format!("{reads} after {}", before.reads);
            return Err(group.wrong(
                span,
                "reads",
                found,
                "lines with ascending reads",
                "reads = 0.5, then 1.0",
            ));
        }
        let points = read_points(&group, line.points)?;
        lines.push(LatencyLine { reads, points });
    }
    Ok((name, LatencyCurve { lines }, source))
}

/// The latency curve of this name and its source, if one comes with the simulator.
pub fn builtin_curve(name: &str) -> Option<(LatencyCurve, Source)> {
    let file = find(CURVES, name)?;
    let (_, curve, source) = parse_curve(file.text, file.file).expect(SOUND);
    Some((curve, source))
}

/// Reads the points of a line: from the idle latency without load, bandwidth and latency both ascending.
fn read_points(group: &Group<'_>, points: Pairs) -> Result<Vec<(f64, f64)>, SpecError> {
    let example = "[[0, 1], [0.6, 1.2], [0.9, 3]]";
    let mut before: Option<f64> = None;
    let mut points_read = Vec::new();
    for (at, (x, y)) in group.pairs(points, (&BANDWIDTH, &LATENCY), example)? {
        let fits = match before {
            None => x == 0.0 && y == 1.0,
            Some(before) => y > before,
        };
        if !fits {
            let found = format!("[{x}, {y}]");
            let expected = "[0, 1] first, and bandwidth and latency ascending from there";
            return Err(group.wrong(at, "points", found, expected, format!("points = {example}")));
        }
        before = Some(y);
        points_read.push((x, y));
    }
    Ok(points_read)
}
