//! Who ran where and when over a whole run, and how much memory traffic there was, from a series.
//!
//! [`traffic`]: lines read and written, in equal parts of the run.

mod traffic;

use crate::holders::Holders;
use crate::series::{Mode, Row, SampleRow, SeriesError, SeriesReader};
use cosched_core::{Counter, CpuId, CpuSet, Nanos, Switched, TaskId};
use std::collections::BTreeSet;
use std::io::BufRead;
pub use traffic::Traffic;

/// A time for which a job had the same CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// When it was placed there.
    pub from: Nanos,
    /// When it was stopped or moved, or had ended; else the last time of the series.
    pub to: Nanos,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Whether it shared the CPUs.
    pub mode: Mode,
}

/// Who ran where in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// CPUs of the run.
    pub cpus: CpuSet,
    /// Begin: zero, unless it is a [section](Timeline::section).
    pub from: Nanos,
    /// Time of the last line.
    pub until: Nanos,
    /// Stays of each job, by its place in the record; ordered by time, without overlaps.
    pub stays: Vec<Vec<Stay>>,
    /// Memory traffic; `None` if no sample has any.
    pub traffic: Option<Traffic>,
}

impl Timeline {
    /// Read a series to its end, one line in memory at a time.
    ///
    /// # Errors
    /// A line cannot be read. A last line that was cut off is no error.
    pub fn read<R: BufRead>(series: &mut SeriesReader<R>) -> Result<Timeline, SeriesError> {
        let header = series.header();
        let cpus = header.machine.all_cpus();
        let mut replay = Replay::of(header.tasks.len());
        let mut until = Nanos::ZERO;
        let mut now = Nanos::ZERO;
        for line in series.by_ref() {
            let (at, row) = line?;
            until = until.max(at);
            match row {
                Row::Sampled(sample) => replay.sampled(at, &sample),
                Row::Lacks { .. } => {}
                row => {
                    // A row with an earlier time than the row before came late.
                    now = now.max(at);
                    replay.apply(now, row);
                }
            }
        }
        let jobs = replay.jobs.into_iter();
        Ok(Timeline {
            cpus,
            from: Nanos::ZERO,
            until,
            stays: jobs.map(|job| job.close(until)).collect(),
            traffic: replay.traffic.known(),
        })
    }

    /// Return the part between two times, without memory traffic.
    #[must_use]
    pub fn section(&self, from: Nanos, to: Nanos) -> Timeline {
        let jobs = self.stays.iter();
        Timeline {
            cpus: self.cpus.clone(),
            from,
            until: self.until.min(to),
            stays: jobs.map(|stays| cut(stays, from, to)).collect(),
            traffic: None,
        }
    }
}

/// Return the stays between two times, cut at both.
fn cut(stays: &[Stay], from: Nanos, to: Nanos) -> Vec<Stay> {
    let mut within = Vec::new();
    for stay in stays {
        let (from, to) = (stay.from.max(from), stay.to.min(to));
        if from < to {
            within.push(Stay {
                from,
                to,
                ..stay.clone()
            });
        }
    }
    within
}

/// A run at one moment of its series.
struct Replay {
    jobs: Vec<JobReplay>,
    holders: Holders,
    traffic: Traffic,
}

impl Replay {
    fn of(jobs: usize) -> Replay {
        Replay {
            jobs: std::iter::repeat_with(JobReplay::default)
                .take(jobs)
                .collect(),
            holders: Holders::default(),
            traffic: Traffic::new(),
        }
    }

    fn apply(&mut self, at: Nanos, row: Row) {
        match row {
            Row::Placed {
                task, cpus, mode, ..
            } => self.place(at, task, Some((cpus, mode))),
            Row::Stopped(task) => self.place(at, task, None),
            Row::Switched(switched) => self.switch(at, switched),
            Row::Started(task) => {
                if let Some(job) = self.job(task) {
                    job.is_over = false;
                }
            }
            Row::Ended(ended) => {
                if let Some(job) = self.job(ended.task) {
                    job.end(at);
                }
            }
            _ => {}
        }
    }

    fn sampled(&mut self, at: Nanos, sample: &SampleRow) {
        let lines = [Counter::MmReads, Counter::MmWrites].map(|counter| sample.counts[counter]);
        self.traffic.add(at - sample.interval, at, lines);
    }

