use super::*;
use crate::source::BackendKind;
use crate::testing::{FullDisk, decision, samples, snapshot};
use cosched_core::{Absence, Capability, DecisionRecord, Nanos, Rate, Reading, RngState, Snapshot};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;

fn write<W: Write>(writer: &mut EventWriter<W>, snapshot: &Snapshot) {
    let samples = samples(snapshot.now);
    let state = serde_json::json!({"queue": [2, 1], "lag": 0.1});
    let record = DecisionRecord {
        snapshot,
        samples: &samples,
        policy_state: Some(&state),
        rng: RngState {
            seed: u64::MAX,
            position: 17,
        },
        decision: &decision(),
        stood_in: false,
    };
    writer.decided(&record);
}

fn params() -> BTreeMap<String, serde_json::Value> {
    [
        ("lead".to_owned(), 1.0.into()),
        ("quantum_ms".to_owned(), 200.into()),
    ]
    .into()
}

fn context(policy: &str, params: BTreeMap<String, serde_json::Value>) -> EventContext {
    EventContext {
        backend: BackendKind::Host,
        policy: policy.to_owned(),
        params,
        machine_params: [("quantum_s".to_owned(), "0.1".to_owned())].into(),
        missing: [(Capability::CoreTypes.code(), Absence::OneCoreType)].into(),
    }
}

fn text(n: u64) -> String {
    let mut writer = EventWriter::new(Vec::new(), context("perf-fair", params()));
    for ix in 0..n {
        write(
            &mut writer,
            &Snapshot {
                now: Nanos::from_ms(400 + 200 * ix),
                ..snapshot()
            },
        );
    }
    String::from_utf8(writer.into_inner()).unwrap()
}

#[test]
fn an_event() {
    insta::assert_snapshot!(text(1));
}

#[test]
fn events_read_back_and_write_the_same() {
    let text = text(3);
    let events: Vec<EventRecord> = EventReader::new(text.as_bytes(), "e")
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(events[0].snapshot, snapshot());
    assert_eq!(events[0].decision, Some(decision()));
    assert_eq!(events[0].samples, samples(Nanos::from_ms(400)));
    assert_eq!(events[0].params, params());
    let again: String = events.iter().map(|event| event.to_json() + "\n").collect();
    assert_eq!(again, text);
}

#[test]
fn indented_events_are_read_too() {
    let event = read_event(text(1).as_bytes(), "e", EventPick::First).unwrap();
    let pretty = serde_json::to_string_pretty(&event).unwrap();
    let both = format!("\n{pretty}\n\n{}\n{pretty}", event.to_json());
    assert_eq!(
        EventReader::new(both.as_bytes(), "e")
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        vec![event; 3]
    );
}

#[test]
fn by_number() {
    assert_eq!(
        read_event(text(3).as_bytes(), "e", EventPick::Seq(2))
            .unwrap()
            .snapshot
            .now,
        Nanos::from_ms(800)
    );
    let error = read_event(text(3).as_bytes(), "e", EventPick::Seq(9))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "e: there is no decision with number 9; the last one has 2"
    );
    let error = read_event(text(1).as_bytes(), "e", EventPick::Seq(9))
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("the last one has 0"), "{error}");
    assert!(
        read_event("\n".as_bytes(), "e", EventPick::Seq(0))
            .unwrap_err()
            .to_string()
            .contains("found nothing")
    );
}

