//! The schemas in `docs/schema/` and the page about formats say what the code does.

use crate::EventPick;
use crate::series::SeriesRow;
use crate::testing::{decision, info, result, samples, snapshot};
use crate::warning::tests::warnings;
use crate::{
    EventReader, JOBLOG_HEADER, RunWarning, SERIES_KINDS, SeriesHeader, read_event, read_joblog,
};
use cosched_core::metric::METRICS;
use cosched_core::{Absence, Counter, Nanos, PlanCounts, Purpose, RunResult, Trigger, WaitReason};
use schema::Schemas;
use serde_json::{Value, json, to_value};
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantNames as _;

#[path = "../../cli/tests/suite/common/schema.rs"]
#[allow(dead_code)] // The tests of the binary use the rest.
mod schema;

const PAGE: &str = include_str!("../../../docs/formats.md");
const QUESTION: &str = include_str!("../../../docs/schema/examples/question.json");
const SERIES: &str = include_str!("../../../docs/schema/examples/series.jsonl");
const SOLO: &str = include_str!("../../../docs/schema/examples/solo.json");

/// The constants of a schema with their descriptions.
fn constants(schema: &Value) -> BTreeMap<&str, &str> {
    let list = schema["oneOf"].as_array().expect("a list of constants");
    list.iter()
        .map(|one| {
            (
                one["const"].as_str().unwrap(),
                one["description"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn every_metric_has_its_unit_and_direction() {
    let schemas = Schemas::read();
    let metrics = schemas.get("run.json")["$defs"]["metrics"]["properties"]
        .as_object()
        .unwrap();
    assert_eq!(metrics.len(), METRICS.len());
    for metric in METRICS {
        let text = metrics[metric.name]["description"].as_str().unwrap();
        let start = format!("{}, {} is better.", metric.unit, metric.better.text());
        assert!(text.starts_with(&start), "{}: {text}", metric.name);
    }
}

#[test]
fn records_with_plans() {
    let plans = Some(PlanCounts {
        installed: 2,
        adopted: 1,
        given_up: None,
        occupation: None,
    });
    let result = RunResult { plans, ..result() };
    let record = crate::record(&result, &info(&result));
    Schemas::read().check("run.json", &to_value(record).unwrap());
}

#[test]
fn states_and_their_words() {
    let schemas = Schemas::read();
    let status = crate::live::tests::status();
    schemas.check("status.json", &to_value(&status).unwrap());
    let states = &schemas.get("status.json")["$defs"]["job"]["properties"]["state"]["enum"];
    let known = crate::JobState::VARIANTS;
    assert_eq!(*states, json!(known));
}

#[test]
fn series_have_the_kinds_and_columns_of_the_schema() {
    let schemas = Schemas::read();
    let rows = schemas.get("series-row.json")["oneOf"].as_array().unwrap();
    assert_eq!(rows.len(), SERIES_KINDS.len());
    for kind in SERIES_KINDS {
        let row = rows
            .iter()
            .find(|row| row["prefixItems"][0]["const"] == kind.code)
            .unwrap_or_else(|| panic!("no kind {}", kind.code));
        let columns: Vec<&str> = row["prefixItems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["title"].as_str().unwrap())
            .collect();
        assert_eq!(columns, kind.columns, "{}", kind.code);
    }
    let result = result();
    let header = SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec));
    schemas.check("series-header.json", &to_value(header).unwrap());
}

#[test]
fn the_example_of_a_series_reads_and_writes_the_same() {
    for line in SERIES.lines() {
        let (at, row) = SeriesRow::read(line).unwrap().unwrap();
        let mut again = Vec::new();
        row.write(at, &mut again);
        assert_eq!(String::from_utf8(again).unwrap().trim_end(), line);
    }
}

#[test]
fn events_with_samples_and_a_decision() {
    let event = read_event(QUESTION.as_bytes(), "question.json", EventPick::First).unwrap();
    let event = crate::EventRecord {
        snapshot: snapshot(),
        samples: samples(Nanos::ZERO),
        decision: Some(decision()),
        ..event
    };
    Schemas::read().check("event.json", &to_value(event).unwrap());
}

#[test]
fn solo_profiles_are_written_as_in_the_example() {
    let file = crate::SoloFile::from_json(SOLO).unwrap();
    assert_eq!(file.to_json(), SOLO);
    Schemas::read().check("solo.json", &to_value(&file).unwrap());
}

#[test]
fn the_example_of_a_question_is_complete() {
    let event = read_event(QUESTION.as_bytes(), "question.json", EventPick::First).unwrap();
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

#[test]
fn an_error_names_the_file_the_line_and_the_key() {
    let text = QUESTION.replacen("\"cpus\": 1,", "\"cpus\": \"few\",", 1);
    let error = read_event(text.as_bytes(), "question.json", EventPick::First)
        .unwrap_err()
        .to_string();
    let expected = "question.json, line 17, key `snapshot.tasks[0].cpus`: invalid type: string \"few\", expected u32";
    assert_eq!(error, expected);
}

#[test]
fn the_schema_has_every_warning() {
    let schemas = Schemas::read();
    let documented = constants(&schemas.get("run.json")["$defs"]["warning_code"]);
    let mut codes: BTreeSet<&str> = RunWarning::VARIANTS.iter().copied().collect();
    // It has the code of the warning that it repeats.
    codes.remove("repeated");
    assert_eq!(documented.into_keys().collect::<BTreeSet<_>>(), codes);
    let examples: BTreeSet<&str> = warnings().iter().map(|warning| warning.code()).collect();
    assert_eq!(examples, codes);
}

#[test]
fn the_schema_has_every_reason_of_absence_in_its_words() {
    let schemas = Schemas::read();
    let documented = constants(&schemas.get("event.json")["$defs"]["absence_code"]);
    assert_eq!(documented.len(), Absence::ALL.len());
    for absence in Absence::ALL {
        let code = to_value(absence).unwrap();
        assert_eq!(documented[code.as_str().unwrap()], absence.text());
    }
}

#[test]
fn the_schema_has_every_reason_to_wait() {
    let schemas = Schemas::read();
    let reasons = schemas.get("event.json")["$defs"]["reason"]["oneOf"].as_array();
    let all = WaitReason::one_of_each();
    assert_eq!(reasons.unwrap().len(), all.len());
    for reason in all {
        let row = json!(["w", 0, 1, reason]);
        schemas.check("series-row.json", &row);
    }
}

#[test]
fn the_schema_has_every_trigger_and_purpose() {
    let schemas = Schemas::read();
    let triggers: Vec<_> = Trigger::one_of_each();
    let row = json!(["d", 0, triggers, null, 0, null, null, null]);
    schemas.check("series-row.json", &row);
    let purposes = &schemas.get("event.json")["$defs"]["purpose"]["enum"];
    assert_eq!(*purposes, json!(Purpose::ALL));
}

#[test]
fn the_schema_has_every_counter_with_its_unit() {
    let schemas = Schemas::read();
    let counts = schemas.get("event.json")["$defs"]["counts"]["properties"]
        .as_object()
        .unwrap();
    assert_eq!(counts.len(), Counter::ALL.len());
    for counter in Counter::ALL {
        let text = counts[counter.name()]["description"].as_str().unwrap();
        assert!(
            text.starts_with(counter.text()) && text.contains(counter.unit()),
            "{text}"
        );
    }
}

#[test]
fn the_example_of_a_job_log_is_one() {
    let example = PAGE
        .split_once("```joblog\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .expect("an example")
        .0;
    let log = read_joblog(example.as_bytes(), "docs/formats.md").unwrap();
    let succeeded: Vec<&str> = log
        .successes()
        .map(|entry| entry.command.as_str())
        .collect();
    assert_eq!(
        (log.entries.len(), log.cut_off, succeeded),
        (2, false, vec!["./sort 'input a'"])
    );
    let lines: String = log
        .entries
        .iter()
        .map(crate::JobLogEntry::to_line)
        .collect();
    assert_eq!(format!("{JOBLOG_HEADER}\n{lines}"), example);
}
