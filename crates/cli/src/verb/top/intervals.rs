//! Attached programs on the whole screen, one interval after the other.

use super::app::{Came, suspend, take_signals, wait};
use super::terminal::TopTerminal;
use crate::exit::Exit;
use cosched_linux::ScreenSignals;
use cosched_report::{AttachedNow, attached_text};
use cosched_top::keys::Keys;
use cosched_top::{KeyEffect, draw_lines, lines_on, pressed};
use std::io;
use std::time::{Duration, Instant};

/// Where intervals come from.
pub trait IntervalSource {
    /// The next interval; `None` if there are no more.
    fn next(&mut self) -> Option<AttachedNow>;
}

/// The screen.
pub struct LiveView<S> {
    source: S,
    interval: Duration,
    /// When it leaves by itself.
    until: Option<Instant>,
    /// The latest interval; `None` before the first.
    now: Option<AttachedNow>,
    has_ended: bool,
    keys: Keys,
}

impl<S: IntervalSource> LiveView<S> {
    /// A screen that asks for an interval this often.
    pub fn new(source: S, interval: Duration) -> LiveView<S> {
        LiveView {
            source,
            interval,
            until: None,
            now: None,
            has_ended: false,
            keys: Keys::default(),
        }
    }

    /// Leaves by itself at an instant.
    pub fn until(mut self, until: Option<Instant>) -> LiveView<S> {
        self.until = until;
        self
    }

    /// Shows intervals until the user leaves, or a signal says so.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn run(mut self, screen: &mut TopTerminal, signals: &ScreenSignals) -> io::Result<Exit> {
        let mut next = Instant::now() + self.interval;
        loop {
            self.show(screen)?;
            let came = wait(screen, signals, &self.keys, self.timeout(next))?;
            screen.send()?;
            if came.signals
                && let Some(exit) = take_signals(screen, signals)?
            {
                return Ok(exit);
            }
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            if is_over || self.press(&came, screen, signals)? {
                return Ok(Exit::Success);
            }
            if !self.has_ended && Instant::now() >= next {
                next = Instant::now() + self.interval;
                self.take_next();
            }
        }
    }

    /// The time until the next interval, or the end.
    fn timeout(&self, next: Instant) -> Option<Duration> {
        let next = (!self.has_ended).then_some(next);
        let first = [next, self.until].into_iter().flatten().min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    fn take_next(&mut self) {
        match self.source.next() {
            None => self.has_ended = true,
            now => self.now = now,
        }
    }

    /// Handles the pressed keys; returns whether the user leaves.
    fn press(
        &mut self,
        came: &Came,
        screen: &mut TopTerminal,
        signals: &ScreenSignals,
    ) -> io::Result<bool> {
        for key in came.typed(screen, &mut self.keys)? {
            match pressed(key) {
                KeyEffect::Quit => return Ok(true),
                KeyEffect::Suspend => suspend(screen, signals)?,
                KeyEffect::Redraw => screen.forget(),
                KeyEffect::End(_) | KeyEffect::None => {}
            }
        }
        Ok(false)
    }

    fn show(&mut self, screen: &mut TopTerminal) -> io::Result<()> {
        if screen.is_behind() {
            return Ok(());
        }
        let message = match &self.now {
            _ if self.has_ended => "ALL THAT WAS ATTACHED HAS ENDED",
            None => "the first interval is being measured",
            Some(_) => "attached",
        };
        let (width, height) = screen.size();
        let text = self.now.as_ref().map_or_else(String::new, |now| {
            attached_text(now, width.into(), lines_on(height))
        });
        screen.show(|buffer| draw_lines(buffer, message, &text))
    }
}
