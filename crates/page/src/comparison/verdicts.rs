//! The verdicts with their figures.

use crate::html::{Cell, Table, element, paragraph};
use cosched_experiments::comparison::{
    Answer, Judged, LEVELS, Verdict, change_text, meaning, number, verdict_text,
};
use cosched_report::escaped;

/// The colour of a verdict. The words say the same.
fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "good",
        Verdict::Worse => "bad",
        Verdict::NoDifference | Verdict::CantSay => "",
    }
}

/// The section: a table for each metric.
pub(super) fn verdicts(answer: &Answer) -> String {
    let mut tables = String::new();
    for judged in &answer.judged {
        tables.push_str(&table(answer, judged));
    }
    let levels = paragraph(LEVELS);
    format!("{levels}<div class=\"tables\">\n{tables}</div>\n")
}

fn table(answer: &Answer, judged: &Judged) -> String {
    let design = &answer.manifest.design;
    let baseline = &design.candidates[design.baseline].name;
    // What is most important comes first: on a small screen the rest must be scrolled to.
    let columns = [
        "candidate",
        "verdict",
        &format!("against {baseline}"),
        "#median",
        "#least",
        "#greatest",
    ];
    let candidates = 0..design.candidates.len();
    let rows = candidates.map(|at| row(answer, judged, at)).collect();
    let table = Table {
        caption: &meaning(answer, judged),
        ..Table::new(&columns, rows)
    };
    let name = element("h3", &escaped(judged.metric.name));
    format!("<div>\n{name}{}</div>\n", table.html())
}

/// The row of a candidate.
fn row(answer: &Answer, judged: &Judged, candidate: usize) -> Vec<Cell> {
    let name = &answer.manifest.design.candidates[candidate].name;
    let mut compared = judged.over_all.iter();
    let compared = compared.find(|one| one.candidate == candidate);
    let [verdict, change] = match compared {
        None => [Cell::text("the baseline"), Cell::text("")],
        Some(one) => [
            Cell::Marked(mark(one.verdict), verdict_text(one)),
            match &one.change {
                Ok(change) => Cell::Text(change_text(change)),
                Err(_) => Cell::None,
            },
        ],
    };
    let mut cells = vec![Cell::text(name), verdict, change];
    let figures = match judged.spreads[candidate] {
        Some(spread) => [spread.median, spread.least, spread.greatest].map(Some),
        None => [None; 3],
    };
    cells.extend(figures.map(|figure| Cell::number(figure, number)));
    cells
}
