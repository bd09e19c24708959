//! Why a job runs or waits at a time: the last decisions about it with their numbers, who had the CPUs instead, and when it
//! runs at the latest. All of it comes from the series, so it can be asked of a run that has ended as well as of one that
//! goes on.
//!
//! [`seen`]: who had which CPU, as a scheduler in the kernel saw it. [`text`]: the answer in words.

mod seen;
mod text;

use crate::series::{Mode, Row, SeriesError, SeriesReader};
use cosched_core::{CpuSet, Nanos, Purpose, Switched, TaskId, Trigger, WaitReason};
use seen::Watch;
pub use seen::{Held, Seen};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::BufRead;
pub use text::why_text;

/// The format's name and version.
pub const WHY_SCHEMA: &str = "cosched.why/1";

/// So many of the last decisions about a job are kept.
const STEPS: usize = 5;

/// What a job did at the time that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// It had not arrived.
    NotArrived {
        /// When it arrives.
        arrival: Nanos,
    },
    /// It had arrived and was not started.
    Queued {
        /// When it arrived.
        since: Nanos,
    },
    /// It was on CPUs.
    Runs {
        /// Since when it was there.
        since: Nanos,
        /// Its CPUs.
        cpus: CpuSet,
        /// Whether they were its own.
        mode: Mode,
        /// What the placement was for.
        purpose: Purpose,
    },
    /// It had been started and waited.
    Waits {
        /// Since when it had no CPU.
        since: Nanos,
    },
    /// It had ended.
    Ended {
        /// When it ended.
        at: Nanos,
        /// How, in words.
        exit: String,
    },
}

/// What a decision did with the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "did")]
pub enum Did {
    /// It was placed.
    Placed {
        /// Its CPUs from then on.
        cpus: CpuSet,
        /// Whether they were its own.
        mode: Mode,
        /// What the placement was for.
        purpose: Purpose,
        /// The CPUs that it had had last; `None` if it had never run.
        before: Option<CpuSet>,
        /// The jobs that had these CPUs until this decision, by their numbers.
        left_by: Vec<u32>,
        /// How long it had been without a CPU; `None` if it had one, or had never run.
        waited: Option<Nanos>,
    },
    /// It was stopped.
    Stopped,
    /// It had to wait, or for another reason than before.
    Waits {
        /// Why.
        reason: WaitReason,
    },
}

/// A decision about the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When it was made.
    pub at: Nanos,
    /// What triggered it.
    pub triggers: Vec<Trigger>,
    /// Round-robin stood in for a decision of the policy that could not be carried out.
    pub stood_in: bool,
    /// What it did with the job.
    #[serde(flatten)]
    pub did: Did,
}

/// A job that had CPUs while the one that was asked for waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preferred {
    /// Its number.
    pub task: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Since when it had them.
    pub since: Nanos,
    /// What for.
    pub purpose: Purpose,
}

/// When the job runs at the latest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "bound")]
pub enum Latest {
    /// The bound on pauses.
    Pause {
        /// The time at which it has waited for as long as a job may.
        overdue: Nanos,
        /// The time by which those that are overdue have their turn.
        at: Nanos,
        /// The bound itself.
        max_pause: Nanos,
    },
    /// It has been let in and has not begun: the policy's order decides, and there is no bound.
    Order,
    /// It is let in when one of the jobs that are live ends: there is no bound.
    Queue {
        /// How many are live.
        live: usize,
    },
}

