//! Hardware counts of each slot. The kernel's side reads them when a CPU goes to another slot: `bpf/counts.h`.

use crate::intf::{CPUS, Image, NONE, call, total};
use cosched_core::{Counter, PerCounter};
use cosched_linux::counters::{CpuEvents, EventReading};
use libbpf_rs::{
    Link, Map, MapCore as _, MapFlags, MapHandle, Object, OpenObject, ProgramInput, ProgramMut,
};
use std::io;
use std::os::fd::AsRawFd as _;

/// The programs that are attached while it counts.
const ATTACHED: [&str; 3] = ["cosched_on_switch", "cosched_on_exec", "cosched_on_fork"];
/// Attached as well where the program has it.
const TICK: &str = "cosched_on_tick";
/// Run on a CPU, it brings what is counted there up to date.
const HERE: &str = "cosched_count_here";
/// The kernel runs a program on the CPU that is asked for; `BPF_F_TEST_RUN_ON_CPU`.
const ON_CPU: u32 = 1;

/// Counts go on until it is dropped, whatever becomes of the scheduler.
pub(crate) struct Counting {
    totals: MapHandle,
    /// The kernel reads them as long as they are open.
    events: CpuEvents,
    _links: Vec<Link>,
}

impl Counting {
    /// Leaves those programs out that are not needed: those that count, unless it `counts`, and that which does so at each tick,
    /// unless it `measures`.
    pub(crate) fn leave_out(open: &mut OpenObject, counts: bool, measures: bool) {
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let counting = ATTACHED.contains(&name.as_str()) || name == HERE;
            if (counting && !counts) || (name == TICK && !(counts && measures)) {
                program.set_autoload(false);
            }
        }
    }

    /// Counts these events from now on.
    pub(crate) fn begin(object: &Object, events: CpuEvents) -> libbpf_rs::Result<Counting> {
        let table = map(object, "events")?;
        for (cpu, counter, event) in events.iter() {
            let key = (counter as usize * CPUS + cpu.0 as usize) as u32;
            table.update(
                &key.to_ne_bytes(),
                &event.as_raw_fd().to_ne_bytes(),
                MapFlags::ANY,
            )?;
        }
        let mut bits = 0_u64;
        for counter in events.counters() {
            bits |= 1 << counter as u32;
        }
        let mut told = Image::new(call::SIZE);
        told.put_u64(call::SPAN, bits);
        run(object, "cosched_use_counters", &mut told)?;
        let mut links = Vec::new();
        for name in ATTACHED {
            links.push(program(object, name)?.attach()?);
        }
        // Without it what goes on is measured when it ends.
        let tick = program(object, TICK).ok().filter(|tick| tick.autoload());
        links.extend(tick.and_then(|tick| tick.attach().ok()));
        Ok(Counting {
            totals: MapHandle::try_from(&map(object, "totals")?)?,
            events,
            _links: links,
        })
    }

    /// The counts of a slot up to now; `None` for a counter that is not in use.
    pub(crate) fn read(
        &self,
        object: &Object,
        slot: u16,
    ) -> io::Result<PerCounter<Option<EventReading>>> {
        self.update(object, slot)?;
        let told = self
            .totals
            .lookup(&u32::from(slot).to_ne_bytes(), MapFlags::ANY)
            .map_err(io::Error::other)?;
        let told = Image(told.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?);
        let used: Vec<Counter> = self.events.counters().collect();
        Ok(PerCounter::from_fn(|counter| {
            let at = total::COUNT * counter as usize;
            used.contains(&counter).then(|| EventReading {
                enabled: told.u64(at + total::ENABLED),
                running: told.u64(at + total::RUNNING),
                value: told.u64(at + total::VALUE),
            })
        }))
    }

    /// Brings what is counted for a slot up to date on each CPU where it is.
    fn update(&self, object: &Object, slot: u16) -> io::Result<()> {
        let mut from = 0;
        loop {
            let mut told = Image::new(call::SIZE);
            told.put_u32(call::SLOT, u32::from(slot));
            told.put_u32(call::ANSWER, from);
            run(object, "cosched_where", &mut told)?;
            let cpu = told.u32(call::ANSWER);
            if cpu == u32::from(NONE) {
                return Ok(());
            }
            // A CPU that was taken offline has no process that counts.
            let _ = program(object, HERE)?.test_run(ProgramInput {
                cpu,
                flags: ON_CPU,
                ..ProgramInput::default()
            });
            from = cpu + 1;
        }
    }

    /// The slot is given to another task.
    pub(crate) fn forget(&self, slot: u16) {
        let zero = Image::new(total::SIZE);
        let _ = self
            .totals
            .update(&u32::from(slot).to_ne_bytes(), &zero.0, MapFlags::ANY);
    }
}

