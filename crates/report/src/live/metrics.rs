//! The state of a run as metrics, in the text formats that Prometheus reads.
//!
//! Names follow its practice: base units, `_total` for counters, and no label whose values grow with the run. So there is no
//! series for a job.

use super::{JobState, Status};
use std::fmt::Write as _;
use std::time::SystemTime;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The format of Prometheus before it, 0.0.4.
    Plain,
}

impl MetricsFormat {
    /// The format's media type.
    pub fn media_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsFormat::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
    Info,
}

/// A family of metrics with its samples.
struct Family {
    /// Its name, without the suffix of its kind.
    name: &'static str,
    kind: Kind,
    /// The last part of the name, if it is a unit.
    unit: &'static str,
    help: &'static str,
    /// Labels and values.
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Family {
    fn new(name: &'static str, kind: Kind, unit: &'static str, help: &'static str) -> Family {
        Family {
            name,
            kind,
            unit,
            help,
            samples: Vec::new(),
        }
    }

    /// With one sample, if there is a value. What is absent has none: it is not 0.
    fn of(self, value: Option<f64>) -> Family {
        let samples = value.map(|value| (Vec::new(), value)).into_iter().collect();
        Family { samples, ..self }
    }

    /// With a sample for each value of a label.
    fn by(self, label: &'static str, values: &[(&str, usize)]) -> Family {
        let sample = |(of, value): &(&str, usize)| (vec![(label, (*of).to_owned())], *value as f64);
        Family {
            samples: values.iter().map(sample).collect(),
            ..self
        }
    }

    fn write(&self, format: MetricsFormat, text: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        let (kind, suffix) = match self.kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Info => ("info", "_info"),
        };
        let name = self.name;
        let help = escaped(self.help, false);
        let _ = match format {
            MetricsFormat::OpenMetrics => {
                let unit = if self.unit.is_empty() {
                    String::new()
                } else {
                    format!("# UNIT {name} {}\n", self.unit)
                };
                write!(text, "# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
            }
            MetricsFormat::Plain => {
                let kind = if kind == "info" { "gauge" } else { kind };
                write!(
                    text,
                    "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
                )
            }
        };
        for (labels, value) in &self.samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true)))
                .collect();
            let labels = if labels.is_empty() {
                String::new()
            } else {
                format!("{{{}}}", labels.join(","))
            };
            let _ = writeln!(text, "{name}{suffix}{labels} {value}");
        }
    }
}

fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes {
        text.replace('"', "\\\"")
    } else {
        text
    }
}

/// The metrics of a state that is `age_s` seconds old.
pub fn metrics_text(status: &Status, age_s: f64, format: MetricsFormat) -> String {
    let mut text = String::new();
    families(status, age_s)
        .iter()
        .for_each(|family| family.write(format, &mut text));
    if format == MetricsFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn families(status: &Status, age_s: f64) -> Vec<Family> {
    use Kind::{Counter, Gauge, Info};
    let (run, totals) = (&status.run, &status.totals);
    let began = run
        .started_at
        .as_deref()
        .and_then(|at| humantime::parse_rfc3339(at).ok());
    let began_s = began.and_then(|at| {
        Some(
            at.duration_since(SystemTime::UNIX_EPOCH)
                .ok()?
                .as_secs_f64(),
        )
    });
    let figure = |name: &str| status.own.figures.get(name).copied();
    let waits = status
        .jobs
        .iter()
        .filter(|job| job.state == JobState::Waiting);
    let waits = waits
        .filter_map(|job| job.figures.get("waiting_since_s"))
        .map(|since| status.elapsed_s - since);
    let cpus =
        |wanted: fn(&super::CpuNow) -> bool| status.cpus.iter().filter(|cpu| wanted(cpu)).count();
    let mut info = Family::new(
        "cosched",
        Info,
        "",
        "The run, and what does not change in it.",
    );
    let labels = [
        ("version", status.cosched_version.clone()),
        ("run_id", run.run_id.clone()),
        ("policy", run.policy.clone()),
        ("machine", run.machine.clone()),
        ("cpus", run.cpus.clone()),
    ];
    info.samples.push((labels.to_vec(), 1.0));
    vec![
        info,
        Family::new(
            "cosched_start_time_seconds",
            Gauge,
            "seconds",
            "When the run started, since 1970.",
        )
        .of(began_s),
        Family::new(
            "cosched_elapsed_seconds",
            Gauge,
            "seconds",
            "Time since the start of the run.",
        )
        .of(Some(status.elapsed_s)),
        Family::new(
            "cosched_left_seconds",
            Gauge,
            "seconds",
            "Estimated time until the end of the run.",
        )
        .of(totals.left_s),
        Family::new(
            "cosched_state_age_seconds",
            Gauge,
            "seconds",
            "For how long the run has not told anything newer.",
        )
        .of(Some(age_s)),
        Family::new(
            "cosched_jobs",
            Gauge,
            "",
            "Jobs of the run, by what they do.",
        )
        .by(
            "state",
            &[
                ("running", totals.running),
                ("waiting", totals.waiting),
                ("sleeping", totals.sleeping),
                ("ending", totals.ending),
                ("queued", totals.queued),
                ("dropped", totals.dropped),
                ("succeeded", totals.done.saturating_sub(totals.failed)),
                ("failed", totals.failed),
            ],
        ),
        Family::new(
            "cosched_jobs_ended",
            Counter,
            "",
            "Jobs that have ended, well or not.",
        )
        .of(Some(totals.done as f64)),
        Family::new(
            "cosched_longest_wait_seconds",
            Gauge,
            "seconds",
            "For how long the job has waited that waits longest.",
        )
        .of(Some(waits.fold(0.0, f64::max))),
        Family::new(
            "cosched_cpus",
            Gauge,
            "",
            "CPUs of the run, by who has them.",
        )
        .by(
            "state",
            &[
                ("one_job", cpus(|cpu| cpu.job.is_some())),
                ("shared", cpus(|cpu| cpu.job.is_none() && cpu.shared)),
                (
                    "lent",
                    cpus(|cpu| cpu.job.is_none() && !cpu.shared && cpu.jobs > 0),
                ),
                (
                    "idle",
                    cpus(|cpu| cpu.job.is_none() && !cpu.shared && cpu.jobs == 0),
                ),
            ],
        ),
        Family::new("cosched_decisions", Counter, "", "Decisions of the policy.")
            .of(Some(status.own.decisions as f64)),
        Family::new(
            "cosched_own_cpu_seconds",
            Counter,
            "seconds",
            "CPU time that the run itself has used.",
        )
        .of(figure("cpu_s")),
        Family::new(
            "cosched_energy_joules",
            Counter,
            "joules",
            "Energy of the processor package since the start of the run.",
        )
        .of(status.energy.joules),
    ]
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
