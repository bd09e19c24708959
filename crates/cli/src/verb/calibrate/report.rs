//! Findings in words: as a table, and compared with those of before.

use super::figure::Figure;
use super::file::Measured;
use super::finding::{Findings, Found};
use std::fmt::Write as _;

/// Figures with their key, in words, and with their unit. Others are named by the number of cores.
const ABOUT: [(&str, &str, &str); 18] = [
    ("cache.l1_kb", "reach of the L1 cache", "KB"),
    ("cache.l1_ns", "time of an L1 hit", "ns"),
    ("core_type.0.l2_kb", "reach of the L2 cache", "KB"),
    ("cache.l2_ns", "time of an L2 hit", "ns"),
    ("llc.mb", "reach of the last-level cache", "MB"),
    ("llc.latency.hit_ns", "time of a last-level hit", "ns"),
    ("latency.idle_latency_ns", "latency of idle memory", "ns"),
    (
        "params.mu_trans_per_us",
        "the greatest rate of memory (mu)",
        "lines/us",
    ),
    ("memory.gb_per_s_per_channel", "the same in bytes", "GB/s"),
    (
        "params.light_mm_trans_per_us",
        "most reads of a light job",
        "lines/us",
    ),
    (
        "params.light_llc_trans_per_us",
        "most cache accesses of a light job",
        "lines/us",
    ),
    ("core_type.0.ghz", "clock", "GHz"),
    ("smt.issue_share", "slowdown by a busy sibling", ""),
    ("kernel.switching.switch_us", "a switch on a CPU", "us"),
    (
        "kernel.switching.migration_us",
        "a move to another core",
        "us",
    ),
    ("params.p0_w", "power with no core active (P_0)", "W"),
    ("params.p1_w", "added by the first core (P_1)", "W"),
    ("params.p2_w", "added by the second core (P_2)", "W"),
];

/// A key in words, and its unit.
pub fn words(key: &str) -> (String, &'static str) {
    if let Some((_, text, unit)) = ABOUT.iter().find(|about| about.0 == key) {
        return ((*text).to_owned(), unit);
    }
    match key.strip_prefix("bandwidth.") {
        Some(cores) => {
            let cores = cores.trim_start_matches('0').trim_end_matches("_cores");
            (format!("rate of memory, cores in use: {cores}"), "lines/us")
        }
        None => ("added by each further core".to_owned(), "W"),
    }
}

/// A line for each finding.
pub fn table(findings: &Findings) -> String {
    let mut text = String::new();
    for (key, outcome) in findings {
        let (about, unit) = words(key);
        let found = match outcome {
            Ok(figure) => range(*figure, unit),
            Err(why) => format!("{:>9} {why}", "-"),
        };
        let _ = writeln!(text, "{about:<36} {found}");
    }
    text
}

/// A line for each finding that the file has too, and whether any figure has changed: its range has nothing in common with
/// that of before.
pub fn compared(findings: &Findings, before: &Measured) -> (String, bool) {
    let mut text = String::new();
    let mut drifted = false;
    for (key, outcome) in findings {
        let (about, unit) = words(key);
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
            "{about:<36} {} on {on}: {before}; {verdict}",
            range(*now, unit)
        );
    }
    (text, drifted)
}

fn range(figure: Figure, unit: &str) -> String {
    let (low, high) = (digits(figure.low), digits(figure.high));
    format!("{:>9} {unit:<8} [{low}, {high}]", digits(figure.value))
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
        assert!(table.contains("150.0 lines/us [142.5, 157.5]"), "{table}");
        assert!(table.contains("- busy"), "{table}");
    }
}
