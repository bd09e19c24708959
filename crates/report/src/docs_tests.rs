//! The documentation of the formats says what the code does.

use crate::Pick;
use crate::series::Row;
use crate::testing::{decision, info, result, samples, snapshot, warnings};
use crate::{
    EventReader, JOBLOG_HEADER, RECORD_SCHEMA, SERIES_KINDS, SERIES_SCHEMA, SeriesHeader,
    read_event, read_joblog,
};
use cosched_core::metric::METRICS;
use cosched_core::{Absence, Counter, Nanos, PlanCounts, Purpose, RunResult, Trigger, WaitReason};
use serde_json::Value;
use std::collections::BTreeSet;

const DOCS: &str = include_str!("../../../docs/formats.md");

/// The content of the fenced block of that kind.
fn block(kind: &str) -> &'static str {
    let start = DOCS
        .find(&format!("```{kind}\n"))
        .unwrap_or_else(|| panic!("no block `{kind}`"))
        + kind.len()
        + 4;
    &DOCS[start..start + DOCS[start..].find("```").unwrap()]
}

fn named(name: &str) -> bool {
    DOCS.contains(&format!("`{name}`")) || DOCS.contains(&format!("`\"{name}\"`"))
}

/// Every key of a JSON value except the reasons of absence.
fn keys(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if !key.ends_with("_absent") {
                    out.push(key.clone());
                }
                keys(value, out);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, out)),
        _ => {}
    }
}

fn check_keys(value: &Value, known: &[&str]) {
    let mut all = Vec::new();
    keys(value, &mut all);
    for key in all {
        assert!(
            named(&key) || known.contains(&key.as_str()),
            "`{key}` is not in docs/formats.md"
        );
    }
}

