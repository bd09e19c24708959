//! What a series tells, seen over the whole run: who ran where and when, why others waited meanwhile, and how much the
//! memory moved.
//!
//! [`traffic`]: the lines that were read and written, in equal parts of the run.

mod traffic;

use crate::holders::Holders;
use crate::series::{Mode, Row, SeriesError, SeriesReader};
use cosched_core::{Counter, CpuId, CpuSet, Nanos, Purpose, Switched, TaskId, WaitReason};
use std::collections::BTreeSet;
use std::io::BufRead;
pub use traffic::Traffic;

/// A time for which a job had the same CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// When it was placed there.
    pub from: Nanos,
    /// When it was stopped, moved or had ended; the last time of the series if that is not known.
    pub to: Nanos,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Whether they were its own.
    pub mode: Mode,
    /// What the placement was for.
    pub purpose: Purpose,
}

/// A time for which a job waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// When it had to.
    pub from: Nanos,
    /// When it was placed or had ended; the last time of the series if that is not known.
    pub to: Nanos,
    /// Why, in the end.
    pub reason: WaitReason,
    /// How often the reason changed meanwhile.
    pub changes: u32,
}

/// What happened to a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobTimeline {
    /// When it was started, also again.
    pub starts: Vec<Nanos>,
    /// When it ended, and how, in words; after its last attempt, or for the first time.
    pub end: Option<(Nanos, String)>,
    /// Where it was, in the order of time; none overlaps another.
    pub stays: Vec<Stay>,
    /// When it waited, in the order of time.
    pub waits: Vec<Wait>,
}

/// What happened in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The CPUs of the run.
    pub cpus: CpuSet,
    /// When it begins: zero, unless it is a [section](Timeline::section).
    pub from: Nanos,
    /// The time of the last line.
    pub until: Nanos,
    /// Every job, by the number of its task, which is its place in the record.
    pub jobs: Vec<JobTimeline>,
    /// Decisions that were made.
    pub decisions: u64,
    /// What memory moved; `None` where no sample told.
    pub traffic: Option<Traffic>,
    /// The last line was cut off.
    pub cut_off: bool,
}

impl Timeline {
    /// Reads a series to its end, one line in memory at a time.
    ///
    /// # Errors
    /// A line can't be read. A last line that was cut off is no error.
    pub fn read<R: BufRead>(series: &mut SeriesReader<R>) -> Result<Timeline, SeriesError> {
        let mut open: Vec<Open> = series
            .header()
            .tasks
            .iter()
            .map(|_| Open::default())
            .collect();
        let mut timeline = Timeline {
            cpus: series.header().machine.all_cpus(),
            ..Timeline::default()
        };
        let mut traffic = Traffic::new();
        let mut holders = Holders::default();
        let mut now = Nanos::ZERO;
        for line in series.by_ref() {
            let (at, row) = line?;
            // Measurements tell of the past. Whatever else has an earlier time than a line before it is told late.
            timeline.until = timeline.until.max(at);
            now = if row.is_of_the_past() {
                now
            } else {
                now.max(at)
            };
            let at = if row.is_of_the_past() { at } else { now };
            match row {
                Row::Decided { .. } => timeline.decisions += 1,
                Row::Placed {
                    task,
                    cpus,
                    mode,
                    purpose,
                } => change(&mut open, task, |job| {
                    (job.place, job.reason) = (Some((cpus, mode, purpose)), None);
                    job.settle(at);
                }),
                Row::Stopped(task) => change(&mut open, task, |job| {
                    job.place = None;
                    job.settle(at);
                }),
                Row::Switched(switched @ Switched::To { cpu, task }) => {
                    if let Some(before) = holders.switched(at, switched) {
                        change(&mut open, before, |job| {
                            job.has(at, |cpus| _ = cpus.remove(&cpu))
                        });
                    }
                    if let Some(task) = task {
                        change(&mut open, task, |job| {
                            job.has(at, |cpus| _ = cpus.insert(cpu))
                        });
                    }
                }
                Row::Switched(Switched::Untold) => {
                    holders = Holders::default();
                    for job in &mut open {
                        if job.has.take().is_some() {
                            job.settle(at);
                        }
                    }
                }
                Row::Waits { task, reason } => change(&mut open, task, |job| job.wait(at, reason)),
                Row::Started(task) => change(&mut open, task, |job| {
                    job.done.starts.push(at);
                    job.is_over = false;
                }),
                Row::Ended(row) => change(&mut open, row.task, |job| {
                    job.leave(at);
                    (job.place, job.has, job.reason, job.is_over) = (None, None, None, true);
                    job.done.end = Some((at, row.text));
                }),
                Row::Sampled(sample) => {
                    let lines =
                        [Counter::MmReads, Counter::MmWrites].map(|counter| sample.counts[counter]);
                    traffic.add(at - sample.interval, at, lines);
                }
                Row::Lacks { .. } | Row::Warned { .. } => {}
            }
        }
        let until = timeline.until;
        timeline.jobs = open.into_iter().map(|job| job.close(until)).collect();
        timeline.traffic = traffic.known();
        timeline.cut_off = series.cut_off();
        Ok(timeline)
    }

