//! The folder of a comparison: what was compared, and a record of each run.
//!
//! ```text
//! compare.json                    what is compared
//! mixes/MIX.toml                  the mixes as they were
//! solo/MIX.json                   what their jobs do alone
//! runs/BLOCK/MIX/CANDIDATE/       run.json, the record of a run; command.json, what the program took
//! ```

#![allow(clippy::disallowed_methods)] // The only files that this crate reads.

use crate::comparison::design::{Candidate, Design, Means, Trial};
use crate::comparison::figures::{COMMAND_SCHEMA, CommandRun, ELAPSED, Outcome};
use cosched_core::ParamValue;
use cosched_report::{Record, SoloFile};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The format's name and version.
pub const COMPARE_SCHEMA: &str = "cosched.compare/1";

/// The file of the folder that says what is compared.
pub const COMPARISON_FILE: &str = "compare.json";
/// The name of the record of a run in its folder.
pub const RUN_FILE: &str = "run.json";
/// The name of what the program took as a whole.
pub const COMMAND_FILE: &str = "command.json";

/// How many runs a comparison is to make.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// Blocks; with `until_ci` the most.
    pub reps: u32,
    /// Blocks are made until each difference is known to this share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ci: Option<f64>,
    /// The relative difference that is worth seeing.
    pub worth: f64,
    /// Times that each job is measured alone.
    pub solo_runs: u32,
    /// Whether jobs are measured alone though an earlier comparison did.
    #[serde(default)]
    pub fresh_solo: bool,
    /// Blocks before the first that counts, whenever runs on this machine begin.
    #[serde(default)]
    pub warmup: u32,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            reps: 7,
            until_ci: None,
            worth: 0.02,
            solo_runs: 3,
            fresh_solo: false,
            warmup: 0,
        }
    }
}

/// What a folder is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// What is compared.
    #[serde(flatten)]
    pub design: Design,
    /// How much is to be made.
    pub wish: Wish,
    /// Of each mix, SHA-256 of what its jobs are: their commands and programs. Empty if that is not known.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Metrics that were asked for; empty for the usual ones.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The command that made it, as a shell takes it.
    pub command_line: Vec<String>,
    /// The machine's name.
    pub machine: String,
}

/// A folder of a comparison.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    /// The names of the folders of mixes and candidates, in their order.
    mixes: Vec<String>,
    candidates: Vec<String>,
    /// Of each candidate, which files a run of it must have left.
    leaves: Vec<Leaves>,
    /// What the runs are to be of.
    design: Design,
}

/// Which files a run leaves that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// Only the record.
    Record,
    /// The record, and what the program took.
    Both,
    /// Only what the program took.
    Command,
}

