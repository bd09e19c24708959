//! The names of groups below their bars.

use super::geometry::Area;
use super::measure::{cut, lines, width};
use super::number::px;
use super::sheet::{LINE, MARGIN, Sheet, text};
use super::style::TEXT;

/// Maximum length of a turned name.
const MAX_NAME: f64 = 120.0;
/// Half the square root of 2.
const SLOPE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Write each name below the middle of its group.
///
/// The names are level in up to two lines if all have room, else slanted, else upright. If even those have no room, only
/// every second one is written, or every third, and so on.
pub(super) fn write(sheet: &mut Sheet, area: &Area, names: &[String]) {
    let step = area.width / names.len() as f64;
    let level: Vec<Vec<String>> = names
        .iter()
        .map(|name| lines(name, step - 8.0, TEXT, 2))
        .collect();
    if level.iter().flatten().any(|line| line.ends_with('…')) {
        write_turned(sheet, area, names);
    } else {
        write_level(sheet, area, &level);
    }
}

/// Return the horizontal middle of a group.
fn middle(area: &Area, groups: usize, group: usize) -> f64 {
    area.left + area.width / groups as f64 * (group as f64 + 0.5)
}

fn write_level(sheet: &mut Sheet, area: &Area, names: &[Vec<String>]) {
    let mut most = 0;
    for (group, name) in names.iter().enumerate() {
        most = most.max(name.len());
        for (line, y) in name.iter().zip([LINE, 2.0 * LINE]) {
            let x = middle(area, names.len(), group);
            text(&mut sheet.xml, "mid", x, area.bottom() + y, line, "");
        }
    }
    sheet.y = area.bottom() + LINE * most as f64 + 6.0;
}

fn write_turned(sheet: &mut Sheet, area: &Area, names: &[String]) {
    let step = area.width / names.len() as f64;
    let is_slanted = fit_slanted(area, names);
    let every = if is_slanted {
        1
    } else {
        (TEXT / step).ceil().max(1.0) as usize
    };
    let mut depth = 0.0_f64;
    for (group, name) in names.iter().enumerate().step_by(every) {
        let shown = cut(name, MAX_NAME, TEXT);
        let along = width(&shown, TEXT);
        let (angle, down, needed) = if is_slanted {
            (-45, 14.0, along * SLOPE + 18.0)
        } else {
            (-90, 7.0, along + 8.0)
        };
        depth = depth.max(needed);
        let x = px(middle(area, names.len(), group) + 5.0);
        let y = px(area.bottom() + down);
        let turn = format!("rotate({angle} {x} {y})");
        let attributes = [
            ("class", "end"),
            ("x", &*x),
            ("y", &*y),
            ("transform", &*turn),
        ];
        sheet.xml.open("text", &attributes);
        if shown.ends_with('…') {
            sheet.xml.with_text("title", &[], name);
        }
        sheet.xml.text(&shown);
        sheet.xml.close();
    }
    sheet.y = area.bottom() + depth;
}

/// Whether slanted names have room beside and below each other.
fn fit_slanted(area: &Area, names: &[String]) -> bool {
    if area.width / names.len() as f64 * SLOPE < LINE {
        return false;
    }
    for (group, name) in names.iter().enumerate() {
        let room = middle(area, names.len(), group) - MARGIN / 2.0 - LINE * SLOPE;
        if width(name, TEXT).min(MAX_NAME) * SLOPE > room {
            return false;
        }
    }
    true
}
