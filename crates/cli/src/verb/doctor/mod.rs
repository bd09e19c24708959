//! `cosched doctor`: what works here, what does not, why, and the remedy.

mod feature;
mod text;

use super::run::Format;
use crate::print::{print, print_json, width};
use anyhow::Result;

use clap::Args;
use cosched_core::{JobKind, auto_lacks, auto_row};
use cosched_linux::counters::{LONGEST_TRIAL, probe};
use cosched_linux::events::MachineEvents;
use cosched_linux::orphans::{Orphan, OrphanState, orphans};
use cosched_linux::root::Root;
use cosched_linux::topology;
use cosched_linux::{Allocation, Freezing, freezer_problem};
use cosched_run::{Allotted, orphan_text};
use std::process::ExitCode;

/// Show what works on this machine, what does not, and how to get it to work
#[derive(Args)]
pub struct DoctorArgs {
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
    /// Add versions for a bug report, and leave out your jobs
    #[arg(long, conflicts_with = "format")]
    report: bool,
}

pub fn run(args: DoctorArgs) -> Result<ExitCode> {
    let root = Root::default();
    let affinity = cosched_linux::affinity(0)?;
    let whole = topology::read(&root, &affinity, None)?;
    let allocation = Allocation::here().map(Allocation::with_end);
    let Allotted {
        topology,
        quota,
        by_slurm,
        warning,
    } = Allotted::of(&root, whole, allocation.as_ref());
    let counters = probe(&root, &MachineEvents::detect(&root, &[])?, LONGEST_TRIAL)?;
    let features = feature::all(&root, &topology, &counters);
    let freezing = match freezer_problem(&root) {
        None => Freezing::Cgroup,
        Some(_) => Freezing::Signals,
    };
    let capabilities = cosched_linux::capabilities(&root, &topology.machine, &counters, freezing);
    let row = auto_row(&capabilities, JobKind::Any);
    let policy = row.policy.name;
    let lacks = auto_lacks(row, &capabilities);
    let orphans: Vec<String> = orphans(&root).iter().map(held_text).collect();
    if args.format == Format::Json {
        let machine = &topology.machine;
        return print_json(&serde_json::json!({
            "auto_policy": policy,
            "auto_lacks": lacks,
            "machine": machine.name,
            "cpus": machine.all_cpus(),
            "cpu_quota": quota,
            "slurm": by_slurm,
            "cores": machine.cores,
            "llcs": machine.llcs,
            "memory_domains": machine.memory_domains,
            "core_types": machine.core_types,
            "features": features,
            "orphans": orphans,
        }));
    }
    let choice = text::choice(policy, lacks.as_deref(), width());
    let warning = warning.map(|warning| format!("warning: {}", warning.text()));
    let notes: Vec<String> = quota.into_iter().chain(by_slurm).chain(warning).collect();
    let machine = text::machine(&topology, &notes);
    let features = text::brief(&features, width());
    if args.report {
        let versions = text::versions(&root);
        return print(format!("{versions}{machine}{choice}{features}"));
    }
    let left = text::left_jobs(&orphans);
    print(format!("{machine}{choice}{features}{left}"))
}

/// A job that outlived its run, and whether it stands still.
fn held_text(orphan: &Orphan) -> String {
    match orphan.state {
        OrphanState::Runs => orphan_text(orphan),
        held => format!("{}: {}", orphan_text(orphan), held.text()),
    }
}
