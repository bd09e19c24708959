//! The findings as plain text for a terminal.

use super::markdown::wrapped;
use super::{Findings, Part, Table};
use std::fmt::Write as _;

/// The chapters, with lines of text of at most `width` characters. Tables are as wide as they need to be.
pub fn text(findings: &Findings, width: usize) -> String {
    let width = width.max(20);
    let mut text = String::new();
    for words in findings.introduction() {
        paragraph(&mut text, &words, width);
    }
    for (chapter, verdicts) in findings.chapters.iter().zip(findings.verdicts()) {
        heading(&mut text, &chapter.title, '=');
        parts(&mut text, &chapter.parts, width);
        if !verdicts.rows.is_empty() {
            heading(&mut text, "Verdicts", '-');
            table(&mut text, &verdicts);
        }
        if !chapter.causes.is_empty() {
            heading(&mut text, "What makes the difference", '-');
            parts(&mut text, &chapter.causes, width);
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn heading(text: &mut String, words: &str, rule: char) {
    let words = bare(words);
    let _ = writeln!(text, "{words}\n{}\n", rule.to_string().repeat(words.chars().count()));
}

fn parts(text: &mut String, parts: &[Part], width: usize) {
    for part in parts {
        match part {
            Part::Heading(words) => heading(text, words, '-'),
            Part::Text(words) => paragraph(text, words, width),
            Part::Table(one) => {
                paragraph(text, &one.caption, width);
                table(text, one);
            }
            Part::Figure(figure) => {
                paragraph(text, &figure.table.caption, width);
                if figure.few {
                    table(text, &figure.table);
                } else {
                    paragraph(
                        text,
                        &format!("({} numbers: --out DIR writes them, and the figure)", figure.table.rows.len()),
                        width,
                    );
                }
            }
        }
    }
}

/// The words without Markdown's marks of code and emphasis.
fn bare(words: &str) -> String {
    words.replace("**", "").replace(['`', '*'], "")
}

/// A paragraph.
fn paragraph(text: &mut String, words: &str, width: usize) {
    for line in wrapped(&bare(words), width) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

/// Rows that are shown of a table; the rest is in the files.
const MOST_ROWS: usize = 40;

fn table(text: &mut String, table: &Table) {
    let head = table.columns.iter().map(|head| bare(head)).collect();
    let rows = table.rows.iter().take(MOST_ROWS).map(|row| row.iter().map(|cell| bare(&cell.shown())).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width_of = |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..table.columns.len()).map(|at| width_of(at).unwrap_or(0)).collect();
    let is_right: Vec<bool> = (0..widths.len())
        .map(|at| table.rows.iter().all(|row| row.get(at).is_none_or(super::Cell::is_number)))
        .collect();
    for row in &all {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let gap = widths[at].saturating_sub(cell.chars().count());
            line.push_str("  ");
            if is_right[at] {
                line.push_str(&" ".repeat(gap));
            }
            line.push_str(cell);
            if !is_right[at] {
                line.push_str(&" ".repeat(gap));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if table.rows.len() > MOST_ROWS {
        let _ = writeln!(text, "  ... {} more rows (--out DIR writes all)", table.rows.len() - MOST_ROWS);
    }
    text.push('\n');
}
