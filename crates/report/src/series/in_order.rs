//! The rows of a series in the order of time.
//!
//! A job's last measurement is written with the next decision, behind the row of the job's end. A reader that wants to
//! know at the end what the job did needs the measurement first.

use super::{SeriesError, SeriesReader, SeriesRow};
use cosched_core::Nanos;
use std::collections::VecDeque;
use std::io::BufRead;

/// Reads a series in the order of time; measurements come before what happened at their end.
///
/// It holds only the rows from the end of a job to the next decision in memory.
pub(crate) struct RowsInOrder<'a, R> {
    series: &'a mut SeriesReader<R>,
    sorted: VecDeque<(Nanos, SeriesRow)>,
}

impl<'a, R: BufRead> RowsInOrder<'a, R> {
    pub(crate) fn new(series: &'a mut SeriesReader<R>) -> RowsInOrder<'a, R> {
        RowsInOrder {
            series,
            sorted: VecDeque::new(),
        }
    }

    /// Read on to the next decision, and sort.
    fn sort_after(&mut self, ended: (Nanos, SeriesRow)) -> Result<(), SeriesError> {
        let mut rows = vec![ended];
        for row in self.series.by_ref() {
            rows.push(row?);
            if matches!(rows.last(), Some((_, SeriesRow::Decided { .. }))) {
                break;
            }
        }
        rows.sort_by_key(|(at, row)| (*at, !row.is_of_the_past()));
        self.sorted = rows.into();
        Ok(())
    }
}

impl<R: BufRead> Iterator for RowsInOrder<'_, R> {
    type Item = Result<(Nanos, SeriesRow), SeriesError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.sorted.is_empty() {
            match self.series.next()? {
                Ok(row) if matches!(row.1, SeriesRow::Ended { .. }) => {
                    if let Err(error) = self.sort_after(row) {
                        return Some(Err(error));
                    }
                }
                row => return Some(row),
            }
        }
        self.sorted.pop_front().map(Ok)
    }
}
