//! The policy and the machine, for work and for research.

use super::super::parse::{name_value, seed, solo, words};
use super::HOST;
use crate::input::{absolute, spec};
use crate::offer;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use cosched_core::Actuation;
use cosched_run::{
    Actuator, CpuChoice, CpusPerJob, Freeze, MachineOptions, PolicyOptions, SoloTimes, ThreadsEnv,
};
use std::path::PathBuf;

/// The policy, its parameters and the machine.
#[derive(Args)]
#[command(next_help_heading = "Policy and machine")]
pub struct PolicyArgs {
    /// Simulate this machine; `host` is the real one
    ///
    /// `host` runs real processes. The name of a built-in machine (see `cosched list machines`) or a machine file (with
    /// `/` or `.toml` in its name) simulates the jobs' programs on that machine. `cmd:COMMAND` is a simulation of your own: a
    /// process that speaks JSON Lines.
    #[arg(
        long,
        default_value = "host",
        env = "COSCHED_ON",
        value_name = "NAME|FILE|cmd:CMD"
    )]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    #[arg(add = ArgValueCompleter::new(offer::machine_or_file))]
    pub on: String,

    /// Policy: see `cosched list policies`
    ///
    /// `auto` takes the best that the machine supports. `cmd:COMMAND` is a policy in a process of its own, and `events:FILE` repeats
    /// recorded decisions.
    #[arg(
        short,
        long,
        default_value = "auto",
        env = "COSCHED_POLICY",
        value_name = "P"
    )]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    #[arg(add = ArgValueCandidates::new(offer::policies))]
    pub policy: String,

    /// Use only these CPUs, as in 0-3,8
    ///
    /// `all`: all that the caller may use. Default: all, divided with the other live runs of cosched.
    #[arg(long, value_name = "LIST|all", env = "COSCHED_CPUS")]
    pub cpus: Option<CpuChoice>,

    /// Use fewer CPUs, or pause, while others on the machine want CPUs or memory
    #[arg(long, hide_short_help = true)]
    pub polite: bool,

    /// CPUs of each job
    ///
    /// N of its own, `all`, or `auto`: one of its own, and idle ones. `cpus` of a job in a mix file takes precedence.
    #[arg(
        long,
        value_name = "N|auto|all",
        default_value = "auto",
        hide_short_help = true
    )]
    pub cpus_per_job: CpusPerJob,

    /// Tell programs how many threads to start, by OMP_NUM_THREADS and the like: `auto` or `off`
    ///
    /// `auto` sets OMP_NUM_THREADS, RAYON_NUM_THREADS and GOMAXPROCS to the CPUs of the job, unless you have set them or the job
    /// has all CPUs of the machine. COSCHED_THREADS is the same number.
    #[arg(
        long,
        value_parser = words::<ThreadsEnv>(),
        default_value = "auto",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub threads_env: ThreadsEnv,

    /// Let make, ninja and cargo run as many processes as their job has CPUs
    ///
    /// Jobs get MAKEFLAGS with a jobserver of GNU make, which make 4.2, ninja 1.13 and cargo honour if they are called
    /// without -j. It has a token for each CPU of the job but one, and none while less memory than --mem-keep is available.
    #[arg(long, hide_short_help = true)]
    pub jobserver: bool,
}

/// Options for experiments.
#[derive(Args)]
#[command(next_help_heading = "Research")]
pub struct ResearchArgs {
    /// Solo times for slowdowns: measured first, or from an earlier run
    ///
    /// `measure` runs each distinct job alone first (a simulation always does). `only` does nothing else. FILE is a run record
    /// of an earlier run, or solo-profiles.json in its log folder; `oracle` needs the latter
    #[arg(
        long,
        value_name = "measure|only|FILE",
        hide_short_help = true,
        value_parser = solo
    )]
    pub solo: Option<SoloTimes>,

    /// Set a parameter of the policy, as in quantum_s=0.1; repeatable
    #[arg(
        long = "param",
        value_name = "NAME=VALUE",
        value_parser = name_value,
        hide_short_help = true
    )]
    pub params: Vec<(String, String)>,

    /// Machine profile with parameters for this machine (TOML with a table `params`)
    #[arg(
        long,
        value_name = "FILE",
        env = "COSCHED_PROFILE",
        hide_short_help = true
    )]
    pub profile: Option<PathBuf>,

    /// Seed of everything random
    #[arg(
        long,
        default_value_t = 1,
        env = "COSCHED_SEED",
        value_name = "N",
        hide_short_help = true,
        allow_negative_numbers = true,
        value_parser = seed
    )]
    pub seed: u64,

    /// Count another event, as in mm=0x4844; repeatable
    #[arg(
        id = "event",
        long = "event",
        value_name = "NAME=RAW",
        hide_short_help = true
    )]
    pub counters: Vec<String>,

    /// How jobs are frozen: by the cgroup freezer where it works, else by signals
    #[arg(
        long,
        value_parser = words::<Freeze>(),
        default_value = "auto",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub freeze: Freeze,

    /// How jobs are scheduled on this machine; `sched-ext` is a scheduler in the kernel
    ///
    /// `freezer` freezes and binds jobs. `sched-ext` loads a scheduler into the kernel, which carries out plans: nothing
    /// is frozen, and a CPU whose job sleeps goes to the next one at once. It needs Linux 6.13 with sched_ext, root, and a
    /// cosched that was built with it: see `cosched doctor`.
    #[arg(
        long,
        value_parser = words::<Actuator>(),
        default_value = "freezer",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub actuator: Actuator,

    /// How decisions are carried out; `plans` needs a simulated machine or --actuator sched-ext
    #[arg(
        long,
        value_parser = words::<Actuation>(),
        default_value = "decisions",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub actuation: Actuation,

    /// Start each job through a reaper, which notes its start and its end here, for `cosched serve`
    #[arg(long, value_name = "DIR", hide = true)]
    pub reaper: Option<PathBuf>,

    /// Write every decision with its snapshot here, a JSON object a line, for `cosched decide`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub events: Option<PathBuf>,
}

impl PolicyArgs {
    /// Their options, with those for research.
    pub fn options(self, research: &ResearchArgs) -> (MachineOptions, PolicyOptions) {
        let machine = MachineOptions {
            on: Some(self.on).filter(|on| on != HOST),
            cpus: self.cpus,
            polite: self.polite,
            jobserver: self.jobserver,
            threads_env: self.threads_env,
            cpus_per_job: self.cpus_per_job,
            events: research.counters.clone(),
            freeze: research.freeze,
            actuator: research.actuator,
            actuation: research.actuation,
            is_worker: false,
            reaper: research.reaper.as_deref().map(absolute),
        };
        let policy = PolicyOptions {
            name: Some(self.policy).filter(|name| name != spec::AUTO),
            params: research.params.clone(),
            profile: research.profile.clone(),
            seed: research.seed,
        };
        (machine, policy)
    }
}
