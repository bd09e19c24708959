//! A policy in a process of its own: `cosched.policy/1`. `docs/schema/policy-line.json` has the lines.

use crate::process::{Command, ForeignError, ForeignProcess, PATIENCE};
use cosched_core::{
    Capability, Change, Decision, Importance, InvalidDecision, Need, ParamKind, ParamSpec, Params,
    Policy, PolicyEntry, PolicyFailure, Rng, Snapshot, TaskId, Wait, WaitReason,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const SCHEMA: &str = "cosched.policy/1";

/// Time for an answer, unless the process or the user says otherwise.
const ANSWER_WITHIN_S: f64 = 0.05;

/// So many late answers in a row end the process: it burns a CPU that jobs could use.
const MOST_LATE: u32 = 10;

/// So many decisions in a row may run nothing while tasks wait: a policy may measure an idle machine, or forget to start tasks.
const MOST_IDLE: u32 = 50;

/// What happens when a policy does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPatience {
    /// In a real run the time is limited: round-robin decides instead.
    Limited,
    /// In a simulation a late answer would make the result depend on this machine's speed. So it is waited for, and the run
    /// fails if nothing comes for a minute.
    Simulated,
}

#[derive(Serialize)]
struct Describe {
    schema: &'static str,
    describe: Nothing,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Begin<'a> {
    schema: &'static str,
    begin: Beginning<'a>,
}

#[derive(Serialize)]
struct Beginning<'a> {
    seed: u64,
    params: &'a Params,
}

#[derive(Serialize)]
struct Question<'a> {
    seq: u64,
    snapshot: &'a Snapshot,
}

#[derive(Serialize)]
struct Refusal {
    seq: u64,
    refused: String,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an answer, as {\"seq\": 0, \"decision\": {\"changes\": []}}"
)]
struct Answer {
    seq: u64,
    decision: Decision,
}

/// What a process says of its policy.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a description, as {\"name\": \"mine\"}"
)]
struct Description {
    name: String,
    #[serde(default)]
    about: Option<String>,
    /// Codes of capabilities without which it can't run.
    #[serde(default)]
    needs: BTreeSet<String>,
    /// Codes of capabilities that it can do without, each with what is lost then.
    #[serde(default)]
    wants: BTreeMap<String, String>,
    #[serde(default)]
    params: BTreeMap<String, Parameter>,
    #[serde(default)]
    answer_within_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, as {\"default\": 2}, or words, as {\"words\": [\"a\", \"b\"]}"
)]
enum Parameter {
    Number {
        default: f64,
        #[serde(default)]
        min: Option<f64>,
        #[serde(default)]
        max: Option<f64>,
        #[serde(default)]
        about: String,
    },
    Word {
        /// The first is the default.
        words: Vec<String>,
        #[serde(default)]
        about: String,
    },
}

/// Asks a command for the policy behind it. The entry lives as long as this process.
///
/// # Errors
/// The command can't be started, or what it says is no description.
pub fn describe(
    command: &Command,
    patience: PolicyPatience,
) -> Result<&'static PolicyEntry, ForeignError> {
    let mut process = ForeignProcess::start(command)?;
    let question = Describe {
        schema: SCHEMA,
        describe: Nothing {},
    };
    let description: Description = process.ask(&question, PATIENCE)?;
    let needs = needs(&description).map_err(|problem| process.wrong(problem))?;
    let params = params(&description).map_err(|problem| process.wrong(problem))?;
    let is_taken = cosched_core::find_policy(&description.name).is_some();
    if description.name.is_empty() || is_taken {
        let problem = format!("name: `{}` is the name of another policy", description.name);
        return Err(process.wrong(problem));
    }
    let time_shares = needs
        .iter()
        .any(|need| need.capability == Capability::Freeze);
    let command = command.clone();
    let entry = PolicyEntry {
        name: kept(description.name),
        gist: kept(description.about.unwrap_or_else(|| command.to_string())),
        source: "a process",
        for_research: false,
        time_shares,
        kernel_shares: false,
        weighs: false,
        can_hand_over: false,
        for_nodes: false,
        params,
        needs: Box::leak(Box::new(move |_: &Params| needs.clone())),
        build: Box::leak(Box::new(move |params: &Params| -> Box<dyn Policy> {
            Box::new(ForeignPolicy::new(
                command.clone(),
                params.clone(),
                patience,
            ))
        })),
    };
    Ok(Box::leak(Box::new(entry)))
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn needs(description: &Description) -> Result<Vec<Need>, String> {
    let mut needs = Vec::new();
    for code in &description.needs {
        needs.push(Need {
            capability: capability(code)?,
            importance: Importance::Required,
        });
    }
    for (code, without) in &description.wants {
        needs.push(Need {
            capability: capability(code)?,
            importance: Importance::Wanted(kept(without.clone())),
        });
    }
    Ok(needs)
}