    fn job(&mut self, task: TaskId) -> Option<&mut JobReplay> {
        self.jobs.get_mut(task.0 as usize)
    }

    fn place(&mut self, at: Nanos, task: TaskId, placed: Option<(CpuSet, Mode)>) {
        if let Some(job) = self.job(task) {
            job.placed = placed;
            job.settle(at);
        }
    }

    fn switch(&mut self, at: Nanos, switched: Switched) {
        let Switched::To { cpu, task } = switched else {
            return self.forget_holders(at);
        };
        let before = self.holders.switched(at, switched);
        if let Some(job) = before.and_then(|task| self.job(task)) {
            job.hold(at, |cpus| _ = cpus.remove(&cpu));
        }
        if let Some(job) = task.and_then(|task| self.job(task)) {
            job.hold(at, |cpus| _ = cpus.insert(cpu));
        }
    }

    /// From here on the series does not say who holds which CPU.
    fn forget_holders(&mut self, at: Nanos) {
        self.holders = Holders::default();
        for job in &mut self.jobs {
            if job.held.take().is_some() {
                job.settle(at);
            }
        }
    }
}

/// A job at one moment of the series.
#[derive(Default)]
struct JobReplay {
    stays: Vec<Stay>,
    /// The stay that goes on; its end is not known yet.
    stay: Option<Stay>,
    /// The last placement by the policy.
    placed: Option<(CpuSet, Mode)>,
    /// CPUs that the job held in the kernel, if the series says so.
    held: Option<BTreeSet<CpuId>>,
    /// The job has ended. Processes that it left behind may still hold CPUs.
    is_over: bool,
}

impl JobReplay {
    /// End the stay that goes on.
    fn leave(&mut self, at: Nanos) {
        if let Some(stay) = self.stay.take().filter(|stay| stay.from < at) {
            self.stays.push(Stay { to: at, ..stay });
        }
    }

    /// Begin a stay on the CPUs that the job holds; else on those where it was placed.
    fn settle(&mut self, at: Nanos) {
        self.leave(at);
        let (mut cpus, mut mode) = self
            .placed
            .clone()
            .unwrap_or((CpuSet::default(), Mode::Exclusive));
        if let Some(held) = &self.held {
            cpus = held.iter().copied().collect();
            // A job that holds a CPU in the kernel does not share it.
            if mode == Mode::Shared {
                mode = Mode::Exclusive;
            }
        }
        if !cpus.is_empty() {
            self.stay = Some(Stay {
                from: at,
                to: at,
                cpus,
                mode,
            });
        }
    }

    /// Change the CPUs that the job holds in the kernel.
    fn hold(&mut self, at: Nanos, change: impl FnOnce(&mut BTreeSet<CpuId>)) {
        if !self.is_over {
            change(self.held.get_or_insert_default());
            self.settle(at);
        }
    }

    fn end(&mut self, at: Nanos) {
        self.leave(at);
        (self.placed, self.held, self.is_over) = (None, None, true);
    }

    fn close(mut self, until: Nanos) -> Vec<Stay> {
        self.leave(until);
        self.stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesHeader;
    use crate::testing::{info, result};

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
    fn stays_follow_each_other() {
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
        assert_eq!((timeline.until, &timeline.traffic), (s(6), &None));
        let stay = |from, to, cpus: &str, mode| Stay {
            from: s(from),
            to: s(to),
            cpus: cpus.parse().unwrap(),
            mode,
        };
        assert_eq!(
            timeline.stays[0],
            [
                stay(0, 1, "1", Mode::Exclusive),
                stay(3, 4, "0", Mode::WholeCore),
                stay(4, 5, "1", Mode::Exclusive)
            ]
        );
        // A stay without an end reaches to the last line.
        assert_eq!(timeline.stays[1], [stay(1, 6, "0-1", Mode::Shared)]);
        assert_eq!(timeline.stays[3], []);
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
            let stays = timeline.stays[job].iter();
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
        let cut: Vec<(Nanos, Nanos)> = part.stays[0]
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
        let stays = timeline(text).stays.swap_remove(0);
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
        let stays = timeline(text).stays.swap_remove(1);
        let stays: Vec<(Nanos, Nanos)> = stays.iter().map(|stay| (stay.from, stay.to)).collect();
        assert_eq!(stays, [(s(1), s(2)), (s(3), s(4))]);
    }
}