/// Whether more can follow in a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesEnd {
    /// The run goes on.
    GoesOn,
    /// The run has ended, or was killed.
    Over,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// [`WHY_SCHEMA`].
    pub schema: String,
    /// The job's name.
    pub job: String,
    /// The names of all jobs, by the numbers of their tasks.
    pub names: Vec<String>,
    /// The policy that decided.
    pub policy: String,
    /// The time that was asked for; the last that the series tells if that is earlier.
    pub at: Nanos,
    /// The job's state then.
    #[serde(flatten)]
    pub state: State,
    /// The last decisions about it, in the order of time.
    pub steps: Vec<Step>,
    /// Who had CPUs, if it had none.
    pub preferred: Vec<Preferred>,
    /// How many others waited.
    pub waiting: usize,
    /// Who had which CPU in fact; `None` if no scheduler in the kernel told, if it had not begun, had ended,
    /// or had never been seen on one: that scheduler may not have it.
    pub seen: Option<Seen>,
    /// When it runs at the latest, if it waited.
    pub latest: Option<Latest>,
    /// When the policy decides again at the latest; `None` if that had passed, or only something that happens leads to a
    /// decision, or the run was over.
    pub next_decision: Option<Nanos>,
    /// The series tells nothing after this time, and whether more can follow; `None` if it does.
    pub series_end: Option<SeriesEnd>,
}

/// What is known of a task while the series is read.
#[derive(Clone, Default)]
struct Life {
    arrival: Nanos,
    is_started: bool,
    place: Option<(Nanos, CpuSet, Mode, Purpose)>,
    last_cpus: Option<CpuSet>,
    waits_since: Option<Nanos>,
    /// The policy has had it to decide about.
    let_in: bool,
    ended: Option<(Nanos, String)>,
}

/// The decision whose lines are being read.
#[derive(Default)]
struct Now {
    at: Nanos,
    triggers: Vec<Trigger>,
    stood_in: bool,
    next: Option<Nanos>,
    /// Who lost CPUs by it, and which.
    left: Vec<(u32, CpuSet)>,
}

