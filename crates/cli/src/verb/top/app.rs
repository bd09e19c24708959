//! Looks at a run in intervals, and shows it.

use super::LEFT;
use super::terminal::Screen;
use crate::exit::Exit;
use crate::live::{Answer, Client, add_memory, connect};
use cosched_linux::root::Root;
use cosched_linux::{Fate, ScreenSignal, ScreenSignals, fate_of};
use cosched_report::{Record, RunLine, Status, headline_text};
use cosched_run::Request;
use cosched_top::keys::{Key, Keys};
use cosched_top::{Choice, Effect, Reasons, Scene, View, draw, draw_choice, page, rows, shown};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// What follows an escape character later is not of the same key.
const ESCAPE: Duration = Duration::from_millis(50);
/// Time between two tries to reach a run again.
const AGAIN: Duration = Duration::from_secs(1);

/// A run that is looked at.
pub(super) struct App {
    root: Root,
    interval: Duration,
    status: Box<Status>,
    /// When the state was made.
    made: Instant,
    client: Option<Client>,
    /// When the run is asked, or tried to be reached, next.
    next: Instant,
    /// It was asked and has not answered.
    is_waiting: bool,
    /// What the user is to know of it.
    told: Option<String>,
    has_ended: bool,
    view: View,
    rows: Vec<usize>,
    reasons: Reasons,
    keys: Keys,
}

/// What came while nothing was to be done.
struct Came {
    signals: bool,
    keys: bool,
    client: bool,
}

impl App {
    pub(super) fn new(root: Root, status: Box<Status>, age_s: f64, interval: Duration) -> App {
        let now = Instant::now();
        let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut app = App {
            root,
            interval,
            made: now
                .checked_sub(Duration::from_secs_f64(age_s))
                .unwrap_or(now),
            status: Box::new(status.made_visible()),
            client: None,
            next: now,
            is_waiting: false,
            told: None,
            has_ended: false,
            view: View::new(has_colour),
            rows: Vec::new(),
            reasons: Reasons::default(),
            keys: Keys::default(),
        };
        app.reasons.note(&app.status);
        app
    }

