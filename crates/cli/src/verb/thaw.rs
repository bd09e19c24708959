//! `cosched thaw`: frees the processes that a killed run left frozen, and ends its jobs if asked.
//!
//! Ending can't be undone, and root sees the jobs of all users. So only what was named is ended, or what the user was shown.

use super::run::Format;
use crate::exit::{Exit, Failure, usage};
use crate::print::print;
use crate::stderr;
use anyhow::Result;
use clap::Args;
use cosched_linux::mend::{Mended, Reach, mend};
use cosched_linux::orphans::{Orphan, OrphanState, end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_linux::{RunFate, fate_of, is_run_id};
use cosched_report::{count, visible};
use cosched_run::{ending_command, orphan_text};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long jobs have to end by themselves before they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// Free the processes that a killed run left frozen or stopped
///
/// The guardian of a run does this at once; use this verb if both were killed. It touches only dead runs, and lists their
/// live jobs. It exits with 4 if the caller may not thaw a frozen group.
#[derive(Args)]
pub struct ThawArgs {
    /// End the live jobs of killed runs: SIGTERM, and SIGKILL after 5 seconds. Without --run it lists them and asks
    #[arg(long)]
    kill: bool,

    /// Only this run, as in COSCHED_RUN of its processes; repeatable
    #[arg(long, value_name = "RUN", value_parser = identity)]
    run: Vec<String>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

/// Refuses what can't be the identity of a run.
fn identity(text: &str) -> Result<String, String> {
    if is_run_id(text) {
        Ok(text.to_owned())
    } else {
        Err("no identity of a run, as in 10-78-4026531836; `cosched thaw` alone is for all killed runs".to_owned())
    }
}

pub fn run(args: ThawArgs) -> Result<ExitCode> {
    let root = Root::default();
    let is_live = |run: &&String| fate_of(&root, run) == RunFate::Alive;
    if args.kill
        && let Some(live) = args.run.iter().find(is_live)
    {
        let pid = live.split('-').next().unwrap_or_default();
        return Err(usage(format!(
            "run {live} is live, and --kill ends only jobs of dead runs; nothing was ended; `kill -INT {pid}` ends it"
        )));
    }
    let is_named = !args.run.is_empty();
    let reach = if is_named {
        Reach::Runs(args.run, 0)
    } else {
        Reach::Everywhere
    };
    let thawed = Thawed::new(&root, &reach, args.kill && is_named);
    show(&thawed, args.format)?;
    if is_named || !args.kill || thawed.left.is_empty() {
        return Ok(thawed.exit());
    }
    let listed = Reach::Runs(thawed.runs(), 0);
    confirm(&thawed.left, args.format)?;
    let ended = Thawed::new(&root, &listed, true);
    show(&ended, args.format)?;
    Ok(ended.exit())
}

fn show(thawed: &Thawed, format: Format) -> Result<ExitCode> {
    match format {
        Format::Json => print(format!("{}\n", thawed.json())),
        Format::Text => print(thawed.text()),
    }
}

/// Asks whether these jobs, which were listed, are to be ended.
///
/// # Errors
/// The user says no, or nobody can be asked.
fn confirm(listed: &[Orphan], format: Format) -> Result<()> {
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !can_ask || format == Format::Json {
        let command = ending_command(listed);
        return Err(usage(format!(
            "--kill without --run asks on a terminal, and this is none; nothing was ended; `{command}` ends the listed jobs"
        )));
    }
    let jobs = count(listed.len() as u64, "job");
    stderr::write(&format!("cosched: end {jobs}? [y/N] "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    let message = "nothing was ended".to_owned();
    let exit = Exit::Failure;
    Err(Failure { exit, message }.into())
}

/// What was freed and ended, and what is left.
struct Thawed {
    mended: Mended,
    kill: bool,
    ended: Vec<Orphan>,
    left: Vec<Orphan>,
}

impl Thawed {
    fn new(root: &Root, reach: &Reach, kill: bool) -> Thawed {
        let mut mended = mend(root, reach);
        let mut ended = Vec::new();
        let mut left = Vec::new();
        if kill {
            (ended, left) = end_orphans(root, reach, GRACE);
            // The groups of the ended jobs are empty now.
            for group in mend(root, reach).groups {
                if !mended.groups.contains(&group) {
                    mended.groups.push(group);
                }
            }
        } else {
            left.extend(orphans_within(root, reach));
        }
        Thawed {
            mended,
            kill,
            ended,
            left,
        }
    }

    /// Whether this user may not end a job that is left.
    fn is_refused(&self, orphan: &Orphan) -> bool {
        self.kill && !self.ended.iter().any(|other| name(other) == name(orphan))
    }

    /// The runs whose jobs are left.
    fn runs(&self) -> Vec<String> {
        self.left.iter().map(|orphan| orphan.run.clone()).collect()
    }

    fn is_left(&self, orphan: &Orphan) -> bool {
        self.left.iter().any(|other| name(other) == name(orphan))
    }

    fn exit(&self) -> ExitCode {
        let is_denied = !self.mended.denied.is_empty()
            || self.left.iter().any(|orphan| self.is_refused(orphan));
        if is_denied {
            Exit::Permission.into()
        } else if self.kill && !self.left.is_empty() {
            Exit::Failure.into()
        } else {
            ExitCode::SUCCESS
        }
    }

    fn json(&self) -> serde_json::Value {
        let mended = &self.mended;
        serde_json::json!({
            "groups": paths(&mended.groups),
            "continued": mended.continued,
            "denied": paths(&mended.denied),
            "unknown": paths(&mended.unknown),
            "unknown_frozen": paths(&mended.unknown_frozen),
            "unbound": mended.attached.threads,
            "ended": jobs(&self.ended),
            "orphans": jobs(&self.left),
        })
    }

    fn text(&self) -> String {
        let mut lines = groups_text(&self.mended);
        for orphan in self.ended.iter().filter(|orphan| !self.is_left(orphan)) {
            lines.push(format!("ended {}", orphan_text(orphan)));
        }
        for orphan in &self.left {
            let what = match orphan.state {
                _ if self.is_refused(orphan) => "may not be ended by this user",
                OrphanState::Runs => "still runs",
                OrphanState::Frozen => "still frozen",
                OrphanState::Stopped => "still stopped",
            };
            lines.push(format!("{what}: {}", orphan_text(orphan)));
        }
        if !self.left.is_empty() && !self.kill {
            let command = ending_command(&self.left);
            lines.push(format!("`{command}` ends what is still there"));
        }
        let mended = &self.mended;
        if mended.is_empty()
            && mended.denied.is_empty()
            && self.ended.is_empty()
            && self.left.is_empty()
        {
            let seen = if mended.unknown.is_empty() {
                ""
            } else {
                " that can be seen from here"
            };
            lines.push(format!("nothing is frozen or stopped of a dead run{seen}"));
        }
        lines.join("\n") + "\n"
    }
}

/// A line for each group, process and run.
fn groups_text(mended: &Mended) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &mended.groups {
        let what = if group.exists() { "thawed" } else { "removed" };
        lines.push(format!("{what} {}", shown(group)));
    }
    for pid in &mended.continued {
        lines.push(format!("continued process {pid}"));
    }
    for tid in &mended.attached.threads {
        lines.push(format!("gave thread {tid} its CPUs back"));
    }
    for tid in &mended.attached.changed {
        lines.push(format!(
            "left thread {tid} as somebody else has bound it since"
        ));
    }
    for tid in &mended.attached.refused {
        lines.push(format!("thread {tid} may not be bound by this user"));
    }
    for group in &mended.attached.thawed {
        lines.push(format!("thawed {}", shown(group)));
    }
    for group in &mended.attached.frozen {
        let group = shown(group);
        lines.push(format!(
            "frozen, and may not be thawed by this user: {group}"
        ));
    }
    for group in &mended.denied {
        let group = shown(group);
        lines.push(format!(
            "frozen, and may not be thawed by this user: {group}"
        ));
    }
    for group in &mended.unknown {
        let frozen = if mended.unknown_frozen.contains(group) {
            "frozen, and "
        } else {
            ""
        };
        let group = shown(group);
        lines.push(format!(
            "{frozen}left alone, since its run can't be seen from here: {group}"
        ));
    }
    lines
}

/// A path without control characters: users choose the names of their jobs and groups.
fn shown(group: &Path) -> String {
    visible(&group.display().to_string())
}

fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

/// What tells an orphan from others.
fn name(orphan: &Orphan) -> (&str, &str) {
    (&orphan.run, &orphan.job)
}

fn jobs(orphans: &[Orphan]) -> Vec<serde_json::Value> {
    let mut objects = Vec::new();
    for orphan in orphans {
        let group = orphan.group.as_ref();
        objects.push(serde_json::json!({
            "job": orphan.job,
            "run": orphan.run,
            "user": orphan.user,
            "has_reaper": orphan.has_reaper,
            "processes": orphan.processes,
            "group": group.map(|group| group.display().to_string()),
            "state": orphan.state.text(),
        }));
    }
    objects
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
            user: 4_000_000_000,
            has_reaper: true,
            processes: vec![7],
            group: None,
            state: OrphanState::Runs,
        };
        assert_eq!(
            orphan_text(&orphan),
            "w\\x1b[2J\\nthawed /etc of run 10-78-500, processes 7, of user 4000000000; the next `cosched serve` takes it over"
        );
    }
}
