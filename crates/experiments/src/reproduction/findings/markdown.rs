//! The findings as a Markdown document.

use super::{Cell, Findings, Part, Table};
use std::fmt::Write as _;

/// Width of its lines of text.
const WIDTH: usize = 120;

/// The chapters. `figures` is the folder of the pictures, relative to the document; `None` if they were not written.
pub fn markdown(findings: &Findings, figures: Option<&str>) -> String {
    let mut text = String::new();
    head(&mut text, findings);
    for (chapter, verdicts) in findings.chapters.iter().zip(findings.verdicts()) {
        let _ = writeln!(text, "## {}\n", chapter.title);
        parts(&mut text, &chapter.parts, figures);
        if !verdicts.rows.is_empty() {
            let _ = writeln!(text, "### Verdicts\n");
            table(&mut text, &verdicts);
        }
        if !chapter.causes.is_empty() {
            let _ = writeln!(text, "### What makes the difference\n");
            parts(&mut text, &chapter.causes, figures);
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// What the document is, how to read it, and how it came out.
fn head(text: &mut String, findings: &Findings) {
    let _ = writeln!(text, "# {}\n", findings.title());
    for words in findings.introduction() {
        paragraph(text, &words);
    }
}

fn parts(text: &mut String, parts: &[Part], figures: Option<&str>) {
    for part in parts {
        match part {
            Part::Heading(words) => _ = writeln!(text, "### {words}\n"),
            Part::Text(words) => paragraph(text, words),
            Part::Table(one) => {
                paragraph(text, &one.caption);
                table(text, one);
            }
            Part::Figure(figure) => {
                if let Some(folder) = figures {
                    let _ = writeln!(
                        text,
                        "![{}]({folder}/{}.svg)\n",
                        escaped(&figure.table.caption),
                        figure.table.id
                    );
                }
                paragraph(text, &figure.table.caption);
                if figure.few {
                    table(text, &figure.table);
                } else if figures.is_none() {
                    paragraph(
                        text,
                        &format!(
                            "({} numbers: `--out DIR` writes them, and the figure.)",
                            figure.table.rows.len()
                        ),
                    );
                }
            }
        }
    }
}

/// A paragraph, broken into lines.
fn paragraph(text: &mut String, words: &str) {
    for line in wrapped(words, WIDTH) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

/// The words in lines of at most so many characters, unless one word is longer.
pub(super) fn wrapped(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn escaped(words: &str) -> String {
    words.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn table(text: &mut String, table: &Table) {
    let heads: Vec<String> = table.columns.iter().map(|head| escaped(head)).collect();
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let is_right = |at: usize| {
        table
            .rows
            .iter()
            .all(|row| row.get(at).is_none_or(Cell::is_number))
    };
    let rules: Vec<&str> = (0..heads.len())
        .map(|at| if is_right(at) { "---:" } else { "---" })
        .collect();
    let _ = writeln!(text, "| {} |", rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(&cell.shown())).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
}
