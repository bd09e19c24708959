//! What this process was given of the machine, by a cgroup's quota and by Slurm.

use cosched_linux::root::Root;
use cosched_linux::topology::Topology;
use cosched_linux::{Allocation, CpuQuota};
use cosched_report::{RunWarning, bytes, count, visible};

/// The part of the machine that this process was given.
pub struct Allotted {
    /// The machine with the CPUs of that part.
    pub topology: Topology,
    /// What a cgroup's quota leaves of its CPUs, in words; `None` without one.
    pub quota: Option<String>,
    /// What Slurm gave, a line each; none outside of an allocation.
    pub by_slurm: Vec<String>,
    /// The warning that Slurm gave another number of CPUs than the affinity of this process has.
    pub warning: Option<RunWarning>,
}

impl Allotted {
    /// All of `whole`, which the user has listed.
    pub(crate) fn listed(whole: Topology, allocation: Option<&Allocation>) -> Allotted {
        Allotted {
            topology: whole,
            quota: None,
            by_slurm: allocation.map(lines).unwrap_or_default(),
            warning: None,
        }
    }

    /// The part that was given of `whole`, which this process may use. A quota that can't be read is ignored; the words
    /// say why.
    pub fn of(root: &Root, whole: Topology, allocation: Option<&Allocation>) -> Allotted {
        let mut allotted = Allotted::listed(whole, allocation);
        if let Some(allocation) = allocation {
            allotted.restrict_to_allocation(allocation);
        }
        allotted.restrict_to_quota(root);
        allotted
    }

    fn restrict_to_quota(&mut self, root: &Root) {
        let quota = match CpuQuota::read(root) {
            Ok(Some(quota)) => quota,
            Ok(None) => return,
            Err(why) => {
                self.quota = Some(format!("{why}; it is ignored"));
                return;
            }
        };
        let Topology {
            machine, present, ..
        } = &mut self.topology;
        if let Some(cpus) = quota.part_of(machine) {
            self.quota = Some(quota.text(cpus.len(), present.len()));
            *machine = machine.part(&cpus);
        }
    }

    fn restrict_to_allocation(&mut self, allocation: &Allocation) {
        let Some((told, variable)) = allocation.cpus else {
            return;
        };
        let is_bound = self.topology.is_bound();
        let machine = &mut self.topology.machine;
        let usable = machine.cpus.len();
        if let Some(cpus) = allocation.part_of(machine) {
            *machine = machine.part(&cpus);
        }
        let used = machine.cpus.len();
        let all = count(self.topology.present.len() as u64, "CPU");
        let from = if is_bound && used == usable {
            "affinity"
        } else {
            variable
        };
        let job = visible(&allocation.job);
        self.by_slurm
            .insert(0, format!("Slurm job {job}: {used} of {all} ({from})"));
        // A job of another run is bound to its own part.
        let is_nested = std::env::var_os("COSCHED_RUN").is_some();
        if is_bound && usable != told && !is_nested {
            self.warning = Some(RunWarning::CpusContradict {
                bound: usable,
                variable: variable.to_owned(),
                told,
            });
        }
    }
}

/// The memory and the end of an allocation.
fn lines(allocation: &Allocation) -> Vec<String> {
    let mut lines = Vec::new();
    let job = visible(&allocation.job);
    if let Some((memory, variable)) = allocation.memory {
        let memory = bytes(memory as f64);
        lines.push(format!("Slurm job {job}: {memory} of memory ({variable})"));
    }
    let end = match allocation.end() {
        Some(end) => {
            let end = humantime::format_rfc3339_seconds(end);
            format!("ends {end}; no job starts that is expected to end later")
        }
        None => "its end is unknown (no SLURM_JOB_END_TIME, and no answer of squeue)".to_owned(),
    };
    lines.push(format!("Slurm job {job}: {end}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_linux::topology;

    #[test]
    fn a_quota_that_can_not_be_read_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            (
                "proc/self/mountinfo",
                "31 30 0:27 / /g rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "0::/\n"),
            ("g/cpu.max", "lots\n"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let affinity = cosched_linux::affinity(0).unwrap();
        let whole = topology::read(&Root::default(), &affinity, None).unwrap();
        let all = whole.machine.all_cpus();
        let allotted = Allotted::of(&Root::new(dir.path()), whole, None);
        assert_eq!(allotted.topology.machine.all_cpus(), all);
        let why = allotted.quota.unwrap();
        assert!(
            why.contains("g/cpu.max says `lots`") && why.ends_with("; it is ignored"),
            "{why}"
        );
    }

    /// A machine of four CPUs, of which this process may use some.
    fn four(affinity: &str) -> Topology {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("online"), "0-3\n").unwrap();
        let root = Root::new(dir.path());
        topology::read(&root, &affinity.parse().unwrap(), None).unwrap()
    }

    #[test]
    fn a_mask_and_a_variable() {
        for (affinity, told, used, from, warns) in [
            ("0-3", "1", 1, "SLURM_CPUS_ON_NODE", false),
            ("0-3", "4", 4, "SLURM_CPUS_ON_NODE", false),
            ("0-3", "9", 4, "SLURM_CPUS_ON_NODE", false),
            ("1-2", "2", 2, "affinity", false),
            ("1-2", "4", 2, "affinity", true),
            ("1-3", "2", 2, "SLURM_CPUS_ON_NODE", true),
        ] {
            let allocation = Allocation::of(|name| match name {
                "SLURM_JOB_ID" => Some("7".to_owned()),
                "SLURM_CPUS_ON_NODE" => Some(told.to_owned()),
                _ => None,
            });
            let dir = tempfile::tempdir().unwrap();
            let root = Root::new(dir.path());
            let allotted = Allotted::of(&root, four(affinity), allocation.as_ref());
            let given = affinity.parse().unwrap();
            assert!(allotted.topology.machine.all_cpus().is_subset(&given));
            let line = format!("Slurm job 7: {used} of 4 CPUs ({from})");
            assert_eq!(allotted.by_slurm[0], line, "{affinity} {told}");
            assert_eq!(allotted.warning.is_some(), warns, "{affinity} {told}");
        }
    }

    #[test]
    fn neighbours_use_other_cpus() {
        let part = |job: &str| {
            let allocation = Allocation::of(|name| match name {
                "SLURM_JOB_ID" => Some(job.to_owned()),
                "SLURM_CPUS_ON_NODE" => Some("2".to_owned()),
                _ => None,
            });
            allocation.unwrap().part_of(&four("0-3").machine).unwrap()
        };
        assert!(part("7").intersection(&part("8")).is_empty());
    }
}
