//! The rows of a series in the order in which they count.
//!
//! What was measured of a job in its last interval is written with the next decision, so behind the row of its end.
//! Whoever wants to know at its end what it did must see the measurement first.

use crate::series::{Row, SeriesError, SeriesReader};
use cosched_core::Nanos;
use std::collections::VecDeque;
use std::io::BufRead;

/// A row with its line in the file.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) line: usize,
    pub(super) at: Nanos,
    pub(super) row: Row,
}

/// Rows as they count: from the end of a job to the next decision measurements come first. No more rows than that are in
/// memory.
#[derive(Debug)]
pub(super) struct Turns<'a, R> {
    series: &'a mut SeriesReader<R>,
    held: Vec<Numbered>,
    ready: VecDeque<Numbered>,
}

impl<'a, R: BufRead> Turns<'a, R> {
    pub(super) fn new(series: &'a mut SeriesReader<R>) -> Turns<'a, R> {
        Turns {
            series,
            held: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn release(&mut self) {
        // The sort is stable: otherwise the order stays.
        self.held
            .sort_by_key(|held| !matches!(held.row, Row::Sampled(_) | Row::Lacks { .. }));
        self.ready.extend(self.held.drain(..));
    }
}

impl<R: BufRead> Iterator for Turns<'_, R> {
    type Item = Result<Numbered, SeriesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(Ok(ready));
            }
            let (at, row) = match self.series.next() {
                Some(Ok(read)) => read,
                Some(Err(error)) => return Some(Err(error)),
                None if self.held.is_empty() => return None,
                None => {
                    self.release();
                    continue;
                }
            };
            let read = Numbered {
                line: self.series.line(),
                at,
                row,
            };
            match read.row {
                Row::Decided { .. } if !self.held.is_empty() => {
                    self.release();
                    self.ready.push_back(read);
                }
                Row::Ended(_) => self.held.push(read),
                _ if !self.held.is_empty() => self.held.push(read),
                _ => return Some(Ok(read)),
            }
        }
    }
}
