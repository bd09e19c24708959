//! The summary of a run for people: its jobs, its metrics with their meaning, and how they were obtained.

mod allocation;
mod failures;
mod jobs;
mod metrics;
mod overview;
mod page;
mod setting;
#[cfg(test)]
mod tests;

use crate::record::RunRecord;
use crate::source::BackendKind;
use crate::text::{count, grouped, seconds, unbroken, visible};
use crate::warning::{DISTURBED, JOBS_AT_ONCE};
use cosched_core::signal_name;
use jobs::brief_job_table;
pub use jobs::job_table;
use metrics::metrics;
pub use metrics::{metric_name, metric_notes, metric_table, metric_value};
pub use overview::overview;
pub use page::SummaryOptions;
use page::{Page, Style};
pub use setting::{command_again, setting_table};
use std::collections::BTreeMap;

/// The summary of a run, with a newline at its end.
///
/// A batch of short jobs that all succeeded has one line. Failures and how the run ended come last, where a terminal shows
/// them. A simulated run says so in its first line and in its last.
pub fn summary(record: &RunRecord, options: &SummaryOptions) -> String {
    let mut page = Page {
        options: *options,
        text: String::new(),
    };
    if options.verbose || record.asks_for_slowdowns() || jobs::are_long(record) {
        figures(record, &mut page);
    }
    if options.verbose {
        details(record, &mut page);
        setting(record, &mut page);
        allocation::allocation(record, &mut page);
    }
    notes(record, &mut page);
    for line in failures::failures(record, options) {
        page.line(&line, Style::Bad);
    }
    let style = if record.totals.failed > 0 {
        Style::Bad
    } else {
        Style::Title
    };
    page.paragraph(&headline_text(record), style);
    page.text
}

/// The jobs and the metrics.
fn figures(record: &RunRecord, page: &mut Page) {
    if record.backend == BackendKind::Sim {
        let machine = visible(&record.machine);
        page.paragraph(
            &format!("SIMULATED on {machine}: every figure below is of the simulated machine"),
            Style::Title,
        );
        page.gap();
    }
    push_jobs(record, page);
    page.gap();
    metrics(record, page);
    page.gap();
}

fn push_jobs(record: &RunRecord, page: &mut Page) {
    let (table, others) = brief_job_table(record, page.options.verbose);
    if table.rows() > 0 {
        let mut style = Style::Title;
        for line in table.in_capitals().lines(page.options.width) {
            page.line(&line, style);
            style = Style::Plain;
        }
    }
    if others > 0 {
        let others = count(others as u64, "more job");
        page.plain(&format!(
            "and {others}; `cosched report FOLDER --format csv` lists all"
        ));
    }
}

/// How the run ended, in a line.
pub fn headline_text(record: &RunRecord) -> String {
    let simulated = if record.backend == BackendKind::Sim {
        "simulated: "
    } else {
        ""
    };
    let turnaround = match record.metrics.get("turnaround_s") {
        Some(s) => format!(" in {}", seconds(*s)),
        None => String::new(),
    };
    let ends = ends_text(record);
    let by = ended_by(record);
    format!("{simulated}{ends}{turnaround}{by}")
}

/// How many jobs ended how.
fn ends_text(record: &RunRecord) -> String {
    let totals = &record.totals;
    let not_started = totals.not_started;
    let without_end = match record.finished_by.as_str() {
        // They may have ended after the last line of the series.
        "killed" => "without a known end",
        _ => "did not end",
    };
    let interrupted = record.jobs.iter().filter(|job| job.end.interrupted);
    let interrupted = interrupted.count();
    let cancelled = record.cancelled();
    let failed = totals
        .failed
        .saturating_sub(totals.timed_out + interrupted + cancelled);
    let mut parts = vec![format!("{} succeeded", grouped(totals.succeeded as u64))];
    for (number, what) in [
        (failed, "failed"),
        (totals.timed_out, "timed out"),
        (interrupted, "interrupted"),
        (cancelled, "cancelled"),
        (totals.unfinished - not_started, without_end),
        (not_started, "not started"),
        (totals.earlier, "done earlier"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", grouped(number as u64)));
        }
    }
    parts.join(", ")
}

/// What ended the run, if not its last job.
fn ended_by(record: &RunRecord) -> String {
    match (record.finished_by.as_str(), record.signal) {
        ("halt", _) => "; the halt rule ended the run".to_owned(),
        ("deadline", _) => "; the deadline ended the run".to_owned(),
        ("drain", _) => "; SIGUSR2 stopped further starts".to_owned(),
        ("allocation", _) => "; the allocation ends too early for the others".to_owned(),
        ("nodes", _) => "; no node is left for the others".to_owned(),
        ("killed", _) => {
            "; the run left no record: it was killed, or could not write it".to_owned()
        }
        ("goes-on", _) => "; the run goes on".to_owned(),
        (_, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("; {name} ended the run"),
            None => format!("; signal {signal} ended the run"),
        },
        _ => String::new(),
    }
}

