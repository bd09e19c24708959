//! What the user has chosen to see, and what keys change in it.

use crate::rows::Sort;
use cosched_report::{JobNow, JobState, RunStatus};
use termina::event::{KeyCode, KeyEvent, Modifiers};

/// What is shown beside the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    /// Nothing.
    #[default]
    None,
    /// Why the selected job waits.
    Why,
    /// The keys.
    Help,
}

/// What the user has chosen to see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopView {
    /// The number of the selected job.
    pub selected: Option<u32>,
    /// Rows above the first one that is shown.
    pub offset: usize,
    /// The order of the jobs.
    pub sort: Sort,
    /// Only jobs with this in their name, or in this state, are shown.
    pub filter: String,
    /// Whether the user is typing the filter.
    pub is_typing: bool,
    /// Whether the screen is paused.
    pub is_paused: bool,
    /// What is shown beside the table.
    pub panel: Panel,
    /// The job that the user is asked about: whether to end it.
    pub asks_to_end: Option<u32>,
    /// Whether to use colours.
    pub has_colour: bool,
}

/// The effect of a key, beside a new view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    /// Nothing.
    None,
    /// Leave.
    Quit,
    /// Stop this program until it is continued.
    Suspend,
    /// Redraw the screen.
    Redraw,
    /// End this job.
    End(u32),
}

/// Maximum length of a filter, in characters.
const MOST_FILTER: usize = 64;

/// Whether a job can be ended.
fn has_begun(job: &JobNow) -> bool {
    matches!(
        job.state,
        JobState::Running | JobState::Waiting | JobState::Sleeping
    )
}

impl TopView {
    /// A view of all jobs.
    pub fn new(has_colour: bool) -> TopView {
        TopView {
            has_colour,
            ..TopView::default()
        }
    }

    /// Handles a key. `rows` are the positions of the jobs that pass the filter; `page` of them fit the screen.
    pub fn press(
        &mut self,
        key: KeyEvent,
        status: &RunStatus,
        rows: &[usize],
        page: usize,
    ) -> KeyEffect {
        if key.modifiers == Modifiers::CONTROL {
            match key.code {
                KeyCode::Char('c') => return KeyEffect::Quit,
                KeyCode::Char('z') => return KeyEffect::Suspend,
                KeyCode::Char('l') => return KeyEffect::Redraw,
                _ => {}
            }
        }
        if let Some(job) = self.asks_to_end.take() {
            return match (key.code, key.modifiers) {
                (KeyCode::Char('y'), Modifiers::NONE) => KeyEffect::End(job),
                _ => KeyEffect::None,
            };
        }
        if self.is_typing {
            self.type_filter(key);
            return KeyEffect::None;
        }
        self.choose(key, status, rows, page)
    }

    fn choose(
        &mut self,
        key: KeyEvent,
        status: &RunStatus,
        rows: &[usize],
        page: usize,
    ) -> KeyEffect {
        let page = page.max(1) as isize;
        match (key.code, key.modifiers) {
            (KeyCode::Char('b'), Modifiers::CONTROL) => self.step(-page, status, rows),
            (KeyCode::Char('f'), Modifiers::CONTROL) => self.step(page, status, rows),
            (_, Modifiers::CONTROL) => {}
            (KeyCode::Char('q'), _) => return KeyEffect::Quit,
            (KeyCode::Char('k') | KeyCode::Up, _) => self.step(-1, status, rows),
            (KeyCode::Char('j') | KeyCode::Down, _) => self.step(1, status, rows),
            (KeyCode::PageUp, _) => self.step(-page, status, rows),
            (KeyCode::PageDown, _) => self.step(page, status, rows),
            (KeyCode::Char('g') | KeyCode::Home, _) => self.step(isize::MIN, status, rows),
            (KeyCode::Char('G') | KeyCode::End, _) => self.step(isize::MAX, status, rows),
            (KeyCode::Char('e'), _) => {
                let job = self.selected.and_then(|job| status.job(job));
                let job = job.filter(|job| has_begun(job));
                self.asks_to_end = job.map(|job| job.job);
            }
            (KeyCode::Char('s'), _) => self.sort = self.sort.next(),
            (KeyCode::Char('/'), _) => self.is_typing = true,
            (KeyCode::Char(' '), _) => self.is_paused = !self.is_paused,
            (KeyCode::Char('w') | KeyCode::Enter, _) => self.toggle(Panel::Why),
            (KeyCode::Char('?' | 'h'), _) => self.toggle(Panel::Help),
            (KeyCode::Escape, _) if self.panel == Panel::None => self.filter.clear(),
            (KeyCode::Escape, _) => self.panel = Panel::None,
            _ => {}
        }
        KeyEffect::None
    }

    fn type_filter(&mut self, key: KeyEvent) {
        let has_room = self.filter.chars().count() < MOST_FILTER;
        match key.code {
            KeyCode::Char(c) if has_room && key.modifiers != Modifiers::CONTROL => {
                self.filter.push(c);
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
    }

    fn toggle(&mut self, panel: Panel) {
        if self.panel == panel {
            self.panel = Panel::None;
        } else {
            self.panel = panel;
        }
    }

    /// The place of the selected job among the rows; the first, if it is not there.
    pub fn place(&self, status: &RunStatus, rows: &[usize]) -> usize {
        let mut rows = rows.iter();
        let place = rows.position(|&ix| Some(status.jobs[ix].job) == self.selected);
        place.unwrap_or(0)
    }

    fn step(&mut self, by: isize, status: &RunStatus, rows: &[usize]) {
        let Some(last) = rows.len().checked_sub(1) else {
            return;
        };
        let place = self.place(status, rows) as isize;
        let place = place.saturating_add(by).clamp(0, last as isize);
        self.selected = Some(status.jobs[rows[place as usize]].job);
    }

    /// Corrects the selection and the offset for these rows; `page` of them fit the screen.
    pub fn settle(&mut self, status: &RunStatus, rows: &[usize], page: usize) {
        let place = self.place(status, rows);
        self.selected = rows.get(place).map(|&ix| status.jobs[ix].job);
        let page = page.max(1);
        let last = rows.len().saturating_sub(page);
        let first = (place + 1).saturating_sub(page);
        self.offset = self.offset.min(last).min(place).max(first);
    }
}
