//! The timeline of a run as a still chart: who had each CPU at some hundred moments.

use crate::html::{charts, paragraph};
use cosched_core::Nanos;
use cosched_report::chart::{Axis, Chart, Plot, Span, Timeline as Rows};
use cosched_report::{CpuMode, CpuStay, JobRecord, RunRecord, Timeline};
use std::collections::BTreeMap;

/// Numbers of parts that a run is cut into: at most about one per point of a chart, and fewer if that makes too many spans.
/// Each part shows its middle.
const PARTS: [usize; 6] = [600, 300, 150, 75, 30, 15];
/// Maximum number of spans, which keeps pages small.
const MAX_SPANS: usize = 800;
/// Maximum number of rows that a reader can tell apart.
const MAX_ROWS: usize = 64;
/// Maximum number of jobs, or of their families, with a colour of their own.
const MAX_COLOURS: usize = 24;

const PERFETTO_HINT: &str = include_str!("perfetto.html");

/// Return the timeline as part of a page; `None` if no job was placed on a CPU.
pub(crate) fn timeline_figure(
    label: &str,
    timeline: &Timeline,
    record: &RunRecord,
) -> Option<String> {
    if timeline.stays.iter().all(Vec::is_empty) {
        return None;
    }
    let figure = match timeline_chart(label, timeline, record) {
        Some(chart) => charts([chart]),
        None => paragraph(&format!(
            "No chart: more than {MAX_ROWS} rows, too little time on CPUs, or jobs that the record leaves out."
        )),
    };
    Some(figure + PERFETTO_HINT)
}

/// Return the chart of a run; `None` if there is nothing to draw, or too much.
pub(crate) fn timeline_chart(
    label: &str,
    timeline: &Timeline,
    record: &RunRecord,
) -> Option<Chart> {
    if timeline.until.0 == 0 || record.jobs.len() < timeline.stays.len().max(record.totals.jobs) {
        return None;
    }
    let layout = Layout::of(timeline, record);
    if layout.names.is_empty() || layout.names.len() > MAX_ROWS {
        return None;
    }
    let colours = Colours::of(record);
    let mut spans = Vec::new();
    for parts in PARTS {
        spans = all_spans(timeline, record, &layout, &colours, parts);
        if spans.len() <= MAX_SPANS {
            break;
        }
    }
    if spans.is_empty() {
        return None;
    }
    let rows = Rows {
        rows: layout.names,
        series: colours.names,
        spans,
    };
    Some(Chart {
        title: format!("Who ran where: {label}"),
        subtitle: Some(layout.what.to_owned()),
        x: Axis::new("time since the start", "s"),
        y: Axis::default(),
        plot: Plot::Timeline(rows),
    })
}

/// What the rows are.
struct Layout {
    names: Vec<String>,
    /// Where rows are not CPUs: the row of each job.
    of_job: Option<Vec<usize>>,
    what: &'static str,
}

impl Layout {
    /// Rows are CPUs. If jobs share CPUs most of the time, nobody knows which job runs on which: rows are jobs then, or lanes
    /// that hold one job after the other if there are many.
    fn of(timeline: &Timeline, record: &RunRecord) -> Layout {
        if !is_mostly_shared(timeline) {
            return Layout {
                names: cpu_names(timeline),
                of_job: None,
                what: "the job that had each CPU",
            };
        }
        if record.jobs.len() <= MAX_ROWS {
            return Layout {
                names: record.jobs.iter().map(|job| job.name.clone()).collect(),
                of_job: Some((0..record.jobs.len()).collect()),
                what: "each job's time on CPUs",
            };
        }
        let of_job = lanes(timeline);
        let count = of_job.iter().max().map_or(0, |last| last + 1);
        Layout {
            names: (1..=count).map(|lane| lane.to_string()).collect(),
            of_job: Some(of_job),
            what: "each job's time on CPUs; a row holds several jobs",
        }
    }

    /// The rows on which a stay is drawn.
    fn rows_of(&self, job: usize, stay: &CpuStay, timeline: &Timeline) -> Vec<usize> {
        if let Some(of_job) = &self.of_job {
            return vec![of_job[job]];
        }
        if stay.mode == CpuMode::Shared {
            return Vec::new();
        }
        let cpus = timeline.cpus.iter().enumerate();
        let own = cpus.filter(|(_, cpu)| stay.cpus.contains(*cpu));
        own.map(|(row, _)| row).collect()
    }
}

