//! The summary of a run for people: its jobs, its metrics with their meaning, and how they were obtained.

mod jobs;
mod overview;

use crate::record::{Job, Missing, Record};
use crate::source::{BackendKind, EnergySource};
use crate::text::{count, decimal, grouped, seconds, unbroken, visible, wrap};
use cosched_core::metric::{METRICS, Metric, Needs};
use cosched_core::{Capability, Counter, ParamValue, Params, find_policy, signal_name};
pub use overview::overview;
use std::collections::BTreeMap;

/// How a summary is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryOptions {
    /// Characters in a line.
    pub width: usize,
    /// Whether to use terminal colours.
    pub colour: bool,
    /// Whether the record is kept, so that the reader can look there.
    pub has_record: bool,
    /// Whether to tell what is absent and why, what was in use, and what cosched itself took.
    pub verbose: bool,
}

impl Default for SummaryOptions {
    fn default() -> SummaryOptions {
        SummaryOptions {
            width: 80,
            colour: false,
            has_record: true,
            verbose: false,
        }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Plain,
    Title,
    Bad,
}

struct Page {
    options: SummaryOptions,
    text: String,
}

impl Page {
    fn line(&mut self, line: &str, style: Style) {
        let (on, off) = match (self.options.colour, style) {
            (false, _) | (_, Style::Plain) => ("", ""),
            (true, Style::Title) => ("\u{1b}[1m", "\u{1b}[0m"),
            (true, Style::Bad) => ("\u{1b}[31m", "\u{1b}[0m"),
        };
        self.text.push_str(on);
        self.text.push_str(line);
        self.text.push_str(off);
        self.text.push('\n');
    }

    /// A paragraph; its second and further lines are indented.
    fn paragraph(&mut self, text: &str, style: Style) {
        for (ix, line) in wrap(text, self.options.width.saturating_sub(2).max(20))
            .iter()
            .enumerate()
        {
            let indent = if ix == 0 { "" } else { "  " };
            self.line(&format!("{indent}{line}"), style);
        }
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }
}

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
        page.paragraph(&format!("{jobs} ran {runs} times, {why}"), Style::Plain);
    }
    let style = if record.totals.failed > 0 {
        Style::Bad
    } else {
        Style::Title
    };
    page.paragraph(&headline_text(record), style);
}

/// A metric's value with its unit, for people.
pub fn metric_value(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "s" => seconds(value),
        "1" | "instructions/cycle" => decimal(value, 2),
        unit if value >= 1e15 => format!("{} {unit}", decimal(value, 1)),
        unit if value >= 99_999.5 => format!("{} {unit}", grouped((value + 0.5) as u64)),
        unit => format!("{value:.1} {unit}"),
    }
}

/// A metric's name without its unit, in words.
pub fn metric_name(name: &str) -> String {
    let name = name
        .trim_end_matches("_s")
        .trim_end_matches("_js")
        .trim_end_matches("_j");
    match name {
        "stp" | "antt" | "edp" => name.to_uppercase(),
        "jain" => "Jain's index".to_owned(),
        "mean_ipc" => "mean IPC".to_owned(),
        "max_wait" => "longest wait".to_owned(),
        name => name.replace('_', " "),
    }
}

