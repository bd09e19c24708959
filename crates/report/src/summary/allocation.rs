//! What a batch job of Slurm asked for, and what the jobs of the run used of it.

use super::page::Page;
use crate::record::RunRecord;
use crate::setting::AllocationSetting;
use crate::text::{bytes, count, decimal, seconds, visible};

/// Adds the CPUs and the memory of the batch job, if the run was in one.
pub(super) fn allocation(record: &RunRecord, page: &mut Page) {
    let Some(asked) = &record.setting.allocation else {
        return;
    };
    let job = visible(&asked.job);
    let cpus = cpus(asked, record);
    let memory = memory(asked, record);
    page.plain(&format!("Slurm job {job} asked for {cpus}; {memory}"));
}

fn cpus(asked: &AllocationSetting, record: &RunRecord) -> String {
    let Some(cpus) = asked.cpus else {
        return "CPUs of unknown number".to_owned();
    };
    let nodes = match asked.nodes {
        Some(nodes) if nodes > 1 => format!(" on {}", count(nodes, "node")),
        _ => String::new(),
    };
    let cpus_text = count(cpus, "CPU");
    let Some(&time) = record.metrics.get("turnaround_s") else {
        return format!("{cpus_text}{nodes}");
    };
    let text = format!("{cpus_text}{nodes} for {}", seconds(time));
    match used_s(record) {
        Some(used) if time > 0.0 => {
            let share = used / (cpus as f64 * time) * 100.0;
            format!("{text}, used {} %", decimal(share, 0))
        }
        _ => format!("{text}, used a part that is not known"),
    }
}

/// CPU time of all jobs; `None` if that of some is not known.
fn used_s(record: &RunRecord) -> Option<f64> {
    if record.left_out.is_some() {
        return None;
    }
    let started = record.jobs.iter().filter(|job| job.end.start_s.is_some());
    started.map(|job| job.end.cpu_s).sum()
}

fn memory(asked: &AllocationSetting, record: &RunRecord) -> String {
    let text = match asked.memory_bytes {
        Some(memory) => format!("asked for {} a node", bytes(memory as f64)),
        None => "asked for no amount of memory".to_owned(),
    };
    let largest = record
        .jobs
        .iter()
        .filter_map(|job| job.end.max_rss_bytes)
        .max();
    match largest {
        Some(largest) => format!("{text}, largest process {}", bytes(largest as f64)),
        None => format!("{text}, use not known"),
    }
}