    /// Shows the run until the user leaves, or a signal says so. `typed` are keys that were pressed before there was a run.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(super) fn run(
        mut self,
        screen: &mut Screen,
        signals: &ScreenSignals,
        typed: Vec<Key>,
    ) -> io::Result<Exit> {
        let (mut is_new, mut typed) = (true, typed);
        loop {
            let now = Instant::now();
            if !self.has_ended && now >= self.next {
                is_new |= self.look(now);
            }
            // What is known by now is shown before the wait, which can be for ever.
            if is_new && !screen.is_behind() {
                self.show(screen)?;
                is_new = false;
            }
            let came = self.wait(screen, signals, now)?;
            if screen.is_behind() {
                screen.send()?;
            }
            if came.signals {
                for signal in signals.take() {
                    match signal {
                        ScreenSignal::Leave(signal) => return Ok(Exit::Signal(signal)),
                        ScreenSignal::Suspend => suspend(screen, signals)?,
                        ScreenSignal::Continued => screen.enter()?,
                        ScreenSignal::Resized => screen.forget(),
                    }
                    is_new = true;
                }
            }
            if came.keys {
                typed.extend(self.keys.feed(&screen.pressed()?));
            } else {
                typed.extend(self.keys.settle());
            }
            for key in typed.drain(..) {
                // A key is about what the one before it has led to, also where that was not seen yet.
                let page = self.arrange(screen.size());
                match self.view.press(key, &self.status, &self.rows, page) {
                    Effect::Quit => return Ok(LEFT),
                    Effect::Suspend => suspend(screen, signals)?,
                    Effect::Redraw => screen.forget(),
                    Effect::End(job) => self.end(job),
                    Effect::None => {}
                }
                is_new = true;
            }
            if came.client {
                is_new |= self.hear(screen);
            }
        }
    }

    /// Waits until something comes, or something is to be done.
    fn wait(&self, screen: &Screen, signals: &ScreenSignals, now: Instant) -> io::Result<Came> {
        let escape = self.keys.is_waiting().then_some(ESCAPE);
        let next = (!self.has_ended).then(|| self.next.saturating_duration_since(now));
        let timeout = [escape, next].into_iter().flatten().min();
        let timeout = timeout.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        let out = if screen.is_behind() {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(screen, PollFlags::IN | out),
        ];
        fds.extend(
            self.client
                .as_ref()
                .map(|client| PollFd::new(client, PollFlags::IN)),
        );
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came: Vec<PollFlags> = fds.iter().map(|fd| fd.revents()).collect();
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(Came {
            signals: came[0].intersects(PollFlags::IN),
            keys: came[1].intersects(readable),
            client: came.get(2).is_some_and(|came| came.intersects(readable)),
        })
    }

    /// Asks the run for its state, or tries to reach it. Returns whether there is something new to be seen.
    fn look(&mut self, now: Instant) -> bool {
        self.next = now + self.interval;
        if self.view.is_paused {
            return false;
        }
        if self.client.is_none() {
            match connect(&self.root, &self.status.run.run_id) {
                Ok(Some(client)) => self.client = Some(client),
                Ok(None) => return self.lost(now),
                Err(error) => {
                    self.told = Some(format!("THE RUN CAN'T BE REACHED: {error}"));
                    self.next = now + AGAIN;
                    return true;
                }
            }
        }
        if let Some(client) = self.client.as_mut().filter(|_| !self.is_waiting) {
            self.is_waiting = client.ask(&Request::Status).is_ok();
        }
        // While it does not answer the age of what is seen goes on.
        self.is_waiting
    }

    /// Takes what the run answers.
    fn hear(&mut self, screen: &Screen) -> bool {
        let mut is_new = false;
        // Several answers can come at once.
        while let Some(client) = &mut self.client {
            match client.take() {
                Ok(None) => break,
                // What was done is seen in the next state.
                Ok(Some(Answer::Done)) => self.next = Instant::now(),
                Ok(Some(Answer::Status(status, age_s))) => {
                    self.is_waiting = false;
                    if !self.view.is_paused {
                        self.take(status, age_s, screen);
                        is_new = true;
                    }
                }
                Ok(Some(Answer::Absent(why))) => {
                    (self.is_waiting, self.told, is_new) = (false, Some(why), true);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.told = Some(error.to_string());
                    (self.client, self.is_waiting, is_new) = (None, false, true);
                }
                Err(_) => is_new = self.lost(Instant::now()),
            }
        }
        is_new
    }

    /// Has a job ended.
    fn end(&mut self, job: u32) {
        let name = self.status.job(job).map(|job| job.name.clone());
        let asked = name
            .zip(self.client.as_mut())
            .map(|(name, client)| client.ask(&Request::End { job, name }));
        if !matches!(asked, Some(Ok(()))) {
            self.told = Some("THE RUN CAN'T BE REACHED".to_owned());
        }
    }

    fn take(&mut self, status: Box<Status>, age_s: f64, screen: &Screen) {
        let mut status = Box::new(status.made_visible());
        self.reasons.note(&status);
        // The rows that are seen now are nearly always those that will be.
        let (width, height) = screen.size();
        let page = page(width, height, &status, &self.view);
        let rows = rows(&status, self.view.sort, &self.view.filter);
        let seen = shown(&status, &self.view, &rows, page);
        let by_memory = self.view.sort == cosched_top::Sort::Memory;
        add_memory(&self.root, &mut status, |job| {
            by_memory || seen.contains(&job)
        });
        self.made = Instant::now()
            .checked_sub(Duration::from_secs_f64(age_s))
            .unwrap_or(self.made);
        self.status = status;
        self.told = None;
    }

    /// The connection has ended: with the run, or for another reason.
    fn lost(&mut self, now: Instant) -> bool {
        self.client = None;
        self.is_waiting = false;
        self.next = now + AGAIN;
        if fate_of(&self.root, &self.status.run.run_id) == Fate::Dead {
            self.has_ended = true;
            self.status.totals.left_s = None;
            let (told, record) = end_of(&self.status);
            record
                .into_iter()
                .for_each(|record| self.status.over(&record));
            self.told = Some(told);
        } else {
            self.told = Some("THE RUN ENDS, OR CAN'T BE REACHED".to_owned());
        }
        true
    }

    /// Brings the rows and what is chosen of them up to the state and to the keys. Returns how many rows there is room for.
    fn arrange(&mut self, (width, height): (u16, u16)) -> usize {
        self.rows = rows(&self.status, self.view.sort, &self.view.filter);
        let page = page(width, height, &self.status, &self.view);
        self.view.settle(&self.status, &self.rows, page);
        page
    }

    fn show(&mut self, screen: &mut Screen) -> io::Result<()> {
        self.arrange(screen.size());
        let App {
            status,
            view,
            rows,
            reasons,
            told,
            made,
            ..
        } = self;
        let age_s = made.elapsed().as_secs_f64();
        screen.show(|buffer| {
            draw(
                buffer,
                &Scene {
                    status,
                    age_s,
                    told: told.as_deref(),
                    view,
                    rows,
                    reasons,
                },
            )
        })
    }
}

