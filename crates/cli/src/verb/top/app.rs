//! Reads the state of a run in intervals, and shows it.

use super::terminal::TopTerminal;
use crate::exit::Exit;
use crate::live::{look_at_jobs, state_of};
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, RunFate, RunRequest, ScreenSignal, ScreenSignals, fate_of};
use cosched_report::{RunRecord, RunStatus, headline_text};
use cosched_top::keys::{KeyEvent, Keys};
use cosched_top::{KeyEffect, TopScene, TopView, draw, page, rows};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// What follows an escape character later is not of the same key.
const ESCAPE: Duration = Duration::from_millis(50);
/// Time between two reads of the state. The run writes it once a second.
const INTERVAL: Duration = Duration::from_millis(500);

/// A run that is watched.
pub struct App {
    root: Root,
    run: LiveRun,
    status: Box<RunStatus>,
    /// When the state is read next.
    next: Instant,
    /// What the user should know of the run.
    told: Option<String>,
    has_ended: bool,
    view: TopView,
    rows: Vec<usize>,
    keys: Keys,
}

/// What has come.
pub struct Came {
    pub signals: bool,
    pub keys: bool,
}

impl Came {
    /// The pressed keys. Where nothing follows an escape character, it is a key.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn typed(&self, screen: &mut TopTerminal, keys: &mut Keys) -> io::Result<Vec<KeyEvent>> {
        Ok(if self.keys {
            keys.feed(&screen.pressed()?)
        } else {
            keys.settle()
        })
    }
}

/// Waits until something comes, a key is complete, or `next` has passed.
///
/// # Errors
/// An error of the kernel.
pub fn wait(
    screen: &TopTerminal,
    signals: &ScreenSignals,
    keys: &Keys,
    next: Option<Duration>,
) -> io::Result<Came> {
    let escape = keys.is_waiting().then_some(ESCAPE);
    let timeout = [escape, next].into_iter().flatten().min();
    let timeout = timeout.map(|left| Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    });
    let mut wanted = PollFlags::IN;
    wanted.set(PollFlags::OUT, screen.is_behind());
    let mut fds = [
        PollFd::new(signals, PollFlags::IN),
        PollFd::new(screen, wanted),
    ];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
    let [signals, keys] = fds.map(|fd| fd.revents().intersects(readable));
    Ok(Came { signals, keys })
}

impl App {
    pub fn new(root: Root, run: LiveRun, status: Box<RunStatus>) -> App {
        let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        App {
            root,
            run,
            status,
            next: Instant::now(),
            told: None,
            has_ended: false,
            view: TopView::new(has_colour),
            rows: Vec::new(),
            keys: Keys::default(),
        }
    }

