//! A table for people. It is made once, and shown as text that fits a width, as Markdown, or on a page.

use crate::text::{clip, clip_middle, visible, wrap};

/// Shown in place of an absent value.
pub(crate) const NONE: &str = "-";

/// A cell, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCell {
    /// Its text, without characters that control a terminal.
    pub text: String,
    /// Its colour on a page.
    pub tone: CellTone,
}

/// The colour of a cell. The words say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellTone {
    /// None.
    Plain,
    /// A better figure.
    Good,
    /// A worse figure, or a failure.
    Bad,
}

impl TableCell {
    /// A cell with a colour.
    pub fn toned(text: &str, tone: CellTone) -> TableCell {
        let text = visible(text);
        TableCell { text, tone }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        TableCell::toned(text, CellTone::Plain)
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> TableCell {
        TableCell::from(&*text)
    }
}

/// `None` is an absent value.
impl From<Option<String>> for TableCell {
    fn from(text: Option<String>) -> TableCell {
        TableCell::from(text.as_deref().unwrap_or(NONE))
    }
}

/// What happens to the cells of a column that are too wide for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    /// They stay as they are. The first column is clipped in the middle if no other column can give room: names of jobs
    /// and runs often differ in their last characters.
    Stays,
    /// Their ends are cut off.
    Clipped,
    /// They take several lines.
    Wrapped,
}

/// A column of a [`Table`].
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its title, without characters that control a terminal.
    pub title: String,
    /// Its cells, one for each row.
    pub cells: Vec<TableCell>,
    /// Whether cells are right-aligned, as numbers are.
    pub is_number: bool,
    excess: Excess,
    /// If a text is too wide, columns with greater numbers are left out first; a column with 0 always stays.
    expendable: u8,
}

impl TableColumn {
    /// A column of left-aligned texts, one for each row. In a text that is too wide, columns with a greater `expendable`
    /// are left out first; one with 0 always stays.
    pub fn text<T, C: Into<TableCell>>(
        title: impl Into<String>,
        expendable: u8,
        rows: &[T],
        cell: impl Fn(&T) -> C,
    ) -> TableColumn {
        TableColumn {
            title: visible(&title.into()),
            cells: rows.iter().map(|row| cell(row).into()).collect(),
            is_number: false,
            excess: Excess::Stays,
            expendable,
        }
    }

    /// The same with right-aligned numbers.
    pub fn number<T, C: Into<TableCell>>(
        title: impl Into<String>,
        expendable: u8,
        rows: &[T],
        cell: impl Fn(&T) -> C,
    ) -> TableColumn {
        TableColumn {
            is_number: true,
            ..TableColumn::text(title, expendable, rows, cell)
        }
    }

    /// The same column, whose cells are wrapped in a text that is too wide.
    pub fn wrapped(self) -> TableColumn {
        let excess = Excess::Wrapped;
        TableColumn { excess, ..self }
    }

    /// The same column, whose cells are cut off in a text that is too wide.
    pub fn clipped(self) -> TableColumn {
        let excess = Excess::Clipped;
        TableColumn { excess, ..self }
    }

    /// Whether a cell has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.cells.iter().any(|cell| cell.text != NONE)
    }

    /// Whether a cell has a value other than 0.
    pub(crate) fn says_something(&self) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|cell| ![NONE, "0", "0 s"].contains(&&*cell.text))
    }

    fn width(&self) -> usize {
        let mut width = self.title.chars().count();
        for cell in &self.cells {
            width = width.max(cell.text.chars().count());
        }
        width
    }

    /// The lines of a cell in this width.
    fn cell_lines(&self, row: usize, width: usize) -> Vec<String> {
        let text = &self.cells[row].text;
        match self.excess {
            Excess::Stays => vec![clip_middle(text, width)],
            Excess::Clipped => vec![clip(text, width)],
            Excess::Wrapped => wrap(text, width),
        }
    }

    /// The rule below its title in Markdown.
    fn rule(&self) -> &'static str {
        if self.is_number { "---:" } else { "---" }
    }

    fn aligned(&self, text: &str, width: usize) -> String {
        if self.is_number {
            format!("{text:>width$}")
        } else {
            format!("{text:<width$}")
        }
    }
}

/// A table for people.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its columns, with equally many cells each.
    pub columns: Vec<TableColumn>,
}

