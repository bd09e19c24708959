//! The table of jobs: one row for each job, or, if there are many, one row for all copies of a job.

use crate::record::{Job, Record};
use crate::table::Column;
use crate::text::{TimeUnit, clip, decimal, grouped, seconds, visible};
use cosched_core::{ProgressBasis, Width};

/// With more jobs than this, jobs share rows.
pub(super) const MOST_ROWS: usize = 40;
/// Rows that are left then: the groups that failed or took longest, and one for all others.
const MOST_GROUPS: usize = 15;

/// Shown in place of an absent value.
const NONE: &str = "-";

/// A row of the table, and whether it shows a failure.
pub(super) struct Jobs {
    pub(super) columns: Vec<Column>,
    pub(super) failed: Vec<bool>,
}

/// The cells of a column: one for each row.
fn cells<T>(rows: &[T], show: impl Fn(&T) -> String) -> Vec<String> {
    rows.iter().map(show).collect()
}

fn or_none(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

fn ratio(x: f64) -> String {
    decimal(x, 2)
}

fn failed(job: &Job) -> bool {
    job.exit.is_some_and(|exit| exit != 0)
}

/// The widest cell that tells how a job ended. A line below the table tells all of it.
const MOST_EXIT: usize = 24;

/// How a job ended, in the shortest form.
fn exit_cell(job: &Job) -> String {
    let text = match (job.exit, &job.exit_text) {
        (Some(code), Some(text)) if *text == format!("exit {code}") => code.to_string(),
        (_, Some(text)) => visible(text.split(": ").next().unwrap_or(text)),
        (_, None) => job.absent.why("exit").unwrap_or(NONE).to_owned(),
    };
    clip(
        &if job.timed_out {
            format!("{text}, timed out")
        } else {
            text
        },
        MOST_EXIT,
    )
}

fn time(job: &Job) -> Option<f64> {
    Some(job.finish_s? - job.start_s?)
}

pub(super) fn jobs(record: &Record) -> Jobs {
    if record.jobs.len() > MOST_ROWS {
        by_group(record)
    } else {
        one_by_one(record)
    }
}

/// A shorter time in the queue, as a share of the turnaround, is not worth a column.
const LEAST_QUEUED: f64 = 0.01;

/// Whether some job was in the queue for so long that the reader should know.
fn shows_queued(record: &Record) -> bool {
    let turnaround = record.metrics.get("turnaround_s").copied().unwrap_or(0.0);
    let is_long = |job: &Job| queued(record, job).is_some_and(|s| s > LEAST_QUEUED * turnaround);
    record.jobs.iter().any(is_long)
}

/// The time from a job's arrival to its start; not known of a job that was started again after a failure.
fn queued(record: &Record, job: &Job) -> Option<f64> {
    let is_last_attempt = record.setting.options.attempts > 1 && job.runs > 1;
    job.start_s
        .filter(|_| !is_last_attempt)
        .map(|start| start - job.arrival_s)
}

/// A job with what its row needs.
struct JobRow<'a> {
    job: &'a Job,
    /// Time in the queue; `None` if no job was queued for long.
    queued: Option<f64>,
    /// The unit of all times of the row.
    unit: TimeUnit,
}

