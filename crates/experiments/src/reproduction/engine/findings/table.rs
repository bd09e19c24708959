//! Tables and their cells.

use super::super::number::{plain, shown};
use crate::statistics::{Estimate, median, quantile};

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name, unique among all tables and figures.
    pub id: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The heads of its columns, with units.
    pub columns: Vec<String>,
    /// Its rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Whether it is a number or its absence, which stand at the right of their column.
    pub is_number: bool,
}

impl Cell {
    /// Words.
    pub(crate) fn text(words: impl Into<String>) -> Cell {
        Cell {
            text: words.into(),
            is_number: false,
        }
    }

    /// No number.
    pub(crate) fn absent() -> Cell {
        Cell::of_number("-".to_owned())
    }

    fn of_number(text: String) -> Cell {
        Cell {
            text,
            is_number: true,
        }
    }

    /// A number with so many decimals; absent if it is not finite.
    pub(crate) fn number(value: f64, decimals: usize) -> Cell {
        if value.is_finite() {
            Cell::of_number(plain(value, decimals))
        } else {
            Cell::absent()
        }
    }

    /// A mean with its interval; absent if there are no values.
    pub(crate) fn mean(values: &[f64], decimals: usize) -> Cell {
        Cell::estimate(Estimate::of(values), decimals)
    }

    /// The same with its sign: for what can be gained and lost.
    pub(crate) fn signed(values: &[f64], decimals: usize) -> Cell {
        let estimate = Estimate::of(values);
        estimate.map_or_else(Cell::absent, |estimate| {
            Cell::of_number(shown(&estimate, decimals, true))
        })
    }

    /// An estimate; absent if there is none.
    pub(crate) fn estimate(estimate: Option<Estimate>, decimals: usize) -> Cell {
        estimate.map_or_else(Cell::absent, |estimate| {
            Cell::of_number(shown(&estimate, decimals, false))
        })
    }

    /// All values: the median, and from the least to the greatest; absent if there are none.
    pub(crate) fn range(values: &[f64], decimals: usize) -> Cell {
        let [low, middle, high] = [0.0, 0.5, 1.0]
            .map(|share| plain(quantile(values, share).unwrap_or(f64::NAN), decimals));
        if values.is_empty() {
            return Cell::absent();
        }
        Cell::of_number(format!("{middle} ({low} to {high})"))
    }

    /// What was drawn many times: the mean, and from the 10th to the 90th percentile; absent if it was not.
    pub(crate) fn draws(values: &[f64], decimals: usize) -> Cell {
        let ends = quantile(values, 0.1).zip(quantile(values, 0.9));
        let Some((low, high)) = ends else {
            return Cell::absent();
        };
        let middle = plain(median(values), decimals);
        let low = plain(low, decimals);
        let high = plain(high, decimals);
        Cell::of_number(format!("{middle} ({low} to {high})"))
    }
}
