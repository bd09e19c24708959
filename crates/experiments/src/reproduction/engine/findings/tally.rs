//! How many published results agree.

use super::super::words::Values;
use super::Findings;
use super::verdict::{Agreement, Verdict};
use std::collections::BTreeMap;

/// Counts of published results.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    agree: usize,
    roughly: usize,
    /// Of these two, those that rest on something fitted.
    resting: usize,
    /// Of these two, those that do not on every machine.
    on_some: usize,
    beyond: usize,
    not_shown: usize,
    differ: usize,
}

impl Tally {
    /// Counts a result, which may be judged on several machines.
    fn count(&mut self, verdicts: &[&Verdict]) {
        let Some(best) = verdicts.iter().min_by_key(|verdict| verdict.agreement) else {
            return;
        };
        *match best.agreement {
            Agreement::Agrees => &mut self.agree,
            Agreement::Roughly => &mut self.roughly,
            Agreement::SameSign => &mut self.beyond,
            Agreement::NotShown | Agreement::NotMeasured => &mut self.not_shown,
            Agreement::Differs => &mut self.differ,
        } += 1;
        if is_near(best) {
            self.resting += usize::from(best.rests_on.is_some());
            self.on_some += usize::from(!verdicts.iter().all(|verdict| is_near(verdict)));
        }
    }
}

fn is_near(verdict: &Verdict) -> bool {
    verdict.agreement <= Agreement::Roughly
}

/// How many results agree, by the names in the introduction.
pub(super) fn values(findings: &Findings) -> Values {
    let mut by_result: BTreeMap<(&str, &str), Vec<&Verdict>> = BTreeMap::new();
    for chapter in &findings.chapters {
        for verdict in &chapter.verdicts {
            if !verdict.is_fitted() {
                let result = by_result.entry((chapter.id, &verdict.what));
                result.or_default().push(verdict);
            }
        }
    }
    let mut tally = Tally::default();
    for verdicts in by_result.values() {
        tally.count(verdicts);
    }
    let counts = [
        ("results", by_result.len()),
        ("agree", tally.agree),
        ("roughly", tally.roughly),
        ("resting", tally.resting),
        ("beyond", tally.beyond),
        ("not_shown", tally.not_shown),
        ("differ", tally.differ),
        ("on_some", tally.on_some),
    ];
    let texts = counts.map(|(name, count)| (name, count.to_string()));
    Values::from(texts)
}
