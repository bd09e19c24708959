//! The CPUs that a run uses now: its share beside other runs, less those that are offline, and those that it leaves to others
//! if it is polite.

use super::clock::monotonic;
use super::notice::{HostNotice, HostNotices};
use crate::accounts::{CpuAccounts, read_with_family};
use crate::division::first;
use crate::neighbours::PlaceAmongRuns;
use crate::polite::{Polite, Wants};
use crate::pressure;
use crate::root::Root;
use crate::topology;
use cosched_core::{CpuSet, Machine, Nanos};
use std::cell::RefCell;
use std::rc::Rc;

/// Time between two looks.
const INTERVAL: Nanos = Nanos::from_ms(1_000);

/// Which of its CPUs a run uses.
pub(super) struct Extent {
    /// The machine with all CPUs that the run may use.
    whole: Machine,
    /// Its place among other runs; `None` if its CPUs never change.
    place: Option<Rc<RefCell<PlaceAmongRuns>>>,
    polite: Option<Politeness>,
    cpus: CpuSet,
    /// Its CPUs that are offline; `None` if it does not look, because a scheduler in the kernel has the CPUs.
    offline: Option<CpuSet>,
    /// Whether jobs are live or wait.
    is_busy: bool,
    /// Time of the next look; `None` for never.
    next: Option<Nanos>,
    /// Whether the user was told that the share has become smaller, or larger.
    told: [bool; 2],
}

impl Extent {
    /// The extent of a run on this machine; `in_kernel` if a scheduler in the kernel carries out its plans.
    pub(super) fn new(
        whole: Machine,
        place: Option<Rc<RefCell<PlaceAmongRuns>>>,
        polite: bool,
        in_kernel: bool,
    ) -> Extent {
        let may_change = place
            .as_ref()
            .is_some_and(|place| place.borrow().may_change());
        let mut extent = Extent {
            cpus: CpuSet::new(),
            offline: (!in_kernel).then(CpuSet::new),
            is_busy: true,
            next: (may_change || polite || !in_kernel).then(monotonic),
            polite: polite.then(Politeness::default),
            whole,
            place,
            told: [false; 2],
        };
        extent.cpus = extent.share();
        extent
    }

    /// The machine with the CPUs that the run uses now.
    pub(super) fn machine(&self) -> Machine {
        self.whole.part(&self.cpus)
    }

    /// Whether no CPU is left to the run.
    pub(super) fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Whether no job may start, because memory is short.
    pub(super) fn is_short_of_memory(&self) -> bool {
        let polite = self.polite.as_ref();
        polite.is_some_and(|polite| polite.state.is_short)
    }

    /// Time until the next look, if there is one. An idle run need not look.
    pub(super) fn wait(&self) -> Option<Nanos> {
        let next = self.next.filter(|_| self.is_busy);
        next.map(|next| next - monotonic())
    }

    /// Publishes the CPUs while jobs are live or wait, and withdraws them while the run is idle.
    pub(super) fn set_busy(&mut self, is_busy: bool) {
        if self.is_busy == is_busy {
            return;
        }
        self.is_busy = is_busy;
        if let Some(place) = &self.place {
            place.borrow_mut().set_busy(is_busy);
        }
        // Other runs may have come while this one did not look.
        self.next = self.next.map(|_| monotonic());
    }

    /// Keeps the CPUs from now on: the run is being ended.
    pub(super) fn settle(&mut self) {
        self.next = None;
        if self.is_empty() {
            self.cpus = self.share();
        }
    }

    /// Looks what others do, if that is due; returns whether the CPUs change.
    pub(super) fn look(&mut self, root: &Root, notices: &HostNotices) -> bool {
        let now = monotonic();
        if self.next.is_none_or(|next| now < next) {
            return false;
        }
        self.next = Some(now + INTERVAL);
        self.look_at_runs(notices);
        self.look_at_cpus(root, notices);
        let share = self.share();
        let mut left = 0;
        if let Some(polite) = &mut self.polite {
            left = polite.look(root, &share, notices);
        }
        let cpus = first(&share, share.len() - left, &self.whole.cores);
        std::mem::replace(&mut self.cpus, cpus) != self.cpus
    }

    /// The CPUs of this run beside other runs, as far as they are online.
    fn share(&self) -> CpuSet {
        let mut share = match &self.place {
            Some(place) => place.borrow().cpus().clone(),
            None => self.whole.all_cpus(),
        };
        if let Some(offline) = &self.offline {
            share.remove_all(offline);
        }
        share
    }

    /// Looks which CPUs are offline, and tells the user when that changes. The kernel moves what ran on such a CPU to any other.
    fn look_at_cpus(&mut self, root: &Root, notices: &HostNotices) {
        let Some(offline) = &mut self.offline else {
            return;
        };
        // What cannot be read now is as it was.
        let Ok(online) = topology::online(root) else {
            return;
        };
        let mut gone = self.whole.all_cpus();
        gone.remove_all(&online);
        if gone != *offline {
            notices.tell(HostNotice::Offline(gone.clone()));
            *offline = gone;
        }
    }

    /// Looks for other runs. The user is told once that the share became smaller, and once that it grew.
    fn look_at_runs(&mut self, notices: &HostNotices) {
        let Some(place) = &self.place else { return };
        let before = place.borrow().cpus().len();
        if !place.borrow_mut().look() {
            return;
        }
        let place = place.borrow();
        let has_grown = place.cpus().len() > before;
        if !std::mem::replace(&mut self.told[usize::from(has_grown)], true) {
            notices.tell(HostNotice::Share {
                cpus: place.cpus().clone(),
                others: place.others().to_vec(),
                has_grown,
            });
        }
    }

