//! What a comparison found, for people: text for a terminal, or Markdown; and tidy CSV for programs.

use crate::comparison::answer::{ComparisonResult, FigureSpread, MetricVerdicts};
use crate::comparison::conclusion::conclusion;
use crate::comparison::design::{CandidateRun, ComparisonDesign};
use crate::comparison::figures::RunFigures;
use crate::comparison::verdict::{CandidateVerdict, Comparison};
use crate::comparison::words::{change_text, number, verdict_text};
use cosched_core::metric::Better;
use cosched_report::{
    CellTone, METRIC_COLUMNS, Table, TableCell, TableColumn, TableForm, TidyTable, count,
    markdown_text, visible, wrap,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What a comparison found, in words: texts, documents and pages frame it.
#[derive(Debug)]
pub struct ComparisonText {
    /// What was compared, in a sentence.
    pub what: String,
    /// The verdicts in each metric.
    pub metrics: Vec<MetricText>,
    /// What makes figures doubtful, in sentences.
    pub doubts: Vec<String>,
    /// What to use, and what is not known.
    pub conclusion: String,
    is_simulated: bool,
}

/// The verdicts in a metric, in words.
#[derive(Debug)]
pub struct MetricText {
    /// Its name.
    pub name: &'static str,
    /// What its figures are, in a sentence.
    pub meaning: String,
    /// The figures and verdicts of the candidates.
    pub candidates: Table,
    /// The changes with each mix, if there are several.
    pub mixes: Option<Table>,
}

impl ComparisonText {
    /// Puts an answer into words.
    pub fn of(answer: &ComparisonResult) -> ComparisonText {
        let design = &answer.manifest.design;
        let mut metrics = Vec::new();
        for judged in &answer.judged {
            metrics.push(MetricText {
                name: judged.metric.name,
                meaning: meaning(design, judged),
                candidates: candidate_table(design, judged),
                mixes: (!judged.by_mix.is_empty()).then(|| mix_table(design, judged)),
            });
        }
        let mut doubts = Vec::new();
        for (doubt, trials) in answer.doubts() {
            doubts.push(format!("{}: {doubt}", runs_text(answer, &trials)));
        }
        doubts.extend(answer.notes.iter().cloned());
        ComparisonText {
            what: what(answer),
            metrics,
            doubts,
            conclusion: conclusion(answer),
            is_simulated: design.is_simulated(),
        }
    }

    /// A text for a terminal so many columns wide.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        if self.is_simulated {
            out.push_str("SIMULATED\n");
        }
        paragraph(&mut out, width, &self.what);
        for metric in &self.metrics {
            out.push('\n');
            let meaning = format!("{}: {}", metric.name, metric.meaning);
            paragraph(&mut out, width, &meaning);
            out.push_str(&metric.candidates.clone().text(width));
        }
        out.push('\n');
        paragraph(&mut out, width, LEVELS);
        for doubt in &self.doubts {
            paragraph(&mut out, width, &visible(doubt));
        }
        out.push('\n');
        paragraph(&mut out, width, &self.conclusion);
        out
    }

    /// A Markdown document, with the figures of each mix if there are several.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Comparison\n\n");
        if self.is_simulated {
            out.push_str("**Simulated.** ");
        }
        let _ = writeln!(out, "{}. {LEVELS}", markdown_text(&self.what));
        for metric in &self.metrics {
            let meaning = markdown_text(&metric.meaning);
            let _ = writeln!(out, "\n## {}\n\n{meaning}.\n", metric.name);
            out.push_str(&metric.candidates.markdown());
            if let Some(mixes) = &metric.mixes {
                let _ = write!(out, "\n{}", mixes.markdown());
            }
        }
        if !self.doubts.is_empty() {
            out.push_str("\n## Doubtful\n\n");
        }
        for doubt in &self.doubts {
            let _ = writeln!(out, "- {}", markdown_text(doubt));
        }
        let conclusion = markdown_text(&self.conclusion);
        let _ = writeln!(out, "\n## Conclusion\n\n{conclusion}");
        out
    }
}

fn paragraph(out: &mut String, width: usize, text: &str) {
    for line in wrap(text, width) {
        let _ = writeln!(out, "{line}");
    }
}

