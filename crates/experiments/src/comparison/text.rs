//! What a comparison found, for people: text for a terminal, or Markdown; and tidy CSV for programs.

use crate::comparison::answer::{Answer, Judged, Spread};
use crate::comparison::design::Trial;
use crate::comparison::verdict::{Change, Comparison, Verdict, WORTH};
use cosched_core::metric::Better;
use cosched_report::{count, csv_field, decimal, visible, wrap};
use std::fmt::Write as _;

/// A number with about four significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        // Nobody counts so many digits.
        size if size >= 1e9 => format!("{value:.3e}"),
        size if size >= 999.95 => format!("{value:.0}"),
        size if size >= 99.995 => format!("{value:.1}"),
        size if size >= 9.999_5 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share in per cent, with as many decimals as tell something.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    let decimals = if value.abs() < 9.95 { 1 } else { 0 };
    decimal(value, decimals)
}

/// An interval that reaches above this many times the baseline's figure, less 1, is not told in words.
const MOST_TOLD: f64 = 4.0;

/// A change from the baseline in words: by how much it is more or less, with the ends of the 95 % interval in brackets.
pub fn change_text(change: &Change) -> String {
    // Both ends are told from the side of the mean.
    let side = if change.mean < 0.0 { -1.0 } else { 1.0 };
    let word = if change.mean < 0.0 { "less" } else { "more" };
    let ends = match change.interval {
        None => String::new(),
        // Per cent of which nobody has an idea.
        Some((_, high)) if high > MOST_TOLD => " (the blocks differ too much to say)".to_owned(),
        Some((low, high)) => {
            let (low, high) = if side < 0.0 {
                (-high, -low)
            } else {
                (low, high)
            };
            format!(" ({} to {})", percent(low), percent(high))
        }
    };
    format!("{} % {word}{ends}", percent(side * change.mean))
}

/// A verdict in words.
pub fn verdict_text(comparison: &Comparison) -> String {
    match (comparison.verdict, comparison.more_blocks) {
        (Some(Verdict::Better), _) => "better".to_owned(),
        (Some(Verdict::Worse), _) => "worse".to_owned(),
        (Some(Verdict::NoDifference), more) => {
            let ends = comparison
                .change
                .as_ref()
                .ok()
                .and_then(|change| change.interval);
            let is_likely = ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            let shown = if is_likely {
                "likely, but not sure"
            } else {
                "no difference shown"
            };
            match more {
                None => shown.to_owned(),
                Some(more) => {
                    format!(
                        "{shown}; about {} to see {} %",
                        count(u64::from(more), "more block"),
                        100.0 * WORTH
                    )
                }
            }
        }
        (None, _) => "one block shows nothing; make more".to_owned(),
    }
}

impl Verdict {
    /// Its code in files.
    pub fn code(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no-difference",
        }
    }
}

/// The cells of a metric's table, the head first.
fn cells(answer: &Answer, judged: &Judged) -> Vec<Vec<String>> {
    let design = &answer.manifest.design;
    let baseline = visible(&design.candidates[design.baseline].name);
    let head = ["candidate", "least", "median", "greatest"]
        .map(str::to_owned)
        .to_vec();
    let mut rows = vec![
        [
            head,
            vec![format!("against {baseline}"), "verdict".to_owned()],
        ]
        .concat(),
    ];
    for (at, candidate) in design.candidates.iter().enumerate() {
        let figures = match &judged.spreads[at] {
            Some(Spread {
                least,
                median,
                greatest,
            }) => [least, median, greatest].map(|figure| number(*figure)),
            None => ["-", "-", "-"].map(str::to_owned),
        };
        let compared = judged.over_all.iter().find(|one| one.candidate == at);
        let told = match compared.map(|one| (one, &one.change)) {
            None => ["the baseline".to_owned(), String::new()],
            Some((one, Ok(change))) => [change_text(change), verdict_text(one)],
            Some((_, Err(why))) => ["-".to_owned(), why.clone()],
        };
        rows.push(
            [
                vec![visible(&candidate.name)],
                figures.to_vec(),
                told.to_vec(),
            ]
            .concat(),
        );
    }
    rows
}

