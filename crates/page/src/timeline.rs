//! The timeline of a run as a still chart: who had each CPU at some hundred moments.

use crate::html::{charts, paragraph};
use cosched_core::Nanos;
use cosched_report::chart::{Axis, Chart, Plot, Span, Timeline as Rows};
use cosched_report::{Mode, Record, Stay, Timeline};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of parts that a run is cut into: about one per point of a chart. Each shows its middle.
const PARTS: usize = 600;
/// Maximum number of rows that a reader can tell apart.
const MAX_ROWS: usize = 64;
/// Maximum number of job families with a colour of their own.
const MAX_COLOURS: usize = 24;

const PERFETTO_HINT: &str = include_str!("perfetto.html");

/// Return the timeline as part of a page; `None` if no job was placed on a CPU.
pub(crate) fn timeline_figure(label: &str, timeline: &Timeline, record: &Record) -> Option<String> {
    if timeline.stays.iter().all(Vec::is_empty) {
        return None;
    }
    let figure = match timeline_chart(label, timeline, record) {
        Some(chart) => charts([chart]),
        None => paragraph(&format!(
            "No chart: more than {MAX_ROWS} rows, or too little time on CPUs."
        )),
    };
    Some(figure + PERFETTO_HINT)
}

/// Return the chart of a run; `None` if there is nothing to draw, or too much.
///
/// Rows are CPUs; or jobs, if jobs share CPUs most of the time.
pub(crate) fn timeline_chart(label: &str, timeline: &Timeline, record: &Record) -> Option<Chart> {
    if timeline.until.0 == 0 || timeline.stays.len() > record.jobs.len() {
        return None;
    }
    let is_by_job = is_mostly_shared(timeline);
    let names = if is_by_job {
        job_names(record)
    } else {
        cpu_names(timeline)
    };
    if names.is_empty() || names.len() > MAX_ROWS {
        return None;
    }
    let families = Families::of(record);
    let mut rows: Vec<Row> = vec![[None; PARTS]; names.len()];
    for (job, stay) in all_stays(timeline) {
        for row in rows_of(job, stay, timeline, is_by_job) {
            rows[row][parts_of(stay, timeline)].fill(Some(families.of_job[job]));
        }
    }
    let mut spans = Vec::new();
    for (row, parts) in rows.iter().enumerate() {
        add_spans(&mut spans, row, parts, timeline.until.as_s());
    }
    if spans.is_empty() {
        return None;
    }
    let what = if is_by_job {
        "each job's time on CPUs"
    } else {
        "the job that had each CPU"
    };
    let rows = Rows {
        rows: names,
        series: families.names,
        spans,
    };
    Some(Chart {
        title: format!("Who ran where: {label}"),
        subtitle: Some(what.to_owned()),
        x: Axis::new("time since the start", "s"),
        y: Axis::default(),
        plot: Plot::Timeline(rows),
    })
}

/// All stays, each with the index of its job.
fn all_stays(timeline: &Timeline) -> impl Iterator<Item = (usize, &Stay)> {
    let jobs = timeline.stays.iter().enumerate();
    jobs.flat_map(|(job, stays)| stays.iter().map(move |stay| (job, stay)))
}

fn is_mostly_shared(timeline: &Timeline) -> bool {
    let (mut shared_ns, mut own_ns) = (0, 0);
    for (_, stay) in all_stays(timeline) {
        let time_ns = (stay.to - stay.from).0;
        match stay.mode {
            Mode::Shared => shared_ns += time_ns,
            _ => own_ns += time_ns,
        }
    }
    shared_ns > own_ns
}

fn job_names(record: &Record) -> Vec<String> {
    record.jobs.iter().map(|job| job.name.clone()).collect()
}

fn cpu_names(timeline: &Timeline) -> Vec<String> {
    let cpus = timeline.cpus.iter();
    cpus.map(|cpu| format!("CPU {}", cpu.0)).collect()
}

/// The rows on which a stay is drawn. On shared CPUs nobody knows which job runs.
fn rows_of(job: usize, stay: &Stay, timeline: &Timeline, is_by_job: bool) -> Vec<usize> {
    if is_by_job {
        return vec![job];
    }
    if stay.mode == Mode::Shared {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (row, cpu) in timeline.cpus.iter().enumerate() {
        if stay.cpus.contains(cpu) {
            rows.push(row);
        }
    }
    rows
}

/// Families of jobs: copies of one job share a colour.
struct Families {
    names: Vec<String>,
    /// The family of each job, as an index of `names`.
    of_job: Vec<usize>,
}

impl Families {
    fn of(record: &Record) -> Families {
        let mut names: Vec<String> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let mut of_job = Vec::new();
        for job in &record.jobs {
            let name = family(&job.name);
            if !known.contains_key(name) {
                match names.len() {
                    0..MAX_COLOURS => names.push(name.to_owned()),
                    MAX_COLOURS => names.push("others".to_owned()),
                    _ => {}
                }
                known.insert(name, names.len() - 1);
            }
            of_job.push(known[name]);
        }
        Families { names, of_job }
    }
}

/// The family that had a row in the middle of each part of the run.
type Row = [Option<usize>; PARTS];

/// The parts whose middle lies within a stay.
fn parts_of(stay: &Stay, timeline: &Timeline) -> Range<usize> {
    part_at(stay.from, timeline)..part_at(stay.to, timeline)
}

/// The first part whose middle is not before a time.
fn part_at(at: Nanos, timeline: &Timeline) -> usize {
    let at_ns = u128::from(at.0);
    let until_ns = u128::from(timeline.until.0);
    let parts = at_ns * PARTS as u128 / until_ns.max(1);
    let middle_ns = (2 * parts + 1) * until_ns / (2 * PARTS as u128);
    let is_past = middle_ns < at_ns;
    (parts as usize + usize::from(is_past)).min(PARTS)
}

/// Add a span for each stretch of equal parts.
fn add_spans(spans: &mut Vec<Span>, row: usize, parts: &Row, until_s: f64) {
    let mut begin = 0;
    for stretch in parts.chunk_by(|a, b| a == b) {
        let end = begin + stretch.len();
        if let Some(series) = stretch[0] {
            spans.push(Span {
                row,
                series,
                from: begin as f64 / PARTS as f64 * until_s,
                to: end as f64 / PARTS as f64 * until_s,
            });
        }
        begin = end;
    }
}

/// The name that jobs of one program have in common: they are called `NAME#1`, `NAME#2` and so on.
fn family(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}
