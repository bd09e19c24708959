//! A batch job whose script is gone. When the first node of a job dies, Slurm takes that node away and lets the job run on,
//! without its script. A worker on another node requeues the job.

use super::follow::{ask, field};
use cosched_linux::{Allocation, slurm_hosts};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait for Slurm to notice the death of a node. By default it takes 5 minutes.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Time between two questions.
const PAUSE: Duration = Duration::from_secs(5);
/// Number of nodes that ask. Thousands must not.
const ASKING: usize = 4;

/// Requeues the batch job of this worker, whose coordinator is lost, if Slurm says that the node of the script is dead. Returns
/// when the job has ended or has no script, or Slurm does not say so in time.
pub fn requeue_without_script() {
    let Some(allocation) = Allocation::here().filter(|_| is_asking()) else {
        return;
    };
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match ask(&allocation.job) {
            Err(_) => return,
            Ok(Some(job)) if has_ended(&job, &allocation) => return,
            Ok(Some(job)) if lacks_script(&job) => {
                // Another worker may have been faster.
                let mut scontrol = Command::new("scontrol");
                let _ = scontrol.args(["requeue", &allocation.job]).output();
                return;
            }
            Ok(_) => sleep(PAUSE),
        }
    }
}

/// Whether the job has ended, or started again, or never had a script.
fn has_ended(job: &str, allocation: &Allocation) -> bool {
    field(job, "JobState") != "RUNNING"
        || field(job, "Restarts") != allocation.restarts.to_string()
        || field(job, "BatchFlag") == "0"
}

/// Whether this is one of the nodes that ask.
fn is_asking() -> bool {
    let list = std::env::var("SLURM_JOB_NODELIST").unwrap_or_default();
    let own = std::env::var("SLURMD_NODENAME").unwrap_or_default();
    slurm_hosts(&list)
        .unwrap_or_default()
        .iter()
        .take(ASKING)
        .any(|host| *host == own)
}

/// Whether the node of the script is no longer among the nodes of the job.
fn lacks_script(job: &str) -> bool {
    let left = slurm_hosts(field(job, "NodeList")).unwrap_or_default();
    let of_script = field(job, "BatchHost");
    !of_script.is_empty() && !left.is_empty() && left.iter().all(|host| host != of_script)
}
