//! The columns of the table of jobs, and which of them there is room for.

use crate::style::of_state;
use cosched_report::{JobNow, JobState, bytes, seconds, visible};
use ratatui_core::style::Style;

/// A column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: u16,
    /// Whether cells are right-aligned, as numbers are.
    pub(crate) right: bool,
    /// Where there is not room for all, those with greater numbers are left out first; with 0 a column always stays.
    expendable: u8,
    pub(crate) cell: fn(&JobNow, f64) -> String,
    /// The figure that it tells; where no job has that, the column is left out.
    figure: Option<&'static str>,
}

/// The width of the first column, at least and at most.
const LEAST_NAME: u16 = 10;
const MOST_NAME: u16 = 28;
/// The least width of the last column, in which a job's reason to wait stands.
const LEAST_WHY: u16 = 16;
/// Spaces between columns.
pub(crate) const GAP: u16 = 2;
/// Shown in place of an absent value.
const NONE: &str = "-";

fn shown(job: &JobNow, name: &str, show: impl Fn(f64) -> String) -> String {
    job.figures
        .get(name)
        .map_or_else(|| NONE.to_owned(), |value| show(*value))
}

fn state(job: &JobNow, _: f64) -> String {
    match (job.state, job.exit, &job.exit_text) {
        (JobState::Ended, Some(0), _) => "done".to_owned(),
        (JobState::Ended, _, Some(exit)) => visible(exit.split(" (").next().unwrap_or(exit)),
        (state, ..) => state.text().to_owned(),
    }
}

fn bandwidth(job: &JobNow, _: f64) -> String {
    let written = job
        .figures
        .get("written_bytes_per_s")
        .copied()
        .unwrap_or(0.0);
    shown(job, "read_bytes_per_s", |read| {
        format!("{:.2}", (read + written) / 1e9)
    })
}

fn slowdown(job: &JobNow, _: f64) -> String {
    let bound = if job.progress_from.as_deref() == Some("cpu-time") {
        "≥"
    } else {
        ""
    };
    shown(job, "slowdown", |slowdown| match slowdown {
        s if s < 99.95 => format!("{bound}{s:.1}"),
        s => format!("{bound}{s:.0}"),
    })
}

/// For how long it has waited, and why.
fn why(job: &JobNow, now_s: f64) -> String {
    let since = job
        .figures
        .get("waiting_since_s")
        .map(|since| seconds((now_s - since).max(0.0)));
    let reason = job.reason.as_ref().map(|reason| reason.why.clone());
    match (since, reason) {
        (Some(since), Some(reason)) => format!("{since} {reason}"),
        (since, reason) => since.or(reason).unwrap_or_default(),
    }
}

const fn column(
    title: &'static str,
    width: u16,
    right: bool,
    expendable: u8,
    figure: Option<&'static str>,
    cell: fn(&JobNow, f64) -> String,
) -> Column {
    Column {
        title,
        width,
        right,
        expendable,
        cell,
        figure,
    }
}

const COLUMNS: &[Column] = &[
    column("JOB", LEAST_NAME, false, 0, None, |job, _| {
        visible(&job.name)
    }),
    column("STATE", 8, false, 0, None, state),
    column("CPU", 5, false, 5, None, |job, _| {
        job.cpus.clone().unwrap_or_else(|| NONE.to_owned())
    }),
    column("RAN", 8, true, 1, None, |job, _| {
        shown(job, "ran_s", seconds)
    }),
    column("CPU TIME", 8, true, 9, Some("cpu_s"), |job, _| {
        shown(job, "cpu_s", seconds)
    }),
    column("IPC", 4, true, 8, Some("ipc"), |job, _| {
        shown(job, "ipc", |ipc| format!("{ipc:.2}"))
    }),
    column("GB/s", 5, true, 7, Some("read_bytes_per_s"), bandwidth),
    column("DONE", 5, true, 2, Some("share"), |job, _| {
        job.share_text().unwrap_or_else(|| NONE.to_owned())
    }),
    column("SLOW", 5, true, 4, Some("slowdown"), slowdown),
    column("MEMORY", 7, true, 6, None, |job, _| {
        shown(job, "resident_bytes", bytes)
    }),
    column("LEFT", 7, true, 10, Some("left_s"), |job, _| {
        job.left_text().unwrap_or_else(|| NONE.to_owned())
    }),
    column("WAITS", LEAST_WHY, false, 3, None, why),
];

impl Column {
    /// Whether it has something to show of these jobs.
    fn is_known(&self, jobs: &[JobNow]) -> bool {
        self.figure
            .is_none_or(|name| jobs.iter().any(|job| job.figures.get(name).is_some()))
    }
}

fn total_width(columns: &[(&Column, u16)]) -> u16 {
    columns.iter().map(|(_, width)| width).sum::<u16>()
        + GAP * (columns.len() as u16).saturating_sub(1)
}

/// The columns that tell something of these jobs and fit a width, with their widths: what is left goes to the names, and then
/// to the reasons.
pub(crate) fn fitting(jobs: &[JobNow], width: u16) -> Vec<(&'static Column, u16)> {
    let told = COLUMNS.iter().filter(|column| column.is_known(jobs));
    let mut columns: Vec<(&Column, u16)> = told.map(|column| (column, column.width)).collect();
    while total_width(&columns) > width {
        let Some((place, _)) = columns
            .iter()
            .enumerate()
            .filter(|(_, (column, _))| column.expendable > 0)
            .max_by_key(|(_, (column, _))| column.expendable)
        else {
            break;
        };
        columns.remove(place);
    }
    let mut spare = width.saturating_sub(total_width(&columns));
    let more = spare.min(MOST_NAME - LEAST_NAME);
    columns[0].1 += more;
    spare -= more;
    if let Some(last) = columns
        .last_mut()
        .filter(|(column, _)| column.title == "WAITS")
    {
        last.1 += spare;
    }
    columns
}

/// The style of a cell.
pub(crate) fn style(column: &Column, job: &JobNow, has_colour: bool) -> Style {
    if column.title == "STATE" {
        of_state(job, has_colour)
    } else {
        Style::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_never_exceed_the_width_and_more_width_leaves_out_no_more() {
        let mut job = crate::tests::status().jobs.swap_remove(2);
        assert!(
            fitting(&[], 200).len() + 6 == COLUMNS.len(),
            "of no job nothing is known"
        );
        job.figures.push("written_bytes_per_s", Ok(1.0));
        let jobs = [job];
        let mut before = 0;
        for width in 20..200 {
            let columns = fitting(&jobs, width);
            let total = columns.iter().map(|(_, width)| width).sum::<u16>()
                + GAP * (columns.len() as u16 - 1);
            assert!(total <= width, "{width}");
            assert!(columns.len() >= before, "{width}");
            before = columns.len();
        }
        assert_eq!(before, COLUMNS.len());
    }
}