    /// Tells the user for how long the run had stepped back.
    pub(super) fn sum_up(&self, notices: &HostNotices) {
        let Some(polite) = &self.polite else { return };
        let now = polite.since.map(|since| monotonic() - since);
        let time = polite.total + now.unwrap_or_default();
        if time > Nanos::ZERO {
            notices.tell(HostNotice::SteppedBack(time));
        }
    }
}

/// What a polite run knows of others.
#[derive(Default)]
struct Politeness {
    state: Polite,
    /// The last accounts, with their CPUs.
    before: Option<(CpuSet, CpuAccounts)>,
    /// Since when it has stepped back, if it has.
    since: Option<Nanos>,
    /// The time for which it had stepped back before.
    total: Nanos,
}

impl Politeness {
    /// Returns how many of these CPUs are left to others.
    fn look(&mut self, root: &Root, cpus: &CpuSet, notices: &HostNotices) -> usize {
        let now = read_with_family(root, cpus);
        let before = std::mem::replace(&mut self.before, now.map(|now| (cpus.clone(), now)));
        let before = before.filter(|(then, _)| then == cpus);
        let used = now
            .zip(before)
            .and_then(|(now, (_, then))| now.since(&then));
        // What cannot be read now is as it was.
        if let Some(used) = used {
            let wants = Wants {
                cpus: used.foreign.share_of(used.total) * cpus.len() as f64,
                memory: pressure::memory(root).unwrap_or(0.0),
            };
            self.state = self.state.after(wants, cpus.len());
            self.note(notices);
        }
        self.state.left.min(cpus.len())
    }

    /// Tells the user when the run steps back, and when it has all of its CPUs again.
    fn note(&mut self, notices: &HostNotices) {
        let has_stepped_back = self.state.left > 0;
        match self.since {
            None if has_stepped_back => {
                self.since = Some(monotonic());
                notices.tell(HostNotice::StepsBack);
            }
            Some(since) if !has_stepped_back => {
                self.total += monotonic() - since;
                self.since = None;
                notices.tell(HostNotice::Returns);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Accounts of two CPUs, of which this process had `own` ticks and others had `foreign`.
    fn write_accounts(dir: &Path, (own, foreign, idle): (u64, u64, u64), pressure: f64) {
        let pid = std::process::id();
        let process = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(process.join(format!("task/{pid}"))).unwrap();
        std::fs::create_dir_all(dir.join("proc/pressure")).unwrap();
        let stat = format!("{pid} (p) R 1 9 9 0 -1 0 1 2 3 4 {own} 0 0 0 20 0 1 0 7");
        std::fs::write(process.join("stat"), stat).unwrap();
        let busy = own + foreign;
        let stat = format!("cpu0 {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n");
        std::fs::write(dir.join("proc/stat"), stat).unwrap();
        let some = format!("some avg10={pressure:.2} avg60=0.00 avg300=0.00 total=5\n");
        std::fs::write(dir.join("proc/pressure/memory"), some).unwrap();
    }

    #[test]
    fn cpus_that_go_offline_are_left_out_until_they_return() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let folder = dir.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&folder).unwrap();
        let told = Rc::new(RefCell::new(Vec::new()));
        let listener = told.clone();
        let notices = HostNotices::new(Box::new(move |notice| {
            listener.borrow_mut().push(format!("{notice:?}"));
        }));
        let mut extent = Extent::new(Machine::uniform("three", 3, 1), None, false, false);
        let mut look = |online: &str| {
            std::fs::write(folder.join("online"), online).unwrap();
            extent.next = Some(Nanos::ZERO);
            let has_changed = extent.look(&root, &notices);
            (has_changed, extent.machine().all_cpus().to_string())
        };
        assert_eq!(look("0-2"), (false, "0-2".to_owned()));
        assert_eq!(look("0,2"), (true, "0,2".to_owned()));
        assert_eq!(look("0,2"), (false, "0,2".to_owned()));
        assert_eq!(look("0-7"), (true, "0-2".to_owned()));
        assert_eq!(told.borrow().len(), 2, "{told:?}");
    }

    #[test]
    fn what_others_use_is_left_to_them_and_the_user_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let told = Rc::new(RefCell::new(Vec::new()));
        let listener = told.clone();
        let notices = HostNotices::new(Box::new(move |notice| {
            listener.borrow_mut().push(format!("{notice:?}"));
        }));
        let cpus: CpuSet = "0-1".parse().unwrap();
        let mut polite = Politeness::default();
        let mut sums = (0, 0, 1);
        // Of the 200 ticks of a second.
        let mut second = |own: u64, foreign: u64, pressure: f64| {
            sums = (sums.0 + own, sums.1 + foreign, sums.2 + 200 - own - foreign);
            write_accounts(dir.path(), sums, pressure);
            polite.look(&root, &cpus, &notices)
        };
        let busy = [
            second(200, 0, 0.0),
            second(200, 0, 0.0),
            second(180, 20, 0.0),
        ];
        assert_eq!(busy, [0, 0, 0], "all of it is its own, or nearly");
        assert_eq!([second(150, 50, 0.0), second(120, 80, 0.0)], [0, 1]);
        assert_eq!([second(0, 150, 0.0), second(0, 150, 0.0)], [1, 2]);
        assert_eq!(*told.borrow(), ["StepsBack"], "once");
        let quiet: Vec<usize> = (0..12).map(|_| second(0, 10, 0.0)).collect();
        assert_eq!(quiet, [[2; 10].as_slice(), &[1, 0]].concat());
        assert_eq!(*told.borrow(), ["StepsBack", "Returns"]);
        assert_eq!(
            [second(0, 0, 11.0), second(0, 0, 9.0)],
            [1, 1],
            "memory is short"
        );
    }
}
