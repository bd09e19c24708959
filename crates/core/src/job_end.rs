//! How a job ended, as it is told: in the record and the series of a run, to a coordinator, by a reaper, in the queue and to
//! those who watch.

use crate::counter::Counter;
use crate::resources::Resources;
use crate::run::TaskResult;
use crate::sample::Counts;
use crate::snapshot::ProgressBasis;
use crate::task::{Exit, TaskSpec};
use crate::units::{Absence, Nanos, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a job ended, and what it used. What is not known is left out. Of a job that has not ended, what it used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Its exit status, [as in a shell](Exit::status).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How it ended, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exit_text: String,
    /// Whether it was ended because it took too long.
    #[serde(default)]
    pub timed_out: bool,
    /// Whether a user ended it during the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_by_user: bool,
    /// Whether it was ended with its run. Its exit then says nothing about its work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// When it started, in seconds since the start of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_s: Option<f64>,
    /// When it ended, in seconds since the start of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_s: Option<f64>,
    /// CPU time of all its processes, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// CPU time in user mode, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_s: Option<f64>,
    /// CPU time in the kernel, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_s: Option<f64>,
    /// Peak resident memory of its largest process, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    /// Bytes read from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Number of its starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Time in which it was placed on CPUs, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_s: Option<f64>,
    /// Longest time without a CPU between two placements, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_max_s: Option<f64>,
    /// Whether the kernel time-shared its CPUs, so that `ran_s` includes waiting for a CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// CPUs that it could use: as stated, or as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Solo execution done, in quanta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Basis of `progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_basis: Option<ProgressBasis>,
    /// Solo execution done, in quanta, by the learnt model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_learnt: Option<f64>,
    /// Events counted over its whole life.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<Counter, u64>,
    /// Whether some counts are scaled estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiplexed: bool,
}

impl JobEnd {
    /// The end of a job that used nothing that is known.
    pub fn of_exit(exit: &Exit) -> JobEnd {
        JobEnd {
            exit: exit.status(),
            signal: match exit {
                Exit::Signal { signal, .. } => Some(*signal),
                _ => None,
            },
            exit_text: exit.to_string(),
            ..JobEnd::default()
        }
    }

    /// The end of a task of a run; what it used so far, if it has not ended.
    pub fn of(result: &TaskResult) -> JobEnd {
        let used = &result.resources;
        JobEnd {
            timed_out: result.timed_out,
            ended_by_user: result.ended_by_user,
            interrupted: result.told_to_end && !result.ended_by_user,
            start_s: result.started.map(Nanos::as_s),
            end_s: result.finished.map(Nanos::as_s),
            cpu_s: result.cpu_time.value().map(Nanos::as_s),
            user_s: used.user_time.value().map(Nanos::as_s),
            system_s: used.system_time.value().map(Nanos::as_s),
            max_rss_bytes: used.max_rss.value(),
            read_bytes: used.read_bytes.value(),
            written_bytes: used.written_bytes.value(),
            runs: Some(result.runs),
            ran_s: Some(result.ran.as_s()),
            waited_max_s: result.started.map(|_| result.waited_max.as_s()),
            shared: result.shared,
            width: result.width.value(),
            progress: result.progress.value(),
            progress_basis: result.progress.value().map(|_| result.progress_basis),
            progress_learnt: result.progress_learnt.value(),
            counts: known(&result.counts),
            multiplexed: result.multiplexed,
            ..result
                .exit
                .as_ref()
                .map(JobEnd::of_exit)
                .unwrap_or_default()
        }
    }

    /// Each value of a task that is not known, and why.
    pub fn lacks(result: &TaskResult) -> Vec<(&'static str, Absence)> {
        let used = &result.resources;
        let mut whys = vec![
            ("cpu_s", result.cpu_time.absence()),
            ("user_s", used.user_time.absence()),
            ("system_s", used.system_time.absence()),
            ("max_rss_bytes", used.max_rss.absence()),
            ("read_bytes", used.read_bytes.absence()),
            ("written_bytes", used.written_bytes.absence()),
            ("width", result.width.absence()),
            ("progress", result.progress.absence()),
            ("progress_learnt", result.progress_learnt.absence()),
        ];
        let counts = result.counts.iter();
        whys.extend(counts.map(|(counter, count)| (counter.name(), count.absence())));
        let mut lacks = Vec::new();
        for (name, why) in whys {
            lacks.extend(why.map(|why| (name, why)));
        }
        lacks
    }