/// Reads a series up to a time, or to its end, and tells about the job with this number. `end` says whether more can follow.
///
/// # Errors
/// A line can't be read. A last line that was cut off is no error.
pub fn why<R: BufRead>(
    series: &mut SeriesReader<R>,
    task: TaskId,
    at: Option<Nanos>,
    end: SeriesEnd,
) -> Result<Why, SeriesError> {
    let header = series.header().clone();
    let mut lives: Vec<Life> = header
        .tasks
        .iter()
        .map(|task| Life {
            arrival: task.arrival_ns,
            ..Life::default()
        })
        .collect();
    let own = task.0 as usize;
    let (mut now, mut last, mut goes_on) = (Now::default(), Nanos::ZERO, false);
    let mut steps: VecDeque<Step> = VecDeque::new();
    let mut watch = Watch::new(task);
    for line in series.by_ref() {
        let (time, row) = line?;
        if at.is_some_and(|at| time > at) {
            goes_on = true;
            break;
        }
        last = last.max(time);
        let did = match row {
            Row::Decided {
                triggers,
                next_wake,
                stood_in,
                ..
            } => {
                now = Now {
                    at: time,
                    triggers,
                    stood_in,
                    next: next_wake,
                    left: Vec::new(),
                };
                None
            }
            Row::Placed {
                task,
                cpus,
                mode,
                purpose,
            } => {
                let Some(life) = lives.get_mut(task.0 as usize) else {
                    continue;
                };
                let waited = life
                    .waits_since
                    .take()
                    .filter(|_| life.is_started)
                    .map(|since| time - since);
                if let Some((_, before, ..)) =
                    life.place.replace((time, cpus.clone(), mode, purpose))
                {
                    now.left.push((task.0, before));
                }
                let before = life.last_cpus.replace(cpus.clone());
                let left_by = now.left.iter().filter(|(who, left)| {
                    *who != task.0 && mode != Mode::Shared && !left.intersection(&cpus).is_empty()
                });
                let left_by = left_by.map(|(who, _)| *who).collect();
                Some((
                    task,
                    Did::Placed {
                        cpus,
                        mode,
                        purpose,
                        before,
                        left_by,
                        waited,
                    },
                ))
            }
            Row::Stopped(task) => {
                let Some(life) = lives.get_mut(task.0 as usize) else {
                    continue;
                };
                if let Some((_, cpus, ..)) = life.place.take() {
                    now.left.push((task.0, cpus));
                }
                life.waits_since = Some(time);
                Some((task, Did::Stopped))
            }
            Row::Waits { task, reason } => {
                let Some(life) = lives.get_mut(task.0 as usize) else {
                    continue;
                };
                let since = life.arrival;
                life.waits_since.get_or_insert(since);
                life.let_in = true;
                Some((task, Did::Waits { reason }))
            }
            Row::Started(task) => {
                if let Some(life) = lives.get_mut(task.0 as usize) {
                    // Started again after a failure it has not ended yet.
                    (life.is_started, life.ended) = (true, None);
                }
                None
            }
            Row::Ended(row) => {
                if let Some(life) = lives.get_mut(row.task.0 as usize) {
                    if let Some((_, cpus, ..)) = life.place.take() {
                        // The next decision gives them to others.
                        now.left.push((row.task.0, cpus));
                    }
                    life.ended = Some((time, row.text));
                }
                watch.ended(last, row.task);
                None
            }
            Row::Switched(switched) => {
                // What a job left behind is not it any more.
                let is_over = |task: &TaskId| {
                    lives
                        .get(task.0 as usize)
                        .is_none_or(|life| life.ended.is_some())
                };
                let switched = match switched {
                    Switched::To { cpu, task } => Switched::To {
                        cpu,
                        task: task.filter(|task| !is_over(task)),
                    },
                    Switched::Untold => Switched::Untold,
                };
                watch.switched(last, switched);
                None
            }
            Row::Sampled(_) | Row::Lacks { .. } | Row::Warned { .. } => None,
        };
        if let Some((_, did)) = did.filter(|(about, _)| *about == task) {
            if steps.len() == STEPS {
                steps.pop_front();
            }
            let step = Step {
                at: now.at,
                triggers: now.triggers.clone(),
                stood_in: now.stood_in,
                did,
            };
            steps.push_back(step);
        }
    }
    let series_end = (!goes_on).then_some(end);
    let asked = at.filter(|at| goes_on || *at < last).unwrap_or(last);
    let life = lives.get(own).cloned().unwrap_or_default();
    let state = match (&life.ended, &life.place, life.is_started) {
        (Some((at, exit)), ..) => State::Ended {
            at: *at,
            exit: exit.clone(),
        },
        (None, Some((since, cpus, mode, purpose)), _) => State::Runs {
            since: *since,
            cpus: cpus.clone(),
            mode: *mode,
            purpose: *purpose,
        },
        (None, None, true) => State::Waits {
            since: life.waits_since.unwrap_or(life.arrival),
        },
        (None, None, false) if life.arrival > asked => State::NotArrived {
            arrival: life.arrival,
        },
        (None, None, false) => State::Queued {
            since: life.arrival,
        },
    };
    let live = |life: &&Life| (life.is_started || life.let_in) && life.ended.is_none();
    let count = lives.iter().filter(live).count();
    let seen = watch.seen(asked, &header.machine.all_cpus());
    let seen = seen.filter(|_| matches!(state, State::Runs { .. } | State::Waits { .. }));
    let is_waiting = matches!(state, State::Waits { .. } | State::Queued { .. });
    let preferred = lives.iter().enumerate().filter_map(|(at, life)| {
        let (since, cpus, _, purpose) = life.place.clone()?;
        Some(Preferred {
            task: at as u32,
            cpus,
            since,
            purpose,
        })
    });
    let max_pause = Nanos::from_s(header.setting.options.max_pause_s);
    let latest = match &state {
        State::Queued { .. } if life.let_in => Some(Latest::Order),
        State::Queued { .. } => Some(Latest::Queue { live: count }),
        State::Waits { since } if max_pause > Nanos::ZERO => {
            let cpus = header.machine.cpus.len().max(1);
            let turns = count.div_ceil(cpus) as u64;
            let overdue = *since + max_pause;
            let at = overdue + Nanos(turns.saturating_mul(header.quantum_ns.0));
            Some(Latest::Pause {
                overdue,
                at,
                max_pause,
            })
        }
        _ => None,
    };
    let waits = |(at, life): (usize, &Life)| {
        at != own && life.is_started && life.ended.is_none() && life.place.is_none()
    };
    Ok(Why {
        schema: WHY_SCHEMA.to_owned(),
        job: header
            .tasks
            .get(own)
            .map(|task| task.name.clone())
            .unwrap_or_default(),
        names: header.tasks.into_iter().map(|task| task.name).collect(),
        policy: header.policy,
        at: asked,
        state,
        steps: steps.into(),
        preferred: if is_waiting {
            preferred.collect()
        } else {
            Vec::new()
        },
        waiting: lives.iter().enumerate().filter(|one| waits(*one)).count(),
        seen,
        latest,
        next_decision: now
            .next
            .filter(|next| *next > asked && series_end != Some(SeriesEnd::Over)),
        series_end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesHeader;
    use crate::testing::{info, result};

    fn ask(lines: &str, task: u32, at: Option<u64>) -> Why {
        let result = result();
        let header = SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec));
        let text = format!("{}\n{lines}", serde_json::to_string(&header).unwrap());
        let mut series = SeriesReader::new(text.as_bytes(), "s").unwrap();
        why(
            &mut series,
            TaskId(task),
            at.map(|ms| Nanos(ms * 1_000_000)),
            SeriesEnd::Over,
        )
        .unwrap()
    }

    const RUN: &str = r#"["b",0,0]
["b",0,1]
["d",0,["quantum-end"],200000000,0,null,null,null]
["p",0,0,"0","exclusive","run"]
["w",0,1,{"why":"order","ahead":0}]
["s",200000000,0,200000000,"0","run","",null,null,null,null,null,null,null,1000]
["d",200000000,["quantum-end"],400000000,0,null,null,null]
["x",200000000,0]
["p",200000000,1,"0","whole-core","measure-alone"]
["w",200000000,0,{"why":"measuring","task":1}]
["d",400000000,["quantum-end"],600000000,0,null,null,null]
["w",400000000,0,{"why":"order","ahead":0}]
["p",400000000,1,"0","exclusive","run"]
["e",500000000,1,0,"exit 0",0,null,null,null,null,null]
["d",500000000,[{"ended":1}],700000000,1,null,null,null]
["p",500000000,0,"0","exclusive","run"]
["e",900000000,0,3,"exit 3",0,null,null,null,null,null]
"#;

    #[test]
    fn each_state_is_told_with_the_decisions_before_it() {
        let texts = [
            (0, Some(100)),
            (1, Some(100)),
            (0, Some(450)),
            (0, Some(600)),
            (0, None),
            (3, Some(1)),
        ]
        .map(|(task, at)| why_text(&ask(RUN, task, at), 100));
        insta::assert_snapshot!(texts.join("\n"));
    }

    /// What a scheduler in the kernel saw stands beside what was decided.
    #[test]
    fn who_had_which_cpu_in_the_kernel_is_told() {
        let text = r#"["b",0,0]
["b",0,1]
["d",0,["quantum-end"],200000000,0,null,null,null]
["p",0,0,"0-1","shared","run"]
["p",0,1,"0-1","shared","run"]
["o",10000000,0,0]
["o",30000000,0,1]
["o",70000000,0,0]
["o",75000000,1,1]
["e",150000000,0,0,"exit 0",0,null,null,null,null,null]
["o",151000000,0,1]
["o",160000000,0,null]
["o",160000000,1,null]
["o",180000000,null,null]
["d",200000000,["quantum-end"],400000000,0,null,null,null]
"#;
        let answers = [
            (0, 5),
            (1, 20),
            (0, 60),
            (1, 155),
            (1, 170),
            (0, 170),
            (1, 190),
        ];
        let texts = answers.map(|(task, at)| why_text(&ask(text, task, Some(at)), 100));
        insta::assert_snapshot!(texts.join("\n"));
        let seen = ask(text, 0, Some(60)).seen.unwrap();
        insta::assert_snapshot!(serde_json::to_string(&seen).unwrap());
    }

    /// What is not in the series is not told.
    #[test]
    fn after_the_end_of_the_series_nothing_is_made_up() {
        let half: String = RUN
            .lines()
            .take(11)
            .map(|line| format!("{line}\n"))
            .collect();
        let answer = ask(&half, 1, Some(60_000));
        assert_eq!(
            (answer.at, answer.series_end),
            (Nanos(400_000_000), Some(SeriesEnd::Over))
        );
        assert!(matches!(answer.state, State::Runs { .. }) && answer.next_decision.is_none());
        assert!(why_text(&answer, 100).contains("its run was killed then, or could not write on"));
        let before = ask(&half, 1, Some(300));
        assert_eq!((before.at, before.series_end), (Nanos(300_000_000), None));
    }

    #[test]
    fn a_job_that_has_been_let_in_waits_for_no_other_to_end() {
        let answer = ask(RUN, 1, Some(100));
        assert!(matches!(answer.state, State::Waits { .. }));
        let unstarted = RUN.replace("[\"b\",0,1]\n", "");
        let answer = ask(&unstarted, 1, Some(100));
        assert_eq!(
            (&answer.state, &answer.latest),
            (&State::Queued { since: Nanos::ZERO }, &Some(Latest::Order))
        );
        assert!(matches!(
            ask(&unstarted, 3, Some(100)).latest,
            None | Some(Latest::Queue { live: 2 })
        ));
    }

    #[test]
    fn many_triggers_are_counted() {
        let many: Vec<String> = (0..40).map(|_| "{\"arrived\":2}".to_owned()).collect();
        let text = format!(
            "[\"d\",0,[{}],null,0,null,null,null]\n[\"p\",0,0,\"0\",\"exclusive\",\"run\"]\n",
            many.join(",")
        );
        let told = why_text(&ask(&text, 0, None), 200);
        assert!(
            told.contains("and 36 more") && told.matches("arrived").count() == 4,
            "{told}"
        );
    }

    #[test]
    fn the_bound_counts_from_when_it_was_stopped() {
        let answer = ask(RUN, 0, Some(450));
        assert_eq!(
            answer.state,
            State::Waits {
                since: Nanos(200_000_000)
            }
        );
        let Some(Latest::Pause {
            overdue,
            at,
            max_pause,
        }) = answer.latest
        else {
            panic!("{:?}", answer.latest)
        };
        assert_eq!(overdue, Nanos(200_000_000) + max_pause);
        // Two live jobs on two CPUs: one turn of a quantum.
        assert_eq!(at, overdue + Nanos(200_000_000));
        assert_eq!(answer.preferred.len(), 1);
        assert_eq!(
            (answer.preferred[0].task, answer.preferred[0].since),
            (1, Nanos(400_000_000))
        );
        assert_eq!(answer.next_decision, Some(Nanos(600_000_000)));
    }

    #[test]
    fn a_placement_names_who_left_the_cpu() {
        let answer = ask(RUN, 0, Some(600));
        let Did::Placed {
            left_by,
            waited,
            before,
            ..
        } = &answer.steps.last().unwrap().did
        else {
            panic!()
        };
        assert_eq!(
            (waited, before.as_ref().map(ToString::to_string).as_deref()),
            (&Some(Nanos(300_000_000)), Some("0"))
        );
        // The end of a job before the decision is not part of it; the trigger tells.
        assert!(left_by.is_empty() && answer.steps.last().unwrap().stood_in);
        let answer = ask(RUN, 1, Some(300));
        let Did::Placed { left_by, .. } = &answer.steps.last().unwrap().did else {
            panic!()
        };
        assert_eq!(left_by, &[0]);
    }

    #[test]
    fn only_the_last_decisions_are_kept() {
        let many: String = (0..20)
            .map(|at| format!("[\"d\",{at},[\"quantum-end\"],null,0,null,null,null]\n[\"p\",{at},0,\"{}\",\"exclusive\",\"run\"]\n", at % 2))
            .collect();
        let answer = ask(&many, 0, None);
        assert_eq!(
            answer
                .steps
                .iter()
                .map(|step| step.at.0)
                .collect::<Vec<_>>(),
            [15, 16, 17, 18, 19]
        );
    }
}
