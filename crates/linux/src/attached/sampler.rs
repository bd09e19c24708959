//! What the subjects did between two looks.

use super::counted::SubjectCounters;
use super::error::SelectError;
use super::finder::{Finder, FoundSubjects};
use super::selection::{Selection, Subject, SubjectKey};
use super::watched::{Activity, ScanInterval, WatchedProcess};
use crate::accounts::{self, CpuSpent};
use crate::events::MachineEvents;
use crate::pressure;
use crate::process::ProcessKey;
use crate::root::Root;
use crate::stat::{Stat, since_boot, tick_time};
use crate::sys::{self, RawPid};
use cosched_core::{
    Absence, CpuId, CpuShare, CpuUsed, Nanos, Observed, Pressure, Reading, SubjectSample,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Maximum number of threads read in a look.
const MOST_THREADS: usize = 4_096;

/// Observes subjects.
pub struct Sampler {
    root: Root,
    finder: Finder,
    watched: BTreeMap<ProcessKey, WatchedProcess>,
    counted: SubjectCounters,
    before: Option<Before>,
    looks: u64,
}

/// The last look.
struct Before {
    at: Nanos,
    cpus: Option<BTreeMap<CpuId, CpuSpent>>,
    subjects: BTreeMap<SubjectKey, Past>,
}

/// A subject at the last look.
struct Past {
    name: String,
    members: Vec<ProcessKey>,
    resident: Option<u64>,
}

impl Past {
    fn of(subject: &Subject, sample: &SubjectSample) -> Past {
        Past {
            name: subject.name.clone(),
            members: subject.members.clone(),
            resident: sample.resident.value(),
        }
    }
}

/// What a look has shown.
pub struct Sampled {
    /// What was observed since the look before. Its length is zero at the first look.
    pub observed: Observed,
    /// The subjects, in the order of the samples.
    pub subjects: Vec<Subject>,
    /// Names of the subjects that have ended since the look before.
    pub ended: Vec<String>,
    /// Processes that were left out because there are too many.
    pub processes_left_out: usize,
    /// Threads that were left out because there are too many.
    pub threads_left_out: usize,
}

impl Sampler {
    /// Observes these selections. It takes no look yet.
    ///
    /// # Errors
    /// A named process, group or user does not exist.
    pub fn new(
        root: &Root,
        selections: &[Selection],
        events: MachineEvents,
    ) -> Result<Sampler, SelectError> {
        let _ = sys::raise_file_limit();
        Ok(Sampler {
            root: root.clone(),
            finder: Finder::new(root, selections)?,
            watched: BTreeMap::new(),
            counted: SubjectCounters::new(root, events),
            before: None,
            looks: 0,
        })
    }

    /// Looks at all subjects.
    pub fn look(&mut self) -> Sampled {
        self.look_at(since_boot())
    }

    /// Looks at all subjects; `at` is the time since the machine was started.
    pub(super) fn look_at(&mut self, at: Nanos) -> Sampled {
        let FoundSubjects { subjects, left_out } = self.finder.find();
        let before = self.before.take();
        let root = self.root.clone();
        let mut look = ScanInterval {
            root: &root,
            length: before
                .as_ref()
                .map_or(Nanos::ZERO, |before| at.since(before.at)),
            began: before.as_ref().map_or(at, |before| before.at),
            number: self.looks,
            threads: MOST_THREADS,
            left_out: 0,
        };
        self.looks += 1;
        let mut pressures = BTreeMap::new();
        let mut now = BTreeMap::new();
        let (mut live, mut samples) = (Vec::new(), Vec::new());
        for subject in subjects {
            let past = before
                .as_ref()
                .and_then(|before| before.subjects.get(&subject.key));
            let sample = self.sample(&mut look, &subject, past, &mut pressures);
            // Some processes may have ended since they were listed, or wait as zombies for their parents.
            if sample.processes > 0 {
                now.insert(subject.key.clone(), Past::of(&subject, &sample));
                samples.push(sample);
                live.push(subject);
            }
        }
        self.drop_gone(&live);
        let cpus = accounts::each(&root);
        let sampled = Sampled {
            observed: Observed {
                length: look.length,
                subjects: samples,
                cpus: cpus_used(
                    before.as_ref().and_then(|before| before.cpus.as_ref()),
                    &cpus,
                ),
            },
            ended: ended(before.as_ref(), &now),
            subjects: live,
            processes_left_out: left_out,
            threads_left_out: look.left_out,
        };
        self.before = Some(Before {
            at,
            cpus,
            subjects: now,
        });
        sampled
    }

    /// One subject. It has no process if all have ended.
    fn sample(
        &mut self,
        look: &mut ScanInterval<'_>,
        subject: &Subject,
        past: Option<&Past>,
        pressures: &mut BTreeMap<Option<PathBuf>, Pressure>,
    ) -> SubjectSample {
        let activities = self.activities(look, &subject.members);
        let gone = self.time_of_gone(past, &activities);
        let all: Vec<&Activity> = activities.values().collect();
        let live = all.iter().filter(|activity| !activity.is_dead());
        let on = merged(&all);
        let resident = resident(&all);
        let used = sum(all.iter().map(|activity| activity.used));
        let has_waits = all.iter().any(|activity| activity.counts_waits);
        let waited = has_waits.then(|| sum(on.iter().map(|on| on.waited)));
        let pressure = pressures.entry(subject.group.clone());
        SubjectSample {
            name: subject.name.clone(),
            processes: live.count() as u32,
            threads: all.iter().map(|activity| activity.stat.threads).sum(),
            wants: all.iter().map(|activity| activity.wants).sum(),
            cpu_time: used.since(gone),
            waited: Reading::from_option(waited, Absence::NotTold),
            on,
            resident: Reading::from_option(resident, Absence::NotTold),
            grew: grew(past.map(|past| past.resident), resident),
            pressure: *pressure
                .or_insert_with_key(|group| pressure::of_group(look.root, group.as_deref())),
            counts: self.counted.of(&activities),
        }
    }

    /// What each process of a subject did.
    fn activities(
        &mut self,
        look: &mut ScanInterval<'_>,
        members: &[ProcessKey],
    ) -> BTreeMap<ProcessKey, Activity> {
        let mut all = BTreeMap::new();
        for &member in members {
            let watched = self
                .watched
                .entry(member)
                .or_insert_with(|| WatchedProcess::new(look.root, member));
            match watched.look(look) {
                Some(activity) => drop(all.insert(member, activity)),
                None => self.finder.forget(member.pid),
            }
        }
        all
    }

    /// CPU time of processes that have ended, as far as the CPU time of waited-for children of the others contains it.
    /// It belongs to earlier intervals.
    fn time_of_gone(&self, past: Option<&Past>, now: &BTreeMap<ProcessKey, Activity>) -> Nanos {
        let mut gone: BTreeMap<RawPid, &Stat> = BTreeMap::new();
        for member in past.iter().flat_map(|past| &past.members) {
            let last = self.watched.get(member).and_then(WatchedProcess::last);
            if let Some(last) = last.filter(|_| !now.contains_key(member)) {
                gone.insert(member.pid, last);
            }
        }
        let mut known: BTreeMap<RawPid, Nanos> = BTreeMap::new();
        for last in gone.values() {
            // A parent that has ended too left its times to its own parent.
            let mut heir = last.parent;
            while let Some(above) = gone.get(&heir).filter(|above| above.parent != heir) {
                heir = above.parent;
            }
            *known.entry(heir).or_default() += tick_time(last.ticks + last.child_ticks);
        }
        sum(now.iter().map(|(member, activity)| {
            let of_gone = known.get(&member.pid).copied().unwrap_or_default();
            of_gone.min(activity.of_children)
        }))
    }

    /// Forgets processes that belong to no subject any more.
    fn drop_gone(&mut self, subjects: &[Subject]) {
        let present: BTreeSet<&ProcessKey> = subjects
            .iter()
            .flat_map(|subject| &subject.members)
            .collect();
        self.watched.retain(|member, _| present.contains(member));
        self.counted.retain(|member| present.contains(member));
    }
}

fn sum(times: impl Iterator<Item = Nanos>) -> Nanos {
    times.fold(Nanos::ZERO, |sum, time| sum + time)
}

/// The shares of all processes, one for each CPU.
fn merged(activities: &[&Activity]) -> Vec<CpuShare> {
    let mut each: BTreeMap<CpuId, CpuShare> = BTreeMap::new();
    for on in activities.iter().flat_map(|activity| &activity.on) {
        let share = each.entry(on.cpu).or_insert(CpuShare {
            cpu: on.cpu,
            used: Nanos::ZERO,
            waited: Nanos::ZERO,
        });
        share.used += on.used;
        share.waited += on.waited;
    }
    each.into_values().collect()
}

/// The resident memory of all processes; `None` if that of one is not known.
fn resident(activities: &[&Activity]) -> Option<u64> {
    activities
        .iter()
        .map(|activity| activity.stat.resident)
        .sum()
}

fn grew(before: Option<Option<u64>>, now: Option<u64>) -> Reading<i64> {
    match (before, now) {
        (Some(Some(before)), Some(now)) => Reading::Value(now as i64 - before as i64),
        (None, Some(_)) => Reading::Absent(Absence::NotYetMeasured),
        _ => Reading::Absent(Absence::NotTold),
    }
}

/// How each CPU spent the interval.
fn cpus_used(
    before: Option<&BTreeMap<CpuId, CpuSpent>>,
    now: &Option<BTreeMap<CpuId, CpuSpent>>,
) -> Reading<Vec<CpuUsed>> {
    let Some(now) = now else {
        return Reading::Absent(Absence::NotTold);
    };
    let Some(before) = before else {
        return Reading::Absent(Absence::NotYetMeasured);
    };
    let both = now
        .iter()
        .filter_map(|(cpu, now)| Some((cpu, now, before.get(cpu)?)));
    let used = both.map(|(&cpu, now, before)| CpuUsed {
        cpu,
        busy: now.busy.since(before.busy),
        stolen: now.stolen.since(before.stolen),
    });
    Reading::Value(used.collect())
}

/// The names of the subjects that were there at the last look and are not now.
fn ended(before: Option<&Before>, now: &BTreeMap<SubjectKey, Past>) -> Vec<String> {
    let past = before.iter().flat_map(|before| &before.subjects);
    let gone = past.filter(|(key, _)| !now.contains_key(key));
    gone.map(|(_, past)| past.name.clone()).collect()
}
