//! What to use, and what is not known, in a sentence or two.

use crate::comparison::answer::ComparisonResult;
use crate::comparison::design::{ComparisonDesign, ComparisonMeans};
use crate::comparison::verdict::{CandidateVerdict, Comparison, RelativeChange};
use crate::comparison::words::{Amount, interval_text, why_unknown};
use cosched_core::metric::{METRICS, Metric};
use cosched_report::{count, metric_name, visible};

/// What a comparison comes to, as in `Use fifo: 12 % less time than linux (8.0 to 16 %).`
pub(super) fn conclusion(answer: &ComparisonResult) -> String {
    let design = &answer.manifest.design;
    let found: Vec<Findings<'_>> = design
        .others()
        .map(|candidate| Findings::of(answer, candidate))
        .collect();
    let advised = best(&found);
    let about: Vec<&Findings<'_>> = match advised {
        Some(one) => vec![one],
        None => found.iter().collect(),
    };
    let advice = match advised {
        Some(one) => use_it(design, one, &found),
        None => no_advice(design, &found),
    };
    if found.iter().all(Findings::is_blank) {
        return advice;
    }
    let unknown = unknown(answer, &about);
    let unknown = unknown.map_or(String::new(), |unknown| format!(" Not known: {unknown}."));
    let doubtful = if answer.doubts().is_empty() {
        ""
    } else {
        " Some runs are doubtful."
    };
    format!("{advice}{unknown}{doubtful}")
}

/// What is known of a candidate, over all mixes; by metric.
struct Findings<'a> {
    candidate: usize,
    better: Vec<&'a Comparison>,
    worse: Vec<&'a Comparison>,
    /// Those that show no difference, or can't say.
    others: Vec<&'a Comparison>,
}

impl<'a> Findings<'a> {
    fn of(answer: &'a ComparisonResult, candidate: usize) -> Findings<'a> {
        let mut found = Findings {
            candidate,
            better: Vec::new(),
            worse: Vec::new(),
            others: Vec::new(),
        };
        let all = answer.judged.iter().flat_map(|judged| &judged.over_all);
        for one in all.filter(|one| one.candidate == candidate) {
            match one.verdict {
                CandidateVerdict::Better => found.better.push(one),
                CandidateVerdict::Worse => found.worse.push(one),
                CandidateVerdict::NoDifference | CandidateVerdict::CantSay => {
                    found.others.push(one)
                }
            }
        }
        found
    }

    /// Whether nothing at all can be said.
    fn is_blank(&self) -> bool {
        let has_verdict = !self.better.is_empty() || !self.worse.is_empty();
        !has_verdict
            && self
                .others
                .iter()
                .all(|one| one.verdict == CandidateVerdict::CantSay)
    }

    fn is_only_better(&self) -> bool {
        !self.better.is_empty() && self.worse.is_empty()
    }

    /// The distance of a metric's change from 0, so that factors of 2 and 1/2 are equal; 0 if it is not better.
    fn gain(&self, metric: &str) -> f64 {
        let mut better = self.better.iter();
        let one = better.find(|one| one.metric == metric);
        let change = one.and_then(|one| one.change.as_ref().ok());
        change.map_or(0.0, |change| libm::log1p(change.mean).abs())
    }
}

/// The candidate to use: of those that are better in something and worse in nothing, the one with the greatest gain in the first
/// metric in which any of them is better.
fn best<'a, 'b>(found: &'b [Findings<'a>]) -> Option<&'b Findings<'a>> {
    let good: Vec<_> = found.iter().filter(|one| one.is_only_better()).collect();
    let metrics = good.iter().flat_map(|one| &one.better);
    let first = metrics.min_by_key(|one| place(&one.metric))?;
    good.into_iter()
        .max_by(|a, b| a.gain(&first.metric).total_cmp(&b.gain(&first.metric)))
}

fn place(name: &str) -> usize {
    let all = METRICS.iter();
    all.take_while(|metric| metric.name != name).count()
}

/// The name of a candidate; a command stands in quotes.
fn name_of(design: &ComparisonDesign, candidate: usize) -> String {
    let candidate = &design.candidates[candidate];
    let name = visible(&candidate.name);
    match candidate.means {
        ComparisonMeans::Command(_) => format!("`{name}`"),
        ComparisonMeans::Policy { .. } => name,
    }
}