/// How a run has ended that is over, and its record if it left one.
fn end_of(status: &Status) -> (String, Option<Record>) {
    let ended = "THE RUN HAS ENDED";
    let Some(path) = &status.run.record else {
        return (ended.to_owned(), None);
    };
    let record = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| Record::from_json(&text).ok());
    match record.filter(|record| record.run_id.as_deref() == Some(&status.run.run_id)) {
        Some(record) => (format!("{ended}: {}", headline_text(&record)), Some(record)),
        None if status
            .run
            .series
            .as_ref()
            .is_some_and(|series| Path::new(series).exists()) =>
        {
            // It was killed, or could not write it.
            (
                "THE RUN LEFT NO RECORD; `cosched thaw` shows what it left".to_owned(),
                None,
            )
        }
        None => (ended.to_owned(), None),
    }
}

fn suspend(screen: &mut Screen, signals: &ScreenSignals) -> io::Result<()> {
    screen.leave();
    signals.stop();
    screen.enter()
}

/// Lets the user choose one of several runs; the place of it, or how the user has left.
///
/// # Errors
/// The terminal has gone.
pub(super) fn choose(
    screen: &mut Screen,
    signals: &ScreenSignals,
    runs: &[RunLine],
    place: usize,
) -> io::Result<Result<(usize, Vec<Key>), Exit>> {
    let (mut choice, mut keys) = (Choice { place }, Keys::default());
    loop {
        if !screen.is_behind() {
            screen.show(|buffer| draw_choice(buffer, runs, choice))?;
        }
        let timeout = keys.is_waiting().then_some(Timespec {
            tv_sec: 0,
            tv_nsec: ESCAPE.subsec_nanos().into(),
        });
        let came = {
            let out = if screen.is_behind() {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            let mut fds = [
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(&*screen, PollFlags::IN | out),
            ];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            [fds[0].revents(), fds[1].revents()]
                .map(|flags| flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
        };
        screen.send()?;
        for signal in if came[0] { signals.take() } else { Vec::new() } {
            match signal {
                ScreenSignal::Leave(signal) => return Ok(Err(Exit::Signal(signal))),
                ScreenSignal::Suspend => suspend(screen, signals)?,
                ScreenSignal::Continued => screen.enter()?,
                ScreenSignal::Resized => screen.forget(),
            }
        }
        let pressed = if came[1] {
            keys.feed(&screen.pressed()?)
        } else {
            keys.settle().into_iter().collect()
        };
        let mut pressed = pressed.into_iter();
        while let Some(key) = pressed.next() {
            match choice.press(key, runs.len()) {
                Some(true) => return Ok(Ok((choice.place, pressed.collect()))),
                Some(false) => return Ok(Err(LEFT)),
                None => {}
            }
        }
    }
}
