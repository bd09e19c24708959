//! How a job ended, as it is told: in the files of a run, to a coordinator, by a reaper, in the queue and to those who watch.

use crate::resources::Resources;
use crate::run::TaskResult;
use crate::task::Exit;
use crate::units::{Absence, Nanos, Reading};
use serde::{Deserialize, Serialize};

/// How a job ended, and what it used. What is not known is left out.
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

    /// The end of a task of a run.
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
            ..JobEnd::of_exit(result.exit.as_ref().unwrap_or(&Exit::Unknown))
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

    /// CPU time of all its processes.
    pub fn cpu_time(&self) -> Reading<Nanos> {
        time(self.cpu_s)
    }

    /// What it used beside CPU time.
    pub fn resources(&self) -> Resources {
        Resources {
            max_rss: told(self.max_rss_bytes),
            user_time: time(self.user_s),
            system_time: time(self.system_s),
            read_bytes: told(self.read_bytes),
            written_bytes: told(self.written_bytes),
        }
    }
}

fn told<T>(value: Option<T>) -> Reading<T> {
    Reading::from_option(value, Absence::NotTold)
}

fn time(seconds: Option<f64>) -> Reading<Nanos> {
    told(seconds.map(Nanos::from_s))
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
        assert_eq!(end.cpu_time(), Reading::Value(Nanos::from_ms(500)));
        let not_told = Reading::Absent(Absence::NotTold);
        assert_eq!(end.resources().max_rss, not_told);
    }
}
