//! The timeline of a run as a still chart: for each part of the run, the job that had a CPU longest.

use crate::facts::family;
use crate::html::{charts, paragraph};
use cosched_report::chart::{Axis, Chart, Plot, Span, Timeline as Rows};
use cosched_report::{Mode, Record, Stay, Timeline};
use std::collections::BTreeMap;

/// Number of parts that a run is cut into: about one per point of a chart.
const PARTS: u64 = 600;
/// Maximum number of rows that a reader can tell apart.
const MAX_ROWS: usize = 64;
/// Maximum number of job families with a colour of their own.
const MAX_COLOURS: usize = 24;

const PERFETTO_HINT: &str = "<p class=\"dim\">To zoom in, and to see why jobs waited: <code>cosched trace RUN --perfetto FILE</code></p>\n";

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
    let parts = Parts::of(timeline)?;
    if timeline.stays.len() > record.jobs.len() {
        return None;
    }
    let is_by_job = is_mostly_shared(timeline);
    let rows = if is_by_job {
        job_names(record)
    } else {
        cpu_names(timeline)
    };
    if rows.is_empty() || rows.len() > MAX_ROWS {
        return None;
    }
    let families = Families::of(record);
    let mut times: Vec<FamilyTimes> = vec![FamilyTimes::new(); rows.len()];
    for (job, stay) in all_stays(timeline) {
        for row in rows_of(job, stay, timeline, is_by_job) {
            parts.add(stay, families.of_job[job], &mut times[row]);
        }
    }
    let mut spans = Vec::new();
    for (row, times) in times.iter().enumerate() {
        spans.extend(parts.spans(row, times));
    }
    if spans.is_empty() {
        return None;
    }
    let rows = Rows {
        rows,
        series: families.names,
        spans,
    };
    Some(chart(label, is_by_job, rows))
}

fn chart(label: &str, is_by_job: bool, rows: Rows) -> Chart {
    let what = if is_by_job {
        "each job's time on CPUs"
    } else {
        "in each moment the job that had the CPU for longest"
    };
    Chart {
        title: format!("Who ran where: {label}"),
        subtitle: Some(what.to_owned()),
        x: Axis::new("time since the start", "s"),
        y: Axis::default(),
        plot: Plot::Timeline(rows),
    }
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
    let cpus = timeline.cpus.iter().enumerate();
    cpus.filter(|(_, cpu)| stay.cpus.contains(*cpu))
        .map(|(row, _)| row)
        .collect()
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
            let index = *known.entry(name).or_insert_with(|| {
                if names.len() < MAX_COLOURS {
                    names.push(name.to_owned());
                } else if names.len() == MAX_COLOURS {
                    names.push("others".to_owned());
                }
                names.len() - 1
            });
            of_job.push(index);
        }
        Families { names, of_job }
    }
}

/// Time on a row in ns, by part of the run and family.
type FamilyTimes = BTreeMap<(u64, usize), u64>;

/// Equal parts of a run.
struct Parts {
    length_ns: u64,
}

impl Parts {
    fn of(timeline: &Timeline) -> Option<Parts> {
        let length_ns = timeline.until.0;
        (length_ns > 0).then_some(Parts { length_ns })
    }

    /// Length of a part.
    fn width_ns(&self) -> u64 {
        self.length_ns / PARTS
    }

    fn begin_ns(&self, part: u64) -> u64 {
        self.width_ns() * part
    }

    fn begin_s(&self, part: u64) -> f64 {
        part as f64 / PARTS as f64 * self.length_ns as f64 / 1e9
    }

    /// The part in which a time lies.
    fn part_at(&self, at_ns: u64) -> u64 {
        let part = u128::from(at_ns) * u128::from(PARTS) / u128::from(self.length_ns);
        (part as u64).min(PARTS - 1)
    }

    /// Add the time of a stay to each part that it touches.
    fn add(&self, stay: &Stay, family: usize, times: &mut FamilyTimes) {
        for part in self.part_at(stay.from.0)..=self.part_at(stay.to.0) {
            let from_ns = stay.from.0.max(self.begin_ns(part));
            let to_ns = stay.to.0.min(self.begin_ns(part + 1));
            *times.entry((part, family)).or_default() += to_ns.saturating_sub(from_ns);
        }
    }

    /// Return the spans of a row: each part shows its longest family, unless the row was idle for most of it.
    fn spans(&self, row: usize, times: &FamilyTimes) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut last: Option<(u64, usize)> = None;
        for (part, series) in self.longest_families(times) {
            let (from, to) = (self.begin_s(part), self.begin_s(part + 1));
            let continues = last == Some((part.wrapping_sub(1), series));
            match spans.last_mut() {
                Some(span) if continues => span.to = to,
                _ => spans.push(Span {
                    row,
                    series,
                    from,
                    to,
                }),
            }
            last = Some((part, series));
        }
        spans
    }

    /// The family with the most time in each part, without parts that were idle for more than half.
    fn longest_families(&self, times: &FamilyTimes) -> BTreeMap<u64, usize> {
        let mut longest: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        let mut busy_ns: BTreeMap<u64, u64> = BTreeMap::new();
        for (&(part, family), &time_ns) in times {
            *busy_ns.entry(part).or_default() += time_ns;
            let best = longest.entry(part).or_insert((time_ns, family));
            if time_ns > best.0 {
                *best = (time_ns, family);
            }
        }
        longest.retain(|part, _| 2 * busy_ns[part] >= self.width_ns());
        let families = longest.into_iter();
        families.map(|(part, (_, family))| (part, family)).collect()
    }
}
