//! `cosched thaw`: frees the processes that a killed run left frozen, and ends its jobs if asked.

use super::run::Format;
use crate::exit::Exit;
use clap::Args;
use cosched_linux::mend::{Reach, mend};
use cosched_linux::orphans::{Orphan, OrphanState, end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_report::visible;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How long jobs have to end by themselves before they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// Free the processes that a killed run left frozen or stopped
///
/// The guardian of a run does this at once; use this verb if both were killed. It touches only dead runs, and lists their
/// live jobs. It exits with 4 if the caller may not thaw a frozen group, or cannot see its run.
#[derive(Args, Debug)]
pub(crate) struct ThawArgs {
    /// End the live jobs of killed runs: SIGTERM, and SIGKILL after 5 seconds
    #[arg(long)]
    kill: bool,

    /// Only this run, as in COSCHED_RUN of its processes; repeatable
    #[arg(long, value_name = "RUN")]
    run: Vec<String>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub(crate) fn run(args: ThawArgs) -> anyhow::Result<ExitCode> {
    let root = Root::default();
    let reach = if args.run.is_empty() {
        Reach::Everywhere
    } else {
        Reach::Runs(args.run)
    };
    let mut mended = mend(&root, &reach);
    let (ended, left) = if args.kill {
        end_orphans(&root, &reach, GRACE)
    } else {
        (Vec::new(), orphans_within(&root, &reach))
    };
    if args.kill {
        // Their groups are empty now.
        let later = mend(&root, &reach);
        mended.groups.extend(
            later
                .groups
                .into_iter()
                .filter(|group| !mended.groups.contains(group))
                .collect::<Vec<_>>(),
        );
    }
    let asked: HashSet<(&str, &str)> = ended.iter().map(name).collect();
    let refused = |orphan: &Orphan| args.kill && !asked.contains(&name(orphan));
    let is_denied =
        !mended.denied.is_empty() || !mended.unknown_frozen.is_empty() || left.iter().any(refused);
    // Users choose the names of their jobs and groups.
    let shown = |group: &Path| visible(&group.display().to_string());
    let mut out = std::io::stdout();
    match args.format {
        Format::Json => {
            let texts = |paths: &[std::path::PathBuf]| -> Vec<String> {
                paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect()
            };
            let object = serde_json::json!({
                "groups": texts(&mended.groups), "continued": mended.continued, "denied": texts(&mended.denied),
                "unknown": texts(&mended.unknown), "unknown_frozen": texts(&mended.unknown_frozen),
                "unknown_runs": mended.unknown_runs, "ended": jobs(&ended), "orphans": jobs(&left),
            });
            writeln!(out, "{object}")?;
        }
        Format::Text => {
            for group in &mended.groups {
                let what = if group.exists() { "thawed" } else { "removed" };
                writeln!(out, "{what} {}", shown(group))?;
            }
            for pid in &mended.continued {
                writeln!(out, "continued process {pid}")?;
            }
            for group in &mended.denied {
                writeln!(
                    out,
                    "frozen, and may not be thawed by this user: {}",
                    shown(group)
                )?;
            }
            for group in &mended.unknown {
                let frozen = if mended.unknown_frozen.contains(group) {
                    "frozen, and "
                } else {
                    ""
                };
                writeln!(
                    out,
                    "{frozen}left alone, since its run can't be seen from here: {}",
                    shown(group)
                )?;
            }
            for run in &mended.unknown_runs {
                writeln!(
                    out,
                    "left alone, since it can't be seen from here: run {run}"
                )?;
            }
            let still: HashSet<(&str, &str)> = left.iter().map(name).collect();
            for orphan in ended.iter().filter(|orphan| !still.contains(&name(orphan))) {
                writeln!(out, "ended {}", words(orphan))?;
            }
            for orphan in &left {
                let what = match (refused(orphan), orphan.state) {
                    (true, _) => "may not be ended by this user",
                    (false, OrphanState::Runs) => "still runs",
                    (false, OrphanState::Frozen) => "still frozen",
                    (false, OrphanState::Stopped) => "still stopped",
                };
                writeln!(out, "{what}: {}", words(orphan))?;
            }
            if !left.is_empty() && !args.kill {
                writeln!(out, "`cosched thaw --kill` ends what is still there")?;
            }
            let quiet = mended.is_empty()
                && mended.denied.is_empty()
                && ended.is_empty()
                && left.is_empty();
            if quiet && mended.is_part() {
                writeln!(
                    out,
                    "nothing is frozen or stopped of a dead run that can be seen from here"
                )?;
            } else if quiet {
                writeln!(out, "nothing of a dead run is frozen or stopped")?;
            }
        }
    }
    Ok(match (is_denied, args.kill && !left.is_empty()) {
        (true, _) => Exit::Permission.into(),
        (false, true) => Exit::Failure.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// What tells an orphan from others.
fn name(orphan: &Orphan) -> (&str, &str) {
    (&orphan.run, &orphan.job)
}

/// A job that outlived its run, in words.
pub(crate) fn words(orphan: &Orphan) -> String {
    let name = if orphan.job.is_empty() {
        "a job".to_owned()
    } else {
        visible(&orphan.job)
    };
    let processes: Vec<String> = orphan
        .processes
        .iter()
        .take(8)
        .map(ToString::to_string)
        .collect();
    let more = if orphan.processes.len() > 8 {
        " and more"
    } else {
        ""
    };
    format!(
        "{name} of run {}, processes {}{more}",
        visible(&orphan.run),
        processes.join(" ")
    )
}

fn jobs(orphans: &[Orphan]) -> Vec<serde_json::Value> {
    let object = |orphan: &Orphan| {
        let group = orphan
            .group
            .as_ref()
            .map(|group| group.display().to_string());
        serde_json::json!({
            "job": orphan.job, "run": orphan.run, "processes": orphan.processes, "group": group,
            "state": orphan.state.text(),
        })
    };
    orphans.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_do_not_control_the_terminal() {
        let job = "w\u{1b}[2J\nthawed /etc".to_owned();
        let orphan = Orphan {
            job,
            run: "10-78-500".to_owned(),
            processes: vec![7],
            group: None,
            state: OrphanState::Runs,
        };
        assert_eq!(
            words(&orphan),
            r"w\x1b[2J\nthawed /etc of run 10-78-500, processes 7"
        );
    }
}
