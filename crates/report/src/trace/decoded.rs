//! Reads a trace back and checks it, for tests. It shares nothing with what writes traces: the numbers of the fields are
//! written down here once more, and each field must have the type that Perfetto's definitions give it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A value of the wire format.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

type Fields<'a> = Vec<(u64, Wire<'a>)>;

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            return Err("a number has more than 64 bits".to_owned());
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number does not end".to_owned())
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(n).ok_or("a field is cut off")?;
    *bytes = rest;
    Ok(taken)
}

fn fields(mut bytes: &[u8]) -> Result<Fields<'_>, String> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut bytes)?),
            1 => {
                let eight = take(&mut bytes, 8)?.try_into().map_err(|_| "eight bytes")?;
                Wire::Double(f64::from_le_bytes(eight))
            }
            2 => {
                let n = usize::try_from(varint(&mut bytes)?).map_err(|error| error.to_string())?;
                Wire::Bytes(take(&mut bytes, n)?)
            }
            other => return Err(format!("wire type {other}")),
        };
        fields.push((tag >> 3, value));
    }
    Ok(fields)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// The description of a track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub(crate) uuid: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) rank: u64,
    pub(crate) name: String,
    pub(crate) about: String,
    /// The unit of a counter.
    pub(crate) unit: Option<String>,
    pub(crate) merged: bool,
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    End,
    Instant,
    Counter,
}

/// An event, with its texts.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) sequence: u64,
    pub(crate) at: u64,
    pub(crate) track: u64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) args: Vec<(String, String)>,
    pub(crate) value: Option<f64>,
}

/// A whole trace in the order of its packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) tracks: BTreeMap<u64, Track>,
    pub(crate) events: Vec<Event>,
}

/// The texts of a sequence, by their field in `InternedData` and their number.
type Interned = BTreeMap<(u64, u64), String>;

/// Decodes a trace. Every packet must be one that Perfetto takes, and every field known.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let mut decoded = Decoded::default();
    let mut interned: BTreeMap<u64, Interned> = BTreeMap::new();
    for (nth, (field, value)) in fields(bytes)?.into_iter().enumerate() {
        let (1, Wire::Bytes(packet)) = (field, value) else {
            return Err(format!("{nth}: {field} is no packet"));
        };
        packet_of(packet, &mut decoded, &mut interned)
            .map_err(|problem| format!("packet {nth}: {problem}"))?;
    }
    Ok(decoded)
}

fn packet_of(
    bytes: &[u8],
    decoded: &mut Decoded,
    interned: &mut BTreeMap<u64, Interned>,
) -> Result<(), String> {
    let (mut at, mut sequence, mut flags, mut event, mut new) = (None, None, 0, None, None);
    for field in fields(bytes)? {
        match field {
            (8, Wire::Varint(value)) => at = Some(value),
            (10, Wire::Varint(value)) => sequence = Some(value),
            (13, Wire::Varint(value)) => flags = value,
            (12, Wire::Bytes(bytes)) => new = Some(bytes),
            (11, Wire::Bytes(bytes)) => event = Some(bytes),
            (60, Wire::Bytes(bytes)) => {
                let track = track_of(bytes)?;
                if decoded.tracks.contains_key(&track.uuid) {
                    return Err(format!("track {} is described twice", track.uuid));
                }
                decoded.tracks.insert(track.uuid, track);
            }
            other => return Err(format!("unknown field {other:?}")),
        }
    }
    let Some(event) = event else {
        return if at.is_none() {
            Ok(())
        } else {
            Err("a packet of nothing".to_owned())
        };
    };
    let sequence = sequence.filter(|id| *id > 0).ok_or("no sequence")?;
    // A reader leaves out packets that need texts before it knows of a beginning.
    if flags & 1 != 0 {
        interned.insert(sequence, Interned::new());
    } else if flags & 2 == 0 || !interned.contains_key(&sequence) {
        return Err(format!("flags {flags} in sequence {sequence}"));
    }
    let texts = interned.entry(sequence).or_default();
    for (field, value) in fields(new.unwrap_or_default())? {
        let (1 | 2 | 3 | 29, Wire::Bytes(entry)) = (field, value) else {
            return Err(format!("texts of {field}"));
        };
        let entry = fields(entry)?;
        let [(1, Wire::Varint(number)), (2, Wire::Bytes(bytes))] = entry[..] else {
            return Err(format!("an entry of {entry:?}"));
        };
        if number == 0 || texts.insert((field, number), text(bytes)?).is_some() {
            return Err(format!("text {number} of {field} again"));
        }
    }
    let event = event_of(event, sequence, at.ok_or("no time")?, texts)?;
    decoded.events.push(event);
    Ok(())
}

