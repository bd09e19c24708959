//! The packets of a Perfetto trace: descriptions of tracks, and events on them.
//!
//! The numbers of the fields are those of Perfetto's own definitions, in its repository below `protos/perfetto/trace`:
//! `trace.proto`, `trace_packet.proto`, `interned_data/interned_data.proto`, and in `track_event` the files
//! `track_descriptor.proto`, `counter_descriptor.proto`, `track_event.proto` and `debug_annotation.proto`. Fields that
//! are not used here are left out. Texts that come again and again are written once for each sequence and named by a
//! number from then on, as `interned_data.proto` defines it.

use super::wire::Message;
use cosched_core::Nanos;
use std::collections::HashMap;
use std::io::{self, Write};

/// Fields of `Trace`.
mod trace {
    pub(super) const PACKET: u32 = 1;
}

/// Fields of `TracePacket`.
mod trace_packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    /// Values of `SequenceFlags`.
    pub(super) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(super) const SEQ_NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// Fields of `TrackDescriptor`.
mod track_descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT_UUID: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const SIBLING_ORDER_RANK: u32 = 12;
    pub(super) const DESCRIPTION: u32 = 14;
    pub(super) const SIBLING_MERGE_BEHAVIOR: u32 = 15;
    /// `ChildTracksOrdering.EXPLICIT`.
    pub(super) const EXPLICIT: u64 = 3;
    /// Values of `SiblingMergeBehavior`.
    pub(super) const BY_TRACK_NAME: u64 = 1;
    pub(super) const NONE: u64 = 2;
}

/// Fields of `CounterDescriptor`.
mod counter_descriptor {
    pub(super) const UNIT_NAME: u32 = 6;
    pub(super) const Y_AXIS_SHARE_KEY: u32 = 7;
}

/// Fields of `TrackEvent`.
mod track_event {
    pub(super) const CATEGORY_IIDS: u32 = 3;
    pub(super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_IID: u32 = 10;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const CATEGORIES: u32 = 22;
    pub(super) const NAME: u32 = 23;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    /// `Type.TYPE_COUNTER`.
    pub(super) const TYPE_COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod debug_annotation {
    pub(super) const NAME_IID: u32 = 1;
    pub(super) const BOOL_VALUE: u32 = 2;
    pub(super) const UINT_VALUE: u32 = 3;
    pub(super) const INT_VALUE: u32 = 4;
    pub(super) const DOUBLE_VALUE: u32 = 5;
    pub(super) const STRING_VALUE: u32 = 6;
    pub(super) const NAME: u32 = 10;
    pub(super) const STRING_VALUE_IID: u32 = 17;
}

/// Fields of `InternedData`.
mod interned_data {
    pub(super) const EVENT_CATEGORIES: u32 = 1;
    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(super) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    /// Fields of each entry: `EventCategory`, `EventName` and `DebugAnnotationName` have `iid` and `name`,
    /// `InternedString` has `iid` and `str`, all with these numbers.
    pub(super) const IID: u32 = 1;
    pub(super) const TEXT: u32 = 2;
}

/// Texts of one kind that are kept; what comes later is written in full, so that memory stays bounded.
const KEPT: usize = 16_384;

/// Names a track in the whole trace; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Uuid(pub(super) u64);

/// How a track looks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    /// Slices and instants.
    Slices,
    /// Slices and instants, drawn in one row with those of its siblings of the same name.
    Merged,
    /// The parent of others, which are drawn in the order of their ranks.
    Group,
    /// Values, with their unit. Siblings with the same key have one scale.
    Counter {
        unit: &'static str,
        scale: Option<&'static str>,
    },
}

/// The description of a track.
#[derive(Debug)]
pub(super) struct Track<'a> {
    pub(super) uuid: Uuid,
    pub(super) parent: Option<Uuid>,
    /// Its place among its siblings.
    pub(super) rank: u32,
    pub(super) name: &'a str,
    /// What the user is told of it; empty for nothing.
    pub(super) about: &'a str,
    pub(super) look: Look,
}

