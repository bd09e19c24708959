//! The coefficients of `lucky` for a machine, from runs on it in which jobs changed their type of core.

use crate::series::{Row, SampleRow, SeriesError, SeriesReader};
use cosched_core::model::ModelError;
use cosched_core::model::cross_core::{BothWays, CoreSample, PairSums};
use cosched_core::{Counter, CpuSet, Machine};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Adds the pairs of a run: two whole intervals of a job in a row, one on the fastest type of core and one on others.
///
/// # Errors
/// The series can't be read.
pub fn add_pairs<R: BufRead>(
    pairs: &mut BothWays,
    series: SeriesReader<R>,
) -> Result<(), SeriesError> {
    let big = big_cpus(&series.header().machine);
    let mut last = BTreeMap::new();
    for row in series {
        let (_, Row::Sampled(sample)) = row? else {
            continue;
        };
        let on_big = sample.cpus.is_subset(&big);
        let is_clear = on_big || sample.cpus.intersection(&big).is_empty();
        let now = rates(&sample).filter(|_| is_clear && !sample.cut_short);
        let before = last.insert(sample.task, now.map(|now| (now, on_big)));
        // Rates of whole numbers are in the range of the model.
        _ = match (before.flatten(), now) {
            (Some((before, false)), Some(now)) if on_big => pairs.add(now, before, 1.0),
            (Some((before, true)), Some(now)) if !on_big => pairs.add(before, now, 1.0),
            _ => Ok(()),
        };
    }
    Ok(())
}

/// The CPUs of the fastest type.
fn big_cpus(machine: &Machine) -> CpuSet {
    let fastest = machine.cpus.iter().map(|cpu| cpu.core_type).min();
    let cpus = machine.cpus.iter();
    cpus.filter(|cpu| Some(cpu.core_type) == fastest)
        .map(|cpu| cpu.id)
        .collect()
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

/// The fitted parameters of `lucky` as options of `cosched run`, and how well they fit.
///
/// # Errors
/// The pairs determine no coefficients.
pub fn core_types_text(pairs: &BothWays) -> Result<String, ModelError> {
    let (options, big) = of_direction("big", &pairs.to_big)?;
    let (more, small) = of_direction("small", &pairs.to_small)?;
    Ok(format!("{options} {more}\n{big}{small}"))
}

fn of_direction(to: &str, pairs: &PairSums) -> Result<(String, String), ModelError> {
    let fit = pairs.fit()?;
    let found = fit.regression;
    let options = [
        ("alpha", found.alpha),
        ("beta", found.beta),
        ("gamma_mips", found.gamma),
    ]
    .map(|(name, value)| format!("--param to_{to}_{name}={value:.4}"));
    let fits = format!(
        "to a {to} core: {} pairs, root mean square of the residuals {:.0} MIPS\n",
        pairs.count(),
        fit.residual_mips
    );
    Ok((options.join(" "), fits))
}
