//! The summary of a run for people: its jobs, its metrics with their meaning, and how they were obtained.

mod jobs;
mod metrics;
mod overview;
mod page;
#[cfg(test)]
mod tests;

use crate::record::{Missing, Record};
use crate::source::{BackendKind, EnergySource};
use crate::text::{count, grouped, seconds, unbroken, visible};
use cosched_core::{Capability, Counter, Params, find_policy, signal_name};
use metrics::metrics;
pub use metrics::{metric_name, metric_value};
pub use overview::overview;
pub use page::SummaryOptions;
use page::{Page, Style};
use std::collections::BTreeMap;

/// The summary of a run, with a newline at its end.
///
/// With many jobs, the copies of a job share a row with their least, median and greatest times. How the run ended comes
/// last, where a terminal shows it. A simulated run says so in its first line and in its last.
pub fn summary(record: &Record, options: &SummaryOptions) -> String {
    let mut page = Page {
        options: *options,
        text: String::new(),
    };
    if record.backend == BackendKind::Sim {
        let machine = visible(&record.machine);
        page.paragraph(
            &format!("SIMULATED on {machine}: every figure below is of the simulated machine"),
            Style::Title,
        );
        page.gap();
    }
    let jobs = jobs::jobs(record);
    let styles = std::iter::once(Style::Title).chain(
        jobs.failed
            .iter()
            .map(|&failed| if failed { Style::Bad } else { Style::Plain }),
    );
    for (line, style) in crate::table::lines(jobs.columns, options.width)
        .iter()
        .zip(styles)
    {
        page.line(line, style);
    }
    for line in jobs::failures(record, options.width) {
        page.line(&line, Style::Bad);
    }
    page.gap();
    metrics(record, &mut page);
    page.gap();
    if options.verbose {
        details(record, &mut page);
    }
    setting(record, &mut page);
    headline(record, &mut page);
    page.text
}

/// How the run ended, in a line.
pub fn headline_text(record: &Record) -> String {
    let totals = &record.totals;
    let mut parts = vec![format!("{} ended well", totals.succeeded)];
    if totals.failed > 0 {
        let timed_out = match totals.timed_out {
            0 => String::new(),
            n => format!(" ({n} ran out of time)"),
        };
        parts.push(format!("{} failed{timed_out}", totals.failed));
    }
    match (totals.unfinished, record.finished_by.as_str()) {
        (0, _) => {}
        // They may have ended after the last line of the series.
        (n, "killed") => parts.push(format!("of {n} no end is known")),
        (n, _) => parts.push(format!("{n} did not end")),
    }
    let done = totals.earlier - totals.adopted.min(totals.earlier);
    if done > 0 {
        parts.push(format!("{done} done earlier"));
    }
    if totals.adopted > 0 {
        parts.push(format!(
            "{} adopted, of which it is not known how they ended",
            totals.adopted
        ));
    }
    let turnaround = record
        .metrics
        .get("turnaround_s")
        .map_or(String::new(), |s| format!(" in {}", seconds(*s)));
    let by = match (record.finished_by.as_str(), record.signal) {
        ("halt", _) => "; the halt rule ended the run".to_owned(),
        ("killed", _) => {
            "; the run left no record: it was killed, or could not write it".to_owned()
        }
        ("goes-on", _) => "; the run goes on".to_owned(),
        (_, Some(signal)) => {
            let name =
                signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
            format!("; {name} ended the run")
        }
        _ => String::new(),
    };
    let jobs = count(totals.jobs as u64, "job");
    let simulated = if record.backend == BackendKind::Sim {
        "simulated: "
    } else {
        ""
    };
    format!("{simulated}{jobs}{turnaround}: {}{by}", parts.join(", "))
}

/// How the run ended.
fn headline(record: &Record, page: &mut Page) {
    let again: Vec<u64> = record
        .jobs
        .iter()
        .map(|job| u64::from(job.runs))
        .filter(|&runs| runs > 1)
        .collect();
    if !again.is_empty() {
        let (jobs, runs) = (
            count(again.len() as u64, "job"),
            grouped(again.iter().sum()),
        );
        let options = &record.setting.options;
        let why = match (options.restart == "until-last", options.attempts > 1) {
            (false, _) => "since they failed; above is the last attempt of each",
            (true, false) => {
                "started again until the last had ended once; above is the first run of each"
            }
            (true, true) => "started again after failures and until the last had ended once",
        };
        page.plain(&format!("{jobs} ran {runs} times, {why}"));
    }
    let style = if record.totals.failed > 0 {
        Style::Bad
    } else {
        Style::Title
    };
    page.paragraph(&headline_text(record), style);
}