/// A candidate's figures in a metric, and how they compare with the baseline's.
struct CandidateRow<'a> {
    name: &'a str,
    spread: Option<FigureSpread>,
    /// `None` of the baseline.
    comparison: Option<&'a Comparison>,
}

/// The figures and verdicts of the candidates in a metric.
fn candidate_table(design: &ComparisonDesign, judged: &MetricVerdicts) -> Table {
    let mut rows = Vec::new();
    for (at, candidate) in design.candidates.iter().enumerate() {
        let mut compared = judged.over_all.iter();
        rows.push(CandidateRow {
            name: &candidate.name,
            spread: judged.spreads[at],
            comparison: compared.find(|one| one.candidate == at),
        });
    }
    let against = format!("against {}", design.candidates[design.baseline].name);
    let columns = vec![
        TableColumn::text("candidate", 0, &rows, |row| row.name.to_owned()),
        TableColumn::number("least", 2, &rows, |row| {
            row.spread.map(|all| number(all.least))
        }),
        TableColumn::number("median", 0, &rows, |row| {
            row.spread.map(|all| number(all.median))
        }),
        TableColumn::number("greatest", 2, &rows, |row| {
            row.spread.map(|all| number(all.greatest))
        }),
        TableColumn::text(against, 0, &rows, change_cell),
        TableColumn::text("verdict", 0, &rows, verdict_cell).wrapped(),
    ];
    Table { columns }
}

fn change_cell(row: &CandidateRow<'_>) -> TableCell {
    match row.comparison {
        None => "the baseline".into(),
        Some(comparison) => comparison.change.as_ref().ok().map(change_text).into(),
    }
}

fn verdict_cell(row: &CandidateRow<'_>) -> TableCell {
    let Some(comparison) = row.comparison else {
        return "".into();
    };
    let tone = match comparison.verdict {
        CandidateVerdict::Better => CellTone::Good,
        CandidateVerdict::Worse => CellTone::Bad,
        CandidateVerdict::NoDifference | CandidateVerdict::CantSay => CellTone::Plain,
    };
    TableCell::toned(&verdict_text(comparison), tone)
}

/// The changes with each mix.
fn mix_table(design: &ComparisonDesign, judged: &MetricVerdicts) -> Table {
    let name = TableColumn::text("mix", 0, &design.mixes, |mix| mix.name.clone());
    let mut columns = vec![name];
    for candidate in design.others() {
        let mut of_mixes = judged.by_mix.clone();
        of_mixes.retain(|one| one.candidate == candidate);
        let name = &design.candidates[candidate].name;
        columns.push(TableColumn::text(name, 0, &of_mixes, |one| {
            one.change.as_ref().ok().map(change_text)
        }));
    }
    Table { columns }
}

/// What the figures of a metric are, in a sentence.
fn meaning(design: &ComparisonDesign, judged: &MetricVerdicts) -> String {
    let metric = judged.metric;
    let mixes = design.mixes.len();
    let over = if mixes > 1 {
        format!("; figures are geometric means over {mixes} mixes")
    } else {
        String::new()
    };
    let better = match metric.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    format!("{}; {better}{over}", metric.meaning)
}

/// What was compared, in a sentence.
fn what(answer: &ComparisonResult) -> String {
    let design = &answer.manifest.design;
    let mixes = match &design.mixes[..] {
        [one] if one.file.is_none() => count(design.candidates.len() as u64, "command line"),
        [one] => visible(&one.name),
        all => format!("{} mixes", all.len()),
    };
    let simulated = if design.is_simulated() {
        "simulated on "
    } else {
        "on "
    };
    let blocks = count(answer.whole_blocks() as u64, "block");
    let left_out = match answer.left_out() {
        0 => String::new(),
        1 => "; 1 run of a block that is not whole is left out".to_owned(),
        some => format!("; {some} runs of blocks that are not whole are left out"),
    };
    format!(
        "{mixes} {simulated}{}, {blocks}, seed {}{}{left_out}",
        visible(&answer.machine),
        design.seed,
        auto_text(answer)
    )
}

/// What the policy `auto` was.
fn auto_text(answer: &ComparisonResult) -> String {
    let mut text = String::new();
    for (at, candidate) in answer.manifest.design.candidates.iter().enumerate() {
        if !candidate.is_auto() {
            continue;
        }
        let runs = answer.outcomes.iter();
        let runs = runs.filter(|outcome| outcome.trial.candidate == at);
        let taken: BTreeSet<&str> = runs.filter_map(|run| run.policy.as_deref()).collect();
        let taken = taken.into_iter().collect::<Vec<_>>().join(" or ");
        if !taken.is_empty() {
            let _ = write!(text, "; {} was {taken}", visible(&candidate.name));
        }
    }
    text
}