#[test]
fn every_metric_is_documented() {
    for metric in METRICS {
        let row = DOCS
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` | {} |", metric.name, metric.unit)));
        let row = row
            .unwrap_or_else(|| panic!("{} is not in docs/formats.md with its unit", metric.name));
        assert!(
            row.contains(&format!("| {} |", metric.better.text())),
            "{row}"
        );
    }
}

#[test]
fn every_key_of_the_record_is_documented() {
    let plans = Some(PlanCounts {
        installed: 2,
        adopted: 1,
        given_up: None,
        occupation: None,
    });
    let result = RunResult { plans, ..result() };
    let record = crate::record(&result, &info(&result));
    check_keys(&serde_json::from_str(&record.to_json()).unwrap(), &[]);
    assert!(named(RECORD_SCHEMA));
}

#[test]
fn every_key_of_the_state_is_documented() {
    let status = crate::live::tests::status();
    check_keys(&serde_json::to_value(&status).unwrap(), &[]);
    assert!(named(crate::STATUS_SCHEMA));
    for state in crate::JobState::ALL {
        assert!(named(state.text()), "{}", state.text());
    }
}

#[test]
fn every_kind_and_column_of_the_series_is_documented() {
    for kind in SERIES_KINDS {
        let row = DOCS
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", kind.code)))
            .unwrap();
        let mut rest = row;
        for column in kind.columns {
            let at = rest
                .find(&format!("`{column}`"))
                .unwrap_or_else(|| panic!("{}: {column}", kind.code));
            rest = &rest[at..];
        }
    }
    let result = result();
    let header = SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec));
    let mut header = serde_json::to_value(header).unwrap();
    header["columns"] = Value::Null;
    check_keys(&header, &[]);
    assert!(named(SERIES_SCHEMA));
}

#[test]
fn the_example_of_a_series_reads_and_writes_the_same() {
    for line in block("series").lines() {
        let (at, row) = Row::read(line).unwrap().unwrap();
        let mut again = Vec::new();
        row.write(at, &mut again);
        assert_eq!(String::from_utf8(again).unwrap().trim_end(), line);
    }
}

#[test]
fn every_key_of_an_event_is_documented() {
    let event = read_event(block("event").as_bytes(), "docs/formats.md", Pick::First).unwrap();
    let event = crate::Event {
        snapshot: snapshot(),
        samples: samples(Nanos::ZERO),
        decision: Some(decision()),
        ..event
    };
    check_keys(
        &serde_json::to_value(event).unwrap(),
        &["value", "absent", "exclusive", "place", "stop", "placement"],
    );
}

#[test]
fn solo_profiles_are_documented() {
    let file = crate::SoloFile::from_json(block("solo")).unwrap();
    check_keys(&serde_json::to_value(&file).unwrap(), &[]);
    assert!(named(crate::SOLO_SCHEMA));
    assert_eq!(file.to_json(), block("solo"));
}

#[test]
fn the_example_of_a_question_is_complete() {
    let event = read_event(block("event").as_bytes(), "docs/formats.md", Pick::First).unwrap();
    assert_eq!(
        (event.snapshot.tasks.len(), event.decision.is_none()),
        (2, true)
    );
    assert_eq!(event.snapshot.machine.validate(), Ok(()));
    let line = event.to_json();
    let again: Vec<_> = EventReader::new(line.as_bytes(), "line")
        .map(Result::unwrap)
        .collect();
    assert_eq!(again, [event]);
}

/// The error message in the documentation is the real one.
#[test]
fn the_example_of_an_error_is_real() {
    let text = block("event").replacen("\"nice\": 0", "\"nice\": \"low\"", 1);
    let error = read_event(text.as_bytes(), "question.json", Pick::First)
        .unwrap_err()
        .to_string();
    assert!(DOCS.contains(&error), "{error}");
}

#[test]
fn every_warning_has_its_row() {
    let section = DOCS
        .split("### Warnings\n")
        .nth(1)
        .and_then(|rest| rest.split("\n### ").next())
        .unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(code, _)| code);
    let mut documented: Vec<&str> = rows.filter(|code| *code != "code").collect();
    documented.sort_unstable();
    let codes: BTreeSet<&str> = warnings().iter().map(|warning| warning.code()).collect();
    assert_eq!(documented, codes.into_iter().collect::<Vec<_>>());
}

#[test]
fn every_code_is_documented() {
    for reason in WaitReason::one_of_each() {
        let value = serde_json::to_value(reason).unwrap();
        assert!(DOCS.contains(&format!("| `{}` |", value["why"].as_str().unwrap())));
        check_keys(&value, &[]);
    }
    for absence in Absence::ALL {
        let row = format!(
            "| `{}` | {} |",
            serde_json::to_value(absence).unwrap().as_str().unwrap(),
            absence.text()
        );
        assert!(
            DOCS.lines().any(|line| line == row),
            "docs/formats.md lacks the line {row}"
        );
    }
    for trigger in Trigger::one_of_each() {
        let code = match serde_json::to_value(trigger).unwrap() {
            Value::Object(of_task) => of_task.keys().next().unwrap().clone(),
            code => code.as_str().unwrap().to_owned(),
        };
        assert!(named(&code), "{code}");
    }
    for purpose in Purpose::ALL {
        assert!(
            named(serde_json::to_value(purpose).unwrap().as_str().unwrap()),
            "{purpose:?}"
        );
    }
}

#[test]
fn every_counter_is_documented() {
    for counter in Counter::ALL {
        let row = format!(
            "| `{}` | {} | {} |",
            counter.name(),
            counter.text(),
            counter.unit()
        );
        assert!(
            DOCS.lines().any(|line| line == row),
            "docs/formats.md lacks the line {row}"
        );
    }
}

#[test]
fn the_example_of_a_job_log_is_one() {
    let log = read_joblog(block("joblog").as_bytes(), "docs/formats.md").unwrap();
    let succeeded: Vec<&str> = log
        .successes()
        .map(|entry| entry.command.as_str())
        .collect();
    assert_eq!(
        (log.entries.len(), log.cut_off, succeeded),
        (2, false, vec!["./sort 'input a'"])
    );
    let lines: String = log.entries.iter().map(crate::Entry::to_line).collect();
    assert_eq!(format!("{JOBLOG_HEADER}\n{lines}"), block("joblog"));
    for column in JOBLOG_HEADER.split('\t') {
        assert!(named(column), "{column}");
    }
}
