//! Keeps a record of each trial, for those who want to look into the runs behind the tables: each grid of mixes, candidates and
//! seeds becomes the folder of a comparison, as `cosched compare` makes them, with a block for each seed.

use crate::error::ReproduceError;
use crate::mixes::Mix;
use cosched_compare::{
    COMPARE_SCHEMA, Candidate, Design, Manifest, Means, RUN_FILE, Store, Trial, Wish,
};
use cosched_core::{Absence, Nanos, Params, Reading, RunResult};
use cosched_report::{
    Absences, BackendKind, EnergySource, JobInfo, ParamSetting, Record, RunInfo, RunInput,
    RunOptions, RunSetting, record,
};
use cosched_sim::{MachineSpec, SimJob};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Why what a command line would tell is absent.
const NO_COMMAND: &str = "a trial of `cosched reproduce`";

/// Takes files to keep: their paths below some folder, and their contents. It can be called from any thread.
pub struct Keeper<'a> {
    write: &'a (dyn Fn(&Path, &str) -> std::io::Result<()> + Sync),
    /// The names of grids so far.
    taken: Mutex<BTreeSet<String>>,
}

impl<'a> Keeper<'a> {
    /// Keeps files by this function.
    pub fn new(write: &'a (dyn Fn(&Path, &str) -> std::io::Result<()> + Sync)) -> Keeper<'a> {
        Keeper {
            write,
            taken: Mutex::default(),
        }
    }

    fn write(&self, file: &Path, text: &str) -> Result<(), ReproduceError> {
        (self.write)(file, text).map_err(|error| ReproduceError::Keep {
            file: file.display().to_string(),
            error,
        })
    }

    /// A name for a folder that no other grid has.
    fn name(&self, what: &str) -> String {
        let plain: String = what
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        let free = |number: u32| {
            if number == 1 {
                plain.clone()
            } else {
                format!("{plain}-{number}")
            }
        };
        let Ok(mut taken) = self.taken.lock() else {
            return plain;
        };
        let name = (1..)
            .map(free)
            .find(|name| !taken.contains(name))
            .unwrap_or_default();
        taken.insert(name.clone());
        name
    }
}

/// The candidate that the others are compared with: the kernel if it is one, else the first.
fn baseline(candidates: &[Candidate]) -> usize {
    let is_kernel =
        |one: &Candidate| matches!(&one.means, Means::Policy { policy, .. } if policy == "linux");
    let plain = candidates.iter().position(|one| one.name == "linux");
    plain
        .or_else(|| candidates.iter().position(is_kernel))
        .unwrap_or(0)
}

/// The folder of a grid.
pub(crate) struct Kept<'a> {
    keeper: &'a Keeper<'a>,
    store: Store,
}

impl<'a> Kept<'a> {
    /// Begins the folder of a grid; `what` names it. Candidates are names of their own, policies and their parameters.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn begin(
        keeper: &'a Keeper<'a>,
        what: &str,
        machine: &MachineSpec,
        mixes: &[Mix],
        candidates: impl Iterator<Item = (String, &'static str, Vec<(&'static str, String)>)>,
        seeds: &[u64],
    ) -> Result<Kept<'a>, ReproduceError> {
        let candidates: Vec<Candidate> = candidates
            .map(|(name, policy, params)| Candidate {
                name,
                means: Means::Policy {
                    policy: policy.to_owned(),
                    params: params
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                },
            })
            .collect();
        let mix = |mix: &Mix| cosched_compare::Mix {
            name: mix.short().to_owned(),
            file: format!("mixes/{}.toml", mix.name),
            sha256: String::new(),
        };
        let design = Design {
            mixes: mixes.iter().map(mix).collect(),
            baseline: baseline(&candidates),
            candidates,
            on: machine.name.clone(),
            seed: seeds.first().copied().unwrap_or(1),
            ..Design::default()
        };
        let manifest = Manifest {
            schema: COMPARE_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine.name.clone(),
            wish: Wish {
                reps: seeds.len() as u32,
                solo_runs: 0,
                ..Wish::default()
            },
            jobs: Vec::new(),
            metrics: Vec::new(),
            command_line: vec!["cosched".to_owned(), "reproduce".to_owned()],
            design,
        };
        let store = Store::new(Path::new(&keeper.name(what)), &manifest.design);
        let text = serde_json::to_string_pretty(&manifest).unwrap_or_default() + "\n";
        keeper.write(&store.manifest(), &text)?;
        Ok(Kept { keeper, store })
    }

    /// Keeps the record of a mix under a candidate; `seed` is the position of its seed.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn keep(
        &self,
        (mix, candidate, seed): (usize, usize, usize),
        record: &Record,
    ) -> Result<(), ReproduceError> {
        let folder = self.store.run(Trial {
            block: seed as u32 + 1,
            mix,
            candidate,
        });
        self.keeper.write(&folder.join(RUN_FILE), &record.to_json())
    }
}

