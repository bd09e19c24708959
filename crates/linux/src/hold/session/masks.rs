//! The CPUs of each thread of the managed programs: what was found, and what was set.
//!
//! A thread is bound only if it may use all CPUs of its group. Somebody has narrowed any other one on purpose, and it is
//! left alone. A thread that starts later inherits the CPUs of its creator. They came from here if the session has given
//! them to a thread, and if it had bound the nearest process that it knows, at or above the thread's own, before.

use super::SessionHold;
use super::restore::give_back;
use super::threads::{comes_from, limit_of, may_inherit, thread_now};
use crate::attached::{Subject, SubjectKey};
use crate::hold::ledger::{Held, Pin};
use crate::process::{self, Process, ProcessKey};
use crate::stat::ticks_since_boot;
use crate::sys::{self, RawPid};
use cosched_core::CpuSet;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Maximum number of threads bound or left alone; each costs half a kilobyte.
const MOST_THREADS: usize = 8_192;
/// Number of known threads at which dead ones are struck out for the first time.
pub(super) const PRUNE: usize = 256;
/// Passes over a process whose threads start threads.
const PASSES: u32 = 8;

/// Why a thread is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftAlone {
    /// Somebody had narrowed its CPUs before.
    Narrowed,
    /// Somebody has changed its CPUs since.
    Changed,
    /// This user may not bind it.
    NotPermitted,
    /// The kernel refuses to bind it to these CPUs.
    Refused,
    /// There are too many threads.
    TooMany,
}

/// How many threads were newly left alone, by reason.
pub(crate) type Skipped = BTreeMap<LeftAlone, usize>;

impl SessionHold {
    /// Binds all threads of a subject. Returns how many are left alone that were not before.
    pub(crate) fn bind(&mut self, subject: &Subject, cpus: &CpuSet) -> Skipped {
        self.bind_members(subject, cpus, false)
    }

    /// Binds the threads of a subject that are new.
    pub(crate) fn bind_new(&mut self, subject: &Subject, cpus: &CpuSet) -> Skipped {
        self.bind_members(subject, cpus, true)
    }

    fn bind_members(&mut self, subject: &Subject, cpus: &CpuSet, only_new: bool) -> Skipped {
        let mut skipped = Skipped::new();
        for &process in &subject.members {
            self.bind_process(subject, process, cpus, &mut skipped, only_new);
        }
        self.prune();
        skipped
    }

    fn knows(&self, tid: RawPid) -> bool {
        let all = |start| ProcessKey { pid: tid, start };
        let all = all(0)..=all(u64::MAX);
        self.pins.range(all.clone()).next().is_some() || self.left.range(all).next().is_some()
    }

    /// Whether a thread of a subject is bound.
    pub(crate) fn binds(&self, subject: &Subject) -> bool {
        self.since(&subject.members).is_some()
    }

    fn bind_process(
        &mut self,
        subject: &Subject,
        process: ProcessKey,
        cpus: &CpuSet,
        skipped: &mut Skipped,
        only_new: bool,
    ) {
        let mut done = BTreeSet::new();
        let mut limit = None;
        for _ in 0..PASSES {
            let mut new = process::threads(&self.root, process.pid);
            new.retain(|&tid| done.insert(tid) && !(only_new && self.knows(tid)));
            if new.is_empty() || process.find(&self.root).is_none() {
                return;
            }
            let limit = limit.get_or_insert_with(|| limit_of(&self.root, process.pid));
            for tid in new {
                if let Err(why) = self.bind_thread(subject, process, tid, cpus, limit) {
                    *skipped.entry(why).or_default() += 1;
                }
            }
        }
    }

    /// Binds a thread; does nothing if it is gone, or was left alone before.
    fn bind_thread(
        &mut self,
        subject: &Subject,
        process: ProcessKey,
        tid: RawPid,
        cpus: &CpuSet,
        limit: &CpuSet,
    ) -> Result<(), LeftAlone> {
        let Some((thread, present)) = thread_now(&self.root, process.pid, tid) else {
            return Ok(());
        };
        if self.left.contains_key(&thread) {
            return Ok(());
        }
        let cpus = cpus.intersection(limit);
        match self.planned(subject, process, thread, present, limit, &cpus) {
            Ok(Some(pin)) => {
                self.enter_group(subject);
                self.carry_out(pin)
            }
            Ok(None) => Ok(()),
            Err(why) => Err(self.leave(thread, why)),
        }
    }

