//! Tables of estimated slowdowns.

use super::replay::Judged;
use std::fmt;

/// The greatest error of a slowdown that is good.
const BOUND: f64 = 0.15;
/// An estimator that states a greater standard error claims nothing.
const UNKNOWN: f64 = 0.15;
/// A row in which no slowdown is off by more than this is left out where nothing was slowed.
const NEAR: f64 = 0.01;

/// A program in a run, and what each estimator made of it.
pub(super) struct Row {
    pub(super) run: String,
    pub(super) program: String,
    /// Its slowdown.
    pub(super) by_wall_time: f64,
    pub(super) as_recorded: f64,
    pub(super) judged: Vec<Judged>,
}

/// Rows with the same estimators.
pub(super) struct EstimatorTable {
    title: String,
    names: Vec<String>,
    rows: Vec<Row>,
}

/// What the cells say.
pub(super) fn legend() -> String {
    format!(
        "Error of each estimated slowdown; in brackets the greatest error of the progress meanwhile, as a part of all work. \
         `!`: the slowdown is off by more than {:.0} %. `±`: the standard error that the estimator states itself, from {:.0} % on.\n",
        100.0 * BOUND,
        100.0 * UNKNOWN
    )
}

impl EstimatorTable {
    pub(super) fn new(title: &str, names: &[&str]) -> EstimatorTable {
        EstimatorTable {
            title: title.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The mean error in per cent of an estimator that says that nothing was slowed.
    fn mean_error_if_unslowed(&self) -> f64 {
        let errors = self.rows.iter().map(|row| 1.0 - 1.0 / row.as_recorded);
        100.0 * errors.map(f64::abs).sum::<f64>() / self.rows.len() as f64
    }

    /// How many errors of an estimator are within the bound, and their mean.
    fn tally(&self, estimator: usize) -> String {
        let mut errors = Vec::new();
        for row in &self.rows {
            errors.extend(row.judged[estimator].error().map(f64::abs));
        }
        let within = errors.iter().filter(|error| **error <= BOUND).count();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        format!(
            "{within} of {}, mean {:.1} %",
            self.rows.len(),
            100.0 * mean
        )
    }
}

fn cell(judged: &Judged) -> String {
    let error = match judged.error() {
        Ok(error) => error,
        Err(why) => return why.text().to_owned(),
    };
    let mark = if error.abs() > BOUND { " !" } else { "" };
    let doubt = match judged.doubt.filter(|doubt| *doubt >= UNKNOWN) {
        Some(doubt) => format!(" ±{:.0} %", 100.0 * doubt),
        None => String::new(),
    };
    let meanwhile = match judged.worst_mark() {
        Some(worst) => format!(" ({:.0} %)", 100.0 * worst),
        None => String::new(),
    };
    format!("{:+.1} %{mark}{doubt}{meanwhile}", 100.0 * error)
}

impl fmt::Display for EstimatorTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## {}\n", self.title)?;
        let names = self.names.join(" | ");
        writeln!(
            f,
            "| run | program | slowdown by wall time | as recorded | {names} |"
        )?;
        writeln!(f, "|{}", " --- |".repeat(4 + self.names.len()))?;
        let (near, rows): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.is_unslowed_and_near());
        for row in rows {
            let cells: Vec<String> = row.judged.iter().map(cell).collect();
            let (by_wall_time, as_recorded) = (row.by_wall_time, row.as_recorded);
            writeln!(
                f,
                "| {} | {} | {by_wall_time:.3} | {as_recorded:.3} | {} |",
                row.run,
                row.program,
                cells.join(" | ")
            )?;
        }
        let tallies: Vec<String> = (0..self.names.len()).map(|at| self.tally(at)).collect();
        let unslowed = self.mean_error_if_unslowed();
        writeln!(
            f,
            "| all {} | | | 1 would be off by {unslowed:.1} % | {} |",
            self.rows.len(),
            tallies.join(" | ")
        )?;
        if near.is_empty() {
            return Ok(());
        }
        let (count, bound) = (near.len(), 100.0 * NEAR);
        writeln!(
            f,
            "\n{count} rows in which each error is at most {bound:.0} % are left out."
        )
    }
}

impl Row {
    fn is_unslowed_and_near(&self) -> bool {
        let is_near = |judged: &Judged| judged.error().is_ok_and(|error| error.abs() <= NEAR);
        self.as_recorded == 1.0 && self.judged.iter().all(is_near)
    }
}
