//! A plain text table that fits a width.

use crate::text::clip;
use std::borrow::Cow;

/// A column.
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    /// Whether cells are right-aligned, as numbers are.
    pub(crate) right: bool,
    /// If the table is too wide, columns with greater numbers are left out first; a column with 0 always stays.
    pub(crate) expendable: u8,
    pub(crate) cells: Vec<String>,
}

impl Column {
    /// A column of left-aligned texts.
    pub(crate) fn text(
        title: impl Into<Cow<'static, str>>,
        expendable: u8,
        cells: Vec<String>,
    ) -> Column {
        Column {
            title: title.into(),
            right: false,
            expendable,
            cells,
        }
    }

    /// A column of right-aligned numbers.
    pub(crate) fn number(
        title: impl Into<Cow<'static, str>>,
        expendable: u8,
        cells: Vec<String>,
    ) -> Column {
        Column {
            right: true,
            ..Column::text(title, expendable, cells)
        }
    }

    fn aligned(&self, cell: &str) -> String {
        let width = self.width();
        if self.right {
            format!("{cell:>width$}")
        } else {
            format!("{cell:<width$}")
        }
    }

    fn width(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(self.title.chars().count())
    }
}

/// Spaces between columns.
const GAP: usize = 2;
/// The first column keeps at least this width.
const LEAST_NAME: usize = 12;

fn total_width(columns: &[Column]) -> usize {
    let widths: usize = columns.iter().map(Column::width).sum();
    widths + GAP * columns.len().saturating_sub(1)
}

/// The table's lines, the titles first, in at most `width` characters if possible: columns are left out as their
/// numbers say, then the first column is clipped.
pub(crate) fn lines(mut columns: Vec<Column>, width: usize) -> Vec<String> {
    loop {
        let spare = total_width(&columns).saturating_sub(width);
        let name = columns.first().map_or(0, Column::width);
        if spare == 0 || name.saturating_sub(spare) >= LEAST_NAME {
            break;
        }
        let Some(ix) = (0..columns.len())
            .filter(|&ix| columns[ix].expendable > 0)
            .max_by_key(|&ix| columns[ix].expendable)
        else {
            break;
        };
        columns.remove(ix);
    }
    let spare = total_width(&columns).saturating_sub(width);
    if let Some(first) = columns.first_mut() {
        let name = first
            .width()
            .saturating_sub(spare)
            .max(LEAST_NAME.min(first.width()));
        first
            .cells
            .iter_mut()
            .for_each(|cell| *cell = clip(cell, name));
    }
    let rows = columns
        .iter()
        .map(|column| column.cells.len())
        .max()
        .unwrap_or(0);
    let titles = columns.iter().map(|column| &*column.title);
    let mut lines = vec![line(&columns, titles)];
    for row in 0..rows {
        let cells = columns
            .iter()
            .map(|column| column.cells.get(row).map_or("", String::as_str));
        lines.push(line(&columns, cells));
    }
    lines
}

/// A line with a cell for each column.
fn line<'a>(columns: &[Column], cells: impl Iterator<Item = &'a str>) -> String {
    let aligned: Vec<String> = columns
        .iter()
        .zip(cells)
        .map(|(column, cell)| column.aligned(cell))
        .collect();
    aligned.join(&" ".repeat(GAP)).trim_end().to_owned()
}