/// What intervals and verdicts are.
pub const LEVELS: &str = "In brackets: the 95 % interval, over blocks that were compared within themselves. Better and worse need \
                      a 99 % interval on one side of zero.";

/// Runs by candidate, mix and block. Of many runs only the first are named.
pub fn runs_text(answer: &ComparisonResult, trials: &[CandidateRun]) -> String {
    const NAMED: usize = 3;
    let named = trials
        .iter()
        .take(NAMED)
        .map(|&trial| run_text(answer, trial));
    let named = named.collect::<Vec<_>>().join(", ");
    match trials.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {}", count(more as u64, "more run")),
    }
}

fn run_text(answer: &ComparisonResult, trial: CandidateRun) -> String {
    let design = &answer.manifest.design;
    let candidate = visible(&design.candidates[trial.candidate].name);
    let mix = if design.mixes.len() > 1 {
        format!(" with {}", visible(&design.mixes[trial.mix].name))
    } else {
        String::new()
    };
    format!("{candidate}{mix} in block {}", trial.block)
}

/// The columns that tell which run a row is of.
pub const RUN_COLUMNS: [&str; 4] = ["block", "mix", "candidate", "policy"];

/// The values of a run in these columns.
pub fn run_values(design: &ComparisonDesign, outcome: &RunFigures) -> [Value; 4] {
    let trial = outcome.trial;
    [
        Value::from(trial.block),
        Value::from(&*design.mixes[trial.mix].name),
        Value::from(&*design.candidates[trial.candidate].name),
        Value::from(outcome.policy.as_deref()),
    ]
}

/// Writes a tidy table: one value a row, of every metric of every run.
///
/// # Errors
/// It can't be written.
pub fn write_figures(
    answer: &ComparisonResult,
    form: TableForm,
    out: impl Write,
) -> io::Result<()> {
    let columns = [&RUN_COLUMNS[..], &METRIC_COLUMNS].concat();
    let mut table = TidyTable::new(form, &columns, out)?;
    for outcome in &answer.outcomes {
        let run = run_values(&answer.manifest.design, outcome);
        for (name, value) in &outcome.figures {
            let figure = [Value::from(&**name), Value::from(*value), Value::Null];
            table.row(&[&run[..], &figure].concat())?;
        }
        for (name, why) in &outcome.absent {
            let figure = [Value::from(&**name), Value::Null, Value::from(&**why)];
            table.row(&[&run[..], &figure].concat())?;
        }
    }
    table.finish()
}

