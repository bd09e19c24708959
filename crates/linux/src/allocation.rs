//! The allocation of Slurm in which this process runs, as the variables of its environment describe it.

use crate::quota;
use cosched_core::{CpuSet, Machine};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// What Slurm gave this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The number of the job (`SLURM_JOB_ID`).
    pub job: String,
    /// How often Slurm has started the job again (`SLURM_RESTART_COUNT`).
    pub restarts: u32,
    /// The number of CPUs on this node, and the variable that says it; `None` without one.
    pub cpus: Option<(usize, &'static str)>,
    /// Memory in bytes, and the variable that says it; `None` without one, or without a limit.
    pub memory: Option<(u64, &'static str)>,
    /// The number of its nodes (`SLURM_JOB_NUM_NODES`).
    pub nodes: Option<u64>,
    /// The number of CPUs on all nodes (`SLURM_JOB_CPUS_PER_NODE`).
    pub cpus_of_all: Option<u64>,
    /// End of the allocation in seconds since the epoch (`SLURM_JOB_END_TIME`); `None` if it is unknown, or there is none.
    end_s: Option<u64>,
    /// The number of this process among those of its job step on this node.
    local: u64,
}

/// At least this is no time, but Slurm's mark for no limit.
const NO_TIME: u64 = 0xffff_fffd;

/// The variables of an environment.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    /// A positive number; `None` for anything else.
    fn number(&self, name: &str) -> Option<u64> {
        let number = (self.0)(name)?.trim().parse().ok()?;
        (number > 0).then_some(number)
    }

    fn named(&self, name: &'static str) -> Option<(u64, &'static str)> {
        Some((self.number(name)?, name))
    }

    /// The number of processes that share what the node gives. The script of a batch job has no job step and is alone.
    fn sharing(&self) -> u64 {
        let node = self.number("SLURM_NODEID").unwrap_or(0);
        let tasks = self
            .step()
            .and_then(|()| (self.0)("SLURM_STEP_TASKS_PER_NODE"));
        tasks.and_then(|tasks| on_node(&tasks, node)).unwrap_or(1)
    }

    fn step(&self) -> Option<()> {
        (self.0)("SLURM_STEP_ID").map(|_| ())
    }

    /// The number of CPUs. A process of a job step has its share of the node, and no more than each task was to have. The
    /// script of a batch job has the whole node.
    fn cpus(&self) -> Option<(u64, &'static str)> {
        let on_node = self.named("SLURM_CPUS_ON_NODE");
        let share = on_node.map(|(cpus, name)| ((cpus / self.sharing()).max(1), name));
        let per_task = self.named("SLURM_CPUS_PER_TASK");
        match self.step() {
            Some(()) => [per_task, share]
                .into_iter()
                .flatten()
                .min_by_key(|(cpus, _)| *cpus),
            None => share.or(per_task),
        }
    }

    fn memory(&self, cpus: Option<u64>) -> Option<(u64, &'static str)> {
        let per_node = self.named("SLURM_MEM_PER_NODE");
        let share = per_node.map(|(mib, name)| (mib / self.sharing(), name));
        let (mib, name) = share.or_else(|| {
            let (mib, name) = self.named("SLURM_MEM_PER_CPU")?;
            Some((mib.checked_mul(cpus?)?, name))
        })?;
        Some((mib.checked_mul(1 << 20)?, name))
    }
}

/// The number at this place of a list such as `2(x3),1`.
fn on_node(list: &str, node: u64) -> Option<u64> {
    let mut first = 0;
    for part in list.split(',') {
        let (number, times) = number_and_times(part)?;
        first += times;
        if node < first {
            return Some(number).filter(|&number| number > 0);
        }
    }
    None
}

/// The sum of a list such as `2(x3),1`.
fn sum(list: &str) -> Option<u64> {
    let parts: Option<Vec<_>> = list.split(',').map(number_and_times).collect();
    Some(parts?.iter().map(|(number, times)| number * times).sum())
}

/// The parts of `2(x3)`, or of `2`.
fn number_and_times(part: &str) -> Option<(u64, u64)> {
    let (number, times) = match part.strip_suffix(')') {
        Some(part) => part.split_once("(x")?,
        None => (part, "1"),
    };
    Some((number.parse().ok()?, times.parse().ok()?))
}

