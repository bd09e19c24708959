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

/// The table's lines, the titles first, in at most `width` characters if possible: columns are left out as their
/// numbers say, then the first column is clipped.
pub(crate) fn lines(mut columns: Vec<Column>, width: usize) -> Vec<String> {
    let total = |columns: &[Column]| {
        columns.iter().map(Column::width).sum::<usize>() + GAP * (columns.len().max(1) - 1)
    };
    loop {
        let spare = total(&columns).saturating_sub(width);
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
    let spare = total(&columns).saturating_sub(width);
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
    let line = |cell: &dyn Fn(&Column) -> String| {
        let mut line = String::new();
        for (ix, column) in columns.iter().enumerate() {
            let (cell, width) = (cell(column), column.width());
            if ix > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            line.push_str(&if column.right {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            });
        }
        line.trim_end().to_owned()
    };
    let mut lines = vec![line(&|column| column.title.clone().into_owned())];
    lines.extend(
        (0..rows).map(|row| line(&|column| column.cells.get(row).cloned().unwrap_or_default())),
    );
    lines
}
