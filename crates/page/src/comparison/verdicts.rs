//! The verdicts with their figures.

use crate::html::{Cell, Table, paragraph};
use cosched_experiments::comparison::{
    Answer, Judged, LEVELS, Verdict, change_text, meaning, number, verdict_text,
};
use cosched_report::escaped;

/// The colour of a verdict. The words say the same.
fn mark(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Better) => "good",
        Some(Verdict::Worse) => "bad",
        Some(Verdict::NoDifference) | None => "",
    }
}

/// The section: a table for each metric.
pub(super) fn verdicts(answer: &Answer) -> String {
    let tables: String = answer
        .judged
        .iter()
        .map(|judged| table(answer, judged))
        .collect();
    format!(
        "{}<div class=\"tables\">\n{tables}</div>\n",
        paragraph(LEVELS)
    )
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
    let table = Table {
        caption: &meaning(answer, judged),
        columns: columns.map(str::to_owned).to_vec(),
        rows: (0..design.candidates.len())
            .map(|at| row(answer, judged, at))
            .collect(),
    };
    format!(
        "<div>\n<h3>{}</h3>\n{}</div>\n",
        escaped(judged.metric.name),
        table.html()
    )
}

/// The row of a candidate.
fn row(answer: &Answer, judged: &Judged, candidate: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::text(
        &answer.manifest.design.candidates[candidate].name,
    )];
    let compared = judged
        .over_all
        .iter()
        .find(|one| one.candidate == candidate);
    cells.extend(match compared {
        None => [Cell::text("the baseline"), Cell::text("")],
        Some(one) => match &one.change {
            Ok(change) => [
                Cell::Marked(mark(one.verdict), verdict_text(one)),
                Cell::Text(change_text(change)),
            ],
            Err(why) => [Cell::text(why), Cell::None],
        },
    });
    let figures = match judged.spreads[candidate] {
        Some(spread) => [spread.median, spread.least, spread.greatest].map(Some),
        None => [None; 3],
    };
    cells.extend(figures.map(|figure| Cell::number(figure, number)));
    cells
}
