//! What the timeline's script draws, as compact JSON: times are differences in whole ticks, and sentences that differ in
//! their numbers only are written once.

use crate::facts::family;
use cosched_core::{Nanos, Purpose};
use cosched_report::chart::looks;
use cosched_report::{JobTimeline, Mode, Record, Timeline, count, seconds, wait_text};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A run has so many ticks at least, and fewer than ten times as many.
const LEAST_TICKS: u64 = 1_000_000;
/// Of more stays and waits than this only those that can be seen in the whole are kept.
const MOST: usize = 240_000;

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
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
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
        least = if least == Nanos::ZERO { step } else { Nanos(least.0 * 2) };
    }
}

/// The positions of the intervals that are kept.
fn worth(intervals: impl Iterator<Item = (Nanos, Nanos)>, least: Nanos) -> impl Iterator<Item = usize> {
    let mut last: Option<Nanos> = None;
    intervals.enumerate().filter_map(move |(at, (from, to))| {
        let is_kept = to - from >= least || last.is_none_or(|last| to - last >= least);
        if is_kept {
            last = Some(to);
        }
        is_kept.then_some(at)
    })
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
        let place_of: BTreeMap<u32, usize> = timeline.cpus.iter().enumerate().map(|(at, cpu)| (cpu.0, at)).collect();

        let mut on: Vec<Vec<[u64; 3]>> = vec![Vec::new(); cpus.len()];
        let (mut shared, mut shared_time, mut own_time) = (Vec::new(), 0u64, 0u64);
        let mut left_out = 0;
        for (task, job) in timeline.jobs.iter().enumerate() {
            let kept: Vec<usize> = worth(job.stays.iter().map(|stay| (stay.from, stay.to)), least).collect();
            left_out += job.stays.len() - kept.len();
            for stay in kept.into_iter().map(|at| &job.stays[at]) {
                let (from, to) = (ticks(stay.from), ticks(stay.to));
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
                for cpu in stay.cpus.iter() {
                    if let Some(&row) = place_of.get(&cpu.0) {
                        on[row].push([from, to, 4 * task as u64 + kind]);
                    }
                }
            }
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

        let mut texts = Texts::default();
        let mut waits: Vec<Vec<Value>> = Vec::new();
        for job in &timeline.jobs {
            let kept: Vec<usize> = worth(job.waits.iter().map(|wait| (wait.from, wait.to)), least).collect();
            left_out += job.waits.len() - kept.len();
            let mut flat: Vec<Value> = Vec::new();
            let mut last = 0;
            for wait in kept.into_iter().map(|at| &job.waits[at]) {
                let (from, to) = (ticks(wait.from).max(last), ticks(wait.to).max(last));
                let (text, numbers) = texts.split(&wait_text(&wait.reason));
                flat.extend([from - last, to - from, wait.changes.into(), text as u64].map(Value::from));
                flat.extend(numbers);
                last = to;
            }
            waits.push(flat);
        }

        let mut families: BTreeMap<&str, usize> = BTreeMap::new();
        let names: Vec<String> = record.jobs.iter().map(|job| cosched_report::visible(&job.name)).collect();
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
        let looks: Vec<Value> =
            looks().map(|look| json!({"colour": look.colour, "hatch": look.hatch, "light": look.light})).collect();
        let json = json!({
            "unit": tick, "end": ticks(timeline.until).max(1), "cpus": cpus, "jobs": names, "group": group, "looks": looks,
            "on": rows, "shared": shared, "waits": waits, "texts": texts.all,
        });
        let note = (left_out > 0).then(|| {
            let stays = count(left_out as u64, "stay or wait");
            format!("{stays} of less than {} left out; the series has all.", seconds(least.as_s()))
        });
        Some(Data { json: json.to_string(), is_best_by_job: shared_time > own_time, note })
    }
}
