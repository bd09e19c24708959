//! The verdicts, in words first, then with their figures.

use crate::html::{Cell, Table, paragraph};
use cosched_experiments::comparison::{
    Answer, Judged, LEVELS, Verdict, change_text, meaning, number, verdict_text,
};
use cosched_report::{escaped, visible};

/// The colour of a verdict. The words say the same.
fn mark(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Better) => "good",
        Some(Verdict::Worse) => "bad",
        Some(Verdict::NoDifference) | None => "",
    }
}

/// A sentence for each candidate: what is better and what is worse.
fn sentences(answer: &Answer) -> String {
    let design = &answer.manifest.design;
    let baseline = visible(&design.candidates[design.baseline].name);
    let mut out = String::from("<ul>\n");
    for (at, candidate) in design
        .candidates
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != design.baseline)
    {
        let mut parts: Vec<String> = Vec::new();
        for judged in &answer.judged {
            let one = judged.over_all.iter().find(|one| one.candidate == at);
            let Some((one, change)) = one.and_then(|one| Some((one, one.change.as_ref().ok()?)))
            else {
                continue;
            };
            let told = match one.verdict {
                Some(Verdict::Better) => "better",
                Some(Verdict::Worse) => "worse",
                Some(Verdict::NoDifference) => "no difference shown",
                None => "one block only",
            };
            let class = mark(one.verdict);
            let name = escaped(judged.metric.name);
            parts.push(format!(
                "<span class=\"{class}\">{name} {told}</span>: {}",
                escaped(&change_text(change))
            ));
        }
        let told = if parts.is_empty() {
            "nothing can be told yet".to_owned()
        } else {
            parts.join("; ")
        };
        out.push_str(&format!(
            "<li><strong>{}</strong> against {}: {told}.</li>\n",
            escaped(&candidate.name),
            escaped(&baseline)
        ));
    }
    out.push_str("</ul>\n");
    out
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
    let rows = design.candidates.iter().enumerate().map(|(at, candidate)| {
        let spread = judged.spreads[at];
        let mut cells = vec![Cell::text(&candidate.name)];
        match judged
            .over_all
            .iter()
            .find(|one| one.candidate == at)
            .map(|one| (one, &one.change))
        {
            None => cells.extend([Cell::text("the baseline"), Cell::text("")]),
            Some((one, Ok(change))) => cells.extend([
                Cell::Marked(mark(one.verdict), verdict_text(one)),
                Cell::Text(change_text(change)),
            ]),
            Some((_, Err(why))) => cells.extend([Cell::text(why), Cell::None]),
        }
        for value in [
            spread.map(|one| one.median),
            spread.map(|one| one.least),
            spread.map(|one| one.greatest),
        ] {
            cells.push(Cell::number(value, number));
        }
        cells
    });
    let caption = meaning(answer, judged);
    let table = Table {
        caption: &caption,
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    };
    format!(
        "<div>\n<h3>{}</h3>\n{}</div>\n",
        escaped(judged.metric.name),
        table.html()
    )
}

/// The section.
pub(super) fn verdicts(answer: &Answer) -> String {
    let tables: String = answer
        .judged
        .iter()
        .map(|judged| table(answer, judged))
        .collect();
    format!(
        "{}{}<div class=\"tables\">\n{tables}</div>\n",
        sentences(answer),
        paragraph(LEVELS)
    )
}
