//! The verdicts with their figures.

use crate::html::{HtmlCell, HtmlTable, element, paragraph};
use cosched_experiments::comparison::{
    CandidateVerdict, ComparisonResult, LEVELS, MetricVerdicts, change_text, meaning, number,
    verdict_text,
};
use cosched_report::escaped;

/// The colour of a verdict. The words say the same.
fn mark(verdict: CandidateVerdict) -> &'static str {
    match verdict {
        CandidateVerdict::Better => "good",
        CandidateVerdict::Worse => "bad",
        CandidateVerdict::NoDifference | CandidateVerdict::CantSay => "",
    }
}

/// The section: a table for each metric.
pub(super) fn verdicts(answer: &ComparisonResult) -> String {
    let mut tables = String::new();
    for judged in &answer.judged {
        tables.push_str(&table(answer, judged));
    }
    let levels = paragraph(LEVELS);
    format!("{levels}<div class=\"tables\">\n{tables}</div>\n")
}

fn table(answer: &ComparisonResult, judged: &MetricVerdicts) -> String {
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
    let table = HtmlTable {
        caption: &meaning(answer, judged),
        ..HtmlTable::new(&columns, rows)
    };
    let name = element("h3", &escaped(judged.metric.name));
    format!("<div>\n{name}{}</div>\n", table.html())
}

/// The row of a candidate.
fn row(answer: &ComparisonResult, judged: &MetricVerdicts, candidate: usize) -> Vec<HtmlCell> {
    let name = &answer.manifest.design.candidates[candidate].name;
    let mut compared = judged.over_all.iter();
    let compared = compared.find(|one| one.candidate == candidate);
    let [verdict, change] = match compared {
        None => [HtmlCell::text("the baseline"), HtmlCell::text("")],
        Some(one) => [
            HtmlCell::Marked(mark(one.verdict), verdict_text(one)),
            match &one.change {
                Ok(change) => HtmlCell::Text(change_text(change)),
                Err(_) => HtmlCell::None,
            },
        ],
    };
    let mut cells = vec![HtmlCell::text(name), verdict, change];
    let figures = match judged.spreads[candidate] {
        Some(spread) => [spread.median, spread.least, spread.greatest].map(Some),
        None => [None; 3],
    };
    cells.extend(figures.map(|figure| HtmlCell::number(figure, number)));
    cells
}
