//! `cosched attach`: what programs that run already do, and who probably disturbs whom.

mod changes;
mod rules;
mod session;

use crate::exit::{OrUsage as _, usage};
use crate::print::print;
use crate::verb::run::{Format, duration};
use anyhow::Result;
use changes::Changes;
use clap::Args;
use cosched_core::Nanos;
use cosched_linux::attached::Selection;
use cosched_linux::root::Root;
use cosched_report::{AttachedNow, attached_text, visible_json};
use cosched_run::terminal_width;
use session::Session;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Columns where the output is no terminal.
const WIDE: usize = 120;

/// Observe programs that run already
///
/// It shows which CPUs they use and wait for, their memory, counters and pressure (PSI), and who probably disturbs whom, with
/// the measurements behind it. Nothing is changed. On a terminal it fills the screen; `cosched man attach` explains more.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct AttachArgs {
    /// Processes, each with its descendants
    #[arg(long, value_name = "PID,...", value_delimiter = ',', group = "what")]
    pid: Vec<i32>,

    /// A cgroup with everything below it
    #[arg(long, value_name = "PATH", group = "what")]
    cgroup: Vec<String>,

    /// Units of systemd, as in `nginx` or `postgresql*.service`
    #[arg(long, value_name = "NAME", group = "what")]
    unit: Vec<String>,

    /// All processes of a user, one row for each process group
    #[arg(long, value_name = "NAME", group = "what")]
    user: Vec<String>,

    /// Processes whose command line contains PATTERN, with their descendants; `*` is any text
    #[arg(long = "match", value_name = "PATTERN", group = "what")]
    matching: Vec<String>,

    /// Rules in TOML that name programs, which may start later
    #[arg(long, value_name = "FILE", group = "what")]
    rules: Option<PathBuf>,

    /// Show one interval and leave
    #[arg(long)]
    once: bool,

    /// Length of an interval
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    interval: Nanos,

    /// Leave after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, conflicts_with = "once")]
    lasts: Option<Nanos>,

    /// Print only changes: what ends, and disturbances that begin and end
    #[arg(long, conflicts_with_all = ["once", "format"])]
    log: bool,

    /// Output format; JSON is an object for each interval, a line each
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: AttachArgs) -> Result<ExitCode> {
    let root = Root::default();
    let selections = args.selections()?;
    let mut session = Session::new(&root, &selections)?;
    let first = session.look();
    if first.subjects.is_empty() && args.rules.is_none() {
        return Err(nothing(&selections));
    }
    observe(&args, &mut session)
}

impl AttachArgs {
    /// The programs that the options and the rules name, in this order.
    fn selections(&self) -> Result<Vec<Selection>> {
        let mut all = Vec::new();
        if !self.pid.is_empty() {
            all.push(Selection::Pids(self.pid.clone()));
        }
        all.extend(self.cgroup.iter().cloned().map(Selection::Cgroup));
        all.extend(self.unit.iter().cloned().map(Selection::Unit));
        all.extend(self.user.iter().cloned().map(Selection::User));
        all.extend(self.matching.iter().cloned().map(Selection::Match));
        if let Some(path) = &self.rules {
            let text = std::fs::read_to_string(path).or_usage_in(path.display())?;
            let rules = rules::parse(&text).or_usage_in(path.display())?;
            all.extend(rules.into_iter().map(|rule| rule.selection));
        }
        Ok(all)
    }

    /// Whether it ends after this interval.
    fn ends(&self, started: Instant, now: &AttachedNow) -> bool {
        let lasts = self.lasts.map(|lasts| Duration::from_nanos(lasts.0));
        let is_over = lasts.is_some_and(|lasts| started.elapsed() >= lasts);
        let has_ended = self.rules.is_none() && !now.has_live();
        self.once || is_over || has_ended
    }
}

/// Observes an interval after the other.
fn observe(args: &AttachArgs, session: &mut Session) -> Result<ExitCode> {
    let interval = Duration::from_nanos(args.interval.0);
    let started = Instant::now();
    let mut changes = Changes::default();
    let mut next = started;
    loop {
        next += interval;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // After a suspension, the intervals that were missed are not made up for.
        next = next.max(Instant::now() - interval);
        let now = session.look();
        if args.log {
            print(changes.lines(&now))?;
        } else {
            show(args, &now)?;
        }
        if args.ends(started, &now) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn show(args: &AttachArgs, now: &AttachedNow) -> Result<ExitCode> {
    if args.format == Format::Json {
        return print(visible_json(&serde_json::to_string(now)?) + "\n");
    }
    let width = terminal_width(std::io::stdout()).unwrap_or(WIDE);
    let mut text = attached_text(now, width);
    if !args.once {
        text.push('\n');
    }
    print(text)
}

/// Nothing fits what was asked for.
fn nothing(selections: &[Selection]) -> anyhow::Error {
    let words: Vec<String> = selections.iter().map(Selection::to_string).collect();
    usage(format!(
        "no process fits {}; `ps -e -o pid,user,args` lists processes, `systemctl list-units` units",
        words.join(" ")
    ))
}
