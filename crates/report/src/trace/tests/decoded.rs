//! A reader and checker of traces, for tests. It shares no code with the writer of traces.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A track: a thread, or a counter of a process.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    /// The number of its thread; `None` for a counter.
    pub thread: Option<u64>,
    /// The name of its process.
    pub group: String,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Slice,
    Instant,
    Counter,
}

/// An event; times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub at: u64,
    pub to: u64,
    /// The place of its track in [`Decoded::tracks`].
    pub track: usize,
    pub kind: Kind,
    pub name: String,
    pub category: String,
    pub args: Vec<(String, String)>,
    pub value: Option<f64>,
}

/// A whole trace; the events are in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoded {
    pub tracks: Vec<Track>,
    pub events: Vec<Event>,
}

/// Decode a trace; every event must be one that Perfetto accepts.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let events = whole["traceEvents"].as_array().ok_or("no events")?;
    let mut decoded = Decoded::default();
    let mut groups = BTreeMap::new();
    for (nth, event) in events.iter().enumerate() {
        decoded
            .add(event, &mut groups)
            .ok_or(format!("event {nth}: {event}"))?;
    }
    decoded.events.sort_by_key(|event| event.at);
    Ok(decoded)
}

fn nanos(value: &Value) -> Option<u64> {
    value
        .as_f64()
        .filter(|time| *time >= 0.0)
        .map(|micros| (micros * 1e3).round() as u64)
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

fn flat(prefix: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                flat(&format!("{prefix}.{name}"), value, out);
            }
        }
        Value::String(text) => out.push((prefix[1..].to_owned(), text.clone())),
        value => out.push((prefix[1..].to_owned(), value.to_string())),
    }
}

impl Decoded {
    fn add(&mut self, event: &Value, groups: &mut BTreeMap<u64, String>) -> Option<()> {
        let (pid, name, args) = (
            event["pid"].as_u64()?,
            text(&event["name"])?,
            &event["args"],
        );
        let phase = event["ph"].as_str()?;
        match (phase, name.as_str()) {
            ("M", "process_name") => _ = groups.insert(pid, text(&args["name"])?),
            ("M", "thread_name") => self.tracks.push(Track {
                thread: Some(event["tid"].as_u64()?),
                group: groups.get(&pid)?.clone(),
                name: text(&args["name"])?,
            }),
            ("M", "process_sort_index" | "thread_sort_index") => _ = args["sort_index"].as_u64()?,
            ("X", _) => self.push(event, Kind::Slice, groups.get(&pid)?)?,
            ("i", _) if event["s"] == "t" => self.push(event, Kind::Instant, groups.get(&pid)?)?,
            ("C", _) => self.push(event, Kind::Counter, groups.get(&pid)?)?,
            _ => return None,
        }
        Some(())
    }

    fn push(&mut self, event: &Value, kind: Kind, group: &str) -> Option<()> {
        let name = text(&event["name"])?;
        let thread = event["tid"].as_u64();
        let is_counter = kind == Kind::Counter;
        let mut tracks = self.tracks.iter();
        let found = tracks.position(|track| {
            track.group == group && track.thread == thread && (!is_counter || track.name == name)
        });
        let track = match found {
            Some(track) => track,
            None if is_counter => {
                self.tracks.push(Track {
                    thread: None,
                    group: group.to_owned(),
                    name: name.clone(),
                });
                self.tracks.len() - 1
            }
            None => return None,
        };
        let mut args = Vec::new();
        if !event["args"].is_null() {
            flat("", &event["args"], &mut args);
        }
        let value = match &args[..] {
            [(_, value)] if is_counter => Some(value.parse().ok()?),
            _ if is_counter => return None,
            _ => None,
        };
        let at = nanos(&event["ts"])?;
        let length = if kind == Kind::Slice {
            nanos(&event["dur"])?
        } else {
            0
        };
        self.events.push(Event {
            at,
            to: at + length,
            track,
            kind,
            name,
            category: if is_counter {
                String::new()
            } else {
                text(&event["cat"])?
            },
            args,
            value,
        });
        Some(())
    }

    /// Check that no two tracks have the same name, and that the slices of a track do not overlap.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut names = std::collections::BTreeSet::new();
        for track in &self.tracks {
            if !names.insert((&track.group, &track.name)) {
                return Err(format!("two tracks are called {}", track.name));
            }
            let slices = self.slices(track);
            for pair in slices.windows(2) {
                if pair[0].1 > pair[1].0 {
                    return Err(format!("{pair:?} overlap on {}", track.name));
                }
            }
            if slices.iter().any(|(from, to, ..)| from >= to) {
                return Err(format!("an empty slice on {}", track.name));
            }
        }
        Ok(())
    }

    /// Return the track with this name in the group whose name begins so.
    pub(crate) fn track(&self, group: &str, name: &str) -> Option<&Track> {
        self.tracks
            .iter()
            .find(|track| track.group.starts_with(group) && track.name == name)
    }

    /// Return the events on a track.
    pub(crate) fn on(&self, track: &Track) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| {
            let other = &self.tracks[event.track];
            (&other.group, &other.name) == (&track.group, &track.name)
        })
    }

    /// Return the slices of a track: from, to, name and category.
    pub(crate) fn slices(&self, track: &Track) -> Vec<(u64, u64, &str, &str)> {
        self.on(track)
            .filter(|event| event.kind == Kind::Slice)
            .map(|event| (event.at, event.to, &*event.name, &*event.category))
            .collect()
    }

    /// Return everything as text: each track with its events.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for track in &self.tracks {
            let _ = writeln!(out, "{} / {}", track.group, track.name);
            for event in self.on(track) {
                let (at, to) = (event.at as f64 / 1e6, event.to as f64 / 1e6);
                let mut args = String::new();
                for (name, value) in &event.args {
                    let _ = write!(args, " {name}={value}");
                }
                let _ = match event.kind {
                    Kind::Counter => writeln!(out, "  {at} ms{args}"),
                    Kind::Instant => {
                        writeln!(out, "  {at} ms `{}` ({}){args}", event.name, event.category)
                    }
                    Kind::Slice => writeln!(
                        out,
                        "  {at} to {to} ms `{}` ({}){args}",
                        event.name, event.category
                    ),
                };
            }
        }
        out
    }
}