/// Calls one of the programs with an argument that it may change.
pub(crate) fn run(object: &Object, name: &str, told: &mut Image) -> io::Result<()> {
    let input = ProgramInput {
        context_in: Some(&mut told.0),
        ..ProgramInput::default()
    };
    program(object, name)?
        .test_run(input)
        .map_err(io::Error::other)?;
    Ok(())
}

pub(crate) fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the compiled program lacks a part")
}

pub(crate) fn map<'a>(object: &'a Object, name: &str) -> io::Result<Map<'a>> {
    let mut maps = object.maps();
    maps.find(|map| map.name() == name).ok_or_else(missing)
}

fn program<'a>(object: &'a Object, name: &str) -> io::Result<ProgramMut<'a>> {
    let mut programs = object.progs_mut();
    programs
        .find(|program| program.name() == name)
        .ok_or_else(missing)
}

/// Counting alone needs no `sched_ext`: any recent kernel loads it for root.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::intf::task;
    use cosched_core::Machine;
    use cosched_linux::events::{EventOverride, MachineEvents};
    use cosched_linux::root::Root;
    use cosched_linux::topology;
    use libbpf_rs::ObjectBuilder;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

    const SLOT: u16 = 5;
    /// The CPU clock (ns) stands for cycles, page faults for reads.
    const EVENTS: [&str; 2] = ["cycles=software/event=0/", "mm=software/event=2/"];

    /// This machine and its events, if it has no counters of its own.
    fn machine() -> (Machine, MachineEvents) {
        let root = Root::default();
        let own: Vec<EventOverride> = EVENTS.iter().map(|text| text.parse().unwrap()).collect();
        let events = MachineEvents::detect(&root, &own);
        let machine = topology::read(&root, &cosched_linux::affinity(0).unwrap(), None)
            .unwrap()
            .machine;
        (machine, events.unwrap_or_default())
    }

    const COUNT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count.bpf.o"));

    /// The part of the programs that counts; or why this machine does not take it.
    fn counting() -> Result<(Object, Counting), String> {
        let (machine, events) = machine();
        let events = CpuEvents::open(&machine, &events).map_err(|problem| match problem {
            Some(problem) => problem.to_string(),
            None => "this machine has counters of its own".to_owned(),
        })?;
        libbpf_rs::set_print(None);
        let mut open = ObjectBuilder::default()
            .open_memory(COUNT)
            .map_err(|error| error.to_string())?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == ".rodata.config" {
                let mut config = Image::new(crate::intf::config::SIZE);
                config.put_u32(
                    crate::intf::config::NR_CPUS,
                    machine.cpus.iter().map(|cpu| cpu.id.0).max().unwrap() + 1,
                );
                map.set_initial_value(&config.0).unwrap();
            }
        }
        let object = open.load().map_err(|error| error.to_string())?;
        let counting = Counting::begin(&object, events).map_err(|error| error.to_string())?;
        Ok((object, counting))
    }

    /// A shell that does what it is told, line by line, and answers.
    struct Shell {
        child: Child,
        to: ChildStdin,
        from: BufReader<ChildStdout>,
    }

    impl Shell {
        /// Starts one whose process belongs to the slot before it becomes the program.
        fn start(object: &Object) -> Shell {
            let mut child = Command::new("sh")
                .args(["-c", "read go; exec sh"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
            let handle =
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
            let mut value = Image::new(task::SIZE);
            value.put_u32(task::SLOT, u32::from(SLOT));
            let tasks = object.maps().find(|map| map.name() == "tasks").unwrap();
            tasks
                .update(&handle.as_raw_fd().to_ne_bytes(), &value.0, MapFlags::ANY)
                .unwrap();
            let (to, from) = (
                child.stdin.take().unwrap(),
                BufReader::new(child.stdout.take().unwrap()),
            );
            let mut shell = Shell { child, to, from };
            shell.does("");
            shell
        }

        /// Has it do something, and waits until it is done.
        fn does(&mut self, what: &str) {
            writeln!(self.to, "{what}").unwrap();
            writeln!(self.to, "echo done").unwrap();
            let mut line = String::new();
            self.from.read_line(&mut line).unwrap();
            assert_eq!(line, "done\n");
        }

        fn ends(mut self) {
            drop(self.to);
            self.child.wait().unwrap();
        }
    }

    /// CPU time of a process, in ticks of which a second has 100.
    fn ticks(pid: u32) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    #[test]
    fn what_processes_do_is_counted_where_they_do_it() {
        let (object, counting) = match counting() {
            Ok(both) => both,
            Err(why) => return println!("skipped, because {why}"),
        };
        let read = || {
            let counted = counting.read(&object, SLOT).unwrap();
            (
                counted[Counter::Cycles].unwrap(),
                counted[Counter::MmReads].unwrap(),
            )
        };
        assert_eq!(
            counting.read(&object, SLOT + 1).unwrap()[Counter::Cycles],
            Some(EventReading::default())
        );
        let mut shell = Shell::start(&object);
        let (clock, few) = read();
        assert!(clock.value > 0, "it has become its program");
        // Children with memory of their own: its pages are their faults, though those that the kernel meets do not count.
        shell.does("head -c 40000000 /dev/zero | tail -c 30000000 | wc -c >/dev/null");
        let (_, faults) = read();
        assert!(faults.value > few.value + 1_000, "{few:?} {faults:?}");
        // Its own time is that of the kernel's accounts; while it runs and goes on, reading it brings it up to date.
        let (before, _) = read();
        let had = ticks(shell.child.id());
        shell.does("i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done");
        let (after, _) = read();
        let took = (ticks(shell.child.id()) - had) as f64 * 1e7;
        let told = (after.value - before.value) as f64;
        // The accounts are exact to two ticks. Without CPU time of others' making the clock is the time on the CPU.
        assert!(
            told > 0.7 * took - 3e7 && took > 0.2 * told - 3e7,
            "{told} {took}"
        );
        writeln!(shell.to, "while :; do :; done").unwrap();
        let mut last = read().0.value;
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = read().0.value;
            assert!(now >= last);
            last = now;
        }
        assert!(
            last > after.value,
            "one that never leaves its CPU is read there"
        );
        shell.child.kill().unwrap();
        shell.ends();
        let end = read();
        assert_eq!(read(), end, "nobody counts for it any more");
        assert!(end.0.enabled >= end.0.running && end.0.running > 0);
        counting.forget(SLOT);
        assert_eq!(read(), (EventReading::default(), EventReading::default()));
    }

    #[test]
    fn nothing_else_is_counted() {
        let (object, counting) = match counting() {
            Ok(both) => both,
            Err(why) => return println!("skipped, because {why}"),
        };
        Command::new("sh")
            .args([
                "-c",
                "head -c 4000000 /dev/zero | tail -c 3000000 >/dev/null",
            ])
            .status()
            .unwrap();
        for slot in 0..4 {
            let counted = counting.read(&object, slot).unwrap();
            assert!(counted.iter().all(|(_, counted)| {
                counted.is_none_or(|counted| counted == EventReading::default())
            }));
        }
        assert_eq!(
            counting.read(&object, 0).unwrap()[Counter::Instructions],
            None
        );
    }
}
