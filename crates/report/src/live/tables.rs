//! Runs that go on, and the jobs of one of them, in words: what `cosched status` prints.

use super::{JobNow, JobState, Status};
use crate::table::{Column, lines};
use crate::text::{bytes, clip, clock, count, seconds, visible, wrap};

/// Shown in place of an absent value.
const NONE: &str = "-";
/// More jobs than these are not shown.
const MOST_ROWS: usize = 60;
/// More reasons to wait than these are not shown.
const MOST_REASONS: usize = 10;
/// An older state is told to be so.
const OLD_S: f64 = 2.0;

/// A run that goes on.
#[derive(Clone, Debug)]
pub struct RunLine {
    /// Its process.
    pub pid: i32,
    /// Its state, and how old that is in seconds; or why there is none.
    pub status: Result<(Box<Status>, f64), String>,
}

fn column(title: &'static str, right: bool, expendable: u8, cells: Vec<String>) -> Column {
    Column {
        title: title.into(),
        right,
        expendable,
        cells,
    }
}

/// A line for each run, and below them why others have none.
pub fn runs_text(runs: &[RunLine], width: usize) -> String {
    let known: Vec<(&RunLine, &Status, f64)> = runs
        .iter()
        .filter_map(|run| {
            run.status
                .as_ref()
                .ok()
                .map(|(status, age_s)| (run, &**status, *age_s))
        })
        .collect();
    let cells = |cell: &dyn Fn(&Status) -> String| {
        known.iter().map(|(_, status, _)| cell(status)).collect()
    };
    let mut text = String::new();
    if !known.is_empty() {
        let columns = vec![
            column(
                "RUN",
                false,
                0,
                known.iter().map(|(run, ..)| run.pid.to_string()).collect(),
            ),
            column(
                "POLICY",
                false,
                2,
                cells(&|status| status.run.policy.clone()),
            ),
            column(
                "DONE",
                true,
                0,
                cells(&|status| format!("{}/{}", status.totals.done, status.totals.jobs)),
            ),
            column(
                "FAILED",
                true,
                5,
                cells(&|status| status.totals.failed.to_string()),
            ),
            column(
                "RUNNING",
                true,
                4,
                cells(&|status| status.totals.running.to_string()),
            ),
            column(
                "WAITING",
                true,
                6,
                cells(&|status| status.totals.waiting.to_string()),
            ),
            column("ELAPSED", true, 3, cells(&|status| clock(status.elapsed_s))),
            column(
                "LEFT",
                true,
                0,
                cells(&|status| status.totals.left_s.map_or("--:--".to_owned(), clock)),
            ),
            column(
                "FOLDER",
                false,
                1,
                cells(&|status| {
                    status
                        .run
                        .folder
                        .as_deref()
                        .map_or(NONE.to_owned(), visible)
                }),
            ),
        ];
        lines(columns, width)
            .iter()
            .for_each(|line| text.push_str(&format!("{line}\n")));
    }
    for (run, _, age_s) in known.iter().filter(|(.., age_s)| *age_s > OLD_S) {
        text.push_str(&format!(
            "{}: this was {} ago, and it has not answered since\n",
            run.pid,
            seconds(*age_s)
        ));
    }
    for run in runs {
        if let Err(why) = &run.status {
            text.push_str(&format!("{}: {}\n", run.pid, visible(why)));
        }
    }
    text
}

/// The state of a run: its totals, its CPUs, its jobs, and why they wait.
pub fn jobs_text(status: &Status, age_s: f64, width: usize) -> String {
    let Status { run, totals, .. } = status;
    let mut text = format!(
        "run {} of process {}: {}{} on CPUs {} of {}\n",
        run.run_id,
        run.pid,
        run.policy,
        if run.phase == "alone" {
            ", each job alone first,"
        } else {
            ""
        },
        run.cpus,
        visible(&run.machine)
    );
    let left = totals
        .left_text()
        .unwrap_or_else(|| "time left not known yet".to_owned());
    let old = if age_s > OLD_S {
        format!(" ({} ago; it has not answered since)", seconds(age_s))
    } else {
        String::new()
    };
    text.push_str(&format!(
        "{} elapsed, {left}{old}\n",
        clock(status.elapsed_s)
    ));
    text.push_str(&format!("{}\n", totals_text(status)));
    if let Some(folder) = &run.folder {
        text.push_str(&format!("logs in {}\n", visible(folder)));
    }
    if let Some(joules) = status.energy.joules {
        text.push_str(&format!("energy so far {joules:.0} J\n"));
    }
    if let (Some(cpu_s), Some(share)) = (
        status.own.figures.get("cpu_s"),
        status.own.figures.get("cpu_share"),
    ) {
        text.push_str(&format!(
            "cosched itself: {} of CPU time, {:.2} % of a CPU\n",
            seconds(*cpu_s),
            share * 100.0
        ));
    }
    text.push_str(&format!("{}\n", cpus_text(status, width)));
    let shown: Vec<&JobNow> = status.jobs.iter().take(MOST_ROWS).collect();
    if !shown.is_empty() {
        text.push('\n');
        table(&shown, width)
            .iter()
            .for_each(|line| text.push_str(&format!("{line}\n")));
    }
    let left_out = status.left_out;
    let more = status.jobs.len() - shown.len() + left_out.live + left_out.queued + left_out.ended;
    if more > 0 {
        text.push_str(&format!(
            "and {} more (--format json has {})\n",
            count(more as u64, "job"),
            status.jobs.len()
        ));
    }
    let reasons: Vec<String> = status
        .jobs
        .iter()
        .filter_map(|job| reason(job, status.elapsed_s))
        .collect();
    if !reasons.is_empty() {
        text.push('\n');
    }
    for line in reasons
        .iter()
        .take(MOST_REASONS)
        .flat_map(|reason| wrap(reason, width))
    {
        text.push_str(&format!("{line}\n"));
    }
    if reasons.len() > MOST_REASONS {
        text.push_str(&format!(
            "and {} more that wait\n",
            count((reasons.len() - MOST_REASONS) as u64, "job")
        ));
    }
    text
}