/// The lane of each job: the first that is free when the job begins.
fn lanes(timeline: &Timeline) -> Vec<usize> {
    let mut times = Vec::new();
    for (job, stays) in timeline.stays.iter().enumerate() {
        if let (Some(first), Some(last)) = (stays.first(), stays.last()) {
            times.push((first.from, last.to, job));
        }
    }
    times.sort();
    let mut free_from: Vec<Nanos> = Vec::new();
    let mut of_job = vec![0; timeline.stays.len()];
    for (from, to, job) in times {
        let free = free_from.iter().position(|&free| free <= from);
        let lane = free.unwrap_or(free_from.len());
        if lane == free_from.len() {
            free_from.push(to);
        }
        free_from[lane] = to;
        of_job[job] = lane;
    }
    of_job
}

/// All stays, each with the index of its job.
fn all_stays(timeline: &Timeline) -> impl Iterator<Item = (usize, &CpuStay)> {
    let jobs = timeline.stays.iter().enumerate();
    jobs.flat_map(|(job, stays)| stays.iter().map(move |stay| (job, stay)))
}

fn is_mostly_shared(timeline: &Timeline) -> bool {
    let (mut shared_ns, mut own_ns) = (0, 0);
    for (_, stay) in all_stays(timeline) {
        let time_ns = (stay.to - stay.from).0;
        match stay.mode {
            CpuMode::Shared => shared_ns += time_ns,
            _ => own_ns += time_ns,
        }
    }
    shared_ns > own_ns
}

fn cpu_names(timeline: &Timeline) -> Vec<String> {
    let cpus = timeline.cpus.iter();
    cpus.map(|cpu| format!("CPU {}", cpu.0)).collect()
}

/// The colours of jobs: each its own if there are few, else one for all copies of a job, as `gzip#1` and `gzip#2`.
struct Colours {
    names: Vec<String>,
    /// The colour of each job, as an index of `names`.
    of_job: Vec<usize>,
}

impl Colours {
    fn of(record: &RunRecord) -> Colours {
        let name_of = if record.jobs.len() <= MAX_COLOURS {
            whole_name
        } else {
            family
        };
        let mut names: Vec<String> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let mut of_job = Vec::new();
        for job in &record.jobs {
            let name = name_of(&job.name);
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
        Colours { names, of_job }
    }
}

fn whole_name(name: &str) -> &str {
    name
}

/// The name that copies of a job have in common.
fn family(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((family, number)) if number.parse::<u64>().is_ok() => family,
        _ => name,
    }
}

/// A span for each stretch of a row that one job had, with the run cut into so many parts.
fn all_spans(
    timeline: &Timeline,
    record: &RunRecord,
    layout: &Layout,
    colours: &Colours,
    parts: usize,
) -> Vec<Span> {
    let mut rows: Vec<Vec<Option<usize>>> = vec![vec![None; parts]; layout.names.len()];
    for (job, stay) in all_stays(timeline) {
        let within = part_at(stay.from, timeline, parts)..part_at(stay.to, timeline, parts);
        for row in layout.rows_of(job, stay, timeline) {
            rows[row][within.clone()].fill(Some(job));
        }
    }
    let mut spans = Vec::new();
    for (row, row_parts) in rows.iter().enumerate() {
        for (job, from_s, to_s) in stretches(row_parts, timeline.until.as_s()) {
            spans.push(Span {
                name: span_name(&record.jobs[job]),
                row,
                series: colours.of_job[job],
                from: from_s,
                to: to_s,
            });
        }
    }
    spans
}

/// The name of a job, and how it failed.
fn span_name(job: &JobRecord) -> String {
    if job.failed() {
        format!("{} ({})", job.name, job.end.text())
    } else {
        job.name.clone()
    }
}

/// The first part whose middle is not before a time.
fn part_at(at: Nanos, timeline: &Timeline, parts: usize) -> usize {
    let at_ns = u128::from(at.0);
    let until_ns = u128::from(timeline.until.0);
    let before = at_ns * parts as u128 / until_ns.max(1);
    let middle_ns = (2 * before + 1) * until_ns / (2 * parts as u128);
    let is_past = middle_ns < at_ns;
    (before as usize + usize::from(is_past)).min(parts)
}

/// The stretches of equal parts: the job, and from when to when it had them.
fn stretches(parts: &[Option<usize>], until_s: f64) -> Vec<(usize, f64, f64)> {
    let part_s = until_s / parts.len() as f64;
    let mut stretches = Vec::new();
    let mut begin = 0;
    for stretch in parts.chunk_by(|a, b| a == b) {
        let end = begin + stretch.len();
        if let Some(job) = stretch[0] {
            stretches.push((job, begin as f64 * part_s, end as f64 * part_s));
        }
        begin = end;
    }
    stretches
}
