//! Frames as an animated SVG: each row that is ever seen is drawn once, and frames refer to it.

use super::terminal::{Frame, Piece};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The width and the height of a character.
const CELL: (f64, f64) = (8.4, 18.0);
/// Between the text and the edge.
const EDGE: f64 = 12.0;

/// The first eight colours of a terminal, and their bright forms, on a dark ground.
const PALETTE: [&str; 16] = [
    "#5c6370", "#ff7b72", "#5fd6b3", "#e5c07b", "#8cc4ff", "#d2a8ff", "#56d4dd", "#e8eaed",
    "#8b939d", "#ffa198", "#7ee2c4", "#f0d399", "#a5d6ff", "#e2c5ff", "#80e5ec", "#ffffff",
];

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The pieces of a row, at the top of the picture.
fn row(pieces: &[Piece]) -> String {
    let mut out = String::new();
    for piece in pieces {
        let x = EDGE + f64::from(piece.column) * CELL.0;
        let width = piece.text.chars().count() as f64 * CELL.0;
        let mut style = String::new();
        if piece.inverse {
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" width=\"{width:.1}\" height=\"{}\" class=\"i\"/>",
                CELL.1
            );
            style.push_str(" class=\"p\"");
        } else if let Some(colour) = piece
            .colour
            .and_then(|colour| PALETTE.get(usize::from(colour)))
        {
            let _ = write!(style, " fill=\"{colour}\"");
        }
        if piece.bold {
            style.push_str(" font-weight=\"700\"");
        }
        // The length keeps columns in line whatever the font.
        let text = escape(&piece.text);
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"13.5\" textLength=\"{width:.1}\"{style}>{text}</text>"
        );
    }
    out
}

/// The picture.
pub(super) fn picture(frames: &[Frame], columns: u16, rows: u16, title: &str) -> String {
    let (width, height) = (
        2.0 * EDGE + f64::from(columns) * CELL.0,
        2.0 * EDGE + f64::from(rows) * CELL.1,
    );
    let all: f64 = frames.iter().map(|frame| frame.lasts.as_secs_f64()).sum();
    let mut known: HashMap<&[Piece], usize> = HashMap::new();
    let mut defs = String::new();
    let (mut style, mut body) = (String::new(), String::new());
    let mut begin = 0.0;
    for (at, frame) in frames.iter().enumerate() {
        let end = begin + frame.lasts.as_secs_f64();
        // Each frame is seen from its begin to its end, over and over.
        let (from, to) = (100.0 * begin / all.max(0.001), 100.0 * end / all.max(0.001));
        // Of two rules for one moment the later counts.
        let _ = writeln!(
            style,
            "@keyframes k{at}{{0%{{visibility:hidden}}{from:.3}%{{visibility:visible}}{to:.3}%{{visibility:hidden}}}}"
        );
        let _ = writeln!(
            style,
            "#f{at}{{animation:k{at} {all:.2}s step-end infinite}}"
        );
        // Without animation the last frame is seen.
        let is_last = at + 1 == frames.len();
        let hidden = if is_last {
            ""
        } else {
            " visibility=\"hidden\""
        };
        let _ = write!(body, "<g id=\"f{at}\"{hidden}>");
        for (line, pieces) in frame
            .rows
            .iter()
            .enumerate()
            .filter(|(_, pieces)| !pieces.is_empty())
        {
            let next = known.len();
            let number = *known.entry(pieces).or_insert(next);
            if number == next {
                let _ = writeln!(defs, "<g id=\"r{number}\">{}</g>", row(pieces));
            }
            let _ = write!(
                body,
                "<use href=\"#r{number}\" y=\"{:.0}\"/>",
                EDGE + line as f64 * CELL.1
            );
        }
        body.push_str("</g>\n");
        begin = end;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\">
<title>{}</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#e8eaed;white-space:pre}}
.i{{fill:#e8eaed}}.p{{fill:#16181c}}
{style}@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}}}
</style>
<rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"#16181c\"/>
<defs>
{defs}</defs>
{body}</svg>
",
        escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn piece(text: &str) -> Piece {
        Piece {
            column: 2,
            text: text.to_owned(),
            bold: false,
            inverse: false,
            colour: None,
        }
    }

    #[test]
    fn each_row_is_drawn_once_and_each_frame_is_seen_in_turn() {
        let frame = |lines: &[&str]| Frame {
            rows: lines.iter().map(|line| vec![piece(line)]).collect(),
            lasts: Duration::from_secs(1),
        };
        let svg = picture(
            &[frame(&["$ a"]), frame(&["$ a", "<b>"]), frame(&["<b>"])],
            20,
            2,
            "what & where",
        );
        assert_eq!(svg.matches("<g id=\"r").count(), 2);
        assert_eq!(svg.matches("<use ").count(), 4);
        assert!(svg.contains("&lt;b&gt;") && svg.contains("<title>what &amp; where</title>"));
        assert!(
            svg.contains("@keyframes k1{0%{visibility:hidden}33.333%{visibility:visible}66.667%{visibility:hidden}}")
        );
        assert!(
            svg.contains("<g id=\"f2\">") && svg.contains("<g id=\"f0\" visibility=\"hidden\">")
        );
    }
}
