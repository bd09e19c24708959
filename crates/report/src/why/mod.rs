//! Why a job runs or waits at a time: the last decisions about it, the jobs with CPUs in its place, and the bound on its
//! wait. All of this comes from the series, so it works for a finished run and for one that goes on.
//!
//! [`text`]: the answer in words.

mod text;

use crate::series::in_order::RowsInOrder;
use crate::series::replay::{JobReplay, Replay};
use crate::series::{CpuMode, SeriesError, SeriesHeader, SeriesReader, SeriesRow};
use crate::warning::JOBS_AT_ONCE;
use cosched_core::{CpuSet, Nanos, Node, Purpose, TaskId, Trigger, WaitReason};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::BufRead;
pub use text::why_text;

/// The format's name and version.
pub const WHY_SCHEMA: &str = "cosched.why/1";

/// Maximum number of decisions about a job in an answer.
const STEPS: usize = 5;

/// The state of a job at the given time.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum WhyState {
    /// It had not arrived.
    NotArrived {
        /// When it arrives.
        arrival: Nanos,
    },
    /// It had arrived and was not started yet.
    Queued {
        /// When it arrived.
        since: Nanos,
    },
    /// It had CPUs.
    Runs {
        /// Begin of this placement.
        since: Nanos,
        /// Its CPUs.
        cpus: CpuSet,
        /// Whether they were its own.
        mode: CpuMode,
        /// Purpose of the placement.
        purpose: Purpose,
    },
    /// It had started and waited.
    Waits {
        /// When it lost its last CPU.
        since: Nanos,
    },
    /// It had ended.
    Ended {
        /// When it ended.
        ended: Nanos,
        /// How, in words.
        exit: String,
    },
}

/// The effect of a decision on the job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "did")]
pub enum WhyChange {
    /// It was placed.
    Placed {
        /// Its new CPUs.
        cpus: CpuSet,
        /// Whether they were its own.
        mode: CpuMode,
        /// Purpose of the placement.
        purpose: Purpose,
        /// Time without a CPU before; `None` if it had one, or had never started.
        waited: Option<Nanos>,
    },
    /// It was stopped.
    Stopped,
    /// It had to wait, or waits for another reason than before.
    Waits {
        /// Reason of the wait.
        reason: WaitReason,
    },
}

/// A decision about the job.
#[derive(Debug, Serialize)]
pub struct WhyStep {
    /// Time of the decision.
    pub at: Nanos,
    /// Triggers of the decision.
    pub triggers: Vec<Trigger>,
    /// Round-robin stood in, since the policy's own decision was not possible.
    pub stood_in: bool,
    /// Its effect on the job.
    #[serde(flatten)]
    pub did: WhyChange,
}

/// Another job that had CPUs while the job waited.
#[derive(Debug, Serialize)]
pub struct PreferredJob {
    /// Its number.
    pub task: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Begin of its placement.
    pub since: Nanos,
    /// Purpose of its placement.
    pub purpose: Purpose,
}

/// The bound on the job's wait.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "bound")]
pub enum LatestTurn {
    /// `--max-pause` bounds the wait.
    Pause {
        /// End of the longest allowed pause.
        overdue: Nanos,
        /// Time by which all overdue jobs have had a turn.
        at: Nanos,
        /// The longest allowed pause.
        max_pause: Nanos,
    },
    /// None: the policy's order decides when it starts.
    Order,
    /// None: it is let in when a live job ends.
    Queue {
        /// Number of live jobs.
        live: usize,
        /// What decides which job is next (`--order`).
        order: String,
    },
}

/// Whether a series can still grow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesEnd {
    /// The run goes on.
    GoesOn,
    /// The run has ended, or was killed.
    Over,
}

/// An answer: why a job runs or waits.
#[derive(Debug, Serialize)]
pub struct WhyAnswer {
    /// [`WHY_SCHEMA`].
    pub schema: String,
    /// The job's name.
    pub job: String,
    /// The names of all jobs, by number.
    pub names: Vec<String>,
    /// The nodes of the run; empty for a run on one machine.
    #[serde(skip)]
    pub nodes: Vec<Node>,
    /// The policy that decided.
    pub policy: String,
    /// The given time, or the last time of the series if that is earlier.
    pub at: Nanos,
    /// The job's weight; left out if it is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The job's state at that time.
    #[serde(flatten)]
    pub state: WhyState,
    /// The last decisions about it, the oldest first.
    pub steps: Vec<WhyStep>,
    /// The warnings about it; left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The jobs that had CPUs, if it had none.
    pub preferred: Vec<PreferredJob>,
    /// How many jobs are best at once; left out unless that is fewer, or `--jobs auto` asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<String>,
    /// The bound on its wait, if it waited.
    pub latest: Option<LatestTurn>,
    /// Latest time of the next decision; `None` if that had passed, if only an event leads to one, or if the run was over.
    pub next_decision: Option<Nanos>,
    /// The series ends at this time, and whether it can still grow; `None` if it goes on after it.
    pub series_end: Option<SeriesEnd>,
}

