//! The coefficients of `lucky` between two types of core, from runs in which jobs changed their type (lucky, section 2.2).

use super::figure::MeasuredFigure;
use super::finding::CalibrationFindings;
use crate::exit::{OrUsage as _, usage};
use crate::input::told;
use crate::run_files::{SERIES, open_series};
use anyhow::Result;
use cosched_core::model::ModelError;
use cosched_core::model::cross_core::{BothWays, CoreSample, PairSums};
use cosched_core::{Counter, CpuSet, Machine};
use cosched_report::{BackendKind, SampleRow, SeriesFile, SeriesRow};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The coefficients range over fits that each leave out one of so many parts of the pairs.
const PARTS: usize = 5;

/// Measurements of jobs on one type of core and, next, on the other.
#[derive(Default)]
struct Pairs {
    all: BothWays,
    /// All but one part.
    without: [BothWays; PARTS],
    count: usize,
}

/// The parameters of `lucky` that these runs on this machine give.
///
/// # Errors
/// A run can't be read or was elsewhere; or they have too few pairs.
pub fn fitted(runs: &[PathBuf], machine: &Machine) -> Result<CalibrationFindings> {
    if machine.core_types.len() != 2 {
        let why = "RUN: this machine has no two types of core; leave out the runs";
        return Err(usage(why));
    }
    let mut pairs = Pairs::default();
    for run in runs {
        let series = open_series(&run.join(SERIES))?;
        let header = series.header();
        if header.backend == BackendKind::Sim || header.machine.name != machine.name {
            let (run, there) = (told(run), &header.machine.name);
            return Err(usage(format!(
                "{run}: a run on {there}, not on this machine"
            )));
        }
        pairs.add_run(series)?;
    }
    pairs.coefficients().map_err(|error| {
        usage(format!(
            "RUN: {error}; name runs under lucky, with counters and three programs"
        ))
    })
}

