//! What is compared, from the command line.

use super::args::CompareArgs;
use super::options;
use crate::exit::usage;
use crate::input::near::did_you_mean;
use crate::input::{self, spec, told};
use cosched_core::metric::METRICS;
use cosched_core::{Params, find_policy};
use cosched_experiments::comparison::{Candidate, Design, ELAPSED, InputFile, Judge, Means, Mix};
use cosched_report::visible;
use cosched_run::sha256;
use std::path::{Path, PathBuf};

/// Without --policies, a first look: the kernel, and what `cosched run` would take.
const USUAL: [&str; 2] = ["linux", "auto"];

/// Reads the mixes and makes the candidates.
///
/// # Errors
/// A file, a name or a value is wrong.
pub(super) fn design(args: &CompareArgs) -> anyhow::Result<Design> {
    let candidates = candidates(args)?;
    let baseline = match &args.baseline {
        Some(name) => candidates
            .iter()
            .position(|one| one.name == *name)
            .ok_or_else(|| {
                let known: Vec<&str> = candidates.iter().map(|one| one.name.as_str()).collect();
                usage(format!(
                    "--baseline: no candidate is called `{name}`{}; there are {}",
                    did_you_mean(name, known.iter().copied()),
                    known.join(", ")
                ))
            })?,
        None => candidates
            .iter()
            .position(|one| one.name == "linux")
            .unwrap_or(0),
    };
    let passed = options::check(&args.options)?;
    let mixes = mixes(&args.mixes)?;
    let on = match on(args) {
        file if spec::is_path(file) => whole(Path::new(file))?,
        name => name.to_owned(),
    };
    let folder =
        std::env::current_dir().map_err(|error| usage(format!("the current folder: {error}")))?;
    let environment = options::heard(!args.candidate.is_empty())?;
    let profile = passed.or_else(|| environment.get("COSCHED_PROFILE").map(PathBuf::from));
    let mut design = Design {
        mixes,
        candidates,
        baseline,
        on,
        seed: args.seed,
        options: args.options.clone(),
        folder: whole(&folder)?,
        environment,
        files: Vec::new(),
    };
    design.files = files(&design, profile.as_deref())?;
    Ok(design)
}

/// The machine, as the user names it.
pub(super) fn on(args: &CompareArgs) -> &str {
    args.on.as_deref().unwrap_or("host")
}

/// The whole path of a file, as text.
fn whole(file: &Path) -> anyhow::Result<String> {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    whole.into_os_string().into_string().map_err(|_| {
        usage(format!(
            "{}: its name is no UTF-8; give it another",
            told(file)
        ))
    })
}

/// What runs read beside the mixes: the machine, the programs of the mixes in a simulation, and the profile.
fn files(design: &Design, profile: Option<&Path>) -> anyhow::Result<Vec<InputFile>> {
    let mut all: Vec<PathBuf> = profile.map(Path::to_owned).into_iter().collect();
    if design.is_simulated() {
        all.extend(spec::is_path(&design.on).then(|| PathBuf::from(&design.on)));
        for mix in &design.mixes {
            let file = Path::new(&mix.file);
            let text = input::read_mix(file).map_err(|error| usage(error.to_string()))?;
            let folder = file.parent().unwrap_or(Path::new("/"));
            let mix = input::mix::parse(&text, &told(file))?;
            all.extend(
                mix.programs()
                    .filter_map(|name| spec::program_file(name, folder)),
            );
        }
    }
    all.sort();
    all.dedup();
    let read = |file: &PathBuf| {
        let text = input::read_spec(file).map_err(|error| usage(error.to_string()))?;
        Ok(InputFile {
            file: whole(file)?,
            sha256: sha256(text.as_bytes()),
        })
    };
    all.iter().map(read).collect()
}

/// Checks that all files are what they were when the comparison began, and that its folder is there.
///
/// # Errors
/// One of them is not.
pub(super) fn unchanged(design: &Design) -> anyhow::Result<()> {
    if !design.folder.is_empty() && !Path::new(&design.folder).is_dir() {
        return Err(usage(format!(
            "{}: this comparison began in this folder, and it is not there any more",
            visible(&design.folder)
        )));
    }
    let mixes = design.mixes.iter().map(|mix| {
        (
            &mix.file,
            &mix.sha256,
            input::read_mix(Path::new(&mix.file)),
        )
    });
    let files = design.files.iter().map(|one| {
        (
            &one.file,
            &one.sha256,
            input::read_spec(Path::new(&one.file)),
        )
    });
    for (file, sha, read) in mixes.chain(files) {
        let text = read.map_err(|error| usage(error.to_string()))?;
        if sha256(text.as_bytes()) != *sha {
            return Err(usage(format!(
                "{}: it was changed since this comparison began; begin another one, with another --out",
                visible(file)
            )));
        }
    }
    Ok(())
}