impl<'a> JobRow<'a> {
    fn new(record: &Record, job: &'a Job, shows_queued: bool) -> JobRow<'a> {
        let queued = queued(record, job).filter(|_| shows_queued);
        let times = [time(job), job.cpu_s, queued, job.waited_max_s];
        JobRow {
            job,
            queued,
            unit: TimeUnit::of(times.into_iter().flatten()),
        }
    }

    fn time(&self, value: Option<f64>) -> String {
        or_none(value, |s| self.unit.show(s))
    }

    fn width(&self) -> String {
        let width = self.job.width;
        width.map_or_else(|| NONE.to_owned(), |width| width.to_string())
    }

    /// The slowdown, or its estimate if no job of the run has a slowdown.
    fn slowdown(&self, estimates: bool) -> String {
        match (self.job.slowdown, self.job.slowdown_estimate) {
            (Some(slowdown), _) => ratio(slowdown),
            (None, Some(estimate)) if estimates => format!("~{}", ratio(estimate)),
            _ => NONE.to_owned(),
        }
    }

    fn progress(&self, quantum_s: f64) -> String {
        let about = match self.job.progress_basis {
            ProgressBasis::Ipc | ProgressBasis::Trace => "",
            _ => "~",
        };
        or_none(self.job.progress, |quanta| {
            format!("{about}{}", seconds(quanta * quantum_s))
        })
    }
}

/// Whether a job used several CPUs. A reader expects one thread.
fn is_wide(job: &Job) -> bool {
    job.width_source == Width::Measured && job.width.is_some_and(|width| width > 1)
}

/// Whether a job has progress that its CPU time does not show already.
fn has_progress(job: &Job) -> bool {
    job.progress.is_some() && job.progress_basis != ProgressBasis::CpuTime
}

fn one_by_one(record: &Record) -> Jobs {
    let jobs = &record.jobs;
    let shows_queued = shows_queued(record);
    let rows: Vec<JobRow<'_>> = jobs
        .iter()
        .map(|job| JobRow::new(record, job, shows_queued))
        .collect();
    let estimates = jobs.iter().all(|job| job.slowdown.is_none())
        && jobs.iter().any(|job| job.slowdown_estimate.is_some());
    let name = cells(jobs, |job| visible(&job.name));
    let time = cells(&rows, |row| row.time(time(row.job)));
    let cpu = cells(&rows, |row| row.time(row.job.cpu_s));
    let width = cells(&rows, JobRow::width);
    let slowdown = cells(&rows, |row| row.slowdown(estimates));
    let queued = cells(&rows, |row| row.time(row.queued));
    let waited = cells(&rows, |row| row.time(row.job.waited_max_s));
    let ipc = cells(jobs, |job| or_none(job.ipc, ratio));
    let progress = cells(&rows, |row| row.progress(record.quantum_s));
    let columns = [
        (true, Column::text("JOB", 0, name)),
        (true, Column::text("EXIT", 0, cells(jobs, exit_cell))),
        (true, Column::number("TIME", 0, time)),
        (true, Column::number("CPU", 3, cpu)),
        (jobs.iter().any(is_wide), Column::number("WIDTH", 3, width)),
        (true, Column::number("SLOWDOWN", 0, slowdown)),
        (shows_queued, Column::number("QUEUED", 2, queued)),
        (true, Column::number("WAITED", 2, waited)),
        (
            jobs.iter().any(|job| job.ipc.is_some()),
            Column::number("IPC", 4, ipc),
        ),
        (
            jobs.iter().any(has_progress),
            Column::number("PROGRESS", 5, progress),
        ),
    ];
    Jobs {
        columns: shown(columns),
        failed: jobs.iter().map(failed).collect(),
    }
}

fn shown(columns: impl IntoIterator<Item = (bool, Column)>) -> Vec<Column> {
    columns
        .into_iter()
        .filter_map(|(is_shown, column)| is_shown.then_some(column))
        .collect()
}

/// The common name of copies, which are called `NAME-1`, `NAME-2` and so on.
fn base(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((base, number))
            if !base.is_empty()
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}

/// Jobs that share a row.
struct Group<'a> {
    name: String,
    jobs: Vec<&'a Job>,
}

impl Group<'_> {
    fn failed(&self) -> usize {
        self.jobs.iter().filter(|job| failed(job)).count()
    }

    fn longest(&self) -> f64 {
        self.jobs
            .iter()
            .filter_map(|job| time(job))
            .fold(0.0, f64::max)
    }

    fn succeeded(&self) -> usize {
        let jobs = self.jobs.iter();
        jobs.filter(|job| job.exit == Some(0)).count()
    }

    /// Least, median and greatest of the values that are not absent.
    fn spread(&self, value: impl Fn(&Job) -> Option<f64>) -> [Option<f64>; 3] {
        let mut values: Vec<f64> = self.jobs.iter().filter_map(|job| value(job)).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        if n == 0 {
            return [None; 3];
        }
        let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        [values[0], median, values[n - 1]].map(Some)
    }
}

/// The groups, in the order of their first job. If there are too many, the groups that failed and those that took
/// longest keep rows of their own, and all others share the last row.
fn groups(jobs: &[Job]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut index = std::collections::BTreeMap::new();
    for job in jobs {
        let ix = *index.entry(base(&job.name)).or_insert_with(|| {
            groups.push(Group {
                name: visible(base(&job.name)),
                jobs: Vec::new(),
            });
            groups.len() - 1
        });
        groups[ix].jobs.push(job);
    }
    if groups.len() > MOST_GROUPS {
        groups = with_others(groups);
    }
    for group in &mut groups {
        if let [only] = group.jobs[..] {
            group.name = visible(&only.name);
        }
    }
    groups
}

