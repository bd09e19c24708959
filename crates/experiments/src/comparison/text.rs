//! What a comparison found, for people: text for a terminal, or Markdown; and tidy CSV for programs.

use crate::comparison::answer::{ComparisonResult, MetricVerdicts, Spread};
use crate::comparison::conclusion::conclusion;
use crate::comparison::design::{CandidateRun, Design};
use crate::comparison::verdict::Comparison;
use crate::comparison::words::{change_text, number, verdict_text};
use cosched_core::metric::Better;
use cosched_report::{count, csv_field, visible, wrap};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The cells of a metric's table, the head first.
fn cells(answer: &ComparisonResult, judged: &MetricVerdicts) -> Vec<Vec<String>> {
    let design = &answer.manifest.design;
    let baseline = visible(&design.candidates[design.baseline].name);
    let head = [
        "candidate",
        "least",
        "median",
        "greatest",
        &format!("against {baseline}"),
        "verdict",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (at, candidate) in design.candidates.iter().enumerate() {
        let mut row = vec![visible(&candidate.name)];
        row.extend(spread_cells(judged.spreads[at].as_ref()));
        let compared = judged.over_all.iter().find(|one| one.candidate == at);
        row.extend(match compared {
            None => ["the baseline".to_owned(), String::new()],
            Some(comparison) => comparison_cells(comparison),
        });
        rows.push(row);
    }
    rows
}

fn comparison_cells(comparison: &Comparison) -> [String; 2] {
    let change = match &comparison.change {
        Ok(change) => change_text(change),
        Err(_) => "-".to_owned(),
    };
    [change, verdict_text(comparison)]
}

fn spread_cells(spread: Option<&Spread>) -> [String; 3] {
    match spread {
        Some(spread) => [spread.least, spread.median, spread.greatest].map(number),
        None => ["-", "-", "-"].map(str::to_owned),
    }
}

/// What the figures of a metric are, in a sentence.
pub fn meaning(answer: &ComparisonResult, judged: &MetricVerdicts) -> String {
    let metric = judged.metric;
    let mixes = answer.manifest.design.mixes.len();
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
pub fn what(answer: &ComparisonResult) -> String {
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

/// A column of words has at least so many characters.
const LEAST_ROOM: usize = 20;

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

/// A text for a terminal so many columns wide.
pub fn text(answer: &ComparisonResult, width: usize) -> String {
    let mut out = String::new();
    if answer.manifest.design.is_simulated() {
        out.push_str("SIMULATED\n");
    }
    paragraph(&mut out, width, &what(answer));
    for judged in &answer.judged {
        out.push('\n');
        let meaning = format!("{}: {}", judged.metric.name, meaning(answer, judged));
        paragraph(&mut out, width, &meaning);
        table(&mut out, width, &cells(answer, judged));
    }
    out.push('\n');
    paragraph(&mut out, width, LEVELS);
    for (doubt, trials) in answer.doubts() {
        let runs = runs_text(answer, &trials);
        let doubt = visible(&doubt);
        paragraph(&mut out, width, &format!("{runs}: {doubt}"));
    }
    for note in &answer.notes {
        paragraph(&mut out, width, &visible(note));
    }
    out.push('\n');
    paragraph(&mut out, width, &conclusion(answer));
    out
}

fn paragraph(out: &mut String, width: usize, text: &str) {
    for line in wrap(text, width) {
        let _ = writeln!(out, "{line}");
    }
}

/// The rows of a metric's table. A verdict that does not fit is wrapped, or stands on lines of its own.
fn table(out: &mut String, width: usize, rows: &[Vec<String>]) {
    let mut widths = [0; 5];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for at in 1..4 {
            let _ = write!(line, "  {:>1$}", row[at], widths[at]);
        }
        let _ = write!(line, "  {:<1$}  ", row[4], widths[4]);
        let mut indent = line.chars().count();
        let mut room = width.saturating_sub(indent);
        if room < LEAST_ROOM {
            let _ = writeln!(out, "{}", line.trim_end());
            line.clear();
            indent = 4;
            room = width.max(44) - indent;
        }
        for text in wrap(&row[5], room) {
            let _ = writeln!(out, "{}", format!("{line:indent$}{text}").trim_end());
            line.clear();
        }
        if !line.is_empty() {
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}

/// A text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

/// A Markdown document, with the figures of each mix if there are several.
pub fn markdown(answer: &ComparisonResult) -> String {
    let design = &answer.manifest.design;
    let mut out = String::from("# Comparison\n\n");
    let simulated = if design.is_simulated() {
        "**Simulated.** "
    } else {
        ""
    };
    let _ = writeln!(out, "{simulated}{}. {LEVELS}", cell(&what(answer)));
    for judged in &answer.judged {
        let name = judged.metric.name;
        let meaning = cell(&meaning(answer, judged));
        let _ = writeln!(out, "\n## {name}\n\n{meaning}.\n");
        for (at, row) in cells(answer, judged).iter().enumerate() {
            markdown_row(&mut out, row.iter().map(|text| cell(text)));
            if at == 0 {
                out.push_str("| --- | ---: | ---: | ---: | --- | --- |\n");
            }
        }
        if !judged.by_mix.is_empty() {
            markdown_of_mixes(&mut out, design, judged);
        }
    }
    let doubts = answer.doubts();
    if !doubts.is_empty() || !answer.notes.is_empty() {
        out.push_str("\n## Doubtful\n\n");
    }
    for (doubt, trials) in doubts {
        let runs = cell(&runs_text(answer, &trials));
        let doubt = cell(&visible(&doubt));
        let _ = writeln!(out, "- {runs}: {doubt}");
    }
    for note in &answer.notes {
        let _ = writeln!(out, "- {}", cell(&visible(note)));
    }
    let _ = writeln!(out, "\n## Conclusion\n\n{}", cell(&conclusion(answer)));
    out
}

fn markdown_row(out: &mut String, cells: impl Iterator<Item = String>) {
    let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
}

/// The changes with each mix.
fn markdown_of_mixes(out: &mut String, design: &Design, judged: &MetricVerdicts) {
    let others: Vec<usize> = design.others().collect();
    let names = others.iter().map(|&at| design.candidates[at].name.as_str());
    let head = ["mix"].into_iter().chain(names);
    out.push('\n');
    markdown_row(out, head.map(|name| cell(&visible(name))));
    let _ = writeln!(out, "| --- |{}", " --- |".repeat(others.len()));
    let by_mix = judged.by_mix.chunks(others.len().max(1));
    for (mix, of_mix) in design.mixes.iter().zip(by_mix) {
        let changes = of_mix.iter().map(|one| match &one.change {
            Ok(change) => change_text(change),
            Err(_) => "-".to_owned(),
        });
        let name = cell(&visible(&mix.name));
        markdown_row(out, [name].into_iter().chain(changes));
    }
}

/// Tidy CSV: one value a line, of every metric of every run; empty where it is absent.
pub fn csv(answer: &ComparisonResult) -> String {
    let design = &answer.manifest.design;
    let mut out = String::from("block,mix,candidate,policy,metric,value,absent\n");
    for outcome in &answer.outcomes {
        let CandidateRun {
            block,
            mix,
            candidate,
        } = outcome.trial;
        let mix = csv_field(&design.mixes[mix].name);
        let candidate = csv_field(&design.candidates[candidate].name);
        let policy = csv_field(outcome.policy.as_deref().unwrap_or_default());
        let run = format!("{block},{mix},{candidate},{policy}");
        for (name, value) in &outcome.figures {
            let _ = writeln!(out, "{run},{name},{value},");
        }
        for (name, why) in &outcome.absent {
            let why = csv_field(why);
            let _ = writeln!(out, "{run},{name},,{why}");
        }
    }
    out
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
    use crate::comparison::design::{ComparedCandidate, ComparedMix, Means};
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
            means: Means::Command("make".to_owned()),
        };
        let manifest = Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: "0".to_owned(),
            design: Design {
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
        insta::assert_snapshot!(text(&answer(1), 100));
        let narrow = text(&answer(1), 60);
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 68),
            "{narrow}"
        );
        assert!(!narrow.contains('\u{1b}'));
    }

    #[test]
    fn the_document_has_each_mix() {
        insta::assert_snapshot!(markdown(&answer(2)));
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