    /// The result of a task that ended so. `why` tells why a value is absent, by its name in [`JobEnd::lacks`].
    /// What was learnt of it and who was beside it is not told.
    pub fn result(&self, spec: TaskSpec, why: impl Fn(&str) -> Absence) -> TaskResult {
        TaskResult {
            spec,
            started: self.start_s.map(Nanos::from_s),
            finished: self.end_s.map(Nanos::from_s),
            exit: (!self.exit_text.is_empty()).then(|| self.exit()),
            timed_out: self.timed_out,
            told_to_end: self.interrupted,
            ended_by_user: self.ended_by_user,
            cpu_time: time(self.cpu_s, why("cpu_s")),
            waited_max: Nanos::from_s(self.waited_max_s.unwrap_or_default()),
            ran: Nanos::from_s(self.ran_s.unwrap_or_default()),
            shared: self.shared,
            counts: self.counts(&why),
            multiplexed: self.multiplexed,
            resources: self.resources(&why),
            progress: Reading::from_option(self.progress, why("progress")),
            progress_basis: self.progress_basis.unwrap_or_default(),
            progress_learnt: Reading::from_option(self.progress_learnt, why("progress_learnt")),
            runs: self.runs.unwrap_or(1),
            width: Reading::from_option(self.width, why("width")),
            learnt: None,
            beside: None,
        }
    }

    /// Whether it ended otherwise than with code 0, or took too long.
    pub fn failed(&self) -> bool {
        let has_ended = !self.exit_text.is_empty();
        has_ended && (self.timed_out || self.exit != Some(0))
    }

    /// How it ended, in words: `exit 3`, or `timed out with SIGTERM`.
    pub fn text(&self) -> String {
        if self.timed_out {
            format!("timed out with {}", self.exit_text)
        } else {
            self.exit_text.clone()
        }
    }

    /// How it ended.
    pub fn exit(&self) -> Exit {
        if let Some(signal) = self.signal {
            let oom = self.exit_text.contains("out of memory");
            return Exit::Signal { signal, oom };
        }
        if self.exit_text == Exit::ToldToEnd.to_string() {
            return Exit::ToldToEnd;
        }
        if let Some(why) = self.exit_text.strip_prefix("not started: ") {
            return Exit::NotStarted(why.to_owned());
        }
        self.exit.map_or(Exit::Unknown, Exit::Code)
    }

    /// CPU time of all its processes. `why` tells why it is absent.
    pub fn cpu_time(&self, why: Absence) -> Reading<Nanos> {
        time(self.cpu_s, why)
    }

    /// The events that were counted. `why` tells why one is absent, by the name of its counter.
    pub fn counts(&self, why: impl Fn(&str) -> Absence) -> Counts {
        Counts::from_fn(|counter| {
            let count = self.counts.get(&counter).copied();
            Reading::from_option(count, why(counter.name()))
        })
    }

    /// What it used beside CPU time. `why` tells why a value is absent, by its name.
    pub fn resources(&self, why: impl Fn(&str) -> Absence) -> Resources {
        Resources {
            max_rss: Reading::from_option(self.max_rss_bytes, why("max_rss_bytes")),
            user_time: time(self.user_s, why("user_s")),
            system_time: time(self.system_s, why("system_s")),
            read_bytes: Reading::from_option(self.read_bytes, why("read_bytes")),
            written_bytes: Reading::from_option(self.written_bytes, why("written_bytes")),
        }
    }
}

fn known(counts: &Counts) -> BTreeMap<Counter, u64> {
    let mut known = BTreeMap::new();
    for (counter, count) in counts.iter() {
        known.extend(count.value().map(|count| (counter, count)));
    }
    known
}

fn time(seconds: Option<f64>, why: Absence) -> Reading<Nanos> {
    Reading::from_option(seconds.map(Nanos::from_s), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_back() {
        let killed = |oom| Exit::Signal { signal: 9, oom };
        for exit in [
            Exit::Code(0),
            Exit::Code(3),
            killed(true),
            killed(false),
            Exit::NotStarted("no such file".to_owned()),
            Exit::ToldToEnd,
            Exit::Unknown,
        ] {
            let text = serde_json::to_string(&JobEnd::of_exit(&exit)).unwrap();
            let told: JobEnd = serde_json::from_str(&text).unwrap();
            assert_eq!(told.exit(), exit, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let end = JobEnd {
            cpu_s: Some(0.5),
            ..JobEnd::of_exit(&Exit::Code(0))
        };
        let text = serde_json::to_string(&end).unwrap();
        let told = r#"{"exit":0,"exit_text":"exit 0","timed_out":false,"cpu_s":0.5}"#;
        assert_eq!(text, told);
        let why = Absence::NotTold;
        assert_eq!(end.cpu_time(why), Reading::Value(Nanos::from_ms(500)));
        assert_eq!(end.resources(|_| why).max_rss, Reading::Absent(why));
    }
}
