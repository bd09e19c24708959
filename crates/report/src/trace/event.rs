//! The events of a trace, in the [Trace Event Format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
//!
//! The format knows processes, threads and counters. Here a group of tracks is a process, and a track is a thread.

use crate::series::SeriesHeader;
use crate::source::BackendKind;
use crate::text::visible;
use cosched_core::{CpuId, Machine, Nanos};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The text before the first event.
const HEAD: &str = r#"{"displayTimeUnit":"ns","traceEvents":["#;

/// The begin of every trace.
pub(super) const BEGIN: &str = concat!(
    r#"{"displayTimeUnit":"ns","traceEvents":["#,
    "\n",
    r#"{"args":{"name":"CPUs of "#
);

/// Values beside an event, by their names.
pub(super) type Args = Map<String, Value>;

/// A group of tracks; its number is the process in the file.
#[derive(Clone, Copy)]
enum Group {
    Cpus = 1,
    Decisions = 2,
    Jobs = 3,
    JobCounters = 4,
    Machine = 5,
}

/// A track. Its numbers are unique in the whole trace.
#[derive(Clone, Copy)]
pub(super) enum Track {
    /// The decisions and their triggers.
    Decisions,
    /// The warnings of the user.
    Warnings,
    /// A CPU of the machine, by its place in it.
    Cpu(usize),
    /// A job, by its number.
    Job(usize),
}

/// What a counter counts.
#[derive(Clone, Copy)]
pub(super) enum Meter {
    /// CPU time of all jobs over time.
    Busy,
    /// Bytes that all jobs read from memory, per second.
    Read,
    /// Bytes that all jobs wrote to memory, per second.
    Written,
    /// The bandwidth that the policy aims at.
    Target,
    /// The bandwidth that the policy expects of its choice.
    Predicted,
    /// Instructions per cycle of a job.
    Ipc(usize),
    /// Bytes that a job reads from memory, per second.
    JobRead(usize),
    /// Solo execution that a job has done.
    Progress(usize),
}

impl Meter {
    /// Return its group, its job, its name and its unit.
    fn describe(self) -> (Group, Option<usize>, &'static str, &'static str) {
        match self {
            Meter::Busy => (Group::Machine, None, "busy CPUs", "CPUs"),
            Meter::Read => (Group::Machine, None, "read bandwidth", "B/s"),
            Meter::Written => (Group::Machine, None, "write bandwidth", "B/s"),
            Meter::Target => (Group::Machine, None, "target bandwidth", "B/s"),
            Meter::Predicted => (Group::Machine, None, "predicted bandwidth", "B/s"),
            Meter::Ipc(job) => (Group::JobCounters, Some(job), "IPC", "IPC"),
            Meter::JobRead(job) => (Group::JobCounters, Some(job), "read bandwidth", "B/s"),
            Meter::Progress(job) => (Group::JobCounters, Some(job), "progress", "quanta"),
        }
    }
}

/// The name and the category of an event.
pub(super) struct Title {
    pub name: String,
    pub category: &'static str,
}

impl Title {
    pub(super) fn new(name: impl Into<String>, category: &'static str) -> Title {
        Title {
            name: name.into(),
            category,
        }
    }
}

/// Return the members of a JSON object that are present.
pub(super) fn args(values: Value) -> Args {
    let Value::Object(mut args) = values else {
        return Args::new();
    };
    args.retain(|_, value| !value.is_null());
    args
}

/// Convert to the unit of the file.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// A trace that is being written.
pub(super) struct Trace<W> {
    out: W,
    cpus: BTreeMap<CpuId, usize>,
    /// The names of the jobs as they are shown.
    names: Vec<String>,
    is_empty: bool,
}

