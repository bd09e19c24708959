//! The page of results: its words are in `page.md`, the figures come from the runs.

use crate::candidates::{CANDIDATES, LAWS, MIXES};
use crate::outcome::{JobError, Outcome, greatest, least};
use crate::traffic::Traffic;
use std::fmt::Write as _;

const WORDS: &str = include_str!("page.md");

/// The page. Traffic stands with the index of its law.
pub(crate) fn of(outcomes: &[Outcome], traffic: &[(usize, Traffic)]) -> String {
    WORDS
        // The page lies in another folder than its words.
        .replace("(../../../../docs/", "(../docs/")
        .replace("{policies}\n", &policies(outcomes))
        .replace(
            "{progress}\n",
            &job_errors(outcomes, |outcome| outcome.progress),
        )
        .replace(
            "{slowdown}\n",
            &job_errors(outcomes, |outcome| outcome.slowdown),
        )
        .replace(
            "{learnt}\n",
            &job_errors(outcomes, |outcome| outcome.learnt),
        )
        .replace("{machine}\n", &machine_errors(outcomes, traffic))
}

/// A figure in repeated runs.
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

/// None of no values.
fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let above = *sorted.get(middle)?;
    let below = if sorted.len() % 2 == 1 {
        above
    } else {
        sorted[middle - 1]
    };
    Some(Spread {
        least: least(&sorted),
        median: f64::midpoint(below, above),
        greatest: greatest(&sorted),
    })
}

/// What the policies are compared by.
struct Column {
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    of: fn(&Outcome) -> f64,
    /// Whether it is given relative to the first candidate.
    is_relative: bool,
}

const COLUMNS: [Column; 5] = [
    Column {
        title: "last end",
        unit: " s",
        decimals: 1,
        of: |outcome| outcome.makespan_s,
        is_relative: true,
    },
    Column {
        title: "mean turnaround",
        unit: " s",
        decimals: 1,
        of: |outcome| outcome.mean_turnaround_s,
        is_relative: true,
    },
    Column {
        title: "mean slowdown",
        unit: "",
        decimals: 2,
        of: |outcome| outcome.mean_slowdown,
        is_relative: true,
    },
    Column {
        title: "unfairness",
        unit: "",
        decimals: 2,
        of: |outcome| outcome.unfairness,
        is_relative: false,
    },
    Column {
        title: "energy",
        unit: " J",
        decimals: 0,
        of: |outcome| outcome.energy_j,
        is_relative: true,
    },
];

/// A table for each law and mix.
fn policies(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for (law, of_law) in LAWS.iter().enumerate() {
        for (mix, of_mix) in MIXES.iter().enumerate() {
            let mut here = Vec::new();
            for outcome in outcomes {
                if outcome.place.law == law && outcome.place.mix == mix {
                    here.push(outcome);
                }
            }
            add_line(
                &mut text,
                &format!("### `{}`, {}\n", of_law.name, of_mix.name),
            );
            add_comparison(&mut text, &here);
        }
    }
    // The template has an empty line behind it.
    text.trim_end().to_owned() + "\n"
}

fn add_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string");
}

fn add_header(text: &mut String, titles: &[&str]) {
    add_line(text, &format!("| {} |", titles.join(" | ")));
    add_line(text, &format!("|{}", " --- |".repeat(titles.len())));
}

fn add_row(text: &mut String, cells: &[String]) {
    add_line(text, &format!("| {} |", cells.join(" | ")));
}

fn add_comparison(text: &mut String, here: &[&Outcome]) {
    let titles = COLUMNS.map(|column| column.title);
    add_header(text, &[&["policy"][..], &titles].concat());
    for candidate in 0..CANDIDATES.len() {
        let mut row = vec![name_of(candidate, here)];
        for column in &COLUMNS {
            let cell = cell(column, candidate, here);
            row.push(match is_best(column, candidate, here) {
                true => format!("**{cell}**"),
                false => cell,
            });
        }
        add_row(text, &row);
    }
    text.push('\n');
}

/// The name of a candidate, and the policies that `auto` chose.
fn name_of(candidate: usize, here: &[&Outcome]) -> String {
    let name = CANDIDATES[candidate].name();
    let mut chosen: Vec<&str> = Vec::new();
    for outcome in here {
        let is_new = !chosen.contains(&outcome.policy.as_str());
        if outcome.place.candidate == candidate && name == "auto" && is_new {
            chosen.push(&outcome.policy);
        }
    }
    match chosen.as_slice() {
        [] => format!("`{name}`"),
        some => format!("`{name}` ({})", some.join(", ")),
    }
}

