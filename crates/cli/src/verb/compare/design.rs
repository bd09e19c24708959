//! What is compared, from the command line.

use super::args::CompareArgs;
use crate::exit::usage;
use crate::input::near::did_you_mean;
use crate::input::{self, told};
use crate::sha256::sha256;
use cosched_compare::{Candidate, Design, ELAPSED, Judge, Means, Mix};
use cosched_core::metric::METRICS;
use cosched_core::{Params, find_policy};
use std::path::Path;

/// Without --policies, a first look: the kernel, and what `cosched run` would take.
const USUAL: [&str; 2] = ["linux", "auto"];

/// Reads the mixes and makes the candidates.
///
/// # Errors
/// A file, a name or a value is wrong.
pub(super) fn design(args: &CompareArgs) -> anyhow::Result<Design> {
    let candidates = candidates(args)?;
    let baseline = match &args.baseline {
        Some(name) => candidates.iter().position(|one| one.name == *name).ok_or_else(|| {
            let known: Vec<&str> = candidates.iter().map(|one| one.name.as_str()).collect();
            usage(format!(
                "--baseline: no candidate is called `{name}`{}; there are {}",
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            ))
        })?,
        None => candidates.iter().position(|one| one.name == "linux").unwrap_or(0),
    };
    if let Some(name) = args.metrics.iter().find(|name| Judge::named(name).is_none()) {
        let known = METRICS.iter().map(|metric| metric.name).chain([ELAPSED]);
        return Err(usage(format!(
            "--metric: there is no metric `{name}`{}; there are {}",
            did_you_mean(name, known.clone()),
            known.collect::<Vec<_>>().join(", ")
        )));
    }
    let mixes = mixes(&args.mixes)?;
    Ok(Design { mixes, candidates, baseline, on: args.on.clone(), seed: args.seed, options: args.options.clone() })
}

/// The mix files, each with a name of its own.
fn mixes(files: &[std::path::PathBuf]) -> anyhow::Result<Vec<Mix>> {
    let mut mixes: Vec<Mix> = Vec::new();
    for file in files {
        let text = input::read_mix(file)
            .map_err(|error| usage(format!("{error}; give mix files, as in `cosched compare jobs.toml`")))?;
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut name = stem.clone();
        let mut number = 2;
        while mixes.iter().any(|mix| mix.name == name) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let Some(file) = whole.to_str() else {
            return Err(usage(format!("{}: its name is no UTF-8; give it another", told(file))));
        };
        mixes.push(Mix { name, file: file.to_owned(), sha256: sha256(text.as_bytes()) });
    }
    Ok(mixes)
}

/// All candidates: policies with the values of their parameters, and other programs.
fn candidates(args: &CompareArgs) -> anyhow::Result<Vec<Candidate>> {
    let mut policies: Vec<&str> = args.policies.iter().map(String::as_str).collect();
    if policies.is_empty() {
        policies.extend(if args.candidate.is_empty() { &USUAL[..] } else { &["auto"] });
    }
    let mut all: Vec<Candidate> = Vec::new();
    let mut unused: Vec<&str> = args.params.iter().map(|(name, _)| name.as_str()).collect();
    for policy in policies {
        let entry = find_policy(policy);
        let mut of_policy = vec![Candidate::policy(policy)];
        for (name, values) in &args.params {
            let Some(entry) = entry.filter(|entry| entry.params.iter().any(|spec| spec.name == name)) else { continue };
            unused.retain(|other| other != name);
            let values: Vec<&str> = values.split(',').map(str::trim).collect();
            for value in &values {
                Params::check_setting(entry.name, entry.params, &(name.clone(), (*value).to_owned()))
                    .map_err(|error| usage(format!("--param {name}: {error}")))?;
            }
            of_policy = of_policy.iter().flat_map(|one| one.sweep(name, &values)).collect();
        }
        all.extend(of_policy);
    }
    if let Some(name) = unused.first() {
        return Err(usage(format!(
            "--param: none of the policies has a parameter `{name}`; `cosched list policies NAME` shows them"
        )));
    }
    let commands = args.candidate.iter();
    all.extend(commands.map(|(name, line)| Candidate { name: name.clone(), means: Means::Command(line.clone()) }));
    for (at, one) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == one.name) {
            return Err(usage(format!("two candidates are called `{}`; leave one of them out", one.name)));
        }
    }
    if all.len() < 2 {
        return Err(usage(format!(
            "there is only one candidate, {}; name what it is compared with, as in --policies linux,{0}",
            all.first().map_or("", |one| &one.name)
        )));
    }
    let is_command = |one: &&Candidate| matches!(one.means, Means::Command(_));
    if let Some(command) = all.iter().find(is_command).filter(|_| args.on != "host") {
        return Err(usage(format!(
            "--candidate {}: a command runs real programs, and --on {} simulates them; leave one of them out",
            command.name,
            told(Path::new(&args.on))
        )));
    }
    if let Some(command) = all.iter().find(is_command).filter(|_| args.mixes.len() > 1) {
        return Err(usage(format!(
            "--candidate {}: it runs one batch, and there are {} mixes; compare one mix at a time",
            command.name,
            args.mixes.len()
        )));
    }
    Ok(all)
}
