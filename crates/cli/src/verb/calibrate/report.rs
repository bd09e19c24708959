//! Findings as a table, and compared with those of before.

use super::figure::Figure;
use super::file::Measured;
use super::finding::{Findings, Found};
use std::fmt::Write as _;

/// A line for each finding.
pub fn table(findings: &Findings) -> String {
    let mut text = String::new();
    for (key, outcome) in findings {
        let found = match outcome {
            Ok(figure) => range(*figure),
            Err(why) => format!("{:>9} {why}", "-"),
        };
        let _ = writeln!(text, "{key:<32} {found}");
    }
    text
}

/// A line for each finding that the file has too, and whether any figure has changed: its range has nothing in common with
/// that of before.
pub fn compared(findings: &Findings, before: &Measured) -> (String, bool) {
    let mut text = String::new();
    let mut drifted = false;
    for (key, outcome) in findings {
        let (Ok(now), Some(Found::Figure { figure, on })) = (outcome, before.get(key)) else {
            continue;
        };
        let verdict = if now.differs(*figure) {
            drifted = true;
            format!("{:+.0} %", (now.value / figure.value - 1.0) * 100.0)
        } else {
            "the same".to_owned()
        };
        let before = digits(figure.value);
        let _ = writeln!(
            text,
            "{key:<32} {} on {on}: {before}; {verdict}",
            range(*now)
        );
    }
    (text, drifted)
}

fn range(figure: Figure) -> String {
    let (low, high) = (digits(figure.low), digits(figure.high));
    format!("{:>9} [{low}, {high}]", digits(figure.value))
}

/// A number with about four digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::calibrate::file::merged;

    #[test]
    fn drift_is_a_range_apart_from_the_kept_one() {
        let found = |value: f64| {
            let (low, high) = (value * 0.95, value * 1.05);
            let mu = (
                "params.mu_trans_per_us".to_owned(),
                Ok(Figure { value, low, high }),
            );
            Findings::from([mu, ("cache.l1_kb".to_owned(), Err("busy".to_owned()))])
        };
        let kept = merged(Measured::new(), &found(200.0), "2026-01-31");
        let (text, drifted) = compared(&found(210.0), &kept);
        assert!(
            !drifted && text.contains("on 2026-01-31: 200.0; the same"),
            "{text}"
        );
        let (text, drifted) = compared(&found(150.0), &kept);
        assert!(drifted && text.contains("-25 %"), "{text}");
        assert_eq!(text.lines().count(), 1, "what is absent tells nothing");
        let table = table(&found(150.0));
        assert!(table.contains("150.0 [142.5, 157.5]"), "{table}");
        assert!(table.contains("- busy"), "{table}");
    }
}
