//! Tables of measurements, as comma-separated values with a header.

use std::path::{Path, PathBuf};

/// A table in memory.
pub(crate) struct MeasuredTable {
    pub(crate) rows: Vec<Row>,
}

/// A line of a table.
pub(crate) struct Row {
    file: PathBuf,
    line: usize,
    fields: Vec<(String, String)>,
}

impl MeasuredTable {
    /// Reads a file. Lines that begin with `#` are comments.
    pub(crate) fn read(file: &Path) -> Result<MeasuredTable, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|why| format!("cannot read {}: {why}", file.display()))?;
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#'));
        let (_, header) = lines.next().ok_or(format!("{} is empty", file.display()))?;
        let names: Vec<&str> = header.split(',').collect();
        let mut rows = Vec::new();
        for (at, line) in lines {
            let values = line.split(',').map(str::to_owned);
            rows.push(Row {
                file: file.to_owned(),
                line: at + 1,
                fields: names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .zip(values)
                    .collect(),
            });
        }
        Ok(MeasuredTable { rows })
    }
}

impl Row {
    /// The text of a column.
    pub(crate) fn text(&self, column: &str) -> Result<&str, String> {
        let field = self.fields.iter().find(|(name, _)| name == column);
        let missing = || format!("{}:{}: no column {column}", self.file.display(), self.line);
        field.map(|(_, value)| value.as_str()).ok_or_else(missing)
    }

    /// The number in a column.
    pub(crate) fn number(&self, column: &str) -> Result<f64, String> {
        let text = self.text(column)?;
        let wrong = |_| {
            format!(
                "{}:{}: {column} is {text:?}, not a number",
                self.file.display(),
                self.line
            )
        };
        text.parse().map_err(wrong)
    }
}