/// How many jobs do what.
fn totals_text(status: &Status) -> String {
    let totals = &status.totals;
    let mut parts = vec![format!(
        "{} of {} done",
        totals.done,
        count(totals.jobs as u64, "job")
    )];
    for (number, what) in [
        (totals.failed, "failed"),
        (totals.running, "running"),
        (totals.waiting, "waiting"),
        (totals.sleeping, "sleeping"),
        (totals.ending, "to end"),
        (totals.queued, "queued"),
        (totals.dropped, "not to be started"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    let mut text = parts.join(", ");
    if totals.earlier > 0 {
        text.push_str(&format!(
            "; {} by earlier runs",
            count(totals.earlier as u64, "job")
        ));
    }
    text
}

/// Who has which CPU, as far as that fits a line.
fn cpus_text(status: &Status, width: usize) -> String {
    let mut parts = Vec::new();
    for cpu in &status.cpus {
        let who = match cpu.job {
            Some(job) => status
                .job(job)
                .map_or_else(|| format!("job {job}"), |row| visible(&row.name)),
            None if cpu.shared => format!("shared by {}", count(cpu.jobs.into(), "job")),
            None if cpu.jobs > 0 => "lent".to_owned(),
            None => "idle".to_owned(),
        };
        parts.push(format!("{} {who}", cpu.cpu));
    }
    clip(&format!("CPUs: {}", parts.join(", ")), width)
}

fn table(jobs: &[&JobNow], width: usize) -> Vec<String> {
    let figure = |name: &'static str, show: fn(f64) -> String| -> Vec<String> {
        jobs.iter()
            .map(|job| {
                job.figures
                    .get(name)
                    .map_or(NONE.to_owned(), |value| show(*value))
            })
            .collect()
    };
    let all = |cell: &dyn Fn(&JobNow) -> String| {
        jobs.iter().map(|job| cell(job)).collect::<Vec<String>>()
    };
    let none = || NONE.to_owned();
    let bandwidth = |job: &JobNow| {
        let get = |name| job.figures.get(name).copied();
        get("read_bytes_per_s").map(|read| read + get("written_bytes_per_s").unwrap_or(0.0))
    };
    let columns = vec![
        column("JOB", false, 0, all(&|job| visible(&job.name))),
        column("STATE", false, 0, all(&state_text)),
        column(
            "CPU",
            false,
            6,
            all(&|job| job.cpus.clone().unwrap_or_else(|| NONE.to_owned())),
        ),
        column("RAN", true, 1, figure("ran_s", seconds)),
        column("CPU TIME", true, 5, figure("cpu_s", seconds)),
        column("IPC", true, 8, figure("ipc", |ipc| format!("{ipc:.2}"))),
        column(
            "GB/s",
            true,
            7,
            all(&|job| bandwidth(job).map_or(NONE.to_owned(), |b| format!("{:.2}", b / 1e9))),
        ),
        column(
            "DONE",
            true,
            2,
            all(&|job| job.share_text().unwrap_or_else(none)),
        ),
        column("SLOWDOWN", true, 4, all(&slowdown_text)),
        column("MEMORY", true, 3, figure("resident_bytes", bytes)),
        column(
            "LEFT",
            true,
            2,
            all(&|job| job.left_text().unwrap_or_else(none)),
        ),
    ];
    // A column in which nothing is known tells nothing.
    let told = columns
        .into_iter()
        .filter(|column| column.cells.iter().any(|cell| cell != NONE))
        .collect();
    lines(told, width)
}

/// How much a job is slowed down. By CPU time alone only its time without a place is known, so that it can be more.
fn slowdown_text(job: &JobNow) -> String {
    let bound = if job.progress_from.as_deref() == Some("cpu-time") {
        "≥"
    } else {
        ""
    };
    job.figures
        .get("slowdown")
        .map_or(NONE.to_owned(), |slowdown| format!("{bound}{slowdown:.2}"))
}

/// What a job does; of one that has ended, how.
fn state_text(job: &JobNow) -> String {
    match (job.state, &job.exit_text) {
        (JobState::Ended, Some(exit)) => clip(&visible(exit), 24),
        (state, _) => state.text().to_owned(),
    }
}

/// Why a job waits, for how long, and when its turn comes at the latest.
fn reason(job: &JobNow, now_s: f64) -> Option<String> {
    let reason = job.reason.as_ref()?;
    let since = job
        .figures
        .get("waiting_since_s")
        .map(|since| format!(" for {}", seconds((now_s - since).max(0.0))));
    let latest = job
        .figures
        .get("latest_s")
        .map(|latest| match latest - now_s {
            left if left > 0.0 => format!(
                " In {} at the latest it comes before all others.",
                seconds(left)
            ),
            _ => " It comes before all others now.".to_owned(),
        });
    let name = visible(&job.name);
    Some(format!(
        "{name} waits{}: {}{}",
        since.unwrap_or_default(),
        reason.text,
        latest.unwrap_or_default()
    ))
}
