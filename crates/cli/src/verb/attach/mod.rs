//! `cosched attach`: what programs that run already do, and who probably disturbs whom.

mod changes;
mod manage;
mod rules;
mod session;

use crate::exit::{OrUsage as _, usage};
use crate::print::print;
use crate::verb::run::{Format, duration};
use crate::verb::top::{IntervalSource, LiveView, is_dumb, take_screen};
use anyhow::Result;
use changes::Changes;
use clap::Args;
use cosched_core::Nanos;
use cosched_linux::PublishedState;
use cosched_linux::ScreenSignals;
use cosched_linux::attached::{Selection, publish};
use cosched_linux::root::Root;
use cosched_report::{AttachedNow, attached_text, visible_json};
use cosched_run::terminal_width;
use session::AttachSession;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Columns where the output is no terminal.
const WIDE: usize = 120;

/// Observe programs that run already
///
/// It shows which CPUs they use and wait for, and their memory, counters and pressure (PSI). It also shows which programs
/// probably disturb each other, with the measurements behind it. It changes nothing without --manage. On a terminal it fills
/// the screen. `cosched help observing` explains more.
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

    #[command(flatten)]
    how: manage::ManageArgs,

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
    let mut session = AttachSession::new(&root, &selections)?;
    let first = session.look();
    if first.subjects.is_empty() && args.rules.is_none() {
        return Err(nothing(&selections));
    }
    let output = Output::new(&root, args.once);
    if args.how.manage {
        return manage::run(args, session, output);
    }
    let mut observed = Observed::new(args, session, output);
    if observed.fills_screen() {
        let signals = ScreenSignals::hold()?;
        let mut screen = take_screen()?;
        let (interval, until) = (observed.interval(), observed.until());
        let view = LiveView::new(observed, interval).until(until);
        let exit = view.run(&mut screen, &signals)?;
        return Ok(exit.into());
    }
    observed.print_all()
}

impl AttachArgs {
    /// The programs that the options and the rules name, in this order.
    fn selections(&self) -> Result<Vec<Selection>> {
        let mut named = Vec::new();
        if !self.pid.is_empty() {
            named.push(Selection::Pids(self.pid.clone()));
        }
        named.extend(self.cgroup.iter().cloned().map(Selection::Cgroup));
        named.extend(self.unit.iter().cloned().map(Selection::Unit));
        named.extend(self.user.iter().cloned().map(Selection::User));
        named.extend(self.matching.iter().cloned().map(Selection::Match));
        if let Some(path) = &self.rules {
            let text = std::fs::read_to_string(path).or_usage_in(path.display())?;
            named.extend(rules::parse(&text).or_usage_in(path.display())?);
        }
        Ok(named)
    }
}

/// Where intervals are shown.
struct Output {
    /// Where others see them; `None` for a single interval, or where there is no folder for it.
    published: Option<PublishedState>,
    changes: Changes,
}

impl Output {
    fn new(root: &Root, once: bool) -> Output {
        // Without a folder the session works, and only other terminals don't see it.
        Output {
            published: (!once).then(|| publish(root).ok()).flatten(),
            changes: Changes::default(),
        }
    }

    fn publish(&self, now: &AttachedNow) {
        if let Some(published) = &self.published
            && let Ok(text) = serde_json::to_vec(now)
        {
            // What others see is then older.
            let _ = published.write(&text);
        }
    }

    fn print(&mut self, args: &AttachArgs, now: &AttachedNow) -> Result<()> {
        if args.log {
            print(self.changes.lines(now))?;
        } else {
            show(args, now)?;
        }
        Ok(())
    }
}

/// A session with its options, from its first look on.
struct Observed {
    args: AttachArgs,
    session: AttachSession,
    output: Output,
    started: Instant,
    is_over: bool,
}

impl Observed {
    fn new(args: AttachArgs, session: AttachSession, output: Output) -> Observed {
        Observed {
            args,
            session,
            output,
            started: Instant::now(),
            is_over: false,
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.args.interval.0)
    }

    fn fills_screen(&self) -> bool {
        let args = &self.args;
        let is_text = args.format == Format::Text && !args.once && !args.log;
        is_text && std::io::stdout().is_terminal() && !is_dumb()
    }

    /// Prints an interval after the other.
    fn print_all(&mut self) -> Result<ExitCode> {
        let interval = self.interval();
        let mut next = self.started;
        loop {
            next += interval;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            // After a suspension, the intervals that were missed are not made up for.
            next = next.max(Instant::now() - interval);
            let now = self.look();
            self.output.print(&self.args, &now)?;
            if self.is_over {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Takes the next interval.
    fn look(&mut self) -> AttachedNow {
        let now = self.session.look();
        self.output.publish(&now);
        let has_ended = self.args.rules.is_none() && !now.has_live();
        let is_late = self.until().is_some_and(|until| Instant::now() >= until);
        self.is_over = self.args.once || has_ended || is_late;
        now
    }

    /// When it ends at the latest.
    fn until(&self) -> Option<Instant> {
        let lasts = self.args.lasts?;
        self.started.checked_add(Duration::from_nanos(lasts.0))
    }
}

impl IntervalSource for Observed {
    fn next(&mut self) -> Option<AttachedNow> {
        (!self.is_over).then(|| self.look())
    }
}

fn show(args: &AttachArgs, now: &AttachedNow) -> Result<ExitCode> {
    if args.format == Format::Json {
        return print(visible_json(&serde_json::to_string(now)?) + "\n");
    }
    let width = terminal_width(std::io::stdout()).unwrap_or(WIDE);
    let mut text = attached_text(now, width, usize::MAX);
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