/// The same as CSV.
pub fn csv(answer: &ComparisonResult) -> String {
    let mut out = Vec::new();
    // Writing to memory can't fail, and what was written is text.
    let _ = write_figures(answer, TableForm::Csv, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// One JSON object, schema `cosched.comparison/1`.
pub fn json(answer: &ComparisonResult) -> String {
    let comparisons: Vec<&Comparison> = answer
        .judged
        .iter()
        .flat_map(|judged| judged.over_all.iter().chain(&judged.by_mix))
        .collect();
    let object = serde_json::json!({
        "schema": "cosched.comparison/1",
        "compared": answer.manifest,
        "machine": answer.machine,
        "blocks": answer.whole_blocks(),
        "notes": answer.notes,
        "conclusion": conclusion(answer),
        "comparisons": comparisons,
        "runs": answer.outcomes,
    });
    // Maps with text keys and plain values can't fail to serialise.
    let mut text = serde_json::to_string_pretty(&object).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::{ComparedCandidate, ComparedMix, ComparisonMeans};
    use crate::comparison::figures::RunFigures;
    use crate::comparison::store::{COMPARE_SCHEMA, Manifest};

    /// Two policies and another program with one or two mixes, five blocks. `fair` takes a tenth less, the program about as
    /// much as `linux`.
    fn answer(mixes: usize) -> ComparisonResult {
        let mix = |at: usize| ComparedMix {
            name: format!("mix|{at}"),
            file: Some(String::new()),
            is_list: false,
        };
        let program = ComparedCandidate {
            name: "by\u{1b} hand".to_owned(),
            means: ComparisonMeans::Command("make".to_owned()),
        };
        let manifest = Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: "0".to_owned(),
            design: ComparisonDesign {
                mixes: (0..mixes).map(mix).collect(),
                candidates: vec![
                    ComparedCandidate::policy("linux"),
                    ComparedCandidate::policy("fair"),
                    program,
                ],
                baseline: 0,
                on: "host".to_owned(),
                seed: 1,
                options: Vec::new(),
            },
            metrics: Vec::new(),
            command_line: Vec::new(),
        };
        let mut outcomes = Vec::new();
        for block in 1..=5u32 {
            for mix in 0..mixes {
                let noise = |by: u32| 1.0 + 0.01 * f64::from((block * by) % 5);
                for (candidate, time) in [10.0 * noise(1), 9.0 * noise(2), 10.0 * noise(3)]
                    .into_iter()
                    .enumerate()
                {
                    let mut outcome = RunFigures {
                        trial: CandidateRun {
                            block,
                            mix,
                            candidate,
                        },
                        machine: "two CPUs".to_owned(),
                        ..RunFigures::default()
                    };
                    outcome.figures.insert("turnaround_s".to_owned(), time);
                    if candidate < 2 {
                        outcome.policy = Some("p".to_owned());
                        outcome
                            .absent
                            .insert("antt".to_owned(), "no \"solo\" time, alas".to_owned());
                    }
                    outcomes.push(outcome);
                }
            }
        }
        outcomes[1].doubts.push("others ran".to_owned());
        outcomes[0].failed = 1;
        let why = "jobs failed, b first; compared only with runs in which as many failed";
        outcomes[0].doubts.push(why.to_owned());
        let mut answer = ComparisonResult::new(manifest, outcomes);
        answer.notes.push("the time was over".to_owned());
        answer
    }

    #[test]
    fn figures_are_of_whole_blocks() {
        let whole = answer(1);
        let mut outcomes = whole.outcomes.clone();
        // A sixth block of which only one run was made, a very fast one.
        let mut more = outcomes[0].clone();
        more.trial = CandidateRun {
            block: 6,
            ..more.trial
        };
        more.figures.values_mut().for_each(|figure| *figure = 0.001);
        outcomes.push(more);
        let part = ComparisonResult::new(whole.manifest.clone(), outcomes);
        for (one, other) in part.judged.iter().zip(&whole.judged) {
            assert_eq!(
                (&one.spreads, &one.over_all),
                (&other.spreads, &other.over_all)
            );
        }
        let told = what(&part);
        assert!(
            told.contains("5 blocks")
                && told.ends_with("; 1 run of a block that is not whole is left out"),
            "{told}"
        );
        assert_eq!(
            (what(&whole).contains("left out"), part.outcomes.len()),
            (false, 16)
        );
    }

    #[test]
    fn it_reads_well() {
        insta::assert_snapshot!(ComparisonText::of(&answer(1)).text(100));
        let narrow = ComparisonText::of(&answer(1)).text(60);
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 68),
            "{narrow}"
        );
        assert!(!narrow.contains('\u{1b}'));
    }

    #[test]
    fn the_document_has_each_mix() {
        insta::assert_snapshot!(ComparisonText::of(&answer(2)).markdown());
    }

    #[test]
    fn every_value_is_a_line() {
        let csv = csv(&answer(1));
        assert_eq!(
            csv.lines().next(),
            Some("block,mix,candidate,policy,metric,value,absent")
        );
        // Five blocks: a metric and an absence of each policy, one metric of the program.
        assert_eq!(csv.lines().count(), 1 + 5 * (2 + 2 + 1));
        assert!(
            csv.contains("1,mix|0,linux,p,antt,,\"no \"\"solo\"\" time, alas\"\n"),
            "{csv}"
        );
        let json: serde_json::Value = serde_json::from_str(&json(&answer(2))).unwrap();
        assert_eq!(
            (
                json["blocks"].as_u64(),
                json["runs"].as_array().map(Vec::len)
            ),
            (Some(5), Some(30))
        );
        let turnaround = json["comparisons"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["metric"] == "turnaround_s");
        assert_eq!(turnaround.unwrap()["verdict"], "better");
    }
}
