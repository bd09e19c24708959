//! The state of a run as metrics, in the text formats of Prometheus.
//!
//! Names follow its practice: base units, `_total` for counters, and no label whose values grow with the run. So no metric
//! belongs to a single job.

use super::{CpuNow, JobState, Status};
use std::fmt::Write as _;
use std::time::SystemTime;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older format of Prometheus, 0.0.4.
    Plain,
}

impl MetricsFormat {
    /// Return the format's media type.
    pub fn media_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsFormat::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Render the metrics of a state that is `age_s` seconds old.
pub fn metrics_text(status: &Status, age_s: f64, format: MetricsFormat) -> String {
    let mut page = Page {
        format,
        text: String::new(),
    };
    page.run(status);
    page.times(status, age_s);
    page.jobs(status);
    page.cpus(status);
    page.own_use(status);
    if format == MetricsFormat::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    Info,
}

/// A text of metrics that is being written.
struct Page {
    format: MetricsFormat,
    text: String,
}

impl Page {
    fn run(&mut self, status: &Status) {
        let run = &status.run;
        let labels = [
            ("version", &status.cosched_version),
            ("run_id", &run.run_id),
            ("policy", &run.policy),
            ("machine", &run.machine),
            ("cpus", &run.cpus),
        ];
        self.describe("cosched", Kind::Info, "", "The constants of the run.");
        let labels = labels.map(|(name, value)| label(name, value));
        self.sample("cosched_info", &labels.join(","), 1.0);
    }

    fn times(&mut self, status: &Status, age_s: f64) {
        let gauges = [
            (
                "cosched_start_time_seconds",
                "Start of the run, since 1970.",
                started_s(status),
            ),
            (
                "cosched_elapsed_seconds",
                "Time since the start of the run.",
                Some(status.elapsed_s),
            ),
            (
                "cosched_left_seconds",
                "Estimated time until the end of the run.",
                status.totals.left_s,
            ),
            (
                "cosched_state_age_seconds",
                "Age of this state.",
                Some(age_s),
            ),
        ];
        for (name, help, value) in gauges {
            self.value(name, Kind::Gauge, "seconds", help, value);
        }
    }

    fn jobs(&mut self, status: &Status) {
        let totals = &status.totals;
        let states = [
            ("running", totals.running),
            ("waiting", totals.waiting),
            ("sleeping", totals.sleeping),
            ("ending", totals.ending),
            ("queued", totals.queued),
            ("dropped", totals.dropped),
            ("succeeded", totals.done.saturating_sub(totals.failed)),
            ("failed", totals.failed),
        ];
        self.by_state("cosched_jobs", "Jobs of the run, by state.", &states);
        let (name, help) = ("cosched_jobs_ended", "Jobs that have succeeded or failed.");
        self.value(name, Kind::Counter, "", help, Some(totals.done as f64));
        let (name, help) = (
            "cosched_longest_wait_seconds",
            "Longest present wait of a job.",
        );
        let wait_s = Some(longest_wait_s(status));
        self.value(name, Kind::Gauge, "seconds", help, wait_s);
    }

    fn cpus(&mut self, status: &Status) {
        let states = ["one_job", "shared", "lent", "idle"];
        let counts = states.map(|state| {
            let cpus = status.cpus.iter();
            (state, cpus.filter(|cpu| cpu_state(cpu) == state).count())
        });
        self.by_state("cosched_cpus", "CPUs of the run, by use.", &counts);
    }

    fn own_use(&mut self, status: &Status) {
        let own = &status.own;
        let counters = [
            (
                "cosched_decisions",
                "",
                "Decisions of the policy.",
                Some(own.decisions as f64),
            ),
            (
                "cosched_own_cpu_seconds",
                "seconds",
                "CPU time of the run itself.",
                own.figures.get("cpu_s").copied(),
            ),
            (
                "cosched_energy_joules",
                "joules",
                "Energy of the processor package since the start of the run.",
                status.energy.joules,
            ),
        ];
        for (name, unit, help, value) in counters {
            self.value(name, Kind::Counter, unit, help, value);
        }
    }

    /// Write a metric with one sample; an absent value has none, since it is not 0.
    fn value(&mut self, name: &str, kind: Kind, unit: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            let suffix = self.describe(name, kind, unit, help);
            self.sample(&format!("{name}{suffix}"), "", value);
        }
    }

    /// Write a metric with a sample for each state.
    fn by_state(&mut self, name: &str, help: &str, states: &[(&str, usize)]) {
        self.describe(name, Kind::Gauge, "", help);
        for (state, count) in states {
            self.sample(name, &label("state", state), *count as f64);
        }
    }

    /// Write the kind, the unit and the help of a metric; return the suffix of its samples.
    fn describe(&mut self, name: &str, kind: Kind, unit: &str, help: &str) -> &'static str {
        let (word, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Info => ("info", "_info"),
        };
        let text = &mut self.text;
        let _ = match self.format {
            MetricsFormat::OpenMetrics if unit.is_empty() => {
                write!(text, "# TYPE {name} {word}\n# HELP {name} {help}\n")
            }
            MetricsFormat::OpenMetrics => write!(
                text,
                "# TYPE {name} {word}\n# UNIT {name} {unit}\n# HELP {name} {help}\n"
            ),
            MetricsFormat::Plain => {
                let word = if kind == Kind::Info { "gauge" } else { word };
                let name = format!("{name}{suffix}");
                write!(text, "# HELP {name} {help}\n# TYPE {name} {word}\n")
            }
        };
        suffix
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _ = if labels.is_empty() {
            writeln!(self.text, "{name} {value}")
        } else {
            writeln!(self.text, "{name}{{{labels}}} {value}")
        };
    }
}

fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"");
    format!("{name}=\"{value}\"")
}

fn started_s(status: &Status) -> Option<f64> {
    let started = humantime::parse_rfc3339(status.run.started_at.as_deref()?).ok()?;
    let since_epoch = started.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since_epoch.as_secs_f64())
}

fn longest_wait_s(status: &Status) -> f64 {
    let mut longest_s = 0.0_f64;
    for job in &status.jobs {
        if let (JobState::Waiting, Some(since_s)) = (job.state, job.figures.get("waiting_since_s"))
        {
            longest_s = longest_s.max(status.elapsed_s - since_s);
        }
    }
    longest_s
}

fn cpu_state(cpu: &CpuNow) -> &'static str {
    match cpu.job {
        Some(_) => "one_job",
        None if cpu.shared => "shared",
        None if cpu.jobs > 0 => "lent",
        None => "idle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Checks a text against the grammar, line by line: metadata come once for each family, before its samples and in one
    /// piece; names fit their kinds; the end is marked in OpenMetrics alone. Returns the names of the samples.
    fn checked(text: &str, format: MetricsFormat) -> Vec<String> {
        let is_name = |name: &str| {
            let mut chars = name.chars();
            chars
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        };
        assert!(text.ends_with('\n'));
        let mut lines = text.lines().peekable();
        let (mut families, mut samples) = (HashSet::new(), Vec::new());
        while let Some(line) = lines.next() {
            if line == "# EOF" {
                assert_eq!((format, lines.peek()), (MetricsFormat::OpenMetrics, None));
                return samples;
            }
            let mut family: Option<(String, String)> = None;
            let mut meta = Some(line);
            let mut keys = Vec::new();
            while let Some(rest) = meta.and_then(|line| line.strip_prefix("# ")) {
                let mut words = rest.splitn(3, ' ');
                let (key, name, value) = (
                    words.next().unwrap(),
                    words.next().unwrap(),
                    words.next().unwrap(),
                );
                assert!(is_name(name) && !keys.contains(&key), "{rest}");
                keys.push(key);
                match key {
                    "TYPE" => family = Some((name.to_owned(), value.to_owned())),
                    "UNIT" => assert!(
                        name.ends_with(&format!("_{value}"))
                            && format == MetricsFormat::OpenMetrics
                    ),
                    "HELP" => assert!(value.ends_with('.')),
                    other => panic!("{other}"),
                }
                meta = lines.next_if(|line| line.starts_with("# ") && !line.starts_with("# EOF"));
                if keys.len() == 3 || meta.is_none() {
                    break;
                }
            }
            let (name, kind) = family.unwrap_or_else(|| panic!("no type before {line}"));
            assert!(families.insert(name.clone()), "{name} comes twice");
            let suffix = match (kind.as_str(), format) {
                ("counter", MetricsFormat::OpenMetrics) => "_total",
                ("info", MetricsFormat::OpenMetrics) => "_info",
                ("gauge" | "counter", _) => "",
                other => panic!("{other:?}"),
            };
            let mut count = 0;
            while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
                let (head, value) = sample.rsplit_once(' ').unwrap();
                let metric = head.split('{').next().unwrap();
                assert_eq!(metric, format!("{name}{suffix}"));
                let value: f64 = value.parse().unwrap();
                assert!(value >= 0.0);
                assert!(!samples.contains(&head.to_owned()), "{head} comes twice");
                samples.push(head.to_owned());
                count += 1;
            }
            assert!(count > 0, "{name} has no sample");
        }
        assert_eq!(format, MetricsFormat::Plain, "the end is missing");
        samples
    }

    #[test]
    fn metrics_of_a_run() {
        let mut status = crate::live::tests::status();
        status.run.machine = "a \"b\" \\ c\nd".to_owned();
        for format in [MetricsFormat::OpenMetrics, MetricsFormat::Plain] {
            let text = metrics_text(&status, 0.25, format);
            insta::assert_snapshot!(format!("{format:?}"), text);
            let names = checked(&text, format);
            assert!(
                names
                    .iter()
                    .any(|name| name == "cosched_jobs{state=\"running\"}"),
                "{names:?}"
            );
            assert!(!text.contains("mcf"), "no series for a job");
        }
    }

    /// As many lines with a thousand jobs as with five.
    #[test]
    fn there_are_no_more_series_with_more_jobs() {
        let few = crate::live::tests::status();
        let mut many = few.clone();
        for n in 0..1_000 {
            let mut job = few.jobs[0].clone();
            (job.job, job.name) = (n, format!("job-{n}"));
            many.jobs.push(job);
        }
        let lines = |status: &Status| {
            metrics_text(status, 0.0, MetricsFormat::OpenMetrics)
                .lines()
                .count()
        };
        assert_eq!(lines(&few), lines(&many));
    }

    #[test]
    fn what_is_absent_has_no_sample() {
        let mut status = crate::live::tests::status();
        (
            status.energy.joules,
            status.totals.left_s,
            status.run.started_at,
        ) = (None, None, None);
        let text = metrics_text(&status, 0.0, MetricsFormat::OpenMetrics);
        for name in ["energy", "left_seconds", "start_time"] {
            assert!(!text.contains(name), "{name}");
        }
        checked(&text, MetricsFormat::OpenMetrics);
    }
}