/// What decided, and where.
fn setting(record: &Record, page: &mut Page) {
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
    let faults = record.overhead.policy_faults;
    if faults > 0 {
        let faults = count(faults, "decision");
        page.paragraph(
            &format!("the policy made {faults} that could not be carried out"),
            Style::Bad,
        );
    }
    let warnings = record.warnings.len() as u64;
    if warnings > 0 && !page.options.verbose {
        let record = if page.options.has_record {
            " and in the record"
        } else {
            ""
        };
        page.paragraph(
            &format!("{} above{record}", count(warnings, "warning")),
            Style::Bad,
        );
    }
}

/// Of what the run lacked, what the reader can do something with: what the figures need, and what this policy needs. For
/// other policies it is no defect that all cores are of one type, and modelled energy needs no meter.
fn worth_telling(record: &Record) -> impl Iterator<Item = &Missing> {
    let needs: Vec<String> = match find_policy(&record.policy) {
        Some(entry) => {
            let params = record.setting.params.iter();
            let settings: Vec<(String, String)> = params
                .map(|param| (param.name.clone(), param.value.to_string()))
                .collect();
            // A record of another version may hold parameters that this one has not.
            let params = Params::resolve(entry.name, entry.params, &settings)
                .or_else(|_| Params::resolve(entry.name, entry.params, &[]));
            let needs = params
                .map(|params| (entry.needs)(&params))
                .unwrap_or_default();
            needs
                .into_iter()
                .map(|need| need.capability.code())
                .collect()
        }
        None => Vec::new(),
    };
    let of_figures = |code: &str| match code {
        "energy" => record.energy.source != EnergySource::Modelled,
        "cpu-time" | "ipc" => true,
        code => Counter::ALL
            .iter()
            .any(|&counter| Capability::of(counter).code() == code),
    };
    record.missing.iter().filter(move |missing| {
        of_figures(&missing.capability) || needs.contains(&missing.capability)
    })
}

/// What was in use and what was not, and what cosched itself took.
fn details(record: &Record, page: &mut Page) {
    let with: Vec<String> = [
        ("counters", &record.counters),
        ("freezing", &record.freezing),
    ]
    .iter()
    .filter_map(|(name, what)| {
        what.as_ref()
            .map(|what| format!("{name}: {}", visible(what)))
    })
    .collect();
    if !with.is_empty() {
        page.paragraph(&with.join("; "), Style::Plain);
    }
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for missing in worth_telling(record) {
        by_reason
            .entry(&missing.why)
            .or_default()
            .push(&missing.what);
    }
    if !by_reason.is_empty() {
        let parts: Vec<String> = by_reason
            .iter()
            .map(|(why, what)| format!("{} ({why})", what.join(", ")))
            .collect();
        page.paragraph(&format!("off: {}", parts.join("; ")), Style::Plain);
    }
    if let Some(plans) = &record.plans {
        let (installed, adopted) = (count(plans.installed, "plan"), grouped(plans.adopted));
        let given_up = plans.given_up_s.map_or_else(String::new, |at| {
            format!(
                "; given up after {}, from then on decisions were carried out one by one",
                seconds(at)
            )
        });
        page.plain(&format!(
            "carried out as plans: {installed} installed, {adopted} adopted{given_up}"
        ));
    }
    let overhead = &record.overhead;
    let quanta = if overhead.quanta == 1 {
        "1 quantum".to_owned()
    } else {
        format!("{} quanta", grouped(overhead.quanta))
    };
    let mut parts = vec![count(overhead.decisions, "decision"), quanta];
    if let Some(share) = overhead.cpu_share {
        parts.push(unbroken(&format!("{:.2} % of one CPU", share * 100.0)));
    }
    let named = [
        ("decide", &overhead.decide_us),
        ("observe", &overhead.observe_us),
        ("apply", &overhead.apply_us),
    ];
    let times = named.iter().filter_map(|(name, times)| {
        let (p50, p99) = (times.get("p50")?, times.get("p99")?);
        let us = |us: &f64| {
            if *us < 99.95 {
                format!("{us:.1}")
            } else {
                grouped((us + 0.5) as u64)
            }
        };
        Some(unbroken(&format!(
            "{name} {} us (99 % within {} us)",
            us(p50),
            us(p99)
        )))
    });
    parts.extend(times);
    page.plain(&format!("cosched itself: {}", parts.join(", ")));
    for warning in &record.warnings {
        page.paragraph(&format!("warning: {}", visible(&warning.text)), Style::Bad);
    }
}