/// Spaces between columns.
const GAP: usize = 2;
/// The first column keeps at least this width.
const LEAST_NAME: usize = 12;
/// A column of words that are wrapped or cut off keeps at least this width.
const LEAST_WORDS: usize = 16;

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The same table with its titles in capitals, as a terminal shows them.
    pub fn in_capitals(mut self) -> Table {
        for column in &mut self.columns {
            column.title = column.title.to_uppercase();
        }
        self
    }

    /// The table's [lines](Table::lines), each with its end.
    pub fn text(self, width: usize) -> String {
        let mut text = self.lines(width).join("\n");
        text.push('\n');
        text
    }

    /// The table's lines, the titles first if there are any, in at most `width` characters if possible: columns are left
    /// out as their numbers say, then one column is narrowed.
    pub fn lines(mut self, width: usize) -> Vec<String> {
        while self.narrowed_width(width) < self.least_width() {
            let all = 0..self.columns.len();
            let last = all.max_by_key(|at| self.columns[*at].expendable);
            match last {
                Some(at) if self.columns[at].expendable > 0 => self.columns.remove(at),
                _ => break,
            };
        }
        let mut widths: Vec<usize> = self.columns.iter().map(TableColumn::width).collect();
        if let Some(narrowed) = widths.get_mut(self.narrowed()) {
            *narrowed = self.narrowed_width(width).max(self.least_width());
        }
        let mut lines = Vec::new();
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let titles = self.columns.iter().map(|column| &*column.title);
            lines.push(self.line(&widths, titles));
        }
        for row in 0..self.rows() {
            lines.extend(self.row_lines(row, &widths));
        }
        lines
    }

    /// The column that is narrowed if there is no room.
    fn narrowed(&self) -> usize {
        let mut columns = self.columns.iter();
        let words = columns.position(|column| column.excess != Excess::Stays);
        words.unwrap_or(0)
    }

    /// The width of that column in a text of this width.
    fn narrowed_width(&self, width: usize) -> usize {
        let widths: usize = self.columns.iter().map(TableColumn::width).sum();
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let lacking = (widths + gaps).saturating_sub(width);
        let narrowed = self.columns.get(self.narrowed());
        let natural = narrowed.map_or(0, TableColumn::width);
        natural.saturating_sub(lacking)
    }

    /// The least width of that column.
    fn least_width(&self) -> usize {
        let Some(narrowed) = self.columns.get(self.narrowed()) else {
            return 0;
        };
        let least = match narrowed.excess {
            Excess::Stays => LEAST_NAME,
            Excess::Clipped | Excess::Wrapped => LEAST_WORDS,
        };
        least.min(narrowed.width())
    }

    /// The lines of a row: as many as its highest cell.
    fn row_lines(&self, row: usize, widths: &[usize]) -> Vec<String> {
        let mut cells = Vec::new();
        for (column, width) in self.columns.iter().zip(widths) {
            cells.push(column.cell_lines(row, *width));
        }
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut lines = Vec::new();
        for at in 0..height {
            let texts = cells
                .iter()
                .map(|cell| cell.get(at).map_or("", String::as_str));
            lines.push(self.line(widths, texts));
        }
        lines
    }

    /// A line with a text in each column.
    fn line<'a>(&self, widths: &[usize], texts: impl Iterator<Item = &'a str>) -> String {
        let mut aligned = Vec::new();
        for ((column, width), text) in self.columns.iter().zip(widths).zip(texts) {
            aligned.push(column.aligned(text, *width));
        }
        aligned.join(&" ".repeat(GAP)).trim_end().to_owned()
    }

    /// The table as Markdown. Nothing in its cells is markup but code spans.
    pub fn markdown(&self) -> String {
        let titles = self
            .columns
            .iter()
            .map(|column| markdown_text(&column.title));
        let rules = self.columns.iter().map(|column| column.rule().to_owned());
        let mut text = markdown_row(titles) + &markdown_row(rules);
        for row in 0..self.rows() {
            let cells = self.columns.iter().map(|column| &column.cells[row]);
            text.push_str(&markdown_row(cells.map(|cell| markdown_text(&cell.text))));
        }
        text
    }
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A text in which nothing is Markdown but code spans, for a line or the cell of a table.
pub fn markdown_text(text: &str) -> String {
    let mut shown = String::new();
    let mut before = ' ';
    let text = visible(text);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.as_str().chars().next().unwrap_or(' ');
        let is_within_word = before.is_alphanumeric() && after.is_alphanumeric();
        match c {
            '<' => shown.push_str("&lt;"),
            '_' if is_within_word => shown.push('_'),
            '\\' | '|' | '*' | '_' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = ["one", "two"];
        let columns = vec![
            TableColumn::text("a\u{1b}|", 0, &rows, |row| *row),
            TableColumn::number("n", 3, &rows, |row| (*row == "two").then(|| "9".repeat(8))),
            TableColumn::text("words", 0, &rows, |row| {
                format!("*{row}* of_some _words that go on")
            })
            .wrapped(),
        ];
        Table { columns }
    }

    #[test]
    fn a_text_that_is_too_wide_lacks_columns_and_its_words_are_wrapped() {
        let wide = [
            "a\\x1b|         n  words",
            "one            -  *one* of_some _words that go on",
            "two     99999999  *two* of_some _words that go on",
        ];
        assert_eq!(table().lines(80), wide);
        let narrow = [
            "a\\x1b|  words",
            "one     *one* of_some",
            "        _words that go",
            "        on",
            "two     *two* of_some",
            "        _words that go",
            "        on",
        ];
        assert_eq!(table().lines(24), narrow);
    }

    #[test]
    fn nothing_in_a_cell_is_markup() {
        let text = "| a\\\\x1b\\| | n | words |\n| --- | ---: | --- |\n\
                    | one | - | \\*one\\* of_some \\_words that go on |\n\
                    | two | 99999999 | \\*two\\* of_some \\_words that go on |\n";
        assert_eq!(table().markdown(), text);
    }
}
