//! Times of jobs alone, for their slowdowns: measured several times before the blocks.

use super::child;
use super::options::{add, start};
use super::real::RealRuns;
use crate::whole_file::{read_own, write_whole};
use anyhow::{Context as _, Result};
use cosched_report::{SoloFile, SoloJob};

impl RealRuns<'_> {
    /// Measures the jobs of each mix alone, so many times, and keeps the medians.
    ///
    /// # Errors
    /// A job can't be run, or the user interrupted it.
    pub fn measure_alone(&self, times: u32) -> Result<()> {
        for (mix, of) in self.design.mixes.iter().enumerate() {
            if of.file.is_none() {
                continue;
            }
            let mut files = Vec::new();
            for number in 1..=times {
                files.push(self.measure_mix(mix, number, times)?);
            }
            if let Some(file) = medians(&files) {
                write_whole(&self.store.solo(mix), file.to_json().as_bytes())?;
            }
        }
        Ok(())
    }

    fn measure_mix(&self, mix: usize, number: u32, times: u32) -> Result<SoloFile> {
        let of = &self.design.mixes[mix];
        let what = format!("{}, jobs alone, {number} of {times}", of.name);
        let logs = self.store.solo(mix).with_extension(number.to_string());
        let mut words = start(of, &logs);
        add(&mut words, &["--policy", "fifo"]);
        add(&mut words, &["--solo", "only"]);
        add(&mut words, &self.design.options);
        let ended = child::run(self.command(words), &what, &what, self.user)?;
        let profiles = read_own(&logs.join("solo-profiles.json"));
        match profiles {
            Some(bytes) => SoloFile::from_json(std::str::from_utf8(&bytes)?)
                .context("what `cosched run --solo only` wrote"),
            None => Err(ended.failure(&what)),
        }
    }
}

/// Of each job the measurement with the median time, and the range of the times.
fn medians(files: &[SoloFile]) -> Option<SoloFile> {
    let first = files.first()?;
    let disturbed = files.iter().filter(|file| file.disturbed).count();
    Some(SoloFile {
        jobs: first.jobs.iter().map(|job| median(job, files)).collect(),
        disturbed: 2 * disturbed > files.len(),
        ..first.clone()
    })
}

fn median(job: &SoloJob, files: &[SoloFile]) -> SoloJob {
    let mut all: Vec<&SoloJob> = files.iter().flat_map(|file| &file.jobs).collect();
    all.retain(|other| other.name == job.name);
    all.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    let mut median = all[(all.len() - 1) / 2].clone();
    median.range_s = match all[..] {
        [least, .., greatest] => Some((least.time_s, greatest.time_s)),
        _ => None,
    };
    median
}
