//! Tidy tables for other programs: one row for each observation, one column for each variable; as CSV or as JSON Lines.

use crate::record::{JobRecord, RunRecord};
use crate::series::{SampleRow, SeriesError, SeriesReader, SeriesRow};
use cosched_core::{Counter, Nanos};
use serde_json::{Map, Value};
use std::io::{self, BufRead, Write};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TableForm {
    /// Fields separated by commas, with the names of the columns in the first line. An absent value is empty.
    Csv,
    /// One JSON object a line. An absent value is null.
    Jsonl,
}

/// Writes a table row by row.
#[derive(Debug)]
pub struct TidyTable<W> {
    form: TableForm,
    columns: Vec<String>,
    out: W,
}

/// A field of a CSV file.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

impl<W: Write> TidyTable<W> {
    /// A table with these columns.
    ///
    /// # Errors
    /// It can't be written.
    pub fn new(form: TableForm, columns: &[&str], mut out: W) -> io::Result<TidyTable<W>> {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        if form == TableForm::Csv {
            let names: Vec<String> = columns.iter().map(|name| csv_field(name)).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        Ok(TidyTable { form, columns, out })
    }

    /// Writes a row: a value for each column, null where it is absent.
    ///
    /// # Errors
    /// It can't be written.
    pub fn row(&mut self, values: &[Value]) -> io::Result<()> {
        let mut fields = Vec::new();
        for (name, value) in self.columns.iter().zip(values) {
            fields.push(match (self.form, value) {
                (TableForm::Jsonl, value) => format!("\"{name}\":{value}"),
                (TableForm::Csv, Value::Null) => String::new(),
                (TableForm::Csv, Value::String(text)) => csv_field(text),
                (TableForm::Csv, value) => csv_field(&value.to_string()),
            });
        }
        let fields = fields.join(",");
        match self.form {
            TableForm::Csv => writeln!(self.out, "{fields}"),
            TableForm::Jsonl => writeln!(self.out, "{{{fields}}}"),
        }
    }

    /// Flush the writer.
    ///
    /// # Errors
    /// It can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The columns of a job, as in the run record; and its turnaround, the time that was expected of it, and all counters.
const JOB: [&str; 33] = [
    "name",
    "program",
    "command",
    "node",
    "cpus",
    "width",
    "arrival_s",
    "start_s",
    "end_s",
    "turnaround_s",
    "exit",
    "exit_text",
    "timed_out",
    "lost",
    "runs",
    "cpu_s",
    "user_s",
    "system_s",
    "max_rss_bytes",
    "read_bytes",
    "written_bytes",
    "ran_s",
    "waited_max_s",
    "expected_s",
    "ipc",
    "progress",
    "progress_basis",
    "progress_learnt",
    "solo_s",
    "solo_source",
    "slowdown",
    "slowdown_estimate",
    "log",
];

/// The columns of a table of jobs.
pub fn job_columns() -> Vec<&'static str> {
    JOB.into_iter()
        .chain(Counter::ALL.iter().map(|counter| counter.name()))
        .collect()
}

/// The values of a job, in the order of [`job_columns`].
pub fn job_values(job: &JobRecord) -> Vec<Value> {
    // A job can't fail to serialise.
    let all = serde_json::to_value(job).unwrap_or_default();
    let empty = Map::new();
    let all = all.as_object().unwrap_or(&empty);
    let counts = all
        .get("counts")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let columns = job_columns().into_iter();
    columns
        .map(|name| match name {
            "turnaround_s" => Value::from(job.turnaround_s()),
            "expected_s" => Value::from(job.expected.map(|expected| expected.time_s)),
            name => {
                let value = all.get(name).or_else(|| counts.get(name));
                value.cloned().unwrap_or_default()
            }
        })
        .collect()
}

/// The columns of a table of metrics: one value a row.
pub const METRIC_COLUMNS: [&str; 3] = ["metric", "value", "absent"];

/// The rows of the metrics of a run, in the order of [`METRIC_COLUMNS`].
pub fn metric_values(record: &RunRecord) -> impl Iterator<Item = [Value; 3]> {
    record.metrics.iter().map(|(name, value)| match value {
        Ok(value) => [Value::from(name), Value::from(*value), Value::Null],
        Err(why) => [Value::from(name), Value::Null, Value::from(why)],
    })
}

/// Columns of a sample before the counters.
const SAMPLE: [&str; 11] = [
    "t_s",
    "job",
    "interval_s",
    "cpus",
    "purpose",
    "whole_core",
    "disturbed",
    "cut_short",
    "multiplexed",
    "cpu_s",
    "progress",
];

/// The columns of a table of samples: what was measured of a job in an interval.
pub fn sample_columns() -> Vec<&'static str> {
    SAMPLE
        .into_iter()
        .chain(Counter::ALL.iter().map(|counter| counter.name()))
        .collect()
}