/// What the figures of a metric are, in a sentence.
pub fn meaning(answer: &Answer, judged: &Judged) -> String {
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
pub fn what(answer: &Answer) -> String {
    let design = &answer.manifest.design;
    let mixes = match &design.mixes[..] {
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
        "{mixes} {simulated}{}, {blocks}, seed {}{left_out}",
        visible(&answer.machine),
        design.seed
    )
}

/// A column of words has at least so many characters.
const LEAST_ROOM: usize = 20;

/// What intervals and verdicts are.
pub const LEVELS: &str = "In brackets: the 95 % interval, over blocks that were compared within themselves. A verdict needs a 99 % \
                      interval on one side of zero.";

/// Runs as a reader finds them: of so many only the first are named.
pub fn runs_text(answer: &Answer, trials: &[Trial]) -> String {
    const NAMED: usize = 3;
    let design = &answer.manifest.design;
    let name = |trial: &Trial| {
        let candidate = visible(&design.candidates[trial.candidate].name);
        let mix = if design.mixes.len() > 1 {
            format!(" with {}", visible(&design.mixes[trial.mix].name))
        } else {
            String::new()
        };
        format!("{candidate}{mix} in block {}", trial.block)
    };
    let named: Vec<String> = trials.iter().take(NAMED).map(name).collect();
    let more = trials.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {}", count(more as u64, "more run"))
    } else {
        String::new()
    };
    format!("{}{more}", named.join(", "))
}

