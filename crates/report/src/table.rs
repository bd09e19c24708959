//! A plain text table that fits a width.

use crate::text::clip_middle;
use std::borrow::Cow;

/// Shown in place of an absent value.
pub(crate) const NONE: &str = "-";

/// The text, or the sign for an absent value.
pub(crate) fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// A column.
pub(crate) struct Column {
    pub title: Cow<'static, str>,
    /// Whether cells are right-aligned, as numbers are.
    pub right: bool,
    /// If the table is too wide, columns with greater numbers are left out first; a column with 0 always stays.
    pub expendable: u8,
    pub cells: Vec<String>,
}

impl Column {
    /// A column of left-aligned texts, one for each row.
    pub(crate) fn text<T>(
        title: impl Into<Cow<'static, str>>,
        expendable: u8,
        rows: &[T],
        cell: impl Fn(&T) -> String,
    ) -> Column {
        Column {
            title: title.into(),
            right: false,
            expendable,
            cells: rows.iter().map(cell).collect(),
        }
    }

    /// A column of right-aligned numbers, one for each row.
    pub(crate) fn number<T>(
        title: impl Into<Cow<'static, str>>,
        expendable: u8,
        rows: &[T],
        cell: impl Fn(&T) -> String,
    ) -> Column {
        Column {
            right: true,
            ..Column::text(title, expendable, rows, cell)
        }
    }

    /// Whether a cell has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.cells.iter().any(|cell| cell != NONE)
    }

    /// Whether a cell has a value other than 0.
    pub(crate) fn says_something(&self) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|cell| cell != NONE && cell != "0" && cell != "0 s")
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
        let mut width = self.title.chars().count();
        for cell in &self.cells {
            width = width.max(cell.chars().count());
        }
        width
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
/// numbers say, then the first column is clipped. Names of jobs and runs often differ in their last characters, so those stay.
pub(crate) fn lines(mut columns: Vec<Column>, width: usize) -> Vec<String> {
    loop {
        let spare = total_width(&columns).saturating_sub(width);
        let name = columns.first().map_or(0, Column::width);
        if spare == 0 || name.saturating_sub(spare) >= LEAST_NAME {
            break;
        }
        let last = (0..columns.len()).max_by_key(|ix| columns[*ix].expendable);
        match last {
            Some(ix) if columns[ix].expendable > 0 => columns.remove(ix),
            _ => break,
        };
    }
    let spare = total_width(&columns).saturating_sub(width);
    if let Some(first) = columns.first_mut() {
        let width = first.width();
        let least = LEAST_NAME.min(width);
        let clipped = width.saturating_sub(spare).max(least);
        for cell in &mut first.cells {
            *cell = clip_middle(cell, clipped);
        }
    }
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let titles = columns.iter().map(|column| &*column.title);
    let mut lines = vec![line(&columns, titles)];
    for row in 0..rows {
        let cells = columns.iter().map(|column| &*column.cells[row]);
        lines.push(line(&columns, cells));
    }
    lines
}

/// A line with a cell for each column.
fn line<'a>(columns: &[Column], cells: impl Iterator<Item = &'a str>) -> String {
    let mut aligned = Vec::new();
    for (column, cell) in columns.iter().zip(cells) {
        aligned.push(column.aligned(cell));
    }
    aligned.join(&" ".repeat(GAP)).trim_end().to_owned()
}
