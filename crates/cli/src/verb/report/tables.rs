//! Tidy tables of several runs.

use super::args::TableArg;
use crate::exit::usage;
use crate::run_files::open_series;
use anyhow::Result;
use cosched_report::{
    METRIC_COLUMNS, RunRecord, SeriesError, TableForm, TidyTable, job_columns, job_values,
    metric_values, sample_columns, samples,
};
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// The values before those of a row: which run it is of.
pub type Prefix = Vec<Value>;

/// Writes a table whose rows say which run they are of.
pub struct Writer<'a> {
    table: TableArg,
    tidy: TidyTable<&'a mut dyn Write>,
}

impl<'a> Writer<'a> {
    pub fn new(
        form: TableForm,
        prefix: &[&str],
        table: TableArg,
        out: &'a mut dyn Write,
    ) -> Result<Writer<'a>> {
        let rest = match table {
            TableArg::Metrics => METRIC_COLUMNS.to_vec(),
            TableArg::Jobs => job_columns(),
            TableArg::Samples => sample_columns(),
        };
        let columns: Vec<&str> = prefix.iter().copied().chain(rest).collect();
        Ok(Writer {
            table,
            tidy: TidyTable::new(form, &columns, out)?,
        })
    }

    /// Writes one row.
    pub fn row(&mut self, prefix: &Prefix, values: Vec<Value>) -> io::Result<()> {
        let all: Vec<Value> = prefix.iter().cloned().chain(values).collect();
        self.tidy.row(&all)
    }

    /// Writes all rows of a run.
    ///
    /// # Errors
    /// They can't be written, or the series can't be read.
    pub fn run(
        &mut self,
        prefix: &Prefix,
        record: &RunRecord,
        series: Option<&Path>,
    ) -> Result<()> {
        match self.table {
            TableArg::Metrics => {
                for values in metric_values(record) {
                    self.row(prefix, values.to_vec())?;
                }
            }
            TableArg::Jobs => {
                for job in &record.jobs {
                    self.row(prefix, job_values(job))?;
                }
            }
            TableArg::Samples => {
                let Some(series) = series else { return Ok(()) };
                let mut series = open_series(series)?;
                let done: Result<()> = samples(&mut series, |values| {
                    self.row(prefix, values)?;
                    Ok(())
                });
                return match done {
                    Err(error) if error.is::<SeriesError>() => Err(usage(error.to_string())),
                    done => done,
                };
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        Ok(self.tidy.finish()?)
    }
}
