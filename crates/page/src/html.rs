//! Pieces of HTML. Every text that comes from outside goes through [`esc`].

use cosched_report::visible;
use std::fmt::Write as _;

/// A text as it can stand between tags and in attributes. Control characters are shown, as on a terminal.
pub(crate) fn esc(text: &str) -> String {
    escape(&visible(text))
}

/// A text of several lines.
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
    /// Words.
    Text(String),
    /// Words with a class for their colour; they say the same without it.
    Marked(&'static str, String),
    /// A number as it is shown, and the value by which rows are sorted.
    Number(String, f64),
    /// What is not known.
    None,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A number, if it is known.
    pub(crate) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
        value
            .filter(|value| value.is_finite())
            .map_or(Cell::None, |value| Cell::Number(show(value), value))
    }
}

/// A table. Columns whose names begin with `#` hold numbers.
pub(crate) struct Table<'a> {
    /// Tells it from others on the page; `None` if its rows are to stay in their order.
    pub(crate) id: Option<String>,
    pub(crate) caption: &'a str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// With so many rows a field comes before the table by which they can be filtered.
const MANY: usize = 15;

impl Table<'_> {
    pub(crate) fn html(&self) -> String {
        let mut out = String::new();
        let id = self
            .id
            .as_ref()
            .map(|id| format!(" id=\"{id}\" data-sort"))
            .unwrap_or_default();
        if let Some(id) = self.id.as_ref().filter(|_| self.rows.len() > MANY) {
            let _ = writeln!(
                out,
                "<p><input type=\"search\" data-for=\"{id}\" placeholder=\"filter rows\" aria-label=\"filter rows\" hidden></p>"
            );
        }
        // A region that scrolls must be reachable by keyboard.
        let label = if self.caption.is_empty() {
            "table"
        } else {
            self.caption
        };
        if !self.caption.is_empty() {
            // Not within the region that scrolls.
            let _ = writeln!(out, "<p class=\"dim caption\">{}</p>", esc(self.caption));
        }
        let tall = if self.rows.len() > MANY { " tall" } else { "" };
        let _ = writeln!(
            out,
            "<div class=\"wide{tall}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">",
            esc(label)
        );
        let _ = writeln!(out, "<table{id}>");
        out.push_str("<thead><tr>");
        let is_number: Vec<bool> = self
            .columns
            .iter()
            .map(|name| name.starts_with('#'))
            .collect();
        for (name, &is_number) in self.columns.iter().zip(&is_number) {
            let class = if is_number { " class=\"n\"" } else { "" };
            let _ = write!(
                out,
                "<th scope=\"col\"{class}>{}</th>",
                esc(name.trim_start_matches('#'))
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let class = if is_number.get(at) == Some(&true) {
                    "n"
                } else {
                    ""
                };
                let told = |class: &str| {
                    if class.is_empty() {
                        String::new()
                    } else {
                        format!(" class=\"{class}\"")
                    }
                };
                let _ = match cell {
                    Cell::Text(text) => write!(out, "<td{}>{}</td>", told(class), esc(text)),
                    Cell::Marked(mark, text) => {
                        write!(
                            out,
                            "<td{}><span{}>{}</span></td>",
                            told(class),
                            told(mark),
                            esc(text)
                        )
                    }
                    Cell::Number(text, value) => {
                        write!(
                            out,
                            "<td{} data-v=\"{value}\">{}</td>",
                            told(class),
                            esc(text)
                        )
                    }
                    Cell::None => write!(out, "<td{} data-v=\"\">-</td>", told(class)),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

/// A paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", esc(text))
}

/// A list of sentences.
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

/// Charts side by side where there is room.
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

/// What not everybody wants to see.
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
