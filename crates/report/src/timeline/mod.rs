//! Who ran where over a whole run, and the memory traffic, from a series.
//!
//! [`traffic`]: lines read and written, in equal parts of the run.

mod traffic;

use crate::series::in_order::RowsInOrder;
use crate::series::replay::{Activity, Replay, Span};
use crate::series::{CpuMode, SeriesError, SeriesReader, SeriesRow};
use cosched_core::{CpuSet, Nanos};
use std::io::BufRead;
pub use traffic::TrafficTimeline;

/// A time during which a job had the same CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuStay {
    /// Its begin.
    pub from: Nanos,
    /// Its end: the job stopped, moved or ended, or the series ended.
    pub to: Nanos,
    /// The CPUs of the job.
    pub cpus: CpuSet,
    /// Whether it shared the CPUs.
    pub mode: CpuMode,
}

/// Who ran where in a run.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// CPUs of the run.
    pub cpus: CpuSet,
    /// Time of the last row.
    pub until: Nanos,
    /// Stays of each job, by its place in the record; ordered by time, without overlaps.
    pub stays: Vec<Vec<CpuStay>>,
    /// Memory traffic; `None` if no sample has any.
    pub traffic: Option<TrafficTimeline>,
}

impl Timeline {
    /// Read a series to its end, one line in memory at a time.
    ///
    /// # Errors
    /// A line cannot be read. A last line that was cut off is no error.
    pub fn read<R: BufRead>(series: &mut SeriesReader<R>) -> Result<Timeline, SeriesError> {
        let mut replay = Replay::new(series.header());
        let mut timeline = Timeline {
            cpus: series.header().machine.all_cpus(),
            stays: vec![Vec::new(); series.header().tasks.len()],
            ..Timeline::default()
        };
        let mut traffic = TrafficTimeline::new();
        for row in RowsInOrder::new(series) {
            let (at, row) = row?;
            replay.apply(at, &row);
            timeline.add(replay.take_spans());
            if let SeriesRow::Sampled(sample) = row {
                traffic.add(at, &sample);
            }
        }
        timeline.add(replay.finish());
        timeline.until = replay.now;
        timeline.traffic = traffic.known();
        Ok(timeline)
    }

    fn add(&mut self, spans: Vec<Span>) {
        for span in spans {
            if let Activity::Runs(placed) = span.activity {
                self.stays[span.job].push(CpuStay {
                    from: span.from,
                    to: span.to,
                    cpus: placed.cpus,
                    mode: placed.mode,
                });
            }
        }
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
["e",5000000000,0,{"exit":3,"exit_text":"exit 3","timed_out":false}]
["s",6000000000,1,1000000000,"0-1","run","",null,null,null,null,null,null,null,0]
["p",7000000"#;
        let timeline = timeline(text);
        assert_eq!((timeline.until, &timeline.traffic), (s(6), &None));
        let stay = |from, to, cpus: &str, mode| CpuStay {
            from: s(from),
            to: s(to),
            cpus: cpus.parse().unwrap(),
            mode,
        };
        assert_eq!(
            timeline.stays[0],
            [
                stay(0, 1, "1", CpuMode::Exclusive),
                stay(3, 4, "0", CpuMode::WholeCore),
                stay(4, 5, "1", CpuMode::Exclusive)
            ]
        );
        // A stay without an end reaches to the last line.
        assert_eq!(timeline.stays[1], [stay(1, 6, "0-1", CpuMode::Shared)]);
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
["e",5000000000,1,{"exit":0,"exit_text":"exit 0","timed_out":false}]
["o",5500000000,1,1]
["o",6000000000,null,null]
["e",7000000000,0,{"exit":0,"exit_text":"exit 0","timed_out":false}]
"#;
        let timeline = timeline(text);
        let stays = |job: usize| -> Vec<(u64, u64, String, CpuMode)> {
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
        let (own, shared) = (CpuMode::Exclusive, CpuMode::Shared);
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
    }

    #[test]
    fn what_is_told_late_overlaps_nothing() {
        let text = r#"["p",0,0,"0","exclusive","run"]
["o",0,0,0]
["p",3000000000,0,"1","exclusive","run"]
["s",2000000000,0,1000000000,"0","run","",null,null,null,null,null,null,null,0]
["o",2000000000,0,null]
["o",2000000000,1,0]
["e",4000000000,0,{"exit":0,"exit_text":"exit 0","timed_out":false}]
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
["e",4000000000,1,{"exit":0,"exit_text":"exit 0","timed_out":false}]
"#;
        let stays = timeline(text).stays.swap_remove(1);
        let stays: Vec<(Nanos, Nanos)> = stays.iter().map(|stay| (stay.from, stay.to)).collect();
        assert_eq!(stays, [(s(1), s(2)), (s(3), s(4))]);
    }
}
