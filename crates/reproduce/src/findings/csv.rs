//! Tables as comma-separated values (RFC 4180): each number in full, with the ends of its interval.

use super::{Cell, Shown, Table, rounded};
use std::fmt::Write as _;

/// The table. A column with means has two more, for the ends of the 95 % interval.
pub fn csv(table: &Table) -> String {
    let has_interval: Vec<bool> = (0..table.columns.len())
        .map(|at| table.rows.iter().any(|row| matches!(row.get(at), Some(Cell::Estimate(_)))))
        .collect();
    let mut text = String::new();
    for (at, name) in table.columns.iter().enumerate() {
        field(&mut text, at == 0, name);
        if has_interval[at] {
            field(&mut text, false, &format!("{name}, 95 % from"));
            field(&mut text, false, &format!("{name}, 95 % to"));
        }
    }
    text.push_str("\r\n");
    for row in &table.rows {
        for (at, cell) in row.iter().enumerate() {
            let (value, interval) = match cell {
                Cell::Text(words) => (words.clone(), None),
                Cell::Number { value, .. } => (number(*value), None),
                Cell::Estimate(Shown { mean, half_width, .. }) => {
                    (number(*mean), half_width.map(|half| (number(mean - half), number(mean + half))))
                }
                Cell::Absent(_) => (String::new(), None),
            };
            field(&mut text, at == 0, &value);
            if has_interval.get(at) == Some(&true) {
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