/// What decided, and where.
fn setting(record: &RunRecord, page: &mut Page) {
    let machine = &record.machine_details;
    let quantum = seconds(record.quantum_s);
    let (cpus, cores) = (
        count(machine.cpus as u64, "CPU"),
        count(machine.cores as u64, "core"),
    );
    let simulated = if record.backend == BackendKind::Sim {
        "simulated, "
    } else {
        ""
    };
    let options = &record.setting.options;
    let auto = match (options.policy.as_str(), &options.policy_lacks) {
        ("auto", Some(why)) => format!(" (auto: {})", visible(why)),
        ("auto", None) => " (auto)".to_owned(),
        _ => String::new(),
    };
    page.plain(&format!(
        "policy {}{auto}, quantum {quantum}, seed {}, on {} ({simulated}{cpus}, {cores})",
        visible(&record.policy),
        record.seed,
        visible(&record.machine)
    ));
}

/// What a reader of the figures must know.
fn notes(record: &RunRecord, page: &mut Page) {
    let starts = record.jobs.iter().filter_map(|job| job.end.runs);
    let runs: Vec<u64> = starts.filter(|&runs| runs > 1).map(u64::from).collect();
    if !runs.is_empty() {
        let jobs = count(runs.len() as u64, "job");
        let starts = grouped(runs.iter().sum());
        page.plain(&format!(
            "{jobs} ran more than once, {starts} times in all; the figures are of one run of each"
        ));
    }
    let faults = record.overhead.policy_faults;
    if faults > 0 {
        let faults = count(faults, "decision");
        page.paragraph(
            &format!("round-robin made {faults} in place of the policy"),
            Style::Bad,
        );
    }
    let mut warnings = record.warnings.iter().rev();
    if let Some(found) = warnings.find(|warning| warning.code == JOBS_AT_ONCE) {
        page.plain(&visible(&found.text));
    }
    if !page.options.verbose {
        count_warnings(record, page);
    }
}

fn count_warnings(record: &RunRecord, page: &mut Page) {
    let warnings = record.warnings.iter();
    let shown = warnings.filter(|warning| is_shown(&warning.code, record));
    let shown = shown.count() as u64;
    if shown > 0 {
        let kept = if page.options.has_record {
            " and in the record"
        } else {
            ""
        };
        let warnings = count(shown, "warning");
        page.paragraph(&format!("{warnings} above{kept}"), Style::Bad);
    }
}

/// Whether a run shows a warning with this code. Other programs disturb nearly every run; it matters to who measures.
fn is_shown(code: &str, record: &RunRecord) -> bool {
    code != JOBS_AT_ONCE && (code != DISTURBED || record.setting.options.solo.is_some())
}

/// What was in use and what was not, and what cosched itself took.
fn details(record: &RunRecord, page: &mut Page) {
    for (name, value) in [
        ("counters", &record.counters),
        ("freezing", &record.freezing),
    ] {
        if let Some(value) = value {
            page.plain(&format!("{name}: {}", visible(value)));
        }
    }
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for missing in &record.missing {
        let whats = by_reason.entry(&missing.why).or_default();
        whats.push(&missing.what);
    }
    for (why, what) in by_reason {
        page.plain(&format!("off: {} ({why})", what.join(", ")));
    }
    if let Some(plans) = &record.plans {
        let installed = count(plans.installed, "plan");
        let adopted = grouped(plans.adopted);
        let given_up = match plans.given_up_s {
            Some(at) => format!(
                "; given up after {}, from then on decisions were carried out one by one",
                seconds(at)
            ),
            None => String::new(),
        };
        page.plain(&format!(
            "carried out as plans: {installed} installed, {adopted} adopted{given_up}"
        ));
    }
    page.plain(&format!("cosched itself: {}", overhead(record)));
    for warning in &record.warnings {
        page.paragraph(&format!("warning: {}", visible(&warning.text)), Style::Bad);
    }
}

fn overhead(record: &RunRecord) -> String {
    let overhead = &record.overhead;
    let mut parts = vec![
        count(overhead.decisions, "decision"),
        format!("{} quanta", grouped(overhead.quanta)),
    ];
    if let Some(share) = overhead.cpu_share {
        parts.push(unbroken(&format!("{:.2} % of one CPU", share * 100.0)));
    }
    for (name, times) in [
        ("decide", &overhead.decide_us),
        ("observe", &overhead.observe_us),
        ("apply", &overhead.apply_us),
    ] {
        if let (Some(p50), Some(p99)) = (times.get("p50"), times.get("p99")) {
            let text = format!("{name} {p50:.1} us (99 % within {p99:.1} us)");
            parts.push(unbroken(&text));
        }
    }
    parts.join(", ")
}