fn track_of(bytes: &[u8]) -> Result<Track, String> {
    let mut track = Track::default();
    for field in fields(bytes)? {
        match field {
            (1, Wire::Varint(uuid)) => track.uuid = uuid,
            (2, Wire::Bytes(bytes)) => track.name = text(bytes)?,
            (5, Wire::Varint(uuid)) => track.parent = Some(uuid),
            (8, Wire::Bytes(bytes)) => {
                for field in fields(bytes)? {
                    match field {
                        (6, Wire::Bytes(bytes)) => track.unit = Some(text(bytes)?),
                        (7, Wire::Bytes(bytes)) => drop(text(bytes)?),
                        other => return Err(format!("counter with {other:?}")),
                    }
                }
            }
            (11, Wire::Varint(3)) => {}
            (12, Wire::Varint(rank)) if i32::try_from(rank).is_ok() => track.rank = rank,
            (14, Wire::Bytes(bytes)) => track.about = text(bytes)?,
            (15, Wire::Varint(how @ (1 | 2))) => track.merged = how == 1,
            other => return Err(format!("track with {other:?}")),
        }
    }
    if track.uuid == 0 || track.name.is_empty() {
        Err(format!("a track like {track:?}"))
    } else {
        Ok(track)
    }
}

fn event_of(bytes: &[u8], sequence: u64, at: u64, texts: &Interned) -> Result<Event, String> {
    let known = |field: u64, number: u64| {
        texts
            .get(&(field, number))
            .cloned()
            .ok_or_else(|| format!("text {number} of {field} is not known"))
    };
    let (mut kind, mut track, mut value) = (None, None, None);
    let (mut name, mut category, mut args) = (String::new(), String::new(), Vec::new());
    for field in fields(bytes)? {
        match field {
            (9, Wire::Varint(1)) => kind = Some(Kind::Begin),
            (9, Wire::Varint(2)) => kind = Some(Kind::End),
            (9, Wire::Varint(3)) => kind = Some(Kind::Instant),
            (9, Wire::Varint(4)) => kind = Some(Kind::Counter),
            (11, Wire::Varint(uuid)) => track = Some(uuid),
            (3, Wire::Varint(number)) => category = known(1, number)?,
            (22, Wire::Bytes(bytes)) => category = text(bytes)?,
            (10, Wire::Varint(number)) => name = known(2, number)?,
            (23, Wire::Bytes(bytes)) => name = text(bytes)?,
            (30, Wire::Varint(count)) => value = Some(count as i64 as f64),
            (44, Wire::Double(count)) => value = Some(count),
            (4, Wire::Bytes(bytes)) => args.push(arg_of(bytes, &known)?),
            other => return Err(format!("event with {other:?}")),
        }
    }
    let (kind, track) = (kind.ok_or("no type")?, track.ok_or("no track")?);
    Ok(Event {
        sequence,
        at,
        track,
        kind,
        name,
        category,
        args,
        value,
    })
}

fn arg_of(
    bytes: &[u8],
    known: &impl Fn(u64, u64) -> Result<String, String>,
) -> Result<(String, String), String> {
    let [name, value] = fields(bytes)?[..] else {
        return Err("a value without a name".to_owned());
    };
    let name = match name {
        (1, Wire::Varint(number)) => known(3, number)?,
        (10, Wire::Bytes(bytes)) => text(bytes)?,
        other => return Err(format!("a name like {other:?}")),
    };
    let value = match value {
        (2, Wire::Varint(flag @ (0 | 1))) => (flag == 1).to_string(),
        (3, Wire::Varint(whole)) => whole.to_string(),
        (4, Wire::Varint(signed)) => (signed as i64).to_string(),
        (5, Wire::Double(number)) => number.to_string(),
        (6, Wire::Bytes(bytes)) => text(bytes)?,
        (17, Wire::Varint(number)) => known(29, number)?,
        other => return Err(format!("a value like {other:?}")),
    };
    Ok((name, value))
}

