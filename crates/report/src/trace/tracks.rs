//! The tracks of a trace: what each is called, where it stands, and what is written on it. A track is described before
//! its first event.
//!
//! Perfetto's viewer sorts tracks without a parent by their names; those within a group stand by their rank.

use super::packet::{Arg, Count, Look, Packets, Phase, Sequence, Track, Uuid};
use crate::series::SeriesHeader;
use crate::source::BackendKind;
use crate::text::{clip, visible};
use cosched_core::{CpuId, CpuSet, Machine, Nanos};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

const CPUS: Uuid = Uuid(1);
const DECIDED: Uuid = Uuid(2);
const JOBS: Uuid = Uuid(3);
const MACHINE: Uuid = Uuid(4);
/// The decisions, with what led to them.
pub(super) const DECISIONS: Uuid = Uuid(5);
/// What the user was warned of.
pub(super) const WARNINGS: Uuid = Uuid(6);
/// The first of the machine's counters, in the order of [`Meter`].
const METERS: u64 = 8;
/// The first of the CPUs, in their order.
const FIRST_CPU: u64 = 16;
/// A job and its counters.
const TRACKS_PER_JOB: u64 = 4;
/// How the name of the track begins that is described first.
pub(super) const FIRST_NAME: &str = "CPUs of ";
/// Characters of a job's command that are told.
const COMMAND_ROOM: usize = 500;

/// What a counter tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meter {
    /// CPU time of all jobs over time.
    Busy,
    /// Bytes that all jobs read from memory, a second.
    Read,
    /// Bytes that all jobs wrote to memory, a second.
    Written,
    /// The bandwidth that the policy aims at.
    Target,
    /// The bandwidth that the policy expects of what it chose.
    Predicted,
    /// Instructions per cycle of a job.
    Ipc(usize),
    /// Bytes that a job reads from memory, a second.
    JobRead(usize),
    /// Solo execution that a job has done.
    Progress(usize),
}

/// A trace that is being written: packets on tracks that have been described.
#[derive(Debug)]
pub(super) struct Tracks<W> {
    packets: Packets<W>,
    slices: Sequence,
    counters: Sequence,
    cpus: BTreeMap<CpuId, Uuid>,
    first_job: u64,
    next: u64,
    shared: HashMap<(CpuSet, usize), Uuid>,
    metered: BTreeSet<Uuid>,
}