    fn enter_group(&mut self, subject: &Subject) {
        let SubjectKey::Group(dir) = &subject.key else {
            return;
        };
        if self.groups.contains_key(dir) {
            return;
        }
        let group = Held::Group(ticks_since_boot(), dir.as_path().into());
        if let Ok(entry) = self.ledger.enter(&group) {
            self.groups.insert(dir.clone(), entry);
        }
    }

    /// Whether a thread that is not known has inherited its CPUs from the session.
    fn has_inherited(
        &self,
        subject: &Subject,
        process: ProcessKey,
        thread: ProcessKey,
        present: &CpuSet,
        limit: &CpuSet,
    ) -> bool {
        let mut sets = self.sets.iter();
        if !sets.any(|(_, set)| comes_from(present, set, limit)) {
            return false;
        }
        let since = |known| {
            self.since(&[known])
                .or(self.left.get(&known).map(|_| u64::MAX))
        };
        may_inherit(&self.root, process.pid, thread, since).unwrap_or_else(|| {
            // Its creator has ended.
            let since = self.since(&subject.members);
            since.is_some_and(|since| thread.start >= since)
        })
    }

    /// When the first thread of these processes was bound.
    fn since(&self, processes: &[ProcessKey]) -> Option<u64> {
        let pins = self.pins.values().map(|(_, pin)| pin);
        let theirs = pins.filter(|pin| processes.contains(&pin.process));
        theirs.map(|pin| pin.since).min()
    }

    /// The change of a thread; `None` if there is nothing to change.
    fn planned(
        &self,
        subject: &Subject,
        process: ProcessKey,
        thread: ProcessKey,
        present: CpuSet,
        limit: &CpuSet,
        cpus: &CpuSet,
    ) -> Result<Option<Pin>, LeftAlone> {
        if cpus.is_empty() {
            return Err(LeftAlone::Refused);
        }
        if let Some((_, pin)) = self.pins.get(&thread) {
            if !comes_from(&present, &pin.set, limit) {
                return Err(LeftAlone::Changed);
            }
            if pin.set == *cpus {
                return Ok(None);
            }
            let (set, before) = (cpus.clone(), present);
            return Ok(Some(Pin {
                set,
                before,
                ..pin.clone()
            }));
        }
        if present != *limit && !self.has_inherited(subject, process, thread, &present, limit) {
            return Err(LeftAlone::Narrowed);
        }
        if present == *limit && cpus == limit {
            return Ok(None);
        }
        if self.len() >= MOST_THREADS {
            return Err(LeftAlone::TooMany);
        }
        Ok(Some(Pin {
            thread,
            process,
            old: limit.clone(),
            set: cpus.clone(),
            before: present,
            since: ticks_since_boot(),
        }))
    }

