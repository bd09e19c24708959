//! Events: one line per decision with everything that it was based on, so that it can be replayed and explained.
//!
//! An event is also the input of `cosched decide`. People and other programs may write events, on one line or indented.
//! Numbers are printed in full, so they read back to the same bits.

use crate::info::BackendKind;
use crate::json::{self, Depth, JsonError};
use crate::sink::LineSink;
use crate::warning::{RunFile, RunWarning};
use cosched_core::{Decision, DecisionRecord, RngState, Sample, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

/// The format's name and version.
pub const EVENT_SCHEMA: &str = "cosched.event/1";

/// A decision with everything that it was based on. Without `decision` it asks for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_SCHEMA`].
    pub schema: String,
    /// Number of the decision within its run, from 0.
    #[serde(default)]
    pub seq: u64,
    /// Real processes, or a simulation.
    #[serde(default)]
    pub backend: Option<BackendKind>,
    /// The policy that decided.
    #[serde(default)]
    pub policy: Option<String>,
    /// The policy's parameters; their keys are the policy's own.
    #[serde(default)]
    pub params: BTreeMap<String, serde_json::Value>,
    /// The policy's state before it decided.
    #[serde(default)]
    pub policy_state: Option<serde_json::Value>,
    /// The generator's position before the policy decided.
    #[serde(default)]
    pub rng: Option<RngState>,
    /// The policy's own decision could not be carried out, and round-robin stood in.
    #[serde(default)]
    pub stood_in: bool,
    /// What the policy saw.
    pub snapshot: Snapshot,
    /// The samples that were new in the snapshot.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// The decision; `None` if the event asks for one.
    #[serde(default)]
    pub decision: Option<Decision>,
}

/// An [`Event`] with borrowed fields, in the same order.
#[derive(Serialize)]
struct EventLine<'a> {
    schema: &'static str,
    seq: u64,
    backend: BackendKind,
    policy: &'a str,
    params: &'a BTreeMap<String, serde_json::Value>,
    policy_state: Option<&'a serde_json::Value>,
    rng: RngState,
    stood_in: bool,
    snapshot: &'a Snapshot,
    samples: &'a [Sample],
    decision: &'a Decision,
}

/// An event that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The file can't be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The text is no event, or it contradicts itself.
    #[error("{file}, {problem}")]
    Json {
        /// The file, as the caller named it.
        file: String,
        /// The place, what is wrong, and what was expected.
        problem: JsonError,
    },
    /// There is no event in the file.
    #[error(
        "{file}: expected an event, as in {{\"schema\": \"{EVENT_SCHEMA}\", \"snapshot\": {{...}}}}; found nothing"
    )]
    Empty {
        /// The file, as the caller named it.
        file: String,
    },
}

/// Writes events.
///
/// A write error ends the writing and is kept for [`EventWriter::take_warning`].
#[derive(Debug)]
pub struct EventWriter<W> {
    sink: LineSink<W>,
    backend: BackendKind,
    policy: String,
    params: BTreeMap<String, serde_json::Value>,
    seq: u64,
    buffer: Vec<u8>,
}

impl<W: Write> EventWriter<W> {
    /// A writer for the decisions of a policy with these parameters.
    pub fn new(
        out: W,
        backend: BackendKind,
        policy: &str,
        params: BTreeMap<String, serde_json::Value>,
    ) -> EventWriter<W> {
        let (sink, policy) = (LineSink::new(out, RunFile::Events), policy.to_owned());
        EventWriter { sink, backend, policy, params, seq: 0, buffer: vec![] }
    }

    /// Whether decisions are still written.
    pub fn is_open(&self) -> bool {
        self.sink.is_open()
    }

