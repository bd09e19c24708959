//! What is compared, from the command line.

use super::args::CompareArgs;
use crate::exit::{OrUsage as _, usage};
use crate::input::spelling::unknown;
use crate::input::{self, spec, told};
use crate::verb::compare::lines;
use anyhow::Result;
use cosched_core::metric::{METRICS, metric};
use cosched_core::{Params, PolicyEntry};
use cosched_experiments::comparison::{
    ComparedCandidate, ComparedMix, ComparisonDesign, ComparisonMeans,
};
use cosched_foreign::PolicyPatience;
use cosched_run::policy_by_word;
use std::path::Path;

/// Without --policies, a first look: the kernel, and what `cosched run` would take.
const USUAL: [&str; 2] = ["linux", "auto"];

/// Reads the mixes and makes the candidates.
///
/// # Errors
/// A file, a name or a value is wrong.
pub fn design(args: &CompareArgs) -> Result<ComparisonDesign> {
    let (mixes, candidates) = match lines::command_lines(args)? {
        Some(lines) => (vec![lines::no_mix()], lines::candidates(&lines)),
        None => (mixes(args)?, candidates(args)?),
    };
    check_names(&candidates)?;
    let baseline = baseline(args, &candidates)?;
    let on = match args.on.as_str() {
        file if spec::is_path(file) => whole(Path::new(file))?,
        name => name.to_owned(),
    };
    Ok(ComparisonDesign {
        mixes,
        candidates,
        baseline,
        on,
        seed: args.seed,
        options: args.options.clone(),
    })
}

/// The position of the baseline.
fn baseline(args: &CompareArgs, candidates: &[ComparedCandidate]) -> Result<usize> {
    let wanted = args.baseline.as_deref().unwrap_or("linux");
    for (at, candidate) in candidates.iter().enumerate() {
        if candidate.name == wanted {
            return Ok(at);
        }
    }
    if args.baseline.is_none() {
        return Ok(0);
    }
    let names: Vec<&str> = candidates.iter().map(|one| &*one.name).collect();
    let problem = unknown("candidate", wanted, &names);
    Err(usage(format!("--baseline: {problem}")))
}

/// The whole path of a file, as text.
fn whole(file: &Path) -> Result<String> {
    match input::absolute(file).into_os_string().into_string() {
        Ok(name) => Ok(name),
        Err(_) => {
            let file = told(file);
            Err(usage(format!("{file}: its name is no UTF-8")))
        }
    }
}

/// Checks the name of a metric.
///
/// # Errors
/// There is none of that name.
pub fn check_metric(name: &str) -> Result<()> {
    if metric(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    Err(usage(format!(
        "--metric: {}",
        unknown("metric", name, &known)
    )))
}

/// The list of commands, or the mix files, each with a name of its own.
fn mixes(args: &CompareArgs) -> Result<Vec<ComparedMix>> {
    if let Some(list) = &args.list {
        return Ok(vec![list_of_commands(list)?]);
    }
    let mut mixes: Vec<ComparedMix> = Vec::new();
    for file in &args.inputs {
        input::read_mix(file).map_err(|error| {
            usage(format!(
                "{error}; give mix files and policies, as in `cosched compare jobs.toml -p linux,fifo`"
            ))
        })?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut name = stem.to_string();
        let mut number = 2;
        while mixes.iter().any(|mix| mix.name == name) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        mixes.push(ComparedMix {
            name,
            file: Some(whole(file)?),
            is_list: false,
        });
    }
    Ok(mixes)
}

/// A list of commands. Every run reads it.
fn list_of_commands(list: &Path) -> Result<ComparedMix> {
    if list == Path::new("-") {
        return Err(usage(
            "-f -: each run reads the list; write it to a file, as in -f commands.txt",
        ));
    }
    input::read_bytes(list)?;
    let stem = list.file_stem().unwrap_or_default().to_string_lossy();
    Ok(ComparedMix {
        name: stem.to_string(),
        file: Some(whole(list)?),
        is_list: true,
    })
}

/// All candidates: policies with the values of their parameters, and other programs.
fn candidates(args: &CompareArgs) -> Result<Vec<ComparedCandidate>> {
    let policies = policies(args)?;
    check_params(args, &policies)?;
    let mut all: Vec<ComparedCandidate> = Vec::new();
    for policy in &policies {
        let name = shown_name(policy, &policies)?;
        all.extend(swept(policy, name, &args.params)?);
    }
    for (name, line) in &args.candidate {
        all.push(ComparedCandidate {
            name: name.clone(),
            means: ComparisonMeans::Command(line.clone()),
        });
    }
    if let Some((name, _)) = args.candidate.first() {
        check_command(args, name)?;
    }
    Ok(all)
}

/// The names of the policies.
fn policies(args: &CompareArgs) -> Result<Vec<&str>> {
    if args.policies.is_empty() {
        let usual = if args.candidate.is_empty() {
            &USUAL[..]
        } else {
            &["auto"]
        };
        return Ok(usual.to_vec());
    }
    for name in &args.policies {
        if name != "auto" {
            policy(name)?;
        }
    }
    Ok(args.policies.iter().map(String::as_str).collect())
}

fn policy(name: &str) -> Result<&'static PolicyEntry> {
    let found = policy_by_word(name, PolicyPatience::Simulated);
    found.map_err(|problem| usage(format!("--policies: {problem}")))
}

