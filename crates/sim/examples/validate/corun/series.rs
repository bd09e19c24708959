//! The recorded series of counts: of programs alone, and of pairs that ran beside each other.

use crate::recording::{RecordedCounts, Recording};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The programs of the data set run with so many threads, each on a CPU of its own.
pub(super) const THREADS: u32 = 8;

/// Least share of a run that its series covers.
const COVERED: f64 = 0.9;

/// Wall times of a program as its users saw them: about a second of start and stop belongs to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallTimes {
    pub(super) alone_s: f64,
    pub(super) beside_s: f64,
}

impl WallTimes {
    pub(super) fn slowdown(self) -> f64 {
        self.beside_s / self.alone_s
    }
}

/// A program of a co-run, and the same program alone.
#[derive(Clone, Debug)]
pub(super) struct CorunProgram {
    pub(super) name: String,
    pub(super) wall: WallTimes,
    pub(super) alone: Recording,
    pub(super) beside: Recording,
}

impl CorunProgram {
    /// The slowdown of the recorded part, which leaves start and stop out on both sides.
    pub(super) fn slowdown(&self) -> f64 {
        self.beside.length_s() / self.alone.length_s()
    }

    /// Whether its counters cover the runs, which have start and stop besides.
    pub(super) fn is_covered(&self) -> bool {
        self.alone.length_s() > COVERED * self.wall.alone_s
            && self.beside.length_s() > COVERED * self.wall.beside_s
    }
}

/// Two programs that were started together.
#[derive(Clone, Debug)]
pub(super) struct Corun {
    pub(super) name: String,
    pub(super) programs: Vec<CorunProgram>,
}

/// All recordings in a folder.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// Programs that were recorded alone, by their names.
    pub(super) alone: BTreeMap<String, Recording>,
    /// Co-runs whose programs were recorded alone as well.
    pub(super) coruns: Vec<Corun>,
    /// The names of other co-runs: a series is missing, or covers too little.
    pub(super) left_out: Vec<String>,
}

/// Reads the recordings in a folder.
pub(super) fn read(folder: &Path) -> Result<Data, String> {
    let series = unpacked(&folder.join("corun_series.csv.gz"))?;
    let recordings = recordings(&series)?;
    let mut data = Data::default();
    for ((run, program), recording) in &recordings {
        if run.starts_with("solo:") {
            data.alone.insert(program.clone(), recording.clone());
        }
    }
    for corun in coruns(folder, &recordings)? {
        let mut programs = corun.programs.iter();
        if programs.len() == 2 && programs.all(CorunProgram::is_covered) {
            data.coruns.push(corun);
        } else {
            data.left_out.push(corun.name);
        }
    }
    Ok(data)
}

/// The recordings by run and program.
type Recordings = BTreeMap<(String, String), Recording>;

/// The co-runs of the summary, which lists the programs of each one after the other.
fn coruns(folder: &Path, recordings: &Recordings) -> Result<Vec<Corun>, String> {
    let path = folder.join("corun_summary.csv");
    let summary = std::fs::read_to_string(&path)
        .map_err(|why| format!("cannot read {}: {why}", path.display()))?;
    let mut coruns: Vec<Corun> = Vec::new();
    for row in rows(&summary) {
        let (run, name) = (text(&row, "run")?, text(&row, "program")?);
        if !run.starts_with("corun:") {
            continue;
        }
        if coruns.last().is_none_or(|last| last.name != run) {
            coruns.push(Corun {
                name: run.to_owned(),
                programs: Vec::new(),
            });
        }
        let recorded = |run: &str| recordings.get(&(run.to_owned(), name.to_owned()));
        let (Some(beside), Some(alone)) = (recorded(run), recorded(&format!("solo:{name}"))) else {
            continue;
        };
        let wall = WallTimes {
            alone_s: number(&row, "solo_runtime_s")?,
            beside_s: number(&row, "runtime_s")?,
        };
        if let Some(corun) = coruns.last_mut() {
            corun.programs.push(CorunProgram {
                name: name.to_owned(),
                wall,
                alone: alone.clone(),
                beside: beside.clone(),
            });
        }
    }
    Ok(coruns)
}

/// The text of a compressed file.
fn unpacked(path: &Path) -> Result<String, String> {
    let output = Command::new("gzip").arg("-dc").arg(path).output();
    let output = output.map_err(|why| format!("cannot run gzip: {why}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "cannot unpack {}: {}",
            path.display(),
            why.trim_end()
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} is no text", path.display()))
}

fn recordings(series: &str) -> Result<Recordings, String> {
    let mut recordings = BTreeMap::new();
    for row in rows(series) {
        let key = (
            text(&row, "run")?.to_owned(),
            text(&row, "program")?.to_owned(),
        );
        let counted = RecordedCounts {
            instructions: number(&row, "instructions")?,
            cycles: number(&row, "cycles")?,
            llc_accesses: number(&row, "l2_misses")?,
            reads: number(&row, "l3_misses")?,
        };
        let recording = recordings.entry(key).or_insert_with(Recording::new);
        recording.add(number(&row, "interval_s")?, counted);
    }
    Ok(recordings)
}

/// A row of a table: its fields by the names of their columns.
type Row<'a> = BTreeMap<&'a str, &'a str>;

fn text<'a>(row: &Row<'a>, column: &str) -> Result<&'a str, String> {
    let field = row.get(column).copied();
    field.ok_or_else(|| format!("the table has no column `{column}`"))
}

fn number(row: &Row<'_>, column: &str) -> Result<f64, String> {
    let text = text(row, column)?;
    text.parse()
        .map_err(|_| format!("`{text}` in column `{column}` is no number"))
}

/// The rows below the comments and the names of the columns.
fn rows(table: &str) -> Vec<Row<'_>> {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let columns = lines.next().unwrap_or_default();
    lines
        .map(|line| columns.split(',').zip(line.split(',')).collect())
        .collect()
}
