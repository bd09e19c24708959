//! The energy of a batch job, from the accounts of Slurm.

use cosched_report::{RunRecord, visible};
use std::process::Command;

/// A line with the energy of the batch job of a run, or with the reason for its absence; `None` outside of a batch job.
pub fn energy_line(record: &RunRecord) -> Option<String> {
    let job = &record.setting.allocation.as_ref()?.job;
    let energy = match energy_j(job) {
        Ok(joules) => format!("{joules} J"),
        Err(why) => format!("not known ({why})"),
    };
    Some(format!("energy of Slurm job {}: {energy}\n", visible(job)))
}

/// The energy of all nodes of a job in joules.
fn energy_j(job: &str) -> Result<u64, String> {
    let mut sacct = Command::new("sacct");
    sacct.args(["-n", "-P", "-X", "-o", "ConsumedEnergyRaw", "-j", job]);
    let output = sacct.output().map_err(|error| format!("sacct: {error}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    if let Some(why) = error.lines().next() {
        return Err(format!("sacct: {}", visible(why)));
    }
    let energy = String::from_utf8_lossy(&output.stdout);
    let joules = energy.trim().parse().ok().filter(|&joules| joules > 0);
    joules.ok_or_else(|| "Slurm measures none here, or the job has not ended".to_owned())
}
