//! How many published results agree.

use super::Findings;
use super::verdict::{Agreement, FITTED, Verdict};
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

/// How many results agree.
pub(super) fn in_words(findings: &Findings) -> String {
    let mut by_result: BTreeMap<(&str, &str), Vec<&Verdict>> = BTreeMap::new();
    for chapter in &findings.chapters {
        for verdict in &chapter.verdicts {
            if verdict.rests_on != Some(FITTED) {
                let result = by_result.entry((chapter.id, &verdict.what));
                result.or_default().push(verdict);
            }
        }
    }
    let mut tally = Tally::default();
    by_result
        .values()
        .for_each(|verdicts| tally.count(verdicts));
    format!(
        "Of {} published results that are not fitted, {} agree and {} more lie within a factor of two; {} of these rest on \
         something that was fitted or chosen. {} lie beyond a factor of two, {} are not significant, and {} differ. A result \
         that is judged on several machines counts by its best machine; {} agree, or lie within a factor of two, on some and \
         not on all. Each chapter ends with the experiments that show what causes the differences.",
        by_result.len(),
        tally.agree,
        tally.roughly,
        tally.resting,
        tally.beyond,
        tally.not_shown,
        tally.differ,
        tally.on_some
    )
}
