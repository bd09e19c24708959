//! Runs over several nodes.

use super::given::words_of;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use cosched_run::{NodeOptions, Nodes, Show};
use std::ffi::OsString;

/// Options that are for the runs on the nodes.
const FOR_WORKERS: [&str; 18] = [
    "cpus",
    "policy",
    "params",
    "profile",
    "seed",
    "event",
    "freeze",
    "actuator",
    "cpus_per_job",
    "jobs",
    "mem_keep",
    "load",
    "nice",
    "grace",
    "max_pause",
    "polite",
    "jobserver",
    "threads_env",
];

/// Nodes of a run.
#[derive(Args)]
#[command(next_help_heading = "Policy and machine")]
pub struct NodeArgs {
    /// Nodes that run the jobs: slurm, or ssh:HOST,HOST
    ///
    /// `slurm`: those of the allocation. Each node runs a cosched of its own, which decides for the node by --policy, --jobs and the like. ssh needs
    /// `cosched` in PATH there, and logs in without a password. `local:2` starts two on this machine, to try it out.
    #[arg(long, value_name = "WHICH", conflicts_with = "join")]
    nodes: Option<Nodes>,

    /// How many times a job starts again because its node was lost
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        requires = "nodes",
        hide_short_help = true
    )]
    retries_lost: u32,

    /// Words for the runs on the nodes.
    #[arg(skip)]
    worker: Vec<OsString>,
}

impl NodeArgs {
    /// Notes the options that are for the runs on the nodes.
    pub fn note_worker(&mut self, matches: &ArgMatches) {
        self.worker = words_of(matches, |id, source| {
            source != ValueSource::DefaultValue && FOR_WORKERS.contains(&id)
        });
    }

    /// The nodes; `None` for this machine alone. `show` is how the jobs' output is shown.
    pub fn options(self, show: Option<Show>) -> Option<NodeOptions> {
        let mut worker = self.worker;
        worker.push("--history=off".into());
        if matches!(show, Some(Show::Live | Show::Tag)) {
            worker.push("--output=live".into());
        }
        Some(NodeOptions {
            which: self.nodes?,
            worker,
            retries_lost: self.retries_lost,
        })
    }
}
