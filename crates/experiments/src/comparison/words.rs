//! Figures, changes and verdicts in words: the same in texts and on pages.

use crate::comparison::verdict::{CandidateVerdict, Comparison, RelativeChange};
use cosched_report::decimal;

/// A number with about four significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        // Too many digits to read.
        size if size >= 1e9 => format!("{value:.3e}"),
        size if size >= 999.95 => format!("{value:.0}"),
        size if size >= 99.995 => format!("{value:.1}"),
        size if size >= 9.999_5 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// One decimal below 10, none above.
fn short(value: f64) -> String {
    let decimals = if value.abs() < 9.95 { 1 } else { 0 };
    decimal(value, decimals)
}

/// A change from the baseline: a share less or more, or a multiple.
pub(super) struct Amount {
    pub(super) size: String,
    /// `%` or `times`.
    pub(super) unit: &'static str,
    /// `less`, `more` or `as much`.
    pub(super) sense: &'static str,
}

impl Amount {
    pub(super) fn of(change: f64) -> Amount {
        let (size, unit, sense) = if change < 0.0 {
            (-100.0 * change, "%", "less")
        } else if change < 1.0 {
            (100.0 * change, "%", "more")
        } else {
            (1.0 + change, "times", "as much")
        };
        Amount {
            size: short(size),
            unit,
            sense,
        }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.size, self.unit, self.sense)
    }
}

/// A change from the baseline, as in `12 % less (8.0 to 16 %)`; the 95 % interval is in brackets.
pub(super) fn change_text(change: &RelativeChange) -> String {
    let mean = Amount::of(change.mean).text();
    match interval_text(change) {
        Some(interval) => format!("{mean} ({interval})"),
        None => mean,
    }
}

/// The 95 % interval, as in `8.0 to 16 %` of a change less, or `-2.5 to +1.5 %`; `None` if there is none.
pub(super) fn interval_text(change: &RelativeChange) -> Option<String> {
    let (low, high) = change.interval?;
    let [from, to] = [low, high].map(Amount::of);
    Some(match (from.sense, to.sense) {
        ("less", "less") => format!("{} to {} %", to.size, from.size),
        ("less", "more") => format!("-{} to +{} %", from.size, to.size),
        _ if from.unit == to.unit => format!("{} to {} {}", from.size, to.size, to.unit),
        _ => format!("{} to {}", from.text(), to.text()),
    })
}

/// A verdict, as in `better`.
pub(super) fn verdict_text(comparison: &Comparison) -> String {
    match comparison.verdict {
        CandidateVerdict::Better => "better".to_owned(),
        CandidateVerdict::Worse => "worse".to_owned(),
        CandidateVerdict::NoDifference => "no difference shown".to_owned(),
        CandidateVerdict::CantSay => format!("can't say: {}", why_unknown(comparison)),
    }
}

/// Why there is no verdict.
pub(super) fn why_unknown(comparison: &Comparison) -> &str {
    match &comparison.change {
        Err(why) => why,
        Ok(change) if change.interval.is_none() => "one block shows nothing; --reps makes more",
        Ok(_) => "the blocks differ too much; more of them (--reps) may show it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::{CandidateRun, ComparedCandidate, ComparisonDesign};
    use crate::comparison::figures::RunFigures;
    use crate::comparison::verdict::compare;
    use cosched_core::Rng;

    #[test]
    fn changes_are_shares_or_multiples() {
        let told = |mean, interval| change_text(&RelativeChange { mean, interval });
        assert_eq!(
            told(-0.08, Some((-0.12, -0.04))),
            "8.0 % less (4.0 to 12 %)"
        );
        assert_eq!(
            told(-0.005, Some((-0.02, 0.01))),
            "0.5 % less (-2.0 to +1.0 %)"
        );
        assert_eq!(
            told(9.58, Some((0.5, 70.0))),
            "11 times as much (50 % more to 71 times as much)"
        );
        assert_eq!(
            told(2.0, Some((1.5, 2.5))),
            "3.0 times as much (2.5 to 3.5 times)"
        );
        assert_eq!(told(0.1, None), "10 % more");
    }

    /// Runs of two candidates in some blocks. Each figure is up to `spread` times another, or zero.
    fn random_outcomes(rng: &mut Rng) -> Vec<RunFigures> {
        let blocks = 1 + rng.below(12) as u32;
        let ratio = 1.0 + rng.below(100) as f64 / 50.0;
        let spread = [1.0, 1.01, 1.1, 2.0, 50.0, 1e6][rng.below(6) as usize];
        let zeros = rng.below(4) == 0;
        let mut all = Vec::new();
        for (block, candidate) in (1..=blocks).flat_map(|block| [(block, 0), (block, 1)]) {
            let noise = libm::pow(spread, rng.below(1_000) as f64 / 1_000.0);
            let is_zero = zeros && rng.below(3) == 0;
            let value = if is_zero { 0.0 } else { noise };
            let value = if candidate == 1 { value * ratio } else { value };
            all.push(RunFigures {
                trial: CandidateRun {
                    block,
                    mix: 0,
                    candidate,
                },
                policy: Some("p".to_owned()),
                figures: [("turnaround_s".to_owned(), value)].into(),
                ..RunFigures::default()
            });
        }
        all
    }

    /// Checks that a comparison has one verdict, and that its change does not contradict it.
    fn check(comparison: &Comparison) {
        let told = verdict_text(comparison);
        let known = ["better", "worse", "no difference shown", "can't say: "];
        let verdicts = known.iter().filter(|verdict| told.contains(**verdict));
        assert_eq!(verdicts.count(), 1, "{told}");
        let Ok(change) = &comparison.change else {
            return assert_eq!(comparison.verdict, CandidateVerdict::CantSay);
        };
        let shown = change_text(change);
        assert!(
            !shown.contains("say") && !shown.contains("NaN"),
            "{shown} {told}"
        );
        let (low, high) = change.interval.unwrap_or((-1.0, f64::INFINITY));
        match comparison.verdict {
            CandidateVerdict::Better => assert!(high < 0.0 && shown.contains("less"), "{shown}"),
            CandidateVerdict::Worse => assert!(low > 0.0 && !shown.contains("less"), "{shown}"),
            CandidateVerdict::NoDifference => assert!((1.0 + high) / (1.0 + low) < 5.01, "{shown}"),
            CandidateVerdict::CantSay => assert_eq!(comparison.more, None),
        }
    }

    #[test]
    fn every_result_has_one_verdict() {
        let mut rng = Rng::new(5);
        let design = ComparisonDesign {
            mixes: vec![Default::default()],
            candidates: vec![
                ComparedCandidate::policy("linux"),
                ComparedCandidate::policy("even"),
            ],
            ..ComparisonDesign::default()
        };
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..5_000 {
            let outcomes = random_outcomes(&mut rng);
            let (candidate, baseline) = if rng.below(2) == 0 { (1, 0) } else { (0, 1) };
            let design = ComparisonDesign {
                baseline,
                ..design.clone()
            };
            let comparison = compare(&design, &outcomes, candidate, "turnaround_s", None);
            check(&comparison);
            *seen.entry(format!("{:?}", comparison.verdict)).or_insert(0) += 1;
        }
        // Each verdict came up.
        assert_eq!(seen.len(), 4, "{seen:?}");
    }
}
