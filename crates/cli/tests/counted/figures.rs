//! Holds the figures of a record against the truth.

use crate::run::{self, EndedRun, User};
use crate::truth::TrueJob;
use cosched_core::{Absence, Counter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Greatest errors of what is estimated from the counts.
pub(crate) struct Most {
    /// Of the slowdown of any job.
    pub(crate) slowdown: f64,
    /// Of slowdowns in the mean.
    pub(crate) mean_slowdown: f64,
    /// Of the measured progress in the mean.
    pub(crate) mean_progress: f64,
}

/// What is to hold under each law.
pub(crate) const GOAL: Most = Most {
    slowdown: 0.1,
    mean_slowdown: 0.05,
    mean_progress: 0.02,
};

/// What a run may lack.
pub(crate) struct May {
    /// Counters that may be absent, with a reason.
    pub(crate) lack: &'static [Counter],
    /// Greatest error of what is counted.
    pub(crate) error: f64,
}

/// A run that must have everything. Writes to memory have no event in the table of the guest's processor.
pub(crate) const ALL: May = May {
    lack: &[Counter::MmWrites],
    error: 0.03,
};
/// A run that may lack all counts.
pub(crate) const NOTHING: May = May {
    lack: &Counter::ALL,
    error: 0.03,
};

/// What is wrong, with the jobs in which it is. It panics with all of it.
#[derive(Default)]
pub(crate) struct Faults(BTreeMap<String, Vec<String>>);

impl Faults {
    pub(crate) fn add(&mut self, fault: impl Into<String>) {
        self.0.entry(fault.into()).or_default();
    }

    fn add_of(&mut self, job: &str, fault: impl Into<String>) {
        self.0.entry(fault.into()).or_default().push(job.to_owned());
    }

    #[track_caller]
    pub(crate) fn none(self) {
        let line = |(fault, jobs): (String, Vec<String>)| format!("{fault}  {}", jobs.join(" "));
        let lines: Vec<String> = self.0.into_iter().map(line).collect();
        assert!(
            lines.is_empty(),
            "{} wrong:\n{}",
            lines.len(),
            lines.join("\n")
        );
    }

    /// A figure of a job and its truth.
    fn hold(&mut self, job: &str, what: &str, figure: f64, truth: f64, most: f64) {
        let error = figure / truth - 1.0;
        // A figure that is no number is wrong, too.
        if error.abs() > most || error.is_nan() {
            self.add_of(
                job,
                format!(
                    "{what}: {figure:.4e}, truly {truth:.4e} ({:+.1} %)",
                    100.0 * error
                ),
            );
        }
    }
}

/// The count of a job in a record.
fn count(job: &Value, counter: Counter) -> (Option<f64>, &Value) {
    let name = counter.name();
    (job["counts"][name].as_f64(), &job[format!("{name}_absent")])
}

/// Holds every figure of every job against the truth.
pub(crate) fn check(ended: &EndedRun, may: &May, faults: &mut Faults) {
    check_counts(ended, may, faults);
    check_slowdowns(ended, &GOAL, faults);
}

/// Holds what was counted against the truth.
pub(crate) fn check_counts(ended: &EndedRun, may: &May, faults: &mut Faults) {
    for job in jobs(ended) {
        let (name, truth) = (name_of(job), true_job(ended, job));
        for counter in Counter::ALL {
            let (figure, why) = count(job, counter);
            let may_lack = may.lack.contains(&counter);
            check_figure(
                &name,
                counter.name(),
                (figure, why),
                truth.count(counter),
                may_lack,
                may.error,
                faults,
            );
        }
        let may_lack = [Counter::Instructions, Counter::Cycles]
            .iter()
            .any(|counter| may.lack.contains(counter));
        let (ipc, cpu_s) = (job["ipc"].as_f64(), job["cpu_s"].as_f64());
        check_figure(
            &name,
            "ipc",
            (ipc, &job["ipc_absent"]),
            truth.ipc(),
            may_lack,
            may.error,
            faults,
        );
        check_figure(
            &name,
            "cpu_s",
            (cpu_s, &job["cpu_s_absent"]),
            truth.cpu_s,
            false,
            may.error,
            faults,
        );
    }
    check_losses(ended, faults);
}

/// A figure is right, or absent with a reason.
fn check_figure(
    job: &str,
    what: &str,
    (figure, why_absent): (Option<f64>, &Value),
    truth: f64,
    may_lack: bool,
    most: f64,
    faults: &mut Faults,
) {
    match figure {
        Some(figure) => faults.hold(job, what, figure, truth, most),
        None if why_absent.as_str().is_none_or(str::is_empty) => {
            faults.add_of(job, format!("{what} is absent without a reason"));
        }
        None if !may_lack => faults.add_of(job, format!("{what} is absent: {why_absent}")),
        None => {}
    }
}

/// The estimated slowdowns that the record has. None has to be there.
pub(crate) fn check_slowdowns(ended: &EndedRun, most: &Most, faults: &mut Faults) {
    let mut errors = Vec::new();
    for job in jobs(ended) {
        if let Some(estimate) = job["slowdown_estimate"].as_f64() {
            let truth = true_slowdown(ended, job);
            faults.hold(&name_of(job), "slowdown", estimate, truth, most.slowdown);
            errors.push((estimate / truth - 1.0).abs());
        }
    }
    // The mean of one or two says no more than each.
    if errors.len() > 2 {
        check_mean("estimated slowdowns", &errors, most.mean_slowdown, faults);
    }
}

fn check_mean(what: &str, errors: &[f64], most: f64, faults: &mut Faults) {
    let mean = mean(errors);
    if mean > most {
        faults.add(format!(
            "{what}: a mean error of {:.1} % over {} jobs",
            100.0 * mean,
            errors.len()
        ));
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Reasons of absence that are losses: the event was there, or doctor would have claimed it.
const LOSSES: [Absence; 3] = [
    Absence::NoCounterFree,
    Absence::CountsNothing,
    Absence::CountedTooLittle,
];

/// Each event that was lost is named in one warning. Where the policy says what it does without the event, that is enough.
fn check_losses(ended: &EndedRun, faults: &mut Faults) {
    let told = warnings_with_code(ended, "events-lost");
    let without = warnings_with_code(ended, "without");
    for counter in Counter::ALL {
        let is_lost = jobs(ended).any(|job| {
            let (_, why) = count(job, counter);
            let why = why.as_str().unwrap_or_default();
            LOSSES.iter().any(|loss| why == loss.text())
        });
        let names = |text: &&String| text.contains(counter.name());
        let times = told.iter().filter(names).count();
        let is_in_policy = without.iter().any(|text| text.contains(counter.text()));
        if times > 1 || (is_lost && times == 0 && !is_in_policy) {
            faults.add(format!(
                "{counter}: lost {is_lost}, named {times} times: {told:?} {without:?}"
            ));
        }
    }
}

fn warnings_with_code(ended: &EndedRun, code: &str) -> Vec<String> {
    let warnings = ended.record["warnings"].as_array().expect("a list");
    let of_code = warnings.iter().filter(|warning| warning["code"] == code);
    let texts = of_code.filter_map(|warning| warning["text"].as_str());
    texts.map(str::to_owned).collect()
}

/// The warnings whose text has this word.
pub(crate) fn warnings_about(ended: &EndedRun, word: &str) -> Vec<String> {
    let warnings = ended.record["warnings"].as_array().expect("a list");
    let texts = warnings
        .iter()
        .filter_map(|warning| warning["text"].as_str());
    texts
        .filter(|text| text.contains(word))
        .map(str::to_owned)
        .collect()
}

/// `cosched doctor` claims exactly the counters that a run has.
pub(crate) fn check_doctor(user: User, may: &May, faults: &mut Faults) {
    let folder = run::folder();
    let mut doctor = run::cosched(user, &folder);
    let output = doctor
        .args(["doctor", "--format", "json"])
        .output()
        .expect("it runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let features = answer["features"].as_array().expect("a list");
    let mut claimed = BTreeSet::new();
    for counter in Counter::ALL {
        let name = format!("count {}", counter.text());
        let feature = features
            .iter()
            .find(|feature| feature["feature"] == name.as_str());
        if feature.unwrap_or_else(|| panic!("no feature {name}"))["works"] == true {
            claimed.insert(counter);
        }
    }
    let has: BTreeSet<Counter> = Counter::ALL
        .into_iter()
        .filter(|counter| !may.lack.contains(counter))
        .collect();
    if claimed != has {
        faults.add(format!("doctor claims {claimed:?}; a run has {has:?}"));
    }
}

/// The errors of what a run has measured and estimated: of each job's progress, of its learnt progress, and of its slowdown.
pub(crate) struct Errors {
    progress: Vec<f64>,
    learnt: Vec<f64>,
    slowdown: Vec<f64>,
    pub(crate) table: String,
}

pub(crate) fn errors_of(ended: &EndedRun) -> Errors {
    let quantum_s = ended.record["quantum_s"].as_f64().expect("a number");
    let mut errors = Errors {
        progress: Vec::new(),
        learnt: Vec::new(),
        slowdown: Vec::new(),
        table: String::new(),
    };
    for job in jobs(ended) {
        let alone = true_job(ended, job).alone_s;
        let progress = job["progress"]
            .as_f64()
            .map(|quanta| quanta * quantum_s / alone - 1.0);
        let learnt = job["progress_learnt"]
            .as_f64()
            .map(|quanta| quanta * quantum_s / alone - 1.0);
        let estimate = job["slowdown_estimate"].as_f64();
        let slowdown = estimate.map(|estimate| estimate / true_slowdown(ended, job) - 1.0);
        writeln!(
            errors.table,
            "{:10} alone {alone:.3} s, progress {}, learnt {}, slowdown {}",
            name_of(job),
            percent(progress),
            percent(learnt),
            percent(slowdown)
        )
        .expect("a string");
        errors.progress.extend(progress.map(f64::abs));
        errors.learnt.extend(learnt.map(f64::abs));
        errors.slowdown.extend(slowdown.map(f64::abs));
    }
    errors
}

fn percent(error: Option<f64>) -> String {
    error.map_or_else(
        || "absent".to_owned(),
        |error| format!("{:+.1} %", 100.0 * error),
    )
}

impl Errors {
    /// The means of progress, learnt progress and slowdown, each with the number of jobs that have it.
    pub(crate) fn means(&self) -> [(f64, usize); 3] {
        [&self.progress, &self.learnt, &self.slowdown].map(|errors| (mean(errors), errors.len()))
    }

    /// The means, for a person to read.
    pub(crate) fn text(&self) -> String {
        let part = |errors: &[f64]| format!("{:.1} % ({})", 100.0 * mean(errors), errors.len());
        format!(
            "mean errors: progress {}, learnt {}, slowdown {}",
            part(&self.progress),
            part(&self.learnt),
            part(&self.slowdown)
        )
    }

    /// At least so many jobs have progress and slowdown, and the progress is right in the mean.
    pub(crate) fn check(&self, least: usize, most: &Most, faults: &mut Faults) {
        for (what, errors) in [("progress", &self.progress), ("slowdown", &self.slowdown)] {
            if errors.len() < least {
                faults.add(format!(
                    "{what}: only {} jobs have it, of {least} or more",
                    errors.len()
                ));
            }
        }
        let errors = &self.progress;
        check_mean("measured progress", errors, most.mean_progress, faults);
    }
}

pub(crate) fn jobs(ended: &EndedRun) -> impl Iterator<Item = &Value> {
    ended.record["jobs"].as_array().expect("a list").iter()
}

fn name_of(job: &Value) -> String {
    job["name"].as_str().expect("a name").to_owned()
}

fn true_job<'a>(ended: &'a EndedRun, job: &Value) -> &'a TrueJob {
    let name = name_of(job);
    ended
        .truth
        .get(&name)
        .unwrap_or_else(|| panic!("no truth about {name}: {}", ended.said))
}

/// Its time in the run by the time that its work takes alone.
pub(crate) fn true_slowdown(ended: &EndedRun, job: &Value) -> f64 {
    let time = |name: &str| job[name].as_f64().expect("it has ended");
    (time("end_s") - time("arrival_s")) / true_job(ended, job).alone_s
}
