//! A program in the kernel, loaded.

use crate::counting::{Counting, map, missing, run};
use crate::demands;
use crate::image::{Misfit, image};
use crate::intf::{
    DOMAINS, Image, NONE, SIBLINGS, call, config, exit, install, occupation, residency, task, wish,
};
use crate::slots::Slots;
use crate::switches::Switches;
use crate::tables;
use crate::traffic::Buses;
use cosched_core::model::bus_admission_table::BusAdmissionTable;
use cosched_core::{
    Absence, BusAdmission, Counter, CpuId, CpuSet, Demand, Machine, Nanos, Occupation, PerCounter,
    Reading, Residency, Schedule, Switch, Switched, TaskId, Traffic,
};
use cosched_linux::counters::{CpuEvents, EventReading};
use cosched_linux::{Clock, KernelScheduler};
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::{Mutex, MutexGuard};
use thiserror::Error;

/// The compiled programs.
pub(crate) const PLAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plan.bpf.o"));
pub(crate) const EFS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/efs.bpf.o"));

/// A task that has waited for so long runs for a moment: the kernel removes a scheduler that lets a process wait for half a
/// minute.
const LONGEST_WAIT: Nanos = Nanos::from_ms(12_000);

/// A task that has waited for so long gets no CPU at all: ordinary processes have them.
const STARVED: Nanos = Nanos::from_ms(20_000);

/// The plan number for no plan.
const NO_PLAN: u32 = 2;

/// The map for the use of the buses, and that with the lines counted for jobs in each memory domain.
const TRAFFIC: &str = ".data.traffic";
const COUNTED: &str = ".data.counted";

/// Why the program can't be used here.
#[derive(Debug, Error)]
pub enum ExtError {
    /// libbpf or the kernel refuses it.
    #[error("{what}: {why}")]
    Refused {
        /// The step that failed.
        what: &'static str,
        /// The error, with the last that libbpf said.
        why: String,
    },
    /// The machine is larger than the program is made for.
    #[error("CPU {0} has too great a number: this works up to CPU 511")]
    TooManyCpus(u32),
}

/// What libbpf has said, for errors.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn said() -> MutexGuard<'static, Vec<String>> {
    SAID.lock().unwrap_or_else(|broken| broken.into_inner())
}

fn listen(_level: PrintLevel, text: String) {
    let mut said = said();
    if said.len() < 400 {
        said.push(text.trim_end().to_owned());
    }
}

/// An error with the last lines of libbpf.
fn refused(what: &'static str) -> impl Fn(libbpf_rs::Error) -> ExtError {
    move |error| {
        // The verifier prints all that it has checked. The last lines say what was wrong.
        let said = said();
        let mut lines: Vec<&str> = said
            .iter()
            .flat_map(|text| text.lines())
            .map(str::trim)
            .collect();
        lines.retain(|line| !line.is_empty() && !line.starts_with("processed "));
        let last = lines[lines.len().saturating_sub(5)..].join("; ");
        ExtError::Refused {
            what,
            why: if last.is_empty() {
                error.to_string()
            } else {
                format!("{error}: {last}")
            },
        }
    }
}

/// What a scheduler does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SchedulerWork {
    /// It carries out plans.
    Plans,
    /// EFS: it decides at each event by the demands of the plan in force.
    Efs {
        /// The factor `c_l` of Eq. 22.
        local: u64,
        /// The factor `c_g` of Eq. 23.
        global: u64,
        /// Lines of memory that the bus of a memory domain moves in a microsecond, if demands are to be measured.
        lines_per_us: Option<f64>,
    },
}

impl SchedulerWork {
    fn program(self) -> &'static [u8] {
        match self {
            SchedulerWork::Plans => PLAN,
            SchedulerWork::Efs { .. } => EFS,
        }
    }

    /// The name of its operations in the program.
    fn name(self, takes_all: bool) -> &'static str {
        match (self, takes_all) {
            (SchedulerWork::Plans, false) => "cosched_plan",
            (SchedulerWork::Plans, true) => "cosched_plan_all",
            (SchedulerWork::Efs { .. }, false) => "cosched_efs",
            (SchedulerWork::Efs { .. }, true) => "cosched_efs_all",
        }
    }

    /// Lines that a bus moves in a microsecond, where it measures demands.
    fn lines_per_us(self) -> Option<f64> {
        match self {
            SchedulerWork::Efs { lines_per_us, .. } => lines_per_us.filter(|lines| *lines > 0.0),
            SchedulerWork::Plans => None,
        }
    }

    /// It admits tasks by itself.
    fn admits(self) -> bool {
        self != SchedulerWork::Plans
    }

    /// The map with its input.
    fn map(self) -> &'static str {
        match self {
            SchedulerWork::Plans => "plans",
            SchedulerWork::Efs { .. } => "demands",
        }
    }
}

