//! What the timeline's script draws, as compact JSON: times are differences in whole ticks, and sentences that differ in
//! their numbers only are written once.

use crate::facts::family;
use cosched_core::{Nanos, Purpose};
use cosched_report::chart::looks;
use cosched_report::{JobTimeline, Mode, Record, Timeline, grouped, seconds, wait_text_naming};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A run has so many ticks at least, and fewer than ten times as many.
const LEAST_TICKS: u64 = 1_000_000;
/// Of more stays and waits than this only those that can be seen in the whole are kept.
const MOST: usize = 240_000;

/// In the place of a job and what it does: stays that are left out. No job does that alone.
const TOO_SHORT: u64 = 3;

/// The data of a timeline.
pub(super) struct Data {
    pub(super) json: String,
    /// Jobs share CPUs for most of the time, so that rows of CPUs show little.
    pub(super) is_best_by_job: bool,
    /// What was left out.
    pub(super) note: Option<String>,
}

/// A tick in nanoseconds: a power of ten.
fn tick(until: Nanos) -> u64 {
    let mut tick = 1;
    while until.0 / (tick * 10) >= LEAST_TICKS {
        tick *= 10;
    }
    tick
}

/// Sentences with `#` in the place of numbers.
#[derive(Default)]
struct Texts {
    known: BTreeMap<String, usize>,
    all: Vec<String>,
}

impl Texts {
    /// The number of the sentence without its numbers, and these.
    fn split(&mut self, text: &str) -> (usize, Vec<Value>) {
        let (mut form, mut numbers) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(first) = rest.find(|c: char| c.is_ascii_digit()) {
            form.push_str(&rest[..first]);
            rest = &rest[first..];
            let digits = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            let number = rest[..digits].trim_end_matches('.');
            form.push('#');
            // A number that prints in another way stays a text.
            let value: Value = serde_json::from_str(number).unwrap_or(Value::Null);
            let is_same = serde_json::to_string(&value).is_ok_and(|printed| printed == number);
            numbers.push(if is_same { value } else { Value::from(number) });
            rest = &rest[number.len()..];
        }
        form.push_str(rest);
        let next = self.all.len();
        let known = *self.known.entry(form.clone()).or_insert(next);
        if known == next {
            self.all.push(form);
        }
        (known, numbers)
    }
}

/// The shortest stay or wait that is kept, so that no more are kept than [`MOST`]; those that are shorter are kept only if
/// none was kept for as long.
fn least_kept(jobs: &[JobTimeline], until: Nanos) -> Nanos {
    let mut least = Nanos::ZERO;
    let step = Nanos((until.0 / 65_536).max(1));
    loop {
        let kept: usize = jobs
            .iter()
            .map(|job| {
                let stays = job.stays.iter().map(|stay| (stay.from, stay.to));
                let waits = job.waits.iter().map(|wait| (wait.from, wait.to));
                worth(stays, least).count() + worth(waits, least).count()
            })
            .sum();
        if kept <= MOST || least >= until {
            return least;
        }
        least = if least == Nanos::ZERO {
            step
        } else {
            Nanos(least.0 * 2)
        };
    }
}

/// The positions of the intervals that are kept.
fn worth(
    intervals: impl Iterator<Item = (Nanos, Nanos)>,
    least: Nanos,
) -> impl Iterator<Item = usize> {
    let mut last: Option<Nanos> = None;
    intervals.enumerate().filter_map(move |(at, (from, to))| {
        let is_kept = to - from >= least || last.is_none_or(|last| to - last >= least);
        if is_kept {
            last = Some(to);
        }
        is_kept.then_some(at)
    })
}

/// Kept among stays and waits that are not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    Yes,
    No,
}