impl Pairs {
    /// Adds two whole intervals of a job in a row, one on the fastest type of core and one on others.
    fn add_run(&mut self, series: SeriesFile) -> Result<()> {
        let big = fastest(&series.header().machine);
        let mut last = BTreeMap::new();
        for row in series {
            let (_, SeriesRow::Sampled(sample)) = row.or_usage()? else {
                continue;
            };
            let on_big = sample.cpus.is_subset(&big);
            let is_clear = on_big || sample.cpus.intersection(&big).is_empty();
            let now = rates(&sample).filter(|_| is_clear && !sample.cut_short);
            let before = last.insert(sample.task, now.map(|now| (now, on_big)));
            if let Some(((before, was_on_big), now)) = before.flatten().zip(now)
                && was_on_big != on_big
            {
                let (big, small) = if on_big { (now, before) } else { (before, now) };
                self.add(big, small)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, big: CoreSample, small: CoreSample) -> Result<(), ModelError> {
        let part = self.count % PARTS;
        self.count += 1;
        self.all.add(big, small, 1.0)?;
        for (ix, sums) in self.without.iter_mut().enumerate() {
            if ix != part {
                sums.add(big, small, 1.0)?;
            }
        }
        Ok(())
    }

    /// The least squares, as parameters of `lucky`.
    fn coefficients(&self) -> Result<CalibrationFindings, ModelError> {
        let mut findings = CalibrationFindings::default();
        self.add_way(&mut findings, "big", |sums| &sums.to_big)?;
        self.add_way(&mut findings, "small", |sums| &sums.to_small)?;
        Ok(findings)
    }

    /// Adds the coefficients of a direction: those of all pairs, with their range in all fits.
    fn add_way(
        &self,
        findings: &mut CalibrationFindings,
        to: &str,
        way: impl Fn(&BothWays) -> &PairSums,
    ) -> Result<(), ModelError> {
        let mut fits = vec![way(&self.all).fit()?.regression];
        for sums in &self.without {
            fits.push(way(sums).fit()?.regression);
        }
        let coefficients = fits.iter().map(|fit| [fit.alpha, fit.beta, fit.gamma]);
        for (ix, name) in ["alpha", "beta", "gamma_mips"].iter().enumerate() {
            let values = coefficients.clone().map(|of_fit| of_fit[ix]);
            let figure = MeasuredFigure {
                value: values.clone().next().unwrap_or_default(),
                low: values.clone().fold(f64::INFINITY, f64::min),
                high: values.fold(f64::NEG_INFINITY, f64::max),
            };
            findings.add(&format!("params.to_{to}_{name}"), figure);
        }
        Ok(())
    }
}

/// The CPUs of the fastest type.
fn fastest(machine: &Machine) -> CpuSet {
    let cpus = machine.cpus.iter().filter(|cpu| cpu.core_type == 0);
    cpus.map(|cpu| cpu.id).collect()
}

/// What a job did while on a CPU; `None` if it was not counted.
fn rates(sample: &SampleRow) -> Option<CoreSample> {
    let us = sample.cpu_time.filter(|time| time.0 > 0)?.as_us();
    let of = |counter| sample.counts[counter].map(|count| count as f64 / us);
    Some(CoreSample {
        mips: of(Counter::Instructions)?,
        llcms: of(Counter::MmReads)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_run::{JobSource, Logs, MachineOptions, OutputOptions, PolicyOptions, RunOptions};
    use cosched_sim::{PROGRAMS, builtin_machine};

    /// The pairs of a simulated run of `lucky` with the programs of the fit.
    fn simulated() -> Pairs {
        let folder = tempfile::tempdir().unwrap();
        let programs = PROGRAMS
            .iter()
            .filter(|file| file.file.contains("spec-cpu2006"));
        let jobs = programs.map(|file| {
            format!(
                "[[job]]\nprogram = \"{}\"\nwork_instructions = 2e10\n",
                file.name
            )
        });
        let mix = folder.path().join("mix.toml");
        std::fs::write(&mix, jobs.collect::<String>()).unwrap();
        let options = RunOptions {
            jobs: JobSource::Mix(mix),
            machine: MachineOptions {
                on: Some("big1-small3".to_owned()),
                ..MachineOptions::default()
            },
            policy: PolicyOptions {
                name: Some("lucky".to_owned()),
                ..PolicyOptions::default()
            },
            output: OutputOptions {
                logs: Logs::At(folder.path().join("logs")),
                quiet: true,
                ..OutputOptions::default()
            },
            leaves_signals: true,
            ..RunOptions::default()
        };
        cosched_run::run(&options).unwrap();
        let mut pairs = Pairs::default();
        let series = open_series(&folder.path().join("logs/series.jsonl")).unwrap();
        pairs.add_run(series).unwrap();
        pairs
    }

    #[test]
    fn a_run_gives_about_the_coefficients_of_solo_runs() {
        let pairs = simulated();
        assert!(pairs.count > 300, "{}", pairs.count);
        let found = pairs.coefficients().unwrap().figures;
        let fitted = builtin_machine("big1-small3").unwrap().params;
        // Those of the fit run alone. Beside three others each has less of the cache, which tilts the planes.
        for slope in [
            "to_big_alpha",
            "to_big_beta",
            "to_small_alpha",
            "to_small_beta",
        ] {
            let (_, fit) = fitted.iter().find(|(name, _)| name == slope).unwrap();
            let MeasuredFigure { value, low, high } = found[&format!("params.{slope}")];
            let ratio = value / fit.parse::<f64>().unwrap();
            assert!((0.7..1.3).contains(&ratio), "{slope}: {value}, not {fit}");
            assert!(low <= value && value <= high && low < high);
        }
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn what_gives_no_coefficients_is_refused() {
        let undetermined = Pairs::default().coefficients().err().unwrap();
        assert!(undetermined.to_string().contains("three programs"));
        let refused = fitted(&[], &Machine::uniform("one type", 2, 1));
        assert!(refused.err().unwrap().to_string().contains("two types"));
    }
}