impl<W: Write> Trace<W> {
    /// Begin a trace with the names of its tracks.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn new(mut out: W, header: &SeriesHeader) -> io::Result<Trace<W>> {
        out.write_all(HEAD.as_bytes())?;
        let machine = &header.machine;
        let cpus = machine.cpus.iter().enumerate();
        let tasks = header.tasks.iter();
        let mut trace = Trace {
            out,
            cpus: cpus.map(|(ix, cpu)| (cpu.id, ix)).collect(),
            names: tasks.map(|task| visible(&task.name)).collect(),
            is_empty: true,
        };
        trace.name_groups(header)?;
        trace.name_track(Track::Decisions, "decisions")?;
        trace.name_track(Track::Warnings, "warnings")?;
        for ix in 0..machine.cpus.len() {
            trace.name_track(Track::Cpu(ix), &cpu_name(machine, ix))?;
        }
        for job in 0..header.tasks.len() {
            let name = trace.names[job].clone();
            trace.name_track(Track::Job(job), &name)?;
        }
        Ok(trace)
    }

    fn name_groups(&mut self, header: &SeriesHeader) -> io::Result<()> {
        let simulated = match header.backend {
            BackendKind::Sim => " (simulated)",
            BackendKind::Host | BackendKind::Nodes => "",
        };
        let machine = visible(&header.machine.name);
        let policy = visible(&header.policy);
        let groups = [
            (Group::Cpus, format!("CPUs of {machine}")),
            (Group::Decisions, format!("Decisions of {policy}")),
            (Group::Jobs, "Jobs".to_owned()),
            (Group::JobCounters, "Counters of jobs".to_owned()),
            (Group::Machine, "Machine".to_owned()),
        ];
        for (group, name) in groups {
            let name = format!("{name}{simulated}");
            self.describe("process_name", group, None, json!({ "name": name }))?;
            let rank = json!({ "sort_index": group as u32 });
            self.describe("process_sort_index", group, None, rank)?;
        }
        Ok(())
    }

    fn name_track(&mut self, track: Track, name: &str) -> io::Result<()> {
        let (group, tid) = self.place(track);
        self.describe("thread_name", group, Some(tid), json!({ "name": name }))?;
        let rank = json!({ "sort_index": tid });
        self.describe("thread_sort_index", group, Some(tid), rank)
    }

    /// Write metadata of a group or of a track.
    fn describe(
        &mut self,
        name: &str,
        group: Group,
        tid: Option<usize>,
        args: Value,
    ) -> io::Result<()> {
        self.write(json!({
            "ph": "M",
            "name": name,
            "pid": group as u32,
            "tid": tid,
            "args": args,
        }))
    }

    /// Return the group of a track and its number.
    fn place(&self, track: Track) -> (Group, usize) {
        match track {
            Track::Decisions => (Group::Decisions, 1),
            Track::Warnings => (Group::Decisions, 2),
            Track::Cpu(ix) => (Group::Cpus, 3 + ix),
            Track::Job(job) => (Group::Jobs, 3 + self.cpus.len() + job),
        }
    }

    /// Return the track of a CPU; `None` if the machine has no such CPU.
    pub(super) fn cpu(&self, cpu: CpuId) -> Option<Track> {
        self.cpus.get(&cpu).map(|ix| Track::Cpu(*ix))
    }

    /// Return the name of a job as it is shown.
    pub(super) fn job_name(&self, job: usize) -> &str {
        &self.names[job]
    }

    /// Write something that lasted.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn slice(
        &mut self,
        track: Track,
        (from, to): (Nanos, Nanos),
        title: &Title,
        args: &Args,
    ) -> io::Result<()> {
        let (group, tid) = self.place(track);
        self.write(json!({
            "ph": "X",
            "name": title.name,
            "cat": title.category,
            "pid": group as u32,
            "tid": tid,
            "ts": micros(from),
            "dur": micros(to - from),
            "args": args,
        }))
    }

    /// Write something that happened.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn instant(
        &mut self,
        track: Track,
        at: Nanos,
        title: &Title,
        args: &Args,
    ) -> io::Result<()> {
        let (group, tid) = self.place(track);
        // The scope of an instant is its thread.
        self.write(json!({
            "ph": "i",
            "s": "t",
            "name": title.name,
            "cat": title.category,
            "pid": group as u32,
            "tid": tid,
            "ts": micros(at),
            "args": args,
        }))
    }

    /// Write the value of a counter from a time on.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn count(
        &mut self,
        meter: Meter,
        at: Nanos,
        value: impl Into<Value>,
    ) -> io::Result<()> {
        let (group, job, name, unit) = meter.describe();
        let name = match job {
            Some(job) => format!("{} {name}", self.names[job]),
            None => name.to_owned(),
        };
        self.write(json!({
            "ph": "C",
            "name": name,
            "pid": group as u32,
            "ts": micros(at),
            "args": { unit: value.into() },
        }))
    }

    /// End the trace.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    fn write(&mut self, event: Value) -> io::Result<()> {
        let separator = if self.is_empty { "\n" } else { ",\n" };
        self.is_empty = false;
        self.out.write_all(separator.as_bytes())?;
        Ok(serde_json::to_writer(&mut self.out, &args(event))?)
    }
}

/// Return a CPU's name, with its core type where the machine has several.
fn cpu_name(machine: &Machine, ix: usize) -> String {
    let cpu = &machine.cpus[ix];
    if machine.core_types.len() > 1 {
        let core_type = &machine.core_types[cpu.core_type];
        format!("CPU {}, {}", cpu.id.0, visible(&core_type.name))
    } else {
        format!("CPU {}", cpu.id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::CoreType;

    #[test]
    fn a_cpu_is_named_with_what_sets_it_apart() {
        assert_eq!(cpu_name(&Machine::uniform("two", 2, 1), 1), "CPU 1");
        let kind = |name: &str| CoreType {
            name: name.to_owned(),
            capacity: None,
            max_khz: None,
        };
        let mut machine = Machine::uniform("two kinds", 2, 1);
        machine.core_types = vec![kind("big"), kind("small")];
        machine.cpus[1].core_type = 1;
        assert_eq!(cpu_name(&machine, 1), "CPU 1, small");
    }
}