    /// Enters the change, and makes it.
    fn carry_out(&mut self, pin: Pin) -> Result<(), LeftAlone> {
        let thread = pin.thread;
        let (set, is_there) = (pin.set.clone(), pin.before == pin.set);
        if self.enter(pin).is_err() {
            return Err(self.leave(thread, LeftAlone::TooMany));
        }
        if is_there {
            return Ok(());
        }
        match sys::set_affinity(thread.pid, &set) {
            Ok(()) => {
                self.check_number(thread);
                Ok(())
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::SRCH) => {
                    self.pins.remove(&thread);
                    Ok(())
                }
                Some(Errno::PERM) => Err(self.leave(thread, LeftAlone::NotPermitted)),
                _ => Err(self.leave(thread, LeftAlone::Refused)),
            },
        }
    }

    fn enter(&mut self, pin: Pin) -> io::Result<()> {
        if !self.sets.iter().any(|(_, set)| *set == pin.set) {
            let entry = self.ledger.enter(&Held::Set(pin.set.clone()))?;
            self.sets.push((entry, pin.set.clone()));
        }
        let held = Held::Pin(pin.clone());
        if let Some((entry, known)) = self.pins.get_mut(&pin.thread) {
            entry.replace(&held)?;
            *known = pin;
        } else {
            let entry = self.ledger.enter(&held)?;
            self.pins.insert(pin.thread, (entry, pin));
        }
        Ok(())
    }

    /// Frees another thread that was bound because it has got the number of this one.
    fn check_number(&mut self, thread: ProcessKey) {
        let now = Process::read(&self.root, thread.pid);
        if now.is_some_and(|now| now.start != thread.start) {
            give_back(&self.root, thread.pid, &limit_of(&self.root, thread.pid));
            self.pins.remove(&thread);
        }
    }

    /// Leaves a thread alone from now on.
    fn leave(&mut self, thread: ProcessKey, why: LeftAlone) -> LeftAlone {
        self.pins.remove(&thread);
        if why != LeftAlone::TooMany {
            let entry = self.ledger.enter(&Held::Alone(thread)).ok();
            self.left.insert(thread, entry);
        }
        why
    }

    /// Number of entries.
    fn len(&self) -> usize {
        self.pins.len() + self.left.len() + self.groups.len() + self.sets.len()
    }

    /// Strikes out threads and groups that have gone, now and then. The kernel shows every thread below `/proc`, although it
    /// does not list it there.
    fn prune(&mut self) {
        if self.len() < self.prune_at {
            return;
        }
        let root = &self.root;
        self.groups.retain(|dir, _| dir.exists());
        self.pins.retain(|thread, _| thread.find(root).is_some());
        self.left.retain(|thread, _| thread.find(root).is_some());
        self.prune_at = (2 * self.len()).max(PRUNE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::restore::restore;
    use super::*;
    use crate::root::Root;
    use crate::run_id::RunId;
    use rustix::process::geteuid;
    use std::io::Write as _;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let family = process::descendants(&Root::default(), self.0.id() as RawPid);
            let all = family.iter().map(|process| process.pid);
            all.for_each(|pid| drop(sys::kill(pid, libc::SIGKILL)));
            let _ = self.0.wait();
        }
    }

    impl Killed {
        fn sleeper() -> Killed {
            Killed(Command::new("sleep").arg("600").spawn().unwrap())
        }

        fn member(&self) -> ProcessKey {
            member(self.0.id() as RawPid)
        }

        fn cpus(&self) -> String {
            cpus_of(self.0.id() as RawPid)
        }

        fn set(&self, cpus: &str) {
            sys::set_affinity(self.0.id() as RawPid, &cpus.parse().unwrap()).unwrap();
        }
    }

    fn member(pid: RawPid) -> ProcessKey {
        ProcessKey::from(&Process::read(&Root::default(), pid).unwrap())
    }

    fn cpus_of(pid: RawPid) -> String {
        let status = format!("/proc/{pid}/status");
        let cpus = process::allowed_cpus(&Root::default(), &status);
        cpus.unwrap().to_string()
    }

    fn subject(members: &[ProcessKey]) -> Subject {
        let first = members[0];
        Subject {
            key: SubjectKey::Tree {
                pid: first.pid,
                start: first.start,
            },
            name: "s".to_owned(),
            command: None,
            group: None,
            members: members.to_vec(),
        }
    }

    /// A shell that forks a sleeping child when it reads a line.
    fn forker() -> Killed {
        let child = Command::new("sh")
            .args(["-c", "read line; sleep 600 & wait"])
            .stdin(Stdio::piped())
            .spawn();
        Killed(child.unwrap())
    }

    /// Waits until what has started is older than what is bound next.
    fn pass_a_tick() {
        let begin = ticks_since_boot();
        while ticks_since_boot() < begin + 2 {
            std::thread::yield_now();
        }
    }

    fn fork(shell: &mut Killed) -> RawPid {
        shell.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let pid = shell.0.id() as RawPid;
        loop {
            let children = process::children_of_thread(&Root::default(), pid, pid);
            if let Some(&child) = children.first() {
                return child;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_get_back_what_they_had_unless_somebody_changed_it() {
        let root = Root::default();
        let limit = limit_of(&root, std::process::id() as RawPid);
        let all = limit.to_string();
        let (own, Some(run)) = (cpus_of(std::process::id() as RawPid), RunId::own(&root)) else {
            return eprintln!("skipped, because /proc is of another namespace");
        };
        let cpus: Vec<_> = limit.iter().collect();
        if cpus.len() < 2 || own != all {
            return eprintln!("skipped, because it takes two CPUs, and this test has {own}");
        }
        let (one, other) = (CpuSet::from(cpus[0]), CpuSet::from(cpus[1]));
        let [one_text, other_text] = [&one, &other].map(CpuSet::to_string);
        let [plain, moved, narrowed, same] = std::array::from_fn(|_| Killed::sleeper());
        let mut shell = forker();
        narrowed.set(&other_text);
        same.set(&one_text);
        let each = [&plain, &moved, &narrowed, &same, &shell].map(Killed::member);
        pass_a_tick();
        let mut hold = SessionHold::without_guardian(&root, run, Duration::ZERO).unwrap();
        let skipped = hold.bind(&subject(&each), &one);
        assert_eq!(skipped, [(LeftAlone::Narrowed, 2)].into());
        let state = |of: [&Killed; 4]| of.map(Killed::cpus);
        let four = [&plain, &moved, &narrowed, &same];
        let [first, second] = [&one_text, &other_text].map(String::as_str);
        assert_eq!(state(four), [first, first, second, first]);
        // Again: nothing is told twice. A late child inherits, whether it is seen or not.
        assert_eq!(hold.bind(&subject(&each), &one), Skipped::new());
        let child = fork(&mut shell);
        let late = hold.bind_new(&subject(&[member(child)]), &one);
        assert_eq!((late, cpus_of(child)), (Skipped::new(), one_text.clone()));
        // Somebody changes one. The next move leaves it alone, and moves the others.
        moved.set(&all);
        let skipped = hold.bind(&subject(&each), &other);
        assert_eq!(skipped, [(LeftAlone::Changed, 1)].into());
        assert_eq!(state(four), [second, all.as_str(), second, first]);
        // An entry of an earlier thread with the same number.
        let mut list = hold.ledger.read().unwrap();
        let pin = list.pins[0].clone();
        list.pins.push(Pin {
            thread: ProcessKey {
                pid: same.0.id() as RawPid,
                start: 1,
            },
            old: one.clone(),
            set: one.clone(),
            before: other.clone(),
            ..pin
        });
        let done = restore(&root, &list, geteuid().as_raw());
        assert_eq!(state(four), [all.as_str(), all.as_str(), second, first]);
        assert_eq!([cpus_of(child), shell.cpus()], [all.clone(), all.clone()]);
        assert!(
            done.refused.is_empty() && done.changed.is_empty(),
            "{done:?}"
        );
        assert_eq!(done.threads.len(), 3, "{done:?}");
    }

    #[test]
    fn a_child_that_nobody_saw_gets_the_cpus_of_its_family_back() {
        let root = Root::default();
        let limit = limit_of(&root, std::process::id() as RawPid);
        let Some(run) = RunId::own(&root).filter(|_| limit.len() > 1) else {
            return eprintln!("skipped, because it takes two CPUs");
        };
        let mut shell = forker();
        // The list of another session of this process would have the same name.
        let run = run.led_by(&Process::read(&root, shell.0.id() as RawPid).unwrap());
        if shell.cpus() != limit.to_string() {
            return eprintln!("skipped, because this test may not use all CPUs");
        }
        pass_a_tick();
        let mut hold = SessionHold::without_guardian(&root, run, Duration::ZERO).unwrap();
        let mut alone = forker();
        let one = CpuSet::from(limit.first().unwrap());
        let other = CpuSet::from(limit.iter().nth(1).unwrap());
        alone.set(&one.to_string());
        pass_a_tick();
        let family = subject(&[shell.member(), alone.member()]);
        assert_eq!(hold.bind(&family, &one), [(LeftAlone::Narrowed, 1)].into());
        let [child, of_alone] = [&mut shell, &mut alone].map(fork);
        // That they were bound longer ago, and in whose subject they are, makes no difference.
        hold.bind(&family, &other);
        hold.bind(&family, &limit);
        let late = hold.bind_new(&subject(&[member(of_alone)]), &other);
        assert_eq!(late, [(LeftAlone::Narrowed, 1)].into());
        assert_eq!(
            [child, of_alone].map(cpus_of),
            [one.to_string(), one.to_string()]
        );
        let done = restore(&root, &hold.ledger.read().unwrap(), geteuid().as_raw());
        assert_eq!(cpus_of(child), limit.to_string());
        assert_eq!(
            [alone.cpus(), cpus_of(of_alone)],
            [one.to_string(), one.to_string()]
        );
        assert_eq!(done.threads.len(), 2, "{done:?}");
    }
}
