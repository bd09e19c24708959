//! Writing events while a run goes on.

use super::event::EVENT_SCHEMA;
use crate::info::BackendKind;
use crate::sink::LineSink;
use crate::warning::{RunFile, RunWarning};
use cosched_core::{Decision, DecisionRecord, RngState, Sample, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

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