/// Keeps the groups that failed and those that took longest; all others share the last row.
fn with_others(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&groups[a], &groups[b]);
        let by_failure = (b.failed() > 0).cmp(&(a.failed() > 0));
        by_failure.then(b.longest().total_cmp(&a.longest()))
    });
    order.truncate(MOST_GROUPS - 1);
    let mut kept = Vec::new();
    let mut others = Vec::new();
    for (ix, group) in groups.into_iter().enumerate() {
        if order.contains(&ix) {
            kept.push(group);
        } else {
            others.extend(group.jobs);
        }
    }
    kept.push(Group {
        name: format!("({} others)", grouped(others.len() as u64)),
        jobs: others,
    });
    kept
}

/// A group with the least, median and greatest values of its jobs.
struct GroupRow {
    time: [Option<f64>; 3],
    slowdown: [Option<f64>; 3],
    queued: [Option<f64>; 3],
    waited: [Option<f64>; 3],
    /// The unit of all times of the row.
    unit: TimeUnit,
}

impl GroupRow {
    fn new(record: &Record, group: &Group<'_>, shows_queued: bool) -> GroupRow {
        let queued = group.spread(|job| queued(record, job).filter(|_| shows_queued));
        let waited = group.spread(|job| job.waited_max_s);
        let greatest = [waited[2], queued[2], Some(group.longest())];
        GroupRow {
            time: group.spread(time),
            slowdown: group.spread(|job| job.slowdown),
            queued,
            waited,
            unit: TimeUnit::of(greatest.into_iter().flatten()),
        }
    }

    fn time(&self, value: Option<f64>) -> String {
        or_none(value, |s| self.unit.show(s))
    }
}

fn by_group(record: &Record) -> Jobs {
    let groups = groups(&record.jobs);
    let shows_queued = shows_queued(record);
    let rows: Vec<GroupRow> = groups
        .iter()
        .map(|group| GroupRow::new(record, group, shows_queued))
        .collect();
    let name = cells(&groups, |group| group.name.clone());
    let jobs = cells(&groups, |group| group.jobs.len().to_string());
    let succeeded = cells(&groups, |group| group.succeeded().to_string());
    let failed = cells(&groups, |group| group.failed().to_string());
    let [time_min, time_med, time_max] =
        [0, 1, 2].map(|which| cells(&rows, |row| row.time(row.time[which])));
    let [slowd_min, slowd_med, slowd_max] =
        [0, 1, 2].map(|which| cells(&rows, |row| or_none(row.slowdown[which], ratio)));
    let queued = cells(&rows, |row| row.time(row.queued[2]));
    let waited = cells(&rows, |row| row.time(row.waited[2]));
    let columns = [
        (true, Column::text("JOB", 0, name)),
        (true, Column::number("COUNT", 0, jobs)),
        (true, Column::number("OK", 0, succeeded)),
        (true, Column::number("FAILED", 0, failed)),
        (true, Column::number("TIME MIN", 5, time_min)),
        (true, Column::number("TIME MED", 0, time_med)),
        (true, Column::number("TIME MAX", 0, time_max)),
        (true, Column::number("SLOWD MIN", 4, slowd_min)),
        (true, Column::number("SLOWD MED", 3, slowd_med)),
        (true, Column::number("SLOWD MAX", 3, slowd_max)),
        (shows_queued, Column::number("QUEUED MAX", 2, queued)),
        (true, Column::number("WAITED MAX", 2, waited)),
    ];
    Jobs {
        columns: shown(columns),
        failed: groups.iter().map(|group| group.failed() > 0).collect(),
    }
}

/// The jobs that failed, each with how it ended and its command; at most ten are named.
pub(super) fn failures(record: &Record, width: usize) -> Vec<String> {
    const MOST: usize = 10;
    let all: Vec<&Job> = record.jobs.iter().filter(|job| failed(job)).collect();
    let mut lines: Vec<String> = all
        .iter()
        .take(MOST)
        .map(|job| clip(&failure(job), width))
        .collect();
    if all.len() > MOST {
        let more = grouped((all.len() - MOST) as u64);
        lines.push(format!("and {more} more failed"));
    }
    lines
}

fn failure(job: &Job) -> String {
    let name = visible(&job.name);
    let mut text = format!("failed: {name} ({})", exit_text(job));
    let command = job.command.as_deref().map(visible).unwrap_or_default();
    // A name that is the whole command says enough.
    if !command.is_empty() && command != name {
        text += &format!(": {command}");
    }
    text
}

fn exit_text(job: &Job) -> String {
    visible(job.exit_text.as_deref().unwrap_or("ended"))
}

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn copies_have_their_name_in_common() {
        for (name, expected) in [
            ("mcf-1", "mcf"),
            ("a-b-12", "a-b"),
            ("mcf", "mcf"),
            ("-1", "-1"),
            ("a-", "a-"),
            ("a-b", "a-b"),
        ] {
            assert_eq!(base(name), expected);
        }
    }
}
