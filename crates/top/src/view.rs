//! What the user has chosen to see, and what keys change in it.

use crate::keys::Key;
use crate::rows::Sort;
use cosched_report::{JobNow, JobState, Status};

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
pub struct View {
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
pub enum Effect {
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

impl View {
    /// A view of all jobs.
    pub fn new(has_colour: bool) -> View {
        View {
            has_colour,
            ..View::default()
        }
    }

    /// Handles a key. `rows` are the positions of the jobs that pass the filter; `page` of them fit the screen.
    pub fn press(&mut self, key: Key, status: &Status, rows: &[usize], page: usize) -> Effect {
        match key {
            Key::Ctrl('c') => return Effect::Quit,
            Key::Ctrl('z') => return Effect::Suspend,
            Key::Ctrl('l') => return Effect::Redraw,
            key if self.asks_to_end.is_some() => {
                return match self.asks_to_end.take() {
                    Some(job) if key == Key::Char('y') => Effect::End(job),
                    _ => Effect::None,
                };
            }
            key if self.is_typing => self.type_filter(key),
            Key::Char('q') => return Effect::Quit,
            Key::Char('k') | Key::Up => self.step(-1, status, rows),
            Key::Char('j') | Key::Down => self.step(1, status, rows),
            Key::PageUp | Key::Ctrl('b') => self.step(-(page.max(1) as isize), status, rows),
            Key::PageDown | Key::Ctrl('f') => self.step(page.max(1) as isize, status, rows),
            Key::Home | Key::Char('g') => self.step(isize::MIN, status, rows),
            Key::End | Key::Char('G') => self.step(isize::MAX, status, rows),
            Key::Char('e') => {
                let job = self.selected.and_then(|job| status.job(job));
                let job = job.filter(|job| has_begun(job));
                self.asks_to_end = job.map(|job| job.job);
            }
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('w') | Key::Enter => self.toggle(Panel::Why),
            Key::Char('?' | 'h') => self.toggle(Panel::Help),
            Key::Escape if self.panel == Panel::None => self.filter.clear(),
            Key::Escape => self.panel = Panel::None,
            Key::Char(_) | Key::Backspace | Key::Ctrl(_) => {}
        }
        Effect::None
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.filter.chars().count() < MOST_FILTER => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => {
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
    pub fn place(&self, status: &Status, rows: &[usize]) -> usize {
        let mut rows = rows.iter();
        let place = rows.position(|&ix| Some(status.jobs[ix].job) == self.selected);
        place.unwrap_or(0)
    }

    fn step(&mut self, by: isize, status: &Status, rows: &[usize]) {
        let Some(last) = rows.len().checked_sub(1) else {
            return;
        };
        let place = self.place(status, rows) as isize;
        let place = place.saturating_add(by).clamp(0, last as isize);
        self.selected = Some(status.jobs[rows[place as usize]].job);
    }

    /// Corrects the selection and the offset for these rows; `page` of them fit the screen.
    pub fn settle(&mut self, status: &Status, rows: &[usize], page: usize) {
        let place = self.place(status, rows);
        self.selected = rows.get(place).map(|&ix| status.jobs[ix].job);
        let page = page.max(1);
        let last = rows.len().saturating_sub(page);
        let first = (place + 1).saturating_sub(page);
        self.offset = self.offset.min(last).min(place).max(first);
    }
}
