//! The findings as plain text for a terminal.

use super::markdown::wrapped;
use super::{Findings, Part, Table};
use std::fmt::Write as _;

/// The chapters, in lines of at most `width` characters. A table is wider only if its longest words are.
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
            table(&mut text, &verdicts, width);
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
    let _ = writeln!(
        text,
        "{words}\n{}\n",
        rule.to_string().repeat(words.chars().count())
    );
}

fn parts(text: &mut String, parts: &[Part], width: usize) {
    for part in parts {
        match part {
            Part::Heading(words) => heading(text, words, '-'),
            Part::Text(words) => paragraph(text, words, width),
            Part::Table(one) => {
                paragraph(text, &one.caption, width);
                table(text, one, width);
            }
            Part::Figure(figure) => {
                paragraph(text, &figure.table.caption, width);
                if figure.few {
                    table(text, &figure.table, width);
                } else {
                    paragraph(
                        text,
                        &format!(
                            "({} numbers: --out DIR writes them, and the figure)",
                            figure.table.rows.len()
                        ),
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

/// Spaces before each column.
const GAP: usize = 2;

fn table(text: &mut String, table: &Table, width: usize) {
    let head = table.columns.iter().map(|head| bare(head)).collect();
    let rows = table
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|row| row.iter().map(|cell| bare(&cell.shown())).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let widths = widths(&all, width);
    let is_right: Vec<bool> = (0..widths.len())
        .map(|at| {
            table
                .rows
                .iter()
                .all(|row| row.get(at).is_none_or(super::Cell::is_number))
        })
        .collect();
    for row in &all {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| wrapped(cell, width))
            .collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut shown = String::new();
            for (at, cell) in cells.iter().enumerate() {
                let cell = cell.get(line).map_or("", String::as_str);
                let gap = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
                shown.push_str(&" ".repeat(GAP));
                let (before, after) = if is_right[at] {
                    (gap.as_str(), "")
                } else {
                    ("", gap.as_str())
                };
                shown.extend([before, cell, after]);
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
    }
    if table.rows.len() > MOST_ROWS {
        let _ = writeln!(
            text,
            "  ... {} more rows (--out DIR writes all)",
            table.rows.len() - MOST_ROWS
        );
    }
    text.push('\n');
}

/// Widths of the columns: as their longest cells, but the widest are narrowed, down to their longest words, until a row fits.
fn widths(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    let most = |at: usize, of: &dyn Fn(&str) -> usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|cell| of(cell))
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns)
        .map(|at| most(at, &|cell| cell.chars().count()))
        .collect();
    let words: Vec<usize> = (0..columns)
        .map(|at| {
            most(at, &|cell| {
                cell.split_whitespace()
                    .map(|word| word.chars().count())
                    .max()
                    .unwrap_or(0)
            })
        })
        .collect();
    while widths.iter().sum::<usize>() + GAP * columns > width {
        // The first column says what a row is, and is narrowed least.
        let weight = |at: usize| widths[at] / if at == 0 { 2 } else { 1 };
        let narrowed = (0..columns)
            .filter(|&at| widths[at] > words[at])
            .max_by_key(|&at| weight(at));
        let Some(at) = narrowed else { break };
        widths[at] -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::super::Cell;
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_it_may_be_and_loses_no_word() {
        let rows = vec![
            vec![
                Cell::text("a rather long name of a figure"),
                Cell::number(1.5, 1),
                Cell::text("agrees"),
            ],
            vec![
                Cell::text("short"),
                Cell::number(-10.0, 1),
                Cell::text("beyond a factor of two"),
            ],
        ];
        let columns = ["what", "here / paper", "verdict"]
            .map(str::to_owned)
            .to_vec();
        let one = Table {
            id: "t".to_owned(),
            caption: String::new(),
            columns,
            rows,
        };
        for width in [20, 40, 80] {
            let mut text = String::new();
            table(&mut text, &one, width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(27), "{width}: {widest}\n{text}");
            for word in ["rather", "figure", "-10.0", "beyond", "two", "paper"] {
                assert!(text.contains(word), "{width}: {word}\n{text}");
            }
        }
        let mut text = String::new();
        table(&mut text, &one, 80);
        assert_eq!(
            text.lines().nth(2),
            Some("  short                                  -10.0  beyond a factor of two")
        );
    }
}