fn use_it(design: &ComparisonDesign, advised: &Findings<'_>, found: &[Findings<'_>]) -> String {
    let name = name_of(design, advised.candidate);
    let gains = changes(design, &advised.better);
    let mut text = format!("Use {name}: {gains}.");
    let rivals: Vec<String> = found
        .iter()
        .filter(|one| one.is_only_better() && one.candidate != advised.candidate)
        .map(|one| name_of(design, one.candidate))
        .collect();
    if !rivals.is_empty() {
        let verb = if rivals.len() == 1 { "is" } else { "are" };
        let rivals = joined(&rivals, "and");
        text.push_str(&format!(" {rivals} {verb} better, too."));
    }
    for mixed in mixed(design, found) {
        text.push_str(&format!(" {mixed}."));
    }
    text
}

/// What candidates mean that are better in something and worse in something else.
fn mixed(design: &ComparisonDesign, found: &[Findings<'_>]) -> Vec<String> {
    let mut texts = Vec::new();
    for one in found {
        if !one.better.is_empty() && !one.worse.is_empty() {
            let name = name_of(design, one.candidate);
            let gains = changes(design, &one.better);
            let losses = changes(design, &one.worse);
            texts.push(format!("{name} means {gains}, but {losses}"));
        }
    }
    texts
}

/// The advice where no candidate is only better.
fn no_advice(design: &ComparisonDesign, found: &[Findings<'_>]) -> String {
    let baseline = name_of(design, design.baseline);
    let mixed = mixed(design, found);
    if !mixed.is_empty() {
        return format!("It depends: {}.", mixed.join("; "));
    }
    let worse: Vec<String> = found
        .iter()
        .filter(|one| !one.worse.is_empty())
        .map(|one| {
            let name = name_of(design, one.candidate);
            format!("{name} means {}", changes(design, &one.worse))
        })
        .collect();
    if !worse.is_empty() {
        return format!("Use {baseline}: {}.", worse.join("; "));
    }
    nothing_shown(design, found)
}

fn nothing_shown(design: &ComparisonDesign, found: &[Findings<'_>]) -> String {
    if found.iter().all(Findings::is_blank) {
        let first = found.iter().flat_map(|one| &one.others).next();
        let why = first.map_or("nothing was compared", |one| why_unknown(one));
        return format!("Which is better is not known: {why}.");
    }
    let known = found.iter().filter(|one| !one.is_blank());
    let mut alike: Vec<usize> = known.map(|one| one.candidate).collect();
    alike.push(design.baseline);
    alike.sort_unstable();
    let names: Vec<String> = alike
        .into_iter()
        .map(|candidate| name_of(design, candidate))
        .collect();
    let names = joined(&names, "or");
    format!("Use {names}: no difference is shown.")
}

/// Changes in several metrics against the baseline.
fn changes(design: &ComparisonDesign, comparisons: &[&Comparison]) -> String {
    let baseline = name_of(design, design.baseline);
    let mut texts = Vec::new();
    for one in comparisons {
        if let Ok(change) = &one.change {
            texts.push(change_of(change, &noun(&one.metric), &baseline));
        }
    }
    joined(&texts, "and")
}

/// A change, as in `12 % less time than linux (8.0 to 16 %)`.
fn change_of(change: &RelativeChange, noun: &str, baseline: &str) -> String {
    let Amount { size, unit, sense } = Amount::of(change.mean);
    let interval = match interval_text(change) {
        Some(interval) => format!(" ({interval})"),
        None => String::new(),
    };
    match unit {
        "%" => format!("{size} % {sense} {noun} than {baseline}{interval}"),
        _ => format!("{size} times the {noun} of {baseline}{interval}"),
    }
}

/// A metric as a noun.
fn noun(name: &str) -> String {
    match name {
        "turnaround_s" => "time".to_owned(),
        name => metric_name(name),
    }
}

/// What these findings leave open. A metric without figures was never to be judged.
fn unknown(answer: &ComparisonResult, about: &[&Findings<'_>]) -> Option<String> {
    let mut texts = Vec::new();
    for judged in &answer.judged {
        let open = about.iter().flat_map(|one| &one.others);
        let open: Vec<&Comparison> = open
            .filter(|one| one.metric == judged.metric.name && one.change.is_ok())
            .copied()
            .collect();
        if open.is_empty() {
            continue;
        }
        let whose = if about.len() > 1 {
            Some(names_of(&answer.manifest.design, &open))
        } else {
            None
        };
        texts.push(open_question(judged.metric, whose, &open));
    }
    (!texts.is_empty()).then(|| joined(&texts, "and"))
}

/// The candidates whose metric is open.
fn names_of(design: &ComparisonDesign, open: &[&Comparison]) -> String {
    let names: Vec<String> = open
        .iter()
        .map(|one| name_of(design, one.candidate))
        .collect();
    joined(&names, "and")
}

/// Whether a metric differs, and how many more blocks would show that. Without hope nothing is said of blocks.
fn open_question(metric: &Metric, whose: Option<String>, open: &[&Comparison]) -> String {
    let noun = noun(metric.name);
    let question = match whose {
        Some(names) => format!("whether the {noun} of {names} differs"),
        None => format!("whether {noun} differs"),
    };
    let mut most: Option<(f64, u32)> = None;
    for one in open {
        let Some(more) = one.more else {
            return question;
        };
        let this = (more.share, more.blocks);
        most = Some(most.map_or(this, |most| if this > most { this } else { most }));
    }
    match most {
        None => question,
        Some((share, 0)) => format!("{question} by less than {:.0} %", 100.0 * share),
        Some((share, blocks)) => {
            let blocks = count(u64::from(blocks), "more block");
            format!(
                "{question} ({blocks} would show a difference of {:.0} %)",
                100.0 * share
            )
        }
    }
}

/// Texts as in `a, b and c`.
fn joined(texts: &[String], word: &str) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::{CandidateRun, ComparedCandidate, ComparedMix};
    use crate::comparison::figures::RunFigures;
    use crate::comparison::store::Manifest;

    /// The conclusion of five blocks of `linux`, `fifo` and `even`: of each its time, its unfairness, and how much both vary.
    fn told(figures: [(f64, f64, f64); 3]) -> String {
        let names = ["linux", "fifo", "even"];
        let design = ComparisonDesign {
            mixes: vec![ComparedMix {
                file: Some(String::new()),
                ..ComparedMix::default()
            }],
            candidates: names.map(ComparedCandidate::policy).to_vec(),
            ..ComparisonDesign::default()
        };
        let mut outcomes = Vec::new();
        for block in 1..=5 {
            for (candidate, (time, unfairness, noise)) in figures.into_iter().enumerate() {
                let share = f64::from(block * (candidate as u32 + 1) % 5) - 2.0;
                let noise = 1.0 + noise * share;
                let figures = [("turnaround_s", time), ("unfairness", unfairness)];
                let trial = CandidateRun {
                    block,
                    mix: 0,
                    candidate,
                };
                outcomes.push(RunFigures {
                    trial,
                    figures: figures
                        .map(|(name, value)| (name.to_owned(), value * noise))
                        .into(),
                    ..RunFigures::default()
                });
            }
        }
        let manifest = Manifest {
            schema: String::new(),
            cosched_version: String::new(),
            design,
            metrics: Vec::new(),
            command_line: Vec::new(),
        };
        conclusion(&ComparisonResult::new(manifest, outcomes))
    }

    #[test]
    fn it_says_what_to_use_and_what_is_not_known() {
        let linux = (10.0, 2.0, 0.01);
        let cases = [
            [linux, (8.8, 2.0, 0.01), (8.9, 2.0, 0.02)],
            [linux, (5.0, 8.0, 0.01), (20.0, 2.0, 0.01)],
            [linux, (11.0, 2.0, 0.05), (12.0, 3.0, 0.01)],
            [linux, (10.0, 2.0, 0.25), (10.0, 2.0, 0.01)],
            [linux, (10.0, 2.0, 0.49), (10.0, 2.0, 0.49)],
        ];
        insta::assert_snapshot!(cases.map(told).join("\n"));
    }
}