fn capability(code: &str) -> Result<Capability, String> {
    Capability::of_code(code).ok_or_else(|| format!("there is no capability `{code}`"))
}

/// The parameters, with those that every policy has.
fn params(description: &Description) -> Result<&'static [ParamSpec], String> {
    let within_s = match description.answer_within_ns {
        Some(ns) => ns as f64 / 1e9,
        None => ANSWER_WITHIN_S,
    };
    let mut all = vec![
        number(
            "answer_within_s",
            within_s,
            (1e-4, 3600.0),
            "time for a decision in a real run; round-robin decides if it is over",
        ),
        number("quantum_s", 0.2, (1e-3, 3600.0), "length of a quantum"),
    ];
    for (name, parameter) in &description.params {
        let spec = match parameter {
            Parameter::Number {
                default,
                min,
                max,
                about,
            } => {
                let range = (min.unwrap_or(f64::MIN), max.unwrap_or(f64::MAX));
                number(name, *default, range, about)
            }
            Parameter::Word { words, about } => ParamSpec {
                name: kept(name.clone()),
                kind: ParamKind::Choice(kept_words(words)),
                about: kept(about.clone()),
            },
        };
        match spec.kind {
            ParamKind::Number { default, min, max } if !(min <= default && default <= max) => {
                return Err(format!(
                    "params.{name}: {default} is not from {min} to {max}"
                ));
            }
            ParamKind::Choice([]) => return Err(format!("params.{name}: it has no words")),
            _ => {}
        }
        all.retain(|other| other.name != name);
        all.push(spec);
    }
    Ok(Box::leak(all.into_boxed_slice()))
}

fn number(name: &str, default: f64, (min, max): (f64, f64), about: &str) -> ParamSpec {
    ParamSpec {
        name: kept(name.to_owned()),
        kind: ParamKind::Number { default, min, max },
        about: kept(about.to_owned()),
    }
}

fn kept_words(words: &[String]) -> &'static [&'static str] {
    let words: Vec<&'static str> = words.iter().cloned().map(kept).collect();
    Box::leak(words.into_boxed_slice())
}

/// A policy behind a process.
struct ForeignPolicy {
    command: Command,
    params: Params,
    patience: PolicyPatience,
    answer_within: Duration,
    process: Option<ForeignProcess>,
    /// Why there is no process any more.
    gone: Option<String>,
    /// The number of the next question.
    seq: u64,
    /// Late answers, and decisions that run nothing, in a row.
    late: u32,
    idle: u32,
}

impl ForeignPolicy {
    fn new(command: Command, params: Params, patience: PolicyPatience) -> ForeignPolicy {
        let within = Duration::try_from_secs_f64(params.number("answer_within_s"));
        ForeignPolicy {
            command,
            params,
            patience,
            answer_within: within.unwrap_or(PATIENCE),
            process: None,
            gone: None,
            seq: 0,
            late: 0,
            idle: 0,
        }
    }

    /// The process, which is started for the first question.
    fn process(&mut self, seed: u64) -> Result<&mut ForeignProcess, ForeignError> {
        if self.process.is_none() {
            let mut process = ForeignProcess::start(&self.command)?;
            process.tell(&Begin {
                schema: SCHEMA,
                begin: Beginning {
                    seed,
                    params: &self.params,
                },
            });
            self.process = Some(process);
        }
        self.process.as_mut().ok_or_else(|| ForeignError::Ended {
            command: self.command.clone(),
        })
    }