    /// The part of it between two times, without what memory moved.
    #[must_use]
    pub fn section(&self, from: Nanos, to: Nanos) -> Timeline {
        let cut = |begin: Nanos, end: Nanos| (begin.max(from), end.min(to));
        let within = |at: &Nanos| (from..=to).contains(at);
        let job = |job: &JobTimeline| JobTimeline {
            starts: job.starts.iter().copied().filter(within).collect(),
            end: job.end.clone().filter(|(at, _)| within(at)),
            stays: (job.stays.iter())
                .filter_map(|stay| {
                    let (from, to) = cut(stay.from, stay.to);
                    (from < to).then(|| Stay {
                        from,
                        to,
                        ..stay.clone()
                    })
                })
                .collect(),
            waits: (job.waits.iter())
                .filter_map(|wait| {
                    let (from, to) = cut(wait.from, wait.to);
                    (from < to).then(|| Wait {
                        from,
                        to,
                        ..wait.clone()
                    })
                })
                .collect(),
        };
        Timeline {
            cpus: self.cpus.clone(),
            from,
            until: self.until.min(to),
            jobs: self.jobs.iter().map(job).collect(),
            decisions: 0,
            traffic: None,
            cut_off: self.cut_off,
        }
    }

    /// The time for which a job was placed on CPUs in all.
    pub fn placed(&self, job: usize) -> Nanos {
        let stays = self
            .jobs
            .get(job)
            .map(|job| &job.stays[..])
            .unwrap_or_default();
        stays
            .iter()
            .fold(Nanos::ZERO, |sum, stay| sum + (stay.to - stay.from))
    }
}

/// A job while the series is read.
#[derive(Default)]
struct Open {
    done: JobTimeline,
    stay: Option<Stay>,
    wait: Option<Wait>,
    /// Where it was placed.
    place: Option<(CpuSet, Mode, Purpose)>,
    /// The CPUs that it was seen to have, if that is told.
    has: Option<BTreeSet<CpuId>>,
    /// Why it waits where it was not placed.
    reason: Option<WaitReason>,
    /// It has ended. Processes that it left behind may still have CPUs.
    is_over: bool,
}

fn change(jobs: &mut [Open], task: TaskId, change: impl FnOnce(&mut Open)) {
    if let Some(job) = jobs.get_mut(task.0 as usize) {
        change(job);
    }
}

impl Open {
    /// It no longer is where it was, and no longer waits.
    fn leave(&mut self, at: Nanos) {
        if let Some(stay) = self.stay.take().filter(|stay| stay.from < at) {
            self.done.stays.push(Stay { to: at, ..stay });
        }
        if let Some(wait) = self.wait.take().filter(|wait| wait.from < at) {
            self.done.waits.push(Wait { to: at, ..wait });
        }
    }

