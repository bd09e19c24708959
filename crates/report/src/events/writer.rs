//! Writing events while a run goes on.

use super::event::EVENT_SCHEMA;
use crate::sink::LineSink;
use crate::source::BackendKind;
use crate::warning::{RunFile, RunWarning};
use cosched_core::{Absence, Decision, DecisionRecord, RngState, Sample, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// What all events of a run have in common.
#[derive(Debug, Serialize)]
pub struct EventContext {
    /// Real processes, or a simulation.
    pub backend: BackendKind,
    /// The policy that decides.
    pub policy: String,
    /// Its parameters.
    pub params: BTreeMap<String, serde_json::Value>,
    /// The machine's own values for the parameters of all policies.
    pub machine_params: BTreeMap<String, String>,
    /// The codes of the capabilities that the run lacks, each with its reason.
    pub missing: BTreeMap<String, Absence>,
}

/// An [`EventRecord`] with borrowed fields, in the same order.
#[derive(Serialize)]
struct EventLine<'a> {
    schema: &'static str,
    seq: u64,
    #[serde(flatten)]
    context: &'a EventContext,
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
    context: EventContext,
    seq: u64,
    buffer: Vec<u8>,
}

impl<W: Write> EventWriter<W> {
    /// A writer for the decisions of a run.
    pub fn new(out: W, context: EventContext) -> EventWriter<W> {
        EventWriter {
            sink: LineSink::new(out, RunFile::Events),
            context,
            seq: 0,
            buffer: vec![],
        }
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
            context: &self.context,
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
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.sink.into_inner()
    }
}