/// The time in a text such as `1-02:03:04`, `3:04` or `0:04`; `None` for `UNLIMITED` and other words.
fn seconds_left(text: &str) -> Option<u64> {
    let (days, clock) = text.trim().split_once('-').unwrap_or(("0", text.trim()));
    let mut seconds = 0u64;
    for part in clock.split(':') {
        let part: u64 = part.parse().ok()?;
        seconds = seconds.checked_mul(60)?.checked_add(part)?;
    }
    let days: u64 = days.parse().ok()?;
    days.checked_mul(86_400)?.checked_add(seconds)
}

/// The hosts in a list of Slurm such as `node[1-4]`.
///
/// # Errors
/// Why Slurm does not say.
pub fn slurm_hosts(list: &str) -> Result<Vec<String>, String> {
    let mut scontrol = Command::new("scontrol");
    let output = scontrol.args(["show", "hostnames", list]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(why.trim().to_owned());
    }
    let hosts = String::from_utf8_lossy(&output.stdout);
    Ok(hosts.lines().map(str::to_owned).collect())
}

impl Allocation {
    /// The allocation of this process; `None` outside of one.
    pub fn here() -> Option<Allocation> {
        Allocation::of(|name| std::env::var(name).ok())
    }

    /// The allocation that these variables describe. A variable that has no such form counts as missing.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Allocation> {
        let job = variable("SLURM_JOB_ID").filter(|job| !job.is_empty())?;
        let variables = Variables(variable);
        let cpus = variables.cpus();
        let end_s = variables.number("SLURM_JOB_END_TIME");
        let restarts = variables.number("SLURM_RESTART_COUNT").unwrap_or(0);
        Some(Allocation {
            job,
            restarts: u32::try_from(restarts).unwrap_or(u32::MAX),
            cpus: cpus.map(|(cpus, name)| (cpus as usize, name)),
            memory: variables.memory(cpus.map(|(cpus, _)| cpus)),
            nodes: variables.number("SLURM_JOB_NUM_NODES"),
            cpus_of_all: (variables.0)("SLURM_JOB_CPUS_PER_NODE").and_then(|list| sum(&list)),
            end_s: end_s.filter(|&end| end < NO_TIME),
            local: variables.number("SLURM_LOCALID").unwrap_or(0),
        })
    }

    /// Asks Slurm for the end if no variable says it, as before Slurm 23.02. Without an answer in 5 s it stays unknown.
    #[must_use]
    pub fn with_end(mut self) -> Allocation {
        if self.end_s.is_none() {
            let left = self.squeue().and_then(|text| seconds_left(&text));
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            self.end_s = left.zip(now.ok()).map(|(left, now)| now.as_secs() + left);
        }
        self
    }

    /// The answer of `squeue` to the question how much time is left.
    fn squeue(&self) -> Option<String> {
        let mut squeue = Command::new("timeout");
        squeue.args(["5", "squeue", "--noheader", "--format=%L"]);
        squeue.arg(format!("--jobs={}", self.job));
        squeue.stdin(Stdio::null()).stderr(Stdio::null());
        String::from_utf8(squeue.output().ok()?.stdout).ok()
    }

    /// The CPUs to use where Slurm binds to none; `None` for all. Neighbours in number use others.
    pub fn part_of(&self, machine: &Machine) -> Option<CpuSet> {
        let (count, _) = self.cpus?;
        let number = self.job.parse().unwrap_or(0u64).wrapping_add(self.local);
        quota::part_of(machine, count, number.wrapping_mul(count as u64))
    }

    /// The end of the allocation; `None` if it is unknown.
    pub fn end(&self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.end_s?))
    }

    /// Whether Slurm has ended the earlier run of this job with so many restarts, wherever it ran.
    pub fn has_ended(&self, job: &str, restarts: u32) -> bool {
        self.job == job && restarts < self.restarts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allocation that lines such as `JOB_ID=7` describe, each without `SLURM_`.
    fn of(lines: &str) -> Option<Allocation> {
        Allocation::of(|name| {
            let name = name.strip_prefix("SLURM_")?;
            let mut pairs = lines.split(' ').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(key, _)| *key == name)?;
            Some(value.to_owned())
        })
    }

    #[test]
    fn the_cpus_of_scripts_and_steps() {
        const NODE: &str = "SLURM_CPUS_ON_NODE";
        const TASK: &str = "SLURM_CPUS_PER_TASK";
        for (lines, cpus) in [
            ("CPUS_ON_NODE=8 CPUS_PER_TASK=2", Some((8, NODE))),
            ("CPUS_PER_TASK=2", Some((2, TASK))),
            ("STEP_ID=0 CPUS_ON_NODE=8 CPUS_PER_TASK=2", Some((2, TASK))),
            // From the script, and the step has less.
            ("STEP_ID=0 CPUS_ON_NODE=1 CPUS_PER_TASK=4", Some((1, NODE))),
            (
                "STEP_ID=0 CPUS_ON_NODE=8 STEP_TASKS_PER_NODE=4",
                Some((2, NODE)),
            ),
            (
                "STEP_ID=0 CPUS_ON_NODE=8 STEP_TASKS_PER_NODE=2(x3),1 NODEID=2",
                Some((4, NODE)),
            ),
            (
                "STEP_ID=0 CPUS_ON_NODE=8 STEP_TASKS_PER_NODE=2(x3),1 NODEID=3",
                Some((8, NODE)),
            ),
            (
                "STEP_ID=0 CPUS_ON_NODE=2 STEP_TASKS_PER_NODE=4",
                Some((1, NODE)),
            ),
            // A script beside a step of four.
            ("CPUS_ON_NODE=8 STEP_TASKS_PER_NODE=4", Some((8, NODE))),
            ("CPUS_ON_NODE=0", None),
            ("CPUS_ON_NODE=4(x2) CPUS_PER_TASK=few", None),
            ("", None),
        ] {
            let found = of(&format!("JOB_ID=7 {lines}")).unwrap();
            assert_eq!(found.cpus, cpus, "{lines}");
        }
    }

    #[test]
    fn memory_times_and_restarts() {
        const MIB: u64 = 1 << 20;
        for (lines, memory) in [
            (
                "MEM_PER_NODE=2000",
                Some((2000 * MIB, "SLURM_MEM_PER_NODE")),
            ),
            ("MEM_PER_NODE=0", None),
            (
                "MEM_PER_CPU=500 CPUS_ON_NODE=4",
                Some((2000 * MIB, "SLURM_MEM_PER_CPU")),
            ),
            ("MEM_PER_CPU=500", None),
            (
                "MEM_PER_NODE=2000 STEP_ID=1 STEP_TASKS_PER_NODE=4",
                Some((500 * MIB, "SLURM_MEM_PER_NODE")),
            ),
        ] {
            assert_eq!(
                of(&format!("JOB_ID=7 {lines}")).unwrap().memory,
                memory,
                "{lines}"
            );
        }
        let end = |text: &str| of(&format!("JOB_ID=7 JOB_END_TIME={text}")).unwrap().end();
        let ten = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
        assert_eq!(end("10"), Some(ten));
        let unknown = ["", "0", "soon", "4294967295", "18446744073709551615"];
        assert_eq!(unknown.map(end), [None; 5]);
        let left = ["1-02:03:04\n", "3:04", "0:00", "UNLIMITED", "NOT_SET", ""];
        let seconds = [Some(93_784), Some(184), Some(0), None, None, None];
        assert_eq!(left.map(seconds_left), seconds);
        let again = of("JOB_ID=7 RESTART_COUNT=2").unwrap();
        let ended = [("7", 1), ("7", 2), ("8", 1)].map(|(job, count)| again.has_ended(job, count));
        assert_eq!(ended, [true, false, false]);
        assert_eq!((of("JOB_ID="), of("CPUS_ON_NODE=2")), (None, None));
        let nodes = of("JOB_ID=7 JOB_NUM_NODES=4 JOB_CPUS_PER_NODE=2(x3),1").unwrap();
        assert_eq!((nodes.nodes, nodes.cpus_of_all), (Some(4), Some(7)));
    }
}
