//! Answers as small tables.

use super::answer::{Active, Answer, Fit};
use std::fmt::Write as _;

impl Answer {
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Bus {
                solo,
                utilisation,
                total,
                speed,
                throughput,
            } => {
                let mut table = Table::new(&["task", "solo", "utilisation", "speed"]);
                for (task, ((b, u), s)) in solo.iter().zip(utilisation).zip(speed).enumerate() {
                    table.row(&[
                        (task + 1).to_string(),
                        share_text(*b),
                        share_text(*u),
                        share_text(*s),
                    ]);
                }
                format!(
                    "{table}\ntotal utilisation {}, throughput {throughput:.4}\n",
                    share_text(*total),
                    table = table.0
                )
            }
            Self::Solo {
                measured,
                solo,
                total,
                ..
            } => {
                let mut table = Table::new(&["task", "measured", "solo"]);
                for (task, (u, b)) in measured.iter().zip(solo).enumerate() {
                    table.row(&[(task + 1).to_string(), share_text(*u), share_text(*b)]);
                }
                format!("{}\ntotal utilisation {}\n", table.0, share_text(*total))
            }
            Self::Threshold {
                threshold,
                admits_any,
                admits_all,
                ..
            } => {
                if *admits_all {
                    "any further task is worth running\n".to_owned()
                } else if *admits_any {
                    let threshold = share_text(*threshold);
                    format!(
                        "a further task is worth running up to a solo utilisation of {threshold}\n"
                    )
                } else {
                    "no further task is worth running\n".to_owned()
                }
            }
            Self::Power {
                steps_w,
                watts,
                active,
                fit,
            } => {
                let mut table = Table::new(&["active cores", "added W", "power W"]);
                for (cores, (step, watts)) in steps_w.iter().zip(watts).enumerate() {
                    table.row(&[
                        cores.to_string(),
                        format!("{step:.2}"),
                        format!("{watts:.2}"),
                    ]);
                }
                let mut text = table.0;
                if let Some(Active { cores, watts }) = active {
                    let _ = writeln!(text, "\npower with {cores} active cores: {watts:.2} W");
                }
                if let Some(Fit {
                    deviation_w,
                    levelled,
                }) = fit
                {
                    let _ = writeln!(
                        text,
                        "\ndeviation of the measurements: {deviation_w:.2} W (root mean square)"
                    );
                    if *levelled {
                        text.push_str("power fell as cores became active: these were levelled, no step is negative\n");
                    }
                }
                text
            }
            Self::Tickets { threads, total, .. } => {
                let mut table = Table::new(&[
                    "thread",
                    "MIPS big",
                    "MIPS small",
                    "W big",
                    "W small",
                    "benefit",
                    "tickets",
                ]);
                for (number, thread) in threads.iter().enumerate() {
                    table.row(&[
                        (number + 1).to_string(),
                        format!("{:.0}", thread.big_mips),
                        format!("{:.0}", thread.small_mips),
                        format!("{:.2}", thread.big_w),
                        format!("{:.2}", thread.small_w),
                        format!("{:.3}", thread.benefit),
                        thread.tickets.to_string(),
                    ]);
                }
                format!("{}\ntotal {total} tickets\n", table.0)
            }
        }
    }
}

/// Right-aligned columns as wide as their headings, which are never narrower than the numbers below them.
struct Table(String, Vec<usize>);

impl Table {
    fn new(headings: &[&str]) -> Self {
        let mut table = Self(
            String::new(),
            headings
                .iter()
                .map(|heading| heading.len().max(8))
                .collect(),
        );
        table.row(
            &headings
                .iter()
                .map(|heading| (*heading).to_owned())
                .collect::<Vec<_>>(),
        );
        table
    }

    fn row(&mut self, cells: &[String]) {
        let cells: Vec<String> = cells
            .iter()
            .zip(&self.1)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        self.0.push_str(&cells.join("  "));
        self.0.push('\n');
    }
}

/// Four digits; more only if the share would otherwise look like 0 or 1.
fn share_text(share: f64) -> String {
    let text = format!("{share:.4}");
    match text.as_str() {
        "0.0000" if share > 0.0 => format!("{share:.1e}"),
        "1.0000" if share < 1.0 => ">0.9999".to_owned(),
        _ => text,
    }
}