/// A text for a terminal so many columns wide.
pub fn text(answer: &Answer, width: usize) -> String {
    let mut out = String::new();
    let paragraph = |out: &mut String, text: &str| {
        for line in wrap(text, width) {
            let _ = writeln!(out, "{line}");
        }
    };
    if answer.manifest.design.is_simulated() {
        out.push_str("SIMULATED\n");
    }
    paragraph(&mut out, &what(answer));
    for judged in &answer.judged {
        out.push('\n');
        paragraph(
            &mut out,
            &format!("{}: {}", judged.metric.name, meaning(answer, judged)),
        );
        let rows = cells(answer, judged);
        let widths: Vec<usize> = (0..5)
            .map(|at| {
                rows.iter()
                    .map(|row| row[at].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in rows {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for at in 1..4 {
                let _ = write!(line, "  {:>1$}", row[at], widths[at]);
            }
            let _ = write!(line, "  {:<1$}", row[4], widths[4]);
            // A verdict that has no room goes on below itself, or on lines of its own.
            let room = width.saturating_sub(line.chars().count() + 2);
            let (indent, room) = if room >= LEAST_ROOM {
                (line.chars().count() + 2, room)
            } else {
                (4, width.max(44) - 4)
            };
            let mut lines = wrap(&row[5], room).into_iter();
            if indent > 4 {
                let _ = writeln!(
                    out,
                    "{}",
                    format!("{line}  {}", lines.next().unwrap_or_default()).trim_end()
                );
            } else {
                let _ = writeln!(out, "{}", line.trim_end());
            }
            for rest in lines {
                let _ = writeln!(out, "{:indent$}{rest}", "");
            }
        }
    }
    out.push('\n');
    paragraph(&mut out, LEVELS);
    for (doubt, trials) in answer.doubts() {
        paragraph(
            &mut out,
            &format!("{}: {}", runs_text(answer, &trials), visible(&doubt)),
        );
    }
    for note in &answer.notes {
        paragraph(&mut out, &visible(note));
    }
    out
}

/// A text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

/// A Markdown document, with the figures of each mix if there are several.
pub fn markdown(answer: &Answer) -> String {
    let design = &answer.manifest.design;
    let mut out = String::from("# Comparison\n\n");
    let simulated = if design.is_simulated() {
        "**Simulated.** "
    } else {
        ""
    };
    let _ = writeln!(out, "{simulated}{}. {LEVELS}", cell(&what(answer)));
    for judged in &answer.judged {
        let _ = writeln!(
            out,
            "\n## {}\n\n{}.\n",
            judged.metric.name,
            cell(&meaning(answer, judged))
        );
        for (at, row) in cells(answer, judged).iter().enumerate() {
            let _ = writeln!(
                out,
                "| {} |",
                row.iter()
                    .map(|text| cell(text))
                    .collect::<Vec<_>>()
                    .join(" | ")
            );
            if at == 0 {
                out.push_str("| --- | ---: | ---: | ---: | --- | --- |\n");
            }
        }
        if judged.by_mix.is_empty() {
            continue;
        }
        let others: Vec<usize> = (0..design.candidates.len())
            .filter(|&one| one != design.baseline)
            .collect();
        let names = others
            .iter()
            .map(|&at| cell(&visible(&design.candidates[at].name)));
        let _ = writeln!(out, "\n| mix | {} |", names.collect::<Vec<_>>().join(" | "));
        let _ = writeln!(out, "| --- |{}", " --- |".repeat(others.len()));
        for (mix, of_mix) in judged.by_mix.chunks(others.len().max(1)).enumerate() {
            let told = of_mix.iter().map(|one| match &one.change {
                Ok(change) => change_text(change),
                Err(_) => "-".to_owned(),
            });
            let told: Vec<String> = told.collect();
            let _ = writeln!(
                out,
                "| {} | {} |",
                cell(&visible(&design.mixes[mix].name)),
                told.join(" | ")
            );
        }
    }
    let doubts = answer.doubts();
    if !doubts.is_empty() || !answer.notes.is_empty() {
        out.push_str("\n## Doubtful\n\n");
    }
    for (doubt, trials) in doubts {
        let _ = writeln!(
            out,
            "- {}: {}",
            cell(&runs_text(answer, &trials)),
            cell(&visible(&doubt))
        );
    }
    for note in &answer.notes {
        let _ = writeln!(out, "- {}", cell(&visible(note)));
    }
    out
}

/// Tidy CSV: one value a line, of every metric of every run; empty where it is absent.
pub fn csv(answer: &Answer) -> String {
    let design = &answer.manifest.design;
    let mut out = String::from("block,mix,candidate,policy,metric,value,absent\n");
    for outcome in &answer.outcomes {
        let Trial {
            block,
            mix,
            candidate,
        } = outcome.trial;
        let (mix, candidate) = (
            csv_field(&design.mixes[mix].name),
            csv_field(&design.candidates[candidate].name),
        );
        let policy = csv_field(outcome.policy.as_deref().unwrap_or_default());
        for (name, value) in &outcome.figures {
            let _ = writeln!(out, "{block},{mix},{candidate},{policy},{name},{value},");
        }
        for (name, why) in &outcome.absent {
            let _ = writeln!(
                out,
                "{block},{mix},{candidate},{policy},{name},,{}",
                csv_field(why)
            );
        }
    }
    out
}

/// One JSON object, schema `cosched.comparison/1`.
pub fn json(answer: &Answer) -> String {
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
    use crate::comparison::design::{Candidate, Design, Means, Mix};
    use crate::comparison::figures::Outcome;
    use crate::comparison::frequency::MEAN_GHZ;
    use crate::comparison::store::{COMPARE_SCHEMA, Manifest};

    /// Two policies and another program with one or two mixes, five blocks. `fair` takes a tenth less, the program about as
    /// much as `linux`.
    fn answer(mixes: usize) -> Answer {
        answer_at(mixes, |_| None)
    }

    /// The same, if the CPUs ran at these mean frequencies.
    fn answer_at(mixes: usize, ghz: impl Fn(Trial) -> Option<f64>) -> Answer {
        let mix = |at: usize| Mix {
            name: format!("mix|{at}"),
            file: String::new(),
        };
        let program = Candidate {
            name: "by\u{1b} hand".to_owned(),
            means: Means::Command("make".to_owned()),
        };
        let manifest = Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: "0".to_owned(),
            design: Design {
                mixes: (0..mixes).map(mix).collect(),
                candidates: vec![
                    Candidate::policy("linux"),
                    Candidate::policy("fair"),
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
                    let mut outcome = Outcome {
                        trial: Trial {
                            block,
                            mix,
                            candidate,
                        },
                        machine: "two CPUs".to_owned(),
                        ..Outcome::default()
                    };
                    outcome.figures.insert("turnaround_s".to_owned(), time);
                    outcome
                        .figures
                        .extend(ghz(outcome.trial).map(|ghz| (MEAN_GHZ.to_owned(), ghz)));
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
        let mut answer = Answer::new(manifest, outcomes);
        answer.notes.push("the time was over".to_owned());
        answer
    }

    #[test]
    fn figures_are_of_whole_blocks() {
        let whole = answer(1);
        let mut outcomes = whole.outcomes.clone();
        // A sixth block of which only one run was made, a very fast one.
        let mut more = outcomes[0].clone();
        more.trial = Trial {
            block: 6,
            ..more.trial
        };
        more.figures.values_mut().for_each(|figure| *figure = 0.001);
        outcomes.push(more);
        let part = Answer::new(whole.manifest.clone(), outcomes);
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
            narrow.lines().all(|line| line.chars().count() <= 64),
            "{narrow}"
        );
        assert!(!narrow.contains('\u{1b}'));
    }

    #[test]
    fn the_document_has_each_mix() {
        insta::assert_snapshot!(markdown(&answer(2)));
    }

    #[test]
    fn a_run_at_another_frequency_is_named_everywhere() {
        // Runs of `linux` are slower with the second mix, `fair` runs at 3.6 GHz: neither is odd. One run in twenty is.
        let slow = Trial {
            block: 4,
            mix: 1,
            candidate: 0,
        };
        let ghz = |off: f64| {
            move |trial: Trial| {
                let usual = [3.0 - 0.5 * trial.mix as f64, 3.6, 2.0][trial.candidate];
                let noise = 1.0 + 0.01 * (f64::from(trial.block % 3) - 1.0);
                (trial.candidate < 2)
                    .then_some(usual * if trial == slow { 1.0 - off } else { noise })
            }
        };
        let odd = answer_at(2, ghz(0.06));
        let told = "its CPUs ran at 2.35 GHz on average, 6.0 % less than the median of this candidate's runs with this mix \
                    (2.50 GHz)";
        let named: Vec<_> = odd
            .doubts()
            .into_iter()
            .filter(|(doubt, _)| doubt.contains("GHz"))
            .collect();
        assert_eq!(named, [(told.to_owned(), vec![slow])]);
        assert!(text(&odd, 1_000).contains(&format!("linux with mix|1 in block 4: {told}")));
        assert!(markdown(&odd).contains(&format!("- linux with mix\\|1 in block 4: {told}\n")));
        let json: serde_json::Value = serde_json::from_str(&json(&odd)).unwrap();
        let doubted = json["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["doubts"][0] == told);
        assert_eq!(
            doubted
                .map(|run| run["trial"]["block"].clone())
                .collect::<Vec<_>>(),
            [4]
        );
        assert!(csv(&odd).contains("4,mix|1,linux,p,mean_ghz,2.3"));
        for usual in [
            answer_at(2, ghz(0.01)),
            answer_at(2, |trial| ghz(0.06)(trial).filter(|_| trial.block > 3)),
        ] {
            assert!(
                !usual
                    .doubts()
                    .iter()
                    .any(|(doubt, _)| doubt.contains("GHz")),
                "{:?}",
                usual.doubts()
            );
        }
        assert!(text(&answer_at(2, ghz(-0.06)), 1_000).contains("5.0 % more than the median"));
    }

    #[test]
    fn an_interval_that_says_nothing_is_not_told_in_figures() {
        let told = |mean, interval| change_text(&Change { mean, interval });
        assert_eq!(told(-0.08, Some((-0.12, -0.04))), "8.0 % less (4.0 to 12)");
        assert_eq!(
            told(-0.08, Some((-0.96, 20.02))),
            "8.0 % less (the blocks differ too much to say)"
        );
        assert_eq!(told(0.1, None), "10 % more");
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