impl<W: Write> Tracks<W> {
    /// Describes the tracks that every trace of this run has.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn new(out: W, header: &SeriesHeader) -> io::Result<Tracks<W>> {
        let machine = &header.machine;
        let first_job = FIRST_CPU + machine.cpus.len() as u64;
        let cpus = machine
            .cpus
            .iter()
            .zip(FIRST_CPU..)
            .map(|(cpu, uuid)| (cpu.id, Uuid(uuid)));
        let mut tracks = Tracks {
            packets: Packets::new(out),
            slices: Sequence::new(1),
            counters: Sequence::new(2),
            cpus: cpus.collect(),
            first_job,
            next: first_job + TRACKS_PER_JOB * header.tasks.len() as u64,
            shared: HashMap::new(),
            metered: BTreeSet::new(),
        };
        let simulated = if header.backend == BackendKind::Sim {
            " (simulated)"
        } else {
            ""
        };
        let groups = [
            (
                CPUS,
                format!("{FIRST_NAME}{}{simulated}", visible(&machine.name)),
                "Who had which CPU, as the policy gave it.",
            ),
            (
                DECIDED,
                format!("Decisions of {}{simulated}", visible(&header.policy)),
                "",
            ),
            (
                JOBS,
                format!("Jobs{simulated}"),
                "What each job did; its counters are below it.",
            ),
            (
                MACHINE,
                format!("Machine{simulated}"),
                "Sums over all jobs, and what the policy aimed at.",
            ),
        ];
        for (uuid, name, about) in &groups {
            tracks.describe(*uuid, None, 0, name, about, Look::Group)?;
        }
        tracks.describe(
            DECISIONS,
            Some(DECIDED),
            0,
            "decisions",
            "Each decision, with what led to it.",
            Look::Slices,
        )?;
        tracks.describe(
            WARNINGS,
            Some(DECIDED),
            1,
            "warnings",
            "What the user was warned of.",
            Look::Slices,
        )?;
        for (ix, cpu) in machine.cpus.iter().enumerate() {
            let uuid = Uuid(FIRST_CPU + ix as u64);
            tracks.describe(
                uuid,
                Some(CPUS),
                ix as u32,
                &cpu_name(machine, ix),
                "",
                Look::Slices,
            )?;
            debug_assert_eq!(tracks.cpu(cpu.id), Some(uuid));
        }
        for (ix, task) in header.tasks.iter().enumerate() {
            let about = clip(
                &visible(task.command.as_deref().unwrap_or_default()),
                COMMAND_ROOM,
            );
            let uuid = tracks.job(ix);
            tracks.describe(
                uuid,
                Some(JOBS),
                ix as u32,
                &visible(&task.name),
                &about,
                Look::Slices,
            )?;
        }
        Ok(tracks)
    }

    /// The track of a CPU; `None` if the machine has none of this number.
    pub(super) fn cpu(&self, cpu: CpuId) -> Option<Uuid> {
        self.cpus.get(&cpu).copied()
    }

    /// The track of a job.
    pub(super) fn job(&self, job: usize) -> Uuid {
        Uuid(self.first_job + TRACKS_PER_JOB * job as u64)
    }

    /// The track of a job that shares these CPUs with others. All of one set are drawn in one place.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn shared(&mut self, mask: &CpuSet, job: usize) -> io::Result<Uuid> {
        let key = (mask.clone(), job);
        if let Some(&uuid) = self.shared.get(&key) {
            return Ok(uuid);
        }
        let uuid = Uuid(self.next);
        self.next += 1;
        self.shared.insert(key, uuid);
        let about = "Jobs among which the kernel shares these CPUs out.";
        let name = if mask.len() == 1 {
            format!("shared CPU {mask}")
        } else {
            format!("shared CPUs {mask}")
        };
        self.describe(
            uuid,
            Some(CPUS),
            self.cpus.len() as u32,
            &name,
            about,
            Look::Merged,
        )?;
        Ok(uuid)
    }

    /// Writes an event.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn event(
        &mut self,
        at: Nanos,
        track: Uuid,
        phase: Phase,
        name: (&str, &str),
        args: &[(String, Arg)],
    ) -> io::Result<()> {
        self.packets
            .event(&mut self.slices, at, track, phase, name, args)
    }

    /// Writes what a counter tells from now on.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn count(&mut self, at: Nanos, meter: Meter, value: Count) -> io::Result<()> {
        let of_machine = |nth: u64| (Uuid(METERS + nth), MACHINE, nth as u32);
        let of_job = |job: usize, nth: u32| {
            let track = self.job(job);
            (Uuid(track.0 + 1 + u64::from(nth)), track, nth)
        };
        let bandwidth = Look::Counter {
            unit: "B/s",
            scale: Some("bandwidth"),
        };
        let plain = |unit| Look::Counter { unit, scale: None };
        let ((uuid, parent, rank), name, look, about) = match meter {
            Meter::Busy => (
                of_machine(0),
                "busy CPUs",
                plain("CPUs"),
                "CPU time that the jobs used, over time.",
            ),
            Meter::Read => (
                of_machine(1),
                "read bandwidth",
                bandwidth,
                "What the jobs read from memory.",
            ),
            Meter::Written => (
                of_machine(2),
                "write bandwidth",
                bandwidth,
                "What the jobs wrote to memory.",
            ),
            Meter::Target => (
                of_machine(3),
                "target bandwidth",
                bandwidth,
                "What the policy aims at.",
            ),
            Meter::Predicted => (
                of_machine(4),
                "predicted bandwidth",
                bandwidth,
                "What the policy expects of the jobs that it chose.",
            ),
            Meter::Ipc(job) => (of_job(job, 0), "IPC", plain("instructions/cycle"), ""),
            Meter::JobRead(job) => (of_job(job, 1), "read bandwidth", plain("B/s"), ""),
            Meter::Progress(job) => (
                of_job(job, 2),
                "progress",
                plain("quanta"),
                "Solo execution done, in quanta.",
            ),
        };
        if self.metered.insert(uuid) {
            self.describe(uuid, Some(parent), rank, name, about, look)?;
        }
        self.packets.count(&mut self.counters, at, uuid, value)
    }

    /// How many packets were written.
    pub(super) fn written(&self) -> u64 {
        self.packets.written()
    }

    /// Passes on what was written.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish(self) -> io::Result<()> {
        self.packets.finish()
    }

    fn describe(
        &mut self,
        uuid: Uuid,
        parent: Option<Uuid>,
        rank: u32,
        name: &str,
        about: &str,
        look: Look,
    ) -> io::Result<()> {
        self.packets.track(&Track {
            uuid,
            parent,
            rank,
            name,
            about,
            look,
        })
    }
}

/// A CPU with what tells it from others: its core where cores have several, its core type, cache and memory domain
/// where the machine has several.
fn cpu_name(machine: &Machine, ix: usize) -> String {
    let cpu = &machine.cpus[ix];
    let mut name = format!("CPU {}", cpu.id.0);
    if machine.cores.len() < machine.cpus.len() {
        name.push_str(&format!(", core {}", cpu.core));
    }
    if machine.core_types.len() > 1 {
        name.push_str(&format!(
            ", {}",
            visible(&machine.core_types[cpu.core_type].name)
        ));
    }
    if machine.llcs.len() > 1 {
        name.push_str(&format!(", cache {}", cpu.llc));
    }
    if machine.memory_domains.len() > 1 {
        name.push_str(&format!(", node {}", cpu.memory_domain));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{CoreType, Cpu};

    #[test]
    fn a_cpu_is_named_with_what_tells_it_from_others() {
        assert_eq!(cpu_name(&Machine::uniform("two", 2, 1), 1), "CPU 1");
        assert_eq!(cpu_name(&Machine::uniform("smt", 2, 2), 3), "CPU 3, core 1");
        let kind = |name: &str| CoreType {
            name: name.to_owned(),
            capacity: None,
            max_khz: None,
        };
        let mut machine = Machine::uniform("two kinds", 2, 1);
        machine.core_types = vec![kind("big"), kind("small")];
        machine.llcs.push("1".parse().unwrap());
        machine.memory_domains.push("1".parse().unwrap());
        machine.cpus[1] = Cpu {
            llc: 1,
            memory_domain: 1,
            core_type: 1,
            ..machine.cpus[1].clone()
        };
        assert_eq!(cpu_name(&machine, 1), "CPU 1, small, cache 1, node 1");
    }
}