/// The values of a column, by repeat.
fn values(column: &Column, candidate: usize, here: &[&Outcome]) -> Vec<f64> {
    let mut values = Vec::new();
    for outcome in here {
        if outcome.place.candidate == candidate {
            values.push((column.of)(outcome));
        }
    }
    values
}

/// The same, relative to the first candidate in the same repeat, if the column is relative.
fn judged(column: &Column, candidate: usize, here: &[&Outcome]) -> Spread {
    let mut values = self::values(column, candidate, here);
    if column.is_relative {
        for (value, measure) in values.iter_mut().zip(self::values(column, 0, here)) {
            *value = *value / measure - 1.0;
        }
    }
    spread(&values).expect("each candidate has run")
}

fn is_best(column: &Column, candidate: usize, here: &[&Outcome]) -> bool {
    let median = judged(column, candidate, here).median;
    (0..CANDIDATES.len()).all(|other| median <= judged(column, other, here).median)
}

fn cell(column: &Column, candidate: usize, here: &[&Outcome]) -> String {
    if column.is_relative && candidate > 0 {
        let Spread {
            least,
            median,
            greatest,
        } = judged(column, candidate, here);
        return format!(
            "{:+.1} % ({:+.1} to {:+.1})",
            100.0 * median,
            100.0 * least,
            100.0 * greatest
        );
    }
    let spread = spread(&values(column, candidate, here)).expect("each candidate has run");
    let decimals = column.decimals;
    format!(
        "{:.decimals$}{} ({:.decimals$} to {:.decimals$})",
        spread.median, column.unit, spread.least, spread.greatest
    )
}

/// The mean errors of a figure of the jobs, by candidate and law. Candidates that hardly ever give it are left out.
fn job_errors(outcomes: &[Outcome], of: fn(&Outcome) -> JobError) -> String {
    let mut text = String::new();
    let titles = LAWS.map(|law| format!("`{}`", law.name));
    let mut header = vec!["policy"];
    header.extend(titles.iter().map(String::as_str));
    add_header(&mut text, &header);
    for (candidate, its) in CANDIDATES.iter().enumerate() {
        let mut cells = Vec::new();
        for law in 0..LAWS.len() {
            let mut errors = Vec::new();
            for outcome in outcomes {
                if (outcome.place.candidate, outcome.place.law) == (candidate, law) {
                    errors.push(of(outcome));
                }
            }
            cells.push(job_error(&errors));
        }
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![format!("`{}`", its.name())];
        row.extend(
            cells
                .into_iter()
                .map(|cell| cell.unwrap_or("few".to_owned())),
        );
        add_row(&mut text, &row);
    }
    text
}

/// Least share of jobs that is shown: one job of a run says little.
const LEAST_SHARE: f64 = 0.1;

/// The spread of the errors, and the share of jobs that have the figure; `None` if few have it.
fn job_error(errors: &[JobError]) -> Option<String> {
    let shares: Vec<f64> = errors.iter().map(|error| error.share).collect();
    let mut means = Vec::new();
    for error in errors {
        if error.share > 0.0 {
            means.push(error.mean);
        }
    }
    let (means, shares) = (spread(&means)?, spread(&shares)?);
    let text = format!(
        "{:.1} / {:.1} / {:.1} ({:.0})",
        100.0 * means.least,
        100.0 * means.median,
        100.0 * means.greatest,
        100.0 * shares.median
    );
    (shares.median > LEAST_SHARE).then_some(text)
}

/// The errors of what is recorded of the machine, by law.
fn machine_errors(outcomes: &[Outcome], traffic: &[(usize, Traffic)]) -> String {
    let mut text = String::new();
    let titles = [
        "law",
        "energy",
        "reads, summed over the jobs",
        "reads of the memory, under `efs`",
        "writes of the memory, under `efs`",
    ];
    add_header(&mut text, &titles);
    for (law, of_law) in LAWS.iter().enumerate() {
        let mut energy = Vec::new();
        let mut reads_of_jobs = Vec::new();
        for outcome in outcomes {
            if outcome.place.law == law {
                energy.extend(outcome.energy_error);
                reads_of_jobs.extend(outcome.reads_error);
            }
        }
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (its_law, errors) in traffic {
            if *its_law == law {
                reads.push(errors.reads_error);
                writes.push(errors.writes_error);
            }
        }
        let mut row = vec![format!("`{}`", of_law.name)];
        row.extend([energy, reads_of_jobs, reads, writes].map(|errors| signed(&errors)));
        add_row(&mut text, &row);
    }
    text
}

fn signed(errors: &[f64]) -> String {
    spread(errors).map_or("absent".to_owned(), |errors| {
        format!(
            "{:+.1} / {:+.1} / {:+.1}",
            100.0 * errors.least,
            100.0 * errors.median,
            100.0 * errors.greatest
        )
    })
}