    /// Shows the run until the user leaves, or a signal says so.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn run(mut self, screen: &mut TopTerminal, signals: &ScreenSignals) -> io::Result<Exit> {
        let mut is_new = true;
        loop {
            if !self.has_ended && Instant::now() >= self.next {
                is_new |= self.look();
            }
            if is_new && !screen.is_behind() {
                self.show(screen)?;
                is_new = false;
            }
            let came = self.wait(screen, signals)?;
            screen.send()?;
            if came.signals {
                is_new = true;
                if let Some(exit) = take_signals(screen, signals)? {
                    return Ok(exit);
                }
            }
            for key in came.typed(screen, &mut self.keys)? {
                is_new = true;
                // A key is about what the one before it has led to, also where that was not shown yet.
                let page = self.arrange(screen.size());
                match self.view.press(key, &self.status, &self.rows, page) {
                    KeyEffect::Quit => return Ok(Exit::Success),
                    KeyEffect::Suspend => suspend(screen, signals)?,
                    KeyEffect::Redraw => screen.forget(),
                    KeyEffect::End(job) => self.end(job),
                    KeyEffect::None => {}
                }
            }
        }
    }

    /// Waits until something comes, or the state is to be read.
    fn wait(&self, screen: &TopTerminal, signals: &ScreenSignals) -> io::Result<Came> {
        let next = self.next.saturating_duration_since(Instant::now());
        let next = (!self.has_ended).then_some(next);
        wait(screen, signals, &self.keys, next)
    }

    /// Reads the state. Returns whether there is something new to show.
    fn look(&mut self) -> bool {
        self.next = Instant::now() + INTERVAL;
        if self.view.is_paused {
            return false;
        }
        if fate_of(&self.root, &self.run.run) == RunFate::Dead {
            self.note_end();
            return true;
        }
        match state_of(&self.run) {
            Ok(mut status) => {
                look_at_jobs(&self.root, &mut status);
                self.status = status;
                self.told = None;
            }
            Err(_) => self.told = Some("THE RUN ENDS".to_owned()),
        }
        true
    }

    fn note_end(&mut self) {
        self.has_ended = true;
        self.status.age_s = None;
        self.status.totals.left_s = None;
        let (told, record) = end_of(&self.status);
        if let Some(record) = record {
            self.status.over(&record);
        }
        self.told = Some(told);
    }

    /// Asks the run to end a job.
    fn end(&mut self, job: u32) {
        let Some(job) = self.status.job(job) else {
            return;
        };
        let request = RunRequest::End {
            end: job.job,
            name: job.name.clone(),
        };
        if let Err(error) = self.run.ask(&request) {
            self.told = Some(format!("THE RUN CAN'T BE ASKED: {error}"));
        }
    }

    /// Brings the rows and what is chosen of them up to the state and to the keys. Returns how many rows there is room for.
    fn arrange(&mut self, (width, height): (u16, u16)) -> usize {
        self.rows = rows(&self.status, self.view.sort, &self.view.filter);
        let page = page(width, height, &self.status, &self.view);
        self.view.settle(&self.status, &self.rows, page);
        page
    }

    fn show(&mut self, screen: &mut TopTerminal) -> io::Result<()> {
        self.arrange(screen.size());
        let scene = TopScene {
            status: &self.status,
            told: self.told.as_deref(),
            view: &self.view,
            rows: &self.rows,
        };
        screen.show(|buffer| draw(buffer, &scene))
    }
}

/// How a run has ended that is over, and its record if it left one.
fn end_of(status: &RunStatus) -> (String, Option<RunRecord>) {
    let ended = "THE RUN HAS ENDED";
    let Some(path) = &status.run.record else {
        return (ended.to_owned(), None);
    };
    let record = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| RunRecord::from_json(&text).ok());
    if let Some(record) =
        record.filter(|record| record.run_id.as_deref() == Some(&status.run.run_id))
    {
        let told = format!("{ended}: {}", headline_text(&record));
        return (told, Some(record));
    }
    let series = status.run.series.as_ref();
    if series.is_some_and(|series| Path::new(series).exists()) {
        // It was killed, or could not write it.
        let told = "THE RUN LEFT NO RECORD; `cosched thaw` shows what it left";
        return (told.to_owned(), None);
    }
    (ended.to_owned(), None)
}

/// Takes the signals that have come; returns how the user has left.
///
/// # Errors
/// The terminal has gone.
pub fn take_signals(screen: &mut TopTerminal, signals: &ScreenSignals) -> io::Result<Option<Exit>> {
    for signal in signals.take() {
        match signal {
            ScreenSignal::Leave(signal) => return Ok(Some(Exit::Signal(signal))),
            ScreenSignal::Suspend => suspend(screen, signals)?,
            ScreenSignal::Continued => screen.enter()?,
            ScreenSignal::Resized => screen.forget(),
        }
    }
    Ok(None)
}

/// Stops this program until it is continued.
///
/// # Errors
/// The terminal has gone.
pub fn suspend(screen: &mut TopTerminal, signals: &ScreenSignals) -> io::Result<()> {
    screen.leave();
    signals.stop();
    screen.enter()
}