/// Checks the name of a metric.
///
/// # Errors
/// There is none of that name.
pub(super) fn check_metric(name: &str) -> anyhow::Result<()> {
    if Judge::named(name).is_some() {
        return Ok(());
    }
    let known = METRICS.iter().map(|metric| metric.name).chain([ELAPSED]);
    Err(usage(format!(
        "--metric: there is no metric `{name}`{}; there are {}",
        did_you_mean(name, known.clone()),
        known.collect::<Vec<_>>().join(", ")
    )))
}

/// The mix files, each with a name of its own.
fn mixes(files: &[std::path::PathBuf]) -> anyhow::Result<Vec<Mix>> {
    let mut mixes: Vec<Mix> = Vec::new();
    for file in files {
        let text = input::read_mix(file).map_err(|error| {
            usage(format!(
                "{error}; give mix files, as in `cosched compare jobs.toml`"
            ))
        })?;
        let stem = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut name = stem.clone();
        let mut number = 2;
        while mixes.iter().any(|mix| mix.name == name) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        mixes.push(Mix {
            name,
            file: whole(file)?,
            sha256: sha256(text.as_bytes()),
        });
    }
    Ok(mixes)
}

/// All candidates: policies with the values of their parameters, and other programs.
fn candidates(args: &CompareArgs) -> anyhow::Result<Vec<Candidate>> {
    let mut policies: Vec<&str> = args.policies.iter().map(String::as_str).collect();
    if policies.is_empty() {
        policies.extend(if args.candidate.is_empty() {
            &USUAL[..]
        } else {
            &["auto"]
        });
    }
    let mut all: Vec<Candidate> = Vec::new();
    let mut unused: Vec<&str> = args.params.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(name) = policies
        .iter()
        .find(|&&name| name != "auto" && find_policy(name).is_none())
    {
        let known = spec::policy_names();
        return Err(usage(format!(
            "--policies: there is no policy `{name}`{}; there are {}, as in --policies linux,fair",
            did_you_mean(name, known.iter().copied()),
            known.join(", ")
        )));
    }
    for policy in policies {
        let entry = find_policy(policy);
        let mut of_policy = vec![Candidate::policy(policy)];
        for (name, values) in &args.params {
            let Some(entry) =
                entry.filter(|entry| entry.params.iter().any(|spec| spec.name == name))
            else {
                continue;
            };
            unused.retain(|other| other != name);
            let values: Vec<&str> = values.split(',').map(str::trim).collect();
            for value in &values {
                Params::check_setting(
                    entry.name,
                    entry.params,
                    &(name.clone(), (*value).to_owned()),
                )
                .map_err(|error| usage(format!("--param {name}: {error}")))?;
            }
            of_policy = of_policy
                .iter()
                .flat_map(|one| one.sweep(name, &values))
                .collect();
        }
        all.extend(of_policy);
    }
    if let Some(name) = unused.first() {
        return Err(usage(format!(
            "--param: none of the policies has a parameter `{name}`; `cosched list policies NAME` shows them"
        )));
    }
    let commands = args.candidate.iter();
    all.extend(commands.map(|(name, line)| Candidate {
        name: name.clone(),
        means: Means::Command(line.clone()),
    }));
    for (at, one) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == one.name) {
            return Err(usage(format!(
                "two candidates are called `{}`; leave one of them out",
                one.name
            )));
        }
    }
    if all.len() < 2 {
        let name = all.first().map_or("", |one| one.name.as_str());
        let both = if name == "linux" {
            "linux,auto".to_owned()
        } else {
            format!("linux,{name}")
        };
        return Err(usage(format!(
            "there is only one candidate, {name}; name what it is compared with, as in --policies {both}"
        )));
    }
    let is_command = |one: &&Candidate| matches!(one.means, Means::Command(_));
    if let Some(command) = all.iter().find(is_command).filter(|_| on(args) != "host") {
        return Err(usage(format!(
            "--candidate {}: a command runs real programs, and --on {} simulates them; leave one of them out",
            command.name,
            told(Path::new(on(args)))
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