/// Read a series up to a time, or to its end, and explain the job with this number. `end` says whether it can still grow.
///
/// # Errors
/// A line cannot be read. A last line that was cut off is no error.
pub fn why<R: BufRead>(
    series: &mut SeriesReader<R>,
    task: TaskId,
    at: Option<Nanos>,
    end: SeriesEnd,
) -> Result<WhyAnswer, SeriesError> {
    let header = series.header().clone();
    let mut history = History::new(&header, task);
    let mut has_more = false;
    for row in RowsInOrder::new(series) {
        let (time, row) = row?;
        has_more = at.is_some_and(|at| time > at);
        if has_more {
            break;
        }
        history.apply(time, row);
    }
    let last = history.replay.now;
    let at = at.filter(|at| has_more || *at < last).unwrap_or(last);
    Ok(history.answer(header, at, (!has_more).then_some(end)))
}

/// A decision whose rows are being read.
#[derive(Default)]
struct OpenDecision {
    at: Nanos,
    triggers: Vec<Trigger>,
    stood_in: bool,
    next: Option<Nanos>,
}

/// A job's history up to a row of the series.
struct History {
    task: TaskId,
    replay: Replay,
    decision: OpenDecision,
    steps: VecDeque<WhyStep>,
    warnings: Vec<String>,
    at_once: Option<String>,
}

impl History {
    fn new(header: &SeriesHeader, task: TaskId) -> History {
        History {
            task,
            replay: Replay::new(header),
            decision: OpenDecision::default(),
            steps: VecDeque::new(),
            warnings: Vec::new(),
            at_once: None,
        }
    }

    fn apply(&mut self, at: Nanos, row: SeriesRow) {
        if row.task() == Some(self.task)
            && let Some(did) = self.effect(at, &row)
        {
            self.add_step(did);
        }
        self.replay.apply(at, &row);
        self.replay.take_spans();
        match row {
            SeriesRow::Decided {
                triggers,
                next_wake,
                stood_in,
                ..
            } => {
                self.decision = OpenDecision {
                    at,
                    triggers,
                    stood_in,
                    next: next_wake,
                };
            }
            SeriesRow::Warned { text, task, .. } if task == Some(self.task) => {
                self.warnings.push(text)
            }
            SeriesRow::Warned { code, text, .. } if code == JOBS_AT_ONCE => {
                self.at_once = Some(text)
            }
            _ => {}
        }
    }

    /// Return the effect of a row on its task, before it is applied.
    fn effect(&self, at: Nanos, row: &SeriesRow) -> Option<WhyChange> {
        match row {
            SeriesRow::Placed {
                cpus,
                mode,
                purpose,
                ..
            } => {
                let waited = self.replay.job(self.task).paused_since();
                let waited = waited.map(|since| at - since);
                Some(WhyChange::Placed {
                    cpus: cpus.clone(),
                    mode: *mode,
                    purpose: *purpose,
                    waited: waited.filter(|waited| *waited > Nanos::ZERO),
                })
            }
            SeriesRow::Stopped(_) => Some(WhyChange::Stopped),
            SeriesRow::Waits { reason, .. } => Some(WhyChange::Waits { reason: *reason }),
            _ => None,
        }
    }

    fn add_step(&mut self, did: WhyChange) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(WhyStep {
            at: self.decision.at,
            triggers: self.decision.triggers.clone(),
            stood_in: self.decision.stood_in,
            did,
        });
    }

    fn answer(self, header: SeriesHeader, at: Nanos, series_end: Option<SeriesEnd>) -> WhyAnswer {
        let job = self.replay.job(self.task);
        let state = state(job, at);
        let is_over = series_end == Some(SeriesEnd::Over);
        let next_decision = self.decision.next.filter(|next| *next > at && !is_over);
        WhyAnswer {
            schema: WHY_SCHEMA.to_owned(),
            job: header.tasks[self.task.0 as usize].name.clone(),
            policy: header.policy.clone(),
            weight: header.tasks[self.task.0 as usize].weight,
            at,
            preferred: self.preferred(&state),
            at_once: self.at_once.clone(),
            latest: self.latest(&state, &header),
            state,
            steps: self.steps.into(),
            warnings: self.warnings,
            next_decision,
            series_end,
            nodes: header.machine.nodes.clone(),
            names: header.tasks.into_iter().map(|task| task.name).collect(),
        }
    }

    /// Return the jobs that have CPUs while this one waits.
    fn preferred(&self, state: &WhyState) -> Vec<PreferredJob> {
        let mut preferred = Vec::new();
        if !matches!(state, WhyState::Waits { .. } | WhyState::Queued { .. }) {
            return preferred;
        }
        for (task, job) in self.replay.jobs.iter().enumerate() {
            if let Some((since, placed)) = &job.placed {
                preferred.push(PreferredJob {
                    task: task as u32,
                    cpus: placed.cpus.clone(),
                    since: *since,
                    purpose: placed.purpose,
                });
            }
        }
        preferred
    }

    fn latest(&self, state: &WhyState, header: &SeriesHeader) -> Option<LatestTurn> {
        let jobs = self.replay.jobs.iter();
        let live = jobs.filter(|job| job.is_live()).count();
        let max_pause = Nanos::from_s(header.setting.options.max_pause_s);
        let last = self.steps.back().map(|step| &step.did);
        let is_left_out = matches!(
            last,
            Some(WhyChange::Waits {
                reason: WaitReason::NoTime { .. } | WaitReason::TooWide { .. }
            })
        );
        match state {
            _ if is_left_out => None,
            WhyState::Queued { .. } if self.replay.job(self.task).let_in => Some(LatestTurn::Order),
            WhyState::Queued { .. } => Some(LatestTurn::Queue {
                live,
                order: header.setting.options.order.clone(),
            }),
            WhyState::Waits { since } if max_pause > Nanos::ZERO => {
                let turns = live.div_ceil(header.machine.cpus.len()) as u64;
                let overdue = *since + max_pause;
                Some(LatestTurn::Pause {
                    overdue,
                    at: overdue + Nanos(turns.saturating_mul(header.quantum_ns.0)),
                    max_pause,
                })
            }
            _ => None,
        }
    }
}

