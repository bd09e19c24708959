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

fn column(title: &'static str, right: bool, expendable: u8, cells: Vec<String>) -> Column {
    Column {
        title: title.into(),
        right,
        expendable,
        cells,
    }
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

fn one_by_one(record: &Record) -> Jobs {
    let jobs = &record.jobs;
    let cells = |show: &dyn Fn(&Job) -> String| jobs.iter().map(show).collect::<Vec<_>>();
    // All times of a row have one unit.
    let shows_queued = shows_queued(record);
    let queued = |job: &Job| queued(record, job).filter(|_| shows_queued);
    let unit = |job: &Job| {
        TimeUnit::of(
            [time(job), job.cpu_s, queued(job), job.waited_max_s]
                .into_iter()
                .flatten(),
        )
    };
    let mut columns = vec![
        column("JOB", false, 0, cells(&|job| visible(&job.name))),
        column("EXIT", false, 0, cells(&exit_cell)),
        column(
            "TIME",
            true,
            0,
            cells(&|job| or_none(time(job), |s| unit(job).show(s))),
        ),
        column(
            "CPU",
            true,
            3,
            cells(&|job| or_none(job.cpu_s, |s| unit(job).show(s))),
        ),
    ];
    // Jobs of one thread each are what a reader expects.
    let is_wide =
        |job: &Job| job.width_source == Width::Measured && job.width.is_some_and(|width| width > 1);
    if jobs.iter().any(is_wide) {
        let width = |job: &Job| {
            job.width
                .map_or_else(|| NONE.to_owned(), |width| width.to_string())
        };
        columns.push(column("WIDTH", true, 3, cells(&width)));
    }
    let estimates = jobs.iter().all(|job| job.slowdown.is_none())
        && jobs.iter().any(|job| job.slowdown_estimate.is_some());
    let slowdown = |job: &Job| match (job.slowdown, job.slowdown_estimate) {
        (Some(slowdown), _) => ratio(slowdown),
        (None, Some(estimate)) if estimates => format!("~{}", ratio(estimate)),
        _ => NONE.to_owned(),
    };
    columns.push(column("SLOWDOWN", true, 0, cells(&slowdown)));
    if shows_queued {
        columns.push(column(
            "QUEUED",
            true,
            2,
            cells(&|job| or_none(queued(job), |s| unit(job).show(s))),
        ));
    }
    columns.push(column(
        "WAITED",
        true,
        2,
        cells(&|job| or_none(job.waited_max_s, |s| unit(job).show(s))),
    ));
    if jobs.iter().any(|job| job.ipc.is_some()) {
        columns.push(column(
            "IPC",
            true,
            4,
            cells(&|job| or_none(job.ipc, ratio)),
        ));
    }
    // Progress by CPU time would only repeat the column before.
    let is_measured =
        |job: &Job| job.progress.is_some() && job.progress_basis != ProgressBasis::CpuTime;
    if jobs.iter().any(is_measured) {
        let progress = |job: &Job| {
            let about = if matches!(
                job.progress_basis,
                ProgressBasis::Ipc | ProgressBasis::Trace
            ) {
                ""
            } else {
                "~"
            };
            or_none(job.progress, |quanta| {
                format!("{about}{}", seconds(quanta * record.quantum_s))
            })
        };
        columns.push(column("PROGRESS", true, 5, cells(&progress)));
    }
    Jobs {
        columns,
        failed: jobs.iter().map(failed).collect(),
    }
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

    /// Least, median and greatest of the values that are not absent.
    fn spread(&self, value: impl Fn(&Job) -> Option<f64>) -> Option<(f64, f64, f64)> {
        let mut values: Vec<f64> = self.jobs.iter().filter_map(|job| value(job)).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        if n == 0 {
            return None;
        }
        Some((
            values[0],
            (values[(n - 1) / 2] + values[n / 2]) / 2.0,
            values[n - 1],
        ))
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
        let mut order: Vec<usize> = (0..groups.len()).collect();
        let weight = |group: &Group<'_>| (group.failed() > 0, group.longest());
        order.sort_by(|&a, &b| {
            let (a, b) = (weight(&groups[a]), weight(&groups[b]));
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
        let mut own = vec![false; groups.len()];
        order
            .iter()
            .take(MOST_GROUPS - 1)
            .for_each(|&ix| own[ix] = true);
        let mut rest = Group {
            name: String::new(),
            jobs: Vec::new(),
        };
        let mut kept = Vec::new();
        for (group, own) in groups.into_iter().zip(own) {
            if own {
                kept.push(group)
            } else {
                rest.jobs.extend(group.jobs)
            }
        }
        rest.name = format!("({} others)", grouped(rest.jobs.len() as u64));
        kept.push(rest);
        groups = kept;
    }
    for group in &mut groups {
        if let [only] = group.jobs[..] {
            group.name = visible(&only.name);
        }
    }
    groups
}

fn by_group(record: &Record) -> Jobs {
    let groups = groups(&record.jobs);
    let cells = |show: &dyn Fn(&Group<'_>) -> String| groups.iter().map(show).collect::<Vec<_>>();
    let value_of = |group: &Group<'_>, value: &dyn Fn(&Job) -> Option<f64>, which: usize| {
        group
            .spread(value)
            .map(|(least, median, greatest)| [least, median, greatest][which])
    };
    let ratios = |value: &dyn Fn(&Job) -> Option<f64>, which: usize| {
        cells(&|group| or_none(value_of(group, value, which), ratio))
    };
    let waited = |job: &Job| job.waited_max_s;
    let shows_queued = shows_queued(record);
    let queued = |job: &Job| queued(record, job).filter(|_| shows_queued);
    // All times of a row have one unit.
    let unit = |group: &Group<'_>| {
        let greatest = [
            value_of(group, &waited, 2),
            value_of(group, &queued, 2),
            Some(group.longest()),
        ];
        TimeUnit::of(greatest.into_iter().flatten())
    };
    let times = |value: &dyn Fn(&Job) -> Option<f64>, which: usize| {
        cells(&|group| or_none(value_of(group, value, which), |s| unit(group).show(s)))
    };
    let ok = |group: &Group<'_>| {
        group
            .jobs
            .iter()
            .filter(|job| job.exit == Some(0))
            .count()
            .to_string()
    };
    let mut columns = vec![
        column("JOB", false, 0, cells(&|group| group.name.clone())),
        column(
            "COUNT",
            true,
            0,
            cells(&|group| group.jobs.len().to_string()),
        ),
        column("OK", true, 0, cells(&ok)),
        column(
            "FAILED",
            true,
            0,
            cells(&|group| group.failed().to_string()),
        ),
        column("TIME MIN", true, 5, times(&time, 0)),
        column("TIME MED", true, 0, times(&time, 1)),
        column("TIME MAX", true, 0, times(&time, 2)),
        column("SLOWD MIN", true, 4, ratios(&|job| job.slowdown, 0)),
        column("SLOWD MED", true, 3, ratios(&|job| job.slowdown, 1)),
        column("SLOWD MAX", true, 3, ratios(&|job| job.slowdown, 2)),
    ];
    if shows_queued {
        columns.push(column("QUEUED MAX", true, 2, times(&queued, 2)));
    }
    columns.push(column("WAITED MAX", true, 2, times(&waited, 2)));
    Jobs {
        columns,
        failed: groups.iter().map(|group| group.failed() > 0).collect(),
    }
}

/// The jobs that failed, each with how it ended and its command; at most ten are named.
pub(super) fn failures(record: &Record, width: usize) -> Vec<String> {
    const MOST: usize = 10;
    let all: Vec<&Job> = record.jobs.iter().filter(|job| failed(job)).collect();
    let told = |job: &&Job| {
        let name = visible(&job.name);
        // A name that is the whole command says enough.
        let command = job
            .command
            .as_ref()
            .map(|command| visible(command))
            .filter(|command| *command != name);
        let command = command.map_or_else(String::new, |command| format!(": {command}"));
        clip(
            &format!("failed: {name} ({}){command}", exit_text(job)),
            width,
        )
    };
    let more = all.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("and {} more failed", grouped(more as u64)));
    all.iter().take(MOST).map(told).chain(more).collect()
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