/// A scheduler in the kernel.
pub struct Scheduler {
    work: SchedulerWork,
    object: Object,
    /// The kernel removes the scheduler when this is closed, however that happens.
    link: Option<Link>,
    switches: Switches,
    /// Rings when the scheduler was removed.
    bell: MapHandle,
    counting: Option<Counting>,
    /// Only where demands are measured.
    buses: Option<Buses>,
    slots: Slots,
    takes_all: bool,
    which: u32,
    /// What tasks were beside others whose slots were given to others since.
    met: BTreeMap<TaskId, BTreeMap<TaskId, u64>>,
    /// The CPUs of the run.
    cpus: CpuSet,
    /// Time of the last switch that was reported.
    last_switch: Nanos,
    /// Switches were lost, or the scheduler was removed: no more are reported.
    untold: bool,
    escaped: BTreeMap<TaskId, u32>,
    why_removed: Option<String>,
}

/// Writes what the program knows from the beginning, and leaves out the operations that are not `ops`.
fn set_up(
    open: &mut OpenObject,
    machine: &Machine,
    work: SchedulerWork,
    ops: &str,
    settings: &Image,
    buses: Option<&Buses>,
) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match (name.as_str(), work) {
            (".rodata.config", _) => map.set_initial_value(&settings.0)?,
            (".rodata.tables", SchedulerWork::Efs { .. }) => {
                let tables = tables::image(&BusAdmissionTable::new());
                map.set_initial_value(&tables.0)?;
            }
            (".rodata.efs", SchedulerWork::Efs { local, global, .. }) => {
                let efs = demands::settings(machine, local, global);
                map.set_initial_value(&efs.0)?;
            }
            (TRAFFIC, _) => {
                if let Some(buses) = buses {
                    map.set_initial_value(&buses.unknown().0)?;
                }
            }
            (other, _) if other.starts_with("cosched_") && other != ops => {
                map.set_autocreate(false)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the kernel's side writes to.
fn lines(object: &Object) -> libbpf_rs::Result<(Switches, MapHandle)> {
    let switches = Switches::of(&map(object, "switches")?)?;
    let bell = MapHandle::try_from(&map(object, "bell")?)?;
    Ok((switches, bell))
}

fn attach(object: &mut Object, ops: &str) -> libbpf_rs::Result<Link> {
    let found = object.maps_mut().find(|map| map.name() == ops);
    found.ok_or_else(missing)?.attach_struct_ops()
}

impl Scheduler {
    /// Loads the program and makes it the scheduler: of the processes that are given to it, or of all ordinary ones. It counts
    /// `events`, if there are any.
    ///
    /// # Errors
    /// The kernel refuses it: no permission, another scheduler, or a kernel that it does not fit.
    pub fn load(
        machine: &Machine,
        tasks: usize,
        takes_all: bool,
        work: SchedulerWork,
        events: Option<CpuEvents>,
    ) -> Result<Scheduler, ExtError> {
        said().clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
        let slots = Slots::new(tasks);
        let settings = settings(machine, last_cpu(machine), slots.count(), takes_all)?;
        let mut open = ObjectBuilder::default()
            .open_memory(work.program())
            .map_err(refused("reading the program"))?;
        let ops = work.name(takes_all);
        let buses = work.lines_per_us().map(|lines| {
            let mut counters = events.iter().flat_map(CpuEvents::counters);
            Buses::new(lines, counters.any(|counter| counter == Counter::MmWrites))
        });
        set_up(&mut open, machine, work, ops, &settings, buses.as_ref())
            .map_err(refused("setting up the program"))?;
        Counting::leave_out(&mut open, events.is_some(), buses.is_some());
        let mut object = open
            .load()
            .map_err(refused("loading the program into the kernel"))?;
        let counting = events
            .map(|events| Counting::begin(&object, events))
            .transpose()
            .map_err(refused("counting in the kernel"))?;
        let (switches, bell) = lines(&object).map_err(refused("finding the program's data"))?;
        let link = attach(&mut object, ops).map_err(refused("making it the scheduler"))?;
        Ok(Scheduler {
            work,
            object,
            link: Some(link),
            switches,
            bell,
            counting,
            buses,
            slots,
            takes_all,
            which: NO_PLAN,
            met: BTreeMap::new(),
            cpus: machine.all_cpus(),
            last_switch: Nanos::ZERO,
            untold: false,
            escaped: BTreeMap::new(),
            why_removed: None,
        })
    }

    /// Calls one of the programs with an argument that it may change.
    fn run(&self, name: &str, told: &mut Image) -> io::Result<()> {
        run(&self.object, name, told)
    }

    /// Writes a value into one of the program's maps.
    fn put(&self, name: &str, key: u32, value: &Image) -> io::Result<()> {
        map(&self.object, name)?
            .update(&key.to_ne_bytes(), &value.0, MapFlags::ANY)
            .map_err(io::Error::other)
    }

    /// What one of the program's maps has for a key, if it can be read.
    fn look_up(&self, name: &str, key: u32) -> Option<Image> {
        let found = map(&self.object, name).ok()?;
        let value = found.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().map(Image)
    }

    /// Calls one of the programs for a slot.
    fn run_for(&self, name: &str, slot: u16) -> io::Result<()> {
        let mut told = Image::new(call::SIZE);
        told.put_u32(call::SLOT, u32::from(slot));
        self.run(name, &mut told)
    }

    fn mark_free(&self, slot: u16, free: bool) -> io::Result<()> {
        let mut value = Image::new(wish::SIZE);
        value.put_u32(wish::FREE, u32::from(free));
        self.put("wishes", slot.into(), &value)
    }

    /// The slot of a task, which is given one if it has none.
    fn slot(&mut self, task: TaskId) -> Option<u16> {
        if let Some(slot) = self.slots.of(task) {
            return Some(slot);
        }
        let given = self.slots.give(task)?;
        let none = Image::new(size_of::<u32>());
        let _ = self.put("escapes", given.slot.into(), &none);
        if let Some(before) = given.before {
            self.keep_meetings(before, given.slot);
            let _ = self.run_for("cosched_forget", given.slot);
            if let Some(counting) = &self.counting {
                counting.forget(given.slot);
            }
        }
        Some(given.slot)
    }

    /// Before a slot is given to another task: what others met in it was the task before.
    fn keep_meetings(&mut self, before: TaskId, slot: u16) {
        let others: Vec<(TaskId, u16)> = self
            .slots
            .tasks()
            .filter(|(_, other)| *other != slot)
            .collect();
        for (task, other) in others {
            let Ok(answer) = self.ask(other) else {
                continue;
            };
            let time = answer.u64(residency::BESIDE + 8 * usize::from(slot));
            if time > 0 {
                *self.met.entry(task).or_default().entry(before).or_default() += time;
            }
        }
    }

    fn ask(&self, slot: u16) -> io::Result<Image> {
        self.run_for("cosched_read", slot)?;
        self.look_up("answers", 0)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn let_out(&self, slot: u16) {
        // Where it fails the next rescue finds them.
        let _ = self.run_for("cosched_let_out", slot);
    }

    /// Puts a plan into force.
    fn install(&mut self, which: u32) -> io::Result<()> {
        let mut told = Image::new(install::SIZE);
        told.put_u32(install::WHICH, which);
        self.run("cosched_install", &mut told)?;
        self.which = which;
        Ok(())
    }

    /// Writes a plan, or demands, and puts them into force.
    fn adopt_image(&mut self, which: u32, bytes: &Image) -> io::Result<()> {
        self.put(self.work.map(), which, bytes)?;
        if !self.work.admits() || self.which != which {
            self.install(which)?;
        }
        Ok(())
    }

    fn demands_image(
        &mut self,
        schedule: &Schedule,
        admission: &BusAdmission,
    ) -> Result<Image, String> {
        for seat in &schedule.seats {
            if self.slot(seat.task).is_none() {
                return Err(Misfit::Slots.to_string());
            }
        }
        Ok(demands::image(admission, |task| self.slots.of(task)))
    }
}

/// The last CPU that there can be: the kernel asks the scheduler on all of them, also on those that are not the run's.
fn last_cpu(machine: &Machine) -> u32 {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let possible = possible
        .and_then(|list| list.trim().parse::<CpuSet>().ok())
        .unwrap_or_else(|| machine.all_cpus());
    possible
        .iter()
        .chain(machine.all_cpus().iter())
        .map(|cpu| cpu.0)
        .max()
        .unwrap_or(0)
}

/// The constants of the program.
fn settings(
    machine: &Machine,
    last: u32,
    slots: usize,
    takes_all: bool,
) -> Result<Image, ExtError> {
    let mut image = Image::new(config::SIZE);
    if last as usize >= crate::intf::CPUS {
        return Err(ExtError::TooManyCpus(last));
    }
    image.put_u32(config::NR_CPUS, last + 1);
    image.put_u32(config::NR_SLOTS, slots as u32);
    image.put_u32(config::TAKES_ALL, u32::from(takes_all));
    for at in 0..crate::intf::CPUS * SIBLINGS {
        image.put_u16(config::SIBLING + 2 * at, NONE);
    }
    for cpu in &machine.cpus {
        let own = config::SIBLING + 2 * SIBLINGS * cpu.id.0 as usize;
        for (ix, sibling) in machine.cores[cpu.core].iter().take(SIBLINGS).enumerate() {
            image.put_u16(own + 2 * ix, sibling.0 as u16);
        }
    }
    Ok(image)
}

impl KernelScheduler for Scheduler {
    fn takes_all(&self) -> bool {
        self.takes_all
    }

    fn admits(&self) -> bool {
        self.work.admits()
    }

    fn demands(&mut self) -> Vec<Demand> {
        // Only EFS has this map.
        let told = self.look_up("measured", 0);
        told.map(|told| demands::measured(&told, self.slots.tasks()))
            .unwrap_or_default()
    }

    fn take(&mut self, task: TaskId, handle: BorrowedFd<'_>) -> io::Result<()> {
        let slot = self
            .slot(task)
            .ok_or_else(|| io::Error::other("too many jobs have processes at once"))?;
        self.mark_free(slot, true)?;
        let mut value = Image::new(task::SIZE);
        value.put_u32(task::SLOT, u32::from(slot));
        self.put("tasks", handle.as_raw_fd().cast_unsigned(), &value)
    }

    fn set_free(&mut self, task: TaskId, free: bool) {
        let Some(slot) = self.slots.of(task) else {
            return;
        };
        // Where it fails the scheduler was removed.
        if self.mark_free(slot, free).is_ok() && free {
            self.let_out(slot);
        }
    }

    fn ended(&mut self, task: TaskId) {
        self.slots.take_back(task);
        self.met.remove(&task);
        self.escaped.remove(&task);
    }

    fn adopt(&mut self, generation: u64, schedule: &Schedule, clock: &Clock) -> Result<(), String> {
        let (which, bytes) = if self.work == SchedulerWork::Plans {
            let at = |at| clock.kernel(at);
            let bytes = image(generation, schedule, |task| self.slot(task), at);
            let bytes = bytes.map_err(|misfit| misfit.to_string())?;
            (u32::from(self.which == 0), bytes)
        } else {
            let admission = schedule.admission.as_ref();
            let admission = admission.ok_or("it has no demands")?;
            (0, self.demands_image(schedule, admission)?)
        };
        self.adopt_image(which, &bytes)
            .map_err(|error| error.to_string())
    }

    fn withdraw(&mut self) {
        if self.which == NO_PLAN {
            return;
        }
        if self.install(NO_PLAN).is_ok() {
            let all: Vec<u16> = self.slots.tasks().map(|(_, slot)| slot).collect();
            all.into_iter().for_each(|slot| self.let_out(slot));
        }
    }

    fn residency(&mut self, task: TaskId, clock: &Clock) -> Reading<Residency> {
        let Some(slot) = self.slots.of(task) else {
            return Reading::Absent(Absence::NotStarted);
        };
        let Ok(answer) = self.ask(slot) else {
            return Reading::Absent(Absence::NotTold);
        };
        let mut beside = self.met.get(&task).cloned().unwrap_or_default();
        for other in 0..self.slots.count() {
            let time = answer.u64(residency::BESIDE + 8 * other);
            if let Some(owner) = self.slots.owner(other).filter(|_| time > 0) {
                *beside.entry(owner).or_default() += time;
            }
        }
        let on_cpu = answer.u64(residency::ON_CPU);
        let last = answer.u64(residency::LAST_ON_CPU);
        Reading::Value(Residency {
            on_cpu: Nanos(on_cpu),
            alone: Nanos(on_cpu.saturating_sub(answer.u64(residency::SHARED))),
            waiting: Nanos(answer.u64(residency::AWAKE).saturating_sub(on_cpu)),
            last_on_cpu: (last > 0).then(|| clock.run(last)),
            beside: beside
                .into_iter()
                .map(|(task, time)| (task, Nanos(time)))
                .collect(),
        })
    }

    fn counts(&self) -> bool {
        self.counting.is_some()
    }

    fn counted(&mut self, task: TaskId) -> PerCounter<Option<EventReading>> {
        if let Some(counting) = &self.counting
            && let Some(slot) = self.slots.of(task)
            && let Ok(counted) = counting.read(&self.object, slot)
        {
            return counted;
        }
        PerCounter::from_fn(|_| None)
    }

    fn moved(&mut self, at: Nanos, traffic: &[Traffic]) {
        let Some(counted) = self.look_up(COUNTED, 0) else {
            return;
        };
        let counted = (0..DOMAINS).map(|domain| counted.u64(8 * domain)).collect();
        let buses = self.buses.as_mut();
        if let Some(image) = buses.and_then(|buses| buses.after(at, traffic, counted)) {
            // Where it fails the scheduler was removed.
            let _ = self.put(TRAFFIC, 0, &image);
        }
    }

    fn switches(&mut self, clock: &Clock, out: &mut Vec<Switch>) {
        let told = self.look_up("occupation", 0);
        let lost = told.is_some_and(|told| told.u64(occupation::LOST) > 0);
        for switch in self.switches.take(lost || self.untold) {
            self.last_switch = clock.run(switch.at);
            let cpu = CpuId(switch.cpu);
            // A process may have chosen a CPU for itself that is not the run's.
            if self.cpus.contains(cpu) {
                let task = self.slots.owner(switch.slot as usize);
                out.push(Switch {
                    at: self.last_switch,
                    what: Switched::To { cpu, task },
                });
            }
        }
        let is_over = lost || self.link.is_none();
        if is_over && !self.untold {
            self.untold = true;
            out.push(Switch {
                at: self.last_switch,
                what: Switched::Untold,
            });
        }
    }

    fn occupation(&mut self) -> Option<Occupation> {
        let told = self.look_up("occupation", 0)?;
        Some(Occupation {
            at_once: std::array::from_fn(|count| Nanos(told.u64(occupation::TIMES + 8 * count))),
            longest_wait: Nanos(told.u64(occupation::LONGEST)),
        })
    }

    fn tend(&mut self) {
        let longest = if self.which == NO_PLAN {
            1
        } else {
            LONGEST_WAIT.0
        };
        let mut told = Image::new(call::SIZE);
        told.put_u64(call::SPAN, longest);
        let is_there = self.run("cosched_rescue", &mut told).is_ok();
        if is_there && told.u64(call::SPAN) > STARVED.0 && self.why_removed.is_none() {
            // The kernel's watchdog would remove it as faulty.
            let hint = if self.takes_all {
                ""
            } else {
                "; --actuator sched-ext-all shares the CPUs with them"
            };
            self.why_removed = Some(format!(
                "ordinary processes, which come first, have left a job no CPU for {} s{hint}",
                STARVED.0 / 1_000_000_000
            ));
        }
    }

    fn unload(&mut self) {
        self.link = None;
    }

    fn line(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn removed(&mut self) -> Option<String> {
        if self.why_removed.is_none() {
            let told = self.look_up("exits", 0)?;
            if told.u32(exit::KIND) == 0 {
                return None;
            }
            let reason = told.text(exit::REASON, exit::REASON_SIZE);
            let message = told.text(exit::MESSAGE, exit::MESSAGE_SIZE);
            self.why_removed = Some(if message.is_empty() {
                reason
            } else {
                format!("{reason}: {message}")
            });
        }
        self.why_removed.clone()
    }

    fn escaped(&mut self) -> Vec<(TaskId, u32)> {
        let mut news = Vec::new();
        let all: Vec<(TaskId, u16)> = self.slots.tasks().collect();
        for (task, slot) in all {
            let Some(count) = self.look_up("escapes", slot.into()) else {
                continue;
            };
            let now = count.u32(0);
            let before = self.escaped.entry(task).or_default();
            if now > *before {
                news.push((task, now - *before));
                *before = now;
            }
        }
        news
    }
}