    /// Writes a decision.
    pub fn decided(&mut self, record: &DecisionRecord<'_>) {
        let seq = self.seq;
        self.seq += 1;
        if !self.sink.is_open() {
            return;
        }
        let line = EventLine {
            schema: EVENT_SCHEMA,
            seq,
            backend: self.backend,
            policy: &self.policy,
            params: &self.params,
            policy_state: record.policy_state,
            rng: record.rng,
            stood_in: record.stood_in,
            snapshot: record.snapshot,
            samples: record.samples,
            decision: record.decision,
        };
        self.buffer.clear();
        // Plain data with text keys: it can't fail to serialise.
        if serde_json::to_writer(&mut self.buffer, &line).is_ok() {
            self.buffer.push(b'\n');
            self.sink.write(&self.buffer);
        }
    }

    /// The warning that no more events are written; returned once.
    pub fn take_warning(&mut self) -> Option<RunWarning> {
        self.sink.take_warning()
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.sink.into_inner()
    }
}

impl Event {
    /// The event as one line of JSON, without its line end.
    pub fn to_json(&self) -> String {
        // Plain data with text keys: it can't fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads one event that begins in line `line` of its file.
    fn parse(text: &str, line: usize) -> Result<Event, JsonError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            schema: serde_json::Value,
        }
        let event = json::parse::<Event>(text, line);
        if !event.as_ref().is_ok_and(|event| event.schema == EVENT_SCHEMA) {
            // A wrong schema makes a better error message than the first key that does not fit.
            let head: Head = json::parse(text, line)?;
            if head.schema != EVENT_SCHEMA {
                let found = if head.schema.is_null() { "nothing".to_owned() } else { head.schema.to_string() };
                return Err(JsonError::at(line, "schema", format!("expected \"{EVENT_SCHEMA}\"; found {found}")));
            }
        }
        let event = event?;
        match contradiction(&event.snapshot) {
            Some((key, problem)) => Err(JsonError::at(line, &format!("snapshot.{key}"), problem)),
            None => Ok(event),
        }
    }
}

/// Checks what policies rely on and the types do not guarantee. Returns the key and the problem of the first thing that
/// does not hold.
fn contradiction(snapshot: &Snapshot) -> Option<(String, String)> {
    let machine = &snapshot.machine;
    if let Err(error) = machine.validate() {
        return Some(("machine".to_owned(), error.to_string()));
    }
    for (ix, task) in snapshot.tasks.iter().enumerate() {
        let at = |key: &str, problem: String| Some((format!("tasks[{ix}].{key}"), problem));
        if ix > 0 && snapshot.tasks[ix - 1].id >= task.id {
            let (before, id) = (snapshot.tasks[ix - 1].id.0, task.id.0);
            let expected = "expected tasks in ascending order of their numbers";
            return at("id", format!("{expected}; found {id} after {before}, sort them by `id`"));
        }
        if task.cpus == 0 {
            return at("cpus", "expected at least 1".to_owned());
        }
        if let Some(running) = &task.running
            && let Some(cpu) = running.placement.cpus().iter().find(|&cpu| machine.index_of(cpu).is_none())
        {
            return at("running.placement", format!("expected CPUs of the machine; found CPU {}", cpu.0));
        }
    }
    None
}

/// Reads events one by one, in constant memory; each may be on one line or on several.
///
/// A last event that is cut off ends the reading, and [`EventReader::cut_off`] says so.
#[derive(Debug)]
pub struct EventReader<R> {
    file: String,
    input: R,
    line: usize,
    cut_off: bool,
    done: bool,
}

impl<R: BufRead> EventReader<R> {
    /// Reads from `input`; `file` names it in errors.
    pub fn new(input: R, file: &str) -> EventReader<R> {
        EventReader { file: file.to_owned(), input, line: 0, cut_off: false, done: false }
    }

