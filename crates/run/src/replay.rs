//! The decisions of a recorded run as a policy: a simulation is repeated without the policy that decided, which may have been
//! a process.

use cosched_core::{
    Capability, Decision, Importance, Need, ParamKind, ParamSpec, ParamValue, Params, Policy,
    PolicyEntry, PolicyFailure, Rng, Snapshot, stand_in,
};
use cosched_report::{EventError, EventReader, EventRecord};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// What marks a file of events where the name of a policy could stand.
const MARK: &str = "events:";

/// The file behind the mark; `None` if the word has none.
pub(crate) fn file_of(word: &str) -> Option<&Path> {
    word.strip_prefix(MARK).map(Path::new)
}

/// The policy that decides as a file of events says. The entry lives as long as this process.
///
/// # Errors
/// The file can't be read, or holds no event.
pub(crate) fn policy(path: &Path) -> Result<&'static PolicyEntry, EventError> {
    let file = path.display().to_string();
    let mut first = None;
    let mut seen = Seen::default();
    for event in open(path).map_err(io_error(&file))? {
        let event = event?;
        seen.note(&event.snapshot);
        first.get_or_insert(event);
    }
    let first = first.ok_or(EventError::Empty { file: file.clone() })?;
    let name = first.policy.as_deref().unwrap_or("recorded").to_owned();
    let path = path.to_owned();
    let needs = seen.needs();
    let entry = PolicyEntry {
        name: Box::leak(name.into_boxed_str()),
        gist: "decides as a recorded run did",
        source: "events",
        for_research: false,
        time_shares: seen.time_shares,
        kernel_shares: false,
        weighs: false,
        can_hand_over: false,
        for_nodes: false,
        params: Box::leak(params(&first.params).into_boxed_slice()),
        needs: Box::leak(Box::new(move |_: &Params| needs.clone())),
        build: Box::leak(Box::new(move |_: &Params| -> Box<dyn Policy> {
            Box::new(Replay::new(&path))
        })),
    };
    Ok(Box::leak(Box::new(entry)))
}

fn open(path: &Path) -> io::Result<EventReader<BufReader<File>>> {
    let file = BufReader::new(File::open(path)?);
    Ok(EventReader::new(file, &path.display().to_string()))
}

fn io_error(file: &str) -> impl Fn(io::Error) -> EventError {
    move |error| EventError::Io {
        file: file.to_owned(),
        error,
    }
}

/// What the snapshots of a run show of its policy.
#[derive(Default)]
struct Seen {
    time_shares: bool,
    has_traffic: bool,
}

impl Seen {
    fn note(&mut self, snapshot: &Snapshot) {
        self.time_shares |= snapshot.tasks.len() > snapshot.machine.cpus.len();
        let mut tasks = snapshot.tasks.iter();
        self.has_traffic |= tasks.any(|task| task.estimates.domain_lines.is_value());
    }

    fn needs(&self) -> Vec<Need> {
        let traffic = self.has_traffic.then_some(Capability::Traffic);
        let freeze = self.time_shares.then_some(Capability::Freeze);
        let capabilities = traffic.into_iter().chain(freeze);
        capabilities
            .map(|capability| Need {
                capability,
                importance: Importance::Required,
            })
            .collect()
    }
}

/// The recorded parameters. Each has its recorded value alone.
fn params(recorded: &BTreeMap<String, serde_json::Value>) -> Vec<ParamSpec> {
    let mut all = Vec::new();
    for (name, value) in recorded {
        let Ok(value) = serde_json::from_value::<ParamValue>(value.clone()) else {
            continue;
        };
        let kind = match value {
            ParamValue::Number(number) => ParamKind::Number {
                default: number,
                min: number,
                max: number,
            },
            ParamValue::Word(word) => {
                let word: &str = Box::leak(word.into_boxed_str());
                ParamKind::Choice(Box::leak(Box::new([word])))
            }
        };
        all.push(ParamSpec {
            name: Box::leak(name.clone().into_boxed_str()),
            kind,
            about: "as recorded",
        });
    }
    if !recorded.contains_key("quantum_s") {
        all.push(ParamSpec {
            name: "quantum_s",
            kind: ParamKind::Number {
                default: 0.2,
                min: 0.2,
                max: 0.2,
            },
            about: "not recorded",
        });
    }
    all
}

/// The decisions, one after the other.
struct Replay {
    events: Result<EventReader<BufReader<File>>, String>,
}

impl Replay {
    fn new(path: &Path) -> Replay {
        let file = path.display().to_string();
        let events = open(path).map_err(io_error(&file));
        Replay {
            events: events.map_err(|error| error.to_string()),
        }
    }

    fn next(&mut self) -> Result<EventRecord, String> {
        let events = self.events.as_mut().map_err(|error| error.clone())?;
        match events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the recorded run has no further decision".to_owned()),
        }
    }
}

impl Policy for Replay {
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision {
        let decision = self.try_decide(snapshot, rng);
        decision.unwrap_or_else(|_| stand_in(snapshot))
    }

    fn try_decide(
        &mut self,
        snapshot: &Snapshot,
        _rng: &mut Rng,
    ) -> Result<Decision, PolicyFailure> {
        let event = self.next().map_err(PolicyFailure::NoAnswer)?;
        let seq = event.seq;
        if event.snapshot != *snapshot {
            let why = format!("the recorded decision {seq} answers another situation");
            self.events = Err(why.clone());
            return Err(PolicyFailure::NoAnswer(why));
        }
        match event.decision {
            Some(decision) if !event.stood_in => Ok(decision),
            _ => Err(PolicyFailure::NoAnswer(format!(
                "round-robin made the recorded decision {seq}"
            ))),
        }
    }

    fn save(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn load(&mut self, _state: &serde_json::Value) -> Result<(), serde_json::Error> {
        Ok(())
    }
}