fn state(job: &JobReplay, at: Nanos) -> WhyState {
    match (&job.ended, &job.placed) {
        (Some((ended, exit)), _) => WhyState::Ended {
            ended: *ended,
            exit: exit.clone(),
        },
        (None, Some((since, placed))) => WhyState::Runs {
            since: *since,
            cpus: placed.cpus.clone(),
            mode: placed.mode,
            purpose: placed.purpose,
        },
        (None, None) if job.starts > 0 => WhyState::Waits {
            since: job.idle_since,
        },
        (None, None) if job.arrival > at => WhyState::NotArrived {
            arrival: job.arrival,
        },
        (None, None) => WhyState::Queued { since: job.arrival },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesHeader;
    use crate::testing::{info, result};

    fn ask(lines: &str, task: u32, at: Option<u64>) -> WhyAnswer {
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
["!",400000000,"few-cpus","mcf-1 has 8 threads that want to run, and 1 CPU",0]
["!",400000000,"timed-out","mcf-2 timed out and is ended",1]
["w",400000000,0,{"why":"order","ahead":0}]
["p",400000000,1,"0","exclusive","run"]
["e",500000000,1,{"exit":0,"exit_text":"exit 0","timed_out":false}]
["d",500000000,[{"ended":1}],700000000,1,null,null,null]
["p",500000000,0,"0","exclusive","run"]
["e",900000000,0,{"exit":3,"exit_text":"exit 3","timed_out":false}]
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
        assert!(matches!(answer.state, WhyState::Runs { .. }) && answer.next_decision.is_none());
        assert!(why_text(&answer, 100).contains("its run was killed, or could not write"));
        let before = ask(&half, 1, Some(300));
        assert_eq!((before.at, before.series_end), (Nanos(300_000_000), None));
    }

    #[test]
    fn a_job_that_has_been_let_in_waits_for_no_other_to_end() {
        let answer = ask(RUN, 1, Some(100));
        assert!(matches!(answer.state, WhyState::Waits { .. }));
        let unstarted = RUN.replace("[\"b\",0,1]\n", "");
        let answer = ask(&unstarted, 1, Some(100));
        assert_eq!(
            (&answer.state, &answer.latest),
            (
                &WhyState::Queued { since: Nanos::ZERO },
                &Some(LatestTurn::Order)
            )
        );
        assert!(matches!(
            ask(&unstarted, 3, Some(100)).latest,
            None | Some(LatestTurn::Queue { live: 2, .. })
        ));
    }

    #[test]
    fn what_was_found_of_the_number_at_once_is_told() {
        let found = "2 at once end 3 % sooner than 4";
        let line = format!("[\"!\",1,\"jobs-at-once\",\"{found}\"]\n");
        let series = format!("{line}{RUN}");
        let asked = |ms| ask(&series, 1, Some(ms)).at_once;
        assert_eq!(asked(0), None, "not found yet");
        assert_eq!(asked(100).as_deref(), Some(found));
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
            WhyState::Waits {
                since: Nanos(200_000_000)
            }
        );
        let Some(LatestTurn::Pause {
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
    fn a_placement_tells_how_long_the_job_waited() {
        let answer = ask(RUN, 0, Some(600));
        let step = answer.steps.last().unwrap();
        let WhyChange::Placed { waited, .. } = &step.did else {
            panic!()
        };
        assert_eq!(*waited, Some(Nanos(300_000_000)));
        assert!(step.stood_in);
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