/// What a trial was.
pub(crate) struct Was<'a> {
    pub(crate) machine: &'a MachineSpec,
    pub(crate) policy: &'static str,
    pub(crate) params: &'a Params,
    pub(crate) seed: u64,
    pub(crate) quantum: Nanos,
    pub(crate) jobs: &'a [SimJob],
    pub(crate) at_once: usize,
}

/// The record of a trial.
pub(crate) fn record_of(was: &Was<'_>, result: &RunResult) -> Record {
    record(result, &info(was, result))
}

/// What is known of a trial beside its result.
fn info(was: &Was<'_>, result: &RunResult) -> RunInfo {
    // Copies of a program get numbers, as in a mix.
    let mut copies: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    was.jobs
        .iter()
        .for_each(|job| copies.entry(&job.program.name).or_default().0 += 1);
    let mut job = |spec: &cosched_core::TaskSpec, program: &str| {
        let name = match copies.get_mut(program) {
            Some((2.., number)) => {
                *number += 1;
                format!("{program}-{number}")
            }
            _ => program.to_owned(),
        };
        JobInfo {
            name,
            program: Some(program.to_owned()),
            ..JobInfo::of(spec)
        }
    };
    let jobs = result
        .tasks
        .iter()
        .zip(was.jobs)
        .map(|(task, of)| job(&task.spec, &of.program.name))
        .collect();
    let machine = was.machine.machine();
    RunInfo {
        policy: was.policy.to_owned(),
        backend: BackendKind::Sim,
        run_id: None,
        setting: setting(was, machine.all_cpus().to_string()),
        capabilities: was.machine.capabilities(&machine),
        machine: Arc::new(machine),
        seed: was.seed,
        quantum: was.quantum,
        started_at: None,
        jobs,
        counters: Some("simulated".to_owned()),
        freezing: Some("simulated".to_owned()),
        cpu_share: Reading::Absent(Absence::Simulated),
        machine_use: Reading::Absent(Absence::Simulated),
        throttling: Reading::Absent(Absence::Simulated),
        earlier: Vec::new(),
        energy_source: EnergySource::Modelled,
        warnings: Vec::new(),
    }
}

/// How it was set. What only a command line tells is absent.
fn setting(was: &Was<'_>, cpus: String) -> RunSetting {
    let mut absent = Absences::default();
    for name in ["command_line", "cwd", "host", "kernel"] {
        absent.note_option(name, None::<()>, Absence::Simulated.text());
    }
    let mut of_input = Absences::default();
    for name in ["path", "sha256"] {
        of_input.note_option(name, None::<()>, NO_COMMAND);
    }
    let mut of_options = Absences::default();
    for name in [
        "policy_lacks",
        "timeout",
        "mem_keep_bytes",
        "load",
        "log_limit_bytes",
        "solo",
        "shell",
        "emulate_small",
    ] {
        of_options.note_option(name, None::<()>, "not given");
    }
    let param = |(name, value): (&str, &cosched_core::ParamValue)| ParamSetting {
        name: name.to_owned(),
        value: value.clone(),
        origin: "param".to_owned(),
    };
    RunSetting {
        input: RunInput {
            kind: "mix".to_owned(),
            path: None,
            sha256: None,
            absent: of_input,
        },
        params: was.params.iter().map(param).collect(),
        options: RunOptions {
            policy: was.policy.to_owned(),
            jobs_at_once: was.at_once.min(was.jobs.len()),
            cpus,
            actuation: "decisions".to_owned(),
            attempts: 1,
            absent: of_options,
            ..RunOptions::default()
        },
        absent,
        ..RunSetting::default()
    }
}
