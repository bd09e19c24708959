//! A session of `cosched attach` of another terminal, or of a service.

use super::intervals::{IntervalSource, LiveView};
use super::take_screen;
use crate::live::known;
use anyhow::Result;
use cosched_linux::attached::sessions;
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, RunFate, ScreenSignals, fate_of};
use cosched_report::AttachedNow;
use std::process::ExitCode;
use std::time::Duration;

/// Time between two reads of the session's file.
const INTERVAL: Duration = Duration::from_millis(500);

/// The session that `name` means; without a name the only one, where no run is live.
pub fn chosen(root: &Root, name: Option<&str>) -> Option<LiveRun> {
    let mut all = sessions(root);
    match name {
        Some(name) => all.retain(|session| session.pid.to_string() == name),
        None if all.len() != 1 || !known(root).is_empty() => return None,
        None => {}
    }
    all.pop()
}

/// Shows a session on the whole screen.
///
/// # Errors
/// The terminal has gone.
pub fn watch(root: Root, session: LiveRun) -> Result<ExitCode> {
    let signals = ScreenSignals::hold()?;
    let mut screen = take_screen()?;
    let source = Elsewhere { root, session };
    let exit = LiveView::new(source, INTERVAL).run(&mut screen, &signals)?;
    Ok(exit.into())
}

/// A session of another process.
struct Elsewhere {
    root: Root,
    session: LiveRun,
}

impl IntervalSource for Elsewhere {
    fn next(&mut self) -> Option<AttachedNow> {
        if fate_of(&self.root, &self.session.run) == RunFate::Dead {
            return None;
        }
        let (text, _) = self.session.status().ok()?;
        serde_json::from_slice(&text).ok()
    }
}
