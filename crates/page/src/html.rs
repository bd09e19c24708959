//! Pieces of HTML. Every text that comes from outside is escaped.

use crate::template::fill;
use cosched_report::chart::Chart;
use cosched_report::{CellTone, Table, TableCell, TableColumn, escaped};
use std::fmt::Write as _;

/// Number of rows from which a table scrolls.
const MANY: usize = 15;

/// Return a table with a caption, which may be empty.
pub(crate) fn table(caption: &str, table: &Table) -> String {
    let mut out = String::new();
    let mut label = "table".to_owned();
    if !caption.is_empty() {
        // The caption does not scroll with the table.
        label = escaped(caption);
        let _ = writeln!(out, "<p class=\"dim caption\">{label}</p>");
    }
    let mut head = String::new();
    for column in &table.columns {
        let (class, title) = (class_of(column), escaped(&column.title));
        let _ = write!(head, "<th scope=\"col\"{class}>{title}</th>");
    }
    let mut rows = String::new();
    for row in 0..table.rows() {
        let mut cells = String::new();
        for column in &table.columns {
            let (class, cell) = (class_of(column), cell_html(&column.cells[row]));
            let _ = write!(cells, "<td{class}>{cell}</td>");
        }
        rows.push_str(&element("tr", &cells));
    }
    let tall = if table.rows() > MANY { " tall" } else { "" };
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

fn class_of(column: &TableColumn) -> &'static str {
    if column.is_number { " class=\"n\"" } else { "" }
}

fn cell_html(cell: &TableCell) -> String {
    let text = escaped(&cell.text);
    match cell.tone {
        CellTone::Plain => text,
        CellTone::Good => format!("<span class=\"good\">{text}</span>"),
        CellTone::Bad => format!("<span class=\"bad\">{text}</span>"),
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
        let rows = ["</td><b>\u{1b}", "&"];
        let toned = |text: &&str| match *text {
            "&" => TableCell::toned(text, CellTone::Bad),
            text => text.into(),
        };
        let numbers = [Some("2.5 <".to_owned()), None];
        let columns = vec![
            TableColumn::text("a\"b", 0, &rows, toned),
            TableColumn::number("n", 0, &numbers, Option::clone),
        ];
        insta::assert_snapshot!(table("<script>", &Table { columns }));
    }
}