    /// It is where it was seen, or else where it was placed.
    fn settle(&mut self, at: Nanos) {
        self.leave(at);
        let (placed, mut mode, purpose) =
            self.place
                .clone()
                .unwrap_or((CpuSet::default(), Mode::Exclusive, Purpose::Run));
        let cpus = match &self.has {
            Some(has) => {
                // Whoever is seen on a CPU has it for itself.
                mode = if mode == Mode::Shared {
                    Mode::Exclusive
                } else {
                    mode
                };
                has.iter().copied().collect()
            }
            None => placed,
        };
        if !cpus.is_empty() {
            self.stay = Some(Stay {
                from: at,
                to: at,
                cpus,
                mode,
                purpose,
            });
        } else if let Some(reason) = self.reason {
            self.wait = Some(Wait {
                from: at,
                to: at,
                reason,
                changes: 0,
            });
        }
    }

    /// It is seen to have other CPUs.
    fn has(&mut self, at: Nanos, change: impl FnOnce(&mut BTreeSet<CpuId>)) {
        if self.is_over {
            return;
        }
        change(self.has.get_or_insert_default());
        self.settle(at);
    }

    fn wait(&mut self, at: Nanos, reason: WaitReason) {
        self.reason = Some(reason);
        match &mut self.wait {
            Some(wait) => {
                wait.reason = reason;
                wait.changes += 1;
            }
            // It may have CPUs all the same: a plan lets it fill in.
            None if self.has.as_ref().is_some_and(|has| !has.is_empty()) => {}
            None => {
                self.leave(at);
                self.wait = Some(Wait {
                    from: at,
                    to: at,
                    reason,
                    changes: 0,
                });
            }
        }
    }

