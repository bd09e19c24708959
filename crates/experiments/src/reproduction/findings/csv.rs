//! Tables as comma-separated values (RFC 4180): each number in full, with the ends of its interval.

use super::{Cell, Table, rounded};
use std::fmt::Write as _;

/// The table. A column with means has two more, for the ends of the 95 % interval; one with draws, for the 10th and the 90th
/// percentile.
pub fn csv(table: &Table) -> String {
    let holds = |at: usize, is_it: fn(&Cell) -> bool| {
        table.rows.iter().any(|row| row.get(at).is_some_and(is_it))
    };
    let ends: Vec<Option<[&str; 2]>> = (0..table.columns.len())
        .map(|at| {
            if holds(at, |cell| matches!(cell, Cell::Estimate { .. })) {
                Some(["95 % from", "95 % to"])
            } else {
                holds(at, |cell| matches!(cell, Cell::Draws { .. }))
                    .then_some(["10th percentile", "90th percentile"])
            }
        })
        .collect();
    let mut text = String::new();
    for (at, name) in table.columns.iter().enumerate() {
        field(&mut text, at == 0, name);
        for end in ends[at].into_iter().flatten() {
            field(&mut text, false, &format!("{name}, {end}"));
        }
    }
    text.push_str("\r\n");
    for row in &table.rows {
        for (at, cell) in row.iter().enumerate() {
            let (value, interval) = match cell {
                Cell::Text(words) => (words.clone(), None),
                Cell::Number { value, .. } => (number(*value), None),
                Cell::Estimate { estimate, .. } => {
                    let (low, high) = estimate.interval();
                    let interval = estimate.half_width.map(|_| (number(low), number(high)));
                    (number(estimate.mean), interval)
                }
                Cell::Draws {
                    mean, low, high, ..
                } => (number(*mean), Some((number(*low), number(*high)))),
                Cell::Absent(_) => (String::new(), None),
            };
            field(&mut text, at == 0, &value);
            if ends.get(at).is_some_and(Option::is_some) {
                let (from, to) = interval.unwrap_or_default();
                field(&mut text, false, &from);
                field(&mut text, false, &to);
            }
        }
        text.push_str("\r\n");
    }
    text
}

fn number(value: f64) -> String {
    rounded(value).to_string()
}

fn field(text: &mut String, is_first: bool, value: &str) {
    if !is_first {
        text.push(',');
    }
    if value.contains([',', '"', '\n', '\r']) {
        let _ = write!(text, "\"{}\"", value.replace('"', "\"\""));
    } else {
        text.push_str(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_their_intervals_beside_them() {
        let table = Table {
            id: "t".into(),
            caption: String::new(),
            columns: vec!["mix".into(), "time, s".into()],
            rows: vec![
                vec![Cell::text("a \"b\""), Cell::mean(&[1.0, 2.0], 1)],
                vec![Cell::text("c"), Cell::Absent("none".into())],
            ],
        };
        assert_eq!(
            csv(&table),
            "mix,\"time, s\",\"time, s, 95 % from\",\"time, s, 95 % to\"\r\n\"a \"\"b\"\"\",1.5,-4.853,7.853\r\nc,,,\r\n"
        );
    }
}
