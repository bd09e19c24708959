//! How many published results agree.

use super::super::words::Values;
use super::Findings;
use super::verdict::{Agreement, PublishedComparison, Standing};

/// Counts of published results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    published: usize,
    fitted: usize,
    forced: usize,
    /// Of these two, those that come out beyond a factor of two all the same.
    in_vain: usize,
    not_judged: usize,
    agree: usize,
    roughly: usize,
    beyond: usize,
    not_shown: usize,
    differ: usize,
}

impl Tally {
    fn of<'a>(verdicts: impl Iterator<Item = &'a PublishedComparison>) -> Tally {
        let mut tally = Tally::default();
        for verdict in verdicts {
            tally.published += 1;
            match verdict.standing {
                Standing::Counts => *tally.counted(verdict.agreement) += 1,
                Standing::Fitted(_) => tally.fitted += 1,
                Standing::Forced(_) => tally.forced += 1,
                Standing::NotJudged(_) => tally.not_judged += 1,
            }
            if let Standing::Fitted(_) | Standing::Forced(_) = verdict.standing {
                tally.in_vain += usize::from(verdict.agreement > Agreement::Roughly);
            }
        }
        tally
    }

    fn counted(&mut self, agreement: Agreement) -> &mut usize {
        match agreement {
            Agreement::Agrees => &mut self.agree,
            Agreement::Roughly => &mut self.roughly,
            Agreement::SameSign => &mut self.beyond,
            Agreement::NotShown | Agreement::NotMeasured => &mut self.not_shown,
            Agreement::Differs => &mut self.differ,
        }
    }
}

/// How many results agree, by the names in the introduction.
pub(super) fn values(findings: &Findings) -> Values {
    let chapters = findings.chapters.iter();
    let tally = Tally::of(chapters.flat_map(|chapter| &chapter.verdicts));
    let not = tally.beyond + tally.not_shown + tally.differ;
    let counts = [
        ("published", tally.published),
        ("fitted", tally.fitted),
        ("forced", tally.forced),
        ("in_vain", tally.in_vain),
        ("not_judged", tally.not_judged),
        ("rest", tally.agree + tally.roughly + not),
        ("agree", tally.agree),
        ("roughly", tally.roughly),
        ("not", not),
        ("beyond", tally.beyond),
        ("not_shown", tally.not_shown),
        ("differ", tally.differ),
    ];
    let texts = counts.map(|(name, count)| (name, count.to_string()));
    Values::from(texts)
}

#[cfg(test)]
mod tests {
    use super::super::{Chapter, FindingCell};
    use super::*;

    const AGREEMENTS: [Agreement; 6] = [
        Agreement::Agrees,
        Agreement::Roughly,
        Agreement::SameSign,
        Agreement::NotShown,
        Agreement::Differs,
        Agreement::NotMeasured,
    ];

    /// A verdict of each agreement.
    fn all(standing: &Standing) -> Vec<PublishedComparison> {
        let verdicts = AGREEMENTS.map(|agreement| PublishedComparison {
            key: format!("{standing:?} {agreement:?}"),
            what: String::new(),
            standing: standing.clone(),
            agreement,
            paper: FindingCell::absent(),
            ours: FindingCell::absent(),
            sign: "-",
            ratio: None,
        });
        verdicts.to_vec()
    }

    #[test]
    fn the_first_sentence_counts_what_counts() {
        let mut verdicts = all(&Standing::Counts);
        verdicts.extend(all(&Standing::Counts)[..1].to_vec());
        verdicts.extend(all(&Standing::Fitted("power".into())));
        verdicts.extend(all(&Standing::Forced("cores".into()))[..2].to_vec());
        verdicts.extend(all(&Standing::NotJudged("time".into()))[5..].to_vec());
        let findings = Findings {
            command: "cosched reproduce".to_owned(),
            chapters: vec![Chapter {
                id: "chapter",
                title: String::new(),
                parts: Vec::new(),
                verdicts,
            }],
        };
        let text = findings.introduction().swap_remove(0);
        let sentences: Vec<&str> = text.split(". ").take(3).collect();
        assert_eq!(
            sentences,
            [
                "Of 16 published results 6 are fitted, 2 are forced and 1 can't be judged here; of the other 7, 2 agree, \
                 1 more lie within a factor of two, and 4 do not, on one machine for each chapter",
                "Of those 4, 1 lie beyond a factor of two, 2 are not shown, and 1 differ",
                "Of the fitted and forced ones 4 do not come out either",
            ]
        );
    }

    #[test]
    fn fitted_and_forced_results_never_count() {
        let why = String::new;
        for standing in [
            Standing::Fitted(why()),
            Standing::Forced(why()),
            Standing::NotJudged(why()),
        ] {
            let tally = Tally::of(all(&standing).iter());
            let counted = [
                tally.agree,
                tally.roughly,
                tally.beyond,
                tally.not_shown,
                tally.differ,
            ];
            assert_eq!((tally.published, counted), (6, [0; 5]), "{standing:?}");
        }
    }
}