/// The name of a policy in tables: a command's is its own, unless another of the policies has the same.
fn shown_name<'a>(word: &'a str, all: &[&str]) -> Result<&'a str> {
    if word == "auto" {
        return Ok(word);
    }
    let name = policy(word)?.name;
    let namesakes = all
        .iter()
        .filter(|other| **other != "auto" && policy(other).is_ok_and(|entry| entry.name == name));
    Ok(if namesakes.count() > 1 { word } else { name })
}

/// Whether a policy has a parameter of this name.
fn has_param(name: &str, param: &str) -> bool {
    policy(name).is_ok_and(|entry| entry.params.iter().any(|spec| spec.name == param))
}

/// Checks that each parameter is one of some policy.
fn check_params(args: &CompareArgs, policies: &[&str]) -> Result<()> {
    for (name, _) in &args.params {
        if !policies.iter().any(|policy| has_param(policy, name)) {
            return Err(usage(format!(
                "--param: none of the policies has a parameter `{name}`; see `cosched list policies NAME`"
            )));
        }
    }
    Ok(())
}

/// A policy with each combination of the values of its parameters.
fn swept(of: &str, name: &str, params: &[(String, String)]) -> Result<Vec<ComparedCandidate>> {
    let first = ComparedCandidate {
        name: name.to_owned(),
        ..ComparedCandidate::policy(of)
    };
    let mut all = vec![first];
    for (name, values) in params {
        if !has_param(of, name) {
            continue;
        }
        let entry = policy(of)?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        for value in &values {
            let setting = [(name.clone(), (*value).to_owned())];
            Params::resolve(entry.name, entry.params, &setting)
                .or_usage_in(format!("--param {name}"))?;
        }
        all = all
            .iter()
            .flat_map(|one| one.sweep(name, &values))
            .collect();
    }
    Ok(all)
}

/// Checks that there are at least two candidates, each with a name of its own.
fn check_names(all: &[ComparedCandidate]) -> Result<()> {
    for (at, one) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == one.name) {
            return Err(usage(format!(
                "two candidates are called `{}`; leave one of them out",
                one.name
            )));
        }
    }
    let [only] = all else { return Ok(()) };
    let name = &only.name;
    let both = if name == "linux" {
        "linux,auto".to_owned()
    } else {
        format!("linux,{name}")
    };
    Err(usage(format!(
        "there is only one candidate, {name}; name another, as in --policies {both}"
    )))
}

/// Checks that a command can be compared: it is a real program that runs one batch.
fn check_command(args: &CompareArgs, name: &str) -> Result<()> {
    if args.on != "host" {
        return Err(usage(format!(
            "--candidate {name}: a command can't run in a simulation; leave --on out"
        )));
    }
    if args.inputs.len() > 1 {
        return Err(usage(format!(
            "--candidate {name}: a command runs one batch; compare one mix at a time"
        )));
    }
    Ok(())
}