/// Where those lie that are not kept, of a row in which nothing overlaps: one slice for those with no more than `least` between
/// them. A row that shows nothing there would be read as idle.
fn too_short(mut row: Vec<(Nanos, Nanos, Kept)>, least: Nanos) -> Vec<(Nanos, Nanos)> {
    row.sort_unstable();
    let mut slices: Vec<(Nanos, Nanos)> = Vec::new();
    let mut goes_on = false;
    for (from, to, kept) in row {
        match (kept, slices.last_mut()) {
            (Kept::Yes, _) => goes_on = false,
            (Kept::No, Some(slice)) if goes_on && from <= slice.1 + least => {
                slice.1 = slice.1.max(to)
            }
            (Kept::No, _) => {
                slices.push((from, to));
                goes_on = true;
            }
        }
    }
    slices
}

impl Data {
    /// The data of a run; `None` if nobody was placed anywhere.
    pub(super) fn of(timeline: &Timeline, record: &Record) -> Option<Data> {
        let placed: usize = timeline.jobs.iter().map(|job| job.stays.len()).sum();
        if placed == 0 {
            return None;
        }
        let tick = tick(timeline.until);
        let ticks = |at: Nanos| at.0 / tick;
        let least = least_kept(&timeline.jobs, timeline.until);
        let cpus: Vec<String> = timeline.cpus.iter().map(|cpu| cpu.0.to_string()).collect();
        let place_of: BTreeMap<u32, usize> = timeline
            .cpus
            .iter()
            .enumerate()
            .map(|(at, cpu)| (cpu.0, at))
            .collect();

        let mut on: Vec<Vec<[u64; 3]>> = vec![Vec::new(); cpus.len()];
        let mut all_on: Vec<Vec<(Nanos, Nanos, Kept)>> = vec![Vec::new(); cpus.len()];
        let mut all_of: Vec<Vec<(Nanos, Nanos, Kept)>> = vec![Vec::new(); timeline.jobs.len()];
        let (mut shared, mut shared_time, mut own_time) = (Vec::new(), 0u64, 0u64);
        let mut left_out = 0u64;
        for (task, job) in timeline.jobs.iter().enumerate() {
            let mut kept =
                worth(job.stays.iter().map(|stay| (stay.from, stay.to)), least).peekable();
            for (nth, stay) in job.stays.iter().enumerate() {
                let is_kept = if kept.next_if_eq(&nth).is_some() {
                    Kept::Yes
                } else {
                    Kept::No
                };
                let (from, to) = (ticks(stay.from), ticks(stay.to));
                let places = || {
                    stay.cpus
                        .iter()
                        .filter_map(|cpu| place_of.get(&cpu.0).copied())
                };
                all_of[task].push((stay.from, stay.to, is_kept));
                if stay.mode != Mode::Shared {
                    places().for_each(|row| all_on[row].push((stay.from, stay.to, is_kept)));
                }
                if is_kept == Kept::No {
                    left_out += 1;
                    continue;
                }
                if stay.mode == Mode::Shared {
                    shared.push(json!([task, from, to - from, stay.cpus.to_string()]));
                    shared_time += to - from;
                    continue;
                }
                own_time += to - from;
                let kind = match stay.purpose {
                    Purpose::Run => 0,
                    Purpose::MeasureAlone => 1,
                    Purpose::LowContention => 2,
                };
                places().for_each(|row| on[row].push([from, to, 4 * task as u64 + kind]));
            }
        }
        for (row, all) in on.iter_mut().zip(all_on) {
            row.extend(
                too_short(all, least)
                    .into_iter()
                    .map(|(from, to)| [ticks(from), ticks(to), TOO_SHORT]),
            );
        }
        let rows: Vec<Vec<u64>> = on
            .into_iter()
            .map(|mut row| {
                row.sort_unstable();
                let mut at = 0;
                let flat = row.into_iter().flat_map(|[from, to, who]| {
                    // Rounding can let one begin before the other has ended.
                    let from = from.max(at);
                    let to = to.max(from);
                    let gap = from - at;
                    at = to;
                    [gap, to - from, who]
                });
                flat.collect()
            })
            .collect();

        let named = |task: u32| {
            record
                .jobs
                .get(task as usize)
                .map_or_else(String::new, |job| job.name.clone())
        };
        let mut texts = Texts::default();
        let mut waits: Vec<Vec<Value>> = Vec::new();
        for (task, job) in timeline.jobs.iter().enumerate() {
            let mut kept =
                worth(job.waits.iter().map(|wait| (wait.from, wait.to)), least).peekable();
            let mut flat: Vec<Value> = Vec::new();
            let mut last = 0;
            for (nth, wait) in job.waits.iter().enumerate() {
                let is_kept = if kept.next_if_eq(&nth).is_some() {
                    Kept::Yes
                } else {
                    Kept::No
                };
                all_of[task].push((wait.from, wait.to, is_kept));
                if is_kept == Kept::No {
                    left_out += 1;
                    continue;
                }
                let (from, to) = (ticks(wait.from).max(last), ticks(wait.to).max(last));
                let (text, numbers) =
                    texts.split(&wait_text_naming(&wait.reason, |task| named(task.0)));
                flat.extend(
                    [from - last, to - from, wait.changes.into(), text as u64].map(Value::from),
                );
                flat.extend(numbers);
                last = to;
            }
            waits.push(flat);
        }

        let short: Vec<[u64; 3]> = (0u64..)
            .zip(all_of)
            .flat_map(|(task, all)| {
                too_short(all, least)
                    .into_iter()
                    .map(move |slice| (task, slice))
            })
            .map(|(task, (from, to))| [task, ticks(from), ticks(to) - ticks(from)])
            .collect();

        let mut families: BTreeMap<&str, usize> = BTreeMap::new();
        let names: Vec<String> = record
            .jobs
            .iter()
            .map(|job| cosched_report::visible(&job.name))
            .collect();
        let group: Vec<usize> = record
            .jobs
            .iter()
            .map(|job| {
                let next = families.len();
                *families.entry(family(&job.name)).or_insert(next)
            })
            .collect();
        if names.len() < timeline.jobs.len() {
            return None;
        }
        let looks: Vec<Value> = looks()
            .map(|look| json!({"colour": look.colour, "hatch": look.hatch, "light": look.light}))
            .collect();
        let json = json!({
            "unit": tick, "end": ticks(timeline.until).max(1), "cpus": cpus, "jobs": names, "group": group, "looks": looks,
            "on": rows, "shared": shared, "short": short, "waits": waits, "texts": texts.all,
        });
        let note = (left_out > 0).then(|| {
            let what = match left_out {
                1 => "1 stay or wait".to_owned(),
                n => format!("{} stays and waits", grouped(n)),
            };
            let least = seconds(least.as_s());
            format!(
                "{what} of less than {least} can't be told apart here: hatched is where they lie; the series has all."
            )
        });
        Some(Data {
            json: json.to_string(),
            is_best_by_job: shared_time > own_time,
            note,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{placed, record_of, waited};
    use cosched_core::WaitReason;
    use proptest::prelude::*;

    /// A stay or a wait as the script sees it: row, begin, end in ticks, and the rest.
    type Seen = Vec<(usize, u64, u64, String)>;

    /// Reads the data as the script does.
    fn decoded(json: &str) -> (Value, Seen, Seen) {
        let data: Value = serde_json::from_str(json).unwrap();
        let (mut stays, mut waits) = (Vec::new(), Vec::new());
        for (cpu, row) in data["on"].as_array().unwrap().iter().enumerate() {
            let mut at = 0;
            for three in row.as_array().unwrap().chunks(3) {
                let [gap, length, who] = [0, 1, 2].map(|ix: usize| three[ix].as_u64().unwrap());
                stays.push((
                    cpu,
                    at + gap,
                    at + gap + length,
                    format!("{} {}", who / 4, who % 4),
                ));
                at += gap + length;
            }
        }
        for (job, row) in data["waits"].as_array().unwrap().iter().enumerate() {
            let (row, mut at, mut ix) = (row.as_array().unwrap(), 0, 0);
            while ix < row.len() {
                let [gap, length, changes, text] =
                    [0, 1, 2, 3].map(|more: usize| row[ix + more].as_u64().unwrap());
                ix += 4;
                let mut why = String::new();
                for c in data["texts"][text as usize].as_str().unwrap().chars() {
                    if c == '#' {
                        why.push_str(
                            row[ix]
                                .as_str()
                                .map_or_else(|| row[ix].to_string(), str::to_owned)
                                .as_str(),
                        );
                        ix += 1;
                    } else {
                        why.push(c);
                    }
                }
                waits.push((job, at + gap, at + gap + length, format!("{changes} {why}")));
                at += gap + length;
            }
        }
        (data, stays, waits)
    }

    #[test]
    fn sentences_come_back_with_their_numbers() {
        let mut texts = Texts::default();
        for text in [
            "No numbers.",
            "It needs 2 CPUs, and 0.50 are free.",
            "It needs 13 CPUs, and 1 are free.",
            "7.",
        ] {
            let (form, numbers) = texts.split(text);
            let mut numbers = numbers.into_iter();
            let back: String = texts.all[form]
                .chars()
                .map(|c| match c {
                    '#' => numbers
                        .next()
                        .map(|n| n.as_str().map_or_else(|| n.to_string(), str::to_owned))
                        .unwrap(),
                    c => c.to_string(),
                })
                .collect();
            assert_eq!(back, text);
        }
        assert_eq!(texts.all.len(), 3);
    }

    #[test]
    fn the_script_sees_who_was_where_and_why_others_waited() {
        let mut timeline = Timeline {
            cpus: "1-2".parse().unwrap(),
            until: Nanos(3_000_000_000),
            ..Timeline::default()
        };
        timeline.jobs = vec![JobTimeline::default(), JobTimeline::default()];
        timeline.jobs[0].stays = vec![
            placed(0, 1_000, "1-2", Mode::Exclusive),
            placed(2_000, 3_000, "2", Mode::Exclusive),
        ];
        timeline.jobs[0].stays[1].purpose = Purpose::MeasureAlone;
        timeline.jobs[1].stays = vec![placed(1_000, 2_000, "1-2", Mode::Shared)];
        timeline.jobs[1].waits = vec![waited(0, 1_000, WaitReason::Gang { needs: 2, free: 1 })];
        let record = record_of(&["a-1", "a-2"]);
        let data = Data::of(&timeline, &record).unwrap();
        assert!(!data.is_best_by_job && data.note.is_none());
        let (all, stays, waits) = decoded(&data.json);
        let ticks = |ms: u64| ms * 1_000_000 / all["unit"].as_u64().unwrap();
        let seen = |cpu, from, to, who: &str| (cpu, ticks(from), ticks(to), who.to_owned());
        assert_eq!(
            stays,
            [
                seen(0, 0, 1_000, "0 0"),
                seen(1, 0, 1_000, "0 0"),
                seen(1, 2_000, 3_000, "0 1")
            ]
        );
        assert_eq!(
            waits,
            [seen(
                1,
                0,
                1_000,
                "0 It needs 2 CPUs at once, and 1 is free."
            )]
        );
        assert_eq!(
            all["shared"],
            json!([[1, ticks(1_000), ticks(1_000), "1-2"]])
        );
        assert_eq!(
            (&all["group"], &all["cpus"]),
            (&json!([0, 0]), &json!(["1", "2"]))
        );
    }

    #[test]
    fn of_very_many_only_what_can_be_seen_is_kept() {
        let mut timeline = Timeline {
            cpus: "0".parse().unwrap(),
            until: Nanos(400_000_000_000),
            ..Timeline::default()
        };
        let stays = (0..400_000).map(|at| placed(at, at + 1, "0", Mode::Exclusive));
        timeline.jobs = vec![JobTimeline {
            stays: stays.collect(),
            ..JobTimeline::default()
        }];
        let data = Data::of(&timeline, &record_of(&["a"])).unwrap();
        let (all, row, _) = decoded(&data.json);
        let is_short = |stay: &&(usize, u64, u64, String)| stay.3 == "0 3";
        let stays: Vec<_> = row.iter().filter(|stay| !is_short(stay)).collect();
        assert!((10_000..=MOST).contains(&stays.len()), "{}", stays.len());
        let note = data.note.unwrap();
        assert!(
            note.contains(" stays and waits of less than ") && note.contains("hatched"),
            "{note}"
        );
        // They are spread over the whole run.
        let most = stays
            .windows(2)
            .map(|two| two[1].1 - two[0].2)
            .max()
            .unwrap();
        let last = stays.last().unwrap().2;
        assert!(most < last / 1_000, "{most} of {last}");
        // A CPU that was busy all the time, and a job that always ran, never look idle.
        assert!(
            row.windows(2).all(|two| two[1].1 == two[0].2)
                && row[0].1 == 0
                && row.last().unwrap().2 == all["end"]
        );
        let slices = row.iter().filter(is_short).count();
        assert!(slices > 1_000 && slices <= MOST, "{slices}");
        assert_eq!(all["short"].as_array().unwrap().len(), slices);
    }

    #[test]
    fn only_time_that_holds_something_is_hatched() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let row = |all: &[(u64, u64, Kept)]| {
            all.iter()
                .map(|(from, to, kept)| (ms(*from), ms(*to), *kept))
                .collect()
        };
        let slices = too_short(
            row(&[
                (0, 1, Kept::No),
                (2, 3, Kept::No),
                (3, 20, Kept::Yes),
                (20, 21, Kept::No),
                (40, 41, Kept::No),
                (45, 46, Kept::No),
            ]),
            ms(5),
        );
        assert_eq!(
            slices,
            [(ms(0), ms(3)), (ms(20), ms(21)), (ms(40), ms(46))],
            "21 to 40 was idle"
        );
        assert_eq!(
            too_short(row(&[(0, 9, Kept::Yes), (9, 18, Kept::Yes)]), ms(5)),
            []
        );
    }

    #[test]
    fn a_run_without_stays_has_no_timeline() {
        let timeline = Timeline {
            jobs: vec![JobTimeline::default()],
            ..Timeline::default()
        };
        assert!(Data::of(&timeline, &record_of(&["a"])).is_none());
    }

    proptest! {
        #[test]
        fn whatever_happened_comes_back(lengths in proptest::collection::vec((0_u64..2_000, 1_u64..2_000), 1..60)) {
            // One after the other on one CPU, with gaps in which the other job waits.
            let mut timeline = Timeline { cpus: "7".parse().unwrap(), ..Timeline::default() };
            timeline.jobs = vec![JobTimeline::default(), JobTimeline::default()];
            let (mut at, mut expected) = (0, Vec::new());
            for (ix, (gap, length)) in lengths.iter().enumerate() {
                let (from, to) = (at + gap, at + gap + length);
                timeline.jobs[ix % 2].stays.push(placed(from, to, "7", Mode::Exclusive));
                expected.push((from, to, ix % 2));
                at = to;
            }
            timeline.until = Nanos(at * 1_000_000);
            let (all, stays, _) = decoded(&Data::of(&timeline, &record_of(&["a", "b"])).unwrap().json);
            let unit = all["unit"].as_u64().unwrap();
            prop_assert_eq!(stays.len(), expected.len());
            for ((_, from, to, who), (begin, end, job)) in stays.iter().zip(expected) {
                prop_assert_eq!(who, &format!("{job} 0"));
                prop_assert!(from.abs_diff(begin * 1_000_000 / unit) <= 1 && to.abs_diff(end * 1_000_000 / unit) <= 1);
            }
        }
    }
}