#[test]
fn errors_name_file_line_key_and_what_was_expected() {
    let pretty = serde_json::to_string_pretty(
        &read_event(text(1).as_bytes(), "e", EventPick::First).unwrap(),
    )
    .unwrap();
    let check = |text: &str, expected: &str| {
        let error = read_event(text.as_bytes(), "e.json", EventPick::First)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    };
    let with = |from: &str, to: &str| {
        assert!(pretty.contains(from), "{from}");
        pretty.replacen(from, to, 1)
    };
    check(
        "",
        "e.json: found nothing; expected an event, an object with `\"schema\": \"cosched.event/1\"`",
    );
    check("{}", "e.json, line 1: missing field `schema`");
    check(
        &with("event/1", "event/2"),
        "key `schema`: expected \"cosched.event/1\"; found \"cosched.event/2\"",
    );
    check(
        "{\"schema\":\"cosched.event/1\"}",
        "e.json, line 1: missing field `snapshot`",
    );
    check(
        &with("\"cpus\": 1,", "\"cpus\": \"few\","),
        ", key `snapshot.tasks[0].cpus`: invalid type: string \"few\", expected u32",
    );
    check(
        &with("\"cpus\": 1,", ""),
        ", key `snapshot.tasks[0]`: missing field `cpus`",
    );
    check(
        &with(
            "\"id\": 1,\n        \"name\"",
            "\"id\": 0,\n        \"name\"",
        ),
        "key `snapshot.tasks[1].id`: expected tasks in ascending order",
    );
    check(
        &with("\"core\": 1", "\"core\": 5"),
        "key `snapshot.machine`: CPU 1 of the machine `two cores`",
    );
    check(
        &with(
            "\"cpus\": 1,\n        \"allowed\"",
            "\"cpus\": 0,\n        \"allowed\"",
        ),
        "tasks[0].cpus`: expected at least 1",
    );
    check(
        &with(
            "\"cpus\": \"0\",\n              \"whole",
            "\"cpus\": \"7\",\n              \"whole",
        ),
        "expected CPUs of the machine; found CPU 7",
    );
    check(
        &with("\"why\": \"order\"", "\"why\": \"ordre\""),
        "key `decision.waits[0].reason.why`: unknown variant `ordre`, expected one of `order`",
    );
    check(&pretty[..pretty.len() / 2], "EOF");
    let line = pretty
        .lines()
        .position(|line| line.contains("\"triggers\""))
        .unwrap()
        + 1;
    check(
        &with("\"quantum-end\"", "\"quantum end\""),
        &format!("e.json, line {}, key `snapshot.triggers[0]`", line + 1),
    );
}

#[test]
fn a_cut_off_last_event_is_left_out() {
    let text = text(2);
    let mut reader = EventReader::new(&text.as_bytes()[..text.len() - 40], "e");
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 1);
    assert!(reader.cut_off());
}

#[test]
fn a_full_disk_stops_the_events_and_nothing_else() {
    let mut writer = EventWriter::new(FullDisk::after(5_000), context("fifo", BTreeMap::new()));
    for _ in 0..4 {
        write(&mut writer, &snapshot());
    }
    assert!(
        writer
            .take_warning()
            .unwrap()
            .text()
            .starts_with("the events file is written no further")
    );
    assert_eq!(writer.take_warning(), None);
    let written = writer.into_inner().written;
    assert_eq!(
        EventReader::new(written.as_slice(), "e")
            .map(Result::unwrap)
            .count(),
        1
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every finite number of a snapshot reads back to the same bits.
    #[test]
    fn round_trip_to_the_bit(bits in prop::collection::vec(any::<u64>(), 3), now in any::<u64>(), rate in any::<u64>()) {
        let mut snapshot = Snapshot { now: Nanos(now), ..snapshot() };
        for (task, bits) in snapshot.tasks.iter_mut().zip(bits) {
            let x = f64::from_bits(bits);
            task.estimates.progress = Reading::Value(if x.is_finite() { x } else { f64::MIN_POSITIVE });
            task.estimates.ipc = Reading::Value(bits as f64 / 3.0);
            task.estimates.mm_reads = Reading::Value(Rate(rate));
        }
        let mut writer = EventWriter::new(Vec::new(), context("fifo", BTreeMap::new()));
        write(&mut writer, &snapshot);
        let text = String::from_utf8(writer.into_inner()).unwrap();
        let event = read_event(text.as_bytes(), "e", EventPick::First).unwrap();
        for (task, back) in snapshot.tasks.iter().zip(&event.snapshot.tasks) {
            let bits = |reading: Reading<f64>| reading.value().map(f64::to_bits);
            prop_assert_eq!(bits(task.estimates.progress), bits(back.estimates.progress));
            prop_assert_eq!(bits(task.estimates.ipc), bits(back.estimates.ipc));
        }
        prop_assert_eq!(&event.snapshot, &snapshot);
        prop_assert_eq!(event.to_json() + "\n", text);
    }
}