impl Decoded {
    /// Checks what holds in every trace: the tracks of events and parents are there, times of a sequence ascend, slices
    /// begin before they end and all end, a CPU and a job have one slice at most at a time, counters have values and
    /// nothing else has.
    pub(crate) fn check(&self) -> Result<(), String> {
        for track in self.tracks.values() {
            let parent = track
                .parent
                .map(|uuid| self.tracks.get(&uuid).ok_or(format!("no parent {uuid}")))
                .transpose()?;
            if parent.is_some_and(|parent| parent.unit.is_some()) {
                return Err(format!("{} is below a counter", track.name));
            }
        }
        let mut siblings = BTreeSet::new();
        for track in self.tracks.values().filter(|track| !track.merged) {
            if !siblings.insert((track.parent, track.name.as_str())) {
                return Err(format!("two tracks are called {}", track.name));
            }
        }
        let mut open: BTreeMap<u64, u64> = BTreeMap::new();
        let mut times: BTreeMap<u64, u64> = BTreeMap::new();
        for (nth, event) in self.events.iter().enumerate() {
            self.check_event(event, &mut open, &mut times)
                .map_err(|problem| format!("event {nth}: {problem}"))?;
        }
        match open.first_key_value() {
            Some((track, _)) => Err(format!(
                "a slice on {} does not end",
                self.tracks[track].name
            )),
            None => Ok(()),
        }
    }

    fn check_event(
        &self,
        event: &Event,
        open: &mut BTreeMap<u64, u64>,
        times: &mut BTreeMap<u64, u64>,
    ) -> Result<(), String> {
        let track = self
            .tracks
            .get(&event.track)
            .ok_or(format!("no track {}", event.track))?;
        let last = times.insert(event.sequence, event.at).unwrap_or_default();
        if event.at < last || event.at > i64::MAX as u64 {
            return Err(format!("{} after {last} on {}", event.at, track.name));
        }
        let is_counter = event.kind == Kind::Counter;
        if is_counter != track.unit.is_some()
            || is_counter != event.value.is_some_and(f64::is_finite)
        {
            return Err(format!("{event:?} on {track:?}"));
        }
        if matches!(event.kind, Kind::Begin | Kind::Instant)
            && (event.name.is_empty() || event.category.is_empty())
        {
            return Err(format!("{event:?} has no name"));
        }
        match event.kind {
            Kind::Begin => match open.insert(event.track, event.at) {
                Some(since) => Err(format!(
                    "{} has had a slice since {since} at {}",
                    track.name, event.at
                )),
                None => Ok(()),
            },
            Kind::End => match open.remove(&event.track) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "{} has no slice to end at {}",
                    track.name, event.at
                )),
            },
            Kind::Instant | Kind::Counter => Ok(()),
        }
    }

    /// The track of that name below the track of that name.
    pub(crate) fn track(&self, parent: &str, name: &str) -> Option<&Track> {
        let is_below = |track: &&Track| {
            track
                .parent
                .and_then(|uuid| self.tracks.get(&uuid))
                .is_some_and(|above| above.name.starts_with(parent))
        };
        self.tracks
            .values()
            .filter(is_below)
            .find(|track| track.name == name)
    }

    /// The events on a track.
    pub(crate) fn on(&self, track: &Track) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.track == track.uuid)
    }

    /// The slices of a track: from, to, name and category.
    pub(crate) fn slices(&self, track: &Track) -> Vec<(u64, u64, &str, &str)> {
        let mut slices: Vec<(u64, u64, &str, &str)> = Vec::new();
        for event in self.on(track) {
            match event.kind {
                Kind::Begin => slices.push((event.at, u64::MAX, &event.name, &event.category)),
                Kind::End => slices
                    .iter_mut()
                    .rev()
                    .take(1)
                    .for_each(|slice| slice.1 = event.at),
                Kind::Instant | Kind::Counter => {}
            }
        }
        slices
    }

    /// Everything as text: the tracks, then the events of each in turn.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for track in self.tracks.values() {
            let above = track.parent.map_or(String::new(), |uuid| {
                format!("{} / ", self.tracks[&uuid].name)
            });
            let unit = track
                .unit
                .as_ref()
                .map_or(String::new(), |unit| format!(" [{unit}]"));
            let merged = if track.merged { " (merged)" } else { "" };
            let about = if track.about.is_empty() {
                String::new()
            } else {
                format!(": {}", track.about)
            };
            let _ = writeln!(out, "{above}{}{unit}{merged}{about}", track.name);
            for event in self.on(track) {
                let at = event.at as f64 / 1e6;
                let args: String = event
                    .args
                    .iter()
                    .map(|(name, value)| format!(" {name}={value}"))
                    .collect();
                let _ = match (event.kind, event.value) {
                    (Kind::Counter, Some(value)) => writeln!(out, "  {at} ms = {value}"),
                    (Kind::End, _) => writeln!(out, "  {at} ms end{args}"),
                    (kind, _) => {
                        writeln!(
                            out,
                            "  {at} ms {kind:?} `{}` ({}){args}",
                            event.name, event.category
                        )
                    }
                };
            }
        }
        out
    }
}
