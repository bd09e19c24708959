//! The folder of a comparison: what was compared, and a record of each run.
//!
//! ```text
//! compare.json                    what is compared
//! mixes/MIX.toml, MIX.txt         the mixes and lists of commands as they were
//! commands/CANDIDATE.toml         the commands, each as a mix of one job
//! solo/MIX.json                   what their jobs do alone
//! runs/BLOCK/MIX/CANDIDATE/       the log folder of a run, with its run.json
//! ```

#![allow(clippy::disallowed_methods)] // The only files that this crate reads.

use crate::comparison::design::{CandidateRun, ComparisonDesign, ComparisonMeans};
use crate::comparison::figures::RunFigures;
use cosched_report::{RunRecord, SoloFile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The format's name and version.
pub const COMPARE_SCHEMA: &str = "cosched.compare/1";

/// The file of the folder that says what is compared.
pub const COMPARISON_FILE: &str = "compare.json";
/// The name of the record of a run in its folder.
pub const RUN_FILE: &str = "run.json";

/// The block whose runs the page shows one by one. Simulated runs of other blocks keep no series.
pub const SHOWN_BLOCK: u32 = 1;

/// The content of `compare.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// What is compared.
    #[serde(flatten)]
    pub design: ComparisonDesign,
    /// Metrics that were asked for; empty for the usual ones.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The command that made it, as a shell takes it.
    pub command_line: Vec<String>,
}

/// A folder of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonFolder {
    folder: PathBuf,
    /// The names of the folders of mixes and candidates, in their order.
    mixes: Vec<String>,
    candidates: Vec<String>,
    /// Of each mix, whether it is a list of commands.
    are_lists: Vec<bool>,
    /// Of each candidate, whether it is a command.
    are_commands: Vec<bool>,
}

/// A file of a comparison that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct StoreError {
    file: String,
    what: String,
}

impl StoreError {
    fn new(file: &Path, what: impl ToString) -> StoreError {
        StoreError {
            file: file.display().to_string(),
            what: what.to_string(),
        }
    }

    /// A folder that is not of a comparison.
    fn other(file: &Path, what: impl Display) -> StoreError {
        let remedy = "give the folder of a comparison, as `cosched compare` names it at its end";
        StoreError::new(file, format!("{what}; {remedy}"))
    }
}

/// Solo times of a job that differ by more than this share are doubtful.
const DRIFT: f64 = 0.05;

/// Names for folders: what could be misread in a path is replaced, and equal names get numbers.
fn folders<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let mut plain = name.replace(
            |c: char| !c.is_ascii_alphanumeric() && !"._=+".contains(c),
            "-",
        );
        if plain.is_empty() || plain.starts_with('.') {
            plain.insert(0, '-');
        }
        plain.truncate(100);
        let first = plain.clone();
        let mut number = 2;
        while all.contains(&plain) {
            plain = format!("{first}-{number}");
            number += 1;
        }
        all.push(plain);
    }
    all
}

