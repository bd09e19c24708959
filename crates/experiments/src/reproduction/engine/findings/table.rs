//! Tables and their cells.

use super::super::number::{plain, shown};
use crate::statistics::{MeanEstimate, median, quantile};

/// A table.
#[derive(Clone, Debug)]
pub struct FindingTable {
    /// Its name, unique among all tables and figures.
    pub id: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The heads of its columns, with units.
    pub columns: Vec<String>,
    /// Its rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<FindingCell>>,
}

/// A cell of a table, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingCell {
    /// Its text.
    pub text: String,
    /// Whether it is a number or its absence, which stand at the right of their column.
    pub is_number: bool,
}

impl FindingCell {
    /// Words.
    pub(crate) fn text(words: impl Into<String>) -> FindingCell {
        FindingCell {
            text: words.into(),
            is_number: false,
        }
    }

    /// No number.
    pub(crate) fn absent() -> FindingCell {
        FindingCell::of_number("-".to_owned())
    }

    fn of_number(text: String) -> FindingCell {
        FindingCell {
            text,
            is_number: true,
        }
    }

    /// A number with so many decimals; absent if it is not finite.
    pub(crate) fn number(value: f64, decimals: usize) -> FindingCell {
        if value.is_finite() {
            FindingCell::of_number(plain(value, decimals))
        } else {
            FindingCell::absent()
        }
    }

    /// A mean with its interval; absent if there are no values.
    pub(crate) fn mean(values: &[f64], decimals: usize) -> FindingCell {
        FindingCell::estimate(MeanEstimate::of(values), decimals)
    }

    /// The same with its sign: for what can be gained and lost.
    pub(crate) fn signed(values: &[f64], decimals: usize) -> FindingCell {
        let estimate = MeanEstimate::of(values);
        estimate.map_or_else(FindingCell::absent, |estimate| {
            FindingCell::of_number(shown(&estimate, decimals, true))
        })
    }

    /// An estimate; absent if there is none.
    pub(crate) fn estimate(estimate: Option<MeanEstimate>, decimals: usize) -> FindingCell {
        estimate.map_or_else(FindingCell::absent, |estimate| {
            FindingCell::of_number(shown(&estimate, decimals, false))
        })
    }

    /// All values: the median, and from the least to the greatest; absent if there are none.
    pub(crate) fn range(values: &[f64], decimals: usize) -> FindingCell {
        let [low, middle, high] = [0.0, 0.5, 1.0]
            .map(|share| plain(quantile(values, share).unwrap_or(f64::NAN), decimals));
        if values.is_empty() {
            return FindingCell::absent();
        }
        FindingCell::of_number(format!("{middle} ({low} to {high})"))
    }

    /// What was drawn many times: the mean, and from the 10th to the 90th percentile; absent if it was not.
    pub(crate) fn draws(values: &[f64], decimals: usize) -> FindingCell {
        let ends = quantile(values, 0.1).zip(quantile(values, 0.9));
        let Some((low, high)) = ends else {
            return FindingCell::absent();
        };
        let middle = plain(median(values), decimals);
        let low = plain(low, decimals);
        let high = plain(high, decimals);
        FindingCell::of_number(format!("{middle} ({low} to {high})"))
    }
}
