//! What jobs do alone, for their slowdowns: measured several times, and kept for later comparisons of the same jobs.

use super::child::{Children, What};
use super::runs::{Runs, Stopped, cosched_run, failure, killed};
use crate::whole_file::{read_own, write_whole};
use anyhow::Context as _;
use cosched_experiments::comparison::Wish;
use cosched_report::{SoloFile, SoloJob};
use cosched_run::sha256;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where what is measured is kept; `None` if there is no place for it.
fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let folder = named.or_else(|| {
        Some(std::env::home_dir()?.join(".cache")).filter(|folder| folder.is_absolute())
    })?;
    Some(folder.join("cosched/solo"))
}

/// What is known of one mix.
fn parse(bytes: &[u8]) -> Option<SoloFile> {
    SoloFile::from_json(std::str::from_utf8(bytes).ok()?).ok()
}

/// What the jobs of a mix are: their commands, what they are given, the files of their programs, and the machine. `plan` is
/// what `--dry-run --format json` prints.
fn content(plan: &serde_json::Value, options: &[String]) -> String {
    let text = format!(
        "{} {} {} {}",
        plan["machine"],
        plan["cpus"],
        options.join(" "),
        jobs(plan)
    );
    sha256(text.as_bytes())
}

/// What the jobs of a mix are, as SHA-256: their commands, and the files of their programs.
pub(super) fn jobs(plan: &serde_json::Value) -> String {
    let of = |job: &serde_json::Value| {
        ["name", "command", "program", "identity", "cpus"]
            .map(|key| job[key].to_string())
            .join(" ")
    };
    let jobs: Vec<String> = plan["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(of)
        .collect();
    sha256(jobs.join("\n").as_bytes())
}

/// Of each job the measurement with the median time, and the range of the times.
fn medians(files: Vec<SoloFile>) -> Option<SoloFile> {
    let (first, rest) = files.split_first()?;
    let jobs = first.jobs.iter().map(|job| {
        let same = rest
            .iter()
            .flat_map(|file| &file.jobs)
            .filter(|other| other.name == job.name);
        let mut all: Vec<&SoloJob> = std::iter::once(job).chain(same).collect();
        all.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        let range_s = Some((all[0].time_s, all[all.len() - 1].time_s)).filter(|_| all.len() > 1);
        SoloJob {
            range_s,
            ..all[(all.len() - 1) / 2].clone()
        }
    });
    let disturbed = files.iter().filter(|file| file.disturbed).count() * 2 > files.len();
    Some(SoloFile {
        jobs: jobs.collect(),
        disturbed,
        ..first.clone()
    })
}

impl Runs<'_> {
    /// Makes sure that the store has what the jobs of each mix do alone. No further measurement begins after `until`.
    ///
    /// # Errors
    /// A job can't be run.
    pub(super) fn solo(
        &self,
        wish: &Wish,
        until: Option<Instant>,
        plans: &[serde_json::Value],
    ) -> anyhow::Result<Stopped> {
        let Wish {
            solo_runs: times,
            fresh_solo: fresh,
            ..
        } = *wish;
        if self.design.is_simulated() || times == 0 {
            return Ok(Stopped::No);
        }
        for (mix, plan) in plans.iter().enumerate() {
            let kept = cache()
                .map(|folder| folder.join(format!("{}.json", content(plan, &self.design.options))));
            let place = self.store.solo(mix);
            if read_own(&place).and_then(|bytes| parse(&bytes)).is_none() {
                let known = kept
                    .as_deref()
                    .filter(|_| !fresh)
                    .and_then(read_own)
                    .filter(|bytes| parse(bytes).is_some());
                let folder = place.parent().context("a folder")?;
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("can't make {}", folder.display()))?;
                let content = match known {
                    Some(bytes) => {
                        self.screen.say(&format!(
                            "cosched: {}: times alone are known from an earlier comparison",
                            self.mix_name(mix)
                        ));
                        bytes
                    }
                    None => {
                        let files = match self.measure(mix, times, until)? {
                            Ok(files) => files,
                            Err(stopped) => return Ok(stopped),
                        };
                        let file = medians(files).context("no job could be measured alone")?;
                        let text = file.to_json().into_bytes();
                        if let Some(kept) = &kept {
                            // It only saves time. Where it can't be kept it is measured again.
                            let _ = kept.parent().map(std::fs::create_dir_all);
                            let _ = write_whole(kept, &text);
                        }
                        text
                    }
                };
                write_whole(&place, &content)?;
            }
        }
        Ok(Stopped::No)
    }

    fn mix_name(&self, mix: usize) -> &str {
        &self.design.mixes[mix].name
    }

    /// Runs each distinct job of a mix alone, so many times; or why it did not.
    fn measure(
        &self,
        mix: usize,
        times: u32,
        until: Option<Instant>,
    ) -> anyhow::Result<Result<Vec<SoloFile>, Stopped>> {
        let mut files = Vec::new();
        for number in 1..=times {
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Err(Stopped::Time));
            }
            let folder = self.store.solo(mix).with_extension(number.to_string());
            if folder.exists() {
                std::fs::remove_dir_all(&folder)
                    .with_context(|| format!("can't remove {}", folder.display()))?;
            }
            let what = format!("{}, jobs alone, {number} of {times}", self.mix_name(mix));
            let mut command = cosched_run(self.design, mix);
            command
                .args([
                    "--policy",
                    "fifo",
                    "--solo",
                    "only",
                    "--history",
                    "off",
                    "--quiet",
                    "--logs",
                ])
                .arg(&folder);
            command.args(&self.design.options);
            let children = Children::new(self.store.folder());
            let ended = match self.watched(&what, &children, || {
                children.run(command, What::Run, self.signals)
            })? {
                Ok(ended) => ended,
                Err(signal) => return Ok(Err(Stopped::Signal(signal))),
            };
            if let Some(error) = killed(&ended, &what, self.store.folder()) {
                return Err(error);
            }
            let file = folder.join("solo-profiles.json");
            let profiles = read_own(&file).and_then(|bytes| parse(&bytes));
            files.push(profiles.ok_or_else(|| failure(&ended, &what))?);
        }
        Ok(Ok(files))
    }
}

/// The folder of a comparison that was given no name.
pub(super) fn default_folder(stamp: &str) -> PathBuf {
    Path::new("cosched-compare").join(stamp)
}