    /// Notes whether a decision that leaves these tasks waiting runs none though some are ready. After many of these in a row
    /// the policy has failed.
    fn note_idle(&mut self, snapshot: &Snapshot, waiting: &[TaskId]) -> Result<(), PolicyFailure> {
        let some_are_ready = snapshot.tasks.iter().any(|task| !task.asleep);
        let is_idle = some_are_ready && waiting.len() == snapshot.tasks.len();
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        if self.idle < MOST_IDLE {
            return Ok(());
        }
        self.idle = 0;
        let (command, waiting) = (&self.command, waiting.len());
        Err(PolicyFailure::NoAnswer(format!(
            "{command} ran nothing in {MOST_IDLE} decisions, and {waiting} jobs wait"
        )))
    }

    fn ask(&mut self, snapshot: &Snapshot, seed: u64) -> Result<Decision, ForeignError> {
        let seq = self.seq;
        self.seq += 1;
        let within = match self.patience {
            PolicyPatience::Limited if seq > 0 => self.answer_within,
            _ => PATIENCE,
        };
        let since = Instant::now();
        let process = self.process(seed)?;
        process.tell(&Question { seq, snapshot });
        loop {
            let answer: Answer = process.answer(since, within)?;
            if answer.seq == seq {
                return Ok(answer.decision);
            }
            // The answer to an earlier question was late.
            if answer.seq > seq {
                let problem = format_args!("seq: {} was not asked yet", answer.seq);
                return Err(process.wrong(problem));
            }
        }
    }
}

impl Policy for ForeignPolicy {
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision {
        let decision = self.try_decide(snapshot, rng);
        decision.unwrap_or_else(|_| cosched_core::stand_in(snapshot))
    }

    fn try_decide(
        &mut self,
        snapshot: &Snapshot,
        rng: &mut Rng,
    ) -> Result<Decision, PolicyFailure> {
        if let Some(why) = &self.gone {
            return Err(PolicyFailure::NoAnswer(why.clone()));
        }
        let error = match self.ask(snapshot, rng.state().seed) {
            Ok(decision) => {
                self.late = 0;
                let waiting = waiting(snapshot, &decision);
                self.note_idle(snapshot, &waiting)?;
                return Ok(explained(waiting, decision));
            }
            Err(error) => error,
        };
        let why = error.to_string();
        match error {
            ForeignError::Late { .. } if self.patience == PolicyPatience::Simulated => {
                return Err(PolicyFailure::Hangs(why));
            }
            ForeignError::Late { .. } => {
                self.late += 1;
                if self.late >= MOST_LATE {
                    self.gone = Some(why.clone());
                    self.process = None;
                }
            }
            ForeignError::Line { .. } | ForeignError::Reported { .. } => {}
            ForeignError::Start { .. } | ForeignError::Ended { .. } => {
                self.gone = Some(why.clone());
                self.process = None;
            }
        }
        Err(PolicyFailure::NoAnswer(why))
    }

    fn refused(&mut self, why: &InvalidDecision) {
        let refusal = Refusal {
            seq: self.seq.saturating_sub(1),
            refused: why.to_string(),
        };
        if let Some(process) = &mut self.process {
            process.tell(&refusal);
        }
    }

    /// Its state is its own. A replay goes by its recorded decisions.
    fn save(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn load(&mut self, _state: &serde_json::Value) -> Result<(), serde_json::Error> {
        Ok(())
    }
}

/// The tasks that wait after a decision.
fn waiting(snapshot: &Snapshot, decision: &Decision) -> Vec<TaskId> {
    let mut changed: BTreeMap<TaskId, bool> = BTreeMap::new();
    for change in &decision.changes {
        changed.insert(change.task(), matches!(change, Change::Place { .. }));
    }
    let mut waiting = Vec::new();
    for task in &snapshot.tasks {
        let runs = changed.get(&task.id).copied();
        if !runs.unwrap_or(task.running.is_some()) {
            waiting.push(task.id);
        }
    }
    waiting
}

/// Gives each waiting task without a reason the plainest one: others come first.
fn explained(waiting: Vec<TaskId>, mut decision: Decision) -> Decision {
    let explained: BTreeSet<TaskId> = decision.waits.iter().map(|wait| wait.task).collect();
    let mut ahead = explained.len() as u32;
    for task in waiting {
        if !explained.contains(&task) {
            let reason = WaitReason::Order { ahead };
            decision.waits.push(Wait { task, reason });
            ahead += 1;
        }
    }
    decision
}