    /// Whether the last event was cut off and left out; known once the reading has ended.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    fn next_event(&mut self) -> Result<Option<Event>, EventError> {
        let (mut text, mut first, mut depth) = (String::new(), 0, Depth::default());
        loop {
            let mut bytes = Vec::new();
            match self.input.read_until(b'\n', &mut bytes) {
                Ok(0) if text.is_empty() => return Ok(None),
                Ok(0) => {
                    self.cut_off = true;
                    return match self.line {
                        // The file has no other event: report what is wrong instead of leaving the event out.
                        _ if first == 1 => self.parse(&text, first).map(Some),
                        _ => Ok(None),
                    };
                }
                Ok(_) => self.line += 1,
                Err(error) => return Err(EventError::Io { file: self.file.clone(), error }),
            }
            let line = String::from_utf8_lossy(&bytes);
            if text.is_empty() {
                if line.trim().is_empty() {
                    continue;
                }
                first = self.line;
            }
            text.push_str(&line);
            if depth.feed(&line) {
                return self.parse(&text, first).map(Some);
            }
        }
    }

    fn parse(&self, text: &str, line: usize) -> Result<Event, EventError> {
        Event::parse(text, line).map_err(|problem| EventError::Json { file: self.file.clone(), problem })
    }
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<Event, EventError>;

    /// The next event; after an error, nothing.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let event = self.next_event();
        self.done = !matches!(event, Ok(Some(_)));
        event.transpose()
    }
}

