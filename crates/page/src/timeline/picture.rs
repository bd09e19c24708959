//! A timeline as a picture: in each part of the run, who had a CPU for longest.

use crate::facts::family;
use cosched_core::Nanos;
use cosched_report::chart::{Axis, Chart, Plot, Span, Timeline as Rows};
use cosched_report::{Mode, Record, Timeline};
use std::collections::BTreeMap;

/// Parts of the run that are told apart: about as many as a picture has points.
const PARTS: u64 = 600;
/// So many rows can be read.
const MOST_ROWS: usize = 64;
/// Families of jobs that have a colour of their own.
const MOST_SERIES: usize = 24;

/// The picture of what is named so; `None` if there is nothing to see, or too much.
///
/// Rows are CPUs; or jobs, where these share CPUs.
pub(crate) fn picture(what: &str, timeline: &Timeline, record: &Record) -> Option<Chart> {
    let (from, until) = (
        timeline.from.0,
        timeline.until.0.saturating_sub(timeline.from.0),
    );
    if until == 0 || timeline.jobs.len() > record.jobs.len() {
        return None;
    }
    let stays = || {
        timeline
            .jobs
            .iter()
            .enumerate()
            .flat_map(|(job, all)| all.stays.iter().map(move |stay| (job, stay)))
    };
    let is_shared = |mode: Mode| mode == Mode::Shared;
    let time = |shared: bool| -> u64 {
        stays()
            .filter(|(_, stay)| is_shared(stay.mode) == shared)
            .map(|(_, stay)| (stay.to - stay.from).0)
            .sum()
    };
    let by_job = time(true) > time(false);
    let rows: Vec<String> = if by_job {
        record.jobs.iter().map(|job| job.name.clone()).collect()
    } else {
        timeline
            .cpus
            .iter()
            .map(|cpu| format!("CPU {}", cpu.0))
            .collect()
    };
    if rows.is_empty() || rows.len() > MOST_ROWS {
        return None;
    }
    let mut series: Vec<String> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let series_of: Vec<usize> = record
        .jobs
        .iter()
        .map(|job| {
            let name = family(&job.name);
            *known.entry(name).or_insert_with(|| {
                if series.len() < MOST_SERIES {
                    series.push(name.to_owned());
                } else if series.len() == MOST_SERIES {
                    series.push("others".to_owned());
                }
                series.len() - 1
            })
        })
        .collect();
    let place_of: BTreeMap<u32, usize> = timeline
        .cpus
        .iter()
        .enumerate()
        .map(|(at, cpu)| (cpu.0, at))
        .collect();
    let mut parts: Vec<BTreeMap<(u64, usize), u64>> = vec![BTreeMap::new(); rows.len()];
    for (job, stay) in stays() {
        let rows: Vec<usize> = if by_job {
            vec![job]
        } else if is_shared(stay.mode) {
            Vec::new()
        } else {
            stay.cpus
                .iter()
                .filter_map(|cpu| place_of.get(&cpu.0).copied())
                .collect()
        };
        for row in rows {
            let since = |at: Nanos| Nanos(at.0.saturating_sub(from));
            for part in part_of(since(stay.from), until)..=part_of(since(stay.to), until) {
                let (begin, end) = (
                    from + until / PARTS * part,
                    from + until / PARTS * (part + 1),
                );
                let time = end.min(stay.to.0).saturating_sub(begin.max(stay.from.0));
                *parts[row].entry((part, series_of[job])).or_default() += time;
            }
        }
    }
    let mut spans: Vec<Span> = Vec::new();
    for (row, times) in parts.iter().enumerate() {
        // Of each part the series that had most of it, unless nobody had half.
        let mut most: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        for (&(part, series), &time) in times {
            let best = most.entry(part).or_insert((time, series));
            if time > best.0 {
                *best = (time, series);
            }
            *taken.entry(part).or_default() += time;
        }
        let at =
            |part: u64| timeline.from.as_s() + part as f64 / PARTS as f64 * Nanos(until).as_s();
        let mut last: Option<(u64, usize)> = None;
        for (part, (_, series)) in most {
            if 2 * taken[&part] < until / PARTS {
                continue;
            }
            match spans
                .last_mut()
                .filter(|_| last == Some((part.wrapping_sub(1), series)))
            {
                Some(span) => span.to = at(part + 1),
                None => spans.push(Span {
                    row,
                    series,
                    from: at(part),
                    to: at(part + 1),
                }),
            }
            last = Some((part, series));
        }
    }
    let mut told = if by_job {
        "each job's time on CPUs"
    } else {
        "in each moment the job that had the CPU for longest"
    }
    .to_owned();
    if from > 0 {
        told.push_str("; a section of the run");
    }
    (!spans.is_empty()).then(|| Chart {
        title: format!("Who ran where: {what}"),
        subtitle: Some(told),
        x: Axis {
            label: "time since the start".to_owned(),
            unit: Some("s".to_owned()),
            from: (from > 0).then(|| timeline.from.as_s()),
            to: (from > 0).then(|| timeline.until.as_s()),
        },
        y: Axis::default(),
        marks: Vec::new(),
        plot: Plot::Timeline(Rows {
            rows,
            series,
            spans,
        }),
    })
}

/// The part of the run in which a time lies.
fn part_of(at: Nanos, until: u64) -> u64 {
    ((u128::from(at.0) * u128::from(PARTS) / u128::from(until.max(1))) as u64).min(PARTS - 1)
}
