//! The latency file, format `cosched.latency/1`: loaded latency against bandwidth. Documented in docs/machine-file.md.

use super::builtin::{CURVES, SOUND, find};
use super::error::SpecError;
use super::table::{FileTable, Text};
use crate::curve::{LatencyCurve, LatencyLine};

/// Parses a latency file: its name, and the curve.
///
/// # Errors
/// [`SpecError`]: the first error, with file, line, key and the allowed values.
pub fn parse_curve(text: &str, file: &str) -> Result<(String, LatencyCurve), SpecError> {
    let page = "cosched help machine-file";
    let text = Text { text, file, page };
    let parsed = text.parse()?;
    let keys = ["schema", "name", "title", "source", "assumed", "line"];
    let top = text.top(&parsed, &keys)?.with_source()?;
    top.schema("cosched.latency/1")?;
    let name = top.name()?;
    top.words("title")?;
    let mut lines: Vec<LatencyLine> = Vec::new();
    for line in top.tables("line", &["reads", "points"])? {
        let reads = line.number("reads", 0.01..=1.0)?;
        if lines.last().is_some_and(|before| reads <= before.reads) {
            return Err(line.error("reads", "more than in the line before it"));
        }
        let points = read_points(&line)?;
        lines.push(LatencyLine { reads, points });
    }
    Ok((name, LatencyCurve { lines }))
}

/// The built-in latency curve of this name, if any.
pub fn builtin_curve(name: &str) -> Option<LatencyCurve> {
    let file = find(CURVES, name)?;
    let (_, curve) = parse_curve(file.text, file.file).expect(SOUND);
    Some(curve)
}

/// Parses the points of a line. The last one is the greatest bandwidth of the memory: latency beyond it is unknown.
fn read_points(line: &FileTable<'_>) -> Result<Vec<(f64, f64)>, SpecError> {
    let expected = "pairs of bandwidth by peak, 0 to 1, and latency by idle latency, 1 to 1000, both ascending from [0, 1]";
    line.pairs("points", expected, |before, (x, y)| match before {
        None => (x, y) == (0.0, 1.0),
        Some(before) => x > before.0 && x <= 1.0 && y > before.1 && y <= 1000.0,
    })
}