fn metrics(record: &Record, page: &mut Page) {
    let mut rows: Vec<(String, String, String)> = Vec::new();
    let mut unknown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let estimated = record.metrics_estimated.as_ref();
    // Whoever asked for solo times is told why there are no slowdowns.
    let asked = record.backend == BackendKind::Sim || record.setting.options.solo.is_some();
    let is_told =
        |metric: &Metric| page.options.verbose || (asked && metric.needs == Needs::Slowdowns);
    for metric in METRICS {
        let (about, value) = match (
            record.metrics.entry(metric.name),
            estimated.and_then(|all| all.get(metric.name)),
        ) {
            (Some(Ok(value)), _) => ("", value),
            (_, Some(value)) => ("~", value),
            (Some(Err(why)), None) => {
                if is_told(metric) {
                    unknown
                        .entry(why)
                        .or_default()
                        .push(metric_name(metric.name));
                }
                continue;
            }
            (None, None) => continue,
        };
        let more = match (metric.needs, record.energy.source) {
            (Needs::Energy, EnergySource::Modelled) => " (from a power model)",
            (Needs::Energy, EnergySource::Measured) => " (measured)",
            _ => "",
        };
        let value = format!("{about}{}", metric_value(metric, *value));
        rows.push((
            metric_name(metric.name),
            value,
            format!("{}{more}", metric.hint),
        ));
    }
    let name_width = rows
        .iter()
        .map(|row| row.0.chars().count())
        .max()
        .unwrap_or(0);
    let value_width = rows
        .iter()
        .map(|row| row.1.chars().count())
        .max()
        .unwrap_or(0);
    let indent = name_width + value_width + 4;
    for (name, value, hint) in &rows {
        let room = page.options.width.saturating_sub(indent).max(20);
        for (ix, part) in wrap(hint, room).iter().enumerate() {
            if ix == 0 {
                page.line(
                    &format!("{name:<name_width$}  {value:>value_width$}  {part}"),
                    Style::Plain,
                );
            } else {
                page.line(&format!("{:indent$}{part}", ""), Style::Plain);
            }
        }
    }
    if record.totals.earlier > 0 {
        let jobs = count(record.totals.jobs as u64, "job");
        page.paragraph(
            &format!("these figures are over the {jobs} of this run, without those done earlier"),
            Style::Plain,
        );
    }
    if record.metrics_estimated.is_some() {
        page.paragraph(
            "~ estimated from progress measured by IPC, since solo times are missing",
            Style::Plain,
        );
    }
    if let Some(told) = estimates(record) {
        page.paragraph(&told, Style::Plain);
    }
    for (why, names) in unknown {
        page.paragraph(
            &format!("not known: {} ({why})", names.join(", ")),
            Style::Plain,
        );
    }
}