/// A folder that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of the system.
    #[error("{file}: {source}")]
    System {
        /// The file.
        file: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{file}: {what}; {remedy}")]
    Content {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

/// Times of a job alone that differ by more than this share are not to be trusted.
const DRIFT: f64 = 0.05;

/// What to do about a run whose record can't be read.
const AGAIN: &str = "remove it, and `cosched compare --resume` makes the run again";

/// Names for folders: what could be misread in a path is replaced, and equal names get numbers.
fn folders<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._=+".contains(c);
        let mut plain: String = name
            .chars()
            .map(|c| if is_plain(c) { c } else { '-' })
            .collect();
        if plain.trim_start_matches('.').is_empty() || plain.starts_with('.') {
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

impl Store {
    /// The folder of a comparison that may not be there yet.
    pub fn new(folder: &Path, design: &Design) -> Store {
        let leaves = |candidate: &Candidate| match candidate.means {
            Means::Command(_) => Leaves::Command,
            Means::Policy { .. } if design.is_simulated() => Leaves::Record,
            Means::Policy { .. } => Leaves::Both,
        };
        Store {
            folder: folder.to_owned(),
            mixes: folders(design.mixes.iter().map(|mix| mix.name.as_str())),
            candidates: folders(
                design
                    .candidates
                    .iter()
                    .map(|candidate| candidate.name.as_str()),
            ),
            leaves: design.candidates.iter().map(leaves).collect(),
            design: design.clone(),
        }
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// It is none of a comparison, or of another version.
    pub fn open(folder: &Path) -> Result<(Store, Manifest), StoreError> {
        let file = folder.join(COMPARISON_FILE);
        let text = read(&file)?;
        let wrong = |what: String| StoreError::Content {
            file: file.display().to_string(),
            what,
            remedy: "give the folder of a comparison, as `cosched compare` names it at its end",
        };
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            schema: String,
        }
        let head: Head = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if head.schema != COMPARE_SCHEMA {
            return Err(wrong(format!(
                "expected the schema {COMPARE_SCHEMA}, found `{}`",
                head.schema
            )));
        }
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let design = &manifest.design;
        if design.mixes.is_empty() || design.baseline >= design.candidates.len() {
            return Err(wrong(
                "it has no mix, or its baseline is no candidate".to_owned(),
            ));
        }
        Ok((Store::new(folder, design), manifest))
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file with what is compared.
    pub fn manifest(&self) -> PathBuf {
        self.folder.join(COMPARISON_FILE)
    }

    /// Where a mix is kept as it was.
    pub fn mix(&self, mix: usize) -> PathBuf {
        self.folder
            .join("mixes")
            .join(format!("{}.toml", self.mixes[mix]))
    }

    /// Where what the jobs of a mix do alone is kept.
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
    pub fn run(&self, trial: Trial) -> PathBuf {
        self.block(trial.block)
            .join(&self.mixes[trial.mix])
            .join(&self.candidates[trial.candidate])
    }

    /// What makes the times of jobs alone doubtful, in sentences.
    pub fn solo_doubts(&self) -> Vec<String> {
        let file = |mix| SoloFile::from_json(&read(&self.solo(mix)).ok()?).ok();
        let mut all = Vec::new();
        for job in (0..self.mixes.len())
            .filter_map(file)
            .flat_map(|file| file.jobs)
        {
            if let Some((least, most)) = job
                .range_s
                .filter(|(least, most)| *most > (1.0 + DRIFT) * least)
            {
                all.push(format!(
                    "{} took {least:.3} to {most:.3} s alone: its slowdowns are not sure",
                    job.name
                ));
            }
        }
        all
    }

    /// The record of a run; `None` if it was not made, or another program ran the batch.
    ///
    /// # Errors
    /// It can't be read, is none, or is that of another run.
    pub fn record(&self, trial: Trial) -> Result<Option<Record>, StoreError> {
        let file = self.run(trial).join(RUN_FILE);
        let Some(text) = read_if_there(&file)? else {
            return Ok(None);
        };
        let record = Record::from_json(&text).map_err(|error| wrong(&file, error.to_string()))?;
        check(&self.design, trial, &record).map_err(|problem| wrong(&file, problem))?;
        Ok(Some(record))
    }

    /// What a run came to; `None` if it was not made.
    ///
    /// # Errors
    /// Its record can't be read, or is none.
    pub fn outcome(&self, trial: Trial) -> Result<Option<Outcome>, StoreError> {
        let seen = || command(&self.run(trial).join(COMMAND_FILE));
        let leaves = self.leaves[trial.candidate];
        if leaves == Leaves::Command {
            return Ok(seen()?.map(|run| Outcome::of_command(trial, &run)));
        }
        let record = self.record(trial)?;
        let Some(mut outcome) = record.and_then(|record| Outcome::of_record(trial, &record)) else {
            return Ok(None);
        };
        if leaves == Leaves::Both {
            let Some(run) = seen()? else { return Ok(None) };
            outcome.figures.insert(ELAPSED.to_owned(), run.elapsed_s);
            outcome.doubts.extend(run.doubts);
        }
        Ok(Some(outcome))
    }

    /// The runs that were made, by block, in the order in which a block makes them.
    ///
    /// # Errors
    /// A record can't be read, or is none.
    pub fn outcomes(&self, design: &Design) -> Result<Vec<Outcome>, StoreError> {
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
        let system = |source| StoreError::System {
            file: folder.display().to_string(),
            source,
        };
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(system)?,
        };
        let mut blocks = Vec::new();
        for entry in entries {
            let name = entry.map_err(system)?.file_name();
            blocks.extend(
                name.to_str()
                    .and_then(|name| name.parse::<u32>().ok())
                    .filter(|&block| block > 0),
            );
        }
        blocks.sort_unstable();
        Ok(blocks)
    }
}

/// Whether a record is of the run that was to be made here, and has figures that can be compared. A copied record would be
/// judged as a run of another candidate.
fn check(design: &Design, trial: Trial, record: &Record) -> Result<(), String> {
    let other = |key: &str, found: &str, expected: &str| {
        Err(format!(
            "key `{key}`: found {found}, but the run of this folder has {expected}: it is the record of another run"
        ))
    };
    if let Means::Policy { policy, params } = &design.candidates[trial.candidate].means {
        if policy != "auto" && *policy != record.policy {
            return other("policy", &record.policy, policy);
        }
        for (name, wanted) in params {
            let found = record
                .setting
                .params
                .iter()
                .find(|param| param.name == *name);
            let (Some(found), Ok(wanted)) = (found, wanted.parse::<f64>()) else {
                continue;
            };
            if let ParamValue::Number(value) = found.value
                && value != wanted
            {
                return other(
                    &format!("setting.params.{name}"),
                    &value.to_string(),
                    &wanted.to_string(),
                );
            }
        }
    }
    let seed = design.seed_of(trial.block);
    if record.seed != seed {
        return other("seed", &record.seed.to_string(), &seed.to_string());
    }
    let mix = &design.mixes[trial.mix].sha256;
    if let Some(input) = record
        .setting
        .input
        .sha256
        .as_ref()
        .filter(|input| !mix.is_empty() && *input != mix)
    {
        return other("setting.input.sha256", input, mix);
    }
    let turnaround = record.metrics.get("turnaround_s");
    match turnaround.filter(|turnaround| **turnaround <= 0.0 && record.totals.jobs > 0) {
        Some(turnaround) => Err(format!(
            "key `metrics.turnaround_s`: expected a number above 0, found {turnaround}"
        )),
        None => Ok(()),
    }
}

/// A run whose record can't be read.
fn wrong(file: &Path, what: String) -> StoreError {
    StoreError::Content {
        file: file.display().to_string(),
        what,
        remedy: AGAIN,
    }
}

/// What is known of a program from outside, if it is known.
fn command(file: &Path) -> Result<Option<CommandRun>, StoreError> {
    let Some(text) = read_if_there(file)? else {
        return Ok(None);
    };
    let run: CommandRun =
        serde_json::from_str(&text).map_err(|error| wrong(file, error.to_string()))?;
    if run.schema != COMMAND_SCHEMA {
        return Err(wrong(
            file,
            format!(
                "expected the schema {COMMAND_SCHEMA}, found `{}`",
                run.schema
            ),
        ));
    }
    if !run.elapsed_s.is_finite() || run.elapsed_s <= 0.0 {
        return Err(wrong(
            file,
            format!(
                "elapsed_s: expected a number above 0, found {}",
                run.elapsed_s
            ),
        ));
    }
    Ok(Some(run))
}

fn read(file: &Path) -> Result<String, StoreError> {
    std::fs::read_to_string(file).map_err(|source| StoreError::System {
        file: file.display().to_string(),
        source,
    })
}

fn read_if_there(file: &Path) -> Result<Option<String>, StoreError> {
    match read(file) {
        Err(StoreError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::Mix;

    fn manifest() -> Manifest {
        let mix = |name: &str| Mix {
            name: name.to_owned(),
            file: format!("{name}.toml"),
            sha256: "0".to_owned(),
        };
        let command = Candidate {
            name: "GNU parallel".to_owned(),
            means: Means::Command("parallel < jobs".to_owned()),
        };
        Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: "0".to_owned(),
            design: Design {
                mixes: vec![mix("a"), mix("../b")],
                candidates: vec![Candidate::policy("linux"), command],
                baseline: 0,
                on: "host".to_owned(),
                seed: 1,
                options: vec!["-j8".to_owned()],
                ..Design::default()
            },
            wish: Wish::default(),
            jobs: Vec::new(),
            metrics: Vec::new(),
            command_line: Vec::new(),
            machine: "m".to_owned(),
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
        let store = Store::new(dir.path(), &manifest.design);
        assert_eq!(store.outcomes(&manifest.design).unwrap(), []);
        std::fs::write(store.manifest(), serde_json::to_string(&manifest).unwrap()).unwrap();
        let (store, read) = Store::open(dir.path()).unwrap();
        assert_eq!(read, manifest);
        let trial = Trial {
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
        let run = |schema: &str| CommandRun {
            schema: schema.to_owned(),
            command: "c".to_owned(),
            elapsed_s: 2.5,
            exit: 1,
            machine_load: None,
            errors: Some("starting\nno such file\n\n".to_owned()),
            doubts: vec!["others used the CPUs".to_owned()],
        };
        let put = |run: &CommandRun| {
            std::fs::write(
                folder.join(COMMAND_FILE),
                serde_json::to_string(run).unwrap(),
            )
        };
        put(&run(COMMAND_SCHEMA)).unwrap();
        let all = store.outcomes(&manifest.design).unwrap();
        assert_eq!(
            (all.len(), all[0].trial, all[0].figure("elapsed_s")),
            (1, trial, Some(2.5))
        );
        assert_eq!(
            all[0].doubts,
            [
                "the command exited with 1 (it wrote: no such file), so it is compared with nothing",
                "others used the CPUs"
            ]
        );
        put(&run("cosched.command/9")).unwrap();
        let error = store.outcomes(&manifest.design).unwrap_err().to_string();
        assert!(
            error.contains("command.json: expected the schema")
                && error.contains("makes the run again"),
            "{error}"
        );
        put(&CommandRun {
            elapsed_s: -1.0,
            ..run(COMMAND_SCHEMA)
        })
        .unwrap();
        let error = store.outcomes(&manifest.design).unwrap_err().to_string();
        assert!(
            error.contains("elapsed_s: expected a number above 0, found -1"),
            "{error}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
        // A run of a policy is made only with its record.
        let own = store.run(Trial {
            block: 3,
            mix: 1,
            candidate: 0,
        });
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(
            own.join(COMMAND_FILE),
            serde_json::to_string(&run(COMMAND_SCHEMA)).unwrap(),
        )
        .unwrap();
        assert_eq!(store.outcomes(&manifest.design).unwrap(), []);
        std::fs::write(own.join(RUN_FILE), "{").unwrap();
        assert!(
            store
                .outcomes(&manifest.design)
                .unwrap_err()
                .to_string()
                .contains("run.json: ")
        );
    }

    #[test]
    fn other_folders_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let told = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(dir.path().join("compare.json"), text).unwrap();
            }
            Store::open(dir.path()).unwrap_err().to_string()
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