/// What an event says of its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A slice begins.
    Begin,
    /// The slice that began last, and has not ended, ends.
    End,
    /// Something happened.
    Instant,
}

/// A value beside an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arg {
    Flag(bool),
    Whole(u64),
    Signed(i64),
    Number(f64),
    Text(String),
}

/// Values beside an event, by their names.
pub(super) type Args = Vec<(String, Arg)>;

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Count {
    Whole(u64),
    Number(f64),
}

/// Numbers for texts of one kind.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<String, u64>,
}

impl Texts {
    /// The number of a text, from 1; `None` if it has to be written in full. A new one goes into `new`.
    fn number(&mut self, text: &str, field: u32, new: &mut Message) -> Option<u64> {
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        if self.numbers.len() >= KEPT {
            return None;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.to_owned(), number);
        let mut entry = Message::default();
        entry.whole(interned_data::IID, number);
        entry.text(interned_data::TEXT, text);
        new.message(field, &entry);
        Some(number)
    }
}

/// Packets that are written one after the other, in ascending order of their times. A reader keeps the texts of each
/// sequence apart.
#[derive(Debug)]
pub(super) struct Sequence {
    id: u64,
    begun: bool,
    last: Nanos,
    categories: Texts,
    names: Texts,
    arg_names: Texts,
    arg_texts: Texts,
}

impl Sequence {
    /// An empty sequence; `id` is at least 1, and no two of a trace have the same.
    pub(super) fn new(id: u64) -> Sequence {
        Sequence {
            id,
            begun: false,
            last: Nanos::ZERO,
            categories: Texts::default(),
            names: Texts::default(),
            arg_names: Texts::default(),
            arg_texts: Texts::default(),
        }
    }

    fn head(&mut self, at: Nanos, packet: &mut Message) {
        self.last = self.last.max(at);
        packet.whole(trace_packet::TIMESTAMP, self.last.0);
        packet.whole(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.id);
        let cleared = if self.begun {
            0
        } else {
            trace_packet::SEQ_INCREMENTAL_STATE_CLEARED
        };
        packet.whole(
            trace_packet::SEQUENCE_FLAGS,
            cleared | trace_packet::SEQ_NEEDS_INCREMENTAL_STATE,
        );
        self.begun = true;
    }
}