/// Calls `row` with the values of each sample of a series, in the order of [`sample_columns`].
///
/// # Errors
/// The series can't be read, or `row` failed.
pub fn samples<R: BufRead, E: From<SeriesError>>(
    series: &mut SeriesReader<R>,
    mut row: impl FnMut(Vec<Value>) -> Result<(), E>,
) -> Result<(), E> {
    let names: Vec<String> = series
        .header()
        .tasks
        .iter()
        .map(|task| task.name.clone())
        .collect();
    for line in series.by_ref() {
        let (at, SeriesRow::Sampled(sample)) = line? else {
            continue;
        };
        row(sample_values(at, &names, &sample))?;
    }
    Ok(())
}

/// The values of a sample, in the order of [`sample_columns`].
fn sample_values(at: Nanos, names: &[String], sample: &SampleRow) -> Vec<Value> {
    let name = names.get(sample.task.0 as usize);
    let progress = sample.progress_milli.map(|milli| milli as f64 / 1e3);
    let mut values = vec![
        Value::from(at.as_s()),
        Value::from(name.map(String::as_str)),
        Value::from(sample.interval.as_s()),
        Value::from(sample.cpus.to_string()),
        serde_json::to_value(sample.purpose).unwrap_or_default(),
        Value::from(sample.whole_core),
        Value::from(sample.disturbed),
        Value::from(sample.cut_short),
        Value::from(sample.multiplexed),
        Value::from(sample.cpu_time.map(Nanos::as_s)),
        Value::from(progress),
    ];
    for counter in Counter::ALL {
        values.push(Value::from(sample.counts[counter]));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record;
    use crate::testing::{info, result};
    use std::collections::BTreeSet;

    /// A table of all jobs.
    fn table(form: TableForm) -> String {
        let result = result();
        let record = record(&result, &info(&result));
        let mut out = Vec::new();
        let mut table = TidyTable::new(form, &job_columns(), &mut out).unwrap();
        record
            .jobs
            .iter()
            .for_each(|job| table.row(&job_values(job)).unwrap());
        table.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_plain_value_of_a_job_is_a_column() {
        let result = result();
        let record = record(&result, &info(&result));
        let columns: BTreeSet<&str> = job_columns().into_iter().collect();
        let others = [
            "given",
            "counts",
            "signal",
            "expected",
            "width_source",
            "multiplexed",
            "log_stderr",
        ];
        for job in &record.jobs {
            for (name, _) in serde_json::to_value(job).unwrap().as_object().unwrap() {
                let is_known = columns.contains(name.as_str()) || name.ends_with("_absent");
                assert!(is_known || others.contains(&name.as_str()), "{name}");
            }
        }
    }

    #[test]
    fn both_forms_say_the_same() {
        let (csv, jsonl) = (table(TableForm::Csv), table(TableForm::Jsonl));
        assert_eq!(csv.lines().next().unwrap(), job_columns().join(","));
        assert_eq!(csv.lines().count(), jsonl.lines().count() + 1);
        for (line, object) in csv.lines().skip(1).zip(jsonl.lines()) {
            let object: Value = serde_json::from_str(object).unwrap();
            assert_eq!(object.as_object().unwrap().len(), job_columns().len());
            let name = object["name"].as_str().unwrap();
            assert!(line.starts_with(&format!("{name},")), "{line}");
            assert_eq!(
                line.contains(",exit 0,"),
                object["exit_text"] == "exit 0",
                "{line}"
            );
        }
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        let mut table = TidyTable::new(TableForm::Csv, &["a", "b,c"], &mut out).unwrap();
        table
            .row(&[Value::from("x \"y\", z\n"), Value::Null])
            .unwrap();
        table.row(&[Value::from(1.5), Value::from(true)]).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a,\"b,c\"\n\"x \"\"y\"\", z\n\",\n1.5,true\n"
        );
    }
}
