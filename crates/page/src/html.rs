//! Pieces of HTML. Every text that comes from outside is escaped.

use crate::template::fill;
use cosched_report::chart::Chart;
use cosched_report::escaped;
use std::fmt::Write as _;

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum HtmlCell {
    /// A text.
    Text(String),
    /// A text with a class for its colour; the colour adds no meaning.
    Marked(&'static str, String),
    /// An absent value.
    None,
}

impl HtmlCell {
    pub(crate) fn text(text: impl Into<String>) -> HtmlCell {
        HtmlCell::Text(text.into())
    }

    /// Return a cell for a number, if there is one.
    pub(crate) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> HtmlCell {
        match value {
            Some(value) if value.is_finite() => HtmlCell::Text(show(value)),
            _ => HtmlCell::None,
        }
    }

    fn html(&self) -> String {
        match self {
            HtmlCell::Text(text) => escaped(text),
            HtmlCell::Marked(mark, text) => {
                format!("<span class=\"{mark}\">{}</span>", escaped(text))
            }
            HtmlCell::None => "-".to_owned(),
        }
    }
}

/// A table. Columns whose names begin with `#` hold numbers.
pub(crate) struct HtmlTable<'a> {
    pub(crate) caption: &'a str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<HtmlCell>>,
}

/// Number of rows from which a table scrolls.
const MANY: usize = 15;

impl HtmlTable<'_> {
    /// Return a table without a caption.
    pub(crate) fn new(columns: &[&str], rows: Vec<Vec<HtmlCell>>) -> HtmlTable<'static> {
        HtmlTable {
            caption: "",
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows,
        }
    }

    pub(crate) fn html(&self) -> String {
        let mut out = String::new();
        let mut label = "table".to_owned();
        if !self.caption.is_empty() {
            // The caption does not scroll with the table.
            label = escaped(self.caption);
            let _ = writeln!(out, "<p class=\"dim caption\">{label}</p>");
        }
        let mut head = String::new();
        for name in &self.columns {
            let class = class_of_column(name);
            let name = escaped(name.trim_start_matches('#'));
            let _ = write!(head, "<th scope=\"col\"{class}>{name}</th>");
        }
        let mut rows = String::new();
        for row in &self.rows {
            rows.push_str(&self.row_html(row));
        }
        let tall = if self.rows.len() > MANY { " tall" } else { "" };
        // A region that scrolls must be reachable by keyboard.
        out + &fill(
            include_str!("table.html"),
            &[
                ("tall", tall),
                ("label", &label),
                ("head", &head),
                ("rows", &rows),
            ],
        )
    }

    fn row_html(&self, row: &[HtmlCell]) -> String {
        let mut cells = String::new();
        for (cell, name) in row.iter().zip(&self.columns) {
            let class = class_of_column(name);
            let _ = write!(cells, "<td{class}>{}</td>", cell.html());
        }
        element("tr", &cells)
    }
}

fn class_of_column(name: &str) -> &'static str {
    if name.starts_with('#') {
        " class=\"n\""
    } else {
        ""
    }
}

/// Return an element with this HTML in it.
pub(crate) fn element(name: &str, html: &str) -> String {
    format!("<{name}>{html}</{name}>\n")
}

/// Return a paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    element("p", &escaped(text))
}

/// Return a list of sentences.
pub(crate) fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut out = "<ul>\n".to_owned();
    for item in items {
        out.push_str(&element("li", &escaped(item)));
    }
    out + "</ul>\n"
}

/// Return charts, side by side where there is room.
pub(crate) fn charts(charts: impl IntoIterator<Item = Chart>) -> String {
    let mut figures = String::new();
    for chart in charts {
        figures.push_str(&element("figure", &chart.svg()));
    }
    if figures.is_empty() {
        return figures;
    }
    format!("<div class=\"charts\">\n{figures}</div>\n")
}

/// Return a part that the reader can fold.
pub(crate) fn details(summary: &str, body: &str, is_open: bool) -> String {
    let open = if is_open { " open" } else { "" };
    let summary = element("summary", &escaped(summary));
    format!("<details{open}>{summary}{body}</details>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let table = HtmlTable {
            caption: "<script>",
            columns: vec!["a\"b".to_owned(), "#n".to_owned()],
            rows: vec![
                vec![
                    HtmlCell::text("</td><b>\u{1b}"),
                    HtmlCell::number(Some(2.5), |n| format!("{n} <")),
                ],
                vec![
                    HtmlCell::Marked("bad", "&".to_owned()),
                    HtmlCell::number(Some(f64::NAN), |n| n.to_string()),
                ],
            ],
        };
        insta::assert_snapshot!(table.html());
    }
}