    fn close(mut self, until: Nanos) -> JobTimeline {
        self.leave(until);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesHeader;
    use crate::testing::{info, result};
    use cosched_core::Rate;

    fn timeline(lines: &str) -> Timeline {
        let result = result();
        let header = SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec));
        let text = format!("{}\n{lines}", serde_json::to_string(&header).unwrap());
        Timeline::read(&mut SeriesReader::new(text.as_bytes(), "s").unwrap()).unwrap()
    }

    fn s(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    #[test]
    fn stays_and_waits_follow_each_other() {
        let text = r#"["b",0,0]
["p",0,0,"1","exclusive","run"]
["w",0,1,{"why":"order","ahead":2}]
["d",0,["quantum-end"],null,0,null,null,null]
["x",1000000000,0]
["w",1000000000,0,{"why":"affinity"}]
["p",1000000000,1,"0-1","shared","run"]
["w",2000000000,0,{"why":"fitness","bandwidth":4000,"wanted":9000}]
["p",3000000000,0,"0","whole-core","measure-alone"]
["p",4000000000,0,"1","exclusive","run"]
["e",5000000000,0,3,"exit 3",0,null,null,null,null,null]
["s",6000000000,1,1000000000,"0-1","run","",null,null,null,null,null,null,null,0]
["p",7000000"#;
        let timeline = timeline(text);
        assert_eq!(
            (timeline.until, timeline.decisions, timeline.cut_off),
            (s(6), 1, true)
        );
        assert_eq!(timeline.traffic, None);
        let job = &timeline.jobs[0];
        let stay = |from, to, cpus: &str, mode, purpose| Stay {
            from: s(from),
            to: s(to),
            cpus: cpus.parse().unwrap(),
            mode,
            purpose,
        };
        assert_eq!(
            job.stays,
            [
                stay(0, 1, "1", Mode::Exclusive, Purpose::Run),
                stay(3, 4, "0", Mode::WholeCore, Purpose::MeasureAlone),
                stay(4, 5, "1", Mode::Exclusive, Purpose::Run)
            ]
        );
        let reason = WaitReason::Fitness {
            bandwidth: Rate(4_000),
            wanted: Rate(9_000),
        };
        assert_eq!(
            job.waits,
            [Wait {
                from: s(1),
                to: s(3),
                reason,
                changes: 1
            }]
        );
        assert_eq!(
            (&job.starts[..], &job.end),
            (&[s(0)][..], &Some((s(5), "exit 3".to_owned())))
        );
        assert_eq!(timeline.placed(0), s(3));
        // What goes on at the end goes on until the last line.
        assert_eq!(
            timeline.jobs[1].stays,
            [stay(1, 6, "0-1", Mode::Shared, Purpose::Run)]
        );
        assert_eq!(timeline.jobs[1].waits.len(), 1);
        assert_eq!(timeline.jobs[3], JobTimeline::default());
    }

    #[test]
    fn where_it_is_seen_who_has_a_cpu_that_counts() {
        let text = r#"["p",0,0,"0-1","shared","run"]
["p",0,1,"0-1","shared","run"]
["o",1000000000,0,0]
["o",2000000000,0,1]
["o",2000000000,1,0]
["o",3000000000,1,null]
["p",3000000000,0,"1","exclusive","run"]
["o",4000000000,0,0]
["e",5000000000,1,0,"exit 0",0,null,null,null,null,null]
["o",5500000000,1,1]
["o",6000000000,null,null]
["e",7000000000,0,0,"exit 0",0,null,null,null,null,null]
"#;
        let timeline = timeline(text);
        let stays = |job: usize| -> Vec<(u64, u64, String, Mode)> {
            let stays = timeline.jobs[job].stays.iter();
            stays
                .map(|stay| {
                    (
                        stay.from.0 / 1_000_000_000,
                        stay.to.0 / 1_000_000_000,
                        stay.cpus.to_string(),
                        stay.mode,
                    )
                })
                .collect()
        };
        let (own, shared) = (Mode::Exclusive, Mode::Shared);
        let at = |from, to, cpus: &str, mode| (from, to, cpus.to_owned(), mode);
        // Until the first is seen of it a job is where it was placed, and so it is when nothing more is told.
        assert_eq!(
            stays(0),
            [
                at(0, 1, "0-1", shared),
                at(1, 2, "0", own),
                at(2, 3, "1", own),
                at(4, 6, "0", own),
                at(6, 7, "1", own)
            ]
        );
        assert_eq!(stays(1), [at(0, 2, "0-1", shared), at(2, 4, "0", own)]);
        let part = timeline.section(Nanos(1_500_000_000), s(4));
        let cut: Vec<(Nanos, Nanos)> = part.jobs[0]
            .stays
            .iter()
            .map(|stay| (stay.from, stay.to))
            .collect();
        assert_eq!(
            (cut, part.from, part.until),
            (
                vec![(Nanos(1_500_000_000), s(2)), (s(2), s(3))],
                part.from,
                s(4)
            )
        );
    }

    #[test]
    fn what_is_told_late_overlaps_nothing() {
        let text = r#"["p",0,0,"0","exclusive","run"]
["o",0,0,0]
["p",3000000000,0,"1","exclusive","run"]
["s",2000000000,0,1000000000,"0","run","",null,null,null,null,null,null,null,0]
["o",2000000000,0,null]
["o",2000000000,1,0]
["e",4000000000,0,0,"exit 0",0,null,null,null,null,null]
"#;
        let stays = timeline(text).jobs.swap_remove(0).stays;
        let stays: Vec<(Nanos, Nanos, String)> = stays
            .into_iter()
            .map(|stay| (stay.from, stay.to, stay.cpus.to_string()))
            .collect();
        assert_eq!(
            stays,
            [(s(0), s(3), "0".to_owned()), (s(3), s(4), "1".to_owned())]
        );
    }

    #[test]
    fn who_waits_by_the_plan_may_fill_in() {
        let text = r#"["o",0,0,0]
["w",0,1,{"why":"order","ahead":2}]
["o",1000000000,0,1]
["o",2000000000,0,0]
["p",3000000000,1,"0","exclusive","run"]
["o",3000000000,0,1]
["e",4000000000,1,0,"exit 0",0,null,null,null,null,null]
"#;
        let job = timeline(text).jobs.swap_remove(1);
        let stays: Vec<(Nanos, Nanos)> =
            job.stays.iter().map(|stay| (stay.from, stay.to)).collect();
        let waits: Vec<(Nanos, Nanos)> =
            job.waits.iter().map(|wait| (wait.from, wait.to)).collect();
        assert_eq!(
            (stays, waits),
            (
                vec![(s(1), s(2)), (s(3), s(4))],
                vec![(s(0), s(1)), (s(2), s(3))]
            )
        );
    }
}
