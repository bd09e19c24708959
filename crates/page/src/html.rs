//! Pieces of HTML. Every text that comes from outside goes through [`esc`].

use cosched_report::visible;
use std::fmt::Write as _;

/// Escape a text for tags and attributes. Control characters become visible, as on a terminal.
pub(crate) fn esc(text: &str) -> String {
    escape(&visible(text))
}

/// Escape a text of several lines.
pub(crate) fn esc_lines(text: &str) -> String {
    escape(&cosched_report::visible_lines(text))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// A text.
    Text(String),
    /// A text with a class for its colour; the colour adds no meaning.
    Marked(&'static str, String),
    /// A number as it is shown, and its value for sorting.
    Number(String, f64),
    /// An absent value.
    None,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// Return a cell for a number, if there is one.
    pub(crate) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
        value
            .filter(|value| value.is_finite())
            .map_or(Cell::None, |value| Cell::Number(show(value), value))
    }

    fn write(&self, class_of_cell: String, out: &mut String) {
        let td = format!("<td{class_of_cell}");
        let _ = match self {
            Cell::Text(text) => write!(out, "{td}>{}</td>", esc(text)),
            Cell::Marked(mark, text) => {
                write!(out, "{td}><span{}>{}</span></td>", class(mark), esc(text))
            }
            Cell::Number(text, value) => {
                write!(out, "{td} data-v=\"{value}\">{}</td>", esc(text))
            }
            Cell::None => write!(out, "{td} data-v=\"\">-</td>"),
        };
    }
}

/// A table. Columns whose names begin with `#` hold numbers.
pub(crate) struct Table<'a> {
    /// Its id on the page; `None` if its rows stay in their order.
    pub(crate) id: Option<String>,
    pub(crate) caption: &'a str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// Number of rows from which a table has a filter.
const MANY: usize = 15;

impl Table<'_> {
    pub(crate) fn html(&self) -> String {
        let mut out = self.head();
        let columns = self.columns.iter();
        let is_number: Vec<bool> = columns.map(|name| name.starts_with('#')).collect();
        out.push_str("<thead><tr>");
        for (name, &is_number) in self.columns.iter().zip(&is_number) {
            let class = class(if is_number { "n" } else { "" });
            let name = esc(name.trim_start_matches('#'));
            let _ = write!(out, "<th scope=\"col\"{class}>{name}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (cell, &is_number) in row.iter().zip(&is_number) {
                cell.write(class(if is_number { "n" } else { "" }), &mut out);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    /// Return what comes before the rows: the filter, the caption and the region that scrolls.
    fn head(&self) -> String {
        let mut out = String::new();
        let is_long = self.rows.len() > MANY;
        if let Some(id) = self.id.as_ref().filter(|_| is_long) {
            let _ = writeln!(
                out,
                "<p><input type=\"search\" data-for=\"{id}\" placeholder=\"filter rows\" aria-label=\"filter rows\" hidden></p>"
            );
        }
        let mut label = "table".to_owned();
        if !self.caption.is_empty() {
            // The caption does not scroll with the table.
            label = esc(self.caption);
            let _ = writeln!(out, "<p class=\"dim caption\">{label}</p>");
        }
        let tall = if is_long { " tall" } else { "" };
        // A region that scrolls must be reachable by keyboard.
        let _ = writeln!(
            out,
            "<div class=\"wide{tall}\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">"
        );
        let _ = match &self.id {
            Some(id) => writeln!(out, "<table id=\"{id}\" data-sort>"),
            None => writeln!(out, "<table>"),
        };
        out
    }
}

fn class(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" class=\"{name}\"")
    }
}

/// Return a paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", esc(text))
}

/// Return a list of sentences.
pub(crate) fn list(items: &[String]) -> String {
    let items: String = items
        .iter()
        .map(|item| format!("<li>{}</li>\n", esc(item)))
        .collect();
    if items.is_empty() {
        items
    } else {
        format!("<ul>\n{items}</ul>\n")
    }
}

/// Return charts, side by side where there is room.
pub(crate) fn charts(charts: &[cosched_report::chart::Chart]) -> String {
    let figures: String = charts
        .iter()
        .map(|chart| format!("<figure>{}</figure>\n", chart.svg()))
        .collect();
    if figures.is_empty() {
        figures
    } else {
        format!("<div class=\"charts\">\n{figures}</div>\n")
    }
}

/// Return a part that the reader can fold.
pub(crate) fn details(summary: &str, body: &str, is_open: bool) -> String {
    let open = if is_open { " open" } else { "" };
    format!(
        "<details{open}><summary>{}</summary>\n{body}</details>\n",
        esc(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let table = Table {
            id: Some("t".to_owned()),
            caption: "<script>",
            columns: vec!["a\"b".to_owned(), "#n".to_owned()],
            rows: vec![
                vec![
                    Cell::text("</td><b>\u{1b}"),
                    Cell::number(Some(2.5), |n| format!("{n} <")),
                ],
                vec![
                    Cell::Marked("bad", "&".to_owned()),
                    Cell::number(Some(f64::NAN), |n| n.to_string()),
                ],
            ],
        };
        insta::assert_snapshot!(table.html());
    }
}
