//! The state of a run as metrics, in the text format of Prometheus.
//!
//! Names follow its practice: base units, `_total` for counters, and no label whose values grow with the run. So no metric
//! belongs to a single job.

use super::{CpuNow, JobState, RunStatus};
use std::fmt::Write as _;
use std::time::SystemTime;

/// Render the metrics of a state.
pub fn metrics_text(status: &RunStatus) -> String {
    let mut page = Page::default();
    page.run(status);
    page.jobs(status);
    page.cpus(status);
    page.used(status);
    page.text
}

/// A text of metrics that is being written.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn run(&mut self, status: &RunStatus) {
        let run = &status.run;
        let labels = [
            ("version", &status.cosched_version),
            ("run_id", &run.run_id),
            ("policy", &run.policy),
            ("machine", &run.machine),
            ("cpus", &run.cpus),
        ];
        let labels = labels.map(|(name, value)| label(name, value));
        self.describe("cosched_info", "The constants of the run.");
        self.sample("cosched_info", &labels.join(","), 1.0);
        self.value(
            "cosched_start_time_seconds",
            "Start of the run, since 1970.",
            started_s(status),
        );
        self.value(
            "cosched_elapsed_seconds",
            "Time since the start of the run.",
            Some(status.elapsed_s),
        );
        self.value(
            "cosched_left_seconds",
            "Estimated time until the end of the run.",
            status.totals.left_s,
        );
    }

    fn jobs(&mut self, status: &RunStatus) {
        let totals = &status.totals;
        let states = [
            ("running", totals.running),
            ("waiting", totals.waiting),
            ("sleeping", totals.sleeping),
            ("ending", totals.ending),
            ("queued", totals.queued),
            ("dropped", totals.dropped),
            (
                "succeeded",
                totals.done.saturating_sub(totals.failed + totals.cancelled),
            ),
            ("failed", totals.failed),
            ("cancelled", totals.cancelled),
        ];
        self.by_state("cosched_jobs", "Jobs of the run, by state.", &states);
        self.value(
            "cosched_jobs_ended_total",
            "Jobs that have succeeded, failed or been cancelled.",
            Some(totals.done as f64),
        );
        self.value(
            "cosched_longest_wait_seconds",
            "Longest present wait of a job.",
            Some(longest_wait_s(status)),
        );
    }

    fn cpus(&mut self, status: &RunStatus) {
        let states = ["one_job", "shared", "lent", "idle"];
        let counts = states.map(|state| {
            let cpus = status.cpus.iter();
            (state, cpus.filter(|cpu| cpu_state(cpu) == state).count())
        });
        self.by_state("cosched_cpus", "CPUs of the run, by use.", &counts);
    }

    fn used(&mut self, status: &RunStatus) {
        self.value(
            "cosched_decisions_total",
            "Decisions of the policy.",
            Some(status.own.decisions as f64),
        );
        self.value(
            "cosched_own_cpu_seconds_total",
            "CPU time of the run itself.",
            status.own.figures.get("cpu_s").copied(),
        );
        self.value(
            "cosched_energy_joules_total",
            "Energy of the processor package since the start of the run.",
            status.energy.joules,
        );
    }

    /// Write a metric with one sample; an absent value has none, since it is not 0.
    fn value(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.describe(name, help);
            self.sample(name, "", value);
        }
    }

    /// Write a metric with a sample for each state.
    fn by_state(&mut self, name: &str, help: &str, states: &[(&str, usize)]) {
        self.describe(name, help);
        for (state, count) in states {
            self.sample(name, &label("state", state), *count as f64);
        }
    }

    fn describe(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        let _ = writeln!(self.text, "# HELP {name} {help}");
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
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

fn started_s(status: &RunStatus) -> Option<f64> {
    let started = humantime::parse_rfc3339(status.run.started_at.as_deref()?).ok()?;
    let since_epoch = started.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since_epoch.as_secs_f64())
}

fn longest_wait_s(status: &RunStatus) -> f64 {
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

    /// Checks a text against the grammar: help and type come once for each metric, before its samples, and counters end with
    /// `_total`. Returns the names of the samples.
    fn checked(text: &str) -> Vec<String> {
        let (mut described, mut samples) = (Vec::new(), Vec::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').unwrap();
                assert!(text.ends_with('.'), "{text}");
                assert!(!described.contains(&name), "{name} comes twice");
                let kind = lines.next().unwrap();
                let kind = kind.strip_prefix(&format!("# TYPE {name} ")).unwrap();
                assert!(["gauge", "counter"].contains(&kind), "{kind}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                described.push(name);
                continue;
            }
            let (head, value) = line.rsplit_once(' ').unwrap();
            let name = head.split('{').next().unwrap();
            assert_eq!(described.last(), Some(&name));
            assert!(value.parse::<f64>().unwrap() >= 0.0);
            assert!(!samples.contains(&head.to_owned()), "{head} comes twice");
            samples.push(head.to_owned());
        }
        assert!(text.ends_with('\n'));
        samples
    }

    #[test]
    fn metrics_of_a_run() {
        let mut status = crate::live::tests::status();
        status.run.machine = "a \"b\" \\ c\nd".to_owned();
        let text = metrics_text(&status);
        insta::assert_snapshot!(text);
        let names = checked(&text);
        let running = "cosched_jobs{state=\"running\"}";
        assert!(names.iter().any(|name| name == running), "{names:?}");
        assert!(!text.contains("mcf"), "no series for a job");
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
        let lines = |status: &RunStatus| metrics_text(status).lines().count();
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
        let text = metrics_text(&status);
        for name in ["energy", "left_seconds", "start_time"] {
            assert!(!text.contains(name), "{name}");
        }
        checked(&text);
    }
}