/// Writes packets.
#[derive(Debug)]
pub(super) struct Packets<W> {
    out: W,
    written: u64,
    trace: Message,
    packet: Message,
    inner: Message,
    arg: Message,
    new: Message,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W) -> Packets<W> {
        let empty = Message::default;
        Packets {
            out,
            written: 0,
            trace: empty(),
            packet: empty(),
            inner: empty(),
            arg: empty(),
            new: empty(),
        }
    }

    /// How many packets were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Describes a track, before the first event on it.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        use track_descriptor as field;
        let inner = &mut self.inner;
        inner.clear();
        inner.whole(field::UUID, track.uuid.0);
        inner.text(field::NAME, track.name);
        if let Some(parent) = track.parent {
            inner.whole(field::PARENT_UUID, parent.0);
            inner.whole(field::SIBLING_ORDER_RANK, track.rank.into());
        }
        if !track.about.is_empty() {
            inner.text(field::DESCRIPTION, track.about);
        }
        match track.look {
            Look::Merged => inner.whole(field::SIBLING_MERGE_BEHAVIOR, field::BY_TRACK_NAME),
            Look::Slices | Look::Group => {
                inner.whole(field::SIBLING_MERGE_BEHAVIOR, field::NONE);
                inner.whole(field::CHILD_ORDERING, field::EXPLICIT);
            }
            Look::Counter { unit, scale } => {
                self.arg.clear();
                self.arg.text(counter_descriptor::UNIT_NAME, unit);
                if let Some(key) = scale {
                    self.arg.text(counter_descriptor::Y_AXIS_SHARE_KEY, key);
                }
                inner.message(field::COUNTER, &self.arg);
            }
        }
        self.packet.clear();
        self.packet
            .message(trace_packet::TRACK_DESCRIPTOR, &self.inner);
        self.write()
    }

    /// Writes an event. An end needs neither name nor category; both may be empty.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn event(
        &mut self,
        sequence: &mut Sequence,
        at: Nanos,
        track: Uuid,
        phase: Phase,
        (name, category): (&str, &str),
        args: &[(String, Arg)],
    ) -> io::Result<()> {
        use track_event as field;
        let (inner, new) = (&mut self.inner, &mut self.new);
        inner.clear();
        new.clear();
        // The values of `Type`: TYPE_SLICE_BEGIN, TYPE_SLICE_END and TYPE_INSTANT.
        let kind = match phase {
            Phase::Begin => 1,
            Phase::End => 2,
            Phase::Instant => 3,
        };
        inner.whole(field::TYPE, kind);
        inner.whole(field::TRACK_UUID, track.0);
        if !category.is_empty() {
            match sequence
                .categories
                .number(category, interned_data::EVENT_CATEGORIES, new)
            {
                Some(number) => inner.whole(field::CATEGORY_IIDS, number),
                None => inner.text(field::CATEGORIES, category),
            }
        }
        if !name.is_empty() {
            match sequence.names.number(name, interned_data::EVENT_NAMES, new) {
                Some(number) => inner.whole(field::NAME_IID, number),
                None => inner.text(field::NAME, name),
            }
        }
        for (name, value) in args {
            annotation(&mut self.arg, sequence, name, value, new);
            inner.message(field::DEBUG_ANNOTATIONS, &self.arg);
        }
        self.packet.clear();
        sequence.head(at, &mut self.packet);
        if !self.new.is_empty() {
            self.packet.message(trace_packet::INTERNED_DATA, &self.new);
        }
        self.packet.message(trace_packet::TRACK_EVENT, &self.inner);
        self.write()
    }

    /// Writes the value that a counter has from now on.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn count(
        &mut self,
        sequence: &mut Sequence,
        at: Nanos,
        track: Uuid,
        value: Count,
    ) -> io::Result<()> {
        use track_event as field;
        let inner = &mut self.inner;
        inner.clear();
        inner.whole(field::TYPE, field::TYPE_COUNTER);
        inner.whole(field::TRACK_UUID, track.0);
        match value {
            // The field is an `int64`.
            Count::Whole(value) => inner.whole(field::COUNTER_VALUE, value.min(i64::MAX as u64)),
            Count::Number(value) => inner.double(field::DOUBLE_COUNTER_VALUE, value),
        }
        self.packet.clear();
        sequence.head(at, &mut self.packet);
        self.packet.message(trace_packet::TRACK_EVENT, &self.inner);
        self.write()
    }

    /// Passes on what was written.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.written += 1;
        self.trace.clear();
        self.trace.message(trace::PACKET, &self.packet);
        self.out.write_all(self.trace.bytes())
    }
}

/// Puts a value beside an event into `out`.
fn annotation(
    out: &mut Message,
    sequence: &mut Sequence,
    name: &str,
    value: &Arg,
    new: &mut Message,
) {
    use debug_annotation as field;
    out.clear();
    match sequence
        .arg_names
        .number(name, interned_data::DEBUG_ANNOTATION_NAMES, new)
    {
        Some(number) => out.whole(field::NAME_IID, number),
        None => out.text(field::NAME, name),
    }
    match value {
        Arg::Flag(value) => out.whole(field::BOOL_VALUE, u64::from(*value)),
        Arg::Whole(value) => out.whole(field::UINT_VALUE, *value),
        Arg::Signed(value) => out.signed(field::INT_VALUE, *value),
        Arg::Number(value) => out.double(field::DOUBLE_VALUE, *value),
        Arg::Text(text) => match sequence.arg_texts.number(
            text,
            interned_data::DEBUG_ANNOTATION_STRING_VALUES,
            new,
        ) {
            Some(number) => out.whole(field::STRING_VALUE_IID, number),
            None => out.text(field::STRING_VALUE, text),
        },
    }
}
