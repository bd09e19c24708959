//! The processes of a run, as in /proc.

use cosched_core::CpuSet;
use std::fs;

/// One process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenProcess {
    pub(crate) pid: i32,
    pub(crate) state: char,
    pub(crate) cpu_ticks: u64,
    /// The CPU that it is on, or was on last.
    pub(crate) cpu: u32,
}

/// The process with this number; `None` if there is none.
pub(crate) fn seen(pid: i32) -> Option<SeenProcess> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let number = |ix: usize| fields.get(ix)?.parse::<u64>().ok();
    let cpu = number(36)? as u32;
    Some(SeenProcess {
        pid,
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(11)? + number(12)?,
        cpu,
    })
}

/// The CPUs that a process may use; none if there is no such process.
pub(crate) fn allowed(pid: i32) -> CpuSet {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map_or_else(CpuSet::new, |list| {
        list.trim().parse().expect("a list of CPUs")
    })
}

/// Every process of the runs of one process, without zombies. With a name, only the processes of the job of that name.
pub(crate) fn of_run(runner: u32, job: Option<&str>) -> Vec<SeenProcess> {
    let run = format!("COSCHED_RUN={runner}-");
    let job = job.map(|name| format!("COSCHED_JOB={name}"));
    let is_marked = |pid: i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environ.split(|&byte| byte == 0);
        let marked = entries
            .clone()
            .any(|entry| entry.starts_with(run.as_bytes()));
        marked
            && job
                .as_ref()
                .is_none_or(|job| entries.any(|entry| entry == job.as_bytes()))
    };
    let pids = fs::read_dir("/proc").expect("/proc is there");
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| is_marked(pid))
        .filter_map(seen)
        .filter(|process| process.state != 'Z')
        .collect()
}