/// Reads the only event of a file, or the one with number `seq`; `file` names it in errors.
///
/// # Errors
/// The file can't be read, or has no such event. The error names file, line, key and what was expected.
pub fn read_event(input: impl BufRead, file: &str, seq: Option<u64>) -> Result<Event, EventError> {
    for event in EventReader::new(input, file) {
        let event = event?;
        if seq.is_none_or(|seq| event.seq == seq) {
            return Ok(event);
        }
    }
    match seq {
        None => Err(EventError::Empty { file: file.to_owned() }),
        Some(seq) => {
            let problem = JsonError::at(0, "seq", format!("expected an event with number {seq}; found none"));
            Err(EventError::Json { file: file.to_owned(), problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FullDisk, decision, samples, snapshot};
    use cosched_core::{Nanos, Rate, Reading};
    use proptest::prelude::*;

    fn write<W: Write>(writer: &mut EventWriter<W>, snapshot: &Snapshot) {
        let samples = samples(snapshot.now);
        let state = serde_json::json!({"queue": [2, 1], "lag": 0.1});
        let record = DecisionRecord {
            snapshot,
            samples: &samples,
            policy_state: Some(&state),
            rng: RngState { seed: u64::MAX, position: 17 },
            decision: &decision(),
            stood_in: false,
        };
        writer.decided(&record);
    }

    fn params() -> BTreeMap<String, serde_json::Value> {
        [("lead".to_owned(), 1.0.into()), ("quantum_ms".to_owned(), 200.into())].into()
    }

    fn text(n: u64) -> String {
        let mut writer = EventWriter::new(Vec::new(), BackendKind::Host, "perf-fair", params());
        for ix in 0..n {
            write(&mut writer, &Snapshot { now: Nanos::from_ms(400 + 200 * ix), ..snapshot() });
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
        let events: Vec<Event> = EventReader::new(text.as_bytes(), "e").map(Result::unwrap).collect();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(events[0].snapshot, snapshot());
        assert_eq!(events[0].decision, Some(decision()));
        assert_eq!(events[0].samples, samples(Nanos::from_ms(400)));
        assert_eq!(events[0].params, params());
        let again: String = events.iter().map(|event| event.to_json() + "\n").collect();
        assert_eq!(again, text);
    }

    #[test]
    fn indented_events_are_read_too() {
        let event = read_event(text(1).as_bytes(), "e", None).unwrap();
        let pretty = serde_json::to_string_pretty(&event).unwrap();
        let both = format!("\n{pretty}\n\n{}\n{pretty}", event.to_json());
        assert_eq!(EventReader::new(both.as_bytes(), "e").map(Result::unwrap).collect::<Vec<_>>(), vec![event; 3]);
    }

    #[test]
    fn by_number() {
        assert_eq!(read_event(text(3).as_bytes(), "e", Some(2)).unwrap().snapshot.now, Nanos::from_ms(800));
        let error = read_event(text(3).as_bytes(), "e", Some(9)).unwrap_err().to_string();
        assert!(error.contains("expected an event with number 9"), "{error}");
    }

    #[test]
    fn errors_name_file_line_key_and_what_was_expected() {
        let pretty = serde_json::to_string_pretty(&read_event(text(1).as_bytes(), "e", None).unwrap()).unwrap();
        let check = |text: &str, expected: &str| {
            let error = read_event(text.as_bytes(), "e.json", None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let with = |from: &str, to: &str| {
            assert!(pretty.contains(from), "{from}");
            pretty.replacen(from, to, 1)
        };
        check("", "e.json: expected an event, as in {\"schema\": \"cosched.event/1\", \"snapshot\": {...}}");
        check("{}", "e.json, line 1, key `schema`: expected \"cosched.event/1\"; found nothing");
        check(&with("event/1", "event/2"), "key `schema`: expected \"cosched.event/1\"; found \"cosched.event/2\"");
        check("{\"schema\":\"cosched.event/1\"}", "e.json, line 1: missing field `snapshot`");
        check(
            &with("\"nice\": 0", "\"nice\": \"low\""),
            ", key `snapshot.tasks[0].nice`: invalid type: string \"low\", expected i8",
        );
        check(&with("\"nice\": 0,", ""), ", key `snapshot.tasks[0]`: missing field `nice`");
        check(
            &with("\"id\": 1,\n        \"name\"", "\"id\": 0,\n        \"name\""),
            "key `snapshot.tasks[1].id`: expected tasks in ascending order",
        );
        check(&with("\"core\": 1", "\"core\": 5"), "key `snapshot.machine`: CPU 1 of the machine `two cores`");
        check(
            &with("\"cpus\": 1,\n        \"allowed\"", "\"cpus\": 0,\n        \"allowed\""),
            "tasks[0].cpus`: expected at least 1",
        );
        check(
            &with("\"cpus\": \"0\",\n              \"whole", "\"cpus\": \"7\",\n              \"whole"),
            "expected CPUs of the machine; found CPU 7",
        );
        check(
            &with("\"why\": \"order\"", "\"why\": \"ordre\""),
            "key `decision.waits[0].reason.why`: unknown variant `ordre`, expected one of `order`",
        );
        check(&pretty[..pretty.len() / 2], "EOF");
        let line = pretty.lines().position(|line| line.contains("\"triggers\"")).unwrap() + 1;
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
        let mut writer = EventWriter::new(FullDisk::after(5_000), BackendKind::Host, "fifo", BTreeMap::new());
        for _ in 0..4 {
            write(&mut writer, &snapshot());
        }
        assert!(writer.take_warning().unwrap().text().starts_with("the events file is written no further"));
        assert_eq!(writer.take_warning(), None);
        let written = writer.into_inner().written;
        assert_eq!(EventReader::new(written.as_slice(), "e").map(Result::unwrap).count(), 1);
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
            let mut writer = EventWriter::new(Vec::new(), BackendKind::Host, "fifo", BTreeMap::new());
            write(&mut writer, &snapshot);
            let text = String::from_utf8(writer.into_inner()).unwrap();
            let event = read_event(text.as_bytes(), "e", None).unwrap();
            for (task, back) in snapshot.tasks.iter().zip(&event.snapshot.tasks) {
                let bits = |reading: Reading<f64>| reading.value().map(f64::to_bits);
                prop_assert_eq!(bits(task.estimates.progress), bits(back.estimates.progress));
                prop_assert_eq!(bits(task.estimates.ipc), bits(back.estimates.ipc));
            }
            prop_assert_eq!(&event.snapshot, &snapshot);
            prop_assert_eq!(event.to_json() + "\n", text);
        }
    }
}
