//! A run as a Markdown document.

use crate::record::RunRecord;
use crate::source::BackendKind;
use crate::summary::{
    command_again, headline_text, job_table, metric_notes, metric_table, setting_table,
};
use crate::table::markdown_text;
use crate::text::visible_lines;
use std::fmt::Write as _;

/// A document with how the run ended, its metrics, its jobs, its warnings and its setting. `name` is what the reader calls
/// the run.
pub fn markdown(name: &str, record: &RunRecord) -> String {
    let mut out = format!("# {}\n\n", markdown_text(name));
    if record.backend == BackendKind::Sim {
        out.push_str("**Simulated.** ");
    }
    let headline = markdown_text(&headline_text(record));
    let _ = writeln!(out, "{headline}\n\n## Result\n");
    out.push_str(&metric_table(record).markdown());
    push_list(&mut out, &metric_notes(record));
    let _ = writeln!(out, "\n## Jobs\n\n{}", job_table(record).markdown());
    if !record.warnings.is_empty() {
        let warnings = record.warnings.iter();
        let texts: Vec<String> = warnings.map(|warning| warning.text.clone()).collect();
        out.push_str("## Warnings\n");
        push_list(&mut out, &texts);
        out.push('\n');
    }
    let setting = setting_table(record).markdown();
    let _ = writeln!(out, "## Setting\n\n{setting}\nCommand line:\n");
    for line in visible_lines(&command_again(record)).lines() {
        let _ = writeln!(out, "    {line}");
    }
    out
}

/// Add a list of sentences after an empty line.
fn push_list(out: &mut String, items: &[String]) {
    if !items.is_empty() {
        out.push('\n');
    }
    for item in items {
        let _ = writeln!(out, "- {}", markdown_text(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record;
    use crate::summary::overview;
    use crate::testing::{info, result, simulated};

    #[test]
    fn of_a_run() {
        let result = result();
        let record = record(&result, &info(&result));
        insta::assert_snapshot!(
            markdown("my|run", &record).replace(env!("CARGO_PKG_VERSION"), "VERSION")
        );
    }

    #[test]
    fn runs_side_by_side_fit_the_width() {
        let (one, two) = (result(), simulated());
        let records = [record(&one, &info(&one)), record(&two.0, &two.1)];
        let runs = [
            ("first".to_owned(), &records[0]),
            ("second".to_owned(), &records[1]),
        ];
        for width in [60, 100] {
            let text = overview(&runs).in_capitals().text(width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert_eq!(text.lines().count(), 3);
        }
        insta::assert_snapshot!(overview(&runs).in_capitals().text(120));
    }

    /// A job that was never started has not failed.
    #[test]
    fn jobs_that_did_not_end_are_no_failures() {
        let result = result();
        let mut record = record(&result, &info(&result));
        (record.totals.failed, record.totals.unfinished) = (1, 0);
        let told = |record: &crate::RunRecord| {
            let text = overview(&[("a".to_owned(), record)])
                .in_capitals()
                .text(200);
            let words = |line: usize| text.lines().nth(line).unwrap().split("  ").map(str::trim);
            let cells: Vec<(String, String)> = words(0)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .zip(words(1).filter(|word| !word.is_empty()).map(str::to_owned))
                .collect();
            let cell = |title: &str| {
                cells
                    .iter()
                    .find(|(name, _)| name == title)
                    .map(|(_, cell)| cell.clone())
            };
            (cell("FAILED"), cell("NOT ENDED"))
        };
        assert_eq!(told(&record), (Some("1".to_owned()), None));
        record.totals.unfinished = 9;
        assert_eq!(told(&record), (Some("1".to_owned()), Some("9".to_owned())));
    }
}
