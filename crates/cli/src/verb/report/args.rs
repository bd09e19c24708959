//! The command line of `cosched report`.

use crate::offer;
use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use std::path::PathBuf;

/// Show runs or a comparison, from their files
///
/// It reads run records and series. A live or killed run has only a series.
#[derive(Args)]
pub struct ReportArgs {
    /// Log folder, run record, series or process of a run; folder of log folders; comparison, or folder of comparisons,
    /// which shows the last [default: the last run in cosched-logs]
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(offer::folder_or_file))]
    pub paths: Vec<PathBuf>,

    /// Output format [default: text; with --html or --figures nothing is printed]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<ReportFormat>,

    /// Rows of CSV or JSON Lines [default: jobs for one run, else metrics]
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<TableArg>,

    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the charts into this folder, each as SVG
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Baseline of a comparison
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Metrics to judge in a comparison
    #[arg(long = "metric", value_name = "M", value_delimiter = ',')]
    #[arg(add = ArgValueCandidates::new(offer::metrics))]
    pub metrics: Vec<String>,

    /// Print no notes on missing files
    #[arg(short, long)]
    pub quiet: bool,
}

/// Output format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables for people
    Text,
    /// A Markdown document
    Markdown,
    /// A tidy table with a header line
    Csv,
    /// The same table, one JSON object a row
    Jsonl,
    /// The run record, a list of them, or the object of a comparison
    Json,
}

/// The subject of a row in a tidy table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableArg {
    /// A metric of a run
    Metrics,
    /// A job of a run
    Jobs,
    /// A measurement of a job in one interval
    Samples,
}

impl ReportArgs {
    /// Whether a page or figures are to be written.
    pub fn wants_files(&self) -> bool {
        self.html.is_some() || self.figures.is_some()
    }

    /// What is to be printed; `None` for nothing.
    pub fn printed(&self) -> Option<ReportFormat> {
        let usual = (!self.wants_files()).then_some(ReportFormat::Text);
        self.format.or(usual)
    }
}