/// What was learnt of the jobs, held against their solo times where both are known.
fn estimates(record: &Record) -> Option<String> {
    let done = record
        .jobs
        .iter()
        .filter(|job| job.exit == Some(0) && !job.timed_out);
    let of = |job: &Job| {
        let (learnt, solo) = (job.progress_learnt?, job.solo_s.filter(|solo| *solo > 0.0)?);
        Some(learnt * record.quantum_s / solo)
    };
    let all: Vec<f64> = done.filter_map(of).collect();
    let (least, most) = all
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), one| {
            (least.min(*one), most.max(*one))
        });
    let jobs = count(all.len() as u64, "job");
    let [least, most] = [least, most].map(|share| format!("{share:.2}"));
    let range = if least == most {
        least
    } else {
        format!("{least} to {most}")
    };
    (!all.is_empty()).then(|| format!("learnt progress is {range} times the solo time ({jobs})"))
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
    page.paragraph(
        &format!(
            "policy {}{auto}, quantum {quantum}, seed {}, on {} ({simulated}{cpus}, {cores})",
            visible(&record.policy),
            record.seed,
            visible(&record.machine)
        ),
        Style::Plain,
    );
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
            let text = |value: &ParamValue| match value {
                ParamValue::Number(number) => number.to_string(),
                ParamValue::Word(word) => word.clone(),
            };
            let params = record.setting.params.iter();
            let settings: Vec<(String, String)> = params
                .map(|param| (param.name.clone(), text(&param.value)))
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
        page.paragraph(
            &format!("carried out as plans: {installed} installed, {adopted} adopted{given_up}"),
            Style::Plain,
        );
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
    page.paragraph(
        &format!("cosched itself: {}", parts.join(", ")),
        Style::Plain,
    );
    for warning in &record.warnings {
        page.paragraph(&format!("warning: {}", visible(&warning.text)), Style::Bad);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::RunInfo;
    use crate::record::record;
    use crate::testing::{finished, info, result, simulated};
    use cosched_core::{
        Absence, Capabilities, Capability, Counter, Counts, Exit, Nanos, PlanCounts, ProgressBasis,
        Reading, RunResult, TaskResult,
    };

    /// A new unit in the table of metrics needs a form in the summary.
    const UNITS: &[&str] = &["s", "1", "instructions/cycle", "J", "J s"];

    fn host() -> Record {
        let result = result();
        record(&result, &info(&result))
    }

    fn plain_summary(record: &Record, width: usize) -> String {
        summary(
            record,
            &SummaryOptions {
                width,
                verbose: true,
                ..SummaryOptions::default()
            },
        )
    }

    /// A record with `jobs` jobs, `copies` of each kind.
    fn many(jobs: u32, copies: u32) -> Record {
        let task = |id: u32| {
            let mut task = finished(
                id,
                &format!("job{}-{}", id / copies, id % copies),
                f64::from(id % 7 + 1),
                1.0,
            );
            if id % 97 == 5 {
                task.exit = Some(Exit::Code(3));
            }
            task
        };
        let result = RunResult {
            tasks: (0..jobs).map(task).collect::<Vec<TaskResult>>(),
            ..result()
        };
        record(&result, &info(&result))
    }

    #[test]
    fn of_a_run_on_the_host() {
        insta::assert_snapshot!(plain_summary(&host(), 100));
    }

    /// What a person reads first: no reasons for what is absent, no cost of cosched, and the result in the last line.
    #[test]
    fn in_brief() {
        let mut record = host();
        record.warnings.truncate(1);
        record.setting.options.policy = "auto".to_owned();
        record.setting.options.policy_lacks = Some("no hardware counters".to_owned());
        let text = summary(&record, &SummaryOptions::default());
        assert!(text.lines().count() < 24, "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn of_a_simulation() {
        let (result, info) = simulated();
        let text = plain_summary(&record(&result, &info), 100);
        assert!(text.starts_with("SIMULATED on two cores"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn plans_are_told_and_when_they_were_given_up() {
        let (mut result, info) = simulated();
        let text = |result: &RunResult| plain_summary(&record(result, &info), 120);
        assert!(!text(&result).contains("plan"));
        result.plans = Some(PlanCounts {
            installed: 1_234,
            adopted: 1_234,
            given_up: None,
            occupation: None,
        });
        assert!(
            text(&result)
                .contains("\ncarried out as plans: 1,234 plans installed, 1,234 adopted\n")
        );
        result.plans = Some(PlanCounts {
            installed: 2,
            adopted: 1,
            given_up: Some(Nanos::from_ms(2_500)),
            occupation: None,
        });
        let line = "carried out as plans: 2 plans installed, 1 adopted; given up after 2.50 s, from then on decisions were";
        assert!(text(&result).contains(line), "{}", text(&result));
    }

    #[test]
    fn on_a_machine_without_counters_or_solo_times() {
        let mut result = result();
        result.tasks.truncate(2);
        for task in &mut result.tasks {
            task.counts = Counts::absent(Absence::NoCounters);
            task.progress_basis = ProgressBasis::CpuTime;
            task.spec.solo.time = None;
        }
        result.energy_j = Reading::Absent(Absence::NoEnergyMeter);
        let mut info = info(&result);
        info.jobs[0].solo = None;
        info.counters = None;
        let off = [
            Capability::Ipc,
            Capability::Counter(Counter::L1Accesses),
            Capability::Counter(Counter::MmReads),
        ]
        .map(|capability| (capability, Absence::NoCounters));
        info.capabilities = Capabilities {
            missing: off
                .into_iter()
                .chain([(Capability::Energy, Absence::NoEnergyMeter)])
                .collect(),
        };
        insta::assert_snapshot!(plain_summary(&record(&result, &info), 80));
    }

    /// The record names all that was lacking; the summary only what its figures or the policy need.
    #[test]
    fn only_what_matters_is_told_as_off() {
        let (mut result, mut info) = simulated();
        result.energy_j = Reading::Value(600.0);
        info.energy_source = EnergySource::Modelled;
        let missing = [
            (Capability::Counter(Counter::MmWrites), Absence::NoSuchEvent),
            (Capability::Energy, Absence::NoEnergyMeter),
            (Capability::CoreTypes, Absence::OneCoreType),
            (Capability::Traffic, Absence::NoSuchEvent),
        ];
        info.capabilities = Capabilities {
            missing: missing.into(),
        };
        let off = |info: &RunInfo| {
            let record = record(&result, info);
            let codes: Vec<String> = record
                .missing
                .iter()
                .map(|missing| missing.capability.clone())
                .collect();
            assert_eq!(codes, ["mm-writes", "energy", "traffic", "core-types"]);
            let text = plain_summary(&record, 200);
            text.lines()
                .find(|line| line.starts_with("off: "))
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            off(&info),
            "off: writes to memory (the counter hardware cannot count this event)"
        );
        info.policy = "lucky".to_owned();
        let cores = "cores of two types (all cores are of one type)";
        assert_eq!(
            off(&info),
            format!(
                "off: {cores}; writes to memory (the counter hardware cannot count this event)"
            )
        );
        info.policy = "efs".to_owned();
        assert!(
            off(&info).contains("traffic of each memory domain"),
            "{}",
            off(&info)
        );
        // A meter that is not there matters where nothing models the energy.
        info.energy_source = EnergySource::Measured;
        assert!(
            off(&info).contains("package energy (no energy meter)"),
            "{}",
            off(&info)
        );
    }

    #[test]
    fn whoever_asked_for_solo_times_is_told_why_metrics_are_missing() {
        let mut result = result();
        for task in &mut result.tasks {
            task.progress_basis = ProgressBasis::CpuTime;
        }
        let mut record = record(&result, &info(&result));
        let brief = |record: &Record| {
            summary(
                record,
                &SummaryOptions {
                    width: 200,
                    ..SummaryOptions::default()
                },
            )
        };
        assert!(!brief(&record).contains("not known"), "{}", brief(&record));
        record.setting.options.solo = Some("measure".to_owned());
        let line = "\nnot known: unfairness, STP, ANTT, Jain's index, worst slowdown (some jobs lack it)\n";
        assert!(brief(&record).contains(line), "{}", brief(&record));
        record.setting.options.solo = None;
        record.backend = BackendKind::Sim;
        assert!(brief(&record).contains(line), "{}", brief(&record));
    }

    /// How long a job was in the queue is shown if it was long, and of jobs of which it is known.
    #[test]
    fn time_in_the_queue() {
        let mut record = host();
        let header = |record: &Record| {
            plain_summary(record, 100)
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        assert!(!header(&record).contains("QUEUED"), "nobody was");
        record.jobs[0].start_s = Some(0.19);
        assert!(
            !header(&record).contains("QUEUED"),
            "less than a hundredth of 20 s"
        );
        record.jobs[0].start_s = Some(2.5);
        record.jobs[1].start_s = Some(1.0);
        record.setting.options.attempts = 3;
        record.jobs[1].runs = 2;
        insta::assert_snapshot!(plain_summary(&record, 100));
        assert!(
            !plain_summary(&record, 30).contains("QUEUED"),
            "it goes where there is no room"
        );
        let mut many = many(100, 50);
        assert!(!header(&many).contains("QUEUED"));
        many.jobs[3].start_s = Some(1.5);
        assert!(
            header(&many).contains("QUEUED MAX  WAITED MAX"),
            "{}",
            header(&many)
        );
        let text = plain_summary(&many, 120);
        assert!(text.lines().nth(1).unwrap().contains("1.50 s"), "{text}");
    }

    #[test]
    fn estimates_are_marked() {
        let mut result = result();
        result.tasks.truncate(2);
        result
            .tasks
            .iter_mut()
            .for_each(|task| task.spec.solo.time = None);
        let mut info = info(&result);
        info.jobs[0].solo = None;
        insta::assert_snapshot!(plain_summary(&record(&result, &info), 80));
    }

    #[test]
    fn of_a_thousand_jobs() {
        insta::assert_snapshot!(plain_summary(&many(1_000, 250), 100));
    }

    #[test]
    fn of_a_thousand_different_jobs() {
        let text = plain_summary(&many(1_000, 1), 100);
        assert!(text.lines().count() < 45, "{text}");
        assert!(text.contains("(986 others)"), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn tables_fit_the_width() {
        let mut missing = host();
        missing.jobs[1].exit_text = Some(format!(
            "not started: {}: No such file or directory",
            "/tmp".repeat(40)
        ));
        for record in [host(), many(1_000, 250), many(1_000, 1), missing] {
            for width in 60..140 {
                for line in plain_summary(&record, width).lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
        insta::assert_snapshot!(plain_summary(&host(), 60));
        assert!(plain_summary(&host(), 0).contains("mcf-1"));
    }

    #[test]
    fn colour_only_when_asked_for() {
        assert!(!plain_summary(&host(), 80).contains('\u{1b}'));
        let coloured = summary(
            &host(),
            &SummaryOptions {
                colour: true,
                verbose: true,
                ..SummaryOptions::default()
            },
        );
        assert!(coloured.contains("\u{1b}[31mcheck"));
        let stripped = coloured
            .replace("\u{1b}[31m", "")
            .replace("\u{1b}[1m", "")
            .replace("\u{1b}[0m", "");
        assert_eq!(stripped, plain_summary(&host(), 80));
    }

    #[test]
    fn names_do_not_drive_the_terminal() {
        let mut record = host();
        record.jobs[0].name = "\u{1b}]0;title\u{7}".to_owned();
        record.policy = "\u{1b}[2J".to_owned();
        assert!(!plain_summary(&record, 80).contains('\u{1b}'));
    }

    #[test]
    fn attempts_are_told_from_runs_that_keep_the_load() {
        let mut record = host();
        record.jobs[0].runs = 3;
        let mut told = |restart: &str, attempts| {
            record.setting.options.restart = restart.to_owned();
            record.setting.options.attempts = attempts;
            plain_summary(&record, 200)
        };
        assert!(
            told("never", 3).contains("1 job ran 3 times, since they failed; above is the last")
        );
        assert!(
            told("until-last", 1)
                .contains("1 job ran 3 times, started again until the last had ended once; above")
        );
        assert!(
            told("until-last", 3)
                .contains("1 job ran 3 times, started again after failures and until")
        );
    }

    #[test]
    fn every_metric_that_is_known_is_explained() {
        let (result, mut info) = simulated();
        info.energy_source = EnergySource::Modelled;
        let result = RunResult {
            energy_j: Reading::Value(10.0),
            turnaround: Nanos::from_s(20.0),
            ..result
        };
        let text = plain_summary(&record(&result, &info), 200);
        for metric in METRICS {
            assert!(text.contains(metric.hint), "{}", metric.name);
            assert!(UNITS.contains(&metric.unit), "{}", metric.unit);
        }
        assert!(text.contains("from a power model"));
        assert!(!text.contains("not known"));
    }

    #[test]
    fn jobs_of_earlier_runs_are_counted_apart() {
        let mut record = host();
        let text = plain_summary(&record, 200);
        assert!(
            !text.contains("earlier") && !text.contains("adopted"),
            "{text}"
        );
        (record.totals.earlier, record.totals.adopted) = (18, 1);
        let text = plain_summary(&record, 200);
        assert!(
            text.contains("17 done earlier, 1 adopted, of which it is not known how they ended"),
            "{text}"
        );
        assert!(
            text.contains("over the 4 jobs of this run, without those done earlier"),
            "{text}"
        );
    }

    #[test]
    fn an_empty_run() {
        let result = RunResult {
            tasks: vec![],
            ..result()
        };
        let text = plain_summary(&record(&result, &info(&super::tests::result())), 80);
        assert!(text.contains("\n0 jobs in 20.0 s: 0 ended well"), "{text}");
    }
}
