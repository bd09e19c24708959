//! A run as a Markdown document.

use crate::record::{Job, Record};
use crate::source::BackendKind;
use crate::summary::{headline_text, metric_name, metric_value};
use crate::text::{seconds, visible};
use cosched_core::metric::METRICS;
use std::fmt::Write as _;

/// A text in a cell of a table, or in a line.
fn cell(text: &str) -> String {
    visible(text)
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('*', "\\*")
        .replace('_', "\\_")
}

/// A document with how the run ended, its metrics, its jobs, those that were slowed down most first, its warnings and its
/// setting. `name` is what the reader calls the run.
pub fn markdown(name: &str, record: &Record) -> String {
    let mut out = format!("# {}\n\n", cell(name));
    let simulated = if record.backend == BackendKind::Sim {
        "**Simulated.** "
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "{simulated}{}\n\n## Result\n\n| metric | value | meaning |\n| --- | ---: | --- |",
        cell(&headline_text(record))
    );
    push_metrics(&mut out, record);
    push_jobs(&mut out, record);
    if !record.warnings.is_empty() {
        out.push_str("\n## Warnings\n\n");
        for warning in &record.warnings {
            let _ = writeln!(out, "- {}", cell(&warning.text));
        }
    }
    push_setting(&mut out, record);
    out
}

fn push_metrics(out: &mut String, record: &Record) {
    for metric in METRICS {
        let (value, more) = match record.metrics.entry(metric.name) {
            Some(Ok(value)) => (metric_value(metric, *value), String::new()),
            Some(Err(why)) => ("-".to_owned(), format!("; not known: {why}")),
            None => continue,
        };
        let _ = writeln!(
            out,
            "| {} | {value} | {} |",
            metric_name(metric.name),
            cell(&format!("{}{more}", metric.hint))
        );
    }
}

fn push_jobs(out: &mut String, record: &Record) {
    out.push_str(
        "\n## Jobs\n\n| job | slowdown | turnaround | alone | longest wait | CPU time | ended |\n",
    );
    out.push_str("| --- | ---: | ---: | ---: | ---: | ---: | --- |\n");
    let mut jobs: Vec<&Job> = record.jobs.iter().collect();
    jobs.sort_by(|a, b| a.worst_first(b));
    for job in jobs {
        out.push_str(&job_row(job));
    }
}

fn job_row(job: &Job) -> String {
    let slowdown = match (job.slowdown, job.slowdown_estimate) {
        (Some(slowdown), _) => format!("{slowdown:.2}"),
        (None, Some(estimate)) => format!("~{estimate:.2}"),
        (None, None) => "-".to_owned(),
    };
    let times = [
        job.turnaround_s(),
        job.solo_s,
        job.end.waited_max_s,
        job.end.cpu_s,
    ]
    .map(time)
    .join(" | ");
    format!(
        "| {} | {slowdown} | {times} | {} |\n",
        cell(&job.name),
        cell(&job.end_text())
    )
}

fn time(s: Option<f64>) -> String {
    s.map_or_else(|| "-".to_owned(), seconds)
}

fn push_setting(out: &mut String, record: &Record) {
    let setting = &record.setting;
    let counters = record.counters.as_deref();
    let seed = record.seed.to_string();
    out.push_str("\n## Setting\n\n");
    for (name, value) in [
        ("policy", Some(record.policy.as_str())),
        ("machine", Some(record.machine.as_str())),
        ("host", setting.host.as_deref()),
        ("kernel", setting.kernel.as_deref()),
        ("counters", counters.or(record.absent.why("counters"))),
        ("seed", Some(seed.as_str())),
        ("started", record.started_at.as_deref()),
        ("cosched", Some(record.cosched_version.as_str())),
    ] {
        if let Some(value) = value {
            let _ = writeln!(out, "- {name}: {}", cell(value));
        }
    }
    if let Some(words) = &setting.command_line {
        // In a code span nothing is markup but the back quote.
        let _ = writeln!(
            out,
            "- command: `{}`",
            visible(&words.join(" ")).replace('`', "'")
        );
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
            let text = overview(&runs, width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert_eq!(text.lines().count(), 3);
        }
        insta::assert_snapshot!(overview(&runs, 120));
    }

    /// A job that was never started has not failed.
    #[test]
    fn jobs_that_did_not_end_are_no_failures() {
        let result = result();
        let mut record = record(&result, &info(&result));
        (record.totals.failed, record.totals.unfinished) = (1, 0);
        let told = |record: &crate::Record| {
            let text = overview(&[("a".to_owned(), record)], 200);
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
