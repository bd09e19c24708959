//! The findings as a Markdown document.

use super::chapter::{Chapter, ChapterFigure, ChapterPart};
use super::table::FindingTable;
use super::{Findings, verdict};
use cosched_report::{Table, TableColumn, wrap};
use std::fmt::Write as _;

/// Width of its lines of text.
const WIDTH: usize = 120;

/// Rows of a table that can still be read beside a figure.
const FEW: usize = 31;

/// The first line of the document.
pub const REPRODUCTION_TITLE: &str = "# The papers, repeated in the simulation";

/// The chapters. `figures` is the folder of the pictures, relative to the document; `None` if they were not written.
pub fn markdown(findings: &Findings, figures: Option<&str>) -> String {
    let mut text = format!("{REPRODUCTION_TITLE}\n\n");
    for words in findings.introduction() {
        paragraph(&mut text, &words);
    }
    for chapter in &findings.chapters {
        let _ = writeln!(text, "## {}\n", chapter.title);
        for one in &chapter.parts {
            part(&mut text, chapter, one, figures);
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn part(text: &mut String, chapter: &Chapter, part: &ChapterPart, figures: Option<&str>) {
    match part {
        ChapterPart::Heading(words) => _ = writeln!(text, "### {words}\n"),
        ChapterPart::Text(words) => paragraph(text, words),
        ChapterPart::Table(one) => {
            paragraph(text, &one.caption);
            table(text, one);
        }
        ChapterPart::Figure(one) => figure(text, one, figures),
        ChapterPart::Verdicts => {
            let _ = writeln!(text, "### Verdicts\n");
            table(text, &verdict::table(chapter.id, &chapter.verdicts));
        }
    }
}

fn figure(text: &mut String, figure: &ChapterFigure, figures: Option<&str>) {
    let FindingTable { id, caption, .. } = &figure.table;
    if let Some(folder) = figures {
        let _ = writeln!(text, "![{caption}]({folder}/{id}.svg)\n");
    }
    paragraph(text, caption);
    if figure.table.rows.len() <= FEW {
        table(text, &figure.table);
    } else if figures.is_none() {
        paragraph(text, "(`--out DIR` draws it.)");
    }
}

/// A paragraph, broken into lines.
fn paragraph(text: &mut String, words: &str) {
    for line in wrap(words, WIDTH) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

fn table(text: &mut String, found: &FindingTable) {
    let mut columns = Vec::new();
    for (at, title) in found.columns.iter().enumerate() {
        let mut column = TableColumn::text(title, 0, &found.rows, |row| row[at].text.clone());
        column.is_number = found.rows.iter().all(|row| row[at].is_number);
        columns.push(column);
    }
    text.push_str(&Table { columns }.markdown());
    text.push('\n');
}
