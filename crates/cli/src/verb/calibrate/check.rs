//! `--check`: tells drift of the machine from its file.

use super::figure::Figure;
use super::file::Measured;
use super::finding::{Finding, Found, words};
use std::fmt::Write as _;

/// Maximum change beside the spreads of both measurements.
const MARGIN: f64 = 0.05;

/// The change since a figure was kept, as a share, if it is more than both spreads explain.
fn drift(kept: Figure, now: Figure) -> Option<f64> {
    let change = now.value / kept.value - 1.0;
    let most = MARGIN + kept.spread + now.spread;
    (change.abs() > most).then_some(change)
}

/// A line for each figure that the file has, and whether any has drifted.
pub fn compared(findings: &[Finding], measured: &Measured) -> (String, bool) {
    let mut text = String::new();
    let mut drifted = false;
    for (key, outcome) in findings {
        let Some(Found::Figure { value, spread, on }) = measured.get(key) else {
            continue;
        };
        let (about, unit) = words(key);
        let kept = Figure {
            value: *value,
            spread: *spread,
        };
        let verdict = match outcome {
            Err(why) => format!("not measured: {why}"),
            Ok(now) => match drift(kept, *now) {
                Some(change) => {
                    drifted = true;
                    format!("{:.4} now: {:+.0} %", now.value, change * 100.0)
                }
                None => format!("{:.4} now: the same within the spread", now.value),
            },
        };
        let _ = writeln!(text, "{about:<52} {value:.4} {unit} on {on}; {verdict}");
    }
    (text, drifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_the_spreads_is_drift() {
        let figure = |value, spread| Figure { value, spread };
        assert_eq!(drift(figure(100.0, 0.05), figure(114.0, 0.05)), None);
        let slower = drift(figure(100.0, 0.05), figure(80.0, 0.05)).unwrap();
        assert!((slower + 0.2).abs() < 1e-9);
    }
}