impl ComparisonFolder {
    /// The folder of a comparison that may not be there yet.
    pub fn new(folder: &Path, design: &ComparisonDesign) -> ComparisonFolder {
        let candidates = &design.candidates;
        ComparisonFolder {
            folder: folder.to_owned(),
            mixes: folders(design.mixes.iter().map(|mix| mix.name.as_str())),
            candidates: folders(candidates.iter().map(|one| one.name.as_str())),
            are_lists: design.mixes.iter().map(|mix| mix.is_list).collect(),
            are_commands: candidates
                .iter()
                .map(|one| matches!(one.means, ComparisonMeans::Command(_)))
                .collect(),
        }
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// It is not the folder of a comparison, or of another version.
    pub fn open(folder: &Path) -> Result<(ComparisonFolder, Manifest), StoreError> {
        let file = folder.join(COMPARISON_FILE);
        let text = read(&file)?;
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            schema: String,
        }
        let head: Head = parse(&file, &text)?;
        if head.schema != COMPARE_SCHEMA {
            let what = format!(
                "expected the schema {COMPARE_SCHEMA}, found `{}`",
                head.schema
            );
            return Err(StoreError::other(&file, what));
        }
        let manifest: Manifest = parse(&file, &text)?;
        let design = &manifest.design;
        if design.mixes.is_empty() || design.baseline >= design.candidates.len() {
            let what = "it has no mix, or its baseline is no candidate";
            return Err(StoreError::other(&file, what));
        }
        Ok((ComparisonFolder::new(folder, design), manifest))
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The copy of a mix file or of a list of commands.
    pub fn mix(&self, mix: usize) -> PathBuf {
        let ending = if self.are_lists[mix] { "txt" } else { "toml" };
        self.folder
            .join("mixes")
            .join(format!("{}.{ending}", self.mixes[mix]))
    }

    /// The file of a command, as a mix of one job.
    pub fn command(&self, candidate: usize) -> PathBuf {
        self.folder
            .join("commands")
            .join(format!("{}.toml", self.candidates[candidate]))
    }

    /// The file with the solo times of a mix.
    pub fn solo(&self, mix: usize) -> PathBuf {
        self.folder
            .join("solo")
            .join(format!("{}.json", self.mixes[mix]))
    }

    /// The folder of a block.
    pub fn block(&self, block: u32) -> PathBuf {
        self.folder.join("runs").join(format!("{block:04}"))
    }

    /// The folder of a run.
    pub fn run(&self, trial: CandidateRun) -> PathBuf {
        self.block(trial.block)
            .join(&self.mixes[trial.mix])
            .join(&self.candidates[trial.candidate])
    }

    /// Reasons to doubt solo times, in sentences.
    pub fn solo_doubts(&self) -> Vec<String> {
        let mut all = Vec::new();
        for mix in 0..self.mixes.len() {
            let Some(file) = self.solo_file(mix) else {
                continue;
            };
            for job in file.jobs {
                if let Some((least, most)) = job.range_s
                    && most > (1.0 + DRIFT) * least
                {
                    all.push(format!(
                        "{} took {least:.3} to {most:.3} s alone: its slowdowns are not sure",
                        job.name
                    ));
                }
            }
        }
        all
    }

    fn solo_file(&self, mix: usize) -> Option<SoloFile> {
        SoloFile::from_json(&read(&self.solo(mix)).ok()?).ok()
    }

    /// The record of a run of a policy; `None` if it was not made, or a command ran the batch.
    ///
    /// # Errors
    /// It can't be read, or is none.
    pub fn record(&self, trial: CandidateRun) -> Result<Option<RunRecord>, StoreError> {
        if self.are_commands[trial.candidate] {
            return Ok(None);
        }
        self.any_record(trial)
    }

    fn any_record(&self, trial: CandidateRun) -> Result<Option<RunRecord>, StoreError> {
        let file = self.run(trial).join(RUN_FILE);
        if !file.exists() {
            return Ok(None);
        }
        let record = RunRecord::from_json(&read(&file)?).map_err(|error| {
            let remedy = "remove it, and its block is left out";
            StoreError::new(&file, format!("{error}; {remedy}"))
        })?;
        Ok(Some(record))
    }

    /// The outcome of a run; `None` if it was not made to its end.
    ///
    /// # Errors
    /// Its record can't be read, or is none.
    pub fn outcome(&self, trial: CandidateRun) -> Result<Option<RunFigures>, StoreError> {
        let Some(record) = self.any_record(trial)? else {
            return Ok(None);
        };
        Ok(if self.are_commands[trial.candidate] {
            RunFigures::of_command(trial, &record)
        } else {
            RunFigures::of_record(trial, &record)
        })
    }

    /// The runs that were made, by block, in the order in which a block makes them.
    ///
    /// # Errors
    /// A record can't be read, or is none.
    pub fn outcomes(&self, design: &ComparisonDesign) -> Result<Vec<RunFigures>, StoreError> {
        let mut all = Vec::new();
        for block in self.blocks()? {
            for trial in design.block(block) {
                all.extend(self.outcome(trial)?);
            }
        }
        Ok(all)
    }

    /// The numbers of the blocks that were begun.
    fn blocks(&self) -> Result<Vec<u32>, StoreError> {
        let folder = self.folder.join("runs");
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let entries =
            std::fs::read_dir(&folder).map_err(|error| StoreError::new(&folder, error))?;
        let mut blocks = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
            blocks.extend(number.filter(|&block| block > 0));
        }
        blocks.sort_unstable();
        Ok(blocks)
    }
}

fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::other(file, error))
}

fn read(file: &Path) -> Result<String, StoreError> {
    std::fs::read_to_string(file).map_err(|error| StoreError::new(file, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::{ComparedCandidate, ComparedMix};

    fn manifest() -> Manifest {
        let mix = |name: &str| ComparedMix {
            name: name.to_owned(),
            file: Some(format!("{name}.toml")),
            is_list: false,
        };
        let command = ComparedCandidate {
            name: "GNU parallel".to_owned(),
            means: ComparisonMeans::Command("parallel < jobs".to_owned()),
        };
        Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: "0".to_owned(),
            design: ComparisonDesign {
                mixes: vec![mix("a"), mix("../b")],
                candidates: vec![ComparedCandidate::policy("linux"), command],
                baseline: 0,
                on: "host".to_owned(),
                seed: 1,
                options: vec!["-j8".to_owned()],
            },
            metrics: Vec::new(),
            command_line: Vec::new(),
        }
    }

    #[test]
    fn names_for_folders_are_harmless_and_differ() {
        assert_eq!(
            folders(["a b", "a/b", "..", "", "quantum_s=0.1"].into_iter()),
            ["a-b", "a-b-2", "-..", "-", "quantum_s=0.1"]
        );
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = manifest();
        let store = ComparisonFolder::new(dir.path(), &manifest.design);
        assert_eq!(store.outcomes(&manifest.design).unwrap(), []);
        let text = serde_json::to_string(&manifest).unwrap();
        std::fs::write(dir.path().join(COMPARISON_FILE), text).unwrap();
        let (store, read) = ComparisonFolder::open(dir.path()).unwrap();
        assert_eq!(read, manifest);
        let trial = CandidateRun {
            block: 3,
            mix: 1,
            candidate: 1,
        };
        let folder = store.run(trial);
        assert!(
            folder.ends_with("runs/0003/-..-b/GNU-parallel"),
            "{folder:?}"
        );
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(store.outcomes(&manifest.design).unwrap(), []);
        std::fs::write(folder.join(RUN_FILE), "{").unwrap();
        let error = store.outcomes(&manifest.design).unwrap_err().to_string();
        assert!(
            error.contains("run.json: ") && error.contains("its block is left out"),
            "{error}"
        );
    }

    #[test]
    fn other_folders_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let told = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(dir.path().join("compare.json"), text).unwrap();
            }
            ComparisonFolder::open(dir.path()).unwrap_err().to_string()
        };
        assert!(told(None).contains("compare.json: No such file"));
        assert!(told(Some("[]")).contains("give the folder of a comparison"));
        assert!(
            told(Some(r#"{"schema": "cosched.compare/9"}"#)).contains("found `cosched.compare/9`")
        );
        let mut odd = manifest();
        odd.design.baseline = 7;
        assert!(
            told(Some(&serde_json::to_string(&odd).unwrap())).contains("baseline is no candidate")
        );
    }
}
