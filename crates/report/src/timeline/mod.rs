//! What a series tells, seen over the whole run: who ran where and when, why others waited meanwhile, and how much the
//! memory moved.
//!
//! [`traffic`]: the lines that were read and written, in equal parts of the run.

mod traffic;

use crate::series::{Mode, Row, SeriesError, SeriesReader};
use cosched_core::{Counter, CpuSet, Nanos, Purpose, TaskId, WaitReason};
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
        let mut open: Vec<Open> = series.header().tasks.iter().map(|_| Open::default()).collect();
        let mut timeline = Timeline { cpus: series.header().machine.all_cpus(), ..Timeline::default() };
        let mut traffic = Traffic::new();
        for line in series.by_ref() {
            let (at, row) = line?;
            timeline.until = timeline.until.max(at);
            match row {
                Row::Decided { .. } => timeline.decisions += 1,
                Row::Placed { task, cpus, mode, purpose } => change(&mut open, task, |job| {
                    job.leave(at);
                    job.stay = Some(Stay { from: at, to: at, cpus, mode, purpose });
                }),
                Row::Stopped(task) => change(&mut open, task, |job| job.leave(at)),
                Row::Waits { task, reason } => change(&mut open, task, |job| job.wait(at, reason)),
                Row::Started(task) => change(&mut open, task, |job| job.done.starts.push(at)),
                Row::Ended(row) => change(&mut open, row.task, |job| {
                    job.leave(at);
                    job.done.end = Some((at, row.text));
                }),
                Row::Sampled(sample) => {
                    let lines = [Counter::MmReads, Counter::MmWrites].map(|counter| sample.counts[counter]);
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

    /// The time for which a job was placed on CPUs in all.
    pub fn placed(&self, job: usize) -> Nanos {
        let stays = self.jobs.get(job).map(|job| &job.stays[..]).unwrap_or_default();
        stays.iter().fold(Nanos::ZERO, |sum, stay| sum + (stay.to - stay.from))
    }
}

/// A job while the series is read.
#[derive(Default)]
struct Open {
    done: JobTimeline,
    stay: Option<Stay>,
    wait: Option<Wait>,
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

    fn wait(&mut self, at: Nanos, reason: WaitReason) {
        match &mut self.wait {
            Some(wait) => {
                wait.reason = reason;
                wait.changes += 1;
            }
            None => {
                self.leave(at);
                self.wait = Some(Wait { from: at, to: at, reason, changes: 0 });
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
        assert_eq!((timeline.until, timeline.decisions, timeline.cut_off), (s(6), 1, true));
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
        let reason = WaitReason::Fitness { bandwidth: Rate(4_000), wanted: Rate(9_000) };
        assert_eq!(job.waits, [Wait { from: s(1), to: s(3), reason, changes: 1 }]);
        assert_eq!((&job.starts[..], &job.end), (&[s(0)][..], &Some((s(5), "exit 3".to_owned()))));
        assert_eq!(timeline.placed(0), s(3));
        // What goes on at the end goes on until the last line.
        assert_eq!(timeline.jobs[1].stays, [stay(1, 6, "0-1", Mode::Shared, Purpose::Run)]);
        assert_eq!(timeline.jobs[1].waits.len(), 1);
        assert_eq!(timeline.jobs[3], JobTimeline::default());
    }
}
