//! The names of groups below their bars.

use super::geometry::Area;
use super::measure::{cut, lines, width};
use super::number::px;
use super::sheet::{LINE, MARGIN, Sheet, TEXT, text};

/// The longest that a turned name is.
const LONGEST: f64 = 120.0;
/// Half the square root of 2.
const SLOPE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Writes the names, each below the middle of its group: level in up to two lines if all have room, else slanted, else
/// upright. If even those have no room, only every second one, or third, or so.
pub(super) fn write(sheet: &mut Sheet, area: &Area, names: &[String]) {
    let step = area.width / names.len() as f64;
    let middle = |ix: usize| area.left + step * (ix as f64 + 0.5);

    let level: Vec<Vec<String>> = names
        .iter()
        .map(|name| lines(name, step - 8.0, TEXT, 2))
        .collect();
    if !level.iter().flatten().any(|line| line.ends_with('…')) {
        for (ix, of_name) in level.iter().enumerate() {
            for (line, y) in of_name.iter().zip([LINE, 2.0 * LINE]) {
                text(
                    &mut sheet.xml,
                    "mid",
                    middle(ix),
                    area.bottom() + y,
                    line,
                    "",
                );
            }
        }
        sheet.y = area.bottom() + LINE * level.iter().map(Vec::len).max().unwrap_or(0) as f64 + 6.0;
        return;
    }

    let longest = |ix: usize| width(&names[ix], TEXT).min(LONGEST);
    let slanted = step * SLOPE >= LINE
        && (0..names.len())
            .all(|ix| longest(ix) * SLOPE <= middle(ix) - MARGIN / 2.0 - LINE * SLOPE);
    let every = if slanted {
        1
    } else {
        (TEXT / step).ceil().max(1.0) as usize
    };
    let mut depth = 0.0_f64;
    for ix in (0..names.len()).step_by(every) {
        let shown = cut(&names[ix], LONGEST, TEXT);
        let (angle, x, y) = match slanted {
            true => (-45, middle(ix) + 5.0, area.bottom() + 14.0),
            false => (-90, middle(ix) + 5.0, area.bottom() + 7.0),
        };
        let along = width(&shown, TEXT);
        depth = depth.max(if slanted {
            along * SLOPE + 18.0
        } else {
            along + 8.0
        });
        let turn = format!("rotate({angle} {} {})", px(x), px(y));
        sheet.xml.open(
            "text",
            &[
                ("class", "end"),
                ("x", &px(x)),
                ("y", &px(y)),
                ("transform", &turn),
            ],
        );
        if shown.ends_with('…') {
            sheet.xml.with_text("title", &[], &names[ix]);
        }
        sheet.xml.text(&shown);
        sheet.xml.close();
    }
    sheet.y = area.bottom() + depth;
}
